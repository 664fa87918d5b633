//! Operands of x86-64 instructions: registers of the three files, memory, lengths and decorations.
//!
//! Registers are newtyped numbers, so that a general register cannot be passed where a vector
//! register is meant. A [`Rm`] is what the ModRM byte can name: a register of any file or memory.
//! Which kinds an instruction accepts is stated in its table row and asserted when it is encoded.

pub(crate) use crate::jit::machine::{Label, Size};

/// A general-purpose register, `rax` = 0 .. `r15` = 15 (hardware numbers).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Gpr(pub(crate) u8);

impl Gpr {
    pub(crate) const RAX: Self = Self(0);
    pub(crate) const RCX: Self = Self(1);
    pub(crate) const RDX: Self = Self(2);
    pub(crate) const RSP: Self = Self(4);
    pub(crate) const RSI: Self = Self(6);
    pub(crate) const RDI: Self = Self(7);
}

/// A vector register, 0..32; the instruction's [`Len`] says how much of it is meant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct VecReg(pub(crate) u8);

/// A mask register `k0`..`k7`. As a write mask `k0` cannot be named: it means "no mask".
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct MaskReg(pub(crate) u8);

/// Vector length.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Len {
    X,
    Y,
    Z,
}

impl Len {
    /// Bytes of a full vector.
    pub(crate) const fn bytes(self) -> u32 {
        16 << self as u32
    }
}

/// Base of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Base {
    None,
    Gpr(Gpr),
    /// Relative to the instruction pointer: code or constant pool.
    Label(Label),
}

/// Index of an address; a vector for gathers and scatters only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Index {
    None,
    Gpr(Gpr),
    Vec(VecReg),
}

/// `[base + index * 2^shift + disp]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mem {
    pub(crate) base: Base,
    pub(crate) index: Index,
    pub(crate) shift: u8,
    pub(crate) disp: i32,
}

impl Mem {
    /// `[base + disp]`
    pub(crate) const fn at(base: Gpr, disp: i32) -> Self {
        Self { base: Base::Gpr(base), index: Index::None, shift: 0, disp }
    }

    /// `[base + index * 2^shift + disp]`
    pub(crate) const fn indexed(base: Gpr, index: Gpr, shift: u8, disp: i32) -> Self {
        Self { base: Base::Gpr(base), index: Index::Gpr(index), shift, disp }
    }

    /// The bytes at a label.
    pub(crate) const fn label(label: Label) -> Self {
        Self { base: Base::Label(label), index: Index::None, shift: 0, disp: 0 }
    }
}

/// What a ModRM byte can name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rm {
    Gpr(Gpr),
    Vec(VecReg),
    Mask(MaskReg),
    Mem(Mem),
}

impl From<Gpr> for Rm {
    fn from(reg: Gpr) -> Self {
        Self::Gpr(reg)
    }
}
impl From<VecReg> for Rm {
    fn from(reg: VecReg) -> Self {
        Self::Vec(reg)
    }
}
impl From<MaskReg> for Rm {
    fn from(reg: MaskReg) -> Self {
        Self::Mask(reg)
    }
}
impl From<Mem> for Rm {
    fn from(mem: Mem) -> Self {
        Self::Mem(mem)
    }
}

/// EVEX decorations of a vector instruction. The default is none of them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Deco {
    /// Write mask, 1..=7; 0 is no mask.
    pub(crate) mask: u8,
    /// Masked-off lanes become zero instead of keeping the destination.
    pub(crate) zero: bool,
    /// The memory operand is one element, repeated into all lanes.
    pub(crate) broadcast: bool,
}

impl Deco {
    pub(crate) const NONE: Self = Self { mask: 0, zero: false, broadcast: false };

    pub(crate) const fn merge(mask: MaskReg) -> Self {
        Self { mask: mask.0, zero: false, broadcast: false }
    }

    pub(crate) const fn zero(mask: MaskReg) -> Self {
        Self { mask: mask.0, zero: true, broadcast: false }
    }

    pub(crate) const fn broadcast(self) -> Self {
        Self { broadcast: true, ..self }
    }
}

/// Condition of `jcc`, `setcc` and `cmovcc`, by hardware number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cond {
    Below = 2,
    AboveEqual = 3,
    Equal = 4,
    NotEqual = 5,
    BelowEqual = 6,
    Above = 7,
    Sign = 8,
    NotSign = 9,
    Parity = 10,
    NotParity = 11,
    Less = 12,
    GreaterEqual = 13,
    LessEqual = 14,
    Greater = 15,
}
