//! Steps of every optimizer against PyTorch 2.15, and what else a step promises.
//!
//! `data/torch_steps.txt` is written by `scripts/parity_optim.py`: name, step, parameter after it.
//! The parameter starts as `2 sin(0.7 i)`, the gradient of step `t` is `2 sin((0.3 + 0.5 t) i)`.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use zyx_core::{DType, Device, Result, Runtime, Tensor};
use zyx_optim::{
    Adadelta, AdadeltaOptions, Adagrad, AdagradOptions, Adam, AdamOptions, AdamW, Adamax,
    AdamaxOptions, Lamb, LambOptions, Lion, LionOptions, Muon, MuonOptions, NAdam, NAdamOptions,
    Optimizer, Param, RAdam, RAdamOptions, RmsProp, RmsPropOptions, Rprop, RpropOptions, Sgd,
    SgdOptions, clip_norm, clip_to_norm, clip_value, total_norm,
};

fn device() -> Device {
    Runtime::default().device("reference").unwrap()
}

fn wave(frequency: f64, dtype: DType, device: &Device) -> Tensor {
    let data: Vec<f64> = (0..6).map(|i| 2.0 * (f64::from(i) * frequency).sin()).collect();
    Tensor::from_slice(&data, [6], device).unwrap().cast(dtype)
}

/// Runs as many steps as are stored and compares each.
fn compare<O: Optimizer>(name: &str, dtype: DType, make: impl Fn(Vec<Param>) -> Result<O>) {
    compare_matrix(name, dtype, &[6], make);
}

fn compare_matrix<O: Optimizer>(
    name: &str,
    dtype: DType,
    shape: &[usize],
    make: impl Fn(Vec<Param>) -> Result<O>,
) {
    let d = &device();
    let wave = |frequency| wave(frequency, dtype, d).reshape(shape).unwrap();
    let parameter = Param::new(wave(0.7));
    let mut optimizer = make(vec![parameter.clone()]).unwrap();
    let text = include_str!("data/torch_steps.txt");
    let start = format!("{name} ");
    let n = text.lines().filter(|line| line.starts_with(&start)).count();
    assert!(n >= 3, "{name} is not stored");
    for t in 0..n {
        // The state survives saving and restoring between any two steps.
        let state = optimizer.state();
        optimizer = make(vec![parameter.clone()]).unwrap();
        optimizer.load_state(&state).unwrap();
        let gradient = wave(0.3 + 0.5 * t as f64);
        optimizer.apply(&[Some(gradient)], &[]).unwrap();
        let key = format!("{name} {} ", t + 1);
        let line = text.lines().find_map(|line| line.strip_prefix(&key)).unwrap();
        let expected: Vec<f64> = line.split(' ').map(|x| x.parse().unwrap()).collect();
        let actual = parameter.tensor().cast(DType::F64).to_vec::<f64>().unwrap();
        let bound = if dtype == DType::F64 { 1e-13 } else { 2.5e-7 };
        for (a, e) in actual.iter().zip(&expected) {
            assert!((a - e).abs() <= bound * (1.0 + e.abs()), "{key}: {actual:?} {expected:?}");
        }
    }
}

#[test]
fn three_steps_agree_with_pytorch() {
    let sgd = |options: SgdOptions| move |parameters| Sgd::new(parameters, options);
    let plain = SgdOptions { learning_rate: 0.1, ..Default::default() };
    let heavy = SgdOptions { momentum: 0.9, ..plain };
    compare("sgd", DType::F64, sgd(plain));
    compare("sgd_decay", DType::F64, sgd(SgdOptions { weight_decay: 0.3, ..plain }));
    compare("momentum", DType::F64, sgd(heavy));
    let dampened = SgdOptions { dampening: 0.4, weight_decay: 0.01, ..heavy };
    compare("dampening", DType::F64, sgd(dampened));
    let nesterov = SgdOptions { momentum: 0.8, nesterov: true, weight_decay: 0.01, ..plain };
    compare("nesterov", DType::F64, sgd(nesterov));
    let adam = AdamOptions { learning_rate: 0.01, ..Default::default() };
    compare("adam", DType::F64, |p| Adam::new(p, adam));
    let decayed = AdamOptions { betas: [0.8, 0.99], eps: 1e-6, weight_decay: 0.1, ..adam };
    compare("adam_decay", DType::F64, |p| Adam::new(p, decayed));
    let decayed = AdamOptions { weight_decay: 0.01, ..adam };
    compare("adamw", DType::F64, |p| AdamW::new(p, decayed));
    let usual = AdamOptions { learning_rate: 3e-4, ..decayed };
    compare("adamw_32", DType::F32, |p| AdamW::new(p, usual));
    let amsgrad = AdamOptions { betas: [0.5, 0.6], amsgrad: true, ..adam };
    compare("amsgrad", DType::F64, |p| Adam::new(p, amsgrad));
}

