//! Sliding windows and convolutions, made of movement ops, a product and a sum.
//!
//! [`Tensor::windows`] shows an axis as (offset within the window, position of the window) without
//! copying: lowering composes its movement ops into one index, `position * stride + offset *
//! dilation`. A convolution multiplies the windows with the weight and sums over input channels
//! and offsets; the scheduler recognises the contraction, and the gradients follow from those of
//! the parts. Halves are widened behind padding and windows: what is stored, if anything is, and
//! what the contraction multiplies are halves.

use super::{Expr, Tensor};
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::graph::Op;
use crate::ops::BinaryOp;
use crate::origin::composed;
use crate::shape::Shape;
use std::panic::Location;

/// How a window slides along one axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Elements in the window.
    pub(crate) kernel: usize,
    /// Distance between windows.
    pub(crate) stride: usize,
    /// Distance between elements of a window.
    pub(crate) dilation: usize,
}

impl Window {
    /// Windows that fit into `extent` elements, or why there is none.
    pub(crate) fn positions(self, extent: usize) -> Result<usize, String> {
        let Window { kernel, stride, dilation } = self;
        if kernel == 0 || stride == 0 || dilation == 0 {
            return Err(format!(
                "kernel {kernel}, stride {stride} and dilation {dilation} must be at least 1"
            ));
        }
        let reach = (kernel - 1).checked_mul(dilation);
        match reach.and_then(|reach| extent.checked_sub(reach)).and_then(|n| n.checked_sub(1)) {
            Some(room) => Ok(room / stride + 1),
            None => Err(format!(
                "a window of {kernel} elements at distance {dilation} does not fit into {extent}"
            )),
        }
    }
}

/// Stride, padding, dilation and groups of [`Tensor::conv2d`]; the first entry of each pair is
/// for rows (height), the second for columns (width).
///
/// ```
/// use zyx::Conv2dOptions;
/// let halve = Conv2dOptions { stride: [2, 2], padding: [1, 1], ..Default::default() };
/// assert_eq!(halve.groups, 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Conv2dOptions {
    /// Distance between windows; 1.
    pub stride: [usize; 2],
    /// Zeros on both sides; 0.
    pub padding: [usize; 2],
    /// Distance between elements of a window; 1.
    pub dilation: [usize; 2],
    /// Groups of channels that do not see each other; 1.
    pub groups: usize,
}

impl Default for Conv2dOptions {
    fn default() -> Conv2dOptions {
        Conv2dOptions { stride: [1; 2], padding: [0; 2], dilation: [1; 2], groups: 1 }
    }
}

/// Stride, padding, dilation and groups of [`Tensor::conv1d`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Conv1dOptions {
    /// Distance between windows; 1.
    pub stride: usize,
    /// Zeros on both sides; 0.
    pub padding: usize,
    /// Distance between elements of a window; 1.
    pub dilation: usize,
    /// Groups of channels that do not see each other; 1.
    pub groups: usize,
}

impl Default for Conv1dOptions {
    fn default() -> Conv1dOptions {
        Conv1dOptions { stride: 1, padding: 0, dilation: 1, groups: 1 }
    }
}

impl Tensor {
    /// 2-d convolution (cross-correlation) of `[n, channels, height, width]` with a weight
    /// `[out, channels / groups, kernel height, kernel width]` and a bias `[out]`. The result is
    /// `[n, out, ..]` with `(extent + 2 padding - dilation (kernel - 1) - 1) / stride + 1`
    /// positions along each axis. Halves accumulate in `f32`.
    ///
    /// ```
    /// # use zyx::{Conv2dOptions, DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let image = Tensor::ones([1, 1, 4, 4], DType::F32, &device);
    /// let weight = Tensor::ones([1, 1, 3, 3], DType::F32, &device);
    /// let options = Conv2dOptions { padding: [1, 1], ..Default::default() };
    /// let y = image.conv2d(&weight, None, options)?;
    /// assert_eq!(y.select_index(2, 0)?.to_vec::<f32>()?, [4.0, 6.0, 6.0, 4.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When ranks or channels do not fit, a window is larger than the padded input, an option is
    /// 0 that must not be, or the operands are on different devices.
    #[track_caller]
    pub fn conv2d(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: Conv2dOptions,
    ) -> Result<Tensor> {
        let Conv2dOptions { stride, padding, dilation, groups } = options;
        self.convolve("conv2d", weight, bias, groups, |i| (stride[i], padding[i], dilation[i]), 2)
    }

