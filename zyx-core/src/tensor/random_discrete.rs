//! Random whole numbers: geometric, Poisson, binomial, and classes drawn by their weights.
//!
//! What has a table compares 32 random bits with thresholds computed on the host, in integers
//! alone, so it gives the same numbers on every device.

use super::distributions::{Draw, drawn};
use super::{Rng, Tensor};
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::origin::composed;
use crate::runtime::Device;
use crate::shape::Shape;

/// Longest table of a discrete distribution.
const TABLE: f64 = 1e6;

impl Draw<'_> {
    /// The first position of a cumulative distribution that is above a uniform number.
    #[track_caller]
    fn by_table(&mut self, cumulative: &[f64]) -> Result<Tensor> {
        let bits = self.bits()?;
        // The last is certain, so it needs no threshold.
        let n = cumulative.len().saturating_sub(1);
        if n == 0 {
            return Ok(bits.like(0.0).cast(DType::I64));
        }
        let size = n.next_power_of_two();
        let threshold = |x: &f64| (x * 2f64.powi(32)).round().clamp(0.0, u32::MAX as f64) as u32;
        let mut table: Vec<u32> = cumulative[..n].iter().map(threshold).collect();
        table.resize(size, u32::MAX);
        let table = Tensor::from_slice(&table, [size], self.device)?;
        let flat = bits.flatten();
        // How many thresholds are not above: one bit of the answer after the other.
        let mut at = flat.like(0.0).cast(DType::I64);
        let mut step = size;
        while step > 0 {
            let next = at.add(step as i64)?;
            let inside = next.le(size as i64)?;
            let bound = table.gather_unchecked(0, &next.minimum(size as i64)?.sub(1)?);
            let passed = inside.logical_and(bound.le(&flat)?)?;
            at = passed.where_(&next, &at)?;
            step /= 2;
        }
        at.minimum(n as i64)?.reshape(self.shape.clone())
    }
}

/// The running sum of weights, divided by their whole.
fn cumulative(weights: &[f64]) -> Vec<f64> {
    let total: f64 = weights.iter().sum();
    let mut sum = 0.0;
    let step = |w: &f64| {
        sum += w;
        sum / total
    };
    weights.iter().map(step).collect()
}

impl Tensor {
    /// Geometric: the number of the first success, from 1, with probability `p` each time.
    ///
    /// ```
    /// # use zyx::{DType, Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::geometric(0.5, [8], DType::F32, &mut Rng::seed(1), &device)?;
    /// assert!(x.to_vec::<f32>()?.iter().all(|x| x.is_finite()));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the parameters are not a probability above 0, `dtype` is not a float, or the shape is too large.
    #[track_caller]
    pub fn geometric(
        p: f64,
        shape: impl Into<Shape>,
        dtype: DType,
        rng: &mut Rng,
        device: &Device,
    ) -> Result<Tensor> {
        const OP: &str = "geometric";
        let holds = p > 0.0 && p <= 1.0;
        drawn(OP, holds, "a probability above 0", (shape, dtype), rng, device, |d| {
            // The number of the first success: 1 + floor(log u / log(1 - p)).
            if p == 1.0 {
                return Ok(d.unit()?.ones_like());
            }
            d.exponential()?.mul(-1.0 / (-p).ln_1p())?.floor().add(1.0)
        })
    }

    /// Poisson with this mean: whole numbers, from a table within twelve deviations of the mean.
    ///
    /// ```
    /// # use zyx::{DType, Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::poisson(4.0, [8], DType::F32, &mut Rng::seed(1), &device)?;
    /// assert!(x.to_vec::<f32>()?.iter().all(|x| x.is_finite()));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the parameters are not between 0 and 1e9, `dtype` is not a float, or the shape is too large.
    #[track_caller]
    pub fn poisson(
        rate: f64,
        shape: impl Into<Shape>,
        dtype: DType,
        rng: &mut Rng,
        device: &Device,
    ) -> Result<Tensor> {
        const OP: &str = "poisson";
        let holds = (0.0..=1e9).contains(&rate);
        drawn(OP, holds, "between 0 and 1e9", (shape, dtype), rng, device, |d| {
            let spread = (12.0 * rate.sqrt() + 40.0).ceil();
            let first = (rate - spread).max(0.0).floor();
            let n = (rate + spread - first) as usize;
            // From the mode outwards, so that nothing underflows.
            let mode = rate.floor();
            let mut weights = vec![0.0; n + 1];
            let at = (mode - first) as usize;
            weights[at] = 1.0;
            for i in at + 1..=n {
                weights[i] = weights[i - 1] * rate / (first + i as f64);
            }
            for i in (0..at).rev() {
                weights[i] = weights[i + 1] * (first + i as f64 + 1.0) / rate;
            }
            let k = d.by_table(&cumulative(&weights))?;
            k.cast(d.dtype.accumulator()).add(first)
        })
    }

