//! Affine indices and the addresses made of them.
//!
//! An `i64` value that is a sum of multiples of *atoms* (loop counters, variables, anything
//! computed otherwise) plus a constant stays symbolic until it is needed, as [`Affine`]. Wrapping
//! arithmetic makes that exact.
//!
//! An address is `root + sum of (atom * bytes) + constant`. The constant becomes the displacement,
//! the atom that varies fastest becomes the index, and the rest becomes the base, computed in the
//! region where its own fastest atom lives, that is, outside all loops inside that. A multiple of
//! a loop counter that the hardware cannot scale becomes a register of its own that the loop
//! advances; all arrays walked with the same step share it.

use super::super::machine::{Addr, Alu, Base, Class, Inst, Operand, Reg, Shift, Size};
use super::{Lower, Result, Storage, Val};
use zyx_core::affine::Linear;
use zyx_core::ir::{Op, Value};

/// Something an affine value is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Atom {
    /// The region whose operations define it.
    pub(super) depth: usize,
    pub(super) counter: Counter,
    pub(super) reg: Reg,
}

/// Whether an atom is a loop counter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Counter {
    No,
    /// The counter of this loop.
    Loop(usize),
}

/// An open or closed loop.
#[derive(Clone, Debug)]
pub(super) struct LoopState {
    pub(super) counter: Reg,
    /// Where it starts, if not at 0.
    pub(super) start: Option<Reg>,
    /// Whether the counter itself is read.
    pub(super) used: bool,
    /// Registers that hold `counter * factor`.
    pub(super) multiples: Vec<(i64, Reg)>,
}

/// A sum of multiples of atoms, modulo 2^64.
pub(super) type Affine = Linear<u32>;

/// The other terms, without the constant.
fn without(affine: &Affine, atom: u32) -> Affine {
    let mut rest = Affine { constant: 0, ..affine.clone() };
    rest.terms.retain(|term| term.0 != atom);
    rest
}

/// The beginning of a piece of memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Root {
    Frame(i32),
    /// An atom that holds an address, and bytes to add.
    Pointer(u32, i64),
}

const fn log2_scale(factor: i64) -> Option<u8> {
    match factor {
        1 => Some(0),
        2 => Some(1),
        4 => Some(2),
        8 => Some(3),
        _ => None,
    }
}

