//! L-BFGS against PyTorch's iterates, and what else a step promises.
//!
//! `data/torch_lbfgs.txt` is written by `scripts/parity_optim.py`: a problem, the number of a step, the
//! loss that the step gave and the parameters after it.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use zyx_backend_cpu::Cpu;
use zyx_core::{DType, Device, Result, Runtime, Tensor};
use zyx_optim::{Lbfgs, LbfgsOptions, Param};

fn device() -> Device {
    let runtime = Runtime::default();
    runtime.register(Cpu::default());
    runtime.device("cpu").unwrap()
}

fn valley(x: &[Param]) -> Result<Tensor> {
    let x = x[0].tensor();
    let (a, b) = (x.select_index(0, 0)?, x.select_index(0, 1)?);
    Ok((&a - 1.0).square() + (b - a.square()).square() * 100.0)
}

fn line(x: &[Param]) -> Result<Tensor> {
    let (w, b) = (x[0].tensor(), x[1].tensor());
    let wave =
        |n: usize, f: &dyn Fn(f64) -> f64| -> Vec<f64> { (0..n).map(|i| f(i as f64)).collect() };
    let waves = wave(36, &|i| (1.3 * (i / 3.0).floor() + 0.7 * (i % 3.0)).sin());
    let waves = Tensor::from_slice(&waves, [12, 3], w.device())?.cast(w.dtype());
    let target = Tensor::from_slice(&wave(12, &|i| (0.9 * i).cos()), [12], w.device())?;
    let error = (waves.mv(&w)? + b).tanh() - target.cast(w.dtype());
    Ok(error.square().mean(..)? + w.square().sum(..)? * 0.01)
}

type Loss = fn(&[Param]) -> Result<Tensor>;

fn problem(name: &str, dtype: DType) -> (Vec<Param>, Loss) {
    let d = &device();
    let param = |x: Tensor| Param::new(x.cast(dtype));
    match name.starts_with("valley") {
        true => (vec![param(Tensor::new([-1.2f64, 1.0], d).unwrap())], valley),
        false => {
            let w = Tensor::new([0.1f64, -0.2, 0.3], d).unwrap();
            (vec![param(w), param(Tensor::new(0.5f64, d).unwrap())], line)
        }
    }
}

fn options(name: &str) -> LbfgsOptions {
    let strong_wolfe = name.contains('_');
    let usual = LbfgsOptions { strong_wolfe, ..Default::default() };
    match name {
        "valley" => LbfgsOptions { learning_rate: 0.1, max_iterations: 4, ..usual },
        "valley_wolfe" => LbfgsOptions { max_iterations: 3, ..usual },
        "valley_short" => LbfgsOptions { max_iterations: 4, history: 2, ..usual },
        "line" => LbfgsOptions { learning_rate: 0.5, max_iterations: 5, ..usual },
        "line_wolfe" => LbfgsOptions { max_iterations: 5, max_evaluations: Some(5), ..usual },
        other => panic!("{other}"),
    }
}

fn values(parameters: &[Param]) -> Vec<f64> {
    let all = parameters.iter().map(|p| p.tensor().cast(DType::F64).to_vec::<f64>().unwrap());
    all.flatten().collect()
}

#[test]
fn iterates_are_pytorchs() -> Result<()> {
    let text = include_str!("data/torch_lbfgs.txt");
    let mut compared = 0;
    for name in ["valley", "valley_wolfe", "valley_short", "line", "line_wolfe"] {
        let (parameters, loss) = problem(name, DType::F64);
        let mut lbfgs = Lbfgs::new(parameters.clone(), options(name))?;
        for row in text.lines().filter(|row| row.split(' ').next() == Some(name)) {
            // The state survives saving and restoring between any two steps.
            let state = lbfgs.state();
            lbfgs = Lbfgs::new(parameters.clone(), options(name))?;
            lbfgs.load_state(&state)?;
            let expected: Vec<f64> = row.split(' ').skip(2).map(|x| x.parse().unwrap()).collect();
            let first = lbfgs.step(|| loss(&parameters))?;
            let found = [vec![first], values(&parameters)].concat();
            for (x, y) in found.iter().zip(&expected) {
                assert!((x - y).abs() <= 1e-8 * y.abs().max(1.0), "{row}: {found:?}");
            }
            assert_eq!(found.len(), expected.len());
            compared += 1;
        }
    }
    assert_eq!(compared, 6 + 12 + 12 + 6 + 5);
    Ok(())
}

