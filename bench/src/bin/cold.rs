//! What the first steps of a program cost, and those whose slices start elsewhere.
//!
//! `cold [slices|lstm|chain|null] [size] [device]`, all of them if none is named. Prints programs compiled, plans
//! made and milliseconds, those beside in which this thread had a core; `null` is the LSTM planned for an H100, of which nothing runs.
//! On devices other than the CPU the LSTM is as large as there.

#![allow(clippy::print_stdout, reason = "the report is what the program is for")]

use std::error::Error;
use std::time::Instant;
use zyx::nn::{Init, Lstm, Module, RecurrentOptions};
use zyx::{DType, Device, OpenDevice as _, Rng, Runtime, Stats, Tensor};
use zyx_core::testing::Null;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let name = args.first().map_or("", String::as_str);
    let size = args.get(1).map(|size| size.parse::<usize>()).transpose()?;
    let spec = args.get(2).map_or("cpu", String::as_str);
    let wanted = |this: &str| name.is_empty() || name == this;
    if wanted("slices") {
        slices(&Device::open(spec)?, size.unwrap_or(50))?;
    }
    if wanted("lstm") {
        for size in size.map_or(vec![64, 256, 1024], |size| vec![size]) {
            let extents = if spec == "cpu" { [2, 32] } else { [64, 512] };
            lstm(&Device::open(spec)?, size, extents)?;
        }
    }
    if wanted("null") {
        let runtime = Runtime::default();
        runtime.register(Null::default());
        let device = runtime.device("null")?;
        for size in size.map_or(vec![64, 256], |size| vec![size]) {
            lstm(&device, size, [64, 512])?;
        }
    }
    if wanted("chain") {
        for size in size.map_or(vec![1_000, 10_000, 100_000], |size| vec![size]) {
            chain(&Device::open(spec)?, size)?;
        }
    }
    Ok(())
}

/// Now, and the nanoseconds in which this thread has had a core so far, where the system tells.
fn now() -> (Instant, f64) {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let busy = text.split(' ').next().and_then(|ns| ns.parse().ok());
    (Instant::now(), busy.unwrap_or(f64::NAN))
}

/// What happened since, with the time it took.
fn report(name: &str, device: &Device, before: &Stats, (start, busy): (Instant, f64)) {
    let (ms, busy) = (start.elapsed().as_secs_f64() * 1e3, (now().1 - busy) / 1e6);
    let stats = device.stats().since(before);
    println!(
        "{name:34} {ms:9.2} ms ({busy:8.2} busy), {:4} compiled, {:3} plans, {:7} nodes, {:6} launches, compiling {:8.2} ms, of it proofs {:7.2} ms",
        stats.compiles + stats.loads,
        stats.plan_misses,
        stats.nodes,
        stats.launches,
        stats.compile_ns as f64 / 1e6,
        stats.verify_ns as f64 / 1e6,
    );
}

/// What is computed from the step's slices.
type Step = fn(&Tensor, &Tensor, usize) -> zyx::Result<Tensor>;

const LOOPS: [(&str, Step); 6] = [
    ("data[i..i+64].sum", |data, _, i| data.slice(0, i..i + 64)?.square().sum(..)),
    ("rows[i..i+32] @ w", |_, rows, i| {
        let w = rows.slice(0, 0..64)?;
        rows.slice(0, i..i + 32)?.matmul(&w)?.relu().sum(..)
    }),
    ("columns[.., i..i+8] softmax", |_, rows, i| {
        let i = i % 56;
        rows.slice(1, i..i + 8)?.softmax(-1)?.square().sum(..)
    }),
    ("rows[i]", |_, rows, i| rows.select_index(0, i as isize)?.exp().sum(..)),
    ("four windows, stacked", |data, _, i| {
        let part = |k: usize| data.slice(0, 7 * k + i..7 * k + i + 64);
        let all = [part(0)?, part(1)?, part(2)?, part(3)?];
        Tensor::stack(&all.each_ref(), 0)?.exp().sum(..)
    }),
    ("gather of rows", |_, rows, i| {
        let index = Tensor::from_slice(&[i as i64, i as i64 + 1], [2], rows.device())?;
        rows.index_select(0, &index)?.exp().sum(..)
    }),
];

/// A loop that takes slices of realized data at other places each step.
fn slices(device: &Device, steps: usize) -> Outcome<()> {
    let random = |dims: &[usize]| -> zyx::Result<Tensor> {
        let x = Tensor::randn(dims, DType::F32, &mut Rng::seed(1), device)?.contiguous();
        x.realize()?;
        Ok(x)
    };
    let (data, rows) = (random(&[4096])?, random(&[256, 64])?);
    for (name, step) in LOOPS {
        for (part, steps) in [("first two steps", 0..2), ("the others", 2..steps)] {
            let (before, start) = (device.stats(), now());
            for i in steps {
                step(&data, &rows, i * 37 % 191)?.item::<f32>()?;
            }
            report(&format!("{name}: {part}"), device, &before, start);
        }
    }
    Ok(())
}

/// The first training step of an LSTM, and the second.
fn lstm(device: &Device, steps: usize, [batch, width]: [usize; 2]) -> Outcome<()> {
    let options = RecurrentOptions { layers: 2, ..RecurrentOptions::default() };
    let layer = Lstm::new(width, width, options, &mut Init::new(0, device))?;
    let x = Tensor::randn([steps, batch, width], DType::F32, &mut Rng::seed(1), device)?;
    x.realize()?;
    let weights: Vec<Tensor> = layer.parameters().iter().map(|p| p.tensor()).collect();
    Tensor::realize_all(&weights)?;
    for part in ["first", "second", "third", "fourth", "fifth", "sixth"] {
        let (before, start) = (device.stats(), now());
        let (y, _) = layer.run(&x, None)?;
        let loss = y.square().mean(..)?;
        let gradients = loss.grad(&weights.iter().collect::<Vec<_>>())?;
        let built = start.0.elapsed().as_secs_f64() * 1e3;
        Tensor::realize_all(gradients.iter().flatten())?;
        let queued = start.0.elapsed().as_secs_f64() * 1e3;
        device.synchronize()?;
        let name = format!("lstm of {steps}, {part} ({built:.1} built, {queued:.1} queued)");
        report(&name, device, &before, start);
    }
    Ok(())
}

/// Chains of elementwise operations, of products, and of values that all are stored.
fn chain(device: &Device, n: usize) -> Outcome<()> {
    let x = Tensor::randn([8, 8], DType::F32, &mut Rng::seed(1), device)?;
    x.realize()?;
    type Link = fn(&Tensor, &Tensor) -> zyx::Result<Tensor>;
    let links: [(&str, usize, Link); 3] = [
        ("elementwise", 1, |y, _| Ok(y.tanh())),
        ("sums", 5, |y, _| y.sub(y.mean_keepdim(-1)?)?.add(1.0)),
        ("products", 4, |y, x| Ok(y.matmul(x)?.contiguous())),
    ];
    for (name, nodes, link) in links {
        let (before, start) = (device.stats(), now());
        let y = (0..n / nodes).try_fold(x.clone(), |y, _| link(&y, &x))?;
        y.realize()?;
        report(&format!("chain of {n}, {name}"), device, &before, start);
    }
    Ok(())
}
