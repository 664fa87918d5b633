//! Integers as indices: which values a buffer holds, and flags that plans raise about indices out of range.
//!
//! Most indices need no flag, since their [`Range`] is known when an operation gets them: from data that was
//! uploaded, from memory that the host reads, or from the operation that made them. A check of any others is a
//! result of their plan, one number, which is 0 if all are in range ([`Flag`]). Results of that plan, and of
//! plans that read these results, hold the flag ([`Buffer::set_flags`], [`Buffer::inherit`]). Each read on the
//! host looks at the flags of the buffer first ([`Buffer::refuse_bad_indices`]). So every read of a result of bad
//! indices fails, and reads of other values succeed.

use super::buffer::Buffer;
use super::checked::{Bound, Note};
use super::host::HostView;
use super::reads::Reading;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use num_traits::PrimInt;
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

/// Bounds of the integers in a tensor. Numbers of `u64` that are larger than `i64` holds count as its largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) min: i64,
    pub(crate) max: i64,
    /// No element but `min` is smaller: a class number to ignore is often the smallest element.
    pub(crate) rest: i64,
    /// Whether all three are elements.
    pub(crate) exact: bool,
}

/// How indices stand to a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    Fit,
    /// This one is out of range.
    Bad(i64),
    Unknown,
}

impl Range {
    /// All elements are equal to `x`.
    pub(crate) fn exactly(x: i64) -> Range {
        Range { min: x, max: x, rest: x, exact: true }
    }

    /// From `min` to `max`, both included.
    pub(crate) fn between(min: i64, max: i64) -> Range {
        Range { min, max, rest: min, exact: false }
    }

    /// Of indices that pass every check.
    pub(crate) const UNCHECKED: Range = Range { min: 0, max: -1, rest: 0, exact: false };

    pub(crate) fn is_unchecked(&self) -> bool {
        self.min > self.max
    }

    /// All integers of a dtype.
    pub(crate) fn of_dtype(dtype: DType) -> Range {
        let max = i64::try_from(Scalar::highest(dtype).to_i128()).unwrap_or(i64::MAX);
        Range::between(Scalar::lowest(dtype).to_i64(), max)
    }

    /// The range of little-endian integers; `None` of no elements and of other dtypes.
    pub(crate) fn of_bytes(dtype: DType, bytes: &[u8]) -> Option<Range> {
        match dtype {
            DType::U8 => Range::of::<u8>(bytes),
            DType::U16 => Range::of::<u16>(bytes),
            DType::U32 => Range::of::<u32>(bytes),
            DType::U64 => Range::of::<u64>(bytes),
            DType::I8 => Range::of::<i8>(bytes),
            DType::I16 => Range::of::<i16>(bytes),
            DType::I32 => Range::of::<i32>(bytes),
            DType::I64 => Range::of::<i64>(bytes),
            _ => None,
        }
    }

    fn of<T: Element + PrimInt>(bytes: &[u8]) -> Option<Range> {
        let all = || bytes.chunks_exact(size_of::<T>()).map(T::read_le);
        let (min, max) = all().fold((T::max_value(), T::min_value()), |(min, max), x| {
            (if x < min { x } else { min }, if x > max { x } else { max })
        });
        let rest = if min < T::zero() && max != min {
            all().fold(max, |rest, x| if x < rest && x != min { x } else { rest })
        } else {
            min
        };
        let wide = |x: T| x.to_i64().unwrap_or(i64::MAX);
        let (min, max, rest) = (wide(min), wide(max), wide(rest));
        (bytes.len() >= size_of::<T>()).then_some(Range { min, max, rest, exact: true })
    }

    /// Of a part of the elements.
    pub(crate) fn part(self) -> Range {
        Range { exact: false, ..self }
    }

    /// Of elements of both.
    pub(crate) fn hull(self, other: Range) -> Range {
        match self.is_unchecked() || other.is_unchecked() {
            true => Range::between(i64::MIN, i64::MAX),
            false => Range::between(self.min.min(other.min), self.max.max(other.max)),
        }
    }

