//! Losses that are negative log-likelihoods: weighted and soft cross entropy, binary, Poisson,
//! Gaussian, and the divergence of distributions.
//!
//! Definitions and defaults are PyTorch's. Halves are computed in `f32`.

use super::formula::Term;
use super::{CrossEntropy, Reduction, Tensor};
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::ops::BinaryOp;
use crate::origin::composed;

/// How [`Tensor::poisson_nll_loss`] reads its input.
///
/// ```
/// use zyx::PoissonNll;
/// assert!(PoissonNll::default().log_input);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PoissonNll {
    /// Whether the input is the logarithm of the rate; true.
    pub log_input: bool,
    /// Whether Stirling's approximation of `log(target!)` is added for targets above 1; false.
    pub full: bool,
    /// Added to a rate before its logarithm is taken; 1e-8.
    pub eps: f64,
    /// What becomes of the single terms.
    pub reduction: Reduction,
}

impl Default for PoissonNll {
    fn default() -> PoissonNll {
        PoissonNll { log_input: true, full: false, eps: 1e-8, reduction: Reduction::default() }
    }
}

impl Tensor {
    /// Cross entropy of logits `[n, classes, ..]` (or `[classes]`) with a factor for each class,
    /// `[classes]`. Targets are class numbers `[n, ..]` of an integer dtype, or probabilities of
    /// the logits' shape in a floating one.
    ///
    /// The mean over class numbers is weighted by the classes' factors, that over probabilities
    /// is over positions, as in PyTorch. `ignore_index` does not apply to probabilities. A class
    /// number out of range is an error, at the call or when the loss is read.
    ///
    /// ```
    /// # use zyx::{CrossEntropy, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let logits = Tensor::new([[0f32, 0.0], [0.0, 0.0]], &device)?;
    /// let soft = Tensor::new([[0.5f32, 0.5], [1.0, 0.0]], &device)?;
    /// let weight = Tensor::new([1f32, 3.0], &device)?;
    /// let loss = logits.cross_entropy_weighted(&soft, Some(&weight), CrossEntropy::default())?;
    /// assert_eq!(format!("{:.4}", loss), "1.0397");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not fit, the target holds bools, or `label_smoothing` is not in
    /// `0 ..= 1`.
    #[track_caller]
    pub fn cross_entropy_weighted(
        &self,
        target: &Tensor,
        weight: Option<&Tensor>,
        options: CrossEntropy,
    ) -> Result<Tensor> {
        const OP: &str = "cross_entropy_weighted";
        let smoothing = options.label_smoothing;
        if !(0.0..=1.0).contains(&smoothing) {
            let reason = format!("label_smoothing is {smoothing}, not in 0 ..= 1");
            return Err(Tensor::argument_error(OP, reason));
        }
        let loss = if target.dtype().is_float() {
            self.soft_cross_entropy(target, weight, options)
        } else {
            self.hard_cross_entropy(target, weight, options)
        };
        Ok(loss.named(OP)?.cast(self.floating().dtype()))
    }

    /// A vector of a factor for each class, laid along the axis of the classes.
    #[track_caller]
    fn class_factors(&self, axis: usize, weight: &Tensor) -> Result<Tensor> {
        const OP: &str = "cross_entropy_weighted";
        Tensor::check_operands(OP, &[self, weight])?;
        let classes = self.shape()[axis];
        if weight.shape().dims() != [classes] {
            let reason = format!("the weight must be a vector of {classes} elements");
            return Err(Tensor::shape_error(OP, &[self, weight], reason));
        }
        let mut dims = vec![1; self.rank()];
        dims[axis] = classes;
        weight.cast(self.dtype()).reshape(dims)
    }

    #[track_caller]
    fn soft_cross_entropy(
        &self,
        target: &Tensor,
        weight: Option<&Tensor>,
        options: CrossEntropy,
    ) -> Result<Tensor> {
        const OP: &str = "cross_entropy_weighted";
        Tensor::check_operands(OP, &[self, target])?;
        let axis = usize::from(self.rank() > 1);
        let classes = self.shape().get(axis).copied().unwrap_or(0);
        if !self.shape().same(target.shape()) || classes == 0 {
            let reason = "probabilities need the shape of the logits".to_owned();
            return Err(Tensor::shape_error(OP, &[self, target], reason));
        }
        let x = self.wide();
        let smoothing = options.label_smoothing;
        let mut share = target.cast(x.dtype());
        if smoothing > 0.0 {
            share = share.mul(1.0 - smoothing)?.add(smoothing / classes as f64)?;
        }
        if let Some(weight) = weight {
            share = share.mul(x.class_factors(axis, weight)?)?;
        }
        let terms = x.log_softmax(axis)?.mul(&share)?.sum(axis)?.neg();
        Ok(options.reduction.apply(terms))
    }

