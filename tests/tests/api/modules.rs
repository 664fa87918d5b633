//! One row per public function of the layers and optimizers beyond the first ones, by family.

use crate::Call;
use crate::calls;
use crate::source::Source;
use crate::told;
use zyx_nn::{
    AlphaDropout, AttentionMask, AttentionOptions, BagMode, BatchNorm1d, BatchNorm3d, Bilinear,
    Conv3d, ConvTranspose2d, CosineEmbeddingLoss, CosineSimilarity, CtcLoss, Dropout1d, Dropout2d,
    Dropout3d, Embedding, EmbeddingBag, Fan, Forward, GaussianNllLoss, Gru, GruCell, Init,
    InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, KvCache, LocalResponseNorm, Loss, Lstm,
    LstmCell, MarginRankingLoss, Module, MultiheadAttention, PRelu, PairwiseDistance,
    RecurrentOptions, RngStream, Rnn, RnnCell, RotaryEmbedding, RotaryPairs, SinusoidalPositions,
    Transformer, TransformerActivation, TransformerDecoder, TransformerDecoderLayer,
    TransformerEncoder, TransformerEncoderLayer, TransformerOptions, TripletMarginLoss, Upsample,
};
use zyx_optim::{
    Accumulator, Adadelta, AdadeltaOptions, Adagrad, AdagradOptions, Adamax, AdamaxOptions, Ema,
    Groups, Lamb, LambOptions, Lion, LionOptions, LossScaler, MasterWeights, Muon, MuonOptions,
    NAdam, NAdamOptions, Optimizer, RAdam, RAdamOptions, RmsProp, RmsPropOptions, Rprop,
    RpropOptions, Sgd, SgdOptions, schedule,
};
use zyx_tests::zyx_core::{Conv3dOptions, ConvTransposeOptions, DType, Param, Result, Rng, Tensor};

/// Types whose functions macros write, so that no source has them in a line.
pub(crate) const BY_MACROS: &[&str] = &[
    "Adadelta",
    "Adagrad",
    "Adam",
    "AlphaDropout",
    "BatchNorm",
    "Conv2d::with_",
    "ConvTranspose",
    "CosineEmbeddingLoss",
    "Dropout",
    "GaussianNllLoss",
    "Gru::new",
    "Gru::options",
    "GruCell",
    "InstanceNorm",
    "Lamb",
    "Lion",
    "Loss::",
    "Lstm::new",
    "Lstm::options",
    "LstmCell::new",
    "MarginRankingLoss",
    "MasterWeights",
    "MaxUnpool",
    "Module",
    "Muon",
    "NAdam",
    "RAdam",
    "RmsProp",
    "Rnn::new",
    "Rnn::options",
    "RnnCell",
    "Rprop",
    "Sgd",
    "TripletMarginLoss",
];

pub(crate) fn all() -> Vec<Call> {
    [initialisers(), layers(), recurrent(), transformers(), losses(), optimizers(), around()]
        .concat()
}

fn init(s: &mut Source) -> Init {
    let mut init = Init::new(1, &s.device);
    init.dtype = s.dtype();
    init
}

/// A layer that was made is applied to something in both modes. Errors of that name the methods
/// it consists of, which have rows of their own.
fn used(layer: impl Forward, s: &mut Source) -> Vec<Tensor> {
    layer.n_parameters();
    let image = s.pick(&[1, 2, 3]);
    let x = if s.one_in(2) { s.image(image).0 } else { s.x() };
    let mut made: Vec<Tensor> = layer.parameters().iter().map(Param::tensor).collect();
    made.extend(layer.forward(&x).ok());
    layer.eval();
    made.extend(layer.forward(&x).ok());
    assert!(!layer.summary().is_empty());
    made
}

/// `[.., width]` of usually three axes.
fn sequence(s: &mut Source, width: usize) -> Tensor {
    let rank = s.pick(&[0, 1, 2, 2, 2, 3]);
    let mut shape: Vec<usize> = (0..rank).map(|_| s.pick(&[1, 2, 3])).collect();
    shape.push(width);
    let dtype = s.pick(&[DType::F32, DType::F32, DType::F64, DType::I32]);
    s.tensor(shape, dtype)
}

