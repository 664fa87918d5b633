//! The scalar op table: unary, binary and ternary operations on elements.
//!
//! One row per op holds all that the core knows of it: its name, the dtypes it is defined on, its
//! meaning in `f64`, and the error bound (in units in the last place of the result's dtype) that
//! backends may use. The enum, the printed name, parsing, the meaning on every dtype, constant
//! folding, the interpreter and the tolerance of tests follow from the row. Gradients stand in
//! `autodiff`, decompositions for devices that lack an op in `decompose`.
//!
//! Meanings that hardware disagrees on are fixed here and hold on every device:
//! * integer arithmetic wraps; `x / 0 == 0`, `x % 0 == x`, `MIN / -1 == MIN`, `MIN % -1 == 0`;
//! * `Div` and `Rem` on integers truncate towards zero; `Rem` on floats is C's `fmod`;
//! * a shift by the width or more gives 0, or the sign for an arithmetic right shift;
//! * `Max` and `Min` give NaN when either operand is NaN;
//! * arithmetic of `f16` and `bf16` is done in `f32` and rounded once per op;
//! * on bools `Add` and `Max` are "or", `Mul` and `Min` are "and".

use crate::cmath;
use crate::dtype::{Class, DType, DTypeSet};
use crate::scalar::Scalar;
use std::fmt;

const FLOATS: DTypeSet = DTypeSet::of(&[DType::F16, DType::BF16, DType::F32, DType::F64]);
const BOOL: DTypeSet = DTypeSet::of(&[DType::Bool]);
const ANY: DTypeSet = DTypeSet::ALL;
const NUMBERS: DTypeSet = ANY.without(BOOL);
const INTS: DTypeSet = NUMBERS.without(FLOATS);
const BITS: DTypeSet = ANY.without(FLOATS);

