//! `zyx._core.Jit`: a function of a list of tensors that is traced once for each kind of them;
//! `_jit.py` makes functions of any arguments of it.

use crate::arguments::TensorList;
use crate::error::detached;
use crate::functional::{list, ready};
use crate::tensor::PyTensor;
use pyo3::prelude::*;
use zyx::{Jit, Result, Tensor};

type Function = Box<dyn Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync>;

/// A function of a list of tensors that gives a list of tensors.
#[pyclass(name = "Jit", module = "zyx", frozen)]
#[derive(Debug)]
pub(crate) struct PyJit(Jit<Function>);

#[pymethods]
impl PyJit {
    #[new]
    fn make(function: Py<PyAny>) -> PyJit {
        PyJit(Jit::new(Box::new(move |inputs: &[Tensor]| list(&function, inputs))))
    }

    /// The results for these tensors.
    fn __call__(&self, py: Python<'_>, inputs: TensorList) -> PyResult<Vec<PyTensor>> {
        let inputs = ready(inputs)?;
        let outputs = detached(py, || self.0.call(&inputs.list()))?;
        Ok(outputs.into_iter().map(PyTensor::new).collect())
    }

    /// For how many kinds of inputs plans are kept.
    #[getter]
    fn traces(&self) -> usize {
        self.0.traces()
    }
}
