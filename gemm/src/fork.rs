//! Forks of the process: a gate that keeps locks free during a fork, and a generation number that
//! tells a child from its parent.
//!
//! A child of `fork` has one thread. A lock that another thread held stays locked in the child, worker
//! threads are gone, and shared mappings are still shared with the parent. So calls into the library
//! pass a gate ([`enter`], [`leave`]), and a thread that forks waits until no thread is inside ([`before`],
//! [`after`]); then no lock is held. Owners of threads, shared memory or drivers compare [`generation`]
//! with the generation that they were made in.
//!
//! The gate is one atomic counter with short sleeps: the waiting lists of a system's locks do not
//! survive a fork on all systems.

use std::cell::Cell;
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{AcqRel, Relaxed},
};
use std::time::Duration;

/// The number of threads inside, with a flag from [`before`] to [`after`] and another while the gate is closed.
static GATE: AtomicUsize = AtomicUsize::new(0);
const FORKING: usize = 1 << (usize::BITS - 1);
const CLOSED: usize = 1 << (usize::BITS - 2);

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
        static WATCHED: std::sync::Once = std::sync::Once::new();
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
}

impl Drop for Inside {
    fn drop(&mut self) {
        // The count of a child begins at 0, so it may be 0 here.
        let _ =
            GATE.fetch_update(AcqRel, Relaxed, |n| (n & !(FORKING | CLOSED) > 0).then(|| n - 1));
    }
}

/// A thread that has passed the gate in one direction; dropped, it passes back.
#[derive(Debug)]
pub struct Passage {
    was_inside: bool,
}

impl Drop for Passage {
    #[inline(never)]
    fn drop(&mut self) {
        // Threads that are inside may wait for this one, so it passes until the gate is closed.
        pass(self.was_inside, CLOSED);
    }
}

/// Has this thread inside or not, and tells whether it was. To enter, it waits until none of the flags is set.
fn pass(inside: bool, flags: usize) -> bool {
    let was_inside = IS_INSIDE.replace(inside);
    if inside && !was_inside {
        let open = |n: usize| (n & flags == 0).then_some(n + 1);
        while GATE.fetch_update(AcqRel, Relaxed, open).is_err() {
            std::thread::sleep(POLL);
        }
    } else if was_inside && !inside {
        drop(Inside(()));
    }
    was_inside
}

/// Enters the gate before work that may take locks. A fork waits until the result is dropped.
#[inline(never)]
pub fn enter() -> Passage {
    Passage { was_inside: pass(true, FORKING) }
}

/// Leaves the gate before a function of the user is called, which may run for long and may fork. The caller
/// holds no lock.
#[inline(never)]
pub fn leave() -> Passage {
    Passage { was_inside: pass(false, FORKING) }
}

/// Waits until no thread is inside, and lets none in until [`after`].
pub fn before() {
    watch();
    while GATE.fetch_or(FORKING, AcqRel) & FORKING != 0 {
        std::thread::sleep(POLL);
    }
    while GATE.compare_exchange(FORKING, FORKING | CLOSED, AcqRel, Relaxed).is_err() {
        std::thread::sleep(POLL);
    }
}

/// Opens the gate again after a fork, in the parent and in the child.
pub fn after() {
    GATE.fetch_and(!(FORKING | CLOSED), AcqRel);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Acquire};

    #[test]
    fn nobody_is_inside_while_the_gate_is_closed() {
        let (done, count) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !done.load(Relaxed) {
                        let _inside = enter();
                        count.fetch_add(1, AcqRel);
                        std::thread::yield_now();
                        count.fetch_sub(1, AcqRel);
                        // A function of the user is outside, and a call from it inside.
                        let _outside = leave();
                        drop(enter());
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
            // A thread that is inside waits for one that calls a function of the user.
            let (held, waits) = (Mutex::new(()), AtomicUsize::new(0));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let _inside = enter();
                    let _held = held.lock().unwrap();
                    let _outside = leave();
                    waits.fetch_add(1, AcqRel);
                    while waits.load(Acquire) < 3 {
                        std::thread::yield_now();
                    }
                    std::thread::sleep(20 * POLL);
                });
                while waits.load(Acquire) < 1 {
                    std::thread::yield_now();
                }
                scope.spawn(|| {
                    let _inside = enter();
                    waits.fetch_add(1, AcqRel);
                    drop(held.lock().unwrap());
                });
                while waits.load(Acquire) < 2 {
                    std::thread::yield_now();
                }
                waits.fetch_add(1, AcqRel);
                before();
                after();
            });
            let of_a_panic = std::panic::catch_unwind(|| {
                let _guards = (leave(), enter());
                panic!("as asked")
            });
            assert!(of_a_panic.is_err() && !IS_INSIDE.get());
            done.store(true, Relaxed);
        });
        assert_eq!(GATE.load(Acquire), 0);
    }
}
