//! Error bounds, derived from the op and dtype tables: with the table of methods ([`crate::bounds`]) the only source of
//! tolerances.
//!
//! The rule of the op table: a result lies within `ulp` units in the last place of the exact
//! result; 0 means correctly rounded, hence one possible value. Results of several roundings are
//! bounded by intervals: an interval that holds every value a conforming device may have computed
//! goes through each op ([`crate::oracle`]), and rounding is monotone, so the ends of the result
//! are the rounded ends. Sums may be formed in any order; for `n` terms the classical bound
//! `(n - 1) u sum |x|` holds for all of them (Higham 2002, section 4.2, `u` = half an ulp of 1).

use zyx_core::DType;

/// A binary floating-point format.
#[derive(Clone, Copy, Debug)]
struct Format {
    /// Bits of the significand, the hidden one included.
    precision: i32,
    /// Smallest and largest exponent of a normal number.
    exponents: (i32, i32),
}

/// The format of a float dtype.
///
/// Written out here and not taken from the library: the tests judge the library's rounding.
fn format(dtype: DType) -> Format {
    let (precision, top) = match dtype {
        DType::F16 => (11, 15),
        DType::BF16 => (8, 127),
        DType::F32 => (24, 127),
        DType::F64 => (53, 1023),
        _ => unreachable!("invariant: {dtype} is a float"),
    };
    Format { precision, exponents: (1 - top, top) }
}

/// Two to the power `k`, exactly, for the exponents `f64` has.
pub fn exp2i(k: i32) -> f64 {
    if k >= -1022 {
        f64::from_bits(((k + 1023) as u64) << 52)
    } else {
        f64::from_bits(1 << (k + 1074))
    }
}

/// The exponent of the last place of the numbers around `x`.
fn last_place(dtype: DType, x: f64) -> i32 {
    let f = format(dtype);
    let exponent = match x.abs() {
        x if x.is_infinite() => f.exponents.1,
        // Numbers too small for `f64` to normalise are subnormal in every format.
        x if x < f64::MIN_POSITIVE => f.exponents.0,
        x => ((x.to_bits() >> 52) as i32) - 1023,
    };
    exponent.clamp(f.exponents.0, f.exponents.1) - (f.precision - 1)
}

/// One unit in the last place of the float `dtype` at `x`.
pub fn ulp(dtype: DType, x: f64) -> f64 {
    exp2i(last_place(dtype, x))
}

/// Half an ulp of 1: the relative error of one rounding.
pub fn unit_roundoff(dtype: DType) -> f64 {
    exp2i(-format(dtype).precision)
}

/// The largest finite number.
pub fn largest(dtype: DType) -> f64 {
    let f = format(dtype);
    (2.0 - exp2i(1 - f.precision)) * exp2i(f.exponents.1)
}

/// The smallest positive normal number.
pub fn smallest_normal(dtype: DType) -> f64 {
    exp2i(format(dtype).exponents.0)
}

/// `x` rounded to nearest even, overflowing to infinity.
pub fn round(dtype: DType, x: f64) -> f64 {
    if dtype == DType::F64 || x == 0.0 || !x.is_finite() {
        return x;
    }
    let place = last_place(dtype, x);
    // Scaling by a power of two is exact here: narrower formats are far from the edges of `f64`.
    let rounded = (x * exp2i(-place)).round_ties_even() * exp2i(place);
    let rounded = if rounded == 0.0 { 0f64.copysign(x) } else { rounded };
    if rounded.abs() > largest(dtype) { f64::INFINITY.copysign(x) } else { rounded }
}

/// The interval of values that a device may give for the exact results `low ..= high`, for an op
/// whose row grants `ulps`.
pub fn widen(dtype: DType, ulps: u32, low: f64, high: f64) -> (f64, f64) {
    let mut ulps = ulps as f64;
    if ulps > 0.0 && dtype == DType::F64 {
        // The oracle computes in `f64` too and may be off by a place itself.
        ulps += 1.0;
    }
    let margin = |x: f64| if ulps == 0.0 || x.is_infinite() { 0.0 } else { ulps * ulp(dtype, x) };
    (round(dtype, low - margin(low)), round(dtype, high + margin(high)))
}

/// Bound of the rounding errors of a sum of `n` terms with the given sum of magnitudes, in any
/// order, in the float `dtype`. One term more than the textbook's `n - 1` pays for the terms
/// having been rounded products.
pub fn sum_error(dtype: DType, n: usize, magnitudes: f64) -> f64 {
    n as f64 * unit_roundoff(dtype) * magnitudes * (1.0 + n as f64 * unit_roundoff(dtype))
}

/// Relative bound of the rounding errors of a product of `n` factors, in any order.
pub fn product_error(dtype: DType, n: usize) -> f64 {
    n as f64 * unit_roundoff(dtype) * (1.0 + n as f64 * unit_roundoff(dtype))
}

/// Bound for a formula of several ops: `ulps` is the sum of what its ops grant (one for a
/// correctly rounded one), `scale` the largest magnitude of an intermediate that the result is
/// sensitive to with factor one.
pub fn formula_error(dtype: DType, ulps: f64, scale: f64) -> f64 {
    2.0 * ulps * unit_roundoff(dtype) * scale + ulps * exp2i(last_place(dtype, 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use zyx_core::Scalar;

    #[test]
    fn formats_have_known_limits() {
        assert_eq!(largest(DType::F16), 65504.0);
        assert_eq!(largest(DType::F32), f32::MAX as f64);
        assert_eq!(largest(DType::F64), f64::MAX);
        assert_eq!(ulp(DType::F16, 0.0), 5.960_464_477_539_063e-8);
        assert_eq!(ulp(DType::F32, 0.0), f32::from_bits(1) as f64);
        assert_eq!(ulp(DType::F64, 0.0), f64::from_bits(1));
        assert_eq!(ulp(DType::BF16, 1.0), 0.007_812_5);
    }

    #[test]
    fn rounding_agrees_with_the_hardware_and_the_library() {
        let mut rng = crate::Rng::new(1);
        for _ in 0..200_000 {
            let x = f64::from_bits(rng.bits());
            let y = f32::from_bits(rng.bits() as u32) as f64 * (1.0 + rng.unit());
            for x in [x, y] {
                if x.is_nan() {
                    continue;
                }
                assert_eq!(round(DType::F32, x), x as f32 as f64, "{x:e}");
                for dtype in [DType::F16, DType::BF16] {
                    let library = Scalar::from_f64(dtype, x).to_f64();
                    assert_eq!(round(dtype, x), library, "{x:e} as {dtype}");
                }
            }
        }
    }

    #[test]
    fn ties_go_to_even_and_overflow_to_infinity() {
        assert_eq!(round(DType::F16, 65519.9), 65504.0);
        assert_eq!(round(DType::F16, 65520.0), f64::INFINITY);
        assert_eq!(round(DType::F16, 2049.0), 2048.0);
        assert_eq!(round(DType::F16, 2051.0), 2052.0);
        assert!(round(DType::F16, -1e-30).is_sign_negative());
    }
}
