//! Softmax and the normalisation layers, as compositions the scheduler fuses.
//!
//! Halves are computed in `f32` throughout and rounded once at the end. The statistics are taken
//! in two passes (mean, then the mean of squared differences), which does not cancel.

use super::{Axes, Tensor};
use crate::error::{Named, Result};
use crate::ops::BinaryOp;
use crate::origin::composed;
use crate::shape::Shape;

/// What [`Tensor::batch_norm`] gives.
#[derive(Clone, Debug)]
pub struct BatchNorm {
    /// The normalised tensor, of the input's shape.
    pub output: Tensor,
    /// Mean of each channel, `[channels]`, without history for gradients.
    pub mean: Tensor,
    /// Unbiased variance of each channel, `[channels]`, without history for gradients: what
    /// running statistics are made of. (The output is normalised by the biased one.)
    pub var: Tensor,
}

impl Tensor {
    /// In a floating dtype that does not lose on the way: halves in `f32`.
    #[track_caller]
    fn working(&self) -> Tensor {
        let x = self.floating();
        x.cast(x.dtype().accumulator())
    }

    /// The elements minus the largest along the axes: no exponential overflows then. The shift
    /// cancels in the result, so no gradient goes through it.
    #[track_caller]
    fn shifted(&self, mask: u16) -> Tensor {
        let top = self.reduce(BinaryOp::Max, mask).detach_lazily();
        self.combine(BinaryOp::Sub, &top.broadcast_unchecked(self.shape()))
    }

    /// `exp(x) / sum(exp(x))` along axes, without overflow. A slice of only `-inf` gives NaN.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1000f32, 1000.0, f32::NEG_INFINITY], &device)?;
    /// assert_eq!(x.softmax(-1)?.to_vec::<f32>()?, [0.5, 0.5, 0.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range or repeated.
    #[track_caller]
    pub fn softmax(&self, axes: impl Axes) -> Result<Tensor> {
        let mask = self.axes("softmax", axes)?;
        let x = self.working();
        let e = x.shifted(mask).exp();
        let scale = e.reduce(BinaryOp::Add, mask).recip().broadcast_unchecked(self.shape());
        // From the result, so that backward computes no exponential: dx = (dy - sum(dy * y)) * y.
        let y = e.combine(BinaryOp::Mul, &scale).with_gradient(&[&x], move |_, y, dy| {
            let sum = dy.combine(BinaryOp::Mul, y).reduce(BinaryOp::Add, mask);
            let centred = dy.combine(BinaryOp::Sub, &sum.broadcast_unchecked(y.shape()));
            Ok(vec![Some(centred.combine(BinaryOp::Mul, y))])
        })?;
        Ok(y.cast(self.floating().dtype()))
    }

    /// `x - log(sum(exp(x)))` along axes: the logarithm of [`Tensor::softmax`], accurate where
    /// that underflows.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([0f32, 0.0], &device)?;
    /// assert_eq!(format!("{:.4}", x.log_softmax(-1)?), "[-0.6931 -0.6931]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range or repeated.
    #[track_caller]
    pub fn log_softmax(&self, axes: impl Axes) -> Result<Tensor> {
        let mask = self.axes("log_softmax", axes)?;
        let x = self.working();
        let shifted = x.shifted(mask);
        let sum = shifted.exp().reduce(BinaryOp::Add, mask).log();
        let y = shifted.combine(BinaryOp::Sub, &sum.broadcast_unchecked(self.shape()));
        let y = y.with_gradient(&[&x], move |_, y, dy| {
            let sum = dy.reduce(BinaryOp::Add, mask).broadcast_unchecked(y.shape());
            let share = y.exp().combine(BinaryOp::Mul, &sum);
            Ok(vec![Some(dy.combine(BinaryOp::Sub, &share))])
        })?;
        Ok(y.cast(self.floating().dtype()))
    }

