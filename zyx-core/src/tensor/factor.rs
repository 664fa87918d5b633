//! Factorisations of matrices on the host, in `f64`.
//!
//! Rows are contiguous, and so are what inner loops walk along. All are classical backward stable
//! algorithms: the factors are exact for a matrix that differs from the given one by a small
//! multiple of `2^-53` of its norm. Large ones work by blocks, so that most of their time is in
//! products ([`product`]; Golub and Van Loan, 3.2.11 and 4.2.9). They take time cubic in the order and know
//! nothing of tensors; not-a-number goes in and comes out. Results do not depend on the number of
//! threads.

mod orthogonal;
mod product;
mod singular;
mod symmetric;

pub(crate) use orthogonal::qr;
pub(crate) use singular::{singular_values, svd};
pub(crate) use symmetric::eigh;

use crate::error::{Error, Result};
use crate::hal::{Watch, attempt, interrupted};
use product::{View, subtract};
use std::num::NonZero;
use zyx_gemm::dense::{self, WIDE, add_scaled, dot};

/// Columns that are factored one by one before the others follow by a product.
const BLOCK: usize = 32;

/// Right sides up to this number are solved one by one.
const FEW: usize = 4;

/// Operations for which another thread is worth its start.
const SHARE: usize = 1 << 19;

/// A matrix of `rows` by `columns` elements.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) data: Vec<f64>,
}

impl Matrix {
    pub(crate) fn zeros(rows: usize, columns: usize) -> Matrix {
        Matrix { rows, columns, data: vec![0.0; rows * columns] }
    }

    fn filled(rows: usize, columns: usize, x: f64) -> Matrix {
        Matrix { rows, columns, data: vec![x; rows * columns] }
    }

    fn eye(n: usize) -> Matrix {
        let mut eye = Matrix::zeros(n, n);
        (0..n).for_each(|i| eye.set(i, i, 1.0));
        eye
    }

    pub(crate) fn at(&self, i: usize, j: usize) -> f64 {
        self.data[i * self.columns + j]
    }

    pub(crate) fn set(&mut self, i: usize, j: usize, x: f64) {
        self.data[i * self.columns + j] = x;
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.data[i * self.columns..][..self.columns]
    }

    fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.data[i * self.columns..][..self.columns]
    }

    /// Row `i`, to read, and a later row, to write.
    fn two_rows(&mut self, i: usize, later: usize) -> (&mut [f64], &mut [f64]) {
        let (head, tail) = self.data.split_at_mut(later * self.columns);
        (&mut head[i * self.columns..][..self.columns], &mut tail[..self.columns])
    }

    pub(crate) fn transposed(&self) -> Matrix {
        let mut t = Matrix::zeros(self.columns, self.rows);
        // By squares, which caches hold.
        for i in (0..self.rows).step_by(8) {
            for j in 0..self.columns {
                (i..self.rows.min(i + 8)).for_each(|i| t.set(j, i, self.at(i, j)));
            }
        }
        t
    }

    fn swap_rows(&mut self, i: usize, k: usize) {
        if i != k {
            let (a, b) = self.two_rows(i.min(k), i.max(k));
            a.swap_with_slice(b);
        }
    }

    /// The power of two that brings the largest magnitude to 1 or more and below 2, and whether
    /// all elements are finite.
    fn scale(&self) -> (f64, bool) {
        let most = self.data.iter().fold(0f64, |most, x| most.max(x.abs()));
        let finite = self.data.iter().all(|x| x.is_finite());
        let exponent = if most.is_normal() { -(most.to_bits() as i64 >> 52) + 1023 } else { 0 };
        // Half the range is enough to keep squares from overflow.
        (2f64.powi(exponent.clamp(-1000, 1000) as i32), finite)
    }
}

/// The threads that `work` operations are worth.
fn threads(work: usize) -> usize {
    if work < 2 * SHARE {
        return 1;
    }
    std::thread::available_parallelism().map_or(1, NonZero::get).min(work / SHARE)
}

/// `f` of each item, on threads where each has at least `work` operations to do.
///
/// # Errors
/// When the user interrupts: then `f` has ended early, with anything for a result.
pub(crate) fn each<A: Sync, B: Send>(
    items: &[A],
    work: usize,
    f: impl Fn(&A) -> B + Sync,
) -> Result<Vec<B>> {
    let stopped = || Error::Io { what: "linear algebra".to_owned(), source: interrupted() };
    let all = || Some(map(items, work, &f)).filter(|_| !is_stopped()).ok_or_else(stopped);
    attempt!(all())
}

