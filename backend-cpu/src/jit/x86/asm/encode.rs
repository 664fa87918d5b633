//! The three instruction encodings of x86-64: legacy, VEX and EVEX.
//!
//! Every instruction of the crate goes through [`Assembler::legacy`] or [`Assembler::vector`].
//! The latter prefers the shorter VEX form and turns to EVEX when an operand needs it: a register
//! above 15, a write mask, an embedded broadcast, 512 bits, or an instruction that has no VEX form.
//! Source of the layouts: Intel SDM volume 2, chapter 2 (2.3 VEX, 2.7 EVEX).

use super::Assembler;
use super::operand::{Base, Deco, Gpr, Index, Len, Mem, Rm};
use super::vector::{Forms, Row, Tuple, VOp};

/// A mandatory prefix and whether 64-bit operands are meant.
#[derive(Clone, Copy)]
pub(super) struct Legacy {
    pub(super) prefix: Option<u8>,
    pub(super) wide: bool,
    /// An operand is a byte register: numbers 4..8 then need a REX prefix to mean `spl`..`dil`.
    pub(super) bytes: bool,
}

/// The extension bits of a ModRM operand: X and B of the prefixes, bit 4 of a vector index.
#[derive(Clone, Copy)]
struct Ext {
    x: bool,
    b: bool,
    high_index: bool,
}

const fn bit(value: u8, at: u8) -> bool {
    value >> at & 1 != 0
}

impl Ext {
    fn of(rm: Rm) -> Self {
        match rm {
            Rm::Gpr(Gpr(n)) => Self { x: false, b: bit(n, 3), high_index: false },
            Rm::Mask(k) => Self { x: false, b: bit(k.0, 3), high_index: false },
            Rm::Vec(v) => Self { x: bit(v.0, 4), b: bit(v.0, 3), high_index: false },
            Rm::Mem(mem) => {
                let b = matches!(mem.base, Base::Gpr(Gpr(n)) if bit(n, 3));
                match mem.index {
                    Index::None => Self { x: false, b, high_index: false },
                    Index::Gpr(Gpr(n)) => Self { x: bit(n, 3), b, high_index: false },
                    Index::Vec(v) => Self { x: bit(v.0, 3), b, high_index: bit(v.0, 4) },
                }
            }
        }
    }
}

impl Assembler {
    /// Prefixes, opcode bytes (with escapes), ModRM. An immediate of `imm` bytes must follow, so
    /// that addresses relative to the instruction pointer come out right.
    pub(super) fn legacy(&mut self, form: Legacy, opcode: &[u8], reg: u8, rm: Rm, imm: u8) {
        if let Some(prefix) = form.prefix {
            self.code.push(prefix);
        }
        let ext = Ext::of(rm);
        let byte_reg = form.bytes
            && ((4..8).contains(&reg) || matches!(rm, Rm::Gpr(Gpr(n)) if (4..8).contains(&n)));
        let rex = 0x40
            | u8::from(form.wide) << 3
            | u8::from(bit(reg, 3)) << 2
            | u8::from(ext.x) << 1
            | u8::from(ext.b);
        if rex != 0x40 || byte_reg {
            self.code.push(rex);
        }
        self.code.extend_from_slice(opcode);
        self.modrm(reg, rm, 1, imm);
    }

    /// One row of the vector table with its operands: the ModRM `reg` field, the `vvvv` field
    /// (0 where the row has none), the ModRM `rm` operand, decorations, immediate.
    pub(crate) fn vector(
        &mut self,
        op: VOp,
        len: Len,
        (reg, vvvv, rm): (u8, u8, Rm),
        deco: Deco,
        imm: Option<u8>,
    ) {
        let row = op.row();
        debug_assert!(row.accepts(rm), "{op:?} does not take {rm:?}");
        debug_assert_eq!(row.imm, imm.is_some(), "{op:?}");
        let reg = row.digit.unwrap_or(reg);
        let ext = Ext::of(rm);
        let high = reg > 15 || vvvv > 15 || ext.high_index || matches!(rm, Rm::Vec(v) if v.0 > 15);
        let evex = high || deco != Deco::NONE || len == Len::Z || row.forms == Forms::Evex;
        if evex {
            debug_assert!(
                matches!(row.forms, Forms::Evex | Forms::Both),
                "{op:?} has no EVEX form"
            );
            self.evex(row, len, (reg, vvvv), ext, deco);
        } else {
            self.vex(row, len, (reg, vvvv), ext);
        }
        self.code.push(row.opcode);
        let scale = if evex { row.tuple.scale(len, deco.broadcast) } else { 1 };
        self.modrm(reg, rm, scale, u8::from(imm.is_some()));
        self.code.extend(imm);
    }

