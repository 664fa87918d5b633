//! Timing rules, checksums and the report.

use std::time::Instant;
use zyx::{DType, Device, Result, Tensor};

/// What a workload measured.
#[derive(Debug)]
pub(crate) struct Report {
    metric: &'static str,
    unit: &'static str,
    higher: bool,
    /// Converted samples, in the order they were taken.
    samples: Vec<f64>,
    checksum: Option<f64>,
    probe: Vec<f64>,
    /// Further numbers by name.
    extra: Vec<(&'static str, f64)>,
}

impl Report {
    pub(crate) fn new(metric: &'static str, unit: &'static str, samples: Vec<f64>) -> Report {
        let (checksum, probe, extra) = (None, Vec::new(), Vec::new());
        Report { metric, unit, higher: false, samples, checksum, probe, extra }
    }

    /// With a number that agrees between frameworks given the same inputs.
    pub(crate) fn checked(mut self, checksum: f64, probe: Vec<f64>) -> Report {
        (self.checksum, self.probe) = (Some(checksum), probe);
        self
    }

    pub(crate) fn with(mut self, name: &'static str, x: f64) -> Report {
        self.extra.push((name, x));
        self
    }

    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }

    /// The line of JSON, with the keys that the peers' scripts print.
    pub(crate) fn json(&self, name: &str, device: &Device) -> String {
        let min = self.samples.iter().copied().fold(f64::INFINITY, f64::min);
        let max = self.samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let probe: Vec<String> = self.probe.iter().map(|&x| number(x, 7)).collect();
        let mut text = format!(
            "{{\"peer\":\"zyx\",\"workload\":\"{name}\",\"metric\":\"{}\",\"unit\":\"{}\",\
             \"better\":\"{}\",\"value\":{},\"min\":{},\"max\":{},\"n\":{},\"checksum\":{},\
             \"probe\":[{}],\"threads\":{},\"device\":\"{}\"",
            self.metric,
            self.unit,
            if self.higher { "higher" } else { "lower" },
            number(self.median(), 5),
            number(min, 5),
            number(max, 5),
            self.samples.len(),
            self.checksum.map_or("null".to_owned(), |x| number(x, 7)),
            probe.join(","),
            device.caps().threads,
            device.spec(),
        );
        for &(name, x) in &self.extra {
            text.push_str(&format!(",\"{name}\":{}", number(x, 5)));
        }
        text.push('}');
        text
    }
}

/// A number of so many digits as JSON has it.
pub(crate) fn number(x: f64, digits: usize) -> String {
    if !x.is_finite() {
        return "null".to_owned();
    }
    let rounded: f64 = format!("{x:.*e}", digits - 1).parse().unwrap_or(x);
    rounded.to_string()
}

/// The sum of all elements' sizes, weighted by their position, and three of them.
pub(crate) fn checksum(x: &Tensor) -> Result<(f64, Vec<f64>)> {
    let data = x.cast(DType::F64).to_vec::<f64>()?;
    let weigh = |(i, x): (usize, &f64)| x.abs() * (i % 97 + 1) as f64;
    let sum: f64 = data.iter().enumerate().map(weigh).sum::<f64>() / 97.0;
    let n = data.len();
    Ok((sum / n as f64, [0, n / 3, n - 1].map(|i| data[i]).to_vec()))
}

/// How seconds of a call become the reported number.
#[derive(Clone, Copy, Debug)]
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
    fn of(self, seconds: f64) -> f64 {
        match self {
            Unit::Ms => seconds * 1e3,
            Unit::UsPer(n) => seconds * 1e6 / n,
            Unit::GBs(bytes) => bytes / seconds * 1e-9,
            Unit::Gflops(flops) => flops / seconds * 1e-9,
            Unit::PerSecond => 1.0 / seconds,
        }
    }

    fn report(self, seconds: &[f64], first: f64) -> Report {
        let samples = seconds.iter().map(|&s| self.of(s)).collect();
        let (metric, unit, higher) = match self {
            Unit::Ms => ("time per step", "ms", false),
            Unit::UsPer(n) if n > 1.0 => ("time per op", "us", false),
            Unit::UsPer(_) => ("time per call", "us", false),
            Unit::GBs(_) => ("rate", "GB/s", true),
            Unit::Gflops(_) => ("rate", "GFLOP/s", true),
            Unit::PerSecond => ("decode rate", "tokens/s", true),
        };
        let mut report = Report::new(metric, unit, samples);
        report.higher = higher;
        let mut sorted = seconds.to_vec();
        sorted.sort_by(f64::total_cmp);
        report.with("ms", sorted[sorted.len() / 2] * 1e3).with("first_call_ms", first * 1e3)
    }
}

