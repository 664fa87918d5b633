//! What has less than 32 bits, held in words.
//!
//! A narrow integer is an `i32` or `u32` within its range, a half the `u32` of its bits. Buffers keep
//! the layout: there bools are `u8` and halves `u16`. Where memory has such elements, each load
//! is followed by a cast to the word, each store preceded by one from it, in shared storage too. Where
//! it has none, elements of buffers are parts of words (`packed`), those of shared storage are words.
//! Private storage is words. Legal kernels compute in words already and take halves apart
//! by integer operations ([`Caps::partial_casts`](crate::caps::Caps::partial_casts)), so what is
//! left are conversions.

use super::Lowering;
use super::packed::is_packed;
use crate::decompose::Expand;
use crate::dtype::DType;
use crate::ir::{Op, Order, Space, Type, Value};
use crate::ops::{BinaryOp, UnaryOp};
use crate::scalar::Scalar;

/// Whether values of this dtype are held in words. Bools are values of their own.
pub(super) fn is_part(dtype: DType) -> bool {
    dtype.bits() < 32 && dtype != DType::Bool
}

/// The dtype that a value is held in.
pub(super) fn held(dtype: DType) -> DType {
    match dtype {
        DType::I8 | DType::I16 => DType::I32,
        _ if is_part(dtype) => DType::U32,
        _ => dtype,
    }
}

/// The dtype of elements that others see.
pub(super) fn in_memory(dtype: DType) -> DType {
    match dtype {
        DType::Bool => DType::U8,
        DType::F16 | DType::BF16 => DType::U16,
        _ => dtype,
    }
}

/// The word that stands for a literal or an argument.
pub(super) fn word(x: Scalar) -> Scalar {
    match x.dtype() {
        DType::I8 | DType::I16 => x.cast(DType::I32),
        dtype if dtype.bits() < 32 => Scalar::from(x.bits() as u32),
        _ => x,
    }
}

/// Whether every integer of one dtype is one of the other.
fn fits(from: DType, to: DType) -> bool {
    match (from.is_signed(), to.is_signed()) {
        (false, true) => from.bits() < to.bits(),
        (true, false) => false,
        _ => from.bits() <= to.bits(),
    }
}

/// Whether a binary op follows from others that languages of scalars have.
pub(super) fn follows(op: BinaryOp, dtype: DType) -> bool {
    use BinaryOp::{And, Eq, Max, Min, Ne, Or};
    match dtype {
        DType::Bool => !matches!(op, And | Or | Eq | Ne),
        _ => dtype.is_int() && matches!(op, Max | Min),
    }
}

/// Whether an op is lowered by [`Lowering::part`].
pub(super) fn is_of_parts(op: Op, ty: Type) -> bool {
    let touches = matches!(op, Op::Param { .. } | Op::Var { .. } | Op::Bitcast { .. })
        || matches!(op, Op::Load { .. } | Op::Store { .. } | Op::Alloc { .. } | Op::Atomic { .. });
    is_part(ty.dtype) || ty.dtype == DType::Bool && touches
}

