//! Sine, cosine and tangent of any number, from those of numbers below a quarter of pi.
//!
//! `x * 2 / pi` is computed modulo 4 in integers: of `2 / pi` only the 192 bits matter that neither give
//! multiples of 4 nor what is too small (Payne and Hanek, 1983). No number of 53 bits comes closer to a
//! multiple of pi / 2 than 2^-62 of it, so at least 75 bits of the rest are right.

use super::fma;
use std::f64::consts::FRAC_PI_4;

pub(super) fn sin(x: f64) -> f64 {
    let Some((quadrant, r)) = reduce(x) else { return x.sin() };
    match quadrant {
        0 => r.sin(),
        1 => r.cos(),
        2 => -r.sin(),
        _ => -r.cos(),
    }
}

pub(super) fn cos(x: f64) -> f64 {
    let Some((quadrant, r)) = reduce(x) else { return x.cos() };
    match quadrant {
        0 => r.cos(),
        1 => -r.sin(),
        2 => -r.cos(),
        _ => r.sin(),
    }
}

pub(super) fn tan(x: f64) -> f64 {
    let Some((quadrant, r)) = reduce(x) else { return x.tan() };
    let slope = r.0.tan();
    let tan = slope + r.1 * (1.0 + slope * slope);
    if quadrant % 2 == 0 { tan } else { -1.0 / tan }
}

/// A number of at most a quarter of pi, and what it lacks of a more precise one.
#[derive(Clone, Copy, Debug)]
struct Rest(f64, f64);

impl Rest {
    fn sin(self) -> f64 {
        self.0.sin() + self.1 * self.0.cos()
    }

    fn cos(self) -> f64 {
        self.0.cos() - self.1 * self.0.sin()
    }
}

/// The bits of `2 / pi` behind the point, after 64 zeros.
const TWO_OVER_PI: [u64; 20] = [
    0,
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
];

/// The multiple of pi / 2 that is nearest, modulo 4, and the rest. Nothing for what is small
/// enough as it is and what is not finite.
fn reduce(x: f64) -> Option<(u8, Rest)> {
    if !x.is_finite() || x.abs() <= FRAC_PI_4 {
        return None;
    }
    let (whole, power) = fma::parts(x.abs());
    // Bits of `2 / pi` from that on which, times the number, gives 2.
    let first = (power + 62) as usize;
    let (word, bit) = (first / 64, first % 64);
    let bits = |i: usize| match bit {
        0 => TWO_OVER_PI[word + i],
        _ => TWO_OVER_PI[word + i] << bit | TWO_OVER_PI[word + i + 1] >> (64 - bit),
    };
    // The product modulo 2^192: the quadrant, and 190 bits of how far it is behind it.
    let times = |i: usize| whole as u128 * u128::from(bits(i));
    let (low, middle) = (times(2), times(1));
    let (middle, carry) = middle.overflowing_add(low >> 64);
    // The upper half of the product with the first word would be multiples of 4.
    let high = (times(0) + (middle >> 64) + (u128::from(carry) << 64)) as u64;
    let (low, middle) = (low as u64, middle as u64);
    let quadrant = (high >> 62) + (high >> 61 & 1);
    // What remains, from -1/2 to 1/2, as 190 bits and a sign.
    let behind = [high << 2 | middle >> 62, middle << 2 | low >> 62, low << 2];
    let negative = behind[0] >> 63 == 1;
    let [a, b, c] = if negative { negated(behind) } else { behind };
    // Its leading bits, in two numbers.
    let zeros = a.leading_zeros();
    let upper = u128::from(a) << 64 | u128::from(b);
    let leading = if zeros == 0 { upper } else { upper << zeros | u128::from(c >> (64 - zeros)) };
    let scale = fma::power_of_two(-128 - zeros as i32);
    let head = leading >> 75 << 75;
    let (head, tail) = (head as f64 * scale, (leading - head) as f64 * scale);
    // Times pi / 2, of which the second number is what the first lacks.
    let quarter = (std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17);
    let product = head * quarter.0;
    let lost = fma::double(head, quarter.0, -product);
    let rest = lost + (head * quarter.1 + tail * quarter.0);
    let turned = if negative { -1.0 } else { 1.0 };
    if x < 0.0 {
        let quadrant = (4 - quadrant % 4) % 4;
        return Some((quadrant as u8, Rest(-turned * product, -turned * rest)));
    }
    Some((quadrant as u8 % 4, Rest(turned * product, turned * rest)))
}

/// Zero minus a number of 192 bits.
fn negated([a, b, c]: [u64; 3]) -> [u64; 3] {
    let (c, carry) = (!c).overflowing_add(1);
    let (b, carry) = (!b).overflowing_add(u64::from(carry));
    [(!a).wrapping_add(u64::from(carry)), b, c]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_have_the_sine_of_what_remains() {
        // By 1200 digits of pi.
        for (x, expected) in [
            (std::f64::consts::PI, (1.2246467991473532e-16, -1.0)),
            (100000.0, (0.03574879797201651, -0.9993608074382124)),
            (1.8446744073709552e+19, (0.023598509904439558, -0.9997215163885841)),
            (5.319372648326541e+255, (1.0, -4.687165924254628e-19)),
            (1e+22, (-0.8522008497671888, 0.523214785395139)),
            (1.7976931348623157e+308, (0.004961954789184062, -0.9999876894265599)),
            (5.0, (-0.9589242746631385, 0.28366218546322625)),
        ] {
            let pairs: [(f64, f64); 2] = [(sin(x), expected.0), (cos(x), expected.1)];
            for (got, expected) in pairs {
                let ulp = expected.abs().next_up() - expected.abs();
                assert!((got - expected).abs() <= ulp, "of {x:e}: {got:e}, not {expected:e}");
            }
            assert_eq!((sin(-x), cos(-x)), (-sin(x), cos(x)));
        }
    }

    /// On this system, whose own functions are good for large numbers.
    #[cfg(not(all(windows, target_env = "gnu")))]
    #[test]
    fn it_is_what_the_standard_library_says() {
        let mut x = 0.7f64;
        while x.is_finite() {
            for x in [x, -x] {
                let pairs = [(sin(x), x.sin()), (cos(x), x.cos()), (tan(x), x.tan())];
                for (got, expected) in pairs {
                    let ulp = expected.abs().next_up() - expected.abs();
                    let off = (got - expected).abs() / ulp;
                    assert!(off <= 3.0, "of {x:e}: {got:e}, not {expected:e}");
                }
            }
            x *= 1.003;
        }
    }
}
