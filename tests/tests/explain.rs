//! `Tensor::explain` tells what the counters count, and why values lie between launches.

mod common;

use common::device;
use zyx_tests::zyx_core::{DType, Device, Explanation, Result, Rng, Tensor};

fn random(dims: &[usize], device: &Device) -> Tensor {
    let x = Tensor::randn(dims, DType::F32, &mut Rng::seed(dims.len() as u64), device);
    let x = x.expect("a shape").contiguous();
    x.realize().expect("memory");
    x
}

/// Explains before and after computing; both must have as many launches as there were.
fn explained(y: &Tensor) -> Result<Explanation> {
    let device = y.device();
    let pending = y.explain()?;
    let before = device.stats();
    y.realize()?;
    assert_eq!(device.stats().since(&before).launches, pending.launches.len() as u64);
    let realized = y.explain()?;
    assert_eq!(pending.to_string(), realized.to_string());
    Ok(realized)
}

/// Why the only value that launch `number` reads of another one is stored.
fn reason(explanation: &Explanation, number: usize) -> String {
    let kernels = explanation.launches[number].kernels.iter();
    let between: Vec<_> =
        kernels.flat_map(|kernel| &kernel.reads).filter(|v| v.launch.is_some()).collect();
    assert_eq!(between.len(), 1, "{explanation}");
    between[0].reason.clone().expect("a stored value has a reason")
}

#[test]
fn launches_and_fused_operations_are_told() -> Result<()> {
    let device = device();
    let softmax = explained(&random(&[64, 96], &device).softmax(-1)?)?;
    assert_eq!(softmax.launches.len(), 1, "{softmax}");
    let kernel = &softmax.launches[0].kernels[0];
    let fused: Vec<&str> = kernel.fused.iter().map(|op| op.0.as_str()).collect();
    assert!(fused.contains(&"exp") && fused.contains(&"reduce max over 1"), "{softmax}");
    assert_eq!((kernel.reads.len(), kernel.writes.len()), (1, 1), "{softmax}");
    assert_eq!(kernel.writes[0].bytes(), 64 * 96 * 4);
    assert!(softmax.to_string().contains("it is a result"), "{softmax}");
    Ok(())
}

#[test]
fn reasons_against_fusion_are_told() -> Result<()> {
    let device = device();
    let (x, w) = (random(&[64, 96], &device), random(&[96, 96], &device));
    let two = explained(&x.matmul(&w)?.matmul(&w)?)?;
    assert_eq!(two.launches.len(), 2, "{two}");
    assert!(reason(&two, 1).contains("a library kernel computes it"), "{two}");
    assert_eq!(two.launches[0].kernels[0].operations, 2.0 * 64.0 * 96.0 * 96.0);

    let scanned = explained(&x.cumsum(1)?.exp())?;
    assert!(reason(&scanned, 1).contains("a scan"), "{scanned}");

    // The sum of each column divides every row.
    let normal = explained(&x.div(x.sum_keepdim(0)?)?)?;
    assert!(reason(&normal, 1).contains("times over"), "{normal}");
    Ok(())
}

#[test]
fn independent_kernels_share_a_launch() -> Result<()> {
    let device = device();
    let (x, y) = (random(&[64], &device), random(&[5, 7], &device));
    let (a, b) = (x.exp(), y.sum(1)?);
    Tensor::realize_all([&a, &b])?;
    let both = a.explain()?;
    assert_eq!((both.launches.len(), both.launches[0].kernels.len()), (1, 2), "{both}");
    Ok(())
}

#[test]
fn data_from_outside_took_no_launch() -> Result<()> {
    let x = Tensor::from_slice(&[1f32, 2.0], [2], &device())?;
    assert!(x.explain()?.launches.is_empty());
    Ok(())
}

#[test]
fn while_profiling_launches_have_times_and_their_part_of_the_roofline() -> Result<()> {
    let device = device();
    device.set_profiling(true);
    let y = random(&[512, 512], &device).exp();
    y.realize()?;
    let explanation = y.explain()?;
    let speeds = explanation.speeds.expect("speeds are measured while profiling");
    assert!(speeds.bytes > 1e6 && speeds.operations > 1e6, "{explanation}");
    let launch = &explanation.launches[0];
    assert!(launch.time.is_some_and(|time| time.as_nanos() > 0), "{explanation}");
    assert!(launch.roofline.is_some_and(|part| part > 0.0), "{explanation}");
    // Measuring the device left no trace in the profile.
    assert!(device.profile().iter().all(|row| !row.name.contains("1024x1024")));
    Ok(())
}
