//! Placing elements by indices: reductions into places, sums, copies and fills along an axis,
//! slices put into a tensor.
//!
//! Places out of range are errors where the result is read. Of several values for one place, reductions
//! combine all and copies keep the last in row-major order, whatever the device. Tensors are
//! immutable: each method gives a new one.

use super::{Operand, Tensor};
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::ops::BinaryOp;
use crate::origin::composed;
use crate::scalar::Scalar;
use crate::shape::Shape;

/// How [`Tensor::scatter_reduce`] combines what meets in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScatterReduce {
    /// Sum.
    Sum,
    /// Product.
    Prod,
    /// Arithmetic mean; of integers rounded down.
    Mean,
    /// Largest.
    Amax,
    /// Smallest.
    Amin,
}

impl Tensor {
    /// `src[.., i, ..]` combined into `[.., index[.., i, ..], ..]`, with what is there if
    /// `include_self`, else instead of it. The index may have smaller extents than `src` and,
    /// outside the axis, than this tensor: only that corner of them is used.
    ///
    /// ```
    /// # use zyx::{ScatterReduce, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 1.0, 1.0], &device)?;
    /// let index = Tensor::new([0i64, 0, 2], &device)?;
    /// let src = Tensor::new([5f32, 6.0, 7.0], &device)?;
    /// let y = x.scatter_reduce(0, &index, &src, ScatterReduce::Amax, false)?;
    /// assert_eq!(y.to_vec::<f32>()?, [6.0, 1.0, 7.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes or dtypes do not fit, or `index` does not hold integers; when an index is out of range, at the call or
    /// when the result is read.
    #[track_caller]
    pub fn scatter_reduce(
        &self,
        axis: isize,
        index: &Tensor,
        src: &Tensor,
        reduce: ScatterReduce,
        include_self: bool,
    ) -> Result<Tensor> {
        const OP: &str = "scatter_reduce";
        let (axis, index, src) = self.corner(OP, axis, index, src)?;
        let op = match reduce {
            ScatterReduce::Sum | ScatterReduce::Mean => BinaryOp::Add,
            ScatterReduce::Prod => BinaryOp::Mul,
            ScatterReduce::Amax => BinaryOp::Max,
            ScatterReduce::Amin => BinaryOp::Min,
        };
        let mut base = self.clone();
        if !include_self {
            let neutral = op.identity(self.dtype()).expect("invariant: the op is associative");
            let hit = self.places(axis, &index).cast(DType::Bool);
            base = hit.select(&self.constant(neutral), self);
        }
        if self.dtype() == DType::Bool && reduce == ScatterReduce::Mean {
            let reason = "there is no mean of bools".to_owned();
            return Err(Tensor::dtype_error(OP, &[self], reason));
        }
        let combined = base.scatter_ruled(axis, op, &index, &src);
        if reduce != ScatterReduce::Mean {
            return Ok(combined);
        }
        let counts = self.places(axis, &index);
        let counts = if include_self {
            counts.combine(BinaryOp::Add, &counts.like(1.0))
        } else {
            counts.combine(BinaryOp::Max, &counts.like(1.0))
        };
        let counts = counts.cast(self.dtype());
        if self.dtype().is_float() {
            Ok(combined.combine(BinaryOp::Div, &counts))
        } else {
            combined.floor_divide(&counts)
        }
    }

    /// How many of `index` go to each place of `self`, as an integer.
    #[track_caller]
    fn places(&self, axis: usize, index: &Tensor) -> Tensor {
        let dtype = if index.shape()[axis] < 1 << 31 { DType::I32 } else { DType::I64 };
        let none = self.constant(Scalar::from_i64(dtype, 0));
        let ones = index.constant(Scalar::from_i64(dtype, 1));
        none.scatter_unchecked(axis, Some(BinaryOp::Add), index, &ones)
    }

