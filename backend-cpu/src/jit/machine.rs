//! Machine operations on virtual registers: what lowering writes and the encoder reads.
//!
//! An operation is one instruction, or a short sequence whose form depends on which registers its
//! operands get (a fused multiply-add, a two-operand addition). A [`Reg`] is virtual until
//! allocation and a hardware number after it; [`Inst::visit`] shows every register of an operation
//! with its [`Role`], which is all the allocator knows of it.
//!
//! Two kinds of vector operations stand side by side. [`Inst::Vector`], [`Inst::VecLoad`],
//! [`Inst::VecStore`], [`Inst::SelectVec`] and [`Inst::Fma`] say what to do ([`Vop`]) with lanes of
//! which kind ([`Shape`]): each machine spells them its own way (`x86/select.rs`, `arm/`).
//! [`Inst::Vec`] holds a row of the x86 table: sequences that exist because AVX2 lacks an
//! instruction or because AVX-512 has mask registers. Code for other machines has none of them, and
//! no register of [`Class::Mask`]; before allocation addresses stand there in [`Inst::VecLoad`],
//! [`Inst::VecStore`], [`Inst::Extend`], [`Inst::Store`], [`Inst::Lea`] and [`Inst::Prefetch`] only.
//!
//! Operations are a straight list. Loops are marked by `LoopHead` and `LoopEnd`; everything else
//! jumps forwards. A register may be written several times (accumulators, counters): its life is
//! the whole stretch from the first to the last mention, extended over loops it enters alive.

use super::x86::asm::{Len, VOp};
use zyx_core::DType;
use zyx_core::ir::Type;

/// A register: virtual before allocation, the hardware number after.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Reg(pub(super) u32);

impl Reg {
    /// No register.
    pub(super) const NONE: Self = Self(u32::MAX);

    /// The hardware number, after allocation.
    pub(super) fn number(self) -> u8 {
        debug_assert!(self.0 < 32, "register without a number");
        self.0 as u8
    }

    pub(super) fn is_some(self) -> bool {
        self != Self::NONE
    }
}

/// A position in the code of one function, bound once and used any number of times; numbered from 0
/// by whoever writes the function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Label(pub(crate) u32);

/// Operand size of an integer operation. 32-bit results are zero-extended to 64.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Size {
    B32,
    B64,
}

/// A condition of two integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cond {
    Equal,
    NotEqual,
    /// Signed.
    Less,
    GreaterEqual,
    LessEqual,
    Greater,
    /// Unsigned.
    Below,
    AboveEqual,
    BelowEqual,
    Above,
}

impl Cond {
    /// The condition that holds exactly when this one does not.
    pub(super) const fn not(self) -> Self {
        match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Less => Self::GreaterEqual,
            Self::GreaterEqual => Self::Less,
            Self::LessEqual => Self::Greater,
            Self::Greater => Self::LessEqual,
            Self::Below => Self::AboveEqual,
            Self::AboveEqual => Self::Below,
            Self::BelowEqual => Self::Above,
            Self::Above => Self::BelowEqual,
        }
    }
}

/// Integer arithmetic of two operands in general registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Alu {
    Add,
    Sub,
    And,
    Or,
    Xor,
}

/// Shifts of general registers: left, right with zeros, right with the sign.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shift {
    Shl,
    Shr,
    Sar,
}

/// The three register files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    Gpr,
    Vec,
    Mask,
}

/// A constant in the pool.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct ConstId(pub(super) u32);

/// What a constant is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ConstData {
    /// An element of `size` bytes in all lanes.
    Splat { bits: u64, size: u8 },
    /// Bytes of a whole vector.
    Bytes(Vec<u8>),
}

impl ConstData {
    /// The first `len` bytes of the constant.
    pub(super) fn bytes(&self, len: usize) -> Vec<u8> {
        match self {
            Self::Splat { bits, size } => {
                let size = usize::from(*size);
                bits.to_le_bytes()[..size].iter().copied().cycle().take(len).collect()
            }
            Self::Bytes(bytes) => bytes.iter().copied().cycle().take(len).collect(),
        }
    }
}

/// The fixed part of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Base {
    None,
    Reg(Reg),
    /// The stack frame.
    Frame,
    /// The pool, as a vector of this many bytes.
    Const(ConstId, u8),
}

