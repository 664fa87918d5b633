//! A run that is killed again and again ends with the bits of one that is not.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use zyx_backend_cpu::Cpu;
use zyx_core::{Result, Runtime};
use zyx_data::{Array, Indexed, Loader, LoaderOptions, Trainer, TrainerOptions};
use zyx_nn::{BatchNorm1d, Dropout, Forward, Init, Linear, Module, Relu, Sequential};
use zyx_optim::{AdamOptions, AdamW, schedule};

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
    let options = LoaderOptions { batch: 8, workers: 2, ..Default::default() };
    let loader = Loader::new(data, options, &device)?;
    let optimizer = AdamW::new(model.parameters(), AdamOptions::default())?;
    let options = TrainerOptions {
        checkpoint: Some(folder.join("checkpoint.safetensors")),
        every: 2,
        clip_norm: Some(0.5),
        schedule: Some(Box::new(|step| schedule::cosine(step, 54, 0.02, 0.0))),
        ..Default::default()
    };
    let mut trainer = Trainer::new(model, optimizer, options);
    trainer.resume()?;
    trainer.fit(&loader, EPOCHS, |model, (x, y)| {
        std::thread::sleep(pause);
        model.forward(&x)?.cross_entropy(&y)
    })?;
    assert_eq!((trainer.steps(), trainer.epochs()), (54, EPOCHS));
    zyx_nn::safetensors::to_bytes(&trainer.model.to_tensors())
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
