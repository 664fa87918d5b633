//! Leaves: parameters and tensors made with `requires_grad`, which collect gradients in `.grad`.
//!
//! `backward` asks the core for the gradients of all parameters that a loss was computed from
//! ([`Tensor::param_gradients`]) and finds the leaf of each by its id. Nothing is computed then: `.grad` is a
//! pending tensor, and a step of an optimizer computes losses, gradients and new values as one plan. A second
//! `backward` that adds to a gradient computes the one before first, unless `retain_graph=True` says that both
//! share their graph; so sums over several batches need the memory of one.

use crate::arguments::{Argument, TensorArg};
use crate::error::{caught, detached, shape_error};
use crate::hooks;
use crate::storage::{Alias, Storage};
use crate::tensor::PyTensor;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use zyx::internals::autodiff::hooks::GradientHook;
use zyx::{DType, Param, Result, Tensor};

/// A parameter and the gradient that was collected for it.
#[derive(Debug)]
pub(crate) struct Leaf {
    pub(crate) param: Param,
    id: u32,
    grad: Mutex<Option<Grad>>,
    /// How often the gradient was replaced.
    grad_version: AtomicU64,
    /// The alias that shares memory with its views, if there were any.
    alias: Mutex<Option<Arc<Alias>>>,
    hooks: Mutex<LeafHooks>,
}

/// Functions that see the gradients of a leaf.
#[derive(Debug, Default)]
struct LeafHooks {
    on_gradient: Vec<GradientHook>,
    after_collecting: Option<Arc<Py<PyAny>>>,
}

