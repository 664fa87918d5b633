//! What integer values can be: bounds and divisors, from the kernel alone.
//!
//! Three sources are combined. Each op maps the intervals of its operands ([`Interval`]). Sums are
//! kept as linear forms over atoms ([`Linear`]), so that `i/4*4 + i%4` is known to be `i` and
//! equal sums are recognised however they are written. Loops, `If`s and guards give facts: forms
//! that are not negative where the region is open. A bound of a form follows from its own terms,
//! or from what is left of it after taking away a multiple of a fact.
//!
//! The verifier proves accesses in bounds by this, passes simplify by it. Everything said holds
//! for every run; what is not said is simply not known.

mod distinct;
mod query;

pub(crate) use query::transfer;

use super::kernel::Kernel;
use super::op::{Op, Type, Value};
use super::regions::Regions;
use crate::affine::{Interval, Linear};
use crate::dtype::DType;
use crate::ops::{BinaryOp, UnaryOp};
use query::Query;
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// Something a form is linear in: a value that is not a sum, or the lane number of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Atom {
    /// A value of the kernel; of a vector, each lane's.
    Value(Value),
    /// 0, 1, 2, … in the lanes of a vector this wide.
    Lane(u8),
}

type Form = Linear<Atom>;

/// Most terms of a form; a longer sum is an atom.
const MAX_TERMS: usize = 8;

/// `x + factor * y`, `None` if a coefficient overflows or there are too many terms.
fn sum(x: &Form, y: &Form, factor: i64) -> Option<Form> {
    x.plus(y, factor).filter(|form| form.terms.len() <= MAX_TERMS)
}

/// Intervals of all integer and bool values of one kernel.
#[derive(Clone, Debug)]
pub struct Ranges<'k> {
    kernel: &'k Kernel,
    regions: Regions,
    /// By the ops alone.
    plain: Vec<Interval>,
    forms: Vec<Form>,
    /// With the facts of the regions each value stands in.
    refined: Vec<Interval>,
    /// For each region the facts that hold in it, those of the regions around it included.
    facts: FxHashMap<Value, Vec<Form>>,
    /// For each region with facts what values can be in it, as far as that was asked.
    known: FxHashMap<Value, Known>,
}

/// What values can be under some facts.
type Known = FxHashMap<Value, Interval>;

