//! QR factors by Householder's reflections.
//!
//! The reflection of column `j` is `1 - beta v v^T`, where `v` is the column below the diagonal as it
//! was when its turn came, which stays in its place, with another first element. So a group keeps one matrix:
//! the upper triangle is written out before the columns of `q` take the place of those.
//!
//! Of a matrix that does not fit a group has a panel, all rows from the diagonal down and a few columns; narrow panels are
//! joined to blocks of [`WIDE`] columns. With `g = v^T v`
//! the reflections of a block together are `1 - v t v^T`, where `t` is the inverse of `g`'s upper triangle with the
//! reciprocals of the betas as its diagonal (Puglisi 1992), so what `t` is multiplied with is solved for by substitution. The columns right
//! of a block follow at once, and `q` is made of the columns of the identity by all blocks, the last one first.

use super::blocks::{COLUMNS, split};
use super::*;

/// Most threads of a group that has a whole matrix, and of one that has a panel.
const MOST: i64 = 256;
const MANY: i64 = 512;
/// Rows for each thread of a team.
const ROWS: i64 = 32;
/// Most threads of a team where columns are short.
const WARP: i64 = 8;
/// Square of the length below the diagonal that is taken for none, of a matrix with elements near 1:
/// squares of less are subnormal, and known to few bits.
const NONE: f64 = 1e-280;
/// Columns of a block and of the widest panel, and of the narrowest panel that is worth a launch.
const WIDE: i64 = COLUMNS;
const NARROW: i64 = 4;
/// Rows that a group which applies a block has at once, and steps of its threads from row to row.
const CHUNK: i64 = 64;
const STEP: i64 = 8;
/// Most groups that share the rows of some columns, and groups for each multiprocessor that they are for.
const PARTS: usize = 8;
const GROUPS: usize = 2;

/// How a group has a matrix of at least as many rows as columns, or a panel: each column has a team of threads.
#[derive(Clone, Copy, Debug)]
struct Layout {
    m: i64,
    n: i64,
    parts: i64,
}

impl Layout {
    fn new(m: usize, n: usize, most: i64, caps: &Caps) -> Layout {
        let (m, n) = (m as i64, n as i64);
        let most = most.min(caps.max_local as i64);
        let parts = (most / n).min(WARP.max(m / ROWS)).min(m).max(1);
        Layout { m, n, parts }
    }

    /// The widest panel of such matrices; `None` where the host factors them, since panels would be too narrow: the device
    /// takes about two microseconds for each column, and some ten for each panel.
    fn panel(m: usize, n: usize, caps: &Caps) -> Option<Layout> {
        if room(caps) < BYTES as i64 {
            return None;
        }
        let most = (n as i64).min(WIDE) / NARROW;
        let panels = (1..=most).rev().map(|i| (i * NARROW) as usize);
        panels.map(|n| Layout::new(m, n, MANY, caps)).find(|layout| layout.fits(caps))
    }

    fn threads(self) -> i64 {
        self.n * self.parts
    }

    fn bytes(self) -> i64 {
        8 * (self.m * self.n + 2 * self.threads() + 4 * self.n)
    }

    fn fits(self, caps: &Caps) -> bool {
        self.threads() <= caps.max_local as i64 && self.bytes() <= room(caps)
    }
}

/// The factors `[m, n]` and `[n, n]` of matrices of at least as many rows as columns, flattened behind the
/// batch, one behind the other, in the dtype of `a`; `None` where the host is to.
#[track_caller]
pub(in crate::tensor) fn qr(a: &Tensor) -> Result<Option<Tensor>> {
    let &[ref lead @ .., m, n] = a.shape().dims() else {
        unreachable!("invariant: the caller has checked that these are matrices")
    };
    let caps = a.device().caps();
    let layout = Layout::new(m, n, MOST, caps);
    if !layout.fits(caps) {
        return match Layout::panel(m, n, caps) {
            Some(layout) => paneled(a, layout).map(Some),
            None => Ok(None),
        };
    }
    let a = matrices(a)?;
    let (batch, size) = (a.shape()[0], (m + n) * n);
    let key = Key::new("qr", [batch, m, n, 0], [a.dtype(); 2], caps);
    let list = listed(key, |list| {
        let kernel = list.kernel(reflections(batch, layout, a.dtype(), caps));
        list.step(kernel, &[0, 1], &[]);
    });
    let mut found = list.run(&[&a], &[(Shape::from([batch, size]), a.dtype())])?;
    found.remove(0).reshape([lead, &[size]].concat()).map(Some)
}

