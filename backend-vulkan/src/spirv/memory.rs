//! Loads and stores, with their guards.
//!
//! * A guarded load reads element 0 where the guard does not hold and selects zero: every buffer
//!   has an element, and a selection is cheaper than a branch. Stores and atomics branch.
//! * Elements of 8 and 16 bits are read and written as such where the device has storage of that
//!   width. Where not, they are a field of the word around them; a store flips those bits of the
//!   word that change, in one atomic, since neighbours belong to other threads.

use super::asm::Ty;
use super::body::Body;
use rspirv::dr::Operand;
use rspirv::spirv::{
    BuiltIn, Capability, Decoration, MemoryAccess, Op as Spv, Scope, StorageClass, Word,
};
use rustc_hash::FxHashMap;
use zyx_core::codegen::Place;
use zyx_core::codegen::walk::Emitted;
use zyx_core::ir::{Access, Op, Space, Type, Value};
use zyx_core::{DType, Scalar};

/// Where the elements of a buffer or an allocation are.
pub(super) enum Storage {
    /// A buffer argument, with the types it is looked at through: blocks of arrays, or variables.
    Buffer { access: Access, views: FxHashMap<(Ty, u8), Word> },
    /// An array of elements of this type: one that the group shares, or one of this thread for each
    /// lane.
    Array { class: StorageClass, lanes: Vec<Word>, ty: Ty },
}

/// An index in registers: 32 or 64 bits.
#[derive(Clone, Copy)]
pub(super) struct Index {
    pub(super) ty: Ty,
    pub(super) word: Word,
}

