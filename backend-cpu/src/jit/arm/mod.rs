//! What is particular to 64-bit Arm: so far the assembler alone.
//!
//! It is plain data turned into bytes, so it compiles, and its tests run, on every host.

#[allow(dead_code, reason = "the code generator for NEON will write these instructions")]
mod asm;
