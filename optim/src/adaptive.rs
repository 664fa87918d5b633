//! Optimizers that divide by a running measure of each gradient: [`RmsProp`], [`Adagrad`],
//! [`Adadelta`] and [`Rprop`].
//!
//! Formulas and defaults are PyTorch's; the papers are named at each.

use crate::optimizer::{Slot, State, Update, check_option, mean_towards, optimizers, with_decay};
use zyx_core::{Result, Tensor};

/// The numbers of [`RmsProp`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmsPropOptions {
    /// The factor of each step; 0.01.
    pub learning_rate: f64,
    /// How slowly the mean squared gradient moves; 0.99.
    pub alpha: f64,
    /// Added to the root of the mean squared gradient; 1e-8.
    pub eps: f64,
    /// This times the parameter is added to the gradient; 0.
    pub weight_decay: f64,
    /// How much of the last step is kept; 0.
    pub momentum: f64,
    /// Divide by the standard deviation of the gradient instead; false.
    pub centered: bool,
}

impl Default for RmsPropOptions {
    fn default() -> RmsPropOptions {
        RmsPropOptions {
            learning_rate: 1e-2,
            alpha: 0.99,
            eps: 1e-8,
            weight_decay: 0.0,
            momentum: 0.0,
            centered: false,
        }
    }
}

impl RmsPropOptions {
    #[track_caller]
    fn check(&self, op: &'static str) -> Result<()> {
        check_option(op, "learning_rate", self.learning_rate, 0.0, f64::INFINITY)?;
        check_option(op, "alpha", self.alpha, 0.0, 1.0)?;
        check_option(op, "eps", self.eps, 0.0, f64::INFINITY)?;
        check_option(op, "weight_decay", self.weight_decay, 0.0, f64::INFINITY)?;
        check_option(op, "momentum", self.momentum, 0.0, f64::INFINITY)
    }

    fn states(&self) -> Vec<State> {
        let mut states = vec![State::zeros("square_avg")];
        if self.centered {
            states.push(State::zeros("grad_avg"));
        }
        if self.momentum != 0.0 {
            states.push(State::zeros("momentum_buffer"));
        }
        states
    }

    fn update(&self, value: &Tensor, gradient: &Tensor, slot: &Slot) -> Result<Update> {
        let gradient = with_decay(value, gradient, self.weight_decay)?;
        let squares = mean_towards(&slot.state[0], &gradient.square(), self.alpha)?;
        let mut state = vec![squares.clone()];
        let mut spread = squares;
        if self.centered {
            let mean = mean_towards(&slot.state[1], &gradient, self.alpha)?;
            spread = spread.sub(mean.square())?;
            state.push(mean);
        }
        let mut direction = gradient.div(spread.sqrt().add(self.eps)?)?;
        if self.momentum != 0.0 {
            direction = slot.state[state.len()].mul(self.momentum)?.add(&direction)?;
            state.push(direction.clone());
        }
        Ok(Update { value: value.sub(direction.mul(self.learning_rate)?)?, state })
    }
}

/// The numbers of [`Adagrad`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdagradOptions {
    /// The factor of each step; 0.01.
    pub learning_rate: f64,
    /// The factor falls as `1 / (1 + t rate_decay)`; 0.
    pub rate_decay: f64,
    /// What the sum of squared gradients starts with; 0.
    pub initial: f64,
    /// Added to the root of the sum; 1e-10.
    pub eps: f64,
    /// This times the parameter is added to the gradient; 0.
    pub weight_decay: f64,
}

impl Default for AdagradOptions {
    fn default() -> AdagradOptions {
        AdagradOptions {
            learning_rate: 1e-2,
            rate_decay: 0.0,
            initial: 0.0,
            eps: 1e-10,
            weight_decay: 0.0,
        }
    }
}

impl AdagradOptions {
    #[track_caller]
    fn check(&self, op: &'static str) -> Result<()> {
        check_option(op, "learning_rate", self.learning_rate, 0.0, f64::INFINITY)?;
        check_option(op, "rate_decay", self.rate_decay, 0.0, f64::INFINITY)?;
        check_option(op, "initial", self.initial, 0.0, f64::INFINITY)?;
        check_option(op, "eps", self.eps, 0.0, f64::INFINITY)?;
        check_option(op, "weight_decay", self.weight_decay, 0.0, f64::INFINITY)
    }

    fn states(&self) -> Vec<State> {
        vec![State { start: self.initial, ..State::zeros("sum") }]
    }

    fn update(&self, value: &Tensor, gradient: &Tensor, slot: &Slot) -> Result<Update> {
        let gradient = with_decay(value, gradient, self.weight_decay)?;
        let sum = slot.state[0].add(gradient.square())?;
        let rate = self.learning_rate / (1.0 + (slot.steps - 1) as f64 * self.rate_decay);
        let step = gradient.div(sum.sqrt().add(self.eps)?)?.mul(rate)?;
        Ok(Update { value: value.sub(step)?, state: vec![sum] })
    }
}

