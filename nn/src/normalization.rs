//! Normalisations: [`LayerNorm`], [`RmsNorm`], [`GroupNorm`], [`BatchNorm2d`].

use crate::{Forward, Init, Mode, Module};
use zyx_core::{Param, Result, Shape, Tensor};

/// Layer normalisation over the last axes. Parameters `weight` (ones) and `bias` (zeros) of their
/// shape.
#[derive(Clone, Debug, Module)]
pub struct LayerNorm {
    /// The gain.
    pub weight: Param,
    /// The offset.
    pub bias: Param,
    /// Added to the variance; 1e-5.
    pub eps: f64,
}

impl LayerNorm {
    /// Over the last axes of extents `shape`.
    ///
    /// # Errors
    /// When the device fails.
    #[track_caller]
    pub fn new(shape: impl Into<Shape>, init: &mut Init) -> Result<LayerNorm> {
        let shape = shape.into();
        let weight = Param::new(init.full(shape.clone(), 1.0)?);
        Ok(LayerNorm { weight, bias: Param::new(init.full(shape, 0.0)?), eps: 1e-5 })
    }
}

impl Forward for LayerNorm {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let weight = self.weight.tensor();
        x.layer_norm(&last_axes(&weight)[..], Some(&weight), Some(&self.bias.tensor()), self.eps)
    }
}

/// The axes a parameter of this shape spans, counted from the end.
fn last_axes(parameter: &Tensor) -> Vec<isize> {
    (1..=parameter.rank() as isize).map(|axis| -axis).collect()
}

/// Root mean square normalisation over the last axes. Parameter `weight` (ones) of their shape.
#[derive(Clone, Debug, Module)]
pub struct RmsNorm {
    /// The gain.
    pub weight: Param,
    /// Added to the mean square; 1e-6.
    pub eps: f64,
}

impl RmsNorm {
    /// Over the last axes of extents `shape`.
    ///
    /// # Errors
    /// When the device fails.
    #[track_caller]
    pub fn new(shape: impl Into<Shape>, init: &mut Init) -> Result<RmsNorm> {
        Ok(RmsNorm { weight: Param::new(init.full(shape, 1.0)?), eps: 1e-6 })
    }
}

impl Forward for RmsNorm {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let weight = self.weight.tensor();
        x.rms_norm(&last_axes(&weight)[..], Some(&weight), self.eps)
    }
}

/// Group normalisation of `[n, channels, ..]`. Parameters `weight` (ones) and `bias` (zeros),
/// `[channels]`.
#[derive(Clone, Debug, Module)]
pub struct GroupNorm {
    /// The gain of each channel.
    pub weight: Param,
    /// The offset of each channel.
    pub bias: Param,
    /// Into how many groups the channels go.
    pub groups: usize,
    /// Added to the variance; 1e-5.
    pub eps: f64,
}

impl GroupNorm {
    /// `channels` channels in `groups` equal groups.
    ///
    /// # Errors
    /// When the groups do not divide the channels, or the device fails.
    #[track_caller]
    pub fn new(groups: usize, channels: usize, init: &mut Init) -> Result<GroupNorm> {
        if groups == 0 || !channels.is_multiple_of(groups) {
            let reason = format!("{groups} groups do not divide {channels} channels");
            return Err(Init::refuse("GroupNorm::new", reason));
        }
        let weight = Param::new(init.full([channels], 1.0)?);
        Ok(GroupNorm { weight, bias: Param::new(init.full([channels], 0.0)?), groups, eps: 1e-5 })
    }
}

impl Forward for GroupNorm {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (weight, bias) = (self.weight.tensor(), self.bias.tensor());
        x.group_norm(self.groups, Some(&weight), Some(&bias), self.eps)
    }
}

/// Batch normalisation of `[n, channels, ..]`. In training by the statistics of the batch, which
/// also move the running ones; in evaluation by the running ones.
///
/// Parameters `weight` (ones) and `bias` (zeros), state `running_mean` (zeros), `running_var`
/// (ones), both `f32`, and `num_batches_tracked`. New statistics are pending tensors until the
/// optimizer's step computes them along (it must be made with
/// [`Module::parameters`], which includes them). A second forward pass before that computes the
/// first one's statistics by itself, so that no chain of passes builds up.
#[derive(Clone, Debug, Module)]
pub struct BatchNorm2d {
    /// The gain of each channel.
    pub weight: Param,
    /// The offset of each channel.
    pub bias: Param,
    /// Running mean of each channel.
    pub running_mean: Param,
    /// Running unbiased variance of each channel.
    pub running_var: Param,
    /// Batches the running statistics have seen, a scalar `i64`.
    pub num_batches_tracked: Param,
    /// The share of the newest batch in the running statistics; 0.1.
    pub momentum: f64,
    /// Added to the variance; 1e-5.
    pub eps: f64,
    /// Train or eval.
    pub mode: Mode,
}

impl BatchNorm2d {
    /// For `channels` channels.
    ///
    /// # Errors
    /// When the device fails.
    #[track_caller]
    pub fn new(channels: usize, init: &mut Init) -> Result<BatchNorm2d> {
        let statistics = Init { dtype: init.dtype.accumulator(), ..init.clone() };
        Ok(BatchNorm2d {
            weight: Param::new(init.full([channels], 1.0)?),
            bias: Param::new(init.full([channels], 0.0)?),
            running_mean: Param::state(statistics.full([channels], 0.0)?),
            running_var: Param::state(statistics.full([channels], 1.0)?),
            num_batches_tracked: Param::state(Tensor::from_slice(&[0i64], (), &init.device)?),
            momentum: 0.1,
            eps: 1e-5,
            mode: Mode::default(),
        })
    }

    /// The running statistics moved towards those of a batch.
    fn track(&self, mean: &Tensor, var: &Tensor) -> Result<()> {
        let places = [&self.running_mean, &self.running_var, &self.num_batches_tracked];
        let [old_mean, old_var, count] = places.map(Param::tensor);
        Tensor::realize_all([&old_mean, &old_var, &count])?;
        let moved = |old: &Tensor, new: &Tensor| -> Result<Tensor> {
            old.lerp(new.cast(old.dtype()), self.momentum)
        };
        self.running_mean.set(&moved(&old_mean, mean)?)?;
        self.running_var.set(&moved(&old_var, var)?)?;
        self.num_batches_tracked.set(&count.add(1)?)
    }
}

impl Forward for BatchNorm2d {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (weight, bias) = (self.weight.tensor(), self.bias.tensor());
        if !self.mode.is_training() {
            let (mean, var) = (self.running_mean.tensor(), self.running_var.tensor());
            return x.batch_norm_with(&mean, &var, Some(&weight), Some(&bias), self.eps);
        }
        let normalised = x.batch_norm(Some(&weight), Some(&bias), self.eps)?;
        self.track(&normalised.mean, &normalised.var)?;
        Ok(normalised.output)
    }
}
