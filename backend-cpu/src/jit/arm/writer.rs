//! Code of several functions under construction.

use super::asm::Assembler;
use super::{emit, legalize};
use crate::jit::{EmitError, Isa, lower, regalloc};

/// The functions of a kernel, one after the other.
#[derive(Debug)]
pub(in crate::jit) struct Writer {
    asm: Assembler,
    isa: Isa,
}

impl Writer {
    pub(in crate::jit) fn new(isa: Isa) -> Self {
        Self { asm: Assembler::default(), isa }
    }

    /// Allocates registers and writes the function; gives its offset.
    pub(in crate::jit) fn function(&mut self, function: lower::Function) -> Result<u32, EmitError> {
        let lower::Function { mut insts, mut classes, constants, frame, labels, .. } = function;
        legalize::legalize(&mut insts, &mut classes);
        let allocated = regalloc::allocate(&insts, &classes, &constants, self.isa, frame);
        self.asm.align(16);
        let offset = self.asm.position();
        emit::function(&mut self.asm, &allocated, &constants, labels)?;
        Ok(offset)
    }

    /// The bytes, which may be put at any multiple of 64.
    pub(in crate::jit) fn finish(self) -> Result<Vec<u8>, EmitError> {
        self.asm.finish().map_err(|_| EmitError::new("a label out of reach"))
    }
}
