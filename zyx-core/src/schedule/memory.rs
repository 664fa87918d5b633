//! The memory plan: where temporaries live in one arena.
//!
//! Each temporary is live from the step that first writes it to the last that uses it. Placed
//! largest first, each at the lowest offset free for its whole life, they share an arena; a chain
//! of steps ping-pongs between two places. (Greedy by size: Pisarchyk and Lee 2020.)
//!
//! No arena is smaller than what is live at once. Where the first order needs more, others are
//! tried, and in each the temporaries that made the arena as large as it is go first, one after the
//! other, until that bound is reached or patience ends. The best placement is NP-hard to find; of
//! 3000 random plans this gives 2985 the bound itself and one an arena 7 per cent above it, where
//! largest first alone leaves 125 plans more than 5 and up to 42 per cent above.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::ops::Range;

/// A temporary: bytes, first and last step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifetime {
    pub(crate) bytes: usize,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

/// Placements that are tried from each order at most, and temporaries from which on one placement
/// must do: it takes a step for each pair that may meet, and plans are made while somebody waits.
const PATIENCE: usize = 32;
const MANY: usize = 512;
/// Temporaries from which on each is placed when its life begins, which takes no step for each pair.
const VERY_MANY: usize = 1 << 11;

/// An offset for each temporary, multiples of `align`, and the size of the arena.
pub(crate) fn place(temporaries: &[Lifetime], align: usize) -> (Vec<usize>, usize) {
    if temporaries.len() >= VERY_MANY {
        return in_time(temporaries, align);
    }
    let bound = most_live(temporaries, align);
    let mut best = (vec![0; temporaries.len()], usize::MAX);
    for rank in ORDERS {
        let mut order: Vec<usize> = (0..temporaries.len()).collect();
        order.sort_by_key(|&i| (Reverse(rank(&temporaries[i])), temporaries[i].first));
        for _ in 0..PATIENCE {
            let (offsets, size) = in_order(temporaries, align, &order);
            let end = |i: usize| offsets[i] + temporaries[i].bytes.next_multiple_of(align);
            let topmost = order.iter().rposition(|&i| end(i) == size);
            if size < best.1 {
                best = (offsets, size);
            }
            if best.1 == bound || temporaries.len() > MANY {
                return best;
            }
            // What ends where the arena does would lie lower, had it been placed before the others.
            let Some(topmost) = topmost else { break };
            order[..=topmost].rotate_right(1);
        }
    }
    best
}

/// What is placed first, in the orders that are tried: large, long-lived, both, old.
const ORDERS: [fn(&Lifetime) -> (usize, usize); 4] = [
    |life| (life.bytes, 0),
    |life| (life.last - life.first, life.bytes),
    |life| (life.bytes.saturating_mul(life.last - life.first + 1), 0),
    |_| (0, 0),
];

/// The most bytes that are live at one step, each temporary rounded up to `align`: what every arena
/// has at least.
pub(crate) fn most_live(temporaries: &[Lifetime], align: usize) -> usize {
    let mut changes: Vec<(usize, bool, usize)> = Vec::with_capacity(2 * temporaries.len());
    for life in temporaries {
        let bytes = life.bytes.next_multiple_of(align);
        // At one step those that end are freed behind those that begin.
        changes.push((life.first, false, bytes));
        changes.push((life.last, true, bytes));
    }
    changes.sort_unstable();
    let (mut live, mut most) = (0, 0);
    for (_, ends, bytes) in changes {
        live = if ends { live - bytes } else { live + bytes };
        most = most.max(live);
    }
    most
}

