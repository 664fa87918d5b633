//! Errors and panics of Rust as exceptions of Python.
//!
//! The exceptions derive from what users of PyTorch and of NumPy each expect: a shape that does not
//! fit is a `ValueError` (NumPy) and a `RuntimeError` (PyTorch). The text is the Rust error's,
//! without the place in the Rust source. Nothing unwinds into Python: a panic, which would be a bug
//! of ours, becomes a `RuntimeError` that says so.

use crate::warnings;
use pyo3::exceptions::{PyIndexError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use std::cell::RefCell;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use zyx::internals::hal::fork;
use zyx::kernel::{LangError, Site};
use zyx::{Error, Result};

/// Name, bases and docstring of each exception of this package.
const EXCEPTIONS: [(&str, [&str; 2], &str); 5] = [
    ("ShapeError", ["ValueError", "RuntimeError"], "Shapes that do not fit."),
    ("DTypeError", ["TypeError", "RuntimeError"], "Dtypes that an operation is not defined on."),
    ("AxisError", ["IndexError", "ValueError"], "An axis that a tensor does not have."),
    ("OutOfMemoryError", ["MemoryError", "RuntimeError"], "A device without memory left."),
    (
        "KernelError",
        ["ValueError", "RuntimeError"],
        "A kernel of `zyx.kernel` that is wrong, at `filename` and `lineno`.",
    ),
];

static CLASSES: PyOnceLock<Vec<Py<PyType>>> = PyOnceLock::new();

fn classes(py: Python<'_>) -> PyResult<&'static Vec<Py<PyType>>> {
    CLASSES.get_or_try_init(py, || {
        let builtins = py.import("builtins")?;
        let make = |&(name, bases, doc): &(&str, [&str; 2], &str)| {
            let bases: PyResult<Vec<_>> =
                bases.iter().map(|base| builtins.getattr(*base)).collect();
            let members = PyDict::new(py);
            members.set_item("__module__", "zyx")?;
            members.set_item("__doc__", doc)?;
            let class =
                builtins.getattr("type")?.call1((name, PyTuple::new(py, bases?)?, members))?;
            Ok(class.cast_into::<PyType>()?.unbind())
        };
        EXCEPTIONS.iter().map(make).collect()
    })
}

/// Adds the exceptions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for ((name, ..), class) in EXCEPTIONS.iter().zip(classes(module.py())?) {
        module.add(*name, class)?;
    }
    Ok(())
}

/// An exception of one of our classes.
fn raise(py: Python<'_>, class: usize, text: String) -> PyErr {
    match classes(py) {
        Ok(classes) => PyErr::from_type(classes[class].bind(py).clone(), text),
        Err(error) => error,
    }
}

/// A `ShapeError`.
pub(crate) fn shape_error(py: Python<'_>, text: String) -> PyErr {
    raise(py, 0, text)
}

/// A `DTypeError`.
pub(crate) fn dtype_error(py: Python<'_>, text: String) -> PyErr {
    raise(py, 1, text)
}

/// A `KernelError` at a line of Python.
pub(crate) fn kernel_error(py: Python<'_>, text: String, site: &Site) -> PyErr {
    at_site(py, raise(py, 4, text), site)
}

/// The `KernelError` of a mistake.
pub(crate) fn lang_error(py: Python<'_>, error: &LangError) -> PyErr {
    kernel_error(py, error.to_string(), &error.site)
}

/// An exception with a line of Python as its attributes.
pub(crate) fn at_site(py: Python<'_>, error: PyErr, site: &Site) -> PyErr {
    let value = error.value(py);
    let set =
        value.setattr("filename", &*site.file).and_then(|()| value.setattr("lineno", site.line));
    set.err().unwrap_or(error)
}

