//! Short-time Fourier transforms: those of overlapping frames of a signal, the signal from them,
//! and the windows that frames are multiplied by.

use super::fft::LONGEST;
use super::formula::{Condition, Term};
use super::{FftNorm, PadMode, Tensor};
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::ops::BinaryOp::{Add, Lt, Min, Sub};
use crate::origin::composed;
use crate::runtime::Device;

/// Most pieces of a frame that are added one by one.
const ADDED: usize = 16;

/// The frames of [`Tensor::stft`] and [`Tensor::istft`].
///
/// ```
/// use zyx::Stft;
/// assert_eq!(Stft::new(512).hop, 128);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Stft<'a> {
    /// Samples of a frame.
    pub n_fft: usize,
    /// Samples from one frame to the next; a quarter of a frame.
    pub hop: usize,
    /// Factors of a frame's samples, `[n_fft]`; ones if not given.
    pub window: Option<&'a Tensor>,
    /// Whether frames are centred: the signal is continued by reflection at both ends; true.
    pub center: bool,
}

impl Stft<'_> {
    /// Frames of `n_fft` samples.
    ///
    /// ```
    /// # use zyx::Stft;
    /// assert!(Stft::new(512).center);
    /// ```
    #[track_caller]
    pub fn new(n_fft: usize) -> Self {
        Stft { n_fft, hop: (n_fft / 4).max(1), window: None, center: true }
    }
}

impl Tensor {
    /// Transforms of overlapping frames of real signals `[.., samples]`:
    /// `[.., n_fft / 2 + 1, frames, 2]`.
    ///
    /// ```
    /// # use zyx::{DType, Stft, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::ones([16], DType::F32, &device);
    /// let y = x.stft(Stft::new(8))?;
    /// assert_eq!(y.shape().dims(), [5, 9, 2]);
    /// assert_eq!(format!("{:.1}", y.flatten().slice(0, ..1)?), "[8.]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a frame is longer than the signal, the window does not fit, or `n_fft` or `hop` is 0.
    #[track_caller]
    pub fn stft(&self, frames: Stft<'_>) -> Result<Tensor> {
        const OP: &str = "stft";
        let _here = composed();
        let transformed = || {
            Tensor::check_operands(OP, &[self])?;
            let Stft { n_fft, hop, center, .. } = frames;
            self.axis(OP, -1)?;
            self.check_length(OP, n_fft)?;
            let mut x = self.floating();
            if center {
                let mut padding = vec![(0, 0); x.rank()];
                padding[x.rank() - 1] = (n_fft / 2, n_fft / 2);
                // Stored, as each sample is in several frames.
                x = x.pad_mode(padding, PadMode::Reflect)?.contiguous();
            }
            let x = x.frames(OP, n_fft, hop)?;
            let x = match frames.factors(OP, self)? {
                Some(window) => x.mul(window.cast(x.dtype()).unsqueeze(-1)?)?,
                None => x,
            };
            x.rfft(None, -2, FftNorm::Backward)
        };
        transformed().named(OP)
    }

    /// `[.., samples]` as `[.., n, frames]`; the gradient adds frames up where they lie.
    #[track_caller]
    fn frames(&self, op: &'static str, n: usize, hop: usize) -> Result<Tensor> {
        let window = super::convolution::Window { kernel: n, stride: hop, dilation: 1 };
        let (last, samples) = (self.rank() - 1, self.shape()[self.rank() - 1]);
        let frames = self.windows(op, last, window)?;
        frames.with_gradient(&[self], move |_, _, dy| {
            let covered = (dy.shape()[last + 1] - 1) * hop + n;
            let mut padding = vec![(0, 0); last + 1];
            padding[last].1 = samples - covered;
            Ok(vec![Some(dy.overlapped(covered, hop)?.pad(padding)?)])
        })
    }

