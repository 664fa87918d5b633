//! Factorisations of small matrices on the host, in `f64`.
//!
//! Rows are contiguous. All are the classical backward stable algorithms: the factors are exact for
//! a matrix that differs from the given one by a small multiple of `2^-53` of its norm. They take
//! time cubic in the order and know nothing of tensors; not-a-number goes in and comes out.

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

    pub(crate) fn transposed(&self) -> Matrix {
        let mut t = Matrix::zeros(self.columns, self.rows);
        for i in 0..self.rows {
            (0..self.columns).for_each(|j| t.set(j, i, self.at(i, j)));
        }
        t
    }

    fn swap_rows(&mut self, i: usize, k: usize) {
        for j in 0..self.columns {
            self.data.swap(i * self.columns + j, k * self.columns + j);
        }
    }
}

/// The lower triangular `l` with `l l^T = a`, of which the lower triangle is read; `None` when it
/// is not positive definite.
pub(crate) fn cholesky(a: &Matrix) -> Option<Matrix> {
    let n = a.rows;
    let mut l = Matrix::zeros(n, n);
    for i in 0..n {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| l.at(i, k) * l.at(j, k)).sum();
            let rest = a.at(i, j) - sum;
            if i != j {
                l.set(i, j, rest / l.at(j, j));
            } else if rest <= 0.0 {
                return None;
            } else {
                l.set(i, i, rest.sqrt());
            }
        }
    }
    Some(l)
}

/// `a = p l u` with partial pivoting: both triangles in one matrix, the row that each row came
/// from, and the sign of that permutation. Zero pivots stay.
pub(crate) fn lu(a: &Matrix) -> (Matrix, Vec<usize>, f64) {
    let n = a.rows;
    let (mut lu, mut rows, mut sign) = (a.clone(), (0..n).collect::<Vec<_>>(), 1.0);
    for k in 0..n {
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
            let factor = lu.at(i, k) / lu.at(k, k);
            lu.set(i, k, factor);
            for j in k + 1..n {
                let x = lu.at(i, j) - factor * lu.at(k, j);
                lu.set(i, j, x);
            }
        }
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
    for (i, &row) in rows.iter().enumerate() {
        (0..b.columns).for_each(|j| x.set(i, j, b.at(row, j)));
    }
    let x = triangular(&lu, &x, Triangle { upper: false, unit: true });
    Some(triangular(&lu, &x, Triangle { upper: true, unit: false }))
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
    let n = a.rows;
    let mut x = b.clone();
    for step in 0..n {
        let i = if of.upper { n - 1 - step } else { step };
        let known = if of.upper { i + 1..n } else { 0..i };
        for k in known {
            let factor = a.at(i, k);
            for j in 0..b.columns {
                let y = x.at(i, j) - factor * x.at(k, j);
                x.set(i, j, y);
            }
        }
        if !of.unit {
            (0..b.columns).for_each(|j| x.set(i, j, x.at(i, j) / a.at(i, i)));
        }
    }
    x
}

/// `a = q r` by Householder's reflections, with `min(rows, columns)` orthonormal columns in `q`.
/// Signs are LAPACK's: a diagonal element of `r` has the sign opposite to the pivot's.
pub(crate) fn qr(a: &Matrix) -> (Matrix, Matrix) {
    let (m, n) = (a.rows, a.columns);
    let k = m.min(n);
    let mut r = a.clone();
    let mut reflections: Vec<Vec<f64>> = Vec::with_capacity(k);
    for j in 0..k {
        let tail: f64 = (j + 1..m).map(|i| r.at(i, j) * r.at(i, j)).sum();
        let mut v: Vec<f64> = (j..m).map(|i| r.at(i, j)).collect();
        if tail > 0.0 {
            let norm = (tail + v[0] * v[0]).sqrt();
            v[0] += norm.copysign(v[0]);
            let length = v.iter().map(|x| x * x).sum::<f64>().sqrt();
            v.iter_mut().for_each(|x| *x /= length);
        } else {
            // Nothing to reflect away: the reflection is the identity.
            v.fill(0.0);
        }
        reflect(&mut r, &v, j);
        reflections.push(v);
    }
    let mut q = Matrix::zeros(m, k);
    (0..k).for_each(|i| q.set(i, i, 1.0));
    for (j, v) in reflections.iter().enumerate().rev() {
        reflect(&mut q, v, j);
    }
    let mut upper = Matrix::zeros(k, n);
    for i in 0..k {
        (i..n).for_each(|j| upper.set(i, j, r.at(i, j)));
    }
    (q, upper)
}

