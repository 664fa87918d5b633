//! `zyx.lang.Lang`: the kernel that is being recorded, with its sizes, arguments, loops and conditions.

use super::array::{PyArray, PyVar};
use super::group::{PyGroup, PyMatrix, PyRows};
use super::progress::{PyLookBack, PyQueue};
use super::recording::{Arg, Recording, SpanArg, Step, Write, is_list, line, operation};
use super::value::PyVal;
use crate::dtype::DTypeArg;
use crate::lists::each;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};
use zyx::kernel::{Array, Operand, Site, Val};
use zyx::{DType, Scalar};

type Any<'a, 'py> = &'a Bound<'py, PyAny>;
type Object = PyResult<Py<PyAny>>;
type Declare<'a> = &'a mut dyn for<'k> FnMut(&Step<'k, '_>, &[Val<'k>]) -> Array<'k>;

/// A kernel that is being recorded.
#[pyclass(name = "Lang", module = "zyx.lang", frozen)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct PyLang(pub(super) Recording);

/// A loop, a condition or a group that a function is the body of: called with it, it records both.
#[pyclass(name = "Body", module = "zyx.lang", frozen)]
#[derive(Debug)]
pub(crate) struct PyBody {
    recording: Recording,
    site: Site,
    kind: Kind,
}

/// The loop, condition or group that the function of a body runs in.
#[derive(Debug)]
pub(super) enum Kind {
    /// Independent iterations.
    Each(Vec<Arg>),
    Groups(Vec<Arg>, usize),
    /// Iterations spread over the threads of a group.
    GroupEach(Vec<Arg>),
    /// Elements of a matrix, with values of their rows.
    Elements(PyMatrix, Vec<PyRows>),
    /// Items of a queue.
    Items(PyQueue, PyGroup),
    /// Iterations in order.
    For(SpanArg),
    /// Iterations as long as this function gives a condition that holds.
    While(Py<PyAny>),
    When(Arg),
}

impl PyBody {
    pub(super) fn new(py: Python<'_>, recording: Recording, kind: Kind) -> PyResult<PyBody> {
        Ok(PyBody { recording, site: line(py)?, kind })
    }
}

#[pymethods]
impl PyBody {
    fn __call__(&self, f: Any<'_, '_>) -> Object {
        self.recording.record_at(f.py(), self.site.clone(), &mut |step| {
            let k = step.k;
            match &self.kind {
                Kind::Each(space) => k.each(&step.indices(space)[..], |at| step.run(f, &at)),
                Kind::Groups(space, threads) => {
                    let group = PyGroup(self.recording).into_py_any(step.py)?;
                    k.groups(&step.indices(space)[..], *threads, |_, at| {
                        step.call(f, step.arguments(Some(group), &at), &mut |_| Ok(()));
                    });
                }
                Kind::GroupEach(space) => {
                    super::group::of(step)?.each(&step.indices(space)[..], |at| step.run(f, &at));
                }
                Kind::Elements(matrix, rows) => matrix.elements(step, rows, f)?,
                Kind::Items(queue, group) => queue.drain_in(step, *group, f)?,
                Kind::For(span) => k.for_each(*span, |i| step.run(f, &[i])),
                Kind::While(condition) => {
                    let condition = condition.bind(step.py);
                    k.while_(|| step.found(condition, &[], Some(DType::Bool)), || step.run(f, &[]));
                }
                Kind::When(condition) => {
                    k.when(condition.val(k, DType::Bool), || step.run(f, &[]));
                }
            }
            step.none()
        })
    }
}

/// Extents that are numbers: of storage, and of matrices.
pub(super) fn extents(shape: Any<'_, '_>) -> PyResult<Vec<usize>> {
    let one = |x: &Bound<'_, PyAny>| match x.is_instance_of::<PyVal>() {
        true => Err(PyTypeError::new_err(
            "extents of storage are numbers of Python, as `k.parameter` gives them, not values of the kernel",
        )),
        false => x.extract::<usize>(),
    };
    if is_list(shape) { each(shape, |x| one(&x)) } else { Ok(vec![one(shape)?]) }
}