impl Drop for Leaf {
    fn drop(&mut self) {
        let hooks = self.hooks.get_mut().unwrap_or_else(PoisonError::into_inner);
        hooks.on_gradient.drain(..).for_each(GradientHook::remove);
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Grad {
    value: Held,
    /// What is computed with the step that uses the gradient: losses and norms.
    pub(crate) along: Arc<Vec<Tensor>>,
    /// Whether what is added shares its graph.
    retained: bool,
}

/// A gradient: shared with the tensors that Python was given for it, if there are any.
#[derive(Clone, Debug)]
enum Held {
    Value(Tensor),
    Shared(Arc<Alias>),
}

impl Grad {
    pub(crate) fn value(&self) -> Tensor {
        match &self.value {
            Held::Value(tensor) => tensor.clone(),
            Held::Shared(alias) => alias.tensor(),
        }
    }

    /// With another value, which the tensors that share it have too.
    fn changed(self, value: Tensor, along: Arc<Vec<Tensor>>) -> Result<Grad> {
        let value = match self.value {
            Held::Value(_) => Held::Value(value),
            Held::Shared(alias) => {
                alias.write_unchecked(&value, false)?;
                Held::Shared(alias)
            }
        };
        Ok(Grad { value, along, ..self })
    }
}

/// The leaves that Python holds, in the order of the ids of their parameters.
static LEAVES: Mutex<Vec<(u32, Weak<Leaf>)>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Leaf {
    fn new(param: Param, id: u32) -> Arc<Leaf> {
        let (grad, alias, hooks) = (Mutex::default(), Mutex::default(), Mutex::default());
        Arc::new(Leaf { param, id, grad, grad_version: AtomicU64::new(0), alias, hooks })
    }

    /// The alias of the whole parameter, made at the first call.
    pub(crate) fn alias(&self, scope: u64) -> Arc<Alias> {
        let mut alias = lock(&self.alias);
        // After a conversion it has a storage of another dtype.
        if let Some(alias) = alias.as_ref().filter(|alias| alias.follows(&self.param)) {
            return alias.clone();
        }
        alias.insert(Alias::of_param(&self.param, scope)).clone()
    }

    /// Gives it a storage that a tensor had, if that was the whole of it: whether it was.
    pub(crate) fn adopt(&self, alias: &Arc<Alias>) -> bool {
        let Some(alias) = alias.become_param(&self.param) else { return false };
        *lock(&self.alias) = Some(alias);
        true
    }

    /// Takes its storage from it: other aliases keep the values there are now.
    fn leave(&self) {
        let alias = lock(&self.alias).take();
        if let Some(alias) = alias {
            alias.leave_param();
        }
    }

    /// Removes a hook when the leaf goes.
    pub(crate) fn keep_hook(&self, hook: GradientHook) {
        lock(&self.hooks).on_gradient.push(hook);
    }

    pub(crate) fn after_collecting(&self) -> Option<Arc<Py<PyAny>>> {
        lock(&self.hooks).after_collecting.clone()
    }

    pub(crate) fn set_after_collecting(&self, function: Py<PyAny>) {
        let old = lock(&self.hooks).after_collecting.replace(Arc::new(function));
        // It is dropped without the lock, since that may run code of users.
        drop(old);
    }

    /// The leaf of a parameter.
    pub(crate) fn of(param: Param) -> Arc<Leaf> {
        let id = param.id();
        if id == u32::MAX {
            // Ids are used up, this is that of several.
            return Leaf::new(param, id);
        }
        let mut leaves = lock(&LEAVES);
        let mut place = leaves.partition_point(|(known, _)| *known < id);
        if let Some(leaf) = leaves.get(place).filter(|(known, _)| *known == id) {
            match leaf.1.upgrade() {
                Some(leaf) => return leaf,
                None => drop(leaves.remove(place)),
            }
        }
        // Those that went are forgotten before the list would have to grow.
        if leaves.len() == leaves.capacity() {
            leaves.retain(|(_, leaf)| leaf.strong_count() > 0);
            place = leaves.partition_point(|(known, _)| *known < id);
        }
        let leaf = Leaf::new(param, id);
        leaves.insert(place, (id, Arc::downgrade(&leaf)));
        leaf
    }

    /// The leaf with an id, if Python holds it.
    pub(crate) fn known(id: u32) -> Option<Arc<Leaf>> {
        let leaves = lock(&LEAVES);
        let place = leaves.binary_search_by_key(&id, |(known, _)| *known).ok()?;
        leaves[place].1.upgrade()
    }

    /// The leaf that holds the gradient: another's if the parameter was tied meanwhile.
    fn current(self: &Arc<Leaf>) -> Arc<Leaf> {
        if self.param.id() == self.id { self.clone() } else { Leaf::of(self.param.clone()) }
    }

    pub(crate) fn grad(self: &Arc<Leaf>) -> Option<Grad> {
        lock(&self.current().grad).clone()
    }

    pub(crate) fn set_grad(self: &Arc<Leaf>, grad: Option<Grad>) {
        let current = self.current();
        let old = std::mem::replace(&mut *lock(&current.grad), grad);
        current.grad_version.fetch_add(1, Relaxed);
        // What it owns is freed without the lock.
        drop(old);
    }
}

/// Value and gradient of a leaf at some time.
#[derive(Debug)]
pub(crate) struct Snapshot {
    leaf: Arc<Leaf>,
    value: Tensor,
    version: u64,
    grad: Option<Grad>,
    grad_version: u64,
}

impl Snapshot {
    /// All leaves that Python holds.
    pub(crate) fn all() -> Vec<Snapshot> {
        let leaves: Vec<Arc<Leaf>> =
            lock(&LEAVES).iter().filter_map(|(_, leaf)| leaf.upgrade()).collect();
        let one = |leaf: Arc<Leaf>| Snapshot {
            value: leaf.param.tensor(),
            version: leaf.param.version(),
            grad: leaf.grad(),
            grad_version: leaf.current().grad_version.load(Relaxed),
            leaf,
        };
        leaves.into_iter().map(one).collect()
    }

    /// The storage and the value before, if the value was replaced.
    pub(crate) fn replaced(&self) -> Option<(Arc<Storage>, Tensor)> {
        let is_replaced = self.leaf.param.version() != self.version;
        is_replaced.then(|| (self.leaf.alias(0).storage().clone(), self.value.clone()))
    }

    /// Takes back a gradient that was collected since; whether one was.
    pub(crate) fn restore_grad(&self) -> bool {
        let is_other = self.leaf.current().grad_version.load(Relaxed) != self.grad_version;
        if is_other {
            self.leaf.set_grad(self.grad.clone());
        }
        is_other
    }
}

/// The gradients collected for parameters.
pub(crate) fn grads(params: &[Param]) -> Vec<Option<Grad>> {
    params.iter().map(|param| Leaf::of(param.clone()).grad()).collect()
}

/// What was to be computed with these gradients and is not there yet.
fn along<'a>(grads: impl Iterator<Item = &'a Grad>) -> Vec<Tensor> {
    let mut kinds: Vec<&Arc<Vec<Tensor>>> = Vec::new();
    for grad in grads {
        // Gradients of one call have the same.
        if !kinds.iter().any(|kind| Arc::ptr_eq(kind, &grad.along)) {
            kinds.push(&grad.along);
        }
    }
    kinds.into_iter().flat_map(|kind| kind.iter()).filter(|x| !x.is_realized()).cloned().collect()
}

/// What is to be computed with a step that uses these gradients: also all state whose new value is pending.
pub(crate) fn with_step(grads: &[Option<Grad>]) -> Vec<Tensor> {
    let mut all = along(grads.iter().flatten());
    all.extend(pending_state());
    all
}

/// The values of state that were not computed yet.
pub(crate) fn pending_state() -> Vec<Tensor> {
    let leaves: Vec<Arc<Leaf>> =
        lock(&LEAVES).iter().filter_map(|(_, leaf)| leaf.upgrade()).collect();
    let state = leaves.iter().filter(|leaf| !leaf.param.is_trainable());
    state.map(|leaf| leaf.param.tensor()).filter(|value| !value.is_realized()).collect()
}

/// Adds gradients to those of their leaves.
fn collect(
    loss: &Tensor,
    cotangent: &Tensor,
    retained: bool,
    history: bool,
    inputs: Option<&[Param]>,
) -> Result<()> {
    let mut found = Vec::new();
    for (id, value) in loss.param_gradients(cotangent)? {
        let leaf = Leaf::known(id);
        let wanted = inputs.is_none_or(|inputs| inputs.iter().any(|input| input.id() == id));
        if let Some(leaf) = leaf.filter(|leaf| wanted && leaf.param.is_trainable()) {
            let before = leaf.grad();
            let value = if history { value } else { value.detach() };
            found.push((leaf, value, before));
        }
    }
    let before = found.iter().filter_map(|(.., before)| before.as_ref());
    let whole: Vec<&Grad> = before.filter(|before| !before.retained).collect();
    if !whole.is_empty() {
        let values: Vec<Tensor> = whole.iter().map(|grad| grad.value()).collect();
        Tensor::realize_all(values.iter().chain(&along(whole.iter().copied())))?;
    }
    let mut beside = along(found.iter().filter_map(|(.., before)| before.as_ref()));
    beside.push(loss.clone());
    let along = Arc::new(beside);
    for (leaf, value, before) in found {
        let grad = match before {
            // With a history the sum is another tensor, as in PyTorch.
            Some(before) if !history => {
                let sum = before.value().add(value)?;
                Grad { retained, ..before.changed(sum, along.clone())? }
            }
            before => {
                let value =
                    before.map_or(Ok(value.clone()), |before| before.value().add(&value))?;
                Grad { value: Held::Value(value), along: along.clone(), retained }
            }
        };
        leaf.set_grad(Some(grad));
        hooks::after_collecting(&leaf)?;
    }
    Ok(())
}

#[pymethods]
impl PyTensor {
    /// The gradient that `backward` collected, or `None`. Only of leaves: parameters and tensors made with
    /// `requires_grad`. May be assigned.
    #[getter(grad)]
    fn read_grad(&self) -> Option<PyTensor> {
        let leaf = self.as_leaf()?;
        let mut grad = leaf.grad()?;
        let alias = match &grad.value {
            Held::Shared(alias) => alias.clone(),
            Held::Value(value) => {
                let alias = Alias::of(value, 0);
                grad.value = Held::Shared(alias.clone());
                leaf.set_grad(Some(grad));
                alias
            }
        };
        Some(PyTensor::shared(alias))
    }

