//! `x * y + z` rounded once, in integers.

/// In `f64`.
pub(super) fn double(x: f64, y: f64, z: f64) -> f64 {
    rounded_once(x, y, z, 53, -1074)
}

/// In `f32`.
pub(super) fn single(x: f32, y: f32, z: f32) -> f32 {
    rounded_once(x.into(), y.into(), z.into(), 24, -149) as f32
}

/// `x * y + z`, rounded once to so many significant bits, none of them worth less than `2^least`.
fn rounded_once(x: f64, y: f64, z: f64, bits: i32, least: i32) -> f64 {
    if !x.is_finite() || !y.is_finite() || x == 0.0 || y == 0.0 {
        return x * y + z;
    }
    if !z.is_finite() {
        return z;
    }
    if z == 0.0 {
        // A product too small to be told from zero has its sign nevertheless.
        return x * y;
    }
    let ((x, power_x), (y, power_y), (addend, power)) = (parts(x), parts(y), parts(z));
    let (product, power_product) = top(i128::from(x) * i128::from(y), power_x + power_y);
    let (addend, power_addend) = top(i128::from(addend), power);
    let ((large, power), (small, power_small)) = if power_product < power_addend {
        ((addend, power_addend), (product, power_product))
    } else {
        ((product, power_product), (addend, power_addend))
    };
    // Of both terms the last 19 bits are zero. So nothing is lost if they may cancel, and bits that are
    // lost otherwise are far behind the last one of the result: that there are some is all that counts.
    let sum = large + sticky(small, (power - power_small) as u32);
    if sum == 0 {
        return 0.0;
    }
    let (magnitude, sign) = (sum.unsigned_abs(), if sum < 0 { -1.0 } else { 1.0 });
    let highest = power + magnitude.ilog2() as i32;
    if highest > 1023 {
        return sign * f64::INFINITY;
    }
    let last = (highest - (bits - 1)).max(least);
    let kept = match u32::try_from(last - power) {
        Ok(0) => magnitude,
        Ok(dropped @ 1..=127) => {
            let (kept, rest) = (magnitude >> dropped, magnitude & ((1 << dropped) - 1));
            let half = 1 << (dropped - 1);
            kept + u128::from(rest > half || rest == half && kept & 1 == 1)
        }
        Ok(_) => 0,
        Err(_) => magnitude << (power - last),
    };
    // Exact, or infinite: at most 53 bits, or the next power of two.
    sign * kept as f64 * power_of_two(last)
}

/// A finite number as a whole number of at most 53 bits and a power of two.
pub(super) fn parts(x: f64) -> (i64, i32) {
    let bits = x.to_bits();
    let (exponent, mantissa) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    let whole = (mantissa | u64::from(exponent > 0) << 52) as i64;
    (if x < 0.0 { -whole } else { whole }, exponent.max(1) - 1075)
}

/// The same number, not zero, with 125 bits.
fn top(x: i128, power: i32) -> (i128, i32) {
    let by = x.unsigned_abs().leading_zeros() as i32 - 3;
    (x << by, power - by)
}

/// `x / 2^by` without its fraction; its last bit is set if there was one.
fn sticky(x: i128, by: u32) -> i128 {
    let magnitude = x.unsigned_abs();
    let (whole, lost) = match by {
        0..=127 => (magnitude >> by, magnitude & ((1 << by) - 1) != 0),
        _ => (0, true),
    };
    let whole = (whole | u128::from(lost)) as i128;
    if x < 0 { -whole } else { whole }
}

