//! Where operands go in a word, and how arrangements of lanes change one.
//!
//! A field takes a number and gives the bits to set. What it means is for tests to spell.

use super::immediate;

/// Lanes of a vector: so many elements of 8, 16, 32 or 64 bits; or a scalar of one of these types,
/// which is also how rows name the type of a single lane.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Arr {
    /// Of instructions that have but one form.
    None,
    B8,
    B16,
    H4,
    H8,
    S2,
    S4,
    D2,
    B,
    H,
    S,
    D,
}

impl Arr {
    /// Whether all 128 bits are meant.
    pub(super) const fn is_full(self) -> bool {
        matches!(self, Self::B16 | Self::H8 | Self::S4 | Self::D2)
    }

    /// Logarithm of the bytes of an element.
    pub(super) const fn size(self) -> u32 {
        match self {
            Self::None | Self::B8 | Self::B16 | Self::B => 0,
            Self::H4 | Self::H8 | Self::H => 1,
            Self::S2 | Self::S4 | Self::S => 2,
            Self::D2 | Self::D => 3,
        }
    }
}

/// How an arrangement stands in a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// There is none.
    Fixed,
    /// Whether the vector is full (`Q`), and the size of elements above bit 22.
    Size,
    /// `Q` alone.
    Half,
    /// `Q`, and the size above bit 10: loads and stores of lists.
    List,
    /// `Q`; a shift holds the size.
    Shifted,
    /// `Q` where it matters; the number of a lane holds the size.
    Lane,
    /// `Q`, and the size as the number of lane 0 in bits 16 to 20.
    Copy,
    /// `Q`, whether elements are of 64 bits (bit 22); halves are a row of their own in the map of
    /// instructions, among those with three operands,
    Float3,
    /// with two,
    Float2,
    /// with an element,
    FloatElement,
    /// and across lanes, where full vectors of 32 bits are all there is.
    FloatAcross,
    /// Whether a pair is of 64 bits.
    FloatPair,
    /// `Q`, and whether the narrower of two floats has 32 bits.
    Convert,
    /// The type of a scalar, above bit 22.
    Type,
}

impl Form {
    /// The word of a row for an arrangement.
    pub(super) const fn apply(self, base: u32, arr: Arr) -> u32 {
        let q = (arr.is_full() as u32) << 30;
        let (size, half) = (arr.size(), arr.size() == 1);
        let double = ((size == 3) as u32) << 22;
        match self {
            Self::Fixed | Self::Lane => base | if matches!(self, Self::Lane) { q } else { 0 },
            Self::Size => base | q | size << 22,
            Self::Half | Self::Shifted => base | q,
            Self::List => base | q | size << 10,
            Self::Copy => base | q | 1 << (16 + size),
            Self::Float3 if half => base & 0x20803800 | 0x0e400400 | q,
            Self::Float2 if half => base | 0x0058_0000 | q,
            Self::FloatElement if half => base & !(1 << 23) | q,
            Self::Float3 | Self::Float2 | Self::FloatElement => base | q | double,
            Self::FloatAcross => base | q | ((size == 2) as u32) << 29,
            Self::FloatPair => base | double,
            Self::Convert => base | q | ((size == 2) as u32) << 22,
            Self::Type => base | [3, 3, 0, 1][size as usize] << 22,
        }
    }
}

/// What register a field names; for tests to spell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum File {
    /// 64 bits; 31 is zero.
    X,
    /// 32 bits.
    W,
    /// 64 bits; 31 is the stack pointer.
    XSp,
    /// 32 bits; 31 is that of the stack pointer.
    WSp,
    /// A scalar in a vector register.
    Scalar(Arr),
    /// A scalar of the type of the row's elements, or of twice that width.
    Element,
    WideElement,
    /// Lanes as the row has them.
    Lanes,
    /// Full vectors of elements twice as wide.
    Wide,
    /// Half as many lanes twice as wide.
    Pairs,
    /// Lanes a quarter, or half, as wide; half as many of these.
    Bytes,
    Halves,
    FewHalves,
    /// Lanes of one arrangement.
    Fixed(Arr),
    /// A vector of which one lane is meant: of the row's type, of that type, or of so many together.
    Lane,
    LaneOf(Arr),
    Group(&'static str),
    /// So many registers of bytes from this one on.
    List(u8),
}

