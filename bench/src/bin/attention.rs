//! Times attention of real models, forward and with all gradients, and compares values with `f64`.
//!
//! `attention time|check [device]`. Each line of `time` is a row, what is computed, the median
//! microseconds, TFLOP/s of what is seen (gradients count five products for two), what the cost model
//! predicts, and the launches. Each line of `check` is the largest error in units of the dtype's last place
//! of the largest element. With an empty `ZYX_CUDNN` all of it is generated code.

#![allow(clippy::print_stdout, reason = "the report is what the program is for")]

use std::error::Error;
use zyx::{Attention, DType, Device, OpenDevice as _, Tensor};
use zyx_bench::{data, median};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A name; batch, heads, heads of keys, queries, keys, width; whether it is causal.
type Row = (&'static str, [usize; 6], bool);

const ROWS: [Row; 12] = [
    ("gpt2", [8, 12, 12, 1024, 1024, 64], true),
    ("gpt2_long", [2, 12, 12, 4096, 4096, 64], true),
    ("bert", [32, 12, 12, 512, 512, 64], false),
    ("vit", [64, 12, 12, 197, 197, 64], false),
    ("llama", [4, 32, 8, 2048, 2048, 128], true),
    ("llama_long", [1, 32, 8, 8192, 8192, 128], true),
    ("heads_128", [2, 16, 16, 4096, 4096, 128], true),
    ("heads_128_all", [2, 16, 16, 4096, 4096, 128], false),
    ("long", [2, 16, 16, 8192, 8192, 128], true),
    ("heads_256", [2, 8, 8, 2048, 2048, 256], true),
    ("cross", [4, 16, 16, 512, 2048, 64], false),
    ("small", [1, 4, 4, 256, 256, 64], true),
];

const SMALL: [Row; 8] = [
    ("plain", [2, 3, 3, 130, 130, 64], false),
    ("causal", [2, 3, 3, 130, 130, 64], true),
    ("few_keys", [2, 4, 4, 200, 70, 64], true),
    ("many_keys", [1, 4, 4, 70, 333, 128], true),
    ("grouped", [2, 8, 2, 128, 192, 128], true),
    ("one_head_of_keys", [3, 4, 1, 96, 160, 64], false),
    ("wide", [1, 2, 2, 160, 160, 256], true),
    ("odd", [1, 5, 5, 129, 257, 96], false),
];

/// Queries, keys and values as projections leave them, heads behind positions, and a gradient.
fn operands(row: &Row, dtype: DType, device: &Device) -> zyx::Result<[Tensor; 4]> {
    let [batch, heads, groups, queries, keys, width] = row.1;
    let of = |positions: usize, heads: usize, seed: f64| {
        data(&[batch, positions, heads, width], (dtype, 1.999), seed, device)
    };
    let (q, dy) = (of(queries, heads, 0.0)?, of(queries, heads, 0.3)?);
    Ok([q, of(keys, groups, 0.1)?, of(keys, groups, 0.2)?, dy])
}

/// The result and, where asked, the gradients of queries, keys and values.
fn attend(row: &Row, operands: &[Tensor; 4], trains: bool) -> zyx::Result<Vec<Tensor>> {
    let [q, k, v, dy] = operands;
    let [q, k, v] = [q, k, v].map(|x| if trains { x.tracked() } else { x.clone() });
    let [a, b, c] = [&q, &k, &v].map(|x| x.permute([0, 2, 1, 3]));
    let options = Attention { causal: row.2, grouped: true, ..Attention::default() };
    let y = a?.scaled_dot_product_attention(&b?, &c?, options)?.permute([0, 2, 1, 3])?;
    let gradients = if trains { y.grad_with(dy, &[&q, &k, &v])? } else { Vec::new() };
    let mut all = vec![y.contiguous()];
    all.extend(gradients.into_iter().flatten());
    Ok(all)
}

fn time(device: &Device, row: &Row, dtype: DType) -> Outcome<()> {
    let operands = operands(row, dtype, device)?;
    let [batch, heads, _, queries, keys, width] = row.1.map(|n| n as f64);
    let seen = if row.2 { 0.5 } else { 1.0 };
    let forward = 4.0 * batch * heads * queries * keys * width * seen;
    for (name, trains, work) in [("forward", false, 1.0), ("with gradients", true, 3.5)] {
        let one = || Tensor::realize_all(&attend(row, &operands, trains)?);
        let told = attend(row, &operands, trains)?[usize::from(trains)].explain()?;
        let median = median(device, 200, || one().map(drop))?;
        let names: Vec<&str> = told.launches.iter().map(|l| l.name.as_str()).collect();
        let (rate, names) = (work * forward / median / 1e6, names.join(" "));
        let predicted = told.predicted().as_secs_f64() * 1e6;
        println!("{} {dtype} {name} {median:.1} {rate:.0} {predicted:.1} {names}", row.0);
    }
    Ok(())
}

fn check(device: &Device, row: &Row, dtype: DType) -> Outcome<()> {
    let operands = operands(row, dtype, device)?;
    let library = attend(row, &operands, true)?[1].explain()?.launches;
    let library = library.iter().any(|launch| launch.name.starts_with("attention"));
    // So often that the launches become a list that repeats.
    let mut found = attend(row, &operands, true)?;
    for _ in 0..5 {
        found = attend(row, &operands, true)?;
        Tensor::realize_all(&found)?;
    }
    let alone = attend(row, &operands, false)?;
    let wide = operands.map(|x| x.cast(DType::F64));
    Tensor::realize_all(&wide)?;
    let exact = attend(row, &wide, true)?;
    let unit = if dtype == DType::F16 { 2f64.powi(-11) } else { 2f64.powi(-8) };
    let pairs = found.iter().chain(&alone).zip(exact.iter().chain([&exact[0]]));
    let names = ["result", "queries", "keys", "values", "alone"];
    for ((found, exact), name) in pairs.zip(names) {
        let largest = exact.abs().max(..)?.item::<f64>()?;
        let error = (found.cast(DType::F64) - exact).abs().max(..)?.item::<f64>()?;
        let worst = error / largest / unit;
        let verdict = if worst < 4.0 { "ok" } else { "WRONG" };
        println!("{} {dtype} {name} {worst:.2} {verdict} library {library}", row.0);
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |i: usize, default: &str| args.get(i).cloned().unwrap_or(default.to_owned());
    let checks = arg(0, "time") == "check";
    let device = Device::open(&arg(1, "cuda"))?;
    for row in if checks { &SMALL[..] } else { &ROWS } {
        for dtype in [DType::F16, DType::BF16] {
            if !checks && dtype == DType::F16 {
                continue;
            }
            let done = if checks { check(&device, row, dtype) } else { time(&device, row, dtype) };
            if let Err(error) = done {
                println!("{} {dtype} failed: {error}", row.0);
            }
        }
    }
    Ok(())
}
