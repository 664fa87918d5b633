//! Connectionist temporal classification (Graves et al. 2006): the likelihood of a sequence of
//! classes under all its alignments with longer input.
//!
//! The forward recursion runs over the input's time steps as tensor ops, so it is on the device,
//! for a whole batch at once, and its gradient is derived like any other; a step is a kernel. The
//! probability 0 is represented by a large finite number instead of an infinite logarithm:
//! differences stay defined, and no gradient becomes NaN.

use super::{Reduction, Tensor};
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::ops::BinaryOp;
use crate::origin::composed;
use crate::runtime::{Bound, Judgement};

/// Which class is the blank, and what becomes of the losses.
///
/// ```
/// use zyx::Ctc;
/// assert_eq!(Ctc::default().blank, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ctc {
    /// The class that stands for no label; 0.
    pub blank: usize,
    /// Whether an impossible alignment has loss 0 instead of infinity; false.
    pub zero_infinity: bool,
    /// The mean is over the batch, of losses divided by their target's length, as in PyTorch.
    pub reduction: Reduction,
}

/// The logarithm of "never": adding to it changes nothing, and sums of it do not overflow.
const NEVER: f64 = -1e30;

impl Tensor {
    /// CTC loss of log-probabilities `[time, n, classes]` against class numbers `[n, length]`
    /// (padded to one length), of which the first `target_lengths[i]` count; of the input, the
    /// first `input_lengths[i]` steps do. Lengths are `[n]`, integers.
    ///
    /// ```
    /// # use zyx::{Ctc, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// // Two steps, blank and one class, each with probability one half: of the four paths, all
    /// // but the one of two blanks spell the class.
    /// let x = Tensor::new([[[0.5f32, 0.5]], [[0.5, 0.5]]], &device)?.log();
    /// let lengths = (Tensor::new([2i64], &device)?, Tensor::new([1i64], &device)?);
    /// let target = Tensor::new([[1i64]], &device)?;
    /// let loss = x.ctc_loss(&target, &lengths.0, &lengths.1, Ctc::default())?;
    /// assert_eq!(format!("{loss:.4}"), "0.2877");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not fit, `blank` is not a class, targets or lengths are not integers, or
    /// the operands are on different devices.
    #[track_caller]
    pub fn ctc_loss(
        &self,
        targets: &Tensor,
        input_lengths: &Tensor,
        target_lengths: &Tensor,
        options: Ctc,
    ) -> Result<Tensor> {
        let _here = composed();
        self.ctc(targets, [input_lengths, target_lengths], options).named("ctc_loss")
    }

    #[track_caller]
    fn ctc(&self, targets: &Tensor, lengths: [&Tensor; 2], options: Ctc) -> Result<Tensor> {
        const OP: &str = "ctc_loss";
        self.check_ctc(targets, lengths[0], lengths[1], options)?;
        let (steps, classes, length) = (self.shape()[0], self.shape()[2], targets.shape()[1]);
        let lengths = [
            lengths[0].within(OP, 0, steps.saturating_add(1), None)?.cast(DType::I64),
            lengths[1].within(OP, 0, length.saturating_add(1), None)?.cast(DType::I64),
        ];
        let mut targets = targets.cast(DType::I64);
        let high = i64::try_from(classes).unwrap_or(i64::MAX);
        let bound = Bound { op: OP, low: 0, high, except: None };
        if targets.index_range().judge(&bound) != Judgement::Fit || self.device().is_checked() {
            // What pads a target may be anything.
            let position = Tensor::iota(length, DType::I64, self.device());
            let counts = position.lt(&lengths[1].unsqueeze(-1)?)?;
            let blank = i64::try_from(options.blank).unwrap_or(i64::MAX);
            targets = counts.where_(&targets, blank)?.within(OP, 0, classes, None)?;
        }
        let mut terms = self.wide().ctc_terms(&targets, &lengths, options)?;
        if options.reduction == Reduction::Mean {
            let n = lengths[1].maximum(1)?.cast(terms.dtype());
            terms = terms.div(&n)?;
        }
        Ok(options.reduction.apply(terms).cast(self.floating().dtype()))
    }

