//! `zyx.lang.Array` and `zyx.lang.Var`: arguments and storage of a kernel, and variables.

use super::recording::{Recording, Step, operation};
use super::value::PyVal;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use zyx::kernel::{Array, ArrayHandle, Val};

type Any<'a, 'py> = &'a Bound<'py, PyAny>;
type Object = PyResult<Py<PyAny>>;
type Access<'a> = &'a mut dyn for<'k> FnMut(&Step<'k, '_>, &Array<'k>, &[Val<'k>]) -> Object;

/// An array of a kernel that is being recorded.
#[pyclass(name = "Array", module = "zyx.lang", frozen)]
#[derive(Clone, Debug)]
pub(crate) struct PyArray {
    pub(super) recording: Recording,
    pub(super) handle: ArrayHandle,
}

impl PyArray {
    /// The array, in an operation of its recording.
    pub(super) fn in_step<'k>(&self, step: &Step<'k, '_>) -> PyResult<Array<'k>> {
        step.recording.must_be(step.py, self.recording)?;
        Ok(step.k.array_of(&self.handle))
    }

    /// Records an access of the element at a key.
    fn access(&self, at: Any<'_, '_>, access: Access<'_>) -> Object {
        let operands = self.recording.operands(at)?;
        self.recording.record(at.py(), &mut |step| {
            access(step, &step.k.array_of(&self.handle), &step.indices(&operands))
        })
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
    fn dtype(&self, py: Python<'_>) -> Object {
        self.recording.record(py, &mut |step| step.dtype(step.k.array_of(&self.handle).dtype()))
    }

    /// Its dtype where that is a float, else `float32`.
    #[getter]
    fn float_dtype(&self, py: Python<'_>) -> Object {
        let write =
            &mut |step: &Step<'_, '_>| step.dtype(step.k.array_of(&self.handle).float_dtype());
        self.recording.record(py, write)
    }

    /// Its extents, outermost first.
    #[getter]
    fn shape(&self, py: Python<'_>) -> Object {
        self.recording.record(py, &mut |step| step.objects(&step.k.array_of(&self.handle).shape()))
    }

    /// Its number of axes.
    #[getter]
    fn ndim(&self, py: Python<'_>) -> Object {
        let write =
            &mut |step: &Step<'_, '_>| step.k.array_of(&self.handle).rank().into_py_any(step.py);
        self.recording.record(py, write)
    }

    /// The part at these coordinates of its first axes.
    fn row(&self, at: Any<'_, '_>) -> Object {
        self.access(at, &mut |step, array, at| step.array(&array.row(at)))
    }

    /// Along each axis, how many tiles of a literal shape cover the array: groups that each store to a tile of their own never race.
    fn tiles(&self, shape: Vec<usize>, py: Python<'_>) -> Object {
        self.recording.record(py, &mut |step| {
            let extents = step.k.array_of(&self.handle).shape();
            let tiles = extents.iter().zip(&shape).map(|(x, &len)| x.div_ceil(len.max(1)));
            step.objects(&tiles.collect::<Vec<_>>())
        })
    }

    /// The tile of a literal shape with these numbers along the axes, as an array. Outside of the tile or of this array a load gives 0,
    /// and a store does nothing.
    fn tile(&self, number: Any<'_, '_>, shape: Vec<usize>) -> Object {
        self.access(number, &mut |step, array, at| step.array(&array.tile(at, &shape)))
    }

    fn __getitem__(&self, at: Any<'_, '_>) -> Object {
        self.access(at, &mut |step, array, at| step.object(array.at(at)))
    }

    fn __setitem__(&self, at: Any<'_, '_>, value: Any<'_, '_>) -> PyResult<()> {
        let set = self.access(at, &mut |step, array, at| {
            array.set(at, step.value(value, Some(array.dtype()))?);
            step.none()
        });
        set.map(drop)
    }

    /// The element, or `other` outside of the array.
    fn at_or(&self, at: Any<'_, '_>, other: Any<'_, '_>) -> Object {
        self.access(at, &mut |step, array, at| {
            step.object(array.at_or(at, step.value(other, Some(array.dtype()))?))
        })
    }

    /// The element where a condition holds, else `other`.
    fn at_if(&self, inside: &PyVal, at: Any<'_, '_>, other: Any<'_, '_>) -> Object {
        self.access(at, &mut |step, array, at| {
            let other = step.value(other, Some(array.dtype()))?;
            step.object(array.at_if(condition(step, inside)?, at, other))
        })
    }

    /// The element, which other groups may be changing atomically.
    fn at_atomic(&self, at: Any<'_, '_>) -> Object {
        self.access(at, &mut |step, array, at| step.object(array.at_atomic(at)))
    }

    /// Stores an element where a condition holds.
    fn set_if(&self, inside: &PyVal, at: Any<'_, '_>, value: Any<'_, '_>) -> Object {
        self.access(at, &mut |step, array, at| {
            let value = step.value(value, Some(array.dtype()))?;
            array.set_if(condition(step, inside)?, at, value);
            step.none()
        })
    }

    /// Combines an element atomically with a value.
    fn atomic(&self, op: &str, at: Any<'_, '_>, value: Any<'_, '_>) -> Object {
        let op = operation(op)?;
        self.access(at, &mut |step, array, at| {
            array.atomic(op, at, step.value(value, Some(array.dtype()))?);
            step.none()
        })
    }

    /// As `atomic`; gives the element from before.
    fn fetch(&self, op: &str, at: Any<'_, '_>, value: Any<'_, '_>) -> Object {
        let op = operation(op)?;
        self.access(at, &mut |step, array, at| {
            step.object(array.fetch(op, at, step.value(value, Some(array.dtype()))?))
        })
    }

    // Without this, Python would ask for elements 0, 1, 2, .. and find no end.
    fn __iter__(&self) -> Object {
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
    fn get(&self, py: Python<'_>) -> Object {
        self.0.__getitem__(PyTuple::empty(py).as_any())
    }

    /// Stores a value of the variable's dtype.
    fn set(&self, value: Any<'_, '_>) -> PyResult<()> {
        self.0.__setitem__(PyTuple::empty(value.py()).as_any(), value)
    }

    /// Its dtype.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> Object {
        self.0.dtype(py)
    }
}