fn initialisers() -> Vec<Call> {
    calls! {
        "Init::xavier_uniform" |s| { let shape = s.shape(); init(s).xavier_uniform(shape, s.number())? };
        "Init::xavier_normal" |s| { let shape = s.shape(); init(s).xavier_normal(shape, s.number())? };
        "Init::kaiming_uniform" |s| {
            let shape = s.shape();
            init(s).kaiming_uniform(shape, s.number(), s.pick(&[Fan::In, Fan::Out]))?
        };
        "Init::kaiming_normal" |s| {
            let shape = s.shape();
            init(s).kaiming_normal(shape, s.number(), s.pick(&[Fan::In, Fan::Out]))?
        };
        "Init::trunc_normal" |s| {
            let shape = s.shape();
            let shape = if s.large { vec![usize::MAX] } else { shape };
            init(s).trunc_normal(shape, s.number(), s.number())?
        };
        "Init::orthogonal" |s| {
            let shape = s.shape();
            let shape = if s.large { vec![usize::MAX, 2] } else { shape };
            init(s).orthogonal(shape, s.number())?
        };
        "Init::dirac" |s| {
            let shape = s.shape();
            let shape = if s.large { vec![usize::MAX, 2, 2] } else { shape };
            init(s).dirac(shape)?
        };
        "Init::eye" |s| { let [rows, columns] = s.pair(); init(s).eye(rows, columns)? };
        "Init::sparse" |s| {
            let [rows, columns] = s.pair();
            let rows = if s.large { usize::MAX } else { rows };
            init(s).sparse(rows, columns, s.number(), s.number())?
        };
        "gain" |s| told(zyx_nn::gain(s.pick(&["relu", "", "tanh"])));
        "RngStream::new" |s| told(RngStream::new(s.draws.clone()).lock().next_u64());
        "RngStream::lock" |s| told(RngStream::new(Rng::seed(s.int() as u64)).lock().next_u64());
        "RngStream::set" |s| {
            let stream = RngStream::new(Rng::seed(1));
            stream.set([0, u32::MAX], s.int() as u64);
            let next = stream.lock().next_u64();
            told(next)
        };
    }
}

