//! Gradients of everything that has one, by finite differences on the device.

use crate::gradients::{Smooth, agree, smooth};
use crate::{Array, apply};
use zyx_core::{
    BinaryOp, Conv1dOptions, Conv2dOptions, CrossEntropy, DType, Device, Interpolation, Pool,
    Pool2d, Reduction, Rng, Tensor, UnaryOp,
};

/// Points at which a unary op is smooth.
fn range(op: UnaryOp) -> (f64, f64) {
    use UnaryOp as U;
    match op {
        U::Recip | U::Sqrt | U::Log | U::Log2 => (0.4, 2.5),
        U::Log1p => (-0.5, 2.0),
        U::Asin | U::Acos => (-0.8, 0.8),
        U::Tan => (-1.0, 1.0),
        U::Abs => (0.2, 2.0),
        // Between two whole numbers and the half of them.
        U::Floor | U::Ceil | U::Round | U::Trunc => (1.1, 1.4),
        _ => (-1.5, 1.5),
    }
}

/// Every unary op of the table, and the activations.
pub fn unary(device: &Device) {
    let ops = UnaryOp::ALL.iter().filter(|op| op.domain().contains(DType::F64));
    let mut all: Vec<Smooth> = ops
        .map(|&op| smooth(op.name(), &[&[5]], range(op), move |x| apply::unary(op, &x[0])))
        .collect();
    all.push(smooth("abs below 0", &[&[4]], (-2.0, -0.2), |x| Ok(x[0].abs())));
    all.push(smooth("rsqrt", &[&[4]], (0.4, 2.0), |x| Ok(x[0].rsqrt())));
    let wide = (-2.0, 2.0);
    all.push(smooth("square", &[&[4]], wide, |x| Ok(x[0].square())));
    all.push(smooth("relu", &[&[6]], wide, |x| Ok(x[0].relu())));
    all.push(smooth("leaky_relu", &[&[6]], wide, |x| Ok(x[0].leaky_relu(0.1))));
    all.push(smooth("sigmoid", &[&[6]], wide, |x| Ok(x[0].sigmoid())));
    all.push(smooth("silu", &[&[6]], wide, |x| Ok(x[0].silu())));
    all.push(smooth("softplus", &[&[6]], wide, |x| Ok(x[0].softplus())));
    all.push(smooth("elu", &[&[6]], wide, |x| Ok(x[0].elu(1.5))));
    all.push(smooth("selu", &[&[6]], wide, |x| Ok(x[0].selu())));
    all.push(smooth("gelu", &[&[6]], wide, |x| Ok(x[0].gelu())));
    all.push(smooth("gelu_exact", &[&[6]], wide, |x| Ok(x[0].gelu_exact())));
    all.push(smooth("mish", &[&[6]], wide, |x| Ok(x[0].mish())));
    all.push(smooth("clamp", &[&[6]], wide, |x| x[0].clamp(-0.7, 0.9)));
    agree(device, all);
}

/// Every binary op of the table that has a gradient, with broadcasting; selection.
pub fn binary(device: &Device) {
    let ops = BinaryOp::ALL.iter().filter(|op| op.domain().contains(DType::F64));
    let ops = ops.filter(|op| !op.is_comparison());
    let mut all: Vec<Smooth> = ops
        .map(|&op| {
            let f = move |x: &[Tensor]| apply::binary(op, &x[0], &x[1]);
            let s = smooth(op.name(), &[&[2, 3], &[3]], (0.3, 1.9), f);
            // The remainder jumps where the quotient is whole.
            if op == BinaryOp::Rem { s.at(&[(&[2], &[2.3, -1.7]), (&[2], &[0.9, 0.7])]) } else { s }
        })
        .collect();
    all.push(smooth("div by a negative", &[&[3, 1], &[1, 4]], (-2.0, -0.4), |x| x[0].div(&x[1])));
    all.push(smooth("mul by itself", &[&[3]], (-2.0, 2.0), |x| x[0].mul(&x[0])));
    all.push(smooth("atan2 behind", &[&[4], &[4]], (-2.0, -0.3), |x| x[0].atan2(&x[1])));
    all.push(smooth("pow of a number", &[&[4]], (0.3, 2.0), |x| x[0].pow(2.7)));
    all.push(smooth("cubes", &[&[4]], (-2.0, 2.0), |x| x[0].pow(3.0)));
    all.push(smooth("pow 0", &[&[3]], (-1.0, 1.0), |x| x[0].pow(0.0)).once());
    all.push(smooth("lerp", &[&[4], &[4]], (0.2, 2.0), |x| x[0].lerp(&x[1], 0.3)));
    all.push(smooth("where", &[&[2, 3], &[3]], (-2.0, 2.0), |x| {
        x[0].lt(0.1)?.where_(x[0].exp(), &x[1].mul(&x[1])?)
    }));
    all.push(smooth("maximum of many", &[&[5], &[5]], (-2.0, 2.0), |x| {
        x[0].maximum(&x[1])?.minimum(x[1].add(0.5)?)
    }));
    agree(device, all);
}

