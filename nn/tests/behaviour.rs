//! What layers do besides computing: initial values, masks, freezing, loading from elsewhere, and
//! caches that write a text word by word.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use std::collections::BTreeMap;
use zyx_backend_cpu::Cpu;
use zyx_core::{
    Conv1dOptions, Conv2dOptions, ConvTransposeOptions, DType, Device, Param, Result, Rng, Runtime,
    Tensor,
};
use zyx_nn::*;

fn devices() -> Vec<Device> {
    let runtime = Runtime::default();
    runtime.register(Cpu::default());
    ["reference", "cpu"].map(|name| runtime.device(name).unwrap()).into()
}

fn device() -> Device {
    devices().swap_remove(0)
}

/// Mean and standard deviation.
fn moments(x: &Tensor) -> (f64, f64) {
    let x: Vec<f64> = x.to_vec::<f32>().unwrap().into_iter().map(f64::from).collect();
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    (mean, (x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt())
}

#[test]
fn initial_values_have_their_spread() -> Result<()> {
    let d = &device();
    let init = &mut Init::new(3, d);
    // The standard deviation of 40 x 60 draws is known to 1.5% or so.
    let check = |name: &str, x: Tensor, std: f64, most: f64| {
        let (mean, actual) = moments(&x);
        assert!(mean.abs() < 0.1 * std, "{name}: mean {mean}");
        assert!((actual / std - 1.0).abs() < 0.05, "{name}: {actual} instead of {std}");
        let largest = x.abs().max(..).unwrap().item::<f32>().unwrap();
        assert!(f64::from(largest) <= most, "{name}: {largest}");
    };
    let any = f64::INFINITY;
    let shape = [40, 60];
    let glorot = 2.0 * (2f64 / 100.0).sqrt();
    check("xavier_uniform", init.xavier_uniform(shape, 2.0)?, glorot, glorot * 3f64.sqrt());
    check("xavier_normal", init.xavier_normal(shape, 2.0)?, glorot, any);
    let he = gain("relu").unwrap() / 60f64.sqrt();
    let kaiming = init.kaiming_uniform(shape, 2f64.sqrt(), Fan::In)?;
    check("kaiming_uniform", kaiming, he, he * 3f64.sqrt() + 1e-7);
    let kaiming = init.kaiming_normal([20, 10, 4, 3], 1.0, Fan::Out)?;
    check("kaiming_normal", kaiming, 1.0 / 240f64.sqrt(), any);
    // The standard deviation of a normal that is cut at two of its own, and of one cut at half.
    check("trunc_normal", init.trunc_normal(shape, 0.02, 0.04)?, 0.02 * 0.879_626, 0.04);
    check("trunc_normal", init.trunc_normal(shape, 1.0, 0.5)?, 0.283_859, 0.5);
    assert!(init.trunc_normal([2], 0.0, 1.0).is_err() && init.xavier_normal([3], 1.0).is_err());
    Ok(())
}

#[test]
fn matrices_of_special_form() -> Result<()> {
    let d = &device();
    let init = &mut Init { dtype: DType::F64, ..Init::new(3, d) };
    for shape in [[5, 8], [8, 5], [6, 6]] {
        let x = init.orthogonal(shape, 2.0)?;
        let gram = if shape[0] <= shape[1] { x.matmul(&x.t())? } else { x.t().matmul(&x)? };
        let n = shape[0].min(shape[1]);
        let error = gram.sub(Tensor::eye(n, DType::F64, d).mul(4.0)?)?.abs().max(..)?;
        assert!(error.item::<f64>()? < 1e-13, "{shape:?}");
    }
    assert_eq!(init.orthogonal([4, 2, 3], 1.0)?.shape().dims(), [4, 2, 3]);
    assert_eq!(init.eye(2, 3)?.to_vec::<f64>()?, [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    let sparse = init.sparse(10, 4, 0.35, 1.0)?;
    let zeros = sparse.eq(0.0)?.cast(DType::I64).sum(0)?.to_vec::<i64>()?;
    assert_eq!(zeros, [4; 4], "a third of each column");
    // A convolution by it gives back its input.
    let weight = init.dirac([3, 2, 3])?;
    let x = Tensor::randn([2, 2, 5], DType::F64, &mut init.rng, d)?;
    let options = Conv1dOptions { padding: 1, ..Default::default() };
    let y = x.conv1d(&weight, None, options)?;
    assert_eq!(y.slice(1, 0..2)?.to_vec::<f64>()?, x.to_vec::<f64>()?);
    assert_eq!(y.slice(1, 2..3)?.abs().max(..)?.item::<f64>()?, 0.0);
    Ok(())
}

#[test]
fn dropouts_drop_what_they_should() -> Result<()> {
    for d in devices() {
        let init = &mut Init::new(1, &d);
        let ones = |shape: &[usize]| Tensor::ones(shape, DType::F32, &d);
        let channels = Dropout2d::new(0.5, init)?.forward(&ones(&[16, 32, 3, 3]))?;
        let channels = channels.reshape([512, 9])?;
        let (low, high) = (channels.min(1)?.to_vec::<f32>()?, channels.max(1)?.to_vec::<f32>()?);
        assert_eq!(low, high, "a channel is dropped whole");
        let dropped = low.iter().filter(|&&x| x == 0.0).count();
        assert!((200..312).contains(&dropped), "{dropped} of 512");
        assert!(low.iter().all(|&x| x == 0.0 || x == 2.0));
        assert!(Dropout1d::new(0.5, init)?.forward(&ones(&[3])).is_err());
        assert_eq!(Dropout1d::new(0.5, init)?.forward(&ones(&[8, 3]))?.shape().dims(), [8, 3]);
        assert_eq!(
            Dropout3d::new(1.0, init)?.forward(&ones(&[2, 1, 2, 2]))?.sum(..)?.item::<f32>()?,
            0.0
        );
        // Mean and deviation of a standard normal stay.
        let x = Tensor::randn([20_000], DType::F32, &mut init.rng, &d)?;
        let alpha = AlphaDropout::new(0.3, init)?;
        let (mean, std) = moments(&alpha.forward(&x)?);
        assert!(mean.abs() < 0.03 && (std - 1.0).abs() < 0.03, "{mean} {std}");
        alpha.eval();
        assert_eq!(alpha.forward(&x)?.to_vec::<f32>()?, x.to_vec::<f32>()?);
    }
    Ok(())
}

#[test]
fn streams_are_part_of_a_module() -> Result<()> {
    let d = &device();
    let init = &mut Init::new(1, d);
    let model = Sequential::new().then(Dropout::new(0.5, init)?).then(Dropout::new(0.5, init)?);
    let streams = model.named_streams();
    let names: Vec<&str> = streams.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["0.stream", "1.stream"]);
    let x = Tensor::ones([64], DType::F32, d);
    let places: Vec<Rng> = streams.iter().map(|(_, stream)| stream.lock().clone()).collect();
    let first = model.forward(&x)?.to_vec::<f32>()?;
    assert_ne!(model.forward(&x)?.to_vec::<f32>()?, first);
    for ((_, stream), place) in streams.iter().zip(&places) {
        stream.set(place.key(), place.counter());
    }
    assert_eq!(model.forward(&x)?.to_vec::<f32>()?, first);
    Ok(())
}

/// Running statistics and their count, which a forward pass in training makes of those at the start.
fn statistics_after(
    layer: &impl Forward,
    shape: &[usize],
    d: &Device,
) -> Result<(Vec<usize>, Vec<f64>)> {
    let x = Tensor::ones(shape, DType::F32, d);
    let shape = layer.forward(&x)?.shape().to_vec();
    let mut state = Vec::new();
    for (_, value) in layer.named_state() {
        state.extend(value.tensor().cast(DType::F64).to_vec::<f64>()?);
    }
    Ok((shape, state))
}

/// As PyTorch: a batch without values counts and moves nothing, one value per channel is refused.
#[test]
fn statistics_of_nothing_change_nothing() -> Result<()> {
    let d = &device();
    let init = &mut Init::new(1, d);
    let start = |batches: f64| vec![0.0, 0.0, 0.0, 1.0, 1.0, 1.0, batches];
    macro_rules! check {
        ($batch:ident $instance:ident, $($empty:expr),*; $one:expr) => {
            for momentum in [Some(0.1), None] {
                for shape in [$(&$empty[..]),*] {
                    let layer = $batch { momentum, ..$batch::new(3, init)? };
                    for batches in 1..3 {
                        let found = statistics_after(&layer, shape, d)?;
                        assert_eq!(found, (shape.to_vec(), start(f64::from(batches))));
                    }
                    let layer = $batch::new(3, init)?.without_statistics();
                    assert_eq!(statistics_after(&layer, shape, d)?, (shape.to_vec(), vec![]));
                    // Samples without positions, and without samples.
                    if shape.len() > 2 {
                        let layer = $instance { momentum, ..$instance::new(3) };
                        let layer = layer.with_statistics(init)?;
                        assert_eq!(statistics_after(&layer, shape, d)?, (shape.to_vec(), start(0.0)));
                    }
                }
                let layer = $batch { momentum, ..$batch::new(3, init)? };
                let refused = statistics_after(&layer, &$one, d).unwrap_err().to_string();
                assert!(refused.contains("more than one value"), "{refused}");
                assert_eq!(statistics_after(&layer, &[&[0], &$one[1..]].concat(), d)?.1, start(1.0));
                layer.eval();
                assert_eq!(statistics_after(&layer, &$one, d)?.1, start(1.0));
                assert!(statistics_after(&layer.without_statistics(), &$one, d).is_err());
                let plain = $instance::new(3);
                assert!($one.len() < 3 || statistics_after(&plain, &$one, d).is_err());
            }
        };
    }
    check!(BatchNorm1d InstanceNorm1d, [0, 3], [0, 3, 4], [2, 3, 0], [0, 3, 0]; [1, 3]);
    check!(BatchNorm1d InstanceNorm1d, [0, 3, 2]; [1, 3, 1]);
    check!(BatchNorm2d InstanceNorm2d, [0, 3, 2, 2], [2, 3, 0, 2]; [1, 3, 1, 1]);
    check!(BatchNorm3d InstanceNorm3d, [0, 3, 2, 2, 2], [2, 3, 2, 2, 0]; [1, 3, 1, 1, 1]);
    let groups = GroupNorm::new(4, 4, init)?;
    assert!(statistics_after(&groups, &[1, 4], d).is_err());
    for shape in [&[0, 4][..], &[2, 4], &[2, 4, 0], &[1, 4, 2]] {
        assert_eq!(statistics_after(&groups, shape, d)?.0, shape);
    }
    // A batch after an empty one moves statistics as if it were the first.
    let (first, second) = (BatchNorm1d::new(3, init)?, BatchNorm1d::new(3, init)?);
    statistics_after(&first, &[0, 3], d)?;
    let moved = |layer| statistics_after(layer, &[5, 3], d).map(|(_, state)| state[..6].to_vec());
    assert_eq!(moved(&first)?, moved(&second)?);
    Ok(())
}

/// A batch without samples has gradients: zeros, by which momentum and weight decay go on.
#[test]
fn empty_batches_have_gradients() -> Result<()> {
    let d = &device();
    let init = &mut Init::new(1, d);
    let layers: Vec<(Box<dyn Forward>, Vec<usize>)> = vec![
        (Box::new(Linear::new(3, 2, init)?), vec![0, 3]),
        (Box::new(Conv1d::new(3, 2, 3, Conv1dOptions::default(), init)?), vec![0, 3, 4]),
        (Box::new(Conv2d::new(3, 2, [3; 2], Conv2dOptions::default(), init)?), vec![0, 3, 4, 4]),
        (
            Box::new(ConvTranspose1d::new(3, 2, [3; 1], ConvTransposeOptions::default(), init)?),
            vec![0, 3, 4],
        ),
        (
            Box::new(ConvTranspose2d::new(3, 2, [3; 2], ConvTransposeOptions::default(), init)?),
            vec![0, 3, 4, 4],
        ),
        (
            Box::new(ConvTranspose3d::new(3, 2, [3; 3], ConvTransposeOptions::default(), init)?),
            vec![0, 3, 4, 4, 4],
        ),
        (Box::new(BatchNorm1d::new(3, init)?), vec![0, 3]),
        (Box::new(GroupNorm::new(3, 3, init)?), vec![0, 3, 2]),
        (Box::new(LayerNorm::new([3], init)?), vec![0, 3]),
    ];
    for (layer, shape) in layers {
        let x = Tensor::ones(&shape[..], DType::F32, d).tracked();
        let parameters: Vec<Tensor> =
            layer.parameters().iter().filter(|p| p.is_trainable()).map(Param::tensor).collect();
        let operands: Vec<&Tensor> = [&x].into_iter().chain(&parameters).collect();
        let gradients = layer.forward(&x)?.sum(..)?.grad(&operands)?;
        for (operand, gradient) in operands.into_iter().zip(gradients) {
            let gradient = gradient.expect("a gradient");
            assert_eq!(gradient.shape(), operand.shape());
            assert!(gradient.to_vec::<f32>()?.iter().all(|&x| x == 0.0));
        }
    }
    Ok(())
}

#[test]
fn freezing_spares_state() -> Result<()> {
    let init = &mut Init::new(1, &device());
    let model = Sequential::new().then(Linear::new(2, 3, init)?).then(BatchNorm1d::new(3, init)?);
    let trainable = |model: &Sequential| {
        model.parameters().iter().filter(|parameter| parameter.is_trainable()).count()
    };
    assert_eq!(trainable(&model), 4);
    model.freeze();
    assert_eq!((trainable(&model), model.n_parameters()), (0, 0));
    model.unfreeze();
    assert_eq!(trainable(&model), 4);
    let state: Vec<String> = model.named_state().into_iter().map(|(name, _)| name).collect();
    assert_eq!(state, ["1.running_mean", "1.running_var", "1.num_batches_tracked"]);
    let dictionary: ModuleDict<Linear> =
        [("b".to_owned(), Linear::new(1, 1, init)?), ("a".to_owned(), Linear::new(1, 1, init)?)]
            .into();
    assert_eq!(dictionary.named_parameters()[0].0, "a.weight");
    Ok(())
}

#[test]
fn files_of_others_are_loaded() -> Result<()> {
    let d = &device();
    let init = &mut Init::new(1, d);
    let tied = Linear::without_bias(2, 2, init)?;
    let model: ModuleList<Linear> = vec![tied.clone(), Linear::new(2, 3, init)?, tied.clone()];
    let value = |shape: &[usize]| Tensor::full(shape, 7f32, d);
    let file: BTreeMap<String, Tensor> = [
        ("m.0.w".to_owned(), value(&[2, 2])),
        ("m.1.w".to_owned(), value(&[3, 2])),
        ("m.9.w".to_owned(), value(&[1])),
        ("other".to_owned(), value(&[1])),
    ]
    .into();
    let rename = |name: &str| {
        let place = name.strip_prefix("m.")?.strip_suffix(".w")?;
        Some(format!("{place}.weight"))
    };
    let loaded = model.load_partial(&file, &rename)?;
    // Number 2 is number 0.
    assert_eq!(loaded.missing, ["1.bias"]);
    assert_eq!(loaded.unexpected, ["9.weight"]);
    assert_eq!(model[2].weight.tensor().to_vec::<f32>()?, [7.0; 4]);
    let clash = |_: &str| Some("1.bias".to_owned());
    assert!(model.load_partial(&file, &clash).unwrap_err().to_string().contains("two tensors"));
    let wrong = |name: &str| (name == "other").then(|| "1.bias".to_owned());
    let message = model.load_partial(&file, &wrong).unwrap_err().to_string();
    assert!(message.contains("1.bias has shape [1], the model needs [3]"), "{message}");
    Ok(())
}

#[test]
fn a_cache_writes_what_the_whole_text_gives() -> Result<()> {
    for d in devices() {
        let init = &mut Init::new(1, &d);
        let options = TransformerOptions {
            feedforward: 12,
            dropout: 0.0,
            norm_first: true,
            batch_first: true,
            ..Default::default()
        };
        let layers = TransformerEncoder::new(2, 8, 2, options, init)?.layers;
        let text = Tensor::randn([2, 9, 8], DType::F32, &mut init.rng, &d)?.contiguous();
        text.realize()?;
        let causal = AttentionMask { causal: true, ..Default::default() };
        let whole = layers.iter().try_fold(text.clone(), |x, layer| layer.encode(&x, causal))?;
        let caches: Vec<KvCache> = layers.iter().map(|_| KvCache::new(9)).collect();
        // Words as data: where a slice begins is part of a plan.
        let word = |from: usize, to: usize| -> Result<Tensor> {
            let word = text.slice(1, from..to)?.contiguous();
            word.realize()?;
            Ok(word)
        };
        let words = [word(0, 4)?, word(4, 5)?, word(5, 6)?, word(6, 7)?, word(7, 8)?, word(8, 9)?];
        let write = |word: usize| -> Result<Tensor> {
            let mut x = words[word].clone();
            for (layer, cache) in layers.iter().zip(&caches) {
                x = layer.encode_cached(&x, cache)?;
            }
            let kept: Vec<Tensor> = caches.iter().flat_map(KvCache::tensors).collect();
            Tensor::realize_all(kept.iter().chain([&x]))?;
            Ok(x)
        };
        // The first words together, then one by one; from the second on with the same plan.
        let mut parts = vec![write(0)?, write(1)?, write(2)?];
        let before = d.stats();
        for word in 3..6 {
            parts.push(write(word)?);
        }
        let stats = d.stats().since(&before);
        assert_eq!((stats.plan_hits, stats.compiles, stats.plan_misses), (3, 0, 0), "{stats:?}");
        let all = Tensor::cat(&parts.iter().collect::<Vec<_>>(), 1)?;
        let error = all.sub(&whole)?.abs().max(..)?.item::<f32>()?;
        assert!(error < 1e-5, "{error} on {d}");
        assert!(write(1).unwrap_err().to_string().contains("1 words after 9 of 9"));
        caches.iter().for_each(KvCache::clear);
        assert!(caches[0].is_empty() && write(0).is_ok());
        // Two heads of queries to one of keys: the same as that head twice.
        let draw =
            |heads, init: &mut Init| Tensor::randn([1, heads, 3, 4], DType::F32, &mut init.rng, &d);
        let (q, k, v) = (draw(4, init)?, draw(2, init)?, draw(2, init)?);
        let twice = |x: &Tensor| x.unsqueeze(2)?.expand([1, 2, 2, 3, 4])?.reshape([1, 4, 3, 4]);
        let few = KvCache::new(5).attend(&q, &k, &v)?;
        let many = KvCache::new(5).attend(&q, &twice(&k)?, &twice(&v)?)?;
        assert!(few.sub(&many)?.abs().max(..)?.item::<f32>()? < 1e-6);
    }
    Ok(())
}

#[test]
fn statistics_of_one_position_are_refused() -> Result<()> {
    let d = &device();
    let norm = InstanceNorm1d::new(3).with_statistics(&mut Init::new(3, d))?;
    let error = norm.forward(&Tensor::ones([4, 3, 1], DType::F32, d)).unwrap_err().to_string();
    assert!(error.contains("more than one value"), "{error}");
    // Samples that are not there leave the statistics as they are.
    norm.forward(&Tensor::ones([0, 3, 5], DType::F32, d))?;
    norm.forward(&Tensor::ones([4, 3, 2], DType::F32, d))?;
    let mean = norm.running_mean.as_ref().expect("it keeps them").tensor();
    assert!(mean.to_vec::<f32>()?.iter().all(|x| (x - 0.1).abs() < 1e-6));
    Ok(())
}
