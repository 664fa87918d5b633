//! Looks into an ONNX model, runs it and times it.
//!
//! `cargo run --release --features onnx --example onnx -- MODEL [explain] [INPUT ..]`, where an input is
//! `NAME=FILE.npy` for one of the model's, `NAME=5` for an extent that it names, or `FILE.npz` for several inputs.
//! Inputs that are not given are random: floats are normal, integers below two, bools true; extents that are not given
//! are 1.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use examples::program::{Arguments, Usage};
use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use zyx::io::{npy, npz};
use zyx::onnx::{Model, Port};
use zyx::{DType, Device, Rng, Tensor};

fn main() -> ExitCode {
    let text = "onnx MODEL [explain] [NAME=FILE.npy | FILE.npz | EXTENT=NUMBER ..]";
    Usage { flags: &["explain"], values: 1000, text }.run(look)
}

fn look(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let (path, given) = arguments.values.split_first().ok_or("no model given; see --help")?;
    let device = zyx::device()?;
    let start = Instant::now();
    let model = Model::load(path, &device)?;
    println!("{path}, read in {:.0?}, on {device} ({})", start.elapsed(), device.info().name);
    model.inputs().iter().for_each(|port| println!("  input   {port}"));
    model.outputs().iter().for_each(|port| println!("  output  {port}"));
    let numbers: usize = model.parameters().map(|(_, tensor)| tensor.numel()).sum();
    println!("  {numbers} parameters in {} tensors", model.parameters().count());
    let mut operators: Vec<_> = model.operators().into_iter().collect();
    operators.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let operators: Vec<_> = operators.iter().map(|(name, n)| format!("{n} {name}")).collect();
    println!("  {}", operators.join(", "));

    let inputs = inputs(model.inputs(), given, &device)?;
    let run = || {
        let start = Instant::now();
        let outputs = model.run(inputs.iter().map(|(name, tensor)| (*name, tensor.clone())))?;
        outputs.iter().try_for_each(|output| output.to_bytes().map(drop))?;
        Ok::<_, zyx::Error>((outputs, start.elapsed()))
    };
    let (outputs, first) = run()?;
    let mut times = Vec::new();
    let start = Instant::now();
    while times.len() < 3 || (start.elapsed() < Duration::from_secs(3) && times.len() < 1000) {
        times.push(run()?.1);
    }
    times.sort();
    println!(
        "first run {first:.1?}, then {:.2?} in the median of {}",
        times[times.len() / 2],
        times.len()
    );
    for (port, output) in model.outputs().iter().zip(&outputs) {
        println!("{}: {} {}", port.name, output.dtype(), output.shape());
        println!("{output}");
    }
    if arguments.has("explain") {
        device.set_profiling(true);
        run()?;
        println!("{:>10} {:>8}  kernel or call", "time", "launches");
        for program in device.profile() {
            println!("{:>10.1?} {:>8}  {}", program.time, program.launches, program.name);
        }
    }
    Ok(())
}

/// A tensor for each input: given, or random.
fn inputs<'a>(
    ports: &'a [Port],
    given: &[String],
    device: &Device,
) -> Result<Vec<(&'a str, Tensor)>, Box<dyn Error>> {
    let (mut tensors, mut extents) = (BTreeMap::new(), BTreeMap::new());
    for argument in given {
        match argument.split_once('=') {
            Some((name, file)) if file.ends_with(".npy") => {
                tensors.insert(name.to_owned(), npy::load(file, device)?);
            }
            Some((name, number)) => {
                extents.insert(
                    name,
                    number.parse::<usize>().map_err(|_| format!("`{argument}`: no number"))?,
                );
            }
            None => tensors.extend(npz::load(argument, device)?),
        }
    }
    let mut rng = Rng::seed(0);
    let mut inputs = Vec::new();
    for port in ports {
        if let Some(tensor) = tensors.remove(&port.name) {
            inputs.push((port.name.as_str(), tensor));
            continue;
        }
        let (Some(dtype), Some(shape)) = (port.dtype, &port.shape) else {
            return Err(
                format!("input `{port}` must be given: the model does not say what it is").into()
            );
        };
        let extent =
            |name: &String| name.parse().unwrap_or(*extents.get(name.as_str()).unwrap_or(&1));
        let shape: Vec<usize> = shape.iter().map(extent).collect();
        let tensor = match dtype {
            DType::Bool => Tensor::ones(shape, dtype, device),
            dtype if dtype.is_float() => Tensor::randn(shape, dtype, &mut rng, device)?,
            dtype => Tensor::randint(0, 2, shape, dtype, &mut rng, device)?,
        };
        tensor.realize()?;
        inputs.push((port.name.as_str(), tensor));
    }
    match tensors.keys().next() {
        Some(name) => Err(format!("the model has no input `{name}`").into()),
        None => Ok(inputs),
    }
}
