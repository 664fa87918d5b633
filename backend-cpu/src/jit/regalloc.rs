//! Linear-scan register allocation over whole-life intervals, and the spill code it implies.
//!
//! Every register has one interval, from its first to its last mention, extended to the end of
//! each loop it enters alive. Intervals are visited by start; when a file is full, the interval
//! that saves least per length (mentions weighted by eight to the loop depth) lives in memory
//! instead. Constants are never stored: one that gets no register is read from the pool, mostly
//! as a memory operand of the instruction that needs it, so they are the first to go.
//!
//! Positions: operation `i` reads at `2i` and writes at `2i + 1`, so a result may take the
//! register of an operand that dies there. Values alive across a call live in callee-saved
//! registers or in memory.
//!
//! A few general registers are never allocated: they serve spill code and the operations with
//! fixed registers. Vector and mask registers are set aside only if a first attempt without needs
//! them ([`RegisterFile`]).

use super::machine::{
    Addr, Base, Class, ConstData, ConstId, Effect, Extend, Inst, Operand, Place, Reg, Role, VecInst,
};
use super::registers::RegisterFile;
use super::target::Isa;
use super::x86::asm::{Len, VOp};
use super::x86::len_of;

/// Where a register lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Home {
    Nowhere,
    Register(u8),
    Frame(i32),
    Pool(ConstId),
}

/// The result: operations on hardware registers, and what the prologue has to provide.
#[derive(Debug)]
pub(super) struct Allocated {
    pub(super) insts: Vec<Inst>,
    /// Registers in use that the caller wants back, by class, as bit masks.
    pub(super) saved: [u32; 3],
    /// Bytes of the stack frame, storage and spills together.
    pub(super) frame: u32,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    start: u32,
    end: u32,
    weight: f32,
    hint: Reg,
    /// A constant, if that is all it ever holds.
    constant: Option<ConstId>,
}

/// Allocates registers for `insts`. `frame` bytes of the stack frame are already in use.
pub(super) fn allocate(
    insts: &[Inst],
    classes: &[Class],
    constants: &[ConstData],
    isa: Isa,
    frame: u32,
) -> Allocated {
    let (intervals, order, calls) = intervals(insts, classes.len());
    let file = isa.registers();
    for scratch in 0..4 {
        let free = file.without_scratch(scratch);
        let mut scan = Scan::new(classes, &intervals, &calls, file, free);
        for &reg in &order {
            scan.place(reg);
        }
        let mut homes = scan.homes;
        let frame =
            assign_slots(&mut homes, &order, &intervals, classes, (frame, file.vector_slot));
        let mut rewriter = Rewriter {
            homes: &homes,
            classes,
            constants,
            isa,
            allocatable: free,
            out: Vec::with_capacity(insts.len() + insts.len() / 4),
            lacking: false,
        };
        for inst in insts {
            rewriter.rewrite(*inst);
        }
        if !rewriter.lacking {
            return Allocated { insts: rewriter.out, saved: scan.saved, frame };
        }
    }
    unreachable!("invariant: no operation reads more registers of one file than there are scratch")
}

