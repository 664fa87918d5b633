//! Convolutions: [`Conv1d`] and [`Conv2d`].

use crate::init::OfLayer;
use crate::{Around, Forward, Init, Module};
use zyx_core::{Conv1dOptions, Conv2dOptions, Param, Result, Shape, Tensor};

/// 2-d convolution of `[n, in, height, width]`. Parameters `weight` `[out, in / groups, kh, kw]`
/// and `bias` `[out]`, both uniform within `1 / sqrt(in / groups * kh * kw)` at first.
#[derive(Clone, Debug, Module)]
pub struct Conv2d {
    /// `[out, in / groups, kernel height, kernel width]`.
    pub weight: Param,
    /// `[out]`.
    pub bias: Option<Param>,
    /// Stride, padding, dilation and groups.
    pub options: Conv2dOptions,
    /// What is added around the input by the layer itself, not by the options.
    #[module(skip)]
    pub around: Option<Around>,
}

impl Conv2d {
    /// A convolution from `inputs` to `outputs` channels, with a bias.
    ///
    /// ```
    /// # use zyx::nn::{Conv2d, Forward, Init};
    /// # use zyx::{Conv2dOptions, DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let init = &mut Init::new(0, &device);
    /// let layer = Conv2d::new(3, 8, [3, 3], Conv2dOptions::default(), init)?;
    /// let x = Tensor::ones([1, 3, 6, 6], DType::F32, &device);
    /// assert_eq!(layer.forward(&x)?.shape().dims(), [1, 8, 4, 4]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the groups do not divide the channels, or the device fails.
    #[track_caller]
    pub fn new(
        inputs: usize,
        outputs: usize,
        kernel: [usize; 2],
        options: Conv2dOptions,
        init: &mut Init,
    ) -> Result<Conv2d> {
        let (weight, bias) =
            parameters("Conv2d::new", [outputs, inputs], outputs, options.groups, &kernel, init)?;
        Ok(Conv2d { weight, bias: Some(bias), options, around: None })
    }
}

impl Forward for Conv2d {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let bias = self.bias.as_ref().map(Param::tensor);
        let x = &Around::padded(&self.around, x).of_layer(&self.weight)?;
        x.conv2d(&self.weight.tensor(), bias.as_ref(), self.options).of_layer(&self.weight)
    }
}

/// 1-d convolution of `[n, in, length]`. Parameters `weight` `[out, in / groups, k]` and `bias`
/// `[out]`, initialised as those of [`Conv2d`].
#[derive(Clone, Debug, Module)]
pub struct Conv1d {
    /// `[out, in / groups, kernel]`.
    pub weight: Param,
    /// `[out]`.
    pub bias: Option<Param>,
    /// Stride, padding, dilation and groups.
    pub options: Conv1dOptions,
    /// What is added around the input by the layer itself, not by the options.
    #[module(skip)]
    pub around: Option<Around>,
}

impl Conv1d {
    /// A convolution from `inputs` to `outputs` channels, with a bias.
    ///
    /// ```
    /// # use zyx::nn::{Conv1d, Forward, Init};
    /// # use zyx::{Conv1dOptions, DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let init = &mut Init::new(0, &device);
    /// let layer = Conv1d::new(3, 8, 3, Conv1dOptions::default(), init)?;
    /// let x = Tensor::ones([1, 3, 6], DType::F32, &device);
    /// assert_eq!(layer.forward(&x)?.shape().dims(), [1, 8, 4]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the groups do not divide the channels, or the device fails.
    #[track_caller]
    pub fn new(
        inputs: usize,
        outputs: usize,
        kernel: usize,
        options: Conv1dOptions,
        init: &mut Init,
    ) -> Result<Conv1d> {
        let (weight, bias) =
            parameters("Conv1d::new", [outputs, inputs], outputs, options.groups, &[kernel], init)?;
        Ok(Conv1d { weight, bias: Some(bias), options, around: None })
    }
}

impl Forward for Conv1d {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let bias = self.bias.as_ref().map(Param::tensor);
        let x = &Around::padded(&self.around, x).of_layer(&self.weight)?;
        x.conv1d(&self.weight.tensor(), bias.as_ref(), self.options).of_layer(&self.weight)
    }
}

/// A weight `[channels[0], channels[1] / groups, kernel ..]`, which is `[out, in, ..]` and for
/// transposed convolutions `[in, out, ..]`, and a bias `[outputs]`, both uniform within `1 /
/// sqrt(channels[1] / groups * kernel)`.
#[track_caller]
pub(crate) fn parameters(
    op: &'static str,
    channels: [usize; 2],
    outputs: usize,
    groups: usize,
    kernel: &[usize],
    init: &mut Init,
) -> Result<(Param, Param)> {
    let [rows, columns] = channels;
    if groups == 0 || !rows.is_multiple_of(groups) || !columns.is_multiple_of(groups) {
        let reason = format!("{groups} groups do not divide {rows} and {columns} channels");
        return Err(Init::refuse(op, reason));
    }
    let field = [&[columns / groups], kernel].concat();
    let Some(fan_in) = Shape::from(&field[..]).checked_numel() else {
        return Err(Init::refuse(op, format!("a kernel of {kernel:?} is too large")));
    };
    let weight = init.fan_in_uniform([&[rows], &field[..]].concat(), fan_in)?;
    let bias = init.fan_in_uniform([outputs], fan_in)?;
    Ok((Param::new(weight), Param::new(bias)))
}
