//! How fast kernels compile and run, printed for reading: `cargo test --release -p backend-cpu speed
//! -- --ignored --nocapture`. `ZYX_SHOW=1` prints the code too.

use super::kernels::{chain, gelu, matmul, reduce, softmax};
use super::{Random, disassemble, execute, isas, memory, tuned};
use crate::jit::target::Target;
use crate::jit::{Isa, compile, compile_for};
use std::time::Instant;
use zyx_core::ir::Kernel;
use zyx_core::{BinaryOp, DType};
use zyx_gemm::memory::Block;

/// Least nanoseconds of a call: other work on the machine only ever adds.
fn time(mut f: impl FnMut()) -> f64 {
    f();
    let start = Instant::now();
    f();
    let once = start.elapsed().as_secs_f64().max(1e-8);
    let n = (3e-4 / once).ceil() as usize;
    let mut runs: Vec<f64> = (0..40)
        .map(|_| {
            let start = Instant::now();
            (0..n).for_each(|_| f());
            start.elapsed().as_secs_f64() * 1e9 / n as f64
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    runs[0]
}

/// What the machine can copy, for comparison.
fn measure_copy(n: usize) {
    let (a, b) = (Block::new(n * 4).unwrap(), Block::new(n * 4).unwrap());
    // SAFETY: both blocks have that many bytes.
    unsafe { a.as_ptr().write_bytes(1, n * 4) };
    let ns = time(|| {
        // SAFETY: both blocks have that many bytes and do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(a.as_ptr(), b.as_ptr(), n * 4) };
    });
    println!("copy {n}: {:.1} GB/s", 8.0 * n as f64 / ns);
}

fn measure(name: &str, kernel: &Kernel, isa: Isa, work: f64, unit: &str) {
    let kernel = tuned(kernel, isa);
    if std::env::var_os("ZYX_SHOW").is_some() {
        println!("{kernel}\n{}", disassemble(&kernel, isa));
    }
    let compiled = compile(&kernel, isa, memory()).unwrap();
    let mut random = Random(1);
    let blocks: Vec<Block> = kernel
        .params()
        .iter()
        .map(|it| {
            let block = Block::new(it.len as usize * 4).unwrap();
            for i in 0..it.len as usize {
                let x = (random.next() % 2000) as f32 / 1000.0 - 1.0;
                // SAFETY: the block has that many floats.
                unsafe { block.as_ptr().cast::<f32>().add(i).write(x) };
            }
            block
        })
        .collect();
    let args: Vec<u64> = blocks.iter().map(|it| it.as_ptr() as u64).collect();
    let ns = time(|| execute(&compiled, &args, 1));
    let compile_ns = time(|| {
        compile(&kernel, isa, memory()).unwrap();
    });
    println!(
        "{name:20} {isa:?}: {ns:10.0} ns, {:7.1} {unit}; {} ops, {:6.1} us to compile",
        work / ns,
        kernel.ops().len(),
        compile_ns / 1e3,
    );
}

#[test]
#[ignore = "measures"]
fn speed() {
    for isa in isas() {
        let n = 1 << 12;
        let bytes = n as f64 * 4.0;
        measure("chain 4k", &chain(n), isa, 4.0 * bytes, "GB/s");
        measure("gelu 4k", &gelu(n), isa, n as f64, "G/s");
        let row = reduce(DType::F32, BinaryOp::Add, 16, 4096, false);
        measure("row sum 16x4k", &row, isa, 16.0 * bytes, "GB/s");
        let row = reduce(DType::F32, BinaryOp::Max, 16, 4096, false);
        measure("row max 16x4k", &row, isa, 16.0 * bytes, "GB/s");
        let column = reduce(DType::F32, BinaryOp::Add, 4096, 16, true);
        measure("column sum 16x4k", &column, isa, 16.0 * bytes, "GB/s");
        measure("softmax 16x1k", &softmax(16, 1024), isa, 16.0 * 1024.0, "G/s");
        measure("matmul 64", &matmul(64, 64, 64), isa, 2.0 * 64f64.powi(3), "GF/s");
        measure("gemv 512", &matmul(1, 512, 512), isa, 2.0 * 512f64.powi(2), "GF/s");
        measure("dot 512", &matmul(512, 1, 512), isa, 2.0 * 512f64.powi(2), "GF/s");
        let n = 1 << 24;
        measure_copy(n as usize);
        measure("chain 16M", &chain(n), isa, 16.0 * n as f64, "GB/s");
        measure("gelu 16M", &gelu(n), isa, 8.0 * n as f64, "GB/s");
    }
}

/// The code for 64-bit Arm, which every machine can make.
#[test]
#[ignore = "prints"]
fn code_for_arm() {
    let isa = Isa::Neon { halves: true };
    let reduce = |op, rows, cols, by| reduce(DType::F32, op, rows, cols, by);
    for (name, kernel) in [
        ("chain", chain(4096)),
        ("gelu", gelu(4096)),
        ("row sum", reduce(BinaryOp::Add, 16, 4096, false)),
        ("row max", reduce(BinaryOp::Max, 16, 4096, false)),
        ("column sum", reduce(BinaryOp::Add, 4096, 16, true)),
        ("softmax", softmax(16, 1024)),
        ("product", matmul(64, 64, 64)),
    ] {
        let kernel = tuned(&kernel, isa);
        println!("{name}\n{kernel}\n{}", disassemble(&kernel, isa));
    }
}

#[test]
#[ignore = "measures"]
fn streaming_stores() {
    let isa = isas()[0];
    for (name, kernel) in [("chain", chain(1 << 24)), ("gelu", gelu(1 << 24))] {
        let kernel = tuned(&kernel, isa);
        let blocks: Vec<Block> =
            kernel.params().iter().map(|it| Block::zeroed(it.len as usize * 4).unwrap()).collect();
        let args: Vec<u64> = blocks.iter().map(|it| it.as_ptr() as u64).collect();
        let variants = [0, u64::MAX].map(|stream_from| {
            compile_for(&kernel, Target { isa, stream_from }, memory()).unwrap()
        });
        // Interleaved, since the machine's bandwidth changes from second to second.
        let mut runs = [Vec::new(), Vec::new()];
        for _ in 0..30 {
            for (variant, runs) in variants.iter().zip(&mut runs) {
                let start = Instant::now();
                execute(variant, &args, 1);
                runs.push(start.elapsed().as_secs_f64() * 1e3);
            }
        }
        let [streamed, cached] = runs.map(|mut runs| {
            runs.sort_by(f64::total_cmp);
            (runs[0], runs[runs.len() / 2])
        });
        println!("{name}: least and median ms, streamed {streamed:.1?}, cached {cached:.1?}");
    }
}
