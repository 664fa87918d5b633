//! `split`: one loop as two, the inner of a given length.
//!
//! `for i in 0..n` becomes `for o in 0..ceil(n / f)` around `for j in 0..min(f, n - o * f)` with
//! `i = o * f + j`; both loops are of the kind the one was. The order of iterations stays.

use super::loops::{LoopInfo, find_loop, loops};
use super::rebuild::Rebuild;
use super::{Pass, Site};
use crate::dtype::DType;
use crate::hal::Caps;
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
        let fitting = FACTORS.iter().filter(|&&f| l.len.is_none_or(|n| n > f));
        list.extend(fitting.map(|&f| Site::new(l.open, &[f])));
    }
    list
}

/// Whether the loop is not bound and rounding its length up cannot overflow.
fn fits(kernel: &Kernel, l: &LoopInfo) -> bool {
    let is_wide = l.len.is_some() || kernel.ty(l.open).dtype == DType::I64;
    is_wide && matches!(l.kind, LoopKind::Serial | LoopKind::Parallel)
}

fn apply(kernel: &Kernel, site: &Site) -> Kernel {
    let (Some(l), &[factor]) = (find_loop(kernel, site.value), &site.params[..]) else {
        return kernel.clone();
    };
    if !fits(kernel, &l) || factor < 1 {
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
    let inner_len = if even {
        step
    } else {
        let rest = r.out.binary(BinaryOp::Sub, len, base);
        r.out.binary(BinaryOp::Min, rest, step)
    };
    let inner = r.open_loop(l.open, inner_len);
    let counter = r.out.binary(BinaryOp::Add, base, inner);
    r.set(l.open, counter);
    r.copy_range(l.body());
    r.out.close();
    r.out.close();
    r.finish_from(l.end + 1)
}
