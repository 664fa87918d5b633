//! Instance normalisation: [`InstanceNorm1d`], [`InstanceNorm2d`], [`InstanceNorm3d`].
//!
//! Each channel of each sample by its own statistics; in evaluation by running ones, if the layer
//! keeps them (Ulyanov et al. 2016). Samples without values leave the running statistics as they
//! are; a single position has no variance and is refused.

use crate::batch_norm::{check_values, move_towards, statistics};
use crate::init::OfLayer;
use crate::normalization::{check_image, gain_and_offset, tensors};
use crate::{Forward, Init, Mode, Module};
use zyx_core::{Param, Result, Shape, Tensor};

macro_rules! instance_norms {
    ($($name:ident $spatial:literal $shape:literal;)*) => {$(
        #[doc = concat!("Normalisation of each channel of each sample of `", $shape, "` over its positions.")]
        ///
        /// Parameters `weight` (ones) and `bias` (zeros), `[channels]`, of the affine kind; state
        /// `running_mean` (zeros), `running_var` (ones) and `num_batches_tracked`, which stays 0 as in
        /// PyTorch, of the kind that keeps statistics.
        #[derive(Clone, Debug, Module)]
        pub struct $name {
            /// The gain of each channel.
            pub weight: Option<Param>,
            /// The offset of each channel.
            pub bias: Option<Param>,
            /// Running mean of each channel.
            pub running_mean: Option<Param>,
            /// Running unbiased variance of each channel.
            pub running_var: Option<Param>,
            /// A scalar `i64`.
            pub num_batches_tracked: Option<Param>,
            /// Number of channels.
            pub channels: usize,
            /// The share of the newest batch in the running statistics; 0.1. None leaves them as they
            /// are.
            pub momentum: Option<f64>,
            /// Added to the variance; 1e-5.
            pub eps: f64,
            /// Train or eval.
            pub mode: Mode,
        }

        impl $name {
            /// Without parameters, as in PyTorch.
            ///
            /// ```
            /// let layer = zyx::nn::InstanceNorm2d::new(3);
            /// assert!(layer.weight.is_none() && layer.running_mean.is_none());
            /// ```
            pub fn new(channels: usize) -> $name {
                $name {
                    weight: None,
                    bias: None,
                    running_mean: None,
                    running_var: None,
                    num_batches_tracked: None,
                    channels,
                    momentum: Some(0.1),
                    eps: 1e-5,
                    mode: Mode::default(),
                }
            }

            /// With gains and offsets.
            ///
            /// ```
            /// # use zyx::nn::{Init, InstanceNorm2d};
            /// # let device = zyx::runtime().device("reference")?;
            /// # let init = &mut Init::new(0, &device);
            /// let layer = InstanceNorm2d::affine(3, init)?;
            /// assert!(layer.weight.is_some());
            /// # Ok::<(), zyx::Error>(())
            /// ```
            ///
            /// # Errors
            /// When the device fails.
            #[track_caller]
            pub fn affine(channels: usize, init: &mut Init) -> Result<$name> {
                let (weight, bias) = gain_and_offset(&Shape::from([channels]), init)?;
                Ok($name { weight, bias, ..$name::new(channels) })
            }

            /// With running statistics, by which it normalises in evaluation.
            ///
            /// ```
            /// # use zyx::nn::{Init, InstanceNorm2d};
            /// # let device = zyx::runtime().device("reference")?;
            /// # let init = &mut Init::new(0, &device);
            /// let layer = InstanceNorm2d::new(3).with_statistics(init)?;
            /// assert!(layer.running_mean.is_some());
            /// # Ok::<(), zyx::Error>(())
            /// ```
            ///
            /// # Errors
            /// When the device fails.
            #[track_caller]
            pub fn with_statistics(self, init: &mut Init) -> Result<$name> {
                let [mean, var, count] = statistics(self.channels, init)?;
                Ok($name {
                    running_mean: Some(mean),
                    running_var: Some(var),
                    num_batches_tracked: Some(count),
                    ..self
                })
            }
        }

        impl Forward for $name {
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                let named = self.weight.as_ref().or(self.running_mean.as_ref());
                let check = check_image(stringify!($name), x, &[$spatial], Some(self.channels));
                check.of_layer(named)?;
                let [weight, bias] = tensors([&self.weight, &self.bias]);
                let (weight, bias) = (weight.as_ref(), bias.as_ref());
                let running = self.running_mean.as_ref().zip(self.running_var.as_ref());
                if let Some((mean, var)) = running.filter(|_| !self.mode.is_training()) {
                    let (mean, var) = (mean.tensor(), var.tensor());
                    return x.batch_norm_with(&mean, &var, weight, bias, self.eps);
                }
                let positions = x.shape()[2..].iter().product();
                check_values(stringify!($name), positions).of_layer(named)?;
                if let (Some((mean, var)), Some(momentum)) = (running, self.momentum)
                    && x.numel() > 0
                {
                    track([mean, var], x, momentum)?;
                }
                x.group_norm(self.channels, weight, bias, self.eps)
            }
        }
    )*};
}

instance_norms! {
    InstanceNorm1d 1 "[n, channels, length]";
    InstanceNorm2d 2 "[n, channels, height, width]";
    InstanceNorm3d 3 "[n, channels, depth, height, width]";
}

/// Running statistics moved towards the means, over a batch, of its samples' own.
#[track_caller]
fn track(running: [&Param; 2], x: &Tensor, momentum: f64) -> Result<()> {
    let positions: Vec<isize> = (2..x.rank() as isize).collect();
    let x = x.detach().cast(x.dtype().accumulator());
    let mean = x.mean(&positions[..])?.mean(0)?;
    let var = x.var(&positions[..], 1)?.mean(0)?;
    move_towards(running, [&mean, &var], momentum)
}
