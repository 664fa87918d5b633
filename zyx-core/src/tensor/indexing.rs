//! Indexing as NumPy does it: positions, ranges with steps, new axes, an ellipsis, integer and
//! bool tensors, all at once.
//!
//! Positions and ranges are views. Index tensors are broadcast against each other and pick along
//! their axes together; the axes of what they pick take the place of the first if the index
//! tensors stand next to each other, and come first otherwise. Beside an index tensor, a position
//! counts as one. Negative positions count from the end; positions in index tensors that are out
//! of range give zero, as everywhere in this library.

use super::Tensor;
use super::axes::place;
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::graph::is_index;
use crate::ops::BinaryOp;
use crate::origin::composed;
use crate::scalar::Scalar;
use crate::shape::Shape;
use std::ops::{Range, RangeFrom, RangeFull, RangeTo};

/// One part of an index: what to do with the next axis.
///
/// ```
/// use zyx::Index;
/// let parts: [Index; 3] = [3.into(), (1..4).into(), (..).into()];
/// # assert!(matches!(parts[0], Index::At(3)));
/// ```
#[derive(Clone, Debug)]
pub enum Index {
    /// One position; the axis goes away.
    At(isize),
    /// Every `step`-th position from `start` up to but not including `end`, as Python's slices:
    /// ends out of range are cut, and a negative step goes backwards.
    Range {
        /// The first position; without one, the end the step leads away from.
        start: Option<isize>,
        /// The position to stop before; without one, the other end.
        end: Option<isize>,
        /// The distance of positions; not 0.
        step: isize,
    },
    /// A new axis of extent 1; takes no axis.
    NewAxis,
    /// As many whole axes as the other parts leave; at most once.
    Ellipsis,
    /// Positions of integers along one axis, negative ones from its end, or a mask of bools over as many axes as it has.
    /// A position out of range is an error, at the call or when the result is read.
    Tensor(Tensor),
}

impl Index {
    /// A range with a step.
    ///
    /// ```
    /// # use zyx::{Index, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1i32, 2, 3, 4], &device)?;
    /// assert_eq!(x.index(&[Index::step(None, None, -2)])?.to_vec::<i32>()?, [4, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn step(start: Option<isize>, end: Option<isize>, step: isize) -> Index {
        Index::Range { start, end, step }
    }
}

impl From<isize> for Index {
    fn from(at: isize) -> Index {
        Index::At(at)
    }
}

impl From<i32> for Index {
    fn from(at: i32) -> Index {
        Index::At(at as isize)
    }
}

impl From<Range<isize>> for Index {
    fn from(range: Range<isize>) -> Index {
        Index::step(Some(range.start), Some(range.end), 1)
    }
}

impl From<RangeFrom<isize>> for Index {
    fn from(range: RangeFrom<isize>) -> Index {
        Index::step(Some(range.start), None, 1)
    }
}

impl From<RangeTo<isize>> for Index {
    fn from(range: RangeTo<isize>) -> Index {
        Index::step(None, Some(range.end), 1)
    }
}

impl From<RangeFull> for Index {
    fn from(_: RangeFull) -> Index {
        Index::step(None, None, 1)
    }
}

impl From<Tensor> for Index {
    fn from(index: Tensor) -> Index {
        Index::Tensor(index)
    }
}

impl From<&Tensor> for Index {
    fn from(index: &Tensor) -> Index {
        Index::Tensor(index.clone())
    }
}

/// Index tensors that wait until all parts are seen: the axis of the tensor so far, and positions.
struct Pending {
    axis: usize,
    index: Tensor,
    /// The number of the part, for telling whether parts stand next to each other.
    part: usize,
}