    #[track_caller]
    fn hard_cross_entropy(
        &self,
        target: &Tensor,
        weight: Option<&Tensor>,
        options: CrossEntropy,
    ) -> Result<Tensor> {
        const OP: &str = "cross_entropy_weighted";
        let Some(weight) = weight else { return self.cross_entropy_with(target, options) };
        let x = self.wide();
        let axis = x.class_axis(OP, target)?;
        let target = &target.within(OP, 0, x.shape()[axis], options.ignore_index)?;
        let log = x.log_softmax(axis)?;
        let (mut terms, counted) = log.weighted_likelihood(OP, axis, target, weight, options)?;
        let smoothing = options.label_smoothing;
        if smoothing > 0.0 {
            // Each takes its share before the sum, which may be beyond the largest number.
            let share = x.class_factors(axis, weight)?.mul(smoothing / x.shape()[axis] as f64)?;
            let spread = log.mul(&share)?.sum(axis)?.neg();
            let spread = counted.ne(0.0)?.where_(&spread, spread.like(0.0))?;
            terms = terms.mul(1.0 - smoothing)?.add(&spread)?;
        }
        options.weighted(terms, &counted)
    }

    /// `-weight[target] x[target]`, and the weights, both 0 where the target is ignored.
    #[track_caller]
    fn weighted_likelihood(
        &self,
        op: &'static str,
        axis: usize,
        target: &Tensor,
        weight: &Tensor,
        options: CrossEntropy,
    ) -> Result<(Tensor, Tensor)> {
        let target = target.cast(DType::I64);
        let classes = self.shape()[axis];
        let factors = weight.cast(self.dtype()).at_targets(op, &target, classes)?;
        let picked = self.at_class(axis, &target)?;
        let terms = picked.mul(&factors)?.neg().defined_for(&target, classes)?;
        let Some(ignored) = options.ignore_index else { return Ok((terms, factors)) };
        let counts = target.ne(ignored)?;
        let zero = terms.like(0.0);
        Ok((counts.where_(&terms, &zero)?, counts.where_(&factors, &zero)?))
    }

    /// Negative log-likelihood of log-probabilities `[n, classes, ..]` (or `[classes]`) at class
    /// numbers `[n, ..]` with a factor for each class, `[classes]`; the mean is weighted by the
    /// factors. See [`Tensor::nll_loss`].
    ///
    /// ```
    /// # use zyx::{CrossEntropy, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[-1f32, -2.0], [-3.0, -4.0]], &device)?;
    /// let target = Tensor::new([0i64, 1], &device)?;
    /// let weight = Tensor::new([1f32, 3.0], &device)?;
    /// let loss = x.nll_loss_weighted(&target, &weight, CrossEntropy::default())?;
    /// assert_eq!(loss.item::<f32>()?, 13.0 / 4.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not fit or the target does not hold integers.
    #[track_caller]
    pub fn nll_loss_weighted(
        &self,
        target: &Tensor,
        weight: &Tensor,
        options: CrossEntropy,
    ) -> Result<Tensor> {
        const OP: &str = "nll_loss_weighted";
        let _here = composed();
        let classes = self.shape().get(usize::from(self.rank() > 1)).copied().unwrap_or(0);
        let target = &target.within(OP, 0, classes, options.ignore_index)?;
        let loss = || {
            let x = self.wide();
            let axis = x.class_axis(OP, target)?;
            let (terms, counted) = x.weighted_likelihood(OP, axis, target, weight, options)?;
            options.weighted(terms, &counted)
        };
        Ok(loss().named(OP)?.cast(self.floating().dtype()))
    }

