//! What is kept beside training: [`Ema`], a running mean of the parameters, and [`Accumulator`],
//! the mean of gradients over several batches.

use crate::optimizer::{Optimizer, check_option, distinct, refuse};
use std::collections::BTreeMap;
use std::panic::Location;
use zyx_core::{Error, Param, Result, Tensor, attribute};

/// An exponential moving average of parameters (Polyak and Juditsky 1992): models evaluate better
/// with it than with the last step's values.
///
/// ```
/// use zyx::optim::Ema;
/// use zyx::{Param, Tensor};
/// let device = zyx::device()?;
/// let x = Param::new(Tensor::new([0f32], &device)?);
/// let mut ema = Ema::new(vec![x.clone()], 0.75)?;
/// x.set(&Tensor::new([4f32], &device)?)?;
/// ema.update()?;
/// ema.swap()?; // evaluate with the averages ..
/// assert_eq!(x.tensor().to_vec::<f32>()?, [1.0]);
/// ema.swap()?; // .. and train on
/// assert_eq!(x.tensor().to_vec::<f32>()?, [4.0]);
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Debug)]
pub struct Ema {
    parameters: Vec<Param>,
    averages: Vec<Tensor>,
    decay: f64,
}

impl Ema {
    /// Averages that start at the present values and keep `decay` of themselves at each update.
    ///
    /// # Errors
    /// When `decay` is not in `0 .. 1`, or the device fails.
    #[track_caller]
    pub fn new(parameters: Vec<Param>, decay: f64) -> Result<Ema> {
        check_option("Ema::new", "decay", decay, 0.0, 1.0)?;
        let parameters = distinct(parameters);
        let wide = |parameter: &Param| {
            let value = parameter.tensor().detach();
            value.cast(value.dtype().accumulator())
        };
        let averages: Vec<Tensor> =
            attribute(Location::caller(), || parameters.iter().map(wide).collect());
        Tensor::realize_all(&averages)?;
        Ok(Ema { parameters, averages, decay })
    }

    /// Moves the averages towards the present values. What is no float is copied.
    ///
    /// # Errors
    /// When the device fails; nothing has changed then.
    #[track_caller]
    pub fn update(&mut self) -> Result<()> {
        let moved = |(average, parameter): (&Tensor, &Param)| -> Result<Tensor> {
            let value = parameter.tensor().detach().cast(average.dtype());
            match value.dtype().is_float() {
                true => average.lerp(value, 1.0 - self.decay),
                false => Ok(value),
            }
        };
        let places = self.averages.iter().zip(&self.parameters);
        let averages: Vec<Tensor> =
            attribute(Location::caller(), || places.map(moved).collect::<Result<_>>())?;
        Tensor::realize_all(&averages)?;
        self.averages = averages;
        Ok(())
    }

    /// Exchanges averages and parameters.
    ///
    /// # Errors
    /// When the device fails.
    #[track_caller]
    pub fn swap(&mut self) -> Result<()> {
        let mut values = Vec::new();
        let mut averages = Vec::new();
        for (parameter, average) in self.parameters.iter().zip(&self.averages) {
            averages.push(parameter.tensor().detach().cast(average.dtype()));
            values.push(average.cast(parameter.dtype()));
        }
        Tensor::realize_all(values.iter().chain(&averages))?;
        let mut places = self.parameters.iter().zip(&values);
        places.try_for_each(|(parameter, value)| parameter.set(value))?;
        self.averages = averages;
        Ok(())
    }

