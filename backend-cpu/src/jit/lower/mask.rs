//! Vectors of bools, and bools that select between vectors.
//!
//! With AVX-512 a bool vector is a mask register, one bit per lane; bits beyond the lanes are
//! arbitrary, and whoever could notice clears them. Elsewhere it is a vector whose elements are
//! all ones or zero; their width is that of the operands it was compared from, and is changed
//! where it meets elements of another width ([`Isa::bools`](crate::jit::Isa)).

use super::super::machine::{
    Alu, Bools, Class, Compare, ConstData, Has, Inst, Operand, Reg, Shape, Shift, Size, Vop,
};
use super::super::x86::asm::{Len, VOp};
use super::vector::is_vector_scalar;
use super::{EmitError, Lower, Result, Val, len_of};
use zyx_core::ir::{Type, Value};
use zyx_core::{BinaryOp, DType};

impl Lower<'_> {
    // ---- comparisons -------------------------------------------------------------------------

    /// Compares vectors, or float scalars.
    pub(super) fn compare(&mut self, value: Value, op: BinaryOp, x: Value, y: Value) -> Result<()> {
        let ty = self.ty(x);
        let len = self.len(ty)?;
        if self.isa.has_masks() {
            let (a, b) = self.operands(x, y, matches!(op, BinaryOp::Eq | BinaryOp::Ne))?;
            let (instruction, imm) = mask_compare(op, ty);
            let mask = self.mask3(instruction, len, a, b, imm);
            self.set(value, Val::Mask(mask));
            return Ok(());
        }
        let (shape, signed) = (Shape::of(ty), ty.dtype.is_signed() || ty.dtype.is_float());
        let reg = if ty.dtype.is_float() || self.isa.has(Has::IntCompare) {
            let (a, b) = self.operands(x, y, matches!(op, BinaryOp::Eq | BinaryOp::Ne))?;
            self.vop2(Vop::Compare(comparison(op, signed)), shape, a, b)
        } else {
            let (a, b) = (self.vec(x)?, self.vec(y)?);
            let (reg, negate) = match op {
                BinaryOp::Lt => (self.greater(shape, signed, b, a), false),
                BinaryOp::Le => (self.greater(shape, signed, a, b), true),
                _ => (self.vop2(Vop::Compare(Compare::Equal), shape, a, b), op == BinaryOp::Ne),
            };
            if negate { self.not_wide(reg, shape) } else { reg }
        };
        self.set(value, Val::Wide(reg, ty.dtype.size() as u8));
        Ok(())
    }

    fn not_wide(&mut self, reg: Reg, shape: Shape) -> Reg {
        if self.isa.has(Has::SignOps) {
            return self.vop1(Vop::Not, shape, reg);
        }
        let ones = self.splat_const(u64::MAX, 8);
        self.vop2(Vop::Xor, shape, reg, ones)
    }

    // ---- access ------------------------------------------------------------------------------

    /// Bools in a mask register (AVX-512).
    pub(super) fn mask(&mut self, value: Value) -> Result<Reg> {
        let lanes = self.ty(value).lanes;
        match self.val(value) {
            Val::Mask(reg) => Ok(reg),
            Val::Pending(addr) => {
                self.force(value, addr);
                self.mask(value)
            }
            Val::Const(bits) => {
                let ones = if bits & 1 == 0 { 0 } else { lane_bits(lanes) };
                let bits = self.imm(ones);
                Ok(self.mask_from_gpr(bits, lanes))
            }
            Val::Gpr(_) | Val::Compare if lanes == 1 => {
                let bits = self.gpr(value);
                Ok(self.mask_from_gpr(bits, lanes))
            }
            _ => Err(EmitError::new("a bool vector that was not lowered")),
        }
    }

    pub(super) fn mask_from_gpr(&mut self, bits: Reg, lanes: u8) -> Reg {
        let op = if lanes > 16 { VOp::KmovqFromGpr } else { VOp::KmovwFromGpr };
        self.mask2(op, bits)
    }

    /// A mask register as bits in a general one, with only `lanes` of them.
    pub(super) fn mask_bits(&mut self, mask: Reg, lanes: u8) -> Reg {
        let op = if lanes > 16 { VOp::KmovqToGpr } else { VOp::KmovwToGpr };
        let bits = self.read_gpr(op, Len::X, mask);
        if lanes < 16 || (17..64).contains(&lanes) {
            let all = self.imm(lane_bits(lanes));
            return self.alu(Alu::And, Size::B64, bits, Operand::Reg(all));
        }
        bits
    }

    /// Bools as elements of `size` bytes.
    pub(super) fn wide(&mut self, value: Value, size: usize) -> Result<Reg> {
        let lanes = usize::from(self.ty(value).lanes);
        match self.val(value) {
            Val::Wide(reg, width) => self.widen(reg, usize::from(width), size, lanes),
            Val::Pending(addr) => {
                self.force(value, addr);
                self.wide(value, size)
            }
            Val::Const(bits) => Ok(self.splat_const(if bits & 1 == 0 { 0 } else { u64::MAX }, 8)),
            Val::Gpr(_) | Val::Compare if lanes == 1 => {
                let bit = self.gpr(value);
                let dst = self.new_reg(Class::Gpr);
                self.push(Inst::Neg { size: Size::B64, dst, a: bit });
                Ok(self.gpr_to_vec(dst, 8))
            }
            _ => Err(EmitError::new("a bool vector that was not lowered")),
        }
    }

    /// Changes the width of mask elements.
    fn widen(&mut self, reg: Reg, from: usize, to: usize, lanes: usize) -> Result<Reg> {
        if from == to {
            return Ok(reg);
        }
        if lanes * to > self.isa.vector_bytes() {
            return Err(EmitError::new("a mask wider than a register"));
        }
        if !self.isa.is_x86() {
            // One step at a time.
            let (op, next) = match from < to {
                true => (Vop::WidenS, 2 * from),
                false => (Vop::Narrow, from / 2),
            };
            let reg = self.vop1(op, Shape::ints(next, lanes), reg);
            return self.widen(reg, next, to, lanes);
        }
        let len = len_of(lanes * from.max(to))?;
        match (from, to) {
            (1, 2) => Ok(self.vec2(VOp::Vpmovsxbw, len, reg)),
            (1, 4) => Ok(self.vec2(VOp::Vpmovsxbd, len, reg)),
            (1, 8) => Ok(self.vec2(VOp::Vpmovsxbq, len, reg)),
            (2, 4) => Ok(self.vec2(VOp::Vpmovsxwd, len, reg)),
            (2, 8) => Ok(self.vec2(VOp::Vpmovsxwq, len, reg)),
            (4, 8) => Ok(self.vec2(VOp::Vpmovsxdq, len, reg)),
            (8, _) => {
                let reg = self.narrow_avx2(reg, 8, lanes, None);
                self.widen(reg, 4, to, lanes)
            }
            (4, _) => {
                let reg = self.narrow_avx2(reg, 4, lanes, Some(VOp::Vpackssdw));
                self.widen(reg, 2, to, lanes)
            }
            _ => Ok(self.narrow_avx2(reg, 2, lanes, Some(VOp::Vpacksswb))),
        }
    }

    /// Halves the width of elements: the low half of 64-bit ones, or by a saturating pack (AVX2).
    pub(super) fn narrow_avx2(
        &mut self,
        reg: Reg,
        from: usize,
        lanes: usize,
        pack: Option<VOp>,
    ) -> Reg {
        let (low, high) = if lanes * from > 16 {
            let high = self.new_vec();
            self.vec_store(VOp::Vextracti128, Len::Y, high, reg, 1);
            (reg, high)
        } else {
            (reg, reg)
        };
        match pack {
            Some(pack) => self.vec3(pack, Len::X, low, high),
            // Elements 0 and 2 of both.
            None => self.vec3_imm(VOp::Vshufps, Len::X, low, high, 0x88),
        }
    }

    // ---- logic -------------------------------------------------------------------------------

    pub(super) fn mask_not(&mut self, value: Value, x: Value) -> Result<()> {
        let lanes = self.ty(x).lanes;
        if self.isa.has_masks() {
            let a = self.mask(x)?;
            let op = if lanes > 16 { VOp::Knotq } else { VOp::Knotw };
            let mask = self.mask2(op, a);
            self.set(value, Val::Mask(mask));
        } else {
            let size = self.width_of(x);
            let a = self.wide(x, size)?;
            let reg = self.not_wide(a, Shape::ints(size, lanes.into()));
            self.set(value, Val::Wide(reg, size as u8));
        }
        Ok(())
    }

    /// The element width a bool vector has, or would best get.
    pub(super) fn width_of(&self, value: Value) -> usize {
        let lanes = usize::from(self.ty(value).lanes);
        match self.val(value) {
            Val::Wide(_, width) => width.into(),
            _ => natural_width(lanes, self.isa.vector_bytes()),
        }
    }

    pub(super) fn mask_binary(
        &mut self,
        value: Value,
        op: BinaryOp,
        x: Value,
        y: Value,
    ) -> Result<()> {
        let lanes = self.ty(x).lanes;
        let avx512 = self.isa.has_masks();
        let (a, b, size) = if avx512 {
            (self.mask(x)?, self.mask(y)?, 0)
        } else {
            let size = match (self.val(x), self.val(y)) {
                (Val::Wide(_, a), Val::Wide(_, b)) => a.min(b).into(),
                (Val::Wide(_, a), _) | (_, Val::Wide(_, a)) => a.into(),
                _ => self.width_of(x),
            };
            (self.wide(x, size)?, self.wide(y, size)?, size)
        };
        let logic = |it: &mut Self, op: Logic, a: Reg, b: Reg| -> Result<Reg> {
            if avx512 {
                return Ok(it.mask3(op.mask(lanes > 16), Len::X, a, b, 0));
            }
            Ok(it.vop2(op.wide(), Shape::ints(size, lanes.into()), a, b))
        };
        let not = |it: &mut Self, a: Reg| -> Result<Reg> {
            if avx512 {
                let op = if lanes > 16 { VOp::Knotq } else { VOp::Knotw };
                return Ok(it.mask2(op, a));
            }
            Ok(it.not_wide(a, Shape::ints(size, lanes.into())))
        };
        let reg = match op {
            BinaryOp::Add | BinaryOp::Max | BinaryOp::Or => logic(self, Logic::Or, a, b)?,
            BinaryOp::Mul | BinaryOp::Min | BinaryOp::And => logic(self, Logic::And, a, b)?,
            BinaryOp::Lt => logic(self, Logic::AndNot, a, b)?,
            BinaryOp::Le => {
                let more = logic(self, Logic::AndNot, b, a)?;
                not(self, more)?
            }
            BinaryOp::Eq => {
                let differ = logic(self, Logic::Xor, a, b)?;
                not(self, differ)?
            }
            _ => logic(self, Logic::Xor, a, b)?,
        };
        self.set_bools(value, reg, size);
        Ok(())
    }

    fn set_bools(&mut self, value: Value, reg: Reg, size: usize) {
        let val = match self.isa.bools() {
            Bools::MaskRegister => Val::Mask(reg),
            Bools::WideLanes => Val::Wide(reg, size as u8),
        };
        self.set(value, val);
    }

    /// `cond ? x : y` of bool vectors: `(cond & x) | (!cond & y)`.
    pub(super) fn mask_where(
        &mut self,
        value: Value,
        cond: Value,
        x: Value,
        y: Value,
    ) -> Result<()> {
        let lanes = self.ty(value).lanes;
        let wide = lanes > 16;
        if self.isa.has_masks() {
            let (c, x, y) = (self.mask(cond)?, self.mask(x)?, self.mask(y)?);
            let taken = self.mask3(Logic::And.mask(wide), Len::X, c, x, 0);
            let other = self.mask3(Logic::AndNot.mask(wide), Len::X, c, y, 0);
            let reg = self.mask3(Logic::Or.mask(wide), Len::X, taken, other, 0);
            self.set_bools(value, reg, 0);
        } else {
            let size = self.width_of(cond);
            let shape = Shape::ints(size, lanes.into());
            let (c, x, y) = (self.wide(cond, size)?, self.wide(x, size)?, self.wide(y, size)?);
            let reg = self.new_vec();
            self.blend_wide(shape, reg, c, y, x.into());
            self.set_bools(value, reg, size);
        }
        Ok(())
    }

    // ---- bools as numbers --------------------------------------------------------------------

    /// `bits` (an element of `ty`) where the bools hold, zero elsewhere.
    pub(super) fn bools_to_elements(&mut self, x: Value, ty: Type, bits: u64) -> Result<Reg> {
        let (len, size) = (self.len(ty)?, ty.dtype.size());
        let element = self.splat_const(bits, size);
        match self.isa.bools() {
            Bools::MaskRegister => {
                let mask = self.mask(x)?;
                let op = [VOp::Vmovdqu8, VOp::Vmovdqu16, VOp::Vmovups, VOp::Vmovupd];
                Ok(self.vec2_zeroed(op[size.trailing_zeros() as usize], len, mask, element))
            }
            Bools::WideLanes => {
                let mask = self.wide(x, size)?;
                Ok(self.vop2(Vop::And, Shape::of(ty), mask, element))
            }
        }
    }

    /// Bools of elements that are not zero, from elements of `ty` (an integer or bytes of bools).
    pub(super) fn elements_to_bools(&mut self, value: Value, reg: Reg, ty: Type) -> Result<()> {
        let (len, size) = (self.len(ty)?, ty.dtype.size());
        match self.isa.bools() {
            Bools::MaskRegister => {
                let op = [VOp::Vptestmb, VOp::Vptestmw, VOp::Vptestmd, VOp::Vptestmq];
                let mask = self.mask3(op[size.trailing_zeros() as usize], len, reg, reg, 0);
                self.set(value, Val::Mask(mask));
            }
            Bools::WideLanes => {
                let zero = self.splat_const(0, 8);
                let shape = Shape::of(ty);
                let is_zero = self.vop2(Vop::Compare(Compare::Equal), shape, reg, zero);
                let reg = self.not_wide(is_zero, shape);
                self.set(value, Val::Wide(reg, size as u8));
            }
        }
        Ok(())
    }

    /// Bytes of 0 and 1, as bools are stored.
    pub(super) fn bools_to_bytes(&mut self, x: Value) -> Result<Reg> {
        let ty = Type::vector(DType::U8, self.ty(x).lanes);
        self.bools_to_elements(x, ty, 1)
    }

    /// A scalar bool in all lanes.
    pub(super) fn splat_bool(&mut self, value: Value, x: Value, lanes: u8) {
        let bit = self.gpr(x);
        let all = self.new_reg(Class::Gpr);
        self.push(Inst::Neg { size: Size::B64, dst: all, a: bit });
        if self.isa.has_masks() {
            let mask = self.mask_from_gpr(all, lanes);
            self.set(value, Val::Mask(mask));
        } else {
            let one = self.gpr_to_vec(all, 8);
            let words = Shape::ints(4, self.isa.vector_bytes() / 4);
            let reg = self.vop1(Vop::Broadcast, words, one);
            let size = natural_width(lanes.into(), self.isa.vector_bytes());
            self.set(value, Val::Wide(reg, size as u8));
        }
    }

    /// Lanes `0 .. n` of a bool vector, for a count `n` in a register that may be out of range.
    pub(super) fn first_lanes(&mut self, value: Value, count: Reg, lanes: u8) {
        let zero = self.imm(0);
        let size = Size::B64;
        let test = |cond, a, b| super::Test { size, cond, a, b };
        let (none, most) = (self.new_reg(Class::Gpr), self.new_reg(Class::Gpr));
        let negative = test(super::Cond::Less, count, Operand::Imm(0));
        self.push(Inst::Select { size, dst: none, test: negative, x: zero, y: count });
        let all = self.imm(lanes.into());
        let many = test(super::Cond::Greater, none, Operand::Imm(lanes.into()));
        self.push(Inst::Select { size, dst: most, test: many, x: all, y: none });
        if self.isa.has_masks() {
            // Ones shifted out at the top: bits 0 .. n remain. A count of 64 shifts by 0.
            let ones = self.imm(u64::MAX);
            let (left, bits) = (self.new_reg(Class::Gpr), self.new_reg(Class::Gpr));
            let sixty_four = self.imm(64);
            let b = Operand::Reg(most);
            self.push(Inst::Alu { op: Alu::Sub, size, dst: left, a: sixty_four, b });
            self.push(Inst::ShiftBy { op: Shift::Shr, size, dst: bits, a: ones, by: left });
            // Shifting by 64 shifts by 0: no lanes at all must be told apart.
            let bits_or_none = self.new_reg(Class::Gpr);
            let empty = test(super::Cond::Equal, most, Operand::Imm(0));
            self.push(Inst::Select { size, dst: bits_or_none, test: empty, x: zero, y: bits });
            let mask = self.mask_from_gpr(bits_or_none, lanes);
            self.set(value, Val::Mask(mask));
        } else {
            let width = natural_width(lanes.into(), self.isa.vector_bytes());
            let ramp = self.constant_reg(ConstData::Bytes(ramp_bytes(width)));
            let one = self.gpr_to_vec(most, 8);
            let shape = Shape::ints(width, self.isa.vector_bytes() / width);
            let counts = self.vop1(Vop::Broadcast, shape, one);
            let reg = self.greater(shape, true, counts, ramp);
            self.set(value, Val::Wide(reg, width as u8));
        }
    }

    /// Whether a float scalar or vector differs from zero.
    pub(super) fn float_to_bools(&mut self, value: Value, x: Value) -> Result<()> {
        let ty = self.ty(x);
        debug_assert!(is_vector_scalar(ty.dtype));
        let (len, zero) = (self.len(ty)?, self.splat_const(0, 8));
        let a = self.vec(x)?;
        if self.isa.has_masks() {
            let (op, imm) = mask_compare(BinaryOp::Ne, ty);
            let mask = self.mask3(op, len, a, zero, imm);
            self.set(value, Val::Mask(mask));
        } else {
            // A scalar is compared as the shortest vector.
            let lanes = ty.lanes.max(16 / ty.dtype.size() as u8);
            let shape = Shape { lanes, ..Shape::of(ty) };
            let reg = self.vop2(Vop::Compare(Compare::NotEqual), shape, a, zero);
            self.set(value, Val::Wide(reg, ty.dtype.size() as u8));
        }
        Ok(())
    }
}

