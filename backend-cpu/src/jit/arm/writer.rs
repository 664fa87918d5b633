//! Code of several functions under construction.

use super::asm::Assembler;
use crate::jit::{EmitError, Isa, lower};

/// The functions of a kernel, one after the other.
#[derive(Debug)]
pub(in crate::jit) struct Writer {
    asm: Assembler,
}

impl Writer {
    pub(in crate::jit) fn new(_isa: Isa) -> Self {
        Self { asm: Assembler::default() }
    }

    /// Allocates registers and writes the function; gives its offset.
    pub(in crate::jit) fn function(
        &mut self,
        _function: lower::Function,
    ) -> Result<u32, EmitError> {
        Err(EmitError::new("64-bit Arm"))
    }

    /// The bytes, which may be put at any multiple of 64.
    pub(in crate::jit) fn finish(self) -> Result<Vec<u8>, EmitError> {
        self.asm.finish().map_err(|_| EmitError::new("a label out of reach"))
    }
}
