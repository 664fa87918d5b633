//! Work on all cores of the host: compilers of kernels.

use super::lock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

/// Compilers share locks: more threads wait for each other.
const MOST: usize = 16;
/// Nanoseconds of work that are worth a further thread, which takes 40 000 to start and to end.
const WORTH: usize = 100_000;

/// Results of `f` for 0 to `n` - 1, computed by as many threads as are worth it for the `nanoseconds` that
/// each takes, roughly: as many as this process has cores, sixteen at most, this one among them.
///
/// The threads begin with the item that takes longest: it must not be what is left in the end.
///
/// ```
/// let squares = zyx::internals::hal::on_threads(4, |_| 200_000, |i| i * i);
/// assert_eq!(squares, [0, 1, 4, 9]);
/// ```
pub fn on_threads<T: Send>(
    n: usize,
    nanoseconds: impl Fn(usize) -> usize,
    f: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let done: Vec<Mutex<Option<T>>> = (0..n).map(|_| Mutex::default()).collect();
    each((0..n).map(|i| (nanoseconds(i), i)).collect(), &|i| *lock(&done[i]) = Some(f(i)));
    let results = done.into_iter().map(|done| done.into_inner().ok().flatten());
    results.map(|result| result.expect("invariant: each was computed")).collect()
}

/// The cores that this process may use. Asking takes as long as a small kernel.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Does what is in a list of nanoseconds and numbers on threads.
fn each(mut order: Vec<(usize, usize)>, work: &(dyn Fn(usize) + Sync)) {
    order.sort_unstable_by(|a, b| b.cmp(a));
    let total: usize = order.iter().map(|item| item.0).sum();
    let most = order.len().min(1 + total / WORTH).min(MOST);
    let threads = if most < 2 { 1 } else { cores().min(most) };
    let next = AtomicUsize::new(0);
    let run = || {
        while let Some(&(_, i)) = order.get(next.fetch_add(1, Relaxed)) {
            work(i);
        }
    };
    crate::threads::run(threads, &run);
}