/// As [`each`], within the work on one matrix.
fn map<A: Sync, B: Send>(items: &[A], work: usize, f: impl Fn(&A) -> B + Sync) -> Vec<B> {
    let threads = threads(work.saturating_mul(items.len())).min(items.len());
    if threads < 2 {
        return items.iter().map(f).collect();
    }
    let watch = Watch::here();
    let f = |item| {
        let _mode = watch.enter();
        f(item)
    };
    crate::threads::map(threads, items.iter().collect(), f)
}

/// Whether the result is not wanted any more: outer loops look at each step.
fn is_stopped() -> bool {
    Watch::here().is_stopped()
}

/// The lower triangular `l` with `l l^T = a`, of which the lower triangle is read; `None` when it
/// is not positive definite.
pub(crate) fn cholesky(a: &Matrix) -> Option<Matrix> {
    let n = a.rows;
    // The upper triangle of the transpose, whose rows are contiguous.
    let mut u = a.transposed();
    for first in (0..n).step_by(BLOCK) {
        if is_stopped() {
            break;
        }
        let last = n.min(first + BLOCK);
        for k in first..last {
            let pivot = u.at(k, k);
            if pivot <= 0.0 {
                return None;
            }
            let root = pivot.sqrt();
            u.row_mut(k)[k..].iter_mut().for_each(|x| *x /= root);
            for i in k + 1..last {
                let (from, to) = u.two_rows(k, i);
                add_scaled(&mut to[i..], -from[i], &from[i..]);
            }
        }
        // By rows of blocks, so that what is below the diagonal is left out.
        let panel = View::rows(&u, first, last, last).transposed();
        let panel = panel.panels();
        let mut start = last;
        while start < n {
            let end = n.min(start + 2 * BLOCK);
            let left = panel.slice(start - last, end - last);
            let right = panel.slice(start - last, n - last);
            subtract(&mut u, start..end, start..n, left, right);
            start = end;
        }
    }
    let mut l = u.transposed();
    (0..n).for_each(|i| l.row_mut(i)[i + 1..].fill(0.0));
    Some(l)
}

/// `a = p l u` with partial pivoting: both triangles in one matrix, the row that each row came
/// from, and the sign of that permutation. Zero pivots stay.
pub(crate) fn lu(a: &Matrix) -> (Matrix, Vec<usize>, f64) {
    let n = a.rows;
    let (mut lu, mut rows, mut sign) = (a.clone(), (0..n).collect::<Vec<_>>(), 1.0);
    for first in (0..n).step_by(BLOCK) {
        if is_stopped() {
            break;
        }
        let last = n.min(first + BLOCK);
        for k in first..last {
            let mut pivot = k;
            for i in k + 1..n {
                if lu.at(i, k).abs() > lu.at(pivot, k).abs() {
                    pivot = i;
                }
            }
            if pivot != k {
                lu.swap_rows(pivot, k);
                rows.swap(pivot, k);
                sign = -sign;
            }
            if lu.at(k, k) == 0.0 {
                continue;
            }
            for i in k + 1..n {
                let (from, to) = lu.two_rows(k, i);
                let factor = to[k] / from[k];
                to[k] = factor;
                add_scaled(&mut to[k + 1..last], -factor, &from[k + 1..last]);
            }
        }
        if last == n {
            break;
        }
        for i in first + 1..last {
            for k in first..i {
                let (from, to) = lu.two_rows(k, i);
                let factor = -to[k];
                add_scaled(&mut to[last..], factor, &from[last..]);
            }
        }
        let left = View::rows(&lu, last, n, first).columns(last - first).panels();
        let right = View::rows(&lu, first, last, last).transposed().panels();
        subtract(&mut lu, last..n, last..n, left.all(), right.all());
    }
    (lu, rows, sign)
}

/// `a^-1 b`; `None` when a pivot is zero.
pub(crate) fn solve(a: &Matrix, b: &Matrix) -> Option<Matrix> {
    let (lu, rows, _) = lu(a);
    if (0..a.rows).any(|i| lu.at(i, i) == 0.0) {
        return None;
    }
    let mut x = Matrix::zeros(b.rows, b.columns);
    rows.iter().enumerate().for_each(|(i, &row)| x.row_mut(i).copy_from_slice(b.row(row)));
    let x = substituted(&lu, x, Triangle { upper: false, unit: true });
    Some(substituted(&lu, x, Triangle { upper: true, unit: false }))
}

