//! Short forms of what the longer kernels of groups consist of.

use super::*;

impl Emit {
    /// Begins what each of so many threads of a group does.
    pub(super) fn new(mut b: Builder, threads: i64, caps: &Caps) -> Emit {
        let len = b.index(threads);
        let thread = b.open_loop(LoopKind::Local, 0, len);
        Emit { b, thread, threads, fused: fuses(caps) }
    }

    /// The kernel, behind the loops over threads and groups.
    pub(super) fn end(mut self) -> Kernel {
        self.b.close();
        self.b.close();
        self.b.finish()
    }

    pub(super) fn number(&mut self, x: f64) -> Value {
        self.b.constant(Scalar::from(x))
    }

    pub(super) fn negative(&mut self, x: Value) -> Value {
        self.b.unary(UnaryOp::Neg, x)
    }

    pub(super) fn op(&mut self, op: BinaryOp, x: Value, y: Value) -> Value {
        self.b.binary(op, x, y)
    }

    /// `x y + z`, rounded once where that is as fast.
    pub(super) fn product_and(&mut self, x: Value, y: Value, z: Value) -> Value {
        if self.fused {
            return self.b.ternary(TernaryOp::MulAdd, x, y, z);
        }
        let product = self.op(Mul, x, y);
        self.op(Add, product, z)
    }

    /// A register with its first value.
    pub(super) fn register(&mut self, first: Value) -> Value {
        let ty = self.b.ty(first);
        let register = self.b.alloc(Space::Register, ty, 1);
        self.set(register, first);
        register
    }

    pub(super) fn get(&mut self, register: Value) -> Value {
        let start = self.b.index(0);
        self.b.load(register, start)
    }

    pub(super) fn set(&mut self, register: Value, x: Value) {
        let start = self.b.index(0);
        self.b.store(register, start, x);
    }

    /// As [`Emit::each_of`], several numbers at a time: what `load` gives for them is under way together before `store` gets it.
    /// `load` is told where a number is one of `n`.
    pub(super) fn transfer(
        &mut self,
        n: Value,
        columns: i64,
        load: impl Fn(&mut Emit, [Value; 3], Value) -> Value,
        store: impl Fn(&mut Emit, [Value; 3], Value),
    ) {
        const TOGETHER: i64 = 8;
        let step = self.threads * TOGETHER;
        let more = self.by(Add, n, step - 1);
        let turns = self.by(Div, more, step);
        self.repeat(turns, |e, turn| {
            let first = e.by(Mul, turn, step);
            let first = e.op(Add, first, e.thread);
            let mut all = Vec::new();
            for i in 0..TOGETHER {
                let number = e.by(Add, first, i * e.threads);
                let exists = e.op(Lt, number, n);
                let at = [number, e.by(Div, number, columns), e.by(Rem, number, columns)];
                all.push((at, exists, load(e, at, exists)));
            }
            for (at, exists, x) in all {
                e.when(exists, |e| store(e, at, x));
            }
        });
    }

    /// `f` of each number below `n`, in order.
    pub(super) fn repeat(&mut self, n: Value, f: impl FnOnce(&mut Emit, Value)) {
        let i = self.b.open_loop(LoopKind::Serial, 0, n);
        f(self, i);
        self.b.close();
    }

    /// The sum of `f` of each number below `n`, in order.
    pub(super) fn sum(&mut self, n: Value, f: impl FnOnce(&mut Emit, Value) -> Value) -> Value {
        let zero = self.number(0.0);
        let total = self.register(zero);
        self.repeat(n, |e, i| {
            let x = f(e, i);
            let before = e.get(total);
            let now = e.op(Add, before, x);
            e.set(total, now);
        });
        self.get(total)
    }

    pub(super) fn when(&mut self, condition: Value, f: impl FnOnce(&mut Emit)) {
        self.b.open_if(condition);
        f(self);
        self.b.close();
    }

    /// What one thread does.
    pub(super) fn once(&mut self, f: impl FnOnce(&mut Emit)) {
        let first = self.by(Eq, self.thread, 0);
        self.when(first, f);
    }

    /// Of a matrix that `source` reads: the power of two that brings the largest magnitude to 1 or
    /// more and below 2, its reciprocal, and whether all elements are finite. As
    /// `factor::Matrix::scale` does, but 1 where they are not. `marks` is shared
    /// storage of an `i64` for each thread, behind which all have met.
    pub(super) fn scale(
        &mut self,
        (rows, columns): (i64, i64),
        marks: Value,
        source: impl FnOnce(&mut Emit, Value, Value) -> Value,
    ) -> [Value; 3] {
        let none = self.b.index(0);
        let most = self.register(none);
        let larger = |e: &mut Emit, bits: Value| {
            let before = e.get(most);
            let now = e.op(BinaryOp::Max, before, bits);
            e.set(most, now);
        };
        // Magnitudes have the order of their bits.
        self.each(rows * columns, columns, |e, _, i, j| {
            let x = source(e, i, j);
            let x = e.b.unary(UnaryOp::Abs, x);
            let bits = e.b.bitcast(DType::I64, x);
            larger(e, bits);
        });
        let own = self.get(most);
        self.b.store(marks, self.thread, own);
        self.meet();
        let threads = self.b.index(self.threads);
        self.repeat(threads, |e, i| {
            let bits = e.b.load(marks, i);
            larger(e, bits);
        });
        let bits = self.get(most);
        self.power(bits)
    }

    /// As [`Emit::scale`], for the bits of the largest magnitude.
    pub(super) fn power(&mut self, bits: Value) -> [Value; 3] {
        let exponent = self.by(BinaryOp::Shr, bits, 52);
        let finite = self.by(Lt, exponent, 2047);
        let normal = self.by(BinaryOp::Ne, exponent, 0);
        let usual = self.op(And, finite, normal);
        let all = self.b.index(2046);
        let scale = self.op(Sub, all, exponent);
        // Half the range, as on the host.
        let scale = self.by(BinaryOp::Max, scale, 23);
        let scale = self.by(BinaryOp::Min, scale, 2023);
        let one = self.b.index(1023);
        let scale = self.b.select(usual, scale, one);
        let inverse = self.op(Sub, all, scale);
        let power = |e: &mut Emit, exponent: Value| {
            let bits = e.by(BinaryOp::Shl, exponent, 52);
            e.b.bitcast(DType::F64, bits)
        };
        [power(self, scale), power(self, inverse), finite]
    }
}
