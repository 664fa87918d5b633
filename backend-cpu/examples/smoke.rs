//! A quick look at speed: elementwise, reductions, matmul.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example for developers")]
use zyx_backend_cpu::Cpu;
use zyx_core::{DType, Runtime, Tensor};

fn time(name: &str, bytes: f64, flops: f64, f: impl Fn() -> Tensor) {
    f().realize().unwrap();
    let only = std::env::args().nth(1);
    if only.is_some_and(|only| !name.contains(&only)) {
        return;
    }
    let mut best = f64::MAX;
    for _ in 0..20 {
        let t = cpu_seconds();
        f().realize().unwrap();
        best = best.min(cpu_seconds() - t);
    }
    println!(
        "{name:24} {:9.3} ms {:8.1} GB/s {:8.1} GFLOP/s",
        best * 1e3,
        bytes / best / 1e9,
        flops / best / 1e9
    );
}

/// Processor time of this process: meaningful beside other load, with one thread.
#[cfg(unix)]
fn cpu_seconds() -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a valid timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut t) };
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

/// Time since the first call: other load counts.
#[cfg(not(unix))]
fn cpu_seconds() -> f64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_secs_f64()
}

fn main() {
    let runtime = Runtime::default();
    let config = zyx_backend_cpu::Config::from_env().expect("limits that can be read");
    runtime.register(Cpu { config });
    let d = runtime.device("cpu").unwrap();
    println!("{:?}", d.info());
    let r = |dims: &[usize]| {
        let n: usize = dims.iter().product();
        let v: Vec<f32> = (0..n).map(|i| ((i * 7919 + 13) % 1000) as f32 / 500.0 - 1.0).collect();
        Tensor::from_slice(&v, dims, &d).unwrap()
    };
    let n = 16 << 20;
    let (a, b, c) = (r(&[n]), r(&[n]), r(&[n]));
    let mb = n as f64 * 4.0;
    time("chain", 4.0 * mb, 0.0, || (&a + &b) * 5.0 - &c);
    time("gelu", 2.0 * mb, 0.0, || a.gelu());
    time("sum", mb, 0.0, || a.sum(..).unwrap());
    let m = a.reshape([4096, 4096]).unwrap();
    time("sum_rows", mb, 0.0, || m.sum(1).unwrap());
    time("sum_cols", mb, 0.0, || m.sum(0).unwrap());
    time("argmax_rows", mb, 0.0, || m.argmax(1).unwrap());
    let s = r(&[4096, 1024]);
    let sb = 2.0 * 4096.0 * 1024.0 * 4.0;
    time("softmax", sb, 0.0, || {
        let e = (&s - s.max_keepdim(1).unwrap()).exp();
        &e / e.sum_keepdim(1).unwrap()
    });
    time("layernorm", sb, 0.0, || {
        let x = &s - s.mean_keepdim(1).unwrap();
        &x / (x.square().mean_keepdim(1).unwrap() + 1e-5).sqrt()
    });
    time("transpose", 2.0 * mb, 0.0, || m.t().contiguous());
    time("cumsum", 2.0 * mb, 0.0, || a.cumsum(0).unwrap());
    for k in [256usize, 1024, 2048] {
        let (x, y) = (r(&[k, k]), r(&[k, k]));
        time(&format!("matmul {k}"), 0.0, 2.0 * (k as f64).powi(3), || x.matmul(&y).unwrap());
        time(&format!("matmul+bias+relu {k}"), 0.0, 2.0 * (k as f64).powi(3), || {
            (x.matmul(&y).unwrap() + &y).relu()
        });
    }
    let (w, x) = (r(&[4096, 4096]), r(&[4096]));
    time("gemv", mb, 0.0, || w.matmul(&x).unwrap());
    println!("{:?}", d.stats());
    let _ = DType::F32;
}
