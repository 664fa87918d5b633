//! Where a kernel finds its buffers and scalars.
//!
//! Every argument has a slot of eight bytes in a block: with addresses, first the address of each
//! buffer, then each scalar; without, scalars only, and buffer `i` is binding `i`. The block is
//! in push constants if it fits there. If not, it is in memory: with addresses at the address
//! that the push constants hold, without as one more binding.

use super::Target;
use crate::asm::Asm;
use rspirv::dr::Operand;
use rspirv::spirv::{MemoryAccess, Op, StorageClass, Word};
use zyx_core::DType;
use zyx_core::ir::Kernel;

/// Where the block of arguments is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Push constants.
    Push,
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
    /// Bytes of the block.
    pub(crate) bytes: usize,
    /// Descriptors.
    pub(crate) bindings: usize,
}

impl Layout {
    /// The layout for a kernel on a device.
    pub(crate) fn of(kernel: &Kernel, target: &Target) -> Layout {
        let buffers = kernel.params().len();
        let addresses = if target.addresses { buffers } else { 0 };
        let bytes = 8 * (addresses + kernel.vars().len());
        let slot = match (bytes <= target.push_bytes, target.addresses) {
            (true, _) => Slot::Push,
            (false, true) => Slot::Address,
            (false, false) => Slot::Binding,
        };
        let bound = if target.addresses { 0 } else { buffers };
        Layout { slot, addresses, bytes, bindings: bound + (slot == Slot::Binding) as usize }
    }
}

/// One word or number to load from the block.
pub(crate) struct Field {
    pub(crate) offset: u32,
    pub(crate) dtype: DType,
}

/// Loads fields of the block, in the first block of the function.
pub(crate) fn load(asm: &mut Asm, layout: Layout, fields: &[Field]) -> Vec<Word> {
    if fields.is_empty() {
        return Vec::new();
    }
    let members: Vec<Word> = fields.iter().map(|f| asm.ty(f.dtype)).collect();
    let offsets: Vec<u32> = fields.iter().map(|f| f.offset).collect();
    let record = asm.record(&members, &offsets);
    let (class, base) = match layout.slot {
        Slot::Push => {
            (StorageClass::PushConstant, asm.variable(StorageClass::PushConstant, record))
        }
        Slot::Address => {
            let class = StorageClass::PhysicalStorageBuffer;
            let number = asm.ty(DType::U64);
            let push = asm.record(&[number], &[0]);
            let push = asm.variable(StorageClass::PushConstant, push);
            let address = member(asm, StorageClass::PushConstant, push, 0, DType::U64);
            let pointer = asm.pointer(class, record);
            (class, asm.with(Op::ConvertUToPtr, pointer, vec![Operand::IdRef(address)]))
        }
        Slot::Binding => {
            (StorageClass::StorageBuffer, asm.bound(record, layout.bindings as u32 - 1))
        }
    };
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
