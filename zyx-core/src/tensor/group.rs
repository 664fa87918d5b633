//! Factors of matrices and triangular systems on devices of many threads, in `f64`.
//!
//! A group of threads has a block of up to [`SIDE`] rows in shared storage, or its triangle and
//! some columns of right sides, or a panel of all rows and a few columns. Larger matrices are made of blocks, in place, with products
//! between them ([`blocks`], [`lu`]): a list of launches, submitted at once, whose kernels are told which block it is.
//! QR factors are made so, too ([`qr`](mod@qr)); eigenvalues and singular values ([`jacobi`]) are of matrices that fit in shared storage.
//! So values stay on the device. Each element sees the same operations in the same order in every run.

mod blocks;
mod emit;
mod jacobi;
mod lu;
mod qr;

pub(super) use jacobi::{Wanted, rotated};
pub(super) use lu::{Factors, eliminates};
pub(super) use qr::qr;

use super::Tensor;
use super::factor::Triangle;
use crate::dtype::DType;
use crate::error::Result;
use crate::hal::{Arg, Caps};
use crate::ir::{Access, BarrierScope, Builder, Kernel, LoopKind, Space, Type, Value};
use crate::lru::Lru;
use crate::ops::BinaryOp::{self, Add, And, Div, Eq, Le, Lt, Mul, Or, Rem, Sub};
use crate::ops::{TernaryOp, UnaryOp};
use crate::origin::composed;
use crate::runtime::{Launch, Pinned};
use crate::scalar::Scalar;
use crate::shape::Shape;
use blocks::{SIDE, Systems};
use std::cell::RefCell;
use std::rc::Rc;

/// Most threads of a group of which kernels here make use, whatever the matrix.
const THREADS: usize = 256;
/// Bytes of shared storage that those for blocks need.
const BYTES: usize = 48 << 10;

/// Whether groups of this device's threads compute in `f64` as the host does.
pub(super) fn computes(caps: &Caps) -> bool {
    caps.simt
        && caps.max_iterations == 0
        && caps.compute.contains(DType::F64)
        && caps.storage.contains(DType::F64)
        && !caps.flushes_subnormals.contains(DType::F64)
        && caps.max_local >= THREADS
}

/// Whether they do, and have the shared storage for blocks of [`SIDE`] rows. Few threads take longer than
/// the host.
pub(super) fn serves(caps: &Caps) -> bool {
    !caps.has_few_threads() && computes(caps) && caps.shared_bytes >= BYTES
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
    let (a, right) = (matrices(a)?, matrices(b)?);
    let [batch, n, k] = [a.shape()[0], a.order(), right.order()];
    let caps = a.device().caps();
    let of_which = usize::from(of.upper) + 2 * usize::from(of.unit);
    let dtypes = [a.dtype(), right.dtype()];
    let list = listed(Key::new("triangular", [batch, n, k, of_which], dtypes, caps), |list| {
        if n <= SIDE {
            let (left, source) = (Some(dtypes[0]), Some(dtypes[1]));
            let systems = Systems { batch, n, k, of, a: left, source, turned: false };
            let kernel = list.kernel(blocks::triangle(systems, caps));
            list.step(kernel, &[0, 1, 2], &[]);
        } else {
            let copy = list.kernel(blocks::copy([batch, n, k], dtypes[1], false));
            list.step(copy, &[1, 2], &[]);
            solved(list, [batch, n, k], [0, 2], of, dtypes[0], caps);
        }
    });
    let results = [(right.shape().clone(), DType::F64)];
    let x = list.run(&[&a, &right], &results)?.remove(0);
    x.cast(b.dtype()).reshape(b.shape().clone())
}

/// Solves triangular systems of `n` rows and `k` right sides in place: the first buffer has the triangle, in this dtype, the
/// second the right sides.
fn solved(
    list: &mut List,
    [batch, n, k]: [usize; 3],
    [a, x]: [usize; 2],
    of: Triangle,
    dtype: DType,
    caps: &Caps,
) {
    let systems = Systems { batch, n, k, of, a: Some(dtype), source: None, turned: false };
    let triangle = list.kernel(blocks::triangle(systems, caps));
    let product = (n > SIDE)
        .then(|| list.kernel(blocks::product([batch, n, k], blocks::Operands::Left(dtype), caps)));
    for step in 0..n.div_ceil(SIDE) {
        let block = if of.upper { n.div_ceil(SIDE) - 1 - step } else { step };
        let (first, last) = (block * SIDE, n.min((block + 1) * SIDE));
        list.step(triangle, &[a, x], &[first, last - first]);
        let (from, to) = if of.upper { (0, first) } else { (last, n) };
        if let Some(product) = product.filter(|_| from < to) {
            list.step(product, &[a, x], &[from, to, 0, k, first, last]);
        }
    }
}

