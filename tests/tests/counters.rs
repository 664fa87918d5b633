//! What programs cost, by the public counters: launches, temporaries, compilations, allocations.
//!
//! Each test has a device of its own, so that nothing else is counted. What is promised of every
//! backend is in `zyx_tests::counts`.

mod common;

use common::device;
use zyx_nn::{Forward, Init, Linear, Lstm, Module, RecurrentOptions};
use zyx_optim::{AdamOptions, AdamW, Optimizer};
use zyx_tests::zyx_core::{DType, Device, Reduction, Result, Rng, Stats, Tensor, testing};

fn random(dims: &[usize], device: &Device) -> Tensor {
    let x = Tensor::randn(dims, DType::F32, &mut Rng::seed(dims.len() as u64), device);
    let x = x.expect("a shape").contiguous();
    x.realize().expect("memory");
    x
}

/// What computing a tensor cost.
fn cost(device: &Device, tensor: &Tensor) -> Stats {
    let before = device.stats();
    tensor.realize().expect("the device computes");
    device.stats().since(&before)
}

#[test]
fn realizing_again_costs_nothing() -> Result<()> {
    let device = device();
    let y = random(&[10], &device).exp().sum(..)?;
    assert_eq!(cost(&device, &y).launches, 1);
    let again = cost(&device, &y);
    assert_eq!((again.launches, again.submits, again.compiles), (0, 0, 0), "{again:?}");
    Ok(())
}

#[test]
fn a_thousand_learning_rates_compile_once() -> Result<()> {
    let device = device();
    let (w, g) = (random(&[100], &device), random(&[100], &device));
    let before = device.stats();
    for step in 0..1000 {
        w.sub(g.mul(0.1 / (step + 1) as f64)?)?.realize()?;
    }
    let stats = device.stats().since(&before);
    assert_eq!((stats.compiles, stats.launches), (1, 1000), "{stats:?}");
    assert_eq!(stats.searches, 0);
    Ok(())
}

/// Rows that a product reads where they lie, wherever they start: its library is told where.
#[test]
fn rows_in_other_places_are_not_copied_for_a_product() -> Result<()> {
    let device = device();
    let (data, w) = (random(&[256, 64], &device), random(&[64, 32], &device));
    for (step, i) in [7, 100, 3, 224, 0].into_iter().enumerate() {
        let y = data.slice(0, i..i + 32)?.matmul(&w)?;
        let stats = cost(&device, &y);
        assert_eq!(stats.launches, 1, "step {step}: {stats:?}");
        assert!(step < 2 || (stats.compiles, stats.loads, stats.plan_misses) == (0, 0, 0));
        let copied = data.slice(0, i..i + 32)?.contiguous();
        copied.realize()?;
        assert_eq!(y.to_vec::<f32>()?, copied.matmul(&w)?.to_vec::<f32>()?, "step {step}");
    }
    Ok(())
}

/// A cache that grows by a row at each step, as of keys and values, and what is computed of it.
#[test]
fn a_cache_that_grows_compiles_nothing_after_its_second_step() -> Result<()> {
    let device = device();
    let (row, query) = (random(&[1, 16], &device), random(&[1, 16], &device));
    let mut cache = random(&[9, 16], &device);
    let grow = |cache: &Tensor| -> Result<Tensor> {
        let cache = Tensor::cat(&[cache, &row.mul(0.5)?], 0)?;
        let weights = query.matmul(&cache.t())?.softmax(-1)?;
        Tensor::realize_all([&cache, &weights.matmul(&cache)?])?;
        Ok(cache)
    };
    for step in 0..100 {
        let before = device.stats();
        cache = grow(&cache)?;
        let compiled = device.stats().since(&before).compiles;
        assert!(step < 2 || compiled == 0, "step {step}: {compiled} compiled");
    }
    Ok(())
}

/// Whether a kernel is compiled or prepared only.
#[test]
fn time_of_the_verifier_is_part_of_that_of_compiling() -> Result<()> {
    let device = device();
    let spent = |work: &dyn Fn() -> Result<()>| -> Result<()> {
        let before = device.stats();
        work()?;
        let stats = device.stats().since(&before);
        assert!(0 < stats.verify_ns && stats.verify_ns < stats.compile_ns, "{stats:?}");
        Ok(())
    };
    let x = random(&[64, 96], &device);
    let y = x.exp().sum(0)?;
    let kernels = testing::kernels(&[&y]);
    spent(&|| device.prepare(&kernels[0]).map(drop))?;
    spent(&|| y.realize())
}

