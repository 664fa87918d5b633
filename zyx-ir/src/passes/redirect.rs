//! `redirect`: one load from a chosen place instead of a choice between loads.
//!
//! `where(c, x[i], x[j])`, with a condition that is the same in all iterations of an innermost
//! loop, becomes `x[where(c, i, j)]`. What both indices have in common stays outside of the choice,
//! so the load still walks along memory where both did, and the choice leaves the loop.

use super::facts::{Facts, Linear};
use super::loops::{LoopInfo, find_loop, loops};
use super::rebuild::Rebuild;
use super::variance::{Form, Variance};
use super::{Pass, Site};
use crate::caps::Caps;
use crate::dtype::DType;
use crate::ir::{Access, Kernel, Op, Order, Value};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::scalar::Scalar;
use rustc_hash::FxHashMap;

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "redirect",
    doc: "load from the place that a condition chooses, not from both in an innermost loop",
    reassociates: false,
    sites,
    apply,
};

fn sites(kernel: &Kernel, _: &Caps) -> Vec<Site> {
    let list = loops(kernel);
    let list = list.iter().filter(|l| l.innermost && changed(kernel, l).is_some());
    list.map(|l| Site::new(l.open, &[])).collect()
}

fn apply(kernel: &Kernel, site: &Site) -> Kernel {
    let l = find_loop(kernel, site.value).filter(|l| l.innermost);
    l.and_then(|l| changed(kernel, &l)).unwrap_or_else(|| kernel.clone())
}

/// What a value of the old kernel loads: nothing but zeros where the place is not allowed.
#[derive(Clone, Debug)]
struct Source {
    buf: Value,
    /// The index: a sum of old values, and a new one.
    linear: Linear,
    more: Option<Value>,
    /// Where it may be loaded, a new value.
    allowed: Option<Value>,
}

/// The kernel with the choices in a loop redirected; `None` if there are none.
fn changed(kernel: &Kernel, l: &LoopInfo) -> Option<Kernel> {
    let is_choice =
        |i: usize| matches!(kernel.op(Value(i as u32)), Op::Ternary { op: TernaryOp::Where, .. });
    if !l.body().any(is_choice) {
        return None;
    }
    let (variance, facts) = (Variance::of(kernel, l)?, Facts::of(kernel));
    let mut r = Rebuild::new(kernel);
    r.copy_range(0..l.open.idx() + 1);
    let mut sources: FxHashMap<Value, Source> = FxHashMap::default();
    let mut found = false;
    for v in l.body().map(|i| Value(i as u32)) {
        let source = match kernel.op(v) {
            Op::Load { order: Order::Plain, buf, index } => loaded(&mut r, &facts, buf, index),
            Op::Ternary { op: TernaryOp::Where, x: cond, y, z }
                if variance.form(cond) == Form::Uniform =>
            {
                let new = r.get(cond);
                match (sources.get(&y).cloned(), sources.get(&z).cloned()) {
                    (Some(y), Some(z)) if y.buf == z.buf => {
                        let source = chosen(&mut r, new, y, z)?;
                        let load = source.load(&mut r)?;
                        r.set(v, load);
                        sources.insert(v, source);
                        found = true;
                        continue;
                    }
                    (Some(y), None) if is_zero(kernel, z) => Some(y.only(&mut r, new)),
                    (None, Some(z)) if is_zero(kernel, y) => {
                        let other = r.out.unary(UnaryOp::Not, new);
                        Some(z.only(&mut r, other))
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        if let Some(source) = source {
            sources.insert(v, source);
        }
        r.copy(v);
    }
    found.then(|| r.finish_from(l.end))
}

/// What a load of a buffer that nothing is stored to reads.
fn loaded(r: &mut Rebuild<'_>, facts: &Facts, buf: Value, index: Value) -> Option<Source> {
    let (index, conds) = r.src.unguarded(index);
    let fits = r.src.ty(index).dtype == DType::I64
        && matches!(r.src.op(buf), Op::Param { access: Access::Read, .. });
    let linear = facts.linear(index).into_owned();
    let allowed = conds.into_iter().fold(None, |allowed, cond| {
        let cond = r.get(cond);
        Some(both(r, allowed, cond))
    });
    fits.then_some(Source { buf, linear, more: None, allowed })
}

fn both(r: &mut Rebuild<'_>, allowed: Option<Value>, cond: Value) -> Value {
    allowed.map_or(cond, |a| r.out.binary(BinaryOp::And, a, cond))
}

/// The place `y` where the condition holds, else `z`.
fn chosen(r: &mut Rebuild<'_>, cond: Value, y: Source, z: Source) -> Option<Source> {
    let mut common = Linear::default();
    common.terms.extend(y.linear.terms.iter().copied().filter(|t| z.linear.terms.contains(t)));
    let rests = [&y, &z].map(|source| {
        let rest = source.linear.plus(&common, -1)?;
        sum(r, &rest, source.more)
    });
    let [Some(first), Some(second)] = rests else { return None };
    let more = r.out.select(cond, first, second);
    let allowed = match (y.allowed, z.allowed) {
        (None, None) => None,
        (y, z) => {
            let always = r.out.constant(Scalar::from(true));
            Some(r.out.select(cond, y.unwrap_or(always), z.unwrap_or(always)))
        }
    };
    Some(Source { buf: y.buf, linear: common, more: Some(more), allowed })
}

/// The new value of a sum of old ones, and of a new one.
fn sum(r: &mut Rebuild<'_>, linear: &Linear, more: Option<Value>) -> Option<Value> {
    let mut total = r.out.index(linear.constant);
    for &(v, factor) in &linear.terms {
        let v = r.try_get(v)?;
        let factor = r.out.index(factor);
        let term = r.out.binary(BinaryOp::Mul, v, factor);
        total = r.out.binary(BinaryOp::Add, total, term);
    }
    Some(more.map_or(total, |more| r.out.binary(BinaryOp::Add, total, more)))
}

impl Source {
    /// Allowed only where the condition holds, too.
    fn only(mut self, r: &mut Rebuild<'_>, cond: Value) -> Source {
        self.allowed = Some(both(r, self.allowed, cond));
        self
    }

    fn load(&self, r: &mut Rebuild<'_>) -> Option<Value> {
        let mut index = sum(r, &self.linear, self.more)?;
        if let Some(cond) = self.allowed {
            index = r.out.guard(index, cond);
        }
        let buf = r.get(self.buf);
        Some(r.out.load(buf, index))
    }
}

/// Whether a value is the one that is loaded where nothing may be.
fn is_zero(kernel: &Kernel, v: Value) -> bool {
    kernel.constant(v).is_some_and(|x| x.bits() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::{dce, samples, simplify::simplify};

    #[test]
    fn rows_of_one_buffer_are_read_once() {
        let kernel = simplify(&samples::rolled(5, 9, 4));
        let loads = |k: &Kernel| k.ops().iter().filter(|op| matches!(op, Op::Load { .. })).count();
        assert_eq!(loads(&kernel), 4);
        let site = sites(&kernel, &Caps::default()).pop().expect("rows are chosen");
        let redirected = (dce::PASS.apply)(&simplify(&apply(&kernel, &site)), &Site::whole());
        assert_eq!(loads(&redirected), 2, "{redirected}");
        assert!(sites(&redirected, &Caps::default()).is_empty(), "{redirected}");
    }
}
