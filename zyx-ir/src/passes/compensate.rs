//! `compensate`: long float sums in blocks, whose sums are added with their rounding errors.
//!
//! A register that a million numbers are added to one after the other rounds a million times, and
//! always the same way if they are equal. Here a block of [`BLOCK`] additions goes to a register of
//! its own. Its sum is added to the whole, and what that addition rounds away is added to the next
//! block's (Kahan 1965). So the relative error is that of one block, whatever the length: at most
//! `BLOCK / 2` roundings, each of half an ulp, and two more.
//!
//! Loops around one another that add to one register are cut where a block of additions is full;
//! an iteration of an unrolled loop has several.
//! Blocks are equally long whatever the length of a loop, and a loop of unknown length looks at it when it runs, so
//! that it adds up as one of known length does.
//!
//! A running sum gets what came before its block in one addition. Where it starts from more than
//! zero, as in a block of a longer scan, nothing is added to that in a line.
//!
//! It costs seven operations a block and register. Loops with more than `MOST` registers, tiles of
//! products, are left as they are: those registers are what makes them fast, and their sums are cut
//! elsewhere.

use super::loops::{LoopInfo, is_instead, loops, serial_around, use_counts};
use super::peel::compares;
use super::rebuild::Rebuild;
use super::{Pass, Site};
use crate::caps::Caps;
use crate::dtype::DType;
use crate::ir::{Kernel, LoopKind, Op, Space, Type, Value};
use crate::ops::{BinaryOp, TernaryOp};
use crate::scalar::Scalar;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "compensate",
    doc: "add up long float sums in blocks, with what the additions of blocks round away",
    reassociates: true,
    sites,
    apply: |kernel, site| match site.value {
        None => compensate(kernel).unwrap_or_else(|| kernel.clone()),
        Some(_) => kernel.clone(),
    },
};

/// Additions to one register in a block, and up to which a sum stays one.
pub const BLOCK: i64 = 32;
const LONG: i64 = 2 * BLOCK;
/// Most registers of a loop.
const MOST: usize = 16;
/// Most operations that are looked at to count the additions of an iteration.
const MOST_ADDITIONS: usize = 256;

fn sites(kernel: &Kernel, _: &Caps) -> Vec<Site> {
    if Plan::of(kernel).cuts.is_empty() { Vec::new() } else { vec![Site::whole()] }
}

/// The kernel with its long sums in blocks; `None` if it has none.
pub fn compensate(kernel: &Kernel) -> Option<Kernel> {
    let plan = Plan::of(kernel);
    if plan.cuts.is_empty() {
        return None;
    }
    let mut emit = Emit {
        r: Rebuild::new(kernel),
        ends: kernel.region_ends(),
        plan: &plan,
        errors: FxHashMap::default(),
        running: FxHashMap::default(),
        own: FxHashMap::default(),
    };
    emit.region(0..kernel.ops().len());
    Some(emit.r.out.finish())
}

/// The loops whose sums are cut: the length of each where it is known, the longest that stays one sum, the
/// iterations of a block, the registers, and the serial loops around. Of loops of which one alone runs, the first.
pub fn cuts(kernel: &Kernel) -> Vec<(Option<i64>, SmallVec<[i64; 2]>)> {
    let (cuts, list) = (Plan::of(kernel).cuts, loops(kernel));
    let cut = |l: &LoopInfo| {
        let cut = cuts.get(&l.open)?;
        let instead = |other: &LoopInfo| other.open < l.open && is_instead(kernel, l, other);
        if list.iter().any(|other| cuts.contains_key(&other.open) && instead(other)) {
            return None;
        }
        let sums = cut.sums.len() as i64;
        let params = [cut.whole, cut.block, sums, serial_around(&list, l)];
        Some((l.len, SmallVec::from_slice(&params)))
    };
    list.iter().filter_map(cut).collect()
}

/// A register that a loop adds to.
#[derive(Clone, Copy)]
struct Sum {
    alloc: Value,
    /// The sum that the loop stores in it.
    value: Value,
    store: Value,
    /// Whether that is used besides: a running sum.
    runs: bool,
    /// Additions in one iteration of that loop.
    additions: i64,
}

/// A loop that is cut into blocks.
struct Cut {
    l: LoopInfo,
    sums: Vec<Sum>,
    /// Most iterations that are one block, if they are all.
    whole: i64,
    /// Iterations of a block else.
    block: i64,
    /// Whether the first iteration adds what came before the loop.
    peels: bool,
}

