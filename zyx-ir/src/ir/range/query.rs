//! One question under some facts.

use super::{Atom, Form, Known, Ranges, sum};
use crate::affine::Interval;
use crate::dtype::DType;
use crate::ir::kernel::Kernel;
use crate::ir::op::{Op, Value};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use smallvec::SmallVec;
use std::cmp::Ordering;

/// How many facts one bound may combine.
const COMBINED: u32 = 3;
/// How many terms one bound may replace: each of them may be so in two ways.
const REPLACED: u32 = 4;
/// How deep expressions are followed; beyond, what holds without facts is used.
const DEPTH: u32 = 32;
/// How many choices within choices each side is looked at under its condition of: every one asks
/// about both its sides anew, so their number is squared with each.
const CHOICES: u32 = 2;

/// The values seen under one set of facts.
pub(super) struct Query<'q> {
    ranges: &'q Ranges<'q>,
    facts: &'q [Form],
    /// What was known before.
    known: Option<&'q Known>,
    memo: Known,
    depth: u32,
    /// Choices around whose sides this is about.
    choices: u32,
}

impl<'q> Query<'q> {
    pub(super) fn new(
        ranges: &'q Ranges<'q>,
        facts: &'q [Form],
        known: Option<&'q Known>,
    ) -> Query<'q> {
        Query { ranges, facts, known, memo: Known::default(), depth: 0, choices: 0 }
    }

    pub(super) fn into_memo(self) -> Known {
        self.memo
    }

    /// What a value can be.
    pub(super) fn value(&mut self, value: Value) -> Interval {
        let plain = self.ranges.plain[value.idx()];
        let ty = self.ranges.kernel.ty(value);
        // Without facts all was said when the value was defined.
        if self.facts.is_empty() || plain.constant().is_some() || !super::is_tracked(ty) {
            return plain;
        }
        let known = self.known.and_then(|known| known.get(&value));
        if let Some(&known) = known.or_else(|| self.memo.get(&value)) {
            return known;
        }
        if self.depth >= DEPTH {
            return plain;
        }
        self.depth += 1;
        let mut interval = plain;
        let op = self.ranges.kernel.op(value);
        let by_op = self.transfer(value, op);
        let range = Interval::of(ty.dtype);
        if by_op.within(range.min, range.max) {
            interval = interval.and(by_op);
        }
        self.memo.insert(value, interval);
        interval = interval.and(self.form(&self.ranges.forms[value.idx()]));
        self.memo.insert(value, interval);
        self.depth -= 1;
        interval
    }

    /// The interval of an op's exact result under the facts.
    fn transfer(&mut self, value: Value, op: Op) -> Interval {
        match op {
            // A fact may hold in some lanes only; these ops look at others.
            Op::Extract { .. } | Op::Fold { .. } | Op::Shuffle { .. } => {
                return self.ranges.plain[value.idx()];
            }
            Op::Binary { op, x, y } if op.is_comparison() => {
                let forms = &self.ranges.forms;
                if self.ranges.kernel.ty(x).dtype.is_int()
                    && let Some(difference) = sum(&forms[x.idx()], &forms[y.idx()], -1)
                {
                    return decide(op, self.form(&difference));
                }
            }
            _ => {}
        }
        let operands: Vec<(Value, Interval)> = op.operands().map(|x| (x, self.value(x))).collect();
        let of = |x: Value| {
            let known = operands.iter().find(|(y, _)| *y == x);
            known.map_or(self.ranges.plain[x.idx()], |(_, interval)| *interval)
        };
        self.ranges.transfer(value, op, self.choices, of)
    }

    /// What a sum can be.
    pub(super) fn form(&mut self, form: &Form) -> Interval {
        let own = self.terms(form);
        if self.facts.is_empty() {
            return own;
        }
        let negative = form.scaled(-1);
        let min = self.least(form, [COMBINED, REPLACED]).max(own.min);
        let max =
            negative.map_or(own.max, |f| self.least(&f, [COMBINED, REPLACED]).saturating_neg());
        Interval::new(min, max.min(own.max)).and(own)
    }

    /// A lower bound of a sum: from its terms, or after taking away multiples of facts, or from sums
    /// that are not greater.
    fn least(&mut self, form: &Form, [facts_left, terms_left]: [u32; 2]) -> i128 {
        let mut least = self.terms(form).min;
        if self.facts.is_empty() {
            return least;
        }
        if terms_left > 0 {
            for smaller in self.smaller(form) {
                least = least.max(self.least(&smaller, [facts_left, terms_left - 1]));
            }
        }
        if facts_left == 0 {
            return least;
        }
        for fact in self.facts {
            // A fact helps if it cancels a term: form = rest + k * fact, k > 0, fact >= 0.
            let factor = fact.terms.iter().find_map(|&(atom, coefficient)| {
                let k = form.coefficient(atom);
                let exact = k != 0 && k % coefficient == 0 && k / coefficient > 0;
                exact.then(|| k / coefficient)
            });
            if let Some(rest) = factor.and_then(|k| sum(form, fact, -k)) {
                least = least.max(self.least(&rest, [facts_left - 1, terms_left]));
            }
        }
        least
    }

    /// The sum with a term `-k * min(x, y)` replaced by `-k * x` or by `-k * y`, or with a term
    /// `-k * c * (x / c)` replaced by `-k * x`, if it has such a term: the first of them.
    fn smaller(&self, form: &Form) -> SmallVec<[Form; 2]> {
        let Ranges { kernel, plain, forms, .. } = self.ranges;
        for &(atom, factor) in form.terms.iter().filter(|term| term.1 < 0) {
            let Atom::Value(value) = atom else { continue };
            let (sides, by): (SmallVec<[Value; 2]>, _) = match kernel.op(value) {
                Op::Binary { op: BinaryOp::Min, x, y } => (SmallVec::from_slice(&[x, y]), 1),
                Op::Binary { op: BinaryOp::Div, x, y } if plain[x.idx()].min >= 0 => {
                    let by = plain[y.idx()].constant().and_then(|by| i64::try_from(by).ok());
                    let Some(by) = by.filter(|&by| by > 0 && factor % by == 0) else { continue };
                    (SmallVec::from_slice(&[x]), by)
                }
                _ => continue,
            };
            if !kernel.ty(value).dtype.is_int() {
                continue;
            }
            let Some(rest) = sum(form, &Form::atom(atom), -factor) else { continue };
            let replaced = |side: Value| sum(&rest, &forms[side.idx()], factor / by);
            let found: SmallVec<_> = sides.into_iter().filter_map(replaced).collect();
            if !found.is_empty() {
                return found;
            }
        }
        SmallVec::new()
    }

    /// The sum of the intervals of the terms.
    fn terms(&mut self, form: &Form) -> Interval {
        form.interval(|atom| match atom {
            Atom::Value(value) => self.value(value),
            Atom::Lane(lanes) => Interval::new(0, lanes as i128 - 1),
        })
    }
}

