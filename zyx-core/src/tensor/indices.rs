//! Indices in range: known when an operation gets them, or told by a flag of the plan that reads them.
//!
//! Each method that takes indices or class numbers passes them through [`Tensor::within`]. It judges by the
//! [range](Tensor::index_range) of the index, as far as data, constants and the operations that made it tell. Indices
//! that are in range pass as they are, and cost nothing. One that is known to be out of range is an error at
//! the call. What remains are indices that a program computes, and inputs of [`Jit`](crate::Jit). They become a
//! [`Op::Within`] with a *flag*: one `i64` computed from the index, a further result of the plan that the index
//! belongs to (`schedule/checks.rs`), which reads of other results look at (`runtime/indices.rs`).
//!
//! Operations that give positions say which ([`Tensor::known_below`]), so a program that gathers by `argmax` or
//! `sort` makes no flag.

use super::{Expr, History, Tensor};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::Op;
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::runtime::{Bound, Buffer, Flag, Judgement, Note, Range};
use crate::scalar::Scalar;
use std::panic::Location;
use std::sync::Arc;

/// Most nodes that are looked at for the range of a tensor: enough for index arithmetic as programs write it, and
/// some microseconds.
const MAX_NODES: u32 = 64;

/// The range of an index, and how it is made sure of.
#[derive(Debug)]
pub(crate) struct Check {
    range: Range,
    /// None where the range is that of all results of an operation.
    pub(crate) flagged: Option<Flagged>,
}

/// A flag, and the number that raises it.
pub(crate) struct Flagged {
    pub(crate) flag: Arc<Flag>,
    pub(crate) number: Tensor,
}

impl Check {
    /// The number that is not 0 if the driver ended loops of the user kernel whose result this checks.
    pub(crate) fn cut_of_kernel(&self) -> Option<&Tensor> {
        let flagged = self.flagged.as_ref().filter(|x| x.flag.note.kernel.is_some())?;
        Some(&flagged.number)
    }
}

impl PartialEq for Check {
    fn eq(&self, other: &Check) -> bool {
        std::ptr::eq(self, other)
    }
}

impl std::fmt::Debug for Flagged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.flag.fmt(f)
    }
}

impl Tensor {
    /// This index for a method that takes elements from `low` to below `high`, and `except`.
    ///
    /// # Errors
    /// When an element is known to be out of range. In checked mode others are refused when values are
    /// computed, else when they are read.
    #[track_caller]
    pub(crate) fn within(
        &self,
        op: &'static str,
        low: i64,
        high: usize,
        except: Option<i64>,
    ) -> Result<Tensor> {
        let high = i64::try_from(high).unwrap_or(i64::MAX);
        let bound = Bound { op, low, high, except };
        if self.device().is_checked() {
            return Ok(self.noted(bound));
        }
        if self.is_empty() {
            return Ok(self.clone());
        }
        match self.index_range().judge(&bound) {
            Judgement::Fit => Ok(self.clone()),
            judgement => {
                let note = self.device().note_of(Location::caller(), Some(bound));
                self.judged(judgement, note, bound)
            }
        }
    }

    /// This index, which takes the place of one that had this check.
    #[track_caller]
    pub(crate) fn checked(&self, check: &Arc<Check>) -> Result<Tensor> {
        match &check.flagged {
            _ if self.is_empty() => Ok(self.clone()),
            Some(flagged) => self.checked_as(&flagged.flag.note),
            None => Ok(self.restricted(check.clone())),
        }
    }

    /// This index with the bound of a call that was noted.
    #[track_caller]
    pub(crate) fn checked_as(&self, note: &Note) -> Result<Tensor> {
        let Some(bound) = note.bound.filter(|_| !self.is_empty()) else { return Ok(self.clone()) };
        self.judged(self.index_range().judge(&bound), note.clone(), bound)
    }