fn layers() -> Vec<Call> {
    calls! {
        "Bilinear::new" |s| {
            let mut init = init(s);
            let layer = Bilinear::new(s.pair(), s.size(), &mut init)?;
            layer.parameters().iter().map(Param::tensor).collect::<Vec<_>>()
        };
        "Bilinear::apply" |s| {
            let layer = Bilinear::new([2, 3], 2, &mut Init::new(1, &s.device))?;
            let (a, b) = (sequence(s, 2), sequence(s, 3));
            layer.apply(&a, &b).ok().into_iter().collect::<Vec<_>>()
        };
        "Embedding::with_padding" |s| {
            let mut init = init(s);
            used(Embedding::with_padding(s.size(), s.size(), s.size(), &mut init)?, s)
        };
        "EmbeddingBag::new" |s| {
            let mut init = init(s);
            let mode = s.pick(&[BagMode::Sum, BagMode::Mean, BagMode::Max]);
            used(EmbeddingBag::new(s.size(), s.size(), mode, &mut init)?, s)
        };
        "EmbeddingBag::bags" |s| {
            let mode = s.pick(&[BagMode::Sum, BagMode::Mean, BagMode::Max]);
            let bags = EmbeddingBag::new(3, 2, mode, &mut Init::new(1, &s.device))?;
            let x = s.x();
            let (rows, offsets) = (s.index(&x), s.index(&x));
            bags.bags(&rows, &offsets).ok().into_iter().collect::<Vec<_>>()
        };
        "PRelu::new" |s| { let mut init = init(s); used(PRelu::new(s.size(), &mut init)?, s) };
        "LocalResponseNorm::new" |s| used(LocalResponseNorm::new(s.size()), s);
        "InstanceNorm1d::new" |s| used(InstanceNorm1d::new(s.size()), s);
        "InstanceNorm2d::affine" |s| {
            let mut init = init(s);
            used(InstanceNorm2d::affine(s.size(), &mut init)?, s)
        };
        "InstanceNorm3d::new" |s| used(InstanceNorm3d::new(s.size()), s);
        "BatchNorm1d::new" |s| { let mut init = init(s); used(BatchNorm1d::new(s.size(), &mut init)?, s) };
        "BatchNorm3d::new" |s| { let mut init = init(s); used(BatchNorm3d::new(s.size(), &mut init)?, s) };
        "Dropout1d::new" |s| { let mut init = init(s); used(Dropout1d::new(s.number(), &mut init)?, s) };
        "Dropout2d::new" |s| { let mut init = init(s); used(Dropout2d::new(s.number(), &mut init)?, s) };
        "Dropout3d::new" |s| { let mut init = init(s); used(Dropout3d::new(s.number(), &mut init)?, s) };
        "AlphaDropout::new" |s| { let mut init = init(s); used(AlphaDropout::new(s.number(), &mut init)?, s) };
        "Conv3d::new" |s| {
            let mut init = init(s);
            let [inputs, outputs] = s.pair();
            let kernel = [s.size(), s.size(), s.size()];
            let options = Conv3dOptions { groups: s.size(), ..Default::default() };
            used(Conv3d::new(inputs, outputs, kernel, options, &mut init)?, s)
        };
        "ConvTranspose2d::new" |s| {
            let mut init = init(s);
            let [inputs, outputs] = s.pair();
            let options = ConvTransposeOptions { stride: s.pair(), groups: s.size(), ..Default::default() };
            used(ConvTranspose2d::new(inputs, outputs, s.pair(), options, &mut init)?, s)
        };
        "Upsample::new" |s| used(Upsample::new([s.number(), s.number()]), s);
        "CtcLoss::loss" |s| {
            let x = if s.one_in(2) { s.x() } else { s.tensor(vec![3, 2, 4], DType::F32) };
            let [a, b, c] = match s.one_in(2) {
                true => [s.index(&x), s.index(&x), s.index(&x)],
                false => [vec![2, 2], vec![2], vec![2]]
                    .map(|dims| s.tensor(dims, DType::F32).abs().cast(DType::I64)),
            };
            CtcLoss::default().loss(&x, &a, &b, &c).ok().into_iter().collect::<Vec<_>>()
        };
        "MaxUnpool1d::apply" |s| {
            let x = s.x();
            let index = s.index(&x);
            zyx_nn::MaxUnpool1d([s.size()]).apply(&x, &index).ok().into_iter().collect::<Vec<_>>()
        };
        "RotaryEmbedding::new" |s| told(RotaryEmbedding::new(s.size())?);
        "RotaryEmbedding::rotate" |s| {
            let rotary = RotaryEmbedding {
                base: s.number(),
                pairs: s.pick(&[RotaryPairs::Halves, RotaryPairs::Neighbours]),
                ..RotaryEmbedding::new(2)?
            };
            rotary.rotate(&s.floats(), s.pick(&[0, 3])).ok().into_iter().collect::<Vec<_>>()
        };
        "SinusoidalPositions::table" |s| {
            let (steps, width, dtype) = (s.pick(&[0, 1, 3]), s.size(), s.dtype());
            SinusoidalPositions::table(steps, width, s.pick(&[0, 5]), dtype, &s.device)?
        };
        "Module::load_partial" |s| {
            let layer = zyx_nn::Linear::new(2, 3, &mut Init::new(1, &s.device))?;
            let tensors = [("a".to_owned(), s.x()), ("b".to_owned(), s.x())].into();
            let all = s.one_in(2);
            let rename = |name: &str| {
                (all || name == "a").then(|| "bias".to_owned())
            };
            layer.load_partial(&tensors, &rename)?;
            layer.parameters().iter().map(Param::tensor).collect::<Vec<_>>()
        };
    }
}

fn recurrent_options(s: &mut Source) -> RecurrentOptions {
    RecurrentOptions {
        layers: s.pick(&[0, 1, 1, 2]),
        bidirectional: s.one_in(3),
        batch_first: s.one_in(2),
        dropout: s.pick(&[0.0, 0.0, 0.5, -1.0]),
        bias: s.one_in(2),
    }
}

