//! One row per public function of parameters, shapes, generators, `nn` and `optim`.

use crate::Call;
use crate::calls;
use crate::source::Source;
use crate::told;
use std::collections::BTreeMap;
use zyx_nn::{
    BatchNorm2d, Conv1d, Conv2d, Dropout, Embedding, Forward, GroupNorm, Init, LayerNorm, Linear,
    Module, RmsNorm, Sequential, safetensors,
};
use zyx_optim::{
    Adam, AdamOptions, AdamW, Optimizer, Sgd, SgdOptions, clip_norm, clip_to_norm, clip_value,
    schedule, total_norm,
};
use zyx_tests::zyx_core::tensor::Steps;
use zyx_tests::zyx_core::{
    DType, Device, Float8, Jit, PadMode, Param, Pool, Result, Rng, Runtime, Tensor,
};

pub(crate) fn all() -> Vec<Call> {
    let mut all = places();
    all.extend(layers());
    all.extend(files());
    all.extend(optimizers());
    all
}

fn places() -> Vec<Call> {
    calls! {
        "Param::new" |s| Param::new(s.x()).tensor();
        "Param::state" |s| Param::state(s.x()).tensor();
        "Param::tensor" |s| Param::new(s.x()).tensor();
        "Param::version" |s| {
            let place = Param::new(s.x());
            assert_eq!(place.version(), 0);
            place.tensor()
        };
        "Param::set" |s| {
            let x = s.x();
            let place = Param::new(x.clone());
            let y = s.partner(&x);
            let fits = x.shape() == y.shape() && x.dtype() == y.dtype() && x.device() == y.device();
            let set = place.set(&y);
            assert_eq!(set.is_ok(), fits, "{y:?} for {x:?}");
            set?;
            place.tensor()
        };
        "Param::convert" |s| {
            let place = Param::new(s.x());
            let (dtype, trains) = (s.dtype(), place.is_trainable());
            let converted = place.convert(dtype, &s.device);
            assert_eq!(converted.is_ok(), dtype.is_float() || !trains, "{dtype}");
            converted?;
            assert_eq!(place.dtype(), dtype);
            place.tensor()
        };
        "Param::is_trainable" |s| told(Param::new(s.x()).is_trainable());
        "Param::set_trainable" |s| {
            let (place, trains) = (Param::new(s.x()), s.one_in(2));
            place.set_trainable(trains);
            told(place.is_trainable())
        };
        "Param::tie" |s| {
            let x = s.x();
            let y = s.partner(&x);
            let (place, other) = (Param::new(x.clone()), Param::new(y.clone()));
            let tied = place.tie(&other);
            assert_eq!(tied.is_ok(), x.shape() == y.shape(), "{y:?} for {x:?}");
            tied?;
            assert!(place.is_same(&other));
            place.tensor()
        };
        "Param::set_name" |s| {
            let place = Param::new(s.x());
            place.set_name(s.pick(&["", ".", "fc1.weight"]));
            place.tensor()
        };
        "Param::name" |s| {
            let (place, name) = (Param::new(s.x()), s.pick(&["", ".", "fc1.weight"]));
            place.set_name(name);
            assert_eq!(place.name().as_deref(), Some(name));
            place.tensor()
        };
        "Param::within_layer" |s| {
            let place = Param::new(s.x());
            place.set_name(s.pick(&["", ".", "fc1.weight"]));
            let refused = place.tensor().reshape([usize::MAX, 3]);
            let told = refused.map_err(|error| place.within_layer(error).to_string());
            assert!(told.is_err_and(|told| told.contains("reshape")));
            place.tensor()
        };
        "Param::id" |s| {
            let place = Param::new(s.x());
            assert_ne!(place.id(), Param::new(s.x()).id());
            place.tensor()
        };
        "Param::is_state" |s| told(Param::new(s.x()).is_state());
        "Param::shape" |s| told(Param::new(s.x()).shape());
        "Param::dtype" |s| told(Param::new(s.x()).dtype());
        "Param::device" |s| told(Param::new(s.x()).device());
        "Param::is_same" |s| told(Param::new(s.x()).is_same(&Param::new(s.x())));
        "Jit::new" |s| {
            let _ = Jit::new(|x: &[Tensor]| Ok(x.to_vec()));
            s.x()
        };
        "Jit::call" |s| {
            let x = s.x();
            let y = s.partner(&x);
            let sum = Jit::new(|x: &[Tensor]| Ok(vec![x[0].add(&x[1])?]));
            // Calls compute, so not what would take long.
            match x.numel().max(y.numel()) <= crate::SMALL && !s.large {
                true => sum.call(&[&x, &y])?.remove(0),
                false => x.add(&y)?,
            }
        };
        "Jit::traces" |s| {
            let same = Jit::new(|x: &[Tensor]| Ok(x.to_vec()));
            assert_eq!(same.traces(), 0);
            s.x()
        };
        "Steps::trace" |s| {
            let x = s.x();
            let inputs = [(x.shape().clone(), x.dtype())];
            let sum = |v: &[Tensor]| Ok(vec![v[0].add(&x)?]);
            let made = Steps::trace(&inputs, x.device(), std::slice::from_ref(&x), &[], sum)?;
            told(made.steps[made.outputs[0]].tensor.shape())
        };
        "Steps::note" |s| {
            let (x, y) = (s.x(), s.x());
            Steps::note("same", &[&x], &[&y]);
            y
        };
        "Pool::new" |s| {
            let options = Pool::new([s.int() as usize, 2]);
            s.x().max_pool2d(options)?
        };
        "Rng::seed" |s| told(Rng::seed(s.int() as u64).next_u64());
        "Rng::at" |s| {
            let mut rng = Rng::at([u32::MAX, 0], s.int() as u64);
            told(rng.next_u64())
        };
        "Rng::key" |s| told(s.draws.key());
        "Rng::counter" |s| told(s.draws.counter());
        "Rng::split" |s| told(s.draws.split().next_u64());
        "Rng::next_u64" |s| told((s.draws.next_u64(), s.draws.next_f64()));
        "Rng::below" |s| {
            let n = s.size() as u64;
            let x = s.draws.below(n);
            assert!(x < n || n == 0);
            told(x)
        };
        "Runtime::device" |s| {
            let spec = ["reference", "reference:0", "reference:1", "", ":", "::", "reference:99999999999999999999", "gpu", "é:0"];
            let spec = s.pick(&spec);
            told(Runtime::default().device(spec)?.spec().to_owned())
        };
    }
}