/// `[base + index * 2^shift + disp]`; the index is a vector for gathers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Addr {
    pub(super) base: Base,
    pub(super) index: Reg,
    pub(super) shift: u8,
    pub(super) disp: i32,
}

impl Addr {
    /// A place in the stack frame.
    pub(super) const fn frame(disp: i32) -> Self {
        Self { base: Base::Frame, index: Reg::NONE, shift: 0, disp }
    }

    /// `[base + disp]`
    pub(super) const fn at(base: Reg, disp: i32) -> Self {
        Self { base: Base::Reg(base), index: Reg::NONE, shift: 0, disp }
    }

    /// The address `bytes` further on.
    pub(super) const fn plus(self, bytes: i32) -> Self {
        Self { disp: self.disp + bytes, ..self }
    }

    fn visit(&mut self, role: Role, f: &mut impl FnMut(&mut Reg, Role)) {
        if let Base::Reg(reg) = &mut self.base {
            f(reg, role);
        }
        if self.index.is_some() {
            f(&mut self.index, role);
        }
    }
}

/// A register or memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    Reg(Reg),
    Mem(Addr),
}

impl Place {
    fn visit(&mut self, role: Role, f: &mut impl FnMut(&mut Reg, Role)) {
        match self {
            Self::Reg(reg) => f(reg, role),
            Self::Mem(addr) => addr.visit(role, f),
        }
    }
}

impl From<Reg> for Place {
    fn from(reg: Reg) -> Self {
        Self::Reg(reg)
    }
}

impl From<Addr> for Place {
    fn from(addr: Addr) -> Self {
        Self::Mem(addr)
    }
}

/// The second operand of integer arithmetic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operand {
    Reg(Reg),
    Mem(Addr),
    Imm(i32),
}

impl Operand {
    fn visit(&mut self, role: Role, f: &mut impl FnMut(&mut Reg, Role)) {
        match self {
            Self::Reg(reg) => f(reg, role),
            Self::Mem(addr) => addr.visit(role, f),
            Self::Imm(_) => {}
        }
    }
}

/// How an operation handles a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// Read before anything is written: may share its register with a result.
    Use,
    /// Read after something may have been written.
    Late,
    /// Read and written.
    Mod,
    /// Written.
    Def,
}

/// What a vector instruction does to its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Effect {
    /// Writes `reg`.
    Def,
    /// Reads and writes `reg`: merge masks, `vpternlog`.
    Mod,
    /// Writes `rm` if that is a register; `reg` is read.
    Store,
    /// Writes `vvvv` (shifts by an immediate); there is no `reg`.
    Shift,
    /// Reads and writes `reg`, and clears the mask operand (`mask`, or `vvvv` of VEX forms).
    Gather,
    /// Reads `reg`, clears the mask.
    Scatter,
}

/// A row of the vector table with operands.
#[derive(Clone, Copy, Debug)]
pub(super) struct VecInst {
    pub(super) op: VOp,
    pub(super) len: Len,
    pub(super) effect: Effect,
    pub(super) reg: Reg,
    pub(super) vvvv: Reg,
    pub(super) rm: Place,
    pub(super) imm: u8,
    pub(super) mask: Reg,
    pub(super) zero: bool,
    pub(super) broadcast: bool,
}

/// An element of a vector. Whether an integer has a sign stands in the operation. Halves are `I16` but
/// where a machine computes in them ([`Has::Halves`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Elem {
    I8,
    I16,
    I32,
    I64,
    F16,
    F32,
    F64,
}

impl Elem {
    /// Bytes.
    pub(super) const fn size(self) -> usize {
        match self {
            Self::I8 => 1,
            Self::I16 | Self::F16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }

    /// The integer of so many bytes.
    pub(super) const fn int(size: usize) -> Self {
        match size {
            1 => Self::I8,
            2 => Self::I16,
            4 => Self::I32,
            _ => Self::I64,
        }
    }

    /// The element of a dtype.
    pub(super) const fn of(dtype: DType) -> Self {
        match dtype {
            DType::F32 => Self::F32,
            DType::F64 => Self::F64,
            _ => Self::int(dtype.size()),
        }
    }

    pub(super) const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }
}

