//! Timing rules and the report.

use std::time::Instant;
use zyx::{Device, Result};

/// What a workload measured.
pub(crate) struct Report {
    unit: &'static str,
    /// Converted samples, in the order they were taken.
    samples: Vec<f64>,
    /// Seconds of the first call, planning and compilation included.
    first: f64,
}

impl Report {
    pub(crate) fn print(mut self, name: &str, device: &Device) {
        self.samples.sort_by(f64::total_cmp);
        let (n, s) = (self.samples.len(), &self.samples);
        #[allow(clippy::print_stdout, reason = "the report is what the program is for")]
        {
            println!(
                "{{\"workload\":\"{name}\",\"peer\":\"zyx\",\"device\":\"{}\",\"unit\":\"{}\",\
                 \"value\":{:.5},\"min\":{:.5},\"max\":{:.5},\"n\":{n},\"first_call_ms\":{:.3}}}",
                device.spec(),
                self.unit,
                s[n / 2],
                s[0],
                s[n - 1],
                self.first * 1e3
            );
        }
    }
}

/// How seconds of a call become the reported number.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    /// Milliseconds.
    Ms,
    /// Microseconds per one of so many operations.
    UsPer(f64),
    /// So many bytes per call, in GB/s.
    GBs(f64),
    /// So many operations per call, in GFLOP/s.
    Gflops(f64),
    /// Calls per second.
    PerSecond,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Unit::Ms => "ms",
            Unit::UsPer(_) => "us",
            Unit::GBs(_) => "GB/s",
            Unit::Gflops(_) => "GFLOP/s",
            Unit::PerSecond => "tokens/s",
        }
    }

    fn of(self, seconds: f64) -> f64 {
        match self {
            Unit::Ms => seconds * 1e3,
            Unit::UsPer(n) => seconds * 1e6 / n,
            Unit::GBs(bytes) => bytes / seconds * 1e-9,
            Unit::Gflops(flops) => flops / seconds * 1e-9,
            Unit::PerSecond => 1.0 / seconds,
        }
    }
}

/// Times a call that computes and waits.
pub(crate) fn op(unit: Unit, mut call: impl FnMut() -> Result<()>) -> Result<Report> {
    let start = Instant::now();
    call()?;
    let first = start.elapsed().as_secs_f64();
    let (warm, mut calls) = (Instant::now(), 0u32);
    while calls < 3 || warm.elapsed().as_secs_f64() < 0.2 {
        call()?;
        calls += 1;
    }
    let one = warm.elapsed().as_secs_f64() / f64::from(calls);
    let inner = (0.005 / one).ceil().max(1.0) as u32;
    let samples = sample(20, 0.5, inner, &mut call)?;
    Ok(Report { unit: unit.name(), samples: samples.iter().map(|&s| unit.of(s)).collect(), first })
}

/// Times training steps; `step` gets whether to read the loss.
pub(crate) fn training(unit: Unit, mut step: impl FnMut(bool) -> Result<()>) -> Result<Report> {
    let start = Instant::now();
    step(true)?;
    let first = start.elapsed().as_secs_f64();
    (0..9).try_for_each(|_| step(true))?;
    let warm = Instant::now();
    (0..5).try_for_each(|_| step(false))?;
    let block = (0.05 / (warm.elapsed().as_secs_f64() / 5.0)).ceil().max(1.0) as u32;
    let mut position = 0;
    let mut call = || {
        position += 1;
        step(position % block == 0)
    };
    let samples = sample(20, 1.0, block, &mut call)?;
    Ok(Report { unit: unit.name(), samples: samples.iter().map(|&s| unit.of(s)).collect(), first })
}

/// Seconds per call: samples of `inner` calls each until there are `n` and `seconds` passed.
fn sample(
    n: usize,
    seconds: f64,
    inner: u32,
    call: &mut dyn FnMut() -> Result<()>,
) -> Result<Vec<f64>> {
    let (start, mut samples) = (Instant::now(), Vec::new());
    while (samples.len() < n || start.elapsed().as_secs_f64() < seconds)
        && (samples.len() < 3 || start.elapsed().as_secs_f64() < 12.0)
    {
        let sample = Instant::now();
        for _ in 0..inner {
            call()?;
        }
        samples.push(sample.elapsed().as_secs_f64() / f64::from(inner));
    }
    Ok(samples)
}
