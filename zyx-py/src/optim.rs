//! Optimizers of Rust as Python sees them. The functions that make them come from the stub
//! `optim/__init__.pyi`.

#![allow(
    clippy::too_many_arguments,
    clippy::needless_update,
    reason = "constructors of Python take many options, those of Rust may get more"
)]

use crate::arguments::*;
use crate::device::DeviceArg;
use crate::error::{caught, detached, exception};
use crate::leaf::{grads, pending_state, with_step};
use crate::lists::List;
use crate::outcome::{Give, run};
use crate::tensor::{PyParameter, PyTensor, named, parameter};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zyx::optim::*;
use zyx::{Result, Tensor};

type Any = Box<dyn Optimizer + Send>;

/// An optimizer of Rust.
#[pyclass(name = "NativeOptimizer", module = "zyx._core", frozen)]
pub(crate) struct PyOptimizer(Arc<Mutex<Any>>);

/// One of several optimizers that step together and can be reached by themselves.
struct Shared {
    parameters: Vec<Param>,
    optimizer: Arc<Mutex<Any>>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Any> {
        self.optimizer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Optimizer for Shared {
    fn parameters(&self) -> &[Param] {
        &self.parameters
    }

    fn learning_rate(&self) -> f64 {
        self.lock().learning_rate()
    }

    fn set_learning_rate(&mut self, learning_rate: f64) {
        self.lock().set_learning_rate(learning_rate);
    }

    fn momentum(&self) -> Option<f64> {
        self.lock().momentum()
    }

    fn set_momentum(&mut self, momentum: f64) -> Result<()> {
        self.lock().set_momentum(momentum)
    }

    fn propose(&self, gradients: &[Option<Tensor>]) -> Result<Proposal> {
        self.lock().propose(gradients)
    }

    fn accept(&mut self, proposal: Proposal) -> Result<()> {
        self.lock().accept(proposal)
    }

    fn exchange(&mut self, proposal: &mut Proposal) {
        self.lock().exchange(proposal);
    }

    fn state(&self) -> BTreeMap<String, Tensor> {
        self.lock().state()
    }

    fn load_state(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        self.lock().load_state(state)
    }
}

/// Optimizers as one, whose steps are one plan.
#[pyfunction]
fn make_groups(py: Python<'_>, optimizers: List<Py<PyOptimizer>>) -> PyResult<PyOptimizer> {
    let shared = |optimizer: &Py<PyOptimizer>| -> Box<dyn Optimizer + Send + Sync> {
        let optimizer = optimizer.get();
        let parameters = optimizer.lock().parameters().to_vec();
        Box::new(Shared { parameters, optimizer: optimizer.0.clone() })
    };
    let all = optimizers.0.iter().map(shared).collect();
    PyOptimizer::make(caught(py, || Groups::new(all))?)
}

impl PyOptimizer {
    fn make(optimizer: impl Optimizer + Send + 'static) -> PyResult<PyOptimizer> {
        Ok(PyOptimizer(Arc::new(Mutex::new(Box::new(optimizer)))))
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
        let mut along = pending_state();
        along.push(loss.get().tensor());
        self.with(py, |optimizer| {
            let gradients = optimizer.gradients(&along[along.len() - 1])?;
            if gradients.iter().all(Option::is_none) {
                let reason = "the loss depends on none of the parameters".to_owned();
                return Err(crate::create::refuse("step", reason));
            }
            optimizer.apply(&gradients, &along.iter().collect::<Vec<_>>())
        })
    }

    /// One step by the gradients that `backward` collected.
    fn step_collected(&self, py: Python<'_>) -> PyResult<()> {
        let grads = grads(self.lock().parameters());
        let along = with_step(&grads);
        let values: Vec<Option<Tensor>> =
            grads.into_iter().map(|grad| grad.map(|grad| grad.value())).collect();
        if values.iter().all(Option::is_none) {
            return Ok(());
        }
        self.with(py, |optimizer| optimizer.apply(&values, &along.iter().collect::<Vec<_>>()))
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
        gradients: List<Option<TensorArg>>,
        along: Option<TensorList>,
    ) -> PyResult<()> {
        let device = default_device()?;
        let ready = |x: Option<TensorArg>| x.map(|x| x.ready(&device)).transpose();
        let gradients: PyResult<Vec<Option<Tensor>>> = gradients.0.into_iter().map(ready).collect();
        let gradients = gradients?;
        let along = along.map(|along| along.ready(&device)).transpose()?;
        let mut along = along.map_or_else(Vec::new, |along| along.0);
        along.extend(pending_state());
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

    /// Changes momentum or the first of `betas`; whether that was possible without other state.
    fn set_momentum(&self, py: Python<'_>, momentum: f64) -> PyResult<bool> {
        self.with(py, |optimizer| Ok(optimizer.set_momentum(momentum).is_ok()))
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
    gradients: List<Option<TensorArg>>,
    max: f64,
) -> PyResult<Py<PyAny>> {
    let gradients = ready(gradients)?;
    run(py, || clip_norm(&gradients, max))
}

/// The p-norm of all elements of several tensors, or `None` if there is no tensor.
#[pyfunction]
fn _total_norm(
    py: Python<'_>,
    tensors: List<Option<TensorArg>>,
    p: f64,
) -> PyResult<Option<PyTensor>> {
    let tensors = ready(tensors)?;
    if tensors.iter().all(Option::is_none) {
        return Ok(None);
    }
    Ok(Some(PyTensor::new(detached(py, || total_norm(&tensors, p))?)))
}

/// The gradients with every element limited to `-max ..= max`.
#[pyfunction]
#[pyo3(name = "clip_value")]
fn clip_value_of(
    py: Python<'_>,
    gradients: List<Option<TensorArg>>,
    max: f64,
) -> PyResult<Py<PyAny>> {
    let gradients = ready(gradients)?;
    run(py, || clip_value(&gradients, max))
}

fn ready(gradients: List<Option<TensorArg>>) -> PyResult<Vec<Option<Tensor>>> {
    let device = default_device()?;
    gradients.0.into_iter().map(|x| x.map(|x| x.ready(&device)).transpose()).collect()
}

/// An optimizer in a module of Python: the native part of an `Optimizer`.
fn native<'py>(optimizer: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyOptimizer>> {
    let found = optimizer.getattr("_native").and_then(|x| Ok(x.cast_into::<PyOptimizer>()?));
    found.map_err(|_| PyTypeError::new_err("needs one of the optimizers of zyx.optim"))
}

/// An optimizer over copies of halves in `float32`: what `make` gives for the copies.
#[pyfunction]
fn make_master_weights(
    py: Python<'_>,
    params: ParametersArg,
    make: &Bound<'_, PyAny>,
) -> PyResult<PyOptimizer> {
    let params = params.ready(&default_device()?)?;
    let mut raised = None;
    // The wrapper owns the optimizer from now on; the object of Python keeps one of nothing.
    let inner = |masters: Vec<Param>| -> PyResult<Any> {
        let masters: PyResult<Vec<_>> =
            masters.into_iter().map(|master| parameter(py, master)).collect();
        let made = native(&make.call1((masters?,))?)?;
        let nothing: Any =
            Box::new(Sgd::new(Vec::new(), SgdOptions::default()).map_err(|e| exception(py, e))?);
        Ok(std::mem::replace(&mut *made.get().lock(), nothing))
    };
    let made = caught(py, || {
        MasterWeights::new(params, |masters| {
            inner(masters).map_err(|error| {
                let reason = error.to_string();
                raised = Some(error);
                zyx::Error::Format { what: "optimizer".to_owned(), reason }
            })
        })
    });
    match raised {
        Some(error) => Err(error),
        None => PyOptimizer::make(made?),
    }
}

/// A running mean of parameters.
#[pyclass(name = "Ema", module = "zyx._core", frozen)]
pub(crate) struct PyEma(Mutex<Ema>);

impl PyEma {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut Ema) -> Result<T> + Send,
    ) -> PyResult<T> {
        detached(py, || f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

#[pymethods]
impl PyEma {
    /// Averages that start at the present values and keep `decay` of themselves at each update.
    #[new]
    #[pyo3(signature = (params, decay=0.999))]
    fn make(py: Python<'_>, params: ParametersArg, decay: f64) -> PyResult<PyEma> {
        let params = params.ready(&default_device()?)?;
        Ok(PyEma(Mutex::new(detached(py, || Ema::new(params, decay))?)))
    }

    /// Moves the averages towards the present values.
    fn update(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Ema::update)
    }

    /// Exchanges averages and parameters.
    fn swap(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Ema::swap)
    }

    /// The averages in the order of the parameters.
    fn averages(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.with(py, |ema| Ok(ema.averages().to_vec()))?.give(py)
    }

    /// Everything that is needed to continue later, by name.
    fn state_dict(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.with(py, |ema| Ok(ema.state()))?.give(py)
    }

    /// Continues from what `state_dict` gave for the same parameters.
    fn load_state_dict(&self, py: Python<'_>, state: &Bound<'_, PyDict>) -> PyResult<()> {
        let state = named(state)?;
        self.with(py, |ema| ema.load_state(&state))
    }
}

/// Scales losses, so that gradients in `float16` neither vanish nor overflow.
#[pyclass(name = "LossScaler", module = "zyx._core", frozen)]
pub(crate) struct PyLossScaler(Mutex<LossScaler>);

impl PyLossScaler {
    fn lock(&self) -> MutexGuard<'_, LossScaler> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyLossScaler {
    /// A scale, and its factors after gradients that overflow and after `interval` steps without.
    #[new]
    #[pyo3(signature = (scale=65536.0, backoff=0.5, growth=2.0, interval=2000))]
    fn make(scale: f64, backoff: f64, growth: f64, interval: u64) -> PyLossScaler {
        PyLossScaler(Mutex::new(LossScaler { scale, backoff, growth, interval, good_steps: 0 }))
    }

    /// What losses are multiplied with.
    #[getter]
    fn scale(&self) -> f64 {
        self.lock().scale
    }

    /// The gradients of a loss, scaled down again; `None` where one overflowed.
    fn gradients(
        &self,
        py: Python<'_>,
        optimizer: &Bound<'_, PyAny>,
        loss: &Bound<'_, PyTensor>,
    ) -> PyResult<Py<PyAny>> {
        let (optimizer, loss) = (native(optimizer)?, loss.get().tensor());
        let optimizer = optimizer.get();
        detached(py, || self.lock().gradients(&**optimizer.lock(), &loss))?.give(py)
    }

    /// One step down the gradient of a loss, unless a gradient overflows; whether it was made.
    fn step(
        &self,
        py: Python<'_>,
        optimizer: &Bound<'_, PyAny>,
        loss: &Bound<'_, PyTensor>,
    ) -> PyResult<bool> {
        let (optimizer, loss) = (native(optimizer)?, loss.get().tensor());
        let optimizer = optimizer.get();
        let made = detached(py, || self.lock().step(&mut **optimizer.lock(), &loss))?;
        let state = pending_state();
        detached(py, || Tensor::realize_all(&state)).map(|()| made)
    }
}

/// L-BFGS of Rust.
#[pyclass(name = "NativeLbfgs", module = "zyx._core", frozen)]
pub(crate) struct PyLbfgs(Mutex<Lbfgs>);

impl PyLbfgs {
    fn lock(&self) -> MutexGuard<'_, Lbfgs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyLbfgs {
    #[new]
    fn make(
        py: Python<'_>,
        params: ParametersArg,
        max_iterations: usize,
        max_evaluations: usize,
        tolerances: (f64, f64),
        history: usize,
        strong_wolfe: bool,
    ) -> PyResult<PyLbfgs> {
        let options = LbfgsOptions {
            max_iterations,
            max_evaluations: Some(max_evaluations),
            gradient_tolerance: tolerances.0,
            change_tolerance: tolerances.1,
            history,
            strong_wolfe,
            ..LbfgsOptions::default()
        };
        let params = params.plain()?;
        Ok(PyLbfgs(Mutex::new(detached(py, || Lbfgs::new(params, options))?)))
    }

    /// A step of this rate by a function that gives the loss and the gradients of all parameters.
    fn step(&self, py: Python<'_>, rate: f64, closure: Py<PyAny>) -> PyResult<()> {
        let evaluate = || -> PyResult<(Tensor, Vec<Option<Tensor>>)> {
            Python::attach(|py| {
                let found = closure.call0(py)?;
                let (loss, gradients) =
                    found.extract::<(Py<PyTensor>, Vec<Option<Py<PyTensor>>>)>(py)?;
                let value = |x: Py<PyTensor>| x.get().tensor();
                Ok((value(loss), gradients.into_iter().map(|x| x.map(value)).collect()))
            })
        };
        detached(py, || {
            let mut lbfgs = self.lock();
            lbfgs.set_learning_rate(rate);
            let mut outside = || {
                // The function may fork.
                let _outside = zyx::internals::hal::fork::leave();
                evaluate().map_err(|error| zyx::Error::Function(Box::new(error)))
            };
            lbfgs.step_with(&mut outside).map(|_| ())
        })
    }

    /// All that is needed to continue later, by name.
    fn state(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        run(py, || Ok::<_, zyx::Error>(self.lock().state()))
    }

    /// Continues from what `state` gave.
    fn load_state(&self, py: Python<'_>, state: &Bound<'_, PyDict>) -> PyResult<()> {
        let state = named(state)?;
        detached(py, || self.lock().load_state(&state))
    }
}

/// Functions of the step.
macro_rules! schedules {
    ($($(#[$doc:meta])* $name:ident $python:literal ($($argument:ident: $type:ty),*);)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            #[pyo3(name = $python)]
            fn $name(step: u64, $($argument: $type),*) -> f64 {
                schedule::$name(step, $($argument),*)
            }
        )*

        fn register_schedules(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!($name, module)?)?;)*
            Ok(())
        }
    };
}

schedules! {
    /// In a straight line to 1, reached after `steps` steps: multiply with another schedule.
    warmup "schedule_warmup" (steps: u64);
    /// In a straight line from `start` to `end` at step `steps`.
    linear "schedule_linear" (steps: u64, start: f64, end: f64);
    /// From `start` along half a cosine to `end` at step `steps`, then `end`.
    cosine "schedule_cosine" (steps: u64, start: f64, end: f64);
    /// Cosines one after the other, each `factor` times as long as the one before.
    cosine_restarts "schedule_cosine_restarts" (first: u64, factor: u64, start: f64, end: f64);
    /// `start`, multiplied by `factor` after every `every` steps.
    steps "schedule_steps" (every: u64, start: f64, factor: f64);
    /// `start`, multiplied by `factor` after every step.
    exponential "schedule_exponential" (start: f64, factor: f64);
    /// From `start` to 0 at step `steps` along a power of what is left.
    polynomial "schedule_polynomial" (steps: u64, start: f64, power: f64);
    /// Up to `most` in `warm` steps, then falling with the root of the step.
    inverse_root "schedule_inverse_root" (warm: u64, most: f64);
    /// Up to `most` in the share `rise` of the steps, then down to nothing.
    one_cycle "schedule_one_cycle" (steps: u64, rise: f64, most: f64);
}

/// `start`, multiplied by `factor` at each milestone.
#[pyfunction]
fn schedule_multistep(step: u64, milestones: List<u64>, start: f64, factor: f64) -> f64 {
    schedule::multistep(step, &milestones.0, start, factor)
}

/// Lowers the rate when a result (a loss: smaller is better) has stopped to improve.
#[pyclass(name = "Plateau", module = "zyx.optim.schedule")]
pub(crate) struct PyPlateau(schedule::Plateau);

#[pymethods]
impl PyPlateau {
    /// Starts with a rate; the other numbers are PyTorch's.
    #[new]
    #[pyo3(signature = (rate, factor=0.1, patience=10, threshold=1e-4, cooldown=0, least=0.0))]
    fn make(
        rate: f64,
        factor: f64,
        patience: u64,
        threshold: f64,
        cooldown: u64,
        least: f64,
    ) -> PyPlateau {
        let plateau = schedule::Plateau::new(rate);
        PyPlateau(schedule::Plateau { factor, patience, threshold, cooldown, least, ..plateau })
    }

    /// Takes a result into account; the rate from now on.
    fn observe(&mut self, loss: f64) -> f64 {
        self.0.observe(loss)
    }

    /// The rate now.
    #[getter]
    fn rate(&self) -> f64 {
        self.0.rate
    }

    /// The best result so far.
    #[getter]
    fn best(&self) -> f64 {
        self.0.best
    }
}

/// Adds the class, the constructors, schedules and clipping.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyOptimizer>()?;
    module.add_function(wrap_pyfunction!(make_groups, module)?)?;
    module.add_class::<PyEma>()?;
    module.add_class::<PyLbfgs>()?;
    module.add_class::<PyPlateau>()?;
    module.add_class::<PyLossScaler>()?;
    module.add_function(wrap_pyfunction!(make_master_weights, module)?)?;
    module.add_function(wrap_pyfunction!(clip_norm_of, module)?)?;
    module.add_function(wrap_pyfunction!(clip_value_of, module)?)?;
    module.add_function(wrap_pyfunction!(_total_norm, module)?)?;
    module.add_function(wrap_pyfunction!(schedule_multistep, module)?)?;
    register_schedules(module)?;
    constructors(module)
}

include!(concat!(env!("OUT_DIR"), "/optimizers.rs"));
