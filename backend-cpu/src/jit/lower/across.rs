//! Ops between lanes and between scalars and vectors: splats, ramps, extracts, folds.
//!
//! A vector of `i64` whose lanes form a ramp, `base + lane * step`, stays symbolic: its usual use
//! is an index or a bound of a guard, which need the base only.

use super::super::machine::{
    Alu, Class, Cond, ConstData, Inst, Operand, Reg, Shape, Shift, Size, Test, Vop,
};
use super::super::x86::asm::{Len, VOp};
use super::address::Affine;
use super::mask::{lane_bits, ramp_bytes};
use super::vector::is_vector_scalar;
use super::{Lower, Result, Val, len_of};
use zyx_core::ir::{Type, Value};
use zyx_core::{BinaryOp, DType, UnaryOp};

impl Lower<'_> {
    // ---- ramps -------------------------------------------------------------------------------

    pub(super) fn lanes(&mut self, value: Value, ty: Type) {
        if ty.dtype == DType::I64 {
            let base = self.new_affine(Affine::constant(0));
            return self.set(value, Val::Ramp(base, 1));
        }
        let reg = self.constant_reg(ConstData::Bytes(ramp_bytes(ty.dtype.size())));
        self.set(value, Val::Vec(reg));
    }

    /// An `i64` vector as a ramp, if it is one.
    fn as_ramp(&mut self, value: Value) -> Option<(Affine, i64)> {
        match self.val(value) {
            Val::Ramp(base, step) => Some((self.affines[base as usize].clone(), step)),
            Val::Const(bits) => Some((Affine::constant(bits as i64), 0)),
            _ => None,
        }
    }

    fn set_ramp(&mut self, value: Value, base: Affine, step: i64) {
        let base = self.new_affine(base);
        self.set(value, Val::Ramp(base, step));
    }

    pub(super) fn ramp_unary(&mut self, value: Value, op: UnaryOp, x: Value) -> bool {
        let is_index = self.ty(value).dtype == DType::I64;
        if let (true, UnaryOp::Neg, Some((base, step))) = (is_index, op, self.as_ramp(x)) {
            self.set_ramp(value, base.wrapping_scaled(-1), step.wrapping_neg());
            return true;
        }
        false
    }

    /// Sums, multiples and bounds of ramps.
    pub(super) fn ramp_binary(
        &mut self,
        value: Value,
        op: BinaryOp,
        x: Value,
        y: Value,
    ) -> Result<bool> {
        let ty = self.ty(x);
        if ty.dtype != DType::I64 || !ty.is_vector() {
            return Ok(false);
        }
        let (Some((a, s)), Some((b, t))) = (self.as_ramp(x), self.as_ramp(y)) else {
            return Ok(false);
        };
        match op {
            BinaryOp::Add => self.set_ramp(value, a.wrapping_plus(&b), s.wrapping_add(t)),
            BinaryOp::Sub => {
                self.set_ramp(value, a.wrapping_plus(&b.wrapping_scaled(-1)), s.wrapping_sub(t))
            }
            BinaryOp::Mul if t == 0 && b.terms.is_empty() => {
                let n = b.constant;
                self.set_ramp(value, a.wrapping_scaled(n), s.wrapping_mul(n));
            }
            BinaryOp::Mul if s == 0 && a.terms.is_empty() => {
                let n = a.constant;
                self.set_ramp(value, b.wrapping_scaled(n), t.wrapping_mul(n));
            }
            // base + lane < bound holds for the first bound - base lanes.
            BinaryOp::Lt if s == 1 && t == 0 => {
                let count = self.materialise(&b.wrapping_plus(&a.wrapping_scaled(-1)));
                self.first_lanes(value, count, ty.lanes);
            }
            BinaryOp::Le if s == 1 && t == 0 => {
                let count = self.materialise(
                    &b.wrapping_plus(&a.wrapping_scaled(-1)).wrapping_plus(&Affine::constant(1)),
                );
                self.first_lanes(value, count, ty.lanes);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A ramp in a register.
    pub(super) fn ramp_reg(&mut self, value: Value, base: u32, step: i64) -> Result<Reg> {
        let ty = self.ty(value);
        self.len(ty)?;
        let affine = self.affines[base as usize].clone();
        let steps = (0..8i64).flat_map(|i| i.wrapping_mul(step).to_le_bytes()).collect();
        if affine.terms.is_empty() {
            let all = (0..8i64)
                .flat_map(|i| i.wrapping_mul(step).wrapping_add(affine.constant).to_le_bytes());
            return Ok(self.constant_reg(ConstData::Bytes(all.collect())));
        }
        let start = self.materialise(&affine);
        let base = self.broadcast_gpr(start, Shape::of(ty));
        if step == 0 {
            return Ok(base);
        }
        let steps = self.constant_reg(ConstData::Bytes(steps));
        Ok(self.vop2(Vop::Add, Shape::of(ty), base, steps))
    }

    // ---- splat and extract -------------------------------------------------------------------

    pub(super) fn splat(&mut self, value: Value, x: Value, ty: Type) -> Result<()> {
        if let Val::Const(bits) = self.val(x) {
            self.set(value, Val::Const(bits));
            return Ok(());
        }
        if ty.dtype == DType::Bool {
            self.splat_bool(value, x, ty.lanes);
            return Ok(());
        }
        if ty.dtype == DType::I64 {
            let affine = self.affine(x);
            self.set_ramp(value, affine, 0);
            return Ok(());
        }
        self.len(ty)?;
        let shape = Shape::of(ty);
        let once = self.facts.uses[x.idx()] == 1;
        let reg = match self.val(x) {
            Val::Pending(addr) if once => {
                self.pending.retain(|it| *it != x);
                self.vop1(Vop::Broadcast, shape, addr)
            }
            _ if is_vector_scalar(ty.dtype) => {
                let a = self.vec(x)?;
                self.vop1(Vop::Broadcast, shape, a)
            }
            _ => {
                let a = self.gpr(x);
                self.broadcast_gpr(a, shape)
            }
        };
        self.set(value, Val::Vec(reg));
        Ok(())
    }

    pub(super) fn extract(&mut self, value: Value, x: Value, lane: u8) -> Result<()> {
        let ty = self.ty(x);
        match self.val(x) {
            Val::Const(bits) => {
                self.set(value, Val::Const(bits));
                return Ok(());
            }
            Val::Ramp(base, step) => {
                let first = self.affines[base as usize].clone();
                let offset = Affine::constant(step.wrapping_mul(lane.into()));
                let n = self.new_affine(first.wrapping_plus(&offset));
                self.set(value, Val::Affine(n));
                return Ok(());
            }
            _ => {}
        }
        if ty.dtype == DType::Bool {
            return self.extract_bool(value, x, lane);
        }
        let size = ty.dtype.size();
        let reg = self.vec(x)?;
        let part = self.lane_to_front(reg, usize::from(lane) * size);
        if is_vector_scalar(ty.dtype) {
            self.set(value, Val::Vec(part));
        } else {
            self.front_to_gpr(value, part);
        }
        Ok(())
    }

    /// The element at byte `at` moved to the start of a register.
    fn lane_to_front(&mut self, reg: Reg, at: usize) -> Reg {
        let (quarter, rest) = (at / 16, at % 16);
        let part = if quarter == 0 {
            reg
        } else {
            let dst = self.new_vec();
            let len = if quarter > 1 { Len::Z } else { Len::Y };
            self.vec_store(VOp::Vextracti128, len, dst, reg, quarter as u8);
            dst
        };
        match rest {
            0 => part,
            rest => self.vop1(Vop::BytesFrom(rest as u8), Shape::ints(1, 16), part),
        }
    }

    /// The first element of a register as an integer scalar (or bits of a half).
    pub(super) fn front_to_gpr(&mut self, value: Value, reg: Reg) {
        let dtype = self.ty(value).dtype;
        let bits = self.vec_to_gpr(reg, dtype.size().max(4));
        let bits = match dtype.size() {
            1 | 2 => self.wrap(bits, dtype),
            _ => bits,
        };
        self.set_gpr(value, bits);
    }

    fn extract_bool(&mut self, value: Value, x: Value, lane: u8) -> Result<()> {
        let (bits, each) = self.bool_bits(x)?;
        let bits = match lane {
            0 => bits,
            lane => self.shift(Shift::Shr, Size::B64, bits, lane * each),
        };
        let bit = self.alu(Alu::And, Size::B32, bits, Operand::Imm(1));
        self.set(value, Val::Gpr(bit));
        Ok(())
    }

    /// A bool vector as bits of a general register, clear beyond the lanes, and how many each lane has.
    fn bool_bits(&mut self, x: Value) -> Result<(Reg, u8)> {
        let lanes = self.ty(x).lanes;
        if self.isa.has_masks() {
            let mask = self.mask(x)?;
            return Ok((self.mask_bits(mask, lanes), 1));
        }
        if !self.isa.is_x86() {
            return self.bool_bit_groups(x);
        }
        let mut width = self.width_of(x);
        if width == 2 {
            width = 1;
        }
        let reg = self.wide(x, width)?;
        let len = len_of(width * usize::from(lanes))?;
        let op = match width {
            8 => VOp::Vmovmskpd,
            4 => VOp::Vmovmskps,
            _ => VOp::Vpmovmskb,
        };
        let bits = self.read_gpr(op, len, reg);
        let all = self.imm(lane_bits(lanes));
        Ok((self.alu(Alu::And, Size::B64, bits, Operand::Reg(all)), 1))
    }

    /// As [`Self::bool_bits`], from bytes that are all ones or zeros.
    fn bool_bit_groups(&mut self, x: Value) -> Result<(Reg, u8)> {
        let lanes = self.ty(x).lanes;
        let bytes = self.wide(x, 1)?;
        // Sixteen bytes do not fit: half of each is enough.
        let (part, each) = match lanes {
            16 => (self.vop1(Vop::NarrowBy(4), Shape::ints(1, 8), bytes), 4),
            _ => (bytes, 8),
        };
        let bits = self.vec_to_gpr(part, 8);
        if lanes >= 8 {
            return Ok((bits, each));
        }
        let all = self.imm(lane_bits(each * lanes));
        Ok((self.alu(Alu::And, Size::B64, bits, Operand::Reg(all)), each))
    }

    // ---- folds -------------------------------------------------------------------------------

    /// Halves the vector until one lane is left.
    pub(super) fn fold(&mut self, value: Value, op: BinaryOp, x: Value) -> Result<()> {
        let ty = self.ty(x);
        if ty.lanes == 1 {
            let val = self.val(x);
            self.set(value, val);
            return Ok(());
        }
        self.check(ty)?;
        if ty.dtype == DType::Bool {
            return self.fold_bools(value, op, x);
        }
        let mut reg = self.vec(x)?;
        let mut lanes = ty.lanes;
        let size = ty.dtype.size();
        while lanes > 1 {
            lanes /= 2;
            let half = Type::vector(ty.dtype, lanes);
            // Scalars of narrow types have no instructions; a vector of two does the same work.
            let packed = Type::vector(ty.dtype, lanes.max(2));
            let at = lanes * size as u8;
            let high = self.vop1(Vop::BytesFrom(at), Shape::ints(1, at.into()), reg);
            let work = if lanes == 1 && is_vector_scalar(ty.dtype) { half } else { packed };
            match self.combine(op, work, reg, high)? {
                Some(sum) => reg = sum,
                None => return self.fallback_fold(value, op, x),
            }
        }
        if is_vector_scalar(ty.dtype) {
            let dst = self.target(value);
            self.move_vec(dst, reg);
            self.set(value, Val::Vec(dst));
        } else {
            self.front_to_gpr(value, reg);
        }
        Ok(())
    }

    fn fold_bools(&mut self, value: Value, op: BinaryOp, x: Value) -> Result<()> {
        let (bits, each) = self.bool_bits(x)?;
        let lanes = each * self.ty(x).lanes;
        let reg = match op {
            BinaryOp::Xor | BinaryOp::Ne => {
                let count = self.new_reg(Class::Gpr);
                self.push(Inst::Popcnt { dst: count, a: bits });
                let count = match each {
                    1 => count,
                    each => self.shift(Shift::Shr, Size::B32, count, each.trailing_zeros() as u8),
                };
                self.alu(Alu::And, Size::B32, count, Operand::Imm(1))
            }
            BinaryOp::And | BinaryOp::Mul | BinaryOp::Min => {
                let all = self.imm(lane_bits(lanes));
                self.set_if(Cond::Equal, bits, Operand::Reg(all))
            }
            _ => self.set_if(Cond::NotEqual, bits, Operand::Imm(0)),
        };
        self.set(value, Val::Gpr(reg));
        Ok(())
    }

    fn set_if(&mut self, cond: Cond, a: Reg, b: Operand) -> Reg {
        let dst = self.new_reg(Class::Gpr);
        let test = Test { size: Size::B64, cond, a, b };
        self.push(Inst::SetCc { dst, test });
        dst
    }
}
