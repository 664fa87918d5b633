//! Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019).

use crate::optimizer::{
    Slot, State, Update, check_option, mean_towards, optimizers, shrunk, with_decay,
};
use zyx_core::{Result, Tensor};

/// The numbers of [`Adam`] and [`AdamW`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamOptions {
    /// The factor of each step; 1e-3.
    pub learning_rate: f64,
    /// How slowly the means of gradient and squared gradient move; 0.9 and 0.999.
    pub betas: [f64; 2],
    /// Added to the root of the mean squared gradient; 1e-8.
    pub eps: f64,
    /// None (0) at first, for [`AdamW`], too (PyTorch's has 0.01). For [`Adam`] this times the parameter is added to the gradient; for
    /// [`AdamW`] the parameter shrinks by this times the learning rate.
    pub weight_decay: f64,
    /// Divide by the largest mean squared gradient so far (AMSGrad, Reddi et al. 2018); false.
    pub amsgrad: bool,
}

impl Default for AdamOptions {
    fn default() -> AdamOptions {
        AdamOptions {
            learning_rate: 1e-3,
            betas: [0.9, 0.999],
            eps: 1e-8,
            weight_decay: 0.0,
            amsgrad: false,
        }
    }
}

impl AdamOptions {
    #[track_caller]
    fn check(&self, op: &'static str) -> Result<()> {
        check_option(op, "learning_rate", self.learning_rate, 0.0, f64::INFINITY)?;
        check_option(op, "eps", self.eps, 0.0, f64::INFINITY)?;
        check_option(op, "weight_decay", self.weight_decay, 0.0, f64::INFINITY)?;
        check_option(op, "the first beta", self.betas[0], 0.0, 1.0)?;
        check_option(op, "the second beta", self.betas[1], 0.0, 1.0)
    }

    fn states(&self) -> Vec<State> {
        let mut states = vec![State::zeros("exp_avg"), State::zeros("exp_avg_sq")];
        if self.amsgrad {
            states.push(State::zeros("max_exp_avg_sq"));
        }
        states
    }

    fn adam(&self, value: &Tensor, gradient: &Tensor, slot: &Slot) -> Result<Update> {
        self.update(value, &with_decay(value, gradient, self.weight_decay)?, slot)
    }

    fn adamw(&self, value: &Tensor, gradient: &Tensor, slot: &Slot) -> Result<Update> {
        self.update(&shrunk(value, self.learning_rate, self.weight_decay)?, gradient, slot)
    }

    /// `m = b1 m + (1 - b1) g`, `v = b2 v + (1 - b2) g^2`,
    /// `p -= lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)`.
    fn update(&self, value: &Tensor, gradient: &Tensor, slot: &Slot) -> Result<Update> {
        let [b1, b2] = self.betas;
        let m = mean_towards(&slot.state[0], gradient, b1)?;
        let v = mean_towards(&slot.state[1], &gradient.square(), b2)?;
        let mut state = vec![m.clone(), v];
        if let Some(most) = slot.state.get(2) {
            state.push(most.maximum(&state[1])?);
        }
        let squares = &state[state.len() - 1];
        // The corrections for starting from zero are numbers of this step.
        let t = slot.steps as f64;
        let rate = self.learning_rate / (1.0 - b1.powf(t));
        let root = squares.sqrt().mul(1.0 / (1.0 - b2.powf(t)).sqrt())?.add(self.eps)?;
        let value = value.sub(m.mul(rate)?.div(&root)?)?;
        Ok(Update { value, state })
    }
}

optimizers! {
    /// Steps of the size of the learning rate, by the means of gradient and squared gradient.
    /// Weight decay is part of the gradient.
    Adam AdamOptions states adam (betas[0]);
    /// As [`Adam`], with weight decay apart from the gradient: the parameter first shrinks by
    /// `1 - learning_rate * weight_decay`.
    AdamW AdamOptions states adamw (betas[0]);
}