/// As [`qr`](fn@qr), by panels.
#[track_caller]
fn paneled(a: &Tensor, layout: Layout) -> Result<Tensor> {
    let lead = &a.shape()[..a.rank() - 2];
    let a = matrices(a)?;
    let [batch, m, n] = [0, 1, 2].map(|axis| a.shape()[axis]);
    let caps = a.device().caps();
    let most = a.abs().cast(DType::F64).reshape([batch, m * n])?.max(-1)?;
    let width = layout.n as usize;
    let [largest, scales, r, v, betas, sums, q] = [1, 2, 3, 4, 5, 6, 7];
    let key = Key::new("panels", [batch, m, n, 0], [a.dtype(); 2], caps);
    let list = listed(key, |list| {
        let scale = list.kernel(powers(batch));
        let copy = list.kernel(scaled([batch, m, n], a.dtype()));
        let panel = list.kernel(panel([batch, m, n], layout, caps));
        let products = list.kernel(products([batch, m, n], caps));
        let reflected = list.kernel(reflected([batch, m, n], caps));
        let unit = list.kernel(identity([batch, m, n]));
        // Reflects columns `from..to` of a matrix by columns `first..last`.
        let apply =
            |list: &mut List, x, [first, last]: [usize; 2], [from, to]: [usize; 2], back| {
                let chunks = (m - first).div_ceil(CHUNK as usize);
                let strips = (to - from).div_ceil(COLUMNS as usize) * batch;
                let parts = (GROUPS * caps.multiprocessors() / strips).clamp(1, PARTS.min(chunks));
                let w = last - first;
                list.step(products, &[v, x, sums], &[first, w, from, to, parts]);
                list.step(reflected, &[v, betas, sums, x], &[first, w, from, to, parts, back]);
            };
        list.step(scale, &[largest, scales], &[]);
        list.step(copy, &[0, scales, r], &[]);
        let block = WIDE as usize / width * width;
        for start in (0..n).step_by(block) {
            let end = n.min(start + block);
            for first in (start..end).step_by(width) {
                let last = end.min(first + width);
                list.step(panel, &[r, v, betas], &[first]);
                if last < end {
                    apply(list, r, [first, last], [last, end], 0);
                }
            }
            if end < n {
                apply(list, r, [start, end], [end, n], 0);
            }
        }
        list.step(unit, &[q], &[]);
        for start in (0..n).step_by(block).rev() {
            apply(list, q, [start, n.min(start + block)], [start, n], 1);
        }
    });
    let results = [
        [batch, 2].into(),
        [batch, m, n].into(),
        [batch, m, n].into(),
        [batch, n].into(),
        [batch, PARTS, strips(n), (WIDE * COLUMNS) as usize].into(),
        [batch, m, n].into(),
    ];
    let all = list.run(&[&a, &most], &results.map(|shape: Shape| (shape, DType::F64)))?;
    let [scales, r, .., q] = &all[..] else { unreachable!("invariant: a tensor for each shape") };
    let inverse = scales.slice(1, 1..2)?.unsqueeze(-1)?;
    let r = r.slice(1, ..n)?.triu(0)?.mul(&inverse)?;
    let parts = [(q, m), (&r, n)].map(|(x, rows)| x.cast(a.dtype()).reshape([batch, rows * n]));
    let [q, r] = parts;
    Tensor::cat(&[&q?, &r?], -1)?.reshape([lead, &[(m + n) * n]].concat())
}

/// For the largest magnitude of each matrix the power of two that brings it to 1 or more and below 2, and its reciprocal.
fn powers(batch: usize) -> Kernel {
    let mut b = Builder::new(&format!("powers_{batch}"));
    let most = b.param(DType::F64, batch as u64, Access::Read);
    let out = b.param(DType::F64, 2 * batch as u64, Access::Write);
    let count = b.index(batch as i64);
    let at = b.open_loop(LoopKind::Parallel, 0, count);
    let mut e = Emit { b, thread: at, threads: 1, fused: false };
    let x = e.b.load(most, at);
    let bits = e.b.bitcast(DType::I64, x);
    // Not-a-number may have a sign.
    let bits = e.by(And, bits, i64::MAX);
    let [scale, inverse, _] = e.power(bits);
    let first = e.by(Mul, at, 2);
    e.b.store(out, first, scale);
    let second = e.by(Add, first, 1);
    e.b.store(out, second, inverse);
    e.b.close();
    e.b.finish()
}

/// Matrices multiplied by the first of two numbers that each has.
fn scaled([batch, m, n]: [usize; 3], dtype: DType) -> Kernel {
    let mut b = Builder::new(&format!("scaled_{batch}_{m}_{n}"));
    let len = batch * m * n;
    let from = b.param(dtype, len as u64, Access::Read);
    let scales = b.param(DType::F64, 2 * batch as u64, Access::Read);
    let to = b.param(DType::F64, len as u64, Access::Write);
    let count = b.index(len as i64);
    let at = b.open_loop(LoopKind::Parallel, 0, count);
    let (size, two) = (b.index((m * n) as i64), b.index(2));
    let number = b.binary(Div, at, size);
    let number = b.binary(Mul, number, two);
    let (x, scale) = (b.load(from, at), b.load(scales, number));
    let x = b.cast(DType::F64, x);
    let x = b.binary(Mul, x, scale);
    b.store(to, at, x);
    b.close();
    b.finish()
}

