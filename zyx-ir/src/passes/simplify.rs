//! `simplify`: algebra that never changes a result bit.
//!
//! Index arithmetic is rewritten to sums of counters times constants, outer counters first and
//! the constant last, so that parts that do not change are shared and hoisted and the constant
//! can become a displacement. Divisions and remainders by constants are taken apart by
//! divisibility and bounds, comparisons decided by bounds (a guard that always holds goes), loops
//! of one iteration and branches with a known condition become straight code. On other dtypes
//! only identities that are exact, for NaN, infinities and signed zeros too, are used.

use super::facts::{Facts, Linear};
use super::rebuild::Rebuild;
use super::{Pass, Site};
use crate::affine::gcd_signed;
use crate::dtype::{Class, DType};
use crate::ir::{Kernel, LoopKind, Op, Type, Value};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::scalar::Scalar;
use smallvec::SmallVec;

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "simplify",
    doc: "exact algebra, index arithmetic by bounds and divisibility, trivial control flow",
    reassociates: false,
    sites: |_, _| vec![Site::whole()],
    apply: |kernel, _| simplify(kernel),
};

/// Applies the pass.
pub fn simplify(kernel: &Kernel) -> Kernel {
    let ends = kernel.region_ends();
    let mut s = Simplify {
        r: Rebuild::new(kernel),
        facts: Facts::default(),
        inlined: Vec::new(),
        breaks: kernel.loops_with_break(),
    };
    let mut i = 0;
    while i < kernel.ops().len() {
        i = match s.op(Value(i as u32)) {
            Next::Op => i + 1,
            Next::Past => ends[i] + 1,
        };
    }
    s.r.out.finish()
}

/// Where the walk goes on.
enum Next {
    /// At the next op.
    Op,
    /// Behind the region this op opens.
    Past,
}

struct Simplify<'k> {
    r: Rebuild<'k>,
    facts: Facts,
    /// Regions of the old kernel whose ops are emitted without the region.
    inlined: Vec<Value>,
    /// Loops of the old kernel that a break may end: even one iteration is not straight code.
    breaks: Vec<Value>,
}