impl<'k> Ranges<'k> {
    /// Analyses a kernel whose operands stand before their uses and whose regions nest.
    ///
    /// ```
    /// use zyx_ir::ir::{Kernel, Ranges, Value};
    /// let kernel: Kernel = "kernel k
    ///     %0 const 10 : i64
    ///     %1 loop serial %0
    ///     %2 const 4 : i64
    ///     %3 mul %1, %2 : i64
    ///     %4 end %1".parse().unwrap();
    /// let range = Ranges::of(&kernel).get(Value(3));
    /// assert_eq!((range.min, range.max, range.multiple_of), (0, 36, 4));
    /// ```
    pub fn of(kernel: &'k Kernel) -> Ranges<'k> {
        let n = kernel.ops().len();
        let mut ranges = Ranges {
            kernel,
            regions: Regions::of(kernel),
            plain: Vec::with_capacity(n),
            forms: Vec::with_capacity(n),
            refined: Vec::with_capacity(n),
            facts: FxHashMap::default(),
            known: FxHashMap::default(),
        };
        for (value, op, ty) in kernel.iter() {
            ranges.define(value, op, ty);
            let refined = ranges.refine(value);
            ranges.refined.push(refined);
            if op.opens_region() {
                ranges.enter(value, op);
            }
        }
        ranges
    }

    /// What `value` can be where it is defined. Says nothing of floats.
    pub fn get(&self, value: Value) -> Interval {
        self.refined[value.idx()]
    }

    /// What `value` can be where the op `place` stands: the same or less.
    pub fn at(&self, value: Value, place: Value) -> Interval {
        self.query_at(place).value(value)
    }

    /// The elements an access touches, lanes and guards taken into account. Empty when it
    /// touches none, for one because it stands in dead code. `None` for what is no access.
    pub fn elements(&self, access: Value) -> Option<Interval> {
        let (buf, mut index) = match self.kernel.op(access) {
            Op::Load { buf, index, .. } => (buf, index),
            Op::Store { buf, index, .. } | Op::Atomic { buf, index, .. } => (buf, index),
            _ => return None,
        };
        let mut facts = Cow::Borrowed(self.facts_at(access));
        let lanes = match self.kernel.ty(buf).is_vector() {
            true => 1,
            false => self.kernel.ty(access).lanes,
        };
        while let Op::Guard { index: inner, cond } = self.kernel.op(index) {
            self.facts_of(cond, true, facts.to_mut());
            index = inner;
        }
        let consecutive = lanes > 1 && !self.kernel.ty(index).is_vector();
        let mut query = match &facts {
            Cow::Borrowed(_) => self.query_at(access),
            Cow::Owned(facts) => self.query(facts),
        };
        if !consecutive {
            return Some(query.value(index));
        }
        let lane = Linear::atom(Atom::Lane(lanes));
        Some(match sum(&self.forms[index.idx()], &lane, 1) {
            Some(form) => query.form(&form),
            None => query.value(index).add(Interval::new(0, lanes as i128 - 1)),
        })
    }

    /// Whether `x` is in `0 .. extent` where an access happens, its guards taken into account.
    pub(crate) fn is_below(&self, x: Value, extent: Value, access: Value) -> bool {
        let mut facts = self.facts_at(access).to_vec();
        let index = self.kernel.op(access).operands().nth(1);
        for cond in index.map_or(Vec::new(), |index| self.kernel.unguarded(index).1) {
            self.facts_of(cond, true, &mut facts);
        }
        let gap = sum(&self.forms[extent.idx()], &self.forms[x.idx()], -1);
        let gap = gap.and_then(|gap| sum(&gap, &Form::constant(1), -1));
        let mut query = self.query(&facts);
        query.value(x).min >= 0 && gap.is_some_and(|gap| query.form(&gap).min >= 0)
    }

    /// Whether the op at `place` can never be executed.
    pub fn is_dead(&self, place: Value) -> bool {
        self.regions.enclosing(place).any(|region| match self.kernel.op(region) {
            Op::Loop { len, .. } => self.get(len).max <= 0,
            Op::If { cond } => self.get(cond).max <= 0,
            _ => false,
        })
    }

    /// The tree of regions of the kernel.
    pub fn regions(&self) -> &Regions {
        &self.regions
    }

    fn facts_at(&self, place: Value) -> &[Form] {
        let region = self.regions.parent(place);
        region.and_then(|region| self.facts.get(&region)).map_or(&[], Vec::as_slice)
    }

    fn query<'q>(&'q self, facts: &'q [Form]) -> Query<'q> {
        Query::new(self, facts, None)
    }

    /// A question where the op `place` stands.
    fn query_at(&self, place: Value) -> Query<'_> {
        let region = self.regions.parent(place);
        let known = region.and_then(|region| self.known.get(&region));
        Query::new(self, self.facts_at(place), known)
    }

    /// The interval of a value just defined, remembering what is learnt on the way.
    fn refine(&mut self, value: Value) -> Interval {
        if self.facts_at(value).is_empty() || !is_tracked(self.kernel.ty(value)) {
            return self.plain[value.idx()];
        }
        let mut query = self.query_at(value);
        let interval = query.value(value);
        let learnt = query.into_memo();
        let region = self.regions.parent(value).expect("invariant: facts are of regions");
        self.known.entry(region).or_default().extend(learnt);
        interval
    }

