//! Fourier transforms of any length. Complex numbers are a last axis of two, real part first.
//!
//! A transform of at most [`DIRECT`] elements is one product with a matrix of roots of unity, in
//! real numbers `[2 n, 2 n]`. A longer one is split into two (Cooley and Tukey 1965) by a divisor
//! of at most that size; a length without one is a convolution of a length that is a power of two
//! (Bluestein 1970). So all work is in contractions, which devices are best at, and gradients are
//! transforms again. Roots of unity are computed where they are used, from integers reduced to an
//! eighth of a turn exactly, so that they are good to an ulp: the error of a transform of `n`
//! elements grows as its number of stages, not as `n`. Halves are computed in `f32`.

use super::{Axes, Tensor};
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::runtime::Device;
use crate::shape::Shape;

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

/// Longest transform that is one product.
const DIRECT: usize = 64;

/// Longest one without small divisors that is one product.
const PRIME: usize = 256;

/// Longest transform: squares of positions must fit into `i64`.
pub(super) const LONGEST: usize = 1 << 30;

impl Tensor {
    /// The discrete Fourier transform of complex `[.., n, .., 2]` along an axis, which is counted
    /// without the last: `y[k] = sum x[j] exp(-2 pi i j k / n)`. With `n` the axis is cut or padded
    /// with zeros to that length before.
    ///
    /// ```
    /// # use zyx_core::{FftNorm, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::new([[1f32, 0.0], [0.0, 0.0], [0.0, 0.0]], &device)?;
    /// let y = x.fft(None, -1, FftNorm::Backward)?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
    /// # Ok::<(), zyx_core::Error>(())
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
    /// # use zyx_core::{FftNorm, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::new([[4f32, 0.0], [0.0, 0.0]], &device)?;
    /// let y = x.ifft(None, -1, FftNorm::Backward)?;
    /// assert_eq!(y.to_vec::<f32>()?, [2.0, 0.0, 2.0, 0.0]);
    /// # Ok::<(), zyx_core::Error>(())
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
    /// # use zyx_core::{FftNorm, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::new([1f32, 2.0, 3.0, 4.0], &device)?;
    /// let y = x.rfft(None, -1, FftNorm::Backward)?;
    /// assert_eq!(format!("{y:.1}"), "[[10.  0.]\n [-2.  2.]\n [-2.  0.]]");
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis is out of range, or the length is 0 or too large.
    #[track_caller]
    pub fn rfft(&self, n: Option<usize>, axis: isize, norm: FftNorm) -> Result<Tensor> {
        const OP: &str = "rfft";
        let transformed = || {
            Tensor::check_operands(OP, &[self])?;
            let place = self.axis(OP, axis)?;
            let mut padding = vec![(0, 0); self.rank() + 1];
            padding[self.rank()].1 = 1;
            let complex = self.floating().unsqueeze(-1)?.pad(padding)?;
            let y = complex.transformed(OP, n, place as isize, norm, false)?;
            let n = y.shape()[place];
            y.slice(place as isize, ..n / 2 + 1)
        };
        transformed().named(OP)
    }