fn init(s: &mut Source) -> Init {
    let mut init = Init::new(1, &s.device);
    init.dtype = s.dtype();
    init
}

/// A layer that was made is applied to something, and its parameters counted.
fn used(layer: impl Forward, s: &mut Source) -> Vec<Tensor> {
    layer.n_parameters();
    let x = if s.one_in(2) { s.image(2).0 } else { s.x() };
    let mut made: Vec<Tensor> = layer.parameters().iter().map(Param::tensor).collect();
    // Errors of the forward pass name the methods it consists of, which have rows of their own.
    made.extend(layer.forward(&x).ok());
    layer.eval();
    made.extend(layer.forward(&x).ok());
    made
}

fn layers() -> Vec<Call> {
    calls! {
        "Init::new" |s| Init::new(s.int() as u64, &s.device).uniform([3], 1.0)?;
        "Init::uniform" |s| { let shape = s.shape(); init(s).uniform(shape, s.number())? };
        "Init::normal" |s| { let shape = s.shape(); init(s).normal(shape, s.number())? };
        "Init::fan_in_uniform" |s| {
            let shape = s.shape();
            init(s).fan_in_uniform(shape, s.size())?
        };
        "Init::full" |s| { let shape = s.shape(); init(s).full(shape, s.number())? };
        "Linear::new" |s| {
            let mut init = init(s);
            used(Linear::new(s.size(), s.size(), &mut init)?, s)
        };
        "Linear::without_bias" |s| {
            let mut init = init(s);
            used(Linear::without_bias(s.size(), s.size(), &mut init)?, s)
        };
        "Embedding::new" |s| {
            let mut init = init(s);
            used(Embedding::new(s.size(), s.size(), &mut init)?, s)
        };
        "Conv2d::new" |s| {
            let mut init = init(s);
            let [inputs, outputs] = s.pair();
            used(Conv2d::new(inputs, outputs, s.pair(), s.conv2d(), &mut init)?, s)
        };
        "Conv2d::with_same_padding" |s| {
            let mut init = init(s);
            let [inputs, outputs] = s.pair();
            let layer = Conv2d::new(inputs, outputs, s.pair(), s.conv2d(), &mut init)?;
            used(layer.with_same_padding()?, s)
        };
        "Conv2d::with_padding_mode" |s| {
            let mut init = init(s);
            let [inputs, outputs] = s.pair();
            let layer = Conv2d::new(inputs, outputs, s.pair(), s.conv2d(), &mut init)?;
            used(layer.with_padding_mode(PadMode::Circular), s)
        };
        "Conv1d::new" |s| {
            let mut init = init(s);
            let [inputs, outputs] = s.pair();
            used(Conv1d::new(inputs, outputs, s.size(), s.conv1d(), &mut init)?, s)
        };
        "LayerNorm::new" |s| { let mut init = init(s); used(LayerNorm::new(s.shape(), &mut init)?, s) };
        "RmsNorm::new" |s| { let mut init = init(s); used(RmsNorm::new(s.shape(), &mut init)?, s) };
        "GroupNorm::new" |s| {
            let mut init = init(s);
            used(GroupNorm::new(s.size(), s.size(), &mut init)?, s)
        };
        "LayerNorm::plain" |s| used(LayerNorm::plain(s.shape()), s);
        "RmsNorm::plain" |s| used(RmsNorm::plain(s.shape()), s);
        "GroupNorm::plain" |s| used(GroupNorm::plain(s.size(), s.size())?, s);
        "BatchNorm2d::plain" |s| {
            let mut init = init(s);
            used(BatchNorm2d::plain(s.size(), &mut init)?.without_statistics(), s)
        };
        "BatchNorm2d::new" |s| { let mut init = init(s); used(BatchNorm2d::new(s.size(), &mut init)?, s) };
        "Dropout::new" |s| { let mut init = init(s); used(Dropout::new(s.number(), &mut init)?, s) };
        "Sequential::new" |s| Sequential::new().forward(&s.x())?;
        "Sequential::then" |s| used(Sequential::new().then(zyx_nn::Relu).then(zyx_nn::Flatten), s);
        "Sequential::len" |s| { let _ = s; told(Sequential::new().then(zyx_nn::Relu).len()) };
        "Sequential::is_empty" |s| { let _ = s; told(Sequential::new().is_empty()) };
        "Module::load_tensors" |s| {
            let layer = Linear::new(2, 3, &mut Init::new(1, &s.device))?;
            let names = ["weight", "bias", "x"];
            let mut tensors: BTreeMap<String, Tensor> =
                (0..s.rng.below(4)).map(|i| (names[i % 3].to_owned(), s.x())).collect();
            if s.one_in(2) {
                let fitting = [("weight", vec![3, 2]), ("bias", vec![3])];
                tensors = fitting.map(|(n, dims)| (n.to_owned(), s.tensor(dims, DType::F32))).into();
            }
            layer.load_tensors(&tensors)?;
            layer.parameters().iter().map(Param::tensor).collect::<Vec<_>>()
        };
    }
}

