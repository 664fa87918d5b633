//! What the example programs consist of: models, and tables for a terminal.
//!
//! Each program beside this crate is one command; what it does stands here, so that tests run it
//! at a small size.
#![forbid(unsafe_code)]

#[cfg(feature = "text")]
pub mod bert;
pub mod cartpole;
pub mod chargpt;
pub mod dataset;
pub mod gcn;
#[cfg(feature = "text")]
pub mod gpt2;
pub mod kernels;
pub mod program;
pub mod recurrence;
pub mod report;
#[cfg(feature = "text")]
pub mod weights;