    /// [`Tensor::stft`] undone: `[.., samples]` of frames `[.., n_fft / 2 + 1, frames, 2]`, each
    /// sample divided by the sum of the squared factors that were applied to it. `length` cuts the
    /// result.
    ///
    /// ```
    /// # use zyx::{Stft, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], &device)?;
    /// let y = x.stft(Stft::new(4))?.istft(Stft::new(4), None)?;
    /// assert_eq!(format!("{y:.2}"), "[1. 2. 3. 4. 5. 6. 7. 8.]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the frames are not those of such transforms, or the result is shorter than `length`.
    #[track_caller]
    pub fn istft(&self, frames: Stft<'_>, length: Option<usize>) -> Result<Tensor> {
        const OP: &str = "istft";
        let _here = composed();
        let transformed = || {
            let Stft { n_fft, hop, center, .. } = frames;
            self.check_length(OP, n_fft)?;
            let fits =
                matches!(self.shape().dims(), [.., bins, n, 2] if *bins == n_fft / 2 + 1 && *n > 0);
            if !fits || hop == 0 {
                let reason = "needs frames [.., n_fft / 2 + 1, frames, 2]".to_owned();
                return Err(Tensor::shape_error(OP, &[self], reason));
            }
            let x = self.irfft(Some(n_fft), -2, FftNorm::Backward)?;
            let n = x.shape()[x.rank() - 1];
            let window = match frames.factors(OP, self)? {
                Some(window) => window.cast(x.dtype()),
                None => Tensor::ones([n_fft], x.dtype(), self.device()),
            };
            let window = window.unsqueeze(-1)?;
            let samples = (n - 1).checked_mul(hop).and_then(|m| m.checked_add(n_fft));
            let samples = samples.filter(|&m| m <= LONGEST);
            let samples = samples.ok_or_else(|| {
                Tensor::shape_error(OP, &[self], "the signal is too long".to_owned())
            })?;
            let sum = x.mul(&window)?.overlapped(samples, hop)?;
            let weight = window.square().expand([n_fft, n])?.overlapped(samples, hop)?;
            let covered = weight.gt(1e-11)?;
            let y = sum.div(covered.where_(&weight, weight.like(1.0))?)?;
            let start = if center { n_fft / 2 } else { 0 };
            let end = samples - if center { n_fft / 2 } else { 0 };
            let y = y.slice(-1, start..end.max(start))?;
            length.map_or(Ok(y.clone()), |length| y.slice(-1, ..length))
        };
        transformed().named(OP)
    }

    /// `[.., n, frames]` added up where they lie in `[.., samples]`. Every frame is cut into pieces of a
    /// hop, and piece `i` of frame `f` is a part of piece `f + i` of the signal.
    #[track_caller]
    fn overlapped(&self, samples: usize, hop: usize) -> Result<Tensor> {
        let rank = self.rank();
        let (n, frames) = (self.shape()[rank - 2], self.shape()[rank - 1]);
        let hop = if frames == 1 { hop.min(n) } else { hop };
        let pieces = n.div_ceil(hop);
        let pad = |x: &Tensor, axis: usize, before: usize, after: usize| {
            let mut padding = vec![(0, 0); x.rank()];
            padding[axis] = (before, after);
            x.pad(padding)
        };
        let lead = &self.shape()[..rank - 2];
        let cut = pad(self, rank - 2, 0, pieces * hop - n)?;
        let cut = cut.reshape([lead, &[pieces, hop, frames]].concat())?;
        let sum = if pieces <= ADDED {
            let shifted = (0..pieces).map(|i| {
                let piece = cut.select_index(rank as isize - 2, i as isize)?;
                pad(&piece, rank - 1, i, pieces - 1 - i)
            });
            let sum = shifted.reduce(|sum, piece| sum?.add(&piece?)).transpose()?;
            sum.unwrap_or_else(|| cut.clone())
        } else {
            // Rows that are one longer than they are cut to move by one place each.
            let long = pad(&cut.transpose(-3, -2)?, rank, 0, pieces)?.flatten_axes(-2, -1)?;
            let width = frames + pieces - 1;
            let long = long.slice(-1, ..pieces * width)?;
            long.reshape([lead, &[hop, pieces, width]].concat())?.sum(-2)?
        };
        let sum = sum.transpose(-2, -1)?;
        sum.flatten_axes(-2, -1)?.slice(-1, ..samples)
    }

    /// Hann's window: `(1 - cos(2 pi i / m)) / 2` with `m = n` if periodic, else `n - 1`;
    /// computed in `f64` and rounded once, in `f32` on devices without `f64`.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let w = Tensor::hann_window(4, true, DType::F32, &device);
    /// assert_eq!(format!("{w:.2}"), "[0.  0.5 1.  0.5]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn hann_window(n: usize, periodic: bool, dtype: DType, device: &Device) -> Tensor {
        window(n, periodic, dtype, device, Places::sine)
    }

    /// Hamming's window: `0.54 - 0.46 cos(2 pi i / m)`; see [`Tensor::hann_window`].
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let w = Tensor::hamming_window(4, true, DType::F32, &device);
    /// assert_eq!(format!("{w:.2}"), "[0.08 0.54 1.   0.54]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn hamming_window(n: usize, periodic: bool, dtype: DType, device: &Device) -> Tensor {
        window(n, periodic, dtype, device, |at| at.sine() * 0.92 + 0.08)
    }

    /// Blackman's window: `0.42 - 0.5 cos(2 pi i / m) + 0.08 cos(4 pi i / m)`; see
    /// [`Tensor::hann_window`].
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let w = Tensor::blackman_window(4, true, DType::F32, &device);
    /// assert_eq!(format!("{:.2}", w.slice(0, 1..)?), "[0.34 1.   0.34]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn blackman_window(n: usize, periodic: bool, dtype: DType, device: &Device) -> Tensor {
        // cos 2x = 1 - 2 s and cos 4x = 1 - 8 s (1 - s) with s = sin^2 x.
        window(n, periodic, dtype, device, |at| at.sine().polynomial(&[0.64, 0.36, 0.0]))
    }

    /// Bartlett's window, a triangle: `1 - |2 i / m - 1|`; see [`Tensor::hann_window`].
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let w = Tensor::bartlett_window(4, true, DType::F32, &device)?;
    /// assert_eq!(w.to_vec::<f32>()?, [0.0, 0.5, 1.0, 0.5]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// None.
    #[track_caller]
    pub fn bartlett_window(
        n: usize,
        periodic: bool,
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        Ok(window(n, periodic, dtype, device, |at| at.half() * 2.0))
    }

    /// Kaiser's window: `I0(beta sqrt(1 - x^2)) / I0(beta)` with `x = 2 i / m - 1` and the modified
    /// Bessel function `I0`; see [`Tensor::hann_window`].
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let w = Tensor::kaiser_window(5, false, 12.0, DType::F32, &device)?;
    /// assert_eq!(format!("{:.3}", w.slice(0, 1..4)?), "[0.216 1.    0.216]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the magnitude of `beta` exceeds 700, where `I0` overflows.
    #[track_caller]
    pub fn kaiser_window(
        n: usize,
        periodic: bool,
        beta: f64,
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        const OP: &str = "kaiser_window";
        if beta.is_nan() || beta.abs() > 700.0 {
            return Err(Tensor::argument_error(OP, format!("beta {beta} is not within 700")));
        }
        Ok(window(n, periodic, dtype, device, |at| {
            // 1 - x^2 = 4 p (1 - p) where p periods have passed.
            let p = at.half();
            (&p * 4.0 * (1.0 - &p)).polynomial(&bessel(beta, dtype))
        }))
    }
}

