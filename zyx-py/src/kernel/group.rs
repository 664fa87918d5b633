//! `zyx.lang.Group`, `Matrix` and `Rows`: what the threads of a group do together.

use super::array::PyArray;
use super::body::{Kind, PyBody, extents};
use super::recording::{Recording, Step, operation};
use super::value::PyVal;
use crate::dtype::{DTypeArg, PyDType};
use crate::error::caught;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use zyx::DType;
use zyx::kernel::{Group, Matrix, MatrixHandle, Rows, RowsHandle};

/// A group of threads.
#[pyclass(name = "Group", module = "zyx.lang", frozen)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct PyGroup(pub(super) Recording);

/// The group that is being recorded.
pub(super) fn of<'k>(step: &Step<'k, '_>) -> PyResult<Group<'k>> {
    step.k.group().ok_or_else(|| {
        step.k.fail("a group, or a matrix of it, is used outside of the body of `k.groups`");
        PyValueError::new_err("a group is used outside of its body")
    })
}

#[pymethods]
impl PyGroup {
    /// Its number of threads: 1 where the device has no threads that share storage.
    #[getter]
    fn threads(&self, py: Python<'_>) -> PyResult<usize> {
        self.0.record(py, |step| Ok(of(step)?.threads()))
    }

    /// Runs the function once for each point of a space, its points spread over the threads.
    fn each(&self, space: &Bound<'_, PyAny>) -> PyResult<PyBody> {
        PyBody::new(space.py(), self.0, Kind::GroupEach(self.0.operands(space)?.0))
    }

    /// Combines `f(i)` of each number of a range; all threads get the result.
    fn reduce(
        &self,
        op: &str,
        span: &Bound<'_, PyAny>,
        f: &Bound<'_, PyAny>,
    ) -> PyResult<PyVal> {
        let (op, span) = (operation(op)?, self.0.span(span)?);
        self.0.record(f.py(), |step| {
            let value = of(step)?.reduce(op, span, |i| step.found(f, &[i], None));
            Ok(step.object(value))
        })
    }

    /// A scan of `value(i)` along a range: `emit(i, before, after)` gets each number with the combination of the values before
    /// it, and with its own. All threads get the combination of all.
    fn scan(
        &self,
        op: &str,
        span: &Bound<'_, PyAny>,
        dtype: DTypeArg,
        value: &Bound<'_, PyAny>,
        emit: &Bound<'_, PyAny>,
    ) -> PyResult<PyVal> {
        let (op, span, dtype) = (operation(op)?, self.0.span(span)?, dtype.or(DType::F32));
        self.0.record(value.py(), |step| {
            let one = |i| step.found(value, &[i], Some(dtype));
            let emit = |i, before, after| step.run(emit, &[i, before, after]);
            Ok(step.object(of(step)?.scan(op, span, dtype, one, emit)))
        })
    }

    /// Storage that all threads of the group see, not initialised.
    fn shared(&self, shape: &Bound<'_, PyAny>, dtype: DTypeArg) -> PyResult<PyArray> {
        let extents = extents(shape)?;
        self.0.record(shape.py(), |step| {
            let array = of(step)?.shared_of_shape(&extents, dtype.or(DType::F32));
            Ok(PyArray::new(step, &array))
        })
    }

    /// A matrix of zeros, spread over the threads. Extents are powers of two.
    fn matrix(&self, shape: &Bound<'_, PyAny>, dtype: DTypeArg) -> PyResult<PyMatrix> {
        let shape_numbers = extents(shape)?;
        let [rows, columns] = shape_numbers[..] else {
            return Err(PyValueError::new_err("a matrix has two extents"));
        };
        self.0.record(shape.py(), |step| {
            let group = of(step)?;
            let made = caught(step.py, || Ok(group.matrix([rows, columns], dtype.or(DType::F32))));
            Ok(PyMatrix { recording: self.0, handle: made?.handle() })
        })
    }
}