/// The lower factors of matrices, of which the lower triangles are read; or the number of the first
/// that is not positive definite.
#[track_caller]
pub(super) fn cholesky(a: &Tensor) -> Result<std::result::Result<Tensor, usize>> {
    let _here = composed();
    let x = matrices(a)?;
    let (batch, n, caps) = (x.shape()[0], x.order(), x.device().caps());
    let whole = n <= SIDE;
    let key = Key::new("cholesky", [batch, n, 0, 0], [x.dtype(); 2], caps);
    let list = listed(key, |list| {
        if whole {
            let kernel = list.kernel(blocks::diagonal(batch, n, Some(x.dtype()), caps));
            list.step(kernel, &[0, 1, 2], &[]);
            return;
        }
        let of = Triangle { upper: false, unit: false };
        let below = Systems { batch, n, k: n, of, a: None, source: None, turned: true };
        let copy = list.kernel(blocks::copy([batch, n, n], x.dtype(), false));
        let diagonal = list.kernel(blocks::diagonal(batch, n, None, caps));
        let below = list.kernel(blocks::triangle(below, caps));
        let product = blocks::product([batch, n, n], blocks::Operands::Mirrored, caps);
        let product = list.kernel(product);
        list.step(copy, &[0, 1], &[]);
        for first in (0..n).step_by(SIDE) {
            let last = n.min(first + SIDE);
            list.step(diagonal, &[1, 2], &[first, last - first]);
            if last < n {
                list.step(below, &[1], &[first, last - first, last]);
                list.step(product, &[1], &[last, n, last, n, first, last]);
            }
        }
    });
    let dtype = if whole { a.dtype() } else { DType::F64 };
    let results = [(x.shape().clone(), dtype), (Shape::from([batch]), DType::I32)];
    let mut both = list.run(&[&x], &results)?;
    let failed = both.pop().expect("invariant: two results").to_vec::<i32>()?;
    if let Some(at) = failed.iter().position(|&failed| failed != 0) {
        return Ok(Err(at));
    }
    let l = both.remove(0);
    let l = if whole { l } else { l.tril(0)?.cast(a.dtype()) };
    Ok(Ok(l.reshape(a.shape().clone())?))
}

/// Bytes of lists that each thread keeps.
const KEPT: usize = 1 << 20;

thread_local! {
    static LISTS: RefCell<Lru<Key, Rc<List>>> = RefCell::default();
}

/// What a list follows from: what is computed, extents and dtypes, and what kernels here know of the device.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    op: &'static str,
    extents: [usize; 4],
    dtypes: [DType; 2],
    caps: [usize; 4],
}

impl Key {
    fn new(op: &'static str, extents: [usize; 4], dtypes: [DType; 2], caps: &Caps) -> Key {
        let room = room(caps) as usize;
        let caps = [usize::from(fuses(caps)), caps.max_local, room, caps.multiprocessors()];
        Key { op, extents, dtypes, caps }
    }
}

/// Whether products are rounded together with what they are added to.
fn fuses(caps: &Caps) -> bool {
    caps.fast_fma && caps.has_ternary(TernaryOp::MulAdd, DType::F64)
}

/// The list of this key, which is made once.
fn listed(key: Key, make: impl FnOnce(&mut List)) -> Rc<List> {
    if let Some(list) = LISTS.with_borrow_mut(|lists| lists.get(&key).cloned()) {
        return list;
    }
    let mut list = List::default();
    make(&mut list);
    let list = Rc::new(list);
    LISTS.with_borrow_mut(|lists| {
        lists.insert(key, Rc::clone(&list), list.bytes());
        lists.fit(KEPT);
    });
    list
}

/// Launches one after the other.
#[derive(Default)]
struct List {
    kernels: Vec<Kernel>,
    steps: Vec<Step>,
}

struct Step {
    kernel: usize,
    /// Which of inputs and results are its arguments, and scalars.
    buffers: Vec<usize>,
    scalars: Vec<usize>,
}

impl List {
    /// Adds a kernel; gives its number.
    fn kernel(&mut self, kernel: Kernel) -> usize {
        self.kernels.push(kernel);
        self.kernels.len() - 1
    }

    fn bytes(&self) -> usize {
        let step = |step: &Step| {
            size_of::<Step>() + size_of::<usize>() * (step.buffers.len() + step.scalars.len())
        };
        let steps: usize = self.steps.iter().map(step).sum();
        size_of::<List>() + steps + self.kernels.iter().map(Kernel::bytes).sum::<usize>()
    }

    fn step(&mut self, kernel: usize, buffers: &[usize], scalars: &[usize]) {
        let (buffers, scalars) = (buffers.to_vec(), scalars.to_vec());
        self.steps.push(Step { kernel, buffers, scalars });
    }

