//! Special functions of two arguments that densities and distribution functions need.

use super::law::{check_devices, check_room, float_dtype, wide};
use crate::init::located;
use std::f64::consts::{PI, TAU};
use zyx_core::{DType, Result, Tensor};

/// Points at which integrals are evaluated.
const NODES: usize = 32;

/// Nodes and weights of Gauss and Legendre's quadrature on the interval from 0 to 1.
fn gauss_legendre() -> [[f64; NODES]; 2] {
    let mut found = [[0.0; NODES]; 2];
    let [nodes, weights] = &mut found;
    for (i, (node, weight)) in nodes.iter_mut().zip(weights).enumerate() {
        // Newton's method on the Legendre polynomial, from an approximation of its root.
        let mut x = (PI * (i as f64 + 0.75) / (NODES as f64 + 0.5)).cos();
        let mut slope = 1.0;
        for _ in 0..20 {
            let (mut before, mut value) = (1.0, x);
            for k in 2..=NODES {
                let k = k as f64;
                (before, value) = (value, ((2.0 * k - 1.0) * x * value - (k - 1.0) * before) / k);
            }
            slope = NODES as f64 * (x * value - before) / (x * x - 1.0);
            x -= value / slope;
        }
        *node = 0.5 * (1.0 - x);
        *weight = 1.0 / ((1.0 - x * x) * slope * slope);
    }
    found
}

/// An integral over the smaller tail of a gamma distribution of shape `a`, at least 1.
///
/// The first result is the side: -1 for the tail below `x` where `x < a`, 1 for that above. The
/// second is the integral of `(t / x)^(a - 1) e^(x - t) weight(log(t / x)) dt / x` over the tail,
/// where `t = x e^s`. `weight` gets `s` along a last axis.
pub(super) fn gamma_tail(
    a: &Tensor,
    x: &Tensor,
    weight: impl Fn(&Tensor) -> Result<Tensor>,
) -> Result<(Tensor, Tensor)> {
    let [nodes, weights] = gauss_legendre();
    let (nodes, weights) = (numbers(&nodes, a)?, numbers(&weights, a)?);
    let (fixed, fixed_x) = (&a.detach(), &x.detach());
    let is_below = fixed_x.lt(fixed)?;
    let side = is_below.where_(a.full_like(-1f64), 1.0)?;
    // Up to where the integrand is below e^-36. With d = |x - a|, its exponent at distance v is at most
    // a (1 + v - e^v) and -d v - x v^2 / 2 above, and a (1 - v - e^-v) and -d v below.
    const EXPONENT: f64 = 36.0;
    let distance = &(fixed_x - fixed).abs();
    let wide = &((fixed * (0.5 / EXPONENT)).rsqrt() + EXPONENT / fixed);
    let curved = (distance.square() + fixed_x * (2.0 * EXPONENT)).sqrt();
    let above = wide.log1p().minimum(2.0 * EXPONENT / (distance + curved))?;
    let below = wide.minimum(EXPONENT / distance)?;
    let reach = is_below.where_(below, above)?;
    let s = &((&side * &reach).unsqueeze(-1)? * nodes);
    let (wide_a, wide_x) = (a.unsqueeze(-1)?, x.unsqueeze(-1)?);
    let density = (wide_a * s - wide_x * s.expm1()).exp();
    let sum = (density * weight(s)? * weights).sum(-1)?;
    Ok((side, sum * reach))
}

/// Numbers as a vector in the dtype and on the device of a tensor.
fn numbers(numbers: &[f64], like: &Tensor) -> Result<Tensor> {
    if like.dtype() == DType::F64 {
        return Tensor::from_slice(numbers, [numbers.len()], like.device());
    }
    let narrow: Vec<f32> = numbers.iter().map(|&x| x as f32).collect();
    Tensor::from_slice(&narrow, [numbers.len()], like.device())
}

/// `log(n!)` minus `(n + 1/2) log(n + 1) - (n + 1) + log(2 pi) / 2`: the error of Stirling's formula
/// at `n + 1`.
pub(super) fn stirling_error(n: &Tensor) -> Result<Tensor> {
    let next = &(n + 1.0);
    let inverse = &next.recip();
    let square = &inverse.square();
    let series = inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0)));
    let small = &next.minimum(16.0)?;
    let direct = small.lgamma() - (small - 0.5) * small.log() + small - 0.5 * TAU.ln();
    next.lt(16.0)?.where_(direct, series)
}

/// `x^a e^(-x) / gamma(a)` for `a` of at least 1.
fn gamma_density(a: &Tensor, x: &Tensor) -> Result<Tensor> {
    let log = a * (x / a).log() + (a - x) + (a / TAU).log() * 0.5;
    // gamma(a) is (a - 1)!
    Ok((log - stirling_error(&(a - 1.0))?).exp())
}

