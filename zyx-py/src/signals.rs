//! Ctrl-C during a call: work under way is asked to stop, then Python runs its handlers.

use pyo3::prelude::*;
use std::cell::Cell;
use std::time::{Duration, Instant};
use zyx::internals::hal::{handle_signals, handles_signals, set_interrupt};

/// How often calls make sure that the handler is in place: programs that set handlers replace it.
const INTERVAL: Duration = Duration::from_millis(50);

/// Puts the handler in place at the start of a call of the main thread.
#[inline]
pub(crate) fn prepare() {
    thread_local! {
        static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
    }
    if handles_signals() {
        let now = Instant::now();
        if LAST.get().is_none_or(|last| now - last >= INTERVAL) {
            LAST.set(Some(now));
            #[cfg(unix)]
            handler::install();
        }
    }
}

/// Has calls ask Python whether to stop. If the main thread imports the module, Ctrl-C also ends work that holds
/// locks, under which Python's handlers must not run.
pub(crate) fn register(py: Python<'_>) -> PyResult<()> {
    set_interrupt(crate::error::is_interrupted);
    // Importing it takes time. Without it no other thread was started.
    let modules = py.import("sys")?.getattr("modules")?;
    let is_main = match modules.call_method1("get", ("threading",))? {
        threading if threading.is_none() => true,
        threading => {
            threading.call_method0("current_thread")?.is(&threading.call_method0("main_thread")?)
        }
    };
    if is_main {
        handle_signals(raises_keyboard_interrupt);
        prepare();
    }
    Ok(())
}

/// Whether there was a Ctrl-C whose handler, which has not run yet, is that of Python. Other handlers run when the
/// call returns.
fn raises_keyboard_interrupt() -> bool {
    let is_default = |py: Python<'_>| -> PyResult<bool> {
        // SAFETY: this thread holds the interpreter.
        if unsafe { pyo3::ffi::PyOS_InterruptOccurred() } == 0 {
            return Ok(false);
        }
        // Python has forgotten it, so that these calls do not run its handler.
        let signal = py.import("signal")?;
        let handler = signal.call_method1("getsignal", (signal.getattr("SIGINT")?,))?;
        let is_default = handler.is(&signal.getattr("default_int_handler")?);
        // SAFETY: any thread may call it.
        unsafe { pyo3::ffi::PyErr_SetInterrupt() };
        Ok(is_default)
    };
    // An error is the exception of the handler of one more signal.
    Python::attach(|py| is_default(py).unwrap_or_else(crate::error::raise_later))
}

#[cfg(unix)]
mod handler {
    use libc::{c_int, c_void, sigaction, siginfo_t};
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    type Plain = extern "C" fn(c_int);
    type Informed = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

    /// The address of the handler that Python installs, a constant; 0 before the first call.
    static EARLIER: AtomicUsize = AtomicUsize::new(0);
    /// Whether it takes three arguments.
    static IS_INFORMED: AtomicUsize = AtomicUsize::new(0);

    /// Puts [`on_interrupt`] in front of the handler of SIGINT, if that is a function.
    pub(super) fn install() {
        // SAFETY: a structure of numbers, which the system fills.
        let mut action: sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: one pointer is null, the other points to a structure of the right type.
        let failed = unsafe { sigaction(libc::SIGINT, std::ptr::null(), &raw mut action) } != 0;
        if failed || [libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction) {
            return;
        }
        // One that another library has put in front of this one calls it, and must not be called by it.
        let known = EARLIER.load(Relaxed);
        if known != 0 && known != action.sa_sigaction {
            return;
        }
        IS_INFORMED.store((action.sa_flags & libc::SA_SIGINFO) as usize, Relaxed);
        EARLIER.store(action.sa_sigaction, Relaxed);
        action.sa_sigaction = on_interrupt as *const () as usize;
        action.sa_flags |= libc::SA_SIGINFO;
        // SAFETY: `on_interrupt` has the type that the flag says, and the library stays loaded.
        unsafe { sigaction(libc::SIGINT, &raw const action, std::ptr::null_mut()) };
    }

    extern "C" fn on_interrupt(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        let earlier = EARLIER.load(Relaxed);
        // Python notes the signal first: who is asked to stop looks whether there is one.
        if IS_INFORMED.load(Relaxed) == 0 {
            // SAFETY: the address of a handler that was installed with this type.
            unsafe { std::mem::transmute::<usize, Plain>(earlier)(signal) }
        } else {
            // SAFETY: the same.
            unsafe { std::mem::transmute::<usize, Informed>(earlier)(signal, info, context) }
        }
        zyx::internals::hal::request_stop();
    }
}
