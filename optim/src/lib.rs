//! Optimizers: how parameters follow their gradients.
//!
//! An optimizer holds [`Param`]s, shared with the model, and a few tensors of state for each. One
//! [`Optimizer::step`] builds gradients, new values and new state as pending tensors and computes
//! them together with the loss as one plan. Learning rates and the other numbers are arguments of
//! that plan, so schedules compile nothing. Parameters and state are replaced only when
//! everything was computed: a step that fails changes nothing.
//!
//! Updates are computed in `f32` (`f64` for `f64` parameters), state is stored so, and halves are
//! rounded once at the end. Formulas and defaults are PyTorch's where it has the optimizer, but
//! for the weight decay of [`AdamW`]: PyTorch's 0.01 has to be asked for.
//!
//! Around the optimizers: [`Groups`] joins several, [`MasterWeights`] and [`LossScaler`] are mixed
//! precision, [`clip_norm`] and [`clip_value`] limit gradients, [`Accumulator`] sums them over
//! batches, [`Ema`] averages parameters, [`Lbfgs`] evaluates a loss several times a step, [`schedule`] has learning rates over time.
//!
//! The crate uses the public interface of `zyx-core` alone and knows no layers.
#![forbid(unsafe_code)]

mod adam;
mod adaptive;
mod average;
mod clip;
mod groups;
mod lbfgs;
mod mixed;
mod moments;
mod muon;
mod optimizer;
pub mod schedule;
mod sgd;

pub use adam::{Adam, AdamOptions, AdamW};
pub use adaptive::{
    Adadelta, AdadeltaOptions, Adagrad, AdagradOptions, RmsProp, RmsPropOptions, Rprop,
    RpropOptions,
};
pub use average::{Accumulator, Ema};
pub use clip::{clip_norm, clip_to_norm, clip_value, total_norm};
pub use groups::Groups;
pub use lbfgs::{Lbfgs, LbfgsOptions};
pub use mixed::{LossScaler, MasterWeights};
pub use moments::{
    Adamax, AdamaxOptions, Lamb, LambOptions, Lion, LionOptions, NAdam, NAdamOptions, RAdam,
    RAdamOptions,
};
pub use muon::{Muon, MuonOptions};
pub use optimizer::{Optimizer, Proposal};
pub use sgd::{Sgd, SgdOptions};
pub use zyx_core::Param;