#[test]
fn steps_by_the_size_of_gradients_agree_with_pytorch() {
    let plain = RmsPropOptions::default();
    compare("rmsprop", DType::F64, |p| RmsProp::new(p, plain));
    let all = RmsPropOptions {
        learning_rate: 0.02,
        alpha: 0.9,
        eps: 1e-6,
        weight_decay: 0.1,
        momentum: 0.8,
        centered: true,
    };
    compare("rmsprop_all", DType::F64, |p| RmsProp::new(p, all));
    let plain = AdagradOptions { learning_rate: 0.1, ..Default::default() };
    compare("adagrad", DType::F64, |p| Adagrad::new(p, plain));
    let all =
        AdagradOptions { rate_decay: 0.2, initial: 0.3, eps: 1e-3, weight_decay: 0.1, ..plain };
    compare("adagrad_all", DType::F64, |p| Adagrad::new(p, all));
    compare("adadelta", DType::F64, |p| Adadelta::new(p, AdadeltaOptions::default()));
    let all = AdadeltaOptions { learning_rate: 0.5, rho: 0.8, eps: 1e-3, weight_decay: 0.1 };
    compare("adadelta_all", DType::F64, |p| Adadelta::new(p, all));
    compare("rprop", DType::F64, |p| Rprop::new(p, RpropOptions::default()));
    let all = RpropOptions { learning_rate: 0.1, etas: [0.4, 1.5], sizes: [0.08, 0.12] };
    compare("rprop_all", DType::F64, |p| Rprop::new(p, all));
}

#[test]
fn relatives_of_adam_agree_with_pytorch() {
    compare("adamax", DType::F64, |p| Adamax::new(p, AdamaxOptions::default()));
    let all = AdamaxOptions {
        learning_rate: 0.1,
        betas: [0.8, 0.9],
        weight_decay: 0.1,
        ..Default::default()
    };
    compare("adamax_decay", DType::F64, |p| Adamax::new(p, all));
    let plain = NAdamOptions::default();
    compare("nadam", DType::F64, |p| NAdam::new(p, plain));
    let decayed = NAdamOptions { learning_rate: 0.1, weight_decay: 0.1, ..plain };
    let all = NAdamOptions { betas: [0.8, 0.9], momentum_decay: 0.1, ..decayed };
    compare("nadam_decay", DType::F64, |p| NAdam::new(p, all));
    let apart = NAdamOptions { decoupled: true, ..decayed };
    compare("nadam_decoupled", DType::F64, |p| NAdam::new(p, apart));
    let plain = RAdamOptions { learning_rate: 0.01, ..Default::default() };
    compare("radam", DType::F64, |p| RAdam::new(p, plain));
    let all = RAdamOptions { learning_rate: 0.1, betas: [0.8, 0.9], weight_decay: 0.1, ..plain };
    compare("radam_decay", DType::F64, |p| RAdam::new(p, all));
    let apart = RAdamOptions { decoupled: true, ..all };
    compare("radam_decoupled", DType::F64, |p| RAdam::new(p, apart));
    let lamb = LambOptions { learning_rate: 0.01, ..Default::default() };
    compare("lamb", DType::F64, |p| Lamb::new(p, lamb));
    let plain = LionOptions { learning_rate: 0.01, ..Default::default() };
    compare("lion", DType::F64, |p| Lion::new(p, plain));
    let all = LionOptions { betas: [0.5, 0.8], weight_decay: 0.1, ..plain };
    compare("lion_decay", DType::F64, |p| Lion::new(p, all));
    let muon = MuonOptions { learning_rate: 0.1, ..Default::default() };
    compare_matrix("muon_tall", DType::F64, &[3, 2], |p| Muon::new(p, muon));
    let plain = MuonOptions { momentum: 0.8, nesterov: false, weight_decay: 0.0, ..muon };
    compare_matrix("muon_wide", DType::F64, &[2, 3], |p| Muon::new(p, plain));
}

