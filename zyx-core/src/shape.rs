//! Shapes: extents of axes, broadcasting, axis arithmetic.
//!
//! A loop makes tensors of the same few shapes over and over. Each thread keeps the shapes it made of late and hands
//! them out again: that takes a third of the time of allocating one and freeing it, and shapes that are one allocation
//! are found to be equal without looking at extents.

use rustc_hash::FxHasher;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::fmt;
use std::hash::Hasher;
use std::ops::Deref;
use std::sync::Arc;

/// Shapes that a thread keeps; a power of two.
const KEPT: usize = 256;

thread_local! {
    static RECENT: RefCell<[Option<Shape>; KEPT]> = const { RefCell::new([const { None }; KEPT]) };
}

/// The extents of a tensor's axes, outermost first. Cheap to clone; tensors share it.
///
/// ```
/// use zyx::Shape;
/// let shape = Shape::from([2, 3]);
/// assert_eq!(shape.numel(), 6);
/// assert_eq!(shape.broadcast(&Shape::from([4, 1, 3])), Some(Shape::from([4, 2, 3])));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape(Arc<[usize]>);

impl Shape {
    /// The shape with these extents: one made of late if this thread has it.
    fn of(dims: &[usize]) -> Shape {
        let mut hasher = FxHasher::default();
        dims.iter().for_each(|&extent| hasher.write_usize(extent));
        let slot = hasher.finish() as usize % KEPT;
        let found = RECENT.try_with(|recent| {
            let mut recent = recent.borrow_mut();
            match &recent[slot] {
                Some(shape) if shape.dims() == dims => shape.clone(),
                _ => recent[slot].insert(Shape(dims.into())).clone(),
            }
        });
        // A thread that ends has nothing any more.
        found.unwrap_or_else(|_| Shape(dims.into()))
    }

    /// Most axes a tensor can have.
    pub const MAX_RANK: usize = 16;

    /// The shape of a scalar.
    ///
    /// ```
    /// # use zyx::Shape;
    /// assert_eq!(Shape::scalar().numel(), 1);
    /// ```
    pub fn scalar() -> Shape {
        Shape::from([])
    }

    /// The extents.
    ///
    /// ```
    /// # use zyx::Shape;
    /// assert_eq!(Shape::from([2, 3]).dims(), [2, 3]);
    /// ```
    pub fn dims(&self) -> &[usize] {
        &self.0
    }

    /// Number of axes.
    ///
    /// ```
    /// # use zyx::Shape;
    /// assert_eq!(Shape::from([2, 3]).rank(), 2);
    /// ```
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// Number of elements: the product of the extents, 1 for a scalar. At most `usize::MAX`, which
    /// no real tensor has.
    ///
    /// ```
    /// # use zyx::Shape;
    /// assert_eq!(Shape::from([2, 3]).numel(), 6);
    /// ```
    pub fn numel(&self) -> usize {
        if self.0.contains(&0) { 0 } else { self.0.iter().fold(1, |n, &d| n.saturating_mul(d)) }
    }

    /// Number of elements, or `None` when the extents other than zero multiply to more than fits:
    /// a tensor without elements must not become too large by a reduction of its empty axis.
    ///
    /// ```
    /// # use zyx::Shape;
    /// assert_eq!(Shape::from([usize::MAX, 2]).checked_numel(), None);
    /// ```
    pub fn checked_numel(&self) -> Option<usize> {
        let nonzero = self.0.iter().filter(|&&d| d != 0);
        let n = nonzero.into_iter().try_fold(1usize, |n, &d| n.checked_mul(d))?;
        Some(if self.0.contains(&0) { 0 } else { n })
    }

    /// Whether a tensor of this shape can be computed: at most [`Shape::MAX_RANK`] axes, and
    /// extents other than zero whose product is at most `isize::MAX / 16`, so that positions can be
    /// counted in bytes, added and subtracted.
    ///
    /// ```
    /// # use zyx::Shape;
    /// assert!(Shape::from([1 << 20, 0]).is_possible());
    /// assert!(!Shape::from([1 << 40, 1 << 40]).is_possible());
    /// ```
    pub fn is_possible(&self) -> bool {
        let nonzero = self.0.iter().filter(|&&d| d != 0);
        let n = nonzero.into_iter().try_fold(1isize, |n, &d| n.checked_mul(d.try_into().ok()?));
        self.rank() <= Shape::MAX_RANK && n.is_some_and(|n| n <= isize::MAX / 16)
    }

