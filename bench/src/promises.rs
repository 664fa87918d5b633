//! Promises in numbers that `scripts/check-bounds.sh` holds: contractions, recomputation, huge graphs.

use crate::Workload;
use crate::inputs::Inputs;
use crate::measure::{Report, seconds};
use std::hint::black_box;
use zyx::kernel::{Kernel, Lang};
use zyx::{DType, Param, Result, Tensor};

pub(crate) fn workloads() -> Vec<(&'static str, Workload)> {
    vec![
        ("einsum_plan", einsum_plan),
        ("einsum_order", einsum_order),
        ("matmul_layouts", matmul_layouts),
        ("segmented_mlp", segmented_mlp),
        ("schedule_1m", schedule_1m),
        ("user_kernel", user_kernel),
    ]
}

/// The least of some times.
fn least(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Times calls in turn, so that other work on the machine meets all of them: the least seconds of each.
fn in_turn(rounds: usize, calls: &[&dyn Fn() -> Result<Tensor>]) -> Result<Vec<f64>> {
    let mut times = vec![Vec::new(); calls.len()];
    for round in 0..rounds + 3 {
        for (call, times) in calls.iter().zip(&mut times) {
            let run = || call().and_then(|y| y.realize().map(|()| y));
            let (y, time) = seconds(|| run().and_then(|y| y.device().synchronize().map(|()| y)))?;
            drop(y);
            // The first calls compile and warm up.
            if round >= 3 {
                times.push(time);
            }
        }
    }
    Ok(times.iter().map(|times| least(times)).collect())
}

/// [`in_turn`], again while a ratio of the times is above what it is promised to be: other work on the
/// machine only ever adds, and not for ever.
fn settled(
    rounds: usize,
    calls: &[&dyn Fn() -> Result<Tensor>],
    ratio: impl Fn(&[f64]) -> f64,
) -> Result<(Vec<f64>, f64)> {
    let mut times = in_turn(rounds, calls)?;
    for _ in 0..15 {
        if ratio(&times) <= 1.1 {
            break;
        }
        let further = in_turn(rounds, calls)?;
        times.iter_mut().zip(further).for_each(|(time, other)| *time = time.min(other));
    }
    let ratio = ratio(&times);
    Ok((times, ratio))
}

/// A kernel of the program: its first call, with the record and the compilation, and how much longer further calls take than those of
/// an operation.
fn user_kernel(inputs: &mut Inputs) -> Result<Report> {
    // Calls are timed in runs, since one takes about as long as a reading of the clock varies.
    const CALLS: usize = 100;
    let (x, y) = (inputs.normal("in0", &[1024])?, inputs.normal("in1", &[1024])?);
    // Starts the threads of the device.
    x.sub(&y)?.realize()?;
    let (mut first, mut times) = (f64::INFINITY, Vec::new());
    for round in 0..20 {
        let kernel = Kernel::new("weighted", move |k: &Lang| {
            let n = k.size("n");
            let (x, y) = (k.input("x", [n]), k.input("y", [n]));
            let sum = k.output("sum", [n], x.dtype());
            // The factor makes another program in each round.
            k.each(n, |i| sum.set(i, x.at(i) * f64::from(round) + y.at(i)));
        });
        let call = || kernel.call(&[&x, &y]);
        first = first.min(seconds(|| call()?.realize())?.1);
        let run = |call: &dyn Fn() -> Result<Tensor>| {
            (1..CALLS).try_fold(call()?, |z, _| z.realize().and_then(|()| call()))
        };
        let calls = in_turn(20, &[&|| run(&call), &|| run(&|| x.add(&y))])?;
        times.push((calls[0] - calls[1]) * 1e6 / CALLS as f64);
    }
    let report = Report::new("time of a kernel's call above that of an operation", "us", times);
    Ok(report.with("first_ms", first * 1e3))
}

/// The contraction order of three operands whose subscripts and shapes were seen before.
fn einsum_plan(inputs: &mut Inputs) -> Result<Report> {
    const CALLS: usize = 10_000;
    let of = |dims: [usize; 2]| Tensor::zeros(dims, DType::F32, &inputs.device);
    let [a, b, c] = [[64, 512], [512, 512], [512, 8]].map(of);
    let mut times = Vec::new();
    for _ in 0..50 {
        let run = || {
            (0..CALLS).try_for_each(|_| {
                black_box(Tensor::einsum_path("ij,jk,kl->il", &[&a, &b, &c])?);
                Ok(())
            })
        };
        times.push(seconds(run)?.1 * 1e9 / CALLS as f64);
    }
    Ok(Report::new("time to find a plan of einsum that is known", "ns", times))
}

/// Three factors of very different sizes beside both orders of products written by hand.
fn einsum_order(inputs: &mut Inputs) -> Result<Report> {
    let a = inputs.normal("a", &[64, 512])?;
    let b = inputs.normal("b", &[512, 512])?;
    let c = inputs.normal("c", &[512, 8])?;
    let orders: [&dyn Fn() -> Result<Tensor>; 3] =
        [&|| Tensor::einsum("ij,jk,kl->il", &[&a, &b, &c]), &|| a.matmul(&b.matmul(&c)?), &|| {
            a.matmul(&b)?.matmul(&c)
        }];
    let (times, ratio) = settled(300, &orders, |times| times[0] / times[1].min(times[2]))?;
    let report = Report::new("time of a product of three", "us", vec![times[0] * 1e6]);
    let report = report.with("ratio", ratio);
    Ok(report.with("right_us", times[1] * 1e6).with("left_us", times[2] * 1e6))
}

/// A product whose operands lie by rows or by columns: the slowest of the four beside the fastest.
fn matmul_layouts(inputs: &mut Inputs) -> Result<Report> {
    const N: usize = 1024;
    let [a, b] = [inputs.normal("a", &[N, N])?, inputs.normal("b", &[N, N])?];
    let layouts: [&dyn Fn() -> Result<Tensor>; 4] =
        [&|| a.matmul(&b), &|| a.matmul(&b.t()), &|| a.t().matmul(&b), &|| a.t().matmul(&b.t())];
    let (times, ratio) =
        settled(250, &layouts, |times| times.iter().copied().fold(0.0, f64::max) / least(times))?;
    let (mut launches, mut temps) = (0, 0);
    for layout in layouts {
        let before = inputs.device.stats();
        layout()?.realize()?;
        let stats = inputs.device.stats().since(&before);
        (launches, temps) = (stats.launches.max(launches), stats.temps.max(temps));
    }
    let report = Report::new("time of a product by layout", "ms", vec![least(&times) * 1e3]);
    let report = report.with("ratio", ratio);
    let report = report.with("launches", launches as f64).with("temps", temps as f64);
    let each = ["nn_ms", "nt_ms", "tn_ms", "tt_ms"];
    Ok(each.iter().zip(&times).fold(report, |report, (name, time)| report.with(name, time * 1e3)))
}

/// A step of a deep network with all activations kept and with segments computed again: memory of one
/// beside the other, and elements of gradients that differ.
fn segmented_mlp(inputs: &mut Inputs) -> Result<Report> {
    const LAYERS: usize = 24;
    const SEGMENT: usize = 4;
    const WIDTH: usize = 256;
    const BATCH: usize = 4096;
    let x = inputs.normal("x", &[BATCH, WIDTH])?;
    let weights: Vec<Param> = (0..LAYERS)
        .map(|i| inputs.uniform(&format!("w{i}"), &[WIDTH, WIDTH], WIDTH / 4))
        .collect::<Result<_>>()?;
    let weights: Vec<Tensor> = weights.iter().map(Param::tensor).collect();
    let layers =
        |x: &[Tensor]| x[1..].iter().try_fold(x[0].clone(), |h, w| Ok(h.matmul(w)?.tanh()));
    let device = &inputs.device;
    let step = |segmented: bool| -> Result<(Vec<Tensor>, f64)> {
        let before = device.stats().live_bytes;
        device.reset_peak();
        let mut h = x.clone();
        for weights in weights.chunks(if segmented { SEGMENT } else { LAYERS }) {
            let all: Vec<&Tensor> = [&h].into_iter().chain(weights).collect();
            h = match segmented {
                true => Tensor::checkpoint(layers, &all)?,
                false => layers(&all.into_iter().cloned().collect::<Vec<_>>())?,
            };
        }
        let loss = h.square().sum(..)?;
        let gradients = loss.grad(&weights.iter().collect::<Vec<_>>())?;
        let gradients: Vec<Tensor> = gradients.into_iter().flatten().collect();
        Tensor::realize_all(&gradients)?;
        device.synchronize()?;
        Ok((gradients, (device.stats().peak_bytes - before) as f64))
    };
    let ((plain, all), (segmented, few)) = (step(false)?, step(true)?);
    let mut different = 0;
    for (a, b) in plain.iter().zip(&segmented) {
        let (a, b) = (a.to_bytes()?, b.to_bytes()?);
        different += a.chunks(4).zip(b.chunks(4)).filter(|(a, b)| a != b).count();
    }
    if plain.len() != LAYERS || segmented.len() != LAYERS {
        different += LAYERS * WIDTH * WIDTH;
    }
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..20 {
        times[round % 2].push(seconds(|| step(round % 2 == 1))?.1);
    }
    let time = [least(&times[0]), least(&times[1])];
    let report = Report::new("peak memory of a segmented step", "MiB", vec![few / 1_048_576.0]);
    let report = report.with("ratio", few / all).with("different", different as f64);
    Ok(report.with("plain_mib", all / 1_048_576.0).with("time_ratio", time[1] / time[0]))
}

/// A million ops in a row, of which every hundredth is stored: seconds to capture, plan and run them;
/// seconds to build and do so again, as no plan of so many ops is kept; microseconds to build and compute one op
/// more from the result.
fn schedule_1m(inputs: &mut Inputs) -> Result<Report> {
    const N: usize = 1_000_000;
    let x = Tensor::from_slice(&[1f32, 2.0], [2], &inputs.device)?;
    let chain = |n: usize| {
        (0..n).try_fold(x.clone(), |y, i| match i % 100 {
            99 => Ok(y.contiguous()),
            i if i % 2 == 0 => Ok(y.neg()),
            _ => y.add(&x),
        })
    };
    let (mut first, mut more) = (Vec::new(), Vec::new());
    let before = inputs.device.stats();
    for round in 0..8 {
        // Of a length that was not seen before. Other work on the machine does not last for ever.
        let y = chain(N + round)?;
        first.push(seconds(|| y.realize())?.1);
        for _ in 0..20 {
            let (next, build) = seconds(|| Ok(y.neg()))?;
            more.push((build + seconds(|| next.realize())?.1) * 1e6);
        }
        if round >= 2 && least(&first) <= 2.0 {
            break;
        }
    }
    let launches = inputs.device.stats().since(&before).launches as f64 / first.len() as f64;
    let ((), again) = seconds(|| chain(N)?.realize())?;
    let report = Report::new("time to capture and schedule a million ops", "s", first);
    let report = report.with("again_s", again).with("one_more_us", least(&more));
    Ok(report.with("launches", launches))
}
