//! Which nests are sums of products, and which of their loops are rows and which columns.

use super::Tile;
use super::operand::{Operand, Side};
use crate::caps::Caps;
use crate::ir::{Access, Kernel, LoopKind, Op, Order, Space, Value};
use crate::ops::BinaryOp;
use crate::passes::elements::Elements;
use crate::passes::loops::{LoopInfo, loops};
use crate::passes::nest;
use crate::passes::variance::accumulators;

/// A nest that sums products.
#[derive(Clone, Debug)]
pub struct Found {
    /// The parallel loops, outermost first.
    pub chain: Vec<LoopInfo>,
    /// The loops of the reduction, outermost first.
    pub sums: Vec<LoopInfo>,
    /// Loops that move only the first factor, only the second, and both or neither.
    pub rows: Vec<LoopInfo>,
    /// Loops that move only the second factor.
    pub columns: Vec<LoopInfo>,
    /// Loops that move both factors or neither.
    pub batch: Vec<LoopInfo>,
    /// The storage of the sum and the constant it starts from.
    pub(in crate::passes) acc: Value,
    pub(in crate::passes) start: Value,
    /// The factor that rows move, without lanes, and the one that columns move.
    pub(in crate::passes) factors: [Value; 2],
}

/// The product of the loops' lengths.
pub(in crate::passes) fn count(loops: &[LoopInfo]) -> i64 {
    loops.iter().map(|l| l.len.unwrap_or(0)).fold(1, i64::saturating_mul)
}

/// Blocks of `size` that hold `n`.
pub(in crate::passes) fn blocks(n: i64, size: i64) -> i64 {
    (n + size - 1) / size
}

impl Found {
    /// The nest of a parallel loop at the top, if it is one.
    pub fn of(kernel: &Kernel, root: Option<Value>) -> Option<Found> {
        let chain = nest::chain(kernel, root)?;
        let innermost = *chain.last()?;
        let sums = reduction(kernel, &innermost, &loops(kernel))?;
        let sum = accumulators(kernel, &sums[0])?;
        let [sum] = sum[..] else { return None };
        let start = body(kernel, &innermost, &sums[0], sum.alloc)?;
        let Op::Store { value, .. } = kernel.op(sum.store) else { return None };
        let Op::Binary { op: BinaryOp::Add, x, y } = kernel.op(value) else { return None };
        let product = if x == sum.load { y } else { x };
        let Op::Binary { op: BinaryOp::Mul, x, y } = kernel.op(product) else { return None };
        let depends = Depends::of(kernel, &chain, &sums);
        // Results are written along columns: the inner one of the loops that move a single factor.
        let [on_x, on_y] = [x, y].map(|v| depends.on(v) & ((1 << chain.len()) - 1));
        let (x, y) = if on_x & !on_y > on_y & !on_x { (y, x) } else { (x, y) };
        let scalar = match kernel.op(x) {
            Op::Splat { x } => x,
            _ => x,
        };
        let factors = [scalar, y];
        let [on_x, on_y] = factors.map(|v| depends.on(v));
        if kernel.ty(scalar).is_vector() {
            return None;
        }
        let pick = |x: bool, y: bool| {
            let moves = |i: usize| (on_x & 1 << i != 0, on_y & 1 << i != 0) == (x, y);
            (0..chain.len()).filter(|&i| moves(i)).map(|i| chain[i]).collect::<Vec<_>>()
        };
        let mut batch = [pick(true, true), pick(false, false)].concat();
        batch.sort_by_key(|l| l.open);
        let (rows, columns) = (pick(true, false), pick(false, true));
        let found = Found { chain, sums, rows, columns, batch, acc: sum.alloc, start, factors };
        let sides = !found.rows.is_empty() && !found.columns.is_empty();
        (sides && found.is_evaluable(kernel)).then_some(found)
    }

    /// Results, counted in what the innermost loop computes at once: rows, columns, batch; and the
    /// steps of each sum.
    pub fn sizes(&self) -> [i64; 4] {
        [count(&self.rows), count(&self.columns), count(&self.batch), count(&self.sums)]
    }

    /// The innermost loop, if it is one of columns.
    pub fn innermost_columns(&self) -> Option<LoopInfo> {
        let last = *self.columns.last()?;
        (last.open == self.innermost().open).then_some(last)
    }

    pub(in crate::passes) fn root(&self) -> LoopInfo {
        self.chain[0]
    }

    pub(in crate::passes) fn innermost(&self) -> LoopInfo {
        self.chain[self.chain.len() - 1]
    }

    /// Whether both factors follow from counters and buffers that nothing here writes.
    fn is_evaluable(&self, kernel: &Kernel) -> bool {
        self.factors.iter().all(|&factor| {
            let mut stack = vec![factor];
            let mut seen = Vec::new();
            while let Some(v) = stack.pop() {
                if v < self.root().open || seen.contains(&v) {
                    continue;
                }
                seen.push(v);
                let fits = match kernel.op(v) {
                    Op::Load { order: Order::Plain, buf, .. } => {
                        matches!(kernel.op(buf), Op::Param { access: Access::Read, .. })
                    }
                    Op::Loop { .. } => continue,
                    op => op.is_pure(),
                };
                if !fits {
                    return false;
                }
                stack.extend(kernel.op(v).operands());
            }
            true
        })
    }