    /// 1-d convolution (cross-correlation) of `[n, channels, length]` with a weight
    /// `[out, channels / groups, kernel]` and a bias `[out]`; see [`Tensor::conv2d`].
    ///
    /// ```
    /// # use zyx::{Conv1dOptions, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[[1f32, 2.0, 4.0]]], &device)?;
    /// let weight = Tensor::new([[[-1f32, 1.0]]], &device)?;
    /// assert_eq!(x.conv1d(&weight, None, Conv1dOptions::default())?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::conv2d`].
    #[track_caller]
    pub fn conv1d(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: Conv1dOptions,
    ) -> Result<Tensor> {
        let _here = composed();
        let Conv1dOptions { stride, padding, dilation, groups } = options;
        self.convolve("conv1d", weight, bias, groups, |_| (stride, padding, dilation), 1)
    }

    /// The convolution over `n` spatial axes; `of(i)` is stride, padding and dilation of axis `i`.
    #[track_caller]
    pub(super) fn convolve(
        &self,
        op: &'static str,
        weight: &Tensor,
        bias: Option<&Tensor>,
        groups: usize,
        of: impl Fn(usize) -> (usize, usize, usize),
        n: usize,
    ) -> Result<Tensor> {
        let _here = composed();
        self.check_convolution(op, weight, bias, groups, n)?;
        let dtype = bias
            .iter()
            .fold(self.dtype().promote(weight.dtype()), |dtype, bias| dtype.promote(bias.dtype()));
        let dtype = if dtype == DType::Bool { DType::I64 } else { dtype };
        let wide = dtype.product_accumulator();
        let here = Location::caller();
        let fail = |reason: String| Tensor::shape_error(op, &[self, weight], reason).at(here);

        // Windows along every spatial axis, the last first so that axes before it stay in place.
        let mut padding = vec![(0, 0); n + 2];
        let mut windows = Vec::with_capacity(n);
        for i in 0..n {
            let (stride, pad, dilation) = of(i);
            padding[i + 2] = (pad, pad);
            let padded = pad.checked_mul(2).and_then(|pad| pad.checked_add(self.shape()[i + 2]));
            let padded = padded.ok_or_else(|| fail(format!("padding {pad} is too large")))?;
            let window = Window { kernel: weight.shape()[i + 2], stride, dilation };
            windows.push((window, window.positions(padded).map_err(fail)?));
        }
        let geometry = Geometry { groups, padding, windows };
        let y = geometry.forward(op, &self.cast(dtype), &weight.cast(dtype)).named(op)?;
        let y = y.with_gradient(&[self, weight], move |inputs, _, dy| {
            let [x, weight] = inputs else { unreachable!("invariant: the rule has two inputs") };
            let dx = geometry.input_gradient(op, x, &weight.cast(dtype), dy)?;
            let dw = geometry.weight_gradient(op, &x.cast(dtype), weight, dy)?;
            Ok(vec![Some(dx.cast(x.dtype())), Some(dw.cast(weight.dtype()))])
        })?;
        let Some(bias) = bias else { return Ok(y.cast(dtype)) };
        let bias = bias.cast(dtype).cast(wide);
        let bias =
            bias.reshape_unchecked([&[1, weight.shape()[0]], &vec![1; n][..]].concat().into());
        Ok(y.combine(BinaryOp::Add, &bias.broadcast_unchecked(y.shape())).cast(dtype))
    }

