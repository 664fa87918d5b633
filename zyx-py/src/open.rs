//! Files that are opened first and of which tensors are read when they are asked for.

use crate::device::DeviceArg;
use crate::dtype::PyDType;
use crate::error::detached;
use crate::lists::list;
use crate::outcome::{Give, run};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use zyx::Shape;
use zyx::io::gguf::{Gguf, Value};
use zyx::nn::safetensors::{self, LazyFile};

/// A safetensors file of which the directory alone was read.
#[pyclass(name = "SafetensorsFile", module = "zyx", frozen)]
pub(crate) struct PySafetensors(LazyFile);

/// A GGUF file of which the directory alone was read.
#[pyclass(name = "GgufFile", module = "zyx", frozen)]
pub(crate) struct PyGguf(Gguf);

/// Opens a safetensors file and reads its directory.
#[pyfunction]
fn open_safetensors(py: Python<'_>, file: PathBuf) -> PyResult<PySafetensors> {
    detached(py, || safetensors::open(&file)).map(PySafetensors)
}

/// Opens a GGUF file and reads its directory and metadata.
#[pyfunction]
fn open_gguf(py: Python<'_>, file: PathBuf) -> PyResult<PyGguf> {
    detached(py, || Gguf::open(&file)).map(PyGguf)
}

fn known(py: Python<'_>, name: &str, shape: Option<Shape>) -> PyResult<Py<PyAny>> {
    shape.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?.give(py)
}

#[pymethods]
impl PySafetensors {
    /// The names of the tensors.
    fn keys(&self) -> Vec<String> {
        self.0.names().map(str::to_owned).collect()
    }

    /// The shape of a tensor.
    fn shape(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        known(py, name, self.0.shape(name))
    }

    /// The dtype a tensor has when it is read.
    fn dtype(&self, name: &str) -> PyResult<PyDType> {
        self.0.dtype(name).map(PyDType).ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }

    /// Reads a tensor.
    #[pyo3(signature = (name, device=None))]
    fn load(&self, py: Python<'_>, name: &str, device: Option<DeviceArg>) -> PyResult<Py<PyAny>> {
        known(py, name, self.0.shape(name))?;
        let device = device.unwrap_or_default().open()?;
        run(py, || self.0.load(name, &device))
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        self.load(py, name, None)
    }

    fn __contains__(&self, name: &str) -> bool {
        self.0.shape(name).is_some()
    }

    fn __len__(&self) -> usize {
        self.0.names().count()
    }
}

#[pymethods]
impl PyGguf {
    /// The names of the tensors.
    fn keys(&self) -> Vec<String> {
        self.0.names().map(str::to_owned).collect()
    }

    /// What the file says about the model, by name.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (key, value) in self.0.metadata() {
            dict.set_item(key, object(py, &value)?)?;
        }
        Ok(dict)
    }

    /// The shape of a tensor.
    fn shape(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        known(py, name, self.0.shape(name))
    }

    /// Reads a tensor; a quantised one becomes `float32`.
    #[pyo3(signature = (name, device=None))]
    fn load(&self, py: Python<'_>, name: &str, device: Option<DeviceArg>) -> PyResult<Py<PyAny>> {
        known(py, name, self.0.shape(name))?;
        let device = device.unwrap_or_default().open()?;
        run(py, || self.0.load(name, &device))
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        self.load(py, name, None)
    }

    fn __contains__(&self, name: &str) -> bool {
        self.0.shape(name).is_some()
    }

    fn __len__(&self) -> usize {
        self.0.names().count()
    }
}

/// A value of the metadata as one of Python.
fn object(py: Python<'_>, value: &Value) -> PyResult<Py<PyAny>> {
    match value {
        Value::Unsigned(x) => x.into_py_any(py),
        Value::Signed(x) => x.into_py_any(py),
        Value::Float(x) => x.into_py_any(py),
        Value::Bool(x) => x.into_py_any(py),
        Value::Text(x) => x.into_py_any(py),
        Value::List(items) => {
            Ok(list(py, items.iter().map(|x| object(py, &x)))?.into_any().unbind())
        }
    }
}

/// Adds the classes and functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySafetensors>()?;
    module.add_class::<PyGguf>()?;
    module.add_function(wrap_pyfunction!(open_safetensors, module)?)?;
    module.add_function(wrap_pyfunction!(open_gguf, module)?)
}
