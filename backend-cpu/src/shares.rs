//! Independent loops as one job of the pool.
//!
//! Each share of a job is a number of iterations and the grain in which threads take them; a
//! thread that runs out of one share goes on with the next, so nobody waits between them.

use smallvec::SmallVec;
use std::ops::Range;
use zyx_gemm::pool::Pool;

/// Some iterations that any threads may do in any order.
#[derive(Clone, Copy)]
pub(crate) struct Share<'a> {
    /// Number of iterations.
    pub(crate) n: usize,
    /// How many are handed out at once, at least 1.
    pub(crate) grain: usize,
    /// Does a range of them.
    pub(crate) task: &'a (dyn Fn(Range<usize>) + Sync),
}

impl Share<'_> {
    fn chunks(&self) -> usize {
        self.n.div_ceil(self.grain)
    }
}

/// Does everything, on the threads of the pool.
pub(crate) fn run(pool: &Pool, shares: &[Share<'_>]) {
    if let [only] = shares {
        return pool.run(only.n, only.grain, only.task);
    }
    // Where the chunks of each share end.
    let mut ends: SmallVec<[usize; 16]> = SmallVec::new();
    for share in shares {
        ends.push(ends.last().copied().unwrap_or(0) + share.chunks());
    }
    let total = ends.last().copied().unwrap_or(0);
    pool.run(total, 1, &|range: Range<usize>| {
        let mut at = range.start;
        while at < range.end {
            let number = ends.partition_point(|&end| end <= at);
            let (share, end) = (&shares[number], ends[number].min(range.end));
            let first = ends[number] - share.chunks();
            (share.task)((at - first) * share.grain..((end - first) * share.grain).min(share.n));
            at = end;
        }
    });
}

/// Does everything on the calling thread, which is a job all the same.
pub(crate) fn run_here(pool: &Pool, shares: &[Share<'_>]) {
    pool.count_job();
    shares.iter().filter(|share| share.n > 0).for_each(|share| (share.task)(0..share.n));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn every_iteration_of_every_share_is_done_once() {
        for threads in [1, 3] {
            let pool = Pool::new(Some(threads));
            for (n, grain) in [(0, 1), (1, 1), (7, 3), (100, 9)] {
                let hits: Vec<Vec<AtomicU32>> = [n, 5, 0, 64]
                    .iter()
                    .map(|&n| (0..n).map(|_| AtomicU32::new(0)).collect())
                    .collect();
                let tasks: Vec<_> = hits
                    .iter()
                    .map(|hits| {
                        move |range: Range<usize>| {
                            for i in range {
                                hits[i].fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    })
                    .collect();
                let shares: Vec<Share<'_>> = hits
                    .iter()
                    .zip(&tasks)
                    .map(|(hits, task)| Share { n: hits.len(), grain, task })
                    .collect();
                run(&pool, &shares);
                assert!(hits.iter().flatten().all(|hit| hit.load(Ordering::Relaxed) == 1));
                run_here(&pool, &shares);
                assert!(hits.iter().flatten().all(|hit| hit.load(Ordering::Relaxed) == 2));
            }
        }
    }
}
