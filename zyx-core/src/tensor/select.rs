//! Elements at a place of the order of rows, without sorting.
//!
//! The element is found by its key and, among equal keys, by its position, as a stable sort has it. Bits
//! of both are found from the highest on. Of short rows each bit is a count of the elements below a
//! bound, several in one kernel; of long ones a digit at a time is, by counts of the digits of those elements
//! that have the digits known before.

use super::Tensor;
use super::gather::binary_search;
use crate::dtype::DType;
use crate::ops::BinaryOp::{Add, And, Eq, Lt, Max, Or, Shl, Shr, Sub};
use crate::scalar::Scalar;
use crate::shape::Shape;

/// Rows up to this length are searched bit by bit.
const SHORT: usize = 1 << 14;
/// Bits that one kernel finds.
const STORED: u64 = 8;
/// Bits of a digit.
const DIGIT: u64 = 8;
/// Elements whose digits are counted by themselves.
const BLOCK: usize = 1 << 15;
/// Most elements of a row whose places are compared with each of its positions.
const COMPARED: usize = 16;

/// Numbers of rows, of which some count.
struct Rows<'a> {
    /// Unsigned integers `[rows, n]`.
    numbers: &'a Tensor,
    among: Option<&'a Tensor>,
    /// Bits that the numbers have at most.
    bits: u64,
}

impl Tensor {
    /// A column `[rows, 1]` beside each element of rows `[rows, n]`.
    #[track_caller]
    fn beside_rows(&self, rows: &Tensor) -> Tensor {
        self.broadcast_unchecked(rows.shape())
    }

    /// Positions (`i64`, `[rows, 1]`) of the elements at these places (`i32`, `[rows, 1]`) of the stable
    /// order of rows of keys `[rows, n]`, with their keys.
    #[track_caller]
    pub(super) fn at_places(&self, places: &Tensor) -> (Tensor, Tensor) {
        let n = self.shape()[1];
        let bits = self.dtype().bits() as u64;
        let (key, rest) = Rows { numbers: self, among: None, bits }.found(places);
        let (key, rest) = (key.contiguous(), rest.contiguous());
        let equal = self.combine(Eq, &key.beside_rows(self));
        let numbers = Tensor::iota(n, DType::U32, self.device()).broadcast_unchecked(self.shape());
        let bits = u64::from(usize::BITS - (n - 1).leading_zeros());
        let (position, _) = Rows { numbers: &numbers, among: Some(&equal), bits }.found(&rest);
        (position.cast(DType::I64), key)
    }

    /// Positions (`i64`, `[rows, k]`) of the `k` smallest keys of each row, in order.
    #[track_caller]
    pub(super) fn first_of_order(&self, k: usize) -> Tensor {
        let &[rows, n] = self.shape().dims() else { unreachable!("invariant: rows of keys") };
        let last = Tensor::full([rows, 1], k as i32 - 1, self.device());
        let (position, key) = self.at_places(&last);
        let (position, key) = (position.contiguous().beside_rows(self), key.beside_rows(self));
        let numbers = Tensor::iota(n, DType::I64, self.device()).broadcast_unchecked(self.shape());
        let tie =
            self.combine(Eq, &key).combine(And, &position.combine(Lt, &numbers).logical_not());
        let member = self.combine(Lt, &key).combine(Or, &tie);
        let found = member.true_positions(k).contiguous();
        let order = self.gather_unchecked(1, &found).contiguous().key_order();
        found.gather_unchecked(1, &order)
    }

    /// Positions (`i64`, `[rows, k]`) of the `k` elements of each row of a mask that hold.
    #[track_caller]
    fn true_positions(&self, k: usize) -> Tensor {
        let &[rows, n] = self.shape().dims() else { unreachable!("invariant: rows of a mask") };
        let (device, caps) = (self.device(), self.device().caps());
        let counts = self.cast(DType::I32).scan(Add, 1, false);
        if caps.simt && (caps.has_few_threads() || !caps.has_atomic(Max, DType::I32)) {
            let wanted = Tensor::iota(k, DType::I32, device);
            let wanted = wanted.combine(Add, &wanted.like(1.0));
            let wanted = wanted.broadcast_unchecked(&Shape::from([rows, k]));
            return binary_search(&counts.contiguous(), &wanted, 1, false);
        }
        let place = counts.combine(Sub, &counts.like(1.0));
        let place = self.select(&place, &place.like(-1.0));
        let numbers = Tensor::iota(n, DType::I32, device).broadcast_unchecked(self.shape());
        let none = Tensor::zeros([rows, k], DType::I32, device);
        // Each place gets one number, so that no order matters.
        let op = caps.simt.then_some(Max);
        none.scatter_unchecked(1, op, &place, &numbers).cast(DType::I64)
    }

    /// The elements at positions along an axis, no two of which are the same or out of range.
    #[track_caller]
    pub(super) fn gather_distinct(&self, axis: usize, index: &Tensor) -> Tensor {
        let (y, n, index) = (self.detach(), self.shape()[axis], index.clone());
        let y = y.gather_unchecked(axis, &index);
        let rule = move |_: &[Tensor], _: &Tensor, dy: &Tensor| {
            Ok(vec![Some(dy.put_back(axis, n, &index))])
        };
        y.with_gradient(&[self], rule).expect("invariant: a gather has one source")
    }