    /// The inverse of [`Tensor::rfft`]: `n` real numbers (by default `2 (m - 1)` of `m` elements).
    /// Imaginary parts that the transform of real numbers cannot have are ignored.
    ///
    /// ```
    /// # use zyx_core::{FftNorm, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::new([[10f32, 0.0], [-2.0, 2.0], [-2.0, 0.0]], &device)?;
    /// let y = x.irfft(None, -1, FftNorm::Backward)?;
    /// assert_eq!(format!("{y:.1}"), "[1. 2. 3. 4.]");
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::fft`].
    #[track_caller]
    pub fn irfft(&self, n: Option<usize>, axis: isize, norm: FftNorm) -> Result<Tensor> {
        const OP: &str = "irfft";
        let transformed = || {
            let place = self.check_complex(OP, axis)?;
            let n = n.unwrap_or(2 * self.shape()[place].saturating_sub(1));
            self.check_length(OP, n)?;
            let along = place as isize;
            let half = self.floating().resized_axis(place, n / 2 + 1)?;
            // The rest are conjugates in reverse order.
            let rest = half.slice(along, 1..n - n / 2)?.flip(along)?.conjugate()?;
            let whole = Tensor::cat(&[&half, &rest], along)?;
            whole.transformed(OP, None, along, norm, true)?.select_index(-1, 0)
        };
        transformed().named(OP)
    }

    /// [`Tensor::fft`] along the two axes before the last.
    ///
    /// ```
    /// # use zyx_core::{DType, FftNorm, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::ones([2, 2, 2], DType::F32, &device);
    /// let y = x.fft2(FftNorm::Backward)?;
    /// assert_eq!(y.to_vec::<f32>()?[..4], [4.0, 4.0, 0.0, 0.0]);
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::fft`].
    #[track_caller]
    pub fn fft2(&self, norm: FftNorm) -> Result<Tensor> {
        self.transformed_axes("fft2", &[-2, -1], norm, false).named("fft2")
    }

    /// [`Tensor::ifft`] along the two axes before the last.
    ///
    /// ```
    /// # use zyx_core::{DType, FftNorm, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::ones([2, 2, 2], DType::F32, &device);
    /// assert_eq!(x.ifft2(FftNorm::Backward)?.to_vec::<f32>()?[..4], [1.0, 1.0, 0.0, 0.0]);
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::fft`].
    #[track_caller]
    pub fn ifft2(&self, norm: FftNorm) -> Result<Tensor> {
        self.transformed_axes("ifft2", &[-2, -1], norm, true).named("ifft2")
    }

    /// The transform of real numbers along the last two axes; of the last are the first `n / 2 + 1`
    /// elements, as of [`Tensor::rfft`].
    ///
    /// ```
    /// # use zyx_core::{DType, FftNorm, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::ones([2, 2], DType::F32, &device);
    /// let y = x.rfft2(FftNorm::Backward)?;
    /// assert_eq!(y.shape().dims(), [2, 2, 2]);
    /// assert_eq!(y.to_vec::<f32>()?[..2], [4.0, 0.0]);
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there are fewer than two axes, or a length is 0 or too large.
    #[track_caller]
    pub fn rfft2(&self, norm: FftNorm) -> Result<Tensor> {
        self.rfft(None, -1, norm).and_then(|y| y.fft(None, -2, norm)).named("rfft2")
    }

