//! Requests to stop long work, as Ctrl-C makes them.
//!
//! A signal handler calls [`request`]. Work that can be done again from its start runs in a [`Mode::attempt`]
//! of a thread that handles signals; loops within it look at a [`Watch`], which costs one relaxed load, and
//! end early. Outside of attempts and on other threads no watch reports a request.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static REQUESTED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether requests are for this thread.
    static HANDLES_SIGNALS: Cell<bool> = const { Cell::new(false) };
    /// Whether the work of this thread may end early.
    static MAY_STOP: Cell<bool> = const { Cell::new(false) };
}

/// Asks the work under way to stop. A signal handler may call it.
pub fn request() {
    REQUESTED.store(true, Relaxed);
}

/// Whether there was a request since the last call.
pub fn take_request() -> bool {
    REQUESTED.swap(false, Relaxed)
}

/// Makes this a thread that requests are for.
pub fn handle_signals() {
    HANDLES_SIGNALS.set(true);
}

/// Whether requests are for this thread.
pub fn handles_signals() -> bool {
    HANDLES_SIGNALS.get()
}

/// How the work of this thread treats requests, until this is dropped.
#[derive(Debug)]
pub struct Mode {
    earlier: bool,
}

impl Mode {
    /// Begins work that may end early with an error, to be done again from its start.
    pub fn attempt() -> Mode {
        Mode { earlier: MAY_STOP.replace(HANDLES_SIGNALS.get()) }
    }

    /// Begins a part of an attempt that is done to its end.
    pub fn whole() -> Mode {
        Mode { earlier: MAY_STOP.replace(false) }
    }
}

impl Drop for Mode {
    fn drop(&mut self) {
        MAY_STOP.set(self.earlier);
    }
}

/// Tells whether the work that it was made in is to stop. Other threads that share the work take a copy.
#[derive(Clone, Copy, Debug)]
pub struct Watch(bool);

impl Watch {
    /// The watch of this thread's work.
    pub fn here() -> Watch {
        Watch(MAY_STOP.get())
    }

    /// Begins a part of the work on another thread.
    pub fn enter(self) -> Mode {
        Mode { earlier: MAY_STOP.replace(self.0) }
    }

    /// Whether the work may be asked to stop at all.
    pub fn may_stop(self) -> bool {
        self.0
    }

    /// Whether the work is to stop. It stays so until the attempt ends.
    pub fn is_stopped(self) -> bool {
        self.0 && REQUESTED.load(Relaxed)
    }
}
