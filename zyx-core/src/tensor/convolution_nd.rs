//! Convolutions in three dimensions, with extents kept, and transposed in one to three.
//!
//! A transposed convolution is what a convolution's input gradient is: the same code computes
//! both, so its own gradients are convolutions again.

use super::Tensor;
use super::convolution::{Geometry, Window};
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::ops::BinaryOp;
use crate::origin::composed;
use crate::shape::Shape;

/// Stride, padding, dilation and groups of [`Tensor::conv3d`]; entries are for depth, height and
/// width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Conv3dOptions {
    /// Distance between windows; 1.
    pub stride: [usize; 3],
    /// Zeros on both sides; 0.
    pub padding: [usize; 3],
    /// Distance between elements of a window; 1.
    pub dilation: [usize; 3],
    /// Groups of channels that do not see each other; 1.
    pub groups: usize,
}

impl Default for Conv3dOptions {
    fn default() -> Conv3dOptions {
        Conv3dOptions { stride: [1; 3], padding: [0; 3], dilation: [1; 3], groups: 1 }
    }
}

/// Options of a transposed convolution over `N` axes.
///
/// ```
/// use zyx::ConvTransposeOptions;
/// let double = ConvTransposeOptions { stride: [2, 2], ..Default::default() };
/// assert_eq!(double.output_padding, [0, 0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvTransposeOptions<const N: usize> {
    /// Distance between the windows that elements are spread to; 1.
    pub stride: [usize; N],
    /// Elements cut off on both sides: the padding of the convolution this transposes; 0.
    pub padding: [usize; N],
    /// Elements more at the end, less than stride or dilation; 0.
    pub output_padding: [usize; N],
    /// Distance between elements of a window; 1.
    pub dilation: [usize; N],
    /// Groups of channels that do not see each other; 1.
    pub groups: usize,
}

impl<const N: usize> Default for ConvTransposeOptions<N> {
    #[track_caller]
    fn default() -> Self {
        ConvTransposeOptions {
            stride: [1; N],
            padding: [0; N],
            output_padding: [0; N],
            dilation: [1; N],
            groups: 1,
        }
    }
}

impl Tensor {
    /// 3-d convolution (cross-correlation) of `[n, channels, depth, height, width]` with a weight
    /// `[out, channels / groups, ..]` and a bias `[out]`; see [`Tensor::conv2d`].
    ///
    /// ```
    /// # use zyx::{Conv3dOptions, DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::ones([1, 1, 2, 2, 2], DType::F32, &device);
    /// let y = x.conv3d(&x, None, Conv3dOptions::default())?;
    /// assert_eq!(y.item::<f32>()?, 8.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::conv2d`].
    #[track_caller]
    pub fn conv3d(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: Conv3dOptions,
    ) -> Result<Tensor> {
        let Conv3dOptions { stride, padding, dilation, groups } = options;
        self.convolve("conv3d", weight, bias, groups, |i| (stride[i], padding[i], dilation[i]), 3)
    }

    /// A convolution over one to three axes that keeps their extents (PyTorch's padding `"same"`):
    /// `dilation (kernel - 1)` zeros, the odd one at the end. `dilation` has an entry per axis.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[[1f32, 2.0, 4.0]]], &device)?;
    /// let weight = Tensor::new([[[1f32, 1.0]]], &device)?;
    /// assert_eq!(x.conv_same(&weight, None, &[1], 1)?.to_vec::<f32>()?, [3.0, 6.0, 4.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::conv2d`], and when `dilation` is not for one to three axes.
    #[track_caller]
    pub fn conv_same(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        dilation: &[usize],
        groups: usize,
    ) -> Result<Tensor> {
        const OP: &str = "conv_same";
        let n = dilation.len();
        let fits = |t: &Tensor| t.rank() == n + 2 && t.shape().is_possible();
        if !(1..=3).contains(&n) || !fits(self) || !fits(weight) {
            let reason = format!("operands need two axes and {n} more, at most three");
            return Err(Tensor::shape_error(OP, &[self, weight], reason));
        }
        let mut padding = vec![(0, 0); n + 2];
        for (i, &dilation) in dilation.iter().enumerate() {
            let total = weight.shape()[i + 2].saturating_sub(1).saturating_mul(dilation);
            padding[i + 2] = (total / 2, total - total / 2);
        }
        let x = self.pad(padding).named(OP)?;
        x.convolve(OP, weight, bias, groups, |i| (1, 0, dilation[i]), n)
    }

