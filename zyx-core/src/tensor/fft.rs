//! Fourier transforms of any length. Complex numbers are a last axis of two, real part first.
//!
//! A transform of few elements without large prime factors is one kernel that does all stages of it
//! ([`Op::Fourier`]). A longer one is split into two (Cooley and Tukey 1965), a factor of the length
//! with large primes is a product with a matrix of roots of unity or, if it is large, a convolution of a
//! length that is a power of two (Bluestein 1970). Transforms of real numbers take half the work.
//! Gradients are transforms again. Roots of unity are computed from integers reduced to an eighth of a
//! turn exactly, so that they are good to an ulp: the error of a transform of `n` elements grows as its
//! number of stages, not as `n`. Halves are computed in `f32`.

use super::{Axes, Tensor};
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::graph::Op;
use crate::graph::fourier::{self, Form};
use crate::lru::Lru;
use crate::origin::composed;
use crate::runtime::Device;
use crate::schedule::strategies::fourier::longest;
use crate::shape::Shape;
use std::cell::RefCell;
use std::rc::Rc;

/// How a transform is scaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FftNorm {
    /// The inverse is divided by the length.
    #[default]
    Backward,
    /// Both are divided by its root.
    Ortho,
    /// The forward transform is divided by the length.
    Forward,
}

impl FftNorm {
    fn scale(self, n: usize, inverse: bool) -> f64 {
        match (self, inverse) {
            (FftNorm::Ortho, _) => 1.0 / (n as f64).sqrt(),
            (FftNorm::Backward, true) | (FftNorm::Forward, false) => 1.0 / n as f64,
            _ => 1.0,
        }
    }
}

/// Longest transform without small prime factors that is a product.
const DIRECT: usize = 64;

/// Longest transform: squares of positions must fit into `i64`.
pub(super) const LONGEST: usize = 1 << 30;

impl Tensor {
    /// The discrete Fourier transform of complex `[.., n, .., 2]` along an axis, which is counted
    /// without the last: `y[k] = sum x[j] exp(-2 pi i j k / n)`. With `n` the axis is cut or padded
    /// with zeros to that length before.
    ///
    /// ```
    /// # use zyx::{FftNorm, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 0.0], [0.0, 0.0], [0.0, 0.0]], &device)?;
    /// let y = x.fft(None, -1, FftNorm::Backward)?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the last axis is not of two elements, the axis is out of range, or the length is 0 or
    /// too large.
    #[track_caller]
    pub fn fft(&self, n: Option<usize>, axis: isize, norm: FftNorm) -> Result<Tensor> {
        self.transformed("fft", n, axis, norm, false).named("fft")
    }

    /// The inverse of [`Tensor::fft`].
    ///
    /// ```
    /// # use zyx::{FftNorm, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[4f32, 0.0], [0.0, 0.0]], &device)?;
    /// let y = x.ifft(None, -1, FftNorm::Backward)?;
    /// assert_eq!(y.to_vec::<f32>()?, [2.0, 0.0, 2.0, 0.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::fft`].
    #[track_caller]
    pub fn ifft(&self, n: Option<usize>, axis: isize, norm: FftNorm) -> Result<Tensor> {
        self.transformed("ifft", n, axis, norm, true).named("ifft")
    }

    /// The transform of real numbers along an axis: the first `n / 2 + 1` elements of the complex
    /// one, the others being their conjugates; a last axis of two is added.
    ///
    /// ```
    /// # use zyx::{FftNorm, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 2.0, 3.0, 4.0], &device)?;
    /// let y = x.rfft(None, -1, FftNorm::Backward)?;
    /// assert_eq!(format!("{y:.1}"), "[[10.  0.]\n [-2.  2.]\n [-2.  0.]]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis is out of range, or the length is 0 or too large.
    #[track_caller]
    pub fn rfft(&self, n: Option<usize>, axis: isize, norm: FftNorm) -> Result<Tensor> {
        const OP: &str = "rfft";
        let _here = composed();
        let transformed = || {
            Tensor::check_operands(OP, &[self])?;
            let axis = self.axis(OP, axis)?;
            let n = n.unwrap_or(self.shape()[axis]);
            self.check_length(OP, n)?;
            self.check_work(OP, axis, n)?;
            let x = self.wide().resized_axis(axis, n)?;
            let y = x.around(axis, 1)?.real_dft(norm.scale(n, false))?;
            let mut dims = x.shape().to_vec();
            dims[axis] = n / 2 + 1;
            dims.push(2);
            Ok(y.reshape(dims)?.cast(self.floating().dtype()))
        };
        transformed().named(OP)
    }

