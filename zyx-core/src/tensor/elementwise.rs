//! Elementwise methods: one per row of the op tables, and what is composed of them.

use super::{Operand, Tensor};
use crate::dtype::{DType, DTypeSet};
use crate::error::{Named, Result};
use crate::graph::Op;
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use std::sync::Arc;

impl Tensor {
    /// A unary op; operands outside its domain are converted (bool to `i64`, else to `f32`).
    pub(crate) fn unary(&self, op: UnaryOp) -> Tensor {
        let x = if op.domain().contains(self.dtype()) {
            self.clone()
        } else if op.domain().contains(DType::I64) && !self.dtype().is_float() {
            self.cast(DType::I64)
        } else {
            self.cast(DType::F32)
        };
        Tensor::pending(Op::Unary(op), [&x], x.shape().clone(), x.dtype())
    }

    #[track_caller]
    pub(crate) fn binary(&self, name: &'static str, op: BinaryOp, y: &Tensor) -> Result<Tensor> {
        let (x, y) = Tensor::unify(name, self, y, op.domain())?;
        let dtype = op.result(x.dtype());
        Ok(Tensor::pending(Op::Binary(op), [&x, &y], x.shape().clone(), dtype))
    }

    /// The elements converted to `dtype` (rules: [`crate::scalar`]).
    pub fn cast(&self, dtype: DType) -> Tensor {
        if dtype == self.dtype() {
            return self.clone();
        }
        Tensor::pending(Op::Cast, [self], self.shape().clone(), dtype)
    }

    /// The bits of the elements read as another dtype of the same width.
    ///
    /// # Errors
    /// When the widths differ.
    #[track_caller]
    pub fn bitcast(&self, dtype: DType) -> Result<Tensor> {
        if dtype.bits() != self.dtype().bits()
            || (dtype == DType::Bool) != (self.dtype() == DType::Bool)
        {
            let reason = format!("bits of {} cannot be read as {dtype}", self.dtype());
            return Err(Tensor::dtype_error("bitcast", &[self], reason));
        }
        if dtype == self.dtype() {
            return Ok(self.clone());
        }
        Ok(Tensor::pending(Op::Bitcast, [self], self.shape().clone(), dtype))
    }
}

