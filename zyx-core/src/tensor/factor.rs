//! Factorisations of small matrices on the host, in `f64`.
//!
//! Rows are contiguous. All are the classical backward stable algorithms: the factors are exact for
//! a matrix that differs from the given one by a small multiple of `2^-53` of its norm. They take
//! time cubic in the order and know nothing of tensors; not-a-number goes in and comes out. Inner
//! loops go along rows and add up several at once, which compilers turn into vectors.

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

/// Adds to `y` the sum of rows times factors, the rows being `stride` apart in `rows`.
fn add_rows(y: &mut [f64], factors: &[f64], rows: &[f64], stride: usize) {
    let n = y.len();
    let row = |k: usize| &rows[k * stride..][..n];
    let (fours, rest) = factors.as_chunks::<4>();
    for (k, [a, b, c, d]) in fours.iter().enumerate() {
        let rows = row(4 * k).iter().zip(row(4 * k + 1)).zip(row(4 * k + 2)).zip(row(4 * k + 3));
        for (y, (((p, q), r), s)) in y.iter_mut().zip(rows) {
            *y += (a * p + b * q) + (c * r + d * s);
        }
    }
    for (k, a) in rest.iter().enumerate() {
        y.iter_mut().zip(row(4 * fours.len() + k)).for_each(|(y, x)| *y += a * x);
    }
}

/// The scalar product, of eight sums.
fn dot(x: &[f64], y: &[f64]) -> f64 {
    let (mut sums, (xs, x), (ys, y)) = ([0.0; 8], x.as_chunks::<8>(), y.as_chunks::<8>());
    for (x, y) in xs.iter().zip(ys) {
        (0..8).for_each(|i| sums[i] += x[i] * y[i]);
    }
    sums.iter().sum::<f64>() + x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>()
}

