//! Interrupts: whether the user wants long work to end.
//!
//! The core installs no signal handlers. A program that has some, as Python has, gives [`set_interrupt`] a function
//! that tells whether a signal arrived. Loops of the host that hold no lock call [`is_interrupted`] and end with an
//! error. Planning, compiling and launching hold locks, under which the program's function must not run: they are
//! an [`attempt`], which a signal handler stops by [`request_stop`]. It fails, or is made again if the function of
//! [`handle_signals`] says that the program goes on.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use zyx_gemm::interrupt;
#[doc(inline)]
pub use zyx_gemm::interrupt::{Mode, Watch, handles_signals, request as request_stop};

static ASK: OnceLock<fn() -> bool> = OnceLock::new();
static ENDS: OnceLock<fn() -> bool> = OnceLock::new();

/// How often a thread asks: asking may mean waiting for a lock of the program.
const INTERVAL: Duration = Duration::from_millis(50);

thread_local! {
    static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Sets the function that tells whether the user wants this thread to stop. Only the first call counts.
pub fn set_interrupt(ask: fn() -> bool) {
    let _ = ASK.set(ask);
}

/// Makes this the thread that [`request_stop`] is for. `ends` tells whether work under way ends with an error after
/// a request. It may be called while locks are held, so it must not call the library.
pub fn handle_signals(ends: fn() -> bool) {
    let _ = ENDS.set(ends);
    interrupt::handle_signals();
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

/// One evaluation of an [`attempt`].
#[derive(Debug)]
pub(crate) struct Attempt(Mode, Watch);

impl Attempt {
    /// Begins one.
    pub(crate) fn begin() -> Attempt {
        let mode = Mode::attempt();
        Attempt(mode, Watch::here())
    }

    /// Whether it was stopped and the program goes on.
    pub(crate) fn must_repeat<T, E>(self, result: &Result<T, E>) -> bool {
        let Attempt(mode, watch) = self;
        drop(mode);
        result.is_err()
            && watch.may_stop()
            && interrupt::take_request()
            && !ENDS.get().is_some_and(|ends| ends())
    }
}

/// The result of an expression that requests stop and that changes nothing if it fails.
macro_rules! attempt {
    ($work:expr) => {
        loop {
            let attempt = $crate::hal::Attempt::begin();
            let result = $work;
            if !attempt.must_repeat(&result) {
                break result;
            }
        }
    };
}
pub(crate) use attempt;