fn tensors(s: &mut Source) -> BTreeMap<String, Tensor> {
    (0..s.rng.below(3)).map(|i| (format!("{i}\"\n\u{1F600}"), s.x())).collect()
}

/// A file in the directory for temporary ones.
fn place(s: &mut Source) -> std::path::PathBuf {
    // Tests of one process run on several threads and draw the same numbers.
    let (process, thread) = (std::process::id(), std::thread::current().id());
    std::env::temp_dir().join(format!("zyx-api-{process}-{thread:?}-{}", s.rng.bits()))
}

/// A small file, now and then damaged: cut off, a byte changed, or noise.
fn damaged(s: &mut Source) -> Vec<u8> {
    let x = Tensor::ones([2, 3], DType::F16, &s.device);
    let map =
        BTreeMap::from([("a".to_owned(), x.clone()), ("b".to_owned(), x.sum(..).expect("all"))]);
    let mut bytes = safetensors::to_bytes(&map).expect("small tensors");
    match s.rng.below(5) {
        0 => bytes.truncate(s.rng.below(bytes.len())),
        1 | 2 => {
            let at = s.rng.below(bytes.len());
            bytes[at] = s.rng.bits() as u8;
        }
        3 => bytes = (0..s.rng.below(64)).map(|_| s.rng.bits() as u8).collect(),
        _ => {
            // The length of the header is anything.
            let length = s.pick(&[0, 1, 7, u64::MAX, u64::MAX / 2, 1 << 40]);
            bytes[..8].copy_from_slice(&length.to_le_bytes());
        }
    }
    bytes
}