    #[track_caller]
    fn judged(&self, judgement: Judgement, note: Note, bound: Bound) -> Result<Tensor> {
        match judgement {
            Judgement::Fit => Ok(self.clone()),
            Judgement::Bad(index) => Err(note.refusal(index)),
            Judgement::Unknown => {
                let flagged = Flagged { flag: Arc::new(Flag::new(note)), number: self.flag(bound) };
                let range = bound.range();
                Ok(self.restricted(Arc::new(Check { range, flagged: Some(flagged) })))
            }
        }
    }

    /// These positions, of which each is known to be from 0 to below `n`.
    #[track_caller]
    pub(crate) fn known_below(&self, n: usize) -> Tensor {
        self.known_between(0, i64::try_from(n).unwrap_or(i64::MAX) - 1)
    }

    /// These integers, of which each is known to be from `min` to `max`.
    #[track_caller]
    pub(crate) fn known_between(&self, min: i64, max: i64) -> Tensor {
        let is_settled = self.is_realized() || self.is_empty() || self.device().is_checked();
        if is_settled || !self.dtype().is_int() || min > max {
            return self.clone();
        }
        self.restricted(Arc::new(Check { range: Range::between(min, max), flagged: None }))
    }

    /// These positions on an axis of so many elements, counted from the front; an error of this method if one is out
    /// of range. For bindings that index themselves.
    #[doc(hidden)]
    #[track_caller]
    pub fn positions_within(&self, op: &'static str, extent: usize) -> Result<Tensor> {
        self.check_index(op, self)?;
        self.wrapped(op, extent)
    }

    /// These indices with no check of their range: out of range they gather zero and scatter nothing. For
    /// formats that define an operation so.
    #[doc(hidden)]
    #[track_caller]
    #[must_use]
    pub fn unchecked_indices(&self) -> Tensor {
        let is_known = self.is_empty() || self.device().is_checked() || !self.dtype().is_int();
        if is_known {
            return self.clone();
        }
        self.restricted(Arc::new(Check { range: Range::UNCHECKED, flagged: None }))
    }

    /// This result of a user kernel, which is wrong if `cut` is not 0: the driver ended loops of the kernel early. It is an error
    /// when the result is read.
    /// The note is of the call.
    #[track_caller]
    pub(crate) fn unless_cut(&self, kernel: &str, cut: &Tensor, note: &Note) -> Tensor {
        let note = Note { kernel: Some(kernel.into()), ..note.clone() };
        let number = cut.reshape_unchecked([cut.numel()].into()).cast(DType::I64);
        self.flagged(note, number)
    }

    /// These elements, which the note says to be wrong where a number, one of several, is not 0.
    #[track_caller]
    fn flagged(&self, note: Note, numbers: Tensor) -> Tensor {
        let number = numbers.reduce(BinaryOp::Max, 1);
        let flagged = Flagged { flag: Arc::new(Flag::new(note)), number };
        let range = Range::of_dtype(self.dtype());
        self.restricted(Arc::new(Check { range, flagged: Some(flagged) }))
    }

    /// Results of a kernel for all examples, by a check of that for one, with the numbers of all; `None` for an index.
    #[track_caller]
    pub(crate) fn unless_one_cut(
        &self,
        check: &Check,
        all: impl FnOnce(&Tensor) -> Result<Tensor>,
    ) -> Result<Option<Tensor>> {
        let (Some(cut), Some(flagged)) = (check.cut_of_kernel(), &check.flagged) else {
            return Ok(None);
        };
        let numbers = all(cut)?;
        let numbers = numbers.reshape_unchecked([numbers.numel()].into());
        Ok(Some(self.flagged(flagged.flag.note.clone(), numbers)))
    }

    #[track_caller]
    fn restricted(&self, check: Arc<Check>) -> Tensor {
        let expr = Expr { op: Op::Within(check), srcs: [Some(self.clone()), None, None] };
        let (shape, device) = (self.shape().clone(), self.device().clone());
        Tensor::node(expr, shape, self.dtype(), device, self.is_tracked())
    }

