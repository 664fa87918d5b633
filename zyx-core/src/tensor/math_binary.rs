//! Elementwise mathematics beyond the op table, of two and three tensors, and comparisons that
//! answer with one bool.
//!
//! Shapes broadcast and dtypes are promoted as everywhere; functions of real numbers convert
//! integers to `f32` and compute halves in `f32`. Rules of gradients are given where a formula's
//! own would be NaN at points where the function is smooth.

use super::formula::{Condition, Term};
use super::math::truth;
use super::{Operand, Tensor};
use crate::dtype::{Class, DType, DTypeSet};
use crate::error::{Named, Result};
use crate::ops::{BinaryOp, UnaryOp};
use crate::origin::composed;
use crate::scalar::Scalar;
use std::f64::consts::LN_2;

const FLOATS: DTypeSet = UnaryOp::Sqrt.domain();
const INTS: DTypeSet = BinaryOp::Shl.domain();
const NUMBERS: DTypeSet = BinaryOp::Sub.domain();

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $name:ident $in:tt, $rhs:literal => $out:tt $dtype:ident on $domain:ident
        |$x:ident, $y:ident| $body:expr;)*) => {
        impl Tensor {$(
            $(#[$doc])*
            ///
            /// ```
            /// # use zyx::Tensor;
            /// # let device = zyx::runtime().device("reference")?;
            #[doc = concat!("let x = Tensor::new(", stringify!($in), ", &device)?;")]
            #[doc = concat!(
                "assert_eq!(x.", stringify!($name), "(", stringify!($rhs), ")?.to_vec::<",
                stringify!($dtype), ">()?, ", stringify!($out), ");"
            )]
            /// # Ok::<(), zyx::Error>(())
            /// ```
            ///
            /// # Errors
            /// When shapes do not broadcast, the function is not defined on the dtypes, or the
            /// operands are on different devices.
            #[track_caller]
            pub fn $name(&self, rhs: impl Operand) -> Result<Tensor> {
                let ($x, $y) =
                    Tensor::unify(stringify!($name), self, &rhs.lend(self), $domain)?;
                Ok($body)
            }
        )*}
    };
}

binary_methods! {
    /// `sqrt(x^2 + y^2)` without overflow; infinite if either is.
    hypot [3f32, -5.0], 4.0 => [5.0, 6.403_124_3] f32 on FLOATS |x, y| hypot(&x, &y);
    /// The magnitude of `self` with the sign of `rhs`, that of its zero included.
    copysign [1f32, -2.0], -0.0 => [-1.0, -2.0] f32 on FLOATS |x, y| copysign(&x, &y);
    /// The next number of the dtype after `self` towards `rhs`, whose distance is a constant to gradients.
    nextafter [1f32, 2.0], 2.0 => [1.000_000_1, 2.0] f32 on FLOATS |x, y| nextafter(&x, &y);
    /// `log2(2^x + 2^y)` without overflow.
    logaddexp2 [f32::NEG_INFINITY, 1.0], 1.0 => [1.0, 2.0] f32 on FLOATS |x, y| log_add(&x, &y, LN_2);
    /// `x log(y)`, which is 0 where `x` is 0, unless `y` is NaN.
    xlogy [0f32, 2.0], 0.0 => [0.0, f32::NEG_INFINITY] f32 on FLOATS |x, y| x_log(&x, &y, false);
    /// `x log(1 + y)`, which is 0 where `x` is 0, unless `y` is NaN.
    xlog1py [0f32, 2.0], -1.0 => [0.0, f32::NEG_INFINITY] f32 on FLOATS |x, y| x_log(&x, &y, true);
    /// 0 below zero, 1 above it and `rhs` at zero.
    heaviside [-2f32, 0.0, 3.0], 0.5 => [0.0, 0.5, 1.0] f32 on ANY |x, y| heaviside(&x, &y);
    /// Greatest common divisor, not negative; 0 of two zeros.
    gcd [12i32, -18, 0], 8 => [4, 2, 8] i32 on INTS |x, y| x.combine(BinaryOp::Gcd, &y);
    /// Least common multiple, not negative; 0 where an operand is.
    lcm [12i32, -18, 0], 8 => [24, 72, 0] i32 on INTS |x, y| lcm(&x, &y);
    /// Larger value, or the one that is not NaN. Equal operands share the gradient.
    fmax [1f32, f32::NAN], 0.5 => [1.0, 0.5] f32 on ANY |x, y| beside_nan(&x, &y, BinaryOp::Max);
    /// Smaller value, or the one that is not NaN. Equal operands share the gradient.
    fmin [1f32, f32::NAN], 0.5 => [0.5, 0.5] f32 on ANY |x, y| beside_nan(&x, &y, BinaryOp::Min);
    /// Exactly one nonzero, as bool.
    logical_xor [1f32, 0.0], 2.0 => [false, true] bool on ANY |x, y| x.cast(DType::Bool).combine(BinaryOp::Xor, &y.cast(DType::Bool));
    /// `x 2^y`.
    ldexp [1f32, 3.0], 2.0 => [4.0, 12.0] f32 on FLOATS |x, y| Term::compute2(&x, &y, |x, y| x * Term(y.0.exp2()));
    /// `self` to the power `rhs`, both converted to `f64`.
    float_power [2f32, 3.0], -1 => [0.5, 1.0 / 3.0] f64 on ANY |x, y| x.cast(DType::F64).raised(&y.cast(DType::F64), y.exponent());
    /// Shift left; the same as [`Tensor::shl`].
    bitwise_left_shift [1i32, 5], 2 => [4, 20] i32 on INTS |x, y| x.combine(BinaryOp::Shl, &y);
    /// Shift right, arithmetic on signed integers; the same as [`Tensor::shr`].
    bitwise_right_shift [-8i32, 5], 1 => [-4, 2] i32 on INTS |x, y| x.combine(BinaryOp::Shr, &y);
}

