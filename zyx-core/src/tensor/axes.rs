//! Axis arguments: one axis, several, or all (`..`); negative ones count from the end.

use super::Tensor;
use crate::error::Result;
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
        Ok(((1u32 << rank) - 1) as u16)
    }
}

fn mask_of(axes: impl Iterator<Item = isize>, rank: usize) -> Result<u16, String> {
    let mut mask = 0;
    for axis in axes {
        let position = normalize(axis, rank)?;
        if mask >> position & 1 == 1 {
            return Err(format!("axis {axis} is given twice"));
        }
        mask |= 1 << position;
    }
    Ok(mask)
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
                mask_of(std::iter::once(*self as isize), rank)
            }
        }

        impl<const N: usize> Axes for [$int; N] {
            fn mask(&self, rank: usize) -> Result<u16, String> {
                mask_of(self.iter().map(|&axis| axis as isize), rank)
            }
        }

        impl Axes for &[$int] {
            fn mask(&self, rank: usize) -> Result<u16, String> {
                mask_of(self.iter().map(|&axis| axis as isize), rank)
            }
        }
    )*};
}

integer_axes!(i32 i64 isize usize);

impl Tensor {
    /// `axis` counted from the front, or the error of `op`.
    #[track_caller]
    pub(crate) fn axis(&self, op: &'static str, axis: isize) -> Result<usize> {
        normalize(axis, self.rank()).map_err(|reason| Tensor::shape_error(op, &[self], reason))
    }

    #[track_caller]
    pub(crate) fn axes(&self, op: &'static str, axes: impl Axes) -> Result<u16> {
        axes.mask(self.rank()).map_err(|reason| Tensor::shape_error(op, &[self], reason))
    }
}
