//! The table of distributions.
//!
//! A row names the parameters with an example and their sets, the set of values, how samples are
//! made (`pathwise` ones have gradients by the parameters), and the formulas. In formulas a
//! parameter is a tensor of the batch shape, with the axes of vectors behind. Checks have been
//! made, so operators cannot fail. Formulas without a reference are those of Johnson, Kotz and
//! Balakrishnan, "Continuous Univariate Distributions", and the same for discrete ones.
//!
//! The row
//!
//! ```text
//! Exponential(rate = 1f32 in Positive) over NonNegative,
//! pathwise(d) = d.exponential()? / rate,
//! log_prob(x) = rate.log() - rate * x,
//! mean = 1.0 / rate;
//! ```
//!
//! becomes the type `Exponential` with `new(rate: &Tensor)` and `unchecked(rate: &Tensor)`, and an
//! element of `ROWS` whose functions have `rate` as a variable.

use super::Constraint::*;
use super::draw::Draw;
use super::functions::{igamma, log_bessel, times_log};
use super::law::{Closed, Law, Row};
use super::{OfLaw, refuse};
use std::f64::consts::{FRAC_1_PI, FRAC_PI_2, LN_2, PI, SQRT_2, TAU};
use zyx_core::{DType, Result, Shape, Tensor};

/// Euler's constant.
pub(super) const EULER: f64 = 0.577_215_664_901_532_9;
/// Half the logarithm of a full circle: the constant of normal densities.
const HALF_LN_TAU: f64 = 0.918_938_533_204_672_8;

macro_rules! is_pathwise {
    (pathwise) => {
        true
    };
    (discrete) => {
        false
    };
}

