//! Times products and convolutions of real models and both of their gradients, and compares values with `f64`.
//!
//! `contractions time|check [device] [words of rows]`. Each line of `time` is a row, a dtype, what is
//! computed, the median microseconds, what the cost model predicts, and the launches. Each line of `check`
//! is the largest error of small shapes, in units of the dtype's last place of the sum of magnitudes.
//! With an empty `ZYX_CUDNN` and an empty `ZYX_CUBLASLT` all of it is generated code.

#![allow(clippy::print_stdout, reason = "the report is what the program is for")]

use std::error::Error;
use zyx::{Conv1dOptions, Conv2dOptions, Conv3dOptions, DType, Device, OpenDevice as _, Tensor};
use zyx_bench::{data, median};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A name; image and kernel; stride, padding, dilation, groups. With a kernel of two dimensions or no groups it
/// is the product of both.
type Row = (&'static str, &'static [usize], &'static [usize], [usize; 4]);

const ROWS: [Row; 34] = [
    ("resnet_stem", &[64, 3, 224, 224], &[64, 3, 7, 7], [2, 3, 1, 1]),
    ("resnet2_1x1", &[64, 64, 56, 56], &[256, 64, 1, 1], [1, 0, 1, 1]),
    ("resnet2_3x3", &[64, 64, 56, 56], &[64, 64, 3, 3], [1, 1, 1, 1]),
    ("resnet3_1x1_s2", &[64, 256, 56, 56], &[512, 256, 1, 1], [2, 0, 1, 1]),
    ("resnet3_3x3_s2", &[64, 128, 56, 56], &[128, 128, 3, 3], [2, 1, 1, 1]),
    ("resnet3_3x3", &[64, 128, 28, 28], &[128, 128, 3, 3], [1, 1, 1, 1]),
    ("resnet4_1x1", &[64, 1024, 14, 14], &[256, 1024, 1, 1], [1, 0, 1, 1]),
    ("resnet4_3x3_s2", &[64, 256, 28, 28], &[256, 256, 3, 3], [2, 1, 1, 1]),
    ("resnet4_3x3", &[64, 256, 14, 14], &[256, 256, 3, 3], [1, 1, 1, 1]),
    ("resnet5_1x1", &[64, 512, 7, 7], &[2048, 512, 1, 1], [1, 0, 1, 1]),
    ("resnet5_3x3", &[64, 512, 7, 7], &[512, 512, 3, 3], [1, 1, 1, 1]),
    ("unet_top", &[8, 64, 256, 256], &[64, 64, 3, 3], [1, 1, 1, 1]),
    ("unet_join", &[8, 256, 64, 64], &[128, 256, 3, 3], [1, 1, 1, 1]),
    ("unet_first", &[8, 3, 256, 256], &[64, 3, 3, 3], [1, 1, 1, 1]),
    ("depthwise", &[64, 144, 56, 56], &[144, 1, 3, 3], [1, 1, 1, 144]),
    ("depthwise_s2", &[64, 144, 56, 56], &[144, 1, 3, 3], [2, 1, 1, 144]),
    ("grouped", &[64, 256, 14, 14], &[256, 8, 3, 3], [1, 1, 1, 32]),
    ("dilated", &[8, 256, 65, 65], &[256, 256, 3, 3], [1, 2, 2, 1]),
    ("patches", &[64, 3, 224, 224], &[768, 3, 16, 16], [16, 0, 1, 1]),
    ("conv1d", &[32, 48, 8192], &[64, 48, 3], [1, 1, 1, 1]),
    ("conv3d", &[8, 16, 32, 64, 64], &[16, 16, 3, 3, 3], [1, 1, 1, 1]),
    ("gpt2_qkv", &[8, 1024, 768], &[768, 2304], [0; 4]),
    ("gpt2_up", &[8, 1024, 768], &[768, 3072], [0; 4]),
    ("gpt2_down", &[8, 1024, 3072], &[3072, 768], [0; 4]),
    ("gpt2_words", &[1024, 768], &[768, 50304], [0; 4]),
    ("llama_up", &[2048, 4096], &[4096, 11008], [0; 4]),
    ("llama_step", &[1, 4096], &[4096, 11008], [0; 4]),
    ("llama_few", &[16, 4096], &[4096, 4096], [0; 4]),
    ("bert_scores", &[384, 512, 64], &[384, 64, 512], [0; 4]),
    ("vit_mlp", &[64, 197, 768], &[768, 3072], [0; 4]),
    ("lstm_step", &[64, 512], &[512, 2048], [0; 4]),
    ("classes", &[64, 2048], &[2048, 1000], [0; 4]),
    ("mlp", &[128, 784], &[784, 512], [0; 4]),
    ("experts", &[8, 512, 1024], &[8, 1024, 4096], [0; 4]),
];

const SMALL: [Row; 17] = [
    ("resnet3", &[4, 128, 28, 28], &[128, 128, 3, 3], [1, 1, 1, 1]),
    ("resnet5", &[16, 512, 7, 7], &[512, 512, 3, 3], [1, 1, 1, 1]),
    ("3x3", &[4, 16, 12, 13], &[24, 16, 3, 3], [1, 1, 1, 1]),
    ("3x3_s2", &[4, 16, 13, 12], &[24, 16, 3, 3], [2, 1, 1, 1]),
    ("5x3_wide", &[2, 8, 6, 7], &[16, 8, 5, 3], [1, 6, 1, 1]),
    ("s3_d2", &[2, 8, 29, 31], &[16, 8, 3, 3], [3, 2, 2, 1]),
    ("1x1", &[4, 32, 9, 9], &[16, 32, 1, 1], [1, 0, 1, 1]),
    ("1x1_s2", &[4, 32, 9, 9], &[16, 32, 1, 1], [2, 0, 1, 1]),
    ("groups", &[4, 32, 9, 10], &[48, 8, 3, 3], [1, 1, 1, 4]),
    ("depthwise", &[4, 32, 9, 10], &[32, 1, 3, 3], [1, 1, 1, 32]),
    ("stem", &[2, 3, 37, 38], &[16, 3, 7, 7], [2, 3, 1, 1]),
    ("1d", &[4, 12, 65], &[20, 12, 5], [2, 2, 1, 1]),
    ("3d", &[2, 8, 7, 8, 9], &[12, 8, 3, 3, 3], [1, 1, 1, 1]),
    ("3d_s2", &[2, 8, 7, 8, 9], &[12, 8, 2, 2, 2], [2, 1, 1, 1]),
    ("product", &[3, 65, 96], &[96, 136], [0; 4]),
    ("products", &[5, 40, 48], &[5, 48, 72], [0; 4]),
    ("row", &[1, 512], &[512, 264], [0; 4]),
];

fn convolve(
    x: &Tensor,
    w: &Tensor,
    [stride, padding, dilation, groups]: [usize; 4],
) -> zyx::Result<Tensor> {
    match x.rank() {
        _ if w.rank() == 2 || groups == 0 => x.matmul(w),
        3 => x.conv1d(w, None, Conv1dOptions { stride, padding, dilation, groups }),
        4 => {
            let (stride, padding, dilation) = ([stride; 2], [padding; 2], [dilation; 2]);
            x.conv2d(w, None, Conv2dOptions { stride, padding, dilation, groups })
        }
        _ => {
            let (stride, padding, dilation) = ([stride; 3], [padding; 3], [dilation; 3]);
            let options = Conv3dOptions { stride, padding, dilation, groups };
            x.conv3d(w, None, options)
        }
    }
}

/// The operands and a gradient of the result.
fn operands(device: &Device, row: &Row, dtype: DType) -> zyx::Result<[Tensor; 3]> {
    let numbers = |dims: &[usize], seed| data(dims, (dtype, 0.999), seed, device);
    let (x, w) = (numbers(row.1, 0.0)?, numbers(row.2, 0.1)?);
    let shape = convolve(&x, &w, row.3)?.shape().to_vec();
    Ok([x, w, numbers(&shape, 0.2)?])
}

/// Product or convolution, gradient of the image and gradient of the kernel.
fn all(x: &Tensor, w: &Tensor, dy: &Tensor, row: &Row) -> zyx::Result<[Tensor; 3]> {
    let y = convolve(x, w, row.3)?;
    let mut gradients = y.grad_with(dy, &[x, w])?.into_iter().flatten();
    let (Some(dx), Some(dw)) = (gradients.next(), gradients.next()) else {
        unreachable!("invariant: it depends on both")
    };
    Ok([y, dx, dw])
}

const NAMES: [&str; 3] = ["forward", "image", "kernel"];

fn time(device: &Device, row: &Row, dtype: DType) -> Outcome<()> {
    let [x, w, dy] = operands(device, row, dtype)?;
    for (i, name) in NAMES.iter().enumerate() {
        let one = || all(&x, &w, &dy, row)?[i].realize();
        let told = all(&x, &w, &dy, row)?[i].explain()?;
        let time = median(device, 60, || one().map(drop))?;
        let names: Vec<&str> = told.launches.iter().map(|l| l.name.as_str()).collect();
        let predicted = told.predicted().as_secs_f64() * 1e6;
        println!("{} {dtype} {name} {time:.1} {predicted:.1} {}", row.0, names.join(" "));
    }
    Ok(())
}

fn check(device: &Device, row: &Row, dtype: DType) -> Outcome<()> {
    let [x, w, dy] = operands(device, row, dtype)?;
    // So often that the launches of all three become a list that repeats.
    let mut found = all(&x, &w, &dy, row)?;
    let names = {
        let told = found.each_ref().map(|t| t.explain().map(|e| e.launches));
        told.map(|told| told.is_ok_and(|l| l.iter().any(|l| l.name.starts_with("con"))))
    };
    for _ in 0..5 {
        found = all(&x, &w, &dy, row)?;
        Tensor::realize_all(&found)?;
    }
    let [x, w, dy] = [x, w, dy].map(|t| t.cast(DType::F64));
    for t in [&x, &w, &dy] {
        t.realize()?;
    }
    let exact = all(&x, &w, &dy, row)?;
    let sizes = all(&x.abs(), &w.abs(), &dy.abs(), row)?;
    let unit: f64 = if dtype == DType::F32 { 2f64.powi(-24) } else { 2f64.powi(-9) };
    for (i, name) in NAMES.iter().enumerate() {
        let library = names[i];
        let unit = &sizes[i] * unit + 1e-30;
        let errors = (found[i].cast(DType::F64) - &exact[i]).abs() / unit;
        let worst = errors.max(..)?.item::<f64>()?;
        let verdict = if worst < 64.0 { "ok" } else { "WRONG" };
        println!("{} {dtype} {name} {worst:.2} {verdict} library {library}", row.0);
    }
    Ok(())
}

/// Prints what the backend says, where `ZYX_LOG` is set.
struct Printer;

impl log::Log for Printer {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.target().starts_with("zyx::cuda")
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            println!("log {}", record.args());
        }
    }

    fn flush(&self) {}
}

fn main() -> Outcome<()> {
    if std::env::var_os("ZYX_LOG").is_some() {
        log::set_logger(&Printer).map_err(|e| e.to_string())?;
        log::set_max_level(log::LevelFilter::Debug);
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |i: usize, default: &str| args.get(i).cloned().unwrap_or(default.to_owned());
    let (checks, wanted) = (arg(0, "time") == "check", arg(2, ""));
    let device = Device::open(&arg(1, "cuda"))?;
    let chosen = |name: &str| wanted.is_empty() || wanted.split(',').any(|w| name.contains(w));
    let small = if checks { &SMALL[..] } else { &[] };
    for row in small.iter().chain(&ROWS) {
        for dtype in [DType::F32, DType::BF16].into_iter().filter(|_| chosen(row.0)) {
            let done = if checks { check(&device, row, dtype) } else { time(&device, row, dtype) };
            if let Err(error) = done {
                println!("{} {dtype} failed: {error}", row.0);
            }
        }
    }
    Ok(())
}
