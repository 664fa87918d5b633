//! How many kernels computations take, forwards and backwards: canonical counts.

mod common;

use common::device;
use zyx_tests::zyx_core::{DType, Device, Result, Rng, Tensor};

/// Random numbers, computed, that gradients can be asked for.
fn random(dims: &[usize], device: &Device) -> Tensor {
    let x = Tensor::randn(dims, DType::F32, &mut Rng::seed(dims.len() as u64), device);
    let x = x.expect("a shape").contiguous();
    x.realize().expect("memory");
    x.tracked()
}

/// Launches and temporaries of computing `tensors` together.
fn cost(device: &Device, tensors: &[&Tensor]) -> (u64, u64) {
    let before = device.stats();
    Tensor::realize_all(tensors.iter().copied()).expect("the device computes");
    let stats = device.stats().since(&before);
    (stats.launches, stats.temps)
}

/// Launches of `y` alone and of its gradients alone, from what lies in memory.
fn forward_and_backward(y: &Tensor, wrt: &[&Tensor]) -> Result<(u64, u64)> {
    let device = y.device();
    let cotangent = random(y.shape(), device).detach();
    let gradients: Vec<Tensor> = y.grad_with(&cotangent, wrt)?.into_iter().flatten().collect();
    assert_eq!(gradients.len(), wrt.len());
    let backward = cost(device, &gradients.iter().collect::<Vec<_>>()).0;
    Ok((cost(device, &[y]).0, backward))
}

type Case = (&'static str, Tensor, Vec<Tensor>);

fn cases(device: &Device) -> Result<Vec<Case>> {
    let x = random(&[64, 96], device);
    let (w, b) = (random(&[96], device), random(&[96], device));
    let (matrix, bias) = (random(&[96, 32], device), random(&[32], device));
    let product = || x.matmul(&matrix)?.add(&bias);
    let dense = vec![x.clone(), matrix.clone(), bias.clone()];
    Ok(vec![
        ("softmax", x.softmax(-1)?, vec![x.clone()]),
        ("log_softmax", x.log_softmax(-1)?, vec![x.clone()]),
        (
            "layer_norm",
            x.layer_norm(-1, Some(&w), Some(&b), 1e-5)?,
            vec![x.clone(), w.clone(), b.clone()],
        ),
        ("layer_norm, input alone", x.layer_norm(-1, Some(&w), Some(&b), 1e-5)?, vec![x.clone()]),
        ("rms_norm", x.rms_norm(-1, Some(&w), 1e-5)?, vec![x.clone(), w.clone()]),
        ("matmul, bias, relu", product()?.relu(), dense.clone()),
        ("matmul, bias, gelu", product()?.gelu(), dense.clone()),
        ("matmul, bias, selu", product()?.selu(), dense),
        ("gelu", x.gelu(), vec![x.clone()]),
        ("sum", x.sum(1)?, vec![x.clone()]),
        ("cumsum", x.cumsum(1)?, vec![x.clone()]),
    ])
}

#[test]
fn forward_is_one_kernel() -> Result<()> {
    let device = device();
    for (name, y, _) in cases(&device)? {
        assert_eq!(cost(&device, &[&y]), (1, 0), "{name}");
    }
    Ok(())
}

/// Cases whose backward takes more than one kernel above the forward today, with its count.
const TOO_MANY: &[(&str, u64)] = &[
    ("layer_norm", 4),
    ("matmul, bias, relu", 4),
    ("matmul, bias, gelu", 4),
    ("matmul, bias, selu", 4),
];

#[test]
fn backward_is_one_kernel_more_at_most() -> Result<()> {
    let device = device();
    for (name, y, wrt) in cases(&device)? {
        if TOO_MANY.iter().any(|row| row.0 == name) {
            continue;
        }
        let (forward, backward) = forward_and_backward(&y, &wrt.iter().collect::<Vec<_>>())?;
        assert!(backward <= forward + 1, "{name}: {forward} forward, {backward} backward");
    }
    Ok(())
}

/// Not worse than it is: what the demand of the ignored test below is measured against.
#[test]
fn backward_of_parameters_stays_within_today_s_count() -> Result<()> {
    let device = device();
    for (name, y, wrt) in cases(&device)? {
        let Some((_, today)) = TOO_MANY.iter().find(|row| row.0 == name) else { continue };
        let (_, backward) = forward_and_backward(&y, &wrt.iter().collect::<Vec<_>>())?;
        assert!(backward <= *today, "{name}: {backward} backward, {today} before");
    }
    Ok(())
}

#[test]
#[ignore = "unmet: a sum over rows (bias, gain) and each contraction is a launch of its own, and \
            the pre-activation is computed again: 4 launches where 2 are demanded"]
fn backward_of_parameters_is_one_kernel_more_at_most() -> Result<()> {
    let device = device();
    for (name, y, wrt) in cases(&device)? {
        let (forward, backward) = forward_and_backward(&y, &wrt.iter().collect::<Vec<_>>())?;
        assert!(backward <= forward + 1, "{name}: {forward} forward, {backward} backward");
    }
    Ok(())
}
