//! Kullback and Leibler's divergence, by a table of pairs of families.

use super::functions::{log_bessel, times_log};
use super::law::{check_devices, check_room};
use super::laws::{
    EULER, continuous_log_norm, continuous_mean, half_logdet, log_beta, multivariate_square,
};
use super::{Distribution, refuse};
use crate::init::located;
use std::f64::consts::{FRAC_1_PI, FRAC_PI_2, PI, SQRT_2, TAU};
use zyx_core::{Result, Tensor};

type Formula = fn(&[Tensor], &[Tensor]) -> Result<Tensor>;

macro_rules! divergences {
    ($($p:ident($($a:ident),*) $q:ident($($b:ident),*) = $body:expr;)*) => {
        /// The families of both, and the formula of their parameters.
        static PAIRS: &[(&str, &str, Formula)] = &[$((
            stringify!($p),
            stringify!($q),
            |p: &[Tensor], q: &[Tensor]| {
                let ([$($a),*], [$($b),*]) = (p, q) else {
                    return Err(refuse("kl_divergence", "other parameters".to_owned()));
                };
                Ok($body)
            },
        )),*];
    };
}

/// Kullback and Leibler's divergence of `p` from `q` in nats: the mean over `p` of
/// `log p(x) - log q(x)`, of the batch shape. Infinite where `p` has values that `q` has not.
///
/// ```
/// use zyx::distributions::{Exponential, kl_divergence};
/// use zyx::Tensor;
/// let device = zyx::device()?;
/// let rate = |x: f64| Exponential::new(&Tensor::new(x, &device)?);
/// let divergence = kl_divergence(&rate(1.0)?, &rate(2.0)?)?.item::<f64>()?;
/// assert!((divergence - (1.0 - 2f64.ln())).abs() < 1e-12);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When there is no formula for the two families, or the shapes do not broadcast.
#[track_caller]
pub fn kl_divergence(p: &dyn Distribution, q: &dyn Distribution) -> Result<Tensor> {
    const OP: &str = "kl_divergence";
    let formula = PAIRS
        .iter()
        .find(|(a, b, _)| *a == p.name() && *b == q.name())
        .map(|(.., formula)| formula);
    let (Some(formula), Some(a), Some(b)) = (formula, p.as_law(), q.as_law()) else {
        return Err(refuse(OP, format!("there is no formula for {} and {}", p.name(), q.name())));
    };
    let both = p.batch_shape().broadcast(q.batch_shape());
    let Some(both) = both.filter(|_| p.event_shape() == q.event_shape()) else {
        let shapes = [p.batch_shape(), p.event_shape(), q.batch_shape(), q.event_shape()];
        let [a, b, c, d] = shapes;
        let reason = format!("batch and event shapes {a} {b} and {c} {d} do not fit");
        return Err(refuse(OP, reason));
    };
    check_devices(OP, &[&a.parameters()[0], &b.parameters()[0]])?;
    let event = p.event_shape().dims();
    check_room(OP, &[both.dims(), event, event].concat())?;
    located(|| Ok(formula(a.parameters(), b.parameters())?.cast(a.dtype().promote(b.dtype()))))
}

