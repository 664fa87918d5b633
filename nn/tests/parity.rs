//! Every layer against PyTorch 2.15: results, gradients of inputs and parameters, names and shapes
//! of parameters, on the interpreter in `f64` and on the CPU in `f32`.
//!
//! `data/parity.safetensors` is written by `scripts/parity_nn.py`, which says what is in it. Every
//! case there must be checked here.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use zyx_backend_cpu::Cpu;
use zyx_core::{
    Conv1dOptions, Conv2dOptions, Conv3dOptions, ConvTransposeOptions, DType, Device,
    Interpolation, PadMode, Pool, Pool2d, Reduction, Result, Runtime, Shape, Tensor,
};
use zyx_nn::*;

/// What computes the results of a case.
type Results<'a> = &'a dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>;

struct Parity {
    all: BTreeMap<String, Tensor>,
    device: Device,
    dtype: DType,
    bound: f64,
    init: RefCell<Init>,
    checked: RefCell<BTreeSet<String>>,
}

/// Both devices, each with what is stored.
fn devices() -> Vec<Parity> {
    let runtime = Runtime::default();
    runtime.register(Cpu::default());
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/parity.safetensors");
    [("reference", DType::F64, 3e-7), ("cpu", DType::F32, 2e-5)]
        .into_iter()
        .map(|(name, dtype, bound)| {
            let device = runtime.device(name).unwrap();
            let init = RefCell::new(Init { dtype, ..Init::new(0, &device) });
            let all = safetensors::load(file, &device).unwrap();
            Parity { all, device, dtype, bound, init, checked: RefCell::default() }
        })
        .collect()
}

impl Parity {
    /// The tensors of a case below a prefix, by the rest of their names; floats in the dtype.
    fn stored(&self, prefix: &str) -> BTreeMap<String, Tensor> {
        let of = |(name, tensor): (&String, &Tensor)| {
            let dtype = if tensor.dtype().is_float() { self.dtype } else { tensor.dtype() };
            Some((name.strip_prefix(prefix)?.to_owned(), tensor.cast(dtype)))
        };
        self.all.iter().filter_map(of).collect()
    }

    /// Loads the module and compares `f` of it and the inputs.
    fn check(&self, name: &str, module: &dyn Module, f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>) {
        self.check_forward(name, module, &f);
    }

    /// As [`Parity::check`], compiled once.
    fn check_forward(&self, name: &str, module: &dyn Module, f: Results<'_>) {
        self.checked.borrow_mut().insert(name.to_owned());
        let params = self.stored(&format!("{name}/param."));
        module.load_tensors(&params).unwrap_or_else(|error| panic!("{name}: {error}"));
        let inputs: Vec<Tensor> = self.stored(&format!("{name}/in.")).into_values().collect();
        assert!(!inputs.is_empty(), "{name} is not stored");
        let inputs: Vec<Tensor> = inputs.iter().map(Tensor::tracked).collect();
        let leaves: Vec<(String, Tensor)> = (0..inputs.len())
            .map(|k| (format!("in.{k}"), inputs[k].clone()))
            .chain(
                module
                    .named_parameters()
                    .into_iter()
                    .map(|(n, p)| (format!("param.{n}"), p.tensor())),
            )
            .collect();
        let outputs = f(&inputs).unwrap_or_else(|error| panic!("{name}: {error}"));
        let expected = self.stored(&format!("{name}/out."));
        assert_eq!(outputs.len(), expected.len(), "{name}: results");
        let mut loss: Option<Tensor> = None;
        for (k, y) in outputs.iter().enumerate() {
            self.compare(&format!("{name} result {k}"), y, &expected[&k.to_string()]);
            if y.dtype().is_float() && y.is_tracked() {
                let weights: Vec<f64> =
                    (0..y.numel()).map(|i| (0.37 * i as f64 + k as f64).sin()).collect();
                let weights = Tensor::from_slice(&weights, y.shape(), &self.device).unwrap();
                let part = y.mul(weights.cast(y.dtype())).unwrap().sum(..).unwrap();
                loss = Some(loss.map_or(part.clone(), |loss| loss + part));
            }
        }
        let gradients = self.stored(&format!("{name}/grad."));
        let Some(loss) = loss else { return assert!(gradients.is_empty(), "{name}: no loss") };
        let wanted: Vec<&(String, Tensor)> =
            leaves.iter().filter(|(leaf, _)| gradients.contains_key(leaf)).collect();
        assert_eq!(wanted.len(), gradients.len(), "{name}: leaves");
        let tensors: Vec<&Tensor> = wanted.iter().map(|(_, tensor)| tensor).collect();
        for ((leaf, tensor), gradient) in wanted.iter().zip(loss.grad(&tensors).unwrap()) {
            let gradient = gradient.unwrap_or_else(|| tensor.zeros_like());
            self.compare(&format!("{name} gradient of {leaf}"), &gradient, &gradients[leaf]);
        }
    }