/// The first columns of the identity.
fn identity([batch, m, n]: [usize; 3]) -> Kernel {
    let mut b = Builder::new(&format!("identity_{batch}_{m}_{n}"));
    let len = batch * m * n;
    let to = b.param(DType::F64, len as u64, Access::Write);
    let count = b.index(len as i64);
    let at = b.open_loop(LoopKind::Parallel, 0, count);
    let (m, n) = (b.index(m as i64), b.index(n as i64));
    let (row, column) = (b.binary(Div, at, n), b.binary(Rem, at, n));
    let row = b.binary(Rem, row, m);
    let diagonal = b.binary(Eq, row, column);
    let x = b.cast(DType::F64, diagonal);
    b.store(to, at, x);
    b.close();
    b.finish()
}

/// A thread of a column's team, and shared storage of the group.
#[derive(Clone, Copy)]
struct Team {
    layout: Layout,
    /// Rows that there are.
    m: Value,
    column: Value,
    part: Value,
    matrix: Value,
    /// A number of each thread.
    sums: Value,
    /// Elements right of the diagonal; the diagonal of `r`; factors and first elements of reflections.
    row: Value,
    diagonal: Value,
    betas: Value,
    firsts: Value,
}

impl Team {
    /// Storage in a group whose threads do not run yet.
    fn storage(b: &mut Builder, layout: Layout) -> [Value; 6] {
        let n = layout.n;
        [layout.m * n, layout.threads(), n, n, n, n].map(|len| shared(b, len))
    }

    fn new(e: &mut Emit, layout: Layout, m: Value, storage: [Value; 6]) -> Team {
        let [matrix, sums, row, diagonal, betas, firsts] = storage;
        let (column, part) = (e.by(Rem, e.thread, layout.n), e.by(Div, e.thread, layout.n));
        Team { layout, m, column, part, matrix, sums, row, diagonal, betas, firsts }
    }

    /// `f` of the thread's rows below row `j`.
    fn below(self, e: &mut Emit, j: Value, f: &mut dyn FnMut(&mut Emit, Value)) {
        let parts = self.layout.parts;
        let before = e.by(Div, j, parts);
        let all = e.by(Add, self.m, parts - 1);
        let all = e.by(Div, all, parts);
        let turns = e.op(Sub, all, before);
        e.repeat(turns, |e, turn| {
            let turn = e.op(Add, before, turn);
            let first = e.by(Mul, turn, parts);
            let i = e.op(Add, first, self.part);
            let (is_below, exists) = (e.op(Lt, j, i), e.op(Lt, i, self.m));
            let is_own = e.op(And, is_below, exists);
            e.when(is_own, |e| f(e, i));
        });
    }

    /// Whether row `j` is one of the thread's.
    fn has_row(self, e: &mut Emit, j: Value) -> Value {
        let owner = e.by(Rem, j, self.layout.parts);
        e.op(Eq, owner, self.part)
    }

    fn place(self, e: &mut Emit, i: Value, j: Value) -> Value {
        e.place(i, j, self.layout.n)
    }

    /// The thread's part of the product of the thread's column and column `j`.
    fn along(self, e: &mut Emit, j: Value) {
        let zero = e.number(0.0);
        let sum = e.register(zero);
        self.below(e, j, &mut |e, i| {
            let (v, x) = (self.place(e, i, j), self.place(e, i, self.column));
            let (v, x) = (e.b.load(self.matrix, v), e.b.load(self.matrix, x));
            let before = e.get(sum);
            let now = e.product_and(v, x, before);
            e.set(sum, now);
        });
        let sum = e.get(sum);
        e.b.store(self.sums, e.thread, sum);
    }

    /// The sum of a team's parts.
    fn whole(self, e: &mut Emit, column: Value) -> Value {
        let count = e.b.index(self.layout.parts);
        e.sum(count, |e, part| {
            let from = self.place(e, part, column);
            e.b.load(self.sums, from)
        })
    }

    /// Adds a multiple of column `j` to the thread's.
    fn add(self, e: &mut Emit, j: Value, factor: Value) {
        self.below(e, j, &mut |e, i| {
            let (v, place) = (self.place(e, i, j), self.place(e, i, self.column));
            let (v, x) = (e.b.load(self.matrix, v), e.b.load(self.matrix, place));
            let x = e.product_and(factor, v, x);
            e.b.store(self.matrix, place, x);
        });
    }