    /// Launches all, with these inputs and results of these shapes and dtypes, of which the latter are given.
    #[track_caller]
    fn run(&self, inputs: &[&Tensor], results: &[(Shape, DType)]) -> Result<Vec<Tensor>> {
        let device = inputs[0].device();
        Tensor::realize_all(inputs.iter().copied())?;
        let programs = device.guarded_programs(&self.kernels.iter().collect::<Vec<_>>())?;
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
            let mut arguments: Vec<Vec<Arg<'_, Pinned>>> = Vec::new();
            for step in &self.steps {
                let buffers = step.buffers.iter().map(|&i| Arg::Buffer(&pins[i], 0));
                let scalars = step.scalars.iter().map(|&x| Arg::Scalar(x as u64));
                arguments.push(buffers.chain(scalars).collect());
            }
            let before: Vec<u32> = (0..self.steps.len() as u32).collect();
            let mut launches = Vec::new();
            for (at, (step, args)) in self.steps.iter().zip(&arguments).enumerate() {
                let after = &before[at.saturating_sub(1)..at];
                launches.push(Launch { program: &programs[step.kernel], args, after });
            }
            device.submit(&launches)?;
            Ok(buffers)
        })?;
        let leaf = |(buffer, (shape, dtype)): (_, &(Shape, DType))| {
            Tensor::leaf(buffer, shape.clone(), *dtype)
        };
        Ok(buffers.into_iter().zip(results).map(leaf).collect())
    }
}

/// Launches a kernel that reads these tensors and writes some of these shapes and dtypes.
#[track_caller]
fn run(kernel: Kernel, inputs: &[&Tensor], results: &[(Shape, DType)]) -> Result<Vec<Tensor>> {
    let mut list = List::default();
    let kernel = list.kernel(kernel);
    list.step(kernel, &(0..inputs.len() + results.len()).collect::<Vec<_>>(), &[]);
    list.run(inputs, results)
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
        let n = self.b.index(n);
        self.each_of(n, columns, f);
    }

    fn each_of(&mut self, n: Value, columns: i64, f: impl FnOnce(&mut Emit, Value, Value, Value)) {
        let more = self.by(Add, n, self.threads - 1);
        let turns = self.by(Div, more, self.threads);
        let turn = self.b.open_loop(LoopKind::Serial, 0, turns);
        let first = self.by(Mul, turn, self.threads);
        let number = self.b.binary(Add, first, self.thread);
        let inside = self.b.binary(Lt, number, n);
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
        let mut state = n as u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        };
        (0..n).map(|_| next()).collect()
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
            // A few columns at a time, all rows right of a panel at once.
            (2, 100, Optimizer::Default),
            // By blocks of several panels.
            (1, 200, Optimizer::Off),
        ] {
            let d = device(optimizer);
            let (a, b) = (irregular(batch * n * n), numbers(batch * n * 3));
            let x = Tensor::from_slice(&a, [batch, n, n], &d).unwrap();
            let y = Tensor::from_slice(&b, [batch, n, 3], &d).unwrap();
            let found = Factors::of(&x).unwrap();
            let singular = parts(&a, n, n)
                .iter()
                .position(|a| factor::solve(a, &Matrix::zeros(n, 1)).is_none());
            assert_eq!((found.singular().unwrap(), singular), (None, None), "{batch} {n}");
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
        // In the first panel and in a later one.
        let n = 100;
        for column in [3, 60] {
            let mut a = irregular(2 * n * n);
            (0..n).for_each(|i| a[(n + i) * n + column] = 0.0);
            let x = Tensor::from_slice(&a, [2, n, n], &d).unwrap();
            let b = Tensor::ones([2, n, 1], DType::F64, &d);
            let error = x.solve(&b).unwrap_err().to_string();
            assert!(error.contains("matrix 1 is singular"), "{error}");
            let det = x.det().unwrap().to_vec::<f64>().unwrap();
            assert!(det[0] != 0.0 && det[1] == 0.0, "{det:?}");
        }
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
        let n = 100;
        for at in [0, 50 * n + 50, 60 * n + 3] {
            let mut a = squares(2, n);
            a[at] = f64::NAN;
            let x = Tensor::from_slice(&a, [2, n, n], &d).unwrap();
            let b = Tensor::ones([2, n, 1], DType::F64, &d);
            for y in [x.solve(&b), x.cholesky(), x.det(), x.triangular_solve(&b, false, false)] {
                let y = y.unwrap().to_vec::<f64>().unwrap();
                let (first, second) = y.split_at(y.len() / 2);
                assert!(first.iter().any(|x| x.is_nan()), "{at}");
                assert!(second.iter().all(|x| !x.is_nan()), "{at}");
            }
        }
    }
}
