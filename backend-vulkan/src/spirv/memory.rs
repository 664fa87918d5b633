//! Allocations and buffers, loads and stores.

use super::body::Body;
use crate::asm::ids;
use rspirv::dr::Operand;
use rspirv::spirv::{Capability, Decoration, MemoryAccess, Op as Spv, Scope, StorageClass, Word};
use zyx_core::DType;
use zyx_core::codegen::Place;
use zyx_core::codegen::walk::Emitted;
use zyx_core::ir::{Access, Op, Space, Type, Value};

/// An allocation: an array of such cells that the group shares, or one of this thread.
#[derive(Clone, Copy)]
pub(super) struct Array {
    class: StorageClass,
    variable: Word,
}

impl Body<'_> {
    pub(super) fn allocate(&mut self, value: Value, space: Space, dtype: DType, len: u32) {
        let (asm, len) = (&mut self.m.asm, len.max(1));
        let array = asm.array(dtype, len);
        let (class, variable) = match space {
            Space::Shared => {
                self.shared_bytes += len as usize * dtype.size();
                (StorageClass::Workgroup, asm.variable(StorageClass::Workgroup, array))
            }
            Space::Register => (StorageClass::Function, asm.local(array)),
        };
        self.arrays.insert(value, Array { class, variable });
    }

    /// A buffer as an array of such elements: a block's type, or a variable.
    fn view(&mut self, (slot, access): (u16, Access), ty: Type) -> Word {
        let asm = &mut self.m.asm;
        let element = asm.lanes(ty);
        let make = || {
            let block = asm.unbounded(element, ty.bytes() as u32);
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

    /// A pointer to an element or a vector, with what loads and stores through it have to say.
    fn pointer(&mut self, place: &Place, ty: Type) -> (Word, Vec<Operand>) {
        let (asm, dtype) = (&mut self.m.asm, self.kernel.ty(place.index).dtype);
        let element = asm.lanes(ty);
        let mut index = self.held(place.index);
        if ty.is_vector() {
            // Vectors are counted as such.
            let places = self.m.small(dtype, ty.lanes.ilog2().into());
            index = self.m.asm.op(Spv::ShiftRightLogical, dtype, &[index, places]);
        }
        let Op::Param { slot, access } = self.kernel.op(place.buf) else {
            let Array { class, variable } = self.arrays[&place.buf];
            return (self.m.asm.place(class, element, &[variable, index]), Vec::new());
        };
        let view = self.view((slot, access), ty);
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
        let bytes = Operand::LiteralBit32(ty.bytes() as u32);
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
        let (pointer, _) = self.pointer(place, Type::scalar(dtype));
        let is_shared = matches!(self.kernel.op(place.buf), Op::Alloc { .. });
        let scope = if is_shared { Scope::Workgroup } else { Scope::Device };
        Ok([pointer, self.m.asm.word(scope as u32), self.m.asm.word(0)])
    }

    /// Enters what runs where the guard of an access holds, and once for all threads that run the
    /// same iteration; gives what ends it, if anything decides.
    pub(super) fn begin_guarded(&mut self, place: &Place) -> Option<Word> {
        let mut tests: Vec<Word> = place.conds.iter().map(|&cond| self.held(cond)).collect();
        if self.sync.is_memory(place.buf) {
            let zero = self.m.asm.word(0);
            for axis in self.sync.idle_axes().collect::<Vec<_>>() {
                let position = self.thread(axis);
                tests.push(self.m.test(Spv::IEqual, &[position, zero]));
            }
        }
        let all = tests.into_iter().reduce(|all, one| self.m.test(Spv::LogicalAnd, &[all, one]));
        all.map(|cond| self.m.asm.begin_if(cond))
    }

    // Statements.

    pub(super) fn loaded(&mut self, value: Value, ty: Type, place: &Place) -> Emitted {
        if place.awaited {
            return self.awaited(value, ty, place);
        }
        let (op, operands) = if place.relaxed && self.sync.is_memory(place.buf) {
            (Spv::AtomicLoad, ids(&self.atomic_place(place, ty.dtype)?))
        } else {
            let (pointer, access) = self.pointer(place, ty);
            (Spv::Load, ids(&[pointer]).into_iter().chain(access).collect())
        };
        let of = self.m.asm.lanes(ty);
        let x = self.m.asm.with(op, of, operands);
        self.values[value.idx()] = match ty.is_vector() {
            true => (0..ty.lanes.into()).map(|lane| self.m.asm.member(ty.dtype, x, lane)).collect(),
            false => vec![x],
        };
        Ok(())
    }

    /// Loads an element again and again until it is other than zero; once where the guard does not
    /// hold, whatever it is.
    fn awaited(&mut self, value: Value, ty: Type, place: &Place) -> Emitted {
        let operands = ids(&self.atomic_place(place, ty.dtype)?);
        let conds: Vec<Word> = place.conds.iter().map(|&cond| self.held(cond)).collect();
        let zero = self.m.small(ty.dtype, 0);
        let turn = self.m.asm.begin_turns();
        let of = self.m.asm.lanes(ty);
        let x = self.m.asm.with(Spv::AtomicLoad, of, operands);
        let mut done = self.m.test(Spv::INotEqual, &[x, zero]);
        for cond in conds {
            let excluded = self.m.test(Spv::LogicalNot, &[cond]);
            done = self.m.test(Spv::LogicalOr, &[done, excluded]);
        }
        self.m.asm.end_turns(turn, done);
        self.values[value.idx()] = vec![x];
        Ok(())
    }

    pub(super) fn stored(&mut self, place: &Place, x: Value) -> Emitted {
        let ty = self.kernel.ty(x);
        let lanes = self.lanes(x);
        let merge = self.begin_guarded(place);
        if place.relaxed && self.sync.is_memory(place.buf) {
            let [pointer, scope, relaxed] = self.atomic_place(place, ty.dtype)?;
            self.m.asm.effect(Spv::AtomicStore, ids(&[pointer, scope, relaxed, lanes[0]]));
        } else {
            let of = self.m.asm.lanes(ty);
            let x = match ty.is_vector() {
                true => self.m.asm.with(Spv::CompositeConstruct, of, ids(&lanes)),
                false => lanes[0],
            };
            let (pointer, access) = self.pointer(place, ty);
            self.m.asm.effect(Spv::Store, ids(&[pointer, x]).into_iter().chain(access).collect());
        }
        if let Some(merge) = merge {
            self.m.asm.end_if(merge);
        }
        Ok(())
    }
}
