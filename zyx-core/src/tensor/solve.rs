//! Linear systems: Cholesky's and LU factors, triangular and general systems, inverse, determinant.
//!
//! Matrices are the last two axes, all others are a batch. Factors are computed in `f64` whatever the
//! dtype and rounded once, so an `f32` result is better than one computed in `f32`, and integers of
//! up to 53 bits are exact operands; the tensor is computed at once. Groups of the device's threads compute them
//! where there are many, with `f64` ([`super::group`]); else the host does ([`super::factor`]), which takes one
//! transfer each way. Gradients are products and triangular systems, of any order.

use super::Tensor;
use super::factor::{self, Matrix, Triangle};
use super::group;
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::origin::composed;
use crate::shape::Shape;

/// Most matrices without elements in a batch: they take no memory on a device, and some on the host.
const MOST_EMPTY: usize = 1 << 24;

impl Tensor {
    /// Refuses what is not a batch of matrices of floats or integers, square if asked for, and batches of
    /// more than can be looked at.
    pub(crate) fn check_matrices(&self, op: &'static str, square: bool) -> Result<()> {
        Tensor::check_operands(op, &[self])?;
        let fits = match self.shape().dims() {
            [.., rows, columns] => !square || rows == columns,
            _ => false,
        };
        if fits {
            let batch = &self.shape()[..self.rank() - 2];
            let n = batch.iter().fold(1, |n: usize, &extent| n.saturating_mul(extent));
            if n <= MOST_EMPTY || self.numel() > 0 {
                return Ok(());
            }
            let reason =
                format!("matrices are looked at one by one, at most {MOST_EMPTY} empty ones");
            return Err(Tensor::shape_error(op, &[self], reason));
        }
        let kind = if square { "square matrices" } else { "matrices" };
        Err(Tensor::shape_error(op, &[self], format!("needs {kind} as the last two axes")))
    }

    /// In the dtype that matrices are read and computed in: [`Tensor::wide`], but `f64` for integers
    /// that `f32` would round, where the device has it.
    #[track_caller]
    pub(crate) fn widest(&self) -> Tensor {
        let rounded = !self.dtype().is_float() && self.dtype().bits() >= 32;
        if rounded && self.device().caps().storage.contains(DType::F64) {
            return self.cast(DType::F64);
        }
        self.wide()
    }

    /// Each matrix of the batch, on the host.
    pub(crate) fn matrices(&self) -> Result<Vec<Matrix>> {
        let &[.., rows, columns] = self.shape().dims() else {
            unreachable!("invariant: the caller has checked that these are matrices")
        };
        // Reading must not free how it was computed: gradients may still be asked for.
        let read = if self.is_tracked() { self.clone() } else { self.detach() };
        let data: Vec<f64> = match self.dtype() {
            DType::F64 => read.to_vec::<f64>()?,
            _ => read.cast(DType::F32).to_vec::<f32>()?.into_iter().map(f64::from).collect(),
        };
        let n = self.shape()[..self.rank() - 2].iter().product::<usize>();
        let size = rows * columns;
        let one =
            |i: usize| Matrix { rows, columns, data: data[i * size..(i + 1) * size].to_vec() };
        Ok((0..n).map(one).collect())
    }

    /// Matrices with the batch, device and wide dtype of `like`.
    #[track_caller]
    pub(crate) fn of_matrices(all: &[Matrix], shape: [usize; 2], like: &Tensor) -> Result<Tensor> {
        let data: Vec<f64> = all.iter().flat_map(|m| m.data.iter().copied()).collect();
        let dims = Shape::from([&like.shape()[..like.rank() - 2], &shape].concat());
        Tensor::of_doubles(&data, dims, like)
    }

