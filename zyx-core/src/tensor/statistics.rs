//! Statistics: counts, norms and means that skip NaN, order statistics, distinct elements,
//! histograms, covariance.
//!
//! Order statistics of short rows sort on the device, those of long ones select. Histograms count in blocks that do not share a counter and
//! add the blocks' counts, so they are exact, equal on every device, and parallel.

use super::sort::selects;
use super::widened::Rounded;
use super::{Axes, Tensor};
use crate::dtype::{Class, DType};
use crate::error::{Named, Result};
use crate::ops::BinaryOp;
use crate::origin::composed;
use crate::scalar::Scalar;
use crate::shape::Shape;

/// Most quantiles that are found one by one, without sorting.
const FEW: usize = 2;
/// Elements that one block of a histogram counts.
const COUNTED: usize = 1 << 14;
/// Integers of which it is worth to read how far they reach.
const RANGED: usize = 512;

/// What [`Tensor::unique`] gives.
#[derive(Clone, Debug)]
pub struct Unique {
    /// The distinct elements.
    pub values: Tensor,
    /// For each element of the flattened input the position of its value.
    pub inverse: Tensor,
    /// How often each value occurs.
    pub counts: Tensor,
}

impl Tensor {
    /// Number of nonzero elements along axes, as `i64`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 0.0, 3.0], &device)?;
    /// assert_eq!(x.count_nonzero(0)?.item::<i64>()?, 2);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range or repeated.
    #[track_caller]
    pub fn count_nonzero(&self, axes: impl Axes) -> Result<Tensor> {
        self.cast(DType::Bool).sum(axes).named("count_nonzero")
    }

    /// Sum along axes of what is not NaN.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, f32::NAN, 3.0], &device)?;
    /// assert_eq!(x.nansum(0)?.item::<f32>()?, 4.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range or repeated.
    #[track_caller]
    pub fn nansum(&self, axes: impl Axes) -> Result<Tensor> {
        self.is_nan().select(&self.like(0.0), self).sum(axes).named("nansum")
    }

    /// Arithmetic mean along axes of what is not NaN.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, f32::NAN, 3.0], &device)?;
    /// assert_eq!(x.nanmean(0)?.item::<f32>()?, 2.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range or repeated.
    #[track_caller]
    pub fn nanmean(&self, axes: impl Axes) -> Result<Tensor> {
        let mask = self.axes("nanmean", axes)?;
        let x = self.floating();
        let wide = x.cast(x.dtype().accumulator());
        let (nan, zero) = (wide.is_nan(), wide.like(0.0));
        let sum = nan.select(&zero, &wide).reduce(BinaryOp::Add, mask);
        let count = nan.select(&zero, &wide.like(1.0)).reduce(BinaryOp::Add, mask);
        Ok(sum.combine(BinaryOp::Div, &count).cast(x.dtype()).without(mask))
    }

    /// `sum(|x|^p)^(1/p)` along axes: the largest magnitude for an infinite `p`, the smallest for
    /// minus infinity, the number of nonzero elements for 0.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([3f32, -4.0], &device)?;
    /// assert_eq!(x.norm_p(1.0, 0)?.item::<f32>()?, 7.0);
    /// assert_eq!(x.norm_p(f64::INFINITY, 0)?.item::<f32>()?, 4.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range or repeated.
    #[track_caller]
    pub fn norm_p(&self, p: f64, axes: impl Axes) -> Result<Tensor> {
        let mask = self.axes("norm_p", axes)?;
        let norm = self.wide().p_norm(p, mask).named("norm_p")?;
        Ok(norm.cast(self.floating().dtype()).without(mask))
    }

