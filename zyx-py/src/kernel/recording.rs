//! Recordings that are open in this thread, and the lines of Python that record.
//!
//! An object of Python holds the number of its recording and numbers of ops, so that one used after the recording, or in
//! another thread, is an exception. [`Recording::record`] is how each operation is recorded: it names the line of the program, and
//! raises the first mistake there.

use super::array::PyArray;
use super::value::PyVal;
use crate::arguments::{Number, index};
use crate::dtype::PyDType;
use crate::error::{caught, kernel_error, lang_error};
use crate::lists::each;
use crate::tensor::PyTensor;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use zyx::DType;
use zyx::internals::ir::Value;
use zyx::kernel::{Array, BinaryOp, Lang, Operand, Site, Span, Val};

thread_local! {
    static OPEN: RefCell<Vec<(Recording, Lang)>> = const { RefCell::new(Vec::new()) };
    /// Names of files, and whether each is a file of this package.
    static FILES: RefCell<Vec<(Arc<str>, bool)>> = const { RefCell::new(Vec::new()) };
}

/// Names of files that are kept for a thread: those of a program, and some cells of a notebook.
const MAX_FILES: usize = 64;

static NEXT: AtomicU64 = AtomicU64::new(0);

/// The number of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recording(u64);

/// An operation to be recorded; gives an object of Python.
pub(super) type Write<'a> = &'a mut dyn FnMut(&Step<'_, '_>) -> PyResult<Py<PyAny>>;

/// A recording that is open until this is dropped.
pub(super) struct Open(pub(super) Recording);

impl Open {
    pub(super) fn new(k: &Lang) -> Open {
        let recording = Recording(NEXT.fetch_add(1, Relaxed));
        OPEN.with_borrow_mut(|open| open.push((recording, k.clone())));
        Open(recording)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        OPEN.with_borrow_mut(|open| open.retain(|known| known.0 != self.0));
    }
}

/// The line of the nearest function of Python that is not of this package.
pub(crate) fn line(py: Python<'_>) -> PyResult<Site> {
    let mut frame = py.import("sys")?.call_method0("_getframe")?;
    loop {
        let name = frame.getattr("f_code")?.getattr("co_filename")?;
        let (file, is_ours) = file(py, &name.cast::<PyString>()?.to_string_lossy())?;
        let before = frame.getattr("f_back")?;
        if !is_ours || before.is_none() {
            return Ok(Site { file, line: frame.getattr("f_lineno")?.extract().unwrap_or(0) });
        }
        frame = before;
    }
}

fn file(py: Python<'_>, name: &str) -> PyResult<(Arc<str>, bool)> {
    let known = |files: &Vec<(Arc<str>, bool)>| files.iter().find(|x| *x.0 == *name).cloned();
    if let Some(known) = FILES.with_borrow(known) {
        return Ok(known);
    }
    let package: String = py.import("zyx")?.getattr("__path__")?.get_item(0)?.extract()?;
    let new = (Arc::from(name), name.starts_with(&package));
    FILES.with_borrow_mut(|files| {
        // Cells of a notebook are files each.
        if files.len() == MAX_FILES {
            files.clear();
        }
        files.push(new.clone());
    });
    Ok(new)
}

impl Recording {
    fn lang(self) -> Option<Lang> {
        let of = |open: &Vec<(Recording, Lang)>| {
            open.iter().find(|known| known.0 == self).map(|known| known.1.clone())
        };
        OPEN.with_borrow(of).filter(|k| !k.is_over())
    }

    /// Records an operation of the line of Python that is running; gives the object that `write` gives. It is compiled once
    /// for all operations.
    pub(super) fn record(self, py: Python<'_>, write: Write<'_>) -> PyResult<Py<PyAny>> {
        self.record_at(py, line(py)?, write)
    }

    /// Records an operation of a line.
    pub(super) fn record_at(
        self,
        py: Python<'_>,
        site: Site,
        write: Write<'_>,
    ) -> PyResult<Py<PyAny>> {
        let Some(k) = self.lang() else {
            let text = "a value of a kernel is used where that kernel is not being recorded";
            return Err(kernel_error(py, format!("{site}: {text}"), &site));
        };
        if let Some(error) = k.error() {
            return Err(lang_error(py, &error));
        }
        k.set_site(Some(site.clone()));
        let step = Step { py, recording: self, k: &k, site, raised: RefCell::new(None) };
        let mut result = Ok(py.None());
        let ended = caught(py, || {
            result = write(&step);
            Ok(())
        });
        if let Some(raised) = step.raised.take() {
            return Err(raised);
        }
        match k.error() {
            Some(error) => Err(lang_error(py, &error)),
            None => ended.and(result),
        }
    }

