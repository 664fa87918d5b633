//! Elementwise meanings on intervals.
//!
//! Monotone functions map ends to ends. The others have a rule of their own: even functions fold
//! at zero, sine and cosine move by at most their argument, a pole or a jump inside the interval
//! gives [`Val::Unknown`].

use super::flush::{flushed, flushed_result, tie};
use super::{Array, Val, int_range, is_point, wrap};
use crate::tolerance::{round, ulp, widen};
use zyx_core::{BinaryOp, Class, DType, UnaryOp, cmath};

/// The dtype a unary op computes in: operands outside its domain are converted, bools and
/// integers to `i64` where that is in the domain, everything else to `f32`.
pub fn unary_dtype(op: UnaryOp, dtype: DType) -> DType {
    if op.domain().contains(dtype) {
        dtype
    } else if op.domain().contains(DType::I64) && !dtype.is_float() {
        DType::I64
    } else {
        DType::F32
    }
}

/// The dtype two operands meet in, or `None` where the op is not defined.
pub fn binary_dtype(op: BinaryOp, x: DType, y: DType) -> Option<DType> {
    let dtype = promote(x, y);
    if op.domain().contains(dtype) {
        Some(dtype)
    } else if dtype == DType::Bool && op.domain().contains(DType::I64) {
        Some(DType::I64)
    } else if !dtype.is_float() && op.domain().contains(DType::F32) {
        Some(DType::F32)
    } else {
        None
    }
}

/// The promotion of PyTorch's documentation, written out for the tests: the higher class wins;
/// two integers give the smallest signed integer that holds both, or the wider of equal sign;
/// `u64` with a signed integer gives `i64`; the two halves give `f32`.
pub fn promote(x: DType, y: DType) -> DType {
    use DType::{BF16, F16, F32};
    let signed = |bits| match bits {
        8 => DType::I8,
        16 => DType::I16,
        32 => DType::I32,
        _ => DType::I64,
    };
    match (x.class(), y.class()) {
        (Class::Unsigned, Class::Signed) => signed((2 * x.bits()).max(y.bits())),
        (Class::Signed, Class::Unsigned) => promote(y, x),
        (a, b) if a > b => x,
        (a, b) if a < b => y,
        _ if matches!((x, y), (F16, BF16) | (BF16, F16)) => F32,
        _ if x.bits() >= y.bits() => x,
        _ => y,
    }
}

/// Converts a value between dtypes.
pub fn cast(x: Val, from: DType, to: DType) -> Val {
    if from == to {
        return x;
    }
    let as_int = |x: f64| -> i128 {
        if x.is_nan() {
            return 0;
        }
        let (low, high) = int_range(to);
        // `as` saturates to `i128`, far beyond every dtype.
        (x.trunc() as i128).clamp(low, high)
    };
    let x = flushed(from, x);
    match (x, to.class()) {
        (Val::Unknown, _) => Val::Unknown,
        (Val::Int(i), Class::Float) => {
            let y = int_to_float(to, i);
            Val::point(y)
        }
        (Val::Int(i), _) => Val::Int(wrap(to, i)),
        (Val::Real(low, high), Class::Float) => flushed_result(to, Val::interval(to, low, high)),
        (Val::Real(low, high), Class::Bool) => match (low != 0.0, high != 0.0) {
            (true, true) if low.is_nan() || low.signum() == high.signum() => Val::Int(1),
            (false, false) => Val::Int(0),
            _ => Val::Unknown,
        },
        (Val::Real(low, high), _) => {
            let (a, b) = (as_int(low), as_int(high));
            if a == b { Val::Int(a) } else { Val::Unknown }
        }
    }
}

/// An integer rounded once. Beyond 2^53, `f64` would round first: cut to 60 bits and mark what
/// was cut off in the last one, which no format here keeps.
fn int_to_float(to: DType, x: i128) -> f64 {
    match to {
        DType::F64 => x as f64,
        DType::F32 => x as f32 as f64,
        _ => {
            let magnitude = x.unsigned_abs();
            let shift = (128 - magnitude.leading_zeros()).saturating_sub(50);
            let sticky = (magnitude >> shift << shift != magnitude) as u128;
            let cut = ((magnitude >> shift) << 1 | sticky) as f64;
            let y = round(to, cut * 2f64.powi(shift as i32 - 1));
            if x < 0 { -y } else { y }
        }
    }
}