fn recurrent() -> Vec<Call> {
    calls! {
        "Rnn::new" |s| {
            let mut init = init(s);
            used(Rnn::new(s.size(), s.size(), recurrent_options(s), &mut init)?, s)
        };
        "Rnn::relu" |s| {
            let mut init = init(s);
            used(Rnn::relu(s.size(), s.size(), recurrent_options(s), &mut init)?, s)
        };
        "Rnn::run" |s| {
            let rnn = Rnn::new(2, 2, recurrent_options(s), &mut Init::new(1, &s.device))?;
            let (x, start) = (sequence(s, 2), s.floats());
            let ran = rnn.run(&x, if s.one_in(2) { Some(&start) } else { None });
            ran.ok().map(|(a, b)| vec![a, b]).unwrap_or_default()
        };
        "Gru::new" |s| {
            let mut init = init(s);
            let gru = Gru::new(s.size(), s.size(), recurrent_options(s), &mut init)?;
            gru.options();
            used(gru, s)
        };
        "Gru::run" |s| {
            let gru = Gru::new(2, 2, recurrent_options(s), &mut Init::new(1, &s.device))?;
            let ran = gru.run(&sequence(s, 2), None);
            ran.ok().map(|(a, b)| vec![a, b]).unwrap_or_default()
        };
        "Lstm::new" |s| {
            let mut init = init(s);
            used(Lstm::new(s.size(), s.size(), recurrent_options(s), &mut init)?, s)
        };
        "Lstm::run" |s| {
            let lstm = Lstm::new(2, 2, recurrent_options(s), &mut Init::new(1, &s.device))?;
            let (x, h, c) = (sequence(s, 2), s.floats(), s.floats());
            let ran = lstm.run(&x, if s.one_in(2) { Some((&h, &c)) } else { None });
            ran.ok().map(|(a, (b, c))| vec![a, b, c]).unwrap_or_default()
        };
        "RnnCell::step" |s| {
            let cell = RnnCell::new(2, 2, &mut Init::new(1, &s.device))?;
            cell.step(&sequence(s, 2), &sequence(s, 2)).ok().into_iter().collect::<Vec<_>>()
        };
        "GruCell::step" |s| {
            let cell = GruCell::new(2, 2, &mut Init::new(1, &s.device))?;
            cell.step(&sequence(s, 2), &sequence(s, 2)).ok().into_iter().collect::<Vec<_>>()
        };
        "LstmCell::new" |s| {
            let mut init = init(s);
            let cell = LstmCell::new(s.size(), s.size(), &mut init)?;
            cell.parameters().iter().map(Param::tensor).collect::<Vec<_>>()
        };
        "LstmCell::step" |s| {
            let cell = LstmCell::new(2, 2, &mut Init::new(1, &s.device))?;
            let (x, h, c) = (sequence(s, 2), sequence(s, 2), sequence(s, 2));
            cell.step(&x, (&h, &c)).ok().map(|(a, b)| vec![a, b]).unwrap_or_default()
        };
    }
}

fn attention(s: &mut Source) -> Result<MultiheadAttention> {
    let options = AttentionOptions {
        batch_first: s.one_in(2),
        key_width: s.pick(&[None, Some(2)]),
        bias: s.one_in(2),
        ..Default::default()
    };
    MultiheadAttention::new(4, 2, options, &mut Init::new(1, &s.device))
}

fn transformer_options(s: &mut Source) -> TransformerOptions {
    TransformerOptions {
        feedforward: s.size(),
        dropout: s.pick(&[0.0, 0.1, 2.0]),
        activation: s.pick(&[TransformerActivation::Relu, TransformerActivation::Gelu]),
        norm_first: s.one_in(2),
        batch_first: s.one_in(2),
        eps: 1e-5,
    }
}

