//! An assembler for the instructions of 64-bit Arm that compiled kernels need.
//!
//! Every instruction is a row of one table (`table.rs`), so that an instruction of the code
//! generator can hold its row as data: a name, the word without operands, how an arrangement of
//! lanes changes it, and the fields its operands go to (`field.rs`). All operands are numbers: of
//! registers, immediates as an assembler spells them, labels. [`Assembler`] adds labels, a pool of
//! constants behind the code, and what takes several instructions: any constant in a register, any
//! number added to one. Everything is relative to the position of the code, which may be copied to
//! any multiple of 16.
//!
//! Nothing is checked at run time but distances to labels: operands that a field does not hold are
//! caught by debug assertions. Tests decode random operands of every row with an independent
//! decoder, and compare them with what binutils assemble where those are installed.
//! Source: Arm Architecture Reference Manual for A-profile, DDI 0487.

mod field;
mod immediate;
mod table;

#[cfg(test)]
mod tests;

pub(crate) use self::field::Arr;
#[allow(unused_imports, reason = "the vocabulary of the code generator")]
pub(crate) use self::immediate::{add_immediate, bitmask, byte_mask, float8};
pub(crate) use self::table::Op;

use self::field::Field;
use std::collections::HashMap;

/// Register 31: zero, or the stack pointer where a field names that.
pub(crate) const ZERO: u8 = 31;
pub(crate) const SP: u8 = 31;
/// The link register, which holds where to return.
pub(crate) const LINK: u8 = 30;

pub(crate) use super::super::machine::Label;

impl Label {
    /// The label as an operand.
    pub(crate) fn operand(self) -> i64 {
        self.0.into()
    }
}

/// A condition of the flags, by its number in instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cond {
    Equal = 0,
    NotEqual = 1,
    /// Unsigned at or above; carry set.
    AtLeast = 2,
    /// Unsigned below.
    Below = 3,
    /// Negative; a float less than.
    Minus = 4,
    Plus = 5,
    /// Unordered.
    Overflow = 6,
    Ordered = 7,
    Above = 8,
    /// Unsigned at or below; a float less or equal.
    AtMost = 9,
    GreaterEqual = 10,
    /// A float less than or unordered.
    Less = 11,
    Greater = 12,
    LessEqual = 13,
}

impl Cond {
    /// The opposite condition.
    pub(crate) fn not(self) -> Self {
        const ALL: [Cond; 14] = [
            Cond::Equal,
            Cond::NotEqual,
            Cond::AtLeast,
            Cond::Below,
            Cond::Minus,
            Cond::Plus,
            Cond::Overflow,
            Cond::Ordered,
            Cond::Above,
            Cond::AtMost,
            Cond::GreaterEqual,
            Cond::Less,
            Cond::Greater,
            Cond::LessEqual,
        ];
        ALL[self as usize ^ 1]
    }
}

const UNBOUND: u32 = u32::MAX;

/// A distance to be filled in when its label is known.
#[derive(Debug)]
struct Fixup {
    /// Position of the instruction.
    at: u32,
    label: Label,
    field: Field,
}

/// A label is farther away than its instruction reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooFar;

/// Code under construction.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    code: Vec<u8>,
    labels: Vec<u32>,
    fixups: Vec<Fixup>,
    /// Constants in order of first use.
    pool: Vec<(Label, Vec<u8>)>,
    pooled: HashMap<Vec<u8>, Label>,
}

/// One row of the table with its operands, in the order of the row's fields. Labels are zero.
pub(crate) fn encode(op: Op, arr: Arr, operands: &[i64]) -> u32 {
    let row = op.row();
    debug_assert!(row.accepts(arr), "{op:?} of {arr:?}");
    debug_assert_eq!(row.fields.len(), operands.len(), "{op:?}");
    let word = row.form.apply(row.base, arr);
    row.fields
        .iter()
        .zip(operands)
        .fold(word, |word, (field, &value)| word | field.bits(value, arr))
}

impl Assembler {
    /// Bytes written so far.
    pub(crate) fn position(&self) -> u32 {
        self.code.len() as u32
    }

    /// A label without a place yet.
    pub(crate) fn label(&mut self) -> Label {
        self.labels.push(UNBOUND);
        Label(self.labels.len() as u32 - 1)
    }

    /// So many labels, numbered one after the other; gives the first.
    pub(crate) fn reserve(&mut self, n: u32) -> Label {
        let first = self.labels.len() as u32;
        self.labels.resize((first + n) as usize, UNBOUND);
        Label(first)
    }

    /// Puts a label here.
    pub(crate) fn bind(&mut self, label: Label) {
        debug_assert_eq!(self.labels[label.0 as usize], UNBOUND, "label bound twice");
        self.labels[label.0 as usize] = self.position();
    }

    /// An instruction whose operands are all of known width.
    pub(crate) fn op(&mut self, op: Op, operands: &[i64]) {
        self.vector(op, Arr::None, operands);
    }

