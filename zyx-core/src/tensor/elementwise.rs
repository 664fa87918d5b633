//! Elementwise methods: one per row of the op tables, and what is composed of them.

use super::formula::{Condition, Term};
use super::{Operand, Tensor};
use crate::dtype::{DType, DTypeSet};
use crate::error::Result;
use crate::graph::Op;
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use std::sync::Arc;

impl Tensor {
    /// A unary op; operands outside its domain are converted (bool to `i64`, else to `f32`).
    #[track_caller]
    pub(crate) fn unary(&self, op: UnaryOp) -> Tensor {
        if op.domain().contains(self.dtype()) {
            return Tensor::pending_inlined(
                Op::Unary(op),
                [self],
                self.shape().clone(),
                self.dtype(),
            );
        }
        let x = if op.domain().contains(DType::I64) && !self.dtype().is_float() {
            self.cast(DType::I64)
        } else {
            self.cast(DType::F32)
        };
        Tensor::pending(Op::Unary(op), [&x], x.shape().clone(), x.dtype())
    }

    #[track_caller]
    pub(crate) fn binary(&self, name: &'static str, op: BinaryOp, y: &Tensor) -> Result<Tensor> {
        // The usual case needs no conversion, so it makes no handles beside the node's own.
        if self.dtype() == y.dtype()
            && self.shape().same(y.shape())
            && self.device() == y.device()
            && op.domain().contains(self.dtype())
        {
            return Ok(self.combine(op, y));
        }
        self.binary_within(name, op, y, op.domain())
    }

    /// A binary op on operands of one of these dtypes, as one step unless the gradient by an operand takes more: a
    /// product is summed along the axes that the operand is repeated along.
    #[track_caller]
    fn binary_within(
        &self,
        name: &'static str,
        op: BinaryOp,
        y: &Tensor,
        domain: DTypeSet,
    ) -> Result<Tensor> {
        let dtype = self.dtype().promote(y.dtype());
        let repeated = !self.shape().same(y.shape());
        if dtype.accumulator() != dtype && repeated && matches!(op, BinaryOp::Mul | BinaryOp::Div) {
            // Integers beyond the range of a half are infinite, as they are without steps.
            let (x, y) = (self.cast(dtype), y.cast(dtype));
            return x.in_steps(name, [&y], |x, [y]| x.binary_within(name, op, &y, domain));
        }
        let (x, y) = Tensor::unify_lent(name, self, y, domain)?;
        let dtype = op.result(x.dtype());
        Ok(Tensor::pending(Op::Binary(op), [&x, &y], x.shape().clone(), dtype))
    }

    /// These values as a function of two operands that is constant in pieces: the gradients are 0.
    #[track_caller]
    fn constant_in_pieces(&self, operands: [&Tensor; 2]) -> Result<Tensor> {
        self.with_gradient(&operands, |inputs, _, _| {
            Ok(inputs.iter().map(|x| Some(x.like(0.0))).collect())
        })
    }

    /// The elements converted to `dtype` (rules: [`crate::scalar`]).
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1.7f32, -300.0, f32::NAN], &device)?;
    /// assert_eq!(x.cast(DType::I8).to_vec::<i8>()?, [1, -128, 0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Tensor {
        if dtype == self.dtype() {
            return self.clone();
        }
        Tensor::pending(Op::Cast { bits: false }, [self], self.shape().clone(), dtype)
    }

    /// The bits of the elements read as another dtype of the same width.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32], &device)?;
    /// assert_eq!(x.bitcast(DType::U32)?.to_vec::<u32>()?, [0x3f80_0000]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
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
        Ok(Tensor::pending(Op::Cast { bits: true }, [self], self.shape().clone(), dtype))
    }
}