    #[track_caller]
    fn check_convolution(
        &self,
        op: &'static str,
        weight: &Tensor,
        bias: Option<&Tensor>,
        groups: usize,
        n: usize,
    ) -> Result<()> {
        let operands: Vec<&Tensor> = [self, weight].into_iter().chain(bias).collect();
        let here = Location::caller();
        let fail = |reason: String| Err(Tensor::shape_error(op, &operands, reason).at(here));
        if self.rank() != n + 2 || weight.rank() != n + 2 {
            return fail(format!(
                "input [n, channels, ..] and weight [out, channels, ..] need {n} spatial axes"
            ));
        }
        if operands.iter().any(|t| t.device() != self.device()) {
            let reason = "operands are on different devices".to_owned();
            return Err(Tensor::argument_error(op, reason));
        }
        let (channels, out) = (self.shape()[1], weight.shape()[0]);
        if groups == 0 || !channels.is_multiple_of(groups) || !out.is_multiple_of(groups) {
            return fail(format!("{groups} groups do not divide {channels} and {out} channels"));
        }
        if weight.shape()[1] != channels / groups {
            let (expected, found) = (channels / groups, weight.shape()[1]);
            return fail(format!("the weight must have {expected} input channels, not {found}"));
        }
        if bias.is_some_and(|bias| bias.shape().dims() != [out]) {
            return fail(format!("the bias must be a vector of {out} elements"));
        }
        Ok(())
    }

    /// The windows along one axis, which becomes two: offset within the window, then position.
    /// `out[.., j, o, ..] = self[.., o * stride + j * dilation, ..]`.
    ///
    /// With windows that do not overlap, the axis is split into pieces of `stride` elements, and
    /// of each the first `kernel` are kept. Otherwise a skewed reading does it: of an axis of
    /// extent `L`, repeated often enough and cut into rows of `L + dilation` elements, row `j`
    /// starts `j * dilation` elements later in the original than row 0, because each row is
    /// `dilation` longer than the axis. Element `t` of row `j` is `self[(j * (L + dilation) + t)
    /// mod L] = self[j * dilation + t]` as long as that stays below `L`, and it does for every
    /// `t = o * stride` of a window that fits.
    #[track_caller]
    pub(crate) fn windows(&self, op: &'static str, axis: usize, window: Window) -> Result<Tensor> {
        let Window { kernel, stride, dilation } = window;
        let extent = self.shape()[axis];
        let here = Location::caller();
        let fail = |reason: String| Tensor::shape_error(op, &[self], reason).at(here);
        let positions = window.positions(extent).map_err(fail)?;
        let reshape = |x: &Tensor, axes: &[usize]| {
            let dims = self.shape();
            let dims = [&dims[..axis], axes, &dims[axis + 1..]].concat();
            x.reshape_unchecked(dims.into())
        };
        let first = |x: &Tensor, axis: usize, n: usize| {
            let mut ranges: Vec<_> = x.shape().iter().map(|&d| (0, d)).collect();
            ranges[axis].1 = n;
            x.shrink_unchecked(&ranges)
        };
        let too_large = || fail("the window reaches too far".to_owned());
        let spread = positions.checked_mul(stride).ok_or_else(too_large)?;
        if kernel == 1 || dilation == 1 && stride >= kernel {
            let x = first(&self.reach(axis, spread).named(op)?, axis, spread);
            let pieces = first(&reshape(&x, &[positions, stride]), axis + 1, kernel);
            let mut order: Vec<usize> = (0..pieces.rank()).collect();
            order.swap(axis, axis + 1);
            return Ok(pieces.permute_unchecked(&order));
        }
        let x = self.reach(axis, spread.saturating_sub(dilation)).named(op)?;
        let extent = x.shape()[axis];
        let row = extent.checked_add(dilation).ok_or_else(too_large)?;
        let used = row.checked_mul(kernel).ok_or_else(too_large)?;
        let repeats = used.div_ceil(extent);
        let mut full = reshape(&x, &[1, extent]).shape().to_vec();
        full[axis] = repeats;
        let full = Shape::from(full);
        if !full.is_possible() {
            return Err(too_large());
        }
        let repeated = reshape(&x, &[1, extent]).broadcast_unchecked(&full);
        let repeated = first(&reshape(&repeated, &[repeats * extent]), axis, used);
        let skewed = first(&reshape(&repeated, &[kernel, row]), axis + 1, spread);
        if stride == 1 {
            return Ok(skewed);
        }
        let picked = first(&reshape(&skewed, &[kernel, positions, stride]), axis + 2, 1);
        Ok(reshape(&picked, &[kernel, positions]))
    }

    /// Padded with zeros along one axis to at least `extent`; they are never read.
    #[track_caller]
    fn reach(&self, axis: usize, extent: usize) -> Result<Tensor> {
        let mut padding = vec![(0, 0); self.rank()];
        padding[axis].1 = extent.saturating_sub(self.shape()[axis]);
        self.pad(padding)
    }
}

