//! `accumulate`: several independent accumulators for a serial reduction.
//!
//! A sum into one register waits for the addition before it. With `n` accumulators, `n` additions
//! are in flight; they are combined after the loop, which reassociates float sums and products.
//!
//! Each accumulator takes every `n`th element, or the accumulators walk in several streams, each
//! along its own part of the whole. One stream keeps a core waiting for memory: a prefetcher runs
//! only so far ahead of it.

use super::loops::{find_loop, loops};
use super::rebuild::Rebuild;
use super::unroll::{close_rest, open_blocks};
use super::variance::{Accumulator, accumulators};
use super::{Pass, Site};
use crate::caps::Caps;
use crate::ir::{Kernel, LoopKind, Space, Value};

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "accumulate",
    doc: "split a serial reduction's accumulator in several independent ones",
    reassociates: true,
    sites,
    apply,
};

/// Numbers of accumulators and streams offered.
const COUNTS: [[i64; 2]; 6] = [[2, 1], [4, 1], [8, 1], [2, 2], [8, 2], [8, 4]];

fn sites(kernel: &Kernel, _: &Caps) -> Vec<Site> {
    let mut list = Vec::new();
    for l in loops(kernel).iter().filter(|l| l.kind == LoopKind::Serial) {
        if accumulators(kernel, l).is_some_and(|a| !a.is_empty()) {
            let fitting = COUNTS.iter().filter(|&[n, _]| l.len.is_none_or(|len| len >= *n));
            list.extend(fitting.map(|params| Site::new(l.open, params)));
        }
    }
    list
}

fn apply(kernel: &Kernel, site: &Site) -> Kernel {
    let (Some(l), &[count, streams]) = (find_loop(kernel, site.value), &site.params[..]) else {
        return kernel.clone();
    };
    let found = match l.kind {
        LoopKind::Serial if is_sensible(count, streams) => accumulators(kernel, &l),
        _ => None,
    };
    let Some(found) = found.filter(|a| !a.is_empty()) else { return kernel.clone() };
    let mut r = Rebuild::new(kernel);
    r.copy_range(0..l.open.idx());
    let copies: Vec<Vec<Value>> = found.iter().map(|a| allocs(&mut r, a, count)).collect();
    let tail = open_blocks(&mut r, &l, [count, streams], |r, counters| {
        for (i, &counter) in counters.iter().enumerate() {
            for (a, copies) in found.iter().zip(&copies) {
                r.set(a.alloc, copies[i]);
            }
            r.set(l.open, counter);
            r.copy_range(l.body());
        }
    });
    for (a, copies) in found.iter().zip(&copies) {
        r.set(a.alloc, copies[0]);
    }
    close_rest(&mut r, &l, tail);
    for (a, copies) in found.iter().zip(&copies) {
        combine(&mut r, a, copies);
    }
    r.finish_from(l.end + 1)
}

fn is_sensible(count: i64, streams: i64) -> bool {
    (2..=64).contains(&count) && (1..=count).contains(&streams) && count % streams == 0
}

/// The original storage and `count - 1` more that hold the identity.
fn allocs(r: &mut Rebuild<'_>, a: &Accumulator, count: i64) -> Vec<Value> {
    let ty = r.src.ty(a.alloc);
    let mut list = vec![r.get(a.alloc)];
    let identity = a.op.identity(ty.dtype).expect("invariant: associative ops have identities");
    let identity = r.out.constant(identity);
    let identity = r.out.splat(identity, ty.lanes);
    let zero = r.out.index(0);
    for _ in 1..count {
        let alloc = r.out.alloc(Space::Register, ty, 1);
        r.out.store(alloc, zero, identity);
        list.push(alloc);
    }
    list
}

/// Combines all into the first, as a balanced tree.
fn combine(r: &mut Rebuild<'_>, a: &Accumulator, copies: &[Value]) {
    let zero = r.out.index(0);
    let mut values: Vec<Value> = copies.iter().map(|&c| r.out.load(c, zero)).collect();
    while values.len() > 1 {
        let pairs = values.chunks(2).map(|pair| match *pair {
            [x, y] => r.out.binary(a.op, x, y),
            _ => pair[0],
        });
        values = pairs.collect();
    }
    r.out.store(copies[0], zero, values[0]);
}