/// The numbers of [`Adadelta`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdadeltaOptions {
    /// The factor of each step; 1.
    pub learning_rate: f64,
    /// How slowly both means move; 0.9.
    pub rho: f64,
    /// Added under both roots; 1e-6.
    pub eps: f64,
    /// This times the parameter is added to the gradient; 0.
    pub weight_decay: f64,
}

impl Default for AdadeltaOptions {
    fn default() -> AdadeltaOptions {
        AdadeltaOptions { learning_rate: 1.0, rho: 0.9, eps: 1e-6, weight_decay: 0.0 }
    }
}

impl AdadeltaOptions {
    #[track_caller]
    fn check(&self, op: &'static str) -> Result<()> {
        check_option(op, "learning_rate", self.learning_rate, 0.0, f64::INFINITY)?;
        check_option(op, "rho", self.rho, 0.0, 1.0)?;
        check_option(op, "eps", self.eps, 0.0, f64::INFINITY)?;
        check_option(op, "weight_decay", self.weight_decay, 0.0, f64::INFINITY)
    }

    fn states(&self) -> Vec<State> {
        vec![State::zeros("square_avg"), State::zeros("acc_delta")]
    }

    fn update(&self, value: &Tensor, gradient: &Tensor, slot: &Slot) -> Result<Update> {
        let gradient = with_decay(value, gradient, self.weight_decay)?;
        let squares = mean_towards(&slot.state[0], &gradient.square(), self.rho)?;
        let ratio = slot.state[1].add(self.eps)?.sqrt().div(squares.add(self.eps)?.sqrt())?;
        let step = gradient.mul(ratio)?;
        let steps = mean_towards(&slot.state[1], &step.square(), self.rho)?;
        Ok(Update { value: value.sub(step.mul(self.learning_rate)?)?, state: vec![squares, steps] })
    }
}

/// The numbers of [`Rprop`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RpropOptions {
    /// What the size of each element's step starts with; 0.01.
    pub learning_rate: f64,
    /// The factor of a step's size where the gradient changed its sign, and where it did not;
    /// 0.5 and 1.2.
    pub etas: [f64; 2],
    /// The smallest and the largest size of a step; 1e-6 and 50.
    pub sizes: [f64; 2],
}

impl Default for RpropOptions {
    fn default() -> RpropOptions {
        RpropOptions { learning_rate: 1e-2, etas: [0.5, 1.2], sizes: [1e-6, 50.0] }
    }
}

impl RpropOptions {
    #[track_caller]
    fn check(&self, op: &'static str) -> Result<()> {
        check_option(op, "learning_rate", self.learning_rate, 0.0, f64::INFINITY)?;
        check_option(op, "the first eta", self.etas[0], 0.0, 1.0)?;
        check_option(op, "the second eta", self.etas[1], 1.0, f64::INFINITY)?;
        check_option(op, "the smallest size", self.sizes[0], 0.0, f64::INFINITY)?;
        check_option(op, "the largest size", self.sizes[1], self.sizes[0], f64::INFINITY)
    }

    fn states(&self) -> Vec<State> {
        let size = State { start: self.learning_rate, ..State::zeros("step_size") };
        vec![State::zeros("prev"), size]
    }

    fn update(&self, value: &Tensor, gradient: &Tensor, slot: &Slot) -> Result<Update> {
        let (last, size) = (&slot.state[0], &slot.state[1]);
        let agreement = gradient.mul(last)?;
        let [shrink, grow] = self.etas;
        let factor = agreement.gt(0.0)?.where_(
            agreement.ones_like().mul(grow)?,
            agreement.lt(0.0)?.where_(agreement.ones_like().mul(shrink)?, agreement.ones_like())?,
        )?;
        let size = size.mul(factor)?.clamp(self.sizes[0], self.sizes[1])?;
        // Where the sign changed the last step was too long: wait one step.
        let gradient = agreement.lt(0.0)?.where_(gradient.zeros_like(), gradient)?;
        let value = value.sub(gradient.sign().mul(&size)?)?;
        Ok(Update { value, state: vec![gradient, size] })
    }
}

optimizers! {
    /// Divides by the root of a running mean of squared gradients (Hinton, lecture 6e of
    /// "Neural Networks for Machine Learning", 2012).
    RmsProp RmsPropOptions states update (momentum);
    /// Divides by the root of the sum of all squared gradients (Duchi et al. 2011).
    Adagrad AdagradOptions states update ();
    /// Multiplies by the ratio of root mean squares of earlier steps and of gradients, so that the
    /// units of steps are those of parameters (Zeiler 2012).
    Adadelta AdadeltaOptions states update ();
    /// Steps by the sign of the gradient alone, of a size that grows while the sign stays
    /// (Riedmiller and Braun 1993). For full batches.
    Rprop RpropOptions states update ();
}