macro_rules! unary_methods {
    ($($(#[$doc:meta])* $name:ident $op:ident;)*) => {
        impl Tensor {
            $($(#[$doc])*
            pub fn $name(&self) -> Tensor { self.unary(UnaryOp::$op) })*
        }
    };
}

unary_methods! {
    /// `-x`; wraps on integers, bools count as integers.
    neg Neg;
    /// `|x|`.
    abs Abs;
    /// `1 / x`.
    recip Recip;
    /// Square root.
    sqrt Sqrt;
    /// `e^x`.
    exp Exp;
    /// `2^x`.
    exp2 Exp2;
    /// `e^x - 1`, accurate near zero.
    expm1 Expm1;
    /// Natural logarithm.
    log Log;
    /// Base-2 logarithm.
    log2 Log2;
    /// `log(1 + x)`, accurate near zero.
    log1p Log1p;
    /// Sine of radians.
    sin Sin;
    /// Cosine of radians.
    cos Cos;
    /// Tangent of radians.
    tan Tan;
    /// Arc sine in radians.
    asin Asin;
    /// Arc cosine in radians.
    acos Acos;
    /// Arc tangent in radians.
    atan Atan;
    /// Hyperbolic sine.
    sinh Sinh;
    /// Hyperbolic cosine.
    cosh Cosh;
    /// Hyperbolic tangent.
    tanh Tanh;
    /// Error function.
    erf Erf;
    /// Largest integer not above.
    floor Floor;
    /// Smallest integer not below.
    ceil Ceil;
    /// Nearest integer, ties to even.
    round Round;
    /// Integer part.
    trunc Trunc;
}

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $name:ident $op:ident;)*) => {
        impl Tensor {
            $($(#[$doc])*
            ///
            /// # Errors
            /// When shapes do not broadcast, or the op is not defined on the dtypes.
            #[track_caller]
            pub fn $name(&self, rhs: impl Operand) -> Result<Tensor> {
                self.binary(stringify!($name), BinaryOp::$op, &rhs.resolve(self))
            })*
        }
    };
}

binary_methods! {
    /// Sum, with broadcasting and promotion.
    add Add;
    /// Difference.
    sub Sub;
    /// Product.
    mul Mul;
    /// Remainder with the sign of the dividend (C's `fmod`).
    fmod Rem;
    /// Angle of the point `(rhs, self)` in radians.
    atan2 Atan2;
    /// Elementwise larger value; NaN if either is.
    maximum Max;
    /// Elementwise smaller value; NaN if either is.
    minimum Min;
    /// Bitwise and; logical on bool.
    bitwise_and And;
    /// Bitwise or; logical on bool.
    bitwise_or Or;
    /// Bitwise exclusive or; logical on bool.
    bitwise_xor Xor;
    /// Shift left.
    shl Shl;
    /// Shift right, arithmetic on signed integers.
    shr Shr;
    /// `self < rhs`, as bool.
    lt Lt;
    /// `self <= rhs`, as bool.
    le Le;
    /// `self == rhs`, as bool; NaN equals nothing.
    eq Eq;
    /// `self != rhs`, as bool.
    ne Ne;
}

const FLOATS: DTypeSet = UnaryOp::Sqrt.domain();

impl Tensor {
    /// True division: integers are converted to `f32` first.
    ///
    /// # Errors
    /// When shapes do not broadcast.
    #[track_caller]
    pub fn div(&self, rhs: impl Operand) -> Result<Tensor> {
        let (x, y) = Tensor::unify("div", self, &rhs.resolve(self), FLOATS)?;
        let (shape, dtype) = (x.shape().clone(), x.dtype());
        Ok(Tensor::pending(Op::Binary(BinaryOp::Div), [&x, &y], shape, dtype))
    }

    /// Division truncated towards zero, in the promoted dtype; an integer divided by 0 is 0.
    ///
    /// # Errors
    /// When shapes do not broadcast.
    #[track_caller]
    pub fn trunc_divide(&self, rhs: impl Operand) -> Result<Tensor> {
        let quotient = self.binary("trunc_divide", BinaryOp::Div, &rhs.resolve(self))?;
        Ok(if quotient.dtype().is_float() { quotient.trunc() } else { quotient })
    }

    /// Division rounded down, as Python's `//`; an integer divided by 0 is 0.
    ///
    /// # Errors
    /// When shapes do not broadcast.
    #[track_caller]
    pub fn floor_divide(&self, rhs: impl Operand) -> Result<Tensor> {
        let (x, y) =
            Tensor::unify("floor_divide", self, &rhs.resolve(self), BinaryOp::Div.domain())?;
        let quotient = x.binary("floor_divide", BinaryOp::Div, &y)?;
        if quotient.dtype().is_float() {
            return Ok(quotient.floor());
        }
        if !quotient.dtype().is_signed() {
            return Ok(quotient);
        }
        let rest = x.combine(BinaryOp::Rem, &y);
        let inexact = rest.ne(0)?.bitwise_and(rest.lt(0)?.ne(y.lt(0)?)?)?.bitwise_and(y.ne(0)?)?;
        quotient.sub(inexact.cast(quotient.dtype()))
    }

    /// Remainder with the sign of the divisor, as Python's `%`; `x % 0` is `x` on integers.
    ///
    /// # Errors
    /// When shapes do not broadcast.
    #[track_caller]
    pub fn remainder(&self, rhs: impl Operand) -> Result<Tensor> {
        let (x, y) = Tensor::unify("remainder", self, &rhs.resolve(self), BinaryOp::Rem.domain())?;
        let rest = x.combine(BinaryOp::Rem, &y);
        let wrong = rest.ne(0)?.bitwise_and(rest.lt(0)?.ne(y.lt(0)?)?)?.bitwise_and(y.ne(0)?)?;
        wrong.where_(rest.add(&y)?, &rest)
    }

    /// `self` to the power `rhs`. An integer to a negative power is 0, unless the base is 1 or -1.
    ///
    /// # Errors
    /// When shapes do not broadcast.
    #[track_caller]
    pub fn pow(&self, rhs: impl Operand) -> Result<Tensor> {
        let rhs = rhs.resolve(self);
        // Of a tensor that somebody else holds, gradients may be asked, whatever its value is.
        let is_number = Arc::strong_count(&rhs.0) == 1;
        let exponent = rhs.as_const().filter(|_| is_number).map(|c| c.to_f64());
        let (x, y) = Tensor::unify("pow", self, &rhs, BinaryOp::Pow.domain())?;
        Ok(match exponent {
            Some(2.0) => x.combine(BinaryOp::Mul, &x),
            Some(1.0) => x,
            Some(0.5) if x.dtype().is_float() => x.sqrt(),
            Some(-1.0) if x.dtype().is_float() => x.recip(),
            _ => x.combine(BinaryOp::Pow, &y),
        })
    }

    /// `self > rhs`, as bool.
    ///
    /// # Errors
    /// When shapes do not broadcast.
    #[track_caller]
    pub fn gt(&self, rhs: impl Operand) -> Result<Tensor> {
        rhs.resolve(self).binary("gt", BinaryOp::Lt, self)
    }

    /// `self >= rhs`, as bool.
    ///
    /// # Errors
    /// When shapes do not broadcast.
    #[track_caller]
    pub fn ge(&self, rhs: impl Operand) -> Result<Tensor> {
        rhs.resolve(self).binary("ge", BinaryOp::Le, self)
    }

    /// Bitwise complement; logical on bool.
    ///
    /// # Errors
    /// On floats.
    #[track_caller]
    pub fn bitwise_not(&self) -> Result<Tensor> {
        if self.dtype().is_float() {
            let reason = "bit operations are not defined on floats; use `logical_not`".to_owned();
            return Err(Tensor::dtype_error("bitwise_not", &[self], reason));
        }
        Ok(self.unary(UnaryOp::Not))
    }

    /// Whether each element is zero (false).
    pub fn logical_not(&self) -> Tensor {
        self.cast(DType::Bool).unary(UnaryOp::Not)
    }

    /// Both nonzero.
    ///
    /// # Errors
    /// When shapes do not broadcast.
    #[track_caller]
    pub fn logical_and(&self, rhs: impl Operand) -> Result<Tensor> {
        let (x, y) = (self.cast(DType::Bool), rhs.resolve(self).cast(DType::Bool));
        x.binary("logical_and", BinaryOp::And, &y)
    }

    /// Either nonzero.
    ///
    /// # Errors
    /// When shapes do not broadcast.
    #[track_caller]
    pub fn logical_or(&self, rhs: impl Operand) -> Result<Tensor> {
        let (x, y) = (self.cast(DType::Bool), rhs.resolve(self).cast(DType::Bool));
        x.binary("logical_or", BinaryOp::Or, &y)
    }

    /// Where `self` (as bool) holds, `x`, elsewhere `y`; all three broadcast.
    ///
    /// # Errors
    /// When shapes do not broadcast.
    #[track_caller]
    pub fn where_(&self, x: impl Operand, y: impl Operand) -> Result<Tensor> {
        let cond = self.cast(DType::Bool);
        // A number adapts to the other branch, so resolve each against a branch that is a tensor.
        let neutral = self.constant(crate::scalar::Scalar::from(false));
        let mut x = x.resolve(&neutral);
        let mut y = y.resolve(&neutral);
        if let (Some(c), None) = (x.as_const(), y.as_const()) {
            x = y.weak(c);
        } else if let (None, Some(c)) = (x.as_const(), y.as_const()) {
            y = x.weak(c);
        }
        let (x, y) = Tensor::unify("where", &x, &y, DTypeSet::ALL)?;
        let shape = cond.shape().broadcast(x.shape());
        let Some(shape) = shape else {
            let reason = "the condition does not broadcast with the values".to_owned();
            return Err(Tensor::shape_error("where", &[&cond, &x, &y], reason));
        };
        if cond.device() != x.device() {
            return Err(Tensor::argument_error(
                "where",
                "operands are on different devices".into(),
            ));
        }
        let (cond, x, y) = (
            cond.broadcast_unchecked(&shape),
            x.broadcast_unchecked(&shape),
            y.broadcast_unchecked(&shape),
        );
        let dtype = x.dtype();
        Ok(Tensor::pending(Op::Ternary(TernaryOp::Where), [&cond, &x, &y], shape, dtype))
    }

    /// The constant `c` in the dtype a number takes beside `self`.
    fn weak(&self, c: crate::scalar::Scalar) -> Tensor {
        let fits = c.dtype().class() <= self.dtype().class();
        self.argument(if fits { c.cast(self.dtype()) } else { c })
    }

    /// `1 / sqrt(x)`.
    pub fn rsqrt(&self) -> Tensor {
        self.sqrt().recip()
    }

    /// `x * x`.
    pub fn square(&self) -> Tensor {
        let x = if self.dtype() == DType::Bool { self.cast(DType::I64) } else { self.clone() };
        x.combine(BinaryOp::Mul, &x)
    }

    /// -1, 0 or 1; NaN stays NaN.
    pub fn sign(&self) -> Tensor {
        let x = if self.dtype() == DType::Bool { self.cast(DType::I64) } else { self.clone() };
        let zero = x.like(0.0);
        let above = zero.combine(BinaryOp::Lt, &x).cast(x.dtype());
        let below = x.combine(BinaryOp::Lt, &zero).cast(x.dtype());
        let sign = above.combine(BinaryOp::Sub, &below);
        if x.dtype().is_float() { x.is_nan().select(&x, &sign) } else { sign }
    }

    /// Whether each element is NaN.
    pub fn is_nan(&self) -> Tensor {
        self.combine(BinaryOp::Ne, self)
    }

    /// Whether each element is positive or negative infinity.
    pub fn is_inf(&self) -> Tensor {
        if !self.dtype().is_float() {
            return self.constant(crate::scalar::Scalar::from(false));
        }
        self.abs().combine(BinaryOp::Eq, &self.like(f64::INFINITY))
    }

    /// Whether each element is neither NaN nor infinite.
    pub fn is_finite(&self) -> Tensor {
        if !self.dtype().is_float() {
            return self.constant(crate::scalar::Scalar::from(true));
        }
        self.abs().combine(BinaryOp::Lt, &self.like(f64::INFINITY))
    }

    /// Each element limited to `min ..= max`.
    ///
    /// # Errors
    /// When operands are tensors whose shapes do not broadcast.
    #[track_caller]
    pub fn clamp(&self, min: impl Operand, max: impl Operand) -> Result<Tensor> {
        self.maximum(min).and_then(|x| x.minimum(max)).named("clamp")
    }

    /// `self + weight * (end - self)`.
    ///
    /// # Errors
    /// When shapes do not broadcast.
    #[track_caller]
    pub fn lerp(&self, end: impl Operand, weight: impl Operand) -> Result<Tensor> {
        let end = end.resolve(self);
        let step = end.sub(self).and_then(|step| step.mul(weight));
        step.and_then(|step| self.add(step)).named("lerp")
    }

    /// `max(x, 0)`; NaN stays NaN.
    pub fn relu(&self) -> Tensor {
        self.combine(BinaryOp::Max, &self.like(0.0))
    }

    /// `x` where positive, else `slope * x`.
    pub fn leaky_relu(&self, slope: f64) -> Tensor {
        let x = self.floating();
        let positive = x.like(0.0).combine(BinaryOp::Lt, &x);
        positive.select(&x, &x.combine(BinaryOp::Mul, &x.like(slope)))
    }

    /// `1 / (1 + e^-x)`.
    pub fn sigmoid(&self) -> Tensor {
        let x = self.floating();
        x.neg().exp().combine(BinaryOp::Add, &x.like(1.0)).recip()
    }

    /// `x * sigmoid(x)`, also called swish.
    pub fn silu(&self) -> Tensor {
        let x = self.floating();
        x.combine(BinaryOp::Mul, &x.sigmoid())
    }

    /// `log(1 + e^x)`, without overflow.
    pub fn softplus(&self) -> Tensor {
        let x = self.floating();
        let tail = x.abs().neg().exp().log1p();
        x.relu().combine(BinaryOp::Add, &tail)
    }

    /// `x` where positive, else `alpha * (e^x - 1)`.
    pub fn elu(&self, alpha: f64) -> Tensor {
        let x = self.floating();
        let zero = x.like(0.0);
        let low = x.combine(BinaryOp::Min, &zero).expm1();
        let low = low.combine(BinaryOp::Mul, &x.like(alpha));
        zero.combine(BinaryOp::Lt, &x).select(&x, &low)
    }

    /// The self-normalising activation of Klambauer et al. 2017.
    pub fn selu(&self) -> Tensor {
        let y = self.elu(1.673_263_242_354_377_2);
        y.combine(BinaryOp::Mul, &y.like(1.050_700_987_355_480_5))
    }

    /// The Gaussian error linear unit in its tanh form (Hendrycks and Gimpel 2016).
    pub fn gelu(&self) -> Tensor {
        let x = self.floating();
        let cubic = x.square().combine(BinaryOp::Mul, &x.like(0.044_715));
        let cubic = cubic.combine(BinaryOp::Add, &x.like(1.0)).combine(BinaryOp::Mul, &x);
        let inner = cubic.combine(BinaryOp::Mul, &x.like((2.0 / std::f64::consts::PI).sqrt()));
        let gate = inner.tanh().combine(BinaryOp::Add, &x.like(1.0));
        x.combine(BinaryOp::Mul, &x.like(0.5)).combine(BinaryOp::Mul, &gate)
    }

    /// The Gaussian error linear unit by the error function.
    pub fn gelu_exact(&self) -> Tensor {
        let x = self.floating();
        let scaled = x.combine(BinaryOp::Mul, &x.like(std::f64::consts::FRAC_1_SQRT_2));
        let gate = scaled.erf().combine(BinaryOp::Add, &x.like(1.0));
        x.combine(BinaryOp::Mul, &x.like(0.5)).combine(BinaryOp::Mul, &gate)
    }

    /// `x * tanh(softplus(x))` (Misra 2019).
    pub fn mish(&self) -> Tensor {
        let x = self.floating();
        x.combine(BinaryOp::Mul, &x.softplus().tanh())
    }

    /// The tensor in a floating dtype: itself, or `f32`.
    pub(crate) fn floating(&self) -> Tensor {
        if self.dtype().is_float() { self.clone() } else { self.cast(DType::F32) }
    }

    /// A binary op on operands that are known to have one shape and a dtype of the op's domain.
    pub(crate) fn combine(&self, op: BinaryOp, y: &Tensor) -> Tensor {
        debug_assert!(self.shape().same(y.shape()) && self.dtype() == y.dtype(), "{op}");
        let dtype = op.result(self.dtype());
        Tensor::pending(Op::Binary(op), [self, y], self.shape().clone(), dtype)
    }

    /// `where` on operands that are known to fit.
    pub(crate) fn select(&self, x: &Tensor, y: &Tensor) -> Tensor {
        debug_assert!(x.shape().same(y.shape()) && x.dtype() == y.dtype());
        let (shape, dtype) = (x.shape().clone(), x.dtype());
        Tensor::pending(Op::Ternary(TernaryOp::Where), [self, x, y], shape, dtype)
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $checked:ident;)*) => {$(
        impl<R: Operand> std::ops::$trait<R> for &Tensor {
            type Output = Tensor;
            /// As the method of this name.
            ///
            /// # Panics
            /// Where the method gives an error, at the caller's location.
            #[track_caller]
            fn $method(self, rhs: R) -> Tensor {
                match Tensor::$checked(self, rhs) {
                    Ok(tensor) => tensor,
                    Err(error) => panic!("{error}"),
                }
            }
        }

        impl<R: Operand> std::ops::$trait<R> for Tensor {
            type Output = Tensor;
            /// As the method of this name.
            ///
            /// # Panics
            /// Where the method gives an error, at the caller's location.
            #[track_caller]
            fn $method(self, rhs: R) -> Tensor {
                std::ops::$trait::$method(&self, rhs)
            }
        }
    )*};
}

operators! {
    Add add add;
    Sub sub sub;
    Mul mul mul;
    Div div div;
    Rem rem remainder;
    BitAnd bitand bitwise_and;
    BitOr bitor bitwise_or;
    BitXor bitxor bitwise_xor;
}

impl std::ops::Neg for &Tensor {
    type Output = Tensor;
    fn neg(self) -> Tensor {
        Tensor::neg(self)
    }
}

impl std::ops::Neg for Tensor {
    type Output = Tensor;
    fn neg(self) -> Tensor {
        Tensor::neg(&self)
    }
}

macro_rules! number_on_the_left {
    ($($number:ty)*) => {$(
        number_on_the_left!(@ $number; Add add; Sub sub; Mul mul; Div div;);
    )*};
    (@ $number:ty; $($trait:ident $method:ident;)*) => {$(
        impl std::ops::$trait<&Tensor> for $number {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, rhs: &Tensor) -> Tensor {
                std::ops::$trait::$method(rhs.number(self), rhs)
            }
        }
        impl std::ops::$trait<Tensor> for $number {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, rhs: Tensor) -> Tensor {
                std::ops::$trait::$method(rhs.number(self), &rhs)
            }
        }
    )*};
}

number_on_the_left!(f32 f64 i32 i64);