    /// Reflects columns `j` and those right of it.
    fn reflect(self, e: &mut Emit, j: Value) {
        let column = self.column;
        let takes_part = e.op(Le, j, column);
        e.when(takes_part, |e| {
            self.along(e, j);
            let own = self.has_row(e, j);
            e.when(own, |e| {
                let from = self.place(e, j, column);
                let x = e.b.load(self.matrix, from);
                e.b.store(self.row, column, x);
            });
        });
        e.meet();
        e.when(takes_part, |e| {
            let (square, pivot) = (self.whole(e, j), e.b.load(self.row, j));
            let none = e.number(NONE);
            // Not-a-number is reflected, too.
            let is_none = e.op(Le, square, none);
            let length = e.product_and(pivot, pivot, square);
            let norm = e.b.unary(UnaryOp::Sqrt, length);
            let negative = e.negative(norm);
            let (bits, zero_bits) = (e.b.bitcast(DType::I64, pivot), e.b.index(0));
            let is_negative = e.op(Lt, bits, zero_bits);
            let norm = e.b.select(is_negative, negative, norm);
            let first = e.op(Add, pivot, norm);
            let length = e.product_and(first, first, square);
            let two = e.number(2.0);
            let beta = e.op(Div, two, length);
            let zero = e.number(0.0);
            let beta = e.b.select(is_none, zero, beta);
            let is_pivot = e.op(Eq, column, j);
            let one_part = e.by(Eq, self.part, 0);
            let tells = e.op(And, is_pivot, one_part);
            e.when(tells, |e| {
                let other = e.negative(norm);
                let kept = e.b.select(is_none, pivot, other);
                e.b.store(self.diagonal, j, kept);
                e.b.store(self.betas, j, beta);
                e.b.store(self.firsts, j, first);
            });
            let right = e.op(Lt, j, column);
            e.when(right, |e| {
                let (sum, top) = (self.whole(e, column), e.b.load(self.row, column));
                let sum = e.product_and(first, top, sum);
                let factor = e.op(Mul, beta, sum);
                let factor = e.negative(factor);
                let own = self.has_row(e, j);
                e.when(own, |e| {
                    let x = e.product_and(factor, first, top);
                    let to = self.place(e, j, column);
                    e.b.store(self.matrix, to, x);
                });
                self.add(e, j, factor);
            });
        });
        e.meet();
    }
}

fn reflections(batch: usize, layout: Layout, dtype: DType, caps: &Caps) -> Kernel {
    let Layout { m, n, .. } = layout;
    let mut b = Builder::new(&format!("qr_{batch}_{m}_{n}"));
    let a = b.param(dtype, batch as u64 * (m * n) as u64, Access::Read);
    let out = b.param(dtype, batch as u64 * ((m + n) * n) as u64, Access::Write);
    let groups = b.index(batch as i64);
    let group = b.open_loop(LoopKind::Group, 0, groups);
    let storage = Team::storage(&mut b, layout);
    let marks = b.alloc(Space::Shared, Type::scalar(DType::I64), layout.threads() as u32);
    let mut e = Emit::new(b, layout.threads(), caps);
    let rows = e.b.index(m);
    let team = Team::new(&mut e, layout, rows, storage);
    let Team { column, matrix, diagonal, betas, firsts, .. } = team;
    let base = e.by(Mul, group, m * n);
    let source = |e: &mut Emit, i: Value, j: Value| {
        let place = e.place(i, j, n);
        let from = e.op(Add, base, place);
        let x = e.b.load(a, from);
        e.b.cast(DType::F64, x)
    };
    let [scale, inverse, _] = e.scale((m, n), marks, source);
    e.each(m * n, n, |e, place, i, j| {
        let x = source(e, i, j);
        let x = e.op(Mul, x, scale);
        e.b.store(matrix, place, x);
    });
    e.meet();
    let zero = e.number(0.0);
    let steps = e.b.index(n);
    e.repeat(steps, |e, j| team.reflect(e, j));
    let base = e.by(Mul, group, (m + n) * n);
    e.each(n * n, n, |e, place, i, j| {
        let (x, pivot) = (e.b.load(matrix, place), e.b.load(diagonal, i));
        let (right, equal) = (e.op(Lt, i, j), e.op(Eq, i, j));
        let x = e.b.select(right, x, zero);
        let x = e.b.select(equal, pivot, x);
        let x = e.op(Mul, x, inverse);
        let to = e.op(Add, base, place);
        let to = e.by(Add, to, m * n);
        let x = e.b.cast(dtype, x);
        e.b.store(out, to, x);
    });
    e.meet();
    e.repeat(steps, |e, step| {
        let last = e.b.index(n - 1);
        let j = e.op(Sub, last, step);
        let right = e.op(Lt, j, column);
        e.when(right, |e| team.along(e, j));
        e.meet();
        let (beta, first) = (e.b.load(betas, j), e.b.load(firsts, j));
        let own = team.has_row(e, j);
        e.when(right, |e| {
            let sum = team.whole(e, column);
            let factor = e.op(Mul, beta, sum);
            let factor = e.negative(factor);
            e.when(own, |e| {
                let x = e.op(Mul, factor, first);
                let to = e.place(j, column, n);
                e.b.store(matrix, to, x);
            });
            team.add(e, j, factor);
        });
        e.meet();
        let is_pivot = e.op(Eq, column, j);
        e.when(is_pivot, |e| {
            let factor = e.op(Mul, beta, first);
            let factor = e.negative(factor);
            team.below(e, j, &mut |e, i| {
                let place = e.place(i, j, n);
                let v = e.b.load(matrix, place);
                let x = e.op(Mul, factor, v);
                e.b.store(matrix, place, x);
            });
            e.when(own, |e| {
                let one = e.number(1.0);
                let x = e.product_and(factor, first, one);
                let to = e.place(j, j, n);
                e.b.store(matrix, to, x);
            });
        });
    });
    e.meet();
    e.each(m * n, n, |e, place, _, _| {
        let x = e.b.load(matrix, place);
        let to = e.op(Add, base, place);
        let x = e.b.cast(dtype, x);
        e.b.store(out, to, x);
    });
    e.end()
}

