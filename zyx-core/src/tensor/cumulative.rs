//! Running combinations: products, extremes with their positions, log-sum-exp, any associative
//! function, affine recurrences; differences and integrals of samples.
//!
//! What is a monoid of the op table is one `Scan` of the graph, and so is a linear recurrence. Any
//! other function on tuples of tensors is combined in pairs, pairs of pairs, and so on (Blelloch 1990): work linear in the
//! length, depth logarithmic, every level an ordinary elementwise kernel, nothing that waits.

use super::{Axes, Tensor};
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::ops::BinaryOp;
use crate::origin::composed;
use crate::scalar::Scalar;
use crate::shape::Shape;

/// Highest order of differences.
const MAX_ORDER: usize = 1000;

impl Tensor {
    /// Cumulative product along an axis; integers are multiplied in 64 bits.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(x.cumprod(0)?.to_vec::<f32>()?, [1.0, -2.0, -6.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis is out of range.
    #[track_caller]
    pub fn cumprod(&self, axis: isize) -> Result<Tensor> {
        let axis = self.axis("cumprod", axis)?;
        let x = self.summable();
        let y = x.scan(BinaryOp::Mul, axis, false);
        if !x.dtype().is_float() {
            return Ok(y);
        }
        Ok(y.with_rule(&x, move |inputs, y, dy| Some(product_slopes(&inputs[0], y, dy, axis))))
    }

    /// Running maximum along an axis and its position as `i64`: of equal elements the latest. NaN
    /// stays once it was met.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 3.0, 2.0, 3.0], &device)?;
    /// let (values, at) = x.cummax(0)?;
    /// assert_eq!(values.to_vec::<f32>()?, [1.0, 3.0, 3.0, 3.0]);
    /// assert_eq!(at.to_vec::<i64>()?, [0, 1, 1, 3]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis is out of range.
    #[track_caller]
    pub fn cummax(&self, axis: isize) -> Result<(Tensor, Tensor)> {
        let axis = self.axis("cummax", axis)?;
        Ok(self.running_extreme(BinaryOp::Max, axis))
    }

    /// Running minimum along an axis and its position; see [`Tensor::cummax`].
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([2f32, 3.0, 1.0], &device)?;
    /// assert_eq!(x.cummin(0)?.0.to_vec::<f32>()?, [2.0, 2.0, 1.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis is out of range.
    #[track_caller]
    pub fn cummin(&self, axis: isize) -> Result<(Tensor, Tensor)> {
        let axis = self.axis("cummin", axis)?;
        Ok(self.running_extreme(BinaryOp::Min, axis))
    }

    #[track_caller]
    fn running_extreme(&self, op: BinaryOp, axis: usize) -> (Tensor, Tensor) {
        let best = self.scan(op, axis, false);
        let mut hit = self.combine(BinaryOp::Eq, &best);
        if self.dtype().is_float() {
            hit = hit.combine(BinaryOp::Or, &self.is_nan());
        }
        let mut dims = vec![1; self.rank()];
        dims[axis] = self.shape()[axis];
        let numbers = Tensor::positions(self.shape()[axis], self.device());
        let numbers = numbers.reshape_unchecked(dims.into()).broadcast_unchecked(self.shape());
        // The latest hit so far: positions only grow.
        let at = hit.select(&numbers, &numbers.like(0.0)).scan(BinaryOp::Max, axis, false);
        let at = at.cast(DType::I64);
        if !self.dtype().is_float() {
            return (best, at);
        }
        let places = at.clone();
        let values = best.with_rule(self, move |inputs, _, dy| {
            let none = inputs[0].like(0.0);
            Some(none.scatter_unchecked(axis, Some(BinaryOp::Add), &places, dy))
        });
        (values, at)
    }

    /// Running `log(sum(exp(x)))` along an axis, without overflow or underflow.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([-1000f32, 0.0, -1000.0], &device)?;
    /// assert_eq!(x.logcumsumexp(0)?.to_vec::<f32>()?, [-1000.0, 0.0, 0.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis is out of range.
    #[track_caller]
    pub fn logcumsumexp(&self, axis: isize) -> Result<Tensor> {
        let x = self.floating();
        let wide = x.cast(x.dtype().accumulator());
        Ok(running_log_sum(&wide, self.axis("logcumsumexp", axis)?).cast(x.dtype()))
    }

