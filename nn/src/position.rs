//! Positions in a sequence: [`RotaryEmbedding`] and [`SinusoidalPositions`].

use crate::{Forward, Init, Module, Path, Visitor};
use zyx_core::{DType, Device, Result, Tensor};

/// Which two features a rotation turns together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RotaryPairs {
    /// Feature `i` with feature `i + width / 2`: Llama and GPT-NeoX in their published weights.
    #[default]
    Halves,
    /// Feature `2 i` with `2 i + 1`: the paper, and GPT-J.
    Neighbours,
}

/// Rotary position embedding (Su et al. 2021): pairs of features of queries and keys are turned
/// by an angle proportional to the position, so that products depend on distances alone.
///
/// ```
/// use zyx::nn::RotaryEmbedding;
/// use zyx::{DType, Tensor};
/// let device = zyx::device()?;
/// let rotary = RotaryEmbedding::new(4)?;
/// let x = Tensor::ones([1, 3, 4], DType::F32, &device);
/// let y = rotary.rotate(&x, 0)?;
/// // The first position is not turned; a turn keeps lengths.
/// assert_eq!(y.select_index(1, 0)?.to_vec::<f32>()?, [1.0; 4]);
/// assert!((y.square().sum(..)?.item::<f32>()? - 12.0).abs() < 1e-5);
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RotaryEmbedding {
    /// Features that are turned, the first of each head: an even number.
    pub width: usize,
    /// The angle of pair `i` at position `p` is `p base^(-2 i / width)`; 10000.
    pub base: f64,
    /// Which features are pairs.
    pub pairs: RotaryPairs,
}

impl RotaryEmbedding {
    /// Of heads of `width` features.
    ///
    /// # Errors
    /// When the width is odd or 0.
    #[track_caller]
    pub fn new(width: usize) -> Result<RotaryEmbedding> {
        if width == 0 || !width.is_multiple_of(2) {
            return Err(Init::refuse(
                "RotaryEmbedding",
                format!("a width of {width} has no pairs"),
            ));
        }
        Ok(RotaryEmbedding { width, base: 1e4, pairs: RotaryPairs::default() })
    }

    /// `[.., steps, features]` with the first step at position `start`; features beyond the width
    /// stay as they are.
    ///
    /// # Errors
    /// Below rank 2, or with fewer features than the width.
    #[track_caller]
    pub fn rotate(&self, x: &Tensor, start: usize) -> Result<Tensor> {
        let Some(&[steps, features]) = x.shape().last_chunk::<2>() else {
            let reason = format!("needs steps and features, not shape {}", x.shape());
            return Err(Init::refuse("RotaryEmbedding", reason));
        };
        if features < self.width || self.width == 0 || !self.width.is_multiple_of(2) {
            let reason = format!("a width of {} and {features} features", self.width);
            return Err(Init::refuse("RotaryEmbedding", reason));
        }
        let wide = x.dtype().accumulator();
        let angle = angles(steps, start, self.width, self.base, wide, x.device())?;
        let (sin, cos) = (angle.sin(), angle.cos());
        let turned = x.slice(-1, 0..self.width)?.cast(wide);
        let half = self.width / 2;
        let lead = &x.shape()[..x.rank() - 1];
        let y = match self.pairs {
            RotaryPairs::Halves => {
                let (a, b) = (turned.slice(-1, 0..half)?, turned.slice(-1, half..)?);
                let (a, b) = turn(&a, &b, &sin, &cos)?;
                Tensor::cat(&[&a, &b], -1)?
            }
            RotaryPairs::Neighbours => {
                let pairs = turned.reshape([lead, &[half, 2]].concat())?;
                let (a, b) = (pairs.select_index(-1, 0)?, pairs.select_index(-1, 1)?);
                let (a, b) = turn(&a, &b, &sin, &cos)?;
                Tensor::stack(&[&a, &b], -1)?.reshape([lead, &[self.width]].concat())?
            }
        };
        let y = y.cast(x.dtype());
        match features == self.width {
            true => Ok(y),
            false => Tensor::cat(&[&y, &x.slice(-1, self.width..)?], -1),
        }
    }
}

#[track_caller]
fn turn(a: &Tensor, b: &Tensor, sin: &Tensor, cos: &Tensor) -> Result<(Tensor, Tensor)> {
    Ok((a.mul(cos)?.sub(b.mul(sin)?)?, b.mul(cos)?.add(a.mul(sin)?)?))
}

/// `[steps, width / 2]`: position times `base^(-2 i / width)`.
#[track_caller]
fn angles(
    steps: usize,
    start: usize,
    width: usize,
    base: f64,
    dtype: DType,
    device: &Device,
) -> Result<Tensor> {
    let frequency = |i: usize| base.powf(-2.0 * i as f64 / width as f64);
    let frequencies: Vec<f64> = (0..width / 2).map(frequency).collect();
    let frequencies = match dtype {
        DType::F64 => Tensor::from_slice(&frequencies, [width / 2], device)?,
        _ => {
            let single: Vec<f32> = frequencies.iter().map(|&x| x as f32).collect();
            Tensor::from_slice(&single, [width / 2], device)?
        }
    };
    let position = Tensor::iota(steps, DType::I64, device).add(start as i64)?.cast(dtype);
    position.unsqueeze(1)?.mul(frequencies)
}

/// Adds sines and cosines of the position to `[.., steps, width]` (Vaswani et al. 2017): feature
/// `2 i` has the sine, `2 i + 1` the cosine of `position 10000^(-2 i / width)`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SinusoidalPositions;

impl SinusoidalPositions {
    /// The table `[steps, width]` from position `start` on.
    ///
    /// ```
    /// use zyx::nn::SinusoidalPositions;
    /// use zyx::DType;
    /// let device = zyx::device()?;
    /// let table = SinusoidalPositions::table(2, 4, 0, DType::F32, &device)?;
    /// assert_eq!(table.select_index(0, 0)?.to_vec::<f32>()?, [0.0, 1.0, 0.0, 1.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the width is odd, or the device fails.
    #[track_caller]
    pub fn table(
        steps: usize,
        width: usize,
        start: usize,
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        if !width.is_multiple_of(2) || !dtype.is_float() || width > 1 << 24 {
            let reason = format!("a table of width {width} in {dtype}");
            return Err(Init::refuse("SinusoidalPositions", reason));
        }
        let angle = angles(steps, start, width, 1e4, dtype.accumulator(), device)?;
        let both = Tensor::stack(&[&angle.sin(), &angle.cos()], -1)?;
        Ok(both.reshape([steps, width])?.cast(dtype))
    }
}

impl Module for SinusoidalPositions {
    fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
}

impl Forward for SinusoidalPositions {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let Some(&[steps, width]) = x.shape().last_chunk::<2>() else {
            let reason = format!("needs steps and features, not shape {}", x.shape());
            return Err(Init::refuse("SinusoidalPositions", reason));
        };
        x.add(SinusoidalPositions::table(steps, width, 0, x.dtype(), x.device())?)
    }
}
