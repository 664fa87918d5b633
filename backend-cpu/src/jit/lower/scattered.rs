//! Accesses whose lanes lie apart: gathers, and whatever has no instruction, lane by lane.
//!
//! A gather of 32- or 64-bit elements by 32- or 64-bit indices is one instruction on x86. Everything
//! else goes through the stack frame: indices, conditions and elements are laid out there, and each
//! lane is moved by itself, in order, so that of several stores to one place the last lane wins.
//! Machines without gathers join lanes in registers.
//! Atomics are calls with the address of each lane.

use super::super::machine::{
    Addr, Base, Class, Effect, Extend, Has, Inst, Place, Reg, Shape, Size, Test, VecInst, Vop,
};
use super::super::x86::asm::{Len, VOp};
use super::address::{Affine, Root};
use super::memory::Spot;
use super::{Lower, Result, Val, len_of};
use zyx_core::ir::{Type, Value};
use zyx_core::{BinaryOp, DType};

impl Lower<'_> {
    pub(super) fn can_gather(&self, ty: Type, index: Value) -> bool {
        let index = self.ty(index);
        let by = matches!(index.dtype, DType::I32 | DType::I64 | DType::U64);
        let fits = index.bytes() <= self.isa.vector_bytes();
        self.isa.has(Has::Gather)
            && by
            && fits
            && ty.dtype.size() >= 4
            && index.bytes() >= 16
            && ty.bytes() >= 16
    }

    /// One gather. Its mask is cleared by the instruction, so it gets a copy.
    pub(super) fn gather(
        &mut self,
        value: Value,
        root: Root,
        index: Value,
        ty: Type,
        mask: Option<Reg>,
    ) -> Result<()> {
        let index_ty = self.ty(index);
        let len = len_of(index_ty.bytes().max(ty.bytes()))?;
        let by = self.vec(index)?;
        let shift = ty.dtype.size().trailing_zeros() as u8;
        let at = self.address(root, &Affine::default(), 1);
        let rm = Place::Mem(Addr { index: by, shift, ..at });
        let dst = self.new_vec();
        self.zero_vec(dst);
        let long = index_ty.dtype.size() == 8;
        let op = match (long, shift, self.isa.has_masks()) {
            (false, 2, true) => VOp::VgatherdpsMask,
            (false, _, true) => VOp::VgatherdpdMask,
            (true, 2, true) => VOp::VgatherqpsMask,
            (true, _, true) => VOp::VgatherqpdMask,
            (false, 2, false) => VOp::Vgatherdps,
            (false, _, false) => VOp::Vgatherdpd,
            (true, 2, false) => VOp::Vgatherqps,
            (true, _, false) => VOp::Vgatherqpd,
        };
        // The length bit is that of the wider of index and element.
        let it = VecInst { reg: dst, effect: Effect::Gather, ..VecInst::new(op, len, rm) };
        if self.isa.has_masks() {
            let copy = self.fresh_mask(mask, ty.lanes);
            self.push(Inst::Vec(VecInst { mask: copy, ..it }));
        } else {
            let copy = self.new_vec();
            match mask {
                Some(src) => self.move_vec(copy, src),
                None => {
                    let ones = self.splat_const(u64::MAX, 8);
                    self.move_vec(copy, ones);
                }
            }
            self.push(Inst::Vec(VecInst { vvvv: copy, ..it }));
        }
        self.set(value, Val::Vec(dst));
        Ok(())
    }

    /// One scatter (AVX-512): of several lanes with one index the last wins.
    pub(super) fn scatter(
        &mut self,
        root: Root,
        index: Value,
        value: Value,
        mask: Option<Reg>,
    ) -> Result<()> {
        let (index_ty, ty) = (self.ty(index), self.ty(value));
        let len = len_of(index_ty.bytes().max(ty.bytes()))?;
        let (by, reg) = (self.vec(index)?, self.vec(value)?);
        let shift = ty.dtype.size().trailing_zeros() as u8;
        let at = self.address(root, &Affine::default(), 1);
        let rm = Place::Mem(Addr { index: by, shift, ..at });
        let op = match (index_ty.dtype.size(), shift) {
            (4, 2) => VOp::Vpscatterdd,
            (4, _) => VOp::Vpscatterdq,
            (_, 2) => VOp::Vpscatterqd,
            _ => VOp::Vpscatterqq,
        };
        let mask = self.fresh_mask(mask, ty.lanes);
        let it = VecInst { reg, mask, effect: Effect::Scatter, ..VecInst::new(op, len, rm) };
        self.push(Inst::Vec(it));
        Ok(())
    }

    /// A mask register that an instruction may clear.
    fn fresh_mask(&mut self, mask: Option<Reg>, lanes: u8) -> Reg {
        let copy = self.new_reg(Class::Mask);
        match mask {
            Some(src) => self.push(Inst::MoveMask { dst: copy, src }),
            None => {
                let all = self.imm(super::mask::lane_bits(lanes));
                let it = VecInst::new(VOp::KmovwFromGpr, Len::X, all);
                self.push(Inst::Vec(VecInst { reg: copy, ..it }));
            }
        }
        copy
    }

    // ---- lane by lane ------------------------------------------------------------------------

    /// Addresses of all lanes. Indices that are vectors are laid out in the frame first.
    fn lane_addresses(&mut self, root: Root, spot: &Spot, ty: Type) -> Result<Vec<LaneAddress>> {
        let size = ty.dtype.size();
        let n = i64::from(ty.lanes);
        Ok(match spot {
            Spot::Row(index) | Spot::Same(index) => {
                let step = if matches!(spot, Spot::Row(_)) { size as i32 } else { 0 };
                let addr = self.address(root, index, size);
                (0..n as i32).map(|lane| LaneAddress::Known(addr.plus(step * lane))).collect()
            }
            Spot::Scattered(index) => {
                if let Some((first, step)) = self.steps(*index, size, ty.lanes) {
                    let addr = self.address(root, &first, size);
                    let known = |lane| LaneAddress::Known(addr.plus(step * lane));
                    if addr.disp.checked_add(step * n as i32).is_some() {
                        return Ok((0..n as i32).map(known).collect());
                    }
                }
                let index_ty = self.ty(*index);
                let place = self.frame_place(index_ty.bytes());
                self.store_value(Addr::frame(place), *index)?;
                let base = self.address(root, &Affine::default(), 1);
                let step = index_ty.dtype.size() as i32;
                (0..n as i32)
                    .map(|lane| LaneAddress::Loaded {
                        index: Addr::frame(place + step * lane),
                        dtype: index_ty.dtype,
                        base,
                    })
                    .collect()
            }
        })
    }

    /// The first index and the bytes between lanes, where indices grow evenly and every lane is
    /// within reach of an address.
    fn steps(&self, index: Value, size: usize, lanes: u8) -> Option<(Affine, i32)> {
        let Val::Ramp(base, step) = self.val(index) else { return None };
        let step = i32::try_from(step.checked_mul(size as i64)?).ok()?;
        step.checked_mul(lanes.into()).filter(|reach| reach.unsigned_abs() < 1 << 30)?;
        Some((self.affines[base as usize].clone(), step))
    }

    fn lane_address(&mut self, lane: LaneAddress, size: usize) -> Addr {
        match lane {
            LaneAddress::Known(addr) => addr,
            LaneAddress::Loaded { index, dtype, base } => {
                let dst = self.new_reg(Class::Gpr);
                let kind = match dtype {
                    DType::I8 => Extend::Sign8,
                    DType::I16 => Extend::Sign16,
                    DType::I32 => Extend::Sign32,
                    DType::U8 => Extend::Zero8,
                    DType::U16 => Extend::Zero16,
                    DType::U32 => Extend::Zero32,
                    _ => Extend::None64,
                };
                self.push(Inst::Extend { kind, dst, src: index.into() });
                let index = match dtype {
                    DType::I8 | DType::I16 => self.extend(Extend::Sign32, dst),
                    _ => dst,
                };
                Addr { index, shift: size.trailing_zeros() as u8, ..base }
            }
        }
    }

    /// Conditions of all lanes as bytes in the frame.
    fn lane_conditions(&mut self, cond: Option<Value>) -> Result<Option<i32>> {
        let Some(cond) = cond else { return Ok(None) };
        let place = self.frame_place(self.ty(cond).lanes.into());
        self.store_value(Addr::frame(place), cond)?;
        Ok(Some(place))
    }

    /// Branches to `label` unless the condition of `lane` holds.
    fn skip_lane(&mut self, conditions: Option<i32>, lane: i32, label: super::Label) {
        let Some(place) = conditions else { return };
        let dst = self.new_reg(Class::Gpr);
        let src = Addr::frame(place + lane).into();
        self.push(Inst::Extend { kind: Extend::Zero8, dst, src });
        self.push(Inst::Branch { test: Test::is_true(dst).not(), label });
    }

    pub(super) fn load_lanes(
        &mut self,
        value: Value,
        root: Root,
        spot: Spot,
        ty: Type,
        cond: Option<Value>,
        tests: &[Test],
    ) -> Result<()> {
        let size = ty.dtype.size();
        let conditions = self.lane_conditions(cond)?;
        let lanes = self.lane_addresses(root, &spot, ty)?;
        if !self.isa.has(Has::Gather) {
            let guard = conditions.map(|place| (place, self.zero_address()));
            let guard = |lane| guard.map(|(place, zero)| (Addr::frame(place + lane), zero));
            let lanes: Vec<_> = lanes.into_iter().zip((0..).map(guard)).collect();
            return self.load_apart(value, &lanes, ty, tests);
        }
        let result = self.frame_place(ty.bytes());
        if conditions.is_some() || !tests.is_empty() {
            let zero = self.imm(0);
            for at in 0..ty.bytes().div_ceil(8) as i32 {
                let addr = Addr::frame(result + 8 * at);
                self.push(Inst::Store { width: 3, addr, src: zero });
            }
        }
        let end = self.branch_around(tests);
        for (lane, address) in lanes.into_iter().enumerate() {
            let next = self.new_label();
            self.skip_lane(conditions, lane as i32, next);
            let from = self.lane_address(address, size);
            let to = Addr::frame(result + (size * lane) as i32);
            self.move_element(from, to, size);
            self.push(Inst::Label { label: next });
        }
        self.bind(end);
        self.load_value(value, Addr::frame(result))
    }

    /// Loads each lane to a register and joins these, zeros unless all tests hold. A lane may have a
    /// place with its condition, and the address of a zero to load unless it holds.
    fn load_apart(
        &mut self,
        value: Value,
        lanes: &[(LaneAddress, Option<(Addr, Reg)>)],
        ty: Type,
        tests: &[Test],
    ) -> Result<()> {
        let size = ty.dtype.size();
        let mut reg = self.new_vec();
        if tests.is_empty() {
            reg = self.joined(lanes, size);
        } else {
            self.zero_vec(reg);
            let end = self.branch_around(tests);
            let all = self.joined(lanes, size);
            self.move_vec(reg, all);
            self.bind(end);
        }
        if ty.dtype == DType::Bool {
            return self.elements_to_bools(value, reg, ty.with(DType::U8));
        }
        self.set(value, Val::Vec(reg));
        Ok(())
    }

    /// One register with these lanes: halves are joined after their own halves, so few registers wait.
    fn joined(&mut self, lanes: &[(LaneAddress, Option<(Addr, Reg)>)], size: usize) -> Reg {
        if let &[(lane, guard)] = lanes {
            let mut addr = self.lane_address(lane, size);
            if let Some((condition, y)) = guard {
                let taken = self.new_reg(Class::Gpr);
                let src = condition.into();
                self.push(Inst::Extend { kind: Extend::Zero8, dst: taken, src });
                let x = self.address_reg(addr);
                let dst = self.new_reg(Class::Gpr);
                let test = Test::is_true(taken);
                self.push(Inst::Select { size: Size::B64, dst, test, x, y });
                addr = Addr::at(dst, 0);
            }
            let dst = self.new_vec();
            self.load_bytes(dst, addr, size);
            return dst;
        }
        let (first, second) = lanes.split_at(lanes.len() / 2);
        let (first, second) = (self.joined(first, size), self.joined(second, size));
        self.vop2(Vop::ZipLow, Shape::ints(size * lanes.len() / 2, 2), first, second)
    }

    /// The address of an element that is zero, for lanes that take no part in a load.
    fn zero_address(&mut self) -> Reg {
        if let Some(reg) = self.zero {
            return reg;
        }
        let addr = Addr::frame(self.frame_place(8));
        let (src, dst) = (self.new_reg(Class::Gpr), self.new_reg(Class::Gpr));
        self.push_at(0, Inst::Imm { dst: src, value: 0 });
        self.push_at(0, Inst::Store { width: 3, addr, src });
        self.push_at(0, Inst::Lea { dst, addr });
        self.zero = Some(dst);
        dst
    }

    pub(super) fn store_lanes(
        &mut self,
        root: Root,
        spot: Spot,
        value: Value,
        cond: Option<Value>,
        tests: &[Test],
    ) -> Result<()> {
        let ty = self.ty(value);
        let size = ty.dtype.size();
        let conditions = self.lane_conditions(cond)?;
        let source = self.frame_place(ty.bytes());
        self.store_value(Addr::frame(source), value)?;
        let lanes = self.lane_addresses(root, &spot, ty)?;
        let end = self.branch_around(tests);
        for (lane, address) in lanes.into_iter().enumerate() {
            let next = self.new_label();
            self.skip_lane(conditions, lane as i32, next);
            let to = self.lane_address(address, size);
            let from = Addr::frame(source + (size * lane) as i32);
            self.move_element(from, to, size);
            self.push(Inst::Label { label: next });
        }
        self.bind(end);
        Ok(())
    }

    fn move_element(&mut self, from: Addr, to: Addr, size: usize) {
        let dst = self.new_reg(Class::Gpr);
        let kind = match size {
            1 => Extend::Zero8,
            2 => Extend::Zero16,
            4 => Extend::Zero32,
            _ => Extend::None64,
        };
        self.push(Inst::Extend { kind, dst, src: from.into() });
        self.push(Inst::Store { width: size.trailing_zeros() as u8, addr: to, src: dst });
    }

    // ---- atomics -----------------------------------------------------------------------------

    pub(super) fn atomic(
        &mut self,
        value: Value,
        op: BinaryOp,
        buf: Value,
        index: Value,
        operand: Value,
    ) -> Result<()> {
        let ty = self.ty(operand);
        self.check(ty)?;
        let (index, guard) = self.guard(index)?;
        self.flush();
        let root = self.root(buf)?;
        let spot = self.spot(index, ty.lanes);
        let size = ty.dtype.size();
        let [result, operands, pointers, _] = self.call_buffers();
        self.store_value(Addr::frame(operands), operand)?;
        let conditions = self.lane_conditions(guard.lanes)?;
        let lanes = self.lane_addresses(root, &spot, ty)?;
        // Lanes that take no part have no address.
        let zero = self.imm(0);
        for lane in 0..i32::from(ty.lanes) {
            let addr = Addr::frame(pointers + 8 * lane);
            self.push(Inst::Store { width: 3, addr, src: zero });
        }
        let end = if guard.never { Some(self.new_label()) } else { None };
        if let Some(label) = end {
            self.push(Inst::Jump { label });
        }
        let around = self.branch_around(&guard.tests);
        for (lane, address) in lanes.into_iter().enumerate() {
            let next = self.new_label();
            self.skip_lane(conditions, lane as i32, next);
            let addr = self.lane_address(address, size);
            let pointer = self.address_reg(addr);
            let addr = Addr::frame(pointers + 8 * lane as i32);
            self.push(Inst::Store { width: 3, addr, src: pointer });
            self.push(Inst::Label { label: next });
        }
        self.bind(around);
        self.bind(end);
        self.call_atomic(op, ty);
        self.load_value(value, Addr::frame(result))
    }

    pub(super) fn address_reg(&mut self, addr: Addr) -> Reg {
        if let (Base::Reg(base), false, 0) = (addr.base, addr.index.is_some(), addr.disp) {
            return base;
        }
        let dst = self.new_reg(Class::Gpr);
        self.push(Inst::Lea { dst, addr });
        dst
    }
}

/// Where one lane of an access lies.
#[derive(Clone, Copy)]
enum LaneAddress {
    Known(Addr),
    /// Element `*index` from `base`.
    Loaded {
        index: Addr,
        dtype: DType,
        base: Addr,
    },
}
