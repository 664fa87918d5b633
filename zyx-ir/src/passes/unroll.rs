//! `unroll`: several copies of a loop's body per iteration, or a copy for each iteration.
//!
//! Copies run one after the other, so any loop may be unrolled. A length that is no multiple of
//! the factor leaves a loop for the rest.

use super::loops::{LoopInfo, find_loop, loops};
use super::rebuild::Rebuild;
use super::{Pass, Site};
use crate::caps::Caps;
use crate::ir::{Kernel, LoopKind, Value};
use crate::ops::BinaryOp;

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "unroll",
    doc: "copy a loop's body, by a factor or (0) for each iteration",
    reassociates: false,
    sites,
    apply,
};

/// Most ops a full unroll may make.
const MAX_OPS: i64 = 512;
/// Factors offered.
const FACTORS: [i64; 3] = [2, 4, 8];

fn sites(kernel: &Kernel, _: &Caps) -> Vec<Site> {
    let mut list = Vec::new();
    for l in loops(kernel).iter().filter(|l| fits(l)) {
        let ops = (l.end - l.open.idx()) as i64;
        if l.len.is_some_and(|n| n * ops <= MAX_OPS) {
            list.push(Site::new(l.open, &[0]));
        }
        for f in FACTORS {
            if l.len.is_none_or(|n| n >= f) && f * ops <= MAX_OPS {
                list.push(Site::new(l.open, &[f]));
            }
        }
    }
    list
}

fn fits(l: &LoopInfo) -> bool {
    matches!(l.kind, Some(LoopKind::Serial | LoopKind::Parallel))
}

fn apply(kernel: &Kernel, site: &Site) -> Kernel {
    let (Some(l), &[factor]) = (find_loop(kernel, site.value), &site.params[..]) else {
        return kernel.clone();
    };
    match l.len {
        _ if !fits(&l) => kernel.clone(),
        Some(len) if factor == 0 => full(kernel, &l, len),
        _ if factor >= 2 => partial(kernel, &l, factor),
        _ => kernel.clone(),
    }
}

fn full(kernel: &Kernel, l: &LoopInfo, len: i64) -> Kernel {
    let mut r = Rebuild::new(kernel);
    r.copy_range(0..l.open.idx());
    for i in 0..len {
        let counter = r.number(l.open, i);
        r.set(l.open, counter);
        r.copy_range(l.body());
    }
    r.finish_from(l.end + 1)
}

fn partial(kernel: &Kernel, l: &LoopInfo, factor: i64) -> Kernel {
    let mut r = Rebuild::new(kernel);
    r.copy_range(0..l.open.idx());
    let blocks = Blocks::of(&mut r, l, factor);
    open_blocks(&mut r, l, blocks.count, [factor, 1], |r, counters| {
        for &counter in counters {
            r.set(l.open, counter);
            r.copy_range(l.body());
        }
    });
    close_rest(&mut r, l, blocks);
    r.finish_from(l.end + 1)
}

/// How a loop falls into whole blocks of iterations.
#[derive(Clone, Copy)]
pub(super) struct Blocks {
    /// How many there are.
    pub(super) count: Value,
    done: Value,
    rest: Value,
}

impl Blocks {
    /// Those of `factor` iterations each.
    pub(super) fn of(r: &mut Rebuild<'_>, l: &LoopInfo, factor: i64) -> Blocks {
        let len = r.get(l.len_value);
        let step = r.number(l.open, factor);
        let count = r.out.binary(BinaryOp::Div, len, step);
        let done = r.out.binary(BinaryOp::Mul, count, step);
        let rest = r.out.binary(BinaryOp::Sub, len, done);
        Blocks { count, done, rest }
    }
}

/// A loop over `blocks` blocks of `factor` iterations; `body` is given the counters of one block. Those
/// of each block are consecutive, or come from as many equal parts of the whole as there are
/// `streams`, which divide `factor`.
pub(super) fn open_blocks(
    r: &mut Rebuild<'_>,
    l: &LoopInfo,
    blocks: Value,
    [factor, streams]: [i64; 2],
    body: impl FnOnce(&mut Rebuild<'_>, &[Value]),
) {
    if r.out.as_constant(blocks).is_some_and(|n| n.to_i64() <= 0) {
        return;
    }
    let block = r.open_loop(l.open, blocks);
    let run = factor / streams;
    let in_run = r.number(l.open, run);
    let base = r.out.binary(BinaryOp::Mul, block, in_run);
    let mut counters = Vec::with_capacity(factor as usize);
    for stream in 0..streams {
        let part = r.number(l.open, stream * run);
        let part = r.out.binary(BinaryOp::Mul, blocks, part);
        let first = r.out.binary(BinaryOp::Add, base, part);
        counters.extend((0..run).map(|i| {
            let i = r.number(l.open, i);
            r.out.binary(BinaryOp::Add, first, i)
        }));
    }
    body(r, &counters);
    r.out.close();
}

/// The original loop over the iterations that whole blocks leave over.
pub(super) fn close_rest(r: &mut Rebuild<'_>, l: &LoopInfo, blocks: Blocks) {
    match r.out.as_constant(blocks.rest).map(|n| n.to_i64()) {
        Some(n) if n <= 0 => return,
        Some(1) => {
            r.set(l.open, blocks.done);
            r.copy_range(l.body());
            return;
        }
        _ => {}
    }
    let i = r.open_loop(l.open, blocks.rest);
    let counter = r.out.binary(BinaryOp::Add, blocks.done, i);
    r.set(l.open, counter);
    r.copy_range(l.body());
    r.out.close();
}
