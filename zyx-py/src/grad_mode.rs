//! Whether what Python is given keeps its history: the mode of `no_grad` and its relatives.
//!
//! Rust has no such mode: [`zyx::Tensor::detach`] cuts one history. Here every result of a call is
//! detached on its way out while the mode is off, so whatever is computed in such a block is constant
//! to what comes later. As in PyTorch the mode belongs to a thread.

use pyo3::prelude::*;
use std::cell::Cell;

thread_local! {
    static ENABLED: Cell<bool> = const { Cell::new(true) };
}

/// Whether results keep their history in this thread.
#[pyfunction]
pub(crate) fn is_grad_enabled() -> bool {
    ENABLED.get()
}

/// Sets the mode of this thread and tells what it was.
#[pyfunction]
fn _set_grad_enabled(mode: bool) -> bool {
    ENABLED.replace(mode)
}

/// The mode before, set again when this is dropped.
struct Before(bool);

impl Drop for Before {
    fn drop(&mut self) {
        ENABLED.set(self.0);
    }
}

/// Calls a function whose derivative is wanted, whatever the mode around it is.
pub(crate) fn enabled<T>(f: impl FnOnce() -> T) -> T {
    let _before = Before(ENABLED.replace(true));
    f()
}

/// Adds the functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(is_grad_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_set_grad_enabled, module)?)
}
