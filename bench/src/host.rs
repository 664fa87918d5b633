//! Time and memory on the host: building graphs, playing known plans, new batch sizes.

use crate::Workload;
use crate::inputs::Inputs;
use crate::measure::{Report, memory, seconds};
use zyx::{DType, Param, Result, Tensor};

pub(crate) fn workloads() -> Vec<(&'static str, Workload)> {
    vec![
        ("build_10m", build),
        ("host_per_node", host_per_node),
        ("host_per_step", host_per_step),
        ("batch_change", batch_change),
    ]
}

/// Ten million pending ops in a row: seconds to build, bytes and nanoseconds each.
fn build(inputs: &mut Inputs) -> Result<Report> {
    const N: usize = 10_000_000;
    let x = Tensor::from_slice(&[1f32, 2.0], [2], &inputs.device)?;
    let (mut times, mut drops, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..5 {
        let (before, _) = memory();
        let build =
            || (0..N).try_fold(x.clone(), |y, i| if i % 2 == 0 { Ok(y.neg()) } else { y.add(&x) });
        let (y, time) = seconds(build)?;
        times.push(time);
        bytes.push((memory().0 - before) * 1_048_576.0 / N as f64);
        let dropped = seconds(|| {
            drop(y);
            Ok(())
        })?;
        drops.push(dropped.1 * 1e9 / N as f64);
    }
    // Later rounds reuse the memory of the first, so only its growth counts.
    let report = Report::new("time of 10 million pending ops", "s", times);
    let each = report.median() * 1e9 / N as f64;
    let report = report.with("ns_per_op", each).with("bytes_per_op", bytes[0]);
    Ok(report.with("drop_ns_per_op", Report::new("", "", drops).median()))
}

/// A plan that is known, of a chain of tiny elementwise ops: what capturing it, finding the plan
/// and playing it take for each node. Building is given apart.
fn host_per_node(inputs: &mut Inputs) -> Result<Report> {
    const N: usize = 2000;
    let x = Tensor::from_slice(&[1f32, 2.0], [2], &inputs.device)?;
    let chain =
        || (0..N).try_fold(x.clone(), |y, i| if i % 2 == 0 { Ok(y.neg()) } else { y.add(&x) });
    chain()?.realize()?;
    let before = inputs.device.stats();
    let (mut hits, mut builds) = (Vec::new(), Vec::new());
    for _ in 0..200 {
        let (y, build) = seconds(chain)?;
        let ((), hit) = seconds(|| y.realize())?;
        builds.push(build * 1e9 / N as f64);
        hits.push(hit * 1e9 / N as f64);
    }
    let stats = inputs.device.stats().since(&before);
    let report = Report::new("host time per node on a plan hit", "ns", hits);
    let report = report.with("build_ns_per_op", Report::new("", "", builds).median());
    Ok(report.with("plan_misses", stats.plan_misses as f64).with("compiles", stats.compiles as f64))
}

/// A training step too small for its arithmetic to matter: microseconds of the whole, and of its
/// parts for each tensor it builds.
fn host_per_step(inputs: &mut Inputs) -> Result<Report> {
    let w1 = inputs.uniform("w1", &[8, 4], 4)?;
    let b1 = inputs.uniform("b1", &[8], 4)?;
    let w2 = inputs.uniform("w2", &[3, 8], 8)?;
    let b2 = inputs.uniform("b2", &[3], 8)?;
    let params = [w1, b1, w2, b2];
    let x = inputs.normal("x", &[4, 4])?;
    let target = Tensor::from_slice(&[0i64, 1, 2, 0], [4], &inputs.device)?;
    let build = || -> Result<Vec<Tensor>> {
        let [w1, b1, w2, b2] = params.each_ref().map(Param::tensor);
        let h = x.matmul(&w1.t())?.add(&b1)?.relu();
        let loss = h.matmul(&w2.t())?.add(&b2)?.cross_entropy(&target)?;
        let own = [w1, b1, w2, b2];
        let mut results = vec![loss.clone()];
        for (p, g) in own.iter().zip(loss.grad(&own.each_ref())?) {
            let Some(g) = g else { continue };
            results.push(p.detach().sub(g.mul(0.01)?)?);
        }
        Ok(results)
    };
    let (mut steps, mut builds) = (Vec::new(), Vec::new());
    let before = inputs.device.stats();
    for _ in 0..2000 {
        let (results, build) = seconds(build)?;
        let ((), run) = seconds(|| Tensor::realize_all(&results))?;
        builds.push(build * 1e6);
        steps.push((build + run) * 1e6);
    }
    let stats = inputs.device.stats().since(&before);
    let report = Report::new("host time of a tiny training step", "us", steps);
    let report = report.with("build_us", Report::new("", "", builds).median());
    Ok(report.with("launches_per_step", stats.launches as f64 / 2000.0))
}

/// A two-layer classifier and its gradients at batch sizes not seen before: milliseconds of the
/// first call, planning and compilation included.
fn batch_change(inputs: &mut Inputs) -> Result<Report> {
    let w1 = inputs.uniform("w1", &[128, 784], 784)?;
    let b1 = inputs.uniform("b1", &[128], 784)?;
    let w2 = inputs.uniform("w2", &[10, 128], 128)?;
    let params = [w1, b1, w2];
    let step = |x: &Tensor| -> Result<()> {
        let [w1, b1, w2] = params.each_ref().map(Param::tensor);
        let loss = x.matmul(&w1.t())?.add(&b1)?.relu().matmul(&w2.t())?;
        let target = Tensor::zeros([x.shape()[0]], DType::I64, x.device());
        let loss = loss.cross_entropy(&target)?;
        let gradients = loss.grad(&[&w1, &b1, &w2])?;
        Tensor::realize_all(gradients.iter().flatten().chain([&loss]))?;
        loss.device().synchronize()
    };
    step(&inputs.normal("x", &[64, 784])?)?;
    let (mut new, mut again) = (Vec::new(), Vec::new());
    let before = inputs.device.stats();
    for batch in 33..53 {
        let x = inputs.normal("x", &[batch, 784])?;
        new.push(seconds(|| step(&x))?.1 * 1e3);
        again.push(seconds(|| step(&x))?.1 * 1e3);
    }
    let stats = inputs.device.stats().since(&before);
    let report = Report::new("first call at a new batch size", "ms", new);
    let report = report.with("known_ms", Report::new("", "", again).median());
    let report = report.with("compiles_per_batch", stats.compiles as f64 / 20.0);
    Ok(report.with("searches", stats.searches as f64))
}