    /// Elements at such positions along an axis of `n`, and zeros elsewhere.
    #[track_caller]
    pub(super) fn put_back(&self, axis: usize, n: usize, index: &Tensor) -> Tensor {
        let m = self.shape()[axis];
        let (mut dims, mut along) = (self.shape().to_vec(), vec![1; self.rank()]);
        (dims[axis], along[axis]) = (n, n);
        let dims = Shape::from(dims);
        let this = self.detach();
        let x = if m <= COMPARED {
            let places = Tensor::iota(n, DType::I64, self.device()).reshape_unchecked(along.into());
            let places = places.broadcast_unchecked(&dims);
            let part = |x: &Tensor, i: usize| {
                let ranges = x.shape().iter().enumerate();
                let ranges = ranges.map(|(a, &d)| if a == axis { (i, i + 1) } else { (0, d) });
                x.shrink_unchecked(&ranges.collect::<Vec<_>>()).broadcast_unchecked(&dims)
            };
            let zero = Tensor::zeros(dims.clone(), self.dtype(), self.device());
            (0..m)
                .fold(zero, |x, i| places.combine(Eq, &part(index, i)).select(&part(&this, i), &x))
        } else {
            along[axis] = m;
            let numbers =
                Tensor::iota(m, DType::I32, self.device()).reshape_unchecked(along.into());
            let none = Tensor::full(dims, -1i32, self.device());
            // The order of integers' maxima makes no difference, so these are made in parallel.
            let numbers = numbers.broadcast_unchecked(index.shape());
            let from = none.scatter_unchecked(axis, Some(Max), index, &numbers);
            this.gather_unchecked(axis, &from.cast(DType::I64))
        };
        let index = index.clone();
        let rule = move |_: &[Tensor], _: &Tensor, dx: &Tensor| {
            Ok(vec![Some(dx.gather_distinct(axis, &index))])
        };
        x.with_gradient(&[self], rule).expect("invariant: there is one source")
    }
}

impl Rows<'_> {
    /// The numbers at these places (`i32`, `[rows, 1]`) of the order, and how many equal ones come
    /// before.
    #[track_caller]
    fn found(&self, places: &Tensor) -> (Tensor, Tensor) {
        if self.numbers.shape()[1] <= SHORT { self.by_bits(places) } else { self.by_digits(places) }
    }

    /// How many of those that count are below a bound.
    #[track_caller]
    fn below(&self, bound: &Tensor) -> Tensor {
        let below = self.numbers.combine(Lt, &bound.beside_rows(self.numbers));
        let below = self.among.map_or(below.clone(), |among| below.combine(And, among));
        below.cast(DType::I32).reduce(Add, 0b10)
    }

    #[track_caller]
    fn by_bits(&self, places: &Tensor) -> (Tensor, Tensor) {
        let dtype = self.numbers.dtype();
        let mut found = places.constant(Scalar::from_bits(dtype, 0));
        for bit in (0..self.bits).rev() {
            let next = found.combine(Or, &found.constant(Scalar::from_bits(dtype, 1 << bit)));
            let fewer = places.combine(Lt, &self.below(&next));
            found = fewer.select(&found, &next);
            // A kernel of all bits takes seconds to compile.
            if bit % STORED == 0 && bit > 0 {
                found = found.contiguous();
            }
        }
        let rest = places.combine(Sub, &self.below(&found));
        (found, rest)
    }

    #[track_caller]
    fn by_digits(&self, places: &Tensor) -> (Tensor, Tensor) {
        let &[rows, n] = self.numbers.shape().dims() else { unreachable!("invariant: rows") };
        let numbers = self.numbers.cast(DType::U64);
        let number = |x: u64| numbers.constant(Scalar::from(x));
        let (blocks, bins) = (n.div_ceil(BLOCK), 1usize << DIGIT);
        let length = n.div_ceil(blocks);
        let mut found = places.constant(Scalar::from(0u64));
        let mut rest = places.clone();
        for digit in (0..self.bits.div_ceil(DIGIT)).rev() {
            let shift = DIGIT * digit;
            let upper = numbers.combine(Shr, &number(shift));
            let bin = upper.combine(And, &number(bins as u64 - 1)).cast(DType::I32);
            let known = found.combine(Shr, &found.constant(Scalar::from(shift)));
            let known = known.combine(Shr, &known.constant(Scalar::from(DIGIT)));
            let alike =
                upper.combine(Shr, &number(DIGIT)).combine(Eq, &known.beside_rows(&numbers));
            let counts = self.among.map_or(alike.clone(), |among| alike.combine(And, among));
            let bin = counts.select(&bin, &bin.like(-1.0));
            let missing = (blocks * length - n) as f64;
            let padded = [(0, 0), (0, missing as usize)];
            let bin = bin.pad_with(padded, -1.0).expect("invariant: the padding fits");
            let bin = bin.reshape_unchecked(Shape::from([rows * blocks, length]));
            let none = Tensor::zeros([rows * blocks, bins], DType::I32, numbers.device());
            let counts = none.scatter_unchecked(1, Some(Add), &bin, &bin.like(1.0));
            let counts = counts.reshape_unchecked(Shape::from([rows, blocks, bins]));
            let counts = counts.reduce(Add, 0b10).without(0b10).contiguous();
            let before = counts.scan(Add, 1, false);
            let passed = before
                .combine(Lt, &rest.beside_rows(&counts))
                .combine(Or, &before.combine(Eq, &rest.beside_rows(&counts)));
            let skipped = passed.select(&counts, &counts.like(0.0)).reduce(Add, 0b10);
            let digit = passed.cast(DType::I32).reduce(Add, 0b10).cast(DType::U64);
            let digit = digit.combine(Shl, &digit.constant(Scalar::from(shift)));
            found = found.combine(Or, &digit).contiguous();
            rest = rest.combine(Sub, &skipped).contiguous();
        }
        (found.cast(self.numbers.dtype()), rest)
    }
}