/// Which triangle of a matrix is meant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Triangle {
    pub(crate) upper: bool,
    /// Whether the diagonal is taken to be ones.
    pub(crate) unit: bool,
}

/// `a^-1 b` of a triangle of `a`, by substitution.
pub(crate) fn triangular(a: &Matrix, b: &Matrix, of: Triangle) -> Matrix {
    substituted(a, b.clone(), of)
}

fn substituted(a: &Matrix, mut x: Matrix, of: Triangle) -> Matrix {
    let n = a.rows;
    if x.columns <= FEW {
        let mut columns = x.transposed();
        for j in 0..x.columns {
            let column = columns.row_mut(j);
            for step in 0..n {
                let i = if of.upper { n - 1 - step } else { step };
                let known = if of.upper { i + 1..n } else { 0..i };
                column[i] -= dot(&a.row(i)[known.clone()], &column[known]);
                if !of.unit {
                    column[i] /= a.at(i, i);
                }
            }
        }
        return columns.transposed();
    }
    let blocks = n.div_ceil(BLOCK);
    for step in 0..blocks {
        if is_stopped() {
            break;
        }
        let block = if of.upper { blocks - 1 - step } else { step };
        let (first, last) = (block * BLOCK, n.min((block + 1) * BLOCK));
        let known = if of.upper { last..n } else { 0..first };
        if !known.is_empty() {
            let left = View::rows(a, first, last, known.start).columns(known.len()).panels();
            let right = View::rows(&x, known.start, known.end, 0).transposed().panels();
            let columns = x.columns;
            subtract(&mut x, first..last, 0..columns, left.all(), right.all());
        }
        for step in 0..last - first {
            let i = if of.upper { last - 1 - step } else { first + step };
            let known = if of.upper { i + 1..last } else { first..i };
            for k in known {
                let factor = -a.at(i, k);
                if of.upper {
                    let (to, from) = x.two_rows(i, k);
                    add_scaled(to, factor, from);
                } else {
                    let (from, to) = x.two_rows(k, i);
                    add_scaled(to, factor, from);
                }
            }
            if !of.unit {
                let pivot = a.at(i, i);
                x.row_mut(i).iter_mut().for_each(|x| *x /= pivot);
            }
        }
    }
    x
}

/// Plane rotations of neighbouring rows, in the order in which they are applied: rows `i` and `i + 1`
/// become `c x + s y` and `c y - s x`.
#[derive(Debug, Default)]
struct Rotations(Vec<(usize, f64, f64)>);

impl Rotations {
    /// How many are kept before they are applied.
    const MANY: usize = 1 << 16;

    fn push(&mut self, i: usize, c: f64, s: f64) {
        self.0.push((i, c, s));
    }

    fn is_full(&self) -> bool {
        self.0.len() >= Rotations::MANY
    }

    /// Applies and forgets them. Columns are independent: each thread turns some, few enough at a
    /// time for caches.
    fn apply(&mut self, x: &mut Matrix) {
        let (rows, columns) = (x.rows, x.columns);
        let strips: Vec<usize> = (0..columns).step_by(WIDE).collect();
        let source = &*x;
        let turned = map(&strips, 6 * WIDE * self.0.len(), |&first| {
            let width = WIDE.min(columns - first);
            let mut strip = Matrix::zeros(rows, WIDE);
            for i in 0..rows {
                strip.row_mut(i)[..width].copy_from_slice(&source.row(i)[first..first + width]);
            }
            dense::rotate(strip.data.as_chunks_mut().0, &self.0);
            strip
        });
        for (first, strip) in strips.into_iter().zip(turned) {
            let width = WIDE.min(columns - first);
            for i in 0..rows {
                x.row_mut(i)[first..first + width].copy_from_slice(&strip.row(i)[..width]);
            }
        }
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(rows: usize, columns: usize, seed: u64) -> Matrix {
        let mut state = seed;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        };
        Matrix { rows, columns, data: (0..rows * columns).map(|_| next()).collect() }
    }

    fn product(a: &Matrix, b: &Matrix) -> Matrix {
        let mut c = Matrix::zeros(a.rows, b.columns);
        for i in 0..a.rows {
            for j in 0..b.columns {
                c.set(i, j, (0..a.columns).map(|k| a.at(i, k) * b.at(k, j)).sum());
            }
        }
        c
    }

