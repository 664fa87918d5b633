//! Which steps of a plan must wait for which.
//!
//! A step waits for the last writer of what it reads, and for the readers and the writer of memory
//! that it overwrites, an arena's bytes included. What follows from other waits is left out, so a
//! device that runs steps side by side gets few edges. Linear in the accesses of the plan, but for
//! the logarithm of the number of places in an arena.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;

/// Memory that a step touches: bytes of one of many spaces that do not overlap.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) space: u32,
    pub(crate) bytes: Range<usize>,
    pub(crate) writes: bool,
}

/// The earlier steps that each step waits for, ascending, given what each touches.
pub(crate) fn dependencies(steps: &[Vec<Access>]) -> Vec<Vec<u32>> {
    let mut spaces: FxHashMap<u32, Space> = FxHashMap::default();
    // Of the last `WINDOW` steps, by the remainder of their numbers.
    let mut ancestors: Vec<Ancestors> = vec![[0; WINDOW / 64]; steps.len().min(WINDOW)];
    let mut waits = Vec::with_capacity(steps.len());
    for (step, accesses) in steps.iter().enumerate() {
        let mut after = Vec::new();
        for access in accesses {
            let space = spaces.entry(access.space).or_default();
            space.touch(&access.bytes, access.writes, step as u32, &mut after);
        }
        after.retain(|&earlier| earlier != step as u32);
        ancestors[step % WINDOW] = reduce(&mut after, step, &ancestors);
        waits.push(after);
    }
    waits
}

/// Pieces of a space by their first byte: who touched them last.
#[derive(Default)]
struct Space(BTreeMap<usize, Piece>);

#[derive(Clone, Default)]
struct Piece {
    end: usize,
    writer: Option<u32>,
    /// Since it was written.
    readers: Vec<u32>,
}

impl Space {
    fn touch(&mut self, bytes: &Range<usize>, writes: bool, step: u32, after: &mut Vec<u32>) {
        if bytes.is_empty() {
            return;
        }
        let mut touch = |piece: &mut Piece| {
            after.extend(piece.writer);
            if writes {
                after.append(&mut piece.readers);
                piece.writer = Some(step);
            } else {
                piece.readers.push(step);
            }
        };
        match self.0.get_mut(&bytes.start) {
            Some(piece) if piece.end == bytes.end => return touch(piece),
            _ => {}
        }
        self.cut(bytes.start);
        self.cut(bytes.end);
        self.fill(bytes);
        self.0.range_mut(bytes.clone()).for_each(|(_, piece)| touch(piece));
    }

    /// Makes a piece end, and another begin, at `at` if one reaches beyond it.
    fn cut(&mut self, at: usize) {
        let Some((_, piece)) = self.0.range_mut(..at).next_back() else { return };
        if piece.end > at {
            let rest = piece.clone();
            piece.end = at;
            self.0.insert(at, rest);
        }
    }

    /// Makes pieces of the bytes that nobody touched yet.
    fn fill(&mut self, bytes: &Range<usize>) {
        let mut gaps = Vec::new();
        let mut next = bytes.start;
        for (&start, piece) in self.0.range(bytes.clone()) {
            gaps.push(next..start);
            next = piece.end;
        }
        gaps.push(next..bytes.end);
        for gap in gaps.into_iter().filter(|gap| !gap.is_empty()) {
            self.0.insert(gap.start, Piece { end: gap.end, ..Piece::default() });
        }
    }
}

/// How far back a wait is recognised as following from others; beyond, it is merely kept.
const WINDOW: usize = 1024;

/// Bit `i`: the step waits, at least through others, for the one `i + 1` before it.
type Ancestors = [u64; WINDOW / 64];

/// Drops the waits that follow from others. Gives all that the step waits for.
fn reduce(after: &mut Vec<u32>, step: usize, ancestors: &[Ancestors]) -> Ancestors {
    // Nearest first: what implies a wait is seen before it.
    after.sort_unstable_by(|a, b| b.cmp(a));
    after.dedup();
    let mut all = [0; WINDOW / 64];
    after.retain(|&earlier| {
        let bit = step - 1 - earlier as usize;
        if bit >= WINDOW {
            return true;
        }
        let implied = all[bit / 64] >> (bit % 64) & 1 == 1;
        if !implied {
            all[bit / 64] |= 1 << (bit % 64);
            or_shifted(&mut all, &ancestors[earlier as usize % WINDOW], bit + 1);
        }
        !implied
    });
    after.reverse();
    all
}

