//! The order of ops in a body without branches.
//!
//! Copies of an unrolled body stand one after the other, and a long function (an exponential, an
//! error function) is one chain of ops that each wait for the one before. A processor looks only a
//! few copies ahead, so it finds less to do than it could. List scheduling by the length of the
//! chain behind each op weaves the copies, for as long as registers hold their vectors.
//!
//! An order is kept between stores to a buffer and other accesses to it, and no store moves in
//! front of a load: a result may take the memory of an input (`zyx_core::ir::inplace`), which is
//! read in the iterations that write there. Loads may move in front of stores to other buffers.

use super::Isa;
use rustc_hash::FxHashMap;
use std::ops::Range;
use zyx_core::ir::{Kernel, Op, Value};
use zyx_core::ops::{BinaryOp, UnaryOp};
use zyx_core::passes::rebuild::Rebuild;

/// Shorter bodies and shorter chains than these a processor overlaps by itself.
const MIN_OPS: usize = 40;
const MIN_CYCLES: u32 = 40;
/// Longer bodies cost more time to schedule than they are run for.
const MAX_OPS: usize = 1000;

/// The kernel with its bodies in an order that waits less.
pub(super) fn schedule(kernel: &Kernel, isa: Isa) -> Option<Kernel> {
    let blocks = blocks(kernel);
    if blocks.is_empty() {
        return None;
    }
    let registers = i32::from(isa.n_vector_registers());
    let mut r = Rebuild::new(kernel);
    let mut done = 0;
    for block in blocks {
        r.copy_range(done..block.start);
        for i in order(kernel, &block, registers) {
            r.copy(Value(i as u32));
        }
        done = block.end;
    }
    Some(r.finish_from(done))
}

/// Runs of plain ops inside loops that are worth an order of their own.
pub(super) fn blocks(k: &Kernel) -> Vec<Range<usize>> {
    let mut list = Vec::new();
    let (mut start, mut depth, mut vectors) = (0, 0, 0);
    for (v, op, ty) in k.iter() {
        let is_plain = op.is_pure() || matches!(op, Op::Load { .. } | Op::Store { .. });
        if is_plain {
            vectors += usize::from(ty.is_vector() && ty.dtype.is_float());
            continue;
        }
        let block = start..v.idx();
        if depth > 0 && vectors >= MIN_OPS && block.len() <= MAX_OPS {
            list.push(block);
        }
        match op {
            Op::Loop { .. } => depth += 1,
            Op::End { .. } => depth -= 1,
            _ => {}
        }
        (start, vectors) = (v.idx() + 1, 0);
    }
    list
}

/// About how many cycles a result is waited for.
fn latency(k: &Kernel, v: Value) -> u32 {
    let ty = k.ty(v);
    match k.op(v) {
        Op::Load { .. } => 6,
        Op::Const { .. } | Op::Splat { .. } => 0,
        Op::Unary { op: UnaryOp::Sqrt, .. } | Op::Binary { op: BinaryOp::Div, .. } => 12,
        _ if ty.dtype.is_float() => 4,
        _ => 1,
    }
}

struct Block<'k> {
    k: &'k Kernel,
    range: Range<usize>,
    /// By op of the block: those that must come after it, how many must come before, the length
    /// of the chain behind it, and how many uses of its vector are left.
    after: Vec<Vec<u32>>,
    before: Vec<u32>,
    height: Vec<u32>,
    uses: Vec<u32>,
}