    /// The inverse of [`Tensor::rfft`]: `n` real numbers (by default `2 (m - 1)` of `m` elements).
    /// Imaginary parts that the transform of real numbers cannot have are ignored.
    ///
    /// ```
    /// # use zyx::{FftNorm, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[10f32, 0.0], [-2.0, 2.0], [-2.0, 0.0]], &device)?;
    /// let y = x.irfft(None, -1, FftNorm::Backward)?;
    /// assert_eq!(format!("{y:.1}"), "[1. 2. 3. 4.]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::fft`].
    #[track_caller]
    pub fn irfft(&self, n: Option<usize>, axis: isize, norm: FftNorm) -> Result<Tensor> {
        const OP: &str = "irfft";
        let _here = composed();
        let transformed = || {
            let place = self.check_complex(OP, axis)?;
            let n = n.unwrap_or(2 * self.shape()[place].saturating_sub(1));
            self.check_length(OP, n)?;
            self.check_work(OP, place, n)?;
            let half = self.wide().resized_axis(place, n / 2 + 1)?;
            let y = half.around(place, 2)?.real_inverse(n, norm.scale(n, true))?;
            let mut dims = half.shape()[..half.rank() - 1].to_vec();
            dims[place] = n;
            Ok(y.reshape(dims)?.cast(self.floating().dtype()))
        };
        transformed().named(OP)
    }

    /// The first half of the transform of real `[before, n, after, 1]`, times a factor.
    ///
    /// An even number of them are half as many complex ones, whose transform is that of the even
    /// ones plus `i` times that of the odd ones (Sorensen et al. 1987): those are its parts that are and
    /// are not their own conjugates in reverse order.
    /// The gradient is [`Tensor::real_inverse`] of half of all frequencies but the first and the last.
    #[track_caller]
    fn real_dft(&self, scale: f64) -> Result<Tensor> {
        let n = self.shape()[1];
        self.computed_real_dft(scale)?.with_gradient(&[self], move |_, _, dy| {
            let dx = dy.mul(single(dy, n, 0.5)?)?.real_inverse(n, scale)?;
            Ok(vec![Some(dx.unsqueeze(-1)?)])
        })
    }

    #[track_caller]
    fn computed_real_dft(&self, scale: f64) -> Result<Tensor> {
        let &[before, n, after, _] = self.shape().dims() else {
            unreachable!("invariant: four axes")
        };
        let m = n / 2;
        if n % 2 == 1 || n < 4 {
            return self.computed_dft(false, scale, 1)?.slice(1, ..m + 1);
        }
        let pairs = self.reshape([before, m, 2, after])?.permute([0, 1, 3, 2])?;
        if self.in_one_kernel(m) {
            let form = Form { inverse: false, real: true, done: 1 };
            return pairs.mul(scale / 2.0)?.fourier(m, form);
        }
        let z = pairs.computed_dft(false, scale / 2.0, 1)?;
        let z = Tensor::cat(&[&z, &z.slice(1, ..1)?], 1)?;
        let k = Tensor::iota(m + 1, counter(n), self.device()).unsqueeze(-1)?;
        let (cos, sin) = self.turns(&k, n, false)?;
        let (a, b) = (z.select_index(3, 0)?, z.select_index(3, 1)?);
        let (c, d) = (a.flip(1)?, b.flip(1)?);
        // Twice the transform of the odd ones is (b + d) - i (a - c).
        let (x, y) = (b.add(&d)?, c.sub(&a)?);
        let real = a.add(&c)?.add(x.mul(&cos)?.sub(y.mul(&sin)?)?)?;
        let imaginary = b.sub(&d)?.add(x.mul(&sin)?.add(y.mul(&cos)?)?)?;
        Tensor::stack(&[&real, &imaginary], 3)
    }