/// The lower triangular `l` with `l l^T = a`, of which the lower triangle is read; `None` when it
/// is not positive definite.
pub(crate) fn cholesky(a: &Matrix) -> Option<Matrix> {
    let n = a.rows;
    let mut l = Matrix::zeros(n, n);
    for i in 0..n {
        for j in 0..=i {
            let sum = dot(&l.data[i * n..][..j], &l.data[j * n..][..j]);
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

/// Columns whose multiples are subtracted from the others at once.
const PANEL: usize = 16;

/// `a = p l u` with partial pivoting: both triangles in one matrix, the row that each row came
/// from, and the sign of that permutation. Zero pivots stay.
pub(crate) fn lu(a: &Matrix) -> (Matrix, Vec<usize>, f64) {
    let n = a.rows;
    let (mut lu, mut rows, mut sign) = (a.clone(), (0..n).collect::<Vec<_>>(), 1.0);
    for first in (0..n).step_by(PANEL) {
        let last = (first + PANEL).min(n);
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
            let (above, below) = lu.data.split_at_mut((k + 1) * n);
            let of_pivot = &above[k * n..];
            for row in below.chunks_exact_mut(n) {
                row[k] /= of_pivot[k];
                let factor = -row[k];
                add_rows(&mut row[k + 1..last], &[factor], &of_pivot[k + 1..], n);
            }
        }
        // Right of the panel: its own rows one after the other, then all below.
        for i in first + 1..n {
            let (above, below) = lu.data.split_at_mut(i * n);
            let (known, rest) = below[..n].split_at_mut(last);
            let factors = known[first..i.min(last)].iter().map(|x| -x).collect::<Vec<_>>();
            add_rows(rest, &factors, &above[first * n + last..], n);
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
    let (n, m) = (a.rows, b.columns);
    let mut x = b.clone();
    for step in 0..n {
        let i = if of.upper { n - 1 - step } else { step };
        let known = if of.upper { i + 1..n } else { 0..i };
        let factors = a.data[i * n..][known].iter().map(|x| -x).collect::<Vec<_>>();
        let (above, rest) = x.data.split_at_mut(i * m);
        let (row, below) = rest.split_at_mut(m);
        add_rows(row, &factors, if of.upper { below } else { above }, m);
        if !of.unit {
            row.iter_mut().for_each(|x| *x /= a.at(i, i));
        }
    }
    x
}

/// Reflections of a panel as one: their product, the first on the left, is `1 - v t v^T` (Schreiber
/// and Van Loan 1989). The columns of `v`, which are of unit length or zero, begin at row `first`.
struct Reflections {
    first: usize,
    v: Matrix,
    /// `v^T`.
    across: Matrix,
    /// Upper triangular; of the inverse it is the transposed.
    t: Matrix,
}

impl Reflections {
    /// Those that make columns `first` to `last` of `r` upper triangular, from the diagonal on, and
    /// applied to these.
    fn of_panel(r: &mut Matrix, first: usize, last: usize) -> Reflections {
        let (height, width, n) = (r.rows - first, last - first, r.columns);
        let mut across = Matrix::zeros(width, height);
        let mut t = Matrix::zeros(width, width);
        for j in 0..width {
            let (known, rest) = across.data.split_at_mut(j * height);
            let v = &mut rest[j..height];
            let column = r.data[(first + j) * n + first + j..].iter().step_by(n);
            v.iter_mut().zip(column).for_each(|(v, x)| *v = *x);
            let tail: f64 = v[1..].iter().map(|x| x * x).sum();
            if tail > 0.0 {
                let norm = (tail + v[0] * v[0]).sqrt();
                v[0] += norm.copysign(v[0]);
                let length = v.iter().map(|x| x * x).sum::<f64>().sqrt();
                v.iter_mut().for_each(|x| *x /= length);
            } else {
                // Nothing to reflect away: the reflection is the identity.
                v.fill(0.0);
            }
            let mut along = vec![0.0; width - j];
            let below = &mut r.data[(first + j) * n + first + j..];
            add_rows(&mut along, v, below, n);
            for (row, v) in below.chunks_mut(n).zip(&*v) {
                add_rows(&mut row[..width - j], &[-2.0 * v], &along, n);
            }
            let v = &rest[..height];
            let overlaps: Vec<f64> = known.chunks(height).map(|x| -2.0 * dot(x, v)).collect();
            for i in 0..j {
                t.set(i, j, dot(&t.data[i * width..][..j], &overlaps));
            }
            t.set(j, j, 2.0);
        }
        Reflections { first, v: across.transposed(), across, t }
    }

    /// `(1 - v t v^T) x`, or with `t^T`, for the columns of `x` from `start` on.
    fn apply(&self, x: &mut Matrix, start: usize, transposed: bool) {
        let (n, width) = (x.columns, self.t.rows);
        let rows = &mut x.data[self.first * n..];
        let mut along = Matrix::zeros(width, n - start);
        // Few rows at a time, which stay in the cache.
        for (k, part) in rows.chunks(PANEL * n).enumerate() {
            for (i, y) in along.data.chunks_mut(n - start).enumerate() {
                let v = &self.across.data[i * self.across.columns..][k * PANEL..];
                add_rows(y, &v[..part.len() / n], &part[start..], n);
            }
        }
        let t = if transposed { self.t.transposed() } else { self.t.clone() };
        let mut turned = Matrix::zeros(width, n - start);
        for (y, t) in turned.data.chunks_mut(n - start).zip(t.data.chunks(width)) {
            add_rows(y, &t.iter().map(|x| -x).collect::<Vec<_>>(), &along.data, n - start);
        }
        for (row, v) in rows.chunks_mut(n).zip(self.v.data.chunks(width)) {
            add_rows(&mut row[start..], v, &turned.data, n - start);
        }
    }
}

/// `a = q r` by Householder's reflections, with `min(rows, columns)` orthonormal columns in `q`.
/// Signs are LAPACK's: a diagonal element of `r` has the sign opposite to the pivot's.
pub(crate) fn qr(a: &Matrix) -> (Matrix, Matrix) {
    let (m, n) = (a.rows, a.columns);
    let k = m.min(n);
    let mut r = a.clone();
    let mut panels = Vec::new();
    for first in (0..k).step_by(PANEL) {
        let last = (first + PANEL).min(k);
        let panel = Reflections::of_panel(&mut r, first, last);
        if last < n {
            panel.apply(&mut r, last, true);
        }
        panels.push(panel);
    }
    let mut q = Matrix::zeros(m, k);
    (0..k).for_each(|i| q.set(i, i, 1.0));
    for panel in panels.iter().rev() {
        // Columns before are still those of the identity, with zeros in these rows.
        panel.apply(&mut q, panel.first, false);
    }
    let mut upper = Matrix::zeros(k, n);
    for i in 0..k {
        (i..n).for_each(|j| upper.set(i, j, r.at(i, j)));
    }
    (q, upper)
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
        for (m, n) in [(1, 1), (4, 4), (7, 3), (3, 7), (12, 12), (20, 5), (40, 33), (19, 50)] {
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
        let (a, x) = (random(50, 50, 1), random(50, 3, 2));
        let gap = solve(&a, &product(&a, &x)).unwrap();
        let gap = gap.data.iter().zip(&x.data).fold(0f64, |m, (a, b)| m.max((a - b).abs()));
        assert!(gap < 1e-11, "a panel and more: {gap:e}");
        let (a, x) = (random(8, 8, 1), random(8, 3, 2));
        near(&solve(&a, &product(&a, &x)).unwrap(), &x, "solve");
        let gram = product(&a, &a.transposed());
        let l = cholesky(&gram).unwrap();
        near(&product(&l, &l.transposed()), &gram, "l l^T");
        assert!(cholesky(&scaled(&gram, &[-1.0; 8])).is_none());
        assert!(solve(&Matrix::zeros(2, 2), &Matrix::zeros(2, 1)).is_none());
    }
}
