//! The standard's own tests of operators: `scripts/install-drivers.sh onnx` writes them as files, and the variable
//! `ZYX_ONNX_NODES` names the folder. They run on the default device. `scripts/onnx_contrib.py` writes more of them, of
//! onnxruntime's operators and of element types without a dtype.
//!
//! Whole models lie in `tests/data/onnx`.
//!
//! `ZYX_ONNX_ONLY` leaves cases whose names contain one of its words. Cases known to fail are listed with their reasons in `onnx_known_failures.txt`; one of them that passes fails the
//! test, as does any other that does not.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]
#![cfg(feature = "onnx")]

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use zyx::onnx::{Coded, Model, Value};
use zyx::{DType, Device};

fn compare(found: &Value, wanted: &Value, rtol: f64, atol: f64) -> Result<(), String> {
    let differ = || Err(format!("{} instead of {}", found.kind(), wanted.kind()));
    match (found, wanted) {
        (Value::Sequence(found), Value::Sequence(wanted)) if found.len() == wanted.len() => {
            found.iter().zip(wanted).try_for_each(|(x, y)| compare(x, y, rtol, atol))
        }
        (Value::Optional(Some(found)), wanted) => compare(found, wanted, rtol, atol),
        (found, Value::Optional(Some(wanted))) => compare(found, wanted, rtol, atol),
        (Value::Optional(None), Value::Optional(None)) => Ok(()),
        (Value::Strings(shape, x), Value::Strings(other, y)) if shape == other => match x == y {
            true => Ok(()),
            false => Err(format!("{x:?} instead of {y:?}")),
        },
        (Value::Coded(x), Value::Coded(y))
            if x.kind() == y.kind() && x.codes().shape() == y.codes().shape() =>
        {
            // Exactly, as only the code of a NaN is open.
            let numbers = |coded: &Coded| coded.decode(DType::F32)?.to_vec::<f32>();
            let (x, y) = (numbers(x), numbers(y));
            let (x, y) = (x.map_err(|e| e.to_string())?, y.map_err(|e| e.to_string())?);
            let same =
                |(x, y): (&f32, &f32)| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan();
            match x.iter().zip(&y).all(same) {
                true => Ok(()),
                false => Err(format!("{x:?} instead of {y:?}")),
            }
        }
        (found, wanted)
            if found.shape() == wanted.shape()
                && found.dtype().is_some()
                && found.dtype() == wanted.dtype() =>
        {
            let host = |value: &Value| value.host().map_err(|e| e.to_string());
            let (found, wanted) = (host(found)?, host(wanted)?);
            for (i, (x, y)) in found.numbers().iter().zip(wanted.numbers()).enumerate() {
                let equal = if found.dtype().is_float() {
                    let (x, y) = (x.to_f64(), y.to_f64());
                    x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= atol + rtol * y.abs()
                } else {
                    x == y
                };
                if !equal {
                    return Err(format!("element {i} is {x:?}, not {y:?}"));
                }
            }
            Ok(())
        }
        _ => differ(),
    }
}

/// Replaying, the first time and again, gives what the graph gives, where all inputs and outputs are tensors. Random
/// numbers are left out.
fn replayed(model: &Model, inputs: Vec<(&str, Value)>, outputs: &[Value]) -> Result<(), String> {
    let is_random = model.operators().keys().any(|name| {
        ["Bernoulli", "Dropout", "Multinomial"].contains(&name.as_str())
            || name.starts_with("Random")
    });
    let tensor = |value: &Value| match value {
        Value::Tensor(tensor) => Some(tensor.clone()),
        Value::Host(host) => host.tensor(model.device()).ok(),
        _ => None,
    };
    let inputs: Option<Vec<_>> =
        inputs.iter().map(|(name, value)| Some((*name, tensor(value)?))).collect();
    let outputs: Option<Vec<_>> = outputs.iter().map(tensor).collect();
    let (Some(inputs), Some(outputs), false) = (inputs, outputs, is_random) else { return Ok(()) };
    for turn in ["first", "second"] {
        let found = model.run(inputs.clone()).map_err(|e| format!("{turn} replay: {e}"))?;
        for (i, (found, wanted)) in found.into_iter().zip(&outputs).enumerate() {
            compare(&found.into(), &wanted.into(), 1e-5, 1e-6)
                .map_err(|e| format!("{turn} replay: output {i}: {e}"))?;
        }
    }
    Ok(())
}

