//! Whole kernels, naive and as the default passes leave them.

use super::{Random, Way, check, inputs, legal, ways};
use crate::jit::Isa;
use zyx_core::ir::{Access, Builder, Kernel, LoopKind, Op, Space, Type, Value};
use zyx_core::{BinaryOp, DType, Scalar, UnaryOp};

pub(super) fn parallel(b: &mut Builder, n: i64) -> Value {
    let n = b.index(n);
    b.open_loop(LoopKind::Parallel, 0, n)
}

pub(super) fn serial(b: &mut Builder, n: i64) -> Value {
    let n = b.index(n);
    b.open_loop(LoopKind::Serial, 0, n)
}

/// `out[i] = (a[i] + b[i]) * 5 - c[i]`
pub(super) fn chain(n: i64) -> Kernel {
    let mut b = Builder::new("chain");
    let [p, q, r] = [0; 3].map(|_| b.param(DType::F32, n as u64, Access::Read));
    let out = b.param(DType::F32, n as u64, Access::Write);
    let i = parallel(&mut b, n);
    let (x, y, z) = (b.load(p, i), b.load(q, i), b.load(r, i));
    let five = b.constant(Scalar::from(5f32));
    let sum = b.binary(BinaryOp::Add, x, y);
    let scaled = b.binary(BinaryOp::Mul, sum, five);
    let result = b.binary(BinaryOp::Sub, scaled, z);
    b.store(out, i, result);
    b.close();
    b.finish()
}

/// `out[i] = op over j of x[i * cols + j]`
pub(super) fn reduce(dtype: DType, op: BinaryOp, rows: i64, cols: i64, by_column: bool) -> Kernel {
    let mut b = Builder::new("reduce");
    let p = b.param(dtype, (rows * cols) as u64, Access::Read);
    let out = b.param(dtype, rows as u64, Access::Write);
    let i = parallel(&mut b, rows);
    let acc = b.alloc(Space::Register, Type::scalar(dtype), 1);
    let start = b.constant(op.identity(dtype).unwrap());
    let zero = b.index(0);
    b.store(acc, zero, start);
    let j = serial(&mut b, cols);
    let (outer, inner) = if by_column { (1, rows) } else { (cols, 1) };
    let (outer, inner) = (b.index(outer), b.index(inner));
    let (a, c) = (b.binary(BinaryOp::Mul, i, outer), b.binary(BinaryOp::Mul, j, inner));
    let index = b.binary(BinaryOp::Add, a, c);
    let x = b.load(p, index);
    let old = b.load(acc, zero);
    let new = b.binary(op, old, x);
    b.store(acc, zero, new);
    b.close();
    let result = b.load(acc, zero);
    b.store(out, i, result);
    b.close();
    b.finish()
}

/// `c[m, n] = sum over k of a[m, k] * b[k, n]`
pub(super) fn matmul(m: i64, n: i64, k: i64) -> Kernel {
    let mut b = Builder::new("matmul");
    let x = b.param(DType::F32, (m * k) as u64, Access::Read);
    let y = b.param(DType::F32, (k * n) as u64, Access::Read);
    let out = b.param(DType::F32, (m * n) as u64, Access::Write);
    let i = parallel(&mut b, m);
    let j = parallel(&mut b, n);
    let acc = b.alloc(Space::Register, Type::scalar(DType::F32), 1);
    let start = b.constant(Scalar::from(0f32));
    let zero = b.index(0);
    b.store(acc, zero, start);
    let l = serial(&mut b, k);
    let (nn, kk) = (b.index(n), b.index(k));
    let row = b.binary(BinaryOp::Mul, i, kk);
    let at_x = b.binary(BinaryOp::Add, row, l);
    let row = b.binary(BinaryOp::Mul, l, nn);
    let at_y = b.binary(BinaryOp::Add, row, j);
    let (u, v) = (b.load(x, at_x), b.load(y, at_y));
    let product = b.binary(BinaryOp::Mul, u, v);
    let old = b.load(acc, zero);
    let new = b.binary(BinaryOp::Add, old, product);
    b.store(acc, zero, new);
    b.close();
    let result = b.load(acc, zero);
    let row = b.binary(BinaryOp::Mul, i, nn);
    let at = b.binary(BinaryOp::Add, row, j);
    b.store(out, at, result);
    b.close();
    b.close();
    b.finish()
}

