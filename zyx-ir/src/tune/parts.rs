//! Loops of which the last iterations are short: an extent in pieces that nothing divides.
//!
//! Elements behind the last one are masked, by a test of the piece and of the place in it. Pieces that no such test
//! concerns become a loop of their own, in which none is left; the few others follow, or come first.

use super::Draft;
use super::sources::is_spread;
use crate::caps::Caps;
use crate::dtype::DType;
use crate::ir::{Kernel, Op, Value};
use crate::ops::BinaryOp;
use crate::passes::facts::Facts;
use crate::passes::loops::{LoopInfo, loops};
use crate::passes::{Site, cut, dce, simplify};
use std::ops::Range;

/// Part of the iterations, at most, that are left with tests.
const TESTED: i64 = 4;

/// Cuts loops over pieces where tests begin, a whole number of interleaved rows from the end that has none.
pub(super) fn separate(draft: &mut Draft, caps: &Caps) {
    let unit = draft.knobs.rows.max(1);
    let mut any = false;
    // Last loops first, so that earlier ones keep their values.
    for l in loops(&draft.kernel).iter().rev().filter(|l| l.is_parallel()) {
        let Some((n, tested)) = l.len.zip(tested(&draft.kernel, l)) else { continue };
        if !is_spread(&draft.kernel, l, caps) {
            continue;
        }
        let before = tested.start / unit * unit;
        let after = (n - tested.end) / unit * unit;
        let at = if before >= after { before } else { n - after };
        if before.max(after) > 0 && TESTED * (n - before.max(after)) <= n {
            draft.step(&cut::PASS, Site::new(l.open, &[at]));
            any = true;
        }
    }
    if any {
        draft.whole(&simplify::PASS);
        draft.whole(&dce::PASS);
    }
}

/// Pieces among which those lie that a test of their places concerns: those in which it does not hold for all places
/// alike. `None` if there are none, or the loop is not one over pieces.
fn tested(kernel: &Kernel, l: &LoopInfo) -> Option<Range<i64>> {
    let n = l.len?;
    let facts = Facts::of(kernel);
    let inside: Vec<LoopInfo> =
        loops(kernel).into_iter().filter(|x| l.body().contains(&x.open.idx())).collect();
    let undecided = |i: usize| {
        let Op::Binary { op: op @ (BinaryOp::Lt | BinaryOp::Le), x, y } =
            kernel.op(Value(i as u32))
        else {
            return None;
        };
        if kernel.ty(x).dtype != DType::I64 || kernel.ty(x).is_vector() {
            return None;
        }
        // by * counter + rest < 0, where the rest lies between two numbers.
        let difference = facts.linear(x).plus(&facts.linear(y), -1)?;
        let by = difference.coefficient(l.open);
        let constant = difference.constant - i64::from(op == BinaryOp::Le);
        let (mut least, mut most, mut is_place) = (constant, constant, false);
        for &(counter, factor) in difference.terms.iter().filter(|term| term.0 != l.open) {
            let len = inside.iter().find(|x| x.open == counter)?.len?;
            let end = factor.checked_mul((len - 1).max(0))?;
            is_place |= factor.checked_mul(len)?.checked_abs() == by.checked_abs();
            least = least.checked_add(end.min(0))?;
            most = most.checked_add(end.max(0))?;
        }
        // The first iterations in which it does not hold for all, and holds for none.
        let first = |rest: i64| rest.checked_neg().map(|x| -(-x).div_euclid(by));
        let last = |rest: i64| rest.div_euclid(-by) + 1;
        let range = match by {
            0 => return None,
            1.. => first(most)?..first(least)?,
            _ => last(least)..last(most),
        };
        let range = range.start.clamp(0, n)..range.end.clamp(0, n);
        (is_place && !range.is_empty()).then_some(range)
    };
    l.body().filter_map(undecided).reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::property_tests::{Rng, compare, inputs, run};
    use crate::passes::samples;
    use crate::tune::Knobs;

    /// Sums of pieces of `n` elements, `length` each.
    fn pieces(n: i64, length: i64) -> Kernel {
        let pieces = (n + length - 1) / length;
        format!(
            "kernel pieces
             buffer 0 : i32[{n}] read
             buffer 1 : i32[{pieces}] write
             %p   param 0 read : i32
             %q   param 1 write : i32
             %c   const {pieces} : i64
             %n   const {n} : i64
             %l   const {length} : i64
             %z   const 0 : i64
             %f   const 0 : i32
             %i   loop parallel %c
               %a   alloc register 1 : i32
               %s   store %a[%z], %f : i32
               %j   loop serial %l
                 %m   mul %i, %l : i64
                 %k   add %m, %j : i64
                 %t   lt %k, %n : bool
                 %g   guard %k, %t : i64
                 %x   load %p[%g] : i32
                 %o   load %a[%z] : i32
                 %y   add %o, %x : i32
                 %u   store %a[%z], %y : i32
               %e   end %j
               %r   load %a[%z] : i32
               %w   store %q[%i], %r : i32
             %h   end %i"
        )
        .parse()
        .unwrap()
    }

    fn separated(kernel: &Kernel, rows: i64) -> Kernel {
        let (trace, reordered, shared) = Default::default();
        let knobs = Knobs { rows, ..Knobs::default() };
        let mut draft = Draft { kernel: kernel.clone(), trace, reordered, shared, knobs, used: 0 };
        separate(&mut draft, &Caps::default());
        draft.kernel
    }

    #[test]
    fn whole_pieces_have_no_tests() {
        for (n, length) in [(97, 8), (101, 10), (1009, 16), (96, 8), (17, 16)] {
            for unit in [1, 4] {
                let kernel = pieces(n, length);
                let tuned = separated(&kernel, unit);
                let count = n / length / unit * unit;
                let list = loops(&tuned);
                let whole = list.iter().find(|l| l.depth == 0).unwrap();
                if n % length != 0 && count * 4 >= 3 * (n / length + 1) {
                    assert_eq!(whole.len, Some(count), "{tuned}");
                    assert_eq!(tested(&tuned, whole), None, "{tuned}");
                }
                let input = inputs(&kernel, &mut Rng(5));
                let (expected, found) = (run(&kernel, &input, &[]), run(&tuned, &input, &[]));
                compare(&kernel, (&expected, &found), None).unwrap();
            }
        }
    }

    #[test]
    fn what_tests_concern_is_found_in_any_direction() {
        for kernel in [samples::rolled(5, 9, 4), samples::resume(6, 11)] {
            let tuned = separated(&kernel, 1);
            let input = inputs(&kernel, &mut Rng(5));
            let (expected, found) = (run(&kernel, &input, &[]), run(&tuned, &input, &[]));
            compare(&kernel, (&expected, &found), None).unwrap();
        }
    }
}