    /// A scatter whose gradient is known for products and extremes too.
    #[track_caller]
    fn scatter_ruled(&self, axis: usize, op: BinaryOp, index: &Tensor, src: &Tensor) -> Tensor {
        let value = self.scatter_unchecked(axis, Some(op), index, src);
        if op == BinaryOp::Add || !self.dtype().is_float() {
            return value;
        }
        let index = index.clone();
        let rule = move |inputs: &[Tensor], y: &Tensor, dy: &Tensor| {
            let (base, src) = (&inputs[0], &inputs[1]);
            let (dbase, dsrc) = match op {
                BinaryOp::Mul => slopes_of_products(axis, &index, base, src, y)?,
                _ => shares_of_extremes(axis, op, &index, base, src),
            };
            let dsrc = dsrc.combine(BinaryOp::Mul, &dy.gather_unchecked(axis, &index));
            Ok(vec![Some(dbase.combine(BinaryOp::Mul, dy)), Some(dsrc)])
        };
        value.with_gradient(&[self, src], rule).expect("invariant: two inputs are not too many")
    }

    /// Index and source brought to the shape of `self` outside the axis: what the index does not
    /// cover goes nowhere.
    #[track_caller]
    pub(crate) fn corner(
        &self,
        op: &'static str,
        axis: isize,
        index: &Tensor,
        src: &Tensor,
    ) -> Result<(usize, Tensor, Tensor)> {
        self.check_index(op, index)?;
        let axis = self.axis(op, axis)?;
        let fits = index.rank() == self.rank()
            && src.rank() == self.rank()
            && (0..self.rank()).all(|a| {
                index.shape()[a] <= src.shape()[a]
                    && (a == axis || index.shape()[a] <= self.shape()[a])
            });
        if !fits {
            let reason = format!(
                "the index must have the rank of both, and extents up to those of the source and, \
                 outside axis {axis}, of this tensor"
            );
            return Err(Tensor::shape_error(op, &[self, index, src], reason));
        }
        if src.device() != self.device() {
            let reason = format!("operands are on {} and {}", self.device(), src.device());
            return Err(Tensor::argument_error(op, reason));
        }
        if src.dtype() != self.dtype() {
            let reason = "source and destination must have one dtype".to_owned();
            return Err(Tensor::dtype_error(op, &[self, src], reason));
        }
        let index = index.within(op, 0, self.shape()[axis], None)?;
        let ranges: Vec<_> = index.shape().iter().map(|&d| (0, d)).collect();
        let src = src.shrink_unchecked(&ranges);
        let missing = |a: usize| if a == axis { 0 } else { self.shape()[a] - index.shape()[a] };
        let padding: Vec<_> = (0..self.rank()).map(|a| (0, missing(a))).collect();
        if padding.iter().all(|p| p.1 == 0) {
            return Ok((axis, index, src));
        }
        let index = index.cast(DType::I64).pad_with(&padding, -1.0).named(op)?;
        Ok((axis, index, src.pad(&padding).named(op)?))
    }

    /// A vector of places along an axis, with `src` in the shape the places give.
    #[track_caller]
    fn vector_of_places(
        &self,
        op: &'static str,
        axis: isize,
        index: &Tensor,
        src: Option<&Tensor>,
    ) -> Result<(usize, Tensor)> {
        self.check_index(op, index)?;
        let axis = self.axis(op, axis)?;
        if index.rank() > 1 {
            let reason = "the index must have one axis".to_owned();
            return Err(Tensor::shape_error(op, &[self, index], reason));
        }
        let index = index.within(op, 0, self.shape()[axis], None)?;
        let index = self.along(axis, &index.flatten());
        if let Some(src) = src {
            if !src.shape().same(index.shape()) {
                let reason = format!("the source must have the shape {}", index.shape());
                return Err(Tensor::shape_error(op, &[self, src], reason));
            }
            if src.device() != self.device() {
                let reason = format!("operands are on {} and {}", self.device(), src.device());
                return Err(Tensor::argument_error(op, reason));
            }
            if src.dtype() != self.dtype() {
                let reason = "source and destination must have one dtype".to_owned();
                return Err(Tensor::dtype_error(op, &[self, src], reason));
            }
        }
        Ok((axis, index))
    }

