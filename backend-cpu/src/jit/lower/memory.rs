//! Loads, stores, guards and storage.
//!
//! Where operands may be in memory, a load is not emitted where it stands: it stays pending until its
//! value is needed, so that a single use can read memory itself. Stores, atomics and region boundaries flush what is
//! pending, which keeps the order of accesses.
//!
//! A guard becomes a branch around the access (scalar conditions) or a masked access (vectors).
//! Accesses the hardware has no instruction for (narrow gathers, masked narrow elements and scatters
//! on AVX2, all of them on NEON) go lane by lane.

use super::super::machine::{
    Addr, Bools, Class, Cond, ConstData, Effect, Extend, Inst, Operand, Place, Reg, Shape, Size,
    Test, VecInst, Vop,
};
use super::super::x86::asm::VOp;
use super::address::{Affine, Root};
use super::vector::is_vector_scalar;
use super::{EmitError, Lower, MAX_FRAME, Result, Storage, Val, len_of};
use crate::facts::Slot;
use zyx_core::DType;
use zyx_core::ir::{Access, Op, ParamInfo, Space, Type, Value};

/// Which lanes an access touches.
#[derive(Default)]
pub(super) struct Guard {
    /// Conditions for the access as a whole.
    pub(super) tests: Vec<Test>,
    /// One condition per lane.
    pub(super) lanes: Option<Value>,
    /// Never.
    pub(super) never: bool,
}

/// Where the elements of an access lie.
pub(super) enum Spot {
    /// One after the other, or a single one.
    Row(Affine),
    /// All lanes at one place.
    Same(Affine),
    /// At these indices, `i32` or `i64` by the type of the value.
    Scattered(Value),
}