/// An operand's place in a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Field {
    /// Five bits from here on.
    Reg(File, u8),
    /// So many bits from here on, in units of a power of two; with or without a sign.
    Unsigned(u8, u8, u8),
    Signed(u8, u8, u8),
    /// How far an extended operand is shifted: by four at most.
    ExtendShift,
    /// Whether an index is shifted by the logarithm of what is loaded, which is that; printed after
    /// a comma if it says `lsl`.
    Scaled(u8, bool),
    Cond(u8),
    /// A mask of 64 or 32 bits.
    Mask(u32),
    /// Number of a bit, whose highest digit is bit 31.
    Bit,
    /// Instructions from here to a label, in so many bits from there on; bytes, of `adr`.
    Label(u8, u8),
    Address,
    /// A shift of lanes to the left, to the right.
    Left,
    Right,
    /// The number of a lane with the size below it, in bits 16 to 20, 11 to 14.
    Lane5,
    Lane4,
    /// The number of the lane of a factor, by the row's type, or of 32 bits.
    LaneOfFactor,
    LaneOfGroup,
    /// The number of a lane of a load, of this type.
    LaneOfLoad(Arr),
    /// Eight bits in two parts: a number, a mask of bytes, a float.
    Byte,
    ByteMask,
    FloatByte,
    /// A float in eight bits, of a scalar.
    Float,
    /// What to fetch.
    Prefetch,
}

use Arr::{B8, B16, D, D2, H, H4, H8, S, S4};
use Field::{Reg, Scaled, Signed, Unsigned};
use File::{
    Bytes, Element, FewHalves, Fixed, Group, Halves, LaneOf, Lanes, List, Pairs, Scalar, W, WSp,
    Wide, WideElement, X, XSp,
};

impl Field {
    pub(super) const fn is_label(self) -> bool {
        matches!(self, Self::Label(..) | Self::Address)
    }

    /// The bits of a distance to a label, if it reaches.
    pub(super) fn distance(self, bytes: i64) -> Option<u32> {
        let within =
            |value: i64, bits: u8| (-1_i64 << (bits - 1)..1 << (bits - 1)).contains(&value);
        match self {
            Self::Label(at, bits) => {
                debug_assert_eq!(bytes % 4, 0, "an instruction, or a constant that is aligned");
                let value = bytes / 4;
                within(value, bits).then(|| (value as u32 & ((1 << bits) - 1)) << at)
            }
            Self::Address => within(bytes, 21)
                .then_some((bytes as u32 & 3) << 29 | (bytes as u32 >> 2 & 0x7ffff) << 5),
            _ => unreachable!("invariant: only labels are far away"),
        }
    }