/// A matrix spread over the threads of a group.
#[pyclass(name = "Matrix", module = "zyx.lang", frozen)]
#[derive(Clone, Debug)]
pub(crate) struct PyMatrix {
    recording: Recording,
    handle: MatrixHandle,
}

/// A value for each row of a matrix.
#[pyclass(name = "Rows", module = "zyx.lang", frozen)]
#[derive(Clone, Debug)]
pub(crate) struct PyRows {
    recording: Recording,
    handle: RowsHandle,
}

/// Rows as an array of as many as there are, up to four.
macro_rules! as_array {
    ($rows:expr, $list:ident => $use:expr) => {{
        let references: Vec<&Rows<'_>> = $rows.iter().collect();
        match references[..] {
            [] => {
                let $list: [&Rows<'_>; 0] = [];
                $use
            }
            [a] => {
                let $list = [a];
                $use
            }
            [a, b] => {
                let $list = [a, b];
                $use
            }
            [a, b, c] => {
                let $list = [a, b, c];
                $use
            }
            [a, b, c, d] => {
                let $list = [a, b, c, d];
                $use
            }
            _ => return Err(PyValueError::new_err("values of at most four rows")),
        }
    }};
}

impl PyMatrix {
    fn record<T>(
        &self,
        py: Python<'_>,
        write: impl for<'k> FnOnce(&Step<'k, '_>, &Matrix<'k>) -> PyResult<T>,
    ) -> PyResult<T> {
        self.recording.record(py, |step| {
            of(step)?;
            write(step, &step.k.matrix_of(&self.handle))
        })
    }

    /// Calls a function for each element, with its coordinates and values of its row.
    pub(super) fn elements(
        &self,
        step: &Step<'_, '_>,
        rows: &[PyRows],
        f: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        of(step)?;
        let matrix = step.k.matrix_of(&self.handle);
        let rows = rows.iter().map(|rows| rows.in_step(step)).collect::<PyResult<Vec<_>>>()?;
        as_array!(rows, list => matrix.each(list, |[i, j], x, rows| {
            step.run(f, &[&[i, j, x], &rows[..]].concat());
        }));
        Ok(())
    }
}

#[pymethods]
impl PyMatrix {
    /// Its extents.
    #[getter]
    fn shape(&self, py: Python<'_>) -> PyResult<(usize, usize)> {
        self.record(py, |_, matrix| Ok(matrix.shape().into()))
    }

