//! Arithmetic in vector registers: vectors of numbers and float scalars.
//!
//! One table (`direct`) names the instruction of every op and dtype that has one; what takes a
//! few instructions follows below; everything else goes to `fallback`. Results are computed into
//! the register that `target` names, written by the last instruction only, so that an accumulator
//! can be both operand and result.

use super::super::machine::{Bools, Class, Effect, Has, Inst, Place, Reg, Shape, VecInst};
use super::super::target::Isa;
use super::super::x86::asm::{Len, VOp};
use super::{EmitError, Lower, Result, Val, len_of, plain};
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
fn direct(op: BinaryOp, ty: Type, isa: Isa) -> Option<VOp> {
    use BinaryOp::{Add, And, Max, Min, Mul, Or, Shl, Shr, Sub, Xor};
    use DType::{F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    let evex = isa.has_masks();
    Some(match (op, ty.dtype) {
        (Add, F32 | F64) => fp(ty, [VOp::Vaddps, VOp::Vaddpd, VOp::Vaddss, VOp::Vaddsd]),
        (Sub, F32 | F64) => fp(ty, [VOp::Vsubps, VOp::Vsubpd, VOp::Vsubss, VOp::Vsubsd]),
        (Mul, F32 | F64) => fp(ty, [VOp::Vmulps, VOp::Vmulpd, VOp::Vmulss, VOp::Vmulsd]),
        (BinaryOp::Div, F32 | F64) => fp(ty, [VOp::Vdivps, VOp::Vdivpd, VOp::Vdivss, VOp::Vdivsd]),
        (Add, I8 | U8) => VOp::Vpaddb,
        (Add, I16 | U16) => VOp::Vpaddw,
        (Add, I32 | U32) => VOp::Vpaddd,
        (Add, I64 | U64) => VOp::Vpaddq,
        (Sub, I8 | U8) => VOp::Vpsubb,
        (Sub, I16 | U16) => VOp::Vpsubw,
        (Sub, I32 | U32) => VOp::Vpsubd,
        (Sub, I64 | U64) => VOp::Vpsubq,
        (Mul, I16 | U16) => VOp::Vpmullw,
        (Mul, I32 | U32) => VOp::Vpmulld,
        (Mul, I64 | U64) if evex => VOp::Vpmullq,
        (Max, I8) => VOp::Vpmaxsb,
        (Max, I16) => VOp::Vpmaxsw,
        (Max, I32) => VOp::Vpmaxsd,
        (Max, I64) if evex => VOp::Vpmaxsq,
        (Max, U8) => VOp::Vpmaxub,
        (Max, U16) => VOp::Vpmaxuw,
        (Max, U32) => VOp::Vpmaxud,
        (Max, U64) if evex => VOp::Vpmaxuq,
        (Min, I8) => VOp::Vpminsb,
        (Min, I16) => VOp::Vpminsw,
        (Min, I32) => VOp::Vpminsd,
        (Min, I64) if evex => VOp::Vpminsq,
        (Min, U8) => VOp::Vpminub,
        (Min, U16) => VOp::Vpminuw,
        (Min, U32) => VOp::Vpminud,
        (Min, U64) if evex => VOp::Vpminuq,
        (And, _) => VOp::Vpandd,
        (Or, _) => VOp::Vpord,
        (Xor, _) => VOp::Vpxord,
        (Shl, I32 | U32) => VOp::Vpsllvd,
        (Shl, I64 | U64) => VOp::Vpsllvq,
        (Shr, I32) => VOp::Vpsravd,
        (Shr, U32) => VOp::Vpsrlvd,
        (Shr, I64) if evex => VOp::Vpsravq,
        (Shr, U64) => VOp::Vpsrlvq,
        _ => return None,
    })
}

fn extremum(op: BinaryOp, ty: Type) -> VOp {
    match op {
        BinaryOp::Max => fp(ty, [VOp::Vmaxps, VOp::Vmaxpd, VOp::Vmaxss, VOp::Vmaxsd]),
        _ => fp(ty, [VOp::Vminps, VOp::Vminpd, VOp::Vminss, VOp::Vminsd]),
    }
}

/// Whether an op without an instruction of its own takes a few instead of a call.
const fn has_sequence(op: BinaryOp, dtype: DType) -> bool {
    match op {
        BinaryOp::Max | BinaryOp::Min => {
            matches!(dtype, DType::F32 | DType::F64 | DType::I64 | DType::U64)
        }
        BinaryOp::Mul => matches!(dtype, DType::I64 | DType::U64),
        BinaryOp::Shr => matches!(dtype, DType::I64),
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
            return self.fallback_unary(value, op, x);
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
        let len = self.len(ty)?;
        let (size, scalar) = (ty.dtype.size(), ty.lanes == 1);
        let sign = 1u64 << (8 * size - 1);
        let round = fp(ty, [VOp::Vroundps, VOp::Vroundpd, VOp::Vroundss, VOp::Vroundsd]);
        match op {
            UnaryOp::Neg | UnaryOp::Abs => {
                let (op, bits) = match op {
                    UnaryOp::Neg => (VOp::Vpxord, sign),
                    _ => (VOp::Vpandd, sign - 1),
                };
                let mask = self.splat_const(bits, size);
                // A scalar in memory is shorter than these instructions read.
                let b = if scalar { Place::Reg(self.vec(x)?) } else { self.place(x)? };
                let dst = self.target(value);
                self.vec3_to(op, len, dst, mask, b);
                self.set(value, Val::Vec(dst));
            }
            UnaryOp::Recip => {
                let one = if size == 4 { 1f32.to_bits().into() } else { 1f64.to_bits() };
                let one = self.splat_const(one, size);
                let b = self.place(x)?;
                let dst = self.target(value);
                let div = fp(ty, [VOp::Vdivps, VOp::Vdivpd, VOp::Vdivss, VOp::Vdivsd]);
                self.vec3_to(div, len, dst, one, b);
                self.set(value, Val::Vec(dst));
            }
            UnaryOp::Sqrt => {
                let sqrt = fp(ty, [VOp::Vsqrtps, VOp::Vsqrtpd, VOp::Vsqrtss, VOp::Vsqrtsd]);
                self.one_operand(value, sqrt, len, x, scalar, 0)?;
            }
            // Immediate: rounding mode, with the precision exception suppressed.
            UnaryOp::Round => self.one_operand(value, round, len, x, scalar, 8)?,
            UnaryOp::Floor => self.one_operand(value, round, len, x, scalar, 9)?,
            UnaryOp::Ceil => self.one_operand(value, round, len, x, scalar, 10)?,
            UnaryOp::Trunc => self.one_operand(value, round, len, x, scalar, 11)?,
            _ => return self.fallback_unary(value, op, x),
        }
        Ok(())
    }

    /// An instruction with one source; the scalar forms take their upper lanes from another.
    fn one_operand(
        &mut self,
        value: Value,
        op: VOp,
        len: Len,
        x: Value,
        scalar: bool,
        imm: u8,
    ) -> Result<()> {
        let rm = if scalar { Place::Reg(self.vec(x)?) } else { self.place(x)? };
        let vvvv = match rm {
            Place::Reg(reg) if scalar => reg,
            _ => Reg::NONE,
        };
        let reg = self.target(value);
        self.push(Inst::Vec(VecInst { reg, vvvv, imm, ..plain(op, len, rm) }));
        self.set(value, Val::Vec(reg));
        Ok(())
    }

    fn int_unary(&mut self, value: Value, op: UnaryOp, x: Value, ty: Type) -> Result<()> {
        let len = self.len(ty)?;
        let size = ty.dtype.size();
        match op {
            UnaryOp::Neg => {
                let (zero, b) = (self.splat_const(0, 8), self.vec(x)?);
                let dst = self.target(value);
                let sub = [VOp::Vpsubb, VOp::Vpsubw, VOp::Vpsubd, VOp::Vpsubq];
                self.vec3_to(sub[size.trailing_zeros() as usize], len, dst, zero, b);
                self.set(value, Val::Vec(dst));
            }
            UnaryOp::Not => {
                let (ones, b) = (self.splat_const(u64::MAX, 8), self.vec(x)?);
                let dst = self.target(value);
                self.vec3_to(VOp::Vpxord, len, dst, ones, b);
                self.set(value, Val::Vec(dst));
            }
            UnaryOp::Abs if ty.dtype.is_signed() => {
                let a = self.vec(x)?;
                let dst = self.target(value);
                match size {
                    8 if !self.isa.has(Has::AbsI64) => {
                        let zero = self.splat_const(0, 8);
                        let sign = self.vec3(VOp::Vpcmpgtq, len, zero, a);
                        let flipped = self.vec3(VOp::Vpxord, len, a, sign);
                        self.vec3_to(VOp::Vpsubq, len, dst, flipped, sign);
                    }
                    _ => {
                        let abs = [VOp::Vpabsb, VOp::Vpabsw, VOp::Vpabsd, VOp::Vpabsq];
                        self.vec2_to(abs[size.trailing_zeros() as usize], len, dst, a, 0);
                    }
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
            return self.fallback_binary(value, op, x, y);
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
        let len = self.len(ty)?;
        if let Some(instruction) = self.shift_by_constant(op, ty, y) {
            let (instruction, by) = instruction;
            let a = self.vec(x)?;
            let dst = self.target(value);
            let it = VecInst { vvvv: dst, imm: by, ..plain(instruction, len, a.into()) };
            self.push(Inst::Vec(VecInst { effect: Effect::Shift, ..it }));
            self.set(value, Val::Vec(dst));
            return Ok(());
        }
        if let Some(instruction) = direct(op, ty, self.isa) {
            let (a, b) = self.operands(x, y, op.is_commutative())?;
            let dst = self.target(value);
            self.vec3_to(instruction, len, dst, a, b);
            self.set(value, Val::Vec(dst));
            return Ok(());
        }
        let bounds = matches!(op, BinaryOp::Max | BinaryOp::Min) && ty.dtype.is_float();
        if bounds && self.is_number(x) | self.is_number(y) {
            return self.bounded(value, op, (x, y), ty);
        }
        if !has_sequence(op, ty.dtype) {
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
    fn shift_by_constant(&self, op: BinaryOp, ty: Type, y: Value) -> Option<(VOp, u8)> {
        let by = self.known_i64(y).filter(|by| (0..ty.dtype.bits() as i64).contains(by))?;
        let op = match (op, ty.dtype) {
            (BinaryOp::Shl, DType::I32 | DType::U32) => VOp::Vpslld,
            (BinaryOp::Shl, DType::I64 | DType::U64) => VOp::Vpsllq,
            (BinaryOp::Shr, DType::I32) => VOp::Vpsrad,
            (BinaryOp::Shr, DType::U32) => VOp::Vpsrld,
            (BinaryOp::Shr, DType::I64) if self.isa.has_masks() => VOp::Vpsraq,
            (BinaryOp::Shr, DType::U64) => VOp::Vpsrlq,
            _ => return None,
        };
        Some((op, by as u8))
    }

    /// `op` on registers, if that takes no call.
    pub(super) fn combine(
        &mut self,
        op: BinaryOp,
        ty: Type,
        a: Reg,
        b: Reg,
    ) -> Result<Option<Reg>> {
        if let Some(instruction) = direct(op, ty, self.isa) {
            let len = self.len(ty)?;
            return Ok(Some(self.vec3(instruction, len, a, b)));
        }
        if !has_sequence(op, ty.dtype) {
            return Ok(None);
        }
        let dst = self.new_vec();
        self.sequence(op, ty, dst, a, b)?;
        Ok(Some(dst))
    }

    /// Ops that take several instructions; `dst` is written by the last.
    fn sequence(&mut self, op: BinaryOp, ty: Type, dst: Reg, a: Reg, b: Reg) -> Result<()> {
        let len = self.len(ty)?;
        match (op, ty.dtype) {
            (BinaryOp::Max | BinaryOp::Min, DType::F32 | DType::F64) => {
                return self.float_extremum(op, ty, dst, a, b);
            }
            (BinaryOp::Mul, _) => self.mul64_avx2(len, dst, a, b),
            (BinaryOp::Shr, _) => {
                // x >> n = ((x ^ s) >>> n) ^ s with s all sign; right for n >= 64 too.
                let zero = self.splat_const(0, 8);
                let sign = self.vec3(VOp::Vpcmpgtq, len, zero, a);
                let flipped = self.vec3(VOp::Vpxord, len, a, sign);
                let shifted = self.vec3(VOp::Vpsrlvq, len, flipped, b);
                self.vec3_to(VOp::Vpxord, len, dst, shifted, sign);
            }
            _ => {
                let mask = self.greater_avx2(ty, a, b);
                let (a, b) = if op == BinaryOp::Max { (b, a) } else { (a, b) };
                let shape = Shape::of(ty);
                self.push(Inst::SelectVec { shape, dst, mask, a, b: b.into() });
            }
        }
        Ok(())
    }

    /// Low 64 bits of products, from products of halves.
    fn mul64_avx2(&mut self, len: Len, dst: Reg, a: Reg, b: Reg) {
        let (a_high, b_high) =
            (self.vec_shift(VOp::Vpsrlq, len, a, 32), self.vec_shift(VOp::Vpsrlq, len, b, 32));
        let cross1 = self.vec3(VOp::Vpmuludq, len, a_high, b);
        let cross2 = self.vec3(VOp::Vpmuludq, len, b_high, a);
        let cross = self.vec3(VOp::Vpaddq, len, cross1, cross2);
        let high = self.vec_shift(VOp::Vpsllq, len, cross, 32);
        let low = self.vec3(VOp::Vpmuludq, len, a, b);
        self.vec3_to(VOp::Vpaddq, len, dst, low, high);
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
        let it = VecInst { reg: dst, vvvv: dst, mask: number, ..plain(extremum(op, ty), len, rm) };
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
        self.push(Inst::Vec(VecInst { reg: dst, vvvv: a, mask, ..plain(op, len, b) }));
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

    /// Elements of `a` that are greater than those of `b`, for integers (AVX2).
    pub(super) fn greater_avx2(&mut self, ty: Type, a: Reg, b: Reg) -> Reg {
        let size = ty.dtype.size();
        let len = len_of(ty.bytes()).expect("invariant: the type was checked to fit");
        let (mut a, mut b) = (a, b);
        if !ty.dtype.is_signed() {
            // Flipping the top bit turns unsigned order into signed order.
            let top = self.splat_const(1 << (8 * size - 1), size);
            a = self.vec3(VOp::Vpxord, len, a, top);
            b = self.vec3(VOp::Vpxord, len, b, top);
        }
        let op = [VOp::Vpcmpgtb, VOp::Vpcmpgtw, VOp::Vpcmpgtd, VOp::Vpcmpgtq];
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