    /// 1-d transposed convolution of `[n, channels, length]` with a weight
    /// `[channels, out / groups, kernel]` and a bias `[out]`; see [`Tensor::conv_transpose2d`].
    ///
    /// ```
    /// # use zyx::{ConvTransposeOptions, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[[1f32, 2.0]]], &device)?;
    /// let weight = Tensor::new([[[1f32, 10.0]]], &device)?;
    /// let options = ConvTransposeOptions { stride: [2], ..Default::default() };
    /// let y = x.conv_transpose1d(&weight, None, options)?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 10.0, 2.0, 20.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::conv_transpose2d`].
    #[track_caller]
    pub fn conv_transpose1d(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: ConvTransposeOptions<1>,
    ) -> Result<Tensor> {
        self.transposed("conv_transpose1d", weight, bias, options).named("conv_transpose1d")
    }

    /// 2-d transposed convolution of `[n, channels, height, width]` with a weight
    /// `[channels, out / groups, kernel height, kernel width]` and a bias `[out]`: each element
    /// spreads to a window, and windows add. An axis becomes `(extent - 1) stride - 2 padding +
    /// dilation (kernel - 1) + output_padding + 1` long. Halves accumulate in `f32`.
    ///
    /// ```
    /// # use zyx::{ConvTransposeOptions, DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::ones([1, 1, 2, 2], DType::F32, &device);
    /// let y = x.conv_transpose2d(&x, None, ConvTransposeOptions::default())?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0, 1.0, 2.0, 4.0, 2.0, 1.0, 2.0, 1.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When ranks or channels do not fit, an extent would be negative, `output_padding` is not
    /// below stride or dilation, or the operands are on different devices.
    #[track_caller]
    pub fn conv_transpose2d(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: ConvTransposeOptions<2>,
    ) -> Result<Tensor> {
        self.transposed("conv_transpose2d", weight, bias, options).named("conv_transpose2d")
    }

    /// 3-d transposed convolution of `[n, channels, depth, height, width]` with a weight
    /// `[channels, out / groups, ..]` and a bias `[out]`; see [`Tensor::conv_transpose2d`].
    ///
    /// ```
    /// # use zyx::{ConvTransposeOptions, DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::ones([1, 1, 1, 1, 1], DType::F32, &device);
    /// let weight = Tensor::ones([1, 1, 2, 2, 2], DType::F32, &device);
    /// let y = x.conv_transpose3d(&weight, None, ConvTransposeOptions::default())?;
    /// assert_eq!(y.shape().dims(), [1, 1, 2, 2, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::conv_transpose2d`].
    #[track_caller]
    pub fn conv_transpose3d(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: ConvTransposeOptions<3>,
    ) -> Result<Tensor> {
        self.transposed("conv_transpose3d", weight, bias, options).named("conv_transpose3d")
    }

