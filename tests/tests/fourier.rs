//! Fourier transforms on the CPU: more lengths than other devices are asked for.

#![allow(clippy::print_stdout, reason = "errors are shown where that is asked for")]

mod common;

use common::device;
use zyx_tests::cases::fourier::{frequency, of_lengths, pairs, random, real, values};
use zyx_tests::zyx_core::{DType, FftNorm, Result, Stft, Tensor};

/// One, radices alone and together, primes, products of them, and a large prime times others.
const LENGTHS: [usize; 33] = [
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    11,
    12,
    13,
    16,
    30,
    64,
    97,
    120,
    128,
    210,
    243,
    263,
    526,
    997,
    1000,
    1009,
    1024,
    2187,
    3 * 1009,
    4096,
    4100,
    10007,
    10010,
    65536,
];
#[test]
fn transforms_of_many_lengths() -> Result<()> {
    for dtype in [DType::F32, DType::F64] {
        let (worst, what) = of_lengths(&device(), dtype, &LENGTHS)?;
        println!("{dtype}: at most {worst:.2} roundings, {what}");
    }
    Ok(())
}

#[test]
fn transforms_of_two_axes_are_two_transforms() -> Result<()> {
    let device = device();
    let (_, x) = random(&[3, 40, 36], DType::F64, 5, &device)?;
    let whole = x.unsqueeze(-1)?.pad([(0, 0), (0, 0), (0, 0), (0, 1)])?;
    let y = whole.fft(None, 1, FftNorm::Backward)?.fft(None, 2, FftNorm::Backward)?;
    let near = |name: &str, a: &Tensor, b: &Tensor| -> Result<()> {
        let worst = a.sub(b)?.abs().max(..)?.to_vec::<f64>()?[0];
        assert!(worst < 1e-12, "{name}: {worst}");
        Ok(())
    };
    near("fft2", &whole.fft2(FftNorm::Backward)?, &y)?;
    let half = x.rfft2(FftNorm::Backward)?;
    near("rfft2", &half, &y.slice(2, ..19)?)?;
    near("irfft2", &half.irfft2(None, FftNorm::Backward)?, &x)?;
    near("ifft2", &y.ifft2(FftNorm::Backward)?, &whole)
}

#[test]
fn frames_are_transformed_and_come_back() -> Result<()> {
    let device = device();
    let (data, x) = random(&[2, 500], DType::F64, 6, &device)?;
    for (n, hop) in [(16, 4), (50, 12), (63, 15), (48, 2), (40, 17), (20, 5)] {
        let window = Tensor::hann_window(n, true, DType::F64, &device);
        let frames = Stft { hop, window: Some(&window), center: false, ..Stft::new(n) };
        let y = x.stft(frames)?;
        let (bins, count) = (n / 2 + 1, y.shape()[2]);
        assert_eq!(y.shape().dims(), [2, bins, (500 - n) / hop + 1, 2]);
        let (found, factors) = (pairs(&values(&y)?), values(&window)?);
        for (row, frame) in [(0, 0), (1, count - 1), (1, 3)] {
            let start = row * 500 + frame * hop;
            let cut: Vec<f64> = (0..n).map(|i| data[start + i] * factors[i]).collect();
            for k in 0..bins {
                let (a, b) =
                    (found[(row * bins + k) * count + frame], frequency(&real(&cut), k, false));
                let distance = (a.0 - b.0).abs().max((a.1 - b.1).abs());
                assert!(distance < 1e-13 * n as f64, "{n}, frame {frame}: {k} is {a:?}, not {b:?}");
            }
        }
        let frames = Stft { hop, window: Some(&window), ..Stft::new(n) };
        let back = x.stft(frames)?.istft(frames, None)?;
        let length = back.shape()[1];
        let worst = back.sub(x.slice(-1, ..length)?)?.abs().max(..)?.to_vec::<f64>()?[0];
        assert!(length > 500 - n && worst < 1e-13 * n as f64, "{n}: {worst} of {length}");
    }
    Ok(())
}

#[test]
fn of_nothing() -> Result<()> {
    let device = device();
    for n in [1, 6, 7, 263, 1024] {
        let x = Tensor::zeros([0, n, 2], DType::F32, &device);
        assert_eq!(x.fft(None, 1, FftNorm::Backward)?.shape().dims(), [0, n, 2]);
        assert!(x.fft(None, 1, FftNorm::Backward)?.to_vec::<f32>()?.is_empty());
        assert!(x.irfft(None, 1, FftNorm::Backward).is_err() == (n == 1));
        let y = Tensor::zeros([n, 0], DType::F32, &device).rfft(None, 0, FftNorm::Ortho)?;
        assert_eq!(y.shape().dims(), [n / 2 + 1, 0, 2]);
        assert!(y.to_vec::<f32>()?.is_empty());
    }
    Ok(())
}