#[derive(Default)]
struct Plan {
    cuts: FxHashMap<Value, Cut>,
    /// The sums whose error is kept from in front of a loop on.
    kept: FxHashMap<Value, Vec<Value>>,
}

/// The accesses to a register with the loop each stands in, by its place in the list of loops.
#[derive(Default)]
struct Accesses {
    loads: Vec<(Value, Option<usize>)>,
    stores: Vec<(Value, Option<usize>)>,
}

impl Plan {
    fn of(k: &Kernel) -> Plan {
        let mut plan = Plan::default();
        let list = loops(k);
        if !list.iter().any(|l| l.kind == Some(LoopKind::Serial)) {
            return plan;
        }
        let registers = registers(k, &list);
        let mut sorted: Vec<_> = registers.iter().collect();
        sorted.sort_by_key(|(alloc, _)| **alloc);
        let uses = use_counts(k);
        for (&alloc, accesses) in sorted {
            for &(store, at) in &accesses.stores {
                if let Some(at) = at
                    && let Some(sum) = sum(k, &uses, alloc, store, accesses)
                {
                    plan.cut(k, &list, at, sum, accesses);
                }
            }
        }
        plan.cuts.retain(|_, cut| cut.sums.len() <= MOST);
        plan
    }

    /// Finds the loop at which a block of additions is full.
    fn cut(&mut self, k: &Kernel, list: &[LoopInfo], at: usize, sum: Sum, accesses: &Accesses) {
        let inside = |l: &LoopInfo, v: Value| l.body().contains(&v.idx());
        let mut around = Vec::new();
        let mut next = Some(at);
        while let Some(l) = next.map(|i| &list[i]) {
            let only =
                |all: &[(Value, Option<usize>)]| all.iter().filter(|a| inside(l, a.0)).count() == 1;
            if l.kind != Some(LoopKind::Serial)
                || sum.alloc > l.open
                || !only(&accesses.loads)
                || !only(&accesses.stores)
            {
                break;
            }
            around.push(l);
            next = l.parent;
        }
        // How much a loop with a break adds to a register that outlives it is not known.
        if next.is_some_and(|i| list[i].kind.is_none() && sum.alloc < list[i].open) {
            return;
        }
        let (Some(&innermost), Some(&outermost)) = (around.first(), around.last()) else { return };
        let runs = |at: Option<usize>| !at.is_some_and(|i| is_instead(k, &list[i], innermost));
        let before = accesses.stores.iter().rev().find(|s| s.0 < innermost.open && runs(s.1));
        let from_zero = before.is_some_and(|&(store, _)| match k.op(store) {
            Op::Store { value, .. } => is_zero(k, value),
            _ => false,
        });
        let peelable = sum.runs && compares(k, innermost);
        let mut additions = sum.additions;
        let mut found = None;
        for l in around {
            let all = l.len.map(|n| n.saturating_mul(additions));
            // A block is added to what is there already: only if that is nothing, a sum of one is as it was.
            let first = from_zero && !peelable && l.open == outermost.open;
            match all {
                Some(all) if all <= LONG => {
                    additions = all.max(1);
                    continue;
                }
                None if !first && additions <= BLOCK / 2 => continue,
                _ => {}
            }
            let whole = if first { LONG / additions } else { 0 };
            found = Some((l, whole, (BLOCK / additions).max(1)));
            break;
        }
        let short = innermost.innermost && innermost.len.is_some_and(|n| n > 1);
        let peels = peelable && from_zero && short;
        if sum.runs && short && (peels || !from_zero) && found.is_none() {
            found = Some((innermost, 0, innermost.len.unwrap_or(1)));
        }
        let Some((l, whole, block)) = found else { return };
        let shares = |i| matches!(k.op(Value(i as u32)), Op::Alloc { space: Space::Shared, .. });
        if l.body().any(shares) {
            return;
        }
        let cut = self.cuts.entry(l.open);
        let sums = Vec::new();
        let cut = cut.or_insert_with(|| Cut { l: *l, sums, whole, block, peels: false });
        cut.whole = cut.whole.min(whole);
        cut.block = cut.block.min(block);
        cut.peels |= peels && l.open == innermost.open;
        cut.sums.push(sum);
        self.kept.entry(outermost.open).or_default().push(sum.alloc);
    }
}

/// Whether a value is 0 in all lanes.
fn is_zero(k: &Kernel, value: Value) -> bool {
    let scalar = match k.op(value) {
        Op::Splat { x } => x,
        _ => value,
    };
    k.constant(scalar).is_some_and(|c| c.to_f64() == 0.0)
}