macro_rules! unary_methods {
    ($($(#[$doc:meta])* $name:ident $op:ident $x:tt => $y:tt;)*) => {
        impl Tensor {
            $($(#[$doc])*
            ///
            /// Of each element, in the same shape. Dtypes it is not defined on become `f32`; bools
            /// become `i64` where integers will do.
            ///
            /// ```
            /// # use zyx::Tensor;
            /// # let device = zyx::runtime().device("reference")?;
            #[doc = concat!("let x = Tensor::new(", stringify!($x), ", &device)?;")]
            #[doc = concat!("assert_eq!(x.", stringify!($name), "().to_vec::<f32>()?, ", stringify!($y), ");")]
            /// # Ok::<(), zyx::Error>(())
            /// ```
            #[track_caller]
            pub fn $name(&self) -> Tensor { self.unary(UnaryOp::$op) })*
        }
    };
}

unary_methods! {
    /// `-x`; wraps on integers, bools count as integers.
    neg Neg [1f32, -2.0] => [-1.0, 2.0];
    /// `|x|`.
    abs Abs [1f32, -2.0] => [1.0, 2.0];
    /// `1 / x`.
    recip Recip [4f32] => [0.25];
    /// Square root.
    sqrt Sqrt [9f32] => [3.0];
    /// `e^x`.
    exp Exp [0f32] => [1.0];
    /// `2^x`.
    exp2 Exp2 [3f32] => [8.0];
    /// `e^x - 1`, accurate near zero.
    expm1 Expm1 [0f32] => [0.0];
    /// Natural logarithm.
    log Log [1f32] => [0.0];
    /// Base-2 logarithm.
    log2 Log2 [8f32] => [3.0];
    /// `log(1 + x)`, accurate near zero.
    log1p Log1p [0f32] => [0.0];
    /// Sine of radians.
    sin Sin [0f32] => [0.0];
    /// Cosine of radians.
    cos Cos [0f32] => [1.0];
    /// Tangent of radians.
    tan Tan [0f32] => [0.0];
    /// Arc sine in radians.
    asin Asin [0f32] => [0.0];
    /// Arc cosine in radians.
    acos Acos [1f32] => [0.0];
    /// Arc tangent in radians.
    atan Atan [0f32] => [0.0];
    /// Hyperbolic sine.
    sinh Sinh [0f32] => [0.0];
    /// Hyperbolic cosine.
    cosh Cosh [0f32] => [1.0];
    /// Hyperbolic tangent.
    tanh Tanh [0f32] => [0.0];
    /// Error function.
    erf Erf [0f32] => [0.0];
    /// Largest integer not above.
    floor Floor [1.5f32, -1.5] => [1.0, -2.0];
    /// Smallest integer not below.
    ceil Ceil [1.5f32, -1.5] => [2.0, -1.0];
    /// Nearest integer, ties to even.
    round Round [0.5f32, 1.5, 2.5] => [0.0, 2.0, 2.0];
    /// Integer part.
    trunc Trunc [1.5f32, -1.5] => [1.0, -1.0];
}

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $name:ident $op:ident $x:tt, $y:literal => $z:tt $out:ident;)*) => {
        impl Tensor {
            $($(#[$doc])*
            /// Shapes broadcast, dtypes are promoted.
            ///
            /// ```
            /// # use zyx::Tensor;
            /// # let device = zyx::runtime().device("reference")?;
            #[doc = concat!("let x = Tensor::new(", stringify!($x), ", &device)?;")]
            #[doc = concat!(
                "assert_eq!(x.", stringify!($name), "(", stringify!($y), ")?.to_vec::<",
                stringify!($out), ">()?, ", stringify!($z), ");"
            )]
            /// # Ok::<(), zyx::Error>(())
            /// ```
            ///
            /// # Errors
            /// When shapes do not broadcast, the op is not defined on the dtypes, or the operands
            /// are on different devices.
            #[track_caller]
            pub fn $name(&self, rhs: impl Operand) -> Result<Tensor> {
                self.binary(stringify!($name), BinaryOp::$op, &rhs.lend(self))
            })*
        }
    };
}

