//! Sorting, on the device: stable, for every dtype, NaN last as the largest number.
//!
//! Elements become unsigned keys of their width whose order is theirs. Short rows are sorted by
//! counting, for each element, those before it. Those that a group of threads holds are sorted by it, in
//! one launch. Long ones go through a radix sort from the lowest
//! byte up: each pass counts bytes by block, turns counts into first positions by a running sum,
//! and distributes keys, paired with their positions, in order. The values are a gather by the
//! resulting order or, where a key and a position share a word, made of the keys; gradients go back
//! by that order either way. Nothing is read from the device.

use super::Tensor;
use crate::dtype::{Class, DType};
use crate::error::{Named, Result};
use crate::graph::Op;
use crate::ops::{BinaryOp, UnaryOp};
use crate::origin::composed;
use crate::scalar::Scalar;
use crate::schedule::strategies::block_radix_sort::Block;
use crate::shape::Shape;

/// Rows up to this length are sorted by counting: one comparison of each pair.
const SHORT: usize = 128;
/// Bins of one pass.
const BINS: usize = 256;
/// Elements a thread goes through in order: few on devices of many threads.
const BLOCK: [usize; 2] = [1 << 15, 1 << 10];
/// Rows up to this length are sorted whole for their smallest elements: on devices of many threads
/// one launch sorts them.
const WHOLE: [usize; 2] = [SHORT, 4096];

/// Whether single elements of rows of this length are found without sorting them, which takes a
/// step for each bit: not where one launch sorts whole rows.
pub(super) fn selects(n: usize, x: &Tensor) -> bool {
    let sorts = Block::holding(x.device().caps(), n).is_some();
    (SHORT + 1..1 << 31).contains(&n) && x.dtype().size() <= 4 && !sorts
}

impl Tensor {
    /// Elements in ascending (or descending) order along an axis, and where they came from as
    /// `i64`. Equal elements keep their order; NaN is the largest number.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([3f32, 1.0, 2.0], &device)?;
    /// let (values, order) = x.sort(0, false)?;
    /// assert_eq!(values.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    /// assert_eq!(order.to_vec::<i64>()?, [1, 2, 0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis is out of range or has `2^32` elements or more.
    #[track_caller]
    pub fn sort(&self, axis: isize, descending: bool) -> Result<(Tensor, Tensor)> {
        let _here = composed();
        let axis = self.sortable("sort", axis)?;
        let n = self.shape()[axis];
        if n <= SHORT || self.dtype().size() > 4 || self.numel() == 0 {
            let order = self.along_last(axis, n, |rows| rows.keys(descending).key_order());
            return Ok((self.gather_distinct(axis, &order), order.known_below(n)));
        }
        let pairs = self.along_last(axis, n, |rows| rows.keys(descending).pairs_by_radix());
        let order = pairs.lower_halves().cast(DType::I64);
        let sorted = self.of_sorted_keys((axis, descending), &pairs, &order)?;
        Ok((sorted, order.known_below(n)))
    }

    /// The elements whose keys are the upper halves of sorted pairs, made of the keys: a gather
    /// would read memory in no order. Only zeros and NaNs, of which several have one key, are read.
    #[track_caller]
    fn of_sorted_keys(
        &self,
        (axis, descending): (usize, bool),
        pairs: &Tensor,
        order: &Tensor,
    ) -> Result<Tensor> {
        let (unsigned, _) = self.key_dtypes();
        let keys = pairs.combine(BinaryOp::Shr, &pairs.constant(Scalar::from(32u64)));
        let keys = keys.cast(unsigned);
        let keys = if descending { keys.unary(UnaryOp::Not) } else { keys };
        let top = keys.constant(Scalar::from_bits(unsigned, 1 << (unsigned.bits() - 1)));
        let flipped = keys.combine(BinaryOp::Xor, &top);
        let plain = match self.dtype().class() {
            Class::Bool | Class::Unsigned => return Ok(keys.cast(self.dtype())),
            Class::Signed => return flipped.bitcast(self.dtype()),
            Class::Float => {
                let negative = keys.combine(BinaryOp::Lt, &top);
                negative.select(&keys.unary(UnaryOp::Not), &flipped).bitcast(self.dtype())?
            }
        };
        let largest = keys.constant(Scalar::from_bits(unsigned, u64::MAX));
        let zero = keys.combine(BinaryOp::Eq, &top);
        let shared = zero.combine(BinaryOp::Or, &keys.combine(BinaryOp::Eq, &largest));
        let nowhere = order.constant(Scalar::from(-1i64));
        let read = self.detach().gather_unchecked(axis, &shared.select(order, &nowhere));
        let sorted = shared.select(&read, &plain);
        let order = order.clone();
        sorted.with_gradient(&[self], move |_, _, dy| {
            let inverse = order.inverse_permutation(axis);
            Ok(vec![Some(dy.permuted(axis, inverse, order.clone())?)])
        })
    }