impl Tensor {
    /// The elements an index picks; see [`Index`] for its parts. Axes without a part are whole.
    /// A mask reads from the device how many elements it picks.
    ///
    /// ```
    /// # use zyx::{Index, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1i32, 2, 3], [4, 5, 6]], &device)?;
    /// assert_eq!(x.index(&[1.into(), (1..).into()])?.to_vec::<i32>()?, [5, 6]);
    /// let columns = Tensor::new([2i64, 0], &device)?;
    /// assert_eq!(x.index(&[Index::Ellipsis, columns.into()])?.to_vec::<i32>()?, [3, 1, 6, 4]);
    /// assert_eq!(x.index(&[x.gt(4)?.into()])?.to_vec::<i32>()?, [5, 6]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there are more parts than axes, a position is out of range, a step is 0, index
    /// tensors do not broadcast or hold floats, or a mask has not the shape of its axes.
    #[track_caller]
    pub fn index(&self, parts: &[Index]) -> Result<Tensor> {
        const OP: &str = "index";
        let _here = composed();
        let parts = self.complete(OP, parts)?;
        let picks = parts.iter().any(|part| matches!(part, Index::Tensor(_)));
        let (mut x, mut axis) = (self.clone(), 0);
        let mut pending: Vec<Pending> = Vec::new();
        for (part, index) in parts.iter().enumerate() {
            match index {
                Index::At(at) => {
                    let at = match place(*at, x.shape()[axis]) {
                        Ok(at) => at,
                        Err(reason) => return Err(Tensor::shape_error(OP, &[self], reason)),
                    };
                    if picks {
                        let index = Tensor::scalar(at as i64, self.device());
                        pending.push(Pending { axis, index, part });
                        axis += 1;
                    } else {
                        x = x.select_index(axis as isize, at as isize).named(OP)?;
                    }
                }
                Index::Range { start, end, step } => {
                    x = x.range(OP, axis, *start, *end, *step)?;
                    axis += 1;
                }
                Index::NewAxis => {
                    x = x.unsqueeze(axis as isize).named(OP)?;
                    axis += 1;
                }
                Index::Ellipsis => unreachable!("invariant: was replaced by ranges"),
                Index::Tensor(index) if index.dtype() == DType::Bool && index.rank() == 0 => {
                    // One truth value stands for a new axis of one entry or none.
                    let holds = usize::from(index.item::<bool>().named(OP)?);
                    x = x.unsqueeze(axis as isize).named(OP)?;
                    let index = Tensor::zeros([holds], DType::I64, self.device());
                    pending.push(Pending { axis, index, part });
                    axis += 1;
                }
                Index::Tensor(index) if index.dtype() == DType::Bool => {
                    for (i, index) in x.positions_of(OP, axis, index)?.into_iter().enumerate() {
                        pending.push(Pending { axis: axis + i, index, part });
                    }
                    axis += index.rank();
                }
                Index::Tensor(index) => {
                    self.check_index(OP, index)?;
                    pending.push(Pending { axis, index: index.clone(), part });
                    axis += 1;
                }
            }
        }
        if pending.is_empty() { Ok(x) } else { x.pick_together(OP, &pending) }
    }

