//! Operands of binary methods: tensors, or Rust numbers that adapt to the tensor beside them.

use super::Tensor;
use crate::dtype::{Class, DType, DTypeSet, Element};
use crate::error::{Error, Result};
use crate::graph::Op;
use crate::scalar::Scalar;
use crate::shape::Shape;
use half::{bf16, f16};
use std::borrow::Cow;
use std::panic::Location;

/// The right side of a binary method: a tensor, or a number.
///
/// A number takes the dtype of the tensor beside it, unless its class is higher: a float beside
/// integers makes the result `f32`, an integer beside bools makes it `i64`.
pub trait Operand {
    /// The operand as a tensor on the device of `like`.
    #[track_caller]
    fn resolve(&self, like: &Tensor) -> Tensor;

    /// [`Operand::resolve`] that makes no handle of what is a tensor already.
    #[track_caller]
    fn lend(&self, like: &Tensor) -> Cow<'_, Tensor> {
        Cow::Owned(self.resolve(like))
    }

    /// Whether the operand is a number, which adapts to the tensor beside it; a tensor keeps its
    /// shape and dtype, whatever its elements are.
    fn is_number(&self) -> bool {
        false
    }
}

impl Operand for Tensor {
    #[track_caller]
    fn resolve(&self, _: &Tensor) -> Tensor {
        self.clone()
    }

    #[track_caller]
    fn lend(&self, _: &Tensor) -> Cow<'_, Tensor> {
        Cow::Borrowed(self)
    }
}

impl Operand for &Tensor {
    #[track_caller]
    fn resolve(&self, _: &Tensor) -> Tensor {
        (*self).clone()
    }

    #[track_caller]
    fn lend(&self, _: &Tensor) -> Cow<'_, Tensor> {
        Cow::Borrowed(self)
    }
}

#[track_caller]
fn number(x: Scalar, like: &Tensor) -> Tensor {
    let dtype = if x.dtype().class() <= like.dtype().class()
        || (x.dtype().is_int() && like.dtype().is_int())
    {
        like.dtype()
    } else {
        match x.dtype().class() {
            Class::Float => DType::F32,
            _ => DType::I64,
        }
    };
    like.argument(x.cast(dtype))
}

macro_rules! number_operands {
    ($($number:ty)*) => {$(
        impl Operand for $number {
            #[track_caller]
            fn resolve(&self, like: &Tensor) -> Tensor {
                number(Scalar::from(*self), like)
            }

            fn is_number(&self) -> bool {
                true
            }
        }
    )*};
}

number_operands!(bool u8 u16 u32 u64 i8 i16 i32 i64 f16 bf16 f32 f64);

impl Tensor {
    /// A constant with the shape and device of `self` that belongs to a formula: plans are
    /// compiled for its value.
    #[track_caller]
    pub(crate) fn constant(&self, x: Scalar) -> Tensor {
        let op = Op::Const { bits: x.bits(), literal: true };
        Tensor::source(op, self.shape().clone(), x.dtype(), self.device())
    }

    /// A constant with the shape and device of `self` that a caller chose (a learning rate):
    /// plans take it as an argument, so another value compiles nothing.
    #[track_caller]
    pub(crate) fn argument(&self, x: Scalar) -> Tensor {
        let op = Op::Const { bits: x.bits(), literal: false };
        Tensor::source(op, self.shape().clone(), x.dtype(), self.device())
    }

    /// A literal of the same dtype, shape and device.
    #[track_caller]
    pub(crate) fn like(&self, x: f64) -> Tensor {
        self.constant(Scalar::from_f64(self.dtype(), x))
    }

    /// Both operands in one dtype of `domain` and one shape.
    #[track_caller]
    pub(crate) fn unify(
        op: &'static str,
        x: &Tensor,
        y: &Tensor,
        domain: DTypeSet,
    ) -> Result<(Tensor, Tensor)> {
        let (x, y) = Tensor::unify_lent(op, x, y, domain)?;
        Ok((x.into_owned(), y.into_owned()))
    }

    /// [`Tensor::unify`] that makes no handle of an operand which is as it should be.
    #[track_caller]
    pub(crate) fn unify_lent<'a>(
        op: &'static str,
        x: &'a Tensor,
        y: &'a Tensor,
        domain: DTypeSet,
    ) -> Result<(Cow<'a, Tensor>, Cow<'a, Tensor>)> {
        if x.device() != y.device() {
            return Err(Error::NoDevice {
                spec: y.device().spec().to_owned(),
                reason: format!(
                    "{op} needs both operands on one device, the first is on {}; use `to_device`",
                    x.device()
                ),
                location: Location::caller(),
            });
        }
        let mut dtype = x.dtype().promote(y.dtype());
        if !domain.contains(dtype) {
            let reason = format!("{op} is not defined on {dtype}");
            dtype = match () {
                () if dtype == DType::Bool && domain.contains(DType::I64) => DType::I64,
                () if !dtype.is_float() && domain.contains(DType::F32) => DType::F32,
                () => return Err(Tensor::dtype_error(op, &[x, y], reason)),
            };
        }
        let given = [x, y];
        let (x, y) = (x.in_dtype(dtype), y.in_dtype(dtype));
        if x.shape().same(y.shape()) {
            return Ok((x, y));
        }
        let Some(shape) = x.shape().broadcast(y.shape()) else {
            let reason = "shapes do not broadcast: aligned from the last axis, extents must be \
                          equal or 1"
                .to_owned();
            return Err(Tensor::shape_error(op, &given, reason));
        };
        Ok((Tensor::spread(x, &shape), Tensor::spread(y, &shape)))
    }

    #[track_caller]
    fn spread<'a>(x: Cow<'a, Tensor>, shape: &Shape) -> Cow<'a, Tensor> {
        if x.shape().same(shape) { x } else { Cow::Owned(x.broadcast_unchecked(shape)) }
    }

    /// [`Tensor::cast`] that makes no handle of a tensor which has the dtype.
    #[track_caller]
    pub(crate) fn in_dtype(&self, dtype: DType) -> Cow<'_, Tensor> {
        if dtype == self.dtype() { Cow::Borrowed(self) } else { Cow::Owned(self.cast(dtype)) }
    }

    /// A Rust value as a constant operand.
    #[track_caller]
    pub(crate) fn number<T: Element>(&self, x: T) -> Tensor {
        number(Scalar::from(x), self)
    }
}
