//! The exact meaning of every op of the table, on one lane.
//!
//! Where SPIR-V leaves an operation undefined or drivers differ, the defined value is made
//! explicit:
//! * `max` and `min` of floats select, so that a NaN operand wins;
//! * `f32` quotients and roots are corrected by multiply-adds where the device promises those
//!   (`refined`);
//! * arithmetic on floats is marked so that nothing contracts or reassociates it.
//!
//! Integers have no divisors and distances that an instruction is undefined for: the core has seen
//! to that (`Caps::partial_integers`).
//!
//! A lane is held in a register: integers and halves of up to 32 bits in a word (signed ones
//! extended, halves as their bits), bools as bools, 64-bit integers as one number; devices without
//! them see none (`zyx_core::legalize::words`). Conversions are in `convert`.

use super::Target;
use super::asm::gl;
use super::asm::{Asm, Ty};
use rspirv::spirv::{Op, Word};
use zyx_core::hal::{Caps, Rounding};
use zyx_core::{BinaryOp, Class, DType, Scalar, TernaryOp, UnaryOp};

/// Emits operations for one device.
#[derive(Debug)]
pub(crate) struct Math<'a> {
    pub(crate) asm: Asm,
    pub(crate) caps: &'a Caps,
    pub(crate) target: &'a Target,
}

