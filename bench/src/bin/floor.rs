//! How near plans are to what the device allows, and predictions to what is measured: every row of the
//! conformance matrix and its gradient on large operands.
//!
//! `floor [device] [rows] [milliseconds a row]`, as in `floor cuda softmax,sort 300`. Prints, for
//! each, microseconds measured, predicted and needed at least; then the median and the ninth
//! decile of what measurement and prediction differ by.

#![allow(clippy::print_stdout, reason = "the report is what the program is for")]

use std::error::Error;
use std::time::{Duration, Instant};
use zyx::{DType, Device, OpenDevice as _, Tensor};
use zyx_core::testing;
use zyx_tests::cases::matrix::{self, Operands};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Rounds of a row at most.
const ROUNDS: usize = 9;

/// Large operands with values that are spread.
fn operands(dtype: DType, device: &Device) -> zyx::Result<Operands> {
    let mut all = Operands::large(dtype, device)?;
    let numbers = |x: &Tensor, factor: f64| -> zyx::Result<Tensor> {
        let n = x.shape().numel();
        Tensor::iota(n, DType::F32, device).mul(factor)?.sin().reshape(x.shape().clone())
    };
    let kept = |x: Tensor| -> zyx::Result<Tensor> {
        let x = x.contiguous();
        x.realize()?;
        Ok(x)
    };
    let float = |x: &Tensor, factor: f64| -> zyx::Result<Tensor> {
        Ok(kept(numbers(x, factor)?.mul(3.0)?.cast(dtype))?.tracked())
    };
    let below = |x: &Tensor, most: i64| -> zyx::Result<Tensor> {
        let n = x.shape().numel();
        let mixed = Tensor::iota(n, DType::I64, device).mul(7919i64)?.remainder(most)?;
        kept(mixed.reshape(x.shape().clone())?)
    };
    (all.x, all.y) = (float(&all.x, 12.9)?, float(&all.y, 7.7)?);
    (all.v, all.square) = (float(&all.v, 3.1)?, float(&all.square, 5.3)?);
    all.unit = kept(numbers(&all.unit, 4.7)?.mul(0.9)?.cast(dtype))?.tracked();
    all.large = kept(numbers(&all.large, 4.1)?.add(3.0)?.cast(dtype))?.tracked();
    let sorted = all.sorted.shape().numel();
    let sorted = Tensor::iota(sorted, DType::F32, device).mul(1.0 / 1024.0)?;
    all.sorted = kept(sorted.cast(dtype))?.tracked();
    for x in all.images.iter_mut().chain(&mut all.kernels) {
        *x = float(x, 9.1)?;
    }
    (all.index, all.at) = (below(&all.index, 2039)?, below(&all.at, 2039)?);
    (all.times, all.classes) = (below(&all.times, 3)?, below(&all.classes, 2039)?);
    all.mask = kept(numbers(&all.mask, 6.1)?.gt(0.0)?)?;
    Ok(all)
}

/// The gradients of the sum of all results by all operands; none where there are none.
fn gradients(results: &[Tensor], operands: &Operands) -> zyx::Result<Vec<Tensor>> {
    let mut sum: Option<Tensor> = None;
    for result in results.iter().filter(|result| result.dtype().is_float()) {
        let weights = Tensor::ones(result.shape().clone(), result.dtype(), result.device());
        let weights = weights.contiguous();
        weights.realize()?;
        let one = result.mul(&weights)?.sum(..)?;
        sum = Some(match sum {
            Some(sum) => sum.add(&one)?,
            None => one,
        });
    }
    let found = sum.and_then(|sum| sum.grad(&operands.floats()).ok());
    Ok(found.into_iter().flatten().flatten().collect())
}

/// What computing some tensors takes.
struct Times {
    measured: f64,
    predicted: f64,
    least: f64,
}

/// Microseconds of what `make` gives; `None` if there is nothing to compute.
fn times(
    make: &dyn Fn() -> zyx::Result<Vec<Tensor>>,
    device: &Device,
    budget: Duration,
) -> zyx::Result<Option<Times>> {
    let tensors = make()?;
    let pending: Vec<&Tensor> = tensors.iter().filter(|tensor| !tensor.is_realized()).collect();
    if pending.is_empty() {
        return Ok(None);
    }
    let plan = testing::explain(&pending, device)?;
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let (predicted, least) = (us(plan.predicted()), us(plan.least));
    Tensor::realize_all(pending)?;
    device.synchronize()?;
    drop(tensors);
    let (mut measured, start) = (f64::MAX, Instant::now());
    for _ in 0..ROUNDS {
        let tensors = make()?;
        let now = Instant::now();
        Tensor::realize_all(&tensors)?;
        device.synchronize()?;
        measured = measured.min(us(now.elapsed()));
        if start.elapsed() > budget {
            break;
        }
    }
    Ok(Some(Times { measured, predicted, least }))
}

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |i: usize, default: &str| args.get(i).cloned().unwrap_or(default.to_owned());
    let (device, wanted) = (Device::open(&arg(0, "cpu"))?, arg(1, ""));
    let budget = Duration::from_millis(arg(2, "300").parse()?);
    let [floats, ints] = [operands(DType::F32, &device)?, operands(DType::I32, &device)?];
    let mut errors = Vec::new();
    for row in matrix::table() {
        if !wanted.is_empty() && !wanted.split(',').any(|name| name == row.name) {
            continue;
        }
        let operands = if (row.run)(&floats).is_ok() { &floats } else { &ints };
        let value = || (row.run)(operands);
        let gradient = || gradients(&(row.run)(operands)?, operands);
        let both: [(&str, &dyn Fn() -> zyx::Result<Vec<Tensor>>); 2] =
            [("", &value), ("'", &gradient)];
        for (suffix, make) in both {
            match times(make, &device, budget) {
                Ok(None) => {}
                Ok(Some(Times { measured, predicted, least })) => {
                    let name = format!("{}{suffix}", row.name);
                    println!(
                        "{name:32} measured {measured:10.1} predicted {predicted:10.1} least {least:9.1} us"
                    );
                    errors.push((measured / predicted).ln().abs().exp());
                }
                Err(error) => println!("{}{suffix}: {error}", row.name),
            }
        }
    }
    errors.sort_by(f64::total_cmp);
    let at = |part: usize| errors.get(errors.len() * part / 10).copied().unwrap_or(1.0);
    println!(
        "measured and predicted differ by {:.2} in the median, {:.2} in the ninth decile",
        at(5),
        at(9)
    );
    Ok(())
}
