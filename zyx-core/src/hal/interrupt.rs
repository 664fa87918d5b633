//! Interrupts: whether the user wants long work to end.
//!
//! The core installs no signal handlers. A program that has some, as Python has, gives [`set_interrupt`] a function
//! that tells whether a signal arrived. Loops of the host that hold no lock call [`is_interrupted`] and end with an
//! error. Planning, compiling and launching hold locks, under which the program's function must not run: they are
//! an [`attempt`], which a signal handler stops by [`request_stop`]. It fails, or is made again if the function of
//! [`handle_signals`] says that the program goes on.

use super::DeviceKind;
use std::cell::Cell;
use std::sync::OnceLock;
use std::thread;
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

/// How long a wait that may be stopped sleeps at most before it looks whether it is.
pub const STOPS_AFTER: Duration = Duration::from_millis(50);

const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// How long a wait asks its device without a pause: a kernel often ends microseconds later, and a pause takes at
/// least 50 us.
const UNPAUSED: Duration = Duration::from_millis(10);

/// Asks a device until it is done; `false` if the attempt that waits is stopped before.
///
/// A wait for a GPU occupies a processor for its first 10 ms, as waits of the drivers do, and pauses between questions
/// afterwards. A device that computes on the processors of the host needs them, so a wait for it pauses from the start.
/// A pause is 1/64 of the time waited so far, from 20 us to 1 ms.
///
/// # Errors
/// Those of `is_done`.
pub fn ask_until<E>(
    kind: DeviceKind,
    mut is_done: impl FnMut() -> Result<bool, E>,
) -> Result<bool, E> {
    let (watch, start) = (Watch::here(), Instant::now());
    let unpaused = if kind == DeviceKind::Gpu { UNPAUSED } else { Duration::ZERO };
    while !is_done()? {
        if watch.is_stopped() {
            return Ok(false);
        }
        let waited = start.elapsed();
        match waited < unpaused {
            true => std::hint::spin_loop(),
            false => thread::sleep((waited / 64).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)),
        }
    }
    Ok(true)
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