impl Lower<'_> {
    pub(super) fn new_atom(&mut self, atom: Atom) -> u32 {
        self.atoms.push(atom);
        self.atoms.len() as u32 - 1
    }

    pub(super) fn new_affine(&mut self, affine: Affine) -> u32 {
        self.affines.push(affine);
        self.affines.len() as u32 - 1
    }

    /// A register computed here as an affine value.
    pub(super) fn atom_val(&mut self, reg: Reg) -> Val {
        let depth = self.depth();
        let atom = self.new_atom(Atom { depth, counter: Counter::No, reg });
        Val::Affine(self.new_affine(Affine::atom(atom)))
    }

    /// A scalar integer as an affine value.
    pub(super) fn affine(&mut self, value: Value) -> Affine {
        match self.val(value) {
            Val::Affine(n) => self.affines[n as usize].clone(),
            Val::Const(_) => Affine::constant(self.known_i64(value).unwrap_or(0)),
            _ => {
                let reg = self.gpr_as_i64(value);
                let depth = self.depth();
                Affine::atom(self.new_atom(Atom { depth, counter: Counter::No, reg }))
            }
        }
    }

    fn atom_reg(&mut self, atom: u32) -> Reg {
        let Atom { counter, reg, .. } = self.atoms[atom as usize];
        if let Counter::Loop(state) = counter {
            self.loops[state].used = true;
        }
        reg
    }

    /// The term that changes most often.
    fn innermost(&self, affine: &Affine) -> Option<(u32, i64)> {
        let depth = |atom: u32| self.atoms[atom as usize].depth;
        affine.terms.iter().copied().max_by_key(|&(atom, _)| (depth(atom), atom))
    }

    /// A register with the value, computed as far out as possible.
    pub(super) fn materialise(&mut self, affine: &Affine) -> Reg {
        let Some((atom, factor)) = self.innermost(affine) else {
            return self.imm(affine.constant as u64);
        };
        if affine.terms.len() == 1 && factor == 1 && affine.constant == 0 {
            return self.atom_reg(atom);
        }
        if let Some(&reg) = self.materialised.get(affine) {
            return reg;
        }
        let depth = self.atoms[atom as usize].depth;
        let dst = self.new_reg(Class::Gpr);
        if affine.terms.len() == 1 && affine.constant == 0 {
            self.product(depth, dst, atom, factor);
        } else {
            self.sum(depth, dst, affine, (atom, factor));
        }
        self.materialised.insert(affine.clone(), dst);
        self.regions[depth].memo.push(affine.clone());
        dst
    }

    /// `dst = atom * factor`
    fn product(&mut self, depth: usize, dst: Reg, atom: u32, factor: i64) {
        let a = self.atom_reg(atom);
        let size = Size::B64;
        let inst = match i32::try_from(factor) {
            _ if factor > 0 && factor & (factor - 1) == 0 => {
                Inst::Shift { op: Shift::Shl, size, dst, a, by: factor.trailing_zeros() as u8 }
            }
            Ok(-1) => Inst::Neg { size, dst, a },
            Ok(factor) => Inst::Mul { size, dst, a, b: Operand::Imm(factor) },
            Err(_) => {
                let b = self.new_reg(Class::Gpr);
                self.push_at(depth, Inst::Imm { dst: b, value: factor as u64 });
                Inst::Mul { size, dst, a, b: Operand::Reg(b) }
            }
        };
        self.push_at(depth, inst);
    }

    /// `dst` = a sum of at least two parts, the last of which is `last`.
    fn sum(&mut self, depth: usize, dst: Reg, affine: &Affine, last: (u32, i64)) {
        let (index, shift) = match log2_scale(last.1) {
            Some(shift) => (self.atom_reg(last.0), shift),
            None => {
                let term = Affine::term(last.0, last.1);
                (self.materialise(&term), 0)
            }
        };
        let rest = without(affine, last.0);
        let base = (!rest.terms.is_empty()).then(|| self.materialise(&rest));
        let (disp, large) = match i32::try_from(affine.constant) {
            Ok(disp) => (disp, false),
            Err(_) => (0, true),
        };
        let addr = match (base, shift) {
            (Some(base), _) => Addr { base: Base::Reg(base), index, shift, disp },
            (None, 0) => Addr::at(index, disp),
            (None, _) => Addr { base: Base::None, index, shift, disp },
        };
        if large {
            let (constant, part) = (self.new_reg(Class::Gpr), self.new_reg(Class::Gpr));
            self.push_at(depth, Inst::Imm { dst: constant, value: affine.constant as u64 });
            self.push_at(depth, Inst::Lea { dst: part, addr });
            let b = Operand::Reg(constant);
            self.push_at(depth, Inst::Alu { op: Alu::Add, size: Size::B64, dst, a: part, b });
        } else {
            self.push_at(depth, Inst::Lea { dst, addr });
        }
    }

    /// The register that holds `counter * factor` in this loop.
    fn multiple(&mut self, atom: u32, state: usize, factor: i64) -> Reg {
        let known = self.loops[state].multiples.iter().find(|it| it.0 == factor);
        if let Some(&(_, reg)) = known {
            return reg;
        }
        let before = self.atoms[atom as usize].depth - 1;
        let dst = self.new_reg(Class::Gpr);
        let inst = match (self.loops[state].start, i32::try_from(factor)) {
            (None, _) => Inst::Imm { dst, value: 0 },
            (Some(a), Ok(factor)) => Inst::Mul { size: Size::B64, dst, a, b: Operand::Imm(factor) },
            (Some(a), Err(_)) => {
                let b = self.new_reg(Class::Gpr);
                self.push_at(before, Inst::Imm { dst: b, value: factor as u64 });
                Inst::Mul { size: Size::B64, dst, a, b: Operand::Reg(b) }
            }
        };
        self.push_at(before, inst);
        self.loops[state].multiples.push((factor, dst));
        dst
    }

    /// The index register and scale for `atom * bytes`, where elements have `size` bytes.
    fn scaled_index(&mut self, (atom, bytes): (u32, i64), size: usize) -> (Reg, u8) {
        if !self.isa.any_scale() {
            return self.index_in_bytes((atom, bytes), size);
        }
        if let Some(shift) = log2_scale(bytes) {
            return (self.atom_reg(atom), shift);
        }
        // In units of elements, so that arrays of different dtypes share the register.
        let unit = size.min(8) as i64;
        let (factor, shift) = match log2_scale(unit) {
            Some(shift) if bytes % unit == 0 => (bytes / unit, shift),
            _ => (bytes, 0),
        };
        match self.atoms[atom as usize].counter {
            Counter::Loop(state) => (self.multiple(atom, state, factor), shift),
            Counter::No => {
                let term = Affine::term(atom, factor);
                (self.materialise(&term), shift)
            }
        }
    }

    /// As [`Self::scaled_index`], where accesses of any width take an index that is not scaled. One of
    /// elements that is no loop counter is scaled by accesses to elements for nothing.
    fn index_in_bytes(&mut self, (atom, bytes): (u32, i64), size: usize) -> (Reg, u8) {
        match (self.atoms[atom as usize].counter, bytes) {
            (_, 1) => (self.atom_reg(atom), 0),
            (Counter::Loop(state), _) => (self.multiple(atom, state, bytes), 0),
            (Counter::No, _) => match log2_scale(bytes) {
                Some(shift) if bytes == size as i64 => (self.atom_reg(atom), shift),
                _ => (self.materialise(&Affine::term(atom, bytes)), 0),
            },
        }
    }

    /// The address of element `index` of memory whose elements have `size` bytes.
    pub(super) fn address(&mut self, root: Root, index: &Affine, size: usize) -> Addr {
        let mut bytes = index.wrapping_scaled(size as i64);
        if let Root::Pointer(_, offset) = root {
            bytes.constant = bytes.constant.wrapping_add(offset);
        }
        let last = self.innermost(&bytes);
        let rest = last.map(|(atom, _)| without(&bytes, atom)).unwrap_or_default();
        let disp = match root {
            Root::Frame(place) => bytes.constant.checked_add(place.into()),
            Root::Pointer(..) => Some(bytes.constant),
        };
        let disp = disp.and_then(|disp| i32::try_from(disp).ok());
        let base = match root {
            Root::Frame(_) if rest.terms.is_empty() && disp.is_some() => Base::Frame,
            Root::Frame(place) => {
                // The address of the frame becomes an atom like any other.
                let dst = self.new_reg(Class::Gpr);
                self.push_at(0, Inst::Lea { dst, addr: Addr::frame(0) });
                let frame = Atom { depth: 0, counter: Counter::No, reg: dst };
                let frame = self.new_atom(frame);
                return self.address(Root::Pointer(frame, place.into()), index, size);
            }
            Root::Pointer(pointer, _) => {
                let mut whole = Affine::atom(pointer).wrapping_plus(&rest);
                whole.constant = if disp.is_some() { 0 } else { bytes.constant };
                Base::Reg(self.materialise(&whole))
            }
        };
        let disp = disp.unwrap_or(0);
        match last {
            None => Addr { base, index: Reg::NONE, shift: 0, disp },
            Some(term) => {
                let (index, shift) = self.scaled_index(term, size);
                Addr { base, index, shift, disp }
            }
        }
    }

    /// The memory of a buffer argument or of storage that is not promoted.
    pub(super) fn root(&mut self, buf: Value) -> Result<Root> {
        if let Op::Param { slot, .. } = self.kernel.op(buf) {
            return Ok(Root::Pointer(self.param(slot), 0));
        }
        match self.storage.get(&buf.0) {
            Some(&Storage::Frame(place)) => Ok(Root::Frame(place)),
            Some(&Storage::Scratch(offset)) => {
                let scratch = self.scratch_reg;
                let atom = *self.param_atoms.entry(u32::MAX).or_insert_with(|| {
                    self.atoms.push(Atom { depth: 0, counter: Counter::No, reg: scratch });
                    self.atoms.len() as u32 - 1
                });
                Ok(Root::Pointer(atom, offset))
            }
            None => Err(super::EmitError::new("an access of something that is not storage")),
        }
    }

    fn param(&mut self, slot: u16) -> u32 {
        if let Some(&atom) = self.param_atoms.get(&slot.into()) {
            return atom;
        }
        let dst = self.new_reg(Class::Gpr);
        let addr = Addr::at(self.args, 8 * i32::from(slot));
        let kind = super::super::machine::Extend::None64;
        self.push_at(0, Inst::Extend { kind, dst, src: addr.into() });
        let atom = self.new_atom(Atom { depth: 0, counter: Counter::No, reg: dst });
        self.param_atoms.insert(slot.into(), atom);
        atom
    }
}