    /// Binomial: the number of successes in some trials.
    ///
    /// ```
    /// # use zyx::{DType, Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::binomial(10, 0.5, [8], DType::F32, &mut Rng::seed(1), &device)?;
    /// assert!(x.to_vec::<f32>()?.iter().all(|x| x.is_finite()));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the parameters are not at most a million trials and a probability, `dtype` is not a float, or the shape is too large.
    #[track_caller]
    pub fn binomial(
        trials: u32,
        p: f64,
        shape: impl Into<Shape>,
        dtype: DType,
        rng: &mut Rng,
        device: &Device,
    ) -> Result<Tensor> {
        const OP: &str = "binomial";
        let _here = composed();
        let holds = (0.0..=1.0).contains(&p) && f64::from(trials) <= TABLE;
        drawn(
            OP,
            holds,
            "at most a million trials and a probability",
            (shape, dtype),
            rng,
            device,
            |d| {
                if p == 0.0 || p == 1.0 {
                    return d.unit()?.mul(0.0)?.add(f64::from(trials) * p);
                }
                let n = trials as usize;
                let mode = ((f64::from(trials) + 1.0) * p).floor().min(f64::from(trials)) as usize;
                let mut weights = vec![0.0; n + 1];
                weights[mode] = 1.0;
                let odds = p / (1.0 - p);
                for k in mode + 1..=n {
                    weights[k] = weights[k - 1] * odds * (n - k + 1) as f64 / k as f64;
                }
                for k in (0..mode).rev() {
                    weights[k] = weights[k + 1] * (k + 1) as f64 / (n - k) as f64 / odds;
                }
                Ok(d.by_table(&cumulative(&weights))?.cast(d.dtype.accumulator()))
            },
        )
    }

    /// Class numbers (`i64`) drawn with probabilities proportional to weights `[classes]` or
    /// `[n, classes]`: `[samples]` or `[n, samples]`, with replacement or without. Without, no more
    /// than there are classes, by an exponential race: the classes in the order in which clocks of
    /// these rates ring. Weights must not be negative, and their sum positive.
    ///
    /// ```
    /// # use zyx::{Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let weights = Tensor::new([0f32, 3.0, 0.0, 1.0], &device)?;
    /// let mut rng = Rng::seed(1);
    /// let drawn = weights.multinomial(100, true, &mut rng)?.to_vec::<i64>()?;
    /// assert!(drawn.iter().all(|&k| k == 1 || k == 3));
    /// let mut both = weights.multinomial(2, false, &mut rng)?.to_vec::<i64>()?;
    /// both.sort();
    /// assert_eq!(both, [1, 3]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the weights are not a vector or matrix of floats, there are none, or more samples are
    /// asked for than there are classes to draw without replacement.
    #[track_caller]
    pub fn multinomial(&self, samples: usize, replacement: bool, rng: &mut Rng) -> Result<Tensor> {
        const OP: &str = "multinomial";
        let _here = composed();
        let drawn = |rng: &mut Rng| {
            Tensor::check_operands(OP, &[self])?;
            let fail = |reason: &str| Tensor::shape_error(OP, &[self], reason.to_owned());
            if !self.dtype().is_float() {
                let reason = "weights must be floats".to_owned();
                return Err(Tensor::dtype_error(OP, &[self], reason));
            }
            let (n, classes) = match *self.shape().dims() {
                [classes] => (1, classes),
                [n, classes] => (n, classes),
                _ => return Err(fail("weights must be [classes] or [n, classes]")),
            };
            if classes == 0 || (!replacement && samples > classes) {
                return Err(fail("there are too few classes"));
            }
            let most = if replacement { samples } else { classes };
            if !Shape::from([n, most, classes]).is_possible() {
                return Err(fail("there are too many samples"));
            }
            let weights = self.wide().detach().reshape([n, classes])?;
            let drawn = match replacement {
                true => weights.with_replacement(samples, rng)?,
                false => weights.race(samples, rng)?,
            };
            let drawn = drawn.known_below(classes);
            if self.rank() == 1 { drawn.squeeze(0) } else { Ok(drawn) }
        };
        drawn(rng).named(OP)
    }

