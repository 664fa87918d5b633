//! Files of tensors.

use crate::arguments::Float8Arg;
use crate::device::DeviceArg;
use crate::error::detached;
use crate::outcome::run;
use crate::tensor::named;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::collections::BTreeMap;
use std::path::PathBuf;
use zyx::nn::safetensors;

/// The tensors of a safetensors file, by name.
#[pyfunction]
#[pyo3(signature = (file, device=None))]
fn load_safetensors(
    py: Python<'_>,
    file: PathBuf,
    device: Option<DeviceArg>,
) -> PyResult<Py<PyAny>> {
    let device = device.unwrap_or_default().open()?;
    run(py, || safetensors::load(&file, &device))
}

/// Writes tensors to a safetensors file, which is replaced at once when it is complete. `float8`
/// gives names of those that are kept as eight-bit floats, with `e4m3` or `e5m2` for each.
#[pyfunction]
#[pyo3(signature = (tensors, file, float8=None))]
fn save_safetensors(
    py: Python<'_>,
    tensors: &Bound<'_, PyDict>,
    file: PathBuf,
    float8: Option<BTreeMap<String, Float8Arg>>,
) -> PyResult<()> {
    let tensors = named(tensors)?;
    let float8 = float8.unwrap_or_default().into_iter().map(|(name, arg)| (name, arg.0)).collect();
    detached(py, || safetensors::save_float8(&tensors, &float8, &file))
}

/// The tensors in the bytes of a safetensors file, by name.
#[pyfunction]
#[pyo3(signature = (data, device=None))]
fn safetensors_from_bytes(
    py: Python<'_>,
    data: Vec<u8>,
    device: Option<DeviceArg>,
) -> PyResult<Py<PyAny>> {
    let device = device.unwrap_or_default().open()?;
    run(py, || safetensors::from_bytes(&data, &device))
}

/// The bytes of a safetensors file with these tensors.
#[pyfunction]
fn safetensors_to_bytes<'py>(
    py: Python<'py>,
    tensors: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyBytes>> {
    let tensors = named(tensors)?;
    Ok(PyBytes::new(py, &detached(py, || safetensors::to_bytes(&tensors))?))
}

/// Adds the functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(load_safetensors, module)?)?;
    module.add_function(wrap_pyfunction!(save_safetensors, module)?)?;
    module.add_function(wrap_pyfunction!(safetensors_from_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(safetensors_to_bytes, module)?)
}
