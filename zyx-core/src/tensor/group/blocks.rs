//! What blocked algorithms consist of besides their panels: systems of a block's triangle, products that are
//! subtracted, Cholesky's factor of a block on the diagonal.
//!
//! All work in place in matrices in `f64`. Where a block begins and ends are arguments, so one kernel serves all blocks of
//! a matrix.

use super::*;

/// Order of the blocks of triangles.
pub(super) const SIDE: usize = 64;
/// Rows and columns of a tile of a product, steps of which a group has factors at once, its threads along each side.
const TILE: i64 = 64;
const DEPTH: i64 = 32;
const ACROSS: i64 = 16;
/// Columns of right sides that a group has.
pub(super) const COLUMNS: i64 = 32;

/// The number of a matrix and of a part of it, from the number of a group.
pub(super) fn split(e: &mut Emit, group: Value, batch: usize, parts: Value) -> (Value, Value) {
    if batch == 1 {
        return (e.b.index(0), group);
    }
    (e.op(Div, group, parts), e.op(Rem, group, parts))
}

/// Elements of matrices in `f64`; with `permuted` of the rows that a second argument names.
pub(super) fn copy([batch, rows, columns]: [usize; 3], dtype: DType, permuted: bool) -> Kernel {
    let mut b = Builder::new(&format!("copy_{batch}_{rows}_{columns}"));
    let len = batch * rows * columns;
    let from = b.param(dtype, len as u64, Access::Read);
    let order = permuted.then(|| b.param(DType::I32, (batch * rows) as u64, Access::Read));
    let to = b.param(DType::F64, len as u64, Access::Write);
    let count = b.index(len as i64);
    let at = b.open_loop(LoopKind::Parallel, 0, count);
    let by = |b: &mut Builder, op: BinaryOp, x: Value, by: usize| {
        let by = b.index(by as i64);
        b.binary(op, x, by)
    };
    let source = order.map(|order| {
        let row = by(&mut b, Div, at, columns);
        let first = by(&mut b, Div, row, rows);
        let first = by(&mut b, Mul, first, rows);
        let row = b.load(order, row);
        let row = b.cast(DType::I64, row);
        let row = b.binary(Add, first, row);
        let row = by(&mut b, Mul, row, columns);
        let column = by(&mut b, Rem, at, columns);
        b.binary(Add, row, column)
    });
    let x = b.load(from, source.unwrap_or(at));
    let x = b.cast(DType::F64, x);
    b.store(to, at, x);
    b.close();
    b.finish()
}

/// Which operands a product has.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operands {
    /// Both are parts of the matrix itself.
    Own,
    /// Both are, and the right one is transposed; of the product the lower triangle is wanted.
    Mirrored,
    /// The left one is of a square matrix in this dtype.
    Left(DType),
}

