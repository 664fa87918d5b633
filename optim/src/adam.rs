//! Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019).

use crate::optimizer::{Optimizer, Slot, Slots, Update, check_option};
use std::collections::BTreeMap;
use zyx_core::{Param, Result, Tensor};

/// The numbers of [`Adam`] and [`AdamW`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamOptions {
    /// The factor of each step; 1e-3.
    pub learning_rate: f64,
    /// How slowly the means of gradient and squared gradient move; 0.9 and 0.999.
    pub betas: [f64; 2],
    /// Added to the root of the mean squared gradient; 1e-8.
    pub eps: f64,
    /// None (0) at first. For [`Adam`] this times the parameter is added to the gradient; for
    /// [`AdamW`] the parameter shrinks by this times the learning rate.
    pub weight_decay: f64,
}

impl Default for AdamOptions {
    fn default() -> AdamOptions {
        AdamOptions { learning_rate: 1e-3, betas: [0.9, 0.999], eps: 1e-8, weight_decay: 0.0 }
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

    /// `m = b1 m + (1 - b1) g`, `v = b2 v + (1 - b2) g^2`,
    /// `p -= lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)`.
    fn update(&self, value: &Tensor, gradient: &Tensor, slot: &Slot<2>) -> Result<Update<2>> {
        let [b1, b2] = self.betas;
        let [m, v] = &slot.state;
        let m = m.mul(b1)?.add(gradient.mul(1.0 - b1)?)?;
        let v = v.mul(b2)?.add(gradient.square().mul(1.0 - b2)?)?;
        // The corrections for starting from zero are numbers of this step.
        let t = slot.steps as f64;
        let rate = self.learning_rate / (1.0 - b1.powf(t));
        let root = v.sqrt().mul(1.0 / (1.0 - b2.powf(t)).sqrt())?.add(self.eps)?;
        let value = value.sub(m.mul(rate)?.div(&root)?)?;
        Ok(Update { value, state: [m, v] })
    }
}

const STATE: [&str; 2] = ["exp_avg", "exp_avg_sq"];

macro_rules! adams {
    ($($(#[$doc:meta])* $name:ident |$options:ident, $value:ident, $gradient:ident| $decay:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name {
            slots: Slots<2>,
            options: AdamOptions,
        }

        impl $name {
            /// For these parameters.
            ///
            /// # Errors
            /// When an option is out of range, or the device fails.
            #[track_caller]
            pub fn new(parameters: Vec<Param>, options: AdamOptions) -> Result<$name> {
                options.check(concat!(stringify!($name), "::new"))?;
                Ok($name { slots: Slots::new(parameters, STATE)?, options })
            }

            /// The numbers it works with.
            pub fn options(&self) -> AdamOptions {
                self.options
            }
        }

        impl Optimizer for $name {
            fn parameters(&self) -> &[Param] {
                &self.slots.parameters
            }

            fn learning_rate(&self) -> f64 {
                self.options.learning_rate
            }

            fn set_learning_rate(&mut self, learning_rate: f64) {
                self.options.learning_rate = learning_rate;
            }

            #[track_caller]
            fn apply(&mut self, gradients: &[Option<Tensor>], along: &[&Tensor]) -> Result<()> {
                let $options = self.options;
                self.slots.apply(gradients, along, |$value, $gradient, slot| {
                    if $options.weight_decay == 0.0 {
                        return $options.update($value, $gradient, slot);
                    }
                    let (value, gradient) = $decay;
                    $options.update(&value, &gradient, slot)
                })
            }

            fn state(&self) -> BTreeMap<String, Tensor> {
                self.slots.state()
            }

            fn load_state(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()> {
                self.slots.load_state(state)
            }
        }
    )*};
}

adams! {
    /// Steps of the size of the learning rate, by the means of gradient and squared gradient.
    /// Weight decay is part of the gradient.
    Adam |options, value, gradient| {
        (value.clone(), gradient.add(value.mul(options.weight_decay)?)?)
    };
    /// As [`Adam`], with weight decay apart from the gradient: the parameter first shrinks by
    /// `1 - learning_rate * weight_decay`.
    AdamW |options, value, gradient| {
        let kept = 1.0 - options.learning_rate * options.weight_decay;
        (value.mul(kept)?, gradient.clone())
    };
}
