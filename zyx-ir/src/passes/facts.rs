//! What is known of `i64` values: linear forms and bounds.
//!
//! An index is a sum of loop counters times constants. [`Facts`] keeps that sum for each scalar
//! `i64` value together with an interval, and bounds sums better than intervals alone can: a
//! counter whose length is itself `min(f, n - o * f)` never passes `n - o * f`, so `o * f + j`
//! stays below `n`. Facts grow with the kernel they are asked about, finished or being built.

use crate::dtype::{Class, DType};
use crate::ir::{Kernel, Op, Value};
use crate::ops::{BinaryOp, TernaryOp};
use smallvec::SmallVec;
use std::borrow::Cow;

/// A sum `constant + sum of factor * value`, values ascending, factors not zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Linear {
    /// The variable part.
    pub terms: SmallVec<[(Value, i64); 4]>,
    /// The constant part.
    pub constant: i64,
}

impl Linear {
    /// A number.
    pub fn constant(constant: i64) -> Linear {
        Linear { terms: SmallVec::new(), constant }
    }

    /// A value as it stands.
    pub fn atom(v: Value) -> Linear {
        Linear { terms: SmallVec::from_slice(&[(v, 1)]), constant: 0 }
    }

    /// `self + factor * other`, if no factor overflows.
    pub fn plus(&self, other: &Linear, factor: i64) -> Option<Linear> {
        let mut sum =
            Linear::constant(self.constant.checked_add(other.constant.checked_mul(factor)?)?);
        let (mut a, mut b) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let next_a = a.peek().map_or(u32::MAX, |t| t.0.0);
            let next_b = b.peek().map_or(u32::MAX, |t| t.0.0);
            if next_a == u32::MAX && next_b == u32::MAX {
                return Some(sum);
            }
            let mut total = 0i64;
            if next_a <= next_b {
                total = a.next().map_or(0, |t| t.1);
            }
            if next_b <= next_a {
                let more = b.next().map_or(0, |t| t.1).checked_mul(factor)?;
                total = total.checked_add(more)?;
            }
            if total != 0 {
                sum.terms.push((Value(next_a.min(next_b)), total));
            }
        }
    }

    /// `self * factor`, if no factor overflows.
    pub fn times(&self, factor: i64) -> Option<Linear> {
        Linear::default().plus(self, factor)
    }
}

/// Smallest and largest value an integer takes.
pub type Interval = (i64, i64);