binary_methods! {
    /// Sum, with broadcasting and promotion.
    add Add [1f32, 2.0], 3.0 => [4.0, 5.0] f32;
    /// Difference.
    sub Sub [1f32, 2.0], 3.0 => [-2.0, -1.0] f32;
    /// Product.
    mul Mul [1f32, 2.0], 3.0 => [3.0, 6.0] f32;
    /// Remainder with the sign of the dividend (C's `fmod`).
    fmod Rem [-7f32, 7.5], 3.0 => [-1.0, 1.5] f32;
    /// Angle of the point `(rhs, self)` in radians.
    atan2 Atan2 [0f32], 1.0 => [0.0] f32;
    /// `log(exp(x) + exp(y))` without overflow.
    logaddexp LogAddExp [f32::NEG_INFINITY, 1.0], 1.0 => [1.0, 1.693_147_2] f32;
    /// Elementwise larger value; NaN if either is.
    maximum Max [1f32, 4.0], 3.0 => [3.0, 4.0] f32;
    /// Elementwise smaller value; NaN if either is.
    minimum Min [1f32, 4.0], 3.0 => [1.0, 3.0] f32;
    /// Bitwise and; logical on bool.
    bitwise_and And [6i32, 5], 3 => [2, 1] i32;
    /// Bitwise or; logical on bool.
    bitwise_or Or [6i32, 5], 3 => [7, 7] i32;
    /// Bitwise exclusive or; logical on bool.
    bitwise_xor Xor [6i32, 5], 3 => [5, 6] i32;
    /// Shift left.
    shl Shl [1i32, 5], 2 => [4, 20] i32;
    /// Shift right, arithmetic on signed integers.
    shr Shr [-8i32, 5], 1 => [-4, 2] i32;
    /// `self < rhs`, as bool.
    lt Lt [1f32, 4.0], 3.0 => [true, false] bool;
    /// `self <= rhs`, as bool.
    le Le [3f32, 4.0], 3.0 => [true, false] bool;
    /// `self == rhs`, as bool; NaN equals nothing.
    eq Eq [3f32, f32::NAN], 3.0 => [true, false] bool;
    /// `self != rhs`, as bool.
    ne Ne [3f32, f32::NAN], 3.0 => [false, true] bool;
}

const FLOATS: DTypeSet = UnaryOp::Sqrt.domain();

/// The exact quotient of floats rounded down: what the exact remainder leaves is a multiple of `y` but for the
/// rounding of the quotient, as in Python, NumPy and PyTorch.
#[track_caller]
fn floor_quotient(x: &Tensor, y: &Tensor) -> Tensor {
    Term::compute2(x, y, |x, y| {
        let rest = Term(x.0.combine(BinaryOp::Rem, &y.0));
        let (ratio, whole) = (x / y, (x - &rest) / y);
        let signs = rest.below(0.0).0.combine(BinaryOp::Ne, &y.below(0.0).0);
        let above = Condition(signs).and(&rest.is(0.0).not());
        let whole = above.choose(&(&whole - 1.0), &whole);
        // The nearest whole number, since the quotient rounded to it or next to it.
        let near = Term(whole.0.round());
        // A zero has the sign of the quotient.
        let signed = near.is(0.0).choose(&(&ratio * 0.0), &near);
        y.is(0.0).choose(&ratio, &signed)
    })
}

impl Tensor {
    /// True division: integers are converted to `f32` first.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1i32, 3], &device)?;
    /// assert_eq!(x.div(2)?.to_vec::<f32>()?, [0.5, 1.5]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes do not broadcast.
    #[track_caller]
    pub fn div(&self, rhs: impl Operand) -> Result<Tensor> {
        self.binary_within("div", BinaryOp::Div, &rhs.lend(self), FLOATS)
    }

    /// Division truncated towards zero, in the promoted dtype; an integer divided by 0 is 0.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([-7i32, 7], &device)?;
    /// assert_eq!(x.trunc_divide(2)?.to_vec::<i32>()?, [-3, 3]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes do not broadcast.
    #[track_caller]
    pub fn trunc_divide(&self, rhs: impl Operand) -> Result<Tensor> {
        let domain = BinaryOp::Div.domain();
        let (x, y) = Tensor::unify("trunc_divide", self, &rhs.lend(self), domain)?;
        let quotient = x.combine(BinaryOp::Div, &y);
        if !quotient.dtype().is_float() {
            return Ok(quotient);
        }
        quotient.trunc().constant_in_pieces([&x, &y])
    }

    /// Division rounded down, as Python's `//`; an integer divided by 0 is 0. Of floats too it agrees with
    /// [`Tensor::remainder`]: it is the exact quotient that is rounded down, not the rounded one, so `6.0 // 0.1` is 59.
    /// The quotient of an infinity is NaN. The gradient is 0.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([-7i32, 7], &device)?;
    /// assert_eq!(x.floor_divide(2)?.to_vec::<i32>()?, [-4, 3]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes do not broadcast.
    #[track_caller]
    pub fn floor_divide(&self, rhs: impl Operand) -> Result<Tensor> {
        self.floor_divide_of(&rhs.lend(self))
    }