impl PyLang {
    fn record(self, py: Python<'_>, write: Write<'_>) -> Object {
        self.0.record(py, write)
    }

    /// Declares an argument.
    fn declare(self, shape: Any<'_, '_>, declare: Declare<'_>) -> Object {
        let operands = self.0.operands(shape)?;
        self.record(shape.py(), &mut |step| step.array(&declare(step, &step.indices(&operands))))
    }

    fn body(self, py: Python<'_>, kind: Kind) -> PyResult<PyBody> {
        PyBody::new(py, self.0, kind)
    }
}

#[pymethods]
impl PyLang {
    /// A size: a number that is not known before the kernel is called.
    fn size(&self, py: Python<'_>, name: &str) -> Object {
        self.record(py, &mut |step| step.object(step.k.size(name)))
    }

    /// Several sizes.
    #[pyo3(signature = (*names))]
    fn sizes(&self, names: &Bound<'_, PyTuple>) -> Object {
        self.record(names.py(), &mut |step| {
            let mut sizes = Vec::new();
            for name in names {
                sizes.push(step.k.size(name.extract()?));
            }
            step.objects(&sizes)
        })
    }

    /// Says that a number that follows from sizes is at most `most`.
    ///
    /// A call with a larger one is an error:
    ///
    ///     @zyx.kernel
    ///     def halved(k):
    ///         n = k.size("n")
    ///         k.limit(n, 100)
    ///         x = k.input("x", [n])
    ///         y = k.output("y", [n], x.dtype)
    ///
    ///         @k.each(n)
    ///         def _(i):
    ///             y[i] = x[i] / 2
    ///
    ///     assert halved(zyx.ones(2)).tolist() == [0.5, 0.5]
    fn limit(&self, size: Any<'_, '_>, most: usize) -> Object {
        let operand = self.0.operand(size)?;
        self.record(size.py(), &mut |step| {
            step.k.limit(operand, most);
            step.none()
        })
    }

    /// A number among these: the first one, unless `with_parameter` or `Device.tune` chooses another.
    fn parameter(&self, py: Python<'_>, name: &str, values: Vec<usize>) -> Object {
        self.record(py, &mut |step| step.k.parameter(name, &values).into_py_any(step.py))
    }

    /// The next input, in the dtype of the tensor that the caller gives.
    fn input(&self, name: &str, shape: Any<'_, '_>) -> Object {
        self.declare(shape, &mut |step, shape| step.k.input(name, shape))
    }

    /// A result, each element of which is stored at most once.
    fn output(&self, name: &str, shape: Any<'_, '_>, dtype: DTypeArg) -> Object {
        let dtype = dtype.or(DType::F32);
        self.declare(shape, &mut |step, shape| step.k.output(name, shape, dtype))
    }

    /// A result all elements of which are `fill` before the kernel runs.
    #[pyo3(signature = (name, shape, dtype, fill=None))]
    fn output_filled(
        &self,
        name: &str,
        shape: Any<'_, '_>,
        dtype: DTypeArg,
        fill: Option<Any<'_, '_>>,
    ) -> Object {
        let (dtype, fill) = (dtype.or(DType::F32), fill.map(|x| self.0.operand(x)).transpose()?);
        if let Some(Arg::Value(_)) = fill {
            return Err(PyTypeError::new_err("`fill` is a number, not a value of the kernel"));
        }
        self.declare(shape, &mut |step, shape| {
            let fill = fill.and_then(|fill| fill.val(step.k, dtype).literal());
            let fill = fill.unwrap_or(Scalar::from_i64(dtype, 0));
            step.k.output_filled(name, shape, dtype, fill)
        })
    }