    /// Running combination of tuples of tensors along an axis by an associative function of two
    /// tuples, elementwise along that axis; from the end if `reverse`. The function is called with
    /// slices of any extent, and all tensors have one extent along the axis.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// // A sum that starts again where a flag is set.
    /// let x = Tensor::new([1f32, 2.0, 3.0, 4.0], &device)?;
    /// let flag = Tensor::new([1f32, 0.0, 1.0, 0.0], &device)?;
    /// let add = |x: &[Tensor], y: &[Tensor]| {
    ///     let kept = x[0].mul(1.0 - &y[1])?;
    ///     Ok(vec![kept.add(&y[0])?, x[1].maximum(&y[1])?])
    /// };
    /// let sums = Tensor::associative_scan(add, &[&x, &flag], 0, false)?;
    /// assert_eq!(sums[0].to_vec::<f32>()?, [1.0, 3.0, 3.0, 7.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is no tensor, extents differ, the function fails, or it gives other shapes or
    /// numbers of tensors.
    #[track_caller]
    pub fn associative_scan(
        combine: impl Fn(&[Tensor], &[Tensor]) -> Result<Vec<Tensor>>,
        tensors: &[&Tensor],
        axis: isize,
        reverse: bool,
    ) -> Result<Vec<Tensor>> {
        const OP: &str = "associative_scan";
        let _here = composed();
        let Some(first) = tensors.first() else {
            return Err(Tensor::argument_error(OP, "there is no tensor to scan".into()));
        };
        let position = first.axis(OP, axis)?;
        let extent = first.shape()[position];
        let mut all = Vec::new();
        for x in tensors {
            let own = x.axis(OP, axis)?;
            if x.shape()[own] != extent || own != position {
                let reason = format!("extents along axis {axis} must be equal");
                return Err(Tensor::shape_error(OP, tensors, reason));
            }
            all.push(if reverse { x.flip([own]).named(OP)? } else { (*x).clone() });
        }
        if !tensors.iter().all(|x| x.shape().is_possible()) || extent as u64 > 1 << 40 {
            let reason = "there are too many elements".to_owned();
            return Err(Tensor::shape_error(OP, tensors, reason));
        }
        let results = scan_pairs(&combine, all, position as isize).named(OP)?;
        results.iter().map(|y| if reverse { y.flip([position]) } else { Ok(y.clone()) }).collect()
    }

    /// `h[t] = a[t] * h[t - 1] + b[t]` along an axis with `h[-1] = 0` and `self` as `a`; from the
    /// end if `reverse`: the state of a linear state-space model. A state of zero stays zero by any
    /// factor, infinite ones too. The shapes broadcast.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Tensor::new([9f32, 2.0, 3.0], &device)?;
    /// let b = Tensor::new([1f32, 1.0, 1.0], &device)?;
    /// assert_eq!(a.linear_recurrence(&b, 0, false)?.to_vec::<f32>()?, [1.0, 3.0, 10.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes do not broadcast or the axis is out of range.
    #[track_caller]
    pub fn linear_recurrence(&self, b: &Tensor, axis: isize, reverse: bool) -> Result<Tensor> {
        const OP: &str = "linear_recurrence";
        let (a, b) = Tensor::unify(OP, self, b, BinaryOp::Sub.domain())?;
        let axis = b.axis(OP, axis)?;
        let dtype = a.dtype();
        let (a, b) = (a.cast(dtype.accumulator()), b.cast(dtype.accumulator()));
        Ok(b.recurrence(&a, axis, reverse).cast(dtype))
    }

