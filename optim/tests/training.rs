//! What stands around optimizers: groups, mixed precision, averages, accumulation, schedules, and
//! training that is resumed as if it had not been interrupted.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use std::collections::BTreeMap;
use zyx_backend_cpu::Cpu;
use zyx_core::{DType, Device, Result, Runtime, Tensor};
use zyx_optim::{
    Accumulator, Adadelta, AdadeltaOptions, Adagrad, AdagradOptions, Adam, AdamOptions, AdamW,
    Adamax, AdamaxOptions, Ema, Groups, Lamb, LambOptions, Lion, LionOptions, LossScaler,
    MasterWeights, Muon, MuonOptions, NAdam, NAdamOptions, Optimizer, Param, RAdam, RAdamOptions,
    RmsProp, RmsPropOptions, Rprop, RpropOptions, Sgd, SgdOptions, schedule,
};

fn devices() -> Vec<Device> {
    let runtime = Runtime::default();
    runtime.register(Cpu::default());
    ["reference", "cpu"].map(|name| runtime.device(name).unwrap()).into()
}

fn matrix(seed: f32, device: &Device) -> Result<Tensor> {
    let data: Vec<f32> = (0..6).map(|i| (seed + i as f32 * 0.7).sin()).collect();
    Tensor::from_slice(&data, [2, 3], device)
}

/// A loss whose gradient changes from step to step.
fn loss(x: &Param, step: usize) -> Result<Tensor> {
    let target = matrix(step as f32 * 0.3, &x.device())?.cast(x.dtype());
    x.tensor().sub(target)?.square().mul(1.0 + step as f64)?.mean(..)
}

type Make = fn(Vec<Param>) -> Result<Box<dyn Optimizer>>;

fn everything() -> Vec<(&'static str, Make)> {
    macro_rules! plain {
        ($($name:ident $options:ident;)*) => {
            vec![$((
                stringify!($name),
                |p| Ok(Box::new($name::new(p, $options::default())?)),
            )),*]
        };
    }
    let mut all: Vec<(&'static str, Make)> = plain! {
        Sgd SgdOptions; Adam AdamOptions; AdamW AdamOptions; RmsProp RmsPropOptions;
        Adagrad AdagradOptions; Adadelta AdadeltaOptions; Rprop RpropOptions;
        Adamax AdamaxOptions; NAdam NAdamOptions; RAdam RAdamOptions; Lamb LambOptions;
        Lion LionOptions; Muon MuonOptions;
    };
    all.push(("momentum", |p| {
        Ok(Box::new(Sgd::new(p, SgdOptions { momentum: 0.9, ..Default::default() })?))
    }));
    all.push(("MasterWeights", |p| {
        let make = |p| AdamW::new(p, AdamOptions::default());
        Ok(Box::new(MasterWeights::new(p, make)?))
    }));
    all.push(("Groups", |p| {
        Ok(Box::new(Groups::new(vec![
            Box::new(AdamW::new(p, AdamOptions::default())?),
            Box::new(Sgd::new(vec![], SgdOptions::default())?),
        ])?))
    }));
    all
}

#[test]
fn training_resumes_bit_for_bit() -> Result<()> {
    for device in devices() {
        for dtype in [DType::F32, DType::BF16] {
            for (name, make) in everything() {
                let start = matrix(0.0, &device)?.cast(dtype);
                let straight = Param::new(start.clone());
                let mut optimizer = make(vec![straight.clone()])?;
                for step in 0..8 {
                    optimizer.step(&loss(&straight, step)?)?;
                }
                let broken = Param::new(start);
                let mut optimizer = make(vec![broken.clone()])?;
                for step in 0..5 {
                    optimizer.step(&loss(&broken, step)?)?;
                }
                // Through bytes, as a file would have it.
                let state = optimizer.state().into_iter().map(|(name, x)| -> Result<_> {
                    let bytes = x.to_bytes()?;
                    Ok((name, Tensor::from_bytes(&bytes, x.dtype(), x.shape(), &device)?))
                });
                let state = state.collect::<Result<BTreeMap<_, _>>>()?;
                let resumed = Param::new(broken.tensor().detach());
                let mut optimizer = make(vec![resumed.clone()])?;
                optimizer.load_state(&state)?;
                for step in 5..8 {
                    optimizer.step(&loss(&resumed, step)?)?;
                }
                let bits = |x: &Param| x.tensor().to_bytes();
                assert_eq!(bits(&straight)?, bits(&resumed)?, "{name} {dtype} {device}");
                assert_ne!(bits(&straight)?, bits(&broken)?, "{name} did nothing");
            }
        }
    }
    Ok(())
}

