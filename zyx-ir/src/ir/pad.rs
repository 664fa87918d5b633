//! Kernels with loops that are longer than they have to be, so that several sizes have the same.
//!
//! Iterations that were added load zeros (or whatever does not depend on them), leave registers that outlive them as
//! they are and store nothing. Sums stay sums: what is added is nothing, and of products both factors are zero.

use super::kernel::{Builder, Kernel};
use super::op::{Op, Type, Value};
use crate::ops::BinaryOp;
use crate::scalar::Scalar;
use rustc_hash::FxHashMap;

/// How long a loop of `n` iterations is made where sizes share programs, and what strategies take it to be, so that
/// sizes have the same ones. Few lengths remain, of which each is at most an eighth or 31 iterations longer, or a quarter
/// where nothing is added up: those iterations cost little.
pub(crate) fn padded_len(n: i64, sums: bool) -> i64 {
    let step = match n {
        ..=8 => return n,
        9..=32 => 8,
        33..=128 => 16,
        _ if sums => 32.max(1 << (n.ilog2() - 3)),
        _ => 1 << (n.ilog2() - 2),
    };
    (n as u64).checked_next_multiple_of(step).map_or(n, |longer| longer as i64)
}

/// A kernel rebuilt with longer loops.
pub(super) struct Pad<'k> {
    old: &'k Kernel,
    out: Builder,
    map: Vec<Value>,
    /// For each old value the longer loops that it depends on, a bit each.
    depends: Vec<u64>,
    /// Old values that combine what a register has with another value and are stored there.
    sums: FxHashMap<Value, Sum>,
    /// Old products that are added to a register, and are nothing else that a register has.
    products: FxHashMap<Value, Value>,
    /// The sums that leave their register as it is in iterations that were added, by these loops.
    masked: FxHashMap<Value, (Value, u64)>,
    /// The products that are zero in iterations that were added, by these loops.
    zeroed: FxHashMap<Value, u64>,
    /// The regions that are open, with the longer loops among them.
    open: Vec<(Value, Option<Longer>)>,
}

/// What a register has, as an old value loads it, combined with another value.
#[derive(Clone, Copy)]
struct Sum {
    register: Value,
    load: Value,
    other: Value,
}

/// The value of a store, if it is such a sum of the register.
fn sum_of(kernel: &Kernel, store: Op) -> Option<(Value, Sum)> {
    let Op::Store { buf: register, index, value, .. } = store else { return None };
    let Op::Binary { op, x, y } = kernel.op(value) else { return None };
    op.identity(kernel.ty(value).dtype)?;
    let same = |other: Value| {
        let known = kernel.constant(index);
        index == other || known.is_some() && known == kernel.constant(other)
    };
    let is_old = |x: Value| match kernel.op(x) {
        Op::Load { buf, index, .. } => buf == register && same(index),
        _ => false,
    };
    let (load, other) = if is_old(x) { (x, y) } else { (y, x) };
    let own = matches!(kernel.op(register), Op::Alloc { .. });
    (own && is_old(x) != is_old(y)).then_some((value, Sum { register, load, other }))
}

/// Products that are added to registers, with these.
fn products_in(kernel: &Kernel, sums: &FxHashMap<Value, Sum>) -> FxHashMap<Value, Value> {
    let product = |(&value, sum): (&Value, &Sum)| {
        let adds = matches!(kernel.op(value), Op::Binary { op: BinaryOp::Add, .. });
        let is_product = matches!(kernel.op(sum.other), Op::Binary { op: BinaryOp::Mul, .. });
        let is_carried = sums.contains_key(&sum.other);
        (adds && is_product && !is_carried).then_some((sum.other, sum.register))
    };
    sums.iter().filter_map(product).collect()
}

/// A loop that is longer.
#[derive(Clone, Copy)]
struct Longer {
    bit: u64,
    /// Whether the iteration is one of the kernel's own.
    own: Value,
}

