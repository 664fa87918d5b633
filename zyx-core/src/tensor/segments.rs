//! Scatters of many float updates on devices of many threads, where updates are made in one order.
//!
//! A scatter that combines makes the updates of an element one after the other. Where they are many and
//! independent columns few, that keeps few threads busy. Here updates are sorted by where they go
//! (a radix sort, which is stable), and the kernels of [`zyx_kernels::segments`] reduce the updates of each place. The work
//! is linear in updates and elements however updates are spread, and results are the same from run to run.

use super::{Kernel, Tensor};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Op, UpdateOrder};
use crate::hal::Caps;
use crate::ops::BinaryOp;
use crate::scalar::Scalar;
use crate::schedule::strategies::shared_scatter;
use crate::shape::Shape;
use std::sync::LazyLock;
use zyx_kernels::segments;

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
/// Fewest rows of a tile.
const MIN_TILE: usize = 32;

/// The kernels of an operation: of tiles whose rows are gathered, of tiles of sorted rows, and of places.
struct Kernels {
    op: BinaryOp,
    gathered: Kernel,
    sorted: Kernel,
    places: Kernel,
}

impl Kernels {
    fn of(op: BinaryOp) -> &'static Kernels {
        static ALL: LazyLock<[Kernels; 4]> = LazyLock::new(|| {
            [BinaryOp::Add, BinaryOp::Mul, BinaryOp::Max, BinaryOp::Min].map(|op| Kernels {
                op,
                gathered: Kernel::new("segment_tiles", move |k| segments::tiles(k, op, false)),
                sorted: Kernel::new("segment_tiles", move |k| segments::tiles(k, op, true)),
                places: Kernel::new("segment_places", move |k| segments::places(k, op)),
            })
        });
        ALL.iter().find(|kernels| kernels.op == op).expect("invariant: such ops alone are sorted")
    }
}

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
        let y = y.inspect_err(|error| log::warn!("updates are not sorted: {error}")).ok()?;
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
        let rows = |x: &Tensor| -> Result<Tensor> {
            let first = x.detach().movedim([axis as isize], [0])?;
            first.reshape([x.shape()[axis], x.numel() / x.shape()[axis]])
        };
        let (base, updates) = (rows(self)?, rows(src)?);
        let places = self.shape()[axis];
        let place = index.places_of(0, &Shape::from([places]));
        let numbers = Tensor::iota(place.numel(), DType::U32, place.device());
        let pairs = place.pairs_of_places(places, &numbers);
        let order = pairs.lower_halves().cast(DType::I32);
        let y = base.with_segments(op, &pairs, Some(&order), &updates)?;
        let mut dims = self.shape().to_vec();
        dims.remove(axis);
        dims.insert(0, places);
        y.reshape(dims)?.movedim([0], [axis as isize])
    }

    /// Rows with those of `updates` combined into the places that the upper halves of sorted pairs say; in this order,
    /// if they are not sorted.
    #[track_caller]
    fn with_segments(
        &self,
        op: BinaryOp,
        pairs: &Tensor,
        order: Option<&Tensor>,
        updates: &Tensor,
    ) -> Result<Tensor> {
        let n = updates.shape()[0];
        // Rows of a tile and parts of a segment are combined one after the other, by a thread each. Most segments have few parts, so
        // the longest may have sixteen times as many as a tile has rows.
        let tile = (n.isqrt() / 4).next_power_of_two().max(MIN_TILE);
        let ends = pairs.ends_of_places(self.shape()[0]);
        let place = pairs.combine(BinaryOp::Shr, &pairs.constant(Scalar::from(32u64)));
        let place = place.cast(DType::I32);
        let kernels = Kernels::of(op);
        let parts = match order {
            Some(order) => {
                let kernel = kernels.gathered.with_size("tile", tile);
                kernel.call_all(&[&place, order, self, updates])?
            }
            None => kernels.sorted.with_size("tile", tile).call_all(&[&place, self, updates])?,
        };
        let places = kernels.places.with_size("tile", tile);
        places.call(&[&ends, self, &parts[0], &parts[1], &parts[2]])
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
        let column = |x: &Tensor| x.reshape_unchecked(Shape::from([x.numel(), 1]));
        let y = column(&base).with_segments(op, &pairs, None, &column(&sorted))?;
        Ok(y.reshape_unchecked(base.shape().clone()))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Runtime;

    /// Segments of every relation to tiles of 4 rows, empty ones too; the last rows have no place.
    #[test]
    fn segments_are_reduced_whatever_tiles_they_lie_in() {
        let device = Runtime::default().device("reference").unwrap();
        let lens = [0usize, 3, 1, 0, 4, 2, 17, 1, 8, 3, 0, 5, 4, 0];
        let rows_of = lens.iter().enumerate().flat_map(|(place, &len)| vec![place as i32; len]);
        let mut place: Vec<i32> = rows_of.collect();
        let ends: Vec<i32> = lens
            .iter()
            .scan(0, |end, &len| {
                *end += len as i32;
                Some(*end)
            })
            .collect();
        place.extend([lens.len() as i32; 3]);
        for (n, cols) in [(place.len(), 1), (place.len(), 3), (1, 2)] {
            let (place, ends) = (&place[..n], ends.iter().map(|&end| end.min(n as i32)));
            let ends: Vec<i32> = ends.collect();
            let order: Vec<i32> = (0..n).map(|i| ((i * 5 + 2) % n) as i32).collect();
            let x: Vec<f32> =
                (0..n * cols).map(|i| [1.0, -1.0, 2.0, 0.5][i * 7 % 13 % 4]).collect();
            let base: Vec<f32> = (0..lens.len() * cols).map(|i| (i % 3) as f32 - 1.0).collect();
            for (op, is_sorted) in [BinaryOp::Add, BinaryOp::Mul, BinaryOp::Max, BinaryOp::Min]
                .map(|op| [(op, false), (op, true)])
                .concat()
            {
                let vector = |x: &[i32]| Tensor::from_slice(x, [x.len()], &device).unwrap();
                let matrix =
                    |x: &[f32]| Tensor::from_slice(x, [x.len() / cols, cols], &device).unwrap();
                let kernels = Kernels::of(op);
                let kernel = if is_sorted { &kernels.sorted } else { &kernels.gathered };
                let kernel = kernel.with_size("tile", 4);
                let mut inputs = vec![vector(place)];
                inputs.extend((!is_sorted).then(|| vector(&order)));
                inputs.extend([matrix(&base), matrix(&x)]);
                let inputs: Vec<&Tensor> = inputs.iter().collect();
                kernel.check(&inputs).unwrap();
                let parts = kernel.call_all(&inputs).unwrap();
                let places = kernels.places.with_size("tile", 4);
                let (ends, base_of) = (vector(&ends), matrix(&base));
                let y = places.call(&[&ends, &base_of, &parts[0], &parts[1], &parts[2]]).unwrap();
                let mut expected = base.clone();
                for (row, &place) in place.iter().enumerate().filter(|x| *x.1 < lens.len() as i32) {
                    let from = if is_sorted { row } else { order[row] as usize };
                    for column in 0..cols {
                        let at = &mut expected[place as usize * cols + column];
                        let (had, x) = (Scalar::from(*at), Scalar::from(x[from * cols + column]));
                        *at = op.eval(had, x).to_f64() as f32;
                    }
                }
                assert_eq!(y.to_vec::<f32>().unwrap(), expected, "{op} {is_sorted} {n} {cols}");
            }
        }
    }

    /// A long sum of equal numbers, whose errors would add up.
    #[test]
    fn long_sums_have_the_error_of_one_addition() {
        let device = Runtime::default().device("reference").unwrap();
        let n = 5000;
        let zeros = vec![0i32; n];
        let of = |x: &[i32]| Tensor::from_slice(x, [x.len()], &device).unwrap();
        let matrix = |x: &[f32]| Tensor::from_slice(x, [x.len(), 1], &device).unwrap();
        for (x, expected) in [(0.1f32, 500.0), (f32::INFINITY, f32::INFINITY), (f32::NAN, f32::NAN)]
        {
            let kernels = Kernels::of(BinaryOp::Add);
            let (ends, base) = (of(&[n as i32]), matrix(&[0.0]));
            let tiles = kernels.sorted.with_size("tile", 128);
            let parts = tiles.call_all(&[&of(&zeros), &base, &matrix(&vec![x; n])]).unwrap();
            let places = kernels.places.with_size("tile", 128);
            let y = places.call(&[&ends, &base, &parts[0], &parts[1], &parts[2]]).unwrap();
            let y = y.to_vec::<f32>().unwrap()[0];
            let is_near = (y - expected).abs() <= expected * f32::EPSILON;
            assert!(is_near || y == expected || y.is_nan() && expected.is_nan(), "{y} {expected}");
        }
    }
}