    fn near(a: &Matrix, b: &Matrix, what: &str) {
        assert_eq!((a.rows, a.columns), (b.rows, b.columns), "{what}");
        let gap = a.data.iter().zip(&b.data).fold(0f64, |m, (a, b)| m.max((a - b).abs()));
        assert!(gap < 1e-13, "{what} of {} x {}: {gap:e}", a.rows, a.columns);
    }

    fn scaled(a: &Matrix, s: &[f64]) -> Matrix {
        let mut y = a.clone();
        for i in 0..a.rows {
            s.iter().enumerate().for_each(|(j, s)| y.set(i, j, a.at(i, j) * s));
        }
        y
    }

    #[test]
    fn factors_multiply_to_the_matrix() {
        for (m, n) in [
            (1, 1),
            (4, 4),
            (7, 3),
            (3, 7),
            (12, 12),
            (20, 5),
            (33, 32),
            (70, 70),
            (37, 131),
            (101, 64),
        ] {
            let a = random(m, n, (m * 31 + n) as u64);
            let k = m.min(n);
            let (q, r) = qr(&a);
            near(&product(&q, &r), &a, "q r");
            near(&product(&q.transposed(), &q), &Matrix::eye(k), "q^T q");
            let (u, s, v) = svd(&a);
            near(&product(&scaled(&u, &s), &v.transposed()), &a, "u s v^T");
            near(&product(&u.transposed(), &u), &Matrix::eye(k), "u^T u");
            near(&product(&v.transposed(), &v), &Matrix::eye(k), "v^T v");
            assert!(s.is_sorted_by(|a, b| a >= b));
            let gram = product(&a.transposed(), &a);
            let (w, x) = eigh(&gram);
            near(&product(&scaled(&x, &w), &x.transposed()), &gram, "x w x^T");
            near(&product(&x.transposed(), &x), &Matrix::eye(n), "x^T x");
        }
    }

    #[test]
    fn ranks_that_are_not_full() {
        let mut a = random(6, 4, 5);
        for i in 0..6 {
            a.set(i, 3, a.at(i, 0) + a.at(i, 1));
            a.set(i, 2, 0.0);
        }
        let (u, s, v) = svd(&a);
        assert!(s[1] > 0.1 && s[2] < 1e-14 && s[3] < 1e-14, "{s:?}");
        near(&product(&u.transposed(), &u), &Matrix::eye(4), "u^T u");
        near(&product(&scaled(&u, &s), &v.transposed()), &a, "u s v^T");
        let (u, _, _) = svd(&Matrix::zeros(3, 2));
        near(&product(&u.transposed(), &u), &Matrix::eye(2), "of zeros");
    }

