//! What all optimizers share: the step as one plan, and saving and restoring of state.

use std::collections::BTreeMap;
use std::panic::Location;
use zyx_core::{Error, Param, Result, Tensor};

/// Changes parameters so that a loss falls.
///
/// ```
/// use optim::{Optimizer, Param, Sgd, SgdOptions};
/// use zyx_core::{Runtime, Tensor};
/// let device = Runtime::default().device("reference")?;
/// let x = Param::new(Tensor::new(3f32, &device)?);
/// let mut sgd = Sgd::new(vec![x.clone()], SgdOptions { learning_rate: 0.1, ..Default::default() })?;
/// for _ in 0..50 {
///     let loss = (x.tensor() - 1.0).square();
///     sgd.step(&loss)?;
/// }
/// assert!((x.tensor().item::<f32>()? - 1.0).abs() < 1e-3);
/// # Ok::<(), zyx_core::Error>(())
/// ```
pub trait Optimizer {
    /// The parameters, in the order of gradients and state.
    fn parameters(&self) -> &[Param];

    /// The factor of each step.
    fn learning_rate(&self) -> f64;

    /// Changes the factor of each step. Costs nothing: plans stay as they are.
    fn set_learning_rate(&mut self, learning_rate: f64);

    /// Applies gradients, one for each of [`Optimizer::parameters`]. A parameter without one, or
    /// that is not trainable, stays as it is. Everything pending of the parameters that are not
    /// trainable (running statistics) and of `along` (a loss) is computed in the same plan.
    ///
    /// # Errors
    /// When the number or the shapes of gradients do not fit, or the device fails; nothing has
    /// changed then.
    fn apply(&mut self, gradients: &[Option<Tensor>], along: &[&Tensor]) -> Result<()>;

    /// Everything that is needed to continue training later, by name.
    fn state(&self) -> BTreeMap<String, Tensor>;