/// A small file on disk, whole or damaged.
fn written(s: &mut Source) -> std::path::PathBuf {
    let file = place(s);
    let whole = [("x".to_owned(), Tensor::ones([2], DType::F32, &s.device))].into();
    let bytes = match s.one_in(2) {
        true => safetensors::to_bytes(&whole).expect("a small tensor"),
        false => damaged(s),
    };
    std::fs::write(&file, bytes).expect("a temporary file");
    file
}

fn load(bytes: &[u8], s: &mut Source, device: &Device) -> Result<BTreeMap<String, Tensor>> {
    let file = place(s);
    std::fs::write(&file, bytes).expect("a temporary file");
    let loaded = safetensors::load(&file, device);
    std::fs::remove_file(&file).expect("the file was written");
    loaded
}

fn files() -> Vec<Call> {
    calls! {
        "safetensors::save" |s| {
            let (tensors, file) = (tensors(s), place(s));
            let file = if s.one_in(4) { file.join("missing") } else { file };
            let saved = safetensors::save(&tensors, &file);
            let bytes = std::fs::read(&file);
            let _ = std::fs::remove_file(&file);
            saved?;
            told(bytes.expect("it was saved"))
        };
        "safetensors::save_float8" |s| {
            let (tensors, file) = (tensors(s), place(s));
            let format = s.pick(&[Float8::E4M3, Float8::E5M2]);
            let mut narrow: BTreeMap<String, Float8> =
                tensors.keys().filter(|_| s.one_in(2)).map(|name| (name.clone(), format)).collect();
            if s.one_in(4) {
                narrow.insert("absent".to_owned(), format);
            }
            let saved = safetensors::save_float8(&tensors, &narrow, &file);
            let bytes = std::fs::read(&file);
            let _ = std::fs::remove_file(&file);
            saved?;
            told(bytes.expect("it was saved"))
        };
        "safetensors::load" |s| {
            let (bytes, device) = (damaged(s), s.device.clone());
            load(&bytes, s, &device)?.into_values().collect::<Vec<_>>()
        };
        "safetensors::open" |s| {
            let path = written(s);
            let opened = safetensors::open(&path);
            let _ = std::fs::remove_file(&path);
            told(opened?.names().map(str::to_owned).collect::<Vec<_>>())
        };
        "safetensors::open_owner" |s| {
            let file = safetensors::open_owner(std::sync::Arc::new(damaged(s)))?;
            let names: Vec<String> = file.names().map(str::to_owned).collect();
            let load = |name: &String| file.load(name, &s.device);
            names.iter().map(load).collect::<Result<Vec<_>>>()?
        };
        "safetensors::LazyFile::names" |s| {
            let path = written(s);
            let names = safetensors::open(&path).map(|file| file.names().count());
            let _ = std::fs::remove_file(&path);
            told(names?)
        };
        "safetensors::LazyFile::dtype" |s| {
            let path = written(s);
            let dtype = safetensors::open(&path).map(|file| file.dtype("x"));
            let _ = std::fs::remove_file(&path);
            told(dtype?)
        };
        "safetensors::LazyFile::shape" |s| {
            let path = written(s);
            let shape = safetensors::open(&path).map(|file| file.shape("x"));
            let _ = std::fs::remove_file(&path);
            told(shape?)
        };
        "safetensors::LazyFile::load" |s| {
            let path = written(s);
            let loaded = safetensors::open(&path).and_then(|file| {
                let names: Vec<String> = file.names().map(str::to_owned).collect();
                names.iter().map(|name| file.load(name, &s.device)).collect::<Result<Vec<_>>>()
            });
            let _ = std::fs::remove_file(&path);
            loaded?
        };
        "safetensors::to_bytes" |s| told(safetensors::to_bytes(&tensors(s))?);
        "safetensors::write_to" |s| {
            let mut to = Vec::new();
            safetensors::write_to(&tensors(s), &mut to)?;
            told(to)
        };
        "safetensors::from_bytes" |s| {
            let bytes = damaged(s);
            safetensors::from_bytes(&bytes, &s.device)?.into_values().collect::<Vec<_>>()
        };
    }
}

