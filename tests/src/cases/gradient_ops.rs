//! Gradients of the operations beyond the op table, by finite differences on the device.

use crate::gradients::{Smooth, agree, smooth};
use crate::{Array, Check};
use zyx_core::{BinaryOp, DType, Device, Index, Indexing, Result, ScatterReduce, Tensor};

fn index(x: &Tensor, dims: &[usize], data: &[i64]) -> Result<Tensor> {
    Array::ints(DType::I64, dims, data).tensor(x.device())
}

const NAN: f64 = f64::NAN;
const INFINITY: f64 = f64::INFINITY;

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
        one("relu6", (-2.0, 8.0), Tensor::relu6),
        one("hardsigmoid", (-5.0, 5.0), Tensor::hardsigmoid),
        one("hardshrink", (-2.0, 2.0), |x| x.hardshrink(0.5)),
        one("frac", (1.1, 1.9), Tensor::frac),
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
    all.push(two("fmax", |x, y| x.fmax(y)));
    all.push(two("fmin", |x, y| x.fmin(y)));
    if device.caps().storage.contains(DType::F64) {
        all.push(two("float_power", |x, y| x.float_power(y)));
    }
    all.push(two("addcdiv", |x, y| x.addcdiv(x, y, 0.5)));
    all.push(smooth("prelu", &[&[2, 3], &[3]], (-2.0, -0.2), |x| x[0].prelu(&x[1])));
    all.push(smooth("glu", &[&[2, 4]], (-2.0, 2.0), |x| x[0].glu(1)));
    all.push(smooth("softmin", &[&[2, 4]], (-2.0, 2.0), |x| x[0].softmin(1)));
    // What stands in for them is constant.
    let special: &[(&[usize], &[f64])] = &[(&[5], &[NAN, INFINITY, -INFINITY, 0.5, -1.5])];
    all.push(
        smooth("nan_to_num", &[], (0.0, 1.0), |x| Ok(x[0].nan_to_num(1.0, Some(3.0), Some(-2.0))))
            .at(special),
    );
    all.push(
        smooth("nansum", &[], (0.0, 1.0), |x| x[0].nansum(0)).at(&[(&[3], &[NAN, 0.5, -1.5])]),
    );
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
        one("take_along_dim", |x| x.take_along_dim(&index(x, &[1, 3], &[2, 2, -1])?, Some(1))),
        one("repeat_interleave_by", |x| x.repeat_interleave_by(&index(x, &[3], &[2, 0, 3])?, 0)),
        one("index_fill", |x| x.index_fill(1, &index(x, &[2], &[0, 2])?, 2.0)),
        one("rot90", |x| x.rot90(1, [0, 1])),
        one("tile", |x| x.tile([2, 1, 2])),
        one("unbind", |x| {
            let rows = x.unbind(0)?;
            rows[0].mul(&rows[2])?.add(&rows[1])
        }),
    ];
    let pair = |name: &str, f: fn(&Tensor, &Tensor) -> Result<Tensor>| {
        smooth(name, &[&[3], &[4]], wide, move |x| f(&x[0].square(), &x[1].square()))
    };
    all.push(pair("index_put", |x, y| {
        x.index_put(&[index(x, &[2], &[0, 2])?.into()], &y.narrow(0, 1, 2)?, true)
    }));
    all.push(pair("put", |x, y| x.put(&index(x, &[4], &[0, 2, 0, -1])?, y, false)));
    all.push(pair("put added", |x, y| x.put(&index(x, &[4], &[0, 2, 0, -1])?, y, true)));
    all.push(pair("index_add", |x, y| x.index_add(0, &index(x, &[4], &[2, 0, 2, 0])?, y, -1.5)));
    all.push(pair("index_copy", |x, y| x.index_copy(0, &index(x, &[4], &[2, 0, 2, 0])?, y)));
    all.push(pair("index_fill by a tensor", |x, y| {
        x.index_fill(0, &index(x, &[2], &[2, 0])?, &y.sum(0)?)
    }));
    all.push(pair("slice_scatter", |x, y| y.slice_scatter(x, 0, 1)));
    all.push(pair("select_scatter", |x, y| {
        let table = x.unsqueeze(1)?.mul(y.narrow(0, 0, 2)?)?;
        table.select_scatter(&y.narrow(0, 1, 3)?, 1, -1)
    }));
    all.push(pair("diagonal_scatter", |x, y| {
        let table = x.unsqueeze(1)?.mul(y)?;
        table.diagonal_scatter(&x.exp(), 1, 0, 1)
    }));
    all.push(pair("masked_scatter", |x, y| {
        let mask = index(x, &[3], &[1, 0, 1])?.cast(DType::Bool);
        x.masked_scatter(&mask, y)
    }));
    all.push(pair("meshgrid", |x, y| {
        let grids = Tensor::meshgrid(&[x, y], Indexing::Xy)?;
        grids[0].mul(grids[1].exp())
    }));
    all.push(pair("block_diag", |x, y| Tensor::block_diag(&[&x.unsqueeze(0)?, &y.unsqueeze(1)?])));
    all.push(smooth("vander", &[&[3]], wide, |x| x[0].vander(4, false)));
    all.extend(reductions());
    agree(device, all);
}