const ANY: DTypeSet = DTypeSet::ALL;

#[track_caller]
fn hypot(x: &Tensor, y: &Tensor) -> Tensor {
    Term::compute2(x, y, |x, y| {
        let (a, b) = (x.abs(), y.abs());
        let (high, low) = (a.max(&b), a.min(&b));
        let safe = high.is(0.0).choose(&high.number(1.0), &high);
        let length = &high * ((&low / &safe).square() + 1.0).sqrt();
        let infinite = a.is(f64::INFINITY).or(&b.is(f64::INFINITY));
        let length = infinite.choose(&high.number(f64::INFINITY), &length);
        // The ratio first: the reciprocal of a subnormal length is infinite.
        length.sloped([x, y], |x, y, z| {
            let z = z.is(0.0).choose(&z.number(1.0), z);
            [x / &z, y / &z]
        })
    })
}

#[track_caller]
fn copysign(x: &Tensor, y: &Tensor) -> Tensor {
    let size = x.abs();
    let negative = y.has_sign();
    let value = negative.select(&size.neg(), &size);
    value.with_rule(x, |inputs, y, dy| {
        let x = &inputs[0];
        let sign = x.sign().combine(BinaryOp::Mul, &y.sign());
        Some(sign.combine(BinaryOp::Mul, dy))
    })
}

/// Neighbours of floats are neighbours as integers of their bits, magnitudes counted apart from
/// signs.
#[track_caller]
fn nextafter(x: &Tensor, y: &Tensor) -> Tensor {
    let _here = composed();
    let dtype = x.dtype();
    let int = match dtype.bits() {
        16 => DType::I16,
        32 => DType::I32,
        _ => DType::I64,
    };
    let bits = |t: &Tensor| t.bitcast(int).expect("invariant: the widths are equal");
    let float = |t: &Tensor| t.bitcast(dtype).expect("invariant: the widths are equal");
    let b = bits(x);
    let one = b.like(1.0);
    let (zero, up) = (x.like(0.0), x.combine(BinaryOp::Lt, y));
    // Away from zero the magnitude grows: upwards for positive numbers, downwards for negative.
    let outwards = up.combine(BinaryOp::Eq, &zero.combine(BinaryOp::Lt, x));
    let moved = outwards.select(&b.combine(BinaryOp::Add, &one), &b.combine(BinaryOp::Sub, &one));
    let least = float(&one);
    let from_zero = up.select(&least, &least.neg());
    let next = x.combine(BinaryOp::Eq, &zero).select(&from_zero, &float(&moved));
    let next = x.combine(BinaryOp::Eq, y).select(y, &next);
    let nan = x.is_nan().combine(BinaryOp::Or, &y.is_nan());
    let moves = x.combine(BinaryOp::Ne, y);
    let value = nan.select(&x.like(f64::NAN), &next);
    value.with_rule(x, move |_, _, dy| Some(moves.select(dy, &dy.like(0.0))))
}