    pub(crate) fn contains(self, other: Range) -> bool {
        self.min <= other.min && other.max <= self.max
    }

    pub(crate) fn judge(&self, bound: &Bound) -> Judgement {
        let is_ignored = |x: i64| bound.except == Some(x);
        let low = if is_ignored(self.min) { self.rest } else { self.min };
        let all_ignored = self.min == self.max && is_ignored(self.min);
        if all_ignored || low >= bound.low && self.max < bound.high {
            return Judgement::Fit;
        }
        let is_bad = |x: &i64| !(bound.low..bound.high).contains(x) && !is_ignored(*x);
        let elements = [self.max, self.min, self.rest];
        let bad = elements.into_iter().find(is_bad).filter(|_| self.exact);
        bad.map_or(Judgement::Unknown, Judgement::Bad)
    }
}

impl Bound {
    /// A range of all indices that are allowed.
    pub(crate) fn range(&self) -> Range {
        let range = Range::between(self.low, self.high.saturating_sub(1).max(self.low));
        match self.except {
            Some(except) if except < self.low => Range { min: except, rest: self.low, ..range },
            Some(except) => range.hull(Range::exactly(except)),
            None => range,
        }
    }

    /// The indices that are allowed.
    pub(crate) fn allowed(&self) -> String {
        if self.high <= self.low {
            "there is nothing to index".to_owned()
        } else if self.low == i64::MIN {
            format!("the largest is {}", self.high - 1)
        } else {
            format!("out of range {} to {}", self.low, self.high - 1)
        }
    }
}

impl Note {
    /// The error about an index that its bound does not allow.
    pub(crate) fn refusal(&self, index: i64) -> Error {
        if let Some(kernel) = &self.kernel {
            let reason = "threads run more iterations of loops than are allowed: a condition never holds, which \
                          `check` finds, or this driver ends long loops: use smaller sizes, or another device";
            return Error::of_kernel(kernel, reason, self.place.line());
        }
        let (op, allowed) = match &self.bound {
            Some(bound) => (bound.op, bound.allowed()),
            None => ("index", String::new()),
        };
        let far = Flag::ENCODED_ZERO - 1;
        let index = match index {
            index if index <= -far => format!("{} or less", -far),
            index if index >= far => format!("{far} or more"),
            index => index.to_string(),
        };
        let reason = format!("the index is {index}, {allowed}");
        Error::Index { op, reason, place: self.place.to_string() }
    }
}

/// Whether indices that a plan read were in range: known once the plan's result for it was looked at.
#[derive(Debug)]
pub(crate) struct Flag {
    pub(crate) note: Note,
    /// One `i64`: 0, or [`Flag::ENCODED_ZERO`] more than the largest index out of range.
    result: OnceLock<Buffer>,
    /// The index out of range, if there is one.
    bad: OnceLock<Option<i64>>,
}

impl Flag {
    /// The number that tells of a bad index 0. Bad indices are clamped to so much less than it and more.
    pub(crate) const ENCODED_ZERO: i64 = 1 << 62;

    pub(crate) fn new(note: Note) -> Flag {
        Flag { note, result: OnceLock::new(), bad: OnceLock::new() }
    }

    /// Notes the result of a plan, once.
    pub(crate) fn set(&self, result: &Buffer) {
        let _ = self.result.set(result.clone());
    }

    /// Whether it was looked at and all indices were in range.
    pub(crate) fn is_fine(&self) -> bool {
        matches!(self.bad.get(), Some(None))
    }

    /// Waits for the plan; an error if an index was out of range.
    fn look(&self) -> Result<()> {
        self.look_by(|result, bytes| result.device().read(result, bytes))
    }

    /// [`Flag::look`] for a thread that holds the device's gate.
    fn look_here(&self) -> Result<()> {
        self.look_by(|result, bytes| result.device().read_raw(result.pin()?.raw(), 0, bytes))
    }

