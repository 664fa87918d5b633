//! Orthogonal factorisations and what follows from them: QR, eigenvalues of symmetric matrices,
//! singular values, least squares, pseudo-inverse, rank, condition, norms and functions of
//! matrices.
//!
//! Factors are computed in `f64` whatever the dtype and rounded once: by groups of the device's
//! threads ([`super::group`]) where there are many, with `f64`, and a matrix, of QR factors a panel of it, fits in what a group shares, so that
//! values stay there, else on the host ([`super::factor`]); see [`super::solve`] for what that means. Gradients of eigenvectors and singular vectors
//! exist only where values differ from each other.

use super::Tensor;
use super::factor::{self, Matrix};
use super::group::{self, Wanted};
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::ops::BinaryOp;
use crate::origin::composed;

/// Which norm [`Tensor::matrix_norm`] is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MatrixNorm {
    /// The root of the sum of squares.
    Frobenius,
    /// The sum of the singular values.
    Nuclear,
    /// The largest singular value.
    Spectral,
    /// The largest sum of magnitudes of a column.
    Columns,
    /// The largest sum of magnitudes of a row.
    Rows,
}

impl Tensor {
    /// Several results of a factorisation as one tensor, each flattened behind the batch: a
    /// gradient rule has one result.
    #[track_caller]
    fn packed<const N: usize>(
        parts: &[Vec<Matrix>; N],
        shapes: [[usize; 2]; N],
        like: &Tensor,
    ) -> Result<Tensor> {
        let batch = like.shape()[..like.rank() - 2].to_vec();
        let n = batch.iter().product();
        let size: usize = shapes.iter().map(|[rows, columns]| rows * columns).sum();
        let element = |i: usize| parts.iter().flat_map(move |part| part[i].data.iter().copied());
        let data: Vec<f64> = (0..n).flat_map(element).collect();
        Tensor::of_doubles(&data, [&batch[..], &[size]].concat().into(), like)
    }

    /// The parts of [`Tensor::packed`], as matrices.
    #[track_caller]
    pub(super) fn unpacked<const N: usize>(&self, shapes: [[usize; 2]; N]) -> Result<[Tensor; N]> {
        let mut start = 0;
        let mut parts = Vec::with_capacity(N);
        for [rows, columns] in shapes {
            let part = self.slice(-1, start..start + rows * columns)?;
            start += rows * columns;
            let batch = &self.shape()[..self.rank() - 1];
            parts.push(part.reshape([batch, &[rows, columns]].concat())?);
        }
        Ok(parts.try_into().expect("invariant: a part for each shape"))
    }

    /// What groups of the device's threads make of these matrices; `None` where the host is to.
    #[track_caller]
    fn by_groups(
        &self,
        of: impl FnOnce(&Tensor) -> Result<Option<Tensor>>,
    ) -> Result<Option<Tensor>> {
        let caps = self.device().caps();
        if self.is_empty() || caps.has_few_threads() || !group::computes(caps) {
            return Ok(None);
        }
        of(self)
    }

    /// What a function of that name gives by groups of the device's threads, also where they take longer than
    /// the host; `None` where they cannot. `solve` is of the matrices themselves.
    #[cfg(any(test, feature = "testing"))]
    #[track_caller]
    pub(crate) fn grouped(&self, op: &str) -> Result<Option<Vec<Tensor>>> {
        let &[.., m, n] = self.shape().dims() else { return Ok(None) };
        if !group::computes(self.device().caps()) {
            return Ok(None);
        }
        let k = m.min(n);
        let (all, shapes) = match op {
            "qr" => (group::qr(self)?, vec![[m, n], [n, n]]),
            "eigh" => (group::rotated(self, Wanted::Eigen)?, vec![[1, n], [n, n]]),
            "svd" => (group::rotated(self, Wanted::Singular)?, vec![[m, k], [1, k], [n, k]]),
            "svdvals" => (group::rotated(self, Wanted::Values)?, vec![[1, k]]),
            "cholesky" => return Ok(group::cholesky(self)?.ok().map(|l| vec![l])),
            _ => return Ok(Some(vec![group::Factors::of(self)?.solve(self)?])),
        };
        let Some(all) = all else { return Ok(None) };
        let mut start = 0;
        let part = |[rows, columns]: [usize; 2]| {
            let part = all.slice(-1, start..start + rows * columns)?;
            start += rows * columns;
            part.reshape([&self.shape()[..self.rank() - 2], &[rows, columns]].concat())
        };
        shapes.into_iter().map(part).collect::<Result<Vec<Tensor>>>().map(Some)
    }