/// The registers of one `f32`, or of a vector of them, with their accesses.
fn registers(k: &Kernel, list: &[LoopInfo]) -> FxHashMap<Value, Accesses> {
    let mut registers: FxHashMap<Value, Accesses> = FxHashMap::default();
    let mut open: Vec<usize> = Vec::new();
    let mut next = 0;
    for (v, op, ty) in k.iter() {
        match op {
            Op::Loop { .. } => {
                open.push(next);
                next += 1;
            }
            Op::End { open: start } if open.last().is_some_and(|&l| list[l].open == start) => {
                open.pop();
            }
            Op::Alloc { space: Space::Register, len: 1 } if ty.dtype == DType::F32 => {
                registers.insert(v, Accesses::default());
            }
            Op::Load { buf, .. } => {
                if let Some(accesses) = registers.get_mut(&buf) {
                    accesses.loads.push((v, open.last().copied()));
                }
            }
            Op::Store { buf, .. } => {
                if let Some(accesses) = registers.get_mut(&buf) {
                    accesses.stores.push((v, open.last().copied()));
                }
            }
            _ => {}
        }
    }
    registers
}

/// The sum that a store makes, if it adds to what its register held, once or several times.
fn sum(k: &Kernel, uses: &[u32], alloc: Value, store: Value, accesses: &Accesses) -> Option<Sum> {
    let Op::Store { value, .. } = k.op(store) else { return None };
    let is_load =
        |v: Value| v < store && uses[v.idx()] == 1 && accesses.loads.iter().any(|load| load.0 == v);
    let mut left = MOST_ADDITIONS;
    let additions = additions(k, uses, value, &is_load, &mut left)?;
    let fused = matches!(k.op(value), Op::Ternary { .. });
    let runs = uses[value.idx()] > 1;
    (!(runs && (fused || additions > 1))).then_some(Sum { alloc, value, store, runs, additions })
}

/// How many additions lead from the load of a register to a value, if nothing else does.
fn additions(
    k: &Kernel,
    uses: &[u32],
    v: Value,
    is_load: &impl Fn(Value) -> bool,
    left: &mut usize,
) -> Option<i64> {
    *left = left.checked_sub(1)?;
    let mut before = |v: Value| match is_load(v) {
        true => Some(0),
        false if uses[v.idx()] == 1 => additions(k, uses, v, is_load, left),
        false => None,
    };
    match k.op(v) {
        Op::Binary { op: BinaryOp::Add, x, y } => match (before(x), before(y)) {
            (Some(n), None) | (None, Some(n)) => Some(n + 1),
            _ => None,
        },
        Op::Ternary { op: TernaryOp::MulAdd, z, .. } => Some(before(z)? + 1),
        _ => None,
    }
}

struct Emit<'k> {
    r: Rebuild<'k>,
    ends: Vec<usize>,
    plan: &'k Plan,
    /// Where the error of a sum is kept, by its register.
    errors: FxHashMap<Value, Value>,
    /// The register with what came before a block and the store of the block's own, by the running
    /// sum.
    running: FxHashMap<Value, (Value, Value)>,
    /// The running sum of a block on its own, by the store of it.
    own: FxHashMap<Value, Value>,
}

