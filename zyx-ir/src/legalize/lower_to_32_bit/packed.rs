//! Elements of 8 and 16 bits as parts of the words of a buffer, for devices whose memory has none so
//! narrow.
//!
//! A load shifts and masks. A store flips those bits of the word that change, in one atomic, since
//! neighbours belong to other threads: nobody else may change the bits of an element that a thread
//! stores, so it is no loop. Words of which some thread stores a part are read by atomic loads.

use super::Lowering;
use super::parts::{held, is_part};
use crate::caps::Caps;
use crate::dtype::DType;
use crate::ir::{Access, Op, Order, ParamInfo, Type, Value};
use crate::ops::BinaryOp;
use crate::scalar::Scalar;

/// Whether elements that others see are parts of words.
pub(super) fn is_packed(dtype: DType, caps: &Caps) -> bool {
    is_part(dtype) && !caps.narrow.contains(dtype)
}

/// The words that hold a buffer of packed elements.
pub(super) fn param(info: ParamInfo) -> ParamInfo {
    let per_word = 32 / info.dtype.bits() as u64;
    let len = info.len.div_ceil(per_word);
    ParamInfo { dtype: DType::U32, len, access: access(info.access), ..info }
}

/// Storing a part takes reading the word.
fn access(of_parts: Access) -> Access {
    if of_parts == Access::Write { Access::ReadWrite } else { of_parts }
}

impl Lowering<'_> {
    fn u32(&mut self, n: u32) -> Value {
        self.out.constant(Scalar::from(n))
    }

    /// The buffer of words of a slot.
    pub(super) fn words(&mut self, slot: u16) -> Value {
        let access = access(self.kernel.params()[usize::from(slot)].access);
        self.out.push(Op::Param { slot, access }, Type::scalar(DType::U32))
    }

    /// The index of the word that an element is part of, and its lowest bit there.
    fn field(&mut self, dtype: DType, index: Value) -> (Value, Value) {
        let bits = dtype.bits() as u32;
        let (of, per_word) = (self.out.ty(index).dtype, 32 / bits);
        let low = self.out.cast(DType::U32, index);
        let (wide, narrow) = if of.bits() == 64 { (index, of) } else { (low, DType::I32) };
        let places = Scalar::from_i64(self.out.ty(wide).dtype, per_word.ilog2().into());
        let places = self.out.constant(places);
        let word = self.out.binary(BinaryOp::Shr, wide, places);
        let word = self.out.cast(narrow, word);
        let last = self.u32(per_word - 1);
        let part = self.out.binary(BinaryOp::And, low, last);
        let bits = self.u32(bits);
        (word, self.out.binary(BinaryOp::Mul, part, bits))
    }

    /// The word that holds an element, widened: a load whose index is in bounds.
    pub(super) fn load_part(&mut self, dtype: DType, buf: Value, index: Value) -> Value {
        let index = self.operand(index);
        let (index, shift) = self.field(dtype, index);
        let word = self.load_word(buf, index);
        let word = self.out.binary(BinaryOp::Shr, word, shift);
        let word = self.out.bitcast(held(dtype), word);
        self.wrapped(dtype, word)
    }

    fn load_word(&mut self, buf: Value, index: Value) -> Value {
        let buf = self.one(buf);
        let is_stored = !matches!(self.out.op(buf), Op::Param { access: Access::Read, .. });
        let order = if is_stored { Order::Relaxed } else { Order::Plain };
        self.out.push(Op::Load { order, buf, index }, Type::scalar(DType::U32))
    }

    /// Stores the lowest bits of a word, under the guard of the access.
    pub(super) fn store_part(&mut self, dtype: DType, buf: Value, index: Value, x: Value) -> Value {
        let (plain, conds) = self.kernel.unguarded(index);
        let index = self.operand(plain);
        let (index, shift) = self.field(dtype, index);
        let conds: Vec<Value> = conds.into_iter().map(|cond| self.one(cond)).collect();
        let both = |all, one| self.out.binary(BinaryOp::And, all, one);
        let cond = conds.into_iter().reduce(both);
        let zero = self.out.constant(Scalar::from_i64(self.out.ty(index).dtype, 0));
        let safe = cond.map_or(index, |cond| self.out.select(cond, index, zero));
        let index = cond.map_or(index, |cond| self.out.guard(index, cond));
        let seen = self.load_word(buf, safe);
        // Those of its bits in which the element differs from the new one.
        let old = self.out.binary(BinaryOp::Shr, seen, shift);
        let new = self.out.bitcast(DType::U32, x);
        let differs = self.out.binary(BinaryOp::Xor, old, new);
        let mask = self.u32((1 << dtype.bits()) - 1);
        let differs = self.out.binary(BinaryOp::And, differs, mask);
        let value = self.out.binary(BinaryOp::Shl, differs, shift);
        self.out.atomic(BinaryOp::Xor, self.one(buf), index, value)
    }
}