/// A row maximum, its difference to the elements, and a flip of the columns.
pub(super) fn row_shift(rows: i64, cols: i64) -> Kernel {
    let mut b = Builder::new("row_shift");
    let n = (rows * cols) as u64;
    let (p, out) = (b.param(DType::F32, n, Access::Read), b.param(DType::F32, n, Access::Write));
    let i = parallel(&mut b, rows);
    let acc = b.alloc(Space::Register, Type::scalar(DType::F32), 1);
    let start = b.constant(Scalar::lowest(DType::F32));
    let zero = b.index(0);
    b.store(acc, zero, start);
    let width = b.index(cols);
    let row = b.binary(BinaryOp::Mul, i, width);
    let j = serial(&mut b, cols);
    let at = b.binary(BinaryOp::Add, row, j);
    let x = b.load(p, at);
    let old = b.load(acc, zero);
    let new = b.binary(BinaryOp::Max, old, x);
    b.store(acc, zero, new);
    b.close();
    let j = parallel(&mut b, cols);
    let at = b.binary(BinaryOp::Add, row, j);
    let x = b.load(p, at);
    let max = b.load(acc, zero);
    let y = b.binary(BinaryOp::Sub, x, max);
    let y = b.unary(UnaryOp::Floor, y);
    let last = b.index(cols - 1);
    let flipped = b.binary(BinaryOp::Sub, last, j);
    let to = b.binary(BinaryOp::Add, row, flipped);
    b.store(out, to, y);
    b.close();
    b.close();
    b.finish()
}

/// The tanh form of gelu.
pub(super) fn gelu(n: i64) -> Kernel {
    let mut b = Builder::new("gelu");
    let p = b.param(DType::F32, n as u64, Access::Read);
    let out = b.param(DType::F32, n as u64, Access::Write);
    let i = parallel(&mut b, n);
    let x = b.load(p, i);
    let [c, d, one, half] =
        [0.044_715f32, 0.797_884_6, 1.0, 0.5].map(|x| b.constant(Scalar::from(x)));
    let square = b.binary(BinaryOp::Mul, x, x);
    let cube = b.binary(BinaryOp::Mul, square, x);
    let cube = b.binary(BinaryOp::Mul, cube, c);
    let inner = b.binary(BinaryOp::Add, x, cube);
    let inner = b.binary(BinaryOp::Mul, inner, d);
    let t = b.unary(UnaryOp::Tanh, inner);
    let t = b.binary(BinaryOp::Add, t, one);
    let x = b.binary(BinaryOp::Mul, x, half);
    let y = b.binary(BinaryOp::Mul, x, t);
    b.store(out, i, y);
    b.close();
    b.finish()
}

/// Softmax over rows, with the exponentials computed twice.
pub(super) fn softmax(rows: i64, cols: i64) -> Kernel {
    let mut b = Builder::new("softmax");
    let n = (rows * cols) as u64;
    let (p, out) = (b.param(DType::F32, n, Access::Read), b.param(DType::F32, n, Access::Write));
    let i = parallel(&mut b, rows);
    let (zero, width) = (b.index(0), b.index(cols));
    let row = b.binary(BinaryOp::Mul, i, width);
    let [max, sum] = [Scalar::lowest(DType::F32), Scalar::from(0f32)].map(|start| {
        let acc = b.alloc(Space::Register, Type::scalar(DType::F32), 1);
        let start = b.constant(start);
        b.store(acc, zero, start);
        acc
    });
    let exponential = |b: &mut Builder, at: Value| {
        let x = b.load(p, at);
        let m = b.load(max, zero);
        let d = b.binary(BinaryOp::Sub, x, m);
        b.unary(UnaryOp::Exp, d)
    };
    for (acc, op) in [(max, BinaryOp::Max), (sum, BinaryOp::Add)] {
        let j = serial(&mut b, cols);
        let at = b.binary(BinaryOp::Add, row, j);
        let x = if op == BinaryOp::Max { b.load(p, at) } else { exponential(&mut b, at) };
        let old = b.load(acc, zero);
        let new = b.binary(op, old, x);
        b.store(acc, zero, new);
        b.close();
    }
    let j = parallel(&mut b, cols);
    let at = b.binary(BinaryOp::Add, row, j);
    let e = exponential(&mut b, at);
    let total = b.load(sum, zero);
    let y = b.binary(BinaryOp::Div, e, total);
    b.store(out, at, y);
    b.close();
    b.close();
    b.finish()
}

