//! Distances and similarities of vectors, and the p-norms they are made of.
//!
//! Every length has gradient 0 where it is 0: it has no direction there, and the slope of a plain
//! root would make the gradient NaN. Halves are computed in `f32` and rounded once. Differences
//! are formed before they are squared: the product form `|x|^2 + |y|^2 - 2xy` would lose half the
//! digits of vectors that are close together.

use super::diagonal::upper_indices;
use super::{Axes, Tensor};
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::ops::BinaryOp;
use crate::origin::composed;
use crate::shape::Shape;

impl Tensor {
    /// Refuses operands of more axes or elements than can be computed with, or on other devices.
    pub(crate) fn check_operands(op: &'static str, operands: &[&Tensor]) -> Result<()> {
        if !operands.iter().all(|t| t.shape().is_possible()) {
            let reason = "an operand has too many axes or elements".to_owned();
            return Err(Tensor::shape_error(op, operands, reason));
        }
        if operands.iter().any(|t| t.device() != operands[0].device()) {
            let reason = "the operands are on different devices; use `to_device`".to_owned();
            return Err(Tensor::argument_error(op, reason));
        }
        Ok(())
    }

    /// In a floating dtype in which sums are formed: halves in `f32`.
    #[track_caller]
    pub(crate) fn wide(&self) -> Tensor {
        let x = self.floating();
        x.cast(x.dtype().accumulator())
    }

    /// The p-norm over the axes of a mask, which stay with extent 1.
    #[track_caller]
    pub(crate) fn p_norm(&self, p: f64, mask: u16) -> Result<Tensor> {
        let size = self.abs();
        if p == f64::INFINITY {
            let largest = size.reduce(BinaryOp::Max, mask);
            // No size is negative: of nothing the largest is 0.
            return Ok(if self.numel() == 0 { largest.like(0.0) } else { largest });
        }
        if p == f64::NEG_INFINITY {
            return Ok(size.reduce(BinaryOp::Min, mask));
        }
        if p == 0.0 {
            return Ok(size.ne(0.0)?.cast(self.dtype()).reduce(BinaryOp::Add, mask));
        }
        if p == 1.0 {
            return Ok(size.reduce(BinaryOp::Add, mask));
        }
        if p == 2.0 {
            return Ok(self.square().reduce(BinaryOp::Add, mask).root());
        }
        // Below 2 the slope of `|x|^p` is infinite at 0, or that of its slope is: a zero has none.
        let powers = if p < 2.0 {
            let zero = size.eq(0.0)?;
            let nothing = size.like(if p < 0.0 { f64::INFINITY } else { 0.0 });
            zero.select(&nothing, &zero.select(&size.like(1.0), &size).pow(p)?)
        } else {
            size.pow(p)?
        };
        let sum = powers.reduce(BinaryOp::Add, mask);
        let flat = sum.eq(0.0)?;
        let root = sum.like(if p < 0.0 { f64::INFINITY } else { 0.0 });
        Ok(flat.select(&root, &flat.select(&sum.like(1.0), &sum).pow(1.0 / p)?))
    }

    /// The p-norm `(sum |x|^p)^(1/p)` of the vectors along axes; `p` may be infinite (the largest
    /// magnitude), minus infinite (the smallest) or 0 (how many elements are not 0). The norm of no
    /// elements is 0, for a negative `p` infinite, so that they add nothing to the norm of others.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[3f32, -4.0], [1.0, 0.0]], &device)?;
    /// assert_eq!(x.vector_norm(1.0, 1)?.to_vec::<f32>()?, [7.0, 1.0]);
    /// assert_eq!(x.vector_norm(f64::INFINITY, ..)?.item::<f32>()?, 4.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range or repeated, or `p` is NaN.
    #[track_caller]
    pub fn vector_norm(&self, p: f64, axes: impl Axes) -> Result<Tensor> {
        const OP: &str = "vector_norm";
        let mask = self.axes(OP, axes)?;
        if p.is_nan() {
            return Err(Tensor::argument_error(OP, "p is NaN".to_owned()));
        }
        let norm = self.wide().p_norm(p, mask).named(OP)?;
        Ok(norm.without(mask).cast(self.floating().dtype()))
    }

