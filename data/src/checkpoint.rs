//! [`Checkpoint`]: everything that training needs to go on, in one file.
//!
//! One safetensors file, replaced at once: there is no moment at which half a checkpoint exists.
//! Names: `model.*` parameters and state, `optimizer.*`, `stream.*` (generators of dropout, `[key,
//! key, counter]`), `counter.*` (whole numbers of the caller). The model's part opens with any
//! reader of safetensors.

use std::collections::BTreeMap;
use std::path::Path;
use zyx_core::{DType, Device, Error, Result, Tensor};
use zyx_nn::{Module, safetensors};
use zyx_optim::Optimizer;

/// What a checkpoint holds besides models and optimizers: numbers by name.
///
/// ```
/// use zyx_nn::{Init, Linear, Module};
/// use zyx_optim::{AdamOptions, AdamW};
/// use zyx_core::Runtime;
/// use zyx_data::Checkpoint;
/// let device = Runtime::default().device("reference")?;
/// let model = Linear::new(2, 3, &mut Init::new(0, &device))?;
/// let mut optimizer = AdamW::new(model.parameters(), AdamOptions::default())?;
/// let file = std::env::temp_dir().join(format!("zyx-checkpoint-doc-{}", std::process::id()));
/// let checkpoint = Checkpoint { counters: [("step".to_owned(), 7)].into() };
/// checkpoint.save(&model, &optimizer, &file)?;
/// let loaded = Checkpoint::load(&model, &mut optimizer, &file)?;
/// assert_eq!(loaded.counters["step"], 7);
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), zyx_core::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Whole numbers: steps, epochs.
    pub counters: BTreeMap<String, i64>,
}

impl Checkpoint {
    /// Writes model, optimizer and counters; an earlier file is replaced when all is written.
    ///
    /// # Errors
    /// When the device fails or the file cannot be written; an earlier file is whole then.
    pub fn save(
        &self,
        model: &dyn Module,
        optimizer: &dyn Optimizer,
        file: impl AsRef<Path>,
    ) -> Result<()> {
        let mut all = BTreeMap::new();
        let named = |prefix: &str, tensors: BTreeMap<String, Tensor>| -> Vec<(String, Tensor)> {
            tensors.into_iter().map(|(name, x)| (format!("{prefix}.{name}"), x)).collect()
        };
        all.extend(named("model", model.to_tensors()));
        all.extend(named("optimizer", optimizer.state()));
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
        let file = file.as_ref();
        let device = match optimizer.parameters().first() {
            Some(parameter) => parameter.device(),
            None => {
                let reason = "the optimizer has no parameters".to_owned();
                return Err(Error::Format { what: file.display().to_string(), reason });
            }
        };
        Checkpoint::load_on(model, optimizer, file, &device).map_err(|error| match error {
            Error::Format { reason, .. } => {
                Error::Format { what: file.display().to_string(), reason }
            }
            other => other,
        })
    }

    fn load_on(
        model: &dyn Module,
        optimizer: &mut dyn Optimizer,
        file: &Path,
        device: &Device,
    ) -> Result<Checkpoint> {
        let mut parts: BTreeMap<&str, BTreeMap<String, Tensor>> = BTreeMap::new();
        for (name, tensor) in safetensors::load(file, device)? {
            let known = ["model", "optimizer", "stream", "counter"].into_iter();
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
        optimizer.load_state(&part("optimizer"))?;
        model.load_tensors(&part("model"))?;
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
        Ok(Checkpoint { counters })
    }
}
