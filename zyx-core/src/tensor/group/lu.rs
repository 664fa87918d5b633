//! LU factors with partial pivoting.
//!
//! A group has a panel: as many columns as fit in shared storage of all rows from the diagonal down. Its rows stay where they
//! are while it is factored, and know which position they have got. Then rows of all other
//! columns move, the block row right of the panel follows by substitution, and all below that by a product
//! (Golub and Van Loan, 3.2.11). Narrow panels are joined to blocks of [`SIDE`] columns first, so that the products of
//! all other columns are deep enough.

use super::blocks::{self, COLUMNS, SIDE, Systems, split, substituted};
use super::*;

/// Most threads of a group.
const MOST: i64 = 512;
/// Most columns of a panel that is not all of a matrix, and the fewest that are worth a launch.
const WIDE: i64 = 32;
const NARROW: i64 = 4;
/// Threads whose marks one thread compares, and marks that all threads do.
const FEW: i64 = 8;
const MARKS: i64 = 2;

/// How a group has a panel.
#[derive(Clone, Copy, Debug)]
struct Layout {
    n: i64,
    /// Its columns, a multiple of four.
    width: i64,
    threads: i64,
}

impl Layout {
    /// `None` where the host factors such matrices, since panels would be too narrow: the device takes about a microsecond
    /// for each column, and a few for each panel.
    fn of(n: usize, caps: &Caps) -> Option<Layout> {
        let n = n as i64;
        let most = 1 << caps.max_local.ilog2().min(MOST.ilog2());
        let threads = (n as u64).next_power_of_two().clamp(32, most) as i64;
        let fits = |&width: &i64| Layout { n, width, threads }.bytes() <= room(caps);
        let whole = (n + NARROW - 1) / NARROW * NARROW;
        let width = Some(whole).filter(fits);
        let width = width.or_else(|| (1..=WIDE / NARROW).rev().map(|i| i * NARROW).find(fits))?;
        Some(Layout { n, width, threads })
    }

    /// The panel, its rows' positions and origins, and marks.
    fn bytes(self) -> i64 {
        8 * self.n * self.width + 8 * self.n + 16 * self.marks()
    }

    /// Marks of all threads, of those that compare them, and so on.
    fn marks(self) -> i64 {
        let mut count = self.threads;
        let mut all = count;
        while count > MARKS {
            count /= FEW.min(count);
            all += count;
        }
        all
    }

    fn is_whole(self) -> bool {
        self.width >= self.n
    }

    /// Columns that are factored before all others follow.
    fn block(self) -> usize {
        let side = SIDE as i64;
        if self.width == WIDE { WIDE as usize } else { (side / self.width * self.width) as usize }
    }
}

/// Whether groups of this device's threads make LU factors of such matrices.
pub(in crate::tensor) fn eliminates(n: usize, caps: &Caps) -> bool {
    Layout::of(n, caps).is_some()
}

/// LU factors of matrices.
pub(in crate::tensor) struct Factors {
    /// Both triangles, `[batch, n, n]` in `f64`. Zero pivots stay.
    pub(super) lu: Tensor,
    /// The row that each row came from, `[batch, n]`, `i32`.
    pub(super) rows: Tensor,
    /// Of each matrix whether the permutation is odd and whether a pivot is zero, `[batch, 2]`, `i32`.
    flags: Tensor,
}