    fn compare(&self, what: &str, actual: &Tensor, expected: &Tensor) {
        assert_eq!(actual.shape(), expected.shape(), "{what}");
        let [a, e] = [actual, expected].map(|x| x.cast(DType::F64).to_vec::<f64>().unwrap());
        let scale = 1.0 + e.iter().fold(0f64, |most, x| most.max(x.abs()));
        for (i, (a, e)) in a.iter().zip(&e).enumerate() {
            let near = (a - e).abs() <= self.bound * scale;
            assert!(near, "{what} on {}: element {i} is {a}, not {e}", self.device);
        }
    }

    /// A module of one input and one result.
    fn forward(&self, name: &str, module: &dyn Forward) {
        self.check(name, &module, |x| Ok(vec![module.forward(&x[0])?]));
    }

    fn init(&self) -> std::cell::RefMut<'_, Init> {
        self.init.borrow_mut()
    }

    /// All cases whose names begin with one of these were checked, and some were.
    fn finish(&self, families: &[&str]) {
        let checked = self.checked.borrow();
        for name in self.all.keys().filter_map(|name| name.split('/').next()) {
            let family = name.split('.').next().unwrap();
            let known = checked.contains(name) || !families.contains(&family);
            assert!(known, "{name} is stored and not checked");
        }
        for family in families {
            assert!(checked.iter().any(|name| name.split('.').next() == Some(family)), "{family}");
        }
    }
}