/// `(1 - 2 v v^T) x` for the rows from `first` on.
fn reflect(x: &mut Matrix, v: &[f64], first: usize) {
    for j in 0..x.columns {
        let along: f64 = v.iter().enumerate().map(|(i, v)| v * x.at(first + i, j)).sum();
        for (i, v) in v.iter().enumerate() {
            let y = x.at(first + i, j) - 2.0 * along * v;
            x.set(first + i, j, y);
        }
    }
}

/// Sweeps after which rotations end; they converge quadratically, in under ten for any size.
const SWEEPS: usize = 60;

/// The cosine and sine of the rotation that makes a symmetric `[[p, r], [r, q]]` diagonal
/// (Golub and Van Loan, 8.5.2).
fn rotation(p: f64, q: f64, r: f64) -> (f64, f64) {
    let tau = (q - p) / (2.0 * r);
    let t = 1.0f64.copysign(tau) / (tau.abs() + tau.hypot(1.0));
    let c = 1.0 / t.hypot(1.0);
    (c, t * c)
}

/// Columns `p` and `q` turned.
fn turn(x: &mut Matrix, p: usize, q: usize, (c, s): (f64, f64)) {
    for i in 0..x.rows {
        let (a, b) = (x.at(i, p), x.at(i, q));
        x.set(i, p, c * a - s * b);
        x.set(i, q, s * a + c * b);
    }
}