/// Intervals of all registers, registers by start, and the positions of calls.
fn intervals(insts: &[Inst], n: usize) -> (Vec<Interval>, Vec<Reg>, Vec<u32>) {
    let ends = loop_ends(insts);
    let unset = Interval { start: u32::MAX, end: 0, weight: 0.0, hint: Reg::NONE, constant: None };
    let mut intervals = vec![unset; n];
    let mut order = Vec::with_capacity(n);
    let mut calls = Vec::new();
    // Open loops: position of the head and of the end.
    let mut open: Vec<(u32, u32)> = Vec::new();
    let mut next_loop = 0;
    for (i, inst) in insts.iter().enumerate() {
        let at = 2 * i as u32;
        match inst {
            Inst::LoopHead { .. } => {
                open.push((at, ends[next_loop]));
                next_loop += 1;
            }
            Inst::LoopEnd => {
                open.pop();
            }
            Inst::Call { .. } => calls.push(at),
            _ => {}
        }
        let importance = (8f32).powi(open.len() as i32);
        let mut copy = *inst;
        copy.visit(|reg, role| {
            let it = &mut intervals[reg.0 as usize];
            if it.start == u32::MAX {
                it.start = if role == Role::Def { at + 1 } else { at };
                order.push(*reg);
                if let Inst::Const { id, .. } = inst {
                    it.constant = Some(*id);
                }
            } else if role == Role::Def || role == Role::Mod {
                it.constant = None;
            }
            let here = match role {
                Role::Use => at + 1,
                Role::Late | Role::Mod | Role::Def => at + 2,
            };
            it.end = it.end.max(here);
            if let Some(&(_, end)) = open.iter().find(|(head, _)| *head > it.start) {
                it.end = it.end.max(end);
            }
            it.weight += importance;
        });
        if let Some((dst, src)) = inst.preference() {
            let it = &mut intervals[dst.0 as usize];
            if it.hint == Reg::NONE {
                it.hint = src;
            }
        }
    }
    (intervals, order, calls)
}

/// Positions just after each loop, in order of heads.
fn loop_ends(insts: &[Inst]) -> Vec<u32> {
    let (mut ends, mut open) = (Vec::new(), Vec::new());
    for (i, inst) in insts.iter().enumerate() {
        match inst {
            Inst::LoopHead { .. } => {
                open.push(ends.len());
                ends.push(0);
            }
            Inst::LoopEnd => {
                let it = open.pop().expect("invariant: loop marks match");
                ends[it] = 2 * i as u32 + 1;
            }
            _ => {}
        }
    }
    ends
}

struct Scan<'a> {
    classes: &'a [Class],
    intervals: &'a [Interval],
    calls: &'a [u32],
    homes: Vec<Home>,
    /// Registers in use, by class.
    active: [Vec<Reg>; 3],
    free: [u32; 3],
    file: &'static RegisterFile,
    saved: [u32; 3],
}

impl<'a> Scan<'a> {
    fn new(
        classes: &'a [Class],
        intervals: &'a [Interval],
        calls: &'a [u32],
        file: &'static RegisterFile,
        free: [u32; 3],
    ) -> Self {
        Self {
            classes,
            intervals,
            calls,
            homes: vec![Home::Nowhere; classes.len()],
            active: [Vec::new(), Vec::new(), Vec::new()],
            free,
            file,
            saved: [0; 3],
        }
    }

    fn interval(&self, reg: Reg) -> Interval {
        self.intervals[reg.0 as usize]
    }

    /// Finds a home for `reg`, whose interval starts no earlier than those placed before.
    fn place(&mut self, reg: Reg) {
        let it = self.interval(reg);
        let class = self.classes[reg.0 as usize] as usize;
        self.expire(class, it.start);
        let allowed = match self.crosses_call(it) {
            true => self.file.outlives_calls(self.classes[reg.0 as usize]),
            false => u32::MAX,
        };
        let free = self.free[class] & allowed;
        if free != 0 {
            let number = self.preferred(it, free, class);
            self.take(reg, class, number);
            return;
        }
        // The cheapest of those that hold an allowed register, or this one.
        let (mut cheapest, mut cost) = (None, Self::cost(it));
        for (i, &other) in self.active[class].iter().enumerate() {
            let Home::Register(number) = self.homes[other.0 as usize] else { continue };
            let other_cost = Self::cost(self.interval(other));
            if allowed & 1 << number != 0 && other_cost < cost {
                (cheapest, cost) = (Some((i, number)), other_cost);
            }
        }
        match cheapest {
            Some((i, number)) => {
                let other = self.active[class].swap_remove(i);
                self.homes[other.0 as usize] = self.memory_home(other);
                self.free[class] |= 1 << number;
                self.take(reg, class, number);
            }
            None => self.homes[reg.0 as usize] = self.memory_home(reg),
        }
    }

    /// What is lost per unit of register time by living in memory.
    fn cost(it: Interval) -> f32 {
        let length = (it.end - it.start) as f32;
        let weight = if it.constant.is_some() { it.weight * 0.25 } else { it.weight };
        weight / length
    }