    /// This tensor with `values`, broadcast, at the places an index picks (see
    /// [`Tensor::index`]), or added there if `accumulate`. Of several values for one place the
    /// last in row-major order holds.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1i32, 2], [3, 4]], &device)?;
    /// let y = x.index_put(&[(..).into(), 1.into()], &Tensor::scalar(9i32, &device), false)?;
    /// assert_eq!(y.to_vec::<i32>()?, [1, 9, 3, 9]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::index`], and when `values` does not broadcast to what is picked or has
    /// another dtype.
    #[track_caller]
    pub fn index_put(&self, parts: &[Index], values: &Tensor, accumulate: bool) -> Result<Tensor> {
        const OP: &str = "index_put";
        if !self.shape().is_possible() {
            let reason = "it has too many elements".to_owned();
            return Err(Tensor::shape_error(OP, &[self], reason));
        }
        if let Some((axis, index)) = self.vector_part(OP, parts).filter(|_| !accumulate) {
            let index = self.along(axis, &index.wrapped(OP, self.shape()[axis])?);
            let values = values.expand(index.shape().clone()).named(OP)?;
            if values.dtype() == self.dtype() && values.device() == self.device() {
                return Ok(self.copied(axis, &index, &values));
            }
        }
        let n = self.numel();
        // Numbered from 1, so that what an index tensor picks out of range is not element 0.
        let numbers = Tensor::iota(n, DType::I64, self.device());
        let numbers = numbers.combine(BinaryOp::Add, &numbers.like(1.0));
        let numbers = numbers.reshape_unchecked(self.shape().clone());
        let places = numbers.index(parts).named(OP)?;
        let places = places.combine(BinaryOp::Sub, &places.like(1.0));
        let values = values.expand(places.shape().clone()).named(OP)?;
        let (places, values) = (places.flatten().unchecked_indices(), values.flatten());
        let flat = self.flatten();
        let (_, places, values) = flat.corner(OP, 0, &places, &values)?;
        let op = accumulate.then_some(BinaryOp::Add);
        let placed = flat.scatter_unchecked(0, op, &places, &values);
        Ok(placed.reshape_unchecked(self.shape().clone()))
    }

    /// The axis and the vector of positions along it, if that is all an index says.
    #[track_caller]
    fn vector_part(&self, op: &'static str, parts: &[Index]) -> Option<(usize, Tensor)> {
        let parts = self.complete(op, parts).ok()?;
        let is_whole =
            |part: &Index| matches!(part, Index::Range { start: None, end: None, step: 1 });
        let axis = parts.iter().position(|part| !is_whole(part))?;
        match &parts[axis] {
            Index::Tensor(index)
                if index.rank() == 1
                    && is_index(index.dtype())
                    && index.device() == self.device()
                    && parts[axis + 1..].iter().all(is_whole) =>
            {
                Some((axis, index.clone()))
            }
            _ => None,
        }
    }

    /// The parts with one for every axis, the ellipsis replaced by whole ranges.
    #[track_caller]
    fn complete(&self, op: &'static str, parts: &[Index]) -> Result<Vec<Index>> {
        let takes = |part: &Index| match part {
            Index::NewAxis | Index::Ellipsis => 0,
            Index::Tensor(mask) if mask.dtype() == DType::Bool => mask.rank(),
            Index::At(_) | Index::Range { .. } | Index::Tensor(_) => 1,
        };
        let taken: usize = parts.iter().map(takes).sum();
        let dots = parts.iter().filter(|part| matches!(part, Index::Ellipsis)).count();
        if taken > self.rank() || dots > 1 {
            let reason = format!("{taken} axes and {dots} ellipses are indexed");
            return Err(Tensor::shape_error(op, &[self], reason));
        }
        let whole = std::iter::repeat_n(Index::from(..), self.rank() - taken);
        let at = parts.iter().position(|part| matches!(part, Index::Ellipsis));
        let mut all = parts.to_vec();
        match at {
            Some(at) => drop(all.splice(at..=at, whole)),
            None => all.extend(whole),
        }
        let axes = all.iter().filter(|part| matches!(part, Index::NewAxis)).count() + self.rank();
        if axes > Shape::MAX_RANK {
            let reason = format!("{axes} axes are more than {}", Shape::MAX_RANK);
            return Err(Tensor::shape_error(op, &[self], reason));
        }
        Ok(all)
    }