/// The widest elements that a bool vector of unknown origin can have.
fn natural_width(lanes: usize, bytes: usize) -> usize {
    match bytes / lanes.max(1) {
        4.. => 4,
        2 | 3 => 2,
        _ => 1,
    }
}

/// 0, 1, 2, … in elements of `size` bytes.
pub(super) fn ramp_bytes(size: usize) -> Vec<u8> {
    (0..64 / size as u64).flat_map(|i| i.to_le_bytes()[..size].to_vec()).collect()
}

/// The low `lanes` bits.
pub(super) const fn lane_bits(lanes: u8) -> u64 {
    if lanes >= 64 { u64::MAX } else { (1 << lanes) - 1 }
}

/// How lanes are compared.
pub(super) const fn comparison(op: BinaryOp, signed: bool) -> Compare {
    match op {
        BinaryOp::Eq => Compare::Equal,
        BinaryOp::Ne => Compare::NotEqual,
        BinaryOp::Lt if signed => Compare::Less,
        BinaryOp::Lt => Compare::Below,
        _ if signed => Compare::LessEqual,
        _ => Compare::BelowEqual,
    }
}

/// Predicates that do not signal; "not equal" holds for NaN.
fn float_predicate(op: BinaryOp) -> u8 {
    match op {
        BinaryOp::Lt => 17,
        BinaryOp::Le => 18,
        BinaryOp::Eq => 0,
        _ => 4,
    }
}

