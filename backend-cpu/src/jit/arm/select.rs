//! NEON instructions for the vector operations of the common list.
//!
//! A vector of eight bytes or less takes the short arrangements, whose other lanes become zero; one lane
//! of 64 bits takes the arrangement of two, since there is none of one. A float alone takes the scalar
//! instructions. Some operations write to an operand (`bsl`, `fmla`); which form needs no copy depends on
//! the registers, and where all do, the copy goes through `v31`.

use super::super::EmitError;
use super::super::machine::{Compare, ConstId, Elem, Inst, Place, Shape, Size, Vop};
use super::asm::{Arr, Op, byte_mask, float8};
use super::emit::{Emitter, VECTOR, n};

const SCRATCH: i64 = VECTOR as i64;

type Result<T> = std::result::Result<T, EmitError>;

fn none<T>(what: &str) -> Result<T> {
    Err(EmitError::new(what))
}

/// The arrangement of a shape.
fn arrangement(shape: Shape) -> Arr {
    match (shape.elem.size(), shape.bytes() <= 8) {
        (1, true) => Arr::B8,
        (1, false) => Arr::B16,
        (2, true) => Arr::H4,
        (2, false) => Arr::H8,
        (4, true) => Arr::S2,
        (4, false) => Arr::S4,
        _ => Arr::D2,
    }
}

/// The first eight bytes in elements of half the width of the shape's: how instructions that widen to
/// it, or narrow from it, are named.
fn narrower(elem: Elem) -> Result<Arr> {
    match elem.size() {
        2 => Ok(Arr::B8),
        4 => Ok(Arr::H4),
        8 => Ok(Arr::S2),
        _ => none("halves of bytes"),
    }
}

/// The type of one element.
const fn single(elem: Elem) -> Arr {
    match elem.size() {
        1 => Arr::B,
        2 => Arr::H,
        4 => Arr::S,
        _ => Arr::D,
    }
}

/// A row for vectors and one for a float alone.
type Rows = (Op, Op);

/// The instruction of two operands, if floats have one.
fn float_rows(op: Vop) -> Option<Rows> {
    Some(match op {
        Vop::Add => (Op::FaddV, Op::FaddS),
        Vop::Sub => (Op::FsubV, Op::FsubS),
        Vop::Mul => (Op::FmulV, Op::FmulS),
        Vop::Div => (Op::FdivV, Op::FdivS),
        Vop::MaxNan => (Op::FmaxV, Op::FmaxS),
        Vop::MinNan => (Op::FminV, Op::FminS),
        Vop::Neg => (Op::FnegV, Op::FnegS),
        Vop::Abs => (Op::FabsV, Op::FabsS),
        Vop::Sqrt => (Op::FsqrtV, Op::FsqrtS),
        Vop::Round => (Op::FrintnV, Op::FrintnS),
        Vop::Floor => (Op::FrintmV, Op::FrintmS),
        Vop::Ceil => (Op::FrintpV, Op::FrintpS),
        Vop::Trunc => (Op::FrintzV, Op::FrintzS),
        _ => return None,
    })
}

/// The instruction for integers, and whether it is there for lanes of 64 bits.
fn int_row(op: Vop) -> Option<(Op, bool)> {
    Some(match op {
        Vop::Add => (Op::AddV, true),
        Vop::Sub => (Op::SubV, true),
        Vop::Mul => (Op::MulV, false),
        Vop::MaxS => (Op::SmaxV, false),
        Vop::MaxU => (Op::UmaxV, false),
        Vop::MinS => (Op::SminV, false),
        Vop::MinU => (Op::UminV, false),
        Vop::Neg => (Op::NegV, true),
        Vop::Abs => (Op::AbsV, true),
        _ => return None,
    })
}

/// A comparison and whether its operands change places, for integers and for floats.
const fn comparison(how: Compare) -> (Op, Option<Op>, bool) {
    match how {
        Compare::Equal | Compare::NotEqual => (Op::CmeqV, Some(Op::FcmeqV), false),
        Compare::Less => (Op::CmgtV, Some(Op::FcmgtV), true),
        Compare::LessEqual => (Op::CmgeV, Some(Op::FcmgeV), true),
        Compare::Below => (Op::CmhiV, None, true),
        Compare::BelowEqual => (Op::CmhsV, None, true),
    }
}

