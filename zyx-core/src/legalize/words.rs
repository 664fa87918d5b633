//! Kernels in 32 bits, for emitters of scalars: SPIR-V and WGSL.
//!
//! An emitter calls [`lowered`] on the legal kernel first. `i64` values that are known to fit are
//! then `i32`, counters of loops included, since GPUs compute 64 bits in several instructions. On
//! devices without 64-bit integers ([`Caps::emulated`]) all others are pairs of `u32`, the lower
//! word first:
//! * a buffer of `n` such elements is one of `2 n` words, as the host lays them out; other storage
//!   becomes two;
//! * a scalar argument becomes two, and [`arguments`] splits its value likewise;
//! * arithmetic is that of `arithmetic`, slow and exact. Quotients were expanded by legalisation.
//!
//! No loop counts in 64 bits there: one that long would outlast every driver's patience.

mod arithmetic;

use crate::dtype::{DType, DTypeSet};
use crate::hal::Caps;
use crate::ir::{Builder, Kernel, Op, Order, ParamInfo, Space, Type, Value, VarInfo};
use crate::ops::{BinaryOp, TernaryOp};
use crate::passes::dce::dce;
use crate::passes::narrow;
use crate::scalar::Scalar;
use arithmetic::Words;

/// The kernel as it is emitted.
///
/// # Errors
/// When a device without 64-bit integers would need vectors, atomics or loops of them, as kernels
/// that are legal for it do not.
pub fn lowered(kernel: &Kernel, caps: &Caps) -> Result<Kernel, String> {
    let kernel = narrow::with_loops(kernel);
    let kernel = match caps.emulated == DTypeSet::NONE {
        true => kernel,
        false => pairs(&kernel)?,
    };
    Ok(dce(&kernel))
}

/// The bits of a lowered kernel's scalar arguments, from those of the kernel it was made of.
pub fn arguments(vars: &[VarInfo], caps: &Caps, bits: &[u64]) -> Vec<u64> {
    let split = |(var, &bits): (&VarInfo, &u64)| match caps.emulated.contains(var.dtype) {
        true => vec![bits & u64::from(u32::MAX), bits >> 32],
        false => vec![bits],
    };
    vars.iter().zip(bits).flat_map(split).collect()
}

/// Longest loops, strides included.
const LONGEST: u32 = narrow::LONGEST as u32;

fn is_long(dtype: DType) -> bool {
    matches!(dtype, DType::I64 | DType::U64)
}

/// A kernel being rewritten.
struct Pairs<'k> {
    kernel: &'k Kernel,
    out: Builder,
    /// What stands for each old value: its words, or twice the same value.
    new: Vec<Words>,
}

/// The kernel with 64-bit integers as pairs of words.
fn pairs(kernel: &Kernel) -> Result<Kernel, String> {
    let params = kernel.params().iter().map(|&p| match is_long(p.dtype) {
        true => ParamInfo { dtype: DType::U32, len: 2 * p.len, ..p },
        false => p,
    });
    let word = VarInfo { dtype: DType::U32, min: 0, max: u32::MAX.into() };
    let vars = kernel.vars().iter().flat_map(|&var| match is_long(var.dtype) {
        true => vec![word, word],
        false => vec![var],
    });
    let out = Builder::new(kernel.name()).with_arguments(params.collect(), vars.collect());
    let mut pairs = Pairs { kernel, out, new: Vec::with_capacity(kernel.ops().len()) };
    for (value, op, ty) in kernel.iter() {
        let new = pairs.op(op, ty).map_err(|what| format!("{value}: no {what} of 64 bits"))?;
        pairs.new.push(new);
    }
    Ok(pairs.out.finish())
}

impl Pairs<'_> {
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

    fn op(&mut self, op: Op, ty: Type) -> Result<Words, &'static str> {
        let long = is_long(ty.dtype);
        if long && ty.is_vector() {
            return Err("vector");
        }
        Ok(match op {
            Op::Var { slot } => {
                let before = &self.kernel.vars()[..slot.into()];
                let longs = before.iter().filter(|var| is_long(var.dtype)).count() as u16;
                let var = |slot| Op::Var { slot };
                match long {
                    true => Words {
                        low: self.out.push(var(slot + longs), Type::scalar(DType::U32)),
                        high: self.out.push(var(slot + longs + 1), Type::scalar(DType::U32)),
                    },
                    false => self.out.push(var(slot + longs), ty).into(),
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
            Op::Binary { op, x, y } if is_long(self.dtype(x)) => {
                let (dtype, x, y) = (self.dtype(x), self.pair(x), self.pair(y));
                self.binary(op, dtype, x, y)?
            }
            Op::Ternary { op: TernaryOp::Where, x, y, z } if long => {
                let (x, y, z) = (self.one(x), self.pair(y), self.pair(z));
                self.select(x, y, z)
            }
            Op::Cast { x } if long && !is_long(self.dtype(x)) => {
                let x = self.one(x);
                self.cast_to_pair(ty.dtype, x)
            }
            Op::Cast { x } | Op::Bitcast { x } if long => self.pair(x),
            Op::Cast { x } if is_long(self.dtype(x)) => {
                let (from, x) = (self.dtype(x), self.pair(x));
                self.cast_from_pair(from, ty.dtype, x).into()
            }
            Op::Guard { .. } if long => {
                let op = op.map(|x| self.operand(x));
                self.out.emit(op, ty.with(DType::I32)).into()
            }
            _ if long => return Err("operation"),
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
        match is_long(self.dtype(old)) && !matches!(self.kernel.op(old), Op::Guard { .. }) {
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
        if !matches!(order, Order::Plain | Order::Streaming) {
            return Err("atomic");
        }
        if let Op::Alloc { .. } = self.kernel.op(buf) {
            let (Words { low, high }, index) = (self.pair(buf), self.operand(index));
            return Ok([(low, index), (high, index)]);
        }
        let (mut plain, mut conds) = (index, Vec::new());
        while let Op::Guard { index, cond } = self.kernel.op(plain) {
            conds.push(self.one(cond));
            plain = index;
        }
        let (buf, index) = (self.one(buf), self.operand(plain));
        let [one, two] = [1, 2].map(|n| self.out.constant(Scalar::from(n)));
        let first = self.out.binary(BinaryOp::Mul, index, two);
        let second = self.out.binary(BinaryOp::Add, first, one);
        let guarded = |index| conds.iter().fold(index, |index, &c| self.out.guard(index, c));
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