    /// The factors `self = q r` with `min(rows, columns)` orthonormal columns in `q` and an upper
    /// triangular `r`, by Householder's reflections in `f64`: backward stable, and `q` orthonormal to
    /// the rounding of its dtype. Signs are LAPACK's. Devices of many threads that have `f64` factor
    /// matrices of which four columns fit in the storage that a group of threads shares (1500 rows in 48 KiB, 7200 in
    /// 227 KiB); the host all others.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Tensor::new([[3f32, 1.0], [4.0, 1.0]], &device)?;
    /// let (q, r) = a.qr()?;
    /// assert_eq!(format!("{:.2}", q.matmul(&r)?), "[[3. 1.]\n [4. 1.]]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When these are not matrices.
    #[track_caller]
    pub fn qr(&self) -> Result<(Tensor, Tensor)> {
        const OP: &str = "qr";
        let _here = composed();
        let factors = || {
            self.check_matrices(OP, false)?;
            let (q, r) = self.widest().orthogonal()?;
            let dtype = self.floating().dtype();
            Ok((q.cast(dtype), r.cast(dtype)))
        };
        factors().named(OP)
    }

    #[track_caller]
    fn orthogonal(&self) -> Result<(Tensor, Tensor)> {
        let &[.., m, n] = self.shape().dims() else {
            unreachable!("invariant: the caller has checked that these are matrices")
        };
        if m < n {
            // The factors of the first columns; the other columns of r follow from them.
            let (q, r) = self.slice(-1, ..m)?.orthogonal()?;
            let rest = q.t().matmul(&self.slice(-1, m..)?)?;
            return Ok((q.clone(), Tensor::cat(&[&r, &rest], -1)?));
        }
        let shapes = [[m, n], [n, n]];
        let both = match self.by_groups(group::qr)? {
            Some(both) => both,
            None => {
                let factors = factor::each(&self.matrices()?, 4 * m * n * n, factor::qr)?;
                let (q, r): (Vec<_>, Vec<_>) = factors.into_iter().unzip();
                Tensor::packed(&[q, r], shapes, self)?
            }
        };
        let both = both.with_gradient(&[self], move |_, y, dy| {
            let ([q, r], [dq, dr]) = (y.unpacked(shapes)?, dy.unpacked(shapes)?);
            let dr = dr.triu(0)?;
            // (dq + q copy(r dr^T - dq^T q)) r^-T, copy mirroring the lower triangle.
            let inner = r.matmul(&dr.t())?.sub(dq.t().matmul(&q)?)?;
            let low = inner.tril(-1)?;
            let inner = inner.tril(0)?.add(low.t())?;
            let right = dq.add(q.matmul(&inner)?)?;
            Ok(vec![Some(r.triangular(&right.t(), true, false)?.t())])
        })?;
        let [q, r] = both.unpacked(shapes)?;
        Ok((q, r))
    }

