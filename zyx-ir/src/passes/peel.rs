//! `peel`: the first iteration of a serial loop on its own, in front of the others.
//!
//! What only the first iteration does (a running sum that takes what came before its block) is a
//! test in each. Apart, `simplify` decides the test for the first and for all others.

use super::loops::{LoopInfo, find_loop, loops};
use super::rebuild::Rebuild;
use super::{Pass, Site};
use crate::caps::Caps;
use crate::ir::{Kernel, LoopKind, Op, Value};
use crate::ops::BinaryOp;

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "peel",
    doc: "run the first iteration of a serial loop before the loop",
    reassociates: false,
    sites,
    apply,
};

fn sites(kernel: &Kernel, _: &Caps) -> Vec<Site> {
    let list = loops(kernel);
    list.iter().filter(|l| fits(l) && compares(kernel, l)).map(|l| Site::new(l.open, &[])).collect()
}

/// Whether there is a first iteration and another.
fn fits(l: &LoopInfo) -> bool {
    l.kind == Some(LoopKind::Serial) && l.len.is_some_and(|n| n > 1)
}

/// Whether a test in the loop depends on its counter; not whether an iteration is among the first few, which no single
/// iteration decides.
pub(crate) fn compares(kernel: &Kernel, l: &LoopInfo) -> bool {
    let mut depends = vec![false; l.end];
    depends[l.open.idx()] = true;
    let is_counter = |mut x: Value| {
        while let Op::Cast { x: inner } = kernel.op(x) {
            x = inner;
        }
        x == l.open
    };
    l.body().any(|i| {
        let op = kernel.op(Value(i as u32));
        // What memory holds is no function of the counter.
        depends[i] = op.is_pure() && op.operands().any(|v| depends[v.idx()]);
        let few = match op {
            Op::Binary { op: BinaryOp::Lt, x, y } if is_counter(x) && !depends[y.idx()] => {
                kernel.constant(y).is_none_or(|n| n.to_i64() > 1)
            }
            _ => false,
        };
        depends[i] && !few && matches!(op, Op::Binary { op, .. } if op.is_comparison())
    })
}

fn apply(kernel: &Kernel, site: &Site) -> Kernel {
    let Some(l) = find_loop(kernel, site.value).filter(fits) else { return kernel.clone() };
    let mut r = Rebuild::new(kernel);
    r.copy_range(0..l.open.idx());
    let first = r.number(l.open, 0);
    r.set(l.open, first);
    r.copy_range(l.body());
    let one = r.number(l.open, 1);
    let len = r.get(l.len_value);
    let rest = r.out.binary(BinaryOp::Sub, len, one);
    r.copy_part(l.open, l.body(), one, rest);
    r.finish_from(l.end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::{samples, simplify::simplify};

    #[test]
    fn a_test_for_the_first_iteration_leaves_the_loop() {
        let kernel = samples::resume(6, 11);
        let serial = |k: &Kernel| loops(k).into_iter().find(|l| l.kind == Some(LoopKind::Serial));
        let site = sites(&kernel, &Caps::default()).pop().expect("the serial loop is a site");
        let peeled = simplify(&apply(&kernel, &site));
        let l = serial(&peeled).expect("ten iterations are left");
        assert_eq!(l.len, Some(10));
        assert!(!compares(&peeled, &l), "{peeled}");
        assert!(compares(&kernel, &serial(&kernel).expect("there is one")));
        assert!(sites(&peeled, &Caps::default()).is_empty());
    }
}
