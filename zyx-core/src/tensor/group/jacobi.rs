//! Singular values and eigenvalues of symmetric matrices by rotations of columns (Hestenes 1958).
//!
//! In each round all columns are turned in pairs, each pair by a team of threads; as many rounds as
//! there are columns, less one, make a sweep in which each column has met each other. The order of
//! pairs is that of a round-robin tournament (Brent and Luk, "The solution of singular-value and
//! symmetric eigenvalue problems on multiprocessor arrays", 1985). Sweeps go on until no pair
//! is far from orthogonal. A matrix for which that does not happen, or which has an element that is not
//! finite, gives not-a-number only.
//!
//! Symmetric matrices are made positive definite first, by a multiple of the identity: of
//! those singular vectors from the left and from the right are the same, so one matrix is all that a group keeps.
//! Eigenvalues are then Rayleigh quotients of the matrix as it was.

use super::*;

/// Sweeps after which none is expected to help any more; six to ten are usual.
const SWEEPS: i64 = 40;
/// Rows for each thread of a team.
const ROWS: usize = 16;
/// Fewest threads of a team.
const WARP: usize = 4;
/// Rows for each column from which the QR factors come first (Chan 1982).
const TALL: f64 = 1.5;
/// How much farther from orthogonal than what is not turned any more a pair is when another sweep
/// follows.
const FAR: f64 = 8.0;

/// What is computed of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tensor) enum Wanted {
    /// Eigenvalues in ascending order and eigenvectors as columns, of which the lower triangles are
    /// read: `[1, n]` and `[n, n]`.
    Eigen,
    /// Singular values in descending order, `[1, n]`.
    Values,
    /// Singular vectors as columns and values: `[m, n]`, `[1, n]` and `[n, n]`.
    Singular,
}

/// How a group has a matrix.
#[derive(Clone, Copy, Debug)]
struct Layout {
    m: i64,
    n: i64,
    /// Columns, and one more where their number is odd: who meets it rests.
    players: i64,
    /// Threads of a team.
    parts: i64,
    /// Sweeps that there are at most.
    most: i64,
    wanted: Wanted,
}

impl Layout {
    fn new(m: usize, n: usize, wanted: Wanted) -> Layout {
        let parts = m.div_ceil(ROWS).max(WARP) as i64;
        let players = n.next_multiple_of(2).max(2) as i64;
        Layout { m: m as i64, n: n as i64, players, parts, most: SWEEPS, wanted }
    }

    fn teams(self) -> i64 {
        self.players / 2
    }

    fn threads(self) -> i64 {
        self.teams() * self.parts
    }

    /// Numbers that threads tell one another.
    fn scratch(self) -> i64 {
        (3 * self.threads()).max(self.m).max(self.parts * self.n)
    }

    /// Bytes of shared storage.
    fn bytes(self) -> i64 {
        let v = if self.wanted == Wanted::Singular { self.n * self.n } else { 0 };
        8 * (self.m * self.n + v + self.scratch() + 2 * self.n + self.threads() + 2)
    }

    fn fits(self, caps: &Caps) -> bool {
        self.threads() <= caps.max_local as i64 && self.bytes() <= room(caps)
    }

    /// Elements of all results of a matrix.
    fn size(self) -> i64 {
        match self.wanted {
            Wanted::Eigen => self.n + self.n * self.n,
            Wanted::Values => self.n,
            Wanted::Singular => self.m * self.n + self.n + self.n * self.n,
        }
    }
}

/// The results, each flattened behind the batch, one behind the other, in the dtype of `a`; `None`
/// where a group cannot hold such a matrix.
#[track_caller]
pub(in crate::tensor) fn rotated(a: &Tensor, wanted: Wanted) -> Result<Option<Tensor>> {
    let &[ref lead @ .., m, n] = a.shape().dims() else {
        unreachable!("invariant: the caller has checked that these are matrices")
    };
    let dims = |size: usize| [lead, &[size]].concat();
    if m < n {
        if wanted == Wanted::Values {
            return rotated(&a.t(), wanted);
        }
        let Some(all) = rotated(&a.t(), wanted)? else { return Ok(None) };
        let [v, s, u] = all.unpacked([[n, m], [1, m], [m, m]])?;
        return together(&[u, s, v]).map(Some);
    }
    if m as f64 > TALL * n as f64 {
        if !Layout::new(n, n, wanted).fits(a.device().caps()) {
            return Ok(None);
        }
        // Not rounded in between.
        let Some(factors) = qr(&a.cast(DType::F64))? else { return Ok(None) };
        let [q, r] = factors.unpacked([[m, n], [n, n]])?;
        let Some(all) = rotated(&r, wanted)? else { return Ok(None) };
        if wanted == Wanted::Values {
            return Ok(Some(all.cast(a.dtype())));
        }
        let [u, s, v] = all.unpacked([[n, n], [1, n], [n, n]])?;
        return Ok(Some(together(&[q.matmul(&u)?, s, v])?.cast(a.dtype())));
    }
    let layout = Layout::new(m, n, wanted);
    if !layout.fits(a.device().caps()) {
        return Ok(None);
    }
    launched(&matrices(a)?, layout)?.reshape(dims(layout.size() as usize)).map(Some)
}

