//! Padding with what is there (reflected, repeated, circular), sliding windows as columns and
//! back, and channels exchanged for positions.
//!
//! Everything is movement, so gradients are sums of moved pieces and nothing is scattered.

use super::convolution::Window;
use super::{Pool, Tensor};
use crate::error::{Named, Result};
use crate::origin::composed;
use crate::shape::Shape;

/// What is found beyond the ends of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum PadMode {
    /// Zeros.
    #[default]
    Zeros,
    /// A number.
    Constant(f64),
    /// The elements next to the end in reverse order, without the one at the end: `cb|abc|ba`.
    Reflect,
    /// The element at the end.
    Replicate,
    /// The elements from the other end.
    Circular,
}

impl Tensor {
    /// Padded by `(before, after)` elements along each axis, with what `mode` says. (PyTorch lists
    /// the last axis first; here the list is in the order of the axes.)
    ///
    /// ```
    /// # use zyx::{PadMode, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 2.0, 3.0], &device)?;
    /// let padded = |mode| x.pad_mode([(2, 1)], mode)?.to_vec::<f32>();
    /// assert_eq!(padded(PadMode::Reflect)?, [3.0, 2.0, 1.0, 2.0, 3.0, 2.0]);
    /// assert_eq!(padded(PadMode::Replicate)?, [1.0, 1.0, 1.0, 2.0, 3.0, 3.0]);
    /// assert_eq!(padded(PadMode::Circular)?, [2.0, 3.0, 1.0, 2.0, 3.0, 1.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the list does not have an entry for each axis, or more is asked for than an axis has
    /// (one less for [`PadMode::Reflect`]).
    #[track_caller]
    pub fn pad_mode(&self, padding: impl AsRef<[(usize, usize)]>, mode: PadMode) -> Result<Tensor> {
        const OP: &str = "pad_mode";
        let _here = composed();
        let padding = padding.as_ref();
        match mode {
            PadMode::Zeros => return self.pad(padding).named(OP),
            PadMode::Constant(value) => return self.pad_with(padding, value).named(OP),
            PadMode::Reflect | PadMode::Replicate | PadMode::Circular => {}
        }
        let whole = || {
            // Refuses what does not fit, once for all axes.
            self.pad(padding)?;
            let padded = padding.iter().enumerate().filter(|(_, ends)| **ends != (0, 0));
            padded
                .into_iter()
                .try_fold(self.clone(), |x, (axis, &ends)| x.pad_axis(axis as isize, ends, mode))
        };
        whole().named(OP)
    }

    #[track_caller]
    fn pad_axis(
        &self,
        axis: isize,
        (before, after): (usize, usize),
        mode: PadMode,
    ) -> Result<Tensor> {
        let n = self.shape()[axis as usize];
        let most = match mode {
            PadMode::Reflect => n.saturating_sub(1),
            PadMode::Circular => n,
            _ if n == 0 => 0,
            _ => usize::MAX,
        };
        if before > most || after > most {
            let reason = format!("padding ({before}, {after}) of {n} elements, {mode:?}");
            return Err(Tensor::shape_error("pad_mode", &[self], reason));
        }
        let repeated = |place: usize, times: usize| {
            let mut dims = self.shape().to_vec();
            dims[axis as usize] = times;
            self.slice(axis, place..place + 1)?.expand(dims)
        };
        let (front, back) = match mode {
            PadMode::Reflect => (
                self.slice(axis, 1..before + 1)?.flip(axis)?,
                self.slice(axis, n - 1 - after..n - 1)?.flip(axis)?,
            ),
            PadMode::Circular => (self.slice(axis, n - before..)?, self.slice(axis, ..after)?),
            _ => (repeated(0, before)?, repeated(n - 1, after)?),
        };
        Tensor::cat(&[&front, self, &back], axis)
    }

