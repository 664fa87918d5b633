//! [`Trainer`]: epochs of steps over a [`Loader`], with a schedule, limited gradients, a progress
//! line, a log, and checkpoints from which a killed run goes on as if nothing had happened.
//!
//! A checkpoint is written every so many steps and at the end of each epoch. Batches, masks and
//! rates are functions of seeds and counters that are in it, so a run that was interrupted ends
//! with the same bits as one that was not (on the same device).

use crate::checkpoint::{Checkpoint, State};
use crate::dataset::{Collate, Dataset};
use crate::events::EventWriter;
use crate::loader::Loader;
use crate::metrics::Mean;
use crate::progress::Progress;
use std::path::{Path, PathBuf};
use zyx_core::{DType, Result, Tensor};
use zyx_nn::Module;
use zyx_optim::{Ema, Optimizer, clip_norm};

/// A learning rate as a function of the step.
pub type Schedule = Box<dyn Fn(u64) -> f64 + Send + Sync>;

/// What a [`Trainer`] does besides steps. `Default` does nothing besides.
#[derive(Default)]
pub struct TrainerOptions {
    /// The file of checkpoints; without it there are none.
    pub checkpoint: Option<PathBuf>,
    /// Steps between checkpoints; 0 for epochs alone.
    pub every: u64,
    /// The largest norm of all gradients together.
    pub clip_norm: Option<f64>,
    /// The learning rate of each step; without it, it stays.
    pub schedule: Option<Schedule>,
    /// The decay of running means of the parameters, which are updated after each step and are part of checkpoints; see
    /// [`Trainer::averages`]. Without it there are none.
    pub average: Option<f64>,
    /// Where losses and rates are logged.
    pub log: Option<EventWriter>,
    /// Whether a progress line is drawn on a terminal.
    pub progress: bool,
}

impl std::fmt::Debug for TrainerOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TrainerOptions")
            .field("checkpoint", &self.checkpoint)
            .field("every", &self.every)
            .field("clip_norm", &self.clip_norm)
            .finish_non_exhaustive()
    }
}

/// Trains a model.
///
/// ```
/// use zyx::data::{Loader, LoaderOptions, Samples, Trainer, TrainerOptions};
/// use zyx::nn::{Forward, Init, Linear, Module};
/// use zyx::optim::{Sgd, SgdOptions};
/// use zyx::Reduction;
/// let device = zyx::device()?;
/// let data: Vec<(f32, f32)> = (0..8).map(|i| (i as f32 / 8.0, i as f32 / 4.0 + 1.0)).collect();
/// let loader = Loader::new(Samples(data), LoaderOptions { batch: 4, ..Default::default() }, &device)?;
/// let model = Linear::new(1, 1, &mut Init::new(0, &device))?;
/// let sgd = SgdOptions { learning_rate: 0.5, ..Default::default() };
/// let optimizer = Sgd::new(model.parameters(), sgd)?;
/// let mut trainer = Trainer::new(model, optimizer, TrainerOptions::default());
/// let losses = trainer.fit(&loader, 60, |model, (x, y)| {
///     model.forward(&x.unsqueeze(1)?)?.squeeze(1)?.mse_loss(&y, Reduction::Mean)
/// })?;
/// assert!(losses[59] < 1e-3, "{losses:?}");
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Debug)]
pub struct Trainer<M, O> {
    /// The model.
    pub model: M,
    /// Its optimizer.
    pub optimizer: O,
    options: TrainerOptions,
    /// Steps made.
    step: u64,
    /// Epochs finished.
    epoch: u64,
    /// Batches done of the present epoch.
    batch: usize,
    /// Of the losses of those.
    mean: Mean,
    averages: Option<Ema>,
}

/// The name of the averages in checkpoints.
const AVERAGES: &str = "averages";

