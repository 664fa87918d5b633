//! A run that is killed again and again ends with the bits of one that is not.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use zyx_backend_cpu::Cpu;
use zyx_core::{CrossEntropy, DType, Result, Runtime, Tensor};
use zyx_data::{
    Array, Augmented, Checkpoint, Dataset, Indexed, Loader, LoaderOptions, Mixup, State, Trainer,
    TrainerOptions, augment, split,
};
use zyx_nn::{BatchNorm1d, Dropout, Forward, Init, Linear, Module, Relu, Sequential};
use zyx_optim::{AdamOptions, AdamW, Ema, Optimizer, schedule};

const EPOCHS: u64 = 6;

/// Names the folder in the process that is to be killed.
const CHILD: &str = "ZYX_TEST_RESUME_CHILD";

/// Trains in a folder, going on from the checkpoint there; the final weights as bytes.
fn train(folder: &Path, pause: Duration) -> Result<Vec<u8>> {
    let runtime = Runtime::default();
    runtime.register(Cpu::default());
    let device = runtime.device("cpu")?;
    let init = &mut Init::new(1, &device);
    let model = Sequential::new()
        .then(Linear::new(6, 16, init)?)
        .then(BatchNorm1d::new(16, init)?)
        .then(Relu)
        .then(Dropout::new(0.3, init)?)
        .then(Linear::new(16, 3, init)?);
    let data = Indexed::new(70, |i| {
        let row = (0..6).map(|j| ((i * 7 + j * 3) as f32 * 0.37).sin()).collect();
        Ok((Array::from_list(row), (i % 3) as i64))
    });
    let data = Augmented::new(data, |(row, class): (Array<f32>, i64), rng| {
        Ok((augment::noise(row, 0.1, rng), class))
    });
    let options = LoaderOptions { batch: 8, workers: 2, ..Default::default() };
    let loader = Loader::new(data, options, &device)?;
    let optimizer = AdamW::new(model.parameters(), AdamOptions::default())?;
    let options = TrainerOptions {
        checkpoint: Some(folder.join("checkpoint.safetensors")),
        every: 2,
        clip_norm: Some(0.5),
        schedule: Some(Box::new(|step| schedule::cosine(step, 54, 0.02, 0.0))),
        average: Some(0.9),
        ..Default::default()
    };
    let mut trainer = Trainer::new(model, optimizer, options);
    trainer.resume()?;
    trainer.fit(&loader, EPOCHS, |model, (x, y)| {
        std::thread::sleep(pause);
        model.forward(&x)?.cross_entropy(&y)
    })?;
    assert_eq!((trainer.steps(), trainer.epochs()), (54, EPOCHS));
    let mut tensors = trainer.model.to_tensors();
    tensors.extend(trainer.averages().expect("there are some").state());
    zyx_nn::safetensors::to_bytes(&tensors)
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("zyx-resume-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Not a test by itself: what [`a_killed_run_ends_as_any_other`] starts.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(CHILD).map(PathBuf::from) else { return };
    let bytes = train(&folder, Duration::from_millis(8)).unwrap();
    std::fs::write(folder.join("done"), bytes).unwrap();
}

#[test]
fn a_killed_run_ends_as_any_other() {
    let (whole, broken) = (folder("whole"), folder("broken"));
    let expected = train(&whole, Duration::ZERO).unwrap();
    let (checkpoint, done) = (broken.join("checkpoint.safetensors"), broken.join("done"));
    let stamp = || std::fs::metadata(&checkpoint).and_then(|m| m.modified()).ok();
    let (mut kills, start) = (0u64, Instant::now());
    while !done.exists() {
        assert!(start.elapsed() < Duration::from_secs(300), "{kills} kills and no end");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--quiet"])
            .env(CHILD, &broken)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // Killed a while after it has written a checkpoint of its own, at another moment of a
        // step each time; after some kills it may finish.
        let before = stamp();
        while child.try_wait().unwrap().is_none() && (kills >= 3 || stamp() == before) {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(11 * kills));
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            kills += 1;
        }
        child.wait().unwrap();
    }
    assert!(kills >= 3, "only {kills} kills");
    assert!(std::fs::read(&done).unwrap() == expected, "other weights after {kills} kills");
    // Killed while it wrote, it left a temporary file at most.
    for folder in [whole, broken] {
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn checkpoints_of_others_are_refused() -> Result<()> {
    let runtime = Runtime::default();
    let device = runtime.device("reference")?;
    let init = &mut Init::new(1, &device);
    let folder = folder("others");
    let file = folder.join("checkpoint.safetensors");
    let trainer = |inputs, init: &mut Init| -> Result<_> {
        let model = Linear::new(inputs, 2, init)?;
        let optimizer = AdamW::new(model.parameters(), AdamOptions::default())?;
        let options = TrainerOptions { checkpoint: Some(file.clone()), ..Default::default() };
        Ok(Trainer::new(model, optimizer, options))
    };
    let mut first = trainer(3, init)?;
    assert!(!first.resume()?, "there is none yet");
    first.save(&file)?;
    let mut second = trainer(3, init)?;
    assert!(second.resume()?);
    assert_eq!(
        second.model.weight.tensor().to_vec::<f32>()?,
        first.model.weight.tensor().to_vec::<f32>()?
    );
    let message = trainer(4, init)?.resume().unwrap_err().to_string();
    assert!(message.contains("checkpoint.safetensors"), "{message}");
    first.model.save(&file)?;
    assert!(
        trainer(3, init)?.resume().unwrap_err().to_string().contains("no part of a checkpoint")
    );
    std::fs::remove_dir_all(folder).unwrap();
    Ok(())
}

/// Images that are cropped, flipped, coloured, mixed.
fn images() -> impl Dataset<Sample = (Array<f32>, Array<f32>)> {
    let image = |i: usize| {
        let data = (0..3 * 6 * 5).map(|j| ((i * 31 + j * 7) % 11) as f32 / 10.0).collect();
        Ok((Array { shape: vec![3, 6, 5], data }, (i % 4) as i64))
    };
    let (train, _) = split(Indexed::new(23, image), 0.0, 0);
    let colors = augment::ColorRange { brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1 };
    let changed = Augmented::new(train, move |(image, class): (Array<f32>, i64), rng| {
        let image = augment::random_crop(&image, [6, 5], 2, rng)?;
        let image = augment::random_horizontal_flip(image, 0.5, rng)?;
        let image = augment::random_colors(image, colors, rng)?;
        Ok((
            augment::random_resized_crop(&image, [4, 4], augment::CropRange::default(), rng)?,
            class,
        ))
    });
    Mixup::new(changed, 4, 0.4).unwrap()
}

#[test]
fn augmented_batches_are_functions_of_seed_epoch_and_number() -> Result<()> {
    let device = Runtime::default().device("reference")?;
    let bits = |workers: usize, seed: u64, epoch: u64, first: usize| -> Result<Vec<Vec<u32>>> {
        let options = LoaderOptions { batch: 4, workers, seed, ..Default::default() };
        let loader = Loader::new(images(), options, &device)?;
        let bits = |batch: Result<(Tensor, Tensor)>| {
            let (x, y) = batch?;
            let all = [x.to_vec::<f32>()?, y.to_vec::<f32>()?].concat();
            Ok(all.into_iter().map(f32::to_bits).collect())
        };
        loader.epoch_from(epoch, first).map(bits).collect()
    };
    let expected = bits(0, 0, 3, 0)?;
    assert_eq!(expected.len(), 6);
    for (workers, first) in [(1, 0), (3, 0), (0, 4), (2, 5)] {
        assert_eq!(bits(workers, 0, 3, first)?, expected[first..], "{workers}, {first}");
    }
    assert_ne!(bits(0, 0, 4, 0)?, expected);
    assert_ne!(bits(0, 1, 3, 0)?, expected);
    Ok(())
}

#[test]
fn an_interrupted_run_reports_the_mean_losses_of_whole_epochs() -> Result<()> {
    let device = Runtime::default().device("reference")?;
    let folder = folder("means");
    let losses = |fail_at: Option<usize>| -> Result<Vec<f64>> {
        let model = Linear::new(48, 4, &mut Init::new(1, &device))?;
        let optimizer = AdamW::new(model.parameters(), AdamOptions::default())?;
        let checkpoint = Some(folder.join(format!("{}", fail_at.is_some())));
        let options =
            TrainerOptions { checkpoint, every: 1, average: Some(0.9), ..Default::default() };
        let mut trainer = Trainer::new(model, optimizer, options);
        trainer.resume()?;
        let options = LoaderOptions { batch: 4, ..Default::default() };
        let calls = std::cell::Cell::new(0);
        trainer.fit(&Loader::new(images(), options, &device)?, 2, |model, (x, y)| {
            calls.set(calls.get() + 1);
            if Some(calls.get()) == fail_at {
                return Err(std::io::Error::other("interrupted").into());
            }
            let logits = model.forward(&x.flatten_axes(1, 3)?)?;
            logits.cross_entropy_weighted(&y, None, CrossEntropy::default())
        })
    };
    let expected = losses(None)?;
    // Six batches an epoch: interrupted in the first epoch, and again in the second.
    assert!(losses(Some(5)).is_err() && losses(Some(5)).is_err());
    assert_eq!(losses(Some(usize::MAX))?, expected[1..]);
    std::fs::remove_dir_all(folder).unwrap();
    Ok(())
}

#[test]
fn checkpoints_hold_averages_and_numbers() -> Result<()> {
    let device = Runtime::default().device("reference")?;
    let folder = folder("states");
    let file = folder.join("checkpoint.safetensors");
    let make = |seed: u64| -> Result<(Linear, AdamW, Ema)> {
        let model = Linear::new(3, 2, &mut Init::new(seed, &device))?;
        let optimizer = AdamW::new(model.parameters(), AdamOptions::default())?;
        let averages = Ema::new(model.parameters(), 0.9)?;
        Ok((model, optimizer, averages))
    };
    let (model, mut optimizer, mut averages) = make(1)?;
    let (_, second, _) = make(7)?;
    let x = Tensor::ones([4, 3], DType::F32, &device);
    optimizer.step(&model.forward(&x)?.square().mean(..)?)?;
    averages.update()?;
    let mut saved = Checkpoint::default();
    saved.counters.insert("step".to_owned(), i64::MIN);
    let numbers = [("a.b", 0.1 + 0.2), ("least", f64::MIN_POSITIVE), ("worst", f64::INFINITY)];
    saved.numbers.extend(numbers.map(|(name, x)| (name.to_owned(), x)));
    let second: Box<dyn Optimizer> = Box::new(second);
    let states: &[(&str, &dyn State)] = &[("averages", &averages), ("second", &second)];
    saved.save_with(&model, &optimizer, states, &file)?;

    let (other, mut its, mut fresh) = make(2)?;
    let loaded = Checkpoint::load_with(&other, &mut its, &mut [("averages", &mut fresh)], &file)?;
    assert_eq!(loaded, saved);
    let values = |of: &Ema| -> Result<Vec<Vec<f32>>> {
        of.averages().iter().map(|x| x.to_vec::<f32>()).collect()
    };
    assert_eq!(values(&fresh)?, values(&averages)?);
    assert_eq!(Checkpoint::load(&other, &mut its, &file)?, saved, "state is left out");

    let absent = Checkpoint::load_with(&other, &mut its, &mut [("means", &mut fresh)], &file);
    let message = absent.unwrap_err().to_string();
    assert!(message.contains("checkpoint.safetensors: the state `means` is missing"), "{message}");
    for names in [["", "a"], ["a.b", "a"], ["a", "a"]] {
        let states = names.map(|name| (name, &averages as &dyn State));
        assert!(saved.save_with(&model, &optimizer, &states, &file).is_err(), "{names:?}");
    }
    std::fs::remove_dir_all(folder).unwrap();
    Ok(())
}