/// The lanes an operation writes: what they are, and how many (a power of two). A float with one
/// lane is a scalar. Lanes of a register beyond these are arbitrary, before and after.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    pub(super) elem: Elem,
    pub(super) lanes: u8,
}

impl Shape {
    pub(super) const fn of(ty: Type) -> Self {
        Self { elem: Elem::of(ty.dtype), lanes: ty.lanes }
    }

    /// Integers of so many bytes.
    pub(super) const fn ints(size: usize, lanes: usize) -> Self {
        Self { elem: Elem::int(size), lanes: lanes as u8 }
    }

    pub(super) const fn bytes(self) -> usize {
        self.elem.size() * self.lanes as usize
    }
}

/// A comparison of lanes, for [`Vop::Compare`]. NaN is not equal to anything, and neither less nor
/// greater.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Compare {
    Equal,
    NotEqual,
    /// Of floats and of signed integers.
    Less,
    LessEqual,
    /// Of unsigned integers.
    Below,
    BelowEqual,
}

/// What an operation does to each lane. The shape that goes with it is that of the result, unless
/// told otherwise. Operands are `a` and `b`; an operation with one operand has it in `b`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Vop {
    // ---- two operands
    Add,
    Sub,
    /// Integers: the low half of the product.
    Mul,
    Div,
    And,
    Or,
    Xor,
    /// The complement of `a`, and `b`.
    AndNot,
    MaxS,
    MaxU,
    MinS,
    MinU,
    /// The larger float; NaN if either is (machines with [`Has::NanExtremum`]).
    MaxNan,
    MinNan,
    /// Shifts by a count for each lane. Where [`Has::AnyShiftCount`] holds, the width or more gives 0 or
    /// the sign; elsewhere lowering sees to it that counts are at most the width, which must give the same.
    Shl,
    ShrU,
    ShrS,
    /// All ones in lanes where the comparison holds, zeros elsewhere; the shape is that of the operands.
    Compare(Compare),
    /// The low halves' product, unsigned: lanes twice as wide as those of the operands, which are
    /// the first of their registers.
    MulWide,
    /// The first lanes of both in turn: a0 b0 a1 b1 …
    ZipLow,
    /// The last lanes of both in turn.
    ZipHigh,
    /// Lanes 0, 2, 4 … of `a`, then of `b`.
    EvenLanes,

    // ---- one operand
    Neg,
    Abs,
    Not,
    Sqrt,
    /// To the nearest integer, ties to even.
    Round,
    Floor,
    Ceil,
    Trunc,
    /// Shifts of integers by a number: left by 0, right by 1 (x86: 0), to the width less one.
    ShlBy(u8),
    ShrUBy(u8),
    ShrSBy(u8),
    /// Each integer shifted right by a number, of which the low half is kept; the operand's lanes are
    /// twice as wide as the result's.
    NarrowBy(u8),
    /// Integers half as wide as the result's, extended. They are the first of their register.
    WidenS,
    WidenU,
    /// The low half of each integer; the operand's lanes are twice as wide as the result's.
    Narrow,
    /// As [`Vop::Narrow`], but what does not fit becomes the nearest that does: signed to signed,
    /// unsigned to unsigned.
    NarrowSatS,
    NarrowSatU,
    /// The sums of two neighbours each, unsigned; lanes twice as wide as the operand's.
    PairSumU,
    /// The halves of each lane exchanged.
    SwapHalves,
    /// Integers of the same width, rounded to floats.
    FloatFromS,
    FloatFromU,
    /// A 32- or 64-bit integer in the general register `b`, rounded to a float once.
    FloatFromGprS(Size),
    /// Unsigned, of 64 bits.
    FloatFromGprU,
    /// Floats of the same width, truncated and saturated to integers; NaN is 0
    /// (machines with [`Has::SaturatingConversions`]).
    IntSFromFloat,
    IntUFromFloat,
    /// `f64` of the first lanes, which are `f32`.
    DoubleFromSingle,
    SingleFromDouble,
    /// `f32` of `f16` and back.
    SingleFromHalf,
    HalfFromSingle,
    /// The first lane of `b` in all lanes.
    Broadcast,
    /// The low bits of the general register `b` in all lanes.
    BroadcastGpr,
    /// The low bits of the general register `b` in the first lane of 4 or 8 bytes; the rest is zero.
    FromGpr,
    /// The first lane, of 4 or 8 bytes, in the general register `dst`, zero-extended.
    ToGpr,
    /// The bytes of `b` from this one on; what follows its last is arbitrary.
    BytesFrom(u8),
}

