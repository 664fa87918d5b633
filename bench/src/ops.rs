//! Single operations and overheads.

use crate::Workload;
use crate::measure::{Report, Unit, op};
use zyx::{Conv2dOptions, DType, Device, Result, Rng, Tensor};

const M16: usize = 16 << 20;

pub(crate) fn workloads() -> Vec<(&'static str, Workload)> {
    vec![
        ("matmul_f32_256", |d| matmul(d, 256, DType::F32)),
        ("matmul_f32_1024", |d| matmul(d, 1024, DType::F32)),
        ("matmul_f32_2048", |d| matmul(d, 2048, DType::F32)),
        ("matmul_bf16_1024", |d| matmul(d, 1024, DType::BF16)),
        ("bmm_f32_16x256", bmm),
        ("gemv_f32_4096", gemv),
        ("chain_16m", chain),
        ("gelu_16m", |d| one(d, &[M16], 2.0, |x| Ok(x.gelu()))),
        ("sum_16m", |d| one(d, &[M16], 1.0, |x| x.sum(..))),
        ("sum_rows_4096", |d| one(d, &[4096, 4096], 1.0, |x| x.sum(1))),
        ("sum_cols_4096", |d| one(d, &[4096, 4096], 1.0, |x| x.sum(0))),
        ("softmax_4096x1024", |d| one(d, &[4096, 1024], 2.0, |x| x.softmax(1))),
        ("layernorm_4096x1024", layernorm),
        ("cumsum_16m", |d| one(d, &[M16], 2.0, |x| x.cumsum(0))),
        ("argmax_rows_4096", |d| one(d, &[4096, 4096], 1.0, |x| x.argmax(1))),
        ("conv2d_fwd", conv2d),
        ("dispatch_eager", dispatch_eager),
        ("dispatch_compiled", dispatch_compiled),
        ("call_overhead", call_overhead),
    ]
}

/// Standard normal numbers, realized.
pub(crate) fn normal(rng: &mut Rng, dims: &[usize], device: &Device) -> Result<Tensor> {
    let x = Tensor::randn(dims, DType::F32, rng, device)?;
    x.realize()?;
    Ok(x)
}

fn one(
    device: &Device,
    dims: &[usize],
    arrays: f64,
    f: fn(&Tensor) -> Result<Tensor>,
) -> Result<Report> {
    let x = normal(&mut Rng::seed(0), dims, device)?;
    let bytes = arrays * 4.0 * x.numel() as f64;
    op(Unit::GBs(bytes), || f(&x)?.realize())
}

fn matmul(device: &Device, n: usize, dtype: DType) -> Result<Report> {
    let rng = &mut Rng::seed(0);
    let (a, b) =
        (normal(rng, &[n, n], device)?.cast(dtype), normal(rng, &[n, n], device)?.cast(dtype));
    Tensor::realize_all([&a, &b])?;
    op(Unit::Gflops(2.0 * (n as f64).powi(3)), || a.matmul(&b)?.realize())
}

fn bmm(device: &Device) -> Result<Report> {
    let rng = &mut Rng::seed(0);
    let (a, b) = (normal(rng, &[16, 256, 256], device)?, normal(rng, &[16, 256, 256], device)?);
    op(Unit::Gflops(16.0 * 2.0 * 256f64.powi(3)), || a.matmul(&b)?.realize())
}

fn gemv(device: &Device) -> Result<Report> {
    let rng = &mut Rng::seed(0);
    let (w, x) = (normal(rng, &[4096, 4096], device)?, normal(rng, &[4096], device)?);
    let bytes = 4.0 * (4096.0 * 4096.0 + 2.0 * 4096.0);
    op(Unit::GBs(bytes), || w.matmul(&x)?.realize())
}

fn chain(device: &Device) -> Result<Report> {
    let rng = &mut Rng::seed(0);
    let [a, b, c] =
        [normal(rng, &[M16], device)?, normal(rng, &[M16], device)?, normal(rng, &[M16], device)?];
    op(Unit::GBs(16.0 * M16 as f64), || a.add(&b)?.mul(5.0)?.sub(&c)?.realize())
}

fn layernorm(device: &Device) -> Result<Report> {
    let rng = &mut Rng::seed(0);
    let x = normal(rng, &[4096, 1024], device)?;
    let (w, b) = (normal(rng, &[1024], device)?, normal(rng, &[1024], device)?);
    op(Unit::GBs(8.0 * x.numel() as f64), || x.layer_norm(-1, Some(&w), Some(&b), 1e-5)?.realize())
}

fn conv2d(device: &Device) -> Result<Report> {
    let rng = &mut Rng::seed(0);
    let (x, w) = (normal(rng, &[16, 64, 56, 56], device)?, normal(rng, &[64, 64, 3, 3], device)?);
    let options = Conv2dOptions { padding: [1, 1], ..Default::default() };
    let flops = 2.0 * 16.0 * 64.0 * 56.0 * 56.0 * 64.0 * 9.0;
    op(Unit::Gflops(flops), || x.conv2d(&w, None, options)?.realize())
}

fn pair(device: &Device) -> Result<(Tensor, Tensor)> {
    let rng = &mut Rng::seed(0);
    Ok((normal(rng, &[1024], device)?, normal(rng, &[1024], device)?))
}

/// A hundred dependent additions, each its own call and its own launch.
fn dispatch_eager(device: &Device) -> Result<Report> {
    let (x, y) = pair(device)?;
    op(Unit::UsPer(100.0), || {
        let mut z = x.clone();
        for _ in 0..100 {
            z = z.add(&y)?;
            z.realize()?;
        }
        Ok(())
    })
}

/// A hundred dependent additions as one plan.
fn dispatch_compiled(device: &Device) -> Result<Report> {
    let (x, y) = pair(device)?;
    op(Unit::UsPer(100.0), || {
        let mut z = x.clone();
        for _ in 0..100 {
            z = z.add(&y)?;
        }
        z.realize()
    })
}

fn call_overhead(device: &Device) -> Result<Report> {
    let (x, y) = pair(device)?;
    op(Unit::UsPer(1.0), || x.add(&y)?.realize())
}