    /// The middle of the sorted elements along an axis, of two middles the lower, and its position
    /// as `i64`; NaN if there is one. The axis goes away.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([3f32, 1.0, 2.0, 9.0], &device)?;
    /// let (value, at) = x.median(0)?;
    /// assert_eq!((value.item::<f32>()?, at.item::<i64>()?), (2.0, 2));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis is out of range or empty.
    #[track_caller]
    pub fn median(&self, axis: isize) -> Result<(Tensor, Tensor)> {
        let _here = composed();
        let axis = self.not_empty("median", axis)?;
        let n = self.shape()[axis];
        let at = self.along_last(axis, 1, |rows| {
            let middle = rows.each_row((n - 1) / 2);
            let place = if self.dtype().is_float() {
                // NaN stands at the end: the first one, if the last is one.
                let numbers = rows.is_nan().cast(DType::I64).reduce(BinaryOp::Add, 0b10);
                let none = numbers.combine(BinaryOp::Eq, &numbers.like(0.0));
                let all = numbers.constant(Scalar::from(n as i64));
                none.select(&middle, &all.combine(BinaryOp::Sub, &numbers))
            } else {
                middle
            };
            rows.keys(false).at_place(&place.contiguous())
        });
        let values = self.gather_distinct(axis, &at).without(1 << axis);
        Ok((values, at.without(1 << axis).known_below(n)))
    }

    /// The most frequent element along an axis, of several the smallest, and the position of its
    /// last occurrence as `i64`. The axis goes away.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([3i32, 1, 3, 1, 2], &device)?;
    /// let (value, at) = x.mode(0)?;
    /// assert_eq!((value.item::<i32>()?, at.item::<i64>()?), (1, 3));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis is out of range or empty.
    #[track_caller]
    pub fn mode(&self, axis: isize) -> Result<(Tensor, Tensor)> {
        let _here = composed();
        let (axis, sorted, order) = self.sorted_not_empty("mode", axis)?;
        let mut dims = vec![1; self.rank()];
        dims[axis] = self.shape()[axis];
        let numbers = Tensor::iota(dims[axis], DType::I64, self.device());
        let numbers = numbers.reshape_unchecked((&dims[..]).into());
        let numbers = numbers.broadcast_unchecked(self.shape());
        let begins = sorted.begins_runs(axis)?;
        let start = begins.select(&numbers, &numbers.like(0.0)).scan(BinaryOp::Max, axis, false);
        let length = numbers.combine(BinaryOp::Sub, &start);
        // The first place where the longest run ends: the end of the smallest such value.
        let at = length.argmax(axis as isize)?.unsqueeze(axis as isize)?;
        let value = sorted.gather_unchecked(axis, &at);
        let at = order.gather_unchecked(axis, &at).without(1 << axis);
        Ok((value.without(1 << axis), at.known_below(dims[axis])))
    }

    /// The axis, if rows along it can be sorted and have elements.
    #[track_caller]
    fn not_empty(&self, op: &'static str, axis: isize) -> Result<usize> {
        let axis = self.sortable(op, axis)?;
        if self.shape()[axis] == 0 {
            let reason = format!("axis {axis} is empty");
            return Err(Tensor::shape_error(op, &[self], reason));
        }
        Ok(axis)
    }

    #[track_caller]
    fn sorted_not_empty(&self, op: &'static str, axis: isize) -> Result<(usize, Tensor, Tensor)> {
        let axis = self.not_empty(op, axis)?;
        let order = self.order_along(op, axis as isize, false)?.1.contiguous();
        Ok((axis, self.gather_unchecked(axis, &order), order))
    }

    /// Where an element differs from the one before it along an axis.
    #[track_caller]
    fn begins_runs(&self, axis: usize) -> Result<Tensor> {
        let n = self.shape()[axis];
        let axis = axis as isize;
        let differs = self.slice(axis, 1.min(n)..)?.ne(self.slice(axis, ..n.max(1) - 1)?)?;
        let first = self.slice(axis, ..1.min(n))?.constant(Scalar::from(true));
        Tensor::cat(&[&first, &differs], axis)
    }