/// What an instruction set may have or lack ([`Isa::has`](super::Isa::has)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Has {
    /// Products, extrema, right shifts with the sign, magnitudes of 64-bit lanes.
    MulI64,
    MaxI64,
    ShrI64,
    AbsI64,
    /// Products of bytes.
    MulI8,
    /// Shifts of 8- and 16-bit lanes.
    NarrowShifts,
    /// Shifts by lanes that take any count.
    AnyShiftCount,
    /// Extrema of floats that give NaN if either operand is.
    NanExtremum,
    /// Negation, magnitude and complement without a constant.
    SignOps,
    /// All comparisons of lanes of integers.
    IntCompare,
    /// [`Vop::IntSFromFloat`] and the like.
    SaturatingConversions,
    /// A general register in all lanes.
    BroadcastGpr,
    /// Gathers.
    Gather,
    /// Stores past the caches.
    Streaming,
    /// Arithmetic and comparisons of `f16`.
    Halves,
}

/// How vectors of bools are held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bools {
    /// A bit for each lane, in a register file of their own ([`Class::Mask`]).
    MaskRegister,
    /// Elements that are all ones or all zeros, in vector registers.
    WideLanes,
}

/// A comparison of integers as a condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Test {
    pub(super) size: Size,
    pub(super) cond: Cond,
    pub(super) a: Reg,
    pub(super) b: Operand,
}

impl Test {
    /// The opposite condition.
    pub(super) const fn not(self) -> Self {
        Self { cond: self.cond.not(), ..self }
    }

    /// Whether a register holding 0 or 1 holds 1.
    pub(super) const fn is_true(reg: Reg) -> Self {
        Self { size: Size::B32, cond: Cond::NotEqual, a: reg, b: Operand::Imm(0) }
    }

    fn visit(&mut self, f: &mut impl FnMut(&mut Reg, Role)) {
        f(&mut self.a, Role::Use);
        self.b.visit(Role::Use, f);
    }
}

/// How a narrow integer becomes a 64-bit register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Extend {
    Zero8,
    Zero16,
    Zero32,
    /// To 32 bits; the upper half is zero.
    Sign8,
    /// To 32 bits; the upper half is zero.
    Sign16,
    /// To 64 bits.
    Sign32,
    None64,
}

impl Extend {
    /// Bytes that are extended.
    pub(super) const fn bytes(self) -> u8 {
        match self {
            Self::Zero8 | Self::Sign8 => 1,
            Self::Zero16 | Self::Sign16 => 2,
            Self::Zero32 | Self::Sign32 => 4,
            Self::None64 => 8,
        }
    }
}

