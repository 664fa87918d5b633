//! One value of any dtype, and the exact rules for converting between dtypes.
//!
//! Conversions are the definition that every backend has to meet: integer to integer wraps,
//! float to integer truncates towards zero and saturates with NaN becoming 0, anything to float
//! rounds to nearest even once, anything to bool is "differs from zero".

use crate::dtype::{Class, DType, Element, by_type};
use half::{bf16, f16};
use num_traits::AsPrimitive;
use std::fmt;

/// One value together with its dtype. Compared and hashed by bits, so `NaN == NaN` and
/// `0.0 != -0.0`.
///
/// ```
/// use zyx_ir::{DType, Scalar};
/// let x = Scalar::from(300i32);
/// assert_eq!(x.cast(DType::U8), Scalar::from(44u8));
/// assert_eq!(Scalar::from(-1.5f32).cast(DType::U8), Scalar::from(0u8));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scalar {
    dtype: DType,
    bits: u64,
}

impl Scalar {
    /// A scalar from the low `dtype.bits()` bits of `bits`.
    #[inline]
    pub const fn from_bits(dtype: DType, bits: u64) -> Scalar {
        let bits = match dtype.bits() {
            64 => bits,
            _ if matches!(dtype, DType::Bool) => (bits & 0xff != 0) as u64,
            n => bits & ((1 << n) - 1),
        };
        Scalar { dtype, bits }
    }

    /// The value `x` rounded or converted to `dtype` by the rules of [`Scalar::cast`].
    pub fn from_f64(dtype: DType, x: f64) -> Scalar {
        match dtype {
            DType::Bool => Scalar::from(x != 0.0),
            DType::F16 => Scalar::from(f16::from_f32(round_to_odd(x))),
            DType::BF16 => Scalar::from(bf16::from_f32(round_to_odd(x))),
            _ => by_type!(dtype, T => Scalar::from(AsPrimitive::<T>::as_(x))),
        }
    }

    /// The integer `x` converted to `dtype`: wrapped for integers, rounded for floats.
    pub fn from_i64(dtype: DType, x: i64) -> Scalar {
        match dtype.class() {
            Class::Float => int_to_float(dtype, x as i128),
            _ => Scalar::from_bits(
                dtype,
                if dtype == DType::Bool { (x != 0) as u64 } else { x as u64 },
            ),
        }
    }

    /// The dtype.
    #[inline]
    pub const fn dtype(self) -> DType {
        self.dtype
    }

    /// The bits, zero-extended.
    #[inline]
    pub const fn bits(self) -> u64 {
        self.bits
    }

    /// The value as `f64`: exact but for 64-bit integers beyond 2^53, which round.
    pub fn to_f64(self) -> f64 {
        by_type!(self.dtype, T => T::from_bits64(self.bits).as_())
    }

    /// The value of an integer or bool, exactly; a float truncates and saturates to `i64`.
    pub fn to_i128(self) -> i128 {
        by_type!(self.dtype, T => T::from_bits64(self.bits).as_(), {
            let whole: i64 = T::from_bits64(self.bits).as_();
            whole.into()
        })
    }

    /// The low 64 bits of [`Scalar::to_i128`] as a signed integer.
    pub fn to_i64(self) -> i64 {
        self.to_i128() as i64
    }

    /// Whether the value differs from zero; NaN does.
    #[inline]
    pub fn to_bool(self) -> bool {
        if self.dtype.is_float() { self.to_f64() != 0.0 } else { self.bits != 0 }
    }

    /// The value converted to another dtype (rules in the module documentation).
    pub fn cast(self, dtype: DType) -> Scalar {
        if dtype == self.dtype {
            return self;
        }
        match (self.dtype.class(), dtype.class()) {
            (_, Class::Bool) => Scalar::from(self.to_bool()),
            (Class::Float, _) => Scalar::from_f64(dtype, self.to_f64()),
            (_, Class::Float) => int_to_float(dtype, self.to_i128()),
            _ => Scalar::from_bits(dtype, self.to_i128() as u64),
        }
    }

    /// The same low bits read as another dtype of equal width.
    pub fn bitcast(self, dtype: DType) -> Scalar {
        debug_assert_eq!(dtype.bits(), self.dtype.bits(), "bitcast keeps the width");
        Scalar::from_bits(dtype, self.bits)
    }

    /// The element of Rust type `T`, converted when the dtype differs.
    pub fn get<T: Element>(self) -> T {
        T::from_bits64(self.cast(T::DTYPE).bits)
    }

