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
use zyx::kernel::{BinaryOp::Add, BinaryOp::Max, BinaryOp::Min, Kernel, Lang};
use zyx::{Attention, Device, Result, ScatterReduce, Tensor};

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

/// Gives the nodes that edges lead to from those at a distance the next distance; tells whether there was one.
fn level() -> Kernel {
    Kernel::new("level", |k: &Lang| {
        let [nodes, edges] = k.sizes(["nodes", "edges"]);
        let (starts, targets) = (k.input("starts", [nodes + 1]), k.input("targets", [edges]));
        let distance = k.input("distance", [k.index(1)]);
        let distances = k.output_from("distances", &k.input("before", [nodes]));
        let reached = k.output_filled("reached", [1], DType::I32, 0);
        k.each(nodes, |node| {
            k.when(distances.at_atomic(node).eq(distance.at(0)), || {
                k.for_each(starts.at(node)..starts.at(node + 1), |edge| {
                    let (target, next) = (targets.at(edge), distance.at(0) + 1);
                    k.when(distances.fetch(Min, target, next).gt(next), || {
                        reached.atomic(Max, 0, 1);
                    });
                });
            });
        });
    })
}

/// Breadth-first search from node 0 by a launch for each distance.
fn by_level(starts: &Tensor, targets: &Tensor) -> Result<Tensor> {
    let (kernel, nodes) = (level(), starts.numel() - 1);
    let distances: Vec<i32> = (0..nodes).map(|i| if i == 0 { 0 } else { bfs::FAR }).collect();
    let mut distances = Tensor::from_slice(&distances, [nodes], starts.device())?;
    for distance in 0i32.. {
        let distance = Tensor::from_slice(&[distance], [1], starts.device())?;
        let results = kernel.call_all(&[starts, targets, &distance, &distances])?;
        distances = results[0].clone();
        if results[1].item::<i32>()? == 0 {
            break;
        }
    }
    Ok(distances)
}

/// Breadth-first search in a graph, given the nodes that edges lead to from each, beside one on the host and one by levels.
fn search(device: &Device, name: &str, edges: &[Vec<i32>]) -> Result<()> {
    let mut starts = vec![0i32];
    starts.extend(edges.iter().scan(0, |sum, edges| {
        *sum += edges.len() as i32;
        Some(*sum)
    }));
    let targets = edges.concat();
    let on_host = || distances(&starts, &targets, device);
    let edges = Tensor::from_slice(&targets, [targets.len()], device)?;
    let first = Tensor::from_slice(&starts, [starts.len()], device)?;
    let by_queue = || bfs::bfs(&first, &edges, 0);
    let expected: Vec<i32> = on_host()?.to_vec()?;
    for found in [by_queue()?, by_level(&first, &edges)?] {
        assert!(found.to_vec::<i32>()? == expected, "distances differ from those of the host");
    }
    compare(device, &format!("bfs of {name}, host"), &by_queue, &on_host)?;
    compare(device, &format!("bfs of {name}, levels"), &by_queue, &|| by_level(&first, &edges))
}

/// Breadth-first search in a graph of eight random edges a node, and in a square grid.
fn searches(device: &Device, side: usize) -> Result<()> {
    let nodes = side * side;
    // A linear congruential generator (Knuth's MMIX).
    let mut seed = 1u64;
    let mut random = |_| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((seed >> 33) % nodes as u64) as i32
    };
    let edges: Vec<Vec<i32>> = (0..nodes).map(|_| (0..8).map(&mut random).collect()).collect();
    search(device, "random edges", &edges)?;
    let neighbours = |node: usize| {
        let (row, column) = (node / side, node % side);
        let all = [
            (row > 0).then(|| node - side),
            (row + 1 < side).then(|| node + side),
            (column > 0).then(|| node - 1),
            (column + 1 < side).then(|| node + 1),
        ];
        all.into_iter().flatten().map(|node| node as i32).collect()
    };
    let edges: Vec<Vec<i32>> = (0..nodes).map(neighbours).collect();
    search(device, "a grid", &edges)
}

/// Sums of segments by groups that take the next segment when they are ready for it.
fn by_queue() -> Kernel {
    Kernel::new("segment_sum_by_queue", |k: &Lang| {
        let [n, segments] = k.sizes(["n", "segments"]);
        let x = k.input("x", [n]);
        let starts = k.input("starts", [segments + 1]);
        let y = k.output("y", [segments], x.dtype());
        let queue = k.queue("segments", segments);
        let groups = if k.caps().has_few_threads() { 8 } else { 2048 };
        k.groups([groups], 64, |g, [group]| {
            let part = segments.div_ceil(groups);
            g.each(part, |i| {
                let segment = group * part + i;
                k.when(segment.lt(segments), || {
                    queue.push(segment);
                });
            });
            queue.drain(g, |segment| {
                let (first, end) = (starts.at(segment), starts.at(segment + 1));
                y.set(segment, g.reduce(Add, first..end, |i| x.at(i)));
            });
        });
    })
}

/// Sums of segments of very different lengths: a group for each, from a queue, and as a scatter.
fn uneven(device: &Device, segments: usize) -> Result<()> {
    // Lengths are in proportion to 1, 1/2, 1/3 and so on, in an order that mixes them.
    let order: Vec<usize> = (0..segments).map(|i| i * 7919 % segments).collect();
    let lengths = order.iter().map(|i| 16 * segments / (i + 1));
    let mut starts = vec![0i32];
    starts.extend(lengths.scan(0, |sum, n| {
        *sum += n as i32;
        Some(*sum)
    }));
    let n = starts[segments] as usize;
    let places: Vec<i32> = starts
        .windows(2)
        .enumerate()
        .flat_map(|(i, x)| vec![i as i32; (x[1] - x[0]) as usize])
        .collect();
    let places = Tensor::from_slice(&places, [n], device)?;
    let starts = Tensor::from_slice(&starts, [segments + 1], device)?;
    let x = (Tensor::arange(0f32, n as f32, 1.0, device)? * 0.37).sin().contiguous();
    let zeros = Tensor::zeros([segments], F32, device);
    Tensor::realize_all([&x, &zeros, &places, &starts])?;
    let (by_group, by_queue) = (segments::segment_sum(), by_queue());
    let by_scatter = || zeros.scatter_reduce(0, &places, &x, ScatterReduce::Sum, true);
    let by_group = || by_group.call(&[&x, &starts]);
    let by_queue = || by_queue.call(&[&x, &starts]);
    compare(device, "uneven segments, scatter", &by_group, &by_scatter)?;
    compare(device, "uneven segments, queue", &by_group, &by_queue)
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
    searches(d, if large { 1 << 10 } else { 1 << 7 })?;
    uneven(d, if large { 1 << 16 } else { 1 << 12 })?;
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
