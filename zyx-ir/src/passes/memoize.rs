//! `memoize`: keeps an expensive value of a reduction instead of computing it twice.
//!
//! A softmax sums exponentials in one loop and divides each by the sum in the next. The first can
//! leave each exponential in storage and the second pick it up: one store and one load, both in
//! cache, for twenty operations. There are two places:
//!
//! * An array of registers, which a CPU has on its stack, where the loops are short. What the second
//!   loop stores then goes to memory once, past the caches if it is large.
//! * The output, where the second loop stores one element of a buffer per iteration. The buffer must
//!   be written by that store alone and never read, and hold the value's dtype exactly, so no bit
//!   changes. Old and new buffer contents never meet: every element is written before it is read, and
//!   written again before the kernel ends.

use super::loops::{LoopInfo, loops};
use super::rebuild::Rebuild;
use super::{Pass, Site};
use crate::caps::Caps;
use crate::dtype::DType;
use crate::ir::{Access, Kernel, LoopKind, Op, Order, Regions, Space, Type, Value};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "memoize",
    doc: "keep an expensive value of a reduction in the output for the loop after it",
    reassociates: false,
    sites,
    apply,
};

/// The most bytes of an array: it and a row of the input share the first cache.
const ARRAY_BYTES: i64 = 16 << 10;

/// Where values are kept, the parameter of a site.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Output = 0,
    Array = 1,
}

/// Weight from which a value is worth a store and a load.
const EXPENSIVE: f64 = 8.0;

/// A value computed in two loops.
struct Candidate {
    /// The loop that will store it, and the one that will load it.
    first: LoopInfo,
    second: LoopInfo,
    /// The value in either.
    computed: Value,
    again: Value,
    /// The store of the second loop.
    store: Value,
}

impl Candidate {
    fn site(&self, place: Place) -> Site {
        Site::new(self.again, &[i64::from(self.computed.0), place as i64])
    }

    /// Elements of an array for all values, if it is short enough.
    fn array_len(&self, kernel: &Kernel) -> Option<u32> {
        let len = self.first.len?;
        let bytes = len.checked_mul(kernel.ty(self.computed).dtype.size() as i64)?;
        (2..=ARRAY_BYTES).contains(&bytes).then_some(len as u32).filter(|&n| n > 1)
    }
}

/// The places for each value, on a CPU the array first.
fn sites(kernel: &Kernel, caps: &Caps) -> Vec<Site> {
    let mut list = Vec::new();
    for c in candidates(kernel) {
        if !caps.simt && c.array_len(kernel).is_some() {
            list.push(c.site(Place::Array));
        }
        list.push(c.site(Place::Output));
    }
    list
}

fn candidates(kernel: &Kernel) -> Vec<Candidate> {
    let list = loops(kernel);
    let mut found = Vec::new();
    for second in list.iter().filter(|l| l.kind == Some(LoopKind::Parallel) && l.innermost) {
        for first in list.iter().filter(|l| l.kind == Some(LoopKind::Serial) && l.innermost) {
            // Behind a break the second may be left out.
            let between = first.end..second.open.idx();
            let beside = first.parent == second.parent
                && !between.is_empty()
                && !kernel.ops()[between].iter().any(|op| matches!(op, Op::Break { .. }));
            if beside && first.len.is_some() && first.len == second.len {
                found.extend(candidate(kernel, *first, *second));
            }
        }
    }
    found
}

/// The most expensive value that both loops compute, if it is worth keeping.
fn candidate(kernel: &Kernel, first: LoopInfo, second: LoopInfo) -> Option<Candidate> {
    let store = output(kernel, &first, &second)?;
    let Op::Store { buf, .. } = kernel.op(store) else { return None };
    let ty = kernel.ty(buf);
    let regions = Regions::of(kernel);
    let same = correspondence(kernel, &first, &second);
    let mut best: Option<(f64, Candidate)> = None;
    for (&again, &computed) in &same {
        let direct = regions.parent(computed) == Some(first.open)
            && regions.parent(again) == Some(second.open);
        if kernel.ty(again) != ty || !kernel.op(again).is_pure() || !direct {
            continue;
        }
        let weight = weight_of(kernel, again, &second);
        let is_better = best.as_ref().is_none_or(|(w, c)| (*w, c.again) < (weight, again));
        if weight >= EXPENSIVE && is_better {
            best = Some((weight, Candidate { first, second, computed, again, store }));
        }
    }
    best.map(|b| b.1)
}

