//! Pooling over one and three axes, with positions, by p-norms, adaptive, and undone.
//!
//! Everything here is [`super::pool`] for another number of axes; see there how windows are read.

use super::{Pool, Tensor};
use crate::error::{Named, Result};
use crate::origin::composed;
use crate::shape::Shape;

impl Tensor {
    /// The largest element of each window over the last axis; see [`Tensor::max_pool2d`].
    ///
    /// ```
    /// # use zyx::{Pool, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 2.0, 5.0, 3.0], &device)?;
    /// assert_eq!(x.max_pool1d(Pool::new([2]))?.to_vec::<f32>()?, [2.0, 5.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::max_pool2d`].
    #[track_caller]
    pub fn max_pool1d(&self, pool: Pool<1>) -> Result<Tensor> {
        self.max_pool("max_pool1d", pool).named("max_pool1d")
    }

    /// The mean of each window over the last axis; see [`Tensor::avg_pool2d`].
    ///
    /// ```
    /// # use zyx::{Pool, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 2.0, 5.0, 3.0], &device)?;
    /// assert_eq!(x.avg_pool1d(Pool::new([2]))?.to_vec::<f32>()?, [1.5, 4.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::max_pool2d`].
    #[track_caller]
    pub fn avg_pool1d(&self, pool: Pool<1>) -> Result<Tensor> {
        self.avg_pool("avg_pool1d", pool).named("avg_pool1d")
    }