/// Eigenvalues in ascending order and eigenvectors as columns of a symmetric matrix, of which the
/// lower triangle is read, by Jacobi's cyclic rotations.
pub(crate) fn eigh(a: &Matrix) -> (Vec<f64>, Matrix) {
    let n = a.rows;
    let mut d = a.clone();
    for i in 0..n {
        (0..i).for_each(|j| d.set(j, i, a.at(i, j)));
    }
    let mut v = Matrix::eye(n);
    for _ in 0..SWEEPS {
        let mut rotated = false;
        for p in 0..n {
            for q in p + 1..n {
                let (a, b, r) = (d.at(p, p), d.at(q, q), d.at(p, q));
                if r.abs() <= f64::EPSILON * (a.abs() * b.abs()).sqrt() || r.abs() < 1e-300 {
                    continue;
                }
                let (c, s) = rotation(a, b, r);
                turn(&mut d, p, q, (c, s));
                d = turned_rows(d, p, q, (c, s));
                turn(&mut v, p, q, (c, s));
                rotated |= r.abs() > f64::EPSILON * (a.abs() + b.abs());
            }
        }
        if !rotated {
            break;
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| d.at(i, i).total_cmp(&d.at(j, j)));
    (order.iter().map(|&i| d.at(i, i)).collect(), columns(&v, &order))
}

fn turned_rows(mut x: Matrix, p: usize, q: usize, (c, s): (f64, f64)) -> Matrix {
    for j in 0..x.columns {
        let (a, b) = (x.at(p, j), x.at(q, j));
        x.set(p, j, c * a - s * b);
        x.set(q, j, s * a + c * b);
    }
    x
}

/// The columns in another order.
fn columns(x: &Matrix, order: &[usize]) -> Matrix {
    let mut y = Matrix::zeros(x.rows, order.len());
    for i in 0..x.rows {
        order.iter().enumerate().for_each(|(j, &from)| y.set(i, j, x.at(i, from)));
    }
    y
}

/// `a = u diag(s) v^T` with singular values in descending order and `min(rows, columns)` columns
/// in `u` and `v`, by one-sided Jacobi rotations (Hestenes 1958): small singular values come out
/// with high relative accuracy.
pub(crate) fn svd(a: &Matrix) -> (Matrix, Vec<f64>, Matrix) {
    if a.rows < a.columns {
        let (u, s, v) = svd(&a.transposed());
        return (v, s, u);
    }
    let (m, n) = (a.rows, a.columns);
    let (mut u, mut v) = (a.clone(), Matrix::eye(n));
    for _ in 0..SWEEPS {
        let mut rotated = false;
        for p in 0..n {
            for q in p + 1..n {
                let dot = |a: usize, b: usize| (0..m).map(|i| u.at(i, a) * u.at(i, b)).sum::<f64>();
                let (a, b, r) = (dot(p, p), dot(q, q), dot(p, q));
                if r.abs() <= f64::EPSILON * (a * b).sqrt() || r == 0.0 {
                    continue;
                }
                let turned = rotation(a, b, r);
                turn(&mut u, p, q, turned);
                turn(&mut v, p, q, turned);
                rotated = true;
            }
        }
        if !rotated {
            break;
        }
    }
    let length = |j: usize| (0..m).map(|i| u.at(i, j) * u.at(i, j)).sum::<f64>().sqrt();
    let lengths: Vec<f64> = (0..n).map(length).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| lengths[j].total_cmp(&lengths[i]));
    let s: Vec<f64> = order.iter().map(|&j| lengths[j]).collect();
    let mut left = columns(&u, &order);
    let least = s.first().copied().unwrap_or(0.0) * f64::EPSILON * m as f64;
    for (j, &s) in s.iter().enumerate() {
        if s > least {
            (0..m).for_each(|i| left.set(i, j, left.at(i, j) / s));
        } else if !s.is_nan() {
            complete(&mut left, j);
        }
    }
    (left, s, columns(&v, &order))
}

/// Puts into column `j` a unit vector orthogonal to those before it.
fn complete(u: &mut Matrix, j: usize) {
    let mut best = (0.0, vec![0.0; u.rows]);
    for axis in 0..u.rows {
        let mut x = vec![0.0; u.rows];
        x[axis] = 1.0;
        // Twice is enough (Kahan and Parlett).
        for _ in 0..2 {
            for k in 0..j {
                let along: f64 = (0..u.rows).map(|i| x[i] * u.at(i, k)).sum();
                (0..u.rows).for_each(|i| x[i] -= along * u.at(i, k));
            }
        }
        let length = x.iter().map(|x| x * x).sum::<f64>().sqrt();
        if length > best.0 {
            best = (length, x);
        }
        // At least one axis is as far away as the average.
        if length * length * u.rows as f64 >= (u.rows - j) as f64 {
            break;
        }
    }
    let (length, x) = best;
    (0..u.rows).for_each(|i| u.set(i, j, x[i] / length));
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
        assert!(gap < 1e-13, "{what}: {gap:e}");
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
        for (m, n) in [(1, 1), (4, 4), (7, 3), (3, 7), (12, 12), (20, 5)] {
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
        let (a, x) = (random(8, 8, 1), random(8, 3, 2));
        near(&solve(&a, &product(&a, &x)).unwrap(), &x, "solve");
        let gram = product(&a, &a.transposed());
        let l = cholesky(&gram).unwrap();
        near(&product(&l, &l.transposed()), &gram, "l l^T");
        assert!(cholesky(&scaled(&gram, &[-1.0; 8])).is_none());
        assert!(solve(&Matrix::zeros(2, 2), &Matrix::zeros(2, 1)).is_none());
    }
}