    /// Computes interval and form of a value from its operands'.
    fn define(&mut self, value: Value, op: Op, ty: Type) {
        let atom = Linear::atom(Atom::Value(value));
        if !is_tracked(ty) {
            self.plain.push(Interval::of(ty.dtype));
            self.forms.push(atom);
            return;
        }
        let exact = self.transfer(value, op, 0, |x| self.plain[x.idx()]);
        let range = Interval::of(ty.dtype);
        // A result that may wrap is no sum, and keeps divisors that are powers of two alone.
        let wraps = !exact.within(range.min, range.max);
        let range = match exact.multiple_of {
            0 => range,
            n => range.and(Interval { multiple_of: n & n.wrapping_neg(), ..range }),
        };
        let form = if wraps { None } else { self.linear(op, ty) };
        let sum = form.filter(|form| *form != atom);
        let is_sum = sum.is_some();
        self.plain.push(if wraps { range } else { exact });
        self.forms.push(sum.unwrap_or(atom));
        if !is_sum && self.plain[value.idx()].constant().is_none() {
            return;
        }
        // The form may know better: x - x, i/4*4 + i%4, comparisons of equal sums.
        let form = &self.forms[value.idx()];
        let improved = self.plain[value.idx()].and(self.query(&[]).form(form));
        self.plain[value.idx()] = improved;
        if let Some(constant) = improved.constant().and_then(|x| i64::try_from(x).ok()) {
            self.forms[value.idx()] = Linear::constant(constant);
        }
    }

    /// The sum a value is, if it is one.
    fn linear(&self, op: Op, ty: Type) -> Option<Form> {
        let form = |x: Value| &self.forms[x.idx()];
        if ty.dtype == DType::Bool {
            return None;
        }
        let form = match op {
            Op::Lanes => Linear::atom(Atom::Lane(ty.lanes)),
            Op::Splat { x } => form(x).clone(),
            Op::Cast { x } if self.kernel.ty(x).dtype.is_int() => form(x).clone(),
            Op::Extract { x, lane } => self.extract(form(x), lane)?,
            Op::Guard { index, .. } => form(index).clone(),
            Op::Unary { op: UnaryOp::Neg, x } => form(x).scaled(-1)?,
            Op::Binary { op: BinaryOp::Shl, x, y } => {
                // A shift by the width or more is no multiplication.
                let most = (ty.dtype.bits() as i64).min(62);
                let shift = form(y).constant;
                let fits = form(y).is_constant() && (0..most).contains(&shift);
                form(x).scaled(if fits { 1 << shift } else { return None })?
            }
            Op::Binary { op, x, y } => Linear::binary(op, form(x), form(y))?,
            _ => return None,
        };
        Some(self.joined(form)).filter(|form| form.terms.len() <= MAX_TERMS)
    }

    /// One lane of a vector whose lanes differ by their number alone.
    fn extract(&self, form: &Form, lane: u8) -> Option<Form> {
        let mut constant = Linear::constant(form.constant);
        for &(atom, coefficient) in &form.terms {
            let part = match atom {
                Atom::Lane(_) => Linear::constant(lane as i64),
                Atom::Value(v) if self.kernel.ty(v).is_vector() => return None,
                Atom::Value(_) => Linear::atom(atom),
            };
            constant = sum(&constant, &part, coefficient)?;
        }
        Some(constant)
    }

    /// The form with `k*c * (x / c) + k * (x % c)` replaced by `k * x`.
    fn joined(&self, form: Form) -> Form {
        let divided = |atom: Atom, which: BinaryOp| match atom {
            Atom::Value(v) => match self.kernel.op(v) {
                Op::Binary { op, x, y } if op == which => {
                    let by = self.plain[y.idx()].constant()?;
                    Some((x, i64::try_from(by).ok()?))
                }
                _ => None,
            },
            Atom::Lane(_) => None,
        };
        form.rejoined(|form, rest, k| {
            let (x, c) = divided(rest, BinaryOp::Rem)?;
            let x = &self.forms[x.idx()];
            let whole = k.checked_mul(c)?;
            let is_quotient = |&&(atom, by): &&(Atom, i64)| {
                by == whole
                    && divided(atom, BinaryOp::Div)
                        .is_some_and(|(y, d)| d == c && *x == self.forms[y.idx()])
            };
            let short = form.terms.len() + x.terms.len() <= MAX_TERMS + 2;
            let quotient = form.terms.iter().filter(|_| short).find(is_quotient)?;
            Some((quotient.0, x.clone()))
        })
    }

