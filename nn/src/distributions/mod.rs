//! Probability distributions whose parameters are tensors.
//!
//! ```
//! use zyx::distributions::{Distribution, Normal, kl_divergence};
//! use zyx::{Rng, Tensor};
//! let device = zyx::device()?;
//! let (loc, scale) = (Tensor::new([0f32, 3.0], &device)?, Tensor::new(2f32, &device)?);
//! let posterior = Normal::new(&loc.tracked(), &scale)?;
//! // Samples have gradients by the parameters: reparameterisation.
//! let x = posterior.rsample(&[100], &mut Rng::seed(1))?;
//! assert_eq!(x.shape().dims(), [100, 2]);
//! let prior = Normal::new(&loc.zeros_like(), &scale.ones_like())?;
//! let divergence = kl_divergence(&posterior, &prior)?;
//! assert_eq!(divergence.shape().dims(), [2]);
//! # Ok::<(), zyx::Error>(())
//! ```
//!
//! [`Distribution`] says what there is of each. Thirty-two families are rows of one table
//! (`laws.rs`), each a type here and, by name, a [`Law`]. [`Independent`], [`TransformedDistribution`]
//! and [`MixtureSameFamily`] make distributions of others, [`Transform`] maps values,
//! [`kl_divergence`] compares two.
//!
//! A distribution has a *batch shape*, that of its parameters, and an *event shape*: `[]` of
//! numbers, `[n]` of vectors. Samples have the shape that was asked for, the batch shape and the
//! event shape; probabilities have no event shape. Names, parameters and conventions are PyTorch's,
//! but for one: what is given there as `probs` or `logits` is `logits` here, which [`logits_of`] and
//! `log` make of probabilities.

mod compose;
mod constraint;
mod divergence;
mod draw;
mod functions;
mod law;
mod laws;
mod transform;

pub use compose::{Independent, MixtureSameFamily, TransformedDistribution, logistic_normal};
pub use constraint::Constraint;
pub use divergence::kl_divergence;
pub use functions::{igamma, igammac};
pub use law::Law;
pub use laws::{
    Bernoulli, Beta, Binomial, Categorical, Cauchy, Chi2, ContinuousBernoulli, Dirichlet,
    Exponential, FisherSnedecor, Gamma, Geometric, Gumbel, HalfCauchy, HalfNormal, InverseGamma,
    Kumaraswamy, Laplace, LogNormal, Multinomial, MultivariateNormal, NegativeBinomial, Normal,
    OneHotCategorical, Pareto, Poisson, RelaxedBernoulli, RelaxedOneHotCategorical, StudentT,
    Uniform, VonMises, Weibull,
};
pub use transform::Transform;

use std::fmt::Debug;
use std::panic::Location;
use zyx_core::{Error, Result, Rng, Shape, Tensor};

/// A distribution of numbers or vectors; see the [module](self).
pub trait Distribution: Debug + Send + Sync {
    /// The family.
    fn name(&self) -> &'static str;

    /// The shape of the parameters: how many distributions this is.
    fn batch_shape(&self) -> &Shape;

    /// The shape of one value: `[]` of numbers, `[n]` of vectors.
    fn event_shape(&self) -> &Shape;

    /// The set of values.
    fn support(&self) -> Constraint;

    /// Whether [`Distribution::rsample`] is there.
    fn has_rsample(&self) -> bool {
        false
    }

    /// Samples of shape `shape`, batch shape and event shape, without gradients. Classes and counts
    /// are floats.
    ///
    /// # Errors
    /// When there would be too many.
    #[track_caller]
    fn sample(&self, shape: &[usize], rng: &mut Rng) -> Result<Tensor> {
        Ok(self.rsample(shape, rng)?.detach())
    }

    /// Samples with gradients by the parameters.
    ///
    /// # Errors
    /// When the family has none, or there would be too many.
    #[track_caller]
    fn rsample(&self, shape: &[usize], rng: &mut Rng) -> Result<Tensor>;