/// `c[i0..i1, j0..j1] -= a[i0..i1, k0..k1] c[k0..k1, j0..j1]` for each of a batch of matrices of `n` rows and `k`
/// columns. A group has a tile, a thread every sixteenth row and column of it.
pub(super) fn product([batch, n, k]: [usize; 3], of: Operands, caps: &Caps) -> Kernel {
    let mut b = Builder::new(&format!("product_{batch}_{n}_{k}"));
    let left = match of {
        Operands::Left(dtype) => Some(b.param(dtype, (batch * n * n) as u64, Access::Read)),
        _ => None,
    };
    let c = b.param(DType::F64, (batch * n * k) as u64, Access::ReadWrite);
    let (n, k) = (n as i64, k as i64);
    let [i0, i1, j0, j1, k0, k1] = [n, n, k, k, n, n].map(|most| b.var(DType::I64, 0, most));
    let tiles = |b: &mut Builder, from: Value, to: Value, side: i64| {
        let len = b.binary(Sub, to, from);
        let (more, side) = (b.index(side - 1), b.index(side));
        let len = b.binary(Add, len, more);
        b.binary(Div, len, side)
    };
    let (down, across) = (tiles(&mut b, i0, i1, TILE), tiles(&mut b, j0, j1, TILE));
    let chunks = tiles(&mut b, k0, k1, DEPTH);
    let tiles = b.binary(Mul, down, across);
    let all = b.index(batch as i64);
    let groups = b.binary(Mul, all, tiles);
    let group = b.open_loop(LoopKind::Group, 0, groups);
    // One element more, so that threads that write a column use different banks.
    let stride = TILE + 1;
    let [rows, columns] = [(); 2].map(|()| shared(&mut b, DEPTH * stride));
    let mut e = Emit::new(b, ACROSS * ACROSS, caps);
    let (number, tile) = split(&mut e, group, batch, tiles);
    let first = |e: &mut Emit, start: Value, tile: Value| {
        let first = e.by(Mul, tile, TILE);
        e.op(Add, start, first)
    };
    let (tile_row, tile_column) = (e.op(Div, tile, across), e.op(Rem, tile, across));
    let (top, start) = (first(&mut e, i0, tile_row), first(&mut e, j0, tile_column));
    let mirrored = matches!(of, Operands::Mirrored);
    let chunks = if mirrored {
        // Nothing of the lower triangle is in tiles right of the diagonal.
        let last = e.by(Add, top, TILE - 1);
        let (reaches, none) = (e.op(Le, start, last), e.b.index(0));
        e.b.select(reaches, chunks, none)
    } else {
        chunks
    };
    let element = |e: &mut Emit, of: Value, [i, j]: [Value; 2], columns: i64, exists: Value| {
        let row = e.by(Mul, number, n);
        let row = e.op(Add, row, i);
        let at = e.place(row, j, columns);
        let at = e.b.guard(at, exists);
        let x = e.b.load(of, at);
        e.b.cast(DType::F64, x)
    };
    let zero = e.number(0.0);
    let sums: Vec<Value> = (0..16).map(|_| e.register(zero)).collect();
    let (down, right) = (e.by(Div, e.thread, ACROSS), e.by(Rem, e.thread, ACROSS));
    e.repeat(chunks, |e, chunk| {
        let step = e.by(Mul, chunk, DEPTH);
        let step = e.op(Add, k0, step);
        // Rows of `c`, or of the left factor, along the steps.
        let along = |e: &mut Emit, of: Value, columns: i64, first: Value, end: Value, to: Value| {
            e.each(TILE * DEPTH, DEPTH, |e, _, row, depth| {
                let (i, j) = (e.op(Add, first, row), e.op(Add, step, depth));
                let (inside, before) = (e.op(Lt, i, end), e.op(Lt, j, k1));
                let exists = e.op(And, inside, before);
                let x = element(e, of, [i, j], columns, exists);
                let at = e.place(depth, row, stride);
                e.b.store(to, at, x);
            });
        };
        let width = if left.is_some() { n } else { k };
        along(e, left.unwrap_or(c), width, top, i1, rows);
        if mirrored {
            along(e, c, k, start, j1, columns);
        } else {
            e.each(DEPTH * TILE, TILE, |e, _, depth, column| {
                let (i, j) = (e.op(Add, step, depth), e.op(Add, start, column));
                let (inside, before) = (e.op(Lt, j, j1), e.op(Lt, i, k1));
                let exists = e.op(And, inside, before);
                let x = element(e, c, [i, j], k, exists);
                let at = e.place(depth, column, stride);
                e.b.store(columns, at, x);
            });
        }
        e.meet();
        let depth = e.b.index(DEPTH);
        e.repeat(depth, |e, depth| {
            let mut four = |of: Value, first: Value| -> Vec<Value> {
                let at = e.place(depth, first, stride);
                let load = |u: i64| {
                    let at = e.by(Add, at, ACROSS * u);
                    e.b.load(of, at)
                };
                (0..4).map(load).collect()
            };
            let (x, y) = (four(rows, down), four(columns, right));
            for (i, &sum) in sums.iter().enumerate() {
                let before = e.get(sum);
                let now = e.product_and(x[i / 4], y[i % 4], before);
                e.set(sum, now);
            }
        });
        e.meet();
    });
    for (i, &sum) in sums.iter().enumerate() {
        let [down, right] = [(top, down, i / 4), (start, right, i % 4)].map(|(first, own, u)| {
            let own = e.by(Add, own, ACROSS * u as i64);
            e.op(Add, first, own)
        });
        let (inside, before) = (e.op(Lt, down, i1), e.op(Lt, right, j1));
        let mut exists = e.op(And, inside, before);
        if mirrored {
            let lower = e.op(Le, right, down);
            exists = e.op(And, exists, lower);
        }
        e.when(exists, |e| {
            let row = e.by(Mul, number, n);
            let row = e.op(Add, row, down);
            let at = e.place(row, right, k);
            let x = e.b.load(c, at);
            let sum = e.get(sum);
            let x = e.op(Sub, x, sum);
            e.b.store(c, at, x);
        });
    }
    e.end()
}