    /// A result that is a copy of an input before the kernel runs.
    fn output_from(&self, py: Python<'_>, name: &str, input: &PyArray) -> Object {
        self.record(py, &mut |step| step.array(&step.k.output_from(name, &input.in_step(step)?)))
    }

    /// Memory of zeros that only the kernel sees.
    fn scratch(&self, name: &str, shape: Any<'_, '_>, dtype: DTypeArg) -> Object {
        let dtype = dtype.or(DType::F32);
        self.declare(shape, &mut |step, shape| step.k.scratch(name, shape, dtype))
    }

    /// Look-back across groups, for so many tiles: each group gets the combination of all tiles before its own, by an associative
    /// and commutative operation on a dtype of 32 or 64 bits. `help(zyx.lang.LookBack)` has an example.
    fn look_back(&self, name: &str, op: &str, dtype: DTypeArg, tiles: Any<'_, '_>) -> Object {
        let (op, dtype, operand) = (operation(op)?, dtype.or(DType::F32), self.0.operand(tiles)?);
        self.record(tiles.py(), &mut |step| {
            PyLookBack::give(step, &step.k.look_back(name, op, dtype, operand))
        })
    }

    /// A queue of integers from 0 to 2^30 - 1 that groups share, with so many slots. Each slot is used once. `help(zyx.lang.Queue)`
    /// has an example.
    fn queue(&self, name: &str, capacity: Any<'_, '_>) -> Object {
        let operand = self.0.operand(capacity)?;
        self.record(capacity.py(), &mut |step| PyQueue::give(step, &step.k.queue(name, operand)))
    }

    /// Runs the function once for each point of a space, in any order and at the same time.
    fn each(&self, space: Any<'_, '_>) -> PyResult<PyBody> {
        self.body(space.py(), Kind::Each(self.0.operands(space)?))
    }

    /// Groups of threads, one for each point of a space of up to three axes.
    #[pyo3(signature = (space, threads=256))]
    fn groups(&self, space: Any<'_, '_>, threads: usize) -> PyResult<PyBody> {
        self.body(space.py(), Kind::Groups(self.0.operands(space)?, threads))
    }

    /// Runs the function once for each number, in order.
    fn for_each(&self, span: Any<'_, '_>) -> PyResult<PyBody> {
        self.body(span.py(), Kind::For(self.0.span(span)?))
    }

    /// Runs the function as long as `condition()` holds. Variables and arrays keep values from one iteration to the next.
    ///
    ///     @zyx.kernel
    ///     def halvings(k):
    ///         n = k.size("n")
    ///         x = k.input("x", [n])
    ///         y = k.output("y", [n], "int32")
    ///
    ///         @k.each(n)
    ///         def _(i):
    ///             rest, count = k.var(x[i]), k.var(0, "int32")
    ///
    ///             @k.while_(lambda: rest.get() > 1)
    ///             def _():
    ///                 rest.set(rest.get() / 2)
    ///                 count.set(count.get() + 1)
    ///
    ///             y[i] = count.get()
    ///
    ///     assert halvings(zyx.tensor([1.0, 2.0, 100.0])).tolist() == [0, 1, 7]
    ///
    /// A thread ends such a loop after 2^30 iterations, or half of the driver's limit. Then reading a result of the call raises a
    /// `KernelError`, and `Kernel.check` names the line of the loop.
    fn while_(&self, condition: Any<'_, '_>) -> PyResult<PyBody> {
        if !condition.is_callable() {
            let text = "the condition of `while_` is a function, which runs within the loop: `lambda: x.get() > 0`";
            return Err(PyTypeError::new_err(text));
        }
        self.body(condition.py(), Kind::While(condition.clone().unbind()))
    }

    /// Ends the innermost loop where a condition holds. The call stands directly in the body of `for_each`, `fold` or `while_`, not
    /// within a `when`. A `fold` gives the state that the iteration began with.
    fn break_if(&self, condition: Any<'_, '_>) -> Object {
        self.record(condition.py(), &mut |step| {
            step.k.break_if(step.value(condition, Some(DType::Bool))?);
            step.none()
        })
    }

