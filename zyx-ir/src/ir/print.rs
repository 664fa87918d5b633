//! The text of a kernel.
//!
//! One op a line, in program order, the first column naming the value the op defines:
//!
//! ```text
//! kernel double
//! buffer 0 : f32[8] read
//! buffer 1 : f32[8] write
//! scalar 0 : i64 1..=8
//! %0   param 0 read : f32
//! %1   param 1 write : f32
//! %2   var 0 : i64
//! %3   loop parallel %2
//! %4     load %0[%3] : f32
//! %5     add %4, %4 : f32
//! %6     store %1[%3], %5 : f32
//! %7   end %3
//! ```
//!
//! A buffer whose number of elements is a product of scalars has their slots behind its access: `f32[100] read s0*s1`,
//! where 100 is the most.
//!
//! The text is complete and canonical: equal kernels of one name print alike and
//! `parse(print(k)) == k`, types and float bits included. It is the format of golden inputs, bug
//! reports and cache keys, so a change of it is a change of format. What may be left out is left
//! out in one way: the type of `loop` (`i64`), `if`, `end` and `barrier` (`bool`), the axis 0 of
//! a loop, the order `plain` of a load or store. A constant is printed as a number where reading
//! that number gives the same bits, else as hexadecimal bits.

use super::kernel::Kernel;
use super::op::{Access, BarrierScope, LoopKind, Op, Order, ShuffleKind, Space, Type, Value};
use crate::dtype::DType;
use crate::scalar::Scalar;
use std::fmt;

/// An enum whose variants are words of the text form.
pub(super) trait Keyword: Copy + PartialEq + 'static {
    /// What the word says, for messages.
    const WHAT: &'static str;
    /// Every variant with its word.
    const WORDS: &'static [(Self, &'static str)];

    /// The word of this variant.
    fn word(self) -> &'static str {
        let row = Self::WORDS.iter().find(|(variant, _)| *variant == self);
        row.expect("invariant: every variant has a word").1
    }
}

macro_rules! keywords {
    ($enum:ident $what:literal { $($variant:ident $word:literal),* $(,)? }) => {
        impl Keyword for $enum {
            const WHAT: &'static str = $what;
            const WORDS: &'static [($enum, &'static str)] = &[$(($enum::$variant, $word)),*];
        }

        /// Does not compile when a variant has no word.
        const _: fn($enum) = |x| match x { $($enum::$variant => {})* };
    };
}

keywords!(Access "an access" { Read "read", Write "write", ReadWrite "readwrite" });
keywords!(Space "a space" { Register "register", Shared "shared" });
keywords!(BarrierScope "a barrier's scope" { Shared "shared", Group "group" });
keywords!(LoopKind "a loop's kind" {
    Serial "serial", Parallel "parallel", Group "group", Local "local",
});
keywords!(ShuffleKind "a shuffle's kind" { Index "index", Xor "xor", Down "down" });
keywords!(Order "an order" {
    Plain "plain", Streaming "streaming", AsyncCopy "async_copy", Relaxed "relaxed",
    Acquire "acquire", Release "release", AcquireRelease "acqrel", AcquireSpin "acquire_spin",
});

/// The type an op has when none is printed.
pub(super) fn implied_type(op: &Op) -> Option<Type> {
    match op {
        Op::Loop { .. } => Some(Type::scalar(DType::I64)),
        Op::If { .. } | Op::Break { .. } | Op::End { .. } | Op::Barrier { .. } => {
            Some(Type::scalar(DType::Bool))
        }
        _ => None,
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name().replace(|c: char| c.is_control() || c == '#', "_");
        writeln!(f, "kernel {}", name.trim())?;
        for (slot, p) in self.params().iter().enumerate() {
            write!(f, "buffer {slot} : {}[{}] {}", p.dtype, p.len, p.access.word())?;
            p.extents.iter().try_for_each(|extents| write!(f, " {extents}"))?;
            writeln!(f)?;
        }
        for (slot, v) in self.vars().iter().enumerate() {
            write!(f, "scalar {slot} : {} {}..={}", v.dtype, v.min, v.max)?;
            if v.multiple_of != 1 {
                write!(f, " by {}", v.multiple_of)?;
            }
            writeln!(f)?;
        }
        let width = self.ops().len().to_string().len().max(3) + 2;
        let mut depth = 0usize;
        for (value, op, ty) in self.iter() {
            if let Op::End { .. } = op {
                depth = depth.saturating_sub(1);
            }
            // Strings are padded, formatted arguments are not.
            let label = value.to_string();
            let indent = 2 * depth;
            writeln!(f, "{label:<width$}{:indent$}{}", "", Line { op, ty })?;
            depth += op.opens_region() as usize;
        }
        Ok(())
    }
}