/// The interval of a monotone function's results before the op's own error.
fn ends(f: impl Fn(f64) -> f64, low: f64, high: f64) -> (f64, f64) {
    let (a, b) = (f(low), f(high));
    if a <= b || a.is_nan() || b.is_nan() { (a, b) } else { (b, a) }
}

/// A unary op on a value of `dtype`, which is in the op's domain.
pub fn unary(op: UnaryOp, dtype: DType, x: Val) -> Val {
    flushed_result(dtype, kept_unary(op, dtype, flushed(dtype, x)))
}

/// A unary op that flushes nothing.
fn kept_unary(op: UnaryOp, dtype: DType, x: Val) -> Val {
    match x {
        Val::Unknown => Val::Unknown,
        Val::Int(i) => {
            let y = match op {
                UnaryOp::Neg => -i,
                UnaryOp::Abs => i.abs(),
                UnaryOp::Not if dtype == DType::Bool => 1 - i,
                UnaryOp::Not => !i,
                UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc => i,
                _ => unreachable!("invariant: {op} is not defined on {dtype}"),
            };
            Val::Int(wrap(dtype, y))
        }
        Val::Real(low, high) => {
            let Some((a, b)) = unary_range(op, low, high) else { return Val::Unknown };
            if a.is_nan() != b.is_nan() {
                return Val::Unknown;
            }
            if matches!(op, UnaryOp::Neg | UnaryOp::Abs) {
                // Exact, so the ends of a product that may be left unrounded stay as they are.
                return Val::Real(a, b);
            }
            let (a, b) = widen(dtype, op.ulp(), a, b);
            Val::interval(dtype, a, b)
        }
    }
}

/// The exact range of a unary op over an interval; `None` across a pole.
fn unary_range(op: UnaryOp, low: f64, high: f64) -> Option<(f64, f64)> {
    use UnaryOp as U;
    let f = |x: f64| real_unary(op, x);
    let point = is_point(low, high);
    let around = |f: &dyn Fn(f64) -> f64| {
        let middle = f64::midpoint(low, high);
        // Of neighbouring floats the middle is one.
        let radius = (high - middle).max(middle - low);
        let y = f(middle);
        ((y - radius).max(-1.0), (y + radius).min(1.0))
    };
    Some(match op {
        _ if point => (f(low), f(low)),
        U::Abs | U::Cosh if low < 0.0 && high > 0.0 => (f(0.0), f(low).max(f(high))),
        U::Recip if low <= 0.0 && high >= 0.0 => return None,
        // Defined between the ends alone.
        _ if low < 0.0 && high > 0.0 && f(low).is_nan() && !f(0.0).is_nan() => return None,
        U::Sin | U::Cos => around(&f),
        U::Tan => {
            let branch = |x: f64| (x / std::f64::consts::PI + 0.5).floor();
            if branch(low) != branch(high) {
                return None;
            }
            ends(f, low, high)
        }
        _ => ends(f, low, high),
    })
}

/// The meaning on real numbers.
fn real_unary(op: UnaryOp, x: f64) -> f64 {
    match op {
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
        UnaryOp::Erf => erf(x),
        UnaryOp::Floor => x.floor(),
        UnaryOp::Ceil => x.ceil(),
        UnaryOp::Round => x.round_ties_even(),
        UnaryOp::Trunc => x.trunc(),
    }
}

