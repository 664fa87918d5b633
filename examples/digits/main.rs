//! Trains a small network on handwritten digits, saves it, and shows what it learned.
//!
//! `cargo run --release --example digits` uses the images in `examples/data` and a convolutional
//! network, `-- mlp` two hidden layers instead; `-- FOLDER [EPOCHS]` or `-- mlp FOLDER [EPOCHS]` the
//! unpacked MNIST files in a folder. The program fails if the network ends below 97% (the layers
//! 95%) on images it has never seen.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use examples::dataset::{Digits, Images};
use examples::program::{Arguments, Usage};
use examples::report;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use zyx::data::metrics::Confusion;
use zyx::data::{Progress, chart};
use zyx::nn::{Conv2d, Dropout, Flatten, Init, Linear, MaxPool2d, Relu, Sequential};
use zyx::optim::{AdamOptions, AdamW, schedule};
use zyx::prelude::*;
use zyx::{Conv2dOptions, Pool2d};

const BATCH: usize = 64;
const RATE: f64 = 3e-3;

fn main() -> ExitCode {
    Usage { flags: &["mlp"], values: 2, text: "digits [mlp] [FOLDER [EPOCHS]]" }.run(learn)
}

fn learn(arguments: Arguments) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mlp = arguments.has("mlp");
    let mut values = arguments.values.into_iter();
    let (network, goal): (fn(_, &mut Init) -> Result<Sequential>, f64) =
        if mlp { (layers, 0.95) } else { (convolutions, 0.97) };
    let digits = match values.next() {
        Some(folder) => Digits::from_folder(folder)?,
        None => Digits::shipped()?,
    };
    // An epoch of MNIST is forty times one of the small set.
    let usual = if digits.train.len() < 10_000 { 30 } else { 3 };
    let epochs = match values.next() {
        Some(given) => given.parse().map_err(|_| format!("{given} is no number of epochs"))?,
        None => usual,
    };
    let start = Instant::now();
    let device = zyx::device()?;
    let model = network(digits.train.size, &mut Init::new(0, &device))?;
    println!(
        "{}: {} images to learn from, {} held out; {} parameters on {} ({})",
        digits.name,
        digits.train.len(),
        digits.test.len(),
        model.n_parameters(),
        device,
        device.info().name
    );

    let losses = train(&model, &digits, epochs, &device)?;
    let seconds = start.elapsed().as_secs_f64();
    let predicted = predict(&model, &digits.test, &device)?;
    let classes = |digits: &[u8]| digits.iter().map(|&digit| i64::from(digit)).collect::<Vec<_>>();
    let mut confusion = Confusion::new(10);
    confusion.add(&classes(&digits.test.labels), &classes(&predicted));
    let accuracy = confusion.accuracy();
    println!("{:.2}% of the held-out images right after {seconds:.2} s", accuracy * 100.0);

    let folder = output_folder()?;
    let (curve, weights) = (folder.join("loss.svg"), folder.join("digits.safetensors"));
    println!("\nloss of each step, from {} to {}:", losses[0], losses[losses.len() - 1]);
    println!("{}", chart::terminal(&losses, 64, 10)?);
    std::fs::write(&curve, chart::svg(&losses, "digits: loss of each step")?)?;
    model.save(&weights)?;
    println!("curve {}, weights {}", curve.display(), weights.display());

    let loaded = network(digits.train.size, &mut Init::new(1, &device))?;
    loaded.load(&weights)?;
    if predict(&loaded, &digits.test, &device)? != predicted {
        return Err("the loaded weights predict something else".into());
    }
    println!("loaded again: same predictions\n");
    println!("{}", report::samples(&digits.test, &predicted, &chosen(&digits.test, &predicted)));
    println!("true │ taken for\n{confusion}");
    if accuracy < goal {
        return Err(format!("fewer than {}% right", goal * 100.0).into());
    }
    Ok(())
}

/// Two convolutions, a pooling, dropout, two linear layers.
fn convolutions([height, width]: [usize; 2], init: &mut Init) -> Result<Sequential> {
    let same = Conv2dOptions { padding: [1, 1], ..Default::default() };
    let features = 32 * (height / 2) * (width / 2);
    Ok(Sequential::new()
        .then(Conv2d::new(1, 16, [3, 3], same, init)?)
        .then(Relu)
        .then(Conv2d::new(16, 32, [3, 3], same, init)?)
        .then(Relu)
        .then(MaxPool2d(Pool2d::new([2, 2])))
        .then(Flatten)
        .then(Dropout::new(0.25, init)?)
        .then(Linear::new(features, 64, init)?)
        .then(Relu)
        .then(Linear::new(64, 10, init)?))
}

/// Two hidden layers.
fn layers([height, width]: [usize; 2], init: &mut Init) -> Result<Sequential> {
    Ok(Sequential::new()
        .then(Flatten)
        .then(Linear::new(height * width, 128, init)?)
        .then(Relu)
        .then(Dropout::new(0.25, init)?)
        .then(Linear::new(128, 64, init)?)
        .then(Relu)
        .then(Linear::new(64, 10, init)?))
}

/// The loss of every step.
fn train(model: &Sequential, digits: &Digits, epochs: usize, device: &Device) -> Result<Vec<f64>> {
    let (images, labels) = digits.train.to_tensors(device)?;
    let batch = BATCH.min(digits.train.len());
    let steps = epochs * (digits.train.len() / batch);
    let options = AdamOptions { learning_rate: RATE, weight_decay: 0.05, ..Default::default() };
    let mut optimizer = AdamW::new(model.parameters(), options)?;
    let (mut rng, mut progress) = (Rng::seed(0), Progress::new(steps));
    let mut losses = Vec::with_capacity(steps);
    for epoch in 1..=epochs {
        let order = Tensor::permutation(digits.train.len(), &mut rng, device)?.to_vec::<i64>()?;
        for rows in order.chunks_exact(batch) {
            let rows = Tensor::from_slice(rows, [batch], device)?;
            let (x, y) = (images.index_select(0, &rows)?, labels.index_select(0, &rows)?);
            let step = losses.len() as u64;
            optimizer.set_learning_rate(schedule::cosine(step, steps as u64, RATE, 0.0));
            let loss = model.forward(&x)?.cross_entropy(&y)?;
            optimizer.step(&loss)?;
            losses.push(f64::from(loss.item::<f32>()?));
            let last = losses[losses.len() - 1];
            progress.set(losses.len(), &format!("epoch {epoch}/{epochs}  loss {last:.4}"));
        }
    }
    progress.clear();
    Ok(losses)
}

/// The most likely digit of each image.
fn predict(model: &Sequential, images: &Images, device: &Device) -> Result<Vec<u8>> {
    let (pixels, _) = images.to_tensors(device)?;
    model.eval();
    let mut predicted = Vec::with_capacity(images.len());
    for part in pixels.split(1000, 0)? {
        predicted.extend(model.forward(&part)?.argmax(1)?.cast(DType::U8).to_vec::<u8>()?);
    }
    model.train();
    Ok(predicted)
}

/// Up to four images to show, wrongly predicted ones first.
fn chosen(images: &Images, predicted: &[u8]) -> Vec<usize> {
    let (wrong, right): (Vec<usize>, Vec<usize>) =
        (0..images.len()).partition(|&i| images.labels[i] != predicted[i]);
    wrong.into_iter().take(2).chain(right).take(4).collect()
}

/// `target/digits` of the workspace.
fn output_folder() -> std::io::Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/digits");
    std::fs::create_dir_all(&folder)?;
    folder.canonicalize()
}
