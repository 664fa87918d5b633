//! Naive kernels as lowering makes them, for the tests of passes and tuning.

use crate::dtype::DType;
use crate::ir::{Access, Builder, Kernel, LoopKind, Space, Type, Value};
use crate::ops::{BinaryOp, UnaryOp};
use crate::scalar::Scalar;

use BinaryOp::{Add, Div, Le, Lt, Max, Mul, Sub};

fn parallel(b: &mut Builder, n: i64) -> Value {
    let n = b.index(n);
    b.open_loop(LoopKind::Parallel, 0, n)
}

fn serial(b: &mut Builder, n: i64) -> Value {
    let n = b.index(n);
    b.open_loop(LoopKind::Serial, 0, n)
}

fn f32(b: &mut Builder, x: f32) -> Value {
    b.constant(Scalar::from(x))
}

fn register(b: &mut Builder, dtype: DType, start: Scalar) -> Value {
    let acc = b.alloc(Space::Register, Type::scalar(dtype), 1);
    let start = b.constant(start);
    let zero = b.index(0);
    b.store(acc, zero, start);
    acc
}

fn combine(b: &mut Builder, acc: Value, op: BinaryOp, x: Value) {
    let zero = b.index(0);
    let old = b.load(acc, zero);
    let new = b.binary(op, old, x);
    b.store(acc, zero, new);
}

fn read(b: &mut Builder, acc: Value) -> Value {
    let zero = b.index(0);
    b.load(acc, zero)
}

/// `i * cols + j`
fn at(b: &mut Builder, i: Value, cols: i64, j: Value) -> Value {
    let cols = b.index(cols);
    let row = b.binary(Mul, i, cols);
    b.binary(Add, row, j)
}

/// `y[i] = -x[i]` in groups of threads, then `z[i] = x[i] * x[i]` by the threads of one group.
pub fn two_nests(groups: i64, threads: i64, few: i64) -> Kernel {
    let mut b = Builder::new("two_nests");
    let n = groups * threads;
    let x = b.param(DType::F32, n as u64, Access::Read);
    let y = b.param(DType::F32, n as u64, Access::Write);
    let z = b.param(DType::F32, few as u64, Access::Write);
    let (m, l, few) = (b.index(groups), b.index(threads), b.index(few));
    let group = b.open_loop(LoopKind::Group, 0, m);
    let local = b.open_loop(LoopKind::Local, 0, l);
    let i = at(&mut b, group, threads, local);
    let value = b.load(x, i);
    let negated = b.unary(UnaryOp::Neg, value);
    b.store(y, i, negated);
    b.close();
    b.close();
    let i = b.open_loop(LoopKind::Local, 0, few);
    let value = b.load(x, i);
    let square = b.binary(Mul, value, value);
    b.store(z, i, square);
    b.close();
    b.finish()
}

/// `out[i] = (a[i] + b[i]) * 5 - c[i]`
pub fn chain(n: i64) -> Kernel {
    let mut b = Builder::new("chain");
    let [p, q, r] = [0; 3].map(|_| b.param(DType::F32, n as u64, Access::Read));
    let out = b.param(DType::F32, n as u64, Access::Write);
    let i = parallel(&mut b, n);
    let (x, y, z) = (b.load(p, i), b.load(q, i), b.load(r, i));
    let five = f32(&mut b, 5.0);
    let sum = b.binary(Add, x, y);
    let scaled = b.binary(Mul, sum, five);
    let result = b.binary(Sub, scaled, z);
    b.store(out, i, result);
    b.close();
    b.finish()
}

