//! Conversions between dtypes, exactly as `Scalar::cast` defines them.
//!
//! Integers wrap; floats become integers by truncation, saturating, with NaN as 0; everything is
//! rounded to a float once. Where the processor would round twice (64-bit values and halves) or
//! has no instruction, `fallback` converts.

use super::super::machine::{
    Class, Compare, Cond, Elem, Extend, Has, Inst, Operand, Place, Reg, Shape, Shift, Size, Test,
    Vop,
};
use super::super::x86::{
    self,
    asm::{Len, VOp},
};
use super::mask::ramp_bytes;
use super::scalar::size_of;
use super::vector::{ORDERED, UNORDERED, is_vector_scalar};
use super::{Lower, Result, Val, len_of};
use crate::jit::machine::ConstData;
use zyx_core::ir::{Type, Value};
use zyx_core::{Class as Kind, DType, Scalar};

/// Comparison predicate: ordered "greater or equal".
const AT_LEAST: u8 = 29;

const fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

impl Lower<'_> {
    pub(super) fn cast(&mut self, value: Value, x: Value, ty: Type) -> Result<()> {
        let from = self.ty(x);
        if from.dtype == ty.dtype {
            let val = self.val(x);
            self.set(value, val);
            return Ok(());
        }
        if let Val::Const(bits) = self.val(x) {
            let constant = Scalar::from_bits(from.dtype, bits).cast(ty.dtype);
            self.set(value, Val::Const(constant.bits()));
            return Ok(());
        }
        if ty.lanes == 1 {
            return self.cast_scalar(value, x, from.dtype, ty.dtype);
        }
        if let Some(reg) = self.cast_vector(value, x, from, ty)? {
            self.set(value, Val::Vec(reg));
        }
        Ok(())
    }

    pub(super) fn bitcast(&mut self, value: Value, x: Value, ty: Type) -> Result<()> {
        let from = self.ty(x).dtype;
        if from == ty.dtype {
            let val = self.val(x);
            self.set(value, val);
            return Ok(());
        }
        if let Val::Const(bits) = self.val(x) {
            self.set(value, Val::Const(Scalar::from_bits(ty.dtype, bits).bits()));
            return Ok(());
        }
        let is_bool = from == DType::Bool || ty.dtype == DType::Bool;
        if ty.is_vector() {
            if is_bool {
                return self.cast(value, x, ty);
            }
            let reg = self.vec(x)?;
            self.set(value, Val::Vec(reg));
            return Ok(());
        }
        if is_bool {
            return self.cast(value, x, ty);
        }
        match (is_vector_scalar(from), is_vector_scalar(ty.dtype)) {
            (true, true) => unreachable!("invariant: f32 and f64 differ in width"),
            (true, false) => {
                let reg = self.vec(x)?;
                let bits = self.vec_to_gpr(reg, ty.dtype.size());
                self.set_gpr(value, bits);
            }
            (false, true) => {
                let bits = self.gpr(x);
                let reg = self.gpr_to_vec(bits, ty.dtype.size());
                self.set(value, Val::Vec(reg));
            }
            (false, false) => {
                let bits = self.gpr(x);
                let reg = self.wrap(bits, ty.dtype);
                self.set_gpr(value, reg);
            }
        }
        Ok(())
    }

    // ---- scalars -----------------------------------------------------------------------------

    fn cast_scalar(&mut self, value: Value, x: Value, from: DType, to: DType) -> Result<()> {
        if is_half(from) {
            return self.cast_from_half(value, x, from, to);
        }
        match (is_vector_scalar(from), is_vector_scalar(to)) {
            (true, true) => {
                let a = self.vec(x)?;
                let reg = self.resize_float(a, Type::scalar(to));
                self.set(value, Val::Vec(reg));
            }
            (true, false) if to == DType::Bool => self.float_to_bools(value, x)?,
            (true, false) if is_half(to) => {
                if from == DType::F64 {
                    return self.fallback_cast(value, x);
                }
                let a = self.vec(x)?;
                let bits = self.single_to_half_scalar(a, to);
                self.set(value, Val::Gpr(bits));
            }
            (true, false) => {
                let a = self.vec(x)?;
                return self.float_scalar_to_int(value, x, a, from);
            }
            (false, true) => match self.int_scalar_to_float(x, from, to) {
                Some(reg) => self.set(value, Val::Vec(reg)),
                None => return self.fallback_cast(value, x),
            },
            (false, false) if is_half(to) => {
                // Through `f32`: exact for what is below the largest half, infinite above.
                let exact = to == DType::F16 || from.size() <= 2;
                let single = exact.then(|| self.int_scalar_to_float(x, from, DType::F32)).flatten();
                let Some(single) = single else { return self.fallback_cast(value, x) };
                let bits = self.single_to_half_scalar(single, to);
                self.set(value, Val::Gpr(bits));
            }
            (false, false) => {
                let reg = self.int_scalar_to_int(x, from, to);
                self.set_gpr(value, reg);
            }
        }
        Ok(())
    }

    fn cast_from_half(&mut self, value: Value, x: Value, from: DType, to: DType) -> Result<()> {
        let bits = self.gpr(x);
        if to == DType::Bool {
            let magnitude = self.shift(Shift::Shl, Size::B32, bits, 17);
            let reg = self.not_zero(Size::B32, magnitude);
            self.set(value, Val::Gpr(reg));
            return Ok(());
        }
        let single = self.half_scalar_to_single(bits, from);
        match to {
            DType::F32 => self.set(value, Val::Vec(single)),
            DType::F64 => {
                let reg = self.resize_float(single, Type::scalar(to));
                self.set(value, Val::Vec(reg));
            }
            DType::F16 | DType::BF16 => {
                let reg = self.single_to_half_scalar(single, to);
                self.set(value, Val::Gpr(reg));
            }
            _ => return self.float_scalar_to_int(value, x, single, DType::F32),
        }
        Ok(())
    }

    /// `value`, which is `x` as an integer; `a` holds it as an `f32` or `f64`.
    fn float_scalar_to_int(&mut self, value: Value, x: Value, a: Reg, from: DType) -> Result<()> {
        let to = self.ty(value).dtype;
        // The shortest vector where there are no scalar forms.
        let lanes = if self.isa.is_x86() { 16 / from.size() as u8 } else { 1 };
        let Some(reg) = self.float_to_int(a, Type { dtype: from, lanes }, to)? else {
            return self.fallback_cast(value, x);
        };
        let bits = self.vec_to_gpr(reg, to.size().max(4));
        self.set_gpr(value, bits);
        Ok(())
    }

    /// `f32` from `f64` or the other way round.
    fn resize_float(&mut self, a: impl Into<Place>, to: Type) -> Reg {
        let op = if to.dtype == DType::F64 { Vop::DoubleFromSingle } else { Vop::SingleFromDouble };
        self.vop1(op, Shape::of(to), a)
    }

    fn half_scalar_to_single(&mut self, bits: Reg, from: DType) -> Reg {
        if from == DType::BF16 {
            let wide = self.shift(Shift::Shl, Size::B32, bits, 16);
            return self.gpr_to_vec(wide, 4);
        }
        let half = self.gpr_to_vec(bits, 4);
        self.vop1(Vop::SingleFromHalf, Shape { elem: Elem::F32, lanes: 1 }, half)
    }

    fn single_to_half_scalar(&mut self, single: Reg, to: DType) -> Reg {
        let reg = if to == DType::F16 {
            self.vop1(Vop::HalfFromSingle, Shape::ints(2, 1), single)
        } else {
            self.single_to_brain(single, 1)
        };
        let bits = self.vec_to_gpr(reg, 4);
        self.extend(Extend::Zero16, bits)
    }

    /// A register extended as the dtype wants it, from one with arbitrary upper bits.
    pub(super) fn wrap(&mut self, reg: Reg, to: DType) -> Reg {
        let kind = match to {
            DType::I8 => Extend::Sign8,
            DType::I16 => Extend::Sign16,
            DType::U8 | DType::Bool => Extend::Zero8,
            DType::U16 | DType::F16 | DType::BF16 => Extend::Zero16,
            DType::I32 | DType::U32 => Extend::Zero32,
            _ => return reg,
        };
        self.extend(kind, reg)
    }

    fn not_zero(&mut self, size: Size, a: Reg) -> Reg {
        let dst = self.new_reg(Class::Gpr);
        let test = Test { size, cond: Cond::NotEqual, a, b: Operand::Imm(0) };
        self.push(Inst::SetCc { dst, test });
        dst
    }

    fn int_scalar_to_int(&mut self, x: Value, from: DType, to: DType) -> Reg {
        if to == DType::Bool {
            let reg = self.gpr(x);
            return self.not_zero(size_of(from), reg);
        }
        if to.size() == 8 {
            return self.gpr_as_i64(x);
        }
        let reg = self.gpr(x);
        self.wrap(reg, to)
    }

    /// An integer or bool scalar rounded to `f32` or `f64`, if there is an instruction.
    fn int_scalar_to_float(&mut self, x: Value, from: DType, to: DType) -> Option<Reg> {
        let double = to == DType::F64;
        if !self.isa.is_x86() {
            let op = match from {
                DType::U64 | DType::U32 => Vop::FloatFromGprU,
                DType::I64 => Vop::FloatFromGprS(Size::B64),
                _ => Vop::FloatFromGprS(Size::B32),
            };
            let a = self.gpr(x);
            return Some(self.vop1(op, Shape { elem: Elem::of(to), lanes: 1 }, a));
        }
        let op = match (from, double) {
            (DType::U64, _) if !self.isa.has_masks() => return None,
            (DType::U64, false) => VOp::Vcvtusi2ss64,
            (DType::U64, true) => VOp::Vcvtusi2sd64,
            (DType::I64 | DType::U32, false) => VOp::Vcvtsi2ss64,
            (DType::I64 | DType::U32, true) => VOp::Vcvtsi2sd64,
            (_, false) => VOp::Vcvtsi2ss32,
            (_, true) => VOp::Vcvtsi2sd32,
        };
        let a = self.gpr(x);
        // The other lanes come from a register that waits for nothing.
        let rest = self.splat_const(0, 8);
        Some(self.vec3(op, Len::X, rest, a))
    }

    // ---- vectors -----------------------------------------------------------------------------

    /// The converted vector, or nothing if `value` was set otherwise.
    fn cast_vector(&mut self, value: Value, x: Value, from: Type, to: Type) -> Result<Option<Reg>> {
        let lanes = usize::from(to.lanes);
        if from.dtype == DType::Bool {
            let one = Scalar::from_i64(to.dtype, 1).bits();
            return self.bools_to_elements(x, to, one).map(Some);
        }
        if to.dtype == DType::Bool {
            self.vector_to_bools(value, x, from)?;
            return Ok(None);
        }
        if let (Val::Ramp(base, step), 4) = (self.val(x), to.dtype.size())
            && to.dtype.is_int()
        {
            return self.ramp_narrow(base, step, to).map(Some);
        }
        self.len(from)?;
        self.len(to)?;
        let reg = match (from.dtype.class(), to.dtype.class()) {
            (Kind::Float, Kind::Float) => self.float_to_float(x, from, to)?,
            (Kind::Float, _) => {
                let single = if is_half(from.dtype) { self.half_to_single(x, from)? } else { None };
                let (a, from) = match single {
                    Some(reg) => (reg, Type::vector(DType::F32, from.lanes)),
                    None if is_half(from.dtype) => return self.cast_by_call(value, x),
                    None => (self.vec(x)?, from),
                };
                match self.float_to_int(a, from, to.dtype)? {
                    Some(reg) if to.dtype.size() < 4 => {
                        Some(self.narrow(reg, 4, to.dtype.size(), lanes)?)
                    }
                    other => other,
                }
            }
            (_, Kind::Float) => self.int_to_float(x, from, to)?,
            _ => {
                let a = self.vec_or_memory(x, from, to)?;
                Some(self.resize(a, from.dtype, to.dtype.size(), lanes)?)
            }
        };
        match reg {
            Some(reg) => Ok(Some(reg)),
            None => self.cast_by_call(value, x),
        }
    }

    fn cast_by_call(&mut self, value: Value, x: Value) -> Result<Option<Reg>> {
        self.fallback_cast(value, x)?;
        Ok(None)
    }

    fn vector_to_bools(&mut self, value: Value, x: Value, from: Type) -> Result<()> {
        if is_vector_scalar(from.dtype) {
            return self.float_to_bools(value, x);
        }
        let reg = self.vec(x)?;
        if is_half(from.dtype) {
            let magnitude = self.splat_const(0x7fff, 2);
            self.len(from)?;
            let reg = self.vop2(Vop::And, Shape::of(from), reg, magnitude);
            return self.elements_to_bools(value, reg, from.with(DType::U16));
        }
        self.elements_to_bools(value, reg, from)
    }

    /// The operand of a widening instruction may stay in memory: it reads just that much.
    fn vec_or_memory(&mut self, x: Value, from: Type, to: Type) -> Result<Place> {
        let widens = to.dtype.size() > from.dtype.size();
        if let Val::Pending(addr) = self.val(x)
            && widens
            && to.bytes() >= 16
            && self.facts.uses[x.idx()] == 1
        {
            self.pending.retain(|it| *it != x);
            return Ok(Place::Mem(addr));
        }
        self.vec(x).map(Place::Reg)
    }

    /// Extends or truncates integer elements.
    fn resize(&mut self, a: Place, from: DType, to: usize, lanes: usize) -> Result<Reg> {
        let size = from.size();
        if to > size {
            if let (Place::Reg(mut reg), false) = (a, self.isa.is_x86()) {
                // One step at a time.
                let op = if from.is_signed() { Vop::WidenS } else { Vop::WidenU };
                for step in size.trailing_zeros()..to.trailing_zeros() {
                    reg = self.vop1(op, Shape::ints(2 << step, lanes), reg);
                }
                return Ok(reg);
            }
            let len = len_of(to * lanes)?;
            return Ok(self.vec2(widening(from.is_signed(), size, to), len, a));
        }
        match a {
            Place::Reg(reg) if to == size => Ok(reg),
            Place::Reg(reg) => self.narrow(reg, size, to, lanes),
            Place::Mem(_) => unreachable!("invariant: only widened operands stay in memory"),
        }
    }

    /// Drops upper halves of integer elements.
    fn narrow(&mut self, reg: Reg, from: usize, to: usize, lanes: usize) -> Result<Reg> {
        if from == to {
            return Ok(reg);
        }
        if !self.isa.is_x86() {
            let half = self.vop1(Vop::Narrow, Shape::ints(from / 2, lanes), reg);
            return self.narrow(half, from / 2, to, lanes);
        }
        if self.isa.has_masks() {
            let op = match (from, to) {
                (8, 4) => VOp::Vpmovqd,
                (8, 2) => VOp::Vpmovqw,
                (8, _) => VOp::Vpmovqb,
                (4, 2) => VOp::Vpmovdw,
                (4, _) => VOp::Vpmovdb,
                _ => VOp::Vpmovwb,
            };
            let dst = self.new_vec();
            self.vec_store(op, len_of(from * lanes)?, dst, reg, 0);
            return Ok(dst);
        }
        let half = match from {
            8 => self.narrow_avx2(reg, 8, lanes, None),
            _ => {
                // Packs saturate, so the upper halves have to go first.
                let keep = if from == 4 { 0xffff } else { 0xff };
                let keep = self.splat_const(keep, from);
                let low = self.vop2(Vop::And, Shape::ints(from, lanes), reg, keep);
                let pack = if from == 4 { VOp::Vpackusdw } else { VOp::Vpackuswb };
                self.narrow_avx2(low, from, lanes, Some(pack))
            }
        };
        self.narrow(half, from / 2, to, lanes)
    }

    // ---- between floats ----------------------------------------------------------------------

    /// Halves as `f32`; nothing if they do not fit a register.
    fn half_to_single(&mut self, x: Value, from: Type) -> Result<Option<Reg>> {
        let to = Type::vector(DType::F32, from.lanes);
        if to.bytes() > self.isa.vector_bytes() {
            return Ok(None);
        }
        let a = self.vec_or_memory(x, from, to)?;
        Ok(Some(match from.dtype {
            DType::F16 => self.vop1(Vop::SingleFromHalf, Shape::of(to), a),
            _ => {
                let words = Shape::ints(4, to.lanes.into());
                let wide = self.vop1(Vop::WidenU, words, a);
                self.vop1(Vop::ShlBy(16), words, wide)
            }
        }))
    }

    fn float_to_float(&mut self, x: Value, from: Type, to: Type) -> Result<Option<Reg>> {
        match (from.dtype, to.dtype) {
            (DType::F32, DType::F64) => {
                let a = self.vec_or_memory(x, from, to)?;
                Ok(Some(self.resize_float(a, to)))
            }
            (DType::F64, DType::F32) => {
                let a = self.vec(x)?;
                Ok(Some(self.resize_float(a, to)))
            }
            // Rounding twice would show.
            (DType::F64, _) => Ok(None),
            (DType::F32, _) => {
                let a = self.vec(x)?;
                self.single_to_half(a, to)
            }
            (_, to_dtype) => {
                let Some(single) = self.half_to_single(x, from)? else { return Ok(None) };
                match to_dtype {
                    DType::F32 => Ok(Some(single)),
                    DType::F64 => Ok(Some(self.resize_float(single, to))),
                    _ => self.single_to_half(single, to),
                }
            }
        }
    }

    fn single_to_half(&mut self, a: Reg, to: Type) -> Result<Option<Reg>> {
        let lanes = usize::from(to.lanes);
        if to.dtype == DType::F16 {
            return Ok(Some(self.vop1(Vop::HalfFromSingle, Shape::of(to), a)));
        }
        let wide = self.single_to_brain(a, to.lanes);
        if self.isa.has_masks() || !self.isa.is_x86() {
            return self.narrow(wide, 4, 2, lanes).map(Some);
        }
        // Values are below 2^16 already.
        Ok(Some(self.narrow_avx2(wide, 4, lanes, Some(VOp::Vpackusdw))))
    }

    /// `f32` rounded to `bf16`, in the low halves of 32-bit elements. Half a unit less one, and
    /// one more if the last kept bit is set, makes ties go to even; NaN must not become infinite.
    fn single_to_brain(&mut self, a: Reg, lanes: u8) -> Reg {
        let shape = Shape::ints(4, lanes.into());
        let top = self.vop1(Vop::ShrUBy(16), shape, a);
        let one = self.splat_const(1, 4);
        let odd = self.vop2(Vop::And, shape, top, one);
        let half = self.splat_const(0x7fff, 4);
        let bias = self.vop2(Vop::Add, shape, odd, half);
        let sum = self.vop2(Vop::Add, shape, a, bias);
        let rounded = self.vop1(Vop::ShrUBy(16), shape, sum);
        let nan = self.splat_const(0x7fc0, 4);
        let dst = self.new_vec();
        if !self.isa.is_x86() {
            let number = Vop::Compare(Compare::Equal);
            let mask = self.vop2(number, Shape { elem: Elem::F32, lanes }, a, a);
            self.blend_wide(shape, dst, mask, nan, rounded.into());
            return dst;
        }
        let len = x86::len_of(shape.bytes());
        if self.isa.has_masks() {
            let mask = self.mask3(VOp::VcmppsMask, len, a, a, UNORDERED);
            self.blend_mask(4, len, dst, mask, rounded, nan.into());
        } else {
            let mask = self.vec3_imm(VOp::Vcmpps, len, a, a, UNORDERED);
            self.blend_wide(shape, dst, mask, rounded, nan.into());
        }
        dst
    }

    // ---- integers to floats ------------------------------------------------------------------

    fn int_to_float(&mut self, x: Value, from: Type, to: Type) -> Result<Option<Reg>> {
        let lanes = usize::from(to.lanes);
        if is_half(to.dtype) {
            if to.dtype == DType::BF16 && from.dtype.size() > 2 {
                return Ok(None);
            }
            let single = Type::vector(DType::F32, to.lanes);
            let Some(reg) = self.int_to_float(x, from, single)? else { return Ok(None) };
            return self.single_to_half(reg, to);
        }
        let double = to.dtype == DType::F64;
        if to.bytes() > self.isa.vector_bytes() {
            return Ok(None);
        }
        let (a, from) = if from.dtype.size() < 4 {
            let wide = Type::vector(DType::I32, from.lanes);
            let a = self.vec_or_memory(x, from, wide)?;
            (self.resize(a, from.dtype, 4, lanes)?, DType::I32)
        } else {
            (self.vec(x)?, from.dtype)
        };
        if !self.isa.is_x86() {
            let (short, wide) = (from.size() < to.dtype.size(), from.size() > to.dtype.size());
            if wide {
                // By way of `f64` it would be rounded twice.
                return Ok(None);
            }
            let a = if short { self.resize(a.into(), from, 8, lanes)? } else { a };
            let op = if from.is_signed() { Vop::FloatFromS } else { Vop::FloatFromU };
            return Ok(Some(self.vop1(op, Shape::of(to), a)));
        }
        let len = len_of(from.size().max(to.dtype.size()) * lanes)?;
        let avx512 = self.isa.has_masks();
        let op = match (from, double) {
            (DType::I32, false) => VOp::Vcvtdq2ps,
            (DType::I32, true) => VOp::Vcvtdq2pd,
            (DType::U32, false) if avx512 => VOp::Vcvtudq2ps,
            (DType::U32, true) if avx512 => VOp::Vcvtudq2pd,
            (DType::I64, false) if avx512 => VOp::Vcvtqq2ps,
            (DType::I64, true) if avx512 => VOp::Vcvtqq2pd,
            (DType::U64, false) if avx512 => VOp::Vcvtuqq2ps,
            (DType::U64, true) if avx512 => VOp::Vcvtuqq2pd,
            (DType::U32, false) => return Ok(Some(self.u32_to_single_avx2(a, len))),
            (DType::U32, true) => return Ok(Some(self.u32_to_double_avx2(a, len))),
            _ => return Ok(None),
        };
        Ok(Some(self.vec2(op, len, a)))
    }

    /// Upper and lower halves convert exactly, so only their sum rounds.
    fn u32_to_single_avx2(&mut self, a: Reg, len: Len) -> Reg {
        let lanes = (len.bytes() / 4) as u8;
        let (ints, floats) = (Shape { elem: Elem::I32, lanes }, Shape { elem: Elem::F32, lanes });
        let low_bits = self.splat_const(0xffff, 4);
        let low = self.vop2(Vop::And, ints, a, low_bits);
        let low = self.vec2(VOp::Vcvtdq2ps, len, low);
        let high = self.vop1(Vop::ShrUBy(16), ints, a);
        let high = self.vec2(VOp::Vcvtdq2ps, len, high);
        let scale = self.splat_const(65536f32.to_bits().into(), 4);
        let high = self.vop2(Vop::Mul, floats, high, scale);
        self.vop2(Vop::Add, floats, high, low)
    }

    /// The bits below the exponent of 2^52 count units; subtracting 2^52 leaves the number.
    fn u32_to_double_avx2(&mut self, a: Reg, len: Len) -> Reg {
        let lanes = (len.bytes() / 8) as u8;
        let (ints, floats) = (Shape { elem: Elem::I64, lanes }, Shape { elem: Elem::F64, lanes });
        let wide = self.vop1(Vop::WidenU, ints, a);
        let exponent = self.splat_const((2f64.powi(52)).to_bits(), 8);
        let biased = self.vop2(Vop::Or, ints, wide, exponent);
        self.vop2(Vop::Sub, floats, biased, exponent)
    }

    // ---- floats to integers ------------------------------------------------------------------

    /// `f32` or `f64` elements truncated and saturated. Results narrower than 32 bits come as
    /// 32-bit elements. Nothing if there is no instruction.
    fn float_to_int(&mut self, a: Reg, from: Type, to: DType) -> Result<Option<Reg>> {
        if to.size() < 4 {
            let Some(wide) = self.float_to_int(a, from, DType::I32)? else { return Ok(None) };
            let shape = Shape::ints(4, from.lanes.into());
            let (low, high) = (Scalar::lowest(to).to_i64(), Scalar::highest(to).to_i64());
            let low = self.splat_const(low as u32 as u64, 4);
            let high = self.splat_const(high as u32 as u64, 4);
            let raised = self.vop2(Vop::MaxS, shape, wide, low);
            return Ok(Some(self.vop2(Vop::MinS, shape, raised, high)));
        }
        let lanes = usize::from(from.lanes);
        if to.size() * lanes > self.isa.vector_bytes() {
            return Ok(None);
        }
        if self.isa.has(Has::SaturatingConversions) {
            return Ok(Some(self.float_to_int_saturating(a, from, to)));
        }
        let len = len_of(to.size().max(from.dtype.size()) * lanes)?;
        if self.isa.has_masks() {
            return self.float_to_int_avx512(a, from, to, len).map(Some);
        }
        match (from.dtype, to) {
            (DType::F32, DType::I32) => {
                // Out of range gives the lowest integer, whose complement is the highest.
                let converted = self.vec2(VOp::Vcvttps2dq, len, a);
                let limit = self.splat_const(2f32.powi(31).to_bits().into(), 4);
                let large = self.vec3_imm(VOp::Vcmpps, len, a, limit, AT_LEAST);
                let saturated = self.vec3(VOp::Vpxord, len, converted, large);
                let number = self.vec3_imm(VOp::Vcmpps, len, a, a, ORDERED);
                Ok(Some(self.vec3(VOp::Vpandd, len, saturated, number)))
            }
            (DType::F64, DType::I32) => {
                // Clamped to values that convert exactly; NaN becomes 0 first.
                let number = self.vec3_imm(VOp::Vcmppd, len, a, a, ORDERED);
                let a = self.vec3(VOp::Vpandd, len, a, number);
                let most = self.splat_const(f64::from(i32::MAX).to_bits(), 8);
                let a = self.vec3(VOp::Vminpd, len, a, most);
                Ok(Some(self.vec2(VOp::Vcvttpd2dq, len, a)))
            }
            _ => Ok(None),
        }
    }

    /// Converts to integers as wide as the floats, which the instruction does just so.
    fn float_to_int_saturating(&mut self, a: Reg, from: Type, to: DType) -> Reg {
        let (lanes, size) = (usize::from(from.lanes), from.dtype.size().max(to.size()));
        let a = match from.dtype.size() < size {
            true => self.resize_float(a, Type { dtype: DType::F64, lanes: from.lanes }),
            false => a,
        };
        let (convert, narrow) = match to.is_signed() {
            true => (Vop::IntSFromFloat, Vop::NarrowSatS),
            false => (Vop::IntUFromFloat, Vop::NarrowSatU),
        };
        let converted = self.vop1(convert, Shape::ints(size, lanes), a);
        match size > to.size() {
            true => self.vop1(narrow, Shape::ints(to.size(), lanes), converted),
            false => converted,
        }
    }

    fn float_to_int_avx512(&mut self, a: Reg, from: Type, to: DType, len: Len) -> Result<Reg> {
        let double = from.dtype == DType::F64;
        let signed = to.is_signed();
        let op = match (double, to) {
            (false, DType::I32) => VOp::Vcvttps2dq,
            (false, DType::U32) => VOp::Vcvttps2udq,
            (false, DType::I64) => VOp::Vcvttps2qq,
            (false, _) => VOp::Vcvttps2uqq,
            (true, DType::I32) => VOp::Vcvttpd2dq,
            (true, DType::U32) => VOp::Vcvttpd2udq,
            (true, DType::I64) => VOp::Vcvttpd2qq,
            (true, _) => VOp::Vcvttpd2uqq,
        };
        let compare = if double { VOp::VcmppdMask } else { VOp::VcmppsMask };
        let from_len = self.len(from)?;
        if !signed {
            // Too large gives all ones by itself; negative numbers and NaN are masked to zero.
            let zero = self.splat_const(0, 8);
            let positive = self.mask3(compare, from_len, a, zero, AT_LEAST);
            return Ok(self.vec2_zeroed(op, len, positive, a));
        }
        let number = self.mask3(compare, from_len, a, a, ORDERED);
        let converted = self.vec2_zeroed(op, len, number, a);
        let power = to.bits() as i32 - 1;
        let limit = match double {
            true => self.splat_const(2f64.powi(power).to_bits(), 8),
            false => self.splat_const(2f32.powi(power).to_bits().into(), 4),
        };
        let large = self.mask3(compare, from_len, a, limit, AT_LEAST);
        let most = self.splat_const(Scalar::highest(to).bits(), to.size());
        let dst = self.new_vec();
        let to_len = len_of(to.size() * usize::from(from.lanes))?;
        self.blend_mask(to.size(), to_len, dst, large, converted, most.into());
        Ok(dst)
    }

    // ---- ramps -------------------------------------------------------------------------------

    /// `base + lane * step` in 32-bit elements.
    fn ramp_narrow(&mut self, base: u32, step: i64, to: Type) -> Result<Reg> {
        let affine = self.affines[base as usize].clone();
        let start = self.materialise(&affine);
        self.len(to)?;
        let base = self.broadcast_gpr(start, Shape::of(to));
        let steps: Vec<u8> =
            (0..16i64).flat_map(|i| (i.wrapping_mul(step) as u32).to_le_bytes()).collect();
        let steps = if step == 1 { ramp_bytes(4) } else { steps };
        let steps = self.constant_reg(ConstData::Bytes(steps));
        Ok(self.vop2(Vop::Add, Shape::of(to), base, steps))
    }

    /// A general register in all elements.
    pub(super) fn broadcast_gpr(&mut self, reg: Reg, shape: Shape) -> Reg {
        if self.isa.has(Has::BroadcastGpr) {
            return self.vop1(Vop::BroadcastGpr, shape, reg);
        }
        let one = self.gpr_to_vec(reg, shape.elem.size());
        self.vop1(Vop::Broadcast, shape, one)
    }
}

const fn widening(signed: bool, from: usize, to: usize) -> VOp {
    match (signed, from, to) {
        (true, 1, 2) => VOp::Vpmovsxbw,
        (true, 1, 4) => VOp::Vpmovsxbd,
        (true, 1, _) => VOp::Vpmovsxbq,
        (true, 2, 4) => VOp::Vpmovsxwd,
        (true, 2, _) => VOp::Vpmovsxwq,
        (true, ..) => VOp::Vpmovsxdq,
        (false, 1, 2) => VOp::Vpmovzxbw,
        (false, 1, 4) => VOp::Vpmovzxbd,
        (false, 1, _) => VOp::Vpmovzxbq,
        (false, 2, 4) => VOp::Vpmovzxwd,
        (false, 2, _) => VOp::Vpmovzxwq,
        (false, ..) => VOp::Vpmovzxdq,
    }
}
