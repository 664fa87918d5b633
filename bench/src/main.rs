//! The benchmark workloads, one JSON line each, with the keys that the peers' scripts print.
//!
//!     cargo run --release -p zyx-bench -- matmul_f32_1024 mlp_train     # some
//!     cargo run --release -p zyx-bench -- all                           # every one for a CPU
//!     cargo run --release -p zyx-bench --features zyx/cuda -- large     # those for a GPU
//!     cargo run --release -p zyx-bench -- --data FOLDER sum_16m         # on inputs shared with peers
//!     ZYX_DEVICE=null cargo run --release -p zyx-bench -- gpt_decode    # what the host does, and no device
//!
//! Several workloads, or a group, run in a fresh process each. Ops: warm-up of at least three calls
//! and 0.2 s, then samples of at least 5 ms until there are twenty and 0.5 s have passed. Training:
//! ten steps that read the loss, then blocks of at least 50 ms whose last loss is read. Values are
//! medians; inputs are resident before the clock starts. `ZYX_STATS=1` adds the device's counters,
//! `ZYX_PROFILE=1` the time of each kernel (which slows the whole), `ZYX_IR=1` the kernels as the
//! device's compiler gets them.

mod ceilings;
mod host;
mod inputs;
mod large;
mod measure;
mod ops;
mod process;
mod promises;
mod train;
mod transformer;

use inputs::Inputs;
use measure::Report;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use zyx::data::Progress;
use zyx::{Device, Result};

/// A workload: measures itself on its inputs.
type Workload = fn(&mut Inputs) -> Result<Report>;

/// Groups of workloads by name.
fn groups() -> [(&'static str, Vec<(&'static str, Workload)>); 2] {
    let all = [
        train::workloads(),
        transformer::workloads(),
        ops::workloads(),
        process::workloads(),
        host::workloads(),
        promises::workloads(),
        ceilings::workloads(),
    ];
    [("all", all.concat()), ("large", large::workloads())]
}

fn main() -> Result<()> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(done) = process::child(&args) {
        return done;
    }
    let mut folder = None;
    if let Some(at) = args.iter().position(|arg| arg == "--data")
        && at + 1 < args.len()
    {
        folder = Some(PathBuf::from(args.remove(at + 1)));
        args.remove(at);
    }
    let groups = groups();
    let known = || groups.iter().flat_map(|group| &group.1);
    if args.is_empty() || args.iter().any(|name| name.starts_with("--")) {
        let names: Vec<&str> = known().map(|w| w.0).collect();
        eprintln!(
            "usage: zyx-bench [--data FOLDER] all | large | WORKLOAD ..\nworkloads: {}",
            names.join(" ")
        );
        return Ok(());
    }
    let mut chosen = Vec::new();
    for name in &args {
        let before = chosen.len();
        match groups.iter().find(|group| group.0 == name) {
            Some(group) => chosen.extend(&group.1),
            None => chosen.extend(known().filter(|w| w.0 == name)),
        }
        if chosen.len() == before {
            eprintln!("no workload is called {name}");
        }
    }
    match &chosen[..] {
        [one] => run(one, folder),
        many => {
            let mut progress = Progress::new(many.len());
            for (i, (name, _)) in many.iter().enumerate() {
                progress.set(i, name);
                in_a_process_of_its_own(name, folder.as_ref(), &progress);
            }
            Ok(())
        }
    }
}

fn run((name, workload): &(&'static str, Workload), folder: Option<PathBuf>) -> Result<()> {
    if std::env::var_os("ZYX_IR").is_some() && log::set_logger(&Kernels).is_ok() {
        log::set_max_level(log::LevelFilter::Trace);
    }
    #[cfg(feature = "testing")]
    zyx::runtime().register(zyx_core::testing::Null::default());
    let device = zyx::device()?;
    device.set_profiling(std::env::var_os("ZYX_PROFILE").is_some());
    let report = workload(&mut Inputs::new(&device, folder, name))?;
    #[allow(clippy::print_stdout, reason = "the report is what the program is for")]
    {
        println!("{}", report.json(name, &device));
    }
    if std::env::var_os("ZYX_STATS").is_some() {
        eprintln!("{:?}", device.stats());
    }
    print_profile(&device);
    Ok(())
}

/// Memory and caches of one workload do not touch the next.
fn in_a_process_of_its_own(name: &str, folder: Option<&PathBuf>, progress: &Progress) {
    let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "zyx-bench".into()));
    if let Some(folder) = folder {
        command.arg("--data").arg(folder);
    }
    let ended = command.arg(name).stderr(Stdio::inherit()).output();
    #[allow(clippy::print_stdout, reason = "the report is what the program is for")]
    progress.aside(|| match ended {
        Ok(ended) => {
            print!("{}", String::from_utf8_lossy(&ended.stdout));
            if !ended.status.success() {
                eprintln!("{name}: ended with {}", ended.status);
            }
        }
        Err(error) => eprintln!("{name}: {error}"),
    });
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
        matches!(metadata.target(), "zyx::ir" | "zyx::schedule")
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            eprintln!("{}", record.args());
        }
    }

    fn flush(&self) {}
}