    /// The averages in the order of the parameters.
    ///
    /// ```
    /// # use zyx::optim::Ema;
    /// # use zyx::{Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let x = Param::new(Tensor::new([2f32], &device)?);
    /// let ema = Ema::new(vec![x.clone()], 0.9)?;
    /// assert_eq!(ema.averages()[0].to_vec::<f32>()?, [2.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn averages(&self) -> &[Tensor] {
        &self.averages
    }

    /// Everything that is needed to continue later, by name.
    ///
    /// ```
    /// # use zyx::optim::Ema;
    /// # use zyx::{Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let x = Param::new(Tensor::new([2f32], &device)?);
    /// let ema = Ema::new(vec![x.clone()], 0.9)?;
    /// assert_eq!(ema.state().len(), 1);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn state(&self) -> BTreeMap<String, Tensor> {
        let named = |(i, average): (usize, &Tensor)| (format!("{i}.average"), average.clone());
        self.averages.iter().enumerate().map(named).collect()
    }

    /// Continues from what [`Ema::state`] gave for the same parameters.
    ///
    /// ```
    /// # use zyx::optim::Ema;
    /// # use zyx::{Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let x = Param::new(Tensor::new([2f32], &device)?);
    /// let mut ema = Ema::new(vec![x.clone()], 0.9)?;
    /// let state = ema.state();
    /// x.set(&Tensor::new([4f32], &device)?)?;
    /// ema.update()?;
    /// ema.load_state(&state)?;
    /// assert_eq!(ema.averages()[0].to_vec::<f32>()?, [2.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Format`] when something is missing or does not fit; nothing has changed then.
    #[track_caller]
    pub fn load_state(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        let mut averages = Vec::new();
        for (i, average) in self.averages.iter().enumerate() {
            let name = format!("{i}.average");
            let value = state.get(&name).filter(|value| value.shape().same(average.shape()));
            let Some(value) = value else {
                let reason = format!("`{name}` is missing or has another shape");
                return Err(Error::Format { what: "averages".into(), reason });
            };
            averages.push(value.to_device(average.device())?.cast(average.dtype()));
        }
        Tensor::realize_all(&averages)?;
        self.averages = averages;
        Ok(())
    }
}

/// The mean of gradients over several batches, for a batch that does not fit into memory at once.
///
/// ```
/// use zyx::optim::{Accumulator, Optimizer, Sgd, SgdOptions};
/// use zyx::{Param, Tensor};
/// let device = zyx::device()?;
/// let x = Param::new(Tensor::new([1f32], &device)?);
/// let mut sgd = Sgd::new(vec![x.clone()], SgdOptions { learning_rate: 1.0, ..Default::default() })?;
/// let mut accumulator = Accumulator::default();
/// for factor in [0.25, 0.75] {
///     accumulator.add(&sgd, &(x.tensor() * factor).sum(..)?)?;
/// }
/// sgd.apply(&accumulator.take()?, &[])?;
/// assert_eq!(x.tensor().to_vec::<f32>()?, [0.5]);
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Accumulator {
    sums: Vec<Option<Tensor>>,
    batches: u64,
}

impl Accumulator {
    /// Adds the gradients of a loss, computed now together with the loss.
    ///
    /// # Errors
    /// As [`Optimizer::gradients`], when the parameters are others than before, or when the device
    /// fails; nothing has changed then.
    #[track_caller]
    pub fn add(&mut self, optimizer: &dyn Optimizer, loss: &Tensor) -> Result<()> {
        let gradients = optimizer.gradients(loss)?;
        if self.batches > 0 && self.sums.len() != gradients.len() {
            let (n, before) = (gradients.len(), self.sums.len());
            return Err(refuse("Accumulator::add", format!("{n} gradients after {before}")));
        }
        let mut sums = Vec::with_capacity(gradients.len());
        for (i, gradient) in gradients.into_iter().enumerate() {
            let gradient = gradient.map(|g| g.cast(g.dtype().accumulator()));
            sums.push(match (self.sums.get(i).cloned().flatten(), gradient) {
                (Some(sum), Some(gradient)) => Some(sum.add(&gradient)?),
                (sum, gradient) => sum.or(gradient),
            });
        }
        Tensor::realize_all(sums.iter().flatten().chain([loss]))?;
        self.sums = sums;
        self.batches += 1;
        Ok(())
    }

    /// Batches that were added.
    ///
    /// ```
    /// # use zyx::{Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let x = Param::new(Tensor::new([2f32], &device)?);
    /// use zyx::optim::{Accumulator, Sgd, SgdOptions};
    /// let sgd = Sgd::new(vec![x.clone()], SgdOptions::default())?;
    /// let mut accumulator = Accumulator::default();
    /// accumulator.add(&sgd, &x.tensor().square().sum(..)?)?;
    /// assert_eq!(accumulator.batches(), 1);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn batches(&self) -> u64 {
        self.batches
    }

    /// The mean gradients of the batches, for [`Optimizer::apply`]; starts anew.
    ///
    /// # Errors
    /// When nothing was added.
    #[track_caller]
    pub fn take(&mut self) -> Result<Vec<Option<Tensor>>> {
        if self.batches == 0 {
            return Err(refuse("Accumulator::take", "no batch was added".to_owned()));
        }
        let share = 1.0 / self.batches as f64;
        self.batches = 0;
        let mean = |sum: Option<Tensor>| sum.map(|sum| sum.mul(share)).transpose();
        std::mem::take(&mut self.sums).into_iter().map(mean).collect()
    }
}