    /// Notes what is known inside a region.
    fn enter(&mut self, region: Value, op: Op) {
        let mut facts = self.facts_at(region).to_vec();
        match op {
            Op::Loop { len, .. } if self.plain[len.idx()].constant().is_none() => {
                // counter <= len - 1
                let counter = Linear::atom(Atom::Value(region));
                let rest = self.forms[len.idx()].plus(&counter, -1);
                facts.extend(rest.and_then(|f| f.plus(&Form::constant(1), -1)));
            }
            Op::If { cond } => self.facts_of(cond, true, &mut facts),
            _ => {}
        }
        if !facts.is_empty() {
            self.facts.insert(region, facts);
        }
    }

    /// Adds what follows from a condition that is known to hold, or known not to.
    fn facts_of(&self, cond: Value, holds: bool, facts: &mut Vec<Form>) {
        const MOST: usize = 16;
        if facts.len() >= MOST {
            return;
        }
        match self.kernel.op(cond) {
            Op::Splat { x } => self.facts_of(x, holds, facts),
            Op::Unary { op: UnaryOp::Not, x } if self.is_bit(x, BIT_STEPS) => {
                self.facts_of(x, !holds, facts)
            }
            Op::Binary { op: BinaryOp::And | BinaryOp::Mul | BinaryOp::Min, x, y }
                if holds && self.kernel.ty(x).dtype == DType::Bool =>
            {
                self.facts_of(x, true, facts);
                self.facts_of(y, true, facts);
            }
            Op::Binary { op: BinaryOp::Or | BinaryOp::Add | BinaryOp::Max, x, y }
                if !holds && self.kernel.ty(x).dtype == DType::Bool =>
            {
                self.facts_of(x, false, facts);
                self.facts_of(y, false, facts);
            }
            Op::Binary { op, x, y } if self.kernel.ty(x).dtype.is_int() => {
                let (a, b) = (&self.forms[x.idx()], &self.forms[y.idx()]);
                let mut fact = |low: &Form, high: &Form, gap: i64| {
                    let form = sum(high, low, -1);
                    facts.extend(form.and_then(|f| f.plus(&Form::constant(gap), -1)));
                };
                match (op, holds) {
                    (BinaryOp::Lt, true) => fact(a, b, 1),
                    (BinaryOp::Lt, false) => fact(b, a, 0),
                    (BinaryOp::Le, true) => fact(a, b, 0),
                    (BinaryOp::Le, false) => fact(b, a, 1),
                    (BinaryOp::Eq, true) | (BinaryOp::Ne, false) => {
                        fact(a, b, 0);
                        fact(b, a, 0);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Whether a bool is 0 or 1 for certain, by so many steps back. The bytes of a buffer may be
    /// others, which are true but of which not every device makes 1.
    fn is_bit(&self, x: Value, steps: u32) -> bool {
        let op = self.kernel.op(x);
        let known =
            op.is_pure() && !matches!(op, Op::Bitcast { .. }) || matches!(op, Op::Var { .. });
        let mut bools = op.operands().filter(|&x| self.kernel.ty(x).dtype == DType::Bool);
        known && bools.all(|x| steps > 0 && self.is_bit(x, steps - 1))
    }
}

/// How far back a bool is followed to show that it is 0 or 1.
const BIT_STEPS: u32 = 8;

/// Whether intervals say anything of a type.
fn is_tracked(ty: Type) -> bool {
    !ty.dtype.is_float()
}

#[cfg(test)]
mod tests;
