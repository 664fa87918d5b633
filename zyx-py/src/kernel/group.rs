//! `zyx.lang.Group`, `Matrix` and `Rows`: what the threads of a group do together.

use super::array::PyArray;
use super::body::{Kind, PyBody, extents};
use super::recording::{Recording, Step, operation};
use crate::dtype::DTypeArg;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use zyx::DType;
use zyx::kernel::{Array, Group, Matrix, MatrixHandle, Rows, RowsHandle, Val};

type Any<'a, 'py> = &'a Bound<'py, PyAny>;
type Object = PyResult<Py<PyAny>>;
type WriteMatrix<'a> = &'a mut dyn for<'k> FnMut(&Step<'k, '_>, &Matrix<'k>) -> Object;
type WriteRows<'a> = &'a mut dyn for<'k> FnMut(&Step<'k, '_>, &Rows<'k>) -> Object;

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

impl PyGroup {
    /// The group, in an operation of its recording.
    pub(super) fn in_step<'k>(self, step: &Step<'k, '_>) -> PyResult<Group<'k>> {
        step.recording.must_be(step.py, self.0)?;
        of(step)
    }
}

#[pymethods]
impl PyGroup {
    /// Its number of threads: 1 where the device has no threads that share storage.
    #[getter]
    fn threads(&self, py: Python<'_>) -> Object {
        self.0.record(py, &mut |step| of(step)?.threads().into_py_any(step.py))
    }

    /// Runs the function once for each point of a space, its points spread over the threads.
    fn each(&self, space: Any<'_, '_>) -> PyResult<PyBody> {
        PyBody::new(space.py(), self.0, Kind::GroupEach(self.0.operands(space)?))
    }

    /// Combines `f(i)` of each number of a range; all threads get the result.
    fn reduce(&self, op: &str, span: Any<'_, '_>, f: Any<'_, '_>) -> Object {
        let (op, span) = (operation(op)?, self.0.span(span)?);
        self.0.record(f.py(), &mut |step| {
            step.object(of(step)?.reduce(op, span, |i| step.found(f, &[i], None)))
        })
    }

    /// A scan of `value(i)` along a range: `emit(i, before, after)` gets each number with the combination of the values before
    /// it, and with its own. All threads get the combination of all.
    fn scan(
        &self,
        op: &str,
        span: Any<'_, '_>,
        dtype: DTypeArg,
        value: Any<'_, '_>,
        emit: Any<'_, '_>,
    ) -> Object {
        let (op, span, dtype) = (operation(op)?, self.0.span(span)?, dtype.or(DType::F32));
        self.0.record(value.py(), &mut |step| {
            let one = |i| step.found(value, &[i], Some(dtype));
            let emit = |i, before, after| step.run(emit, &[i, before, after]);
            step.object(of(step)?.scan(op, span, dtype, one, emit))
        })
    }

    /// Ranks elements by a digit of 1 to 8 bits, an integer: `emit(i, place)` gets the number of each and its place among all, in
    /// the order of digits, and of numbers where digits are equal, both `int64`. A step of a radix sort. `digit` runs twice.
    ///
    ///     @zyx.kernel
    ///     def sorted_digits(k):
    ///         n = k.size("n")
    ///         x = k.input("x", [n])
    ///         y = k.output("y", [n], x.dtype)
    ///
    ///         @k.groups([1], threads=64)
    ///         def _(g, _):
    ///             def emit(i, place):
    ///                 y[place] = x[i]
    ///
    ///             g.rank(n, 4, lambda i: x[i] & 15, emit)
    ///
    ///     assert sorted_digits(zyx.tensor([18, 1, 2, 0])).tolist() == [0, 1, 18, 2]
    fn rank(&self, span: Any<'_, '_>, bits: u32, digit: Any<'_, '_>, emit: Any<'_, '_>) -> Object {
        let span = self.0.span(span)?;
        self.0.record(digit.py(), &mut |step| {
            let digit = |i| step.found(digit, &[i], Some(DType::I64));
            of(step)?.rank(span, bits, digit, |i, place| step.run(emit, &[i, place]));
            step.none()
        })
    }