fn adam_options(s: &mut Source) -> AdamOptions {
    let mut options = AdamOptions::default();
    match s.rng.below(6) {
        0 => options.learning_rate = s.number(),
        1 => options.betas = [s.number(), 0.9],
        2 => options.betas = [0.9, s.number()],
        3 => options.eps = s.number(),
        4 => options.weight_decay = s.number(),
        _ => {}
    }
    options
}

/// A step with random gradients, then one along a random loss.
fn stepped(mut optimizer: impl Optimizer, s: &mut Source) -> Vec<Tensor> {
    let parameters: Vec<Param> = optimizer.parameters().to_vec();
    let values: Vec<Tensor> = parameters.iter().map(Param::tensor).collect();
    // What a device refuses is tried, what would take the interpreter minutes is not.
    if values.iter().any(|x| (crate::SMALL..1 << 36).contains(&x.numel())) {
        return vec![];
    }
    let gradients: Vec<Option<Tensor>> = values.iter().map(|x| s.maybe_partner(x)).collect();
    let _ = optimizer.apply(&gradients, &[]);
    let _ = optimizer.apply(&[None], &[]);
    if let Some(loss) = values.first().and_then(|x| x.square().sum(..).ok()) {
        let _ = optimizer.step(&loss);
    }
    optimizer.set_learning_rate(s.number());
    let mut state = optimizer.state();
    if s.one_in(2)
        && let Some(name) = state.keys().next().cloned()
    {
        state.insert(name, s.x());
    }
    let _ = optimizer.load_state(&state);
    parameters.iter().map(Param::tensor).collect()
}

fn optimizers() -> Vec<Call> {
    calls! {
        "Sgd::new" |s| {
            let mut options = SgdOptions::default();
            match s.rng.below(6) {
                0 => options.learning_rate = s.number(),
                1 => options.momentum = s.number(),
                2 => options.dampening = s.number(),
                3 => options.weight_decay = s.number(),
                4 => options.nesterov = true,
                _ => options.momentum = 0.9,
            }
            let places = vec![Param::new(s.x()), Param::new(s.floats())];
            stepped(Sgd::new(places, options)?, s)
        };
        "Sgd::options" |s| told(Sgd::new(vec![Param::new(s.x())], SgdOptions::default())?.options());
        "Adam::new" |s| {
            let places = vec![Param::new(s.x()), Param::new(s.floats())];
            stepped(Adam::new(places, adam_options(s))?, s)
        };
        "AdamW::new" |s| {
            let places = vec![Param::new(s.floats())];
            stepped(AdamW::new(places, adam_options(s))?, s)
        };
        "clip_norm" |s| {
            let gradients = [Some(s.x()), None, Some(s.floats())];
            let (clipped, norm) = clip_norm(&gradients[s.rng.below(3)..], s.number())?;
            clipped.into_iter().flatten().chain([norm]).collect::<Vec<_>>()
        };
        "total_norm" |s| {
            let p = s.pick(&[0.0, 1.0, 2.0, 3.5, -1.0, f64::INFINITY, f64::NEG_INFINITY]);
            vec![total_norm(&[Some(s.x()), None, Some(s.floats())], p)?]
        };
        "clip_to_norm" |s| {
            let (gradients, norm) = ([Some(s.floats()), None], s.floats());
            clip_to_norm(&gradients, s.number(), &norm)?.into_iter().flatten().collect::<Vec<_>>()
        };
        "clip_value" |s| {
            let clipped = clip_value(&[Some(s.x()), None], s.number())?;
            clipped.into_iter().flatten().collect::<Vec<_>>()
        };
        "schedule::warmup" |s| told(schedule::warmup(s.int() as u64, s.int() as u64));
        "schedule::cosine" |s| told(schedule::cosine(s.int() as u64, s.int() as u64, s.number(), s.number()));
        "schedule::steps" |s| told(schedule::steps(s.int() as u64, s.int() as u64, s.number(), s.number()));
    }
}
