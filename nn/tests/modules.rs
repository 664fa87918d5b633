//! Modules: the derive macro, names, modes, initial values, and layers against PyTorch.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use std::sync::Mutex;
use zyx_core::{Conv1dOptions, Conv2dOptions, DType, Device, Pool2d, Result, Runtime, Tensor};
use zyx_nn::{
    AvgPool2d, BatchNorm2d, Conv1d, Conv2d, Dropout, Embedding, Flatten, Forward, GroupNorm, Init,
    LayerNorm, LeakyRelu, Linear, MaxPool2d, Module, Param, Path, Relu, RmsNorm, Sequential,
    Visitor,
};

fn device() -> Device {
    Runtime::default().device("reference").unwrap()
}

fn names(module: &impl Module) -> Vec<String> {
    module.named_parameters().into_iter().map(|(name, _)| name).collect()
}

#[derive(Module)]
struct Block<L> {
    layers: Vec<L>,
    pair: [Linear; 2],
    extra: Option<Linear>,
    none: Option<Linear>,
    boxed: Box<dyn Forward + Send + Sync>,
    tied: Param,
    r#type: Wrapper,
    size: usize,
    label: &'static str,
    #[module(skip)]
    cache: Mutex<Vec<Tensor>>,
}

#[derive(Module)]
struct Wrapper(Linear, f64, Linear);

#[derive(Module)]
struct Nothing;

#[test]
fn names_follow_the_fields() {
    let d = &device();
    let init = &mut Init::new(0, d);
    let mut linear = || Linear::without_bias(1, 1, init).unwrap();
    let layers = vec![linear(), linear()];
    let block = Block {
        tied: layers[1].weight.clone(),
        layers,
        pair: [linear(), linear()],
        extra: Some(linear()),
        none: None,
        boxed: Box::new(Sequential::new().then(Flatten).then(linear())),
        r#type: Wrapper(linear(), 0.5, linear()),
        size: 3,
        label: "block",
        cache: Mutex::default(),
    };
    let expected = [
        "layers.0.weight",
        "layers.1.weight",
        "pair.0.weight",
        "pair.1.weight",
        "extra.weight",
        "boxed.1.weight",
        "tied",
        "type.0.weight",
        "type.2.weight",
    ];
    assert_eq!(names(&block), expected);
    assert_eq!(block.parameters().len(), expected.len() - 1, "a tied parameter counts once");
    assert_eq!(block.n_parameters(), expected.len() - 1);
    assert_eq!((block.size, block.label, block.cache.lock().unwrap().len()), (3, "block", 0));
    assert!(names(&Nothing).is_empty() && names(&block.none).is_empty());
    // What was tied stays tied through an update.
    block.tied.set(&Tensor::full([1, 1], 7f32, d)).unwrap();
    assert_eq!(block.layers[1].weight.tensor().item::<f32>().unwrap(), 7.0);
}

#[test]
fn a_hand_written_module_is_one_too() {
    struct Twice(Linear);
    impl Module for Twice {
        fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
            path.within("inner", |path| self.0.visit(path, visitor));
        }
    }
    let linear = Linear::new(2, 2, &mut Init::new(0, &device())).unwrap();
    assert_eq!(names(&vec![Twice(linear)]), ["0.inner.weight", "0.inner.bias"]);
}

#[test]
fn parameters_are_called_as_in_pytorch() {
    let init = &mut Init::new(0, &device());
    let both = ["weight", "bias"];
    assert_eq!(names(&Linear::new(2, 3, init).unwrap()), both);
    assert_eq!(names(&LayerNorm::new(4, init).unwrap()), both);
    assert_eq!(names(&GroupNorm::new(2, 4, init).unwrap()), both);
    assert_eq!(names(&RmsNorm::new(4, init).unwrap()), ["weight"]);
    assert_eq!(names(&Embedding::new(4, 2, init).unwrap()), ["weight"]);
    let conv = Conv2d::new(4, 6, [3, 2], Conv2dOptions { groups: 2, ..Default::default() }, init);
    let conv = conv.unwrap();
    assert_eq!(names(&conv), both);
    assert_eq!(conv.weight.shape().dims(), [6, 2, 3, 2]);
    let norm = BatchNorm2d::new(3, init).unwrap();
    assert_eq!(
        names(&norm),
        ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    );
    assert_eq!(norm.n_parameters(), 6);
    assert!(
        Conv2d::new(3, 4, [1, 1], Conv2dOptions { groups: 2, ..Default::default() }, init).is_err()
    );
    assert!(GroupNorm::new(3, 4, init).is_err());
    assert!(Dropout::new(1.5, init).is_err());
    init.dtype = DType::I32;
    assert!(Linear::new(2, 2, init).is_err());
}