/// One operation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Inst {
    /// The arguments of the kernel.
    Entry {
        args: Reg,
        lo: Reg,
        hi: Reg,
        scratch: Reg,
    },
    /// The register's life begins; its value does not matter.
    Undef {
        dst: Reg,
    },
    /// A row of the x86 table.
    Vec(VecInst),
    /// `dst = op(a, b)` or, with `a` being [`Reg::NONE`], `op(b)`. Only x86 may have `b` in memory
    /// ([`Isa::folds_memory`](super::Isa::folds_memory)).
    Vector {
        op: Vop,
        shape: Shape,
        dst: Reg,
        a: Reg,
        b: Place,
    },
    /// Loads 1, 2, 4, 8, 16, 32 or 64 bytes; the rest of the register is zero.
    VecLoad {
        dst: Reg,
        addr: Addr,
        bytes: u8,
    },
    /// Stores the first so many bytes.
    VecStore {
        addr: Addr,
        src: Reg,
        bytes: u8,
    },
    /// `dst = mask ? b : a`; elements of the mask are all ones or zeros.
    SelectVec {
        shape: Shape,
        dst: Reg,
        mask: Reg,
        a: Reg,
        b: Place,
    },
    /// `dst = a * b + c`, rounded once; at most one of `b`, `c` is memory.
    Fma {
        shape: Shape,
        dst: Reg,
        a: Reg,
        b: Place,
        c: Place,
    },
    /// A whole vector register.
    MoveVec {
        dst: Reg,
        src: Reg,
    },
    /// A mask register.
    MoveMask {
        dst: Reg,
        src: Reg,
    },
    /// A vector constant, as long as a register; costs nothing if it ends up as a memory operand.
    Const {
        dst: Reg,
        id: ConstId,
    },
    Move {
        dst: Reg,
        src: Reg,
    },
    Imm {
        dst: Reg,
        value: u64,
    },
    Alu {
        op: Alu,
        size: Size,
        dst: Reg,
        a: Reg,
        b: Operand,
    },
    Mul {
        size: Size,
        dst: Reg,
        a: Reg,
        b: Operand,
    },
    /// The upper half of a signed 64-bit product.
    MulHigh {
        dst: Reg,
        a: Reg,
        b: Reg,
    },
    Lea {
        dst: Reg,
        addr: Addr,
    },
    Shift {
        op: Shift,
        size: Size,
        dst: Reg,
        a: Reg,
        by: u8,
    },
    /// Shift by a register, modulo the width.
    ShiftBy {
        op: Shift,
        size: Size,
        dst: Reg,
        a: Reg,
        by: Reg,
    },
    Neg {
        size: Size,
        dst: Reg,
        a: Reg,
    },
    Not {
        size: Size,
        dst: Reg,
        a: Reg,
    },
    Popcnt {
        dst: Reg,
        a: Reg,
    },
    /// Quotient or remainder with the IR's values for division by zero and overflow.
    Div {
        size: Size,
        signed: bool,
        rem: bool,
        dst: Reg,
        a: Reg,
        b: Reg,
    },
    /// Extends a register, or loads from memory.
    Extend {
        kind: Extend,
        dst: Reg,
        src: Place,
    },
    /// Stores the low 2^`width` bytes.
    Store {
        width: u8,
        addr: Addr,
        src: Reg,
    },
    SetCc {
        dst: Reg,
        test: Test,
    },
    /// `dst = test ? x : y`
    Select {
        size: Size,
        dst: Reg,
        test: Test,
        x: Reg,
        y: Reg,
    },
    Branch {
        test: Test,
        label: Label,
    },
    Jump {
        label: Label,
    },
    Label {
        label: Label,
    },
    LoopHead {
        label: Label,
    },
    LoopEnd,
    /// Calls `target` with the addresses of four places in the frame and a description.
    Call {
        target: usize,
        buffers: [i32; 4],
        description: u64,
    },
    /// Asks for the cache line at an address, which need not be valid.
    Prefetch {
        addr: Addr,
    },
    /// Orders non-temporal stores before what follows the kernel.
    Fence,
}

