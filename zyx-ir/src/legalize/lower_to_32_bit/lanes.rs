//! Vectors taken apart, for languages that compute on scalars.
//!
//! What is left of vectors is an access to two or four consecutive words of a buffer at once: such a
//! load is followed by an `Extract` for each lane, such a store preceded by `Concat`s. Private storage
//! of vectors becomes an array per lane, shared storage a longer array.
//!
//! Guards are taken apart besides: a guarded load reads element 0 where the guard does not hold and
//! selects zero, since every buffer has an element and a selection is cheaper than a branch. Stores and
//! atomics keep one guard, of all conditions together.
//!
//! An atomic outside of local loops is executed by the first thread of a group. If the old element is
//! used, all threads read it from shared storage.

use crate::caps::Caps;
use crate::ir::{Builder, Kernel, LoopKind, Op, Order, Ranges, Regions, Space, Type, Value};
use crate::ops::BinaryOp;
use crate::scalar::Scalar;

/// The kernel on scalars.
pub(super) fn apart(kernel: &Kernel, caps: &Caps) -> Kernel {
    let (ranges, regions) = (Ranges::of(kernel), Regions::of(kernel));
    let (out, lanes) = (kernel.rebuild(), Vec::with_capacity(kernel.ops().len()));
    let mut apart = Apart { kernel, caps, ranges, regions, out, lanes };
    for (value, op, ty) in kernel.iter() {
        let lanes = apart.op(value, op, ty);
        apart.lanes.push(lanes);
    }
    apart.out.finish()
}

struct Apart<'k> {
    kernel: &'k Kernel,
    caps: &'k Caps,
    ranges: Ranges<'k>,
    regions: Regions,
    out: Builder,
    /// The lanes of each old value; of storage its arrays.
    lanes: Vec<Vec<Value>>,
}