impl Factors {
    /// Of matrices that groups [eliminate](eliminates).
    #[track_caller]
    pub(in crate::tensor) fn of(a: &Tensor) -> Result<Factors> {
        let a = matrices(a)?;
        let (batch, n, caps) = (a.shape()[0], a.order(), a.device().caps());
        let layout = Layout::of(n, caps).expect("invariant: the caller has asked");
        let width = layout.width as usize;
        let [lu, rows, flags, moves] = [1, 2, 3, 4];
        let key = Key::new("lu", [batch, n, 0, 0], [a.dtype(); 2], caps);
        let list = listed(key, |list| {
            if layout.is_whole() {
                let panel = list.kernel(panel(batch, layout, Some(a.dtype()), caps));
                list.step(panel, &[0, lu, rows, flags], &[]);
            } else {
                let copy = list.kernel(blocks::copy([batch, n, n], a.dtype(), false));
                let panel = list.kernel(panel(batch, layout, None, caps));
                let exchange = list.kernel(exchange(batch, layout, caps));
                let product =
                    list.kernel(blocks::product([batch, n, n], blocks::Operands::Own, caps));
                let of = Triangle { upper: false, unit: true };
                let below = Systems { batch, n, k: n, of, a: None, source: None, turned: false };
                let deep = layout.block() > width;
                let below = deep.then(|| list.kernel(blocks::triangle(below, caps)));
                list.step(copy, &[0, lu], &[]);
                for start in (0..n).step_by(layout.block()) {
                    let end = n.min(start + layout.block());
                    // Where substitution of the block row ends that the exchange makes.
                    let until = if deep { end } else { n };
                    for first in (start..end).step_by(width) {
                        let last = end.min(first + width);
                        list.step(panel, &[lu, rows, flags, moves], &[first]);
                        list.step(exchange, &[lu, moves], &[first, until]);
                        if last < end {
                            list.step(product, &[lu], &[last, n, last, end, first, last]);
                        }
                    }
                    if end < n {
                        if let Some(below) = below {
                            list.step(below, &[lu], &[start, end - start, end]);
                        }
                        list.step(product, &[lu], &[end, n, end, n, start, end]);
                    }
                }
            }
        });
        let results = [
            (Shape::from([batch, n, n]), DType::F64),
            (Shape::from([batch, n]), DType::I32),
            (Shape::from([batch, 2]), DType::I32),
            (Shape::from([batch, 2 * width]), DType::I32),
        ];
        let used = if layout.is_whole() { 3 } else { 4 };
        let mut all = list.run(&[&a], &results[..used])?.into_iter();
        let mut next = || all.next().expect("invariant: three results at least");
        Ok(Factors { lu: next(), rows: next(), flags: next() })
    }

    /// The number of the first matrix that has a zero pivot.
    #[track_caller]
    pub(in crate::tensor) fn singular(&self) -> Result<Option<usize>> {
        Ok(self.flags.to_vec::<i32>()?.chunks(2).position(|flags| flags[1] != 0))
    }

    /// The systems with these right sides solved.
    #[track_caller]
    pub(in crate::tensor) fn solve(&self, b: &Tensor) -> Result<Tensor> {
        let right = matrices(b)?;
        let (batch, n, k) = (self.lu.shape()[0], self.lu.order(), right.order());
        let caps = b.device().caps();
        let key = Key::new("solve", [batch, n, k, 0], [right.dtype(); 2], caps);
        let list = listed(key, |list| {
            let copy = list.kernel(blocks::copy([batch, n, k], right.dtype(), true));
            list.step(copy, &[2, 1, 3], &[]);
            let lower = Triangle { upper: false, unit: true };
            for of in [lower, Triangle { upper: true, unit: false }] {
                solved(list, [batch, n, k], [0, 3], of, DType::F64, caps);
            }
        });
        let results = [(right.shape().clone(), DType::F64)];
        let x = list.run(&[&self.lu, &self.rows, &right], &results)?.remove(0);
        x.cast(b.dtype()).reshape(b.shape().clone())
    }

    /// Sign and logarithm of the magnitude of each determinant, `[batch]` in `f64`.
    #[track_caller]
    pub(in crate::tensor) fn determinants(&self) -> Result<(Tensor, Tensor)> {
        let pivots = self.lu.diagonal(0, -2, -1)?;
        let odd = self.flags.slice(1, 0..1)?.squeeze(1)?.cast(DType::F64);
        let odd = odd.mul(-2.0)?.add(1.0)?;
        let sign = pivots.sign().prod(-1)?.mul(&odd)?;
        Ok((sign, pivots.abs().log().sum(-1)?))
    }
}