    /// The number that tells whether all elements are within a bound; see [`Flag`].
    #[track_caller]
    fn flag(&self, bound: Bound) -> Tensor {
        let all = self.same_elements();
        let all = all.reshape_unchecked([all.numel()].into());
        let dtype = all.dtype();
        let number = |x: i64| all.constant(Scalar::from_i64(dtype, x));
        let own = Range::of_dtype(dtype);
        let below = (bound.low > own.min).then(|| all.combine(BinaryOp::Lt, &number(bound.low)));
        let above = (bound.high <= own.max).then(|| number(bound.high).combine(BinaryOp::Le, &all));
        let out = below.into_iter().chain(above).reduce(|x, y| x.combine(BinaryOp::Or, &y));
        let mut bad = out.unwrap_or_else(|| all.constant(Scalar::from(false)));
        if let Some(except) = bound.except.filter(|x| (own.min..=own.max).contains(x)) {
            bad = bad.combine(BinaryOp::And, &all.combine(BinaryOp::Ne, &number(except)));
        }
        let mut index = all.clone();
        if dtype == DType::U64 || dtype == DType::I64 {
            index = index.combine(BinaryOp::Min, &number(Flag::ENCODED_ZERO - 1));
        }
        if dtype == DType::I64 {
            index = index.combine(BinaryOp::Max, &number(1 - Flag::ENCODED_ZERO));
        }
        let index = index.cast(DType::I64);
        let zero = index.constant(Scalar::from(Flag::ENCODED_ZERO));
        let encoded = bad.select(&index.combine(BinaryOp::Add, &zero), &index.like(0.0));
        encoded.reduce(BinaryOp::Max, 1)
    }

    /// A tensor that has the elements of this one, some of them perhaps more rarely.
    #[track_caller]
    pub(crate) fn same_elements(&self) -> Tensor {
        let mut same = self.clone();
        loop {
            let source = match &*same.history() {
                History::Expr(Expr { op, srcs }) if !same.is_realized() => match op {
                    Op::Reshape
                    | Op::Permute(_)
                    | Op::Expand
                    | Op::Flip { .. }
                    | Op::Alias(_)
                    | Op::Within(_) => srcs[0].clone(),
                    Op::Cast { bits: false } => srcs[0].clone().filter(|source| {
                        let (own, of) = (Range::of_dtype(same.dtype()), source.dtype());
                        of.is_int() && own.contains(Range::of_dtype(of)) && of != DType::U64
                    }),
                    _ => None,
                },
                _ => None,
            };
            match source {
                Some(source) => same = source,
                None => return same,
            }
        }
    }

    /// A range that contains all elements of these integers. For stored values it is noted, or read if the host
    /// can without waiting. For pending values it follows from their operations. Not for a thread that holds the
    /// device's gate.
    pub(crate) fn index_range(&self) -> Range {
        let mut ranges = Ranges { nodes: MAX_NODES, unread: Vec::new() };
        let range = ranges.of(self);
        if ranges.unread.is_empty() {
            return range;
        }
        // Reads take the gate, and the walk locks histories, for which a thread with the gate may wait.
        for (buffer, dtype, elements) in ranges.unread {
            buffer.range(dtype, elements);
        }
        self.index_range_here()
    }

    /// [`Tensor::index_range`] as far as it was noted.
    pub(crate) fn index_range_here(&self) -> Range {
        Ranges { nodes: MAX_NODES, unread: Vec::new() }.of(self)
    }
}

/// Looks for ranges.
struct Ranges {
    /// How many more nodes may be looked at.
    nodes: u32,
    /// Data that the host could look at.
    unread: Vec<(Buffer, DType, usize)>,
}