    /// The dtype of its elements.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<PyDType> {
        self.record(py, |_, matrix| Ok(PyDType(matrix.dtype())))
    }

    /// Makes all elements one value.
    fn fill(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.record(value.py(), |step, matrix| {
            matrix.fill(step.value(value, Some(matrix.dtype()))?);
            Ok(())
        })
    }

    /// Replaces each element `x` by `f(i, j, x)`.
    fn map(&self, f: &Bound<'_, PyAny>) -> PyResult<()> {
        self.record(f.py(), |step, matrix| {
            matrix.map(|[i, j], x| step.found(f, &[i, j, x], Some(matrix.dtype())));
            Ok(())
        })
    }

    /// As `map`, of `f(i, j, x, *values)` with the values of the element's row.
    fn map_rows(&self, rows: Vec<PyRef<'_, PyRows>>, f: &Bound<'_, PyAny>) -> PyResult<()> {
        self.record(f.py(), |step, matrix| {
            let rows = rows.iter().map(|rows| rows.in_step(step)).collect::<PyResult<Vec<_>>>()?;
            as_array!(rows, list => matrix.map_rows(list, |[i, j], x, rows| {
                step.found(f, &[&[i, j, x], &rows[..]].concat(), Some(matrix.dtype()))
            }));
            Ok(())
        })
    }

    /// Calls the function with `i, j, x` of each element and the values of its row: to store it.
    #[pyo3(signature = (*rows))]
    fn each(&self, rows: &Bound<'_, PyTuple>) -> PyResult<PyBody> {
        let of_rows = rows.extract::<Vec<PyRef<'_, PyRows>>>()?;
        let of_rows = of_rows.iter().map(|rows| (**rows).clone()).collect();
        PyBody::new(rows.py(), self.recording, Kind::Elements(self.clone(), of_rows))
    }

    /// For each row the combination of its elements.
    fn reduce_rows(&self, py: Python<'_>, op: &str) -> PyResult<PyRows> {
        let op = operation(op)?;
        self.record(py, |step, matrix| Ok(PyRows::new(step, &matrix.reduce_rows(op))))
    }

    /// A value for each of its rows, all `value`.
    fn rows(&self, value: &Bound<'_, PyAny>) -> PyResult<PyRows> {
        self.record(value.py(), |step, matrix| {
            let value = step.value(value, Some(matrix.dtype()))?;
            Ok(PyRows::new(step, &matrix.rows(value)))
        })
    }

    /// Adds the product of two matrices, whose elements are `left(i, step)` and `right(step, j)`.
    fn add_product(
        &self,
        steps: &Bound<'_, PyAny>,
        left: &Bound<'_, PyAny>,
        right: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let steps = self.recording.span(steps)?;
        self.record(left.py(), |step, matrix| {
            matrix.add_product(
                steps,
                |i, n| step.found(left, &[i, n], None),
                |n, j| step.found(right, &[n, j], None),
            );
            Ok(())
        })
    }

    /// Adds the product of a matrix, converted to a dtype, and one whose elements are `right(step, j)`.
    fn add_product_of(
        &self,
        matrix: &PyMatrix,
        dtype: DTypeArg,
        right: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.record(right.py(), |step, sums| {
            step.recording.must_be(step.py, matrix.recording)?;
            let left = step.k.matrix_of(&matrix.handle);
            sums.add_product_of(&left, dtype.or(DType::F32), |n, j| step.found(right, &[n, j], None));
            Ok(())
        })
    }
}

impl PyRows {
    fn new(step: &Step<'_, '_>, rows: &Rows<'_>) -> PyRows {
        PyRows { recording: step.recording, handle: rows.handle() }
    }

    fn in_step<'k>(&self, step: &Step<'k, '_>) -> PyResult<Rows<'k>> {
        step.recording.must_be(step.py, self.recording)?;
        Ok(step.k.rows_of(&self.handle))
    }

    fn record<T>(
        &self,
        py: Python<'_>,
        write: impl for<'k> FnOnce(&Step<'k, '_>, Rows<'k>) -> PyResult<T>,
    ) -> PyResult<T> {
        self.recording.record(py, |step| {
            of(step)?;
            write(step, self.in_step(step)?)
        })
    }
}

#[pymethods]
impl PyRows {
    /// New values `f(x, *values)`, each made of those of its row.
    fn map(&self, others: Vec<PyRef<'_, PyRows>>, f: &Bound<'_, PyAny>) -> PyResult<PyRows> {
        self.record(f.py(), |step, rows| {
            let others = others.iter().map(|rows| rows.in_step(step)).collect::<PyResult<Vec<_>>>()?;
            let new = as_array!(others, list => rows.map(list, |x, others| {
                step.found(f, &[&[x], &others[..]].concat(), Some(x.dtype()))
            }));
            Ok(PyRows::new(step, &new))
        })
    }

    /// Takes over the values of others.
    fn set(&self, py: Python<'_>, others: &PyRows) -> PyResult<()> {
        self.record(py, |step, rows| {
            rows.set(&others.in_step(step)?);
            Ok(())
        })
    }

    /// Makes all of them one value.
    fn fill(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = self.recording.operand(value)?;
        self.record(py, |_, rows| {
            rows.fill(value);
            Ok(())
        })
    }
}
