//! Launches that would take too long, in parts.
//!
//! Drivers of GPUs that also draw a desktop stop a program that does not come back within a second
//! or two. A kernel that [`cost`](mod@super::cost) thinks takes longer than `Caps::max_launch` runs its
//! outermost loop over groups in pieces: which piece is one more argument, so one compiled program
//! serves all. Groups do not wait for each other, so pieces may run one after the other.

use super::cost;
use crate::caps::Caps;
use crate::ir::{Kernel, LoopKind, Op};
use crate::ops::BinaryOp;
use crate::passes::loops::{LoopInfo, loops};
use crate::passes::rebuild::Rebuild;

/// Most parts of a launch.
const MOST: u64 = 1 << 12;

/// The kernel in parts, and how many there are: its last scalar argument is the number of the part.
/// `None` if a launch is short enough, or the kernel is no nest of groups.
pub fn parts(kernel: &Kernel, caps: &Caps) -> Option<(Kernel, u64)> {
    if caps.max_launch == 0 {
        return None;
    }
    let wanted = (cost::estimate(kernel, caps).ns / caps.max_launch as f64).ceil() as u64;
    if wanted <= 1 {
        return None;
    }
    let nest = outermost(kernel)?;
    let len = nest.len?.max(1) as u64;
    let each = len.div_ceil(wanted.clamp(2, MOST));
    let n = len.div_ceil(each);
    (n > 1).then(|| (cut(kernel, &nest, (len, each, n)), n))
}

/// The loop over groups that all effects of a kernel are in.
fn outermost(kernel: &Kernel) -> Option<LoopInfo> {
    let all = loops(kernel);
    let mut top = all.iter().filter(|l| l.parent.is_none());
    let (nest, None) = (*top.next()?, top.next()) else { return None };
    let inside = |i: usize| nest.open.idx() <= i && i <= nest.end;
    let elsewhere = kernel.iter().any(|(v, op, _)| {
        let effect = matches!(op, Op::Store { .. } | Op::Atomic { .. } | Op::If { .. });
        effect && !inside(v.idx())
    });
    (nest.kind == Some(LoopKind::Group) && !elsewhere).then_some(nest)
}

fn cut(kernel: &Kernel, nest: &LoopInfo, (len, each, n): (u64, u64, u64)) -> Kernel {
    let dtype = kernel.ty(nest.open).dtype;
    let mut r = Rebuild::new(kernel);
    r.copy_range(0..nest.open.idx());
    let part = r.out.var(dtype, 0, n as i64 - 1);
    let step = r.number(nest.open, each as i64);
    let start = r.out.binary(BinaryOp::Mul, part, step);
    let length = if len.is_multiple_of(each) {
        step
    } else {
        let all = r.number(nest.open, len as i64);
        let rest = r.out.binary(BinaryOp::Sub, all, start);
        r.out.binary(BinaryOp::Min, rest, step)
    };
    r.copy_part(nest.open, nest.body(), start, length);
    r.finish_from(nest.end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::verify;
    use crate::passes::{property_tests, samples};
    use crate::tune;

    #[test]
    fn parts_together_compute_what_the_whole_does() {
        let caps = Caps { simt: true, max_local: 64, shared_bytes: 1 << 14, ..Caps::default() };
        for kernel in [samples::chain(1000), samples::softmax(33, 64)] {
            let kernel = tune::optimize(&kernel, &caps);
            assert!(parts(&kernel, &caps).is_none());
            let ns = cost::estimate(&kernel, &caps).ns;
            let hurried = Caps { max_launch: (ns / 3.0) as u64, ..caps.clone() };
            let (cut, n) = parts(&kernel, &hurried).expect("it is a nest of groups");
            assert!((2..=5).contains(&n), "{n}");
            verify(&cut).unwrap();
            let mut buffers = property_tests::inputs(&kernel, &mut property_tests::Rng(1));
            let expected = property_tests::run(&kernel, &buffers, &[]);
            (0..n).for_each(|part| buffers = property_tests::run(&cut, &buffers, &[part]));
            assert_eq!(buffers, expected, "{cut}");
        }
    }
}
