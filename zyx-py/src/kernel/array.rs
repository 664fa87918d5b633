//! `zyx.lang.Array` and `zyx.lang.Var`: arguments of a kernel, storage of its own, and variables.

use super::recording::{Recording, Step, operation};
use super::value::PyVal;
use crate::dtype::PyDType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use zyx::kernel::{Array, ArrayHandle, Val};

/// An array of a kernel that is being recorded.
#[pyclass(name = "Array", module = "zyx.lang", frozen)]
#[derive(Clone, Debug)]
pub(crate) struct PyArray {
    pub(super) recording: Recording,
    pub(super) handle: ArrayHandle,
}

impl PyArray {
    pub(super) fn new(step: &Step<'_, '_>, array: &Array<'_>) -> PyArray {
        PyArray { recording: step.recording, handle: array.handle() }
    }

    /// The array, in an operation of its recording.
    pub(super) fn in_step<'k>(&self, step: &Step<'k, '_>) -> PyResult<Array<'k>> {
        step.recording.must_be(step.py, self.recording)?;
        Ok(step.k.array_of(&self.handle))
    }

    /// Records an access of the element at a key.
    fn access<T>(
        &self,
        at: &Bound<'_, PyAny>,
        access: impl for<'k> FnOnce(&Step<'k, '_>, &Array<'k>, &[Val<'k>]) -> PyResult<T>,
    ) -> PyResult<T> {
        let at_operands = self.recording.operands(at)?.0;
        self.recording.record(at.py(), |step| {
            let array = step.k.array_of(&self.handle);
            access(step, &array, &step.indices(&at_operands))
        })
    }

    fn load(
        &self,
        at: &Bound<'_, PyAny>,
        load: impl for<'k> FnOnce(&Step<'k, '_>, &Array<'k>, &[Val<'k>]) -> PyResult<Val<'k>>,
    ) -> PyResult<PyVal> {
        self.access(at, |step, array, at| Ok(step.object(load(step, array, at)?)))
    }
}

/// The condition of an access.
fn condition<'k>(step: &Step<'k, '_>, condition: &PyVal) -> PyResult<Val<'k>> {
    step.recording.must_be(step.py, condition.recording)?;
    Ok(step.k.val_of(condition.value))
}

#[pymethods]
impl PyArray {
    /// The dtype of its elements.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<PyDType> {
        self.recording.record(py, |step| Ok(PyDType(step.k.array_of(&self.handle).dtype())))
    }

    /// Its dtype where that is a float, else `float32`.
    #[getter]
    fn float_dtype(&self, py: Python<'_>) -> PyResult<PyDType> {
        self.recording.record(py, |step| Ok(PyDType(step.k.array_of(&self.handle).float_dtype())))
    }

    /// Its extents, outermost first.
    #[getter]
    fn shape(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        self.recording.record(py, |step| step.objects(&step.k.array_of(&self.handle).shape()))
    }

    /// Its number of axes.
    #[getter]
    fn ndim(&self, py: Python<'_>) -> PyResult<usize> {
        self.recording.record(py, |step| Ok(step.k.array_of(&self.handle).rank()))
    }

    /// The part at these coordinates of its first axes.
    fn row(&self, at: &Bound<'_, PyAny>) -> PyResult<PyArray> {
        self.access(at, |step, array, at| Ok(PyArray::new(step, &array.row(at))))
    }

    fn __getitem__(&self, at: &Bound<'_, PyAny>) -> PyResult<PyVal> {
        self.load(at, |_, array, at| Ok(array.at(at)))
    }

    fn __setitem__(&self, at: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.access(at, |step, array, at| {
            array.set(at, step.value(value, Some(array.dtype()))?);
            Ok(())
        })
    }

    /// The element, or `other` outside of the array.
    fn at_or(&self, at: &Bound<'_, PyAny>, other: &Bound<'_, PyAny>) -> PyResult<PyVal> {
        self.load(at, |step, array, at| {
            Ok(array.at_or(at, step.value(other, Some(array.dtype()))?))
        })
    }

    /// The element where a condition holds, else `other`.
    fn at_if(
        &self,
        inside: &PyVal,
        at: &Bound<'_, PyAny>,
        other: &Bound<'_, PyAny>,
    ) -> PyResult<PyVal> {
        self.load(at, |step, array, at| {
            let other = step.value(other, Some(array.dtype()))?;
            Ok(array.at_if(condition(step, inside)?, at, other))
        })
    }

    /// The element, which other groups may be changing atomically.
    fn at_atomic(&self, at: &Bound<'_, PyAny>) -> PyResult<PyVal> {
        self.load(at, |_, array, at| Ok(array.at_atomic(at)))
    }

    /// Stores an element where a condition holds.
    fn set_if(
        &self,
        inside: &PyVal,
        at: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.access(at, |step, array, at| {
            let value = step.value(value, Some(array.dtype()))?;
            array.set_if(condition(step, inside)?, at, value);
            Ok(())
        })
    }

    /// Combines an element atomically with a value.
    fn atomic(
        &self,
        op: &str,
        at: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let op = operation(op)?;
        self.access(at, |step, array, at| {
            array.atomic(op, at, step.value(value, Some(array.dtype()))?);
            Ok(())
        })
    }

    /// As `atomic`; gives the element from before.
    fn fetch(
        &self,
        op: &str,
        at: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<PyVal> {
        let op = operation(op)?;
        self.load(at, |step, array, at| {
            Ok(array.fetch(op, at, step.value(value, Some(array.dtype()))?))
        })
    }

    // Without this, Python would ask for elements 0, 1, 2, .. and find no end.
    fn __iter__(&self) -> PyResult<Py<PyAny>> {
        let text = "an array of a kernel is no list: `@k.for_each(n)` runs over its elements";
        Err(PyTypeError::new_err(text))
    }
}

/// A variable of a thread.
#[pyclass(name = "Var", module = "zyx.lang", frozen)]
#[derive(Clone, Debug)]
pub(crate) struct PyVar(pub(super) PyArray);

#[pymethods]
impl PyVar {
    /// The value that was stored last.
    fn get(&self, py: Python<'_>) -> PyResult<PyVal> {
        self.0.__getitem__(PyTuple::empty(py).as_any())
    }

    /// Stores a value of the variable's dtype.
    fn set(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.__setitem__(PyTuple::empty(value.py()).as_any(), value)
    }

    /// Its dtype.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<PyDType> {
        self.0.dtype(py)
    }
}