    #[setter(grad)]
    fn write_grad(&self, py: Python<'_>, value: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let given = value.as_ref().and_then(|value| value.cast::<PyTensor>().ok());
        let alias =
            given.filter(|given| given.get().as_leaf().is_none()).map(|given| given.get().alias());
        let value = value.map(|value| value.extract::<TensorArg>()).transpose()?;
        let (leaf, value) = match (self.as_leaf(), value) {
            (None, None) => return Ok(()),
            (None, Some(_)) => {
                let text = "only a leaf has a gradient: a parameter or a tensor with requires_grad";
                return Err(PyTypeError::new_err(text));
            }
            (Some(leaf), None) => {
                leaf.set_grad(None);
                return Ok(());
            }
            (Some(leaf), Some(value)) => {
                let value = value.ready(&leaf.param.device())?;
                (leaf, value)
            }
        };
        if *value.shape() != leaf.param.shape() || value.dtype() != leaf.param.dtype() {
            let text = format!(
                "a gradient of {} {} for a tensor of {} {}",
                value.dtype(),
                value.shape(),
                leaf.param.dtype(),
                leaf.param.shape()
            );
            return Err(shape_error(py, text));
        }
        let before = leaf.grad().map(|grad| grad.along).unwrap_or_default();
        let value = alias.map_or(Held::Value(value), Held::Shared);
        leaf.set_grad(Some(Grad { value, along: before, retained: false }));
        Ok(())
    }

