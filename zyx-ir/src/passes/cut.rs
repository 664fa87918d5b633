//! `cut`: one loop as two, one after the other.
//!
//! Padding, concatenation and rolling choose between sources by comparing a counter with a
//! constant. On each side of that constant the comparison is decided, so `simplify` leaves one
//! source there, which is read without a condition.
//!
//! Parameter: the first iteration of the second loop.

use super::facts::Facts;
use super::loops::{LoopInfo, find_loop, loops};
use super::rebuild::Rebuild;
use super::{Pass, Site};
use crate::caps::Caps;
use crate::dtype::DType;
use crate::ir::{Kernel, LoopKind, Op, Value};
use crate::ops::BinaryOp;

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "cut",
    doc: "run a loop up to an iteration (1), then the rest of it as another loop",
    reassociates: false,
    sites,
    apply,
};

fn sites(kernel: &Kernel, _: &Caps) -> Vec<Site> {
    let list = loops(kernel);
    let list = list.iter().filter(|l| fits(l));
    list.flat_map(|l| positions(kernel, l).into_iter().map(|at| Site::new(l.open, &[at]))).collect()
}

fn fits(l: &LoopInfo) -> bool {
    matches!(l.kind, Some(LoopKind::Serial | LoopKind::Parallel))
}

/// The iterations from which on a comparison of the loop's counter with a constant is another one
/// than before.
pub(crate) fn positions(kernel: &Kernel, l: &LoopInfo) -> Vec<i64> {
    let Some(n) = l.len else { return Vec::new() };
    let facts = Facts::of(kernel);
    let position = |i: usize| {
        let Op::Binary { op: op @ (BinaryOp::Lt | BinaryOp::Le), x, y } =
            kernel.op(Value(i as u32))
        else {
            return None;
        };
        if kernel.ty(x).dtype != DType::I64 || kernel.ty(x).is_vector() {
            return None;
        }
        // factor * counter + constant < 0, or <= 0.
        let difference = facts.linear(x).plus(&facts.linear(y), -1)?;
        let &[(counter, factor)] = &difference.terms[..] else { return None };
        let (constant, size) = (difference.constant, factor.checked_abs()?);
        let least = constant.checked_neg()?;
        let at = match (op, factor > 0) {
            (BinaryOp::Lt, true) => constant.div_euclid(size).checked_neg()?,
            (_, true) => least.div_euclid(size).checked_add(1)?,
            (BinaryOp::Lt, false) => constant.div_euclid(size).checked_add(1)?,
            (_, false) => least.div_euclid(size).checked_neg()?,
        };
        (counter == l.open && (1..n).contains(&at)).then_some(at)
    };
    let mut list: Vec<i64> = l.body().filter_map(position).collect();
    list.sort_unstable();
    list.dedup();
    list
}

fn apply(kernel: &Kernel, site: &Site) -> Kernel {
    let (Some(l), &[at]) = (find_loop(kernel, site.value), &site.params[..]) else {
        return kernel.clone();
    };
    let Some(n) = l.len.filter(|&n| fits(&l) && (1..n).contains(&at)) else {
        return kernel.clone();
    };
    let mut r = Rebuild::new(kernel);
    r.copy_range(0..l.open.idx());
    let len = r.number(l.open, at);
    let counter = r.open_loop(l.open, len);
    r.set(l.open, counter);
    r.copy_range(l.body());
    r.out.close();
    let len = r.number(l.open, n - at);
    let start = r.number(l.open, at);
    r.copy_part(l.open, l.body(), start, len);
    r.finish_from(l.end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::{samples, simplify::simplify};

    /// Each comparison changes exactly at the positions found.
    #[test]
    fn comparisons_are_decided_on_both_sides() {
        for (factor, constant) in [(1, 5), (-1, 5), (3, 7), (-3, 7), (2, -8), (-2, 20)] {
            for op in [BinaryOp::Lt, BinaryOp::Le] {
                let text = format!(
                    "kernel compared
                     buffer 0 : bool[12] write
                     %p   param 0 write : bool
                     %n   const 12 : i64
                     %f   const {factor} : i64
                     %c   const {constant} : i64
                     %i   loop parallel %n
                       %m   mul %i, %f : i64
                       %t   {op} %m, %c : bool
                       %s   store %p[%i], %t : bool
                     %e   end %i"
                );
                let kernel: Kernel = text.parse().unwrap();
                let l = loops(&kernel)[0];
                let holds = |i: i64| match op {
                    BinaryOp::Lt => factor * i < constant,
                    _ => factor * i <= constant,
                };
                let changes: Vec<i64> = (1..12).filter(|&i| holds(i) != holds(i - 1)).collect();
                assert_eq!(positions(&kernel, &l), changes, "{text}");
            }
        }
    }

    #[test]
    fn a_concatenation_reads_one_source_at_a_time() {
        let mut kernel = samples::rolled(5, 9, 4);
        let inner = |k: &Kernel| loops(k).into_iter().find(|l| l.innermost).expect("a row");
        let l = inner(&kernel);
        assert_eq!(positions(&kernel, &l), [4]);
        kernel = simplify(&apply(&kernel, &Site::new(l.open, &[4])));
        for l in loops(&kernel).iter().filter(|l| l.innermost) {
            assert!(positions(&kernel, l).is_empty(), "{kernel}");
        }
    }
}