    /// Quantiles along an axis, interpolated linearly between neighbours: `q` in `0 ..= 1`, one
    /// leading axis for the numbers of `q`. NaN if there is one. Both neighbours have a gradient,
    /// equal ones too.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([3f32, 1.0, 2.0], &device)?;
    /// assert_eq!(x.quantile(&[0.0, 0.75], 0)?.to_vec::<f32>()?, [1.0, 2.5]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a `q` lies outside `0 ..= 1`, or the axis is out of range or empty.
    #[track_caller]
    pub fn quantile(&self, q: &[f64], axis: isize) -> Result<Tensor> {
        const OP: &str = "quantile";
        let _here = composed();
        if q.is_empty() || !q.iter().all(|q| (0.0..=1.0).contains(q)) {
            let reason = format!("{q:?} are no numbers of 0 ..= 1");
            return Err(Tensor::argument_error(OP, reason));
        }
        let x = self.floating();
        let axis = x.not_empty(OP, axis)?;
        let n = self.shape()[axis];
        let sorted = match q.len() > FEW {
            true => Some(x.sorted_not_empty(OP, axis as isize)?.1),
            false => None,
        };
        let by_order = sorted.is_none() && !selects(n, &x);
        let order = by_order.then(|| x.along_last(axis, n, |rows| rows.keys(false).key_order()));
        let nan = x.is_nan().reduce(BinaryOp::Or, 1 << axis).without(1 << axis);
        let mut all = Vec::new();
        for q in q {
            let place = q * (n - 1) as f64;
            let low = place.floor() as usize;
            let at = |i: usize| match &sorted {
                Some(sorted) => sorted.select_index(axis as isize, i.min(n - 1) as isize),
                None => {
                    let i = i.min(n - 1);
                    let at = match &order {
                        Some(order) => order.narrow(axis as isize, i, 1)?,
                        None => {
                            let found =
                                |rows: &Tensor| rows.keys(false).at_place(&rows.each_row(i));
                            x.along_last(axis, 1, found)
                        }
                    };
                    Ok(x.gather_distinct(axis, &at).without(1 << axis))
                }
            };
            let (a, b) = (at(low)?.widened(), at(low + 1)?.widened());
            let part = place - low as f64;
            let between = if part == 0.0 {
                a
            } else {
                // Equal infinities have no difference.
                let infinite = a.abs().combine(BinaryOp::Eq, &a.like(f64::INFINITY));
                let alike = a.combine(BinaryOp::Eq, &b).combine(BinaryOp::And, &infinite);
                let step = b.combine(BinaryOp::Sub, &a).mul_literal(part);
                a.combine(BinaryOp::Add, &alike.select(&step.like(0.0), &step))
            };
            all.push(nan.select(&between.like(f64::NAN), &between).rounded(x.dtype()));
        }
        Tensor::stack(&all.iter().collect::<Vec<_>>(), 0).named(OP)
    }

    /// The distinct elements of the flattened tensor in ascending order, where each element went,
    /// and how often each occurs. Reads their number from the device and, of many integers, the
    /// smallest and the largest: a small range is counted, not sorted.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let found = Tensor::new([3i32, 1, 3, 2], &device)?.unique()?;
    /// assert_eq!(found.values.to_vec::<i32>()?, [1, 2, 3]);
    /// assert_eq!(found.inverse.to_vec::<i64>()?, [2, 0, 2, 1]);
    /// assert_eq!(found.counts.to_vec::<i64>()?, [1, 1, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there are too many elements or the device fails.
    #[track_caller]
    pub fn unique(&self) -> Result<Unique> {
        let _here = composed();
        let flat = self.flatten();
        let fixed = flat.detach();
        let (sorted, order) = match flat.span().named("unique")? {
            Some((low, width)) => {
                let at = flat.above(low);
                if width < 4 * flat.numel() as u64 {
                    return at.unique_by_counts((low, width), self.dtype()).named("unique");
                }
                let order = at.order_of_places(width as usize);
                (fixed.gather_unchecked(0, &order), order)
            }
            None => fixed.sort(0, false).named("unique")?,
        };
        // The number of runs is read, and nothing shall be sorted again for what else is asked for.
        let (sorted, order) = (sorted.contiguous(), order.cast(DType::U32).contiguous());
        Tensor::realize_all([&sorted, &order]).named("unique")?;
        let order = order.cast(DType::I64);
        let (found, starts) = sorted.runs().named("unique")?;
        let (n, from) = (flat.numel(), order.gather_unchecked(0, &starts));
        let values = found
            .values
            .with_gradient(&[&flat], move |_, _, dy| Ok(vec![Some(dy.put_back(0, n, &from))]))?;
        // Where sorted elements went, back at the elements' own places.
        let inverse = order.like(0.0).scatter_unchecked(0, None, &order, &found.inverse);
        let inverse = inverse.known_below(values.numel());
        Ok(Unique { values, inverse, ..found })
    }