impl Ranges<'_> {
    /// [`transfer`], with what forms and conditions tell besides; `choices` are those around that
    /// were looked into.
    pub(super) fn transfer(
        &self,
        value: Value,
        op: Op,
        choices: u32,
        of: impl Fn(Value) -> Interval,
    ) -> Interval {
        let kernel = self.kernel;
        match op {
            Op::Cast { x }
                if kernel.ty(x).dtype == DType::Bool && !self.is_bit(x, super::BIT_STEPS) =>
            {
                Interval::new(0, u8::MAX.into())
            }
            Op::Binary { op, x, y } if op.is_comparison() && !kernel.ty(x).dtype.is_float() => {
                match sum(&self.forms[x.idx()], &self.forms[y.idx()], -1) {
                    Some(form) => decide(op, Query::new(self, &[], None).form(&form)),
                    None => decide(op, of(x).add(of(y).neg())),
                }
            }
            Op::Ternary { op: TernaryOp::Where, x, y, z } if choices < CHOICES => {
                let sides = [(y, true), (z, false)].map(|(side, holds)| {
                    let mut facts = Vec::new();
                    self.facts_of(x, holds, &mut facts);
                    let mut query = Query::new(self, &facts, None);
                    query.choices = choices + 1;
                    of(side).and(query.value(side))
                });
                chosen(of(x), sides)
            }
            _ => transfer(kernel, value, op, of),
        }
    }
}

