//! Addresses as loads and stores take them.
//!
//! The forms are a register with an unsigned displacement in units of the access, with a small signed
//! one, or with an index that is not shifted or shifted by the access. Whatever else lowering wrote is
//! computed into `x16` first; `legalize` has made that rare.

use super::super::EmitError;
use super::super::machine::{Addr, Base, Extend, Reg};
use super::asm::{Op, SP, ZERO};
use super::emit::{ADDRESS, Emitter, NUMBER, n};

/// An access: its row for each form, and the logarithm of its bytes.
#[derive(Clone, Copy)]
pub(super) struct Access {
    scaled: Op,
    unscaled: Op,
    indexed: Op,
    size: u8,
}

const fn access(scaled: Op, unscaled: Op, indexed: Op, size: u8) -> Access {
    Access { scaled, unscaled, indexed, size }
}

/// Of vector registers, by the logarithm of bytes.
const LOADS: [Access; 5] = [
    access(Op::LdrB, Op::LdurB, Op::LdrBReg, 0),
    access(Op::LdrH, Op::LdurH, Op::LdrHReg, 1),
    access(Op::LdrS, Op::LdurS, Op::LdrSReg, 2),
    access(Op::LdrD, Op::LdurD, Op::LdrDReg, 3),
    access(Op::LdrQ, Op::LdurQ, Op::LdrQReg, 4),
];
const STORES: [Access; 5] = [
    access(Op::StrB, Op::SturB, Op::StrBReg, 0),
    access(Op::StrH, Op::SturH, Op::StrHReg, 1),
    access(Op::StrS, Op::SturS, Op::StrSReg, 2),
    access(Op::StrD, Op::SturD, Op::StrDReg, 3),
    access(Op::StrQ, Op::SturQ, Op::StrQReg, 4),
];
/// Of general registers, likewise.
const GENERAL_STORES: [Access; 4] = [
    access(Op::StrbW, Op::SturbW, Op::StrbWReg, 0),
    access(Op::StrhW, Op::SturhW, Op::StrhWReg, 1),
    access(Op::StrW, Op::SturW, Op::StrWReg, 2),
    access(Op::StrX, Op::SturX, Op::StrXReg, 3),
];
const PREFETCH: Access = access(Op::Prfm, Op::Prfum, Op::PrfmReg, 3);
/// To the first-level cache, to stay there.
const KEEP: i64 = 0;

const fn extending_load(kind: Extend) -> Access {
    match kind {
        Extend::Zero8 => access(Op::LdrbW, Op::LdurbW, Op::LdrbWReg, 0),
        Extend::Zero16 => access(Op::LdrhW, Op::LdurhW, Op::LdrhWReg, 1),
        Extend::Zero32 => access(Op::LdrW, Op::LdurW, Op::LdrWReg, 2),
        Extend::Sign8 => access(Op::LdrsbW, Op::LdursbW, Op::LdrsbWReg, 0),
        Extend::Sign16 => access(Op::LdrshW, Op::LdurshW, Op::LdrshWReg, 1),
        Extend::Sign32 => access(Op::LdrswX, Op::LdurswX, Op::LdrswXReg, 2),
        Extend::None64 => access(Op::LdrX, Op::LdurX, Op::LdrXReg, 3),
    }
}

/// How an access of 2^`size` bytes spells a displacement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Displacement {
    Scaled,
    Unscaled,
    No,
}

fn displacement(disp: i64, size: u8) -> Displacement {
    if disp & ((1 << size) - 1) == 0 && (0..1 << 12).contains(&(disp >> size)) {
        Displacement::Scaled
    } else if (-256..256).contains(&disp) {
        Displacement::Unscaled
    } else {
        Displacement::No
    }
}

/// Whether an access of so many bytes takes this address as it is.
pub(super) fn encodable(addr: &Addr, bytes: u8) -> bool {
    let size = bytes.trailing_zeros() as u8;
    match (addr.base, addr.index.is_some()) {
        (Base::None | Base::Const(..), _) => false,
        (_, true) => addr.disp == 0 && (addr.shift == 0 || addr.shift == size),
        (_, false) => displacement(addr.disp.into(), size) != Displacement::No,
    }
}

/// Whether the instructions on two vectors take the address of the first.
pub(super) fn pairs(addr: &Addr) -> bool {
    addr.index == Reg::NONE && addr.disp % 16 == 0 && (-64..64).contains(&(addr.disp / 16))
}