/// The results of matrices that fit.
#[track_caller]
fn launched(a: &Tensor, layout: Layout) -> Result<Tensor> {
    let (batch, size) = (a.shape()[0], layout.size() as usize);
    let kernel = sweeps(batch, layout, a.dtype(), a.device().caps());
    Ok(run(kernel, &[a], &[(Shape::from([batch, size]), a.dtype())])?.remove(0))
}

/// Matrices flattened and joined.
#[track_caller]
fn together(parts: &[Tensor]) -> Result<Tensor> {
    let flat = |x: &Tensor| {
        let (lead, matrix) = x.shape().split_at(x.rank() - 2);
        x.reshape([lead, &[matrix[0] * matrix[1]]].concat())
    };
    let parts: Vec<Tensor> = parts.iter().map(flat).collect::<Result<_>>()?;
    Tensor::cat(&parts.iter().collect::<Vec<_>>(), -1)
}

/// Shared storage of a group.
#[derive(Clone, Copy)]
struct Store {
    /// The matrix, whose columns become orthogonal.
    u: Value,
    /// The product of all rotations.
    v: Option<Value>,
    scratch: Value,
    /// Lengths of columns, then eigenvalues.
    values: Value,
    /// The column that comes at each place.
    order: Value,
    /// A number of each thread.
    marks: Value,
    /// Whether there is another sweep, and how many columns have a length.
    state: Value,
}

fn sweeps(batch: usize, layout: Layout, dtype: DType, caps: &Caps) -> Kernel {
    let Layout { m, n, wanted, .. } = layout;
    let name = match wanted {
        Wanted::Eigen => "eigh",
        Wanted::Values => "svdvals",
        Wanted::Singular => "svd",
    };
    let mut b = Builder::new(&format!("{name}_{batch}_{m}_{n}"));
    let a = b.param(dtype, batch as u64 * (m * n) as u64, Access::Read);
    let out = b.param(dtype, batch as u64 * layout.size() as u64, Access::Write);
    let groups = b.index(batch as i64);
    let group = b.open_loop(LoopKind::Group, 0, groups);
    let integers =
        |b: &mut Builder, len: i64| b.alloc(Space::Shared, Type::scalar(DType::I64), len as u32);
    let at = Store {
        u: shared(&mut b, m * n),
        v: (wanted == Wanted::Singular).then(|| shared(&mut b, n * n)),
        scratch: shared(&mut b, layout.scratch()),
        values: shared(&mut b, n),
        order: integers(&mut b, n),
        marks: integers(&mut b, layout.threads()),
        state: integers(&mut b, 2),
    };
    let mut e = Emit::new(b, layout.threads(), caps);
    let base = e.by(Mul, group, m * n);
    let source = |e: &mut Emit, i: Value, j: Value| {
        // The lower triangle of symmetric matrices.
        let (i, j) = match wanted {
            Wanted::Eigen => (e.op(BinaryOp::Max, i, j), e.op(BinaryOp::Min, i, j)),
            _ => (i, j),
        };
        let place = e.place(i, j, n);
        let from = e.op(Add, base, place);
        let x = e.b.load(a, from);
        e.b.cast(DType::F64, x)
    };
    let [scale, inverse, finite] = e.scale((m, n), at.marks, source);
    e.each(m * n, n, |e, place, i, j| {
        let x = source(e, i, j);
        let x = e.op(Mul, x, scale);
        e.b.store(at.u, place, x);
    });
    if let Some(v) = at.v {
        e.each(n * n, n, |e, place, i, j| {
            let diagonal = e.op(Eq, i, j);
            let x = e.b.cast(DType::F64, diagonal);
            e.b.store(v, place, x);
        });
    }
    e.once(|e| {
        let (start, one) = (e.b.index(0), e.b.index(1));
        e.b.store(at.state, start, one);
    });
    e.meet();
    if wanted == Wanted::Eigen {
        shift(&mut e, layout, at);
    }
    let most = e.b.index(layout.most);
    e.repeat(most, |e, _| sweep(e, layout, at));
    let start = e.b.index(0);
    let goes_on = e.b.load(at.state, start);
    let settled = e.by(Eq, goes_on, 0);
    let fine = e.op(And, settled, finite);
    let (one, nan) = (e.number(1.0), e.number(f64::NAN));
    // What results are multiplied with.
    let known = e.b.select(fine, one, nan);
    let zero = e.number(0.0);
    e.each(n, n, |e, _, _, j| {
        let rows = e.b.index(m);
        let square = e.sum(rows, |e, i| {
            let place = e.place(i, j, n);
            let x = e.b.load(at.u, place);
            e.op(Mul, x, x)
        });
        let length = e.b.unary(UnaryOp::Sqrt, square);
        // Order is of numbers.
        let length = e.b.select(finite, length, zero);
        e.b.store(at.values, j, length);
    });
    e.meet();
    if wanted == Wanted::Eigen {
        quotients(&mut e, layout, at, finite, |e, i, j| {
            let x = source(e, i, j);
            e.op(Mul, x, scale)
        });
    }
    ranks(&mut e, layout, at);
    e.meet();
    if wanted == Wanted::Singular {
        complete(&mut e, layout, at);
    }
    let base = e.by(Mul, group, layout.size());
    let write = |e: &mut Emit, first: i64, place: Value, x: Value| {
        let to = e.op(Add, base, place);
        let to = e.by(Add, to, first);
        let x = e.op(Mul, x, known);
        let x = e.b.cast(dtype, x);
        e.b.store(out, to, x);
    };
    let values = |e: &mut Emit, first: i64| {
        e.each(n, n, |e, place, _, j| {
            let column = e.b.load(at.order, j);
            let x = e.b.load(at.values, column);
            let x = e.op(Mul, x, inverse);
            write(e, first, place, x);
        });
    };
    let vectors = |e: &mut Emit, first: i64, of: Value, rows: i64| {
        e.each(rows * n, n, |e, place, i, j| {
            let column = e.b.load(at.order, j);
            let from = e.place(i, column, n);
            let x = e.b.load(of, from);
            write(e, first, place, x);
        });
    };
    match wanted {
        Wanted::Values => values(&mut e, 0),
        Wanted::Eigen => {
            values(&mut e, 0);
            vectors(&mut e, n, at.u, n);
        }
        Wanted::Singular => {
            vectors(&mut e, 0, at.u, m);
            values(&mut e, m * n);
            vectors(&mut e, m * n + n, at.v.expect("invariant: it was asked for"), n);
        }
    }
    e.end()
}

