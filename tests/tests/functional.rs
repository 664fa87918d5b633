//! Values and gradients of the functions in `cases::functional` in `f64`: against PyTorch, and
//! gradients of both orders against differences.

use zyx_backend_cpu::Cpu;
use zyx_tests::bounds::{EINSUM, PYTORCH};
use zyx_tests::cases::functional::{Record, records, table, weights};
use zyx_tests::gradients::{Smooth, agree};
use zyx_tests::zyx_core::{DType, Device, Result, Runtime, Tensor};

fn device() -> Device {
    let runtime = Runtime::default();
    runtime.register(Cpu::default());
    runtime.device("cpu").expect("always present")
}

/// The rows whose name contains what `ZYX_ROW` says, or all.
fn rows() -> Vec<(&'static str, zyx_tests::cases::functional::Function, Record)> {
    let records = records();
    let only = std::env::var("ZYX_ROW").unwrap_or_default();
    let rows = table().into_iter().filter(|(name, _)| name.contains(&only));
    rows.map(|(name, f)| (name, f, records.get(name).unwrap_or_else(|| panic!("{name}")).clone()))
        .collect()
}

#[test]
fn the_table_is_the_file() {
    let known: Vec<&str> = table().iter().map(|row| row.0).collect();
    let records = records();
    assert_eq!(known.len(), records.len(), "a row for every record");
    assert!(known.iter().all(|name| records.contains_key(name)));
}

fn differs(what: &str, got: &[f64], want: &[f64], bound: f64) -> Option<String> {
    let scale = want.iter().filter(|x| x.is_finite()).fold(1.0f64, |m, x| m.max(x.abs()));
    let near = |a: f64, b: f64| a == b || (a - b).abs() <= bound * scale;
    let wrong = got.iter().zip(want).position(|(&a, &b)| !near(a, b));
    if got.len() != want.len() {
        return Some(format!("{what}: {} elements, not {}", got.len(), want.len()));
    }
    wrong.map(|at| format!("{what}, element {at}: {}, not {}", got[at], want[at]))
}

fn compare(
    name: &str,
    f: fn(&[Tensor]) -> Result<Tensor>,
    record: &Record,
    device: &Device,
) -> Result<Option<String>> {
    let bound = if name.starts_with("einsum") { EINSUM } else { PYTORCH };
    let leaf = |(x, tracked): &(zyx_tests::Array, bool)| {
        let tensor = x.tensor(device)?;
        Ok(if *tracked && x.dtype == DType::F64 { tensor.tracked() } else { tensor })
    };
    let inputs = record.inputs.iter().map(leaf).collect::<Result<Vec<Tensor>>>()?;
    let want = record.out.as_ref().expect("a result");
    let y = f(&inputs)?;
    if y.shape().dims() != want.dims {
        return Ok(Some(format!("the shape is {}, not {:?}", y.shape(), want.dims)));
    }
    let got = y.cast(DType::F64).to_vec::<f64>()?;
    let floats = want.map(DType::F64, |x| x).cast(DType::F64).floats();
    if let Some(problem) = differs("value", &got, &floats, bound) {
        return Ok(Some(problem));
    }
    if record.gradients.is_empty() {
        return Ok(None);
    }
    let w = Tensor::from_slice(&weights(y.numel()), y.shape().clone(), device)?;
    let leaves: Vec<&Tensor> = inputs.iter().filter(|x| x.is_tracked()).collect();
    let dx = y.grad_with(&w, &leaves)?;
    for (i, (dx, want)) in dx.iter().zip(&record.gradients).enumerate() {
        let got = match dx {
            Some(dx) => dx.to_vec::<f64>()?,
            None => vec![0.0; want.numel()],
        };
        if let Some(problem) = differs(&format!("gradient {i}"), &got, &want.floats(), bound) {
            return Ok(Some(problem));
        }
    }
    Ok(None)
}

#[test]
fn values_and_gradients_are_those_of_pytorch() {
    let device = device();
    let mut problems = Vec::new();
    for (name, f, record) in rows() {
        match compare(name, f, &record, &device) {
            Ok(None) => {}
            Ok(Some(problem)) => problems.push(format!("{name}: {problem}")),
            Err(error) => problems.push(format!("{name}: {error}")),
        }
    }
    assert!(problems.is_empty(), "{} rows:\n{}", problems.len(), problems.join("\n"));
}

/// Rows that have a kink in or near a difference quotient, or no gradient at all.
const NOT_SMOOTH: &[&str] = &["indices", "nearest", "adaptive_max_pool2d", "fft sum"];

/// Rows whose second derivative is not checked: it jumps, or what is differentiated twice would be
/// a loop over a loop.
const ONCE: &[&str] = &["inf", "ctc", "fft sum"];

#[test]
fn gradients_are_those_of_differences() {
    let device = device();
    let smooth = |(name, f, record): (&'static str, fn(&[Tensor]) -> Result<Tensor>, Record)| {
        if NOT_SMOOTH.iter().any(|part| name.contains(part)) || record.gradients.is_empty() {
            return None;
        }
        let moves = |(x, tracked): &(zyx_tests::Array, bool)| *tracked && x.dtype == DType::F64;
        let inputs = record.inputs.iter().filter(|x| moves(x)).map(|x| x.0.clone()).collect();
        let whole = move |x: &[Tensor]| {
            let mut moving = x.iter();
            let input = |input: &(zyx_tests::Array, bool)| match moves(input) {
                true => Ok(moving.next().expect("one for each that moves").clone()),
                false => input.0.tensor(x[0].device()),
            };
            f(&record.inputs.iter().map(input).collect::<Result<Vec<_>>>()?)
        };
        let twice = !ONCE.iter().any(|part| name.contains(part));
        Some(Smooth { name: name.to_owned(), inputs, f: Box::new(whole), twice })
    };
    agree(&device, rows().into_iter().filter_map(smooth).collect());
}
