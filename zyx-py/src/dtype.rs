//! `zyx.DType`: the types of elements, by our names and NumPy's.

use crate::arguments::{Argument, Plain, TensorArg, default_device};
use crate::tensor::PyTensor;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyType};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use zyx::DType;

/// The place in [`DType::ALL`] of the dtype of floats when none is named; none: `f32`.
static DEFAULT_FLOAT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The dtype of floats when none is named.
pub(crate) fn default_float() -> DType {
    DType::ALL.get(DEFAULT_FLOAT.load(Relaxed)).copied().unwrap_or(DType::F32)
}

/// Sets the dtype of floats when none is named.
#[pyfunction]
fn _set_default_float(dtype: DTypeArg) {
    let place = DType::ALL.iter().position(|&known| known == dtype.or(DType::F32));
    DEFAULT_FLOAT.store(place.unwrap_or(usize::MAX), Relaxed);
}

/// The dtype of floats when none is named.
#[pyfunction]
fn _default_float() -> PyDType {
    PyDType(default_float())
}

/// The type of a tensor's elements; there is one object for each.
#[pyclass(name = "DType", module = "zyx", frozen, eq, hash)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PyDType(pub(crate) DType);

/// NumPy's name and the letters of its array interface, for each dtype.
pub(crate) fn numpy_names(dtype: DType) -> (&'static str, &'static str) {
    match dtype {
        DType::Bool => ("bool", "|b1"),
        DType::U8 => ("uint8", "|u1"),
        DType::U16 => ("uint16", "<u2"),
        DType::U32 => ("uint32", "<u4"),
        DType::U64 => ("uint64", "<u8"),
        DType::I8 => ("int8", "|i1"),
        DType::I16 => ("int16", "<i2"),
        DType::I32 => ("int32", "<i4"),
        DType::I64 => ("int64", "<i8"),
        DType::F16 => ("float16", "<f2"),
        DType::BF16 => ("bfloat16", "<V2"),
        DType::F32 => ("float32", "<f4"),
        DType::F64 => ("float64", "<f8"),
    }
}

/// The dtype of a name: `f32`, `float32`, or with the name of a module before it.
pub(crate) fn by_name(name: &str) -> Option<DType> {
    let name = name.rsplit('.').next().unwrap_or(name);
    let alias = match name {
        "float" => "float32",
        "half" => "float16",
        "double" => "float64",
        "int" | "long" => "int64",
        "bool_" => "bool",
        other => other,
    };
    let known = |d: &DType| d.name() == alias || numpy_names(*d).0 == alias;
    DType::ALL.iter().copied().find(known)
}

#[pymethods]
impl PyDType {
    #[new]
    fn make(of: DTypeArg) -> PyDType {
        PyDType(of.or(DType::F32))
    }

    /// NumPy's name, as in `float32`.
    #[getter]
    fn name(&self) -> &'static str {
        numpy_names(self.0).0
    }

    /// Bytes of one element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.0.size()
    }

    /// Bits of one element; `bool` is stored in eight.
    #[getter]
    fn bits(&self) -> usize {
        self.0.bits()
    }

    /// Whether it holds floating-point numbers.
    #[getter]
    fn is_floating_point(&self) -> bool {
        self.0.is_float()
    }

    /// Whether it holds integers; `bool` does not.
    #[getter]
    fn is_integer(&self) -> bool {
        self.0.is_int()
    }

    /// Whether it holds negative numbers.
    #[getter]
    fn is_signed(&self) -> bool {
        self.0.is_signed() || self.0.is_float()
    }

    /// The dtype of a result of operands of these two.
    fn promote(&self, other: DTypeArg) -> PyDType {
        PyDType(self.0.promote(other.or(self.0)))
    }

    /// A tensor converted to this dtype.
    fn __call__(&self, x: TensorArg) -> PyResult<PyTensor> {
        let x = x.ready(&default_device()?)?;
        Ok(PyTensor::new(x.cast(self.0)))
    }

    fn __repr__(&self) -> String {
        format!("zyx.{}", self.name())
    }

    fn __str__(&self) -> &'static str {
        self.0.name()
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyType>, (&'static str,))> {
        Ok((py.get_type::<PyDType>().unbind(), (self.0.name(),)))
    }
}

/// A dtype: an object of ours or NumPy's, a name, or `bool`, `int`, `float`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DTypeArg(Option<DType>);

impl DTypeArg {
    /// A dtype that is named.
    pub(crate) fn of(dtype: DType) -> DTypeArg {
        DTypeArg(Some(dtype))
    }

    /// What was given, or this.
    pub(crate) fn or(self, default: DType) -> DType {
        self.0.unwrap_or(default)
    }

    pub(crate) fn parse(name: &str) -> PyResult<DTypeArg> {
        let unknown = || PyTypeError::new_err(format!("'{name}' is not a dtype of zyx"));
        by_name(name).map(|d| DTypeArg(Some(d))).ok_or_else(unknown)
    }
}

impl FromPyObject<'_, '_> for DTypeArg {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<DTypeArg> {
        if let Ok(dtype) = object.cast::<PyDType>() {
            return Ok(DTypeArg(Some(dtype.get().0)));
        }
        if let Ok(name) = object.cast::<PyString>() {
            return DTypeArg::parse(name.to_str()?);
        }
        if let Ok(class) = object.cast::<PyType>() {
            let py = object.py();
            let of = match () {
                () if class.is(py.get_type::<PyBool>()) => DType::Bool,
                () if class.is(py.get_type::<PyInt>()) => DType::I64,
                () if class.is(py.get_type::<PyFloat>()) => DType::F32,
                // `numpy.float32` and its like.
                () => return DTypeArg::parse(&class.name()?.to_string_lossy()),
            };
            return Ok(DTypeArg(Some(of)));
        }
        let name = object.getattr("name").and_then(|name| name.extract::<String>());
        DTypeArg::parse(&name.or_else(|_| object.str().map(|text| text.to_string()))?)
    }
}

impl Plain for DTypeArg {
    type Plain = DType;
    fn plain(self) -> PyResult<DType> {
        Ok(self.or(default_float()))
    }
}

/// Adds the class and an object for each dtype under both of its names.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyDType>()?;
    module.add_function(wrap_pyfunction!(_set_default_float, module)?)?;
    module.add_function(wrap_pyfunction!(_default_float, module)?)?;
    for &dtype in DType::ALL {
        let object = Py::new(module.py(), PyDType(dtype))?;
        module.add(dtype.name(), &object)?;
        module.add(numpy_names(dtype).0, &object)?;
    }
    Ok(())
}