    /// Memory homes are told apart by the constant only; slots are assigned later.
    fn memory_home(&self, reg: Reg) -> Home {
        self.interval(reg).constant.map_or(Home::Frame(0), Home::Pool)
    }

    fn take(&mut self, reg: Reg, class: usize, number: u8) {
        self.free[class] &= !(1 << number);
        self.active[class].push(reg);
        self.homes[reg.0 as usize] = Home::Register(number);
        self.saved[class] |= self.file.preserved[class] & 1 << number;
    }

    fn preferred(&self, it: Interval, free: u32, class: usize) -> u8 {
        if it.hint.is_some()
            && let Home::Register(number) = self.homes[it.hint.0 as usize]
            && free & 1 << number != 0
        {
            return number;
        }
        let cheap = free & !self.file.preserved[class];
        (if cheap != 0 { cheap } else { free }).trailing_zeros() as u8
    }

    fn expire(&mut self, class: usize, now: u32) {
        let mut i = 0;
        while i < self.active[class].len() {
            let reg = self.active[class][i];
            if self.interval(reg).end <= now {
                self.active[class].swap_remove(i);
                if let Home::Register(number) = self.homes[reg.0 as usize] {
                    self.free[class] |= 1 << number;
                }
            } else {
                i += 1;
            }
        }
    }

    fn crosses_call(&self, it: Interval) -> bool {
        let next = self.calls.partition_point(|&call| call <= it.start);
        self.calls.get(next).is_some_and(|&call| call + 1 < it.end)
    }
}

/// Gives each spilled register a slot of the frame that is free for its whole life; returns the
/// size of the frame. That is followed by the bytes of a vector's slot.
fn assign_slots(
    homes: &mut [Home],
    order: &[Reg],
    intervals: &[Interval],
    classes: &[Class],
    (mut frame, vector): (u32, u32),
) -> u32 {
    // Slots by size, with the end of their last use.
    let mut slots: [Vec<(u32, i32)>; 2] = [Vec::new(), Vec::new()];
    for &reg in order {
        let n = reg.0 as usize;
        if homes[n] != Home::Frame(0) {
            continue;
        }
        let wide = classes[n] == Class::Vec;
        let slots = &mut slots[usize::from(wide)];
        let it = intervals[n];
        let place = match slots.iter_mut().find(|(end, _)| *end <= it.start) {
            Some(slot) => {
                slot.0 = it.end;
                slot.1
            }
            None => {
                let bytes = if wide { vector } else { 8 };
                let place = frame.next_multiple_of(bytes);
                frame = place + bytes;
                slots.push((it.end, place as i32));
                place as i32
            }
        };
        homes[n] = Home::Frame(place);
    }
    frame
}

/// Replaces registers by their homes, with loads and stores around where a home is memory.
struct Rewriter<'a> {
    homes: &'a [Home],
    classes: &'a [Class],
    constants: &'a [ConstData],
    isa: Isa,
    /// What may hold other values than spilled operands.
    allocatable: [u32; 3],
    out: Vec<Inst>,
    /// An operation needed more scratch registers than were set aside.
    lacking: bool,
}

