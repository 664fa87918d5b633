//! Allocations and buffers, loads and stores.
//!
//! Elements of 8 and 16 bits are read and written as such where the device has storage of that
//! width. Where not, they are a field of the word around them; a store flips those bits of the
//! word that change, in one atomic, since neighbours belong to other threads.

use super::asm::ids;
use super::body::Body;
use super::math::held;
use rspirv::dr::Operand;
use rspirv::spirv::{
    BuiltIn, Capability, Decoration, MemoryAccess, Op as Spv, Scope, StorageClass, Word,
};
use zyx_core::DType;
use zyx_core::codegen::Place;
use zyx_core::codegen::walk::Emitted;
use zyx_core::ir::{Access, Op, Space, Type, Value};

/// An allocation: an array of such cells that the group shares, or one of this thread.
#[derive(Clone, Copy)]
pub(super) struct Array {
    class: StorageClass,
    variable: Word,
    cell: DType,
}

impl Body<'_> {
    pub(super) fn allocate(&mut self, value: Value, space: Space, dtype: DType, len: u32) {
        let (asm, target, len) = (&mut self.m.asm, self.m.target, len.max(1));
        let cell = match (space, dtype.bits()) {
            (Space::Shared, 8) if target.int8 => {
                asm.capability(Capability::Int8);
                dtype
            }
            (Space::Shared, 16) if target.int16 => {
                asm.capability(Capability::Int16);
                dtype
            }
            _ => held(dtype),
        };
        let array = asm.array(cell, len);
        let (class, variable) = match space {
            Space::Shared => {
                self.shared_bytes += len as usize * cell.size();
                (StorageClass::Workgroup, asm.variable(StorageClass::Workgroup, array))
            }
            Space::Register => (StorageClass::Function, asm.local(array)),
        };
        self.arrays.insert(value, Array { class, variable, cell });
    }

    /// A buffer as an array of such elements: a block's type, or a variable.
    fn view(&mut self, (slot, access): (u16, Access), cell: DType, lanes: u8) -> Word {
        let asm = &mut self.m.asm;
        let element = asm.vector(cell, lanes);
        let make = || {
            match cell.bits() {
                8 => {
                    asm.extension("SPV_KHR_8bit_storage");
                    asm.capability(Capability::StorageBuffer8BitAccess);
                }
                16 => {
                    asm.extension("SPV_KHR_16bit_storage");
                    asm.capability(Capability::StorageBuffer16BitAccess);
                }
                _ => {}
            }
            let block = asm.unbounded(element, cell.size() as u32 * u32::from(lanes));
            if access == Access::Read {
                asm.decorate_first(block, Decoration::NonWritable);
            }
            if self.m.target.addresses {
                return (access, block);
            }
            let variable = asm.bound(block, slot.into());
            asm.decorate(variable, Decoration::Aliased, &[]);
            (access, variable)
        };
        self.views.entry((slot, element)).or_insert_with(make).1
    }

    /// Marks what groups exchange through buffers as coherent. Decorations stand apart from what
    /// they decorate, so this is done when it is known.
    pub(super) fn coherence(&mut self) {
        for &(_, view) in self.views.values().filter(|view| view.0 == Access::ReadWrite) {
            match self.m.target.addresses {
                true => self.m.asm.decorate_first(view, Decoration::Coherent),
                false => self.m.asm.decorate(view, Decoration::Coherent, &[]),
            }
        }
    }

    /// A pointer to an element, with what loads and stores through it have to say. An index of
    /// several lanes counts vectors.
    fn pointer(
        &mut self,
        buf: Value,
        (cell, lanes): (DType, u8),
        index: Word,
    ) -> (Word, Vec<Operand>) {
        let element = self.m.asm.vector(cell, lanes);
        let Op::Param { slot, access } = self.kernel.op(buf) else {
            let Array { class, variable, .. } = self.arrays[&buf];
            return (self.m.asm.place(class, element, &[variable, index]), Vec::new());
        };
        let view = self.view((slot, access), cell, lanes);
        let asm = &mut self.m.asm;
        let zero = asm.word(0);
        if !self.m.target.addresses {
            let class = StorageClass::StorageBuffer;
            return (asm.place(class, element, &[view, zero, index]), Vec::new());
        }
        let class = StorageClass::PhysicalStorageBuffer;
        let pointer = asm.pointer(class, view);
        let address = ids(&[self.addresses[usize::from(slot)]]);
        let base = asm.with(Spv::ConvertUToPtr, pointer, address);
        let bytes = Operand::LiteralBit32(cell.size() as u32 * u32::from(lanes));
        let access = vec![Operand::MemoryAccess(MemoryAccess::ALIGNED), bytes];
        (asm.place(class, element, &[base, zero, index]), access)
    }

    /// The operands of an atomic on an element, but for those of its own: pointer, scope, order.
    pub(super) fn atomic_place(&mut self, place: &Place, dtype: DType) -> Emitted<[Word; 3]> {
        if dtype.bits() == 64 {
            if !self.m.target.atomics64 {
                return Err(format!("no atomics on {dtype}"));
            }
            self.m.asm.capability(Capability::Int64Atomics);
        }
        let index = self.held(place.index);
        let (pointer, _) = self.pointer(place.buf, (dtype, 1), index);
        Ok([pointer, self.scope(place.buf), self.m.asm.word(0)])
    }

    fn scope(&mut self, buf: Value) -> Word {
        let is_shared = matches!(self.kernel.op(buf), Op::Alloc { .. });
        self.m.asm.word(if is_shared { Scope::Workgroup } else { Scope::Device } as u32)
    }

    /// The type of an element in memory: none if elements are fields of words only.
    fn cell(&self, buf: Value, dtype: DType) -> Option<DType> {
        if let Some(array) = self.arrays.get(&buf) {
            return Some(array.cell);
        }
        let has = match dtype.bits() {
            8 => self.m.target.storage8,
            16 => self.m.target.storage16,
            _ => true,
        };
        has.then_some(dtype)
    }

    /// The index by which elements are found that have so many within them.
    fn divided(&mut self, index: Value, parts: u32) -> Word {
        let (dtype, index) = (self.kernel.ty(index).dtype, self.held(index));
        if parts == 1 {
            return index;
        }
        let places = self.m.small(dtype, parts.ilog2().into());
        self.m.asm.op(Spv::ShiftRightLogical, dtype, &[index, places])
    }

    /// The word that holds a packed element, and the first bit of it and their number.
    fn field(&mut self, place: &Place, dtype: DType) -> (Word, Vec<Operand>, [Word; 2]) {
        let bits = dtype.bits() as u32;
        let index = self.held(place.index);
        let low = self.m.cast(self.kernel.ty(place.index).dtype, DType::U32, index);
        let part = self.m.by(Spv::BitwiseAnd, low, 32 / bits - 1);
        let shift = self.m.by(Spv::IMul, part, bits);
        let word = self.divided(place.index, 32 / bits);
        let (pointer, access) = self.pointer(place.buf, (DType::U32, 1), word);
        (pointer, access, [shift, self.m.asm.word(bits)])
    }

    /// Enters what runs where the guard of an access holds, and once for all threads that run the
    /// same iteration; gives what ends it, if anything decides.
    pub(super) fn begin_guarded(&mut self, place: &Place) -> Option<Word> {
        let mut tests: Vec<Word> = place.conds.iter().map(|&cond| self.held(cond)).collect();
        if self.sync.is_memory(place.buf) {
            let zero = self.m.asm.word(0);
            for axis in self.sync.idle_axes().collect::<Vec<_>>() {
                let position = self.m.asm.builtin(BuiltIn::LocalInvocationId, axis);
                tests.push(self.m.test(Spv::IEqual, &[position, zero]));
            }
        }
        let all = tests.into_iter().reduce(|all, one| self.m.test(Spv::LogicalAnd, &[all, one]));
        all.map(|cond| self.m.asm.begin_if(cond))
    }

    // Statements.

    pub(super) fn loaded(&mut self, value: Value, ty: Type, place: &Place) -> Emitted {
        if place.awaited {
            return Err("no loads that wait".into());
        }
        let dtype = ty.dtype;
        let word = if place.relaxed && self.sync.is_memory(place.buf) {
            let operands = self.atomic_place(place, dtype)?;
            self.m.asm.op(Spv::AtomicLoad, dtype, &operands)
        } else if let Some(cell) = self.cell(place.buf, dtype) {
            let index = self.divided(place.index, ty.lanes.into());
            let (pointer, access) = self.pointer(place.buf, (cell, ty.lanes), index);
            let x = self.read((cell, ty.lanes), pointer, access);
            if ty.is_vector() {
                let lanes = 0..ty.lanes.into();
                let lanes = lanes.map(|lane| self.m.asm.member(cell, x, lane)).collect();
                self.values[value.idx()] = lanes;
                return Ok(());
            }
            let widen = if dtype.is_signed() { Spv::SConvert } else { Spv::UConvert };
            if cell == held(cell) { x } else { self.m.asm.op(widen, held(cell), &[x]) }
        } else {
            let (pointer, access, [shift, bits]) = self.field(place, dtype);
            let word = self.read((DType::U32, 1), pointer, access);
            let signed = dtype.is_signed();
            let extract = if signed { Spv::BitFieldSExtract } else { Spv::BitFieldUExtract };
            self.m.asm.op(extract, DType::U32, &[word, shift, bits])
        };
        self.define(value, word);
        Ok(())
    }

    fn read(&mut self, (cell, lanes): (DType, u8), pointer: Word, access: Vec<Operand>) -> Word {
        let of = self.m.asm.vector(cell, lanes);
        let operands = std::iter::once(Operand::IdRef(pointer)).chain(access).collect();
        self.m.asm.with(Spv::Load, of, operands)
    }

    pub(super) fn stored(&mut self, place: &Place, x: Value) -> Emitted {
        let ty = self.kernel.ty(x);
        let (dtype, lanes) = (ty.dtype, self.lanes(x));
        let merge = self.begin_guarded(place);
        if place.relaxed && self.sync.is_memory(place.buf) {
            let [pointer, scope, relaxed] = self.atomic_place(place, dtype)?;
            self.m.asm.effect(Spv::AtomicStore, ids(&[pointer, scope, relaxed, lanes[0]]));
        } else if let Some(cell) = self.cell(place.buf, dtype) {
            let x = if ty.is_vector() {
                let of = self.m.asm.vector(cell, ty.lanes);
                self.m.asm.with(Spv::CompositeConstruct, of, ids(&lanes))
            } else if cell == held(cell) {
                lanes[0]
            } else {
                self.m.asm.op(Spv::UConvert, cell, &lanes)
            };
            let index = self.divided(place.index, ty.lanes.into());
            let (pointer, access) = self.pointer(place.buf, (cell, ty.lanes), index);
            self.m.asm.effect(Spv::Store, ids(&[pointer, x]).into_iter().chain(access).collect());
        } else {
            // Nobody else may change these bits, so flipping those that differ stores the element.
            let (pointer, _, [shift, bits]) = self.field(place, dtype);
            let (scope, relaxed) = (self.scope(place.buf), self.m.asm.word(0));
            let seen = self.m.asm.op(Spv::AtomicLoad, DType::U32, &[pointer, scope, relaxed]);
            let fields = [seen, lanes[0], shift, bits];
            let word = self.m.asm.op(Spv::BitFieldInsert, DType::U32, &fields);
            let differs = self.m.asm.op(Spv::BitwiseXor, DType::U32, &[seen, word]);
            self.m.asm.op(Spv::AtomicXor, DType::U32, &[pointer, scope, relaxed, differs]);
        }
        if let Some(merge) = merge {
            self.m.asm.end_if(merge);
        }
        Ok(())
    }
}