    /// The `n` real numbers `[before, n, after]` whose transform starts with this
    /// `[before, n / 2 + 1, after, 2]`, times `n` and a factor; [`Tensor::real_dft`] backwards.
    /// The gradient is that one of all frequencies, twice but of the first and the last.
    #[track_caller]
    fn real_inverse(&self, n: usize, scale: f64) -> Result<Tensor> {
        self.computed_real_inverse(n, scale)?.with_gradient(&[self], move |_, _, dy| {
            let dx = dy.unsqueeze(-1)?.real_dft(scale)?;
            let dx = dx.mul(single(&dx, n, 2.0)?)?;
            // What the imaginary parts of these are does not matter.
            let real = Tensor::iota(2, DType::I32, dx.device()).eq(0)?;
            let counts = ends(&dx, n)?.logical_not().bitwise_or(&real)?;
            Ok(vec![Some(counts.where_(&dx, dx.like(0.0))?)])
        })
    }

    #[track_caller]
    fn computed_real_inverse(&self, n: usize, scale: f64) -> Result<Tensor> {
        let &[before, _, after, _] = self.shape().dims() else {
            unreachable!("invariant: four axes")
        };
        let m = n / 2;
        if n % 2 == 1 || n < 4 {
            // The rest are conjugates in reverse order.
            let rest = self.slice(1, 1..n - m)?.flip(1)?.conjugate()?;
            return Tensor::cat(&[self, &rest], 1)?
                .computed_dft(true, scale, 1)?
                .select_index(-1, 0);
        }
        if self.in_one_kernel(m) {
            let form = Form { inverse: true, real: true, done: 1 };
            let x = if scale == 1.0 { self.clone() } else { self.mul(scale)? };
            let pairs = x.fourier(m, form)?.permute([0, 1, 3, 2])?;
            return pairs.reshape([before, n, after]);
        }
        let k = Tensor::iota(m, counter(n), self.device()).unsqueeze(-1)?;
        let (cos, sin) = self.turns(&k, n, true)?;
        let (a, b) = (self.select_index(3, 0)?, self.select_index(3, 1)?);
        // Both ends are real.
        let inner = Tensor::iota(m + 1, k.dtype(), self.device());
        let inner = inner.remainder(m as i64)?.ne(0)?.unsqueeze(-1)?;
        let b = inner.where_(&b, b.like(0.0))?;
        let reverse = |x: &Tensor| x.slice(1, 1..)?.flip(1);
        let (c, d) = (reverse(&a)?, reverse(&b)?);
        let (a, b) = (a.slice(1, ..m)?, b.slice(1, ..m)?);
        let (even, odd) = ((a.add(&c)?, b.sub(&d)?), (a.sub(&c)?, b.add(&d)?));
        let x = odd.0.mul(&cos)?.sub(odd.1.mul(&sin)?)?;
        let y = odd.0.mul(&sin)?.add(odd.1.mul(&cos)?)?;
        let z = Tensor::stack(&[&even.0.sub(&y)?, &even.1.add(&x)?], 3)?;
        let pairs = z.computed_dft(true, scale, 1)?;
        pairs.permute([0, 1, 3, 2])?.reshape([before, n, after])
    }

    /// [`Tensor::fft`] along the two axes before the last.
    ///
    /// ```
    /// # use zyx::{DType, FftNorm, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::ones([2, 2, 2], DType::F32, &device);
    /// let y = x.fft2(FftNorm::Backward)?;
    /// assert_eq!(y.to_vec::<f32>()?[..4], [4.0, 4.0, 0.0, 0.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::fft`].
    #[track_caller]
    pub fn fft2(&self, norm: FftNorm) -> Result<Tensor> {
        self.transformed_axes("fft2", &[-2, -1], norm, false)
    }

    /// [`Tensor::ifft`] along the two axes before the last.
    ///
    /// ```
    /// # use zyx::{DType, FftNorm, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::ones([2, 2, 2], DType::F32, &device);
    /// assert_eq!(x.ifft2(FftNorm::Backward)?.to_vec::<f32>()?[..4], [1.0, 1.0, 0.0, 0.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::fft`].
    #[track_caller]
    pub fn ifft2(&self, norm: FftNorm) -> Result<Tensor> {
        self.transformed_axes("ifft2", &[-2, -1], norm, true)
    }

