//! `zyx.lang.Lang`: the kernel that is being recorded, with its sizes, arguments, loops and conditions.

use super::array::{PyArray, PyVar};
use super::group::{PyGroup, PyMatrix, PyRows};
use super::recording::{Arg, Recording, SpanArg, Step};
use super::value::PyVal;
use crate::dtype::DTypeArg;
use crate::lists::each;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyTuple};
use zyx::DType;
use zyx::kernel::{Array, Site, Val};

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

/// What a body runs in.
#[derive(Debug)]
pub(super) enum Kind {
    /// Independent iterations.
    Each(Vec<Arg>),
    Groups(Vec<Arg>, usize),
    /// Iterations spread over the threads of a group.
    GroupEach(Vec<Arg>),
    /// Elements of a matrix, with values of their rows.
    Elements(PyMatrix, Vec<PyRows>),
    /// Iterations in order.
    For(SpanArg),
    When(PyVal),
}

impl PyBody {
    pub(super) fn new(py: Python<'_>, recording: Recording, kind: Kind) -> PyResult<PyBody> {
        Ok(PyBody { recording, site: super::recording::line(py)?, kind })
    }
}

#[pymethods]
impl PyBody {
    fn __call__(&self, f: &Bound<'_, PyAny>) -> PyResult<()> {
        self.recording.record_at(f.py(), self.site.clone(), |step| {
            let k = step.k;
            match &self.kind {
                Kind::Each(space) => k.each(&step.indices(space)[..], |at| step.run(f, &at)),
                Kind::Groups(space, threads) => {
                    let group = Py::new(step.py, PyGroup(self.recording))?.into_any();
                    k.groups(&step.indices(space)[..], *threads, |_, at| {
                        step.call(f, Some(group), &at, &mut |_| Ok(()));
                    });
                }
                Kind::GroupEach(space) => {
                    super::group::of(step)?.each(&step.indices(space)[..], |at| step.run(f, &at));
                }
                Kind::Elements(matrix, rows) => matrix.elements(step, rows, f)?,
                Kind::For(span) => k.for_each(*span, |i| step.run(f, &[i])),
                Kind::When(condition) => {
                    k.when(k.val_of(condition.value), || step.run(f, &[]));
                }
            }
            Ok(())
        })
    }
}

/// Extents that are numbers: of storage, and of matrices.
pub(super) fn extents(shape: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let one = |x: &Bound<'_, PyAny>| match x.cast::<PyVal>() {
        Ok(_) => Err(PyTypeError::new_err(
            "extents of storage are numbers of Python, as `k.parameter` gives them, not values of the kernel",
        )),
        Err(_) => x.extract::<usize>(),
    };
    if shape.is_instance_of::<PyTuple>() || shape.is_instance_of::<PyList>() {
        return each(shape, |x| one(&x));
    }
    Ok(vec![one(shape)?])
}

impl PyLang {
    /// Declares an argument.
    fn declare(
        self,
        shape: &Bound<'_, PyAny>,
        declare: impl for<'k> FnOnce(&Step<'k, '_>, &[Val<'k>]) -> Array<'k>,
    ) -> PyResult<PyArray> {
        let shape_operands = self.0.operands(shape)?.0;
        self.0.record(shape.py(), |step| {
            Ok(PyArray::new(step, &declare(step, &step.indices(&shape_operands))))
        })
    }
}

#[pymethods]
impl PyLang {
    /// A size: a number that is not known before the kernel is called.
    fn size(&self, py: Python<'_>, name: &str) -> PyResult<PyVal> {
        self.0.record(py, |step| Ok(step.object(step.k.size(name))))
    }

    /// Several sizes.
    #[pyo3(signature = (*names))]
    fn sizes(&self, names: &Bound<'_, PyTuple>) -> PyResult<Py<PyTuple>> {
        let texts = names.extract::<Vec<String>>()?;
        self.0.record(names.py(), |step| {
            let sizes: Vec<Val<'_>> = texts.iter().map(|name| step.k.size(name)).collect();
            step.objects(&sizes)
        })
    }