    /// Where each position stands among these, of which each occurs once along the axis.
    #[track_caller]
    fn inverse_permutation(&self, axis: usize) -> Tensor {
        let n = self.shape()[axis];
        let mut dims = vec![1; self.rank()];
        dims[axis] = n;
        let numbers = Tensor::iota(n, DType::U32, self.device());
        let numbers = numbers.reshape_unchecked(dims.into()).broadcast_unchecked(self.shape());
        let zero = numbers.like(0.0);
        // The order of integers' maxima makes no difference, so these are made in parallel.
        zero.scatter_unchecked(axis, Some(BinaryOp::Max), self, &numbers).cast(DType::I64)
    }

    /// The elements at positions along an axis, no two of which are the same, given the inverse, too, by
    /// which the gradient is gathered: where each position stands among them, and -1 for those that do not.
    #[track_caller]
    pub(super) fn permuted(&self, axis: usize, by: Tensor, inverse: Tensor) -> Result<Tensor> {
        let y = self.detach().gather_unchecked(axis, &by);
        y.with_gradient(&[self], move |_, _, dy| {
            Ok(vec![Some(dy.permuted(axis, inverse.clone(), by.clone())?)])
        })
    }

    /// The positions (`i64`) that sort along an axis; see [`Tensor::sort`].
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([3f32, 1.0, 2.0], &device)?;
    /// assert_eq!(x.argsort(0, true)?.to_vec::<i64>()?, [0, 2, 1]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::sort`].
    #[track_caller]
    pub fn argsort(&self, axis: isize, descending: bool) -> Result<Tensor> {
        let _here = composed();
        let (axis, order) = self.order_along("argsort", axis, descending)?;
        Ok(order.known_below(self.shape()[axis]))
    }

    /// The elements in ascending order along axis 0.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([3f32, 1.0, 2.0], &device)?;
    /// assert_eq!(x.msort()?.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Without axes.
    #[track_caller]
    pub fn msort(&self) -> Result<Tensor> {
        Ok(self.sort(0, false).named("msort")?.0)
    }

    /// The `k` largest (or smallest) elements along an axis in order, and their positions as
    /// `i64`. Of equal elements the first count as more extreme.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([3f32, 1.0, 2.0], &device)?;
    /// let (values, positions) = x.topk(2, 0, true)?;
    /// assert_eq!(values.to_vec::<f32>()?, [3.0, 2.0]);
    /// assert_eq!(positions.to_vec::<i64>()?, [0, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there are fewer than `k` elements or the axis is out of range.
    #[track_caller]
    pub fn topk(&self, k: usize, axis: isize, largest: bool) -> Result<(Tensor, Tensor)> {
        let _here = composed();
        let axis = self.sortable("topk", axis)?;
        let n = self.shape()[axis];
        if k > n {
            let reason = format!("there are {n} elements along axis {axis}, not {k}");
            return Err(Tensor::shape_error("topk", &[self], reason));
        }
        let order = self.along_last(axis, k, |rows| rows.keys(largest).smallest(k));
        Ok((self.gather_distinct(axis, &order), order.known_below(n)))
    }

    /// The `k`-th smallest element along an axis, counted from 1, and its position as `i64`; the
    /// axis goes away.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([3f32, 1.0, 2.0], &device)?;
    /// assert_eq!(x.kthvalue(2, 0)?.0.item::<f32>()?, 2.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such element or the axis is out of range.
    #[track_caller]
    pub fn kthvalue(&self, k: usize, axis: isize) -> Result<(Tensor, Tensor)> {
        let _here = composed();
        let axis = self.sortable("kthvalue", axis)?;
        let n = self.shape()[axis];
        if k == 0 || k > n {
            let reason = format!("axis {axis} has {n} elements and no number {k}");
            return Err(Tensor::shape_error("kthvalue", &[self], reason));
        }
        let at = self.along_last(axis, 1, |rows| {
            let keys = rows.keys(false);
            if !selects(n, self) || keys.candidates(k).is_some() {
                return keys.smallest(k).shrink_unchecked(&[(0, rows.shape()[0]), (k - 1, k)]);
            }
            keys.at_place(&rows.each_row(k - 1))
        });
        let values = self.gather_distinct(axis, &at).without(1 << axis);
        Ok((values, at.without(1 << axis).known_below(n)))
    }