macro_rules! op_table {
    ($(#[$meta:meta])* $enum:ident { $($(#[$doc:meta])* $variant:ident $name:literal $domain:ident $ulp:literal;)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $enum { $($(#[$doc])* $variant,)* }

        impl $enum {
            /// Every op, in table order.
            pub const ALL: &'static [$enum] = &[$($enum::$variant),*];

            /// The printed name, unique within the table.
            pub const fn name(self) -> &'static str {
                match self { $($enum::$variant => $name,)* }
            }

            /// The dtypes of operands the op is defined on.
            pub const fn domain(self) -> DTypeSet {
                match self { $($enum::$variant => $domain,)* }
            }

            /// Error bound against the exact result, in units in the last place; 0 means
            /// correctly rounded, so equal on every device.
            pub const fn ulp(self) -> u32 {
                match self { $($enum::$variant => $ulp,)* }
            }

            /// The op with this printed name.
            pub fn from_name(name: &str) -> Option<$enum> {
                $enum::ALL.iter().copied().find(|op| op.name() == name)
            }
        }

        impl fmt::Display for $enum {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

op_table! {
    /// Operations on one element. The result has the operand's dtype.
    UnaryOp {
        /// Negation; wraps on integers.
        Neg "neg" NUMBERS 0;
        /// Absolute value; `MIN` stays `MIN`.
        Abs "abs" NUMBERS 0;
        /// Bitwise complement; logical on bool.
        Not "not" BITS 0;
        /// Reciprocal.
        Recip "recip" FLOATS 0;
        /// Square root.
        Sqrt "sqrt" FLOATS 0;
        /// Base-e exponential.
        Exp "exp" FLOATS 4;
        /// Base-2 exponential.
        Exp2 "exp2" FLOATS 4;
        /// `exp(x) - 1`, accurate near zero.
        Expm1 "expm1" FLOATS 4;
        /// Natural logarithm.
        Log "log" FLOATS 4;
        /// Base-2 logarithm.
        Log2 "log2" FLOATS 4;
        /// `log(1 + x)`, accurate near zero.
        Log1p "log1p" FLOATS 4;
        /// Sine, radians.
        Sin "sin" FLOATS 4;
        /// Cosine, radians.
        Cos "cos" FLOATS 4;
        /// Tangent, radians.
        Tan "tan" FLOATS 6;
        /// Arc sine, radians.
        Asin "asin" FLOATS 6;
        /// Arc cosine, radians.
        Acos "acos" FLOATS 6;
        /// Arc tangent, radians.
        Atan "atan" FLOATS 6;
        /// Hyperbolic sine.
        Sinh "sinh" FLOATS 6;
        /// Hyperbolic cosine.
        Cosh "cosh" FLOATS 6;
        /// Hyperbolic tangent.
        Tanh "tanh" FLOATS 6;
        /// Error function.
        Erf "erf" FLOATS 16;
        /// Largest integer not above.
        Floor "floor" NUMBERS 0;
        /// Smallest integer not below.
        Ceil "ceil" NUMBERS 0;
        /// Nearest integer, ties to even.
        Round "round" NUMBERS 0;
        /// Integer part.
        Trunc "trunc" NUMBERS 0;
    }
}

op_table! {
    /// Operations on two elements of one dtype. Comparisons give bool, the rest that dtype.
    BinaryOp {
        /// Sum.
        Add "add" ANY 0;
        /// Difference.
        Sub "sub" NUMBERS 0;
        /// Product.
        Mul "mul" ANY 0;
        /// Quotient; truncated on integers.
        Div "div" NUMBERS 0;
        /// Remainder with the sign of the dividend.
        Rem "rem" NUMBERS 0;
        /// Power.
        Pow "pow" NUMBERS 16;
        /// Angle of the point `(y, x)`, radians.
        Atan2 "atan2" FLOATS 6;
        /// `log(exp(x) + exp(y))` without overflow; see [`BinaryOp::unit`] for its bound.
        LogAddExp "logaddexp" FLOATS 4;
        /// Larger of the two; NaN if either is.
        Max "max" ANY 0;
        /// Smaller of the two; NaN if either is.
        Min "min" ANY 0;
        /// Bitwise and; logical on bool.
        And "and" BITS 0;
        /// Bitwise or; logical on bool.
        Or "or" BITS 0;
        /// Bitwise exclusive or; logical on bool.
        Xor "xor" BITS 0;
        /// Greatest common divisor of the magnitudes, 0 of two zeros; `MIN`'s wraps.
        Gcd "gcd" INTS 0;
        /// Shift left.
        Shl "shl" INTS 0;
        /// Shift right, arithmetic on signed integers.
        Shr "shr" INTS 0;
        /// Less than.
        Lt "lt" ANY 0;
        /// Less than or equal.
        Le "le" ANY 0;
        /// Equal.
        Eq "eq" ANY 0;
        /// Not equal; true for NaN.
        Ne "ne" ANY 0;
    }
}

op_table! {
    /// Operations on three elements.
    TernaryOp {
        /// `where(c, x, y)`: `x` if the bool `c` holds, else `y`.
        Where "where" ANY 0;
        /// `x * y + z`, rounded once where the device can and otherwise twice.
        MulAdd "muladd" FLOATS 1;
    }
}

impl UnaryOp {
    /// About how many additions it costs on floats, where it is computed in terms of simpler ops.
    /// What fuses, keeps or tunes kernels weighs by this.
    pub const fn weight(self) -> f32 {
        match self {
            UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Not => 1.0,
            UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc => 1.0,
            UnaryOp::Recip | UnaryOp::Sqrt => 6.0,
            UnaryOp::Exp | UnaryOp::Exp2 => 14.0,
            UnaryOp::Tanh | UnaryOp::Erf => 20.0,
            _ => 25.0,
        }
    }

    /// The meaning on real numbers.
    pub fn eval_f64(self, x: f64) -> f64 {
        match self {
            UnaryOp::Neg => -x,
            UnaryOp::Abs => x.abs(),
            UnaryOp::Not => unreachable!("invariant: not is undefined on floats"),
            UnaryOp::Recip => 1.0 / x,
            UnaryOp::Sqrt => x.sqrt(),
            UnaryOp::Exp => x.exp(),
            UnaryOp::Exp2 => x.exp2(),
            UnaryOp::Expm1 => x.exp_m1(),
            UnaryOp::Log => x.ln(),
            UnaryOp::Log2 => x.log2(),
            UnaryOp::Log1p => x.ln_1p(),
            UnaryOp::Sin => cmath::sin(x),
            UnaryOp::Cos => cmath::cos(x),
            UnaryOp::Tan => cmath::tan(x),
            UnaryOp::Asin => x.asin(),
            UnaryOp::Acos => x.acos(),
            UnaryOp::Atan => x.atan(),
            UnaryOp::Sinh => x.sinh(),
            UnaryOp::Cosh => x.cosh(),
            UnaryOp::Tanh => x.tanh(),
            UnaryOp::Erf => crate::special::erf(x),
            UnaryOp::Floor => x.floor(),
            UnaryOp::Ceil => x.ceil(),
            UnaryOp::Round => x.round_ties_even(),
            UnaryOp::Trunc => x.trunc(),
        }
    }

    /// The meaning on an element of any dtype in [`UnaryOp::domain`].
    pub fn eval(self, x: Scalar) -> Scalar {
        let dtype = x.dtype();
        match dtype.class() {
            Class::Float => Scalar::from_f64(dtype, self.eval_f64(x.to_f64())),
            Class::Bool => Scalar::from(!x.to_bool()),
            Class::Signed | Class::Unsigned => {
                let v = x.to_i128();
                let y = match self {
                    UnaryOp::Neg => -v,
                    UnaryOp::Abs => v.abs(),
                    UnaryOp::Not => !v,
                    _ => v,
                };
                Scalar::from_bits(dtype, y as u64)
            }
        }
    }
}

impl BinaryOp {
    /// About how many additions it costs on floats; see [`UnaryOp::weight`].
    pub const fn weight(self) -> f32 {
        match self {
            BinaryOp::Div => 6.0,
            BinaryOp::Rem | BinaryOp::Pow | BinaryOp::Atan2 | BinaryOp::LogAddExp => 40.0,
            BinaryOp::Gcd => 80.0,
            _ => 1.0,
        }
    }

    /// Whether the result is a bool whatever the operands are.
    pub const fn is_comparison(self) -> bool {
        matches!(self, BinaryOp::Lt | BinaryOp::Le | BinaryOp::Eq | BinaryOp::Ne)
    }

    /// Whether operands may be swapped.
    pub const fn is_commutative(self) -> bool {
        matches!(self, BinaryOp::Eq | BinaryOp::Ne) || self.is_associative()
    }

    /// Whether the op is a monoid's combine, so that it can reduce and scan.
    pub const fn is_associative(self) -> bool {
        use BinaryOp::{Add, And, LogAddExp, Max, Min, Mul, Or, Xor};
        matches!(self, Add | Mul | LogAddExp | Max | Min | And | Or | Xor)
    }

    /// Whether any grouping of operands gives the same bits: true for all associative ops but
    /// sums and products of floats.
    pub const fn is_exactly_associative(self, dtype: DType) -> bool {
        use BinaryOp::{Add, LogAddExp, Mul};
        self.is_associative() && !(dtype.is_float() && matches!(self, Add | Mul | LogAddExp))
    }

    /// The magnitude in whose last places [`BinaryOp::ulp`] bounds the error of a result `z`: its own, but
    /// of `LogAddExp` that of the logarithm added to the larger operand where less is left of their sum.
    pub fn unit(self, x: f64, y: f64, z: f64) -> f64 {
        match self {
            BinaryOp::LogAddExp => z.abs().max(z - x.max(y)),
            _ => z.abs(),
        }
    }

    /// The dtype of the result for operands of `dtype`.
    pub const fn result(self, dtype: DType) -> DType {
        if self.is_comparison() { DType::Bool } else { dtype }
    }

    /// The neutral element of an associative op.
    pub fn identity(self, dtype: DType) -> Option<Scalar> {
        Some(match self {
            BinaryOp::Add | BinaryOp::Or | BinaryOp::Xor => Scalar::from_i64(dtype, 0),
            BinaryOp::Mul => Scalar::from_i64(dtype, 1),
            BinaryOp::And => Scalar::from_bits(dtype, u64::MAX),
            BinaryOp::Max | BinaryOp::LogAddExp => Scalar::lowest(dtype),
            BinaryOp::Min => Scalar::highest(dtype),
            _ => return None,
        })
    }

    /// The meaning on real numbers; comparisons give 1 or 0.
    pub fn eval_f64(self, x: f64, y: f64) -> f64 {
        match self {
            BinaryOp::Add => x + y,
            BinaryOp::Sub => x - y,
            BinaryOp::Mul => x * y,
            BinaryOp::Div => x / y,
            BinaryOp::Rem => x % y,
            BinaryOp::Pow => x.powf(y),
            BinaryOp::Atan2 => x.atan2(y),
            BinaryOp::LogAddExp => log_add_exp(x, y),
            BinaryOp::Max if x.is_nan() || y.is_nan() => f64::NAN,
            BinaryOp::Min if x.is_nan() || y.is_nan() => f64::NAN,
            BinaryOp::Max => x.max(y),
            BinaryOp::Min => x.min(y),
            BinaryOp::Lt => (x < y) as u8 as f64,
            BinaryOp::Le => (x <= y) as u8 as f64,
            BinaryOp::Eq => (x == y) as u8 as f64,
            BinaryOp::Ne => (x != y) as u8 as f64,
            BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Gcd
            | BinaryOp::Shl
            | BinaryOp::Shr => {
                unreachable!("invariant: operations of integers are undefined on floats")
            }
        }
    }

    /// The meaning on two elements of one dtype in [`BinaryOp::domain`].
    pub fn eval(self, x: Scalar, y: Scalar) -> Scalar {
        let dtype = x.dtype();
        debug_assert_eq!(dtype, y.dtype(), "operands of {self} have one dtype");
        match dtype.class() {
            // `f64` holds the exact sum, product, quotient of narrower floats closely enough
            // that rounding twice equals rounding once (Figueroa 1995: 2p + 2 bits suffice).
            Class::Float => {
                Scalar::from_f64(self.result(dtype), self.eval_f64(x.to_f64(), y.to_f64()))
            }
            _ => self.eval_int(x, y),
        }
    }

    fn eval_int(self, x: Scalar, y: Scalar) -> Scalar {
        let dtype = x.dtype();
        let (a, b) = (x.to_i128(), y.to_i128());
        let bits = dtype.bits() as i128;
        let shift = if (0..bits).contains(&b) { Some(b as u32) } else { None };
        let value = match self {
            BinaryOp::Add if dtype == DType::Bool => a | b,
            BinaryOp::Add => a + b,
            BinaryOp::Sub => a - b,
            BinaryOp::Mul => a.wrapping_mul(b),
            BinaryOp::Div => a.checked_div(b).unwrap_or(0),
            BinaryOp::Rem => a.checked_rem(b).unwrap_or(a),
            BinaryOp::Pow => int_pow(a, b),
            BinaryOp::Max => a.max(b),
            BinaryOp::Min => a.min(b),
            BinaryOp::And => a & b,
            BinaryOp::Or => a | b,
            BinaryOp::Xor => a ^ b,
            BinaryOp::Gcd => common_divisor(a, b),
            BinaryOp::Shl => shift.map_or(0, |s| a << s),
            BinaryOp::Shr => shift.map_or(if a < 0 { -1 } else { 0 }, |s| a >> s),
            BinaryOp::Lt => return Scalar::from(a < b),
            BinaryOp::Le => return Scalar::from(a <= b),
            BinaryOp::Eq => return Scalar::from(a == b),
            BinaryOp::Ne => return Scalar::from(a != b),
            BinaryOp::Atan2 | BinaryOp::LogAddExp => {
                unreachable!("invariant: {self} is undefined on integers")
            }
        };
        Scalar::from_bits(dtype, value as u64)
    }
}

/// The greatest common divisor of two magnitudes.
fn common_divisor(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// `base` to the power `exponent`, wrapping modulo 2^64; a negative exponent gives the truncated
/// reciprocal (0 unless the base is 1 or -1; 0 for base 0 too).
fn int_pow(base: i128, exponent: i128) -> i128 {
    if exponent < 0 {
        return match base {
            1 => 1,
            -1 => 1 - 2 * (exponent & 1),
            _ => 0,
        };
    }
    let (mut result, mut square, mut left) = (1u64, base as u64, exponent as u64);
    while left > 0 {
        if left & 1 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        left >>= 1;
    }
    result as i128
}

impl TernaryOp {
    /// The meaning on elements: `Where` takes a bool first, `MulAdd` three of one dtype.
    pub fn eval(self, x: Scalar, y: Scalar, z: Scalar) -> Scalar {
        match self {
            TernaryOp::Where => {
                if x.to_bool() {
                    y
                } else {
                    z
                }
            }
            TernaryOp::MulAdd => match x.dtype() {
                DType::F32 => Scalar::from(cmath::mul_add_f32(x.get(), y.get(), z.get())),
                dtype => {
                    Scalar::from_f64(dtype, cmath::mul_add_f64(x.to_f64(), y.to_f64(), z.to_f64()))
                }
            },
        }
    }
}

/// `log(exp(x) + exp(y))`.
fn log_add_exp(x: f64, y: f64) -> f64 {
    // Of equal infinities there is no difference.
    if x == y {
        return x + std::f64::consts::LN_2;
    }
    let (larger, smaller) = if y < x { (x, y) } else { (y, x) };
    let distance = larger - smaller;
    // What the subtraction rounds off (Knuth's TwoSum) is a relative error of the exponential.
    let taken = larger - distance;
    let lost = (larger - (distance + taken)) + (taken - smaller);
    let lost = if distance.is_finite() { lost } else { 0.0 };
    let ratio = (-distance).exp();
    larger + (ratio - ratio * lost).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_neutral() {
        for &op in BinaryOp::ALL {
            for &dtype in DType::ALL.iter().filter(|&&d| op.domain().contains(d)) {
                let Some(identity) = op.identity(dtype) else {
                    assert!(!op.is_associative());
                    continue;
                };
                for x in [-3, 0, 1, 7] {
                    let x = Scalar::from_i64(dtype, x);
                    assert_eq!(op.eval(identity, x), x, "{op} on {dtype}");
                }
            }
        }
    }

    #[test]
    fn integer_edges_have_documented_values() {
        let (min, m1, zero) = (Scalar::from(i32::MIN), Scalar::from(-1i32), Scalar::from(0i32));
        assert_eq!(BinaryOp::Div.eval(min, m1), min);
        assert_eq!(BinaryOp::Rem.eval(min, m1), zero);
        assert_eq!(BinaryOp::Div.eval(min, zero), zero);
        assert_eq!(BinaryOp::Rem.eval(m1, zero), m1);
        assert_eq!(BinaryOp::Shl.eval(m1, Scalar::from(32i32)), zero);
        assert_eq!(BinaryOp::Shr.eval(m1, Scalar::from(99i32)), m1);
        assert_eq!(BinaryOp::Pow.eval(Scalar::from(3u8), Scalar::from(6u8)), Scalar::from(217u8));
        assert_eq!(BinaryOp::Gcd.eval(Scalar::from(-12i8), Scalar::from(18i8)), Scalar::from(6i8));
        assert_eq!(
            BinaryOp::Gcd.eval(Scalar::from(i8::MIN), Scalar::from(0i8)),
            Scalar::from(i8::MIN)
        );
    }

    #[test]
    fn nan_propagates_through_max() {
        let nan = Scalar::from(f32::NAN);
        for op in [BinaryOp::Max, BinaryOp::Min] {
            assert!(op.eval(nan, Scalar::from(1f32)).to_f64().is_nan());
            assert!(op.eval(Scalar::from(1f32), nan).to_f64().is_nan());
        }
    }
}
