//! Factors of matrices and triangular systems on devices of many threads, in `f64`.
//!
//! A group of threads has a matrix of up to [`SIDE`] rows in shared storage, or the triangle and
//! some columns of the right side. Larger matrices are halved: the halves meet in matrix products. LU
//! factors, whose pivots are chosen among all rows, are made of matrices that fit in shared storage, and so are
//! QR factors ([`qr`](mod@qr)), eigenvalues and singular values ([`jacobi`]). So values stay on the device. Each element sees the same operations in the same order in every run.

mod emit;
mod jacobi;
mod qr;

pub(super) use jacobi::{Wanted, rotated};
pub(super) use qr::qr;

use super::Tensor;
use super::factor::Triangle;
use crate::dtype::DType;
use crate::error::Result;
use crate::hal::{Arg, Caps};
use crate::ir::{Access, BarrierScope, Builder, Kernel, LoopKind, Space, Type, Value};
use crate::ops::BinaryOp::{self, Add, And, Div, Eq, Le, Lt, Mul, Or, Rem, Sub};
use crate::ops::{TernaryOp, UnaryOp};
use crate::runtime::Launch;
use crate::scalar::Scalar;
use crate::shape::Shape;

/// Most rows of a matrix that a group has.
pub(super) const SIDE: usize = 64;
/// Columns of a right side that a group has.
const COLUMNS: i64 = 16;
/// Threads of a group.
const THREADS: i64 = 128;

/// Whether groups of this device's threads compute in `f64` as the host does.
pub(super) fn computes(caps: &Caps) -> bool {
    caps.simt
        && caps.max_iterations == 0
        && caps.compute.contains(DType::F64)
        && caps.storage.contains(DType::F64)
        && !caps.flushes_subnormals.contains(DType::F64)
        && caps.max_local as i64 >= THREADS
}

/// Whether they do, and have the shared storage for blocks of [`SIDE`] rows. Few threads take longer than
/// the host.
pub(super) fn serves(caps: &Caps) -> bool {
    !caps.has_few_threads()
        && computes(caps)
        && caps.shared_bytes >= SIDE * (SIDE + COLUMNS as usize) * size_of::<f64>()
}

/// Most rows of a matrix whose LU factors a group makes.
pub(super) fn most_rows(caps: &Caps) -> usize {
    // The matrix, two of its rows and columns, and its rows' origins.
    let bytes = |n: usize| 8 * n * (n + 2) + 4 * n;
    let mut n = SIDE;
    while bytes(n + 1) as i64 <= room(caps) {
        n += 1;
    }
    n
}

/// Most bytes of shared storage that a group may have.
fn room(caps: &Caps) -> i64 {
    caps.shared_bytes.max(caps.most_shared_bytes) as i64
}

/// Matrices as `[batch, rows, columns]`, with values.
#[track_caller]
fn matrices(x: &Tensor) -> Result<Tensor> {
    let &[ref lead @ .., rows, columns] = x.shape().dims() else {
        unreachable!("invariant: the caller has checked that these are matrices")
    };
    // Computing must not free how it was computed: gradients may still be asked for.
    let read = if x.is_tracked() { x.clone() } else { x.detach() };
    read.reshape([lead.iter().product(), rows, columns])
}

/// As the host's function of that name, of matrices with one batch.
#[track_caller]
pub(super) fn triangular(a: &Tensor, b: &Tensor, of: Triangle) -> Result<Tensor> {
    let x = substituted(&matrices(a)?, &matrices(b)?, of)?;
    x.cast(b.dtype()).reshape(b.shape().clone())
}

/// `a^-1 b` in `f64`.
#[track_caller]
fn substituted(a: &Tensor, b: &Tensor, of: Triangle) -> Result<Tensor> {
    let (n, k) = (a.order(), b.order());
    if n <= SIDE {
        let kernel = substitution(a.shape()[0], n, k, of, [a.dtype(), b.dtype()]);
        let results = [(b.shape().clone(), DType::F64)];
        return Ok(run(&kernel, &[a, b], &results)?.remove(0));
    }
    let [a, b] = [a, b].map(|x| x.cast(DType::F64));
    let half = middle(n);
    // Which half is known first, and the block that carries it to the other.
    let (first, second) = if of.upper { (half..n, 0..half) } else { (0..half, half..n) };
    let part = |range: &std::ops::Range<usize>, columns: &std::ops::Range<usize>| {
        a.slice(1, range.clone())?.slice(2, columns.clone())
    };
    let x = substituted(&part(&first, &first)?, &b.slice(1, first.clone())?, of)?;
    let carried = part(&second, &first)?.matmul(&x)?;
    let rest = b.slice(1, second.clone())?.sub(&carried)?;
    let y = substituted(&part(&second, &second)?, &rest, of)?;
    Tensor::cat(&if of.upper { [&y, &x] } else { [&x, &y] }, 1)
}

