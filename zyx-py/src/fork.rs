//! `os.fork`: it waits until no thread is inside a call of zyx, so a child finds all locks free.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use zyx::internals::hal::fork;

#[pyfunction]
fn before_fork(py: Python<'_>) {
    // Threads that are inside may need the interpreter to leave.
    py.detach(fork::before);
}

#[pyfunction]
fn after_fork() {
    fork::after();
}

/// Has Python call these functions around each fork, where there are any.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let Ok(register) = py.import("os")?.getattr("register_at_fork") else { return Ok(()) };
    let hooks = PyDict::new(py);
    hooks.set_item("before", wrap_pyfunction!(before_fork, module)?)?;
    hooks.set_item("after_in_parent", wrap_pyfunction!(after_fork, module)?)?;
    hooks.set_item("after_in_child", wrap_pyfunction!(after_fork, module)?)?;
    register.call((), Some(&hooks)).map(drop)
}