/// The interval of an op's exact (unwrapped) result, given its operands'.
pub(crate) fn transfer(
    kernel: &Kernel,
    value: Value,
    op: Op,
    of: impl Fn(Value) -> Interval,
) -> Interval {
    let ty = kernel.ty(value);
    let anything = Interval::of(ty.dtype);
    match op {
        Op::Const { bits } => Interval::exactly(crate::Scalar::from_bits(ty.dtype, bits).to_i128()),
        // Ranges are declared for integers only.
        Op::Var { slot } if ty.dtype.is_int() => {
            let info = kernel.vars()[slot as usize];
            let declared = match info.min == info.max {
                true => Interval::exactly(info.min.into()),
                false => Interval::new(info.min.into(), info.max.into()),
            };
            let multiple_of = declared.multiple_of.max(info.multiple_of.into());
            anything.and(Interval { multiple_of, ..declared })
        }
        Op::Lanes => Interval::new(0, ty.lanes as i128 - 1),
        Op::Loop { len, .. } => Interval::new(0, (of(len).max - 1).max(0)),
        Op::Splat { x } | Op::Extract { x, .. } | Op::Shuffle { x, .. } => of(x),
        Op::Guard { index, .. } => of(index),
        Op::Cast { x } if kernel.ty(x).dtype.is_float() => anything,
        Op::Cast { x } if ty.dtype == DType::Bool => {
            let x = of(x);
            let zero_free = x.min > 0 || x.max < 0;
            let only_zero = x.constant() == Some(0);
            Interval::new(zero_free as i128, !only_zero as i128)
        }
        Op::Cast { x } => of(x),
        Op::Fold { op: BinaryOp::Min | BinaryOp::Max, x } => of(x),
        Op::Fold { op: BinaryOp::Add, x } if ty.dtype != DType::Bool => {
            let Interval { multiple_of, .. } = of(x);
            Interval { multiple_of, ..of(x).scale(kernel.ty(x).lanes as i64) }
        }
        Op::Unary { op, x } => unary(op, ty.dtype, of(x)),
        Op::Binary { op, x, y } => match kernel.ty(x).dtype {
            dtype if op.is_comparison() && dtype.is_float() => Interval::new(0, 1),
            _ if op.is_comparison() => decide(op, of(x).add(of(y).neg())),
            DType::Bool => match op {
                BinaryOp::And | BinaryOp::Mul | BinaryOp::Min => of(x).min(of(y)),
                BinaryOp::Or | BinaryOp::Add | BinaryOp::Max => of(x).max(of(y)),
                _ => Interval::new(0, 1),
            },
            dtype => Interval::binary(op, dtype, of(x), of(y)),
        },
        Op::Ternary { op: TernaryOp::Where, x, y, z } => chosen(of(x), [of(y), of(z)]),
        _ => anything,
    }
}

/// What a choice gives, by what its condition and its sides can be.
fn chosen(cond: Interval, [y, z]: [Interval; 2]) -> Interval {
    match cond.constant() {
        Some(0) => z,
        Some(_) => y,
        None => y.or(z),
    }
}

/// What a comparison gives, by the difference of its operands.
fn decide(op: BinaryOp, difference: Interval) -> Interval {
    let zero = difference.compare(Interval::exactly(0));
    let decided = match op {
        _ if difference.is_empty() => None,
        BinaryOp::Lt if difference.max < 0 => Some(true),
        BinaryOp::Lt if difference.min >= 0 => Some(false),
        BinaryOp::Le if difference.max <= 0 => Some(true),
        BinaryOp::Le if difference.min > 0 => Some(false),
        BinaryOp::Eq => zero.map(|o| o == Ordering::Equal),
        BinaryOp::Ne => zero.map(|o| o != Ordering::Equal),
        _ => None,
    };
    decided.map_or(Interval::new(0, 1), |holds| Interval::exactly(holds as i128))
}

fn unary(op: UnaryOp, dtype: DType, x: Interval) -> Interval {
    match op {
        UnaryOp::Not if dtype == DType::Bool => Interval::new(1 - x.max, 1 - x.min),
        // The complement is -1 - x; of an unsigned number it is taken from the largest.
        UnaryOp::Not => {
            let ones = if dtype.is_signed() { -1 } else { Interval::of(dtype).max };
            let mut result = Interval::exactly(ones).add(x.neg());
            result.multiple_of = 1;
            result
        }
        UnaryOp::Neg => x.neg(),
        UnaryOp::Abs => x.max(x.neg()).max(Interval { multiple_of: 0, ..Interval::new(0, 0) }),
        UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc => x,
        _ => Interval::of(dtype),
    }
}