#[test]
fn initial_values_are_uniform_within_the_bound() {
    let init = &mut Init::new(5, &device());
    let linear = Linear::new(64, 50, init).unwrap();
    for (parameter, n) in [(&linear.weight, 3200), (linear.bias.as_ref().unwrap(), 50)] {
        let x = parameter.tensor().to_vec::<f32>().unwrap();
        assert_eq!(x.len(), n);
        assert!(x.iter().all(|x| x.abs() <= 0.125));
        assert!(x.iter().any(|&x| x > 0.11) && x.iter().any(|&x| x < -0.11));
    }
    let x = linear.weight.tensor().to_vec::<f32>().unwrap();
    let variance = x.iter().map(|x| x * x).sum::<f32>() / 3200.0;
    assert!((variance - 0.125f32.powi(2) / 3.0).abs() < 3e-4, "{variance}");
    let table = Embedding::new(40, 50, init).unwrap().weight.tensor().to_vec::<f32>().unwrap();
    let variance = table.iter().map(|x| x * x).sum::<f32>() / 2000.0;
    assert!((variance - 1.0).abs() < 0.12, "{variance}");
}

#[test]
fn modes_reach_all_layers() {
    let d = &device();
    let init = &mut Init::new(0, d);
    let x = Tensor::randn([8, 2, 3, 3], DType::F32, &mut init.rng, d).unwrap() * 3.0 + 5.0;
    let model = Sequential::new()
        .then(BatchNorm2d::new(2, init).unwrap())
        .then(Sequential::new().then(Dropout::new(0.5, init).unwrap()));
    let train = model.forward(&x).unwrap();
    assert!(train.to_vec::<f32>().unwrap().iter().filter(|&&x| x == 0.0).count() > 40);
    assert_ne!(
        model.forward(&x).unwrap().to_vec::<f32>().unwrap(),
        train.to_vec::<f32>().unwrap(),
        "a new mask each time"
    );
    model.eval();
    let state = model.to_tensors();
    assert_eq!(state["0.num_batches_tracked"].item::<i64>().unwrap(), 2);
    let (a, b) = (model.forward(&x).unwrap(), model.forward(&x).unwrap());
    assert_eq!(a.to_vec::<f32>().unwrap(), b.to_vec::<f32>().unwrap());
    // Two batches of the same statistics move the mean from 0 by 0.1 and then by 0.09 of it.
    let mean = x.mean([0, 2, 3]).unwrap().to_vec::<f32>().unwrap();
    for (running, mean) in state["0.running_mean"].to_vec::<f32>().unwrap().iter().zip(&mean) {
        assert!((running - 0.19 * mean).abs() < 1e-4, "{running} of {mean}");
    }
    let var = x.var([0, 2, 3], 1).unwrap().to_vec::<f32>().unwrap();
    for (running, var) in state["0.running_var"].to_vec::<f32>().unwrap().iter().zip(&var) {
        assert!((running - (0.81 + 0.19 * var)).abs() < 1e-3, "{running} of {var}");
    }
    model.train();
    assert!(model.forward(&x).unwrap().to_vec::<f32>().unwrap().contains(&0.0));
}