fn mask_compare(op: BinaryOp, ty: Type) -> (VOp, u8) {
    let instruction = match (ty.dtype, ty.lanes) {
        (DType::F32, 1) => VOp::VcmpssMask,
        (DType::F32, _) => VOp::VcmppsMask,
        (DType::F64, 1) => VOp::VcmpsdMask,
        (DType::F64, _) => VOp::VcmppdMask,
        (DType::I8, _) => VOp::Vpcmpb,
        (DType::U8 | DType::Bool, _) => VOp::Vpcmpub,
        (DType::I16, _) => VOp::Vpcmpw,
        (DType::U16, _) => VOp::Vpcmpuw,
        (DType::I32, _) => VOp::Vpcmpd,
        (DType::U32, _) => VOp::Vpcmpud,
        (DType::I64, _) => VOp::Vpcmpq,
        _ => VOp::Vpcmpuq,
    };
    if ty.dtype.is_float() {
        return (instruction, float_predicate(op));
    }
    let imm = match op {
        BinaryOp::Eq => 0,
        BinaryOp::Lt => 1,
        BinaryOp::Le => 2,
        _ => 4,
    };
    (instruction, imm)
}

/// Bitwise operations on masks. `AndNot` complements its first operand.
#[derive(Clone, Copy)]
enum Logic {
    And,
    AndNot,
    Or,
    Xor,
}

impl Logic {
    const fn mask(self, wide: bool) -> VOp {
        match (self, wide) {
            (Self::And, false) => VOp::Kandw,
            (Self::And, true) => VOp::Kandq,
            (Self::AndNot, false) => VOp::Kandnw,
            (Self::AndNot, true) => VOp::Kandnq,
            (Self::Or, false) => VOp::Korw,
            (Self::Or, true) => VOp::Korq,
            (Self::Xor, false) => VOp::Kxorw,
            (Self::Xor, true) => VOp::Kxorq,
        }
    }

    const fn wide(self) -> Vop {
        match self {
            Self::And => Vop::And,
            Self::AndNot => Vop::AndNot,
            Self::Or => Vop::Or,
            Self::Xor => Vop::Xor,
        }
    }
}
