//! Operations at the size of a GPU: 256 Mi elements, a gigabyte, far beyond its caches.
//!
//! Results are too large to be weighed on the host, so their checksum is the mean of their sizes,
//! which inputs of other seeds share to three digits.

use crate::Workload;
use crate::inputs::Inputs;
use crate::measure::{Report, Unit, op, op_of_size};
use crate::transformer;
use zyx::{Attention, Conv2dOptions, DType, Result, Tensor};

const M256: usize = 256 << 20;

pub(crate) fn workloads() -> Vec<(&'static str, Workload)> {
    vec![
        ("copy_256m", |i| one(i, &[M256], 2.0, |x| x.add(1.0))),
        ("chain_256m", chain),
        ("gelu_256m", |i| one(i, &[M256], 2.0, |x| Ok(x.gelu()))),
        ("sum_256m", |i| one(i, &[M256], 1.0, |x| x.sum(..))),
        ("sum_rows_16384", |i| one(i, &[16384, 16384], 1.0, |x| x.sum(1))),
        ("sum_cols_16384", |i| one(i, &[16384, 16384], 1.0, |x| x.sum(0))),
        ("softmax_65536x4096", |i| one(i, &[65536, 4096], 2.0, |x| x.softmax(1))),
        ("layernorm_65536x4096", layernorm),
        ("transpose_16384", |i| one(i, &[16384, 16384], 2.0, |x| Ok(x.t().contiguous()))),
        ("cumsum_256m", |i| one(i, &[M256], 2.0, |x| x.cumsum(0))),
        ("cumprod_256m", |i| one(i, &[M256], 2.0, |x| x.cumprod(0))),
        ("cumsum_rows_16384", |i| one(i, &[16384, 16384], 2.0, |x| x.cumsum(1))),
        ("sort_16m", |i| one(i, &[M256 / 16], 2.0, |x| Ok(x.sort(0, false)?.0))),
        ("matmul_f32_4096", |i| matmul(i, 4096, DType::F32)),
        ("matmul_f32_8192", |i| matmul(i, 8192, DType::F32)),
        ("matmul_bf16_4096", |i| matmul(i, 4096, DType::BF16)),
        ("matmul_bf16_8192", |i| matmul(i, 8192, DType::BF16)),
        ("matmul_f16_4096", |i| matmul(i, 4096, DType::F16)),
        ("gemv_f32_8192", gemv),
        ("conv2d_64_f32", |i| conv2d(i, DType::F32)),
        ("conv2d_64_bf16", |i| conv2d(i, DType::BF16)),
        ("attention_bf16_4096", |i| attention(i, false)),
        ("attention_causal_bf16_4096", |i| attention(i, true)),
        ("adds_100", adds),
        ("gpt2_train_bf16", transformer::train_gpt2),
    ]
}

fn one(
    inputs: &mut Inputs,
    dims: &[usize],
    arrays: f64,
    f: fn(&Tensor) -> Result<Tensor>,
) -> Result<Report> {
    let x = inputs.normal("in0", dims)?;
    op_of_size(Unit::GBs(arrays * 4.0 * x.numel() as f64), || f(&x))
}

fn chain(inputs: &mut Inputs) -> Result<Report> {
    let [a, b, c] = ["in0", "in1", "in2"].map(|name| inputs.normal(name, &[M256]));
    let (a, b, c) = (a?, b?, c?);
    op_of_size(Unit::GBs(16.0 * M256 as f64), || a.add(&b)?.mul(5.0)?.sub(&c))
}

fn layernorm(inputs: &mut Inputs) -> Result<Report> {
    let x = inputs.normal("in0", &[65536, 4096])?;
    let (w, b) = (inputs.normal("in1", &[4096])?, inputs.normal("in2", &[4096])?);
    let bytes = Unit::GBs(8.0 * x.numel() as f64);
    op_of_size(bytes, || x.layer_norm(-1, Some(&w), Some(&b), 1e-5))
}

/// Normal numbers of a dtype, computed.
fn normal(inputs: &mut Inputs, name: &str, dims: &[usize], dtype: DType) -> Result<Tensor> {
    let x = inputs.normal(name, dims)?.cast(dtype);
    x.realize()?;
    Ok(x)
}

fn matmul(inputs: &mut Inputs, n: usize, dtype: DType) -> Result<Report> {
    let (a, b) = (normal(inputs, "in0", &[n, n], dtype)?, normal(inputs, "in1", &[n, n], dtype)?);
    op_of_size(Unit::Gflops(2.0 * (n as f64).powi(3)), || a.matmul(&b))
}

fn gemv(inputs: &mut Inputs) -> Result<Report> {
    let (w, x) = (inputs.normal("in0", &[8192, 8192])?, inputs.normal("in1", &[8192])?);
    op_of_size(Unit::GBs(4.0 * (8192.0 * 8192.0)), || w.matmul(&x))
}

fn conv2d(inputs: &mut Inputs, dtype: DType) -> Result<Report> {
    let x = normal(inputs, "in0", &[64, 64, 56, 56], dtype)?;
    let w = normal(inputs, "in1", &[64, 64, 3, 3], dtype)?;
    let options = Conv2dOptions { padding: [1, 1], ..Default::default() };
    let flops = 2.0 * 64.0 * 64.0 * 56.0 * 56.0 * 64.0 * 9.0;
    op_of_size(Unit::Gflops(flops), || x.conv2d(&w, None, options))
}

fn attention(inputs: &mut Inputs, causal: bool) -> Result<Report> {
    let [q, k, v] =
        ["in0", "in1", "in2"].map(|name| normal(inputs, name, &[8, 16, 4096, 64], DType::BF16));
    let (q, k, v) = (q?, k?, v?);
    let flops = 4.0 * 128.0 * 4096f64.powi(2) * 64.0 / if causal { 2.0 } else { 1.0 };
    op_of_size(Unit::Gflops(flops), || {
        q.scaled_dot_product_attention(&k, &v, Attention { causal, ..Default::default() })
    })
}

/// A hundred dependent additions as one plan.
fn adds(inputs: &mut Inputs) -> Result<Report> {
    let (x, y) = (inputs.normal("in0", &[1024])?, inputs.normal("in1", &[1024])?);
    op(Unit::UsPer(100.0), || (0..100).try_fold(x.clone(), |z, _| z.add(&y)))
}
