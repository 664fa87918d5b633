//! Activations: elementwise functions between layers, and those over one axis.
//!
//! Each is what PyTorch's module of the same name computes, composed of tensor methods, so it
//! fuses with its surroundings. Settings are public fields; `Default` has PyTorch's.

use crate::init::OfLayer;
use crate::{Forward, Init, Module, Path, Visitor};
use zyx_core::{Param, Result, Tensor};

macro_rules! plain {
    ($($(#[$doc:meta])* $name:ident |$x:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;

        impl Module for $name {
            fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
        }

        impl Forward for $name {
            #[track_caller]
            fn forward(&self, $x: &Tensor) -> Result<Tensor> {
                $body
            }
        }
    )*};
}

plain! {
    /// `max(x, 0)`.
    Relu |x| Ok(x.relu());
    /// The Gaussian error linear unit in its tanh form.
    Gelu |x| Ok(x.gelu());
    /// The Gaussian error linear unit by the error function.
    GeluExact |x| Ok(x.gelu_exact());
    /// `x * sigmoid(x)`.
    Silu |x| Ok(x.silu());
    /// `x * tanh(softplus(x))`.
    Mish |x| Ok(x.mish());
    /// `1 / (1 + e^-x)`.
    Sigmoid |x| Ok(x.sigmoid());
    /// Hyperbolic tangent.
    Tanh |x| Ok(x.tanh());
    /// The self-normalising unit.
    Selu |x| Ok(x.selu());
    /// `log(1 + e^x)`.
    Softplus |x| Ok(x.softplus());
    /// `min(max(x, 0), 6)`.
    Relu6 |x| Ok(x.relu6());
    /// `log(sigmoid(x))`, exact far below zero.
    LogSigmoid |x| Ok(x.logsigmoid());
    /// `x / (1 + |x|)`.
    Softsign |x| Ok(x.softsign());
    /// `x - tanh(x)`.
    Tanhshrink |x| Ok(x.tanhshrink());
    /// `min(max(x / 6 + 1/2, 0), 1)`.
    Hardsigmoid |x| Ok(x.hardsigmoid());
    /// `x * hardsigmoid(x)`.
    Hardswish |x| Ok(x.hardswish());
}

macro_rules! with_settings {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty = $default:expr,)* }
        |$s:ident, $x:ident| $body:expr;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Module)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default,)* }
            }
        }

        impl Forward for $name {
            #[track_caller]
            fn forward(&self, $x: &Tensor) -> Result<Tensor> {
                let $s = self;
                $body
            }
        }
    )*};
}

with_settings! {
    /// `x` where positive, else `slope * x`.
    LeakyRelu {
        /// The slope below zero.
        slope: f64 = 0.01,
    } |s, x| Ok(x.leaky_relu(s.slope));
    /// `x` where positive, else `alpha (e^x - 1)`.
    Elu {
        /// The limit far below zero is `-alpha`.
        alpha: f64 = 1.0,
    } |s, x| Ok(x.elu(s.alpha));
    /// `max(x, 0) + min(alpha (e^(x / alpha) - 1), 0)`.
    Celu {
        /// The limit far below zero is `-alpha`; not 0.
        alpha: f64 = 1.0,
    } |s, x| Ok(x.celu(s.alpha));
    /// `x` between two limits.
    Hardtanh {
        /// The lower limit.
        min: f64 = -1.0,
        /// The upper limit.
        max: f64 = 1.0,
    } |s, x| Ok(x.hardtanh(s.min, s.max));
    /// `x` where it is beyond `lambda` on either side, else 0.
    Hardshrink {
        /// Half of the gap.
        lambda: f64 = 0.5,
    } |s, x| Ok(x.hardshrink(s.lambda));
    /// `x` moved towards 0 by `lambda`, 0 within it.
    Softshrink {
        /// Half of the gap.
        lambda: f64 = 0.5,
    } |s, x| Ok(x.softshrink(s.lambda));
    /// `x` where it is above the threshold, else `value`.
    Threshold {
        /// What `x` must exceed.
        threshold: f64 = 0.0,
        /// What stands in its place.
        value: f64 = 0.0,
    } |s, x| Ok(x.threshold(s.threshold, s.value));
    /// `e^x` divided by its sum over an axis.
    Softmax {
        /// The axis that sums to 1.
        axis: isize = -1,
    } |s, x| x.softmax(s.axis);
    /// The logarithm of [`Softmax`].
    LogSoftmax {
        /// The axis whose exponentials sum to 1.
        axis: isize = -1,
    } |s, x| x.log_softmax(s.axis);
    /// [`Softmax`] of `-x`.
    Softmin {
        /// The axis that sums to 1.
        axis: isize = -1,
    } |s, x| x.neg().softmax(s.axis);
    /// The first half of an axis times the sigmoid of the second (Dauphin et al. 2017).
    Glu {
        /// The axis that is halved.
        axis: isize = -1,
    } |s, x| gated(x, s.axis, Tensor::sigmoid);
    /// The first half of an axis times [`Silu`] of the second, the gate of many language models
    /// (Shazeer 2020).
    Swiglu {
        /// The axis that is halved.
        axis: isize = -1,
    } |s, x| gated(x, s.axis, Tensor::silu);
}

#[track_caller]
fn gated(x: &Tensor, axis: isize, gate: impl Fn(&Tensor) -> Tensor) -> Result<Tensor> {
    let halves = x.chunk(2, axis)?;
    match &halves[..] {
        [a, b] if a.shape().same(b.shape()) => a.mul(gate(b)),
        _ => {
            let reason = format!("axis {axis} of shape {} is not even", x.shape());
            Err(Init::refuse("Glu", reason))
        }
    }
}

/// `x` where positive, else a learned slope times `x` (He et al. 2015). Parameter `weight`, `[1]`
/// or one for each channel (axis 1), 0.25 at first.
#[derive(Clone, Debug, Module)]
pub struct PRelu {
    /// The slopes below zero.
    pub weight: Param,
}

impl PRelu {
    /// With `channels` slopes: 1, or as many as axis 1 has.
    ///
    /// ```
    /// # use zyx::nn::{Forward, Init, PRelu};
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// # let init = &mut Init::new(0, &device);
    /// let layer = PRelu::new(1, init)?;
    /// let y = layer.forward(&Tensor::new([-4f32, 2.0], &device)?)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, 2.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the device fails.
    #[track_caller]
    pub fn new(channels: usize, init: &mut Init) -> Result<PRelu> {
        Ok(PRelu { weight: Param::new(init.full([channels], 0.25)?) })
    }
}

impl Forward for PRelu {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.prelu(&self.weight.tensor()).of_layer(&self.weight)
    }
}
