//! Kernels as programs write them, a file each. They run unchanged on every device, in every float dtype.

pub mod attention;
pub mod gated;
pub mod heat;
pub mod histogram;
pub mod mish;
pub mod norm;
pub mod product;
pub mod segments;
pub mod softmax;