impl Lower<'_> {
    // ---- storage -----------------------------------------------------------------------------

    pub(super) fn alloc(&mut self, value: Value, space: Space, ty: Type, len: u32) -> Result<()> {
        if let Some(Slot(first)) = self.facts.promoted[value.idx()] {
            let class = match (ty.dtype, ty.lanes) {
                (DType::Bool, 2..) => Class::Mask,
                (dtype, 1) if !is_vector_scalar(dtype) => Class::Gpr,
                _ => Class::Vec,
            };
            self.len(ty)?;
            for slot in first..first + len {
                let dst = self.new_reg(class);
                self.push(Inst::Undef { dst });
                self.slots[slot as usize] = dst;
            }
            return Ok(());
        }
        let bytes = ty.bytes() * len as usize;
        let storage = if bytes > MAX_FRAME || space == Space::Shared {
            let start = self.scratch.next_multiple_of(64);
            self.scratch = start + bytes;
            Storage::Scratch(start as i64)
        } else {
            Storage::Frame(self.frame_place(bytes))
        };
        self.storage.insert(value.0, storage);
        Ok(())
    }

    /// A place of its own in the stack frame.
    pub(super) fn frame_place(&mut self, bytes: usize) -> i32 {
        let place = self.frame.next_multiple_of(64);
        self.frame = place + bytes as u32;
        place as i32
    }

    // ---- pending loads -----------------------------------------------------------------------

    /// Emits a pending load.
    pub(super) fn force(&mut self, value: Value, addr: Addr) {
        self.pending.retain(|it| *it != value);
        let ty = self.ty(value);
        let val = if ty.lanes == 1 && !is_vector_scalar(ty.dtype) {
            self.load_scalar(addr, ty.dtype)
        } else {
            let dst = self.target(value);
            self.load_to(value, dst, addr, ty)
        };
        self.set(value, val);
    }

    /// Emits all pending loads.
    pub(super) fn flush(&mut self) {
        for value in std::mem::take(&mut self.pending) {
            if let Val::Pending(addr) = self.val(value) {
                self.force(value, addr);
            }
        }
    }

    /// Loads a scalar of any dtype.
    pub(super) fn load_scalar(&mut self, addr: Addr, dtype: DType) -> Val {
        if is_vector_scalar(dtype) {
            let dst = self.new_vec();
            self.load_bytes(dst, addr, dtype.size());
            return Val::Vec(dst);
        }
        let dst = self.new_reg(Class::Gpr);
        self.push(Inst::Extend { kind: extension(dtype), dst, src: addr.into() });
        if dtype == DType::I64 { self.atom_val(dst) } else { Val::Gpr(dst) }
    }

    /// Loads a float scalar or a vector of consecutive elements into `dst`, or a bool vector into
    /// a register of its own.
    fn load_to(&mut self, value: Value, dst: Reg, addr: Addr, ty: Type) -> Val {
        if ty.dtype == DType::Bool && ty.is_vector() {
            let bytes = self.new_vec();
            self.load_bytes(bytes, addr, ty.bytes());
            let bytes_ty = ty.with(DType::U8);
            // The type was checked to fit when the load was lowered.
            return match self.elements_to_bools(value, bytes, bytes_ty) {
                Ok(()) => self.val(value),
                Err(_) => Val::None,
            };
        }
        self.load_bytes(dst, addr, ty.bytes());
        Val::Vec(dst)
    }

    /// Loads a power of two of bytes.
    pub(super) fn load_bytes(&mut self, dst: Reg, addr: Addr, bytes: usize) {
        self.push(Inst::VecLoad { dst, addr, bytes: bytes as u8 });
    }

    pub(super) fn store_bytes(&mut self, addr: Addr, src: Reg, bytes: usize) {
        self.push(Inst::VecStore { addr, src, bytes: bytes as u8 });
    }

    /// Stores a value of any type as it lies in memory.
    pub(super) fn store_value(&mut self, addr: Addr, value: Value) -> Result<()> {
        let ty = self.ty(value);
        if ty.lanes == 1 {
            if is_vector_scalar(ty.dtype) {
                let src = self.vec(value)?;
                self.store_bytes(addr, src, ty.bytes());
            } else {
                let src = self.gpr(value);
                let width = ty.dtype.size().trailing_zeros() as u8;
                self.push(Inst::Store { width, addr, src });
            }
            return Ok(());
        }
        self.len(ty)?;
        let src =
            if ty.dtype == DType::Bool { self.bools_to_bytes(value)? } else { self.vec(value)? };
        self.store_bytes(addr, src, ty.bytes());
        Ok(())
    }

    /// The value of type `ty` that lies at `addr`, loaded now.
    pub(super) fn load_value(&mut self, value: Value, addr: Addr) -> Result<()> {
        let ty = self.ty(value);
        self.len(ty)?;
        self.force(value, addr);
        Ok(())
    }

    // ---- accesses ----------------------------------------------------------------------------

    /// Conditions of an index, and the index without them.
    pub(super) fn guard(&mut self, index: Value) -> Result<(Value, Guard)> {
        let (mut index, mut guard) = (index, Guard::default());
        while let Op::Guard { index: inner, cond } = self.kernel.op(index) {
            index = inner;
            match self.val(cond) {
                Val::Const(bits) if bits & 1 == 0 => guard.never = true,
                Val::Const(_) => {}
                _ if self.ty(cond).lanes == 1 => self.tests(cond, &mut guard.tests)?,
                _ if guard.lanes.is_none() => guard.lanes = Some(cond),
                _ => return Err(EmitError::new("two vector guards on one access")),
            }
        }
        Ok((index, guard))
    }

    pub(super) fn spot(&mut self, index: Value, lanes: u8) -> Spot {
        if self.ty(index).lanes == 1 {
            return Spot::Row(self.affine(index));
        }
        match self.val(index) {
            Val::Ramp(base, 1) => Spot::Row(self.affines[base as usize].clone()),
            Val::Ramp(base, 0) if lanes > 1 => Spot::Same(self.affines[base as usize].clone()),
            _ => Spot::Scattered(index),
        }
    }

    pub(super) fn check(&self, ty: Type) -> Result<()> {
        self.len(ty)?;
        if !ty.lanes.is_power_of_two() {
            return Err(EmitError::new("a vector whose length is no power of two"));
        }
        Ok(())
    }

    pub(super) fn load(&mut self, value: Value, buf: Value, index: Value, ty: Type) -> Result<()> {
        if let Some(Slot(slot)) = self.facts.slot(self.kernel, buf, index) {
            self.load_slot(value, self.slots[slot as usize], ty);
            return Ok(());
        }
        self.check(ty)?;
        let (index, guard) = self.guard(index)?;
        if guard.never {
            self.set(value, Val::Const(0));
            return Ok(());
        }
        let root = self.root(buf)?;
        let spot = self.spot(index, ty.lanes);
        let element = self.element(buf, ty);
        if let Some(first) = self.every_second(&spot, ty)
            && let Some((tests, lanes)) = self.known_guard(&guard, ty.lanes)?
        {
            return self.load_every_second(value, root, &first, ty, (&tests, lanes));
        }
        match (spot, guard.lanes) {
            (Spot::Row(index), None) => {
                let addr = self.address(root, &index, element);
                if guard.tests.is_empty() {
                    self.fetch_ahead(value, root, &index, ty);
                    self.set(value, Val::Pending(addr));
                    self.pending.push(value);
                    if !self.isa.folds_memory() {
                        self.force(value, addr);
                    }
                } else {
                    self.load_guarded(value, addr, ty, &guard.tests)?;
                }
                Ok(())
            }
            (Spot::Row(index), Some(cond)) if self.can_mask(ty) => {
                let mask = self.access_mask(Some(cond), &guard.tests, ty)?;
                let addr = self.address(root, &index, element);
                let addr = self.address_if_any(addr, root, mask, ty)?;
                let dst = self.load_masked(addr, ty, mask);
                self.set(value, Val::Vec(dst));
                Ok(())
            }
            (Spot::Same(index), None) if guard.tests.is_empty() && ty.dtype != DType::Bool => {
                let addr = self.address(root, &index, element);
                let shape = Shape::ints(ty.dtype.size(), ty.lanes.into());
                let dst = self.target(value);
                let from = self.element_place(addr, ty.dtype.size());
                self.vop_to(Vop::Broadcast, shape, dst, Reg::NONE, from);
                self.set(value, Val::Vec(dst));
                Ok(())
            }
            (Spot::Scattered(index), cond) if self.can_gather(ty, index) => {
                let masked = cond.is_some() || !guard.tests.is_empty();
                let mask = match masked {
                    true => Some(self.access_mask(cond, &guard.tests, ty)?),
                    false => None,
                };
                self.gather(value, root, index, ty, mask)
            }
            (spot, cond) => self.load_lanes(value, root, spot, ty, cond, &guard.tests),
        }
    }

    /// What a broadcast reads: the element itself, or the start of a register.
    fn element_place(&mut self, addr: Addr, size: usize) -> Place {
        if self.isa.folds_memory() {
            return addr.into();
        }
        let first = self.new_vec();
        self.load_bytes(first, addr, size);
        first.into()
    }

    /// Bytes between consecutive indices: an `Alloc` of vectors counts whole vectors.
    pub(super) fn element(&self, buf: Value, ty: Type) -> usize {
        let of = self.ty(buf);
        if of.is_vector() { of.bytes() } else { ty.dtype.size() }
    }

    fn load_slot(&mut self, value: Value, slot: Reg, ty: Type) {
        let class = self.classes[slot.0 as usize];
        let alias = self.facts.alias[value.idx()] && class == Class::Vec;
        let reg = if alias { slot } else { self.new_reg(class) };
        if !alias {
            self.copy_slot(class, reg, slot);
        }
        match class {
            Class::Gpr if ty.dtype == DType::I64 => {
                let val = self.atom_val(reg);
                self.set(value, val);
            }
            Class::Gpr => self.set(value, Val::Gpr(reg)),
            Class::Vec => self.set(value, Val::Vec(reg)),
            Class::Mask => self.set(value, Val::Mask(reg)),
        }
    }

    fn copy_slot(&mut self, class: Class, dst: Reg, src: Reg) {
        match class {
            Class::Gpr => self.push(Inst::Move { dst, src }),
            Class::Vec => self.move_vec(dst, src),
            Class::Mask => self.push(Inst::MoveMask { dst, src }),
        }
    }

    pub(super) fn store(
        &mut self,
        buf: Value,
        index: Value,
        value: Value,
        streaming: bool,
    ) -> Result<()> {
        if let Some(Slot(slot)) = self.facts.slot(self.kernel, buf, index) {
            self.finish_half()?;
            return self.store_slot(self.slots[slot as usize], value);
        }
        let ty = self.ty(value);
        self.check(ty)?;
        let (index, guard) = self.guard(index)?;
        // The stored value may be pending itself: it is read before anything is written.
        self.settle_all(value)?;
        self.flush();
        if guard.never {
            return Ok(());
        }
        let root = self.root(buf)?;
        let spot = self.spot(index, ty.lanes);
        let element = self.element(buf, ty);
        let plain = guard.lanes.is_none() && guard.tests.is_empty();
        if let Some(first) = self.every_second(&spot, ty).filter(|_| plain) {
            return self.store_every_second(root, first, (index, value));
        }
        self.finish_half()?;
        match (spot, guard.lanes) {
            (Spot::Row(affine), None) => {
                let addr = self.address(root, &affine, element);
                let streaming = streaming || self.streams(buf);
                if streaming && guard.tests.is_empty() && self.is_aligned(root, &affine, ty) {
                    return self.store_streaming(addr, value);
                }
                let end = self.branch_around(&guard.tests);
                self.store_value(addr, value)?;
                self.bind(end);
                Ok(())
            }
            (Spot::Row(affine), Some(cond)) if self.can_mask(ty) => {
                let mask = self.access_mask(Some(cond), &guard.tests, ty)?;
                let addr = self.address(root, &affine, element);
                self.store_masked(addr, value, mask)
            }
            (Spot::Scattered(index), cond)
                if self.isa.has_masks() && self.can_gather(ty, index) =>
            {
                let masked = cond.is_some() || !guard.tests.is_empty();
                let mask = match masked {
                    true => Some(self.access_mask(cond, &guard.tests, ty)?),
                    false => None,
                };
                self.scatter(root, index, value, mask)
            }
            (spot, cond) => self.store_lanes(root, spot, value, cond, &guard.tests),
        }
    }

    /// Computes what storing `value` needs while no branch is open.
    fn settle_all(&mut self, value: Value) -> Result<()> {
        let ty = self.ty(value);
        if ty.dtype == DType::Bool && ty.is_vector() {
            return Ok(());
        }
        if ty.lanes == 1 && !is_vector_scalar(ty.dtype) {
            match self.val(value) {
                Val::Pending(addr) => self.force(value, addr),
                // Its register is kept for later uses, which may come behind the branch.
                Val::Affine(_) => drop(self.gpr(value)),
                _ => {}
            }
        } else if matches!(self.val(value), Val::Pending(_) | Val::Const(_)) {
            // Likewise that of a constant.
            self.vec(value)?;
        }
        Ok(())
    }

    fn store_slot(&mut self, slot: Reg, value: Value) -> Result<()> {
        match self.classes[slot.0 as usize] {
            Class::Gpr => {
                let src = self.gpr(value);
                self.push(Inst::Move { dst: slot, src });
            }
            Class::Vec => {
                if let Val::Const(bits) = self.val(value) {
                    // Made in place: the constant need not occupy a register.
                    let size = self.ty(value).dtype.size() as u8;
                    let data = ConstData::Splat { bits, size };
                    let id = self.constant_id(data);
                    self.push(Inst::Const { dst: slot, id });
                    return Ok(());
                }
                let src = self.vec(value)?;
                self.move_vec(slot, src);
            }
            Class::Mask => {
                let src = self.mask(value)?;
                self.push(Inst::MoveMask { dst: slot, src });
            }
        }
        Ok(())
    }

    // ---- guards ------------------------------------------------------------------------------

    pub(super) fn branch_around(&mut self, tests: &[Test]) -> Option<super::Label> {
        if tests.is_empty() {
            return None;
        }
        let label = self.new_label();
        for test in tests {
            self.push(Inst::Branch { test: test.not(), label });
        }
        Some(label)
    }

    pub(super) fn bind(&mut self, label: Option<super::Label>) {
        if let Some(label) = label {
            self.push(Inst::Label { label });
        }
    }

    /// Zero, replaced by what is loaded if all tests hold.
    fn load_guarded(&mut self, value: Value, addr: Addr, ty: Type, tests: &[Test]) -> Result<()> {
        if ty.lanes == 1 && !is_vector_scalar(ty.dtype) {
            let dst = self.imm(0);
            let end = self.branch_around(tests);
            self.push(Inst::Extend { kind: extension(ty.dtype), dst, src: addr.into() });
            self.bind(end);
            self.set_gpr(value, dst);
            return Ok(());
        }
        let dst = self.new_vec();
        self.zero_vec(dst);
        let end = self.branch_around(tests);
        self.load_bytes(dst, addr, ty.bytes());
        self.bind(end);
        if ty.dtype == DType::Bool {
            return self.elements_to_bools(value, dst, ty.with(DType::U8));
        }
        self.set(value, Val::Vec(dst));
        Ok(())
    }

    /// Whether elements of this type can be loaded and stored under a mask.
    fn can_mask(&self, ty: Type) -> bool {
        let wide_enough = ty.dtype.size() >= 4;
        ty.is_vector()
            && ty.dtype != DType::Bool
            && self.isa.masks_memory()
            && (self.isa.has_masks() || wide_enough)
    }

    /// `bits` if all tests hold, else zero.
    pub(super) fn zero_unless(&mut self, bits: Reg, tests: &[Test]) -> Reg {
        let size = Size::B64;
        let zero = self.imm(0);
        tests.iter().fold(bits, |x, &test| {
            let dst = self.new_reg(Class::Gpr);
            self.push(Inst::Select { size, dst, test, x, y: zero });
            dst
        })
    }

    /// A mask of all lanes or none (AVX-512), or elements all ones or zero.
    fn splat_tests(&mut self, tests: &[Test], ty: Type) -> Result<Reg> {
        let ones = self.imm(u64::MAX);
        let bits = self.zero_unless(ones, tests);
        if self.isa.has_masks() {
            return Ok(self.mask_from_gpr(bits, ty.lanes));
        }
        Ok(self.broadcast_gpr(bits, Shape::ints(8, ty.bytes().div_ceil(8))))
    }

    /// The mask of an access of `ty`: lanes where `cond` and all tests hold, none beyond the
    /// vector. A mask register, or elements as wide as those of `ty`.
    fn access_mask(&mut self, cond: Option<Value>, tests: &[Test], ty: Type) -> Result<Reg> {
        let len = self.len(ty)?;
        let Some(cond) = cond else { return self.splat_tests(tests, ty) };
        let short = ty.bytes() < 16;
        if self.isa.has_masks() {
            let mask = self.mask(cond)?;
            if !short && tests.is_empty() {
                return Ok(mask);
            }
            let bits = self.mask_bits(mask, ty.lanes);
            let bits = self.zero_unless(bits, tests);
            return Ok(self.mask_from_gpr(bits, ty.lanes));
        }
        let mut mask = self.wide(cond, ty.dtype.size())?;
        if !tests.is_empty() {
            let all = self.splat_tests(tests, ty)?;
            mask = self.vec3(VOp::Vpandd, len, mask, all);
        }
        if short {
            let keep = vec![0xff; ty.bytes()].into_iter().chain(vec![0; 64 - ty.bytes()]).collect();
            let keep = self.constant_reg(ConstData::Bytes(keep));
            mask = self.vec3(VOp::Vpandd, len, mask, keep);
        }
        Ok(mask)
    }

    /// The address of a masked load, or the start of the buffer if no lane takes part. Such an address may lie outside of
    /// all memory, and a processor takes hundreds of cycles to find out that nothing is read there.
    fn address_if_any(&mut self, addr: Addr, root: Root, mask: Reg, ty: Type) -> Result<Addr> {
        let len = self.len(ty)?;
        let bits = match self.isa.bools() {
            Bools::MaskRegister => self.mask_bits(mask, ty.lanes),
            Bools::WideLanes if ty.dtype.size() == 8 => self.read_gpr(VOp::Vmovmskpd, len, mask),
            Bools::WideLanes => self.read_gpr(VOp::Vmovmskps, len, mask),
        };
        let size = Size::B64;
        let test = Test { size, cond: Cond::NotEqual, a: bits, b: Operand::Imm(0) };
        let start = self.address(root, &Affine::default(), 1);
        let (x, y) = (self.address_reg(addr), self.address_reg(start));
        let dst = self.new_reg(Class::Gpr);
        self.push(Inst::Select { size, dst, test, x, y });
        Ok(Addr::at(dst, 0))
    }

    pub(super) fn load_masked(&mut self, addr: Addr, ty: Type, mask: Reg) -> Reg {
        let len = len_of(ty.bytes()).expect("invariant: the type was checked to fit");
        let size = ty.dtype.size();
        match self.isa.bools() {
            Bools::MaskRegister => {
                let op = [VOp::Vmovdqu8, VOp::Vmovdqu16, VOp::Vmovups, VOp::Vmovupd];
                self.vec2_zeroed(op[size.trailing_zeros() as usize], len, mask, addr)
            }
            Bools::WideLanes => {
                let op = if size == 4 { VOp::Vmaskmovps } else { VOp::Vmaskmovpd };
                self.vec3(op, len, mask, addr)
            }
        }
    }

    fn store_masked(&mut self, addr: Addr, value: Value, mask: Reg) -> Result<()> {
        let ty = self.ty(value);
        let (len, size) = (self.len(ty)?, ty.dtype.size());
        let reg = self.vec(value)?;
        let it = match self.isa.bools() {
            Bools::MaskRegister => {
                let op =
                    [VOp::Vmovdqu8Store, VOp::Vmovdqu16Store, VOp::VmovupsStore, VOp::VmovupdStore];
                let op = op[size.trailing_zeros() as usize];
                VecInst { reg, mask, effect: Effect::Store, ..VecInst::new(op, len, addr) }
            }
            Bools::WideLanes => {
                let op = if size == 4 { VOp::VmaskmovpsStore } else { VOp::VmaskmovpdStore };
                VecInst { reg, vvvv: mask, effect: Effect::Store, ..VecInst::new(op, len, addr) }
            }
        };
        self.push(Inst::Vec(it));
        Ok(())
    }

    // ---- streaming ---------------------------------------------------------------------------

    /// Whether `buf` is only written and large, and what the kernel touches does not fit any cache.
    fn streams(&self, buf: Value) -> bool {
        let Op::Param { slot, access: Access::Write } = self.kernel.op(buf) else { return false };
        let bytes = |info: &ParamInfo| info.len.saturating_mul(info.dtype.size() as u64);
        let all = self.kernel.params().iter().map(bytes).fold(0, u64::saturating_add);
        all >= self.stream_from
            && bytes(&self.kernel.params()[slot as usize]) >= self.stream_from / 4
    }

    /// Whether every address of this access is a multiple of the vector's length: arguments start
    /// at multiples of 64, and so does everything the index can add.
    fn is_aligned(&self, root: Root, index: &Affine, ty: Type) -> bool {
        let bytes = ty.bytes() as i64;
        let multiple = |n: i64| n.wrapping_mul(ty.dtype.size() as i64) % bytes == 0;
        matches!(root, Root::Pointer(_, 0))
            && bytes >= 32
            && ty.dtype != DType::Bool
            && multiple(index.constant)
            && index.terms.iter().all(|&(_, factor)| multiple(factor))
    }

    fn store_streaming(&mut self, addr: Addr, value: Value) -> Result<()> {
        let len = self.len(self.ty(value))?;
        let src = self.vec(value)?;
        self.vec_store(VOp::VmovntpsStore, len, addr, src, 0);
        self.streaming = true;
        Ok(())
    }
}

/// How a scalar is extended when it is loaded.
const fn extension(dtype: DType) -> Extend {
    match dtype {
        DType::I8 => Extend::Sign8,
        DType::I16 => Extend::Sign16,
        DType::Bool | DType::U8 => Extend::Zero8,
        DType::U16 | DType::F16 | DType::BF16 => Extend::Zero16,
        DType::I32 | DType::U32 | DType::F32 => Extend::Zero32,
        DType::I64 | DType::U64 | DType::F64 => Extend::None64,
    }
}
