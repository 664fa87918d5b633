//! Code of several functions under construction.

use super::asm::Assembler;
use super::{emit, select};
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

    /// Selects instructions, allocates registers and writes the function; gives its offset.
    pub(in crate::jit) fn function(&mut self, function: lower::Function) -> Result<u32, EmitError> {
        let lower::Function { mut insts, mut classes, constants, frame, labels, .. } = function;
        select::select(&mut insts, &mut classes)?;
        let allocated = regalloc::allocate(&insts, &classes, &constants, self.isa, frame);
        self.asm.align(32);
        let offset = self.asm.position();
        emit::function(&mut self.asm, &allocated, &constants, labels, self.isa);
        Ok(offset)
    }

    /// The bytes, which may be put at any multiple of 64.
    pub(in crate::jit) fn finish(self) -> Result<Vec<u8>, EmitError> {
        Ok(self.asm.finish())
    }
}