/// All of the above in odd sizes.
pub(super) fn all() -> Vec<Kernel> {
    let mut all = vec![chain(1), chain(16), chain(77), chain(1000)];
    for (rows, cols) in [(1, 1), (3, 200), (40, 33), (5, 4096)] {
        for dtype in [DType::F32, DType::F64, DType::I32, DType::I64, DType::U8, DType::F16] {
            all.push(reduce(dtype, BinaryOp::Max, rows, cols, false));
            all.push(reduce(dtype, BinaryOp::Max, rows, cols, true));
        }
        all.push(reduce(DType::I32, BinaryOp::Add, rows, cols, true));
        all.push(reduce(DType::I64, BinaryOp::Mul, rows, cols, false));
        all.push(reduce(DType::Bool, BinaryOp::And, rows, cols, false));
        all.push(row_shift(rows, cols));
    }
    all.push(matmul(7, 33, 12));
    all.push(gelu(333));
    all.push(softmax(3, 77));
    all
}

#[test]
fn naive_kernels_agree_with_the_interpreter() {
    for (n, kernel) in all().iter().enumerate() {
        let inputs = inputs(kernel, &mut Random(n as u64));
        check(kernel, &inputs, &[], &format!("kernel {n}"));
    }
}

#[test]
fn tuned_kernels_agree_with_the_interpreter() {
    for way in ways() {
        for (n, kernel) in all().iter().enumerate() {
            let tuned = legal(kernel, way);
            let widest = way.vector_bytes();
            // Lane numbers and what they are compared with stay symbolic.
            let fits = |(_, op, ty): (_, Op, Type)| {
                let number = ty.dtype == DType::I64 && matches!(op, Op::Lanes | Op::Splat { .. });
                number || ty.bytes() <= widest
            };
            assert!(tuned.iter().all(fits), "too wide");
            let inputs = inputs(kernel, &mut Random(n as u64));
            check_on(&tuned, way, &inputs, &format!("kernel {n}"));
        }
    }
}

/// As [`check`], for vectors that only fit some ways.
fn check_on(kernel: &Kernel, way: Way, inputs: &[Vec<u8>], context: &str) {
    if way == Way::Machine(Isa::Avx2) {
        return check(kernel, inputs, &[], context);
    }
    super::check_way(kernel, way, inputs, &[], context);
}

/// The sum of each row before it passes a limit: what passes it is computed, and not stored.
fn sum_below(dtype: DType, rows: i64, cols: i64) -> Kernel {
    let mut b = Builder::new("sum_below");
    let p = b.param(dtype, (rows * cols) as u64, Access::Read);
    let out = b.param(dtype, rows as u64, Access::Write);
    let i = parallel(&mut b, rows);
    let acc = b.alloc(Space::Register, Type::scalar(dtype), 1);
    let (start, limit) =
        (b.constant(Scalar::from_i64(dtype, 0)), b.constant(Scalar::from_i64(dtype, 3)));
    let zero = b.index(0);
    b.store(acc, zero, start);
    let j = serial(&mut b, cols);
    let width = b.index(cols);
    let row = b.binary(BinaryOp::Mul, i, width);
    let index = b.binary(BinaryOp::Add, row, j);
    let x = b.load(p, index);
    let x = b.unary(UnaryOp::Abs, x);
    let old = b.load(acc, zero);
    let new = b.binary(BinaryOp::Add, old, x);
    let passes = b.binary(BinaryOp::Lt, limit, new);
    let late = b.index(2);
    let late = b.binary(BinaryOp::Lt, late, j);
    let both = b.binary(BinaryOp::And, passes, late);
    b.break_if(both);
    b.store(acc, zero, new);
    b.close();
    let result = b.load(acc, zero);
    b.store(out, i, result);
    b.close();
    b.finish()
}

#[test]
fn what_is_computed_before_a_break_is_not_stored() {
    for dtype in [DType::F32, DType::F64, DType::I32, DType::I64] {
        for cols in [1, 5, 40] {
            let kernel = sum_below(dtype, 7, cols);
            check(&kernel, &inputs(&kernel, &mut Random(3)), &[], "sums below a limit");
        }
    }
}
