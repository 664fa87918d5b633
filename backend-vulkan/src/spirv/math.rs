//! The exact meaning of every op of the table, on one lane.
//!
//! Where SPIR-V leaves an operation undefined or drivers differ, the defined value is made
//! explicit:
//! * `max` and `min` of floats select, so that a NaN operand wins;
//! * `f32` quotients and roots are corrected by multiply-adds where the device promises those
//!   (`refined`);
//! * arithmetic on floats is marked so that nothing contracts or reassociates it.
//!
//! A lane is a bool or a number of 32 or 64 bits. The core has lowered everything else to these
//! (`zyx_core::legalize::lower_to_32_bit`), but for narrow integers between memory and words, and seen to operands that an instruction is undefined
//! for (`Caps::partial_integers`, `Caps::partial_casts`).

use super::Target;
use crate::asm::{Asm, gl};
use rspirv::spirv::{Op, Word};
use zyx_core::hal::{Caps, Rounding};
use zyx_core::{BinaryOp, Class, DType, Scalar, TernaryOp, UnaryOp};

/// Emits operations for one device.
pub(crate) struct Math<'a> {
    pub(crate) asm: Asm,
    pub(crate) caps: &'a Caps,
    pub(crate) target: &'a Target,
}

/// The instruction that is a binary op on bools, unsigned and signed integers, and floats.
fn instruction(op: BinaryOp, class: Class) -> Op {
    let row = match op {
        BinaryOp::Add => [Op::Nop, Op::IAdd, Op::IAdd, Op::FAdd],
        BinaryOp::Sub => [Op::Nop, Op::ISub, Op::ISub, Op::FSub],
        BinaryOp::Mul => [Op::Nop, Op::IMul, Op::IMul, Op::FMul],
        BinaryOp::Div => [Op::Nop, Op::UDiv, Op::SDiv, Op::FDiv],
        BinaryOp::And => [Op::LogicalAnd, Op::BitwiseAnd, Op::BitwiseAnd, Op::Nop],
        BinaryOp::Or => [Op::LogicalOr, Op::BitwiseOr, Op::BitwiseOr, Op::Nop],
        BinaryOp::Xor => [Op::LogicalNotEqual, Op::BitwiseXor, Op::BitwiseXor, Op::Nop],
        BinaryOp::Shl => [Op::Nop, Op::ShiftLeftLogical, Op::ShiftLeftLogical, Op::Nop],
        BinaryOp::Shr => [Op::Nop, Op::ShiftRightLogical, Op::ShiftRightArithmetic, Op::Nop],
        BinaryOp::Eq => [Op::LogicalEqual, Op::IEqual, Op::IEqual, Op::FOrdEqual],
        BinaryOp::Ne => [Op::LogicalNotEqual, Op::INotEqual, Op::INotEqual, Op::FUnordNotEqual],
        BinaryOp::Lt => [Op::Nop, Op::ULessThan, Op::SLessThan, Op::FOrdLessThan],
        BinaryOp::Le => [Op::Nop, Op::ULessThanEqual, Op::SLessThanEqual, Op::FOrdLessThanEqual],
        _ => [Op::Nop; 4],
    };
    let found = row[match class {
        Class::Bool => 0,
        Class::Unsigned => 1,
        Class::Signed => 2,
        Class::Float => 3,
    }];
    debug_assert_ne!(found, Op::Nop, "invariant: {op} is lowered");
    found
}

