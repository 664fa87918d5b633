//! Inputs that die give their memory to results: nobody can tell but by the memory that is used.

use super::faulty::{Call, Faults, Faulty};
use crate::generate::{Limits, Theme, program, program_of};
use crate::harness::own_device;
use crate::{Rng, harness, ladder};
use zyx_core::hal::Backend;
use zyx_core::{DType, Device, Param, Result, Runtime, Tensor};
use zyx_optim::{AdamOptions, AdamW, Optimizer};

/// Random programs, usual ones and those that replace values beside fused kernels, with inputs that are held and
/// with inputs that die.
///
/// # Panics
/// When an output differs in a bit, a held input changes, or memory is given that is held.
pub fn random_programs_with_dying_inputs<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    let Some(device) = own_device(spec, "random_programs_with_dying_inputs", backend) else {
        return;
    };
    let mut given = 0;
    let replaced = |seed: u64| program_of(Theme::Replaced, &mut Rng::new(seed), Limits::default());
    let seeds: Vec<u64> = ladder::chosen(0..ladder::count(40)).collect();
    let usual = seeds.iter().map(|&seed| (seed, program(seed, Limits::default())));
    for (seed, program) in usual.chain(seeds.iter().map(|&seed| (seed, replaced(seed)))) {
        let run = |held: bool| -> Result<(Vec<Vec<u8>>, Vec<Vec<f64>>, u64)> {
            let inputs = program.inputs.iter().map(|x| x.tensor(&device));
            let inputs = inputs.collect::<Result<Vec<Tensor>>>()?;
            Tensor::realize_all(&inputs)?;
            let outputs = program.build_on(&inputs)?;
            let before = inputs.iter().map(Tensor::to_bytes).collect::<Result<Vec<_>>>()?;
            let donations = device.stats().donations;
            let mut kept = inputs;
            if !held {
                kept.clear();
            }
            Tensor::realize_all(&outputs)?;
            let donations = device.stats().donations - donations;
            for (input, before) in kept.iter().zip(&before) {
                assert_eq!(&input.to_bytes()?, before, "ZYX_SEED={seed}: an input that is held");
            }
            let bytes = outputs.iter().map(Tensor::to_bytes).collect::<Result<_>>()?;
            let values =
                outputs.iter().map(|y| y.cast(DType::F64).to_vec()).collect::<Result<_>>()?;
            Ok((bytes, values, donations))
        };
        let run = |held| run(held).unwrap_or_else(|e| panic!("ZYX_SEED={seed}: {e}"));
        let (expected, wanted, none) = run(true);
        let (found, values, some) = run(false);
        if found != expected {
            // Atomic additions of floats are in no order, so that other runs without donation differ, too.
            assert!((0..20).any(|_| run(true).0 != expected), "ZYX_SEED={seed}: outputs differ");
            for (x, y) in values.iter().zip(&wanted).flat_map(|(x, y)| x.iter().zip(y)) {
                let is_same = x == y || x.is_nan() && y.is_nan();
                assert!(is_same || (x - y).abs() <= 1e-4 * y.abs().max(1.0), "ZYX_SEED={seed}");
            }
        }
        assert_eq!(none, 0, "ZYX_SEED={seed}: memory of an input that is held was given");
        given += some;
    }
    assert!(given > 0 || std::env::var_os("ZYX_SEED").is_some(), "no program gave memory");
}

/// Weights of two layers, with odd sizes, trained for some steps. `keep` gets what an optimizer
/// remembers after each step.
fn train(device: &Device, steps: usize, keep: &mut dyn FnMut(&AdamW)) -> Result<(Vec<u8>, u64)> {
    let mut rng = zyx_core::Rng::seed(3);
    let mut normal = |dims: [usize; 2]| -> Result<Tensor> {
        let x = Tensor::randn(dims, DType::F32, &mut rng, device)?.contiguous();
        x.realize().map(|()| x)
    };
    let x = normal([9, 37])?;
    let weights = [normal([37, 65])?, normal([65, 3])?].map(Param::new);
    let y = Tensor::from_slice(&[0i64, 1, 2, 0, 1, 2, 0, 1, 2], [9], device)?;
    let mut adam = AdamW::new(weights.to_vec(), AdamOptions::default())?;
    let mut peak = 0;
    for step in 0..steps {
        let [a, b] = &weights;
        let loss = x.matmul(&a.tensor())?.tanh().matmul(&b.tensor())?.cross_entropy(&y)?;
        device.reset_peak();
        adam.step(&loss)?;
        if step + 1 == steps {
            peak = device.stats().peak_bytes;
        }
        drop(loss);
        keep(&adam);
    }
    let mut bytes = Vec::new();
    for tensor in weights.iter().map(Param::tensor).chain(adam.state().into_values()) {
        bytes.extend(tensor.to_bytes()?);
    }
    Ok((bytes, peak))
}

