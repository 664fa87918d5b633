//! Encodes allocated operations: prologue, body, epilogue.
//!
//! Here the form of an operation is chosen by the registers it got: which of the three
//! multiply-adds works in place, whether an addition is `add` or `lea`, whether a move is needed
//! at all. `rax`, `rcx` and `rdx` are free for such sequences (`regalloc`).

use super::asm::{
    self, Assembler, Deco, Gpr, Index, Label, Len, MaskReg, Mem, Rm, Size, VOp, VecReg,
};
use super::{fma, len_of};
use crate::jit::machine::{
    Addr, Alu, Base, Cond, ConstData, ConstId, Effect, Extend, Inst, Operand, Place, Reg, Shape,
    Shift, Test, VecInst,
};
use crate::jit::regalloc::Allocated;
use crate::jit::target::Isa;

const ACC: Gpr = Gpr::RAX;
const DATA: Gpr = Gpr::RDX;

/// Bytes of a frame between two that the prologue touches. Windows grows a stack by the one page below
/// those in use, and other systems find an overflow by such a page, so none may be left out. The
/// alignment of the frame and the return address of a call come on top: together less than a page.
const PROBE: u32 = 4096 - 2 * 64;

/// Writes one function of type `sysv64 fn(args, lo, hi, scratch)` at the current position.
/// `labels` is how many labels it has.
pub(in crate::jit) fn function(
    asm: &mut Assembler,
    allocated: &Allocated,
    constants: &[ConstData],
    labels: u32,
    isa: Isa,
) {
    let has_frame = allocated.frame > 0 || allocated.insts.iter().any(is_call);
    // The slot after the frame keeps the caller's stack pointer.
    let frame = if has_frame { (allocated.frame + 8).next_multiple_of(64) } else { 0 };
    let first = asm.reserve(labels).0;
    let mut emitter = Emitter { asm, constants, first, isa };
    emitter.prologue(allocated.saved[0], frame);
    for inst in &allocated.insts {
        emitter.inst(inst);
    }
    emitter.epilogue(allocated.saved[0], frame);
}

fn is_call(inst: &Inst) -> bool {
    matches!(inst, Inst::Call { .. })
}

struct Emitter<'a> {
    asm: &'a mut Assembler,
    constants: &'a [ConstData],
    /// The assembler's number of the function's first label.
    first: u32,
    isa: Isa,
}

fn gpr(reg: Reg) -> Gpr {
    Gpr(reg.number())
}

fn vec(reg: Reg) -> VecReg {
    VecReg(reg.number())
}

/// The assembler's name of a condition.
fn flags(cond: Cond) -> asm::Cond {
    match cond {
        Cond::Equal => asm::Cond::Equal,
        Cond::NotEqual => asm::Cond::NotEqual,
        Cond::Less => asm::Cond::Less,
        Cond::GreaterEqual => asm::Cond::GreaterEqual,
        Cond::LessEqual => asm::Cond::LessEqual,
        Cond::Greater => asm::Cond::Greater,
        Cond::Below => asm::Cond::Below,
        Cond::AboveEqual => asm::Cond::AboveEqual,
        Cond::BelowEqual => asm::Cond::BelowEqual,
        Cond::Above => asm::Cond::Above,
    }
}

fn arithmetic(op: Alu) -> asm::Alu {
    match op {
        Alu::Add => asm::Alu::Add,
        Alu::Sub => asm::Alu::Sub,
        Alu::And => asm::Alu::And,
        Alu::Or => asm::Alu::Or,
        Alu::Xor => asm::Alu::Xor,
    }
}

fn shift(op: Shift) -> asm::Shift {
    match op {
        Shift::Shl => asm::Shift::Shl,
        Shift::Shr => asm::Shift::Shr,
        Shift::Sar => asm::Shift::Sar,
    }
}

