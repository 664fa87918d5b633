//! Forks of the process: a gate that keeps locks free during a fork, and a generation number that
//! tells a child from its parent.
//!
//! A child of `fork` has one thread. A lock that another thread held stays locked in the child, worker
//! threads are gone, and shared mappings are still shared with the parent. So calls into the library
//! pass a gate ([`inside`]), and a thread that forks waits until no thread is inside ([`before`],
//! [`after`]); then no lock is held. Owners of threads, shared memory or drivers compare [`generation`]
//! with the generation that they were made in.
//!
//! The gate is one atomic counter with short sleeps: the waiting lists of a system's locks do not
//! survive a fork on all systems.

use std::cell::Cell;
use std::sync::Once;
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
};
use std::time::Duration;

/// The number of threads inside, and `FORKING` while one is about to fork.
static GATE: AtomicUsize = AtomicUsize::new(0);
const FORKING: usize = 1 << (usize::BITS - 1);

static GENERATION: AtomicUsize = AtomicUsize::new(0);

/// Time between two looks at a closed gate.
const POLL: Duration = Duration::from_micros(50);

thread_local! {
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// The number of forks between the first process and this one.
pub fn generation() -> usize {
    watch();
    GENERATION.load(Relaxed)
}

/// Registers the handler that counts forks, once.
fn watch() {
    #[cfg(unix)]
    {
        extern "C" fn child() {
            GENERATION.fetch_add(1, Relaxed);
            // Threads that were inside do not exist in the child.
            GATE.store(0, Relaxed);
        }
        static WATCHED: Once = Once::new();
        WATCHED.call_once(|| {
            // SAFETY: the handler is a function of the right type that exists as long as the process; in
            // the child it stores to atomics and does nothing else.
            let _ = unsafe { libc::pthread_atfork(None, None, Some(child)) };
        });
    }
}

/// One count of the gate, until it is dropped.
#[derive(Debug)]
pub struct Inside(());

impl Inside {
    /// One more count for a thread that is inside. It may be dropped by another thread, which ends the work.
    pub fn share() -> Inside {
        GATE.fetch_add(1, AcqRel);
        Inside(())
    }

    /// Waits until the gate is open.
    fn enter() -> Inside {
        let open = |n: usize| (n & FORKING == 0).then_some(n + 1);
        while GATE.fetch_update(AcqRel, Relaxed, open).is_err() {
            std::thread::sleep(POLL);
        }
        Inside(())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        // The count of a child begins at 0, so it may be 0 here.
        let _ = GATE.fetch_update(AcqRel, Relaxed, |n| (n & !FORKING > 0).then(|| n - 1));
    }
}

/// Restores `IS_INSIDE` when it is dropped.
struct During(bool);

impl Drop for During {
    fn drop(&mut self) {
        IS_INSIDE.set(self.0);
    }
}

/// Calls a function that may take locks. A fork waits until it has returned.
pub fn inside<T>(f: impl FnOnce() -> T) -> T {
    if IS_INSIDE.get() {
        return f();
    }
    let _inside = Inside::enter();
    let _during = During(IS_INSIDE.replace(true));
    f()
}

/// Calls a function of the user from within [`inside`]. The caller holds no lock. The function may run for long and may fork.
pub fn outside<T>(f: impl FnOnce() -> T) -> T {
    /// Enters again, also if the function panics.
    struct Back;
    impl Drop for Back {
        fn drop(&mut self) {
            std::mem::forget(Inside::enter());
        }
    }
    if !IS_INSIDE.get() {
        return f();
    }
    let _during = During(IS_INSIDE.replace(false));
    drop(Inside(()));
    let _back = Back;
    f()
}

/// Waits until no thread is inside, and lets none in until [`after`].
pub fn before() {
    watch();
    while GATE.fetch_or(FORKING, AcqRel) & FORKING != 0 {
        std::thread::sleep(POLL);
    }
    while GATE.load(Acquire) != FORKING {
        std::thread::sleep(POLL);
    }
}

/// Opens the gate again after a fork, in the parent and in the child.
pub fn after() {
    GATE.fetch_and(!FORKING, AcqRel);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize};

    #[test]
    fn nobody_is_inside_while_the_gate_is_closed() {
        let (done, count) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !done.load(Relaxed) {
                        inside(|| {
                            count.fetch_add(1, AcqRel);
                            // A function of the user is outside.
                            count.fetch_sub(1, AcqRel);
                            outside(|| assert_eq!(inside(|| 3), 3));
                            count.fetch_add(1, AcqRel);
                            std::thread::yield_now();
                            count.fetch_sub(1, AcqRel);
                        });
                    }
                });
            }
            for _ in 0..50 {
                before();
                let were = count.load(Acquire);
                std::thread::sleep(POLL);
                let are = count.load(Acquire);
                after();
                assert_eq!((were, are), (0, 0));
            }
            let of_a_panic = std::panic::catch_unwind(|| inside(|| outside(|| panic!("as asked"))));
            assert!(of_a_panic.is_err() && !IS_INSIDE.get());
            done.store(true, Relaxed);
        });
        assert_eq!(GATE.load(Acquire), 0);
    }
}