/// Adds to the diagonal one and a half times a bound of all eigenvalues: the fourth root of the sum of their
/// fourth powers, which is the sum of squares of the matrix's square.
fn shift(e: &mut Emit, layout: Layout, at: Store) {
    let n = layout.n;
    let zero = e.number(0.0);
    let own = e.register(zero);
    e.each(n * n, n, |e, _, i, j| {
        let all = e.b.index(n);
        let product = e.sum(all, |e, k| {
            let (x, y) = (e.place(i, k, n), e.place(k, j, n));
            let (x, y) = (e.b.load(at.u, x), e.b.load(at.u, y));
            e.op(Mul, x, y)
        });
        let before = e.get(own);
        let now = e.product_and(product, product, before);
        e.set(own, now);
    });
    let own = e.get(own);
    e.b.store(at.scratch, e.thread, own);
    e.meet();
    let threads = e.b.index(layout.threads());
    let sum = e.sum(threads, |e, i| e.b.load(at.scratch, i));
    let root = e.b.unary(UnaryOp::Sqrt, sum);
    let bound = e.b.unary(UnaryOp::Sqrt, root);
    let (more, zero, one) = (e.number(1.5), e.number(0.0), e.number(1.0));
    let (more, some) = (e.op(Mul, bound, more), e.op(Lt, zero, bound));
    let shift = e.b.select(some, more, one);
    e.each(n, n, |e, _, _, j| {
        let place = e.place(j, j, n);
        let x = e.b.load(at.u, place);
        let x = e.op(Add, x, shift);
        e.b.store(at.u, place, x);
    });
    e.meet();
}

/// One sweep, if there is another.
fn sweep(e: &mut Emit, layout: Layout, at: Store) {
    let (start, none) = (e.b.index(0), e.b.index(0));
    let goes_on = e.b.load(at.state, start);
    let goes_on = e.by(BinaryOp::Ne, goes_on, 0);
    let rounds = e.b.index(layout.players - 1);
    let rounds = e.b.select(goes_on, rounds, none);
    let far = e.register(none);
    e.repeat(rounds, |e, round| turns(e, layout, at, round, far));
    let own = e.get(far);
    e.b.store(at.marks, e.thread, own);
    e.meet();
    e.once(|e| {
        let none = e.b.index(0);
        let any = e.register(none);
        let threads = e.b.index(layout.threads());
        e.repeat(threads, |e, i| {
            let (x, before) = (e.b.load(at.marks, i), e.get(any));
            let now = e.op(Or, before, x);
            e.set(any, now);
        });
        let any = e.get(any);
        e.b.store(at.state, start, any);
    });
    e.meet();
}

