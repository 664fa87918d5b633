//! What a call gives, as objects of Python.

use crate::error::{caught, detached};
use crate::lists::{bytes, list};
use crate::tensor::PyTensor;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::collections::BTreeMap;
use zyx::{BatchNorm, Error, Result, Shape, Tensor};

/// A value that Python can be given.
pub(crate) trait Give: Send {
    fn give(self, py: Python<'_>) -> PyResult<Py<PyAny>>;
}

/// A value, or a value or error.
pub(crate) trait Outcome {
    type Value: Give;
    fn outcome(self) -> Result<Self::Value>;
}

impl<T: Give> Outcome for Result<T, Error> {
    type Value = T;
    fn outcome(self) -> Result<T> {
        self
    }
}

macro_rules! infallible {
    ($($type:ty)*) => {$(
        impl Outcome for $type {
            type Value = $type;
            fn outcome(self) -> Result<$type> {
                Ok(self)
            }
        }
    )*};
}

infallible!(Tensor bool usize f64 i64 String Vec<Tensor> (Tensor, Tensor));

impl Give for Tensor {
    fn give(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        PyTensor::new(self).into_py_any(py)
    }
}

impl Give for Vec<u8> {
    fn give(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(bytes(py, &self)?.into_any().unbind())
    }
}

impl Give for Shape {
    fn give(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(PyTuple::new(py, self.dims())?.into_any().unbind())
    }
}

macro_rules! plain {
    ($($type:ty)*) => {$(
        impl Give for $type {
            fn give(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
                self.into_py_any(py)
            }
        }
    )*};
}

plain!(() bool usize u64 i64 f64 String);

macro_rules! lists {
    ($($item:ty)*) => {$(
        impl Give for Vec<$item> {
            fn give(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
                Ok(list(py, self.into_iter().map(|x| x.give(py)))?.into_any().unbind())
            }
        }
    )*};
}

lists!(Tensor Option<Tensor> usize i64 f64 bool String Vec<usize>);

macro_rules! tuples {
    ($(($($item:ident)*))*) => {$(
        impl<$($item: Give),*> Give for ($($item,)*) {
            #[allow(non_snake_case, reason = "a variable for each type")]
            fn give(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
                let ($($item,)*) = self;
                let items = [$($item.give(py)?),*];
                Ok(PyTuple::new(py, items)?.into_any().unbind())
            }
        }
    )*};
}

tuples!((A B) (A B C) (A B C D));

impl<T: Give> Give for Option<T> {
    fn give(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.map_or_else(|| Ok(py.None()), |x| x.give(py))
    }
}

impl Give for BTreeMap<String, Tensor> {
    fn give(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let dict = PyDict::new(py);
        for (name, tensor) in self {
            dict.set_item(name, tensor.give(py)?)?;
        }
        Ok(dict.into_any().unbind())
    }
}

impl Give for BatchNorm {
    fn give(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        (self.output, self.mean, self.var).give(py)
    }
}

/// Calls into zyx, other threads of Python running meanwhile. Hundreds of functions call this, so what
/// each of them compiles to is the call alone: the rest is there once for each kind of outcome.
pub(crate) fn run<O: Outcome>(py: Python<'_>, f: impl FnOnce() -> O + Send) -> PyResult<Py<PyAny>> {
    let mut f = Some(f);
    run_once(py, &mut || f.take().map(|f| f()))
}

#[inline(never)]
fn run_once<O: Outcome>(
    py: Python<'_>,
    f: &mut (dyn FnMut() -> Option<O> + Send),
) -> PyResult<Py<PyAny>> {
    detached(py, || f().map(Outcome::outcome).transpose())?.give(py)
}

/// A tensor with one axis at least, which a method can be given.
pub(crate) fn lift(py: Python<'_>, t: Tensor) -> PyResult<Tensor> {
    match t.rank() {
        0 => caught(py, || t.reshape([1])),
        _ => Ok(t),
    }
}

/// Without the axis that [`lift`] added: a tensor, or each of a tuple.
pub(crate) fn lower(
    py: Python<'_>,
    lifted: bool,
    found: PyResult<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let found = found?;
    let whole = found.bind(py);
    if !lifted {
        return Ok(found);
    }
    if let Ok(items) = whole.cast::<PyTuple>() {
        let items: PyResult<Vec<_>> =
            items.iter().map(|item| lower(py, true, Ok(item.unbind()))).collect();
        return Ok(PyTuple::new(py, items?)?.into_any().unbind());
    }
    match whole.cast::<PyTensor>() {
        Ok(tensor) if tensor.get().tensor().rank() == 1 => {
            let tensor = tensor.get().tensor();
            PyTensor::new(caught(py, || tensor.reshape(()))?).into_py_any(py)
        }
        _ => Ok(found),
    }
}

/// What a call gives as a leaf that keeps its history, if that is asked for.
pub(crate) fn wished(
    py: Python<'_>,
    requires_grad: bool,
    found: PyResult<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let found = found?;
    if !requires_grad {
        return Ok(found);
    }
    PyTensor::leaf(found.bind(py).cast::<PyTensor>()?.get().tensor(), true)?.into_py_any(py)
}

/// Calls into zyx with the interpreter's lock held: for what returns at once.
pub(crate) fn run_attached<O: Outcome>(
    py: Python<'_>,
    f: impl FnOnce() -> O,
) -> PyResult<Py<PyAny>> {
    let mut f = Some(f);
    run_once_attached(py, &mut || f.take().map(|f| f()))
}

#[inline(never)]
fn run_once_attached<O: Outcome>(
    py: Python<'_>,
    f: &mut dyn FnMut() -> Option<O>,
) -> PyResult<Py<PyAny>> {
    caught(py, || f().map(Outcome::outcome).transpose())?.give(py)
}