    /// `alpha * src[.., i, ..]` added to `[.., index[i], ..]`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 1.0, 1.0], &device)?;
    /// let index = Tensor::new([2i64, 2], &device)?;
    /// let y = x.index_add(0, &index, &Tensor::new([5f32, 6.0], &device)?, 2.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 1.0, 23.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes or dtypes do not fit, or `index` does not hold integers; when an index is out of range, at the call or
    /// when the result is read.
    #[track_caller]
    pub fn index_add(
        &self,
        axis: isize,
        index: &Tensor,
        src: &Tensor,
        alpha: f64,
    ) -> Result<Tensor> {
        let (axis, index) = self.vector_of_places("index_add", axis, index, Some(src))?;
        self.in_steps("index_add", [src], |x, [src]| {
            let scaled = match alpha {
                1.0 => src,
                _ => {
                    let factor = Scalar::from_f64(src.dtype(), alpha);
                    src.combine(BinaryOp::Mul, &src.argument(factor))
                }
            };
            Ok(x.scatter_unchecked(axis, Some(BinaryOp::Add), &index, &scaled))
        })
    }

    /// This tensor with `src[.., i, ..]` at `[.., index[i], ..]`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 1.0, 1.0], &device)?;
    /// let index = Tensor::new([2i64, 0], &device)?;
    /// let y = x.index_copy(0, &index, &Tensor::new([5f32, 6.0], &device)?)?;
    /// assert_eq!(y.to_vec::<f32>()?, [6.0, 1.0, 5.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes or dtypes do not fit, or `index` does not hold integers; when an index is out of range, at the call or
    /// when the result is read.
    #[track_caller]
    pub fn index_copy(&self, axis: isize, index: &Tensor, src: &Tensor) -> Result<Tensor> {
        let (axis, index) = self.vector_of_places("index_copy", axis, index, Some(src))?;
        Ok(self.copied(axis, &index, src))
    }

    /// This tensor with `src` at the places that a vector laid along an axis tells. Where threads are
    /// many, each place finds the last entry that goes there, and its row is read once.
    #[track_caller]
    pub(super) fn copied(&self, axis: usize, index: &Tensor, src: &Tensor) -> Tensor {
        let (caps, m) = (self.device().caps(), src.shape()[axis]);
        let finds = caps.has_atomic(BinaryOp::Max, DType::I32) && !caps.has_few_threads();
        let vector = index.vector_along(axis).filter(|_| finds && m < 1 << 31);
        let Some(vector) = vector else {
            return self.scatter_unchecked(axis, None, index, src);
        };
        let n = self.shape()[axis];
        let none = Tensor::full([n], -1i32, self.device());
        let numbers = Tensor::iota(m, DType::I32, self.device());
        let last = none.scatter_unchecked(0, Some(BinaryOp::Max), &vector, &numbers).contiguous();
        let from = self.along(axis, &last);
        let hit = from.like(-1.0).combine(BinaryOp::Lt, &from);
        let picked = src.detach().gather_unchecked(axis, &from.cast(DType::I64));
        let y = hit.select(&picked, &self.detach());
        // An entry has a gradient if it is the one that was read.
        let held =
            last.gather_unchecked(0, &vector.cast(DType::I64)).combine(BinaryOp::Eq, &numbers);
        let held = src.along(axis, &held);
        let index = index.cast(DType::I64);
        let rule = move |_: &[Tensor], _: &Tensor, dy: &Tensor| {
            let zero = |x: &Tensor| x.like(0.0);
            let picked = dy.gather_unchecked(axis, &index);
            let to_src = held.select(&picked, &zero(&picked));
            Ok(vec![Some(hit.select(&zero(dy), dy)), Some(to_src)])
        };
        y.with_gradient(&[self, src], rule).expect("invariant: two inputs are not too many")
    }

    /// This tensor with `value` (converted to its dtype) at the positions of `index` along an
    /// axis.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 1.0, 1.0], &device)?;
    /// let y = x.index_fill(0, &Tensor::new([2i64, 0], &device)?, -1.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, 1.0, -1.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `index` has more than one axis or does not hold integers, or `value` is a tensor
    /// with axes.
    #[track_caller]
    pub fn index_fill(&self, axis: isize, index: &Tensor, value: impl Operand) -> Result<Tensor> {
        const OP: &str = "index_fill";
        let _here = composed();
        let (axis, index) = self.vector_of_places(OP, axis, index, None)?;
        let hit = match index.vector_along(axis) {
            Some(vector) => {
                let none = Tensor::zeros([self.shape()[axis]], DType::I64, self.device());
                self.along(axis, &none.places(0, &vector).cast(DType::Bool))
            }
            None => self.places(axis, &index).cast(DType::Bool),
        };
        let value = self.fill_value(OP, value)?;
        Ok(hit.select(&value, self))
    }

