//! Creation beyond constants and ranges: logarithmic ranges, grids, products, matrices of powers,
//! and tensors like another one.

use super::{Rng, Tensor};
use crate::dtype::{DType, Element};
use crate::error::{Named, Result};
use crate::ops::BinaryOp;
use crate::origin::composed;
use crate::runtime::Device;
use crate::scalar::Scalar;
use crate::shape::Shape;

/// How the axes of [`Tensor::meshgrid`] are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Indexing {
    /// Axis `i` belongs to vector `i`: rows first, as matrices.
    #[default]
    Ij,
    /// The first two axes are exchanged: x runs along columns.
    Xy,
}

impl Tensor {
    /// `n` numbers `base^start … base^end`, their exponents evenly spaced, as `f32`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::logspace(0.0, 3.0, 4, 2.0, &device);
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 4.0, 8.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn logspace(start: f64, end: f64, n: usize, base: f64, device: &Device) -> Tensor {
        let exponents = Tensor::linspace(start, end, n, device);
        let base = exponents.argument(Scalar::from_f64(DType::F32, base));
        base.combine(BinaryOp::Pow, &exponents)
    }

    /// Every element `x`, converted to the dtype of `self`, in its shape and on its device.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1u8, 2], &device)?;
    /// assert_eq!(x.full_like(7).to_vec::<u8>()?, [7, 7]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn full_like<T: Element>(&self, x: T) -> Tensor {
        self.argument(Scalar::from(x).cast(self.dtype()))
    }

    /// Uniform numbers of `0 .. 1` in shape, float dtype and on the device of `self`.
    ///
    /// ```
    /// # use zyx::{DType, Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::zeros([100], DType::F32, &device).rand_like(&mut Rng::seed(1))?;
    /// assert!(x.to_vec::<f32>()?.iter().all(|x| (0.0..1.0).contains(x)));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the dtype is not a float.
    #[track_caller]
    pub fn rand_like(&self, rng: &mut Rng) -> Result<Tensor> {
        Tensor::rand(self.shape(), self.dtype(), rng, self.device()).named("rand_like")
    }

    /// Standard normal numbers in shape, float dtype and on the device of `self`.
    ///
    /// ```
    /// # use zyx::{DType, Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::zeros([100], DType::F32, &device).randn_like(&mut Rng::seed(1))?;
    /// assert!(x.mean(..)?.item::<f32>()?.abs() < 0.5);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the dtype is not a float.
    #[track_caller]
    pub fn randn_like(&self, rng: &mut Rng) -> Result<Tensor> {
        Tensor::randn(self.shape(), self.dtype(), rng, self.device()).named("randn_like")
    }

    /// Integers of `low .. high` in shape and dtype and on the device of `self`.
    ///
    /// ```
    /// # use zyx::{DType, Rng, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::zeros([100], DType::I32, &device).randint_like(3, 5, &mut Rng::seed(1))?;
    /// assert!(x.to_vec::<i32>()?.iter().all(|x| (3..5).contains(x)));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the range is empty.
    #[track_caller]
    pub fn randint_like(&self, low: i64, high: i64, rng: &mut Rng) -> Result<Tensor> {
        let drawn = Tensor::randint(low, high, self.shape(), self.dtype(), rng, self.device());
        drawn.named("randint_like")
    }

    /// For each vector a tensor with one axis per vector that varies along that vector's own.
    ///
    /// ```
    /// # use zyx::{Indexing, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let (x, y) = (Tensor::new([1i32, 2], &device)?, Tensor::new([3i32, 4, 5], &device)?);
    /// let grids = Tensor::meshgrid(&[&x, &y], Indexing::Ij)?;
    /// assert_eq!(grids[1].to_string(), "[[3 4 5]\n [3 4 5]]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a tensor has more than one axis or the grid is too large.
    #[track_caller]
    pub fn meshgrid(tensors: &[&Tensor], indexing: Indexing) -> Result<Vec<Tensor>> {
        let _here = composed();
        let rank = tensors.len();
        let shape: Shape = tensors.iter().map(|x| x.numel()).collect();
        if tensors.iter().any(|x| x.rank() > 1) || !shape.is_possible() {
            let reason = "needs vectors whose grid is not too large".to_owned();
            return Err(Tensor::shape_error("meshgrid", tensors, reason));
        }
        let grid = |(axis, x): (usize, &&Tensor)| {
            let mut dims = vec![1; rank];
            dims[axis] = x.numel();
            let full = x.reshape_unchecked(dims.into()).broadcast_unchecked(&shape);
            match indexing {
                Indexing::Xy if rank >= 2 => full.transpose(0, 1),
                _ => Ok(full),
            }
        };
        tensors.iter().enumerate().map(grid).collect()
    }

    /// All combinations of one element of each vector, one per row, the last varying fastest.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let (x, y) = (Tensor::new([1i32, 2], &device)?, Tensor::new([3i32, 4], &device)?);
    /// let all = Tensor::cartesian_prod(&[&x, &y])?;
    /// assert_eq!(all.to_string(), "[[1 3]\n [1 4]\n [2 3]\n [2 4]]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a tensor has not one axis, there are too many combinations, or there is no tensor.
    #[track_caller]
    pub fn cartesian_prod(tensors: &[&Tensor]) -> Result<Tensor> {
        let _here = composed();
        if let [x] = tensors {
            return Ok((*x).clone());
        }
        let grids = Tensor::meshgrid(tensors, Indexing::Ij).named("cartesian_prod")?;
        let flat: Vec<Tensor> = grids.iter().map(Tensor::flatten).collect();
        Tensor::stack(&flat.iter().collect::<Vec<_>>(), 1).named("cartesian_prod")
    }

    /// A matrix of the powers of each element of a vector, descending unless `increasing`; those of
    /// integers in 64 bits.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1i64, 2, 3], &device)?;
    /// assert_eq!(x.vander(3, false)?.to_string(), "[[1 1 1]\n [4 2 1]\n [9 3 1]]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Unless it has one axis, or when the result would have too many elements.
    #[track_caller]
    pub fn vander(&self, columns: usize, increasing: bool) -> Result<Tensor> {
        let shape = Shape::from([self.numel(), columns]);
        if self.rank() != 1 || !shape.is_possible() {
            let reason = format!("cannot give the shape {shape}");
            return Err(Tensor::shape_error("vander", &[self], reason));
        }
        // Powers of narrow integers would wrap.
        let narrow = !self.dtype().is_float() && self.dtype() != DType::U64;
        let x = if narrow { self.cast(DType::I64) } else { self.clone() };
        let powers = Tensor::iota(columns, x.dtype(), self.device());
        let powers = if increasing { powers } else { powers.flip(0)? };
        let base = x.unsqueeze(-1)?.broadcast_unchecked(&shape);
        Ok(base.combine(BinaryOp::Pow, &powers.broadcast_unchecked(&shape)))
    }
}