/// `2^power` for powers from -1074 to 1023.
pub(super) fn power_of_two(power: i32) -> f64 {
    f64::from_bits(if power < -1022 { 1 << (power + 1074) } else { ((power + 1023) as u64) << 52 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums that two roundings get wrong, and what they are.
    #[test]
    fn sums_are_rounded_once() {
        // A little less than half a unit of the last place, which in 53 and in 64 bits is half of it.
        for f in [single, crate::cmath::mul_add_f32] {
            let (e, odd) = (f32::EPSILON, 1_048_576.0 + 0.125);
            assert_eq!(f(0.25 * (1.0 + e), 0.25 * (1.0 - e), odd), odd);
            assert_eq!(f(0.25, 0.25, odd), odd + 0.125);
        }
        for f in [double, crate::cmath::mul_add_f64] {
            let e = f64::EPSILON;
            assert_eq!(f(1.0 + e, 1.0 - e, -1.0), -e * e);
            assert_eq!(f(1.0 + e, 1.0 + e, -(1.0 + 2.0 * e)), e * e);
            // Half a unit of the last place, and a very little more.
            assert_eq!(f(5e-324, 5e-324, 1.0), 1.0);
            assert_eq!(f(2f64.powi(-53), 1.0 + e, 1.0), 1.0 + e);
            assert_eq!(f(2f64.powi(-53), 1.0, 1.0), 1.0);
            assert_eq!(f(f64::MAX, 2.0, -f64::MAX), f64::MAX);
            assert_eq!(f(f64::MAX, -2.0, f64::INFINITY), f64::INFINITY);
            assert!(f(-5e-324, 5e-324, 0.0).is_sign_negative());
            assert!(f(1.0, 1.0, -1.0).is_sign_positive());
        }
    }

    /// On other systems, whose own function rounds once.
    #[cfg(not(all(windows, target_env = "gnu")))]
    mod compared {
        use super::*;

        /// SplitMix64.
        fn next(state: &mut u64) -> u64 {
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ z >> 31
        }

        fn same(got: f64, expected: f64) -> bool {
            got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan()
        }

        const SPECIAL: [f64; 14] = [
            0.0,
            1.0,
            1.5,
            3.0,
            f64::MAX,
            f64::MIN_POSITIVE,
            5e-324,
            f64::INFINITY,
            f64::NAN,
            f64::EPSILON,
            1.0 + f64::EPSILON,
            f32::MAX as f64,
            1e-45f32 as f64,
            f32::MIN_POSITIVE as f64,
        ];

        #[test]
        fn integers_and_the_standard_library_agree() {
            let mut state = 1;
            let signed = SPECIAL.iter().flat_map(|&x| [x, -x]);
            let special: Vec<f64> = signed.collect();
            let mut cases = Vec::new();
            for &x in &special {
                for &y in &special {
                    cases.extend(special.iter().map(|&z| [x, y, z]));
                }
            }
            for n in 0..300_000 {
                let [x, y, z] = [(); 3].map(|()| next(&mut state));
                let near = |x: u64| f64::from_bits(x & !(0x7ff << 52) | (1003 + x % 40) << 52);
                cases.push(match n % 4 {
                    0 => [x, y, z].map(f64::from_bits),
                    1 => [x, y, z].map(near),
                    // Almost all of it cancels.
                    2 => [near(x), near(y), -near(x) * near(y)],
                    // Results around the least numbers.
                    _ => [near(x) * 1e-160, near(y) * 1e-160, f64::from_bits(z >> (12 + z % 50))],
                });
            }
            for [x, y, z] in cases {
                let (got, expected) = (double(x, y, z), x.mul_add(y, z));
                assert!(same(got, expected), "{x:e} * {y:e} + {z:e}: {got:e}, not {expected:e}");
                let scale: f64 = if z != 0.0 && z.abs() < 1e-280 { 1e270 } else { 1.0 };
                let [x, y, z] = [x * scale.sqrt(), y * scale.sqrt(), z * scale].map(|x| x as f32);
                let (got, expected) = (single(x, y, z), x.mul_add(y, z));
                assert!(
                    same(got.into(), expected.into()),
                    "{x:e} * {y:e} + {z:e}: {got:e}, not {expected:e}"
                );
            }
        }
    }
}