    /// Compiled once, not for each kind of argument.
    #[track_caller]
    #[inline(never)]
    fn floor_divide_of(&self, rhs: &Tensor) -> Result<Tensor> {
        let (x, y) = Tensor::unify("floor_divide", self, rhs, BinaryOp::Div.domain())?;
        if x.dtype().is_float() {
            return floor_quotient(&x, &y).constant_in_pieces([&x, &y]);
        }
        let quotient = x.combine(BinaryOp::Div, &y);
        if !quotient.dtype().is_signed() {
            return Ok(quotient);
        }
        let rest = x.combine(BinaryOp::Rem, &y);
        let inexact = rest.ne(0)?.bitwise_and(rest.lt(0)?.ne(y.lt(0)?)?)?.bitwise_and(y.ne(0)?)?;
        let quotient = quotient.sub(inexact.cast(quotient.dtype()))?;
        let (x, y) = (x.index_range_here(), y.index_range_here());
        match x.min >= 0 && y.min > 0 {
            true => Ok(quotient.known_between(x.min / y.max, x.max / y.min)),
            false => Ok(quotient),
        }
    }

    /// Remainder with the sign of the divisor, that of a zero too, as Python's `%`; `x % 0` is `x` on
    /// integers.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([-7i32, 7], &device)?;
    /// assert_eq!(x.remainder(3)?.to_vec::<i32>()?, [2, 1]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes do not broadcast.
    #[track_caller]
    pub fn remainder(&self, rhs: impl Operand) -> Result<Tensor> {
        self.remainder_of(&rhs.lend(self))
    }

    /// Compiled once, not for each kind of argument.
    #[track_caller]
    #[inline(never)]
    fn remainder_of(&self, rhs: &Tensor) -> Result<Tensor> {
        let (x, y) = Tensor::unify("remainder", self, rhs, BinaryOp::Rem.domain())?;
        let rest = x.combine(BinaryOp::Rem, &y);
        let wrong = rest.ne(0)?.bitwise_and(rest.lt(0)?.ne(y.lt(0)?)?)?.bitwise_and(y.ne(0)?)?;
        let moved = wrong.where_(rest.add(&y)?, &rest)?;
        if !x.dtype().is_float() {
            let by = y.index_range_here();
            return Ok(if by.min > 0 { moved.known_between(0, by.max - 1) } else { moved });
        }
        let zero = y.has_sign().select(&y.like(-0.0), &y.like(0.0));
        let value = moved.eq(0)?.select(&zero, &moved);
        value.with_gradient(&[&x, &y], |inputs, rest, dy| {
            let [x, y, rest, wide_dy] = [&inputs[0], &inputs[1], rest, dy].map(Tensor::widened);
            // The quotient that was taken away, also where `x / y` rounds up to it.
            let whole = ((Term(x) - Term(rest)) / Term(y)).0.round();
            let to_y = -(Term(whole) * Term(wide_dy));
            Ok(vec![Some(dy.clone()), Some(to_y.0.cast(dy.dtype()))])
        })
    }

    /// `self` to the power `rhs`. An integer to a negative power is 0, unless the base is 1 or -1.
    /// A number from -8 to 8 without fraction means products: `x.pow(3)` is `x * x * x`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([2f32, 3.0], &device)?;
    /// assert_eq!(x.pow(3.0)?.to_vec::<f32>()?, [8.0, 27.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes do not broadcast.
    #[track_caller]
    pub fn pow(&self, rhs: impl Operand) -> Result<Tensor> {
        let rhs = rhs.resolve(self);
        let exponent = rhs.exponent();
        let (x, y) = Tensor::unify("pow", self, &rhs, BinaryOp::Pow.domain())?;
        Ok(x.raised(&y, exponent))
    }

    /// The value of an exponent that is a number. Of a tensor that somebody else holds gradients may
    /// be asked, whatever its value is.
    pub(crate) fn exponent(&self) -> Option<f64> {
        self.as_const().filter(|_| Arc::strong_count(&self.0) == 1).map(|c| c.to_f64())
    }