/// What is wrong with a case.
fn run(folder: &Path, device: &Device) -> Result<(), String> {
    let read = |path: &Path| std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
    let bytes = read(&folder.join("model.onnx"))?;
    let model = Model::from_bytes(bytes, device).map_err(|e| e.to_string())?;
    let tolerance = std::fs::read_to_string(folder.join("tolerance")).unwrap();
    let (rtol, atol) = tolerance.trim().split_once(' ').unwrap();
    let (rtol, atol) = (rtol.parse().unwrap(), atol.parse().unwrap());
    for set in 0.. {
        let set = folder.join(format!("set_{set}"));
        if !set.is_dir() {
            break;
        }
        let mut inputs = Vec::new();
        for (i, port) in model.inputs().iter().enumerate() {
            let file = set.join(format!("input_{i}.pb"));
            if file.exists() {
                let value = port.read(read(&file)?, device).map_err(|e| e.to_string())?;
                inputs.push((port.name.as_str(), value));
            }
        }
        let outputs = model.graph(inputs.clone()).map_err(|e| e.to_string())?;
        for (i, (found, port)) in outputs.iter().zip(model.outputs()).enumerate() {
            let wanted = read(&set.join(format!("output_{i}.pb")))?;
            let wanted = port.read(wanted, device).map_err(|e| e.to_string())?;
            compare(found, &wanted, rtol, atol).map_err(|e| format!("output {i}: {e}"))?;
        }
        replayed(&model, inputs, &outputs)?;
    }
    Ok(())
}

#[test]
fn standard_node_tests() {
    let Some(root) = std::env::var_os("ZYX_ONNX_NODES") else {
        let required = std::env::var("ZYX_REQUIRE").unwrap_or_default();
        assert!(!required.split(',').any(|word| word == "onnx"), "ZYX_ONNX_NODES names no folder");
        println!("skipped: ZYX_ONNX_NODES names no folder with the standard's tests");
        return;
    };
    let device = zyx::device().unwrap();
    let only = std::env::var("ZYX_ONNX_ONLY").unwrap_or_default();
    let mut folders: Vec<_> =
        std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    let known: BTreeMap<String, String> = include_str!("onnx_known_failures.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once(": ").expect("a line is `name: reason`"))
        .filter(|&(_, reason)| {
            reason != "needs the feature `image`" || cfg!(not(feature = "image"))
        })
        .filter(|&(_, reason)| {
            reason != "needs the feature `regex`" || cfg!(not(feature = "regex"))
        })
        .map(|(name, reason)| (name.to_owned(), reason.to_owned()))
        .collect();
    let (mut passed, mut failed, mut unexpected) = (0, Vec::new(), Vec::new());
    for folder in folders {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        if !only.split(',').any(|part| name.contains(part)) {
            continue;
        }
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| run(&folder, &device)));
        let outcome = outcome.unwrap_or_else(|_| Err("PANIC".into()));
        match outcome {
            Ok(()) => passed += 1,
            Err(reason) => failed.push((name.clone(), reason)),
        }
        let fails = failed.last().is_some_and(|(last, _)| *last == name);
        let reason = known.get(&name);
        let may_pass = reason.is_some_and(|reason| reason.starts_with("random"));
        if fails != reason.is_some() && (fails || !may_pass) {
            unexpected.push(name);
        }
    }
    for (name, reason) in &failed {
        println!("{name}: {}", reason.replace('\n', " "));
    }
    println!("{passed} pass, {} fail", failed.len());
    assert!(unexpected.is_empty(), "{} unexpected: {unexpected:?}", unexpected.len());
}

/// Whole models with random weights that PyTorch exported, and their quantised forms, beside what onnxruntime gave
/// (`scripts/onnx_models.py`).
#[test]
fn models_of_pytorch() {
    let device = zyx::device().unwrap();
    let only = std::env::var("ZYX_ONNX_ONLY").unwrap_or_default();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/onnx");
    let folders: Vec<_> =
        std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(folders.len() > 10);
    let chosen =
        |folder: &&PathBuf| only.split(',').any(|part| folder.to_string_lossy().contains(part));
    for folder in folders.iter().filter(chosen) {
        run(folder, &device).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    }
}