    /// Refuses an object of another recording.
    pub(super) fn must_be(self, py: Python<'_>, other: Recording) -> PyResult<()> {
        if other == self {
            return Ok(());
        }
        let site = line(py)?;
        let text = format!("{site}: a value of one recording of a kernel is used in another");
        Err(kernel_error(py, text, &site))
    }

    /// An operand: a value of this recording, or a number.
    pub(super) fn operand(self, object: &Bound<'_, PyAny>) -> PyResult<Arg> {
        if let Ok(value) = object.cast::<PyVal>() {
            let PyVal { recording, value } = *value.get();
            self.must_be(object.py(), recording)?;
            return Ok(Arg::Value(value));
        }
        if let Some(number) = Number::of(object)? {
            return Ok(Arg::Number(number));
        }
        let kind = object.get_type().name()?;
        if object.is_instance_of::<PyTensor>() {
            let text = "a tensor is no value of a kernel: declare an input and call the kernel with the tensor";
            return Err(PyTypeError::new_err(text));
        }
        // Scalars of NumPy.
        if let Some(integer) = index(object)?
            && let Some(number) = Number::of(&integer)?
        {
            return Ok(Arg::Number(number));
        }
        match object.extract::<f64>() {
            Ok(x) => Ok(Arg::Number(Number::Float(x))),
            Err(_) => Err(PyTypeError::new_err(format!("'{kind}' object is no value of a kernel"))),
        }
    }

    /// One operand, or a tuple or list of them.
    pub(super) fn operands(self, object: &Bound<'_, PyAny>) -> PyResult<Vec<Arg>> {
        match is_list(object) {
            true => each(object, |x| self.operand(&x)),
            false => Ok(vec![self.operand(object)?]),
        }
    }

    /// The range of a loop: an end, a pair of start and end, or a `range` of step 1.
    pub(super) fn span(self, object: &Bound<'_, PyAny>) -> PyResult<SpanArg> {
        if object.get_type().name()?.to_string_lossy() == "range" {
            if object.getattr("step")?.extract::<i64>()? != 1 {
                return Err(PyValueError::new_err("a loop of a kernel has step 1"));
            }
            let end = |name| self.operand(&object.getattr(name)?);
            return Ok(SpanArg { start: Some(end("start")?), end: end("stop")? });
        }
        match *self.operands(object)? {
            [end] => Ok(SpanArg { start: None, end }),
            [start, end] => Ok(SpanArg { start: Some(start), end }),
            _ => Err(PyTypeError::new_err("a loop runs over a number, or a pair of start and end")),
        }
    }
}

/// An operand: a value, or a number that takes the other operand's dtype.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arg {
    Value(Value),
    Number(Number),
}

impl<'k> Operand<'k> for Arg {
    fn val(self, k: &'k Lang, dtype: DType) -> Val<'k> {
        match self {
            Arg::Value(value) => k.val_of(value),
            Arg::Number(Number::Bool(x)) => x.val(k, dtype),
            Arg::Number(Number::Int(x)) => x.val(k, dtype),
            // The bits of a `u64` are kept.
            Arg::Number(Number::Unsigned(x)) if dtype == DType::U64 => (x as i64).val(k, dtype),
            Arg::Number(Number::Unsigned(x)) => (x as f64).val(k, dtype),
            Arg::Number(Number::Float(x)) => x.val(k, dtype),
        }
    }
}

/// The range of a loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpanArg {
    start: Option<Arg>,
    end: Arg,
}

impl<'k> Span<'k> for SpanArg {
    fn bounds(self, k: &'k Lang) -> (Option<Val<'k>>, Val<'k>) {
        (self.start.map(|start| start.val(k, DType::I64)), self.end.val(k, DType::I64))
    }
}

/// Whether an object is a tuple or list.
pub(super) fn is_list(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyTuple>() || object.is_instance_of::<PyList>()
}

/// A binary operation of the table by its name.
pub(super) fn operation(name: &str) -> PyResult<BinaryOp> {
    BinaryOp::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = BinaryOp::ALL.iter().map(|op| op.name()).collect();
        PyValueError::new_err(format!("'{name}' is no operation, which are {}", names.join(", ")))
    })
}