    /// Eigenvalues in ascending order and orthonormal eigenvectors (as columns) of symmetric
    /// matrices, of which the lower triangles are read, in `f64`: each eigenvalue is off by the rounding of
    /// `f64` times the largest. The host reduces to a tridiagonal matrix and takes QL steps; devices of
    /// many threads that have `f64` rotate columns (Jacobi) of matrices of which one fits in the storage that
    /// a group of threads shares (64 x 64 in 48 KiB). Signs of eigenvectors are any. A matrix with an element that is
    /// not finite gives NaN. Gradients are with respect to symmetric changes.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Tensor::new([[2f32, 1.0], [1.0, 2.0]], &device)?;
    /// assert_eq!(format!("{:.4}", a.eigh()?.0), "[1. 3.]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When these are not square matrices.
    #[track_caller]
    pub fn eigh(&self) -> Result<(Tensor, Tensor)> {
        const OP: &str = "eigh";
        let _here = composed();
        let both = || {
            self.check_matrices(OP, true)?;
            let x = self.widest();
            let n = x.order();
            let shapes = [[1, n], [n, n]];
            let both = match x.by_groups(|x| group::rotated(x, Wanted::Eigen))? {
                Some(both) => both,
                None => {
                    let row = |w: Vec<f64>| Matrix { rows: 1, columns: n, data: w };
                    let found = factor::each(&x.matrices()?, 9 * n * n * n, factor::eigh)?;
                    let (w, v): (Vec<_>, Vec<_>) =
                        found.into_iter().map(|(w, v)| (row(w), v)).unzip();
                    Tensor::packed(&[w, v], shapes, &x)?
                }
            };
            let both = both.with_gradient(&[&x], move |_, y, dy| {
                let ([w, v], [dw, dv]) = (y.unpacked(shapes)?, dy.unpacked(shapes)?);
                // v (diag(dw) + (v^T dv) / (w_j - w_i)) v^T, symmetric.
                let eye = Tensor::eye(n, DType::Bool, w.device());
                let inner = v.t().matmul(&dv)?.mul(reciprocal_gaps(&w, &eye)?)?;
                let inner = eye.where_(&dw, &inner)?;
                let da = v.matmul(&inner)?.matmul(&v.t())?;
                Ok(vec![Some(da.add(da.t())?.mul(0.5)?)])
            })?;
            let [w, v] = both.unpacked(shapes)?;
            let dtype = self.floating().dtype();
            Ok((w.squeeze(-2)?.cast(dtype), v.cast(dtype)))
        };
        both().named(OP)
    }

    /// The factors `self = u diag(s) vh` with singular values in descending order and
    /// `min(rows, columns)` columns of `u` and rows of `vh`, in `f64`. The host reduces to a bidiagonal
    /// matrix and takes QR steps or, where a singular value is less than `2^-20` of the largest, rotates
    /// columns (one-sided Jacobi), so small singular values are accurate, too. Devices of many threads that have
    /// `f64` rotate columns of matrices of which one fits, with the right vectors, in the storage that a
    /// group of threads shares (48 x 48 in 48 KiB, 64 x 64 in 70 KiB). Signs of vectors are any. A
    /// matrix with an element that is not finite gives NaN.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Tensor::new([[0f32, 2.0], [1.0, 0.0]], &device)?;
    /// let (u, s, vh) = a.svd()?;
    /// assert_eq!(s.to_vec::<f32>()?, [2.0, 1.0]);
    /// let product = u.mul(&s)?.matmul(&vh)?;
    /// assert!(product.sub(&a)?.abs().max(..)?.item::<f32>()? < 1e-6);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When these are not matrices.
    #[track_caller]
    pub fn svd(&self) -> Result<(Tensor, Tensor, Tensor)> {
        const OP: &str = "svd";
        let _here = composed();
        let three = || {
            self.check_matrices(OP, false)?;
            let (u, s, v) = self.widest().singular()?;
            let dtype = self.floating().dtype();
            Ok((u.cast(dtype), s.cast(dtype), v.t().cast(dtype)))
        };
        three().named(OP)
    }

    /// `u`, `s` as a vector, and `v`.
    #[track_caller]
    fn singular(&self) -> Result<(Tensor, Tensor, Tensor)> {
        let &[.., m, n] = self.shape().dims() else {
            unreachable!("invariant: the caller has checked that these are matrices")
        };
        let k = m.min(n);
        let shapes = [[m, k], [1, k], [n, k]];
        let all = match self.by_groups(|x| group::rotated(x, Wanted::Singular))? {
            Some(all) => all,
            None => {
                let (mut u, mut s, mut v) = (Vec::new(), Vec::new(), Vec::new());
                let found = factor::each(&self.matrices()?, 12 * m * n * k, factor::svd)?;
                for (left, values, right) in found {
                    u.push(left);
                    s.push(Matrix { rows: 1, columns: k, data: values });
                    v.push(right);
                }
                Tensor::packed(&[u, s, v], shapes, self)?
            }
        };
        let all = all.with_gradient(&[self], move |_, y, dy| {
            let ([u, s, v], [du, ds, dv]) = (y.unpacked(shapes)?, dy.unpacked(shapes)?);
            let eye = Tensor::eye(k, DType::Bool, s.device());
            let gaps = reciprocal_gaps(&s.square(), &eye)?;
            let skew = |x: Tensor| x.sub(x.t())?.mul(&gaps);
            let (p, q) = (u.t().matmul(&du)?, v.t().matmul(&dv)?);
            let inner = skew(p.clone())?.mul(&s)?.add(skew(q.clone())?.mul(s.t())?)?;
            let inner = eye.where_(&ds, &inner)?;
            let mut da = u.matmul(&inner)?.matmul(&v.t())?;
            let inverse = s.recip();
            if m > k {
                let outside = du.sub(u.matmul(&p)?)?.mul(&inverse)?;
                da = da.add(outside.matmul(&v.t())?)?;
            }
            if n > k {
                let outside = dv.sub(v.matmul(&q)?)?.mul(&inverse)?;
                da = da.add(u.matmul(&outside.t())?)?;
            }
            Ok(vec![Some(da)])
        })?;
        let [u, s, v] = all.unpacked(shapes)?;
        Ok((u, s.squeeze(-2)?, v))
    }