    /// One number in shape and dtype of `self`.
    #[track_caller]
    fn fill_value(&self, op: &'static str, value: impl Operand) -> Result<Tensor> {
        let (number, value) = (value.is_number(), value.resolve(self));
        if !number && value.rank() != 0 || value.device() != self.device() {
            let reason = "the value must be one number on the tensor's device".to_owned();
            return Err(Tensor::shape_error(op, &[self, &value], reason));
        }
        if value.shape().same(self.shape()) {
            return Ok(value.cast(self.dtype()));
        }
        let one = value.reshape(Shape::scalar()).named(op)?;
        Ok(one.cast(self.dtype()).broadcast_unchecked(self.shape()))
    }

    /// This tensor with `value` (converted to its dtype) where `mask` holds; the mask broadcasts.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(x.masked_fill(&x.lt(0.0)?, 9.0)?.to_vec::<f32>()?, [1.0, 9.0, 3.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the mask does not broadcast to this shape, or `value` is a tensor with axes.
    #[track_caller]
    pub fn masked_fill(&self, mask: &Tensor, value: impl Operand) -> Result<Tensor> {
        let mask = self.mask_of("masked_fill", mask)?;
        let value = self.fill_value("masked_fill", value)?;
        Ok(mask.select(&value, self))
    }

    /// A mask as bools of this shape.
    #[track_caller]
    pub(crate) fn mask_of(&self, op: &'static str, mask: &Tensor) -> Result<Tensor> {
        let common = mask.shape().broadcast(self.shape());
        if common.is_none_or(|common| !common.same(self.shape())) {
            let reason = "the mask does not broadcast to the tensor's shape".to_owned();
            return Err(Tensor::shape_error(op, &[self, mask], reason));
        }
        if mask.device() != self.device() {
            let reason = format!("operands are on {} and {}", self.device(), mask.device());
            return Err(Tensor::argument_error(op, reason));
        }
        Ok(mask.cast(DType::Bool).broadcast_unchecked(self.shape()))
    }

    /// This tensor with `src` at positions `start, start + 1, …` of an axis.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1i32, 2, 3, 4], &device)?;
    /// let y = x.slice_scatter(&Tensor::new([8i32, 9], &device)?, 0, 1)?;
    /// assert_eq!(y.to_vec::<i32>()?, [1, 8, 9, 4]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `src` does not fit there.
    #[track_caller]
    pub fn slice_scatter(&self, src: &Tensor, axis: isize, start: usize) -> Result<Tensor> {
        const OP: &str = "slice_scatter";
        let axis = self.axis(OP, axis)?;
        let fits = src.rank() == self.rank()
            && (0..self.rank()).all(|a| a == axis || src.shape()[a] == self.shape()[a])
            && start.checked_add(src.shape()[axis]).is_some_and(|end| end <= self.shape()[axis])
            && src.device() == self.device();
        if !fits {
            let reason = format!("the source does not fit at {start} of axis {axis}");
            return Err(Tensor::shape_error(OP, &[self, src], reason));
        }
        let mut padding = vec![(0, 0); self.rank()];
        padding[axis] = (start, self.shape()[axis] - start - src.shape()[axis]);
        let here = src.constant(Scalar::from(true)).pad(&padding)?;
        Ok(here.select(&src.cast(self.dtype()).pad(&padding)?, self))
    }

    /// This tensor with `src` as the slice at one position of an axis.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1i32, 2], [3, 4]], &device)?;
    /// let y = x.select_scatter(&Tensor::new([8i32, 9], &device)?, 1, 0)?;
    /// assert_eq!(y.to_vec::<i32>()?, [8, 2, 9, 4]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `src` has not the shape of the slice.
    #[track_caller]
    pub fn select_scatter(&self, src: &Tensor, axis: isize, position: isize) -> Result<Tensor> {
        const OP: &str = "select_scatter";
        let axis = self.axis(OP, axis)?;
        let position = match super::axes::place(position, self.shape()[axis]) {
            Ok(position) => position,
            Err(reason) => return Err(Tensor::shape_error(OP, &[self], reason)),
        };
        let src = src.unsqueeze(axis as isize).named(OP)?;
        self.slice_scatter(&src, axis as isize, position).named(OP)
    }
}

