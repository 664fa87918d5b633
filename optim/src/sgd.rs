//! Stochastic gradient descent, with momentum.

use crate::optimizer::{Slot, State, Update, check_option, optimizers, refuse, with_decay};
use zyx_core::{Result, Tensor};

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

impl SgdOptions {
    #[track_caller]
    fn check(&self, op: &'static str) -> Result<()> {
        check_option(op, "learning_rate", self.learning_rate, 0.0, f64::INFINITY)?;
        check_option(op, "momentum", self.momentum, 0.0, f64::INFINITY)?;
        check_option(op, "dampening", self.dampening, 0.0, f64::INFINITY)?;
        check_option(op, "weight_decay", self.weight_decay, 0.0, f64::INFINITY)?;
        if self.nesterov && (self.momentum == 0.0 || self.dampening != 0.0) {
            return Err(refuse(op, "nesterov needs a momentum and no dampening".to_owned()));
        }
        Ok(())
    }

    /// Without momentum there is no state to keep.
    fn states(&self) -> Vec<State> {
        if self.momentum == 0.0 { vec![] } else { vec![State::zeros("momentum")] }
    }

    fn update(&self, value: &Tensor, gradient: &Tensor, slot: &Slot) -> Result<Update> {
        let gradient = with_decay(value, gradient, self.weight_decay)?;
        let Some(old) = slot.state.first() else {
            let value = value.sub(gradient.mul(self.learning_rate)?)?;
            return Ok(Update { value, state: vec![] });
        };
        // A number in any case, so that the first step has the plan of all others.
        let share = if slot.steps == 1 { 1.0 } else { 1.0 - self.dampening };
        let kept = old.mul(self.momentum)?;
        let momentum = match self.dampening == 0.0 {
            true => kept.add(&gradient)?,
            false => kept.add(gradient.mul(share)?)?,
        };
        let direction = match self.nesterov {
            true => gradient.add(momentum.mul(self.momentum)?)?,
            false => momentum.clone(),
        };
        let value = value.sub(direction.mul(self.learning_rate)?)?;
        Ok(Update { value, state: vec![momentum] })
    }
}

optimizers! {
    /// Gradient descent: `v = momentum v + (1 - dampening) g`, `p -= learning_rate v`.
    Sgd SgdOptions states update (momentum);
}