/// Movement, joining, reductions, running sums, products, picking and placing.
pub fn structure(device: &Device) {
    let wide = (-2.0, 2.0);
    let one = |name: &str, f: fn(&Tensor) -> zyx_core::Result<Tensor>| {
        // Squared, so that the gradient depends on the point.
        smooth(name, &[&[2, 3, 2]], wide, move |x| f(&x[0].square()))
    };
    let mut all = vec![
        one("reshape", |x| x.reshape([4, 3])),
        one("permute", |x| x.permute([2, 0, 1])),
        one("expand", |x| x.slice(1, 1..2)?.expand([2, 4, 2])),
        one("pad", |x| x.pad([(1, 0), (0, 2), (1, 1)])),
        one("pad_with", |x| x.pad_with([(1, 0), (0, 2), (1, 1)], 3.0)),
        one("shrink", |x| x.shrink([(0, 1), (1, 3), (0, 2)])),
        one("flip", |x| x.flip([0, 1])?.add(x)),
        one("stride", |x| x.stride(1, 1, 2)),
        one("repeat", |x| x.repeat([2, 1, 3])),
        one("select_index", |x| x.select_index(1, -1)),
        one("tril", |x| x.tril(0)),
        one("sum", |x| x.sum([0, 2])),
        one("mean", |x| x.mean(1)),
        one("max", |x| x.max([1, 2])),
        one("min", |x| x.min(0)),
        one("prod", |x| x.prod(1)),
        one("var", |x| x.var([0, 1], 1)),
        one("std", |x| x.std(1, 0)),
        one("norm", |x| x.norm(1)),
        one("logsumexp", |x| x.logsumexp(..)),
        one("cumsum", |x| x.cumsum(1)),
        one("cumsum of the reverse", |x| x.flip(0)?.cumsum(0)),
        one("cast there and back", |x| x.cast(x.dtype()).contiguous().sum(1)),
        one("split and cat", |x| {
            let parts = x.split(2, 1)?;
            Tensor::cat(&[&parts[1], &parts[0], &parts[1]], 1)
        }),
        one("stack", |x| Tensor::stack(&[x, &x.exp()], 1)),
    ];
    all.push(
        smooth("prod with a zero", &[&[3]], wide, |x| x[0].prod(0))
            .at(&[(&[3], &[1.5, 0.0, -0.7])]),
    );
    all.push(
        smooth("prod with two zeros", &[&[3]], wide, |x| x[0].prod(0))
            .at(&[(&[3], &[0.0, 0.0, -0.7])]),
    );
    all.extend(products());
    all.extend(indexing());
    agree(device, all);
}

fn products() -> Vec<Smooth> {
    let wide = (-2.0, 2.0);
    let matmul =
        |name: &str, x: &[usize], y: &[usize]| smooth(name, &[x, y], wide, |x| x[0].matmul(&x[1]));
    vec![
        matmul("matmul", &[2, 3], &[3, 4]),
        matmul("batched matmul", &[2, 2, 3], &[3, 2]),
        matmul("matrix times vector", &[2, 3], &[3]),
        matmul("vector times matrix", &[3], &[3, 2]),
        matmul("dot", &[4], &[4]),
        smooth("x x'", &[&[2, 3]], wide, |x| x[0].matmul(&x[0].t())),
        smooth("two layers", &[&[2, 3], &[3, 3], &[3]], wide, |x| {
            x[0].matmul(&x[1])?.add(&x[2])?.tanh().matmul(&x[1].t())
        }),
    ]
}

