//! The gradient law ([`super::law`]) for norms, softmax, statistics and losses of several elements,
//! as a table of what PyTorch 2 gives on the CPU; which methods have rows at all; and what follows
//! from the law: models learn from zero, signs of zeros stay, small whole powers are products.

use super::law::{self, FLOATS, INF, Of, agrees, devices, gradients, numbers, tensor, vector};
use super::pairs;
use std::collections::BTreeSet;
use zyx_nn::Forward;
use zyx_tests::sources::{root, tensor_methods};
use zyx_tests::zyx_core::{
    CrossEntropy, DType, Device, MatrixNorm, MultiMargin, Pool, Reduction, Result, Tensor,
    TripletMargin,
};

/// A function, where, and the gradient of the sum of its elements there.
type Known =
    (&'static str, fn(&Tensor) -> Result<Tensor>, &'static [usize], &'static [f64], &'static [f64]);

const EACH: Reduction = Reduction::None;

/// The elements times 1, 2, ...
fn weighed(y: Tensor) -> Result<Tensor> {
    let weights = Tensor::iota(y.numel(), DType::I64, y.device()).add(1)?.cast(y.dtype());
    y.flatten().mul(weights)
}

/// Constants beside a tensor.
fn beside(x: &Tensor, data: &[f64], dims: &[usize]) -> Result<Tensor> {
    tensor(data, dims, x.dtype(), x.device())
}

fn classes(x: &Tensor, data: &[i64], dims: &[usize]) -> Result<Tensor> {
    Tensor::from_slice(data, dims, x.device())
}