#[test]
fn groups_are_their_members() -> Result<()> {
    let device = &devices()[0];
    let places = || -> Result<_> {
        Ok((Param::new(matrix(0.0, device)?), Param::new(matrix(1.0, device)?)))
    };
    let sgd = SgdOptions { learning_rate: 0.1, momentum: 0.5, ..Default::default() };
    let adam = AdamOptions { learning_rate: 0.02, ..Default::default() };
    let ((a, b), (c, d)) = (places()?, places()?);
    let mut alone = (Sgd::new(vec![a.clone()], sgd)?, AdamW::new(vec![b.clone()], adam)?);
    let mut together = Groups::new(vec![
        Box::new(Sgd::new(vec![c.clone()], sgd)?),
        Box::new(AdamW::new(vec![d.clone()], adam)?),
    ])?;
    assert_eq!(together.learning_rate(), 0.1);
    for step in 0..3 {
        together.set_learning_rate(0.1 / (step + 1) as f64);
        alone.0.set_learning_rate(0.1 / (step + 1) as f64);
        alone.1.set_learning_rate(0.02 / (step + 1) as f64);
        let before = device.stats();
        together.step(&loss(&c, step)?.add(loss(&d, step)?)?)?;
        let stats = device.stats().since(&before);
        assert_eq!(stats.plan_hits + stats.plan_misses, 1, "one plan");
        alone.0.step(&loss(&a, step)?)?;
        alone.1.step(&loss(&b, step)?)?;
    }
    for (a, c) in [(&a, &c), (&b, &d)] {
        let (a, c) = (a.tensor().to_vec::<f32>()?, c.tensor().to_vec::<f32>()?);
        assert!(a.iter().zip(&c).all(|(a, c)| (a - c).abs() < 1e-6), "{a:?} {c:?}");
    }
    let mut state = together.state();
    assert!(state.contains_key("group0.0.momentum") && state.contains_key("group1.0.exp_avg"));
    state.insert("group2.0.step".into(), Tensor::zeros([], DType::I64, device));
    assert!(together.load_state(&state).is_err());
    assert!(Groups::new(vec![]).is_err());
    let twice = || -> Result<Box<dyn Optimizer + Send + Sync>> {
        Ok(Box::new(Sgd::new(vec![a.clone()], sgd)?))
    };
    assert!(Groups::new(vec![twice()?, twice()?]).is_err());
    // A proposal belongs to the optimizer that made it.
    let own = alone.0.propose(&[Some(matrix(0.0, device)?)])?;
    assert!(together.accept(own).is_err());
    let theirs = together.propose(&[None, None])?;
    assert!(alone.0.accept(theirs).is_err());
    Ok(())
}

#[test]
fn master_weights_are_those_of_single_precision() -> Result<()> {
    for device in devices() {
        let (half, single) = (
            Param::new(matrix(0.0, &device)?.cast(DType::BF16)),
            Param::new(matrix(0.0, &device)?),
        );
        // Both start from what bf16 holds.
        single.set(&half.tensor().detach().cast(DType::F32))?;
        let options = AdamOptions { learning_rate: 1e-3, ..Default::default() };
        let make = |masters| AdamW::new(masters, options);
        let mut mixed = MasterWeights::new(vec![half.clone()], make)?;
        let mut plain = AdamW::new(vec![single.clone()], options)?;
        for step in 0..20 {
            let gradient = matrix(step as f32 * 0.3, &device)?.cast(DType::BF16);
            mixed.apply(&[Some(gradient.clone())], &[])?;
            plain.apply(&[Some(gradient.cast(DType::F32))], &[])?;
        }
        let expected = single.tensor().detach();
        let rounded = expected.cast(DType::BF16).cast(DType::F32).to_vec::<f32>()?;
        assert_eq!(half.tensor().cast(DType::F32).to_vec::<f32>()?, rounded);
        let masters = mixed.inner().parameters()[0].tensor().to_vec::<f32>()?;
        assert_eq!(masters, expected.to_vec::<f32>()?);
    }
    Ok(())
}

