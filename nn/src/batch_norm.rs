//! Batch normalisation: [`BatchNorm1d`], [`BatchNorm2d`], [`BatchNorm3d`].
//!
//! In training by the statistics of the batch, which also move the running ones; in evaluation by
//! the running ones (Ioffe and Szegedy 2015). A batch without values leaves the running statistics
//! as they are and counts as a batch; one value per channel has no variance and is refused.
//!
//! New statistics are pending tensors until the optimizer's step computes them along (it must be
//! made with [`Module::parameters`], which includes them). A second forward pass before that
//! computes the first one's statistics by itself, so that no chain of passes builds up.

use crate::init::OfLayer;
use crate::normalization::{check_image, gain_and_offset, tensors};
use crate::{Forward, Init, Mode, Module};
use std::panic::Location;
use zyx_core::{Operand, Param, Result, Shape, Tensor, attribute};

macro_rules! batch_norms {
    ($($name:ident $spatial:expr, $shape:literal;)*) => {$(
        #[doc = concat!("Batch normalisation of `", $shape, "`.")]
        ///
        /// Parameters `weight` (ones) and `bias` (zeros), state `running_mean` (zeros),
        /// `running_var` (ones), both `f32`, and `num_batches_tracked`.
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
            /// Batches the running statistics have seen, a scalar `i64`.
            pub num_batches_tracked: Option<Param>,
            /// Number of channels.
            pub channels: usize,
            /// The share of the newest batch in the running statistics; 0.1. None for as much as of
            /// each batch before it.
            pub momentum: Option<f64>,
            /// Added to the variance; 1e-5.
            pub eps: f64,
            /// Train or eval.
            pub mode: Mode,
        }

        impl $name {
            /// For `channels` channels.
            ///
            /// ```
            /// # use zyx::nn::{BatchNorm1d, Forward, Init, Module};
            /// # use zyx::{DType, Tensor};
            /// # let device = zyx::runtime().device("reference")?;
            /// # let init = &mut Init::new(0, &device);
            /// let layer = BatchNorm1d::new(3, init)?;
            /// let x = Tensor::ones([4, 3], DType::F32, &device);
            /// assert_eq!(layer.forward(&x)?.shape().dims(), [4, 3]);
            /// assert_eq!(layer.named_parameters()[2].0, "running_mean");
            /// # Ok::<(), zyx::Error>(())
            /// ```
            ///
            /// # Errors
            /// When the device fails.
            #[track_caller]
            pub fn new(channels: usize, init: &mut Init) -> Result<$name> {
                let (weight, bias) = gain_and_offset(&Shape::from([channels]), init)?;
                Ok($name { weight, bias, ..$name::plain(channels, init)? })
            }

            /// Without gains and offsets.
            ///
            /// ```
            /// # use zyx::nn::{BatchNorm1d, Init};
            /// # let device = zyx::runtime().device("reference")?;
            /// # let init = &mut Init::new(0, &device);
            /// let layer = BatchNorm1d::plain(3, init)?;
            /// assert!(layer.weight.is_none() && layer.running_mean.is_some());
            /// # Ok::<(), zyx::Error>(())
            /// ```
            ///
            /// # Errors
            /// When the device fails.
            #[track_caller]
            pub fn plain(channels: usize, init: &mut Init) -> Result<$name> {
                let [mean, var, count] = statistics(channels, init)?;
                Ok($name {
                    weight: None,
                    bias: None,
                    running_mean: Some(mean),
                    running_var: Some(var),
                    num_batches_tracked: Some(count),
                    channels,
                    momentum: Some(0.1),
                    eps: 1e-5,
                    mode: Mode::default(),
                })
            }

            /// Without running statistics: in evaluation, too, by those of the batch.
            ///
            /// ```
            /// # use zyx::nn::{BatchNorm1d, Init};
            /// # let device = zyx::runtime().device("reference")?;
            /// # let init = &mut Init::new(0, &device);
            /// let layer = BatchNorm1d::new(3, init)?.without_statistics();
            /// assert!(layer.weight.is_some() && layer.running_mean.is_none());
            /// # Ok::<(), zyx::Error>(())
            /// ```
            pub fn without_statistics(self) -> $name {
                $name { running_mean: None, running_var: None, num_batches_tracked: None, ..self }
            }
        }

        impl Forward for $name {
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                let named = self.weight.as_ref().or(self.running_mean.as_ref());
                let check = check_image(stringify!($name), x, $spatial, Some(self.channels));
                check.of_layer(named)?;
                let [weight, bias] = tensors([&self.weight, &self.bias]);
                let (weight, bias) = (weight.as_ref(), bias.as_ref());
                let values: usize = [&x.shape()[..1], &x.shape()[2..]].concat().iter().product();
                let is_tracking = self.running_mean.is_some() && self.running_var.is_some();
                if self.mode.is_training() || !is_tracking {
                    check_values(stringify!($name), values).of_layer(named)?;
                }
                let running = (&self.running_mean, &self.running_var, &self.num_batches_tracked);
                let (Some(mean), Some(var), Some(count)) = running else {
                    return Ok(x.batch_norm(weight, bias, self.eps)?.output);
                };
                if !self.mode.is_training() {
                    return x.batch_norm_with(&mean.tensor(), &var.tensor(), weight, bias, self.eps);
                }
                let normalised = x.batch_norm(weight, bias, self.eps)?;
                let new = [&normalised.mean, &normalised.var];
                let new = (values > 0).then_some(new);
                track([mean, var, count], new, self.momentum)?;
                Ok(normalised.output)
            }
        }
    )*};
}

