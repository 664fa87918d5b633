//! Loads, stores and atomics, with their guards.
//!
//! * A guarded load reads element 0 where the guard does not hold and selects zero: every buffer
//!   has an element, and a selection is cheaper than a branch. Stores and atomics branch.
//! * Elements of 8 and 16 bits are read and written as such where the device has storage of that
//!   width. Where not, the word around the element is read and taken apart, and written by an
//!   atomic that flips those of its bits that change, since neighbours belong to other threads.
//! * A read-modify-write without an instruction is a loop of compare and exchange.

use super::asm::Ty;
use super::body::{Body, Emitted};
use rspirv::dr::Operand;
use rspirv::spirv::{
    BuiltIn, Capability, Decoration, MemoryAccess, Op as Spv, Scope, StorageClass, Word,
};
use rustc_hash::FxHashMap;
use zyx_core::codegen::Place;
use zyx_core::ir::{Access, Op, Order, Space, Type, Value};
use zyx_core::{DType, Scalar};

/// Where the elements of a buffer or an allocation are.
#[derive(Debug)]
pub(super) enum Storage {
    /// A buffer argument, with the types it is looked at through: blocks of arrays, or variables.
    Buffer { slot: u16, access: Access, views: FxHashMap<(Ty, u8), Word> },
    /// An array shared by the group, of elements of this type.
    Shared { variable: Word, ty: Ty },
    /// An array of this thread for each lane.
    Private { variables: Vec<Word> },
}

/// An index in registers: 32 or 64 bits.
#[derive(Clone, Copy)]
pub(super) struct Index {
    pub(super) ty: Ty,
    pub(super) word: Word,
}