    /// A power of which the exponent may be known: products where it is a small whole number.
    #[track_caller]
    pub(crate) fn raised(&self, y: &Tensor, exponent: Option<f64>) -> Tensor {
        let (x, float) = (self, self.dtype().is_float());
        match exponent {
            Some(1.0) => x.clone(),
            Some(0.5) if float => x.sqrt(),
            Some(n) if n.fract() == 0.0 && (2.0..=8.0).contains(&n.abs()) && (float || n > 0.0) => {
                x.whole_power(n as i32)
            }
            Some(-1.0) if float => x.recip(),
            _ => x.combine(BinaryOp::Pow, y),
        }
    }

    /// A whole power by products, its derivatives too. Halves are multiplied in `f32`.
    #[track_caller]
    fn whole_power(&self, n: i32) -> Tensor {
        match n {
            0 => return self.like(1.0),
            1 => return self.clone(),
            2 => return self.combine(BinaryOp::Mul, self),
            -1 => return self.recip(),
            _ => {}
        }
        if !self.dtype().is_float() {
            return self.product_of(n as u32);
        }
        let y = Term::compute(self, |x| {
            let product = Term(x.0.product_of(n.unsigned_abs()));
            if n < 0 { product.recip() } else { product }
        });
        y.with_rule(self, move |inputs, _, dy| {
            let slope = |x: &Term, dy: &Term| dy * (Term(x.0.whole_power(n - 1)) * f64::from(n));
            Some(Term::compute2(&inputs[0], dy, slope))
        })
    }

    /// The product of `n >= 1` times the tensor, by squaring; the third power is `x * x * x`.
    #[track_caller]
    fn product_of(&self, n: u32) -> Tensor {
        match n {
            1 => self.clone(),
            n if n % 2 == 0 => self.combine(BinaryOp::Mul, self).product_of(n / 2),
            n => self.product_of(n - 1).combine(BinaryOp::Mul, self),
        }
    }

    /// `self > rhs`, as bool.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(x.gt(0.0)?.to_vec::<bool>()?, [true, false, true]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes do not broadcast.
    #[track_caller]
    pub fn gt(&self, rhs: impl Operand) -> Result<Tensor> {
        rhs.resolve(self).binary("gt", BinaryOp::Lt, self)
    }

    /// `self >= rhs`, as bool.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(x.ge(1.0)?.to_vec::<bool>()?, [true, false, true]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes do not broadcast.
    #[track_caller]
    pub fn ge(&self, rhs: impl Operand) -> Result<Tensor> {
        rhs.resolve(self).binary("ge", BinaryOp::Le, self)
    }