    /// The bits of the smallest of many integers and how far above it the largest is, if that is less
    /// than `2^32`.
    #[track_caller]
    fn span(&self) -> Result<Option<(u64, u64)>> {
        let n = self.numel();
        let integers = matches!(self.dtype().class(), Class::Signed | Class::Unsigned);
        if !integers || !(RANGED as u64..1 << 32).contains(&(n as u64)) {
            return Ok(None);
        }
        let ends = [BinaryOp::Min, BinaryOp::Max].map(|op| self.reduce(op, 1).unsigned_bits());
        let ends = Tensor::cat(&[&ends[0], &ends[1]], 0)?.cast(DType::U64).to_vec::<u64>()?;
        let width = ends[1].wrapping_sub(ends[0]) & (u64::MAX >> (64 - self.dtype().bits()));
        Ok((width < 1 << 32).then_some((ends[0], width)))
    }

    /// How far integers are above the smallest, whose bits are given.
    #[track_caller]
    fn above(&self, low: u64) -> Tensor {
        let bits = self.unsigned_bits();
        bits.combine(BinaryOp::Sub, &bits.argument(Scalar::from_bits(bits.dtype(), low)))
    }

    /// Distinct integers, which are these above the smallest one, whose bits are given; the largest is
    /// `width`.
    #[track_caller]
    fn unique_by_counts(&self, (low, width): (u64, u64), dtype: DType) -> Result<Unique> {
        // By powers of two, so that few kernels serve all widths.
        let counts = self.counted((width as usize + 1).next_power_of_two())?.contiguous();
        let occurs = counts.ne(0)?;
        let places = occurs.nonzero()?.flatten();
        let ranks = occurs.cast(DType::I64).scan(BinaryOp::Add, 0, false).contiguous();
        let inverse = ranks.gather_unchecked(0, &self.cast(DType::I64));
        let inverse = inverse.combine(BinaryOp::Sub, &inverse.like(1.0));
        let inverse = inverse.known_below(places.numel());
        let above = places.cast(self.dtype());
        let low = above.argument(Scalar::from_bits(self.dtype(), low));
        let values = above.combine(BinaryOp::Add, &low).bitcast(dtype)?;
        Ok(Unique { values, inverse, counts: counts.gather_unchecked(0, &places) })
    }

    /// As [`Tensor::unique`], of neighbours only: the first of each run of equal elements.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let found = Tensor::new([3i32, 3, 1, 3], &device)?.unique_consecutive()?;
    /// assert_eq!(found.values.to_vec::<i32>()?, [3, 1, 3]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there are too many elements or the device fails.
    #[track_caller]
    pub fn unique_consecutive(&self) -> Result<Unique> {
        let _here = composed();
        let flat = self.flatten();
        if !flat.shape().is_possible() {
            let reason = "there are too many elements".to_owned();
            return Err(Tensor::shape_error("unique_consecutive", &[self], reason));
        }
        Ok(flat.runs().named("unique_consecutive")?.0)
    }

    /// The runs of equal elements of a vector, and where they start.
    #[track_caller]
    fn runs(&self) -> Result<(Unique, Tensor)> {
        let n = self.numel();
        let begins = self.begins_runs(0)?.contiguous();
        begins.realize()?;
        let numbers = begins.cast(DType::I64).scan(BinaryOp::Add, 0, false);
        let inverse = numbers.combine(BinaryOp::Sub, &numbers.like(1.0));
        let starts = begins.nonzero()?.flatten();
        let values = self.gather_unchecked(0, &starts);
        let m = starts.numel();
        let end = Tensor::full([m.min(1)], n as i64, self.device());
        let ends = Tensor::cat(&[&starts.slice(0, m.min(1)..)?, &end], 0)?;
        let counts = ends.combine(BinaryOp::Sub, &starts);
        Ok((Unique { values, inverse, counts }, starts))
    }

