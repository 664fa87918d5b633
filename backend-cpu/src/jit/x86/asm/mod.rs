//! An assembler for the x86-64 instructions that compiled kernels need.
//!
//! General-purpose instructions are methods (`gpr.rs`); vector and mask instructions are rows of
//! one table (`vector.rs`), so that an instruction of the code generator can hold its row as data.
//! Three encoders (`encode.rs`) write the bytes. Labels serve jumps and the constant pool, which
//! [`Assembler::finish`] appends to the code; everything is relative to the instruction pointer,
//! so finished code can be copied anywhere whose address is a multiple of 64.
//!
//! Nothing is checked at run time: operands that a row does not accept are caught by debug
//! assertions, and by a test that decodes what every row encodes with an independent decoder.

mod encode;
mod gpr;
mod operand;
mod vector;

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests;

#[allow(unused_imports, reason = "the vocabulary of the code generator")]
pub(crate) use self::{gpr::*, operand::*, vector::VOp};

use std::collections::HashMap;

const UNBOUND: u32 = u32::MAX;

/// A 32-bit displacement to be filled in when its label is known.
#[derive(Debug)]
struct Fixup {
    at: u32,
    label: Label,
    /// What the stored value has to be beside the distance from the displacement's own start.
    addend: i32,
}

/// Code under construction.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    code: Vec<u8>,
    labels: Vec<u32>,
    fixups: Vec<Fixup>,
    /// Constants by alignment and content, in order of first use.
    pool: Vec<(Label, Vec<u8>)>,
    pooled: HashMap<Vec<u8>, Label>,
}

impl Assembler {
    /// Bytes written so far.
    pub(crate) fn position(&self) -> u32 {
        self.code.len() as u32
    }

    /// A label without a place yet.
    pub(crate) fn label(&mut self) -> Label {
        self.reserve(1)
    }

    /// So many labels, numbered one after the other; gives the first.
    pub(crate) fn reserve(&mut self, n: u32) -> Label {
        let first = self.labels.len() as u32;
        self.labels.resize((first + n) as usize, UNBOUND);
        Label(first)
    }

    /// Puts a label here.
    pub(crate) fn bind(&mut self, label: Label) {
        debug_assert_eq!(self.labels[label.0 as usize], UNBOUND, "label bound twice");
        self.labels[label.0 as usize] = self.position();
    }

    /// The place of a bound label.
    fn place(&self, label: Label) -> Option<u32> {
        Some(self.labels[label.0 as usize]).filter(|&at| at != UNBOUND)
    }

    /// Four bytes of displacement to `label`, with `imm` bytes of the instruction after them.
    fn fixup(&mut self, label: Label, disp: i32, imm: u8) {
        let addend = disp - 4 - i32::from(imm);
        self.fixups.push(Fixup { at: self.position(), label, addend });
        self.code.extend_from_slice(&[0; 4]);
    }

    /// A constant in memory, aligned to its length rounded up to a power of two. Equal constants
    /// share one place.
    pub(crate) fn constant(&mut self, bytes: &[u8]) -> Label {
        debug_assert!(!bytes.is_empty() && bytes.len() <= 64);
        if let Some(&label) = self.pooled.get(bytes) {
            return label;
        }
        let label = self.label();
        self.pooled.insert(bytes.to_vec(), label);
        self.pool.push((label, bytes.to_vec()));
        label
    }

    /// Pads with no-operations to a multiple of `bytes`, a power of two.
    pub(crate) fn align(&mut self, bytes: u32) {
        let missing = self.position().wrapping_neg() & (bytes - 1);
        self.nop(missing as usize);
    }

    /// `n` bytes of no-operation, in as few instructions as Intel recommends (SDM, NOP).
    pub(crate) fn nop(&mut self, mut n: usize) {
        const NOPS: [&[u8]; 9] = [
            &[0x90],
            &[0x66, 0x90],
            &[0x0f, 0x1f, 0x00],
            &[0x0f, 0x1f, 0x40, 0x00],
            &[0x0f, 0x1f, 0x44, 0x00, 0x00],
            &[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00],
            &[0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00],
            &[0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
            &[0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
        ];
        while n > 0 {
            let nop = NOPS[n.min(9) - 1];
            self.code.extend_from_slice(nop);
            n -= nop.len();
        }
    }

    /// Appends the constant pool, resolves all references and gives the finished bytes, which
    /// must be placed at a multiple of 64.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let mut pool = std::mem::take(&mut self.pool);
        // Largest first, so that alignment costs nothing between constants.
        pool.sort_by_key(|(_, bytes)| std::cmp::Reverse(bytes.len().next_power_of_two()));
        for (label, bytes) in &pool {
            let align = bytes.len().next_power_of_two();
            let end = self.code.len().next_multiple_of(align);
            self.code.resize(end, 0xcc);
            self.bind(*label);
            self.code.extend_from_slice(bytes);
        }
        for fixup in std::mem::take(&mut self.fixups) {
            let target = self.place(fixup.label).expect("invariant: every used label is bound");
            let value = target as i32 - fixup.at as i32 + fixup.addend;
            let at = fixup.at as usize;
            self.code[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        self.code
    }
}