/// One op and its type, without label and indentation.
pub(super) struct Line {
    pub(super) op: Op,
    pub(super) ty: Type,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ty = self.ty;
        match self.op {
            Op::Param { slot, access } => write!(f, "param {slot} {}", access.word())?,
            Op::Var { slot } => write!(f, "var {slot}")?,
            Op::Const { bits } => write!(f, "const {}", Literal { dtype: ty.dtype, bits })?,
            Op::Alloc { space, len } => write!(f, "alloc {} {len}", space.word())?,
            Op::Unary { op, x } => write!(f, "{op} {x}")?,
            Op::Binary { op, x, y } => write!(f, "{op} {x}, {y}")?,
            Op::Ternary { op, x, y, z } => write!(f, "{op} {x}, {y}, {z}")?,
            Op::Cast { x } => write!(f, "cast {x}")?,
            Op::Bitcast { x } => write!(f, "bitcast {x}")?,
            Op::Splat { x } => write!(f, "splat {x}")?,
            Op::Lanes => write!(f, "lanes")?,
            Op::Extract { x, lane } => write!(f, "extract {x}, {lane}")?,
            Op::Concat { x, y } => write!(f, "concat {x}, {y}")?,
            Op::Fold { op, x } => write!(f, "fold {op} {x}")?,
            Op::Guard { index, cond } => write!(f, "guard {index}, {cond}")?,
            Op::Load { order, buf, index } => {
                write!(f, "load{} {buf}[{index}]", Suffix(order))?;
            }
            Op::Store { order, buf, index, value } => {
                write!(f, "store{} {buf}[{index}], {value}", Suffix(order))?;
            }
            Op::Atomic { op, order, buf, index, value } => {
                write!(f, "atomic{} {op} {buf}[{index}], {value}", Suffix(order))?;
            }
            Op::Loop { kind, axis: 0, len } => write!(f, "loop {} {len}", kind.word())?,
            Op::Loop { kind, axis, len } => write!(f, "loop {}.{axis} {len}", kind.word())?,
            Op::If { cond } => write!(f, "if {cond}")?,
            Op::Break { cond } => write!(f, "break {cond}")?,
            Op::End { open } => write!(f, "end {open}")?,
            Op::Barrier { scope } => write!(f, "barrier {}", scope.word())?,
            Op::Shuffle { kind, x, lane } => write!(f, "shuffle {} {x}, {lane}", kind.word())?,
            Op::Panel { buf, index } => write!(f, "panel {buf}[{index}]")?,
            Op::Mma { row, a, b, c } => write!(f, "mma {row} {a}, {b}, {c}")?,
        }
        if implied_type(&self.op) == Some(ty) { Ok(()) } else { write!(f, " : {ty}") }
    }
}

/// The order of an access as a suffix of the op's word, nothing for `Plain`.
struct Suffix(Order);

impl fmt::Display for Suffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == Order::Plain { Ok(()) } else { write!(f, ".{}", self.0.word()) }
    }
}

/// The bits of a constant in the form that reads back exactly.
struct Literal {
    dtype: DType,
    bits: u64,
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = Scalar::from_bits(self.dtype, self.bits).to_string();
        if literal_bits(self.dtype, &text) == Some(self.bits) {
            f.write_str(&text)
        } else {
            write!(f, "{:#x}", self.bits)
        }
    }
}

/// The bits a printed constant stands for, `None` if it is not one of `dtype`.
pub(super) fn literal_bits(dtype: DType, text: &str) -> Option<u64> {
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok();
    }
    let scalar = match dtype {
        DType::Bool => Scalar::from(text.parse::<bool>().ok()?),
        DType::F64 => Scalar::from(text.parse::<f64>().ok()?),
        DType::F32 => Scalar::from(text.parse::<f32>().ok()?),
        DType::F16 | DType::BF16 => Scalar::from(text.parse::<f32>().ok()?).cast(dtype),
        DType::U64 => Scalar::from(text.parse::<u64>().ok()?),
        _ => {
            let x = text.parse::<i64>().ok()?;
            let scalar = Scalar::from_i64(dtype, x);
            (scalar.to_i128() == x as i128).then_some(scalar)?
        }
    };
    Some(scalar.bits())
}

/// The op that defines `value` as one line of text, for messages.
pub(super) fn line(kernel: &Kernel, value: Value) -> String {
    Line { op: kernel.op(value), ty: kernel.ty(value) }.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Builder;
    use crate::ops::BinaryOp;

    #[test]
    fn the_documented_example_is_what_is_printed() {
        let mut b = Builder::new("double");
        let a = b.param(DType::F32, 8, Access::Read);
        let out = b.param(DType::F32, 8, Access::Write);
        let len = b.var(DType::I64, 1, 8);
        let i = b.open_loop(LoopKind::Parallel, 0, len);
        let x = b.load(a, i);
        let y = b.binary(BinaryOp::Add, x, x);
        b.store(out, i, y);
        b.close();
        let text = b.finish().to_string();
        let doc = include_str!("print.rs");
        for line in text.lines() {
            assert!(doc.contains(&format!("//! {line}\n")), "not in the documentation: {line}");
        }
    }

    #[test]
    fn constants_print_as_numbers_when_exact_and_as_bits_when_not() {
        let text = |dtype, bits| Literal { dtype, bits }.to_string();
        assert_eq!(text(DType::I64, -3i64 as u64), "-3");
        assert_eq!(text(DType::U64, u64::MAX), u64::MAX.to_string());
        assert_eq!(text(DType::F32, 1.5f32.to_bits() as u64), "1.5");
        assert_eq!(text(DType::F32, (-0f32).to_bits() as u64), "-0.0");
        assert_eq!(text(DType::F32, f32::NEG_INFINITY.to_bits() as u64), "-inf");
        assert_eq!(text(DType::F32, 0x7fc0_0001), "0x7fc00001");
        assert_eq!(text(DType::Bool, 1), "true");
        assert_eq!(text(DType::Bool, 2), "0x2");
        assert_eq!(text(DType::I8, 0x1ff), "0x1ff");
    }

    #[test]
    fn every_half_code_reads_back() {
        for dtype in [DType::F16, DType::BF16] {
            for bits in 0..=u16::MAX as u64 {
                let text = Literal { dtype, bits }.to_string();
                assert_eq!(literal_bits(dtype, &text), Some(bits), "{dtype} {text}");
            }
        }
    }
}
