//! Warnings of the library as those of Python's `warnings`.
//!
//! The library may warn on any thread and while it holds locks, so what it says waits until a call gives back its
//! result.

use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// More than these are dropped: nobody reads on.
const MOST: usize = 100;

static WAITING: Mutex<Vec<String>> = Mutex::new(Vec::new());
static ANY: AtomicBool = AtomicBool::new(false);

struct Collector;

impl log::Log for Collector {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Warn && metadata.target().starts_with("zyx")
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.len() < MOST {
                waiting.push(record.args().to_string());
            }
            ANY.store(true, Relaxed);
        }
    }

    fn flush(&self) {}
}

/// From now on warnings are collected.
pub(crate) fn collect() {
    if log::set_logger(&Collector).is_ok() {
        log::set_max_level(log::LevelFilter::Warn);
    }
}

/// Gives Python what waits.
pub(crate) fn give(py: Python<'_>) -> PyResult<()> {
    if !ANY.swap(false, Relaxed) {
        return Ok(());
    }
    let waiting = std::mem::take(&mut *WAITING.lock().unwrap_or_else(PoisonError::into_inner));
    let category = py.get_type::<PyUserWarning>();
    for text in waiting {
        let text = CString::new(text.replace('\0', " "))?;
        PyErr::warn(py, &category, &text, level(py))?;
    }
    Ok(())
}

/// How far the innermost frame is that is not of this package, counted as `warnings` does.
fn level(py: Python<'_>) -> i32 {
    let name = |n: i32| -> PyResult<String> {
        let frame = py.import("sys")?.getattr("_getframe")?.call1((n,))?;
        frame.getattr("f_globals")?.get_item("__name__")?.extract()
    };
    let is_ours = |name: String| name == "zyx" || name.starts_with("zyx.");
    (0..).find(|&n| !name(n).is_ok_and(is_ours)).map_or(1, |n| n + 1)
}