/// The tanh form of gelu.
pub fn gelu(n: i64) -> Kernel {
    let mut b = Builder::new("gelu");
    let p = b.param(DType::F32, n as u64, Access::Read);
    let out = b.param(DType::F32, n as u64, Access::Write);
    let i = parallel(&mut b, n);
    let x = b.load(p, i);
    let cube = b.binary(Mul, x, x);
    let cube = b.binary(Mul, cube, x);
    let c = f32(&mut b, 0.044_715);
    let cube = b.binary(Mul, cube, c);
    let inner = b.binary(Add, x, cube);
    let c = f32(&mut b, 0.797_884_6);
    let inner = b.binary(Mul, inner, c);
    let t = b.unary(UnaryOp::Tanh, inner);
    let one = f32(&mut b, 1.0);
    let t = b.binary(Add, t, one);
    let half = f32(&mut b, 0.5);
    let x = b.binary(Mul, x, half);
    let y = b.binary(Mul, x, t);
    b.store(out, i, y);
    b.close();
    b.finish()
}

/// Softmax over the last axis.
pub fn softmax(rows: i64, cols: i64) -> Kernel {
    let mut b = Builder::new("softmax");
    let n = (rows * cols) as u64;
    let (p, out) = (b.param(DType::F32, n, Access::Read), b.param(DType::F32, n, Access::Write));
    let i = parallel(&mut b, rows);
    let max = register(&mut b, DType::F32, Scalar::lowest(DType::F32));
    let j = serial(&mut b, cols);
    let index = at(&mut b, i, cols, j);
    let x = b.load(p, index);
    combine(&mut b, max, Max, x);
    b.close();
    let sum = register(&mut b, DType::F32, Scalar::from(0f32));
    let j = serial(&mut b, cols);
    let e = exp_minus(&mut b, (p, i, cols, j), max);
    combine(&mut b, sum, Add, e);
    b.close();
    let j = parallel(&mut b, cols);
    let e = exp_minus(&mut b, (p, i, cols, j), max);
    let total = read(&mut b, sum);
    let y = b.binary(Div, e, total);
    let index = at(&mut b, i, cols, j);
    b.store(out, index, y);
    b.close();
    b.close();
    b.finish()
}

fn exp_minus(b: &mut Builder, (p, i, cols, j): (Value, Value, i64, Value), max: Value) -> Value {
    let index = at(b, i, cols, j);
    let x = b.load(p, index);
    let m = read(b, max);
    let d = b.binary(Sub, x, m);
    b.unary(UnaryOp::Exp, d)
}

/// Running sums of a vector: every partial sum is stored.
pub fn scan(n: i64) -> Kernel {
    let mut b = Builder::new("scan");
    let p = b.param(DType::F32, n as u64, Access::Read);
    let out = b.param(DType::F32, n as u64, Access::Write);
    let acc = register(&mut b, DType::F32, Scalar::from(0f32));
    let i = serial(&mut b, n);
    let x = b.load(p, i);
    let zero = b.index(0);
    let old = b.load(acc, zero);
    let new = b.binary(Add, old, x);
    b.store(acc, zero, new);
    b.store(out, i, new);
    b.close();
    b.finish()
}

/// Running sums of each row, the first of which takes what came before.
pub fn resume(rows: i64, cols: i64) -> Kernel {
    let mut b = Builder::new("resume");
    let p = b.param(DType::F32, (rows * cols) as u64, Access::Read);
    let before = b.param(DType::F32, rows as u64, Access::Read);
    let out = b.param(DType::F32, (rows * cols) as u64, Access::Write);
    let i = parallel(&mut b, rows);
    let acc = register(&mut b, DType::F32, Scalar::from(0f32));
    let j = serial(&mut b, cols);
    let index = at(&mut b, i, cols, j);
    let (x, carried) = (b.load(p, index), b.load(before, i));
    let taken = b.binary(Add, carried, x);
    let zero = b.index(0);
    let first = b.binary(BinaryOp::Eq, j, zero);
    let element = b.select(first, taken, x);
    let old = b.load(acc, zero);
    let new = b.binary(Add, old, element);
    b.store(acc, zero, new);
    b.store(out, index, new);
    b.close();
    b.close();
    b.finish()
}