/// Turns each pair of a round; marks `far` where another sweep is to follow.
fn turns(e: &mut Emit, layout: Layout, at: Store, round: Value, far: Value) {
    let Layout { m, n, players, parts, .. } = layout;
    let teams = layout.teams();
    let (pair, part) = (e.by(Rem, e.thread, teams), e.by(Div, e.thread, teams));
    // All but the last player go round.
    let circle = players - 1;
    let i = e.op(Add, round, pair);
    let i = e.by(Rem, i, circle);
    let opposite = e.by(Add, round, circle);
    let opposite = e.op(Sub, opposite, pair);
    let opposite = e.by(Rem, opposite, circle);
    let last = e.b.index(circle.min(n - 1));
    let is_first = e.by(Eq, pair, 0);
    let j = e.b.select(is_first, last, opposite);
    // Places of the thread's rows of the two columns, of so many rows in all.
    let places = |e: &mut Emit, rows: i64| -> Vec<[Value; 2]> {
        let each = (rows + parts - 1) / parts;
        let first = e.by(Mul, part, each);
        let of = |e: &mut Emit, k: i64| {
            let row = e.by(Add, first, k);
            let exists = e.by(Lt, row, rows);
            [i, j].map(|column| {
                let place = e.place(row, column, n);
                if each * parts == rows { place } else { e.b.guard(place, exists) }
            })
        };
        (0..each).map(|k| of(e, k)).collect()
    };
    let own = places(e, m);
    let pairs: Vec<_> = own.iter().map(|at_row| at_row.map(|p| e.b.load(at.u, p))).collect();
    let threads = layout.threads();
    for (number, [x, y]) in [[0, 0], [1, 1], [0, 1]].into_iter().enumerate() {
        let mut sum = e.number(0.0);
        for pair in &pairs {
            sum = e.product_and(pair[x], pair[y], sum);
        }
        let to = e.by(Add, e.thread, number as i64 * threads);
        e.b.store(at.scratch, to, sum);
    }
    e.meet();
    let [a, b, r] = [0, 1, 2].map(|number| {
        let first = e.by(Add, pair, number * threads);
        let mut sum = e.b.load(at.scratch, first);
        for part in 1..parts {
            let from = e.by(Add, first, part * teams);
            let x = e.b.load(at.scratch, from);
            sum = e.op(Add, sum, x);
        }
        sum
    });
    // Squares of less are subnormal, and known to few bits: such columns are not turned.
    let [length, other] = [a, b].map(|square| {
        let shortest = e.number(1e-150);
        let length = e.b.unary(UnaryOp::Sqrt, square);
        e.op(BinaryOp::Max, length, shortest)
    });
    let product = e.op(Mul, length, other);
    let near = e.number(f64::EPSILON * (1.0 + (m as f64).sqrt() / 2.0));
    let bound = e.op(Mul, product, near);
    let least = e.number(1e-290);
    let bound = e.op(Add, bound, least);
    let size = e.b.unary(UnaryOp::Abs, r);
    let mut turns = e.op(Lt, bound, size);
    if players > n {
        // The first pair rests.
        let plays = e.by(BinaryOp::Ne, pair, 0);
        turns = e.op(And, turns, plays);
    }
    e.when(turns, |e| {
        let many = e.number(FAR);
        let bound = e.op(Mul, bound, many);
        let is_far = e.op(Lt, bound, size);
        let is_far = e.b.cast(DType::I64, is_far);
        let before = e.get(far);
        let now = e.op(Or, before, is_far);
        e.set(far, now);
        // Golub and Van Loan, 8.5.2.
        let (zero, one) = (e.number(0.0), e.number(1.0));
        let (difference, twice) = (e.op(Sub, b, a), e.op(Add, r, r));
        let tau = e.op(Div, difference, twice);
        let size = e.b.unary(UnaryOp::Abs, tau);
        let square = e.product_and(size, size, one);
        let root = e.b.unary(UnaryOp::Sqrt, square);
        // Squares of more may be infinite.
        let many = e.number(1e10);
        let is_large = e.op(Lt, many, size);
        let root = e.b.select(is_large, size, root);
        let sum = e.op(Add, size, root);
        let t = e.op(Div, one, sum);
        let (other, is_negative) = (e.negative(t), e.op(Lt, tau, zero));
        let t = e.b.select(is_negative, other, t);
        let square = e.product_and(t, t, one);
        let root = e.b.unary(UnaryOp::Sqrt, square);
        let s = e.op(Div, t, root);
        // Of half the angle: lengths are kept to the rounding of the small part that changes (Rutishauser 1966).
        let sum = e.op(Add, one, root);
        let half = e.op(Div, t, sum);
        let (other, other_half) = (e.negative(s), e.negative(half));
        let turn = |e: &mut Emit, of: Value, places: [Value; 2], [x, y]: [Value; 2]| {
            let (to_x, to_y) = (e.product_and(half, x, y), e.product_and(other_half, y, x));
            let (x, y) = (e.product_and(other, to_x, x), e.product_and(s, to_y, y));
            e.b.store(of, places[0], x);
            e.b.store(of, places[1], y);
        };
        own.iter().zip(&pairs).for_each(|(&places, &pair)| turn(e, at.u, places, pair));
        if let Some(v) = at.v {
            let own = places(e, n);
            let pairs: Vec<_> = own.iter().map(|at_row| at_row.map(|p| e.b.load(v, p))).collect();
            own.iter().zip(&pairs).for_each(|(&places, &pair)| turn(e, v, places, pair));
        }
    });
    e.meet();
}

