//! Sums, moments and running sums of a hundred million numbers, against what they are in `f64`.
//!
//! The numbers are 16-bit fractions around 10^4, or equal, so that what is exact can be counted on the
//! host. A sum's relative error is that of one block of its additions ([`LONG_SUM`]), whatever its length
//! and the kernel that a shape takes. That of a variance is twice that of its squares and their sum, and
//! what the mean is wrong by, squared: both are below `VARIANCE`.

use crate::bounds::LONG_SUM;
use zyx_core::{DType, Device, Result, Tensor};

const N: usize = 100_000_000;
/// Bound of variances: `(1e4 * LONG_SUM)^2` of one, where deviations are 1.
const VARIANCE: f64 = 1e-4;

/// Element `i`: each run of 256 has every value once.
fn element(i: usize) -> f64 {
    ((i * 77) % 256) as f64 / 64.0 + 9998.0
}

fn elements(device: &Device) -> Result<Tensor> {
    let step = Tensor::arange(0, N as i64, 1, device)?.mul(77)?.remainder(256)?;
    let x = step.cast(DType::F32).mul(1.0 / 64.0)?.add(9998.0)?;
    x.realize()?;
    Ok(x)
}

/// Mean and variance of the elements at some places.
fn moments(at: impl Iterator<Item = usize> + Clone) -> (f64, f64) {
    let n = at.clone().count() as f64;
    let mean = at.clone().map(element).sum::<f64>() / n;
    (mean, at.map(|i| (element(i) - mean).powi(2)).sum::<f64>() / n)
}

fn check(what: &str, got: f32, want: f64, bound: f64) {
    let error = (f64::from(got) / want - 1.0).abs();
    assert!(error <= bound, "{what}: {got}, not {want}: relative error {error:e}");
}

/// Sums, means, variances and norms of numbers far from zero, of all and along axes.
///
/// # Errors
/// When the device fails.
///
/// # Panics
/// When one is further from the exact value than its bound.
pub fn moments_of_numbers_far_from_zero(device: &Device) -> Result<()> {
    let x = elements(device)?;
    // N is a multiple of 256.
    let (mean, var) = moments(0..256);
    let (n, square) = (N as f64, mean * mean + var);
    check("sum", x.sum(..)?.item()?, n * mean, LONG_SUM);
    check("mean", x.mean(..)?.item()?, mean, LONG_SUM);
    check("var", x.var(.., 1)?.item()?, var * n / (n - 1.0), VARIANCE);
    check("std", x.std(.., 0)?.item()?, var.sqrt(), VARIANCE);
    check("norm", x.norm(..)?.item()?, (n * square).sqrt(), LONG_SUM);
    check("dot", x.dot(&x)?.item()?, n * square, LONG_SUM);
    check("logsumexp", x.logsumexp(..)?.item()?, 9998.0 + 255.0 / 64.0 + tail(), LONG_SUM);
    for [rows, cols] in [[1_000_000, 100], [10_000, 10_000], [100, 1_000_000]] {
        let matrix = x.reshape([rows, cols])?;
        // A few of the results, each counted by itself.
        for (axis, results) in [(0, cols), (1, rows)] {
            let (mean, var) =
                (matrix.mean(axis)?.to_vec::<f32>()?, matrix.var(axis, 0)?.to_vec::<f32>()?);
            for i in (0..results).step_by(results / 4).chain([results - 1]) {
                let want = match axis {
                    0 => moments((0..rows).map(|row| row * cols + i)),
                    _ => moments(i * cols..(i + 1) * cols),
                };
                let what = format!("of {rows} x {cols} over {axis}, {i}");
                check(&format!("mean {what}"), mean[i], want.0, LONG_SUM);
                check(&format!("var {what}"), var[i], want.1, VARIANCE);
            }
        }
    }
    // Statistics of a batch normalisation, and of its groups.
    let batch = x.slice(0, ..1 << 23)?.reshape([32, 16, 1 << 14])?;
    let (channels, groups) = (batch.var([0, 2], 0)?.to_vec::<f32>()?, batch.var([1, 2], 0)?);
    let (mean, var) = moments(0..256);
    channels.iter().for_each(|&got| check("var of a channel", got, var, VARIANCE));
    groups.to_vec::<f32>()?.iter().for_each(|&got| check("var of a group", got, var, VARIANCE));
    check("mean of a batch", batch.mean(..)?.item()?, mean, LONG_SUM);
    Ok(())
}

/// `log(sum(exp(x - max)))` of all elements.
fn tail() -> f64 {
    let terms = (0..256).map(|step| (f64::from(step - 255) / 64.0).exp());
    (terms.sum::<f64>() * (N / 256) as f64).ln()
}

/// Sums and running sums of equal numbers, of all and along axes.
///
/// # Errors
/// When the device fails.
///
/// # Panics
/// When one is further from the exact value than its bound.
pub fn sums_of_equal_numbers_in_every_shape(device: &Device) -> Result<()> {
    let x = Tensor::full([N], 0.1f32, device).contiguous();
    x.realize()?;
    let one = f64::from(0.1f32);
    check("sum", x.sum(..)?.item()?, one * N as f64, LONG_SUM);
    for dims in [[2, N / 2], [N / 2, 2], [100, N / 100], [N / 100, 100], [10_000, 10_000]] {
        let matrix = x.reshape(dims)?;
        for axis in [0, 1] {
            let sums = matrix.sum(axis as isize)?.to_vec::<f32>()?;
            let want = one * dims[axis] as f64;
            sums.iter().for_each(|&got| {
                check(&format!("sum of {dims:?} over {axis}"), got, want, LONG_SUM)
            });
        }
    }
    for [rows, cols] in [[1, N], [100, N / 100], [N / 100, 100]] {
        let matrix = x.reshape([rows, cols])?;
        for (axis, n) in [(0, rows), (1, cols)].into_iter().filter(|&(_, n)| n > 100) {
            let sums = matrix.cumsum(axis as isize)?;
            let at: Vec<i64> = (0..1000).map(|i| (i * (n as i64 - 1)) / 999).collect();
            let at = (Tensor::from_slice(&at, [1000], device)?, at);
            let other = 1 - axis as isize;
            let some = sums.index_select(axis as isize, &at.0)?.slice(other, ..1)?;
            for (got, i) in some.flatten().to_vec::<f32>()?.into_iter().zip(at.1) {
                let what = format!("place {i} of cumsum of {rows} x {cols} along {axis}");
                check(&what, got, one * (i + 1) as f64, LONG_SUM);
            }
        }
    }
    Ok(())
}
