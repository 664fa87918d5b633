//! Eigenvalues and eigenvectors of symmetric matrices: Householder's reduction to a tridiagonal
//! matrix, then implicit QL steps with Wilkinson's shift (Golub and Van Loan, 8.3; Wilkinson and
//! Reinsch 1971, II/4).

use super::orthogonal::{Reflections, reflection};
use super::{Matrix, Rotations, is_stopped};
use zyx_gemm::dense::{add_two, dot};

/// Steps for one eigenvalue after which none is expected any more; two are usual.
const STEPS: usize = 100;

/// Eigenvalues in ascending order and eigenvectors as columns of a symmetric matrix, of which the
/// lower triangle is read.
pub(crate) fn eigh(a: &Matrix) -> (Vec<f64>, Matrix) {
    let n = a.rows;
    let mut a = a.clone();
    for i in 0..n {
        (0..i).for_each(|j| a.set(j, i, a.at(i, j)));
    }
    let (scale, finite) = a.scale();
    if !finite {
        return (vec![f64::NAN; n], Matrix::filled(n, n, f64::NAN));
    }
    a.data.iter_mut().for_each(|x| *x *= scale);
    let (mut d, mut e, reflections) = tridiagonal(a);
    // Eigenvectors as rows.
    let mut v = reflections.product(n, 1);
    if !diagonalize(&mut d, &mut e, &mut v) {
        return (vec![f64::NAN; n], Matrix::filled(n, n, f64::NAN));
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| d[i].total_cmp(&d[j]));
    let mut sorted = Matrix::zeros(n, n);
    order.iter().enumerate().for_each(|(i, &from)| sorted.row_mut(i).copy_from_slice(v.row(from)));
    (order.iter().map(|&i| d[i] / scale).collect(), sorted.transposed())
}

/// Diagonal and neighbours of a tridiagonal matrix, and the reflections that make the given one of it.
fn tridiagonal(mut a: Matrix) -> (Vec<f64>, Vec<f64>, Reflections) {
    let n = a.rows;
    let mut reflections = Reflections::new(n.saturating_sub(2), n);
    let (mut d, mut e) = (vec![0.0; n], vec![0.0; n]);
    let mut v = vec![0.0; n];
    let mut p = vec![0.0; n];
    for k in 0..n {
        if is_stopped() {
            break;
        }
        d[k] = a.at(k, k);
        if k + 2 >= n {
            if k + 1 < n {
                e[k] = a.at(k, k + 1);
            }
            continue;
        }
        let v = &mut v[k + 1..];
        v.copy_from_slice(&a.row(k)[k + 1..]);
        e[k] = reflection(v);
        reflections.push(v);
        // (1 - 2 v v^T) a (1 - 2 v v^T) = a - v w^T - w v^T.
        let p = &mut p[k + 1..];
        for (i, p) in p.iter_mut().enumerate() {
            *p = dot(&a.row(k + 1 + i)[k + 1..], v);
        }
        let along = dot(v, p);
        let w = &mut *p;
        w.iter_mut().zip(&*v).for_each(|(w, v)| *w = 2.0 * (*w - along * v));
        for i in 0..v.len() {
            add_two(&mut a.row_mut(k + 1 + i)[k + 1..], [-v[i], -w[i]], [w, v]);
        }
    }
    (d, e, reflections)
}

/// Makes a tridiagonal matrix diagonal and turns the rows of `v` along. Whether it converged.
fn diagonalize(d: &mut [f64], e: &mut [f64], v: &mut Matrix) -> bool {
    let n = d.len();
    let mut rotations = Rotations::default();
    for l in 0..n {
        if is_stopped() {
            return false;
        }
        let mut steps = 0;
        loop {
            let negligible = |m: usize| {
                // The matrix has elements near 1.
                e[m].abs() <= f64::EPSILON * (d[m].abs() + d[m + 1].abs()) + 1e-150
            };
            let m = (l..n - 1).find(|&m| negligible(m)).unwrap_or(n - 1);
            if m == l {
                break;
            }
            steps += 1;
            if steps > STEPS {
                return false;
            }
            let half = (d[l + 1] - d[l]) / (2.0 * e[l]);
            let mut g = d[m] - d[l] + e[l] / (half + half.hypot(1.0).copysign(half));
            let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
            let mut whole = true;
            for i in (l..m).rev() {
                let (f, b) = (s * e[i], c * e[i]);
                let r = (f * f + g * g).sqrt();
                e[i + 1] = r;
                if r == 0.0 {
                    d[i + 1] -= p;
                    e[m] = 0.0;
                    whole = false;
                    break;
                }
                (s, c) = (f / r, g / r);
                g = d[i + 1] - p;
                let r = (d[i] - g) * s + 2.0 * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
                rotations.push(i, c, -s);
            }
            if whole {
                d[l] -= p;
                e[l] = g;
                e[m] = 0.0;
            }
            if rotations.is_full() {
                rotations.apply(v);
            }
        }
    }
    rotations.apply(v);
    true
}