impl<M: Module, O: Optimizer> Trainer<M, O> {
    /// Of a model and an optimizer of its parameters.
    pub fn new(model: M, optimizer: O, options: TrainerOptions) -> Trainer<M, O> {
        let mean = Mean::default();
        Trainer { model, optimizer, options, step: 0, epoch: 0, batch: 0, mean, averages: None }
    }

    /// Steps made so far, those before a checkpoint included.
    ///
    /// ```
    /// # use zyx::data::{Loader, LoaderOptions, Samples, Trainer, TrainerOptions};
    /// # use zyx::nn::{Forward, Init, Linear, Module};
    /// # use zyx::optim::{Sgd, SgdOptions};
    /// # use zyx::Reduction;
    /// # let device = zyx::runtime().device("reference")?;
    /// # let data = Samples(vec![(0f32, 1f32), (1.0, 3.0)]);
    /// # let loader = Loader::new(data, LoaderOptions { batch: 2, ..Default::default() }, &device)?;
    /// # let model = Linear::new(1, 1, &mut Init::new(0, &device))?;
    /// # let optimizer = Sgd::new(model.parameters(), SgdOptions::default())?;
    /// # let mut trainer = Trainer::new(model, optimizer, TrainerOptions::default());
    /// # trainer.fit(&loader, 3, |model, (x, y)| {
    /// #     model.forward(&x.unsqueeze(1)?)?.squeeze(1)?.mse_loss(&y, Reduction::Mean)
    /// # })?;
    /// assert_eq!(trainer.steps(), 3); // Three epochs of one batch.
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// Epochs finished so far, those before a checkpoint included.
    ///
    /// ```
    /// # use zyx::data::{Loader, LoaderOptions, Samples, Trainer, TrainerOptions};
    /// # use zyx::nn::{Forward, Init, Linear, Module};
    /// # use zyx::optim::{Sgd, SgdOptions};
    /// # use zyx::Reduction;
    /// # let device = zyx::runtime().device("reference")?;
    /// # let data = Samples(vec![(0f32, 1f32), (1.0, 3.0)]);
    /// # let loader = Loader::new(data, LoaderOptions { batch: 2, ..Default::default() }, &device)?;
    /// # let model = Linear::new(1, 1, &mut Init::new(0, &device))?;
    /// # let optimizer = Sgd::new(model.parameters(), SgdOptions::default())?;
    /// # let mut trainer = Trainer::new(model, optimizer, TrainerOptions::default());
    /// # trainer.fit(&loader, 3, |model, (x, y)| {
    /// #     model.forward(&x.unsqueeze(1)?)?.squeeze(1)?.mse_loss(&y, Reduction::Mean)
    /// # })?;
    /// assert_eq!(trainer.epochs(), 3);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn epochs(&self) -> u64 {
        self.epoch
    }

    /// Goes on from the checkpoint, if there is one; whether there was.
    ///
    /// ```
    /// # use zyx::data::{Loader, LoaderOptions, Samples, Trainer, TrainerOptions};
    /// # use zyx::nn::{Forward, Init, Linear, Module};
    /// # use zyx::optim::{Sgd, SgdOptions};
    /// # use zyx::Reduction;
    /// # let device = zyx::runtime().device("reference")?;
    /// # let data = Samples(vec![(0f32, 1f32), (1.0, 3.0)]);
    /// # let loader = Loader::new(data, LoaderOptions { batch: 2, ..Default::default() }, &device)?;
    /// # let model = Linear::new(1, 1, &mut Init::new(0, &device))?;
    /// # let optimizer = Sgd::new(model.parameters(), SgdOptions::default())?;
    /// let file = std::env::temp_dir().join(format!("zyx-resume-doc-{}", std::process::id()));
    /// let options = TrainerOptions { checkpoint: Some(file.clone()), ..Default::default() };
    /// let mut trainer = Trainer::new(model, optimizer, options);
    /// assert!(!trainer.resume()?, "there is no checkpoint yet");
    /// trainer.save(&file)?;
    /// assert!(trainer.resume()?);
    /// # std::fs::remove_file(file).unwrap();
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When it cannot be read, or belongs to another model.
    pub fn resume(&mut self) -> Result<bool> {
        let Some(file) = self.options.checkpoint.as_deref().filter(|file| file.exists()) else {
            return Ok(false);
        };
        let (file, model) = (file.to_owned(), &self.model);
        start_averages(&mut self.averages, model, &self.options)?;
        let mut states: Vec<(&str, &mut dyn State)> = Vec::new();
        states.extend(self.averages.as_mut().map(|ema| (AVERAGES, ema as &mut dyn State)));
        let loaded = Checkpoint::load_with(model, &mut self.optimizer, &mut states, file)?;
        let counter = |name: &str| loaded.counters.get(name).copied().unwrap_or(0);
        let number = |name: &str| loaded.numbers.get(name).copied().unwrap_or(0.0);
        self.mean = Mean { sum: number("loss"), weight: number("losses") };
        self.step = counter("step") as u64;
        self.epoch = counter("epoch") as u64;
        self.batch = counter("batch") as usize;
        Ok(true)
    }

    /// Writes a checkpoint now.
    ///
    /// ```
    /// # use zyx::data::{Loader, LoaderOptions, Samples, Trainer, TrainerOptions};
    /// # use zyx::nn::{Forward, Init, Linear, Module};
    /// # use zyx::optim::{Sgd, SgdOptions};
    /// # use zyx::Reduction;
    /// # let device = zyx::runtime().device("reference")?;
    /// # let data = Samples(vec![(0f32, 1f32), (1.0, 3.0)]);
    /// # let loader = Loader::new(data, LoaderOptions { batch: 2, ..Default::default() }, &device)?;
    /// # let model = Linear::new(1, 1, &mut Init::new(0, &device))?;
    /// # let optimizer = Sgd::new(model.parameters(), SgdOptions::default())?;
    /// # let mut trainer = Trainer::new(model, optimizer, TrainerOptions::default());
    /// # trainer.fit(&loader, 3, |model, (x, y)| {
    /// #     model.forward(&x.unsqueeze(1)?)?.squeeze(1)?.mse_loss(&y, Reduction::Mean)
    /// # })?;
    /// let file = std::env::temp_dir().join(format!("zyx-save-doc-{}", std::process::id()));
    /// trainer.save(&file)?;
    /// # std::fs::remove_file(file).unwrap();
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self, file: impl AsRef<Path>) -> Result<()> {
        let counters = [
            ("step".to_owned(), self.step as i64),
            ("epoch".to_owned(), self.epoch as i64),
            ("batch".to_owned(), self.batch as i64),
        ];
        let numbers = [("loss".to_owned(), self.mean.sum), ("losses".to_owned(), self.mean.weight)];
        let checkpoint = Checkpoint { counters: counters.into(), numbers: numbers.into() };
        let mut states: Vec<(&str, &dyn State)> = Vec::new();
        states.extend(self.averages.as_ref().map(|ema| (AVERAGES, ema as &dyn State)));
        checkpoint.save_with(&self.model, &self.optimizer, &states, file)
    }

    /// The running means of the parameters, if [`TrainerOptions::average`] asks for them and training has begun:
    /// [`Ema::swap`] exchanges them with the parameters.
    ///
    /// ```
    /// # use zyx::data::{Loader, LoaderOptions, Samples, Trainer, TrainerOptions};
    /// # use zyx::nn::{Forward, Init, Linear, Module};
    /// # use zyx::optim::{Sgd, SgdOptions};
    /// # use zyx::Reduction;
    /// # let device = zyx::runtime().device("reference")?;
    /// # let data = Samples(vec![(0f32, 1f32), (1.0, 3.0)]);
    /// # let loader = Loader::new(data, LoaderOptions { batch: 2, ..Default::default() }, &device)?;
    /// # let model = Linear::new(1, 1, &mut Init::new(0, &device))?;
    /// # let optimizer = Sgd::new(model.parameters(), SgdOptions::default())?;
    /// let options = TrainerOptions { average: Some(0.99), ..Default::default() };
    /// let mut trainer = Trainer::new(model, optimizer, options);
    /// # trainer.fit(&loader, 3, |model, (x, y)| {
    /// #     model.forward(&x.unsqueeze(1)?)?.squeeze(1)?.mse_loss(&y, Reduction::Mean)
    /// # })?;
    /// trainer.averages().expect("there are some").swap()?; // evaluate with the averages
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn averages(&mut self) -> Option<&mut Ema> {
        self.averages.as_mut()
    }

    /// Trains until `epochs` epochs are finished, those before a checkpoint included; the mean
    /// loss of each epoch that was finished now, over all its batches. `loss` is that of a batch.
    ///
    /// # Errors
    /// When a batch cannot be made, `loss` fails, the device fails, or a file cannot be written.
    pub fn fit<D>(
        &mut self,
        loader: &Loader<D>,
        epochs: u64,
        loss: impl Fn(&M, <D::Sample as Collate>::Batch) -> Result<Tensor>,
    ) -> Result<Vec<f64>>
    where
        D: Dataset + 'static,
        D::Sample: Collate,
    {
        let mut means = Vec::new();
        let mut progress = self.options.progress.then(|| {
            Progress::new(usize::try_from(epochs).unwrap_or(0).saturating_mul(loader.len()))
        });
        self.model.train();
        start_averages(&mut self.averages, &self.model, &self.options)?;
        while self.epoch < epochs {
            for batch in loader.epoch_from(self.epoch, self.batch) {
                let loss = self.one_step(&loss(&self.model, batch?)?)?;
                if let Some(averages) = &mut self.averages {
                    averages.update()?;
                }
                self.mean.add(loss, 1.0);
                self.batch += 1;
                if let Some(progress) = &mut progress {
                    let done = self.epoch as usize * loader.len() + self.batch;
                    let note = format!("epoch {}/{epochs}  loss {loss:.4}", self.epoch + 1);
                    progress.set(done, &note);
                }
                if self.options.every > 0 && self.step.is_multiple_of(self.options.every) {
                    self.checkpoint()?;
                }
            }
            self.epoch += 1;
            self.batch = 0;
            let mean = std::mem::take(&mut self.mean).value();
            means.push(mean);
            self.checkpoint()?;
            if let Some(log) = &mut self.options.log {
                log.scalar("epoch/loss", self.epoch, mean)?;
                log.flush()?;
            }
        }
        if let Some(progress) = &mut progress {
            progress.clear();
        }
        Ok(means)
    }

    /// One step; the loss before it.
    fn one_step(&mut self, loss: &Tensor) -> Result<f64> {
        if let Some(schedule) = &self.options.schedule {
            self.optimizer.set_learning_rate(schedule(self.step));
        }
        match self.options.clip_norm {
            Some(most) => {
                let gradients = self.optimizer.gradients(loss)?;
                let (gradients, _) = clip_norm(&gradients, most)?;
                self.optimizer.apply(&gradients, &[loss])?;
            }
            None => self.optimizer.step(loss)?,
        }
        self.step += 1;
        let loss = f64::from(loss.cast(DType::F32).item::<f32>()?);
        if let Some(log) = &mut self.options.log {
            log.scalar("step/loss", self.step, loss)?;
            log.scalar("step/learning_rate", self.step, self.optimizer.learning_rate())?;
        }
        Ok(loss)
    }

    fn checkpoint(&self) -> Result<()> {
        match &self.options.checkpoint {
            Some(file) => self.save(file),
            None => Ok(()),
        }
    }
}

/// Makes the averages that the options ask for, from the present values.
fn start_averages(
    averages: &mut Option<Ema>,
    model: &dyn Module,
    options: &TrainerOptions,
) -> Result<()> {
    if let (None, Some(decay)) = (&averages, options.average) {
        *averages = Some(Ema::new(model.parameters(), decay)?);
    }
    Ok(())
}
