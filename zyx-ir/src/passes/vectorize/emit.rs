//! Emits one vector iteration: the body of a loop for as many consecutive counters as there are
//! lanes, with or without a mask of lanes that take part.

use super::*;

/// What stands for an old value while a vector iteration is emitted. The map of the
/// [`Rebuild`] holds its scalar, which for a linear value is that of lane 0.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lifted {
    /// The scalar of the map holds for all lanes.
    Scalar,
    /// Lane `l` holds the scalar of the map plus `l` times this stride.
    Linear(i64),
    /// The map holds a vector.
    Vector,
}

/// Where an access is made.
#[derive(Clone, Copy)]
struct Condition {
    /// For all lanes at once.
    all: Option<Value>,
    /// For each lane.
    lanes: Option<Value>,
}

/// Emission of vector iterations of one loop.
pub(super) struct Emit<'k, 'v> {
    pub(super) rebuild: Rebuild<'k>,
    pub(super) open: Value,
    l: &'v LoopInfo,
    variance: &'v Variance,
    lanes: u8,
}

impl<'k, 'v> Emit<'k, 'v> {
    pub(super) fn new(
        rebuild: Rebuild<'k>,
        l: &'v LoopInfo,
        variance: &'v Variance,
        lanes: u8,
    ) -> Emit<'k, 'v> {
        Emit { rebuild, open: l.open, l, variance, lanes }
    }

    /// The vector 0, 1, 2, … of `dtype`.
    pub(super) fn lane_numbers(&mut self, dtype: DType) -> Value {
        self.rebuild.out.emit(Op::Lanes, Type::vector(dtype, self.lanes))
    }

    /// Emits the body with lane 0 at counter `base`.
    pub(super) fn body(&mut self, base: Value, mask: Option<Value>) {
        self.rebuild.set(self.open, base);
        for i in self.l.body() {
            self.op(Value(i as u32), mask);
        }
    }

    fn is_private(&self, buf: Value) -> bool {
        is_private(self.rebuild.src, self.l, buf)
    }

    fn lifted(&self, v: Value) -> Lifted {
        match self.variance.form(v) {
            Form::Uniform => Lifted::Scalar,
            Form::Linear(s) => Lifted::Linear(s),
            Form::Varying => Lifted::Vector,
        }
    }

    fn op(&mut self, v: Value, mask: Option<Value>) {
        let k = self.rebuild.src;
        let ty = k.ty(v);
        let wide = Type::vector(ty.dtype, self.lanes);
        match k.op(v) {
            Op::Alloc { .. } if self.variance.widened.contains(&v) => {
                self.rebuild.copy_as(v, wide);
            }
            // Only an access uses a guard; it is rebuilt there.
            Op::Guard { .. } => {}
            Op::Load { buf, index, .. } => self.load(v, buf, index, mask),
            Op::Store { buf, index, value, .. } => self.store(v, buf, index, value, mask),
            _ if self.lifted(v) != Lifted::Vector => {
                self.rebuild.copy(v);
            }
            op => {
                let new = match op {
                    Op::Binary { x, y, .. } => self.lane_compare(op, x, y),
                    _ => None,
                };
                let new = new.unwrap_or_else(|| {
                    let op = op.map(|x| self.vector(x));
                    self.rebuild.out.emit(op, wide)
                });
                self.rebuild.set(v, new);
            }
        }
    }

    /// The vector of all lanes of an old value.
    fn vector(&mut self, old: Value) -> Value {
        let new = self.rebuild.get(old);
        match self.lifted(old) {
            Lifted::Vector => new,
            Lifted::Scalar => self.rebuild.out.splat(new, self.lanes),
            Lifted::Linear(stride) => {
                let dtype = self.rebuild.src.ty(old).dtype;
                let lanes = self.lane_numbers(dtype);
                let out = &mut self.rebuild.out;
                let stride = out.constant(Scalar::from_i64(dtype, stride));
                let offsets = out.binary(BinaryOp::Mul, lanes, stride);
                out.binary(BinaryOp::Add, new, offsets)
            }
        }
    }

    /// Index and condition of an access: what guards it in the old kernel and the mask. A guard that
    /// is the same for all lanes stays a scalar: devices branch around the access, where a vector of
    /// masked lanes at an address that is none may cost them hundreds of cycles.
    fn access(&mut self, index: Value, mask: Option<Value>) -> (Value, Condition) {
        let mut index = index;
        let mut cond = Condition { all: None, lanes: mask };
        while let Op::Guard { index: inner, cond: c } = self.rebuild.src.op(index) {
            let (uniform, c) = match self.lifted(c) {
                Lifted::Scalar => (true, self.rebuild.get(c)),
                _ => (false, self.vector(c)),
            };
            let side = if uniform { &mut cond.all } else { &mut cond.lanes };
            *side = Some(match *side {
                Some(before) => self.rebuild.out.binary(BinaryOp::And, before, c),
                None => c,
            });
            index = inner;
        }
        (index, cond)
    }

    fn guarded(&mut self, index: Value, cond: Condition) -> Value {
        [cond.all, cond.lanes]
            .into_iter()
            .flatten()
            .fold(index, |index, cond| self.rebuild.out.guard(index, cond))
    }

