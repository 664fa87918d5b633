//! Atomics: read-modify-writes, and where indivisible loads and stores go.
//!
//! Integers of 32 bits, and of 64 where the device has them, have instructions for most ops.
//! Everything else is a loop of compare and exchange; floats go by their bits. What the first thread
//! of a group does for all is passed on through shared storage.

use super::asm::Ty;
use super::body::Body;
use super::memory::{Index, Storage};
use rspirv::spirv::{Capability, Op as Spv, StorageClass, Word};
use zyx_core::codegen::Place;
use zyx_core::codegen::walk::{Emitted, synchronise};
use zyx_core::ir::{Op, Type, Value};
use zyx_core::{BinaryOp, Class, DType, Scalar};

impl Body<'_> {
    /// What an atomic access to an element goes to, and the type that it sees: that of shared
    /// storage, or whole words.
    pub(super) fn atomic_place(
        &mut self,
        buf: Value,
        dtype: DType,
        index: Index,
    ) -> Emitted<(Word, Ty)> {
        let ty = match self.storage[buf.idx()] {
            Some(Storage::Array { ty, .. }) => ty,
            _ if dtype.bits() == 64 => Ty::U64,
            _ => Ty::U32,
        };
        if ty.bytes() == 8 {
            if !self.m.target.atomics64 {
                return Err(format!("no atomics on {dtype}"));
            }
            self.m.asm.capability(Capability::Int64Atomics);
        }
        Ok((self.pointer(buf, (ty, 1), index, 0).0, ty))
    }

    pub(super) fn combined(
        &mut self,
        value: Value,
        op: BinaryOp,
        place: &Place,
        x: Value,
    ) -> Emitted {
        let ty = self.kernel.ty(x);
        let first = self.first_thread(place.buf);
        let register = self.m.ty(ty.dtype);
        let mut old = Vec::new();
        for lane in 0..ty.lanes {
            let tests = self.guards(place, lane).into_iter().chain(first).collect();
            let cond = self.m.all(tests);
            let (operand, index) = (self.held(x, lane), self.index(place, ty, lane));
            let Some(cond) = cond else {
                old.push(self.modify(op, place.buf, ty.dtype, index, operand)?);
                continue;
            };
            let zero = self.m.literal(Scalar::from_bits(ty.dtype, 0));
            let before = self.m.asm.here();
            let merge = self.m.asm.begin_if(cond);
            let result = self.modify(op, place.buf, ty.dtype, index, operand)?;
            let after = self.m.asm.here();
            self.m.asm.end_if(merge);
            old.push(self.m.asm.op(Spv::Phi, register, &[zero, before, result, after]));
        }
        if let Some(first) = first {
            old = self.broadcast(first, ty, &old)?;
        }
        self.define(value, old);
        Ok(())
    }

    /// What the first thread has, for all threads of the group.
    fn broadcast(&mut self, first: Word, ty: Type, lanes: &[Word]) -> Emitted<Vec<Word>> {
        let register = self.m.ty(ty.dtype);
        let of = self.m.asm.ty(register);
        self.shared_bytes += lanes.len() * register.bytes() as usize;
        let class = StorageClass::Workgroup;
        let shared: Vec<Word> = lanes.iter().map(|_| self.m.asm.variable(class, of)).collect();
        let merge = self.m.asm.begin_if(first);
        shared.iter().zip(lanes).for_each(|(&to, &lane)| self.put(to, lane, Vec::new()));
        self.m.asm.end_if(merge);
        let barrier = self.sync.broadcast()?;
        synchronise(self, barrier);
        Ok(shared.into_iter().map(|from| self.read(of, from, Vec::new())).collect())
    }

    /// `element = element op x`; gives the old element.
    fn modify(
        &mut self,
        op: BinaryOp,
        buf: Value,
        dtype: DType,
        index: Index,
        x: Word,
    ) -> Emitted<Word> {
        let in_buffer = matches!(self.kernel.op(buf), Op::Param { .. });
        let (scope, relaxed) = (self.scope(buf), self.m.asm.word(0));
        if op == BinaryOp::Add && dtype == DType::F32 && in_buffer && self.m.target.float_add {
            self.m.asm.extension("SPV_EXT_shader_atomic_float_add");
            self.m.asm.capability(Capability::AtomicFloat32AddEXT);
            let (pointer, _) = self.pointer(buf, (Ty::F32, 1), index, 0);
            return Ok(self.m.asm.op(Spv::AtomicFAddEXT, Ty::F32, &[pointer, scope, relaxed, x]));
        }
        let (pointer, ty) = self.atomic_place(buf, dtype, index)?;
        if let Some(native) = instruction(op, dtype.class()) {
            return Ok(self.m.asm.op(native, ty, &[pointer, scope, relaxed, x]));
        }
        let start = self.m.asm.op(Spv::AtomicLoad, ty, &[pointer, scope, relaxed]);
        let turns = self.m.asm.begin_loop(ty, start);
        let old = self.widened(ty, dtype, turns.phi);
        let new = self.m.binary(op, dtype, old, x);
        let new = self.narrowed(ty, dtype, new);
        let operands = [pointer, scope, relaxed, relaxed, new, turns.phi];
        let seen = self.m.asm.op(Spv::AtomicCompareExchange, ty, &operands);
        let done = self.m.test(Spv::IEqual, &[seen, turns.phi]);
        self.m.asm.end_loop(turns, seen, Some(done));
        Ok(old)
    }
}

/// The instruction for an atomic on integers.
fn instruction(op: BinaryOp, class: Class) -> Option<Spv> {
    let [unsigned, signed] = match op {
        BinaryOp::Add => [Spv::AtomicIAdd; 2],
        BinaryOp::Sub => [Spv::AtomicISub; 2],
        BinaryOp::Max => [Spv::AtomicUMax, Spv::AtomicSMax],
        BinaryOp::Min => [Spv::AtomicUMin, Spv::AtomicSMin],
        BinaryOp::And => [Spv::AtomicAnd; 2],
        BinaryOp::Or => [Spv::AtomicOr; 2],
        BinaryOp::Xor => [Spv::AtomicXor; 2],
        _ => return None,
    };
    match class {
        Class::Unsigned => Some(unsigned),
        Class::Signed => Some(signed),
        _ => None,
    }
}