/// `x` of `a x = y` for columns in shared storage, `[order, COLUMNS]`: of `a`, `[order, order]`, the lower triangle
/// is read. So many `blocks` of [`fold`] rows are solved, each of a column by one thread; then all threads carry the block
/// to the rows below. Of columns that are not `wanted` nothing changes.
pub(super) fn substituted(
    e: &mut Emit,
    [a, x]: [Value; 2],
    order: i64,
    blocks: Value,
    unit: bool,
    wanted: impl Fn(&mut Emit, Value) -> Value,
) {
    let side = fold(order);
    e.repeat(blocks, |e, block| {
        let first = e.by(Mul, block, side);
        // A column more than there are is a column of the next row.
        let solves = e.by(Lt, e.thread, COLUMNS);
        let column = e.thread;
        let wants = wanted(e, column);
        let solves = e.op(And, solves, wants);
        e.when(solves, |e| {
            let rows: Vec<Value> = (0..side).map(|u| e.by(Add, first, u)).collect();
            let places: Vec<Value> = rows.iter().map(|&i| e.place(i, column, COLUMNS)).collect();
            let mut known: Vec<Value> = Vec::new();
            for (u, &row) in rows.iter().enumerate() {
                let mut value = e.b.load(x, places[u]);
                for (v, &before) in known.iter().enumerate() {
                    let at = e.place(row, rows[v], order);
                    let factor = e.b.load(a, at);
                    let factor = e.negative(factor);
                    value = e.product_and(factor, before, value);
                }
                if !unit {
                    let at = e.place(row, row, order);
                    let pivot = e.b.load(a, at);
                    value = e.op(Div, value, pivot);
                }
                known.push(value);
            }
            for (&place, &value) in places.iter().zip(&known) {
                e.b.store(x, place, value);
            }
        });
        e.meet();
        let next = e.by(Add, first, side);
        e.each(order * COLUMNS, COLUMNS, |e, at, row, column| {
            let (below, wants) = (e.op(Le, next, row), wanted(e, column));
            let changes = e.op(And, below, wants);
            e.when(changes, |e| {
                let mut value = e.b.load(x, at);
                for s in 0..side {
                    let k = e.by(Add, first, s);
                    let (factor, known) = (e.place(row, k, order), e.place(k, column, COLUMNS));
                    let (factor, known) = (e.b.load(a, factor), e.b.load(x, known));
                    let factor = e.negative(factor);
                    value = e.product_and(factor, known, value);
                }
                e.b.store(x, at, value);
            });
        });
        e.meet();
    });
}

/// Rows of which a thread has a column at once, of a multiple of four. What it does with them is written out, and
/// compilers take long for more.
pub(super) fn fold(order: i64) -> i64 {
    if order % 8 == 0 { 8 } else { 4 }
}

/// Which systems [`triangle`] solves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Systems {
    pub(super) batch: usize,
    pub(super) n: usize,
    /// Columns of the right sides.
    pub(super) k: usize,
    pub(super) of: Triangle,
    /// The dtype of the triangle, where it is not in the matrix of the right sides itself.
    pub(super) a: Option<DType>,
    /// The dtype of right sides elsewhere, of which the triangle is all of `a`.
    pub(super) source: Option<DType>,
    /// Whether right sides are rows.
    pub(super) turned: bool,
}

