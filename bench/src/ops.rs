//! Single operations and overheads of calls.

use crate::Workload;
use crate::inputs::Inputs;
use crate::measure::{Report, Unit, op};
use zyx::{Conv2dOptions, DType, Result, Tensor};

pub(crate) const M16: usize = 16 << 20;

pub(crate) fn workloads() -> Vec<(&'static str, Workload)> {
    vec![
        ("matmul_f32_256", |i| matmul(i, 256, DType::F32)),
        ("matmul_f32_1024", |i| matmul(i, 1024, DType::F32)),
        ("matmul_f32_2048", |i| matmul(i, 2048, DType::F32)),
        ("matmul_bf16_1024", |i| matmul(i, 1024, DType::BF16)),
        ("bmm_f32_16x256", bmm),
        ("gemv_f32_4096", gemv),
        ("chain_16m", chain),
        ("gelu_16m", |i| one(i, &[M16], 2.0, |x| Ok(x.gelu()))),
        ("sum_16m", |i| one(i, &[M16], 1.0, |x| x.sum(..))),
        ("sum_rows_4096", |i| one(i, &[4096, 4096], 1.0, |x| x.sum(1))),
        ("sum_cols_4096", |i| one(i, &[4096, 4096], 1.0, |x| x.sum(0))),
        ("softmax_4096x1024", |i| one(i, &[4096, 1024], 2.0, |x| x.softmax(1))),
        ("layernorm_4096x1024", layernorm),
        ("cumsum_16m", |i| one(i, &[M16], 2.0, |x| x.cumsum(0))),
        ("cumsum_32m", |i| one(i, &[2 * M16], 2.0, |x| x.cumsum(0))),
        ("cumsum_rows_64", |i| one(i, &[64, M16 / 32], 2.0, |x| x.cumsum(1))),
        ("cumprod_32m", |i| one(i, &[2 * M16], 2.0, |x| x.cumprod(0))),
        ("cummax_32m", |i| one(i, &[2 * M16], 2.0, |x| Ok(x.cummax(0)?.0))),
        ("logcumsumexp_4m", |i| one(i, &[M16 / 4], 2.0, |x| x.logcumsumexp(0))),
        ("recurrence_4m", |i| recurrence(i, &[M16 / 4], 0)),
        ("recurrence_8x512x1024", |i| recurrence(i, &[8, 512, 1024], 1)),
        ("scatter_add_16m", scatter_add),
        ("sort_1m", sort),
        ("sort_4m", |i| one(i, &[M16 / 4], 2.0, |x| Ok(x.sort(0, false)?.0))),
        ("topk_4m", |i| one(i, &[M16 / 4], 1.0, |x| Ok(x.topk(64, 0, true)?.0))),
        ("argmax_rows_4096", |i| one(i, &[4096, 4096], 1.0, |x| x.argmax(1))),
        ("conv2d_fwd", conv2d),
        ("dispatch_eager", dispatch_eager),
        ("dispatch_compiled", dispatch_compiled),
        ("call_overhead", call_overhead),
    ]
}

fn one(
    inputs: &mut Inputs,
    dims: &[usize],
    arrays: f64,
    f: fn(&Tensor) -> Result<Tensor>,
) -> Result<Report> {
    let x = inputs.normal("in0", dims)?;
    op(Unit::GBs(arrays * 4.0 * x.numel() as f64), || f(&x))
}

/// A million numbers in ascending order.
fn sort(inputs: &mut Inputs) -> Result<Report> {
    let x = inputs.normal("in0", &[M16 / 16])?;
    op(Unit::Ms, || Ok(x.sort(0, false)?.0))
}

/// States of a linear state-space model, whose factors are between 0 and 1.
fn recurrence(inputs: &mut Inputs, dims: &[usize], axis: isize) -> Result<Report> {
    let (a, b) = two(inputs, dims, dims)?;
    let a = a.sigmoid();
    a.realize()?;
    op(Unit::GBs(12.0 * a.numel() as f64), || a.linear_recurrence(&b, axis, false))
}