/// The lower factors of matrices, of which the lower triangles are read; or the number of the first
/// that is not positive definite.
#[track_caller]
pub(super) fn cholesky(a: &Tensor) -> Result<std::result::Result<Tensor, usize>> {
    let (l, failed) = factored(&matrices(a)?)?;
    let failed = failed.to_vec::<i32>()?;
    let batch = a.shape()[..a.rank() - 2].iter().product::<usize>();
    if let Some(at) =
        failed.iter().enumerate().filter(|(_, f)| **f != 0).map(|(i, _)| i % batch).min()
    {
        return Ok(Err(at));
    }
    Ok(Ok(l.cast(a.dtype()).reshape(a.shape().clone())?))
}

/// The factors, and for each block and matrix whether it failed.
#[track_caller]
fn factored(a: &Tensor) -> Result<(Tensor, Tensor)> {
    let (batch, n) = (a.shape()[0], a.order());
    if n <= SIDE {
        let results = [(a.shape().clone(), a.dtype()), (Shape::from([batch]), DType::I32)];
        let mut both = run(&factorisation(batch, n, a.dtype()), &[a], &results)?;
        let failed = both.pop().expect("invariant: two results");
        return Ok((both.remove(0), failed));
    }
    let a = a.cast(DType::F64);
    let half = middle(n);
    let rows = |from: usize, to: usize| a.slice(1, from..to);
    let (upper, failed) = factored(&rows(0, half)?.slice(2, 0..half)?)?;
    let below = rows(half, n)?.slice(2, 0..half)?;
    let lower = substituted(&upper, &below.t(), Triangle { upper: false, unit: false })?;
    let rest = rows(half, n)?.slice(2, half..n)?.sub(lower.t().matmul(&lower)?)?;
    let (last, later) = factored(&rest)?;
    let nothing = Tensor::zeros([batch, half, n - half], DType::F64, a.device());
    let top = Tensor::cat(&[&upper, &nothing], 2)?;
    let bottom = Tensor::cat(&[&lower.t(), &last], 2)?;
    Ok((Tensor::cat(&[&top, &bottom], 1)?, Tensor::cat(&[&failed, &later], 0)?))
}

/// Where a matrix of this order is halved: behind full blocks.
fn middle(n: usize) -> usize {
    n.div_ceil(2 * SIDE) * SIDE
}

/// LU factors of matrices up to [`most_rows`] with partial pivoting.
pub(super) struct Factors {
    /// Both triangles, `[batch, n, n]` in `f64`. Zero pivots stay.
    lu: Tensor,
    /// The row that each row came from, `[batch, n]`, `i32`.
    rows: Tensor,
    /// For each matrix whether the permutation is odd and whether a pivot is zero, `[batch, 2]`, `i32`.
    flags: Vec<i32>,
}

impl Factors {
    #[track_caller]
    pub(super) fn of(a: &Tensor) -> Result<Factors> {
        let a = matrices(a)?;
        let (batch, n) = (a.shape()[0], a.order());
        let results =
            [(Shape::from([batch, n, n]), DType::F64), (Shape::from([batch, n + 2]), DType::I32)];
        let mut both = run(&elimination(batch, n, a.dtype()), &[&a], &results)?;
        let numbers = both.pop().expect("invariant: two results");
        let flags = numbers.slice(1, n..)?.to_vec::<i32>()?;
        Ok(Factors { lu: both.remove(0), rows: numbers.slice(1, ..n)?, flags })
    }

    /// The number of the first matrix that has a zero pivot.
    pub(super) fn singular(&self) -> Option<usize> {
        self.flags.chunks(2).position(|flags| flags[1] != 0)
    }

    /// The systems with these right sides solved.
    #[track_caller]
    pub(super) fn solve(&self, b: &Tensor) -> Result<Tensor> {
        let right = matrices(b)?;
        let rows = self.rows.cast(DType::I64).unsqueeze(-1)?.expand(right.shape().clone())?;
        let right = right.gather_unchecked(1, &rows);
        let half = substituted(&self.lu, &right, Triangle { upper: false, unit: true })?;
        let x = substituted(&self.lu, &half, Triangle { upper: true, unit: false })?;
        x.cast(b.dtype()).reshape(b.shape().clone())
    }

