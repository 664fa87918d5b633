//! The benchmark workloads, one JSON line each.
//!
//!     cargo run --release -p zyx-bench -- matmul_f32_1024 mlp_train     # some
//!     cargo run --release -p zyx-bench -- all                           # every one
//!
//! Ops: warm-up of at least three calls and 0.2 s, then samples of at least 5 ms until there are
//! twenty and 0.5 s have passed. Training: ten steps that read the loss, then blocks of at least
//! 50 ms whose last loss is read. `ZYX_STATS=1` adds the device's counters. Values are medians; inputs are resident before the clock starts.

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
    let device = zyx::device()?;
    for name in &names {
        let chosen: Vec<_> = all.iter().filter(|w| name == "all" || w.0 == name).collect();
        if chosen.is_empty() {
            eprintln!("no workload is called {name}");
        }
        for (name, workload) in chosen {
            let report = workload(&device)?;
            report.print(name, &device);
            if std::env::var_os("ZYX_STATS").is_some() {
                eprintln!("{:?}", device.stats());
            }
            device.trim();
        }
    }
    Ok(())
}
