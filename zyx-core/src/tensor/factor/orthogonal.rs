//! Householder's reflections, alone and by blocks, and the QR factors.

use super::product::{View, subtract};
use super::{BLOCK, Matrix, is_stopped};
use zyx_gemm::dense::{add_scaled, dot};

/// Reflections `1 - 2 v v^T` in the order in which they multiply, `v` a row each, of length 1 (or
/// of zeros, for none).
#[derive(Debug)]
pub(super) struct Reflections {
    v: Matrix,
    /// How many there are.
    count: usize,
}

/// The reflection that leaves of `x` its first element alone: what that becomes, and `v` in its place.
pub(super) fn reflection(x: &mut [f64]) -> f64 {
    // What cancels again and again is so small that squares vanish (LAPACK's `dlarfg` scales, too).
    let most = x.iter().fold(0f64, |most, x| most.max(x.abs()));
    let scale = if (1e-140..1e140).contains(&most) { 1.0 } else { near_one(most) };
    if scale != 1.0 {
        x.iter_mut().for_each(|x| *x *= scale);
    }
    let Some((first, tail)) = x.split_first_mut() else { return 0.0 };
    let square = dot(tail, tail);
    if !(square > 0.0 || square.is_nan()) {
        let kept = *first / scale;
        x.fill(0.0);
        return kept;
    }
    let norm = (square + *first * *first).sqrt().copysign(*first);
    *first += norm;
    let length = (square + *first * *first).sqrt();
    x.iter_mut().for_each(|x| *x /= length);
    -norm / scale
}

/// The power of two that brings a number near 1; 1 where there is none.
fn near_one(x: f64) -> f64 {
    let exponent = (x.to_bits() >> 52) as i32 - 1023;
    if x == 0.0 || !x.is_finite() { 1.0 } else { 2f64.powi(-exponent.clamp(-1000, 1000)) }
}

impl Reflections {
    /// None yet, of at most `most`, for vectors of `n` elements.
    pub(super) fn new(most: usize, n: usize) -> Reflections {
        Reflections { v: Matrix::zeros(most, n), count: 0 }
    }

    /// Adds one that keeps all elements before the last ones, which are `v`.
    pub(super) fn push(&mut self, v: &[f64]) {
        let start = self.v.columns - v.len();
        self.v.row_mut(self.count)[start..].copy_from_slice(v);
        self.count += 1;
    }

    /// The triangle `t` of `1 - v^T t v` for reflections `first..last` (Schreiber and Van Loan
    /// 1989).
    fn triangle(&self, first: usize, last: usize) -> Matrix {
        let n = last - first;
        let mut t = Matrix::zeros(n, n);
        for j in 0..n {
            let along: Vec<f64> =
                (0..j).map(|i| dot(self.v.row(first + i), self.v.row(first + j))).collect();
            for i in 0..j {
                t.set(i, j, -2.0 * dot(&t.row(i)[..j], &along));
            }
            t.set(j, j, 2.0);
        }
        t
    }

    /// Multiplies the rows `from..` of `x`, from the right, by reflections `first..last` in order, or
    /// in reverse order (`back`), all of which keep the first `start` elements.
    fn apply_block(
        &self,
        (first, last, start): (usize, usize, usize),
        x: &mut Matrix,
        from: usize,
        back: bool,
    ) {
        let (rows, n) = (x.rows, x.columns);
        if from >= rows || first >= last {
            return;
        }
        let t = self.triangle(first, last);
        let t = if back { t.transposed() } else { t };
        let v = View::rows(&self.v, first, last, start);
        // The products have the sign of what is taken away.
        let mut w = Matrix::zeros(rows - from, last - first);
        let all = (0..w.rows, 0..w.columns);
        let own = View::rows(x, from, rows, start).panels();
        subtract(&mut w, all.0.clone(), all.1.clone(), own.all(), v.panels().all());
        let mut wt = Matrix::zeros(w.rows, w.columns);
        let right = View::rows(&t, 0, t.rows, 0).transposed().panels();
        subtract(&mut wt, all.0, all.1, View::rows(&w, 0, w.rows, 0).panels().all(), right.all());
        let left = View::rows(&wt, 0, wt.rows, 0).panels();
        subtract(x, from..rows, start..n, left.all(), v.transposed().panels().all());
    }

