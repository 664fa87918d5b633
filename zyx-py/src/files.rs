//! Files of tensors.

use crate::arguments::{Argument, Float8Arg, Size, TensorArg, default_device};
use crate::device::DeviceArg;
use crate::error::detached;
use crate::functional::in_python;
use crate::lists::{self, RawBytes, bytes};
use crate::outcome::run;
use crate::tensor::named;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use zyx::io::{npy, npz, pytorch};
use zyx::nn::safetensors;

/// The tensors of a safetensors file, or of a model in several, by name.
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

/// An object of Python with `write`.
struct Written(Py<PyAny>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // An object of Python for each piece.
        let piece = &bytes[..bytes.len().min(PIECE_BYTES)];
        let write = |py: Python<'_>| {
            let n = self.0.bind(py).call_method1("write", (lists::bytes(py, piece)?,))?;
            Ok(n.extract().unwrap_or(piece.len()).min(piece.len()))
        };
        in_python(write).map_err(io::Error::other)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Maximum size of the pieces for an object with `write`.
const PIECE_BYTES: usize = 1 << 20;

/// Writes tensors as a safetensors file to an object with `write`.
#[pyfunction]
fn _write_safetensors(
    py: Python<'_>,
    tensors: &Bound<'_, PyDict>,
    file: Py<PyAny>,
) -> PyResult<()> {
    let tensors = named(tensors)?;
    detached(py, || safetensors::write_to(&tensors, &mut Written(file)))
}

/// The tensors in the bytes of a file of PyTorch, by name.
#[pyfunction]
#[pyo3(signature = (data, device=None))]
fn _pytorch_from_bytes(
    py: Python<'_>,
    data: RawBytes,
    device: Option<DeviceArg>,
) -> PyResult<Py<PyAny>> {
    let device = device.unwrap_or_default().open()?;
    run(py, || pytorch::from_bytes(&data.0, &device))
}

/// The tensors in the bytes of a safetensors file, by name.
#[pyfunction]
#[pyo3(signature = (data, device=None))]
fn safetensors_from_bytes(
    py: Python<'_>,
    data: RawBytes,
    device: Option<DeviceArg>,
) -> PyResult<Py<PyAny>> {
    let device = device.unwrap_or_default().open()?;
    run(py, || safetensors::from_bytes(&data.0, &device))
}

/// The bytes of a safetensors file with these tensors.
#[pyfunction]
fn safetensors_to_bytes<'py>(
    py: Python<'py>,
    tensors: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyBytes>> {
    let tensors = named(tensors)?;
    bytes(py, &detached(py, || safetensors::to_bytes(&tensors))?)
}

/// The tensor of a file of NumPy, `.npy`.
#[pyfunction]
#[pyo3(signature = (file, device=None))]
fn load_npy(py: Python<'_>, file: PathBuf, device: Option<DeviceArg>) -> PyResult<Py<PyAny>> {
    let device = device.unwrap_or_default().open()?;
    run(py, || npy::load(&file, &device))
}

/// Writes a tensor to a file that NumPy reads, `.npy`.
#[pyfunction]
fn save_npy(py: Python<'_>, tensor: TensorArg, file: PathBuf) -> PyResult<()> {
    let tensor = tensor.ready(&default_device()?)?;
    detached(py, || npy::save(&tensor, &file))
}

/// The tensors of an archive of NumPy, `.npz`, by name; unpacked they have at most `limit` bytes, 1
/// GiB or 16 times the archive if none is given.
#[pyfunction]
#[pyo3(signature = (file, device=None, *, limit=None))]
fn load_npz(
    py: Python<'_>,
    file: PathBuf,
    device: Option<DeviceArg>,
    limit: Option<Size>,
) -> PyResult<Py<PyAny>> {
    let device = device.unwrap_or_default().open()?;
    run(py, || match limit {
        Some(limit) => npz::load_at_most(&file, limit.0, &device),
        None => npz::load(&file, &device),
    })
}

/// The tensors of a state dict that PyTorch saved, `.pt` or `.bin`, by name; they have at most
/// `limit` bytes, 1 GiB or 16 times the file if none is given.
#[pyfunction]
#[pyo3(signature = (file, device=None, *, limit=None))]
fn load_pytorch(
    py: Python<'_>,
    file: PathBuf,
    device: Option<DeviceArg>,
    limit: Option<Size>,
) -> PyResult<Py<PyAny>> {
    let device = device.unwrap_or_default().open()?;
    run(py, || match limit {
        Some(limit) => pytorch::load_at_most(&file, limit.0, &device),
        None => pytorch::load(&file, &device),
    })
}

/// Writes tensors to an archive that NumPy reads, `.npz`.
#[pyfunction]
fn save_npz(py: Python<'_>, tensors: &Bound<'_, PyDict>, file: PathBuf) -> PyResult<()> {
    let tensors = named(tensors)?;
    detached(py, || npz::save(&tensors, &file))
}

/// Adds the functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(load_npy, module)?)?;
    module.add_function(wrap_pyfunction!(save_npy, module)?)?;
    module.add_function(wrap_pyfunction!(load_npz, module)?)?;
    module.add_function(wrap_pyfunction!(save_npz, module)?)?;
    module.add_function(wrap_pyfunction!(load_pytorch, module)?)?;
    module.add_function(wrap_pyfunction!(load_safetensors, module)?)?;
    module.add_function(wrap_pyfunction!(save_safetensors, module)?)?;
    module.add_function(wrap_pyfunction!(_write_safetensors, module)?)?;
    module.add_function(wrap_pyfunction!(_pytorch_from_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(safetensors_from_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(safetensors_to_bytes, module)?)
}
