//! Pooling over one and three axes, with positions, by p-norms, adaptive, and undone.
//!
//! Everything here is [`super::pool`] for another number of axes; see there how windows are read.

use super::{Pool, Tensor};
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::shape::Shape;

/// Methods by number of axes: what the axes are called, the shape of the example's four elements, that of
/// a window of two of them, and names.
macro_rules! pools {
    ($($n:literal $axes:literal $shape:tt $two:tt $max:ident $avg:ident $adaptive:ident;)*) => {
        impl Tensor {$(
            #[doc = concat!("The largest element of each window over ", $axes, "; see [`Tensor::max_pool2d`].")]
            ///
            /// ```
            /// # use zyx_core::{Pool, Runtime, Tensor};
            /// # let device = Runtime::default().device("reference")?;
            #[doc = concat!("let x = Tensor::new([1f32, 2.0, 5.0, 3.0], &device)?.reshape(", stringify!($shape), ")?;")]
            #[doc = concat!("let y = x.", stringify!($max), "(Pool::new(", stringify!($two), "))?;")]
            /// assert_eq!(y.to_vec::<f32>()?, [2.0, 5.0]);
            /// # Ok::<(), zyx_core::Error>(())
            /// ```
            ///
            /// # Errors
            /// As [`Tensor::max_pool2d`].
            #[track_caller]
            pub fn $max(&self, pool: Pool<$n>) -> Result<Tensor> {
                self.max_pool(stringify!($max), pool).named(stringify!($max))
            }

            #[doc = concat!("The mean of each window over ", $axes, "; see [`Tensor::avg_pool2d`].")]
            ///
            /// ```
            /// # use zyx_core::{Pool, Runtime, Tensor};
            /// # let device = Runtime::default().device("reference")?;
            #[doc = concat!("let x = Tensor::new([1f32, 2.0, 5.0, 3.0], &device)?.reshape(", stringify!($shape), ")?;")]
            #[doc = concat!("let y = x.", stringify!($avg), "(Pool::new(", stringify!($two), "))?;")]
            /// assert_eq!(y.to_vec::<f32>()?, [1.5, 4.0]);
            /// # Ok::<(), zyx_core::Error>(())
            /// ```
            ///
            /// # Errors
            /// As [`Tensor::max_pool2d`].
            #[track_caller]
            pub fn $avg(&self, pool: Pool<$n>) -> Result<Tensor> {
                self.avg_pool(stringify!($avg), pool).named(stringify!($avg))
            }

            #[doc = concat!("Means over ", $axes, ", of extents `output` then; see [`Tensor::adaptive_avg_pool2d`].")]
            ///
            /// ```
            /// # use zyx_core::{Runtime, Tensor};
            /// # let device = Runtime::default().device("reference")?;
            #[doc = concat!("let x = Tensor::new([1f32, 2.0, 5.0, 3.0], &device)?.reshape(", stringify!($shape), ")?;")]
            #[doc = concat!("let y = x.", stringify!($adaptive), "(", stringify!($two), ")?;")]
            /// assert_eq!(y.to_vec::<f32>()?, [1.5, 4.0]);
            /// # Ok::<(), zyx_core::Error>(())
            /// ```
            ///
            /// # Errors
            /// As [`Tensor::adaptive_avg_pool2d`].
            #[track_caller]
            pub fn $adaptive(&self, output: [usize; $n]) -> Result<Tensor> {
                self.adaptive_avg(stringify!($adaptive), output).named(stringify!($adaptive))
            }
        )*}
    };
}

pools! {
    1 "the last axis" [4] [2] max_pool1d avg_pool1d adaptive_avg_pool1d;
    3 "the last three axes" [1, 1, 4] [1, 1, 2] max_pool3d avg_pool3d adaptive_avg_pool3d;
}