macro_rules! laws {
    ($(
        $(#[$doc:meta])*
        $name:ident $parameters:tt over $support:expr,
        $kind:ident($d:ident) = $draw:expr,
        log_prob($x:ident) = $log_prob:expr
        $(, $key:ident $(($arg:ident))? = $body:expr)*;
    )*) => {
        /// All families.
        #[allow(clippy::needless_update, reason = "not all families have all formulas")]
        pub(super) static ROWS: &[Row] = &[$(Row {
            name: stringify!($name),
            parameters: laws!(@names $parameters),
            constraints: laws!(@sets $parameters),
            support: laws!(@formula $parameters [] $support),
            is_pathwise: is_pathwise!($kind),
            draw: laws!(@formula $parameters [$d: &mut Draw<'_>] $draw),
            log_prob: laws!(@formula $parameters [$x: &Tensor] $log_prob),
            closed: Closed {
                $($key: Some(laws!(@formula $parameters [$($arg: &Tensor)?] $body)),)*
                ..Closed::NONE
            },
        }),*];

        $(laws!(@type $(#[$doc])* $name $parameters);)*
    };
    (@names ($($p:ident = $example:tt in $set:expr),*)) => {
        &[$(stringify!($p)),*]
    };
    (@sets ($($p:ident = $example:tt in $set:expr),*)) => {
        laws!(@formula ($($p = $example in $set),*) [] vec![$($set),*])
    };
    // A function of the parameters and one argument at most.
    (@formula ($($p:ident = $example:tt in $set:expr),*) [$($arg:ident: $type:ty)?] $body:expr) => {
        |parameters: &[Tensor] $(, $arg: $type)?| {
            #[allow(unused_variables, reason = "not all formulas have all parameters")]
            let [$($p),*] = parameters else {
                return Err(refuse("Law", "the number of parameters is another".to_owned()));
            };
            Ok($body)
        }
    };
    (@type $(#[$doc:meta])* $name:ident ($($p:ident = $example:tt in $set:expr),*)) => {
        $(#[$doc])*
        ///
        /// Parameters broadcast to the batch shape, in front of the axes of vectors and
        /// matrices; results are floats of their dtype (`f32` of integers).
        #[derive(Clone, Debug)]
        pub struct $name(Law);

        impl $name {
            $(
                #[doc = concat!("`", stringify!($p), "`, expanded to the batch shape.")]
                pub fn $p(&self) -> &Tensor {
                    self.0.parameter(stringify!($p))
                }
            )*

            /// With these parameters, which are read and checked, as are values later. What
            /// depends on an input of a traced function is not.
            ///
            /// ```
            /// use zyx::{Rng, Tensor};
            #[doc = concat!("use zyx::distributions::{Distribution, ", stringify!($name), "};")]
            /// let device = zyx::device()?;
            #[doc = concat!("let law = ", stringify!($name), "::new(")]
            $(#[doc = concat!("    &Tensor::new(", stringify!($example), ", &device)?,")])*
            /// )?;
            $(#[doc = concat!("assert!(law.", stringify!($p), "().to_vec::<f32>().is_ok());")])*
            /// let x = law.sample(&[5], &mut Rng::seed(1))?;
            /// assert_eq!(x.shape()[0], 5);
            /// let p = law.log_prob(&x)?;
            /// assert!(p.shape().dims() == [5] && p.to_vec::<f32>()?.iter().all(|p| !p.is_nan()));
            /// # Ok::<(), zyx::Error>(())
            /// ```
            ///
            /// # Errors
            /// When a parameter is outside its set, with its value; shapes do not broadcast, or
            /// devices differ.
            #[track_caller]
            pub fn new($($p: &Tensor),*) -> Result<$name> {
                Ok($name(Law::by_name(stringify!($name), &[$($p),*], true)?))
            }

            /// As `new`, without reading parameters or values: nothing is computed, and where
            /// they are outside their sets, results mean nothing.
            ///
            /// ```
            /// use zyx::distributions::Exponential;
            /// use zyx::Tensor;
            /// let device = zyx::device()?;
            /// let rate = Tensor::new(-1f32, &device)?;
            /// assert!(Exponential::new(&rate).is_err() && Exponential::unchecked(&rate).is_ok());
            /// # Ok::<(), zyx::Error>(())
            /// ```
            ///
            /// # Errors
            /// When shapes do not broadcast or devices differ.
            #[track_caller]
            pub fn unchecked($($p: &Tensor),*) -> Result<$name> {
                Ok($name(Law::by_name(stringify!($name), &[$($p),*], false)?))
            }
        }

        impl OfLaw for $name {
            fn law(&self) -> &Law {
                &self.0
            }
        }
    };
}

laws! {
    /// Normal with mean `loc` and standard deviation `scale`.
    Normal(loc = 0f32 in Real, scale = 1f32 in Positive) over Real,
    pathwise(d) = d.normal()? * scale + loc,
    log_prob(x) = normal_log_prob(loc, scale, x),
    entropy = scale.log() + (0.5 + HALF_LN_TAU),
    mean = loc.clone(),
    variance = scale.square(),
    cdf(x) = ((x - loc) / scale).ndtr(),
    icdf(p) = normal_icdf(p) * scale + loc;

    /// The exponential of normal numbers of mean `loc` and standard deviation `scale`.
    LogNormal(loc = 0f32 in Real, scale = 1f32 in Positive) over Positive,
    pathwise(d) = (d.normal()? * scale + loc).exp(),
    log_prob(x) = normal_log_prob(loc, scale, &x.log()) - x.log(),
    entropy = scale.log() + loc + (0.5 + HALF_LN_TAU),
    mean = (loc + scale.square() * 0.5).exp(),
    variance = scale.square().expm1() * (loc * 2.0 + scale.square()).exp(),
    cdf(x) = ((x.log() - loc) / scale).ndtr(),
    icdf(p) = (normal_icdf(p) * scale + loc).exp();

    /// Uniform from `low` up to but not including `high`.
    Uniform(low = 0f32 in Real, high = 1f32 in Above(low.clone()))
        over Between(low.clone(), high.clone()),
    pathwise(d) = d.unit()? * (high - low) + low,
    log_prob(x) = {
        let inside = x.ge(low)?.logical_and(x.lt(high)?)?;
        inside.where_(-(high - low).log(), f64::NEG_INFINITY)?
    },
    entropy = (high - low).log(),
    mean = (low + high) * 0.5,
    variance = (high - low).square() * (1.0 / 12.0),
    cdf(x) = ((x - low) / (high - low)).clamp(0.0, 1.0)?,
    icdf(p) = p * (high - low) + low;

    /// 1 with a probability of log odds `logits`, otherwise 0; [`logits_of`](super::logits_of) gives
    /// log odds.
    Bernoulli(logits = 0f32 in Real) over Boolean,
    discrete(d) = d.unit()?.lt(logits.sigmoid())?.cast(logits.dtype()),
    log_prob(x) = -((x * -2.0 + 1.0) * logits).softplus(),
    entropy = bernoulli_entropy(logits)?,
    mean = logits.sigmoid(),
    variance = logits.sigmoid() * (-logits).sigmoid();

    /// Successes in `total_count` trials, each with a probability of log odds `logits`.
    Binomial(total_count = 10f32 in Count, logits = 0f32 in Real) over CountTo(total_count.clone()),
    discrete(d) = d.binomial(total_count, logits)?,
    log_prob(x) = {
        let rest = &(total_count - x);
        (total_count + 1.0).lgamma() - (x + 1.0).lgamma() - (rest + 1.0).lgamma()
            + times_log(x, &-(-logits).softplus())? + times_log(rest, &-logits.softplus())?
    },
    mean = total_count * logits.sigmoid(),
    variance = total_count * logits.sigmoid() * (-logits).sigmoid();

    /// Failures before success number `total_count`, where failure has a probability of log odds
    /// `-logits`; PyTorch calls the counted outcome success.
    NegativeBinomial(total_count = 3f32 in NonNegative, logits = 0f32 in Real) over Count,
    discrete(d) = {
        let rate = (d.log_gamma(total_count)? + logits).exp();
        d.poisson(&total_count.eq(0.0)?.where_(0.0, rate)?)?
    },
    log_prob(x) = {
        let both = &(total_count + x);
        let count = both.lgamma() - (x + 1.0).lgamma() - total_count.lgamma();
        let count = both.eq(0.0)?.where_(0.0, count)?;
        count + times_log(total_count, &-logits.softplus())?
            + times_log(x, &-(-logits).softplus())?
    },
    mean = total_count * logits.exp(),
    variance = total_count * logits.exp() * logits.softplus().exp();

    /// Failures before the first success, which has a probability of log odds `logits`.
    Geometric(logits = 0f32 in Real) over Count,
    discrete(d) = (d.exponential()? / logits.softplus()).floor(),
    log_prob(x) = times_log(x, &-logits.softplus())? - (-logits).softplus(),
    entropy = bernoulli_entropy(logits)? / logits.sigmoid(),
    mean = (-logits).exp(),
    variance = (-logits).exp() * ((-logits).exp() + 1.0);

    /// Counts of independent events whose mean number is `rate`.
    Poisson(rate = 4f32 in NonNegative) over Count,
    discrete(d) = d.poisson(rate)?,
    log_prob(x) = x.xlogy(rate)? - rate - (x + 1.0).lgamma(),
    mean = rate.clone(),
    variance = rate.clone();

    /// Class numbers: `logits[.., k]` is the logarithm of the probability of class `k`, up to a
    /// constant.
    Categorical(logits = [0f32, 1.0] in RealVector) over {
        let classes = logits.shape()[logits.rank() - 1];
        CountTo(logits.max(-1)?.zeros_like() + (classes as f64 - 1.0))
    },
    discrete(d) = (d.gumbel()? + logits).argmax(-1)?,
    log_prob(x) = {
        let classes = logits.shape()[logits.rank() - 1];
        let class = Tensor::iota(classes, x.dtype(), x.device());
        let is_class = x.unsqueeze(-1)?.eq(class)?;
        let log = logits.log_softmax(-1)?;
        is_class.where_(&log, 0.0)?.sum(-1)?
    },
    entropy = class_entropy(logits)?;

    /// Vectors with a 1 at the class, and otherwise 0; classes as in [`Categorical`].
    OneHotCategorical(logits = [0f32, 1.0] in RealVector) over OneHot,
    discrete(d) = {
        let classes = logits.shape()[logits.rank() - 1];
        (d.gumbel()? + logits).argmax(-1)?.one_hot(classes)?.cast(logits.dtype())
    },
    log_prob(x) = times_log(x, &logits.log_softmax(-1)?)?.sum(-1)?,
    entropy = class_entropy(logits)?,
    mean = logits.softmax(-1)?,
    variance = logits.softmax(-1)? * (1.0 - logits.softmax(-1)?);

    /// How often each class comes in `total_count` draws; classes as in [`Categorical`]. Samples
    /// read `total_count`.
    Multinomial(total_count = 5f32 in Count, logits = [0f32, 1.0] in RealVector)
        over Counts(total_count.clone()),
    discrete(d) = multinomial(total_count, logits, d)?,
    log_prob(x) = (total_count + 1.0).lgamma()
        + (times_log(x, &logits.log_softmax(-1)?)? - (x + 1.0).lgamma()).sum(-1)?,
    mean = total_count.unsqueeze(-1)? * logits.softmax(-1)?,
    variance = total_count.unsqueeze(-1)? * logits.softmax(-1)? * (1.0 - logits.softmax(-1)?);

    /// Beta; `concentration1` belongs to 1, `concentration0` to 0.
    Beta(concentration1 = 2f32 in Positive, concentration0 = 3f32 in Positive) over Unit,
    pathwise(d) = (d.log_gamma(concentration1)? - d.log_gamma(concentration0)?).sigmoid(),
    log_prob(x) = (concentration1 - 1.0).xlogy(x)? + (concentration0 - 1.0).xlog1py(-x)?
        - log_beta(concentration1, concentration0),
    entropy = {
        let (a, b) = (concentration1, concentration0);
        let both = &(a + b);
        log_beta(a, b) - (a - 1.0) * a.digamma() - (b - 1.0) * b.digamma()
            + (both - 2.0) * both.digamma()
    },
    mean = concentration1 / (concentration1 + concentration0),
    variance = {
        let both = &(concentration1 + concentration0);
        concentration1 * concentration0 / (both.square() * (both + 1.0))
    };

    /// Gamma of shape `concentration` with mean `concentration / rate`.
    Gamma(concentration = 2f32 in Positive, rate = 1f32 in Positive) over NonNegative,
    pathwise(d) = positive(&d.log_gamma(concentration)?)? / rate,
    log_prob(x) = concentration.xlogy(rate)? + (concentration - 1.0).xlogy(x)? - rate * x
        - concentration.lgamma(),
    entropy = gamma_entropy(concentration, rate),
    mean = concentration / rate,
    variance = concentration / rate.square(),
    cdf(x) = igamma(concentration, &(rate * x))?;

    /// The reciprocal of [`Gamma`] numbers.
    InverseGamma(concentration = 3f32 in Positive, rate = 1f32 in Positive) over Positive,
    pathwise(d) = rate / positive(&d.log_gamma(concentration)?)?,
    log_prob(x) = concentration * rate.log() - (concentration + 1.0) * x.log() - rate / x
        - concentration.lgamma(),
    entropy = concentration + rate.log() + concentration.lgamma()
        - (concentration + 1.0) * concentration.digamma(),
    mean = concentration.gt(1.0)?.where_(rate / (concentration - 1.0), f64::INFINITY)?,
    variance = {
        let finite = (rate / (concentration - 1.0)).square() / (concentration - 2.0);
        concentration.gt(2.0)?.where_(finite, f64::INFINITY)?
    },
    cdf(x) = super::igammac(concentration, &(rate / x))?;

    /// Sums of `df` squares of normal numbers.
    Chi2(df = 3f32 in Positive) over NonNegative,
    pathwise(d) = positive(&d.log_gamma(&(df * 0.5))?)? * 2.0,
    log_prob(x) = (df * 0.5 - 1.0).xlogy(x)? - x * 0.5 - df * (0.5 * LN_2) - (df * 0.5).lgamma(),
    entropy = gamma_entropy(&(df * 0.5), &df.ones_like()) + LN_2,
    mean = df.clone(),
    variance = df * 2.0,
    cdf(x) = igamma(&(df * 0.5), &(x * 0.5))?;

    /// Points of the simplex: shares of independent gamma numbers of the shapes `concentration`.
    Dirichlet(concentration = [1f32, 2.0] in PositiveVector) over Simplex,
    pathwise(d) = d.log_gamma(concentration)?.softmax(-1)?,
    log_prob(x) = (concentration - 1.0).xlogy(x)?.sum(-1)? + concentration.sum(-1)?.lgamma()
        - concentration.lgamma().sum(-1)?,
    entropy = {
        let (a, total) = (concentration, &concentration.sum(-1)?);
        let classes = a.shape()[a.rank() - 1] as f64;
        a.lgamma().sum(-1)? - total.lgamma() + (total - classes) * total.digamma()
            - ((a - 1.0) * a.digamma()).sum(-1)?
    },
    mean = concentration / concentration.sum_keepdim(-1)?,
    variance = {
        let total = &concentration.sum_keepdim(-1)?;
        concentration * (total - concentration) / (total.square() * (total + 1.0))
    };

    /// Student's t with `df` degrees of freedom, moved by `loc` and scaled by `scale`.
    StudentT(df = 5f32 in Positive, loc = 0f32 in Real, scale = 1f32 in Positive) over Real,
    pathwise(d) = {
        let half = df * 0.5;
        let log_chi2 = d.log_gamma(&half)? - half.log();
        d.normal()? * (log_chi2 * -0.5).exp() * scale + loc
    },
    log_prob(x) = {
        let y = (x - loc) / scale;
        let constant = scale.log() + df.log() * 0.5 + 0.5 * PI.ln() + (df * 0.5).lgamma()
            - (df * 0.5 + 0.5).lgamma();
        (df + 1.0) * -0.5 * (y.square() / df).log1p() - constant
    },
    entropy = {
        let next = &(df * 0.5 + 0.5);
        scale.log() + next * (next.digamma() - (df * 0.5).digamma()) + df.log() * 0.5
            + log_beta(&(df * 0.5), &df.full_like(0.5))
    },
    mean = df.gt(1.0)?.where_(loc, f64::NAN)?,
    variance = {
        let finite = df.gt(2.0)?.where_(scale.square() * df / (df - 2.0), f64::INFINITY)?;
        df.gt(1.0)?.where_(finite, f64::NAN)?
    };

    /// Cauchy with median `loc`; a quarter lies above `loc + scale`.
    Cauchy(loc = 0f32 in Real, scale = 1f32 in Positive) over Real,
    pathwise(d) = ((d.unit()? - 0.5) * PI).tan() * scale + loc,
    log_prob(x) = -PI.ln() - scale.log() - ((x - loc) / scale).square().log1p(),
    entropy = scale.log() + (4.0 * PI).ln(),
    mean = loc.full_like(f64::NAN),
    variance = loc.full_like(f64::INFINITY),
    cdf(x) = ((x - loc) / scale).atan() * FRAC_1_PI + 0.5,
    icdf(p) = ((p - 0.5) * PI).tan() * scale + loc;

    /// Absolute values of [`Cauchy`] numbers around 0.
    HalfCauchy(scale = 1f32 in Positive) over NonNegative,
    pathwise(d) = (d.unit()? * FRAC_PI_2).tan() * scale,
    log_prob(x) = {
        let log = (2.0 / PI).ln() - scale.log() - (x / scale).square().log1p();
        x.ge(0.0)?.where_(log, f64::NEG_INFINITY)?
    },
    entropy = scale.log() + TAU.ln(),
    mean = scale.full_like(f64::INFINITY),
    variance = scale.full_like(f64::INFINITY),
    cdf(x) = (x / scale).atan() * (2.0 * FRAC_1_PI),
    icdf(p) = (p * FRAC_PI_2).tan() * scale;

    /// Absolute values of normal numbers of standard deviation `scale` around 0.
    HalfNormal(scale = 1f32 in Positive) over NonNegative,
    pathwise(d) = d.normal()?.abs() * scale,
    log_prob(x) = {
        let log = (x / scale).square() * -0.5 - scale.log() + (LN_2 - HALF_LN_TAU);
        x.ge(0.0)?.where_(log, f64::NEG_INFINITY)?
    },
    entropy = scale.log() + (0.5 + HALF_LN_TAU - LN_2),
    mean = scale * (2.0 / PI).sqrt(),
    variance = scale.square() * (1.0 - 2.0 / PI),
    cdf(x) = (x / (scale * SQRT_2)).erf(),
    icdf(p) = p.erfinv() * (scale * SQRT_2);

    /// Waiting times for events that come `rate` times in a unit of time.
    Exponential(rate = 1f32 in Positive) over NonNegative,
    pathwise(d) = d.exponential()? / rate,
    log_prob(x) = rate.log() - rate * x,
    entropy = 1.0 - rate.log(),
    mean = 1.0 / rate,
    variance = 1.0 / rate.square(),
    cdf(x) = -(-(rate * x)).expm1(),
    icdf(p) = -(-p).log1p() / rate;

    /// Laplace: two exponential tails of mean length `scale` around `loc`.
    Laplace(loc = 0f32 in Real, scale = 1f32 in Positive) over Real,
    pathwise(d) = (d.exponential()? - d.exponential()?) * scale + loc,
    log_prob(x) = -(scale * 2.0).log() - (x - loc).abs() / scale,
    entropy = (scale * 2.0).log() + 1.0,
    mean = loc.clone(),
    variance = scale.square() * 2.0,
    cdf(x) = {
        let y = x - loc;
        0.5 - y.sign() * (-(y.abs() / scale)).expm1() * 0.5
    },
    icdf(p) = {
        let centered = p - 0.5;
        loc - scale * centered.sign() * (centered.abs() * -2.0).log1p()
    };

    /// Gumbel, the limit of maxima, with mode `loc`.
    Gumbel(loc = 0f32 in Real, scale = 1f32 in Positive) over Real,
    pathwise(d) = d.gumbel()? * scale + loc,
    log_prob(x) = {
        let y = (loc - x) / scale;
        &y - y.exp() - scale.log()
    },
    entropy = scale.log() + (1.0 + EULER),
    mean = scale * EULER + loc,
    variance = scale.square() * (PI * PI / 6.0),
    cdf(x) = (-((loc - x) / scale).exp()).exp(),
    icdf(p) = loc - scale * (-p.log()).log();

    /// Pareto: the logarithm of a value over `scale` is exponential of rate `alpha`.
    Pareto(scale = 1f32 in Positive, alpha = 3f32 in Positive) over AtLeast(scale.clone()),
    pathwise(d) = (d.exponential()? / alpha).exp() * scale,
    log_prob(x) = alpha.log() + alpha * scale.log() - (alpha + 1.0) * x.log(),
    entropy = (scale / alpha).log() + 1.0 / alpha + 1.0,
    mean = alpha.gt(1.0)?.where_(alpha * scale / (alpha - 1.0), f64::INFINITY)?,
    variance = {
        let finite = scale.square() * alpha / ((alpha - 1.0).square() * (alpha - 2.0));
        alpha.gt(2.0)?.where_(finite, f64::INFINITY)?
    },
    cdf(x) = -(alpha * (scale / x).log()).expm1(),
    icdf(p) = scale * (-(-p).log1p() / alpha).exp();

    /// Weibull: `(x / scale)^concentration` is exponential.
    Weibull(scale = 1f32 in Positive, concentration = 2f32 in Positive) over Positive,
    pathwise(d) = (d.exponential()?.log() / concentration).exp() * scale,
    log_prob(x) = {
        let log = (x / scale).log();
        (concentration / scale).log() + (concentration - 1.0) * &log - (concentration * log).exp()
    },
    entropy = (1.0 - 1.0 / concentration) * EULER + (scale / concentration).log() + 1.0,
    mean = scale * weibull_moment(concentration, 1.0),
    variance = scale.square()
        * (weibull_moment(concentration, 2.0) - weibull_moment(concentration, 1.0).square()),
    cdf(x) = -(-(concentration * (x / scale).log()).exp()).expm1(),
    icdf(p) = ((-(-p).log1p()).log() / concentration).exp() * scale;

    /// Kumaraswamy: like beta, with the closed distribution function `1 - (1 - x^a)^b` where `a` is
    /// `concentration1` and `b` is `concentration0`.
    Kumaraswamy(concentration1 = 2f32 in Positive, concentration0 = 3f32 in Positive) over Unit,
    pathwise(d) = {
        let power = -(-(d.exponential()? / concentration0)).expm1();
        (power.log() / concentration1).exp()
    },
    log_prob(x) = concentration1.log() + concentration0.log() + (concentration1 - 1.0).xlogy(x)?
        + (concentration0 - 1.0).xlog1py(-(concentration1 * x.log()).exp())?,
    entropy = (1.0 - 1.0 / concentration0)
        + (1.0 - 1.0 / concentration1) * ((concentration0 + 1.0).digamma() + EULER)
        - concentration1.log() - concentration0.log(),
    mean = kumaraswamy_moment(concentration1, concentration0, 1.0),
    variance = kumaraswamy_moment(concentration1, concentration0, 2.0)
        - kumaraswamy_moment(concentration1, concentration0, 1.0).square(),
    cdf(x) = -(concentration0 * (-(concentration1 * x.log()).exp()).log1p()).expm1(),
    icdf(p) = ((-((-p).log1p() / concentration0).expm1()).log() / concentration1).exp();

    /// Angles around `loc`, within minus pi and pi. Samples have no gradients. The variance is that
    /// on the circle.
    VonMises(loc = 0f32 in Real, concentration = 1f32 in Positive) over Real,
    discrete(d) = {
        let angle = d.von_mises(concentration)? + loc + PI;
        angle.remainder(TAU)? - PI
    },
    log_prob(x) = concentration * (x - loc).cos() - TAU.ln() - log_bessel(0, concentration)?,
    mean = loc.clone(),
    variance = -(log_bessel(1, concentration)? - log_bessel(0, concentration)?).expm1();

    /// Normal vectors of mean `loc` and covariance `L L^T`, where `L` is `scale_tril`;
    /// [`Tensor::cholesky`](zyx_core::Tensor::cholesky) makes it of a covariance.
    MultivariateNormal(
        loc = [0f32, 1.0] in RealVector,
        scale_tril = [[1f32, 0.0], [0.5, 2.0]] in LowerCholesky
    ) over RealVector,
    pathwise(d) = scale_tril.matmul(&d.normal()?.unsqueeze(-1)?)?.squeeze(-1)? + loc,
    log_prob(x) = {
        let square = multivariate_square(scale_tril, &(x - loc).unsqueeze(-1)?)?;
        let n = loc.shape()[loc.rank() - 1] as f64;
        square * -0.5 - n * HALF_LN_TAU - half_logdet(scale_tril)?
    },
    entropy = half_logdet(scale_tril)?
        + loc.shape()[loc.rank() - 1] as f64 * (0.5 + HALF_LN_TAU),
    mean = loc.clone(),
    variance = scale_tril.square().sum(-1)?;

    /// Fisher and Snedecor's F: the quotient of two chi-squared numbers, each divided by its degrees
    /// of freedom.
    FisherSnedecor(df1 = 3f32 in Positive, df2 = 6f32 in Positive) over Positive,
    pathwise(d) = (d.log_gamma(&(df1 * 0.5))? - d.log_gamma(&(df2 * 0.5))?).exp() * (df2 / df1),
    log_prob(x) = {
        let (a, b, quotient) = (&(df1 * 0.5), &(df2 * 0.5), &(df1 / df2));
        a * quotient.log() + (a - 1.0) * x.log() - (a + b) * (quotient * x).log1p() - log_beta(a, b)
    },
    mean = df2.gt(2.0)?.where_(df2 / (df2 - 2.0), f64::NAN)?,
    variance = {
        let above = df2.square() * (df1 + df2 - 2.0) * 2.0;
        let below = df1 * (df2 - 2.0).square() * (df2 - 4.0);
        df2.gt(4.0)?.where_(above / below, f64::NAN)?
    };

    /// A differentiable [`Bernoulli`] (Maddison et al. 2017): the nearer `temperature` is to 0, the
    /// nearer samples are to 0 or 1.
    RelaxedBernoulli(temperature = 0.5f32 in Positive, logits = 0f32 in Real) over Unit,
    pathwise(d) = {
        let u = d.unit()?;
        ((u.log() - (-u).log1p() + logits) / temperature).sigmoid()
    },
    log_prob(x) = {
        let (log, log_rest) = (x.log(), (-x).log1p());
        let y = logits - (&log - &log_rest) * temperature;
        temperature.log() + &y - y.softplus() * 2.0 - log - log_rest
    };

    /// A differentiable [`OneHotCategorical`] (Maddison et al. 2017): points of the simplex, nearer to
    /// its corners the nearer `temperature` is to 0.
    RelaxedOneHotCategorical(
        temperature = 0.5f32 in Positive,
        logits = [0f32, 1.0] in RealVector
    ) over Simplex,
    pathwise(d) = ((d.gumbel()? + logits) / temperature.unsqueeze(-1)?).softmax(-1)?,
    log_prob(x) = {
        let classes = logits.shape()[logits.rank() - 1] as f64;
        let log = &x.log();
        let score = (logits - log * temperature.unsqueeze(-1)?).log_softmax(-1)?;
        temperature.log() * (classes - 1.0) + (score - log).sum(-1)?
            + temperature.full_like(classes).lgamma()
    };

    /// Numbers from 0 to 1 with density proportional to `p^x (1 - p)^(1 - x)` (Loaiza-Ganem and
    /// Cunningham 2019), `p` having the log odds `logits`.
    ContinuousBernoulli(logits = 1f32 in Real) over Unit,
    pathwise(d) = continuous_icdf(logits, &d.unit()?)?,
    log_prob(x) = x * logits - logits.softplus() + continuous_log_norm(logits)?,
    entropy = logits.softplus() - continuous_log_norm(logits)? - logits * continuous_mean(logits)?,
    mean = continuous_mean(logits)?,
    variance = {
        let (near, safe) = near_zero(logits)?;
        let sinh = (&safe * 0.5).sinh().square();
        let square = &logits.square();
        let series = square * (1.0 / 6048.0 - square * (1.0 / 172_800.0));
        let series = 1.0 / 12.0 - square * (1.0 / 240.0 - series);
        near.where_(series, 1.0 / safe.square() - 0.25 / sinh)?
    },
    cdf(x) = {
        // By the distribution of 1 - x where large numbers are likelier.
        let is_high = logits.gt(0.0)?;
        let below = is_high.where_(1.0 - x, x)?.clamp(0.0, 1.0)?;
        let (near, safe) = near_zero(&-logits.abs())?;
        let share = near.where_(&below, (&safe * &below).expm1() / safe.expm1())?;
        is_high.where_(1.0 - &share, &share)?
    },
    icdf(p) = continuous_icdf(logits, p)?;
}

fn normal_log_prob(loc: &Tensor, scale: &Tensor, x: &Tensor) -> Tensor {
    ((x - loc) / scale).square() * -0.5 - scale.log() - HALF_LN_TAU
}

fn normal_icdf(p: &Tensor) -> Tensor {
    (p * 2.0 - 1.0).erfinv() * SQRT_2
}

fn bernoulli_entropy(logits: &Tensor) -> Result<Tensor> {
    Ok(times_log(&logits.sigmoid(), &(-logits).softplus())?
        + times_log(&(-logits).sigmoid(), &logits.softplus())?)
}

fn class_entropy(logits: &Tensor) -> Result<Tensor> {
    Ok(-times_log(&logits.softmax(-1)?, &logits.log_softmax(-1)?)?.sum(-1)?)
}

/// Counts of classes, from as many draws as the largest total.
fn multinomial(total: &Tensor, logits: &Tensor, d: &mut Draw<'_>) -> Result<Tensor> {
    let most = total.max(..)?.cast(DType::F32).item::<f32>()? as usize;
    let classes = logits.shape()[logits.rank() - 1];
    let class = (d.times(most).gumbel()? + logits).argmax(-1)?;
    let mut dims = vec![1; class.rank()];
    dims[0] = most;
    let trial = Tensor::iota(most, total.dtype(), total.device()).reshape(&dims[..])?;
    let counts = trial.lt(total)?.unsqueeze(-1)?;
    counts.where_(class.one_hot(classes)?.cast(DType::F32), 0.0)?.sum(0)
}

pub(super) fn log_beta(a: &Tensor, b: &Tensor) -> Tensor {
    a.lgamma() + b.lgamma() - (a + b).lgamma()
}

/// Numbers of these logarithms, the smallest normal number where they underflow.
fn positive(log: &Tensor) -> Result<Tensor> {
    log.exp().maximum(f64::from(f32::MIN_POSITIVE))
}

fn gamma_entropy(concentration: &Tensor, rate: &Tensor) -> Tensor {
    concentration - rate.log()
        + concentration.lgamma()
        + (1.0 - concentration) * concentration.digamma()
}

fn weibull_moment(concentration: &Tensor, n: f64) -> Tensor {
    (n / concentration + 1.0).lgamma().exp()
}

fn kumaraswamy_moment(a: &Tensor, b: &Tensor, n: f64) -> Tensor {
    (b.log() + log_beta(&(n / a + 1.0), b)).exp()
}

pub(super) fn half_logdet(scale_tril: &Tensor) -> Result<Tensor> {
    scale_tril.diagonal(0, -2, -1)?.log().sum(-1)
}

/// The sum of squares of `scale_tril^-1 x`, for matrices `x`; batch shapes broadcast.
pub(super) fn multivariate_square(scale_tril: &Tensor, x: &Tensor) -> Result<Tensor> {
    let lead = |x: &Tensor| Shape::from(&x.shape().dims()[..x.rank() - 2]);
    let batch = lead(scale_tril).broadcast(&lead(x)).unwrap_or_else(|| lead(x));
    let expand =
        |x: &Tensor| x.expand(&[batch.dims(), &x.shape().dims()[x.rank() - 2..]].concat()[..]);
    expand(scale_tril)?.triangular_solve(&expand(x)?, false, false)?.square().sum([-2, -1])
}

/// Where `x` is so near to 0 that a series is exact, and `x` with 1 in these places.
fn near_zero(x: &Tensor) -> Result<(Tensor, Tensor)> {
    let border = if x.dtype() == DType::F64 { 0.02 } else { 0.3 };
    let near = x.abs().lt(border)?;
    let safe = near.where_(1.0, x)?;
    Ok((near, safe))
}

/// The logarithm of `l / tanh(l / 2)`.
pub(super) fn continuous_log_norm(logits: &Tensor) -> Result<Tensor> {
    let (near, safe) = near_zero(logits)?;
    let square = logits.square();
    let series = LN_2
        + &square * (1.0 / 12.0 - &square * (7.0 / 1440.0 - &square * (62.0 / (2835.0 * 64.0))));
    near.where_(series, (&safe / (&safe * 0.5).tanh()).log())
}

pub(super) fn continuous_mean(logits: &Tensor) -> Result<Tensor> {
    let (near, safe) = near_zero(logits)?;
    let square = &logits.square();
    let series = 0.5 + logits * (1.0 / 12.0 - square * (1.0 / 720.0 - square * (1.0 / 30240.0)));
    near.where_(series, 1.0 / -(-&safe).expm1() - 1.0 / &safe)
}

fn continuous_icdf(logits: &Tensor, p: &Tensor) -> Result<Tensor> {
    let is_high = logits.gt(0.0)?;
    let below = is_high.where_(1.0 - p, p)?;
    let (near, safe) = near_zero(&-logits.abs())?;
    let x = near.where_(&below, (&below * safe.expm1()).log1p() / safe)?;
    is_high.where_(1.0 - &x, &x)
}
