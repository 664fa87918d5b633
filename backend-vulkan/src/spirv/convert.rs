//! Conversions between dtypes on one lane. Floats are within the range of the integer that they
//! become, and halves only bits: the core has seen to that (`Caps::partial_casts`).

use super::asm::Ty;
use super::math::Math;
use rspirv::spirv::{Op, Word};
use zyx_core::{BinaryOp, Class, DType};

impl Math<'_> {
    fn u32(&mut self, op: Op, x: Word, constant: u32) -> Word {
        let y = self.asm.word(constant);
        self.asm.op(op, Ty::U32, &[x, y])
    }

    /// The value of `x` converted.
    pub(crate) fn cast(&mut self, from: DType, to: DType, x: Word) -> Word {
        if from == to {
            return x;
        }
        match (from, to) {
            (_, DType::Bool) => {
                let zero = self.small(from, 0);
                self.binary(BinaryOp::Ne, from, x, zero)
            }
            (DType::Bool, _) => {
                let (one, zero) = (self.small(to, 1), self.small(to, 0));
                self.select(to, x, one, zero)
            }
            _ => match (from.is_float(), to.is_float()) {
                (true, true) => self.asm.op(Op::FConvert, self.ty(to), &[x]),
                (true, false) => {
                    let op = if to.is_signed() { Op::ConvertFToS } else { Op::ConvertFToU };
                    self.asm.op(op, self.ty(to), &[x])
                }
                (false, true) => {
                    let op = if from.is_signed() { Op::ConvertSToF } else { Op::ConvertUToF };
                    self.asm.op(op, self.ty(to), &[x])
                }
                (false, false) => self.resize(from, to, x),
            },
        }
    }

    /// An integer of another width: wraps or extends.
    fn resize(&mut self, from: DType, to: DType, x: Word) -> Word {
        if from.bits() < 64 && to.bits() == 64 {
            let op = if from.is_signed() { Op::SConvert } else { Op::UConvert };
            return self.asm.op(op, Ty::U64, &[x]);
        }
        let is_cut = from.bits() == 64 && to.bits() < 64;
        let x = if is_cut { self.asm.op(Op::UConvert, Ty::U32, &[x]) } else { x };
        self.wrap(to, x)
    }

    /// The register of a narrow integer from one whose upper bits are anything.
    fn wrap(&mut self, dtype: DType, x: Word) -> Word {
        let bits = dtype.bits() as u32;
        if bits >= 32 {
            return x;
        }
        if dtype.is_signed() {
            let up = self.u32(Op::ShiftLeftLogical, x, 32 - bits);
            return self.u32(Op::ShiftRightArithmetic, up, 32 - bits);
        }
        self.u32(Op::BitwiseAnd, x, (1 << bits) - 1)
    }

    /// The bits of `x` as a dtype of equal width.
    pub(crate) fn bitcast(&mut self, from: DType, to: DType, x: Word) -> Word {
        match (from.class(), to.class()) {
            _ if from == to => x,
            (_, Class::Bool) => self.cast(from, to, x),
            (Class::Bool, _) => self.cast(from, to, x),
            _ if self.ty(from) != self.ty(to) => self.asm.op(Op::Bitcast, self.ty(to), &[x]),
            (Class::Float, _) if to == DType::U16 => x,
            (_, Class::Float) if to.bits() == 16 => self.wrap(DType::U16, x),
            _ => self.wrap(to, x),
        }
    }
}
