//! Computing single elements of a nest again, for counters of one's own choice.
//!
//! What a pass needs that gives the elements of a nest to other threads than the loops do: it sets
//! the counters and asks for values, which are copied with everything they need of the nest. Ops
//! outside of the nest are used as they are.

use super::loops::LoopInfo;
use super::rebuild::Rebuild;
use super::variance::{Form, Variance};
use crate::dtype::DType;
use crate::ir::{Kernel, Op, Type, Value};
use crate::ops::BinaryOp;
use crate::scalar::Scalar;
use rustc_hash::FxHashMap;

use BinaryOp::{Add, And, Div, Lt, Mul, Rem, Shl, Shr};

/// A kernel being rebuilt, and the values of a nest for the counters that are set.
pub(super) struct Elements<'k> {
    pub(super) r: Rebuild<'k>,
    /// The nest's outermost loop.
    root: Value,
    memo: FxHashMap<Value, Value>,
}

impl<'k> Elements<'k> {
    /// Copies what stands before the nest.
    pub(super) fn new(kernel: &'k Kernel, root: Value) -> Elements<'k> {
        let mut r = Rebuild::new(kernel);
        r.copy_range(0..root.idx());
        Elements { r, root, memo: FxHashMap::default() }
    }

    /// Whether a value stands before the nest.
    pub(super) fn is_outside(&self, v: Value) -> bool {
        v < self.root
    }

    /// Forgets all counters.
    pub(super) fn clear(&mut self) {
        self.memo.clear();
    }

    /// Lets `new` stand for the old `v`.
    pub(super) fn set(&mut self, v: Value, new: Value) {
        self.memo.insert(v, new);
    }

    /// Sets the counters of loops, outermost first, from their merged counter.
    pub(super) fn place(&mut self, loops: &[LoopInfo], merged: Value) {
        let counters = self.counters(loops, merged);
        self.place_each(loops, &counters);
    }

    /// The counters of loops, outermost first, from their merged counter.
    pub(super) fn counters(&mut self, loops: &[LoopInfo], merged: Value) -> Vec<Value> {
        let mut rest = merged;
        let mut counters = Vec::with_capacity(loops.len());
        for (i, l) in loops.iter().enumerate().rev() {
            let len = l.len.expect("invariant: loops of elements have constant lengths");
            counters.push(match i {
                _ if len == 1 => self.int(0),
                0 => rest,
                _ => self.op(Rem, rest, len),
            });
            if i > 0 && len > 1 {
                rest = self.op(Div, rest, len);
            }
        }
        counters.reverse();
        counters
    }

    /// Sets the counters of loops.
    pub(super) fn place_each(&mut self, loops: &[LoopInfo], counters: &[Value]) {
        for (l, &counter) in loops.iter().zip(counters) {
            let counter = self.r.out.cast(self.r.src.ty(l.open).dtype, counter);
            self.set(l.open, counter);
        }
    }

    /// Opens a branch that is taken where numbers are below their bounds, of those whose blocks of a size
    /// may stick out over it; gives whether there is one.
    pub(super) fn open_below(
        &mut self,
        numbers: impl IntoIterator<Item = (Value, i64, i64)>,
    ) -> bool {
        let mut inside: Option<Value> = None;
        for (x, bound, size) in numbers {
            if bound % size != 0 {
                let below = self.op(Lt, x, bound);
                let both = inside.map(|others| self.r.out.binary(And, others, below));
                inside = Some(both.unwrap_or(below));
            }
        }
        inside.map(|inside| self.r.out.open_if(inside)).is_some()
    }

    /// The value of `v` for the counters that are set.
    pub(super) fn eval(&mut self, v: Value) -> Value {
        if self.is_outside(v) {
            return self.r.get(v);
        }
        if let Some(&new) = self.memo.get(&v) {
            return new;
        }
        let (op, ty) = (self.r.src.op(v), self.r.src.ty(v));
        for x in op.operands() {
            let new = self.eval(x);
            self.set(x, new);
        }
        let new = self.r.out.emit(op.map(|x| self.memo[&x]), ty);
        self.set(v, new);
        new
    }
}

/// Several elements at once.
impl Elements<'_> {
    /// The values of `v` for neighbouring counters of a loop from the one that is set on; `v` is
    /// computed lane by lane. A vector that was set for a value is taken as it is.
    pub(super) fn eval_lanes(&mut self, variance: &Variance, v: Value, lanes: u8) -> Value {
        let set = self.memo.get(&v).filter(|&&new| self.r.out.ty(new).lanes == lanes);
        if let Some(&wide) = set {
            return wide;
        }
        if self.is_outside(v) || variance.form(v) == Form::Uniform {
            let scalar = self.eval(v);
            return self.r.out.splat(scalar, lanes);
        }
        let (op, ty) = (self.r.src.op(v), self.r.src.ty(v));
        if let Op::Load { buf, index, .. } = op {
            let (buf, index) = (self.eval(buf), self.eval(index));
            return self.r.out.load_vector(buf, index, lanes);
        }
        let mut wide = FxHashMap::default();
        for x in op.operands() {
            wide.insert(x, self.eval_lanes(variance, x, lanes));
        }
        self.r.out.emit(op.map(|x| wide[&x]), Type::vector(ty.dtype, lanes))
    }
}

/// Integers of 32 bits: positions in a block.
impl Elements<'_> {
    pub(super) fn int(&mut self, x: i64) -> Value {
        self.r.out.constant(Scalar::from_i64(DType::I32, x))
    }

    pub(super) fn op(&mut self, op: BinaryOp, x: Value, y: i64) -> Value {
        let y = self.int(y);
        self.r.out.binary(op, x, y)
    }

    pub(super) fn plus(&mut self, x: Value, y: i64) -> Value {
        if y == 0 { x } else { self.op(Add, x, y) }
    }

    pub(super) fn times(&mut self, x: Value, y: i64) -> Value {
        if y & (y - 1) == 0 { self.by_power(Shl, x, y) } else { self.op(Mul, x, y) }
    }

    /// `x / y` for a power of two.
    pub(super) fn shifted(&mut self, x: Value, y: i64) -> Value {
        self.by_power(Shr, x, y)
    }

    /// `x % y` for a power of two.
    pub(super) fn masked(&mut self, x: Value, y: i64) -> Value {
        self.op(And, x, y - 1)
    }

    fn by_power(&mut self, op: BinaryOp, x: Value, y: i64) -> Value {
        if y == 1 { x } else { self.op(op, x, y.ilog2().into()) }
    }
}