    #[track_caller]
    fn transposed<const N: usize>(
        &self,
        op: &'static str,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: ConvTransposeOptions<N>,
    ) -> Result<Tensor> {
        let _here = composed();
        let out = self.check_transposed(op, weight, bias, options)?;
        let extents = self.transposed_extents(op, weight, options)?;
        let dtypes = [self, weight].into_iter().chain(bias).map(Tensor::dtype);
        let dtype = dtypes.reduce(DType::promote).unwrap_or(self.dtype());
        let dtype = if dtype == DType::Bool { DType::I64 } else { dtype };
        let wide = dtype.product_accumulator();
        let (x, kernel) = (self.cast(dtype), weight.cast(dtype));
        let shape = Shape::from([&[self.shape()[0], out], &extents[..]].concat());
        if !shape.is_possible() {
            let reason = format!("a result of shape {shape} has too many elements");
            return Err(Tensor::shape_error(op, &[self, weight], reason));
        }
        let mut padding = vec![(0, 0); N + 2];
        let mut windows = Vec::with_capacity(N);
        for i in 0..N {
            padding[i + 2] = (options.padding[i], options.padding[i]);
            let (stride, dilation) = (options.stride[i], options.dilation[i]);
            let window = Window { kernel: weight.shape()[i + 2], stride, dilation };
            windows.push((window, self.shape()[i + 2]));
        }
        let geometry = Geometry { groups: options.groups, padding, windows };
        // Of the input of the convolution that this transposes, only the shape is needed.
        let input = Tensor::zeros(shape, wide, self.device());
        let y = geometry.input_gradient(op, &input, &kernel, &x)?;
        let Some(bias) = bias else { return Ok(y.cast(dtype)) };
        let bias = bias.cast(dtype).cast(wide).reshape([&[1, out][..], &[1; N]].concat())?;
        Ok(y.combine(BinaryOp::Add, &bias.expand(y.shape().clone())?).cast(dtype))
    }

    /// The number of channels of the result.
    fn check_transposed<const N: usize>(
        &self,
        op: &'static str,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: ConvTransposeOptions<N>,
    ) -> Result<usize> {
        let operands: Vec<&Tensor> = [self, weight].into_iter().chain(bias).collect();
        Tensor::check_operands(op, &operands)?;
        let fail = |reason: String| Err(Tensor::shape_error(op, &operands, reason));
        if self.rank() != N + 2 || weight.rank() != N + 2 {
            return fail(format!("input and weight need two axes and {N} spatial ones"));
        }
        let (channels, groups) = (self.shape()[1], options.groups);
        if groups == 0 || !channels.is_multiple_of(groups) {
            return fail(format!("{groups} groups do not divide {channels} channels"));
        }
        if weight.shape()[0] != channels {
            let found = weight.shape()[0];
            return fail(format!("the weight must have {channels} input channels, not {found}"));
        }
        let Some(out) = weight.shape()[1].checked_mul(groups) else {
            return fail(format!("{groups} groups have too many channels"));
        };
        if bias.is_some_and(|bias| bias.shape().dims() != [out]) {
            return fail(format!("the bias must be a vector of {out} elements"));
        }
        Ok(out)
    }

    /// The spatial extents of the result.
    fn transposed_extents<const N: usize>(
        &self,
        op: &'static str,
        weight: &Tensor,
        options: ConvTransposeOptions<N>,
    ) -> Result<Vec<usize>> {
        let fail = |reason: String| Tensor::shape_error(op, &[self, weight], reason);
        let extent = |i: usize| {
            let (n, kernel) = (self.shape()[i + 2], weight.shape()[i + 2]);
            let (stride, dilation) = (options.stride[i], options.dilation[i]);
            let more = options.output_padding[i];
            if kernel == 0 || stride == 0 || dilation == 0 || n == 0 {
                return Err(fail("an extent, stride or dilation is 0".to_owned()));
            }
            if more >= stride.max(dilation) {
                let reason = format!("output_padding {more} is not below stride or dilation");
                return Err(fail(reason));
            }
            let spread = (n - 1).checked_mul(stride);
            let reach = (kernel - 1).checked_mul(dilation);
            let whole = spread.zip(reach).and_then(|(a, b)| a.checked_add(b)?.checked_add(more));
            let whole = whole.and_then(|n| n.checked_add(1)).filter(|&n| n < isize::MAX as usize);
            let cut = options.padding[i].checked_mul(2);
            let rest = whole.zip(cut).and_then(|(whole, cut)| whole.checked_sub(cut));
            rest.ok_or_else(|| fail(format!("no extent is left along spatial axis {i}")))
        };
        (0..N).map(extent).collect()
    }
}
