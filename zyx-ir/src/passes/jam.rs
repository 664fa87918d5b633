//! `jam`: several iterations of an outer parallel loop at once, sharing its inner loops.
//!
//! Unroll-and-jam, or register tiling: each op of the body that depends on the counter is
//! repeated for consecutive counters, each other op and each inner loop stays single. Loads that
//! do not depend on the counter are made once for all, and several accumulators are in flight.

use super::loops::{LoopInfo, find_loop, loops};
use super::rebuild::Rebuild;
use super::unroll::{Blocks, close_rest, open_blocks};
use super::variance::{Form, Variance};
use super::{Pass, Site};
use crate::caps::Caps;
use crate::ir::{Kernel, Op, Value};
use rustc_hash::FxHashMap;

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "jam",
    doc: "run iterations of an outer parallel loop at once, sharing its inner loops",
    reassociates: false,
    sites,
    apply,
};

/// Factors offered.
const FACTORS: [i64; 3] = [2, 4, 8];

fn sites(kernel: &Kernel, _: &Caps) -> Vec<Site> {
    let mut list = Vec::new();
    for l in loops(kernel).iter().filter(|l| !l.innermost && l.is_parallel()) {
        if Variance::with_vectors(kernel, l).is_some() {
            let fitting = FACTORS.iter().filter(|&&f| l.len.is_none_or(|n| n >= f));
            list.extend(fitting.map(|&f| Site::new(l.open, &[f])));
        }
    }
    list
}

fn apply(kernel: &Kernel, site: &Site) -> Kernel {
    let (Some(l), &[factor]) = (find_loop(kernel, site.value), &site.params[..]) else {
        return kernel.clone();
    };
    if !l.is_parallel() || !(2..=64).contains(&factor) {
        return kernel.clone();
    }
    let Some(variance) = Variance::with_vectors(kernel, &l) else { return kernel.clone() };
    let mut r = Rebuild::new(kernel);
    r.copy_range(0..l.open.idx());
    let blocks = Blocks::of(&mut r, &l, factor);
    open_blocks(&mut r, &l, blocks.count, [factor, 1], |r, counters| {
        body(r, &l, &variance, counters)
    });
    close_rest(&mut r, &l, blocks);
    r.finish_from(l.end + 1)
}

fn body(r: &mut Rebuild<'_>, l: &LoopInfo, variance: &Variance, counters: &[Value]) {
    let mut copies: FxHashMap<Value, Vec<Value>> = FxHashMap::default();
    copies.insert(l.open, counters.to_vec());
    for i in l.body() {
        let v = Value(i as u32);
        let (op, ty) = (r.src.op(v), r.src.ty(v));
        let copy = |r: &mut Rebuild<'_>, c: usize| {
            let mapped = op.map(|x| copies.get(&x).map_or_else(|| r.get(x), |list| list[c]));
            r.out.emit(mapped, ty)
        };
        if repeats(variance, &copies, v, op) {
            let list = (0..counters.len()).map(|c| copy(r, c)).collect();
            copies.insert(v, list);
        } else {
            // A sum from which the counter cancels is equal for all: that of the first will do.
            let new = copy(r, 0);
            r.set(v, new);
        }
    }
}

/// Whether an op is needed once for each counter.
fn repeats(variance: &Variance, copies: &FxHashMap<Value, Vec<Value>>, v: Value, op: Op) -> bool {
    match op {
        Op::Alloc { .. } => variance.widened.contains(&v),
        Op::Store { .. } | Op::Guard { .. } => op.operands().any(|x| copies.contains_key(&x)),
        Op::Loop { .. } | Op::If { .. } | Op::End { .. } => false,
        _ => variance.form(v) != Form::Uniform,
    }
}