    /// Bitwise complement; logical on bool.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([0u8, 5], &device)?;
    /// assert_eq!(x.bitwise_not()?.to_vec::<u8>()?, [255, 250]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
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
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([0f32, 5.0], &device)?;
    /// assert_eq!(x.logical_not().to_vec::<bool>()?, [true, false]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn logical_not(&self) -> Tensor {
        self.cast(DType::Bool).unary(UnaryOp::Not)
    }

    /// Both nonzero.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([0f32, 5.0], &device)?;
    /// assert_eq!(x.logical_and(true)?.to_vec::<bool>()?, [false, true]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
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
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([0f32, 5.0], &device)?;
    /// assert_eq!(x.logical_or(false)?.to_vec::<bool>()?, [false, true]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
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
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(x.gt(0.0)?.where_(&x, 0.0)?.to_vec::<f32>()?, [1.0, 0.0, 3.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes do not broadcast.
    #[track_caller]
    pub fn where_(&self, x: impl Operand, y: impl Operand) -> Result<Tensor> {
        self.where_of(&x, &y)
    }

    /// Compiled once, not for each kind of argument.
    #[track_caller]
    #[inline(never)]
    fn where_of(&self, x: &dyn Operand, y: &dyn Operand) -> Result<Tensor> {
        let cond = self.cast(DType::Bool);
        // A number adapts to the other branch; of two numbers each has its own dtype.
        let (x, y) = match (x.is_number(), y.is_number()) {
            (true, false) => {
                let y = y.resolve(&cond);
                (x.resolve(&y), y)
            }
            (false, true) => {
                let x = x.resolve(&cond);
                let y = y.resolve(&x);
                (x, y)
            }
            _ => (x.resolve(&cond), y.resolve(&cond)),
        };
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

    /// `1 / sqrt(x)`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([4f32], &device)?;
    /// assert_eq!(x.rsqrt().to_vec::<f32>()?, [0.5]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn rsqrt(&self) -> Tensor {
        Term::compute(self, |x| x.sqrt().recip())
    }

    /// `x * x`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(x.square().to_vec::<f32>()?, [1.0, 4.0, 9.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn square(&self) -> Tensor {
        let x = if self.dtype() == DType::Bool { self.cast(DType::I64) } else { self.clone() };
        x.combine(BinaryOp::Mul, &x)
    }

    /// -1, 0 or 1; NaN stays NaN.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(x.sign().to_vec::<f32>()?, [1.0, -1.0, 1.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn sign(&self) -> Tensor {
        let x = self;
        if x.dtype() == DType::Bool {
            return x.clone();
        }
        let zero = x.like(0.0);
        let above = zero.combine(BinaryOp::Lt, x).cast(x.dtype());
        let below = x.combine(BinaryOp::Lt, &zero).cast(x.dtype());
        let sign = above.combine(BinaryOp::Sub, &below);
        if x.dtype().is_float() { x.is_nan().select(x, &sign) } else { sign }
    }

    /// Whether each element is NaN.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, f32::NAN], &device)?;
    /// assert_eq!(x.is_nan().to_vec::<bool>()?, [false, true]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn is_nan(&self) -> Tensor {
        self.combine(BinaryOp::Ne, self)
    }

    /// Whether each element is positive or negative infinity.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, f32::INFINITY], &device)?;
    /// assert_eq!(x.is_inf().to_vec::<bool>()?, [false, true]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn is_inf(&self) -> Tensor {
        if !self.dtype().is_float() {
            return self.constant(crate::scalar::Scalar::from(false));
        }
        self.abs().combine(BinaryOp::Eq, &self.like(f64::INFINITY))
    }

    /// Whether each element is neither NaN nor infinite.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, f32::NAN], &device)?;
    /// assert_eq!(x.is_finite().to_vec::<bool>()?, [true, false]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn is_finite(&self) -> Tensor {
        if !self.dtype().is_float() {
            return self.constant(crate::scalar::Scalar::from(true));
        }
        self.abs().combine(BinaryOp::Lt, &self.like(f64::INFINITY))
    }

    /// `self + weight * (end - self)`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([0f32, 10.0], &device)?;
    /// assert_eq!(x.lerp(20.0, 0.5)?.to_vec::<f32>()?, [10.0, 15.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes do not broadcast.
    #[track_caller]
    pub fn lerp(&self, end: impl Operand, weight: impl Operand) -> Result<Tensor> {
        self.in_steps("lerp", [&end, &weight], |start, [end, weight]| {
            // Differences of integers without a sign would wrap before a fraction of them is taken.
            let [start, end] = [start, &end].map(|x| match weight.dtype().is_float() {
                true => x.floating(),
                false => x.clone(),
            });
            start.add(end.sub(&start)?.mul(&weight)?)
        })
    }

    /// The tensor in a floating dtype: itself, or `f32`.
    #[track_caller]
    pub(crate) fn floating(&self) -> Tensor {
        if self.dtype().is_float() { self.clone() } else { self.cast(DType::F32) }
    }

    /// A binary op on operands that are known to have one shape and a dtype of the op's domain.
    #[track_caller]
    pub(crate) fn combine(&self, op: BinaryOp, y: &Tensor) -> Tensor {
        debug_assert!(self.shape().same(y.shape()) && self.dtype() == y.dtype(), "{op}");
        let dtype = op.result(self.dtype());
        Tensor::pending_inlined(Op::Binary(op), [self, y], self.shape().clone(), dtype)
    }

    /// `where` on operands that are known to fit.
    #[track_caller]
    pub(crate) fn select(&self, x: &Tensor, y: &Tensor) -> Tensor {
        debug_assert!(x.shape().same(y.shape()) && x.dtype() == y.dtype());
        let (shape, dtype) = (x.shape().clone(), x.dtype());
        Tensor::pending(Op::Ternary(TernaryOp::Where), [self, x, y], shape, dtype)
    }
}