/// `out[i] = sum over j of x[i, j]`
pub fn sum_rows(dtype: DType, rows: i64, cols: i64) -> Kernel {
    reduce(dtype, (rows, cols), (cols, 1))
}

/// `out[j] = sum over i of x[i, j]`
pub fn sum_cols(dtype: DType, rows: i64, cols: i64) -> Kernel {
    reduce(dtype, (cols, rows), (1, cols))
}

/// `out[i] = sum over j of x[i * a + j * b]`
fn reduce(dtype: DType, (outer, inner): (i64, i64), (a, s): (i64, i64)) -> Kernel {
    let mut b = Builder::new("reduce");
    let p = b.param(dtype, (outer * inner) as u64, Access::Read);
    let out = b.param(dtype, outer as u64, Access::Write);
    let i = parallel(&mut b, outer);
    let sum = register(&mut b, dtype, Scalar::from_i64(dtype, 0));
    let j = serial(&mut b, inner);
    let (a, s) = (b.index(a), b.index(s));
    let (row, col) = (b.binary(Mul, i, a), b.binary(Mul, j, s));
    let index = b.binary(Add, row, col);
    let x = b.load(p, index);
    combine(&mut b, sum, Add, x);
    b.close();
    let total = read(&mut b, sum);
    b.store(out, i, total);
    b.close();
    b.finish()
}

/// One number: the sum of everything.
pub fn sum_all(n: i64) -> Kernel {
    let mut b = Builder::new("sum");
    let p = b.param(DType::F32, n as u64, Access::Read);
    let out = b.param(DType::F32, 1, Access::Write);
    let sum = register(&mut b, DType::F32, Scalar::from(0f32));
    let i = serial(&mut b, n);
    let x = b.load(p, i);
    combine(&mut b, sum, Add, x);
    b.close();
    let total = read(&mut b, sum);
    let zero = b.index(0);
    b.store(out, zero, total);

    b.finish()
}

/// `out[i, j] = x[i, j - left]`, 0 outside: padding of the last axis.
pub fn pad(rows: i64, cols: i64, left: i64, right: i64) -> Kernel {
    let mut b = Builder::new("pad");
    let wide = left + cols + right;
    let p = b.param(DType::F32, (rows * cols) as u64, Access::Read);
    let out = b.param(DType::F32, (rows * wide) as u64, Access::Write);
    let i = parallel(&mut b, rows);
    let j = parallel(&mut b, wide);
    let (l, end) = (b.index(left), b.index(left + cols));
    let (above, below) = (b.binary(Le, l, j), b.binary(Lt, j, end));
    let inside = b.binary(BinaryOp::And, above, below);
    let j0 = b.binary(Sub, j, l);
    let index = at(&mut b, i, cols, j0);
    let index = b.guard(index, inside);
    let x = b.load(p, index);
    let target = at(&mut b, i, wide, j);
    b.store(out, target, x);
    b.close();
    b.close();
    b.finish()
}

/// `out[j, i] = x[i, j]`, the output being walked in order.
pub fn transpose(rows: i64, cols: i64) -> Kernel {
    let mut b = Builder::new("transpose");
    let n = (rows * cols) as u64;
    let (p, out) = (b.param(DType::F32, n, Access::Read), b.param(DType::F32, n, Access::Write));
    let j = parallel(&mut b, cols);
    let i = parallel(&mut b, rows);
    let source = at(&mut b, i, cols, j);
    let x = b.load(p, source);
    let target = at(&mut b, j, rows, i);
    b.store(out, target, x);
    b.close();
    b.close();
    b.finish()
}

