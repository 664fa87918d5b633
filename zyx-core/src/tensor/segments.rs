//! Scatters of many float updates on devices of many threads, where updates are made in one order.
//!
//! A scatter that combines makes the updates of an element one after the other. Where they are many and
//! independent columns few, that keeps few threads busy. Here updates are sorted by where they go
//! (a radix sort, which is stable), so those of an element stand next to one another, and the result
//! of each element is one of a range. Ranges are reduced by blocks: what is in the first and the last
//! block by the element itself, whole blocks between by a range of the blocks' results, and so on, all
//! in one loop that is as long as there are parts. The work is linear in updates and elements however
//! updates are spread, and results are the same from run to run.

use super::Tensor;
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Op, UpdateOrder};
use crate::hal::Caps;
use crate::ops::BinaryOp;
use crate::scalar::Scalar;
use crate::schedule::strategies::shared_scatter;
use crate::shape::Shape;

/// Nanoseconds, measured on an H100: an update of a column that waits for the one before it, where each
/// has a place of its own and where a row of them has one (whose places threads share, see the pass
/// `owner_computes`); the launches of a sort; an update that is sorted, a place that looks for its own, and an element that
/// is moved with its row.
const IN_ORDER: [f64; 2] = [800.0, 50.0];
/// The same where places lie in shared memory.
const IN_SHARED: f64 = 80.0;
const LAUNCHES: f64 = 60e3;
const SORTED: f64 = 0.065;
const PLACE: f64 = 0.016;
/// How much slower updates in order have to be.
const WORTH: f64 = 1.2;
const MOVED: f64 = 0.005;
/// Elements of a block.
const BLOCK: usize = 64;

impl Tensor {
    /// This tensor with `src` combined into the places that `index` has along an axis, if the device
    /// does so fastest by sorting the updates. Only sums have a history for gradients.
    #[track_caller]
    pub(super) fn scatter_sorted(
        &self,
        axis: usize,
        op: BinaryOp,
        index: &Tensor,
        src: &Tensor,
    ) -> Option<Tensor> {
        let (n, updates) = (src.shape()[axis] as f64, src.numel() as f64);
        let vector = index.vector_along(axis).filter(|_| updates > n);
        let fits = self.is_sorted_by_place(axis, op, src);
        let sorting = LAUNCHES + updates * SORTED + self.numel() as f64 * PLACE;
        let moving = (updates + self.numel() as f64) * MOVED;
        let (places, rows) = (self.shape()[axis], src.numel() / src.shape()[axis].max(1));
        let caps = self.device().caps();
        let sizes = [rows, places, src.shape()[axis]];
        let in_order = match shared_scatter::share(caps, self.dtype(), sizes) {
            Some(share) => IN_SHARED * share.turns(caps, self.dtype(), rows),
            None => IN_ORDER[0],
        };
        let y = match vector {
            Some(vector) if fits && n * IN_ORDER[1] > 2.0 * LAUNCHES + moving => {
                self.sorted_rows(axis, op, &vector.detach(), src)
            }
            None if fits && n * in_order > WORTH * sorting => {
                self.sorted_by_place(axis, op, index, src)
            }
            _ => return None,
        };
        let y = y.ok()?;
        if op != BinaryOp::Add {
            return Some(y);
        }
        let index = index.clone();
        let rule = move |_: &[Tensor], _: &Tensor, dy: &Tensor| {
            Ok(vec![Some(dy.clone()), Some(dy.gather_unchecked(axis, &index))])
        };
        y.with_gradient(&[self, src], rule).ok()
    }

    /// The same where all columns go one way: rows are combined in the order of where they go.
    #[track_caller]
    fn sorted_rows(
        &self,
        axis: usize,
        op: BinaryOp,
        index: &Tensor,
        src: &Tensor,
    ) -> Result<Tensor> {
        let (base, updates) = (self.detach(), src.detach());
        let places = base.shape()[axis];
        let place = index.places_of(0, &Shape::from([places]));
        let numbers = Tensor::iota(place.numel(), DType::U32, place.device());
        let pairs = place.pairs_of_places(places, &numbers);
        let (order, ends) = (pairs.lower_halves().cast(DType::I64), pairs.ends_of_places(places));
        let updates = updates.gather_unchecked(axis, &updates.along(axis, &order));
        let ends = base.along(axis, &ends);
        let op = Op::Scatter { axis: axis as u8, op: Some(op), order: UpdateOrder::Sorted };
        Ok(Tensor::pending(op, [&base, &ends, &updates], base.shape().clone(), base.dtype()))
    }