    /// Both factors as what is staged.
    pub(super) fn operands(&self, kernel: &Kernel, tile: Tile) -> [Operand; 2] {
        [Side::Rows, Side::Columns].map(|side| Operand::of(kernel, self, tile, side))
    }

    /// How many groups there are along columns, rows and the batch.
    pub fn groups(&self, tile: Tile) -> [i64; 3] {
        let [rows, columns, batch, _] = self.sizes();
        [blocks(columns, tile.columns), blocks(rows, tile.rows), batch]
    }

    /// Whether a device has room for such blocks.
    pub fn fits(&self, kernel: &Kernel, tile: Tile, caps: &Caps) -> bool {
        let [rows, columns, batch, steps] = self.sizes();
        let sizes = [rows, columns, batch, steps];
        let small = sizes.iter().all(|&n| (1..1 << 30).contains(&n));
        let shared: usize = self.operands(kernel, tile).iter().map(|o| o.bytes(kernel)).sum();
        let groups = self.groups(tile);
        small
            && tile.threads() > 1
            && tile.threads() <= caps.max_local as i64
            && (tile.lanes == 1 || caps.vector_bytes >= 16)
            && 2 * shared <= caps.shared_bytes
            && (0..3).all(|axis| groups[axis] as u64 <= caps.max_groups[axis])
    }
}

/// What follows the reduction.
impl Found {
    /// The positions of the ops behind the reduction.
    pub(in crate::passes) fn behind(&self) -> impl Iterator<Item = usize> {
        let (innermost, reduction) = (self.innermost(), self.sums[0]);
        (innermost.open.idx() + 1..innermost.end)
            .filter(move |i| !(reduction.open.idx()..=reduction.end).contains(i))
    }

    /// Emits the ops behind the reduction for one result, whose counters are set.
    pub(in crate::passes) fn result(&self, at: &mut Elements<'_>, sum: Value) {
        let after = self.sums[0].end;
        for i in self.behind() {
            let v = Value(i as u32);
            match at.r.src.op(v) {
                Op::Load { buf, .. } if buf == self.acc => at.set(v, sum),
                Op::Load { .. } if i > after => {
                    at.eval(v);
                }
                Op::Store { buf, .. } if buf != self.acc => {
                    at.eval(v);
                }
                _ => {}
            }
        }
    }
}

/// The loops of the reduction: the only loop in the body, perfectly nested serial loops of constant
/// lengths.
fn reduction(kernel: &Kernel, body: &LoopInfo, list: &[LoopInfo]) -> Option<Vec<LoopInfo>> {
    let inside: Vec<LoopInfo> =
        list.iter().filter(|l| body.body().contains(&l.open.idx())).copied().collect();
    for pair in inside.windows(2) {
        let [outer, inner] = pair else { return None };
        let between = outer.open.idx() + 1..inner.open.idx();
        let plain = |op: &Op| op.is_pure() || matches!(op, Op::Load { .. });
        if inner.end + 1 != outer.end || !kernel.ops()[between].iter().all(plain) {
            return None;
        }
    }
    let serial = |l: &LoopInfo| l.kind == Some(LoopKind::Serial) && l.len.is_some_and(|n| n > 0);
    (!inside.is_empty() && inside.iter().all(serial)).then_some(inside)
}

/// Checks what stands around the reduction and gives the constant that the sum starts from.
fn body(kernel: &Kernel, l: &LoopInfo, sum: &LoopInfo, acc: Value) -> Option<Value> {
    let mut start = None;
    for i in l.body() {
        let v = Value(i as u32);
        let inside = sum.body().contains(&i);
        match kernel.op(v) {
            Op::Alloc { space: Space::Register, len: 1 } if v == acc && !inside => {}
            Op::Store { buf, value, .. } if buf == acc => {
                if inside {
                    continue;
                }
                if start.is_some() || i > sum.end || kernel.constant(value).is_none() {
                    return None;
                }
                start = Some(value);
            }
            Op::Store { buf, .. } if matches!(kernel.op(buf), Op::Param { .. }) && i > sum.end => {}
            Op::Load { buf, .. } if buf == acc && i < sum.open.idx() => return None,
            Op::Load { buf, order: Order::Plain, .. }
                if buf == acc || matches!(kernel.op(buf), Op::Param { .. }) => {}
            Op::Loop { .. } | Op::End { .. } if (sum.open.idx()..=sum.end).contains(&i) => {}
            op if op.is_pure() => {}
            _ => return None,
        }
    }
    (acc > l.open).then_some(start?)
}

/// For each value of the nest a bit for each loop it depends on: the chain's, then the sums'.
struct Depends {
    first: usize,
    bits: Vec<u32>,
}

impl Depends {
    fn of(kernel: &Kernel, chain: &[LoopInfo], sums: &[LoopInfo]) -> Depends {
        let root = chain[0];
        let mut depends = Depends {
            first: root.open.idx(),
            bits: Vec::with_capacity(root.end - root.open.idx()),
        };
        for i in root.open.idx()..root.end {
            let v = Value(i as u32);
            let own = chain.iter().chain(sums).position(|l| l.open == v);
            let bits = match own {
                Some(position) => 1 << position.min(31),
                None => kernel.op(v).operands().fold(0, |bits, x| bits | depends.on(x)),
            };
            depends.bits.push(bits);
        }
        depends
    }

    fn on(&self, v: Value) -> u32 {
        v.idx().checked_sub(self.first).map_or(0, |i| self.bits[i])
    }
}
