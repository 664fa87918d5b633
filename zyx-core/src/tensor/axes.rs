//! Axis arguments: one axis, several, or all (`..`); negative ones count from the end.

use super::Tensor;
use crate::error::Result;
use crate::shape::Shape;
use std::ops::RangeFull;

/// What a reduction takes as its axes: `0`, `-1`, `[0, 2]`, a slice, or `..` for all of them.
pub trait Axes {
    /// The axes of a tensor of rank `rank` as a bit mask, or what is wrong with them.
    ///
    /// # Errors
    /// A sentence naming the axis that is out of range or repeated.
    fn mask(&self, rank: usize) -> Result<u16, String>;
}

impl Axes for RangeFull {
    fn mask(&self, rank: usize) -> Result<u16, String> {
        check_rank(rank).map(|()| all(rank))
    }
}

/// The mask of all axes of a rank that is possible.
pub(crate) fn all(rank: usize) -> u16 {
    u16::MAX.checked_shr(16u32.saturating_sub(rank as u32)).unwrap_or(0)
}

/// Whether `axis` is in the mask; one that no mask has room for is not.
pub(crate) fn holds(mask: u16, axis: usize) -> bool {
    mask.checked_shr(axis as u32).unwrap_or(0) & 1 == 1
}

/// Tensors of more axes can be made (creation cannot fail) but not computed with.
fn check_rank(rank: usize) -> Result<(), String> {
    let most = Shape::MAX_RANK;
    if rank <= most { Ok(()) } else { Err(format!("{rank} axes are more than {most}")) }
}

fn mask_of(axes: impl Iterator<Item = i128>, rank: usize) -> Result<u16, String> {
    check_rank(rank)?;
    let mut mask = 0;
    for axis in axes {
        let position = isize::try_from(axis)
            .map_err(|_| format!("axis {axis} is out of range"))
            .and_then(|axis| normalize(axis, rank))?;
        if mask >> position & 1 == 1 {
            return Err(format!("axis {axis} is given twice"));
        }
        mask |= 1 << position;
    }
    Ok(mask)
}

/// An index along an axis of so many elements, counted from the front.
pub(crate) fn place(index: isize, extent: usize) -> Result<usize, String> {
    let n = extent as i128;
    match i128::from(index as i64) {
        at if (-n..n).contains(&at) => Ok(at.rem_euclid(n) as usize),
        at if n == 0 => Err(format!("index {at} of an axis without elements")),
        at => Err(format!("index {at} is out of range; allowed are {} to {}", -n, n - 1)),
    }
}

/// `axis` counted from the front.
pub(crate) fn normalize(axis: isize, rank: usize) -> Result<usize, String> {
    let n = rank as isize;
    if (-n..n).contains(&axis) {
        Ok(axis.rem_euclid(n) as usize)
    } else if rank == 0 {
        Err(format!("axis {axis} of a tensor without axes"))
    } else {
        Err(format!("axis {axis} is out of range; allowed are {} to {}", -n, n - 1))
    }
}

macro_rules! integer_axes {
    ($($int:ty)*) => {$(
        impl Axes for $int {
            fn mask(&self, rank: usize) -> Result<u16, String> {
                mask_of(std::iter::once(*self as i128), rank)
            }
        }

        impl<const N: usize> Axes for [$int; N] {
            fn mask(&self, rank: usize) -> Result<u16, String> {
                mask_of(self.iter().map(|&axis| axis as i128), rank)
            }
        }

        impl Axes for &[$int] {
            fn mask(&self, rank: usize) -> Result<u16, String> {
                mask_of(self.iter().map(|&axis| axis as i128), rank)
            }
        }
    )*};
}

integer_axes!(i32 i64 isize usize);

impl Tensor {
    /// `axis` counted from the front, or the error of `op`.
    #[track_caller]
    pub(crate) fn axis(&self, op: &'static str, axis: isize) -> Result<usize> {
        match check_rank(self.rank()).and_then(|()| normalize(axis, self.rank())) {
            Ok(axis) => Ok(axis),
            Err(reason) => Err(Tensor::shape_error(op, &[self], reason)),
        }
    }

    #[track_caller]
    pub(crate) fn axes(&self, op: &'static str, axes: impl Axes) -> Result<u16> {
        match axes.mask(self.rank()) {
            Ok(mask) => Ok(mask),
            Err(reason) => Err(Tensor::shape_error(op, &[self], reason)),
        }
    }
}