fn indexing() -> Vec<Smooth> {
    let wide = (-2.0, 2.0);
    let index = |x: &Tensor, dims: &[usize], data: &[i64]| {
        // Out of range they gather zero and scatter nothing, and so do their gradients.
        let index = Array::ints(DType::I64, dims, data).tensor(x.device());
        index.map(|index| index.unchecked_indices())
    };
    vec![
        smooth("gather", &[&[3, 2]], wide, move |x| {
            let i = index(&x[0], &[4, 2], &[0, 2, 2, 1, -1, 0, 3, 2])?;
            x[0].square().gather(0, &i)
        }),
        smooth("index_select", &[&[3, 2]], wide, move |x| {
            let i = index(&x[0], &[5], &[2, 0, 2, 7, 1])?;
            x[0].square().index_select(0, &i)
        }),
        smooth("embedding", &[&[4, 2]], wide, move |x| {
            let i = index(&x[0], &[2, 2], &[3, 3, 0, 9])?;
            x[0].square().embedding(&i)
        }),
        smooth("scatter_add", &[&[3], &[5]], wide, move |x| {
            let i = index(&x[0], &[5], &[1, 1, 0, 5, 2])?;
            x[0].square().scatter_add(0, &i, &x[1].square())
        }),
        smooth("scatter", &[&[3], &[2]], wide, move |x| {
            let i = index(&x[0], &[2], &[2, 0])?;
            x[0].square().scatter(0, &i, &x[1].square())
        }),
        smooth("scatter to one place twice", &[&[3], &[3]], wide, move |x| {
            let i = index(&x[0], &[3], &[2, 0, 2])?;
            x[0].square().scatter(0, &i, &x[1].square())
        }),
    ]
}

