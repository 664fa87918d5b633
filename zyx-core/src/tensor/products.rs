//! Products of vectors and matrices other than [`Tensor::matmul`], most of them sums of
//! broadcast products that scheduling recognises as contractions.

use super::Tensor;
use super::axes::normalize;
use super::widened::Rounded;
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::ops::BinaryOp;
use crate::origin::composed;
use crate::shape::Shape;

impl Tensor {
    /// Sum of products over given axes of both, paired in order: the result has the other axes of
    /// `self`, then those of `other`.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Tensor::ones([2, 3, 4], DType::F32, &device);
    /// let b = Tensor::ones([4, 3, 5], DType::F32, &device);
    /// let c = a.tensordot(&b, &[1, 2], &[1, 0])?;
    /// assert_eq!(c.shape().dims(), [2, 5]);
    /// assert_eq!(c.to_vec::<f32>()?, [12.0; 10]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the lists differ in length, an axis is out of range or repeated, extents of a pair
    /// differ, or the product has more than 16 axes.
    #[track_caller]
    pub fn tensordot(
        &self,
        other: &Tensor,
        axes: &[isize],
        other_axes: &[isize],
    ) -> Result<Tensor> {
        self.contracted(other, axes, other_axes).named("tensordot")
    }

    #[track_caller]
    fn contracted(&self, other: &Tensor, axes: &[isize], others: &[isize]) -> Result<Tensor> {
        const OP: &str = "tensordot";
        Tensor::check_operands(OP, &[self, other])?;
        let fail = |reason: String| Tensor::shape_error(OP, &[self, other], reason);
        let places = |t: &Tensor, axes: &[isize]| {
            let places: Result<Vec<usize>, String> =
                axes.iter().map(|&axis| normalize(axis, t.rank())).collect();
            let places = places.map_err(fail)?;
            let repeated = (1..places.len()).any(|i| places[..i].contains(&places[i]));
            if repeated { Err(fail(format!("{axes:?} names an axis twice"))) } else { Ok(places) }
        };
        let (p, q) = (places(self, axes)?, places(other, others)?);
        let equal = p.iter().zip(&q).all(|(&a, &b)| self.shape()[a] == other.shape()[b]);
        if p.len() != q.len() || !equal {
            return Err(fail(format!("axes {axes:?} and {others:?} do not pair up")));
        }
        let rest = |t: &Tensor, gone: &[usize]| -> Vec<usize> {
            (0..t.rank()).filter(|axis| !gone.contains(axis)).collect()
        };
        let (a, b) = (rest(self, &p), rest(other, &q));
        let (m, n, k) = (a.len(), b.len(), p.len());
        let extents = |t: &Tensor, axes: &[usize]| -> Vec<usize> {
            axes.iter().map(|&axis| t.shape()[axis]).collect()
        };
        let (rows, columns, inner) = (extents(self, &a), extents(other, &b), extents(self, &p));
        let full = Shape::from([&rows[..], &columns, &inner].concat());
        if !full.is_possible() {
            return Err(fail(format!("a product of extents {full} is too large")));
        }
        let dtype = self.dtype().promote(other.dtype());
        let dtype = if dtype == DType::Bool { DType::I64 } else { dtype };
        let wide = dtype.product_accumulator();
        let x = self.cast(dtype).cast(wide).permute_unchecked(&[a, p].concat());
        let x = x.reshape([&rows[..], &vec![1; n], &inner].concat())?;
        let y = other.cast(dtype).cast(wide).permute_unchecked(&[b, q].concat());
        let y = y.reshape([&vec![1; m], &columns[..], &inner].concat())?;
        let product = x.expand(full.clone())?.combine(BinaryOp::Mul, &y.expand(full)?);
        let mask = (m + n..m + n + k).fold(0, |mask, axis| mask | 1 << axis);
        Ok(product.reduce(BinaryOp::Add, mask).without(mask).cast(dtype))
    }

