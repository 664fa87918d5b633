//! The embedded CPU backend of zyx: machine code from its own encoder, nothing to install.
//!
//! * [`Cpu`] is the backend, [`Config`] what it may use.
//! * `jit` turns kernels into AVX-512, AVX2 or NEON code; where that is impossible they are programs of `blocks`.
//! * [`zyx_gemm`] is the library of contractions, with the threads and the memory.
//!
//! `unsafe` stands where addresses are made and generated code is called (`run`, `blocks`, `device`, `library`, `flash`,
//! `horizontal_fusion`, `exec_memory`, calls and helpers in `jit`).

mod blocks;
mod config;
mod device;
#[allow(dead_code, reason = "lengths are for tests")]
mod exec_memory;
mod facts;
mod flash;
mod horizontal_fusion;
#[allow(
    dead_code,
    reason = "the encoder covers the instructions its tests check, not only those lowering emits"
)]
mod jit;
mod library;
mod run;
mod shares;
mod split;

pub use config::{Config, Level};
pub use device::{Cpu, CpuDevice, Event, Program, Stream};