fn saved_registers(saved: u32) -> impl DoubleEndedIterator<Item = Gpr> {
    (0..16u8).filter(move |n| saved & 1 << n != 0).map(Gpr)
}

impl Emitter<'_> {
    fn prologue(&mut self, saved: u32, frame: u32) {
        for reg in saved_registers(saved) {
            self.asm.push(reg);
        }
        if frame > 0 {
            self.asm.mov(Size::B64, ACC, Gpr::RSP);
            self.asm.alu_imm(asm::Alu::And, Size::B64, Gpr::RSP, -64);
            let mut left = frame;
            while left > PROBE {
                self.asm.alu_imm(asm::Alu::Sub, Size::B64, Gpr::RSP, PROBE as i32);
                self.asm.mov_store(Size::B64, Mem::at(Gpr::RSP, 0), ACC);
                left -= PROBE;
            }
            self.asm.alu_imm(asm::Alu::Sub, Size::B64, Gpr::RSP, left as i32);
            self.asm.mov_store(Size::B64, Mem::at(Gpr::RSP, frame as i32 - 8), ACC);
        }
    }

    fn epilogue(&mut self, saved: u32, frame: u32) {
        if frame > 0 {
            self.asm.mov(Size::B64, Gpr::RSP, Mem::at(Gpr::RSP, frame as i32 - 8));
        }
        for reg in saved_registers(saved).rev() {
            self.asm.pop(reg);
        }
        self.asm.vzeroupper();
        self.asm.ret();
    }

    fn mem(&mut self, addr: Addr) -> Mem {
        let index = if addr.index.is_some() { Index::Gpr(gpr(addr.index)) } else { Index::None };
        let base = match addr.base {
            Base::None => asm::Base::None,
            Base::Reg(reg) => asm::Base::Gpr(gpr(reg)),
            Base::Frame => asm::Base::Gpr(Gpr::RSP),
            Base::Const(id, bytes) => asm::Base::Label(self.constant(id, bytes.into())),
        };
        Mem { base, index, shift: addr.shift, disp: addr.disp }
    }

    /// A label of the function as the assembler numbers it.
    fn label(&self, label: Label) -> Label {
        Label(self.first + label.0)
    }

    fn constant(&mut self, id: ConstId, bytes: usize) -> Label {
        let bytes = self.constants[id.0 as usize].bytes(bytes);
        self.asm.constant(&bytes)
    }

    fn rm_vec(&mut self, place: Place) -> Rm {
        match place {
            Place::Reg(reg) => vec(reg).into(),
            Place::Mem(addr) => self.mem(addr).into(),
        }
    }

    fn rm_gpr(&mut self, place: Place) -> Rm {
        match place {
            Place::Reg(reg) => gpr(reg).into(),
            Place::Mem(addr) => self.mem(addr).into(),
        }
    }

    fn inst(&mut self, inst: &Inst) {
        match *inst {
            Inst::Undef { .. } => {}
            Inst::Entry { args, lo, hi, scratch } => self.entry([args, lo, hi, scratch]),
            Inst::Vec(ref it) => self.vector(it),
            Inst::SelectVec { shape, dst, mask, a, b } => {
                let op = match shape.elem.size() {
                    4 => VOp::Vblendvps,
                    8 => VOp::Vblendvpd,
                    _ => VOp::Vpblendvb,
                };
                let rm = self.rm_vec(b);
                let operands = (dst.number(), a.number(), rm);
                let mask = Some(mask.number() << 4);
                self.asm.vector(op, len_of(shape.bytes()), operands, Deco::NONE, mask);
            }
            Inst::Fma { shape, dst, a, b, c } => self.fma(shape, dst, (a, b, c)),
            Inst::MoveVec { dst, src } => self.move_vec(self.isa.widest(), dst, src),
            Inst::MoveMask { dst, src } if dst != src => {
                let rm = Rm::Mask(MaskReg(src.number()));
                self.asm.vector(VOp::Kmovq, Len::X, (dst.number(), 0, rm), Deco::NONE, None);
            }
            Inst::MoveMask { .. } => {}
            Inst::Const { dst, id } => self.load_constant(dst, self.isa.widest(), id),
            Inst::Prefetch { addr } => {
                let mem = self.mem(addr);
                self.asm.prefetch(mem);
            }
            Inst::Fence => self.asm.sfence(),
            Inst::Label { label } => self.asm.bind(self.label(label)),
            Inst::LoopHead { label } => {
                self.asm.align(32);
                self.asm.bind(self.label(label));
            }
            Inst::LoopEnd => {}
            Inst::Jump { label } => self.asm.jmp(self.label(label)),
            Inst::Branch { test, label } => {
                let cond = self.test(test);
                self.asm.jcc(flags(cond), self.label(label));
            }
            Inst::Call { target, buffers, description } => {
                self.call(target, buffers, description);
            }
            _ => self.general(inst),
        }
    }

    fn general(&mut self, inst: &Inst) {
        match *inst {
            Inst::Move { dst, src } => self.move_gpr(dst, src),
            Inst::Imm { dst, value: 0 } => {
                self.asm.alu(asm::Alu::Xor, Size::B32, gpr(dst), gpr(dst))
            }
            Inst::Imm { dst, value } => self.asm.mov_imm(gpr(dst), value),
            Inst::Alu { op, size, dst, a, b } => self.alu(op, size, (dst, a), b),
            Inst::Mul { size, dst, a, b } => self.mul(size, dst, a, b),
            Inst::MulHigh { dst, a, b } => {
                self.asm.mov(Size::B64, ACC, gpr(a));
                self.asm.imul_high(gpr(b));
                self.asm.mov(Size::B64, gpr(dst), DATA);
            }
            Inst::Lea { dst, addr } => {
                let mem = self.mem(addr);
                self.asm.lea(Size::B64, gpr(dst), mem);
            }
            Inst::Shift { op, size, dst, a, by } => {
                self.copy(size, dst, a);
                self.asm.shift_imm(shift(op), size, gpr(dst), by);
            }
            Inst::ShiftBy { op, size, dst, a, by } => {
                let op = match (op, size) {
                    (Shift::Shl, Size::B32) => VOp::Shlx32,
                    (Shift::Shl, Size::B64) => VOp::Shlx64,
                    (Shift::Shr, Size::B32) => VOp::Shrx32,
                    (Shift::Shr, Size::B64) => VOp::Shrx64,
                    (Shift::Sar, Size::B32) => VOp::Sarx32,
                    (Shift::Sar, Size::B64) => VOp::Sarx64,
                };
                let operands = (dst.number(), by.number(), gpr(a).into());
                self.asm.vector(op, Len::X, operands, Deco::NONE, None);
            }
            Inst::Neg { size, dst, a } => {
                self.copy(size, dst, a);
                self.asm.neg(size, gpr(dst));
            }
            Inst::Not { size, dst, a } => {
                self.copy(size, dst, a);
                self.asm.not(size, gpr(dst));
            }
            Inst::Popcnt { dst, a } => self.asm.popcnt(Size::B64, gpr(dst), gpr(a)),
            Inst::Div { size, signed, rem, dst, a, b } => self.div(size, (signed, rem), dst, a, b),
            Inst::Extend { kind, dst, src } => self.extend(kind, dst, src),
            Inst::Store { width, addr, src } => {
                let mem = self.mem(addr);
                match width {
                    0 => self.asm.mov_store8(mem, gpr(src)),
                    1 => self.asm.mov_store16(mem, gpr(src)),
                    2 => self.asm.mov_store(Size::B32, mem, gpr(src)),
                    _ => self.asm.mov_store(Size::B64, mem, gpr(src)),
                }
            }
            Inst::SetCc { dst, test } => {
                let cond = self.test(test);
                self.asm.setcc(flags(cond), ACC);
                self.asm.movzx8(gpr(dst), ACC);
            }
            Inst::Select { size, dst, test, x, y } => {
                let cond = self.test(test);
                if dst == x {
                    self.asm.cmov(size, flags(cond.not()), gpr(dst), gpr(y));
                } else {
                    self.move_gpr(dst, y);
                    self.asm.cmov(size, flags(cond), gpr(dst), gpr(x));
                }
            }
            _ => unreachable!("invariant: all other operations are handled by the caller"),
        }
    }

    /// Moves the arguments, which arrive in `rdi`, `rsi`, `rdx` and `rcx`, to their registers, if
    /// they have any. `rdx` and `rcx` are not allocated, so only the first two can be overwritten
    /// too early.
    fn entry(&mut self, homes: [Reg; 4]) {
        let [args, lo, hi, scratch] = homes.map(|reg| reg.is_some().then(|| gpr(reg)));
        let (rdi, rsi) = (Gpr::RDI, Gpr::RSI);
        if args == Some(rsi) && lo == Some(rdi) {
            self.asm.mov(Size::B64, ACC, rdi);
            self.asm.mov(Size::B64, rdi, rsi);
            self.asm.mov(Size::B64, rsi, ACC);
        } else if args == Some(rsi) {
            self.move_to(lo, rsi);
            self.move_to(args, rdi);
        } else {
            self.move_to(args, rdi);
            self.move_to(lo, rsi);
        }
        self.move_to(hi, Gpr::RDX);
        self.move_to(scratch, Gpr::RCX);
    }

    fn move_to(&mut self, dst: Option<Gpr>, src: Gpr) {
        if let Some(dst) = dst.filter(|&dst| dst != src) {
            self.asm.mov(Size::B64, dst, src);
        }
    }

    fn move_gpr(&mut self, dst: Reg, src: Reg) {
        self.move_to(Some(gpr(dst)), gpr(src));
    }

    /// A copy before a two-operand instruction of the given size.
    fn copy(&mut self, size: Size, dst: Reg, src: Reg) {
        if dst != src {
            self.asm.mov(size, gpr(dst), gpr(src));
        }
    }

    fn vector(&mut self, it: &VecInst) {
        let rm = match it.rm {
            Place::Mem(addr) => {
                if matches!(it.effect, Effect::Gather | Effect::Scatter) {
                    let without = Addr { index: Reg::NONE, ..addr };
                    let mem = self.mem(without);
                    Rm::Mem(Mem { index: Index::Vec(vec(addr.index)), shift: addr.shift, ..mem })
                } else {
                    self.mem(addr).into()
                }
            }
            Place::Reg(reg) => it.op.register(reg.number()),
        };
        let number = |reg: Reg| if reg.is_some() { reg.number() } else { 0 };
        let deco = Deco { mask: number(it.mask), zero: it.zero, broadcast: it.broadcast };
        let operands = (number(it.reg), number(it.vvvv), rm);
        let imm = it.op.has_immediate().then_some(it.imm);
        self.asm.vector(it.op, it.len, operands, deco, imm);
    }

    fn move_vec(&mut self, len: Len, dst: Reg, src: Reg) {
        if dst != src {
            let operands = (dst.number(), 0, vec(src).into());
            self.asm.vector(VOp::Vmovups, len, operands, Deco::NONE, None);
        }
    }

    /// `dst = a * b + c` by the form that works in place, if an operand dies in `dst`.
    fn fma(&mut self, shape: Shape, dst: Reg, (a, b, c): (Reg, Place, Place)) {
        let len = len_of(shape.bytes());
        let [f132, f213, f231] = fma(shape);
        // 132: dst * rm + vvvv; 213: vvvv * dst + rm; 231: vvvv * rm + dst.
        let (op, vvvv, rm) = match (b, c) {
            (_, Place::Reg(c)) if c == dst => (f231, a, b),
            (_, Place::Reg(c)) if a == dst => (f132, c, b),
            (Place::Reg(b), _) if a == dst => (f213, b, c),
            (Place::Reg(b), _) if b == dst => (f213, a, c),
            (_, Place::Reg(c)) => {
                self.move_vec(len, dst, c);
                (f231, a, b)
            }
            (Place::Reg(b), Place::Mem(_)) => {
                self.move_vec(len, dst, a);
                (f213, b, c)
            }
            (Place::Mem(_), Place::Mem(_)) => {
                unreachable!("invariant: an instruction has one memory operand")
            }
        };
        let rm = self.rm_vec(rm);
        self.asm.vector(op, len, (dst.number(), vvvv.number(), rm), Deco::NONE, None);
    }

    fn load_constant(&mut self, dst: Reg, len: Len, id: ConstId) {
        let n = dst.number();
        let data = &self.constants[id.0 as usize];
        let bytes = data.bytes(len.bytes() as usize);
        let same = |value: u8| bytes.iter().all(|&byte| byte == value);
        let this = (n, n, Rm::Vec(VecReg(n)));
        if same(0) {
            // The shorter form clears the whole register.
            let op = if n > 15 { VOp::Vpxord } else { VOp::Vxorps };
            self.asm.vector(op, Len::X, this, Deco::NONE, None);
        } else if same(0xff) && self.isa == Isa::Avx512 {
            self.asm.vector(VOp::Vpternlogd, len, this, Deco::NONE, Some(0xff));
        } else if same(0xff) {
            self.asm.vector(VOp::Vpcmpeqd, len, this, Deco::NONE, None);
        } else {
            let (op, stored, len) = match data {
                ConstData::Splat { size: 1, .. } => (VOp::Vpbroadcastb, 1, len),
                ConstData::Splat { size: 2, .. } => (VOp::Vpbroadcastw, 2, len),
                ConstData::Splat { size: 4, .. } => (VOp::Vbroadcastss, 4, len),
                ConstData::Splat { .. } => (VOp::Vbroadcastsd, 8, len.max(Len::Y)),
                ConstData::Bytes(_) => (VOp::Vmovups, len.bytes() as usize, len),
            };
            let mem = Mem::label(self.constant(id, stored));
            self.asm.vector(op, len, (n, 0, mem.into()), Deco::NONE, None);
        }
    }

    /// Sets the flags; gives the condition to look for.
    fn test(&mut self, test: Test) -> Cond {
        let a = gpr(test.a);
        match test.b {
            Operand::Imm(0) if matches!(test.cond, Cond::Equal | Cond::NotEqual) => {
                self.asm.test(test.size, a, a);
            }
            Operand::Imm(imm) => self.asm.alu_imm(asm::Alu::Cmp, test.size, a, imm),
            Operand::Reg(b) => self.asm.alu(asm::Alu::Cmp, test.size, a, gpr(b)),
            Operand::Mem(addr) => {
                let mem = self.mem(addr);
                self.asm.alu(asm::Alu::Cmp, test.size, a, mem);
            }
        }
        test.cond
    }

    fn alu(&mut self, op: Alu, size: Size, (dst, a): (Reg, Reg), b: Operand) {
        let (d, is_sum, op) = (gpr(dst), op == Alu::Add, arithmetic(op));
        match b {
            Operand::Imm(imm) if dst != a && is_sum => {
                self.asm.lea(size, d, Mem::at(gpr(a), imm));
            }
            Operand::Imm(imm) => {
                self.copy(size, dst, a);
                self.asm.alu_imm(op, size, d, imm);
            }
            Operand::Reg(b) if dst == a => self.asm.alu(op, size, d, gpr(b)),
            Operand::Reg(b) if dst == b => {
                debug_assert_ne!(op, asm::Alu::Sub, "the subtrahend outlives the result's birth");
                self.asm.alu(op, size, d, gpr(a));
            }
            Operand::Reg(b) if is_sum => {
                self.asm.lea(size, d, Mem::indexed(gpr(a), gpr(b), 0, 0));
            }
            Operand::Reg(b) => {
                self.copy(size, dst, a);
                self.asm.alu(op, size, d, gpr(b));
            }
            Operand::Mem(addr) => {
                let mem = self.mem(addr);
                self.copy(size, dst, a);
                self.asm.alu(op, size, d, mem);
            }
        }
    }

    fn mul(&mut self, size: Size, dst: Reg, a: Reg, b: Operand) {
        let d = gpr(dst);
        match b {
            Operand::Imm(imm) => self.asm.imul_imm(size, d, gpr(a), imm),
            Operand::Reg(b) if dst == b => self.asm.imul(size, d, gpr(a)),
            Operand::Reg(b) => {
                self.copy(size, dst, a);
                self.asm.imul(size, d, gpr(b));
            }
            Operand::Mem(addr) => {
                let mem = self.mem(addr);
                self.copy(size, dst, a);
                self.asm.imul(size, d, mem);
            }
        }
    }

    /// `x / 0 = 0`, `x % 0 = x`, `MIN / -1 = MIN`, `MIN % -1 = 0`; the processor faults on all.
    fn div(&mut self, size: Size, (signed, rem): (bool, bool), dst: Reg, a: Reg, b: Reg) {
        let (zero, minus, done) = (self.asm.label(), self.asm.label(), self.asm.label());
        let b = gpr(b);
        self.asm.mov(size, ACC, gpr(a));
        self.asm.test(size, b, b);
        self.asm.jcc(asm::Cond::Equal, zero);
        if signed {
            self.asm.alu_imm(asm::Alu::Cmp, size, b, -1);
            self.asm.jcc(asm::Cond::Equal, minus);
            self.asm.sign_rdx(size);
            self.asm.idiv(size, b);
        } else {
            self.asm.alu(asm::Alu::Xor, Size::B32, DATA, DATA);
            self.asm.div(size, b);
        }
        if rem {
            self.asm.mov(size, ACC, DATA);
        }
        self.asm.jmp(done);
        self.asm.bind(minus);
        if signed {
            if rem {
                self.asm.alu(asm::Alu::Xor, Size::B32, ACC, ACC);
            } else {
                self.asm.neg(size, ACC);
            }
            self.asm.jmp(done);
        }
        self.asm.bind(zero);
        if !rem {
            self.asm.alu(asm::Alu::Xor, Size::B32, ACC, ACC);
        }
        self.asm.bind(done);
        self.asm.mov(size, gpr(dst), ACC);
    }

    fn extend(&mut self, kind: Extend, dst: Reg, src: Place) {
        let d = gpr(dst);
        let rm = self.rm_gpr(src);
        match kind {
            Extend::Zero8 => self.asm.movzx8(d, rm),
            Extend::Zero16 => self.asm.movzx16(d, rm),
            Extend::Zero32 => self.asm.mov(Size::B32, d, rm),
            Extend::Sign8 => self.asm.movsx8(Size::B32, d, rm),
            Extend::Sign16 => self.asm.movsx16(Size::B32, d, rm),
            Extend::Sign32 => self.asm.movsxd(d, rm),
            Extend::None64 => self.asm.mov(Size::B64, d, rm),
        }
    }

    fn call(&mut self, target: usize, buffers: [i32; 4], description: u64) {
        // Nothing lives in registers that a call may change.
        let registers = [Gpr::RDI, Gpr::RSI, Gpr::RDX, Gpr::RCX];
        for (reg, place) in registers.into_iter().zip(buffers) {
            self.asm.lea(Size::B64, reg, Mem::at(Gpr::RSP, place));
        }
        self.asm.mov_imm(Gpr(8), description);
        self.asm.mov_imm(ACC, target as u64);
        self.asm.vzeroupper();
        self.asm.call(ACC);
    }
}
