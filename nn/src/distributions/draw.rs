//! Random numbers whose parameters are tensors.
//!
//! All are functions of uniform and normal numbers of one stream. Rejection is replaced by a fixed
//! number of attempts along a leading axis, of which the first accepted one counts.

use super::functions::{gamma_tail, stirling_error};
use std::f64::consts::{PI, TAU};
use zyx_core::{DType, Device, Result, Rng, Shape, Tensor};

/// Attempts of Marsaglia and Tsang's rejection: each fails with a probability below 0.05.
const GAMMA_ATTEMPTS: usize = 10;
/// Attempts of the other rejections: each fails with a probability below 0.4.
const ATTEMPTS: usize = 32;
/// Mean up to which counts are found by summing probabilities.
const INVERSION_MAX_MEAN: f64 = 10.0;
/// Terms of these sums: a count of that mean is larger with a probability below 1e-25.
const INVERSION_TERMS: usize = 64;

/// Shape, dtype and device of random numbers, and their stream.
pub(super) struct Draw<'a> {
    /// Sample shape, batch shape and the axes of vectors.
    pub(super) shape: Vec<usize>,
    pub(super) dtype: DType,
    pub(super) device: &'a Device,
    pub(super) rng: &'a mut Rng,
}

impl Draw<'_> {
    /// Smallest uniform number that is used.
    fn tiny(&self) -> f64 {
        if self.dtype == DType::F64 { 2f64.powi(-54) } else { 2f64.powi(-25) }
    }

    /// As many more independent draws along a new first axis.
    pub(super) fn times(&mut self, n: usize) -> Draw<'_> {
        let shape = [&[n], &self.shape[..]].concat();
        Draw { shape, dtype: self.dtype, device: self.device, rng: self.rng }
    }

    /// Uniform on the open interval from 0 to 1.
    pub(super) fn unit(&mut self) -> Result<Tensor> {
        let u = Tensor::rand(Shape::from(&self.shape[..]), self.dtype, self.rng, self.device)?;
        u.maximum(self.tiny())
    }

    pub(super) fn normal(&mut self) -> Result<Tensor> {
        Tensor::randn(Shape::from(&self.shape[..]), self.dtype, self.rng, self.device)
    }

    /// Exponential with mean 1, above 0.
    pub(super) fn exponential(&mut self) -> Result<Tensor> {
        Ok(-self.unit()?.log())
    }

    /// Gumbel with mode 0 and scale 1.
    pub(super) fn gumbel(&mut self) -> Result<Tensor> {
        Ok(-self.exponential()?.maximum(self.tiny())?.log())
    }

    /// Logarithms of gamma numbers of these shapes, which underflow later than the numbers do.
    ///
    /// A number of shape `a` is one of shape `a + 1` times `u^(1 / a)`.
    pub(super) fn log_gamma(&mut self, a: &Tensor) -> Result<Tensor> {
        let a = &a.expand(&self.shape[..])?;
        let larger = a + 1.0;
        Ok(self.large_gamma(&larger)?.log() + self.unit()?.log() / a)
    }

    /// Gamma numbers of shapes of at least 1 (Marsaglia and Tsang 2000). The gradient is that of the
    /// inverse distribution function at a fixed probability.
    fn large_gamma(&mut self, a: &Tensor) -> Result<Tensor> {
        let fixed = a.detach();
        let d = &(&fixed - 1.0 / 3.0);
        let mut many = self.times(GAMMA_ATTEMPTS);
        let x = &many.normal()?;
        let v = &(x * (d * 9.0).rsqrt() + 1.0).pow(3.0)?;
        let safe = v.maximum(1e-6)?;
        let bound = x.square() * 0.5 + d * (1.0 - &safe + safe.log());
        let accepted = v.gt(0.0)?.logical_and((-many.exponential()?).lt(bound)?)?;
        let gamma = d * first_accepted(&accepted, &safe, &d.full_like(1f64))?;
        gamma
            .detach()
            .with_gradient(&[a], |inputs, x, dy| Ok(vec![Some(dy * gamma_slope(&inputs[0], x)?)]))
    }

    /// Poisson counts of these means.
    pub(super) fn poisson(&mut self, rate: &Tensor) -> Result<Tensor> {
        let rate = &rate.detach().expand(&self.shape[..])?;
        let few = &rate.minimum(INVERSION_MAX_MEAN)?;
        let small = self.by_inversion(&-few, |k| Ok(few.unsqueeze(-1)? / k))?;
        let many = &rate.maximum(INVERSION_MAX_MEAN)?;
        // Hörmann (1993), "The transformed rejection method for generating Poisson random variables".
        let b = many.sqrt() * 2.53 + 0.931;
        let hat = Hat {
            a: &b * 0.02483 - 0.059,
            height: 1.1239 + 1.1328 / (&b - 3.4),
            center: many + 0.43,
            b,
        };
        let large = self.by_rejection(&hat, &many.floor(), |k| {
            let next = &(k + 1.0);
            let excess = &(many - next);
            let log = k * (excess / next).log1p() - excess - (next * TAU).log() * 0.5;
            Ok(log - stirling_error(k)?)
        })?;
        rate.le(INVERSION_MAX_MEAN)?.where_(small, large)
    }

    /// Numbers of successes in `n` trials of log odds `logits`.
    pub(super) fn binomial(&mut self, n: &Tensor, logits: &Tensor) -> Result<Tensor> {
        let trials = &n.detach().expand(&self.shape[..])?;
        let logits = logits.detach().expand(&self.shape[..])?;
        // Counts of the rarer outcome, of probability p.
        let rare = &-logits.abs();
        let (p, odds) = (&rare.sigmoid(), &rare.exp());
        let is_small = (trials * p).le(INVERSION_MAX_MEAN)?;
        // The logarithm of (1 - p)^n.
        let none = is_small.where_(-(trials * odds.log1p()), 0.0)?;
        let small = self.by_inversion(&none, |k| {
            Ok((trials.unsqueeze(-1)? + 1.0 - k).maximum(0.0)? / k * odds.unsqueeze(-1)?)
        })?;
        // Hörmann (1993), "The generation of binomial random variates".
        let safe_p = &p.maximum(1e-12)?;
        // More trials where the mean is small, so that the hat exists.
        let n = &trials.maximum((1.0 / safe_p) * INVERSION_MAX_MEAN)?.ceil();
        let spread = &(n * safe_p * (1.0 - safe_p)).sqrt();
        let b = spread * 2.53 + 1.15;
        let hat = Hat {
            a: &b * 0.0248 - 0.0873 + safe_p * 0.01,
            height: (5.1 / &b + 2.83) * spread,
            center: n * safe_p + 0.5,
            b,
        };
        let mode = &((n + 1.0) * safe_p).floor();
        let odds = &(safe_p / (1.0 - safe_p));
        let tails = &(stirling_error(mode)? + stirling_error(&(n - mode))?);
        let large = self.by_rejection(&hat, mode, |k| {
            let inside = k.le(n)?;
            let k = k.minimum(n)?;
            let (rest, mode_rest) = (&(n - &k + 1.0), &(n - mode + 1.0));
            let log = (mode + 0.5) * ((mode + 1.0) / (odds * mode_rest)).log()
                + (n + 1.0) * (mode_rest / rest).log()
                + (&k + 0.5) * (odds * rest / (&k + 1.0)).log();
            let log = log + tails - stirling_error(&k)? - stirling_error(&(n - &k))?;
            inside.where_(log, f64::NEG_INFINITY)
        })?;
        let found = is_small.where_(small, large)?;
        logits.gt(0.0)?.where_(trials - &found, &found)
    }

    /// Counts by their distribution function. `none` is the logarithm of the probability of 0,
    /// `ratio(k)` the probability of `k` divided by that of `k - 1`, along a last axis.
    fn by_inversion(
        &mut self,
        none: &Tensor,
        ratio: impl Fn(&Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let k = Tensor::iota(INVERSION_TERMS, self.dtype, self.device) + 1.0;
        let log = ratio(&k)?.log().cumsum(-1)? + none.unsqueeze(-1)?;
        let zero = &none.exp();
        let cumulative = log.exp().cumsum(-1)? + zero.unsqueeze(-1)?;
        let u = &self.unit()?;
        let above = u.unsqueeze(-1)?.ge(cumulative)?.cast(self.dtype).sum(-1)?;
        Ok(above + u.ge(zero)?.cast(self.dtype))
    }

    /// Counts under a hat, with `log_density` up to the constant that the hat is made for.
    fn by_rejection(
        &mut self,
        hat: &Hat,
        fallback: &Tensor,
        log_density: impl Fn(&Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let mut many = self.times(ATTEMPTS);
        let u = &(many.unit()? - 0.5);
        let from_edge = &(0.5 - u.abs());
        let k = ((&hat.a * 2.0 / from_edge + &hat.b) * u + &hat.center).floor();
        let safe = &k.maximum(0.0)?;
        let log = (&hat.height / (&hat.a / from_edge.square() + &hat.b)).log();
        let under = (many.unit()?.log() + log).le(log_density(safe)?)?;
        let accepted = under.logical_and(k.ge(0.0)?)?.logical_and(k.eq(safe)?)?;
        first_accepted(&accepted, safe, fallback)
    }

    /// Angles around 0 of this concentration (Best and Fisher 1979), within minus pi and pi.
    pub(super) fn von_mises(&mut self, concentration: &Tensor) -> Result<Tensor> {
        let k = &concentration.detach().expand(&self.shape[..])?;
        let safe = &k.maximum(1e-2)?;
        let tau = (safe.square() * 4.0 + 1.0).sqrt() + 1.0;
        let rho = (&tau - (&tau * 2.0).sqrt()) / (safe * 2.0);
        let r = (rho.square() + 1.0) / (rho * 2.0);
        let r = &k.lt(1e-2)?.where_(1.0 / k.maximum(1e-6)? + k, r)?;
        let mut many = self.times(ATTEMPTS);
        let z = &(many.unit()? * PI).cos();
        let f = &((r * z + 1.0) / (r + z));
        let c = &(k * (r - f));
        let accepted = ((c / many.unit()?).log() + 1.0 - c).ge(0.0)?;
        let cosine = first_accepted(&accepted, f, &k.zeros_like())?;
        let angle = cosine.clamp(-1.0, 1.0)?.acos();
        self.unit()?.lt(0.5)?.where_(-&angle, &angle)
    }
}

/// The shape under which attempts are uniform: a table mountain (Hörmann 1993).
struct Hat {
    a: Tensor,
    b: Tensor,
    height: Tensor,
    center: Tensor,
}

/// Along the first axis the first of `values` that is accepted, or else the fallback.
fn first_accepted(accepted: &Tensor, values: &Tensor, fallback: &Tensor) -> Result<Tensor> {
    let n = accepted.shape()[0];
    let mut dims = vec![1; accepted.rank()];
    dims[0] = n;
    let attempt = Tensor::iota(n, DType::I32, accepted.device()).reshape(&dims[..])?;
    let attempt = &accepted.where_(attempt, n as i32)?;
    let first = attempt.min_keepdim(0)?;
    let values = values.expand(accepted.shape().dims())?;
    let is_first = attempt.eq(&first)?.logical_and(accepted)?;
    let found = is_first.where_(&values, values.zeros_like())?.sum(0)?;
    first.squeeze(0)?.lt(n as i32)?.where_(found, fallback)
}

/// How a gamma number of shape `a` changes with the shape at a fixed probability: minus the
/// derivative of the distribution function by `a`, divided by the density.
fn gamma_slope(a: &Tensor, x: &Tensor) -> Result<Tensor> {
    let center = x.log() - a.digamma();
    let (side, integral) = gamma_tail(a, x, |log_ratio| Ok(log_ratio + center.unsqueeze(-1)?))?;
    Ok(side * x * integral)
}