/// An operation being recorded.
pub(super) struct Step<'k, 'py> {
    pub(super) py: Python<'py>,
    pub(super) recording: Recording,
    pub(super) k: &'k Lang,
    site: Site,
    /// The exception of a function of Python.
    raised: RefCell<Option<PyErr>>,
}

impl<'k> Step<'k, '_> {
    /// Arguments of a function of Python: an object, if there is one, and values.
    pub(super) fn arguments(
        &self,
        first: Option<Py<PyAny>>,
        values: &[Val<'k>],
    ) -> PyResult<Vec<Py<PyAny>>> {
        let values = values.iter().map(|value| self.object(*value));
        first.map(Ok).into_iter().chain(values).collect()
    }

    /// Values as a tuple of Python.
    pub(super) fn objects(&self, values: &[Val<'k>]) -> PyResult<Py<PyAny>> {
        Ok(PyTuple::new(self.py, self.arguments(None, values)?)?.into_any().unbind())
    }

    /// A value as an object of Python.
    pub(super) fn object(&self, value: Val<'k>) -> PyResult<Py<PyAny>> {
        let value = PyVal { recording: self.recording, value: value.id() };
        Ok(Py::new(self.py, value)?.into_any())
    }

    /// An array as an object of Python.
    pub(super) fn array(&self, array: &Array<'k>) -> PyResult<Py<PyAny>> {
        let array = PyArray { recording: self.recording, handle: array.handle() };
        Ok(Py::new(self.py, array)?.into_any())
    }

    /// A dtype as an object of Python.
    pub(super) fn dtype(&self, dtype: DType) -> PyResult<Py<PyAny>> {
        Ok(Py::new(self.py, PyDType(dtype))?.into_any())
    }

    /// The result of an operation that gives nothing.
    pub(super) fn none(&self) -> PyResult<Py<PyAny>> {
        Ok(self.py.None())
    }

    /// Operands as indices, where they are numbers.
    pub(super) fn indices(&self, operands: &[Arg]) -> Vec<Val<'k>> {
        operands.iter().map(|x| x.val(self.k, DType::I64)).collect()
    }

    /// A value: a number only where its dtype is known.
    pub(super) fn value(
        &self,
        object: &Bound<'_, PyAny>,
        dtype: Option<DType>,
    ) -> PyResult<Val<'k>> {
        self.typed(self.recording.operand(object)?, dtype)
    }

    /// The value of an operand: of a number only where its dtype is known.
    pub(super) fn typed(&self, operand: Arg, dtype: Option<DType>) -> PyResult<Val<'k>> {
        match (operand, dtype) {
            (Arg::Value(value), _) => Ok(self.k.val_of(value)),
            (number, Some(dtype)) => Ok(number.val(self.k, dtype)),
            (_, None) => Err(PyTypeError::new_err(
                "a number has no dtype here: make a value of it by `k.value(x, dtype)`",
            )),
        }
    }

    /// Calls a function of Python for what it records; `use_result` is given what it returns. An exception is kept until the
    /// end of this step.
    pub(super) fn call(
        &self,
        f: &Bound<'_, PyAny>,
        arguments: PyResult<Vec<Py<PyAny>>>,
        use_result: &mut dyn FnMut(&Bound<'_, PyAny>) -> PyResult<()>,
    ) {
        if self.k.has_failed() {
            return;
        }
        let result = arguments.and_then(|arguments| f.call1(PyTuple::new(self.py, arguments)?));
        self.k.set_site(Some(self.site.clone()));
        if let Err(error) = result.and_then(|found| use_result(&found)) {
            self.k.fail(format_args!("a function raised an exception: {error}"));
            *self.raised.borrow_mut() = Some(error);
        }
    }

    /// Calls a function of values for what it records.
    pub(super) fn run(&self, f: &Bound<'_, PyAny>, values: &[Val<'k>]) {
        self.call(f, self.arguments(None, values), &mut |_| Ok(()));
    }

    /// The value that a function of values gives; a number takes this dtype, if there is one.
    pub(super) fn found(
        &self,
        f: &Bound<'_, PyAny>,
        values: &[Val<'k>],
        dtype: Option<DType>,
    ) -> Val<'k> {
        let mut found = None;
        self.call(f, self.arguments(None, values), &mut |object| {
            found = Some(self.value(object, dtype)?);
            Ok(())
        });
        // A zero where the recording has failed.
        found.unwrap_or_else(|| self.k.value(0, dtype.unwrap_or(DType::F32)))
    }
}