/// The regularised lower incomplete gamma function: the probability that a gamma number of shape
/// `a` and rate 1 is at most `x`.
///
/// Shapes broadcast, the result is a float (`f32` of integers). It is 0 at `x = 0`, 1 at infinity,
/// and NaN where `a` is not positive or `x` is negative. Both operands have gradients. The smaller
/// of this and [`igammac`] is exact to some 1e-5 of itself in `f32`, 1e-12 in `f64`.
///
/// ```
/// use zyx::distributions::igamma;
/// use zyx::Tensor;
/// let device = zyx::device()?;
/// let p = igamma(&Tensor::new(1f64, &device)?, &Tensor::new(2f64, &device)?)?.item::<f64>()?;
/// assert!((p - (1.0 - (-2f64).exp())).abs() < 1e-12);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When the shapes do not broadcast, or the tensors are on different devices.
#[track_caller]
pub fn igamma(a: &Tensor, x: &Tensor) -> Result<Tensor> {
    check_operands("igamma", a, x)?;
    located(|| Ok(incomplete_gamma(a, x)?.0))
}

/// The regularised upper incomplete gamma function: 1 minus [`igamma`], exact where that is near 1.
///
/// ```
/// use zyx::distributions::igammac;
/// use zyx::Tensor;
/// let device = zyx::device()?;
/// let q = igammac(&Tensor::new(1f64, &device)?, &Tensor::new(50f64, &device)?)?.item::<f64>()?;
/// assert!((q / (-50f64).exp() - 1.0).abs() < 1e-12);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// As [`igamma`].
#[track_caller]
pub fn igammac(a: &Tensor, x: &Tensor) -> Result<Tensor> {
    check_operands("igammac", a, x)?;
    located(|| Ok(incomplete_gamma(a, x)?.1))
}

#[track_caller]
fn check_operands(op: &'static str, a: &Tensor, x: &Tensor) -> Result<()> {
    check_devices(op, &[a, x])?;
    match a.shape().broadcast(x.shape()) {
        Some(both) => check_room(op, both.dims()),
        // Refused where they are broadcast.
        None => Ok(()),
    }
}

/// Lower and upper part.
fn incomplete_gamma(a: &Tensor, x: &Tensor) -> Result<(Tensor, Tensor)> {
    let dtype = float_dtype(&[a, x]);
    let both = Tensor::broadcast_tensors(&[&a.cast(wide(dtype)), &x.cast(wide(dtype))])?;
    let (a, x) = (&both[0], &both[1]);
    // Shapes below 1 by that of one more.
    let is_small = a.lt(1.0)?;
    let larger = &(a + is_small.cast(a.dtype()));
    let density = gamma_density(larger, x)?;
    let (side, integral) = gamma_tail(larger, x, |s| Ok(s.ones_like()))?;
    let tail = density.clone() * integral;
    let is_below = side.lt(0.0)?;
    // x^a e^(-x) / gamma(a + 1)
    let step = is_small.where_(density / x, 0.0)?;
    let lower = is_below.where_(&tail, 1.0 - &tail)? + &step;
    let upper = is_below.where_(1.0 - &tail, &tail)? - &step;
    let is_valid = a.gt(0.0)?.logical_and(x.ge(0.0)?)?;
    let at_ends = |part: Tensor, first: f64| -> Result<Tensor> {
        let part = x.eq(0.0)?.where_(first, x.eq(f64::INFINITY)?.where_(1.0 - first, part)?)?;
        Ok(is_valid.where_(part, f64::NAN)?.cast(dtype))
    };
    Ok((at_ends(lower, 0.0)?, at_ends(upper, 1.0)?))
}

/// The logarithm of the modified Bessel function of the first kind of this order, for positive
/// arguments: a power series up to 12, then the asymptotic series.
pub(super) fn log_bessel(order: u32, x: &Tensor) -> Result<Tensor> {
    const BORDER: f64 = 12.0;
    let order = f64::from(order);
    let near = &x.minimum(BORDER)?;
    let quarter = &(near.square() * 0.25);
    let mut series = near.ones_like();
    for k in (1..=32).map(f64::from).rev() {
        series = quarter * (1.0 / (k * (k + order))) * series + 1.0;
    }
    let far = &x.maximum(BORDER)?;
    let inverse = &(far.recip() * 0.125);
    let mut rest = far.ones_like();
    for k in (1..=12).map(f64::from).rev() {
        let factor = ((2.0 * k - 1.0).powi(2) - 4.0 * order * order) / k;
        rest = inverse * factor * rest + 1.0;
    }
    let small = if order == 0.0 { series.log() } else { series.log() + (near * 0.5).log() * order };
    x.le(BORDER)?.where_(small, far - (far * TAU).log() * 0.5 + rest.log())
}

/// `factor * log`, and 0 where the factor is 0 and the logarithm infinite.
pub(super) fn times_log(factor: &Tensor, log: &Tensor) -> Result<Tensor> {
    let is_zero = factor.eq(0.0)?;
    Ok(factor * is_zero.where_(0.0, log)?)
}
