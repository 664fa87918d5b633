//! Float sums of many updates on devices of many threads, where sums have to be made in one order.
//!
//! A scatter that adds makes the updates of an element one after the other. Where they are many and
//! independent columns few, that keeps few threads busy. Here updates are sorted by where they go
//! (a radix sort, which is stable), so those of an element stand next to one another, and the sum of
//! each element is one of a range. Ranges are summed by blocks: what is in the first and the last
//! block by the element itself, whole blocks between by a range of the blocks' sums, and so on. The
//! work is linear in updates and elements however updates are spread, and results are the same from
//! run to run.

use super::Tensor;
use crate::dtype::DType;
use crate::error::Result;
use crate::hal::Caps;
use crate::ops::BinaryOp;
use crate::shape::Shape;

/// Updates of a column from which on they are sorted.
const MANY: usize = 1 << 14;
/// A thread makes the updates of a column: columns below this part of a device's threads are few.
const FEW_COLUMNS: usize = 1 << 10;
/// Elements of a block.
const BLOCK: usize = 32;

impl Tensor {
    /// This tensor with `src` added at the places that `index` has along an axis, if the device does
    /// so fastest by sorting the updates.
    #[track_caller]
    pub(super) fn scatter_sorted(
        &self,
        axis: usize,
        index: &Tensor,
        src: &Tensor,
    ) -> Option<Tensor> {
        self.is_sorted_by_place(axis, src).then(|| self.sorted_sums(axis, index, src).ok())?
    }

    #[track_caller]
    fn sorted_sums(&self, axis: usize, index: &Tensor, src: &Tensor) -> Result<Tensor> {
        let (base, updates) = (self.detach(), src.detach());
        let places = base.numel();
        let place = index.detach().places_of(axis, base.shape());
        let n = place.numel();
        let flat = |x: &Tensor| x.reshape_unchecked(Shape::from([n]));
        let (place, updates) = (flat(&place).contiguous(), flat(&updates));

        let order = place.order_of_places(places);
        let sorted = updates.gather_unchecked(0, &order).contiguous();
        let zero = Tensor::zeros([places], DType::U32, base.device());
        let one = Tensor::ones([n], DType::U32, base.device());
        // Integers are counted in any order. What lies outside goes nowhere.
        let counts = zero.scatter_unchecked(0, Some(BinaryOp::Add), &place, &one).contiguous();
        let ends = counts.cumsum(0)?.cast(DType::I64);
        let starts = ends.combine(BinaryOp::Sub, &counts.cast(DType::I64));
        let sums = sorted.sums_of_ranges(starts, ends)?;
        let shaped = |x: &Tensor| x.reshape_unchecked(base.shape().clone());
        let sums = base.combine(BinaryOp::Add, &shaped(&sums));
        // What is added nowhere stays as it is, its sign too.
        let y = shaped(&counts).cast(DType::Bool).select(&sums, &base);
        let index = index.clone();
        y.with_gradient(&[self, src], move |_, _, dy| {
            Ok(vec![Some(dy.clone()), Some(dy.gather_unchecked(axis, &index))])
        })
    }

    fn is_sorted_by_place(&self, axis: usize, src: &Tensor) -> bool {
        let caps: &Caps = self.device().caps();
        let (shape, updates) = (self.shape(), src.shape());
        let n = updates.numel();
        let columns = n / updates[axis].max(1);
        let others_fit =
            (0..shape.rank()).all(|other| other == axis || shape[other] == updates[other]);
        let most = 1 << 31;
        !caps.has_few_threads()
            && self.dtype().is_float()
            && caps.has_atomic(BinaryOp::Add, DType::U32)
            && !caps.emulated.contains(DType::U64)
            && others_fit
            && columns < caps.threads / FEW_COLUMNS
            && updates[axis] >= MANY
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

    /// The sums of the ranges `starts .. ends` of a vector, each in one order.
    fn sums_of_ranges(&self, mut starts: Tensor, mut ends: Tensor) -> Result<Tensor> {
        let block = starts.like(BLOCK as f64);
        let mut values = self.clone();
        let mut sums: Option<Tensor> = None;
        let mut add = |part: Tensor| {
            sums = Some(match sums.take() {
                None => part,
                Some(sums) => sums.combine(BinaryOp::Add, &part),
            });
        };
        while values.numel() > BLOCK {
            let before = starts.combine(BinaryOp::Add, &starts.like((BLOCK - 1) as f64));
            let (first, last) = (before.floor_blocks(&block), ends.floor_blocks(&block));
            let [inner, outer] = [&first, &last].map(|x| x.combine(BinaryOp::Mul, &block));
            add(values.sums_of_short(&starts, &inner.combine(BinaryOp::Min, &ends))?);
            add(values.sums_of_short(&outer.combine(BinaryOp::Max, &inner), &ends)?);
            let blocks = values.numel().div_ceil(BLOCK);
            let padded = values.pad([(0, blocks * BLOCK - values.numel())])?;
            values = padded.reshape_unchecked(Shape::from([blocks, BLOCK])).sum(1)?.contiguous();
            (starts, ends) = (first, last);
        }
        add(values.sums_of_short(&starts, &ends)?);
        Ok(sums.expect("invariant: the last part was added"))
    }

    fn floor_blocks(&self, block: &Tensor) -> Tensor {
        self.combine(BinaryOp::Div, block)
    }

    /// The sums of ranges of at most a block each; a range that ends before it starts is empty.
    fn sums_of_short(&self, starts: &Tensor, ends: &Tensor) -> Result<Tensor> {
        let n = starts.numel();
        let shape = Shape::from([n, BLOCK]);
        let column =
            |x: &Tensor| x.reshape_unchecked(Shape::from([n, 1])).broadcast_unchecked(&shape);
        let numbers = Tensor::iota(BLOCK, DType::I64, self.device());
        let numbers =
            numbers.reshape_unchecked(Shape::from([1, BLOCK])).broadcast_unchecked(&shape);
        let at = column(starts).combine(BinaryOp::Add, &numbers);
        let inside = at.combine(BinaryOp::Lt, &column(ends));
        // A gather from nowhere gives 0.
        let at = inside.select(&at, &at.like(-1.0)).reshape_unchecked(Shape::from([n * BLOCK]));
        self.gather_unchecked(0, &at).reshape_unchecked(shape).sum(1)
    }
}
