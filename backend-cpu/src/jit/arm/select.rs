//! NEON instructions for the vector operations of the common list.
//!
//! A vector of eight bytes or less takes the short arrangements, whose other lanes become zero; one lane
//! of 64 bits takes the arrangement of two, since there is none of one. A float alone takes the scalar
//! instructions. Some operations write to an operand (`bsl`, `fmla`); which form needs no copy depends on
//! the registers, and where all do, the copy goes through `v31`.

use super::super::EmitError;
use super::super::machine::{
    Addr, Base, Compare, ConstData, ConstId, Elem, Inst, Place, Reg, Shape, Vop,
};
use super::asm::{Arr, Op, byte_mask, float8};
use super::emit::{ADDRESS, Emitter, VECTOR, n};

const SCRATCH: i64 = VECTOR as i64;

type Result<T> = std::result::Result<T, EmitError>;

fn none<T>(what: &str) -> Result<T> {
    Err(EmitError::new(what))
}

const fn log2_bytes(elem: Elem) -> u32 {
    match elem {
        Elem::I8 => 0,
        Elem::I16 => 1,
        Elem::I32 | Elem::F32 => 2,
        Elem::I64 | Elem::F64 => 3,
    }
}

const fn bits(elem: Elem) -> i64 {
    8 << log2_bytes(elem)
}

const fn is_float(elem: Elem) -> bool {
    matches!(elem, Elem::F32 | Elem::F64)
}

/// The arrangement of `lanes` elements.
fn arrangement(elem: Elem, lanes: u8) -> Arr {
    let short = (u32::from(lanes) << log2_bytes(elem)) <= 8;
    match (log2_bytes(elem), short) {
        (0, true) => Arr::B8,
        (0, false) => Arr::B16,
        (1, true) => Arr::H4,
        (1, false) => Arr::H8,
        (2, true) => Arr::S2,
        (2, false) => Arr::S4,
        _ => Arr::D2,
    }
}

fn arr(shape: Shape) -> Arr {
    arrangement(shape.elem, shape.lanes)
}

/// The type of one element.
const fn single(elem: Elem) -> Arr {
    match log2_bytes(elem) {
        0 => Arr::B,
        1 => Arr::H,
        2 => Arr::S,
        _ => Arr::D,
    }
}

/// The arrangement of the same lanes at half the width, which names instructions that widen or narrow.
const fn narrower(arr: Arr) -> Option<Arr> {
    match arr {
        Arr::H4 | Arr::H8 => Some(Arr::B8),
        Arr::S2 | Arr::S4 => Some(Arr::H4),
        Arr::D2 => Some(Arr::S2),
        _ => None,
    }
}

