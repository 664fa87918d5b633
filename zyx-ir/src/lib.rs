//! The compiler of zyx: kernels, what they mean, how they are made fast and how they are written
//! for a device. It knows no tensors, and of a device its capabilities ([`Caps`]) only.
//!
//! Modules in reading order: vocabulary ([`dtype`], [`scalar`], [`ops`]), affine
//! functions ([`affine`]), kernels ([`ir`]), what a device can do ([`caps`]), optional passes
//! ([`passes`]) and their choice ([`tune`]), what a device lacks ([`legalize`], [`decompose`]), all of
//! it in order ([`prepare`]), and code generation ([`codegen`]).
#![forbid(unsafe_code)]

pub mod affine;
pub mod caps;
pub mod cmath;
pub mod codegen;
pub mod decompose;
pub mod dtype;
mod error;
pub mod ir;
pub mod lang;
pub mod legalize;
pub mod ops;
pub mod passes;
pub mod prepare;
pub mod scalar;
mod special;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod threads;
pub mod tune;

pub use caps::Caps;
pub use dtype::{Class, DType, DTypeSet, Element};
pub use error::CompileError;
pub use ops::{BinaryOp, TernaryOp, UnaryOp};
pub use scalar::Scalar;