/// Factors of the columns from an argument on, in the rows from there on, of each of a batch of matrices; those rows' origins;
/// whether the permutation so far is odd and a pivot so far is zero; which row each row of the block on the diagonal came from
/// and where it went, counted from there. With `source` of whole matrices elsewhere.
fn panel(batch: usize, layout: Layout, source: Option<DType>, caps: &Caps) -> Kernel {
    let Layout { n, width, threads } = layout;
    let mut b = Builder::new(&format!("lu_{batch}_{n}_{width}"));
    let len = batch as u64 * (n * n) as u64;
    let from = source.map(|dtype| b.param(dtype, len, Access::Read));
    let access = if source.is_some() { Access::Write } else { Access::ReadWrite };
    let out = b.param(DType::F64, len, access);
    let numbers = b.param(DType::I32, batch as u64 * n as u64, Access::ReadWrite);
    let flags = b.param(DType::I32, 2 * batch as u64, Access::ReadWrite);
    let moves = (source.is_none())
        .then(|| b.param(DType::I32, batch as u64 * 2 * width as u64, Access::Write));
    let first = match source {
        Some(_) => b.index(0),
        None => b.var(DType::I64, 0, n - 1),
    };
    let all = b.index(n);
    let m = b.binary(Sub, all, first);
    let wide = b.index(width);
    let w = b.binary(BinaryOp::Min, wide, m);
    let groups = b.index(batch as i64);
    let group = b.open_loop(LoopKind::Group, 0, groups);
    let panel = shared(&mut b, n * width);
    let [position, origin] =
        [(); 2].map(|()| b.alloc(Space::Shared, Type::scalar(DType::I32), n as u32));
    let [keys, tags] =
        [(); 2].map(|()| b.alloc(Space::Shared, Type::scalar(DType::I64), layout.marks() as u32));
    let mut e = Emit::new(b, threads, caps);
    let row = e.by(Mul, group, n);
    let row = e.op(Add, row, first);
    // The element of memory of a row and a column of the panel.
    let place = |e: &mut Emit, i: Value, c: Value| {
        let (i, exists) = (e.op(Add, row, i), e.op(Lt, c, w));
        let column = e.op(Add, first, c);
        let at = e.place(i, column, n);
        e.b.guard(at, exists)
    };
    let count = e.by(Mul, m, width);
    let load = |e: &mut Emit, [_, i, c]: [Value; 3], exists: Value| {
        let at = place(e, i, c);
        let at = e.b.guard(at, exists);
        let x = e.b.load(from.unwrap_or(out), at);
        e.b.cast(DType::F64, x)
    };
    e.transfer(count, width, load, |e, [_, i, c], x| {
        let to = e.place(c, i, n);
        e.b.store(panel, to, x);
    });
    e.each_of(m, n, |e, i, _, _| {
        let number = e.b.cast(DType::I32, i);
        e.b.store(position, i, number);
        e.b.store(origin, i, number);
        let later = e.by(BinaryOp::Ne, first, 0);
        e.when(later, |e| {
            let at = e.op(Add, row, i);
            let number = e.b.load(numbers, at);
            e.b.store(origin, i, number);
        });
    });
    let none = e.b.constant(Scalar::from(0i32));
    let [odd, zeros] = [(); 2].map(|()| e.register(none));
    let zero = e.number(0.0);
    // Nobody writes what others are still to read.
    e.b.barrier(BarrierScope::Group);
    let turns = e.by(Add, m, threads - 1);
    let turns = e.by(Div, turns, threads);
    // The thread's rows with their positions.
    let own = |e: &mut Emit, f: &mut dyn FnMut(&mut Emit, Value, Value)| {
        e.repeat(turns, |e, turn| {
            let i = e.by(Mul, turn, threads);
            let i = e.op(Add, i, e.thread);
            let exists = e.op(Lt, i, m);
            e.when(exists, |e| {
                let at = e.b.load(position, i);
                let at = e.b.cast(DType::I64, at);
                f(e, i, at);
            });
        });
    };
    // A row's position and number in one, ordered by position.
    let bits = i64::from((n as u64).next_power_of_two().ilog2());
    e.repeat(w, |e, j| {
        let (least, most) = (e.b.index(-2), e.b.index(i64::MAX));
        let (key, tag) = (e.register(least), e.register(most));
        own(e, &mut |e, i, at| {
            let from = e.place(j, i, n);
            let x = e.b.load(panel, from);
            let x = e.b.unary(UnaryOp::Abs, x);
            let size = e.b.bitcast(DType::I64, x);
            // Not-a-number is the pivot where it stands in its place, and else never.
            let infinity = f64::INFINITY.to_bits() as i64;
            let last = e.b.index(infinity);
            let (is_nan, is_elsewhere) = (e.op(Lt, last, size), e.op(BinaryOp::Ne, at, j));
            let (is_left_out, never) = (e.op(And, is_nan, is_elsewhere), e.b.index(-1));
            let size = e.b.select(is_left_out, never, size);
            let is_done = e.op(Lt, at, j);
            let size = e.b.select(is_done, least, size);
            let own = e.by(BinaryOp::Shl, at, bits);
            let own = e.op(Or, own, i);
            let before = [e.get(key), e.get(tag)];
            let [size, own] = better(e, before, [size, own]);
            e.set(key, size);
            e.set(tag, own);
        });
        let (size, mark) = (e.get(key), e.get(tag));
        e.b.store(keys, e.thread, size);
        e.b.store(tags, e.thread, mark);
        e.meet();
        let [_, tag] = best(e, [keys, tags], threads);
        let to = e.by(BinaryOp::Shr, tag, bits);
        let pivot = e.by(And, tag, (1 << bits) - 1);
        // As the compiler shall know.
        let pivot = e.by(BinaryOp::Min, pivot, n - 1);
        let from = e.place(j, pivot, n);
        let value = e.b.load(panel, from);
        let moved = e.op(BinaryOp::Ne, to, j);
        let moved = e.b.cast(DType::I32, moved);
        let before = e.get(odd);
        let now = e.op(BinaryOp::Xor, before, moved);
        e.set(odd, now);
        let is_zero = e.op(Eq, value, zero);
        let fails = e.b.cast(DType::I32, is_zero);
        let before = e.get(zeros);
        let fails = e.op(Or, before, fails);
        e.set(zeros, fails);
        let usable = e.op(BinaryOp::Ne, value, zero);
        let next = e.by(Add, j, 1);
        let start = e.by(Div, next, NARROW);
        let fours = e.b.index(width / NARROW);
        let fours = e.op(Sub, fours, start);
        own(e, &mut |e, i, at| {
            let (is_pivot, is_first) = (e.op(Eq, i, pivot), e.op(Eq, at, j));
            let now = e.b.select(is_first, to, at);
            let now = e.b.select(is_pivot, j, now);
            let now = e.b.cast(DType::I32, now);
            e.b.store(position, i, now);
            let (is_left, is_other) = (e.op(Le, j, at), e.op(BinaryOp::Ne, i, pivot));
            let changes = e.op(And, is_left, is_other);
            let changes = e.op(And, changes, usable);
            e.when(changes, |e| {
                let place = e.place(j, i, n);
                let x = e.b.load(panel, place);
                let factor = e.op(Div, x, value);
                e.b.store(panel, place, factor);
                let factor = e.negative(factor);
                e.repeat(fours, |e, four| {
                    let four = e.op(Add, start, four);
                    let four = e.by(Mul, four, NARROW);
                    let columns: Vec<Value> = (0..NARROW).map(|u| e.by(Add, four, u)).collect();
                    let mut load = |i: Value| -> Vec<(Value, Value)> {
                        let at = columns.iter().map(|&c| e.place(c, i, n));
                        let at: Vec<Value> = at.collect();
                        at.into_iter().map(|at| (at, e.b.load(panel, at))).collect()
                    };
                    let (x, y) = (load(i), load(pivot));
                    for (&c, ((place, x), (_, y))) in columns.iter().zip(x.into_iter().zip(y)) {
                        let changed = e.product_and(factor, y, x);
                        let right = e.op(Lt, j, c);
                        let x = e.b.select(right, changed, x);
                        e.b.store(panel, place, x);
                    }
                });
            });
        });
    });
    e.meet();
    e.each_of(count, width, |e, _, i, c| {
        let from = e.place(c, i, n);
        let x = e.b.load(panel, from);
        let i = e.b.load(position, i);
        let i = e.b.cast(DType::I64, i);
        let to = place(e, i, c);
        e.b.store(out, to, x);
    });
    let base = e.by(Mul, group, 2 * width);
    e.each_of(m, n, |e, i, _, _| {
        let (at, number) = (e.b.load(position, i), e.b.load(origin, i));
        let at = e.b.cast(DType::I64, at);
        let to = e.op(Add, row, at);
        e.b.store(numbers, to, number);
        if let Some(moves) = moves {
            let (arrives, leaves) = (e.by(Lt, at, width), e.by(Lt, i, width));
            let [to, from] = [(at, arrives), (i, leaves)].map(|(i, is)| (e.op(Add, base, i), is));
            let to = e.b.guard(to.0, to.1);
            let number = e.b.cast(DType::I32, i);
            e.b.store(moves, to, number);
            let from = (e.by(Add, from.0, width), from.1);
            let from = e.b.guard(from.0, from.1);
            let number = e.b.cast(DType::I32, at);
            e.b.store(moves, from, number);
        }
    });
    e.once(|e| {
        for (i, (flag, op)) in [(odd, BinaryOp::Xor), (zeros, Or)].into_iter().enumerate() {
            let at = e.by(Mul, group, 2);
            let at = e.by(Add, at, i as i64);
            let later = e.by(BinaryOp::Ne, first, 0);
            e.when(later, |e| {
                let (before, own) = (e.b.load(flags, at), e.get(flag));
                let now = e.op(op, before, own);
                e.set(flag, now);
            });
            let now = e.get(flag);
            e.b.store(flags, at, now);
        }
    });
    e.end()
}