    fn look_by(&self, read: impl FnOnce(&Buffer, &mut [u8]) -> Result<()>) -> Result<()> {
        let mut number = [0; 8];
        if self.bad.get().is_none()
            && let Some(result) = self.result.get()
        {
            read(result, &mut number)?;
        }
        self.tell(&number)
    }

    /// An error if the number says that an index was out of range, or was found to say so before.
    pub(super) fn tell(&self, number: &[u8]) -> Result<()> {
        let number = number.first_chunk().map_or(0, |number| i64::from_le_bytes(*number));
        let bad = self.bad.get_or_init(|| (number != 0).then(|| number - Flag::ENCODED_ZERO));
        bad.map_or(Ok(()), |index| Err(self.note.refusal(index)))
    }
}

/// Flags of the plans that a value depends on.
pub(crate) type Flags = SmallVec<[Arc<Flag>; 1]>;

/// Most flags of earlier plans that a value holds without the host having read them. Beyond them the host waits
/// for the device and reads them. A loop that computes indices and reads nothing waits once in about 32 steps.
const MAX_INHERITED: usize = 32;

/// Ranges of a buffer's integers, and the flags of index checks that its contents depend on.
#[derive(Default)]
pub(crate) struct Integers {
    /// Of the elements, as integers of this dtype.
    range: OnceLock<(DType, Range)>,
    /// Whether others may write to it at any time.
    is_shared: OnceLock<()>,
    /// By the operation that computed them.
    bounds: OnceLock<Range>,
    /// Flags of the plan that computed it, and of earlier ones.
    own: OnceLock<Flags>,
    inherited: OnceLock<Flags>,
}

impl Integers {
    fn flags(&self) -> impl Iterator<Item = &Arc<Flag>> {
        self.own.get().into_iter().chain(self.inherited.get()).flatten()
    }
}

impl Buffer {
    /// The range of its integers, as far as it was noted.
    pub(crate) fn noted_range(&self, dtype: DType) -> Range {
        let Some(integers) = self.integers() else { return Range::of_dtype(dtype) };
        let range = integers.range.get().filter(|(of, _)| *of == dtype).map(|(_, range)| *range);
        let range = range.or_else(|| integers.bounds.get().copied());
        range.unwrap_or(Range::of_dtype(dtype))
    }

    /// The range of its integers: read where the host can without waiting, else as noted. Not for a
    /// thread that holds the device's gate.
    pub(crate) fn range(&self, dtype: DType, elements: usize) -> Range {
        let noted = self.noted_range(dtype);
        let is_shared = self.integers().is_some_and(|integers| integers.is_shared.get().is_some());
        if noted.exact || !dtype.is_int() || !self.is_shown() || is_shared {
            return noted;
        }
        let view = HostView::new(self, elements * dtype.size()).ok().flatten();
        let range = view.and_then(|view| Range::of_bytes(dtype, view.as_slice()));
        range.map_or(noted, |range| {
            let _ = self.integers_or_new().range.set((dtype, range));
            range
        })
    }

    /// Whether the host may look at it at any time: the device computes where it is told to.
    fn is_shown(&self) -> bool {
        let caps = self.device().caps();
        caps.unified_memory && !caps.simt
    }

    /// Notes the range of integers that were written to it, unless the host can look at them later.
    pub(crate) fn note_integers(&self, dtype: DType, bytes: &[u8]) {
        let is_readable = || self.is_shown() && matches!(HostView::new(self, 0), Ok(Some(_)));
        if dtype.is_int()
            && !is_readable()
            && let Some(range) = Range::of_bytes(dtype, bytes)
        {
            let _ = self.integers_or_new().range.set((dtype, range));
        }
    }

    /// Notes that others may write to it, so that each plan has to look at its indices.
    pub(crate) fn note_writers(&self) {
        let _ = self.integers_or_new().is_shared.set(());
    }