/// The error function by its Taylor series about zero below 2 and by Simpson's rule on the
/// remaining integral above, each good to a few units of `f64`.
///
/// Another method than the library's on purpose.
pub fn erf(x: f64) -> f64 {
    let a = x.abs();
    if x.is_nan() || x == 0.0 {
        return x;
    }
    let tail = |from: f64| {
        // The integrand falls below 1e-40 of its start within 10.
        let n = 20_000;
        let h = 10.0 / n as f64;
        let f = |i: i32| {
            let t = from + i as f64 * h;
            (-t * t).exp()
        };
        let inner: f64 = (1..n).map(|i| if i % 2 == 1 { 4.0 } else { 2.0 } * f(i)).sum();
        std::f64::consts::FRAC_2_SQRT_PI * (f(0) + inner + f(n)) * h / 3.0
    };
    let y = if a < 2.0 {
        // Sum of (-1)^n x^(2n+1) / (n! (2n+1)); at 2 the largest term is 10, so 14 digits stay.
        let (mut power, mut sum, mut n) = (a, a, 0.0);
        while power.abs() > 1e-20 * sum.abs() {
            n += 1.0;
            power *= -a * a / n;
            sum += power / (2.0 * n + 1.0);
        }
        std::f64::consts::FRAC_2_SQRT_PI * sum
    } else if a < 6.0 {
        1.0 - tail(a)
    } else {
        1.0
    };
    y.copysign(x)
}

/// A binary op on values of `dtype`, which is in the op's domain.
pub fn binary(op: BinaryOp, dtype: DType, x: Val, y: Val) -> Val {
    if let (BinaryOp::Max | BinaryOp::Min, Some(either)) = (op, tie(dtype, x, y)) {
        return either;
    }
    match (flushed(dtype, x), flushed(dtype, y)) {
        (Val::Int(a), Val::Int(b)) => int_binary(op, dtype, a, b),
        (Val::Real(a, b), Val::Real(c, d)) => {
            flushed_result(dtype, real_binary(op, dtype, (a, b), (c, d)))
        }
        _ => Val::Unknown,
    }
}

fn int_binary(op: BinaryOp, dtype: DType, a: i128, b: i128) -> Val {
    use BinaryOp as B;
    let bits = dtype.bits() as i128;
    let value = match op {
        B::Add if dtype == DType::Bool => (a + b).min(1),
        B::Add => a + b,
        B::Sub => a - b,
        B::Mul => wrap(dtype, a).wrapping_mul(b),
        B::Div if b == 0 => 0,
        B::Div => a / b,
        B::Rem if b == 0 => a,
        B::Rem => a % b,
        B::Pow => int_pow(dtype, a, b),
        B::Max => a.max(b),
        B::Min => a.min(b),
        B::And => a & b,
        B::Or => a | b,
        B::Xor => a ^ b,
        B::Gcd => common_divisor(a, b),
        B::Shl if b < 0 || b >= bits => 0,
        B::Shl => a << b,
        B::Shr if b < 0 || b >= bits => -((a < 0) as i128),
        B::Shr => a >> b,
        B::Lt => (a < b) as i128,
        B::Le => (a <= b) as i128,
        B::Eq => (a == b) as i128,
        B::Ne => (a != b) as i128,
        B::Atan2 | B::LogAddExp => unreachable!("invariant: {op} is not defined on {dtype}"),
    };
    Val::Int(if op.is_comparison() { value } else { wrap(dtype, value) })
}

/// The largest number that divides both, by Euclid's algorithm.
fn common_divisor(a: i128, b: i128) -> i128 {
    if b == 0 { a.abs() } else { common_divisor(b, a % b) }
}

/// Integer power by repeated multiplication; a negative exponent truncates the reciprocal.
fn int_pow(dtype: DType, base: i128, exponent: i128) -> i128 {
    match (base, exponent) {
        (1, _) => 1,
        (-1, e) => {
            if e % 2 == 0 {
                1
            } else {
                -1
            }
        }
        (_, e) if e < 0 => 0,
        (_, e) => {
            let (mut result, mut factor, mut left) = (1i128, base, e);
            while left > 0 {
                if left % 2 == 1 {
                    result = wrap(dtype, result.wrapping_mul(factor));
                }
                factor = wrap(dtype, factor.wrapping_mul(factor));
                left /= 2;
            }
            result
        }
    }
}

/// The part of `x - y` that rounding drops (Knuth's TwoSum); 0 if the difference is infinite.
fn lost(x: f64, y: f64) -> f64 {
    let difference = x - y;
    let taken = difference - x;
    let lost = (x - (difference - taken)) - (y + taken);
    if difference.is_finite() { lost } else { 0.0 }
}

