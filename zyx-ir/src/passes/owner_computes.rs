//! `owner_computes`: the updates of a scatter shared among threads by where they go.
//!
//! A scatter makes its updates in order: a serial loop that reads a *key*, and loads and stores an
//! element at a place that the key decides. Where few threads run such loops, because a table has
//! few columns, each is repeated in several parts. A part reads all keys, skips those that another
//! part has claimed (their remainder by the number of parts tells), and makes the updates that are
//! left in the order they had. So every element sees the same updates in the same order as before,
//! and no two parts touch the same one.
//!
//! Keys are read several at a time, in front of the updates, so that the loads are under way
//! together.

use super::facts::Facts;
use super::loops::{LoopInfo, find_loop, loops};
use super::rebuild::Rebuild;
use super::variance::{Form, Variance};
use super::{Pass, Site};
use crate::caps::Caps;
use crate::ir::{Kernel, LoopKind, Op, Value};
use crate::ops::BinaryOp;

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "owner_computes",
    doc: "share the updates of a scatter among threads by the elements they go to",
    reassociates: false,
    sites,
    apply,
};

/// Most parts, so that their numbers fit every integer, and most keys read at once.
pub const MAX_PARTS: i64 = 64;
const MAX_KEYS: i64 = 16;
/// Parts and keys at once that are offered.
const CHOICES: [[i64; 2]; 3] = [[2, 1], [4, 3], [64, 8]];

fn sites(kernel: &Kernel, _: &Caps) -> Vec<Site> {
    let serial = loops(kernel).into_iter().filter(|l| l.kind == Some(LoopKind::Serial));
    let found = serial.filter_map(|l| Found::of(kernel, Some(l.open)));
    found.flat_map(|f| CHOICES.map(|choice| Site::new(f.updates.open, &choice))).collect()
}

/// Updates that go where a key says.
#[derive(Debug)]
pub struct Found {
    /// The outermost of the parallel loops around.
    pub root: LoopInfo,
    /// The serial loop over updates, and its length.
    pub updates: LoopInfo,
    /// Number of updates.
    pub len: i64,
    /// Number of iterations of all loops around.
    pub rows: i64,
    /// What decides where an update goes, for the same iteration of all loops around.
    pub key: Value,
    /// Keys below zero or from here on update nothing.
    pub extent: i64,
    /// The innermost loop around.
    inner: LoopInfo,
    /// Positions of the ops that compute the key.
    slice: Vec<usize>,
}

impl Found {
    /// The updates of a serial loop; `None` if it is something else.
    pub fn of(kernel: &Kernel, value: Option<Value>) -> Option<Found> {
        let updates = find_loop(kernel, value)?;
        let len = updates.len.filter(|&n| n > 0)?;
        if updates.kind != Some(LoopKind::Serial) || !updates.innermost {
            return None;
        }
        let list = loops(kernel);
        let mut around = Vec::new();
        let mut parent = updates.parent;
        while let Some(p) = parent {
            around.push(list[p]);
            parent = list[p].parent;
        }
        let rows = around.iter().try_fold(1i64, |n, l| n.checked_mul(l.len?))?;
        let (inner, root) = (*around.first()?, *around.last()?);
        if around.len() != updates.depth || !around.iter().all(LoopInfo::is_parallel) {
            return None;
        }
        // What is beside the updates would be done again by every part.
        let outside = (root.open.idx()..updates.open.idx()).chain(updates.end + 1..root.end);
        let repeats = |op: Op| {
            let is_loop = matches!(op, Op::Loop { .. } | Op::End { .. });
            op.is_pure() || is_loop || matches!(op, Op::Load { .. })
        };
        let single =
            loops(kernel).iter().filter(|l| l.open > root.open && l.end < root.end).count();
        if single != around.len() || !outside.map(|i| kernel.ops()[i]).all(repeats) {
            return None;
        }
        let (slot, place) = target(kernel, &updates)?;
        let Op::Guard { index, cond } = kernel.op(place) else { return None };
        let depends = depends(kernel, &updates);
        let (key, factor) = key(kernel, &depends, index)?;
        if key == updates.open {
            return None;
        }
        let extent = extent(kernel, cond, key)?;
        // Different keys are different places as long as nothing wraps.
        let bits = kernel.ty(index).dtype.bits().min(kernel.ty(key).dtype.bits());
        let room = i64::MAX >> (64 - bits);
        factor.checked_mul(extent).filter(|&n| n <= room)?;
        let slice = slice(kernel, &updates, &depends, key);
        let reads = |i: &usize| match kernel.ops()[*i] {
            Op::Load { buf, .. } => {
                matches!(kernel.op(buf), Op::Param { slot: s, .. } if s != slot)
            }
            op => op.is_pure(),
        };
        let found = Found { root, updates, len, rows, key, extent, inner, slice };
        found.slice.iter().all(reads).then_some(found)
    }

