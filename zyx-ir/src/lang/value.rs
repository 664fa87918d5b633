//! Values with operators.

use super::Lang;
use crate::dtype::{DType, DTypeSet};
use crate::ir::{Op, Value};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::scalar::Scalar;
use std::ops;

/// A value of a kernel being recorded: a scalar of some dtype. Operators and methods have the names and the meaning of a
/// tensor's; a literal beside it takes its dtype, and operands of two dtypes are an error.
#[derive(Clone, Copy)]
pub struct Val<'k> {
    pub(super) k: &'k Lang,
    pub(super) value: Value,
}

/// What an operator takes beside a [`Val`]: a value, or a literal, which takes the other operand's dtype.
pub trait Operand<'k>: Copy {
    /// The value, of this dtype if it is a literal.
    fn val(self, k: &'k Lang, dtype: DType) -> Val<'k>;
}

impl<'k> Operand<'k> for Val<'k> {
    fn val(self, _: &'k Lang, _: DType) -> Val<'k> {
        self
    }
}

/// The literal `x` of a dtype that holds it.
#[track_caller]
#[inline(never)]
fn literal(k: &Lang, x: Scalar, dtype: DType) -> Val<'_> {
    let of = x.cast(dtype);
    let whole = x.to_f64().fract() == 0.0;
    if x.dtype().is_float() && !dtype.is_float() && !whole {
        k.fail(format_args!("the literal {x} is no {dtype}: cast the other operand"));
    }
    k.val(|s| s.b.constant(of))
}

macro_rules! literals {
    ($($ty:ident as $scalar:ident,)*) => {$(
        impl<'k> Operand<'k> for $ty {
            #[track_caller]
            fn val(self, k: &'k Lang, dtype: DType) -> Val<'k> {
                literal(k, Scalar::from(self as $scalar), dtype)
            }
        }
    )*};
}

literals!(i32 as i32, i64 as i64, u32 as u32, usize as i64, f32 as f32, f64 as f64, bool as bool,);

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident;)*) => {$(
        impl<'k, T: Operand<'k>> ops::$trait<T> for Val<'k> {
            type Output = Val<'k>;

            #[track_caller]
            fn $method(self, other: T) -> Val<'k> {
                self.binary(BinaryOp::$op, other)
            }
        }

        operators!(@left $trait $method $op: i32 i64 f32 f64);
    )*};
    (@unary $($trait:ident $method:ident;)*) => {$(
        impl<'k> ops::$trait for Val<'k> {
            type Output = Val<'k>;

            #[track_caller]
            fn $method(self) -> Val<'k> {
                self.unary(UnaryOp::$trait)
            }
        }
    )*};
    (@left $trait:ident $method:ident $op:ident: $($ty:ty)*) => {$(
        impl<'k> ops::$trait<Val<'k>> for $ty {
            type Output = Val<'k>;

            #[track_caller]
            fn $method(self, other: Val<'k>) -> Val<'k> {
                self.val(other.k, other.dtype()).binary(BinaryOp::$op, other)
            }
        }
    )*};
}

operators! {
    Add add Add;
    Sub sub Sub;
    Mul mul Mul;
    Div div Div;
    Rem rem Rem;
    BitAnd bitand And;
    BitOr bitor Or;
    BitXor bitxor Xor;
    Shl shl Shl;
    Shr shr Shr;
}

operators!(@unary Neg neg; Not not;);

/// Methods without conditions, each one expression.
macro_rules! methods {
    ($($(#[$doc:meta])* $method:ident($self:ident $(, $other:ident)*) = $result:expr;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $method($self $(, $other: impl Operand<'k>)*) -> Val<'k> {
            $result
        }
    )*};
}

impl<'k> Val<'k> {
    /// Its number in the recording; see [`Lang::val_of`].
    pub fn id(self) -> Value {
        self.value
    }

    /// Its dtype.
    pub fn dtype(self) -> DType {
        self.k.ty(self.value).dtype
    }

