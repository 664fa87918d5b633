//! User kernels: [`Kernel`] and the language that they are written in.

pub use crate::hal::{Language, RawKernel, RawParam, RawSource};
pub use crate::ir::Access;
pub use crate::lang::*;
pub use crate::ops::{BinaryOp, UnaryOp};
pub use crate::schedule::Operation;
pub use crate::tensor::{Kernel, KernelGradient, KernelStep, RawLaunch};
