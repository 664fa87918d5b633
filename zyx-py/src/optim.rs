//! Optimizers of Rust as Python sees them. The functions that make them come from the stub
//! `optim/__init__.pyi`.

#![allow(
    clippy::too_many_arguments,
    clippy::needless_update,
    reason = "constructors of Python take many options, those of Rust may get more"
)]

use crate::arguments::*;
use crate::device::DeviceArg;
use crate::error::detached;
use crate::outcome::run;
use crate::tensor::{PyParameter, PyTensor, named, parameter};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, MutexGuard, PoisonError};
use zyx::optim::*;
use zyx::{Result, Tensor};

type Any = Box<dyn Optimizer + Send>;

/// An optimizer of Rust.
#[pyclass(name = "NativeOptimizer", module = "zyx._core", frozen)]
pub(crate) struct PyOptimizer(Mutex<Any>);

impl PyOptimizer {
    fn make(optimizer: impl Optimizer + Send + 'static) -> PyResult<PyOptimizer> {
        Ok(PyOptimizer(Mutex::new(Box::new(optimizer))))
    }

    fn lock(&self) -> MutexGuard<'_, Any> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works with the optimizer. Who waits for its lock does not hold the interpreter's.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut Any) -> Result<T> + Send,
    ) -> PyResult<T> {
        detached(py, || f(&mut self.lock()))
    }
}

#[pymethods]
impl PyOptimizer {
    /// One step down the gradient of a loss.
    fn step(&self, py: Python<'_>, loss: &Bound<'_, PyTensor>) -> PyResult<()> {
        let loss = loss.get().tensor();
        self.with(py, |optimizer| optimizer.step(&loss))
    }

    /// The gradients of a loss for the parameters.
    fn gradients(&self, py: Python<'_>, loss: &Bound<'_, PyTensor>) -> PyResult<Py<PyAny>> {
        let loss = loss.get().tensor();
        run(py, || self.lock().gradients(&loss))
    }

    /// Applies gradients, and computes `along` with them.
    #[pyo3(signature = (gradients, along=None))]
    fn apply(
        &self,
        py: Python<'_>,
        gradients: Vec<Option<TensorArg>>,
        along: Option<TensorList>,
    ) -> PyResult<()> {
        let device = default_device()?;
        let ready = |x: Option<TensorArg>| x.map(|x| x.ready(&device)).transpose();
        let gradients: PyResult<Vec<Option<Tensor>>> = gradients.into_iter().map(ready).collect();
        let gradients = gradients?;
        let along = along.map(|along| along.ready(&device)).transpose()?;
        let along = along.map_or_else(Vec::new, |along| along.0);
        self.with(py, |optimizer| optimizer.apply(&gradients, &along.iter().collect::<Vec<_>>()))
    }

    #[getter]
    fn learning_rate(&self, py: Python<'_>) -> PyResult<f64> {
        self.with(py, |optimizer| Ok(optimizer.learning_rate()))
    }

    #[setter]
    fn set_learning_rate(&self, py: Python<'_>, rate: f64) -> PyResult<()> {
        self.with(py, |optimizer| {
            optimizer.set_learning_rate(rate);
            Ok(())
        })
    }

    /// The parameters, in the order of gradients and state.
    fn parameters(&self, py: Python<'_>) -> PyResult<Vec<Py<PyParameter>>> {
        let all = self.with(py, |optimizer| Ok(optimizer.parameters().to_vec()))?;
        all.into_iter().map(|param| parameter(py, param)).collect()
    }

    /// Everything that is needed to continue training later, by name.
    fn state(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        run(py, || Ok::<_, zyx::Error>(self.lock().state()))
    }

    /// Continues from what `state` gave.
    fn load_state(&self, py: Python<'_>, state: &Bound<'_, PyDict>) -> PyResult<()> {
        let state = named(state)?;
        self.with(py, |optimizer| optimizer.load_state(&state))
    }
}

/// The gradients scaled so that all together have at most the norm `max`, and the norm they had.
#[pyfunction]
#[pyo3(name = "clip_norm")]
fn clip_norm_of(
    py: Python<'_>,
    gradients: Vec<Option<TensorArg>>,
    max: f64,
) -> PyResult<Py<PyAny>> {
    let gradients = ready(gradients)?;
    run(py, || clip_norm(&gradients, max))
}

/// The gradients with every element limited to `-max ..= max`.
#[pyfunction]
#[pyo3(name = "clip_value")]
fn clip_value_of(
    py: Python<'_>,
    gradients: Vec<Option<TensorArg>>,
    max: f64,
) -> PyResult<Py<PyAny>> {
    let gradients = ready(gradients)?;
    run(py, || clip_value(&gradients, max))
}

fn ready(gradients: Vec<Option<TensorArg>>) -> PyResult<Vec<Option<Tensor>>> {
    let device = default_device()?;
    gradients.into_iter().map(|x| x.map(|x| x.ready(&device)).transpose()).collect()
}

/// Adds the class, the constructors and clipping.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyOptimizer>()?;
    module.add_function(wrap_pyfunction!(clip_norm_of, module)?)?;
    module.add_function(wrap_pyfunction!(clip_value_of, module)?)?;
    constructors(module)
}

include!(concat!(env!("OUT_DIR"), "/optimizers.rs"));