impl Body<'_> {
    // Storage.

    pub(super) fn allocate(&mut self, value: Value, space: Space, ty: Type, len: u32) {
        let (class, cell, len, arrays) = match space {
            Space::Shared => {
                let cell = self.shared_cell(value, ty.dtype);
                (StorageClass::Workgroup, cell, len * u32::from(ty.lanes), 1)
            }
            Space::Register => (StorageClass::Function, self.m.ty(ty.dtype), len, ty.lanes),
        };
        let element = self.m.asm.ty(cell);
        let array = self.m.asm.array(element, len.max(1));
        let made = |_| match space {
            Space::Shared => self.m.asm.variable(class, array),
            Space::Register => self.m.asm.local(array),
        };
        let lanes = (0..arrays).map(made).collect();
        if space == Space::Shared {
            self.shared_bytes += (len * cell.bytes()) as usize;
        }
        self.storage[value.idx()] = Some(Storage::Array { class, lanes, ty: cell });
    }

    /// The type of shared elements: narrow where the device has it. Atomics on floats exchange their
    /// bits.
    fn shared_cell(&mut self, value: Value, dtype: DType) -> Ty {
        let is_target = |op: &Op| matches!(op, Op::Atomic { buf, .. } if *buf == value);
        let has_atomics = self.kernel.ops().iter().any(is_target);
        match (dtype.bits(), self.m.ty(dtype)) {
            (8, _) if self.m.target.int8 => {
                self.m.asm.capability(Capability::Int8);
                Ty::U8
            }
            (16, _) if self.m.target.int16 => {
                self.m.asm.capability(Capability::Int16);
                Ty::U16
            }
            (_, Ty::F32) if has_atomics => Ty::U32,
            (_, Ty::F64) if has_atomics => Ty::U64,
            (_, register) => register,
        }
    }

    /// A buffer as an array of such elements: a block's type, or a variable.
    fn view(&mut self, buf: Value, ty: Ty, lanes: u8) -> Word {
        let Op::Param { slot, access } = self.kernel.op(buf) else {
            unreachable!("invariant: allocations are made where they stand")
        };
        let none = || Storage::Buffer { access, views: FxHashMap::default() };
        let storage = self.storage[buf.idx()].get_or_insert_with(none);
        let Storage::Buffer { views, .. } = storage else {
            unreachable!("invariant: only buffers are looked at in several ways")
        };
        let asm = &mut self.m.asm;
        *views.entry((ty, lanes)).or_insert_with(|| {
            match ty {
                Ty::U8 => {
                    asm.extension("SPV_KHR_8bit_storage");
                    asm.capability(Capability::StorageBuffer8BitAccess);
                }
                Ty::U16 => {
                    asm.extension("SPV_KHR_16bit_storage");
                    asm.capability(Capability::StorageBuffer16BitAccess);
                }
                _ => {}
            }
            let element = asm.vector(ty, lanes);
            let block = asm.unbounded(element, ty.bytes() * u32::from(lanes));
            if access == Access::Read {
                asm.decorate_first(block, Decoration::NonWritable);
            }
            if self.m.target.addresses {
                return block;
            }
            let variable = asm.bound(block, slot.into());
            asm.decorate(variable, Decoration::Aliased, &[]);
            variable
        })
    }

    /// Marks what groups exchange through buffers as coherent. Decorations stand apart from what
    /// they decorate, so this is done when it is known.
    pub(super) fn coherence(&mut self) {
        for storage in self.storage.iter().flatten() {
            let Storage::Buffer { access: Access::ReadWrite, views, .. } = storage else {
                continue;
            };
            let mut all: Vec<Word> = views.values().copied().collect();
            all.sort_unstable();
            for view in all {
                match self.m.target.addresses {
                    true => self.m.asm.decorate_first(view, Decoration::Coherent),
                    false => self.m.asm.decorate(view, Decoration::Coherent, &[]),
                }
            }
        }
    }

    /// A pointer to an element, with what loads and stores through it have to say. An index of
    /// several lanes counts vectors.
    pub(super) fn pointer(
        &mut self,
        buf: Value,
        (ty, lanes): (Ty, u8),
        index: Index,
        lane: u8,
    ) -> (Word, Vec<Operand>) {
        let element = self.m.asm.vector(ty, lanes);
        if let Some(Storage::Array { class, lanes, .. }) = &self.storage[buf.idx()] {
            let variable = lanes[usize::from(lane) % lanes.len()];
            return (self.m.asm.place(*class, element, &[variable, index.word]), Vec::new());
        }
        let (view, zero) = (self.view(buf, ty, lanes), self.m.asm.word(0));
        let (class, base, access) = if self.m.target.addresses {
            let class = StorageClass::PhysicalStorageBuffer;
            let Op::Param { slot, .. } = self.kernel.op(buf) else {
                unreachable!("invariant: what is no array is a buffer")
            };
            let address = Operand::IdRef(self.addresses[slot as usize]);
            let pointer = self.m.asm.pointer(class, view);
            let base = self.m.asm.with(Spv::ConvertUToPtr, pointer, vec![address]);
            let bytes = Operand::LiteralBit32(ty.bytes() * u32::from(lanes));
            (class, base, vec![Operand::MemoryAccess(MemoryAccess::ALIGNED), bytes])
        } else {
            (StorageClass::StorageBuffer, view, Vec::new())
        };
        (self.m.asm.place(class, element, &[base, zero, index.word]), access)
    }

    // Places and indices.

    /// The guards of lane `lane` as one bool, if there are any.
    pub(super) fn guards(&mut self, place: &Place, lane: u8) -> Option<Word> {
        let conds = place.conds.iter().map(|&cond| self.held(cond, lane)).collect();
        self.m.all(conds)
    }

    /// `index op constant` in the index's own width.
    fn index_op(&mut self, op: Spv, index: Index, constant: u32) -> Index {
        if constant == 0 && matches!(op, Spv::IAdd | Spv::ShiftRightLogical) {
            return index;
        }
        let constant = self.m.asm.constant(index.ty, constant.into());
        Index { word: self.m.asm.op(op, index.ty, &[index.word, constant]), ..index }
    }

    /// The index of lane `lane` of an access of type `ty`. An element of storage of vectors is as
    /// many elements, but private lanes have arrays of their own.
    pub(super) fn index(&mut self, place: &Place, ty: Type, lane: u8) -> Index {
        let of = self.kernel.ty(place.index);
        let held = self.held(place.index, if of.is_vector() { lane } else { 0 });
        let index = Index { ty: self.m.ty(of.dtype), word: held };
        let cell = self.kernel.ty(place.buf).lanes;
        match cell > 1 {
            true if !self.sync.is_memory(place.buf) => index,
            true => {
                let scaled = self.index_op(Spv::IMul, index, cell.into());
                self.index_op(Spv::IAdd, scaled, lane.into())
            }
            false if of.is_vector() || ty.lanes == 1 => index,
            false => self.index_op(Spv::IAdd, index, lane.into()),
        }
    }

    /// The index, or 0 where the guards do not hold.
    fn safe(&mut self, index: Index, cond: Option<Word>) -> Index {
        let Some(cond) = cond else { return index };
        let zero = self.m.asm.constant(index.ty, 0);
        Index { word: self.m.select(index.ty, cond, index.word, zero), ..index }
    }

    /// What was loaded, or zero where the guards do not hold.
    fn or_zero(&mut self, dtype: DType, cond: Option<Word>, x: Word) -> Word {
        let Some(cond) = cond else { return x };
        let zero = self.m.literal(Scalar::from_bits(dtype, 0));
        self.m.select(self.m.ty(dtype), cond, x, zero)
    }

    /// The test for the thread that writes for all where the group acts as one.
    pub(super) fn first_thread(&mut self, buf: Value) -> Option<Word> {
        if !self.sync.is_memory(buf) {
            return None;
        }
        let zero = self.m.asm.word(0);
        let idle: Vec<usize> = self.sync.idle_axes().collect();
        let is_first = |axis| {
            let position = self.m.asm.builtin(BuiltIn::LocalInvocationId, axis);
            self.m.test(Spv::IEqual, &[position, zero])
        };
        let tests = idle.into_iter().map(is_first).collect();
        self.m.all(tests)
    }

    // One element.

    pub(super) fn read(&mut self, of: Word, pointer: Word, access: Vec<Operand>) -> Word {
        let operands = std::iter::once(Operand::IdRef(pointer)).chain(access).collect();
        self.m.asm.with(Spv::Load, of, operands)
    }

    pub(super) fn put(&mut self, pointer: Word, value: Word, access: Vec<Operand>) {
        let start = [Operand::IdRef(pointer), Operand::IdRef(value)];
        self.m.asm.effect(Spv::Store, start.into_iter().chain(access).collect());
    }

    pub(super) fn scope(&mut self, buf: Value) -> Word {
        let is_shared = matches!(self.kernel.op(buf), Op::Alloc { .. });
        self.m.asm.word(if is_shared { Scope::Workgroup } else { Scope::Device } as u32)
    }

    /// Whether elements of this dtype in a buffer are fields of words only.
    fn is_packed(&self, buf: Value, dtype: DType) -> bool {
        let has = match dtype.bits() {
            8 => self.m.target.storage8,
            16 => self.m.target.storage16,
            _ => true,
        };
        !has && matches!(self.kernel.op(buf), Op::Param { .. })
    }

    /// The type of an element as it is in memory.
    pub(super) fn cell(&self, buf: Value, dtype: DType) -> Ty {
        match self.storage[buf.idx()] {
            Some(Storage::Array { ty, .. }) => ty,
            _ => match dtype.bits() {
                8 => Ty::U8,
                16 => Ty::U16,
                _ => self.m.ty(dtype),
            },
        }
    }

    /// The word that holds a packed element, and the first bit of it and their number.
    fn field(&mut self, buf: Value, dtype: DType, index: Index) -> (Word, Vec<Operand>, [Word; 2]) {
        let bits = dtype.bits() as u32;
        let low = match index.ty {
            Ty::U64 => self.m.asm.op(Spv::UConvert, Ty::U32, &[index.word]),
            _ => index.word,
        };
        let place = self.m.by(Spv::BitwiseAnd, low, 32 / bits - 1);
        let shift = self.m.by(Spv::IMul, place, bits);
        let word = self.index_op(Spv::ShiftRightLogical, index, (32 / bits).ilog2());
        let (pointer, access) = self.pointer(buf, (Ty::U32, 1), word, 0);
        (pointer, access, [shift, self.m.asm.word(bits)])
    }

    /// A register from an element in memory.
    pub(super) fn widened(&mut self, cell: Ty, dtype: DType, x: Word) -> Word {
        let register = self.m.ty(dtype);
        match cell {
            _ if cell == register => x,
            Ty::U8 | Ty::U16 if dtype.is_signed() => self.m.asm.op(Spv::SConvert, register, &[x]),
            Ty::U8 | Ty::U16 => self.m.asm.op(Spv::UConvert, register, &[x]),
            _ => self.m.asm.op(Spv::Bitcast, register, &[x]),
        }
    }

    /// What memory holds for a register.
    pub(super) fn narrowed(&mut self, cell: Ty, dtype: DType, x: Word) -> Word {
        match cell {
            _ if cell == self.m.ty(dtype) => x,
            Ty::U8 | Ty::U16 => self.m.asm.op(Spv::UConvert, cell, &[x]),
            _ => self.m.asm.op(Spv::Bitcast, cell, &[x]),
        }
    }

    fn load_element(
        &mut self,
        place: &Place,
        dtype: DType,
        index: Index,
        lane: u8,
    ) -> Emitted<Word> {
        let buf = place.buf;
        if place.relaxed && self.sync.is_memory(buf) {
            let (pointer, cell) = self.atomic_place(buf, dtype, index)?;
            let (scope, relaxed) = (self.scope(buf), self.m.asm.word(0));
            let x = self.m.asm.op(Spv::AtomicLoad, cell, &[pointer, scope, relaxed]);
            return Ok(self.widened(cell, dtype, x));
        }
        if self.is_packed(buf, dtype) {
            let (pointer, access, [shift, bits]) = self.field(buf, dtype, index);
            let of = self.m.asm.ty(Ty::U32);
            let word = self.read(of, pointer, access);
            let signed = dtype.is_signed();
            let extract = if signed { Spv::BitFieldSExtract } else { Spv::BitFieldUExtract };
            return Ok(self.m.asm.op(extract, Ty::U32, &[word, shift, bits]));
        }
        let cell = self.cell(buf, dtype);
        let (pointer, access) = self.pointer(buf, (cell, 1), index, lane);
        let of = self.m.asm.ty(cell);
        let x = self.read(of, pointer, access);
        Ok(self.widened(cell, dtype, x))
    }

    fn store_element(
        &mut self,
        place: &Place,
        dtype: DType,
        (index, lane): (Index, u8),
        x: Word,
    ) -> Emitted {
        let buf = place.buf;
        let relaxed = self.m.asm.word(0);
        if place.relaxed && self.sync.is_memory(buf) {
            let (pointer, cell) = self.atomic_place(buf, dtype, index)?;
            let (x, scope) = (self.narrowed(cell, dtype, x), self.scope(buf));
            let operands = [pointer, scope, relaxed, x].map(Operand::IdRef);
            self.m.asm.effect(Spv::AtomicStore, operands.to_vec());
        } else if self.is_packed(buf, dtype) {
            // Nobody else may change these bits, so flipping those that differ stores the element.
            let (pointer, _, [shift, bits]) = self.field(buf, dtype, index);
            let scope = self.scope(buf);
            let seen = self.m.asm.op(Spv::AtomicLoad, Ty::U32, &[pointer, scope, relaxed]);
            let word = self.m.asm.op(Spv::BitFieldInsert, Ty::U32, &[seen, x, shift, bits]);
            let differs = self.m.asm.op(Spv::BitwiseXor, Ty::U32, &[seen, word]);
            self.m.asm.op(Spv::AtomicXor, Ty::U32, &[pointer, scope, relaxed, differs]);
        } else {
            let cell = self.cell(buf, dtype);
            let x = self.narrowed(cell, dtype, x);
            let (pointer, access) = self.pointer(buf, (cell, 1), index, lane);
            self.put(pointer, x, access);
        }
        Ok(())
    }

    /// The index of a whole vector in memory, where an access is one: consecutive 32-bit elements
    /// from a multiple of their number on, guarded together. Buffers begin at such multiples.
    fn whole(&mut self, place: &Place, ty: Type) -> Option<Index> {
        let is_buffer = matches!(self.kernel.op(place.buf), Op::Param { .. });
        let shape = matches!(ty.lanes, 2 | 4) && ty.dtype.bits() == 32;
        let scalar = |v: &Value| !self.kernel.ty(*v).is_vector();
        let is_one = scalar(&place.index) && place.conds.iter().all(scalar);
        let aligned = self.multiples[place.index.idx()].is_multiple_of(ty.lanes.into());
        if !(self.m.target.addresses && !place.relaxed && is_buffer && shape && is_one && aligned) {
            return None;
        }
        let first = self.index(place, Type::scalar(ty.dtype), 0);
        Some(self.index_op(Spv::ShiftRightLogical, first, u32::from(ty.lanes).ilog2()))
    }

    // Statements.

    pub(super) fn loaded(&mut self, value: Value, ty: Type, place: &Place) -> Emitted {
        if place.awaited {
            return Err("no loads that wait".into());
        }
        let mut lanes = Vec::with_capacity(ty.lanes.into());
        if let Some(index) = self.whole(place, ty) {
            let cond = self.guards(place, 0);
            let (index, register) = (self.safe(index, cond), self.m.ty(ty.dtype));
            let (pointer, access) = self.pointer(place.buf, (register, ty.lanes), index, 0);
            let of = self.m.asm.vector(register, ty.lanes);
            let vector = self.read(of, pointer, access);
            for lane in 0..ty.lanes {
                let x = self.m.asm.member(register, vector, lane.into());
                lanes.push(self.or_zero(ty.dtype, cond, x));
            }
        } else {
            for lane in 0..ty.lanes {
                let cond = self.guards(place, lane);
                let index = self.index(place, ty, lane);
                let index = self.safe(index, cond);
                let x = self.load_element(place, ty.dtype, index, lane)?;
                lanes.push(self.or_zero(ty.dtype, cond, x));
            }
        }
        self.define(value, lanes);
        Ok(())
    }

    pub(super) fn stored(&mut self, place: &Place, x: Value) -> Emitted {
        let ty = self.kernel.ty(x);
        let first = self.first_thread(place.buf).map(|cond| self.m.asm.begin_if(cond));
        let whole = self.whole(place, ty);
        for lane in 0..if whole.is_some() { 1 } else { ty.lanes } {
            let cond = self.guards(place, lane);
            let (index, held) = (self.index(place, ty, lane), self.held(x, lane));
            let merge = cond.map(|cond| self.m.asm.begin_if(cond));
            match whole {
                Some(index) => {
                    let register = self.m.ty(ty.dtype);
                    let lanes = (0..ty.lanes).map(|k| Operand::IdRef(self.held(x, k))).collect();
                    let of = self.m.asm.vector(register, ty.lanes);
                    let vector = self.m.asm.with(Spv::CompositeConstruct, of, lanes);
                    let (pointer, access) = self.pointer(place.buf, (register, ty.lanes), index, 0);
                    self.put(pointer, vector, access);
                }
                None => self.store_element(place, ty.dtype, (index, lane), held)?,
            }
            if let Some(merge) = merge {
                self.m.asm.end_if(merge);
            }
        }
        if let Some(merge) = first {
            self.m.asm.end_if(merge);
        }
        Ok(())
    }
}