/// The exception for an error.
pub(crate) fn exception(py: Python<'_>, error: Error) -> PyErr {
    let error = match error {
        Error::Function(raised) => match raised.downcast::<PyErr>() {
            Ok(exception) => return *exception,
            Err(other) => Error::Function(other),
        },
        // Of a file that is written in Python.
        Error::Io { source, .. } if source.get_ref().is_some_and(|inner| inner.is::<Error>()) => {
            match source.downcast::<Error>() {
                Ok(inner) => return exception(py, inner),
                Err(source) => Error::Io { what: String::new(), source },
            }
        }
        other => other,
    };
    let text = error.to_string();
    // Where in this crate it was called tells a user of Python nothing.
    let text = match text.rfind(", at ") {
        Some(at) if text[at..].contains(".rs:") => text[..at].to_owned(),
        _ => text,
    };
    match error {
        Error::Shape { reason, .. } if is_out_of_range(&reason, "axis") => raise(py, 2, text),
        Error::Shape { reason, .. } if is_out_of_range(&reason, "index") => {
            PyIndexError::new_err(text)
        }
        Error::Index { .. } => PyIndexError::new_err(text),
        Error::Kernel(wrong) => lang_error(py, &wrong),
        // Code for one backend has no line of Python.
        Error::Compile(wrong) => {
            kernel_error(py, text, &Site { file: wrong.kernel.into(), line: 0 })
        }
        Error::Shape { .. } => raise(py, 0, text),
        Error::DType { .. } => raise(py, 1, text),
        Error::Argument { .. } | Error::Format { .. } | Error::Value { .. } => {
            PyValueError::new_err(text)
        }
        Error::Io { source, .. } if source.kind() == ErrorKind::OutOfMemory => raise(py, 3, text),
        Error::Io { what, source } => io(&what, &source),
        Error::Device(full) if full.is_about_memory() => raise(py, 3, text),
        _ => PyRuntimeError::new_err(text),
    }
}

/// Whether an error is about an axis or an index that there is not; a part of a model may be named before.
fn is_out_of_range(reason: &str, what: &str) -> bool {
    let reason = match reason.strip_prefix("in `") {
        Some(within) => within.split_once("`: ").map_or(reason, |(_, reason)| reason),
        None => reason,
    };
    reason.strip_prefix(what).is_some_and(|rest| rest.starts_with(' '))
        && (reason.contains("out of range") || reason.contains("without"))
}

/// An `OSError` of the subclass that its number says, with the file it is about.
fn io(what: &str, source: &std::io::Error) -> PyErr {
    match source.raw_os_error() {
        Some(number) => PyOSError::new_err((number, source.to_string(), what.to_owned())),
        None => PyOSError::new_err(format!("{what}: {source}")),
    }
}

/// Runs `f` and turns a panic into an exception.
pub(crate) fn caught<T>(py: Python<'_>, f: impl FnOnce() -> Result<T>) -> PyResult<T> {
    given(py, catch_unwind(AssertUnwindSafe(f)))
}

/// As [`caught`], letting other threads of Python run meanwhile.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    f: impl FnOnce() -> Result<T> + Send,
) -> PyResult<T> {
    crate::signals::prepare();
    let result = py.detach(|| {
        let _inside = fork::enter();
        catch_unwind(AssertUnwindSafe(f))
    });
    given(py, result)
}

thread_local! {
    /// The exception of a signal handler that ran during a call of this thread.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Runs signal handlers; whether one raised an exception, which the call then raises.
pub(crate) fn is_interrupted() -> bool {
    if RAISED.with_borrow(Option::is_some) {
        return true;
    }
    // A handler may fork.
    let _outside = fork::leave();
    Python::attach(|py| py.check_signals().err()).is_some_and(raise_later)
}

/// Has the call that this thread is in raise an exception at its end.
pub(crate) fn raise_later(error: PyErr) -> bool {
    RAISED.set(Some(error));
    true
}

/// The exception of a signal handler that ran during the call, or the warnings that the call caused.
#[inline(never)]
fn raise_waiting(py: Python<'_>) -> PyResult<()> {
    RAISED.take().map_or_else(|| warnings::give(py), Err)
}

/// The result of a call, or the exception or warnings raised during it.
fn given<T>(py: Python<'_>, result: std::thread::Result<Result<T>>) -> PyResult<T> {
    raise_waiting(py)?;
    match result {
        Ok(Ok(x)) => Ok(x),
        Ok(Err(error)) => Err(refused(py, error)),
        Err(panic) => Err(PyRuntimeError::new_err(message(&*panic))),
    }
}

/// The exception of a call that ended with an error.
#[inline(never)]
fn refused(py: Python<'_>, error: Error) -> PyErr {
    // The work may have ended for a signal, whose handler runs now that no lock is held.
    match py.check_signals() {
        Ok(()) => exception(py, error),
        Err(raised) => raised,
    }
}

#[inline(never)]
fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    format!("internal error of zyx, please report it: {text}")
}
