//! Work that is larger than the device's memory, by a byte limit.

use crate::harness;
use zyx_core::hal::{Backend, DeviceError};
use zyx_core::{DType, Device, Error, Param, Result, Runtime, Tensor};

/// A device of its own for this test, `None` if there is none.
pub(crate) fn open<B: Backend>(spec: &str, test: &str, backend: impl Fn() -> B) -> Option<Device> {
    harness::device(spec, test, |runtime| runtime.register(backend()))?;
    let runtime = Runtime::default();
    runtime.register(backend());
    Some(runtime.device(spec).expect("it opened before"))
}

/// Elements of a block: 16 MiB, or what an interpreter can do in a moment.
fn elements(device: &Device) -> usize {
    if device.spec().starts_with("reference") { 1 << 10 } else { 4 << 20 }
}

/// The sums of a few tensors, four times as large together as the device may be, computed in two
/// rounds so that everything is used twice.
fn sums(device: &Device) -> Result<Vec<f32>> {
    let n = elements(device);
    let block = |k: usize| -> Result<Tensor> {
        let x = Tensor::arange(0f32, n as f32, 1.0, device)? * ((k + 1) as f32 / n as f32);
        x.realize()?;
        Ok(x)
    };
    let blocks = (0..16).map(block).collect::<Result<Vec<_>>>()?;
    let mut results = Vec::new();
    for round in 0..2 {
        for (k, x) in blocks.iter().enumerate() {
            let y = &blocks[(k + 5 + round) % blocks.len()];
            results.push((x * 0.5 - y).abs().mean(..)?.item::<f32>()?);
        }
    }
    // What is on the host can be read without coming back.
    results.push(blocks[0].to_vec::<f32>()?.iter().sum());
    Ok(results)
}

/// A working set of 256 MiB on a device of 64 MiB.
///
/// # Panics
/// When it does not finish with the result it has without a limit.
pub fn what_exceeds_the_device_moves_to_the_host<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    let test = "what_exceeds_the_device_moves_to_the_host";
    let Some(device) = open(spec, test, backend) else { return };
    let expected = sums(&device).expect("without a limit");
    device.trim();
    assert_eq!((device.stats().spills, device.stats().live_bytes), (0, 0));
    let limit = 4 * elements(&device) * DType::F32.size();
    device.set_memory_limit(Some(limit));
    device.reset_peak();
    let got = sums(&device).unwrap_or_else(|error| panic!("with a limit: {error}"));
    assert_eq!(got, expected);
    let stats = device.stats();
    assert!(stats.spills > 0, "nothing was moved: {stats:?}");
    assert!(stats.peak_bytes <= limit as u64, "{stats:?}, limit {limit}");
    assert_eq!((stats.live_bytes, stats.spilled_bytes), (0, 0), "memory is left");
}

/// Weights, and a step of gradient descent with momentum on all of them in one plan.
fn losses(device: &Device) -> Result<Vec<f32>> {
    let n = if device.spec().starts_with("reference") { 8 } else { 256 };
    let numbers = |k: usize| -> Vec<f32> {
        (0..n * n).map(|i| ((i * 31 + k * 17) % 101) as f32 / 500.0 - 0.1).collect()
    };
    let weight = |k| Ok(Param::new(Tensor::from_slice(&numbers(k), [n, n], device)?));
    let weights = (0..16).map(weight).collect::<Result<Vec<Param>>>()?;
    let zeros = |_| Param::state(Tensor::zeros([n, n], DType::F32, device));
    let momenta: Vec<Param> = (0..16).map(zeros).collect();
    let x = Tensor::from_slice(&numbers(9)[..4 * n], [4, n], device)?;
    let mut losses = Vec::new();
    for _ in 0..3 {
        let leaves: Vec<Tensor> = weights.iter().map(Param::tensor).collect();
        let mut y = x.clone();
        for leaf in &leaves {
            y = y.matmul(leaf)?.tanh();
        }
        let loss = (y - 0.25).square().mean(..)?;
        let gradients = loss.grad(&leaves.iter().collect::<Vec<_>>())?;
        for (k, gradient) in gradients.into_iter().enumerate() {
            let gradient = gradient.expect("the loss depends on every weight");
            momenta[k].set(&(momenta[k].tensor() * 0.9 + gradient))?;
            weights[k].set(&(&leaves[k] - momenta[k].tensor() * 0.5))?;
        }
        let state: Vec<Tensor> = weights.iter().chain(&momenta).map(Param::tensor).collect();
        Tensor::realize_all(state.iter().chain([&loss]))?;
        losses.push(loss.item::<f32>()?);
    }
    Ok(losses)
}

/// A training step whose weights and momenta are four times as large as the device.
///
/// # Panics
/// When its losses differ from those without a limit.
pub fn plans_that_exceed_the_device_run_step_by_step<B: Backend>(
    spec: &str,
    backend: impl Fn() -> B,
) {
    let test = "plans_that_exceed_the_device_run_step_by_step";
    let Some(device) = open(spec, test, backend) else { return };
    let expected = losses(&device).expect("without a limit");
    device.trim();
    // Thirty-two matrices, of which eight fit.
    let n: usize = if device.spec().starts_with("reference") { 8 } else { 256 };
    let limit = 8 * n * n * DType::F32.size();
    device.set_memory_limit(Some(limit));
    device.reset_peak();
    let got = losses(&device).unwrap_or_else(|error| panic!("with a limit: {error}"));
    assert_eq!(got, expected);
    let stats = device.stats();
    assert!(stats.peak_bytes <= limit as u64, "{stats:?}, limit {limit}");
    assert_eq!((stats.live_bytes, stats.spilled_bytes), (0, 0), "memory is left");
}

/// One tensor that is larger than the device, and a kernel that is.
///
/// # Panics
/// When there is no error, when it says too little, or when the device does not go on.
pub fn what_cannot_fit_is_an_error_with_a_table<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    let test = "what_cannot_fit_is_an_error_with_a_table";
    let Some(device) = open(spec, test, backend) else { return };
    let ones = |n: usize| Tensor::ones([n], DType::F32, &device);
    let (a, b) = (ones(3 << 10), ones(1 << 10));
    Tensor::realize_all([&a, &b]).expect("without a limit");
    device.set_memory_limit(Some(64 << 10));
    let error = ones(1 << 20).realize().expect_err("4 MiB do not fit 64 KiB");
    let Error::Device(DeviceError::OutOfMemory { requested, live, .. }) = &error else {
        panic!("another error: {error}");
    };
    assert_eq!((*requested, live.as_slice()), (4 << 20, &[(12 << 10, 1), (4 << 10, 1)][..]));
    assert!(error.to_string().contains("1 x 12288 bytes"), "{error}");
    assert_eq!(device.stats().spills, 0, "nothing moves for what cannot fit");
    // All operands of one kernel have to fit together.
    let parts: Vec<Tensor> = (0..8).map(|k| ones(3 << 10) * k).collect();
    for part in &parts {
        part.realize().expect("one by one they fit");
    }
    let sum = parts.iter().skip(1).fold(parts[0].clone(), |sum, part| sum + part);
    let before = device.stats().live_bytes;
    match sum.to_vec::<f32>() {
        // Devices that bind few buffers take several kernels, which fit.
        Ok(sum) => assert_eq!(sum, vec![28.0; 3 << 10]),
        Err(error) => assert!(error.to_string().contains("out of device memory"), "{error}"),
    }
    assert!(device.stats().live_bytes <= before.max(64 << 10), "memory is left");
    assert_eq!((&a * 2.0).to_vec::<f32>().expect("this fits"), vec![2.0; 3 << 10]);
}