/// Makes columns eigenvectors and their lengths eigenvalues of the matrix that `source` reads.
fn quotients(
    e: &mut Emit,
    layout: Layout,
    at: Store,
    finite: Value,
    source: impl Fn(&mut Emit, Value, Value) -> Value,
) {
    let Layout { n, parts, .. } = layout;
    e.each(n * n, n, |e, place, _, j| {
        let (x, length) = (e.b.load(at.u, place), e.b.load(at.values, j));
        let x = e.op(Div, x, length);
        e.b.store(at.u, place, x);
    });
    e.meet();
    let rows = (n + parts - 1) / parts;
    e.each(parts * n, n, |e, place, part, j| {
        let first = e.by(Mul, part, rows);
        let count = e.b.index(rows);
        let zero = e.number(0.0);
        let total = e.register(zero);
        e.repeat(count, |e, i| {
            let i = e.op(Add, first, i);
            let exists = e.by(Lt, i, n);
            e.when(exists, |e| {
                let all = e.b.index(n);
                let product = e.sum(all, |e, k| {
                    let x = source(e, i, k);
                    let from = e.place(k, j, n);
                    let y = e.b.load(at.u, from);
                    e.op(Mul, x, y)
                });
                let from = e.place(i, j, n);
                let (x, before) = (e.b.load(at.u, from), e.get(total));
                let now = e.product_and(x, product, before);
                e.set(total, now);
            });
        });
        let total = e.get(total);
        e.b.store(at.scratch, place, total);
    });
    e.meet();
    e.each(n, n, |e, _, _, j| {
        let count = e.b.index(parts);
        let sum = e.sum(count, |e, part| {
            let from = e.place(part, j, n);
            e.b.load(at.scratch, from)
        });
        let zero = e.number(0.0);
        let value = e.b.select(finite, sum, zero);
        e.b.store(at.values, j, value);
    });
    e.meet();
}

/// The order of values: each goes behind those that come before it.
fn ranks(e: &mut Emit, layout: Layout, at: Store) {
    let n = layout.n;
    e.each(n, n, |e, _, _, j| {
        let value = e.b.load(at.values, j);
        let none = e.b.index(0);
        let place = e.register(none);
        let all = e.b.index(n);
        e.repeat(all, |e, k| {
            let other = e.b.load(at.values, k);
            let before = match layout.wanted {
                Wanted::Eigen => e.op(Lt, other, value),
                _ => e.op(Lt, value, other),
            };
            let (equal, earlier) = (e.op(Eq, value, other), e.op(Lt, k, j));
            let equal = e.op(And, equal, earlier);
            let before = e.op(Or, before, equal);
            let before = e.b.cast(DType::I64, before);
            let place_before = e.get(place);
            let now = e.op(Add, place_before, before);
            e.set(place, now);
        });
        let place = e.get(place);
        e.b.store(at.order, place, j);
    });
}

/// Gives columns of `u` length 1. Those that are nothing but rounding become unit vectors
/// orthogonal to all others.
fn complete(e: &mut Emit, layout: Layout, at: Store) {
    let Layout { m, n, .. } = layout;
    let (start, one) = (e.b.index(0), e.b.index(1));
    let largest = e.b.load(at.order, start);
    let largest = e.b.load(at.values, largest);
    let rounding = e.number(f64::EPSILON * m as f64);
    let least = e.op(Mul, largest, rounding);
    e.each(m * n, n, |e, place, _, j| {
        let length = e.b.load(at.values, j);
        let has_length = e.op(Lt, least, length);
        e.when(has_length, |e| {
            let x = e.b.load(at.u, place);
            let x = e.op(Div, x, length);
            e.b.store(at.u, place, x);
        });
    });
    e.once(|e| {
        let none = e.b.index(0);
        let whole = e.register(none);
        let all = e.b.index(n);
        e.repeat(all, |e, j| {
            let length = e.b.load(at.values, j);
            let has_length = e.op(Lt, least, length);
            let has_length = e.b.cast(DType::I64, has_length);
            let before = e.get(whole);
            let now = e.op(Add, before, has_length);
            e.set(whole, now);
        });
        let whole = e.get(whole);
        e.b.store(at.state, one, whole);
    });
    e.meet();
    let whole = e.b.load(at.state, one);
    let whole = e.by(BinaryOp::Min, whole, n);
    let whole = e.by(BinaryOp::Max, whole, 0);
    let all = e.b.index(n);
    let others = e.op(Sub, all, whole);
    e.repeat(others, |e, step| {
        let j = e.op(Add, whole, step);
        let j = e.by(BinaryOp::Min, j, n - 1);
        let column = e.b.load(at.order, j);
        let rows = e.b.index(m);
        let element = |e: &mut Emit, i: Value, k: Value| {
            let column = e.b.load(at.order, k);
            let from = e.place(i, column, n);
            e.b.load(at.u, from)
        };
        // The axis that is farthest from all before.
        e.each(m, m, |e, _, _, i| {
            let near = e.sum(j, |e, k| {
                let x = element(e, i, k);
                e.op(Mul, x, x)
            });
            e.b.store(at.scratch, i, near);
        });
        e.meet();
        let (far, none) = (e.number(f64::INFINITY), e.b.index(0));
        let (best, axis) = (e.register(far), e.register(none));
        e.repeat(rows, |e, i| {
            let (near, before) = (e.b.load(at.scratch, i), e.get(best));
            let better = e.op(Lt, near, before);
            let nearest = e.b.select(better, near, before);
            e.set(best, nearest);
            let before = e.get(axis);
            let now = e.b.select(better, i, before);
            e.set(axis, now);
        });
        let axis = e.get(axis);
        e.each(m, m, |e, _, _, i| {
            let is_axis = e.op(Eq, i, axis);
            let x = e.b.cast(DType::F64, is_axis);
            let to = e.place(i, column, n);
            e.b.store(at.u, to, x);
        });
        e.meet();
        // Twice is enough (Kahan and Parlett).
        for _ in 0..2 {
            e.each(n, n, |e, _, _, k| {
                let earlier = e.op(Lt, k, j);
                e.when(earlier, |e| {
                    let along = e.sum(rows, |e, i| {
                        let x = element(e, i, k);
                        let from = e.place(i, column, n);
                        let y = e.b.load(at.u, from);
                        e.op(Mul, x, y)
                    });
                    e.b.store(at.scratch, k, along);
                });
            });
            e.meet();
            e.each(m, m, |e, _, _, i| {
                let inside = e.sum(j, |e, k| {
                    let (x, along) = (element(e, i, k), e.b.load(at.scratch, k));
                    e.op(Mul, x, along)
                });
                let place = e.place(i, column, n);
                let x = e.b.load(at.u, place);
                let x = e.op(Sub, x, inside);
                e.b.store(at.u, place, x);
            });
            e.meet();
        }
        let square = e.sum(rows, |e, i| {
            let from = e.place(i, column, n);
            let x = e.b.load(at.u, from);
            e.op(Mul, x, x)
        });
        let length = e.b.unary(UnaryOp::Sqrt, square);
        e.meet();
        e.each(m, m, |e, _, _, i| {
            let place = e.place(i, column, n);
            let x = e.b.load(at.u, place);
            let x = e.op(Div, x, length);
            e.b.store(at.u, place, x);
        });
        e.meet();
    });
}

