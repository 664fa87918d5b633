//! How the values of a loop's body depend on the loop's counter.
//!
//! What `vectorize` and `jam` must know before they run several iterations at once: a value is
//! the same in all of them (uniform), an integer that grows by a constant (linear), or anything
//! else (varying). The analysis also finds the accumulators of a reduction, and says no where
//! iterations cannot be run together: control flow that depends on the counter, stores two
//! iterations would both make, atomics, barriers.

use super::facts::Facts;
use super::loops::LoopInfo;
use crate::affine::Linear;
use crate::ir::{Kernel, LoopKind, Op, Space, Value};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use smallvec::SmallVec;
use std::cell::OnceCell;

/// How a value depends on the counter of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The same in every iteration.
    Uniform,
    /// An integer that differs by this constant from one iteration to the next.
    Linear(i64),
    /// Anything else.
    Varying,
}

impl Form {
    /// By how much the value grows from one iteration to the next, if that is a constant.
    pub fn stride(self) -> Option<i64> {
        match self {
            Form::Uniform => Some(0),
            Form::Linear(stride) => Some(stride),
            Form::Varying => None,
        }
    }
}

/// A register that a serial loop combines values into: `acc = acc op x`.
#[derive(Clone, Copy, Debug)]
pub struct Accumulator {
    /// The storage, one element, declared outside the loop.
    pub alloc: Value,
    /// What combines.
    pub op: BinaryOp,
    /// The load of the old element.
    pub load: Value,
    /// The store of the new one.
    pub store: Value,
}

/// The result of the analysis.
#[derive(Debug)]
pub struct Variance {
    first: usize,
    forms: Vec<Form>,
    /// Accumulators; empty for a parallel loop.
    pub accumulators: Vec<Accumulator>,
    /// Storage declared in the body that holds varying values.
    pub widened: SmallVec<[Value; 4]>,
    facts: OnceCell<Facts>,
}

impl Variance {
    /// How `value` depends on the counter. Values from outside the loop do not.
    pub fn form(&self, value: Value) -> Form {
        match value.idx().checked_sub(self.first).and_then(|i| self.forms.get(i)) {
            Some(&form) => form,
            None => Form::Uniform,
        }
    }

    /// The accumulator whose load or store is `value`.
    pub fn accumulator(&self, value: Value) -> Option<&Accumulator> {
        self.accumulators.iter().find(|a| a.load == value || a.store == value)
    }

    /// Analyses a loop of scalar ops; `None` where its iterations cannot be run together.
    pub fn of(kernel: &Kernel, l: &LoopInfo) -> Option<Variance> {
        let has_vectors = l.body().any(|i| kernel.ty(Value(i as u32)).is_vector());
        if has_vectors { None } else { Variance::with_vectors(kernel, l) }
    }

    /// [`Variance::of`] for a loop that may hold vector ops.
    pub fn with_vectors(kernel: &Kernel, l: &LoopInfo) -> Option<Variance> {
        let accumulators = match l.kind {
            Some(LoopKind::Parallel) => Vec::new(),
            Some(LoopKind::Serial) => accumulators(kernel, l)?,
            Some(LoopKind::Group | LoopKind::Local) | None => return None,
        };
        let stored = stored_buffers(kernel, l);
        let mut variance = Variance {
            first: l.open.idx(),
            forms: vec![Form::Uniform; l.end - l.open.idx()],
            accumulators,
            widened: SmallVec::new(),
            facts: OnceCell::new(),
        };
        loop {
            let widened = variance.widened.len();
            variance.pass(kernel, l, &stored)?;
            if variance.widened.len() == widened {
                break;
            }
        }
        variance.check_stores(kernel, l).then_some(variance)
    }

    /// One pass over the body; repeated until no more storage is found to vary.
    fn pass(&mut self, k: &Kernel, l: &LoopInfo, stored: &[Value]) -> Option<()> {
        self.forms[0] = Form::Linear(1);
        for i in l.body() {
            let v = Value(i as u32);
            let form = match k.op(v) {
                Op::Atomic { .. } | Op::Barrier { .. } | Op::Shuffle { .. } => return None,
                // Iterations would leave an inner loop at different times.
                Op::Mma { .. } | Op::Break { .. } => return None,
                Op::Param { .. } | Op::Var { .. } | Op::Const { .. } => Form::Uniform,
                Op::Alloc { .. } | Op::End { .. } => Form::Uniform,
                Op::If { cond: x } | Op::Loop { len: x, .. } => {
                    if self.form(x) != Form::Uniform {
                        return None;
                    }
                    Form::Uniform
                }
                Op::Load { buf, index, .. } => {
                    if is_private(k, l, buf) && self.form(index) != Form::Uniform {
                        return None;
                    }
                    self.load_form(k, v, buf, index, stored)
                }
                Op::Store { buf, index, value, .. } => {
                    if is_private(k, l, buf) && self.accumulator(v).is_none() {
                        let vary = self.form(value) != Form::Uniform;
                        if buf < l.open || self.form(index) != Form::Uniform {
                            return None;
                        }
                        if vary && !self.widened.contains(&buf) {
                            self.widened.push(buf);
                        }
                    }
                    Form::Uniform
                }
                // A guard marks an access; as a number it would have to be copied, too.
                op if !matches!(op, Op::Guard { .. }) && uses_guard(k, op) => return None,
                op => pure_form(k, v, op, &mut |x| self.form(x)),
            };
            self.forms[i - self.first] = form;
        }
        Some(())
    }

