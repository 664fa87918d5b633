//! `unselect`: no selection of what guards choose already.
//!
//! A load gives 0 where a guard excludes it, so a selection between such a load and 0 by the same condition is the load
//! itself; and a selection within another by the same condition is its own first choice. What is selected after a load
//! needs its condition until the load arrives, and devices have few registers for conditions: threads would wait for
//! one load before they begin with the next.
//!
//! Passes that look for what a nest computes read selections, so this comes after them.

use super::rebuild::Rebuild;
use super::{Pass, Site};
use crate::ir::{Kernel, Op, Value};
use crate::ops::{BinaryOp, TernaryOp};

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "unselect",
    doc: "drop selections of 0 where a guard gives 0",
    reassociates: false,
    sites: |_, _| vec![Site::whole()],
    apply: |kernel, _| unselect(kernel),
};

/// Applies the pass.
pub fn unselect(kernel: &Kernel) -> Kernel {
    let mut r = Rebuild::new(kernel);
    for i in 0..kernel.ops().len() {
        let v = Value(i as u32);
        let Op::Ternary { op: TernaryOp::Where, x: cond, y, z } = r.mapped(v) else {
            r.copy(v);
            continue;
        };
        let is_zero = r.out.as_constant(z).is_some_and(|z| z.bits() == 0);
        let new = match r.out.op(y) {
            Op::Load { .. } if is_zero && excludes(r.out.kernel(), y, cond) => y,
            Op::Ternary { op: TernaryOp::Where, x, y, .. } if x == cond => r.out.select(cond, y, z),
            _ => {
                r.copy(v);
                continue;
            }
        };
        r.set(v, new);
    }
    r.out.finish()
}

/// Whether a load is excluded wherever a condition does not hold.
fn excludes(kernel: &Kernel, load: Value, cond: Value) -> bool {
    fn contains(kernel: &Kernel, all: Value, cond: Value) -> bool {
        match kernel.op(all) {
            _ if all == cond => true,
            Op::Binary { op: BinaryOp::And, x, y } => {
                contains(kernel, x, cond) || contains(kernel, y, cond)
            }
            _ => false,
        }
    }
    let Op::Load { index, .. } = kernel.op(load) else { return false };
    let (_, conds) = kernel.unguarded(index);
    conds.into_iter().any(|all| contains(kernel, all, cond))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::ir::{Access, Builder, LoopKind};
    use crate::scalar::Scalar;

    fn selects(kernel: &Kernel) -> usize {
        let is = |op: &Op| matches!(op, Op::Ternary { op: TernaryOp::Where, .. });
        kernel.ops().iter().filter(|op| is(op)).count()
    }

    /// An element or `otherwise`, behind two conditions of which the load has one alone or both.
    fn guarded(otherwise: f32, has_both: bool) -> Kernel {
        let mut b = Builder::new("guarded");
        let [x, y] = [Access::Read, Access::Write].map(|access| b.param(DType::F32, 8, access));
        let [n, few, many] = [8, 5, 6].map(|n| b.index(n));
        let i = b.open_loop(LoopKind::Parallel, 0, n);
        let [is_few, is_many] = [few, many].map(|n| b.binary(BinaryOp::Lt, i, n));
        let both = b.binary(BinaryOp::And, is_many, is_few);
        let at = b.guard(i, if has_both { both } else { is_many });
        let loaded = b.load(x, at);
        let otherwise = b.constant(Scalar::from(otherwise));
        let once = b.select(is_few, loaded, otherwise);
        let twice = b.select(is_few, once, otherwise);
        b.store(y, i, twice);
        b.close();
        b.finish()
    }

    #[test]
    fn what_a_guard_makes_zero_is_not_selected_again() {
        for (otherwise, has_both, left) in
            [(0.0, true, 0), (0.0, false, 1), (-0.0, true, 1), (1.0, true, 1)]
        {
            let kernel = unselect(&super::super::cse::cse(&guarded(otherwise, has_both)));
            let kernel = super::super::dce::dce(&kernel);
            assert_eq!(selects(&kernel), left, "{otherwise:?} {has_both}\n{kernel}");
        }
    }
}