    /// Every product of an element of one vector and one of another: `[n, m]`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let (x, y) = (Tensor::new([1f32, 2.0], &device)?, Tensor::new([3f32, 4.0], &device)?);
    /// assert_eq!(x.outer(&y)?.to_vec::<f32>()?, [3.0, 4.0, 6.0, 8.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the operands are not vectors.
    #[track_caller]
    pub fn outer(&self, other: &Tensor) -> Result<Tensor> {
        self.check_ranks("outer", other, 1, 1)?;
        let column = self.unsqueeze(1).named("outer")?;
        column.mul(other).named("outer")
    }

    /// Refuses operands of other ranks.
    #[track_caller]
    fn check_ranks(&self, op: &'static str, other: &Tensor, a: usize, b: usize) -> Result<()> {
        if self.rank() == a && other.rank() == b {
            return Ok(());
        }
        let reason = format!("needs operands of {a} and {b} axes");
        Err(Tensor::shape_error(op, &[self, other], reason))
    }

    /// Sum of products over the last axes; the product of all elements with a scalar operand.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// let y = Tensor::new([1f32, 10.0], &device)?;
    /// assert_eq!(x.inner(&y)?.to_vec::<f32>()?, [21.0, 43.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the last extents differ.
    #[track_caller]
    pub fn inner(&self, other: &Tensor) -> Result<Tensor> {
        if self.rank() == 0 || other.rank() == 0 {
            return self.contracted(other, &[], &[]).named("inner");
        }
        self.contracted(other, &[-1], &[-1]).named("inner")
    }

    /// Kronecker's product: every element of `self` times all of `other`, as blocks. The operand
    /// with fewer axes gets leading ones.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let (x, y) = (Tensor::new([1f32, 10.0], &device)?, Tensor::new([1f32, 2.0], &device)?);
    /// assert_eq!(x.kron(&y)?.to_vec::<f32>()?, [1.0, 2.0, 10.0, 20.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there are more than 8 axes, or the result is too large.
    #[track_caller]
    pub fn kron(&self, other: &Tensor) -> Result<Tensor> {
        const OP: &str = "kron";
        let _here = composed();
        let blocks = || {
            Tensor::check_operands(OP, &[self, other])?;
            let rank = self.rank().max(other.rank());
            let dims = |t: &Tensor| [&vec![1; rank - t.rank()], t.shape().dims()].concat();
            let (a, b) = (dims(self), dims(other));
            let result: Shape = a.iter().zip(&b).map(|(&m, &n)| m.saturating_mul(n)).collect();
            if 2 * rank > Shape::MAX_RANK || !result.is_possible() {
                let reason = "the result has too many axes or elements".to_owned();
                return Err(Tensor::shape_error(OP, &[self, other], reason));
            }
            let x = self.reshape(a.iter().flat_map(|&n| [n, 1]).collect::<Vec<_>>())?;
            let y = other.reshape(b.iter().flat_map(|&n| [1, n]).collect::<Vec<_>>())?;
            x.mul(&y)?.reshape(result)
        };
        blocks().named(OP)
    }

    /// The vector product of vectors of three elements along an axis; shapes broadcast.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let (x, y) = (Tensor::new([1f32, 0.0, 0.0], &device)?, Tensor::new([0f32, 1.0, 0.0], &device)?);
    /// assert_eq!(x.cross(&y, 0)?.to_vec::<f32>()?, [0.0, 0.0, 1.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the extents are not three, or the shapes do not broadcast.
    #[track_caller]
    pub fn cross(&self, other: &Tensor, axis: isize) -> Result<Tensor> {
        const OP: &str = "cross";
        self.in_steps(OP, [other], |x, [y]| {
            let (x, y) = Tensor::unify(OP, x, &y, BinaryOp::Mul.domain())?;
            let place = x.axis(OP, axis)?;
            if x.shape()[place] != 3 {
                let reason = format!("axis {axis} must have three elements");
                return Err(Tensor::shape_error(OP, &[self, other], reason));
            }
            let part = |t: &Tensor, i: usize| t.slice(place as isize, i..i + 1);
            let turned = |t: &Tensor, by: usize| {
                let parts = [part(t, by % 3)?, part(t, (by + 1) % 3)?, part(t, (by + 2) % 3)?];
                Tensor::cat(&[&parts[0], &parts[1], &parts[2]], place as isize)
            };
            turned(&x, 1)?.mul(turned(&y, 2)?)?.sub(turned(&x, 2)?.mul(turned(&y, 1)?)?)
        })
    }

