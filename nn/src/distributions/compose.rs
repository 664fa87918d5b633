//! Distributions made of others.

use super::{Categorical, Constraint, Distribution, Normal, Transform, refuse};
use crate::init::located;
use zyx_core::{Result, Rng, Shape, Tensor};

/// The last axes of a batch as axes of one event: its numbers are independent.
///
/// ```
/// use zyx::distributions::{Distribution, Independent, Normal};
/// use zyx::Tensor;
/// let device = zyx::device()?;
/// let x = Tensor::new([[0f32, 1.0, 2.0], [3.0, 4.0, 5.0]], &device)?;
/// let law = Independent::new(Normal::new(&x, &x.ones_like())?, 1)?;
/// assert_eq!((law.batch_shape().dims(), law.event_shape().dims()), (&[2][..], &[3][..]));
/// assert_eq!(law.log_prob(&x)?.shape().dims(), [2]);
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Debug)]
pub struct Independent {
    base: Box<dyn Distribution>,
    n_axes: usize,
    batch: Shape,
    event: Shape,
}

impl Independent {
    /// The last `n_axes` of the batch shape.
    ///
    /// # Errors
    /// When the batch has fewer.
    #[track_caller]
    pub fn new(base: impl Distribution + 'static, n_axes: usize) -> Result<Independent> {
        let dims = base.batch_shape().dims();
        let Some(at) = dims.len().checked_sub(n_axes) else {
            let reason = format!("the batch shape {} has not {n_axes} axes", base.batch_shape());
            return Err(refuse("Independent", reason));
        };
        let batch = Shape::from(&dims[..at]);
        let event = Shape::from(&[&dims[at..], base.event_shape().dims()].concat()[..]);
        Ok(Independent { base: Box::new(base), n_axes, batch, event })
    }
}

#[track_caller]
fn sum_last(mut x: Tensor, n_axes: usize) -> Result<Tensor> {
    for _ in 0..n_axes {
        x = x.sum(-1)?;
    }
    Ok(x)
}

macro_rules! shapes {
    () => {
        fn batch_shape(&self) -> &Shape {
            &self.batch
        }

        fn event_shape(&self) -> &Shape {
            &self.event
        }
    };
}

impl Distribution for Independent {
    shapes!();

    fn name(&self) -> &'static str {
        "Independent"
    }

    fn support(&self) -> Constraint {
        self.base.support()
    }

    fn has_rsample(&self) -> bool {
        self.base.has_rsample()
    }

    #[track_caller]
    fn sample(&self, shape: &[usize], rng: &mut Rng) -> Result<Tensor> {
        located(|| self.base.sample(shape, rng))
    }

    #[track_caller]
    fn rsample(&self, shape: &[usize], rng: &mut Rng) -> Result<Tensor> {
        located(|| self.base.rsample(shape, rng))
    }

    #[track_caller]
    fn log_prob(&self, value: &Tensor) -> Result<Tensor> {
        located(|| sum_last(self.base.log_prob(value)?, self.n_axes))
    }

    #[track_caller]
    fn entropy(&self) -> Result<Tensor> {
        located(|| sum_last(self.base.entropy()?, self.n_axes))
    }

    #[track_caller]
    fn mean(&self) -> Result<Tensor> {
        located(|| self.base.mean())
    }

    #[track_caller]
    fn variance(&self) -> Result<Tensor> {
        located(|| self.base.variance())
    }
}

/// Values of a distribution, mapped by transforms one after the other.
///
/// ```
/// use zyx::distributions::{Distribution, LogNormal, Normal, Transform, TransformedDistribution};
/// use zyx::{Rng, Tensor};
/// let device = zyx::device()?;
/// let (loc, scale) = (Tensor::new(0f64, &device)?, Tensor::new(1f64, &device)?);
/// let law = TransformedDistribution::new(Normal::new(&loc, &scale)?, vec![Transform::Exp])?;
/// let x = Tensor::new([0.5f64, 2.0], &device)?;
/// let difference = law.log_prob(&x)? - LogNormal::new(&loc, &scale)?.log_prob(&x)?;
/// assert!(difference.abs().max(..)?.item::<f64>()? < 1e-12);
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Debug)]
pub struct TransformedDistribution {
    base: Box<dyn Distribution>,
    transforms: Vec<Transform>,
    batch: Shape,
    event: Shape,
}