    /// Elements computed on the host, in the wide dtype and on the device of `like`.
    #[track_caller]
    pub(crate) fn of_doubles(data: &[f64], dims: Shape, like: &Tensor) -> Result<Tensor> {
        if like.dtype() == DType::F64 {
            return Tensor::from_slice(data, dims, like.device());
        }
        let data: Vec<f32> = data.iter().map(|&x| x as f32).collect();
        Tensor::from_slice(&data, dims, like.device())
    }

    /// Whether groups of the device's threads take these matrices, and right sides, instead of the
    /// host.
    fn in_groups(&self, b: &Tensor) -> bool {
        group::serves(self.device().caps()) && !self.is_empty() && !b.is_empty()
    }

    /// The order of square matrices.
    pub(crate) fn order(&self) -> usize {
        self.shape()[self.rank() - 1]
    }

    /// Cholesky's factor: the lower triangular `l` with `l l^T = self`, of symmetric positive
    /// definite matrices, of which the lower triangles are read.
    ///
    /// Computed in `f64`; backward stable without pivoting.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Tensor::new([[4f32, 2.0], [2.0, 5.0]], &device)?;
    /// assert_eq!(a.cholesky()?.to_vec::<f32>()?, [2.0, 0.0, 1.0, 2.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When these are not square matrices, or one is not positive definite.
    #[track_caller]
    pub fn cholesky(&self) -> Result<Tensor> {
        const OP: &str = "cholesky";
        let _here = composed();
        let factor = || {
            self.check_matrices(OP, true)?;
            let x = self.widest();
            let failed = |i: usize| {
                Tensor::argument_error(OP, format!("matrix {i} is not positive definite"))
            };
            let l = if x.in_groups(&x) {
                group::cholesky(&x)?.map_err(failed)?
            } else {
                let n = x.order();
                let found = factor::each(&x.matrices()?, n * n * n / 3, factor::cholesky)?;
                let found = found.into_iter().enumerate();
                let all: Result<Vec<Matrix>> =
                    found.map(|(i, l)| l.ok_or_else(|| failed(i))).collect();
                Tensor::of_matrices(&all?, [n, n], &x)?
            };
            let l = l.with_gradient(&[&x], |_, l, dl| {
                // l^-T phi(l^T dl) l^-1, phi being the lower triangle with half the diagonal.
                let phi = l.t().matmul(dl)?.tril(0)?;
                let phi = phi.add(&phi.tril(-1)?)?.mul(0.5)?;
                let half = l.t().triangular(&phi, true, false)?;
                let s = l.t().triangular(&half.t(), true, false)?;
                Ok(vec![Some(s.add(s.t())?.mul(0.5)?)])
            })?;
            Ok(l.cast(self.floating().dtype()))
        };
        factor().named(OP)
    }

    /// `x` of `self x = b` where `self` is triangular: the upper or the lower triangle is read,
    /// with `unit` without its diagonal, which is ones then. `b` is `[.., n, k]`; batches broadcast.
    /// The matrix comes first, as in `torch.linalg.solve_triangular`; in `torch.triangular_solve`
    /// (and in Python) the right side does.
    ///
    /// Computed in `f64` by substitution; each column is exact for a matrix that
    /// differs by rounding. A zero on the diagonal gives infinities.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Tensor::new([[2f32, 0.0], [1.0, 1.0]], &device)?;
    /// let b = Tensor::new([[2f32], [3.0]], &device)?;
    /// assert_eq!(a.triangular_solve(&b, false, false)?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not fit.
    #[track_caller]
    pub fn triangular_solve(&self, b: &Tensor, upper: bool, unit: bool) -> Result<Tensor> {
        const OP: &str = "triangular_solve";
        let _here = composed();
        let solved = || {
            let (a, b) = self.system(OP, b)?;
            a.triangular(&b, upper, unit)
        };
        let dtype = self.floating().dtype().promote(b.floating().dtype());
        Ok(solved().named(OP)?.cast(dtype))
    }