impl Emitter<'_> {
    /// An operation on vector registers.
    pub(super) fn vector(&mut self, inst: &Inst) -> Result<()> {
        match *inst {
            Inst::Vector { op, shape, dst, a, b: Place::Reg(b) } if a.is_some() => {
                self.binary(op, shape, [n(dst), n(a), n(b)])
            }
            Inst::Vector { op, shape, dst, b: Place::Reg(b), .. } => {
                self.unary(op, shape, n(dst), n(b))
            }
            Inst::VecLoad { dst, addr, bytes } => self.load_vector(dst.number(), addr, bytes),
            Inst::VecStore { addr, src, bytes } => self.store_vector(src.number(), addr, bytes),
            Inst::SelectVec { dst, mask, a, b: Place::Reg(b), .. } => {
                self.choose(n(dst), n(mask), n(b), n(a));
                Ok(())
            }
            Inst::Fma { shape, dst, a, b: Place::Reg(b), c: Place::Reg(c) } => {
                self.multiply_add(shape, n(dst), [n(a), n(b), n(c)]);
                Ok(())
            }
            Inst::MoveVec { dst, src } => {
                self.move_vector(n(dst), n(src));
                Ok(())
            }
            Inst::Const { dst, id } => {
                self.load_constant(n(dst), id);
                Ok(())
            }
            _ => none("an operation of other machines"),
        }
    }

    fn move_vector(&mut self, d: i64, s: i64) {
        if d != s {
            self.asm.vector(Op::OrrV, Arr::B16, &[d, s, s]);
        }
    }

    /// One of the instructions on floats, on as many as there are.
    fn floats(&mut self, (vector, scalar): Rows, shape: Shape, operands: &[i64]) {
        match shape.lanes {
            1 => self.asm.vector(scalar, single(shape.elem), operands),
            _ => self.asm.vector(vector, arrangement(shape), operands),
        }
    }

    /// One of the instructions on integers of any width, or of up to 32 bits.
    fn ints(&mut self, (row, of_64): (Op, bool), shape: Shape, operands: &[i64]) -> Result<()> {
        let arr = arrangement(shape);
        if arr == Arr::D2 && !of_64 {
            return none("an operation on lanes of 64 bits");
        }
        self.asm.vector(row, arr, operands);
        Ok(())
    }

    // ---- two operands ------------------------------------------------------------------------

    fn binary(&mut self, op: Vop, shape: Shape, operands: [i64; 3]) -> Result<()> {
        let [d, a, b] = operands;
        if shape.elem.is_float()
            && let Some(rows) = float_rows(op)
        {
            self.floats(rows, shape, &operands);
            return Ok(());
        }
        if !shape.elem.is_float()
            && let Some(row) = int_row(op)
        {
            return self.ints(row, shape, &operands);
        }
        let arr = arrangement(shape);
        if shape.bytes() < 8 && matches!(op, Vop::ZipHigh | Vop::EvenLanes) {
            return none("lanes in the middle of a register");
        }
        match op {
            Vop::And => self.asm.vector(Op::AndV, Arr::B16, &operands),
            Vop::Or => self.asm.vector(Op::OrrV, Arr::B16, &operands),
            Vop::Xor => self.asm.vector(Op::EorV, Arr::B16, &operands),
            // The instruction complements its second operand.
            Vop::AndNot => self.asm.vector(Op::BicV, Arr::B16, &[d, b, a]),
            Vop::ZipLow => self.asm.vector(Op::Zip1V, arr, &operands),
            Vop::ZipHigh => self.asm.vector(Op::Zip2V, arr, &operands),
            Vop::EvenLanes => self.asm.vector(Op::Uzp1V, arr, &operands),
            Vop::MulWide => self.asm.vector(Op::Umull, narrower(shape.elem)?, &operands),
            Vop::Shl | Vop::ShrS | Vop::ShrU => self.shift_by_lane(op, shape, operands),
            Vop::Compare(how) => {
                let (of_ints, of_floats, exchanged) = comparison(how);
                let row = if shape.elem.is_float() { of_floats } else { Some(of_ints) };
                let Some(row) = row else { return none("floats without a sign") };
                let (a, b) = if exchanged { (b, a) } else { (a, b) };
                self.asm.vector(row, arr, &[d, a, b]);
                if how == Compare::NotEqual {
                    self.asm.vector(Op::NotV, Arr::B16, &[d, d]);
                }
            }
            _ => return none("a vector operation of two operands"),
        }
        Ok(())
    }

    /// By lane, of which the lowest byte counts, with a sign: to the right is negative.
    fn shift_by_lane(&mut self, op: Vop, shape: Shape, [d, a, b]: [i64; 3]) {
        let arr = arrangement(shape);
        let row = if op == Vop::ShrS { Op::SshlV } else { Op::UshlV };
        if op == Vop::Shl {
            return self.asm.vector(row, arr, &[d, a, b]);
        }
        self.asm.vector(Op::NegV, arr, &[SCRATCH, b]);
        self.asm.vector(row, arr, &[d, a, SCRATCH]);
    }

    // ---- one operand -------------------------------------------------------------------------

    fn unary(&mut self, op: Vop, shape: Shape, d: i64, a: i64) -> Result<()> {
        let elem = shape.elem;
        if elem.is_float()
            && let Some(rows) = float_rows(op)
        {
            self.floats(rows, shape, &[d, a]);
            return Ok(());
        }
        if !elem.is_float()
            && let Some(row) = int_row(op)
        {
            return self.ints(row, shape, &[d, a]);
        }
        let arr = arrangement(shape);
        match op {
            Vop::Not => self.asm.vector(Op::NotV, Arr::B16, &[d, a]),
            Vop::ShlBy(by) => self.asm.vector(Op::ShlV, arr, &[d, a, by.into()]),
            Vop::ShrUBy(by) => self.asm.vector(Op::UshrV, arr, &[d, a, by.into()]),
            Vop::ShrSBy(by) => self.asm.vector(Op::SshrV, arr, &[d, a, by.into()]),
            Vop::WidenS => self.asm.vector(Op::Sshll, narrower(elem)?, &[d, a, 0]),
            Vop::WidenU => self.asm.vector(Op::Ushll, narrower(elem)?, &[d, a, 0]),
            Vop::PairSumU => {
                // Named by the operand: as many bytes, twice as many lanes.
                let lanes = Shape { elem: Elem::int(elem.size() / 2), lanes: 2 * shape.lanes };
                if elem.size() == 1 {
                    return none("sums of halves of bytes");
                }
                self.asm.vector(Op::Uaddlp, arrangement(lanes), &[d, a]);
            }
            Vop::Narrow => self.narrow(Op::Xtn, shape, &[d, a])?,
            Vop::NarrowSatS => self.narrow(Op::Sqxtn, shape, &[d, a])?,
            Vop::NarrowSatU => self.narrow(Op::Uqxtn, shape, &[d, a])?,
            Vop::NarrowBy(by) => self.narrow(Op::Shrn, shape, &[d, a, by.into()])?,
            Vop::SwapHalves => match elem.size() {
                2 => self.asm.vector(Op::Rev16V, Arr::B16, &[d, a]),
                4 => self.asm.vector(Op::Rev32V, Arr::H8, &[d, a]),
                8 => self.asm.vector(Op::Rev64V, Arr::S4, &[d, a]),
                _ => return none("halves of bytes"),
            },
            Vop::FloatFromS => self.asm.vector(Op::ScvtfV, arr, &[d, a]),
            Vop::FloatFromU => self.asm.vector(Op::UcvtfV, arr, &[d, a]),
            Vop::FloatFromGprS(Size::B32) => self.asm.vector(Op::ScvtfW, single(elem), &[d, a]),
            Vop::FloatFromGprS(Size::B64) => self.asm.vector(Op::ScvtfX, single(elem), &[d, a]),
            Vop::FloatFromGprU => self.asm.vector(Op::UcvtfX, single(elem), &[d, a]),
            Vop::IntSFromFloat => self.asm.vector(Op::FcvtzsV, arr, &[d, a]),
            Vop::IntUFromFloat => self.asm.vector(Op::FcvtzuV, arr, &[d, a]),
            // Named by the narrower of the two.
            Vop::DoubleFromSingle => self.asm.vector(Op::Fcvtl, Arr::S2, &[d, a]),
            Vop::SingleFromDouble => self.asm.vector(Op::Fcvtn, Arr::S2, &[d, a]),
            Vop::SingleFromHalf => self.asm.vector(Op::Fcvtl, Arr::H4, &[d, a]),
            Vop::HalfFromSingle => self.asm.vector(Op::Fcvtn, Arr::H4, &[d, a]),
            Vop::Broadcast => self.asm.vector(Op::DupElement, arr, &[d, a, 0]),
            Vop::BroadcastGpr if arr == Arr::D2 => self.asm.vector(Op::DupX, arr, &[d, a]),
            Vop::BroadcastGpr => self.asm.vector(Op::DupW, arr, &[d, a]),
            Vop::FromGpr if elem.size() == 8 => self.asm.op(Op::FmovFromX, &[d, a]),
            Vop::FromGpr => self.asm.op(Op::FmovFromW, &[d, a]),
            Vop::ToGpr if elem.size() == 8 => self.asm.op(Op::FmovToX, &[d, a]),
            Vop::ToGpr => self.asm.op(Op::FmovToW, &[d, a]),
            Vop::BytesFrom(at) if at < 16 => self.asm.op(Op::Ext16, &[d, a, a, at.into()]),
            _ => return none("a vector operation of one operand"),
        }
        Ok(())
    }

    /// Lanes of the shape from lanes twice as wide, which fill one register at most.
    fn narrow(&mut self, row: Op, shape: Shape, operands: &[i64]) -> Result<()> {
        let arr = arrangement(shape);
        if !matches!(arr, Arr::B8 | Arr::H4 | Arr::S2) {
            return none("a vector wider than a register");
        }
        self.asm.vector(row, arr, operands);
        Ok(())
    }

    // ---- selections, multiply-adds -----------------------------------------------------------

    /// `d = mask ? x : y`, bit by bit.
    fn choose(&mut self, d: i64, mask: i64, x: i64, y: i64) {
        let all = Arr::B16;
        if d == mask {
            self.asm.vector(Op::BslV, all, &[d, x, y]);
        } else if d == y {
            self.asm.vector(Op::BitV, all, &[d, x, mask]);
        } else if d == x {
            self.asm.vector(Op::BifV, all, &[d, y, mask]);
        } else {
            self.move_vector(d, mask);
            self.asm.vector(Op::BslV, all, &[d, x, y]);
        }
    }

    /// `d = a * b + c`, rounded once.
    fn multiply_add(&mut self, shape: Shape, d: i64, [a, b, c]: [i64; 3]) {
        if shape.lanes == 1 {
            return self.asm.vector(Op::Fmadd, single(shape.elem), &[d, a, b, c]);
        }
        let arr = arrangement(shape);
        if d == c {
            self.asm.vector(Op::FmlaV, arr, &[d, a, b]);
        } else if d != a && d != b {
            self.move_vector(d, c);
            self.asm.vector(Op::FmlaV, arr, &[d, a, b]);
        } else {
            self.move_vector(SCRATCH, c);
            self.asm.vector(Op::FmlaV, arr, &[SCRATCH, a, b]);
            self.move_vector(d, SCRATCH);
        }
    }

    // ---- constants ---------------------------------------------------------------------------

    /// A constant in all 16 bytes: by an immediate if one holds it, else from the pool.
    fn load_constant(&mut self, d: i64, id: ConstId) {
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