fn transformers() -> Vec<Call> {
    calls! {
        "MultiheadAttention::new" |s| {
            let mut init = init(s);
            let options = AttentionOptions { dropout: s.number(), ..Default::default() };
            used(MultiheadAttention::new(s.size(), s.size(), options, &mut init)?, s)
        };
        "MultiheadAttention::attend" |s| {
            let attention = attention(s)?;
            let (q, k, v) = (sequence(s, 4), sequence(s, 4), sequence(s, 4));
            let mask = s.maybe_partner(&q);
            let mask = AttentionMask { causal: s.one_in(2), mask: mask.as_ref(), padding: None };
            let attended = attention.attend(&q, &k, &v, mask);
            attended.ok().map(|(a, b)| vec![a, b]).unwrap_or_default()
        };
        "MultiheadAttention::attend_cached" |s| {
            let (attention, cache) = (attention(s)?, KvCache::new(s.pick(&[0, 2, 4])));
            let x = sequence(s, 4);
            let mut made: Vec<Tensor> = attention.attend_cached(&x, &cache).ok().into_iter().collect();
            made.extend(attention.attend_cached(&x, &cache).ok());
            made
        };
        "KvCache::new" |s| told(KvCache::new(s.size()).capacity());
        "KvCache::attend" |s| {
            let cache = KvCache::new(s.pick(&[0, 3]));
            // What has not four axes is refused.
            if s.one_in(2) {
                let x = s.tensor(vec![1, 1, 2, 2], DType::F32);
                return Ok(cache.attend(&x, &x, &x)?.into());
            }
            let x = s.floats();
            cache.attend(&x, &s.partner(&x), &s.partner(&x)).ok().into_iter().collect::<Vec<_>>()
        };
        "KvCache::len" |s| told(KvCache::new(s.size()).len());
        "KvCache::is_empty" |s| told(KvCache::new(s.size()).is_empty());
        "KvCache::capacity" |s| told(KvCache::new(s.size()).capacity());
        "KvCache::tensors" |s| {
            let (cache, x) = (KvCache::new(s.size()), s.tensor(vec![1, 1, 2, 2], DType::F32));
            let attended = cache.attend(&x, &x, &x).ok();
            cache.tensors().into_iter().chain(attended).collect::<Vec<_>>()
        };
        "KvCache::clear" |s| {
            let (cache, x) = (KvCache::new(3), s.floats());
            let attended = cache.attend(&x, &x, &x).ok();
            cache.clear();
            told((attended.is_some(), cache.len()))
        };
        "TransformerActivation::apply" |s| TransformerActivation::Relu.apply(&s.x());
        "TransformerEncoderLayer::new" |s| {
            let mut init = init(s);
            let options = transformer_options(s);
            used(TransformerEncoderLayer::new(s.size(), s.size(), options, &mut init)?, s)
        };
        "TransformerEncoderLayer::encode" |s| {
            let options = TransformerOptions { feedforward: 2, ..transformer_options(s) };
            let layer = TransformerEncoderLayer::new(2, 1, options, &mut Init::new(1, &s.device))?;
            let mask = AttentionMask { causal: true, ..Default::default() };
            layer.encode(&sequence(s, 2), mask).ok().into_iter().collect::<Vec<_>>()
        };
        "TransformerEncoderLayer::encode_cached" |s| {
            let options = TransformerOptions { feedforward: 2, ..transformer_options(s) };
            let layer = TransformerEncoderLayer::new(2, 1, options, &mut Init::new(1, &s.device))?;
            let cache = KvCache::new(2);
            layer.encode_cached(&sequence(s, 2), &cache).ok().into_iter().collect::<Vec<_>>()
        };
        "TransformerEncoder::new" |s| {
            let mut init = init(s);
            let options = transformer_options(s);
            used(TransformerEncoder::new(s.pick(&[0, 1, 2]), s.size(), 1, options, &mut init)?, s)
        };
        "TransformerEncoder::encode" |s| {
            let options = TransformerOptions { feedforward: 2, ..transformer_options(s) };
            let model = TransformerEncoder::new(1, 2, 1, options, &mut Init::new(1, &s.device))?;
            model.encode(&sequence(s, 2), AttentionMask::default()).ok().into_iter().collect::<Vec<_>>()
        };
        "TransformerDecoderLayer::new" |s| {
            let mut init = init(s);
            let options = transformer_options(s);
            let layer = TransformerDecoderLayer::new(s.size(), s.size(), options, &mut init)?;
            layer.parameters().iter().map(Param::tensor).collect::<Vec<_>>()
        };
        "TransformerDecoderLayer::decode" |s| {
            let options = TransformerOptions { feedforward: 2, ..transformer_options(s) };
            let layer = TransformerDecoderLayer::new(2, 1, options, &mut Init::new(1, &s.device))?;
            let plain = AttentionMask::default();
            layer.decode(&sequence(s, 2), &sequence(s, 2), plain, plain).ok().into_iter().collect::<Vec<_>>()
        };
        "TransformerDecoder::new" |s| {
            let mut init = init(s);
            let options = transformer_options(s);
            let (n, width) = (s.pick(&[0, 1]), s.size());
            let model = TransformerDecoder::new(n, width, 1, options, &mut init)?;
            model.parameters().iter().map(Param::tensor).collect::<Vec<_>>()
        };
        "TransformerDecoder::decode" |s| {
            let options = TransformerOptions { feedforward: 2, ..transformer_options(s) };
            let model = TransformerDecoder::new(1, 2, 1, options, &mut Init::new(1, &s.device))?;
            let plain = AttentionMask::default();
            model.decode(&sequence(s, 2), &sequence(s, 2), plain, plain).ok().into_iter().collect::<Vec<_>>()
        };
        "Transformer::new" |s| {
            let mut init = init(s);
            let options = transformer_options(s);
            let model = Transformer::new([1, 1], s.size(), s.size(), options, &mut init)?;
            model.parameters().iter().map(Param::tensor).collect::<Vec<_>>()
        };
        "Transformer::apply" |s| {
            let options = TransformerOptions { feedforward: 2, ..transformer_options(s) };
            let model = Transformer::new([1, 1], 2, 1, options, &mut Init::new(1, &s.device))?;
            let plain = AttentionMask::default();
            model.apply(&sequence(s, 2), &sequence(s, 2), plain, plain).ok().into_iter().collect::<Vec<_>>()
        };
    }
}

