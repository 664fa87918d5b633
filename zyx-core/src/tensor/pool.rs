//! Pooling: windows over the last two axes, each reduced to one element.
//!
//! Gradients follow from those of the reduction: a mean spreads evenly, a maximum goes where the
//! gradient of [`Tensor::max`] goes. Where windows tile the input (stride equal to the kernel, no
//! padding, the common case) they are a plain reshape.

use super::Tensor;
use super::convolution::Window;
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::ops::BinaryOp;
use crate::scalar::Scalar;
use crate::shape::Shape;

/// The windows of a pooling; the first entry of each pair is for rows, the second for columns.
///
/// ```
/// use zyx_core::Pool2d;
/// assert_eq!(Pool2d::new([2, 2]).stride, [2, 2]);
/// let overlapping = Pool2d { stride: [1, 1], ..Pool2d::new([3, 3]) };
/// assert_eq!(overlapping.kernel, [3, 3]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pool2d {
    /// Extents of a window.
    pub kernel: [usize; 2],
    /// Distance between windows.
    pub stride: [usize; 2],
    /// Elements added on both sides, at most half a window.
    pub padding: [usize; 2],
    /// Distance between elements of a window.
    pub dilation: [usize; 2],
}

impl Pool2d {
    /// Windows that tile the input: stride equal to the kernel, no padding, no dilation.
    ///
    /// ```
    /// # use zyx_core::Pool2d;
    /// assert_eq!(Pool2d::new([3, 2]).stride, [3, 2]);
    /// ```
    pub fn new(kernel: [usize; 2]) -> Pool2d {
        Pool2d { kernel, stride: kernel, padding: [0; 2], dilation: [1; 2] }
    }

    fn window(&self, i: usize) -> Window {
        Window { kernel: self.kernel[i], stride: self.stride[i], dilation: self.dilation[i] }
    }
}

impl Tensor {
    /// The largest element of each window over the last two axes; NaN if it has one. What is
    /// padded never wins.
    ///
    /// ```
    /// # use zyx_core::{Pool2d, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0, 5.0, 6.0], [3.0, 4.0, 7.0, 8.0]], &device)?;
    /// assert_eq!(x.max_pool2d(Pool2d::new([2, 2]))?.to_vec::<f32>()?, [4.0, 8.0]);
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Below rank 2, when a window does not fit, when kernel, stride or dilation has a 0, or when
    /// the padding is more than half a window.
    #[track_caller]
    pub fn max_pool2d(&self, pool: Pool2d) -> Result<Tensor> {
        let lowest = Scalar::lowest(self.dtype()).to_f64();
        let windows = self.pool_windows("max_pool2d", pool, lowest)?;
        Ok(windows.reduce_windows(BinaryOp::Max))
    }

    /// The mean of each window over the last two axes; padded zeros count. Integers give `f32`.
    ///
    /// ```
    /// # use zyx_core::{Pool2d, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(x.avg_pool2d(Pool2d::new([2, 2]))?.to_vec::<f32>()?, [2.5]);
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::max_pool2d`].
    #[track_caller]
    pub fn avg_pool2d(&self, pool: Pool2d) -> Result<Tensor> {
        let x = self.floating();
        let windows = x.cast(x.dtype().accumulator()).pool_windows("avg_pool2d", pool, 0.0)?;
        let sum = windows.reduce_windows(BinaryOp::Add);
        let scale = sum.like(1.0 / (pool.kernel[0] as f64 * pool.kernel[1] as f64));
        Ok(sum.combine(BinaryOp::Mul, &scale).cast(x.dtype()))
    }

    /// The mean of each window over the last two axes, without counting what is padded.
    ///
    /// ```
    /// # use zyx_core::{Pool2d, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::new([[4f32]], &device)?;
    /// let pool = Pool2d { padding: [1, 1], ..Pool2d::new([2, 2]) };
    /// assert_eq!(x.avg_pool2d_inside(pool)?.to_vec::<f32>()?, [4.0]);
    /// assert_eq!(x.avg_pool2d(pool)?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::max_pool2d`].
    #[track_caller]
    pub fn avg_pool2d_inside(&self, pool: Pool2d) -> Result<Tensor> {
        const OP: &str = "avg_pool2d_inside";
        let x = self.floating();
        let wide = x.cast(x.dtype().accumulator());
        let sum = wide.pool_windows(OP, pool, 0.0)?.reduce_windows(BinaryOp::Add);
        let image = Shape::from(&self.shape()[self.rank() - 2..]);
        let ones = Tensor::ones(image, wide.dtype(), self.device());
        let count = ones.pool_windows(OP, pool, 0.0)?.reduce_windows(BinaryOp::Add);
        Ok(sum.div(&count)?.cast(x.dtype()))
    }

