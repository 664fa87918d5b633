//! Gradients of the operations beyond the op table, by finite differences on the device.

use crate::gradients::{Smooth, agree, smooth};
use crate::{Array, Check};
use zyx_core::{DType, Device, Index, Result, ScatterReduce, Tensor};

fn index(x: &Tensor, dims: &[usize], data: &[i64]) -> Result<Tensor> {
    Array::ints(DType::I64, dims, data).tensor(x.device())
}

/// Special functions, functions of two operands, activations of pieces.
pub fn maths(device: &Device) {
    let one = |name: &str, range: (f64, f64), f: fn(&Tensor) -> Tensor| {
        smooth(name, &[&[5]], range, move |x| Ok(f(&x[0])))
    };
    let mut all = vec![
        one("erfc", (-2.0, 2.0), Tensor::erfc),
        one("erfcx", (-1.0, 2.0), Tensor::erfcx),
        one("erfinv", (-0.8, 0.8), Tensor::erfinv),
        one("ndtr", (-2.0, 2.0), Tensor::ndtr),
        one("log_ndtr", (-3.0, 2.0), Tensor::log_ndtr),
        one("lgamma", (0.3, 4.0), Tensor::lgamma),
        one("lgamma below 0", (-1.8, -1.2), Tensor::lgamma),
        one("digamma", (0.5, 4.0), Tensor::digamma),
        one("polygamma", (0.7, 3.0), |x| x.polygamma(2)),
        one("log10", (0.5, 3.0), Tensor::log10),
        one("asinh", (-2.0, 2.0), Tensor::asinh),
        one("acosh", (1.3, 3.0), Tensor::acosh),
        one("atanh", (-0.8, 0.8), Tensor::atanh),
        one("sinc", (0.2, 1.8), Tensor::sinc),
        one("logit", (0.2, 0.8), |x| x.logit(None)),
        one("softsign", (0.2, 2.0), Tensor::softsign),
        one("hardswish", (-2.5, 2.5), Tensor::hardswish),
        one("logsigmoid", (-2.0, -0.2), Tensor::logsigmoid),
        one("tanhshrink", (-2.0, 2.0), Tensor::tanhshrink),
        one("celu", (-2.0, 2.0), |x| x.celu(0.7)),
        one("softshrink", (0.7, 2.0), |x| x.softshrink(0.5)),
        one("hardtanh", (-0.8, 0.8), |x| x.hardtanh(-1.0, 1.0)),
        one("threshold", (0.2, 2.0), |x| x.threshold(0.1, 3.0)),
    ];
    let two = |name: &str, f: fn(&Tensor, &Tensor) -> Result<Tensor>| {
        smooth(name, &[&[2, 3], &[3]], (0.3, 1.9), move |x| f(&x[0], &x[1]))
    };
    all.push(two("hypot", |x, y| x.hypot(y)));
    all.push(two("logaddexp", |x, y| x.logaddexp(y)));
    all.push(two("logaddexp2", |x, y| x.logaddexp2(y)));
    all.push(two("xlogy", |x, y| x.xlogy(y)));
    all.push(two("xlog1py", |x, y| x.xlog1py(y)));
    all.push(two("ldexp", |x, y| x.ldexp(y)));
    all.push(two("copysign", |x, y| x.copysign(y.neg())));
    all.push(two("nextafter", |x, y| x.nextafter(y)));
    all.push(two("addcmul", |x, y| x.addcmul(x, y, 0.5)));
    all.push(two("addcdiv", |x, y| x.addcdiv(x, y, 0.5)));
    all.push(smooth("prelu", &[&[2, 3], &[3]], (-2.0, -0.2), |x| x[0].prelu(&x[1])));
    all.push(smooth("glu", &[&[2, 4]], (-2.0, 2.0), |x| x[0].glu(1)));
    agree(device, all);
}

