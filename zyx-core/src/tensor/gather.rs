//! Picking elements by flat positions, by masks and by search in sorted numbers.
//!
//! How many elements a mask picks is known only after it was computed, and shapes are known
//! before: [`Tensor::nonzero`] and [`Tensor::masked_select`] read that one number from the device
//! ([`Tensor::masked_scatter`] needs none). Everything else of them happens on the device: the
//! mask's running count says how many elements stand before each, which is where its position goes.

use super::Tensor;
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::ops::BinaryOp;
use crate::origin::composed;
use crate::scalar::Scalar;
use crate::shape::Shape;

impl Tensor {
    /// Negative positions count from the end of `extent` elements; `i64`.
    #[track_caller]
    pub(crate) fn wrapped(&self, op: &'static str, extent: usize) -> Result<Tensor> {
        // No axis is longer than an `i64` counts; a caller may ask all the same.
        let end = i64::try_from(extent).unwrap_or(i64::MAX);
        let index = self.within(op, -end, extent, None)?.cast(DType::I64);
        let below = index.combine(BinaryOp::Lt, &index.like(0.0));
        let extent = index.constant(Scalar::from(end));
        Ok(below.select(&index.combine(BinaryOp::Add, &extent), &index))
    }

    /// The elements at positions of the flattened tensor, in the shape of `index`. Negative
    /// positions count from the end.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1i32, 2], [3, 4]], &device)?;
    /// assert_eq!(x.take(&Tensor::new([3i64, 0, -2], &device)?)?.to_vec::<i32>()?, [4, 1, 3]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `index` does not hold integers or is on another device; when a position is out of range, at the call or when
    /// the result is read.
    #[track_caller]
    pub fn take(&self, index: &Tensor) -> Result<Tensor> {
        self.take_as("take", index)
    }

    #[track_caller]
    fn take_as(&self, op: &'static str, index: &Tensor) -> Result<Tensor> {
        self.check_index(op, index)?;
        let at = index.wrapped(op, self.numel())?.flatten();
        let picked = self.flatten().gather_unchecked(0, &at);
        Ok(picked.reshape_unchecked(index.shape().clone()))
    }

    /// The elements `[.., index[.., i, ..], ..]` along an axis; the shapes broadcast outside it.
    /// Without an axis, of the flattened tensors. Negative positions count from the end.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1i32, 2], [3, 4]], &device)?;
    /// let index = Tensor::new([[1i64, 1, 0]], &device)?;
    /// assert_eq!(x.take_along_dim(&index, Some(1))?.to_vec::<i32>()?, [2, 2, 1, 4, 4, 3]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When ranks differ or shapes do not broadcast, or `index` does not hold integers; when a position is out of range,
    /// at the call or when the result is read.
    #[track_caller]
    pub fn take_along_dim(&self, index: &Tensor, axis: Option<isize>) -> Result<Tensor> {
        const OP: &str = "take_along_dim";
        self.check_index(OP, index)?;
        let Some(axis) = axis else { return self.take_as(OP, &index.flatten()) };
        let axis = self.axis(OP, axis)?;
        let mut outside = [self.shape().to_vec(), index.shape().to_vec()];
        let common = if index.rank() == self.rank() {
            outside.iter_mut().for_each(|dims| dims[axis] = 1);
            let [x, y] = outside.map(Shape::from);
            x.broadcast(&y).filter(Shape::is_possible)
        } else {
            None
        };
        let Some(common) = common else {
            let reason = format!("shapes must broadcast outside axis {axis}");
            return Err(Tensor::shape_error(OP, &[self, index], reason));
        };
        let full = |extent: usize| {
            let mut dims = common.to_vec();
            dims[axis] = extent;
            Shape::from(dims)
        };
        let extent = self.shape()[axis];
        let (whole, picked) = (full(extent), full(index.shape()[axis]));
        if !whole.is_possible() || !picked.is_possible() {
            let reason = format!("the result would have the shape {picked}");
            return Err(Tensor::shape_error(OP, &[self, index], reason));
        }
        let index = index.wrapped(OP, extent)?.broadcast_unchecked(&picked);
        Ok(self.broadcast_unchecked(&whole).gather_unchecked(axis, &index))
    }

