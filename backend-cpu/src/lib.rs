//! The embedded CPU backend of zyx.

pub mod contract;
#[allow(dead_code, reason = "until the device is written")]
mod exec_memory;
#[allow(dead_code, reason = "until the device is written")]
mod jit;
pub mod memory;
pub mod pool;