/// Padding modes with PyTorch's names.
fn modes() -> [(PadMode, &'static str); 3] {
    let [a, b, c] = ["reflect", "replicate", "circular"];
    [(PadMode::Reflect, a), (PadMode::Replicate, b), (PadMode::Circular, c)]
}

#[test]
fn activations() {
    for p in devices() {
        macro_rules! all {
            ($($name:ident $value:expr;)*) => {
                $(p.forward(stringify!($name), &$value);)*
                p.finish(&[$(stringify!($name)),*]);
            };
        }
        all! {
            Relu Relu; Gelu Gelu; GeluExact GeluExact; Silu Silu; Mish Mish; Sigmoid Sigmoid;
            Tanh Tanh; Selu Selu; Softplus Softplus; Relu6 Relu6; LogSigmoid LogSigmoid;
            Softsign Softsign; Tanhshrink Tanhshrink; Hardsigmoid Hardsigmoid;
            Hardswish Hardswish; LeakyRelu LeakyRelu { slope: 0.2 }; Elu Elu { alpha: 0.7 };
            Celu Celu { alpha: 1.3 }; Hardtanh Hardtanh { min: -0.5, max: 0.8 };
            Hardshrink Hardshrink { lambda: 0.4 }; Softshrink Softshrink { lambda: 0.4 };
            Threshold Threshold { threshold: 0.1, value: -3.0 }; Softmax Softmax { axis: 1 };
            LogSoftmax LogSoftmax { axis: 1 }; Softmin Softmin { axis: 1 }; Glu Glu { axis: 1 };
            PRelu PRelu::new(4, &mut p.init()).unwrap();
        }
    }
}

#[test]
fn normalisations() -> Result<()> {
    for p in devices() {
        macro_rules! batch {
            ($name:literal, $norm:expr) => {{
                let norm = $norm?;
                let running = [&norm.running_mean, &norm.running_var, &norm.num_batches_tracked];
                let running = running.map(|state| state.clone().unwrap());
                p.check($name, &norm, |x| {
                    let mut results = vec![norm.forward(&x[0])?];
                    results.extend(running.iter().map(Param::tensor));
                    Ok(results)
                });
                norm
            }};
        }
        let flat = batch!("BatchNorm1d.flat", BatchNorm1d::new(4, &mut p.init()));
        let one = batch!("BatchNorm1d", BatchNorm1d::new(4, &mut p.init()));
        let two = batch!("BatchNorm2d", BatchNorm2d::new(4, &mut p.init()));
        let three = batch!("BatchNorm3d", BatchNorm3d::new(4, &mut p.init()));
        [&one as &dyn Module, &two, &three, &flat].iter().for_each(|norm| norm.eval());
        p.forward("BatchNorm1d.eval", &one);
        p.forward("BatchNorm2d.eval", &two);
        p.forward("BatchNorm3d.eval", &three);
        assert!(two.forward(&Tensor::ones([2, 4], p.dtype, &p.device)).is_err());
        batch!("BatchNorm2d.plain", BatchNorm2d::plain(4, &mut p.init()));
        let untracked = BatchNorm2d::new(4, &mut p.init())?.without_statistics();
        untracked.eval();
        p.forward("BatchNorm2d.untracked", &untracked);
        let bare = BatchNorm1d::plain(4, &mut p.init())?.without_statistics();
        assert!(bare.named_parameters().is_empty());
        p.forward("BatchNorm1d.bare", &bare);
        p.forward("LayerNorm.plain", &LayerNorm::plain([6, 5]));
        let gain = LayerNorm { bias: None, ..LayerNorm::new(5, &mut p.init())? };
        p.forward("LayerNorm.gain", &gain);
        p.forward("RmsNorm.plain", &RmsNorm::plain(5));
        p.forward("GroupNorm.plain", &GroupNorm::plain(2, 4)?);
        p.forward("InstanceNorm1d", &InstanceNorm1d::affine(4, &mut p.init())?);
        p.forward("InstanceNorm2d", &InstanceNorm2d::affine(4, &mut p.init())?);
        p.forward("InstanceNorm3d", &InstanceNorm3d::affine(4, &mut p.init())?);
        p.forward("InstanceNorm2d.plain", &InstanceNorm2d::new(4));
        p.forward("LayerNorm", &LayerNorm::new([3, 2], &mut p.init())?);
        p.forward("RmsNorm", &RmsNorm::new(5, &mut p.init())?);
        p.forward("GroupNorm", &GroupNorm::new(2, 4, &mut p.init())?);
        let local = |size| LocalResponseNorm { size, alpha: 0.5, beta: 0.6, k: 1.5 };
        p.forward("LocalResponseNorm", &local(3));
        p.forward("LocalResponseNorm.even", &local(4));
        p.finish(&[
            "BatchNorm1d",
            "BatchNorm2d",
            "BatchNorm3d",
            "InstanceNorm1d",
            "InstanceNorm2d",
            "InstanceNorm3d",
            "LayerNorm",
            "RmsNorm",
            "GroupNorm",
            "LocalResponseNorm",
        ]);
    }
    Ok(())
}

#[test]
fn products() -> Result<()> {
    for p in devices() {
        p.forward("Linear", &Linear::new(3, 4, &mut p.init())?);
        let bilinear = Bilinear::new([3, 4], 5, &mut p.init())?;
        p.check("Bilinear", &bilinear, |x| Ok(vec![bilinear.apply(&x[0], &x[1])?]));
        p.forward("Embedding", &Embedding::with_padding(5, 3, 3, &mut p.init())?);
        for (name, mode) in [("sum", BagMode::Sum), ("mean", BagMode::Mean), ("max", BagMode::Max)]
        {
            let bags = EmbeddingBag::new(5, 3, mode, &mut p.init())?;
            p.check(&format!("EmbeddingBag.{name}"), &bags, |x| Ok(vec![bags.bags(&x[0], &x[1])?]));
            p.forward(&format!("EmbeddingBag.{name}.equal"), &bags);
        }
        let options = Conv1dOptions { stride: 2, padding: 1, groups: 2, ..Default::default() };
        p.forward("Conv1d", &Conv1d::new(4, 6, 3, options, &mut p.init())?);
        let options =
            Conv2dOptions { stride: [2, 1], padding: [1, 0], dilation: [1, 2], groups: 2 };
        p.forward("Conv2d", &Conv2d::new(4, 6, [3, 2], options, &mut p.init())?);
        let options = Conv1dOptions { dilation: 2, ..Default::default() };
        let same = Conv1d::new(4, 6, 4, options, &mut p.init())?.with_same_padding()?;
        p.forward("Conv1d.same", &same);
        let options = Conv2dOptions { groups: 2, ..Default::default() };
        let same = Conv2d::new(4, 6, [3, 2], options, &mut p.init())?.with_same_padding()?;
        p.forward("Conv2d.same", &same);
        for (mode, name) in modes() {
            let options = Conv1dOptions { stride: 2, padding: 2, ..Default::default() };
            let line = Conv1d::new(4, 6, 3, options, &mut p.init())?;
            assert!(line.clone().with_same_padding().is_err(), "a stride of 2");
            p.forward(&format!("Conv1d.{name}"), &line.with_padding_mode(mode));
            let options = Conv2dOptions { padding: [2, 1], ..Default::default() };
            let image = Conv2d::new(4, 6, [3, 3], options, &mut p.init())?;
            let image = Conv2d { bias: None, ..image.with_padding_mode(mode) };
            p.forward(&format!("Conv2d.{name}"), &image);
        }
        p.finish(&["Linear", "Bilinear", "Embedding", "EmbeddingBag", "Conv1d", "Conv2d"]);
    }
    Ok(())
}

#[test]
fn recurrent_layers() -> Result<()> {
    for p in devices() {
        let plain = RecurrentOptions::default();
        let both = RecurrentOptions { layers: 2, bidirectional: true, ..plain };
        let first = RecurrentOptions { batch_first: true, ..both };
        let rnn = Rnn::new(3, 4, both, &mut p.init())?;
        let pair = |(a, b): (Tensor, Tensor)| vec![a, b];
        p.check("Rnn", &rnn, |x| Ok(pair(rnn.run(&x[0], None)?)));
        let options = RecurrentOptions { bias: false, ..plain };
        let rnn = Rnn::relu(3, 4, options, &mut p.init())?;
        p.check("Rnn.relu", &rnn, |x| Ok(pair(rnn.run(&x[0], Some(&x[1]))?)));
        let gru = Gru::new(3, 4, first, &mut p.init())?;
        p.check("Gru", &gru, |x| Ok(pair(gru.run(&x[0], Some(&x[1]))?)));
        let gru = Gru::new(3, 4, plain, &mut p.init())?;
        p.check("Gru.flat", &gru, |x| Ok(pair(gru.run(&x[0], None)?)));
        let lstm = Lstm::new(3, 4, first, &mut p.init())?;
        p.check("Lstm", &lstm, |x| {
            let (y, (h, c)) = lstm.run(&x[0], Some((&x[1], &x[2])))?;
            Ok(vec![y, h, c])
        });
        let cell = RnnCell::new(3, 4, &mut p.init())?;
        p.check("RnnCell", &cell, |x| Ok(vec![cell.step(&x[0], &x[1])?]));
        let cell = GruCell::new(3, 4, &mut p.init())?;
        p.check("GruCell", &cell, |x| Ok(vec![cell.step(&x[0], &x[1])?]));
        let cell = LstmCell::new(3, 4, &mut p.init())?;
        p.check("LstmCell", &cell, |x| Ok(pair(cell.step(&x[0], (&x[1], &x[2]))?)));
        p.finish(&["Rnn", "Gru", "Lstm", "RnnCell", "GruCell", "LstmCell"]);
    }
    Ok(())
}

#[test]
fn attention() -> Result<()> {
    for p in devices() {
        let causal = AttentionMask { causal: true, ..Default::default() };
        let none = AttentionMask::default();
        let plain = AttentionOptions::default();
        let pair = |(a, b): (Tensor, Tensor)| vec![a, b];
        let layer = MultiheadAttention::new(6, 2, plain, &mut p.init())?;
        p.check("MultiheadAttention", &layer, |x| {
            Ok(pair(layer.attend(&x[0], &x[0], &x[0], causal)?))
        });
        let apart = AttentionOptions {
            batch_first: true,
            key_width: Some(4),
            value_width: Some(5),
            ..plain
        };
        let layer = MultiheadAttention::new(6, 3, apart, &mut p.init())?;
        p.check("MultiheadAttention.apart", &layer, |x| {
            let mask = AttentionMask { padding: Some(&x[3]), mask: Some(&x[4]), causal: false };
            Ok(pair(layer.attend(&x[0], &x[1], &x[2], mask)?))
        });
        let options = AttentionOptions { bias: false, ..plain };
        let layer = MultiheadAttention::new(6, 2, options, &mut p.init())?;
        p.check("MultiheadAttention.flat", &layer, |x| {
            let (y, weights) = layer.attend(&x[0], &x[0], &x[0], none)?;
            Ok(vec![y, weights.squeeze(0)?])
        });
        let plain = TransformerOptions { feedforward: 7, dropout: 0.0, ..Default::default() };
        let first = TransformerOptions { norm_first: true, batch_first: true, ..plain };
        let layer = TransformerEncoderLayer::new(6, 2, plain, &mut p.init())?;
        p.forward("TransformerEncoderLayer", &layer);
        let gelu =
            TransformerOptions { activation: TransformerActivation::Gelu, eps: 1e-3, ..first };
        let layer = TransformerEncoderLayer::new(6, 2, gelu, &mut p.init())?;
        p.check("TransformerEncoderLayer.first", &layer, |x| {
            Ok(vec![layer.encode(&x[0], causal)?])
        });
        let layer = TransformerDecoderLayer::new(6, 2, plain, &mut p.init())?;
        p.check("TransformerDecoderLayer", &layer, |x| {
            Ok(vec![layer.decode(&x[0], &x[1], causal, none)?])
        });
        let layer = TransformerDecoderLayer::new(6, 2, first, &mut p.init())?;
        p.check("TransformerDecoderLayer.first", &layer, |x| {
            Ok(vec![layer.decode(&x[0], &x[1], none, none)?])
        });
        let options = TransformerOptions { batch_first: true, ..plain };
        let model = Transformer::new([2, 2], 6, 2, options, &mut p.init())?;
        p.check("Transformer", &model, |x| Ok(vec![model.apply(&x[0], &x[1], none, causal)?]));
        p.finish(&[
            "MultiheadAttention",
            "TransformerEncoderLayer",
            "TransformerDecoderLayer",
            "Transformer",
        ]);
    }
    Ok(())
}

#[test]
fn positions() -> Result<()> {
    for p in devices() {
        let halves = RotaryEmbedding::new(6)?;
        p.check("RotaryEmbedding", &(), |x| Ok(vec![halves.rotate(&x[0], 3)?]));
        let neighbours = RotaryEmbedding { pairs: RotaryPairs::Neighbours, ..halves };
        p.check("RotaryEmbedding.neighbours", &(), |x| Ok(vec![neighbours.rotate(&x[0], 3)?]));
        p.forward("SinusoidalPositions", &SinusoidalPositions);
        p.finish(&["RotaryEmbedding", "SinusoidalPositions"]);
    }
    Ok(())
}

#[test]
fn shapes_and_pooling() -> Result<()> {
    for p in devices() {
        p.forward("PixelShuffle", &PixelShuffle(2));
        p.forward("PixelUnshuffle", &PixelUnshuffle(2));
        p.forward("ChannelShuffle", &ChannelShuffle(2));
        p.forward("Unflatten", &Unflatten { axis: 1, shape: Shape::from([2, 3]) });
        let window = Pool { stride: [2], padding: [1], ..Pool::new([3]) };
        p.forward("MaxPool1d", &MaxPool1d(Pool { dilation: [2], ..window }));
        p.forward("AvgPool1d", &AvgPool1d(window));
        let pool = Pool2d { stride: [2, 1], padding: [1, 0], ..Pool2d::new([3, 2]) };
        p.forward("MaxPool2d", &MaxPool2d(pool));
        p.forward("AvgPool2d", &AvgPool2d(pool));
        p.forward("LpPool2d", &LpPool2d { p: 2.0, pool: Pool2d::new([2, 2]) });
        p.forward("AdaptiveAvgPool1d", &AdaptiveAvgPool1d([4]));
        p.forward("AdaptiveAvgPool2d", &AdaptiveAvgPool2d([4, 2]));
        p.finish(&[
            "PixelShuffle",
            "PixelUnshuffle",
            "ChannelShuffle",
            "Unflatten",
            "MaxPool1d",
            "AvgPool1d",
            "MaxPool2d",
            "AvgPool2d",
            "LpPool2d",
            "AdaptiveAvgPool1d",
            "AdaptiveAvgPool2d",
        ]);
    }
    Ok(())
}

#[test]
fn losses() {
    for p in devices() {
        macro_rules! all {
            ($($name:literal $($field:ident $value:expr),*; $loss:ident $method:ident $n:tt;)*) => {
                $(
                    #[allow(unused_mut, reason = "some losses have nothing to set")]
                    let mut loss = $loss::default();
                    $(loss.$field = $value;)*
                    p.check($name, &(), |x| Ok(vec![all!(@call loss $method x $n)?]));
                )*
                p.finish(&[$(stringify!($loss)),*]);
            };
            (@call $loss:ident $method:ident $x:ident 2) => { $loss.$method(&$x[0], &$x[1]) };
            (@call $loss:ident $method:ident $x:ident 3) => { $loss.$method(&$x[0], &$x[1], &$x[2]) };
        }
        all! {
            "MseLoss"; MseLoss loss 2;
            "L1Loss" reduction Reduction::Sum; L1Loss loss 2;
            "HuberLoss" delta 0.7; HuberLoss loss 2;
            "SmoothL1Loss" beta 0.7; SmoothL1Loss loss 2;
            "CrossEntropyLoss" ignore_index Some(1), label_smoothing 0.1; CrossEntropyLoss loss 2;
            "NllLoss"; NllLoss loss 2;
            "BceLoss"; BceLoss loss 2;
            "BceWithLogitsLoss"; BceWithLogitsLoss loss 2;
            "KlDivLoss"; KlDivLoss loss 2;
            "PoissonNllLoss"; PoissonNllLoss loss 2;
            "PoissonNllLoss.rate" log_input false; PoissonNllLoss loss 2;
            "SoftMarginLoss"; SoftMarginLoss loss 2;
            "HingeEmbeddingLoss" margin 0.8; HingeEmbeddingLoss loss 2;
            "MultiLabelSoftMarginLoss"; MultiLabelSoftMarginLoss loss 2;
            "MultiMarginLoss" margin 0.6; MultiMarginLoss loss 2;
            "MultiMarginLoss.squares" p 2.0; MultiMarginLoss loss 2;
            "GaussianNllLoss" full true, eps 0.3; GaussianNllLoss loss 3;
            "MarginRankingLoss" margin 0.3; MarginRankingLoss loss 3;
            "TripletMarginLoss"; TripletMarginLoss loss 3;
            "TripletMarginLoss.cubes" p 3.0, margin 0.5; TripletMarginLoss loss 3;
            "CosineEmbeddingLoss" margin 0.1; CosineEmbeddingLoss loss 3;
            "CosineSimilarity"; CosineSimilarity apply 2;
            "PairwiseDistance"; PairwiseDistance apply 2;
        }
    }
}

#[test]
fn convolutions_and_volumes() -> Result<()> {
    for p in devices() {
        let options = Conv3dOptions {
            stride: [2, 1, 1],
            padding: [1, 0, 0],
            groups: 2,
            ..Default::default()
        };
        p.forward("Conv3d", &Conv3d::new(4, 6, [3, 2, 1], options, &mut p.init())?);
        let options = Conv3dOptions { padding: [2, 0, 1], ..Default::default() };
        let volume = Conv3d::new(2, 3, [2; 3], options, &mut p.init())?;
        p.forward("Conv3d.reflect", &volume.with_padding_mode(PadMode::Reflect));
        let volume = Conv3d::new(2, 3, [2, 3, 1], Conv3dOptions::default(), &mut p.init())?;
        let volume = volume.with_padding_mode(PadMode::Circular).with_same_padding()?;
        p.forward("Conv3d.same", &volume);
        let options = ConvTransposeOptions {
            stride: [2],
            padding: [1],
            output_padding: [1],
            groups: 2,
            ..Default::default()
        };
        p.forward("ConvTranspose1d", &ConvTranspose1d::new(4, 6, [3], options, &mut p.init())?);
        let options = ConvTransposeOptions {
            stride: [2, 1],
            padding: [1, 0],
            dilation: [1, 2],
            groups: 2,
            ..Default::default()
        };
        p.forward("ConvTranspose2d", &ConvTranspose2d::new(4, 6, [3, 2], options, &mut p.init())?);
        let options = ConvTransposeOptions { stride: [1, 2, 1], ..Default::default() };
        p.forward(
            "ConvTranspose3d",
            &ConvTranspose3d::new(4, 2, [2, 2, 2], options, &mut p.init())?,
        );
        let pool = Pool { stride: [2, 1, 1], ..Pool::new([2, 2, 2]) };
        p.forward("MaxPool3d", &MaxPool3d(pool));
        p.forward("AvgPool3d", &AvgPool3d(pool));
        let pool = Pool { stride: [2], ..Pool::new([3]) };
        p.forward("LpPool1d", &LpPool1d { p: 2.0, pool });
        p.forward("LpPool3d", &LpPool3d { p: 2.0, pool: Pool::new([2, 2, 2]) });
        p.forward("AdaptiveAvgPool3d", &AdaptiveAvgPool3d([2, 3, 2]));
        p.forward("AdaptiveMaxPool1d", &AdaptiveMaxPool1d([2]));
        p.forward("AdaptiveMaxPool2d", &AdaptiveMaxPool2d([2, 3]));
        p.forward("AdaptiveMaxPool3d", &AdaptiveMaxPool3d([2, 3, 2]));
        let windows = Pool { stride: [1, 2], padding: [1, 0], ..Pool::new([2, 3]) };
        p.forward("Unfold", &Unfold(windows));
        let windows = Pool { stride: [1, 1], ..Pool::new([2, 2]) };
        p.forward("Fold", &Fold { output: [3, 4], windows });
        p.check("MaxUnpool2d", &(), |x| {
            let (y, indices) = x[0].max_pool2d_with_indices(Pool::new([2, 2]))?;
            Ok(vec![MaxUnpool2d([4, 4]).apply(&y, &indices)?])
        });
        p.finish(&["Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "MaxPool3d"]);
        p.finish(&["AvgPool3d", "LpPool1d", "LpPool3d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d"]);
        p.finish(&["AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "Unfold", "Fold", "MaxUnpool2d"]);
    }
    Ok(())
}

#[test]
fn sizes_and_borders() {
    for p in devices() {
        let with = |scale: &[f64], mode, align_corners| Upsample {
            scale: scale.to_vec(),
            mode,
            align_corners,
        };
        p.forward("Upsample", &with(&[2.0, 1.5], Interpolation::Linear, false));
        p.forward("Upsample.nearest", &with(&[2.0, 3.0], Interpolation::Nearest, false));
        p.forward("Upsample.nearest", &UpsampleNearest2d([2, 3]));
        p.forward("Upsample.corners", &with(&[2.0, 2.0], Interpolation::Linear, true));
        p.forward("Upsample.cubic", &with(&[2.0, 2.0], Interpolation::Cubic, false));
        p.forward("Upsample.line", &with(&[2.0], Interpolation::Linear, false));
        p.forward("Upsample.volume", &Upsample::new([2.0, 2.0, 2.0]));
        let pad = |mode| Pad { padding: vec![(2, 0), (1, 2)], mode };
        p.forward("Pad.reflect", &pad(PadMode::Reflect));
        p.forward("Pad.replicate", &pad(PadMode::Replicate));
        p.forward("Pad.circular", &Pad { padding: vec![(1, 2)], mode: PadMode::Circular });
        let pad = Pad { padding: vec![(3, 0), (1, 2)], mode: PadMode::Constant(0.5) };
        p.forward("Pad.constant", &pad);
        let ctc = CtcLoss::default();
        p.check("CtcLoss", &(), |x| Ok(vec![ctc.loss(&x[0], &x[1], &x[2], &x[3])?]));
        let loss = MultiLabelMarginLoss::default();
        p.check("MultiLabelMarginLoss", &(), |x| Ok(vec![loss.loss(&x[0], &x[1])?]));
        p.forward("Pad.constant", &ConstantPad { padding: vec![(3, 0), (1, 2)], value: 0.5 });
        p.finish(&["Upsample", "Pad", "CtcLoss", "MultiLabelMarginLoss"]);
    }
}

/// Together the tests above check everything that is stored.
#[test]
fn every_case_belongs_to_a_family() {
    let p = &devices()[0];
    let names: BTreeSet<&str> =
        p.all.keys().filter_map(|name| name.split(['.', '/']).next()).collect();
    let text = include_str!("parity.rs");
    let unknown: Vec<&&str> = names
        .iter()
        .filter(|name| {
            !text.contains(&format!("\"{name}\"")) && !text.contains(&format!("{name} "))
        })
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
