//! Quotients and square roots of `f32` corrected by a multiply-add that rounds once, which gives the
//! exact remainder of an estimate (Markstein 1990). They are correctly rounded as long as that is no
//! subnormal number; the core sees to the rest (`Rounding::Usual`).

use super::math::Math;
use crate::asm::gl;
use rspirv::spirv::{Op, Word};
use zyx_core::DType;

impl Math<'_> {
    /// `x * y + z`, rounded once; what is subnormal may become zero.
    fn fused(&mut self, x: Word, y: Word, z: Word) -> Word {
        self.asm.extended(gl::FMA, DType::F32, &[x, y, z])
    }

    /// `z - x * y`
    fn remainder(&mut self, x: Word, y: Word, z: Word) -> Word {
        let x = self.asm.exact(Op::FNegate, DType::F32, &[x]);
        self.fused(x, y, z)
    }

    /// A first guess without its lowest bits, so that no compiler knows what it is to the operand.
    fn guess(&mut self, near: Word) -> Word {
        let bits = self.asm.op(Op::Bitcast, DType::U32, &[near]);
        let bits = self.by(Op::BitwiseAnd, bits, !15);
        self.asm.op(Op::Bitcast, DType::F32, &[bits])
    }

    /// `x / y` by a multiply-add that rounds once: what it leaves of the dividend corrects the
    /// quotient, given the rounded inverse, which a divisor of all ones does not get this way.
    pub(super) fn refined_quotient(&mut self, x: Word, y: Word) -> Word {
        let one = self.float(1.0);
        let near = self.asm.exact(Op::FDiv, DType::F32, &[one, y]);
        let mut inverse = self.guess(near);
        for _ in 0..2 {
            let rest = self.remainder(y, inverse, one);
            inverse = self.fused(rest, inverse, inverse);
        }
        let mut quotient = self.asm.exact(Op::FMul, DType::F32, &[x, inverse]);
        for _ in 0..2 {
            let rest = self.remainder(y, quotient, x);
            quotient = self.fused(rest, inverse, quotient);
        }
        quotient
    }

    /// The square root of `x`: the one whose products with its neighbours lie around `x` (Tuckerman).
    pub(super) fn refined_root(&mut self, x: Word) -> Word {
        let near = self.asm.extended(gl::INVERSE_SQRT, DType::F32, &[x]);
        let guess = self.guess(near);
        let first = self.asm.exact(Op::FMul, DType::F32, &[x, guess]);
        let half = self.float(0.5);
        let half = self.asm.exact(Op::FMul, DType::F32, &[half, guess]);
        let rest = self.remainder(first, first, x);
        let near = self.fused(rest, half, first);
        let bits = self.asm.op(Op::Bitcast, DType::U32, &[near]);
        let [below, above] = [Op::ISub, Op::IAdd].map(|op| {
            let bits = self.by(op, bits, 1);
            self.asm.op(Op::Bitcast, DType::F32, &[bits])
        });
        let zero = self.float(0.0);
        let [under, over] = [below, above].map(|v| self.remainder(v, near, x));
        let too_large = self.test(Op::FOrdLessThanEqual, &[under, zero]);
        let too_small = self.test(Op::FOrdLessThan, &[zero, over]);
        let lower = self.select(DType::F32, too_large, below, near);
        self.select(DType::F32, too_small, above, lower)
    }

    fn float(&mut self, x: f32) -> Word {
        self.asm.constant(DType::F32, x.to_bits().into())
    }
}