/// The meaning on real numbers of ops that are no comparisons.
fn real(op: BinaryOp, x: f64, y: f64) -> f64 {
    use BinaryOp as B;
    match op {
        B::Add => x + y,
        B::Sub => x - y,
        B::Mul => x * y,
        B::Div => x / y,
        B::Rem => x % y,
        B::Pow => x.powf(y),
        B::Atan2 => x.atan2(y),
        B::LogAddExp | B::Max | B::Min if x.is_nan() || y.is_nan() => f64::NAN,
        B::LogAddExp if x == y => x + std::f64::consts::LN_2,
        B::LogAddExp => {
            let (high, low) = (x.max(y), x.min(y));
            high + (low - high).exp().mul_add(lost(low, high), (low - high).exp()).ln_1p()
        }
        B::Max => x.max(y),
        B::Min => x.min(y),
        _ => unreachable!("invariant: {op} gives no float"),
    }
}

/// Whether numbers of two intervals may be an infinity and a zero, whose product is no number.
pub fn spans_zero_by_infinity(x: (f64, f64), y: (f64, f64)) -> bool {
    let spans = |a: (f64, f64), b: (f64, f64)| {
        (a.0.is_infinite() || a.1.is_infinite()) && b.0 <= 0.0 && b.1 >= 0.0
    };
    spans(x, y) || spans(y, x)
}

fn real_binary(op: BinaryOp, dtype: DType, x: (f64, f64), y: (f64, f64)) -> Val {
    use BinaryOp as B;
    let nan = x.0.is_nan() || y.0.is_nan();
    let certain = |below: bool, above: bool| match (below, above) {
        (true, _) => Val::Int(1),
        (_, true) => Val::Int(0),
        _ => Val::Unknown,
    };
    let same = x.0 == x.1 && y.0 == y.1 && x.0 == y.0;
    let apart = x.1 < y.0 || y.1 < x.0;
    match op {
        B::Lt | B::Le | B::Eq if nan => return Val::Int(0),
        B::Ne if nan => return Val::Int(1),
        B::Lt => return certain(x.1 < y.0, x.0 >= y.1),
        B::Le => return certain(x.1 <= y.0, x.0 > y.1),
        B::Eq => return certain(same, apart),
        B::Ne => return certain(apart, same),
        _ => {}
    }
    let points = is_point(x.0, x.1) && is_point(y.0, y.1);
    if points {
        let z = real(op, x.0, y.0);
        if z.is_nan() {
            return Val::point(f64::NAN);
        }
        if z == 0.0 && matches!(op, B::Max | B::Min) && x.0 == y.0 {
            return Val::ZERO;
        }
        let (a, b) = bounds(op, dtype, [x, y], (z, z));
        return Val::interval(dtype, a, b);
    }
    if nan {
        return if matches!(op, B::Pow) { Val::Unknown } else { Val::point(f64::NAN) };
    }
    if op == B::Mul && spans_zero_by_infinity(x, y) {
        return Val::Unknown;
    }
    // Ops that are monotone in each operand over the whole box take their extremes in corners.
    let monotone = match op {
        B::Add | B::Sub | B::Mul | B::Max | B::Min | B::LogAddExp => true,
        B::Div => y.0 > 0.0 || y.1 < 0.0,
        B::Pow => x.0 > 0.0,
        B::Atan2 => y.0 > 0.0,
        _ => false,
    };
    let corners = [(x.0, y.0), (x.0, y.1), (x.1, y.0), (x.1, y.1)].map(|(x, y)| real(op, x, y));
    // A zero between the corners times an infinity is NaN.
    let has_zero = |(low, high): (f64, f64)| low <= 0.0 && high >= 0.0;
    let has_infinity = |(low, high): (f64, f64)| low.is_infinite() || high.is_infinite();
    let may_be_nan =
        op == B::Mul && (has_zero(x) && has_infinity(y) || has_zero(y) && has_infinity(x));
    if !monotone || may_be_nan || corners.iter().any(|z| z.is_nan()) {
        return Val::Unknown;
    }
    let low = corners.iter().copied().fold(f64::INFINITY, f64::min);
    let high = corners.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if low == 0.0 && high == 0.0 {
        return Val::ZERO;
    }
    let (a, b) = bounds(op, dtype, [x, y], (low, high));
    Val::interval(dtype, a, b)
}