/// `log(e^(unit x) + e^(unit y)) / unit`.
#[track_caller]
fn log_add(x: &Tensor, y: &Tensor, unit: f64) -> Tensor {
    Term::compute2(x, y, move |x, y| {
        let distance = x.equals(y).choose(&x.number(0.0), &(x - y).abs());
        let value = x.max(y) + (distance * -unit).exp().log1p() * (1.0 / unit);
        value.sloped([x, y], move |x, y, _| {
            let step = x.equals(y).choose(&x.number(0.0), &(x - y)) * unit;
            [step.sigmoid(), (-step).sigmoid()]
        })
    })
}

/// `x log(y)`, or `x log(1 + y)`.
#[track_caller]
fn x_log(x: &Tensor, y: &Tensor, plus_one: bool) -> Tensor {
    let log = move |y: &Term| if plus_one { y.log1p() } else { y.log() };
    Term::compute2(x, y, move |x, y| {
        let nothing = x.is(0.0).and(&y.is_nan().not());
        let value = nothing.choose(&x.number(0.0), &(x * log(&nothing.choose(&y.number(1.0), y))));
        value.sloped([x, y], move |x, y, _| {
            let (nothing, below_edge) =
                (x.is(0.0), y.le(&y.number(if plus_one { -1.0 } else { 0.0 })));
            let flat = nothing.and(&below_edge);
            let to_x = flat.choose(&x.number(0.0), &log(&flat.choose(&y.number(1.0), y)));
            let below = if plus_one { y + 1.0 } else { y.clone() };
            let to_y =
                nothing.choose(&x.number(0.0), &(x / nothing.choose(&y.number(1.0), &below)));
            [to_x, to_y]
        })
    })
}

#[track_caller]
fn heaviside(x: &Tensor, y: &Tensor) -> Tensor {
    if x.dtype() == DType::Bool {
        return x.combine(BinaryOp::Or, y);
    }
    let (zero, one) = (x.like(0.0), x.like(1.0));
    let step = zero.combine(BinaryOp::Lt, x).select(&one, &zero);
    let value = x.combine(BinaryOp::Eq, &zero).select(y, &step);
    if x.dtype().is_float() { x.is_nan().select(x, &value) } else { value }
}

/// `x` by the greatest common divisor, times `y`. What is left of the divisor without its factors of
/// two is odd, and exact division by an odd number is the product with its inverse modulo a power of
/// two (Newton's steps double the bits that are right), which vectors do, unlike divisions.
#[track_caller]
fn lcm(x: &Tensor, y: &Tensor) -> Tensor {
    let _here = composed();
    let divisor = x.combine(BinaryOp::Gcd, y).unsigned_bits();
    let [x_bits, y_bits] = [x, y].map(|v| v.abs().unsigned_bits());
    let unsigned = divisor.dtype();
    let number = |n: u64| divisor.constant(Scalar::from_bits(unsigned, n));
    let unit = divisor.combine(BinaryOp::And, &number(0).combine(BinaryOp::Sub, &divisor));
    let twos = (0..unsigned.bits().ilog2()).fold(number(0), |twos, k| {
        // The places whose number has bit `k`.
        let places = (0..64u64).filter(|place| place >> k & 1 == 1).fold(0, |all, p| all | 1 << p);
        let is_there =
            unit.combine(BinaryOp::And, &number(places)).combine(BinaryOp::Ne, &number(0));
        twos.combine(BinaryOp::Or, &is_there.select(&number(1 << k), &number(0)))
    });
    let [odd, rest] = [&divisor, &x_bits].map(|v| v.combine(BinaryOp::Shr, &twos));
    let times = |x: &Tensor, y: &Tensor| x.combine(BinaryOp::Mul, y);
    let (mut right, mut inverse) = (5, times(&odd, &number(3)).combine(BinaryOp::Xor, &number(2)));
    while right < unsigned.bits() {
        let error = number(2).combine(BinaryOp::Sub, &times(&odd, &inverse));
        (right, inverse) = (2 * right, times(&inverse, &error));
    }
    let multiple = times(&times(&rest, &inverse), &y_bits);
    multiple.bitcast(x.dtype()).expect("invariant: the widths are equal").abs()
}

