//! 64-bit integers as two words, for devices that have none.
//!
//! Everything that indices, `i64` and `u64` tensors need, but for quotients, which the core takes
//! apart: arithmetic, comparisons, shifts, conversions with `f32`. Slow and exact.

use super::asm::Ty;
use super::asm::gl;
use super::math::{Lane, Math};
use rspirv::spirv::{Op, Word};
use zyx_core::{BinaryOp, DType, Scalar};

impl Math<'_> {
    fn words(&mut self, op: Op, x: Word, y: Word) -> Word {
        self.asm.op(op, Ty::U32, &[x, y])
    }

    /// An instruction whose two results are words.
    fn both(&mut self, op: Op, x: Word, y: Word) -> (Word, Word) {
        use rspirv::dr::Operand::IdRef;
        let (pair, word) = (self.asm.pair(), self.asm.ty(Ty::U32));
        let result = self.asm.with(op, pair, vec![IdRef(x), IdRef(y)]);
        (self.asm.member(word, result, 0), self.asm.member(word, result, 1))
    }

    fn wide_add(&mut self, x: Lane, y: Lane) -> Lane {
        let (low, carry) = self.both(Op::IAddCarry, x.low, y.low);
        let high = self.words(Op::IAdd, x.high, y.high);
        Lane { low, high: self.words(Op::IAdd, high, carry) }
    }

    pub(super) fn wide_sub(&mut self, x: Lane, y: Lane) -> Lane {
        let (low, borrow) = self.both(Op::ISubBorrow, x.low, y.low);
        let high = self.words(Op::ISub, x.high, y.high);
        Lane { low, high: self.words(Op::ISub, high, borrow) }
    }

    fn wide_mul(&mut self, x: Lane, y: Lane) -> Lane {
        let (low, high) = self.both(Op::UMulExtended, x.low, y.low);
        let (first, second) =
            (self.words(Op::IMul, x.low, y.high), self.words(Op::IMul, x.high, y.low));
        let high = self.words(Op::IAdd, high, first);
        Lane { low, high: self.words(Op::IAdd, high, second) }
    }

    /// Less than, or less than or equal.
    fn wide_less(&mut self, dtype: DType, x: Lane, y: Lane, or_equal: bool) -> Word {
        let above = if dtype.is_signed() { Op::SLessThan } else { Op::ULessThan };
        let below = if or_equal { Op::ULessThanEqual } else { Op::ULessThan };
        let (above, equal) =
            (self.test(above, &[x.high, y.high]), self.test(Op::IEqual, &[x.high, y.high]));
        let below = self.test(below, &[x.low, y.low]);
        let tie = self.test(Op::LogicalAnd, &[equal, below]);
        self.test(Op::LogicalOr, &[above, tie])
    }

    fn wide_equal(&mut self, x: Lane, y: Lane) -> Word {
        let (low, high) =
            (self.test(Op::IEqual, &[x.low, y.low]), self.test(Op::IEqual, &[x.high, y.high]));
        self.test(Op::LogicalAnd, &[low, high])
    }

    pub(super) fn wide_binary(&mut self, op: BinaryOp, dtype: DType, x: Lane, y: Lane) -> Lane {
        let by_word = |m: &mut Self, op| Lane {
            low: m.words(op, x.low, y.low),
            high: m.words(op, x.high, y.high),
        };
        match op {
            BinaryOp::Add => self.wide_add(x, y),
            BinaryOp::Sub => self.wide_sub(x, y),
            BinaryOp::Mul => self.wide_mul(x, y),
            BinaryOp::And => by_word(self, Op::BitwiseAnd),
            BinaryOp::Or => by_word(self, Op::BitwiseOr),
            BinaryOp::Xor => by_word(self, Op::BitwiseXor),
            BinaryOp::Lt => self.wide_less(dtype, x, y, false).into(),
            BinaryOp::Le => self.wide_less(dtype, x, y, true).into(),
            BinaryOp::Eq => self.wide_equal(x, y).into(),
            BinaryOp::Ne => {
                let equal = self.wide_equal(x, y);
                self.test(Op::LogicalNot, &[equal]).into()
            }
            BinaryOp::Max | BinaryOp::Min => {
                let is_less = self.wide_less(dtype, x, y, false);
                let (x, y) = if op == BinaryOp::Min { (x, y) } else { (y, x) };
                self.select(dtype, is_less, x, y)
            }
            BinaryOp::Shl | BinaryOp::Shr => self.shifted(op, dtype, x, y.low),
            BinaryOp::Div | BinaryOp::Rem | BinaryOp::Pow | BinaryOp::Atan2 => {
                unreachable!("invariant: {op} is decomposed")
            }
        }
    }

    /// A shift by a distance of one word below 64.
    fn shifted(&mut self, op: BinaryOp, dtype: DType, x: Lane, distance: Word) -> Lane {
        let arithmetic = op == BinaryOp::Shr && dtype.is_signed();
        let (zero, half, most) = (self.asm.word(0), self.asm.word(32), self.asm.word(31));
        let is_far = self.test(Op::UGreaterThanEqual, &[distance, half]);
        let near = self.words(Op::BitwiseAnd, distance, most);
        let rest = self.words(Op::ISub, half, near);
        let is_none = self.test(Op::IEqual, &[near, zero]);
        let safe = self.asm.op(Op::Select, Ty::U32, &[is_none, zero, rest]);
        let left = op == BinaryOp::Shl;
        let (out, into, back) = match left {
            true => (x.low, x.high, Op::ShiftLeftLogical),
            false => (x.high, x.low, Op::ShiftRightLogical),
        };
        let forth = if left { Op::ShiftRightLogical } else { Op::ShiftLeftLogical };
        let edge = if arithmetic { Op::ShiftRightArithmetic } else { back };
        let moved = self.words(edge, out, near);
        let filled = self.words(back, into, near);
        let carried = self.words(forth, out, safe);
        let carried = self.asm.op(Op::Select, Ty::U32, &[is_none, zero, carried]);
        let filled = self.words(Op::BitwiseOr, filled, carried);
        let fill = if arithmetic { self.words(edge, out, most) } else { zero };
        let first = self.asm.op(Op::Select, Ty::U32, &[is_far, fill, moved]);
        let second = self.asm.op(Op::Select, Ty::U32, &[is_far, moved, filled]);
        match left {
            true => Lane { low: first, high: second },
            false => Lane { low: second, high: first },
        }
    }

    fn magnitude(&mut self, dtype: DType, x: Lane) -> Lane {
        self.unary(zyx_core::UnaryOp::Abs, dtype, x)
    }

    /// To `f32`, rounded once: 32 bits from the first one on, with what is below as a last bit.
    pub(super) fn wide_to_float(&mut self, from: DType, x: Lane) -> Word {
        let a = if from.is_signed() { self.magnitude(from, x) } else { x };
        let zero = self.asm.word(0);
        let one = self.asm.word(1);
        let first = self.asm.extended(gl::FIND_U_MSB, Ty::U32, &[a.high]);
        let is_short = self.test(Op::IEqual, &[a.high, zero]);
        let places = self.words(Op::IAdd, first, one);
        let places = self.asm.op(Op::Select, Ty::U32, &[is_short, zero, places]);
        let top = self.shifted(BinaryOp::Shr, DType::U64, a, places).low;
        // What is cut off: the lowest `places` (at most 32) bits.
        let half = self.asm.word(32);
        let up = self.words(Op::ISub, half, places);
        let most = self.asm.word(31);
        let up = self.words(Op::BitwiseAnd, up, most);
        let cut = self.words(Op::ShiftLeftLogical, a.low, up);
        let cut = self.asm.op(Op::Select, Ty::U32, &[is_short, zero, cut]);
        let is_cut = self.test(Op::INotEqual, &[cut, zero]);
        let sticky = self.asm.op(Op::Select, Ty::U32, &[is_cut, one, zero]);
        let top = self.words(Op::BitwiseOr, top, sticky);
        let float = self.asm.op(Op::ConvertUToF, Ty::F32, &[top]);
        // Times 2^places, which is a float's exponent field.
        let (bias, field) = (self.asm.word(127), self.asm.word(23));
        let scale = self.words(Op::IAdd, places, bias);
        let scale = self.words(Op::ShiftLeftLogical, scale, field);
        let scale = self.asm.op(Op::Bitcast, Ty::F32, &[scale]);
        let float = self.asm.exact(Op::FMul, Ty::F32, &[float, scale]);
        if !from.is_signed() {
            return float;
        }
        let is_negative = self.test(Op::SLessThan, &[x.high, zero]);
        let negated = self.asm.exact(Op::FNegate, Ty::F32, &[float]);
        self.asm.op(Op::Select, Ty::F32, &[is_negative, negated, float])
    }

    /// From an `f32` within range, truncated.
    pub(super) fn float_to_wide(&mut self, to: DType, x: Word) -> Lane {
        let a = self.asm.extended(gl::F_ABS, Ty::F32, &[x]);
        let a = self.asm.extended(gl::TRUNC, Ty::F32, &[a]);
        let mut k = |n: f64| self.literal(Scalar::from_f64(DType::F32, n)).low;
        let (down, up, zero) = (k((-32f64).exp2()), k(32f64.exp2()), k(0.0));
        let high = self.asm.exact(Op::FMul, Ty::F32, &[a, down]);
        let high = self.asm.extended(gl::FLOOR, Ty::F32, &[high]);
        let whole = self.asm.exact(Op::FMul, Ty::F32, &[high, up]);
        let low = self.asm.exact(Op::FSub, Ty::F32, &[a, whole]);
        let [low, high] = [low, high].map(|v| self.asm.op(Op::ConvertFToU, Ty::U32, &[v]));
        let a = Lane { low, high };
        let none = self.small(to, 0);
        let negated = self.wide_sub(none, a);
        let is_negative = self.test(Op::FOrdLessThan, &[x, zero]);
        self.select(to, is_negative, negated, a)
    }
}
