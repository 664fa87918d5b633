//! `accumulate`: several independent accumulators for a serial reduction.
//!
//! A sum into one register waits for the addition before it. With `n` accumulators, `n` additions
//! are in flight; they are combined after the loop, which reassociates float sums and products.
//!
//! Each accumulator takes every `n`th element, or the accumulators walk in several streams, each
//! along its own part of the whole. One stream keeps a core waiting for memory: a prefetcher runs
//! only so far ahead of it. A loop of unknown length may look at its length when it runs ([`Streams::ByLength`]):
//! it becomes one loop for each number of streams, of which all but one run no iteration.

use super::loops::{LoopInfo, find_loop, loops};
use super::rebuild::Rebuild;
use super::unroll::{Blocks, close_rest, open_blocks};
use super::variance::{Accumulator, accumulators};
use super::{Pass, Site};
use crate::caps::Caps;
use crate::ir::{Kernel, LoopKind, Space, Value};
use crate::ops::BinaryOp;

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
/// Those for loops of unknown length besides: accumulators, and the lengths from which on streams are two and four.
const BY_LENGTH: [(i64, Streams); 2] =
    [(2, Streams::ByLength(4, 8)), (8, Streams::ByLength(16, 64))];

fn sites(kernel: &Kernel, _: &Caps) -> Vec<Site> {
    let mut list = Vec::new();
    for l in loops(kernel).iter().filter(|l| l.kind == Some(LoopKind::Serial)) {
        if accumulators(kernel, l).is_some_and(|a| !a.is_empty()) {
            let fitting = COUNTS.iter().filter(|&[n, _]| l.len.is_none_or(|len| len >= *n));
            list.extend(fitting.map(|params| Site::new(l.open, params)));
            let by_length = BY_LENGTH.iter().filter(|_| l.len.is_none());
            list.extend(by_length.map(|(count, streams)| streams.site(l.open, *count)));
        }
    }
    list
}

/// In how many streams the accumulators of a loop walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// As many.
    Known(i64),
    /// In two from so many iterations on, in four from so many on.
    ByLength(i64, i64),
}

impl Streams {
    /// Where `count` accumulators of the loop `l` go.
    pub fn site(self, l: Value, count: i64) -> Site {
        match self {
            Streams::Known(streams) => Site::new(l, &[count, streams.min(count)]),
            Streams::ByLength(two, four) => Site::new(l, &[count, 0, two, four]),
        }
    }

    /// Accumulators and streams, as a site has them.
    fn of(params: &[i64]) -> Option<(i64, Streams)> {
        let (count, streams) = match *params {
            [count, 0, two, four] => (count, Streams::ByLength(two, four)),
            [count, streams] => (count, Streams::Known(streams)),
            _ => return None,
        };
        let fits = |n: i64| (1..=count).contains(&n) && count % n == 0;
        let sensible = (2..=64).contains(&count)
            && match streams {
                Streams::Known(n) => fits(n),
                Streams::ByLength(two, four) => {
                    fits(2) && fits(count.min(4)) && (0..=four).contains(&two)
                }
            };
        sensible.then_some((count, streams))
    }

    /// How many they are in a loop of so many iterations.
    fn at(self, len: i64) -> i64 {
        match self {
            Streams::Known(n) => n,
            Streams::ByLength(_, four) if len >= four => 4,
            Streams::ByLength(two, _) if len >= two => 2,
            Streams::ByLength(..) => 1,
        }
    }
}

/// Whether a loop of unknown length adds up, by its parameters, as one of so many iterations does by others.
pub fn adds_alike(unknown: &[i64], known: &[i64], len: i64) -> bool {
    let (Some((count, streams)), Some((other, known))) = (Streams::of(unknown), Streams::of(known))
    else {
        return false;
    };
    count == other && streams.at(len).min(count) == known.at(len).min(count)
}

fn apply(kernel: &Kernel, site: &Site) -> Kernel {
    let (Some(l), Some((count, streams))) =
        (find_loop(kernel, site.value), Streams::of(&site.params))
    else {
        return kernel.clone();
    };
    let found = match l.kind {
        Some(LoopKind::Serial) => accumulators(kernel, &l),
        _ => None,
    };
    let Some(found) = found.filter(|a| !a.is_empty()) else { return kernel.clone() };
    let mut r = Rebuild::new(kernel);
    r.copy_range(0..l.open.idx());
    let copies: Vec<Vec<Value>> = found.iter().map(|a| allocs(&mut r, a, count)).collect();
    let blocks = Blocks::of(&mut r, &l, count);
    for (streams, blocks) in ways(&mut r, &l, blocks, count, streams) {
        open_blocks(&mut r, &l, blocks, [count, streams], |r, counters| {
            for (i, &counter) in counters.iter().enumerate() {
                for (a, copies) in found.iter().zip(&copies) {
                    r.set(a.alloc, copies[i]);
                }
                r.set(l.open, counter);
                r.copy_range(l.body());
            }
        });
    }
    for (a, copies) in found.iter().zip(&copies) {
        r.set(a.alloc, copies[0]);
    }
    close_rest(&mut r, &l, blocks);
    for (a, copies) in found.iter().zip(&copies) {
        combine(&mut r, a, copies);
    }
    r.finish_from(l.end + 1)
}

/// The loops over blocks: the streams of each with its length. One alone has iterations.
fn ways(
    r: &mut Rebuild<'_>,
    l: &LoopInfo,
    blocks: Blocks,
    count: i64,
    streams: Streams,
) -> Vec<(i64, Value)> {
    let (two, four) = match (streams, l.len) {
        (Streams::ByLength(two, four), None) => (two, four),
        (streams, len) => {
            return vec![(streams.at(len.unwrap_or(0)).min(count), blocks.count)];
        }
    };
    let len = r.get(l.len_value);
    let [two, four, none] = [two, four, 0].map(|n| r.number(l.open, n));
    let is_short = r.out.binary(BinaryOp::Lt, len, two);
    let short = r.out.select(is_short, blocks.count, none);
    let long = r.out.select(is_short, none, blocks.count);
    if count < 4 {
        return vec![(1, short), (2, long)];
    }
    let is_less = r.out.binary(BinaryOp::Lt, len, four);
    let less = r.out.select(is_less, long, none);
    let long = r.out.select(is_less, none, long);
    vec![(1, short), (2, less), (4, long)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_divide_the_accumulators_at_every_length() {
        let sensible = |count: i64| Streams::of(&[count, 0, 16, 64]).is_some();
        let found: Vec<i64> = (0..13).filter(|&count| sensible(count)).collect();
        assert_eq!(found, [2, 4, 8, 12], "others would leave iterations out");
        assert!(Streams::of(&[6, 3]).is_some() && Streams::of(&[6, 4]).is_none());
    }
}
