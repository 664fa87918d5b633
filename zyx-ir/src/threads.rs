//! Work on several threads, as many of them as the system gives.

use std::sync::{Mutex, PoisonError};

/// Calls a function on this thread and meanwhile on at most `threads - 1` others. Fewer are started where
/// the system has no more, so the calls must share the work as they come to it.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
/// let next = AtomicUsize::new(0);
/// zyx_ir::threads::run(4, &|| while next.fetch_add(1, Relaxed) < 100 {});
/// assert!(next.into_inner() >= 100);
/// ```
pub fn run(threads: usize, work: &(dyn Fn() + Sync)) {
    std::thread::scope(|scope| {
        let start = || std::thread::Builder::new().spawn_scoped(scope, work).is_ok();
        let _all = (1..threads).all(|_| start());
        work();
    });
}

/// The results of a function for each item, in the order of the items, computed as by [`run`].
///
/// ```
/// assert_eq!(zyx_ir::threads::map(2, vec![1, 2, 3], |x| x * x), [1, 4, 9]);
/// ```
pub fn map<A: Send, B: Send>(threads: usize, items: Vec<A>, f: impl Fn(A) -> B + Sync) -> Vec<B> {
    let threads = threads.min(items.len());
    let (left, done) = (Mutex::new(items.into_iter().enumerate()), Mutex::new(Vec::new()));
    run(threads, &|| {
        // The lock is held for one step of the iterator.
        let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some((i, item)) = next() {
            let result = f(item);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((i, result));
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(i, _)| *i);
    done.into_iter().map(|(_, result)| result).collect()
}