    /// A number among these: the first one, unless `with_parameter` chooses another.
    fn parameter(&self, py: Python<'_>, name: &str, values: Vec<usize>) -> PyResult<usize> {
        self.0.record(py, |step| Ok(step.k.parameter(name, &values)))
    }

    /// The next input, in the dtype of the tensor that the caller gives.
    fn input(&self, name: &str, shape: &Bound<'_, PyAny>) -> PyResult<PyArray> {
        self.declare(shape, |step, shape| step.k.input_of(name, shape))
    }

    /// A result, each element of which is stored at most once.
    fn output(
        &self,
        name: &str,
        shape: &Bound<'_, PyAny>,
        dtype: DTypeArg,
    ) -> PyResult<PyArray> {
        self.declare(shape, |step, shape| step.k.output_of(name, shape, dtype.or(DType::F32)))
    }

    /// A result all elements of which are `fill` before the kernel runs.
    #[pyo3(signature = (name, shape, dtype, fill=None))]
    fn output_filled(
        &self,
        name: &str,
        shape: &Bound<'_, PyAny>,
        dtype: DTypeArg,
        fill: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyArray> {
        let fill = fill.map(|fill| self.0.operand(fill)).transpose()?;
        let dtype = dtype.or(DType::F32);
        let fill = match fill {
            Some(Arg::Number(number)) => Some(number),
            None => None,
            Some(Arg::Value(_)) => {
                return Err(PyValueError::new_err("`fill` is a number, not a value of the kernel"));
            }
        };
        self.declare(shape, |step, shape| {
            let fill = match fill {
                Some(number) => zyx::kernel::Operand::val(Arg::Number(number), step.k, dtype),
                None => step.k.value(0, dtype),
            };
            let fill = fill.literal().unwrap_or_else(|| zyx::Scalar::from_i64(dtype, 0));
            step.k.output_filled_of(name, shape, dtype, fill)
        })
    }

    /// A result that is a copy of an input before the kernel runs.
    fn output_from(&self, py: Python<'_>, name: &str, input: &PyArray) -> PyResult<PyArray> {
        self.0.record(py, |step| {
            let input = input.in_step(step)?;
            Ok(PyArray::new(step, &step.k.output_from(name, &input)))
        })
    }

    /// Memory of zeros that only the kernel sees.
    fn scratch(
        &self,
        name: &str,
        shape: &Bound<'_, PyAny>,
        dtype: DTypeArg,
    ) -> PyResult<PyArray> {
        self.declare(shape, |step, shape| step.k.scratch_of(name, shape, dtype.or(DType::F32)))
    }

    /// Runs the function once for each point of a space, in any order and at the same time.
    fn each(&self, space: &Bound<'_, PyAny>) -> PyResult<PyBody> {
        PyBody::new(space.py(), self.0, Kind::Each(self.0.operands(space)?.0))
    }

    /// Groups of threads, one for each point of a space of up to three axes.
    #[pyo3(signature = (space, threads=256))]
    fn groups(&self, space: &Bound<'_, PyAny>, threads: usize) -> PyResult<PyBody> {
        PyBody::new(space.py(), self.0, Kind::Groups(self.0.operands(space)?.0, threads))
    }

    /// Runs the function once for each number, in order.
    fn for_each(&self, span: &Bound<'_, PyAny>) -> PyResult<PyBody> {
        PyBody::new(span.py(), self.0, Kind::For(self.0.span(span)?))
    }

    /// Runs the function where a condition holds.
    fn when(&self, condition: &Bound<'_, PyAny>) -> PyResult<PyBody> {
        let value = self.0.record(condition.py(), |step| {
            Ok(step.object(step.value(condition, Some(DType::Bool))?))
        })?;
        PyBody::new(condition.py(), self.0, Kind::When(value))
    }

    /// Runs one function or another.
    fn when_else(
        &self,
        condition: &Bound<'_, PyAny>,
        then: &Bound<'_, PyAny>,
        otherwise: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.0.record(condition.py(), |step| {
            let condition = step.value(condition, Some(DType::Bool))?;
            step.k.when_else(condition, || step.run(then, &[]), || step.run(otherwise, &[]));
            Ok(())
        })
    }

    /// Runs `f(state, i)` for each number, in order, with the state that the one before gave.
    fn fold(
        &self,
        span: &Bound<'_, PyAny>,
        init: &Bound<'_, PyAny>,
        f: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        let span = self.0.span(span)?;
        let is_single = !(init.is_instance_of::<PyTuple>() || init.is_instance_of::<PyList>());
        self.0.record(init.py(), |step| {
            let first = match is_single {
                true => vec![step.value(init, None)?],
                false => each(init, |x| step.value(&x, None))?,
            };
            let state = |values: &[Val<'_>]| -> PyResult<Py<PyAny>> {
                match (is_single, values) {
                    (true, [one]) => Ok(Py::new(step.py, step.object(*one))?.into_any()),
                    _ => Ok(step.objects(values)?.into_any()),
                }
            };
            let mut failed = None;
            let last = step.k.fold(span, first, |before, i| {
                let mut new = before.clone();
                match state(&before) {
                    Ok(object) => step.call(f, Some(object), &[i], &mut |found| {
                        let found = match is_single {
                            true => vec![found.clone()],
                            false => each(found, Ok)?,
                        };
                        if found.len() != before.len() {
                            let (n, m) = (found.len(), before.len());
                            return Err(PyValueError::new_err(format!(
                                "`fold` begins with {m} values and goes on with {n}"
                            )));
                        }
                        for ((new, found), before) in new.iter_mut().zip(&found).zip(&before) {
                            *new = step.value(found, Some(before.dtype()))?;
                        }
                        Ok(())
                    }),
                    Err(error) => failed = Some(error),
                }
                new
            });
            failed.map_or(Ok(()), Err)?;
            state(&last)
        })
    }

    /// A variable of a thread that begins with a value; a number needs a dtype.
    #[pyo3(signature = (init, dtype=None))]
    fn var(&self, init: &Bound<'_, PyAny>, dtype: Option<DTypeArg>) -> PyResult<PyVar> {
        self.0.record(init.py(), |step| {
            let init = step.value(init, dtype.map(|dtype| dtype.or(DType::F32)))?;
            let array = step.k.array_of_shape(&[], init.dtype());
            array.set((), init);
            Ok(PyVar(PyArray::new(step, &array)))
        })
    }

    /// Storage of one thread, not initialised.
    fn array(&self, shape: &Bound<'_, PyAny>, dtype: DTypeArg) -> PyResult<PyArray> {
        let extents = extents(shape)?;
        self.0.record(shape.py(), |step| {
            let array = step.k.array_of_shape(&extents, dtype.or(DType::F32));
            Ok(PyArray::new(step, &array))
        })
    }

    /// A value of a dtype: of a number, or of another value by conversion.
    fn value(&self, x: &Bound<'_, PyAny>, dtype: DTypeArg) -> PyResult<PyVal> {
        let dtype = dtype.or(DType::F32);
        self.0.record(x.py(), |step| Ok(step.object(step.value(x, Some(dtype))?.cast(dtype))))
    }

    /// An index: a value of `int64`.
    fn index(&self, x: &Bound<'_, PyInt>) -> PyResult<PyVal> {
        self.value(x.as_any(), DTypeArg::of(DType::I64))
    }

    /// `x` where a condition holds, else `y`.
    #[pyo3(name = "where")]
    fn choose(
        &self,
        condition: &PyVal,
        x: &Bound<'_, PyAny>,
        y: &Bound<'_, PyAny>,
    ) -> PyResult<PyVal> {
        condition.select(x.py(), x, y)
    }
}