/// What a convolution does apart from its operands' values.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    pub(super) groups: usize,
    /// Zeros around each axis of the input.
    pub(super) padding: Vec<(usize, usize)>,
    /// Window and number of positions along each spatial axis.
    pub(super) windows: Vec<(Window, usize)>,
}

impl Geometry {
    /// The windows of the padded input as `[n, groups, 1, positions .., channels / groups,
    /// kernel ..]`.
    #[track_caller]
    fn windows_of(&self, op: &'static str, x: &Tensor) -> Result<Tensor> {
        let n = self.windows.len();
        let (batch, channels) = (x.shape()[0], x.shape()[1] / self.groups);
        let mut x = x.pad(&self.padding)?;
        for (i, &(window, _)) in self.windows.iter().enumerate().rev() {
            x = x.windows(op, i + 2, window)?;
        }
        // Now [n, channels, kernel, positions, kernel, positions ..].
        let interleaved = self.windows.iter().flat_map(|&(window, p)| [window.kernel, p]);
        let split = [batch, self.groups, channels].into_iter().chain(interleaved).collect();
        let offsets = (0..n).map(|i| 3 + 2 * i);
        let positions = offsets.clone().map(|axis| axis + 1);
        let order: Vec<usize> =
            [0, 1].into_iter().chain(positions).chain([2]).chain(offsets).collect();
        let x = x.reshape_unchecked(split).permute_unchecked(&order);
        Ok(x.reshape_unchecked(self.product([batch, self.groups, 1], true, channels, true)))
    }

    /// A shape with the axes of the product: three leading ones, positions, channels, kernel;
    /// axes left out have extent 1.
    fn product(&self, lead: [usize; 3], positions: bool, channels: usize, kernel: bool) -> Shape {
        let of = |on: bool, extent: usize| if on { extent } else { 1 };
        let positions = self.windows.iter().map(|&(_, p)| of(positions, p));
        let kernels = self.windows.iter().map(|&(window, _)| of(kernel, window.kernel));
        lead.into_iter().chain(positions).chain([channels]).chain(kernels).collect()
    }

    /// `[n, out, positions ..]` of `x` and `weight`, in the dtype that sums of them have.
    #[track_caller]
    fn forward(&self, op: &'static str, x: &Tensor, weight: &Tensor) -> Result<Tensor> {
        let (batch, out, channels) = (x.shape()[0], weight.shape()[0], weight.shape()[1]);
        let (n, outputs) = (self.windows.len(), out / self.groups);
        let full = self.product([batch, self.groups, outputs], true, channels, true);
        if !full.is_possible() {
            let reason = format!("{full} products are too many");
            return Err(Tensor::shape_error(op, &[x, weight], reason));
        }
        let one = self.product([1, self.groups, outputs], false, channels, true);
        let wide = x.dtype().promote(weight.dtype()).product_accumulator();
        let windows = self.windows_of(op, x)?.cast(wide).broadcast_unchecked(&full);
        let weight = self.channels_last(&weight.reshape_unchecked(one), x.dtype());
        let weight = weight.cast(wide).broadcast_unchecked(&full);
        let summed = (n + 3..2 * n + 4).fold(0, |mask, axis| mask | 1 << axis);
        let sum = windows.combine(BinaryOp::Mul, &weight).reduce(BinaryOp::Add, summed);
        Ok(sum.reshape_unchecked(self.result(batch, out)))
    }

    /// The weight of a product with so many axes, in memory with channels innermost where matrix
    /// instructions multiply it: what they take at once are then neighbours, at the same place of
    /// the kernel. Weights are few, so the copy is cheap.
    #[track_caller]
    fn channels_last(&self, weight: &Tensor, factor: DType) -> Tensor {
        let n = self.windows.len();
        let (channels, places) = weight.shape().split_at(n + 3).1.split_at(1);
        let product = weight.dtype() == factor && weight.device().caps().mma.contains(factor);
        if !product || channels == [1] || places.iter().all(|&d| d == 1) {
            return weight.clone();
        }
        let axes: Vec<usize> = (0..2 * n + 4).collect();
        let (mut last, mut back) = (axes.clone(), axes);
        last[n + 3..].rotate_left(1);
        back[n + 3..].rotate_right(1);
        weight.permute_unchecked(&last).contiguous().permute_unchecked(&back)
    }

