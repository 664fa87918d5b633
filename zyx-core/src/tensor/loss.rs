//! Losses: how far predictions are from targets, as one number to minimise.
//!
//! Each takes the prediction as `self`. Shapes of prediction and target must be equal (there is no
//! broadcasting: `[n]` against `[n, 1]` would silently compare all pairs); classification takes
//! class numbers instead. Halves are computed in `f32`. The mean of no terms is NaN.

use super::Tensor;
use super::formula::Term;
use super::reduce::LogSum;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::BinaryOp;
use crate::origin::composed;

/// What becomes of the single terms of a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Their mean, a scalar.
    #[default]
    Mean,
    /// Their sum, a scalar.
    Sum,
    /// They stay as they are.
    None,
}

impl Reduction {
    #[track_caller]
    pub(super) fn apply(self, terms: Tensor) -> Tensor {
        let all = super::axes::all(terms.rank());
        match self {
            Reduction::Mean => terms.mean_of(all).without(all),
            Reduction::Sum => terms.reduce(BinaryOp::Add, all).without(all),
            Reduction::None => terms,
        }
    }
}

/// How [`Tensor::cross_entropy_with`] and [`Tensor::nll_loss`] treat targets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CrossEntropy {
    /// Positions with this target count for nothing.
    pub ignore_index: Option<i64>,
    /// The share of the target's probability that is spread evenly over all classes, `0 ..= 1`.
    pub label_smoothing: f64,
    /// What becomes of the single terms. The mean is over positions that count.
    pub reduction: Reduction,
}

impl Tensor {
    /// Mean cross entropy of logits `[n, classes, ..]` (or `[classes]`) against class numbers
    /// `[n, ..]` (or a scalar) of any integer dtype: `logsumexp(x) - x[target]`, exact for logits of any size.
    ///
    /// A class number out of range is an error, at the call or when the loss is read.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let logits = Tensor::new([[2f32, 1.0, 0.1], [0.0, 0.0, 0.0]], &device)?;
    /// let loss = logits.cross_entropy(&Tensor::new([0i64, 2], &device)?)?;
    /// assert_eq!(format!("{loss:.4}"), "0.7578");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not fit or the target does not hold integers.
    #[track_caller]
    pub fn cross_entropy(&self, target: &Tensor) -> Result<Tensor> {
        self.cross_entropy_with(target, CrossEntropy::default())
    }

    /// As [`Tensor::cross_entropy`], with options.
    ///
    /// ```
    /// # use zyx::{CrossEntropy, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let logits = Tensor::new([[2f32, 1.0], [0.0, 0.0]], &device)?;
    /// let options = CrossEntropy { ignore_index: Some(1), ..Default::default() };
    /// let loss = logits.cross_entropy_with(&Tensor::new([0i64, 1], &device)?, options)?;
    /// assert_eq!(format!("{:.4}", loss), "0.3133");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::cross_entropy`], and when `label_smoothing` is not in `0 ..= 1`.
    #[track_caller]
    pub fn cross_entropy_with(&self, target: &Tensor, options: CrossEntropy) -> Result<Tensor> {
        const OP: &str = "cross_entropy";
        let _here = composed();
        let smoothing = options.label_smoothing;
        if !(0.0..=1.0).contains(&smoothing) {
            let reason = format!("label_smoothing is {smoothing}, not in 0 ..= 1");
            return Err(Tensor::argument_error(OP, reason));
        }
        let x = self.wide();
        let axis = x.class_axis(OP, target)?;
        let target = &target.within(OP, 0, x.shape()[axis], options.ignore_index)?;
        let mask = 1 << axis;
        let LogSum { shift, log } = x.log_sum(mask);
        // How far elements are below the maximum. A shift of all of them is gone.
        let mut below = shift.without(mask).sub(&x.at_class(axis, target)?)?;
        if smoothing > 0.0 {
            // Each takes its share before the sum, which may be beyond the largest number.
            let share = smoothing / x.shape()[axis] as f64;
            let spread = shift.sub(&x)?.mul(share)?.sum(axis as isize)?;
            below = below.mul(1.0 - smoothing)?.add(&spread)?;
        }
        let terms = log.without(mask).add(&below)?;
        x.finish_classes(axis, terms, target, options).map(|loss| self.round_back(loss))
    }