/// The mark with the larger key, of equal ones that with the smaller tag.
fn better(e: &mut Emit, [key, tag]: [Value; 2], [other, others]: [Value; 2]) -> [Value; 2] {
    let (larger, equal) = (e.op(Lt, key, other), e.op(Eq, key, other));
    let earlier = e.op(Lt, others, tag);
    let earlier = e.op(And, equal, earlier);
    let is = e.op(Or, larger, earlier);
    [e.b.select(is, other, key), e.b.select(is, others, tag)]
}

/// The best of all threads' marks.
fn best(e: &mut Emit, of: [Value; 2], threads: i64) -> [Value; 2] {
    let (mut first, mut count) = (0, threads);
    let among = |e: &mut Emit, first: Value, step: i64, count: i64| {
        let mut found: Option<[Value; 2]> = None;
        for i in 0..count {
            let at = e.by(Add, first, step * i);
            let mark = of.map(|of| e.b.load(of, at));
            found = Some(match found {
                Some(before) => better(e, before, mark),
                None => mark,
            });
        }
        found.expect("invariant: there are marks")
    };
    while count > MARKS {
        let some = FEW.min(count);
        let next = count / some;
        let compares = e.by(Lt, e.thread, next);
        e.when(compares, |e| {
            let at = e.by(Add, e.thread, first);
            let mark = among(e, at, next, some);
            let to = e.by(Add, e.thread, first + count);
            for (of, x) in of.into_iter().zip(mark) {
                e.b.store(of, to, x);
            }
        });
        e.meet();
        (first, count) = (first + count, next);
    }
    let at = e.b.index(first);
    among(e, at, 1, count)
}