divergences! {
    Normal(m, s) Normal(m2, s2) = normal(m, s, m2, s2)?;
    LogNormal(m, s) LogNormal(m2, s2) = normal(m, s, m2, s2)?;
    HalfNormal(s) HalfNormal(s2) = normal(&s.zeros_like(), s, &s2.zeros_like(), s2)?;
    Bernoulli(l) Bernoulli(l2) = bernoulli(l, l2)?;
    Binomial(n, l) Binomial(n2, l2) = {
        let same = n.eq(n2)?.where_(n * bernoulli(l, l2)?, f64::NAN)?;
        n.gt(n2)?.where_(f64::INFINITY, same)?
    };
    Geometric(l) Geometric(l2) = bernoulli(l, l2)? / l.sigmoid();
    Categorical(l) Categorical(l2) = classes(l, l2)?;
    OneHotCategorical(l) OneHotCategorical(l2) = classes(l, l2)?;
    Poisson(r) Poisson(r2) = times_log(r, &(r.log() - r2.log()))? - (r - r2);
    Gamma(c, r) Gamma(c2, r2) = gamma(c, r, c2, r2);
    InverseGamma(c, r) InverseGamma(c2, r2) = gamma(c, r, c2, r2);
    Gamma(c, r) Exponential(r2) = gamma(c, r, &r2.ones_like(), r2);
    Exponential(r) Gamma(c2, r2) = gamma(&r.ones_like(), r, c2, r2);
    Exponential(r) Exponential(r2) = (r / r2).log() + r2 / r - 1.0;
    Chi2(d) Chi2(d2) = gamma(&(d * 0.5), &half(d), &(d2 * 0.5), &half(d2));
    Chi2(d) Gamma(c2, r2) = gamma(&(d * 0.5), &half(d), c2, r2);
    Gamma(c, r) Chi2(d2) = gamma(c, r, &(d2 * 0.5), &half(d2));
    Beta(a, b) Beta(a2, b2) = {
        let (both, both2) = (&(a + b), &(a2 + b2));
        log_beta(a2, b2) - log_beta(a, b) + (a - a2) * a.digamma() + (b - b2) * b.digamma()
            + (both2 - both) * both.digamma()
    };
    Dirichlet(a) Dirichlet(a2) = {
        let (total, total2) = (&a.sum(-1)?, &a2.sum(-1)?);
        let slope = a.digamma() - total.digamma().unsqueeze(-1)?;
        total.lgamma() - total2.lgamma() + (a2.lgamma() - a.lgamma() + (a - a2) * slope).sum(-1)?
    };
    Laplace(m, s) Laplace(m2, s2) = {
        let distance = &(m - m2).abs();
        (s2 / s).log() + (s * (-(distance / s)).exp() + distance) / s2 - 1.0
    };
    Cauchy(m, s) Cauchy(m2, s2) = {
        let above = (s + s2).square() + (m - m2).square();
        (above / (s * s2 * 4.0)).log()
    };
    Uniform(a, b) Uniform(a2, b2) = {
        let inside = a2.le(a)?.logical_and(b.le(b2)?)?;
        inside.where_(((b2 - a2) / (b - a)).log(), f64::INFINITY)?
    };
    Gumbel(m, s) Gumbel(m2, s2) = {
        let (ratio, distance) = (&(s / s2), &((m - m2) / s2));
        distance - ratio.log() + ratio * EULER + ((ratio + 1.0).lgamma() - distance).exp()
            - (1.0 + EULER)
    };
    Pareto(s, a) Pareto(s2, a2) = {
        let ratio = &(a2 / a);
        let finite = a2 * (s / s2).log() - ratio.log() + ratio - 1.0;
        s.lt(s2)?.where_(f64::INFINITY, finite)?
    };
    Weibull(s, c) Weibull(s2, c2) = {
        // Bauckhage (2013), "Computing the Kullback-Leibler divergence between two Weibull distributions".
        let power = c2 * (s / s2).log() + (c2 / c + 1.0).lgamma();
        c.log() - c * s.log() - c2.log() + c2 * s2.log() + (c - c2) * (s.log() - EULER / c)
            + power.exp() - 1.0
    };
    VonMises(m, k) VonMises(m2, k2) = {
        let (log, log2) = (log_bessel(0, k)?, log_bessel(0, k2)?);
        let resultant = (log_bessel(1, k)? - &log).exp();
        log2 - log + resultant * (k - k2 * (m - m2).cos())
    };
    ContinuousBernoulli(l) ContinuousBernoulli(l2) = {
        let constant = |l: &Tensor| -> Result<Tensor> { Ok(continuous_log_norm(l)? - l.softplus()) };
        continuous_mean(l)? * (l - l2) + constant(l)? - constant(l2)?
    };
    MultivariateNormal(m, l) MultivariateNormal(m2, l2) = {
        let n = m.shape()[m.rank() - 1] as f64;
        let columns = multivariate_square(l2, l)?;
        let mean = multivariate_square(l2, &(m - m2).unsqueeze(-1)?)?;
        half_logdet(l2)? - half_logdet(l)? + (columns + mean - n) * 0.5
    };
    Normal(m, s) Laplace(m2, s2) = {
        let distance = &(m - m2);
        let ratio = &(distance / s);
        let outside = s * (2.0 * FRAC_1_PI).sqrt() * (ratio.square() * -0.5).exp();
        (outside + distance * (ratio * (1.0 / SQRT_2)).erf()) / s2 - (s / s2).log()
            - 0.5 * (1.0 + FRAC_PI_2.ln())
    };
    Laplace(m, s) Normal(m2, s2) = {
        let ratio = &(s / s2).square();
        ratio - (ratio * (2.0 * FRAC_1_PI)).log() * 0.5 + ((m - m2) / s2).square() * 0.5 - 1.0
    };
    Uniform(a, b) Normal(m2, s2) = {
        let spread = (b - a).square() * (1.0 / 12.0) + ((a + b) * 0.5 - m2).square();
        s2.log() + 0.5 * TAU.ln() - (b - a).log() + spread / s2.square() * 0.5
    };
    Exponential(r) Normal(m2, s2) = {
        let second = r.square().recip() - m2 / r + m2.square() * 0.5;
        r.log() + s2.log() + 0.5 * TAU.ln() - 1.0 + second / s2.square()
    };
    Gumbel(m, s) Normal(m2, s2) = {
        let ratio = &(s / s2);
        let mean = (m + s * EULER - m2) / s2;
        0.5 * TAU.ln() - ratio.log() + ratio.square() * (PI * PI / 12.0) + mean.square() * 0.5
            - (EULER + 1.0)
    };
}

fn half(x: &Tensor) -> Tensor {
    x.full_like(0.5)
}

fn normal(m: &Tensor, s: &Tensor, m2: &Tensor, s2: &Tensor) -> Result<Tensor> {
    let ratio = &(s / s2);
    Ok((ratio.square() + ((m - m2) / s2).square() - 1.0) * 0.5 - ratio.log())
}

fn bernoulli(l: &Tensor, l2: &Tensor) -> Result<Tensor> {
    let (one, zero) = ((-l2).softplus() - (-l).softplus(), l2.softplus() - l.softplus());
    Ok(times_log(&l.sigmoid(), &one)? + times_log(&(-l).sigmoid(), &zero)?)
}

fn classes(l: &Tensor, l2: &Tensor) -> Result<Tensor> {
    let difference = l.log_softmax(-1)? - l2.log_softmax(-1)?;
    times_log(&l.softmax(-1)?, &difference)?.sum(-1)
}

fn gamma(c: &Tensor, r: &Tensor, c2: &Tensor, r2: &Tensor) -> Tensor {
    c2 * (r / r2).log() + c2.lgamma() - c.lgamma() + (c - c2) * c.digamma() + (r2 - r) * (c / r)
}
