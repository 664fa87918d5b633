//! Interrupts: whether the user wants a long loop of the host to end.
//!
//! The library installs no signal handlers. A program that has some, as Python has, gives [`set_interrupt`] a function
//! that tells whether a signal arrived; loops of the host whose length a file or a value decides call
//! [`is_interrupted`] and end with an error.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

static ASK: OnceLock<fn() -> bool> = OnceLock::new();

/// How often a thread asks: asking may mean waiting for a lock of the program.
const INTERVAL: Duration = Duration::from_millis(50);

thread_local! {
    static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Sets the function that tells whether the user wants this thread to stop. Only the first call counts.
pub fn set_interrupt(ask: fn() -> bool) {
    let _ = ASK.set(ask);
}

/// The error of a loop that the user ended. Readers would try again after `ErrorKind::Interrupted`.
pub fn interrupted() -> std::io::Error {
    std::io::Error::other("interrupted")
}

/// Whether the user wants this thread to stop. Asking takes the time of reading a clock, so each step of a loop may.
pub fn is_interrupted() -> bool {
    let Some(ask) = ASK.get() else { return false };
    let now = Instant::now();
    if LAST.get().is_some_and(|last| now - last < INTERVAL) {
        return false;
    }
    LAST.set(Some(now));
    ask()
}