    /// This tensor with `src` at positions of the flattened tensor, or added there if
    /// `accumulate`. Negative positions count from the end.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1i32, 2], [3, 4]], &device)?;
    /// let (at, src) = (Tensor::new([1i64, -1], &device)?, Tensor::new([8i32, 9], &device)?);
    /// assert_eq!(x.put(&at, &src, false)?.to_vec::<i32>()?, [1, 8, 3, 9]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `index` and `src` differ in the number of elements, or dtypes do not fit; when a position is out of range, at
    /// the call or when the result is read.
    #[track_caller]
    pub fn put(&self, index: &Tensor, src: &Tensor, accumulate: bool) -> Result<Tensor> {
        self.check_index("put", index)?;
        if index.numel() != src.numel() {
            let reason = "index and source must have equally many elements".to_owned();
            return Err(Tensor::shape_error("put", &[self, index, src], reason));
        }
        let at = index.wrapped("put", self.numel())?.flatten().unchecked_indices();
        let (_, at, src) = self.flatten().corner("put", 0, &at, &src.flatten())?;
        let op = accumulate.then_some(BinaryOp::Add);
        let placed = self.flatten().scatter_unchecked(0, op, &at, &src);
        Ok(placed.reshape_unchecked(self.shape().clone()))
    }

    /// The elements where `mask` holds, in row-major order; the mask broadcasts to this shape.
    /// Reads their number from the device.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(x.masked_select(&x.gt(0.0)?)?.to_vec::<f32>()?, [1.0, 3.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the mask does not broadcast to this shape, or the device fails.
    #[track_caller]
    pub fn masked_select(&self, mask: &Tensor) -> Result<Tensor> {
        let mask = self.mask_of("masked_select", mask)?;
        let (at, ranks) = mask.flat_nonzero("masked_select")?;
        self.flatten().permuted(0, at.cast(DType::I64), ranks.cast(DType::I64))
    }

    /// This tensor with the elements of `src`, in order, where `mask` holds. Where there are not
    /// enough of them, zero.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// let y = x.masked_scatter(&x.gt(0.0)?, &Tensor::new([8f32, 9.0], &device)?)?;
    /// assert_eq!(y.to_vec::<f32>()?, [8.0, -2.0, 9.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the mask does not broadcast to this shape, or dtypes or devices differ.
    #[track_caller]
    pub fn masked_scatter(&self, mask: &Tensor, src: &Tensor) -> Result<Tensor> {
        const OP: &str = "masked_scatter";
        let mask = self.mask_of(OP, mask)?;
        if src.dtype() != self.dtype() {
            let reason = "source and destination must have one dtype".to_owned();
            return Err(Tensor::dtype_error(OP, &[self, src], reason));
        }
        if src.device() != self.device() {
            let reason = format!("operands are on {} and {}", self.device(), src.device());
            return Err(Tensor::argument_error(OP, reason));
        }
        let flat = mask.flatten().cast(DType::I64);
        let before = flat.scan(BinaryOp::Add, 0, false);
        let at = before.combine(BinaryOp::Sub, &before.like(1.0));
        let taken = src.flatten().gather_unchecked(0, &at);
        Ok(mask.select(&taken.reshape_unchecked(self.shape().clone()), self))
    }

    /// Positions of the nonzero elements, one per row with one column per axis, in row-major
    /// order, as `i64`. Reads their number from the device.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[0f32, 2.0], [3.0, 0.0]], &device)?;
    /// assert_eq!(x.nonzero()?.to_string(), "[[0 1]\n [1 0]]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the device fails.
    #[track_caller]
    pub fn nonzero(&self) -> Result<Tensor> {
        let _here = composed();
        let columns = self.nonzero_columns("nonzero")?;
        if columns.is_empty() {
            let n = self.cast(DType::Bool).flat_nonzero("nonzero")?.0.numel();
            return Ok(Tensor::zeros([n, 0], DType::I64, self.device()));
        }
        Tensor::stack(&columns.iter().collect::<Vec<_>>(), 1).named("nonzero")
    }

    /// Positions of the nonzero elements; the same as [`Tensor::nonzero`].
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([0f32, 2.0], &device)?;
    /// assert_eq!(x.argwhere()?.to_vec::<i64>()?, [1]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the device fails.
    #[track_caller]
    pub fn argwhere(&self) -> Result<Tensor> {
        let _here = composed();
        self.nonzero().named("argwhere")
    }

