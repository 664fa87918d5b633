//! Copying a kernel through a map of values: how every pass is written.
//!
//! A [`Rebuild`] walks the old kernel and emits into a [`Builder`], remembering for each old value
//! the new one that stands for it. A pass copies what it keeps and emits what it changes; it may
//! copy the same ops several times (unrolling), because a value of a region is never used outside
//! of it. The builder folds and shares on the way, so a rebuilt kernel is never worse than the old.

use crate::ir::{Builder, Kernel, Op, Type, Value};
use crate::ops::BinaryOp;
use crate::scalar::Scalar;
use std::ops::Range;

/// Marks an old value that has no new one yet.
const UNMAPPED: Value = Value(u32::MAX);

/// An old kernel, the new one so far, and the map between their values.
#[derive(Debug)]
pub struct Rebuild<'k> {
    /// The kernel being read.
    pub src: &'k Kernel,
    /// The kernel being written.
    pub out: Builder,
    map: Vec<Value>,
}

impl<'k> Rebuild<'k> {
    /// Starts with an empty kernel that takes the same arguments.
    pub fn new(src: &'k Kernel) -> Rebuild<'k> {
        Rebuild { src, out: src.rebuild(), map: vec![UNMAPPED; src.ops().len()] }
    }

    /// The new value that stands for `old`.
    pub fn get(&self, old: Value) -> Value {
        let new = self.map[old.idx()];
        debug_assert_ne!(new, UNMAPPED, "invariant: operands are copied before their uses");
        new
    }

    /// The new value that stands for `old`, if it was copied already.
    pub fn try_get(&self, old: Value) -> Option<Value> {
        Some(self.map[old.idx()]).filter(|&v| v != UNMAPPED)
    }

    /// Lets `new` stand for `old` from here on.
    pub fn set(&mut self, old: Value, new: Value) {
        self.map[old.idx()] = new;
    }

    /// The op that defines `old`, on new operands.
    pub fn mapped(&self, old: Value) -> Op {
        self.src.op(old).map(|v| self.get(v))
    }

    /// Copies one op.
    pub fn copy(&mut self, old: Value) -> Value {
        let new = self.out.emit(self.mapped(old), self.src.ty(old));
        self.set(old, new);
        new
    }

    /// The integer `n` in the dtype of an old value: the counter of a loop, most often.
    pub fn number(&mut self, like: Value, n: i64) -> Value {
        let dtype = self.src.ty(like).dtype;
        self.out.constant(Scalar::from_i64(dtype, n))
    }

    /// Opens a loop like the old one `open`, but for its length.
    pub fn open_loop(&mut self, open: Value, len: Value) -> Value {
        let op = match self.src.op(open) {
            Op::Loop { kind, axis, .. } => Op::Loop { kind, axis, len },
            _ => unreachable!("invariant: a loop's counter is a loop op"),
        };
        self.out.push(op, self.src.ty(open))
    }

    /// Copies the loop `open` for `len` of its iterations, from number `start` on.
    pub fn copy_part(&mut self, open: Value, body: Range<usize>, start: Value, len: Value) {
        let iteration = self.open_loop(open, len);
        let counter = self.out.binary(BinaryOp::Add, start, iteration);
        self.set(open, counter);
        self.copy_range(body);
        self.out.close();
    }

    /// Copies one op with another type (a scalar op made a vector op).
    pub fn copy_as(&mut self, old: Value, ty: Type) -> Value {
        let new = self.out.emit(self.mapped(old), ty);
        self.set(old, new);
        new
    }

    /// Copies a run of ops.
    pub fn copy_range(&mut self, range: Range<usize>) {
        for i in range {
            self.copy(Value(i as u32));
        }
    }

    /// Copies everything from position `from` to the end and gives the new kernel.
    pub fn finish_from(mut self, from: usize) -> Kernel {
        self.copy_range(from..self.src.ops().len());
        self.out.finish()
    }
}