    fn vex(&mut self, row: &Row, len: Len, (reg, vvvv): (u8, u8), ext: Ext) {
        let l = u8::from(match row.forms {
            Forms::VexL0 => false,
            Forms::VexL1 => true,
            Forms::Vex | Forms::Evex | Forms::Both => len == Len::Y,
        });
        let tail = (!vvvv & 15) << 3 | l << 2 | row.prefix;
        let r = u8::from(!bit(reg, 3)) << 7;
        if !ext.x && !ext.b && row.map == 1 && !row.vex_w {
            self.code.extend_from_slice(&[0xc5, r | tail]);
        } else {
            let x = u8::from(!ext.x) << 6;
            let b = u8::from(!ext.b) << 5;
            let w = u8::from(row.vex_w) << 7;
            self.code.extend_from_slice(&[0xc4, r | x | b | row.map, w | tail]);
        }
    }

    fn evex(&mut self, row: &Row, len: Len, (reg, vvvv): (u8, u8), ext: Ext, deco: Deco) {
        let p0 = u8::from(!bit(reg, 3)) << 7
            | u8::from(!ext.x) << 6
            | u8::from(!ext.b) << 5
            | u8::from(!bit(reg, 4)) << 4
            | row.map;
        let p1 = u8::from(row.evex_w) << 7 | (!vvvv & 15) << 3 | 1 << 2 | row.prefix;
        let p2 = u8::from(deco.zero) << 7
            | (len as u8) << 5
            | u8::from(deco.broadcast) << 4
            | u8::from(!(bit(vvvv, 4) || ext.high_index)) << 3
            | deco.mask;
        self.code.extend_from_slice(&[0x62, p0, p1, p2]);
    }

    /// ModRM, SIB and displacement. One-byte displacements count in units of `scale` bytes.
    fn modrm(&mut self, reg: u8, rm: Rm, scale: u32, imm: u8) {
        let reg = (reg & 7) << 3;
        match rm {
            Rm::Gpr(Gpr(n)) => self.code.push(0xc0 | reg | n & 7),
            Rm::Vec(v) => self.code.push(0xc0 | reg | v.0 & 7),
            Rm::Mask(k) => self.code.push(0xc0 | reg | k.0 & 7),
            Rm::Mem(mem) => self.address(reg, mem, scale, imm),
        }
    }

    fn address(&mut self, reg: u8, mem: Mem, scale: u32, imm: u8) {
        let index = match mem.index {
            Index::None => None,
            Index::Gpr(Gpr(n)) => {
                debug_assert_ne!(n, 4, "rsp cannot be an index");
                Some(n)
            }
            Index::Vec(v) => Some(v.0),
        };
        let sib = |base: u8| mem.shift << 6 | index.map_or(4, |n| n & 7) << 3 | base & 7;
        match mem.base {
            Base::Label(label) => {
                debug_assert!(index.is_none(), "an address relative to rip has no index");
                self.code.push(reg | 5);
                self.fixup(label, mem.disp, imm);
            }
            Base::None => {
                self.code.extend_from_slice(&[reg | 4, sib(5)]);
                self.code.extend_from_slice(&mem.disp.to_le_bytes());
            }
            Base::Gpr(Gpr(base)) => {
                let scale = scale as i32;
                let short = i8::try_from(mem.disp / scale).ok().filter(|_| mem.disp % scale == 0);
                // rbp and r13 as a base always carry a displacement.
                let mode = match short {
                    Some(0) if base & 7 != 5 => 0,
                    Some(_) => 1,
                    None => 2,
                };
                // rsp and r12 as a base always need a SIB byte.
                if index.is_some() || base & 7 == 4 {
                    self.code.extend_from_slice(&[mode << 6 | reg | 4, sib(base)]);
                } else {
                    self.code.push(mode << 6 | reg | base & 7);
                }
                match (mode, short) {
                    (0, _) => {}
                    (1, Some(disp)) => self.code.push(disp as u8),
                    _ => self.code.extend_from_slice(&mem.disp.to_le_bytes()),
                }
            }
        }
    }
}

impl Tuple {
    /// Unit of a one-byte EVEX displacement: the bytes of memory the operand covers.
    fn scale(self, len: Len, broadcast: bool) -> u32 {
        match self {
            Self::Full(element) if broadcast => u32::from(element),
            Self::Half(element) if broadcast => u32::from(element),
            Self::Full(_) => len.bytes(),
            Self::Half(_) => len.bytes() / 2,
            Self::Part(shift) => len.bytes() >> shift,
            Self::Fixed(bytes) => u32::from(bytes),
        }
    }
}