    /// The transform of real numbers along the last two axes; of the last are the first `n / 2 + 1`
    /// elements, as of [`Tensor::rfft`].
    ///
    /// ```
    /// # use zyx::{DType, FftNorm, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::ones([2, 2], DType::F32, &device);
    /// let y = x.rfft2(FftNorm::Backward)?;
    /// assert_eq!(y.shape().dims(), [2, 2, 2]);
    /// assert_eq!(y.to_vec::<f32>()?[..2], [4.0, 0.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there are fewer than two axes, or a length is 0 or too large.
    #[track_caller]
    pub fn rfft2(&self, norm: FftNorm) -> Result<Tensor> {
        self.in_steps("rfft2", [], |x, []| x.rfft(None, -1, norm)?.fft(None, -2, norm))
    }

    /// The inverse of [`Tensor::rfft2`], with `n` elements along the last axis (by default `2 (m - 1)`
    /// of `m`).
    ///
    /// ```
    /// # use zyx::{DType, FftNorm, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::ones([2, 3], DType::F32, &device);
    /// let y = x.rfft2(FftNorm::Ortho)?.irfft2(Some(3), FftNorm::Ortho)?;
    /// assert_eq!(format!("{y:.1}"), "[[1. 1. 1.]\n [1. 1. 1.]]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::irfft`].
    #[track_caller]
    pub fn irfft2(&self, n: Option<usize>, norm: FftNorm) -> Result<Tensor> {
        self.in_steps("irfft2", [], |x, []| x.ifft(None, -2, norm)?.irfft(n, -1, norm))
    }

    /// [`Tensor::fft`] along several axes, counted without the last.
    ///
    /// ```
    /// # use zyx::{DType, FftNorm, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::ones([2, 1, 2, 2], DType::F32, &device);
    /// let y = x.fftn(&[0, 2], FftNorm::Ortho)?;
    /// assert_eq!(format!("{:.1}", y.flatten().slice(0, ..2)?), "[2. 2.]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::fft`].
    #[track_caller]
    pub fn fftn(&self, axes: &[isize], norm: FftNorm) -> Result<Tensor> {
        self.transformed_axes("fftn", axes, norm, false)
    }

    /// [`Tensor::ifft`] along several axes, counted without the last.
    ///
    /// ```
    /// # use zyx::{DType, FftNorm, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::ones([2, 2], DType::F32, &device);
    /// assert_eq!(x.ifftn(&[0], FftNorm::Backward)?.to_vec::<f32>()?, [1.0, 1.0, 0.0, 0.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::fft`].
    #[track_caller]
    pub fn ifftn(&self, axes: &[isize], norm: FftNorm) -> Result<Tensor> {
        self.transformed_axes("ifftn", axes, norm, true)
    }

    #[track_caller]
    fn transformed_axes(
        &self,
        op: &'static str,
        axes: &[isize],
        norm: FftNorm,
        inverse: bool,
    ) -> Result<Tensor> {
        self.check_complex(op, 0).named(op)?;
        let one = |x: Tensor, &axis: &isize| x.transformed(op, None, axis, norm, inverse);
        self.in_steps(op, [], |x, []| axes.iter().try_fold(x.floating(), one))
    }

    /// The axis, of complex numbers.
    fn check_complex(&self, op: &'static str, axis: isize) -> Result<usize> {
        Tensor::check_operands(op, &[self])?;
        if self.rank() < 2 || self.shape().last() != Some(&2) {
            let reason = "complex numbers are a last axis of two elements".to_owned();
            return Err(Tensor::shape_error(op, &[self], reason));
        }
        super::axes::normalize(axis, self.rank() - 1)
            .map_err(|reason| Tensor::shape_error(op, &[self], reason))
    }

    pub(super) fn check_length(&self, op: &'static str, n: usize) -> Result<()> {
        if (1..=LONGEST).contains(&n) {
            return Ok(());
        }
        let reason = format!("a transform of {n} elements; allowed are 1 to {LONGEST}");
        Err(Tensor::shape_error(op, &[self], reason))
    }

    /// Cut or padded with zeros along an axis.
    #[track_caller]
    fn resized_axis(&self, axis: usize, n: usize) -> Result<Tensor> {
        let extent = self.shape()[axis];
        let mut padding = vec![(0, 0); self.rank()];
        padding[axis].1 = n.saturating_sub(extent);
        self.slice(axis as isize, ..n.min(extent))?.pad(padding)
    }

    #[track_caller]
    fn conjugate(&self) -> Result<Tensor> {
        let sign = Tensor::iota(2, self.dtype(), self.device()).mul(-2.0)?.add(1.0)?;
        self.mul(sign)
    }