/// Every loss of two arguments by its default settings.
fn every_loss(x: &Tensor, y: &Tensor) -> Vec<Tensor> {
    let all: [&dyn Loss; 15] = [
        &zyx_nn::MseLoss::default(),
        &zyx_nn::L1Loss::default(),
        &zyx_nn::HuberLoss::default(),
        &zyx_nn::SmoothL1Loss::default(),
        &zyx_nn::CrossEntropyLoss::default(),
        &zyx_nn::NllLoss::default(),
        &zyx_nn::BceLoss::default(),
        &zyx_nn::BceWithLogitsLoss::default(),
        &zyx_nn::KlDivLoss::default(),
        &zyx_nn::PoissonNllLoss::default(),
        &zyx_nn::SoftMarginLoss::default(),
        &zyx_nn::HingeEmbeddingLoss::default(),
        &zyx_nn::MultiLabelSoftMarginLoss::default(),
        &zyx_nn::MultiMarginLoss::default(),
        &zyx_nn::MultiLabelMarginLoss::default(),
    ];
    all.iter().filter_map(|loss| loss.loss(x, y).ok()).collect()
}

fn losses() -> Vec<Call> {
    calls! {
        "Loss::loss" |s| { let x = s.x(); let y = s.partner(&x); every_loss(&x, &y) };
        "GaussianNllLoss::loss" |s| {
            let x = s.x();
            let (y, z) = (s.partner(&x), s.partner(&x));
            GaussianNllLoss::default().loss(&x, &y, &z).ok().into_iter().collect::<Vec<_>>()
        };
        "MarginRankingLoss::loss" |s| {
            let x = s.x();
            let (y, z) = (s.partner(&x), s.partner(&x));
            MarginRankingLoss::default().loss(&x, &y, &z).ok().into_iter().collect::<Vec<_>>()
        };
        "TripletMarginLoss::loss" |s| {
            let x = s.x();
            let (y, z) = (s.partner(&x), s.partner(&x));
            let loss = TripletMarginLoss { p: s.number(), ..Default::default() };
            loss.loss(&x, &y, &z).ok().into_iter().collect::<Vec<_>>()
        };
        "CosineEmbeddingLoss::loss" |s| {
            let x = s.x();
            let (y, z) = (s.partner(&x), s.partner(&x));
            CosineEmbeddingLoss::default().loss(&x, &y, &z).ok().into_iter().collect::<Vec<_>>()
        };
        "CosineSimilarity::apply" |s| {
            let x = s.x();
            let y = s.partner(&x);
            CosineSimilarity { axis: s.axis(), eps: 1e-8 }.apply(&x, &y).ok().into_iter().collect::<Vec<_>>()
        };
        "PairwiseDistance::apply" |s| {
            let x = s.x();
            let y = s.partner(&x);
            PairwiseDistance { p: s.number(), eps: 0.0 }.apply(&x, &y).ok().into_iter().collect::<Vec<_>>()
        };
    }
}

