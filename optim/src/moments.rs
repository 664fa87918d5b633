//! Relatives of Adam: [`Adamax`], [`NAdam`], [`RAdam`], [`Lamb`] and [`Lion`].
//!
//! Formulas and defaults of the first three are PyTorch's; those of the others are their papers'.

use crate::optimizer::{
    Slot, State, Update, check_option, mean_towards, optimizers, shrunk, with_decay,
};
use zyx_core::{Result, Tensor};

/// The options that most of them share, checked.
#[track_caller]
fn check(
    op: &'static str,
    learning_rate: f64,
    betas: [f64; 2],
    eps: f64,
    weight_decay: f64,
) -> Result<()> {
    check_option(op, "learning_rate", learning_rate, 0.0, f64::INFINITY)?;
    check_option(op, "the first beta", betas[0], 0.0, 1.0)?;
    check_option(op, "the second beta", betas[1], 0.0, 1.0)?;
    check_option(op, "eps", eps, 0.0, f64::INFINITY)?;
    check_option(op, "weight_decay", weight_decay, 0.0, f64::INFINITY)
}

/// The numbers of [`Adamax`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamaxOptions {
    /// The factor of each step; 2e-3.
    pub learning_rate: f64,
    /// How slowly the mean and the largest gradient move; 0.9 and 0.999.
    pub betas: [f64; 2],
    /// Added to the size of each gradient; 1e-8.
    pub eps: f64,
    /// This times the parameter is added to the gradient; 0.
    pub weight_decay: f64,
}

impl Default for AdamaxOptions {
    fn default() -> AdamaxOptions {
        AdamaxOptions { learning_rate: 2e-3, betas: [0.9, 0.999], eps: 1e-8, weight_decay: 0.0 }
    }
}

impl AdamaxOptions {
    #[track_caller]
    fn check(&self, op: &'static str) -> Result<()> {
        check(op, self.learning_rate, self.betas, self.eps, self.weight_decay)
    }

    fn states(&self) -> Vec<State> {
        vec![State::zeros("exp_avg"), State::zeros("exp_inf")]
    }

    fn update(&self, value: &Tensor, gradient: &Tensor, slot: &Slot) -> Result<Update> {
        let [b1, b2] = self.betas;
        let gradient = with_decay(value, gradient, self.weight_decay)?;
        let m = mean_towards(&slot.state[0], &gradient, b1)?;
        let largest = slot.state[1].mul(b2)?.maximum(gradient.abs().add(self.eps)?)?;
        let rate = self.learning_rate / (1.0 - b1.powf(slot.steps as f64));
        let value = value.sub(m.mul(rate)?.div(&largest)?)?;
        Ok(Update { value, state: vec![m, largest] })
    }
}

/// The numbers of [`NAdam`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NAdamOptions {
    /// The factor of each step; 2e-3.
    pub learning_rate: f64,
    /// How slowly the means of gradient and squared gradient move; 0.9 and 0.999.
    pub betas: [f64; 2],
    /// Added to the root of the mean squared gradient; 1e-8.
    pub eps: f64,
    /// This times the parameter is added to the gradient, or with `decoupled` the parameter shrinks
    /// by this times the learning rate; 0.
    pub weight_decay: f64,
    /// How fast the momentum rises to its full value; 4e-3.
    pub momentum_decay: f64,
    /// Weight decay apart from the gradient; false.
    pub decoupled: bool,
}

impl Default for NAdamOptions {
    fn default() -> NAdamOptions {
        NAdamOptions {
            learning_rate: 2e-3,
            betas: [0.9, 0.999],
            eps: 1e-8,
            weight_decay: 0.0,
            momentum_decay: 4e-3,
            decoupled: false,
        }
    }
}

impl NAdamOptions {
    #[track_caller]
    fn check(&self, op: &'static str) -> Result<()> {
        check_option(op, "momentum_decay", self.momentum_decay, 0.0, f64::INFINITY)?;
        check(op, self.learning_rate, self.betas, self.eps, self.weight_decay)
    }

    fn states(&self) -> Vec<State> {
        let product = State { name: "mu_product", start: 1.0, scalar: true };
        vec![State::zeros("exp_avg"), State::zeros("exp_avg_sq"), product]
    }

