//! Arithmetic in `f16`, where the machine has it.
//!
//! One operation of it rounds as the same in `f32` would, rounded once more, so results are those of
//! the interpreter. Scalars live in general registers, as narrow integers do, and are computed as
//! vectors of two. Multiply-adds are left to `f32`, whose product is exact.

use super::super::machine::{Elem, Has, Reg, Shape, Vop};
use super::mask::comparison;
use super::{Lower, Result, Val};
use zyx_core::ir::{Type, Value};
use zyx_core::{BinaryOp, DType, UnaryOp};

/// One, as `f16`.
const ONE: u64 = 0x3c00;

/// The instruction with one operand; the reciprocal is a division.
const fn one_operand(op: UnaryOp) -> Option<Vop> {
    Some(match op {
        UnaryOp::Neg => Vop::Neg,
        UnaryOp::Abs => Vop::Abs,
        UnaryOp::Recip => Vop::Div,
        UnaryOp::Sqrt => Vop::Sqrt,
        UnaryOp::Round => Vop::Round,
        UnaryOp::Floor => Vop::Floor,
        UnaryOp::Ceil => Vop::Ceil,
        UnaryOp::Trunc => Vop::Trunc,
        _ => return None,
    })
}

/// The instruction with two operands.
const fn two_operands(op: BinaryOp) -> Option<Vop> {
    Some(match op {
        BinaryOp::Add => Vop::Add,
        BinaryOp::Sub => Vop::Sub,
        BinaryOp::Mul => Vop::Mul,
        BinaryOp::Div => Vop::Div,
        BinaryOp::Max => Vop::MaxNan,
        BinaryOp::Min => Vop::MinNan,
        _ if op.is_comparison() => Vop::Compare(comparison(op, true)),
        _ => return None,
    })
}

/// At least two lanes.
fn shape(ty: Type) -> Shape {
    Shape { elem: Elem::F16, lanes: ty.lanes.max(2) }
}

impl Lower<'_> {
    fn computes_in(&self, ty: Type) -> bool {
        ty.dtype == DType::F16 && self.isa.has(Has::Halves)
    }

    /// An operation on halves; whether there is an instruction.
    pub(super) fn half_unary(&mut self, value: Value, op: UnaryOp, x: Value) -> Result<bool> {
        let ty = self.ty(x);
        let Some(instruction) = one_operand(op).filter(|_| self.computes_in(ty)) else {
            return Ok(false);
        };
        let b = self.vec(x)?;
        let a = if op == UnaryOp::Recip { self.splat_const(ONE, 2) } else { Reg::NONE };
        self.half(value, instruction, ty, [a, b])?;
        Ok(true)
    }

    /// As [`Self::half_unary`].
    pub(super) fn half_binary(
        &mut self,
        value: Value,
        op: BinaryOp,
        x: Value,
        y: Value,
    ) -> Result<bool> {
        let ty = self.ty(x);
        let Some(instruction) = two_operands(op).filter(|_| self.computes_in(ty)) else {
            return Ok(false);
        };
        let (a, b) = (self.vec(x)?, self.vec(y)?);
        if op.is_comparison() {
            self.len(ty)?;
            let reg = self.vop2(instruction, shape(ty), a, b);
            self.set(value, Val::Wide(reg, 2));
            return Ok(true);
        }
        self.half(value, instruction, ty, [a, b])?;
        Ok(true)
    }

    fn half(&mut self, value: Value, op: Vop, ty: Type, [a, b]: [Reg; 2]) -> Result<()> {
        self.len(ty)?;
        let dst = if ty.is_vector() { self.target(value) } else { self.new_vec() };
        self.vop_to(op, shape(ty), dst, a, b);
        match ty.is_vector() {
            true => self.set(value, Val::Vec(dst)),
            false => self.front_to_gpr(value, dst),
        }
        Ok(())
    }

    /// `op` on registers of halves.
    pub(super) fn combine_halves(&mut self, op: BinaryOp, ty: Type, a: Reg, b: Reg) -> Option<Reg> {
        let instruction = two_operands(op).filter(|_| self.computes_in(ty))?;
        Some(self.vop2(instruction, shape(ty), a, b))
    }
}