    /// Positions of the nonzero elements along each axis.
    #[track_caller]
    pub(crate) fn nonzero_columns(&self, op: &'static str) -> Result<Vec<Tensor>> {
        if self.rank() == 0 {
            return Ok(Vec::new());
        }
        let at = self.cast(DType::Bool).flat_nonzero(op)?.0;
        let strides = self.shape().strides();
        let column = |(&stride, &extent): (&usize, &usize)| {
            let number = |n: usize| at.constant(Scalar::from_i64(at.dtype(), n.max(1) as i64));
            let row = at.combine(BinaryOp::Div, &number(stride));
            row.combine(BinaryOp::Rem, &number(extent)).cast(DType::I64).known_below(extent)
        };
        Ok(strides.iter().zip(self.shape().iter()).map(column).collect())
    }

    /// Positions of the true elements of the flattened mask, and for each of its elements how many true
    /// ones are before it, or -1 where it is not true itself: integers as long as the number of
    /// elements asks for.
    #[track_caller]
    fn flat_nonzero(&self, op: &'static str) -> Result<(Tensor, Tensor)> {
        let flat = self.flatten();
        let n = flat.numel();
        let device = self.device();
        if n == 0 || !flat.shape().is_possible() {
            let none = Tensor::zeros([0], DType::I64, device);
            return Ok((none, flat.constant(Scalar::from(-1i64))));
        }
        let dtype = if n < 1 << 31 { DType::I32 } else { DType::I64 };
        let counts = flat.cast(dtype).scan(BinaryOp::Add, 0, false).contiguous();
        let last = counts.slice(0, n - 1..)?.cast(DType::I64);
        Tensor::realize_all([&counts, &last]).named(op)?;
        let total = last.item::<i64>().named(op)? as usize;
        let places = counts.combine(BinaryOp::Sub, &counts.like(1.0));
        let places = flat.select(&places, &places.like(-1.0));
        let numbers = Tensor::iota(n, dtype, device);
        let none = Tensor::zeros([total], dtype, device);
        let found =
            if device.caps().has_atomic(BinaryOp::Max, dtype) && !device.caps().has_few_threads() {
                // Each place gets one number, so that no order matters.
                none.scatter_unchecked(0, Some(BinaryOp::Max), &places, &numbers)
            } else if device.caps().simt {
                let wanted = Tensor::iota(total, dtype, device);
                let wanted = wanted.combine(BinaryOp::Add, &wanted.like(1.0));
                counts.searchsorted(&wanted, false).named(op)?.cast(dtype)
            } else {
                none.scatter_unchecked(0, None, &places, &numbers)
            };
        Ok((found, places))
    }

    /// Where each of `values` belongs in this sorted tensor so that it stays sorted, as `i64`:
    /// before equal elements, or behind them if `right`. NaN is larger than every number. This
    /// has one axis, or the leading axes of `values` and is searched row by row.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let sorted = Tensor::new([1f32, 3.0, 3.0, 5.0], &device)?;
    /// let values = Tensor::new([3f32, 6.0, 0.0], &device)?;
    /// assert_eq!(sorted.searchsorted(&values, false)?.to_vec::<i64>()?, [1, 4, 0]);
    /// assert_eq!(sorted.searchsorted(&values, true)?.to_vec::<i64>()?, [3, 4, 0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the leading axes differ, or the tensors are on different devices.
    #[track_caller]
    pub fn searchsorted(&self, values: &Tensor, right: bool) -> Result<Tensor> {
        const OP: &str = "searchsorted";
        let _here = composed();
        let rows = self.rank().max(1) - 1;
        let fits = self.rank() == 1
            || self.rank() > 1
                && self.rank() == values.rank()
                && self.shape()[..rows] == values.shape()[..rows];
        if !fits {
            let reason = "needs one axis, or the leading axes of the values".to_owned();
            return Err(Tensor::shape_error(OP, &[self, values], reason));
        }
        if self.device() != values.device() {
            let reason = format!("operands are on {} and {}", self.device(), values.device());
            return Err(Tensor::argument_error(OP, reason));
        }
        let dtype = self.dtype().promote(values.dtype());
        let flat = if self.rank() == 1 { values.flatten() } else { values.clone() };
        let at = binary_search(&self.cast(dtype), &flat.cast(dtype), rows, right);
        let at = at.reshape_unchecked(values.shape().clone());
        Ok(at.known_below(self.shape()[rows].saturating_add(1)))
    }