#[track_caller]
fn beside_nan(x: &Tensor, y: &Tensor, op: BinaryOp) -> Tensor {
    let value = x.combine(op, y);
    if !x.dtype().is_float() {
        return value;
    }
    x.is_nan().select(y, &y.is_nan().select(x, &value))
}

impl Tensor {
    /// `self + value * x * y`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 2.0], &device)?;
    /// assert_eq!(x.addcmul(&x, 3.0, 10.0)?.to_vec::<f32>()?, [31.0, 62.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes do not broadcast.
    #[track_caller]
    pub fn addcmul(&self, x: impl Operand, y: impl Operand, value: f64) -> Result<Tensor> {
        self.in_steps("addcmul", [&x, &y], |base, [x, y]| {
            let product = x.mul(&y)?;
            // A whole number keeps integers what they are.
            let scaled = match value {
                1.0 => product,
                _ if value.fract() == 0.0 && product.dtype().is_int() => {
                    product.mul(value as i64)?
                }
                _ => product.mul(value)?,
            };
            base.add(scaled)
        })
    }

    /// `self + value * x / y`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 2.0], &device)?;
    /// assert_eq!(x.addcdiv(&x, 2.0, 10.0)?.to_vec::<f32>()?, [6.0, 12.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes do not broadcast.
    #[track_caller]
    pub fn addcdiv(&self, x: impl Operand, y: impl Operand, value: f64) -> Result<Tensor> {
        self.in_steps("addcdiv", [&x, &y], |base, [x, y]| {
            let quotient = x.div(&y)?;
            base.add(if value == 1.0 { quotient } else { quotient.mul(value)? })
        })
    }

    /// Whether each pair is close: `|x - y| <= atol + rtol * |y|`, or equal. NaN is close to NaN
    /// if `equal_nan`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, f32::NAN], &device)?;
    /// assert_eq!(x.isclose(&(&x + 1e-6), 1e-5, 1e-8, true)?.to_vec::<bool>()?, [true, true]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes do not broadcast.
    #[track_caller]
    pub fn isclose(
        &self,
        other: impl Operand,
        rtol: f64,
        atol: f64,
        equal_nan: bool,
    ) -> Result<Tensor> {
        let _here = composed();
        let wide = self.widened();
        let (x, y) = Tensor::unify("isclose", &wide, &other.resolve(&wide).widened(), NUMBERS)?;
        let equal = x.combine(BinaryOp::Eq, &y);
        let distance = match x.dtype().class() {
            // The difference of unsigned numbers is that of the larger and the smaller.
            Class::Unsigned => {
                let (high, low) = (x.combine(BinaryOp::Max, &y), x.combine(BinaryOp::Min, &y));
                high.combine(BinaryOp::Sub, &low)
            }
            _ => x.combine(BinaryOp::Sub, &y).abs(),
        };
        let (distance, size) = (Term(distance.floating()), Term(y.floating()).abs());
        let allowed = size * rtol + atol;
        let finite = Condition(y.is_finite());
        let near = distance.le(&allowed).and(&finite).0.combine(BinaryOp::Or, &equal);
        if !equal_nan {
            return Ok(near);
        }
        let both = x.is_nan().combine(BinaryOp::And, &y.is_nan());
        Ok(near.combine(BinaryOp::Or, &both))
    }

    /// Whether all pairs are close, see [`Tensor::isclose`]. Computes and reads the answer.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 2.0], &device)?;
    /// assert!(x.allclose(&(&x + 1e-6), 1e-5, 1e-8, false)? && !x.allclose(0.0, 1e-5, 1e-8, false)?);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes do not broadcast or the device fails.
    #[track_caller]
    pub fn allclose(
        &self,
        other: impl Operand,
        rtol: f64,
        atol: f64,
        equal_nan: bool,
    ) -> Result<bool> {
        truth(self.isclose(other, rtol, atol, equal_nan)).named("allclose")
    }

    /// Whether both have one shape and equal elements. Computes and reads the answer.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 2.0], &device)?;
    /// assert!(x.equal(&x.clone())? && !x.equal(&x.unsqueeze(0)?)?);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the tensors are on different devices or the device fails.
    #[track_caller]
    pub fn equal(&self, other: &Tensor) -> Result<bool> {
        if !self.shape().same(other.shape()) {
            return Ok(false);
        }
        truth(self.eq(other)).named("equal")
    }
}