#[test]
fn every_optimizer_descends() {
    let d = &device();
    let descend = |make: &dyn Fn(Vec<Param>) -> Box<dyn Optimizer>| {
        let x = Param::new(Tensor::new([3f32, -2.0], d).unwrap());
        let mut optimizer = make(vec![x.clone()]);
        for _ in 0..300 {
            let loss = (x.tensor() - 1.0).square().sum(..).unwrap();
            optimizer.step(&loss).unwrap();
        }
        x.tensor().to_vec::<f32>().unwrap()
    };
    let sgd = SgdOptions { learning_rate: 0.05, momentum: 0.5, ..Default::default() };
    let adam = AdamOptions { learning_rate: 0.1, ..Default::default() };
    let rms = RmsPropOptions { learning_rate: 0.05, ..Default::default() };
    let delta = AdadeltaOptions { learning_rate: 20.0, ..Default::default() };
    let nadam = NAdamOptions { learning_rate: 0.1, ..Default::default() };
    let lion = LionOptions { learning_rate: 0.02, betas: [0.5, 0.5], ..Default::default() };
    let lamb = LambOptions { learning_rate: 0.01, weight_decay: 0.0, ..Default::default() };
    for (i, end) in [
        descend(&|p| Box::new(Sgd::new(p, sgd).unwrap())),
        descend(&|p| Box::new(Adam::new(p, adam).unwrap())),
        descend(&|p| Box::new(AdamW::new(p, adam).unwrap())),
        descend(&|p| Box::new(RmsProp::new(p, rms).unwrap())),
        descend(&|p| Box::new(Adadelta::new(p, delta).unwrap())),
        descend(&|p| Box::new(NAdam::new(p, nadam).unwrap())),
        descend(&|p| Box::new(Lion::new(p, lion).unwrap())),
        descend(&|p| Box::new(Lamb::new(p, lamb).unwrap())),
        descend(&|p| Box::new(Rprop::new(p, RpropOptions::default()).unwrap())),
    ]
    .into_iter()
    .enumerate()
    {
        assert!(end.iter().all(|x| (x - 1.0).abs() < 0.02), "{i}: {end:?}");
    }
}

#[test]
fn a_step_touches_what_it_should() {
    let d = &device();
    let one = || Tensor::new([1f32, 2.0], d).unwrap();
    let (used, unused, frozen) = (Param::new(one()), Param::new(one()), Param::new(one()));
    frozen.set_trainable(false);
    let count = Param::state(Tensor::zeros([], DType::I64, d));
    let all = vec![used.clone(), unused.clone(), frozen.clone(), used.clone(), count.clone()];
    let options = SgdOptions { learning_rate: 0.5, weight_decay: 0.1, ..Default::default() };
    let mut sgd = Sgd::new(all, options).unwrap();
    assert_eq!(sgd.parameters().len(), 4, "a tied parameter counts once");
    count.set(&(count.tensor() + 1)).unwrap();
    let loss = used.tensor().mul(frozen.tensor()).unwrap().sum(..).unwrap();
    sgd.step(&loss).unwrap();
    assert!(loss.is_realized() && count.tensor().is_realized());
    assert_eq!(used.tensor().to_vec::<f32>().unwrap(), [0.45, 0.9]);
    assert_eq!(unused.tensor().to_vec::<f32>().unwrap(), [1.0, 2.0]);
    assert_eq!(frozen.tensor().to_vec::<f32>().unwrap(), [1.0, 2.0]);
    assert!(used.tensor().is_tracked());

    let message = sgd.step(&one()).unwrap_err().to_string();
    assert!(message.contains("one number"), "{message}");
    let constant = Tensor::new(1f32, d).unwrap();
    assert!(sgd.step(&constant).unwrap_err().to_string().contains("depends on none"));
    assert!(sgd.apply(&[None], &[]).is_err());
    let wrong = Some(constant);
    assert!(sgd.apply(&[wrong, None, None, None], &[]).is_err());
    assert_eq!(used.tensor().to_vec::<f32>().unwrap(), [0.45, 0.9]);
}

