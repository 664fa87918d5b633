//! Encodes allocated operations for 64-bit Arm: prologue, body, epilogue.
//!
//! Operations have three operands here, so what is left to choose are immediates and addresses that an
//! instruction does not hold, which go through `x16` and `x17`, and the vector instructions that write
//! to an operand (`select`), which go through `v31`. None of the three is ever allocated.

use super::super::EmitError;
use super::super::machine::{
    Addr, Alu, Cond, ConstData, ConstId, Extend, Inst, Label, Operand, Place, Reg, Shift, Size,
    Test,
};
use super::super::regalloc::Allocated;
use super::asm::{self, Arr, Assembler, LINK, Op, SP, ZERO, add_immediate, bitmask};

/// Holds an address within an operation.
pub(super) const ADDRESS: u8 = 16;
/// Holds a constant, or an address besides.
pub(super) const NUMBER: u8 = 17;
/// The vector register of the same kind.
pub(super) const VECTOR: u8 = 31;
/// Bytes of a stack that a function may leave untouched in front of a call. Systems find an overflow of
/// the stack, or make it grow, by the page below those in use, so none may be left out.
const UNTOUCHED: u32 = 1024;
/// Bytes of a frame between two that the prologue touches, the first of which its caller may not have.
const PROBE: u32 = 4096 - UNTOUCHED;

const ZR: i64 = ZERO as i64;

/// Writes one function of type `extern "C" fn(args, lo, hi, scratch)`, which has so many labels, at the
/// current position.
pub(in crate::jit) fn function(
    asm: &mut Assembler,
    allocated: &Allocated,
    constants: &[ConstData],
    labels: u32,
) -> Result<(), EmitError> {
    let calls = allocated.insts.iter().any(|inst| matches!(inst, Inst::Call { .. }));
    let saved = Saved::of(allocated.saved, calls);
    let frame = allocated.frame.next_multiple_of(16);
    let first = asm.reserve(labels).0;
    let mut emitter = Emitter { asm, constants, first };
    emitter.prologue(&saved, frame);
    let mut rest = &allocated.insts[..];
    while let Some((inst, after)) = rest.split_first() {
        rest = match after.first().is_some_and(|next| emitter.pair_of(inst, next)) {
            true => &after[1..],
            false => {
                emitter.inst(inst)?;
                after
            }
        };
    }
    emitter.epilogue(&saved, frame);
    Ok(())
}

/// What a function puts on the stack of its caller's registers, two in each step.
struct Saved {
    general: Vec<u8>,
    vectors: Vec<u8>,
}

impl Saved {
    fn of(saved: [u32; 3], calls: bool) -> Self {
        let numbers = |set: u32| (0..32_u8).filter(move |&number| set & 1 << number != 0);
        let mut general: Vec<u8> = numbers(saved[0]).collect();
        if calls {
            general.extend([29, LINK]);
        }
        Self { general, vectors: numbers(saved[1]).collect() }
    }
}

pub(super) struct Emitter<'a> {
    pub(super) asm: &'a mut Assembler,
    constants: &'a [ConstData],
    /// The assembler's number of the function's first label.
    first: u32,
}

/// The number of a register as an operand.
pub(super) fn n(reg: Reg) -> i64 {
    reg.number().into()
}

/// The row for an operand size.
const fn by(size: Size, word: Op, double: Op) -> Op {
    match size {
        Size::B32 => word,
        Size::B64 => double,
    }
}

const fn bits(size: Size) -> i64 {
    match size {
        Size::B32 => 32,
        Size::B64 => 64,
    }
}

/// An immediate as the register that it stands for would hold it.
const fn widened(size: Size, imm: i32) -> u64 {
    match size {
        Size::B32 => imm as u32 as u64,
        Size::B64 => imm as i64 as u64,
    }
}