    /// Where the places below `places` end (`i32`) among these sorted pairs, whose upper halves they are.
    #[track_caller]
    fn ends_of_places(&self, places: usize) -> Tensor {
        let place = self.combine(BinaryOp::Shr, &self.constant(Scalar::from(32u64)));
        let place = place.cast(DType::I64);
        // The last of each place tells that it ends behind it; a place without any ends where the one
        // before it does. No two tell the same place, so that no order matters.
        let above = place.combine(BinaryOp::Add, &place.like(1.0));
        let is_last = above.combine(BinaryOp::Ne, &above.beside(0, true));
        let at = is_last.select(&place, &place.like(-1.0));
        let numbers = Tensor::iota(self.numel(), DType::I32, self.device());
        let ends = numbers.combine(BinaryOp::Add, &numbers.like(1.0));
        let none = Tensor::zeros([places], DType::I32, self.device());
        let ends = none.scatter_unchecked(0, Some(BinaryOp::Max), &at, &ends);
        ends.scan(BinaryOp::Max, 0, false)
    }

    #[track_caller]
    fn sorted_by_place(
        &self,
        axis: usize,
        op: BinaryOp,
        index: &Tensor,
        src: &Tensor,
    ) -> Result<Tensor> {
        let (base, updates) = (self.detach(), src.detach());
        let places = base.numel();
        let place = index.detach().places_of(axis, base.shape());
        let n = place.numel();
        let flat = |x: &Tensor| x.reshape_unchecked(Shape::from([n]));
        let (place, updates) = (flat(&place), flat(&updates));
        // Updates that share a word with their place are sorted with it, others by their numbers.
        let (sorted, pairs) = if updates.dtype().size() <= 4 {
            let bits = updates.unsigned_bits();
            let pairs = place.pairs_of_places(places, &bits);
            let sorted = pairs.lower_halves().cast(bits.dtype()).bitcast(updates.dtype())?;
            (sorted, pairs)
        } else {
            let numbers = Tensor::iota(n, DType::U32, place.device());
            let pairs = place.pairs_of_places(places, &numbers);
            let order = pairs.lower_halves().cast(DType::I64);
            (updates.gather_unchecked(0, &order).contiguous(), pairs)
        };
        let ends = pairs.ends_of_places(places).cast(DType::I64);
        let starts = ends.beside(0, false);
        let reduced = sorted.reduce_ranges(op, starts.clone(), ends.clone())?;
        let shaped = |x: &Tensor| x.reshape_unchecked(base.shape().clone());
        let reduced = base.combine(op, &shaped(&reduced));
        // What nothing reaches stays as it is, its sign too.
        Ok(shaped(&starts.combine(BinaryOp::Lt, &ends)).select(&reduced, &base))
    }

    fn is_sorted_by_place(&self, axis: usize, op: BinaryOp, src: &Tensor) -> bool {
        let caps: &Caps = self.device().caps();
        let (shape, updates) = (self.shape(), src.shape());
        let n = updates.numel();
        let others_fit =
            (0..shape.rank()).all(|other| other == axis || shape[other] == updates[other]);
        let most = 1 << 31;
        !caps.has_few_threads()
            && self.dtype().is_float()
            && caps.has_atomic(BinaryOp::Max, DType::I32)
            && !caps.emulated.contains(DType::U64)
            && others_fit
            && op.identity(self.dtype()).is_some()
            && n < most
            && (1..most).contains(&shape.numel())
    }

    /// Where elements of a tensor of this shape stand in memory that have these positions along an
    /// axis; the number of its elements for positions outside.
    #[track_caller]
    fn places_of(&self, axis: usize, shape: &Shape) -> Tensor {
        let stride = |axis: usize| shape[axis + 1..].iter().product::<usize>() as f64;
        let outside = self.combine(BinaryOp::Lt, &self.like(0.0));
        let inside = self.combine(BinaryOp::Lt, &self.like(shape[axis] as f64));
        let mut place = self.combine(BinaryOp::Mul, &self.like(stride(axis)));
        for other in (0..shape.rank()).filter(|&other| other != axis) {
            let mut dims = vec![1; shape.rank()];
            dims[other] = shape[other];
            let numbers = Tensor::iota(shape[other], DType::I64, self.device());
            let numbers = numbers.combine(BinaryOp::Mul, &numbers.like(stride(other)));
            let numbers = numbers.reshape_unchecked(dims.into()).broadcast_unchecked(self.shape());
            place = place.combine(BinaryOp::Add, &numbers);
        }
        let nowhere = place.like(shape.numel() as f64);
        outside.combine(BinaryOp::Or, &inside.logical_not()).select(&nowhere, &place)
    }

