//! Merging neighbouring loops that every access treats as one.
//!
//! Two neighbouring counters `a` (outer) and `b` (inner) are one if in every index expression
//! `a`'s coefficient is `b`'s times the extent of `b`: then `a * extent + b` is what is used. The
//! outer one is absorbed: it opens no loop, its terms are dropped, and the inner one runs over
//! both.

use super::loop_body::LoopBody;
use super::pull::Indices;
use crate::affine::{Atom, AtomId, Index};
use rustc_hash::{FxHashMap, FxHashSet};

/// Which counters were absorbed and how far the others run.
#[derive(Debug, Default)]
pub(super) struct Merged {
    absorbed: FxHashSet<AtomId>,
    extents: FxHashMap<AtomId, usize>,
}

impl Merged {
    /// Merges within the axes of a body and within the loops of each reduction.
    pub(super) fn find(indices: &Indices, body: &LoopBody) -> Merged {
        let (accesses, breaks) = (body.accesses(indices), body.breaks());
        let nonlinear = nonlinear(indices, &accesses);
        let apart = |axis| breaks.contains(&axis) || nonlinear.contains(&axis);
        let mut merged = Merged::default();
        let loops = body.reductions.iter().map(|reduction| &reduction.own);
        for axes in std::iter::once(&body.axes).chain(loops) {
            let Some((&last, outer)) = axes.split_last() else { continue };
            let (mut carrier, mut extent) = (last, indices.extent(last));
            for &axis in outer.iter().rev() {
                let own = indices.extent(axis);
                let one = !apart(axis)
                    && !nonlinear.contains(&carrier)
                    && accesses.iter().all(|access| {
                        access.coefficient(axis) == access.coefficient(carrier) * extent as i64
                    });
                if one {
                    merged.absorbed.insert(axis);
                    extent *= own;
                    merged.extents.insert(carrier, extent);
                } else {
                    (carrier, extent) = (axis, own);
                }
            }
        }
        merged
    }

    /// Whether a counter was merged into an inner one.
    pub(super) fn is_absorbed(&self, axis: AtomId) -> bool {
        self.absorbed.contains(&axis)
    }

    /// How far a counter with extent `own` runs; `None` if it was absorbed.
    pub(super) fn extent(&self, axis: AtomId, own: usize) -> Option<usize> {
        if self.is_absorbed(axis) {
            return None;
        }
        Some(self.extents.get(&axis).copied().unwrap_or(own))
    }
}

/// Counters that occur inside a quotient or remainder.
fn nonlinear(indices: &Indices, accesses: &[Index]) -> FxHashSet<AtomId> {
    let mut set = FxHashSet::default();
    for &(atom, _) in accesses.iter().flat_map(|access| &access.terms) {
        if let Atom::Div(x, _) | Atom::Mod(x, _) = indices.algebra.atom(atom) {
            indices.algebra.visit_axes(x, &mut |axis| {
                set.insert(axis);
            });
        }
    }
    set
}
