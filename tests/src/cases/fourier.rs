//! Fourier transforms of many lengths and their gradients beside sums in `f64`.

use crate::rng::Rng;
use std::f64::consts::TAU;
use zyx_core::{DType, Device, FftNorm, Result, Tensor};

/// Frequencies of long transforms that are computed.
const SAMPLES: usize = 40;
/// Most roundings of the root of the mean square that an element may be away, and more for each bit
/// of the length.
const ROUNDINGS: (f64, f64) = (4.0, 0.7);

/// Real and imaginary part.
pub type Complex = (f64, f64);

/// Cosine and sine of `t / n` turns, reduced to an eighth of a turn in integers.
fn root(t: u64, n: u64) -> Complex {
    let quarter = (8 * t + n) / (2 * n);
    let rest = (4 * t) as f64 - (quarter * n) as f64;
    let (sin, cos) = (rest / (4 * n) as f64 * TAU).sin_cos();
    match quarter % 4 {
        0 => (cos, sin),
        1 => (-sin, cos),
        2 => (-cos, -sin),
        _ => (sin, -cos),
    }
}

/// `sum x[j] exp(-+ 2 pi i j k / n)`, with what additions lose.
pub fn frequency(x: &[Complex], k: usize, inverse: bool) -> Complex {
    let n = x.len() as u64;
    let (mut sums, mut lost) = ([0.0f64; 2], [0.0f64; 2]);
    for (j, x) in x.iter().enumerate() {
        let (cos, sin) = root(j as u64 * k as u64 % n, n);
        let sin = if inverse { sin } else { -sin };
        for (i, term) in [x.0 * cos, -x.1 * sin, x.0 * sin, x.1 * cos].into_iter().enumerate() {
            let before = sums[i / 2];
            let after = before + term;
            let (large, small) =
                if before.abs() > term.abs() { (before, term) } else { (term, before) };
            lost[i / 2] += small - (after - large);
            sums[i / 2] = after;
        }
    }
    (sums[0] + lost[0], sums[1] + lost[1])
}

fn samples(n: usize, seed: u64) -> Vec<usize> {
    let mut rng = Rng::new(seed);
    if n <= SAMPLES { (0..n).collect() } else { (0..SAMPLES).map(|_| rng.below(n)).collect() }
}

/// What a device holds of numbers, and a tensor of them.
pub fn random(
    dims: &[usize],
    dtype: DType,
    seed: u64,
    device: &Device,
) -> Result<(Vec<f64>, Tensor)> {
    let mut rng = Rng::new(seed);
    let data: Vec<f32> =
        (0..dims.iter().product()).map(|_| (rng.between(-1.0, 1.0) * 3f64.sqrt()) as f32).collect();
    let tensor = Tensor::from_slice(&data, dims, device)?.cast(dtype).tracked();
    Ok((data.into_iter().map(f64::from).collect(), tensor))
}

/// Elements in `f64`, which the device need not have.
pub fn values(x: &Tensor) -> Result<Vec<f64>> {
    match x.dtype() {
        DType::F64 => x.to_vec(),
        _ => Ok(x.to_vec::<f32>()?.into_iter().map(f64::from).collect()),
    }
}

/// Two elements at a time.
pub fn pairs(x: &[f64]) -> Vec<Complex> {
    x.chunks(2).map(|pair| (pair[0], pair[1])).collect()
}

/// Without imaginary parts.
pub fn real(x: &[f64]) -> Vec<Complex> {
    x.iter().map(|&x| (x, 0.0)).collect()
}

/// Fails unless numbers are near others whose root of the mean square is given.
struct Judge {
    dtype: DType,
    worst: (f64, String),
}

impl Judge {
    fn near(&mut self, name: &str, n: usize, scale: f64, found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len(), "{name} of {n}");
        let epsilon = if self.dtype == DType::F64 { f64::EPSILON } else { f32::EPSILON.into() };
        let allowed = ROUNDINGS.0 + ROUNDINGS.1 * (n as f64).log2();
        for (i, (a, b)) in found.iter().zip(expected).enumerate() {
            let error = (a - b).abs() / (scale * epsilon);
            if error > self.worst.0 {
                self.worst = (error, format!("{name} of {n}"));
            }
            assert!(
                error <= allowed,
                "{name} of {n}, {}: element {i} is {a}, not {b}: {error:.1} roundings, {allowed:.1} allowed",
                self.dtype
            );
        }
    }
}

/// The rows of `[2, n]` pairs at some places.
fn picked(x: &[Complex], n: usize, places: &[usize]) -> Vec<f64> {
    let rows = x.chunks(n);
    rows.flat_map(|row| places.iter().flat_map(|&k| [row[k].0, row[k].1])).collect()
}

fn expected(x: &[Complex], n: usize, places: &[usize], inverse: bool) -> Vec<f64> {
    let rows = x.chunks(n);
    rows.flat_map(|row| places.iter().map(move |&k| frequency(row, k, inverse)))
        .flat_map(|y| [y.0, y.1])
        .collect()
}

