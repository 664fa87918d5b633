//! Operations at the size of a GPU: 256 Mi elements, a gigabyte, far beyond its caches.
//!
//!     cargo run --release -p zyx-bench --features zyx/cuda --bin gpu -- [WORKLOAD ..]
//!
//! One line each: workload, median, unit, milliseconds of the first call. Every sample takes at
//! least 5 ms and ends when the device has finished; there are at least twenty.

use std::time::Instant;
use zyx::{DType, Device, Result, Rng, Tensor};

type Workload = fn(&Device) -> Result<Report>;

/// What was measured: seconds of a call, median, and what they are converted to.
struct Report {
    seconds: f64,
    unit: Unit,
    first: f64,
}

#[derive(Clone, Copy)]
enum Unit {
    /// So many bytes per call, in GB/s.
    GBs(f64),
    /// So many operations per call, in GFLOP/s.
    Gflops(f64),
    /// Microseconds per one of so many operations.
    UsPer(f64),
}

fn main() -> Result<()> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let device = zyx::device()?;
    for (name, workload) in workloads() {
        if !names.is_empty() && !names.iter().any(|n| n == name) {
            continue;
        }
        let Report { seconds, unit, first } = workload(&device)?;
        let (value, unit) = match unit {
            Unit::GBs(bytes) => (bytes / seconds * 1e-9, "GB/s"),
            Unit::Gflops(flops) => (flops / seconds * 1e-9, "GFLOP/s"),
            Unit::UsPer(n) => (seconds * 1e6 / n, "us"),
        };
        #[allow(clippy::print_stdout, reason = "the report is what the program is for")]
        {
            println!("{name:22} {value:12.3} {unit:8} first {:8.1} ms", first * 1e3);
        }
        device.trim();
    }
    Ok(())
}

/// Times a call: every sample ends when the device has finished.
fn op_waiting(device: &Device, unit: Unit, mut call: impl FnMut() -> Result<()>) -> Result<Report> {
    let mut sample = |calls: u32| -> Result<f64> {
        let start = Instant::now();
        (0..calls).try_for_each(|_| call())?;
        device.synchronize()?;
        Ok(start.elapsed().as_secs_f64() / f64::from(calls))
    };
    let first = sample(1)?;
    let one = (sample(3)? + sample(3)?) / 2.0;
    let calls = (0.005 / one).ceil().max(1.0) as u32;
    let start = Instant::now();
    let mut samples = Vec::new();
    while samples.len() < 20 && start.elapsed().as_secs_f64() < 4.0 {
        samples.push(sample(calls)?);
    }
    samples.sort_by(f64::total_cmp);
    Ok(Report { seconds: samples[samples.len() / 2], unit, first })
}

/// Standard normal numbers, realized.
fn normal(rng: &mut Rng, dims: &[usize], device: &Device) -> Result<Tensor> {
    let x = Tensor::randn(dims, DType::F32, rng, device)?;
    x.realize()?;
    Ok(x)
}

const M256: usize = 256 << 20;

fn workloads() -> Vec<(&'static str, Workload)> {
    vec![
        ("chain_256m", chain),
        ("gelu_256m", |d| one(d, &[M256], 2.0, |x| Ok(x.gelu()))),
        ("sum_256m", |d| one(d, &[M256], 1.0, |x| x.sum(..))),
        ("sum_rows_16384", |d| one(d, &[16384, 16384], 1.0, |x| x.sum(1))),
        ("sum_cols_16384", |d| one(d, &[16384, 16384], 1.0, |x| x.sum(0))),
        ("softmax_65536x4096", |d| one(d, &[65536, 4096], 2.0, |x| x.softmax(1))),
        ("layernorm_65536x4096", layernorm),
        ("transpose_16384", |d| one(d, &[16384, 16384], 2.0, |x| Ok(x.t().contiguous()))),
        ("matmul_f32_4096", |d| matmul(d, DType::F32)),
        ("matmul_bf16_4096", |d| matmul(d, DType::BF16)),
        ("dispatch_waiting", dispatch),
    ]
}

fn one(
    device: &Device,
    dims: &[usize],
    arrays: f64,
    f: fn(&Tensor) -> Result<Tensor>,
) -> Result<Report> {
    let x = normal(&mut Rng::seed(0), dims, device)?;
    let bytes = arrays * 4.0 * x.numel() as f64;
    op_waiting(device, Unit::GBs(bytes), || f(&x)?.realize())
}

fn chain(device: &Device) -> Result<Report> {
    let rng = &mut Rng::seed(0);
    let [a, b, c] = [(); 3].map(|()| normal(rng, &[M256], device));
    let (a, b, c) = (a?, b?, c?);
    let bytes = Unit::GBs(16.0 * M256 as f64);
    op_waiting(device, bytes, || a.add(&b)?.mul(5.0)?.sub(&c)?.realize())
}

fn layernorm(device: &Device) -> Result<Report> {
    let rng = &mut Rng::seed(0);
    let x = normal(rng, &[65536, 4096], device)?;
    let (w, b) = (normal(rng, &[4096], device)?, normal(rng, &[4096], device)?);
    let bytes = Unit::GBs(8.0 * x.numel() as f64);
    op_waiting(device, bytes, || x.layer_norm(-1, Some(&w), Some(&b), 1e-5)?.realize())
}

fn matmul(device: &Device, dtype: DType) -> Result<Report> {
    let (rng, n) = (&mut Rng::seed(0), 4096);
    let (a, b) =
        (normal(rng, &[n, n], device)?.cast(dtype), normal(rng, &[n, n], device)?.cast(dtype));
    Tensor::realize_all([&a, &b])?;
    op_waiting(device, Unit::Gflops(2.0 * (n as f64).powi(3)), || a.matmul(&b)?.realize())
}

/// A hundred dependent additions as one plan, and waiting for them.
fn dispatch(device: &Device) -> Result<Report> {
    let rng = &mut Rng::seed(0);
    let (x, y) = (normal(rng, &[1024], device)?, normal(rng, &[1024], device)?);
    op_waiting(device, Unit::UsPer(100.0), || {
        let mut z = x.clone();
        for _ in 0..100 {
            z = z.add(&y)?;
        }
        z.realize()
    })
}
