//! What all optimizers share: the step as one plan, and saving and restoring of state.

use std::collections::BTreeMap;
use std::panic::Location;
use zyx_core::{Error, Param, Result, Shape, Tensor, attribute};

/// Changes parameters so that a loss falls.
///
/// ```
/// use zyx::optim::{Optimizer, Sgd, SgdOptions};
/// use zyx::{Param, Tensor};
/// let device = zyx::device()?;
/// let x = Param::new(Tensor::new(3f32, &device)?);
/// let mut sgd = Sgd::new(vec![x.clone()], SgdOptions { learning_rate: 0.1, ..Default::default() })?;
/// for _ in 0..50 {
///     let loss = (x.tensor() - 1.0).square();
///     sgd.step(&loss)?;
/// }
/// assert!((x.tensor().item::<f32>()? - 1.0).abs() < 1e-3);
/// # Ok::<(), zyx::Error>(())
/// ```
pub trait Optimizer {
    /// The parameters, in the order of gradients and state.
    fn parameters(&self) -> &[Param];

    /// The factor of each step.
    fn learning_rate(&self) -> f64;

    /// Changes the factor of each step. Costs nothing: plans stay as they are.
    fn set_learning_rate(&mut self, learning_rate: f64);

    /// The share of the last step in the next one: `momentum`, or the first of `betas`. `None` if
    /// the optimizer has neither.
    fn momentum(&self) -> Option<f64> {
        None
    }

    /// Changes the momentum, as schedules of it do. Costs nothing: plans stay as they are.
    ///
    /// # Errors
    /// When the optimizer has none, or was made with none (0), or it is out of range.
    #[track_caller]
    fn set_momentum(&mut self, momentum: f64) -> Result<()> {
        Err(refuse("set_momentum", format!("the optimizer has none to become {momentum}")))
    }

    /// What a step with these gradients would make of parameters and state, not computed yet: the
    /// first half of [`Optimizer::apply`], which optimizers that consist of others put together.
    ///
    /// # Errors
    /// When the number or the shapes of gradients do not fit.
    fn propose(&self, gradients: &[Option<Tensor>]) -> Result<Proposal>;

    /// Puts a proposal into effect, whose tensors were computed: the second half.
    ///
    /// # Errors
    /// When the proposal is another optimizer's.
    fn accept(&mut self, proposal: Proposal) -> Result<()>;

    /// Swaps the state that a proposal replaces with what the proposal holds in its place, nothing
    /// at first. In between, [`Optimizer::apply`] gives that state up, so that its memory can become
    /// the new state's. An optimizer that keeps the default keeps its old state until the new one is
    /// there.
    fn exchange(&mut self, proposal: &mut Proposal) {
        let _ = proposal;
    }

    /// Applies gradients, one for each of [`Optimizer::parameters`]. A parameter without one, or
    /// that is not trainable, stays as it is. Everything pending of the parameters that are not
    /// trainable (running statistics) and of `along` (a loss) is computed in the same plan.
    ///
    /// # Errors
    /// When the number or the shapes of gradients do not fit, or the device fails; nothing has
    /// changed then.
    #[track_caller]
    fn apply(&mut self, gradients: &[Option<Tensor>], along: &[&Tensor]) -> Result<()> {
        // `propose` does not see who called.
        let mut proposal = attribute(Location::caller(), || self.propose(gradients))?;
        self.exchange(&mut proposal);
        let mut old = proposal.take_replaced();
        // Pending tensors in `old` are not stored for later, even if the caller holds them: here gradients, and
        // new values before they are rounded to the parameter's dtype.
        old.extend(gradients.iter().flatten().cloned());
        old.extend(proposal.values(0).into_iter().map(|(_, wide)| wide));
        let new = along.iter().copied().chain(proposal.tensors());
        if let Err(error) = Tensor::realize_replacing(new, &mut old) {
            proposal.put_replaced(&mut old.into_iter());
            self.exchange(&mut proposal);
            return Err(error);
        }
        self.accept(proposal)
    }

    /// Everything that is needed to continue training later, by name.
    fn state(&self) -> BTreeMap<String, Tensor>;