    /// Axes `[.., kernel, rows, kernel, columns]`.
    #[track_caller]
    fn pool_windows(&self, op: &'static str, pool: Pool2d, outside: f64) -> Result<Tensor> {
        let Some(rows) = self.rank().checked_sub(2) else {
            let reason = "needs at least two axes".to_owned();
            return Err(Tensor::shape_error(op, &[self], reason));
        };
        let mut padding = vec![(0, 0); self.rank()];
        for i in 0..2 {
            let reach = (pool.kernel[i].max(1) - 1).saturating_mul(pool.dilation[i]);
            if pool.padding[i] > reach.saturating_add(1) / 2 {
                let reason = format!("padding {} is more than half a window", pool.padding[i]);
                return Err(Tensor::shape_error(op, &[self], reason));
            }
            padding[rows + i] = (pool.padding[i], pool.padding[i]);
        }
        let padded = self.pad_with(padding, outside).named(op)?;
        padded.windows(op, rows + 1, pool.window(1))?.windows(op, rows, pool.window(0))
    }

    /// Combines over the window axes of [`Tensor::pool_windows`].
    fn reduce_windows(&self, op: BinaryOp) -> Tensor {
        let mask = 1 << (self.rank() - 4) | 1 << (self.rank() - 2);
        self.reduce(op, mask).without(mask)
    }

    /// The mean over the last two axes, which go.
    ///
    /// ```
    /// # use zyx_core::{Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(x.global_avg_pool2d()?.item::<f32>()?, 2.5);
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Below rank 2.
    #[track_caller]
    pub fn global_avg_pool2d(&self) -> Result<Tensor> {
        if self.rank() < 2 {
            let reason = "needs at least two axes".to_owned();
            return Err(Tensor::shape_error("global_avg_pool2d", &[self], reason));
        }
        self.mean([-2, -1]).named("global_avg_pool2d")
    }

    /// Means over the last two axes, which become `output`: along an axis of extent `n` made `m`,
    /// element `i` is the mean of `floor(i n / m) .. ceil((i + 1) n / m)`, as in PyTorch.
    ///
    /// ```
    /// # use zyx_core::{Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0, 3.0]], &device)?;
    /// assert_eq!(x.adaptive_avg_pool2d([1, 2])?.to_vec::<f32>()?, [1.5, 2.5]);
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Below rank 2, or when an extent or `output` is 0.
    #[track_caller]
    pub fn adaptive_avg_pool2d(&self, output: [usize; 2]) -> Result<Tensor> {
        const OP: &str = "adaptive_avg_pool2d";
        let Some(&[height, width]) = self.shape().last_chunk::<2>() else {
            let reason = "needs at least two axes".to_owned();
            return Err(Tensor::shape_error(OP, &[self], reason));
        };
        let [rows, columns] = output;
        if rows == 0 || columns == 0 || height == 0 || width == 0 {
            let reason = format!("there is no mean of nothing; the output is to be {output:?}");
            return Err(Tensor::shape_error(OP, &[self], reason));
        }
        if height.is_multiple_of(rows) && width.is_multiple_of(columns) {
            let tiles = Pool2d::new([height / rows, width / columns]);
            return self.avg_pool2d(tiles).named(OP);
        }
        let lead = &self.shape()[..self.rank() - 2];
        if !Shape::from([lead, &[rows.max(height), columns.max(width)]].concat()).is_possible() {
            let reason = format!("an output of {output:?} has too many elements");
            return Err(Tensor::shape_error(OP, &[self], reason));
        }
        let x = self.floating();
        let wide = x.cast(x.dtype().accumulator());
        // Both axes one after the other: means of means over a grid are means.
        let y = wide.matmul(&wide.averaging(width, columns)?)?;
        let y = y.t().matmul(&wide.averaging(height, rows)?)?.t();
        Ok(y.cast(x.dtype()))
    }

    /// The `[n, m]` matrix whose column `i` takes the mean of the `i`-th of `m` pieces of `n`.
    fn averaging(&self, n: usize, m: usize) -> Result<Tensor> {
        let (extent, pieces) = (n as i64, m as i64);
        let piece = Tensor::iota(m, DType::I64, self.device());
        let start = piece.mul(extent)?.floor_divide(pieces)?;
        let end = piece.add(1)?.mul(extent)?.add(pieces - 1)?.floor_divide(pieces)?;
        let place = Tensor::iota(n, DType::I64, self.device()).unsqueeze(-1)?;
        let inside = place.ge(&start)?.bitwise_and(place.lt(&end)?)?;
        inside.cast(self.dtype()).div(end.sub(&start)?.cast(self.dtype()))
    }
}