/// Reflects the columns from an argument on, in the rows from there on, of each of a batch of matrices: `r` of the block on the
/// diagonal takes its place; the reflections' columns from the diagonal down, and their betas.
fn panel([batch, m, n]: [usize; 3], layout: Layout, caps: &Caps) -> Kernel {
    let width = layout.n;
    let mut b = Builder::new(&format!("qr_{batch}_{m}_{n}_{width}"));
    let len = (batch * m * n) as u64;
    let r = b.param(DType::F64, len, Access::ReadWrite);
    let v = b.param(DType::F64, len, Access::Write);
    let factors = b.param(DType::F64, (batch * n) as u64, Access::Write);
    let (m, n) = (m as i64, n as i64);
    let first = b.var(DType::I64, 0, n - 1);
    let [rows, columns] = [m, n].map(|all| {
        let all = b.index(all);
        b.binary(Sub, all, first)
    });
    let wide = b.index(width);
    let w = b.binary(BinaryOp::Min, wide, columns);
    let groups = b.index(batch as i64);
    let group = b.open_loop(LoopKind::Group, 0, groups);
    let storage = Team::storage(&mut b, layout);
    let mut e = Emit::new(b, layout.threads(), caps);
    let team = Team::new(&mut e, layout, rows, storage);
    let Team { matrix, diagonal, betas, firsts, .. } = team;
    let row = e.by(Mul, group, m);
    let row = e.op(Add, row, first);
    let place = |e: &mut Emit, i: Value, c: Value| {
        let (i, exists) = (e.op(Add, row, i), e.op(Lt, c, w));
        let column = e.op(Add, first, c);
        let at = e.place(i, column, n);
        e.b.guard(at, exists)
    };
    let count = e.by(Mul, rows, width);
    let load = |e: &mut Emit, [_, i, c]: [Value; 3], exists: Value| {
        let from = place(e, i, c);
        let from = e.b.guard(from, exists);
        e.b.load(r, from)
    };
    e.transfer(count, width, load, |e, [at, ..], x| {
        e.b.store(matrix, at, x);
    });
    // Nobody writes what others are still to read.
    e.b.barrier(BarrierScope::Group);
    e.repeat(w, |e, j| team.reflect(e, j));
    e.each_of(count, width, |e, at, i, c| {
        let x = e.b.load(matrix, at);
        let to = place(e, i, c);
        let (lower, upper) = (e.op(Le, c, i), e.op(Le, i, c));
        let (equal, exists) = (e.op(Eq, i, c), e.op(Lt, c, w));
        let known = e.b.guard(c, exists);
        e.when(lower, |e| {
            let first = e.b.load(firsts, known);
            let x = e.b.select(equal, first, x);
            e.b.store(v, to, x);
        });
        e.when(upper, |e| {
            let pivot = e.b.load(diagonal, known);
            let x = e.b.select(equal, pivot, x);
            e.b.store(r, to, x);
        });
    });
    e.each(width, width, |e, c, _, _| {
        let exists = e.op(Lt, c, w);
        let at = e.by(Mul, group, n);
        let at = e.op(Add, at, first);
        let at = e.op(Add, at, c);
        let at = e.b.guard(at, exists);
        let known = e.b.guard(c, exists);
        let beta = e.b.load(betas, known);
        e.b.store(factors, at, beta);
    });
    e.end()
}

/// Strips of columns, and one for the block itself.
fn strips(n: usize) -> usize {
    n.div_ceil(COLUMNS as usize) + 1
}

/// What kernels that apply a block know of their groups: the block has `w` columns from `first` on, and is applied to
/// columns `from..to`.
struct Applied {
    n: i64,
    v: Value,
    x: Value,
    first: Value,
    w: Value,
    to: Value,
    parts: Value,
    /// Rows from the diagonal down, and in chunks.
    rows: Value,
    chunks: Value,
    /// The matrix's first row there, its number, the part of the rows, the strip and its first column.
    base: Value,
    number: Value,
    part: Value,
    strip: Value,
    leftmost: Value,
    /// Row and column of the thread.
    down: Value,
    across: Value,
    /// Rows of the block in shared storage.
    left: Value,
}

/// Arguments of such kernels.
struct Arguments {
    v: Value,
    sums: Value,
    x: Value,
    first: Value,
    w: Value,
    from: Value,
    to: Value,
    parts: Value,
}