    /// Sign and logarithm of the magnitude of each determinant, `[batch]` in `f64`.
    #[track_caller]
    pub(super) fn determinants(&self) -> Result<(Tensor, Tensor)> {
        let pivots = self.lu.diagonal(0, -2, -1)?;
        let odd = self.flags.chunks(2).map(|flags| 1.0 - 2.0 * f64::from(flags[0]));
        let odd = odd.collect::<Vec<f64>>();
        let odd = Tensor::from_slice(&odd, [odd.len()], self.lu.device())?;
        let sign = pivots.sign().prod(-1)?.mul(&odd)?;
        Ok((sign, pivots.abs().log().sum(-1)?))
    }
}

/// Launches a kernel that reads these tensors and writes some of these shapes and dtypes.
#[track_caller]
fn run(kernel: &Kernel, inputs: &[&Tensor], results: &[(Shape, DType)]) -> Result<Vec<Tensor>> {
    let device = inputs[0].device();
    Tensor::realize_all(inputs.iter().copied())?;
    let program = device.program(kernel)?;
    let buffers = device.with_room(|| {
        let mut pins = Vec::new();
        for input in inputs {
            let buffer = input.0.value.get().expect("invariant: it was realized");
            pins.push(buffer.pin()?);
        }
        let mut buffers = Vec::new();
        for (shape, dtype) in results {
            let buffer = device.alloc_here(shape.numel() * dtype.size())?;
            pins.push(buffer.pin()?);
            buffers.push(buffer);
        }
        let args: Vec<_> = pins.iter().map(|pin| Arg::Buffer(pin, 0)).collect();
        device.submit(&[Launch { program: &program, args: &args, after: &[] }])?;
        Ok(buffers)
    })?;
    let leaf = |(buffer, (shape, dtype)): (_, &(Shape, DType))| {
        Tensor::leaf(buffer, shape.clone(), *dtype)
    };
    Ok(buffers.into_iter().zip(results).map(leaf).collect())
}

/// A kernel being emitted: what a group does is in turns of all its threads.
struct Emit {
    b: Builder,
    thread: Value,
    threads: i64,
    /// Whether products are rounded together with what they are added to.
    fused: bool,
}

impl Emit {
    fn by(&mut self, op: BinaryOp, x: Value, by: i64) -> Value {
        let by = self.b.index(by);
        self.b.binary(op, x, by)
    }

    /// The element of a row-major matrix of so many columns.
    fn place(&mut self, row: Value, column: Value, columns: i64) -> Value {
        let start = self.by(Mul, row, columns);
        self.b.binary(Add, start, column)
    }

    fn meet(&mut self) {
        self.b.barrier(BarrierScope::Shared);
    }

    /// `f` of each of `n` numbers and its row and column among so many columns.
    fn each(&mut self, n: i64, columns: i64, f: impl FnOnce(&mut Emit, Value, Value, Value)) {
        let turns = self.b.index((n + self.threads - 1) / self.threads);
        let turn = self.b.open_loop(LoopKind::Serial, 0, turns);
        let first = self.by(Mul, turn, self.threads);
        let number = self.b.binary(Add, first, self.thread);
        let inside = self.by(Lt, number, n);
        self.b.open_if(inside);
        let (row, column) = (self.by(Div, number, columns), self.by(Rem, number, columns));
        f(self, number, row, column);
        self.b.close();
        self.b.close();
    }
}

fn shared(b: &mut Builder, n: i64) -> Value {
    b.alloc(Space::Shared, Type::scalar(DType::F64), n as u32)
}