    /// The axis, if rows along it can be sorted.
    #[track_caller]
    pub(crate) fn sortable(&self, op: &'static str, axis: isize) -> Result<usize> {
        let axis = self.axis(op, axis)?;
        if self.shape()[axis] as u64 >= 1 << 32 || !self.shape().is_possible() {
            let reason = format!("axis {axis} is too long to be sorted");
            return Err(Tensor::shape_error(op, &[self], reason));
        }
        Ok(axis)
    }

    #[track_caller]
    pub(crate) fn order_along(
        &self,
        op: &'static str,
        axis: isize,
        descending: bool,
    ) -> Result<(usize, Tensor)> {
        let axis = self.sortable(op, axis)?;
        let n = self.shape()[axis];
        Ok((axis, self.along_last(axis, n, |rows| rows.keys(descending).key_order())))
    }

    /// `f` of the tensor as rows of elements along an axis, whose result has `k` elements in each
    /// row, back in this tensor's order of axes.
    #[track_caller]
    pub(crate) fn along_last(
        &self,
        axis: usize,
        k: usize,
        f: impl FnOnce(&Tensor) -> Tensor,
    ) -> Tensor {
        let n = self.shape()[axis];
        let mut dims = self.shape().to_vec();
        dims[axis] = k;
        if dims.contains(&0) || n == 0 {
            return Tensor::zeros(dims, DType::I64, self.device());
        }
        let mut order: Vec<usize> = (0..self.rank()).filter(|&a| a != axis).collect();
        order.push(axis);
        let moved = self.permute_unchecked(&order);
        let rows = moved.reshape_unchecked(Shape::from([self.numel() / n, n]));
        let result = f(&rows);
        let outer: Shape = order.iter().map(|&a| dims[a]).collect();
        let mut back = vec![0; order.len()];
        order.iter().enumerate().for_each(|(i, &a)| back[a] = i);
        result.reshape_unchecked(outer).permute_unchecked(&back)
    }

    /// The bits as unsigned integers.
    #[track_caller]
    pub(super) fn unsigned_bits(&self) -> Tensor {
        self.bitcast(self.key_dtypes().0).expect("invariant: the widths are equal")
    }

    /// The integers of the dtype's width.
    fn key_dtypes(&self) -> (DType, DType) {
        match self.dtype().bits() {
            8 => (DType::U8, DType::I8),
            16 => (DType::U16, DType::I16),
            32 => (DType::U32, DType::I32),
            _ => (DType::U64, DType::I64),
        }
    }

    /// Unsigned integers of the dtype's width in the order of the elements: for floats the bits,
    /// complemented for negative numbers; one zero and one NaN. Complemented all for descending.
    #[track_caller]
    pub(crate) fn keys(&self, descending: bool) -> Tensor {
        let (unsigned, signed) = self.key_dtypes();
        let top = Scalar::from_bits(unsigned, 1 << (unsigned.bits() - 1));
        let keys = match self.dtype().class() {
            Class::Bool => self.cast(unsigned),
            Class::Unsigned => self.clone(),
            Class::Signed => {
                let bits = self.unsigned_bits();
                bits.combine(BinaryOp::Xor, &bits.constant(top))
            }
            Class::Float => {
                let x = self.detach();
                let zero = x.combine(BinaryOp::Eq, &x.like(0.0));
                let x = zero.select(&x.like(0.0), &x);
                let plain = x.unsigned_bits();
                let as_int = x.bitcast(signed).expect("invariant: the widths are equal");
                let negative = as_int.combine(BinaryOp::Lt, &as_int.like(0.0));
                let flipped = plain.combine(BinaryOp::Xor, &plain.constant(top));
                let ordered = negative.select(&plain.unary(UnaryOp::Not), &flipped);
                let largest = plain.constant(Scalar::from_bits(unsigned, u64::MAX));
                x.is_nan().select(&largest, &ordered)
            }
        };
        if descending { keys.unary(UnaryOp::Not) } else { keys }
    }

    /// A place (`i64`) of the order for each row of `[rows, n]`.
    #[track_caller]
    pub(super) fn each_row(&self, place: usize) -> Tensor {
        Tensor::full([self.shape()[0], 1], place as i64, self.device())
    }

