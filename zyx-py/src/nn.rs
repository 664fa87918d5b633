//! Layers of Rust as Python sees them: an object that is called, with parameters by name.
//!
//! The classes of `zyx.nn` hold one each; what makes them a module (names, modes, state dicts) is
//! written in Python, where users derive their own modules from the same base class. The functions
//! that make layers come from the stub `nn/__init__.pyi`.

#![allow(
    clippy::too_many_arguments,
    clippy::needless_update,
    reason = "constructors of Python take many options, those of Rust may get more"
)]

use crate::arguments::*;
use crate::device::DeviceArg;
use crate::dtype::DTypeArg;
use crate::error::detached;
use crate::outcome::Give;
use crate::tensor::{PyParameter, parameter};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;
use zyx::nn::{self, Forward, Init, Module};
use zyx::*;

/// The computation of a layer.
type Call = dyn Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync;

/// A layer of Rust.
#[pyclass(name = "Layer", module = "zyx._core", frozen)]
pub(crate) struct PyLayer {
    module: Arc<dyn Module + Send + Sync>,
    call: Box<Call>,
    inputs: usize,
}

impl PyLayer {
    /// Of a module that maps one tensor to one.
    fn make<L: Forward + Send + Sync + 'static>(layer: L) -> PyResult<PyLayer> {
        let layer = Arc::new(layer);
        let module = layer.clone();
        let call = Box::new(move |x: &[Tensor]| Ok(vec![layer.forward(&x[0])?]));
        Ok(PyLayer { module, call, inputs: 1 })
    }
}

#[pymethods]
impl PyLayer {
    #[pyo3(signature = (*inputs))]
    fn __call__(&self, py: Python<'_>, inputs: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        if inputs.len() != self.inputs {
            let text = format!("expected {} tensors, not {}", self.inputs, inputs.len());
            return Err(PyTypeError::new_err(text));
        }
        let device = match self.module.named_parameters().first() {
            Some((_, param)) => param.device(),
            None => default_device()?,
        };
        let inputs: PyResult<Vec<Tensor>> =
            inputs.iter().map(|x| x.extract::<TensorArg>()?.ready(&device)).collect();
        let inputs = inputs?;
        let mut found = detached(py, || (self.call)(&inputs))?;
        match (found.pop(), found.is_empty()) {
            (Some(only), true) => only.give(py),
            (last, _) => {
                found.extend(last);
                found.give(py)
            }
        }
    }

    /// Name and parameter, for each.
    fn named_parameters(&self, py: Python<'_>) -> PyResult<Vec<(String, Py<PyParameter>)>> {
        let all = self.module.named_parameters().into_iter();
        all.map(|(name, param)| Ok((name, parameter(py, param)?))).collect()
    }

    /// Switches between training and evaluation.
    fn train(&self, mode: bool) {
        if mode { self.module.train() } else { self.module.eval() }
    }
}

/// Where and how the parameters of a new layer are made.
fn init(device: Option<DeviceArg>, dtype: Option<DTypeArg>) -> PyResult<Init> {
    let device = device.unwrap_or_default().open()?;
    let dtype = dtype.unwrap_or_default().or(DType::F32);
    Ok(Init { dtype, ..Init::new(crate::rng::draw(), &device) })
}

/// Adds the constructors.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyLayer>()?;
    constructors(module)
}

include!(concat!(env!("OUT_DIR"), "/layers.rs"));
