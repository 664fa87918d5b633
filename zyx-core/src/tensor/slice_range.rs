//! Ranges of positions along one axis, of any usual type of integers; negative positions count from the end.

use std::ops::{
    Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive,
};

/// A range of positions along an axis, as [`Tensor::slice`](crate::Tensor::slice) takes it: any of Rust's ranges of
/// `usize`, `isize`, `i32` or `i64`. Negative positions count from the end of the axis.
///
/// ```
/// # use zyx::SliceRange;
/// assert_eq!((2..5).within(9), Ok((2, 5)));
/// assert_eq!((-3..=-2).within(9), Ok((6, 8)));
/// assert!((-10..).within(9).is_err());
/// ```
pub trait SliceRange {
    /// The first position and the one after the last, on an axis of so many elements.
    ///
    /// # Errors
    /// A sentence naming the range if a position is not on the axis, or the end is before the start.
    fn within(&self, extent: usize) -> Result<(usize, usize), String>;
}

/// Adds 1 to a start that is excluded and to an end that is included.
fn resolve(
    (start, end): (Bound<i128>, Bound<i128>),
    extent: usize,
) -> Result<(usize, usize), String> {
    let n = extent as i128;
    let from_front = |at: i128| if at < 0 { at + n } else { at };
    let first = match start {
        Bound::Included(at) => from_front(at),
        Bound::Excluded(at) => from_front(at) + 1,
        Bound::Unbounded => 0,
    };
    let last = match end {
        Bound::Included(at) => from_front(at) + 1,
        Bound::Excluded(at) => from_front(at),
        Bound::Unbounded => n,
    };
    if 0 <= first && first <= last && last <= n {
        return Ok((first as usize, last as usize));
    }
    let start = match start {
        Bound::Included(at) => at.to_string(),
        Bound::Excluded(at) => (at + 1).to_string(),
        Bound::Unbounded => String::new(),
    };
    let end = match end {
        Bound::Included(at) => format!("={at}"),
        Bound::Excluded(at) => at.to_string(),
        Bound::Unbounded => String::new(),
    };
    Err(format!("{start}..{end} is out of range of extent {extent}"))
}

impl SliceRange for RangeFull {
    fn within(&self, extent: usize) -> Result<(usize, usize), String> {
        Ok((0, extent))
    }
}

macro_rules! ranges {
    ($($int:ty)*) => {$(
        ranges!(@ $int; Range<$int>, RangeFrom<$int>, RangeTo<$int>, RangeInclusive<$int>,
            RangeToInclusive<$int>, (Bound<$int>, Bound<$int>));
    )*};
    (@ $int:ty; $($range:ty),*) => {$(
        impl SliceRange for $range {
            fn within(&self, extent: usize) -> Result<(usize, usize), String> {
                let wide = |bound: Bound<&$int>| bound.map(|&at| at as i128);
                resolve((wide(self.start_bound()), wide(self.end_bound())), extent)
            }
        }
    )*};
}

ranges!(usize isize i32 i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_the_same_positions_counted_from_the_front() {
        let n = 5usize;
        let front = |at: isize| if at < 0 { at + n as isize } else { at };
        for start in -7..8isize {
            for end in -7..8isize {
                let (first, last) = (front(start), front(end));
                let is_valid = 0 <= first && first <= last && last <= n as isize;
                let expected = is_valid.then_some((first as usize, last as usize));
                assert_eq!((start..end).within(n).ok(), expected, "{start}..{end}");
                assert_eq!((start as i32..end as i32).within(n).ok(), expected);
                assert_eq!((start as i64..end as i64).within(n).ok(), expected);
                let is_valid = 0 <= first && first <= last + 1 && last < n as isize;
                let expected = is_valid.then_some((first as usize, (last + 1) as usize));
                assert_eq!((start..=end).within(n).ok(), expected, "{start}..={end}");
            }
            assert_eq!(
                (start..).within(n),
                (start..n as isize)
                    .within(n)
                    .map_err(|_| { format!("{start}.. is out of range of extent {n}") })
            );
            assert_eq!((..start).within(n).ok(), (0..start).within(n).ok());
        }
        assert_eq!((..).within(0), Ok((0, 0)));
        let far = (usize::MAX..=usize::MAX).within(n).unwrap_err();
        assert_eq!(far, format!("{}..={} is out of range of extent 5", usize::MAX, usize::MAX));
    }
}
