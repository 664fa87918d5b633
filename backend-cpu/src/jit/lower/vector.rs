//! Arithmetic in vector registers: vectors of numbers and float scalars.
//!
//! One table (`direct`) names the instruction of every op and dtype that has one; what takes a
//! few instructions follows below; everything else goes to `fallback`. Results are computed into
//! the register that `target` names, written by the last instruction only, so that an accumulator
//! can be both operand and result.

use super::super::machine::{
    Bools, Class, Compare, Effect, Has, Inst, Place, Reg, Shape, VecInst, Vop,
};
use super::super::target::Isa;
use super::super::x86::{
    self,
    asm::{Len, VOp},
};
use super::{EmitError, Lower, Result, Val, len_of};
use zyx_core::ir::{Type, Value};
use zyx_core::{BinaryOp, DType, Scalar, TernaryOp, UnaryOp};

/// The member of a floating-point family for a type.
fn fp(ty: Type, [ps, pd, ss, sd]: [VOp; 4]) -> VOp {
    match (ty.dtype, ty.lanes) {
        (DType::F32, 1) => ss,
        (DType::F32, _) => ps,
        (_, 1) => sd,
        _ => pd,
    }
}

/// The single instruction of an op, if there is one; operands in IR order.
fn direct(op: BinaryOp, ty: Type, isa: Isa) -> Option<Vop> {
    use BinaryOp::{Add, And, Div, Max, Min, Mul, Or, Shl, Shr, Sub, Xor};
    let (float, signed, size) = (ty.dtype.is_float(), ty.dtype.is_signed(), ty.dtype.size());
    if matches!(ty.dtype, DType::F16 | DType::BF16 | DType::Bool) {
        return None;
    }
    let long = size == 8;
    let shifts = (size >= 4 || isa.has(Has::NarrowShifts)) && isa.has(Has::AnyShiftCount);
    Some(match op {
        Add => Vop::Add,
        Sub => Vop::Sub,
        Mul if float => Vop::Mul,
        Mul if long && !isa.has(Has::MulI64) || size == 1 && !isa.has(Has::MulI8) => return None,
        Mul => Vop::Mul,
        Div if float => Vop::Div,
        Max if float && isa.has(Has::NanExtremum) => Vop::MaxNan,
        Min if float && isa.has(Has::NanExtremum) => Vop::MinNan,
        Max | Min if float || long && !isa.has(Has::MaxI64) => return None,
        Max if signed => Vop::MaxS,
        Max => Vop::MaxU,
        Min if signed => Vop::MinS,
        Min => Vop::MinU,
        And => Vop::And,
        Or => Vop::Or,
        Xor => Vop::Xor,
        Shl if shifts => Vop::Shl,
        Shr if shifts && signed && (!long || isa.has(Has::ShrI64)) => Vop::ShrS,
        Shr if shifts && !signed => Vop::ShrU,
        _ => return None,
    })
}

/// The float extremum that gives its second operand if either is NaN.
fn extremum(op: BinaryOp, ty: Type) -> VOp {
    match op {
        BinaryOp::Max => fp(ty, [VOp::Vmaxps, VOp::Vmaxpd, VOp::Vmaxss, VOp::Vmaxsd]),
        _ => fp(ty, [VOp::Vminps, VOp::Vminpd, VOp::Vminss, VOp::Vminsd]),
    }
}

/// Whether an op without an instruction of its own takes a few instead of a call.
const fn has_sequence(op: BinaryOp, dtype: DType, isa: Isa) -> bool {
    match op {
        BinaryOp::Max | BinaryOp::Min => {
            matches!(dtype, DType::F32 | DType::F64 | DType::I64 | DType::U64)
        }
        BinaryOp::Mul => matches!(dtype, DType::I64 | DType::U64),
        BinaryOp::Shr if isa.has(Has::AnyShiftCount) => matches!(dtype, DType::I64),
        BinaryOp::Shl | BinaryOp::Shr => !isa.has(Has::AnyShiftCount),
        _ => false,
    }
}

/// Whether ops on this dtype are done in vector registers even for one lane.
pub(super) const fn is_vector_scalar(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64)
}