    /// Continues from what [`Optimizer::state`] gave for the same parameters.
    ///
    /// # Errors
    /// [`Error::Format`] when something is missing or does not fit; nothing has changed then.
    #[track_caller]
    fn load_state(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()>;

    /// The gradients of a loss for the trainable parameters; `None` where it does not depend on
    /// one, or the parameter is not trainable.
    ///
    /// # Errors
    /// When the loss is not one number, or has no history.
    #[track_caller]
    fn gradients(&self, loss: &Tensor) -> Result<Vec<Option<Tensor>>> {
        if loss.numel() != 1 {
            let reason = "the loss must be one number; take its mean or sum".to_owned();
            let (operands, location) = ([loss].into_iter().collect(), Location::caller());
            return Err(Error::Shape { op: "step", reason, operands, location });
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

/// What a step makes of parameters and state; see [`Optimizer::propose`].
#[derive(Debug, Default)]
pub struct Proposal {
    /// Number of parameters it is for.
    pub(crate) n: usize,
    pub(crate) changes: Vec<Change>,
    /// Values that do not change, but must be computed with each step.
    pub(crate) pending: Vec<Tensor>,
    /// Of the optimizers this one consists of.
    pub(crate) parts: Vec<Proposal>,
}

/// One parameter's new value and state.
#[derive(Debug)]
pub(crate) struct Change {
    place: usize,
    /// As it is stored.
    value: Tensor,
    /// As it was computed, not rounded yet.
    wide: Tensor,
    slot: Slot,
    /// The state it replaces, while the optimizer does not hold it, and how much was taken out.
    replaced: Vec<Tensor>,
    taken: usize,
}

impl Proposal {
    /// All that must be computed before [`Optimizer::accept`].
    ///
    /// ```
    /// use zyx::optim::{Optimizer, Sgd, SgdOptions};
    /// use zyx::{Param, Tensor};
    /// let device = zyx::device()?;
    /// let x = Param::new(Tensor::new([1f32, 2.0], &device)?);
    /// let mut sgd = Sgd::new(vec![x.clone()], SgdOptions { learning_rate: 0.5, ..Default::default() })?;
    /// let proposal = sgd.propose(&[Some(Tensor::new([1f32, 1.0], &device)?)])?;
    /// Tensor::realize_all(proposal.tensors())?;
    /// sgd.accept(proposal)?;
    /// assert_eq!(x.tensor().to_vec::<f32>()?, [0.5, 1.5]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn tensors(&self) -> Vec<&Tensor> {
        let mut all: Vec<&Tensor> = self.pending.iter().collect();
        for change in &self.changes {
            all.push(&change.value);
            all.extend(&change.slot.state);
        }
        all.extend(self.parts.iter().flat_map(Proposal::tensors));
        all
    }

    /// Takes out the state that was exchanged for the proposed one.
    fn take_replaced(&mut self) -> Vec<Tensor> {
        let mut all = Vec::new();
        for change in &mut self.changes {
            change.taken = change.replaced.len();
            all.append(&mut change.replaced);
        }
        self.parts.iter_mut().for_each(|part| all.append(&mut part.take_replaced()));
        all
    }

    /// Puts back what was taken out.
    fn put_replaced(&mut self, all: &mut std::vec::IntoIter<Tensor>) {
        for change in &mut self.changes {
            change.replaced.extend(all.by_ref().take(change.taken));
        }
        self.parts.iter_mut().for_each(|part| part.put_replaced(all));
    }

    /// Which parameters change, and to what before rounding to the parameter's dtype; `from` is
    /// the place of the first parameter.
    fn values(&self, from: usize) -> Vec<(usize, Tensor)> {
        let own = self.changes.iter().map(|change| (from + change.place, change.wide.clone()));
        let mut values: Vec<(usize, Tensor)> = own.collect();
        let mut from = from;
        for part in &self.parts {
            values.extend(part.values(from));
            from += part.n;
        }
        values
    }

    /// A proposal for copies of these parameters, with what the parameters themselves become.
    pub(crate) fn around(inner: Proposal, parameters: &[Param]) -> Result<Proposal> {
        let changes = inner.values(0).into_iter().map(|(place, wide)| Change {
            place,
            value: wide.cast(parameters[place].dtype()),
            wide,
            slot: Slot { steps: 0, state: vec![] },
            replaced: vec![],
            taken: 0,
        });
        let changes = changes.collect();
        let unchanged = parameters.iter().filter(|parameter| !parameter.is_trainable());
        let pending = unchanged.map(Param::tensor).collect();
        Ok(Proposal { n: parameters.len(), changes, pending, parts: vec![inner] })
    }

    /// Undoes [`Proposal::around`]: the inner proposal, and the values of `n` parameters.
    #[track_caller]
    pub(crate) fn inside(mut self, n: usize) -> Result<(Proposal, Vec<(usize, Tensor)>)> {
        match self.parts.pop() {
            Some(inner) if self.parts.is_empty() && self.n == n => {
                let values = self.changes.into_iter().map(|change| (change.place, change.value));
                Ok((inner, values.collect()))
            }
            _ => Err(refuse("accept", "the proposal is another optimizer's".to_owned())),
        }
    }
}

/// Which tensors an optimizer remembers for each parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    pub(crate) name: &'static str,
    /// What its elements are at first.
    pub(crate) start: f64,
    /// One number instead of one for each element of the parameter.
    pub(crate) scalar: bool,
}

impl State {
    pub(crate) const fn zeros(name: &'static str) -> State {
        State { name, start: 0.0, scalar: false }
    }
}

/// Parameters and the state of each.
#[derive(Debug)]
pub(crate) struct Slots {
    pub(crate) parameters: Vec<Param>,
    states: Vec<State>,
    slots: Vec<Slot>,
}

/// The state of one parameter.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    /// Times the parameter was changed.
    pub(crate) steps: u64,
    pub(crate) state: Vec<Tensor>,
}

/// What an update makes of one parameter.
pub(crate) struct Update {
    /// The new value, in the dtype of the state.
    pub(crate) value: Tensor,
    pub(crate) state: Vec<Tensor>,
}

/// Each parameter once, whatever the number of times it is given.
pub(crate) fn distinct(parameters: Vec<Param>) -> Vec<Param> {
    let mut distinct: Vec<Param> = Vec::with_capacity(parameters.len());
    for parameter in parameters {
        if !distinct.iter().any(|known| known.is_same(&parameter)) {
            distinct.push(parameter);
        }
    }
    distinct
}

impl Slots {
    /// State as it starts for each parameter; one that is given twice counts once.
    #[track_caller]
    pub(crate) fn new(parameters: Vec<Param>, states: Vec<State>) -> Result<Slots> {
        let parameters = distinct(parameters);
        let slot = |parameter: &Param| -> Result<Slot> {
            let value = parameter.tensor();
            let start = |state: &State| {
                let shape = if state.scalar { Shape::from(()) } else { value.shape().clone() };
                let dtype = value.dtype().accumulator();
                let zeros = Tensor::zeros(shape, dtype, value.device());
                if state.start == 0.0 { Ok(zeros) } else { zeros.add(state.start) }
            };
            let state = states.iter().map(start).collect::<Result<Vec<Tensor>>>()?;
            Ok(Slot { steps: 0, state })
        };
        let slots = parameters.iter().map(slot).collect::<Result<Vec<Slot>>>()?;
        // Stored now, so that the first step is like all others.
        Tensor::realize_all(slots.iter().flat_map(|slot| &slot.state))?;
        Ok(Slots { parameters, states, slots })
    }