#[test]
fn minima_are_found_in_single_precision() -> Result<()> {
    for name in ["valley_wolfe", "line_wolfe"] {
        let (parameters, loss) = problem(name, DType::F32);
        let options = LbfgsOptions { strong_wolfe: true, max_iterations: 80, ..Default::default() };
        let mut lbfgs = Lbfgs::new(parameters.clone(), options)?;
        lbfgs.step(|| loss(&parameters))?;
        let (exact, loss64) = problem(name, DType::F64);
        Lbfgs::new(exact.clone(), options)?.step(|| loss64(&exact))?;
        for (x, y) in values(&parameters).iter().zip(values(&exact)) {
            assert!((x - y).abs() < 2e-3, "{name}: {x}, not {y}");
        }
    }
    Ok(())
}

#[test]
fn a_step_that_fails_changes_nothing() -> Result<()> {
    let (parameters, loss) = problem("line_wolfe", DType::F64);
    let mut lbfgs = Lbfgs::new(parameters.clone(), options("line_wolfe"))?;
    lbfgs.step(|| loss(&parameters))?;
    let (before, state) = (values(&parameters), lbfgs.state());
    let mut calls = 0;
    let failed = lbfgs.step(|| {
        calls += 1;
        if calls < 3 { loss(&parameters) } else { parameters[0].tensor().reshape([7]) }
    });
    assert!(failed.is_err() && calls == 3);
    assert_eq!(values(&parameters), before);
    for (name, x) in lbfgs.state() {
        let [x, y] = [&x, &state[&name]].map(|x| x.cast(DType::F64).to_vec::<f64>().unwrap());
        assert_eq!(x, y, "{name}");
    }
    Ok(())
}

#[test]
fn what_stays_and_what_is_refused() -> Result<()> {
    let (parameters, loss) = problem("line", DType::F64);
    parameters[1].set_trainable(false);
    let fixed = values(&parameters)[3];
    let mut lbfgs = Lbfgs::new(parameters.clone(), options("line"))?;
    lbfgs.step(|| loss(&parameters))?;
    assert_eq!(values(&parameters)[3], fixed);
    assert_ne!(values(&parameters)[0], 0.1);
    let says = |error: zyx_core::Error, part: &str| {
        assert!(error.to_string().contains(part), "{error}");
    };
    says(lbfgs.step(|| Tensor::new(1f64, &device())).unwrap_err(), "none of the parameters");
    says(lbfgs.step(|| Ok(parameters[0].tensor())).unwrap_err(), "not one number");
    let mut one = |gradients: Vec<Option<Tensor>>| {
        lbfgs.step_with(&mut || Ok((loss(&parameters)?, gradients.clone()))).unwrap_err()
    };
    says(one(vec![]), "0 gradients for 2 parameters");
    says(one(vec![Some(parameters[1].tensor()), None]), "gradient 0 has shape");
    says(Lbfgs::new(vec![], options("line")).unwrap_err(), "no parameters");
    let wrong = LbfgsOptions { learning_rate: -1.0, ..options("line") };
    says(Lbfgs::new(parameters.clone(), wrong).unwrap_err(), "learning_rate is -1");
    let mut state = lbfgs.state();
    state.insert("0.step".to_owned(), Tensor::new([1f64], &device())?);
    says(lbfgs.load_state(&state).unwrap_err(), "`0.step` is [1] instead of [4]");
    state.clear();
    says(lbfgs.load_state(&state).unwrap_err(), "`iterations` is missing");
    Ok(())
}