    /// Whether neighbouring threads read the same keys.
    pub fn is_uniform(&self, kernel: &Kernel) -> bool {
        let variance = Variance::of(kernel, &self.inner);
        variance.is_some_and(|variance| variance.form(self.key) == Form::Uniform)
    }
}

/// The buffer that a loop updates, and the one place in it that an iteration loads and stores.
fn target(k: &Kernel, l: &LoopInfo) -> Option<(u16, Value)> {
    let slot_of = |buf| match k.op(buf) {
        Op::Param { slot, .. } => Some(slot),
        _ => None,
    };
    let ops = || l.body().map(|i| k.ops()[i]);
    let mut stores = ops().filter_map(|op| match op {
        Op::Store { buf, index, .. } => Some((buf, index)),
        _ => None,
    });
    let (Some((buf, place)), None) = (stores.next(), stores.next()) else { return None };
    let slot = slot_of(buf)?;
    let fits = |op| match op {
        Op::Load { buf, index, .. } => slot_of(buf).is_some_and(|s| s != slot || index == place),
        Op::Store { .. } => true,
        op => op.is_pure(),
    };
    ops().all(fits).then_some((slot, place))
}

/// For each op up to the end of a loop whether it differs from iteration to iteration.
fn depends(k: &Kernel, l: &LoopInfo) -> Vec<bool> {
    let mut depends = vec![false; l.end];
    depends[l.open.idx()] = true;
    for i in l.body() {
        let op = k.ops()[i];
        depends[i] = matches!(op, Op::Load { .. }) || op.operands().any(|v| depends[v.idx()]);
    }
    depends
}

/// The one value that an index grows with, and how fast.
fn key(k: &Kernel, depends: &[bool], index: Value) -> Option<(Value, i64)> {
    let facts = Facts::of(k);
    let linear = facts.linear(index);
    let mut varying = linear.terms.iter().filter(|term| depends[term.0.idx()]);
    let (Some(&(v, factor)), None) = (varying.next(), varying.next()) else { return None };
    let ty = k.ty(v);
    (factor > 0 && ty.dtype.is_int() && !ty.is_vector()).then_some((v, factor))
}

/// The number below which a condition holds for non-negative keys alone.
fn extent(k: &Kernel, cond: Value, key: Value) -> Option<i64> {
    let (mut above, mut below) = (false, None);
    let mut stack = vec![cond];
    while let Some(v) = stack.pop() {
        match k.op(v) {
            Op::Binary { op: BinaryOp::And, x, y } => stack.extend([x, y]),
            Op::Binary { op: BinaryOp::Le, x, y } if y == key => {
                above |= k.constant(x).is_some_and(|c| c.to_i64() >= 0);
            }
            Op::Binary { op: BinaryOp::Lt, x, y } if x == key => {
                below = k.constant(y).map(|c| c.to_i64()).filter(|&n| n > 0);
            }
            _ => {}
        }
    }
    below.filter(|_| above)
}

/// The ops of the body that the key is computed by.
fn slice(k: &Kernel, l: &LoopInfo, depends: &[bool], key: Value) -> Vec<usize> {
    let mut needed = vec![false; l.end];
    needed[key.idx()] = depends[key.idx()];
    for i in l.body().rev().filter(|&i| i <= key.idx()) {
        if needed[i] {
            k.ops()[i].operands().for_each(|v| needed[v.idx()] = true);
        }
    }
    l.body().filter(|&i| needed[i]).collect()
}