    /// Matrix and right side in one wide dtype with one batch.
    #[track_caller]
    fn system(&self, op: &'static str, b: &Tensor) -> Result<(Tensor, Tensor)> {
        self.check_matrices(op, true)?;
        b.check_matrices(op, false)?;
        Tensor::check_operands(op, &[self, b])?;
        let fail = |reason: &str| Tensor::shape_error(op, &[self, b], reason.to_owned());
        let n = self.order();
        let &[ref lead @ .., rows, k] = b.shape().dims() else {
            return Err(fail("the right side must be [.., n, k]"));
        };
        let own = Shape::from(&self.shape()[..self.rank() - 2]);
        let batch = own.broadcast(&Shape::from(lead)).filter(|_| rows == n);
        let batch = batch.ok_or_else(|| fail("the right side must be [.., n, k]"))?;
        let dtype = self.widest().dtype().promote(b.widest().dtype());
        let whole = |x: &Tensor, tail: [usize; 2]| {
            x.cast(dtype).expand(Shape::from([batch.dims(), &tail].concat()))
        };
        Ok((whole(self, [n, n])?, whole(b, [n, k])?))
    }

    /// [`Tensor::triangular_solve`] of operands with one batch and wide dtype.
    #[track_caller]
    pub(crate) fn triangular(&self, b: &Tensor, upper: bool, unit: bool) -> Result<Tensor> {
        let of = Triangle { upper, unit };
        let x = if self.in_groups(b) {
            group::triangular(self, b, of)?
        } else {
            let systems: Vec<_> = self.matrices()?.into_iter().zip(b.matrices()?).collect();
            let work = self.order() * self.order() * b.order();
            let all = factor::each(&systems, work, |(a, b)| factor::triangular(a, b, of))?;
            let shape = [b.shape()[b.rank() - 2], b.order()];
            Tensor::of_matrices(&all, shape, b)?
        };
        x.with_gradient(&[self, b], move |inputs, x, dx| {
            let db = inputs[0].t().triangular(dx, !upper, unit)?;
            let da = db.matmul(&x.t())?.neg();
            let inner = i64::from(unit);
            let da = if upper { da.triu(inner)? } else { da.tril(-inner)? };
            Ok(vec![Some(da), Some(db)])
        })
    }

    /// `x` of `a x = b` with `a` given by its Cholesky factor, which is `self`: lower triangular `l`
    /// with `a = l l^T`, or upper `u` with `a = u^T u`. The factor comes first; in
    /// `torch.cholesky_solve` (and in Python) the right side does.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let l = Tensor::new([[2f32, 0.0], [1.0, 2.0]], &device)?;
    /// let b = Tensor::new([[4f32], [2.0]], &device)?;
    /// assert_eq!(l.cholesky_solve(&b, false)?.to_vec::<f32>()?, [1.0, 0.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not fit.
    #[track_caller]
    pub fn cholesky_solve(&self, b: &Tensor, upper: bool) -> Result<Tensor> {
        const OP: &str = "cholesky_solve";
        let _here = composed();
        let solved = || {
            let (a, b) = self.system(OP, b)?;
            let l = if upper { a.t() } else { a };
            let half = l.triangular(&b, false, false)?;
            l.t().triangular(&half, true, false)
        };
        let dtype = self.floating().dtype().promote(b.floating().dtype());
        Ok(solved().named(OP)?.cast(dtype))
    }

    /// The inverse of the matrix that Cholesky's factor is of; see [`Tensor::cholesky_solve`].
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let l = Tensor::new([[2f32]], &device)?;
    /// assert_eq!(l.cholesky_inverse(false)?.to_vec::<f32>()?, [0.25]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When these are not square matrices.
    #[track_caller]
    pub fn cholesky_inverse(&self, upper: bool) -> Result<Tensor> {
        const OP: &str = "cholesky_inverse";
        self.check_matrices(OP, true).named(OP)?;
        let eye = Tensor::eye(self.order(), self.widest().dtype(), self.device());
        let inverse = self.cholesky_solve(&eye, upper).named(OP)?;
        Ok(inverse.cast(self.floating().dtype()))
    }