    /// The cosine of the angle between vectors along an axis: their product divided by both
    /// lengths, each held at least `eps`. Shapes broadcast; the axis goes.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[3f32, 4.0], [1.0, 0.0]], &device)?;
    /// let y = Tensor::new([4f32, 3.0], &device)?;
    /// assert_eq!(format!("{:.2}", x.cosine_similarity(&y, 1, 1e-8)?), "[0.96 0.8 ]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not broadcast or the axis is out of range.
    #[track_caller]
    pub fn cosine_similarity(&self, other: &Tensor, axis: isize, eps: f64) -> Result<Tensor> {
        let _here = composed();
        self.cosine(other, axis, eps).named("cosine_similarity")
    }

    #[track_caller]
    fn cosine(&self, other: &Tensor, axis: isize, eps: f64) -> Result<Tensor> {
        const OP: &str = "cosine_similarity";
        Tensor::check_operands(OP, &[self, other])?;
        let dtype = self.floating().dtype().promote(other.floating().dtype());
        let (x, y) = Tensor::unify(OP, &self.wide(), &other.wide(), FLOATS)?;
        let mask = 1 << x.axis(OP, axis)?;
        let product = x.combine(BinaryOp::Mul, &y).reduce(BinaryOp::Add, mask);
        let length = |x: &Tensor| -> Result<Tensor> {
            let n = x.p_norm(2.0, mask)?;
            Ok(n.bounded(BinaryOp::Max, &n.number(eps), false))
        };
        let cosine = product.div(&length(&x)?.mul(&length(&y)?)?)?;
        Ok(cosine.without(mask).cast(dtype))
    }

    /// The p-norm of `self - other + eps` along the last axis, which goes. Shapes broadcast.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[3f32, 4.0], [0.0, 1.0]], &device)?;
    /// let y = Tensor::new([0f32, 0.0], &device)?;
    /// assert_eq!(x.pairwise_distance(&y, 2.0, 0.0)?.to_vec::<f32>()?, [5.0, 1.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not broadcast, there is no axis, or `p` is NaN.
    #[track_caller]
    pub fn pairwise_distance(&self, other: &Tensor, p: f64, eps: f64) -> Result<Tensor> {
        self.distance(other, p, eps).named("pairwise_distance")
    }

    #[track_caller]
    pub(crate) fn distance(&self, other: &Tensor, p: f64, eps: f64) -> Result<Tensor> {
        const OP: &str = "pairwise_distance";
        Tensor::check_operands(OP, &[self, other])?;
        let dtype = self.floating().dtype().promote(other.floating().dtype());
        if p.is_nan() {
            return Err(Tensor::argument_error(OP, "p is NaN".to_owned()));
        }
        let gap = self.wide().sub(other.wide())?.add(eps)?;
        let mask = 1 << gap.axis(OP, -1)?;
        Ok(gap.p_norm(p, mask)?.without(mask).cast(dtype))
    }

    /// The p-norm distances of every row of `[.., n, d]` to every row of `[.., m, d]`, as
    /// `[.., n, m]`; leading axes broadcast.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[0f32, 0.0], [3.0, 0.0]], &device)?;
    /// let y = Tensor::new([[3f32, 4.0]], &device)?;
    /// assert_eq!(x.cdist(&y, 2.0)?.to_vec::<f32>()?, [5.0, 4.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Below rank 2, when the last extents differ, leading axes do not broadcast, or `p` is NaN or
    /// negative.
    #[track_caller]
    pub fn cdist(&self, other: &Tensor, p: f64) -> Result<Tensor> {
        const OP: &str = "cdist";
        let _here = composed();
        if self.rank() < 2 || other.rank() < 2 || self.shape().last() != other.shape().last() {
            let reason = "operands must be [.., n, d] and [.., m, d]".to_owned();
            return Err(Tensor::shape_error(OP, &[self, other], reason));
        }
        if p.is_nan() || p < 0.0 {
            return Err(Tensor::argument_error(OP, format!("p is {p}, it must not be negative")));
        }
        let pairs = |x: Tensor, y: Tensor| x.distance(&y, p, 0.0);
        self.unsqueeze(-2).and_then(|x| pairs(x, other.unsqueeze(-3)?)).named(OP)
    }

