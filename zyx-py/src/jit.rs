//! `zyx._core.Jit`: a function of a list of tensors that is traced once for each kind of them;
//! `_jit.py` makes functions of any arguments of it.
//!
//! Tensors that the function writes to become further inputs and results. Arguments that it has written to are found after
//! the call by their versions. Other tensors are found when they were written to in a trace: they become inputs then,
//! and the function is traced again. Every call writes these results when it has all of them.

use crate::arguments::{Argument, TensorArg, default_device};
use crate::create::refuse;
use crate::error::{caught, detached};
use crate::functional::{call_writing, in_python, tensors};
use crate::lists::each;
use crate::scope::{self, Note, Scope};
use crate::storage::{Alias, Storage};
use crate::tensor::PyTensor;
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zyx::{Jit, Result, Tensor};

type Function = Box<dyn Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync>;

/// How often a function is traced again because it has written to yet another tensor.
const MAX_TRACES: usize = 16;

/// The tensors that a function writes to.
#[derive(Debug, Default)]
struct Written {
    /// Numbers of arguments.
    arguments: Vec<usize>,
    /// Tensors that are no arguments, which are inputs behind these.
    others: Vec<Note>,
    /// Such tensors that the last trace has found.
    found: Vec<Note>,
}

/// A function of a list of tensors that gives a list of tensors.
#[pyclass(name = "Jit", module = "zyx", frozen)]
#[derive(Debug)]
pub(crate) struct PyJit {
    jit: Jit<Function>,
    /// The function of Python, until the garbage collector takes it: it may refer to this object.
    function: Arc<Mutex<Option<Py<PyAny>>>>,
    written: Arc<Mutex<Written>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The results of the function, then the new values of what it has written to.
fn trace(function: &Py<PyAny>, inputs: &[Tensor], written: &Mutex<Written>) -> Result<Vec<Tensor>> {
    let others: Vec<Note> = lock(written).others.clone();
    let (arguments, values) = inputs.split_at(inputs.len() - others.len());
    let scope = Scope::enter("jit");
    let (mut outputs, changed) = in_python(|py| {
        for ((storage, saved), value) in others.iter().zip(values) {
            scope::note(py, storage)?;
            caught(py, || storage.restore(&saved.with(value.clone())))?;
        }
        let (found, changed) = call_writing(py, function, (arguments, true))?;
        Ok((tensors(found.bind(py))?, changed))
    })?;
    let mut notes = scope.undo()?;
    let mut written = lock(written);
    written.arguments = changed.iter().map(|(i, _)| *i).collect();
    outputs.extend(changed.into_iter().map(|(_, value)| value));
    for (storage, _) in &others {
        let at = notes.iter().position(|((other, _), _)| Arc::ptr_eq(other, storage));
        outputs.extend(at.map(|at| notes.remove(at).1));
    }
    written.found = notes.into_iter().map(|(note, _)| note).collect();
    match written.found.is_empty() {
        true => Ok(outputs),
        false => Err(refuse("jit", "tensors that it writes to change between calls".to_owned())),
    }
}

/// Where the new values of arguments go, by their numbers. None of them may share memory with another argument or with
/// one of these storages: within the function they did not.
pub(crate) fn places(
    op: &str,
    objects: &[Bound<'_, PyAny>],
    written: &[usize],
    mut storages: Vec<Arc<Storage>>,
) -> PyResult<Vec<(usize, Arc<Alias>)>> {
    if written.is_empty() {
        return Ok(Vec::new());
    }
    let tensors =
        objects.iter().enumerate().filter_map(|(i, x)| Some((i, x.cast::<PyTensor>().ok()?)));
    let aliases: Vec<_> = tensors.map(|(i, x)| (i, x.get().alias())).collect();
    storages.extend(aliases.iter().map(|(_, alias)| alias.storage().clone()));
    let places: Vec<_> = aliases.into_iter().filter(|(i, _)| written.contains(i)).collect();
    let is_shared = |(_, alias): &&(usize, Arc<Alias>)| {
        storages.iter().filter(|storage| Arc::ptr_eq(storage, alias.storage())).count() > 1
    };
    match places.iter().find(is_shared) {
        None => Ok(places),
        Some((i, _)) => Err(PyRuntimeError::new_err(format!(
            "{op}: tensor {i} is written to and shares memory with another argument, or with a tensor that the function \
             uses: pass a clone() of one"
        ))),
    }
}

#[pymethods]
impl PyJit {
    #[new]
    fn make(function: Py<PyAny>) -> PyJit {
        let function = Arc::new(Mutex::new(Some(function)));
        let written = Arc::<Mutex<Written>>::default();
        let (held, known) = (function.clone(), written.clone());
        let call = move |inputs: &[Tensor]| {
            let function =
                Python::attach(|py| lock(&held).as_ref().map(|function| function.clone_ref(py)));
            match function {
                Some(function) => trace(&function, inputs, &known),
                None => Err(refuse("jit", "the function was collected".to_owned())),
            }
        };
        PyJit { jit: Jit::new(Box::new(call)), function, written }
    }

    /// The results for these tensors. Writes what the function writes to.
    fn __call__(&self, py: Python<'_>, inputs: &Bound<'_, PyAny>) -> PyResult<Vec<PyTensor>> {
        let objects = each(inputs, Ok)?;
        let device = default_device()?;
        let ready = |x: &Bound<'_, PyAny>| x.extract::<TensorArg>()?.ready(&device);
        let arguments = objects.iter().map(ready).collect::<PyResult<Vec<_>>>()?;
        for _ in 0..MAX_TRACES {
            let others = lock(&self.written).others.clone();
            let value = |(storage, _): &Note| caught(py, || storage.value());
            let values = others.iter().map(value).collect::<PyResult<Vec<_>>>()?;
            let inputs: Vec<&Tensor> = arguments.iter().chain(&values).collect();
            let found = detached(py, || self.jit.call(&inputs));
            let more = std::mem::take(&mut lock(&self.written).found);
            if !more.is_empty() {
                lock(&self.written).others.extend(more);
                continue;
            }
            return self.write(py, found?, &objects, &others);
        }
        Err(PyRuntimeError::new_err("jit: the function writes to other tensors in every trace"))
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
        let taken = lock(&self.function).take();
        // Without the lock, as what is dropped may call anything.
        drop(taken);
    }
}

impl PyJit {
    /// Writes the results that are new values, and gives the others.
    fn write(
        &self,
        py: Python<'_>,
        mut found: Vec<Tensor>,
        objects: &[Bound<'_, PyAny>],
        others: &[Note],
    ) -> PyResult<Vec<PyTensor>> {
        let written = lock(&self.written).arguments.clone();
        let mut values = found.split_off(found.len() - written.len() - others.len()).into_iter();
        let storages: Vec<Arc<Storage>> = others.iter().map(|note| note.0.clone()).collect();
        let places = places("jit", objects, &written, storages)?;
        for (i, alias) in &places {
            alias.check_results(*i)?;
        }
        for (i, value) in written.iter().zip(&mut values) {
            if let Some((_, alias)) = places.iter().find(|(at, _)| at == i) {
                scope::note(py, alias.storage())?;
                caught(py, || alias.write_unchecked(&value, false))?;
            }
        }
        for ((storage, saved), value) in others.iter().zip(values) {
            scope::note(py, storage)?;
            caught(py, || storage.restore(&saved.with(value)))?;
        }
        Ok(found.into_iter().map(PyTensor::new).collect())
    }
}