impl Apart<'_> {
    /// Lane `lane` of an old value, or the only one.
    fn lane(&self, old: Value, lane: u8) -> Value {
        let lanes = &self.lanes[old.idx()];
        lanes[usize::from(lane) % lanes.len()]
    }

    fn op(&mut self, value: Value, op: Op, ty: Type) -> Vec<Value> {
        let scalar = Type::scalar(ty.dtype);
        match op {
            Op::Splat { x } => vec![self.lane(x, 0)],
            Op::Extract { x, lane } => vec![self.lane(x, lane)],
            Op::Guard { index, .. } => self.lanes[index.idx()].clone(),
            Op::Concat { x, y } => [x, y].map(|v| self.all(v)).concat(),
            Op::Lanes => {
                let lane = |n: u8| self.out.constant(Scalar::from_i64(ty.dtype, n.into()));
                (0..ty.lanes).map(lane).collect()
            }
            Op::Fold { op, x } => {
                let mut lanes = self.all(x);
                while lanes.len() > 1 {
                    let upper = lanes.split_off(lanes.len().div_ceil(2));
                    for (low, high) in lanes.iter_mut().zip(upper) {
                        *low = self.out.binary(op, *low, high);
                    }
                }
                lanes
            }
            Op::Alloc { space: Space::Shared, len } => {
                vec![self.out.alloc(Space::Shared, scalar, len * u32::from(ty.lanes))]
            }
            Op::Load { order, buf, index } => self.load(order, buf, index, ty),
            Op::Store { order, buf, index, value } => {
                self.store(order, buf, index, value);
                Vec::new()
            }
            Op::Atomic { op, order, buf, index, value: x } => {
                let each = 0..ty.lanes;
                let old = each.map(|lane| {
                    let index = self.guarded(buf, index, ty, lane);
                    let (buf, value) = (self.lane(buf, 0), self.lane(x, lane));
                    self.out.push(Op::Atomic { op, order, buf, index, value }, scalar)
                });
                let old: Vec<Value> = old.collect();
                match self.is_handed(value) {
                    true => old.into_iter().map(|x| self.hand_on(x)).collect(),
                    false => old,
                }
            }
            Op::End { .. } => {
                self.out.close();
                Vec::new()
            }
            _ => {
                let each = 0..ty.lanes;
                each.map(|lane| self.out.emit(op.map(|x| self.lane(x, lane)), scalar)).collect()
            }
        }
    }

    /// All lanes of an old value.
    fn all(&self, old: Value) -> Vec<Value> {
        (0..self.kernel.ty(old).lanes).map(|lane| self.lane(old, lane)).collect()
    }

    /// The index of lane `lane` of an access of type `ty`, and the condition under which it happens.
    fn place(&mut self, buf: Value, index: Value, ty: Type, lane: u8) -> (Value, Option<Value>) {
        let (plain, conds) = self.kernel.unguarded(index);
        let conds = conds.into_iter().map(|cond| self.lane(cond, lane)).collect::<Vec<_>>();
        let cond = conds.into_iter().reduce(|all, one| self.out.binary(BinaryOp::And, all, one));
        let index = self.lane(plain, lane);
        let cell = self.kernel.ty(buf).lanes;
        let number = |n: u8| Scalar::from_i64(self.kernel.ty(plain).dtype, n.into());
        let index = match self.kernel.op(buf) {
            Op::Alloc { space: Space::Shared, .. } if cell > 1 => {
                let cell = self.out.constant(number(cell));
                self.out.binary(BinaryOp::Mul, index, cell)
            }
            Op::Alloc { .. } if cell > 1 => return (index, cond),
            _ if self.kernel.ty(plain).is_vector() || ty.lanes == 1 => return (index, cond),
            _ => index,
        };
        let lane = self.out.constant(number(lane));
        (self.out.binary(BinaryOp::Add, index, lane), cond)
    }

    /// The index of an access that keeps its guard.
    fn guarded(&mut self, buf: Value, index: Value, ty: Type, lane: u8) -> Value {
        let (index, cond) = self.place(buf, index, ty, lane);
        cond.map_or(index, |cond| self.out.guard(index, cond))
    }

    /// Whether a device accesses all lanes at once: consecutive words of a buffer from a multiple of
    /// their number on, guarded together. Buffers begin at such multiples.
    fn is_whole(&self, order: Order, buf: Value, index: Value, ty: Type) -> bool {
        let (plain, conds) = self.kernel.unguarded(index);
        let multiple = self.ranges.get(plain).multiple_of;
        matches!(self.kernel.op(buf), Op::Param { .. })
            && order != Order::Relaxed
            && matches!(ty.lanes, 2 | 4)
            && ty.dtype.bits() == 32
            && ty.bytes() <= self.caps.vector_bytes
            && conds.iter().all(|&cond| !self.kernel.ty(cond).is_vector())
            && !self.kernel.ty(plain).is_vector()
            && multiple.is_multiple_of(ty.lanes.into())
    }

    /// The index of a load, which is in bounds whatever the condition, and that.
    fn safe(&mut self, buf: Value, index: Value, ty: Type, lane: u8) -> (Value, Option<Value>) {
        let (index, cond) = self.place(buf, index, ty, lane);
        let zero = self.out.constant(Scalar::from_i64(self.out.ty(index).dtype, 0));
        (cond.map_or(index, |cond| self.out.select(cond, index, zero)), cond)
    }

    fn load(&mut self, order: Order, buf: Value, index: Value, ty: Type) -> Vec<Value> {
        let scalar = Type::scalar(ty.dtype);
        let zero = self.out.constant(Scalar::from_bits(ty.dtype, 0));
        let or_zero = |b: &mut Builder, cond: Option<Value>, x| match cond {
            Some(cond) => b.select(cond, x, zero),
            None => x,
        };
        let each = 0..ty.lanes;
        if self.is_whole(order, buf, index, ty) {
            let ((index, cond), buf) = (self.safe(buf, index, ty, 0), self.lane(buf, 0));
            let x = self.out.push(Op::Load { order, buf, index }, ty);
            let lane = |lane| {
                let x = self.out.emit(Op::Extract { x, lane }, scalar);
                or_zero(&mut self.out, cond, x)
            };
            return each.map(lane).collect();
        }
        let lane = |lane| {
            let ((mut index, cond), buf) = (self.safe(buf, index, ty, lane), self.lane(buf, lane));
            if let (Order::AcquireSpin, Some(cond)) = (order, cond) {
                // Nobody may write what those without a condition would wait for.
                index = self.out.guard(index, cond);
            }
            let x = self.out.push(Op::Load { order, buf, index }, scalar);
            or_zero(&mut self.out, cond, x)
        };
        each.map(lane).collect()
    }

    fn store(&mut self, order: Order, buf: Value, index: Value, x: Value) {
        let ty = self.kernel.ty(x);
        if self.is_whole(order, buf, index, ty) {
            let (index, mut parts) = (self.guarded(buf, index, ty, 0), self.all(x));
            while parts.len() > 1 {
                let pair = |pair: &[Value]| {
                    let (x, y) = (pair[0], pair[1]);
                    let lanes = 2 * self.out.ty(x).lanes;
                    self.out.emit(Op::Concat { x, y }, Type { lanes, ..ty })
                };
                parts = parts.chunks(2).map(pair).collect();
            }
            let buf = self.lane(buf, 0);
            self.out.push(Op::Store { order, buf, index, value: parts[0] }, ty);
            return;
        }
        for lane in 0..ty.lanes {
            let index = self.guarded(buf, index, ty, lane);
            let (buf, value) = (self.lane(buf, lane), self.lane(x, lane));
            self.out.push(Op::Store { order, buf, index, value }, Type::scalar(ty.dtype));
        }
    }

    /// Whether the first thread of a group executes an atomic for others that use the result.
    fn is_handed(&self, atomic: Value) -> bool {
        let is_local = |v| matches!(self.kernel.op(v), Op::Loop { kind: LoopKind::Local, .. });
        !self.regions.enclosing(atomic).any(is_local)
            && self.kernel.iter().any(|(v, ..)| is_local(v))
            && self.kernel.ops().iter().flat_map(Op::operands).any(|v| v == atomic)
    }

    /// What the first thread of a group has got, for all of its threads.
    fn hand_on(&mut self, x: Value) -> Value {
        let shared = self.out.alloc(Space::Shared, self.out.ty(x), 1);
        let origin = self.out.index(0);
        self.out.store(shared, origin, x);
        self.out.load(shared, origin)
    }
}