/// Further methods by number of axes; as above, with the shape of two elements.
macro_rules! further_pools {
    ($($n:literal $axes:literal $shape:tt $two:tt
        $max:ident $lp:ident $with:ident $pool:ident $unpool:ident;)*) => {
        impl Tensor {$(
            #[doc = concat!("Largest elements over ", $axes, ", of extents `output` then, of the same pieces as")]
            /// those of [`Tensor::adaptive_avg_pool2d`].
            ///
            /// ```
            /// # use zyx_core::{Runtime, Tensor};
            /// # let device = Runtime::default().device("reference")?;
            #[doc = concat!("let x = Tensor::new([1f32, 2.0, 5.0, 3.0], &device)?.reshape(", stringify!($shape), ")?;")]
            #[doc = concat!("let y = x.", stringify!($max), "(", stringify!($two), ")?;")]
            /// assert_eq!(y.to_vec::<f32>()?, [2.0, 5.0]);
            /// # Ok::<(), zyx_core::Error>(())
            /// ```
            ///
            /// # Errors
            /// When there are too few axes, or an extent or `output` is 0.
            #[track_caller]
            pub fn $max(&self, output: [usize; $n]) -> Result<Tensor> {
                self.adaptive_max(stringify!($max), output).named(stringify!($max))
            }

            #[doc = concat!("`(sum x^p)^(1/p)` of each window over ", $axes, ", with gradient 0 where that is 0.")]
            ///
            /// ```
            /// # use zyx_core::{Pool, Runtime, Tensor};
            /// # let device = Runtime::default().device("reference")?;
            #[doc = concat!("let x = Tensor::new([3f32, 4.0], &device)?.reshape(", stringify!($two), ")?;")]
            #[doc = concat!("let y = x.", stringify!($lp), "(2.0, Pool::new(", stringify!($two), "))?;")]
            /// assert_eq!(y.to_vec::<f32>()?, [5.0]);
            /// # Ok::<(), zyx_core::Error>(())
            /// ```
            ///
            /// # Errors
            /// As [`Tensor::max_pool2d`], and when `p` is not positive.
            #[track_caller]
            pub fn $lp(&self, p: f64, pool: Pool<$n>) -> Result<Tensor> {
                self.lp_pool(stringify!($lp), p, pool).named(stringify!($lp))
            }

            #[doc = concat!("As [`Tensor::", stringify!($pool), "`], with the position (`i64`) of each window's")]
            #[doc = concat!("first largest element in ", $axes, ", counted row by row.")]
            ///
            /// ```
            /// # use zyx_core::{Pool, Runtime, Tensor};
            /// # let device = Runtime::default().device("reference")?;
            #[doc = concat!("let x = Tensor::new([1f32, 7.0, 5.0, 3.0], &device)?.reshape(", stringify!($shape), ")?;")]
            #[doc = concat!("let (y, at) = x.", stringify!($with), "(Pool::new(", stringify!($two), "))?;")]
            /// assert_eq!(y.to_vec::<f32>()?, [7.0, 5.0]);
            /// assert_eq!(at.to_vec::<i64>()?, [1, 2]);
            /// # Ok::<(), zyx_core::Error>(())
            /// ```
            ///
            /// # Errors
            /// As [`Tensor::max_pool2d`].
            #[track_caller]
            pub fn $with(&self, pool: Pool<$n>) -> Result<(Tensor, Tensor)> {
                self.max_pool_with_indices(stringify!($with), pool).named(stringify!($with))
            }

            #[doc = concat!("Zeros of extents `output` along ", $axes, ", with each element put where `indices`")]
            #[doc = concat!("says: [`Tensor::", stringify!($with), "`] undone.")]
            ///
            /// ```
            /// # use zyx_core::{Runtime, Tensor};
            /// # let device = Runtime::default().device("reference")?;
            #[doc = concat!("let x = Tensor::new([7f32, 5.0], &device)?.reshape(", stringify!($two), ")?;")]
            #[doc = concat!("let at = Tensor::new([1i64, 2], &device)?.reshape(", stringify!($two), ")?;")]
            #[doc = concat!("let y = x.", stringify!($unpool), "(&at, ", stringify!($shape), ")?;")]
            /// assert_eq!(y.to_vec::<f32>()?, [0.0, 7.0, 5.0, 0.0]);
            /// # Ok::<(), zyx_core::Error>(())
            /// ```
            ///
            /// # Errors
            /// When the indices are not integers of this shape, there are too few axes, or the output
            /// is too large.
            #[track_caller]
            pub fn $unpool(&self, indices: &Tensor, output: [usize; $n]) -> Result<Tensor> {
                self.unpool(stringify!($unpool), indices, output).named(stringify!($unpool))
            }
        )*}
    };
}

further_pools! {
    1 "the last axis" [4] [2]
        adaptive_max_pool1d lp_pool1d max_pool1d_with_indices max_pool1d max_unpool1d;
    2 "the last two axes" [1, 4] [1, 2]
        adaptive_max_pool2d lp_pool2d max_pool2d_with_indices max_pool2d max_unpool2d;
    3 "the last three axes" [1, 1, 4] [1, 1, 2]
        adaptive_max_pool3d lp_pool3d max_pool3d_with_indices max_pool3d max_unpool3d;
}

impl Tensor {
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
        let flat = |x: &Tensor| {
            let n = x.numel() / lead.iter().product::<usize>();
            x.reshape([lead, &[n]].concat())
        };
        let base = flat(&Tensor::zeros(shape.clone(), self.dtype(), self.device()))?;
        let index = flat(indices)?.cast(DType::I64);
        base.scatter(-1, &index, &flat(self)?)?.reshape(shape)
    }
}
