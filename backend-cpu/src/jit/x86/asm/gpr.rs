//! General-purpose instructions: integer arithmetic, moves, jumps, calls, the stack.
//!
//! 32-bit operations clear the upper half of their destination; that is relied upon for
//! zero-extension. Immediates take the shortest form. Source: Intel SDM volume 2.

use super::Assembler;
use super::encode::Legacy;
use super::operand::{Cond, Gpr, Label, Mem, Rm, Size};

/// The arithmetic group with a common encoding; the number is its position in the opcode map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Alu {
    Add = 0,
    Or = 1,
    And = 4,
    Sub = 5,
    Xor = 6,
    Cmp = 7,
}

/// Shifts; the number is the opcode extension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shift {
    Rol = 0,
    Ror = 1,
    Shl = 4,
    Shr = 5,
    Sar = 7,
}

const B8: Legacy = Legacy { prefix: None, wide: false, bytes: true };
const B32: Legacy = Legacy { prefix: None, wide: false, bytes: false };
const B16: Legacy = Legacy { prefix: Some(0x66), wide: false, bytes: false };

const fn form(size: Size) -> Legacy {
    Legacy { wide: matches!(size, Size::B64), ..B32 }
}

impl Assembler {
    // ---- moves -------------------------------------------------------------------------------

    /// `dst = src`
    pub(crate) fn mov(&mut self, size: Size, dst: Gpr, src: impl Into<Rm>) {
        self.legacy(form(size), &[0x8b], dst.0, src.into(), 0);
    }

    /// `[dst] = src`
    pub(crate) fn mov_store(&mut self, size: Size, dst: Mem, src: Gpr) {
        self.legacy(form(size), &[0x89], src.0, dst.into(), 0);
    }

    /// The low byte of `src` to memory.
    pub(crate) fn mov_store8(&mut self, dst: Mem, src: Gpr) {
        self.legacy(B8, &[0x88], src.0, dst.into(), 0);
    }

    /// The low 16 bits of `src` to memory.
    pub(crate) fn mov_store16(&mut self, dst: Mem, src: Gpr) {
        self.legacy(B16, &[0x89], src.0, dst.into(), 0);
    }

    /// A sign-extended immediate to memory.
    pub(crate) fn mov_store_imm(&mut self, size: Size, dst: Mem, imm: i32) {
        self.legacy(form(size), &[0xc7], 0, dst.into(), 4);
        self.code.extend_from_slice(&imm.to_le_bytes());
    }

    /// Any constant, in the shortest form that leaves the flags alone.
    pub(crate) fn mov_imm(&mut self, dst: Gpr, imm: u64) {
        let rex = 0x40 | dst.0 >> 3;
        if let Ok(imm) = u32::try_from(imm) {
            if rex != 0x40 {
                self.code.push(rex);
            }
            self.code.push(0xb8 | dst.0 & 7);
            self.code.extend_from_slice(&imm.to_le_bytes());
        } else if let Ok(imm) = i32::try_from(imm as i64) {
            self.legacy(form(Size::B64), &[0xc7], 0, dst.into(), 4);
            self.code.extend_from_slice(&imm.to_le_bytes());
        } else {
            self.code.extend_from_slice(&[rex | 8, 0xb8 | dst.0 & 7]);
            self.code.extend_from_slice(&imm.to_le_bytes());
        }
    }

    /// Zero-extends a byte to 64 bits.
    pub(crate) fn movzx8(&mut self, dst: Gpr, src: impl Into<Rm>) {
        self.legacy(B8, &[0x0f, 0xb6], dst.0, src.into(), 0);
    }

    /// Zero-extends 16 bits to 64.
    pub(crate) fn movzx16(&mut self, dst: Gpr, src: impl Into<Rm>) {
        self.legacy(B32, &[0x0f, 0xb7], dst.0, src.into(), 0);
    }

    /// Sign-extends a byte.
    pub(crate) fn movsx8(&mut self, size: Size, dst: Gpr, src: impl Into<Rm>) {
        self.legacy(Legacy { bytes: true, ..form(size) }, &[0x0f, 0xbe], dst.0, src.into(), 0);
    }