    fn load_form(&self, k: &Kernel, v: Value, buf: Value, index: Value, stored: &[Value]) -> Form {
        if self.widened.contains(&buf) || self.accumulator(v).is_some() {
            return Form::Varying;
        }
        let rewritten = stored.contains(&buf);
        let mut index = index;
        while let Op::Guard { index: inner, cond } = k.op(index) {
            if self.form(cond) != Form::Uniform {
                return Form::Varying;
            }
            index = inner;
        }
        if self.form(index) == Form::Uniform && !rewritten { Form::Uniform } else { Form::Varying }
    }

    /// Whether no two iterations store to one element (as far as the index tells: iterations of a
    /// parallel loop are independent by definition, those of a serial one must be seen to be).
    fn check_stores(&self, k: &Kernel, l: &LoopInfo) -> bool {
        let stores = l.body().map(|i| k.op(Value(i as u32)));
        for op in stores {
            let Op::Store { buf, index, .. } = op else { continue };
            if is_private(k, l, buf) {
                continue;
            }
            match self.form(index) {
                Form::Uniform => return false,
                Form::Linear(_) => {}
                Form::Varying if l.kind == Some(LoopKind::Parallel) => {}
                Form::Varying => return false,
            }
        }
        l.kind == Some(LoopKind::Parallel) || self.stores_commute(k, l)
    }

    fn facts(&self, k: &Kernel) -> &Facts {
        self.facts.get_or_init(|| Facts::of(k))
    }

    /// Whether the absolute value of an integer is known to be below a limit.
    pub fn is_below(&self, k: &Kernel, v: Value, limit: i64) -> bool {
        let known = self.facts(k).interval(v);
        known.is_some_and(|(low, high)| -limit < low && high < limit)
    }

    /// Whether the stores to buffers by a serial loop, each of which is known to touch another element
    /// in every iteration, may be made in another order: no buffer is loaded from, none is stored to
    /// twice but at elements that differ, and none by an inner loop.
    fn stores_commute(&self, k: &Kernel, l: &LoopInfo) -> bool {
        let stored = stored_buffers(k, l);
        let is_once = (1..stored.len()).all(|i| !stored[..i].contains(&stored[i]));
        let loads = l.body().any(
            |i| matches!(k.op(Value(i as u32)), Op::Load { buf, .. } if stored.contains(&buf)),
        );
        stored.is_empty() || l.innermost && !loads && (is_once || self.stores_differ(k, l))
    }

    /// Whether no two stores of a loop touch one element, in whatever iterations: their indices take the
    /// same steps, and the distance between them is none of these or longer than all.
    fn stores_differ(&self, k: &Kernel, l: &LoopInfo) -> bool {
        let facts = self.facts(k);
        let stores = l.body().filter_map(|i| match k.op(Value(i as u32)) {
            Op::Store { buf, index, .. } if !is_private(k, l, buf) => {
                Some((buf, facts.linear(index)))
            }
            _ => None,
        });
        let stores: Vec<_> = stores.collect();
        stores.iter().enumerate().all(|(i, (buf, index))| {
            let step = index.coefficient(l.open);
            stores[..i].iter().filter(|other| other.0 == *buf).all(|(_, other)| {
                let Some(distance) = index.plus(other, -1).filter(|d| d.terms.is_empty()) else {
                    return false;
                };
                let steps = distance.constant.checked_rem(step).filter(|&rest| rest == 0);
                match steps.map(|_| (distance.constant / step).abs()) {
                    Some(steps) => steps > 0 && l.len.is_some_and(|n| steps >= n),
                    None => step != 0,
                }
            })
        })
    }
}

/// By how much the result of an integer op grows with something, given by how much its operands do;
/// `None` where that is no constant.
pub(crate) fn slope(
    k: &Kernel,
    op: Op,
    mut slope: impl FnMut(Value) -> Option<i64>,
) -> Option<i64> {
    let mut form = |x: Value| -> Option<Linear<()>> {
        Some(match k.constant(x) {
            Some(c) => Linear::constant(c.to_i64()),
            // A value that does not grow is no number all the same.
            None => Linear::term((), slope(x)?),
        })
    };
    match op {
        Op::Binary { op, x, y } => {
            Linear::binary(op, &form(x)?, &form(y)?).map(|sum| sum.coefficient(()))
        }
        Op::Unary { op: UnaryOp::Neg, x } => form(x)?.scaled(-1).map(|sum| sum.coefficient(())),
        _ => None,
    }
}

