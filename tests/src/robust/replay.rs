//! Steps of training that a device submits as it recorded them, though their scalars change.
//!
//! An optimizer with moments has a factor of its own for each step, and a schedule another rate; the
//! launches and their buffers stay. A device that records lists (see `zyx_core::hal::Recording`) has
//! to take such steps as the same list, with the results of launching one by one, also where the host
//! is many steps ahead of it.

use crate::device;
use zyx_core::hal::Backend;
use zyx_core::{Device, Result, Runtime, Tensor};
use zyx_nn::{Forward, Init, Linear, Module, Relu, Sequential};
use zyx_optim::{AdamOptions, AdamW, Optimizer, schedule};

const STEPS: u64 = 100;

/// Submissions that may not be of recordings: what is launched for the first time, and the first steps.
const FIRST: u64 = 16;

/// Recordings for the sets of buffers that steps have in turn.
const RECORDINGS: u64 = 16;

/// The parameters after [`STEPS`] steps, of which no other is waited for.
fn trained(device: &Device) -> Result<Vec<f32>> {
    let init = &mut Init::new(0, device);
    let model = Sequential::new()
        .then(Linear::new(24, 40, init)?)
        .then(Relu)
        .then(Linear::new(40, 30, init)?)
        .then(Relu)
        .then(Linear::new(30, 10, init)?);
    let x = Tensor::arange(0f32, 768.0, 1.0, device)?.reshape([32, 24])?.sin();
    let y = Tensor::arange(0i64, 32, 1, device)? % 10i64;
    let mut optimizer = AdamW::new(model.parameters(), AdamOptions::default())?;
    for k in 0..STEPS {
        optimizer.set_learning_rate(schedule::cosine(k, STEPS, 1e-2, 1e-4));
        optimizer.step(&model.forward(&x)?.cross_entropy(&y)?)?;
    }
    let parameters = model.parameters();
    let each = parameters.iter().map(|parameter| parameter.tensor().to_vec::<f32>());
    Ok(each.collect::<Result<Vec<_>>>()?.concat())
}

/// A hundred steps of AdamW under a schedule are recorded a few times and submitted as often as there are
/// steps, with the bits of steps that are launched one by one. `counts` gives recordings and submissions
/// of such so far.
///
/// # Panics
/// When that is not so.
pub fn steps_with_other_scalars_are_replayed<B: Backend>(
    spec: &str,
    backend: impl Fn() -> B,
    counts: impl Fn() -> [u64; 2],
) {
    if device::open(&backend()).is_none() {
        return device::skipped(spec);
    }
    // Nobody else may use the devices, and both have done the same before: which plan a step has
    // depends on that, and its rounding on the plan.
    let open = || {
        let runtime = Runtime::default();
        runtime.register(backend());
        (runtime.device(spec).expect("it opened before"), runtime)
    };
    let ((device, _one), (stepwise, _other)) = (open(), open());
    // While launches are measured, each is one of its own.
    stepwise.set_profiling(true);
    let expected = trained(&stepwise).expect("it trains");
    let (before, stats) = (counts(), device.stats());
    let found = trained(&device).expect("it trains");
    let (after, stats) = (counts(), device.stats().since(&stats));
    let lists = stats.plan_hits + stats.plan_misses;
    let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
    assert_eq!(bits(&found), bits(&expected), "parameters");
    let [recorded, submitted] = [0, 1].map(|i| after[i] - before[i]);
    let told = format!("{recorded} recorded, {submitted} of {lists} lists submitted as recorded");
    assert!(submitted + FIRST >= lists && lists >= STEPS, "{told}");
    assert!((1..=RECORDINGS).contains(&recorded), "{told}");
}