    /// Appends the numbers of a range for which a condition holds to a list that groups share, and whose length is in `counter`, an
    /// array of one integer: `emit(i, place)` gets each number and its place, both `int64`. Groups come in any order.
    ///
    ///     @zyx.kernel
    ///     def positive(k):
    ///         n = k.size("n")
    ///         x = k.input("x", [n])
    ///         count = k.output_filled("count", [1], "int32")
    ///         y = k.output_filled("y", [n], x.dtype)
    ///
    ///         @k.groups([n.div_ceil(1000)])
    ///         def _(g, group):
    ///             def emit(i, place):
    ///                 y[place] = x[i]
    ///
    ///             first = group * 1000
    ///             g.append(count, (first, n.minimum(first + 1000)), lambda i: x[i] > 0, emit)
    ///
    ///     count, y = positive(zyx.tensor([3, -1, 4]))
    ///     assert count.tolist() == [2] and y.tolist() == [3, 4, 0]
    fn append(
        &self,
        counter: &PyArray,
        span: Any<'_, '_>,
        condition: Any<'_, '_>,
        emit: Any<'_, '_>,
    ) -> Object {
        let span = self.0.span(span)?;
        self.0.record(emit.py(), &mut |step| {
            let condition = |i| step.found(condition, &[i], Some(DType::Bool));
            let emit = |i, place| step.run(emit, &[i, place]);
            of(step)?.append(&counter.in_step(step)?, span, condition, emit);
            step.none()
        })
    }

    /// Permutes `n` values: `value(i)` gives that of each place, `source(i)` the place that a place takes its value from, and
    /// `emit(i, x)` gets each place, `int64`, with the value that it took: 0 where the source is no place. A transposition:
    ///
    ///     @zyx.kernel
    ///     def transposed(k):
    ///         x = k.input("x", [16, 16])
    ///         y = k.output("y", [16, 16], x.dtype)
    ///
    ///         @k.groups([1])
    ///         def _(g, _):
    ///             def emit(i, value):
    ///                 y[i // 16, i % 16] = value
    ///
    ///             g.exchange(256, x.dtype, lambda i: x[i // 16, i % 16], lambda i: i % 16 * 16 + i // 16, emit)
    ///
    ///     x = zyx.arange(256).reshape(16, 16)
    ///     assert transposed(x).tolist() == x.t().tolist()
    fn exchange(
        &self,
        n: usize,
        dtype: DTypeArg,
        value: Any<'_, '_>,
        source: Any<'_, '_>,
        emit: Any<'_, '_>,
    ) -> Object {
        let dtype = dtype.or(DType::F32);
        self.0.record(value.py(), &mut |step| {
            let value = |i| step.found(value, &[i], Some(dtype));
            let source = |i| step.found(source, &[i], Some(DType::I64));
            of(step)?.exchange(n, dtype, value, source, |i, x| step.run(emit, &[i, x]));
            step.none()
        })
    }

