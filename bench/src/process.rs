//! What a whole process costs: start, first calls, memory. Each is measured on a fresh one.

use crate::Workload;
use crate::inputs::Inputs;
use crate::measure::{Report, checksum, memory, reset_peak, seconds};
use crate::ops::M16;
use crate::transformer::Trainer;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use zyx::{Error, Result};

pub(crate) fn workloads() -> Vec<(&'static str, Workload)> {
    vec![
        ("startup", |_| wall_time(&["_product"])),
        ("import_time", |_| wall_time(&["_nothing"])),
        ("compile_time", compile_time),
        ("mem_gpt_train", mem_gpt_train),
        ("mem_chain100", mem_chain100),
    ]
}

/// Answers if this process was started to be measured.
pub(crate) fn child(args: &[String]) -> Option<Result<()>> {
    match args.first().map(String::as_str)? {
        "_nothing" => Some(Ok(())),
        "_product" => Some(product()),
        "_gpt_first" => Some(gpt_first(args.get(1).map(PathBuf::from))),
        _ => None,
    }
}

/// A 2x2 product, printed: the least that a user runs.
fn product() -> Result<()> {
    let x = zyx::tensor([[1f32, 2.0], [3.0, 4.0]])?;
    print(&x.matmul(&x)?.to_string());
    Ok(())
}

#[allow(clippy::print_stdout, reason = "the parent process reads it")]
fn print(text: &str) {
    println!("{text}");
}

/// Ten steps of `gpt_train`: seconds of the first and of the first three, memory, and the verifier's
/// share of the time in which kernels became programs.
fn gpt_first(folder: Option<PathBuf>) -> Result<()> {
    let (imported, _) = memory();
    let device = zyx::device()?;
    let mut trainer = Trainer::new(&mut Inputs::new(&device, folder, "gpt_train"))?;
    let (before, _) = memory();
    reset_peak();
    let (mut times, mut loss, mut first_peak) = (Vec::new(), 0.0, 0.0);
    for step in 0..10 {
        if step == 5 {
            first_peak = memory().1;
            reset_peak();
        }
        let (read, time) = seconds(|| trainer.step(true))?;
        times.push(time);
        loss = f64::from(read.unwrap_or(f32::NAN));
    }
    let steady = memory().1;
    let three: f64 = times[..3].iter().sum();
    let peak = steady.max(first_peak);
    let stats = device.stats();
    let share = stats.verify_ns as f64 / stats.compile_ns as f64;
    print(&format!("{} {three} {loss} {peak} {steady} {before} {imported} {share}", times[0]));
    Ok(())
}

/// This program again, with other arguments.
fn again(args: &[&str]) -> Result<Command> {
    let io = |source| Error::Io { what: "this program".to_owned(), source };
    let mut command = Command::new(std::env::current_exe().map_err(io)?);
    command.args(args);
    Ok(command)
}

fn wall_time(args: &[&str]) -> Result<Report> {
    let io = |source| Error::Io { what: "a child process".to_owned(), source };
    let mut samples = Vec::new();
    // The first run reads the file into the page cache.
    for _ in 0..10 {
        let mut command = again(args)?;
        command.stdout(Stdio::null());
        let (status, time) = seconds(|| command.status().map_err(io))?;
        if !status.success() {
            let reason = format!("ended with {status}");
            return Err(Error::Format { what: args.join(" "), reason });
        }
        samples.push(time * 1e3);
    }
    Ok(Report::new("wall time of a fresh process", "ms", samples.split_off(1)))
}

/// What [`gpt_first`] printed, of several processes.
fn first_steps(inputs: &Inputs) -> Result<Vec<Vec<f64>>> {
    let io = |source| Error::Io { what: "a child process".to_owned(), source };
    let folder = inputs.folder().map(|folder| folder.display().to_string());
    let args: Vec<&str> = std::iter::once("_gpt_first").chain(folder.as_deref()).collect();
    let mut rows = Vec::new();
    for _ in 0..3 {
        let output = again(&args)?.stderr(Stdio::inherit()).output().map_err(io)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let row: Vec<f64> = text.split_whitespace().filter_map(|x| x.parse().ok()).collect();
        if row.len() != 8 {
            let reason = format!("printed {text:?}");
            return Err(Error::Format { what: "_gpt_first".to_owned(), reason });
        }
        rows.push(row);
    }
    Ok(rows)
}

fn column(rows: &[Vec<f64>], i: usize) -> Vec<f64> {
    rows.iter().map(|row| row[i]).collect()
}

fn middle(rows: &[Vec<f64>], i: usize) -> f64 {
    Report::new("", "", column(rows, i)).median()
}

/// Nothing is cached on disk, so every process starts cold.
fn compile_time(inputs: &mut Inputs) -> Result<Report> {
    let rows = first_steps(inputs)?;
    let report = Report::new("first call of gpt_train, cold caches", "s", column(&rows, 0));
    let report = report.checked(rows[0][2], Vec::new());
    let report = report.with("first_three_calls_s", middle(&rows, 1));
    let share = column(&rows, 7).into_iter().fold(f64::INFINITY, f64::min);
    Ok(report.with("verifier_share", share))
}

fn mem_gpt_train(inputs: &mut Inputs) -> Result<Report> {
    let rows = first_steps(inputs)?;
    let report = Report::new("peak RSS", "MiB", column(&rows, 3)).checked(rows[0][2], Vec::new());
    let report = report.with("before_first_step", rows[0][5]).with("after_import", rows[0][6]);
    Ok(report.with("steady_peak", middle(&rows, 4)))
}

fn mem_chain100(inputs: &mut Inputs) -> Result<Report> {
    let (imported, _) = memory();
    let (x, y) = (inputs.normal("in0", &[M16])?, inputs.normal("in1", &[M16])?);
    inputs.device.trim_memory();
    let (before, _) = memory();
    reset_peak();
    let chain = || (0..50).try_fold(x.clone(), |z, _| z.mul(0.999)?.add(&y));
    let mut times = Vec::new();
    for _ in 0..4 {
        let ((), time) = seconds(|| {
            chain()?.realize()?;
            inputs.device.synchronize()
        })?;
        times.push(vec![time * 1e3]);
    }
    let (_, peak) = memory();
    let (sum, probe) = checksum(&chain()?)?;
    let report = Report::new("peak RSS", "MiB", vec![peak]).checked(sum, probe);
    let report = report.with("after_import", imported).with("before", before);
    Ok(report.with("over_before", peak - before).with("ms_per_call", middle(&times, 0)))
}