/// The least that `logaddexp(x, y)`, exactly `z`, may be: the larger operand alone where the device
/// flushes the exponential that is the part of the other.
fn without_part(dtype: DType, x: f64, y: f64, z: f64) -> f64 {
    match flushed_result(dtype, Val::point((-(x - y).abs()).exp())) {
        Val::Real(low, high) if low < high => z.min(x.max(y)),
        _ => z,
    }
}

/// Results between `low` and `high` with the errors that a device may make.
fn bounds(
    op: BinaryOp,
    dtype: DType,
    [x, y]: [(f64, f64); 2],
    (low, high): (f64, f64),
) -> (f64, f64) {
    let low = if op == BinaryOp::LogAddExp { without_part(dtype, x.0, y.0, low) } else { low };
    let (a, b) = widen(dtype, op.ulp(), low, high);
    let margin = |(x, y), z: f64| match op.unit(x, y, z) {
        unit if unit > z.abs() => f64::from(op.ulp() + 1) * ulp(dtype, unit),
        _ => 0.0,
    };
    let least = round(dtype, low - margin((x.0, y.0), low));
    (a.min(least), b.max(round(dtype, high + margin((x.1, y.1), high))))
}

impl Array {
    /// A unary op, converting operands outside its domain.
    #[must_use]
    pub fn unary(&self, op: UnaryOp) -> Array {
        let dtype = unary_dtype(op, self.dtype);
        self.cast(dtype).map(dtype, |x| unary(op, dtype, x))
    }

    /// A binary op with promotion and broadcasting.
    ///
    /// # Panics
    /// When it is not defined on the dtypes or shapes.
    #[must_use]
    pub fn binary(&self, op: BinaryOp, rhs: &Array) -> Array {
        let dtype = binary_dtype(op, self.dtype, rhs.dtype).expect("invariant: the op is defined");
        self.binary_in(op, dtype, rhs)
    }

    /// A product that a sum may use before it is rounded (a fused multiply-add): the interval
    /// between the rounded and the exact product, of which the former alone is of the dtype.
    #[must_use]
    pub fn product(&self, rhs: &Array) -> Array {
        let dtype = binary_dtype(BinaryOp::Mul, self.dtype, rhs.dtype);
        let dtype = dtype.expect("invariant: the op is defined");
        let mut out = self.binary_in(BinaryOp::Mul, dtype, rhs);
        let (x, y) = (self.cast(dtype).expand(&out.dims), rhs.cast(dtype).expand(&out.dims));
        for (i, z) in out.data.iter_mut().enumerate() {
            if let (Val::Real(a, b), Val::Real(c, d), Val::Real(low, high)) =
                (x.data[i], y.data[i], *z)
            {
                if !low.is_finite() || !high.is_finite() {
                    // Rounded, it is infinite; before that it may have been finite.
                    *z = if low.is_nan() || a.is_infinite() || c.is_infinite() {
                        *z
                    } else {
                        Val::Unknown
                    };
                    continue;
                }
                for (x, y) in [(a, c), (a, d), (b, c), (b, d)] {
                    let exact = x * y;
                    // In `f64` the product is itself rounded; one place further holds the rest.
                    let rest =
                        if dtype == DType::F64 { cmath::mul_add_f64(x, y, -exact) } else { 0.0 };
                    let (below, above) = (
                        if rest < 0.0 { exact.next_down() } else { exact },
                        if rest > 0.0 { exact.next_up() } else { exact },
                    );
                    if let Val::Real(low, high) = *z {
                        *z = Val::Real(low.min(below), high.max(above));
                    }
                }
            }
        }
        out
    }

