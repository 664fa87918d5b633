//! `merge`, `interchange` and `flatten`: reshaping two perfectly nested loops.
//!
//! `merge` makes one loop of two parallel loops, `flatten` of two serial ones, and `interchange`
//! swaps two parallel ones. All want a loop whose body is one loop of constant length and of the
//! same kind and pure ops before it.

use super::loops::{LoopInfo, find_loop, loops};
use super::rebuild::Rebuild;
use super::{Pass, Site};
use crate::caps::Caps;
use crate::ir::{Kernel, LoopKind, Op, Value};
use crate::ops::BinaryOp;

/// The row of `merge` in the pass table.
pub const MERGE: Pass = Pass {
    name: "merge",
    doc: "make one loop of two perfectly nested parallel loops",
    reassociates: false,
    sites,
    apply: merge,
};

/// The row of `interchange` in the pass table.
pub const INTERCHANGE: Pass = Pass {
    name: "interchange",
    doc: "swap two perfectly nested parallel loops",
    reassociates: false,
    sites,
    apply: interchange,
};

/// The row of `flatten` in the pass table.
pub const FLATTEN: Pass = Pass {
    name: "flatten",
    doc: "make one loop of two perfectly nested serial loops",
    reassociates: false,
    sites: |kernel, _| sites_of(kernel, LoopKind::Serial),
    apply: |kernel, site| merge_both(kernel, nest(kernel, site, LoopKind::Serial)),
};

fn sites(kernel: &Kernel, _: &Caps) -> Vec<Site> {
    sites_of(kernel, LoopKind::Parallel)
}

fn sites_of(kernel: &Kernel, kind: LoopKind) -> Vec<Site> {
    let list = loops(kernel);
    let outer = list.iter().filter(|l| inner_of_kind(kernel, l, &list, kind).is_some());
    outer.map(|l| Site::new(l.open, &[])).collect()
}

/// The parallel loop that `outer` holds and nothing else but pure ops before it.
pub fn inner_of(kernel: &Kernel, outer: &LoopInfo, list: &[LoopInfo]) -> Option<LoopInfo> {
    inner_of_kind(kernel, outer, list, LoopKind::Parallel)
}

/// The loop of a kind that a loop of the same kind holds and nothing else but pure ops before it.
pub fn inner_of_kind(
    kernel: &Kernel,
    outer: &LoopInfo,
    list: &[LoopInfo],
    kind: LoopKind,
) -> Option<LoopInfo> {
    let inner = list.iter().find(|l| l.open > outer.open)?;
    let perfect = outer.kind == Some(kind)
        && inner.kind == Some(kind)
        && inner.end + 1 == outer.end
        && outer.len.is_some()
        && inner.len.is_some();
    let before = outer.open.idx() + 1..inner.open.idx();
    (perfect && kernel.ops()[before].iter().all(Op::is_pure)).then_some(*inner)
}

/// A parallel loop at the top and the parallel loops perfectly nested in it, outermost first.
pub fn chain(kernel: &Kernel, root: Option<Value>) -> Option<Vec<LoopInfo>> {
    let root = find_loop(kernel, root).filter(|l| l.is_parallel() && l.depth == 0)?;
    let list = loops(kernel);
    let mut chain = vec![root];
    while let Some(inner) = inner_of(kernel, chain.last()?, &list) {
        chain.push(inner);
    }
    Some(chain)
}

/// Whether threads of a group wait for one another. If they do in several nests of a launch, they have to be as many
/// in each, which a pass that looks at one of them does not know.
pub fn meets(kernel: &Kernel) -> bool {
    kernel.ops().iter().any(Op::meets)
}

/// Sites of a pass for groups of threads: the nests that it finds at parallel loops at the top, with
/// each of its choices that fits them.
pub fn grouped<F, const N: usize>(
    kernel: &Kernel,
    caps: &Caps,
    choices: &[[i64; N]],
    find: impl Fn(&Kernel, Option<Value>) -> Option<F>,
    fits: impl Fn(&F, [i64; N]) -> bool,
) -> Vec<Site> {
    let mut list = Vec::new();
    if !caps.simt || meets(kernel) {
        return list;
    }
    for root in loops(kernel).iter().filter(|l| l.depth == 0 && l.is_parallel()) {
        let Some(found) = find(kernel, Some(root.open)) else { continue };
        let fitting = choices.iter().filter(|&&choice| fits(&found, choice));
        list.extend(fitting.map(|choice| Site::new(root.open, choice)));
    }
    list
}

type Pair = (LoopInfo, LoopInfo, i64, i64);

fn nest(kernel: &Kernel, site: &Site, kind: LoopKind) -> Option<Pair> {
    let outer = find_loop(kernel, site.value)?;
    let inner = inner_of_kind(kernel, &outer, &loops(kernel), kind)?;
    Some((outer, inner, outer.len?, inner.len?))
}

fn merge(kernel: &Kernel, site: &Site) -> Kernel {
    merge_both(kernel, nest(kernel, site, LoopKind::Parallel))
}

fn merge_both(kernel: &Kernel, pair: Option<Pair>) -> Kernel {
    let Some((outer, inner, n, m)) = pair else { return kernel.clone() };
    let (Some(len), Op::Loop { kind, axis, .. }) = (n.checked_mul(m), kernel.op(outer.open)) else {
        return kernel.clone();
    };
    let mut r = Rebuild::new(kernel);
    r.copy_range(0..outer.open.idx());
    // The product of lengths that fit 32 bits may not.
    let len = r.out.index(len);
    let both = r.out.open_loop(kind, axis, len);
    let width = r.out.index(m);
    let i = r.out.binary(BinaryOp::Div, both, width);
    let j = r.out.binary(BinaryOp::Rem, both, width);
    let i = r.out.cast(kernel.ty(outer.open).dtype, i);
    let j = r.out.cast(kernel.ty(inner.open).dtype, j);
    bodies(&mut r, (&outer, i), (&inner, j));
    r.out.close();
    r.finish_from(outer.end + 1)
}

fn interchange(kernel: &Kernel, site: &Site) -> Kernel {
    let Some((outer, inner, n, m)) = nest(kernel, site, LoopKind::Parallel) else {
        return kernel.clone();
    };
    let mut r = Rebuild::new(kernel);
    r.copy_range(0..outer.open.idx());
    let (n, m) = (r.number(outer.open, n), r.number(inner.open, m));
    let j = r.open_loop(inner.open, m);
    let i = r.open_loop(outer.open, n);
    bodies(&mut r, (&outer, i), (&inner, j));
    r.out.close();
    r.out.close();
    r.finish_from(outer.end + 1)
}

/// The ops of both loops for the counters given.
fn bodies(r: &mut Rebuild<'_>, (outer, i): (&LoopInfo, Value), (inner, j): (&LoopInfo, Value)) {
    r.set(outer.open, i);
    r.copy_range(outer.open.idx() + 1..inner.open.idx());
    r.set(inner.open, j);
    r.copy_range(inner.body());
}
