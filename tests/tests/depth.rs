//! Graphs of up to a million ops in a row: no recursion, linear time, bounded memory.

mod common;

use common::device;
use std::time::{Duration, Instant};
use zyx_tests::zyx_core::{Result, Tensor};

/// A chain that alternates two ops, from `x`.
fn chain(x: &Tensor, n: usize) -> Result<Tensor> {
    let mut y = x.clone();
    for i in 0..n {
        y = if i % 2 == 0 { y.neg() } else { y.add(x)? };
    }
    Ok(y)
}

/// The shortest of a few runs, since others use the machine too.
fn fastest(mut f: impl FnMut() -> Result<()>) -> Result<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let start = Instant::now();
        f()?;
        best = best.min(start.elapsed());
    }
    Ok(best)
}

#[test]
fn a_million_ops_build_differentiate_and_drop() -> Result<()> {
    let device = device();
    let x = Tensor::new([1f32, 2.0], &device)?.tracked();
    let y = chain(&x, 1_000_000)?;
    let dx = y.grad(&[&x])?.remove(0).expect("y depends on x");
    drop(y);
    // Negations and additions of a constant in turn: an even number of signs.
    assert_eq!(dx.to_vec::<f32>()?, [1.0, 1.0]);
    Ok(())
}

#[test]
fn building_and_dropping_take_linear_time() -> Result<()> {
    let device = device();
    let x = Tensor::new([1f32, 2.0], &device)?;
    let per_op = |n: usize| -> Result<f64> {
        Ok(fastest(|| chain(&x, n).map(drop))?.as_secs_f64() / n as f64)
    };
    let (short, long) = (per_op(10_000)?, per_op(1_000_000)?);
    // Quadratic time would make this factor a hundred; caches make it two or three.
    assert!(long < 12.0 * short, "{short:e} s an op in a short chain, {long:e} in a long one");
    Ok(())
}

#[test]
fn long_chains_compute() -> Result<()> {
    let device = device();
    let x = Tensor::new([1f32, 2.0], &device)?;
    for n in [1_000, 100_000, 1_000_000] {
        // Negation and addition in turn: 1, -1, 0, 0, 1, ... returns to x every four ops.
        let y = chain(&x, n)?;
        assert_eq!(y.to_vec::<f32>()?, x.to_vec::<f32>()?, "{n} ops");
    }
    Ok(())
}

#[test]
fn computing_takes_linear_time() -> Result<()> {
    let device = device();
    let x = Tensor::new([1f32, 2.0], &device)?;
    let per_op = |n: usize| -> Result<f64> {
        let mut longer = 0;
        let time = fastest(|| {
            // Each run is planned: it is of a length that was not seen before.
            longer += 1;
            chain(&x, n + longer)?.realize()
        })?;
        Ok(time.as_secs_f64() / n as f64)
    };
    // The shorter chain is long enough for several kernels.
    let (short, long) = (per_op(20_000)?, per_op(500_000)?);
    // Quadratic time would make this factor 25.
    assert!(long < 15.0 * short, "{short:e} s an op in a short chain, {long:e} in a long one");
    Ok(())
}

#[test]
fn differentiating_takes_linear_time() -> Result<()> {
    let device = device();
    let x = Tensor::new([1f32, 2.0], &device)?.tracked();
    let per_op = |n: usize| -> Result<f64> {
        let y = chain(&x, n)?;
        let time = fastest(|| y.grad(&[&x]).map(drop))?;
        Ok(time.as_secs_f64() / n as f64)
    };
    let (short, long) = (per_op(5_000)?, per_op(500_000)?);
    assert!(long < 15.0 * short, "{short:e} s an op in a short chain, {long:e} in a long one");
    Ok(())
}

#[test]
fn long_chains_with_gradients_compute() -> Result<()> {
    let device = device();
    let x = Tensor::new([1f32, 2.0], &device)?.tracked();
    let mut y = x.clone();
    for _ in 0..20_000 {
        y = y.mul(1.0001)?;
    }
    let dx = y.grad(&[&x])?.remove(0).expect("y depends on x");
    let want = 1.0001f64.powi(20_000);
    for got in dx.to_vec::<f32>()? {
        assert!((got as f64 / want - 1.0).abs() < 20_000.0 * f32::EPSILON as f64, "{got} {want}");
    }
    Ok(())
}
