//! Derivatives in `f64`, in forms that neither overflow nor cancel, for [`super::law`].

use std::f64::consts::{FRAC_2_SQRT_PI, PI};
use zyx_tests::oracle::arithmetic;

/// The error function; beyond 7 it is 1 to all digits.
fn erf(x: f64) -> f64 {
    if x.abs() > 7.0 { x.signum() } else { arithmetic::erf(x) }
}

/// `x`, or nothing below 0.
pub(crate) fn positive(x: f64) -> f64 {
    if x < 0.0 { f64::NAN } else { x }
}

/// -1, 0 or 1.
pub(crate) fn sign(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x.signum() }
}

/// `1 - x^2`, or nothing beyond 1.
pub(crate) fn beside_one(x: f64) -> f64 {
    positive((1.0 - x) * (1.0 + x))
}

/// `1 / (1 + x^2)`.
pub(crate) fn bell(x: f64) -> f64 {
    if x.abs() > 1e8 { 1.0 / x / x } else { 1.0 / (1.0 + x * x) }
}

/// `1 - tanh(x)^2`.
pub(crate) fn sech2(x: f64) -> f64 {
    let e = (-2.0 * x.abs()).exp();
    4.0 * e / ((1.0 + e) * (1.0 + e))
}

pub(crate) fn sigmoid(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    if x < 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) }
}

pub(crate) fn sigmoid_slope(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    e / ((1.0 + e) * (1.0 + e))
}

/// Where gates have long been open or shut.
fn held(x: f64) -> f64 {
    x.clamp(-2e3, 2e3)
}

pub(crate) fn silu_slope(x: f64) -> f64 {
    sigmoid(x) + held(x) * sigmoid_slope(x)
}

pub(crate) fn silu_curve(x: f64) -> f64 {
    sigmoid_slope(x) * (2.0 - held(x) * (x / 2.0).tanh())
}

pub(crate) fn selu_slope(x: f64) -> f64 {
    let (alpha, scale) = (1.673_263_242_354_377_2, 1.050_700_987_355_480_5);
    if x > 0.0 { scale } else { scale * alpha * x.exp() }
}

/// The argument of the hyperbolic tangent in gelu, and its first two derivatives.
fn cubic(x: f64) -> (f64, f64, f64) {
    let (a, x) = ((2.0 / PI).sqrt(), x.clamp(-50.0, 50.0));
    let b = a * 0.044_715;
    (x * (a + b * x * x), a + 3.0 * b * x * x, 6.0 * b * x)
}

pub(crate) fn gelu_slope(x: f64) -> f64 {
    let (u, du, _) = cubic(x);
    sigmoid(2.0 * u) + 0.5 * held(x) * sech2(u) * du
}

pub(crate) fn gelu_curve(x: f64) -> f64 {
    let (u, du, ddu) = cubic(x);
    sech2(u) * (du + 0.5 * held(x) * (ddu - 2.0 * u.tanh() * du * du))
}

/// The density of the standard normal distribution.
pub(crate) fn density(x: f64) -> f64 {
    (-0.5 * x * x).exp() / (2.0 * PI).sqrt()
}

pub(crate) fn gelu_exact_slope(x: f64) -> f64 {
    0.5 + 0.5 * erf(x / 2f64.sqrt()) + held(x) * density(x)
}

pub(crate) fn gelu_exact_curve(x: f64) -> f64 {
    density(x) * (2.0 - held(x) * held(x))
}

fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

pub(crate) fn mish_slope(x: f64) -> f64 {
    softplus(x).tanh() + held(x) * sech2(softplus(x)) * sigmoid(x)
}

pub(crate) fn mish_curve(x: f64) -> f64 {
    let (t, q, s) = (softplus(x).tanh(), sech2(softplus(x)), sigmoid(x));
    2.0 * q * s + held(x) * q * (sigmoid_slope(x) - 2.0 * t * s * s)
}

pub(crate) fn acosh_slope(x: f64) -> f64 {
    if x < 1.0 {
        return f64::NAN;
    }
    if x > 1e8 { 1.0 / x } else { 1.0 / ((x - 1.0) * (x + 1.0)).sqrt() }
}

/// `exp(x^2) erfc(x)`: from 1 on by its continued fraction, below 0 by symmetry.
pub(crate) fn erfcx(x: f64) -> f64 {
    if x < 0.0 {
        return 2.0 * (x * x).exp() - erfcx(-x);
    }
    if x < 1.0 {
        return (x * x).exp() * (1.0 - erf(x));
    }
    if x > 1e8 {
        return 0.5 * FRAC_2_SQRT_PI / x;
    }
    let tail = (1..=400).rev().fold(x, |tail, k| x + 0.5 * f64::from(k) / tail);
    0.5 * FRAC_2_SQRT_PI / tail
}

/// Its derivative.
pub(crate) fn erfcx_slope(x: f64) -> f64 {
    if x > 1e6 { -erfcx(x) / x } else { 2.0 * x * erfcx(x) - FRAC_2_SQRT_PI }
}

/// At the ends, and where Newton's method is well conditioned.
pub(crate) fn erfinv_slope(x: f64) -> f64 {
    if x.abs() == 1.0 {
        return f64::INFINITY;
    }
    if x.abs() > 0.9 {
        return f64::NAN;
    }
    let step = |y: f64, _| y - (erf(y) - x) / (FRAC_2_SQRT_PI * (-y * y).exp());
    let y = (0..60).fold(x, step);
    (y * y).exp() / FRAC_2_SQRT_PI
}

/// The logarithmic derivative of the gamma function from 0 on.
pub(crate) fn digamma(x: f64) -> f64 {
    let steps: f64 = (0..20).map(|k| 1.0 / (positive(x) + f64::from(k))).sum();
    let z = positive(x) + 20.0;
    let w = 1.0 / z / z;
    let series = w * (1.0 / 12.0 - w * (1.0 / 120.0 - w * (1.0 / 252.0 - w / 240.0)));
    if steps.is_infinite() { f64::NEG_INFINITY } else { z.ln() - 0.5 / z - series - steps }
}

/// Its derivative.
pub(crate) fn trigamma(x: f64) -> f64 {
    let steps: f64 = (0..20).map(|k| 1.0 / (positive(x) + f64::from(k)).powi(2)).sum();
    let z = positive(x) + 20.0;
    let w = 1.0 / z / z;
    let series = 1.0 + 0.5 / z + w * (1.0 / 6.0 - w * (1.0 / 30.0 - w * (1.0 / 42.0 - w / 30.0)));
    steps + series / z
}

/// The derivative of `sin(pi x) / (pi x)`; by its series near 0.
pub(crate) fn sinc_slope(x: f64) -> f64 {
    let u = PI * x;
    if u.abs() < 0.2 {
        let w = u * u;
        let terms = [39_916_800.0 / 10.0, 45_360.0, 840.0, 30.0, 3.0];
        let series = terms.iter().fold(0.0, |sum, c| -w * sum - 1.0 / c);
        return series * u * PI;
    }
    if x.abs() > 1e6 { f64::NAN } else { (u.cos() - u.sin() / u) / x }
}

pub(crate) fn hardswish_slope(x: f64) -> f64 {
    if x <= -3.0 { 0.0 } else { ((2.0 * x + 3.0) / 6.0).min(if x < 3.0 { 2.0 } else { 1.0 }) }
}

/// A power; of a negative number by whole exponents only.
pub(crate) fn power(x: f64, y: f64) -> f64 {
    if x < 0.0 && y.fract() != 0.0 { f64::NAN } else { x.powf(y) }
}
