//! Kernels in 32 bits, for emitters of scalars: SPIR-V and WGSL.
//!
//! An emitter calls [`lowered`] on the legal kernel first. `i64` values that are known to fit are
//! then `i32`, counters of loops included, since GPUs compute 64 bits in several instructions. Vectors
//! are taken apart, and guarded loads are selections (`lanes`). What
//! has less than 32 bits is held in words (`parts`), and lies in them (`packed`) unless memory has such
//! elements ([`Caps::narrow`]), of which an emitter knows that they are loaded, stored and converted to
//! words and back. On devices without 64-bit integers ([`Caps::emulated`]) those are pairs of `u32`, the
//! lower word first:
//! * a buffer of `n` such elements is one of `2 n` words, as the host lays them out; other storage
//!   becomes two;
//! * a scalar argument becomes two, and [`arguments`] splits its value likewise;
//! * arithmetic is that of `arithmetic`, slow and exact. Quotients were expanded by legalisation.
//!
//! No loop counts in 64 bits there: one that long would outlast every driver's patience.

mod arithmetic;
mod lanes;
mod packed;
mod parts;

use super::shuffles;
use crate::caps::Caps;
use crate::dtype::DType;
use crate::ir::{Builder, Kernel, Op, Order, ParamInfo, Space, Type, Value, VarInfo};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::passes::dce::dce;
use crate::passes::narrow;
use crate::scalar::Scalar;
use arithmetic::Words;
use parts::{follows, held, in_memory, is_of_parts, is_part};

/// The kernel as it is emitted.
///
/// # Errors
/// When a device without 64-bit integers would need atomics or loops of them, or any device atomics on
/// less than a word, as kernels that are legal for it do not; and when a shuffle is in no group of one axis.
pub fn lowered(kernel: &Kernel, caps: &Caps) -> Result<Kernel, String> {
    let words = shuffles::of_words(kernel, caps)?;
    let kernel = words.as_ref().unwrap_or(kernel);
    let scalars = lanes::apart(&narrow::with_loops(kernel), caps);
    Ok(dce(&in_words(&scalars, caps)?))
}

/// The bits of a lowered kernel's scalar arguments, from those of the kernel it was made of.
pub fn arguments(vars: &[VarInfo], caps: &Caps, bits: &[u64]) -> Vec<u64> {
    let split = |(var, &bits): (&VarInfo, &u64)| match caps.emulated.contains(var.dtype) {
        true => vec![bits & u64::from(u32::MAX), bits >> 32],
        false => vec![parts::word(Scalar::from_bits(var.dtype, bits)).bits()],
    };
    vars.iter().zip(bits).flat_map(split).collect()
}

/// Longest loops, strides included.
const LONGEST: u32 = narrow::LONGEST as u32;

/// A kernel being rewritten.
struct Lowering<'k> {
    kernel: &'k Kernel,
    caps: &'k Caps,
    out: Builder,
    /// What stands for each old value: its words, or twice the same value.
    new: Vec<Words>,
}

/// The kernel with everything held in words or pairs of them.
fn in_words(kernel: &Kernel, caps: &Caps) -> Result<Kernel, String> {
    let pairs = caps.emulated;
    // A scalar is a pair of words where indices are: launches check lengths by the kernel that this one is made of.
    let params = kernel.params().iter().map(|&p| match in_memory(p.dtype) {
        dtype if pairs.contains(dtype) => ParamInfo { dtype: DType::U32, len: 2 * p.len, ..p },
        dtype if packed::is_packed(dtype, caps) => packed::param(p),
        dtype => ParamInfo { dtype, ..p },
    });
    let word = VarInfo { dtype: DType::U32, min: 0, max: u32::MAX.into(), multiple_of: 1 };
    let vars = kernel.vars().iter().flat_map(|&var| match var.dtype {
        dtype if pairs.contains(dtype) => vec![word, word],
        dtype if dtype.is_int() => vec![VarInfo { dtype: held(dtype), ..var }],
        dtype if dtype.bits() < 32 => vec![word],
        _ => vec![var],
    });
    let out = Builder::new(kernel.name()).with_arguments(params.collect(), vars.collect());
    let new = Vec::with_capacity(kernel.ops().len());
    let mut lowering = Lowering { kernel, caps, out, new };
    for (value, op, ty) in kernel.iter() {
        let new = match is_of_parts(op, ty) {
            true => lowering.part(value, op, ty).map(Words::from),
            false => lowering.op(op, ty),
        };
        let new = new.map_err(|what| format!("{value}: no {what} of {}", ty.dtype))?;
        lowering.new.push(new);
    }
    Ok(lowering.out.finish().with_members(kernel.members().cloned()))
}

