//! Distributions: formulas against PyTorch's numbers, samples against formulas, gradients, edges.
//!
//! `data/torch_distributions.txt` was written by `scripts/parity_distributions.py`.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use zyx_backend_cpu::Cpu;
use zyx_core::{DType, Device, Jit, Result, Rng, Runtime, Shape, Tensor};
use zyx_nn::distributions::*;

fn devices() -> Vec<Device> {
    let runtime = Runtime::default();
    runtime.register(Cpu::default());
    ["reference", "cpu"].map(|name| runtime.device(name).unwrap()).into()
}

fn cpu() -> Device {
    devices().pop().unwrap()
}

/// `[2 3] 1.0 2.0 ..`
fn parse(text: &str, device: &Device) -> Tensor {
    let (shape, numbers) = text.trim().strip_prefix('[').unwrap().split_once(']').unwrap();
    let shape: Vec<usize> = shape.split_whitespace().map(|n| n.parse().unwrap()).collect();
    let numbers: Vec<f64> = numbers.split_whitespace().map(|x| x.parse().unwrap()).collect();
    Tensor::from_slice(&numbers, &shape[..], device).unwrap()
}

fn law(name: &str, parameters: &[Tensor]) -> Law {
    Law::by_name(name, &parameters.iter().collect::<Vec<_>>(), true).unwrap()
}

/// All numbers of a quantity of a line.
struct Line {
    quantity: String,
    value: Option<Tensor>,
    expected: Tensor,
    laws: Vec<(String, Vec<Tensor>)>,
}

fn lines(device: &Device) -> Vec<Line> {
    let read = |line: &str| {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let value = (fields[1] != "-").then(|| parse(fields[1], device));
        let mut laws: Vec<(String, Vec<Tensor>)> = vec![];
        for field in &fields[3..] {
            match field.starts_with('[') {
                true => laws.last_mut().unwrap().1.push(parse(field, device)),
                false => laws.push(((*field).to_owned(), vec![])),
            }
        }
        Line { quantity: fields[0].to_owned(), value, expected: parse(fields[2], device), laws }
    };
    include_str!("data/torch_distributions.txt").lines().map(read).collect()
}

