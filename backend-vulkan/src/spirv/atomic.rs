//! Read-modify-writes: the instruction of the op on integers of 32 bits, and of 64 where the device has
//! them.

use super::body::Body;
use rspirv::spirv::Op as Spv;
use zyx_core::codegen::Place;
use zyx_core::codegen::walk::Emitted;
use zyx_core::ir::Value;
use zyx_core::{BinaryOp, DType, Scalar};

impl Body<'_> {
    pub(super) fn combined(
        &mut self,
        result: Option<Value>,
        op: BinaryOp,
        place: &Place,
        x: Value,
    ) -> Emitted {
        let dtype = self.kernel.ty(x).dtype;
        let instruction = instruction(op, dtype).ok_or(format!("no atomic {op} on {dtype}"))?;
        let (x, before) = (self.held(x), self.m.asm.here());
        let zero = self.m.literal(Scalar::from_bits(dtype, 0));
        let merge = self.begin_guarded(place);
        let [pointer, scope, relaxed] = self.atomic_place(place, dtype)?;
        let mut old = self.m.asm.op(instruction, dtype, &[pointer, scope, relaxed, x]);
        if let Some(merge) = merge {
            let after = self.m.asm.here();
            self.m.asm.end_if(merge);
            old = self.m.asm.op(Spv::Phi, dtype, &[zero, before, old, after]);
        }
        if let Some(value) = result {
            self.define(value, old);
        }
        Ok(())
    }
}

fn instruction(op: BinaryOp, dtype: DType) -> Option<Spv> {
    let signed = dtype.is_signed();
    let found = match op {
        BinaryOp::Add => Spv::AtomicIAdd,
        BinaryOp::Sub => Spv::AtomicISub,
        BinaryOp::Max if signed => Spv::AtomicSMax,
        BinaryOp::Max => Spv::AtomicUMax,
        BinaryOp::Min if signed => Spv::AtomicSMin,
        BinaryOp::Min => Spv::AtomicUMin,
        BinaryOp::And => Spv::AtomicAnd,
        BinaryOp::Or => Spv::AtomicOr,
        BinaryOp::Xor => Spv::AtomicXor,
        _ => return None,
    };
    dtype.is_int().then_some(found)
}