    fn result(&self, batch: usize, out: usize) -> Shape {
        [batch, out].into_iter().chain(self.windows.iter().map(|&(_, p)| p)).collect()
    }

    /// The cotangent of the input: the convolution of that of the result with the flipped weight
    /// whose channels are exchanged. Derived from the movement ops it would be a product for every
    /// element of every window, stored and then summed; as a convolution it is a contraction like
    /// the forward one. As there, it is in the dtype of sums.
    ///
    /// Along an axis of stride `s`, the elements `s` apart see the same places of the kernel: every
    /// `s`-th. These phases become channels, which are interleaved afterwards, so nothing is
    /// multiplied by zeros between positions. With a dilation too, positions are spread apart instead.
    #[track_caller]
    pub(super) fn input_gradient(
        &self,
        op: &'static str,
        x: &Tensor,
        weight: &Tensor,
        dy: &Tensor,
    ) -> Result<Tensor> {
        let (groups, n) = (self.groups, self.windows.len());
        let (out, channels) = (weight.shape()[0], weight.shape()[1]);
        // The distance between elements of one phase, and the phases that have a place of the kernel.
        let phased = |window: &Window| match window.dilation == 1 || window.kernel == 1 {
            true => (window.stride, window.kernel.min(window.stride)),
            false => (1, 1),
        };
        // [groups, out, channels, then for each axis steps of the kernel and phases].
        let (mut kernel, mut steps) = (weight.clone(), Vec::with_capacity(n));
        for (i, (window, _)) in self.windows.iter().enumerate() {
            let (stride, phases) = phased(window);
            let taps = window.kernel.div_ceil(stride);
            steps.push((taps, phases));
            kernel = kernel.reach(i + 2, taps * phases).named(op)?;
        }
        let split = steps.iter().flat_map(|&(taps, phases)| [taps, phases]);
        let split = [groups, out / groups, channels].into_iter().chain(split).collect();
        let taps = (0..n).map(|i| 3 + 2 * i);
        let order: Vec<usize> =
            [0, 2].into_iter().chain(taps.clone().map(|i| i + 1)).chain([1]).chain(taps).collect();
        let phases: usize = steps.iter().map(|s| s.1).product();
        let swapped = [groups * channels * phases, out / groups].into_iter();
        let swapped = swapped.chain(steps.iter().map(|s| s.0)).collect();
        let weight = kernel.reshape_unchecked(split).permute_unchecked(&order);
        let axes: Vec<usize> = (2..n + 2).collect();
        let weight = weight.reshape_unchecked(swapped).flip(&axes[..])?;
        let (mut spread, mut padding) = (unwidened(dy), vec![(0, 0); n + 2]);
        let (mut windows, mut cuts) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for (i, (window, _)) in self.windows.iter().enumerate() {
            let axis = i + 2;
            let (extent, before) = (x.shape()[axis], self.padding[axis].0);
            let (stride, _) = phased(window);
            let (kernel, dilation) = (steps[i].0, window.dilation);
            if stride == 1 {
                spread = spread_out(&spread, axis, window.stride)?;
            }
            // Positions of the windows over what is asked for: with `reach` zeros on its left,
            // `spread` gives the cotangent of the padded input, of which the padding is left out.
            // Elements that no window touched get zeros on the right.
            let first = before / stride;
            let positions = (before + extent).div_ceil(stride).max(first + 1) - first;
            cuts.push((before - first * stride, positions));
            let reach = (kernel - 1) * dilation;
            let from = first.saturating_sub(reach).min(spread.shape()[axis]);
            let to = (first + positions).min(spread.shape()[axis]).max(from);
            let mut ranges: Vec<_> = spread.shape().iter().map(|&d| (0, d)).collect();
            ranges[axis] = (from, to);
            spread = spread.shrink_unchecked(&ranges);
            let left = reach.saturating_sub(first);
            padding[axis] = (left, positions + reach - left - (to - from));
            windows.push((Window { kernel, stride: 1, dilation }, positions));
        }
        let geometry = Geometry { groups, padding, windows };
        let mut dx = geometry.gradient_of(op, &spread, &weight)?;
        let whole = self.windows.iter().all(|(window, _)| phased(window).0 == 1);
        if whole && dx.shape()[2..] == x.shape()[2..] {
            return Ok(dx);
        }
        let lead = [dx.shape()[0], groups * channels];
        let phases = steps.iter().map(|s| s.1);
        let positions = cuts.iter().map(|c| c.1);
        dx = dx.reshape_unchecked(lead.into_iter().chain(phases).chain(positions).collect());
        let order = (0..n).flat_map(|i| [n + 2 + i, 2 + i]);
        dx = dx.permute_unchecked(&[0, 1].into_iter().chain(order).collect::<Vec<_>>());
        let mut whole = lead.to_vec();
        for (i, (window, _)) in self.windows.iter().enumerate() {
            let (stride, _) = phased(window);
            dx = dx.reach(3 + 2 * i, stride)?;
            whole.push(cuts[i].1 * stride);
        }
        let kept = cuts.iter().zip(&x.shape()[2..]).map(|(cut, &extent)| (cut.0, cut.0 + extent));
        let kept: Vec<_> = lead.iter().map(|&d| (0, d)).chain(kept).collect();
        Ok(dx.reshape_unchecked(whole.into()).shrink_unchecked(&kept))
    }