    #[test]
    fn systems_are_solved() {
        for (n, k) in [(8, 3), (8, 5), (33, 1), (100, 4), (100, 70)] {
            // Well conditioned, and with pivots out of order.
            let mut a = random(n, n, 1);
            (0..n).for_each(|i| a.set(i, n - 1 - i, a.at(i, n - 1 - i) + n as f64));
            let x = random(n, k, 2);
            near(&solve(&a, &product(&a, &x)).unwrap(), &x, "solve");
            let gram = product(&a, &a.transposed());
            let l = cholesky(&gram).unwrap();
            let unit = scaled(&gram, &vec![(n as f64).powi(-2); n]);
            let square = scaled(&product(&l, &l.transposed()), &vec![(n as f64).powi(-2); n]);
            near(&square, &unit, "l l^T");
            for (upper, unit) in [(false, false), (false, true), (true, false), (true, true)] {
                let mut t = random(n, n, 3);
                for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
                    let read = if upper { j > i } else { j < i };
                    let x = if i == j { 2.0 } else { t.at(i, j) / n as f64 };
                    t.set(i, j, if read || i == j { x } else { 0.0 });
                }
                let mut whole = t.clone();
                (0..n).filter(|_| unit).for_each(|i| whole.set(i, i, 1.0));
                near(
                    &triangular(&t, &product(&whole, &x), Triangle { upper, unit }),
                    &x,
                    "triangle",
                );
            }
            assert!(cholesky(&scaled(&gram, &vec![-1.0; n])).is_none());
            let mut singular = a.clone();
            singular.row_mut(n / 2).fill(0.0);
            assert!(solve(&singular, &x).is_none());
        }
    }

    /// Equal eigenvalues, zeros, pairs that differ by rounding (Wilkinson's) and extreme scales.
    #[test]
    fn symmetric_matrices_of_all_kinds() {
        let mut wilkinson = Matrix::zeros(41, 41);
        for i in 0..41usize {
            wilkinson.set(i, i, 20f64 - i as f64);
            wilkinson.set(i, i, wilkinson.at(i, i).abs() / 20.0);
            if i > 0 {
                wilkinson.set(i, i - 1, 0.05);
                wilkinson.set(i - 1, i, 0.05);
            }
        }
        let column = random(40, 1, 3);
        let all = [
            Matrix::zeros(5, 5),
            Matrix::eye(34),
            product(&column, &column.transposed()),
            wilkinson,
            Matrix::filled(35, 35, 1.0 / 35.0),
        ];
        for a in all {
            for scale in [1.0, 1e-300, 1e300] {
                let n = a.rows;
                let (w, x) = eigh(&scaled(&a, &vec![scale; n]));
                assert!(w.is_sorted());
                let w: Vec<f64> = w.iter().map(|w| w / scale).collect();
                near(&product(&scaled(&x, &w), &x.transposed()), &a, "x w x^T");
                near(&product(&x.transposed(), &x), &Matrix::eye(n), "x^T x");
                let (u, s, v) = svd(&scaled(&a, &vec![scale; n]));
                let s: Vec<f64> = s.iter().map(|s| s / scale).collect();
                near(&product(&scaled(&u, &s), &v.transposed()), &a, "u s v^T");
                near(&product(&u.transposed(), &u), &Matrix::eye(n), "u^T u");
                near(&product(&v.transposed(), &v), &Matrix::eye(n), "v^T v");
                let (q, r) = qr(&scaled(&a, &vec![scale; n]));
                near(&product(&q, &scaled(&r, &vec![1.0 / scale; n])), &a, "q r");
                near(&product(&q.transposed(), &q), &Matrix::eye(n), "q^T q");
            }
        }
    }

    #[test]
    fn singular_values_alone_are_the_same_and_small_ones_accurate() {
        for (m, n) in [(1, 1), (6, 6), (50, 7), (7, 50), (40, 40), (40, 33)] {
            let a = random(m, n, (m + n) as u64);
            let (s, alone) = (svd(&a).1, singular_values(&a));
            for (x, y) in s.iter().zip(&alone) {
                assert!((x - y).abs() <= 1e-14 * s[0], "{m} x {n}: {x:e}, {y:e}");
            }
        }
        // Columns of lengths 1 to 1e-36: the product of the values is the determinant.
        let lengths: Vec<f64> = (0..10).map(|j| 10f64.powi(-4 * j)).collect();
        let a = random(10, 10, 11);
        let (lu, _, _) = lu(&a);
        let log: f64 = (0..10).map(|i| lu.at(i, i).abs().ln()).sum();
        let want = log + lengths.iter().map(|x| x.ln()).sum::<f64>();
        for s in [svd(&scaled(&a, &lengths)).1, singular_values(&scaled(&a, &lengths))] {
            let got: f64 = s.iter().map(|s| s.ln()).sum();
            assert!((got - want).abs() < 1e-12, "{got} is not {want}");
        }
    }

    #[test]
    fn not_a_number_comes_out() {
        for bad in [f64::NAN, f64::INFINITY] {
            let mut a = random(40, 40, 1);
            a.set(20, 3, bad);
            assert!(eigh(&a).0.iter().any(|w| w.is_nan()));
            assert!(svd(&a).1.iter().chain(&singular_values(&a)).any(|s| s.is_nan()));
            assert!(qr(&a).1.data.iter().any(|x| x.is_nan()));
            let x = solve(&a, &Matrix::eye(40)).unwrap();
            assert!(bad.is_infinite() || x.data.iter().any(|x| x.is_nan()));
        }
        assert!(cholesky(&Matrix::filled(40, 40, f64::NAN)).unwrap().at(39, 39).is_nan());
        assert_eq!((svd(&Matrix::zeros(3, 0)).1, eigh(&Matrix::zeros(0, 0)).0), (vec![], vec![]));
    }

    #[test]
    fn batches_keep_their_order() {
        let all: Vec<Matrix> = (0..37).map(|i| random(3, 3, i)).collect();
        for work in [0, 1 << 20] {
            let traces = each(&all, work, |a| a.at(0, 0)).unwrap();
            assert!(traces.iter().zip(&all).all(|(x, a)| *x == a.at(0, 0)));
            assert_eq!(traces.len(), 37);
        }
        assert!(each(&all[..0], 1 << 20, |_| ()).unwrap().is_empty());
    }
}
