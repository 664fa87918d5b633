//! Machine code for kernels, made in process: the fast path of the CPU backend.

pub(crate) mod asm;