#[cfg(test)]
mod tests {
    use super::super::super::factor::{self, Matrix};
    use super::super::tests::{device, irregular, parts};
    use super::*;
    use crate::runtime::Optimizer;

    /// For each matrix of a batch `u`, `s` and `v`; where eigenvalues are wanted `u` is empty.
    fn found(a: &[f64], [batch, m, n]: [usize; 3], wanted: Wanted) -> Vec<[Matrix; 3]> {
        found_by(a, [batch, m, n], wanted, Optimizer::Off)
    }

    fn found_by(
        a: &[f64],
        [batch, m, n]: [usize; 3],
        wanted: Wanted,
        optimizer: Optimizer,
    ) -> Vec<[Matrix; 3]> {
        let x = Tensor::from_slice(a, [batch, m, n], &device(optimizer)).unwrap();
        let all = rotated(&x, wanted).unwrap().unwrap();
        let k = m.min(n);
        let shapes = match wanted {
            Wanted::Eigen => [[0, 0], [1, n], [n, n]],
            Wanted::Values => [[0, 0], [1, k], [0, 0]],
            Wanted::Singular => [[m, k], [1, k], [n, k]],
        };
        let size: usize = shapes.iter().map(|[rows, columns]| rows * columns).sum();
        assert_eq!(all.shape().dims(), [batch, size]);
        let data = all.to_vec::<f64>().unwrap();
        let split = |mut data: &[f64]| {
            shapes.map(|[rows, columns]| {
                let (own, rest) = data.split_at(rows * columns);
                data = rest;
                Matrix { rows, columns, data: own.to_vec() }
            })
        };
        data.chunks(size).map(split).collect()
    }

    /// `x diag(s) y^T` beside `a`, all of them near 1.
    fn near_product(x: &Matrix, s: &[f64], y: &Matrix, a: &Matrix) {
        for (i, j) in (0..a.rows).flat_map(|i| (0..a.columns).map(move |j| (i, j))) {
            let got: f64 = s.iter().enumerate().map(|(k, s)| x.at(i, k) * s * y.at(j, k)).sum();
            let off = (got - a.at(i, j)).abs();
            assert!(off < 1e-13, "{} x {}: {off:e} at {i} {j}", a.rows, a.columns);
        }
    }

    fn orthonormal(x: &Matrix) {
        for (i, j) in (0..x.columns).flat_map(|i| (0..x.columns).map(move |j| (i, j))) {
            let dot: f64 = (0..x.rows).map(|k| x.at(k, i) * x.at(k, j)).sum();
            let off = (dot - f64::from(u8::from(i == j))).abs();
            assert!(off < 1e-13, "{} x {}: {off:e} at {i} {j}", x.rows, x.columns);
        }
    }