    /// Running combination by a monoid of the op table along an axis: inclusive, or `exclusive`
    /// of the element itself (then the first is the neutral element); from the end if `reverse`.
    ///
    /// ```
    /// # use zyx::internals::BinaryOp;
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1i64, 2, 3], &device)?;
    /// let y = x.scan_with(BinaryOp::Add, 0, true, true)?;
    /// assert_eq!(y.to_vec::<i64>()?, [5, 3, 0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the op is not associative or not defined on the dtype, or the axis is out of range.
    #[track_caller]
    pub fn scan_with(
        &self,
        op: BinaryOp,
        axis: isize,
        reverse: bool,
        exclusive: bool,
    ) -> Result<Tensor> {
        const OP: &str = "scan_with";
        let axis = self.axis(OP, axis)?;
        let Some(neutral) =
            op.identity(self.dtype()).filter(|_| op.domain().contains(self.dtype()))
        else {
            let reason = format!("{op} is no monoid on {}", self.dtype());
            return Err(Tensor::dtype_error(OP, &[self], reason));
        };
        let turned = if reverse { self.flip([axis])? } else { self.clone() };
        let y = match op {
            BinaryOp::Mul if self.dtype().is_float() => turned.cumprod(axis as isize).named(OP)?,
            BinaryOp::Max => turned.running_extreme(op, axis).0,
            BinaryOp::LogAddExp => running_log_sum(&turned, axis),
            BinaryOp::Min => turned.running_extreme(op, axis).0,
            _ => turned.scan(op, axis, false),
        };
        let y = if exclusive && self.shape()[axis] > 0 {
            let mut padding = vec![(0, 0); self.rank()];
            padding[axis] = (1, 0);
            let kept = y.slice(axis as isize, ..self.shape()[axis] - 1).named(OP)?;
            let moved = kept.pad(&padding).named(OP)?;
            let inside = kept.constant(Scalar::from(true)).pad(&padding).named(OP)?;
            inside.select(&moved, &moved.constant(neutral))
        } else {
            y
        };
        if reverse { y.flip([axis]) } else { Ok(y) }
    }

    /// Differences of neighbours along an axis, `n` times over.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 4.0, 9.0], &device)?;
    /// assert_eq!(x.diff(1, 0)?.to_vec::<f32>()?, [3.0, 5.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis is out of range or `n` above 1000.
    #[track_caller]
    pub fn diff(&self, n: usize, axis: isize) -> Result<Tensor> {
        let axis = self.axis("diff", axis)?;
        if n >= self.shape()[axis] {
            return self.slice(axis as isize, ..0).named("diff");
        }
        if n > MAX_ORDER {
            let reason = format!("differences of order {n} are not supported");
            return Err(Tensor::argument_error("diff", reason));
        }
        self.in_steps("diff", [], |x, []| x.differences(n, axis))
    }

    /// Differences of order `n` along an axis of more elements.
    #[track_caller]
    fn differences(&self, n: usize, axis: usize) -> Result<Tensor> {
        let mut x = self.clone();
        for _ in 0..n {
            let extent = x.shape()[axis];
            let (low, high) = (x.slice(axis as isize, ..extent - 1)?, x.slice(axis as isize, 1..)?);
            x = match x.dtype() {
                DType::Bool => high.combine(BinaryOp::Xor, &low),
                _ => high.combine(BinaryOp::Sub, &low),
            };
        }
        Ok(x)
    }

    /// The integral along an axis of samples `dx` apart by the trapezoidal rule.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let y = Tensor::new([1f32, 3.0, 5.0], &device)?;
    /// assert_eq!(y.trapezoid(0.5, 0)?.item::<f32>()?, 3.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis is out of range.
    #[track_caller]
    pub fn trapezoid(&self, dx: f64, axis: isize) -> Result<Tensor> {
        let position = self.axis("trapezoid", axis)?;
        self.in_steps("trapezoid", [], |x, []| x.means_of_neighbours(dx, position)?.sum(axis))
    }

    /// The integral from the first sample to each further one; see [`Tensor::trapezoid`].
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let y = Tensor::new([1f32, 3.0, 5.0], &device)?;
    /// assert_eq!(y.cumulative_trapezoid(1.0, 0)?.to_vec::<f32>()?, [2.0, 6.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis is out of range.
    #[track_caller]
    pub fn cumulative_trapezoid(&self, dx: f64, axis: isize) -> Result<Tensor> {
        let position = self.axis("cumulative_trapezoid", axis)?;
        self.in_steps("cumulative_trapezoid", [], |x, []| {
            x.means_of_neighbours(dx, position)?.cumsum(axis)
        })
    }

    #[track_caller]
    fn means_of_neighbours(&self, dx: f64, axis: usize) -> Result<Tensor> {
        let x = self.floating();
        let extent = x.shape()[axis];
        let low = x.slice(axis as isize, ..extent.saturating_sub(1))?;
        let high = x.slice(axis as isize, extent.min(1)..)?;
        let sum = low.combine(BinaryOp::Add, &high);
        Ok(sum.combine(BinaryOp::Mul, &sum.argument(Scalar::from_f64(sum.dtype(), 0.5 * dx))))
    }

    /// Largest element along axes; the same as [`Tensor::max`], and all of several largest share
    /// the gradient.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 4.0], [3.0, 2.0]], &device)?;
    /// assert_eq!(x.amax(0)?.to_vec::<f32>()?, [3.0, 4.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range or repeated.
    #[track_caller]
    pub fn amax(&self, axes: impl Axes) -> Result<Tensor> {
        self.max(axes).named("amax")
    }

    /// Smallest element along axes; see [`Tensor::amax`].
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 4.0], [3.0, 2.0]], &device)?;
    /// assert_eq!(x.amin(0)?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range or repeated.
    #[track_caller]
    pub fn amin(&self, axes: impl Axes) -> Result<Tensor> {
        self.min(axes).named("amin")
    }

    /// Smallest and largest element along an axis.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 4.0, 2.0], &device)?;
    /// let (low, high) = x.aminmax(0)?;
    /// assert_eq!((low.item::<f32>()?, high.item::<f32>()?), (1.0, 4.0));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis is out of range.
    #[track_caller]
    pub fn aminmax(&self, axis: isize) -> Result<(Tensor, Tensor)> {
        Ok((self.min(axis).named("aminmax")?, self.max(axis).named("aminmax")?))
    }
}