/// The store of the second loop whose buffer nothing else touches and whose index can be computed
/// in the first loop as well.
fn output(kernel: &Kernel, first: &LoopInfo, second: &LoopInfo) -> Option<Value> {
    let regions = Regions::of(kernel);
    let is_alone = |buf: Value| {
        let accesses = |op: &&Op| op.operands().next() == Some(buf) && !op.is_pure();
        kernel.ops().iter().filter(accesses).count() == 1
    };
    second.body().map(|i| Value(i as u32)).find(|&v| match kernel.op(v) {
        Op::Store { buf, index, order: Order::Plain, .. } => {
            matches!(kernel.op(buf), Op::Param { access: Access::Write, .. })
                && regions.parent(v) == Some(second.open)
                && kernel.ty(index) == Type::scalar(DType::I64)
                && depends_on(kernel, index, second.open)
                && is_movable(kernel, index, first, second)
                && is_alone(buf)
        }
        _ => false,
    })
}

fn depends_on(kernel: &Kernel, x: Value, counter: Value) -> bool {
    x == counter || x > counter && kernel.op(x).operands().any(|y| depends_on(kernel, y, counter))
}

/// Whether `x` follows from the counter and from what is known before the first loop, by pure ops
/// that hold for any counter.
fn is_movable(kernel: &Kernel, x: Value, first: &LoopInfo, second: &LoopInfo) -> bool {
    let op = kernel.op(x);
    x == second.open
        || x < first.open
        || op.is_pure()
            && !matches!(op, Op::Guard { .. })
            && op.operands().all(|y| is_movable(kernel, y, first, second))
}

/// For values of the second loop the value of the first that is the same at the same counter.
fn correspondence(kernel: &Kernel, first: &LoopInfo, second: &LoopInfo) -> BTreeMap<Value, Value> {
    let unchanged = |buf: Value| match kernel.op(buf) {
        Op::Param { access: Access::Read, .. } => true,
        Op::Alloc { space: Space::Register, .. } => !(first.open.idx()..second.end)
            .any(|i| matches!(kernel.op(Value(i as u32)), Op::Store { buf: b, .. } if b == buf)),
        _ => false,
    };
    let is_value = |op: Op| match op {
        Op::Load { buf, order: Order::Plain, .. } => unchanged(buf),
        op => op.is_pure(),
    };
    let values = |l: &LoopInfo| {
        l.body().map(|i| Value(i as u32)).filter(|&v| is_value(kernel.op(v))).collect::<Vec<_>>()
    };
    let known: FxHashMap<(Op, Type), Value> =
        values(first).into_iter().map(|v| ((kernel.op(v), kernel.ty(v)), v)).collect();
    let mut same = BTreeMap::new();
    same.insert(second.open, first.open);
    for v in values(second) {
        let op = kernel.op(v).map(|x| same.get(&x).copied().unwrap_or(x));
        if let Some(&twin) = known.get(&(op, kernel.ty(v))) {
            same.insert(v, twin);
        }
    }
    same
}

/// Weight of `x` and all it needs of its loop.
fn weight_of(kernel: &Kernel, x: Value, l: &LoopInfo) -> f64 {
    let mut needed = vec![x];
    let mut next = 0;
    while let Some(&v) = needed.get(next) {
        next += 1;
        for y in kernel.op(v).operands().filter(|&y| y > l.open) {
            if !needed.contains(&y) {
                needed.push(y);
            }
        }
    }
    let values = needed.iter().filter(|&&v| kernel.op(v).is_pure() && !kernel.ty(v).dtype.is_int());
    values.map(|&v| op_weight(kernel.op(v))).sum()
}

/// How many additions a pure op costs.
fn op_weight(op: Op) -> f64 {
    match op {
        Op::Unary { op, .. } => op.weight().into(),
        Op::Binary { op, .. } => op.weight().into(),
        _ => 1.0,
    }
}

fn apply(kernel: &Kernel, site: &Site) -> Kernel {
    let all = candidates(kernel);
    let of = |place| all.iter().find(|c| c.site(place) == *site);
    if let Some(c) = of(Place::Output) {
        return in_output(kernel, c);
    }
    match of(Place::Array).map(|c| (c, c.array_len(kernel))) {
        Some((c, Some(len))) => in_array(kernel, c, len),
        _ => kernel.clone(),
    }
}

/// Keeps the value in an array with an element for each iteration.
fn in_array(kernel: &Kernel, c: &Candidate, len: u32) -> Kernel {
    let mut r = Rebuild::new(kernel);
    let mut array = None;
    for v in kernel.iter().map(|(v, ..)| v) {
        if v == c.first.open {
            array = Some(r.out.alloc(Space::Register, kernel.ty(c.computed), len));
        }
        match array {
            Some(array) if v.idx() == c.first.end => {
                let (counter, value) = (r.get(c.first.open), r.get(c.computed));
                r.out.store(array, counter, value);
                r.copy(v);
            }
            Some(array) if v == c.again => {
                let counter = r.get(c.second.open);
                let kept = r.out.load(array, counter);
                r.set(v, kept);
            }
            _ => {
                r.copy(v);
            }
        }
    }
    r.out.finish()
}

