//! Kernels written by hand beside the methods of tensors: `cargo run --release --example kernels`.
//!
//! Each line has the time of a call of the kernel, and of the operations that do the same. With `-- --tune` there is a second table, after a
//! search of the kernels' parameters and of what the operations are compiled to.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use examples::kernels::{
    attention, bfs, cumsum, heat, mish, norm, product, scan, segments, softmax,
};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use zyx::DType::{self, BF16, F32};
use zyx::{Attention, Device, Result, Tensor};

/// Best time of some calls, in microseconds.
fn time(device: &Device, f: &dyn Fn() -> Result<Tensor>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..12 {
        let start = Instant::now();
        f()?.realize()?;
        device.synchronize()?;
        best = best.min(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(best)
}

fn compare(
    device: &Device,
    name: &str,
    kernel: &dyn Fn() -> Result<Tensor>,
    method: &dyn Fn() -> Result<Tensor>,
) -> Result<()> {
    let first = |f: &dyn Fn() -> Result<Tensor>| -> Result<f64> {
        let start = Instant::now();
        f()?.realize()?;
        device.synchronize()?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    };
    let [of_kernel, of_method] = [first(kernel)?, first(method)?];
    let [own, method] = [time(device, kernel)?, time(device, method)?];
    println!(
        "{name:28} {own:10.1} us {method:10.1} us {:6.2}  first call {of_kernel:.1} and {of_method:.1} ms",
        method / own
    );
    Ok(())
}

/// Distances from node 0, on the host.
fn distances(starts: &[i32], targets: &[i32], device: &Device) -> Result<Tensor> {
    let mut distances = vec![bfs::FAR; starts.len() - 1];
    let mut queue = VecDeque::from([0]);
    distances[0] = 0;
    while let Some(node) = queue.pop_front() {
        for &target in &targets[starts[node] as usize..starts[node + 1] as usize] {
            if distances[target as usize] == bfs::FAR {
                distances[target as usize] = distances[node] + 1;
                queue.push_back(target as usize);
            }
        }
    }
    Tensor::from_slice(&distances, [distances.len()], device)
}

/// Breadth-first search in a graph of random edges, eight a node, beside one on the host.
fn search(device: &Device, nodes: usize) -> Result<()> {
    let degree = 8;
    let starts: Vec<i32> = (0..=nodes).map(|i| (i * degree) as i32).collect();
    // A linear congruential generator (Knuth's MMIX).
    let mut seed = 1u64;
    let targets = (0..nodes * degree).map(|_| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((seed >> 33) % nodes as u64) as i32
    });
    let targets: Vec<i32> = targets.collect();
    let on_host = || distances(&starts, &targets, device);
    let edges = Tensor::from_slice(&targets, [targets.len()], device)?;
    let first = Tensor::from_slice(&starts, [nodes + 1], device)?;
    compare(device, "bfs, beside the host", &|| bfs::bfs(&first, &edges, 0), &on_host)
}

fn main() -> Result<()> {
    let device = zyx::device()?;
    measure(&device)?;
    if std::env::args().any(|argument| argument == "--tune") {
        for found in device.tune(Duration::from_secs(60))? {
            println!("{} {:?} {:?}", found.name, found.before, found.after);
        }
        measure(&device)?;
    }
    Ok(())
}

fn measure(device: &Device) -> Result<()> {
    let large = !device.caps().has_few_threads();
    let side = if large { 4096 } else { 512 };
    let numbers = |shape: &[usize], dtype: DType| -> Result<Tensor> {
        let n: usize = shape.iter().product();
        let x = Tensor::arange(0f32, n as f32, 1.0, device)?.mul(0.37)?.sin().reshape(shape)?;
        let x = x.cast(dtype);
        x.realize()?;
        Ok(x)
    };
    println!("{device}: {:14} {:>13} {:>13} {:>6}", "kernel", "kernel", "method", "ratio");
    let x = numbers(&[side, side], F32)?;
    let d = device;
    let (softmax, cumsum) = (softmax::softmax(), cumsum::cumsum());
    compare(d, "softmax", &|| softmax.call(&[&x]), &|| x.softmax(1))?;
    // The cost of a call.
    let few = numbers(&[4, 16], F32)?;
    compare(d, "softmax of 4 x 16", &|| softmax.call(&[&few]), &|| few.softmax(1))?;
    compare(d, "cumsum", &|| cumsum.call(&[&x]), &|| x.cumsum(1))?;
    let (row, scan) = (numbers(&[if large { 1 << 27 } else { 1 << 20 }], F32)?, scan::scan());
    compare(d, "scan of one row", &|| scan.call(&[&row]), &|| row.cumsum(0))?;
    search(d, if large { 1 << 20 } else { 1 << 14 })?;
    let (mish, heat) = (mish::mish(), heat::heat(0.2));
    compare(d, "mish", &|| mish.call(&[&x]), &|| Ok(x.mish()))?;
    compare(d, "heat, beside a copy", &|| heat.call(&[&x]), &|| x.add(1.0))?;
    let weight = numbers(&[side], F32)?;
    let norm = norm::rms_norm(1e-5);
    compare(d, "rms_norm", &|| norm.call(&[&x, &weight]), &|| x.rms_norm(1, Some(&weight), 1e-5))?;
    let starts = Tensor::arange(0i32, (side * side + 1) as i32, 256, d)?;
    starts.realize()?;
    let (flat, sum) = (x.reshape([side * side])?, segments::segment_sum());
    let parts = x.reshape([side * side / 256, 256])?;
    compare(d, "segment_sum", &|| sum.call(&[&flat, &starts]), &|| parts.sum([1]))?;
    let product = product::product();
    for dtype in [F32, BF16] {
        let (x, w) = (numbers(&[side, side], dtype)?, numbers(&[side, side], dtype)?);
        let name = format!("product {dtype}");
        compare(d, &name, &|| product.call(&[&x, &w]), &|| x.matmul(&w))?;
    }
    let (heads, n) = if large { (24, 4096) } else { (2, 256) };
    let qkv = numbers(&[1, heads, n, 64], BF16)?;
    let flat = qkv.reshape([heads, n, 64])?;
    let attention = attention::attention(64, true);
    let method = || {
        let options = Attention { causal: true, ..Attention::default() };
        qkv.scaled_dot_product_attention(&qkv, &qkv, options)
    };
    compare(d, "attention bf16", &|| attention.call(&[&flat, &flat, &flat]), &method)
}
