//! [`Checkpoint`]: everything that training needs to go on, in one file.
//!
//! One safetensors file, replaced at once: there is no moment at which half a checkpoint exists.
//! Names: `model.*` parameters and state, `optimizer.*`, `state.NAME.*` (the caller's further state, as of an
//! [`Ema`]), `stream.*` (generators of dropout, `[key, key, counter]`), `counter.*` (whole numbers of the caller) and
//! `number.*` (other numbers). The model's part opens with any reader of safetensors.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use zyx_core::{DType, Device, Error, Result, Tensor};
use zyx_nn::{Module, safetensors};
use zyx_optim::{Ema, Optimizer};

/// Something that a checkpoint keeps beside model and optimizer: tensors by name.
pub trait State {
    /// Everything that is needed to continue later, by name.
    fn state(&self) -> BTreeMap<String, Tensor>;

    /// Continues from what [`State::state`] gave.
    ///
    /// # Errors
    /// [`Error::Format`] when something is missing or does not fit.
    fn load_state(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()>;
}

impl State for Ema {
    fn state(&self) -> BTreeMap<String, Tensor> {
        Ema::state(self)
    }

    fn load_state(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        Ema::load_state(self, state)
    }
}

/// A further optimizer, as of a second model.
impl State for Box<dyn Optimizer> {
    fn state(&self) -> BTreeMap<String, Tensor> {
        (**self).state()
    }

    fn load_state(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        (**self).load_state(state)
    }
}

/// What a checkpoint holds besides models and optimizers: numbers by name.
///
/// ```
/// use zyx::data::{Checkpoint, State};
/// use zyx::nn::{Init, Linear, Module};
/// use zyx::optim::{AdamOptions, AdamW, Ema};
/// let device = zyx::device()?;
/// let model = Linear::new(2, 3, &mut Init::new(0, &device))?;
/// let mut optimizer = AdamW::new(model.parameters(), AdamOptions::default())?;
/// let file = std::env::temp_dir().join(format!("zyx-checkpoint-doc-{}", std::process::id()));
/// let mut averages = Ema::new(model.parameters(), 0.999)?;
/// let mut checkpoint = Checkpoint::default();
/// checkpoint.counters.insert("step".to_owned(), 7);
/// checkpoint.numbers.insert("best loss".to_owned(), 0.25);
/// checkpoint.save_with(&model, &optimizer, &[("averages", &averages)], &file)?;
/// let states: &mut [(&str, &mut dyn State)] = &mut [("averages", &mut averages)];
/// let loaded = Checkpoint::load_with(&model, &mut optimizer, states, &file)?;
/// assert_eq!((loaded.counters["step"], loaded.numbers["best loss"]), (7, 0.25));
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoint {
    /// Whole numbers: steps, epochs.
    pub counters: BTreeMap<String, i64>,
    /// Other numbers: the best loss, a temperature. Kept bit for bit.
    pub numbers: BTreeMap<String, f64>,
}

impl Checkpoint {
    /// Writes model, optimizer and numbers; an earlier file is replaced when all is written.
    ///
    /// ```
    /// use zyx::data::Checkpoint;
    /// use zyx::nn::{Init, Linear, Module};
    /// use zyx::optim::{AdamOptions, AdamW};
    /// let device = zyx::device()?;
    /// let model = Linear::new(2, 3, &mut Init::new(0, &device))?;
    /// let mut optimizer = AdamW::new(model.parameters(), AdamOptions::default())?;
    /// let file = std::env::temp_dir().join(format!("zyx-checkpoint-save-{}", std::process::id()));
    /// let checkpoint = Checkpoint { counters: [("step".to_owned(), 7)].into(), ..Checkpoint::default() };
    /// checkpoint.save(&model, &optimizer, &file)?;
    /// assert_eq!(Checkpoint::load(&model, &mut optimizer, &file)?, checkpoint);
    /// # std::fs::remove_file(file)?;
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the device fails or the file cannot be written; an earlier file is whole then.
    pub fn save(
        &self,
        model: &dyn Module,
        optimizer: &dyn Optimizer,
        file: impl AsRef<Path>,
    ) -> Result<()> {
        self.save_with(model, optimizer, &[], file)
    }

    /// [`Checkpoint::save`] with further state by name, as an [`Ema`] has; see the example of [`Checkpoint`].
    ///
    /// # Errors
    /// As [`Checkpoint::save`], and when a name is empty, has a dot or is there twice.
    pub fn save_with(
        &self,
        model: &dyn Module,
        optimizer: &dyn Optimizer,
        states: &[(&str, &dyn State)],
        file: impl AsRef<Path>,
    ) -> Result<()> {
        check_names(states.iter().map(|(name, _)| *name))?;
        let mut all = BTreeMap::new();
        let named = |prefix: &str, tensors: BTreeMap<String, Tensor>| -> Vec<(String, Tensor)> {
            tensors.into_iter().map(|(name, x)| (format!("{prefix}.{name}"), x)).collect()
        };
        all.extend(named("model", model.to_tensors()));
        all.extend(named("optimizer", optimizer.state()));
        for (name, state) in states {
            all.extend(named(&format!("state.{name}"), state.state()));
        }
        let parameters = optimizer.parameters();
        let device = parameters.first().map(|parameter| parameter.device());
        let Some(device) = device.or_else(|| all.values().next().map(|x| x.device().clone()))
        else {
            let reason = "the model has no parameters".to_owned();
            return Err(Error::Format { what: "checkpoint".to_owned(), reason });
        };
        for (name, stream) in model.named_streams() {
            let rng = stream.lock().clone();
            let [a, b] = rng.key();
            let place = [i64::from(a), i64::from(b), rng.counter() as i64];
            all.insert(format!("stream.{name}"), Tensor::from_slice(&place, [3], &device)?);
        }
        for (name, &count) in &self.counters {
            all.insert(format!("counter.{name}"), Tensor::from_slice(&[count], (), &device)?);
        }
        for (name, &number) in &self.numbers {
            all.insert(format!("number.{name}"), Tensor::from_slice(&[number], (), &device)?);
        }
        safetensors::save(&all, file)
    }