    /// `x` of `self x = b` with `b` of `[.., n, k]`, whose batches broadcast, or a vector for each
    /// matrix: `b` of the shape of the matrices without the last axis.
    ///
    /// Computed in `f64` by LU factors with partial pivoting and rounded once, on the host or by groups
    /// of threads: the error grows with the condition number.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Tensor::new([[0f32, 2.0], [1.0, 1.0]], &device)?;
    /// let b = Tensor::new([4f32, 5.0], &device)?;
    /// assert_eq!(a.solve(&b)?.to_vec::<f32>()?, [3.0, 2.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not fit or a matrix is singular.
    #[track_caller]
    pub fn solve(&self, b: &Tensor) -> Result<Tensor> {
        const OP: &str = "solve";
        let _here = composed();
        let solved = || {
            let vectors =
                self.shape().split_last().is_some_and(|(_, lead)| lead == b.shape().dims());
            if b.rank() == 1 || vectors {
                let (a, b) = self.system(OP, &b.unsqueeze(-1)?)?;
                return a.solved(OP, &b)?.squeeze(-1);
            }
            let (a, b) = self.system(OP, b)?;
            a.solved(OP, &b)
        };
        let dtype = self.floating().dtype().promote(b.floating().dtype());
        Ok(solved().named(OP)?.cast(dtype))
    }

    #[track_caller]
    fn solved(&self, op: &'static str, b: &Tensor) -> Result<Tensor> {
        let failed = |i: usize| Tensor::argument_error(op, format!("matrix {i} is singular"));
        let x = if self.in_groups(b) && group::eliminates(self.order(), self.device().caps()) {
            let factors = group::Factors::of(self)?;
            let x = factors.solve(b)?;
            if let Some(i) = factors.singular()? {
                return Err(failed(i));
            }
            x
        } else {
            let systems: Vec<_> = self.matrices()?.into_iter().zip(b.matrices()?).collect();
            let n = self.order();
            let work = n * n * (2 * n / 3 + 2 * b.order());
            let found = factor::each(&systems, work, |(a, b)| factor::solve(a, b))?;
            let found = found.into_iter().enumerate();
            let all: Result<Vec<Matrix>> = found.map(|(i, x)| x.ok_or_else(|| failed(i))).collect();
            Tensor::of_matrices(&all?, [b.shape()[b.rank() - 2], b.order()], b)?
        };
        x.with_gradient(&[self, b], move |inputs, x, dx| {
            let db = inputs[0].t().solved(op, dx)?;
            Ok(vec![Some(db.matmul(&x.t())?.neg()), Some(db)])
        })
    }

    /// The inverse of square matrices.
    ///
    /// Computed in `f64` by LU factors with partial pivoting and rounded once, on the host or by groups
    /// of threads: the error grows with the condition number.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Tensor::new([[0f32, 2.0], [1.0, 0.0]], &device)?;
    /// assert_eq!(a.inv()?.to_vec::<f32>()?, [0.0, 1.0, 0.5, 0.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When these are not square matrices, or one is singular.
    #[track_caller]
    pub fn inv(&self) -> Result<Tensor> {
        const OP: &str = "inv";
        let _here = composed();
        let inverse = || {
            self.check_matrices(OP, true)?;
            Ok(self.widest().inverse(OP)?.cast(self.floating().dtype()))
        };
        inverse().named(OP)
    }

    #[track_caller]
    pub(crate) fn inverse(&self, op: &'static str) -> Result<Tensor> {
        let eye = Tensor::eye(self.order(), self.dtype(), self.device());
        self.solved(op, &eye.expand(self.shape().clone())?)
    }