    /// Positions (`i64`, `[rows, 1]`) of the elements at these places (`i64`, `[rows, 1]`) of the stable
    /// order of rows of keys `[rows, n]`.
    #[track_caller]
    pub(super) fn at_place(&self, place: &Tensor) -> Tensor {
        if selects(self.shape()[1], self) {
            return self.contiguous().at_places(&place.cast(DType::I32)).0;
        }
        self.key_order().gather_unchecked(1, place)
    }

    /// Positions (`i64`) that sort rows of keys `[rows, n]`.
    #[track_caller]
    pub(crate) fn key_order(&self) -> Tensor {
        if self.shape()[1] <= SHORT {
            return self.order_by_counting();
        }
        self.pairs_by_radix().lower_halves().cast(DType::I64)
    }

    #[track_caller]
    fn order_by_counting(&self) -> Tensor {
        let &[rows, n] = self.shape().dims() else { unreachable!("invariant: rows of keys") };
        let square = Shape::from([rows, n, n]);
        let raised = |x: &Tensor, dims: [usize; 3]| {
            x.reshape_unchecked(dims.into()).broadcast_unchecked(&square)
        };
        let (own, other) = (raised(self, [rows, n, 1]), raised(self, [rows, 1, n]));
        let numbers = Tensor::iota(n, DType::I32, self.device());
        let (i, j) = (raised(&numbers, [1, n, 1]), raised(&numbers, [1, 1, n]));
        let tie =
            other.combine(BinaryOp::Eq, &own).combine(BinaryOp::And, &j.combine(BinaryOp::Lt, &i));
        let before = other.combine(BinaryOp::Lt, &own).combine(BinaryOp::Or, &tie);
        let rank = before.cast(DType::I32).reduce(BinaryOp::Add, 0b100).without(0b100);
        let numbers = Tensor::iota(n, DType::I64, self.device());
        let numbers = numbers.broadcast_unchecked(self.shape());
        self.constant(Scalar::from(0i64)).scatter_unchecked(1, None, &rank, &numbers)
    }

    /// Pairs of keys (the upper ones of 64 bits) and positions in the order of the keys.
    #[track_caller]
    fn pairs_by_radix(&self) -> Tensor {
        let wide = self.cast(DType::U64);
        let number = |x: u64| wide.constant(Scalar::from(x));
        let numbers = Tensor::iota(self.shape()[1], DType::U64, self.device());
        let pair = |key: &Tensor, position: &Tensor| {
            key.combine(BinaryOp::Shl, &number(32)).combine(BinaryOp::Or, position)
        };
        let low = wide.combine(BinaryOp::And, &number(u32::MAX as u64));
        let mut pairs = pair(&low, &numbers.broadcast_unchecked(self.shape()));
        pairs = pairs.sorted_pairs(self.dtype().size().min(4));
        if self.dtype().size() == 8 {
            let positions = pairs.lower_halves();
            let high = wide.combine(BinaryOp::Shr, &number(32));
            let high = high.gather_unchecked(1, &positions.cast(DType::I64));
            pairs = pair(&high, &positions).sorted_pairs(4);
        }
        pairs
    }

    /// The order (`i64`) of a vector of numbers up to `most`; equal ones keep theirs.
    #[track_caller]
    pub(super) fn order_of_places(&self, most: usize) -> Tensor {
        let numbers = Tensor::iota(self.numel(), DType::U32, self.device());
        self.pairs_of_places(most, &numbers).lower_halves().cast(DType::I64)
    }

    /// A vector of numbers up to `most`, below `2^32`, in order, each the upper half of 64 bits with what stands
    /// beside it (`u32`) in the lower one; equal numbers keep their order.
    #[track_caller]
    pub(super) fn pairs_of_places(&self, most: usize, beside: &Tensor) -> Tensor {
        let n = self.numel();
        let [wide, numbers] =
            [self, beside].map(|x| x.cast(DType::U64).reshape_unchecked(Shape::from([1, n])));
        let upper = wide.combine(BinaryOp::Shl, &wide.constant(Scalar::from(32u64)));
        let bytes = (usize::BITS - most.leading_zeros()).div_ceil(8).max(1);
        let pairs = upper.combine(BinaryOp::Or, &numbers).sorted_pairs(bytes as usize);
        pairs.reshape_unchecked(Shape::from([n]))
    }

