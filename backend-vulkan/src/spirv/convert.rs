//! Conversions between dtypes, each rounded once, on one lane.
//!
//! * Floats become integers truncated and saturated, NaN becomes 0: the instruction is undefined
//!   beyond the range, so its operand is replaced there and the bound selected.
//! * Halves are packed and unpacked by integer instructions: drivers fold a conversion to 16 bits
//!   and back away, and round it as they like.
//! * What `f32` does not hold goes to halves through `f32` rounded to odd.

use super::asm::Ty;
use super::asm::gl;
use super::math::{Lane, Math};
use rspirv::spirv::{Op, Word};
use zyx_core::{BinaryOp, Class, DType, Scalar, UnaryOp};

impl Math<'_> {
    fn u32(&mut self, op: Op, x: Word, constant: u32) -> Word {
        let y = self.asm.word(constant);
        self.asm.op(op, Ty::U32, &[x, y])
    }

    fn bits_of(&mut self, x: Word) -> Word {
        self.asm.op(Op::Bitcast, Ty::U32, &[x])
    }

    /// The value of `x` converted.
    pub(crate) fn cast(&mut self, from: DType, to: DType, x: Lane) -> Lane {
        if from == to {
            return x;
        }
        match (from, to) {
            (DType::F16 | DType::BF16, _) => {
                let single = self.unpack(from, x.low);
                self.cast(DType::F32, to, single.into())
            }
            (_, DType::Bool) => {
                let zero = self.small(from, 0);
                self.binary(BinaryOp::Ne, from, x, zero, None)
            }
            (DType::Bool, _) if !matches!(to, DType::F16 | DType::BF16) => {
                let (one, zero) = (self.small(to, 1), self.small(to, 0));
                self.select(to, x.low, one, zero)
            }
            (_, DType::F16 | DType::BF16) => {
                let single = self.single(from, to, x);
                self.pack(to, single).into()
            }
            _ => match (from.is_float(), to.is_float()) {
                (true, true) => self.asm.op(Op::FConvert, self.ty(to), &[x.low]).into(),
                (true, false) => self.saturate(from, to, x.low),
                (false, true) if self.is_pair(from) => self.wide_to_float(from, x).into(),
                (false, true) => {
                    let op = if from.is_signed() { Op::ConvertSToF } else { Op::ConvertUToF };
                    self.asm.op(op, self.ty(to), &[x.low]).into()
                }
                (false, false) => self.resize(from, to, x),
            },
        }
    }

    /// An integer of another width: wraps or extends.
    fn resize(&mut self, from: DType, to: DType, x: Lane) -> Lane {
        let x = if from.bits() == 64 && to.bits() < 64 {
            match self.is_pair(from) {
                true => x.low.into(),
                false => self.asm.op(Op::UConvert, Ty::U32, &[x.low]).into(),
            }
        } else if from.bits() < 64 && to.bits() == 64 {
            if self.is_pair(to) {
                let high = match from.is_signed() {
                    true => self.u32(Op::ShiftRightArithmetic, x.low, 31),
                    false => self.asm.word(0),
                };
                return Lane { low: x.low, high };
            }
            let op = if from.is_signed() { Op::SConvert } else { Op::UConvert };
            return self.asm.op(op, Ty::U64, &[x.low]).into();
        } else {
            x
        };
        self.wrap(to, x)
    }

    /// The register of a narrow integer from one whose upper bits are anything.
    fn wrap(&mut self, dtype: DType, x: Lane) -> Lane {
        let bits = dtype.bits() as u32;
        if bits >= 32 {
            return x;
        }
        if dtype.is_signed() {
            let up = self.u32(Op::ShiftLeftLogical, x.low, 32 - bits);
            return self.u32(Op::ShiftRightArithmetic, up, 32 - bits).into();
        }
        self.u32(Op::BitwiseAnd, x.low, (1 << bits) - 1).into()
    }

    /// The bits of `x` as a dtype of equal width.
    pub(crate) fn bitcast(&mut self, from: DType, to: DType, x: Lane) -> Lane {
        match (from.class(), to.class()) {
            _ if from == to => x,
            (_, Class::Bool) => self.cast(from, to, x),
            (Class::Bool, _) => self.cast(from, to, x),
            _ if self.ty(from) != self.ty(to) => {
                self.asm.op(Op::Bitcast, self.ty(to), &[x.low]).into()
            }
            (_, Class::Float) if to.bits() == 16 => self.wrap(DType::U16, x),
            _ => self.wrap(to, x),
        }
    }

    /// A float truncated to an integer.
    fn saturate(&mut self, from: DType, to: DType, x: Word) -> Lane {
        let float = self.ty(from);
        let bound = |m: &mut Self, x: f64| m.literal(Scalar::from_f64(from, x)).low;
        let (lowest, highest) = (Scalar::lowest(to), Scalar::highest(to));
        let magnitude = if to.is_signed() { to.bits() - 1 } else { to.bits() };
        let limit = bound(self, (magnitude as f64).exp2());
        let least = bound(self, lowest.to_i128() as f64);
        let is_above = self.test(Op::FOrdGreaterThanEqual, &[x, limit]);
        let is_below = self.test(Op::FOrdLessThan, &[x, least]);
        let is_nan = self.is_nan(float, x);
        let outside = self.test(Op::LogicalOr, &[is_above, is_below]);
        let outside = self.test(Op::LogicalOr, &[outside, is_nan]);
        let zero = bound(self, 0.0);
        let safe = self.asm.op(Op::Select, float, &[outside, zero, x]);
        let inside = if self.is_pair(to) {
            self.float_to_wide(to, safe)
        } else {
            let op = if to.is_signed() { Op::ConvertFToS } else { Op::ConvertFToU };
            self.asm.op(op, self.ty(to), &[safe]).into()
        };
        let (lowest, highest) = (self.literal(lowest), self.literal(highest));
        let bounded = self.select(to, is_above, highest, inside);
        self.select(to, is_below, lowest, bounded)
    }

    /// A half's bits to `f32`, exactly.
    fn unpack(&mut self, from: DType, x: Word) -> Word {
        if from == DType::BF16 {
            let bits = self.u32(Op::ShiftLeftLogical, x, 16);
            return self.asm.op(Op::Bitcast, Ty::F32, &[bits]);
        }
        let magnitude = self.u32(Op::BitwiseAnd, x, 0x7fff);
        let placed = self.u32(Op::ShiftLeftLogical, magnitude, 13);
        let normal = self.u32(Op::IAdd, placed, 112 << 23);
        let special = self.u32(Op::BitwiseOr, placed, 0x7f80_0000);
        // Below the normal numbers: a multiple of 2^-24.
        let unit = self.literal(Scalar::from_f64(DType::F32, (-24f64).exp2())).low;
        let whole = self.asm.op(Op::ConvertUToF, Ty::F32, &[magnitude]);
        let small = self.asm.exact(Op::FMul, Ty::F32, &[whole, unit]);
        let small = self.bits_of(small);
        let (first, infinity) = (self.asm.word(0x400), self.asm.word(0x7c00));
        let is_small = self.test(Op::ULessThan, &[magnitude, first]);
        let is_finite = self.test(Op::ULessThan, &[magnitude, infinity]);
        let bits = self.asm.op(Op::Select, Ty::U32, &[is_finite, normal, special]);
        let bits = self.asm.op(Op::Select, Ty::U32, &[is_small, small, bits]);
        let sign = self.u32(Op::BitwiseAnd, x, 0x8000);
        let sign = self.u32(Op::ShiftLeftLogical, sign, 16);
        let bits = self.asm.op(Op::BitwiseOr, Ty::U32, &[bits, sign]);
        self.asm.op(Op::Bitcast, Ty::F32, &[bits])
    }

    /// `f32` rounded to the nearest half, ties to even: its bits.
    fn pack(&mut self, to: DType, x: Word) -> Word {
        let bits = self.bits_of(x);
        let is_nan = self.is_nan(Ty::F32, x);
        if to == DType::BF16 {
            // Adding half of what is cut off, less one unless the last kept bit is odd.
            let rounded = self.rounded(bits, 16);
            let cut = self.u32(Op::ShiftRightLogical, bits, 16);
            let quiet = self.u32(Op::BitwiseOr, cut, 0x40);
            return self.asm.op(Op::Select, Ty::U32, &[is_nan, quiet, rounded]);
        }
        let magnitude = self.u32(Op::BitwiseAnd, bits, 0x7fff_ffff);
        let rounded = self.rounded(magnitude, 13);
        let normal = self.u32(Op::ISub, rounded, 112 << 10);
        let infinity = self.asm.word(0x7c00);
        let overflows = self.test(Op::UGreaterThan, &[normal, infinity]);
        let normal = self.asm.op(Op::Select, Ty::U32, &[overflows, infinity, normal]);
        // Below the normal numbers: adding 1/2, whose last place is 2^-24, rounds to multiples.
        let absolute = self.asm.op(Op::Bitcast, Ty::F32, &[magnitude]);
        let half = self.literal(Scalar::from_f64(DType::F32, 0.5)).low;
        let small = self.asm.exact(Op::FAdd, Ty::F32, &[absolute, half]);
        let small = self.bits_of(small);
        let small = self.u32(Op::ISub, small, 0x3f00_0000);
        let first = self.asm.word(0x3880_0000);
        let is_small = self.test(Op::ULessThan, &[magnitude, first]);
        let result = self.asm.op(Op::Select, Ty::U32, &[is_small, small, normal]);
        let nan = self.asm.word(0x7e00);
        let result = self.asm.op(Op::Select, Ty::U32, &[is_nan, nan, result]);
        let sign = self.u32(Op::ShiftRightLogical, bits, 16);
        let sign = self.u32(Op::BitwiseAnd, sign, 0x8000);
        self.asm.op(Op::BitwiseOr, Ty::U32, &[result, sign])
    }

    /// `x >> places`, rounded to nearest even.
    fn rounded(&mut self, x: Word, places: u32) -> Word {
        let odd = self.u32(Op::ShiftRightLogical, x, places);
        let odd = self.u32(Op::BitwiseAnd, odd, 1);
        let sum = self.u32(Op::IAdd, x, (1 << (places - 1)) - 1);
        let sum = self.asm.op(Op::IAdd, Ty::U32, &[sum, odd]);
        self.u32(Op::ShiftRightLogical, sum, places)
    }

    /// `x` as `f32` on its way to the half `to`: rounded to odd unless it either fits or, beyond
    /// 2^24, overflows `f16` anyway.
    fn single(&mut self, from: DType, to: DType, x: Lane) -> Word {
        let is_exact =
            from == DType::F32 || from.bits() <= 16 || (to == DType::F16 && !from.is_float());
        if is_exact {
            return self.cast(from, DType::F32, x).low;
        }
        if from.is_float() {
            return self.odd_from_double(x.low);
        }
        // By magnitude, so that towards zero is down.
        let unsigned = if from.bits() == 64 { DType::U64 } else { DType::U32 };
        let magnitude = match from.is_signed() {
            true => self.unary(UnaryOp::Abs, from, x),
            false => x,
        };
        let float = self.cast(unsigned, DType::F32, magnitude).low;
        let back = self.cast(DType::F32, unsigned, float.into());
        let is_above = self.binary(BinaryOp::Lt, unsigned, magnitude, back, None).low;
        let same = self.binary(BinaryOp::Eq, unsigned, magnitude, back, None).low;
        let odd = self.made_odd(float, is_above, same);
        if !from.is_signed() {
            return odd;
        }
        let zero = self.small(from, 0);
        let is_negative = self.binary(BinaryOp::Lt, from, x, zero, None).low;
        let negated = self.asm.exact(Op::FNegate, Ty::F32, &[odd]);
        self.asm.op(Op::Select, Ty::F32, &[is_negative, negated, odd])
    }

    fn odd_from_double(&mut self, x: Word) -> Word {
        let float = self.asm.op(Op::FConvert, Ty::F32, &[x]);
        let back = self.asm.op(Op::FConvert, Ty::F64, &[float]);
        let [back, x] = [back, x].map(|v| self.asm.extended(gl::F_ABS, Ty::F64, &[v]));
        let is_above = self.test(Op::FOrdGreaterThan, &[back, x]);
        let differs = self.test(Op::FOrdNotEqual, &[back, x]);
        let same = self.test(Op::LogicalNot, &[differs]);
        self.made_odd(float, is_above, same)
    }

    /// A rounded number to the odd one of its neighbours, unless rounding changed nothing.
    fn made_odd(&mut self, float: Word, is_above: Word, same: Word) -> Word {
        let bits = self.bits_of(float);
        let below = self.u32(Op::ISub, bits, 1);
        let cut = self.asm.op(Op::Select, Ty::U32, &[is_above, below, bits]);
        let odd = self.u32(Op::BitwiseOr, cut, 1);
        let bits = self.asm.op(Op::Select, Ty::U32, &[same, bits, odd]);
        self.asm.op(Op::Bitcast, Ty::F32, &[bits])
    }
}
