//! Singular values and vectors.
//!
//! Reflections from both sides make the matrix bidiagonal, implicit QR steps make that diagonal
//! (Golub and Kahan 1965; Golub and Van Loan, 8.6). The error of each value is then the rounding
//! of `f64` times the largest. Where the smallest is so small that this would show
//! ([`SMALL`]), rotations of columns (Hestenes 1958) compute it to a high relative accuracy.

use super::orthogonal::{Reflections, reflection};
use super::{Matrix, Rotations, is_stopped, qr};
use zyx_gemm::dense::{add_scaled, dot};

/// Smallest singular value, as a part of the largest, that steps on a bidiagonal matrix may give.
const SMALL: f64 = 1.0 / (1u64 << 20) as f64;

/// Steps for one singular value after which none is expected any more; two are usual.
const STEPS: usize = 100;

/// Sweeps after which rotations of columns end; they converge quadratically, in under ten for any
/// size.
const SWEEPS: usize = 60;

/// Rows for each column from which the QR factors come first (Chan 1982).
const TALL: f64 = 1.5;

/// Singular values in descending order.
pub(crate) fn singular_values(a: &Matrix) -> Vec<f64> {
    if a.rows < a.columns {
        return singular_values(&a.transposed());
    }
    if a.rows as f64 > TALL * a.columns as f64 {
        return singular_values(&qr(a).1);
    }
    let (scale, finite) = a.scale();
    if !finite {
        return vec![f64::NAN; a.columns];
    }
    let scaled = scaled(a, scale);
    let mut s = match by_steps(&scaled, false) {
        Some((_, s, _)) => s,
        None => by_rotations(&scaled).1,
    };
    s.iter_mut().for_each(|s| *s /= scale);
    s
}

/// `a = u diag(s) v^T` with singular values in descending order and `min(rows, columns)` columns
/// in `u` and `v`.
pub(crate) fn svd(a: &Matrix) -> (Matrix, Vec<f64>, Matrix) {
    let (m, n) = (a.rows, a.columns);
    if m < n {
        let (u, s, v) = svd(&a.transposed());
        return (v, s, u);
    }
    let (scale, finite) = a.scale();
    if !finite {
        let nan = |rows: usize| Matrix::filled(rows, n, f64::NAN);
        return (nan(m), vec![f64::NAN; n], nan(n));
    }
    let scaled = scaled(a, scale);
    let (u, mut s, v) = match by_steps(&scaled, true) {
        Some(all) => all,
        None => by_rotations(&scaled),
    };
    s.iter_mut().for_each(|s| *s /= scale);
    (u, s, v)
}

fn scaled(a: &Matrix, scale: f64) -> Matrix {
    let mut scaled = a.clone();
    scaled.data.iter_mut().for_each(|x| *x *= scale);
    scaled
}

/// Rows in another order, as columns.
fn columns(x: &Matrix, order: &[usize]) -> Matrix {
    let mut sorted = Matrix::zeros(order.len(), x.columns);
    order.iter().enumerate().for_each(|(i, &from)| sorted.row_mut(i).copy_from_slice(x.row(from)));
    sorted.transposed()
}

/// Positions of values in descending order.
fn descending(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[j].total_cmp(&values[i]));
    order
}

/// By steps on a bidiagonal matrix, of at least as many rows as columns, without vectors (empty)
/// unless asked for; `None` where a value is small or steps do not converge.
fn by_steps(a: &Matrix, vectors: bool) -> Option<(Matrix, Vec<f64>, Matrix)> {
    let n = a.columns;
    let (mut d, mut e, left, right) = bidiagonal(a.clone());
    let (mut u, mut v) = if vectors {
        (left.product(n, 0), right.product(n, 1))
    } else {
        (Matrix::zeros(0, 0), Matrix::zeros(0, 0))
    };
    diagonalize(&mut d, &mut e, vectors.then_some((&mut u, &mut v)))?;
    let most = d.iter().fold(0f64, |most, d| most.max(d.abs()));
    if d.iter().any(|d| d.abs() <= SMALL * most) {
        return None;
    }
    for (i, d) in d.iter_mut().enumerate() {
        if *d < 0.0 {
            *d = -*d;
            if vectors {
                v.row_mut(i).iter_mut().for_each(|x| *x = -*x);
            }
        }
    }
    let order = descending(&d);
    let s = order.iter().map(|&i| d[i]).collect();
    if !vectors {
        return Some((u, s, v));
    }
    Some((columns(&u, &order), s, columns(&v, &order)))
}

