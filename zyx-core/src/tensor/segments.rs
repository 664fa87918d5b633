//! Scatters of many float updates on devices of many threads, where updates are made in one order.
//!
//! A scatter that combines makes the updates of an element one after the other. Where they are many and
//! independent columns few, that keeps few threads busy. Here updates are sorted by where they go
//! (a radix sort, which is stable), so those of an element stand next to one another, and the result
//! of each element is one of a range. Ranges are reduced by blocks: what is in the first and the last
//! block by the element itself, whole blocks between by a range of the blocks' results, and so on. The
//! work is linear in updates and elements however updates are spread, and results are the same from
//! run to run.

use super::Tensor;
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Op, UpdateOrder};
use crate::hal::Caps;
use crate::ops::BinaryOp;
use crate::schedule::strategies::shared_scatter;
use crate::shape::Shape;

/// Nanoseconds, measured on an H100: an update of a column that waits for the one before it, where each
/// has a place of its own and where a row of them has one (whose places threads share, see the pass
/// `claim`); the launches of a sort; an update that is sorted, a place that looks for its own, and an element that
/// is moved with its row.
const IN_ORDER: [f64; 2] = [800.0, 50.0];
/// The same where places lie in shared memory.
const IN_SHARED: f64 = 70.0;
const LAUNCHES: f64 = 60e3;
const SORTED: f64 = 0.1;
const PLACE: f64 = 0.25;
const MOVED: f64 = 0.005;
/// Elements of a block.
const BLOCK: usize = 32;

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
            Some(_) => IN_SHARED,
            None => IN_ORDER[0],
        };
        let y = match vector {
            Some(vector) if fits && n * IN_ORDER[1] > 2.0 * LAUNCHES + moving => {
                self.sorted_rows(axis, op, &vector.detach(), src)
            }
            None if fits && n * in_order > 2.0 * sorting => {
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
        let place = index.places_of(0, &Shape::from([places])).contiguous();
        let order = place.order_of_places(places).contiguous();
        let ends = place.ends_of_places(places)?.1;
        let updates = updates.gather_unchecked(axis, &updates.along(axis, &order));
        let ends = base.along(axis, &ends);
        let op = Op::Scatter { axis: axis as u8, op: Some(op), order: UpdateOrder::Sorted };
        Ok(Tensor::pending(op, [&base, &ends, &updates], base.shape().clone(), base.dtype()))
    }

    /// For each place below `places` how many of these are it (`u32`), and how many are it or one before
    /// (`i64`).
    #[track_caller]
    fn ends_of_places(&self, places: usize) -> Result<(Tensor, Tensor)> {
        let zero = Tensor::zeros([places], DType::U32, self.device());
        let one = Tensor::ones([self.numel()], DType::U32, self.device());
        // Integers are counted in any order. What lies outside goes nowhere.
        let counts = zero.scatter_unchecked(0, Some(BinaryOp::Add), self, &one).contiguous();
        let ends = counts.cumsum(0)?.cast(DType::I64);
        Ok((counts, ends))
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
        let (place, updates) = (flat(&place).contiguous(), flat(&updates));

        let order = place.order_of_places(places);
        let sorted = updates.gather_unchecked(0, &order).contiguous();
        let (counts, ends) = place.ends_of_places(places)?;
        let starts = ends.combine(BinaryOp::Sub, &counts.cast(DType::I64));
        let reduced = sorted.reduce_ranges(op, starts, ends)?;
        let shaped = |x: &Tensor| x.reshape_unchecked(base.shape().clone());
        let reduced = base.combine(op, &shaped(&reduced));
        // What nothing reaches stays as it is, its sign too.
        Ok(shaped(&counts).cast(DType::Bool).select(&reduced, &base))
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
            && caps.has_atomic(BinaryOp::Add, DType::U32)
            && !caps.emulated.contains(DType::U64)
            && others_fit
            && op.identity(self.dtype()).is_some()
            && n < most
            && (1..most).contains(&shape.numel())
    }

    /// Where elements of a tensor of this shape stand in memory that have these positions along an
    /// axis; the number of its elements for positions outside.
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
    fn reduce_ranges(&self, op: BinaryOp, mut starts: Tensor, mut ends: Tensor) -> Result<Tensor> {
        let block = starts.like(BLOCK as f64);
        let identity = op.identity(self.dtype()).expect("invariant: such ops alone are sorted");
        let mut values = self.clone();
        let mut whole: Option<Tensor> = None;
        let mut add = |part: Tensor| {
            whole = Some(match whole.take() {
                None => part,
                Some(whole) => whole.combine(op, &part),
            });
        };
        while values.numel() > BLOCK {
            let before = starts.combine(BinaryOp::Add, &starts.like((BLOCK - 1) as f64));
            let [first, last] = [&before, &ends].map(|x| x.combine(BinaryOp::Div, &block));
            let [inner, outer] = [&first, &last].map(|x| x.combine(BinaryOp::Mul, &block));
            add(values.reduce_short(op, &starts, &inner.combine(BinaryOp::Min, &ends)));
            add(values.reduce_short(op, &outer.combine(BinaryOp::Max, &inner), &ends));
            let blocks = values.numel().div_ceil(BLOCK);
            let missing = blocks * BLOCK - values.numel();
            let padded = values.pad_with([(0, missing)], identity.to_f64())?;
            let blocked = padded.reshape_unchecked(Shape::from([blocks, BLOCK]));
            values = blocked.reduce(op, 0b10).without(0b10).contiguous();
            (starts, ends) = (first, last);
        }
        add(values.reduce_short(op, &starts, &ends));
        Ok(whole.expect("invariant: the last part was added"))
    }

    /// Ranges of at most a block each, reduced; a range that ends before it starts is empty.
    fn reduce_short(&self, op: BinaryOp, starts: &Tensor, ends: &Tensor) -> Tensor {
        let n = starts.numel();
        let shape = Shape::from([n, BLOCK]);
        let column =
            |x: &Tensor| x.reshape_unchecked(Shape::from([n, 1])).broadcast_unchecked(&shape);
        let numbers = Tensor::iota(BLOCK, DType::I64, self.device());
        let numbers =
            numbers.reshape_unchecked(Shape::from([1, BLOCK])).broadcast_unchecked(&shape);
        let at = column(starts).combine(BinaryOp::Add, &numbers);
        let inside = at.combine(BinaryOp::Lt, &column(ends));
        // What is gathered from nowhere is not loaded, and 0.
        let at = inside.select(&at, &at.like(-1.0));
        let found = self.gather_unchecked(0, &at.reshape_unchecked(Shape::from([n * BLOCK])));
        let found = found.reshape_unchecked(shape.clone());
        let identity = op.identity(self.dtype()).expect("invariant: such ops alone are sorted");
        let found = match identity.to_f64() {
            0.0 => found,
            _ => inside.select(&found, &found.constant(identity)),
        };
        found.reduce(op, 0b10).without(0b10)
    }
}