/// Rearranging, picking, placing.
pub fn places(device: &Device) {
    let wide = (-2.0, 2.0);
    let one = |name: &str, f: fn(&Tensor) -> Result<Tensor>| {
        smooth(name, &[&[3, 4]], wide, move |x| f(&x[0].square()))
    };
    let mut all = vec![
        one("roll", |x| x.roll([1], [1])),
        one("unfold", |x| x.unfold(1, 2, 1)),
        one("diagonal", |x| x.diagonal(1, 0, 1)),
        one("diag_embed", |x| x.diag_embed(1, 0, 2)),
        one("repeat_interleave", |x| x.repeat_interleave(2, 0)),
        one("take", |x| x.take(&index(x, &[3], &[5, 5, -1])?)),
        one("index", |x| x.index(&[index(x, &[2], &[2, 0])?.into(), Index::step(None, None, -1)])),
        one("masked_select", |x| x.masked_select(&x.gt(0.5)?)),
        one("masked_fill", |x| x.masked_fill(&x.gt(0.5)?, 2.0)),
    ];
    let pair = |name: &str, f: fn(&Tensor, &Tensor) -> Result<Tensor>| {
        smooth(name, &[&[3], &[4]], wide, move |x| f(&x[0].square(), &x[1].square()))
    };
    all.push(pair("index_put", |x, y| {
        x.index_put(&[index(x, &[2], &[0, 2])?.into()], &y.narrow(0, 1, 2)?, true)
    }));
    all.extend(reductions());
    agree(device, all);
}

fn reductions() -> Vec<Smooth> {
    use ScatterReduce::{Amax, Amin, Mean, Prod, Sum};
    let mut all = Vec::new();
    for reduce in [Sum, Prod, Mean, Amax, Amin] {
        for include in [true, false] {
            let name = format!("scatter_reduce {reduce:?} {include}");
            all.push(smooth(&name, &[&[3], &[4]], (-2.0, 2.0), move |x| {
                let at = index(&x[0], &[4], &[0, 0, 2, 7])?;
                x[0].scatter_reduce(0, &at, &x[1], reduce, include)
            }));
        }
    }
    all
}

/// Sorting, running combinations, statistics.
pub fn ordered(device: &Device) {
    let wide = (-2.0, 2.0);
    let one = |name: &str, f: fn(&Tensor) -> Result<Tensor>| {
        smooth(name, &[&[2, 4]], wide, move |x| f(&x[0].mul(x[0].exp())?))
    };
    let mut all = vec![
        one("sort", |x| Ok(x.sort(1, true)?.0)),
        one("topk of rows", |x| Ok(x.topk(2, 1, true)?.0)),
        one("median", |x| Ok(x.median(0)?.0)),
        one("quantile", |x| x.quantile(&[0.3], 1)),
        one("cumprod", |x| x.cumprod(1)),
        one("cummax", |x| Ok(x.cummax(1)?.0)),
        one("logcumsumexp", |x| x.logcumsumexp(1)),
        one("norm_p", |x| x.norm_p(3.0, 1)),
        one("nanmean", |x| x.nanmean(0)),
        one("trapezoid", |x| x.trapezoid(0.5, 1)),
        one("cov", |x| x.cov(1)),
        smooth("linear_recurrence", &[&[5], &[5]], wide, |x| {
            x[0].linear_recurrence(&x[1], 0, false)
        }),
        smooth("recurrence from the end", &[&[3], &[2, 3]], wide, |x| {
            x[0].linear_recurrence(&x[1], 1, true)
        }),
    ];
    all.push(
        smooth("cumprod with a zero", &[&[4]], wide, |x| x[0].cumprod(0))
            .at(&[(&[4], &[1.5, 0.0, -0.7, 2.0])])
            .once(),
    );
    agree(device, all);
}

/// A nonzero reads one number from the device.
pub fn syncs(device: &Device) {
    let mut check = Check::new(device);
    let x = Array::reals(DType::F32, &[4], &[0.0, 2.0, 0.0, 3.0]);
    let a = check.input(&x);
    let picked = a.nonzero().and_then(|at| a.take(&at.flatten())).and_then(|p| p.sum(..));
    check.equal("nonzero, take, sum", picked, &Array::reals(DType::F32, &[], &[5.0]));
    check.finish();
}