    /// A binary op computed in `dtype`.
    #[must_use]
    pub fn binary_in(&self, op: BinaryOp, dtype: DType, rhs: &Array) -> Array {
        let dims = super::movement::broadcast(&self.dims, &rhs.dims);
        let (x, y) = (self.cast(dtype).expand(&dims), rhs.cast(dtype).expand(&dims));
        let result = if op.is_comparison() { DType::Bool } else { dtype };
        let data = x.data.iter().zip(&y.data).map(|(&x, &y)| binary(op, dtype, x, y)).collect();
        Array { dims, dtype: result, data }
    }

    /// `x` where this holds, else `y`, with promotion and broadcasting.
    #[must_use]
    pub fn select(&self, x: &Array, y: &Array) -> Array {
        let dtype = promote(x.dtype, y.dtype);
        let dims = super::movement::broadcast(&x.dims, &y.dims);
        let dims = super::movement::broadcast(&self.dims, &dims);
        let condition = self.cast(DType::Bool).expand(&dims);
        let (x, y) = (x.cast(dtype).expand(&dims), y.cast(dtype).expand(&dims));
        let pick = |i: usize| match condition.data[i] {
            Val::Int(0) => y.data[i],
            Val::Int(_) => x.data[i],
            _ if x.data[i] == y.data[i] => x.data[i],
            _ => Val::Unknown,
        };
        Array { data: (0..x.numel()).map(pick).collect(), dims, dtype }
    }

    /// The elements converted.
    #[must_use]
    pub fn cast(&self, dtype: DType) -> Array {
        self.map(dtype, |x| cast(x, self.dtype, dtype))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erf_agrees_with_tables() {
        // Abramowitz and Stegun, table 7.1; OEIS A099286 for 3.5.
        for (x, y) in [
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (2.0, 0.995_322_265_018_952_7),
            (3.5, 0.999_999_256_901_627_7),
        ] {
            assert!((erf(x) - y).abs() < 4e-16, "erf({x}) = {:e}", erf(x));
            assert_eq!(erf(-x), -erf(x));
        }
    }

    #[test]
    fn logarithms_of_sums_are_those_of_the_exact_difference() {
        // By 200 bits.
        let (x, y) = (-3.599_348_289_366_706_7e-10, -18.042_021_262_933_147);
        let z = real(BinaryOp::LogAddExp, x, y);
        assert!((z / 1.424_332_189_425_320_5e-8 - 1.0).abs() < 4e-16, "{z:e}");
        assert_eq!(real(BinaryOp::LogAddExp, f64::INFINITY, 1.0), f64::INFINITY);
        assert_eq!(real(BinaryOp::LogAddExp, f64::NEG_INFINITY, 1.0), 1.0);
        assert!(real(BinaryOp::LogAddExp, f64::NAN, 1.0).is_nan());
    }

    #[test]
    fn intervals_contain_every_point_s_result() {
        let mut rng = crate::Rng::new(7);
        for _ in 0..20_000 {
            let (a, b) = (rng.between(-3.0, 3.0), rng.between(0.0, 0.3));
            let x = round(DType::F32, rng.between(a, a + b));
            let wide = Val::interval(DType::F32, a.min(x), (a + b).max(x));
            for &op in UnaryOp::ALL.iter().filter(|op| op.domain().contains(DType::F32)) {
                let Some(y) = real_point(op, x) else { continue };
                let range = unary(op, DType::F32, wide);
                assert!(range.allows(Val::point(y), false), "{op} of {x} in {wide}: {y} {range}");
            }
        }
        fn real_point(op: UnaryOp, x: f64) -> Option<f64> {
            Some(round(DType::F32, real_unary(op, x))).filter(|y| !y.is_nan())
        }
    }

    #[test]
    fn comparisons_of_overlapping_intervals_are_unknown() {
        let (x, y) = (Val::Real(1.0, 1.1), Val::Real(1.05, 1.2));
        assert_eq!(binary(BinaryOp::Lt, DType::F32, x, y), Val::Unknown);
        assert_eq!(binary(BinaryOp::Lt, DType::F32, x, Val::point(2.0)), Val::Int(1));
        assert_eq!(binary(BinaryOp::Eq, DType::F32, x, x), Val::Unknown);
    }
}