    /// Sign-extends 16 bits.
    pub(crate) fn movsx16(&mut self, size: Size, dst: Gpr, src: impl Into<Rm>) {
        self.legacy(form(size), &[0x0f, 0xbf], dst.0, src.into(), 0);
    }

    /// Sign-extends 32 bits to 64.
    pub(crate) fn movsxd(&mut self, dst: Gpr, src: impl Into<Rm>) {
        self.legacy(form(Size::B64), &[0x63], dst.0, src.into(), 0);
    }

    /// `dst = address of src`
    pub(crate) fn lea(&mut self, size: Size, dst: Gpr, src: Mem) {
        self.legacy(form(size), &[0x8d], dst.0, src.into(), 0);
    }

    /// `if cond { dst = src }`
    pub(crate) fn cmov(&mut self, size: Size, cond: Cond, dst: Gpr, src: impl Into<Rm>) {
        self.legacy(form(size), &[0x0f, 0x40 | cond as u8], dst.0, src.into(), 0);
    }

    /// Low byte of `dst` = condition; the other bytes keep their values.
    pub(crate) fn setcc(&mut self, cond: Cond, dst: Gpr) {
        self.legacy(B8, &[0x0f, 0x90 | cond as u8], 0, dst.into(), 0);
    }

    // ---- arithmetic --------------------------------------------------------------------------

    /// `dst op= src` (or only flags for `Cmp`)
    pub(crate) fn alu(&mut self, op: Alu, size: Size, dst: Gpr, src: impl Into<Rm>) {
        self.legacy(form(size), &[(op as u8) << 3 | 3], dst.0, src.into(), 0);
    }

    /// `dst op= imm`, sign-extended
    pub(crate) fn alu_imm(&mut self, op: Alu, size: Size, dst: impl Into<Rm>, imm: i32) {
        if let Ok(short) = i8::try_from(imm) {
            self.legacy(form(size), &[0x83], op as u8, dst.into(), 1);
            self.code.push(short as u8);
        } else {
            self.legacy(form(size), &[0x81], op as u8, dst.into(), 4);
            self.code.extend_from_slice(&imm.to_le_bytes());
        }
    }

    /// Flags of `a & b`
    pub(crate) fn test(&mut self, size: Size, a: Gpr, b: Gpr) {
        self.legacy(form(size), &[0x85], b.0, a.into(), 0);
    }

    /// Flags of the low byte `a & imm`
    pub(crate) fn test8_imm(&mut self, a: Gpr, imm: u8) {
        self.legacy(B8, &[0xf6], 0, a.into(), 1);
        self.code.push(imm);
    }

    /// `dst *= src`
    pub(crate) fn imul(&mut self, size: Size, dst: Gpr, src: impl Into<Rm>) {
        self.legacy(form(size), &[0x0f, 0xaf], dst.0, src.into(), 0);
    }

    /// `dst = src * imm`
    pub(crate) fn imul_imm(&mut self, size: Size, dst: Gpr, src: impl Into<Rm>, imm: i32) {
        if let Ok(short) = i8::try_from(imm) {
            self.legacy(form(size), &[0x6b], dst.0, src.into(), 1);
            self.code.push(short as u8);
        } else {
            self.legacy(form(size), &[0x69], dst.0, src.into(), 4);
            self.code.extend_from_slice(&imm.to_le_bytes());
        }
    }

    /// `rdx = upper half of rax * src` (signed); `rax` gets the lower half.
    pub(crate) fn imul_high(&mut self, src: impl Into<Rm>) {
        self.legacy(form(Size::B64), &[0xf7], 5, src.into(), 0);
    }

    /// `dst = -dst`
    pub(crate) fn neg(&mut self, size: Size, dst: Gpr) {
        self.legacy(form(size), &[0xf7], 3, dst.into(), 0);
    }

    /// `dst = !dst`
    pub(crate) fn not(&mut self, size: Size, dst: Gpr) {
        self.legacy(form(size), &[0xf7], 2, dst.into(), 0);
    }