impl Simplify<'_> {
    fn op(&mut self, v: Value) -> Next {
        let op = self.r.src.op(v);
        match op {
            Op::Loop { kind, len, .. } => {
                let len = self.r.out.as_constant(self.r.get(len)).map(|c| c.to_i64());
                let is_plain = matches!(kind, LoopKind::Serial | LoopKind::Parallel);
                match len {
                    Some(n) if n <= 0 => return Next::Past,
                    Some(1) if is_plain && !self.breaks.contains(&v) => {
                        let zero = self.r.number(v, 0);
                        self.r.set(v, zero);
                        self.inlined.push(v);
                    }
                    _ => {
                        self.r.copy(v);
                    }
                }
            }
            Op::If { cond } => {
                match self.r.out.as_constant(self.r.get(cond)).map(|c| c.to_bool()) {
                    Some(false) => return Next::Past,
                    Some(true) => self.inlined.push(v),
                    None => {
                        self.r.copy(v);
                    }
                }
            }
            Op::Break { cond } => {
                let known = self.r.out.as_constant(self.r.get(cond)).map(|c| c.to_bool());
                if known != Some(false) {
                    self.r.copy(v);
                }
            }
            Op::End { open } if self.inlined.last() == Some(&open) => {
                self.inlined.pop();
            }
            _ if !op.is_pure() => {
                self.r.copy(v);
            }
            _ => {
                let mapped = self.r.mapped(v);
                let new = self.pure(mapped, self.r.src.ty(v));
                self.r.set(v, new);
            }
        }
        Next::Op
    }

    /// Emits a pure op on new operands, or something equal.
    fn pure(&mut self, op: Op, ty: Type) -> Value {
        self.facts.grow(self.r.out.kernel());
        let is_index = ty == Type::scalar(DType::I64);
        let known = match op {
            Op::Binary { op, x, y } if op.is_comparison() => self.comparison(op, x, y),
            Op::Binary { op: BinaryOp::Div, x, y } if is_index => self.division(x, y),
            Op::Binary { op: BinaryOp::Rem, x, y } if is_index => self.remainder(x, y),
            Op::Binary { op: op @ (BinaryOp::Min | BinaryOp::Max), x, y } if is_index => {
                self.extremum(op, x, y)
            }
            Op::Binary { op: BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, .. } if is_index => {
                self.sum(op)
            }
            _ => None,
        };
        known.or_else(|| self.exact(op, ty)).unwrap_or_else(|| self.r.out.emit(op, ty))
    }

    /// A sum or product of indices in canonical form.
    fn sum(&mut self, op: Op) -> Option<Value> {
        let Op::Binary { op: kind, x, y } = op else { return None };
        let l = Linear::binary(kind, &self.facts.linear(x), &self.facts.linear(y))?;
        let l = self.facts.recombine(self.r.out.kernel(), l);
        Some(self.emit_linear(&l))
    }

    /// Emits a linear form: outer values first, the constant last.
    fn emit_linear(&mut self, l: &Linear) -> Value {
        let out = &mut self.r.out;
        let mut sum = None;
        for &(v, factor) in &l.terms {
            let term = if factor == 1 {
                v
            } else {
                let factor = out.index(factor);
                out.binary(BinaryOp::Mul, v, factor)
            };
            sum = Some(match sum {
                Some(sum) => out.binary(BinaryOp::Add, sum, term),
                None => term,
            });
        }
        let value = match sum {
            None => out.index(l.constant),
            Some(sum) if l.constant == 0 => sum,
            Some(sum) => {
                let constant = out.index(l.constant);
                out.binary(BinaryOp::Add, sum, constant)
            }
        };
        self.facts.grow(self.r.out.kernel());
        value
    }

    fn bounds(&self, l: &Linear) -> Option<(i64, i64)> {
        self.facts.bounds(self.r.out.kernel(), l)
    }

    /// Decides a comparison of integers by the bounds of their difference.
    fn comparison(&mut self, op: BinaryOp, x: Value, y: Value) -> Option<Value> {
        let ty = self.r.out.ty(x);
        if ty.dtype.is_float() || ty.dtype == DType::U64 {
            return None;
        }
        let (low, high) = if ty == Type::scalar(DType::I64) {
            let (a, b) = (self.facts.linear(x), self.facts.linear(y));
            // Both sides have to be free of wrapping for the difference to tell their order.
            self.bounds(&a).and(self.bounds(&b))?;
            self.bounds(&a.plus(&b, -1)?)?
        } else {
            let (a, b) = (self.facts.interval(x)?, self.facts.interval(y)?);
            (a.0.checked_sub(b.1)?, a.1.checked_sub(b.0)?)
        };
        let decided = match op {
            BinaryOp::Lt if high < 0 => true,
            BinaryOp::Lt if low >= 0 => false,
            BinaryOp::Le if high <= 0 => true,
            BinaryOp::Le if low > 0 => false,
            BinaryOp::Eq if low == 0 && high == 0 => true,
            BinaryOp::Eq if low > 0 || high < 0 => false,
            BinaryOp::Ne if low > 0 || high < 0 => true,
            BinaryOp::Ne if low == 0 && high == 0 => false,
            _ => return None,
        };
        let decided = self.r.out.constant(Scalar::from(decided));
        Some(self.r.out.splat(decided, ty.lanes))
    }

    fn extremum(&mut self, op: BinaryOp, x: Value, y: Value) -> Option<Value> {
        let (a, b) = (self.facts.linear(x), self.facts.linear(y));
        self.bounds(&a).and(self.bounds(&b))?;
        let (low, high) = self.bounds(&a.plus(&b, -1)?)?;
        let (smaller, larger) = match (low, high) {
            (_, high) if high <= 0 => (x, y),
            (low, _) if low >= 0 => (y, x),
            _ => return None,
        };
        Some(if op == BinaryOp::Min { smaller } else { larger })
    }

    /// Takes `x = d * whole + g * part + rest` apart, with `0 <= rest < g`, `g` dividing `d`, and
    /// both `x` and `g * part + rest` not negative; `None` where bounds do not show that.
    fn divide(&self, x: Value, d: i64) -> Option<Divided> {
        let l = self.facts.linear(x);
        let (low, high) = self.bounds(&l)?;
        if d <= 0 || low < 0 {
            return None;
        }
        let mut whole = Linear::constant(l.constant.div_euclid(d));
        let mut part = Linear::constant(l.constant.rem_euclid(d));
        let mut g = d;
        for &(v, factor) in &l.terms {
            if factor % d == 0 {
                whole.terms.push((v, factor / d));
            } else {
                g = gcd_signed(g, factor);
                part.terms.push((v, factor));
            }
        }
        let (part_low, part_high) = self.bounds(&part)?;
        if part_low < 0 {
            // Negative parts borrow from the whole; only a quotient of the sum is right.
            return (high < d).then(|| Divided {
                whole: Linear::constant(0),
                part: l.into_owned(),
                g: 1,
                rest: Linear::constant(0),
                is_small: true,
            });
        }
        let mut rest = Linear::constant(part.constant % g);
        if g == 1
            && let Some((small, factor)) = self.small_terms(&part, d)
        {
            rest = Linear::constant(part.constant % factor);
            rest.terms = part.terms.iter().filter(|t| small.contains(t)).copied().collect();
            part.terms.retain(|t| !small.contains(t));
            g = factor;
        }
        part.constant -= rest.constant;
        let terms = part.terms.iter().map(|&(v, factor)| (v, factor / g)).collect();
        let part = Linear { terms, constant: part.constant / g };
        Some(Divided { whole, part, g, rest, is_small: part_high < d })
    }

    /// Terms that together with the constant stay below a factor of `d` and of all other terms, and that
    /// factor: lanes and runs inside of a row.
    fn small_terms(&self, part: &Linear, d: i64) -> Option<(SmallVec<[(Value, i64); 4]>, i64)> {
        let mut sorted = part.terms.clone();
        sorted.sort_by_key(|t| t.1.unsigned_abs());
        (1..sorted.len()).find_map(|n| {
            let (small, large) = sorted.split_at(n);
            let g = large.iter().fold(d, |g, t| gcd_signed(g, t.1));
            let mut rest = Linear::constant(part.constant.rem_euclid(g));
            rest.terms = part.terms.iter().filter(|t| small.contains(t)).copied().collect();
            let (low, high) = self.bounds(&rest)?;
            (g > 1 && low >= 0 && high < g).then(|| (small.into(), g))
        })
    }

    fn division(&mut self, x: Value, y: Value) -> Option<Value> {
        let d = self.r.out.as_constant(y)?.to_i64();
        // Truncating quotients nest: (x / a) / b = x / (a * b).
        if let Op::Binary { op: BinaryOp::Div, x: inner, y: a } = self.r.out.op(x)
            && let Some(a) = self.r.out.as_constant(a).map(|c| c.to_i64())
            && a > 0
            && d > 0
            && let Some(product) = a.checked_mul(d)
        {
            let product = self.r.out.index(product);
            self.facts.grow(self.r.out.kernel());
            let op = Op::Binary { op: BinaryOp::Div, x: inner, y: product };
            return Some(self.pure(op, Type::scalar(DType::I64)));
        }
        let Divided { whole, part, g, is_small, .. } = self.divide(x, d)?;
        if is_small {
            return Some(self.emit_linear(&whole));
        }
        if whole == Linear::constant(0) && g == 1 {
            return None;
        }
        let part = self.emit_linear(&part);
        let divisor = self.r.out.index(d / g);
        let quotient = self.r.out.binary(BinaryOp::Div, part, divisor);
        self.facts.grow(self.r.out.kernel());
        let sum = whole.plus(&self.facts.linear(quotient), 1)?;
        Some(self.emit_linear(&sum))
    }

    fn remainder(&mut self, x: Value, y: Value) -> Option<Value> {
        let d = self.r.out.as_constant(y)?.to_i64();
        if let Op::Binary { op: BinaryOp::Rem, x: inner, y: a } = self.r.out.op(x)
            && let Some(a) = self.r.out.as_constant(a).map(|c| c.to_i64())
            && d > 0
            && a % d == 0
            && a > 0
        {
            let op = Op::Binary { op: BinaryOp::Rem, x: inner, y };
            return Some(self.pure(op, Type::scalar(DType::I64)));
        }
        let Divided { whole, part, g, rest, is_small } = self.divide(x, d)?;
        let scaled = |part: &Linear| part.scaled(g)?.plus(&rest, 1);
        if is_small {
            let l = scaled(&part)?;
            return Some(self.emit_linear(&l));
        }
        if whole == Linear::constant(0) && g == 1 {
            return None;
        }
        let part = self.emit_linear(&part);
        let divisor = self.r.out.index(d / g);
        let remainder = self.r.out.binary(BinaryOp::Rem, part, divisor);
        self.facts.grow(self.r.out.kernel());
        let l = scaled(&self.facts.linear(remainder))?;
        Some(self.emit_linear(&l))
    }

    /// Identities that hold for every operand, bit for bit.
    fn exact(&mut self, op: Op, ty: Type) -> Option<Value> {
        let out = &mut self.r.out;
        match op {
            Op::Unary { op: op @ (UnaryOp::Neg | UnaryOp::Not), x } => match out.op(x) {
                Op::Unary { op: inner, x } if inner == op => Some(x),
                _ => None,
            },
            Op::Unary { op: UnaryOp::Abs, x } => match out.op(x) {
                Op::Unary { op: UnaryOp::Abs, .. } => Some(x),
                // Unsigned numbers have no sign to lose.
                Op::Unary { op: UnaryOp::Neg, x } if ty.dtype.class() >= Class::Signed => {
                    Some(out.unary(UnaryOp::Abs, x))
                }
                _ => None,
            },
            Op::Binary { op, x, y } if x == y => match op {
                BinaryOp::Max | BinaryOp::Min | BinaryOp::And | BinaryOp::Or => Some(x),
                BinaryOp::Sub | BinaryOp::Xor if !ty.dtype.is_float() => {
                    let zero = out.constant(Scalar::from_i64(ty.dtype, 0));
                    Some(out.splat(zero, ty.lanes))
                }
                _ => None,
            },
            Op::Binary { op: BinaryOp::Div, x, y } if ty.dtype.is_float() => {
                let inverse = power_of_two_inverse(out.as_constant(y)?)?;
                let inverse = out.constant(inverse);
                Some(out.binary(BinaryOp::Mul, x, inverse))
            }
            Op::Binary { op: BinaryOp::And, x, y } if ty.dtype == DType::Bool => {
                let is_false = |v| out.as_constant(v).is_some_and(|c| !c.to_bool());
                [x, y].into_iter().find(|&v| is_false(v))
            }
            Op::Binary { op: BinaryOp::Or, x, y } if ty.dtype == DType::Bool => {
                let is_true = |v| out.as_constant(v).is_some_and(|c| c.to_bool());
                [x, y].into_iter().find(|&v| is_true(v))
            }
            Op::Ternary { op: TernaryOp::Where, x, y, z } => match out.op(x) {
                Op::Unary { op: UnaryOp::Not, x } => Some(out.select(x, z, y)),
                _ if out.ty(x) == ty => {
                    let is = |v, wanted| out.as_constant(v).is_some_and(|c| c.to_bool() == wanted);
                    (is(y, true) && is(z, false)).then_some(x)
                }
                _ => None,
            },
            Op::Cast { x } => match out.op(x) {
                Op::Cast { x: inner } if loses_nothing(out.ty(inner), out.ty(x), ty) => Some(inner),
                _ => None,
            },
            _ => None,
        }
    }
}