    /// Number of tensors that are remembered for each parameter.
    pub(crate) fn n_states(&self) -> usize {
        self.states.len()
    }

    /// The update of each parameter that has a gradient by `update`, which gets the parameter's
    /// value, its gradient and its state with the step already counted.
    #[track_caller]
    pub(crate) fn propose(
        &self,
        gradients: &[Option<Tensor>],
        update: impl Fn(&Tensor, &Tensor, &Slot) -> Result<Update>,
    ) -> Result<Proposal> {
        let n = self.parameters.len();
        if gradients.len() != n {
            let reason = format!("{} gradients for {n} parameters", gradients.len());
            return Err(refuse("apply", reason));
        }
        let mut proposal = Proposal { n, ..Proposal::default() };
        for (i, gradient) in gradients.iter().enumerate() {
            let (parameter, value) = (&self.parameters[i], self.parameters[i].tensor());
            let Some(gradient) = gradient.as_ref().filter(|_| parameter.is_trainable()) else {
                proposal.pending.push(value);
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
            let updated = attribute(Location::caller(), || update(&old, &gradient, &slot));
            let Update { value: new, state } = updated?;
            let slot = Slot { state, ..slot };
            let stored = new.cast(value.dtype());
            let (replaced, taken) = (Vec::new(), 0);
            let change = Change { place: i, value: stored, wide: new, slot, replaced, taken };
            proposal.changes.push(change);
        }
        Ok(proposal)
    }

    /// See [`Optimizer::exchange`].
    pub(crate) fn exchange(&mut self, proposal: &mut Proposal) {
        for change in &mut proposal.changes {
            if let Some(slot) = self.slots.get_mut(change.place) {
                std::mem::swap(&mut slot.state, &mut change.replaced);
            }
        }
    }

    #[track_caller]
    pub(crate) fn accept(&mut self, proposal: Proposal) -> Result<()> {
        let n = self.parameters.len();
        if !proposal.parts.is_empty() || proposal.n != n {
            return Err(refuse("accept", "the proposal is another optimizer's".to_owned()));
        }
        for Change { place, value, slot, .. } in proposal.changes {
            self.parameters[place].set(&value)?;
            self.slots[place] = slot;
        }
        Ok(())
    }

    pub(crate) fn state(&self) -> BTreeMap<String, Tensor> {
        let mut all = BTreeMap::new();
        for (i, (parameter, slot)) in self.parameters.iter().zip(&self.slots).enumerate() {
            for (state, tensor) in self.states.iter().zip(&slot.state) {
                all.insert(format!("{i}.{}", state.name), tensor.clone());
            }
            let steps = Tensor::full((), slot.steps as i64, &parameter.device());
            all.insert(format!("{i}.step"), steps);
        }
        all
    }

    #[track_caller]
    pub(crate) fn load_state(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        let fail = |reason: String| Error::Format { what: "optimizer state".into(), reason };
        let expected = self.parameters.len() * (self.states.len() + 1);
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
            for (State { name, .. }, tensor) in self.states.iter().zip(&mut loaded.state) {
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

/// The optimizers that are options and a formula: a struct with `new` and `options`, and its
/// [`Optimizer`]. A row names the options type, how they list their state, and the formula, each a
/// method of the options, and last the option that is its momentum, if it has one:
///
/// ```text
/// /// What it does.
/// Lion LionOptions states update (betas[0]);
/// ```
macro_rules! optimizers {
    (@place $options:expr,) => {
        None
    };
    (@place $options:expr, $($place:tt)+) => {
        Some($options.$($place)+)
    };
    (@set $options:expr, $value:expr,) => {
        let _ = ($value, &mut $options);
    };
    (@set $options:expr, $value:expr, $($place:tt)+) => {
        $options.$($place)+ = $value;
    };
    ($($(#[$doc:meta])* $name:ident $options:ident $states:ident $update:ident ($($momentum:tt)*);)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name {
            slots: $crate::optimizer::Slots,
            options: $options,
        }

        impl $name {
            /// For these parameters.
            ///
            /// # Errors
            /// When an option is out of range, or the device fails.
            #[track_caller]
            pub fn new(
                parameters: Vec<zyx_core::Param>,
                options: $options,
            ) -> zyx_core::Result<$name> {
                options.check(concat!(stringify!($name), "::new"))?;
                let slots = $crate::optimizer::Slots::new(parameters, options.$states())?;
                Ok($name { slots, options })
            }

            /// The numbers it works with.
            ///
            /// ```
            /// # use zyx::Tensor;
            /// # let device = zyx::runtime().device("reference")?;
            /// use zyx::optim::{AdamOptions, AdamW, Optimizer};
            /// use zyx::Param;
            /// let x = Param::new(Tensor::new([1f32], &device)?);
            /// let optimizer = AdamW::new(vec![x], AdamOptions { learning_rate: 0.1, ..Default::default() })?;
            /// assert_eq!(optimizer.options().learning_rate, 0.1);
            /// # Ok::<(), zyx::Error>(())
            /// ```
            pub fn options(&self) -> $options {
                self.options
            }
        }

        impl $crate::Optimizer for $name {
            fn parameters(&self) -> &[zyx_core::Param] {
                &self.slots.parameters
            }

            fn learning_rate(&self) -> f64 {
                self.options.learning_rate
            }

            fn set_learning_rate(&mut self, learning_rate: f64) {
                self.options.learning_rate = learning_rate;
            }

            fn momentum(&self) -> Option<f64> {
                $crate::optimizer::optimizers!(@place self.options, $($momentum)*)
            }

            #[track_caller]
            fn set_momentum(&mut self, momentum: f64) -> zyx_core::Result<()> {
                let refuse = |reason: &str| {
                    Err($crate::optimizer::refuse("set_momentum", reason.to_owned()))
                };
                if self.momentum().is_none() {
                    return refuse("the optimizer has none");
                }
                let mut options = self.options;
                $crate::optimizer::optimizers!(@set options, momentum, $($momentum)*);
                // The rate may be any number.
                $options { learning_rate: 0.0, ..options }.check("set_momentum")?;
                if options.$states().len() != self.slots.n_states() {
                    return refuse("state of a momentum is kept if it is not 0 when the optimizer is made");
                }
                self.options = options;
                Ok(())
            }

            #[track_caller]
            fn propose(
                &self,
                gradients: &[Option<zyx_core::Tensor>],
            ) -> zyx_core::Result<$crate::Proposal> {
                let update = |value: &_, gradient: &_, slot: &_| {
                    self.options.$update(value, gradient, slot)
                };
                self.slots.propose(gradients, update)
            }

            fn exchange(&mut self, proposal: &mut $crate::Proposal) {
                self.slots.exchange(proposal);
            }

            #[track_caller]
            fn accept(&mut self, proposal: $crate::Proposal) -> zyx_core::Result<()> {
                self.slots.accept(proposal)
            }

            fn state(&self) -> std::collections::BTreeMap<String, zyx_core::Tensor> {
                self.slots.state()
            }

            fn load_state(
                &mut self,
                state: &std::collections::BTreeMap<String, zyx_core::Tensor>,
            ) -> zyx_core::Result<()> {
                self.slots.load_state(state)
            }
        }
    )*};
}
pub(crate) use optimizers;

/// The gradient with `decay` times the value added: what most optimizers call weight decay.
pub(crate) fn with_decay(value: &Tensor, gradient: &Tensor, decay: f64) -> Result<Tensor> {
    match decay == 0.0 {
        true => Ok(gradient.clone()),
        false => gradient.add(value.mul(decay)?),
    }
}

/// The value shrunk by `rate * decay`: weight decay apart from the gradient.
pub(crate) fn shrunk(value: &Tensor, rate: f64, decay: f64) -> Result<Tensor> {
    match decay == 0.0 {
        true => Ok(value.clone()),
        false => value.mul(1.0 - rate * decay),
    }
}

/// `kept old + (1 - kept) new`.
pub(crate) fn mean_towards(old: &Tensor, new: &Tensor, kept: f64) -> Result<Tensor> {
    old.mul(kept)?.add(new.mul(1.0 - kept)?)
}

impl<O: Optimizer + ?Sized> Optimizer for Box<O> {
    fn parameters(&self) -> &[Param] {
        (**self).parameters()
    }

    fn learning_rate(&self) -> f64 {
        (**self).learning_rate()
    }

    fn set_learning_rate(&mut self, learning_rate: f64) {
        (**self).set_learning_rate(learning_rate);
    }

    fn momentum(&self) -> Option<f64> {
        (**self).momentum()
    }

    #[track_caller]
    fn set_momentum(&mut self, momentum: f64) -> Result<()> {
        (**self).set_momentum(momentum)
    }

    #[track_caller]
    fn propose(&self, gradients: &[Option<Tensor>]) -> Result<Proposal> {
        (**self).propose(gradients)
    }

    fn exchange(&mut self, proposal: &mut Proposal) {
        (**self).exchange(proposal);
    }

    #[track_caller]
    fn accept(&mut self, proposal: Proposal) -> Result<()> {
        (**self).accept(proposal)
    }

    fn state(&self) -> BTreeMap<String, Tensor> {
        (**self).state()
    }

    fn load_state(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        (**self).load_state(state)
    }
}