    /// The lower halves of pairs.
    #[track_caller]
    pub(super) fn lower_halves(&self) -> Tensor {
        self.combine(BinaryOp::And, &self.constant(Scalar::from(u32::MAX as u64)))
    }

    /// Rows of pairs sorted by the lowest `bytes` bytes of their upper halves.
    #[track_caller]
    fn sorted_pairs(&self, bytes: usize) -> Tensor {
        let &[rows, n] = self.shape().dims() else { unreachable!("invariant: rows of pairs") };
        let caps = self.device().caps();
        if Block::holding(caps, n).is_some() {
            let op = Op::SortRows { first: 32, bits: 8 * bytes as u8 };
            return Tensor::pending(op, [self], self.shape().clone(), DType::U64);
        }
        let most = match Block::of(caps) {
            Some(block) => block.keys() as usize,
            None => BLOCK[caps.simt as usize],
        };
        let blocks = n.div_ceil(most);
        let length = n.div_ceil(blocks);
        // What fills the last block is larger than everything before it, so it stays at the end.
        let missing = blocks * length - n;
        let mut pairs = if missing > 0 {
            let padded = self.pad([(0, 0), (0, missing)]).expect("invariant: the padding fits");
            let inside = self.constant(Scalar::from(true)).pad([(0, 0), (0, missing)]);
            let inside = inside.expect("invariant: as above");
            inside.select(&padded, &padded.constant(Scalar::from(u64::MAX)))
        } else {
            self.clone()
        };
        pairs = pairs.reshape_unchecked(Shape::from([rows * blocks, length]));
        for byte in 0..bytes {
            pairs = pairs.distributed(rows, 32 + 8 * byte as u64);
        }
        let pairs = pairs.reshape_unchecked(Shape::from([rows, blocks * length]));
        pairs.shrink_unchecked(&[(0, rows), (0, n)])
    }

    /// Blocks of pairs, as many for each of `rows`, in the stable order of one byte.
    #[track_caller]
    fn distributed(&self, rows: usize, shift: u64) -> Tensor {
        let &[all, length] = self.shape().dims() else { unreachable!("invariant: blocks") };
        let blocks = all / rows;
        // An argument, so that all passes share their kernels.
        let shift = self.argument(Scalar::from(shift));
        let shifted = self.combine(BinaryOp::Shr, &shift);
        let bin = shifted.cast(DType::U8);
        let counts = Tensor::zeros([all, BINS], DType::I32, self.device());
        let ones = bin.constant(Scalar::from(1i32));
        let counts = counts.scatter_unchecked(1, Some(BinaryOp::Add), &bin.cast(DType::I64), &ones);
        // Positions by bin first, then by block.
        let counts = counts.cast(DType::I64).reshape_unchecked(Shape::from([rows, blocks, BINS]));
        let counts = counts.permute_unchecked(&[0, 2, 1]);
        let flat = counts.reshape_unchecked(Shape::from([rows, BINS * blocks]));
        let ends = flat.scan(BinaryOp::Add, 1, false);
        let row = Tensor::iota(rows, DType::I64, self.device());
        let row = row.combine(BinaryOp::Mul, &row.constant(Scalar::from((blocks * length) as i64)));
        let row = row.reshape_unchecked(Shape::from([rows, 1])).broadcast_unchecked(flat.shape());
        let starts = ends.combine(BinaryOp::Sub, &flat).combine(BinaryOp::Add, &row);
        let starts = starts.reshape_unchecked(Shape::from([rows, BINS, blocks]));
        let starts = starts.permute_unchecked(&[0, 2, 1]);
        let starts = starts.reshape_unchecked(Shape::from([all, BINS]));
        let shape = self.shape().clone();
        Tensor::pending(Op::RadixScatter, [self, &shift, &starts], shape, DType::U64)
    }

    /// The size of groups of keys whose minima leave few candidates for the `k` smallest ones, where
    /// that is worth it.
    fn candidates(&self, k: usize) -> Option<usize> {
        let (n, simt) = (self.shape()[1], self.device().caps().simt);
        let root = ((n / k.max(1)) as f64).sqrt() as usize;
        // Few launches, or little work.
        let size = if simt { root.next_power_of_two() } else { 1 << root.max(1).ilog2() };
        (n > WHOLE[simt as usize] && size >= 4 && k * size * 2 <= n).then_some(size)
    }