    /// Each determinant, its sign and the logarithm of its magnitude.
    #[track_caller]
    fn determinants(&self) -> Result<[Tensor; 3]> {
        let dims = Shape::from(&self.shape()[..self.rank() - 2]);
        if self.in_groups(self) && group::eliminates(self.order(), self.device().caps()) {
            let (sign, log) = group::Factors::of(self)?.determinants()?;
            let all = [sign.mul(log.exp())?, sign, log];
            return Ok(all.map(|x| x.cast(self.dtype()).reshape_unchecked(dims.clone())));
        }
        let of = |a: &Matrix| {
            let (lu, _, sign) = factor::lu(a);
            let pivots = (0..a.rows).map(|i| lu.at(i, i));
            pivots.fold((sign, 0.0), |(sign, log): (f64, f64), p| {
                let direction = if p == 0.0 { 0.0 } else { p.signum() };
                (sign * direction, log + p.abs().ln())
            })
        };
        let work = self.order() * self.order() * self.order() * 2 / 3;
        let found: Vec<(f64, f64)> = factor::each(&self.matrices()?, work, of)?;
        let column = |f: fn(&(f64, f64)) -> f64| {
            let all: Vec<f64> = found.iter().map(f).collect();
            Tensor::of_doubles(&all, dims.clone(), self)
        };
        Ok([column(|(s, l)| s * l.exp())?, column(|x| x.0)?, column(|x| x.1)?])
    }

    /// Determinants of square matrices.
    ///
    /// Computed in `f64` by LU factors with partial pivoting; the gradient needs the
    /// inverse, so a singular matrix has none.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(format!("{:.4}", a.det()?), "-2.0000");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When these are not square matrices.
    #[track_caller]
    pub fn det(&self) -> Result<Tensor> {
        const OP: &str = "det";
        let _here = composed();
        let det = || {
            self.check_matrices(OP, true)?;
            let x = self.widest();
            let [y, ..] = x.determinants()?;
            let y = y.with_gradient(&[&x], |inputs, y, dy| {
                let scale = dy.mul(y)?.unsqueeze(-1)?.unsqueeze(-1)?;
                Ok(vec![Some(inputs[0].inverse(OP)?.t().mul(&scale)?)])
            })?;
            Ok(y.cast(self.floating().dtype()))
        };
        det().named(OP)
    }

    /// Sign and natural logarithm of the magnitude of determinants, which may be too large or
    /// small themselves. A singular matrix has sign 0 and logarithm `-inf`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let (sign, log) = Tensor::new([[-1f32, 0.0], [0.0, 1.0]], &device)?.slogdet()?;
    /// assert_eq!((sign.item::<f32>()?, log.item::<f32>()?), (-1.0, 0.0));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When these are not square matrices.
    #[track_caller]
    pub fn slogdet(&self) -> Result<(Tensor, Tensor)> {
        const OP: &str = "slogdet";
        let _here = composed();
        let both = || {
            self.check_matrices(OP, true)?;
            let x = self.widest();
            let [_, sign, log] = x.determinants()?;
            let log = log.with_gradient(&[&x], |inputs, _, dy| {
                let scale = dy.unsqueeze(-1)?.unsqueeze(-1)?;
                Ok(vec![Some(inputs[0].inverse(OP)?.t().mul(&scale)?)])
            })?;
            let dtype = self.floating().dtype();
            Ok((sign.cast(dtype), log.cast(dtype)))
        };
        both().named(OP)
    }

    /// Natural logarithm of determinants: `-inf` where one is 0, NaN where it is negative.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[2f32, 0.0], [0.0, 0.5]], &device)?;
    /// assert_eq!(x.logdet()?.item::<f32>()?, 0.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When these are not square matrices.
    #[track_caller]
    pub fn logdet(&self) -> Result<Tensor> {
        let (sign, log) = self.slogdet().named("logdet")?;
        sign.lt(0.0)?.where_(log.like(f64::NAN), &log)
    }
}