    /// The momentum of step `t`.
    fn momentum(&self, t: u64) -> f64 {
        self.betas[0] * (1.0 - 0.5 * 0.96f64.powf(t as f64 * self.momentum_decay))
    }

    fn update(&self, value: &Tensor, gradient: &Tensor, slot: &Slot) -> Result<Update> {
        let [b1, b2] = self.betas;
        let (value, gradient) = match self.decoupled {
            true => (shrunk(value, self.learning_rate, self.weight_decay)?, gradient.clone()),
            false => (value.clone(), with_decay(value, gradient, self.weight_decay)?),
        };
        let (mu, next) = (self.momentum(slot.steps), self.momentum(slot.steps + 1));
        let m = mean_towards(&slot.state[0], &gradient, b1)?;
        let v = mean_towards(&slot.state[1], &gradient.square(), b2)?;
        let product = slot.state[2].mul(mu)?;
        let correction = 1.0 / (1.0 - b2.powf(slot.steps as f64)).sqrt();
        let root = v.sqrt().mul(correction)?.add(self.eps)?;
        let one = product.ones_like();
        let now = one.sub(&product)?.recip().mul(self.learning_rate * (1.0 - mu))?;
        let ahead = one.sub(product.mul(next)?)?.recip().mul(self.learning_rate * next)?;
        let step = gradient.mul(now)?.add(m.mul(ahead)?)?.div(&root)?;
        Ok(Update { value: value.sub(step)?, state: vec![m, v, product] })
    }
}

/// The numbers of [`RAdam`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RAdamOptions {
    /// The factor of each step; 1e-3.
    pub learning_rate: f64,
    /// How slowly the means of gradient and squared gradient move; 0.9 and 0.999.
    pub betas: [f64; 2],
    /// Added to the root of the mean squared gradient; 1e-8.
    pub eps: f64,
    /// This times the parameter is added to the gradient, or with `decoupled` the parameter shrinks
    /// by this times the learning rate; 0.
    pub weight_decay: f64,
    /// Weight decay apart from the gradient; false.
    pub decoupled: bool,
}

impl Default for RAdamOptions {
    fn default() -> RAdamOptions {
        RAdamOptions {
            learning_rate: 1e-3,
            betas: [0.9, 0.999],
            eps: 1e-8,
            weight_decay: 0.0,
            decoupled: false,
        }
    }
}

impl RAdamOptions {
    #[track_caller]
    fn check(&self, op: &'static str) -> Result<()> {
        check(op, self.learning_rate, self.betas, self.eps, self.weight_decay)
    }

    fn states(&self) -> Vec<State> {
        vec![State::zeros("exp_avg"), State::zeros("exp_avg_sq")]
    }

    /// The factor that rectifies the variance of the adaptive rate, once enough gradients were
    /// seen for it to have one.
    fn rectification(&self, t: f64) -> Option<f64> {
        let b2 = self.betas[1];
        let most = 2.0 / (1.0 - b2) - 1.0;
        let length = most - 2.0 * t * b2.powf(t) / (1.0 - b2.powf(t));
        let ratio = (length - 4.0) * (length - 2.0) * most;
        (length > 5.0).then(|| (ratio / ((most - 4.0) * (most - 2.0) * length)).sqrt())
    }

    fn update(&self, value: &Tensor, gradient: &Tensor, slot: &Slot) -> Result<Update> {
        let ([b1, b2], t) = (self.betas, slot.steps as f64);
        let (value, gradient) = match self.decoupled {
            true => (shrunk(value, self.learning_rate, self.weight_decay)?, gradient.clone()),
            false => (value.clone(), with_decay(value, gradient, self.weight_decay)?),
        };
        let m = mean_towards(&slot.state[0], &gradient, b1)?;
        let v = mean_towards(&slot.state[1], &gradient.square(), b2)?;
        let rate = self.learning_rate / (1.0 - b1.powf(t));
        let step = match self.rectification(t) {
            Some(factor) => {
                let scale = rate * factor * (1.0 - b2.powf(t)).sqrt();
                m.mul(scale)?.div(v.sqrt().add(self.eps)?)?
            }
            None => m.mul(rate)?,
        };
        Ok(Update { value: value.sub(step)?, state: vec![m, v] })
    }
}