    /// Means over the last axis, of extents `output` then; see [`Tensor::adaptive_avg_pool2d`].
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 2.0, 5.0, 3.0], &device)?;
    /// assert_eq!(x.adaptive_avg_pool1d([2])?.to_vec::<f32>()?, [1.5, 4.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::adaptive_avg_pool2d`].
    #[track_caller]
    pub fn adaptive_avg_pool1d(&self, output: [usize; 1]) -> Result<Tensor> {
        self.adaptive_avg("adaptive_avg_pool1d", output).named("adaptive_avg_pool1d")
    }

    /// The largest element of each window over the last three axes; see [`Tensor::max_pool2d`].
    ///
    /// ```
    /// # use zyx::{DType, Pool, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::iota(8, DType::F32, &device).reshape([2, 2, 2])?;
    /// assert_eq!(x.max_pool3d(Pool::new([2, 2, 2]))?.to_vec::<f32>()?, [7.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::max_pool2d`].
    #[track_caller]
    pub fn max_pool3d(&self, pool: Pool<3>) -> Result<Tensor> {
        self.max_pool("max_pool3d", pool).named("max_pool3d")
    }

    /// The mean of each window over the last three axes; see [`Tensor::avg_pool2d`].
    ///
    /// ```
    /// # use zyx::{DType, Pool, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::iota(8, DType::F32, &device).reshape([2, 2, 2])?;
    /// assert_eq!(x.avg_pool3d(Pool::new([2, 2, 2]))?.to_vec::<f32>()?, [3.5]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::max_pool2d`].
    #[track_caller]
    pub fn avg_pool3d(&self, pool: Pool<3>) -> Result<Tensor> {
        self.avg_pool("avg_pool3d", pool).named("avg_pool3d")
    }

    /// Means over the last three axes, of extents `output` then; see [`Tensor::adaptive_avg_pool2d`].
    ///
    /// ```
    /// # use zyx::{DType, Pool, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::iota(8, DType::F32, &device).reshape([2, 2, 2])?;
    /// assert_eq!(x.adaptive_avg_pool3d([1, 1, 1])?.to_vec::<f32>()?, [3.5]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::adaptive_avg_pool2d`].
    #[track_caller]
    pub fn adaptive_avg_pool3d(&self, output: [usize; 3]) -> Result<Tensor> {
        self.adaptive_avg("adaptive_avg_pool3d", output).named("adaptive_avg_pool3d")
    }

    /// Largest elements over the last axis, of extents `output` then, of the same pieces as those of
    /// [`Tensor::adaptive_avg_pool2d`].
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 2.0, 5.0], &device)?;
    /// assert_eq!(x.adaptive_max_pool1d([2])?.to_vec::<f32>()?, [2.0, 5.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there are too few axes, or an extent or `output` is 0.
    #[track_caller]
    pub fn adaptive_max_pool1d(&self, output: [usize; 1]) -> Result<Tensor> {
        self.adaptive_max("adaptive_max_pool1d", output).named("adaptive_max_pool1d")
    }

    /// `(sum x^p)^(1/p)` of each window over the last axis, with gradient 0 where that is 0.
    ///
    /// ```
    /// # use zyx::{Pool, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([3f32, 4.0], &device)?;
    /// assert_eq!(x.lp_pool1d(2.0, Pool::new([2]))?.to_vec::<f32>()?, [5.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::max_pool2d`], and when `p` is not positive.
    #[track_caller]
    pub fn lp_pool1d(&self, p: f64, pool: Pool<1>) -> Result<Tensor> {
        self.lp_pool("lp_pool1d", p, pool).named("lp_pool1d")
    }

    /// As [`Tensor::max_pool1d`], with the position (`i64`) of each window's first largest element in the
    /// last axis, counted row by row.
    ///
    /// ```
    /// # use zyx::{Pool, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 7.0, 5.0, 3.0], &device)?;
    /// let (y, at) = x.max_pool1d_with_indices(Pool::new([2]))?;
    /// assert_eq!(y.to_vec::<f32>()?, [7.0, 5.0]);
    /// assert_eq!(at.to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::max_pool2d`].
    #[track_caller]
    pub fn max_pool1d_with_indices(&self, pool: Pool<1>) -> Result<(Tensor, Tensor)> {
        self.max_pool_with_indices("max_pool1d_with_indices", pool).named("max_pool1d_with_indices")
    }

    /// Zeros of extents `output` along the last axis, with each element put where `indices` says:
    /// [`Tensor::max_pool1d_with_indices`] undone.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([7f32, 5.0], &device)?;
    /// let at = Tensor::new([1i64, 2], &device)?;
    /// assert_eq!(x.max_unpool1d(&at, [4])?.to_vec::<f32>()?, [0.0, 7.0, 5.0, 0.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the indices are not integers of this shape, there are too few axes, or the output is too
    /// large.
    #[track_caller]
    pub fn max_unpool1d(&self, indices: &Tensor, output: [usize; 1]) -> Result<Tensor> {
        self.unpool("max_unpool1d", indices, output).named("max_unpool1d")
    }

    /// Largest elements over the last two axes, of extents `output` then, of the same pieces as those of
    /// [`Tensor::adaptive_avg_pool2d`].
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0, 5.0]], &device)?;
    /// assert_eq!(x.adaptive_max_pool2d([1, 2])?.to_vec::<f32>()?, [2.0, 5.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there are too few axes, or an extent or `output` is 0.
    #[track_caller]
    pub fn adaptive_max_pool2d(&self, output: [usize; 2]) -> Result<Tensor> {
        self.adaptive_max("adaptive_max_pool2d", output).named("adaptive_max_pool2d")
    }

    /// `(sum x^p)^(1/p)` of each window over the last two axes, with gradient 0 where that is 0.
    ///
    /// ```
    /// # use zyx::{Pool, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[3f32, 4.0]], &device)?;
    /// assert_eq!(x.lp_pool2d(2.0, Pool::new([1, 2]))?.to_vec::<f32>()?, [5.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::max_pool2d`], and when `p` is not positive.
    #[track_caller]
    pub fn lp_pool2d(&self, p: f64, pool: Pool<2>) -> Result<Tensor> {
        self.lp_pool("lp_pool2d", p, pool).named("lp_pool2d")
    }

    /// As [`Tensor::max_pool2d`], with the position (`i64`) of each window's first largest element in the
    /// last two axes, counted row by row.
    ///
    /// ```
    /// # use zyx::{Pool, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 7.0, 5.0, 3.0]], &device)?;
    /// let (y, at) = x.max_pool2d_with_indices(Pool::new([1, 2]))?;
    /// assert_eq!(y.to_vec::<f32>()?, [7.0, 5.0]);
    /// assert_eq!(at.to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::max_pool2d`].
    #[track_caller]
    pub fn max_pool2d_with_indices(&self, pool: Pool<2>) -> Result<(Tensor, Tensor)> {
        self.max_pool_with_indices("max_pool2d_with_indices", pool).named("max_pool2d_with_indices")
    }

    /// Zeros of extents `output` along the last two axes, with each element put where `indices` says:
    /// [`Tensor::max_pool2d_with_indices`] undone.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[7f32, 5.0]], &device)?;
    /// let at = Tensor::new([[1i64, 2]], &device)?;
    /// assert_eq!(x.max_unpool2d(&at, [1, 4])?.to_vec::<f32>()?, [0.0, 7.0, 5.0, 0.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the indices are not integers of this shape, there are too few axes, or the output is too
    /// large.
    #[track_caller]
    pub fn max_unpool2d(&self, indices: &Tensor, output: [usize; 2]) -> Result<Tensor> {
        self.unpool("max_unpool2d", indices, output).named("max_unpool2d")
    }

    /// Largest elements over the last three axes, of extents `output` then, of the same pieces as those of
    /// [`Tensor::adaptive_avg_pool2d`].
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[[1f32, 2.0, 5.0]]], &device)?;
    /// assert_eq!(x.adaptive_max_pool3d([1, 1, 2])?.to_vec::<f32>()?, [2.0, 5.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there are too few axes, or an extent or `output` is 0.
    #[track_caller]
    pub fn adaptive_max_pool3d(&self, output: [usize; 3]) -> Result<Tensor> {
        self.adaptive_max("adaptive_max_pool3d", output).named("adaptive_max_pool3d")
    }

    /// `(sum x^p)^(1/p)` of each window over the last three axes, with gradient 0 where that is 0.
    ///
    /// ```
    /// # use zyx::{Pool, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[[3f32, 4.0]]], &device)?;
    /// assert_eq!(x.lp_pool3d(2.0, Pool::new([1, 1, 2]))?.to_vec::<f32>()?, [5.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::max_pool2d`], and when `p` is not positive.
    #[track_caller]
    pub fn lp_pool3d(&self, p: f64, pool: Pool<3>) -> Result<Tensor> {
        self.lp_pool("lp_pool3d", p, pool).named("lp_pool3d")
    }

    /// As [`Tensor::max_pool3d`], with the position (`i64`) of each window's first largest element in the
    /// last three axes, counted row by row.
    ///
    /// ```
    /// # use zyx::{Pool, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[[1f32, 7.0, 5.0, 3.0]]], &device)?;
    /// let (y, at) = x.max_pool3d_with_indices(Pool::new([1, 1, 2]))?;
    /// assert_eq!(y.to_vec::<f32>()?, [7.0, 5.0]);
    /// assert_eq!(at.to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::max_pool2d`].
    #[track_caller]
    pub fn max_pool3d_with_indices(&self, pool: Pool<3>) -> Result<(Tensor, Tensor)> {
        self.max_pool_with_indices("max_pool3d_with_indices", pool).named("max_pool3d_with_indices")
    }

    /// Zeros of extents `output` along the last three axes, with each element put where `indices` says:
    /// [`Tensor::max_pool3d_with_indices`] undone.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[[7f32, 5.0]]], &device)?;
    /// let at = Tensor::new([[[1i64, 2]]], &device)?;
    /// assert_eq!(x.max_unpool3d(&at, [1, 1, 4])?.to_vec::<f32>()?, [0.0, 7.0, 5.0, 0.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the indices are not integers of this shape, there are too few axes, or the output is too
    /// large.
    #[track_caller]
    pub fn max_unpool3d(&self, indices: &Tensor, output: [usize; 3]) -> Result<Tensor> {
        self.unpool("max_unpool3d", indices, output).named("max_unpool3d")
    }

    #[track_caller]
    fn unpool<const N: usize>(
        &self,
        op: &'static str,
        indices: &Tensor,
        output: [usize; N],
    ) -> Result<Tensor> {
        Tensor::check_operands(op, &[self, indices])?;
        let fail = |reason: &str| Tensor::shape_error(op, &[self, indices], reason.to_owned());
        if self.rank() < N || !self.shape().same(indices.shape()) {
            return Err(fail("needs indices of its own shape, of as many axes as it pools"));
        }
        if !indices.dtype().is_int() {
            let reason = "indices must be integers".to_owned();
            return Err(Tensor::dtype_error(op, &[self, indices], reason));
        }
        let lead = &self.shape()[..self.rank() - N];
        let shape = Shape::from([lead, &output].concat());
        if !shape.is_possible() {
            return Err(fail("the output is too large"));
        }
        if shape.numel() == 0 || self.numel() == 0 {
            return Ok(Tensor::zeros(shape, self.dtype(), self.device()));
        }
        let _here = composed();
        let flat = |x: &Tensor| {
            let n = x.numel() / lead.iter().product::<usize>();
            x.reshape([lead, &[n]].concat())
        };
        let base = flat(&Tensor::zeros(shape.clone(), self.dtype(), self.device()))?;
        let index = flat(indices)?.within(op, 0, output.iter().product(), None)?;
        let axis = lead.len();
        base.scatter_unchecked(axis, None, &index, &flat(self)?).reshape(shape)
    }
}