#[test]
fn another_batch_size_searches_nothing() -> Result<()> {
    let device = device();
    let (w, b) = (random(&[96, 32], &device), random(&[32], &device));
    let layer = |x: &Tensor| x.matmul(&w)?.add(&b)?.relu().softmax(-1)?.realize();
    layer(&random(&[64, 96], &device))?;
    let inputs: Vec<Tensor> = (1..20).map(|n| random(&[n, 96], &device)).collect();
    let before = device.stats();
    for x in &inputs {
        layer(x)?;
    }
    assert_eq!(device.stats().since(&before).searches, 0);
    let before = device.stats();
    for x in &inputs {
        layer(x)?;
    }
    let again = device.stats().since(&before);
    assert_eq!((again.compiles, again.driver_allocs), (0, 0), "{again:?}");
    Ok(())
}

/// A training step of one of three losses.
fn branched_step(step: usize, x: &Tensor, layers: &[Linear], adam: &mut AdamW) -> Result<f32> {
    let y = layers[1].forward(&layers[0].forward(x)?.relu())?;
    let target = x.sum_keepdim(1)?;
    let loss = match step % 3 {
        0 => y.mse_loss(&target, Reduction::Mean)?,
        1 => {
            y.l1_loss(&target, Reduction::Mean)?.add(layers[0].weight.tensor().square().sum(..)?)?
        }
        _ => y.sub(&target)?.tanh().exp().mean(..)?.log(),
    };
    adam.step(&loss)?;
    loss.item::<f32>()
}

/// Whatever step comes next and however large its batch is: what was computed once is planned,
/// compiled and searched for never again.
#[test]
fn branches_and_batch_sizes_compile_nothing_after_the_first_pass() -> Result<()> {
    let device = device();
    let init = &mut Init::new(1, &device);
    let layers = [Linear::new(6, 8, init)?, Linear::new(8, 1, init)?];
    let parameters: Vec<_> = layers.iter().flat_map(|layer| layer.parameters()).collect();
    let mut adam = AdamW::new(parameters, AdamOptions::default())?;
    let inputs: Vec<Tensor> = (1..=64).map(|n| random(&[n, 6], &device)).collect();
    for (n, x) in inputs.iter().enumerate() {
        // Twice, as the first step of all begins with another state than the others.
        for step in 0..if n == 0 { 6 } else { 3 } {
            branched_step(step, x, &layers, &mut adam)?;
        }
    }
    let before = device.stats();
    for step in 0..1000 {
        // Every branch with every size, in another order: 29 has no factor in common with 64.
        let loss = branched_step(step, &inputs[step * 29 % 64], &layers, &mut adam)?;
        assert!(loss.is_finite(), "step {step}: {loss}");
    }
    let stats = device.stats().since(&before);
    let made = (stats.compiles, stats.loads, stats.plan_misses, stats.searches);
    assert_eq!(made, (0, 0, 0, 0), "{stats:?}");
    assert!(stats.plan_hits >= 1000, "{stats:?}");
    Ok(())
}

#[test]
fn dropped_tensors_give_their_memory_back() -> Result<()> {
    let device = device();
    let before = device.stats().live_bytes;
    let x = random(&[10_000], &device);
    let y = x.exp();
    y.realize()?;
    // The pool rounds sizes up, by at most a tenth.
    let live = device.stats().live_bytes - before;
    assert!((80_000..=88_000).contains(&live), "{live}");
    drop((x, y));
    assert_eq!(device.stats().live_bytes, before);
    Ok(())
}

#[test]
fn seventy_thousand_clones_are_one_tensor() -> Result<()> {
    let device = device();
    let x = random(&[100], &device);
    let before = device.stats();
    let clones: Vec<Tensor> = (0..70_000).map(|_| x.clone()).collect();
    assert_eq!(device.stats(), before);
    drop(clones);
    assert_eq!(x.numel(), 100);
    assert_eq!(device.stats().live_bytes, before.live_bytes);
    Ok(())
}

/// Most memory that a training step of four regions of six layers takes, and its gradients.
fn step_of_regions(kept: bool, one_plan: bool) -> Result<(u64, Vec<Vec<f32>>)> {
    let device = device();
    let mut rng = Rng::seed(1);
    let mut weights = Vec::new();
    for _ in 0..4 {
        let w = Tensor::randn([6, 64, 64], DType::F32, &mut rng, &device)?;
        weights.push(w.mul(0.1)?.contiguous().tracked());
    }
    let x = random(&[512, 64], &device);
    Tensor::realize_all(&weights)?;
    device.reset_peak();
    let before = device.stats().live_bytes;
    let region = |x: &[Tensor]| -> Result<Tensor> {
        (0..6).try_fold(x[0].clone(), |y, i| Ok(y.matmul(&x[1].select_index(0, i)?)?.gelu()))
    };
    let mut y = x;
    for w in &weights {
        let inputs = [y, w.clone()];
        y = match kept {
            true => region(&inputs)?,
            false => Tensor::checkpoint(region, &[&inputs[0], &inputs[1]])?,
        };
    }
    let loss = y.square().mean(..)?;
    if !one_plan {
        loss.realize()?;
    }
    let gradients = loss.grad(&weights.iter().collect::<Vec<_>>())?;
    let gradients: Vec<Tensor> = gradients.into_iter().flatten().collect();
    Tensor::realize_all(gradients.iter().chain([&loss]))?;
    let peak = device.stats().peak_bytes - before;
    Ok((peak, gradients.iter().map(|g| g.to_vec()).collect::<Result<_>>()?))
}

