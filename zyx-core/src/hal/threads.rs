//! Work on all cores of the host: compilers of kernels.

use super::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Compilers share locks: more threads wait for each other.
const MOST: usize = 16;

/// Results of `f` for 0 to `n` - 1, computed by as many threads as this process has cores, sixteen at most,
/// this one among them.
///
/// The threads begin with the item of most `weight`: the longest work must not be what is left in the end.
///
/// ```
/// let squares = zyx_core::hal::on_threads(4, |i| i, |i| i * i);
/// assert_eq!(squares, [0, 1, 4, 9]);
/// ```
pub fn on_threads<T: Send>(
    n: usize,
    weight: impl Fn(usize) -> usize,
    f: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if n < 2 { 1 } else { cores().min(n).min(MOST) };
    if threads < 2 {
        return (0..n).map(f).collect();
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(weight(i)));
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(n)));
    let work = || {
        while let Some(&i) = order.get(next.fetch_add(1, Relaxed)) {
            let result = f(i);
            lock(&done).push((i, result));
        }
    };
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_unstable_by_key(|(i, _)| *i);
    done.into_iter().map(|(_, result)| result).collect()
}