/// `a^-1 b` for each of a batch of triangles, a group for each of them and each few columns of `b`.
fn substitution(batch: usize, n: usize, k: usize, of: Triangle, dtypes: [DType; 2]) -> Kernel {
    let Triangle { upper, unit } = of;
    let mut b = Builder::new(&format!("triangular_{batch}_{n}_{k}"));
    let (a_len, b_len) = (batch * n * n, batch * n * k);
    let a = b.param(dtypes[0], a_len as u64, Access::Read);
    let right = b.param(dtypes[1], b_len as u64, Access::Read);
    let out = b.param(DType::F64, b_len as u64, Access::Write);
    let (n, k) = (n as i64, k as i64);
    let parts = (k + COLUMNS - 1) / COLUMNS;
    let (groups, threads) = (b.index(batch as i64 * parts), b.index(THREADS));
    let group = b.open_loop(LoopKind::Group, 0, groups);
    let (matrix, x) = (shared(&mut b, n * n), shared(&mut b, n * COLUMNS));
    let thread = b.open_loop(LoopKind::Local, 0, threads);
    let mut e = Emit { b, thread, threads: THREADS, fused: false };
    let (number, part) = (e.by(Div, group, parts), e.by(Rem, group, parts));
    let base = e.by(Mul, number, n * n);
    e.each(n * n, n, |e, at, _, _| {
        let from = e.b.binary(Add, base, at);
        let element = e.b.load(a, from);
        let element = e.b.cast(DType::F64, element);
        e.b.store(matrix, at, element);
    });
    let base = e.by(Mul, number, n * k);
    let first = e.by(Mul, part, COLUMNS);
    // Columns behind the last are zeros.
    let global = |e: &mut Emit, row: Value, column: Value| {
        let column = e.b.binary(Add, first, column);
        let exists = e.by(Lt, column, k);
        let at = e.place(row, column, k);
        let at = e.b.binary(Add, base, at);
        e.b.guard(at, exists)
    };
    e.each(n * COLUMNS, COLUMNS, |e, at, row, column| {
        let from = global(e, row, column);
        let element = e.b.load(right, from);
        let element = e.b.cast(DType::F64, element);
        e.b.store(x, at, element);
    });
    e.meet();
    let steps = e.b.index(n);
    let step = e.b.open_loop(LoopKind::Serial, 0, steps);
    let pivot = if upper {
        let last = e.b.index(n - 1);
        e.b.binary(Sub, last, step)
    } else {
        step
    };
    if !unit {
        e.each(COLUMNS, COLUMNS, |e, _, _, column| {
            let (at, diagonal) = (e.place(pivot, column, COLUMNS), e.place(pivot, pivot, n));
            let (value, by) = (e.b.load(x, at), e.b.load(matrix, diagonal));
            let value = e.b.binary(Div, value, by);
            e.b.store(x, at, value);
        });
        e.meet();
    }
    e.each(n * COLUMNS, COLUMNS, |e, at, row, column| {
        let later = if upper { e.b.binary(Lt, row, pivot) } else { e.b.binary(Lt, pivot, row) };
        e.b.open_if(later);
        let (factor, known) = (e.place(row, pivot, n), e.place(pivot, column, COLUMNS));
        let (factor, known) = (e.b.load(matrix, factor), e.b.load(x, known));
        let product = e.b.binary(Mul, factor, known);
        let value = e.b.load(x, at);
        let value = e.b.binary(Sub, value, product);
        e.b.store(x, at, value);
        e.b.close();
    });
    e.meet();
    e.b.close();
    e.each(n * COLUMNS, COLUMNS, |e, at, row, column| {
        let value = e.b.load(x, at);
        let to = global(e, row, column);
        e.b.store(out, to, value);
    });
    e.b.close();
    e.b.close();
    e.b.finish()
}