    /// Whether the two handles are one, or the extents equal.
    ///
    /// ```
    /// # use zyx::Shape;
    /// assert!(Shape::from([2]).same(&Shape::from(2)));
    /// ```
    pub fn same(&self, other: &Shape) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }

    /// Row-major strides, in elements.
    ///
    /// ```
    /// # use zyx::Shape;
    /// assert_eq!(Shape::from([2, 3, 4]).strides(), [12, 4, 1]);
    /// ```
    pub fn strides(&self) -> Vec<usize> {
        let mut strides = vec![1usize; self.rank()];
        for axis in (1..self.rank()).rev() {
            strides[axis - 1] = strides[axis].saturating_mul(self.0[axis]);
        }
        strides
    }

    /// The common shape of two under NumPy's broadcasting: aligned at the last axis, an extent of
    /// 1 stretches. `None` when an extent fits neither way or the result has too many elements.
    ///
    /// ```
    /// # use zyx::Shape;
    /// let shape = Shape::from([3, 1]);
    /// assert_eq!(shape.broadcast(&Shape::from([4])), Some(Shape::from([3, 4])));
    /// assert_eq!(shape.broadcast(&Shape::from([2, 1])), None);
    /// ```
    pub fn broadcast(&self, other: &Shape) -> Option<Shape> {
        if self.same(other) {
            return Some(self.clone());
        }
        let rank = self.rank().max(other.rank());
        let extent = |shape: &Shape, axis: usize| {
            (axis + shape.rank()).checked_sub(rank).map_or(1, |a| shape.0[a])
        };
        (0..rank)
            .map(|axis| match (extent(self, axis), extent(other, axis)) {
                (a, b) if a == b || b == 1 => Some(a),
                (1, b) => Some(b),
                _ => None,
            })
            .collect::<Option<SmallVec<[usize; 8]>>>()
            .map(|dims| Shape::of(&dims))
            .filter(|shape| shape.checked_numel().is_some())
    }

    /// Whether broadcasting with `other` gives `other`.
    pub(crate) fn broadcasts_to(&self, other: &Shape) -> bool {
        let pairs = self.iter().rev().zip(other.iter().rev());
        self.rank() <= other.rank() && pairs.into_iter().all(|(&a, &b)| a == b || a == 1)
    }

    /// `axis` as a position from the front; negative counts from the end. `None` out of range.
    ///
    /// ```
    /// # use zyx::Shape;
    /// assert_eq!(Shape::from([2, 3]).axis(-1), Some(1));
    /// assert_eq!(Shape::from([2, 3]).axis(2), None);
    /// ```
    pub fn axis(&self, axis: isize) -> Option<usize> {
        let rank = self.rank() as isize;
        (-rank..rank).contains(&axis).then(|| axis.rem_euclid(rank) as usize)
    }
}

impl Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl From<Vec<usize>> for Shape {
    fn from(dims: Vec<usize>) -> Shape {
        Shape::of(&dims)
    }
}

impl From<&[usize]> for Shape {
    fn from(dims: &[usize]) -> Shape {
        Shape::of(dims)
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Shape {
        Shape::of(&dims)
    }
}

impl<const N: usize> From<&[usize; N]> for Shape {
    fn from(dims: &[usize; N]) -> Shape {
        Shape::from(dims.as_slice())
    }
}

impl From<&Shape> for Shape {
    fn from(shape: &Shape) -> Shape {
        shape.clone()
    }
}

impl From<usize> for Shape {
    fn from(dim: usize) -> Shape {
        Shape::from([dim])
    }
}

impl From<()> for Shape {
    fn from((): ()) -> Shape {
        Shape::scalar()
    }
}

impl FromIterator<usize> for Shape {
    fn from_iter<I: IntoIterator<Item = usize>>(dims: I) -> Shape {
        Shape::of(&dims.into_iter().collect::<SmallVec<[usize; 8]>>())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasting_follows_numpy() {
        let s = |dims: &[usize]| Shape::from(dims);
        assert_eq!(s(&[3, 1]).broadcast(&s(&[1, 4])), Some(s(&[3, 4])));
        assert_eq!(s(&[]).broadcast(&s(&[0, 2])), Some(s(&[0, 2])));
        assert_eq!(s(&[1]).broadcast(&s(&[0])), Some(s(&[0])));
        assert_eq!(s(&[2]).broadcast(&s(&[3])), None);
    }

    #[test]
    fn what_broadcasts_to_a_shape_gives_it() {
        let shapes = [&[][..], &[0], &[1], &[3], &[1, 3], &[2, 3], &[2, 1], &[4, 2, 3]];
        let shapes = shapes.map(Shape::from);
        for (x, y) in shapes.iter().flat_map(|x| shapes.iter().map(move |y| (x, y))) {
            let gives = x.broadcast(y).is_some_and(|common| common == *y);
            assert_eq!(x.broadcasts_to(y), gives, "{x} {y}");
        }
    }

    #[test]
    fn a_shape_made_again_is_the_same_allocation() {
        let (x, y) = (Shape::from([5, 7]), Shape::from(vec![5, 7]));
        assert!(Arc::ptr_eq(&x.0, &y.0));
        // Shapes that take one another's places stay what they are.
        let many: Vec<Shape> = (0..4 * KEPT).map(|n| Shape::from([n, n + 1])).collect();
        assert!(many.iter().enumerate().all(|(n, shape)| shape.dims() == [n, n + 1]));
        assert_eq!(std::thread::spawn(|| Shape::from([5, 7])).join().unwrap(), x);
    }

    #[test]
    fn axes_count_from_both_ends() {
        let s = Shape::from([2, 3]);
        assert_eq!(s.axis(-1), Some(1));
        assert_eq!(s.axis(1), Some(1));
        assert_eq!(s.axis(2), None);
        assert_eq!(Shape::scalar().axis(0), None);
    }
}
