//! Speed of the contraction library over the shapes of networks, next to the machine's own peak.
//!
//! `cargo run --release -p zyx-gemm --example contract_bench [filter] [epilogue] [threads...]`
//!
//! `epilogue` leaves finished blocks to an epilogue that does nothing; `PLAN=1` prints how each is
//! cut; `COLD=n` takes turns with n sets of operands, so that they are not in the caches;
//! `EXTENSIONS=vectors` and `none` leave out matrix registers, and all extensions.
//!
//! For each shape and number of threads: median and best time of a call, GFLOP/s at the median,
//! and that as a share of the multiply-add peak measured right before and after on as many threads
//! (of `f32`, for products of bytes).
#![allow(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::time::Instant;
use zyx_gemm::memory::Block;
use zyx_gemm::pool::Pool;
use zyx_gemm::{Acc, DType, Dim, Epilogue, Extensions, Isa, Options, Plan, Spec, Tile};

/// A product with operands of any orientation: `ta` means A is stored with k before m.
fn product(dtype: DType, [m, n, k]: [usize; 3], ta: bool, tb: bool) -> Spec {
    let mut spec = Spec::matmul(dtype, m, n, k);
    if ta {
        (spec.m[0].a, spec.k[0].a) = (1, m as isize);
    }
    if tb {
        (spec.n[0].b, spec.k[0].b) = (k as isize, 1);
    }
    spec
}

fn batched(batch: usize, [m, n, k]: [usize; 3], ta: bool, tb: bool) -> Spec {
    let [a, b, c] = [m * k, k * n, m * n].map(|x| x as isize);
    let batch = vec![Dim::batch(batch, a, b, c)];
    Spec { batch, ..product(DType::F32, [m, n, k], ta, tb) }
}

/// A convolution layer: batch, channels in and out, height and width in and out, window.
#[derive(Clone, Copy)]
struct Conv {
    batch: isize,
    c: isize,
    o: isize,
    /// Height and width of the (already padded) input.
    h: isize,
    /// Height and width of the window.
    w: isize,
}

fn f32_spec() -> Spec {
    Spec { m: vec![], n: vec![], k: vec![], ..Spec::matmul(DType::F32, 1, 1, 1) }
}

impl Conv {
    fn out(self) -> isize {
        self.h - self.w + 1
    }

    /// y[b, o, y, x] from weights [o, c, i, j] and input [b, c, h, w].
    fn forward(self) -> Spec {
        let Conv { batch, c, o, h, w } = self;
        let out = self.out();
        Spec {
            batch: vec![Dim::batch(batch as usize, 0, c * h * h, o * out * out)],
            m: vec![Dim::m(o as usize, c * w * w, out * out)],
            n: vec![Dim::n(out as usize, h, out), Dim::n(out as usize, 1, 1)],
            k: vec![
                Dim::k(c as usize, w * w, h * h),
                Dim::k(w as usize, w, h),
                Dim::k(w as usize, 1, 1),
            ],
            ..f32_spec()
        }
    }

    /// Gradient of the input, from weights and the gradient of the output padded by w - 1.
    fn backward_data(self) -> Spec {
        let Conv { batch, c, o, h, w } = self;
        let padded = self.out() + 2 * (w - 1);
        Spec {
            batch: vec![Dim::batch(batch as usize, 0, o * padded * padded, c * h * h)],
            m: vec![Dim::m(c as usize, w * w, h * h)],
            n: vec![Dim::n(h as usize, padded, h), Dim::n(h as usize, 1, 1)],
            k: vec![
                Dim::k(o as usize, c * w * w, padded * padded),
                Dim::k(w as usize, w, -padded),
                Dim::k(w as usize, 1, -1),
            ],
            ..f32_spec()
        }
    }

    /// Gradient of the weights, from the gradient of the output and the input.
    fn backward_weights(self) -> Spec {
        let Conv { batch, c, o, h, w } = self;
        let out = self.out();
        Spec {
            m: vec![Dim::m(o as usize, out * out, c * w * w)],
            n: vec![
                Dim::n(c as usize, h * h, w * w),
                Dim::n(w as usize, h, w),
                Dim::n(w as usize, 1, 1),
            ],
            k: vec![
                Dim::k(batch as usize, o * out * out, c * h * h),
                Dim::k(out as usize, out, h),
                Dim::k(out as usize, 1, 1),
            ],
            ..f32_spec()
        }
    }
}