/// Moves rows of all columns outside of a panel as those of the panel have moved; of the columns right of it, up to
/// some, those beside the block on the diagonal are then solved for by its lower triangle. A group has some columns.
fn exchange(batch: usize, layout: Layout, caps: &Caps) -> Kernel {
    let Layout { n, width, .. } = layout;
    let mut b = Builder::new(&format!("exchange_{batch}_{n}_{width}"));
    let matrix = b.param(DType::F64, batch as u64 * (n * n) as u64, Access::ReadWrite);
    let moves = b.param(DType::I32, batch as u64 * 2 * width as u64, Access::Read);
    let first = b.var(DType::I64, 0, n - 1);
    let until = b.var(DType::I64, 0, n);
    let all = b.index(n);
    let m = b.binary(Sub, all, first);
    let wide = b.index(width);
    let w = b.binary(BinaryOp::Min, wide, m);
    let strips = (n + COLUMNS - 1) / COLUMNS;
    let groups = b.index(batch as i64 * strips);
    let group = b.open_loop(LoopKind::Group, 0, groups);
    let triangle = shared(&mut b, width * width);
    let [x, old] = [(); 2].map(|()| shared(&mut b, width * COLUMNS));
    let mut e = Emit::new(b, 256, caps);
    let parts = e.b.index(strips);
    let (number, strip) = split(&mut e, group, batch, parts);
    let row = e.by(Mul, number, n);
    let row = e.op(Add, row, first);
    let end = e.op(Add, first, w);
    let left = e.by(Mul, strip, COLUMNS);
    e.each(width * width, width, |e, at, i, j| {
        let (lower, exists) = (e.op(Lt, j, i), e.op(Lt, i, w));
        let exists = e.op(And, lower, exists);
        let (i, j) = (e.op(Add, row, i), e.op(Add, first, j));
        let from = e.place(i, j, n);
        let from = e.b.guard(from, exists);
        let factor = e.b.load(matrix, from);
        e.b.store(triangle, at, factor);
    });
    let outside = |e: &mut Emit, i: Value, column: Value| {
        let column = e.op(Add, left, column);
        let (before, behind) = (e.op(Lt, column, first), e.op(Le, end, column));
        let (inside, exists) = (e.by(Lt, column, n), e.op(Lt, i, w));
        let is = e.op(Or, before, behind);
        let is = e.op(And, is, inside);
        (column, e.op(And, is, exists))
    };
    let base = e.by(Mul, number, 2 * width);
    // The number behind so many of the moves.
    let told = |e: &mut Emit, i: Value, from: i64| {
        let at = e.op(Add, base, i);
        let at = e.by(Add, at, from);
        let exists = e.op(Lt, i, w);
        let at = e.b.guard(at, exists);
        let number = e.b.load(moves, at);
        e.b.cast(DType::I64, number)
    };
    let element = |e: &mut Emit, i: Value, column: Value, exists: Value| {
        let i = e.op(Add, row, i);
        let at = e.place(i, column, n);
        e.b.guard(at, exists)
    };
    e.each(width * COLUMNS, COLUMNS, |e, at, i, column| {
        let (column, exists) = outside(e, i, column);
        let source = told(e, i, 0);
        for (i, to) in [(source, x), (i, old)] {
            let from = element(e, i, column, exists);
            let value = e.b.load(matrix, from);
            e.b.store(to, at, value);
        }
    });
    // Nobody writes what others are still to read.
    e.b.barrier(BarrierScope::Group);
    e.each(width * COLUMNS, COLUMNS, |e, at, i, column| {
        let (column, exists) = outside(e, i, column);
        let target = told(e, i, width);
        let below = e.b.index(width);
        let leaves = e.op(Le, below, target);
        let exists = e.op(And, exists, leaves);
        let to = element(e, target, column, exists);
        let value = e.b.load(old, at);
        e.b.store(matrix, to, value);
    });
    // None where no column of the group is beside the block.
    let last = e.by(Add, left, COLUMNS - 1);
    let (reaches, starts) = (e.op(Le, end, last), e.op(Lt, left, until));
    let is_beside = e.op(And, reaches, starts);
    let (some, none) = (e.b.index(width / blocks::fold(width)), e.b.index(0));
    let count = e.b.select(is_beside, some, none);
    substituted(&mut e, [triangle, x], width, count, true, |e, column| {
        let column = e.op(Add, left, column);
        let (behind, before) = (e.op(Le, end, column), e.op(Lt, column, until));
        e.op(And, behind, before)
    });
    e.each(width * COLUMNS, COLUMNS, |e, at, i, column| {
        let (column, exists) = outside(e, i, column);
        let to = element(e, i, column, exists);
        let value = e.b.load(x, at);
        e.b.store(matrix, to, value);
    });
    e.end()
}