batch_norms! {
    BatchNorm1d &[0, 1], "[n, channels]` or `[n, channels, length]";
    BatchNorm2d &[2], "[n, channels, height, width]";
    BatchNorm3d &[3], "[n, channels, depth, height, width]";
}

/// Running statistics and how many batches they have seen: none.
#[track_caller]
pub(crate) fn statistics(channels: usize, init: &Init) -> Result<[Param; 3]> {
    let wide = Init { dtype: init.dtype.accumulator(), ..init.clone() };
    let seen = Tensor::from_slice(&[0i64], (), &init.device)?;
    Ok([wide.full([channels], 0.0)?, wide.full([channels], 1.0)?, seen].map(Param::state))
}

/// Running statistics moved towards those of a batch, unless the batch has none.
#[track_caller]
fn track(running: [&Param; 3], new: Option<[&Tensor; 2]>, momentum: Option<f64>) -> Result<()> {
    let [mean, var, count] = running;
    // Else the count would be an ever longer sum while no optimizer computes it.
    Tensor::realize_all(&running.map(Param::tensor))?;
    let seen = count.tensor().add(1)?;
    match (new, momentum) {
        (None, _) => (),
        (Some(new), Some(share)) => move_towards([mean, var], new, share)?,
        (Some(new), None) => {
            move_towards([mean, var], new, &seen.cast(mean.tensor().dtype()).recip())?;
        }
    }
    count.set(&seen)
}

/// Refuses statistics of a single value, whose variance is unknown.
#[track_caller]
pub(crate) fn check_values(op: &'static str, values: usize) -> Result<()> {
    if values == 1 {
        let reason = "statistics need more than one value".to_owned();
        return Err(Init::refuse(op, reason));
    }
    Ok(())
}

/// Running statistics moved by a share of the way towards new ones.
#[track_caller]
pub(crate) fn move_towards(
    running: [&Param; 2],
    new: [&Tensor; 2],
    share: impl Operand + Copy,
) -> Result<()> {
    let old = running.map(Param::tensor);
    Tensor::realize_all(&old)?;
    let moved = |(old, new): (&Tensor, &Tensor)| old.lerp(new.cast(old.dtype()), share);
    let moved: Vec<Tensor> =
        attribute(Location::caller(), || old.iter().zip(new).map(moved).collect::<Result<_>>())?;
    running.into_iter().zip(&moved).try_for_each(|(param, new)| param.set(new))
}
