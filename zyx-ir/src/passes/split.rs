//! `split`: one loop as two, the inner of a given length.
//!
//! `for i in 0..n` becomes `for o in 0..ceil(n / f)` around `for j in 0..min(f, n - o * f)` with
//! `i = o * f + j`; both loops are of the kind the one was. The order of iterations stays. The second
//! parameter says how the last block is treated if it is shorter:
//!
//! - 0, or none: the inner loop has the length `min(f, n - o * f)`, which later passes do not know;
//! - [`TESTED`]: the inner loop of a parallel pair always has length `f`, as threads of a group must, and its
//!   body stands in `if i < n`;
//! - [`GUARDED`]: as [`TESTED`], but loads and stores have guards in place of the `if`, so that several iterations can be
//!   jammed. A body with other effects gets the `if`;
//! - [`APART`]: a block of `f` iterations and the last one are two loops of known lengths, of which a
//!   condition on `o` chooses one. So each is vectorised and unrolled as if there were no other.

use super::loops::{LoopInfo, find_loop, loops};
use super::rebuild::Rebuild;
use super::{Pass, Site};
use crate::caps::Caps;
use crate::dtype::DType;
use crate::ir::{Kernel, LoopKind, Op, Order, Value};
use crate::ops::BinaryOp;

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "split",
    doc: "make one loop two nested ones, the inner of the given length",
    reassociates: false,
    sites,
    apply,
};

/// A test for each iteration of the last block.
pub const TESTED: i64 = 1;
/// A loop apart for the last block.
pub const APART: i64 = 2;
/// Guards in each iteration.
pub const GUARDED: i64 = 3;

/// Inner lengths offered.
const FACTORS: [i64; 6] = [2, 4, 8, 32, 256, 4096];

fn sites(kernel: &Kernel, _: &Caps) -> Vec<Site> {
    let mut list = Vec::new();
    for l in loops(kernel).iter().filter(|l| fits(kernel, l)) {
        for &f in FACTORS.iter().filter(|&&f| l.len.is_none_or(|n| n > f)) {
            list.push(Site::new(l.open, &[f]));
            let Some(n) = l.len.filter(|n| n % f != 0) else { continue };
            if l.is_parallel() {
                list.push(Site::new(l.open, &[f, TESTED]));
                list.push(Site::new(l.open, &[f, GUARDED]));
            }
            if n > f {
                list.push(Site::new(l.open, &[f, APART]));
            }
        }
    }
    list
}

/// Whether the loop is not bound and rounding its length up cannot overflow.
fn fits(kernel: &Kernel, l: &LoopInfo) -> bool {
    let is_wide = l.len.is_some() || kernel.ty(l.open).dtype == DType::I64;
    is_wide && matches!(l.kind, Some(LoopKind::Serial | LoopKind::Parallel))
}

fn apply(kernel: &Kernel, site: &Site) -> Kernel {
    let (Some(l), Some(&factor)) = (find_loop(kernel, site.value), site.params.first()) else {
        return kernel.clone();
    };
    let mode = site.params.get(1).copied().unwrap_or(0);
    let tests = matches!(mode, TESTED | GUARDED);
    let guards = mode == GUARDED && is_straight(kernel, &l);
    if !fits(kernel, &l) || factor < 1 || tests && !l.is_parallel() {
        return kernel.clone();
    }
    if let Some(n) = l.len.filter(|n| mode == APART && *n > factor && n % factor != 0) {
        return with_last_apart(kernel, &l, [n, factor]);
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
    if guards && !even {
        let inside = r.out.binary(BinaryOp::Lt, counter, len);
        copy_guarded(&mut r, &l, inside);
    } else if tests && !even {
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

/// Whether iterations read, compute and write, and do no more.
fn is_straight(kernel: &Kernel, l: &LoopInfo) -> bool {
    l.body().all(|i| match kernel.op(Value(i as u32)) {
        Op::Load { order: Order::Plain, buf, .. } | Op::Store { order: Order::Plain, buf, .. } => {
            matches!(kernel.op(buf), Op::Param { .. })
        }
        op => op.is_pure(),
    })
}

/// Copies the body of a loop, with a guard on what it reads and writes.
fn copy_guarded(r: &mut Rebuild<'_>, l: &LoopInfo, inside: Value) {
    for i in l.body() {
        let v = Value(i as u32);
        let mut op = r.mapped(v);
        if let Op::Load { index, .. } | Op::Store { index, .. } = &mut op {
            *index = r.out.guard(*index, inside);
        }
        let new = r.out.emit(op, r.src.ty(v));
        r.set(v, new);
    }
}

/// Blocks of `factor` of the `n` iterations, and a second loop for the shorter last block.
fn with_last_apart(kernel: &Kernel, l: &LoopInfo, [n, factor]: [i64; 2]) -> Kernel {
    let mut r = Rebuild::new(kernel);
    r.copy_range(0..l.open.idx());
    let whole = n / factor;
    let [blocks, whole_blocks, last_whole] =
        [whole + 1, whole, whole - 1].map(|n| r.number(l.open, n));
    let [step, rest, start] = [factor, n % factor, whole * factor].map(|n| r.number(l.open, n));
    let outer = r.open_loop(l.open, blocks);
    let is_whole = r.out.binary(BinaryOp::Lt, outer, whole_blocks);
    r.out.open_if(is_whole);
    // The condition says this already. As a minimum it is known to all passes and to the verifier.
    let block = r.out.binary(BinaryOp::Min, outer, last_whole);
    let base = r.out.binary(BinaryOp::Mul, block, step);
    r.copy_part(l.open, l.body(), base, step);
    r.out.close();
    let is_last = r.out.binary(BinaryOp::Lt, last_whole, outer);
    r.out.open_if(is_last);
    r.copy_part(l.open, l.body(), start, rest);
    r.out.close();
    r.out.close();
    r.finish_from(l.end + 1)
}