    /// The first `rows` columns of the product of all reflections, as rows. Reflection `i` keeps the
    /// first `i + kept` elements.
    pub(super) fn product(&self, rows: usize, kept: usize) -> Matrix {
        let mut q = Matrix::zeros(rows, self.v.columns);
        (0..rows.min(q.columns)).for_each(|i| q.set(i, i, 1.0));
        for first in (0..self.count).step_by(BLOCK).rev() {
            if is_stopped() {
                break;
            }
            let last = self.count.min(first + BLOCK);
            // Columns before are still those of the identity.
            self.apply_block((first, last, first + kept), &mut q, (first + kept).min(rows), true);
        }
        q
    }
}

/// `a = q r` by Householder's reflections, with `min(rows, columns)` orthonormal columns in `q`.
/// Signs are LAPACK's: a diagonal element of `r` has the sign opposite to the pivot's.
pub(crate) fn qr(a: &Matrix) -> (Matrix, Matrix) {
    let (m, n) = (a.rows, a.columns);
    let k = m.min(n);
    // Squares of elements are neither infinite nor zero.
    let (scale, _) = a.scale();
    // Columns as rows.
    let mut r = a.transposed();
    r.data.iter_mut().for_each(|x| *x *= scale);
    let mut reflections = Reflections::new(k, m);
    for first in (0..k).step_by(BLOCK) {
        if is_stopped() {
            break;
        }
        let last = k.min(first + BLOCK);
        for j in first..last {
            let column = &mut r.row_mut(j)[j..];
            let pivot = reflection(column);
            reflections.push(column);
            column.fill(0.0);
            column[0] = pivot;
            for other in j + 1..last {
                let v = &reflections.v.row(j)[j..];
                let x = &mut r.row_mut(other)[j..];
                let along = dot(v, x);
                add_scaled(x, -2.0 * along, v);
            }
        }
        reflections.apply_block((first, last, first), &mut r, last, false);
    }
    let q = reflections.product(k, 0).transposed();
    let mut upper = Matrix::zeros(k, n);
    for i in 0..k {
        (i..n).for_each(|j| upper.set(i, j, r.at(j, i) / scale));
    }
    (q, upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of vectors whose squares vanish or overflow, too, the vector of a reflection has length 1, and
    /// the reflection leaves the first element alone.
    #[test]
    fn reflections_of_all_magnitudes() {
        for magnitude in [1e-320, 1e-300, 1e-170, 1e-150, 1.0, 1e150, 1e300] {
            let x: Vec<f64> = (0..7).map(|i| magnitude * f64::from(i * 5 % 7 - 3)).collect();
            let mut v = x.clone();
            let first = reflection(&mut v);
            assert!((dot(&v, &v) - 1.0).abs() < 1e-14, "{magnitude:e}");
            let along: f64 = x.iter().zip(&v).map(|(x, v)| x / magnitude * v).sum();
            for (i, (x, v)) in x.iter().zip(&v).enumerate() {
                let left = if i == 0 { first / magnitude } else { 0.0 };
                let bound = if magnitude < 1e-310 { 1e-3 } else { 1e-13 };
                assert!((x / magnitude - 2.0 * along * v - left).abs() < bound, "{magnitude:e}");
            }
        }
        let mut zeros = [3.0, 0.0, 0.0];
        assert_eq!((reflection(&mut zeros), zeros), (3.0, [0.0; 3]));
        let mut bad = [1.0, f64::NAN];
        assert!(reflection(&mut bad).is_nan() && bad[1].is_nan());
    }
}
