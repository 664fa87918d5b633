//! Writes: what in-place methods and operators do with a value that was computed.
//!
//! Every method `name_` is the method `name`, whose result is written by [`PyTensor::_write`]; the table is
//! `python/zyx/_writes.py`. So in-place methods have the arguments, errors and gradients of the others.

use crate::arguments::{Argument, OperandArg, either, required};
use crate::error::{dtype_error, shape_error};
use crate::tensor::PyTensor;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use zyx::{DType, Tensor};

/// Whether results of one dtype may be written to a tensor of another.
fn can_cast(from: DType, to: DType) -> bool {
    match () {
        () if to == DType::Bool => from == DType::Bool,
        () if from.is_float() => to.is_float(),
        () => true,
    }
}

impl PyTensor {
    /// Writes a result, which has to have the shape of this tensor and a dtype that can become its own.
    #[inline(never)]
    pub(crate) fn write_result(&self, py: Python<'_>, t: &Tensor, found: &Tensor) -> PyResult<()> {
        if found.shape() != t.shape() {
            let (to, from) = (t.shape(), found.shape());
            let text = format!("output with shape {to} doesn't match the broadcast shape {from}");
            return Err(shape_error(py, text));
        }
        let (to, from) = (t.dtype(), found.dtype());
        if !can_cast(from, to) {
            let text = format!("result type {from} can't be cast to the desired output type {to}");
            return Err(dtype_error(py, text));
        }
        if found.device() != t.device() {
            let text =
                format!("the tensor is on {} and its new value on {}", t.device(), found.device());
            return Err(PyRuntimeError::new_err(text));
        }
        self.write(py, &found.cast(to))
    }
}

#[pymethods]
impl PyTensor {
    /// Writes a result, which has to have the shape of this tensor and a dtype that can become its own. Gives the tensor.
    fn _write<'py>(
        slf: Bound<'py, PyTensor>,
        found: &Bound<'py, PyTensor>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let (t, found) = (slf.get().tensor(), found.get().tensor());
        slf.get().write_result(slf.py(), &t, &found)?;
        Ok(slf)
    }

    /// Writes the elements of another tensor or a number, broadcast and converted. Gives the tensor.
    #[pyo3(signature = (src=None, non_blocking=false, *, other=None))]
    fn copy_<'py>(
        slf: Bound<'py, PyTensor>,
        src: Option<OperandArg>,
        non_blocking: bool,
        other: Option<OperandArg>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let (here, _) = (slf.get().tensor().device().clone(), non_blocking);
        let src = required("copy_", "src", either("copy_", "src", "other", src, other)?)?;
        slf.get().fill(slf.py(), src.ready(&here)?)?;
        Ok(slf)
    }

    /// Cuts the tensor off its history: no gradient flows through what it was computed from. Gives the tensor.
    fn detach_<'py>(slf: Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyTensor>> {
        match slf.get().param() {
            Some(param) => param.set_trainable(false),
            None => slf.get().alias().forget_history(slf.py())?,
        }
        Ok(slf)
    }

    /// Becomes another tensor, as `squeeze_` becomes a view of what it was. Gives the tensor.
    fn _become<'py>(
        slf: Bound<'py, PyTensor>,
        other: &Bound<'py, PyTensor>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let alias = other.get().alias();
        slf.get().become_other(PyTensor::shared(alias))?;
        Ok(slf)
    }
}