#[test]
fn scales_follow_overflow() -> Result<()> {
    let device = &devices()[0];
    let x = Param::new(Tensor::new([1f32, 2.0], device)?.cast(DType::F16));
    let options = SgdOptions { learning_rate: 0.25, ..Default::default() };
    let mut sgd = Sgd::new(vec![x.clone()], options)?;
    let mut scaler = LossScaler { scale: 2f64.powi(20), interval: 3, ..Default::default() };
    let mut made = Vec::new();
    for _ in 0..10 {
        made.push(scaler.step(&mut sgd, &x.tensor().sum(..)?)?);
    }
    // 2^20 to 2^16 overflow f16, 2^15 does not; after three steps 2^16 is tried again.
    let expected = [false, false, false, false, false, true, true, true, false, true];
    assert_eq!(made, expected);
    assert_eq!(scaler.scale, 2f64.powi(15));
    assert_eq!(x.tensor().cast(DType::F32).to_vec::<f32>()?, [0.0, 1.0]);
    // A gradient that f16 alone would lose.
    let y = Param::new(Tensor::new([1f32], device)?);
    let mut sgd = Sgd::new(vec![y.clone()], SgdOptions { learning_rate: 1e6, ..options })?;
    let tiny = |y: &Param| y.tensor().cast(DType::F16).mul(1e-4)?.mul(1e-4)?.sum(..);
    sgd.step(&tiny(&y)?)?;
    assert_eq!(y.tensor().item::<f32>()?, 1.0, "it vanished");
    let mut scaler = LossScaler { scale: 2f64.powi(14), ..Default::default() };
    assert!(scaler.step(&mut sgd, &tiny(&y)?)?);
    assert!((y.tensor().item::<f32>()? - 0.99).abs() < 1e-4);
    scaler.scale = 0.0;
    assert!(scaler.step(&mut sgd, &tiny(&y)?).is_err());
    Ok(())
}

#[test]
fn averages_and_accumulated_gradients() -> Result<()> {
    let device = &devices()[0];
    let x = Param::new(matrix(0.0, device)?);
    let count = Param::state(Tensor::zeros([], DType::I64, device));
    let mut ema = Ema::new(vec![x.clone(), x.clone(), count.clone()], 0.9)?;
    let mut expected = x.tensor().to_vec::<f32>()?;
    for step in 1..4 {
        x.set(&matrix(step as f32, device)?)?;
        count.set(&count.tensor().add(1)?)?;
        ema.update()?;
        let value = x.tensor().to_vec::<f32>()?;
        expected.iter_mut().zip(&value).for_each(|(e, v)| *e = 0.9 * *e + 0.1 * v);
    }
    let close = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
    assert_eq!(ema.averages().len(), 2);
    assert!(close(&ema.averages()[0].to_vec::<f32>()?, &expected));
    assert_eq!(ema.averages()[1].item::<i64>()?, 3, "integers are copied");
    let state = ema.state();
    let mut other = Ema::new(vec![x.clone(), count.clone()], 0.9)?;
    other.load_state(&state)?;
    assert!(close(&other.averages()[0].to_vec::<f32>()?, &expected));
    assert!(other.load_state(&BTreeMap::new()).is_err() && Ema::new(vec![], 1.0).is_err());

    // Two halves of a batch are the batch.
    let (whole, halves) = (Param::new(matrix(0.0, device)?), Param::new(matrix(0.0, device)?));
    let sgd = |p: &Param| Sgd::new(vec![p.clone()], SgdOptions::default());
    let (mut first, mut second) = (sgd(&whole)?, sgd(&halves)?);
    first.step(&loss(&whole, 1)?.add(loss(&whole, 2)?)?.mul(0.5)?)?;
    let mut accumulator = Accumulator::default();
    assert!(accumulator.take().is_err());
    accumulator.add(&second, &loss(&halves, 1)?)?;
    accumulator.add(&second, &loss(&halves, 2)?)?;
    assert_eq!(accumulator.batches(), 2);
    second.apply(&accumulator.take()?, &[])?;
    assert_eq!(accumulator.batches(), 0);
    assert!(close(&whole.tensor().to_vec::<f32>()?, &halves.tensor().to_vec::<f32>()?));
    Ok(())
}