/// One level: neighbours combined, the odd positions scanned, the even ones from those before.
#[track_caller]
fn scan_pairs(
    combine: &impl Fn(&[Tensor], &[Tensor]) -> Result<Vec<Tensor>>,
    all: Vec<Tensor>,
    axis: isize,
) -> Result<Vec<Tensor>> {
    let _here = composed();
    let n = all[0].shape()[axis as usize];
    if n < 2 {
        return Ok(all);
    }
    let every_other = |start: usize, count: usize| -> Result<Vec<Tensor>> {
        all.iter().map(|x| x.stride(axis, start, 2)?.slice(axis, ..count)).collect()
    };
    let checked = |given: Vec<Tensor>, like: &[Tensor]| {
        let fits = given.len() == like.len()
            && given.iter().zip(like).all(|(a, b)| {
                a.shape().same(b.shape()) && a.dtype() == b.dtype() && a.device() == b.device()
            });
        let reason = "the function must keep number, shapes and dtypes of the tensors".to_owned();
        if fits { Ok(given) } else { Err(Tensor::argument_error("associative_scan", reason)) }
    };
    let (even, odd) = (every_other(0, n / 2)?, every_other(1, n / 2)?);
    let pairs = checked(combine(&even, &odd)?, &even)?;
    // Stored, so that each level costs its own elements and not those of the levels below.
    let pairs = pairs.iter().map(Tensor::contiguous).collect();
    let odd = scan_pairs(combine, pairs, axis)?;
    let rest = n.div_ceil(2) - 1;
    let before: Vec<Tensor> = odd.iter().map(|x| x.slice(axis, ..rest)).collect::<Result<_>>()?;
    let own: Vec<Tensor> = every_other(2.min(n), rest)?;
    let later = if rest > 0 { checked(combine(&before, &own)?, &own)? } else { own };
    let joined = all.iter().zip(odd.iter().zip(&later)).map(|(x, (odd, later))| {
        let even = Tensor::cat(&[&x.slice(axis, ..1)?, later], axis)?;
        interleave(&even, odd, axis).map(|y| y.contiguous())
    });
    joined.collect()
}

/// `even[0], odd[0], even[1], …` along an axis; the last may be an even one.
#[track_caller]
fn interleave(even: &Tensor, odd: &Tensor, axis: isize) -> Result<Tensor> {
    let (n, m) = (even.shape()[axis as usize], odd.shape()[axis as usize]);
    let mut padding = vec![(0, 0); odd.rank()];
    padding[axis as usize] = (0, n - m);
    let pairs = Tensor::stack(&[even, &odd.pad(padding)?], axis + 1)?;
    let mut dims = even.shape().to_vec();
    dims[axis as usize] = 2 * n;
    pairs.reshape_unchecked(Shape::from(dims)).slice(axis, ..n + m)
}

#[track_caller]
fn running_log_sum(x: &Tensor, axis: usize) -> Tensor {
    let y = x.scan(BinaryOp::LogAddExp, axis, false);
    y.with_rule(x, move |inputs, _, dy| Some(log_sum_slopes(&inputs[0], dy, axis)))
}

