//! Methods that take a function of Python: scans by it, its derivatives, its values computed again.

use crate::arguments::{Argument, TensorList, Tensors, default_device};
use crate::error::caught;
use crate::grad_mode::enabled;
use crate::lists::{List, each};
use crate::tensor::PyTensor;
use pyo3::prelude::*;
use zyx::internals::hal::fork;
use zyx::{Error, Result, Tensor};

/// Calls Python from a callback. An exception passes through Rust unchanged, as [`Error::Function`].
pub(crate) fn in_python<T>(f: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T> {
    let _outside = fork::leave();
    enabled(|| Python::attach(f)).map_err(|exception| Error::Function(Box::new(exception)))
}

fn objects(tensors: &[Tensor]) -> Vec<PyTensor> {
    tensors.iter().cloned().map(PyTensor::new).collect()
}

fn tensor(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    Ok(object.cast::<PyTensor>()?.get().tensor())
}

pub(crate) fn tensors(list: &Bound<'_, PyAny>) -> PyResult<Vec<Tensor>> {
    each(list, |x| tensor(&x))
}

/// What the function gives for tensors.
fn call(f: &Py<PyAny>, inputs: &[Tensor]) -> Result<Tensor> {
    in_python(|py| tensor(&f.bind(py).call1(pyo3::types::PyTuple::new(py, objects(inputs))?)?))
}

/// What the function gives for two lists of tensors: a list.
fn combine(f: &Py<PyAny>, x: &[Tensor], y: &[Tensor]) -> Result<Vec<Tensor>> {
    in_python(|py| tensors(&f.bind(py).call1((objects(x), objects(y)))?))
}

pub(crate) fn ready(list: TensorList) -> PyResult<Tensors> {
    list.ready(&default_device()?)
}

#[pymethods]
impl PyTensor {
    /// Running combination of tuples of tensors along an axis by an associative function of two
    /// lists, which gives a list.
    #[staticmethod]
    #[pyo3(signature = (combine, tensors, axis=0, reverse=false))]
    fn associative_scan(
        py: Python<'_>,
        combine: Py<PyAny>,
        tensors: TensorList,
        axis: isize,
        reverse: bool,
    ) -> PyResult<Vec<PyTensor>> {
        let (tensors, f) = (ready(tensors)?, combine);
        let by = |x: &[Tensor], y: &[Tensor]| self::combine(&f, x, y);
        let found = caught(py, || Tensor::associative_scan(by, &tensors.list(), axis, reverse))?;
        Ok(objects(&found))
    }

    /// The value of a function and its derivative along tangents.
    #[staticmethod]
    fn jvp(
        py: Python<'_>,
        f: Py<PyAny>,
        inputs: TensorList,
        tangents: TensorList,
    ) -> PyResult<(PyTensor, PyTensor)> {
        let (inputs, tangents) = (ready(inputs)?, ready(tangents)?);
        let by = |x: &[Tensor]| call(&f, x);
        let (y, dy) = caught(py, || Tensor::jvp(by, &inputs.list(), &tangents.list()))?;
        Ok((PyTensor::new(y), PyTensor::new(dy)))
    }

    /// A function of each example: an axis of each input counts them, or none.
    #[staticmethod]
    #[pyo3(signature = (f, inputs, in_axes, out_axis=0))]
    fn vmap(
        py: Python<'_>,
        f: Py<PyAny>,
        inputs: TensorList,
        in_axes: List<Option<isize>>,
        out_axis: isize,
    ) -> PyResult<PyTensor> {
        let inputs = ready(inputs)?;
        let by = |x: &[Tensor]| call(&f, x);
        caught(py, || Tensor::vmap(by, &inputs.list(), &in_axes.0, out_axis)).map(PyTensor::new)
    }

    /// The value of a function, computed again for gradients instead of being kept.
    #[staticmethod]
    fn checkpoint(py: Python<'_>, f: Py<PyAny>, inputs: TensorList) -> PyResult<PyTensor> {
        let inputs = ready(inputs)?;
        let by = move |x: &[Tensor]| call(&f, x);
        caught(py, || Tensor::checkpoint(by, &inputs.list())).map(PyTensor::new)
    }

    /// Compares the gradients of a function with difference quotients; an error says where they differ.
    #[staticmethod]
    #[pyo3(signature = (f, inputs, tolerance=1e-6))]
    fn gradcheck(py: Python<'_>, f: Py<PyAny>, inputs: TensorList, tolerance: f64) -> PyResult<()> {
        let inputs = ready(inputs)?;
        caught(py, || Tensor::gradcheck(|x| call(&f, x), &inputs.list(), tolerance))
    }
}