impl Rewriter<'_> {
    fn home(&self, reg: Reg) -> Home {
        self.homes[reg.0 as usize]
    }

    fn rewrite(&mut self, mut inst: Inst) {
        match inst {
            Inst::Undef { .. } => return,
            Inst::Const { dst, .. } if matches!(self.home(dst), Home::Pool(_)) => return,
            Inst::Entry { args, lo, hi, scratch } => {
                self.entry([args, lo, hi, scratch]);
                return;
            }
            Inst::MoveVec { dst, src } => match self.home(src) {
                Home::Frame(slot) => inst = load_vector(dst, slot, self.isa),
                Home::Pool(id) => inst = Inst::Const { dst, id },
                Home::Register(_) | Home::Nowhere => {}
            },
            _ if self.isa.folds_memory() => self.fold(&mut inst),
            _ => {}
        }
        let mut used = [0u8; 3];
        // A result may share the scratch register of an operand that is read before any write.
        let mut shared = [None; 3];
        let mut reloads: Vec<(Reg, Home, Class)> = Vec::new();
        let mut stores: Vec<(Reg, i32, Class)> = Vec::new();
        // Scratch registers of operands that were met already.
        let mut assigned: Vec<(Reg, Reg)> = Vec::new();
        let (homes, classes, allocatable) = (self.homes, self.classes, self.allocatable);
        let file = self.isa.registers();
        let mut lacking = false;
        inst.visit(|reg, role| {
            let (virtual_reg, home) = (*reg, homes[reg.0 as usize]);
            let class = classes[reg.0 as usize];
            if let Home::Register(number) = home {
                *reg = Reg(u32::from(number));
                return;
            }
            let known = assigned.iter().find(|(it, _)| *it == virtual_reg).map(|&(_, s)| s);
            let scratch = known.unwrap_or_else(|| {
                let n = class as usize;
                let place = match shared[n] {
                    Some(place) if role == Role::Def => place,
                    _ => used[n],
                };
                used[n] = used[n].max(place + 1);
                if role == Role::Use && shared[n].is_none() {
                    shared[n] = Some(place);
                }
                let numbers = file.scratch[n];
                let number = numbers[usize::from(place).min(numbers.len() - 1)];
                lacking |= allocatable[n] & 1 << number != 0;
                Reg(number.into())
            });
            if known.is_none() {
                assigned.push((virtual_reg, scratch));
                if role != Role::Def {
                    reloads.push((scratch, home, class));
                }
            }
            if matches!(role, Role::Def | Role::Mod)
                && let Home::Frame(slot) = home
            {
                stores.push((scratch, slot, class));
            }
            *reg = scratch;
        });
        self.lacking |= lacking;
        for (scratch, home, class) in reloads {
            self.reload(scratch, home, class);
        }
        self.out.push(inst);
        for (scratch, slot, class) in stores {
            self.out.push(store(scratch, slot, class, self.isa));
        }
    }

    /// Arguments that live in memory are stored from where they arrive.
    fn entry(&mut self, mut arguments: [Reg; 4]) {
        for (reg, arrival) in arguments.iter_mut().zip(self.isa.registers().arrivals) {
            let home = self.homes.get(reg.0 as usize).copied().unwrap_or(Home::Nowhere);
            *reg = match home {
                Home::Register(number) => Reg(u32::from(number)),
                Home::Frame(slot) => {
                    let (addr, src) = (Addr::frame(slot), Reg(arrival.into()));
                    self.out.push(Inst::Store { width: 3, addr, src });
                    Reg::NONE
                }
                Home::Pool(_) | Home::Nowhere => Reg::NONE,
            };
        }
        let [args, lo, hi, scratch] = arguments;
        self.out.push(Inst::Entry { args, lo, hi, scratch });
    }

    fn reload(&mut self, dst: Reg, home: Home, class: Class) {
        let inst = match (home, class) {
            (Home::Pool(id), _) => Inst::Const { dst, id },
            (Home::Frame(slot), Class::Gpr) => {
                Inst::Extend { kind: Extend::None64, dst, src: Place::Mem(Addr::frame(slot)) }
            }
            (Home::Frame(slot), Class::Vec) => load_vector(dst, slot, self.isa),
            (Home::Frame(slot), Class::Mask) => vector(VOp::Kmovq, Len::X, Effect::Def, dst, slot),
            // An operand that is read before anything is written to it: any value will do.
            (Home::Nowhere | Home::Register(_), _) => return,
        };
        self.out.push(inst);
    }

    /// Turns a spilled operand into a memory operand where the instruction can have one.
    fn fold(&self, inst: &mut Inst) {
        match inst {
            Inst::Vec(it) => self.fold_vector(it),
            Inst::Fma { shape, a, b, c, .. } => {
                let len = len_of(shape.bytes());
                if matches!((&b, &c), (Place::Reg(_), Place::Reg(_))) {
                    if let Place::Reg(reg) = *b
                        && self.in_memory(*a)
                        && !self.in_memory(reg)
                    {
                        (*a, *b) = (reg, Place::Reg(*a));
                    }
                    if !self.fold_place(b, len) {
                        self.fold_place(c, len);
                    }
                }
            }
            Inst::SelectVec { shape, b, .. } => {
                self.fold_place(b, len_of(shape.bytes()));
            }
            Inst::Alu { b, .. } | Inst::Mul { b, .. } => self.fold_operand(b),
            Inst::Branch { test, .. } | Inst::SetCc { test, .. } | Inst::Select { test, .. } => {
                self.fold_operand(&mut test.b);
            }
            _ => {}
        }
    }

    fn in_memory(&self, reg: Reg) -> bool {
        matches!(self.home(reg), Home::Frame(_) | Home::Pool(_))
    }

    fn fold_vector(&self, it: &mut VecInst) {
        if !it.op.takes_memory() || it.broadcast || it.effect == Effect::Store {
            return;
        }
        if let Place::Reg(rm) = it.rm
            && it.vvvv.is_some()
            && it.op.is_commutative()
            && self.in_memory(it.vvvv)
            && !self.in_memory(rm)
        {
            (it.vvvv, it.rm) = (rm, Place::Reg(it.vvvv));
        }
        // Full vectors only: a shorter operand in a slot is fine, since slots hold whole registers.
        let Place::Reg(rm) = it.rm else { return };
        if let (Home::Pool(id), Some(element)) = (self.home(rm), it.op.broadcast_element())
            && self.isa.has_masks()
            && let ConstData::Splat { size, .. } = self.constants[id.0 as usize]
            && size == element
        {
            it.rm = Place::Mem(constant(id, size));
            it.broadcast = true;
            return;
        }
        self.fold_place(&mut it.rm, it.len);
    }

    fn fold_place(&self, place: &mut Place, len: Len) -> bool {
        let Place::Reg(reg) = *place else { return false };
        match self.home(reg) {
            Home::Frame(slot) if self.classes[reg.0 as usize] == Class::Vec => {
                *place = Place::Mem(Addr::frame(slot));
                true
            }
            Home::Pool(id) => {
                *place = Place::Mem(constant(id, len.bytes() as u8));
                true
            }
            _ => false,
        }
    }

    fn fold_operand(&self, operand: &mut Operand) {
        if let Operand::Reg(reg) = *operand
            && let Home::Frame(slot) = self.home(reg)
        {
            *operand = Operand::Mem(Addr::frame(slot));
        }
    }
}