/// Seconds that a call takes.
pub(crate) fn seconds<T>(call: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let start = Instant::now();
    let result = call()?;
    Ok((result, start.elapsed().as_secs_f64()))
}

/// Times a call that computes what it returns; the result of the first is the checksum.
pub(crate) fn op(unit: Unit, call: impl Fn() -> Result<Tensor>) -> Result<Report> {
    op_with(unit, call, checksum)
}

/// [`op`] where the result is large: the checksum is the mean size of its elements, in `f32`.
pub(crate) fn op_of_size(unit: Unit, call: impl Fn() -> Result<Tensor>) -> Result<Report> {
    op_with(unit, call, |x| {
        let mean = x.cast(DType::F32).abs().mean(..)?;
        Ok((f64::from(mean.item::<f32>()?), Vec::new()))
    })
}

fn op_with(
    unit: Unit,
    call: impl Fn() -> Result<Tensor>,
    checksum: impl Fn(&Tensor) -> Result<(f64, Vec<f64>)>,
) -> Result<Report> {
    let run = || call()?.realize();
    let result = call()?;
    let device = result.device().clone();
    let ((), first) = seconds(|| result.realize().and_then(|()| device.synchronize()))?;
    let (sum, probe) = checksum(&result)?;
    let samples = repeat(&mut || run(), &mut || device.synchronize())?;
    Ok(unit.report(&samples, first).checked(sum, probe))
}

/// Times a call that changes something.
pub(crate) fn calls(unit: Unit, mut call: impl FnMut() -> Result<()>) -> Result<Report> {
    let ((), first) = seconds(&mut call)?;
    Ok(unit.report(&repeat(&mut call, &mut || Ok(()))?, first))
}

/// Samples of many calls; each ends when `finish` says that they are done, not only queued.
fn repeat(
    call: &mut dyn FnMut() -> Result<()>,
    finish: &mut dyn FnMut() -> Result<()>,
) -> Result<Vec<f64>> {
    let (warm, mut calls) = (Instant::now(), 0u32);
    while calls < 3 || (warm.elapsed().as_secs_f64() < 0.2 && calls < 1000) {
        call()?;
        finish()?;
        calls += 1;
    }
    let one = warm.elapsed().as_secs_f64() / f64::from(calls);
    let inner = (0.005 / one).ceil().max(1.0) as u32;
    let mut done = 0;
    let mut counted = || {
        call()?;
        done += 1;
        if done % inner == 0 { finish() } else { Ok(()) }
    };
    sample(20, 0.5, inner, &mut counted)
}

/// Times training steps; `step` gives the loss, which is read when it is asked to.
pub(crate) fn training(
    unit: Unit,
    mut step: impl FnMut(bool) -> Result<Option<f32>>,
) -> Result<Report> {
    let mut losses = Vec::new();
    let (loss, first) = seconds(|| step(true))?;
    losses.extend(loss);
    for _ in 1..10 {
        losses.extend(step(true)?);
    }
    let warm = Instant::now();
    for _ in 0..5 {
        step(false)?;
    }
    let block = (0.05 / (warm.elapsed().as_secs_f64() / 5.0)).ceil().max(1.0) as u32;
    let mut position = 0;
    let mut call = || {
        position += 1;
        step(position % block == 0).map(|_| ())
    };
    let report = unit.report(&sample(20, 1.0, block, &mut call)?, first);
    let loss = |i: usize| f64::from(losses[i]);
    Ok(report.checked(loss(9), vec![loss(0), loss(4), loss(9)]))
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

/// Memory of this process in MiB: now and at most since the last [`reset_peak`]. Zero where the
/// system does not say.
pub(crate) fn memory() -> (f64, f64) {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    let mib = |key| value(key).unwrap_or(0.0) / 1024.0;
    (mib("VmRSS:"), mib("VmHWM:"))
}

/// Forgets the most memory held so far.
pub(crate) fn reset_peak() {
    // Where this does not exist, peaks include what was before.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_peers() -> Result<()> {
        let x = Tensor::from_slice(&[-2f32, 1.0, 3.0], [3], &zyx::device()?)?;
        let (sum, probe) = checksum(&x)?;
        assert!((sum - (2.0 + 2.0 + 9.0) / 97.0 / 3.0).abs() < 1e-15);
        assert_eq!(probe, [-2.0, 1.0, 3.0]);
        assert_eq!((number(1234.5678, 5), number(f64::NAN, 5)), ("1234.6".into(), "null".into()));
        Ok(())
    }
}
