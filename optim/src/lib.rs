//! Optimizers: how parameters follow their gradients.
//!
//! An optimizer holds [`Param`]s, shared with the model, and a few tensors of state for each. One
//! [`Optimizer::step`] builds gradients, new values and new state as pending tensors and computes
//! them together with the loss as one plan. Learning rates and the other numbers are arguments of
//! that plan, so schedules compile nothing. Parameters and state are replaced only when
//! everything was computed: a step that fails changes nothing.
//!
//! Updates are computed in `f32` (`f64` for `f64` parameters), state is stored so, and halves are
//! rounded once at the end. Formulas and defaults are PyTorch's.
//!
//! The crate uses the public interface of `zyx-core` alone and knows no layers.
#![forbid(unsafe_code)]

mod adam;
mod clip;
mod optimizer;
pub mod schedule;
mod sgd;

pub use adam::{Adam, AdamOptions, AdamW};
pub use clip::{clip_norm, clip_value};
pub use optimizer::Optimizer;
pub use sgd::{Sgd, SgdOptions};
pub use zyx_core::Param;
