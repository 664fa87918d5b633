//! `zyx.lang.Val`: values of a kernel that is being recorded, with operators.

use super::recording::{Arg, Recording, Step, line, operation};
use crate::dtype::DTypeArg;
use crate::error::at_site;
use crate::tensor::PyTensor;
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use zyx::internals::ir::Value;
use zyx::kernel::{Operand, UnaryOp, Val};

/// A value of a kernel that is being recorded: a scalar of some dtype.
#[pyclass(name = "Val", module = "zyx.lang", frozen)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct PyVal {
    pub(super) recording: Recording,
    pub(super) value: Value,
}

type Object = PyResult<Py<PyAny>>;
type Binary = for<'k> fn(Val<'k>, Val<'k>) -> Val<'k>;
type Map<'a> = &'a mut dyn for<'k> FnMut(&Step<'k, '_>, Val<'k>) -> PyResult<Val<'k>>;

impl PyVal {
    /// Records what makes another value of this one.
    fn step(self, py: Python<'_>, map: Map<'_>) -> Object {
        self.recording.record(py, &mut |step| {
            let value = map(step, step.k.val_of(self.value))?;
            step.object(value)
        })
    }

    fn map(self, py: Python<'_>, f: for<'k> fn(Val<'k>) -> Val<'k>) -> Object {
        self.step(py, &mut |_, value| Ok(f(value)))
    }

    /// A function of this and another operand.
    fn with(self, other: &Bound<'_, PyAny>, f: Binary) -> Object {
        self.step(other.py(), &mut |step, value| {
            Ok(f(value, step.value(other, Some(value.dtype()))?))
        })
    }

    /// An operator: Python asks the other operand where this class does not know it.
    fn operator(self, other: &Bound<'_, PyAny>, is_reflected: bool, f: Binary) -> Object {
        let py = other.py();
        let is_tensor = other.is_instance_of::<PyTensor>();
        let operand = match self.recording.operand(other) {
            Err(error) if error.is_instance_of::<PyTypeError>(py) && !is_tensor => {
                return Ok(py.NotImplemented());
            }
            operand => operand?,
        };
        self.step(py, &mut |step, value| {
            let other = operand.val(step.k, value.dtype());
            Ok(if is_reflected { f(other, value) } else { f(value, other) })
        })
    }
}

/// The quotient of Python's `/`: of floats.
fn quotient<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    if !x.dtype().is_float() {
        x.lang().fail("`/` of integers: use `//` or `div_ceil`, or cast the operands to a float");
        return x;
    }
    x / y
}

/// The quotient rounded down, as Python's `//`.
fn floor_quotient<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    let quotient = x / y;
    if x.lang().has_failed() || x.is_nonnegative() && y.is_nonnegative() {
        return quotient;
    }
    if x.dtype().is_float() {
        return quotient.floor();
    }
    let rest = x % y;
    (rest.ne(0) & rest.lt(0).ne(y.lt(0))).select(quotient - 1, quotient)
}

/// The remainder with the sign of the divisor, as Python's `%`.
fn floor_rest<'k>(x: Val<'k>, y: Val<'k>) -> Val<'k> {
    let rest = x % y;
    if x.lang().has_failed() || x.is_nonnegative() && y.is_nonnegative() {
        return rest;
    }
    (rest.ne(0) & rest.lt(0).ne(y.lt(0))).select(rest + y, rest)
}

macro_rules! unary_methods {
    ($($name:ident)*) => {
        #[pymethods]
        impl PyVal {
            $(fn $name(&self, py: Python<'_>) -> Object {
                self.map(py, |x| x.$name())
            })*
        }
    };
}

// Those that are one operation of the table are made of `unary` and `binary` in `python/zyx/lang.py`.
unary_methods! { sigmoid relu square }

macro_rules! binary_methods {
    ($($name:ident)*) => {
        #[pymethods]
        impl PyVal {
            $(fn $name(&self, other: &Bound<'_, PyAny>) -> Object {
                self.with(other, |x, y| x.$name(y))
            })*
        }
    };
}

binary_methods! { gt ge div_ceil }