    /// Matrix products of batches: `[b, n, k]` times `[b, k, m]`, without broadcasting.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[[1f32, 2.0]], [[3.0, 4.0]]], &device)?;
    /// assert_eq!(x.bmm(&x.t())?.to_vec::<f32>()?, [5.0, 25.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the operands do not have three axes, or batches or inner extents differ.
    #[track_caller]
    pub fn bmm(&self, other: &Tensor) -> Result<Tensor> {
        self.check_ranks("bmm", other, 3, 3)?;
        if self.shape()[0] != other.shape()[0] {
            let reason = "the operands have different batches".to_owned();
            return Err(Tensor::shape_error("bmm", &[self, other], reason));
        }
        self.matmul(other).named("bmm")
    }

    /// A matrix `[n, k]` times a vector `[k]`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(a.mv(&Tensor::new([1f32, 10.0], &device)?)?.to_vec::<f32>()?, [21.0, 43.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the operands are not a matrix and a vector that fit.
    #[track_caller]
    pub fn mv(&self, vector: &Tensor) -> Result<Tensor> {
        self.check_ranks("mv", vector, 2, 1)?;
        self.matmul(vector).named("mv")
    }

    /// `beta self + alpha a b` of matrices `a` and `b`; `self` broadcasts. With `beta` 0, `self` is not read, with `alpha`
    /// 0 neither `a` nor `b`: their NaN do not come through. Halves are computed in `f32` and rounded once.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// let bias = Tensor::new([1f32, -1.0], &device)?;
    /// let unit = Tensor::eye(2, zyx::DType::F32, &device);
    /// assert_eq!(bias.addmm(&a, &unit, 1.0, 2.0)?.to_vec::<f32>()?, [3.0, 3.0, 7.0, 7.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `a` and `b` are not matrices that fit, or `self` does not broadcast to their product.
    #[track_caller]
    pub fn addmm(&self, a: &Tensor, b: &Tensor, beta: f64, alpha: f64) -> Result<Tensor> {
        a.check_ranks("addmm", b, 2, 2)?;
        self.blended("addmm", a, b, beta, alpha)
    }

    /// `beta self + alpha a b` of batches of matrices `[b, n, k]` and `[b, k, m]`; see
    /// [`Tensor::addmm`].
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Tensor::new([[[1f32, 2.0]], [[3.0, 4.0]]], &device)?;
    /// let one = Tensor::new([1f32], &device)?;
    /// assert_eq!(one.baddbmm(&a, &a.t(), 1.0, 2.0)?.to_vec::<f32>()?, [11.0, 51.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::bmm`], and when `self` does not broadcast to the product.
    #[track_caller]
    pub fn baddbmm(&self, a: &Tensor, b: &Tensor, beta: f64, alpha: f64) -> Result<Tensor> {
        a.check_ranks("baddbmm", b, 3, 3)?;
        if a.shape()[0] != b.shape()[0] {
            let reason = "the operands have different batches".to_owned();
            return Err(Tensor::shape_error("baddbmm", &[a, b], reason));
        }
        self.blended("baddbmm", a, b, beta, alpha)
    }

    /// `beta self + alpha a b`. An operand whose factor is 0 is not computed with.
    #[track_caller]
    fn blended(
        &self,
        op: &'static str,
        a: &Tensor,
        b: &Tensor,
        beta: f64,
        alpha: f64,
    ) -> Result<Tensor> {
        self.in_steps(op, [a, b], |base, [a, b]| {
            let scaled = |t: Tensor, by: f64| {
                // An integer factor keeps integers what they are.
                let whole = by.fract() == 0.0 && by.abs() < 2f64.powi(53);
                match by {
                    1.0 => Ok(t),
                    _ if whole => t.mul(by as i64),
                    _ => t.mul(by),
                }
            };
            let product = a.matmul(&b)?;
            let product = if alpha == 0.0 { product.like(0.0) } else { scaled(product, alpha)? };
            let base = base.expand(product.shape().clone())?;
            if beta == 0.0 {
                return Ok(product.cast(product.dtype().promote(base.dtype())));
            }
            scaled(base, beta)?.add(&product)
        })
    }

