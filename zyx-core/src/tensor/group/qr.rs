//! QR factors by Householder's reflections.
//!
//! The reflection of column `j` is `1 - beta v v^T`, where `v` is the column below the diagonal as it
//! was when its turn came, which stays in its place, with another first element. So a group keeps one matrix:
//! the upper triangle is written out before the columns of `q` take the place of those.

use super::*;

/// Most threads of a group.
const MOST: i64 = 256;
/// Rows for each thread of a team.
const ROWS: i64 = 32;
/// Most threads of a team where columns are short.
const WARP: i64 = 8;
/// Square of the length below the diagonal that is taken for none, of a matrix with elements near 1:
/// squares of less are subnormal, and known to few bits.
const NONE: f64 = 1e-280;

/// How a group has a matrix of at least as many rows as columns: each column has a team of threads.
#[derive(Clone, Copy, Debug)]
struct Layout {
    m: i64,
    n: i64,
    parts: i64,
}

impl Layout {
    fn new(m: usize, n: usize, caps: &Caps) -> Layout {
        let (m, n) = (m as i64, n as i64);
        let most = MOST.min(caps.max_local as i64);
        let parts = (most / n).min(WARP.max(m / ROWS)).min(m).max(1);
        Layout { m, n, parts }
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
/// batch, one behind the other, in the dtype of `a`; `None` where a group cannot hold such a matrix.
#[track_caller]
pub(in crate::tensor) fn qr(a: &Tensor) -> Result<Option<Tensor>> {
    let &[ref lead @ .., m, n] = a.shape().dims() else {
        unreachable!("invariant: the caller has checked that these are matrices")
    };
    let layout = Layout::new(m, n, a.device().caps());
    if !layout.fits(a.device().caps()) {
        return Ok(None);
    }
    let a = matrices(a)?;
    let (batch, size) = (a.shape()[0], (m + n) * n);
    let kernel = reflections(batch, layout, a.dtype(), a.device().caps());
    let mut found = run(&kernel, &[&a], &[(Shape::from([batch, size]), a.dtype())])?;
    found.remove(0).reshape([lead, &[size]].concat()).map(Some)
}

fn reflections(batch: usize, layout: Layout, dtype: DType, caps: &Caps) -> Kernel {
    let Layout { m, n, parts } = layout;
    let mut b = Builder::new(&format!("qr_{batch}_{m}_{n}"));
    let a = b.param(dtype, batch as u64 * (m * n) as u64, Access::Read);
    let out = b.param(dtype, batch as u64 * ((m + n) * n) as u64, Access::Write);
    let groups = b.index(batch as i64);
    let group = b.open_loop(LoopKind::Group, 0, groups);
    let matrix = shared(&mut b, m * n);
    let sums = shared(&mut b, layout.threads());
    // Elements right of the diagonal; the diagonal of `r`; factors and first elements of reflections.
    let [row, diagonal, betas, firsts] = [(); 4].map(|()| shared(&mut b, n));
    let marks = b.alloc(Space::Shared, Type::scalar(DType::I64), layout.threads() as u32);
    let mut e = Emit::new(b, layout.threads(), caps);
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
    let (column, part) = (e.by(Rem, e.thread, n), e.by(Div, e.thread, n));
    let zero = e.number(0.0);
    // The thread's rows below row `j`.
    let below = |e: &mut Emit, j: Value, f: &mut dyn FnMut(&mut Emit, Value)| {
        let before = e.by(Div, j, parts);
        let all = e.b.index((m + parts - 1) / parts);
        let turns = e.op(Sub, all, before);
        e.repeat(turns, |e, turn| {
            let turn = e.op(Add, before, turn);
            let first = e.by(Mul, turn, parts);
            let i = e.op(Add, first, part);
            let (is_below, exists) = (e.op(Lt, j, i), e.by(Lt, i, m));
            let is_own = e.op(And, is_below, exists);
            e.when(is_own, |e| f(e, i));
        });
    };
    let own_row = |e: &mut Emit, j: Value| {
        let owner = e.by(Rem, j, parts);
        e.op(Eq, owner, part)
    };
    // The thread's part of the product of the thread's column and column `j`.
    let along = |e: &mut Emit, j: Value| {
        let sum = e.register(zero);
        below(e, j, &mut |e, i| {
            let (v, x) = (e.place(i, j, n), e.place(i, column, n));
            let (v, x) = (e.b.load(matrix, v), e.b.load(matrix, x));
            let before = e.get(sum);
            let now = e.product_and(v, x, before);
            e.set(sum, now);
        });
        let sum = e.get(sum);
        e.b.store(sums, e.thread, sum);
    };
    let whole = |e: &mut Emit, column: Value| {
        let count = e.b.index(parts);
        e.sum(count, |e, part| {
            let from = e.place(part, column, n);
            e.b.load(sums, from)
        })
    };
    let add = |e: &mut Emit, j: Value, factor: Value| {
        below(e, j, &mut |e, i| {
            let (v, place) = (e.place(i, j, n), e.place(i, column, n));
            let (v, x) = (e.b.load(matrix, v), e.b.load(matrix, place));
            let x = e.product_and(factor, v, x);
            e.b.store(matrix, place, x);
        });
    };
    let steps = e.b.index(n);
    e.repeat(steps, |e, j| {
        let takes_part = e.op(Le, j, column);
        e.when(takes_part, |e| {
            along(e, j);
            let own = own_row(e, j);
            e.when(own, |e| {
                let from = e.place(j, column, n);
                let x = e.b.load(matrix, from);
                e.b.store(row, column, x);
            });
        });
        e.meet();
        e.when(takes_part, |e| {
            let (square, pivot) = (whole(e, j), e.b.load(row, j));
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
            let one_part = e.by(Eq, part, 0);
            let tells = e.op(And, is_pivot, one_part);
            e.when(tells, |e| {
                let other = e.negative(norm);
                let kept = e.b.select(is_none, pivot, other);
                e.b.store(diagonal, j, kept);
                e.b.store(betas, j, beta);
                e.b.store(firsts, j, first);
            });
            let right = e.op(Lt, j, column);
            e.when(right, |e| {
                let (sum, top) = (whole(e, column), e.b.load(row, column));
                let sum = e.product_and(first, top, sum);
                let factor = e.op(Mul, beta, sum);
                let factor = e.negative(factor);
                let own = own_row(e, j);
                e.when(own, |e| {
                    let x = e.product_and(factor, first, top);
                    let to = e.place(j, column, n);
                    e.b.store(matrix, to, x);
                });
                add(e, j, factor);
            });
        });
        e.meet();
    });
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
        e.when(right, |e| along(e, j));
        e.meet();
        let (beta, first) = (e.b.load(betas, j), e.b.load(firsts, j));
        let own = own_row(e, j);
        e.when(right, |e| {
            let sum = whole(e, column);
            let factor = e.op(Mul, beta, sum);
            let factor = e.negative(factor);
            e.when(own, |e| {
                let x = e.op(Mul, factor, first);
                let to = e.place(j, column, n);
                e.b.store(matrix, to, x);
            });
            add(e, j, factor);
        });
        e.meet();
        let is_pivot = e.op(Eq, column, j);
        e.when(is_pivot, |e| {
            let factor = e.op(Mul, beta, first);
            let factor = e.negative(factor);
            below(e, j, &mut |e, i| {
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
        }
    }
}