    /// Reads what [`Checkpoint::save`] wrote for the same model and optimizer.
    ///
    /// # Errors
    /// When the file cannot be read or belongs to others. The optimizer may have its state then
    /// and the model not.
    pub fn load(
        model: &dyn Module,
        optimizer: &mut dyn Optimizer,
        file: impl AsRef<Path>,
    ) -> Result<Checkpoint> {
        Checkpoint::load_with(model, optimizer, &mut [], file)
    }

    /// Reads what [`Checkpoint::save_with`] wrote, with the further state of these names. State of other names in the
    /// file is left out.
    ///
    /// # Errors
    /// As [`Checkpoint::load`], and when state of a name is not in the file, or does not fit.
    pub fn load_with(
        model: &dyn Module,
        optimizer: &mut dyn Optimizer,
        states: &mut [(&str, &mut dyn State)],
        file: impl AsRef<Path>,
    ) -> Result<Checkpoint> {
        check_names(states.iter().map(|(name, _)| *name))?;
        let file = file.as_ref();
        let device = match optimizer.parameters().first() {
            Some(parameter) => parameter.device(),
            None => {
                let reason = "the optimizer has no parameters".to_owned();
                return Err(Error::Format { what: file.display().to_string(), reason });
            }
        };
        Checkpoint::load_on(model, optimizer, states, file, &device).map_err(|error| match error {
            Error::Format { reason, .. } => {
                Error::Format { what: file.display().to_string(), reason }
            }
            other => other,
        })
    }

    fn load_on(
        model: &dyn Module,
        optimizer: &mut dyn Optimizer,
        states: &mut [(&str, &mut dyn State)],
        file: &Path,
        device: &Device,
    ) -> Result<Checkpoint> {
        let mut parts: BTreeMap<&str, BTreeMap<String, Tensor>> = BTreeMap::new();
        for (name, tensor) in safetensors::load(file, device)? {
            let known = ["model", "optimizer", "state", "stream", "counter", "number"].into_iter();
            let part = known.zip(std::iter::repeat(&name)).find_map(|(part, name)| {
                Some((part, name.strip_prefix(part)?.strip_prefix('.')?.to_owned()))
            });
            let Some((part, name)) = part else {
                let reason = format!("`{name}` is no part of a checkpoint");
                return Err(Error::Format { what: String::new(), reason });
            };
            parts.entry(part).or_default().insert(name, tensor);
        }
        let mut part = |name| parts.remove(name).unwrap_or_default();
        let mut by_name: BTreeMap<String, BTreeMap<String, Tensor>> = BTreeMap::new();
        for (name, tensor) in part("state") {
            let (state, name) = name.split_once('.').unwrap_or((&name, ""));
            by_name.entry(state.to_owned()).or_default().insert(name.to_owned(), tensor);
        }
        if let Some((name, _)) = states.iter().find(|(name, _)| !by_name.contains_key(*name)) {
            let reason = format!("the state `{name}` is missing");
            return Err(Error::Format { what: String::new(), reason });
        }
        optimizer.load_state(&part("optimizer"))?;
        model.load_tensors(&part("model"))?;
        for (name, state) in states {
            state.load_state(&by_name[*name])?;
        }
        let streams = part("stream");
        for (name, stream) in model.named_streams() {
            let place = streams.get(&name).map(|place| place.cast(DType::I64).to_vec::<i64>());
            let place = place.transpose()?.unwrap_or_default();
            let &[a, b, counter] = &place[..] else {
                let reason = format!("the stream `{name}` is missing");
                return Err(Error::Format { what: String::new(), reason });
            };
            stream.set([a as u32, b as u32], counter as u64);
        }
        let number = |(name, x): (String, Tensor)| Ok((name, x.cast(DType::I64).item::<i64>()?));
        let counters = part("counter").into_iter().map(number).collect::<Result<_>>()?;
        let number = |(name, x): (String, Tensor)| Ok((name, x.cast(DType::F64).item::<f64>()?));
        let numbers = part("number").into_iter().map(number).collect::<Result<_>>()?;
        Ok(Checkpoint { counters, numbers })
    }
}

/// Refuses names that would not be told apart in the file.
fn check_names<'a>(names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = BTreeSet::new();
    for name in names {
        if name.is_empty() || name.contains('.') || !seen.insert(name) {
            let reason =
                format!("the name `{name}` of a state is empty, has a dot or is there twice");
            return Err(Error::Format { what: "checkpoint".to_owned(), reason });
        }
    }
    Ok(())
}