/// Keeps the value in the output.
fn in_output(kernel: &Kernel, c: &Candidate) -> Kernel {
    let Op::Store { buf, index, .. } = kernel.op(c.store) else { return kernel.clone() };
    let mut r = Rebuild::new(kernel);
    for (v, op, ty) in kernel.iter() {
        if let (true, Op::Param { slot, .. }) = (v == buf, op) {
            let new = r.out.redeclare_param(slot, Access::ReadWrite, ty);
            r.set(v, new);
        } else if v.idx() == c.first.end {
            let place = copy_index(&mut r, index, c, c.first.open);
            let (storage, value) = (r.get(buf), r.get(c.computed));
            r.out.store(storage, place, value);
            r.copy(v);
        } else if v == c.again {
            let place = copy_index(&mut r, index, c, c.second.open);
            let storage = r.get(buf);
            let kept = r.out.load(storage, place);
            r.set(v, kept);
        } else {
            r.copy(v);
        }
    }
    r.out.finish()
}

/// The index `x` of the second loop for the counter of either loop.
fn copy_index(r: &mut Rebuild<'_>, x: Value, c: &Candidate, counter: Value) -> Value {
    if x == c.second.open {
        return r.get(counter);
    }
    if x < c.first.open {
        return r.get(x);
    }
    let operands: Vec<(Value, Value)> = r
        .src
        .op(x)
        .operands()
        .collect::<Vec<_>>()
        .into_iter()
        .map(|y| (y, copy_index(r, y, c, counter)))
        .collect();
    let new = |y: Value| operands.iter().find(|o| o.0 == y).map_or(y, |o| o.1);
    let op = r.src.op(x).map(new);
    let ty = r.src.ty(x);
    r.out.emit(op, ty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::UnaryOp;
    use crate::passes::{cse, dce, samples};

    #[test]
    fn softmax_computes_its_exponentials_once() {
        let kernel = samples::softmax(4, 32);
        let caps = Caps::default();
        let sites = (PASS.sites)(&kernel, &caps);
        assert_eq!(sites.len(), 2);
        let count = |k: &Kernel| {
            let is_exp = |op: &&Op| matches!(op, Op::Unary { op: UnaryOp::Exp, .. });
            k.ops().iter().filter(is_exp).count()
        };
        for (site, reads) in sites.iter().zip([false, true]) {
            let staged = dce::dce(&cse::cse(&apply(&kernel, site)));
            assert_eq!((count(&kernel), count(&staged)), (2, 1));
            assert!((PASS.sites)(&staged, &caps).is_empty());
            let is_read = staged.params().iter().any(|p| p.access == Access::ReadWrite);
            assert_eq!(is_read, reads, "{staged}");
        }
        let gpu = Caps { simt: true, ..caps };
        assert_eq!((PASS.sites)(&kernel, &gpu), sites[1..], "no GPU has an array on a stack");
    }

    #[test]
    fn nothing_is_kept_for_a_loop_behind_a_break() {
        let softmax = samples::softmax(4, 32);
        let third = loops(&softmax)[3].open;
        let rows = |breaks| {
            let mut r = Rebuild::new(&softmax);
            for (v, op, ty) in softmax.iter() {
                if v == third && breaks {
                    let end = r.out.constant(crate::Scalar::from(true));
                    r.out.break_if(end);
                }
                let op = match op {
                    Op::Loop { len, .. } if v == loops(&softmax)[0].open => {
                        Op::Loop { kind: LoopKind::Serial, axis: 0, len: r.get(len) }
                    }
                    _ => r.mapped(v),
                };
                let new = r.out.emit(op, ty);
                r.set(v, new);
            }
            (PASS.sites)(&r.out.finish(), &Caps::default()).len()
        };
        assert_eq!([rows(false), rows(true)], [2, 0]);
    }

    #[test]
    fn an_array_of_exponentials_is_walked_along_by_vectors() {
        let caps = Caps { vector_bytes: 64, masked: true, ..Caps::default() };
        let tuned = crate::tune::optimize(&samples::softmax(4, 64), &caps);
        let array =
            tuned.iter().find(|(_, op, _)| matches!(op, Op::Alloc { len: 64, .. })).unwrap().0;
        let accesses: Vec<_> = tuned
            .iter()
            .filter(|(_, op, _)| op.operands().next() == Some(array))
            .map(|(_, op, ty)| if let Op::Store { value, .. } = op { tuned.ty(value) } else { ty })
            .collect();
        assert!(accesses.len() > 1 && accesses.iter().all(|ty| ty.is_vector()), "{tuned}");
    }

    #[test]
    fn cheap_values_are_not_kept() {
        let kernel = samples::sum_rows(DType::F32, 4, 32);
        assert!(candidates(&kernel).is_empty());
    }
}
