//! Methods that pick or place elements by index tensors.
//!
//! An index out of range is an error: at the call where it is known, else where the result is read (`indices.rs`).
//! Indices may have any integer dtype.

use super::Tensor;
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Op, UpdateOrder, is_index};
use crate::ops::BinaryOp;
use crate::shape::Shape;

impl Tensor {
    #[track_caller]
    pub(crate) fn check_index(&self, op: &'static str, index: &Tensor) -> Result<()> {
        if !is_index(index.dtype()) {
            let reason = format!("indices must be integers, not {}", index.dtype());
            return Err(Tensor::dtype_error(op, &[self, index], reason));
        }
        if index.device() != self.device() {
            let reason = format!("operands are on {} and {}", self.device(), index.device());
            return Err(Tensor::argument_error(op, reason));
        }
        Ok(())
    }

    /// `out[.., i, ..] = self[.., index[.., i, ..], ..]` along `axis`; `index` has the result's
    /// shape and at most this tensor's extent along the other axes.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// let index = Tensor::new([[1i64, 0]], &device)?;
    /// assert_eq!(x.gather(0, &index)?.to_vec::<f32>()?, [3.0, 2.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When ranks differ, another axis is too long, or `index` does not hold integers; when an index is out of range,
    /// at the call or when the result is read.
    #[track_caller]
    pub fn gather(&self, axis: isize, index: &Tensor) -> Result<Tensor> {
        self.check_index("gather", index)?;
        let axis = self.axis("gather", axis)?;
        let fits = index.rank() == self.rank()
            && (0..self.rank()).all(|a| a == axis || index.shape()[a] <= self.shape()[a]);
        if !fits {
            let reason = format!("the index must have equal rank and fit outside axis {axis}");
            return Err(Tensor::shape_error("gather", &[self, index], reason));
        }
        let ranges: Vec<_> = (0..self.rank())
            .map(|a| (0, if a == axis { self.shape()[a] } else { index.shape()[a] }))
            .collect();
        let index = index.within("gather", 0, self.shape()[axis], None)?;
        Ok(self.shrink_unchecked(&ranges).gather_unchecked(axis, &index))
    }

    #[track_caller]
    pub(crate) fn gather_unchecked(&self, axis: usize, index: &Tensor) -> Tensor {
        let index = index.cast(DType::I64);
        let op = Op::Gather { axis: axis as u8 };
        Tensor::pending(op, [self, &index], index.shape().clone(), self.dtype())
    }

    /// The entries `index` (one axis) of one axis, in that order: time linear in the result.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0], [5.0, 6.0]], &device)?;
    /// let rows = x.index_select(0, &Tensor::new([2i64, 0], &device)?)?;
    /// assert_eq!(rows.to_vec::<f32>()?, [5.0, 6.0, 1.0, 2.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis is out of range or `index` is not a vector of integers; when an index is out of range, at the call
    /// or when the result is read.
    #[track_caller]
    pub fn index_select(&self, axis: isize, index: &Tensor) -> Result<Tensor> {
        self.check_index("index_select", index)?;
        let axis = self.axis("index_select", axis)?;
        if index.rank() > 1 {
            let reason = "the index must have one axis".to_owned();
            return Err(Tensor::shape_error("index_select", &[self, index], reason));
        }
        let index = index.within("index_select", 0, self.shape()[axis], None)?;
        Ok(self.select_unchecked(axis, &index))
    }

    /// [`Tensor::index_select`] without the check that positions are in range.
    #[track_caller]
    pub(crate) fn select_unchecked(&self, axis: usize, index: &Tensor) -> Tensor {
        self.gather_unchecked(axis, &self.along(axis, index))
    }

    /// A vector laid along `axis` and repeated along the other axes of `self`.
    #[track_caller]
    pub(crate) fn along(&self, axis: usize, vector: &Tensor) -> Tensor {
        let mut dims = vec![1; self.rank()];
        dims[axis] = vector.numel();
        let mut full = self.shape().to_vec();
        full[axis] = vector.numel();
        vector.reshape_unchecked(dims.into()).broadcast_unchecked(&Shape::from(full))
    }

    /// The vector that [`Tensor::along`] laid along an axis, if it did.
    #[track_caller]
    pub(crate) fn vector_along(&self, axis: usize) -> Option<Tensor> {
        let n = self.shape()[axis];
        let vector = self.repeated()?;
        (vector.numel() == n && n > 0).then(|| vector.reshape_unchecked(Shape::from([n])))
    }

    /// What an expansion repeats, with the same conversions.
    #[track_caller]
    fn repeated(&self) -> Option<Tensor> {
        let history = self.history();
        let expr = history.expr()?;
        let source = expr.srcs[0].as_ref()?;
        match expr.op {
            Op::Expand => Some(source.clone()),
            Op::Cast { bits: false } => source.repeated().map(|x| x.cast(self.dtype())),
            _ => None,
        }
    }