    /// The same elements without history: a write to the one changes the other.
    pub(crate) fn detach(&self) -> PyTensor {
        PyTensor::shared(self.alias().detached())
    }

    /// The elements next to each other in row-major order, stored as they are: a point at which fusion stops. The same
    /// memory if they are so already, else a copy.
    fn contiguous(&self) -> PyTensor {
        match self.is_contiguous() {
            true => PyTensor::shared(self.alias().same(Tensor::contiguous)),
            false => PyTensor::new(self.tensor().contiguous()),
        }
    }

    /// Whether the elements are next to each other in row-major order. What was computed always is.
    pub(crate) fn is_contiguous(&self) -> bool {
        self.layout().is_none_or(|layout| layout.is_contiguous())
    }

    /// The same elements without history. Assigning gives the tensor those of another, which both share then.
    #[getter(data)]
    fn read_data(&self) -> PyTensor {
        self.detach()
    }

    #[setter(data)]
    fn write_data(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let given = value.cast::<PyTensor>().ok().map(|given| given.get());
        let Some(leaf) = self.as_leaf() else {
            let value = match given {
                Some(given) => given.detach(),
                None => PyTensor::new(value.extract::<TensorArg>()?.ready(self.tensor().device())?),
            };
            return self.become_other(value);
        };
        let value = value.extract::<TensorArg>()?.ready(&leaf.param.device())?;
        let alias = given.map(|given| given.alias());
        leaf.leave();
        caught(py, || leaf.param.set(&value))?;
        if let Some(alias) = alias {
            // Of a view, and of what another parameter has, the value is copied.
            let _ = leaf.adopt(&alias);
        }
        Ok(())
    }

    /// How often the memory was written to that this tensor and its views share.
    #[getter(_version)]
    fn version(&self) -> u64 {
        self.alias().version()
    }

    /// Whether no other tensor that requires gradients was needed to make it.
    #[getter]
    fn is_leaf(&self) -> bool {
        self.as_leaf().is_some() || !self.tensor().is_tracked()
    }