    /// The product of matrices in the order of least work; the first may be a vector (a row), the
    /// last too (a column).
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// let x = Tensor::new([1f32, 1.0], &device)?;
    /// assert_eq!(Tensor::multi_dot(&[&x, &a, &x])?.item::<f32>()?, 10.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there are fewer than two operands, one is not a matrix, or inner extents differ.
    #[track_caller]
    pub fn multi_dot(operands: &[&Tensor]) -> Result<Tensor> {
        const OP: &str = "multi_dot";
        let _here = composed();
        let n = operands.len();
        let is_matrix = |(i, t): (usize, &&Tensor)| match t.rank() {
            1 => i == 0 || i + 1 == n,
            rank => rank == 2,
        };
        if !(2..=MOST_FACTORS).contains(&n) || !operands.iter().enumerate().all(is_matrix) {
            let reason = "needs at least two operands, matrices except for a vector at an end";
            return Err(Tensor::shape_error(OP, operands, reason.to_owned()));
        }
        let product = || {
            Tensor::check_operands(OP, operands)?;
            let dtype = operands.iter().fold(operands[0].dtype(), |d, t| d.promote(t.dtype()));
            let mut factors: Vec<Tensor> = operands.iter().map(|t| t.widened()).collect();
            let row = factors[0].rank() == 1;
            let column = factors[n - 1].rank() == 1;
            if row {
                factors[0] = factors[0].unsqueeze(0)?;
            }
            if column {
                factors[n - 1] = factors[n - 1].unsqueeze(1)?;
            }
            let mut extents: Vec<usize> = factors.iter().map(|t| t.shape()[0]).collect();
            extents.push(factors[n - 1].shape()[1]);
            let splits = chain_order(&extents);
            let mut y = chained(&factors, &splits, 0, n - 1)?;
            if column {
                y = y.squeeze(1)?;
            }
            Ok(if row { y.squeeze(0)? } else { y }.rounded(dtype))
        };
        product().named(OP)
    }

    /// Sum of products of vectors along an axis; shapes broadcast.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(x.vecdot(&x, 1)?.to_vec::<f32>()?, [5.0, 25.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not broadcast or the axis is out of range.
    #[track_caller]
    pub fn vecdot(&self, other: &Tensor, axis: isize) -> Result<Tensor> {
        const OP: &str = "vecdot";
        let _here = composed();
        let product = || {
            Tensor::check_operands(OP, &[self, other])?;
            let dtype = self.dtype().promote(other.dtype());
            let dtype = if dtype == DType::Bool { DType::I64 } else { dtype };
            let wide = dtype.product_accumulator();
            let product = self.cast(dtype).cast(wide).mul(other.cast(dtype).cast(wide))?;
            let mask = 1 << product.axis(OP, axis)?;
            Ok(product.reduce(BinaryOp::Add, mask).without(mask).cast(dtype))
        };
        product().named(OP)
    }
}

/// Most factors of [`Tensor::multi_dot`]: the order takes time cubic in their number.
const MOST_FACTORS: usize = 512;

/// For each range of factors, where the cheapest order cuts it (Godbole 1973): factor `i` is
/// `extents[i]` by `extents[i + 1]`.
fn chain_order(extents: &[usize]) -> Vec<Vec<usize>> {
    let n = extents.len() - 1;
    let mut cost = vec![vec![0f64; n]; n];
    let mut cut = vec![vec![0; n]; n];
    for length in 2..=n {
        for i in 0..=n - length {
            let j = i + length - 1;
            cost[i][j] = f64::INFINITY;
            for k in i..j {
                let pair = extents[i] as f64 * extents[k + 1] as f64 * extents[j + 1] as f64;
                let whole = cost[i][k] + cost[k + 1][j] + pair;
                if whole < cost[i][j] || k == i {
                    (cost[i][j], cut[i][j]) = (whole, k);
                }
            }
        }
    }
    cut
}

#[track_caller]
fn chained(factors: &[Tensor], cut: &[Vec<usize>], i: usize, j: usize) -> Result<Tensor> {
    if i == j {
        return Ok(factors[i].clone());
    }
    let k = cut[i][j];
    chained(factors, cut, i, k)?.matmul(&chained(factors, cut, k + 1, j)?)
}