impl Lowering<'_> {
    /// What stands for an old value that is no pair.
    fn one(&self, old: Value) -> Value {
        self.new[old.idx()].low
    }

    fn pair(&self, old: Value) -> Words {
        self.new[old.idx()]
    }

    fn dtype(&self, old: Value) -> DType {
        self.kernel.ty(old).dtype
    }

    fn is_pair(&self, old: Value) -> bool {
        self.caps.emulated.contains(self.dtype(old))
    }

    /// The slot of a scalar argument.
    fn slot(&self, slot: u16) -> u16 {
        let before = &self.kernel.vars()[..slot.into()];
        slot + before.iter().filter(|var| self.caps.emulated.contains(var.dtype)).count() as u16
    }

    fn op(&mut self, op: Op, ty: Type) -> Result<Words, &'static str> {
        let long = self.caps.emulated.contains(ty.dtype);
        Ok(match op {
            Op::Var { slot } => {
                let slot = self.slot(slot);
                let mut var = |slot, dtype| self.out.push(Op::Var { slot }, Type::scalar(dtype));
                match long {
                    true => Words { low: var(slot, DType::U32), high: var(slot + 1, DType::U32) },
                    false => var(slot, ty.dtype).into(),
                }
            }
            Op::Const { bits } if long => self.long(bits),
            Op::Param { .. } if long => self.out.push(op, Type::scalar(DType::U32)).into(),
            Op::Alloc { space, len } if long => self.alloc(space, len),
            Op::Load { order, buf, index } if long => {
                let [low, high] = self.places(order, buf, index)?;
                let [low, high] = [low, high].map(|(buf, index)| self.out.load(buf, index));
                Words { low, high }
            }
            Op::Store { order, buf, index, value } if long => {
                let Words { low, high } = self.pair(value);
                let places = self.places(order, buf, index)?;
                for ((buf, index), word) in places.into_iter().zip([low, high]) {
                    self.out.store(buf, index, word);
                }
                low.into()
            }
            Op::Atomic { .. } if long => return Err("atomic"),
            Op::Loop { kind, axis, len } if long => {
                let len = self.length(len)?;
                let counter = self.out.push(Op::Loop { kind, axis, len }, ty.with(DType::I32));
                self.widened(counter)
            }
            Op::End { .. } => {
                self.out.close();
                // Nothing refers to it.
                Value(0).into()
            }
            Op::Unary { op, x } if long => {
                let x = self.pair(x);
                self.unary(op, ty.dtype, x)
            }
            Op::Binary { op, x, y } if self.is_pair(x) => {
                let (dtype, x, y) = (self.dtype(x), self.pair(x), self.pair(y));
                self.binary(op, dtype, x, y)?
            }
            Op::Ternary { op: TernaryOp::Where, x, y, z } if long => {
                let (x, y, z) = (self.one(x), self.pair(y), self.pair(z));
                self.select(x, y, z)
            }
            Op::Cast { x } if long && !self.is_pair(x) => {
                let x = self.one(x);
                self.cast_to_pair(ty.dtype, x)
            }
            Op::Cast { x } | Op::Bitcast { x } if long => self.pair(x),
            Op::Cast { x } if self.is_pair(x) => {
                let (from, x) = (self.dtype(x), self.pair(x));
                self.cast_from_pair(from, ty.dtype, x).into()
            }
            Op::Guard { .. } if long => {
                let op = op.map(|x| self.operand(x));
                self.out.emit(op, ty.with(DType::I32)).into()
            }
            _ if long => return Err("operation"),
            Op::Unary { op, x }
                if ty.dtype.is_int() && !matches!(op, UnaryOp::Neg | UnaryOp::Not) =>
            {
                self.simple_unary(op, self.one(x))?.into()
            }
            Op::Binary { op, x, y } if follows(op, self.dtype(x)) => {
                self.simple_binary(op, [x, y].map(|v| self.one(v)))?.into()
            }
            Op::Cast { x } if is_part(self.dtype(x)) => self.converted(x, ty.dtype)?.into(),
            _ => {
                let op = op.map(|x| self.operand(x));
                self.out.emit(op, ty).into()
            }
        })
    }

    /// An array for the lower words and one for the upper.
    fn alloc(&mut self, space: Space, len: u32) -> Words {
        let [low, high] = [0; 2].map(|_| self.out.alloc(space, Type::scalar(DType::U32), len));
        Words { low, high }
    }

    /// What stands for an operand that is no pair or is an index. Accesses are in bounds, so of
    /// indices no more than 32 bits are needed.
    fn operand(&mut self, old: Value) -> Value {
        match self.is_pair(old) && !matches!(self.kernel.op(old), Op::Guard { .. }) {
            true => self.out.bitcast(DType::I32, self.pair(old).low),
            false => self.one(old),
        }
    }

    /// Where both words of an element are, under the guards of the access.
    fn places(
        &mut self,
        order: Order,
        buf: Value,
        index: Value,
    ) -> Result<[(Value, Value); 2], &'static str> {
        if !matches!(order, Order::Plain | Order::Streaming | Order::AsyncCopy) {
            return Err("atomic");
        }
        if let Op::Alloc { .. } = self.kernel.op(buf) {
            let (Words { low, high }, index) = (self.pair(buf), self.operand(index));
            return Ok([(low, index), (high, index)]);
        }
        let (plain, conds) = self.kernel.unguarded(index);
        let (buf, index) = (self.one(buf), self.operand(plain));
        let [one, two] = [1, 2].map(|n| self.out.constant(Scalar::from(n)));
        let first = self.out.binary(BinaryOp::Mul, index, two);
        let second = self.out.binary(BinaryOp::Add, first, one);
        let guarded = |index| {
            conds.iter().fold(index, |index, &c| {
                let cond = self.one(c);
                self.out.guard(index, cond)
            })
        };
        let [first, second] = [first, second].map(guarded);
        Ok([(buf, first), (buf, second)])
    }

    /// The length of a loop. A constant above [`LONGEST`] is refused; one that is known only at
    /// launch is cut to it, which the core's lengths, all constants, never meet.
    fn length(&mut self, len: Value) -> Result<Value, &'static str> {
        let len = match self.kernel.constant(len).map(|n| n.to_i64()) {
            Some(n) if n > LONGEST.into() => return Err("loop"),
            _ => self.pair(len),
        };
        let longest = self.long(LONGEST.into());
        let least = self.binary(BinaryOp::Min, DType::I64, len, longest)?;
        let none = self.long(0);
        let bounded = self.binary(BinaryOp::Max, DType::I64, least, none)?;
        Ok(self.out.bitcast(DType::I32, bounded.low))
    }
}

#[cfg(test)]
mod tests;
