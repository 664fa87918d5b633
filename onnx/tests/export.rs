//! Exported functions, loaded again: the model computes what the function does.
//!
//! With `ZYX_ONNX_EXPORT` set to a folder, each model is written there with its inputs and results (`model.onnx`, and
//! `values-0.safetensors` and so on for each choice of named sizes), for `scripts/onnx_export.py`.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;
use zyx_core::tensor::Steps;
use zyx_core::{
    Attention, Conv1dOptions, Conv2dOptions, ConvTransposeOptions, DType, Device, Error,
    Interpolation, Pool2d, Result, Rng, Runtime, Tensor,
};
use zyx_nn::{
    AttentionMask, BatchNorm2d, Conv2d, ConvTranspose1d, Embedding, Forward, Gru, Init, LayerNorm,
    Linear, Lstm, Module, Param, RecurrentOptions, RmsNorm, Rnn, TransformerActivation,
    TransformerEncoder, TransformerOptions, safetensors,
};
use zyx_onnx::{Dim, Export, Exported, Model};

fn device() -> Device {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    let open = || {
        let runtime = Runtime::default();
        runtime.register(zyx_backend_cpu::Cpu::default());
        runtime.device("cpu").unwrap()
    };
    DEVICE.get_or_init(open).clone()
}

/// Extents: numbers, or names with the size that a model is run with.
#[derive(Clone, Copy)]
enum Extent {
    Is(usize),
    Named(&'static str, usize),
}
use Extent::{Is, Named};

impl Extent {
    fn size(self) -> usize {
        match self {
            Is(n) | Named(_, n) => n,
        }
    }
}

impl From<Extent> for Dim {
    fn from(extent: Extent) -> Dim {
        match extent {
            Is(n) => n.into(),
            Named(name, _) => name.into(),
        }
    }
}

type Input = (&'static str, DType, Vec<Extent>);

/// Numbers from -2 to 2, integers from 0 to 5, and bools.
fn numbers(dtype: DType, extents: &[Extent], rng: &mut Rng, device: &Device) -> Tensor {
    let dims: Vec<usize> = extents.iter().map(|extent| extent.size()).collect();
    let x = Tensor::rand(dims, DType::F32, rng, device).unwrap();
    let x = match dtype.is_float() {
        true => x.mul(4.0).unwrap().sub(2.0).unwrap(),
        false => x.mul(if dtype == DType::Bool { 2.0 } else { 6.0 }).unwrap().floor(),
    };
    let x = x.cast(dtype);
    x.realize().unwrap();
    x
}

/// Exports a function and compares what the model computes with what the function does.
fn compare(
    what: &str,
    export: Export,
    inputs: &[Input],
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
) -> Exported {
    compare_all(what, export, &[inputs], f)
}

/// As [`compare`], with inputs that differ in the sizes of named extents.
fn compare_all(
    what: &str,
    export: Export,
    all: &[&[Input]],
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
) -> Exported {
    let device = device();
    let names = |n: usize| (0..n).map(|i| format!("y{i}"));
    let named = |x: &[Tensor]| {
        let y = f(x)?;
        Ok(names(y.len()).zip(y).collect::<Vec<(String, Tensor)>>())
    };
    let export = all[0].iter().fold(export, |export, (name, dtype, extents)| {
        export.input(name, *dtype, extents.iter().map(|&extent| extent.into()))
    });
    let exported = export.trace(named).unwrap_or_else(|error| panic!("{what}: {error}"));
    let bytes = exported.to_bytes();
    let model = Model::from_bytes(bytes.clone(), &device).unwrap_or_else(|e| panic!("{what}: {e}"));
    let mut rng = Rng::seed(7);
    for (i, inputs) in all.iter().enumerate() {
        let given: Vec<Tensor> = inputs
            .iter()
            .map(|(_, dtype, extents)| numbers(*dtype, extents, &mut rng, &device))
            .collect();
        let run = inputs.iter().zip(&given).map(|(input, x)| (input.0, x.clone()));
        let got = model.run(run).unwrap_or_else(|error| panic!("{what}: {error}"));
        let want = f(&given).unwrap();
        assert_eq!(got.len(), want.len(), "{what}");
        for (got, want) in got.iter().zip(&want) {
            assert_eq!((got.dtype(), got.shape()), (want.dtype(), want.shape()), "{what}");
            let (a, b) = (
                got.cast(DType::F64).to_vec::<f64>().unwrap(),
                want.cast(DType::F64).to_vec::<f64>().unwrap(),
            );
            let scale = b.iter().filter(|x| x.is_finite()).fold(1f64, |m, x| m.max(x.abs()));
            let ulp = match want.dtype() {
                DType::F16 => 2e-3,
                DType::BF16 => 1e-2,
                DType::F64 => 1e-12,
                dtype if dtype.is_float() => 4e-6,
                _ => 0.0,
            };
            for (a, b) in a.iter().zip(&b) {
                let same = a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= ulp * scale;
                assert!(same, "{what}: {a} is not {b}\n{:?}", exported.operators());
            }
        }
        // NumPy has no `bf16`.
        let has_all = given.iter().chain(&want).all(|x| x.dtype() != DType::BF16);
        if let Some(folder) = std::env::var_os("ZYX_ONNX_EXPORT").filter(|_| has_all) {
            let folder = Path::new(&folder).join(what.replace(' ', "_"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("model.onnx"), &bytes).unwrap();
            let named = inputs.iter().zip(&given).map(|(input, x)| (input.0.to_owned(), x.clone()));
            let values: BTreeMap<String, Tensor> =
                named.chain(names(want.len()).zip(want)).collect();
            safetensors::save(&values, folder.join(format!("values-{i}.safetensors"))).unwrap();
        }
    }
    exported
}

type One = (&'static str, fn(&Tensor) -> Result<Tensor>);

/// Functions of one tensor, by elements or along its axes.
const FLOATS: &[One] = &[
    ("neg", |x| Ok(x.neg())),
    ("abs", |x| Ok(x.abs())),
    ("recip", |x| Ok(x.recip())),
    ("sqrt", |x| Ok(x.abs().sqrt())),
    ("rsqrt", |x| Ok(x.abs().rsqrt())),
    ("exp", |x| Ok(x.exp())),
    ("exp2", |x| Ok(x.exp2())),
    ("expm1", |x| Ok(x.expm1())),
    ("log", |x| Ok(x.abs().log())),
    ("log2", |x| Ok(x.abs().log2())),
    ("log1p", |x| Ok(x.abs().log1p())),
    ("sin", |x| Ok(x.sin())),
    ("cos", |x| Ok(x.cos())),
    ("tan", |x| Ok(x.div(2.0)?.tan())),
    ("asin", |x| Ok(x.div(2.0)?.asin())),
    ("acos", |x| Ok(x.div(2.0)?.acos())),
    ("atan", |x| Ok(x.atan())),
    ("sinh", |x| Ok(x.sinh())),
    ("cosh", |x| Ok(x.cosh())),
    ("tanh", |x| Ok(x.tanh())),
    ("erf", |x| Ok(x.erf())),
    ("floor", |x| Ok(x.floor())),
    ("ceil", |x| Ok(x.ceil())),
    ("round", |x| Ok(x.mul(2.0)?.round())),
    ("trunc", |x| Ok(x.trunc())),
    ("relu", |x| Ok(x.relu())),
    ("sigmoid", |x| Ok(x.sigmoid())),
    ("silu", |x| Ok(x.silu())),
    ("gelu", |x| Ok(x.gelu())),
    ("gelu exact", |x| Ok(x.gelu_exact())),
    ("softplus", |x| Ok(x.softplus())),
    ("elu", |x| Ok(x.elu(1.0))),
    ("selu", |x| Ok(x.selu())),
    ("mish", |x| Ok(x.mish())),
    ("leaky relu", |x| Ok(x.leaky_relu(0.1))),
    ("softmax", |x| x.softmax(-1)),
    ("softmax first", |x| x.softmax(0)),
    ("log softmax", |x| x.log_softmax(-1)),
    ("sum", |x| x.sum(1)),
    ("sum all", |x| x.sum(..)),
    ("mean", |x| x.mean(0)),
    ("mean last", |x| x.mean(-1)),
    ("var", |x| x.var(0, 1)),
    ("prod", |x| x.prod(1)),
    ("max", |x| x.max(0)),
    ("min", |x| x.min(1)),
    ("argmax", |x| x.argmax(1)),
    ("logsumexp", |x| x.logsumexp(1)),
    ("cumsum", |x| x.cumsum(1)),
    ("cumprod", |x| x.cumprod(1)),
    ("logcumsumexp", |x| x.logcumsumexp(0)),
    ("cummax", |x| Ok(x.cummax(1)?.0)),
    ("flip", |x| x.flip(1)),
    ("pad", |x| x.pad([(1, 2), (0, 1)])),
    ("slice", |x| x.slice(1, 1..4)),
    ("transpose", |x| Ok(x.t())),
    ("repeat", |x| x.repeat([2, 3])),
    ("unsqueeze", |x| x.unsqueeze(1)),
    ("flatten", |x| Ok(x.flatten())),
    ("tril", |x| x.tril(0)),
    ("layer norm", |x| x.layer_norm(-1, None, None, 1e-5)),
    ("rms norm", |x| x.rms_norm(-1, None, 1e-5)),
    ("comparison", |x| x.gt(0.5)),
    ("where", |x| x.gt(0.0)?.where_(x, &x.mul(0.1)?)),
    ("to integers", |x| Ok(x.mul(1e10)?.cast(DType::I32))),
    ("to bytes", |x| Ok(x.mul(200.0)?.cast(DType::U8))),
    ("to bools", |x| Ok(x.round().cast(DType::Bool))),
    ("pow", |x| x.abs().pow(1.5)),
    ("fmod", |x| x.fmod(0.75)),
    ("remainder", |x| x.remainder(&x.flip(1)?)),
    ("copysign", |x| x.copysign(&x.flip(1)?.mul(0.0)?)),
    ("gram", |x| x.t().matmul(x)),
    ("concat", |x| Tensor::cat(&[x, &x.mul(2.0)?, x], 1)),
    ("stack", |x| Tensor::stack(&[x, &x.exp()], 0)),
    ("outer", |x| x.sum(1)?.unsqueeze(1)?.mul(&x.sum(0)?)),
    ("maximum", |x| x.maximum(&x.t().sum(1)?)),
    ("atan2", |x| x.atan2(&x.flip(1)?)),
    ("logaddexp", |x| x.logaddexp(&x.flip(0)?)),
];

/// As operations, at odd extents, with a named one, of one row, and of none.
#[test]
fn methods_of_floats() {
    let device = device();
    for (name, f) in FLOATS {
        let kinds = [
            (DType::F32, Named("n", 7)),
            (DType::F16, Is(3)),
            (DType::F64, Is(4)),
            (DType::BF16, Is(4)),
        ];
        for (dtype, rows) in kinds {
            let inputs = [("x", dtype, vec![rows, Is(5)])];
            let export = Export::new(&device);
            let export = if *name == "tril" && dtype == DType::F32 {
                export.size("n", 6, 1)
            } else {
                export
            };
            compare(&format!("{name} {dtype}"), export, &inputs, |x| Ok(vec![f(&x[0])?]));
        }
    }
    for (name, f) in FLOATS.iter().filter(|row| row.0 != "tril") {
        let inputs = [("x", DType::F32, vec![Named("n", 1), Is(5)])];
        compare(&format!("{name} of one row"), Export::new(&device), &inputs, |x| {
            Ok(vec![f(&x[0])?])
        });
    }
}

/// Functions of images.
const IMAGES: &[One] = &[
    ("group norm", |x| x.group_norm(2, None, None, 1e-5)),
    ("adaptive pool", |x| x.adaptive_avg_pool2d([3, 2])),
    ("global pool", |x| x.global_avg_pool2d()),
    ("linear resize", |x| x.interpolate(&[9, 7], Interpolation::Linear, false)),
    ("nearest resize", |x| x.interpolate(&[12, 10], Interpolation::Nearest, false)),
    ("pixel shuffle", |x| x.pixel_shuffle(2)),
    ("roll", |x| x.roll([1, 2], [2, 3])),
    ("unfold", |x| x.unfold(3, 2, 1)),
    ("dilated pool", |x| {
        x.max_pool2d(Pool2d { dilation: [2, 2], stride: [1, 1], ..Pool2d::new([2, 2]) })
    }),
    ("ceiling pool", |x| x.max_pool2d(Pool2d { ceil_mode: true, ..Pool2d::new([4, 3]) })),
    ("normalize", |x| x.normalize(1, 1e-6)),
    ("glu", |x| x.glu(1)),
    ("diagonal", |x| x.diagonal(0, 2, 3)),
    ("median", |x| Ok(x.median(3)?.0)),
    ("std", |x| x.std(1, 1)),
    ("masked fill", |x| x.masked_fill(&x.gt(1.0)?, 0.0)),
    ("clamp", |x| x.clamp(-1.0, 1.0)),
];

#[test]
fn methods_of_images() {
    let device = device();
    for (name, f) in IMAGES {
        let inputs = [("x", DType::F32, vec![Named("batch", 2), Is(4), Is(6), Is(5)])];
        compare(&format!("image {name}"), Export::new(&device), &inputs, |x| Ok(vec![f(&x[0])?]));
    }
}

/// Gradients are functions like others.
#[test]
fn gradients() {
    let device = device();
    let weight = numbers(DType::F32, &[Is(6), Is(3)], &mut Rng::seed(5), &device);
    let kernel = numbers(DType::F32, &[4, 1, 3, 3].map(Is), &mut Rng::seed(6), &device);
    let inputs = [
        ("x", DType::F32, vec![Named("batch", 4), Is(6)]),
        ("class", DType::I64, vec![Named("batch", 4)]),
    ];
    compare("gradient of a layer", Export::new(&device), &inputs, |x| {
        let w = weight.tracked();
        let loss = x[0].matmul(&w)?.cross_entropy(&x[1].fmod(3)?)?;
        let dw = loss.grad(&[&w])?.remove(0).unwrap();
        Ok(vec![loss, dw])
    });
    let inputs = [("x", DType::F32, vec![Is(2), Is(1), Is(7), Is(6)])];
    compare("gradient of a convolution", Export::new(&device), &inputs, |x| {
        let x = x[0].tracked();
        let options = Conv2dOptions { padding: [1, 1], ..Default::default() };
        let loss = x.conv2d(&kernel, None, options)?.tanh().square().sum(..)?;
        Ok(vec![loss.grad(&[&x])?.remove(0).unwrap()])
    });
}

const INTEGERS: &[One] = &[
    ("add", |x| x.add(x)),
    ("neg", |x| Ok(x.neg())),
    ("div", |x| x.div(&x.flip(1)?)),
    ("rem", |x| x.fmod(&x.flip(1)?)),
    ("div fixed", |x| x.div(3)),
    ("square", |x| Ok(x.square())),
    ("shl", |x| x.shl(2)),
    ("shr", |x| x.shr(1)),
    ("and", |x| x.bitwise_and(&x.flip(0)?)),
    ("not", |x| x.bitwise_not()),
    ("max", |x| x.max(1)),
    ("sum", |x| x.sum(0)),
    ("less", |x| x.lt(&x.flip(1)?)),
    ("equal", |x| x.eq(&x.flip(0)?)),
    ("where", |x| x.gt(2)?.where_(x, &x.mul(3)?)),
    ("cumsum", |x| x.cumsum(1)),
    ("one hot", |x| x.one_hot(6)),
    ("to floats", |x| Ok(x.cast(DType::F32))),
    ("minimum", |x| x.minimum(2)),
    ("matmul", |x| x.matmul(&x.t())),
];

#[test]
fn methods_of_integers_and_bools() {
    let device = device();
    for dtype in [DType::I64, DType::I32, DType::U8, DType::I16, DType::U32] {
        for (name, f) in INTEGERS {
            if *name == "neg" && !dtype.is_signed() {
                continue;
            }
            let inputs = [("x", dtype, vec![Named("n", 4), Is(4)])];
            compare(&format!("{name} {dtype}"), Export::new(&device), &inputs, |x| {
                Ok(vec![f(&x[0])?])
            });
        }
    }
    let logic: &[One] = &[
        ("and", |x| x.logical_and(&x.flip(1)?)),
        ("not", |x| Ok(x.logical_not())),
        ("xor", |x| x.bitwise_xor(&x.flip(1)?)),
        ("any", |x| x.any(1)),
        ("all", |x| x.all(0)),
        ("count", |x| x.cast(DType::I64).sum(1)),
        ("where", |x| x.where_(&x.flip(0)?, &x.flip(1)?)),
        ("pad", |x| x.pad([(1, 0), (0, 2)])),
    ];
    for (name, f) in logic {
        let inputs = [("x", DType::Bool, vec![Named("n", 3), Is(4)])];
        compare(&format!("{name} of bools"), Export::new(&device), &inputs, |x| {
            Ok(vec![f(&x[0])?])
        });
    }
}

#[test]
fn indices() {
    let device = device();
    let table = numbers(DType::F32, &[Is(6), Is(3)], &mut Rng::seed(1), &device);
    let rows = [("i", DType::I64, vec![Named("batch", 2), Named("n", 5)])];
    let export = || Export::new(&device).weights([("table", table.clone())]);
    let made = compare("embedding", export(), &rows, |i| Ok(vec![table.embedding(&i[0])?]));
    assert_eq!(made.operators()["Gather"], 1);
    compare("computed embedding", export(), &rows, |i| {
        Ok(vec![table.embedding(&i[0].mul(3)?.remainder(6i64)?)?])
    });
    let both = [
        ("x", DType::F32, vec![Is(6), Named("n", 4)]),
        ("i", DType::I64, vec![Is(6), Named("n", 4)]),
    ];
    compare("gather", Export::new(&device), &both, |x| Ok(vec![x[0].gather(0, &x[1])?]));
    compare("take along", Export::new(&device), &both, |x| {
        Ok(vec![x[0].take_along_dim(&x[1], Some(0))?])
    });
    compare("scatter", Export::new(&device), &both, |x| {
        Ok(vec![x[0].scatter(0, &x[1], &x[0].mul(2.0)?)?])
    });
    compare("positions", Export::new(&device), &rows[..], |i| {
        let n = i[0].shape()[1];
        let at = Tensor::iota(n, DType::I64, i[0].device());
        Ok(vec![i[0].add(&at)?, at.cast(DType::F32).mul(0.5)?])
    });
}

#[test]
fn products_are_matrix_products() {
    let device = device();
    type Case = (&'static str, &'static str, Vec<Extent>, Vec<Extent>);
    let (b, m, n, k) = (Named("b", 3), Named("m", 4), Is(5), Is(6));
    let cases: Vec<Case> = vec![
        ("plain", "mk,kn->mn", vec![m, k], vec![k, n]),
        ("turned", "km,nk->nm", vec![k, m], vec![n, k]),
        ("batch", "bmk,bkn->bmn", vec![b, m, k], vec![b, k, n]),
        ("shared", "bmk,kn->bmn", vec![b, m, k], vec![k, n]),
        ("batch inside", "mbk,nbk->bmn", vec![m, b, k], vec![n, b, k]),
        ("two summed", "mkb,kbn->mn", vec![m, k, Is(3)], vec![k, Is(3), n]),
        ("vector", "mk,k->m", vec![m, k], vec![k]),
        ("rows of both", "abk,cdk->acbd", vec![b, m, k], vec![n, Is(2), k]),
        ("heads", "bqhd,bkhd->bhqk", vec![b, m, Is(2), k], vec![b, m, Is(2), k]),
    ];
    for (name, equation, x, y) in cases {
        let inputs = [("x", DType::F32, x), ("y", DType::F32, y)];
        let f = |x: &[Tensor]| Ok(vec![Tensor::einsum(equation, &[&x[0], &x[1]])?]);
        let made = compare(&format!("product {name}"), Export::new(&device), &inputs, f);
        assert_eq!(made.operators().get("MatMul"), Some(&1), "{name}: {:?}", made.operators());
        assert!(!made.operators().contains_key("Mul"), "{name}: {:?}", made.operators());
    }
}

/// A result of operands that broadcast keeps its axes, also where all operands have fewer.
#[test]
fn axes_of_one_element_stay() {
    let device = device();
    let k = Is(6);
    type Function = fn(&Tensor, &Tensor) -> Result<Tensor>;
    let cases: [(&str, Vec<Extent>, Vec<Extent>, Function); 4] = [
        ("row by column", vec![Is(1), k], vec![k, Is(1)], |x, y| x.matmul(y)),
        ("batch of one", vec![Is(1), Is(1), k], vec![Is(1), k, Is(1)], |x, y| x.matmul(y)),
        ("outer", vec![k], vec![k], |x, y| x.unsqueeze(0)?.add(y.unsqueeze(0)?)?.amax(1)),
        ("sums", vec![k], vec![k], |x, y| {
            x.reshape([1, 1, 6])?.maximum(y.reshape([1, 1, 6])?)?.sum(2)
        }),
    ];
    for (name, x, y, f) in cases {
        let inputs = [("x", DType::F32, x), ("y", DType::F32, y)];
        compare(name, Export::new(&device), &inputs, |x| Ok(vec![f(&x[0], &x[1])?]));
    }
}

#[test]
fn convolutions_and_pooling_are_operators() {
    let device = device();
    let image = |channels: usize| vec![Named("batch", 2), Is(channels), Is(11), Is(9)];
    let cases: &[(&str, [usize; 4], Conv2dOptions)] = &[
        ("plain", [5, 3, 3, 3], Conv2dOptions::default()),
        ("padded", [5, 3, 3, 3], Conv2dOptions { padding: [1, 1], ..Default::default() }),
        (
            "strided",
            [5, 3, 3, 3],
            Conv2dOptions { stride: [2, 2], padding: [1, 1], ..Default::default() },
        ),
        ("dilated", [5, 3, 3, 2], Conv2dOptions { dilation: [2, 1], ..Default::default() }),
        (
            "uneven",
            [4, 3, 5, 2],
            Conv2dOptions { stride: [3, 1], padding: [2, 0], ..Default::default() },
        ),
        ("points", [5, 3, 1, 1], Conv2dOptions::default()),
        (
            "by channel",
            [3, 1, 3, 3],
            Conv2dOptions { groups: 3, padding: [1, 1], ..Default::default() },
        ),
        (
            "far dilated",
            [4, 3, 2, 2],
            Conv2dOptions { dilation: [10, 1], stride: [1, 7], ..Default::default() },
        ),
    ];
    let mut rng = Rng::seed(3);
    for (name, weight, options) in cases {
        let weight = numbers(DType::F32, &weight.map(Is), &mut rng, &device);
        let bias = numbers(DType::F32, &[Is(weight.shape()[0])], &mut rng, &device);
        for bias in [None, Some(&bias)] {
            let inputs = [("x", DType::F32, image(3))];
            let f = |x: &[Tensor]| Ok(vec![x[0].conv2d(&weight, bias, *options)?.relu()]);
            let export = Export::new(&device).weights([("weight", weight.clone())]);
            let name = format!("convolution {name} {}", if bias.is_some() { "biased" } else { "" });
            let made = compare(name.trim(), export, &inputs, f);
            let kinds: Vec<String> = made.operators().into_keys().collect();
            assert_eq!(kinds, ["Conv", "Identity", "Relu"], "{name}");
        }
    }
    let inputs = [("x", DType::F16, vec![Named("batch", 2), Is(4), Is(9)])];
    let weight = numbers(DType::F16, &[Is(2), Is(2), Is(3)], &mut rng, &device);
    let options = Conv1dOptions { groups: 2, ..Default::default() };
    let made = compare("convolution of halves", Export::new(&device), &inputs, |x| {
        Ok(vec![x[0].conv1d(&weight, None, options)?])
    });
    assert!(made.operators().contains_key("Conv"), "{:?}", made.operators());
    // Patches, overlapping ones, one alone, and gaps between windows.
    for (name, kernel, stride, padding, extent) in [
        ("patches", 20, 20, 0, 60),
        ("overlapping", 25, 20, 3, 71),
        ("one patch", 32, 32, 0, 32),
        ("gaps", 3, 24, 1, 60),
        ("dilated gaps", 5, 21, 1, 64),
    ] {
        let weight = numbers(DType::F32, &[2, 1, kernel, kernel].map(Is), &mut rng, &device);
        let dilation = if name == "dilated gaps" { [3; 2] } else { [1; 2] };
        let options = Conv2dOptions {
            stride: [stride; 2],
            padding: [padding; 2],
            dilation,
            ..Default::default()
        };
        let all = [2, 1, 5]
            .map(|n| [("x", DType::F32, vec![Named("batch", n), Is(1), Is(extent), Is(extent)])]);
        let f = |x: &[Tensor]| Ok(vec![x[0].conv2d(&weight, None, options)?]);
        let what = format!("stride of {stride} {name}");
        let made = compare_all(&what, Export::new(&device), &all.each_ref().map(|x| &x[..]), f);
        assert_eq!(kinds(&made), ["Conv", "Identity"], "{name}");
    }
    for name in ["far pool", "far mean"] {
        let all =
            [2, 1].map(|n| [("x", DType::F32, vec![Named("batch", n), Is(2), Is(70), Is(45)])]);
        let pool = Pool2d { stride: [24, 20], ..Pool2d::new([21, 22]) };
        let is_mean = name == "far mean";
        let f = |x: &[Tensor]| {
            Ok(vec![if is_mean { x[0].avg_pool2d(pool)? } else { x[0].max_pool2d(pool)? }])
        };
        let made = compare_all(name, Export::new(&device), &all.each_ref().map(|x| &x[..]), f);
        let operator = if is_mean { "AveragePool" } else { "MaxPool" };
        assert_eq!(made.operators().get(operator), Some(&1), "{name}: {:?}", made.operators());
    }
    let pools: &[(&str, Pool2d)] = &[
        ("plain", Pool2d::new([2, 2])),
        ("overlapping", Pool2d { stride: [2, 2], padding: [1, 1], ..Pool2d::new([3, 3]) }),
        ("uneven", Pool2d { stride: [1, 2], ..Pool2d::new([2, 3]) }),
    ];
    for (name, pool) in pools {
        let inputs = [("x", DType::F32, image(3))];
        let kinds = |made: Exported| made.operators().into_keys().collect::<Vec<_>>();
        let most = |x: &[Tensor]| Ok(vec![x[0].max_pool2d(*pool)?]);
        let made = compare(&format!("max pool {name}"), Export::new(&device), &inputs, most);
        assert_eq!(kinds(made), ["Identity", "MaxPool"], "{name}");
        let mean = |x: &[Tensor]| Ok(vec![x[0].avg_pool2d(*pool)?]);
        let made = compare(&format!("mean pool {name}"), Export::new(&device), &inputs, mean);
        assert_eq!(kinds(made), ["AveragePool", "Identity"], "{name}");
        let inside = |x: &[Tensor]| Ok(vec![x[0].avg_pool2d_inside(*pool)?]);
        compare(&format!("mean pool inside {name}"), Export::new(&device), &inputs, inside);
    }
    // Rows of an image may have a name, too: windows that do not divide them need sizes of one kind.
    let rows = vec![Named("batch", 3), Is(3), Named("rows", 22), Is(9)];
    let weight = numbers(DType::F32, &[4, 3, 3, 3].map(Is), &mut rng, &device);
    let f = |x: &[Tensor]| {
        let y =
            x[0].conv2d(&weight, None, Conv2dOptions { padding: [1, 1], ..Default::default() })?;
        Ok(vec![y.max_pool2d(Pool2d::new([2, 2]))?.flatten_axes(2, 3)?])
    };
    let export = Export::new(&device).size("rows", 24, 2);
    compare("convolution of rows", export, &[("x", DType::F32, rows)], f);
}

fn kinds(made: &Exported) -> Vec<String> {
    made.operators().into_keys().collect()
}

#[test]
fn a_perceptron_has_named_weights() {
    let device = device();
    let init = &mut Init::new(0, &device);
    let (a, b) = (Linear::new(12, 20, init).unwrap(), Linear::new(20, 3, init).unwrap());
    let mut parameters: Vec<(String, Param)> = Vec::new();
    for (name, layer) in [("fc1", &a), ("fc2", &b)] {
        parameters.extend(
            layer.named_parameters().into_iter().map(|(own, p)| (format!("{name}.{own}"), p)),
        );
    }
    let inputs = [("x", DType::F32, vec![Named("batch", 5), Is(12)])];
    let export = Export::new(&device).parameters(parameters.clone()).metadata("task", "digits");
    let made = compare("perceptron", export, &inputs, |x| {
        Ok(vec![b.forward(&a.forward(&x[0])?.relu())?.softmax(-1)?])
    });
    assert_eq!(kinds(&made), ["Add", "Identity", "MatMul", "Relu", "Softmax", "Transpose"]);
    let bytes = made.to_bytes();
    let has = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    for (name, _) in &parameters {
        assert!(has(name), "{name}");
    }
    assert!(has("digits"));

    // In two files.
    let folder = std::env::temp_dir().join(format!("zyx-export-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let large = Linear::new(64, 64, init).unwrap();
    let made = Export::new(&device)
        .input("x", DType::F32, ["n".into(), 64.into()])
        .parameters(large.named_parameters())
        .trace(|x| Ok(vec![("y", large.forward(&x[0])?)]))
        .unwrap();
    let path = folder.join("large.onnx");
    made.save_apart(&path).unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() < 2000);
    let x = Tensor::ones([2, 64], DType::F32, &device);
    let run = |path: &Path| {
        let y = Model::load(path, &device).unwrap().run([("x", x.clone())]).unwrap().remove(0);
        y.to_vec::<f32>().unwrap()
    };
    let apart = run(&path);
    made.save(&path).unwrap();
    assert_eq!(apart, run(&path));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_convolutional_network() {
    let device = device();
    let init = &mut Init::new(0, &device);
    let same = Conv2dOptions { padding: [1, 1], ..Default::default() };
    let first = Conv2d::new(3, 8, [3, 3], same, init).unwrap();
    let norm = BatchNorm2d::new(8, init).unwrap();
    let second = Conv2d::new(8, 16, [3, 3], same, init).unwrap();
    let last = Linear::new(16, 10, init).unwrap();
    // Statistics that are not those of a new layer.
    norm.forward(&numbers(DType::F32, &[4, 8, 6, 6].map(Is), &mut Rng::seed(1), &device)).unwrap();
    norm.eval();
    let f = |x: &[Tensor]| {
        let y = norm.forward(&first.forward(&x[0])?)?.relu().max_pool2d(Pool2d::new([2, 2]))?;
        let y = second.forward(&y)?.relu().global_avg_pool2d()?;
        Ok(vec![last.forward(&y)?])
    };
    let inputs = [("x", DType::F32, vec![Named("batch", 3), Is(3), Is(16), Is(16)])];
    let made = compare("convolutional network", Export::new(&device), &inputs, f);
    for (kind, n) in [("Conv", 2), ("BatchNormalization", 1), ("MaxPool", 1), ("MatMul", 1)] {
        assert_eq!(made.operators().get(kind), Some(&n), "{kind}: {:?}", made.operators());
    }
    assert!(!made.operators().contains_key("Expand"), "{:?}", made.operators());
}

#[derive(Clone, Copy, Debug)]
enum Recurrent {
    Tanh,
    Relu,
    Gru,
    Lstm,
}

type Run = Box<dyn Fn(&Tensor, &[Tensor]) -> Result<Vec<Tensor>>>;

impl Recurrent {
    /// The parameters of a layer, and what it makes of a sequence and the states to start with, if they are given.
    fn layer(self, options: RecurrentOptions, init: &mut Init) -> (Vec<(String, Param)>, Run) {
        fn one<M: Module + 'static>(
            layer: M,
            run: fn(&M, &Tensor, Option<&Tensor>) -> Result<(Tensor, Tensor)>,
        ) -> (Vec<(String, Param)>, Run) {
            let parameters = layer.named_parameters();
            let run = move |x: &Tensor, start: &[Tensor]| {
                let (y, h) = run(&layer, x, start.first())?;
                Ok(vec![y, h])
            };
            (parameters, Box::new(run))
        }
        match self {
            Recurrent::Tanh => one(Rnn::new(5, 6, options, init).unwrap(), Rnn::run),
            Recurrent::Relu => one(Rnn::relu(5, 6, options, init).unwrap(), Rnn::run),
            Recurrent::Gru => one(Gru::new(5, 6, options, init).unwrap(), Gru::run),
            Recurrent::Lstm => {
                let layer = Lstm::new(5, 6, options, init).unwrap();
                let parameters = layer.named_parameters();
                let run = move |x: &Tensor, start: &[Tensor]| {
                    let start = if let [h, c] = start { Some((h, c)) } else { None };
                    let (y, (h, c)) = layer.run(x, start)?;
                    Ok(vec![y, h, c])
                };
                (parameters, Box::new(run))
            }
        }
    }
}

/// Layers over sequences of any length are one operator each.
#[test]
fn recurrent_layers_are_operators() {
    let device = device();
    let init = &mut Init::new(0, &device);
    let plain = RecurrentOptions::default();
    let cases: &[(&str, RecurrentOptions)] = &[
        ("plain", plain),
        ("batch first", RecurrentOptions { batch_first: true, ..plain }),
        ("unbiased", RecurrentOptions { bias: false, bidirectional: true, ..plain }),
        ("deep", RecurrentOptions { layers: 3, batch_first: true, ..plain }),
        ("both ways", RecurrentOptions { layers: 2, bidirectional: true, ..plain }),
    ];
    for (kind, operator) in [
        (Recurrent::Tanh, "RNN"),
        (Recurrent::Relu, "RNN"),
        (Recurrent::Gru, "GRU"),
        (Recurrent::Lstm, "LSTM"),
    ] {
        for &(name, options) in cases {
            let (parameters, run) = kind.layer(options, init);
            let directions = if options.bidirectional { 2 } else { 1 };
            let inputs = |with_states: bool, batch: usize, length: usize| -> Vec<Input> {
                let (n, steps) = (Named("batch", batch), Named("length", length));
                let x =
                    if options.batch_first { vec![n, steps, Is(5)] } else { vec![steps, n, Is(5)] };
                let state = || vec![Is(options.layers * directions), n, Is(6)];
                let states: &[&str] = match (with_states, operator) {
                    (false, _) => &[],
                    (true, "LSTM") => &["h", "c"],
                    (true, _) => &["h"],
                };
                let states = states.iter().map(|name| (*name, DType::F32, state()));
                [("x", DType::F32, x)].into_iter().chain(states).collect()
            };
            for with_states in [false, true] {
                let states = if with_states { " from states" } else { "" };
                let what = format!("recurrence {kind:?} {name}{states}");
                let export = Export::new(&device).parameters(parameters.clone());
                let all = [(3, 7), (1, 1), (2, 90)].map(|(b, n)| inputs(with_states, b, n));
                let made = compare_all(&what, export, &all.each_ref().map(|x| &x[..]), |x| {
                    run(&x[0], &x[1..])
                });
                let count = made.operators().get(operator).copied();
                assert_eq!(count, Some(options.layers), "{what}: {:?}", made.operators());
                assert!(!made.operators().contains_key("MatMul"), "{what}: {:?}", made.operators());
            }
        }
    }
    // Of other dtypes, without a batch, and as a part of a model.
    let layer = Lstm::new(5, 6, plain, init).unwrap();
    for dtype in [DType::F16, DType::BF16, DType::F64] {
        let inputs = [("x", dtype, vec![Named("length", 8), Is(2), Is(5)])];
        layer.to_dtype(dtype).unwrap();
        let f = |x: &[Tensor]| Ok(vec![layer.forward(&x[0])?]);
        let made = compare(&format!("recurrence {dtype}"), Export::new(&device), &inputs, f);
        assert_eq!(made.operators().get("LSTM"), Some(&1), "{dtype}: {:?}", made.operators());
    }
    layer.to_dtype(DType::F32).unwrap();
    let inputs = [("x", DType::F32, vec![Named("length", 8), Is(5)])];
    let f = |x: &[Tensor]| {
        let y = layer.forward(&x[0].tanh())?;
        Ok(vec![y.softmax(-1)?, y.mean(0)?])
    };
    let made = compare("recurrence without a batch", Export::new(&device), &inputs, f);
    assert_eq!(made.operators().get("LSTM"), Some(&1), "{:?}", made.operators());
    // Gradients pass steps that no operator of ONNX gives: as operations, of a length that is known.
    let inputs = [("x", DType::F32, vec![Is(4), Named("batch", 3), Is(5)])];
    compare("gradient of a recurrence", Export::new(&device), &inputs, |x| {
        let x = x[0].tracked();
        let loss = layer.forward(&x)?.square().sum(..)?;
        Ok(vec![loss.grad(&[&x])?.remove(0).unwrap()])
    });
}

#[test]
fn transformers_with_named_batch_and_length() {
    let device = device();
    let init = &mut Init::new(0, &device);
    let options = TransformerOptions {
        feedforward: 32,
        activation: TransformerActivation::Gelu,
        batch_first: true,
        ..Default::default()
    };
    let encoder = TransformerEncoder::new(2, 16, 4, options, init).unwrap();
    encoder.eval();
    let inputs = [("x", DType::F32, vec![Named("batch", 3), Named("length", 11), Is(16)])];
    for causal in [false, true] {
        let mask = AttentionMask { causal, ..Default::default() };
        let export = Export::new(&device).parameters(encoder.named_parameters());
        let f = |x: &[Tensor]| Ok(vec![encoder.encode(&x[0], mask)?]);
        let name = if causal { "causal transformer" } else { "transformer" };
        let made = compare(name, export, &inputs, f);
        let count = |kind: &str| made.operators().get(kind).copied().unwrap_or(0);
        assert_eq!((count("LayerNormalization"), count("Gelu")), (4, 2), "{:?}", made.operators());
        assert!(count("MatMul") >= 12, "{:?}", made.operators());
    }

    // Words to words.
    let (words, norm) = (Embedding::new(20, 16, init).unwrap(), RmsNorm::new(16, init).unwrap());
    let head = LayerNorm::new(16, init).unwrap();
    let query = Linear::new(16, 16, init).unwrap();
    let f = |i: &[Tensor]| {
        let x = norm.forward(&words.forward(&i[0])?)?;
        let q = query.forward(&x)?;
        let causal = Attention { causal: true, ..Default::default() };
        let y = q.scaled_dot_product_attention(&x, &x, causal)?;
        Ok(vec![head.forward(&y.add(&x)?)?.matmul(&words.weight.tensor().t())?])
    };
    let inputs = [("tokens", DType::I64, vec![Named("batch", 2), Named("length", 9)])];
    compare("decoder", Export::new(&device), &inputs, f);
}

fn refused(export: Export, f: impl Fn(&[Tensor]) -> Result<Tensor>) -> String {
    export.trace(|x| Ok(vec![("y", f(x)?)])).map(|made| made.operators()).unwrap_err().to_string()
}

#[test]
fn what_is_no_model_is_refused_by_a_sentence() {
    let device = device();
    let export = || Export::new(&device).input("x", DType::F32, ["n".into(), 8.into()]);
    let said = refused(export(), |x| x[0].mul(x[0].shape()[0] as f64 / 3.0 + 0.1));
    assert!(said.contains("differs from trace to trace"), "{said}");
    let rng = std::sync::Mutex::new(Rng::seed(0));
    let said = refused(export(), |x| {
        let drawn = Tensor::rand([8], DType::F32, &mut rng.lock().unwrap(), x[0].device())?;
        x[0].add(&drawn)
    });
    assert!(said.contains("random numbers"), "{said}");
    let said =
        refused(export(), |x| (0..x[0].shape()[0]).try_fold(x[0].clone(), |y, i| y.add(i as f64)));
    assert!(said.contains("something else for n = "), "{said}");
    let said =
        refused(export(), |x| Ok(x[0].bitcast(DType::I32)?.bitwise_and(255)?.cast(DType::F32)));
    assert!(said.contains("reinterpretation of bits"), "{said}");
    let said = refused(export(), |x| x[0].slice(0, ..x[0].shape()[0] / 2));
    assert!(said.contains("`Export::size`"), "{said}");
    let said = refused(export(), |x| x[0].mul(x[0].sum(..)?.item::<f32>()?));
    assert!(said.contains("value"), "{said}");
    let said = refused(export().weights([("x", Tensor::ones([1], DType::F32, &device))]), |x| {
        Ok(x[0].exp())
    });
    assert!(said.contains("there twice"), "{said}");
    let said = refused(export().size("m", 2, 2), |x| Ok(x[0].exp()));
    assert!(said.contains("no input has the dimension `m`"), "{said}");
    let said = refused(export(), |x| {
        let y = x[0].exp();
        Steps::note("lstm", &[&x[0], &x[0], &x[0]], &[&y]);
        Ok(y)
    });
    assert!(said.contains("operands that are not known"), "{said}");
    let failed = export().trace(|x| Ok(vec![("y", x[0].reshape([3])?)]));
    assert!(matches!(failed, Err(Error::Shape { .. })));
}

#[test]
fn sorts_are_operators() {
    let device = device();
    for (dtype, rows) in [(DType::F32, 5), (DType::F32, 300), (DType::I64, 40)] {
        let inputs = [("x", dtype, vec![Named("n", 3), Is(rows)])];
        for descending in [false, true] {
            let name = format!("sort {dtype} {rows} {descending}");
            let made = compare(&name, Export::new(&device), &inputs, |x| {
                let (values, order) = x[0].sort(1, descending)?;
                Ok(vec![values, order])
            });
            assert_eq!(made.operators().get("TopK"), Some(&1), "{:?}", made.operators());
            let name = format!("topk {dtype} {rows} {descending}");
            compare(&name, Export::new(&device), &inputs, |x| {
                let (values, order) = x[0].topk(3, 1, descending)?;
                Ok(vec![values, order])
            });
        }
    }
}

type Transposed = (&'static str, [usize; 4], ConvTransposeOptions<2>);

#[test]
fn transposed_convolutions_are_operators() {
    let device = device();
    let plain = ConvTransposeOptions::default();
    let cases: &[Transposed] = &[
        ("plain", [4, 3, 3, 3], plain),
        ("points", [4, 3, 1, 1], plain),
        (
            "doubled",
            [4, 3, 4, 4],
            ConvTransposeOptions { stride: [2; 2], padding: [1; 2], ..plain },
        ),
        ("exact", [4, 3, 2, 2], ConvTransposeOptions { stride: [2; 2], ..plain }),
        (
            "longer",
            [4, 3, 3, 3],
            ConvTransposeOptions {
                stride: [2; 2],
                padding: [1; 2],
                output_padding: [1; 2],
                ..plain
            },
        ),
        ("gaps", [4, 3, 2, 2], ConvTransposeOptions { stride: [5; 2], ..plain }),
        (
            "uneven",
            [4, 3, 3, 5],
            ConvTransposeOptions {
                stride: [3, 1],
                padding: [0, 2],
                output_padding: [2, 0],
                ..plain
            },
        ),
        ("grouped", [4, 2, 3, 3], ConvTransposeOptions { stride: [2; 2], groups: 2, ..plain }),
        ("by channel", [4, 1, 4, 4], ConvTransposeOptions { stride: [2; 2], groups: 4, ..plain }),
        ("dilated", [4, 3, 3, 2], ConvTransposeOptions { dilation: [2, 3], ..plain }),
        (
            "dilated and strided",
            [4, 3, 3, 3],
            ConvTransposeOptions {
                stride: [3, 2],
                padding: [1, 2],
                output_padding: [2, 1],
                dilation: [2; 2],
                ..plain
            },
        ),
        ("wide", [4, 3, 24, 20], ConvTransposeOptions { stride: [24, 20], ..plain }),
        ("cut", [4, 3, 3, 3], ConvTransposeOptions { stride: [2; 2], padding: [3; 2], ..plain }),
    ];
    let mut rng = Rng::seed(2);
    for (name, weight, options) in cases {
        let weight = numbers(DType::F32, &weight.map(Is), &mut rng, &device);
        let channels = weight.shape()[1] * options.groups;
        let bias = numbers(DType::F32, &[Is(channels)], &mut rng, &device);
        for bias in [None, Some(&bias)] {
            let inputs = |n, rows| [("x", DType::F32, vec![Named("batch", n), Is(4), rows, Is(5)])];
            let f = |x: &[Tensor]| Ok(vec![x[0].conv_transpose2d(&weight, bias, *options)?.tanh()]);
            let export = || Export::new(&device).weights([("weight", weight.clone())]);
            let biased = if bias.is_some() { " biased" } else { "" };
            for (rows, named) in
                [([Is(6); 3], ""), ([7, 6, 40].map(|n| Named("rows", n)), " of rows")]
            {
                let what = format!("transposed convolution {name}{biased}{named}");
                // Of few rows nothing but zeros is left of what is cut.
                let is_cut = *name == "cut" && !named.is_empty();
                let export = if is_cut { export().size("rows", 6, 1) } else { export() };
                let all = [inputs(2, rows[0]), inputs(1, rows[1]), inputs(5, rows[2])];
                let made = compare_all(&what, export, &all.each_ref().map(|x| &x[..]), f);
                assert_eq!(kinds(&made), ["ConvTranspose", "Identity", "Tanh"], "{what}");
                assert_eq!(made.operators()["ConvTranspose"], 1, "{what}");
            }
        }
    }
    // Along one axis and three, and of halves.
    let init = &mut Init::new(0, &device);
    let options = ConvTransposeOptions {
        stride: [4],
        padding: [2],
        output_padding: [1],
        ..Default::default()
    };
    let layer = ConvTranspose1d::new(4, 2, [8], options, init).unwrap();
    let inputs = [("x", DType::F32, vec![Named("batch", 2), Is(4), Named("length", 9)])];
    let export = Export::new(&device).parameters(layer.named_parameters());
    let made = compare("transposed layer 1d", export, &inputs, |x| Ok(vec![layer.forward(&x[0])?]));
    assert_eq!(kinds(&made), ["ConvTranspose", "Identity"]);
    let weight = numbers(DType::F32, &[4, 2, 3].map(Is), &mut rng, &device);
    let options = ConvTransposeOptions { dilation: [2], ..Default::default() };
    let inputs = [("x", DType::F32, vec![Named("batch", 2), Is(4), Is(1)])];
    let f = |x: &[Tensor]| Ok(vec![x[0].conv_transpose1d(&weight, None, options)?]);
    let made = compare("transposed convolution of one element", Export::new(&device), &inputs, f);
    assert_eq!(kinds(&made), ["ConvTranspose", "Identity"]);
    let weight = numbers(DType::F32, &[4, 2, 2, 3, 2].map(Is), &mut rng, &device);
    let options = ConvTransposeOptions { stride: [2, 1, 3], ..Default::default() };
    let inputs = [("x", DType::F32, vec![Named("batch", 2), Is(4), Is(3), Is(4), Is(2)])];
    let f = |x: &[Tensor]| Ok(vec![x[0].conv_transpose3d(&weight, None, options)?]);
    let made = compare("transposed convolution 3d", Export::new(&device), &inputs, f);
    assert_eq!(kinds(&made), ["ConvTranspose", "Identity"]);
    let weight = weight.cast(DType::F16);
    let inputs = [("x", DType::F16, vec![Named("batch", 2), Is(4), Is(3), Is(4), Is(2)])];
    let f = |x: &[Tensor]| Ok(vec![x[0].conv_transpose3d(&weight, None, options)?]);
    let made = compare("transposed convolution of halves", Export::new(&device), &inputs, f);
    assert!(made.operators().contains_key("ConvTranspose"), "{:?}", made.operators());

    // A slice, or a convolution with a flipped weight, is no transposed convolution.
    let weight = numbers(DType::F32, &[4, 3, 3, 3].map(Is), &mut rng, &device);
    let inputs = [("x", DType::F32, vec![Named("batch", 2), Is(4), Is(6), Is(5)])];
    let options = ConvTransposeOptions { stride: [2; 2], ..Default::default() };
    let f = |x: &[Tensor]| Ok(vec![x[0].conv_transpose2d(&weight, None, options)?.slice(2, 3..9)?]);
    let made = compare("slice of a transposed convolution", Export::new(&device), &inputs, f);
    assert_eq!(kinds(&made), ["ConvTranspose", "Identity", "Slice"]);
    let f = |x: &[Tensor]| {
        let options = Conv2dOptions { padding: [2, 2], ..Default::default() };
        Ok(vec![x[0].conv2d(&weight.transpose(0, 1)?.flip([2])?, None, options)?])
    };
    let made = compare("convolution with a flipped weight", Export::new(&device), &inputs, f);
    assert!(made.operators().contains_key("Conv"), "{:?}", made.operators());
}

/// Results that are inputs, weights, numbers, and the same twice.
#[test]
fn results_of_every_kind() {
    let device = device();
    let weight = Tensor::new([1f32, 2.0], &device).unwrap();
    let inputs = [("x", DType::F32, vec![Named("n", 3)])];
    compare("results", Export::new(&device).weights([("w", weight.clone())]), &inputs, |x| {
        let y = x[0].exp();
        let ones = Tensor::ones([x[0].numel(), 2], DType::F32, x[0].device());
        let fixed = Tensor::iota(4, DType::F32, x[0].device()).mul(2.0)?;
        Ok(vec![x[0].clone(), weight.clone(), y.clone(), y, ones, fixed])
    });
    // Nothing at all.
    let inputs = [("x", DType::F32, vec![Named("n", 0), Is(3)])];
    compare("empty", Export::new(&device), &inputs, |x| {
        Ok(vec![x[0].sum(0)?, x[0].matmul(&x[0].t())?, x[0].softmax(-1)?])
    });
    let inputs = [("x", DType::F32, vec![Is(0), Is(3)])];
    compare("always empty", Export::new(&device), &inputs, |x| Ok(vec![x[0].sum(0)?, x[0].exp()]));
    compare("empty products", Export::new(&device), &inputs, |x| {
        let y = x[0].reshape([1, 0, 1, 1, 3, 1])?;
        Ok(vec![y.mul(y.exp())?.sum([4, 5])?.reshape([1, 0, 1])?])
    });
}