fn complex(n: usize, judge: &mut Judge, device: &Device) -> Result<()> {
    let root = (n as f64).sqrt();
    let places = samples(n, 7);
    let (data, x) = random(&[2, n, 2], judge.dtype, 1, device)?;
    let (weights, w) = random(&[2, n, 2], judge.dtype, 2, device)?;
    for inverse in [false, true] {
        let y = match inverse {
            false => x.fft(None, -1, FftNorm::Backward)?,
            true => x.ifft(None, -1, FftNorm::Forward)?,
        };
        let name = if inverse { "ifft" } else { "fft" };
        let found = picked(&pairs(&values(&y)?), n, &places);
        judge.near(name, n, root, &found, &expected(&pairs(&data), n, &places, inverse));
        let dx = y.mul(&w)?.sum(..)?.grad(&[&x])?.remove(0);
        let found = picked(&pairs(&values(dx.as_ref().unwrap_or(&w))?), n, &places);
        let weighted = expected(&pairs(&weights), n, &places, !inverse);
        judge.near(&format!("gradient of {name}"), n, root, &found, &weighted);
    }
    // Along an axis that is not the last.
    let y = x.transpose(0, 1)?.fft(None, 0, FftNorm::Backward)?.transpose(0, 1)?;
    let found = picked(&pairs(&values(&y)?), n, &places);
    judge.near("fft across", n, root, &found, &expected(&pairs(&data), n, &places, false));
    Ok(())
}

fn reals(n: usize, judge: &mut Judge, device: &Device) -> Result<()> {
    let root = (n as f64).sqrt();
    let m = n / 2 + 1;
    let (data, x) = random(&[2, n], judge.dtype, 3, device)?;
    let (weights, w) = random(&[2, m, 2], judge.dtype, 4, device)?;
    let places = samples(m, 8);
    let y = x.rfft(None, -1, FftNorm::Backward)?;
    let found = picked(&pairs(&values(&y)?), m, &places);
    judge.near("rfft", n, root, &found, &expected(&real(&data), n, &places, false));
    // Real parts of what the other frequencies' gradients being zero gives.
    let half: Vec<Complex> = pairs(&weights);
    let padded: Vec<Complex> = half
        .chunks(m)
        .flat_map(|row| row.iter().copied().chain(std::iter::repeat_n((0.0, 0.0), n - m)))
        .collect();
    let places = samples(n, 9);
    let dx = y.mul(&w)?.sum(..)?.grad(&[&x])?.remove(0).map_or(Ok(vec![]), |dx| values(&dx))?;
    let found = picked(&real(&dx), n, &places);
    let mut weighted = expected(&padded, n, &places, true);
    weighted.iter_mut().skip(1).step_by(2).for_each(|x| *x = 0.0);
    judge.near("gradient of rfft", n, root, &found, &weighted);

    // The whole spectrum; imaginary parts at both ends count for nothing.
    let whole: Vec<Complex> = half
        .chunks(m)
        .flat_map(|row| {
            let mut row = row.to_vec();
            row[0].1 = 0.0;
            if n.is_multiple_of(2) {
                row[m - 1].1 = 0.0;
            }
            let rest: Vec<Complex> = (m..n).map(|k| (row[n - k].0, -row[n - k].1)).collect();
            [row, rest].concat()
        })
        .collect();
    let y = w.irfft(Some(n), -1, FftNorm::Forward)?;
    let found = picked(&real(&values(&y)?), n, &places);
    let mut sums = expected(&whole, n, &places, true);
    sums.iter_mut().skip(1).step_by(2).for_each(|x| *x = 0.0);
    judge.near("irfft", n, (2.0 * n as f64).sqrt(), &found, &sums);
    let dw = y.mul(&x)?.sum(..)?.grad(&[&w])?.remove(0).map_or(Ok(vec![]), |dw| values(&dw))?;
    let places = samples(m, 10);
    let mut sums = expected(&real(&data), n, &places, false);
    for (i, pair) in sums.chunks_mut(2).enumerate() {
        let k = places[i % places.len()];
        if k == 0 || 2 * k == n {
            pair[1] = 0.0;
        } else {
            pair.iter_mut().for_each(|x| *x *= 2.0);
        }
    }
    judge.near("gradient of irfft", n, 2.0 * root, &picked(&pairs(&dw), m, &places), &sums);
    Ok(())
}

/// Lengths of one and of several stages, of a matrix and of a convolution.
const SHORT: [usize; 6] = [1, 2, 6, 60, 67, 128];
/// Of three stages, of shared storage that is full, of a convolution and of two kernels.
const LONG: [usize; 6] = [512, 1000, 1009, 4096, 10010, 65536];

/// Transforms in `f32`; long ones where neither compiling nor computing them takes minutes.
pub fn transforms(device: &Device) {
    let slow = device.spec().starts_with("reference")
        || device.caps().simt && device.caps().has_few_threads();
    let long: &[usize] = if slow { &[] } else { &LONG };
    let lengths: Vec<usize> = SHORT.iter().chain(long).copied().collect();
    of_lengths(device, DType::F32, &lengths).expect("transforms of numbers");
}

/// Transforms of complex and of real numbers, and back, with gradients. Gives the most roundings that
/// an element was away, and of what.
pub fn of_lengths(device: &Device, dtype: DType, lengths: &[usize]) -> Result<(f64, String)> {
    let mut judge = Judge { dtype, worst: (0.0, String::new()) };
    for &n in lengths {
        complex(n, &mut judge, device)?;
        reals(n, &mut judge, device)?;
    }
    Ok(judge.worst)
}