/// The layers of ResNet-50 for one image: channels in and out, window, stride, height of the output.
const RESNET50: [[isize; 5]; 19] = [
    [3, 64, 7, 2, 112],
    [64, 64, 1, 1, 56],
    [64, 64, 3, 1, 56],
    [64, 256, 1, 1, 56],
    [256, 64, 1, 1, 56],
    [256, 128, 1, 1, 56],
    [128, 128, 3, 2, 28],
    [128, 512, 1, 1, 28],
    [512, 128, 1, 1, 28],
    [128, 128, 3, 1, 28],
    [512, 256, 1, 1, 28],
    [256, 256, 3, 2, 14],
    [256, 1024, 1, 1, 14],
    [1024, 256, 1, 1, 14],
    [256, 256, 3, 1, 14],
    [1024, 512, 1, 1, 14],
    [512, 512, 3, 2, 7],
    [512, 2048, 1, 1, 7],
    [512, 512, 3, 1, 7],
];

/// A layer of it, on an image with a border.
fn resnet50([c, o, w, stride, out]: [isize; 5]) -> Spec {
    let h = (out - 1) * stride + w;
    let n = out as usize;
    Spec {
        m: vec![Dim::m(o as usize, c * w * w, out * out)],
        n: vec![Dim::n(n, stride * h, out), Dim::n(n, stride, 1)],
        k: vec![
            Dim::k(c as usize, w * w, h * h),
            Dim::k(w as usize, w, h),
            Dim::k(w as usize, 1, 1),
        ],
        ..f32_spec()
    }
}

/// The same contraction of signed weights and unsigned numbers, or of other bytes.
fn of_bytes(spec: Spec, a: DType, b: DType) -> Spec {
    Spec { a, b, acc: Acc::I32, c: DType::I32, ..spec }
}

fn cases() -> Vec<(String, Spec)> {
    let mut all = Vec::new();
    let mut add = |name: String, spec: Spec| all.push((name, spec));
    for n in [16, 32, 64, 100, 128, 256, 384, 512, 1000, 1024, 2048] {
        add(format!("square {n}"), product(DType::F32, [n; 3], false, false));
    }
    for (name, ta, tb) in
        [("nn", false, false), ("nt", false, true), ("tn", true, false), ("tt", true, true)]
    {
        add(format!("layout {name} 1024"), product(DType::F32, [1024; 3], ta, tb));
    }
    add("bmm 16x256".into(), batched(16, [256; 3], false, false));
    add("attention qk 32x[256x256x32] nt".into(), batched(32, [256, 256, 32], false, true));
    add("attention av 32x[256x32x256]".into(), batched(32, [256, 32, 256], false, false));
    for [m, k, n] in [[1024, 256, 768], [1024, 256, 1024], [1024, 1024, 256]] {
        add(format!("gpt nn {m}x{k}x{n}"), product(DType::F32, [m, n, k], false, false));
        // dA = dC B^T, dB = A^T dC.
        add(format!("gpt nt {m}x{n}x{k}"), product(DType::F32, [m, k, n], false, true));
        add(format!("gpt tn {k}x{m}x{n}"), product(DType::F32, [k, n, m], true, false));
    }
    add("mlp nn 128x784x128".into(), product(DType::F32, [128, 128, 784], false, false));
    add("mlp nt 128x784x128".into(), product(DType::F32, [128, 128, 784], false, true));
    add("mlp nt 128x128x784".into(), product(DType::F32, [128, 784, 128], false, true));
    add("mlp tn 784x128x128".into(), product(DType::F32, [784, 128, 128], true, false));
    add("mlp nn 128x128x10".into(), product(DType::F32, [128, 10, 128], false, false));
    add("mlp tn 128x128x10".into(), product(DType::F32, [128, 10, 128], true, false));
    let resnet = Conv { batch: 16, c: 64, o: 64, h: 58, w: 3 };
    add("conv 16x64x56x56 3x3".into(), resnet.forward());
    add("conv 16x64x56x56 3x3 data".into(), resnet.backward_data());
    add("conv 16x64x56x56 3x3 weights".into(), resnet.backward_weights());
    for (name, conv) in [
        ("train 1->32", Conv { batch: 64, c: 1, o: 32, h: 28, w: 3 }),
        ("train 32->64", Conv { batch: 64, c: 32, o: 64, h: 26, w: 3 }),
    ] {
        add(format!("{name} forward"), conv.forward());
        add(format!("{name} data"), conv.backward_data());
        add(format!("{name} weights"), conv.backward_weights());
    }
    add("gemv n 1x4096x4096".into(), product(DType::F32, [1, 4096, 4096], false, false));
    add("gemv t 1x4096x4096".into(), product(DType::F32, [1, 4096, 4096], false, true));
    add("square 1024 f64".into(), product(DType::F64, [1024; 3], false, false));
    for n in [256, 1024, 2048] {
        add(format!("square {n} bf16"), product(DType::BF16, [n; 3], false, false));
        add(format!("square {n} f16"), product(DType::F16, [n; 3], false, false));
    }
    for n in [256, 1024] {
        for (a, b) in [(DType::I8, DType::U8), (DType::U8, DType::I8), (DType::I8, DType::I8)] {
            let spec = of_bytes(product(DType::F32, [n; 3], false, false), a, b);
            add(format!("square {n} {a:?} {b:?}"), spec);
        }
        let spec = product(DType::F32, [n; 3], false, true);
        add(format!("square nt {n} U8 I8"), of_bytes(spec, DType::U8, DType::I8));
    }
    for (name, tb) in [("nn", false), ("nt", true)] {
        let spec = product(DType::F32, [128, 3072, 768], false, tb);
        add(format!("bert {name} 128x768x3072 f32"), spec.clone());
        add(format!("bert {name} 128x768x3072 U8 I8"), of_bytes(spec, DType::U8, DType::I8));
    }
    for layer in RESNET50 {
        let [c, o, w, stride, out] = layer;
        let name = format!("resnet50 {c}->{o} {w}x{w}/{stride} {out}");
        let spec = resnet50(layer);
        add(format!("{name} f32"), spec.clone());
        add(format!("{name} I8 U8"), of_bytes(spec, DType::I8, DType::U8));
    }
    all
}