fn apply(kernel: &Kernel, site: &Site) -> Kernel {
    let (Some(found), &[parts, keys]) = (Found::of(kernel, site.value), &site.params[..]) else {
        return kernel.clone();
    };
    let is_power = parts > 1 && parts & (parts - 1) == 0 && parts <= MAX_PARTS;
    if !is_power || !(1..=MAX_KEYS).contains(&keys) {
        return kernel.clone();
    }
    let (root, l) = (found.root, found.updates);
    let mut r = Rebuild::new(kernel);
    r.copy_range(0..root.open.idx());
    let count = r.out.index(parts);
    let part = r.out.open_loop(LoopKind::Parallel, 0, count);
    r.copy_range(root.open.idx()..l.open.idx());
    let part = r.out.cast(kernel.ty(found.key).dtype, part);
    let whole = found.len / keys;
    if whole > 0 {
        let (len, step) = (r.number(l.open, whole), r.number(l.open, keys));
        let block = r.open_loop(l.open, len);
        let first = r.out.binary(BinaryOp::Mul, block, step);
        let counters: Vec<Value> = (0..keys)
            .map(|i| {
                let i = r.number(l.open, i);
                r.out.binary(BinaryOp::Add, first, i)
            })
            .collect();
        updates(&mut r, &found, (part, parts), &counters);
        r.out.close();
    }
    let counters: Vec<Value> = (whole * keys..found.len).map(|i| r.number(l.open, i)).collect();
    updates(&mut r, &found, (part, parts), &counters);
    r.copy_range(l.end + 1..root.end + 1);
    r.out.close();
    r.finish_from(root.end + 1)
}

/// Reads the keys of these updates and makes those that this part claims.
fn updates(r: &mut Rebuild<'_>, found: &Found, (part, parts): (Value, i64), counters: &[Value]) {
    let l = found.updates;
    let known: Vec<Vec<Value>> = counters
        .iter()
        .map(|&counter| {
            r.set(l.open, counter);
            found.slice.iter().map(|&i| r.copy(Value(i as u32))).collect()
        })
        .collect();
    let last = r.number(found.key, parts - 1);
    let key = found.slice.iter().position(|&i| i == found.key.idx());
    let key = key.expect("invariant: the ops that compute the key end with it");
    let mine: Vec<Value> = known
        .iter()
        .map(|known| {
            let owner = r.out.binary(BinaryOp::And, known[key], last);
            r.out.binary(BinaryOp::Eq, owner, part)
        })
        .collect();
    // Mostly none is, which one test tells.
    let any = mine.iter().copied().reduce(|x, y| r.out.binary(BinaryOp::Or, x, y));
    let Some(any) = any else { return };
    r.out.open_if(any);
    for ((&counter, known), mine) in counters.iter().zip(known).zip(mine) {
        r.set(l.open, counter);
        let slice = found.slice.iter().map(|&i| Value(i as u32));
        slice.zip(known).for_each(|(old, new)| r.set(old, new));
        r.out.open_if(mine);
        for i in l.body().filter(|i| !found.slice.contains(i)) {
            r.copy(Value(i as u32));
        }
        r.out.close();
    }
    r.out.close();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::property_tests::{Rng, compare, inputs, run};
    use crate::passes::samples;

    /// The only serial loop of a kernel.
    fn serial(kernel: &Kernel) -> Option<Value> {
        loops(kernel).iter().find(|l| l.kind == Some(LoopKind::Serial)).map(|l| l.open)
    }

    #[test]
    fn parts_make_the_updates_that_one_made() {
        let kernel = samples::scatter(21, 6, 5);
        let found = Found::of(&kernel, serial(&kernel)).expect("a scatter");
        assert_eq!((found.len, found.rows, found.extent), (21, 5, 6));
        assert!(found.is_uniform(&kernel));
        for seed in 0..20 {
            // Keys below zero and beyond the table are among these.
            let input = inputs(&kernel, &mut Rng(seed));
            let expected = run(&kernel, &input, &[]);
            for (parts, keys) in [(2, 1), (8, 4), (64, 8), (4, 16)] {
                let after = apply(&kernel, &Site::new(found.updates.open, &[parts, keys]));
                assert_eq!(loops(&after)[0].len, Some(parts));
                compare(&kernel, (&expected, &run(&after, &input, &[])), None).unwrap();
            }
        }
    }

    /// Parts would wrap to the same place, see what others store, or make other stores twice.
    #[test]
    fn what_is_no_scatter_stays() {
        let text = samples::scatter(21, 6, 5).to_string();
        let is_scatter = |text: &str| {
            let kernel: Kernel = text.parse().unwrap();
            Found::of(&kernel, serial(&kernel)).is_some()
        };
        assert!(is_scatter(&text));
        let unbounded = text.replace(" lt ", " ne ");
        let rewritten = text.replace("param 0 read ", "param 0 readwrite ");
        assert!(!is_scatter(&unbounded) && is_scatter(&rewritten), "{unbounded}\n{rewritten}");
        for kernel in [samples::scan(40), samples::sum_cols(crate::DType::F32, 7, 35)] {
            assert!(sites(&kernel, &Caps::default()).is_empty(), "{kernel}");
        }
    }
}