    /// How often each of `0 .. bins` occurs, as `i64`; other elements count nowhere, and are errors in
    /// [checked mode](crate::Device::set_checked).
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1i64, 0, 1, 5], &device)?;
    /// assert_eq!(x.bincount_to(3)?.to_vec::<i64>()?, [1, 2, 0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the elements are not integers or there are too many bins.
    #[track_caller]
    pub fn bincount_to(&self, bins: usize) -> Result<Tensor> {
        const OP: &str = "bincount_to";
        self.check_index(OP, self)?;
        let is_checked = self.device().is_checked();
        let x = if is_checked { self.within(OP, 0, bins, None)? } else { self.clone() };
        x.counted(bins).named(OP)
    }

    /// [`Tensor::bincount_to`] of integers that may be anything.
    #[track_caller]
    fn counted(&self, bins: usize) -> Result<Tensor> {
        const OP: &str = "bincount_to";
        let n = self.numel();
        let blocks = n.div_ceil(COUNTED.max(bins)).max(1);
        let length = n.div_ceil(blocks);
        let counts = Shape::from([blocks, bins]);
        if !counts.is_possible() || !self.shape().is_possible() {
            let reason = format!("{bins} bins are too many");
            return Err(Tensor::shape_error(OP, &[self], reason));
        }
        let at = self.flatten().cast(DType::I64);
        let at = at.pad_with([(0, blocks * length - n)], -1.0)?;
        let at = at.reshape_unchecked(Shape::from([blocks, length]));
        // A block counts at most its length, for which every device has atomics.
        let narrow = if length < 1 << 31 { DType::I32 } else { DType::I64 };
        let none = Tensor::zeros(counts, narrow, self.device());
        let ones = at.constant(Scalar::from_i64(narrow, 1));
        let counts = none.scatter_unchecked(1, Some(BinaryOp::Add), &at, &ones);
        Ok(counts.cast(DType::I64).reduce(BinaryOp::Add, 1).without(1))
    }

    /// How often each of `0, 1, …` up to the largest element occurs, as `i64`, at least
    /// `minlength` numbers. Reads the largest element from the device.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1i64, 0, 1, 4], &device)?;
    /// assert_eq!(x.bincount(0)?.to_vec::<i64>()?, [1, 2, 0, 0, 1]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the elements are not integers, one is negative, or one is too large.
    #[track_caller]
    pub fn bincount(&self, minlength: usize) -> Result<Tensor> {
        const OP: &str = "bincount";
        self.check_index(OP, self)?;
        let mut bins = minlength;
        if self.numel() > 0 {
            let x = self.cast(DType::I64);
            let (low, high) = (x.min(..)?, x.max(..)?);
            let ends = Tensor::stack(&[&low, &high], 0)?.to_vec::<i64>().named(OP)?;
            if ends[0] < 0 || ends[1] > 1 << 40 {
                let reason = format!("elements from {} to {} are no bins", ends[0], ends[1]);
                return Err(Tensor::argument_error(OP, reason));
            }
            bins = bins.max(ends[1] as usize + 1);
        }
        self.bincount_to(bins).named(OP)
    }

    /// Counts of elements in `bins` bins of equal width from `min` to `max`, the last including
    /// its upper end, in the tensor's float dtype; elements outside count nowhere.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([0f32, 0.2, 1.0, 5.0], &device)?;
    /// assert_eq!(x.histc(2, 0.0, 1.0)?.to_vec::<f32>()?, [2.0, 1.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is no bin or too many, or `min` is not below `max`.
    #[track_caller]
    pub fn histc(&self, bins: usize, min: f64, max: f64) -> Result<Tensor> {
        const OP: &str = "histc";
        let width = max - min;
        if bins == 0 || !(width > 0.0 && width.is_finite()) || bins > 1 << 24 {
            let reason = format!("{bins} bins from {min} to {max}");
            return Err(Tensor::argument_error(OP, reason));
        }
        let x = self.floating();
        let wide = x.cast(x.dtype().accumulator());
        let number = |v: f64| wide.argument(Scalar::from_f64(wide.dtype(), v));
        let place = wide.combine(BinaryOp::Sub, &number(min));
        let place = place.combine(BinaryOp::Mul, &number(bins as f64 / width)).floor();
        let last = number(bins as f64 - 1.0);
        let inside = number(min).combine(BinaryOp::Le, &wide);
        let inside = inside.combine(BinaryOp::And, &wide.combine(BinaryOp::Le, &number(max)));
        let place = place.combine(BinaryOp::Min, &last);
        let bin = inside.select(&place, &place.like(-1.0)).cast(DType::I64);
        Ok(bin.counted(bins).named(OP)?.cast(x.dtype()))
    }

    /// As [`Tensor::histc`], with the `bins + 1` edges of the bins.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([0f32, 0.2, 1.0, 5.0], &device)?;
    /// let (counts, edges) = x.histogram(2, 0.0, 1.0)?;
    /// assert_eq!(counts.to_vec::<f32>()?, [2.0, 1.0]);
    /// assert_eq!(edges.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::histc`].
    #[track_caller]
    pub fn histogram(&self, bins: usize, min: f64, max: f64) -> Result<(Tensor, Tensor)> {
        let counts = self.histc(bins, min, max).named("histogram")?;
        let edges = Tensor::linspace(min, max, bins + 1, self.device()).cast(counts.dtype());
        Ok((counts, edges))
    }

    /// Covariance matrix of variables in rows and observations in columns, with `correction`
    /// subtracted from the count.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 3.0], [2.0, 6.0]], &device)?;
    /// assert_eq!(x.cov(1)?.to_vec::<f32>()?, [2.0, 4.0, 4.0, 8.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Unless it has one or two axes.
    #[track_caller]
    pub fn cov(&self, correction: usize) -> Result<Tensor> {
        if self.rank() == 0 || self.rank() > 2 {
            let reason = "needs one or two axes".to_owned();
            return Err(Tensor::shape_error("cov", &[self], reason));
        }
        let vector = self.rank() == 1;
        let x = self.floating().atleast_2d();
        let wide = x.cast(x.dtype().accumulator());
        let mean = wide.mean_of(0b10).broadcast_unchecked(x.shape());
        let centred = wide.combine(BinaryOp::Sub, &mean);
        let count = (x.shape()[1] as f64 - correction as f64).max(0.0);
        let products = centred.matmul(&centred.t()).named("cov")?;
        let cov = products.mul_literal(1.0 / count).cast(x.dtype());
        Ok(if vector { cov.reshape_unchecked(Shape::scalar()) } else { cov })
    }

    /// Correlation matrix of variables in rows and observations in columns.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 3.0], [6.0, 2.0]], &device)?;
    /// let r = x.corrcoef()?.to_vec::<f32>()?;
    /// assert!((r[1] + 1.0).abs() < 1e-6 && (r[0] - 1.0).abs() < 1e-6);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Unless it has one or two axes.
    #[track_caller]
    pub fn corrcoef(&self) -> Result<Tensor> {
        self.in_steps("corrcoef", [], |x, []| {
            let cov = x.cov(1)?;
            if cov.rank() == 0 {
                return Ok(cov.combine(BinaryOp::Div, &cov));
            }
            let scale = cov.diagonal(0, 0, 1)?.sqrt();
            cov.div(scale.unsqueeze(1)?)?.div(&scale)?.clamp(-1.0, 1.0)
        })
    }

    /// Variance along axes and the mean; see [`Tensor::var`].
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 3.0], &device)?;
    /// let (var, mean) = x.var_mean(0, 1)?;
    /// assert_eq!((var.item::<f32>()?, mean.item::<f32>()?), (2.0, 2.0));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range or repeated.
    #[track_caller]
    pub fn var_mean(&self, axes: impl Axes, correction: usize) -> Result<(Tensor, Tensor)> {
        let mask = self.axes("var_mean", axes)?;
        Ok((self.var_of(mask, correction).without(mask), self.mean_of(mask).without(mask)))
    }

    /// Standard deviation along axes and the mean; see [`Tensor::std`].
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 5.0], &device)?;
    /// let (std, mean) = x.std_mean(0, 0)?;
    /// assert_eq!((std.item::<f32>()?, mean.item::<f32>()?), (2.0, 3.0));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range or repeated.
    #[track_caller]
    pub fn std_mean(&self, axes: impl Axes, correction: usize) -> Result<(Tensor, Tensor)> {
        let mask = self.axes("std_mean", axes)?;
        self.in_steps("std_mean", [], |x, []| {
            let var = x.var_of(mask, correction).without(mask);
            Ok((var.root(), x.mean_of(mask).without(mask)))
        })
    }
}