impl TransformedDistribution {
    /// The first transform is applied first.
    ///
    /// # Errors
    /// When a transform does not fit the shape of its values.
    #[track_caller]
    pub fn new(
        base: impl Distribution + 'static,
        transforms: Vec<Transform>,
    ) -> Result<TransformedDistribution> {
        let base: Box<dyn Distribution> = Box::new(base);
        // Not computed: its shape is asked for.
        let mut value = located(|| base.sample(&[], &mut Rng::seed(0)))?;
        let mut rank = base.event_shape().rank();
        for transform in &transforms {
            rank = rank.max(transform.event_rank());
            value = transform.forward(&value)?;
        }
        let dims = value.shape().dims();
        let (batch, event) = dims.split_at(dims.len().saturating_sub(rank));
        let (batch, event) = (Shape::from(batch), Shape::from(event));
        Ok(TransformedDistribution { base, transforms, batch, event })
    }

    #[track_caller]
    fn forward(&self, x: Tensor) -> Result<Tensor> {
        self.transforms.iter().try_fold(x, |x, transform| transform.forward(&x))
    }

    /// 1 where the transforms together increase, -1 where they decrease.
    fn direction(&self, like: &Tensor) -> Result<Tensor> {
        let mut sign = like.ones_like();
        for transform in &self.transforms {
            sign = match transform {
                Transform::Exp | Transform::Sigmoid | Transform::Tanh => sign,
                Transform::Affine { scale, .. } => sign.mul(scale.sign())?,
                Transform::Power(exponent) => sign.mul(exponent.sign())?,
                other => {
                    let reason = format!("there is no cdf of it, as {other:?} is not monotone");
                    return Err(refuse(self.name(), reason));
                }
            };
        }
        Ok(sign)
    }
}

impl Distribution for TransformedDistribution {
    shapes!();

    fn name(&self) -> &'static str {
        "TransformedDistribution"
    }

    fn support(&self) -> Constraint {
        let support = self.base.support();
        self.transforms.iter().fold(support, |from, transform| transform.codomain(from))
    }

    fn has_rsample(&self) -> bool {
        self.base.has_rsample()
    }

    #[track_caller]
    fn sample(&self, shape: &[usize], rng: &mut Rng) -> Result<Tensor> {
        located(|| Ok(self.forward(self.base.sample(shape, rng)?)?.detach()))
    }

    #[track_caller]
    fn rsample(&self, shape: &[usize], rng: &mut Rng) -> Result<Tensor> {
        located(|| self.forward(self.base.rsample(shape, rng)?))
    }

    #[track_caller]
    fn log_prob(&self, value: &Tensor) -> Result<Tensor> {
        located(|| {
            let mut rank = self.event.rank();
            let (mut y, mut log) = (value.clone(), None::<Tensor>);
            for transform in self.transforms.iter().rev() {
                let x = transform.inverse(&y)?;
                let det = transform.log_abs_det_jacobian(&x, &y)?;
                let det = sum_last(det, rank - transform.event_rank())?;
                log = Some(match log {
                    None => det.neg(),
                    Some(log) => log.sub(&det)?,
                });
                y = x;
            }
            rank -= self.base.event_shape().rank();
            let base = sum_last(self.base.log_prob(&y)?, rank)?;
            log.map_or(Ok(base.clone()), |log| base.add(log))
        })
    }

    #[track_caller]
    fn cdf(&self, value: &Tensor) -> Result<Tensor> {
        located(|| {
            let inverted = self.transforms.iter().rev();
            let x = inverted.clone().try_fold(value.clone(), |y, part| part.inverse(&y))?;
            let p = self.base.cdf(&x)?;
            self.direction(&p)?.mul(p - 0.5)?.add(0.5)
        })
    }

    #[track_caller]
    fn icdf(&self, probability: &Tensor) -> Result<Tensor> {
        located(|| {
            let p = self.direction(probability)?.mul(probability - 0.5)?.add(0.5)?;
            self.forward(self.base.icdf(&p)?)
        })
    }
}

/// Points of the simplex of `n + 1`: `Transform::StickBreaking` of independent normal vectors of `n`
/// numbers. `loc` and `scale` broadcast, with vectors along the last axis.
///
/// ```
/// use zyx::distributions::{Distribution, logistic_normal};
/// use zyx::{Rng, Tensor};
/// let device = zyx::device()?;
/// let loc = Tensor::new([0f32, 1.0], &device)?;
/// let x = logistic_normal(&loc, &loc.ones_like())?.sample(&[], &mut Rng::seed(1))?;
/// assert!((x.sum(..)?.item::<f32>()? - 1.0).abs() < 1e-6);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// As of [`Normal::new`], and when there are no vectors.
#[track_caller]
pub fn logistic_normal(loc: &Tensor, scale: &Tensor) -> Result<TransformedDistribution> {
    TransformedDistribution::new(Normal::new(loc, scale)?, vec![Transform::StickBreaking])
}