    /// The bits of an operand. Labels have none before all is known.
    pub(super) fn bits(self, value: i64, arr: Arr) -> u32 {
        let number = |bits: u8| {
            debug_assert!((0..1 << bits).contains(&value), "{value} in {bits} bits of {self:?}");
            value as u32
        };
        let elements = 8 << arr.size();
        match self {
            Self::Reg(file, at) => {
                // Only half of all registers hold a factor of 16 bits.
                number(if file == File::Lane && at == 16 && arr.size() == 1 { 4 } else { 5 }) << at
            }
            Self::Unsigned(at, bits, scale) => {
                debug_assert_eq!(value & ((1 << scale) - 1), 0, "{value} in units of 2^{scale}");
                debug_assert!((0..1 << bits).contains(&(value >> scale)), "{value} in {self:?}");
                ((value >> scale) as u32) << at
            }
            Self::Signed(at, bits, scale) => {
                debug_assert_eq!(value & ((1 << scale) - 1), 0, "{value} in units of 2^{scale}");
                let value = value >> scale;
                debug_assert!((-1 << (bits - 1)..1 << (bits - 1)).contains(&value), "{self:?}");
                (value as u32 & ((1 << bits) - 1)) << at
            }
            Self::ExtendShift => {
                debug_assert!(value <= 4, "{value} is too far for an extended operand");
                number(3) << 10
            }
            Self::Scaled(..) => number(1) << 12,
            Self::Cond(at) => number(4) << at,
            Self::Mask(width) => {
                let mask = immediate::bitmask(value as u64, width);
                mask.expect("invariant: a mask that can be spelled") << 10
            }
            Self::Bit => (number(6) & 31) << 19 | (number(6) >> 5) << 31,
            Self::Label(..) | Self::Address => 0,
            Self::Left => {
                debug_assert!((0..elements).contains(&value), "{value} of {arr:?}");
                ((elements + value) as u32) << 16
            }
            Self::Right => {
                debug_assert!((1..=elements).contains(&value), "{value} of {arr:?}");
                ((2 * elements - value) as u32) << 16
            }
            Self::Lane5 => (number(4 - arr.size() as u8) << 1 | 1) << arr.size() << 16,
            Self::Lane4 => number(4 - arr.size() as u8) << arr.size() << 11,
            Self::LaneOfFactor => match arr.size() {
                1 => (number(3) & 1) << 20 | (number(3) >> 1 & 1) << 21 | (number(3) >> 2) << 11,
                2 => (number(2) & 1) << 21 | (number(2) >> 1) << 11,
                _ => number(1) << 11,
            },
            Self::LaneOfGroup => (number(2) & 1) << 21 | (number(2) >> 1) << 11,
            Self::LaneOfLoad(lane) => {
                let index = number(4 - lane.size() as u8) << lane.size();
                (index & 7) << 10 | (index >> 3) << 30
            }
            Self::Byte | Self::FloatByte => (number(8) & 31) << 5 | (number(8) >> 5) << 16,
            Self::ByteMask => {
                let mask = immediate::byte_mask(value as u64);
                let mask = u32::from(mask.expect("invariant: bytes of zeros or ones"));
                (mask & 31) << 5 | (mask >> 5) << 16
            }
            Self::Float => number(8) << 13,
            Self::Prefetch => number(5),
        }
    }
}

/// The fields that rows name: the file (`X` and `W` general registers, with an `S` behind where 31 is
/// the stack pointer; `V` lanes, `WV` wider ones; letters of types for scalars), then the place: `D`
/// or `T` in bits 0 to 4, `N` from 5, `M` from 16, `A` or `T2` from 10. Numbers are `U` without and
/// `I` with a sign, then their bits, then `S` and the logarithm of their unit.
pub(super) mod named {
    use super::*;