    /// As many running sums as a uniform share of the whole is not below.
    #[track_caller]
    fn with_replacement(&self, samples: usize, rng: &mut Rng) -> Result<Tensor> {
        let (n, classes) = (self.shape()[0], self.shape()[1]);
        let sums = self.cumsum(1)?;
        let u = Tensor::rand([n, samples], self.dtype(), rng, self.device())?;
        let u = u.mul(sums.slice(1, classes - 1..)?)?;
        let passed = sums.unsqueeze(1)?.le(u.unsqueeze(-1)?)?.cast(DType::I64).sum(-1)?;
        // Rounding can pass the last class that has a weight.
        let class = Tensor::iota(classes, DType::I64, self.device());
        let last = self.gt(0.0)?.where_(&class, class.like(0.0))?.max_keepdim(1)?;
        passed.minimum(&last)
    }

    /// The classes by rank of their exponential clocks; those without weight come last.
    #[track_caller]
    fn race(&self, samples: usize, rng: &mut Rng) -> Result<Tensor> {
        let (n, classes) = (self.shape()[0], self.shape()[1]);
        let u = Tensor::rand([n, classes], self.dtype(), rng, self.device())?;
        let clock = u.neg().log1p().neg().div(self)?;
        let never = clock.like(f64::INFINITY);
        let clock = self.gt(0.0)?.where_(&clock, &never)?;
        let class = Tensor::iota(classes, DType::I64, self.device());
        let (mine, other) = (clock.unsqueeze(-1)?, clock.unsqueeze(-2)?);
        let earlier = class.lt(class.unsqueeze(-1)?)?;
        let before = other.lt(&mine)?.logical_or(other.eq(&mine)?.logical_and(&earlier)?)?;
        let rank = before.cast(DType::I64).sum(-1)?;
        // The class whose rank is that of the sample.
        let place = Tensor::iota(samples, DType::I64, self.device()).unsqueeze(-1)?;
        let chosen = rank.unsqueeze(1)?.eq(&place)?;
        chosen.where_(&class, class.like(0.0))?.sum(-1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Runtime;

    #[test]
    fn classes_are_drawn_by_weight() {
        let device = Runtime::default().device("reference").unwrap();
        let mut rng = Rng::seed(6);
        let weights = Tensor::new([[1f32, 0.0, 3.0], [2.0, 2.0, 0.0]], &device).unwrap();
        let x = weights.multinomial(1000, true, &mut rng).unwrap().to_vec::<i64>().unwrap();
        let count =
            |row: usize, k: i64| x[row * 1000..][..1000].iter().filter(|&&c| c == k).count();
        assert!(count(0, 0).abs_diff(250) < 70 && count(0, 1) == 0 && count(1, 2) == 0);
        assert!(count(1, 0).abs_diff(500) < 80);
        let x = weights.multinomial(2, false, &mut rng).unwrap().to_vec::<i64>().unwrap();
        assert!(x[0] + x[1] == 2 && x[0] != 1 && x[2] + x[3] == 1);
        assert!(weights.multinomial(4, false, &mut rng).is_err());
        // First of two without replacement: as often as with.
        let many = weights.slice(0, ..1).unwrap().expand([500, 3]).unwrap();
        let x = many.multinomial(1, false, &mut rng).unwrap().to_vec::<i64>().unwrap();
        let heavy = x.iter().filter(|&&k| k == 2).count();
        assert!(heavy.abs_diff(375) < 50, "{heavy} of 500");
    }
}