    /// Singular values in descending order, whose gradient exists where they coincide, too.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Tensor::new([[0f32, 2.0], [1.0, 0.0]], &device)?;
    /// assert_eq!(a.svdvals()?.to_vec::<f32>()?, [2.0, 1.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When these are not matrices.
    #[track_caller]
    pub fn svdvals(&self) -> Result<Tensor> {
        const OP: &str = "svdvals";
        let _here = composed();
        let values = || {
            self.check_matrices(OP, false)?;
            let x = self.widest();
            let s = x.singular_values()?.with_gradient(&[&x], |inputs, _, ds| {
                let (u, _, v) = inputs[0].singular()?;
                Ok(vec![Some(u.mul(ds.unsqueeze(-2)?)?.matmul(&v.t())?)])
            })?;
            Ok(s.cast(self.floating().dtype()))
        };
        values().named(OP)
    }

    /// Singular values without a gradient, in the wide dtype.
    #[track_caller]
    fn singular_values(&self) -> Result<Tensor> {
        let &[ref lead @ .., m, n] = self.shape().dims() else {
            unreachable!("invariant: the caller has checked that these are matrices")
        };
        if let Some(values) = self.by_groups(|x| group::rotated(x, Wanted::Values))? {
            return Ok(values);
        }
        let k = m.min(n);
        let found = factor::each(&self.matrices()?, 4 * m * n * k, factor::singular_values)?;
        Tensor::of_doubles(&found.concat(), [lead, &[k]].concat().into(), self)
    }

    /// The `x` that makes `self x - b` shortest, for matrices of full rank: by QR factors where
    /// there are at least as many rows as columns; otherwise the shortest `x` that solves it. As
    /// accurate as the QR factors: the error grows with the condition number.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Tensor::new([[1f32], [1.0]], &device)?;
    /// let b = Tensor::new([[1f32], [3.0]], &device)?;
    /// assert_eq!(format!("{:.4}", a.lstsq(&b)?), "[[2.]]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not fit. A matrix that lacks rank gives infinities or NaN.
    #[track_caller]
    pub fn lstsq(&self, b: &Tensor) -> Result<Tensor> {
        const OP: &str = "lstsq";
        let _here = composed();
        let solved = || {
            self.check_matrices(OP, false)?;
            b.check_matrices(OP, false)?;
            Tensor::check_operands(OP, &[self, b])?;
            let &[ref lead @ .., m, n] = self.shape().dims() else {
                unreachable!("invariant: these are matrices")
            };
            let rest = &b.shape()[..b.rank() - 2];
            if lead != rest || b.shape()[b.rank() - 2] != m {
                let reason = "needs [.., m, n] and [.., m, k]".to_owned();
                return Err(Tensor::shape_error(OP, &[self, b], reason));
            }
            let dtype = self.widest().dtype().promote(b.widest().dtype());
            let (a, right) = (self.cast(dtype), b.cast(dtype));
            let x = if m >= n {
                let (q, r) = a.orthogonal()?;
                r.triangular(&q.t().matmul(&right)?, true, false)?
            } else {
                let (q, r) = a.t().orthogonal()?;
                q.matmul(&r.t().triangular(&right, false, false)?)?
            };
            Ok(x.cast(self.floating().dtype().promote(b.floating().dtype())))
        };
        solved().named(OP)
    }

    /// Singular values above `rtol` times the largest count; the default is the larger extent times
    /// the rounding of the dtype.
    fn cutoff(&self, rtol: Option<f64>) -> f64 {
        let eps = if self.dtype() == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
        let size = self.shape()[self.rank() - 2..].iter().copied().max().unwrap_or(0);
        rtol.unwrap_or(eps * size as f64)
    }