    /// As [`Tensor::bce_loss`], with a factor for each term that broadcasts.
    ///
    /// ```
    /// # use zyx::{Reduction, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let (x, y) = (Tensor::new([0.5f32], &device)?, Tensor::new([1f32], &device)?);
    /// let weight = Tensor::new([2f32], &device)?;
    /// let loss = x.binary_cross_entropy(&y, Some(&weight), Reduction::Mean)?;
    /// assert_eq!(format!("{loss:.4}"), "1.3863");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes differ or the weight does not broadcast to them.
    #[track_caller]
    pub fn binary_cross_entropy(
        &self,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: Reduction,
    ) -> Result<Tensor> {
        const OP: &str = "binary_cross_entropy";
        let _here = composed();
        let terms = || {
            let (x, y) = (self.wide(), target.wide());
            x.bce_loss(&y, Reduction::None)?.factored(OP, weight)
        };
        Ok(terms().named(OP)?.reduced_loss(&[self, target], reduction))
    }

    /// Terms with a factor that must not enlarge them.
    #[track_caller]
    fn factored(self, op: &'static str, weight: Option<&Tensor>) -> Result<Tensor> {
        let Some(weight) = weight else { return Ok(self) };
        Tensor::check_operands(op, &[&self, weight])?;
        let weight = weight.cast(self.dtype()).expand(self.shape().clone())?;
        Ok(self.combine(BinaryOp::Mul, &weight))
    }

    /// As [`Tensor::bce_with_logits_loss`], with a factor for each term and one for the terms of
    /// positive targets; both broadcast.
    ///
    /// ```
    /// # use zyx::{Reduction, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let (x, y) = (Tensor::new([0f32], &device)?, Tensor::new([1f32], &device)?);
    /// let positive = Tensor::new([3f32], &device)?;
    /// let loss = x.binary_cross_entropy_with_logits(&y, None, Some(&positive), Reduction::Mean)?;
    /// assert_eq!(format!("{loss:.4}"), "2.0794");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes differ or a factor does not broadcast to them.
    #[track_caller]
    pub fn binary_cross_entropy_with_logits(
        &self,
        target: &Tensor,
        weight: Option<&Tensor>,
        pos_weight: Option<&Tensor>,
        reduction: Reduction,
    ) -> Result<Tensor> {
        const OP: &str = "binary_cross_entropy_with_logits";
        let _here = composed();
        let terms = || {
            let (x, y) = self.paired(OP, target)?;
            let yes = y.clone().factored(OP, pos_weight)?;
            let terms = x.logistic_terms(&yes, &y.neg().add(1.0)?);
            terms.factored(OP, weight)
        };
        Ok(terms().named(OP)?.reduced_loss(&[self, target], reduction))
    }

    /// `yes * log(1 + e^-x) + no * log(1 + e^x)`, for weights of the same shape.
    ///
    /// Nothing is subtracted that was added before: where a weight is 0, the other term keeps all its
    /// digits, however large the logit, and so does its gradient.
    #[track_caller]
    pub(super) fn logistic_terms(&self, yes: &Tensor, no: &Tensor) -> Tensor {
        let is_positive = |x: &Tensor| Term(x.clone()).above(0.0);
        // `-|x|`, with a slope at 0.
        let below = move |x: &Tensor| is_positive(x).choose(&Term(x.neg()), &Term(x.clone()));
        let rest = below(self).exp().log1p();
        let softplus = |is_negated: bool| {
            let x = Term(if is_negated { self.neg() } else { self.clone() });
            let value = x.max(&x.number(0.0)) + &rest;
            value.0.with_rule(self, move |inputs, _, dy| {
                // The smaller of the two probabilities, and the larger.
                let few = Term(below(&inputs[0]).0.sigmoid());
                let many = 1.0 - &few;
                let positive = is_positive(&inputs[0]);
                let slope = match is_negated {
                    true => -&positive.choose(&few, &many),
                    false => positive.choose(&many, &few),
                };
                Some(slope.0.combine(BinaryOp::Mul, dy))
            })
        };
        let yes = yes.combine(BinaryOp::Mul, &softplus(true));
        yes.combine(BinaryOp::Add, &no.combine(BinaryOp::Mul, &softplus(false)))
    }

    /// As [`Tensor::kl_div_loss`]; with `log_target` the targets are log-probabilities too:
    /// `e^y (y - x)`.
    ///
    /// ```
    /// # use zyx::{Reduction, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let (x, y) = (Tensor::new([-1f32], &device)?, Tensor::new([0f32], &device)?);
    /// assert_eq!(x.kl_div(&y, true, Reduction::Sum)?.item::<f32>()?, 1.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes differ.
    #[track_caller]
    pub fn kl_div(
        &self,
        target: &Tensor,
        log_target: bool,
        reduction: Reduction,
    ) -> Result<Tensor> {
        if !log_target {
            return self.kl_div_loss(target, reduction).named("kl_div");
        }
        let (x, y) = self.paired("kl_div", target)?;
        let terms = y.exp().combine(BinaryOp::Mul, &y.combine(BinaryOp::Sub, &x));
        Ok(terms.reduced_loss(&[self, target], reduction))
    }