    pub(in super::super) const ADR: Field = Field::Address;
    pub(in super::super) const BIT6: Field = Field::Bit;
    pub(in super::super) const BITS32: Field = Field::Mask(32);
    pub(in super::super) const BITS64: Field = Field::Mask(64);
    pub(in super::super) const BM: Field = Reg(Bytes, 16);
    pub(in super::super) const BN: Field = Reg(Bytes, 5);
    pub(in super::super) const BRK: Field = Unsigned(5, 16, 0);
    pub(in super::super) const BT: Field = Reg(Scalar(Arr::B), 0);
    pub(in super::super) const COND: Field = Field::Cond(12);
    pub(in super::super) const COND0: Field = Field::Cond(0);
    pub(in super::super) const DN: Field = Reg(Scalar(D), 5);
    pub(in super::super) const DT: Field = Reg(Scalar(D), 0);
    pub(in super::super) const DT2: Field = Reg(Scalar(D), 10);
    pub(in super::super) const ED: Field = Reg(Element, 0);
    pub(in super::super) const ED5: Field = Reg(File::Lane, 0);
    pub(in super::super) const ED5S: Field = Reg(Element, 0);
    pub(in super::super) const EM: Field = Reg(File::Lane, 16);
    pub(in super::super) const EM2H: Field = Reg(Group("2h"), 16);
    pub(in super::super) const EM4B: Field = Reg(Group("4b"), 16);
    pub(in super::super) const EN5: Field = Reg(File::Lane, 5);
    pub(in super::super) const EXT3: Field = Unsigned(11, 3, 0);
    pub(in super::super) const EXT4: Field = Unsigned(11, 4, 0);
    pub(in super::super) const FA: Field = Reg(Element, 10);
    pub(in super::super) const FD: Field = Reg(Element, 0);
    pub(in super::super) const FIMM8S: Field = Field::Float;
    pub(in super::super) const FIMM8V: Field = Field::FloatByte;
    pub(in super::super) const FM: Field = Reg(Element, 16);
    pub(in super::super) const FN: Field = Reg(Element, 5);
    pub(in super::super) const HHM: Field = Reg(FewHalves, 16);
    pub(in super::super) const HHN: Field = Reg(FewHalves, 5);
    pub(in super::super) const HLM: Field = Field::LaneOfFactor;
    pub(in super::super) const HLS: Field = Field::LaneOfGroup;
    pub(in super::super) const HM: Field = Reg(Halves, 16);
    pub(in super::super) const HN: Field = Reg(Halves, 5);
    pub(in super::super) const HN_: Field = Reg(Scalar(H), 5);
    pub(in super::super) const HT: Field = Reg(Scalar(H), 0);
    pub(in super::super) const HW2: Field = Unsigned(21, 1, 4);
    pub(in super::super) const HW4: Field = Unsigned(21, 2, 4);
    pub(in super::super) const I7S2: Field = Signed(15, 7, 2);
    pub(in super::super) const I7S3: Field = Signed(15, 7, 3);
    pub(in super::super) const I7S4: Field = Signed(15, 7, 4);
    pub(in super::super) const I9: Field = Signed(12, 9, 0);
    pub(in super::super) const IMM64: Field = Field::ByteMask;
    pub(in super::super) const IMM8: Field = Field::Byte;
    pub(in super::super) const IMMR5: Field = Unsigned(16, 5, 0);
    pub(in super::super) const IMMR6: Field = Unsigned(16, 6, 0);
    pub(in super::super) const IMMS5: Field = Unsigned(10, 5, 0);
    pub(in super::super) const IMMS6: Field = Unsigned(10, 6, 0);
    pub(in super::super) const L4: Field = Field::Lane4;
    pub(in super::super) const L5: Field = Field::Lane5;
    pub(in super::super) const LABEL14: Field = Field::Label(5, 14);
    pub(in super::super) const LABEL19: Field = Field::Label(5, 19);
    pub(in super::super) const LABEL26: Field = Field::Label(0, 26);
    pub(in super::super) const LEFT: Field = Field::Left;
    pub(in super::super) const LIST1: Field = Reg(List(1), 5);
    pub(in super::super) const LIST2: Field = Reg(List(2), 5);
    pub(in super::super) const LIST3: Field = Reg(List(3), 5);
    pub(in super::super) const LIST4: Field = Reg(List(4), 5);
    pub(in super::super) const LLB: Field = Field::LaneOfLoad(Arr::B);
    pub(in super::super) const LLD: Field = Field::LaneOfLoad(D);
    pub(in super::super) const LLH: Field = Field::LaneOfLoad(H);
    pub(in super::super) const LLS: Field = Field::LaneOfLoad(S);
    pub(in super::super) const LSL0: Field = Scaled(0, true);
    pub(in super::super) const LSL1: Field = Scaled(1, true);
    pub(in super::super) const LSL2: Field = Scaled(2, true);
    pub(in super::super) const LSL3: Field = Scaled(3, true);
    pub(in super::super) const LSL4: Field = Scaled(4, true);
    pub(in super::super) const LSL8H: Field = Unsigned(13, 1, 3);
    pub(in super::super) const LSL8S: Field = Unsigned(13, 2, 3);
    pub(in super::super) const LTB: Field = Reg(LaneOf(Arr::B), 0);
    pub(in super::super) const LTD: Field = Reg(LaneOf(D), 0);
    pub(in super::super) const LTH: Field = Reg(LaneOf(H), 0);
    pub(in super::super) const LTS: Field = Reg(LaneOf(S), 0);
    pub(in super::super) const NZCV: Field = Unsigned(0, 4, 0);
    pub(in super::super) const PRFOP: Field = Field::Prefetch;
    pub(in super::super) const PVD: Field = Reg(Pairs, 0);
    pub(in super::super) const QT: Field = Reg(Scalar(Arr::None), 0);
    pub(in super::super) const QT2: Field = Reg(Scalar(Arr::None), 10);
    pub(in super::super) const RIGHT: Field = Field::Right;
    pub(in super::super) const SC0: Field = Scaled(0, false);
    pub(in super::super) const SC1: Field = Scaled(1, false);
    pub(in super::super) const SC2: Field = Scaled(2, false);
    pub(in super::super) const SC3: Field = Scaled(3, false);
    pub(in super::super) const SC4: Field = Scaled(4, false);
    pub(in super::super) const SH3: Field = Field::ExtendShift;
    pub(in super::super) const SH5: Field = Unsigned(10, 5, 0);
    pub(in super::super) const SH6: Field = Unsigned(10, 6, 0);
    pub(in super::super) const SN: Field = Reg(Scalar(S), 5);
    pub(in super::super) const ST: Field = Reg(Scalar(S), 0);
    pub(in super::super) const ST2: Field = Reg(Scalar(S), 10);
    pub(in super::super) const U12: Field = Unsigned(10, 12, 0);
    pub(in super::super) const U12S0: Field = Unsigned(10, 12, 0);
    pub(in super::super) const U12S1: Field = Unsigned(10, 12, 1);
    pub(in super::super) const U12S2: Field = Unsigned(10, 12, 2);
    pub(in super::super) const U12S3: Field = Unsigned(10, 12, 3);
    pub(in super::super) const U12S4: Field = Unsigned(10, 12, 4);
    pub(in super::super) const U16: Field = Unsigned(5, 16, 0);
    pub(in super::super) const U5: Field = Unsigned(16, 5, 0);
    pub(in super::super) const V16BD: Field = Reg(Fixed(B16), 0);
    pub(in super::super) const V16BM: Field = Reg(Fixed(B16), 16);
    pub(in super::super) const V16BN: Field = Reg(Fixed(B16), 5);
    pub(in super::super) const V2DD: Field = Reg(Fixed(D2), 0);
    pub(in super::super) const V2DN: Field = Reg(Fixed(D2), 5);
    pub(in super::super) const V4HD: Field = Reg(Fixed(H4), 0);
    pub(in super::super) const V4SD: Field = Reg(Fixed(S4), 0);
    pub(in super::super) const V4SN: Field = Reg(Fixed(S4), 5);
    pub(in super::super) const V8BD: Field = Reg(Fixed(B8), 0);
    pub(in super::super) const V8BM: Field = Reg(Fixed(B8), 16);
    pub(in super::super) const V8BN: Field = Reg(Fixed(B8), 5);
    pub(in super::super) const V8HD: Field = Reg(Fixed(H8), 0);
    pub(in super::super) const V8HM: Field = Reg(Fixed(H8), 16);
    pub(in super::super) const V8HN: Field = Reg(Fixed(H8), 5);
    pub(in super::super) const VD: Field = Reg(Lanes, 0);
    pub(in super::super) const VM: Field = Reg(Lanes, 16);
    pub(in super::super) const VN: Field = Reg(Lanes, 5);
    pub(in super::super) const WA: Field = Reg(W, 10);
    pub(in super::super) const WD: Field = Reg(W, 0);
    pub(in super::super) const WED: Field = Reg(WideElement, 0);
    pub(in super::super) const WM: Field = Reg(W, 16);
    pub(in super::super) const WN: Field = Reg(W, 5);
    pub(in super::super) const WSD: Field = Reg(WSp, 0);
    pub(in super::super) const WSN: Field = Reg(WSp, 5);
    pub(in super::super) const WT2: Field = Reg(W, 10);
    pub(in super::super) const WVD: Field = Reg(Wide, 0);
    pub(in super::super) const WVM: Field = Reg(Wide, 16);
    pub(in super::super) const WVN: Field = Reg(Wide, 5);
    pub(in super::super) const XA: Field = Reg(X, 10);
    pub(in super::super) const XD: Field = Reg(X, 0);
    pub(in super::super) const XM: Field = Reg(X, 16);
    pub(in super::super) const XN: Field = Reg(X, 5);
    pub(in super::super) const XSD: Field = Reg(XSp, 0);
    pub(in super::super) const XSN: Field = Reg(XSp, 5);
    pub(in super::super) const XT2: Field = Reg(X, 10);
}
