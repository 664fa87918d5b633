//! Python's operators on tensors, with PyTorch's meaning: `/` divides truly, `//` rounds down, `%`
//! has the sign of the divisor, comparisons give tensors of `bool`. Those that call one method and
//! exist in both directions are written by `build/`, from the table of operators there.

use crate::arguments::{Argument, OperandArg, Ready};
use crate::error::caught;
use crate::tensor::PyTensor;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use std::borrow::Cow;
use zyx::{DType, Operand, Tensor};

/// The kind of numbers of a dtype: truth values below integers below floats.
fn kind(dtype: DType) -> u8 {
    match dtype {
        DType::Bool => 0,
        dtype => 1 + u8::from(dtype.is_float()),
    }
}

/// PyTorch's promotion: beside a tensor with axes, one without takes its dtype, unless its own kind of numbers is a
/// higher one.
fn yields(scalar: &Tensor, beside: &Tensor) -> bool {
    scalar.rank() == 0
        && beside.rank() > 0
        && scalar.dtype() != beside.dtype()
        && kind(scalar.dtype()) <= kind(beside.dtype())
}

/// Two operands as an operation promotes them.
pub(crate) fn settle(t: &Tensor, other: Ready) -> (Cow<'_, Tensor>, Ready) {
    match other {
        Ready::Tensor(x) if yields(&x, t) => (Cow::Borrowed(t), Ready::Tensor(x.cast(t.dtype()))),
        Ready::Tensor(x) if yields(t, &x) => (Cow::Owned(t.cast(x.dtype())), Ready::Tensor(x)),
        other => (Cow::Borrowed(t), other),
    }
}

/// An operand that is one of several beside a tensor.
pub(crate) fn settled(t: &Tensor, other: Ready) -> Ready {
    match other {
        Ready::Tensor(x) if yields(&x, t) => Ready::Tensor(x.cast(t.dtype())),
        other => other,
    }
}

/// The operands of a choice.
pub(crate) fn settle_pair(x: Ready, y: Ready) -> (Ready, Ready) {
    match (x, y) {
        (Ready::Tensor(x), y) => {
            let (x, y) = settle(&x, y);
            (Ready::Tensor(x.into_owned()), y)
        }
        pair => pair,
    }
}

/// The operands of an operator.
pub(crate) fn beside(t: &Tensor, other: OperandArg) -> PyResult<(Cow<'_, Tensor>, Ready)> {
    Ok(settle(t, other.ready(t.device())?))
}

/// `other op t`.
pub(crate) fn reflected(
    py: Python<'_>,
    t: &Tensor,
    other: OperandArg,
    f: impl FnOnce(&Tensor, &Tensor) -> zyx::Result<Tensor>,
) -> PyResult<PyTensor> {
    let (t, other) = beside(t, other)?;
    let other = other.resolve(&t);
    caught(py, || f(&other, &t)).map(PyTensor::new)
}

#[pymethods]
impl PyTensor {
    fn __matmul__(&self, py: Python<'_>, other: OperandArg) -> PyResult<PyTensor> {
        let t = self.tensor();
        let other = matrix(&t, other)?;
        caught(py, || t.matmul(&other)).map(PyTensor::new)
    }

    fn __rmatmul__(&self, py: Python<'_>, other: OperandArg) -> PyResult<PyTensor> {
        let t = self.tensor();
        let other = matrix(&t, other)?;
        caught(py, || other.matmul(&t)).map(PyTensor::new)
    }

    fn __pow__(
        &self,
        py: Python<'_>,
        other: OperandArg,
        modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTensor> {
        no_modulo(modulo)?;
        let t = self.tensor();
        let (t, other) = beside(&t, other)?;
        caught(py, || t.pow(other)).map(PyTensor::new)
    }

    fn __rpow__(
        &self,
        py: Python<'_>,
        other: OperandArg,
        modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTensor> {
        no_modulo(modulo)?;
        reflected(py, &self.tensor(), other, |x, y| x.pow(y))
    }

    fn __divmod__(&self, py: Python<'_>, other: OperandArg) -> PyResult<(PyTensor, PyTensor)> {
        let t = self.tensor();
        let (t, other) = beside(&t, other)?;
        let other = other.resolve(&t);
        let whole = caught(py, || t.floor_divide(&other))?;
        let rest = caught(py, || t.remainder(&other))?;
        Ok((PyTensor::new(whole), PyTensor::new(rest)))
    }

    fn __neg__(&self, py: Python<'_>) -> PyResult<PyTensor> {
        caught(py, || Ok(self.tensor().neg())).map(PyTensor::new)
    }

    fn __pos__(&self) -> PyTensor {
        PyTensor::new(self.tensor())
    }

    fn __abs__(&self, py: Python<'_>) -> PyResult<PyTensor> {
        caught(py, || Ok(self.tensor().abs())).map(PyTensor::new)
    }

    fn __invert__(&self, py: Python<'_>) -> PyResult<PyTensor> {
        caught(py, || self.tensor().bitwise_not()).map(PyTensor::new)
    }

    fn __richcmp__(&self, py: Python<'_>, other: OperandArg, op: CompareOp) -> PyResult<PyTensor> {
        let t = self.tensor();
        let (t, other) = beside(&t, other)?;
        let compared = caught(py, || match op {
            CompareOp::Lt => t.lt(other),
            CompareOp::Le => t.le(other),
            CompareOp::Eq => t.eq(other),
            CompareOp::Ne => t.ne(other),
            CompareOp::Gt => t.gt(other),
            CompareOp::Ge => t.ge(other),
        });
        compared.map(PyTensor::new)
    }

    /// Tensors are told apart by identity, as `==` compares elements.
    fn __hash__(slf: &Bound<'_, Self>) -> isize {
        // The low bits of an address are equal.
        (slf.as_ptr() as usize).rotate_right(4) as isize
    }
}

/// The other factor of a matrix product, which cannot be a number.
fn matrix(t: &Tensor, other: OperandArg) -> PyResult<Tensor> {
    match other.ready(t.device())? {
        Ready::Tensor(other) => Ok(other),
        Ready::Number(_) => Err(PyTypeError::new_err("matmul: a number is no matrix; use `*`")),
    }
}

fn no_modulo(modulo: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match modulo {
        None => Ok(()),
        Some(_) => Err(PyTypeError::new_err("pow() of tensors takes no modulus")),
    }
}