    /// Positions (`i64`, `[rows, k]`) of the `k` smallest keys of each row, in order.
    ///
    /// The `k` smallest lie in the `k` groups with the smallest minima: of any other group, `k`
    /// others have an element at most as large (and before it if equal). So one reduction leaves
    /// few candidates.
    #[track_caller]
    pub(crate) fn smallest(&self, k: usize) -> Tensor {
        let &[rows, n] = self.shape().dims() else { unreachable!("invariant: rows of keys") };
        let Some(size) = self.candidates(k) else {
            if selects(n, self) && k * 4 <= n {
                return self.contiguous().first_of_order(k);
            }
            return self.key_order().shrink_unchecked(&[(0, rows), (0, k)]);
        };
        let groups = n.div_ceil(size);
        let missing = groups * size - n;
        let keys = if missing > 0 {
            let top = Scalar::from_bits(self.dtype(), u64::MAX);
            let padded = self.pad([(0, 0), (0, missing)]).expect("invariant: the padding fits");
            let inside = self.constant(Scalar::from(true)).pad([(0, 0), (0, missing)]);
            inside.expect("invariant: as above").select(&padded, &padded.constant(top))
        } else {
            self.clone()
        };
        let grouped = keys.reshape_unchecked(Shape::from([rows, groups, size]));
        let least = grouped.reduce(BinaryOp::Min, 0b100).without(0b100).contiguous();
        let chosen = least.smallest(k);
        // In the order of their elements again, so that equal ones keep theirs.
        let chosen = chosen.gather_unchecked(1, &chosen.cast(DType::U64).key_order());
        let wide = Shape::from([rows, k, size]);
        let first = chosen.combine(BinaryOp::Mul, &chosen.constant(Scalar::from(size as i64)));
        let first = first.reshape_unchecked(Shape::from([rows, k, 1])).broadcast_unchecked(&wide);
        let offset = Tensor::iota(size, DType::I64, self.device()).broadcast_unchecked(&wide);
        let candidates = first.combine(BinaryOp::Add, &offset);
        let candidates = candidates.reshape_unchecked(Shape::from([rows, k * size]));
        let candidates = candidates.contiguous();
        let found = keys.gather_unchecked(1, &candidates).contiguous().smallest(k);
        candidates.gather_unchecked(1, &found)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Runtime, Tensor};

    /// Zeros of both signs and NaNs share keys, so they are those of the tensor, in its order.
    #[test]
    fn sorted_values_are_the_elements_bit_for_bit() {
        let device = Runtime::default().device("reference").unwrap();
        let special = [0.0, -0.0, f32::NAN, -1e-40, f32::INFINITY, -f32::NAN, f32::NEG_INFINITY];
        let values: Vec<f32> = (0..300usize)
            .map(|i| special.get(i * 7919 % 11).copied().unwrap_or((i * 31 % 57) as f32 - 28.0))
            .collect();
        let x = Tensor::from_slice(&values, [300], &device).unwrap();
        for descending in [false, true] {
            let (sorted, order) = x.sort(0, descending).unwrap();
            let (sorted, order) = (sorted.to_vec::<f32>().unwrap(), order.to_vec::<i64>().unwrap());
            for (got, &at) in sorted.iter().zip(&order) {
                assert_eq!(got.to_bits(), values[at as usize].to_bits(), "element {at}");
            }
            assert!(sorted[0].is_nan() == descending);
        }
    }

    #[test]
    fn gradients_of_long_rows_go_back_where_elements_came_from() {
        let device = Runtime::default().device("reference").unwrap();
        let n = 200usize;
        let values: Vec<f32> = (0..n).map(|i| (i * 83 % n) as f32).collect();
        let x = Tensor::from_slice(&values, [n], &device).unwrap();
        let weights: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let weights = Tensor::from_slice(&weights, [n], &device).unwrap();
        for x in [x.clone(), x.tracked()] {
            let loss = x.sort(0, false).unwrap().0.mul(&weights).unwrap().sum(..).unwrap();
            let gradient = loss.grad(&[&x]).unwrap().remove(0).unwrap();
            let gradient = gradient.to_vec::<f32>().unwrap();
            assert_eq!(gradient, values, "the weight of a place is its rank");
        }
        let sorted = |x: &[Tensor]| Ok(x[0].sort(0, true)?.0);
        let (_, tangent) = Tensor::jvp(sorted, &[&x], &[&x]).unwrap();
        let falling: Vec<f32> = weights.to_vec::<f32>().unwrap().into_iter().rev().collect();
        assert_eq!(tangent.to_vec::<f32>().unwrap(), falling);
    }
}
