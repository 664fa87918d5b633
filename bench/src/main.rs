//! The benchmark workloads, one JSON line each.
//!
//!     cargo run --release -p zyx-bench -- matmul_f32_1024 mlp_train     # some
//!     cargo run --release -p zyx-bench -- all                           # every one
//!
//! Ops: warm-up of at least three calls and 0.2 s, then samples of at least 5 ms until there are
//! twenty and 0.5 s have passed. Training: ten steps that read the loss, then blocks of at least
//! 50 ms whose last loss is read. `ZYX_STATS=1` adds the device's counters,
//! `ZYX_PROFILE=1` the time of each kernel (which slows the whole),
//! `ZYX_IR=1` the kernels as the device's compiler gets them. Values are medians; inputs are resident before the clock starts.

mod measure;
mod ops;
mod train;
mod transformer;

use measure::Report;
use zyx::{Device, Result};

/// A workload: measures itself on a device.
type Workload = fn(&Device) -> Result<Report>;

fn workloads() -> Vec<(&'static str, Workload)> {
    let mut all = ops::workloads();
    all.extend(train::workloads());
    all.extend(transformer::workloads());
    all
}

fn main() -> Result<()> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let all = workloads();
    if names.is_empty() || names.iter().any(|name| name == "--help") {
        let known: Vec<&str> = all.iter().map(|w| w.0).collect();
        eprintln!("usage: zyx-bench all | WORKLOAD ..\nworkloads: {}", known.join(" "));
        return Ok(());
    }
    if std::env::var_os("ZYX_IR").is_some() && log::set_logger(&Kernels).is_ok() {
        log::set_max_level(log::LevelFilter::Trace);
    }
    let device = zyx::device()?;
    for name in &names {
        let chosen: Vec<_> = all.iter().filter(|w| name == "all" || w.0 == name).collect();
        if chosen.is_empty() {
            eprintln!("no workload is called {name}");
        }
        for (name, workload) in chosen {
            device.set_profiling(std::env::var_os("ZYX_PROFILE").is_some());
            let report = workload(&device)?;
            report.print(name, &device);
            if std::env::var_os("ZYX_STATS").is_some() {
                eprintln!("{:?}", device.stats());
            }
            print_profile(&device);
            device.trim();
        }
    }
    Ok(())
}

/// The launches of the workload, its set-up included, the most expensive first.
fn print_profile(device: &Device) {
    let rows = device.profile();
    let total: f64 = rows.iter().map(|r| r.time.as_secs_f64()).sum();
    for row in rows.iter().take(40) {
        let seconds = row.time.as_secs_f64();
        eprintln!(
            "{:5.1} % {:9.1} us x {:6}  {}",
            100.0 * seconds / total,
            1e6 * seconds / row.launches as f64,
            row.launches,
            row.name
        );
    }
}

/// Prints what the runtime logs of kernels.
struct Kernels;

impl log::Log for Kernels {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.target() == "zyx::ir"
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            eprintln!("{}", record.args());
        }
    }

    fn flush(&self) {}
}
