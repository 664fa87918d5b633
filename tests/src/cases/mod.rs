//! What every device has to compute: plain functions of a device, most of them and a dtype.
//!
//! A case walks the op tables where it can, so that a new row is tested without a new case. It
//! reports every wrong result through [`Check`](crate::Check) and panics once, at its end.
//! [`conformance!`](crate::conformance) turns each into a test.

pub mod arrange;
pub mod attention;
pub mod checked;
pub mod convert;
pub mod create;
pub mod elementwise;
pub mod factors;
pub mod fourier;
pub mod functional;
pub mod gradient;
pub mod gradient_ops;
pub mod index;
pub mod indices;
pub mod kernels;
pub mod large;
pub mod layer;
pub mod maths;
pub mod matmul;
pub mod matrix;
pub mod movement;
pub mod narrow;
pub mod order;
pub mod random;
pub mod reduce;
pub mod special;
pub mod statistics;
pub mod window;