/// Solves with a block of `h` rows of a triangle from row and column `first` on, in place, for the right sides from
/// `start` on.
pub(super) fn triangle(systems: Systems, caps: &Caps) -> Kernel {
    let Systems { batch, n, k, of: Triangle { upper, unit }, turned, .. } = systems;
    let mut b = Builder::new(&format!("triangular_{batch}_{n}_{k}"));
    let a = systems.a.map(|dtype| b.param(dtype, (batch * n * n) as u64, Access::Read));
    let len = (batch * n * k) as u64;
    let source = systems.source.map(|dtype| b.param(dtype, len, Access::Read));
    let access = if source.is_some() { Access::Write } else { Access::ReadWrite };
    let x = b.param(DType::F64, len, access);
    let order = n.min(SIDE).next_multiple_of(4) as i64;
    let (n, k) = (n as i64, k as i64);
    let [first, h] = match source {
        Some(_) => [0, n].map(|i| b.index(i)),
        None => [b.var(DType::I64, 0, n - 1), b.var(DType::I64, 1, order)],
    };
    let start = if a.is_some() { b.index(0) } else { b.var(DType::I64, 0, k) };
    let a = a.unwrap_or(x);
    let up = |b: &mut Builder, n: Value, by: i64| {
        let (more, by) = (b.index(by - 1), b.index(by));
        let n = b.binary(Add, n, more);
        b.binary(Div, n, by)
    };
    let columns = b.index(k);
    let columns = b.binary(Sub, columns, start);
    let strips = up(&mut b, columns, COLUMNS);
    let blocks = up(&mut b, h, fold(order));
    let all = b.index(batch as i64);
    let groups = b.binary(Mul, all, strips);
    let group = b.open_loop(LoopKind::Group, 0, groups);
    let (matrix, right) = (shared(&mut b, order * order), shared(&mut b, order * COLUMNS));
    let mut e = Emit::new(b, if order <= 16 { 64 } else { 256 }, caps);
    let (number, strip) = split(&mut e, group, batch, strips);
    // Upper triangles are turned around.
    let row = |e: &mut Emit, i: Value| {
        let i = match upper {
            true => {
                let last = e.by(Sub, h, 1);
                e.op(Sub, last, i)
            }
            false => i,
        };
        e.op(Add, first, i)
    };
    let base = e.by(Mul, number, n);
    e.each(order * order, order, |e, at, i, j| {
        let (exists, lower) = (e.op(Lt, i, h), e.op(Le, j, i));
        let exists = e.op(And, exists, lower);
        let (i, j) = (row(e, i), row(e, j));
        let i = e.op(Add, base, i);
        let from = e.place(i, j, n);
        let from = e.b.guard(from, exists);
        let element = e.b.load(a, from);
        let element = e.b.cast(DType::F64, element);
        e.b.store(matrix, at, element);
    });
    let left = e.by(Mul, strip, COLUMNS);
    let left = e.op(Add, start, left);
    // `f` of each element's place in shared storage and in memory.
    let every = |e: &mut Emit, f: &mut dyn FnMut(&mut Emit, Value, Value)| {
        let inner = if turned { order } else { COLUMNS };
        e.each(order * COLUMNS, inner, |e, _, i, j| {
            let (i, j) = if turned { (j, i) } else { (i, j) };
            let at = e.place(i, j, COLUMNS);
            let column = e.op(Add, left, j);
            let (exists, inside) = (e.op(Lt, i, h), e.by(Lt, column, k));
            let exists = e.op(And, exists, inside);
            let i = row(e, i);
            let place = if turned {
                let column = e.op(Add, base, column);
                e.place(column, i, n)
            } else {
                let i = e.op(Add, base, i);
                e.place(i, column, k)
            };
            let place = e.b.guard(place, exists);
            f(e, at, place);
        });
    };
    every(&mut e, &mut |e, at, from| {
        let element = e.b.load(source.unwrap_or(x), from);
        let element = e.b.cast(DType::F64, element);
        e.b.store(right, at, element);
    });
    e.meet();
    substituted(&mut e, [matrix, right], order, blocks, unit, |e, _| {
        e.b.constant(Scalar::from(true))
    });
    every(&mut e, &mut |e, at, to| {
        let value = e.b.load(right, at);
        e.b.store(x, to, value);
    });
    e.end()
}

