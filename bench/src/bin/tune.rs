//! What tuning gains: each row's time by the heuristic's choice and after a search.
//!
//! `tune [devices] [rows] [milliseconds a row]`, as in `tune cpu,opencl softmax,gelu 2000`. Devices
//! are opened anew for each row, so rows do not share a budget. Set `ZYX_CACHE_DIR` to an empty
//! folder to search again what was found before. `tune rate` prints how many candidates a core
//! makes, hashes and estimates in a second.

#![allow(clippy::print_stdout, reason = "the report is what the program is for")]

use std::collections::HashSet;
use std::error::Error;
use std::time::{Duration, Instant};
use zyx::data::Progress;
use zyx::internals::hal::Caps;
use zyx::internals::ir::Kernel;
use zyx::internals::tune::Knobs;
use zyx::internals::tune::candidates::{Candidate, extensions};
use zyx::{Device, OpenDevice as _, Tensor};

type Outcome<T> = Result<T, Box<dyn Error>>;
type Row = (&'static str, fn(&Tensor) -> zyx::Result<Tensor>);

const ROWS: [Row; 10] = [
    ("gelu", |x| Ok(x.gelu())),
    ("softmax", |x| x.softmax(-1)),
    ("layernorm", |x| x.layer_norm(1, None, None, 1e-5)),
    ("transpose", |x| Ok(x.transpose(0, 1)? + 0.0)),
    ("sum_rows", |x| x.sum(-1)),
    ("sum_cols", |x| x.sum(0)),
    ("sum", |x| x.sum([0, 1])),
    ("cumsum", |x| x.cumsum(-1)),
    ("product", |x| x.transpose(0, 1)?.matmul(x)),
    ("chain", |x| Ok((x * 2.0 + 1.0).tanh() * x)),
];

const SIZES: [[usize; 2]; 2] = [[512, 512], [4096, 2048]];

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |i: usize, default: &str| args.get(i).cloned().unwrap_or(default.to_owned());
    if arg(0, "") == "rate" {
        return rate();
    }
    let budget = Duration::from_millis(arg(2, "2000").parse()?);
    let (devices, wanted) = (arg(0, "cpu"), arg(1, ""));
    let chosen = |name: &str| wanted.is_empty() || wanted.split(',').any(|w| w == name);
    let rows: Vec<_> = devices
        .split(',')
        .flat_map(|spec| ROWS.map(|row| (spec, row)))
        .filter(|(_, row)| chosen(row.0))
        .flat_map(|(spec, row)| SIZES.map(|dims| (spec, row, dims)))
        .collect();
    let mut progress = Progress::new(rows.len());
    for (i, (spec, row, dims)) in rows.into_iter().enumerate() {
        progress.set(i, &format!("{spec} {} {}x{}", row.0, dims[0], dims[1]));
        let report = tuned(spec, row, dims, budget)?;
        progress.aside(|| println!("{report}"));
    }
    Ok(())
}

/// What tuning gained for a row.
fn tuned(spec: &str, (name, run): Row, dims: [usize; 2], budget: Duration) -> Outcome<String> {
    let device = Device::open(spec)?;
    let data: Vec<f32> =
        (0..dims[0] * dims[1]).map(|i| (i * 37 % 1001) as f32 / 500.0 - 1.0).collect();
    let x = Tensor::from_slice(&data, dims, &device)?;
    let before = time(&device, &x, run)?;
    let start = Instant::now();
    let tuned = device.tune(budget)?;
    let took = start.elapsed();
    let after = time(&device, &x, run)?;
    let kernels: Vec<String> = tuned
        .iter()
        .map(|k| format!("{} {:.1}->{:.1}", k.name, us(k.before), us(k.after)))
        .collect();
    Ok(format!(
        "{spec} {name} {}x{}: {:.1} us -> {:.1} us ({:.2}x), {} candidates in {} ms; {}",
        dims[0],
        dims[1],
        us(before),
        us(after),
        us(before) / us(after),
        device.stats().searches,
        took.as_millis(),
        kernels.join(", ")
    ))
}

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// The median time of a step.
fn time(device: &Device, x: &Tensor, run: fn(&Tensor) -> zyx::Result<Tensor>) -> Outcome<Duration> {
    let mut times = Vec::new();
    let start = Instant::now();
    while times.len() < 5 || (start.elapsed() < Duration::from_millis(300) && times.len() < 200) {
        let step = Instant::now();
        run(x)?.realize()?;
        device.synchronize()?;
        times.push(step.elapsed());
    }
    times.sort();
    Ok(times[times.len() / 2])
}

/// Candidates a second on one core: whole settings, and single steps more.
fn rate() -> Outcome<()> {
    let texts = [("chain", CHAIN), ("sum_rows", SUM)];
    let mut cpu = Caps::default();
    (cpu.vector_bytes, cpu.masked, cpu.threads) = (64, true, 2);
    let mut gpu = cpu.clone();
    (gpu.simt, gpu.max_local, gpu.shared_bytes, gpu.threads) = (true, 256, 32 << 10, 1 << 16);
    for (device, caps) in [("cpu", &cpu), ("gpu", &gpu)] {
        for (name, text) in texts {
            let kernel: Kernel = text.parse()?;
            let around = Knobs::default().changes(caps);
            let settings: Vec<Knobs> = around.iter().flat_map(|k| k.changes(caps)).collect();
            let (mut made, mut distinct, start) = (0, HashSet::new(), Instant::now());
            while start.elapsed() < Duration::from_secs(1) {
                for &knobs in &settings {
                    distinct.insert(Candidate::of(&kernel, caps, knobs).kernel);
                }
                made += settings.len();
            }
            let settings = made as f64 / start.elapsed().as_secs_f64();
            let first = Candidate::of(&kernel, caps, Knobs::default());
            let (mut steps, start) = (0, Instant::now());
            while start.elapsed() < Duration::from_secs(1) {
                let mut seen = Default::default();
                let list = extensions(&first, caps, &mut seen);
                list.iter().take(8).for_each(|c| steps += extensions(c, caps, &mut seen).len());
                steps += list.len();
            }
            let steps = steps as f64 / start.elapsed().as_secs_f64();
            let ops = kernel.ops().len();
            println!(
                "{device} {name} ({ops} ops): {settings:.0} settings/s ({} distinct), {steps:.0} \
                 distinct steps/s",
                distinct.len()
            );
        }
    }
    Ok(())
}

const CHAIN: &str = "kernel chain
    buffer 0 : f32[65536] read
    buffer 1 : f32[65536] write
    %a param 0 read : f32
    %b param 1 write : f32
    %n const 65536 : i64
    %i loop parallel %n
    %x load %a[%i] : f32
    %y mul %x, %x : f32
    %z add %y, %x : f32
    %w sqrt %z : f32
    %s store %b[%i], %w : f32
    %e end %i";

const SUM: &str = "kernel sum_rows
    buffer 0 : f32[65536] read
    buffer 1 : f32[256] write
    %a param 0 read : f32
    %b param 1 write : f32
    %n const 256 : i64
    %zero const 0 : i64
    %nil const 0.0 : f32
    %i loop parallel %n
    %acc alloc register 1 : f32
    %s0 store %acc[%zero], %nil : f32
    %j loop serial %n
    %row mul %i, %n : i64
    %at add %row, %j : i64
    %x load %a[%at] : f32
    %old load %acc[%zero] : f32
    %new add %old, %x : f32
    %s1 store %acc[%zero], %new : f32
    %e1 end %j
    %sum load %acc[%zero] : f32
    %s2 store %b[%i], %sum : f32
    %e2 end %i";