    /// Runs the function where a condition holds.
    fn when(&self, condition: Any<'_, '_>) -> PyResult<PyBody> {
        self.body(condition.py(), Kind::When(self.0.operand(condition)?))
    }

    /// Runs one function or another.
    fn when_else(
        &self,
        condition: Any<'_, '_>,
        then: Any<'_, '_>,
        otherwise: Any<'_, '_>,
    ) -> Object {
        self.record(condition.py(), &mut |step| {
            let condition = step.value(condition, Some(DType::Bool))?;
            step.k.when_else(condition, || step.run(then, &[]), || step.run(otherwise, &[]));
            step.none()
        })
    }

    /// Runs `f(state, i)` for each number, in order, with the state that the one before gave.
    fn fold(&self, span: Any<'_, '_>, init: Any<'_, '_>, f: Any<'_, '_>) -> Object {
        let (span, is_list) = (self.0.span(span)?, is_list(init));
        let values = |object: &Bound<'_, PyAny>| match is_list {
            true => each(object, |x| self.0.operand(&x)),
            false => Ok(vec![self.0.operand(object)?]),
        };
        let first = values(init)?;
        self.record(init.py(), &mut |step| {
            let state = |values: &[Val<'_>]| match is_list {
                true => step.objects(values),
                false => step.object(values[0]),
            };
            let mut init = Vec::new();
            for first in &first {
                init.push(step.typed(*first, None)?);
            }
            let last = step.k.fold(span, init, |before, i| {
                let mut new = before.clone();
                let state = state(&before).and_then(|state| step.arguments(Some(state), &[i]));
                step.call(f, state, &mut |found| {
                    let found = values(found)?;
                    if found.len() != before.len() {
                        let (n, m) = (found.len(), before.len());
                        return Err(PyValueError::new_err(format!(
                            "`fold` begins with {m} values and goes on with {n}"
                        )));
                    }
                    for (new, found) in new.iter_mut().zip(found) {
                        *new = step.typed(found, Some(new.dtype()))?;
                    }
                    Ok(())
                });
                new
            });
            state(&last)
        })
    }

    /// A variable of a thread that begins with a value; a number needs a dtype.
    #[pyo3(signature = (init, dtype=None))]
    fn var(&self, init: Any<'_, '_>, dtype: Option<DTypeArg>) -> Object {
        self.record(init.py(), &mut |step| {
            let init = step.value(init, dtype.map(|dtype| dtype.or(DType::F32)))?;
            let array = step.k.array([], init.dtype());
            array.set((), init);
            PyVar(PyArray { recording: self.0, handle: array.handle() }).into_py_any(step.py)
        })
    }

    /// Storage of one thread, not initialised.
    fn array(&self, shape: Any<'_, '_>, dtype: DTypeArg) -> Object {
        let (extents, dtype) = (extents(shape)?, dtype.or(DType::F32));
        self.record(shape.py(), &mut |step| step.array(&step.k.array(&extents, dtype)))
    }

    /// A value of a dtype: of a number, or of another value by conversion.
    fn value(&self, x: Any<'_, '_>, dtype: DTypeArg) -> Object {
        let dtype = dtype.or(DType::F32);
        self.record(x.py(), &mut |step| step.object(step.value(x, Some(dtype))?.cast(dtype)))
    }

    /// An index: a value of `int64`.
    fn index(&self, x: &Bound<'_, PyInt>) -> Object {
        self.value(x.as_any(), DTypeArg::of(DType::I64))
    }

    /// `x` where a condition holds, else `y`.
    #[pyo3(name = "where")]
    fn choose(&self, condition: &PyVal, x: Any<'_, '_>, y: Any<'_, '_>) -> Object {
        condition.select(x, y)
    }
}
