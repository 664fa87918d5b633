//! Random numbers of many distributions, made of the counter-based blocks of [`super::random`].
//!
//! Whole numbers are drawn in [`super::random_discrete`]. Those here are functions of uniform or normal
//! numbers and differ between devices as far as those functions do: by ulps. Rejection is
//! replaced by a fixed number of attempts of which the first accepted counts; what remains is
//! stated where it is done.

use super::{Rng, Tensor};
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::ops::BinaryOp;
use crate::origin::composed;
use crate::runtime::Device;
use crate::shape::Shape;

/// Shape, dtype and device of random numbers, and their generator.
pub(super) struct Draw<'a> {
    pub(super) shape: Shape,
    pub(super) dtype: DType,
    pub(super) rng: &'a mut Rng,
    pub(super) device: &'a Device,
}

impl Draw<'_> {
    /// Uniform on `[0, 1)`, in the dtype or, for halves, `f32`.
    #[track_caller]
    pub(super) fn unit(&mut self) -> Result<Tensor> {
        Tensor::rand(self.shape.clone(), self.dtype.accumulator(), self.rng, self.device)
    }

    #[track_caller]
    fn normal(&mut self) -> Result<Tensor> {
        Tensor::randn(self.shape.clone(), self.dtype.accumulator(), self.rng, self.device)
    }

    /// Exponential with mean 1: finite, and 0 once in `2^24`.
    #[track_caller]
    pub(super) fn exponential(&mut self) -> Result<Tensor> {
        Ok(self.unit()?.neg().log1p().neg())
    }

    /// 32 random bits each.
    #[track_caller]
    pub(super) fn bits(&mut self) -> Result<Tensor> {
        let (low, high) = (i64::from(u32::MIN), i64::from(u32::MAX) + 1);
        Tensor::randint(low, high, self.shape.clone(), DType::U32, self.rng, self.device)
    }

    /// Gamma with this shape and mean equal to it, by Marsaglia and Tsang (2000): each attempt is
    /// accepted with probability at least 0.95, so that of twelve one is but for `2^-51`.
    #[track_caller]
    fn gamma(&mut self, shape: f64) -> Result<Tensor> {
        // Below 1, a gamma of one more times a power of a uniform number.
        let boosted = if shape < 1.0 { shape + 1.0 } else { shape };
        let d = boosted - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        let mut found: Option<(Tensor, Tensor)> = None;
        for _ in 0..ATTEMPTS {
            let x = self.normal()?;
            let base = x.mul(c)?.add(1.0)?;
            let v = base.mul(&base)?.mul(&base)?;
            let positive = v.gt(0.0)?;
            let safe = positive.where_(&v, v.like(1.0))?;
            let bound = safe.log().sub(&safe)?.add(1.0)?.mul(d)?.add(x.square().mul(0.5)?)?;
            // log u < x^2 / 2 + d - d v + d log v, log u being minus an exponential number.
            let accepted = positive.logical_and(self.exponential()?.neg().lt(&bound)?)?;
            found = Some(match found {
                None => (accepted, safe),
                Some((done, value)) => (done.logical_or(&accepted)?, done.where_(&value, &safe)?),
            });
        }
        let (_, v) = found.expect("invariant: there was an attempt");
        let gamma = v.mul(d)?;
        if shape >= 1.0 {
            return Ok(gamma);
        }
        let power = self.exponential()?.mul(-1.0 / shape)?.exp();
        gamma.mul(&power)
    }
}

/// Attempts of a rejection that always ends.
const ATTEMPTS: usize = 12;

/// Refuses what is not a floating dtype, a number within bounds, or a possible shape.
fn draw<'a>(
    op: &'static str,
    holds: bool,
    what: &str,
    (shape, dtype): (impl Into<Shape>, DType),
    rng: &'a mut Rng,
    device: &'a Device,
) -> Result<Draw<'a>> {
    if !holds {
        return Err(Tensor::argument_error(op, format!("the parameters must be {what}")));
    }
    if !dtype.is_float() {
        let reason = format!("{dtype} is no floating dtype");
        return Err(Tensor::argument_error(op, reason));
    }
    Ok(Draw { shape: shape.into(), dtype, rng, device })
}