    fn symmetric(a: &mut [f64], n: usize) {
        for a in a.chunks_mut(n * n) {
            (0..n * n).for_each(|i| a[i] = a[i / n.max(1) * n + i % n]);
            for (i, j) in (0..n).flat_map(|i| (0..i).map(move |j| (i, j))) {
                a[j * n + i] = a[i * n + j];
            }
        }
    }

    /// Singular values of `a`, which is near 1, times `scale`, and what they multiply with.
    fn check_singular(a: &Matrix, scale: f64) {
        let [m, n] = [a.rows, a.columns];
        let data: Vec<f64> = a.data.iter().map(|x| x * scale).collect();
        let all = found(&data, [1, m, n], Wanted::Singular);
        let [u, s, v] = &all[0];
        let s: Vec<f64> = s.data.iter().map(|s| s / scale).collect();
        near_product(u, &s, v, a);
        orthonormal(u);
        orthonormal(v);
        assert!(s.is_sorted_by(|a, b| a >= b) && s.iter().all(|&s| s >= 0.0));
        let alone = found(&data, [1, m, n], Wanted::Values);
        let most = s.first().copied().unwrap_or(0.0).max(1.0);
        for (x, y) in s.iter().zip(&alone[0][1].data) {
            assert!((x - y / scale).abs() <= 1e-14 * most, "{m} x {n}: {x:e}, {y:e}");
        }
    }

    fn check_eigen(a: &Matrix, scale: f64) {
        let n = a.rows;
        let data: Vec<f64> = a.data.iter().map(|x| x * scale).collect();
        let all = found(&data, [1, n, n], Wanted::Eigen);
        let [_, w, x] = &all[0];
        let w: Vec<f64> = w.data.iter().map(|w| w / scale).collect();
        near_product(x, &w, x, a);
        orthonormal(x);
        assert!(w.is_sorted());
    }

    #[test]
    fn groups_find_the_singular_values_that_the_host_finds() {
        for (batch, m, n, optimizer) in [
            (3, 1, 1, Optimizer::Off),
            (4, 2, 2, Optimizer::Off),
            (3, 5, 5, Optimizer::Default),
            (2, 7, 3, Optimizer::Default),
            (2, 3, 8, Optimizer::Off),
            (2, 9, 8, Optimizer::Off),
            (1, 70, 6, Optimizer::Off),
            (1, 36, 33, Optimizer::Off),
        ] {
            let a = irregular(batch * m * n);
            let all = found_by(&a, [batch, m, n], Wanted::Singular, optimizer);
            let alone = found_by(&a, [batch, m, n], Wanted::Values, optimizer);
            assert_eq!((all.len(), alone.len()), (batch, batch));
            for ((a, [u, s, v]), alone) in parts(&a, m, n).iter().zip(&all).zip(&alone) {
                near_product(u, &s.data, v, a);
                orthonormal(u);
                orthonormal(v);
                let expected = factor::svd(a).1;
                for ((x, y), z) in expected.iter().zip(&s.data).zip(&alone[1].data) {
                    let bound = 8.0 * n as f64 * f64::EPSILON * expected[0];
                    assert!((x - y).abs() <= bound, "{m} x {n}: {x:e}, {y:e}");
                    assert!((x - z).abs() <= bound, "{m} x {n}: {x:e}, {z:e}");
                }
            }
        }
    }

    #[test]
    fn groups_find_the_eigenvalues_that_the_host_finds() {
        for (batch, n, optimizer) in [
            (3, 1, Optimizer::Off),
            (4, 2, Optimizer::Off),
            (3, 5, Optimizer::Default),
            (2, 12, Optimizer::Default),
            (1, 33, Optimizer::Off),
        ] {
            let mut a = irregular(batch * n * n);
            symmetric(&mut a, n);
            let all = found_by(&a, [batch, n, n], Wanted::Eigen, optimizer);
            assert_eq!(all.len(), batch);
            // Only the lower triangle is read.
            let mut lower = a.clone();
            (0..a.len()).filter(|i| i / n % n < i % n).for_each(|i| lower[i] = f64::NAN);
            let again = found_by(&lower, [batch, n, n], Wanted::Eigen, optimizer);
            for ((a, [_, w, x]), again) in parts(&a, n, n).iter().zip(&all).zip(&again) {
                near_product(x, &w.data, x, a);
                orthonormal(x);
                assert_eq!(w.data, again[1].data);
                let (expected, _) = factor::eigh(a);
                let most = expected.iter().fold(0f64, |most, w| most.max(w.abs()));
                for (x, y) in expected.iter().zip(&w.data) {
                    let bound = 8.0 * n as f64 * f64::EPSILON * most;
                    assert!((x - y).abs() <= bound, "{n}: {x:e}, {y:e}");
                }
            }
        }
    }