impl Inst {
    /// Shows every register to `f`, reads before writes.
    pub(super) fn visit(&mut self, mut f: impl FnMut(&mut Reg, Role)) {
        use Role::{Def, Late, Use};
        let f = &mut f;
        match self {
            Self::Entry { args, lo, hi, scratch } => {
                // In the order that lets the first two stay where they arrive.
                for reg in [lo, args, hi, scratch] {
                    if reg.is_some() {
                        f(reg, Def);
                    }
                }
            }
            Self::Undef { dst } | Self::Const { dst, .. } | Self::Imm { dst, .. } => f(dst, Def),
            Self::Vec(it) => it.visit(f),
            Self::Vector { dst, a, b, .. } => {
                if a.is_some() {
                    f(a, Use);
                }
                b.visit(Use, f);
                f(dst, Def);
            }
            Self::VecLoad { dst, addr, .. } => {
                addr.visit(Use, f);
                f(dst, Def);
            }
            Self::SelectVec { dst, a, b, mask, .. } => {
                f(mask, Use);
                f(a, Use);
                b.visit(Use, f);
                f(dst, Def);
            }
            Self::Fma { dst, a, b, c, .. } => {
                f(a, Use);
                b.visit(Use, f);
                c.visit(Use, f);
                f(dst, Def);
            }
            Self::MoveVec { dst, src } | Self::MoveMask { dst, src } | Self::Move { dst, src } => {
                f(src, Use);
                f(dst, Def);
            }
            Self::Alu { op, dst, a, b, .. } => {
                f(a, Use);
                let exchangeable = *op != Alu::Sub && matches!(b, Operand::Reg(_));
                b.visit(if exchangeable { Use } else { Late }, f);
                f(dst, Def);
            }
            Self::Mul { dst, a, b, .. } => {
                f(a, Use);
                b.visit(if matches!(b, Operand::Reg(_)) { Use } else { Late }, f);
                f(dst, Def);
            }
            Self::MulHigh { dst, a, b } | Self::Div { dst, a, b, .. } => {
                f(b, Use);
                f(a, Use);
                f(dst, Def);
            }
            Self::Lea { dst, addr } => {
                addr.visit(Use, f);
                f(dst, Def);
            }
            Self::Shift { dst, a, .. }
            | Self::Neg { dst, a, .. }
            | Self::Not { dst, a, .. }
            | Self::Popcnt { dst, a } => {
                f(a, Use);
                f(dst, Def);
            }
            Self::ShiftBy { dst, a, by, .. } => {
                f(a, Use);
                f(by, Use);
                f(dst, Def);
            }
            Self::Extend { dst, src, .. } => {
                src.visit(Use, f);
                f(dst, Def);
            }
            Self::Prefetch { addr } => addr.visit(Use, f),
            Self::Store { addr, src, .. } | Self::VecStore { addr, src, .. } => {
                addr.visit(Use, f);
                f(src, Use);
            }
            Self::SetCc { dst, test } => {
                test.visit(f);
                f(dst, Def);
            }
            Self::Select { dst, test, x, y, .. } => {
                test.visit(f);
                f(x, Use);
                f(y, Use);
                f(dst, Def);
            }
            Self::Branch { test, .. } => test.visit(f),
            Self::Jump { .. } | Self::Label { .. } | Self::LoopHead { .. } | Self::LoopEnd => {}
            Self::Call { .. } | Self::Fence => {}
        }
    }

    /// A source whose register the result would best take over.
    pub(super) fn preference(&self) -> Option<(Reg, Reg)> {
        match *self {
            Self::MoveVec { dst, src } | Self::MoveMask { dst, src } | Self::Move { dst, src } => {
                Some((dst, src))
            }
            Self::Alu { dst, a, .. } | Self::Mul { dst, a, .. } | Self::Shift { dst, a, .. } => {
                Some((dst, a))
            }
            Self::Neg { dst, a, .. } | Self::Not { dst, a, .. } => Some((dst, a)),
            Self::Fma { dst, a, c, .. } => match c {
                Place::Reg(c) => Some((dst, c)),
                Place::Mem(_) => Some((dst, a)),
            },
            Self::Select { dst, y, .. } => Some((dst, y)),
            _ => None,
        }
    }
}

impl VecInst {
    /// An instruction that writes `reg`, still without it.
    pub(super) fn new(op: VOp, len: Len, rm: impl Into<Place>) -> Self {
        Self {
            op,
            len,
            effect: Effect::Def,
            reg: Reg::NONE,
            vvvv: Reg::NONE,
            rm: rm.into(),
            imm: 0,
            mask: Reg::NONE,
            zero: false,
            broadcast: false,
        }
    }

    fn visit(&mut self, f: &mut impl FnMut(&mut Reg, Role)) {
        use Role::{Def, Late, Mod, Use};
        let gather = matches!(self.effect, Effect::Gather | Effect::Scatter);
        if self.mask.is_some() {
            f(&mut self.mask, if gather { Mod } else { Use });
        }
        if self.vvvv.is_some() && self.effect != Effect::Shift {
            f(&mut self.vvvv, if gather { Mod } else { Use });
        }
        match (&mut self.rm, self.effect) {
            (Place::Reg(reg), Effect::Store) => {
                f(&mut self.reg, Use);
                f(reg, Def);
                return;
            }
            (rm, _) => rm.visit(if gather { Late } else { Use }, f),
        }
        match self.effect {
            Effect::Def => f(&mut self.reg, Def),
            Effect::Mod | Effect::Gather => f(&mut self.reg, Mod),
            Effect::Store | Effect::Scatter => f(&mut self.reg, Use),
            Effect::Shift => f(&mut self.vvvv, Def),
        }
    }
}