    /// `forward`, with the gradient rule again, so that gradients of gradients are convolutions.
    #[track_caller]
    fn gradient_of(self, op: &'static str, x: &Tensor, weight: &Tensor) -> Result<Tensor> {
        let y = self.forward(op, x, weight)?;
        y.with_gradient(&[x, weight], move |inputs, _, dy| {
            let [x, weight] = inputs else { unreachable!("invariant: the rule has two inputs") };
            let dx = self.input_gradient(op, x, weight, dy)?;
            let dw = self.weight_gradient(op, x, weight, dy)?;
            Ok(vec![Some(dx.cast(x.dtype())), Some(dw.cast(weight.dtype()))])
        })
    }

    /// The cotangent of the weight: windows times the result's cotangent, summed over images and
    /// positions.
    #[track_caller]
    fn weight_gradient(
        &self,
        op: &'static str,
        x: &Tensor,
        weight: &Tensor,
        dy: &Tensor,
    ) -> Result<Tensor> {
        let (batch, out, channels) = (x.shape()[0], weight.shape()[0], weight.shape()[1]);
        let (n, outputs) = (self.windows.len(), out / self.groups);
        let full = self.product([batch, self.groups, outputs], true, channels, true);
        let (dy, one) =
            (unwidened(dy), self.product([batch, self.groups, outputs], true, 1, false));
        let wide = x.dtype().promote(dy.dtype()).product_accumulator();
        let dy = dy.reshape_unchecked(one).cast(wide).broadcast_unchecked(&full);
        let windows = self.windows_of(op, x)?.cast(wide).broadcast_unchecked(&full);
        let product = windows.combine(BinaryOp::Mul, &dy);
        let summed = (3..n + 3).fold(1, |mask, axis| mask | 1 << axis);
        Ok(product.reduce(BinaryOp::Add, summed).reshape_unchecked(weight.shape().clone()))
    }
}

/// The halves that `x` is the exact conversion of, if it is one: those of a result that was
/// rounded to halves have their cotangent so.
#[track_caller]
fn unwidened(x: &Tensor) -> Tensor {
    let history = x.history();
    if let Some(Expr { op: Op::Cast { bits: false }, srcs: [Some(halves), ..] }) = history.expr()
        && halves.dtype() != x.dtype()
        && halves.dtype().accumulator() == x.dtype()
    {
        return halves.clone();
    }
    x.clone()
}