fn size_of(bytes: u8) -> Result<usize, EmitError> {
    match bytes {
        1 | 2 | 4 | 8 | 16 => Ok(bytes.trailing_zeros() as usize),
        _ => Err(EmitError::new("an access wider than a register")),
    }
}

impl Emitter<'_> {
    /// Loads so many bytes into a vector register, whose other bytes become zero.
    pub(super) fn load_vector(&mut self, dst: u8, addr: Addr, bytes: u8) -> Result<(), EmitError> {
        self.access(LOADS[size_of(bytes)?], dst.into(), addr);
        Ok(())
    }

    pub(super) fn store_vector(&mut self, src: u8, addr: Addr, bytes: u8) -> Result<(), EmitError> {
        self.access(STORES[size_of(bytes)?], src.into(), addr);
        Ok(())
    }

    /// Stores the low 2^`width` bytes of a general register.
    pub(super) fn store_general(&mut self, width: u8, src: Reg, addr: Addr) {
        self.access(GENERAL_STORES[usize::from(width)], n(src), addr);
    }

    pub(super) fn load_general(&mut self, kind: Extend, dst: Reg, addr: Addr) {
        self.access(extending_load(kind), n(dst), addr);
    }

    pub(super) fn prefetch(&mut self, addr: Addr) {
        self.access(PREFETCH, KEEP, addr);
    }

    fn access(&mut self, rows: Access, reg: i64, addr: Addr) {
        let base = match addr.base {
            Base::Reg(base) => n(base),
            Base::Frame => SP.into(),
            Base::None | Base::Const(..) => {
                // Rare: what is left is a displacement from there.
                self.address(ADDRESS, Addr { disp: 0, ..addr });
                return self.at(rows, reg, ADDRESS.into(), addr.disp.into());
            }
        };
        if !addr.index.is_some() {
            return self.at(rows, reg, base, addr.disp.into());
        }
        if addr.disp == 0 && (addr.shift == 0 || addr.shift == rows.size) {
            let shifted = i64::from(addr.shift != 0);
            return self.asm.op(rows.indexed, &[reg, base, n(addr.index), shifted]);
        }
        self.address(ADDRESS, Addr { disp: 0, ..addr });
        self.at(rows, reg, ADDRESS.into(), addr.disp.into());
    }

    /// An access at a displacement from a register.
    fn at(&mut self, rows: Access, reg: i64, base: i64, disp: i64) {
        match displacement(disp, rows.size) {
            Displacement::Scaled => self.asm.op(rows.scaled, &[reg, base, disp]),
            Displacement::Unscaled => self.asm.op(rows.unscaled, &[reg, base, disp]),
            Displacement::No => {
                self.asm.add_imm(ADDRESS, base as u8, disp, NUMBER);
                self.asm.op(rows.scaled, &[reg, ADDRESS.into(), 0]);
            }
        }
    }

    /// Computes an address.
    pub(super) fn address(&mut self, dst: u8, addr: Addr) {
        let d = i64::from(dst);
        let (index, shift) = (addr.index, i64::from(addr.shift));
        let from = match (addr.base, index.is_some()) {
            (Base::Reg(base), false) => n(base) as u8,
            (Base::Frame, false) => SP,
            (Base::Reg(base), true) => {
                self.asm.op(Op::AddX, &[d, n(base), n(index), shift]);
                dst
            }
            // The form that takes the stack pointer.
            (Base::Frame, true) => {
                self.asm.op(Op::AddXUxtx, &[d, SP.into(), n(index), shift]);
                dst
            }
            (Base::None, true) => {
                self.asm.op(Op::AddX, &[d, ZERO.into(), n(index), shift]);
                dst
            }
            (Base::None, false) => return self.asm.mov_imm(dst, addr.disp as i64 as u64),
            (Base::Const(id, bytes), _) => {
                debug_assert!(!index.is_some(), "constants are not indexed");
                let label = self.constant(id, bytes.into());
                self.asm.op(Op::Adr, &[d, label.operand()]);
                dst
            }
        };
        if from != dst || addr.disp != 0 {
            self.asm.add_imm(dst, from, addr.disp.into(), NUMBER);
        }
    }

    /// Two full vectors of which the first is here: loads or stores in one instruction.
    pub(super) fn pair(&mut self, row: Op, (first, second): (u8, u8), addr: Addr) -> bool {
        let base = match addr.base {
            Base::Reg(base) if pairs(&addr) => n(base),
            Base::Frame if pairs(&addr) => SP.into(),
            _ => return false,
        };
        self.asm.op(row, &[first.into(), second.into(), base, addr.disp.into()]);
        true
    }
}