impl Applied {
    /// Begins a kernel of groups for each strip of columns, and `extra` strips more, that share its rows.
    fn begin(
        mut b: Builder,
        [batch, m, n]: [usize; 3],
        of: &Arguments,
        extra: i64,
        caps: &Caps,
    ) -> (Emit, Applied, Value, Value) {
        let (m, n) = (m as i64, n as i64);
        let Arguments { v, x, first, w, from, to, parts, .. } = *of;
        let up = |b: &mut Builder, n: Value, by: i64| {
            let (more, by) = (b.index(by - 1), b.index(by));
            let n = b.binary(Add, n, more);
            b.binary(Div, n, by)
        };
        let columns = b.binary(Sub, to, from);
        let strips = up(&mut b, columns, COLUMNS);
        let (all_rows, extra) = (b.index(m), b.index(extra));
        let rows = b.binary(Sub, all_rows, first);
        let chunks = up(&mut b, rows, CHUNK);
        let each = b.binary(Add, strips, extra);
        let parted = b.binary(Mul, each, parts);
        let all = b.index(batch as i64);
        let groups = b.binary(Mul, all, parted);
        let group = b.open_loop(LoopKind::Group, 0, groups);
        let left = shared(&mut b, CHUNK * WIDE);
        let right = shared(&mut b, CHUNK * COLUMNS);
        let mut e = Emit::new(b, STEP * COLUMNS, caps);
        let (number, rest) = split(&mut e, group, batch, parted);
        let (part, strip) = (e.op(Div, rest, each), e.op(Rem, rest, each));
        let base = e.by(Mul, number, m);
        let base = e.op(Add, base, first);
        let (down, across) = (e.by(Div, e.thread, COLUMNS), e.by(Rem, e.thread, COLUMNS));
        let leftmost = e.by(Mul, strip, COLUMNS);
        let leftmost = e.op(Add, from, leftmost);
        let own = Applied {
            n,
            v,
            x,
            first,
            w,
            to,
            parts,
            rows,
            chunks,
            base,
            number,
            part,
            strip,
            leftmost,
            down,
            across,
            left,
        };
        (e, own, right, strips)
    }

    /// A column of the matrix, so many rows below the diagonal.
    fn element(&self, e: &mut Emit, i: Value, column: Value, exists: Value) -> Value {
        let inside = e.op(Lt, i, self.rows);
        let exists = e.op(And, exists, inside);
        let i = e.op(Add, self.base, i);
        let at = e.place(i, column, self.n);
        e.b.guard(at, exists)
    }

    /// The element of the block's columns, zero above the diagonal.
    fn reflection(&self, e: &mut Emit, i: Value, c: Value) -> Value {
        let (lower, inside) = (e.op(Le, c, i), e.op(Lt, c, self.w));
        let exists = e.op(And, lower, inside);
        let column = e.op(Add, self.first, c);
        let from = self.element(e, i, column, exists);
        e.b.load(self.v, from)
    }

    /// The place of a column of the strip.
    fn strip(&self, e: &mut Emit, i: Value, column: Value) -> Value {
        let column = e.op(Add, self.leftmost, column);
        let exists = e.op(Lt, column, self.to);
        self.element(e, i, column, exists)
    }

    /// `f` of the first row of each of the group's chunks.
    fn each_chunk(&self, e: &mut Emit, f: impl FnOnce(&mut Emit, Value)) {
        let left = e.op(Sub, self.chunks, self.part);
        let more = e.by(Sub, self.parts, 1);
        let left = e.op(Add, left, more);
        let turns = e.op(Div, left, self.parts);
        e.repeat(turns, |e, turn| {
            let chunk = e.op(Mul, turn, self.parts);
            let chunk = e.op(Add, chunk, self.part);
            let top = e.by(Mul, chunk, CHUNK);
            e.each(CHUNK * WIDE, WIDE, |e, at, i, c| {
                let i = e.op(Add, top, i);
                let value = self.reflection(e, i, c);
                e.b.store(self.left, at, value);
            });
            f(e, top);
        });
    }

    /// The thread's rows of products, which are a row of the block each.
    fn own(&self, e: &mut Emit) -> Vec<Value> {
        (0..WIDE / STEP).map(|u| e.by(Add, self.down, STEP * u)).collect()
    }

    /// The sums of a part of the rows for a strip.
    fn sums(&self, e: &mut Emit, part: Value, strip: Value) -> Value {
        let at = e.by(Mul, self.number, PARTS as i64);
        let at = e.op(Add, at, part);
        let at = e.place(at, strip, strips(self.n as usize) as i64);
        e.by(Mul, at, WIDE * COLUMNS)
    }
}