#[pymethods]
impl PyVal {
    fn __add__(&self, other: &Bound<'_, PyAny>) -> Object {
        self.operator(other, false, |x, y| x + y)
    }

    fn __radd__(&self, other: &Bound<'_, PyAny>) -> Object {
        self.operator(other, true, |x, y| x + y)
    }

    fn __sub__(&self, other: &Bound<'_, PyAny>) -> Object {
        self.operator(other, false, |x, y| x - y)
    }

    fn __rsub__(&self, other: &Bound<'_, PyAny>) -> Object {
        self.operator(other, true, |x, y| x - y)
    }

    fn __mul__(&self, other: &Bound<'_, PyAny>) -> Object {
        self.operator(other, false, |x, y| x * y)
    }

    fn __rmul__(&self, other: &Bound<'_, PyAny>) -> Object {
        self.operator(other, true, |x, y| x * y)
    }

    fn __truediv__(&self, other: &Bound<'_, PyAny>) -> Object {
        self.operator(other, false, quotient)
    }

    fn __rtruediv__(&self, other: &Bound<'_, PyAny>) -> Object {
        self.operator(other, true, quotient)
    }

    fn __floordiv__(&self, other: &Bound<'_, PyAny>) -> Object {
        self.operator(other, false, floor_quotient)
    }

    fn __rfloordiv__(&self, other: &Bound<'_, PyAny>) -> Object {
        self.operator(other, true, floor_quotient)
    }

    fn __mod__(&self, other: &Bound<'_, PyAny>) -> Object {
        self.operator(other, false, floor_rest)
    }

    fn __rmod__(&self, other: &Bound<'_, PyAny>) -> Object {
        self.operator(other, true, floor_rest)
    }

    fn __and__(&self, other: &Bound<'_, PyAny>) -> Object {
        self.operator(other, false, |x, y| x & y)
    }

    fn __rand__(&self, other: &Bound<'_, PyAny>) -> Object {
        self.operator(other, true, |x, y| x & y)
    }

    fn __or__(&self, other: &Bound<'_, PyAny>) -> Object {
        self.operator(other, false, |x, y| x | y)
    }

    fn __ror__(&self, other: &Bound<'_, PyAny>) -> Object {
        self.operator(other, true, |x, y| x | y)
    }

    fn __xor__(&self, other: &Bound<'_, PyAny>) -> Object {
        self.operator(other, false, |x, y| x ^ y)
    }

    fn __rxor__(&self, other: &Bound<'_, PyAny>) -> Object {
        self.operator(other, true, |x, y| x ^ y)
    }

    fn __lshift__(&self, other: &Bound<'_, PyAny>) -> Object {
        self.operator(other, false, |x, y| x << y)
    }

    fn __rlshift__(&self, other: &Bound<'_, PyAny>) -> Object {
        self.operator(other, true, |x, y| x << y)
    }

    fn __rshift__(&self, other: &Bound<'_, PyAny>) -> Object {
        self.operator(other, false, |x, y| x >> y)
    }

    fn __rrshift__(&self, other: &Bound<'_, PyAny>) -> Object {
        self.operator(other, true, |x, y| x >> y)
    }
}

#[pymethods]
impl PyVal {
    /// Has NumPy's scalars leave operators to this class.
    #[classattr]
    fn __array_ufunc__(py: Python<'_>) -> Py<PyAny> {
        py.None()
    }