/// Cholesky's factor of a block of `h` rows on the diagonal, from row `first` on, in place; of each matrix whether
/// a block had a pivot that is not positive. With `source` of a whole matrix elsewhere, in the dtype of that.
pub(super) fn diagonal(batch: usize, n: usize, source: Option<DType>, caps: &Caps) -> Kernel {
    let mut b = Builder::new(&format!("cholesky_{batch}_{n}"));
    let len = (batch * n * n) as u64;
    let from = source.map(|dtype| b.param(dtype, len, Access::Read));
    let dtype = source.unwrap_or(DType::F64);
    let access = if source.is_some() { Access::Write } else { Access::ReadWrite };
    let out = b.param(dtype, len, access);
    let flags = b.param(DType::I32, batch as u64, Access::ReadWrite);
    let parts = n.min(SIDE).div_ceil(ACROSS as usize) as i64;
    let (n, order) = (n as i64, parts * ACROSS);
    let [first, h] = match source {
        Some(_) => [0, n].map(|i| b.index(i)),
        None => [b.var(DType::I64, 0, n - 1), b.var(DType::I64, 1, order)],
    };
    let groups = b.index(batch as i64);
    let group = b.open_loop(LoopKind::Group, 0, groups);
    let [raw, scaled] = [(); 2].map(|()| shared(&mut b, order));
    let mut e = Emit::new(b, ACROSS * ACROSS, caps);
    let base = e.by(Mul, group, n);
    let base = e.op(Add, base, first);
    let place = |e: &mut Emit, i: Value, j: Value| {
        let (i, j) = (e.op(Add, base, i), e.op(Add, first, j));
        e.place(i, j, n)
    };
    let (down, right) = (e.by(Div, e.thread, ACROSS), e.by(Rem, e.thread, ACROSS));
    let every = |e: &mut Emit, own: Value| -> Vec<Value> {
        (0..parts).map(|u| e.by(Add, own, ACROSS * u)).collect()
    };
    let (rows, columns) = (every(&mut e, down), every(&mut e, right));
    let mut elements = Vec::new();
    for (&i, &j) in rows.iter().flat_map(|i| columns.iter().map(move |j| (i, j))) {
        let (inside, lower) = (e.op(Lt, i, h), e.op(Le, j, i));
        let exists = e.op(And, inside, lower);
        let at = place(&mut e, i, j);
        let at = e.b.guard(at, exists);
        let x = e.b.load(from.unwrap_or(out), at);
        let x = e.b.cast(DType::F64, x);
        elements.push((i, j, e.register(x)));
    }
    let none = e.b.constant(Scalar::from(0i32));
    let failed = e.register(none);
    let zero = e.number(0.0);
    // Nobody writes what others are still to read.
    e.b.barrier(BarrierScope::Group);
    e.repeat(h, |e, k| {
        for &(i, j, x) in &elements {
            let tells = e.op(Eq, j, k);
            e.when(tells, |e| {
                let x = e.get(x);
                e.b.store(raw, i, x);
            });
        }
        e.meet();
        let pivot = e.b.load(raw, k);
        let fails = e.op(Le, pivot, zero);
        let fails = e.b.cast(DType::I32, fails);
        let before = e.get(failed);
        let fails = e.op(Or, before, fails);
        e.set(failed, fails);
        let root = e.b.unary(UnaryOp::Sqrt, pivot);
        e.each(order, order, |e, i, _, _| {
            let x = e.b.load(raw, i);
            let x = e.op(Div, x, root);
            e.b.store(scaled, i, x);
            let (below, inside) = (e.op(Le, k, i), e.op(Lt, i, h));
            let exists = e.op(And, below, inside);
            let to = place(e, i, k);
            let to = e.b.guard(to, exists);
            let x = e.b.cast(dtype, x);
            e.b.store(out, to, x);
        });
        e.meet();
        // Of columns that are done, and right of the diagonal, nobody asks what this makes.
        let x: Vec<Value> = rows.iter().map(|&i| e.b.load(scaled, i)).collect();
        let y: Vec<Value> = columns.iter().map(|&j| e.b.load(scaled, j)).collect();
        for (at, &(_, _, element)) in elements.iter().enumerate() {
            let (x, y) = (x[at / parts as usize], y[at % parts as usize]);
            let (x, before) = (e.negative(x), e.get(element));
            let now = e.product_and(x, y, before);
            e.set(element, now);
        }
    });
    if source.is_some() {
        e.each(n * n, n, |e, at, i, j| {
            let right = e.op(Lt, i, j);
            let start = e.by(Mul, group, n * n);
            let to = e.op(Add, start, at);
            let to = e.b.guard(to, right);
            let zero = e.b.cast(dtype, zero);
            e.b.store(out, to, zero);
        });
    }
    e.once(|e| {
        let later = e.by(BinaryOp::Ne, first, 0);
        e.when(later, |e| {
            let before = e.b.load(flags, group);
            let fails = e.get(failed);
            let fails = e.op(Or, before, fails);
            e.set(failed, fails);
        });
        let fails = e.get(failed);
        e.b.store(flags, group, fails);
    });
    e.end()
}