/// Numbers added to 4096 places.
fn scatter_add(inputs: &mut Inputs) -> Result<Report> {
    let x = inputs.normal("in0", &[M16])?;
    let place = x.mul(1e6)?.cast(DType::I64).remainder(4096)?;
    let none = Tensor::zeros([4096], DType::F32, x.device());
    Tensor::realize_all([&place, &none])?;
    op(Unit::GBs(12.0 * M16 as f64), || none.scatter_add(0, &place, &x))
}

/// The first two inputs.
fn two(inputs: &mut Inputs, a: &[usize], b: &[usize]) -> Result<(Tensor, Tensor)> {
    Ok((inputs.normal("in0", a)?, inputs.normal("in1", b)?))
}

fn matmul(inputs: &mut Inputs, n: usize, dtype: DType) -> Result<Report> {
    let (a, b) = two(inputs, &[n, n], &[n, n])?;
    let (a, b) = (a.cast(dtype), b.cast(dtype));
    Tensor::realize_all([&a, &b])?;
    op(Unit::Gflops(2.0 * (n as f64).powi(3)), || a.matmul(&b))
}

fn bmm(inputs: &mut Inputs) -> Result<Report> {
    let (a, b) = two(inputs, &[16, 256, 256], &[16, 256, 256])?;
    op(Unit::Gflops(16.0 * 2.0 * 256f64.powi(3)), || a.matmul(&b))
}

fn gemv(inputs: &mut Inputs) -> Result<Report> {
    let (w, x) = two(inputs, &[4096, 4096], &[4096])?;
    op(Unit::GBs(4.0 * (4096.0 * 4096.0 + 2.0 * 4096.0)), || w.matmul(&x))
}

fn chain(inputs: &mut Inputs) -> Result<Report> {
    let (a, b) = two(inputs, &[M16], &[M16])?;
    let c = inputs.normal("in2", &[M16])?;
    op(Unit::GBs(16.0 * M16 as f64), || a.add(&b)?.mul(5.0)?.sub(&c))
}

fn layernorm(inputs: &mut Inputs) -> Result<Report> {
    let (x, w) = two(inputs, &[4096, 1024], &[1024])?;
    let b = inputs.normal("in2", &[1024])?;
    op(Unit::GBs(8.0 * x.numel() as f64), || x.layer_norm(-1, Some(&w), Some(&b), 1e-5))
}

fn conv2d(inputs: &mut Inputs) -> Result<Report> {
    let (x, w) = two(inputs, &[16, 64, 56, 56], &[64, 64, 3, 3])?;
    let options = Conv2dOptions { padding: [1, 1], ..Default::default() };
    let flops = 2.0 * 16.0 * 64.0 * 56.0 * 56.0 * 64.0 * 9.0;
    op(Unit::Gflops(flops), || x.conv2d(&w, None, options))
}

/// A hundred dependent additions, each its own call and its own launch.
fn dispatch_eager(inputs: &mut Inputs) -> Result<Report> {
    let (x, y) = two(inputs, &[1024], &[1024])?;
    op(Unit::UsPer(100.0), || {
        let mut z = x.clone();
        for _ in 0..100 {
            z = z.add(&y)?;
            z.realize()?;
        }
        Ok(z)
    })
}

/// A hundred dependent additions as one plan.
fn dispatch_compiled(inputs: &mut Inputs) -> Result<Report> {
    let (x, y) = two(inputs, &[1024], &[1024])?;
    op(Unit::UsPer(100.0), || (0..100).try_fold(x.clone(), |z, _| z.add(&y)))
}

fn call_overhead(inputs: &mut Inputs) -> Result<Report> {
    let (x, y) = two(inputs, &[1024], &[1024])?;
    op(Unit::UsPer(1.0), || x.add(&y))
}