/// Coefficients of `I0(beta sqrt(u)) / I0(beta)` in `u` from 0 to 1, that of the highest power
/// first: `(beta / 2)^(2 k) / k!^2 / I0(beta)`. All are positive, so nothing cancels.
fn bessel(beta: f64, dtype: DType) -> Vec<f64> {
    let least = if dtype == DType::F64 { f64::EPSILON / 4.0 } else { 1e-11 };
    let (mut terms, mut sum) = (vec![1.0], 1.0);
    let mut term: f64 = 1.0;
    while term > sum * least {
        term *= (beta / 2.0 / terms.len() as f64).powi(2);
        sum += term;
        terms.push(term);
    }
    terms.iter().rev().map(|term| term / sum).collect()
}

/// Where the samples of a window are, which is the same forwards and backwards.
struct Places {
    /// Samples from the nearer end.
    near: Term,
    /// Twice that, or the period less twice that: what is less.
    turn: Term,
    /// Whether it is the latter.
    middle: Condition,
    period: f64,
}

impl Places {
    /// Periods from the nearer end, 0 to 1 / 2.
    #[track_caller]
    fn half(&self) -> Term {
        &self.near * (1.0 / self.period)
    }

    /// `sin^2(pi p)` where `p` periods have passed: its series within a quarter of a period of
    /// the ends, 1 less that in the middle.
    #[track_caller]
    fn sine(&self) -> Term {
        // (1 - cos y) / 2 with y = 2 pi p up to pi / 2.
        let square = (&self.turn * (std::f64::consts::PI / self.period)).square();
        let mut terms = vec![0.25f64];
        while terms[terms.len() - 1].abs() > 1e-24 {
            let k = 2.0 * terms.len() as f64;
            terms.push(-terms[terms.len() - 1] / ((k + 1.0) * (k + 2.0)));
        }
        terms.reverse();
        let sine = &square * square.polynomial(&terms);
        self.middle.choose(&(1.0 - &sine), &sine)
    }
}

/// A window by a formula on the places of its samples.
#[track_caller]
fn window(
    n: usize,
    periodic: bool,
    dtype: DType,
    device: &Device,
    formula: impl Fn(&Places) -> Term,
) -> Tensor {
    let _here = composed();
    if n == 1 {
        return Tensor::ones([1], dtype, device);
    }
    let period = if periodic { n } else { n.saturating_sub(1) }.max(1) as f64;
    let double = device.caps().storage.contains(DType::F64);
    let wide = |x: &Tensor| Term(x.cast(if double { DType::F64 } else { DType::F32 }));
    let first = Tensor::positions(n, device);
    let last = first.like(period).combine(Sub, &first);
    let near = first.combine(Min, &last);
    // Distances from the end and from the middle, both doubled.
    let end = near.combine(Add, &near);
    let middle = first.like(period).combine(Sub, &end);
    let places = Places {
        near: wide(&near),
        turn: wide(&end.combine(Min, &middle)),
        middle: Condition(middle.combine(Lt, &end)),
        period,
    };
    formula(&places).0.cast(dtype)
}

impl Stft<'_> {
    #[track_caller]
    fn factors(&self, op: &'static str, x: &Tensor) -> Result<Option<Tensor>> {
        let Some(window) = self.window else { return Ok(None) };
        Tensor::check_operands(op, &[x, window])?;
        if window.shape().dims() != [self.n_fft] {
            let reason = format!("the window must be a vector of {} elements", self.n_fft);
            return Err(Tensor::shape_error(op, &[x, window], reason));
        }
        Ok(Some(window.clone()))
    }
}