/// A step with random gradients, one along a random loss, and the state there and back.
fn stepped(mut optimizer: impl Optimizer, s: &mut Source) -> Vec<Tensor> {
    let parameters: Vec<Param> = optimizer.parameters().to_vec();
    let values: Vec<Tensor> = parameters.iter().map(Param::tensor).collect();
    let gradients: Vec<Option<Tensor>> = values.iter().map(|x| s.maybe_partner(x)).collect();
    let _ = optimizer.apply(&gradients, &[]);
    // A sum over an expanded tensor needs no memory, and takes as long as it has elements.
    let loss = values.first().filter(|_| !s.large).and_then(|x| x.square().sum(..).ok());
    if let Some(loss) = loss {
        let _ = optimizer.step(&loss);
    }
    let state = optimizer.state();
    assert!(s.large || optimizer.load_state(&state).is_ok(), "its own state");
    parameters.iter().map(Param::tensor).collect()
}

/// One number of some options, anything; the others stay.
macro_rules! with_one {
    ($s:ident, $options:ident, $($field:ident),*) => {{
        let mut options = $options::default();
        let x = $s.number();
        let fields = [$(&mut options.$field),*];
        let chosen = $s.rng.below(fields.len());
        for (i, field) in fields.into_iter().enumerate() {
            if i == chosen {
                *field = x;
            }
        }
        options
    }};
}

fn places(s: &mut Source) -> Vec<Param> {
    vec![Param::new(s.x()), Param::new(s.floats())]
}

fn optimizers() -> Vec<Call> {
    calls! {
        "RmsProp::new" |s| {
            let options = with_one!(s, RmsPropOptions, learning_rate, alpha, eps, momentum);
            let options = RmsPropOptions { centered: s.one_in(2), ..options };
            stepped(RmsProp::new(places(s), options)?, s)
        };
        "Adagrad::new" |s| {
            let options = with_one!(s, AdagradOptions, learning_rate, rate_decay, initial, eps);
            stepped(Adagrad::new(places(s), options)?, s)
        };
        "Adadelta::new" |s| {
            let options = with_one!(s, AdadeltaOptions, learning_rate, rho, eps, weight_decay);
            stepped(Adadelta::new(places(s), options)?, s)
        };
        "Rprop::new" |s| {
            let options = with_one!(s, RpropOptions, learning_rate);
            stepped(Rprop::new(places(s), options)?, s)
        };
        "Adamax::new" |s| {
            let options = with_one!(s, AdamaxOptions, learning_rate, eps, weight_decay);
            stepped(Adamax::new(places(s), options)?, s)
        };
        "NAdam::new" |s| {
            let options = with_one!(s, NAdamOptions, learning_rate, eps, momentum_decay);
            stepped(NAdam::new(places(s), options)?, s)
        };
        "RAdam::new" |s| {
            let options = with_one!(s, RAdamOptions, learning_rate, eps, weight_decay);
            stepped(RAdam::new(places(s), options)?, s)
        };
        "Lamb::new" |s| {
            let options = with_one!(s, LambOptions, learning_rate, eps, weight_decay);
            stepped(Lamb::new(places(s), options)?, s)
        };
        "Lion::new" |s| {
            let options = with_one!(s, LionOptions, learning_rate, weight_decay);
            stepped(Lion::new(places(s), options)?, s)
        };
        "Muon::new" |s| {
            let options = with_one!(s, MuonOptions, learning_rate, momentum, eps);
            stepped(Muon::new(places(s), options)?, s)
        };
    }
}

fn sgd(s: &mut Source, parameters: Vec<Param>) -> Result<Sgd> {
    Sgd::new(parameters, SgdOptions { learning_rate: s.pick(&[0.0, 0.1]), ..Default::default() })
}