/// Cholesky's factor of each of a batch of matrices, and whether one had a pivot that is not positive.
fn factorisation(batch: usize, n: usize, dtype: DType) -> Kernel {
    let mut b = Builder::new(&format!("cholesky_{batch}_{n}"));
    let len = (batch * n * n) as u64;
    let a = b.param(dtype, len, Access::Read);
    let out = b.param(dtype, len, Access::Write);
    let flags = b.param(DType::I32, batch as u64, Access::Write);
    let n = n as i64;
    let (groups, threads) = (b.index(batch as i64), b.index(THREADS));
    let group = b.open_loop(LoopKind::Group, 0, groups);
    let (matrix, column) = (shared(&mut b, n * n), shared(&mut b, n));
    let thread = b.open_loop(LoopKind::Local, 0, threads);
    let mut e = Emit { b, thread, threads: THREADS, fused: false };
    let base = e.by(Mul, group, n * n);
    e.each(n * n, n, |e, at, _, _| {
        let from = e.b.binary(Add, base, at);
        let element = e.b.load(a, from);
        let element = e.b.cast(DType::F64, element);
        e.b.store(matrix, at, element);
    });
    let failed = e.b.alloc(Space::Register, Type::scalar(DType::I32), 1);
    let (start, none) = (e.b.index(0), e.b.constant(Scalar::from(0i32)));
    e.b.store(failed, start, none);
    e.meet();
    let steps = e.b.index(n);
    let k = e.b.open_loop(LoopKind::Serial, 0, steps);
    let diagonal = e.place(k, k, n);
    let pivot = e.b.load(matrix, diagonal);
    let zero = e.b.constant(Scalar::from(0f64));
    let fails = e.b.binary(Le, pivot, zero);
    let fails = e.b.cast(DType::I32, fails);
    let before = e.b.load(failed, start);
    let fails = e.b.binary(Or, before, fails);
    e.b.store(failed, start, fails);
    let root = e.b.unary(UnaryOp::Sqrt, pivot);
    e.each(n, n, |e, _, _, row| {
        let inside = e.b.binary(Le, k, row);
        let at = e.place(row, k, n);
        let value = e.b.load(matrix, at);
        let value = e.b.binary(Div, value, root);
        let value = e.b.select(inside, value, zero);
        e.b.store(column, row, value);
        let to = e.b.binary(Add, base, at);
        let value = e.b.cast(dtype, value);
        e.b.store(out, to, value);
    });
    e.meet();
    e.each(n * n, n, |e, at, i, j| {
        let (right, lower) = (e.b.binary(Lt, k, j), e.b.binary(Le, j, i));
        let changes = e.b.binary(And, right, lower);
        e.b.open_if(changes);
        let (x, y) = (e.b.load(column, i), e.b.load(column, j));
        let product = e.b.binary(Mul, x, y);
        let value = e.b.load(matrix, at);
        let value = e.b.binary(Sub, value, product);
        e.b.store(matrix, at, value);
        e.b.close();
    });
    e.meet();
    e.b.close();
    let first = e.by(Eq, thread, 0);
    let at = e.b.guard(group, first);
    let fails = e.b.load(failed, start);
    e.b.store(flags, at, fails);
    e.b.close();
    e.b.close();
    e.b.finish()
}

