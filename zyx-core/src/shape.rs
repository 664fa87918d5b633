//! Shapes: extents of axes, broadcasting, axis arithmetic.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The extents of a tensor's axes, outermost first. Cheap to clone; tensors share it.
///
/// ```
/// use zyx_core::Shape;
/// let shape = Shape::from([2, 3]);
/// assert_eq!(shape.numel(), 6);
/// assert_eq!(shape.broadcast(&Shape::from([4, 1, 3])), Some(Shape::from([4, 2, 3])));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape(Arc<[usize]>);

impl Shape {
    /// Most axes a tensor can have.
    pub const MAX_RANK: usize = 16;

    /// The shape of a scalar.
    pub fn scalar() -> Shape {
        Shape::from([])
    }

    /// The extents.
    pub fn dims(&self) -> &[usize] {
        &self.0
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// Number of elements: the product of the extents, 1 for a scalar.
    pub fn numel(&self) -> usize {
        // A zero anywhere makes the product zero, even if the rest of it overflows.
        if self.0.contains(&0) { 0 } else { self.0.iter().product() }
    }

    /// Number of elements, or `None` when it overflows.
    pub fn checked_numel(&self) -> Option<usize> {
        // A zero anywhere makes the product zero, whatever the others are.
        if self.0.contains(&0) {
            return Some(0);
        }
        self.0.iter().try_fold(1usize, |n, &d| n.checked_mul(d))
    }

    /// Whether the two handles are one, or the extents equal.
    pub fn same(&self, other: &Shape) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }

    /// Row-major strides, in elements.
    pub fn strides(&self) -> Vec<usize> {
        let mut strides = vec![1; self.rank()];
        for axis in (1..self.rank()).rev() {
            strides[axis - 1] = strides[axis] * self.0[axis];
        }
        strides
    }

    /// The common shape of two under NumPy's broadcasting: aligned at the last axis, an extent of
    /// 1 stretches.
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
            .collect::<Option<Vec<_>>>()
            .map(Shape::from)
    }

    /// `axis` as a position from the front; negative counts from the end. `None` out of range.
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
        Shape(dims.into())
    }
}

impl From<&[usize]> for Shape {
    fn from(dims: &[usize]) -> Shape {
        Shape(dims.into())
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Shape {
        Shape(Arc::from(dims.as_slice()))
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
        Shape(dims.into_iter().collect())
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
    fn axes_count_from_both_ends() {
        let s = Shape::from([2, 3]);
        assert_eq!(s.axis(-1), Some(1));
        assert_eq!(s.axis(1), Some(1));
        assert_eq!(s.axis(2), None);
        assert_eq!(Shape::scalar().axis(0), None);
    }
}