const KNOWN: &[Known] = &[
    ("norm", |x| x.norm(..), &[2], &[0.0, 0.0], &[0.0, 0.0]),
    // Of equal elements the first, where PyTorch chooses one.
    (
        "max_pool1d of equal",
        |x| x.max_pool1d(Pool::new([2])),
        &[1, 1, 4],
        &[0.0; 4],
        &[1.0, 0.0, 1.0, 0.0],
    ),
    (
        "max_pool2d of equal",
        |x| x.max_pool2d(Pool::new([2, 2])),
        &[1, 1, 2, 2],
        &[0.0; 4],
        &[1.0, 0.0, 0.0, 0.0],
    ),
    (
        "max_pool2d, overlapping",
        |x| x.max_pool2d(Pool { stride: [1, 1], padding: [1, 1], ..Pool::new([2, 2]) }),
        &[1, 1, 2, 2],
        &[1.0, 1.0, 0.0, 1.0],
        &[4.0, 2.0, 1.0, 2.0],
    ),
    (
        "max_pool2d_with_indices of equal",
        |x| Ok(x.max_pool2d_with_indices(Pool::new([2, 2]))?.0),
        &[1, 1, 2, 2],
        &[0.0, 1.0, 1.0, 1.0],
        &[0.0, 1.0, 0.0, 0.0],
    ),
    (
        "max_pool3d of equal",
        |x| x.max_pool3d(Pool::new([2; 3])),
        &[1, 1, 2, 2, 2],
        &[0.0; 8],
        &[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    ),
    (
        "adaptive_max_pool2d of equal",
        |x| x.adaptive_max_pool2d([1, 1]),
        &[1, 1, 2, 2],
        &[0.0, 1.0, 1.0, 0.0],
        &[0.0, 1.0, 0.0, 0.0],
    ),
    // Each its share, where PyTorch chooses none.
    ("amax of equal", |x| x.amax(..), &[4], &[1.0; 4], &[0.25; 4]),
    ("amin of equal", |x| x.amin(..), &[4], &[1.0; 4], &[0.25; 4]),
    ("floor_divide", |x| x.floor_divide(0.5), &[2], &[1.2, -3.0], &[0.0, 0.0]),
    ("trunc_divide", |x| x.trunc_divide(0.5), &[2], &[1.2, -3.0], &[0.0, 0.0]),
    ("norm, in part", |x| x.norm(1), &[2, 2], &[0.0, 0.0, 3.0, 4.0], &[0.0, 0.0, 0.6, 0.8]),
    ("norm_p 0.5", |x| x.norm_p(0.5, ..), &[2], &[0.0, 3.0], &[0.0, 1.0]),
    ("norm_p 0.5 of zeros", |x| x.norm_p(0.5, ..), &[2], &[0.0, -0.0], &[0.0, 0.0]),
    ("norm_p 1", |x| x.norm_p(1.0, ..), &[2], &[0.0, -3.0], &[0.0, -1.0]),
    ("norm_p 1.5 of zeros", |x| x.norm_p(1.5, ..), &[2], &[0.0, 0.0], &[0.0, 0.0]),
    ("norm_p 3", |x| x.norm_p(3.0, ..), &[2], &[0.0, -3.0], &[0.0, -1.0]),
    ("norm_p 3 of zeros", |x| x.norm_p(3.0, ..), &[2], &[0.0, 0.0], &[0.0, 0.0]),
    ("norm_p inf of zeros", |x| x.norm_p(INF, ..), &[2], &[0.0, 0.0], &[0.0, 0.0]),
    ("norm_p -inf", |x| x.norm_p(-INF, ..), &[2], &[0.0, 3.0], &[0.0, 0.0]),
    ("norm_p -1", |x| x.norm_p(-1.0, ..), &[2], &[0.0, 3.0], &[0.0, 0.0]),
    ("norm_p 0", |x| x.norm_p(0.0, ..), &[2], &[0.0, 3.0], &[0.0, 0.0]),
    ("vector_norm 0.5", |x| x.vector_norm(0.5, ..), &[2], &[0.0, 3.0], &[0.0, 1.0]),
    ("vector_norm 1.5 of zeros", |x| x.vector_norm(1.5, ..), &[2], &[0.0, 0.0], &[0.0, 0.0]),
    ("vector_norm 4 of zeros", |x| x.vector_norm(4.0, ..), &[2], &[0.0, 0.0], &[0.0, 0.0]),
    ("vector_norm -1 of zeros", |x| x.vector_norm(-1.0, ..), &[2], &[0.0, 0.0], &[0.0, 0.0]),
    ("matrix_norm", |x| x.matrix_norm(MatrixNorm::Frobenius), &[2, 2], &[0.0; 4], &[0.0; 4]),
    ("std of equal numbers", |x| x.std(.., 1), &[3], &[2.0; 3], &[0.0; 3]),
    ("std_mean of equal numbers", |x| Ok(x.std_mean(.., 0)?.0), &[3], &[2.0; 3], &[0.0; 3]),
    ("normalize", |x| x.normalize(.., 1e-3), &[2], &[0.0, 0.0], &[1e3, 1e3]),
    (
        "cosine_similarity",
        |x| x.cosine_similarity(&beside(x, &[3.0, 4.0], &[2])?, -1, 1e-2),
        &[2],
        &[0.0, 0.0],
        &[60.0, 80.0],
    ),
    (
        "pairwise_distance",
        |x| x.pairwise_distance(&x.detach(), 2.0, 0.0),
        &[2],
        &[1.0, 2.0],
        &[0.0, 0.0],
    ),
    (
        "pairwise_distance 1",
        |x| x.pairwise_distance(&x.detach(), 1.0, 0.0),
        &[2],
        &[1.0, 2.0],
        &[0.0, 0.0],
    ),
    (
        "pairwise_distance 1.5",
        |x| x.pairwise_distance(&x.detach(), 1.5, 0.0),
        &[2],
        &[1.0, 2.0],
        &[0.0, 0.0],
    ),
    ("cdist", |x| x.cdist(&x.detach(), 2.0), &[1, 2], &[1.0, 2.0], &[0.0, 0.0]),
    ("pdist", |x| x.pdist(2.0), &[2, 2], &[1.0, 2.0, 1.0, 2.0], &[0.0; 4]),
    ("softmax", |x| weighed(x.softmax(-1)?), &[3], &[-INF, 0.0, 0.0], &[0.0, -0.25, 0.25]),
    ("softmin", |x| weighed(x.softmin(-1)?), &[3], &[INF, 0.0, 0.0], &[0.0, 0.25, -0.25]),
    (
        "log_softmax",
        |x| x.log_softmax(-1)?.narrow(0, 1, 1),
        &[3],
        &[-INF, 0.0, 0.0],
        &[0.0, 0.5, -0.5],
    ),
    ("logsumexp", |x| x.logsumexp(-1), &[2], &[-INF, 0.0], &[0.0, 1.0]),
    // PyTorch: NaN.
    ("logsumexp of nothing", |x| x.logsumexp(-1), &[2], &[-INF, -INF], &[0.0, 0.0]),
    (
        "layer_norm",
        |x| weighed(x.layer_norm(-1, None, None, 1e-4)?),
        &[2],
        &[2.0, 2.0],
        &[-50.0, 50.0],
    ),
    ("rms_norm", |x| weighed(x.rms_norm(-1, None, 1e-4)?), &[2], &[0.0, 0.0], &[100.0, 200.0]),
    (
        "group_norm",
        |x| weighed(x.group_norm(1, None, None, 1e-4)?),
        &[1, 2],
        &[2.0, 2.0],
        &[-50.0, 50.0],
    ),
    (
        "batch_norm",
        |x| weighed(x.batch_norm(None, None, 1e-4)?.output),
        &[2, 1],
        &[2.0, 2.0],
        &[-50.0, 50.0],
    ),
    (
        "batch_norm_with",
        |x| {
            x.batch_norm_with(
                &beside(x, &[0.0], &[1])?,
                &beside(x, &[0.0], &[1])?,
                None,
                None,
                1e-4,
            )
        },
        &[1, 1],
        &[0.0],
        &[100.0],
    ),
    ("quantile", |x| x.quantile(&[0.3], 0), &[4], &[1.0, 2.0, 5.0, 3.0], &[0.1, 0.9, 0.0, 0.0]),
    // Of equal neighbours PyTorch's order is another one.
    (
        "quantile of equal numbers",
        |x| x.quantile(&[0.4], 0),
        &[4],
        &[1.0; 4],
        &[0.0, 0.8, 0.2, 0.0],
    ),
    ("quantile of infinities", |x| x.quantile(&[0.5], 0), &[3], &[1.0, 2.0, INF], &[0.0, 1.0, 0.0]),
    (
        "prelu",
        |x| x.prelu(&beside(x, &[0.25], &[1])?),
        &[4],
        &[-2.0, 0.0, 3.0, INF],
        &[0.25, 0.25, 1.0, 1.0],
    ),
    (
        "prelu by the weight",
        |w| beside(w, &[-2.0, 0.0, 3.0, INF], &[4])?.prelu(w),
        &[1],
        &[0.25],
        &[-2.0],
    ),
    ("glu", |x| x.glu(0), &[2], &[3.0, -1000.0], &[0.0, 0.0]),
    (
        "cross_entropy",
        |x| x.cross_entropy(&classes(x, &[1], &[])?),
        &[3],
        &[-INF, 0.0, 0.0],
        &[0.0, -0.5, 0.5],
    ),
    (
        "cross_entropy_with",
        |x| {
            x.cross_entropy_with(
                &classes(x, &[1], &[])?,
                CrossEntropy {
                    ignore_index: Some(1),
                    reduction: Reduction::Sum,
                    ..Default::default()
                },
            )
        },
        &[3],
        &[-INF, 0.0, 0.0],
        &[0.0; 3],
    ),
    (
        "cross_entropy_weighted",
        |x| {
            x.cross_entropy_weighted(
                &classes(x, &[1], &[])?,
                Some(&beside(x, &[1.0; 3], &[3])?),
                CrossEntropy::default(),
            )
        },
        &[3],
        &[-INF, 0.0, 0.0],
        &[0.0, -0.5, 0.5],
    ),
    (
        "nll_loss",
        |x| x.nll_loss(&classes(x, &[1], &[])?, CrossEntropy::default()),
        &[3],
        &[-INF, 0.0, 0.0],
        &[0.0, -1.0, 0.0],
    ),
    (
        "nll_loss_weighted",
        |x| {
            x.nll_loss_weighted(
                &classes(x, &[1], &[])?,
                &beside(x, &[1.0; 3], &[3])?,
                CrossEntropy::default(),
            )
        },
        &[3],
        &[-INF, 0.0, 0.0],
        &[0.0, -1.0, 0.0],
    ),
    (
        "multi_margin_loss",
        |x| x.multi_margin_loss(&classes(x, &[0], &[])?, MultiMargin::default()),
        &[3],
        &[1.0, 0.0, 2.0],
        &[-1.0 / 3.0, 0.0, 1.0 / 3.0],
    ),
    (
        "multilabel_margin_loss",
        |x| x.multilabel_margin_loss(&classes(x, &[0, -1, 1], &[3])?, EACH),
        &[3],
        &[1.0, 0.0, 2.0],
        &[-1.0 / 3.0, 0.0, 1.0 / 3.0],
    ),
    (
        "triplet_margin_loss",
        |x| {
            let far = beside(x, &[1.0, 0.0], &[1, 2])?;
            x.triplet_margin_loss(
                &far,
                &far,
                TripletMargin { margin: 0.0, eps: 0.0, ..Default::default() },
            )
        },
        &[1, 2],
        &[0.0, 0.0],
        &[0.0, 0.0],
    ),
    (
        "cosine_embedding_loss",
        |x| {
            x.cosine_embedding_loss(
                &beside(x, &[0.0, 1.0], &[1, 2])?,
                &beside(x, &[-1.0], &[1])?,
                0.0,
                EACH,
            )
        },
        &[1, 2],
        &[1.0, 0.0],
        &[0.0, 0.0],
    ),
];

#[test]
fn derivatives_of_several_elements() -> Result<()> {
    let mut wrong = Vec::new();
    for device in devices() {
        for dtype in FLOATS {
            for &(name, f, dims, data, want) in KNOWN {
                let x = tensor(data, dims, dtype, &device)?.tracked();
                let got = numbers(&gradients(&f(&x)?, &[&x])?[0])?;
                if !got.iter().zip(want).all(|(got, want)| agrees(dtype, Of::One, *got, *want)) {
                    wrong.push(format!(
                        "{name} of {dtype} on {}: {got:?}, not {want:?}",
                        device.spec()
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Methods of the files of functions, activations, losses and norms without a row, and why.
const NO_ROW: &[(&str, &[&str])] = &[
    (
        "gives no floats, or floats without a gradient",
        &[
            "signbit",
            "isnan",
            "isinf",
            "isfinite",
            "isposinf",
            "isneginf",
            "logical_xor",
            "gcd",
            "lcm",
            "bitwise_left_shift",
            "bitwise_right_shift",
            "isclose",
            "allclose",
            "equal",
        ],
    ),
    ("sums of products and quotients, which have rows", &["addcmul", "addcdiv"]),
    ("its distance is a constant to gradients", &["nextafter"]),
    ("the derivative of digamma, which has a row", &["polygamma"]),
    ("has no edge: what is impossible is a large number", &["ctc_loss"]),
];

#[test]
fn every_function_has_a_row() {
    let files = [
        "activation",
        "threshold",
        "math",
        "math_binary",
        "loss",
        "loss_margin",
        "loss_likelihood",
        "loss_ctc",
        "distance",
        "normalize",
    ];
    let known = KNOWN.iter().map(|row| row.0);
    let names: Vec<&str> = law::names().into_iter().chain(pairs::names()).chain(known).collect();
    let rows: BTreeSet<&str> =
        names.iter().map(|name| name.split([' ', ',']).next().unwrap_or(name)).collect();
    let excused: Vec<&str> = NO_ROW.iter().flat_map(|(_, names)| *names).copied().collect();
    let methods = tensor_methods();
    let methods: BTreeSet<&str> = methods
        .iter()
        .filter(|(file, _)| files.contains(&file.as_str()))
        .map(|(_, name)| name.as_str())
        .collect();
    let missing: Vec<_> =
        methods.iter().filter(|name| !rows.contains(*name) && !excused.contains(name)).collect();
    assert!(missing.is_empty(), "without a row: {missing:?}");
    let idle: Vec<_> =
        excused.iter().filter(|name| rows.contains(*name) || !methods.contains(*name)).collect();
    assert!(idle.is_empty(), "excused in vain: {idle:?}");
    assert!(methods.len() > 60, "{}", methods.len());
}

/// Each activation of `nn` with the method that it is.
type Layer = (&'static str, Box<dyn Forward>, fn(&Tensor) -> Result<Tensor>);

fn layers(device: &Device) -> Result<Vec<Layer>> {
    fn layer(
        name: &'static str,
        layer: impl Forward + 'static,
        f: fn(&Tensor) -> Result<Tensor>,
    ) -> Layer {
        (name, Box::new(layer), f)
    }
    Ok(vec![
        layer("Relu", zyx_nn::Relu, |x| Ok(x.relu())),
        layer("Gelu", zyx_nn::Gelu, |x| Ok(x.gelu())),
        layer("GeluExact", zyx_nn::GeluExact, |x| Ok(x.gelu_exact())),
        layer("Silu", zyx_nn::Silu, |x| Ok(x.silu())),
        layer("Mish", zyx_nn::Mish, |x| Ok(x.mish())),
        layer("Sigmoid", zyx_nn::Sigmoid, |x| Ok(x.sigmoid())),
        layer("Tanh", zyx_nn::Tanh, |x| Ok(x.tanh())),
        layer("Selu", zyx_nn::Selu, |x| Ok(x.selu())),
        layer("Softplus", zyx_nn::Softplus, |x| Ok(x.softplus())),
        layer("Relu6", zyx_nn::Relu6, |x| Ok(x.relu6())),
        layer("LogSigmoid", zyx_nn::LogSigmoid, |x| Ok(x.logsigmoid())),
        layer("Softsign", zyx_nn::Softsign, |x| Ok(x.softsign())),
        layer("Tanhshrink", zyx_nn::Tanhshrink, |x| Ok(x.tanhshrink())),
        layer("Hardsigmoid", zyx_nn::Hardsigmoid, |x| Ok(x.hardsigmoid())),
        layer("Hardswish", zyx_nn::Hardswish, |x| Ok(x.hardswish())),
        layer("LeakyRelu", zyx_nn::LeakyRelu::default(), |x| Ok(x.leaky_relu(0.01))),
        layer("Elu", zyx_nn::Elu::default(), |x| Ok(x.elu(1.0))),
        layer("Celu", zyx_nn::Celu::default(), |x| Ok(x.celu(1.0))),
        layer("Hardtanh", zyx_nn::Hardtanh::default(), |x| Ok(x.hardtanh(-1.0, 1.0))),
        layer("Hardshrink", zyx_nn::Hardshrink::default(), |x| Ok(x.hardshrink(0.5))),
        layer("Softshrink", zyx_nn::Softshrink::default(), |x| Ok(x.softshrink(0.5))),
        layer("Threshold", zyx_nn::Threshold::default(), |x| Ok(x.threshold(0.0, 0.0))),
        layer("Softmax", zyx_nn::Softmax::default(), |x| x.softmax(-1)),
        layer("LogSoftmax", zyx_nn::LogSoftmax::default(), |x| x.log_softmax(-1)),
        layer("Softmin", zyx_nn::Softmin::default(), |x| x.softmin(-1)),
        layer("Glu", zyx_nn::Glu::default(), |x| x.glu(-1)),
        layer("Swiglu", zyx_nn::Swiglu::default(), |x| {
            x.narrow(-1, 0, 4)?.mul(x.narrow(-1, 4, 4)?.silu())
        }),
        layer("PRelu", zyx_nn::PRelu::new(1, &mut zyx_nn::Init::new(0, device))?, |x| {
            x.prelu(&vector(&[0.25], x.dtype(), x.device())?)
        }),
    ])
}

#[test]
fn activations_of_layers_are_those_of_tensors() -> Result<()> {
    let device = super::device();
    let layers = layers(&device)?;
    let text = std::fs::read_to_string(root().join("nn/src/activation.rs")).expect("a source file");
    let named = text.lines().filter_map(|line| {
        let row = line.strip_prefix("    ").or_else(|| line.strip_prefix("pub struct "))?;
        let (name, rest) = row.split_once(' ')?;
        let starts = name.starts_with(char::is_uppercase) && (rest.starts_with('|') || rest == "{");
        (starts && name.chars().all(char::is_alphanumeric)).then_some(name)
    });
    let named: BTreeSet<&str> = named.collect();
    let rows: BTreeSet<&str> = layers.iter().map(|layer| layer.0).collect();
    assert_eq!(named, rows, "the activations of `nn`, and those compared here");
    let at = [0.0, -0.0, 0.5, -0.5, 1.0, -100.0, 3e38, -3e38];
    for (name, layer, f) in &layers {
        let x = vector(&at, DType::F32, &device)?.tracked();
        let ys = [layer.forward(&x)?, f(&x)?];
        let [got, want] =
            [&ys[0], &ys[1]].map(|y| gradients(y, &[&x]).and_then(|dx| numbers(&dx[0])));
        let (got, want) = (got?, want?);
        assert!(
            got == want && got.iter().all(|dx| dx.is_finite()),
            "{name}: {got:?}, not {want:?}"
        );
    }
    Ok(())
}

#[test]
fn models_learn_from_zero() -> Result<()> {
    let losses: &[(&str, fn(&Tensor, &Tensor) -> Result<Tensor>)] = &[
        ("bce_with_logits_loss", |x, y| x.bce_with_logits_loss(y, Reduction::Mean)),
        ("bce_loss", |x, y| x.sigmoid().bce_loss(y, Reduction::Mean)),
        ("multilabel_soft_margin_loss", |x, y| {
            x.unsqueeze(-1)?.multilabel_soft_margin_loss(&y.unsqueeze(-1)?, None, Reduction::Mean)
        }),
        ("soft_margin_loss", |x, y| x.soft_margin_loss(&y.mul(2.0)?.sub(1.0)?, Reduction::Mean)),
        ("logsigmoid", |x, y| x.mul(y.mul(2.0)?.sub(1.0)?)?.logsigmoid().mean(..)?.neg().mul(1.0)),
        ("softplus", |x, y| x.mul(y.mul(-2.0)?.add(1.0)?)?.softplus().mean(..)),
        ("elu", |x, y| x.mul(y.mul(-2.0)?.add(1.0)?)?.elu(1.0).add(1.0)?.mean(..)),
    ];
    for device in devices() {
        for (name, loss) in losses {
            let x = tensor(
                &[1.0, 2.0, 2.0, 1.0, 1.5, 1.5, -1.0, -2.0, -2.0, -1.0, -1.5, -1.5],
                &[6, 2],
                DType::F32,
                &device,
            )?;
            let y = vector(&[1.0, 1.0, 1.0, 0.0, 0.0, 0.0], DType::F32, &device)?;
            let mut w = vector(&[0.0, 0.0], DType::F32, &device)?;
            let mut last = f32::INFINITY;
            for _ in 0..60 {
                let tracked = w.tracked();
                let value = loss(&x.matmul(&tracked)?, &y)?;
                let dw = gradients(&value, &[&tracked])?.remove(0);
                w = w.sub(dw.mul(0.5)?)?.detach();
                Tensor::realize_all([&w, &value])?;
                last = value.item::<f32>()?;
            }
            assert!(last < 0.1, "{name} on {}: {last}", device.spec());
        }
    }
    Ok(())
}

#[test]
fn odd_functions_keep_the_sign_of_zero() -> Result<()> {
    let odd: &[(&str, fn(&Tensor) -> Tensor)] = &[
        ("sin", Tensor::sin),
        ("tan", Tensor::tan),
        ("asin", Tensor::asin),
        ("atan", Tensor::atan),
        ("sinh", Tensor::sinh),
        ("tanh", Tensor::tanh),
        ("erf", Tensor::erf),
        ("expm1", Tensor::expm1),
        ("log1p", Tensor::log1p),
        ("asinh", Tensor::asinh),
        ("atanh", Tensor::atanh),
        ("erfinv", Tensor::erfinv),
        ("sqrt", Tensor::sqrt),
        ("trunc", Tensor::trunc),
        ("softsign", Tensor::softsign),
        ("elu", |x| x.elu(1.5)),
        ("celu", |x| x.celu(1.5)),
        ("selu", Tensor::selu),
        ("silu", Tensor::silu),
        ("leaky_relu", |x| x.leaky_relu(0.1)),
        ("pow 3", |x| x.pow(3).expect("a number")),
        ("remainder", |x| {
            x.remainder(x.ones_like().copysign(x).expect("of one shape")).expect("of one shape")
        }),
    ];
    for device in devices() {
        for dtype in FLOATS {
            let x = vector(&[0.0, -0.0], dtype, &device)?;
            for (name, f) in odd {
                let y = numbers(&f(&x))?;
                let signs = [y[0].is_sign_negative(), y[1].is_sign_negative()];
                assert!(
                    y == [0.0, 0.0] && signs == [false, true],
                    "{name} of {dtype} on {}: {y:?}",
                    device.spec()
                );
            }
            // The sign of a remainder, that of a zero too, is the divisor's.
            let x = vector(&[-3.0, 3.0, -0.0, 0.0, 6.0], dtype, &device)?;
            for (by, negative) in [(3.0, false), (-3.0, true)] {
                let y = numbers(&x.remainder(by)?)?;
                assert!(
                    y.iter().all(|y| *y == 0.0 && y.is_sign_negative() == negative),
                    "{dtype}: {y:?}"
                );
            }
        }
    }
    Ok(())
}

#[test]
fn small_whole_powers_are_products() -> Result<()> {
    for device in devices() {
        let data = [3.0, -2.0, 1.1, -0.7, 0.0, -0.0, 1e3, INF];
        for dtype in [DType::F32, DType::F64] {
            let x = vector(&data, dtype, &device)?.tracked();
            let products = |n: i32| (1..n).try_fold(x.clone(), |y, _| y.mul(&x));
            let cube = products(3)?;
            assert_eq!(numbers(&x.pow(3)?)?, numbers(&cube)?, "{dtype}");
            assert_eq!(numbers(&x.pow(-3.0)?)?, numbers(&cube.recip())?, "{dtype}");
            for n in 2..=8 {
                // Small whole numbers have exact products in any order.
                let exact = (f64::from(n) * 2f64.powi(n - 1), 3f64.powi(n));
                let y = x.pow(n)?;
                assert_eq!(numbers(&y)?[..2], [exact.1, (-2f64).powi(n)], "{dtype} {n}");
                let dx = numbers(&gradients(&y, &[&x])?[0])?;
                assert_eq!(dx[1], exact.0 * if n % 2 == 0 { -1.0 } else { 1.0 }, "{dtype} {n}");
            }
        }
        let x = Tensor::new([3i32, -2, 0, 1 << 20], &device)?;
        assert_eq!(x.pow(5)?.to_vec::<i32>()?, [243, -32, 0, 0]);
        assert_eq!(x.pow(-1)?.to_vec::<i32>()?, [0, 0, 0, 0]);
    }
    Ok(())
}