/// `data/torch_rates.txt` is written by `scripts/parity_optim.py`.
fn stored(name: &str) -> Vec<f64> {
    let text = include_str!("data/torch_rates.txt");
    let start = format!("{name} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&start)).unwrap();
    line.split(' ').map(|x| x.parse().unwrap()).collect()
}

#[test]
fn schedules_agree_with_pytorch() {
    let check = |name: &str, rate: &dyn Fn(u64) -> f64| {
        for (step, expected) in stored(name).into_iter().enumerate() {
            let actual = rate(step as u64);
            assert!((actual - expected).abs() < 1e-9, "{name} {step}: {actual} {expected}");
        }
    };
    check("linear", &|step| schedule::linear(step, 10, 0.5, 1.5));
    check("cosine", &|step| schedule::cosine(step, 20, 2.0, 0.1));
    check("cosine_restarts", &|step| schedule::cosine_restarts(step, 5, 2, 2.0, 0.1));
    check("cosine_repeats", &|step| schedule::cosine_restarts(step, 5, 1, 2.0, 0.1));
    check("steps", &|step| schedule::steps(step, 4, 2.0, 0.5));
    check("multistep", &|step| schedule::multistep(step, &[3, 7, 15], 2.0, 0.5));
    check("exponential", &|step| schedule::exponential(step, 2.0, 0.9));
    check("polynomial", &|step| schedule::polynomial(step, 12, 2.0, 2.0));
    check("one_cycle", &|step| schedule::one_cycle(step, 40, 0.3, 2.0));
    let mut plateau = schedule::Plateau {
        factor: 0.3,
        patience: 2,
        threshold: 0.05,
        cooldown: 2,
        least: 0.1,
        ..schedule::Plateau::new(2.0)
    };
    for pair in stored("plateau").chunks(2) {
        let actual = plateau.observe(pair[0]);
        assert!((actual - pair[1]).abs() < 1e-12, "{plateau:?} {pair:?}");
    }
    assert_eq!(schedule::cosine_restarts(u64::MAX, 1, 1, 1.0, 0.0), 1.0);
    assert!(schedule::one_cycle(0, 0, 0.0, 1.0).is_finite());
}

/// A schedule of `data/torch_composed.txt` as a factor of the step.
fn factor(schedule: &str) -> Box<dyn Fn(u64) -> f64> {
    let mut words = schedule.split(' ');
    let name = words.next().unwrap();
    let x: Vec<f64> = words.map(|x| x.parse().unwrap()).collect();
    let n = x[0] as u64;
    match name {
        "linear" => Box::new(move |step| schedule::linear(step, n, x[1], x[2])),
        "cosine" => Box::new(move |step| schedule::cosine(step, n, 1.0, 0.0)),
        "steps" => Box::new(move |step| schedule::steps(step, n, 1.0, x[1])),
        "exponential" => Box::new(move |step| schedule::exponential(step, 1.0, x[0])),
        "polynomial" => Box::new(move |step| schedule::polynomial(step, n, 1.0, x[1])),
        "multistep" => {
            let places: Vec<u64> = x[1..].iter().map(|&place| place as u64).collect();
            Box::new(move |step| schedule::multistep(step, &places, 1.0, x[0]))
        }
        other => panic!("{other}"),
    }
}

/// Schedules, plateaus and changes by hand are factors, as they are in PyTorch.
#[test]
fn schedules_compose_as_in_pytorch() {
    let text = include_str!("data/torch_composed.txt");
    assert_eq!(text.lines().count(), 60);
    for line in text.lines() {
        let mut parts = line.split('|');
        let factors: Vec<_> = parts.next().unwrap().split(';').map(factor).collect();
        let plain = schedule::Plateau::new(1.0);
        let mut plateau =
            schedule::Plateau { factor: 0.3, patience: 1, cooldown: 1, threshold: 0.05, ..plain };
        let (mut step, mut by_hand) = (0, 1.0);
        for operation in parts {
            let words: Vec<&str> = operation.split(' ').collect();
            match words[0] {
                "step" => step += 1,
                "half" => by_hand *= 0.5,
                _ => drop(plateau.observe(words[1].parse().unwrap())),
            }
            let scheduled: f64 = factors.iter().map(|factor| factor(step)).product();
            let (rate, expected) =
                (2.0 * scheduled * plateau.rate * by_hand, words[words.len() - 1]);
            let expected: f64 = expected.parse().unwrap();
            assert!((rate - expected).abs() < 1e-9, "{line}: {operation}: {rate}");
        }
    }
}

#[test]
fn a_step_is_few_launches() -> Result<()> {
    let device = &devices()[1];
    let parameter =
        |i: usize| Ok(Param::new(Tensor::full([3 + i % 5, 7], 0.5f32, device).add(i as f64)?));
    let parameters = (0..40).map(parameter).collect::<Result<Vec<Param>>>()?;
    let mut adam = AdamW::new(parameters.clone(), AdamOptions::default())?;
    let mut launches = 0;
    for _ in 0..4 {
        let gradients: Vec<Option<Tensor>> =
            parameters.iter().map(|p| Some(p.tensor().detach())).collect();
        let before = device.stats();
        adam.apply(&gradients, &[])?;
        launches = device.stats().since(&before).launches;
    }
    assert!(launches <= 4, "{launches} launches for 40 parameters");
    Ok(())
}