    /// The pseudo-inverse (Moore and Penrose), without the singular values below `rtol` times the
    /// largest; by default the larger extent times the rounding of the dtype. Made of the factors of
    /// [`Tensor::svd`].
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Tensor::new([[2f32, 0.0], [0.0, 0.0]], &device)?;
    /// assert_eq!(a.pinv(None)?.to_vec::<f32>()?, [0.5, 0.0, 0.0, 0.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When these are not matrices.
    #[track_caller]
    pub fn pinv(&self, rtol: Option<f64>) -> Result<Tensor> {
        const OP: &str = "pinv";
        let _here = composed();
        let inverse = || {
            self.check_matrices(OP, false)?;
            let x = self.widest();
            if x.numel() == 0 {
                return Ok(x.t().cast(self.floating().dtype()));
            }
            let (u, s, v) = x.detach().singular()?;
            let least = s.max_keepdim(-1)?.mul(x.cutoff(rtol))?;
            let inverse = s.gt(&least)?.where_(s.recip(), s.like(0.0))?;
            let y = v.mul(inverse.unsqueeze(-2)?)?.matmul(&u.t())?;
            let y = y.with_gradient(&[&x], |inputs, p, g| {
                // Golub and Pereyra (1973).
                let (a, gt, pt) = (&inputs[0], g.t(), p.t());
                let direct = pt.matmul(g)?.matmul(&pt)?.neg();
                let left = gt.matmul(p)?.matmul(&pt)?;
                let left = left.sub(a.matmul(&p.matmul(&left)?)?)?;
                let right = pt.matmul(p)?.matmul(&gt)?;
                let right = right.sub(right.matmul(p)?.matmul(a)?)?;
                Ok(vec![Some(direct.add(&left)?.add(&right)?)])
            })?;
            Ok(y.cast(self.floating().dtype()))
        };
        inverse().named(OP)
    }

    /// The number of singular values above `rtol` times the largest, as `i64`; see
    /// [`Tensor::pinv`].
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Tensor::new([[1f32, 2.0], [2.0, 4.0]], &device)?;
    /// assert_eq!(a.matrix_rank(None)?.item::<i64>()?, 1);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When these are not matrices.
    #[track_caller]
    pub fn matrix_rank(&self, rtol: Option<f64>) -> Result<Tensor> {
        const OP: &str = "matrix_rank";
        let _here = composed();
        let rank = || {
            self.check_matrices(OP, false)?;
            let x = self.widest().detach();
            let s = x.singular_values()?;
            let least = s.max_keepdim(-1)?.mul(x.cutoff(rtol))?;
            s.gt(&least)?.cast(DType::I64).sum(-1)
        };
        rank().named(OP)
    }

    /// The largest along the last axis of numbers that are not negative: of none 0.
    #[track_caller]
    fn largest(&self) -> Result<Tensor> {
        match self.order() {
            0 => self.sum(-1),
            _ => self.max(-1),
        }
    }

    /// The condition number, 0 of a matrix without elements: largest singular value divided by the smallest.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Tensor::new([[4f32, 0.0], [0.0, 2.0]], &device)?;
    /// assert_eq!(a.cond()?.item::<f32>()?, 2.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When these are not matrices.
    #[track_caller]
    pub fn cond(&self) -> Result<Tensor> {
        const OP: &str = "cond";
        self.in_steps(OP, [], |x, []| {
            let s = x.svdvals()?;
            if s.order() == 0 {
                return s.largest();
            }
            s.select_index(-1, 0)?.div(s.select_index(-1, -1)?)
        })
    }

    /// Norms of matrices.
    ///
    /// ```
    /// # use zyx::{MatrixNorm, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Tensor::new([[3f32, 0.0], [4.0, 0.0]], &device)?;
    /// assert_eq!(a.matrix_norm(MatrixNorm::Frobenius)?.item::<f32>()?, 5.0);
    /// assert_eq!(a.matrix_norm(MatrixNorm::Columns)?.item::<f32>()?, 7.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When these are not matrices.
    #[track_caller]
    pub fn matrix_norm(&self, norm: MatrixNorm) -> Result<Tensor> {
        const OP: &str = "matrix_norm";
        let _here = composed();
        let of = || {
            self.check_matrices(OP, false)?;
            let x = self.widest();
            let y = match norm {
                MatrixNorm::Frobenius => {
                    let mask = 0b11 << (x.rank() - 2);
                    x.square().reduce(BinaryOp::Add, mask).root().without(mask)
                }
                MatrixNorm::Nuclear => x.svdvals()?.sum(-1)?,
                MatrixNorm::Spectral => x.svdvals()?.largest()?,
                MatrixNorm::Columns => x.abs().sum(-2)?.largest()?,
                MatrixNorm::Rows => x.abs().sum(-1)?.largest()?,
            };
            Ok(y.cast(self.floating().dtype()))
        };
        of().named(OP)
    }