impl Math<'_> {
    /// The register of a lane.
    pub(crate) fn ty(&self, dtype: DType) -> Ty {
        match dtype {
            DType::Bool => Ty::Bool,
            DType::F32 => Ty::F32,
            DType::F64 => Ty::F64,
            DType::U64 | DType::I64 => Ty::U64,
            _ => Ty::U32,
        }
    }

    pub(crate) fn literal(&mut self, x: Scalar) -> Word {
        let dtype = x.dtype();
        let bits = match dtype {
            DType::I8 | DType::I16 => x.to_i64() as u32 as u64,
            _ => x.bits(),
        };
        self.asm.constant(self.ty(dtype), bits)
    }

    /// The small integer `n` as a literal of `dtype`.
    pub(crate) fn small(&mut self, dtype: DType, n: i64) -> Word {
        self.literal(Scalar::from_i64(dtype, n))
    }

    /// `x` where `cond` holds, else `y`.
    pub(crate) fn select(&mut self, dtype: DType, cond: Word, x: Word, y: Word) -> Word {
        self.asm.op(Op::Select, self.ty(dtype), &[cond, x, y])
    }

    /// An operation that gives a bool.
    pub(crate) fn test(&mut self, op: Op, operands: &[Word]) -> Word {
        self.asm.op(op, Ty::Bool, operands)
    }

    /// Whether `x` is NaN, told by its bits where a driver may take it for granted that it is not.
    pub(super) fn is_nan(&mut self, ty: Ty, x: Word) -> Word {
        if ty != Ty::F32 || self.target.preserves.contains(&32) {
            return self.test(Op::FUnordNotEqual, &[x, x]);
        }
        let bits = self.asm.op(Op::Bitcast, Ty::U32, &[x]);
        let (magnitude, infinity) = (self.asm.word(0x7fff_ffff), self.asm.word(0x7f80_0000));
        let bits = self.asm.op(Op::BitwiseAnd, Ty::U32, &[bits, magnitude]);
        self.test(Op::UGreaterThan, &[bits, infinity])
    }

    /// Equality of floats; nothing equals NaN.
    fn float_equal(&mut self, ty: Ty, x: Word, y: Word) -> Word {
        let equal = self.test(Op::FOrdEqual, &[x, y]);
        if ty != Ty::F32 || self.target.preserves.contains(&32) {
            return equal;
        }
        let is_nan = self.is_nan(ty, x);
        let is_number = self.test(Op::LogicalNot, &[is_nan]);
        // Where one is NaN and the other is not, the comparison itself has to tell.
        self.test(Op::LogicalAnd, &[equal, is_number])
    }

    /// A unary op.
    pub(crate) fn unary(&mut self, op: UnaryOp, dtype: DType, x: Word) -> Word {
        let ty = self.ty(dtype);
        match (dtype.class(), op) {
            (Class::Bool, _) => self.asm.op(Op::LogicalNot, ty, &[x]),
            (Class::Float, UnaryOp::Neg) => self.asm.exact(Op::FNegate, ty, &[x]),
            (Class::Float, UnaryOp::Recip) => {
                let one = self.literal(Scalar::from_f64(dtype, 1.0));
                self.quotient(ty, one, x)
            }
            (Class::Float, UnaryOp::Sqrt) => self.root(ty, x),
            (Class::Float, _) => {
                let function = match op {
                    UnaryOp::Abs => gl::F_ABS,
                    UnaryOp::Floor => gl::FLOOR,
                    UnaryOp::Ceil => gl::CEIL,
                    UnaryOp::Trunc => gl::TRUNC,
                    _ => gl::ROUND_EVEN,
                };
                debug_assert!(super::has_unary(op), "{op} is decomposed");
                self.asm.extended(function, ty, &[x])
            }
            (Class::Signed, UnaryOp::Abs) => {
                let (negative, zero) = (self.unary(UnaryOp::Neg, dtype, x), self.small(dtype, 0));
                let is_negative = self.binary(BinaryOp::Lt, dtype, x, zero);
                self.select(dtype, is_negative, negative, x)
            }
            (_, UnaryOp::Neg) => self.asm.op(Op::SNegate, ty, &[x]),
            (_, UnaryOp::Not) => self.asm.op(Op::Not, ty, &[x]),
            // Rounding an integer, and the magnitude of an unsigned one.
            _ => x,
        }
    }

    /// `x / y` on floats, as good as the capabilities say.
    fn quotient(&mut self, ty: Ty, x: Word, y: Word) -> Word {
        match self.caps.quotients {
            Rounding::Usual if ty == Ty::F32 => self.refined_quotient(x, y),
            _ => self.asm.exact(Op::FDiv, ty, &[x, y]),
        }
    }

    fn root(&mut self, ty: Ty, x: Word) -> Word {
        match self.caps.roots {
            Rounding::Usual if ty == Ty::F32 => self.refined_root(x),
            _ => self.asm.extended(gl::SQRT, ty, &[x]),
        }
    }

    /// A binary op on operands of one dtype.
    pub(crate) fn binary(&mut self, op: BinaryOp, dtype: DType, x: Word, y: Word) -> Word {
        match dtype.class() {
            Class::Bool => self.logic(op, x, y),
            Class::Float => self.float_binary(op, dtype, x, y),
            _ => self.int_binary(op, dtype, x, y),
        }
    }

    fn logic(&mut self, op: BinaryOp, x: Word, y: Word) -> Word {
        use BinaryOp::{Add, And, Eq, Le, Lt, Max, Min, Mul, Ne, Or, Xor};
        match op {
            Add | Max | Or => self.test(Op::LogicalOr, &[x, y]),
            Mul | Min | And => self.test(Op::LogicalAnd, &[x, y]),
            Xor | Ne => self.test(Op::LogicalNotEqual, &[x, y]),
            Eq => self.test(Op::LogicalEqual, &[x, y]),
            Lt | Le => {
                let not = self.test(Op::LogicalNot, &[x]);
                let op = if op == Lt { Op::LogicalAnd } else { Op::LogicalOr };
                self.test(op, &[not, y])
            }
            _ => unreachable!("invariant: {op} is undefined on bools"),
        }
    }

    fn float_binary(&mut self, op: BinaryOp, dtype: DType, x: Word, y: Word) -> Word {
        let ty = self.ty(dtype);
        match op {
            BinaryOp::Add => self.asm.exact(Op::FAdd, ty, &[x, y]),
            BinaryOp::Sub => self.asm.exact(Op::FSub, ty, &[x, y]),
            BinaryOp::Mul => self.asm.exact(Op::FMul, ty, &[x, y]),
            BinaryOp::Div => self.quotient(ty, x, y),
            BinaryOp::Lt => self.test(Op::FOrdLessThan, &[x, y]),
            BinaryOp::Le => self.test(Op::FOrdLessThanEqual, &[x, y]),
            BinaryOp::Eq => self.float_equal(ty, x, y),
            BinaryOp::Ne if ty == Ty::F32 && !self.target.preserves.contains(&32) => {
                let equal = self.float_equal(ty, x, y);
                self.test(Op::LogicalNot, &[equal])
            }
            BinaryOp::Ne => self.test(Op::FUnordNotEqual, &[x, y]),
            BinaryOp::Max | BinaryOp::Min => {
                let is_max = op == BinaryOp::Max;
                let op = if is_max { Op::FOrdGreaterThan } else { Op::FOrdLessThan };
                let (wins, nan) = (self.test(op, &[x, y]), self.is_nan(ty, x));
                let first = self.test(Op::LogicalOr, &[wins, nan]);
                self.asm.op(Op::Select, ty, &[first, x, y])
            }
            _ => unreachable!("invariant: {op} on floats is decomposed"),
        }
    }

    fn int_binary(&mut self, op: BinaryOp, dtype: DType, x: Word, y: Word) -> Word {
        let (ty, signed) = (self.ty(dtype), dtype.is_signed());
        let by_sign = |s, u| if signed { s } else { u };
        match op {
            BinaryOp::Add => self.asm.op(Op::IAdd, ty, &[x, y]),
            BinaryOp::Sub => self.asm.op(Op::ISub, ty, &[x, y]),
            BinaryOp::Mul => self.asm.op(Op::IMul, ty, &[x, y]),
            BinaryOp::And => self.asm.op(Op::BitwiseAnd, ty, &[x, y]),
            BinaryOp::Or => self.asm.op(Op::BitwiseOr, ty, &[x, y]),
            BinaryOp::Xor => self.asm.op(Op::BitwiseXor, ty, &[x, y]),
            BinaryOp::Eq => self.test(Op::IEqual, &[x, y]),
            BinaryOp::Ne => self.test(Op::INotEqual, &[x, y]),
            BinaryOp::Lt => self.test(by_sign(Op::SLessThan, Op::ULessThan), &[x, y]),
            BinaryOp::Le => self.test(by_sign(Op::SLessThanEqual, Op::ULessThanEqual), &[x, y]),
            BinaryOp::Max | BinaryOp::Min => {
                let is_less = self.test(by_sign(Op::SLessThan, Op::ULessThan), &[x, y]);
                let (x, y) = if op == BinaryOp::Min { (x, y) } else { (y, x) };
                self.asm.op(Op::Select, ty, &[is_less, x, y])
            }
            BinaryOp::Div => self.asm.op(by_sign(Op::SDiv, Op::UDiv), ty, &[x, y]),
            BinaryOp::Rem => {
                // The instruction is undefined for negative operands.
                let quotient = self.asm.op(by_sign(Op::SDiv, Op::UDiv), ty, &[x, y]);
                let whole = self.asm.op(Op::IMul, ty, &[quotient, y]);
                self.asm.op(Op::ISub, ty, &[x, whole])
            }
            BinaryOp::Shl => self.asm.op(Op::ShiftLeftLogical, ty, &[x, y]),
            BinaryOp::Shr => {
                let op = by_sign(Op::ShiftRightArithmetic, Op::ShiftRightLogical);
                self.asm.op(op, ty, &[x, y])
            }
            BinaryOp::Pow | BinaryOp::Atan2 => unreachable!("invariant: {op} is decomposed"),
        }
    }

    /// A ternary op with a result of `dtype`.
    pub(crate) fn ternary(
        &mut self,
        op: TernaryOp,
        dtype: DType,
        x: Word,
        y: Word,
        z: Word,
    ) -> Word {
        match op {
            TernaryOp::Where => self.select(dtype, x, y, z),
            TernaryOp::MulAdd => {
                // Two instructions that may become one: NVIDIA's compiler always does that, and then
                // keeps subnormal numbers, which its single instruction does not.
                let ty = self.ty(dtype);
                let product = self.asm.op(Op::FMul, ty, &[x, y]);
                self.asm.op(Op::FAdd, ty, &[product, z])
            }
        }
    }
}