    /// Continues from what [`Optimizer::state`] gave for the same parameters.
    ///
    /// # Errors
    /// [`Error::Format`] when something is missing or does not fit; nothing has changed then.
    fn load_state(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()>;

    /// The gradients of a loss for the trainable parameters; `None` where it does not depend on
    /// one, or the parameter is not trainable.
    ///
    /// # Errors
    /// When the loss is not one number, or has no history.
    #[track_caller]
    fn gradients(&self, loss: &Tensor) -> Result<Vec<Option<Tensor>>> {
        if loss.numel() != 1 {
            let shapes = vec![loss.shape().clone()];
            let reason = "the loss must be one number; take its mean or sum".to_owned();
            return Err(Error::Shape { op: "step", reason, shapes, location: Location::caller() });
        }
        let parameters = self.parameters();
        let places: Vec<usize> =
            (0..parameters.len()).filter(|&i| parameters[i].is_trainable()).collect();
        let tensors: Vec<Tensor> = places.iter().map(|&i| parameters[i].tensor()).collect();
        let mut gradients = vec![None; parameters.len()];
        let found = loss.grad(&tensors.iter().collect::<Vec<_>>())?;
        for (i, gradient) in places.into_iter().zip(found) {
            gradients[i] = gradient;
        }
        Ok(gradients)
    }

    /// One step down the gradient of a loss. The loss is computed in the same plan, so reading it
    /// afterwards costs nothing.
    ///
    /// # Errors
    /// As [`Optimizer::gradients`] and [`Optimizer::apply`]; also when the loss depends on none of
    /// the parameters.
    #[track_caller]
    fn step(&mut self, loss: &Tensor) -> Result<()> {
        let gradients = self.gradients(loss)?;
        if gradients.iter().all(Option::is_none) {
            let reason = "the loss depends on none of the parameters".to_owned();
            return Err(refuse("step", reason));
        }
        self.apply(&gradients, &[loss])
    }
}

#[track_caller]
pub(crate) fn refuse(op: &'static str, reason: String) -> Error {
    Error::Argument { op, reason, location: Location::caller() }
}

/// An option that must be at least `low` and below `high`.
#[track_caller]
pub(crate) fn check_option(
    op: &'static str,
    name: &str,
    x: f64,
    low: f64,
    high: f64,
) -> Result<()> {
    if (low..high).contains(&x) {
        return Ok(());
    }
    Err(refuse(op, format!("{name} is {x}, it must be at least {low} and below {high}")))
}

/// Parameters and `N` tensors of state for each.
#[derive(Debug)]
pub(crate) struct Slots<const N: usize> {
    pub(crate) parameters: Vec<Param>,
    names: [&'static str; N],
    slots: Vec<Slot<N>>,
}

/// The state of one parameter.
#[derive(Clone, Debug)]
pub(crate) struct Slot<const N: usize> {
    /// Times the parameter was changed.
    pub(crate) steps: u64,
    pub(crate) state: [Tensor; N],
}

/// What an update makes of one parameter.
pub(crate) struct Update<const N: usize> {
    /// The new value, in the dtype of the state.
    pub(crate) value: Tensor,
    pub(crate) state: [Tensor; N],
}

impl<const N: usize> Slots<N> {
    /// State of zeros for each parameter; one that is given twice counts once.
    #[track_caller]
    pub(crate) fn new(parameters: Vec<Param>, names: [&'static str; N]) -> Result<Slots<N>> {
        let mut distinct: Vec<Param> = Vec::with_capacity(parameters.len());
        for parameter in parameters {
            if !distinct.iter().any(|known| known.is_same(&parameter)) {
                distinct.push(parameter);
            }
        }
        let slot = |parameter: &Param| {
            let value = parameter.tensor();
            let zeros = |_| {
                let dtype = value.dtype().accumulator();
                Tensor::zeros(value.shape(), dtype, value.device())
            };
            Slot { steps: 0, state: [(); N].map(zeros) }
        };
        let slots: Vec<Slot<N>> = distinct.iter().map(slot).collect();
        // Stored now, so that the first step is like all others.
        Tensor::realize_all(slots.iter().flat_map(|slot| &slot.state))?;
        Ok(Slots { parameters: distinct, names, slots })
    }

    /// Updates each parameter that has a gradient by `update`, which gets the parameter's value,
    /// its gradient and its state with the step already counted.
    #[track_caller]
    pub(crate) fn apply(
        &mut self,
        gradients: &[Option<Tensor>],
        along: &[&Tensor],
        update: impl Fn(&Tensor, &Tensor, &Slot<N>) -> Result<Update<N>>,
    ) -> Result<()> {
        let n = self.parameters.len();
        if gradients.len() != n {
            let reason = format!("{} gradients for {n} parameters", gradients.len());
            return Err(refuse("apply", reason));
        }
        let mut updates: Vec<(usize, Tensor, Slot<N>)> = Vec::new();
        let mut pending: Vec<Tensor> = along.iter().map(|&tensor| tensor.clone()).collect();
        for (i, gradient) in gradients.iter().enumerate() {
            let (parameter, value) = (&self.parameters[i], self.parameters[i].tensor());
            let Some(gradient) = gradient.as_ref().filter(|_| parameter.is_trainable()) else {
                pending.push(value);
                continue;
            };
            if !gradient.shape().same(value.shape()) {
                let (shape, of) = (gradient.shape(), value.shape());
                let reason = format!("gradient {i} has shape {shape}, its parameter {of}");
                return Err(refuse("apply", reason));
            }
            let wide = value.dtype().accumulator();
            let (old, gradient) = (value.detach().cast(wide), gradient.detach().cast(wide));
            let Slot { steps, state } = self.slots[i].clone();
            let slot = Slot { steps: steps + 1, state };
            let Update { value: new, state } = update(&old, &gradient, &slot)?;
            let new = new.cast(value.dtype());
            pending.push(new.clone());
            pending.extend(state.iter().cloned());
            updates.push((i, new, Slot { state, ..slot }));
        }
        Tensor::realize_all(&pending)?;
        for (i, value, slot) in updates {
            self.parameters[i].set(&value)?;
            self.slots[i] = slot;
        }
        Ok(())
    }

    pub(crate) fn state(&self) -> BTreeMap<String, Tensor> {
        let mut all = BTreeMap::new();
        for (i, (parameter, slot)) in self.parameters.iter().zip(&self.slots).enumerate() {
            for (name, tensor) in self.names.iter().zip(&slot.state) {
                all.insert(format!("{i}.{name}"), tensor.clone());
            }
            let steps = Tensor::full((), slot.steps as i64, &parameter.device());
            all.insert(format!("{i}.step"), steps);
        }
        all
    }

    pub(crate) fn load_state(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        let fail = |reason: String| Error::Format { what: "optimizer state".into(), reason };
        let expected = self.parameters.len() * (N + 1);
        if state.len() != expected {
            let reason = format!("{} tensors, these parameters have {expected}", state.len());
            return Err(fail(reason));
        }
        let mut slots = Vec::with_capacity(self.slots.len());
        for (i, slot) in self.slots.iter().enumerate() {
            let find = |name: &str| {
                let name = format!("{i}.{name}");
                state.get(&name).ok_or_else(|| fail(format!("`{name}` is missing")))
            };
            let mut loaded = slot.clone();
            for (name, tensor) in self.names.iter().zip(&mut loaded.state) {
                let value = find(name)?;
                if !value.shape().same(tensor.shape()) {
                    let (shape, needed) = (value.shape(), tensor.shape());
                    return Err(fail(format!("`{i}.{name}` is {shape} instead of {needed}")));
                }
                *tensor = value.to_device(tensor.device())?.cast(tensor.dtype());
            }
            let steps = find("step")?.cast(zyx_core::DType::I64);
            loaded.steps = u64::try_from(steps.item::<i64>()?)
                .map_err(|_| fail(format!("`{i}.step` is negative")))?;
            slots.push(loaded);
        }
        Tensor::realize_all(slots.iter().flat_map(|slot| &slot.state))?;
        self.slots = slots;
        Ok(())
    }
}