#[test]
fn a_clone_of_a_sequence_shares_parameters_modes_and_streams() {
    let d = &device();
    let init = &mut Init::new(0, d);
    let model = Sequential::new()
        .then(Linear::new(3, 4, init).unwrap())
        .then(Sequential::new().then(Dropout::new(0.5, init).unwrap()));
    let same = model.clone();
    let x = Tensor::ones([2, 3], DType::F32, d);
    let output = |m: &Sequential| m.forward(&x).unwrap().to_vec::<f32>().unwrap();
    same.eval();
    assert_eq!(output(&model), output(&same));
    let weight = &model.parameters()[0];
    assert!(weight.is_same(&same.parameters()[0]));
    weight.set(&Tensor::zeros([4, 3], DType::F32, d)).unwrap();
    assert_eq!(output(&model), output(&same));
    let streams = [&model, &same].map(|m| m.named_streams().remove(0).1);
    streams[0].lock().next_u64();
    let counters = streams.map(|stream| stream.lock().counter());
    assert_eq!(counters[0], counters[1]);
    let longer = same.then(Linear::new(4, 1, init).unwrap());
    assert_eq!((model.len(), longer.len()), (2, 3));
}

#[test]
fn layers_compute_what_their_functions_do() -> Result<()> {
    let d = &device();
    let init = &mut Init::new(3, d);
    let image = Tensor::randn([2, 4, 6, 6], DType::F32, &mut init.rng, d)?;
    let same = |a: Tensor, b: Tensor| {
        assert_eq!(a.shape(), b.shape());
        assert_eq!(a.to_vec::<f32>().unwrap(), b.to_vec::<f32>().unwrap());
    };
    let options = Conv2dOptions { padding: [1, 1], ..Default::default() };
    let conv = Conv2d::new(4, 3, [3, 3], options, init)?;
    let bias = conv.bias.as_ref().unwrap().tensor();
    same(conv.forward(&image)?, image.conv2d(&conv.weight.tensor(), Some(&bias), options)?);
    let line = image.select_index(2, 0)?;
    let conv = Conv1d::new(4, 3, 2, Conv1dOptions::default(), init)?;
    assert_eq!(conv.forward(&line)?.shape().dims(), [2, 3, 5]);
    let linear = Linear::new(6, 3, init)?;
    let y =
        image.matmul(&linear.weight.tensor().t())?.add(linear.bias.as_ref().unwrap().tensor())?;
    same(linear.forward(&image)?, y);
    same(
        LayerNorm::new([6, 6], init)?.forward(&image)?,
        image.layer_norm([-1, -2], None, None, 1e-5)?,
    );
    same(RmsNorm::new(6, init)?.forward(&image)?, image.rms_norm(-1, None, 1e-6)?);
    let norm = GroupNorm::new(2, 4, init)?;
    let (gain, offset) =
        (norm.weight.as_ref().unwrap().tensor(), norm.bias.as_ref().unwrap().tensor());
    same(norm.forward(&image)?, image.group_norm(2, Some(&gain), Some(&offset), 1e-5)?);
    same(MaxPool2d(Pool2d::new([2, 2])).forward(&image)?, image.max_pool2d(Pool2d::new([2, 2]))?);
    same(AvgPool2d(Pool2d::new([3, 3])).forward(&image)?, image.avg_pool2d(Pool2d::new([3, 3]))?);
    same(Relu.forward(&image)?, image.relu());
    same(LeakyRelu { slope: 0.1 }.forward(&image)?, image.leaky_relu(0.1));
    assert_eq!(Flatten.forward(&image)?.shape().dims(), [2, 144]);
    let table = Embedding::new(5, 2, init)?;
    let rows = table.forward(&Tensor::new([[1i64, 4], [0, 1]], d)?)?;
    assert_eq!(rows.shape().dims(), [2, 2, 2]);
    let rows = rows.to_vec::<f32>()?;
    assert_eq!(rows[..2], rows[6..]);
    let outside = table.forward(&Tensor::new([[1i64, 9]], d)?);
    assert!(outside.and_then(|rows| rows.to_vec::<f32>()).is_err(), "row 9 of 5");
    assert!(linear.forward(&Tensor::ones([2, 5], DType::F32, d)).is_err());
    Ok(())
}
