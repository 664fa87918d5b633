//! `split`: one loop as two, the inner of a given length.
//!
//! `for i in 0..n` becomes `for o in 0..ceil(n / f)` around `for j in 0..min(f, n - o * f)` with
//! `i = o * f + j`; both loops are of the kind the one was. The order of iterations stays. With a
//! second parameter of 1 the inner loop of a parallel pair always has length `f`, as threads of a
//! group must, and its body stands in `if i < n`.

use super::loops::{LoopInfo, find_loop, loops};
use super::rebuild::Rebuild;
use super::{Pass, Site};
use crate::caps::Caps;
use crate::dtype::DType;
use crate::ir::{Kernel, LoopKind};
use crate::ops::BinaryOp;

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "split",
    doc: "make one loop two nested ones, the inner of the given length",
    reassociates: false,
    sites,
    apply,
};

/// Inner lengths offered.
const FACTORS: [i64; 6] = [2, 4, 8, 32, 256, 4096];

fn sites(kernel: &Kernel, _: &Caps) -> Vec<Site> {
    let mut list = Vec::new();
    for l in loops(kernel).iter().filter(|l| fits(kernel, l)) {
        for &f in FACTORS.iter().filter(|&&f| l.len.is_none_or(|n| n > f)) {
            list.push(Site::new(l.open, &[f]));
            if l.is_parallel() && l.len.is_some_and(|n| n % f != 0) {
                list.push(Site::new(l.open, &[f, 1]));
            }
        }
    }
    list
}

/// Whether the loop is not bound and rounding its length up cannot overflow.
fn fits(kernel: &Kernel, l: &LoopInfo) -> bool {
    let is_wide = l.len.is_some() || kernel.ty(l.open).dtype == DType::I64;
    is_wide && matches!(l.kind, LoopKind::Serial | LoopKind::Parallel)
}

fn apply(kernel: &Kernel, site: &Site) -> Kernel {
    let (Some(l), Some(&factor)) = (find_loop(kernel, site.value), site.params.first()) else {
        return kernel.clone();
    };
    let tests = site.params.get(1) == Some(&1);
    if !fits(kernel, &l) || factor < 1 || tests && !l.is_parallel() {
        return kernel.clone();
    }
    let mut r = Rebuild::new(kernel);
    r.copy_range(0..l.open.idx());
    let len = r.get(l.len_value);
    let step = r.number(l.open, factor);
    let blocks = match l.len {
        Some(n) => r.number(l.open, (n + factor - 1) / factor),
        None => {
            let almost = r.number(l.open, factor - 1);
            let rounded = r.out.binary(BinaryOp::Add, len, almost);
            r.out.binary(BinaryOp::Div, rounded, step)
        }
    };
    let outer = r.open_loop(l.open, blocks);
    let base = r.out.binary(BinaryOp::Mul, outer, step);
    let even = l.len.is_some_and(|n| n % factor == 0);
    let inner_len = if even || tests {
        step
    } else {
        let rest = r.out.binary(BinaryOp::Sub, len, base);
        r.out.binary(BinaryOp::Min, rest, step)
    };
    let inner = r.open_loop(l.open, inner_len);
    let counter = r.out.binary(BinaryOp::Add, base, inner);
    r.set(l.open, counter);
    if tests && !even {
        let inside = r.out.binary(BinaryOp::Lt, counter, len);
        r.out.open_if(inside);
        r.copy_range(l.body());
        r.out.close();
    } else {
        r.copy_range(l.body());
    }
    r.out.close();
    r.out.close();
    r.finish_from(l.end + 1)
}
