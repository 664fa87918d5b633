//! Atomics: read-modify-writes, and loads and stores that are indivisible.
//!
//! Integers of 32 bits, and of 64 where the device has them, have instructions for most ops.
//! Everything else is a loop of compare and exchange on the word that holds the element; floats
//! go by their bits. What the first thread of a group does for all is passed on through shared
//! storage.

use super::asm::Ty;
use super::body::{Body, Emitted};
use super::memory::Index;
use rspirv::spirv::{BuiltIn, Capability, Op as Spv, StorageClass, Word};
use zyx_core::codegen::Place;
use zyx_core::ir::{Op, Order, Value};
use zyx_core::{BinaryOp, DType, Scalar};

impl Body<'_> {
    /// The word that an atomic access to an element goes to, where in it the element is, and the
    /// dtype of the word.
    pub(super) fn atomic_word(
        &mut self,
        buf: Value,
        dtype: DType,
        index: Index,
    ) -> Emitted<(Word, Option<Word>, DType)> {
        let in_buffer = matches!(self.kernel.op(buf), Op::Param { .. });
        match dtype.bits() {
            8 | 16 if in_buffer => {
                let (word, shift) = self.part(index, dtype);
                Ok((self.pointer(buf, Ty::U32, word).0, Some(shift), DType::U32))
            }
            64 => {
                if !self.m.target.atomics64 {
                    return Err(format!("no atomics on {dtype}"));
                }
                self.m.asm.capability(Capability::Int64Atomics);
                let ty = if in_buffer { Ty::U64 } else { self.cell(buf, dtype) };
                Ok((self.pointer(buf, ty, index).0, None, DType::U64))
            }
            _ => {
                let ty = if in_buffer { Ty::U32 } else { self.cell(buf, dtype) };
                Ok((self.pointer(buf, ty, index).0, None, DType::U32))
            }
        }
    }

    pub(super) fn load_atomic(&mut self, buf: Value, dtype: DType, index: Index) -> Emitted<Word> {
        let (pointer, shift, word) = self.atomic_word(buf, dtype, index)?;
        let ty = self.atomic_ty(buf, dtype, word);
        let (scope, relaxed) = (self.scope(buf), self.m.asm.word(0));
        let x = self.m.asm.op(Spv::AtomicLoad, ty, &[pointer, scope, relaxed]);
        Ok(match shift {
            Some(shift) => self.extracted(x, shift, dtype),
            None => self.lane_of_word(ty, dtype, x),
        })
    }

    /// The type atomics on an element see: that of shared storage, or whole words.
    pub(super) fn atomic_ty(&self, buf: Value, dtype: DType, word: DType) -> Ty {
        match self.kernel.op(buf) {
            Op::Param { .. } => self.m.ty(word),
            _ => self.cell(buf, dtype),
        }
    }

    pub(super) fn atomic(
        &mut self,
        value: Value,
        op: BinaryOp,
        order: Order,
        buf: Value,
        index: Value,
        x: Value,
    ) -> Emitted {
        let place = Place::of(self.kernel, order, buf, index)?;
        let barrier = self.sync.atomic(value, buf)?;
        self.synchronise(barrier);
        let ty = self.kernel.ty(x);
        let first = self.first_thread(buf);
        let register = self.m.ty(ty.dtype);
        let mut old = Vec::new();
        for lane in 0..ty.lanes {
            let cond = self.guards(&place, lane);
            let cond = match (cond, first) {
                (Some(a), Some(b)) => Some(self.m.test(Spv::LogicalAnd, &[a, b])),
                (a, b) => a.or(b),
            };
            let operand = self.held(x, lane);
            let index = self.index(&place, ty, lane);
            let Some(cond) = cond else {
                old.push(self.modify(op, buf, ty.dtype, index, operand)?);
                continue;
            };
            let zero = self.m.literal(Scalar::from_bits(ty.dtype, 0));
            let before = self.m.asm.here();
            let merge = self.m.asm.begin_if(cond);
            let result = self.modify(op, buf, ty.dtype, index, operand)?;
            let after = self.m.asm.here();
            self.m.asm.end_if(merge);
            let operands = [zero, before, result, after];
            old.push(self.m.asm.op(Spv::Phi, register, &operands));
        }
        if first.is_some() {
            old = self.broadcast(ty.dtype, &old)?;
        }
        self.define(value, old);
        Ok(())
    }

    /// What the first thread has, for all threads of the group.
    fn broadcast(&mut self, dtype: DType, lanes: &[Word]) -> Emitted<Vec<Word>> {
        let register = self.m.ty(dtype);
        let of = self.m.asm.ty(register);
        let mut variables = Vec::new();
        let cond = self.thread_zero();
        let merge = self.m.asm.begin_if(cond);
        for lane in lanes {
            let variable = self.m.asm.variable(StorageClass::Workgroup, of);
            self.shared_bytes += register.bytes() as usize;
            self.put(variable, *lane, Vec::new());
            variables.push(variable);
        }
        self.m.asm.end_if(merge);
        let barrier = self.sync.broadcast()?;
        self.synchronise(barrier);
        Ok(variables.into_iter().map(|v| self.read(register, v, Vec::new())).collect())
    }

    /// Whether this is the first thread of its group.
    fn thread_zero(&mut self) -> Word {
        let zero = self.m.asm.word(0);
        let mut all = self.m.asm.constant(Ty::Bool, 1);
        for axis in 0..3 {
            let position = self.m.asm.builtin(BuiltIn::LocalInvocationId, axis);
            let is_first = self.m.test(Spv::IEqual, &[position, zero]);
            all = self.m.test(Spv::LogicalAnd, &[all, is_first]);
        }
        all
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
            let (pointer, _) = self.pointer(buf, Ty::F32, index);
            let operands = [pointer, scope, relaxed, x];
            return Ok(self.m.asm.op(Spv::AtomicFAddEXT, Ty::F32, &operands));
        }
        let (pointer, shift, word) = self.atomic_word(buf, dtype, index)?;
        let ty = self.atomic_ty(buf, dtype, word);
        if let (Some(native), true, None) = (instruction(op, dtype), dtype.bits() >= 32, shift) {
            let operands = [pointer, scope, relaxed, x];
            return Ok(self.m.asm.op(native, ty, &operands));
        }
        self.exchange(Some(op), dtype, (pointer, ty), shift, scope, x)
    }

    /// A loop of compare and exchange on the word that holds an element, which is combined with `x`
    /// or, without an op, replaced by it; gives the old element.
    pub(super) fn exchange(
        &mut self,
        op: Option<BinaryOp>,
        dtype: DType,
        (pointer, ty): (Word, Ty),
        shift: Option<Word>,
        scope: Word,
        x: Word,
    ) -> Emitted<Word> {
        let relaxed = self.m.asm.word(0);
        let start = self.m.asm.op(Spv::AtomicLoad, ty, &[pointer, scope, relaxed]);
        let [head, body, next, merge] = [0; 4].map(|_| self.m.asm.id());
        let before = self.m.asm.here();
        self.m.asm.branch(head);
        self.m.asm.label(head);
        let old = self.m.asm.op(Spv::Phi, ty, &[start, before]);
        self.m.asm.loop_merge(merge, next);
        self.m.asm.branch(body);
        self.m.asm.label(body);
        let element = match shift {
            Some(shift) => self.extracted(old, shift, dtype),
            None => self.lane_of_word(ty, dtype, old),
        };
        let result = op.map_or(x, |op| {
            let compute = self.caps.compute_dtype(dtype);
            let [left, right] = [element, x].map(|v| self.m.cast(dtype, compute, v));
            let combined = self.m.binary(op, compute, left, right);
            self.m.cast(compute, dtype, combined)
        });
        let mut new = self.word_of_lane(ty, dtype, result);
        if let Some(shift) = shift {
            let mask = self.m.asm.word((1 << dtype.bits()) - 1);
            new = self.m.asm.op(Spv::BitwiseAnd, ty, &[new, mask]);
            new = self.m.asm.op(Spv::ShiftLeftLogical, ty, &[new, shift]);
            let hole = self.m.asm.op(Spv::ShiftLeftLogical, ty, &[mask, shift]);
            let hole = self.m.asm.op(Spv::Not, ty, &[hole]);
            let rest = self.m.asm.op(Spv::BitwiseAnd, ty, &[old, hole]);
            new = self.m.asm.op(Spv::BitwiseOr, ty, &[new, rest]);
        }
        let operands = [pointer, scope, relaxed, relaxed, new, old];
        let seen = self.m.asm.op(Spv::AtomicCompareExchange, ty, &operands);
        let done = self.m.test(Spv::IEqual, &[seen, old]);
        self.m.asm.branch(next);
        self.m.asm.label(next);
        self.m.asm.complete(old, seen, next);
        self.m.asm.branch_if(done, merge, head);
        self.m.asm.label(merge);
        Ok(element)
    }
}

/// The instruction for an atomic on integers.
fn instruction(op: BinaryOp, dtype: DType) -> Option<Spv> {
    let signed = dtype.is_signed();
    if dtype.is_float() || dtype == DType::Bool {
        return None;
    }
    Some(match op {
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
    })
}