/// `out[i, j] = table[ids[i], j]`, ids outside the table giving 0.
pub fn embedding(n: i64, vocab: i64, dim: i64) -> Kernel {
    let mut b = Builder::new("embedding");
    let table = b.param(DType::F32, (vocab * dim) as u64, Access::Read);
    let ids = b.param(DType::I32, n as u64, Access::Read);
    let out = b.param(DType::F32, (n * dim) as u64, Access::Write);
    let i = parallel(&mut b, n);
    let j = parallel(&mut b, dim);
    let id = b.load(ids, i);
    let id = b.cast(DType::I64, id);
    let (zero, end) = (b.index(0), b.index(vocab));
    let (above, below) = (b.binary(Le, zero, id), b.binary(Lt, id, end));
    let inside = b.binary(BinaryOp::And, above, below);
    let index = at(&mut b, id, dim, j);
    let index = b.guard(index, inside);
    let x = b.load(table, index);
    let target = at(&mut b, i, dim, j);
    b.store(out, target, x);
    b.close();
    b.close();
    b.finish()
}

/// `table[ids[i], j] += updates[i, j]` in the order of `i`, ids outside the table changing nothing.
pub fn scatter(n: i64, vocab: i64, dim: i64) -> Kernel {
    let mut b = Builder::new("scatter");
    let updates = b.param(DType::F32, (n * dim) as u64, Access::Read);
    let ids = b.param(DType::I64, n as u64, Access::Read);
    let table = b.param(DType::F32, (vocab * dim) as u64, Access::ReadWrite);
    let j = parallel(&mut b, dim);
    let len = b.index(n);
    let i = b.open_loop(LoopKind::Serial, 0, len);
    let id = b.load(ids, i);
    let source = at(&mut b, i, dim, j);
    let x = b.load(updates, source);
    let (zero, end) = (b.index(0), b.index(vocab));
    let (above, below) = (b.binary(Le, zero, id), b.binary(Lt, id, end));
    let inside = b.binary(BinaryOp::And, above, below);
    let index = at(&mut b, id, dim, j);
    let index = b.guard(index, inside);
    let old = b.load(table, index);
    let sum = b.binary(Add, old, x);
    b.store(table, index, sum);
    b.close();
    b.close();
    b.finish()
}

/// `out[i] = f(x[i]) + x[i]` written with a register and a second load of `x[i]`.
pub fn reload(n: i64) -> Kernel {
    let mut b = Builder::new("reload");
    let p = b.param(DType::F32, n as u64, Access::Read);
    let out = b.param(DType::F32, n as u64, Access::Write);
    let i = parallel(&mut b, n);
    let acc = register(&mut b, DType::F32, Scalar::from(1f32));
    let x = b.load(p, i);
    combine(&mut b, acc, Mul, x);
    let y = read(&mut b, acc);
    let x = b.load(p, i);
    let sum = b.binary(Add, x, y);
    b.store(out, i, sum);
    b.close();
    b.finish()
}

/// `out[i] = a[i % period] + b[i / period]`
pub(crate) fn repeat(n: i64, period: i64) -> Kernel {
    let mut b = Builder::new("repeat");
    let p = b.param(DType::F32, period as u64, Access::Read);
    let q = b.param(DType::F32, (n as u64).div_ceil(period as u64), Access::Read);
    let out = b.param(DType::F32, n as u64, Access::Write);
    let i = parallel(&mut b, n);
    let by = b.index(period);
    let (rest, whole) = (b.binary(BinaryOp::Rem, i, by), b.binary(Div, i, by));
    let (x, y) = (b.load(p, rest), b.load(q, whole));
    let sum = b.binary(Add, x, y);
    b.store(out, i, sum);
    b.close();
    b.finish()
}

