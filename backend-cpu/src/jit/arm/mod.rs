//! Code for 64-bit Arm.
//!
//! It is plain data turned into bytes, so it compiles, and its tests run, on every host.

#[allow(dead_code, reason = "instruction families are complete, not by present use")]
mod asm;
mod writer;

pub(super) use self::writer::Writer;