/// LU factors of each of a batch of matrices; of each the rows' origins, whether their permutation is odd,
/// and whether a pivot is zero.
fn elimination(batch: usize, n: usize, dtype: DType) -> Kernel {
    let mut b = Builder::new(&format!("lu_{batch}_{n}"));
    let len = (batch * n * n) as u64;
    let a = b.param(dtype, len, Access::Read);
    let out = b.param(DType::F64, len, Access::Write);
    let numbers = b.param(DType::I32, (batch * (n + 2)) as u64, Access::Write);
    let n = n as i64;
    let (groups, threads) = (b.index(batch as i64), b.index(THREADS));
    let group = b.open_loop(LoopKind::Group, 0, groups);
    let (matrix, factors) = (shared(&mut b, n * n), shared(&mut b, n));
    let row = b.alloc(Space::Shared, Type::scalar(DType::F64), n as u32);
    let origin = b.alloc(Space::Shared, Type::scalar(DType::I32), n as u32);
    let thread = b.open_loop(LoopKind::Local, 0, threads);
    let mut e = Emit { b, thread, threads: THREADS, fused: false };
    let base = e.by(Mul, group, n * n);
    e.each(n * n, n, |e, at, _, _| {
        let from = e.b.binary(Add, base, at);
        let element = e.b.load(a, from);
        let element = e.b.cast(DType::F64, element);
        e.b.store(matrix, at, element);
    });
    e.each(n, n, |e, at, _, _| {
        let number = e.b.cast(DType::I32, at);
        e.b.store(origin, at, number);
    });
    let integer = |e: &mut Emit| e.b.alloc(Space::Register, Type::scalar(DType::I32), 1);
    let (odd, zeros) = (integer(&mut e), integer(&mut e));
    let best = e.b.alloc(Space::Register, Type::scalar(DType::F64), 1);
    let place = e.b.alloc(Space::Register, Type::scalar(DType::I64), 1);
    let (start, none) = (e.b.index(0), e.b.constant(Scalar::from(0i32)));
    e.b.store(odd, start, none);
    e.b.store(zeros, start, none);
    e.meet();
    let steps = e.b.index(n);
    let k = e.b.open_loop(LoopKind::Serial, 0, steps);
    // Every thread looks for the pivot, the first of the largest.
    let diagonal = e.place(k, k, n);
    let value = e.b.load(matrix, diagonal);
    let value = e.b.unary(UnaryOp::Abs, value);
    e.b.store(best, start, value);
    e.b.store(place, start, k);
    let i = e.b.open_loop(LoopKind::Serial, 0, steps);
    let at = e.place(i, k, n);
    let value = e.b.load(matrix, at);
    let value = e.b.unary(UnaryOp::Abs, value);
    let most = e.b.load(best, start);
    let (later, larger) = (e.b.binary(Lt, k, i), e.b.binary(Lt, most, value));
    let better = e.b.binary(And, later, larger);
    let most = e.b.select(better, value, most);
    e.b.store(best, start, most);
    let before = e.b.load(place, start);
    let now = e.b.select(better, i, before);
    e.b.store(place, start, now);
    e.b.close();
    let pivot = e.b.load(place, start);
    let moved = e.b.binary(BinaryOp::Ne, pivot, k);
    let moved = e.b.cast(DType::I32, moved);
    let before = e.b.load(odd, start);
    let turned = e.b.binary(BinaryOp::Xor, before, moved);
    e.b.store(odd, start, turned);
    let most = e.b.load(best, start);
    let zero = e.b.constant(Scalar::from(0f64));
    let is_zero = e.b.binary(Eq, most, zero);
    let fails = e.b.cast(DType::I32, is_zero);
    let before = e.b.load(zeros, start);
    let fails = e.b.binary(Or, before, fails);
    e.b.store(zeros, start, fails);
    // Nobody moves rows while others look at them.
    e.meet();
    e.each(n, n, |e, _, _, column| {
        let (upper, lower) = (e.place(k, column, n), e.place(pivot, column, n));
        let (x, y) = (e.b.load(matrix, upper), e.b.load(matrix, lower));
        e.b.store(matrix, upper, y);
        e.b.store(matrix, lower, x);
        e.b.store(row, column, y);
        let first = e.by(Eq, column, 0);
        e.b.open_if(first);
        let (x, y) = (e.b.load(origin, k), e.b.load(origin, pivot));
        e.b.store(origin, k, y);
        e.b.store(origin, pivot, x);
        e.b.close();
    });
    e.meet();
    e.each(n, n, |e, _, _, i| {
        let later = e.b.binary(Lt, k, i);
        let at = e.place(i, k, n);
        let value = e.b.load(matrix, at);
        let by = e.b.load(row, k);
        let factor = e.b.binary(Div, value, by);
        let factor = e.b.select(is_zero, value, factor);
        let factor = e.b.select(later, factor, zero);
        e.b.store(factors, i, factor);
        e.b.open_if(later);
        e.b.store(matrix, at, factor);
        e.b.close();
    });
    e.meet();
    e.each(n * n, n, |e, at, i, j| {
        let (below, right) = (e.b.binary(Lt, k, i), e.b.binary(Lt, k, j));
        let changes = e.b.binary(And, below, right);
        let known = e.b.binary(BinaryOp::Ne, most, zero);
        let changes = e.b.binary(And, changes, known);
        e.b.open_if(changes);
        let (x, y) = (e.b.load(factors, i), e.b.load(row, j));
        let product = e.b.binary(Mul, x, y);
        let value = e.b.load(matrix, at);
        let value = e.b.binary(Sub, value, product);
        e.b.store(matrix, at, value);
        e.b.close();
    });
    e.meet();
    e.b.close();
    e.each(n * n, n, |e, at, _, _| {
        let value = e.b.load(matrix, at);
        let to = e.b.binary(Add, base, at);
        e.b.store(out, to, value);
    });
    let first = e.by(Mul, group, n + 2);
    e.each(n, n, |e, at, _, _| {
        let number = e.b.load(origin, at);
        let to = e.b.binary(Add, first, at);
        e.b.store(numbers, to, number);
    });
    let one = e.by(Eq, thread, 0);
    for (i, flag) in [odd, zeros].into_iter().enumerate() {
        let to = e.by(Add, first, n + i as i64);
        let to = e.b.guard(to, one);
        let flag = e.b.load(flag, start);
        e.b.store(numbers, to, flag);
    }
    e.b.close();
    e.b.close();
    e.b.finish()
}

#[cfg(test)]
mod tests {
    use super::super::factor::{self, Matrix};
    use super::*;
    use crate::reference::Reference;
    use crate::runtime::{Device, Optimizer, Runtime};

    /// A GPU, whose interpreter finds races and what is read before it is written.
    pub(super) fn device(optimizer: Optimizer) -> Device {
        let mut reference = Reference::default();
        reference.caps.simt = true;
        reference.caps.max_local = 256;
        reference.caps.shared_bytes = 48 << 10;
        reference.caps.threads = 1 << 18;
        let runtime = Runtime::default();
        runtime.register(reference);
        let device = runtime.device("reference").unwrap();
        device.set_optimizer(optimizer);
        assert!(serves(device.caps()));
        device
    }