/// `out[i] = a[i - shift]`, or 0 where there is none, selected twice as indices of padded operands are.
pub(crate) fn shifted(n: i64, shift: i64) -> Kernel {
    let mut b = Builder::new("shifted");
    let p = b.param(DType::F32, n as u64, Access::Read);
    let out = b.param(DType::F32, n as u64, Access::Write);
    let i = parallel(&mut b, n);
    let by = b.index(shift);
    let is_inside = b.binary(Le, by, i);
    let source = b.binary(Sub, i, by);
    let at = b.guard(source, is_inside);
    let x = b.load(p, at);
    let zero = b.constant(Scalar::from(0.0f32));
    let once = b.select(is_inside, x, zero);
    let twice = b.select(is_inside, once, zero);
    b.store(out, i, twice);
    b.close();
    b.finish()
}

/// `out[i, j] = max(sum over k of a[i, k] * b[k, j] + bias[j], 0)`
pub fn matmul(m: i64, k: i64, n: i64) -> Kernel {
    product("matmul", [m, k, n], [k, 1], [n, 1])
}

/// The same product of matrices that are both stored in columns, plus the bias.
pub fn matmul_columns(m: i64, k: i64, n: i64) -> Kernel {
    product("matmul_columns", [m, k, n], [1, m], [1, k])
}

/// A product of matrices whose elements are as far apart along rows and columns as told.
fn product(name: &str, [m, k, n]: [i64; 3], left: [i64; 2], right: [i64; 2]) -> Kernel {
    let mut b = Builder::new(name);
    let sizes = [m * k, k * n, n];
    let [p, q, bias] = sizes.map(|n| b.param(DType::F32, n as u64, Access::Read));
    let out = b.param(DType::F32, (m * n) as u64, Access::Write);
    let i = parallel(&mut b, m);
    let j = parallel(&mut b, n);
    let sum = register(&mut b, DType::F32, Scalar::from(0f32));
    let s = serial(&mut b, k);
    let strided = |b: &mut Builder, (x, y): (Value, Value), strides: [i64; 2]| {
        let [row, column] = strides.map(|stride| b.index(stride));
        let (row, column) = (b.binary(Mul, x, row), b.binary(Mul, y, column));
        b.binary(Add, row, column)
    };
    let (left, right) = (strided(&mut b, (i, s), left), strided(&mut b, (s, j), right));
    let (x, y) = (b.load(p, left), b.load(q, right));
    let x = b.binary(Mul, x, y);
    combine(&mut b, sum, Add, x);
    b.close();
    let total = read(&mut b, sum);
    let bias = b.load(bias, j);
    let total = b.binary(Add, total, bias);
    let zero = f32(&mut b, 0.0);
    let total = b.binary(Max, total, zero);
    let target = at(&mut b, i, n, j);
    b.store(out, target, total);
    b.close();
    b.close();
    b.finish()
}

/// `out[i, j] = sum over k of a[i, k] * b[k, j]` of halves, summed in `f32`.
pub fn halves(dtype: DType, sizes: [i64; 3]) -> Kernel {
    let [_, k, n] = sizes;
    halves_at(dtype, sizes, [k, 1], [n, 1])
}

/// The same product of matrices that are both stored in columns.
pub fn halves_columns(dtype: DType, sizes: [i64; 3]) -> Kernel {
    let [m, k, _] = sizes;
    halves_at(dtype, sizes, [1, m], [1, k])
}

/// Such a product of matrices whose elements are as far apart along rows and columns as told.
fn halves_at(dtype: DType, [m, k, n]: [i64; 3], left: [i64; 2], right: [i64; 2]) -> Kernel {
    let mut b = Builder::new("halves");
    let [p, q] = [m * k, k * n].map(|n| b.param(dtype, n as u64, Access::Read));
    let out = b.param(DType::F32, (m * n) as u64, Access::Write);
    let (i, j) = (parallel(&mut b, m), parallel(&mut b, n));
    let sum = register(&mut b, DType::F32, Scalar::from(0f32));
    let s = serial(&mut b, k);
    let [x, y] = [(p, i, s, left), (q, s, j, right)].map(|(buf, x, y, strides)| {
        let [row, column] = strides.map(|stride| b.index(stride));
        let (row, column) = (b.binary(Mul, x, row), b.binary(Mul, y, column));
        let index = b.binary(Add, row, column);
        let x = b.load(buf, index);
        b.cast(DType::F32, x)
    });
    let product = b.binary(Mul, x, y);
    combine(&mut b, sum, Add, product);
    b.close();
    let total = read(&mut b, sum);
    let target = at(&mut b, i, n, j);
    b.store(out, target, total);
    (0..2).for_each(|_| b.close());
    b.finish()
}