impl<'k> Pad<'k> {
    /// Nothing of `old` yet, into `out`.
    pub(super) fn new(old: &'k Kernel, out: Builder) -> Pad<'k> {
        let sums: FxHashMap<Value, Sum> =
            old.iter().filter_map(|(_, op, _)| sum_of(old, op)).collect();
        let products = products_in(old, &sums);
        Pad {
            old,
            out,
            map: Vec::with_capacity(old.ops().len()),
            depends: Vec::with_capacity(old.ops().len()),
            sums,
            products,
            masked: FxHashMap::default(),
            zeroed: FxHashMap::default(),
            open: Vec::new(),
        }
    }

    pub(super) fn finish(self) -> Kernel {
        self.out.finish()
    }

    /// The next op of the old kernel, a literal, is this one.
    pub(super) fn literal(&mut self, x: Scalar) {
        let new = self.out.constant(x);
        self.map.push(new);
        self.depends.push(0);
    }

    /// Opens the next op of the old kernel, a loop, which is longer now.
    pub(super) fn open_loop(&mut self, old: Value, longer: i64) {
        let (op, ty) = (self.old.op(old), self.old.ty(old));
        let Op::Loop { kind, axis, len } = op else { return self.copy(old, op, ty) };
        let len = self.map[len.idx()];
        let all = self.out.constant(Scalar::from_i64(self.out.ty(len).dtype, longer));
        let counter = self.out.push(Op::Loop { kind, axis, len: all }, ty);
        let own = self.out.binary(BinaryOp::Lt, counter, len);
        // Values that depend on a loop are used within it only.
        let bit = 1 << self.open.iter().filter(|(_, longer)| longer.is_some()).count();
        self.depends.push(bit);
        self.open.push((old, Some(Longer { bit, own })));
        self.map.push(counter);
    }

    /// Whether the iteration is one of the kernel's own, by these of the loops; `None` if it always is.
    fn own(&mut self, bits: u64) -> Option<Value> {
        let conds = self.open.iter().filter_map(|(_, longer)| *longer);
        let conds: Vec<Value> = conds.filter(|l| bits & l.bit != 0).map(|l| l.own).collect();
        conds.into_iter().reduce(|all, cond| self.out.binary(BinaryOp::And, all, cond))
    }

    /// Copies any other op, the next one of the old kernel.
    pub(super) fn copy(&mut self, value: Value, op: Op, ty: Type) {
        let is_param = |buf: Value| matches!(self.old.op(buf), Op::Param { .. });
        let depends = op.operands().fold(0, |bits, x| bits | self.depends[x.idx()]);
        self.depends.push(depends);
        let mut new = op.map(|x| self.map[x.idx()]);
        match (op, &mut new) {
            // What does not depend on a loop is in bounds in all of its iterations.
            (Op::Load { index: at, .. }, Op::Load { index, .. }) => {
                *index = self.guarded(*index, self.depends[at.idx()]);
            }
            (Op::Store { buf, .. }, Op::Store { index, .. }) if is_param(buf) => {
                *index = self.guarded(*index, u64::MAX);
            }
            (Op::Atomic { buf, .. }, Op::Atomic { index, .. }) if is_param(buf) => {
                *index = self.guarded(*index, u64::MAX);
            }
            (Op::Store { buf, value, .. }, Op::Store { index, .. }) => {
                // A register that outlives iterations stays as it is in those that were added.
                let bits = self.around(buf);
                if self.masked.get(&value) != Some(&(buf, bits)) {
                    *index = self.guarded(*index, bits);
                }
            }
            (Op::Binary { op, x, y }, Op::Binary { x: a, y: b, .. }) => {
                if let Some(&register) = self.products.get(&value) {
                    // It stays a product: of zeros.
                    (*a, *b) = (self.or_zero(register, x), self.or_zero(register, y));
                    self.zeroed.insert(value, self.around(register));
                }
                if let Some(sum) = self.sums.get(&value).copied()
                    && self.is_of_iteration(sum)
                {
                    let added = self.added(op, sum);
                    *(if x == sum.other { a } else { b }) = added;
                    self.masked.insert(value, (sum.register, self.around(sum.register)));
                }
            }
            (Op::Loop { .. } | Op::If { .. }, _) => self.open.push((value, None)),
            (Op::End { .. }, _) => drop(self.open.pop()),
            _ => {}
        }
        let new = self.out.emit(new, ty);
        self.map.push(new);
    }

    /// An index that is used in the kernel's own iterations only, by these of the loops.
    fn guarded(&mut self, index: Value, bits: u64) -> Value {
        let Some(own) = self.own(bits) else { return index };
        match self.out.op(index) {
            Op::Guard { index, cond } => {
                let both = self.out.binary(BinaryOp::And, cond, own);
                self.out.guard(index, both)
            }
            _ => self.out.guard(index, own),
        }
    }

    /// A factor of what is added to a register: zero in an iteration that was added.
    fn or_zero(&mut self, register: Value, factor: Value) -> Value {
        let (bits, new) = (self.around(register), self.map[factor.idx()]);
        match self.own(bits) {
            Some(own) if !self.is_zero(factor, bits) => {
                let zero = Scalar::from_i64(self.out.ty(new).dtype, 0);
                let zero = self.out.constant(zero);
                self.out.select(own, new, zero)
            }
            _ => new,
        }
    }

    /// The longer loops that are open and run within the life of a register.
    fn around(&self, register: Value) -> u64 {
        let within = |&(open, longer): &(Value, Option<Longer>)| longer.filter(|_| register < open);
        self.open.iter().filter_map(within).fold(0, |bits, longer| bits | longer.bit)
    }

    /// Whether what the register has is loaded in each iteration of the longer loops, not in front of one.
    fn is_of_iteration(&self, sum: Sum) -> bool {
        let inside = |&(open, longer): &(Value, Option<Longer>)| {
            longer.is_none() || open < sum.register || open < sum.load
        };
        self.open.iter().all(inside)
    }

    /// What is combined with a register: in an iteration that was added nothing.
    fn added(&mut self, op: BinaryOp, Sum { register, other, .. }: Sum) -> Value {
        let (bits, new) = (self.around(register), self.map[other.idx()]);
        let Some(own) = self.own(bits) else { return new };
        if op == BinaryOp::Add && self.is_zero(other, bits) {
            return new;
        }
        let identity = op.identity(self.out.ty(new).dtype);
        let identity = identity.expect("invariant: sums have identities");
        let identity = self.out.constant(identity);
        self.out.select(own, new, identity)
    }

    /// Whether an old value is zero where the iteration is not the kernel's own by these of the loops, any of them:
    /// what is loaded there is, and products of that.
    fn is_zero(&self, value: Value, bits: u64) -> bool {
        match self.old.op(value) {
            Op::Load { buf, index, .. } => {
                let is_param = matches!(self.old.op(buf), Op::Param { .. });
                is_param && bits & !self.depends[index.idx()] == 0
            }
            Op::Cast { x } => self.is_zero(x, bits),
            Op::Binary { op: BinaryOp::Mul, x, y } => {
                let zeroed = self.zeroed.get(&value).is_some_and(|own| bits & !own == 0);
                zeroed || self.is_zero(x, bits) && self.is_zero(y, bits)
            }
            _ => false,
        }
    }
}