fn compute(line: &Line) -> Result<Tensor> {
    let (name, parameters) = &line.laws[0];
    let value = line.value.as_ref();
    match line.quantity.as_str() {
        "igamma" => return igamma(&parameters[0], value.unwrap()),
        "igammac" => return igammac(&parameters[0], value.unwrap()),
        _ => {}
    }
    let first = law(name, parameters);
    match (line.quantity.as_str(), value) {
        ("log_prob", Some(x)) => first.log_prob(x),
        ("cdf", Some(x)) => first.cdf(x),
        ("icdf", Some(x)) => first.icdf(x),
        ("entropy", None) => first.entropy(),
        ("mean", None) => first.mean(),
        ("variance", None) => first.variance(),
        ("kl_divergence", None) => kl_divergence(&first, &law(&line.laws[1].0, &line.laws[1].1)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn formulas_give_pytorchs_numbers() -> Result<()> {
    for device in devices() {
        let mut families = vec![];
        for line in lines(&device) {
            let what = format!("{} of {:?} on {device}", line.quantity, line.laws);
            let found = compute(&line)?;
            assert_eq!(found.shape(), line.expected.shape(), "{what}");
            // PyTorch's polynomials for Bessel functions are exact to 4e-7.
            let approximate = line.laws.iter().any(|(name, _)| name == "VonMises");
            let bound = if approximate { 1e-6 } else { 1e-9 };
            // Both incomplete gamma functions are exact where they are small.
            let least = if line.quantity.starts_with("igamma") { 1e-300 } else { 1.0 };
            for (x, y) in found.to_vec::<f64>()?.iter().zip(line.expected.to_vec::<f64>()?) {
                let same = *x == y || x.is_nan() && y.is_nan();
                let error = (x - y).abs() / y.abs().max(least);
                assert!(same || error <= bound, "{what}: {x}, not {y}");
            }
            families.push(line.laws[0].0.clone());
        }
        for (name, _) in Law::families() {
            assert!(families.iter().any(|known| known == name), "{name} is compared with nothing");
        }
    }
    Ok(())
}

/// Bounds on statistics that equal distributions exceed once in a thousand times.
const KOLMOGOROV: f64 = 1.95;
const DEVIATIONS: f64 = 4.5;

#[test]
fn samples_follow_their_distribution() -> Result<()> {
    let device = &cpu();
    let n = 4000;
    let mut compared = 0;
    for line in lines(device).iter().filter(|line| line.quantity == "log_prob") {
        let (name, parameters) = &line.laws[0];
        let law = law(name, parameters);
        let x = law.sample(&[n], &mut Rng::seed(7))?;
        assert_eq!(x.shape().dims()[0], n);
        assert!(!law.log_prob(&x)?.is_nan().any(..)?.item::<bool>()?, "{name}");
        if let Ok(p) = law.cdf(&x) {
            // The distribution function of samples is uniform.
            let p = p.reshape([n, p.numel() / n])?.t().to_vec::<f64>()?;
            for p in p.chunks(n) {
                let mut p = p.to_vec();
                p.sort_by(f64::total_cmp);
                let distance = p.iter().enumerate().map(|(i, p)| (p - i as f64 / n as f64).abs());
                let statistic = distance.fold(0.0, f64::max) * (n as f64).sqrt();
                assert!(statistic < KOLMOGOROV, "{name}: {statistic}");
            }
            compared += 1;
        } else if let (Ok(mean), Ok(variance)) = (law.mean(), law.variance()) {
            if name == "VonMises" {
                continue;
            }
            let error = (x.mean(0)? - &mean) / (variance.clone() / n as f64).sqrt();
            for (x, v) in error.to_vec::<f64>()?.iter().zip(variance.to_vec::<f64>()?) {
                assert!(x.abs() < DEVIATIONS || !v.is_finite(), "{name}: {x} deviations");
            }
            // The mean of the squared deviation, too, whose spread is estimated.
            let square = (&x - &mean).square();
            let spread = ((square.var(0, 1)?) / n as f64).sqrt();
            let error = (square.mean(0)? - &variance) / spread.maximum(1e-12)?;
            for (x, v) in error.to_vec::<f64>()?.iter().zip(variance.to_vec::<f64>()?) {
                assert!(x.abs() < 5.0 || !v.is_finite(), "{name}: variance {x} deviations off");
            }
            compared += 1;
        }
    }
    assert!(compared >= 27, "{compared}");
    Ok(())
}

/// Counts by rejection and by inversion, classes, and densities without a distribution function: how
/// often each cell comes, against its probability.
#[test]
fn samples_fall_into_cells_by_probability() -> Result<()> {
    let device = &cpu();
    let t = |x: f64| Tensor::new(x, device).unwrap();
    let n = 6000;
    let check = |law: &dyn Distribution, low: f64, high: f64, whole: bool| -> Result<()> {
        let x = law.sample(&[n], &mut Rng::seed(11))?.to_vec::<f64>()?;
        let cells = if whole { (high - low) as usize } else { 24 };
        let width = (high - low) / cells as f64;
        // Integrals by the midpoint rule; of counts the probability itself.
        let parts = if whole { 1 } else { 50 };
        let points: Vec<f64> = (0..cells * parts)
            .map(|i| low + (i as f64 + if whole { 0.0 } else { 0.5 }) * width / parts as f64)
            .collect();
        let p = law.log_prob(&Tensor::from_slice(&points, [points.len()], device)?)?.exp();
        let p = p.to_vec::<f64>()?;
        let (mut statistic, mut used, mut rest) = (0.0, 0.0, [n as f64, 0.0]);
        for (cell, p) in p.chunks(parts).enumerate() {
            let expected = n as f64 * p.iter().sum::<f64>() * width / parts as f64;
            let from = low + cell as f64 * width;
            let count = x.iter().filter(|&&x| x >= from && x < from + width).count() as f64;
            if expected >= 5.0 {
                statistic += (count - expected).powi(2) / expected;
                used += 1.0;
                rest = [rest[0] - expected, rest[1] + count];
            }
        }
        let rest = [rest[0].max(0.0), n as f64 - rest[1]];
        assert!((rest[0] - rest[1]).abs() < 4.0 * rest[0].sqrt() + 8.0, "{law:?}: {rest:?}");
        assert!(used >= 2.0);
        let bound = used + 3.3 * (2.0f64 * used).sqrt() + 4.0;
        assert!(statistic < bound, "{law:?}: {statistic} of {used} cells");
        Ok(())
    };
    for rate in [0.3, 4.0, 9.9, 10.1, 37.0, 900.0] {
        let spread = 6.0 * f64::sqrt(rate) + 8.0;
        check(
            &Poisson::new(&t(rate))?,
            (rate - spread).max(0.0).floor(),
            (rate + spread).ceil(),
            true,
        )?;
    }
    for (trials, p) in
        [(1.0, 0.3), (20.0, 0.5), (200.0, 0.02), (200.0, 0.97), (1000.0, 0.4), (60.0, 0.75)]
    {
        let law = Binomial::new(&t(trials), &logits_of(&t(p)))?;
        check(&law, 0.0, trials + 1.0, true)?;
    }
    check(&NegativeBinomial::new(&t(2.5), &t(1.0))?, 0.0, 60.0, true)?;
    check(&Geometric::new(&t(-0.5))?, 0.0, 40.0, true)?;
    let logits = Tensor::new([0.5f64, f64::NEG_INFINITY, 2.0, -1.0], device)?;
    check(&Categorical::new(&logits)?, 0.0, 4.0, true)?;
    let pi = std::f64::consts::PI;
    for concentration in [1e-3, 0.7, 30.0] {
        check(&VonMises::new(&t(1.0), &t(concentration))?, -pi, pi, false)?;
    }
    check(&Beta::new(&t(2.0), &t(0.8))?, 0.0, 0.99, false)?;
    check(&StudentT::new(&t(1.5), &t(0.0), &t(1.0))?, -9.0, 9.0, false)?;
    check(&FisherSnedecor::new(&t(4.0), &t(5.0))?, 0.0, 9.0, false)?;
    check(&RelaxedBernoulli::new(&t(0.7), &t(0.4))?, 0.02, 0.98, false)?;
    Ok(())
}

#[test]
fn single_precision_is_nearly_as_exact() -> Result<()> {
    let device = &cpu();
    for line in lines(device) {
        let narrow = |x: &Tensor| x.cast(DType::F32);
        let expected = line.expected.to_vec::<f64>()?;
        let what = format!("{} of {:?}", line.quantity, line.laws);
        let narrowed = Line {
            quantity: line.quantity.clone(),
            value: line.value.as_ref().map(narrow),
            expected: line.expected.clone(),
            laws: line
                .laws
                .iter()
                .map(|(n, p)| (n.clone(), p.iter().map(narrow).collect()))
                .collect(),
        };
        let found = compute(&narrowed)?;
        assert_eq!(found.dtype(), DType::F32, "{what}");
        for (x, y) in found.cast(DType::F64).to_vec::<f64>()?.iter().zip(expected) {
            let same = *x == y || x.is_nan() && y.is_nan();
            assert!(same || (x - y).abs() <= 1e-4 * y.abs().max(1.0), "{what}: {x}, not {y}");
        }
    }
    Ok(())
}

/// Gradients by parameters and values against difference quotients.
#[test]
fn gradients_are_those_of_difference_quotients() -> Result<()> {
    let device = &cpu();
    let step = 1e-5;
    for line in lines(device) {
        // Counts have no derivatives by values, and Uniform's parameters none at the ends.
        let differentiable = ["log_prob", "entropy", "cdf", "kl_divergence", "igamma"];
        if !differentiable.contains(&line.quantity.as_str()) {
            continue;
        }
        for (which, parameter) in line.laws[0].1.iter().enumerate() {
            let name = line.laws[0].0.as_str();
            if name.contains("omial") && which == 0 {
                continue;
            }
            // Matrices stay triangular.
            let direction =
                Tensor::rand(parameter.shape().clone(), DType::F64, &mut Rng::seed(3), device)?;
            let direction = if name == "MultivariateNormal" && which == 1 {
                direction.tril(0)?
            } else {
                direction
            };
            let at = |parameter: Tensor| -> Result<Tensor> {
                let mut laws = line.laws.clone();
                laws[0].1[which] = parameter;
                let (value, expected) = (line.value.clone(), line.expected.clone());
                let found =
                    compute(&Line { quantity: line.quantity.clone(), value, expected, laws })?;
                found.is_finite().where_(&found, 0.0)?.sum(..)
            };
            let x = parameter.tracked();
            let slope = at(x.clone())?.grad(&[&x])?.remove(0);
            let slope = slope.map_or(Ok(0.0), |dx| dx.mul(&direction)?.sum(..)?.item::<f64>())?;
            let (above, below) =
                (at(parameter + &direction * step)?, at(parameter - &direction * step)?);
            let expected = (above - below).item::<f64>()? / (2.0 * step);
            let what = format!("{} of {:?} by parameter {which}", line.quantity, line.laws);
            let close = (slope - expected).abs() <= 1e-5 * expected.abs().max(1.0);
            assert!(close, "{what}: {slope}, not {expected}");
        }
    }
    Ok(())
}

/// The mean gradient of samples, and of their squares, is that of the moments.
#[test]
fn samples_have_the_gradients_of_moments() -> Result<()> {
    let device = &cpu();
    let n = 20_000;
    let mut compared = 0;
    for line in lines(device).iter().filter(|line| line.quantity == "variance") {
        let (name, parameters) = &line.laws[0];
        if !law(name, parameters).has_rsample() || name.starts_with("Mult") || name == "Dirichlet" {
            continue;
        }
        // One element of the batch, whose fourth moment is finite.
        let parameters: Vec<Tensor> =
            parameters.iter().map(|x| x.select_index(0, 0)).collect::<Result<_>>()?;
        if ["Cauchy", "HalfCauchy", "Pareto", "StudentT", "FisherSnedecor", "InverseGamma"]
            .contains(&name.as_str())
        {
            continue;
        }
        for (which, parameter) in parameters.iter().enumerate() {
            // As many parameters as samples, so that each sample has its gradient.
            let many = parameter.expand([n])?.contiguous().tracked();
            let with = |x: &Tensor| {
                let mut all = parameters.clone();
                all[which] = x.clone();
                law(name, &all)
            };
            let x = with(&many).rsample(&[], &mut Rng::seed(5))?;
            let one = parameter.tracked();
            let exact = with(&one);
            let second = exact.variance()? + exact.mean()?.square();
            for (what, of_samples, moment) in
                [("mean", x.clone(), exact.mean()?), ("square", x.square(), second)]
            {
                let slopes = of_samples.sum(..)?.grad(&[&many])?.remove(0).unwrap();
                let slope = moment.grad(&[&one])?.remove(0);
                let slope = slope.map_or(Ok(0.0), |x| x.item::<f64>())?;
                let mean = slopes.mean(..)?.item::<f64>()?;
                let error = (slopes.var(.., 1)?.item::<f64>()? / n as f64).sqrt();
                let found = format!("{name}, {what} by parameter {which}: {mean}, not {slope}");
                assert!((mean - slope).abs() <= 4.5 * error + 1e-9, "{found}, error {error}");
                compared += 1;
            }
        }
    }
    assert!(compared >= 40, "{compared}");
    Ok(())
}

#[test]
fn edges() -> Result<()> {
    let device = &cpu();
    let t = |x: &[f64]| Tensor::from_slice(x, [x.len()], device).unwrap();
    let inf = f64::INFINITY;
    let vec = |x: Result<Tensor>| x.unwrap().to_vec::<f64>().unwrap();
    let certain = logits_of(&t(&[0.0, 1.0]));
    let coins = Bernoulli::new(&certain)?;
    assert_eq!(vec(coins.log_prob(&t(&[0.0, 1.0]))), [0.0, 0.0]);
    assert_eq!(vec(coins.log_prob(&t(&[1.0, 0.0]))), [-inf, -inf]);
    assert_eq!(vec(coins.entropy()), [0.0, 0.0]);
    assert_eq!(vec(coins.variance()), [0.0, 0.0]);
    let drawn = coins.sample(&[50], &mut Rng::seed(1))?;
    assert_eq!(vec(drawn.mean(0)), [0.0, 1.0]);
    assert_eq!(vec(kl_divergence(&coins, &coins)), [0.0, 0.0]);
    assert_eq!(vec(kl_divergence(&Bernoulli::new(&t(&[0.0, 0.0]))?, &coins)), [inf, inf]);

    let trials = Binomial::new(&t(&[0.0, 9.0]), &certain)?;
    assert_eq!(vec(trials.sample(&[], &mut Rng::seed(1))), [0.0, 9.0]);
    assert_eq!(vec(trials.log_prob(&t(&[0.0, 9.0]))), [0.0, 0.0]);
    let never = Poisson::new(&t(&[0.0]))?;
    let low = Pareto::new(&t(&[1.0]), &t(&[2.0]))?;
    let high = Pareto::new(&t(&[1.5]), &t(&[2.0]))?;
    assert_eq!(vec(kl_divergence(&low, &high)), [inf]);
    assert_eq!(vec(never.sample(&[3], &mut Rng::seed(1))), [0.0; 3]);
    assert_eq!(vec(never.log_prob(&t(&[0.0, 2.0]))), [0.0, -inf]);
    assert_eq!(vec(Geometric::new(&certain)?.log_prob(&t(&[0.0, 0.0]))), [-inf, 0.0]);
    let classes = Categorical::new(&t(&[0.0, -inf]))?;
    assert_eq!(vec(classes.log_prob(&t(&[0.0, 1.0]))), [0.0, -inf]);
    assert_eq!(vec(classes.entropy()), [0.0]);
    assert_eq!(vec(classes.sample(&[40], &mut Rng::seed(1))), [0.0; 40]);

    assert_eq!(vec(igamma(&t(&[2.0]), &t(&[0.0, inf]))), [0.0, 1.0]);
    assert_eq!(vec(igammac(&t(&[0.5]), &t(&[0.0, inf]))), [1.0, 0.0]);
    assert!(vec(igamma(&t(&[-1.0, 1.0]), &t(&[1.0, -1.0]))).iter().all(|x| x.is_nan()));

    let normal = Normal::new(&t(&[0.0]), &t(&[1.0]))?;
    assert_eq!(vec(normal.log_prob(&t(&[inf, -inf]))), [-inf, -inf]);
    assert_eq!(vec(normal.icdf(&t(&[0.0, 0.5, 1.0]))), [-inf, 0.0, inf]);
    assert_eq!(normal.sample(&[0, 2], &mut Rng::seed(1))?.shape().dims(), [0, 2, 1]);
    let empty = Tensor::from_slice::<f64>(&[], [0], device)?;
    let none = Gamma::new(&empty, &t(&[1.0]))?;
    assert_eq!(none.sample(&[3], &mut Rng::seed(1))?.shape().dims(), [3, 0]);
    assert_eq!(none.log_prob(&empty)?.shape().dims(), [0]);
    // Shapes so small that numbers underflow.
    let corners = Dirichlet::new(&t(&[1e-4, 1e-4]))?.sample(&[100], &mut Rng::seed(2))?;
    assert!(vec(corners.sum(-1)).iter().all(|x| (x - 1.0).abs() < 1e-12));
    let small = Gamma::new(&t(&[1e-5]), &t(&[1.0]))?.rsample(&[100], &mut Rng::seed(2))?;
    assert!(vec(Ok(small)).iter().all(|&x| x > 0.0));
    Ok(())
}

#[test]
fn mistakes_are_errors_that_name_them() -> Result<()> {
    let device = &cpu();
    let t = |x: &[f32]| Tensor::from_slice(x, [x.len()], device).unwrap();
    let says = |error: zyx_core::Error, parts: &[&str]| {
        let text = error.to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        assert!(text.contains("distributions.rs"), "{text}");
    };
    let scale = Normal::new(&t(&[0.0]), &t(&[1.0, -2.5])).unwrap_err();
    says(scale, &["Normal", "scale", "-2.5", "above 0"]);
    let nan = Normal::new(&t(&[f32::NAN]), &t(&[1.0])).unwrap_err();
    says(nan, &["Normal", "loc", "NaN"]);
    says(Uniform::new(&t(&[2.0]), &t(&[1.0])).unwrap_err(), &["Uniform", "high", "1"]);
    let matrix = Tensor::new([[1f32, 2.0], [0.0, 1.0]], device)?;
    let law = MultivariateNormal::new(&t(&[0.0, 0.0]), &matrix);
    says(law.unwrap_err(), &["MultivariateNormal", "scale_tril", "[1.0, 2.0, 0.0, 1.0]"]);
    let law = MultivariateNormal::new(&t(&[0.0; 3]), &matrix);
    says(law.unwrap_err(), &["MultivariateNormal", "scale_tril", "2 elements"]);
    says(Normal::new(&t(&[0.0; 3]), &t(&[1.0; 2])).unwrap_err(), &["Normal", "scale", "broadcast"]);
    let normal = Normal::new(&t(&[0.0; 3]), &t(&[1.0]))?;
    says(normal.log_prob(&t(&[0.0; 2])).unwrap_err(), &["Normal", "[3]"]);
    says(Poisson::new(&t(&[1.0]))?.log_prob(&t(&[0.5])).unwrap_err(), &["Poisson", "value is 0.5"]);
    says(Poisson::new(&t(&[1.0]))?.entropy().unwrap_err(), &["Poisson", "entropy"]);
    says(Poisson::new(&t(&[1.0]))?.rsample(&[], &mut Rng::seed(1)).unwrap_err(), &["rsample"]);
    says(kl_divergence(&normal, &Poisson::new(&t(&[1.0]))?).unwrap_err(), &["Normal and Poisson"]);
    says(Law::by_name("Normale", &[], true).unwrap_err(), &["Normale"]);
    says(Law::by_name("Normal", &[], true).unwrap_err(), &["2 parameters"]);
    says(normal.sample(&[usize::MAX], &mut Rng::seed(1)).unwrap_err(), &["too many"]);
    // Unchecked, nothing is read.
    let law = Normal::unchecked(&t(&[0.0]), &t(&[-1.0]))?;
    assert!(law.log_prob(&t(&[0.0]))?.item::<f32>()?.is_nan());
    let other = Runtime::default().device("reference")?;
    let foreign = Tensor::new([1f32], &other)?;
    assert!(Normal::new(&t(&[0.0]), &foreign).is_err());
    assert!(normal.log_prob(&foreign).is_err());
    Ok(())
}

#[test]
fn composed_distributions() -> Result<()> {
    let device = &cpu();
    let t = |x: &[f64]| Tensor::from_slice(x, [x.len()], device).unwrap();
    let close = |x: &Tensor, y: &Tensor| {
        assert_eq!(x.shape(), y.shape());
        let (x, y) = (x.to_vec::<f64>().unwrap(), y.to_vec::<f64>().unwrap());
        assert!(
            x.iter().zip(&y).all(|(x, y)| (x - y).abs() < 1e-11 * y.abs().max(1.0)),
            "{x:?} {y:?}"
        );
    };
    let (loc, scale, x) = (t(&[0.5, -1.0]), t(&[2.0, 0.7]), t(&[0.3, 2.0]));
    let normal = || Normal::new(&loc, &scale);
    let exp = TransformedDistribution::new(normal()?, vec![Transform::Exp])?;
    let direct = LogNormal::new(&loc, &scale)?;
    close(&exp.log_prob(&x)?, &direct.log_prob(&x)?);
    close(&exp.cdf(&x)?, &direct.cdf(&x)?);
    close(&exp.icdf(&t(&[0.2, 0.9]))?, &direct.icdf(&t(&[0.2, 0.9]))?);
    close(&exp.rsample(&[4], &mut Rng::seed(1))?, &direct.rsample(&[4], &mut Rng::seed(1))?);
    // A decreasing map: 3 - 2 x.
    let affine = Transform::Affine { loc: t(&[3.0]), scale: t(&[-2.0]) };
    let law = TransformedDistribution::new(normal()?, vec![affine])?;
    let direct = Normal::new(&(3.0 - &loc * 2.0), &(&scale * 2.0))?;
    close(&law.log_prob(&x)?, &direct.log_prob(&x)?);
    close(&law.cdf(&x)?, &direct.cdf(&x)?);
    close(&law.icdf(&t(&[0.2, 0.9]))?, &direct.icdf(&t(&[0.2, 0.9]))?);
    // (e^x)^2 and tanh(2 x) by derivatives of the distribution function.
    let law = TransformedDistribution::new(
        normal()?,
        vec![Transform::Compose(vec![Transform::Sigmoid, Transform::Power(t(&[2.0]))])],
    )?;
    let (y, step) = (t(&[0.3, 0.8]), 1e-5);
    let one = |x: &Tensor| x.sub(0.5).unwrap();
    let inner = TransformedDistribution::new(
        normal()?,
        vec![Transform::Sigmoid, Transform::Power(t(&[2.0]))],
    )?;
    let density = (inner.cdf(&(&y + step))? - inner.cdf(&(&y - step))?) / (2.0 * step);
    let error = one(&(law.log_prob(&y)?.exp() / density * 0.5)).abs().max(..)?.item::<f64>()?;
    assert!(error < 1e-8, "{error}");
    let tanh = TransformedDistribution::new(normal()?, vec![Transform::Tanh])?;
    let density = (tanh.cdf(&(&y + step))? - tanh.cdf(&(&y - step))?) / (2.0 * step);
    let error = one(&(tanh.log_prob(&y)?.exp() / density * 0.5)).abs().max(..)?.item::<f64>()?;
    assert!(error < 1e-8, "{error}");
    // The density on the simplex of two is that of the first share.
    let simplex = logistic_normal(&t(&[0.4]), &t(&[1.3]))?;
    let share = TransformedDistribution::new(
        Normal::new(&t(&[0.4]), &t(&[1.3]))?,
        vec![Transform::Sigmoid],
    )?;
    close(&simplex.log_prob(&t(&[0.3, 0.7]))?, &share.log_prob(&t(&[0.3]))?.squeeze(0)?);
    assert_eq!((simplex.batch_shape().rank(), simplex.event_shape().dims()), (0, &[2][..]));
    let stick = Transform::StickBreaking;
    let back = stick.inverse(&stick.forward(&t(&[0.4, -2.0, 1.0]))?)?;
    close(&back, &t(&[0.4, -2.0, 1.0]));

    let independent = Independent::new(normal()?, 1)?;
    close(&independent.log_prob(&x)?, &normal()?.log_prob(&x)?.sum(..)?);
    close(&independent.entropy()?, &normal()?.entropy()?.sum(..)?);
    assert!(Independent::new(normal()?, 2).is_err());

    let weights = Categorical::new(&t(&[0.25f64.ln(), 0.75f64.ln()]))?;
    let mixture = MixtureSameFamily::new(weights.clone(), normal()?)?;
    let p = |x: f64| {
        let at = |m: f64, s: f64| {
            (-((x - m) / s).powi(2) / 2.0).exp() / s / std::f64::consts::TAU.sqrt()
        };
        (0.25 * at(0.5, 2.0) + 0.75 * at(-1.0, 0.7)).ln()
    };
    close(&mixture.log_prob(&x)?, &t(&[p(0.3), p(2.0)]));
    assert!((mixture.mean()?.item::<f64>()? + 0.625).abs() < 1e-12);
    let n = 20_000;
    let drawn = mixture.sample(&[n], &mut Rng::seed(9))?;
    let (mean, variance) = (drawn.mean(0)?.item::<f64>()?, drawn.var(0, 0)?.item::<f64>()?);
    let exact = mixture.variance()?.item::<f64>()?;
    assert!((mean + 0.625).abs() < 4.5 * (exact / n as f64).sqrt(), "{mean}");
    assert!((variance / exact - 1.0).abs() < 0.1, "{variance}, not {exact}");
    let p = mixture.cdf(&drawn)?;
    let mut p = p.to_vec::<f64>()?;
    p.sort_by(f64::total_cmp);
    let distance =
        p.iter().enumerate().map(|(i, p)| (p - i as f64 / n as f64).abs()).fold(0.0, f64::max);
    assert!(distance * (n as f64).sqrt() < KOLMOGOROV, "{distance}");
    assert!(MixtureSameFamily::new(weights, Normal::new(&t(&[0.0; 3]), &t(&[1.0]))?).is_err());
    Ok(())
}

/// Divergences that PyTorch has no formula for, as means over samples.
#[test]
fn divergences_are_means_of_differences() -> Result<()> {
    let device = &cpu();
    let t = |x: f64| Tensor::new(x, device).unwrap();
    let pairs: [[Law; 2]; 3] = [
        [law("Weibull", &[t(1.2), t(1.7)]), law("Weibull", &[t(0.9), t(1.1)])],
        [law("VonMises", &[t(0.3), t(2.0)]), law("VonMises", &[t(-0.5), t(0.7)])],
        [law("InverseGamma", &[t(4.0), t(2.0)]), law("InverseGamma", &[t(3.0), t(1.0)])],
    ];
    for [p, q] in &pairs {
        let n = 20_000;
        let x = p.sample(&[n], &mut Rng::seed(4))?;
        let difference = p.log_prob(&x)? - q.log_prob(&x)?;
        let mean = difference.mean(..)?.item::<f64>()?;
        let error = (difference.var(.., 1)?.item::<f64>()? / n as f64).sqrt();
        let exact = kl_divergence(p, q)?.item::<f64>()?;
        assert!((mean - exact).abs() < 4.5 * error, "{p:?}: {mean}, not {exact}");
    }
    Ok(())
}

#[test]
fn traced_parameters_are_not_read() -> Result<()> {
    let device = &cpu();
    let traced = Jit::new(|x: &[Tensor]| {
        let law = Normal::new(&x[0], &x[1])?;
        Ok(vec![law.log_prob(&x[0])?, kl_divergence(&law, &law)?])
    });
    let x = Tensor::new([1f32, 2.0], device)?;
    let found = traced.call(&[&x, &x])?;
    let expected = Normal::new(&x, &x)?.log_prob(&x)?;
    assert_eq!(found[0].to_vec::<f32>()?, expected.to_vec::<f32>()?);
    Ok(())
}

#[test]
fn halves_are_computed_in_single_precision() -> Result<()> {
    let device = &cpu();
    let x = Tensor::new([1f32, 2.0], device)?.cast(DType::F16);
    let law = Gamma::new(&x, &x)?;
    let drawn = law.rsample(&[100], &mut Rng::seed(1))?;
    assert!(drawn.dtype() == DType::F16 && law.entropy()?.dtype() == DType::F16);
    assert!(drawn.is_finite().all(..)?.item::<bool>()?);
    let whole = Tensor::new([3i64], device)?;
    assert_eq!(Poisson::new(&whole)?.mean()?.dtype(), DType::F32);
    assert!(Shape::from([3]).same(Exponential::new(&whole.expand([3])?)?.batch_shape()));
    Ok(())
}
