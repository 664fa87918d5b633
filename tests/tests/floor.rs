//! Every public operation and its gradient, planned for large operands on presets of devices: what
//! the plan is predicted to take is at most [`MOST`] times what memory and arithmetic need.
//!
//! Nothing is computed: prediction and least time follow from the plan and the capabilities of a
//! device. `data/floor.txt` has the exceptions, each with how many times the least time it takes on
//! each preset and the reason. They may not become slower, and have to leave the list once they are
//! none. `ZYX_BLESS=1` writes the numbers again and keeps the reasons.
//!
//!     ZYX_ONLY=cumsum cargo test --test floor -- --nocapture
//!
//! explains the plans of a row.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "plans are shown where that is asked for")]

use std::collections::BTreeMap;
use std::fmt::Write;
use zyx_tests::cases::matrix::{self, Operands, Row};
use zyx_tests::zyx_core::hal::Progress;
use zyx_tests::zyx_core::testing::{self, Null};
use zyx_tests::zyx_core::{DType, DTypeSet, Device, Result, Runtime, Tensor};

/// Most times the least time.
const MOST: f64 = 8.0;
/// How much slower than recorded an exception may become.
const SLACK: f64 = 1.3;

/// Rows that cannot be planned without values, or are not planned for matrices of this size.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "a step for each column, on the host or in launches",
        "cholesky triangular_solve cholesky_solve cholesky_inverse solve inv det slogdet logdet qr eigh svd svdvals lstsq pinv matrix_rank cond",
    ),
    ("thousands of results", "unbind split"),
    ("operands of their own", "ctc_loss decode_float8"),
];

const PRESETS: [&str; 5] =
    ["H100", "laptop GPU", "lavapipe", "two AVX2 cores", "two AVX-512 cores"];

fn preset(name: &str) -> Device {
    let mut null = Null::default();
    let integers = DTypeSet::of(&[DType::I32, DType::U32, DType::I64, DType::U64]);
    (null.caps.atomics, null.caps.atomic_add) = (integers, integers);
    match name {
        "H100" => {}
        "laptop GPU" => (null.caps.threads, null.contracts) = (24 * 1536, false),
        "lavapipe" => {
            (null.caps.threads, null.contracts) = (2, false);
            (null.caps.shared_bytes, null.caps.progress) = (32 << 10, Progress::None);
        }
        _ => {
            null.caps = Default::default();
            null.caps.vector_bytes = if name.contains("512") { 64 } else { 32 };
            (null.caps.masked, null.caps.threads, null.caps.fast_fma) = (true, 2, true);
        }
    }
    let runtime = Runtime::default();
    runtime.register(null);
    runtime.device("null").unwrap()
}

/// How many times the least time computing `tensors` is predicted to take; `None` if nothing is to be
/// computed.
fn ratio(tensors: &[Tensor], device: &Device, shows: bool) -> Result<Option<f64>> {
    let pending: Vec<&Tensor> = tensors.iter().filter(|tensor| !tensor.is_realized()).collect();
    let plan = testing::explain(&pending, device)?;
    if shows {
        println!("{plan}");
    }
    let times = plan.predicted().as_secs_f64() / plan.least.as_secs_f64();
    Ok((!plan.launches.is_empty()).then_some(times))
}

/// The sum of the elements, each with a weight of its own.
fn weigh(y: &Tensor) -> Result<Tensor> {
    let weights = Tensor::zeros(y.shape().clone(), y.dtype(), y.device()).contiguous();
    weights.realize()?;
    y.mul(&weights)?.sum(..)
}

/// Gradients of all results that are floats by all operands; none if there are none.
fn gradients(results: &[Tensor], s: &Operands) -> Result<Vec<Tensor>> {
    let floats = results.iter().filter(|result| result.dtype().is_float());
    let sums = floats.map(weigh).collect::<Result<Vec<Tensor>>>()?;
    let sum = sums.into_iter().map(Ok).reduce(|a: Result<Tensor>, b| a?.add(&b?));
    // Some operations have no derivative.
    let found = sum.transpose()?.and_then(|sum| sum.grad(&s.floats()).ok());
    Ok(found.into_iter().flatten().flatten().collect())
}

