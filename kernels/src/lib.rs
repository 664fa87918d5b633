//! The kernel library of zyx: kernels written in its kernel language ([`zyx_ir::lang`]), one file a class.
//!
//! A kernel here is a function that records it. It knows no tensors; `zyx-core` calls it with tensors, as a program calls
//! its own kernels.
#![forbid(unsafe_code)]

pub mod segments;
