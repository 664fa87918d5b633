//! Code for 64-bit Arm.
//!
//! After lowering come [`legalize`], which makes sums of addresses that several accesses share,
//! allocation, and [`emit`], with [`memory`] for addresses and [`select`] for vectors. What one of them
//! has no instruction for is an error, and the kernel runs as blocks. The assembler in [`asm`] is plain
//! data turned into bytes, so all of it compiles, and its tests run, on every host.

#[allow(dead_code, reason = "instruction families are complete, not by present use")]
pub(in crate::jit) mod asm;
pub(in crate::jit) mod emit;
mod legalize;
mod memory;
mod select;
mod writer;

pub(super) use self::writer::Writer;