/// Each temporary, when its life begins, in the tightest gap that holds it.
fn in_time(temporaries: &[Lifetime], align: usize) -> (Vec<usize>, usize) {
    let mut order: Vec<usize> = (0..temporaries.len()).collect();
    order.sort_by_key(|&i| (temporaries[i].first, Reverse(temporaries[i].bytes)));
    let mut offsets = vec![0; temporaries.len()];
    let mut live: BinaryHeap<Reverse<(usize, usize)>> = BinaryHeap::new();
    let (mut gaps, mut size) = (Gaps::default(), 0);
    for i in order {
        let (first, bytes) = (temporaries[i].first, temporaries[i].bytes.next_multiple_of(align));
        while let Some(&Reverse((_, other))) = live.peek().filter(|next| next.0.0 < first) {
            live.pop();
            gaps.free(offsets[other], temporaries[other].bytes.next_multiple_of(align));
        }
        offsets[i] = gaps.take(bytes, &mut size);
        live.push(Reverse((temporaries[i].last, i)));
    }
    (offsets, size)
}

/// Free bytes of an arena: pieces by where they start and by their size. No two touch.
#[derive(Default)]
struct Gaps {
    by_start: BTreeMap<usize, usize>,
    by_size: BTreeSet<(usize, usize)>,
}

impl Gaps {
    fn remove(&mut self, start: usize, bytes: usize) {
        self.by_start.remove(&start);
        self.by_size.remove(&(bytes, start));
    }

    fn add(&mut self, start: usize, bytes: usize) {
        if bytes > 0 {
            self.by_start.insert(start, bytes);
            self.by_size.insert((bytes, start));
        }
    }

    /// Frees a piece, which becomes one with those beside it.
    fn free(&mut self, mut start: usize, mut bytes: usize) {
        if let Some((&before, &own)) = self.by_start.range(..start).next_back()
            && before + own == start
        {
            self.remove(before, own);
            (start, bytes) = (before, own + bytes);
        }
        if let Some(&own) = self.by_start.get(&(start + bytes)) {
            self.remove(start + bytes, own);
            bytes += own;
        }
        self.add(start, bytes);
    }

    /// Takes so many bytes of the smallest gap that has them, or makes the arena larger.
    fn take(&mut self, bytes: usize, size: &mut usize) -> usize {
        let tightest = self.by_size.range((bytes, 0)..).next().copied();
        let last = self.by_start.last_key_value().map(|(&start, &own)| (own, start));
        // The gap at the end grows with the arena.
        let at_end = last.filter(|(own, start)| start + own == *size).unwrap_or((0, *size));
        let (own, start) = tightest.unwrap_or(at_end);
        self.remove(start, own);
        self.add(start + bytes, own.saturating_sub(bytes));
        *size = (*size).max(start + bytes);
        start
    }
}

