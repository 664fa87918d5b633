//! Activations made of pieces: limited, shrunk, gated.
//!
//! As the activations in `activation.rs` they are composed of elementwise ops, so they fuse.
//! Integers are converted to `f32`, unless the pieces are the elements and limits. At the point
//! where two pieces meet the gradient is that of the flat piece, but for [`Tensor::prelu`], where it
//! is that of the weight's side.

use super::formula::Term;
use super::{Operand, Tensor};
use crate::error::{Named, Result};
use crate::ops::BinaryOp;
use crate::origin::composed;

macro_rules! unary_methods {
    ($($(#[$doc:meta])* $name:ident $in:tt => $out:tt |$x:ident| $body:expr;)*) => {
        impl Tensor {$(
            $(#[$doc])*
            ///
            /// ```
            /// # use zyx::Tensor;
            /// # let device = zyx::runtime().device("reference")?;
            #[doc = concat!("let x = Tensor::new(", stringify!($in), ", &device)?;")]
            #[doc = concat!(
                "assert_eq!(x.", stringify!($name), "().to_vec::<f32>()?, ", stringify!($out), ");"
            )]
            /// # Ok::<(), zyx::Error>(())
            /// ```
            #[track_caller]
            pub fn $name(&self) -> Tensor {
                let $x = self;
                $body
            }
        )*}
    };
}

unary_methods! {
    /// `x / (1 + |x|)`.
    softsign [1f32, -3.0] => [0.5, -0.75] |x| softsign(x);
    /// `relu6(x + 3) / 6`: a sigmoid of three straight lines.
    hardsigmoid [-4f32, 0.0, 4.0] => [0.0, 0.5, 1.0] |x| Term::compute(x, |x| limit(&(x + 3.0), 0.0, 6.0) * (1.0 / 6.0));
    /// `x * hardsigmoid(x)`.
    hardswish [-4f32, 0.0, 4.0] => [0.0, 0.0, 4.0] |x| Term::compute(x, |x| x * limit(&(x + 3.0), 0.0, 6.0) * (1.0 / 6.0));
    /// `log(sigmoid(x))` without underflow.
    logsigmoid [f32::INFINITY] => [0.0] |x| logsigmoid(x);
    /// `x - tanh(x)`.
    tanhshrink [0f32] => [0.0] |x| Term::compute(x, |x| x - Term(x.0.tanh()));
}

/// Where `x` wins over `y` in a maximum or minimum, or is equal if `ties`.
#[track_caller]
fn beside(x: &Tensor, op: BinaryOp, y: &Tensor, ties: bool) -> Tensor {
    let (low, high) = if op == BinaryOp::Max { (y, x) } else { (x, y) };
    low.combine(if ties { BinaryOp::Le } else { BinaryOp::Lt }, high)
}

/// `min(max(x, low), high)`.
#[track_caller]
fn limit(x: &Term, low: f64, high: f64) -> Term {
    x.bounded(BinaryOp::Max, low, false).bounded(BinaryOp::Min, high, false)
}

#[track_caller]
fn softsign(x: &Tensor) -> Tensor {
    let x = x.floating();
    Term::compute(&x, |x| x / (x.abs() + 1.0)).with_rule(&x, |inputs, _, dy| {
        Some(Term::compute2(&inputs[0], dy, |x, dy| {
            let part = (x.abs() + 1.0).recip();
            dy * &part * &part
        }))
    })
}

#[track_caller]
fn logsigmoid(x: &Tensor) -> Tensor {
    Term::compute(x, |x| {
        let y = x.min(&x.number(0.0)) - (-x.abs()).exp().log1p();
        y.ruled(x, |x, _, dy| (-x).sigmoid() * dy)
    })
}

impl Tensor {
    /// Each element limited to `min ..= max`. At a limit that is a number the gradient is 0, at one
    /// that is a tensor each side gets half, as in PyTorch 2.15. An infinite number is no limit.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(x.clamp(-1.0, 2.0)?.to_vec::<f32>()?, [1.0, -1.0, 2.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When operands are tensors whose shapes do not broadcast.
    #[track_caller]
    pub fn clamp(&self, min: impl Operand, max: impl Operand) -> Result<Tensor> {
        let _here = composed();
        let low = self.limited(BinaryOp::Max, &min);
        low.and_then(|x| x.limited(BinaryOp::Min, &max)).named("clamp")
    }

    #[track_caller]
    fn limited(&self, op: BinaryOp, limit: &impl Operand) -> Result<Tensor> {
        let at = limit.lend(self);
        let none = if op == BinaryOp::Max { f64::NEG_INFINITY } else { f64::INFINITY };
        let is_none = at.as_const().is_some_and(|at| at.to_f64() == none);
        let (x, at) = Tensor::unify("clamp", self, &at, op.domain())?;
        Ok(match limit.is_number() {
            true if is_none => x,
            true => x.bounded(op, &at, false),
            false => x.combine(op, &at),
        })
    }

    /// A maximum or minimum with a constant. The gradient is 0 where the constant wins and, unless
    /// `closed`, where both are equal.
    #[track_caller]
    pub(crate) fn bounded(&self, op: BinaryOp, bound: &Tensor, closed: bool) -> Tensor {
        let y = self.combine(op, bound);
        if !self.dtype().is_float() {
            return y;
        }
        let bound = bound.clone();
        y.with_rule(self, move |inputs, _, dy| {
            Some(beside(&inputs[0], op, &bound, closed).select(dy, &dy.like(0.0)))
        })
    }

    /// `min(max(x, 0), 6)`. Integers stay what they are.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([-1f32, 2.0, 7.0], &device)?;
    /// assert_eq!(x.relu6().to_vec::<f32>()?, [0.0, 2.0, 6.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn relu6(&self) -> Tensor {
        self.hardtanh(0.0, 6.0)
    }

    /// `min(max(x, min), max)`: the activation of straight lines; -1 and 1 are usual. Integers stay
    /// what they are, and limits are rounded towards zero for them.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([-3f32, 0.5, 3.0], &device)?;
    /// assert_eq!(x.hardtanh(-1.0, 1.0).to_vec::<f32>()?, [-1.0, 0.5, 1.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn hardtanh(&self, min: f64, max: f64) -> Tensor {
        Term::compute_kept(self, |x| limit(x, min, max))
    }

    /// `x` above zero, `alpha (exp(x / alpha) - 1)` below: smooth for every `alpha`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([f32::NEG_INFINITY, 2.0], &device)?;
    /// assert_eq!(x.celu(0.5).to_vec::<f32>()?, [-0.5, 2.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn celu(&self, alpha: f64) -> Tensor {
        Term::compute(self, |x| {
            let low = x.bounded(BinaryOp::Min, 0.0, true) * (1.0 / alpha);
            x.above(0.0).choose(x, &(Term(low.0.expm1()) * alpha))
        })
    }

    /// `x` above `threshold`, else `value`. Integers stay what they are, and both numbers are rounded
    /// towards zero for them.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([-1f32, 0.5, 3.0], &device)?;
    /// assert_eq!(x.threshold(1.0, 20.0).to_vec::<f32>()?, [20.0, 20.0, 3.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn threshold(&self, threshold: f64, value: f64) -> Tensor {
        // What is not at or below the threshold stays, NaN included.
        Term::compute_kept(self, |x| x.le(&x.number(threshold)).choose(&x.number(value), x))
    }

    /// `x` brought towards zero by `lambda`, and zero between.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([-3f32, 0.5, 3.0], &device)?;
    /// assert_eq!(x.softshrink(1.0).to_vec::<f32>()?, [-2.0, 0.0, 2.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn softshrink(&self, lambda: f64) -> Tensor {
        Term::compute(self, |x| {
            let low = x.below(-lambda).choose(&(x + lambda), &(x * 0.0));
            x.above(lambda).choose(&(x - lambda), &low)
        })
    }

    /// `x` where its magnitude is above `lambda`, else zero.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([-3f32, 0.5, 3.0], &device)?;
    /// assert_eq!(x.hardshrink(1.0).to_vec::<f32>()?, [-3.0, 0.0, 3.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn hardshrink(&self, lambda: f64) -> Tensor {
        Term::compute(self, |x| x.abs().le(&x.number(lambda)).choose(&x.number(0.0), x))
    }

    /// `x` above zero, else `weight * x`: `weight` has one element, or one for each position of
    /// axis 1 (channels).
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[-2f32, -4.0], [3.0, -2.0]], &device)?;
    /// let weight = Tensor::new([0.5f32, 0.25], &device)?;
    /// assert_eq!(x.prelu(&weight)?.to_vec::<f32>()?, [-1.0, -1.0, 3.0, -0.5]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the weight has another number of elements.
    #[track_caller]
    pub fn prelu(&self, weight: &Tensor) -> Result<Tensor> {
        let _here = composed();
        let channels = self.shape().get(1).copied().unwrap_or(1);
        let mut dims = vec![1; self.rank()];
        if weight.numel() == channels && self.rank() > 1 {
            dims[1] = channels;
        } else if weight.numel() != 1 {
            let reason = format!("the weight must have 1 or {channels} elements");
            return Err(Tensor::shape_error("prelu", &[self, weight], reason));
        }
        let x = self.floating();
        // Held at 0 so that infinity, which is not chosen, makes no NaN of the weight's gradient.
        let held = x.bounded(BinaryOp::Min, &x.like(0.0), true);
        let below = weight.reshape(dims).and_then(|w| held.mul(&w)).named("prelu")?;
        let x = x.cast(below.dtype());
        let above = x.like(0.0).combine(BinaryOp::Lt, &x);
        Ok(above.select(&x, &below))
    }

    /// The first half along an axis, multiplied by the sigmoid of the second.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([4f32, 0.0], &device)?;
    /// assert_eq!(x.glu(0)?.to_vec::<f32>()?, [2.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the extent of the axis is odd.
    #[track_caller]
    pub fn glu(&self, axis: isize) -> Result<Tensor> {
        let axis = self.axis("glu", axis)?;
        let extent = self.shape()[axis];
        if extent % 2 == 1 {
            let reason = format!("axis {axis} of extent {extent} has no halves");
            return Err(Tensor::shape_error("glu", &[self], reason));
        }
        self.in_steps("glu", [], |x, []| {
            let x = x.floating();
            let (a, b) =
                (x.slice(axis as isize, ..extent / 2)?, x.slice(axis as isize, extent / 2..)?);
            a.mul(b.sigmoid())
        })
    }

    /// The probabilities of [`Tensor::softmax`] for small elements: softmax of `-x`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 1.0], &device)?;
    /// assert_eq!(x.softmin(0)?.to_vec::<f32>()?, [0.5, 0.5]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range or repeated.
    #[track_caller]
    pub fn softmin(&self, axes: impl super::Axes) -> Result<Tensor> {
        self.floating().neg().softmax(axes).named("softmin")
    }
}