    pub(super) fn numbers(n: usize) -> Vec<f64> {
        (0..n).map(|i| ((i * 7919 + 13) % 1031) as f64 / 515.5 - 1.0).collect()
    }

    /// No sequence, whose rows depend on one another.
    pub(super) fn irregular(n: usize) -> Vec<f64> {
        let mut a = numbers(n);
        (0..n).for_each(|i| a[i] += ((i * i * 31) % 97) as f64 / 97.0);
        a
    }

    pub(super) fn largest(m: &Matrix) -> f64 {
        m.data.iter().fold(0.0, |most: f64, x| most.max(x.abs()))
    }

    /// The largest difference.
    pub(super) fn apart(x: &Matrix, y: &[f64]) -> f64 {
        assert_eq!(x.data.len(), y.len());
        let apart = x.data.iter().zip(y).map(|(x, y)| (x - y).abs());
        // A not-a-number is no small difference.
        apart.fold(0.0, |most: f64, d| if d <= most { most } else { d })
    }

    pub(super) fn parts(data: &[f64], rows: usize, columns: usize) -> Vec<Matrix> {
        let matrix = |data: &[f64]| Matrix { rows, columns, data: data.to_vec() };
        data.chunks(rows * columns).map(matrix).collect()
    }

    /// Diagonally dominant, so both triangles are well conditioned.
    fn squares(batch: usize, n: usize) -> Vec<f64> {
        let mut a = numbers(batch * n * n);
        (0..batch * n).for_each(|i| a[i / n * n * n + i % n * (n + 1)] += n as f64);
        a
    }

    #[test]
    fn groups_substitute_as_the_host_does() {
        for (batch, n, k, optimizer) in [
            (3, 5, 1, Optimizer::Off),
            (1, 64, 17, Optimizer::Off),
            (2, 33, 4, Optimizer::Default),
            (2, 70, 3, Optimizer::Default),
            (1, 200, 2, Optimizer::Off),
        ] {
            let d = device(optimizer);
            let (a, b) = (squares(batch, n), numbers(batch * n * k));
            let scaled: Vec<f64> = a.iter().map(|x| x / n as f64).collect();
            for (upper, unit) in [(false, false), (false, true), (true, false), (true, true)] {
                let a = if unit { &scaled } else { &a };
                let x = Tensor::from_slice(a, [batch, n, n], &d).unwrap();
                let y = Tensor::from_slice(&b, [batch, n, k], &d).unwrap();
                let of = Triangle { upper, unit };
                let got = triangular(&x, &y, of).unwrap().to_vec::<f64>().unwrap();
                let systems = parts(a, n, n).into_iter().zip(parts(&b, n, k));
                for ((a, b), got) in systems.zip(got.chunks(n * k)) {
                    let expected = factor::triangular(&a, &b, of);
                    let bound = 8.0 * n as f64 * f64::EPSILON * largest(&expected);
                    let apart = apart(&expected, got);
                    assert!(apart <= bound, "{batch} {n} {k} {of:?}: {apart} > {bound}");
                }
            }
        }
    }

    #[test]
    fn groups_factor_as_the_host_does() {
        for (batch, n, optimizer) in [
            (3, 1, Optimizer::Off),
            (3, 5, Optimizer::Default),
            (1, 64, Optimizer::Off),
            (2, 70, Optimizer::Default),
            (1, 200, Optimizer::Off),
        ] {
            let d = device(optimizer);
            let a = squares(batch, n);
            let x = Tensor::from_slice(&a, [batch, n, n], &d).unwrap();
            let got = cholesky(&x).unwrap().unwrap().to_vec::<f64>().unwrap();
            for (a, got) in parts(&a, n, n).iter().zip(got.chunks(n * n)) {
                let expected = factor::cholesky(a).unwrap();
                let bound = 8.0 * n as f64 * f64::EPSILON * largest(&expected);
                let apart = apart(&expected, got);
                assert!(apart <= bound, "{batch} {n}: {apart} > {bound}");
            }
        }
    }