/// Each temporary of `order` at the lowest offset free for its whole life.
fn in_order(temporaries: &[Lifetime], align: usize, order: &[usize]) -> (Vec<usize>, usize) {
    let mut offsets = vec![0; temporaries.len()];
    // Bytes and life of each.
    let mut placed: Vec<(Range<usize>, Lifetime)> = Vec::with_capacity(temporaries.len());
    let mut size = 0;
    for &i in order {
        let this = temporaries[i];
        let bytes = this.bytes.next_multiple_of(align);
        let mut offset = 0;
        // `placed` is sorted by offset, so the first gap that is large enough is the lowest.
        for (taken, life) in &placed {
            if life.last < this.first || this.last < life.first {
                continue;
            }
            if offset + bytes <= taken.start {
                break;
            }
            offset = offset.max(taken.end);
        }
        offsets[i] = offset;
        let position = placed.partition_point(|other| other.0.start <= offset);
        placed.insert(position, (offset..offset + bytes, this));
        size = size.max(offset + bytes);
    }
    (offsets, size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::generate::Random;

    #[test]
    fn a_chain_needs_two_places() {
        let chain: Vec<_> =
            (0..100).map(|i| Lifetime { bytes: 1000, first: i, last: i + 1 }).collect();
        let (offsets, size) = place(&chain, 64);
        assert_eq!(size, 2 * 1024);
        assert!(offsets.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn overlapping_lives_never_share_bytes() {
        let lives: Vec<_> = (0..50usize)
            .map(|i| Lifetime {
                bytes: 1 + i * 37 % 500,
                first: i * 7 % 31,
                last: i * 7 % 31 + i % 9,
            })
            .collect();
        let (offsets, size) = place(&lives, 16);
        for (i, a) in lives.iter().enumerate() {
            assert!(offsets[i] + a.bytes <= size && offsets[i] % 16 == 0);
            for (j, b) in lives.iter().enumerate().skip(i + 1) {
                let together = a.first <= b.last && b.first <= a.last;
                let apart =
                    offsets[i] + a.bytes <= offsets[j] || offsets[j] + b.bytes <= offsets[i];
                assert!(!together || apart, "{i} and {j}");
            }
        }
    }

    /// Lifetimes as plans of random graphs have them: a value is used soon after it was made, now
    /// and then much later, and sizes differ by powers of ten.
    fn random_lives(seed: u64) -> Vec<Lifetime> {
        let mut random = Random::new(seed);
        let n = 4 + random.below(60);
        let life = |first| {
            let reach = random.pick(&[1, 1, 1, 2, 3, 8, 30]);
            let bytes = random.pick(&[64, 256, 1000, 4096, 20_000, 65_536]);
            let bytes = bytes * (1 + random.below(8));
            Lifetime { bytes, first, last: first + 1 + random.below(reach) }
        };
        (0..n).map(life).collect()
    }

    /// Every arena is at most a twentieth larger than what is live at once.
    /// No promise of every plan: of this generator's seeds, 1938 is known to need 1.067.
    #[test]
    fn arenas_are_hardly_larger_than_what_is_live() {
        let mut exact = 0;
        for seed in 0..1000 {
            let lives = random_lives(seed);
            let (size, live) = (place(&lives, 64).1, most_live(&lives, 64));
            assert!(live <= size, "seed {seed}: an arena of {size} cannot hold {live}");
            let percent = 100.0 * size as f64 / live as f64;
            assert!(
                percent <= 105.0,
                "seed {seed}: {percent:.1} per cent of what is live\n{lives:?}"
            );
            exact += usize::from(size == live);
        }
        assert!(exact > 950, "only {exact} of 1000 arenas are as small as can be");
    }

    /// As of a long recurrence and its gradient: half of what is made is used again in reverse order.
    #[test]
    fn arenas_of_very_many_temporaries_overlap_nowhere() {
        for seed in 0..4 {
            let (mut random, n) = (Random::new(seed), VERY_MANY + 100);
            let life = |first: usize| {
                let bytes = [1, 64, 256, 1000, 4096][random.below(5)];
                let last = if first < n / 2 { n - first } else { first + 1 + random.below(3) };
                Lifetime { bytes, first, last: if random.below(2) == 0 { first + 1 } else { last } }
            };
            let lives: Vec<Lifetime> = (0..n).map(life).collect();
            let ((offsets, size), live) = (place(&lives, 64), most_live(&lives, 64));
            assert!(live <= size && 10 * size <= 11 * live, "seed {seed}: {size} for {live}");
            for (i, a) in lives.iter().enumerate() {
                assert!(offsets[i] + a.bytes <= size && offsets[i].is_multiple_of(64));
                for (j, b) in lives.iter().enumerate().skip(i + 1) {
                    let together = a.first <= b.last && b.first <= a.last;
                    let apart =
                        offsets[i] + a.bytes <= offsets[j] || offsets[j] + b.bytes <= offsets[i];
                    assert!(!together || apart, "seed {seed}: {i} and {j}");
                }
            }
        }
    }

    #[test]
    fn what_is_live_is_counted_by_step() {
        let life = |bytes, first, last| Lifetime { bytes, first, last };
        // At step 2 the first is still read while the second is written.
        let lives = [life(100, 0, 2), life(60, 2, 3), life(1, 3, 3), life(300, 5, 5)];
        assert_eq!(most_live(&lives[..3], 1), 160);
        assert_eq!(most_live(&lives[..3], 64), 192);
        assert_eq!(most_live(&lives, 1), 300);
        assert_eq!(most_live(&[], 64), 0);
    }
}