    /// The ranges `starts .. ends` of a vector reduced, each in one order.
    #[track_caller]
    fn reduce_ranges(&self, op: BinaryOp, starts: Tensor, ends: Tensor) -> Result<Tensor> {
        let identity = op.identity(self.dtype()).expect("invariant: such ops alone are sorted");
        let number = |n: usize| starts.constant(Scalar::from(n as i64));
        let add = |x: &Tensor, y: &Tensor| x.combine(BinaryOp::Add, y);
        let sub = |x: &Tensor, y: &Tensor| x.combine(BinaryOp::Sub, y);
        let below = |x: &Tensor, y: &Tensor| x.combine(BinaryOp::Lt, y);
        // What each range consists of: where it begins, among elements or all results of blocks, and
        // its length.
        let (mut parts, mut most) = (Vec::new(), 0);
        let (mut start, mut end) = (starts.clone(), ends);
        let (mut values, mut blocks, mut at) = (self.clone(), Vec::new(), 0);
        while values.numel() > BLOCK {
            let block = number(BLOCK);
            let first = add(&start, &number(BLOCK - 1)).combine(BinaryOp::Div, &block);
            let last = end.combine(BinaryOp::Div, &block).combine(BinaryOp::Max, &first);
            let [inner, outer] = [&first, &last].map(|n| n.combine(BinaryOp::Mul, &block));
            let before = sub(&inner.combine(BinaryOp::Min, &end), &start);
            let behind = sub(&end, &outer).combine(BinaryOp::Max, &number(0));
            parts.push((add(&start, &number(at)), before));
            parts.push((add(&outer, &number(at)), behind));
            most += 2 * (BLOCK - 1);
            at = blocks.iter().map(Tensor::numel).sum();
            let n = values.numel().div_ceil(BLOCK);
            let missing = n * BLOCK - values.numel();
            let padded = values.pad_with([(0, missing)], identity.to_f64())?;
            let blocked = padded.reshape_unchecked(Shape::from([n, BLOCK]));
            values = blocked.reduce(op, 0b10).without(0b10).contiguous();
            blocks.push(values.clone());
            (start, end) = (first, last);
        }
        parts.push((add(&start, &number(at)), sub(&end, &start)));
        most += values.numel();

        // One loop over all parts of a range, as long as they are.
        let loops = Shape::from([starts.numel(), most]);
        let beside = |x: &Tensor| {
            x.reshape_unchecked(Shape::from([x.numel(), 1])).broadcast_unchecked(&loops)
        };
        let turn = Tensor::iota(most, DType::I64, self.device()).broadcast_unchecked(&loops);
        let found = |values: &Tensor, at: &Tensor| {
            let at = at.reshape_unchecked(Shape::from([at.numel()]));
            values.gather_unchecked(0, &at).reshape_unchecked(loops.clone())
        };
        let mut ends = vec![number(0)];
        let placed: Vec<Tensor> = parts
            .iter()
            .map(|(from, len)| {
                let done = ends[ends.len() - 1].clone();
                let place = add(&beside(&sub(from, &done)), &turn);
                ends.push(add(&done, len));
                place
            })
            .collect();
        let total = ends[parts.len()].clone();
        // Nothing is loaded from nowhere.
        let nowhere = turn.like(-1.0);
        let choose = |placed: &[Tensor], ends: &[Tensor], other: &Tensor| {
            let pairs = placed.iter().zip(ends).rev();
            pairs.fold(other.clone(), |at, (place, end)| {
                below(&turn, &beside(end)).select(place, &at)
            })
        };
        let values = if blocks.is_empty() {
            found(self, &placed[0])
        } else {
            let of_elements = choose(&placed[..2], &ends[1..3], &nowhere);
            let last = &placed[placed.len() - 1];
            let of_blocks = choose(&placed[2..placed.len() - 1], &ends[3..parts.len()], last);
            let is_element = below(&turn, &beside(&ends[2]));
            let of_blocks = is_element.select(&nowhere, &of_blocks);
            let blocks = Tensor::cat(&blocks.iter().collect::<Vec<_>>(), 0)?.contiguous();
            is_element.select(&found(self, &of_elements), &found(&blocks, &of_blocks))
        };
        Ok(values.reduce_first(op, &total))
    }

    /// Of rows along the last axis the first elements combined, as many as `counts` (`i64`, the other
    /// axes) says for each: in order, in a loop as long as that. Without a history for gradients.
    #[track_caller]
    pub(super) fn reduce_first(&self, op: BinaryOp, counts: &Tensor) -> Tensor {
        let identity = op.identity(self.dtype()).expect("invariant: the op is associative");
        let mut dims = self.shape().to_vec();
        let axis = dims.len() - 1;
        dims[axis] = 1;
        let ends = counts.reshape_unchecked(Shape::from(dims));
        let base = ends.constant(identity);
        let op = Op::Scatter { axis: axis as u8, op: Some(op), order: UpdateOrder::Sorted };
        let y = Tensor::pending(op, [&base, &ends, self], ends.shape().clone(), self.dtype());
        y.reshape_unchecked(counts.shape().clone())
    }
}