    /// Mean 0 and variance 1 along the axes of `mask`.
    ///
    /// The gradient is `dx = (dy - mean(dy) - y * mean(dy * y)) / std` (Ioffe and Szegedy 2015), whose
    /// means do not wait for one another.
    #[track_caller]
    fn standardised(&self, mask: u16, eps: f64) -> Tensor {
        self.standardised_by(mask, eps).0
    }

    /// [`Tensor::standardised`], with the mean and the variance that it is computed by.
    #[track_caller]
    fn standardised_by(&self, mask: u16, eps: f64) -> (Tensor, Tensor, Tensor) {
        let mean = self.mean_of(mask);
        let centred = self.combine(BinaryOp::Sub, &mean.broadcast_unchecked(self.shape()));
        let (inverse, var) = centred.inverse_size_by(mask, eps);
        let y = centred.combine(BinaryOp::Mul, &inverse);
        let rule = move |inputs: &[Tensor], y: &Tensor, dy: &Tensor| {
            let (_, inverse) = inputs[0].moments(mask, eps);
            let mean = |x: &Tensor| x.mean_of(mask).broadcast_unchecked(x.shape());
            let along = y.combine(BinaryOp::Mul, &mean(&dy.combine(BinaryOp::Mul, y)));
            let across = dy.combine(BinaryOp::Sub, &mean(dy)).combine(BinaryOp::Sub, &along);
            Ok(vec![Some(across.combine(BinaryOp::Mul, &inverse))])
        };
        let y = y.with_gradient(&[self], rule).expect("invariant: one input is not too many");
        (y, mean, var)
    }

    /// The differences from the mean along the axes of `mask`, and one over their size.
    #[track_caller]
    fn moments(&self, mask: u16, eps: f64) -> (Tensor, Tensor) {
        let mean = self.mean_of(mask).broadcast_unchecked(self.shape());
        let centred = self.combine(BinaryOp::Sub, &mean);
        let inverse = centred.inverse_size(mask, eps);
        (centred, inverse)
    }

    /// `1 / sqrt(mean(x^2) + eps)` along the axes of `mask`, in the shape of `self`.
    #[track_caller]
    fn inverse_size(&self, mask: u16, eps: f64) -> Tensor {
        self.inverse_size_by(mask, eps).0
    }

    /// [`Tensor::inverse_size`], with the mean of the squares.
    #[track_caller]
    fn inverse_size_by(&self, mask: u16, eps: f64) -> (Tensor, Tensor) {
        let size = self.square().mean_of(mask);
        let inverse = size.combine(BinaryOp::Add, &size.like(eps)).rsqrt();
        (inverse.broadcast_unchecked(self.shape()), size)
    }

    /// `self * weight + bias`, where given; both must broadcast to the shape of `self`.
    #[track_caller]
    fn affine(
        self,
        op: &'static str,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
    ) -> Result<Tensor> {
        let fits = |t: &Tensor| t.shape().broadcasts_to(self.shape());
        for parameter in [weight, bias].into_iter().flatten() {
            if !fits(parameter) {
                let reason = "weight or bias does not broadcast to the input".to_owned();
                return Err(Tensor::shape_error(op, &[&self, parameter], reason));
            }
            if !parameter.dtype().is_float() {
                let reason = "weight and bias must be floats".to_owned();
                return Err(Tensor::dtype_error(op, &[&self, parameter], reason));
            }
        }
        let mut y = self;
        if let Some(weight) = weight {
            y = y.mul(weight).named(op)?;
        }
        if let Some(bias) = bias {
            y = y.add(bias).named(op)?;
        }
        Ok(y)
    }

    #[track_caller]
    fn check_eps(op: &'static str, eps: f64) -> Result<()> {
        if eps >= 0.0 && eps.is_finite() {
            return Ok(());
        }
        Err(Tensor::argument_error(op, format!("eps is {eps}, it must be finite and not negative")))
    }