/// The products of the transpose of a block with columns, and with itself, of each part of the rows.
fn products(shape: [usize; 3], caps: &Caps) -> Kernel {
    let [batch, m, n] = shape;
    let mut b = Builder::new(&format!("products_{batch}_{m}_{n}"));
    let len = (batch * m * n) as u64;
    let [v, x] = [(); 2].map(|()| b.param(DType::F64, len, Access::Read));
    let sums = b.param(DType::F64, sums(batch, n), Access::Write);
    let of = arguments(&mut b, n, [v, x, sums]);
    let (mut e, own, right, strips) = Applied::begin(b, shape, &of, 1, caps);
    let itself = e.op(Eq, own.strip, strips);
    let other = e.op(BinaryOp::Ne, own.strip, strips);
    let zero = e.number(0.0);
    let rows = own.own(&mut e);
    let totals: Vec<Value> = rows.iter().map(|_| e.register(zero)).collect();
    own.each_chunk(&mut e, |e, top| {
        e.each(CHUNK * COLUMNS, COLUMNS, |e, at, i, column| {
            let i = e.op(Add, top, i);
            let from = own.strip(e, i, column);
            let from = e.b.guard(from, other);
            let value = e.b.load(own.x, from);
            let reflection = own.reflection(e, i, column);
            let value = e.b.select(itself, reflection, value);
            e.b.store(right, at, value);
        });
        e.meet();
        let count = e.b.index(CHUNK);
        e.repeat(count, |e, i| {
            let from = e.place(i, own.across, COLUMNS);
            let value = e.b.load(right, from);
            for (&row, &total) in rows.iter().zip(&totals) {
                let from = e.place(i, row, WIDE);
                let (factor, before) = (e.b.load(own.left, from), e.get(total));
                let now = e.product_and(factor, value, before);
                e.set(total, now);
            }
        });
        e.meet();
    });
    let last = e.b.index(self::strips(n) as i64 - 1);
    let strip = e.b.select(itself, last, own.strip);
    let start = own.sums(&mut e, own.part, strip);
    for (&row, &total) in rows.iter().zip(&totals) {
        let at = e.place(row, own.across, COLUMNS);
        let at = e.op(Add, start, at);
        let total = e.get(total);
        e.b.store(of.sums, at, total);
    }
    e.end()
}

/// Elements of the sums of all parts.
fn sums(batch: usize, n: usize) -> u64 {
    (batch * PARTS * strips(n)) as u64 * (WIDE * COLUMNS) as u64
}

/// The scalars behind the buffers.
fn arguments(b: &mut Builder, n: usize, [v, x, sums]: [Value; 3]) -> Arguments {
    let n = n as i64;
    let [first, w] = [(0, n - 1), (1, WIDE)].map(|(least, most)| b.var(DType::I64, least, most));
    let [from, to] = [n - 1, n].map(|most| b.var(DType::I64, 0, most));
    let parts = b.var(DType::I64, 1, PARTS as i64);
    Arguments { v, sums, x, first, w, from, to, parts }
}

/// Applies the reflections of a block to columns whose products are known, those of the first
/// column first or, with `back`, last.
fn reflected(shape: [usize; 3], caps: &Caps) -> Kernel {
    let [batch, m, n] = shape;
    let mut b = Builder::new(&format!("reflected_{batch}_{m}_{n}"));
    let len = (batch * m * n) as u64;
    let v = b.param(DType::F64, len, Access::Read);
    let betas = b.param(DType::F64, (batch * n) as u64, Access::Read);
    let sums = b.param(DType::F64, sums(batch, n), Access::Read);
    let x = b.param(DType::F64, len, Access::ReadWrite);
    let of = arguments(&mut b, n, [v, x, sums]);
    let back = b.var(DType::I64, 0, 1);
    let (mut e, own, products, _) = Applied::begin(b, shape, &of, 0, caps);
    let zero = e.number(0.0);
    let Applied { w, across, left, .. } = own;
    // An element of the sum of all parts.
    let total = |e: &mut Emit, strip: Value, at: Value| {
        let mut total = zero;
        for part in 0..PARTS as i64 {
            let part = e.b.index(part);
            let exists = e.op(Lt, part, own.parts);
            let start = own.sums(e, part, strip);
            let from = e.op(Add, start, at);
            let from = e.b.guard(from, exists);
            let x = e.b.load(of.sums, from);
            total = e.op(Add, total, x);
        }
        total
    };
    let rows: Vec<(Value, Value)> = own
        .own(&mut e)
        .into_iter()
        .map(|row| {
            let at = e.place(row, across, COLUMNS);
            let total = total(&mut e, own.strip, at);
            (row, e.register(total))
        })
        .collect();
    e.each(WIDE * WIDE, WIDE, |e, at, _, _| {
        let last = e.b.index(strips(n) as i64 - 1);
        let value = total(e, last, at);
        e.b.store(left, at, value);
    });
    e.meet();
    e.repeat(w, |e, step| {
        let last = e.by(Sub, w, 1);
        let other = e.op(Sub, last, step);
        let is_back = e.by(BinaryOp::Ne, back, 0);
        let j = e.b.select(is_back, other, step);
        for &(row, sum) in &rows {
            let tells = e.op(Eq, row, j);
            e.when(tells, |e| {
                let at = e.by(Mul, own.number, n as i64);
                let at = e.op(Add, at, own.first);
                let at = e.op(Add, at, j);
                let (sum, beta) = (e.get(sum), e.b.load(betas, at));
                let value = e.op(Mul, beta, sum);
                let to = e.place(row, across, COLUMNS);
                e.b.store(products, to, value);
            });
        }
        e.meet();
        // Of rows that are done nobody asks what this makes.
        let from = e.place(j, across, COLUMNS);
        let value = e.b.load(products, from);
        for &(row, sum) in &rows {
            let from = e.place(row, j, WIDE);
            let (factor, before) = (e.b.load(left, from), e.get(sum));
            let factor = e.negative(factor);
            let now = e.product_and(factor, value, before);
            e.set(sum, now);
        }
    });
    e.meet();
    own.each_chunk(&mut e, |e, top| {
        e.meet();
        let mut all = Vec::new();
        for u in 0..CHUNK / STEP {
            let line = e.by(Add, own.down, STEP * u);
            let i = e.op(Add, top, line);
            let at = own.strip(e, i, across);
            let value = e.b.load(x, at);
            all.push((line, at, e.register(value)));
        }
        e.repeat(w, |e, j| {
            let from = e.place(j, across, COLUMNS);
            let value = e.b.load(products, from);
            let value = e.negative(value);
            for &(line, _, sum) in &all {
                let from = e.place(line, j, WIDE);
                let (factor, before) = (e.b.load(left, from), e.get(sum));
                let now = e.product_and(factor, value, before);
                e.set(sum, now);
            }
        });
        for &(_, at, sum) in &all {
            let sum = e.get(sum);
            e.b.store(x, at, sum);
        }
        e.meet();
    });
    e.end()
}