    /// Mean negative log-likelihood of log-probabilities `[n, classes, ..]` (or `[classes]`)
    /// against class numbers `[n, ..]`: `-x[target]`. A class number out of range is an
    /// error, at the call or when the loss is read.
    ///
    /// ```
    /// # use zyx::{CrossEntropy, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[-0.5f32, -1.5], [-2.0, -0.25]], &device)?;
    /// let target = Tensor::new([0i64, 1], &device)?;
    /// assert_eq!(x.nll_loss(&target, CrossEntropy::default())?.item::<f32>()?, 0.375);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not fit or the target does not hold integers.
    #[track_caller]
    pub fn nll_loss(&self, target: &Tensor, options: CrossEntropy) -> Result<Tensor> {
        let x = self.wide();
        let axis = x.class_axis("nll_loss", target)?;
        let target = &target.within("nll_loss", 0, x.shape()[axis], options.ignore_index)?;
        let terms = x.at_class(axis, target)?.neg();
        x.finish_classes(axis, terms, target, options).map(|loss| self.round_back(loss))
    }

    /// A loss of `self` in the dtype it should have.
    #[track_caller]
    fn round_back(&self, loss: Tensor) -> Tensor {
        loss.cast(self.floating().dtype())
    }

    /// The axis of the classes, once the target was found to fit the other axes.
    #[track_caller]
    pub(super) fn class_axis(&self, op: &'static str, target: &Tensor) -> Result<usize> {
        if !target.dtype().is_int() {
            let reason = "targets are class numbers, so integers".to_owned();
            return Err(Tensor::dtype_error(op, &[self, target], reason));
        }
        if target.device() != self.device() {
            let reason = format!("operands are on {} and {}", self.device(), target.device());
            return Err(Tensor::argument_error(op, reason));
        }
        if !self.shape().is_possible() {
            let reason = "the logits have too many axes or elements".to_owned();
            return Err(Tensor::shape_error(op, &[self, target], reason));
        }
        let axis = usize::from(self.rank() > 1);
        let mut expected = self.shape().to_vec();
        let classes = if axis < expected.len() { expected.remove(axis) } else { 0 };
        if classes == 0 || target.shape().dims() != expected {
            let reason =
                "logits of shape [n, classes, ..] need targets of shape [n, ..]".to_owned();
            return Err(Tensor::shape_error(op, &[self, target], reason));
        }
        Ok(axis)
    }

    /// The element at the target's class, in the target's shape: linear in the targets.
    ///
    /// Its gradient is given as a comparison of all classes with the target instead of as the
    /// scatter a gather has: it is added to another dense gradient in any case, and an elementwise
    /// one joins that one's kernel.
    #[track_caller]
    pub(super) fn at_class(&self, axis: usize, target: &Tensor) -> Result<Tensor> {
        let index = target.cast(DType::I64).unsqueeze(axis as isize)?;
        let picked = self.gather_unchecked(axis, &index).squeeze(axis as isize)?;
        picked.with_gradient(&[self], move |inputs, _, dy| {
            let x = &inputs[0];
            let mut dims = vec![1; x.rank()];
            dims[axis] = x.shape()[axis];
            let class = Tensor::iota(dims[axis], DType::I64, x.device()).reshape(dims)?;
            let zero = dy.like(0.0).unsqueeze(axis as isize)?;
            Ok(vec![Some(index.eq(&class)?.where_(dy.unsqueeze(axis as isize)?, &zero)?)])
        })
    }

    #[track_caller]
    fn finish_classes(
        &self,
        axis: usize,
        terms: Tensor,
        target: &Tensor,
        options: CrossEntropy,
    ) -> Result<Tensor> {
        let target = target.cast(DType::I64);
        let in_range = target.ge(0)?.bitwise_and(target.lt(self.shape()[axis] as i64)?)?;
        let terms = in_range.select(&terms, &terms.like(f64::NAN));
        let Some(ignored) = options.ignore_index else {
            return Ok(options.reduction.apply(terms));
        };
        let counts = target.ne(ignored)?;
        let terms = counts.select(&terms, &terms.like(0.0));
        if options.reduction != Reduction::Mean {
            return Ok(options.reduction.apply(terms));
        }
        let n = counts.cast(terms.dtype()).sum(..)?;
        Reduction::Sum.apply(terms).div(&n)
    }

