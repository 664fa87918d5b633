//! Normalisations of each sample by itself: [`LayerNorm`], [`RmsNorm`], [`GroupNorm`],
//! [`LocalResponseNorm`].

use crate::batch_norm::check_values;
use crate::init::OfLayer;
use crate::{Forward, Init, Module};
use zyx_core::{DType, Param, Result, Shape, Tensor};

/// Layer normalisation over the last axes. Parameters `weight` (ones) and `bias` (zeros) of their
/// shape.
#[derive(Clone, Debug, Module)]
pub struct LayerNorm {
    /// The gain.
    pub weight: Option<Param>,
    /// The offset.
    pub bias: Option<Param>,
    /// Extents of the last axes.
    pub shape: Shape,
    /// Added to the variance; 1e-5.
    pub eps: f64,
}

impl LayerNorm {
    /// Over the last axes of extents `shape`.
    ///
    /// ```
    /// # use zyx::nn::{Forward, Init, LayerNorm};
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let init = &mut Init::new(0, &device);
    /// let layer = LayerNorm::new([4], init)?;
    /// let x = Tensor::ones([2, 4], DType::F32, &device);
    /// assert_eq!(layer.forward(&x)?.shape().dims(), [2, 4]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the device fails.
    #[track_caller]
    pub fn new(shape: impl Into<Shape>, init: &mut Init) -> Result<LayerNorm> {
        let shape = shape.into();
        let (weight, bias) = gain_and_offset(&shape, init)?;
        Ok(LayerNorm { weight, bias, ..LayerNorm::plain(shape) })
    }

    /// Without parameters.
    ///
    /// ```
    /// assert!(zyx::nn::LayerNorm::plain([4]).weight.is_none());
    /// ```
    pub fn plain(shape: impl Into<Shape>) -> LayerNorm {
        LayerNorm { weight: None, bias: None, shape: shape.into(), eps: 1e-5 }
    }
}

impl Forward for LayerNorm {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        check_last("LayerNorm", x, &self.shape).of_layer(&self.weight)?;
        let [weight, bias] = tensors([&self.weight, &self.bias]);
        let axes = last_axes(&self.shape);
        let y = x.layer_norm(&axes[..], weight.as_ref(), bias.as_ref(), self.eps);
        y.of_layer(&self.weight)
    }
}

/// Ones and zeros as parameters.
#[track_caller]
pub(crate) fn gain_and_offset(
    shape: &Shape,
    init: &mut Init,
) -> Result<(Option<Param>, Option<Param>)> {
    let weight = Param::new(init.full(shape.clone(), 1.0)?);
    Ok((Some(weight), Some(Param::new(init.full(shape.clone(), 0.0)?))))
}

/// The values of parameters that there may be.
pub(crate) fn tensors<const N: usize>(parameters: [&Option<Param>; N]) -> [Option<Tensor>; N] {
    parameters.map(|parameter| parameter.as_ref().map(Param::tensor))
}

/// The axes that so many extents belong to, counted from the end.
fn last_axes(shape: &Shape) -> Vec<isize> {
    (1..=shape.rank() as isize).map(|axis| -axis).collect()
}

#[track_caller]
fn check_last(op: &'static str, x: &Tensor, shape: &Shape) -> Result<()> {
    if x.shape().ends_with(shape) {
        return Ok(());
    }
    Err(Init::refuse(op, format!("the last axes of shape {} are not {shape}", x.shape())))
}

/// Root mean square normalisation over the last axes. Parameter `weight` (ones) of their shape.
#[derive(Clone, Debug, Module)]
pub struct RmsNorm {
    /// The gain.
    pub weight: Option<Param>,
    /// Extents of the last axes.
    pub shape: Shape,
    /// Added to the mean square; 1e-6.
    pub eps: f64,
}

impl RmsNorm {
    /// Over the last axes of extents `shape`.
    ///
    /// ```
    /// # use zyx::nn::{Forward, Init, RmsNorm};
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let init = &mut Init::new(0, &device);
    /// let layer = RmsNorm::new([4], init)?;
    /// let x = Tensor::ones([2, 4], DType::F32, &device);
    /// assert_eq!(layer.forward(&x)?.shape().dims(), [2, 4]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the device fails.
    #[track_caller]
    pub fn new(shape: impl Into<Shape>, init: &mut Init) -> Result<RmsNorm> {
        let shape = shape.into();
        let weight = Some(Param::new(init.full(shape.clone(), 1.0)?));
        Ok(RmsNorm { weight, ..RmsNorm::plain(shape) })
    }

    /// Without a parameter.
    ///
    /// ```
    /// assert!(zyx::nn::RmsNorm::plain([4]).weight.is_none());
    /// ```
    pub fn plain(shape: impl Into<Shape>) -> RmsNorm {
        RmsNorm { weight: None, shape: shape.into(), eps: 1e-6 }
    }
}

impl Forward for RmsNorm {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        check_last("RmsNorm", x, &self.shape).of_layer(&self.weight)?;
        let [weight] = tensors([&self.weight]);
        let axes = last_axes(&self.shape);
        x.rms_norm(&axes[..], weight.as_ref(), self.eps).of_layer(&self.weight)
    }
}

