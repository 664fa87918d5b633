//! Reductions: many elements become one along axes.
//!
//! Axis arguments are one axis, several, or `..` for all; negative axes count from the end. Each
//! method removes the axes; its `_keepdim` twin leaves them with extent 1.

use super::{Axes, Tensor, axes};
use crate::dtype::{Class, DType};
use crate::error::Result;
use crate::graph::{Op, axes_of};
use crate::ops::BinaryOp;
use crate::scalar::Scalar;
use crate::shape::Shape;

impl Tensor {
    /// Combines along the axes of `mask`, which stay with extent 1. Halves are accumulated in
    /// `f32` and rounded once.
    #[track_caller]
    pub(crate) fn reduce(&self, op: BinaryOp, mask: u16) -> Tensor {
        if axes_of(mask).all(|axis| self.shape()[axis] == 1) {
            return self.clone();
        }
        let dims: Shape = (0..self.rank())
            .map(|axis| if axes::holds(mask, axis) { 1 } else { self.shape()[axis] })
            .collect();
        let dtype = self.dtype();
        let wide = match op {
            BinaryOp::Add | BinaryOp::Mul => self.cast(dtype.accumulator()),
            _ => self.clone(),
        };
        Tensor::pending(Op::Reduce { op, axes: mask }, [&wide], dims, wide.dtype()).cast(dtype)
    }

    /// Without the axes of `mask`, all of extent 1.
    #[track_caller]
    pub(crate) fn without(&self, mask: u16) -> Tensor {
        let dims = (0..self.rank()).filter(|&axis| !axes::holds(mask, axis));
        self.reshape_unchecked(dims.map(|axis| self.shape()[axis]).collect())
    }

    /// The dtype sums are given in: bools and narrow integers are summed as `i64` (unsigned ones
    /// as `u64`), as NumPy does.
    #[track_caller]
    pub(crate) fn summable(&self) -> Tensor {
        match self.dtype().class() {
            Class::Bool | Class::Signed => self.cast(DType::I64),
            Class::Unsigned => self.cast(DType::U64),
            Class::Float => self.clone(),
        }
    }

    /// Number of elements that meet in one result.
    pub(crate) fn reduced_count(&self, mask: u16) -> usize {
        axes_of(mask).fold(1, |n, axis| n.saturating_mul(self.shape()[axis]))
    }
}

macro_rules! reductions {
    ($(
        $(#[$doc:meta])* $name:ident $keepdim:ident $in:tt => $out:tt $dtype:ident
        |$x:ident, $mask:ident| $body:expr;
    )*) => {
        impl Tensor {$(
            $(#[$doc])*
            ///
            /// ```
            /// # use zyx::Tensor;
            /// # let device = zyx::runtime().device("reference")?;
            #[doc = concat!("let x = Tensor::new(", stringify!($in), ", &device)?;")]
            #[doc = concat!(
                "assert_eq!(x.", stringify!($name), "(0)?.to_vec::<", stringify!($dtype), ">()?, ",
                stringify!($out), ");"
            )]
            /// # Ok::<(), zyx::Error>(())
            /// ```
            ///
            /// # Errors
            /// When an axis is out of range or repeated.
            #[track_caller]
            pub fn $name(&self, axes: impl Axes) -> Result<Tensor> {
                let $mask = self.axes(stringify!($name), axes)?;
                let $x = self;
                Ok(($body).without($mask))
            }

            #[doc = concat!("As [`Tensor::", stringify!($name), "`], keeping the axes with extent 1.")]
            ///
            /// ```
            /// # use zyx::Tensor;
            /// # let device = zyx::runtime().device("reference")?;
            #[doc = concat!("let x = Tensor::new(", stringify!($in), ", &device)?;")]
            #[doc = concat!(
                "assert_eq!(x.", stringify!($keepdim), "(0)?.shape().dims(), [1, 2]);"
            )]
            /// # Ok::<(), zyx::Error>(())
            /// ```
            ///
            /// # Errors
            /// When an axis is out of range or repeated.
            #[track_caller]
            pub fn $keepdim(&self, axes: impl Axes) -> Result<Tensor> {
                let $mask = self.axes(stringify!($keepdim), axes)?;
                let $x = self;
                Ok($body)
            }
        )*}
    };
}

