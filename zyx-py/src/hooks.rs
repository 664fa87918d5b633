//! Hooks of tensors: functions of Python that see the gradient of a tensor on its way, or that of a leaf when `backward`
//! has collected it. `python/zyx/_tensor_hooks.py` keeps the functions and has PyTorch's errors. Also the parts of
//! `utils.checkpoint` that Python lacks.

use crate::arguments::{Argument, TensorArg};
use crate::error::caught;
use crate::functional::in_python;
use crate::leaf::Leaf;
use crate::lists::List;
use crate::tensor::PyTensor;
use pyo3::prelude::*;
use std::cell::Cell;
use std::sync::Arc;
use zyx::Tensor;
use zyx::internals::autodiff::hooks::{GradientHook, register as register_hook};
use zyx::internals::autodiff::recompute::{inputs as recompute_inputs, parameters};

thread_local! {
    /// Whether gradients keep their history, so that they can be differentiated again.
    static KEEPS_HISTORY: Cell<bool> = const { Cell::new(true) };
}

/// The mode before, set again when this is dropped.
pub(crate) struct Before(bool);

impl Drop for Before {
    fn drop(&mut self) {
        KEEPS_HISTORY.set(self.0);
    }
}

/// Hooks are given gradients with a history, or without, until the result is dropped.
pub(crate) fn keeping_history(mode: bool) -> Before {
    Before(KEEPS_HISTORY.replace(mode))
}

/// Calls the function that runs after the gradient of a leaf was collected.
pub(crate) fn after_collecting(leaf: &Arc<Leaf>) -> zyx::Result<()> {
    let Some(hook) = leaf.after_collecting() else { return Ok(()) };
    in_python(|py| hook.bind(py).call0().map(drop))
}

/// Sets whether hooks are given gradients with a history, in this thread; tells how it was.
#[pyfunction]
fn _set_hook_history(mode: bool) -> bool {
    KEEPS_HISTORY.replace(mode)
}

/// A function that was given to `_on_gradient`.
#[pyclass(name = "_GradientHook", module = "zyx._core", frozen)]
#[derive(Debug)]
struct PyHook(GradientHook);

#[pymethods]
impl PyHook {
    /// Takes the function away.
    fn remove(&self) {
        self.0.remove();
    }
}

#[pymethods]
impl PyTensor {
    /// Calls a function with each gradient of this tensor: it gives another one or `None`. With `is_last` after the others.
    #[pyo3(signature = (function, is_last=false))]
    fn _on_gradient(&self, function: Py<PyAny>, is_last: bool) -> PyHook {
        let hook = register_hook(&self.tensor(), is_last, move |gradient: &Tensor| {
            let keeps_history = KEEPS_HISTORY.get();
            in_python(|py| {
                let given = if keeps_history { gradient.clone() } else { gradient.detach() };
                let found = function.bind(py).call1((PyTensor::new(given),))?;
                Ok(found.cast::<PyTensor>().ok().map(|found| found.get().tensor()))
            })
        });
        if let Some(leaf) = self.as_leaf() {
            leaf.keep_hook(hook);
        }
        PyHook(hook)
    }

    /// The leaves that this was computed from, by their ids.
    fn _leaves(&self, py: Python<'_>) -> PyResult<Vec<(u32, PyTensor)>> {
        let t = self.tensor();
        let ids = caught(py, || Ok(parameters(&t)))?;
        let with_leaf = |id| Some((id, PyTensor::of_leaf(Leaf::known(id)?)));
        Ok(ids.into_iter().filter_map(with_leaf).collect())
    }

    /// The same values, such that a function of them is computed again, and not before this gradient is there.
    fn _again(&self, py: Python<'_>, inputs: List<TensorArg>) -> PyResult<Vec<PyTensor>> {
        let dy = self.tensor();
        let inputs = inputs.0.into_iter().map(|x| x.ready(dy.device()));
        let inputs = inputs.collect::<PyResult<Vec<_>>>()?;
        let found = caught(py, || recompute_inputs(&inputs, &dy))?;
        Ok(found.into_iter().map(PyTensor::new).collect())
    }

    /// The function that is called after `backward` has collected the gradient of this leaf.
    #[getter]
    fn _after_collecting(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.as_leaf()?.after_collecting().map(|hook| hook.clone_ref(py))
    }

    #[setter(_after_collecting)]
    fn set_after_collecting(&self, function: Py<PyAny>) {
        if let Some(leaf) = self.as_leaf() {
            leaf.set_after_collecting(function);
        }
    }
}

/// Adds the class and the function.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyHook>()?;
    module.add_function(wrap_pyfunction!(_set_hook_history, module)?)
}