    /// The elements in little-endian bytes; a rest shorter than an element is ignored.
    pub fn read_all(dtype: DType, bytes: &[u8]) -> Vec<Scalar> {
        let element = |chunk: &[u8]| {
            let mut wide = [0; 8];
            wide[..chunk.len()].copy_from_slice(chunk);
            Scalar::from_bits(dtype, u64::from_le_bytes(wide))
        };
        bytes.chunks_exact(dtype.size()).map(element).collect()
    }

    /// The smallest value of a dtype: `-inf` for floats, the identity of `max`.
    pub fn lowest(dtype: DType) -> Scalar {
        match dtype.class() {
            Class::Float => Scalar::from_f64(dtype, f64::NEG_INFINITY),
            Class::Signed => Scalar::from_bits(dtype, 1 << (dtype.bits() - 1)),
            _ => Scalar::from_bits(dtype, 0),
        }
    }

    /// The largest value of a dtype: `inf` for floats, the identity of `min`.
    pub fn highest(dtype: DType) -> Scalar {
        match dtype.class() {
            Class::Float => Scalar::from_f64(dtype, f64::INFINITY),
            Class::Signed => Scalar::from_bits(dtype, (1 << (dtype.bits() - 1)) - 1),
            _ => Scalar::from_bits(dtype, u64::MAX),
        }
    }
}

/// `x` as an `f32` rounded to odd: truncated, with the last bit set if anything was cut off.
/// Rounding the result to any float of at most 22 bits equals rounding `x` directly (Boldo and
/// Melquiond 2008); `half` itself ignores the low 32 fraction bits of an `f64`.
fn round_to_odd(x: f64) -> f32 {
    let nearest = x as f32;
    if nearest as f64 == x || x.is_nan() {
        return nearest;
    }
    let bits = nearest.to_bits();
    let truncated = if (nearest as f64).abs() > x.abs() { bits - 1 } else { bits };
    f32::from_bits(truncated | 1)
}

/// Rounds an integer to a float once. `f32` and `f64` are converted directly; for halves forty
/// significant bits and a sticky bit go through `f64` exactly.
fn int_to_float(dtype: DType, x: i128) -> Scalar {
    match dtype {
        DType::F32 => Scalar::from(x as f32),
        DType::F64 => Scalar::from(x as f64),
        _ => {
            let magnitude = x.unsigned_abs();
            let shift = (128 - magnitude.leading_zeros()).saturating_sub(40);
            let sticky = (magnitude & ((1u128 << shift) - 1) != 0) as u128;
            let kept = (magnitude >> shift) << 1 | sticky;
            let value = kept as f64 * 2f64.powi(shift as i32 - 1);
            Scalar::from_f64(dtype, if x < 0 { -value } else { value })
        }
    }
}

impl<T: Element> From<T> for Scalar {
    fn from(x: T) -> Scalar {
        Scalar { dtype: T::DTYPE, bits: x.to_bits64() }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dtype.class() {
            Class::Bool => write!(f, "{}", self.bits != 0),
            Class::Float if self.dtype == DType::F64 => write!(f, "{:?}", self.to_f64()),
            Class::Float => write!(f, "{:?}", self.to_f64() as f32),
            _ => write!(f, "{}", self.to_i128()),
        }
    }
}

impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}{}", self.dtype)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_codes_survive_every_wider_float() {
        for code in 0..=u16::MAX {
            for half in [DType::F16, DType::BF16] {
                let x = Scalar::from_bits(half, code as u64);
                if x.to_f64().is_nan() {
                    assert!(x.cast(DType::F32).to_f64().is_nan());
                    continue;
                }
                for wide in [DType::F32, DType::F64] {
                    assert_eq!(x.cast(wide).cast(half), x, "{half} code {code:#x} through {wide}");
                }
            }
        }
    }

    #[test]
    fn float_to_integer_saturates() {
        assert_eq!(Scalar::from(f32::NAN).cast(DType::I32), Scalar::from(0i32));
        assert_eq!(Scalar::from(1e20f32).cast(DType::I32), Scalar::from(i32::MAX));
        assert_eq!(Scalar::from(-1e20f64).cast(DType::I8), Scalar::from(i8::MIN));
        assert_eq!(Scalar::from(-0.9f32).cast(DType::I64), Scalar::from(0i64));
    }

    #[test]
    fn integers_round_once_to_halves() {
        // 2^24 + 2^13 + 1 lies just above a bf16 tie; rounding through f32 first would lose the 1.
        let x = (1i64 << 40) + (1 << 32) + 1;
        assert_eq!(Scalar::from(x).cast(DType::BF16).to_f64(), ((1i64 << 40) + (1 << 33)) as f64);
        assert_eq!(Scalar::from(2049i32).cast(DType::F16).to_f64(), 2048.0);
        assert_eq!(Scalar::from(-7i8).cast(DType::F16).to_f64(), -7.0);
    }
}