/// The numbers that are made of a draw, in its dtype.
#[track_caller]
pub(super) fn drawn(
    op: &'static str,
    holds: bool,
    what: &str,
    (shape, dtype): (impl Into<Shape>, DType),
    rng: &mut Rng,
    device: &Device,
    numbers: impl FnOnce(&mut Draw<'_>) -> Result<Tensor>,
) -> Result<Tensor> {
    let _here = composed();
    let made = draw(op, holds, what, (shape, dtype), rng, device);
    Ok(made.and_then(|mut d| numbers(&mut d)).named(op)?.cast(dtype))
}

impl Tensor {
    /// Normal with the given mean and standard deviation; see [`Tensor::randn`].
    ///
    /// ```
    /// # use zyx::{DType, Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::normal(0.0, 1.0, [8], DType::F32, &mut Rng::seed(1), &device)?;
    /// assert!(x.to_vec::<f32>()?.iter().all(|x| x.is_finite()));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the parameters are not a finite mean and a deviation that is not negative, `dtype` is not a float, or the shape is too large.
    #[track_caller]
    pub fn normal(
        mean: f64,
        std: f64,
        shape: impl Into<Shape>,
        dtype: DType,
        rng: &mut Rng,
        device: &Device,
    ) -> Result<Tensor> {
        const OP: &str = "normal";
        let holds = mean.is_finite() && std >= 0.0 && std.is_finite();
        drawn(
            OP,
            holds,
            "a finite mean and a deviation that is not negative",
            (shape, dtype),
            rng,
            device,
            |d| d.normal()?.mul(std)?.add(mean),
        )
    }

    /// Exponential with mean `1 / rate`.
    ///
    /// ```
    /// # use zyx::{DType, Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::exponential(2.0, [8], DType::F32, &mut Rng::seed(1), &device)?;
    /// assert!(x.to_vec::<f32>()?.iter().all(|x| x.is_finite()));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the parameters are not positive, `dtype` is not a float, or the shape is too large.
    #[track_caller]
    pub fn exponential(
        rate: f64,
        shape: impl Into<Shape>,
        dtype: DType,
        rng: &mut Rng,
        device: &Device,
    ) -> Result<Tensor> {
        const OP: &str = "exponential";
        let holds = rate > 0.0;
        drawn(OP, holds, "positive", (shape, dtype), rng, device, |d| {
            d.exponential()?.mul(1.0 / rate)
        })
    }

    /// Laplace: two exponential tails of the given scale around the mean.
    ///
    /// ```
    /// # use zyx::{DType, Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::laplace(0.0, 1.0, [8], DType::F32, &mut Rng::seed(1), &device)?;
    /// assert!(x.to_vec::<f32>()?.iter().all(|x| x.is_finite()));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the parameters are not a finite mean and a positive scale, `dtype` is not a float, or the shape is too large.
    #[track_caller]
    pub fn laplace(
        mean: f64,
        scale: f64,
        shape: impl Into<Shape>,
        dtype: DType,
        rng: &mut Rng,
        device: &Device,
    ) -> Result<Tensor> {
        const OP: &str = "laplace";
        let holds = mean.is_finite() && scale > 0.0;
        drawn(OP, holds, "a finite mean and a positive scale", (shape, dtype), rng, device, |d| {
            // An exponential number with a random sign.
            let sign = d.bits()?.bitwise_and(1u32)?.ne(0u32)?;
            let size = d.exponential()?.mul(scale)?;
            sign.where_(size.neg(), &size)?.add(mean)
        })
    }

    /// Cauchy: the tangent of a uniform angle, scaled and moved.
    ///
    /// ```
    /// # use zyx::{DType, Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::cauchy(0.0, 1.0, [8], DType::F32, &mut Rng::seed(1), &device)?;
    /// assert!(x.to_vec::<f32>()?.iter().all(|x| x.is_finite()));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the parameters are not a finite median and a positive scale, `dtype` is not a float, or the shape is too large.
    #[track_caller]
    pub fn cauchy(
        median: f64,
        scale: f64,
        shape: impl Into<Shape>,
        dtype: DType,
        rng: &mut Rng,
        device: &Device,
    ) -> Result<Tensor> {
        const OP: &str = "cauchy";
        let holds = median.is_finite() && scale > 0.0;
        drawn(OP, holds, "a finite median and a positive scale", (shape, dtype), rng, device, |d| {
            d.unit()?.sub(0.5)?.mul(std::f64::consts::PI)?.tan().mul(scale)?.add(median)
        })
    }

    /// Gumbel: the limit of maxima, `mode - scale log(-log u)`.
    ///
    /// ```
    /// # use zyx::{DType, Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::gumbel(0.0, 1.0, [8], DType::F32, &mut Rng::seed(1), &device)?;
    /// assert!(x.to_vec::<f32>()?.iter().all(|x| x.is_finite()));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the parameters are not a finite mode and a positive scale, `dtype` is not a float, or the shape is too large.
    #[track_caller]
    pub fn gumbel(
        mode: f64,
        scale: f64,
        shape: impl Into<Shape>,
        dtype: DType,
        rng: &mut Rng,
        device: &Device,
    ) -> Result<Tensor> {
        const OP: &str = "gumbel";
        let holds = mode.is_finite() && scale > 0.0;
        drawn(OP, holds, "a finite mode and a positive scale", (shape, dtype), rng, device, |d| {
            let e = d.exponential()?;
            let least = e.like(f64::from(f32::MIN_POSITIVE));
            e.combine(BinaryOp::Max, &least).log().neg().mul(scale)?.add(mode)
        })
    }

    /// Samples of the classes along an axis whose logits these are, made differentiable: softmax of
    /// logits and [`Tensor::gumbel`] noise, divided by the temperature `tau` (Jang et al. 2017). If
    /// `hard`, 1 at the largest and 0 elsewhere, with the gradient of the soft ones.
    ///
    /// ```
    /// # use zyx::{Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[0f32, 1.0, 2.0]], &device)?;
    /// let y = x.gumbel_softmax(1.0, true, -1, &mut Rng::seed(1))?;
    /// assert_eq!(y.sum(..)?.item::<f32>()?, 1.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis is out of range or `tau` is not positive.
    #[track_caller]
    pub fn gumbel_softmax(
        &self,
        tau: f64,
        hard: bool,
        axis: isize,
        rng: &mut Rng,
    ) -> Result<Tensor> {
        const OP: &str = "gumbel_softmax";
        let _here = composed();
        if tau.is_nan() || tau <= 0.0 {
            return Err(Tensor::argument_error(
                OP,
                format!("the temperature {tau} is not positive"),
            ));
        }
        let mut sample = || {
            let x = self.floating();
            let place = x.axis(OP, axis)?;
            let noise = Tensor::gumbel(0.0, 1.0, x.shape(), x.dtype(), rng, x.device())?;
            let soft = x.add(noise)?.div(tau)?.softmax(axis)?;
            if !hard {
                return Ok(soft);
            }
            let classes = x.shape()[place];
            let one = soft.argmax(axis)?.one_hot(classes)?.movedim([-1], [place as isize])?;
            one.cast(x.dtype()).with_gradient(&[&soft], |_, _, dy| Ok(vec![Some(dy.clone())]))
        };
        sample().named(OP)
    }

    /// The exponential of normal numbers with the given mean and standard deviation.
    ///
    /// ```
    /// # use zyx::{DType, Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::lognormal(0.0, 1.0, [8], DType::F32, &mut Rng::seed(1), &device)?;
    /// assert!(x.to_vec::<f32>()?.iter().all(|x| x.is_finite()));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the parameters are not a finite mean and a deviation that is not negative, `dtype` is not a float, or the shape is too large.
    #[track_caller]
    pub fn lognormal(
        mean: f64,
        std: f64,
        shape: impl Into<Shape>,
        dtype: DType,
        rng: &mut Rng,
        device: &Device,
    ) -> Result<Tensor> {
        const OP: &str = "lognormal";
        let _here = composed();
        let holds = mean.is_finite() && std >= 0.0 && std.is_finite();
        drawn(
            OP,
            holds,
            "a finite mean and a deviation that is not negative",
            (shape, dtype),
            rng,
            device,
            |d| Ok(d.normal()?.mul(std)?.add(mean)?.exp()),
        )
    }

    /// Gamma with mean `shape_of / rate`, by Marsaglia and Tsang (2000).
    ///
    /// ```
    /// # use zyx::{DType, Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::gamma(2.0, 1.0, [8], DType::F32, &mut Rng::seed(1), &device)?;
    /// assert!(x.to_vec::<f32>()?.iter().all(|x| x.is_finite()));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the parameters are not positive, `dtype` is not a float, or the shape is too large.
    #[track_caller]
    pub fn gamma(
        shape_of: f64,
        rate: f64,
        shape: impl Into<Shape>,
        dtype: DType,
        rng: &mut Rng,
        device: &Device,
    ) -> Result<Tensor> {
        const OP: &str = "gamma";
        let holds = shape_of > 0.0 && shape_of.is_finite() && rate > 0.0;
        drawn(OP, holds, "positive", (shape, dtype), rng, device, |d| {
            d.gamma(shape_of)?.mul(1.0 / rate)
        })
    }

    /// Beta with mean `a / (a + b)`: the share of one gamma number in the sum of two.
    ///
    /// ```
    /// # use zyx::{DType, Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::beta(2.0, 3.0, [8], DType::F32, &mut Rng::seed(1), &device)?;
    /// assert!(x.to_vec::<f32>()?.iter().all(|x| x.is_finite()));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the parameters are not positive, `dtype` is not a float, or the shape is too large.
    #[track_caller]
    pub fn beta(
        a: f64,
        b: f64,
        shape: impl Into<Shape>,
        dtype: DType,
        rng: &mut Rng,
        device: &Device,
    ) -> Result<Tensor> {
        const OP: &str = "beta";
        let holds = a > 0.0 && a.is_finite() && b > 0.0 && b.is_finite();
        drawn(OP, holds, "positive", (shape, dtype), rng, device, |d| {
            let (x, y) = (d.gamma(a)?, d.gamma(b)?);
            x.div(x.add(&y)?)
        })
    }

    /// Normal within `low ..= high`, for intervals with a fair share of the distribution: of twelve
    /// attempts the first inside counts, and a uniform number where none is.
    ///
    /// ```
    /// # use zyx::{DType, Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::truncated_normal(0.0, 1.0, -2.0, 2.0, [8], DType::F32, &mut Rng::seed(1), &device)?;
    /// assert!(x.to_vec::<f32>()?.iter().all(|x| x.is_finite()));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the parameters are not a finite mean, a positive deviation and an interval, `dtype` is not a float, or the shape is too large.
    #[track_caller]
    pub fn truncated_normal(
        mean: f64,
        std: f64,
        low: f64,
        high: f64,
        shape: impl Into<Shape>,
        dtype: DType,
        rng: &mut Rng,
        device: &Device,
    ) -> Result<Tensor> {
        const OP: &str = "truncated_normal";
        let holds = mean.is_finite() && std > 0.0 && low < high;
        drawn(
            OP,
            holds,
            "a finite mean, a positive deviation and an interval",
            (shape, dtype),
            rng,
            device,
            |d| {
                // Rejection from a normal distribution leaves what is outside after so many attempts to
                // a uniform number of the interval: never within a deviation of the mean, often far away.
                let inside = |x: &Tensor| x.ge(low)?.logical_and(x.le(high)?);
                let mut x = d.normal()?.mul(std)?.add(mean)?;
                for _ in 1..ATTEMPTS {
                    let next = d.normal()?.mul(std)?.add(mean)?;
                    x = inside(&x)?.where_(&x, &next)?;
                }
                let (low, high) = (low.max(mean - 6.0 * std), high.min(mean + 6.0 * std));
                let rest = d.unit()?.mul(high - low)?.add(low)?;
                inside(&x)?.where_(&x, &rest)
            },
        )
    }

    /// Shares of gamma numbers: points of a simplex, the last axis having one for each of
    /// `concentration`.
    ///
    /// ```
    /// # use zyx::{DType, Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::dirichlet(&[1.0, 2.0], [3], DType::F32, &mut Rng::seed(1), &device)?;
    /// assert_eq!(x.shape().dims(), [3, 2]);
    /// assert_eq!(format!("{:.4}", x.sum(1)?), "[1. 1. 1.]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a concentration is not positive or there are none or more than 4096, `dtype` is not a
    /// float, or the shape is too large.
    #[track_caller]
    pub fn dirichlet(
        concentration: &[f64],
        shape: impl Into<Shape>,
        dtype: DType,
        rng: &mut Rng,
        device: &Device,
    ) -> Result<Tensor> {
        const OP: &str = "dirichlet";
        let _here = composed();
        let n = concentration.len();
        let holds =
            (1..=4096).contains(&n) && concentration.iter().all(|a| *a > 0.0 && a.is_finite());
        let mut shares = |shape: Shape| -> Result<Tensor> {
            let mut d = draw(OP, holds, "positive, one to 4096", (shape, dtype), rng, device)?;
            let parts: Result<Vec<Tensor>> = concentration.iter().map(|&a| d.gamma(a)).collect();
            let whole = Tensor::stack(&parts?.iter().collect::<Vec<_>>(), -1)?;
            whole.div(whole.sum_keepdim(-1)?)
        };
        Ok(shares(shape.into()).named(OP)?.cast(dtype))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Runtime;

    type Made = Result<Tensor>;

    /// Means and variances of 4000 numbers are within five deviations of what they should be.
    #[test]
    fn moments_are_those_of_the_distributions() {
        let device = Runtime::default().device("reference").unwrap();
        let n = 4000usize;
        let mut rng = Rng::seed(5);
        let check = |name: &str, made: Made, mean: f64, var: f64| {
            let x = made.unwrap().cast(DType::F64).to_vec::<f64>().unwrap();
            assert_eq!(x.len(), n);
            let m = x.iter().sum::<f64>() / n as f64;
            let v = x.iter().map(|x| (x - m) * (x - m)).sum::<f64>() / n as f64;
            let fourth = x.iter().map(|x| (x - m).powi(4)).sum::<f64>() / n as f64;
            let spread = 5.0 / (n as f64).sqrt();
            assert!((m - mean).abs() <= spread * var.sqrt(), "{name}: mean {m}, not {mean}");
            let tolerance = spread * (fourth - v * v).max(0.0).sqrt() + 1e-9;
            assert!((v - var).abs() <= tolerance, "{name}: variance {v}, not {var}");
        };
        let (d, r, f) = (&device, &mut rng, DType::F64);
        let pi = std::f64::consts::PI;
        check("normal", Tensor::normal(2.0, 3.0, [n], f, r, d), 2.0, 9.0);
        check("exponential", Tensor::exponential(4.0, [n], f, r, d), 0.25, 0.0625);
        check("laplace", Tensor::laplace(1.0, 2.0, [n], f, r, d), 1.0, 8.0);
        let var = pi * pi / 6.0 * 4.0;
        check("gumbel", Tensor::gumbel(1.0, 2.0, [n], f, r, d), 1.0 + 2.0 * 0.577_215_664_9, var);
        let e = 1f64.exp().sqrt();
        let var = (0.25f64.exp() - 1.0) * 0.25f64.exp();
        check("lognormal", Tensor::lognormal(0.0, 0.5, [n], f, r, d), e.sqrt().sqrt(), var);
        for a in [0.3, 1.0, 4.5] {
            check("gamma", Tensor::gamma(a, 2.0, [n], f, r, d), a / 2.0, a / 4.0);
        }
        check("beta", Tensor::beta(2.0, 3.0, [n], f, r, d), 0.4, 0.04);
        check("geometric", Tensor::geometric(0.25, [n], f, r, d), 4.0, 12.0);
        for rate in [0.0, 0.7, 30.0, 5000.0] {
            check("poisson", Tensor::poisson(rate, [n], f, r, d), rate, rate);
        }
        check("binomial", Tensor::binomial(20, 0.3, [n], f, r, d), 6.0, 4.2);
        let x = Tensor::cauchy(3.0, 2.0, [n], f, r, d).unwrap().to_vec::<f64>().unwrap();
        let inside = x.iter().filter(|x| (1.0..5.0).contains(*x)).count();
        assert!(inside.abs_diff(n / 2) < 200, "{inside} of a Cauchy within the quartiles");
        let x = Tensor::truncated_normal(0.0, 1.0, -0.5, 2.0, [n], f, r, d).unwrap();
        let x = x.to_vec::<f64>().unwrap();
        assert!(x.iter().all(|x| (-0.5..=2.0).contains(x)));
        let shares = Tensor::dirichlet(&[1.0, 3.0], [n], f, r, d).unwrap();
        let first = shares.select_index(-1, 0).unwrap();
        check("dirichlet", Ok(first), 0.25, 0.25 * 0.75 / 5.0);
    }
}