impl Ranges {
    fn of(&mut self, x: &Tensor) -> Range {
        let dtype = x.dtype();
        let all = Range::of_dtype(dtype);
        if let Some(buffer) = x.value() {
            let noted = buffer.noted_range(dtype);
            if !noted.exact && dtype.is_int() {
                self.unread.push((buffer.clone(), dtype, x.numel()));
            }
            return noted;
        }
        if self.nodes == 0 || x.is_empty() {
            return all;
        }
        self.nodes -= 1;
        // Held while sources are looked at: graphs have no circles.
        let History::Expr(Expr { op, srcs }) = &*x.history() else { return all };
        let [Some(a), b, c] = srcs else { return Ranges::of_source(op, x) };
        let found = match (op, b, c) {
            (
                Op::Reshape
                | Op::Permute(_)
                | Op::Expand
                | Op::Flip { .. }
                | Op::Alias(_)
                | Op::Copy,
                ..,
            ) => Some(self.of(a)),
            (Op::Within(check), ..) => Some(check.range),
            (Op::Shrink(_), ..) => Some(self.of(a).part()),
            (Op::Pad(_), ..) | (Op::Gather { .. }, ..) => Some(self.of(a).hull(Range::exactly(0))),
            (Op::Scatter { op: None, .. }, _, Some(c)) => Some(self.of(a).hull(self.of(c))),
            (Op::Cast { bits: false }, ..) if a.dtype().is_float() => self.of_floats(a),
            // Numbers of `u64` above the largest `i64` wrap: no range is known.
            (Op::Cast { bits: false }, ..) => {
                Some(self.of(a)).filter(|range| a.dtype() != DType::U64 || range.max < i64::MAX)
            }
            (Op::Binary(op), Some(b), _) => self.of_binary(*op, a, b),
            (Op::Ternary(TernaryOp::Where), Some(b), Some(c)) => Some(self.of(b).hull(self.of(c))),
            (Op::Reduce { op: BinaryOp::Max | BinaryOp::Min, .. }, ..)
            | (Op::Scan { op: BinaryOp::Max | BinaryOp::Min, scaled: false, .. }, ..) => {
                Some(self.of(a).part())
            }
            (Op::Reduce { op: BinaryOp::Add, .. }, ..)
            | (Op::Scan { op: BinaryOp::Add, scaled: false, .. }, ..) => {
                let of = self.of(a);
                let n = i64::try_from(a.numel()).unwrap_or(i64::MAX);
                Some(of).and_then(|of| {
                    Some(Range::between(
                        of.min.min(0).checked_mul(n)?,
                        of.max.max(0).checked_mul(n)?,
                    ))
                })
            }
            _ => None,
        };
        // Results outside the dtype wrap: only the dtype bounds them.
        found.filter(|range| all.contains(*range)).unwrap_or(all)
    }

    /// Of an op without sources.
    fn of_source(op: &Op, x: &Tensor) -> Range {
        let all = Range::of_dtype(x.dtype());
        match op {
            Op::Const { bits, .. } if x.dtype().is_int() => {
                let x = Scalar::from_bits(x.dtype(), *bits).to_i128();
                Range::exactly(i64::try_from(x).unwrap_or(i64::MAX))
            }
            Op::Iota => {
                let last = i64::try_from(x.numel()).unwrap_or(i64::MAX) - 1;
                let range = Range { min: 0, max: last, rest: 0, exact: true };
                if all.contains(range) { range } else { all }
            }
            _ => all,
        }
    }