    /// Square matrices to a whole power, by squaring; of the inverse for a negative one.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Tensor::new([[1f32, 1.0], [0.0, 1.0]], &device)?;
    /// assert_eq!(a.matrix_power(10)?.to_vec::<f32>()?, [1.0, 10.0, 0.0, 1.0]);
    /// assert_eq!(a.matrix_power(-1)?.to_vec::<f32>()?, [1.0, -1.0, 0.0, 1.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When these are not square matrices, or the power is negative and one is singular.
    #[track_caller]
    pub fn matrix_power(&self, n: i64) -> Result<Tensor> {
        const OP: &str = "matrix_power";
        self.in_steps(OP, [], |x, []| {
            x.check_matrices(OP, true)?;
            let mut square = if n < 0 { x.inv()? } else { x.clone() };
            let mut left = n.unsigned_abs();
            let mut product: Option<Tensor> = None;
            while left > 0 {
                if left & 1 == 1 {
                    product = Some(match product {
                        Some(product) => product.matmul(&square)?,
                        None => square.clone(),
                    });
                }
                left >>= 1;
                if left > 0 {
                    square = square.matmul(&square)?;
                }
            }
            let unit = || {
                let eye = Tensor::eye(x.order(), x.dtype(), x.device());
                eye.expand(x.shape().clone())
            };
            product.map_or_else(unit, Ok)
        })
    }

    /// The exponential of square matrices: `sum a^k / k!`.
    ///
    /// Scaling and squaring: the matrix is divided by a power of two (from the largest of the
    /// batch's norms, which is read) until its norm is at most one half, its Taylor polynomial of
    /// degree 16 has then converged to the rounding of `f64`, and is squared as often as it was
    /// halved. Products run on the device.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Tensor::new([[0f32, 1.0], [0.0, 0.0]], &device)?;
    /// assert_eq!(a.matrix_exp()?.to_vec::<f32>()?, [1.0, 1.0, 0.0, 1.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When these are not square matrices.
    #[track_caller]
    pub fn matrix_exp(&self) -> Result<Tensor> {
        const OP: &str = "matrix_exp";
        let _here = composed();
        let exponential = || {
            self.check_matrices(OP, true)?;
            let x = self.widest();
            if x.numel() == 0 {
                return Ok(x.cast(self.floating().dtype()));
            }
            let norm = x.detach().abs().sum(-1)?.max(..)?.cast(DType::F32).item::<f32>()?;
            let halvings = match norm.log2().ceil() {
                log if log.is_finite() => (log + 1.0).clamp(0.0, 1100.0) as i32,
                _ => 0,
            };
            let a = x.mul(2f64.powi(-halvings))?;
            let unit = Tensor::eye(a.order(), a.dtype(), a.device()).expand(a.shape().clone())?;
            // Horner's scheme: 1 + a (1 + a/2 (1 + a/3 (..))).
            let mut y = unit.clone();
            for k in (1..=TERMS).rev() {
                y = a.matmul(&y)?.mul(1.0 / f64::from(k))?.add(&unit)?;
            }
            for _ in 0..halvings {
                y = y.matmul(&y)?;
            }
            Ok(y.cast(self.floating().dtype()))
        };
        exponential().named(OP)
    }
}

/// Degree of the polynomial: `2^-17 / 17!` is below `2^-53`.
const TERMS: u32 = 16;

/// `1 / (w_j - w_i)` of a row of values, 0 on the diagonal.
#[track_caller]
fn reciprocal_gaps(w: &Tensor, eye: &Tensor) -> Result<Tensor> {
    let gaps = w.sub(w.t())?;
    let zero = gaps.like(0.0);
    eye.where_(&zero, eye.where_(gaps.like(1.0), &gaps)?.recip())
}
