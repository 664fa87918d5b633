//! Methods that take a function of Python: scans by it, its derivatives, its values computed again.

use crate::arguments::{Argument, TensorList, Tensors, default_device};
use crate::create::refuse;
use crate::error::caught;
use crate::grad_mode::enabled;
use crate::jit::places;
use crate::lists::{List, each};
use crate::scope::Scope;
use crate::tensor::PyTensor;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::cell::RefCell;
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

/// Numbers of arguments, and the values that a function of Python has written to them.
pub(crate) type Changed = Vec<(usize, Tensor)>;

/// Calls a function with tensors that have no value. Its result, and what it has written to its arguments.
pub(crate) fn call_writing(
    py: Python<'_>,
    f: &Py<PyAny>,
    given: Given<'_>,
) -> PyResult<(Py<PyAny>, Changed)> {
    let (inputs, as_list) = given;
    let make = |x: &Tensor| Py::new(py, PyTensor::new(x.clone()));
    let arguments = inputs.iter().map(make).collect::<PyResult<Vec<_>>>()?;
    let list = PyList::new(py, &arguments)?;
    let found = match as_list {
        true => f.bind(py).call1((list,))?,
        false => f.bind(py).call1(list.to_tuple())?,
    };
    let all = arguments.iter().enumerate().filter(|(_, x)| x.get().is_written());
    let changed = all.map(|(i, x)| (i, x.get().tensor())).collect();
    Ok((found.unbind(), changed))
}

/// Arguments of a function of Python, and whether it takes them as one list.
pub(crate) type Given<'a> = (&'a [Tensor], bool);

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

    /// A function of each example: an axis of each input counts them, or none. What it writes to its arguments is written
    /// to the inputs.
    #[staticmethod]
    #[pyo3(signature = (f, inputs, in_axes, out_axis=0))]
    fn vmap(
        py: Python<'_>,
        f: Py<PyAny>,
        inputs: &Bound<'_, PyAny>,
        in_axes: List<Option<isize>>,
        out_axis: isize,
    ) -> PyResult<PyTensor> {
        let objects = each(inputs, Ok)?;
        let inputs = ready(inputs.extract()?)?;
        let written = RefCell::new(Vec::new());
        let by = |x: &[Tensor]| {
            let scope = Scope::enter("vmap");
            let (found, changed) = in_python(|py| {
                let (found, changed) = call_writing(py, &f, (x, false))?;
                Ok((tensor(found.bind(py))?, changed))
            })?;
            if !scope.undo()?.is_empty() {
                let text = "it writes to a tensor that is no argument, for all examples at once";
                return Err(refuse("vmap", text.to_owned()));
            }
            let mut all = vec![found];
            for (i, value) in changed {
                written.borrow_mut().push(i);
                all.push(value);
            }
            Ok(all)
        };
        let mut all = caught(py, || Tensor::vmap_many(by, &inputs.list(), &in_axes.0))?.into_iter();
        let first = all.next().map(|y| caught(py, || y.movedim([0], [out_axis]))).transpose()?;
        let written = written.take();
        let places = places("vmap", &objects, &written, Vec::new())?;
        for (i, value) in written.into_iter().zip(all) {
            let Some(axis) = in_axes.0[i] else {
                let text =
                    format!("vmap: tensor {i}, which is the same for all examples, is written to");
                return Err(PyRuntimeError::new_err(text));
            };
            let value = caught(py, || value.movedim([0], [axis]))?;
            if let Some((_, alias)) = places.iter().find(|(at, _)| *at == i) {
                alias.write(py, &value, false)?;
            }
        }
        let none = || PyRuntimeError::new_err("vmap: the function gave nothing");
        first.map(PyTensor::new).ok_or_else(none)
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