    fn check_ctc(&self, targets: &Tensor, inputs: &Tensor, of: &Tensor, ctc: Ctc) -> Result<()> {
        const OP: &str = "ctc_loss";
        let all = [self, targets, inputs, of];
        Tensor::check_operands(OP, &all)?;
        let fits = match (self.shape().dims(), targets.shape().dims()) {
            (&[time, n, _], &[m, length]) => {
                let lengths = [inputs, of].iter().all(|l| l.shape().dims() == [n]);
                time > 0 && n == m && length < usize::MAX / 4 && lengths
            }
            _ => false,
        };
        if !fits {
            let reason =
                "needs [time, n, classes], targets [n, length] and two vectors [n] of lengths"
                    .to_owned();
            return Err(Tensor::shape_error(OP, &all, reason));
        }
        if !all[1..].iter().all(|t| t.dtype().is_int()) {
            let reason = "targets and lengths are integers".to_owned();
            return Err(Tensor::dtype_error(OP, &all, reason));
        }
        if ctc.blank >= self.shape()[2] {
            let reason = format!("the blank {} is not one of the classes", ctc.blank);
            return Err(Tensor::argument_error(OP, reason));
        }
        if self.shape()[0] > MOST_STEPS {
            let reason = format!("more than {MOST_STEPS} time steps");
            return Err(Tensor::shape_error(OP, &all, reason));
        }
        Ok(())
    }

    /// The loss of each element of the batch, `[n]`.
    #[track_caller]
    fn ctc_terms(&self, targets: &Tensor, lengths: &[Tensor; 2], ctc: Ctc) -> Result<Tensor> {
        let (time, n, length) = (self.shape()[0], self.shape()[1], targets.shape()[1]);
        // Labels with blanks between and around them: blank, l1, blank, l2, .., blank.
        let states = 2 * length + 1;
        let blanks = Tensor::full([n, length, 1], ctc.blank as i64, self.device());
        let pairs = Tensor::cat(&[&blanks, &targets.unsqueeze(-1)?], -1)?;
        let last = Tensor::full([n, 1], ctc.blank as i64, self.device());
        let labels = Tensor::cat(&[&pairs.reshape([n, 2 * length])?, &last], 1)?;
        // A label may follow the one before the last blank, unless they are equal.
        let two_back = labels.pad_with([(0, 0), (2, 0)], -1.0)?.slice(1, ..states)?;
        let skips = labels.ne(ctc.blank as i64)?.logical_and(labels.ne(&two_back)?)?;
        let state = Tensor::iota(states, DType::I64, self.device());
        let skips = skips.logical_and(state.ge(2)?)?;
        let never = Tensor::zeros([n, states], self.dtype(), self.device()).like(NEVER);
        let emit = |t: usize| -> Result<Tensor> {
            Ok(self.select_index(0, t as isize)?.gather_unchecked(1, &labels))
        };
        let clamped = |x: Tensor| x.bounded(BinaryOp::Max, &x.number(NEVER), false);
        let mut alpha = state.lt(2)?.where_(clamped(emit(0)?), &never)?;
        for t in 1..time {
            let shifted = |by: usize| -> Result<Tensor> {
                alpha.pad_with([(0, 0), (by, 0)], NEVER)?.slice(1, ..states)
            };
            let skipped = skips.where_(shifted(2)?, &never)?;
            let sum = log_add([&alpha, &shifted(1)?, &skipped])?;
            let next = clamped(sum.add(emit(t)?)?);
            // Beyond its input's end, a batch element stays as it is.
            let running = lengths[0].gt(t as i64)?.unsqueeze(-1)?;
            alpha = running.where_(&next, &alpha)?;
        }
        // The last label or the blank after it.
        let end = lengths[1].mul(2)?.unsqueeze(-1)?;
        let at = |state: &Tensor| alpha.gather_unchecked(1, state).squeeze(-1);
        let label = end.sub(1)?;
        let none = never.slice(1, ..1)?.squeeze(-1)?;
        let at_label = lengths[1].gt(0)?.where_(at(&label.maximum(0)?)?, &none)?;
        let likelihood = log_add([&at(&end)?, &at_label, &none])?;
        let possible = likelihood.gt(NEVER / 2.0)?;
        let otherwise = if ctc.zero_infinity { 0.0 } else { f64::INFINITY };
        possible.where_(likelihood.neg(), likelihood.like(otherwise))
    }
}

/// Most steps a graph is built for.
const MOST_STEPS: usize = 1 << 16;

/// `log(sum(exp(x)))` of three tensors of one shape, all finite.
#[track_caller]
fn log_add(x: [&Tensor; 3]) -> Result<Tensor> {
    let top = x[0].maximum(x[1])?.maximum(x[2])?.detach_lazily();
    let part = |x: &Tensor| x.sub(&top).map(|d| d.exp());
    part(x[0])?.add(part(x[1])?)?.add(part(x[2])?)?.log().add(&top)
}
