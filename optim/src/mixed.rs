//! Mixed precision: [`MasterWeights`] and [`LossScaler`].
//!
//! A model whose parameters are halves computes and stores little; a step smaller than their
//! resolution would be lost. So the optimizer keeps its own copy of every parameter in `f32` and
//! rounds it into the model after each step (Micikevicius et al. 2018). `f16` also has a small
//! range: the loss is scaled up, so that small gradients do not vanish, and the gradients are
//! scaled down again. `bf16` has the range of `f32` and needs no scaling.

use crate::optimizer::{Optimizer, Proposal, check_option, distinct, refuse};
use std::collections::BTreeMap;
use std::panic::Location;
use zyx_core::{DType, Param, Result, Tensor, attribute};

/// An optimizer over copies of the parameters in `f32`, rounded into the model after each step.
///
/// ```
/// use zyx::optim::{AdamOptions, AdamW, MasterWeights, Optimizer};
/// use zyx::{DType, Param, Tensor};
/// let device = zyx::device()?;
/// let weight = Param::new(Tensor::new([1f32, 2.0], &device)?.cast(DType::BF16));
/// let make = |masters| AdamW::new(masters, AdamOptions::default());
/// let mut optimizer = MasterWeights::new(vec![weight.clone()], make)?;
/// for _ in 0..10 {
///     optimizer.step(&weight.tensor().sum(..)?)?;
/// }
/// // Ten steps of 0.001 are visible at 1, one alone would not be.
/// assert_eq!(weight.tensor().cast(DType::F32).to_vec::<f32>()?[0], 0.98828125);
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Debug)]
pub struct MasterWeights<O> {
    parameters: Vec<Param>,
    inner: O,
}

impl<O: Optimizer> MasterWeights<O> {
    /// The optimizer that `make` gives for copies of these parameters.
    ///
    /// # Errors
    /// When `make` fails, or the device.
    #[track_caller]
    pub fn new(
        parameters: Vec<Param>,
        make: impl FnOnce(Vec<Param>) -> Result<O>,
    ) -> Result<MasterWeights<O>> {
        let parameters = distinct(parameters);
        let master = |parameter: &Param| {
            let value = parameter.tensor();
            // Integers and other state are not the optimizer's: they stay themselves.
            if !parameter.is_trainable() {
                return parameter.clone();
            }
            Param::new(value.detach().cast(value.dtype().accumulator()))
        };
        let masters: Vec<Param> =
            attribute(Location::caller(), || parameters.iter().map(master).collect());
        Tensor::realize_all(&masters.iter().map(Param::tensor).collect::<Vec<_>>())?;
        let inner = make(masters)?;
        if inner.parameters().len() != parameters.len() {
            let reason = "the optimizer has other parameters than it was given".to_owned();
            return Err(refuse("MasterWeights::new", reason));
        }
        Ok(MasterWeights { parameters, inner })
    }

    /// The optimizer of the copies.
    ///
    /// ```
    /// # use zyx::{Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let x = Param::new(Tensor::new([2f32], &device)?);
    /// use zyx::optim::{AdamOptions, AdamW, MasterWeights, Optimizer};
    /// let half = Param::new(x.tensor().cast(zyx::DType::F16));
    /// let make = |masters| AdamW::new(masters, AdamOptions::default());
    /// let optimizer = MasterWeights::new(vec![half], make)?;
    /// assert_eq!(optimizer.inner().parameters()[0].dtype(), zyx::DType::F32);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn inner(&self) -> &O {
        &self.inner
    }
}

impl<O: Optimizer> Optimizer for MasterWeights<O> {
    fn parameters(&self) -> &[Param] {
        &self.parameters
    }

    fn learning_rate(&self) -> f64 {
        self.inner.learning_rate()
    }

    fn set_learning_rate(&mut self, learning_rate: f64) {
        self.inner.set_learning_rate(learning_rate);
    }

    fn momentum(&self) -> Option<f64> {
        self.inner.momentum()
    }

    #[track_caller]
    fn set_momentum(&mut self, momentum: f64) -> Result<()> {
        self.inner.set_momentum(momentum)
    }

    #[track_caller]
    fn propose(&self, gradients: &[Option<Tensor>]) -> Result<Proposal> {
        let wide = |gradient: &Option<Tensor>| {
            gradient.as_ref().map(|gradient| gradient.cast(gradient.dtype().accumulator()))
        };
        let gradients: Vec<Option<Tensor>> =
            attribute(Location::caller(), || gradients.iter().map(wide).collect());
        let inner = self.inner.propose(&gradients)?;
        Proposal::around(inner, &self.parameters)
    }

    fn exchange(&mut self, proposal: &mut Proposal) {
        proposal.parts.iter_mut().for_each(|inner| self.inner.exchange(inner));
    }

    #[track_caller]
    fn accept(&mut self, proposal: Proposal) -> Result<()> {
        let (inner, rounded) = proposal.inside(self.parameters.len())?;
        self.inner.accept(inner)?;
        rounded.into_iter().try_for_each(|(place, value)| self.parameters[place].set(&value))
    }