    #[track_caller]
    fn transformed(
        &self,
        op: &'static str,
        n: Option<usize>,
        axis: isize,
        norm: FftNorm,
        inverse: bool,
    ) -> Result<Tensor> {
        let axis = self.check_complex(op, axis)?;
        let n = n.unwrap_or(self.shape()[axis]);
        self.check_length(op, n)?;
        self.check_work(op, axis, n)?;
        let x = self.wide().resized_axis(axis, n)?;
        let y = x.around(axis, 2)?.dft(inverse, norm.scale(n, inverse))?;
        Ok(y.reshape(x.shape().clone())?.cast(self.floating().dtype()))
    }

    /// Refuses what takes too many elements on the way.
    fn check_work(&self, op: &'static str, axis: usize, n: usize) -> Result<()> {
        let others = self.shape().iter().enumerate().filter(|&(a, _)| a != axis);
        let batch =
            others.fold(1, |product: usize, (_, &extent)| product.saturating_mul(extent.max(1)));
        if Shape::from([batch, n, 16]).is_possible() {
            return Ok(());
        }
        let reason = "there are too many elements".to_owned();
        Err(Tensor::shape_error(op, &[self], reason))
    }

    /// As `[before, n, after, parts]`; the axis of parts is the last one, or none.
    #[track_caller]
    fn around(&self, axis: usize, parts: usize) -> Result<Tensor> {
        let dims = &self.shape()[..];
        let before = dims[..axis].iter().product::<usize>();
        let after = dims[axis + 1..].iter().product::<usize>() / parts;
        self.reshape([before, dims[axis], after, parts])
    }

    /// The transform of `[before, n, after, 1 or 2]` along the second axis, times a factor: of real
    /// numbers or of complex ones. Its gradient is the other transform.
    #[track_caller]
    fn dft(&self, inverse: bool, scale: f64) -> Result<Tensor> {
        let parts = self.shape()[3];
        self.computed_dft(inverse, scale, 1)?.with_gradient(&[self], move |_, _, dy| {
            let dx = dy.dft(!inverse, scale)?;
            Ok(vec![Some(if parts == 1 { dx.slice(-1, ..1)? } else { dx })])
        })
    }

    /// A transform of elements that are multiplied by roots of unity first where frequencies are `done`.
    #[track_caller]
    fn computed_dft(&self, inverse: bool, scale: f64, done: usize) -> Result<Tensor> {
        let &[before, n, after, parts] = self.shape().dims() else {
            unreachable!("invariant: four axes")
        };
        let x = self.pad([(0, 0), (0, 0), (0, 0), (0, 2 - parts)])?;
        if self.numel() == 0 {
            return Ok(x);
        }
        let (large, longest) =
            (fourier::large_part(n), longest(self.device().caps(), self.dtype()));
        if n > 1 && large == 1 && n <= longest {
            let x = if scale == 1.0 { x } else { x.mul(scale)? };
            return x.fourier(n, Form { inverse, real: false, done: done as u32 });
        }
        let x = if done > 1 { x.rotated_rows(done, inverse)? } else { x };
        if n == 1 {
            return x.mul(scale);
        }
        // Position j1 rest + j2, frequency k1 + first k2.
        let first = match large {
            // The divisor nearest to the root: both parts have as few stages as they can.
            1 => {
                let least = (2..=n.isqrt()).rev().find(|&m| n.is_multiple_of(m)).unwrap_or(1);
                if n / least <= longest { n / least } else { least }
            }
            large => large,
        };
        let rest = n / first;
        let part = if rest == 1 { scale } else { 1.0 };
        let x = x.reshape([before, first, rest * after, 2])?;
        let y = match large {
            1 => x.computed_dft(inverse, part, 1)?,
            large if large <= DIRECT => x.product(inverse, part)?,
            _ => x.bluestein(inverse, part)?,
        };
        if rest == 1 {
            return Ok(y);
        }
        let y = y.reshape([before, first, rest, after, 2])?.permute([0, 2, 1, 3, 4])?;
        let y = y.reshape([before, rest, first * after, 2])?.computed_dft(inverse, scale, first)?;
        y.reshape([before, n, after, 2])
    }