/// Diagonal and the elements right of it, and the reflections from the left and the right.
fn bidiagonal(mut a: Matrix) -> (Vec<f64>, Vec<f64>, Reflections, Reflections) {
    let (m, n) = (a.rows, a.columns);
    let mut left = Reflections::new(n, m);
    let mut right = Reflections::new(n.saturating_sub(2), n);
    let (mut d, mut e) = (vec![0.0; n], vec![0.0; n]);
    let (mut v, mut w, mut u) = (vec![0.0; m], vec![0.0; n], vec![0.0; n]);
    for k in 0..n {
        if is_stopped() {
            break;
        }
        let v = &mut v[k..];
        v.iter_mut().enumerate().for_each(|(i, v)| *v = a.at(k + i, k));
        d[k] = reflection(v);
        left.push(v);
        if k + 1 == n {
            break;
        }
        // What the left reflection takes from each row is twice `v` times this.
        let w = &mut w[k + 1..];
        w.fill(0.0);
        for (i, &v) in v.iter().enumerate() {
            add_scaled(w, 2.0 * v, &a.row(k + i)[k + 1..]);
        }
        let first = &mut a.row_mut(k)[k + 1..];
        add_scaled(first, -v[0], w);
        if k + 2 == n {
            e[k] = first[0];
            for (i, &v) in v.iter().enumerate().skip(1) {
                add_scaled(&mut a.row_mut(k + i)[k + 1..], -v, w);
            }
            continue;
        }
        let u = &mut u[k + 1..];
        u.copy_from_slice(first);
        e[k] = reflection(u);
        right.push(u);
        for (i, &v) in v.iter().enumerate().skip(1) {
            let row = &mut a.row_mut(k + i)[k + 1..];
            add_scaled(row, -v, w);
            let along = dot(row, u);
            add_scaled(row, -2.0 * along, u);
        }
    }
    (d, e, left, right)
}

/// The rotation `(c, s)` that turns `(y, z)` into `(r, 0)`, and `r`.
fn rotation(y: f64, z: f64) -> (f64, f64, f64) {
    let r = (y * y + z * z).sqrt();
    if r == 0.0 { (1.0, 0.0, 0.0) } else { (y / r, z / r, r) }
}

/// Makes a bidiagonal matrix diagonal, and turns rows of `u` and `v` along. `None` where a diagonal
/// element vanishes, or it does not converge.
fn diagonalize(
    d: &mut [f64],
    e: &mut [f64],
    mut vectors: Option<(&mut Matrix, &mut Matrix)>,
) -> Option<()> {
    let n = d.len();
    let most = d.iter().chain(&*e).fold(0f64, |most, x| most.max(x.abs()));
    let (mut left, mut right) = (Rotations::default(), Rotations::default());
    let mut steps = 0;
    let mut high = n.saturating_sub(1);
    while high > 0 {
        if is_stopped() {
            return None;
        }
        let negligible =
            |e: &[f64], i: usize| e[i].abs() <= f64::EPSILON * (d[i].abs() + d[i + 1].abs());
        if negligible(e, high - 1) {
            (e[high - 1], high, steps) = (0.0, high - 1, 0);
            continue;
        }
        let low = (0..high - 1).rev().find(|&i| negligible(e, i)).map_or(0, |i| i + 1);
        steps += 1;
        if steps > STEPS || d[low..=high].iter().any(|d| d.abs() <= f64::EPSILON * most) {
            return None;
        }
        // Wilkinson's shift: of the last two rows of the product with the transpose.
        let before = if high - 1 > low { e[high - 2] } else { 0.0 };
        let (p, q) = (d[high - 1], e[high - 1]);
        let (t11, t22, t12) = (p * p + before * before, d[high] * d[high] + q * q, p * q);
        let half = (t11 - t22) / 2.0;
        let shift = t22 - t12 * (t12 / (half + half.hypot(t12).copysign(half)));
        let (mut y, mut z) = (d[low] * d[low] - shift, d[low] * e[low]);
        for k in low..high {
            let (c, s, r) = rotation(y, z);
            if k > low {
                e[k - 1] = r;
            }
            y = c * d[k] + s * e[k];
            e[k] = c * e[k] - s * d[k];
            z = s * d[k + 1];
            d[k + 1] *= c;
            if vectors.is_some() {
                right.push(k, c, s);
            }
            let (c, s, r) = rotation(y, z);
            d[k] = r;
            y = c * e[k] + s * d[k + 1];
            d[k + 1] = c * d[k + 1] - s * e[k];
            if k + 1 < high {
                z = s * e[k + 1];
                e[k + 1] *= c;
            }
            if vectors.is_some() {
                left.push(k, c, s);
            }
        }
        e[high - 1] = y;
        if let Some((u, v)) = &mut vectors
            && left.is_full()
        {
            left.apply(u);
            right.apply(v);
        }
    }
    if let Some((u, v)) = vectors {
        left.apply(u);
        right.apply(v);
    }
    Some(())
}