    /// Both in one floating dtype, if their shapes are equal.
    #[track_caller]
    pub(super) fn paired(&self, op: &'static str, target: &Tensor) -> Result<(Tensor, Tensor)> {
        if !self.shape().same(target.shape()) {
            let reason = "prediction and target must have one shape".to_owned();
            return Err(Tensor::shape_error(op, &[self, target], reason));
        }
        let domain = crate::ops::UnaryOp::Sqrt.domain();
        let (x, y) = Tensor::unify(op, self, target, domain)?;
        Ok((x.wide(), y.wide()))
    }

    /// The reduced terms in the dtype a loss of `self` and `target` should have.
    #[track_caller]
    fn settle(&self, target: &Tensor, terms: Tensor, reduction: Reduction) -> Tensor {
        let dtype = self.floating().dtype().promote(target.floating().dtype());
        reduction.apply(terms).cast(dtype)
    }

    /// Squared difference.
    ///
    /// ```
    /// # use zyx::{Reduction, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let (x, y) = (Tensor::new([1f32, 2.0], &device)?, Tensor::new([1f32, 4.0], &device)?);
    /// assert_eq!(x.mse_loss(&y, Reduction::Mean)?.item::<f32>()?, 2.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes differ.
    #[track_caller]
    pub fn mse_loss(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        let (x, y) = self.paired("mse_loss", target)?;
        let terms = x.combine(BinaryOp::Sub, &y).square();
        Ok(self.settle(target, terms, reduction))
    }

    /// Absolute difference.
    ///
    /// ```
    /// # use zyx::{Reduction, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let (x, y) = (Tensor::new([1f32, 2.0], &device)?, Tensor::new([1f32, 4.0], &device)?);
    /// assert_eq!(x.l1_loss(&y, Reduction::Sum)?.item::<f32>()?, 2.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes differ.
    #[track_caller]
    pub fn l1_loss(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        let (x, y) = self.paired("l1_loss", target)?;
        let terms = x.combine(BinaryOp::Sub, &y).abs();
        Ok(self.settle(target, terms, reduction))
    }

    /// Huber's loss (1964) of the difference `d`: `d^2 / 2` up to `delta`, from there on the line
    /// `delta * (|d| - delta / 2)`.
    ///
    /// ```
    /// # use zyx::{Reduction, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let (x, y) = (Tensor::new([1f32, 2.0], &device)?, Tensor::new([1.5f32, 5.0], &device)?);
    /// assert_eq!(x.huber_loss(&y, 1.0, Reduction::None)?.to_vec::<f32>()?, [0.125, 2.5]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes differ or `delta` is not positive.
    #[track_caller]
    pub fn huber_loss(&self, target: &Tensor, delta: f64, reduction: Reduction) -> Result<Tensor> {
        let (x, y) = self.paired("huber_loss", target)?;
        if delta.is_nan() || delta <= 0.0 {
            let reason = format!("delta is {delta}, it must be positive");
            return Err(Tensor::argument_error("huber_loss", reason));
        }
        // With c = min(|d|, delta) both pieces are c * (|d| - c / 2).
        let size = x.combine(BinaryOp::Sub, &y).abs();
        let capped = size.bounded(BinaryOp::Min, &size.number(delta), false);
        let half = capped.combine(BinaryOp::Mul, &capped.like(0.5));
        let terms = capped.combine(BinaryOp::Mul, &size.combine(BinaryOp::Sub, &half));
        Ok(self.settle(target, terms, reduction))
    }

    /// Huber's loss divided by `beta`: slope 1 beyond `beta`. With `beta` 0 it is [`Tensor::l1_loss`].
    ///
    /// ```
    /// # use zyx::{Reduction, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let (x, y) = (Tensor::new([1f32, 2.0], &device)?, Tensor::new([1.5f32, 5.0], &device)?);
    /// assert_eq!(x.smooth_l1_loss(&y, 1.0, Reduction::None)?.to_vec::<f32>()?, [0.125, 2.5]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes differ or `beta` is negative.
    #[track_caller]
    pub fn smooth_l1_loss(
        &self,
        target: &Tensor,
        beta: f64,
        reduction: Reduction,
    ) -> Result<Tensor> {
        self.in_steps("smooth_l1_loss", [target], |x, [y]| match beta {
            0.0 => x.l1_loss(&y, reduction),
            _ => x.huber_loss(&y, beta, reduction)?.div(beta),
        })
    }