/// The elements of an axis `stride` apart, with zeros between.
#[track_caller]
fn spread_out(x: &Tensor, axis: usize, stride: usize) -> Result<Tensor> {
    let extent = x.shape()[axis];
    if stride == 1 || extent == 0 {
        return Ok(x.clone());
    }
    let x = x.unsqueeze(axis as isize + 1)?;
    let mut padding = vec![(0, 0); x.rank()];
    padding[axis + 1].1 = stride - 1;
    let x = x.pad(padding)?.flatten_axes(axis as isize, axis as isize + 1)?;
    x.slice(axis as isize, ..(extent - 1) * stride + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Runtime;

    /// Every window of every small axis, element by element.
    #[test]
    fn windows_pick_the_right_elements() {
        let device = Runtime::default().device("reference").unwrap();
        let mut n = 0;
        for extent in 1..9 {
            let x = Tensor::iota(2 * extent * 3, DType::I64, &device);
            let x = x.reshape([2, extent, 3]).unwrap();
            for (kernel, stride, dilation) in
                (1..5).flat_map(|k| (1..6).flat_map(move |s| (1..4).map(move |d| (k, s, d))))
            {
                let window = Window { kernel, stride, dilation };
                let Ok(positions) = window.positions(extent) else {
                    assert!(x.windows("test", 1, window).is_err());
                    continue;
                };
                let y = x.windows("test", 1, window).unwrap();
                assert_eq!(y.shape().dims(), [2, kernel, positions, 3]);
                let actual = y.to_vec::<i64>().unwrap();
                let mut expected = Vec::new();
                for a in 0..2 {
                    for j in 0..kernel {
                        for o in 0..positions {
                            let l = o * stride + j * dilation;
                            expected.extend((0..3).map(|c| ((a * extent + l) * 3 + c) as i64));
                        }
                    }
                }
                assert_eq!(actual, expected, "extent {extent}, {window:?}");
                n += 1;
            }
        }
        assert!(n > 200, "{n} windows were compared");
    }

    /// Cotangents of the input for kernels, strides, dilations and paddings of all small sizes, in
    /// one and two dimensions, beside the sums that define them.
    #[test]
    fn input_gradients_are_the_sums_that_define_them() {
        let device = Runtime::default().device("reference").unwrap();
        let numbers = |dims: [usize; 4], by: i64| -> (Tensor, Vec<i64>) {
            let n: usize = dims.iter().product();
            let all: Vec<i64> = (0..n as i64).map(|i| (i * by + 3) % 23 - 11).collect();
            (Tensor::from_slice(&all, dims, &device).unwrap(), all)
        };
        let mut n = 0;
        for (k, s, d) in
            (1..5).flat_map(|k| (1..5).flat_map(move |s| (1..3).map(move |d| (k, s, d))))
        {
            for (extent, pad) in [(1, 0), (4, 1), (5, 0), (6, 3), (9, 2)] {
                // Rows slide in another way than columns.
                let windows = [
                    Window { kernel: k, stride: s, dilation: d },
                    Window { kernel: 3, stride: 2, dilation: 1 },
                ];
                let extents = [extent, 5];
                let pads = [pad, 1];
                let positions = [0, 1].map(|i| windows[i].positions(extents[i] + 2 * pads[i]));
                let [Ok(rows), Ok(columns)] = positions else { continue };
                let (groups, out, channels) = (2, 4, 3);
                let (dy, dys) = numbers([2, out, rows, columns], 7);
                let (w, ws) = numbers([out, channels, k, 3], 5);
                let x = Tensor::zeros([2, groups * channels, extent, 5], DType::I64, &device);
                let geometry = Geometry {
                    groups,
                    padding: vec![(0, 0), (0, 0), (pad, pad), (1, 1)],
                    windows: vec![(windows[0], rows), (windows[1], columns)],
                };
                let dx = geometry.input_gradient("test", &x, &w, &dy).unwrap();
                assert_eq!(dx.shape(), x.shape());
                let mut expected = vec![0; x.numel()];
                for (image, o, c) in (0..2)
                    .flat_map(|i| (0..out).flat_map(move |o| (0..channels).map(move |c| (i, o, c))))
                {
                    let channel = o / (out / groups) * channels + c;
                    for (i, j) in (0..k).flat_map(|i| (0..3).map(move |j| (i, j))) {
                        for (r, q) in (0..rows).flat_map(|r| (0..columns).map(move |q| (r, q))) {
                            let (y, x) = (r * s + i * d, q * 2 + j);
                            let inside = y >= pad && y < pad + extent && (1..6).contains(&x);
                            if inside {
                                let at = (image * groups * channels + channel) * extent + y - pad;
                                expected[at * 5 + x - 1] += ws
                                    [((o * channels + c) * k + i) * 3 + j]
                                    * dys[((image * out + o) * rows + r) * columns + q];
                            }
                        }
                    }
                }
                assert_eq!(dx.to_vec::<i64>().unwrap(), expected, "{windows:?}, {extent}, {pad}");
                n += 1;
            }
        }
        assert!(n > 100, "{n} convolutions were compared");
    }
}