/// GFLOP/s of a loop of independent multiply-adds on every one of `threads` threads.
fn peak(pool: &Pool, threads: usize, acc: Acc) -> f64 {
    const STEPS: usize = 100_000;
    let start = Instant::now();
    pool.run(threads, 1, &|range| {
        for _ in range {
            // SAFETY: the features are checked first.
            #[cfg(target_arch = "x86_64")]
            unsafe {
                match Isa::detect() {
                    Isa::Avx512 => fma512(STEPS),
                    Isa::Avx2 => fma256(STEPS),
                    Isa::Neon | Isa::Portable => {}
                }
            }
            // SAFETY: every 64-bit Arm processor that runs an operating system has NEON.
            #[cfg(target_arch = "aarch64")]
            unsafe {
                fma128(STEPS);
            }
        }
    });
    let lanes = match Isa::detect() {
        Isa::Avx512 => 16,
        Isa::Avx2 => 8,
        Isa::Neon => 4,
        Isa::Portable => 0,
    };
    let lanes = if acc == Acc::F64 { lanes / 2 } else { lanes };
    (threads * STEPS * CHAINS * lanes * 2) as f64 / start.elapsed().as_secs_f64() / 1e9
}

/// Independent chains: two ports times a latency of four, or four, with room to spare.
const CHAINS: usize = if cfg!(target_arch = "aarch64") { 20 } else { 12 };