    /// Rows of a `[vocabulary, width]` table: the shape of `index` with `width` appended.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let table = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// let rows = table.embedding(&Tensor::new([1u8, 1, 0], &device)?)?;
    /// assert_eq!(rows.to_vec::<f32>()?, [3.0, 4.0, 3.0, 4.0, 1.0, 2.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `self` is not a matrix or `index` does not hold integers; when an index is out of range, at the call or when
    /// the result is read.
    #[track_caller]
    pub fn embedding(&self, index: &Tensor) -> Result<Tensor> {
        if self.rank() != 2 {
            let reason = "the table must be a matrix".to_owned();
            return Err(Tensor::shape_error("embedding", &[self, index], reason));
        }
        let shape = Shape::from([index.shape().dims(), &[self.shape()[1]]].concat());
        if !shape.is_possible() {
            let reason = format!("the result would have the shape {shape}");
            return Err(Tensor::shape_error("embedding", &[self, index], reason));
        }
        self.check_index("embedding", index)?;
        let at = index.within("embedding", 0, self.shape()[0], None)?;
        Ok(self.select_unchecked(0, &at.flatten()).reshape_unchecked(shape))
    }

    #[track_caller]
    pub(crate) fn scatter_unchecked(
        &self,
        axis: usize,
        op: Option<BinaryOp>,
        index: &Tensor,
        src: &Tensor,
    ) -> Tensor {
        let index = index.cast(DType::I64);
        let dtype = self.dtype();
        // As reductions: sums of halves are formed in `f32` and rounded once.
        let wide = match op {
            Some(BinaryOp::Add | BinaryOp::Mul) => dtype.accumulator(),
            _ => dtype,
        };
        let (base, src) = (self.cast(wide), src.cast(wide));
        let caps = self.device().caps();
        let any = !self.device().is_deterministic() && !caps.has_few_threads();
        let any = any && op.is_some_and(|op| caps.has_atomic(op, wide));
        if let Some(op) = op.filter(|_| !any)
            && let Some(y) = base.scatter_sorted(axis, op, &index, &src)
        {
            return y.cast(dtype);
        }
        let order = if any { UpdateOrder::Any } else { UpdateOrder::Given };
        let op = Op::Scatter { axis: axis as u8, op, order };
        Tensor::pending(op, [&base, &index, &src], self.shape().clone(), wide).cast(dtype)
    }

    #[track_caller]
    fn scatter_checked(
        &self,
        name: &'static str,
        op: Option<BinaryOp>,
        axis: isize,
        index: &Tensor,
        src: &Tensor,
    ) -> Result<Tensor> {
        let (axis, index, src) = self.corner(name, axis, index, src)?;
        Ok(self.scatter_unchecked(axis, op, &index, &src))
    }

    /// This tensor with `src[.., i, ..]` written to `[.., index[.., i, ..], ..]`; of several
    /// writes to one place the last in row-major order holds.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::zeros([4], DType::F32, &device);
    /// let index = Tensor::new([2i64, 0], &device)?;
    /// assert_eq!(x.scatter(0, &index, &Tensor::new([5f32, 6.0], &device)?)?.to_vec::<f32>()?, [6.0, 0.0, 5.0, 0.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes or dtypes do not fit, or `index` does not hold integers; when an index is out of range, at the call or
    /// when the result is read.
    #[track_caller]
    pub fn scatter(&self, axis: isize, index: &Tensor, src: &Tensor) -> Result<Tensor> {
        self.scatter_checked("scatter", None, axis, index, src)
    }

    /// This tensor with `src[.., i, ..]` added to `[.., index[.., i, ..], ..]`.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::ones([3], DType::F32, &device);
    /// let index = Tensor::new([2i64, 2], &device)?;
    /// assert_eq!(x.scatter_add(0, &index, &Tensor::new([5f32, 6.0], &device)?)?.to_vec::<f32>()?, [1.0, 1.0, 12.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes or dtypes do not fit, or `index` does not hold integers; when an index is out of range, at the call or
    /// when the result is read.
    #[track_caller]
    pub fn scatter_add(&self, axis: isize, index: &Tensor, src: &Tensor) -> Result<Tensor> {
        self.scatter_checked("scatter_add", Some(BinaryOp::Add), axis, index, src)
    }

    /// A new last axis of extent `classes`, true at the element's value.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1i64, 2], &device)?;
    /// assert_eq!(x.one_hot(3)?.cast(DType::U8).to_vec::<u8>()?, [0, 1, 0, 0, 0, 1]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the elements are not integers; when one is out of range, at the call or when the result is read.
    #[track_caller]
    pub fn one_hot(&self, classes: usize) -> Result<Tensor> {
        self.check_index("one_hot", self)?;
        let shape = Shape::from([self.shape().dims(), &[classes]].concat());
        if !shape.is_possible() {
            let reason = format!("the result would have the shape {shape}");
            return Err(Tensor::shape_error("one_hot", &[self], reason));
        }
        let value = self.within("one_hot", 0, classes, None)?;
        Ok(value.one_hot_unchecked(&shape))
    }

    /// [`Tensor::one_hot`] of that shape, which is false for all classes where the element is none.
    #[track_caller]
    pub(crate) fn one_hot_unchecked(&self, shape: &Shape) -> Tensor {
        let classes = *shape.last().expect("invariant: the axis of the classes");
        let class = Tensor::iota(classes, DType::I64, self.device()).broadcast_unchecked(shape);
        let value = self
            .cast(DType::I64)
            .reshape_unchecked(Shape::from([self.shape().dims(), &[1]].concat()));
        value.broadcast_unchecked(shape).combine(BinaryOp::Eq, &class)
    }
}