/// Intervals and linear forms of a kernel's scalar `i64` values.
#[derive(Debug, Default)]
pub struct Facts {
    intervals: Vec<Option<Interval>>,
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
    pub fn interval(&self, v: Value) -> Option<Interval> {
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
    pub fn bounds(&self, k: &Kernel, l: &Linear) -> Option<Interval> {
        let (mut low, mut high) = (l.constant, l.constant);
        let mut known = true;
        for &(v, factor) in &l.terms {
            let (a, b) = self.interval(v)?;
            let (Some(a), Some(b)) = (a.checked_mul(factor), b.checked_mul(factor)) else {
                return None;
            };
            match (low.checked_add(a.min(b)), high.checked_add(a.max(b))) {
                (Some(l), Some(h)) => (low, high) = (l, h),
                _ => known = false,
            }
        }
        if !known {
            return None;
        }
        if let Some(better) = self.upper(k, l, 3) {
            high = high.min(better);
        }
        if let Some(better) = l.times(-1).and_then(|n| self.upper(k, &n, 3)) {
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
            _ => found.extend(self.linear(len).times(factor)),
        }
    }

    /// The upper end of the intervals' sum.
    fn simple_high(&self, l: &Linear) -> Option<i64> {
        l.terms.iter().try_fold(l.constant, |high, &(v, factor)| {
            let (a, b) = self.interval(v)?;
            high.checked_add(a.checked_mul(factor)?.max(b.checked_mul(factor)?))
        })
    }

    fn compute_linear(&self, k: &Kernel, v: Value) -> Option<Linear> {
        let ty = k.ty(v);
        if ty.dtype != DType::I64 || ty.is_vector() {
            return None;
        }
        let of = |x: Value| self.linear(x);
        match k.op(v) {
            Op::Const { .. } => k.constant(v).map(|c| Linear::constant(c.to_i64())),
            Op::Binary { op: BinaryOp::Add, x, y } => {
                of(x).plus(&of(y), 1).map(|l| self.recombine(k, l))
            }
            Op::Binary { op: BinaryOp::Sub, x, y } => {
                of(x).plus(&of(y), -1).map(|l| self.recombine(k, l))
            }
            Op::Binary { op: BinaryOp::Mul, x, y } => match (k.constant(x), k.constant(y)) {
                (_, Some(c)) => of(x).times(c.to_i64()),
                (Some(c), _) => of(y).times(c.to_i64()),
                _ => None,
            },
            _ => Some(Linear::atom(v)),
        }
    }

    /// Replaces `f * m * (t / m) + f * (t % m)` by `f * t`.
    pub fn recombine(&self, k: &Kernel, l: Linear) -> Linear {
        for &(rem, f) in &l.terms {
            let Op::Binary { op: BinaryOp::Rem, x, y } = k.op(rem) else { continue };
            let quotient = l.terms.iter().find(|&&(q, g)| {
                let scale = k.constant(y).and_then(|m| m.to_i64().checked_mul(f));
                k.op(q) == Op::Binary { op: BinaryOp::Div, x, y } && scale == Some(g)
            });
            let Some(&(quotient, g)) = quotient else { continue };
            let joined = l
                .plus(&Linear::atom(rem), -f)
                .and_then(|l| l.plus(&Linear::atom(quotient), -g))
                .and_then(|l| l.plus(&self.linear(x), f));
            if let Some(joined) = joined {
                return self.recombine(k, joined);
            }
        }
        l
    }

    fn compute_interval(&self, k: &Kernel, v: Value) -> Option<Interval> {
        let ty = k.ty(v);
        let all = match ty.dtype.class() {
            Class::Float => return None,
            Class::Bool => Some((0, 1)),
            Class::Signed if ty.dtype == DType::I64 => None,
            Class::Unsigned if ty.dtype == DType::U64 => None,
            Class::Signed => {
                let half = 1i64 << (ty.dtype.bits() - 1);
                Some((-half, half - 1))
            }
            Class::Unsigned => Some((0, (1i64 << ty.dtype.bits()) - 1)),
        };
        let found = self.transfer(k, v);
        match (found, all) {
            (Some(f), Some(a)) if f.0 < a.0 || f.1 > a.1 => Some(a),
            (None, a) => a,
            (f, _) => f,
        }
    }

    /// The interval by the op, before it wraps.
    fn transfer(&self, k: &Kernel, v: Value) -> Option<Interval> {
        let of = |x: Value| self.intervals[x.idx()];
        match k.op(v) {
            Op::Const { .. } if k.ty(v).dtype == DType::U64 => None,
            Op::Const { .. } => k.constant(v).map(|c| (c.to_i64(), c.to_i64())),
            Op::Var { slot } if k.ty(v).dtype.is_int() => {
                k.vars().get(slot as usize).map(|var| (var.min, var.max))
            }
            Op::Loop { len, .. } => match of(len) {
                Some((_, high)) => Some((0, (high - 1).max(0))),
                None => Some((0, i64::MAX - 1)),
            },
            Op::Guard { index: x, .. } | Op::Splat { x } | Op::Extract { x, .. } => of(x),
            Op::Lanes => Some((0, k.ty(v).lanes as i64 - 1)),
            Op::Cast { x } if !k.ty(x).dtype.is_float() => of(x),
            Op::Ternary { op: TernaryOp::Where, y, z, .. } => {
                of(y).zip(of(z)).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1)))
            }
            Op::Binary { op, x, y } if k.ty(x).dtype != DType::U64 => binary(op, of(x)?, of(y)?),
            _ => None,
        }
    }
}

fn binary(op: BinaryOp, (a, b): Interval, (c, d): Interval) -> Option<Interval> {
    Some(match op {
        BinaryOp::Add => (a.checked_add(c)?, b.checked_add(d)?),
        BinaryOp::Sub => (a.checked_sub(d)?, b.checked_sub(c)?),
        BinaryOp::Mul => {
            let products =
                [a.checked_mul(c)?, a.checked_mul(d)?, b.checked_mul(c)?, b.checked_mul(d)?];
            let low = products.iter().copied().fold(i64::MAX, i64::min);
            (low, products.iter().copied().fold(i64::MIN, i64::max))
        }
        BinaryOp::Div if c > 0 => ((a / c).min(a / d), (b / c).max(b / d)),
        BinaryOp::Rem if c > 0 && a >= 0 => (0, b.min(d - 1)),
        BinaryOp::Rem if c > 0 => (a.max(1 - d), b.min(d - 1).max(0)),
        BinaryOp::Min => (a.min(c), b.min(d)),
        BinaryOp::Max => (a.max(c), b.max(d)),
        BinaryOp::And if a >= 0 && c >= 0 => (0, b.min(d)),
        BinaryOp::Shr if a >= 0 && c >= 0 => (0, b),
        _ => return None,
    })
}
