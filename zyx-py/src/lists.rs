//! Lists of Python as vectors.
//!
//! A length that an object claims is never believed, only counted: memory is taken as items come, and
//! memory that runs out, like an iterator that does not end, is an exception.

use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyMemoryView, PyString};

/// More items than this are no list of arguments.
const MOST: usize = 1 << 20;

/// The exception for memory that is not there.
pub(crate) fn no_memory<E: std::fmt::Display>(error: E) -> PyErr {
    PyMemoryError::new_err(error.to_string())
}

/// A vector with room for `n` items.
pub(crate) fn room<T>(n: usize) -> PyResult<Vec<T>> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(n).map_err(no_memory)?;
    Ok(vector)
}

/// Appends an item.
pub(crate) fn push<T>(to: &mut Vec<T>, item: T) -> PyResult<()> {
    to.try_reserve(1).map_err(no_memory)?;
    to.push(item);
    Ok(())
}

/// What is made of each item of an iterable.
pub(crate) fn each<'py, T>(
    object: &Bound<'py, PyAny>,
    mut one: impl FnMut(Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    let mut all = Vec::new();
    let long = || PyValueError::new_err(format!("a list of more than {MOST} items"));
    // Before it is asked for any.
    if object.len().is_ok_and(|n| n > MOST) {
        return Err(long());
    }
    for item in object.try_iter()? {
        if all.len() == MOST {
            return Err(long());
        }
        push(&mut all, one(item?)?)?;
    }
    Ok(all)
}

/// A list of Python of what an iterator gives.
pub(crate) fn list<'py, T: IntoPyObject<'py>>(
    py: Python<'py>,
    items: impl Iterator<Item = PyResult<T>>,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for item in items {
        list.append(item?)?;
    }
    Ok(list)
}

/// Bytes of Python.
pub(crate) fn bytes<'py>(py: Python<'py>, content: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, content.len(), |bytes| {
        bytes.copy_from_slice(content);
        Ok(())
    })
}

/// The items of an iterable that is no string.
#[derive(Clone, Debug)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<T> FromPyObject<'_, '_> for List<T>
where
    T: for<'a, 'py> FromPyObject<'a, 'py, Error: Into<PyErr>>,
{
    type Error = PyErr;
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<List<T>> {
        if object.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err("expected a list, not a string"));
        }
        each(&object, |item| item.extract().map_err(Into::into)).map(List)
    }
}

/// Bytes: `bytes`, `bytearray`, `memoryview`, or integers from 0 to 255.
#[derive(Clone, Debug)]
pub(crate) struct RawBytes(pub(crate) Vec<u8>);

impl FromPyObject<'_, '_> for RawBytes {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<RawBytes> {
        let copied = |bytes: &[u8]| {
            let mut copy = room(bytes.len())?;
            copy.extend_from_slice(bytes);
            Ok(RawBytes(copy))
        };
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return copied(bytes.as_bytes());
        }
        if object.is_instance_of::<PyByteArray>() || object.is_instance_of::<PyMemoryView>() {
            let bytes = object.py().get_type::<PyBytes>().call1((object,))?;
            return copied(bytes.cast::<PyBytes>()?.as_bytes());
        }
        if object.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err("expected bytes, not a string"));
        }
        object.extract::<List<u8>>().map(|list| RawBytes(list.0))
    }
}