#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon")]
fn fma128(steps: usize) {
    use std::arch::aarch64::*;
    let x = vdupq_n_f32(std::hint::black_box(0.5));
    let mut acc = [x; CHAINS];
    for _ in 0..steps {
        for a in &mut acc {
            *a = vfmaq_f32(x, *a, x);
        }
    }
    std::hint::black_box(acc);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn fma512(steps: usize) {
    use std::arch::x86_64::*;
    let x = _mm512_set1_ps(std::hint::black_box(0.5));
    let mut acc = [x; CHAINS];
    for _ in 0..steps {
        for a in &mut acc {
            *a = _mm512_fmadd_ps(*a, x, x);
        }
    }
    std::hint::black_box(acc);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn fma256(steps: usize) {
    use std::arch::x86_64::*;
    let x = _mm256_set1_ps(std::hint::black_box(0.5));
    let mut acc = [x; CHAINS];
    for _ in 0..steps {
        for a in &mut acc {
            *a = _mm256_fmadd_ps(*a, x, x);
        }
    }
    std::hint::black_box(acc);
}

/// A buffer for one operand, and the position of its element at offset zero.
fn operand(spec: &Spec, size: usize, stride: fn(&Dim) -> isize) -> (Block, usize) {
    let (mut low, mut high) = (0, 0);
    for d in [&spec.batch, &spec.m, &spec.n, &spec.k].into_iter().flatten() {
        let reach = stride(d) * (d.len as isize - 1);
        low += reach.min(0);
        high += reach.max(0);
    }
    let bytes = (high - low + 1) as usize * size;
    let block = Block::zeroed(bytes).expect("the machine has memory for the benchmark");
    // Small values of any type: no denormals, no overflow.
    for i in 0..bytes {
        let byte = if size > 1 && i % size == size - 1 { 0x3c } else { (i * 37 % 97) as u8 };
        // SAFETY: i is inside the block.
        unsafe { block.as_ptr().add(i).write(byte) };
    }
    (block, -low as usize * size)
}

fn bench(pool: &Pool, name: &str, spec: &Spec, threads: usize, epilogue: bool) {
    let extensions = match std::env::var("EXTENSIONS").as_deref() {
        Ok("none") => Extensions::None,
        Ok("vectors") => Extensions::Vectors,
        _ => Extensions::All,
    };
    let options = Options { threads: Some(threads), epilogue, extensions, ..Options::default() };
    let plan = Plan::new(spec, &options).expect("the specifications are valid");
    let sets: usize = std::env::var("COLD").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let set = |_| {
        let a = operand(spec, spec.a.size(), |d| d.a);
        let b = operand(spec, spec.b.size(), |d| d.b);
        (a, b, operand(spec, spec.c.size(), |d| d.c))
    };
    let sets: Vec<_> = (0..sets).map(set).collect();
    let next = std::cell::Cell::new(0);
    let nothing = |_: Tile| {};
    let call = epilogue.then_some(&nothing as &Epilogue<'_>);
    let run = || {
        next.set((next.get() + 1) % sets.len());
        let ((a, a0), (b, b0), (c, c0)) = &sets[next.get()];
        let at = (
            a.as_ptr().wrapping_add(*a0),
            b.as_ptr().wrapping_add(*b0),
            c.as_ptr().wrapping_add(*c0),
        );
        // SAFETY: the blocks cover the specification's offsets and are initialised.
        unsafe { plan.run(pool, (at.0.cast_const(), at.1.cast_const(), at.2), false, call) }
            .expect("buffers can be allocated");
    };
    let timed = |n: usize| {
        let start = Instant::now();
        (0..n).for_each(|_| run());
        start.elapsed().as_secs_f64() / n as f64
    };
    timed(3);
    let repeat = ((2e-3 / timed(3)) as usize).max(1);
    let mut peaks = vec![peak(pool, threads, spec.acc)];
    let mut times: Vec<f64> = (0..25).map(|_| timed(repeat)).collect();
    peaks.extend((0..3).map(|_| peak(pool, threads, spec.acc)));
    times.sort_by(f64::total_cmp);
    peaks.sort_by(f64::total_cmp);
    let (median, best, peak) = (times[times.len() / 2], times[0], peaks[peaks.len() - 1]);
    let flops = 2.0 * spec.work() as f64;
    if std::env::var_os("PLAN").is_some() {
        println!("{plan:?}");
    }
    println!(
        "{name:34} {threads} thr  {:10.1} us (best {:10.1})  {:6.1} GF/s  {:5.1} % (best {:5.1}) of {peak:5.0}  est {:8.1} us",
        median * 1e6,
        best * 1e6,
        flops / median / 1e9,
        flops / median / peak / 1e7,
        flops / best / peak / 1e7,
        plan.estimate_ns() / 1e3,
    );
}

fn main() {
    let mut args = std::env::args().skip(1);
    let filter = args.next().unwrap_or_default();
    let mut args = args.peekable();
    let epilogue = args.next_if(|a| a == "epilogue").is_some();
    let mut threads: Vec<usize> = args.filter_map(|a| a.parse().ok()).collect();
    let pool = Pool::new(threads.iter().copied().max());
    if threads.is_empty() {
        threads = vec![1, pool.n_threads()];
    }
    println!("{:?}, {} threads", Isa::detect(), pool.n_threads());
    for (name, spec) in cases() {
        if name.contains(&filter) {
            threads.iter().for_each(|&t| bench(&pool, &name, &spec, t, epilogue));
        }
    }
}