    fn load(&mut self, v: Value, buf: Value, index: Value, mask: Option<Value>) {
        let k = self.rebuild.src;
        let lanes = self.lanes;
        if self.lifted(v) == Lifted::Scalar {
            self.scalar_load(v, index);
            return;
        }
        let new_buf = self.rebuild.get(buf);
        if self.is_private(buf) {
            self.scalar_index(index);
            let index = self.rebuild.get(index);
            let new = self.rebuild.out.load(new_buf, index);
            self.rebuild.set(v, new);
            return;
        }
        let (index, cond) = self.access(index, mask);
        let new = match (self.lifted(index), cond) {
            (Lifted::Linear(1), cond) => {
                let base = self.rebuild.get(index);
                let base = self.guarded(base, cond);
                self.rebuild.out.load_vector(new_buf, base, lanes)
            }
            // One element for all lanes, where any lane may have it.
            (Lifted::Scalar, Condition { all, lanes: Some(lanes) }) => {
                let index = self.rebuild.get(index);
                let index = self.guarded(index, Condition { all, lanes: None });
                let out = &mut self.rebuild.out;
                let any =
                    out.emit(Op::Fold { op: BinaryOp::Or, x: lanes }, Type::scalar(DType::Bool));
                let index = out.guard(index, any);
                let x = out.load(new_buf, index);
                let zero = out.constant(Scalar::from_bits(k.ty(v).dtype, 0));
                out.select(lanes, x, zero)
            }
            _ => {
                let index = self.vector(index);
                let index = self.guarded(index, cond);
                self.rebuild.out.load_vector(new_buf, index, lanes)
            }
        };
        self.rebuild.set(v, new);
    }

    /// A load that does not depend on the counter, with the guards it had.
    fn scalar_load(&mut self, v: Value, index: Value) {
        self.scalar_index(index);
        self.rebuild.copy(v);
    }

    /// Copies the guards of a uniform index.
    fn scalar_index(&mut self, index: Value) {
        if let Op::Guard { index: inner, .. } = self.rebuild.src.op(index) {
            self.scalar_index(inner);
            self.rebuild.copy(index);
        }
    }

    fn store(&mut self, v: Value, buf: Value, index: Value, value: Value, mask: Option<Value>) {
        let k = self.rebuild.src;
        let Op::Store { order, .. } = k.op(v) else { return };
        let new_buf = self.rebuild.get(buf);
        if self.is_private(buf) {
            self.scalar_index(index);
            let accumulator = self.variance.accumulator(v).copied();
            if accumulator.is_none() && !self.variance.widened.contains(&buf) {
                self.rebuild.copy(v);
                return;
            }
            let index = self.rebuild.get(index);
            let mut new = self.vector(value);
            if let (Some(mask), Some(a)) = (mask, accumulator) {
                let old = self.rebuild.get(a.load);
                new = self.rebuild.out.select(mask, new, old);
            }
            self.rebuild.out.store(new_buf, index, new);
            return;
        }
        let (index, cond) = self.access(index, mask);
        let new = self.vector(value);
        let index = match self.lifted(index) {
            Lifted::Linear(1) => self.rebuild.get(index),
            _ => self.vector(index),
        };
        let index = self.guarded(index, cond);
        let ty = Type::vector(k.ty(value).dtype, self.lanes);
        self.rebuild.out.push(Op::Store { order, buf: new_buf, index, value: new }, ty);
    }

    /// A comparison of linear integers as a comparison of `i32` lane numbers: with
    /// `d = y - x` at lane 0 and `s` the difference of strides, `x ? y` is `s * lane ? d`, and
    /// `d` may be clamped to what lanes can reach.
    fn lane_compare(&mut self, op: Op, x: Value, y: Value) -> Option<Value> {
        let Op::Binary { op: compare, .. } = op else { return None };
        let stride = lane_compare(self.rebuild.src, self.variance, op, (x, y))?;
        let (x, y) = (self.rebuild.get(x), self.rebuild.get(y));
        let lanes = self.lane_numbers(DType::I32);
        let out = &mut self.rebuild.out;
        let reach = stride.abs() * (self.lanes as i64 + 1);
        let limit = |n| Scalar::from_i64(out.ty(x).dtype, n);
        let (low, high) = (limit(-reach), limit(reach));
        let (low, high) = (out.constant(low), out.constant(high));
        let d = out.binary(BinaryOp::Sub, y, x);
        let d = out.binary(BinaryOp::Min, d, high);
        let d = out.binary(BinaryOp::Max, d, low);
        let d = out.cast(DType::I32, d);
        let stride = out.constant(Scalar::from_i64(DType::I32, stride));
        let reached = out.binary(BinaryOp::Mul, lanes, stride);
        Some(out.binary(compare, reached, d))
    }
}

/// Whether a comparison is one of small indices that are linear or uniform, so that lane
/// numbers decide it; gives the difference of strides.
pub(super) fn lane_compare(
    k: &Kernel,
    variance: &Variance,
    op: Op,
    (x, y): (Value, Value),
) -> Option<i64> {
    let Op::Binary { op, .. } = op else { return None };
    let limit = match k.ty(x).dtype {
        DType::I64 => 1i64 << 60,
        DType::I32 => 1 << 29,
        _ => return None,
    };
    if !op.is_comparison() {
        return None;
    }
    let difference = variance.form(x).stride()?.checked_sub(variance.form(y).stride()?)?;
    let small = difference != 0 && difference.abs() < 1 << 20;
    let bounded = |v: Value| variance.is_below(k, v, limit);
    (small && bounded(x) && bounded(y)).then_some(difference)
}
