//! The dtype table: what an element of a tensor can be.
//!
//! One row per dtype; width, class, name, Rust element type and promotion follow from the row.
//! Nothing here depends on another module of the crate, apart from [`crate::scalar`] being its
//! sibling: a dtype says how bits are laid out, a scalar says what they mean.

use half::{bf16, f16};
use std::fmt;

/// What kind of number a dtype holds. The order is the order of promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Truth values, stored as one byte holding 0 or 1.
    Bool,
    /// Unsigned integers with wrapping arithmetic.
    Unsigned,
    /// Two's complement integers with wrapping arithmetic.
    Signed,
    /// IEEE 754 style binary floating point.
    Float,
}

/// A Rust type that can be an element of a tensor.
///
/// Sealed in practice: the dtype table implements it for every row and nothing else is useful.
///
/// ```
/// use zyx_ir::{DType, Element};
/// assert_eq!(f32::DTYPE, DType::F32);
/// assert_eq!(f32::from_bits64(1.5f32.to_bits64()), 1.5);
/// ```
pub trait Element: Copy + Send + Sync + PartialEq + fmt::Debug + 'static {
    /// The row of the dtype table that describes this type.
    const DTYPE: DType;
    /// The element's bits in the low bytes of a `u64`, the rest zero.
    fn to_bits64(self) -> u64;
    /// The inverse of [`Element::to_bits64`]; high bytes are ignored.
    fn from_bits64(bits: u64) -> Self;
    /// Appends the element's little-endian bytes.
    #[inline]
    fn write_le(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_bits64().to_le_bytes()[..Self::DTYPE.size()]);
    }
    /// Reads one element from exactly `DTYPE.size()` little-endian bytes.
    #[inline]
    fn read_le(bytes: &[u8]) -> Self {
        let mut wide = [0; 8];
        wide[..Self::DTYPE.size()].copy_from_slice(bytes);
        Self::from_bits64(u64::from_le_bytes(wide))
    }
}

macro_rules! dtypes {
    ($($(#[$doc:meta])* $variant:ident $name:literal $rust:ty, $bits:literal, $class:ident,
        $to:expr, $from:expr;)*) => {
        /// The type of a tensor's elements.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum DType { $($(#[$doc])* $variant,)* }

        impl DType {
            /// Every dtype, in table order.
            pub const ALL: &'static [DType] = &[$(DType::$variant),*];

            /// Width in bits; `bool` is stored in eight.
            #[inline]
            pub const fn bits(self) -> usize {
                match self { $(DType::$variant => $bits,)* }
            }

            /// What kind of number this is.
            #[inline]
            pub const fn class(self) -> Class {
                match self { $(DType::$variant => Class::$class,)* }
            }

            /// The printed name, as in `f32`.
            #[inline]
            pub const fn name(self) -> &'static str {
                match self { $(DType::$variant => $name,)* }
            }
        }

        $(impl Element for $rust {
            const DTYPE: DType = DType::$variant;
            #[inline]
            fn to_bits64(self) -> u64 { let to: fn($rust) -> u64 = $to; to(self) }
            #[inline]
            fn from_bits64(bits: u64) -> Self { let from: fn(u64) -> $rust = $from; from(bits) }
        })*
    };
}

dtypes! {
    /// Truth value, one byte.
    Bool "bool" bool, 8, Bool, |x| x as u64, |b| b as u8 != 0;
    /// 8-bit unsigned integer.
    U8 "u8" u8, 8, Unsigned, |x| x as u64, |b| b as u8;
    /// 16-bit unsigned integer.
    U16 "u16" u16, 16, Unsigned, |x| x as u64, |b| b as u16;
    /// 32-bit unsigned integer.
    U32 "u32" u32, 32, Unsigned, |x| x as u64, |b| b as u32;
    /// 64-bit unsigned integer.
    U64 "u64" u64, 64, Unsigned, |x| x, |b| b;
    /// 8-bit signed integer.
    I8 "i8" i8, 8, Signed, |x| x as u8 as u64, |b| b as i8;
    /// 16-bit signed integer.
    I16 "i16" i16, 16, Signed, |x| x as u16 as u64, |b| b as i16;
    /// 32-bit signed integer.
    I32 "i32" i32, 32, Signed, |x| x as u32 as u64, |b| b as i32;
    /// 64-bit signed integer; the dtype of indices.
    I64 "i64" i64, 64, Signed, |x| x as u64, |b| b as i64;
    /// IEEE binary16: 5 exponent bits, 10 fraction bits.
    F16 "f16" f16, 16, Float, |x| x.to_bits() as u64, |b| f16::from_bits(b as u16);
    /// The upper half of a binary32: 8 exponent bits, 7 fraction bits.
    BF16 "bf16" bf16, 16, Float, |x| x.to_bits() as u64, |b| bf16::from_bits(b as u16);
    /// IEEE binary32.
    F32 "f32" f32, 32, Float, |x| x.to_bits() as u64, |b| f32::from_bits(b as u32);
    /// IEEE binary64.
    F64 "f64" f64, 64, Float, |x| x.to_bits(), f64::from_bits;
}