#[cfg(test)]
mod tests {
    use super::super::super::factor::{self, Matrix};
    use super::super::tests::{apart, device, irregular, largest, parts};
    use super::*;
    use crate::runtime::Optimizer;

    fn factors(a: &[f64], [batch, m, n]: [usize; 3], optimizer: Optimizer) -> Vec<[Matrix; 2]> {
        let x = Tensor::from_slice(a, [batch, m, n], &device(optimizer)).unwrap();
        let found = qr(&x).unwrap().unwrap().to_vec::<f64>().unwrap();
        let both = |found: &[f64]| {
            let (q, r) = found.split_at(m * n);
            [parts(q, m, n).remove(0), parts(r, n, n).remove(0)]
        };
        found.chunks((m + n) * n).map(both).collect()
    }

    #[test]
    fn groups_reflect_as_the_host_does() {
        for (batch, m, n, optimizer) in [
            (3, 1, 1, Optimizer::Off),
            (3, 5, 5, Optimizer::Default),
            (1, 64, 64, Optimizer::Off),
            (2, 33, 9, Optimizer::Default),
            (2, 300, 1, Optimizer::Off),
            (1, 100, 3, Optimizer::Off),
            // By panels, the last of which is narrower.
            (2, 90, 70, Optimizer::Default),
            (1, 150, 150, Optimizer::Off),
            // Panels narrower than blocks.
            (1, 350, 40, Optimizer::Off),
        ] {
            let a = irregular(batch * m * n);
            let found = factors(&a, [batch, m, n], optimizer);
            assert_eq!(found.len(), batch);
            for (a, [q, r]) in parts(&a, m, n).iter().zip(&found) {
                let (expected, upper) = factor::qr(a);
                let bound = 64.0 * n as f64 * f64::EPSILON;
                let off = apart(&expected, &q.data);
                assert!(off <= bound, "q of {batch} {m} {n}: {off}");
                let off = apart(&upper, &r.data);
                assert!(off <= bound * largest(&upper), "r of {batch} {m} {n}: {off}");
            }
        }
    }

    /// Zeros, equal columns, columns that are zero and columns that are nothing beside others; at all scales.
    #[test]
    fn columns_that_depend_on_others() {
        let [m, n] = [7, 5];
        let mut some = irregular(m * n);
        (0..m).for_each(|i| {
            (some[i * n + 1], some[i * n + 2], some[i * n + 4]) = (some[i * n], 0.0, 1e-200);
        });
        for a in [vec![0.0; m * n], vec![1.0; m * n], some] {
            for scale in [1.0, 1e-300, 1e300] {
                let a: Vec<f64> = a.iter().map(|x| x * scale).collect();
                let [[q, r]] = &factors(&a, [1, m, n], Optimizer::Off)[..] else {
                    panic!("one matrix")
                };
                let product = |i: usize, j: usize| -> f64 {
                    (0..n).map(|k| q.at(i, k) * (r.at(k, j) / scale)).sum()
                };
                for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                    let off = (product(i, j) - a[i * n + j] / scale).abs();
                    assert!(off < 1e-14, "{scale} {i} {j}: {off}");
                }
                for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
                    let dot: f64 = (0..m).map(|k| q.at(k, i) * q.at(k, j)).sum();
                    let off = (dot - f64::from(u8::from(i == j))).abs();
                    assert!(off < 1e-14, "{scale} {i} {j}: {off}");
                    assert!(j >= i || r.at(i, j) == 0.0);
                }
            }
        }
    }

    #[test]
    fn not_a_number_comes_out_of_its_matrix_alone() {
        for bad in [f64::NAN, f64::INFINITY] {
            let mut a = irregular(2 * 16);
            a[9] = bad;
            let found = factors(&a, [2, 4, 4], Optimizer::Off);
            assert!(found[0][1].data.iter().any(|x| x.is_nan()));
            assert!(found[1].iter().all(|x| x.data.iter().all(|x| x.is_finite())));
            let mut a = irregular(2 * 90 * 70);
            a[80 * 70 + 40] = bad;
            let found = factors(&a, [2, 90, 70], Optimizer::Off);
            assert!(found[0][1].data.iter().any(|x| x.is_nan()));
            assert!(found[1].iter().all(|x| x.data.iter().all(|x| x.is_finite())));
        }
    }
}