    /// `[before, n, done * after, 2]` times the roots of unity between two transforms.
    #[track_caller]
    fn rotated_rows(&self, done: usize, inverse: bool) -> Result<Tensor> {
        let &[before, n, rows, _] = self.shape().dims() else {
            unreachable!("invariant: four axes")
        };
        let place = Tensor::iota(n, counter(n * done), self.device()).unsqueeze(-1)?;
        let steps = place.mul(Tensor::iota(done, place.dtype(), self.device()))?.unsqueeze(-1)?;
        let x = self.reshape([before, n, done, rows / done, 2])?;
        x.times_roots(&steps, n * done, inverse)?.reshape([before, n, rows, 2])
    }

    /// A transform of `n` elements by one kernel.
    #[track_caller]
    fn fourier(&self, n: usize, form: Form) -> Result<Tensor> {
        // Signs are the kernel's.
        let kind = Kind::Stages(Form { inverse: false, ..form });
        let roots = table(n, kind, self.dtype(), self.device())?;
        Ok(self.fourier_with(&roots, form))
    }

    /// [`Tensor::fourier`] with the roots of unity that it multiplies by.
    #[track_caller]
    pub(crate) fn fourier_with(&self, roots: &Tensor, form: Form) -> Tensor {
        let mut dims = self.shape().to_vec();
        dims[1] = fourier::lengths(form, dims[1])[2];
        Tensor::pending(Op::Fourier(form), [self, roots], dims.into(), self.dtype())
    }

    /// Whether one kernel transforms so many elements.
    fn in_one_kernel(&self, n: usize) -> bool {
        let longest = longest(self.device().caps(), self.dtype());
        n <= longest && fourier::large_part(n) == 1 && self.numel() > 0
    }

    /// As a product of `[before, n, after, 2]` with the matrix of the transform times a factor.
    #[track_caller]
    fn product(&self, inverse: bool, scale: f64) -> Result<Tensor> {
        let &[before, n, after, _] = self.shape().dims() else {
            unreachable!("invariant: four axes")
        };
        let place = Tensor::iota(n, DType::I32, self.device());
        let steps = place.unsqueeze(-1)?.mul(&place)?.remainder(n as i64)?;
        let (cos, sin) = self.turns(&steps, n, inverse)?;
        let x = self.permute([1, 0, 2, 3])?.reshape([n, before * after * 2])?;
        let [a, b] = [cos, sin].map(|w| w.mul(scale)?.matmul(&x)?.reshape([n, before, after, 2]));
        let sign = Tensor::iota(2, self.dtype(), self.device()).mul(2.0)?.sub(1.0)?;
        a?.add(b?.flip(-1)?.mul(sign)?)?.permute([1, 0, 2, 3])
    }

    /// As a convolution: `j k = (j^2 + k^2 - (k - j)^2) / 2`.
    #[track_caller]
    fn bluestein(&self, inverse: bool, scale: f64) -> Result<Tensor> {
        let n = self.shape()[1];
        let m = (2 * n - 1).next_power_of_two();
        let (a, b) = self.chirp(n)?;
        let b = if inverse { b.neg() } else { b };
        let x = self.rotated(&a, &b)?.pad([(0, 0), (0, m - n), (0, 0), (0, 0)])?;
        let x = x.computed_dft(false, 1.0, 1)?;
        // The conjugate chirp at positions -(n - 1) ..= n - 1 of a circle of m.
        let circle = Tensor::cat(&[&a, &b.neg()], -1)?;
        let late = circle.slice(0, 1..)?.flip(0)?.pad([(m - n + 1, 0), (0, 0), (0, 0)])?;
        let circle = circle.pad([(0, m - n), (0, 0), (0, 0)])?.add(&late)?.unsqueeze(0)?;
        let circle = circle.computed_dft(false, scale / m as f64, 1)?;
        let (c, d) = (circle.slice(-1, ..1)?, circle.slice(-1, 1..)?);
        let y = x.rotated(&c, &d)?.computed_dft(true, 1.0, 1)?.slice(1, ..n)?;
        y.rotated(&a, &b)
    }

    /// Real and imaginary parts of `exp(-pi i j^2 / n)` for `j` below `n`, `[n, 1, 1]`.
    #[track_caller]
    fn chirp(&self, n: usize) -> Result<(Tensor, Tensor)> {
        if n <= TABLE {
            let chirp = table(n, Kind::Chirp, self.dtype(), self.device())?;
            let chirp = chirp.reshape([2, n, 1, 1])?;
            return Ok((chirp.select_index(0, 0)?, chirp.select_index(0, 1)?));
        }
        let place = Tensor::iota(n, DType::I64, self.device());
        let steps = place.mul(&place)?.remainder(2 * n as i64)?.reshape([n, 1, 1])?;
        self.turns(&steps, 2 * n, false)
    }

