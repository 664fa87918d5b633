//! Ops without an instruction: a call of a Rust function on values laid out in the frame.
//!
//! The functions (`jit::helpers`) use the core's own meaning of each op, so they agree with the
//! interpreter by construction. Speed does not matter here; what is common is decomposed into
//! arithmetic before it comes to this, by `legalize`.

use super::super::helpers::{self, Call};
use super::super::machine::{Addr, Inst};
use super::{Lower, Result};
use zyx_core::ir::{Type, Value};
use zyx_core::{BinaryOp, TernaryOp, UnaryOp};

impl Lower<'_> {
    /// Places in the frame for a result and three operands, of a vector each (pointers of 64
    /// lanes need more).
    pub(super) fn call_buffers(&mut self) -> [i32; 4] {
        if let Some(buffers) = self.buffers {
            return buffers;
        }
        let buffers = [64, 64, 512, 64].map(|bytes| self.frame_place(bytes));
        self.buffers = Some(buffers);
        buffers
    }

    pub(super) fn fallback_unary(&mut self, value: Value, op: UnaryOp, x: Value) -> Result<()> {
        let ty = self.ty(x);
        self.call(value, Call::unary(op, ty.dtype, ty.lanes), &[x])
    }

    pub(super) fn fallback_binary(
        &mut self,
        value: Value,
        op: BinaryOp,
        x: Value,
        y: Value,
    ) -> Result<()> {
        let ty = self.ty(x);
        self.call(value, Call::binary(op, ty.dtype, ty.lanes), &[x, y])
    }

    pub(super) fn fallback_ternary(
        &mut self,
        value: Value,
        op: TernaryOp,
        operands: [Value; 3],
    ) -> Result<()> {
        let ty = self.ty(value);
        self.call(value, Call::ternary(op, ty.dtype, ty.lanes), &operands)
    }

    pub(super) fn fallback_cast(&mut self, value: Value, x: Value) -> Result<()> {
        let (from, to) = (self.ty(x), self.ty(value));
        self.call(value, Call::cast(from.dtype, to.dtype, from.lanes), &[x])
    }

    pub(super) fn fallback_fold(&mut self, value: Value, op: BinaryOp, x: Value) -> Result<()> {
        let ty = self.ty(x);
        self.call(value, Call::fold(op, ty.dtype, ty.lanes), &[x])
    }

    fn call(&mut self, value: Value, call: Call, operands: &[Value]) -> Result<()> {
        let buffers = self.call_buffers();
        for (&operand, &place) in operands.iter().zip(&buffers[1..]) {
            self.store_value(Addr::frame(place), operand)?;
        }
        let (target, description) = (helpers::elementwise_address(), call.encode());
        self.push(Inst::Call { target, buffers, description });
        self.load_value(value, Addr::frame(buffers[0]))
    }

    /// Result in the first buffer, operands in the second, addresses of lanes in the third.
    pub(super) fn call_atomic(&mut self, op: BinaryOp, ty: Type) {
        let buffers = self.call_buffers();
        let target = helpers::atomic_address();
        let description = Call::binary(op, ty.dtype, ty.lanes).encode();
        self.push(Inst::Call { target, buffers, description });
    }
}