    /// Its dtype.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> Object {
        self.recording.record(py, &mut |step| step.dtype(step.k.val_of(self.value).dtype()))
    }

    /// Its dtype where it is a float, else `float32`.
    #[getter]
    fn float_dtype(&self, py: Python<'_>) -> Object {
        self.recording.record(py, &mut |step| step.dtype(step.k.val_of(self.value).float_dtype()))
    }

    /// The same value in another dtype.
    fn cast(&self, py: Python<'_>, dtype: DTypeArg) -> Object {
        self.step(py, &mut |_, value| Ok(value.cast(dtype.or(value.dtype()))))
    }

    /// The bits as a dtype of equal width.
    fn bitcast(&self, py: Python<'_>, dtype: DTypeArg) -> Object {
        self.step(py, &mut |_, value| Ok(value.bitcast(dtype.or(value.dtype()))))
    }

    /// The value within bounds.
    fn clamp(&self, min: &Bound<'_, PyAny>, max: &Bound<'_, PyAny>) -> Object {
        self.step(min.py(), &mut |step, value| {
            let dtype = Some(value.dtype());
            Ok(value.clamp(step.value(min, dtype)?, step.value(max, dtype)?))
        })
    }

    /// `self * y + z`, rounded once where the device can.
    fn mul_add(&self, y: &Bound<'_, PyAny>, z: &Bound<'_, PyAny>) -> Object {
        self.step(y.py(), &mut |step, value| {
            let dtype = Some(value.dtype());
            Ok(value.mul_add(step.value(y, dtype)?, step.value(z, dtype)?))
        })
    }

    /// `x` where this bool holds, else `y`. One of both may be a number.
    pub(super) fn select(&self, x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>) -> Object {
        let py = x.py();
        let [x, y] = [self.recording.operand(x)?, self.recording.operand(y)?];
        if matches!([x, y], [Arg::Number(_), Arg::Number(_)]) {
            let text = "`select` of two numbers: make a value of one by `k.value(x, dtype)`";
            return Err(PyTypeError::new_err(text));
        }
        self.step(py, &mut |_, value| Ok(value.select(x, y)))
    }

    /// A unary operation by its name.
    fn unary(&self, py: Python<'_>, op: &str) -> Object {
        let op = UnaryOp::from_name(op)
            .ok_or_else(|| PyValueError::new_err(format!("'{op}' is no unary operation")))?;
        self.step(py, &mut |_, value| Ok(value.unary(op)))
    }

    /// A binary operation by its name.
    fn binary(&self, op: &str, other: &Bound<'_, PyAny>) -> Object {
        let op = operation(op)?;
        self.step(other.py(), &mut |step, value| {
            Ok(value.binary(op, step.value(other, Some(value.dtype()))?))
        })
    }

    fn __pow__(&self, other: &Bound<'_, PyAny>, _modulo: &Bound<'_, PyAny>) -> Object {
        self.operator(other, false, |x, y| x.pow(y))
    }

    fn __rpow__(&self, other: &Bound<'_, PyAny>, _modulo: &Bound<'_, PyAny>) -> Object {
        self.operator(other, true, |x, y| x.pow(y))
    }

    fn __neg__(&self, py: Python<'_>) -> Object {
        self.map(py, |x| -x)
    }

    fn __pos__(&self) -> PyVal {
        *self
    }

    fn __abs__(&self, py: Python<'_>) -> Object {
        self.map(py, |x| x.abs())
    }

    fn __invert__(&self, py: Python<'_>) -> Object {
        self.map(py, |x| !x)
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> Object {
        let f: Binary = match op {
            CompareOp::Lt => |x, y| x.lt(y),
            CompareOp::Le => |x, y| x.le(y),
            CompareOp::Eq => |x, y| x.eq(y),
            CompareOp::Ne => |x, y| x.ne(y),
            CompareOp::Gt => |x, y| x.gt(y),
            CompareOp::Ge => |x, y| x.ge(y),
        };
        self.operator(other, false, f)
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        let text = "a value of a kernel is neither true nor false while the kernel is recorded: use `k.when`, \
                    `k.while_` or `condition.select(x, y)`. Python's `if`, `while`, `and`, `or`, `not`, `max` and `min` ask for it; `&`, `|`, \
                    `~`, `x.maximum(y)` and `x.minimum(y)` record";
        let site = line(py)?;
        let failed = self.recording.record(py, &mut |step| {
            step.k.fail(text);
            step.none()
        });
        let text = failed.err().map(|error| error.value(py).to_string()).unwrap_or_default();
        Err(at_site(py, PyTypeError::new_err(text), &site))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        match self.dtype(py) {
            Ok(dtype) => format!("{} of a kernel: {dtype}", self.value),
            Err(_) => "a value of a kernel that was recorded".to_owned(),
        }
    }
}