reductions! {
    /// Sum. Integers are summed in 64 bits; the sum of nothing is 0.
    sum sum_keepdim [[1f32, 2.0], [3.0, 4.0]] => [4.0, 6.0] f32 |x, mask| x.summable().reduce(BinaryOp::Add, mask);
    /// Product. Integers are multiplied in 64 bits; the product of nothing is 1.
    prod prod_keepdim [[1f32, 2.0], [3.0, 4.0]] => [3.0, 8.0] f32 |x, mask| x.summable().reduce(BinaryOp::Mul, mask);
    /// Largest element; NaN if there is one; `-inf` or the dtype's minimum of nothing.
    max max_keepdim [[1f32, 4.0], [3.0, 2.0]] => [3.0, 4.0] f32 |x, mask| x.reduce(BinaryOp::Max, mask);
    /// Smallest element; NaN if there is one; `inf` or the dtype's maximum of nothing.
    min min_keepdim [[1f32, 4.0], [3.0, 2.0]] => [1.0, 2.0] f32 |x, mask| x.reduce(BinaryOp::Min, mask);
    /// Arithmetic mean; NaN of nothing. Integers give `f32`.
    mean mean_keepdim [[1f32, 2.0], [3.0, 4.0]] => [2.0, 3.0] f32 |x, mask| x.mean_of(mask);
    /// Whether any element is nonzero; false of nothing.
    any any_keepdim [[true, false], [false, false]] => [true, false] bool |x, mask| x.cast(DType::Bool).reduce(BinaryOp::Or, mask);
    /// Whether all elements are nonzero; true of nothing.
    all all_keepdim [[true, false], [true, true]] => [true, false] bool |x, mask| x.cast(DType::Bool).reduce(BinaryOp::And, mask);
    /// `log(sum(exp(x)))`, without overflow. The gradient is 0 where all elements are `-inf`.
    logsumexp logsumexp_keepdim [[0f32, 1000.0]] => [0.0, 1000.0] f32 |x, mask| x.logsumexp_of(mask);
    /// Square root of the sum of squares. The gradient is 0 where it is 0.
    norm norm_keepdim [[3f32, 0.0], [4.0, 1.0]] => [5.0, 1.0] f32 |x, mask| x.norm_of(mask);
}

/// `log(sum(exp(x)))` along axes of extent 1, in two parts. Their sum rounds the logarithm to the
/// precision of the shift, so an element is subtracted from the shift first: a shift of any size
/// then cancels exactly.
pub(super) struct LogSum {
    /// The maximum, or 0 where that is infinite. No gradient goes through it.
    pub(super) shift: Tensor,
    /// The logarithm of the sum of `exp(x - shift)`.
    pub(super) log: Tensor,
}

impl Tensor {
    #[track_caller]
    pub(crate) fn mean_of(&self, mask: u16) -> Tensor {
        let x = self.floating();
        let wide = x.cast(x.dtype().accumulator());
        let sum = wide.reduce(BinaryOp::Add, mask);
        let scale = sum.like(1.0 / self.reduced_count(mask) as f64);
        // An empty mean is 0 * inf, which is NaN as it should be.
        sum.combine(BinaryOp::Mul, &scale).cast(x.dtype())
    }

    /// The square root of what is not negative, with gradient 0 at 0: a length has no direction
    /// there, and the slope of a plain root would make it NaN.
    #[track_caller]
    pub(crate) fn root(&self) -> Tensor {
        let zero = self.like(0.0);
        let flat = self.combine(BinaryOp::Eq, &zero);
        flat.select(&zero, &flat.select(&self.like(1.0), self).sqrt())
    }