/// A convolution of `batch` signals of `channels` by `out` filters of `taps`, padded to `len`
/// results: `y[b, o, i] = sum over c, t of x[b, c, i + t - taps / 2] * w[o, c, t]`.
pub fn windows(batch: i64, channels: i64, out: i64, len: i64, taps: i64) -> Kernel {
    let mut b = Builder::new("windows");
    let sizes = [batch * channels * len, out * channels * taps];
    let [x, w] = sizes.map(|n| b.param(DType::F32, n as u64, Access::Read));
    let y = b.param(DType::F32, (batch * out * len) as u64, Access::Write);
    let (n, o, i) = (parallel(&mut b, batch), parallel(&mut b, out), parallel(&mut b, len));
    let sum = register(&mut b, DType::F32, Scalar::from(0f32));
    let (c, t) = (serial(&mut b, channels), serial(&mut b, taps));
    let (zero, end, half) = (b.index(0), b.index(len), b.index(taps / 2));
    let place = b.binary(Add, i, t);
    let place = b.binary(Sub, place, half);
    let (above, below) = (b.binary(Le, zero, place), b.binary(Lt, place, end));
    let inside = b.binary(BinaryOp::And, above, below);
    let row = at(&mut b, n, channels, c);
    let index = at(&mut b, row, len, place);
    let index = b.guard(index, inside);
    let row = at(&mut b, o, channels, c);
    let weight = at(&mut b, row, taps, t);
    let (left, right) = (b.load(x, index), b.load(w, weight));
    let product = b.binary(Mul, left, right);
    combine(&mut b, sum, Add, product);
    b.close();
    b.close();
    let total = read(&mut b, sum);
    let row = at(&mut b, n, out, o);
    let target = at(&mut b, row, len, i);
    b.store(y, target, total);
    (0..3).for_each(|_| b.close());
    b.finish()
}

/// A matrix whose columns move to the right by `by` and rows down by two, each around the end.
pub fn rolled(rows: i64, cols: i64, by: i64) -> Kernel {
    let mut b = Builder::new("rolled");
    let n = (rows * cols) as u64;
    let (p, out) = (b.param(DType::F32, n, Access::Read), b.param(DType::F32, n, Access::Write));
    let i = parallel(&mut b, rows);
    let j = parallel(&mut b, cols);
    let (two, shift) = (b.index(2), b.index(by));
    let (above, before) = (b.binary(Lt, i, two), b.binary(Lt, j, shift));
    let sides = [cols - by, -by].map(|right| {
        let ends = [rows - 2, -2].map(|down| {
            let (down, right) = (b.index(down), b.index(right));
            let (row, col) = (b.binary(Add, i, down), b.binary(Add, j, right));
            let (zero, len) = (b.index(0), b.index(cols));
            let height = b.index(rows);
            let inside = [(zero, row, height), (zero, col, len)].map(|(low, x, high)| {
                let (above, below) = (b.binary(Le, low, x), b.binary(Lt, x, high));
                b.binary(BinaryOp::And, above, below)
            });
            let inside = b.binary(BinaryOp::And, inside[0], inside[1]);
            let index = at(&mut b, row, cols, col);
            let index = b.guard(index, inside);
            b.load(p, index)
        });
        b.select(above, ends[0], ends[1])
    });
    let value = b.select(before, sides[0], sides[1]);
    let target = at(&mut b, i, cols, j);
    b.store(out, target, value);
    (0..2).for_each(|_| b.close());
    b.finish()
}