    /// Zeros, equal values, pairs of opposite sign, ranks that are not full, pairs that differ by rounding
    /// (Wilkinson's), at all scales.
    #[test]
    fn matrices_of_all_kinds() {
        let of = |n: usize, f: &dyn Fn(usize, usize) -> f64| Matrix {
            rows: n,
            columns: n,
            data: (0..n * n).map(|i| f(i / n, i % n)).collect(),
        };
        let column = irregular(9);
        let wilkinson = |i: usize, j: usize| match i.abs_diff(j) {
            0 => (8.0 - i as f64).abs() / 8.0,
            1 => 0.125,
            _ => 0.0,
        };
        let all = [
            of(3, &|_, _| 0.0),
            of(6, &|i, j| f64::from(u8::from(i == j))),
            of(6, &|i, j| f64::from(u8::from(i + j == 5))),
            of(9, &|i, j| column[i] * column[j]),
            of(17, &wilkinson),
            of(8, &|_, _| 0.125),
            of(4, &|i, j| if i == j { [1.0, -2.0, 0.0, 1e-20][i] } else { 0.0 }),
        ];
        for a in &all {
            for scale in [1.0, 1e-300, 1e300, 1e-30] {
                check_eigen(a, scale);
                check_singular(a, scale);
            }
        }
        let mut a = irregular(6 * 4);
        (0..6).for_each(|i| (a[i * 4 + 3], a[i * 4 + 2]) = (a[i * 4] + a[i * 4 + 1], 0.0));
        let a = parts(&a, 6, 4).remove(0);
        check_singular(&a, 1.0);
        check_singular(&a.transposed(), 1.0);
        let s = found(&a.data, [1, 6, 4], Wanted::Values)[0][1].data.clone();
        assert!(s[1] > 0.1 && s[2] < 1e-14 && s[3] < 1e-14, "{s:?}");
        // Columns whose squares are zeros or known to few bits.
        let values = irregular(64);
        let tiny = |i: usize, j: usize| match (i ^ j) % 3 {
            0 => values[i * 8 + j] * 10f64.powi(-19 * (i + j) as i32),
            _ => 0.0,
        };
        check_singular(&of(8, &tiny), 1.0);
        // Diagonal matrices are their own eigenvalues.
        let w = &found(&all[6].data, [1, 4, 4], Wanted::Eigen)[0][1].data;
        assert_eq!(w[..], [-2.0, 0.0, 1e-20, 1.0]);
    }

    /// Columns of lengths 1 to 1e-36: the product of the values is the determinant.
    #[test]
    fn small_singular_values_are_accurate() {
        let (n, a) = (10, irregular(100));
        let (lu, _, _) = factor::lu(&parts(&a, n, n)[0]);
        let lengths: Vec<f64> = (0..n as i32).map(|j| 10f64.powi(-4 * j)).collect();
        let logs = |x: &[f64]| x.iter().map(|x| x.ln()).sum::<f64>();
        let pivots: Vec<f64> = (0..n).map(|i| lu.at(i, i).abs()).collect();
        let want = logs(&pivots) + logs(&lengths);
        let a: Vec<f64> = (0..100).map(|i| a[i] * lengths[i % n]).collect();
        for wanted in [Wanted::Singular, Wanted::Values] {
            let got = logs(&found(&a, [1, n, n], wanted)[0][1].data);
            assert!((got - want).abs() < 1e-12, "{got} is not {want}");
        }
    }

    #[test]
    fn not_a_number_comes_out_of_its_matrix_alone() {
        for bad in [f64::NAN, f64::INFINITY] {
            for wanted in [Wanted::Eigen, Wanted::Values, Wanted::Singular] {
                let mut a = irregular(2 * 16);
                a[9] = bad;
                let all = found(&a, [2, 4, 4], wanted);
                let of = |i: usize| all[i].iter().flat_map(|m| &m.data);
                assert!(of(0).all(|x| x.is_nan()), "{wanted:?}");
                assert!(of(1).all(|x| x.is_finite()), "{wanted:?}");
            }
        }
    }

    #[test]
    fn what_does_not_converge_is_not_a_number() {
        let d = device(Optimizer::Off);
        for wanted in [Wanted::Eigen, Wanted::Values, Wanted::Singular] {
            // Diagonal matrices but the first.
            let mut a = irregular(3 * 36);
            (36..108).filter(|i| i % 36 % 7 != 0).for_each(|i| a[i] = 0.0);
            let x = Tensor::from_slice(&a, [3, 6, 6], &d).unwrap();
            let layout = Layout { most: 1, ..Layout::new(6, 6, wanted) };
            let all = launched(&x, layout).unwrap().to_vec::<f64>().unwrap();
            let mut all = all.chunks(layout.size() as usize);
            assert!(all.next().unwrap().iter().all(|x| x.is_nan()), "{wanted:?}");
            assert!(all.flatten().all(|x| x.is_finite()), "{wanted:?}");
        }
    }

    /// What does not fit is left to the host.
    #[test]
    fn large_matrices_are_none_of_a_groups() {
        let d = device(Optimizer::Off);
        for dims in [[100, 100], [80, 2000], [1 << 20, 1]] {
            let x = Tensor::ones(dims, DType::F32, &d);
            for wanted in [Wanted::Values, Wanted::Singular] {
                assert!(rotated(&x, wanted).unwrap().is_none());
            }
        }
    }
}