/// `to |= from << by`.
fn or_shifted(to: &mut Ancestors, from: &Ancestors, by: usize) {
    let (words, bits) = (by / 64, by % 64);
    for i in words..to.len() {
        to[i] |= from[i - words] << bits;
        if bits > 0 && i > words {
            to[i] |= from[i - words - 1] >> (64 - bits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::generate::Random;

    /// Every pair that must not change places.
    fn conflicts(steps: &[Vec<Access>]) -> Vec<(usize, usize)> {
        let conflict = |a: &Access, b: &Access| {
            let common = a.bytes.start.max(b.bytes.start)..a.bytes.end.min(b.bytes.end);
            a.space == b.space && !common.is_empty() && (a.writes || b.writes)
        };
        let clash =
            |i: usize, j: usize| steps[i].iter().any(|a| steps[j].iter().any(|b| conflict(a, b)));
        let pairs = (0..steps.len()).flat_map(|j| (0..j).map(move |i| (i, j)));
        pairs.filter(|&(i, j)| clash(i, j)).collect()
    }

    /// For each step, the steps it waits for through any number of others.
    fn reachable(waits: &[Vec<u32>]) -> Vec<Vec<bool>> {
        let mut all: Vec<Vec<bool>> = Vec::new();
        for after in waits {
            let mut row = vec![false; waits.len()];
            for &earlier in after {
                row[earlier as usize] = true;
                let further = &all[earlier as usize];
                row.iter_mut().zip(further).for_each(|(x, y)| *x |= y);
            }
            all.push(row);
        }
        all
    }

    fn random_steps(rng: &mut Random, n: usize) -> Vec<Vec<Access>> {
        let access = |rng: &mut Random| {
            let start = rng.below(40);
            let bytes = start..start + rng.below(12);
            Access { space: rng.below(3) as u32, bytes, writes: rng.below(3) == 0 }
        };
        (0..n).map(|_| (0..1 + rng.below(4)).map(|_| access(rng)).collect()).collect()
    }

    #[test]
    fn waits_are_exactly_the_closure_of_conflicts() {
        for seed in 0..300 {
            let mut rng = Random::new(seed);
            let n = 1 + rng.below(60);
            let steps = random_steps(&mut rng, n);
            let waits = dependencies(&steps);
            let mut asked = vec![Vec::new(); steps.len()];
            conflicts(&steps).iter().for_each(|&(i, j)| asked[j].push(i as u32));
            let all = reachable(&waits);
            assert_eq!(all, reachable(&asked), "seed {seed}");
            // None follows from the others.
            for (step, after) in waits.iter().enumerate() {
                let implied = |x: &u32| after.iter().any(|&y| all[y as usize][*x as usize]);
                assert!(!after.iter().any(implied), "seed {seed}, step {step}: {after:?}");
            }
        }
    }

    #[test]
    fn a_long_chain_has_one_edge_a_step() {
        let step = |i: usize| {
            let at = |i: usize, writes| Access { space: i as u32 % 2, bytes: 0..1, writes };
            vec![at(i, false), at(i + 1, true)]
        };
        let steps: Vec<_> = (0..5000).map(step).collect();
        let waits = dependencies(&steps);
        assert!(waits.iter().enumerate().skip(1).all(|(i, after)| after == &[i as u32 - 1]));
    }

    #[test]
    fn branches_wait_for_no_one_else() {
        let at = |space, writes| Access { space, bytes: 0..4, writes };
        let steps = [
            vec![at(0, true)],
            vec![at(0, false), at(1, true)],
            vec![at(0, false), at(2, true)],
            vec![at(1, false), at(2, false), at(3, true)],
            vec![at(0, true)],
        ];
        let expected: [&[u32]; 5] = [&[], &[0], &[0], &[1, 2], &[1, 2]];
        assert_eq!(dependencies(&steps), expected);
    }
}