/// The ratios of a row and of its gradient.
fn ratios(row: &Row, [floats, ints]: &[Operands; 2], shows: bool) -> Result<[Option<f64>; 2]> {
    let (results, s) = match (row.run)(floats) {
        Ok(results) => (results, floats),
        Err(_) => ((row.run)(ints)?, ints),
    };
    if shows {
        println!("# {}", row.name);
    }
    let value = ratio(&results, &s.device, shows)?;
    let gradients = gradients(&results, s)?;
    Ok([value, ratio(&gradients, &s.device, shows)?])
}

/// For each row and gradient (the name with a prime) its ratio on each preset.
fn measured(only: &[&str]) -> BTreeMap<String, [f64; PRESETS.len()]> {
    let elsewhere = |name: &str| ELSEWHERE.iter().any(|list| list.1.split(' ').any(|n| n == name));
    let mut all: BTreeMap<String, [f64; PRESETS.len()]> = BTreeMap::new();
    for (place, name) in PRESETS.iter().enumerate() {
        let device = preset(name);
        let operands = [DType::F32, DType::I32].map(|d| Operands::large(d, &device).unwrap());
        for row in matrix::table().into_iter().filter(|row| !elsewhere(row.name)) {
            if !only.is_empty() && !only.contains(&row.name) {
                continue;
            }
            let found = ratios(&row, &operands, !only.is_empty());
            let found = found.unwrap_or_else(|error| panic!("{} on {name}: {error}", row.name));
            for (suffix, ratio) in ["", "'"].into_iter().zip(found) {
                let Some(ratio) = ratio else { continue };
                all.entry(format!("{}{suffix}", row.name)).or_default()[place] = ratio;
            }
        }
    }
    all
}

/// Exceptions: name, ratios, reason.
fn recorded(text: &str) -> BTreeMap<&str, ([f64; PRESETS.len()], &str)> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let parsed = lines.map(|line| {
        let mut parts = line.split('|').map(str::trim);
        let [name, numbers, reason] = [(); 3].map(|()| parts.next().unwrap());
        let mut ratios = [0.0; PRESETS.len()];
        let numbers = numbers.split_whitespace().map(|number| number.parse().unwrap());
        ratios.iter_mut().zip(numbers).for_each(|(ratio, number)| *ratio = number);
        (name, (ratios, reason))
    });
    parsed.collect()
}

#[test]
fn plans_are_near_what_devices_allow() {
    let only = std::env::var("ZYX_ONLY").unwrap_or_default();
    let only: Vec<&str> = only.split(',').filter(|name| !name.is_empty()).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/floor.txt");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let (known, found) = (recorded(&text), measured(&only));
    if std::env::var_os("ZYX_BLESS").is_some() {
        let mut text =
            format!("# Times the least time on {}, and why; see floor.rs.\n", PRESETS.join(", "));
        for (name, ratios) in found.iter().filter(|(_, r)| r.iter().any(|&r| r > MOST)) {
            let reason = known.get(name.as_str()).map_or("", |known| known.1);
            let ratios: Vec<String> = ratios.iter().map(|r| format!("{r:.1}")).collect();
            writeln!(text, "{name} | {} | {reason}", ratios.join(" ")).unwrap();
        }
        std::fs::write(path, text).unwrap();
        return;
    }
    let mut faults = String::new();
    for (name, ratios) in &found {
        let worst = ratios.iter().copied().fold(0.0, f64::max);
        let known = known.get(name.as_str());
        for (place, &ratio) in ratios.iter().enumerate() {
            let most = known.map_or(MOST, |known| MOST.max(SLACK * known.0[place]));
            if ratio > most {
                let preset = PRESETS[place];
                writeln!(faults, "{name} on {preset}: {ratio:.1}, at most {most:.1}").unwrap();
            }
        }
        if known.is_some_and(|known| known.1.is_empty() || worst <= MOST) {
            writeln!(faults, "{name}: without a reason, or no exception: {ratios:?}").unwrap();
        }
    }
    for name in known.keys().filter(|name| only.is_empty() && !found.contains_key(**name)) {
        writeln!(faults, "{name}: there is no such row").unwrap();
    }
    assert!(faults.is_empty(), "{faults}");
}
