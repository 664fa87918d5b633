//! The first losses of a real training job, beside those of the CPU.
//!
//! The job is that of the example `digits`: a convolutional network on handwritten digits, with
//! dropout, AdamW and a cosine schedule. Random numbers are the same on every device, so that the
//! losses of 20 steps differ by rounding only: sums are taken in other orders, and differences grow
//! with the steps.

use crate::harness;
use zyx_backend_cpu::Cpu;
use zyx_core::hal::Backend;
use zyx_core::{Conv2dOptions, DType, Device, Pool2d, Result, Rng, Runtime, Tensor};
use zyx_nn::{
    Conv2d, Dropout, Flatten, Forward, Init, Linear, MaxPool2d, Module, Relu, Sequential,
};
use zyx_optim::{AdamOptions, AdamW, Optimizer, schedule};

/// The images that ship with the examples: 1,797 of 8x8 pixels from 0 to 16, after a header.
const IMAGES: &[u8] = include_bytes!("../../../examples/data/images.idx3-ubyte");
/// Their labels, after a header.
const LABELS: &[u8] = include_bytes!("../../../examples/data/labels.idx1-ubyte");

const BATCH: usize = 64;
const STEPS: usize = 20;
/// Steps of the whole job, of which these are the first.
const ALL_STEPS: u64 = 660;
const RATE: f64 = 3e-3;

/// By how much losses may differ, relative to the CPU's.
const AGREEMENT: f32 = 1e-4;

fn network(init: &mut Init) -> Result<Sequential> {
    let same = Conv2dOptions { padding: [1, 1], ..Default::default() };
    Ok(Sequential::new()
        .then(Conv2d::new(1, 16, [3, 3], same, init)?)
        .then(Relu)
        .then(Conv2d::new(16, 32, [3, 3], same, init)?)
        .then(Relu)
        .then(MaxPool2d(Pool2d::new([2, 2])))
        .then(Flatten)
        .then(Dropout::new(0.25, init)?)
        .then(Linear::new(32 * 4 * 4, 64, init)?)
        .then(Relu)
        .then(Linear::new(64, 10, init)?))
}

fn losses(device: &Device) -> Result<Vec<f32>> {
    let (pixels, labels) = (&IMAGES[16..], &LABELS[8..]);
    let pixels: Vec<f32> = pixels.iter().map(|&p| f32::from(p) / 16.0).collect();
    let n = labels.len();
    let images = Tensor::from_slice(&pixels, [n, 1, 8, 8], device)?;
    let labels = Tensor::from_slice(labels, [n], device)?;
    let model = network(&mut Init::new(0, device))?;
    let options = AdamOptions { learning_rate: RATE, weight_decay: 0.05, ..Default::default() };
    let mut optimizer = AdamW::new(model.parameters(), options)?;
    let order = Tensor::permutation(n, &mut Rng::seed(0), device)?.to_vec::<i64>()?;
    let step = |(k, rows): (usize, &[i64])| {
        let rows = Tensor::from_slice(rows, [BATCH], device)?;
        let (x, y) = (images.index_select(0, &rows)?, labels.index_select(0, &rows)?);
        optimizer.set_learning_rate(schedule::cosine(k as u64, ALL_STEPS, RATE, 0.0));
        let loss = model.forward(&x)?.cross_entropy(&y)?;
        optimizer.step(&loss)?;
        loss.cast(DType::F32).item::<f32>()
    };
    order.chunks_exact(BATCH).take(STEPS).enumerate().map(step).collect()
}

/// See the module.
///
/// # Panics
/// When a loss differs.
pub fn first_losses_agree_with_the_cpu<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    let test = "first_losses_agree_with_the_cpu";
    let register = |runtime: &Runtime| runtime.register(backend());
    let Some(device) = harness::device(spec, test, register) else { return };
    let runtime = Runtime::default();
    runtime.register(Cpu::default());
    let cpu = runtime.device("cpu").expect("always there");
    let expected = losses(&cpu).expect("the CPU computes");
    let got = losses(&device).unwrap_or_else(|error| panic!("{error}"));
    assert!(expected.len() == STEPS && expected[STEPS - 1] < expected[0] - 0.1, "{expected:?}");
    for (k, (got, expected)) in got.iter().zip(&expected).enumerate() {
        let far = (got - expected).abs() > AGREEMENT * expected;
        assert!(!far, "step {k}: {got}, on the CPU {expected}");
    }
}