    /// The logarithm of the density or probability of values. Their shape broadcasts with the
    /// batch shape, with the event shape behind; the result has the shape of both without it.
    ///
    /// # Errors
    /// When the shape does not fit, or a value that is checked is outside the support.
    #[track_caller]
    fn log_prob(&self, value: &Tensor) -> Result<Tensor>;

    /// The entropy in nats, of the batch shape.
    ///
    /// # Errors
    /// When it has no closed form.
    #[track_caller]
    fn entropy(&self) -> Result<Tensor> {
        Err(refuse(self.name(), "there is no entropy of it".to_owned()))
    }

    /// The mean, of batch and event shape: NaN or infinite where there is none.
    ///
    /// # Errors
    /// When it has no closed form.
    #[track_caller]
    fn mean(&self) -> Result<Tensor> {
        Err(refuse(self.name(), "there is no mean of it".to_owned()))
    }

    /// The variance of each number, of batch and event shape.
    ///
    /// # Errors
    /// When it has no closed form.
    #[track_caller]
    fn variance(&self) -> Result<Tensor> {
        Err(refuse(self.name(), "there is no variance of it".to_owned()))
    }

    /// The probability of at most `value`.
    ///
    /// # Errors
    /// When it has no closed form, or the shape does not fit.
    #[track_caller]
    fn cdf(&self, value: &Tensor) -> Result<Tensor> {
        let _ = value;
        Err(refuse(self.name(), "there is no cdf of it".to_owned()))
    }

    /// The value that a number is below with this probability: the inverse of
    /// [`Distribution::cdf`].
    ///
    /// # Errors
    /// When it has no closed form, or the shape does not fit.
    #[track_caller]
    fn icdf(&self, probability: &Tensor) -> Result<Tensor> {
        let _ = probability;
        Err(refuse(self.name(), "there is no icdf of it".to_owned()))
    }

    /// The row of the table, for [`kl_divergence`].
    #[doc(hidden)]
    fn as_law(&self) -> Option<&Law> {
        None
    }
}

/// The types of the table.
pub(crate) trait OfLaw: Debug + Send + Sync {
    fn law(&self) -> &Law;
}

macro_rules! forwarded {
    ($($method:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        impl<T: OfLaw> Distribution for T {
            fn batch_shape(&self) -> &Shape {
                self.law().batch_shape()
            }

            fn event_shape(&self) -> &Shape {
                self.law().event_shape()
            }

            $(
                #[track_caller]
                fn $method(&self, $($arg: $type),*) -> $result {
                    self.law().$method($($arg),*)
                }
            )*

            fn as_law(&self) -> Option<&Law> {
                Some(self.law())
            }
        }
    };
}

forwarded! {
    name() -> &'static str;
    support() -> Constraint;
    has_rsample() -> bool;
    sample(shape: &[usize], rng: &mut Rng) -> Result<Tensor>;
    rsample(shape: &[usize], rng: &mut Rng) -> Result<Tensor>;
    log_prob(value: &Tensor) -> Result<Tensor>;
    entropy() -> Result<Tensor>;
    mean() -> Result<Tensor>;
    variance() -> Result<Tensor>;
    cdf(value: &Tensor) -> Result<Tensor>;
    icdf(probability: &Tensor) -> Result<Tensor>;
}

#[track_caller]
pub(crate) fn refuse(op: &'static str, reason: String) -> Error {
    Error::Argument { op, reason, location: Location::caller() }
}

/// Log odds of probabilities: `log(p / (1 - p))`, infinite at 0 and 1.
///
/// ```
/// use zyx::distributions::{Bernoulli, Distribution, logits_of};
/// use zyx::{Rng, Tensor};
/// let device = zyx::device()?;
/// let p = Tensor::new([0f32, 0.5, 1.0], &device)?;
/// let coins = Bernoulli::new(&logits_of(&p))?;
/// assert_eq!(coins.mean()?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
/// # Ok::<(), zyx::Error>(())
/// ```
#[track_caller]
pub fn logits_of(probabilities: &Tensor) -> Tensor {
    let p = &probabilities.cast(law::float_dtype(&[probabilities]));
    p.log() - (-p).log1p()
}