    /// Squares of halves are summed in `f32`: in `f16` that of 256 is infinite.
    #[track_caller]
    fn norm_of(&self, mask: u16) -> Tensor {
        let x = self.floating();
        let wide = x.cast(x.dtype().accumulator());
        wide.square().reduce(BinaryOp::Add, mask).root().cast(x.dtype())
    }

    #[track_caller]
    fn logsumexp_of(&self, mask: u16) -> Tensor {
        let dtype = self.floating().dtype();
        // In `f16` a sum of 65536 ones is infinite.
        let LogSum { shift, log } = self.floating().cast(dtype.accumulator()).log_sum(mask);
        log.combine(BinaryOp::Add, &shift).cast(dtype)
    }

    /// `log(sum(exp(x)))` along the axes of `mask`, in two parts.
    #[track_caller]
    pub(super) fn log_sum(&self, mask: u16) -> LogSum {
        let top = self.reduce(BinaryOp::Max, mask).detach_lazily();
        // An infinite maximum would give inf - inf; shift by 0 then.
        let shift = top.is_finite().select(&top, &top.like(0.0));
        let shifted = self.combine(BinaryOp::Sub, &shift.broadcast_unchecked(self.shape()));
        let sum = shifted.exp().reduce(BinaryOp::Add, mask);
        // Of nothing but `-inf` the sum is 0, whose logarithm has no slope.
        let nothing = sum.combine(BinaryOp::Eq, &sum.like(0.0));
        let log = nothing.select(&sum.like(1.0), &sum).log();
        LogSum { shift, log: nothing.select(&sum.like(f64::NEG_INFINITY), &log) }
    }

    /// The values without their history for gradients; stays part of the graph.
    #[track_caller]
    pub(crate) fn detach_lazily(&self) -> Tensor {
        if self.dtype().is_float() { self.detach() } else { self.clone() }
    }