/// The cotangent of `x` for its running log-sum-exp `y`: element `j` is the sum of `dy[i] exp(x[j] - y[i])` over
/// all `i >= j`. The running maximum `m` and the running sum `s` of `exp(x - m)` replace `y = m + ln(s)`, since
/// the rounding of `y` loses `ln(s)` where `m` is large. Element `j` is computed as `exp(x[j] - m[j]) / s[j] r[j]`
/// with `r[j] = dy[j] + (exp(m[j] - m[j + 1]) s[j] / s[j + 1]) r[j + 1]`. The factors of `r` are at most 1, and
/// the result is linear in `dy`, as derivatives by `dy` need it. It is 0 where `x` is `-inf`, NaN where it is `inf`.
#[track_caller]
fn log_sum_slopes(x: &Tensor, dy: &Tensor, axis: usize) -> Tensor {
    let (n, dtype) = (x.shape()[axis], x.dtype());
    if n == 0 {
        return dy.clone();
    }
    let [x, dy] = [x, dy].map(|t| t.cast(dtype.accumulator()));
    // The sum beside the maximum does not depend on which number that is: no gradient goes through it.
    let top = x.detach_lazily().scan(BinaryOp::Max, axis, false);
    let (own, next) = (part(&top, axis, 0..n - 1), part(&top, axis, 1..n));
    // Infinities follow one another without end: their difference is none.
    let alike = own.combine(BinaryOp::Eq, &next);
    let gap = alike.select(&own.like(0.0), &own.combine(BinaryOp::Sub, &next)).exp();
    let nothing = top.combine(BinaryOp::Eq, &top.like(f64::NEG_INFINITY));
    let shift = nothing.select(&top.like(0.0), &top);
    let own = x.combine(BinaryOp::Sub, &shift).exp();
    let aside = |x: &Tensor, padding: (usize, usize)| {
        let mut all = vec![(0, 0); x.rank()];
        all[axis] = padding;
        x.pad_unchecked(&all, dy.shape().clone())
    };
    let endless = x.combine(BinaryOp::Eq, &x.like(f64::INFINITY));
    let counted = endless.select(&x.like(1.0), &own);
    let sum = counted.recurrence(&aside(&gap, (1, 0)), axis, false);
    let sum = nothing.select(&sum.like(1.0), &sum);
    let kept = part(&sum, axis, 0..n - 1).combine(BinaryOp::Div, &part(&sum, axis, 1..n));
    let kept = gap.combine(BinaryOp::Mul, &kept);
    let rest = dy.recurrence(&aside(&kept, (0, 1)), axis, true);
    own.combine(BinaryOp::Div, &sum).combine(BinaryOp::Mul, &rest).cast(dtype)
}

/// The cotangent of `x` for its running products `y`: the product of what comes before an element
/// times `r[j] = dy[j] + x[j + 1] r[j + 1]`. There is no division, so zeros are elements like others
/// in derivatives of any order.
#[track_caller]
fn product_slopes(x: &Tensor, y: &Tensor, dy: &Tensor, axis: usize) -> Tensor {
    let (n, dtype) = (y.shape()[axis], y.dtype());
    if n == 0 {
        return dy.clone();
    }
    let [x, y, dy] = [x, y, dy].map(|t| t.cast(dtype.accumulator()));
    let mut ahead = vec![(0, 0); y.rank()];
    ahead[axis] = (1, 0);
    let before = part(&y, axis, 0..n - 1).pad_with(&ahead, 1.0);
    let before = before.expect("invariant: a row as long as before");
    let rest = dy.recurrence(&x.beside(axis, true), axis, true);
    // Behind a zero there is nothing, however large the products of what follows.
    let zero = before.combine(BinaryOp::Eq, &before.like(0.0));
    let counts = zero.select(&rest.is_finite(), &zero.constant(Scalar::from(true)));
    let rest = counts.select(&rest, &rest.like(0.0));
    before.combine(BinaryOp::Mul, &rest).cast(dtype)
}

/// Some positions of an axis.
#[track_caller]
fn part(x: &Tensor, axis: usize, range: std::ops::Range<usize>) -> Tensor {
    let mut kept: Vec<(usize, usize)> = x.shape().iter().map(|&d| (0, d)).collect();
    kept[axis] = (range.start, range.end);
    x.shrink_unchecked(&kept)
}