    /// `rax, rdx = rdx:rax divided by src, remainder` (unsigned)
    pub(crate) fn div(&mut self, size: Size, src: impl Into<Rm>) {
        self.legacy(form(size), &[0xf7], 6, src.into(), 0);
    }

    /// `rax, rdx = rdx:rax divided by src, remainder` (signed, towards zero)
    pub(crate) fn idiv(&mut self, size: Size, src: impl Into<Rm>) {
        self.legacy(form(size), &[0xf7], 7, src.into(), 0);
    }

    /// Sign of `rax` into all of `rdx` (`cdq` for 32 bits, `cqo` for 64)
    pub(crate) fn sign_rdx(&mut self, size: Size) {
        if size == Size::B64 {
            self.code.push(0x48);
        }
        self.code.push(0x99);
    }

    /// `dst = dst shifted by imm`
    pub(crate) fn shift_imm(&mut self, op: Shift, size: Size, dst: Gpr, imm: u8) {
        self.legacy(form(size), &[0xc1], op as u8, dst.into(), 1);
        self.code.push(imm);
    }

    /// `dst = dst shifted by cl`
    pub(crate) fn shift_cl(&mut self, op: Shift, size: Size, dst: Gpr) {
        self.legacy(form(size), &[0xd3], op as u8, dst.into(), 0);
    }

    /// Number of one bits.
    pub(crate) fn popcnt(&mut self, size: Size, dst: Gpr, src: impl Into<Rm>) {
        let form = Legacy { prefix: Some(0xf3), ..form(size) };
        self.legacy(form, &[0x0f, 0xb8], dst.0, src.into(), 0);
    }

    // ---- control -----------------------------------------------------------------------------

    /// Jumps to `label`: two bytes when it lies close behind, five otherwise.
    pub(crate) fn jmp(&mut self, label: Label) {
        if let Some(disp) = self.short_jump(label) {
            self.code.extend_from_slice(&[0xeb, disp]);
        } else {
            self.code.push(0xe9);
            self.fixup(label, 0, 0);
        }
    }

    /// Jumps to `label` if the condition holds.
    pub(crate) fn jcc(&mut self, cond: Cond, label: Label) {
        if let Some(disp) = self.short_jump(label) {
            self.code.extend_from_slice(&[0x70 | cond as u8, disp]);
        } else {
            self.code.extend_from_slice(&[0x0f, 0x80 | cond as u8]);
            self.fixup(label, 0, 0);
        }
    }

    fn short_jump(&self, label: Label) -> Option<u8> {
        let target = self.place(label)?;
        i8::try_from(i64::from(target) - i64::from(self.position()) - 2).ok().map(|d| d as u8)
    }

    /// Calls the address in `target`.
    pub(crate) fn call(&mut self, target: impl Into<Rm>) {
        self.legacy(B32, &[0xff], 2, target.into(), 0);
    }

    /// Returns to the caller.
    pub(crate) fn ret(&mut self) {
        self.code.push(0xc3);
    }

    /// Pushes 64 bits.
    pub(crate) fn push(&mut self, reg: Gpr) {
        self.stack(0x50, reg);
    }

    /// Pops 64 bits.
    pub(crate) fn pop(&mut self, reg: Gpr) {
        self.stack(0x58, reg);
    }

    fn stack(&mut self, opcode: u8, reg: Gpr) {
        if reg.0 > 7 {
            self.code.push(0x41);
        }
        self.code.push(opcode | reg.0 & 7);
    }

    // ---- memory system -----------------------------------------------------------------------

    /// Brings a line into all cache levels.
    pub(crate) fn prefetch(&mut self, mem: Mem) {
        self.legacy(B32, &[0x0f, 0x18], 1, mem.into(), 0);
    }

    /// Orders non-temporal stores before later stores.
    pub(crate) fn sfence(&mut self) {
        self.code.extend_from_slice(&[0x0f, 0xae, 0xf8]);
    }

    /// Ends the use of upper vector halves, so that legacy SSE code runs at full speed after it.
    pub(crate) fn vzeroupper(&mut self) {
        self.code.extend_from_slice(&[0xc5, 0xf8, 0x77]);
    }
}