/// Of products that met: the derivative by each factor, which is the product of all others.
#[track_caller]
fn slopes_of_products(
    axis: usize,
    index: &Tensor,
    base: &Tensor,
    src: &Tensor,
    y: &Tensor,
) -> Result<(Tensor, Tensor)> {
    let to_base = base.like(1.0).scatter_ruled(axis, BinaryOp::Mul, index, src);
    // Without zeros `y / src`; with one zero among the factors of a place, only that one has a slope.
    let zero = |x: &Tensor| x.combine(BinaryOp::Eq, &x.like(0.0));
    let without = |x: &Tensor| zero(x).select(&x.like(1.0), x);
    let count = |x: &Tensor| zero(x).cast(x.dtype());
    let others = without(base).scatter_unchecked(axis, Some(BinaryOp::Mul), index, &without(src));
    let zeros = count(base).scatter_unchecked(axis, Some(BinaryOp::Add), index, &count(src));
    let at = |x: &Tensor| x.gather_unchecked(axis, index);
    let (others, zeros) = (at(&others), at(&zeros));
    let none = zeros.combine(BinaryOp::Eq, &zeros.like(0.0));
    let one = zeros.combine(BinaryOp::Eq, &zeros.like(1.0));
    let alone = one.combine(BinaryOp::And, &zero(src)).select(&others, &src.like(0.0));
    let slope = none.select(&at(y).combine(BinaryOp::Div, &without(src)), &alone);
    // A slope of 0 is a constant here, which its derivative is not.
    let index = index.clone();
    let to_src = slope.with_gradient(&[base, src], move |inputs, _, d| {
        // Other names, lest one that was computed from the other counts its part, too.
        let (base, src) = (inputs[0].alias(), inputs[1].alias());
        products_of_others(axis, &index, &base, &src)?.grad_with(d, &[&base, &src])
    })?;
    Ok((to_base, to_src))
}

/// For each element of `src` the product of everything else that goes to its place: sorted by
/// places, what comes before it times what comes behind, without a division.
#[track_caller]
fn products_of_others(axis: usize, index: &Tensor, base: &Tensor, src: &Tensor) -> Result<Tensor> {
    let n = index.shape()[axis];
    if n == 0 {
        return Ok(src.clone());
    }
    let (places, order) = index.sort(axis as isize, false)?;
    let wide = src.dtype().accumulator();
    let x = src.gather_unchecked(axis, &order).cast(wide);
    let along = axis as isize;
    let again = places.slice(along, ..n - 1)?.eq(places.slice(along, 1..)?)?;
    let products = |next: bool| {
        let mut padding = vec![(0, 0); x.rank()];
        padding[axis] = if next { (0, 1) } else { (1, 0) };
        let goes_on = again.pad(&padding)?;
        let factors = goes_on.select(&x.beside(axis, next), &x.like(0.0));
        let starts = goes_on.select(&x.like(0.0), &x.like(1.0));
        Ok::<_, crate::Error>(starts.recurrence(&factors, axis, next))
    };
    let others = products(false)?.combine(BinaryOp::Mul, &products(true)?).cast(src.dtype());
    let others = src.like(0.0).scatter_unchecked(axis, None, &order, &others);
    Ok(others.combine(BinaryOp::Mul, &base.gather_unchecked(axis, index)))
}

/// Of extremes that met: those that won share.
#[track_caller]
fn shares_of_extremes(
    axis: usize,
    op: BinaryOp,
    index: &Tensor,
    base: &Tensor,
    src: &Tensor,
) -> (Tensor, Tensor) {
    // Not the result that there is: it may have been computed from operands that rounded otherwise.
    let y = base.scatter_unchecked(axis, Some(op), index, src);
    let won = |x: &Tensor, y: &Tensor| x.combine(BinaryOp::Eq, y).cast(x.dtype());
    let (base, src) = (won(base, &y), won(src, &y.gather_unchecked(axis, index)));
    let count = base.scatter_unchecked(axis, Some(BinaryOp::Add), index, &src);
    let share = count.combine(BinaryOp::Max, &count.like(1.0)).recip();
    let to_src = src.combine(BinaryOp::Mul, &share.gather_unchecked(axis, index));
    (base.combine(BinaryOp::Mul, &share), to_src)
}