    /// Notes what the operation that computed it says of its integers.
    pub(crate) fn set_bounds(&self, bounds: Range) {
        if !bounds.is_unchecked() {
            let _ = self.integers_or_new().bounds.set(bounds);
        }
    }

    fn flags(&self) -> impl Iterator<Item = &Arc<Flag>> {
        self.integers().into_iter().flat_map(Integers::flags)
    }

    /// Notes flags of the plan that computed it.
    pub(crate) fn set_flags(&self, flags: Flags) {
        let _ = self.integers_or_new().own.set(flags);
    }

    pub(crate) fn has_suspects(&self) -> bool {
        self.flags().any(|flag| !flag.is_fine())
    }

    /// The flags that were not found to be fine.
    pub(crate) fn suspects(&self) -> Flags {
        self.flags().filter(|flag| !flag.is_fine()).cloned().collect()
    }

    /// Notes that it was computed from what holds these flags. Too many are looked at first, and one that tells
    /// of a bad index stands for all. For a thread that holds the device's gate.
    pub(crate) fn inherit(&self, flags: &Flags) {
        let mut flags = flags.clone();
        if flags.len() > MAX_INHERITED {
            let bad = flags.iter().find(|flag| flag.look_here().is_err()).cloned();
            flags = bad.into_iter().collect();
        }
        if !flags.is_empty() {
            let _ = self.integers_or_new().inherited.set(flags);
        }
    }

    /// Starts to look at its flags, beside other work.
    pub(crate) fn start_to_look(&self) -> Result<Vec<(Arc<Flag>, Reading)>> {
        let start = |flag: Arc<Flag>| {
            let number = flag.result.get()?;
            let read = number.device().start_read(number, size_of::<i64>());
            Some(read.map(|read| (flag.clone(), read)))
        };
        self.suspects().into_iter().filter_map(start).collect()
    }

    /// An error if an index that it was computed by was out of range. Waits for the plans that tell.
    pub(crate) fn refuse_bad_indices(&self) -> Result<()> {
        self.flags().try_for_each(|flag| flag.look())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(low: i64, high: i64, except: Option<i64>) -> Bound {
        Bound { op: "gather", low, high, except }
    }

    #[test]
    fn ranges_of_bytes_are_those_of_their_elements() {
        let bytes: Vec<u8> = [-100i32, 3, 0, -100].iter().flat_map(|x| x.to_le_bytes()).collect();
        let range = Range::of_bytes(DType::I32, &bytes).unwrap();
        assert_eq!(range, Range { min: -100, max: 3, rest: 0, exact: true });
        let bytes = u64::MAX.to_le_bytes();
        assert_eq!(Range::of_bytes(DType::U64, &bytes), Some(Range::exactly(i64::MAX)));
        assert_eq!(Range::of_bytes(DType::I64, &[]), None);
        assert_eq!(Range::of_bytes(DType::F32, &[0; 4]), None);
    }

    #[test]
    fn a_judgement_is_that_of_all_elements() {
        let all = |min, rest, max| Range { min, max, rest, exact: true };
        let cases = [
            (all(0, 0, 3), bound(0, 4, None), Judgement::Fit),
            (all(0, 0, 4), bound(0, 4, None), Judgement::Bad(4)),
            (all(-1, 0, 3), bound(0, 4, None), Judgement::Bad(-1)),
            (all(-100, 0, 3), bound(0, 4, Some(-100)), Judgement::Fit),
            (all(-100, -1, 3), bound(0, 4, Some(-100)), Judgement::Bad(-1)),
            (all(-7, -7, -7), bound(0, 4, Some(-7)), Judgement::Fit),
            (all(0, 0, 255), bound(0, 4, Some(255)), Judgement::Unknown),
            (Range::between(0, 4), bound(0, 4, None), Judgement::Unknown),
            (all(0, 0, 0), bound(0, 0, None), Judgement::Bad(0)),
        ];
        for (range, bound, judgement) in cases {
            assert_eq!(range.judge(&bound), judgement, "{range:?} {bound:?}");
        }
    }
}