const fn condition(cond: Cond) -> asm::Cond {
    match cond {
        Cond::Equal => asm::Cond::Equal,
        Cond::NotEqual => asm::Cond::NotEqual,
        Cond::Below => asm::Cond::Below,
        Cond::AboveEqual => asm::Cond::AtLeast,
        Cond::BelowEqual => asm::Cond::AtMost,
        Cond::Above => asm::Cond::Above,
        Cond::Less => asm::Cond::Less,
        Cond::GreaterEqual => asm::Cond::GreaterEqual,
        Cond::LessEqual => asm::Cond::LessEqual,
        Cond::Greater => asm::Cond::Greater,
    }
}

impl Emitter<'_> {
    fn prologue(&mut self, saved: &Saved, frame: u32) {
        let store = |asm: &mut Assembler, pair: &[u8], one: Op, two: Op| match *pair {
            [a, b] => asm.op(two, &[a.into(), b.into(), SP.into(), -16]),
            [a] => asm.op(one, &[a.into(), SP.into(), -16]),
            _ => {}
        };
        saved.general.chunks(2).for_each(|it| store(self.asm, it, Op::StrXPre, Op::StpXPre));
        saved.vectors.chunks(2).for_each(|it| store(self.asm, it, Op::StrDPre, Op::StpDPre));
        let mut left = frame;
        while left > 0 {
            let step = left.min(PROBE);
            self.asm.add_imm(SP, SP, -i64::from(step), NUMBER);
            if step > UNTOUCHED {
                self.asm.op(Op::StrX, &[ZR, SP.into(), 0]);
            }
            left -= step;
        }
    }

    fn epilogue(&mut self, saved: &Saved, frame: u32) {
        let load = |asm: &mut Assembler, pair: &[u8], one: Op, two: Op| match *pair {
            [a, b] => asm.op(two, &[a.into(), b.into(), SP.into(), 16]),
            [a] => asm.op(one, &[a.into(), SP.into(), 16]),
            _ => {}
        };
        if frame > 0 {
            self.asm.add_imm(SP, SP, frame.into(), NUMBER);
        }
        saved.vectors.chunks(2).rev().for_each(|it| load(self.asm, it, Op::LdrDPost, Op::LdpDPost));
        saved.general.chunks(2).rev().for_each(|it| load(self.asm, it, Op::LdrXPost, Op::LdpXPost));
        self.asm.op(Op::Ret, &[LINK.into()]);
    }

    /// A label of the function as the assembler numbers it.
    fn label(&self, label: Label) -> Label {
        Label(self.first + label.0)
    }

    /// A constant of the pool.
    pub(super) fn constant(&mut self, id: ConstId, bytes: usize) -> Label {
        let bytes = self.constants[id.0 as usize].bytes(bytes);
        self.asm.constant(&bytes)
    }

    pub(super) fn constant_data(&self, id: ConstId) -> &ConstData {
        &self.constants[id.0 as usize]
    }

    /// Whether two loads or stores of full vectors follow each other in memory too: then one
    /// instruction, which this writes, does both.
    fn pair_of(&mut self, first: &Inst, second: &Inst) -> bool {
        let (row, regs, addrs) = match (*first, *second) {
            (
                Inst::VecLoad { dst: a, addr: low, bytes: 16 },
                Inst::VecLoad { dst: b, addr: high, bytes: 16 },
            ) if a != b => (Op::LdpQ, (a, b), (low, high)),
            (
                Inst::VecStore { src: a, addr: low, bytes: 16 },
                Inst::VecStore { src: b, addr: high, bytes: 16 },
            ) => (Op::StpQ, (a, b), (low, high)),
            _ => return false,
        };
        let ((a, b), (low, high)) = (regs, addrs);
        let next = low.disp.checked_add(16) == Some(high.disp);
        let beside = next && low == Addr { disp: low.disp, ..high };
        beside && self.pair(row, (a.number(), b.number()), low)
    }

    fn inst(&mut self, inst: &Inst) -> Result<(), EmitError> {
        match *inst {
            Inst::Undef { .. } | Inst::LoopEnd => {}
            // Stores that go around caches are stores like any other here, in order.
            Inst::Fence => {}
            Inst::Entry { args, lo, hi, scratch } => self.entry([args, lo, hi, scratch]),
            Inst::Label { label } => self.asm.bind(self.label(label)),
            Inst::LoopHead { label } => {
                self.asm.align(16);
                self.asm.bind(self.label(label));
            }
            Inst::Jump { label } => self.asm.op(Op::B, &[self.label(label).operand()]),
            Inst::Branch { test, label } => self.branch(test, label)?,
            Inst::Call { target, buffers, description } => self.call(target, buffers, description),
            Inst::Prefetch { addr } => self.prefetch(addr),
            Inst::Move { dst, src } => self.move_general(n(dst), n(src)),
            Inst::Imm { dst, value } => self.asm.mov_imm(dst.number(), value),
            Inst::Alu { op, size, dst, a, b } => self.alu(op, size, (n(dst), n(a)), b)?,
            Inst::Mul { size, dst, a, b: Operand::Imm(imm) } if imm > 0 && imm & (imm - 1) == 0 => {
                self.shift(Shift::Shl, size, (n(dst), n(a)), imm.trailing_zeros().into());
            }
            Inst::Mul { size, dst, a, b } => {
                let b = self.operand(size, b)?;
                self.asm.op(by(size, Op::MaddW, Op::MaddX), &[n(dst), n(a), b, ZR]);
            }
            Inst::MulHigh { dst, a, b } => self.asm.op(Op::Smulh, &[n(dst), n(a), n(b)]),
            Inst::Lea { dst, addr } => self.address(dst.number(), addr),
            Inst::Shift { op, size, dst, a, by } => self.shift(op, size, (n(dst), n(a)), by.into()),
            Inst::ShiftBy { op, size, dst, a, by: count } => {
                let row = match op {
                    Shift::Shl => by(size, Op::LslvW, Op::LslvX),
                    Shift::Shr => by(size, Op::LsrvW, Op::LsrvX),
                    Shift::Sar => by(size, Op::AsrvW, Op::AsrvX),
                };
                self.asm.op(row, &[n(dst), n(a), n(count)]);
            }
            Inst::Neg { size, dst, a } => {
                self.asm.op(by(size, Op::SubW, Op::SubX), &[n(dst), ZR, n(a), 0]);
            }
            Inst::Not { size, dst, a } => {
                self.asm.op(by(size, Op::OrnW, Op::OrnX), &[n(dst), ZR, n(a), 0]);
            }
            Inst::Popcnt { dst, a } => self.popcnt(n(dst), n(a)),
            Inst::Div { size, signed, rem, dst, a, b } => {
                self.div(size, signed, rem, [n(dst), n(a), n(b)]);
            }
            Inst::Extend { kind, dst, src: Place::Reg(src) } => self.extend(kind, n(dst), n(src)),
            Inst::Extend { kind, dst, src: Place::Mem(addr) } => self.load_general(kind, dst, addr),
            Inst::Store { width, addr, src } => self.store_general(width, src, addr),
            Inst::SetCc { dst, test } => {
                let cond = self.compare(test)?.not();
                self.asm.op(Op::CsincW, &[n(dst), ZR, ZR, cond as i64]);
            }
            Inst::Select { size, dst, test, x, y } => {
                let cond = self.compare(test)?;
                let row = by(size, Op::CselW, Op::CselX);
                self.asm.op(row, &[n(dst), n(x), n(y), cond as i64]);
            }
            _ => return self.vector(inst),
        }
        Ok(())
    }

    /// Moves the arguments, which arrive in `x0` to `x3`, to their registers, if they have any.
    fn entry(&mut self, homes: [Reg; 4]) {
        // Moves that are left: to, from.
        let mut moves: Vec<(i64, i64)> = (0..)
            .zip(homes)
            .filter(|(_, home)| home.is_some())
            .map(|(from, home)| (n(home), from))
            .filter(|(to, from)| to != from)
            .collect();
        while !moves.is_empty() {
            let safe = moves.iter().position(|&(to, _)| moves.iter().all(|&(_, from)| from != to));
            match safe {
                Some(i) => {
                    let (to, from) = moves.swap_remove(i);
                    self.move_general(to, from);
                }
                // Only cycles are left: one of a cycle's sources moves out of the way.
                None => {
                    let from = moves[0].1;
                    self.move_general(NUMBER.into(), from);
                    moves[0].1 = NUMBER.into();
                }
            }
        }
    }

    fn move_general(&mut self, to: i64, from: i64) {
        if to != from {
            self.asm.op(Op::OrrX, &[to, ZR, from, 0]);
        }
    }

    /// The second operand of arithmetic in a register.
    fn operand(&mut self, size: Size, operand: Operand) -> Result<i64, EmitError> {
        match operand {
            Operand::Reg(reg) => Ok(n(reg)),
            Operand::Imm(imm) => {
                self.asm.mov_imm(NUMBER, widened(size, imm));
                Ok(NUMBER.into())
            }
            Operand::Mem(_) => Err(EmitError::new("arithmetic with memory")),
        }
    }

    fn alu(
        &mut self,
        op: Alu,
        size: Size,
        (d, a): (i64, i64),
        b: Operand,
    ) -> Result<(), EmitError> {
        if let Operand::Imm(imm) = b
            && self.alu_immediate(op, size, (d, a), imm)
        {
            return Ok(());
        }
        let b = self.operand(size, b)?;
        let row = match op {
            Alu::Add => by(size, Op::AddW, Op::AddX),
            Alu::Sub => by(size, Op::SubW, Op::SubX),
            Alu::And => by(size, Op::AndW, Op::AndX),
            Alu::Or => by(size, Op::OrrW, Op::OrrX),
            Alu::Xor => by(size, Op::EorW, Op::EorX),
        };
        self.asm.op(row, &[d, a, b, 0]);
        Ok(())
    }

    /// Whether an instruction holds the immediate, which then is written.
    fn alu_immediate(&mut self, op: Alu, size: Size, (d, a): (i64, i64), imm: i32) -> bool {
        if let Alu::Add | Alu::Sub = op {
            let Some((value, high)) = add_immediate(imm.unsigned_abs().into()) else {
                return false;
            };
            let row = match ((op == Alu::Add) == (imm >= 0), high) {
                (true, false) => by(size, Op::AddWImm, Op::AddXImm),
                (true, true) => by(size, Op::AddWImmHigh, Op::AddXImmHigh),
                (false, false) => by(size, Op::SubWImm, Op::SubXImm),
                (false, true) => by(size, Op::SubWImmHigh, Op::SubXImmHigh),
            };
            self.asm.op(row, &[d, a, value.into()]);
            return true;
        }
        let mask = widened(size, imm);
        if bitmask(mask, bits(size) as u32).is_none() {
            return false;
        }
        let row = match op {
            Alu::And => by(size, Op::AndWImm, Op::AndXImm),
            Alu::Or => by(size, Op::OrrWImm, Op::OrrXImm),
            _ => by(size, Op::EorWImm, Op::EorXImm),
        };
        self.asm.op(row, &[d, a, mask as i64]);
        true
    }

    fn shift(&mut self, op: Shift, size: Size, (d, a): (i64, i64), count: i64) {
        let width = bits(size);
        let count = count % width;
        let back = (width - count) % width;
        let last = width - 1;
        let (unsigned, signed) = (by(size, Op::UbfmW, Op::UbfmX), by(size, Op::SbfmW, Op::SbfmX));
        match op {
            Shift::Shl => self.asm.op(unsigned, &[d, a, back, last - count]),
            Shift::Shr => self.asm.op(unsigned, &[d, a, count, last]),
            Shift::Sar => self.asm.op(signed, &[d, a, count, last]),
        }
    }

    fn popcnt(&mut self, d: i64, a: i64) {
        let v = i64::from(VECTOR);
        self.asm.op(Op::FmovFromX, &[v, a]);
        self.asm.vector(Op::CntV, Arr::B8, &[v, v]);
        self.asm.vector(Op::Addv, Arr::B8, &[v, v]);
        self.asm.op(Op::FmovToW, &[d, v]);
    }

    /// The processor gives `x / 0 = 0` and `MIN / -1 = MIN`; with these the remainder, which is `x` less
    /// the product, is `x` and 0: all as the IR has it.
    fn div(&mut self, size: Size, signed: bool, rem: bool, [d, a, b]: [i64; 3]) {
        let row = match signed {
            true => by(size, Op::SdivW, Op::SdivX),
            false => by(size, Op::UdivW, Op::UdivX),
        };
        if !rem {
            return self.asm.op(row, &[d, a, b]);
        }
        let quotient = i64::from(NUMBER);
        self.asm.op(row, &[quotient, a, b]);
        self.asm.op(by(size, Op::MsubW, Op::MsubX), &[d, quotient, b, a]);
    }

    fn extend(&mut self, kind: Extend, d: i64, s: i64) {
        match kind {
            Extend::Zero8 => self.asm.op(Op::UbfmW, &[d, s, 0, 7]),
            Extend::Zero16 => self.asm.op(Op::UbfmW, &[d, s, 0, 15]),
            Extend::Zero32 => self.asm.op(Op::OrrW, &[d, ZR, s, 0]),
            Extend::Sign8 => self.asm.op(Op::SbfmW, &[d, s, 0, 7]),
            Extend::Sign16 => self.asm.op(Op::SbfmW, &[d, s, 0, 15]),
            Extend::Sign32 => self.asm.op(Op::SbfmX, &[d, s, 0, 31]),
            Extend::None64 => self.move_general(d, s),
        }
    }

    /// Sets the flags; gives the condition to look for.
    fn compare(&mut self, test: Test) -> Result<asm::Cond, EmitError> {
        let (size, a) = (test.size, n(test.a));
        let immediate = match test.b {
            Operand::Imm(imm) => add_immediate(imm.unsigned_abs().into()).map(|it| (imm, it)),
            _ => None,
        };
        match immediate {
            Some((imm, (value, high))) => {
                let row = match (imm >= 0, high) {
                    (true, false) => by(size, Op::SubsWImm, Op::SubsXImm),
                    (true, true) => by(size, Op::SubsWImmHigh, Op::SubsXImmHigh),
                    (false, false) => by(size, Op::AddsWImm, Op::AddsXImm),
                    (false, true) => by(size, Op::AddsWImmHigh, Op::AddsXImmHigh),
                };
                self.asm.op(row, &[ZR, a, value.into()]);
            }
            None => {
                let b = self.operand(size, test.b)?;
                self.asm.op(by(size, Op::SubsW, Op::SubsX), &[ZR, a, b, 0]);
            }
        }
        Ok(condition(test.cond))
    }

    fn branch(&mut self, test: Test, label: Label) -> Result<(), EmitError> {
        match (test.b, test.cond) {
            (Operand::Imm(0), Cond::Equal) => {
                let row = by(test.size, Op::CbzW, Op::CbzX);
                self.asm.op(row, &[n(test.a), self.label(label).operand()]);
            }
            (Operand::Imm(0), Cond::NotEqual) => {
                let row = by(test.size, Op::CbnzW, Op::CbnzX);
                self.asm.op(row, &[n(test.a), self.label(label).operand()]);
            }
            _ => {
                let cond = self.compare(test)?;
                self.asm.op(Op::BCond, &[cond as i64, self.label(label).operand()]);
            }
        }
        Ok(())
    }

    fn call(&mut self, target: usize, buffers: [i32; 4], description: u64) {
        // Nothing lives in registers that a call may change.
        for (reg, place) in (0..).zip(buffers) {
            self.asm.add_imm(reg, SP, place.into(), NUMBER);
        }
        self.asm.mov_imm(4, description);
        self.asm.mov_imm(ADDRESS, target as u64);
        self.asm.op(Op::Blr, &[ADDRESS.into()]);
    }
}