impl Emit<'_> {
    fn region(&mut self, range: std::ops::Range<usize>) {
        let plan = self.plan;
        let mut i = range.start;
        while i < range.end {
            let v = Value(i as u32);
            for &alloc in plan.kept.get(&v).into_iter().flatten() {
                let error = self.zero(self.r.src.ty(alloc));
                self.errors.insert(alloc, error);
            }
            if let Some(cut) = plan.cuts.get(&v) {
                self.cut(cut);
                i = self.ends[i] + 1;
                continue;
            }
            self.op(v);
            i += 1;
        }
    }

    fn op(&mut self, v: Value) {
        let zero = self.r.out.index(0);
        if let Some(&(before, store)) = self.running.get(&v) {
            let own = self.r.copy(v);
            let before = self.r.out.load(before, zero);
            let sum = self.r.out.binary(BinaryOp::Add, before, own);
            self.r.set(v, sum);
            self.own.insert(store, own);
            return;
        }
        if let (Some(&own), Op::Store { buf, .. }) = (self.own.get(&v), self.r.src.op(v)) {
            let register = self.r.get(buf);
            self.r.out.store(register, zero, own);
            return;
        }
        self.r.copy(v);
    }

    /// A new register that holds zero.
    fn zero(&mut self, ty: Type) -> Value {
        let register = self.r.out.alloc(Space::Register, ty, 1);
        let none = self.r.out.constant(Scalar::from_f64(ty.dtype, 0.0));
        let none = self.r.out.splat(none, ty.lanes);
        let zero = self.r.out.index(0);
        self.r.out.store(register, zero, none);
        register
    }

    fn cut(&mut self, cut: &Cut) {
        let l = &cut.l;
        let first = cut.peels as i64;
        if cut.peels {
            let zero = self.r.number(l.open, 0);
            self.r.set(l.open, zero);
            self.region(l.body());
        }
        let Some(n) = l.len.map(|n| n - first) else {
            self.blocks(cut);
            return;
        };
        let block = cut.block.clamp(1, n.max(1));
        let (blocks, rest) = (n / block, n % block);
        let start = self.r.number(l.open, first);
        match blocks {
            0 => {}
            1 => {
                let len = self.r.number(l.open, block);
                self.block(cut, start, len);
            }
            _ => {
                let [count, step] = [blocks, block].map(|n| self.r.number(l.open, n));
                let number = self.r.open_loop(l.open, count);
                let base = self.r.out.binary(BinaryOp::Mul, number, step);
                let base = self.r.out.binary(BinaryOp::Add, base, start);
                self.block(cut, base, step);
                self.r.out.close();
            }
        }
        if rest > 0 {
            let base = self.r.number(l.open, first + blocks * block);
            let rest = self.r.number(l.open, rest);
            self.block(cut, base, rest);
        }
    }

    /// A loop of unknown length: one block if it turns out to be short, and the last may be shorter than others.
    fn blocks(&mut self, cut: &Cut) {
        let l = &cut.l;
        let len = self.r.get(l.len_value);
        let number = |emit: &mut Self, n| emit.r.number(l.open, n);
        let [one, step, more] = [1, cut.block, cut.block - 1].map(|n| number(self, n));
        let all = self.r.out.binary(BinaryOp::Add, len, more);
        let mut count = self.r.out.binary(BinaryOp::Div, all, step);
        let mut longest = step;
        if cut.whole > cut.block {
            longest = number(self, cut.whole);
            let is_long = self.r.out.binary(BinaryOp::Lt, longest, len);
            let at_most_one = self.r.out.binary(BinaryOp::Min, len, one);
            count = self.r.out.select(is_long, count, at_most_one);
            longest = self.r.out.select(is_long, step, longest);
        }
        let number = self.r.open_loop(l.open, count);
        let base = self.r.out.binary(BinaryOp::Mul, number, step);
        let left = self.r.out.binary(BinaryOp::Sub, len, base);
        let part = self.r.out.binary(BinaryOp::Min, left, longest);
        let part = if cut.whole.max(cut.block) == 1 { one } else { part };
        self.block(cut, base, part);
        self.r.out.close();
    }

    /// `len` iterations from `base` on, with registers of their own.
    fn block(&mut self, cut: &Cut, base: Value, len: Value) {
        let l = &cut.l;
        let wholes: Vec<Value> = cut.sums.iter().map(|sum| self.r.get(sum.alloc)).collect();
        for (sum, &whole) in cut.sums.iter().zip(&wholes) {
            let own = self.zero(self.r.src.ty(sum.alloc));
            self.r.set(sum.alloc, own);
            if sum.runs {
                self.running.insert(sum.value, (whole, sum.store));
            }
        }
        if self.r.out.as_constant(len).is_some_and(|n| n.to_i64() == 1) {
            self.r.set(l.open, base);
            self.region(l.body());
        } else {
            let iteration = self.r.open_loop(l.open, len);
            let counter = self.r.out.binary(BinaryOp::Add, base, iteration);
            self.r.set(l.open, counter);
            self.region(l.body());
            self.r.out.close();
        }
        for (sum, whole) in cut.sums.iter().zip(wholes) {
            self.add(sum, whole);
            self.r.set(sum.alloc, whole);
            self.running.remove(&sum.value);
            self.own.remove(&sum.store);
        }
    }

    /// Adds the sum of a block, and the error so far, to the whole; keeps the error of that.
    fn add(&mut self, sum: &Sum, whole: Value) {
        let (own, error) = (self.r.get(sum.alloc), self.errors[&sum.alloc]);
        let ty = self.r.src.ty(sum.alloc);
        let out = &mut self.r.out;
        let zero = out.index(0);
        let [x, own, lost] = [whole, own, error].map(|register| out.load(register, zero));
        let y = out.binary(BinaryOp::Add, own, lost);
        let total = out.binary(BinaryOp::Add, x, y);
        let added = out.binary(BinaryOp::Sub, total, x);
        let lost = out.binary(BinaryOp::Sub, y, added);
        // Of an infinite sum nothing is known; what follows adds to that alone.
        let nothing = out.binary(BinaryOp::Sub, lost, lost);
        let finite = out.binary(BinaryOp::Eq, nothing, nothing);
        let none = out.constant(Scalar::from_f64(ty.dtype, 0.0));
        let none = out.splat(none, ty.lanes);
        let lost = out.select(finite, lost, none);
        out.store(error, zero, lost);
        out.store(whole, zero, total);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::property_tests::{self, run};
    use crate::passes::{cse::cse, dce::dce, samples, unroll};

    fn floats(kernel: &Kernel, slot: usize, of: impl Fn(usize) -> f32) -> Vec<f32> {
        let mut buffers = property_tests::inputs(kernel, &mut property_tests::Rng(1));
        let input: Vec<u8> = (0..buffers[0].len() / 4).flat_map(|i| of(i).to_le_bytes()).collect();
        buffers[0] = input;
        let out = run(kernel, &buffers, &[]);
        out[slot].chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    }

    /// Equal numbers are always rounded the same way: 2^16 of them in a line lose 4e-4.
    #[test]
    fn the_error_of_a_sum_is_that_of_a_block() {
        let n = 1 << 16;
        let bound = (BLOCK / 2 + 2) as f64 * f64::from(f32::EPSILON) / 2.0;
        let error =
            |sum: f32, n: usize| (f64::from(sum) / (f64::from(0.1f32) * n as f64) - 1.0).abs();
        for kernel in [samples::sum_all(n), samples::sum_cols(DType::F32, n, 2)] {
            let cut = compensate(&kernel).expect("it is long");
            let of = |kernel| error(floats(kernel, 1, |_| 0.1)[0], n as usize);
            assert!(of(&kernel) > 10.0 * bound, "{}", of(&kernel));
            assert!(of(&cut) < bound, "{}\n{cut}", of(&cut));
        }
        let kernel = samples::scan(n);
        let cut = compensate(&kernel).expect("it is long");
        let running = floats(&cut, 1, |_| 0.1);
        let worst = running.iter().enumerate().map(|(i, &x)| error(x, i + 1)).fold(0.0, f64::max);
        assert!(worst < bound, "{worst}\n{cut}");
    }

    #[test]
    fn unrolled_loops_are_cut_too() {
        let n = (1 << 16) + 5;
        let bound = (BLOCK / 2 + 8) as f64 * f64::from(f32::EPSILON) / 2.0;
        for kernel in [samples::sum_all(n), samples::sum_cols(DType::F32, n, 2)] {
            let open = loops(&kernel).iter().rfind(|l| l.innermost).expect("it has a loop").open;
            for factor in [2, 4, 8] {
                let unrolled = (unroll::PASS.apply)(&kernel, &Site::new(open, &[factor]));
                let cut = compensate(&dce(&cse(&unrolled))).expect("it is long");
                let sum = f64::from(floats(&cut, 1, |_| 0.1)[0]);
                let error = (sum / (f64::from(0.1f32) * n as f64) - 1.0).abs();
                assert!(error < bound, "{error}\n{cut}");
            }
        }
    }

    #[test]
    fn infinities_and_nan_are_what_they_were() {
        let kernel = samples::sum_all(1000);
        let cut = compensate(&kernel).expect("it is long");
        let with = |a: f32, b: f32| {
            floats(&cut, 1, |i| match i {
                100 => a,
                700 => b,
                _ => 1.0,
            })[0]
        };
        assert_eq!(with(f32::INFINITY, 1.0), f32::INFINITY);
        assert_eq!(with(f32::INFINITY, f32::INFINITY), f32::INFINITY);
        assert_eq!(with(f32::MAX, f32::MAX), f32::INFINITY);
        assert_eq!(with(f32::MIN, -1e38), f32::NEG_INFINITY);
        assert!(with(f32::INFINITY, f32::NEG_INFINITY).is_nan());
        assert!(with(f32::NAN, 1.0).is_nan());
    }

    #[test]
    fn short_sums_and_cut_ones_stay() {
        assert!(compensate(&samples::sum_rows(DType::F32, 4, LONG)).is_none());
        assert!(compensate(&samples::sum_rows(DType::F64, 4, 1000)).is_none());
        let cut = compensate(&samples::sum_rows(DType::F32, 4, 1000)).expect("it is long");
        assert!(compensate(&cut).is_none(), "{cut}");
    }
}