    /// An instruction on lanes in an arrangement, or on scalars of a type.
    pub(crate) fn vector(&mut self, op: Op, arr: Arr, operands: &[i64]) {
        for (&field, &value) in op.row().fields.iter().zip(operands) {
            if field.is_label() {
                self.fixups.push(Fixup { at: self.position(), label: Label(value as u32), field });
            }
        }
        self.code.extend_from_slice(&encode(op, arr, operands).to_le_bytes());
    }

    /// Any constant in a general register, in at most four instructions; flags stay as they are.
    pub(crate) fn mov_imm(&mut self, dst: u8, value: u64) {
        let dst = i64::from(dst);
        if value != 0 && value != u64::MAX && bitmask(value, 64).is_some() {
            return self.op(Op::OrrXImm, &[dst, ZERO.into(), value as i64]);
        }
        // Whichever leaves fewer 16-bit pieces to write: zeros everywhere else, or ones.
        let pieces = |rest: u16| (0..4).filter(move |i| (value >> (16 * i)) as u16 != rest);
        let inverted = pieces(u16::MAX).count() < pieces(0).count();
        let mut rest = pieces(if inverted { u16::MAX } else { 0 });
        let first = rest.next().unwrap_or(0);
        let piece = |i: u32| i64::from((value >> (16 * i)) as u16);
        match inverted {
            true => self.op(Op::MovnX, &[dst, 0xffff ^ piece(first), i64::from(16 * first)]),
            false => self.op(Op::MovzX, &[dst, piece(first), i64::from(16 * first)]),
        }
        for i in rest {
            self.op(Op::MovkX, &[dst, piece(i), i64::from(16 * i)]);
        }
    }

    /// `dst = src + value`, with `scratch` for numbers of more than 24 bits; either register may be
    /// the stack pointer, `scratch` neither of the two.
    pub(crate) fn add_imm(&mut self, dst: u8, src: u8, value: i64, scratch: u8) {
        let (add, high, below) = match value < 0 {
            true => (Op::SubXImm, Op::SubXImmHigh, Op::SubXUxtx),
            false => (Op::AddXImm, Op::AddXImmHigh, Op::AddXUxtx),
        };
        let (d, s, size) = (i64::from(dst), i64::from(src), value.unsigned_abs());
        if size >> 24 != 0 {
            self.mov_imm(scratch, size);
            return self.op(below, &[d, s, scratch.into(), 0]);
        }
        let (upper, lower) = ((size >> 12) as i64, (size & 0xfff) as i64);
        if upper != 0 {
            self.op(high, &[d, s, upper]);
        }
        if lower != 0 || upper == 0 {
            self.op(add, &[d, if upper != 0 { d } else { s }, lower]);
        }
    }

    /// A constant in memory, for loads relative to the position, aligned to its length rounded up to
    /// a power of two. Equal constants share one place.
    pub(crate) fn constant(&mut self, bytes: &[u8]) -> Label {
        debug_assert!(!bytes.is_empty() && bytes.len() <= 16);
        if let Some(&label) = self.pooled.get(bytes) {
            return label;
        }
        let label = self.label();
        self.pooled.insert(bytes.to_vec(), label);
        self.pool.push((label, bytes.to_vec()));
        label
    }

    /// Pads with no-operations to a multiple of `bytes`, a power of two.
    pub(crate) fn align(&mut self, bytes: u32) {
        while !self.position().is_multiple_of(bytes) {
            self.op(Op::Nop, &[]);
        }
    }

    /// Appends the constant pool, resolves all references and gives the finished bytes, which must
    /// be placed at a multiple of 16.
    ///
    /// # Errors
    /// If a branch, or a load of a constant, does not reach as far as it has to: 128 MiB, 1 MiB for
    /// those with a condition and for constants, 32 KiB for tests of a bit.
    pub(crate) fn finish(mut self) -> Result<Vec<u8>, TooFar> {
        let mut pool = std::mem::take(&mut self.pool);
        // Largest first, so that alignment costs nothing between constants.
        pool.sort_by_key(|(_, bytes)| std::cmp::Reverse(bytes.len().next_power_of_two()));
        for (label, bytes) in &pool {
            // Four at least: distances are counted in instructions.
            let align = bytes.len().next_power_of_two().max(4);
            self.code.resize(self.code.len().next_multiple_of(align), 0);
            self.bind(*label);
            self.code.extend_from_slice(bytes);
        }
        for fixup in std::mem::take(&mut self.fixups) {
            let place = self.labels[fixup.label.0 as usize];
            assert_ne!(place, UNBOUND, "invariant: every used label is bound");
            let distance = i64::from(place) - i64::from(fixup.at);
            let bits = fixup.field.distance(distance).ok_or(TooFar)?;
            let word = &mut self.code[fixup.at as usize..][..4];
            for (byte, more) in word.iter_mut().zip(bits.to_le_bytes()) {
                *byte |= more;
            }
        }
        Ok(self.code)
    }
}