    /// Variance along axes, with `correction` subtracted from the count (1: unbiased estimate).
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(x.var(1, 1)?.to_vec::<f32>()?, [0.5, 0.5]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range or repeated.
    #[track_caller]
    pub fn var(&self, axes: impl Axes, correction: usize) -> Result<Tensor> {
        let mask = self.axes("var", axes)?;
        Ok(self.var_of(mask, correction).without(mask))
    }

    /// As [`Tensor::var`], keeping the axes with extent 1.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(x.var_keepdim(1, 1)?.shape().dims(), [2, 1]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range or repeated.
    #[track_caller]
    pub fn var_keepdim(&self, axes: impl Axes, correction: usize) -> Result<Tensor> {
        let mask = self.axes("var_keepdim", axes)?;
        Ok(self.var_of(mask, correction))
    }

    #[track_caller]
    pub(crate) fn var_of(&self, mask: u16, correction: usize) -> Tensor {
        let x = self.floating();
        let wide = x.cast(x.dtype().accumulator());
        let mean = wide.mean_of(mask).broadcast_unchecked(x.shape());
        let squares = wide.combine(BinaryOp::Sub, &mean).square().reduce(BinaryOp::Add, mask);
        let count = self.reduced_count(mask) as f64 - correction as f64;
        let scale = squares.like(1.0 / count.max(0.0));
        squares.combine(BinaryOp::Mul, &scale).cast(x.dtype())
    }

    /// Standard deviation along axes; see [`Tensor::var`]. The gradient is 0 where it is 0.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 5.0], &device)?;
    /// assert_eq!(x.std(0, 0)?.item::<f32>()?, 2.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range or repeated.
    #[track_caller]
    pub fn std(&self, axes: impl Axes, correction: usize) -> Result<Tensor> {
        let mask = self.axes("std", axes)?;
        self.in_steps("std", [], |x, []| Ok(x.var_of(mask, correction).without(mask).root()))
    }

    /// Position (`i64`) of the first largest element along an axis; NaN counts as largest.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(x.argmax(0)?.item::<i64>()?, 2);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis is out of range or has extent 0.
    #[track_caller]
    pub fn argmax(&self, axis: isize) -> Result<Tensor> {
        self.arg_extreme("argmax", BinaryOp::Max, axis)
    }

    /// Position (`i64`) of the first smallest element along an axis; NaN counts as smallest.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(x.argmin(0)?.item::<i64>()?, 1);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis is out of range or has extent 0.
    #[track_caller]
    pub fn argmin(&self, axis: isize) -> Result<Tensor> {
        self.arg_extreme("argmin", BinaryOp::Min, axis)
    }

    #[track_caller]
    fn arg_extreme(&self, name: &'static str, op: BinaryOp, axis: isize) -> Result<Tensor> {
        let axis = self.axis(name, axis)?;
        let extent = self.shape()[axis];
        if extent == 0 {
            let reason = format!("axis {axis} is empty, so there is no position to give");
            return Err(Tensor::shape_error(name, &[self], reason));
        }
        let mask = 1 << axis;
        let best = self.reduce(op, mask).broadcast_unchecked(self.shape());
        let mut hit = self.combine(BinaryOp::Eq, &best);
        if self.dtype().is_float() {
            hit = hit.combine(BinaryOp::Or, &self.is_nan());
        }
        let mut dims = vec![1; self.rank()];
        dims[axis] = extent;
        let positions = Tensor::positions(extent, self.device());
        let positions = positions.reshape_unchecked(dims.into()).broadcast_unchecked(self.shape());
        let none = positions.constant(Scalar::from_i64(positions.dtype(), extent as i64));
        let first = hit.select(&positions, &none).reduce(BinaryOp::Min, mask);
        Ok(first.without(mask).cast(DType::I64).known_below(extent))
    }

    /// Running combination along an axis, inclusive, from the front.
    #[track_caller]
    pub(crate) fn scan(&self, op: BinaryOp, axis: usize, reverse: bool) -> Tensor {
        let dtype = self.dtype();
        let wide = match op {
            BinaryOp::Add | BinaryOp::Mul => self.cast(dtype.accumulator()),
            _ => self.clone(),
        };
        let op = Op::Scan { op, axis: axis as u8, reverse, scaled: false };
        Tensor::pending(op, [&wide], self.shape().clone(), wide.dtype()).cast(dtype)
    }

    /// Each element added to the product of its factor with what ran so far, along an axis; factors
    /// have this tensor's shape and dtype.
    #[track_caller]
    pub(crate) fn recurrence(&self, factors: &Tensor, axis: usize, reverse: bool) -> Tensor {
        let op = Op::Scan { op: BinaryOp::Add, axis: axis as u8, reverse, scaled: true };
        Tensor::pending(op, [self, factors], self.shape().clone(), self.dtype())
    }

    /// At each place the next element along an axis, or the one before; zero where there is none.
    #[track_caller]
    pub(crate) fn beside(&self, axis: usize, next: bool) -> Tensor {
        let extent = self.shape()[axis];
        if extent == 0 {
            return self.clone();
        }
        let mut kept: Vec<(usize, usize)> = self.shape().iter().map(|&d| (0, d)).collect();
        kept[axis] = if next { (1, extent) } else { (0, extent - 1) };
        let mut padding = vec![(0, 0); self.rank()];
        padding[axis] = if next { (0, 1) } else { (1, 0) };
        self.shrink_unchecked(&kept).pad_unchecked(&padding, self.shape().clone())
    }

    /// Cumulative sum along an axis; integers are summed in 64 bits.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(x.cumsum(0)?.to_vec::<f32>()?, [1.0, -1.0, 2.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis is out of range.
    #[track_caller]
    pub fn cumsum(&self, axis: isize) -> Result<Tensor> {
        let axis = self.axis("cumsum", axis)?;
        Ok(self.summable().scan(BinaryOp::Add, axis, false))
    }
}