    /// The inner state, and the copies as `master.{i}`.
    fn state(&self) -> BTreeMap<String, Tensor> {
        let mut state = self.inner.state();
        for (i, master) in self.inner.parameters().iter().enumerate() {
            state.insert(format!("master.{i}"), master.tensor().detach());
        }
        state
    }

    fn load_state(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        let mut rest = state.clone();
        let mut values = Vec::new();
        for (i, master) in self.inner.parameters().iter().enumerate() {
            let name = format!("master.{i}");
            let value = rest.remove(&name).filter(|value| value.shape().same(&master.shape()));
            let Some(value) = value else {
                let reason = format!("`{name}` is missing or has another shape");
                return Err(zyx_core::Error::Format { what: "optimizer state".into(), reason });
            };
            values.push(value.to_device(&master.device())?.cast(master.dtype()));
        }
        Tensor::realize_all(&values)?;
        self.inner.load_state(&rest)?;
        let mut places = self.inner.parameters().iter().zip(&values);
        places.try_for_each(|(master, value)| master.set(value))
    }
}

/// Scales losses, so that gradients in `f16` neither vanish nor overflow; finds the scale by
/// itself, as PyTorch's `GradScaler` does.
///
/// ```
/// use zyx::optim::{LossScaler, Optimizer, Sgd, SgdOptions};
/// use zyx::{DType, Param, Tensor};
/// let device = zyx::device()?;
/// let x = Param::new(Tensor::new([3f32], &device)?.cast(DType::F16));
/// let mut sgd = Sgd::new(vec![x.clone()], SgdOptions { learning_rate: 0.1, ..Default::default() })?;
/// let mut scaler = LossScaler::default();
/// for _ in 0..60 {
///     let loss = x.tensor().square().sum(..)?;
///     scaler.step(&mut sgd, &loss)?;
/// }
/// // The first scales were too large for f16: those steps were left out.
/// assert!(scaler.scale < 65536.0);
/// assert!(x.tensor().cast(DType::F32).item::<f32>()?.abs() < 0.1);
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossScaler {
    /// What losses are multiplied with; 65536 at first.
    pub scale: f64,
    /// The factor after gradients that overflow; 0.5.
    pub backoff: f64,
    /// The factor after `interval` steps without overflow; 2.
    pub growth: f64,
    /// Steps without overflow after which the scale grows; 2000.
    pub interval: u64,
    /// Steps without overflow since the scale changed.
    pub good_steps: u64,
}

impl Default for LossScaler {
    fn default() -> LossScaler {
        LossScaler { scale: 65536.0, backoff: 0.5, growth: 2.0, interval: 2000, good_steps: 0 }
    }
}

impl LossScaler {
    /// The gradients of a loss, computed at the present scale and scaled down again in `f32`,
    /// with the loss computed beside them; `None` where one overflowed. Changes the scale
    /// accordingly.
    ///
    /// ```
    /// # use zyx::{Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let x = Param::new(Tensor::new([2f32], &device)?);
    /// use zyx::optim::{LossScaler, Sgd, SgdOptions};
    /// let sgd = Sgd::new(vec![x.clone()], SgdOptions::default())?;
    /// let mut scaler = LossScaler::default();
    /// let gradients = scaler.gradients(&sgd, &x.tensor().square().sum(..)?)?.expect("nothing overflows");
    /// assert_eq!(gradients[0].as_ref().unwrap().to_vec::<f32>()?, [4.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Optimizer::gradients`], or when the scale is not a positive number.
    #[track_caller]
    pub fn gradients(
        &mut self,
        optimizer: &dyn Optimizer,
        loss: &Tensor,
    ) -> Result<Option<Vec<Option<Tensor>>>> {
        check_option("LossScaler", "the scale", self.scale, f64::MIN_POSITIVE, f64::INFINITY)?;
        let wide = loss.cast(DType::F32);
        let mut gradients = optimizer.gradients(&wide.mul(self.scale)?)?;
        let mut finite = Tensor::full((), true, loss.device());
        for gradient in gradients.iter_mut().flatten() {
            let unscaled = gradient.cast(gradient.dtype().accumulator()).mul(1.0 / self.scale)?;
            let whole = unscaled.is_finite().cast(DType::I32).min(..)?.gt(0i32)?;
            finite = finite.logical_and(whole)?;
            *gradient = unscaled;
        }
        let all = gradients.iter().flatten().chain([&finite, loss]);
        Tensor::realize_all(all)?;
        if !finite.item::<bool>()? {
            self.scale *= self.backoff;
            self.good_steps = 0;
            return Ok(None);
        }
        self.good_steps += 1;
        if self.good_steps >= self.interval {
            self.scale *= self.growth;
            self.good_steps = 0;
        }
        Ok(Some(gradients))
    }

    /// One step down the gradient of a loss, unless a gradient overflows; whether it was made.
    ///
    /// # Errors
    /// As [`LossScaler::gradients`] and [`Optimizer::apply`].
    #[track_caller]
    pub fn step(&mut self, optimizer: &mut dyn Optimizer, loss: &Tensor) -> Result<bool> {
        let Some(gradients) = self.gradients(&*optimizer, loss)? else { return Ok(false) };
        optimizer.apply(&gradients, &[])?;
        Ok(true)
    }
}
