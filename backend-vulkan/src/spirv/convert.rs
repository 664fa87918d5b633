//! Conversions between dtypes on one lane. Floats are within the range of the integer that they
//! become, and halves only bits: the core has seen to that (`Caps::partial_casts`).

use super::asm::Ty;
use super::math::{Lane, Math};
use rspirv::spirv::{Op, Word};
use zyx_core::{BinaryOp, Class, DType};

impl Math<'_> {
    fn u32(&mut self, op: Op, x: Word, constant: u32) -> Word {
        let y = self.asm.word(constant);
        self.asm.op(op, Ty::U32, &[x, y])
    }

    /// The value of `x` converted.
    pub(crate) fn cast(&mut self, from: DType, to: DType, x: Lane) -> Lane {
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
                self.select(to, x.low, one, zero)
            }
            _ => match (from.is_float(), to.is_float()) {
                (true, true) => self.asm.op(Op::FConvert, self.ty(to), &[x.low]).into(),
                (true, false) if self.is_pair(to) => self.float_to_wide(to, x.low),
                (true, false) => {
                    let op = if to.is_signed() { Op::ConvertFToS } else { Op::ConvertFToU };
                    self.asm.op(op, self.ty(to), &[x.low]).into()
                }
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
            (Class::Float, _) if to == DType::U16 => x,
            (_, Class::Float) if to.bits() == 16 => self.wrap(DType::U16, x),
            _ => self.wrap(to, x),
        }
    }
}
