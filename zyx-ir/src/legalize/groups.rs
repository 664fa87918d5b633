//! Loops over more groups than an axis of the device holds.
//!
//! WebGPU promises 65,535 groups along an axis, and many devices have no more. A longer loop over
//! groups becomes two, along two axes, whose counters make up its own. Where no number of rows
//! divides the groups, the last row is not whole, and what its surplus groups would do stands under a
//! condition. That is done where the threads of a group wait for one another: a loop that is left as
//! it was is still right, since emitters let each group take several iterations, and where groups
//! share nothing that is even faster.

use crate::caps::Caps;
use crate::ir::{Kernel, LoopKind, Op, Space, Value};
use crate::ops::BinaryOp;
use crate::passes::loops::{LoopInfo, loops};
use crate::passes::rebuild::Rebuild;

/// Rows and groups of a row for a loop over `n` groups: a number of rows that divides them if there
/// is one not far from the fewest.
fn rows(n: u64, caps: &Caps) -> Option<(u64, u64)> {
    let fewest = n.div_ceil(caps.max_groups[0]);
    let most = caps.max_groups[1].min(fewest.saturating_mul(8));
    let even = (fewest..=most).find(|&rows| n.is_multiple_of(rows));
    let rows = even.unwrap_or(fewest);
    (rows <= caps.max_groups[1]).then_some((rows, n.div_ceil(rows)))
}

/// The kernel with such loops along two axes; `None` if it has none.
pub(super) fn spread(kernel: &Kernel, caps: &Caps) -> Option<Kernel> {
    let mut spread: Option<Kernel> = None;
    // A loop that was spread is short afterwards.
    loop {
        let current = spread.as_ref().unwrap_or(kernel);
        let all = loops(current);
        let next = all.iter().find_map(|l| {
            let n = l.len? as u64;
            let row = matches!(current.op(l.open), Op::Loop { kind: LoopKind::Group, axis: 0, .. });
            if !row || l.depth > 0 || n <= caps.max_groups[0] {
                return None;
            }
            let waits = |i: usize| matches!(current.ops()[i], Op::Barrier { .. });
            let shape = rows(n, caps).filter(|_| l.body().any(waits))?;
            let inner = innermost(current, &all, l)?;
            let whole = shape.0 * shape.1 == n;
            (whole || may_branch(current, &inner, caps))
                .then(|| on_two_axes(current, l, &inner, shape))
        });
        match next {
            Some(next) => spread = Some(next),
            None => return spread,
        }
    }
}

/// The innermost of a chain of loops over groups and threads that starts with `l`; `None` if it is
/// no chain, or the second axis is taken.
fn innermost(kernel: &Kernel, all: &[LoopInfo], l: &LoopInfo) -> Option<LoopInfo> {
    let is_bound = |x: &&LoopInfo| matches!(x.kind, Some(LoopKind::Group | LoopKind::Local));
    let inside = all.iter().filter(|x| l.body().contains(&x.open.idx())).filter(is_bound);
    let mut last = *l;
    for x in inside {
        let taken = matches!(kernel.op(x.open), Op::Loop { kind: LoopKind::Group, axis: 1, .. });
        if taken || x.parent.map(|p| all[p].open) != Some(last.open) {
            return None;
        }
        last = *x;
    }
    Some(last)
}

/// Whether a loop's body may stand under a condition of the group.
fn may_branch(kernel: &Kernel, l: &LoopInfo, caps: &Caps) -> bool {
    l.body().all(|i| match kernel.ops()[i] {
        op if op.meets() => caps.branched_barriers,
        Op::Alloc { space, .. } => space != Space::Shared,
        _ => true,
    })
}

fn on_two_axes(
    kernel: &Kernel,
    l: &LoopInfo,
    inner: &LoopInfo,
    (rows, width): (u64, u64),
) -> Kernel {
    let n = l.len.unwrap_or(0);
    let mut r = Rebuild::new(kernel);
    r.copy_range(0..l.open.idx());
    // Launch geometry is read off the top level.
    let [rows_v, width_v, n_v, last] =
        [rows as i64, width as i64, n, n - 1].map(|x| r.number(l.open, x));
    let ty = kernel.ty(l.open);
    let row = r.out.push(Op::Loop { kind: LoopKind::Group, axis: 1, len: rows_v }, ty);
    let column = r.out.push(Op::Loop { kind: LoopKind::Group, axis: 0, len: width_v }, ty);
    let first = r.out.binary(BinaryOp::Mul, row, width_v);
    let number = r.out.binary(BinaryOp::Add, first, column);
    let whole = (rows * width) as i64 == n;
    // What ranges are proven from: the condition says so already.
    let own = if whole { number } else { r.out.binary(BinaryOp::Min, number, last) };
    r.set(l.open, own);
    r.copy_range(l.open.idx() + 1..inner.open.idx());
    if inner.open != l.open {
        r.copy(inner.open);
    }
    if !whole {
        let exists = r.out.binary(BinaryOp::Lt, number, n_v);
        r.out.open_if(exists);
    }
    r.copy_range(inner.body());
    if !whole {
        r.out.close();
    }
    // The rest of the chain, then the row.
    for i in inner.end..l.end {
        match kernel.ops()[i] {
            Op::End { .. } => r.out.close(),
            _ => {
                r.copy(Value(i as u32));
            }
        }
    }
    r.out.close();
    r.out.close();
    r.finish_from(l.end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;
    use crate::ir::verify_for;
    use crate::passes::{property_tests, samples};
    use crate::tune;

    #[test]
    fn more_groups_than_an_axis_holds_lie_along_two() {
        let caps = Caps {
            simt: true,
            max_local: 32,
            shared_bytes: 1 << 14,
            max_groups: [7, 5, 1],
            threads: 64,
            ..Caps::default()
        };
        let kernels = [
            samples::softmax(8, 64),
            samples::softmax(13, 64),
            samples::sum_rows(DType::F32, 35, 64),
        ];
        for kernel in kernels {
            let tuned = tune::optimize(&kernel, &caps);
            assert!(verify_for(&tuned, &caps).is_err(), "{tuned}");
            let spread = spread(&tuned, &caps).expect("it has a long loop");
            verify_for(&spread, &caps).unwrap_or_else(|e| panic!("{e}\n{spread}"));
            let input = property_tests::inputs(&kernel, &mut property_tests::Rng(1));
            assert_eq!(
                property_tests::run(&spread, &input, &[]),
                property_tests::run(&tuned, &input, &[]),
                "{spread}"
            );
        }
    }

    #[test]
    fn what_two_axes_do_not_hold_or_do_not_need_stays() {
        let caps = Caps { simt: true, max_local: 32, shared_bytes: 1 << 14, ..Caps::default() };
        let small = Caps { max_groups: [2, 2, 2], ..caps.clone() };
        for kernel in [samples::chain(320), samples::softmax(5, 64)] {
            let tuned = tune::optimize(&kernel, &caps);
            assert!(spread(&tuned, &small).is_none(), "{tuned}");
        }
    }
}