    /// Runs a step for each number of a range with tiles of shared storage. `load(step, *at)` gives an element of a tile, or a
    /// tuple with one of each of several; `compute(step, *tiles)` uses them. While a step computes, the elements of a later one
    /// are on their way; there is storage for `stages` steps. `load` runs several times.
    ///
    ///     @zyx.kernel
    ///     def products(k):
    ///         rows, cols = k.sizes("rows", "cols")
    ///         x, w = k.input("x", [rows, cols]), k.input("w", [rows, cols])
    ///         y = k.output("y", [rows], x.dtype)
    ///
    ///         @k.groups([rows], threads=64)
    ///         def _(g, row):
    ///             sum = k.var(0, x.dtype)
    ///
    ///             def load(step, i):
    ///                 at = row, step * 256 + i
    ///                 return x.at_or(at, 0), w.at_or(at, 0)
    ///
    ///             def compute(step, x, w):
    ///                 sum.set(sum.get() + g.reduce("add", 256, lambda i: x[i] * w[i]))
    ///
    ///             g.pipeline(2, cols.div_ceil(256), 256, load, compute)
    ///             y[row] = sum.get()
    ///
    ///     assert products(zyx.ones(2, 300), zyx.ones(2, 300)).tolist() == [300, 300]
    fn pipeline(
        &self,
        stages: usize,
        span: Any<'_, '_>,
        shape: Any<'_, '_>,
        load: Any<'_, '_>,
        compute: Any<'_, '_>,
    ) -> Object {
        let (span, extents) = (self.0.span(span)?, extents(shape)?);
        self.0.record(load.py(), &mut |step| {
            let shape: Vec<Val<'_>> = extents.iter().map(|&x| step.k.index(x as i64)).collect();
            let load = |number: Val<'_>, at: Vec<Val<'_>>| {
                let mut found = Vec::new();
                let arguments = step.arguments(None, &[vec![number], at].concat());
                step.call(load, arguments, &mut |elements| {
                    for element in step.recording.operands(elements)? {
                        found.push(step.typed(element, None)?);
                    }
                    Ok(())
                });
                found
            };
            let compute = |number: Val<'_>, tiles: &[Array<'_>]| {
                let tiles = [step.object(number)]
                    .into_iter()
                    .chain(tiles.iter().map(|tile| step.array(tile)));
                step.call(compute, tiles.collect(), &mut |_| Ok(()));
            };
            of(step)?.pipeline(stages, span, &shape[..], load, compute);
            step.none()
        })
    }

    /// Runs the function in one thread of the group: the first.
    fn elect(&self, f: Any<'_, '_>) -> Object {
        self.0.record(f.py(), &mut |step| {
            of(step)?.elect(|| step.run(f, &[]));
            step.none()
        })
    }

    /// The value that `f()` gives in one thread of the group, the first, for all threads, converted to a dtype.
    fn broadcast(&self, dtype: DTypeArg, f: Any<'_, '_>) -> Object {
        let dtype = dtype.or(DType::F32);
        self.0.record(f.py(), &mut |step| {
            step.object(of(step)?.broadcast(dtype, || step.found(f, &[], Some(dtype))))
        })
    }

    /// Copies an array, as a tile of an argument, to another one with its extents: into shared storage, or out of it.
    fn copy(&self, source: &PyArray, target: &PyArray, py: Python<'_>) -> Object {
        self.0.record(py, &mut |step| {
            of(step)?.copy(&source.in_step(step)?, &target.in_step(step)?);
            step.none()
        })
    }

    /// Storage that all threads of the group see, not initialised.
    fn shared(&self, shape: Any<'_, '_>, dtype: DTypeArg) -> Object {
        let (extents, dtype) = (extents(shape)?, dtype.or(DType::F32));
        self.0.record(shape.py(), &mut |step| step.array(&of(step)?.shared(&extents, dtype)))
    }

    /// A matrix of zeros, spread over the threads. Extents are powers of two.
    fn matrix(&self, shape: Any<'_, '_>, dtype: DTypeArg) -> Object {
        let (extents, dtype) = (extents(shape)?, dtype.or(DType::F32));
        let &[rows, columns] = &extents[..] else {
            return Err(PyValueError::new_err("a matrix has two extents"));
        };
        self.0.record(shape.py(), &mut |step| {
            let handle = of(step)?.matrix([rows, columns], dtype).handle();
            PyMatrix { recording: self.0, handle }.into_py_any(step.py)
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
#[pyclass(name = "Rows", module = "zyx.lang", frozen, from_py_object)]
#[derive(Clone, Debug)]
pub(crate) struct PyRows {
    recording: Recording,
    handle: RowsHandle,
}

/// The values of rows in an operation of their recording.
fn rows_of<'k>(step: &Step<'k, '_>, rows: &[PyRows]) -> PyResult<Vec<Rows<'k>>> {
    rows.iter().map(|rows| rows.in_step(step)).collect()
}

impl PyMatrix {
    fn record(&self, py: Python<'_>, write: WriteMatrix<'_>) -> Object {
        self.recording.record(py, &mut |step| {
            of(step)?;
            write(step, &step.k.matrix_of(&self.handle))
        })
    }

    /// Calls a function for each element, with its coordinates and values of its row.
    pub(super) fn elements(
        &self,
        step: &Step<'_, '_>,
        rows: &[PyRows],
        f: Any<'_, '_>,
    ) -> PyResult<()> {
        of(step)?;
        let rows = rows_of(step, rows)?;
        let each = |[i, j]: [_; 2], x, rows: &[_]| step.run(f, &[&[i, j, x], rows].concat());
        step.k.matrix_of(&self.handle).each_of(&rows.iter().collect::<Vec<_>>(), &each);
        Ok(())
    }
}

#[pymethods]
impl PyMatrix {
    /// Its extents.
    #[getter]
    fn shape(&self, py: Python<'_>) -> Object {
        self.record(py, &mut |step, matrix| {
            <(usize, usize)>::from(matrix.shape()).into_py_any(step.py)
        })
    }

    /// The dtype of its elements.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> Object {
        self.record(py, &mut |step, matrix| step.dtype(matrix.dtype()))
    }

    /// Makes all elements one value.
    fn fill(&self, value: Any<'_, '_>) -> Object {
        self.record(value.py(), &mut |step, matrix| {
            matrix.fill(step.value(value, Some(matrix.dtype()))?);
            step.none()
        })
    }

    /// Replaces each element `x` by `f(i, j, x)`.
    fn map(&self, f: Any<'_, '_>) -> Object {
        self.map_rows(Vec::new(), f)
    }

    /// As `map`, of `f(i, j, x, *values)` with the values of the element's row.
    fn map_rows(&self, rows: Vec<PyRows>, f: Any<'_, '_>) -> Object {
        self.record(f.py(), &mut |step, matrix| {
            let rows = rows_of(step, &rows)?;
            matrix.map_rows_of(&rows.iter().collect::<Vec<_>>(), &|[i, j], x, rows| {
                step.found(f, &[&[i, j, x], rows].concat(), Some(matrix.dtype()))
            });
            step.none()
        })
    }

    /// Calls the function with `i, j, x` of each element and the values of its row: to store it.
    #[pyo3(signature = (*rows))]
    fn each(&self, py: Python<'_>, rows: Vec<PyRows>) -> PyResult<PyBody> {
        PyBody::new(py, self.recording, Kind::Elements(self.clone(), rows))
    }

    /// For each row the combination of its elements.
    fn reduce_rows(&self, py: Python<'_>, op: &str) -> Object {
        let op = operation(op)?;
        self.record(py, &mut |step, matrix| PyRows::give(step, &matrix.reduce_rows(op)))
    }

    /// A value for each of its rows, all `value`.
    fn rows(&self, value: Any<'_, '_>) -> Object {
        self.record(value.py(), &mut |step, matrix| {
            let value = step.value(value, Some(matrix.dtype()))?;
            PyRows::give(step, &matrix.rows(value))
        })
    }

    /// Adds the product of two matrices, whose elements are `left(i, step)` and `right(step, j)`.
    fn add_product(&self, steps: Any<'_, '_>, left: Any<'_, '_>, right: Any<'_, '_>) -> Object {
        let steps = self.recording.span(steps)?;
        self.record(left.py(), &mut |step, matrix| {
            matrix.add_product(
                steps,
                |i, n| step.found(left, &[i, n], None),
                |n, j| step.found(right, &[n, j], None),
            );
            step.none()
        })
    }

    /// Adds the product of a matrix, converted to a dtype, and one whose elements are `right(step, j)`.
    fn add_product_of(&self, matrix: &PyMatrix, dtype: DTypeArg, right: Any<'_, '_>) -> Object {
        self.record(right.py(), &mut |step, sums| {
            step.recording.must_be(step.py, matrix.recording)?;
            let (left, dtype) = (step.k.matrix_of(&matrix.handle), dtype.or(DType::F32));
            sums.add_product_of(&left, dtype, |n, j| step.found(right, &[n, j], None));
            step.none()
        })
    }

    /// Adds the product of the matrix that `left()` gives, converted to a dtype, and one whose elements are `right(step, j)`, which
    /// are loaded while `left` computes. The left matrix has `columns` columns, a power of two, and the rows and dtype of the sums.
    ///
    ///     @zyx.kernel
    ///     def squared_sums(k):
    ///         x, w = k.input("x", [32, 16]), k.input("w", [16, 32])
    ///         y = k.output("y", [32, 32], "float32")
    ///
    ///         @k.groups([1], threads=64)
    ///         def _(g, _):
    ///             sums = g.matrix([32, 32], "float32")
    ///
    ///             def squares():
    ///                 matrix = g.matrix([32, 16], "float32")
    ///                 matrix.map(lambda i, j, _: x[i, j].square())
    ///                 return matrix
    ///
    ///             sums.add_product_after(16, w.dtype, squares, lambda step, j: w[step, j])
    ///
    ///             @sums.each()
    ///             def _(i, j, x):
    ///                 y[i, j] = x
    ///
    ///     assert squared_sums(zyx.full((32, 16), 2.0), zyx.ones(16, 32))[3, 5].item() == 64
    fn add_product_after(
        &self,
        columns: usize,
        dtype: DTypeArg,
        left: Any<'_, '_>,
        right: Any<'_, '_>,
    ) -> Object {
        self.record(left.py(), &mut |step, sums| {
            let computed = || {
                let mut found = None;
                step.call(left, step.arguments(None, &[]), &mut |object| {
                    let matrix = object.cast::<PyMatrix>()?.get();
                    step.recording.must_be(step.py, matrix.recording)?;
                    found = Some(step.k.matrix_of(&matrix.handle));
                    Ok(())
                });
                // The sums where the recording has failed.
                found.unwrap_or_else(|| step.k.matrix_of(&self.handle))
            };
            let right = |n, j| step.found(right, &[n, j], None);
            sums.add_product_after(columns, dtype.or(DType::F32), computed, right);
            step.none()
        })
    }
}

impl PyRows {
    fn give(step: &Step<'_, '_>, rows: &Rows<'_>) -> Object {
        PyRows { recording: step.recording, handle: rows.handle() }.into_py_any(step.py)
    }

    fn in_step<'k>(&self, step: &Step<'k, '_>) -> PyResult<Rows<'k>> {
        step.recording.must_be(step.py, self.recording)?;
        Ok(step.k.rows_of(&self.handle))
    }

    fn record(&self, py: Python<'_>, write: WriteRows<'_>) -> Object {
        self.recording.record(py, &mut |step| {
            of(step)?;
            write(step, &self.in_step(step)?)
        })
    }
}

#[pymethods]
impl PyRows {
    /// New values `f(x, *values)`, each made of those of its row.
    fn map(&self, others: Vec<PyRows>, f: Any<'_, '_>) -> Object {
        self.record(f.py(), &mut |step, rows| {
            let others = rows_of(step, &others)?;
            let new = rows.map_of(&others.iter().collect::<Vec<_>>(), &|x, others| {
                step.found(f, &[&[x], others].concat(), Some(x.dtype()))
            });
            PyRows::give(step, &new)
        })
    }

    /// Takes over the values of others.
    fn set(&self, py: Python<'_>, others: &PyRows) -> Object {
        self.record(py, &mut |step, rows| {
            rows.set(&others.in_step(step)?);
            step.none()
        })
    }

    /// Makes all of them one value.
    fn fill(&self, value: Any<'_, '_>) -> Object {
        let operand = self.recording.operand(value)?;
        self.record(value.py(), &mut |step, rows| {
            rows.fill(operand);
            step.none()
        })
    }
}