impl<'k> Block<'k> {
    fn of(k: &'k Kernel, range: Range<usize>) -> Block<'k> {
        let n = range.len();
        let (after, before) = (vec![Vec::new(); n], vec![0; n]);
        let mut block = Block { k, range, after, before, height: vec![0; n], uses: vec![0; n] };
        let mut loads: Vec<usize> = Vec::new();
        let mut stores: FxHashMap<Value, usize> = FxHashMap::default();
        for i in 0..n {
            let op = block.op(i);
            for x in op.operands() {
                if let Some(x) = block.place(x) {
                    block.uses[x] += 1;
                    block.order(x, i);
                }
            }
            if let Op::Load { buf, .. } | Op::Store { buf, .. } = op
                && let Some(&store) = stores.get(&buf)
            {
                block.order(store, i);
            }
            match op {
                Op::Load { .. } => loads.push(i),
                Op::Store { buf, .. } => {
                    let is_private = matches!(k.op(buf), Op::Alloc { .. });
                    for &load in &loads {
                        let Op::Load { buf: other, .. } = block.op(load) else { continue };
                        let may_alias = !is_private && matches!(k.op(other), Op::Param { .. });
                        if other == buf || may_alias {
                            block.order(load, i);
                        }
                    }
                    stores.insert(buf, i);
                }
                _ => {}
            }
        }
        for i in (0..n).rev() {
            let behind = block.after[i].iter().map(|&j| block.height[j as usize]).max();
            block.height[i] = behind.unwrap_or(0) + latency(k, block.value(i));
        }
        block
    }

    fn value(&self, i: usize) -> Value {
        Value((self.range.start + i) as u32)
    }

    fn op(&self, i: usize) -> Op {
        self.k.op(self.value(i))
    }

    fn place(&self, v: Value) -> Option<usize> {
        self.range.contains(&v.idx()).then(|| v.idx() - self.range.start)
    }

    fn order(&mut self, first: usize, then: usize) {
        self.after[first].push(then as u32);
        self.before[then] += 1;
    }

    /// How many more vectors live after op `i` than before it.
    fn growth(&self, i: usize) -> i32 {
        let is_vector = |i: usize| self.k.ty(self.value(i)).is_vector();
        let made = i32::from(self.uses[i] > 0 && is_vector(i) && !self.is_free(i));
        let operands = || self.op(i).operands().filter_map(|x| self.place(x));
        let times = |x: usize| operands().filter(|&y| y == x).count() as u32;
        let ends = |x: usize| self.uses[x] == times(x) && is_vector(x) && !self.is_free(x);
        // An operand that stands twice ends once.
        let is_first = |at: usize, x: usize| operands().position(|y| y == x) == Some(at);
        let ended = operands().enumerate().filter(|&(at, x)| is_first(at, x) && ends(x)).count();
        made - ended as i32
    }

    /// Constants are memory operands.
    fn is_free(&self, i: usize) -> bool {
        matches!(self.op(i), Op::Splat { .. } | Op::Const { .. })
    }
}

/// The ops of a block in their new order.
pub(super) fn order(k: &Kernel, range: &Range<usize>, registers: i32) -> Vec<usize> {
    let mut block = Block::of(k, range.clone());
    let n = range.len();
    if block.height.iter().max().is_none_or(|&cycles| cycles < MIN_CYCLES) {
        return range.clone().collect();
    }
    let mut ready: Vec<usize> = (0..n).filter(|&i| block.before[i] == 0).collect();
    let mut order = Vec::with_capacity(n);
    let mut live = 0;
    while !ready.is_empty() {
        // The oldest op that needs no further register is always there once copies have begun.
        let crowded = live + 2 >= registers;
        let rank = |&i: &usize| {
            (
                crowded && block.growth(i) > 0,
                if crowded { 0 } else { u32::MAX - block.height[i] },
                i,
            )
        };
        let best = (0..ready.len()).min_by_key(|&at| rank(&ready[at]));
        let i = ready.swap_remove(best.expect("invariant: an op is ready"));
        live += block.growth(i);
        for x in block.op(i).operands() {
            if let Some(x) = block.place(x) {
                block.uses[x] -= 1;
            }
        }
        for j in std::mem::take(&mut block.after[i]) {
            block.before[j as usize] -= 1;
            if block.before[j as usize] == 0 {
                ready.push(j as usize);
            }
        }
        order.push(range.start + i);
    }
    order
}