    /// Adds the gradients of this number to `.grad` of every leaf that it was computed from. Nothing is
    /// computed before a gradient is read or a step uses it. `gradient` weighs the elements of what is not
    /// one number; `inputs` names the leaves if not all are wanted. With `create_graph=True` the gradients can
    /// be differentiated again; `retain_graph=True` says that the next call shares its graph.
    #[pyo3(signature = (gradient=None, retain_graph=None, create_graph=false, inputs=None))]
    fn backward(
        &self,
        py: Python<'_>,
        gradient: Option<TensorArg>,
        retain_graph: Option<bool>,
        create_graph: bool,
        inputs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let loss = self.tensor();
        if !loss.is_tracked() {
            return Err(PyRuntimeError::new_err(
                "backward: the tensor depends on nothing that requires gradients; was it computed within no_grad(), \
                 detached, or made of tensors without requires_grad=True?",
            ));
        }
        let cotangent = match gradient {
            Some(given) => given.ready(loss.device())?,
            None if loss.numel() == 1 => loss.ones_like(),
            None => {
                let text = format!(
                    "backward: a tensor of shape {} is not one number; take its mean or sum, or pass gradient=",
                    loss.shape()
                );
                return Err(shape_error(py, text));
            }
        };
        let inputs = inputs.map(some_parameters).transpose()?;
        let retained = retain_graph.unwrap_or(create_graph);
        let _mode = hooks::keeping_history(create_graph);
        detached(py, || collect(&loss, &cotangent, retained, create_graph, inputs.as_deref()))
    }
}

/// Parameters, or a single one.
fn some_parameters(given: &Bound<'_, PyAny>) -> PyResult<Vec<Param>> {
    match given.cast::<PyTensor>() {
        Ok(one) => {
            let one = pyo3::types::PyTuple::new(given.py(), [one])?;
            crate::tensor::parameters(&one.into_any())
        }
        Err(_) => crate::tensor::parameters(given),
    }
}

/// Scales the gradients of parameters so that all together have at most the p-norm `max`; the norm they had, or
/// `None` if there is no gradient. With `finite` a norm that is not finite is an error, and nothing has changed then.
#[pyfunction]
fn _clip_grads(
    py: Python<'_>,
    params: &Bound<'_, PyAny>,
    max: f64,
    p: f64,
    finite: bool,
) -> PyResult<Option<PyTensor>> {
    let (grads, values) = values_of(params)?;
    if values.iter().all(Option::is_none) {
        return Ok(None);
    }
    let norm = detached(py, || zyx::optim::total_norm(&values, p))?;
    if finite {
        // Reading the norm computes the gradients; stored, they are not computed again with the step.
        let along = along(grads.iter().map(|(_, grad)| grad));
        let all = values.iter().flatten().chain(&along).chain([&norm]);
        detached(py, || Tensor::realize_all(all))?;
        if !detached(py, || norm.is_finite().item::<bool>())? {
            let known = detached(py, || norm.cast(DType::F32).item::<f32>())?;
            let text = format!("the norm of the gradients is {known}: it cannot be limited");
            return Err(PyRuntimeError::new_err(text));
        }
    }
    clip_to(py, grads, &values, max, &norm)?;
    Ok(Some(PyTensor::new(norm)))
}

/// Scales the gradients of parameters by `max / norm` if that is less than 1.
#[pyfunction]
fn _clip_grads_to(
    py: Python<'_>,
    params: &Bound<'_, PyAny>,
    max: f64,
    norm: TensorArg,
) -> PyResult<()> {
    let (grads, values) = values_of(params)?;
    let Some((leaf, _)) = grads.first() else { return Ok(()) };
    let norm = norm.ready(&leaf.param.device())?;
    clip_to(py, grads, &values, max, &norm)
}

/// The gradients of those parameters that have one, with their leaves and apart from them.
fn values_of(params: &Bound<'_, PyAny>) -> PyResult<(Vec<(Arc<Leaf>, Grad)>, Vec<Option<Tensor>>)> {
    let leaves = some_parameters(params)?.into_iter().map(Leaf::of);
    let grads: Vec<_> = leaves.filter_map(|leaf| Some((leaf.clone(), leaf.grad()?))).collect();
    let values = grads.iter().map(|(_, grad)| Some(grad.value())).collect();
    Ok((grads, values))
}

/// Puts clipped gradients in place of their values; the norm is computed with the step that uses them.
fn clip_to(
    py: Python<'_>,
    grads: Vec<(Arc<Leaf>, Grad)>,
    values: &[Option<Tensor>],
    max: f64,
    norm: &Tensor,
) -> PyResult<()> {
    let clipped = detached(py, || zyx::optim::clip_to_norm(values, max, norm))?;
    let mut beside = along(grads.iter().map(|(_, grad)| grad));
    beside.push(norm.clone());
    let along = Arc::new(beside);
    for ((leaf, grad), value) in grads.into_iter().zip(clipped.into_iter().flatten()) {
        let grad = caught(py, || grad.changed(value, along.clone()))?;
        leaf.set_grad(Some(grad));
    }
    Ok(())
}

/// Adds the functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_clip_grads, module)?)?;
    module.add_function(wrap_pyfunction!(_clip_grads_to, module)?)
}