    /// Complex numbers times `a + b i`; the factors have a last axis of one.
    #[track_caller]
    fn rotated(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        let sign = Tensor::iota(2, self.dtype(), self.device()).mul(2.0)?.sub(1.0)?;
        self.mul(a)?.add(self.flip(-1)?.mul(b.mul(sign)?)?)
    }

    /// Complex numbers times `exp(-2 pi i t / n)` (`+` if inverse), `t` of the shape without the
    /// last axis, or one that broadcasts.
    #[track_caller]
    fn times_roots(&self, t: &Tensor, n: usize, inverse: bool) -> Result<Tensor> {
        let (cos, sin) = self.turns(t, n, inverse)?;
        self.rotated(&cos.unsqueeze(-1)?, &sin.unsqueeze(-1)?)
    }

    /// Real and imaginary parts of `exp(-2 pi i t / n)` (`+` if inverse), stored, since every row of a
    /// batch needs them.
    #[track_caller]
    fn turns(&self, t: &Tensor, n: usize, inverse: bool) -> Result<(Tensor, Tensor)> {
        let (cos, sin) = turn(t, n, self.dtype())?;
        let sin = if inverse { sin } else { sin.neg() };
        Ok((cos.contiguous(), sin.contiguous()))
    }
}

/// Whether frequencies of `n` real numbers, along the second axis, are their own conjugates.
#[track_caller]
fn ends(x: &Tensor, n: usize) -> Result<Tensor> {
    let k = Tensor::iota(n / 2 + 1, counter(n), x.device());
    k.mul(2)?.remainder(n as i64)?.eq(0)?.reshape([n / 2 + 1, 1, 1])
}

/// One for these frequencies, another factor for the rest.
#[track_caller]
fn single(x: &Tensor, n: usize, rest: f64) -> Result<Tensor> {
    ends(x, n)?.where_(x.like(1.0), x.like(rest))
}

/// Bytes of tables that are kept for each thread.
const KEPT: usize = 4 << 20;

/// Most elements of a convolution whose factors are a table.
const TABLE: usize = 1 << 14;

/// What a table has the roots of unity of.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Stages(Form),
    /// `exp(-pi i j^2 / n)`.
    Chirp,
}

thread_local! {
    static TABLES: RefCell<Lru<(usize, Kind), Rc<[f64]>>> = RefCell::default();
}

/// Roots of unity that a transform multiplies by, `[2, m]`: computed on the host, in `f64`, and
/// rounded once.
#[track_caller]
fn table(n: usize, kind: Kind, dtype: DType, device: &Device) -> Result<Tensor> {
    let known = TABLES.with_borrow_mut(|tables| {
        if let Some(known) = tables.get(&(n, kind)) {
            return known.clone();
        }
        let made: Rc<[f64]> = match kind {
            Kind::Stages(form) => fourier::table(n, form).expect("invariant: small primes").into(),
            Kind::Chirp => {
                let roots = (0..n).map(|j| fourier::root((j * j) % (2 * n), 2 * n));
                let (cos, sin): (Vec<f64>, Vec<f64>) = roots.map(|(c, s)| (c, -s)).unzip();
                cos.into_iter().chain(sin).collect()
            }
        };
        tables.insert((n, kind), made.clone(), 8 * made.len());
        tables.fit(KEPT);
        made
    });
    let dims = [2, known.len() / 2];
    match dtype {
        DType::F64 => Tensor::from_slice(&known, dims, device),
        _ => {
            let rounded: Vec<f32> = known.iter().map(|&x| x as f32).collect();
            Tensor::from_slice(&rounded, dims, device)
        }
    }
}

/// The dtype of steps below `n` and eight times as many.
fn counter(n: usize) -> DType {
    if n < 1 << 27 { DType::I32 } else { DType::I64 }
}