/// An expression for a dtype of which only the value is known: `T` stands for its Rust type, a number (`u8` for
/// `bool`). Integers and floats may have an expression each.
macro_rules! by_type {
    ($dtype:expr, $T:ident => $any:expr) => { by_type!($dtype, $T => $any, $any) };
    ($dtype:expr, $T:ident => $int:expr, $float:expr) => {
        by_type!(@ $dtype, $T, $int, $float; U8 u8, U16 u16, U32 u32, U64 u64, I8 i8, I16 i16, I32 i32, I64 i64;
            F16 half::f16, BF16 half::bf16, F32 f32, F64 f64)
    };
    (@ $dtype:expr, $T:ident, $int:expr, $float:expr; $($i:ident $int_type:ty),*; $($f:ident $float_type:ty),*) => {
        match $dtype {
            $(DType::$i => { type $T = $int_type; $int })*
            $(DType::$f => { type $T = $float_type; $float })*
            DType::Bool => { type $T = u8; $int }
        }
    };
}
pub(crate) use by_type;

impl DType {
    /// Bytes of one stored element.
    #[inline]
    pub const fn size(self) -> usize {
        self.bits() / 8
    }

    /// `f16`, `bf16`, `f32` or `f64`.
    #[inline]
    pub const fn is_float(self) -> bool {
        matches!(self.class(), Class::Float)
    }

    /// A signed or unsigned integer; `bool` is not one.
    #[inline]
    pub const fn is_int(self) -> bool {
        matches!(self.class(), Class::Signed | Class::Unsigned)
    }

    /// A signed integer.
    #[inline]
    pub const fn is_signed(self) -> bool {
        matches!(self.class(), Class::Signed)
    }

    /// The dtype sums and products of this one are accumulated in: halves in `f32`.
    pub const fn accumulator(self) -> DType {
        match self {
            DType::F16 | DType::BF16 => DType::F32,
            _ => self,
        }
    }

    /// The dtype sums of products of two factors of this one are accumulated in: halves in `f32`, integers of 8 bits
    /// in `i32`, whose lower bits are the same sums and for which processors have instructions.
    pub const fn product_accumulator(self) -> DType {
        match self {
            DType::I8 | DType::U8 => DType::I32,
            _ => self.accumulator(),
        }
    }

    /// The dtype of the result of mixing two dtypes, after PyTorch's table: the higher class
    /// wins, within a class the wider; signed with unsigned gives a signed type that holds both
    /// (`u64` with any signed integer gives `i64`); `f16` with `bf16` gives `f32`.
    ///
    /// ```
    /// use zyx_ir::DType;
    /// assert_eq!(DType::U8.promote(DType::I8), DType::I16);
    /// assert_eq!(DType::I64.promote(DType::F16), DType::F16);
    /// assert_eq!(DType::F16.promote(DType::BF16), DType::F32);
    /// ```
    pub const fn promote(self, other: DType) -> DType {
        let (low, high) = if (self.class() as u8) <= (other.class() as u8) {
            (self, other)
        } else {
            (other, self)
        };
        if low.class() as u8 == high.class() as u8 {
            return match (low, high) {
                (DType::F16, DType::BF16) | (DType::BF16, DType::F16) => DType::F32,
                _ if low.bits() > high.bits() => low,
                _ => high,
            };
        }
        match (low.class(), high.class()) {
            (Class::Unsigned, Class::Signed) if low.bits() >= high.bits() => match low.bits() {
                8 => DType::I16,
                16 => DType::I32,
                _ => DType::I64,
            },
            _ => high,
        }
    }

    /// The dtype with this printed name.
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.iter().copied().find(|d| d.name() == name)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A set of dtypes, as a bit mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct DTypeSet(u32);

impl DTypeSet {
    /// The empty set.
    pub const NONE: DTypeSet = DTypeSet(0);
    /// Every dtype.
    pub const ALL: DTypeSet = DTypeSet::of(DType::ALL);

    /// The set of the listed dtypes.
    pub const fn of(dtypes: &[DType]) -> DTypeSet {
        let mut mask = 0;
        let mut i = 0;
        while i < dtypes.len() {
            mask |= 1 << dtypes[i] as u32;
            i += 1;
        }
        DTypeSet(mask)
    }

    /// Whether `dtype` is a member.
    #[inline]
    pub const fn contains(self, dtype: DType) -> bool {
        self.0 & (1 << dtype as u32) != 0
    }

    /// The members of this set that are not in `other`.
    #[inline]
    pub const fn without(self, other: DTypeSet) -> DTypeSet {
        DTypeSet(self.0 & !other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_is_commutative_and_idempotent() {
        for &a in DType::ALL {
            assert_eq!(a.promote(a), a);
            for &b in DType::ALL {
                assert_eq!(a.promote(b), b.promote(a), "{a} with {b}");
            }
        }
    }

    #[test]
    fn names_round_trip() {
        for &dtype in DType::ALL {
            assert_eq!(DType::from_name(dtype.name()), Some(dtype));
        }
        assert_eq!(DType::from_name("float"), None);
    }
}