/// A mixture: components along the last axis of a batch, of which a class number chooses one.
///
/// ```
/// use zyx::distributions::{Categorical, Distribution, MixtureSameFamily, Normal};
/// use zyx::Tensor;
/// let device = zyx::device()?;
/// let loc = Tensor::new([-1f32, 3.0], &device)?;
/// let weights = Categorical::new(&loc.zeros_like())?;
/// let law = MixtureSameFamily::new(weights, Normal::new(&loc, &loc.ones_like())?)?;
/// assert!((law.mean()?.item::<f32>()? - 1.0).abs() < 1e-6);
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Debug)]
pub struct MixtureSameFamily {
    mixture: Categorical,
    components: Box<dyn Distribution>,
    batch: Shape,
    event: Shape,
}

impl MixtureSameFamily {
    /// The batch shape of `mixture` and the number of its classes make that of `components`.
    ///
    /// # Errors
    /// When the shapes do not broadcast so.
    #[track_caller]
    pub fn new(
        mixture: Categorical,
        components: impl Distribution + 'static,
    ) -> Result<MixtureSameFamily> {
        let logits = mixture.logits().shape().clone();
        let all = components.batch_shape();
        let fits = !all.dims().is_empty() && logits.broadcast(all).is_some_and(|x| x.same(all));
        if !fits {
            let reason = format!("weights {logits} and components of batch shape {all} do not fit");
            return Err(refuse("MixtureSameFamily", reason));
        }
        let batch = Shape::from(&all.dims()[..all.rank() - 1]);
        let event = components.event_shape().clone();
        Ok(MixtureSameFamily { mixture, components: Box::new(components), batch, event })
    }

    /// The axis of components of what has the event shape behind.
    fn axis(&self) -> isize {
        -1 - self.event.rank() as isize
    }

    /// Logarithms of the weights.
    fn log_weights(&self) -> Result<Tensor> {
        self.mixture.logits().log_softmax(-1)
    }

    /// The weighted sum of values of components, which have the event shape behind.
    fn weighted(&self, values: &Tensor) -> Result<Tensor> {
        let mut weights = self.log_weights()?.exp();
        for _ in 0..self.event.rank() {
            weights = weights.unsqueeze(-1)?;
        }
        values.mul(weights)?.sum(self.axis())
    }
}

impl Distribution for MixtureSameFamily {
    shapes!();

    fn name(&self) -> &'static str {
        "MixtureSameFamily"
    }

    fn support(&self) -> Constraint {
        match self.components.support() {
            // Bounds of the components have an axis more.
            Constraint::CountTo(_) | Constraint::Counts(_) => Constraint::Count,
            Constraint::Above(_) | Constraint::AtLeast(_) | Constraint::Between(..) => {
                Constraint::Real
            }
            other => other,
        }
    }

    #[track_caller]
    fn sample(&self, shape: &[usize], rng: &mut Rng) -> Result<Tensor> {
        let class = self.mixture.sample(shape, rng)?;
        let values = located(|| self.components.sample(shape, rng))?;
        located(|| {
            let n = self.mixture.logits().shape().dims().last().copied().unwrap_or(0);
            let number = Tensor::iota(n, class.dtype(), class.device());
            let mut chosen = class.unsqueeze(-1)?.eq(number)?;
            for _ in 0..self.event.rank() {
                chosen = chosen.unsqueeze(-1)?;
            }
            chosen.where_(&values, values.zeros_like())?.sum(self.axis())
        })
    }

    #[track_caller]
    fn rsample(&self, shape: &[usize], rng: &mut Rng) -> Result<Tensor> {
        let _ = (shape, rng);
        Err(refuse(self.name(), "there is no rsample of it".to_owned()))
    }

    #[track_caller]
    fn log_prob(&self, value: &Tensor) -> Result<Tensor> {
        located(|| {
            let log = self.components.log_prob(&value.unsqueeze(self.axis())?)?;
            log.add(self.log_weights()?)?.logsumexp(-1)
        })
    }

    #[track_caller]
    fn mean(&self) -> Result<Tensor> {
        located(|| self.weighted(&self.components.mean()?))
    }

    /// The mean variance, and the variance of the means.
    #[track_caller]
    fn variance(&self) -> Result<Tensor> {
        located(|| {
            let (means, variances) = (self.components.mean()?, self.components.variance()?);
            let mean = self.weighted(&means)?.unsqueeze(self.axis())?;
            self.weighted(&(variances + (means - mean).square()))
        })
    }

    #[track_caller]
    fn cdf(&self, value: &Tensor) -> Result<Tensor> {
        located(|| self.weighted(&self.components.cdf(&value.unsqueeze(self.axis())?)?))
    }
}
