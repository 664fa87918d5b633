//! Times with and without a pass and a row of another crate: `cargo run --release -p extension`.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use extension::{MAX_BEFORE_EXP, register_highest};
use std::time::{Duration, Instant};
use zyx::{Device, Result, Tensor};

/// Best time of some calls.
fn time(device: &Device, f: &dyn Fn() -> Result<Tensor>) -> Result<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..20 {
        let start = Instant::now();
        f()?.realize()?;
        device.synchronize()?;
        best = best.min(start.elapsed());
    }
    Ok(best)
}

fn main() -> Result<()> {
    let device = zyx::device()?;
    let numbers = |shape: &[usize]| -> Result<Tensor> {
        let n: usize = shape.iter().product();
        let x = Tensor::arange(0f32, n as f32, 1.0, &device)?.sin().reshape(shape)?;
        x.realize()?;
        Ok(x)
    };

    let x = numbers(&[4, 1 << 16])?;
    let rows: Vec<Tensor> = (0..4).map(|row| x.select_index(0, row)).collect::<Result<_>>()?;
    rows.iter().try_for_each(Tensor::realize)?;
    let largest = || rows[1..].iter().try_fold(rows[0].exp(), |y, row| y.maximum(row.exp()));
    largest()?.realize()?;
    device.tune(Duration::from_secs(20))?;
    let before = time(&device, &largest)?;
    device.register_pass(&MAX_BEFORE_EXP)?;
    device.tune(Duration::from_secs(20))?;
    let after = time(&device, &largest)?;
    println!("pass {}: {before:?}, then {after:?}\n{}", MAX_BEFORE_EXP.name, largest()?.explain()?);

    let x = numbers(&[1024, 1000])?;
    let highest = || x.cumsum(1)?.max(1);
    let before = time(&device, &highest)?;
    register_highest(&device)?;
    let after = time(&device, &highest)?;
    println!("row highest: {before:?}, then {after:?}\n{}", highest()?.explain()?);
    Ok(())
}
