//! What the programs in `bin` share.

use std::time::Instant;
use zyx::{DType, Device, Result, Tensor};

/// Numbers between `-largest` and `largest` that look random.
///
/// # Errors
/// When the device fails.
pub fn data(
    dims: &[usize],
    (dtype, largest): (DType, f64),
    seed: f64,
    device: &Device,
) -> Result<Tensor> {
    let n = dims.iter().product();
    let x = Tensor::iota(n, DType::F32, device) * (0.731 + seed);
    let x = ((x.sin() * 43_758.547).sin() * largest).reshape(dims.to_vec())?.cast(dtype);
    x.realize()?;
    Ok(x)
}

/// The median microseconds of a computation, whose launches have become a list that repeats, and which is
/// measured for so many milliseconds.
///
/// # Errors
/// When the computation or the device fails.
pub fn median(device: &Device, milliseconds: u128, one: impl Fn() -> Result<()>) -> Result<f64> {
    for _ in 0..6 {
        one()?;
    }
    device.synchronize()?;
    let (mut times, start) = (Vec::new(), Instant::now());
    while times.len() < 5 || times.len() < 15 && start.elapsed().as_millis() < milliseconds {
        let start = Instant::now();
        for _ in 0..10 {
            one()?;
        }
        device.synchronize()?;
        times.push(start.elapsed().as_secs_f64() * 1e5);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
