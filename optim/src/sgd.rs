//! Stochastic gradient descent, with momentum.

use crate::optimizer::{Optimizer, Slots, Update, check_option, refuse};
use std::collections::BTreeMap;
use zyx_core::{Param, Result, Tensor};

/// The numbers of [`Sgd`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SgdOptions {
    /// The factor of each step; 1e-3.
    pub learning_rate: f64,
    /// How much of the last step is kept; 0.
    pub momentum: f64,
    /// How much less of the gradient enters the momentum; 0. The first step ignores it.
    pub dampening: f64,
    /// This times the parameter is added to the gradient; 0.
    pub weight_decay: f64,
    /// Look ahead along the momentum (Nesterov 1983); false.
    pub nesterov: bool,
}

impl Default for SgdOptions {
    fn default() -> SgdOptions {
        SgdOptions {
            learning_rate: 1e-3,
            momentum: 0.0,
            dampening: 0.0,
            weight_decay: 0.0,
            nesterov: false,
        }
    }
}

/// Gradient descent: `v = momentum v + (1 - dampening) g`, `p -= learning_rate v`.
#[derive(Debug)]
pub struct Sgd {
    kind: Kind,
    options: SgdOptions,
}

/// Without momentum there is no state to keep.
#[derive(Debug)]
enum Kind {
    Plain(Slots<0>),
    Momentum(Slots<1>),
}

impl Sgd {
    /// For these parameters.
    ///
    /// # Errors
    /// When an option is out of range, `nesterov` has no momentum or has dampening, or the device
    /// fails.
    #[track_caller]
    pub fn new(parameters: Vec<Param>, options: SgdOptions) -> Result<Sgd> {
        const OP: &str = "Sgd::new";
        check_option(OP, "learning_rate", options.learning_rate, 0.0, f64::INFINITY)?;
        check_option(OP, "momentum", options.momentum, 0.0, f64::INFINITY)?;
        check_option(OP, "dampening", options.dampening, 0.0, f64::INFINITY)?;
        check_option(OP, "weight_decay", options.weight_decay, 0.0, f64::INFINITY)?;
        if options.nesterov && (options.momentum == 0.0 || options.dampening != 0.0) {
            let reason = "nesterov needs a momentum and no dampening".to_owned();
            return Err(refuse(OP, reason));
        }
        let kind = match options.momentum == 0.0 {
            true => Kind::Plain(Slots::new(parameters, [])?),
            false => Kind::Momentum(Slots::new(parameters, ["momentum"])?),
        };
        Ok(Sgd { kind, options })
    }

    /// The numbers it works with.
    pub fn options(&self) -> SgdOptions {
        self.options
    }
}

impl SgdOptions {
    fn decayed(&self, gradient: &Tensor, value: &Tensor) -> Result<Tensor> {
        match self.weight_decay == 0.0 {
            true => Ok(gradient.clone()),
            false => gradient.add(value.mul(self.weight_decay)?),
        }
    }
}

impl Optimizer for Sgd {
    fn parameters(&self) -> &[Param] {
        match &self.kind {
            Kind::Plain(slots) => &slots.parameters,
            Kind::Momentum(slots) => &slots.parameters,
        }
    }

    fn learning_rate(&self) -> f64 {
        self.options.learning_rate
    }

    fn set_learning_rate(&mut self, learning_rate: f64) {
        self.options.learning_rate = learning_rate;
    }

    #[track_caller]
    fn apply(&mut self, gradients: &[Option<Tensor>], along: &[&Tensor]) -> Result<()> {
        let options = self.options;
        match &mut self.kind {
            Kind::Plain(slots) => slots.apply(gradients, along, |value, gradient, _| {
                let gradient = options.decayed(gradient, value)?;
                let value = value.sub(gradient.mul(options.learning_rate)?)?;
                Ok(Update { value, state: [] })
            }),
            Kind::Momentum(slots) => slots.apply(gradients, along, |value, gradient, slot| {
                let gradient = options.decayed(gradient, value)?;
                // A number in any case, so that the first step has the plan of all others.
                let share = if slot.steps == 1 { 1.0 } else { 1.0 - options.dampening };
                let kept = slot.state[0].mul(options.momentum)?;
                let momentum = match options.dampening == 0.0 {
                    true => kept.add(&gradient)?,
                    false => kept.add(gradient.mul(share)?)?,
                };
                let direction = match options.nesterov {
                    true => gradient.add(momentum.mul(options.momentum)?)?,
                    false => momentum.clone(),
                };
                let value = value.sub(direction.mul(options.learning_rate)?)?;
                Ok(Update { value, state: [momentum] })
            }),
        }
    }

    fn state(&self) -> BTreeMap<String, Tensor> {
        match &self.kind {
            Kind::Plain(slots) => slots.state(),
            Kind::Momentum(slots) => slots.state(),
        }
    }

    fn load_state(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        match &mut self.kind {
            Kind::Plain(slots) => slots.load_state(state),
            Kind::Momentum(slots) => slots.load_state(state),
        }
    }
}