/// Softmax, normalisations, convolutions, pooling, losses, dropout.
pub fn layers(device: &Device) {
    let wide = (-2.0, 2.0);
    let w = |x: &[Tensor]| (Some(x[1].clone()), Some(x[2].clone()));
    let mut all = vec![
        smooth("softmax", &[&[2, 4]], wide, |x| x[0].softmax(1)),
        smooth("log_softmax", &[&[2, 4]], wide, |x| x[0].log_softmax(-1)),
        smooth("layer_norm", &[&[2, 4], &[4], &[4]], wide, move |x| {
            let (w, b) = w(x);
            x[0].layer_norm(1, w.as_ref(), b.as_ref(), 1e-5)
        }),
        smooth("rms_norm", &[&[2, 4], &[4]], wide, |x| x[0].rms_norm(1, Some(&x[1]), 1e-5)),
        smooth("group_norm", &[&[2, 4, 2], &[4], &[4]], wide, move |x| {
            let (w, b) = w(x);
            x[0].group_norm(2, w.as_ref(), b.as_ref(), 1e-5)
        }),
        smooth("batch_norm", &[&[3, 2, 2], &[2], &[2]], wide, move |x| {
            let (w, b) = w(x);
            Ok(x[0].batch_norm(w.as_ref(), b.as_ref(), 1e-5)?.output)
        }),
        smooth("batch_norm_with", &[&[3, 2, 2], &[2], &[2], &[2]], wide, |x| {
            x[0].batch_norm_with(&x[1], &(x[2].square() + 0.5), Some(&x[3]), None, 1e-5)
        }),
        smooth("normalize", &[&[2, 3]], wide, |x| x[0].normalize(1, 1e-12)),
        smooth("dropout", &[&[12]], wide, |x| x[0].square().dropout(0.4, &mut Rng::seed(3))),
    ];
    let conv = |name: &str, x: &[usize], k: &[usize], options: Conv2dOptions| {
        smooth(name, &[x, k, &k[..1]], wide, move |x| x[0].conv2d(&x[1], Some(&x[2]), options))
    };
    let plain = Conv2dOptions::default();
    all.push(conv("conv2d", &[1, 2, 4, 3], &[2, 2, 2, 2], plain));
    let strided = Conv2dOptions { stride: [2, 1], padding: [1, 1], ..plain };
    all.push(conv("strided conv2d", &[1, 1, 4, 4], &[2, 1, 3, 3], strided));
    let grouped = Conv2dOptions { groups: 2, dilation: [1, 2], ..plain };
    all.push(conv("grouped conv2d", &[1, 2, 2, 4], &[2, 1, 2, 2], grouped));
    let line = Conv1dOptions { stride: 2, padding: 1, ..Default::default() };
    all.push(smooth("conv1d", &[&[2, 2, 5], &[3, 2, 2], &[3]], wide, move |x| {
        x[0].conv1d(&x[1], Some(&x[2]), line)
    }));
    all.push(smooth("adaptive_avg_pool2d", &[&[1, 5, 4]], wide, |x| {
        x[0].square().adaptive_avg_pool2d([3, 2])
    }));
    all.push(smooth("global_avg_pool2d", &[&[2, 3, 2]], wide, |x| {
        x[0].square().global_avg_pool2d()
    }));
    all.push(smooth("max_unpool3d", &[&[1, 2, 2, 4]], wide, |x| {
        let (y, at) = x[0].square().max_pool3d_with_indices(Pool::new([1, 2, 2]))?;
        y.mul(&y)?.max_unpool3d(&at, [2, 2, 4])
    }));
    for mode in [Interpolation::Nearest, Interpolation::Linear, Interpolation::Cubic] {
        all.push(smooth(&format!("interpolate_by {mode:?}"), &[&[1, 3, 4]], wide, move |x| {
            x[0].square().interpolate_by(&[1.5, 0.7], mode, false)
        }));
    }
    let pool = Pool2d::new([2, 2]);
    let overlapping = Pool2d { stride: [1, 1], padding: [1, 1], ..pool };
    for (name, pool) in [("tiles", pool), ("overlapping windows", overlapping)] {
        all.push(smooth(&format!("max_pool2d, {name}"), &[&[1, 4, 4]], wide, move |x| {
            x[0].square().max_pool2d(pool)
        }));
        all.push(smooth(&format!("avg_pool2d, {name}"), &[&[1, 4, 4]], wide, move |x| {
            x[0].square().avg_pool2d(pool)
        }));
    }
    all.extend(losses());
    agree(device, all);
}

fn losses() -> Vec<Smooth> {
    let wide = (-2.0, 2.0);
    let classes = |x: &Tensor| Array::ints(DType::I64, &[3], &[2, 0, 1]).tensor(x.device());
    let pair: &[&[usize]] = &[&[2, 3], &[2, 3]];
    vec![
        smooth("cross_entropy", &[&[3, 4]], wide, move |x| x[0].cross_entropy(&classes(&x[0])?)),
        smooth("smoothed cross_entropy", &[&[3, 4]], wide, move |x| {
            let options = CrossEntropy { label_smoothing: 0.1, ..Default::default() };
            x[0].cross_entropy_with(&classes(&x[0])?, options)
        }),
        smooth("mse_loss", pair, wide, |x| x[0].mse_loss(&x[1], Reduction::Mean)),
        smooth("l1_loss", pair, wide, |x| x[0].l1_loss(&x[1], Reduction::Sum)),
        smooth("huber_loss", pair, wide, |x| x[0].huber_loss(&x[1], 0.8, Reduction::None)),
        smooth("smooth_l1_loss", pair, wide, |x| x[0].smooth_l1_loss(&x[1], 0.8, Reduction::Mean)),
        smooth("bce_loss", pair, (0.1, 0.9), |x| x[0].bce_loss(&x[1], Reduction::Mean)),
        smooth("bce_with_logits_loss", pair, (0.1, 0.9), |x| {
            x[0].bce_with_logits_loss(&x[1], Reduction::Mean)
        }),
        smooth("kl_div_loss", pair, (0.1, 0.9), |x| x[0].kl_div_loss(&x[1], Reduction::Mean)),
    ]
}