    /// The inverse of [`Tensor::rfft2`], with `n` elements along the last axis (by default `2 (m - 1)`
    /// of `m`).
    ///
    /// ```
    /// # use zyx_core::{DType, FftNorm, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::ones([2, 3], DType::F32, &device);
    /// let y = x.rfft2(FftNorm::Ortho)?.irfft2(Some(3), FftNorm::Ortho)?;
    /// assert_eq!(format!("{y:.1}"), "[[1. 1. 1.]\n [1. 1. 1.]]");
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::irfft`].
    #[track_caller]
    pub fn irfft2(&self, n: Option<usize>, norm: FftNorm) -> Result<Tensor> {
        self.ifft(None, -2, norm).and_then(|y| y.irfft(n, -1, norm)).named("irfft2")
    }

    /// [`Tensor::fft`] along several axes, counted without the last.
    ///
    /// ```
    /// # use zyx_core::{DType, FftNorm, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::ones([2, 1, 2, 2], DType::F32, &device);
    /// let y = x.fftn(&[0, 2], FftNorm::Ortho)?;
    /// assert_eq!(format!("{:.1}", y.flatten().slice(0, ..2)?), "[2. 2.]");
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::fft`].
    #[track_caller]
    pub fn fftn(&self, axes: &[isize], norm: FftNorm) -> Result<Tensor> {
        self.transformed_axes("fftn", axes, norm, false).named("fftn")
    }

    /// [`Tensor::ifft`] along several axes, counted without the last.
    ///
    /// ```
    /// # use zyx_core::{DType, FftNorm, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::ones([2, 2], DType::F32, &device);
    /// assert_eq!(x.ifftn(&[0], FftNorm::Backward)?.to_vec::<f32>()?, [1.0, 1.0, 0.0, 0.0]);
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::fft`].
    #[track_caller]
    pub fn ifftn(&self, axes: &[isize], norm: FftNorm) -> Result<Tensor> {
        self.transformed_axes("ifftn", axes, norm, true).named("ifftn")
    }

    #[track_caller]
    fn transformed_axes(
        &self,
        op: &'static str,
        axes: &[isize],
        norm: FftNorm,
        inverse: bool,
    ) -> Result<Tensor> {
        self.check_complex(op, 0)?;
        let one = |x: Tensor, &axis: &isize| x.transformed(op, None, axis, norm, inverse);
        axes.iter().try_fold(self.floating(), one)
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
        let dtype = self.floating().dtype();
        let x = self.wide().resized_axis(axis, n)?;
        // The axis last but one, all others a batch.
        let last = x.rank() - 2;
        let moved = x.transpose(axis as isize, last as isize)?;
        let batch = moved.shape()[..last].iter().product::<usize>();
        let long = if small_divisor(n).is_some() || n <= PRIME { n } else { 4 * n };
        if !Shape::from([batch.max(1), long, 4]).is_possible() {
            let reason = "there are too many elements".to_owned();
            return Err(Tensor::shape_error(op, &[self], reason));
        }
        let flat = moved.reshape([batch, n, 2])?;
        let y = flat.dft(inverse)?.mul(norm.scale(n, inverse))?;
        let y = y.reshape(moved.shape().clone())?.transpose(axis as isize, last as isize)?;
        Ok(y.cast(dtype))
    }

    /// The transform of `[batch, n, 2]` along the middle axis, unscaled.
    #[track_caller]
    fn dft(&self, inverse: bool) -> Result<Tensor> {
        let &[batch, n, _] = self.shape().dims() else {
            unreachable!("invariant: batch, positions, parts")
        };
        if n == 1 {
            return Ok(self.clone());
        }
        if n <= DIRECT || (n <= PRIME && small_divisor(n).is_none()) {
            let y = self.reshape([batch, 2 * n])?.matmul(&self.roots(n, inverse)?)?;
            return y.reshape([batch, n, 2]);
        }
        let Some(m) = small_divisor(n) else { return self.bluestein(inverse) };
        let k = n / m;
        // Position j1 k + j2, frequency k1 + m k2: transforms over j1, factors, then over j2.
        let x = self.reshape([batch, m, k, 2])?.permute([0, 2, 1, 3])?;
        let x = x.reshape([batch * k, m, 2])?.dft(inverse)?.reshape([batch, k, m, 2])?;
        let row = Tensor::iota(k, DType::I64, self.device()).unsqueeze(-1)?;
        let steps = row.mul(Tensor::iota(m, DType::I64, self.device()))?;
        let x = x.times_roots(&steps, n, inverse)?.permute([0, 2, 1, 3])?;
        let y = x.reshape([batch * m, k, 2])?.dft(inverse)?.reshape([batch, m, k, 2])?;
        y.permute([0, 2, 1, 3])?.reshape([batch, n, 2])
    }

    /// As a convolution: `j k = (j^2 + k^2 - (k - j)^2) / 2`.
    #[track_caller]
    fn bluestein(&self, inverse: bool) -> Result<Tensor> {
        let n = self.shape()[1];
        let m = (2 * n - 1).next_power_of_two();
        let steps = |place: &Tensor| place.mul(place)?.remainder(2 * n as i64);
        let place = Tensor::iota(n, DType::I64, self.device());
        let x = self.times_roots(&steps(&place)?, 2 * n, inverse)?;
        let x = x.pad([(0, 0), (0, m - n), (0, 0)])?.dft(false)?;
        // The conjugate chirp at positions -(n - 1) ..= n - 1 of a circle of m.
        let place = Tensor::iota(m, DType::I64, self.device());
        let distance = place.minimum(place.neg().add(m as i64)?)?;
        let inside = distance.lt(n as i64)?.unsqueeze(-1)?;
        let distance = distance.minimum(n as i64 - 1)?;
        let one = Tensor::iota(2, self.dtype(), self.device()).neg().add(1.0)?;
        let one = one.expand([1, m, 2])?;
        let chirp = one.times_roots(&steps(&distance)?, 2 * n, !inverse)?;
        let chirp = inside.where_(&chirp, chirp.like(0.0))?.dft(false)?;
        let (a, b) = (chirp.slice(-1, ..1)?, chirp.slice(-1, 1..)?);
        let y = x.rotated(&a, &b)?.dft(true)?.mul(1.0 / m as f64)?.slice(1, ..n)?;
        let place = Tensor::iota(n, DType::I64, self.device());
        y.times_roots(&steps(&place)?, 2 * n, inverse)
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
        let (cos, sin) = turn(t, n, self.dtype())?;
        let sin = if inverse { sin } else { sin.neg() };
        self.rotated(&cos.unsqueeze(-1)?, &sin.unsqueeze(-1)?)
    }

    /// The matrix of a transform, `[2 n, 2 n]`: rows are parts of positions, columns of
    /// frequencies.
    #[track_caller]
    fn roots(&self, n: usize, inverse: bool) -> Result<Tensor> {
        let place = Tensor::iota(n, DType::I64, self.device());
        let steps = place.unsqueeze(-1)?.mul(&place)?.remainder(n as i64)?;
        let (cos, sin) = turn(&steps, n, self.dtype())?;
        let sin = if inverse { sin } else { sin.neg() };
        let lay = |x: &Tensor| x.reshape([n, 1, n, 1])?.expand([n, 2, n, 2]);
        let part = Tensor::iota(2, self.dtype(), self.device());
        let (from, to) = (part.reshape([2, 1, 1])?, part.reshape([1, 1, 2])?);
        // The same part: the cosine. Real to imaginary: the sine; back: its negative.
        let same = from.eq(&to)?;
        let cross = lay(&sin)?.mul(to.sub(&from)?)?;
        same.where_(lay(&cos)?, &cross)?.reshape([2 * n, 2 * n])
    }
}

/// The largest divisor of `n` up to [`DIRECT`], other than 1.
fn small_divisor(n: usize) -> Option<usize> {
    (2..=DIRECT).rev().find(|&m| n.is_multiple_of(m))
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
    /// # use zyx_core::{Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::new([0f32, 1.0, 2.0, -2.0, -1.0], &device)?;
    /// assert_eq!(x.fftshift(0)?.to_vec::<f32>()?, [-2.0, -1.0, 0.0, 1.0, 2.0]);
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range or repeated.
    #[track_caller]
    pub fn fftshift(&self, axes: impl Axes) -> Result<Tensor> {
        let mask = self.axes("fftshift", axes)?;
        self.turned(mask, |n| n.div_ceil(2)).named("fftshift")
    }

    /// [`Tensor::fftshift`] undone.
    ///
    /// ```
    /// # use zyx_core::{Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::new([-2f32, -1.0, 0.0, 1.0, 2.0], &device)?;
    /// assert_eq!(x.ifftshift(0)?.to_vec::<f32>()?, [0.0, 1.0, 2.0, -2.0, -1.0]);
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range or repeated.
    #[track_caller]
    pub fn ifftshift(&self, axes: impl Axes) -> Result<Tensor> {
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
    /// # use zyx_core::{Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// assert_eq!(Tensor::fftfreq(4, 0.5, &device)?.to_vec::<f32>()?, [0.0, 0.5, -1.0, -0.5]);
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `n` or `spacing` is 0, or `n` too large.
    #[track_caller]
    pub fn fftfreq(n: usize, spacing: f64, device: &Device) -> Result<Tensor> {
        const OP: &str = "fftfreq";
        check_frequencies(OP, n, spacing).named(OP)?;
        let k = Tensor::iota(n, DType::I64, device);
        let k = k.ge(n.div_ceil(2) as i64).and_then(|late| late.where_(k.sub(n as i64)?, &k));
        k.and_then(|k| k.cast(DType::F32).mul(1.0 / (n as f64 * spacing))).named(OP)
    }

    /// The frequencies of a real transform: those of [`Tensor::fftfreq`] that are not negative.
    ///
    /// ```
    /// # use zyx_core::{Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// assert_eq!(Tensor::rfftfreq(4, 0.5, &device)?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok::<(), zyx_core::Error>(())
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