    /// The distances of all pairs of different rows of `[n, d]`, as the upper triangle of
    /// [`Tensor::cdist`] in row-major order, `[n (n - 1) / 2]`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[0f32, 0.0], [3.0, 4.0], [0.0, 8.0]], &device)?;
    /// assert_eq!(x.pdist(2.0)?.to_vec::<f32>()?, [5.0, 8.0, 5.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When it is not a matrix, or `p` is NaN or negative.
    #[track_caller]
    pub fn pdist(&self, p: f64) -> Result<Tensor> {
        const OP: &str = "pdist";
        let _here = composed();
        let &[n, d] = self.shape().dims() else {
            let reason = "the rows of a matrix are compared".to_owned();
            return Err(Tensor::shape_error(OP, &[self], reason));
        };
        Tensor::check_operands(OP, &[self]).named(OP)?;
        if p.is_nan() || p < 0.0 {
            return Err(Tensor::argument_error(OP, format!("p is {p}, it must not be negative")));
        }
        if n < 2 {
            return Ok(Tensor::zeros([0], self.floating().dtype(), self.device()));
        }
        if !Shape::from([n, n, d]).is_possible() {
            let reason = format!("{n} rows have too many pairs");
            return Err(Tensor::shape_error(OP, &[self], reason));
        }
        // Rows have numbers of 32 bits: as many as would need more have too many pairs.
        let pairs = upper_indices([n, n], 1, self.device()).named(OP)?;
        let pairs = pairs.cast(DType::I32).contiguous();
        let row = |side: isize| Ok(self.select_unchecked(0, &pairs.select_index(0, side)?));
        let y = row(0).and_then(|x| x.distance(&row(1)?, p, 0.0)).named(OP)?;
        // The gradient sums over the other rows, as that of `cdist` does, and scatters nothing.
        y.with_gradient(&[self], move |inputs, _, dy| {
            let [x] = inputs else { unreachable!("invariant: the rule has one input") };
            let (x, others) = (x.alias(), x.alias());
            let all = x.cdist(&others, p)?;
            all.grad_with(&square_of_pairs(dy, n)?, &[&x])
        })
    }
}

/// What belongs to pairs of different rows, in both triangles of `[n, n]`, with zeros between.
#[track_caller]
fn square_of_pairs(pairs: &Tensor, n: usize) -> Result<Tensor> {
    let rows = Tensor::iota(n, DType::I64, pairs.device());
    let (row, column) = (rows.unsqueeze(1)?, rows.unsqueeze(0)?);
    let (low, high) = (row.minimum(&column)?, row.maximum(&column)?);
    // Before row `low` are `n - 1`, `n - 2`, .. pairs.
    let before = low.neg().add(2 * n as i64 - 1)?.mul(&low)?.floor_divide(2)?;
    let at = before.add(high.sub(&low)?)?.sub(1)?.maximum(0)?;
    let at = at.minimum(pairs.numel() as i64 - 1)?;
    let values = pairs.select_unchecked(0, &at.flatten()).reshape([n, n])?;
    Ok(row.eq(&column)?.select(&values.like(0.0), &values))
}

/// The dtypes lengths are computed in.
pub(crate) const FLOATS: crate::dtype::DTypeSet = crate::ops::UnaryOp::Sqrt.domain();