    /// Layer normalisation (Ba et al. 2016): mean 0 and variance 1 along `axes` (usually -1),
    /// `(x - mean) / sqrt(var + eps)`, then times `weight` plus `bias`, which broadcast (so have
    /// the shape of the last axes).
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 2.0, 3.0, 4.0], &device)?;
    /// let y = x.layer_norm(-1, None, None, 1e-5)?;
    /// assert_eq!(format!("{y:.4}"), "[-1.3416 -0.4472  0.4472  1.3416]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range, or weight or bias do not broadcast to the input.
    #[track_caller]
    pub fn layer_norm(
        &self,
        axes: impl Axes,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        Tensor::check_eps("layer_norm", eps)?;
        let mask = self.axes("layer_norm", axes)?;
        let y = self.working().standardised(mask, eps);
        Ok(y.affine("layer_norm", weight, bias)?.cast(self.floating().dtype()))
    }

    /// Root mean square normalisation (Zhang and Sennrich 2019): `x / sqrt(mean(x^2) + eps)` along
    /// `axes`, then times `weight`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([3f32, 4.0], &device)?;
    /// assert_eq!(format!("{:.4}", x.rms_norm(-1, None, 0.0)?), "[0.8485 1.1314]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range, or the weight does not broadcast to the input.
    #[track_caller]
    pub fn rms_norm(&self, axes: impl Axes, weight: Option<&Tensor>, eps: f64) -> Result<Tensor> {
        Tensor::check_eps("rms_norm", eps)?;
        let mask = self.axes("rms_norm", axes)?;
        let x = self.working();
        let y = x.combine(BinaryOp::Mul, &x.inverse_size(mask, eps));
        Ok(y.affine("rms_norm", weight, None)?.cast(self.floating().dtype()))
    }

    /// A vector of one number per channel, laid along axis 1 of `self`.
    #[track_caller]
    fn per_channel(&self, op: &'static str, vector: &Tensor) -> Result<Tensor> {
        let channels = self.shape()[1];
        if vector.shape().dims() != [channels] {
            let reason = format!("one number for each of {channels} channels is needed");
            return Err(Tensor::shape_error(op, &[self, vector], reason));
        }
        let mut dims = vec![1; self.rank()];
        dims[1] = channels;
        Ok(vector.reshape_unchecked(dims.into()))
    }

    #[track_caller]
    fn channel_affine(
        self,
        op: &'static str,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
    ) -> Result<Tensor> {
        let _here = composed();
        let weight = weight.map(|w| self.per_channel(op, w)).transpose().named(op)?;
        let bias = bias.map(|b| self.per_channel(op, b)).transpose().named(op)?;
        self.affine(op, weight.as_ref(), bias.as_ref())
    }

    #[track_caller]
    fn check_channels(&self, op: &'static str) -> Result<()> {
        if (2..=Shape::MAX_RANK).contains(&self.rank()) {
            return Ok(());
        }
        let reason = "needs a batch axis and a channel axis".to_owned();
        Err(Tensor::shape_error(op, &[self], reason))
    }

    /// Batch normalisation in training (Ioffe and Szegedy 2015): each channel (axis 1) has mean 0
    /// and variance 1 over all other axes, then is scaled by `weight` and moved by `bias`, both
    /// `[channels]`. The statistics come along, for the running averages.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 10.0], [3.0, 30.0]], &device)?;
    /// let norm = x.batch_norm(None, None, 0.0)?;
    /// assert_eq!(norm.output.to_vec::<f32>()?, [-1.0, -1.0, 1.0, 1.0]);
    /// assert_eq!(norm.mean.to_vec::<f32>()?, [2.0, 20.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Below rank 2, or when weight or bias are not `[channels]`.
    #[track_caller]
    pub fn batch_norm(
        &self,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<BatchNorm> {
        const OP: &str = "batch_norm";
        Tensor::check_eps(OP, eps)?;
        self.check_channels(OP)?;
        let mask =
            (0..self.rank()).filter(|&axis| axis != 1).fold(0, |mask, axis| mask | 1 << axis);
        let x = self.working();
        let (y, mean, var) = x.standardised_by(mask, eps);
        let n = x.reduced_count(mask) as f64;
        let unbiased = var.combine(BinaryOp::Mul, &var.like(n / (n - 1.0).max(1.0)));
        Ok(BatchNorm {
            output: y.channel_affine(OP, weight, bias)?.cast(self.floating().dtype()),
            mean: mean.without(mask).detach(),
            var: unbiased.without(mask).detach(),
        })
    }

    /// Batch normalisation with given statistics, both `[channels]`: what a trained network does.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32], [3.0]], &device)?;
    /// let (mean, var) = (Tensor::new([1f32], &device)?, Tensor::new([4f32], &device)?);
    /// assert_eq!(x.batch_norm_with(&mean, &var, None, None, 0.0)?.to_vec::<f32>()?, [0.0, 1.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Below rank 2, or when an argument is not `[channels]`.
    #[track_caller]
    pub fn batch_norm_with(
        &self,
        mean: &Tensor,
        var: &Tensor,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        const OP: &str = "batch_norm_with";
        let _here = composed();
        Tensor::check_eps(OP, eps)?;
        self.check_channels(OP)?;
        let x = self.working();
        let (mean, var) = (x.per_channel(OP, &mean.widened())?, x.per_channel(OP, &var.widened())?);
        let scale = var.add(eps)?.rsqrt();
        let y = x.sub(&mean).and_then(|x| x.mul(&scale)).named(OP)?;
        Ok(y.channel_affine(OP, weight, bias)?.cast(self.floating().dtype()))
    }

    /// Group normalisation (Wu and He 2018): the channels (axis 1) in `groups` equal groups, each
    /// with mean 0 and variance 1 per batch element, then scaled by `weight` and moved by `bias`,
    /// both `[channels]`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 3.0, 10.0, 30.0]], &device)?;
    /// assert_eq!(x.group_norm(2, None, None, 0.0)?.to_vec::<f32>()?, [-1.0, 1.0, -1.0, 1.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Below rank 2, when `groups` does not divide the channels, or when weight or bias are not
    /// `[channels]`.
    #[track_caller]
    pub fn group_norm(
        &self,
        groups: usize,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        const OP: &str = "group_norm";
        Tensor::check_eps(OP, eps)?;
        self.check_channels(OP)?;
        let (batch, channels) = (self.shape()[0], self.shape()[1]);
        if groups == 0 || !channels.is_multiple_of(groups) {
            let reason = format!("{groups} groups do not divide {channels} channels");
            return Err(Tensor::shape_error(OP, &[self], reason));
        }
        let mut y = self.working();
        // Of nothing there is nothing to normalise, and its extents may multiply beyond `usize`.
        if y.numel() > 0 {
            let grouped = Shape::from([batch, groups, y.numel() / batch.saturating_mul(groups)]);
            let x = y.reshape_unchecked(grouped);
            y = x.standardised(0b100, eps).reshape_unchecked(self.shape().clone());
        }
        Ok(y.channel_affine(OP, weight, bias)?.cast(self.floating().dtype()))
    }

    /// Divided by the Euclidean norm along axes, or by `eps` if that is larger.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([3f32, 4.0], &device)?;
    /// assert_eq!(format!("{:.4}", x.normalize(0, 1e-12)?), "[0.6 0.8]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range or repeated.
    #[track_caller]
    pub fn normalize(&self, axes: impl Axes, eps: f64) -> Result<Tensor> {
        Tensor::check_eps("normalize", eps)?;
        let mask = self.axes("normalize", axes)?;
        let x = self.working();
        let norm = x.square().reduce(BinaryOp::Add, mask).root();
        let scale = norm.bounded(BinaryOp::Max, &norm.like(eps), false).recip();
        let y = x.combine(BinaryOp::Mul, &scale.broadcast_unchecked(x.shape()));
        Ok(y.cast(self.floating().dtype()))
    }
}