    /// Its dtype where it is a float, else `f32`: what means and exponentials of it are computed in.
    pub fn float_dtype(self) -> DType {
        if self.dtype().is_float() { self.dtype() } else { DType::F32 }
    }

    /// Whether the value is a literal, and which.
    pub fn literal(self) -> Option<Scalar> {
        self.k.state.borrow().b.as_constant(self.value)
    }

    #[track_caller]
    fn domain(self, set: DTypeSet, name: &str) -> bool {
        let dtype = self.dtype();
        if !set.contains(dtype) {
            self.k.fail(format_args!("`{name}` is not defined on {dtype}: cast the operand"));
        }
        set.contains(dtype)
    }

    /// A unary operation of the table.
    #[track_caller]
    #[inline(never)]
    pub fn unary(self, op: UnaryOp) -> Val<'k> {
        if !self.domain(op.domain(), op.name()) {
            return self;
        }
        self.k.val(|s| s.b.unary(op, self.value))
    }

    /// A binary operation of the table.
    #[track_caller]
    pub fn binary(self, op: BinaryOp, other: impl Operand<'k>) -> Val<'k> {
        self.binary_of(op, other.val(self.k, self.dtype()))
    }

    #[track_caller]
    #[inline(never)]
    fn binary_of(self, op: BinaryOp, other: Val<'k>) -> Val<'k> {
        let result = op.result(self.dtype());
        if self.dtype() != other.dtype() {
            let (x, y) = (self.dtype(), other.dtype());
            self.k.fail(format_args!("`{op}` of {x} and {y}: cast one of them"));
        } else if self.domain(op.domain(), op.name()) {
            return self.k.val(|s| s.b.binary(op, self.value, other.value));
        }
        self.k.val(|s| s.b.constant(Scalar::from_i64(result, 0)))
    }

    methods! {
        /// Absolute value.
        abs(self) = self.unary(UnaryOp::Abs);
        /// Reciprocal.
        recip(self) = self.unary(UnaryOp::Recip);
        /// Square root.
        sqrt(self) = self.unary(UnaryOp::Sqrt);
        /// Base-e exponential.
        exp(self) = self.unary(UnaryOp::Exp);
        /// Base-2 exponential.
        exp2(self) = self.unary(UnaryOp::Exp2);
        /// `exp(x) - 1`.
        expm1(self) = self.unary(UnaryOp::Expm1);
        /// Natural logarithm.
        log(self) = self.unary(UnaryOp::Log);
        /// Base-2 logarithm.
        log2(self) = self.unary(UnaryOp::Log2);
        /// `log(1 + x)`.
        log1p(self) = self.unary(UnaryOp::Log1p);
        /// Sine, radians.
        sin(self) = self.unary(UnaryOp::Sin);
        /// Cosine, radians.
        cos(self) = self.unary(UnaryOp::Cos);
        /// Tangent, radians.
        tan(self) = self.unary(UnaryOp::Tan);
        /// Arc sine, radians.
        asin(self) = self.unary(UnaryOp::Asin);
        /// Arc cosine, radians.
        acos(self) = self.unary(UnaryOp::Acos);
        /// Arc tangent, radians.
        atan(self) = self.unary(UnaryOp::Atan);
        /// Hyperbolic sine.
        sinh(self) = self.unary(UnaryOp::Sinh);
        /// Hyperbolic cosine.
        cosh(self) = self.unary(UnaryOp::Cosh);
        /// Hyperbolic tangent.
        tanh(self) = self.unary(UnaryOp::Tanh);
        /// Error function.
        erf(self) = self.unary(UnaryOp::Erf);
        /// Largest integer not above.
        floor(self) = self.unary(UnaryOp::Floor);
        /// Smallest integer not below.
        ceil(self) = self.unary(UnaryOp::Ceil);
        /// Nearest integer, ties to even.
        round(self) = self.unary(UnaryOp::Round);
        /// Integer part.
        trunc(self) = self.unary(UnaryOp::Trunc);
        /// Power.
        pow(self, other) = self.binary(BinaryOp::Pow, other);
        /// Angle of the point `(other, self)`, radians.
        atan2(self, other) = self.binary(BinaryOp::Atan2, other);
        /// The larger one; NaN if either is.
        maximum(self, other) = self.binary(BinaryOp::Max, other);
        /// The smaller one; NaN if either is.
        minimum(self, other) = self.binary(BinaryOp::Min, other);
        /// Whether it is less.
        lt(self, other) = self.binary(BinaryOp::Lt, other);
        /// Whether it is less or equal.
        le(self, other) = self.binary(BinaryOp::Le, other);
        /// Whether they are equal.
        eq(self, other) = self.binary(BinaryOp::Eq, other);
        /// Whether they are not.
        ne(self, other) = self.binary(BinaryOp::Ne, other);
        /// Whether it is greater.
        gt(self, other) = other.val(self.k, self.dtype()).lt(self);
        /// Whether it is greater or equal.
        ge(self, other) = other.val(self.k, self.dtype()).le(self);
        /// `1 / (1 + exp(-x))`.
        sigmoid(self) = ((-self).exp() + 1.0).recip();
        /// `x`, or 0 where it is negative.
        relu(self) = self.maximum(0);
        /// `x * x`.
        square(self) = self * self;
        /// The quotient rounded up, of integers that are not negative.
        div_ceil(self, by) = (self + (by.val(self.k, self.dtype()) - 1)) / by;
        /// `self` within bounds.
        clamp(self, min, max) = self.maximum(min).minimum(max);
    }

    /// `self * y + z`, rounded once where the device can.
    #[track_caller]
    pub fn mul_add(self, y: impl Operand<'k>, z: impl Operand<'k>) -> Val<'k> {
        let dtype = self.dtype();
        let [y, z] = [y.val(self.k, dtype), z.val(self.k, dtype)];
        if [y.dtype(), z.dtype()] != [dtype; 2] || !dtype.is_float() {
            return self * y + z;
        }
        self.k.val(|s| s.b.ternary(TernaryOp::MulAdd, self.value, y.value, z.value))
    }

    /// `x` where this `bool` holds, else `y`.
    #[track_caller]
    pub fn select(self, x: impl Operand<'k>, y: impl Operand<'k>) -> Val<'k> {
        // One of both may be a literal.
        let x = x.val(self.k, y.val(self.k, DType::F32).dtype());
        self.select_of(x, y.val(self.k, x.dtype()))
    }

    #[track_caller]
    #[inline(never)]
    fn select_of(self, x: Val<'k>, y: Val<'k>) -> Val<'k> {
        if self.dtype() != DType::Bool || x.dtype() != y.dtype() {
            let [c, x, y] = [self, x, y].map(Val::dtype);
            self.k.fail(format_args!("`select` by {c} of {x} and {y}: bool and equal dtypes"));
            return self.k.val(|s| s.b.constant(Scalar::from_i64(x, 0)));
        }
        self.k.val(|s| s.b.select(self.value, x.value, y.value))
    }

    /// Conversion to a dtype, as a tensor's.
    #[track_caller]
    #[inline(never)]
    pub fn cast(self, dtype: DType) -> Val<'k> {
        self.k.val(|s| s.b.cast(dtype, self.value))
    }

    /// The bits as a dtype of equal width.
    #[track_caller]
    pub fn bitcast(self, dtype: DType) -> Val<'k> {
        if dtype.bits() != self.dtype().bits() {
            self.k.fail(format_args!("`bitcast` of {} to {dtype}: equal widths", self.dtype()));
            return self.cast(dtype);
        }
        self.k.val(|s| s.b.bitcast(dtype, self.value))
    }

    pub(super) fn op(self) -> Op {
        self.k.state.borrow().b.op(self.value)
    }
}

impl std::fmt::Debug for Val<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} : {} = {:?}", self.value, self.k.ty(self.value), self.op())
    }
}
