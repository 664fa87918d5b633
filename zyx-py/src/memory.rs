//! Data out: NumPy arrays, lists and numbers of Python.
//!
//! [`Memory`] is what NumPy reads: an object with an `__array_interface__`. Where a device's memory
//! is the host's, the array shares it and is read-only: a write to the tensor makes new memory; elsewhere it holds
//! a copy.

use crate::dtype::numpy_names;
use crate::error::detached;
use crate::lists::list;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use zyx::{Class, DType, HostView, Scalar, Tensor};

/// Bytes of a tensor that Python objects look into.
pub(crate) enum Bytes {
    Own(Vec<u8>),
    Shared(HostView),
}

impl Bytes {
    /// Those of a tensor, computed if need be.
    pub(crate) fn of(py: Python<'_>, tensor: &Tensor, copy: bool) -> PyResult<Bytes> {
        detached(py, || {
            if !copy && let Some(view) = tensor.host_view()? {
                return Ok(Bytes::Shared(view));
            }
            tensor.to_bytes().map(Bytes::Own)
        })
    }

    /// Where they are.
    pub(crate) fn address(&self) -> usize {
        match self {
            Bytes::Own(bytes) => bytes.as_ptr() as usize,
            Bytes::Shared(view) => view.as_slice().as_ptr() as usize,
        }
    }
}

/// Memory that NumPy can be given.
#[pyclass(name = "Memory", module = "zyx._core", frozen)]
pub(crate) struct Memory {
    bytes: Bytes,
    shape: Vec<usize>,
    dtype: DType,
}

#[pymethods]
impl Memory {
    /// What NumPy's array interface says about it.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let is_shared = matches!(self.bytes, Bytes::Shared(_));
        dict.set_item("version", 3)?;
        dict.set_item("shape", PyTuple::new(py, &self.shape)?)?;
        dict.set_item("typestr", numpy_names(self.dtype).1)?;
        dict.set_item("data", (self.bytes.address(), is_shared))?;
        Ok(dict)
    }
}

/// A NumPy array of a tensor's elements.
pub(crate) fn array<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    copy: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let (bytes, dtype) = (Bytes::of(py, tensor, copy)?, tensor.dtype());
    let memory = Memory { bytes, shape: tensor.shape().to_vec(), dtype };
    let array = py.import("numpy")?.call_method1("asarray", (memory,))?;
    if !numpy_names(dtype).1.contains('V') {
        return Ok(array);
    }
    // NumPy knows these through another package alone.
    let Ok(types) = py.import("ml_dtypes") else {
        let text = format!("NumPy has no {dtype}: install ml_dtypes, or cast to float32 first");
        return Err(PyTypeError::new_err(text));
    };
    array.call_method1("view", (types.getattr(numpy_names(dtype).0)?,))
}

/// A number of Python.
pub(crate) fn number(py: Python<'_>, x: Scalar) -> PyResult<Py<PyAny>> {
    match x.dtype().class() {
        Class::Bool => x.to_bool().into_py_any(py),
        Class::Float => x.to_f64().into_py_any(py),
        Class::Unsigned | Class::Signed => x.to_i128().into_py_any_number(py),
    }
}

/// Integers of up to 65 bits, without the conversion of 128 bits that the stable ABI makes slow.
trait Wide {
    fn into_py_any_number(self, py: Python<'_>) -> PyResult<Py<PyAny>>;
}

impl Wide for i128 {
    fn into_py_any_number(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match i64::try_from(self) {
            Ok(x) => x.into_py_any(py),
            Err(_) => (self as u64).into_py_any(py),
        }
    }
}

/// The elements of a tensor in a list.
pub(crate) fn flat(py: Python<'_>, tensor: &Tensor) -> PyResult<Py<PyAny>> {
    let bytes = detached(py, || tensor.to_bytes())?;
    level(py, &[tensor.numel()], tensor.dtype(), &bytes)
}

/// The only element of a tensor.
pub(crate) fn item(py: Python<'_>, tensor: &Tensor) -> PyResult<Scalar> {
    if tensor.numel() != 1 {
        let text =
            format!("item: {} elements are not one (shape {})", tensor.numel(), tensor.shape());
        return Err(crate::error::shape_error(py, text));
    }
    let bytes = detached(py, || tensor.to_bytes())?;
    Ok(Scalar::read_all(tensor.dtype(), &bytes)[0])
}

/// The elements as lists within lists, a number for a tensor without axes.
pub(crate) fn nested(py: Python<'_>, tensor: &Tensor) -> PyResult<Py<PyAny>> {
    let bytes = detached(py, || tensor.to_bytes())?;
    level(py, tensor.shape().dims(), tensor.dtype(), &bytes)
}

fn level(py: Python<'_>, dims: &[usize], dtype: DType, data: &[u8]) -> PyResult<Py<PyAny>> {
    let Some((&n, inner)) = dims.split_first() else {
        return number(py, Scalar::read_all(dtype, data)[0]);
    };
    if inner.is_empty() {
        let pieces = data.chunks(1024 * dtype.size());
        let scalars = pieces.flat_map(|piece| Scalar::read_all(dtype, piece));
        return Ok(list(py, scalars.map(|x| number(py, x)))?.into_any().unbind());
    }
    let each = inner.iter().product::<usize>() * dtype.size();
    let parts = (0..n).map(|i| level(py, inner, dtype, &data[i * each..(i + 1) * each]));
    Ok(list(py, parts)?.into_any().unbind())
}