    #[test]
    fn groups_eliminate_as_the_host_does() {
        for (batch, n, optimizer) in [
            (3, 1, Optimizer::Off),
            (3, 5, Optimizer::Default),
            (1, 70, Optimizer::Off),
            (2, 33, Optimizer::Default),
        ] {
            let d = device(optimizer);
            let (a, b) = (irregular(batch * n * n), numbers(batch * n * 3));
            let x = Tensor::from_slice(&a, [batch, n, n], &d).unwrap();
            let y = Tensor::from_slice(&b, [batch, n, 3], &d).unwrap();
            let found = Factors::of(&x).unwrap();
            let singular = parts(&a, n, n)
                .iter()
                .position(|a| factor::solve(a, &Matrix::zeros(n, 1)).is_none());
            assert_eq!((found.singular(), singular), (None, None), "{batch} {n}");
            let lu = found.lu.to_vec::<f64>().unwrap();
            let rows = found.rows.to_vec::<i32>().unwrap();
            let (signs, _) = found.determinants().unwrap();
            let signs = signs.to_vec::<f64>().unwrap();
            let solved = found.solve(&y).unwrap().to_vec::<f64>().unwrap();
            for (i, (a, b)) in parts(&a, n, n).iter().zip(parts(&b, n, 3)).enumerate() {
                let (expected, from, sign) = factor::lu(a);
                let from: Vec<i32> = from.into_iter().map(|row| row as i32).collect();
                assert_eq!(rows[i * n..][..n], from, "{batch} {n}");
                let bound = 64.0 * n as f64 * f64::EPSILON * largest(&expected);
                let off = apart(&expected, &lu[i * n * n..][..n * n]);
                assert!(off <= bound, "{batch} {n}: {off} > {bound}");
                let pivots = (0..n).map(|j| expected.at(j, j).signum());
                assert_eq!(signs[i], sign * pivots.product::<f64>());
                let x = factor::solve(a, &b).unwrap();
                let off = apart(&x, &solved[i * n * 3..][..n * 3]);
                assert!(off <= 1e-8 * largest(&x), "{batch} {n}: {off}");
            }
        }
    }

    #[test]
    fn groups_name_the_matrix_that_is_singular() {
        let d = device(Optimizer::Off);
        let a = [[[1f64, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]], [[1.0, 2.0], [2.0, 4.0]]];
        let x = Tensor::new(a, &d).unwrap();
        let b = Tensor::ones([3, 2, 1], DType::F64, &d);
        let error = x.solve(&b).unwrap_err().to_string();
        assert!(error.contains("matrix 2 is singular"), "{error}");
        assert_eq!(x.det().unwrap().to_vec::<f64>().unwrap(), [1.0, -1.0, 0.0]);
        let (sign, log) = x.slogdet().unwrap();
        assert_eq!(sign.to_vec::<f64>().unwrap(), [1.0, -1.0, 0.0]);
        assert_eq!(log.to_vec::<f64>().unwrap(), [0.0, 0.0, f64::NEG_INFINITY]);
    }

    /// Each place of a bad pivot, in the first block and in the last.
    #[test]
    fn groups_name_the_matrix_that_is_not_positive_definite() {
        let d = device(Optimizer::Off);
        for (n, at, pivot) in [(5, 4, 0.0), (5, 0, -1.0), (70, 3, -1.0), (70, 69, 0.0)] {
            let mut a = vec![0.0; 3 * n * n];
            (0..3 * n).for_each(|i| a[i / n * n * n + i % n * (n + 1)] = 2.0);
            a[n * n + at * (n + 1)] = pivot;
            a[2 * n * n] = -1.0;
            let x = Tensor::from_slice(&a, [3, n, n], &d).unwrap();
            assert_eq!(cholesky(&x).unwrap().unwrap_err(), 1, "{n} {at}");
            let error = x.cholesky().unwrap_err().to_string();
            assert!(error.contains("matrix 1 is not positive definite"), "{error}");
        }
    }

    #[test]
    fn not_a_number_comes_out_and_zeros_give_infinities() {
        let d = device(Optimizer::Off);
        let x = Tensor::new([[f64::NAN, 0.0], [0.0, 1.0]], &d).unwrap();
        assert!(x.cholesky().unwrap().to_vec::<f64>().unwrap()[0].is_nan());
        let a = Tensor::new([[0f64, 0.0], [0.0, 1.0]], &d).unwrap();
        let b = Tensor::new([[1f64], [1.0]], &d).unwrap();
        let x = a.triangular_solve(&b, false, false).unwrap().to_vec::<f64>().unwrap();
        assert_eq!(x[0], f64::INFINITY);
    }
}