/// Cosine and sine of `t / n` turns, for integers `0 <= t < n`: reduced to an eighth of a turn in
/// integers, so nothing is lost before the functions are taken.
#[track_caller]
fn turn(t: &Tensor, n: usize, dtype: DType) -> Result<(Tensor, Tensor)> {
    let n = n as i64;
    // The nearest quarter, and the rest in quarters of a step.
    let quarter = t.mul(8)?.add(n)?.floor_divide(2 * n)?;
    let rest = t.mul(4)?.sub(quarter.mul(n)?)?.cast(dtype);
    let angle = rest.mul(std::f64::consts::FRAC_PI_2 / n as f64)?;
    let (cos, sin) = (angle.cos(), angle.sin());
    let odd = quarter.bitwise_and(1)?.ne(0)?;
    let back = quarter.bitwise_and(2)?.ne(0)?;
    let (c, s) = (odd.where_(sin.neg(), &cos)?, odd.where_(&cos, &sin)?);
    Ok((back.where_(c.neg(), &c)?, back.where_(s.neg(), &s)?))
}

impl Tensor {
    /// The halves of axes exchanged, so that frequency 0 moves to the middle.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([0f32, 1.0, 2.0, -2.0, -1.0], &device)?;
    /// assert_eq!(x.fftshift(0)?.to_vec::<f32>()?, [-2.0, -1.0, 0.0, 1.0, 2.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range or repeated.
    #[track_caller]
    pub fn fftshift(&self, axes: impl Axes) -> Result<Tensor> {
        let _here = composed();
        let mask = self.axes("fftshift", axes)?;
        self.turned(mask, |n| n.div_ceil(2)).named("fftshift")
    }

    /// [`Tensor::fftshift`] undone.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([-2f32, -1.0, 0.0, 1.0, 2.0], &device)?;
    /// assert_eq!(x.ifftshift(0)?.to_vec::<f32>()?, [0.0, 1.0, 2.0, -2.0, -1.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range or repeated.
    #[track_caller]
    pub fn ifftshift(&self, axes: impl Axes) -> Result<Tensor> {
        let _here = composed();
        let mask = self.axes("ifftshift", axes)?;
        self.turned(mask, |n| n / 2).named("ifftshift")
    }

    /// Axes rotated so that the element at `first(extent)` comes first.
    #[track_caller]
    fn turned(&self, mask: u16, first: fn(usize) -> usize) -> Result<Tensor> {
        crate::graph::axes_of(mask).try_fold(self.clone(), |x, axis| {
            let at = first(x.shape()[axis]);
            let axis = axis as isize;
            Tensor::cat(&[&x.slice(axis, at..)?, &x.slice(axis, ..at)?], axis)
        })
    }

    /// The frequencies of a transform of `n` samples `spacing` apart, `f32`: `k / (n spacing)`, the
    /// second half negative.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// assert_eq!(Tensor::fftfreq(4, 0.5, &device)?.to_vec::<f32>()?, [0.0, 0.5, -1.0, -0.5]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `n` or `spacing` is 0, or `n` too large.
    #[track_caller]
    pub fn fftfreq(n: usize, spacing: f64, device: &Device) -> Result<Tensor> {
        const OP: &str = "fftfreq";
        let _here = composed();
        check_frequencies(OP, n, spacing).named(OP)?;
        let k = Tensor::iota(n, DType::I64, device);
        let k = k.ge(n.div_ceil(2) as i64).and_then(|late| late.where_(k.sub(n as i64)?, &k));
        k.and_then(|k| k.cast(DType::F32).mul(1.0 / (n as f64 * spacing))).named(OP)
    }

    /// The frequencies of a real transform: those of [`Tensor::fftfreq`] that are not negative.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// assert_eq!(Tensor::rfftfreq(4, 0.5, &device)?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::fftfreq`].
    #[track_caller]
    pub fn rfftfreq(n: usize, spacing: f64, device: &Device) -> Result<Tensor> {
        const OP: &str = "rfftfreq";
        check_frequencies(OP, n, spacing).named(OP)?;
        let k = Tensor::iota(n / 2 + 1, DType::F32, device);
        k.mul(1.0 / (n as f64 * spacing)).named(OP)
    }
}

fn check_frequencies(op: &'static str, n: usize, spacing: f64) -> Result<()> {
    if (1..=LONGEST).contains(&n) && spacing != 0.0 {
        return Ok(());
    }
    let reason = format!("{n} samples at distance {spacing} have no frequencies");
    Err(Tensor::argument_error(op, reason))
}
