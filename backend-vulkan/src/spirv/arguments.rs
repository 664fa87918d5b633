//! Where a kernel finds its buffers and scalars.
//!
//! Every argument has a slot of eight bytes in a block: with addresses, first the address of each
//! buffer, then each scalar; without, scalars only, and buffer `i` is binding `i`.
//!
//! With addresses, the push constants begin with the address of a block in memory. If it is not 0,
//! arguments come from there: so a recorded launch takes other buffers and scalars without being
//! recorded again (see `replay`). A single launch has 0 there and the block right behind, which no
//! thread waits for. A block that does not fit is always in memory. Without addresses, the block is
//! in push constants if it fits there, else in one more binding.

use super::Target;
use crate::asm::{Asm, ids};
use rspirv::dr::Operand;
use rspirv::spirv::{MemoryAccess, Op, StorageClass, Word};
use zyx_core::DType;
use zyx_core::ir::Kernel;

/// Where the block of arguments is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Push constants.
    Push,
    /// Memory that the first push constant holds the address of, or behind that if it is 0.
    Either,
    /// Memory that push constants hold the address of.
    Address,
    /// Memory bound after the buffers.
    Binding,
}

/// How a kernel takes its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Where the block is.
    pub(crate) slot: Slot,
    /// Arguments in the block before the scalars: the addresses of buffers.
    pub(crate) addresses: usize,
    /// Descriptors.
    pub(crate) bindings: usize,
}

impl Layout {
    /// The layout for a kernel on a device.
    pub(crate) fn of(kernel: &Kernel, target: &Target) -> Layout {
        let (buffers, scalars) = (kernel.params().len(), kernel.vars().len());
        if target.addresses {
            let fits = 8 * (1 + buffers + scalars) <= target.push_bytes;
            let slot = if fits { Slot::Either } else { Slot::Address };
            return Layout { slot, addresses: buffers, bindings: 0 };
        }
        match 8 * scalars <= target.push_bytes {
            true => Layout { slot: Slot::Push, addresses: 0, bindings: buffers },
            false => Layout { slot: Slot::Binding, addresses: 0, bindings: buffers + 1 },
        }
    }
}

/// One word or number to load from the block.
#[derive(Clone, Copy)]
pub(crate) struct Field {
    pub(crate) offset: u32,
    pub(crate) dtype: DType,
}

/// Loads fields of the block, at the start of the function.
pub(crate) fn load(asm: &mut Asm, layout: Layout, fields: &[Field]) -> Vec<Word> {
    if fields.is_empty() {
        return Vec::new();
    }
    let pointer = Field { offset: 0, dtype: DType::U64 };
    match layout.slot {
        Slot::Push => pushed(asm, fields),
        Slot::Either => {
            let behind = fields.iter().map(|f| Field { offset: 8 + f.offset, ..*f });
            let all: Vec<Field> = std::iter::once(pointer).chain(behind).collect();
            let loaded = pushed(asm, &all);
            let (address, nothing) = (loaded[0], asm.constant(DType::U64, 0));
            let is_stored = asm.op(Op::INotEqual, DType::Bool, &[address, nothing]);
            let before = asm.here();
            let merge = asm.begin_if(is_stored);
            let stored = pointed_at(asm, address, fields);
            let there = asm.here();
            asm.end_if(merge);
            let each = fields.iter().zip(loaded[1..].iter().zip(stored));
            let choose = |(f, (&here, stored)): (&Field, (&Word, Word))| {
                let of = asm.ty(f.dtype);
                asm.with(Op::Phi, of, ids(&[here, before, stored, there]))
            };
            each.map(choose).collect()
        }
        Slot::Address => {
            let address = pushed(asm, &[pointer])[0];
            pointed_at(asm, address, fields)
        }
        Slot::Binding => {
            let record = record(asm, fields);
            let base = asm.bound(record, layout.bindings as u32 - 1);
            members(asm, StorageClass::StorageBuffer, base, fields)
        }
    }
}

/// Loads push constants.
fn pushed(asm: &mut Asm, fields: &[Field]) -> Vec<Word> {
    let record = record(asm, fields);
    let base = asm.variable(StorageClass::PushConstant, record);
    members(asm, StorageClass::PushConstant, base, fields)
}

/// Loads from memory at an address.
fn pointed_at(asm: &mut Asm, address: Word, fields: &[Field]) -> Vec<Word> {
    let class = StorageClass::PhysicalStorageBuffer;
    let record = record(asm, fields);
    let pointer = asm.pointer(class, record);
    let base = asm.with(Op::ConvertUToPtr, pointer, ids(&[address]));
    members(asm, class, base, fields)
}

/// The type of a block with these fields.
fn record(asm: &mut Asm, fields: &[Field]) -> Word {
    let types: Vec<Word> = fields.iter().map(|f| asm.ty(f.dtype)).collect();
    let offsets: Vec<u32> = fields.iter().map(|f| f.offset).collect();
    asm.record(&types, &offsets)
}

/// Loads all members of a block.
fn members(asm: &mut Asm, class: StorageClass, base: Word, fields: &[Field]) -> Vec<Word> {
    let each = (0..).zip(fields);
    each.map(|(i, field)| member(asm, class, base, i, field.dtype)).collect()
}

/// Loads a member of a block.
fn member(asm: &mut Asm, class: StorageClass, base: Word, index: u32, dtype: DType) -> Word {
    let (index, of) = (asm.word(index), asm.ty(dtype));
    let mut operands = vec![Operand::IdRef(asm.place(class, of, &[base, index]))];
    if class == StorageClass::PhysicalStorageBuffer {
        operands.push(Operand::MemoryAccess(MemoryAccess::ALIGNED));
        operands.push(Operand::LiteralBit32(dtype.size() as u32));
    }
    asm.with(Op::Load, of, operands)
}