    fn of_binary(&mut self, op: BinaryOp, a: &Tensor, b: &Tensor) -> Option<Range> {
        let (x, y) = (self.of(a), self.of(b));
        if x.is_unchecked() || y.is_unchecked() {
            return None;
        }
        let between = |min: Option<i64>, max: Option<i64>| Some(Range::between(min?, max?));
        match op {
            BinaryOp::Add => between(x.min.checked_add(y.min), x.max.checked_add(y.max)),
            BinaryOp::Sub => between(x.min.checked_sub(y.max), x.max.checked_sub(y.min)),
            BinaryOp::Mul => {
                let ends = [(x.min, y.min), (x.min, y.max), (x.max, y.min), (x.max, y.max)];
                let mut products = [0; 4];
                for (product, (x, y)) in products.iter_mut().zip(ends) {
                    *product = x.checked_mul(y)?;
                }
                between(products.iter().min().copied(), products.iter().max().copied())
            }
            BinaryOp::Max => Some(Range::between(x.min.max(y.min), x.max.max(y.max))),
            BinaryOp::Min => Some(Range::between(x.min.min(y.min), x.max.min(y.max))),
            BinaryOp::Rem if y.min > 0 => {
                let most = y.max - 1;
                Some(Range::between(x.min.clamp(-most, 0), x.max.clamp(0, most)))
            }
            BinaryOp::Div if y.min > 0 => Some(Range::between(
                (x.min / y.min).min(x.min / y.max),
                (x.max / y.min).max(x.max / y.max),
            )),
            BinaryOp::And if x.min >= 0 || y.min >= 0 => {
                let most = match (x.min >= 0, y.min >= 0) {
                    (true, true) => x.max.min(y.max),
                    (true, false) => x.max,
                    _ => y.max,
                };
                Some(Range::between(0, most))
            }
            BinaryOp::Shr if x.min >= 0 => Some(Range::between(0, x.max)),
            _ => None,
        }
    }

    /// Of floats that are converted to integers: NaN becomes 0, and what is too large the largest integer.
    fn of_floats(&mut self, x: &Tensor) -> Option<Range> {
        let (low, high) = self.ends(x)?;
        let whole = |x: f64| if x.abs() < Ranges::WHOLE { Some(x as i64) } else { None };
        Some(Range::between(whole(low.trunc())?.min(0), whole(high.trunc())?.max(0)))
    }

    /// Integers up to this one are `f64` numbers.
    const WHOLE: f64 = (1u64 << 53) as f64;

    /// The least and the largest that a float may be, unless it is NaN.
    fn ends(&mut self, x: &Tensor) -> Option<(f64, f64)> {
        const ANY: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);
        if self.nodes == 0 || x.is_realized() || x.is_empty() {
            return Some(ANY);
        }
        self.nodes -= 1;
        let History::Expr(Expr { op, srcs }) = &*x.history() else { return Some(ANY) };
        Some(match (op, &srcs[0], &srcs[1]) {
            (Op::Const { bits, .. }, ..) => {
                let x = Scalar::from_bits(x.dtype(), *bits).to_f64();
                if x.is_nan() { ANY } else { (x, x) }
            }
            (
                Op::Reshape
                | Op::Permute(_)
                | Op::Expand
                | Op::Flip { .. }
                | Op::Shrink(_)
                | Op::Alias(_),
                Some(a),
                _,
            ) => self.ends(a)?,
            (Op::Cast { bits: false }, Some(a), _) if a.dtype().is_float() => {
                // Rounding keeps the order, and whole numbers that both hold.
                let (low, high) = self.ends(a)?;
                let rounded = |end: f64| Scalar::from_f64(x.dtype(), end).to_f64();
                (rounded(low), rounded(high))
            }
            (Op::Unary(UnaryOp::Floor), Some(a), _) => {
                let (low, high) = self.ends(a)?;
                (low.floor(), high.floor())
            }
            (Op::Unary(UnaryOp::Ceil), Some(a), _) => {
                let (low, high) = self.ends(a)?;
                (low.ceil(), high.ceil())
            }
            (Op::Unary(UnaryOp::Round), Some(a), _) => {
                let (low, high) = self.ends(a)?;
                (low.round_ties_even(), high.round_ties_even())
            }
            (Op::Unary(UnaryOp::Trunc), Some(a), _) => {
                let (low, high) = self.ends(a)?;
                (low.trunc(), high.trunc())
            }
            (Op::Binary(BinaryOp::Max), Some(a), Some(b)) => {
                let (x, y) = (self.ends(a)?, self.ends(b)?);
                (x.0.max(y.0), x.1.max(y.1))
            }
            (Op::Binary(BinaryOp::Min), Some(a), Some(b)) => {
                let (x, y) = (self.ends(a)?, self.ends(b)?);
                (x.0.min(y.0), x.1.min(y.1))
            }
            _ => ANY,
        })
    }
}