const fn constant(id: ConstId, bytes: u8) -> Addr {
    Addr { base: Base::Const(id, bytes), index: Reg::NONE, shift: 0, disp: 0 }
}

fn store(src: Reg, slot: i32, class: Class, isa: Isa) -> Inst {
    match class {
        Class::Gpr => Inst::Store { width: 3, addr: Addr::frame(slot), src },
        Class::Vec if !isa.is_x86() => {
            Inst::VecStore { addr: Addr::frame(slot), src, bytes: isa.vector_bytes() as u8 }
        }
        Class::Vec => vector(VOp::VmovupsStore, isa.widest(), Effect::Store, src, slot),
        Class::Mask => vector(VOp::KmovqStore, Len::X, Effect::Store, src, slot),
    }
}

fn load_vector(dst: Reg, slot: i32, isa: Isa) -> Inst {
    if !isa.is_x86() {
        return Inst::VecLoad { dst, addr: Addr::frame(slot), bytes: isa.vector_bytes() as u8 };
    }
    vector(VOp::Vmovups, isa.widest(), Effect::Def, dst, slot)
}

fn vector(op: VOp, len: Len, effect: Effect, reg: Reg, slot: i32) -> Inst {
    Inst::Vec(VecInst {
        op,
        len,
        effect,
        reg,
        vvvv: Reg::NONE,
        rm: Place::Mem(Addr::frame(slot)),
        imm: 0,
        mask: Reg::NONE,
        zero: false,
        broadcast: false,
    })
}
