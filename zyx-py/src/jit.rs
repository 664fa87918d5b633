//! `zyx._core.Jit`: a function of a list of tensors that is traced once for each kind of them;
//! `_jit.py` makes functions of any arguments of it.

use crate::arguments::TensorList;
use crate::create::refuse;
use crate::error::detached;
use crate::functional::{list, ready};
use crate::tensor::PyTensor;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};
use zyx::{Jit, Result, Tensor};

type Function = Box<dyn Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync>;

/// A function of a list of tensors that gives a list of tensors.
#[pyclass(name = "Jit", module = "zyx", frozen)]
#[derive(Debug)]
pub(crate) struct PyJit {
    jit: Jit<Function>,
    /// The function of Python, until the garbage collector takes it: it may refer to this object.
    function: Arc<Mutex<Option<Py<PyAny>>>>,
}

#[pymethods]
impl PyJit {
    #[new]
    fn make(function: Py<PyAny>) -> PyJit {
        let function = Arc::new(Mutex::new(Some(function)));
        let held = function.clone();
        let call = move |inputs: &[Tensor]| {
            let function = Python::attach(|py| {
                let held = held.lock().unwrap_or_else(PoisonError::into_inner);
                held.as_ref().map(|function| function.clone_ref(py))
            });
            match function {
                Some(function) => list(&function, inputs),
                None => Err(refuse("jit", "the function was collected".to_owned())),
            }
        };
        PyJit { jit: Jit::new(Box::new(call)), function }
    }

    /// The results for these tensors.
    fn __call__(&self, py: Python<'_>, inputs: TensorList) -> PyResult<Vec<PyTensor>> {
        let inputs = ready(inputs)?;
        let outputs = detached(py, || self.jit.call(&inputs.list()))?;
        Ok(outputs.into_iter().map(PyTensor::new).collect())
    }

    /// For how many kinds of inputs plans are kept.
    #[getter]
    fn traces(&self) -> usize {
        self.jit.traces()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        // The lock is held for moments by whoever has the interpreter, which now is the collector.
        match self.function.try_lock() {
            Ok(function) => visit.call(&*function),
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        let taken = self.function.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Without the lock, as what is dropped may call anything.
        drop(taken);
    }
}