fn reductions() -> Vec<Smooth> {
    use ScatterReduce::{Amax, Amin, Mean, Prod, Sum};
    let mut all = Vec::new();
    // No zero, one and two of them, and one that was there, meet in a place.
    let (base, src) = ([2.0, 0.7, 0.0, 1.5, 3.0], [0.0, 1.5, -0.7, 0.0, 0.0, 2.0, 0.5, 1.2]);
    for include in [true, false] {
        let name = format!("scatter_reduce Prod {include} with zeros");
        let product = smooth(&name, &[], (-2.0, 2.0), move |x| {
            let at = index(&x[0], &[8], &[0, 0, 1, 3, 3, 3, 2, 1])?;
            x[0].scatter_reduce(0, &at, &x[1], Prod, include)
        });
        all.push(product.at(&[(&[5], &base), (&[8], &src)]));
    }
    for reduce in [Sum, Prod, Mean, Amax, Amin] {
        for include in [true, false] {
            let name = format!("scatter_reduce {reduce:?} {include}");
            all.push(smooth(&name, &[&[3], &[4]], (-2.0, 2.0), move |x| {
                // One index is out of range and changes nothing.
                let at = index(&x[0], &[4], &[0, 0, 2, 7])?.unchecked_indices();
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
        one("corrcoef", |x| x.corrcoef()),
        one("amax", |x| x.amax(0)),
        one("amin", |x| x.amin([0, 1])),
        one("aminmax", |x| x.aminmax(1).and_then(|(low, high)| low.mul(&high))),
        one("cummin", |x| Ok(x.cummin(1)?.0)),
        one("kthvalue", |x| Ok(x.kthvalue(3, 1)?.0)),
        one("mode", |x| Ok(x.mode(1)?.0)),
        one("nansum of numbers", |x| x.nansum(0)),
        one("msort", |x| x.msort()),
        one("var_mean", |x| x.var_mean(1, 1).and_then(|(var, mean)| var.mul(&mean))),
        one("std_mean", |x| x.std_mean(0, 0).and_then(|(std, mean)| std.mul(&mean))),
        one("diff", |x| x.diff(2, 1)),
        one("cumulative_trapezoid", |x| x.cumulative_trapezoid(0.5, 1)),
        smooth("linear_recurrence", &[&[5], &[5]], wide, |x| {
            x[0].linear_recurrence(&x[1], 0, false)
        }),
        smooth("associative_scan", &[&[2, 7], &[2, 7]], wide, |x| {
            let compose = |x: &[Tensor], y: &[Tensor]| {
                Ok(vec![x[0].mul(&y[0])?, y[0].mul(&x[1])?.add(&y[1])?])
            };
            Ok(Tensor::associative_scan(compose, &[&x[0], &x[1]], 1, true)?.remove(1))
        }),
        smooth("recurrence from the end", &[&[3], &[2, 3]], wide, |x| {
            x[0].linear_recurrence(&x[1], 1, true)
        }),
    ];
    for zeros in [[1.5, 0.0, -0.7, 2.0], [0.0, 1.5, 0.0, -0.7]] {
        let name = format!("cumprod of {zeros:?}");
        all.push(smooth(&name, &[], wide, |x| x[0].cumprod(0)).at(&[(&[4], &zeros)]));
    }
    all.extend(running());
    agree(device, all);
}

/// Every monoid both ways, with and without the element itself.
fn running() -> Vec<Smooth> {
    use BinaryOp::{Add, LogAddExp, Max, Min, Mul};
    let mut all = Vec::new();
    for op in [Add, Mul, Max, Min, LogAddExp] {
        for (reverse, exclusive) in [(false, false), (true, false), (false, true), (true, true)] {
            let name = format!("scan_with {op}, {reverse}, {exclusive}");
            all.push(smooth(&name, &[&[2, 4]], (-2.0, 2.0), move |x| {
                let y = x[0].mul(x[0].exp())?.scan_with(op, 1, reverse, exclusive)?;
                // The neutral element, which may be infinite, has no difference quotient.
                y.narrow(1, usize::from(exclusive && !reverse), 4 - usize::from(exclusive))
            }));
        }
    }
    // Elements so far apart that all but one have no part, and nothing at all.
    let far = [-INFINITY, -1000.0, 0.5, -800.0, 1.0, 900.0];
    let far: &[(&[usize], &[f64])] = &[(&[6], &far)];
    all.push(
        smooth("logcumsumexp far apart", &[], (0.0, 1.0), |x| {
            x[0].logcumsumexp(0)?.narrow(0, 1, 5)
        })
        .at(far),
    );
    all
}

/// What depends on a count that is read from the device.
pub fn counted(device: &Device) {
    let mut check = Check::new(device);
    let x = Array::reals(DType::F32, &[4], &[0.0, 2.0, 0.0, 3.0]);
    let a = check.input(&x);
    let picked = a.nonzero().and_then(|at| a.take(&at.flatten())).and_then(|p| p.sum(..));
    check.equal("nonzero, take, sum", picked, &Array::reals(DType::F32, &[], &[5.0]));
    check.finish();
}