#[test]
fn regions_computed_again_are_stored_one_at_a_time() -> Result<()> {
    let (most, want) = step_of_regions(true, true)?;
    for one_plan in [true, false] {
        let (peak, got) = step_of_regions(false, one_plan)?;
        assert!(2 * peak < most, "{peak} bytes, not less than half of {most}: {one_plan}");
        for (got, want) in got.iter().flatten().zip(want.iter().flatten()) {
            assert!((got - want).abs() <= 1e-5 * want.abs().max(1e-3), "{got}, not {want}");
        }
    }
    // What enters a region the second time has the bits of the first.
    let device = device();
    let data =
        [-0.0f32, f32::from_bits(1), 1.5e38, f32::INFINITY, -3.25, f32::from_bits(0x7fc0_1234)];
    let x = Tensor::new(data, &device)?.tracked();
    let itself =
        |x: &[Tensor]| x[0].with_gradient(&[&x[0]], |x, _, _| Ok(vec![Some(x[0].clone())]));
    let again = Tensor::checkpoint(itself, &[&x])?.grad(&[&x])?.remove(0).expect("it depends");
    let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&again.to_vec::<f32>()?), bits(&data));
    Ok(())
}

/// The gradients of a recurrent network over so many steps, of whose outputs the last counts, or all.
fn gradients_of_sequence(steps: usize, all: bool, device: &Device) -> Result<Vec<Tensor>> {
    let options = RecurrentOptions { layers: 2, ..RecurrentOptions::default() };
    let layer = Lstm::new(4, 8, options, &mut Init::new(0, device))?;
    let (y, _) = layer.run(&random(&[steps, 8, 4], device), None)?;
    let weights: Vec<Tensor> = layer.parameters().iter().map(|p| p.tensor()).collect();
    let counts = if all { y } else { y.select_index(0, -1)? };
    let gradients = counts.square().mean(..)?.grad(&weights.iter().collect::<Vec<_>>())?;
    Ok(gradients.into_iter().flatten().collect())
}

#[test]
fn all_steps_of_a_sequence_have_the_same_programs() -> Result<()> {
    for all in [false, true] {
        let compiled = |steps: usize| -> Result<u64> {
            let device = device();
            let gradients = gradients_of_sequence(steps, all, &device)?;
            let before = device.stats();
            Tensor::realize_all(&gradients)?;
            Ok(device.stats().since(&before).compiles)
        };
        let [few, more, many] = [compiled(12)?, compiled(36)?, compiled(160)?];
        // What joins the steps is larger; what computes one is not another.
        assert!(more <= few + 6, "{few} programs for 12 steps, {more} for 36: {all}");
        assert!(many <= few + 12, "{few} programs for 12 steps, {many} for 160: {all}");
    }
    Ok(())
}

/// Operations and buffers of all kernels of a plan: what planning, proofs and compilers look at.
#[test]
fn kernels_of_a_sequence_grow_with_its_steps() -> Result<()> {
    let size = |steps: usize| -> Result<usize> {
        let gradients = gradients_of_sequence(steps, true, &device())?;
        let kernels = testing::kernels(&gradients.iter().collect::<Vec<_>>());
        Ok(kernels.iter().map(|kernel| kernel.ops().len() + kernel.params().len()).sum())
    };
    let [few, many] = [size(40)?, size(160)?];
    assert!(many < 5 * few, "{few} for 40 steps, {many} for 160");
    Ok(())
}

/// More nodes than sixteen bits count.
#[test]
fn long_programs_are_planned_once() -> Result<()> {
    let device = device();
    let x = random(&[4], &device);
    let step = || (0..70_000).try_fold(x.clone(), |y, i| y.mul(if i % 2 == 0 { 2.0 } else { 0.5 }));
    step()?.realize()?;
    let before = device.stats();
    let y = step()?;
    y.realize()?;
    let stats = device.stats().since(&before);
    assert_eq!((stats.plan_misses, stats.compiles), (0, 0), "{stats:?}");
    assert!(stats.nodes > 1 << 16, "{stats:?}");
    assert_eq!(y.to_vec::<f32>()?, x.to_vec::<f32>()?);
    Ok(())
}
