//! The conformance suite: what every device has to compute, as plain functions.
//!
//! A backend's crate turns the suite into tests with one line, `zyx_tests::conformance!(Backend)`.
//! Expected values come from [`oracle`], an evaluator of its own that shares no code with the
//! graph evaluator, the kernels or the devices; it works on intervals in `f64` (integers exactly),
//! so that the error a result may have follows from the op and dtype tables ([`tolerance`]) even
//! after a chain of ops. No test states a tolerance of its own.
//!
//! [`mod@device`] and [`robust`] hold tests below and beyond that: of the two traits of a backend alone,
//! and of what a device has to survive.
//!
//! Reading order: [`tolerance`], [`oracle`], [`check`], [`cases`], [`harness`].
#![deny(unsafe_code)]

pub mod apply;
pub mod backends;
pub mod bounds;
pub mod cases;
pub mod check;
pub mod counts;
pub mod device;
pub mod generate;
pub mod gradients;
pub mod harness;
pub mod ladder;
pub mod long_sums;
pub mod oracle;
pub mod program;
pub mod promises;
pub mod rng;
pub mod robust;
pub mod slopes;
pub mod sources;
pub mod stubs;
pub mod tolerance;
pub mod values;

pub use check::Check;
pub use oracle::{Array, Val};
pub use rng::Rng;
pub use rstest;
pub use zyx_core;
// Kernels of the examples are written for users of the facade.
extern crate zyx_core as zyx;