#[test]
fn a_failed_step_changes_nothing() {
    let d = &device();
    let x = Param::new(Tensor::new([1f32, 2.0], d).unwrap());
    let mut adam = Adam::new(vec![x.clone()], AdamOptions::default()).unwrap();
    let loss = || x.tensor().square().sum(..).unwrap();
    adam.step(&loss()).unwrap();
    let (value, state) = (x.tensor().to_vec::<f32>().unwrap(), format!("{:?}", adam.state()));
    d.trim();
    d.set_memory_limit(Some(0));
    assert!(adam.step(&loss()).is_err());
    d.set_memory_limit(None);
    assert_eq!(x.tensor().to_vec::<f32>().unwrap(), value);
    assert_eq!(format!("{:?}", adam.state()), state);
    adam.step(&loss()).unwrap();
}

#[test]
fn memory_stays_flat() {
    let d = &device();
    let x = Param::new(Tensor::zeros([500], DType::F32, d));
    let mut adam = AdamW::new(vec![x.clone()], AdamOptions::default()).unwrap();
    let mut levels = Vec::new();
    for _ in 0..30 {
        adam.step(&(x.tensor() - 1.0).square().sum(..).unwrap()).unwrap();
        levels.push(d.stats().live_bytes);
    }
    assert!(levels[2..].iter().all(|&level| level == levels[2]), "{levels:?}");
}

#[test]
fn halves_are_updated_in_single_precision() {
    let d = &device();
    let x = Param::new(Tensor::full([1], 1f32, d).cast(DType::BF16));
    let options = SgdOptions { learning_rate: 1.0, momentum: 0.5, ..Default::default() };
    let mut sgd = Sgd::new(vec![x.clone()], options).unwrap();
    // Each step alone is below the resolution of bf16 at 1; the momentum is not lost.
    let gradient = Tensor::full([1], 1e-3f32, d).cast(DType::BF16);
    sgd.apply(&[Some(gradient)], &[]).unwrap();
    assert_eq!(sgd.state()["0.momentum"].dtype(), DType::F32);
    assert_eq!(x.dtype(), DType::BF16);
}

/// The p-norm of numbers.
fn norm(numbers: &[f64], p: f64) -> f64 {
    let sizes = numbers.iter().map(|x| x.abs());
    match p {
        f64::INFINITY => sizes.fold(0.0, f64::max),
        f64::NEG_INFINITY => sizes.fold(f64::INFINITY, f64::min),
        0.0 => sizes.filter(|&x| x != 0.0).count() as f64,
        p => sizes.map(|x| x.powf(p)).sum::<f64>().powf(1.0 / p),
    }
}

/// Gradients without elements change neither the norm nor others, whichever norm it is.
#[test]
fn the_norm_of_several_is_that_of_one_vector() {
    let d = &device();
    let inf = f64::INFINITY;
    let lists: [&[&[f64]]; 9] = [
        &[&[], &[1.0, 1.0]],
        &[&[3.0, -4.0], &[], &[12.0]],
        &[&[], &[]],
        &[&[0.0, 0.0], &[0.0]],
        &[&[0.0, 2.0], &[-0.5], &[]],
        &[&[7.0]],
        &[&[]],
        &[&[1.0, -inf], &[2.0]],
        &[&[1e12, -2e12], &[3e12]],
    ];
    for dtype in [DType::F32, DType::F64] {
        for list in lists {
            for p in [1.0, 2.0, inf, -inf, 0.0, 0.5, 1.5, 3.0, -1.0, -2.0] {
                let tensor =
                    |x: &&[f64]| Some(Tensor::from_slice(x, [x.len()], d).unwrap().cast(dtype));
                let gradients: Vec<Option<Tensor>> = list.iter().map(tensor).collect();
                let total = total_norm(&gradients, p).unwrap();
                assert_eq!(total.dtype(), dtype);
                let each: Vec<f64> = list.iter().map(|x| norm(x, p)).collect();
                // Of counts it is the number of those that are not 0, as in PyTorch.
                let wanted = if p == 0.0 { norm(&each, p) } else { norm(&list.concat(), p) };
                let found = total.cast(DType::F64).item::<f64>().unwrap();
                let close = (found - wanted).abs() <= 1e-5 * wanted.abs();
                assert!(found == wanted || close, "{list:?} {p}: {found} {wanted}");
                let clipped = clip_to_norm(&gradients, 2.0, &total).unwrap();
                let factor = (2.0 / (wanted + 1e-6)).min(1.0);
                for (x, clipped) in list.iter().zip(clipped) {
                    let found = clipped.unwrap().cast(DType::F64).to_vec::<f64>().unwrap();
                    for (x, found) in x.iter().zip(found) {
                        let wanted = x * factor;
                        let same = found == wanted || found.is_nan() && wanted.is_nan();
                        assert!(same || (found - wanted).abs() <= 1e-5 * wanted.abs());
                    }
                }
            }
        }
    }
}