    /// Binary cross entropy of probabilities: `-(y log x + (1 - y) log(1 - x))`, each logarithm
    /// held above -100 so that a wrong certainty costs much but not infinity, as in PyTorch. The
    /// gradient, `(x - y) / max(x (1 - x), 1e-12)`, goes on where they are held.
    ///
    /// ```
    /// # use zyx::{Reduction, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let (x, y) = (Tensor::new([0.5f32], &device)?, Tensor::new([1f32], &device)?);
    /// assert_eq!(format!("{:.4}", x.bce_loss(&y, Reduction::Mean)?), "0.6931");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes differ.
    #[track_caller]
    pub fn bce_loss(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        let _here = composed();
        let (x, y) = self.paired("bce_loss", target)?;
        let floor = |t: Tensor| t.bounded(BinaryOp::Max, &t.like(-100.0), false);
        let yes = y.combine(BinaryOp::Mul, &floor(x.log()));
        let rest = y.like(1.0).combine(BinaryOp::Sub, &y);
        let no = rest.combine(BinaryOp::Mul, &floor(x.neg().log1p()));
        let terms = yes.combine(BinaryOp::Add, &no).neg();
        // The slope where a logarithm is held is that of a line, as steep as 1e12 allows.
        let terms = terms.with_gradient(&[&x, &y], move |inputs, _, dy| {
            let (x, y) = (Term(inputs[0].clone()), Term(inputs[1].clone()));
            let room = (&x * (1.0 - &x)).bounded(BinaryOp::Max, 1e-12, false);
            let dx = Term(dy.clone()) * ((&x - &y) / room);
            let odds = floor(x.0.neg().log1p()).combine(BinaryOp::Sub, &floor(x.0.log()));
            Ok(vec![Some(dx.0), Some(dy.combine(BinaryOp::Mul, &odds))])
        })?;
        Ok(self.settle(target, terms, reduction))
    }

    /// Binary cross entropy of logits, without overflow: `y log(1 + e^-x) + (1 - y) log(1 + e^x)`.
    ///
    /// ```
    /// # use zyx::{Reduction, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let (x, y) = (Tensor::new([0f32], &device)?, Tensor::new([1f32], &device)?);
    /// assert_eq!(format!("{:.4}", x.bce_with_logits_loss(&y, Reduction::Mean)?), "0.6931");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes differ.
    #[track_caller]
    pub fn bce_with_logits_loss(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        let _here = composed();
        let (x, y) = self.paired("bce_with_logits_loss", target)?;
        let terms = x.logistic_terms(&y, &y.like(1.0).combine(BinaryOp::Sub, &y));
        Ok(self.settle(target, terms, reduction))
    }

    /// Pointwise Kullback-Leibler terms of log-probabilities against target probabilities:
    /// `y (log y - x)`, 0 where `y` is 0. Their mean is over elements, not over the batch.
    ///
    /// ```
    /// # use zyx::{Reduction, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let (x, y) = (Tensor::new([0.5f32], &device)?.log(), Tensor::new([1f32], &device)?);
    /// assert_eq!(format!("{:.4}", x.kl_div_loss(&y, Reduction::Sum)?), "0.6931");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes differ.
    #[track_caller]
    pub fn kl_div_loss(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        let (x, y) = self.paired("kl_div_loss", target)?;
        let zero = y.like(0.0);
        let positive = zero.combine(BinaryOp::Lt, &y);
        // The logarithm of 1 where y is 0, and no gap there, keep infinities out of the gradient.
        let safe = positive.select(&y, &y.like(1.0));
        let gap = positive.select(&safe.log().combine(BinaryOp::Sub, &x), &zero);
        let terms = y.combine(BinaryOp::Mul, &gap);
        // What is negative, or NaN, is no probability.
        let wrong = y.combine(BinaryOp::Lt, &zero).combine(BinaryOp::Or, &y.is_nan());
        let terms = wrong.select(&y.like(f64::NAN), &terms);
        Ok(self.settle(target, terms, reduction))
    }
}