/// The form of a pure op's result, by those of its operands.
pub(crate) fn pure_form(k: &Kernel, v: Value, op: Op, form: &mut dyn FnMut(Value) -> Form) -> Form {
    if let Op::Guard { index, .. } = op {
        return form(index);
    }
    if op.operands().all(|x| form(x) == Form::Uniform) {
        return Form::Uniform;
    }
    if !k.ty(v).dtype.is_int() || k.ty(v).is_vector() {
        return Form::Varying;
    }
    let stride = match op {
        Op::Cast { x } if k.ty(x).dtype.is_int() => {
            let narrows = k.ty(v).dtype.bits() <= k.ty(x).dtype.bits();
            form(x).stride().filter(|_| narrows)
        }
        op => slope(k, op, |x| form(x).stride()),
    };
    match stride {
        Some(0) => Form::Uniform,
        Some(s) => Form::Linear(s),
        None => Form::Varying,
    }
}

fn uses_guard(k: &Kernel, op: Op) -> bool {
    match op {
        Op::Load { .. } | Op::Store { .. } => false,
        op => op.operands().any(|x| matches!(k.op(x), Op::Guard { .. })),
    }
}

/// Whether each iteration has this storage to itself, or combines into it, so that accesses do not
/// choose among elements by the counter. Buffers are not, nor is an array declared outside.
pub(crate) fn is_private(k: &Kernel, l: &LoopInfo, buf: Value) -> bool {
    matches!(k.op(buf), Op::Alloc { .. }) && !is_array(k, l, buf)
}

/// Whether this is a register array declared outside of a loop, which is walked along like a buffer.
fn is_array(k: &Kernel, l: &LoopInfo, buf: Value) -> bool {
    buf < l.open && matches!(k.op(buf), Op::Alloc { space: Space::Register, len: 2.. })
}

/// The buffers and arrays the loop stores to.
fn stored_buffers(k: &Kernel, l: &LoopInfo) -> SmallVec<[Value; 4]> {
    let stored = |i: usize| match k.op(Value(i as u32)) {
        Op::Store { buf, .. } | Op::Atomic { buf, .. } if !is_private(k, l, buf) => Some(buf),
        _ => None,
    };
    l.body().filter_map(stored).collect()
}

/// The accumulators of a serial loop; `None` if it stores to storage in another way.
pub fn accumulators(k: &Kernel, l: &LoopInfo) -> Option<Vec<Accumulator>> {
    let mut list: SmallVec<[Accesses; 4]> = SmallVec::new();
    for i in l.body() {
        let v = Value(i as u32);
        let (alloc, is_store) = match k.op(v) {
            Op::Load { buf, .. } => (buf, false),
            Op::Store { buf, .. } => (buf, true),
            _ => continue,
        };
        if alloc > l.open || !is_private(k, l, alloc) {
            continue;
        }
        let known = list.iter().position(|a| a.alloc == alloc);
        let index = known.unwrap_or_else(|| {
            list.push(Accesses { alloc, loads: SmallVec::new(), stores: SmallVec::new() });
            list.len() - 1
        });
        let of_kind = if is_store { &mut list[index].stores } else { &mut list[index].loads };
        of_kind.push(v);
    }
    let stored = list.iter().filter(|a| !a.stores.is_empty());
    stored.map(|a| accumulator(k, l, a)).collect()
}

/// The accesses in a loop to one storage declared outside.
struct Accesses {
    alloc: Value,
    loads: SmallVec<[Value; 2]>,
    stores: SmallVec<[Value; 2]>,
}

fn accumulator(k: &Kernel, l: &LoopInfo, accesses: &Accesses) -> Option<Accumulator> {
    let alloc = accesses.alloc;
    let (&[load], &[store]) = (&accesses.loads[..], &accesses.stores[..]) else { return None };
    let Op::Alloc { space: Space::Register, len: 1 } = k.op(alloc) else { return None };
    let Op::Store { value, .. } = k.op(store) else { return None };
    // Partial results that are used besides (a running sum) need the order of iterations.
    let operands = || l.body().flat_map(|i| k.op(Value(i as u32)).operands());
    let is_used_once = |v: Value| operands().filter(|&x| x == v).count() == 1;
    if load > store || !is_used_once(load) || !is_used_once(value) {
        return None;
    }
    let op = match k.op(value) {
        Op::Binary { op, x, y } if op.is_associative() && (x == load) != (y == load) => op,
        Op::Ternary { op: TernaryOp::MulAdd, x, y, z } if z == load && x != load && y != load => {
            BinaryOp::Add
        }
        _ => return None,
    };
    Some(Accumulator { alloc, op, load, store })
}