#[test]
fn clipping_rounds_halves_once_and_takes_any_limit() {
    let d = &device();
    for dtype in [DType::F16, DType::BF16] {
        let gradients =
            [Some(Tensor::full([4], 300f32, d).cast(dtype)), Some(wave(0.7, DType::F32, d))];
        let (clipped, norm) = clip_norm(&gradients, 1.0).unwrap();
        let exact = 300.0 / (norm.item::<f32>().unwrap() + 1e-6);
        let rounded = Tensor::full([4], exact, d).cast(dtype).cast(DType::F32);
        let found = clipped[0].as_ref().unwrap().cast(DType::F32).to_vec::<f32>().unwrap();
        assert_eq!(found, rounded.to_vec::<f32>().unwrap(), "{dtype}");
    }
    let large = [Some(Tensor::full([1], 2e38f32, d))];
    let clipped = clip_to_norm(&large, 1.0, &total_norm(&large, 1.0).unwrap()).unwrap();
    assert!((clipped[0].as_ref().unwrap().item::<f32>().unwrap() - 1.0).abs() < 1e-6);
    // Without a limit the norm alone is wanted.
    let (same, norm) = clip_norm(&large, f64::INFINITY).unwrap();
    assert_eq!(same[0].as_ref().unwrap().item::<f32>().unwrap(), 2e38);
    assert!(norm.item::<f32>().unwrap().is_infinite());
    let kept = clip_value(&large, f64::INFINITY).unwrap();
    assert_eq!(kept[0].as_ref().unwrap().item::<f32>().unwrap(), 2e38);
    for wrong in [-1.0, f64::NAN] {
        assert!(clip_norm(&large, wrong).is_err() && clip_value(&large, wrong).is_err());
    }
    assert!(total_norm(&large, f64::NAN).is_err() && total_norm(&[None], 2.0).is_err());
    // Beside gradients of a wider dtype, all squares are of that.
    let narrow: Vec<f32> = (0..1000).map(|i| (i as f32 * 0.37).sin()).collect();
    let wide = vec![0.25f64; 3];
    let squares: f64 =
        narrow.iter().map(|&x| f64::from(x).powi(2)).chain(wide.iter().map(|x| x * x)).sum();
    let mixed = [
        Some(Tensor::from_slice(&narrow, [1000], d).unwrap()),
        Some(Tensor::from_slice(&wide, [3], d).unwrap()),
    ];
    let norm = total_norm(&mixed, 2.0).unwrap().item::<f64>().unwrap();
    assert!((norm - squares.sqrt()).abs() < 1e-13 * norm, "{norm} {}", squares.sqrt());
    assert!(clip_to_norm(&large, 1.0, &wave(0.7, DType::F32, d)).is_err());
}