    /// Negative log-likelihood of counts under Poisson distributions: `e^x - target x` of log
    /// rates, `x - target log(x + eps)` of rates.
    ///
    /// ```
    /// # use zyx::{PoissonNll, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let (x, y) = (Tensor::new([0f32, 0.0], &device)?, Tensor::new([2f32, 4.0], &device)?);
    /// assert_eq!(x.poisson_nll_loss(&y, PoissonNll::default())?.item::<f32>()?, 1.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes differ.
    #[track_caller]
    pub fn poisson_nll_loss(&self, target: &Tensor, options: PoissonNll) -> Result<Tensor> {
        const OP: &str = "poisson_nll_loss";
        let _here = composed();
        let terms = || {
            let PoissonNll { log_input, full, eps, .. } = options;
            let (x, y) = self.paired(OP, target)?;
            let mut terms = match log_input {
                true => x.exp().sub(y.mul(&x)?)?,
                false => x.sub(y.mul(x.add(eps)?.log())?)?,
            };
            if full {
                // Stirling: y log y - y + log(2 pi y) / 2.
                let large = y.gt(1.0)?;
                let safe = large.where_(&y, y.like(1.0))?;
                let log = safe.log();
                let half = log.add(std::f64::consts::TAU.ln())?.mul(0.5)?;
                let stirling = safe.mul(&log)?.sub(&safe)?.add(&half)?;
                terms = terms.add(large.where_(&stirling, y.like(0.0))?)?;
            }
            Ok(terms)
        };
        Ok(terms().named(OP)?.reduced_loss(&[self, target], options.reduction))
    }

    /// Negative log-likelihood of targets under normal distributions of mean `self` and variance
    /// `var` (held at least `eps`, without a gradient of its own there):
    /// `(log var + (x - target)^2 / var) / 2`, and with `full` `log(2 pi) / 2` more. `var` has the
    /// shape of the mean, or a last axis of extent 1, or lacks the last axis.
    ///
    /// ```
    /// # use zyx::{Reduction, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let (x, y) = (Tensor::new([1f32], &device)?, Tensor::new([3f32], &device)?);
    /// let var = Tensor::new([1f32], &device)?;
    /// let loss = x.gaussian_nll_loss(&y, &var, false, 1e-6, Reduction::Mean)?;
    /// assert_eq!(loss.item::<f32>()?, 2.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not fit.
    #[track_caller]
    pub fn gaussian_nll_loss(
        &self,
        target: &Tensor,
        var: &Tensor,
        full: bool,
        eps: f64,
        reduction: Reduction,
    ) -> Result<Tensor> {
        const OP: &str = "gaussian_nll_loss";
        let _here = composed();
        let terms = || {
            let (x, y) = self.paired(OP, target)?;
            Tensor::check_operands(OP, &[self, var])?;
            let mut v = var.cast(x.dtype());
            if v.rank() + 1 == x.rank() && x.shape().starts_with(v.shape()) {
                v = v.unsqueeze(-1)?;
            }
            let v = v.expand(x.shape().clone())?;
            // The bound lifts the value alone; the gradient is that of the variance itself.
            let lift = v.maximum(eps)?.sub(&v)?.detach_lazily();
            let v = v.add(&lift)?;
            let half = v.log().add(x.sub(&y)?.square().div(&v)?)?.mul(0.5)?;
            if full { half.add(0.5 * std::f64::consts::TAU.ln()) } else { Ok(half) }
        };
        Ok(terms().named(OP)?.reduced_loss(&[self, target, var], reduction))
    }
}

impl CrossEntropy {
    /// Terms reduced, the mean weighted by what each counts.
    #[track_caller]
    fn weighted(self, terms: Tensor, counted: &Tensor) -> Result<Tensor> {
        match self.reduction {
            Reduction::Mean => terms.sum(..)?.div(counted.sum(..)?),
            other => Ok(other.apply(terms)),
        }
    }
}