/// By one-sided rotations, of at least as many rows as columns.
fn by_rotations(a: &Matrix) -> (Matrix, Vec<f64>, Matrix) {
    let (m, n) = (a.rows, a.columns);
    // Columns as rows.
    let (mut u, mut v) = (a.transposed(), Matrix::eye(n));
    for _ in 0..SWEEPS {
        let mut rotated = false;
        for p in 0..n {
            if is_stopped() {
                break;
            }
            for q in p + 1..n {
                let (x, y) = u.two_rows(p, q);
                let (a, b, r) = (dot(x, x), dot(y, y), dot(x, y));
                if r.abs() <= f64::EPSILON * (a * b).sqrt() || r == 0.0 {
                    continue;
                }
                // Golub and Van Loan, 8.5.2.
                let tau = (b - a) / (2.0 * r);
                let t = 1.0f64.copysign(tau) / (tau.abs() + tau.hypot(1.0));
                let c = 1.0 / t.hypot(1.0);
                let s = t * c;
                turn(x, y, c, s);
                let (x, y) = v.two_rows(p, q);
                turn(x, y, c, s);
                rotated = true;
            }
        }
        if !rotated {
            break;
        }
    }
    let lengths: Vec<f64> = (0..n).map(|j| dot(u.row(j), u.row(j)).sqrt()).collect();
    let order = descending(&lengths);
    let s: Vec<f64> = order.iter().map(|&j| lengths[j]).collect();
    let mut left = columns(&u, &order).transposed();
    let least = s.first().copied().unwrap_or(0.0) * f64::EPSILON * m as f64;
    for (j, &s) in s.iter().enumerate() {
        if s > least {
            left.row_mut(j).iter_mut().for_each(|x| *x /= s);
        } else {
            complete(&mut left, j);
        }
    }
    (left.transposed(), s, columns(&v, &order))
}

fn turn(x: &mut [f64], y: &mut [f64], c: f64, s: f64) {
    for (x, y) in x.iter_mut().zip(y) {
        (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
    }
}

/// Puts into row `j` a unit vector orthogonal to those before it.
fn complete(u: &mut Matrix, j: usize) {
    let m = u.columns;
    let mut best = (0.0, vec![0.0; m]);
    for axis in 0..m {
        let mut x = vec![0.0; m];
        x[axis] = 1.0;
        // Twice is enough (Kahan and Parlett).
        for _ in 0..2 {
            for k in 0..j {
                let along = dot(&x, u.row(k));
                add_scaled(&mut x, -along, u.row(k));
            }
        }
        let length = dot(&x, &x).sqrt();
        if length > best.0 {
            best = (length, x);
        }
        // At least one axis is as far away as the average.
        if length * length * m as f64 >= (m - j) as f64 {
            break;
        }
    }
    let (length, x) = best;
    u.row_mut(j).iter_mut().zip(x).for_each(|(u, x)| *u = x / length);
}