/// The numbers of [`Lamb`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LambOptions {
    /// The factor of each step; 1e-3.
    pub learning_rate: f64,
    /// How slowly the means of gradient and squared gradient move; 0.9 and 0.999.
    pub betas: [f64; 2],
    /// Added to the root of the mean squared gradient; 1e-6.
    pub eps: f64,
    /// This times the parameter is added to the direction; 0.01.
    pub weight_decay: f64,
}

impl Default for LambOptions {
    fn default() -> LambOptions {
        LambOptions { learning_rate: 1e-3, betas: [0.9, 0.999], eps: 1e-6, weight_decay: 0.01 }
    }
}

impl LambOptions {
    #[track_caller]
    fn check(&self, op: &'static str) -> Result<()> {
        check(op, self.learning_rate, self.betas, self.eps, self.weight_decay)
    }

    fn states(&self) -> Vec<State> {
        vec![State::zeros("exp_avg"), State::zeros("exp_avg_sq")]
    }

    fn update(&self, value: &Tensor, gradient: &Tensor, slot: &Slot) -> Result<Update> {
        let ([b1, b2], t) = (self.betas, slot.steps as f64);
        let m = mean_towards(&slot.state[0], gradient, b1)?;
        let v = mean_towards(&slot.state[1], &gradient.square(), b2)?;
        let root = v.mul(1.0 / (1.0 - b2.powf(t)))?.sqrt().add(self.eps)?;
        let adaptive = m.mul(1.0 / (1.0 - b1.powf(t)))?.div(root)?;
        let direction = with_decay(value, &adaptive, self.weight_decay)?;
        let norm = |x: &Tensor| -> Result<Tensor> { Ok(x.square().sum(..)?.sqrt()) };
        let (size, length) = (norm(value)?, norm(&direction)?);
        // Without a length on both sides there is no ratio to go by.
        let both = size.gt(0.0)?.logical_and(length.gt(0.0)?)?;
        let trust = both.where_(size.div(&length)?, size.ones_like())?;
        let step = direction.mul(trust)?.mul(self.learning_rate)?;
        Ok(Update { value: value.sub(step)?, state: vec![m, v] })
    }
}

/// The numbers of [`Lion`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LionOptions {
    /// The factor of each step; 1e-4.
    pub learning_rate: f64,
    /// The share of the momentum in the direction, and how slowly it moves; 0.9 and 0.99.
    pub betas: [f64; 2],
    /// The parameter shrinks by this times the learning rate; 0.
    pub weight_decay: f64,
}

impl Default for LionOptions {
    fn default() -> LionOptions {
        LionOptions { learning_rate: 1e-4, betas: [0.9, 0.99], weight_decay: 0.0 }
    }
}

impl LionOptions {
    #[track_caller]
    fn check(&self, op: &'static str) -> Result<()> {
        check(op, self.learning_rate, self.betas, 0.0, self.weight_decay)
    }

    fn states(&self) -> Vec<State> {
        vec![State::zeros("exp_avg")]
    }

    fn update(&self, value: &Tensor, gradient: &Tensor, slot: &Slot) -> Result<Update> {
        let direction = mean_towards(&slot.state[0], gradient, self.betas[0])?.sign();
        let kept = shrunk(value, self.learning_rate, self.weight_decay)?;
        let value = kept.sub(direction.mul(self.learning_rate)?)?;
        let m = mean_towards(&slot.state[0], gradient, self.betas[1])?;
        Ok(Update { value, state: vec![m] })
    }
}

optimizers! {
    /// Adam by the largest gradient instead of the mean square (Kingma and Ba 2015, section 7).
    Adamax AdamaxOptions states update (betas[0]);
    /// Adam with Nesterov's look ahead (Dozat 2016).
    NAdam NAdamOptions states update (betas[0]);
    /// Adam whose first steps are plain momentum, until the mean of squares can be trusted (Liu et
    /// al. 2020).
    RAdam RAdamOptions states update (betas[0]);
    /// Adam whose step for each parameter is as long as the parameter is large, for large batches
    /// (You et al. 2020, algorithm 2, with the norm itself as the function of the norm).
    Lamb LambOptions states update (betas[0]);
    /// Steps by the sign of a mean of gradients; one tensor of state (Chen et al. 2023).
    Lion LionOptions states update (betas[0]);
}