/// A training job whose optimizer's state stays where it is, beside one whose state is held.
///
/// # Panics
/// When the jobs differ in a bit, or the first needs as much memory.
pub fn an_optimizers_state_stays_in_place<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    let Some(device) = own_device(spec, "an_optimizers_state_stays_in_place", backend) else {
        return;
    };
    let steps = 6;
    let before = device.stats();
    let (found, peak) = train(&device, steps, &mut |_| ()).expect("with state that dies");
    let since = device.stats().since(&before);
    // Two means of each of two matrices, but in the first step, when means of one size are one buffer
    // of zeros.
    assert_eq!(since.donations, 4 * (steps as u64 - 1), "{since:?}");
    let mut held = Vec::new();
    let hold = &mut |adam: &AdamW| held = vec![adam.state()];
    let (expected, peak_held) = train(&device, steps, hold).expect("with state that is held");
    drop(held);
    assert!(found == expected, "weights or state differ");
    let matrix = |numel: u64| 2 * numel * 4;
    let least = matrix(37 * 65) + matrix(65 * 3);
    assert!(peak + least <= peak_held, "{peak} bytes at most, {peak_held} with state held");
    // From the second step on nothing is planned or compiled.
    let before = device.stats();
    train(&device, steps, &mut |_| ()).expect("once more");
    let since = device.stats().since(&before);
    assert_eq!((since.compiles, since.plan_misses), (0, 0), "{since:?}");
}

/// A chain of steps each of which takes the place of the one before, with a launch that fails.
///
/// # Panics
/// When a value is lost.
pub fn a_refused_launch_takes_nothing<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    let test = "a_refused_launch_takes_nothing";
    if harness::device(spec, test, |runtime| runtime.register(backend())).is_none() {
        return;
    }
    let (faults, runtime) = (Faults::default(), Runtime::default());
    runtime.register(Faulty::new(backend(), &faults));
    let device = runtime.device(spec).expect("it opened before");
    let numbers: Vec<f32> = (0..4096).map(|i| (i % 61) as f32).collect();
    let chain = |fail: bool| -> Result<Vec<f32>> {
        let mut x = Tensor::from_slice(&numbers, [64, 64], &device)?;
        for step in 0..4 {
            // Two launches, the second of which writes where `x` was.
            x = x.matmul(&x)?.mul(1e-4)?;
            x = x.matmul(&x)?.tanh();
            if fail {
                faults.arm(Call::Launch, 0);
                x.realize().expect_err("the launch is refused");
                assert!(!faults.disarm(), "step {step}: nothing failed");
            }
            x.realize()?;
        }
        x.to_vec::<f32>()
    };
    let expected = chain(false).expect("without faults");
    let before = device.stats().donations;
    assert_eq!(chain(true).expect("asked again"), expected);
    assert!(device.stats().donations > before, "no step took the place of the one before");
}

/// Threads that compute from tensors which they share while one of them dies for another.
///
/// # Panics
/// When a thread sees another's numbers.
pub fn threads_share_what_is_pending<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    let Some(device) = own_device(spec, "threads_share_what_is_pending", backend) else { return };
    let n = 3000;
    for round in 0..ladder::count(30) {
        let start = round as f32;
        let x = Tensor::full([n], start, &device).contiguous();
        x.realize().expect("the start");
        // Only `y` holds `x` from here on.
        let y = (x * 2.0) + 1.0;
        let results: Vec<Vec<f32>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|i| {
                    let y = y.clone();
                    scope.spawn(move || {
                        let mine = if i % 2 == 0 { y } else { y * 3.0 };
                        mine.to_vec::<f32>().expect("a thread's result")
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().expect("no thread panics")).collect()
        });
        for (i, result) in results.iter().enumerate() {
            let expected = (start * 2.0 + 1.0) * if i % 2 == 0 { 1.0 } else { 3.0 };
            assert!(result.iter().all(|&x| x == expected), "round {round}, thread {i}");
        }
    }
}