impl Emitter<'_> {
    /// An operation on vector registers.
    pub(super) fn vector(&mut self, inst: &Inst) -> Result<()> {
        match *inst {
            Inst::Vop { op, shape, dst, a, b } => {
                let a = self.register(a)?;
                match b {
                    Some(b) => {
                        let b = self.register(b)?;
                        self.binary(op, shape, [n(dst), a, b])
                    }
                    None => self.unary(op, shape, n(dst), a),
                }
            }
            _ => none("an operation of other machines"),
        }
    }

    fn three(&mut self, row: Op, arr: Arr, [d, a, b]: [i64; 3]) {
        self.asm.vector(row, arr, &[d, a, b]);
    }

    fn two(&mut self, row: Op, arr: Arr, d: i64, a: i64) {
        self.asm.vector(row, arr, &[d, a]);
    }

    pub(super) fn move_vector(&mut self, d: i64, s: i64) {
        if d != s {
            self.three(Op::OrrV, Arr::B16, [d, s, s]);
        }
    }

    // ---- two operands ------------------------------------------------------------------------

    /// By lane, where a count of the width or more gives zero, or the sign. The instructions take the
    /// lowest byte of a count, with a sign, so counts are limited to 127 first; to the right is negative.
    fn shift_by_lane(&mut self, op: Vop, shape: Shape, [d, a, b]: [i64; 3]) {
        let arr = arr(shape);
        let above = bits(shape.elem) - 7;
        self.asm.vector(Op::UqshlV, arr, &[SCRATCH, b, above]);
        self.asm.vector(Op::UshrV, arr, &[SCRATCH, SCRATCH, above]);
        if op != Vop::Shl {
            self.two(Op::NegV, arr, SCRATCH, SCRATCH);
        }
        let row = if op == Vop::ShrS { Op::SshlV } else { Op::UshlV };
        self.three(row, arr, [d, a, SCRATCH]);
    }

    // ---- selections, multiply-adds -----------------------------------------------------------

    /// `d = mask ? x : y`, bit by bit.
    pub(super) fn choose(&mut self, d: i64, mask: i64, x: i64, y: i64) {
        let all = Arr::B16;
        if d == mask {
            self.three(Op::BslV, all, [d, x, y]);
        } else if d == y {
            self.three(Op::BitV, all, [d, x, mask]);
        } else if d == x {
            self.three(Op::BifV, all, [d, y, mask]);
        } else {
            self.move_vector(d, mask);
            self.three(Op::BslV, all, [d, x, y]);
        }
    }

    /// `d = a * b + c`, rounded once.
    pub(super) fn multiply_add(&mut self, shape: Shape, d: i64, [a, b, c]: [i64; 3]) {
        if shape.lanes == 1 {
            return self.asm.vector(Op::Fmadd, single(shape.elem), &[d, a, b, c]);
        }
        let arr = arr(shape);
        if d == c {
            self.three(Op::FmlaV, arr, [d, a, b]);
        } else if d != a && d != b {
            self.move_vector(d, c);
            self.three(Op::FmlaV, arr, [d, a, b]);
        } else {
            self.move_vector(SCRATCH, c);
            self.three(Op::FmlaV, arr, [SCRATCH, a, b]);
            self.move_vector(d, SCRATCH);
        }
    }

    // ---- constants ---------------------------------------------------------------------------

    /// A constant in all 16 bytes: by an immediate if one holds it, else from the pool.
    pub(super) fn load_constant(&mut self, d: i64, id: ConstId) {
        let bytes = self.constant_data(id).bytes(16);
        let mut low = [0; 8];
        low.copy_from_slice(&bytes[..8]);
        let word = u64::from_le_bytes(low);
        if bytes[..8] == bytes[8..] && self.immediate(d, word) {
            return;
        }
        let label = self.constant(id, 16);
        self.asm.op(Op::LdrQLiteral, &[d, label.operand()]);
    }

    /// Eight bytes twice over in one instruction, if there is one for them.
    fn immediate(&mut self, d: i64, word: u64) -> bool {
        let (single, half, byte) = (word as u32, word as u16, word as u8);
        let repeats = |by: u32| word.rotate_left(by) == word;
        if byte_mask(word).is_some() {
            self.asm.op(Op::MoviD, &[d, word as i64]);
        } else if repeats(8) {
            self.asm.vector(Op::MoviB, Arr::B16, &[d, byte.into()]);
        } else if repeats(16) && half & 0xff == 0 {
            self.asm.vector(Op::MoviH, Arr::H8, &[d, (half >> 8).into(), 8]);
        } else if repeats(16) && half >> 8 == 0 {
            self.asm.vector(Op::MoviH, Arr::H8, &[d, half.into(), 0]);
        } else if repeats(16) && !half >> 8 == 0 {
            self.asm.vector(Op::MvniH, Arr::H8, &[d, (!half).into(), 0]);
        } else if repeats(16) && !half & 0xff == 0 {
            self.asm.vector(Op::MvniH, Arr::H8, &[d, (!half >> 8).into(), 8]);
        } else if repeats(32) {
            return self.immediate_of_four(d, single);
        } else if let Some(imm) = float8(f64::from_bits(word)) {
            self.asm.op(Op::FmovV2dImm, &[d, imm.into()]);
        } else {
            return false;
        }
        true
    }

    fn immediate_of_four(&mut self, d: i64, word: u32) -> bool {
        if let Some(imm) = float8(f32::from_bits(word).into()) {
            self.asm.vector(Op::FmovVImm, Arr::S4, &[d, imm.into()]);
            return true;
        }
        for (row, word) in [(Op::MoviS, word), (Op::MvniS, !word)] {
            let shift = (0..4).map(|i| 8 * i).find(|&shift| word & !(0xff << shift) == 0);
            if let Some(shift) = shift {
                let imm = i64::from(word >> shift);
                self.asm.vector(row, Arr::S4, &[d, imm, shift.into()]);
                return true;
            }
        }
        false
    }
}