impl Lower<'_> {
    /// The length of instructions on `ty`; scalars count as the shortest.
    pub(super) fn len(&self, ty: Type) -> Result<Len> {
        if ty.bytes() > self.isa.vector_bytes() {
            return Err(EmitError::new("a vector wider than a register"));
        }
        len_of(ty.bytes())
    }

    pub(super) fn unary(&mut self, value: Value, op: UnaryOp, x: Value, ty: Type) -> Result<()> {
        if ty.dtype == DType::Bool && ty.is_vector() {
            return self.mask_not(value, x);
        }
        let half = matches!(ty.dtype, DType::F16 | DType::BF16);
        if ty.lanes == 1 && !ty.dtype.is_float() {
            self.scalar_unary(value, op, x);
            return Ok(());
        }
        if half {
            return match self.half_unary(value, op, x)? {
                true => Ok(()),
                false => self.fallback_unary(value, op, x),
            };
        }
        if self.ramp_unary(value, op, x) {
            return Ok(());
        }
        if ty.dtype.is_float() {
            return self.float_unary(value, op, x, ty);
        }
        self.int_unary(value, op, x, ty)
    }

    fn float_unary(&mut self, value: Value, op: UnaryOp, x: Value, ty: Type) -> Result<()> {
        self.len(ty)?;
        let (size, scalar) = (ty.dtype.size(), ty.lanes == 1);
        let sign = 1u64 << (8 * size - 1);
        match op {
            UnaryOp::Neg if self.isa.has(Has::SignOps) => self.one_operand(value, Vop::Neg, x)?,
            UnaryOp::Abs if self.isa.has(Has::SignOps) => self.one_operand(value, Vop::Abs, x)?,
            UnaryOp::Neg | UnaryOp::Abs => {
                let (op, bits) = match op {
                    UnaryOp::Neg => (Vop::Xor, sign),
                    _ => (Vop::And, sign - 1),
                };
                let mask = self.splat_const(bits, size);
                // A scalar in memory is shorter than these instructions read.
                let b = if scalar { Place::Reg(self.vec(x)?) } else { self.place(x)? };
                let dst = self.target(value);
                self.vop_to(op, Shape::of(ty), dst, mask, b);
                self.set(value, Val::Vec(dst));
            }
            UnaryOp::Recip => {
                let one = if size == 4 { 1f32.to_bits().into() } else { 1f64.to_bits() };
                let one = self.splat_const(one, size);
                let b = self.place(x)?;
                let dst = self.target(value);
                self.vop_to(Vop::Div, Shape::of(ty), dst, one, b);
                self.set(value, Val::Vec(dst));
            }
            UnaryOp::Sqrt => self.one_operand(value, Vop::Sqrt, x)?,
            UnaryOp::Round => self.one_operand(value, Vop::Round, x)?,
            UnaryOp::Floor => self.one_operand(value, Vop::Floor, x)?,
            UnaryOp::Ceil => self.one_operand(value, Vop::Ceil, x)?,
            UnaryOp::Trunc => self.one_operand(value, Vop::Trunc, x)?,
            _ => return self.fallback_unary(value, op, x),
        }
        Ok(())
    }

    /// An instruction with one source, which scalars have in a register.
    fn one_operand(&mut self, value: Value, op: Vop, x: Value) -> Result<()> {
        let ty = self.ty(x);
        let b = if ty.lanes == 1 { Place::Reg(self.vec(x)?) } else { self.place(x)? };
        let dst = self.target(value);
        self.vop_to(op, Shape::of(ty), dst, Reg::NONE, b);
        self.set(value, Val::Vec(dst));
        Ok(())
    }

    fn int_unary(&mut self, value: Value, op: UnaryOp, x: Value, ty: Type) -> Result<()> {
        let len = self.len(ty)?;
        let size = ty.dtype.size();
        let shape = Shape::of(ty);
        match op {
            UnaryOp::Neg if self.isa.has(Has::SignOps) => self.one_operand(value, Vop::Neg, x)?,
            UnaryOp::Not if self.isa.has(Has::SignOps) => self.one_operand(value, Vop::Not, x)?,
            UnaryOp::Neg | UnaryOp::Not => {
                let (op, all) =
                    if op == UnaryOp::Neg { (Vop::Sub, 0) } else { (Vop::Xor, u64::MAX) };
                let (a, b) = (self.splat_const(all, 8), self.vec(x)?);
                let dst = self.target(value);
                self.vop_to(op, shape, dst, a, b);
                self.set(value, Val::Vec(dst));
            }
            UnaryOp::Abs if ty.dtype.is_signed() => {
                let a = self.vec(x)?;
                let dst = self.target(value);
                if size == 8 && !self.isa.has(Has::AbsI64) {
                    let zero = self.splat_const(0, 8);
                    let sign = self.vec3(VOp::Vpcmpgtq, len, zero, a);
                    let flipped = self.vop2(Vop::Xor, shape, a, sign);
                    self.vop_to(Vop::Sub, shape, dst, flipped, sign);
                } else {
                    self.vop_to(Vop::Abs, shape, dst, Reg::NONE, a);
                }
                self.set(value, Val::Vec(dst));
            }
            // Rounding integers, the magnitude of unsigned ones.
            _ => {
                let a = self.vec(x)?;
                let dst = self.target(value);
                self.move_vec(dst, a);
                self.set(value, Val::Vec(dst));
            }
        }
        Ok(())
    }

    pub(super) fn binary(&mut self, value: Value, op: BinaryOp, x: Value, y: Value) -> Result<()> {
        let ty = self.ty(x);
        if ty.dtype == DType::Bool && ty.is_vector() {
            return self.mask_binary(value, op, x, y);
        }
        if matches!(ty.dtype, DType::F16 | DType::BF16) {
            return match self.half_binary(value, op, x, y)? {
                true => Ok(()),
                false => self.fallback_binary(value, op, x, y),
            };
        }
        if ty.lanes == 1 && !ty.dtype.is_float() {
            return self.scalar_binary(value, op, x, y);
        }
        if self.ramp_binary(value, op, x, y)? {
            return Ok(());
        }
        if op.is_comparison() {
            return self.compare(value, op, x, y);
        }
        self.len(ty)?;
        if let Some(shift) = self.shift_by_constant(op, ty, y) {
            let a = self.vec(x)?;
            let dst = self.target(value);
            self.vop_to(shift, Shape::of(ty), dst, Reg::NONE, a);
            self.set(value, Val::Vec(dst));
            return Ok(());
        }
        if let Some(instruction) = direct(op, ty, self.isa) {
            let (a, b) = self.operands(x, y, op.is_commutative())?;
            let dst = self.target(value);
            self.vop_to(instruction, Shape::of(ty), dst, a, b);
            self.set(value, Val::Vec(dst));
            return Ok(());
        }
        let bounds = matches!(op, BinaryOp::Max | BinaryOp::Min) && ty.dtype.is_float();
        if bounds && self.is_number(x) | self.is_number(y) {
            return self.bounded(value, op, (x, y), ty);
        }
        if !has_sequence(op, ty.dtype, self.isa) {
            return self.fallback_binary(value, op, x, y);
        }
        if ty.dtype.is_float() && self.extremum_in_place(value, op, (x, y), ty)? {
            return Ok(());
        }
        let (a, b) = (self.vec(x)?, self.vec(y)?);
        let dst = self.target(value);
        self.sequence(op, ty, dst, a, b)?;
        self.set(value, Val::Vec(dst));
        Ok(())
    }

    /// The immediate form of a shift by a known number of bits, which needs no register for it.
    fn shift_by_constant(&self, op: BinaryOp, ty: Type, y: Value) -> Option<Vop> {
        let (size, signed) = (ty.dtype.size(), ty.dtype.is_signed());
        if size < 4 && !self.isa.has(Has::NarrowShifts) {
            return None;
        }
        let by = self.known_i64(y).filter(|by| (0..ty.dtype.bits() as i64).contains(by))? as u8;
        Some(match op {
            BinaryOp::Shl => Vop::ShlBy(by),
            // Not every machine can shift to the right by nothing.
            BinaryOp::Shr if by == 0 && !self.isa.is_x86() => Vop::ShlBy(0),
            BinaryOp::Shr if signed && (size < 8 || self.isa.has(Has::ShrI64)) => Vop::ShrSBy(by),
            BinaryOp::Shr if !signed => Vop::ShrUBy(by),
            _ => return None,
        })
    }

    /// `op` on registers, if that takes no call.
    pub(super) fn combine(
        &mut self,
        op: BinaryOp,
        ty: Type,
        a: Reg,
        b: Reg,
    ) -> Result<Option<Reg>> {
        if let Some(reg) = self.combine_halves(op, ty, a, b) {
            return Ok(Some(reg));
        }
        if let Some(instruction) = direct(op, ty, self.isa) {
            self.len(ty)?;
            return Ok(Some(self.vop2(instruction, Shape::of(ty), a, b)));
        }
        if !has_sequence(op, ty.dtype, self.isa) {
            return Ok(None);
        }
        let dst = self.new_vec();
        self.sequence(op, ty, dst, a, b)?;
        Ok(Some(dst))
    }

    /// Ops that take several instructions; `dst` is written by the last.
    fn sequence(&mut self, op: BinaryOp, ty: Type, dst: Reg, a: Reg, b: Reg) -> Result<()> {
        let (len, shape) = (self.len(ty)?, Shape::of(ty));
        match (op, ty.dtype) {
            (BinaryOp::Max | BinaryOp::Min, DType::F32 | DType::F64) => {
                return self.float_extremum(op, ty, dst, a, b);
            }
            (BinaryOp::Mul, _) if self.isa.is_x86() => self.mul64_avx2(shape, dst, a, b),
            (BinaryOp::Mul, _) => self.mul64(ty.lanes, dst, a, b),
            (BinaryOp::Shl | BinaryOp::Shr, _) if !self.isa.has(Has::AnyShiftCount) => {
                self.shift_at_most(op, ty, dst, a, b);
            }
            (BinaryOp::Shr, _) => {
                // x >> n = ((x ^ s) >>> n) ^ s with s all sign; right for n >= 64 too.
                let zero = self.splat_const(0, 8);
                let sign = self.vec3(VOp::Vpcmpgtq, len, zero, a);
                let flipped = self.vop2(Vop::Xor, shape, a, sign);
                let shifted = self.vop2(Vop::ShrU, shape, flipped, b);
                self.vop_to(Vop::Xor, shape, dst, shifted, sign);
            }
            _ => {
                let mask = self.greater(shape, ty.dtype.is_signed(), a, b);
                let (a, b) = if op == BinaryOp::Max { (b, a) } else { (a, b) };
                self.push(Inst::SelectVec { shape, dst, mask, a, b: b.into() });
            }
        }
        Ok(())
    }

    /// Low 64 bits of products, from products of halves.
    fn mul64_avx2(&mut self, shape: Shape, dst: Reg, a: Reg, b: Reg) {
        let len = x86::len_of(shape.bytes());
        let [a_high, b_high] = [a, b].map(|x| self.vop1(Vop::ShrUBy(32), shape, x));
        let cross1 = self.vec3(VOp::Vpmuludq, len, a_high, b);
        let cross2 = self.vec3(VOp::Vpmuludq, len, b_high, a);
        let cross = self.vop2(Vop::Add, shape, cross1, cross2);
        let high = self.vop1(Vop::ShlBy(32), shape, cross);
        let low = self.vec3(VOp::Vpmuludq, len, a, b);
        self.vop_to(Vop::Add, shape, dst, low, high);
    }

    /// Low 64 bits of products where only halves have products.
    fn mul64(&mut self, lanes: u8, dst: Reg, a: Reg, b: Reg) {
        let lanes = usize::from(lanes);
        let (long, short) = (Shape::ints(8, lanes), Shape::ints(4, lanes));
        let halves = Shape::ints(4, 2 * lanes);
        let exchanged = self.vop1(Vop::SwapHalves, long, b);
        let crosses = self.vop2(Vop::Mul, halves, exchanged, a);
        let cross = self.vop1(Vop::PairSumU, long, crosses);
        let high = self.vop1(Vop::ShlBy(32), long, cross);
        let (a, b) = (self.vop1(Vop::Narrow, short, a), self.vop1(Vop::Narrow, short, b));
        let low = self.vop2(Vop::MulWide, long, a, b);
        self.vop_to(Vop::Add, long, dst, low, high);
    }

    /// Shifts by lanes where counts above the width are no counts: as many bits as there are instead.
    fn shift_at_most(&mut self, op: BinaryOp, ty: Type, dst: Reg, a: Reg, b: Reg) {
        let (shape, size) = (Shape::of(ty), ty.dtype.size());
        let width = self.splat_const(8 * size as u64, size);
        let by = if size < 8 || self.isa.has(Has::MaxI64) {
            self.vop2(Vop::MinU, shape, b, width)
        } else {
            let fits = self.vop2(Vop::Compare(Compare::Below), shape, b, width);
            let by = self.new_vec();
            self.push(Inst::SelectVec { shape, dst: by, mask: fits, a: width, b: b.into() });
            by
        };
        let shift = match op {
            BinaryOp::Shl => Vop::Shl,
            _ if ty.dtype.is_signed() => Vop::ShrS,
            _ => Vop::ShrU,
        };
        self.vop_to(shift, shape, dst, a, by);
    }

    /// Whether `value` is a constant other than NaN.
    fn is_number(&self, value: Value) -> bool {
        let dtype = self.ty(value).dtype;
        matches!(self.val(value), Val::Const(bits)
            if !Scalar::from_bits(dtype, bits).to_f64().is_nan())
    }

    /// The larger or smaller of a value and a constant: a NaN can only be the value, which goes
    /// second, and the instruction gives its second operand if either is NaN.
    fn bounded(
        &mut self,
        value: Value,
        op: BinaryOp,
        (x, y): (Value, Value),
        ty: Type,
    ) -> Result<()> {
        let len = self.len(ty)?;
        let (first, second) = if self.is_number(x) { (x, y) } else { (y, x) };
        let (a, b) = (self.vec(first)?, self.place(second)?);
        let dst = self.target(value);
        self.vec3_to(extremum(op, ty), len, dst, a, b);
        self.set(value, Val::Vec(dst));
        Ok(())
    }

    /// An accumulator that is replaced unless it is NaN already: a NaN in the other operand comes
    /// out of the instruction. Whether this was such a case.
    fn extremum_in_place(
        &mut self,
        value: Value,
        op: BinaryOp,
        (x, y): (Value, Value),
        ty: Type,
    ) -> Result<bool> {
        if !self.isa.has_masks() || self.facts.target[value.idx()].is_none() {
            return Ok(false);
        }
        let dst = self.target(value);
        let other = match (self.val(x) == Val::Vec(dst), self.val(y) == Val::Vec(dst)) {
            (true, false) => y,
            (false, true) => x,
            _ => return Ok(false),
        };
        let len = self.len(ty)?;
        let rm = self.place(other)?;
        let number = self.mask3(mask_compare(ty), len, dst, dst, ORDERED);
        let it = VecInst {
            reg: dst,
            vvvv: dst,
            mask: number,
            ..VecInst::new(extremum(op, ty), len, rm)
        };
        self.push(Inst::Vec(VecInst { effect: Effect::Mod, ..it }));
        self.set(value, Val::Vec(dst));
        Ok(true)
    }

    /// A NaN in the second operand comes out of the instruction; one in the first has to be put
    /// back.
    fn float_extremum(&mut self, op: BinaryOp, ty: Type, dst: Reg, a: Reg, b: Reg) -> Result<()> {
        let len = self.len(ty)?;
        let best = self.vec3(extremum(op, ty), len, a, b);
        match self.isa.bools() {
            Bools::MaskRegister => {
                let nan = self.mask3(mask_compare(ty), len, a, a, UNORDERED);
                self.blend_mask(ty.dtype.size(), len, dst, nan, best, a.into());
            }
            Bools::WideLanes => {
                let compare = fp(ty, [VOp::Vcmpps, VOp::Vcmppd, VOp::Vcmpss, VOp::Vcmpsd]);
                // All ones is a NaN too.
                let nan = self.vec3_imm(compare, len, a, a, UNORDERED);
                self.vec3_to(VOp::Vpord, len, dst, best, nan);
            }
        }
        Ok(())
    }

    /// `dst = mask ? b : a` with a mask register.
    pub(super) fn blend_mask(
        &mut self,
        size: usize,
        len: Len,
        dst: Reg,
        mask: Reg,
        a: Reg,
        b: Place,
    ) {
        let op = [VOp::Vpblendmb, VOp::Vpblendmw, VOp::Vblendmps, VOp::Vblendmpd];
        let op = op[size.trailing_zeros() as usize];
        self.push(Inst::Vec(VecInst { reg: dst, vvvv: a, mask, ..VecInst::new(op, len, b) }));
    }

    /// `dst = mask ? b : a` with a mask of whole elements.
    pub(super) fn blend_wide(&mut self, shape: Shape, dst: Reg, mask: Reg, a: Reg, b: Place) {
        self.push(Inst::SelectVec { shape, dst, mask, a, b });
    }

    pub(super) fn ternary(
        &mut self,
        value: Value,
        op: TernaryOp,
        (x, y, z): (Value, Value, Value),
        ty: Type,
    ) -> Result<()> {
        match op {
            TernaryOp::Where => self.select_where(value, x, y, z, ty),
            TernaryOp::MulAdd => self.mul_add(value, (x, y, z), ty),
        }
    }

    fn mul_add(&mut self, value: Value, (x, y, z): (Value, Value, Value), ty: Type) -> Result<()> {
        if !is_vector_scalar(ty.dtype) {
            return self.fallback_ternary(value, TernaryOp::MulAdd, [x, y, z]);
        }
        self.len(ty)?;
        // One operand may stay in memory: a factor, or else the addend.
        let (a, b) = self.operands(x, y, true)?;
        let c = match b {
            Place::Mem(_) => Place::Reg(self.vec(z)?),
            Place::Reg(_) => self.place(z)?,
        };
        let dst = self.target(value);
        self.push(Inst::Fma { shape: Shape::of(ty), dst, a, b, c });
        self.set(value, Val::Vec(dst));
        Ok(())
    }

    fn select_where(
        &mut self,
        value: Value,
        cond: Value,
        x: Value,
        y: Value,
        ty: Type,
    ) -> Result<()> {
        if ty.lanes == 1 && !is_vector_scalar(ty.dtype) {
            return self.scalar_where(value, cond, x, y);
        }
        if ty.dtype == DType::Bool {
            return self.mask_where(value, cond, x, y);
        }
        let (len, size, scalar) = (self.len(ty)?, ty.dtype.size(), ty.lanes == 1);
        match self.isa.bools() {
            Bools::MaskRegister => {
                let mask = self.mask(cond)?;
                // Zero where the condition fails is what masked instructions do anyway.
                let is_zero = matches!(self.val(y), Val::Const(0)) && !scalar;
                if is_zero && self.facts.target[value.idx()].is_none() {
                    let a = self.place(x)?;
                    let op = [VOp::Vmovdqu8, VOp::Vmovdqu16, VOp::Vmovups, VOp::Vmovupd];
                    let op = op[size.trailing_zeros() as usize];
                    let dst = self.vec2_zeroed(op, len, mask, a);
                    self.set(value, Val::Vec(dst));
                    return Ok(());
                }
                let a = self.vec(y)?;
                let b = if scalar { Place::Reg(self.vec(x)?) } else { self.place(x)? };
                let dst = self.target(value);
                self.blend_mask(size, len, dst, mask, a, b);
                self.set(value, Val::Vec(dst));
            }
            Bools::WideLanes => {
                let mask = self.wide(cond, size)?;
                let a = self.vec(y)?;
                let b = if scalar { Place::Reg(self.vec(x)?) } else { self.place(x)? };
                let dst = self.target(value);
                self.blend_wide(Shape::of(ty), dst, mask, a, b);
                self.set(value, Val::Vec(dst));
            }
        }
        Ok(())
    }

    /// Elements of `a` that are greater than those of `b`, for integers, where bools are elements.
    pub(super) fn greater(&mut self, shape: Shape, signed: bool, a: Reg, b: Reg) -> Reg {
        if self.isa.has(Has::IntCompare) {
            let how = if signed { Compare::Less } else { Compare::Below };
            return self.vop2(Vop::Compare(how), shape, b, a);
        }
        let size = shape.elem.size();
        let (mut a, mut b) = (a, b);
        if !signed {
            // Flipping the top bit turns unsigned order into signed order.
            let top = self.splat_const(1 << (8 * size - 1), size);
            a = self.vop2(Vop::Xor, shape, a, top);
            b = self.vop2(Vop::Xor, shape, b, top);
        }
        let op = [VOp::Vpcmpgtb, VOp::Vpcmpgtw, VOp::Vpcmpgtd, VOp::Vpcmpgtq];
        let len = x86::len_of(shape.bytes());
        self.vec3(op[size.trailing_zeros() as usize], len, a, b)
    }

    /// A fresh vector register, for results that are written in several steps.
    pub(super) fn new_vec(&mut self) -> Reg {
        self.new_reg(Class::Vec)
    }
}

/// The comparison of floats whose result is a mask register.
fn mask_compare(ty: Type) -> VOp {
    fp(ty, [VOp::VcmppsMask, VOp::VcmppdMask, VOp::VcmpssMask, VOp::VcmpsdMask])
}

/// Comparison predicate: either operand is NaN.
pub(super) const UNORDERED: u8 = 3;
/// Comparison predicate: neither operand is NaN.
pub(super) const ORDERED: u8 = 7;
