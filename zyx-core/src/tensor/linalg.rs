//! Matrix products: movement, multiplication and a sum. The scheduler recognises contractions.

use super::Tensor;
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::ops::BinaryOp;
use crate::shape::Shape;
use std::borrow::Cow;
use std::panic::Location;

impl Tensor {
    /// Matrix product over the last two axes; leading axes broadcast. A vector on the left is a
    /// row, on the right a column, and its axis disappears. Halves accumulate in `f32`, integers of 8 bits in `i32`:
    /// as that they are given where the operands are converted before (`x.cast(DType::I32)`), which copies none.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// let x = Tensor::new([1f32, 1.0], &device)?;
    /// assert_eq!(a.matmul(&x)?.to_vec::<f32>()?, [3.0, 7.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the inner extents differ, leading axes do not broadcast, an operand has no axes, or
    /// the operands are on different devices.
    #[track_caller]
    pub fn matmul(&self, rhs: &Tensor) -> Result<Tensor> {
        let here = Location::caller();
        let fail = |reason: String| Tensor::shape_error("matmul", &[self, rhs], reason).at(here);
        if self.rank() == 0 || rhs.rank() == 0 {
            return Err(fail("operands need at least one axis".into()));
        }
        if self.device() != rhs.device() {
            let reason = format!("operands are on {} and {}", self.device(), rhs.device());
            return Err(Tensor::argument_error("matmul", reason));
        }
        let dtype = self.dtype().promote(rhs.dtype());
        let dtype = if dtype == DType::Bool { DType::I64 } else { dtype };
        // Widened before anything is repeated, so that a gradient, too, rounds sums, not products.
        let wide = dtype.product_accumulator();
        let (x, y) = (self.in_dtype(dtype), rhs.in_dtype(dtype));
        let (mut x, mut y) = (x.in_dtype(wide), y.in_dtype(wide));
        if x.rank() == 1 {
            x = Cow::Owned(x.unsqueeze(0).named("matmul")?);
        }
        if y.rank() == 1 {
            y = Cow::Owned(y.unsqueeze(1).named("matmul")?);
        }
        let (xd, yd) = (x.shape().clone(), y.shape().clone());
        let (m, k) = (xd[xd.rank() - 2], xd[xd.rank() - 1]);
        let (k2, n) = (yd[yd.rank() - 2], yd[yd.rank() - 1]);
        if k != k2 {
            return Err(fail(format!("inner extents differ: {k} and {k2}")));
        }
        let lead = |d: &Shape| Shape::from(&d[..d.rank() - 2]);
        let Some(batch) = lead(&xd).broadcast(&lead(&yd)) else {
            return Err(fail("leading axes do not broadcast".into()));
        };
        let with = |tail: &[usize]| batch.iter().chain(tail).copied().collect::<Shape>();
        // Axes: batch, m, n, k; the sum runs over the last, contiguous in x.
        let all = with(&[m, n, k]);
        let a = x.unsqueeze(-2).named("matmul")?.broadcast_unchecked(&all);
        let b = y.t().unsqueeze(-3).named("matmul")?.broadcast_unchecked(&all);
        let product = a.combine(BinaryOp::Mul, &b);
        let sum = product.reduce(BinaryOp::Add, 1 << (batch.rank() + 2));
        let tail = match (self.rank() > 1, rhs.rank() > 1) {
            (true, true) => &[m, n][..],
            (true, false) => &[m],
            (false, true) => &[n],
            (false, false) => &[],
        };
        Ok(sum.reshape_unchecked(with(tail)).cast(dtype))
    }

    /// Sum of the products of two vectors of equal length.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 2.0], &device)?;
    /// assert_eq!(x.dot(&Tensor::new([3f32, 4.0], &device)?)?.item::<f32>()?, 11.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the operands are not vectors of one length.
    #[track_caller]
    pub fn dot(&self, rhs: &Tensor) -> Result<Tensor> {
        if self.rank() != 1 || rhs.rank() != 1 {
            let reason = "operands must be vectors".to_owned();
            return Err(Tensor::shape_error("dot", &[self, rhs], reason));
        }
        self.matmul(rhs).named("dot")
    }

    /// Sum of products of two vectors; the same as [`Tensor::dot`], as no number is complex.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Tensor::new([1f32, 2.0], &device)?;
    /// assert_eq!(a.vdot(&a)?.item::<f32>()?, 5.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::dot`].
    #[track_caller]
    pub fn vdot(&self, rhs: &Tensor) -> Result<Tensor> {
        self.dot(rhs).named("vdot")
    }
}