impl Math<'_> {
    pub(crate) fn literal(&mut self, x: Scalar) -> Word {
        self.asm.constant(x.dtype(), x.bits())
    }

    /// The small integer `n` as a literal of `dtype`.
    pub(crate) fn small(&mut self, dtype: DType, n: i64) -> Word {
        self.literal(Scalar::from_i64(dtype, n))
    }

    /// `op` with a constant word.
    pub(super) fn by(&mut self, op: Op, x: Word, n: u32) -> Word {
        let n = self.asm.word(n);
        self.asm.op(op, DType::U32, &[x, n])
    }

    /// `x` where `cond` holds, else `y`.
    pub(crate) fn select(&mut self, dtype: DType, cond: Word, x: Word, y: Word) -> Word {
        self.asm.op(Op::Select, dtype, &[cond, x, y])
    }

    /// An operation that gives a bool.
    pub(crate) fn test(&mut self, op: Op, operands: &[Word]) -> Word {
        self.asm.op(op, DType::Bool, operands)
    }

    /// Whether a driver may take it for granted that floats are no NaN.
    fn ignores_nan(&self, dtype: DType) -> bool {
        dtype == DType::F32 && !self.target.preserves.contains(&32)
    }

    /// Whether `x` is NaN, told by its bits where a driver ignores NaN.
    fn is_nan(&mut self, dtype: DType, x: Word) -> Word {
        if !self.ignores_nan(dtype) {
            return self.test(Op::FUnordNotEqual, &[x, x]);
        }
        let bits = self.asm.op(Op::Bitcast, DType::U32, &[x]);
        let bits = self.by(Op::BitwiseAnd, bits, 0x7fff_ffff);
        let infinity = self.asm.word(0x7f80_0000);
        self.test(Op::UGreaterThan, &[bits, infinity])
    }

    /// Equality of floats where a driver ignores NaN; nothing equals NaN.
    fn equal_number(&mut self, dtype: DType, x: Word, y: Word) -> Word {
        let equal = self.test(Op::FOrdEqual, &[x, y]);
        let is_nan = self.is_nan(dtype, x);
        let is_number = self.test(Op::LogicalNot, &[is_nan]);
        // Where one is NaN and the other is not, the comparison itself has to tell.
        self.test(Op::LogicalAnd, &[equal, is_number])
    }

    /// A unary op.
    pub(crate) fn unary(&mut self, op: UnaryOp, dtype: DType, x: Word) -> Word {
        let function = match op {
            UnaryOp::Not if dtype == DType::Bool => {
                return self.asm.op(Op::LogicalNot, dtype, &[x]);
            }
            UnaryOp::Not => return self.asm.op(Op::Not, dtype, &[x]),
            UnaryOp::Neg if !dtype.is_float() => return self.asm.op(Op::SNegate, dtype, &[x]),
            UnaryOp::Neg => return self.asm.exact(Op::FNegate, dtype, &[x]),
            UnaryOp::Sqrt if dtype == DType::F32 && self.caps.roots == Rounding::Usual => {
                return self.refined_root(x);
            }
            UnaryOp::Sqrt => gl::SQRT,
            UnaryOp::Abs => gl::F_ABS,
            UnaryOp::Floor => gl::FLOOR,
            UnaryOp::Ceil => gl::CEIL,
            UnaryOp::Trunc => gl::TRUNC,
            _ => gl::ROUND_EVEN,
        };
        debug_assert!(super::has_unary(op), "{op} is decomposed");
        self.asm.extended(function, dtype, &[x])
    }

    /// `x / y` on floats, as good as the capabilities say.
    fn quotient(&mut self, dtype: DType, x: Word, y: Word) -> Word {
        match self.caps.quotients {
            Rounding::Usual if dtype == DType::F32 => self.refined_quotient(x, y),
            _ => self.asm.exact(Op::FDiv, dtype, &[x, y]),
        }
    }

    /// Whether the driver takes a sum with a constant `0.0` for the other operand, which differs
    /// from it where that is `-0.0`.
    fn loses_a_sign(&mut self, op: BinaryOp, dtype: DType, x: Word, y: Word) -> bool {
        if !self.target.drops_zeros {
            return false;
        }
        let [plus, minus] = [0.0, -0.0].map(|x| self.literal(Scalar::from_f64(dtype, x)));
        match op {
            BinaryOp::Add => x == plus || y == plus,
            BinaryOp::Sub => x == plus || y == minus,
            _ => false,
        }
    }

    /// `x`, but `0.0` for `-0.0`.
    fn positive_zero(&mut self, dtype: DType, x: Word) -> Word {
        let zero = self.small(dtype, 0);
        let is_zero = self.test(Op::FOrdEqual, &[x, zero]);
        self.select(dtype, is_zero, zero, x)
    }

    /// A binary op on operands of one dtype.
    pub(crate) fn binary(&mut self, op: BinaryOp, dtype: DType, x: Word, y: Word) -> Word {
        let class = dtype.class();
        match (class, op) {
            (Class::Float, BinaryOp::Div) => self.quotient(dtype, x, y),
            (Class::Float, BinaryOp::Eq) if self.ignores_nan(dtype) => {
                self.equal_number(dtype, x, y)
            }
            (Class::Float, BinaryOp::Ne) if self.ignores_nan(dtype) => {
                let equal = self.equal_number(dtype, x, y);
                self.test(Op::LogicalNot, &[equal])
            }
            (Class::Float, BinaryOp::Max | BinaryOp::Min) => {
                let is_max = op == BinaryOp::Max;
                if !self.ignores_nan(dtype) && self.asm.is_constant_number(dtype, y) {
                    // Of a NaN no comparison holds.
                    let op = [Op::FOrdGreaterThanEqual, Op::FOrdLessThanEqual][usize::from(is_max)];
                    let loses = self.test(op, &[x, y]);
                    return self.select(dtype, loses, y, x);
                }
                let op = if is_max { Op::FOrdGreaterThan } else { Op::FOrdLessThan };
                let (wins, nan) = (self.test(op, &[x, y]), self.is_nan(dtype, x));
                let first = self.test(Op::LogicalOr, &[wins, nan]);
                self.select(dtype, first, x, y)
            }
            (_, BinaryOp::Rem) => {
                // The instruction is undefined for negative operands.
                let quotient = self.binary(BinaryOp::Div, dtype, x, y);
                let whole = self.asm.op(Op::IMul, dtype, &[quotient, y]);
                self.asm.op(Op::ISub, dtype, &[x, whole])
            }
            _ if op.is_comparison() => self.test(instruction(op, class), &[x, y]),
            (Class::Float, _) => {
                let z = self.asm.exact(instruction(op, class), dtype, &[x, y]);
                if self.loses_a_sign(op, dtype, x, y) { self.positive_zero(dtype, z) } else { z }
            }
            _ => self.asm.op(instruction(op, class), dtype, &[x, y]),
        }
    }

    /// A ternary op with a result of `dtype`.
    pub(crate) fn ternary(&mut self, op: TernaryOp, dtype: DType, [x, y, z]: [Word; 3]) -> Word {
        match op {
            TernaryOp::Where => self.select(dtype, x, y, z),
            TernaryOp::MulAdd => {
                // Two instructions that may become one: NVIDIA's compiler always does that, and then
                // keeps subnormal numbers, which its single instruction does not.
                let product = self.asm.op(Op::FMul, dtype, &[x, y]);
                self.asm.op(Op::FAdd, dtype, &[product, z])
            }
        }
    }

    /// The value of `x` converted.
    pub(crate) fn cast(&mut self, from: DType, to: DType, x: Word) -> Word {
        let op = match (from.is_float(), to.is_float()) {
            _ if self.asm.ty(from) == self.asm.ty(to) => return x,
            _ if to == DType::Bool => {
                let zero = self.small(from, 0);
                return self.binary(BinaryOp::Ne, from, x, zero);
            }
            _ if from == DType::Bool => {
                let (one, zero) = (self.small(to, 1), self.small(to, 0));
                return self.select(to, x, one, zero);
            }
            (true, true) => Op::FConvert,
            (true, false) if to.is_signed() => Op::ConvertFToS,
            (true, false) => Op::ConvertFToU,
            (false, true) if from.is_signed() => Op::ConvertSToF,
            (false, true) => Op::ConvertUToF,
            _ if from.is_signed() && to.bits() > from.bits() => Op::SConvert,
            _ => Op::UConvert,
        };
        self.asm.op(op, to, &[x])
    }

    /// The bits of `x` as a dtype of equal width.
    pub(crate) fn bitcast(&mut self, from: DType, to: DType, x: Word) -> Word {
        match self.asm.ty(from) == self.asm.ty(to) {
            true => x,
            false => self.asm.op(Op::Bitcast, to, &[x]),
        }
    }
}