/// See [`Simplify::divide`]; `is_small` says that `g * part + rest` is less than `d`.
struct Divided {
    whole: Linear,
    part: Linear,
    g: i64,
    rest: Linear,
    is_small: bool,
}

/// `1 / x` where multiplying by it equals dividing by `x`: powers of two with a normal inverse.
fn power_of_two_inverse(x: Scalar) -> Option<Scalar> {
    let value = x.to_f64();
    let (fraction, exponents) = match x.dtype() {
        DType::F64 => (value.to_bits() << 12, 1022.0),
        DType::F32 => (value.to_bits() << 12, 126.0),
        _ => return None,
    };
    let is_power = fraction == 0 && value.is_normal() && value.abs().log2().abs() <= exponents;
    is_power.then(|| Scalar::from_f64(x.dtype(), 1.0 / value))
}

/// Whether a cast from `from` through `middle` back to `to` gives the value it started from.
fn loses_nothing(from: Type, middle: Type, to: Type) -> bool {
    let (a, b) = (from.dtype, middle.dtype);
    let widens = match (a.is_float(), b.is_float()) {
        (true, true) => a.bits() < b.bits(),
        (false, false) => a.is_int() && b.is_int() && a.bits() <= b.bits(),
        (false, true) => a.is_int() && a.bits() <= 16 && b.bits() >= 32,
        (true, false) => false,
    };
    from == to && widens
}