/// The number of Collatz steps from each of 1 to `n` down to 1, up to `most` steps.
pub fn collatz(n: i64, most: i64) -> Kernel {
    let mut b = Builder::new("collatz");
    let out = b.param(DType::I32, n as u64, Access::Write);
    let number = |b: &mut Builder, x: i32| b.constant(Scalar::from(x));
    let i = parallel(&mut b, n);
    let [x, steps] = [0; 2].map(|_| register(&mut b, DType::I32, Scalar::from(0i32)));
    let (zero, one) = (b.index(0), b.index(1));
    let first = b.binary(Add, i, one);
    let first = b.cast(DType::I32, first);
    b.store(x, zero, first);
    serial(&mut b, most);
    let now = read(&mut b, x);
    let (one, three) = (number(&mut b, 1), number(&mut b, 3));
    let done = b.binary(BinaryOp::Eq, now, one);
    b.break_if(done);
    let half = b.binary(BinaryOp::Shr, now, one);
    let triple = b.binary(Mul, now, three);
    let triple = b.binary(Add, triple, one);
    let last_bit = b.binary(BinaryOp::And, now, one);
    let is_odd = b.binary(BinaryOp::Eq, last_bit, one);
    let next = b.select(is_odd, triple, half);
    b.store(x, zero, next);
    combine(&mut b, steps, Add, one);
    b.close();
    let total = read(&mut b, steps);
    b.store(out, i, total);
    b.close();
    b.finish()
}

/// The sum of each row up to the first element above 1, that included, times the number of columns.
pub fn sum_until(rows: i64, cols: i64) -> Kernel {
    let mut b = Builder::new("sum_until");
    let x = b.param(DType::F32, (rows * cols) as u64, Access::Read);
    let out = b.param(DType::F32, (rows * cols) as u64, Access::Write);
    let i = parallel(&mut b, rows);
    let acc = register(&mut b, DType::F32, Scalar::from(0f32));
    let j = serial(&mut b, cols);
    let place = at(&mut b, i, cols, j);
    let element = b.load(x, place);
    combine(&mut b, acc, Add, element);
    let one = f32(&mut b, 1.0);
    let large = b.binary(Lt, one, element);
    b.break_if(large);
    b.close();
    let j = parallel(&mut b, cols);
    let sum = read(&mut b, acc);
    let scale = f32(&mut b, cols as f32);
    let scaled = b.binary(Mul, sum, scale);
    let place = at(&mut b, i, cols, j);
    b.store(out, place, scaled);
    (0..2).for_each(|_| b.close());
    b.finish()
}

/// All of the above in small odd sizes, with a name each.
pub fn all() -> Vec<Kernel> {
    vec![
        repeat(100, 12),
        shifted(100, 7),
        reload(20),
        chain(37),
        chain(64),
        gelu(50),
        softmax(3, 21),
        softmax(2, 64),
        sum_rows(DType::F32, 5, 39),
        sum_rows(DType::I32, 4, 33),
        sum_cols(DType::F32, 7, 35),
        sum_cols(DType::I64, 6, 19),
        sum_all(100),
        scan(40),
        resume(6, 11),
        resume(9, 20),
        resume(8, 16),
        pad(4, 17, 2, 3),
        transpose(9, 20),
        rolled(5, 21, 4),
        embedding(5, 11, 18),
        scatter(13, 9, 4),
        two_nests(5, 8, 3),
        matmul(9, 13, 10),
        matmul(16, 12, 8),
        matmul_columns(8, 12, 16),
        windows(2, 3, 5, 10, 3),
        halves(DType::F16, [16, 32, 16]),
        halves(DType::BF16, [9, 13, 10]),
        halves_columns(DType::BF16, [24, 20, 8]),
        collatz(30, 200),
        sum_until(5, 24),
    ]
}
