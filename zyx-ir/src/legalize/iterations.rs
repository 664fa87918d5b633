//! Devices that stop a thread after so many loop iterations.
//!
//! Some drivers end every loop of a thread once it has gone round too often, all its loops counted
//! together, and say nothing (`Caps::max_iterations`). A kernel with longer loops gets several
//! copies of a loop's body per iteration until it stays below; a kernel that cannot be brought
//! there is refused, which is better than a wrong result.

use crate::caps::Caps;
use crate::ir::{Kernel, LoopKind};
use crate::passes::loops::{LoopInfo, loops};
use crate::passes::{Site, unroll};

/// Copies of a body made at a time.
const FACTOR: i64 = 8;
/// Most ops of a kernel that was copied.
const MAX_OPS: usize = 1 << 13;

/// Times one thread goes round this loop each time it enters it.
fn rounds(l: &LoopInfo, kernel: &Kernel, caps: &Caps) -> u64 {
    // A length that is an argument is not known before the launch; one iteration is counted.
    // A loop that a break may end is counted as if none did.
    let most = l.len.or_else(|| kernel.constant(l.len_value).map(|n| n.to_i64()));
    let len = most.map_or(1, |n| n.max(0) as u64);
    let threads = match l.kind {
        Some(LoopKind::Group) => match kernel.op(l.open) {
            crate::ir::Op::Loop { axis, .. } => caps.max_groups[axis as usize],
            _ => 1,
        },
        Some(LoopKind::Local) => caps.max_local as u64,
        Some(LoopKind::Parallel) if !caps.simt => caps.threads as u64,
        Some(LoopKind::Parallel | LoopKind::Serial) | None => 1,
    };
    len.div_ceil(threads.max(1))
}

/// Loop iterations of one thread, and the innermost loop with the largest share of them.
fn count(kernel: &Kernel, caps: &Caps) -> (u64, Option<LoopInfo>) {
    let all = loops(kernel);
    let mut times: Vec<u64> = Vec::with_capacity(all.len());
    let (mut total, mut most, mut found) = (0u64, 0, None);
    for l in &all {
        let around = l.parent.map_or(1, |parent| times[parent]);
        let mine = around.saturating_mul(rounds(l, kernel, caps));
        times.push(mine);
        total = total.saturating_add(mine);
        let copies = matches!(l.kind, Some(LoopKind::Serial | LoopKind::Parallel));
        let several = l.len.is_some_and(|n| n > 1);
        if l.innermost && copies && several && mine > most {
            (most, found) = (mine, Some(*l));
        }
    }
    (total, found)
}

/// Most loop iterations that one thread of the kernel executes, as far as lengths are constant.
pub fn iterations(kernel: &Kernel, caps: &Caps) -> u64 {
    count(kernel, caps).0
}

/// The kernel with as few iterations per thread as the device allows.
pub(super) fn bounded(kernel: &Kernel, caps: &Caps) -> Result<Kernel, String> {
    let mut kernel = kernel.clone();
    loop {
        let (total, longest) = count(&kernel, caps);
        if total <= caps.max_iterations {
            return Ok(kernel);
        }
        let copied = longest
            .map(|l| {
                // All of a short loop, which makes the loop around it the innermost.
                let factor = if l.len.is_some_and(|n| n <= FACTOR) { 0 } else { FACTOR };
                (unroll::PASS.apply)(&kernel, &Site::new(l.open, &[factor]))
            })
            .filter(|copied| copied.ops().len() <= MAX_OPS);
        let Some(copied) = copied else {
            let most = caps.max_iterations;
            let counted = match kernel.loops_with_break()[..] {
                [] => String::new(),
                [open, ..] => format!(" (with all of loop {open}, which a break may end)"),
            };
            return Err(format!("threads that run {total} loop iterations{counted}, only {most}"));
        };
        kernel = copied;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::passes::{property_tests, samples};

    #[test]
    fn long_loops_go_round_less_often_and_compute_the_same() {
        let caps = Caps { simt: true, max_iterations: 100, ..Caps::default() };
        for kernel in [samples::sum_all(1000), samples::sum_rows(DType::F32, 4, 300)] {
            assert!(iterations(&kernel, &caps) > 100);
            let short = bounded(&kernel, &caps).unwrap();
            assert!(iterations(&short, &caps) <= 100, "{short}");
            let input = property_tests::inputs(&kernel, &mut property_tests::Rng(1));
            assert_eq!(
                property_tests::run(&short, &input, &[]),
                property_tests::run(&kernel, &input, &[])
            );
        }
    }

    #[test]
    fn what_stays_too_long_is_refused() {
        let caps = Caps { simt: true, max_iterations: 3, ..Caps::default() };
        let error = bounded(&samples::sum_all(1 << 20), &caps).unwrap_err();
        assert!(error.contains("only 3"), "{error}");
    }

    #[test]
    fn a_loop_that_a_break_may_end_counts_with_its_length() {
        let caps = Caps { simt: true, max_iterations: 65_535, ..Caps::default() };
        let short = samples::collatz(30, 200);
        assert_eq!(bounded(&short, &caps).unwrap(), short);
        let error = bounded(&samples::collatz(30, i64::MAX), &caps).unwrap_err();
        assert!(error.contains("which a break may end"), "{error}");
    }
}