impl Body<'_> {
    // Storage.

    pub(super) fn alloc(&mut self, value: Value, space: Space, ty: Type, len: u32) -> Emitted {
        if space == Space::Shared {
            let cell = self.shared_cell(value, ty.dtype);
            let total = len * u32::from(ty.lanes);
            let element = self.m.asm.ty(cell);
            let array = self.m.asm.array(element, total.max(1));
            let variable = self.m.asm.variable(StorageClass::Workgroup, array);
            self.sync.share();
            self.shared_bytes += (total * cell.bytes()) as usize;
            self.storage[value.idx()] = Some(Storage::Shared { variable, ty: cell });
            return Ok(());
        }
        let register = self.m.ty(ty.dtype);
        let element = self.m.asm.ty(register);
        let array = self.m.asm.array(element, len.max(1));
        let variables = (0..ty.lanes).map(|_| self.m.asm.local(array)).collect();
        self.storage[value.idx()] = Some(Storage::Private { variables });
        Ok(())
    }

    /// The type of shared elements: narrow where the device has it and no atomic needs a word.
    pub(super) fn shared_cell(&mut self, value: Value, dtype: DType) -> Ty {
        let is_target = |op: &Op| matches!(op, Op::Atomic { buf, .. } if *buf == value);
        let target = self.m.target;
        let has_atomics = self.kernel.ops().iter().any(is_target);
        match dtype.bits() {
            8 if target.int8 && !has_atomics => {
                self.m.asm.capability(Capability::Int8);
                Ty::U8
            }
            16 if target.int16 && !has_atomics => {
                self.m.asm.capability(Capability::Int16);
                Ty::U16
            }
            8 | 16 => Ty::U32,
            // Atomics on floats exchange their bits.
            _ => match self.m.ty(dtype) {
                Ty::F32 if has_atomics => Ty::U32,
                Ty::F64 if has_atomics => Ty::U64,
                register => register,
            },
        }
    }

    /// What stands for a buffer; made at its first use.
    pub(super) fn storage(&mut self, buf: Value) -> &mut Storage {
        let op = self.kernel.op(buf);
        self.storage[buf.idx()].get_or_insert_with(|| match op {
            Op::Param { slot, access } => {
                Storage::Buffer { slot, access, views: FxHashMap::default() }
            }
            _ => unreachable!("invariant: allocations are made where they stand"),
        })
    }

    /// A buffer as an array of such elements: a block's type, or a variable.
    pub(super) fn view(&mut self, buf: Value, ty: Ty, lanes: u8) -> Word {
        let Storage::Buffer { slot, access, views } = self.storage(buf) else {
            unreachable!("invariant: only buffers are looked at in several ways");
        };
        let (slot, access) = (*slot, *access);
        if let Some(&found) = views.get(&(ty, lanes)) {
            return found;
        }
        let asm = &mut self.m.asm;
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
        let element = if lanes == 1 { asm.ty(ty) } else { asm.vector(ty, lanes.into()) };
        let block = asm.unbounded(element, ty.bytes() * u32::from(lanes));
        if access == Access::Read {
            asm.decorate_member(block, 0, Decoration::NonWritable, &[]);
        }
        let view = if self.m.target.addresses {
            block
        } else {
            let variable = self.m.asm.variable(StorageClass::StorageBuffer, block);
            self.m.asm.decorate(variable, Decoration::DescriptorSet, &[0]);
            self.m.asm.decorate(variable, Decoration::Binding, &[slot.into()]);
            self.m.asm.decorate(variable, Decoration::Aliased, &[]);
            variable
        };
        let Storage::Buffer { views, .. } = self.storage(buf) else { return view };
        views.insert((ty, lanes), view);
        view
    }

    /// Marks what groups exchange through buffers as coherent. Decorations stand apart from what
    /// they decorate, so this is done when it is known.
    pub(super) fn coherence(&mut self) {
        if !self.exchanges {
            return;
        }
        for storage in self.storage.iter().flatten() {
            let Storage::Buffer { access: Access::ReadWrite, views, .. } = storage else {
                continue;
            };
            let mut all: Vec<Word> = views.values().copied().collect();
            all.sort_unstable();
            for view in all {
                match self.m.target.addresses {
                    true => self.m.asm.decorate_member(view, 0, Decoration::Coherent, &[]),
                    false => self.m.asm.decorate(view, Decoration::Coherent, &[]),
                }
            }
        }
    }

    /// A pointer to an element, with what loads and stores through it have to say.
    pub(super) fn pointer(&mut self, buf: Value, ty: Ty, index: Index) -> (Word, Vec<Operand>) {
        self.pointer_to(buf, ty, 1, index)
    }

    /// A pointer to as many elements at once, which the index counts.
    fn pointer_to(&mut self, buf: Value, ty: Ty, lanes: u8, index: Index) -> (Word, Vec<Operand>) {
        let element = match lanes {
            1 => self.m.asm.ty(ty),
            _ => self.m.asm.vector(ty, lanes.into()),
        };
        let zero = self.m.asm.word(0);
        if let Some(Storage::Shared { variable, .. }) = self.storage[buf.idx()] {
            let pointer = self.m.asm.pointer(StorageClass::Workgroup, element);
            let operands = vec![Operand::IdRef(variable), Operand::IdRef(index.word)];
            return (self.m.asm.with(Spv::AccessChain, pointer, operands), Vec::new());
        }
        let view = self.view(buf, ty, lanes);
        let (class, base, access) = if self.m.target.addresses {
            let class = StorageClass::PhysicalStorageBuffer;
            let Op::Param { slot, .. } = self.kernel.op(buf) else {
                unreachable!("invariant: what is not shared is a buffer");
            };
            let address = self.addresses[slot as usize];
            let pointer = self.m.asm.pointer(class, view);
            let base = self.m.asm.with(Spv::ConvertUToPtr, pointer, vec![Operand::IdRef(address)]);
            let aligned = Operand::MemoryAccess(MemoryAccess::ALIGNED);
            (class, base, vec![aligned, Operand::LiteralBit32(ty.bytes() * u32::from(lanes))])
        } else {
            (StorageClass::StorageBuffer, view, Vec::new())
        };
        let pointer = self.m.asm.pointer(class, element);
        let operands = [base, zero, index.word].map(Operand::IdRef).to_vec();
        (self.m.asm.with(Spv::AccessChain, pointer, operands), access)
    }

    // Places and indices.

    /// The guards of lane `lane` as one bool, if there are any.
    pub(super) fn guards(&mut self, place: &Place, lane: u8) -> Option<Word> {
        let mut all: Option<Word> = None;
        for &cond in &place.conds {
            let cond = self.held(cond, lane);
            all = Some(match all {
                Some(others) => self.m.test(Spv::LogicalAnd, &[others, cond]),
                None => cond,
            });
        }
        all
    }

    /// `index op constant` in the index's own width.
    pub(super) fn index_op(&mut self, op: Spv, index: Index, constant: u32) -> Index {
        if constant == 0 && matches!(op, Spv::IAdd | Spv::ShiftRightLogical) {
            return index;
        }
        let constant = self.m.asm.constant(index.ty, constant.into());
        Index { word: self.m.asm.op(op, index.ty, &[index.word, constant]), ..index }
    }

    /// The index of lane `lane` of an access of type `ty`. An element of storage of vectors is as
    /// many elements.
    pub(super) fn index(&mut self, place: &Place, ty: Type, lane: u8) -> Index {
        let of = self.kernel.ty(place.index);
        let held = self.held(place.index, if of.is_vector() { lane } else { 0 });
        let index = Index { ty: self.m.ty(of.dtype), word: held };
        let cell = self.kernel.ty(place.buf).lanes;
        if cell > 1 {
            let private = !self.sync.is_memory(place.buf);
            // Private lanes have arrays of their own.
            let scaled = if private { index } else { self.index_op(Spv::IMul, index, cell.into()) };
            return if private { scaled } else { self.index_op(Spv::IAdd, scaled, lane.into()) };
        }
        if of.is_vector() || ty.lanes == 1 {
            return index;
        }
        self.index_op(Spv::IAdd, index, lane.into())
    }

    /// The index, or 0 where the guards do not hold.
    pub(super) fn safe(&mut self, index: Index, cond: Option<Word>) -> Index {
        let Some(cond) = cond else { return index };
        let zero = self.m.asm.constant(index.ty, 0);
        Index { word: self.m.asm.op(Spv::Select, index.ty, &[cond, index.word, zero]), ..index }
    }

    /// The test for the thread that writes for all where the group acts as one.
    pub(super) fn first_thread(&mut self, buf: Value) -> Option<Word> {
        if !self.sync.is_memory(buf) {
            return None;
        }
        let zero = self.m.asm.word(0);
        let mut all: Option<Word> = None;
        let idle: Vec<usize> = self.sync.idle_axes().collect();
        for axis in idle {
            let position = self.m.asm.builtin(BuiltIn::LocalInvocationId, axis);
            let is_first = self.m.test(Spv::IEqual, &[position, zero]);
            all = Some(match all {
                Some(others) => self.m.test(Spv::LogicalAnd, &[others, is_first]),
                None => is_first,
            });
        }
        all
    }

    // One element.

    pub(super) fn read(&mut self, ty: Ty, pointer: Word, access: Vec<Operand>) -> Word {
        let of = self.m.asm.ty(ty);
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

    /// Whether elements of this dtype in a buffer are parts of words only.
    pub(super) fn is_packed(&self, buf: Value, dtype: DType) -> bool {
        let target = self.m.target;
        let has = match dtype.bits() {
            8 => target.storage8,
            16 => target.storage16,
            _ => true,
        };
        !has && matches!(self.kernel.op(buf), Op::Param { .. })
    }

    /// The type of an element as it is in memory.
    pub(super) fn cell(&self, buf: Value, dtype: DType) -> Ty {
        match self.storage[buf.idx()] {
            Some(Storage::Shared { ty, .. }) => ty,
            _ => match dtype.bits() {
                8 => Ty::U8,
                16 => Ty::U16,
                _ => self.m.ty(dtype),
            },
        }
    }

    /// Where a narrow element is: the index of its word and the distance to shift by.
    pub(super) fn part(&mut self, index: Index, dtype: DType) -> (Index, Word) {
        let per_word = 32 / dtype.bits() as u32;
        let word = self.index_op(Spv::ShiftRightLogical, index, per_word.ilog2());
        let low = match index.ty {
            Ty::U64 => self.m.asm.op(Spv::UConvert, Ty::U32, &[index.word]),
            _ => index.word,
        };
        let (most, bits) = (self.m.asm.word(per_word - 1), self.m.asm.word(dtype.bits() as u32));
        let place = self.m.asm.op(Spv::BitwiseAnd, Ty::U32, &[low, most]);
        (word, self.m.asm.op(Spv::IMul, Ty::U32, &[place, bits]))
    }

    /// A narrow element's bits from the word around it.
    pub(super) fn extracted(&mut self, word: Word, shift: Word, dtype: DType) -> Word {
        let down = self.m.asm.op(Spv::ShiftRightLogical, Ty::U32, &[word, shift]);
        self.widened(Ty::U32, dtype, down)
    }

    /// A register from an element in memory, whose upper bits may be anything.
    pub(super) fn widened(&mut self, cell: Ty, dtype: DType, x: Word) -> Word {
        let unsigned = if dtype.bits() == 8 { DType::U8 } else { DType::U16 };
        match dtype {
            DType::Bool => {
                let wide = if cell == Ty::U32 { x } else { self.convert(Spv::UConvert, x) };
                let byte = self.m.cast(DType::U32, DType::U8, wide);
                self.m.cast(DType::U8, DType::Bool, byte)
            }
            _ if dtype.bits() >= 32 => x,
            _ if cell == Ty::U32 && dtype.is_float() => self.m.cast(DType::U32, unsigned, x),
            _ if cell == Ty::U32 => self.m.cast(DType::U32, dtype, x),
            _ if dtype.is_signed() && !dtype.is_float() => self.convert(Spv::SConvert, x),
            _ => self.convert(Spv::UConvert, x),
        }
    }

    pub(super) fn convert(&mut self, op: Spv, x: Word) -> Word {
        self.m.asm.op(op, Ty::U32, &[x])
    }

    /// What memory holds for a register.
    pub(super) fn narrowed(&mut self, cell: Ty, dtype: DType, x: Word) -> Word {
        let word = match dtype {
            DType::Bool => self.m.cast(dtype, DType::U32, x),
            _ => x,
        };
        let is_narrow = matches!(cell, Ty::U8 | Ty::U16);
        if is_narrow { self.m.asm.op(Spv::UConvert, cell, &[word]) } else { word }
    }

    pub(super) fn load_element(
        &mut self,
        buf: Value,
        dtype: DType,
        index: Index,
        relaxed: bool,
    ) -> Emitted<Word> {
        if relaxed && self.sync.is_memory(buf) {
            return self.load_atomic(buf, dtype, index);
        }
        if self.is_packed(buf, dtype) {
            let (word, shift) = self.part(index, dtype);
            let (pointer, access) = self.pointer(buf, Ty::U32, word);
            let word = self.read(Ty::U32, pointer, access);
            return Ok(self.extracted(word, shift, dtype));
        }
        let cell = self.cell(buf, dtype);
        let (pointer, access) = self.pointer(buf, cell, index);
        let x = self.read(cell, pointer, access);
        Ok(self.lane_of_word(cell, dtype, x))
    }

    /// A register from a whole word or number.
    pub(super) fn lane_of_word(&mut self, ty: Ty, dtype: DType, x: Word) -> Word {
        let register = self.m.ty(dtype);
        if register.is_float() && !ty.is_float() {
            return self.m.asm.op(Spv::Bitcast, register, &[x]);
        }
        self.widened(ty, dtype, x)
    }

    /// A whole word or number from a register.
    pub(super) fn word_of_lane(&mut self, ty: Ty, dtype: DType, x: Word) -> Word {
        let register = self.m.ty(dtype);
        if register.is_float() && !ty.is_float() {
            return self.m.asm.op(Spv::Bitcast, ty, &[x]);
        }
        self.narrowed(ty, dtype, x)
    }

    pub(super) fn store_element(
        &mut self,
        buf: Value,
        dtype: DType,
        index: Index,
        x: Word,
        relaxed: bool,
    ) -> Emitted {
        let is_atomic = relaxed && self.sync.is_memory(buf);
        if self.is_packed(buf, dtype) || is_atomic && dtype.bits() < 32 {
            let (pointer, shift, _) = self.atomic_word(buf, dtype, index)?;
            let Some(shift) = shift else {
                return self.store_plain(buf, dtype, index, x);
            };
            let scope = self.scope(buf);
            if is_atomic {
                return self
                    .exchange(None, dtype, (pointer, Ty::U32), Some(shift), scope, x)
                    .map(drop);
            }
            // Nobody else may change these bits, so flipping those that differ stores the element.
            let relaxed = self.m.asm.word(0);
            let seen = self.m.asm.op(Spv::AtomicLoad, Ty::U32, &[pointer, scope, relaxed]);
            let word = self.narrowed(Ty::U32, dtype, x);
            let word = self.m.asm.op(Spv::ShiftLeftLogical, Ty::U32, &[word, shift]);
            let differs = self.m.asm.op(Spv::BitwiseXor, Ty::U32, &[seen, word]);
            let mask = self.m.asm.word((1 << dtype.bits()) - 1);
            let mask = self.m.asm.op(Spv::ShiftLeftLogical, Ty::U32, &[mask, shift]);
            let differs = self.m.asm.op(Spv::BitwiseAnd, Ty::U32, &[differs, mask]);
            self.m.asm.op(Spv::AtomicXor, Ty::U32, &[pointer, scope, relaxed, differs]);
            return Ok(());
        }
        if is_atomic {
            let (pointer, _, word) = self.atomic_word(buf, dtype, index)?;
            let ty = self.atomic_ty(buf, dtype, word);
            let bits = self.word_of_lane(ty, dtype, x);
            let (scope, relaxed) = (self.scope(buf), self.m.asm.word(0));
            let operands = vec![
                Operand::IdRef(pointer),
                Operand::IdScope(scope),
                Operand::IdMemorySemantics(relaxed),
                Operand::IdRef(bits),
            ];
            self.m.asm.effect(Spv::AtomicStore, operands);
            return Ok(());
        }
        self.store_plain(buf, dtype, index, x)
    }

    pub(super) fn store_plain(
        &mut self,
        buf: Value,
        dtype: DType,
        index: Index,
        x: Word,
    ) -> Emitted {
        let cell = self.cell(buf, dtype);
        let value = self.word_of_lane(cell, dtype, x);
        let (pointer, access) = self.pointer(buf, cell, index);
        self.put(pointer, value, access);
        Ok(())
    }

    /// A pointer to a private element.
    pub(super) fn private(&mut self, buf: Value, lane: u8, index: Index) -> Option<Word> {
        let Some(Storage::Private { variables }) = &self.storage[buf.idx()] else { return None };
        let variable = variables[lane as usize % variables.len()];
        let register = self.m.ty(self.kernel.ty(buf).dtype);
        let element = self.m.asm.ty(register);
        let pointer = self.m.asm.pointer(StorageClass::Function, element);
        let operands = vec![Operand::IdRef(variable), Operand::IdRef(index.word)];
        Some(self.m.asm.with(Spv::AccessChain, pointer, operands))
    }

    // Several elements at once.

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

    fn load_whole(&mut self, place: &Place, ty: Type, index: Index) -> Vec<Word> {
        let cond = self.guards(place, 0);
        let index = self.safe(index, cond);
        let register = self.m.ty(ty.dtype);
        let (pointer, access) = self.pointer_to(place.buf, register, ty.lanes, index);
        let of = self.m.asm.vector(register, ty.lanes.into());
        let operands = std::iter::once(Operand::IdRef(pointer)).chain(access).collect();
        let vector = self.m.asm.with(Spv::Load, of, operands);
        let element = self.m.asm.ty(register);
        let zero = self.m.literal(Scalar::from_bits(ty.dtype, 0));
        let lane = |k: u8| {
            let x = self.m.asm.member(element, vector, k.into());
            cond.map_or(x, |cond| self.m.select(ty.dtype, cond, x, zero))
        };
        (0..ty.lanes).map(lane).collect()
    }

    fn store_whole(&mut self, place: &Place, ty: Type, index: Index, x: Value) {
        let register = self.m.ty(ty.dtype);
        let lanes = (0..ty.lanes).map(|k| Operand::IdRef(self.held(x, k))).collect();
        let of = self.m.asm.vector(register, ty.lanes.into());
        let vector = self.m.asm.with(Spv::CompositeConstruct, of, lanes);
        let merge = self.guards(place, 0).map(|cond| self.m.asm.begin_if(cond));
        let (pointer, access) = self.pointer_to(place.buf, register, ty.lanes, index);
        self.put(pointer, vector, access);
        if let Some(merge) = merge {
            self.m.asm.end_if(merge);
        }
    }

    // Statements.

    pub(super) fn load(
        &mut self,
        value: Value,
        ty: Type,
        order: Order,
        buf: Value,
        index: Value,
    ) -> Emitted {
        let place = Place::of(self.kernel, order, buf, index)?;
        let barrier = self.sync.load(buf)?;
        self.synchronise(barrier);
        if let Some(index) = self.whole(&place, ty) {
            let lanes = self.load_whole(&place, ty, index);
            self.define(value, lanes);
            return Ok(());
        }
        let mut lanes = Vec::with_capacity(ty.lanes.into());
        for lane in 0..ty.lanes {
            let cond = self.guards(&place, lane);
            let index = self.index(&place, ty, lane);
            let index = self.safe(index, cond);
            let x = match self.private(buf, lane, index) {
                Some(pointer) => {
                    let register = self.m.ty(ty.dtype);
                    self.read(register, pointer, Vec::new())
                }
                None => self.load_element(buf, ty.dtype, index, place.relaxed)?,
            };
            lanes.push(match cond {
                Some(cond) => {
                    let zero = self.m.literal(Scalar::from_bits(ty.dtype, 0));
                    self.m.select(ty.dtype, cond, x, zero)
                }
                None => x,
            });
        }
        self.define(value, lanes);
        Ok(())
    }

    pub(super) fn store(&mut self, order: Order, buf: Value, index: Value, x: Value) -> Emitted {
        let place = Place::of(self.kernel, order, buf, index)?;
        let barrier = self.sync.write(buf)?;
        self.synchronise(barrier);
        let ty = self.kernel.ty(x);
        let first = self.first_thread(buf);
        let first = first.map(|cond| self.m.asm.begin_if(cond));
        let whole = self.whole(&place, ty);
        if let Some(index) = whole {
            self.store_whole(&place, ty, index, x);
        }
        let lanes = if whole.is_some() { 0 } else { ty.lanes };
        for lane in 0..lanes {
            let held = self.held(x, lane);
            let cond = self.guards(&place, lane);
            let index = self.index(&place, ty, lane);
            let merge = cond.map(|cond| self.m.asm.begin_if(cond));
            match self.private(buf, lane, index) {
                Some(pointer) => self.put(pointer, held, Vec::new()),
                None => self.store_element(buf, ty.dtype, index, held, place.relaxed)?,
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