impl Lowering<'_> {
    /// What stands for a value of less than 32 bits, or for an access to such elements.
    pub(super) fn part(&mut self, value: Value, op: Op, ty: Type) -> Result<Value, &'static str> {
        let word_ty = ty.with(held(ty.dtype));
        let (element, packed) = (in_memory(ty.dtype), is_packed(in_memory(ty.dtype), self.caps));
        let memory = ty.with(if packed { held(element) } else { element });
        let mapped = op.map(|x| self.operand(x));
        Ok(match op {
            Op::Const { .. } => {
                let x = self.kernel.constant(value).expect("invariant: a constant has a value");
                self.out.constant(word(x))
            }
            Op::Var { slot } => {
                let slot = self.slot(slot);
                let kept = if ty.dtype == DType::Bool { DType::U32 } else { word_ty.dtype };
                let x = self.out.push(Op::Var { slot }, Type::scalar(kept));
                self.out.cast(word_ty.dtype, x)
            }
            Op::Param { slot, .. } if packed => self.words(slot),
            Op::Param { .. } | Op::Alloc { space: Space::Shared, .. } => {
                self.out.push(mapped, memory)
            }
            Op::Load { order, buf, index } if self.is_seen(buf) => {
                is_plain(order)?;
                let x = match packed && self.is_buffer(buf) {
                    true => self.load_part(element, buf, index),
                    false => self.out.push(mapped, memory),
                };
                let x = self.out.cast(held(element), x);
                self.out.cast(word_ty.dtype, x)
            }
            Op::Store { order, buf, index, value } if self.is_seen(buf) => {
                is_plain(order)?;
                let x = self.operand(value);
                let x = self.out.cast(held(element), x);
                if packed && self.is_buffer(buf) {
                    return Ok(self.store_part(element, buf, index, x));
                }
                let [buf, index] = [buf, index].map(|v| self.operand(v));
                let value = self.out.cast(memory.dtype, x);
                self.out.push(Op::Store { order, buf, index, value }, memory)
            }
            Op::Cast { x } => {
                let from = self.dtype(x);
                let near = match self.is_pair(x) {
                    true => self.cast_from_pair(from, word_ty.dtype, self.pair(x)),
                    false => self.converted(x, word_ty.dtype)?,
                };
                let is_within = from == DType::Bool || from.is_float() || fits(from, ty.dtype);
                if is_within { near } else { self.wrapped(ty.dtype, near) }
            }
            Op::Bitcast { x } => {
                let from = self.dtype(x);
                let x = self.one(x);
                match (from, ty.dtype) {
                    (DType::Bool, _) | (_, DType::Bool) => self.out.cast(word_ty.dtype, x),
                    _ if held(from) == word_ty.dtype => x,
                    _ => {
                        let x = self.out.bitcast(word_ty.dtype, x);
                        self.wrapped(ty.dtype, x)
                    }
                }
            }
            Op::Atomic { .. } => return Err("atomic"),
            Op::Unary { .. } | Op::Binary { .. } => return Err("operation"),
            _ => self.out.emit(mapped, word_ty),
        })
    }

    /// A conversion of a value of less than 32 bits to one that is none and no pair.
    pub(super) fn converted(&mut self, old: Value, to: DType) -> Result<Value, &'static str> {
        if matches!(self.dtype(old), DType::F16 | DType::BF16) {
            return Err("conversion");
        }
        Ok(self.out.cast(to, self.one(old)))
    }

    /// What a unary op on integers is that languages of scalars lack.
    pub(super) fn simple_unary(&mut self, op: UnaryOp, x: Value) -> Result<Value, &'static str> {
        Expand::new(&mut self.out, self.caps).integer_unary(op, x).ok_or("operation")
    }

    /// What a binary op is that [`follows`].
    pub(super) fn simple_binary(
        &mut self,
        op: BinaryOp,
        [x, y]: [Value; 2],
    ) -> Result<Value, &'static str> {
        Expand::new(&mut self.out, self.caps).simple_binary(op, x, y).ok_or("operation")
    }

    /// Whether other threads see this storage.
    fn is_seen(&self, buf: Value) -> bool {
        !matches!(self.kernel.op(buf), Op::Alloc { space: Space::Register, .. })
    }

    fn is_buffer(&self, buf: Value) -> bool {
        matches!(self.kernel.op(buf), Op::Param { .. })
    }

    /// The lowest bits of a word as an integer within the range of `dtype`.
    pub(super) fn wrapped(&mut self, dtype: DType, x: Value) -> Value {
        let bits = dtype.bits() as i64;
        if dtype.is_signed() {
            let places = self.out.constant(Scalar::from_i64(DType::I32, 32 - bits));
            let up = self.out.binary(BinaryOp::Shl, x, places);
            return self.out.binary(BinaryOp::Shr, up, places);
        }
        let mask = self.out.constant(Scalar::from_i64(DType::U32, (1 << bits) - 1));
        self.out.binary(BinaryOp::And, x, mask)
    }
}

fn is_plain(order: Order) -> Result<(), &'static str> {
    let is_plain = matches!(order, Order::Plain | Order::Streaming);
    if is_plain { Ok(()) } else { Err("atomic") }
}
