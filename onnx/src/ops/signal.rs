//! Windows and transforms of signals.

use super::{dtype_attribute, one};
use crate::run::Call;
use crate::value::Value;
use zyx_core::{DType, FftNorm, Result, Tensor};

type Values = Result<Vec<Value>>;

/// A window that is a sum of cosines with these weights.
pub(super) fn window(call: &Call<'_>, weights: [f64; 3]) -> Values {
    let n = usize::try_from(call.int(0)?).map_err(|_| call.error("its size is negative"))?;
    let dtype = dtype_attribute(call, "output_datatype")?.unwrap_or(DType::F32);
    let period = if call.int_or("periodic", 1)? != 0 { n } else { n.saturating_sub(1).max(1) };
    let value = |i: usize| {
        let turn = std::f64::consts::TAU * i as f64 / period as f64;
        weights[0] - weights[1] * turn.cos() + weights[2] * (2.0 * turn).cos()
    };
    let values = call.budget().collect(n, (0..n).map(value))?;
    one(Tensor::from_slice(&values, [n], call.device())?.cast(dtype))
}

/// A transform of complex numbers as pairs, forwards or backwards; of real ones, half of the result if asked for.
pub(super) fn dft(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let (inverse, onesided) = (call.flag("inverse")?, call.flag("onesided")?);
    let axis = match call.opset() >= 20 {
        true => call.optional_ints(2)?.and_then(|axis| axis.first().copied()).unwrap_or(-2),
        false => call.int_or("axis", 1)?,
    };
    let axis = call.axis(axis, x.rank())?;
    let length = call.optional_ints(1)?.and_then(|n| n.first().copied());
    let length = length.map(|n| usize::try_from(n).map_err(|_| call.error("a length is negative")));
    let n = length.transpose()?;
    let is_real = x.shape().last() == Some(&1);
    let at = axis as isize;
    if inverse && onesided {
        // Half of a spectrum gives real numbers.
        return one(x.irfft(n, at, FftNorm::Backward)?.unsqueeze(-1)?);
    }
    if onesided {
        return one(x.squeeze(-1)?.rfft(n, at, FftNorm::Backward)?);
    }
    let pairs = if is_real { x.pad(last_pair(x.rank()))? } else { x };
    one(if inverse {
        pairs.ifft(n, at, FftNorm::Backward)?
    } else {
        pairs.fft(n, at, FftNorm::Backward)?
    })
}

/// An imaginary part of zero.
fn last_pair(rank: usize) -> Vec<(usize, usize)> {
    let mut padding = vec![(0, 0); rank];
    if let Some(last) = padding.last_mut() {
        *last = (0, 1);
    }
    padding
}

pub(super) fn stft(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let step = usize::try_from(call.int(1)?).ok().filter(|&step| step > 0);
    let step = step.ok_or_else(|| call.error("its step is not positive"))?;
    let window = call.optional_tensor(2)?;
    let length = match call.optional(3) {
        Some(_) => call.sizes(&[call.int(3)?])?[0],
        None => window.as_ref().map_or(0, Tensor::numel),
    };
    let onesided = call.int_or("onesided", 1)? != 0;
    let is_real = x.rank() < 3 || x.shape()[2] == 1;
    let real = |x: &Tensor| if x.rank() == 3 { x.squeeze(-1) } else { Ok(x.clone()) };
    if is_real {
        let mut frames = real(&x)?.unfold(1, length, step)?;
        if let Some(window) = &window {
            frames = frames.mul(window)?;
        }
        if onesided {
            return one(frames.rfft(None, -1, FftNorm::Backward)?);
        }
        let frames = frames.unsqueeze(-1)?;
        let pairs = frames.pad(last_pair(frames.rank()))?;
        return one(pairs.fft(None, 2, FftNorm::Backward)?);
    }
    let parts: Vec<Tensor> = [0, 1]
        .into_iter()
        .map(|part| {
            let frames = x.select_index(2, part)?.unfold(1, length, step)?;
            match &window {
                Some(window) => frames.mul(window),
                None => Ok(frames),
            }
        })
        .collect::<Result<_>>()?;
    one(Tensor::stack(&parts.iter().collect::<Vec<_>>(), -1)?.fft(None, 2, FftNorm::Backward)?)
}

/// Triangles over frequencies, equally far apart in mels.
pub(super) fn mel_weights(call: &Call<'_>) -> Values {
    let (bins, length, rate) = (call.int(0)?, call.int(1)?, call.int(2)?);
    let (low, high) = (call.float(3)?, call.float(4)?);
    let (bins, length) = (bins.max(0) as usize, length.max(0) as usize);
    let dtype = dtype_attribute(call, "output_datatype")?.unwrap_or(DType::F32);
    let rows = length / 2 + 1;
    let mel = |hertz: f64| 2595.0 * (1.0 + hertz / 700.0).log10();
    let (low, high) = (mel(low), mel(high));
    let step = (high - low) / (bins as f64 + 2.0);
    let edge = |i: usize| {
        let hertz = 700.0 * (10f64.powf((i as f64 * step + low) / 2595.0) - 1.0);
        // Edges beyond all rows are one, so that their differences do not overflow.
        ((length as f64 + 1.0) * hertz / rate as f64).floor().clamp(-1e15, 1e15) as i64
    };
    let mut weights = call.budget().room(rows.saturating_mul(bins))?;
    weights.resize(rows * bins, 0f64);
    for bin in 0..bins {
        let (start, peak, end) = (edge(bin), edge(bin + 1), edge(bin + 2));
        for row in 0..rows as i64 {
            let weight = match row {
                row if start == peak && row == peak => 1.0,
                row if (start..=peak).contains(&row) && start < peak => {
                    (row - start) as f64 / (peak - start) as f64
                }
                row if (peak..end).contains(&row) => (end - row) as f64 / (end - peak) as f64,
                _ => 0.0,
            };
            weights[row as usize * bins + bin] = weight;
        }
    }
    one(Tensor::from_slice(&weights, [rows, bins], call.device())?.cast(dtype))
}