    /// The number of the bucket each element lies in, between sorted `boundaries`, as `i64`: the
    /// first whose upper end is not below it (not at or below it if `right`).
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let boundaries = Tensor::new([1f32, 3.0], &device)?;
    /// let x = Tensor::new([0f32, 1.0, 2.0, 9.0], &device)?;
    /// assert_eq!(x.bucketize(&boundaries, false)?.to_vec::<i64>()?, [0, 0, 1, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `boundaries` has not one axis or is on another device.
    #[track_caller]
    pub fn bucketize(&self, boundaries: &Tensor, right: bool) -> Result<Tensor> {
        if boundaries.rank() != 1 {
            let reason = "the boundaries must have one axis".to_owned();
            return Err(Tensor::shape_error("bucketize", &[self, boundaries], reason));
        }
        boundaries.searchsorted(self, right).named("bucketize")
    }

    /// Each element as often in a row along an axis as `times` says for its position. Reads the
    /// sum of `times` from the device.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([7i32, 8, 9], &device)?;
    /// let times = Tensor::new([2i64, 0, 1], &device)?;
    /// assert_eq!(x.repeat_interleave_by(&times, 0)?.to_vec::<i32>()?, [7, 7, 9]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `times` does not hold one integer for each position, or the device fails.
    #[track_caller]
    pub fn repeat_interleave_by(&self, times: &Tensor, axis: isize) -> Result<Tensor> {
        const OP: &str = "repeat_interleave_by";
        self.check_index(OP, times)?;
        let axis = self.axis(OP, axis)?;
        if times.rank() != 1 || times.numel() != self.shape()[axis] {
            let reason = format!("needs one number for each position of axis {axis}");
            return Err(Tensor::shape_error(OP, &[self, times], reason));
        }
        let times = times.cast(DType::I64);
        let ends = times.combine(BinaryOp::Max, &times.like(0.0)).scan(BinaryOp::Add, 0, false);
        let ends = ends.contiguous();
        let n = ends.numel();
        let total = if n == 0 || !ends.shape().is_possible() {
            0
        } else {
            let last = ends.slice(0, n - 1..)?.contiguous();
            Tensor::realize_all([&ends, &last]).named(OP)?;
            last.item::<i64>().named(OP)? as usize
        };
        let mut shape = self.shape().to_vec();
        shape[axis] = total;
        if !Shape::from(shape).is_possible() {
            let reason = format!("{total} repetitions are too many");
            return Err(Tensor::shape_error(OP, &[self, &times], reason));
        }
        let numbers = Tensor::iota(total, DType::I64, self.device());
        let at = ends.searchsorted(&numbers, true).named(OP)?;
        Ok(self.select_unchecked(axis, &at))
    }
}

/// Positions in the last axis of `sorted` by halving: the answer is built from its highest bit
/// down, so the number of steps depends on the extent alone and all rows take them together.
#[track_caller]
pub(super) fn binary_search(sorted: &Tensor, values: &Tensor, axis: usize, right: bool) -> Tensor {
    // An axis with more elements than `i64` counts is one of an empty tensor.
    let n = sorted.shape()[axis].min(i64::MAX as usize);
    let mut at = values.constant(Scalar::from(0i64));
    let extent = at.constant(Scalar::from(n as i64));
    let not_nan = |x: &Tensor| x.combine(BinaryOp::Eq, x);
    for bit in (0..usize::BITS - n.leading_zeros()).rev() {
        let step = |by: i64| at.constant(Scalar::from(by));
        let next = at.combine(BinaryOp::Add, &step(1 << bit));
        let probe = at.combine(BinaryOp::Add, &step((1 << bit) - 1));
        let element = sorted.gather_unchecked(axis, &probe);
        let mut below = if right {
            element.combine(BinaryOp::Le, values)
        } else {
            element.combine(BinaryOp::Lt, values)
        };
        if sorted.dtype().is_float() {
            let past = values.is_nan();
            let past = if right { past } else { past.combine(BinaryOp::And, &not_nan(&element)) };
            below = below.combine(BinaryOp::Or, &past);
        }
        let inside = next.combine(BinaryOp::Le, &extent);
        at = inside.combine(BinaryOp::And, &below).select(&next, &at);
    }
    at
}
