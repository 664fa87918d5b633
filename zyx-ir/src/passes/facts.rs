//! What is known of `i64` values: linear forms and bounds.
//!
//! An index is a sum of loop counters times constants. [`Facts`] keeps that sum for each scalar
//! `i64` value together with an interval, and bounds sums better than intervals alone can: a
//! counter whose length is itself `min(f, n - o * f)` never passes `n - o * f`, so `o * f + j`
//! stays below `n`. Facts grow with the kernel they are asked about, finished or being built.

use crate::affine::{self, Interval};
use crate::dtype::DType;
use crate::ir::{Kernel, Op, Value, transfer};
use crate::ops::BinaryOp;
use smallvec::SmallVec;
use std::borrow::Cow;

/// A sum of multiples of values.
pub type Linear = affine::Linear<Value>;

/// Smallest and largest value an integer takes.
pub type Bounds = (i64, i64);

/// Intervals and linear forms of a kernel's scalar `i64` values.
#[derive(Debug, Default)]
pub struct Facts {
    intervals: Vec<Option<Bounds>>,
    linear: Vec<Option<Linear>>,
}

impl Facts {
    /// Everything about a finished kernel.
    pub fn of(kernel: &Kernel) -> Facts {
        let mut facts = Facts::default();
        facts.grow(kernel);
        facts
    }

    /// Takes in the ops added to the kernel since the last call.
    pub fn grow(&mut self, kernel: &Kernel) {
        for i in self.intervals.len()..kernel.ops().len() {
            let v = Value(i as u32);
            let interval = self.compute_interval(kernel, v);
            let linear = self.compute_linear(kernel, v);
            // The linear form may see what the operands' intervals do not.
            let better = linear.as_ref().filter(|l| interval.is_none() && l.terms.len() > 1);
            let better = better.and_then(|l| self.bounds(kernel, l));
            self.intervals.push(interval.or(better));
            self.linear.push(linear);
        }
    }

    /// The interval of an integer or bool, if one is known.
    pub fn interval(&self, v: Value) -> Option<Bounds> {
        self.intervals[v.idx()]
    }

    /// The linear form of a scalar `i64` value; any other value stands for itself.
    pub fn linear(&self, v: Value) -> Cow<'_, Linear> {
        match &self.linear[v.idx()] {
            Some(linear) => Cow::Borrowed(linear),
            None => Cow::Owned(Linear::atom(v)),
        }
    }

    /// Bounds of a linear form that hold without wrapping.
    pub fn bounds(&self, k: &Kernel, l: &Linear) -> Option<Bounds> {
        let (low, high) = l.bounds(|v| self.interval(v))?;
        let (mut low, mut high) = (i64::try_from(low).ok()?, i64::try_from(high).ok()?);
        if let Some(better) = self.upper(k, l, 3) {
            high = high.min(better);
        }
        if let Some(better) = l.scaled(-1).and_then(|n| self.upper(k, &n, 3)) {
            low = low.max(-better);
        }
        Some((low, high))
    }

    /// An upper bound found by replacing a counter by the largest it can be, as a linear form.
    fn upper(&self, k: &Kernel, l: &Linear, fuel: u32) -> Option<i64> {
        let mut best = None;
        let fuel = fuel.checked_sub(1)?;
        for &(v, factor) in l.terms.iter().rev().filter(|t| t.1 > 0) {
            let Op::Loop { len, .. } = k.op(v) else { continue };
            if k.constant(len).is_some() {
                continue;
            }
            let without = l.plus(&Linear::atom(v), -factor)?;
            let mut lengths = SmallVec::new();
            self.scaled_lengths(k, len, factor, 4, &mut lengths);
            for length in &lengths {
                let last = length.plus(&Linear::constant(factor), -1);
                let Some(bound) = last.and_then(|n| without.plus(&n, 1)) else { continue };
                let found = self.simple_high(&bound).into_iter().chain(self.upper(k, &bound, fuel));
                best = found.chain(best).min();
            }
        }
        best
    }

    /// Upper bounds of `factor * len` as linear forms: of either operand for a minimum, and
    /// `factor / d * x` for `len = x / d`.
    fn scaled_lengths(
        &self,
        k: &Kernel,
        len: Value,
        factor: i64,
        fuel: u32,
        found: &mut SmallVec<[Linear; 2]>,
    ) {
        match k.op(len) {
            Op::Binary { op: BinaryOp::Min, x, y } if fuel > 0 => {
                self.scaled_lengths(k, x, factor, fuel - 1, found);
                self.scaled_lengths(k, y, factor, fuel - 1, found);
            }
            Op::Binary { op: BinaryOp::Div, x, y } if fuel > 0 => {
                let divisor = k.constant(y).map(|c| c.to_i64());
                let fits = divisor.is_some_and(|d| d > 0 && factor % d == 0);
                let is_natural = self.interval(x).is_some_and(|(low, _)| low >= 0);
                if let (Some(d), true, true) = (divisor, fits, is_natural) {
                    self.scaled_lengths(k, x, factor / d, fuel - 1, found);
                }
            }
            _ => found.extend(self.linear(len).scaled(factor)),
        }
    }

    /// The upper end of the intervals' sum.
    fn simple_high(&self, l: &Linear) -> Option<i64> {
        i64::try_from(l.bounds(|v| self.interval(v))?.1).ok()
    }

    fn compute_linear(&self, k: &Kernel, v: Value) -> Option<Linear> {
        let ty = k.ty(v);
        if ty.dtype != DType::I64 || ty.is_vector() {
            return None;
        }
        match k.op(v) {
            Op::Const { .. } => k.constant(v).map(|c| Linear::constant(c.to_i64())),
            Op::Binary { op, x, y } => {
                let sum = Linear::binary(op, &self.linear(x), &self.linear(y));
                Some(sum.map_or_else(|| Linear::atom(v), |sum| self.recombine(k, sum)))
            }
            _ => Some(Linear::atom(v)),
        }
    }

    /// Replaces `f * m * (t / m) + f * (t % m)` by `f * t`.
    pub fn recombine(&self, k: &Kernel, l: Linear) -> Linear {
        l.rejoined(|l, rest, f| {
            let Op::Binary { op: BinaryOp::Rem, x, y } = k.op(rest) else { return None };
            let quotient = Op::Binary { op: BinaryOp::Div, x, y };
            let &(quotient, g) = l.terms.iter().find(|term| k.op(term.0) == quotient)?;
            let whole = k.constant(y)?.to_i64().checked_mul(f)?;
            (g == whole).then(|| (quotient, self.linear(x).into_owned()))
        })
    }

    fn compute_interval(&self, k: &Kernel, v: Value) -> Option<Bounds> {
        let dtype = k.ty(v).dtype;
        if dtype.is_float() {
            return None;
        }
        let range = Interval::of(dtype);
        let exact = transfer(k, v, k.op(v), |x| match self.intervals[x.idx()] {
            Some((min, max)) => Interval::new(min.into(), max.into()),
            None => Interval::of(k.ty(x).dtype),
        });
        // A result that may wrap says nothing.
        let known = if exact.within(range.min, range.max) { exact } else { range };
        if dtype.bits() == 64 && (known.min, known.max) == (range.min, range.max) {
            return None;
        }
        Some((i64::try_from(known.min).ok()?, i64::try_from(known.max).ok()?))
    }
}