    /// A range of an axis by Python's rules.
    #[track_caller]
    fn range(
        &self,
        op: &'static str,
        axis: usize,
        start: Option<isize>,
        end: Option<isize>,
        step: isize,
    ) -> Result<Tensor> {
        if step == 0 {
            return Err(Tensor::shape_error(op, &[self], "a range with step 0".to_owned()));
        }
        let extent = self.shape()[axis] as i128;
        let (low, high) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
        let place = |at: Option<isize>, default: i128| {
            at.map_or(default, |at| {
                let at = at as i128;
                (if at < 0 { at + extent } else { at }).clamp(low, high)
            })
        };
        let (first, last) = if step > 0 { (low, high) } else { (high, low) };
        let (start, end) = (place(start, first), place(end, last));
        let distance = (step as i128).abs();
        let span = if step > 0 { end - start } else { start - end };
        let n = (span.max(0) + distance - 1) / distance;
        if n == 0 {
            return self.slice(axis as isize, 0..0).named(op);
        }
        let lowest = if step > 0 { start } else { start - (n - 1) * distance };
        let upper = lowest + (n - 1) * distance + 1;
        let block = self.slice(axis as isize, lowest as usize..upper as usize).named(op)?;
        let distance = distance.min(extent.max(1)) as usize;
        let picked = block.stride(axis as isize, 0, distance).named(op)?;
        if step > 0 { Ok(picked) } else { picked.flip([axis]).named(op) }
    }

    /// The positions a mask picks along each of the axes it covers, the first of which is `axis`.
    #[track_caller]
    fn positions_of(&self, op: &'static str, axis: usize, mask: &Tensor) -> Result<Vec<Tensor>> {
        let covered = &self.shape()[axis..axis + mask.rank()];
        if mask.shape().dims() != covered || mask.device() != self.device() {
            let reason = format!("a mask of shape {} covers axes {covered:?}", mask.shape());
            return Err(Tensor::shape_error(op, &[self, mask], reason));
        }
        mask.nonzero_columns(op)
    }

    /// What index tensors pick along their axes together.
    #[track_caller]
    fn pick_together(&self, op: &'static str, pending: &[Pending]) -> Result<Tensor> {
        let all: Vec<&Tensor> = pending.iter().map(|p| &p.index).collect();
        let indices = Tensor::broadcast_tensors(&all).named(op)?;
        let common = indices[0].shape().clone();
        let axes: Vec<usize> = pending.iter().map(|p| p.axis).collect();
        let rest: Vec<usize> = (0..self.rank()).filter(|axis| !axes.contains(axis)).collect();
        let extent = |&axis: &usize| self.shape()[axis];
        let (picked, kept): (Vec<usize>, Vec<usize>) =
            (axes.iter().map(extent).collect(), rest.iter().map(extent).collect());
        // One place along the picked axes merged, or none if any position is out of range.
        let mut flat = indices[0].constant(Scalar::from(0i64));
        let mut inside = indices[0].constant(Scalar::from(true));
        for (index, &extent) in indices.iter().zip(&picked) {
            let at = index.wrapped(op, extent)?;
            let n = at.constant(Scalar::from(extent as i64));
            let fits = at.combine(BinaryOp::Lt, &n);
            let fits = fits.combine(BinaryOp::And, &at.like(0.0).combine(BinaryOp::Le, &at));
            inside = inside.combine(BinaryOp::And, &fits);
            flat = flat.combine(BinaryOp::Mul, &n).combine(BinaryOp::Add, &at);
        }
        let flat = inside.select(&flat, &flat.like(-1.0)).flatten();
        let merged = Shape::from([&[picked.iter().product()], &kept[..]].concat());
        let rows = self.permute_unchecked(&[&axes[..], &rest[..]].concat());
        let rows = rows.reshape_unchecked(merged).select_unchecked(0, &flat);
        let shape = Shape::from([common.dims(), &kept[..]].concat());
        if !shape.is_possible() {
            let reason = format!("the result would have the shape {shape}");
            return Err(Tensor::shape_error(op, &[self], reason));
        }
        let picked = rows.reshape_unchecked(shape);
        let together = pending.windows(2).all(|pair| pair[1].part - pair[0].part <= 1);
        let before = if together { axes[0] } else { 0 };
        let n = common.rank();
        let order: Vec<usize> =
            (n..n + before).chain(0..n).chain(n + before..n + kept.len()).collect();
        Ok(picked.permute_unchecked(&order))
    }
}