fn around() -> Vec<Call> {
    calls! {
        "Proposal::tensors" |s| {
            let parameters = places(s);
            let sgd = sgd(s, parameters)?;
            let gradients: Vec<_> = sgd.parameters().iter().map(|p| Some(p.tensor())).collect();
            sgd.propose(&gradients)?.tensors().into_iter().cloned().collect::<Vec<_>>()
        };
        "Groups::new" |s| {
            let (a, b) = (places(s), places(s));
            stepped(Groups::new(vec![Box::new(sgd(s, a)?), Box::new(sgd(s, b)?)])?, s)
        };
        "Groups::groups" |s| {
            let a = places(s);
            told(Groups::new(vec![Box::new(sgd(s, a)?)])?.groups().len())
        };
        "MasterWeights::new" |s| {
            let parameters = places(s);
            let make = |masters| Sgd::new(masters, SgdOptions::default());
            stepped(MasterWeights::new(parameters, make)?, s)
        };
        "MasterWeights::inner" |s| {
            let parameters = places(s);
            let make = |masters| Sgd::new(masters, SgdOptions::default());
            let masters = MasterWeights::new(parameters, make)?;
            masters.inner().parameters().iter().map(Param::tensor).collect::<Vec<_>>()
        };
        "LossScaler::gradients" |s| {
            let x = Param::new(s.floats());
            let sgd = sgd(s, vec![x.clone()])?;
            let mut scaler = LossScaler { scale: s.number(), ..Default::default() };
            let loss = x.tensor().sum(..)?;
            let gradients = scaler.gradients(&sgd, &loss)?;
            gradients.into_iter().flatten().flatten().collect::<Vec<_>>()
        };
        "LossScaler::step" |s| {
            let x = Param::new(s.floats());
            let mut sgd = sgd(s, vec![x.clone()])?;
            let loss = x.tensor().sum(..)?;
            LossScaler::default().step(&mut sgd, &loss)?;
            x.tensor()
        };
        "Ema::new" |s| { let parameters = places(s); Ema::new(parameters, s.number())?.averages().to_vec() };
        "Ema::update" |s| {
            let mut ema = Ema::new(places(s), 0.5)?;
            ema.update()?;
            ema.averages().to_vec()
        };
        "Ema::swap" |s| {
            let places = places(s);
            Ema::new(places.clone(), 0.5)?.swap()?;
            places.iter().map(Param::tensor).collect::<Vec<_>>()
        };
        "Ema::averages" |s| Ema::new(places(s), 0.5)?.averages().to_vec();
        "Ema::state" |s| Ema::new(places(s), 0.5)?.state().into_values().collect::<Vec<_>>();
        "Ema::load_state" |s| {
            let mut ema = Ema::new(places(s), 0.5)?;
            let mut state = ema.state();
            if s.one_in(2) {
                state.insert("0.average".to_owned(), s.x());
            }
            ema.load_state(&state)?;
            ema.averages().to_vec()
        };
        "Accumulator::add" |s| {
            let x = Param::new(s.floats());
            let sgd = sgd(s, vec![x.clone()])?;
            let mut sums = Accumulator::default();
            sums.add(&sgd, &x.tensor().sum(..)?)?;
            sums.take()?.into_iter().flatten().collect::<Vec<_>>()
        };
        "Accumulator::batches" |s| {
            let x = Param::new(s.floats());
            let sgd = sgd(s, vec![x.clone()])?;
            let mut sums = Accumulator::default();
            sums.add(&sgd, &x.tensor().sum(..)?)?;
            told(sums.batches())
        };
        "Accumulator::take" |s| {
            let x = Param::new(s.floats());
            let sgd = sgd(s, vec![x.clone()])?;
            let mut sums = Accumulator::default();
            if s.one_in(2) {
                sums.add(&sgd, &x.tensor().square().sum(..)?)?;
            }
            sums.take()?.into_iter().flatten().collect::<Vec<_>>()
        };
        "schedule::linear" |s| told(schedule::linear(s.int() as u64, s.int() as u64, s.number(), s.number()));
        "schedule::cosine_restarts" |s| {
            let (step, first, factor) = (s.int() as u64, s.int() as u64, s.int() as u64);
            told(schedule::cosine_restarts(step, first, factor, s.number(), s.number()))
        };
        "schedule::multistep" |s| told(schedule::multistep(s.int() as u64, &[s.int() as u64, 0], s.number(), s.number()));
        "schedule::exponential" |s| told(schedule::exponential(s.int() as u64, s.number(), s.number()));
        "schedule::polynomial" |s| told(schedule::polynomial(s.int() as u64, s.int() as u64, s.number(), s.number()));
        "schedule::inverse_root" |s| told(schedule::inverse_root(s.int() as u64, s.int() as u64, s.number()));
        "schedule::one_cycle" |s| told(schedule::one_cycle(s.int() as u64, s.int() as u64, s.number(), s.number()));
        "schedule::Plateau::new" |s| told(schedule::Plateau::new(s.number()));
        "schedule::Plateau::observe" |s| {
            let mut plateau = schedule::Plateau::new(s.number());
            told((0..30).map(|_| plateau.observe(s.number())).collect::<Vec<_>>())
        };
    }
}
