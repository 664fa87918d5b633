//! A training loop through the facade: it learns, it compiles nothing after its first steps, its
//! memory is flat, and it continues where it was saved.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use zyx::nn::{BatchNorm2d, Conv2d, Dropout, Flatten, Init, Linear, MaxPool2d, Relu, Sequential};
use zyx::optim::{AdamOptions, AdamW, schedule};
use zyx::prelude::*;
use zyx::{Conv2dOptions, Pool2d};

/// A network with something of everything that changes during training.
fn network(init: &mut Init) -> Result<Sequential> {
    let same = Conv2dOptions { padding: [1, 1], ..Default::default() };
    Ok(Sequential::new()
        .then(Conv2d::new(1, 4, [3, 3], same, init)?)
        .then(BatchNorm2d::new(4, init)?)
        .then(Relu)
        .then(MaxPool2d(Pool2d::new([2, 2])))
        .then(Flatten)
        .then(Dropout::new(0.2, init)?)
        .then(Linear::new(16, 3, init)?))
}

/// Images of 4x4 whose class is the position of a bright row, with noise.
fn batch(rng: &mut Rng, device: &Device) -> Result<(Tensor, Tensor)> {
    let class = Tensor::randint(0, 3, [12], DType::I64, rng, device)?;
    let row = class.one_hot(4)?.cast(DType::F32).reshape([12, 1, 4, 1])?;
    let noise = Tensor::randn([12, 1, 4, 4], DType::F32, rng, device)?;
    let image = row.add(noise.mul(0.3)?)?;
    // As loaded from a file.
    Tensor::realize_all([&class, &image])?;
    Ok((image, class))
}

struct Run {
    model: Sequential,
    optimizer: AdamW,
    data: Rng,
    steps: u64,
}

impl Run {
    fn new(seed: u64, device: &Device) -> Result<Run> {
        let model = network(&mut Init::new(seed, device))?;
        let options = AdamOptions { weight_decay: 0.01, ..Default::default() };
        let optimizer = AdamW::new(model.parameters(), options)?;
        Ok(Run { model, optimizer, data: Rng::seed(9), steps: 0 })
    }

    fn step(&mut self, device: &Device) -> Result<f32> {
        let (image, class) = batch(&mut self.data, device)?;
        self.optimizer.set_learning_rate(schedule::cosine(self.steps, 100, 0.02, 0.0));
        self.steps += 1;
        let loss = self.model.forward(&image)?.cross_entropy(&class)?;
        self.optimizer.step(&loss)?;
        loss.item()
    }
}

#[test]
fn training_learns_and_settles() -> Result<()> {
    // A runtime of its own: no other test is in its counters.
    let runtime = zyx::Runtime::default();
    let device = runtime.device("reference")?;
    let mut run = Run::new(1, &device)?;
    let first: f32 = (0..3).map(|_| run.step(&device).unwrap()).sum::<f32>() / 3.0;
    let settled = device.stats();
    for _ in 0..30 {
        run.step(&device)?;
    }
    let during = device.stats().since(&settled);
    assert_eq!(during.compiles, 0, "{during:?}");
    assert_eq!(during.plan_misses, 0, "{during:?}");
    assert_eq!(during.driver_allocs, 0, "{during:?}");
    assert_eq!(during.live_bytes, settled.live_bytes, "{during:?}");
    let last: f32 = (0..3).map(|_| run.step(&device).unwrap()).sum::<f32>() / 3.0;
    assert!(last < first / 3.0, "the loss went from {first} to {last}");

    let (image, class) = batch(&mut run.data, &device)?;
    run.model.eval();
    let guess = run.model.forward(&image)?.argmax(1)?;
    let right = guess.eq(&class)?.sum(..)?.item::<i64>()?;
    assert!(right >= 11, "{right} of 12 right");
    Ok(())
}

#[test]
fn training_continues_where_it_was_saved() -> Result<()> {
    let device = zyx::device()?;
    let folder = std::env::temp_dir().join(format!("zyx-training-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (weights, state) = (folder.join("model"), folder.join("optimizer"));
    let mut run = Run::new(1, &device)?;
    for _ in 0..3 {
        run.step(&device)?;
    }
    run.model.save(&weights)?;
    zyx::nn::safetensors::save(&run.optimizer.state(), &state)?;
    let (data, steps) = (run.data.clone(), run.steps);

    // Without dropout, whose stream is not part of what is saved.
    let next = |run: &mut Run| -> Result<Vec<f32>> {
        run.model.eval();
        (0..2).map(|_| run.step(&device)).collect()
    };
    let expected = next(&mut run)?;
    let mut again = Run { data, steps, ..Run::new(2, &device)? };
    again.model.load(&weights)?;
    again.optimizer.load_state(&zyx::nn::safetensors::load(&state, &device)?)?;
    assert_eq!(next(&mut again)?, expected);
    std::fs::remove_dir_all(&folder).unwrap();
    Ok(())
}