    /// All windows of the last two axes of `[n, channels, height, width]` as columns:
    /// `[n, channels * kernel height * kernel width, positions]` (PyTorch's
    /// function `unfold`). Padding is with zeros.
    ///
    /// ```
    /// # use zyx::{Pool, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[[[1f32, 2.0, 3.0]]]], &device)?;
    /// let columns = x.im2col(Pool { stride: [1, 1], ..Pool::new([1, 2]) })?;
    /// assert_eq!(columns.to_vec::<f32>()?, [1.0, 2.0, 2.0, 3.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there are not four axes, a window does not fit, or kernel, stride or dilation has a 0.
    #[track_caller]
    pub fn im2col(&self, windows: Pool<2>) -> Result<Tensor> {
        self.columns("im2col", windows).named("im2col")
    }

    #[track_caller]
    fn columns(&self, op: &'static str, of: Pool<2>) -> Result<Tensor> {
        let _here = composed();
        Tensor::check_operands(op, &[self])?;
        let &[n, channels, _, _] = self.shape().dims() else {
            let reason = "needs [n, channels, height, width]".to_owned();
            return Err(Tensor::shape_error(op, &[self], reason));
        };
        let padding = [0, 1].map(|i| (of.padding[i], of.padding[i]));
        let padded = self.pad([(0, 0), (0, 0), padding[0], padding[1]])?;
        let window = |i: usize| Window {
            kernel: of.kernel[i],
            stride: of.stride[i],
            dilation: of.dilation[i],
        };
        let windows = padded.windows(op, 3, window(1))?.windows(op, 2, window(0))?;
        let extents = windows.shape().to_vec();
        let columns = windows.permute([0, 1, 2, 4, 3, 5])?;
        let rows = channels.saturating_mul(extents[2]).saturating_mul(extents[4]);
        columns.reshape([n, rows, extents[3] * extents[5]])
    }

    /// Columns `[n, channels * kernel height * kernel width, positions]` added up where their
    /// windows lie in `[n, channels, height, width]` with `output` the last two: the adjoint of
    /// [`Tensor::im2col`].
    ///
    /// ```
    /// # use zyx::{Pool, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let columns = Tensor::new([[[1f32, 2.0], [2.0, 3.0]]], &device)?;
    /// let x = columns.col2im([1, 3], Pool { stride: [1, 1], ..Pool::new([1, 2]) })?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 4.0, 3.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the columns are not those of such windows, or do not hold floats.
    #[track_caller]
    pub fn col2im(&self, output: [usize; 2], windows: Pool<2>) -> Result<Tensor> {
        const OP: &str = "col2im";
        let _here = composed();
        let folded = || {
            Tensor::check_operands(OP, &[self])?;
            let size = windows.kernel[0].saturating_mul(windows.kernel[1]);
            let fits = match self.shape().dims() {
                &[n, rows, _] if size > 0 && rows.is_multiple_of(size) => Some((n, rows / size)),
                _ => None,
            };
            let shape = fits.map(|(n, channels)| Shape::from([n, channels, output[0], output[1]]));
            let Some(shape) = shape.filter(Shape::is_possible) else {
                let reason = "needs columns [n, channels * kernel, positions]".to_owned();
                return Err(Tensor::shape_error(OP, &[self], reason));
            };
            if !self.dtype().is_float() {
                let reason = "columns are added as floats; cast first".to_owned();
                return Err(Tensor::dtype_error(OP, &[self], reason));
            }
            // The adjoint of a linear map is its gradient, which is linear in the cotangent.
            let image = Tensor::zeros(shape, self.dtype(), self.device());
            let columns = image.columns(OP, windows)?;
            if !columns.shape().same(self.shape()) {
                let reason = format!("windows of {output:?} give columns {}", columns.shape());
                return Err(Tensor::shape_error(OP, &[self], reason));
            }
            if self.numel() == 0 {
                return Ok(image);
            }
            let folded = columns.grad_with(self, &[&image])?.remove(0);
            Ok(folded.unwrap_or(image))
        };
        folded().named(OP)
    }