/// A momentum that is set acts as one that was there from the start, and compiles nothing.
#[test]
fn momentum_is_set_between_steps() {
    let d = &device();
    let gradient = |step: usize| [Some(wave(0.3 + 0.5 * step as f64, DType::F64, d))];
    let options = SgdOptions { learning_rate: 0.1, momentum: 0.9, ..Default::default() };
    let x = Param::new(wave(0.7, DType::F64, d));
    let mut sgd = Sgd::new(vec![x.clone()], options).unwrap();
    let (mut value, mut kept) = (x.tensor().to_vec::<f64>().unwrap(), vec![0.0; 6]);
    let mut misses = 0;
    for step in 0..6 {
        let momentum = 0.9 - 0.1 * step as f64;
        sgd.set_momentum(momentum).unwrap();
        assert_eq!(sgd.momentum(), Some(momentum));
        let before = d.stats();
        sgd.apply(&gradient(step), &[]).unwrap();
        misses = d.stats().since(&before).plan_misses;
        let slope = gradient(step)[0].as_ref().unwrap().to_vec::<f64>().unwrap();
        for i in 0..6 {
            kept[i] = momentum * kept[i] + slope[i];
            value[i] -= 0.1 * kept[i];
        }
    }
    assert_eq!(misses, 0);
    let found = x.tensor().to_vec::<f64>().unwrap();
    assert!(found.iter().zip(&value).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?} {value:?}");
    assert!(sgd.set_momentum(-0.1).is_err() && sgd.set_momentum(0.0).is_err());
    assert_eq!(sgd.momentum(), Some(0.9 - 0.1 * 5.0));
    let place = || vec![Param::new(wave(0.7, DType::F64, d))];
    let mut adam = Adam::new(place(), AdamOptions::default()).unwrap();
    adam.set_momentum(0.5).unwrap();
    assert!(adam.options().betas == [0.5, 0.999] && adam.set_momentum(1.0).is_err());
    let mut plain = Sgd::new(place(), SgdOptions::default()).unwrap();
    assert!(plain.set_momentum(0.5).is_err());
    let mut none = Adagrad::new(place(), AdagradOptions::default()).unwrap();
    assert!(none.momentum().is_none() && none.set_momentum(0.5).is_err());
}

#[test]
fn limits_and_options() {
    let d = &device();
    let vector = |data: [f32; 2]| Some(Tensor::new(data, d).unwrap());
    let gradients = [vector([3.0, 0.0]), None, vector([0.0, -4.0])];
    let values = |gradient: &Option<Tensor>| gradient.as_ref().unwrap().to_vec::<f32>().unwrap();
    let (clipped, norm) = clip_norm(&gradients, 2.5).unwrap();
    assert_eq!(norm.item::<f32>().unwrap(), 5.0);
    assert!((values(&clipped[0])[0] - 1.5).abs() < 1e-5 && clipped[1].is_none());
    let (kept, _) = clip_norm(&gradients, 10.0).unwrap();
    assert_eq!(values(&kept[2]), [0.0, -4.0]);
    assert_eq!(values(&clip_value(&gradients, 1.0).unwrap()[2]), [0.0, -1.0]);
    assert!(clip_norm(&[None], 1.0).is_err() && clip_norm(&gradients, -1.0).is_err());

    let sgd = |options| Sgd::new(vec![], options).is_err();
    let plain = SgdOptions::default();
    assert!(sgd(SgdOptions { nesterov: true, ..plain }));
    assert!(sgd(SgdOptions { learning_rate: f64::NAN, ..plain }));
    assert!(sgd(SgdOptions { momentum: -0.1, ..plain }));
    let adam = |options| Adam::new(vec![], options).is_err();
    assert!(adam(AdamOptions { betas: [1.0, 0.9], ..Default::default() }));
    assert!(adam(AdamOptions { eps: -1.0, ..Default::default() }));

    let x = Param::new(Tensor::new([1f32, 2.0], d).unwrap());
    let mut adam = Adam::new(vec![x], AdamOptions::default()).unwrap();
    let mut state = adam.state();
    assert_eq!(state.keys().collect::<Vec<_>>(), ["0.exp_avg", "0.exp_avg_sq", "0.step"]);
    state.insert("0.exp_avg".into(), Tensor::zeros([3], DType::F32, d));
    assert!(adam.load_state(&state).unwrap_err().to_string().contains("[3] instead of [2]"));
    state.remove("0.exp_avg");
    assert!(adam.load_state(&state).is_err());
}