/// Group normalisation of `[n, channels, ..]`. Parameters `weight` (ones) and `bias` (zeros),
/// `[channels]`.
#[derive(Clone, Debug, Module)]
pub struct GroupNorm {
    /// The gain of each channel.
    pub weight: Option<Param>,
    /// The offset of each channel.
    pub bias: Option<Param>,
    /// Into how many groups the channels go.
    pub groups: usize,
    /// Number of channels.
    pub channels: usize,
    /// Added to the variance; 1e-5.
    pub eps: f64,
}

impl GroupNorm {
    /// `channels` channels in `groups` equal groups.
    ///
    /// ```
    /// # use zyx::nn::{Forward, GroupNorm, Init};
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let init = &mut Init::new(0, &device);
    /// let layer = GroupNorm::new(2, 4, init)?;
    /// let x = Tensor::ones([1, 4, 3], DType::F32, &device);
    /// assert_eq!(layer.forward(&x)?.shape().dims(), [1, 4, 3]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the groups do not divide the channels, or the device fails.
    #[track_caller]
    pub fn new(groups: usize, channels: usize, init: &mut Init) -> Result<GroupNorm> {
        let plain = GroupNorm::plain(groups, channels)?;
        let (weight, bias) = gain_and_offset(&Shape::from([channels]), init)?;
        Ok(GroupNorm { weight, bias, ..plain })
    }

    /// Without parameters.
    ///
    /// ```
    /// assert!(zyx::nn::GroupNorm::plain(2, 4)?.weight.is_none());
    /// assert!(zyx::nn::GroupNorm::plain(3, 4).is_err());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the groups do not divide the channels.
    #[track_caller]
    pub fn plain(groups: usize, channels: usize) -> Result<GroupNorm> {
        if groups == 0 || !channels.is_multiple_of(groups) {
            let reason = format!("{groups} groups do not divide {channels} channels");
            return Err(Init::refuse("GroupNorm", reason));
        }
        Ok(GroupNorm { weight: None, bias: None, groups, channels, eps: 1e-5 })
    }
}

impl Forward for GroupNorm {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        check_image("GroupNorm", x, &[0, 1, 2, 3, 4, 5, 6], Some(self.channels))
            .of_layer(&self.weight)?;
        // As PyTorch, which counts the groups of all samples together.
        check_values("GroupNorm", x.numel() / self.groups.max(1)).of_layer(&self.weight)?;
        let [weight, bias] = tensors([&self.weight, &self.bias]);
        let y = x.group_norm(self.groups, weight.as_ref(), bias.as_ref(), self.eps);
        y.of_layer(&self.weight)
    }
}

/// Axis 1 and what follows it: `spatial` axes.
#[track_caller]
pub(crate) fn check_image(
    op: &'static str,
    x: &Tensor,
    spatial: &[usize],
    channels: Option<usize>,
) -> Result<()> {
    let fits = x.rank() >= 2 && spatial.contains(&(x.rank() - 2));
    if !fits || channels.is_some_and(|channels| x.shape()[1] != channels) {
        let channels = channels.map_or("channels".to_owned(), |n| format!("{n} channels"));
        let axes: Vec<String> = spatial.iter().map(usize::to_string).collect();
        let reason = format!(
            "needs {channels} at axis 1 and {} axes after it, not shape {}",
            axes.join(" or "),
            x.shape()
        );
        return Err(Init::refuse(op, reason));
    }
    Ok(())
}

/// Each channel divided by a power of the mean square of its neighbours (Krizhevsky et al. 2012):
/// `x / (k + alpha mean(x^2))^beta` over `size` channels around it, with zeros beyond the ends.
#[derive(Clone, Copy, Debug, Module)]
pub struct LocalResponseNorm {
    /// How many channels are neighbours.
    pub size: usize,
    /// The weight of the mean; 1e-4.
    pub alpha: f64,
    /// The power; 0.75.
    pub beta: f64,
    /// Added to the mean; 1.
    pub k: f64,
}

impl LocalResponseNorm {
    /// With PyTorch's other numbers.
    ///
    /// ```
    /// # use zyx::nn::{Forward, LocalResponseNorm};
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let layer = LocalResponseNorm::new(3);
    /// let x = Tensor::ones([1, 4, 2], DType::F32, &device);
    /// assert_eq!(layer.forward(&x)?.shape().dims(), [1, 4, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn new(size: usize) -> LocalResponseNorm {
        LocalResponseNorm { size, alpha: 1e-4, beta: 0.75, k: 1.0 }
    }
}

impl Forward for LocalResponseNorm {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        const OP: &str = "LocalResponseNorm";
        check_image(OP, x, &[1, 2, 3, 4, 5, 6], None)?;
        let channels = x.shape()[1];
        let Some(last) = self.size.checked_sub(1).filter(|last| *last <= channels) else {
            let reason = format!("{} neighbours of {channels} channels", self.size);
            return Err(Init::refuse(OP, reason));
        };
        let wide = if x.dtype().is_float() { x.dtype().accumulator() } else { DType::F32 };
        let mut padding = vec![(0, 0); x.rank()];
        padding[1] = (self.size / 2, last / 2);
        let squares = x.cast(wide).square().pad(padding)?;
        let mut sum = squares.slice(1, 0..channels)?;
        for start in 1..self.size {
            sum = sum.add(squares.slice(1, start..start + channels)?)?;
        }
        let scale = sum.mul(self.alpha / self.size as f64)?.add(self.k)?.pow(self.beta)?;
        Ok(x.cast(wide).div(scale)?.cast(x.dtype()))
    }
}