    /// `[.., channels * r^2, height, width]` as `[.., channels, height * r, width * r]`: sub-pixel
    /// positions taken from channels (Shi et al. 2016).
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[[1f32]], [[2.0]], [[3.0]], [[4.0]]], &device)?;
    /// let y = x.pixel_shuffle(2)?;
    /// assert_eq!(y.shape().dims(), [1, 2, 2]);
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Below rank 3, or when `r^2` is 0 or does not divide the channels.
    #[track_caller]
    pub fn pixel_shuffle(&self, r: usize) -> Result<Tensor> {
        const OP: &str = "pixel_shuffle";
        let _here = composed();
        let fail = || {
            let reason =
                format!("needs [.., channels, height, width], channels a multiple of {r}^2");
            Tensor::shape_error(OP, &[self], reason)
        };
        let &[ref lead @ .., channels, height, width] = self.shape().dims() else {
            return Err(fail()).named(OP);
        };
        let square = r.checked_mul(r).filter(|&n| n > 0 && channels.is_multiple_of(n));
        let Some(square) = square.filter(|_| lead.len() + 5 <= Shape::MAX_RANK) else {
            return Err(fail()).named(OP);
        };
        Tensor::check_operands(OP, &[self]).named(OP)?;
        let n = lead.len();
        let split = [lead, &[channels / square, r, r, height, width]].concat();
        let order: Vec<usize> = (0..n).chain([n, n + 3, n + 1, n + 4, n + 2]).collect();
        let merged = [lead, &[channels / square, height * r, width * r]].concat();
        self.reshape(split).and_then(|x| x.permute_unchecked(&order).reshape(merged)).named(OP)
    }

    /// [`Tensor::pixel_shuffle`] undone: `[.., channels, height * r, width * r]` as
    /// `[.., channels * r^2, height, width]`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[[1f32, 2.0], [3.0, 4.0]]], &device)?;
    /// assert_eq!(x.pixel_unshuffle(2)?.shape().dims(), [4, 1, 1]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Below rank 3, or when `r` is 0 or does not divide height and width.
    #[track_caller]
    pub fn pixel_unshuffle(&self, r: usize) -> Result<Tensor> {
        const OP: &str = "pixel_unshuffle";
        let _here = composed();
        let fail = || {
            let reason = format!("needs [.., channels, height, width], extents multiples of {r}");
            Tensor::shape_error(OP, &[self], reason)
        };
        let &[ref lead @ .., channels, height, width] = self.shape().dims() else {
            return Err(fail()).named(OP);
        };
        let divides = r > 0 && height.is_multiple_of(r) && width.is_multiple_of(r);
        let merged = channels.checked_mul(r).and_then(|c| c.checked_mul(r));
        let merged = merged.filter(|_| divides && lead.len() + 5 <= Shape::MAX_RANK);
        let Some(merged) = merged else { return Err(fail()).named(OP) };
        Tensor::check_operands(OP, &[self]).named(OP)?;
        let n = lead.len();
        let split = [lead, &[channels, height / r, r, width / r, r]].concat();
        let order: Vec<usize> = (0..n).chain([n, n + 2, n + 4, n + 1, n + 3]).collect();
        let merged = [lead, &[merged, height / r, width / r]].concat();
        self.reshape(split).and_then(|x| x.permute_unchecked(&order).reshape(merged)).named(OP)
    }

    /// The channels (axis 1) as `groups` rows, read by columns (Zhang et al. 2018).
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0, 3.0, 4.0]], &device)?;
    /// assert_eq!(x.channel_shuffle(2)?.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Below rank 2, or when `groups` does not divide the channels.
    #[track_caller]
    pub fn channel_shuffle(&self, groups: usize) -> Result<Tensor> {
        const OP: &str = "channel_shuffle";
        let _here = composed();
        let fits = match self.shape().dims() {
            [_, channels, ..] => groups > 0 && channels.is_multiple_of(groups),
            _ => false,
        };
        if !fits || self.rank() >= Shape::MAX_RANK {
            let reason = format!("{groups} groups do not divide the channels of axis 1");
            return Err(Tensor::shape_error(OP, &[self], reason));
        }
        let mut dims = self.shape().to_vec();
        dims.splice(1..=1, [groups, dims[1] / groups]);
        let shuffled = self.reshape(dims).and_then(|x| x.transpose(1, 2));
        shuffled.and_then(|x| x.reshape(self.shape().clone())).named(OP)
    }
}
