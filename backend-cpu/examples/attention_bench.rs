//! Attention on this machine: `attention_bench batch heads queries width causal stored backward`.
//!
//! Prints milliseconds a call, the rate of its multiplications, and its launches; each of the last
//! three arguments is 0 or 1. With `stored` the weights are stored, as before there were streams.
//! With `backward` the gradients are computed, too.

#![allow(clippy::print_stdout, reason = "it is what an example is for")]

use std::time::Instant;
use zyx_backend_cpu::{Config, Cpu};
use zyx_core::{Attention, DType, Rng, Runtime, Tensor};

fn main() -> zyx_core::Result<()> {
    let args: Vec<usize> = std::env::args().skip(1).filter_map(|x| x.parse().ok()).collect();
    let [b, h, t, d, causal, stored, backward] = args[..] else {
        println!("seven numbers, please");
        return Ok(());
    };
    let runtime = Runtime::default();
    let recompute = (stored == 0).then_some(0);
    runtime.register(Cpu {
        config: Config { recompute, ..Config::from_env().expect("limits that can be read") },
    });
    let device = runtime.device("cpu")?;
    let mut rng = Rng::seed(7);
    let mut make = || Tensor::randn([b, h, t, d], DType::F32, &mut rng, &device);
    let (q, k, v) = (make()?.tracked(), make()?.tracked(), make()?.tracked());
    Tensor::realize_all([&q, &k, &v])?;
    let forward = || {
        if stored == 0 || backward == 1 {
            let options = Attention { causal: causal == 1, ..Default::default() };
            return q.scaled_dot_product_attention(&k, &v, options);
        }
        let mut scores = q.mul(1.0 / (d as f64).sqrt())?.matmul(&k.t())?;
        if causal == 1 {
            let column = Tensor::arange(0, t as i64, 1, &device)?;
            let seen = column.le(&column.unsqueeze(-1)?)?;
            scores = seen.where_(&scores, f64::NEG_INFINITY)?;
        }
        scores.softmax(-1)?.contiguous().matmul(&v)
    };
    let run = || -> zyx_core::Result<Vec<Tensor>> {
        let y = forward()?;
        if backward == 0 {
            return Ok(vec![y]);
        }
        let gradients = y.mul(&k)?.sum(..)?.grad(&[&q, &k, &v])?;
        Ok([vec![y], gradients.into_iter().flatten().collect()].concat())
    };
    let all = run()?;
    Tensor::realize_all(&all)?;
    let names = all[0].explain()?.launches;
    println!("{:?}", names.iter().map(|launch| &launch.name).collect::<Vec<_>>());
    let mut times = Vec::new();
    let start = Instant::now();
    while times.len() < 5 || start.elapsed().as_secs_f64() < 2.0 && times.len() < 200 {
        let start = Instant::now();
        Tensor::realize_all(&run()?)?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    let products = if backward == 1 { 14.0 } else { 4.0 };
    let work = products * (b * h * t * t * d) as f64 / (1 + causal) as f64;
    let (best, rate) = (times[0] * 1e3, work / times[0] / 1e9);
    println!("{:.3} ms, best {best:.3} ms, {rate:.0} GFLOP/s", median * 1e3);
    Ok(())
}
