//! The core of zyx: tensors, graph, autodiff, scheduler, kernel IR, passes and runtime.
//!
//! Modules in reading order; each may use only those above it (tests enforce the exact table):
//! vocabulary ([`dtype`], [`scalar`], [`ops`], [`shape`]), kernels ([`ir`]), devices ([`hal`]).
#![forbid(unsafe_code)]

pub mod dtype;
pub mod error;
pub mod hal;
pub mod ir;
pub mod ops;
pub mod scalar;
pub mod shape;
mod special;

pub use dtype::{Class, DType, DTypeSet, Element};
pub use error::{Error, Result};
pub use ops::{BinaryOp, TernaryOp, UnaryOp};
pub use scalar::Scalar;
pub use shape::Shape;
