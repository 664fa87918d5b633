//! The oracle: arrays of exact or interval values, evaluated eagerly and obviously.
//!
//! Integers and bools are exact (`i128`, wrapped to the dtype). A float is an interval of every
//! value a conforming device may have at that point; inputs are points, and an op on points whose
//! row grants no error gives a point again. Where a discontinuity makes the outcome depend on
//! permitted rounding (a comparison of overlapping intervals, an overflow that one order of
//! summation has and another has not) the value is [`Val::Unknown`] and agrees with anything.
//!
//! Nothing here uses the library's arithmetic: rounding is [`tolerance::round`], functions are
//! the standard library's, encoding is written out below.

pub mod arithmetic;
pub mod flush;
pub mod movement;
pub mod reduce;

pub use arithmetic::{binary, binary_dtype, cast, unary, unary_dtype};

use crate::tolerance;
use std::fmt;
use zyx_core::{Class, DType, Device, Result, Tensor};

/// One expected element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Val {
    /// An integer or bool.
    Int(i128),
    /// Any float of the closed interval; NaN at both ends for NaN, `-0.0` and `0.0` for a zero
    /// whose sign is not certain.
    Real(f64, f64),
    /// Depends on permitted rounding.
    Unknown,
}

impl Val {
    /// A zero of either sign, as sums and extremes may give.
    pub const ZERO: Val = Val::Real(-0.0, 0.0);

    /// One float.
    pub fn point(x: f64) -> Val {
        Val::Real(x, x)
    }

    /// A float that may be off by `error` to either side.
    pub fn about(dtype: DType, x: f64, error: f64) -> Val {
        Val::interval(dtype, x - error, x + error)
    }

    /// The floats of `dtype` between two real numbers; unknown if that includes infinity besides
    /// finite numbers, or if only one end is a number.
    pub fn interval(dtype: DType, low: f64, high: f64) -> Val {
        let (low, high) = (tolerance::round(dtype, low), tolerance::round(dtype, high));
        match (low.is_nan(), high.is_nan()) {
            (true, true) => Val::point(f64::NAN),
            (false, false) => Val::Real(low, high),
            _ => Val::Unknown,
        }
    }

    /// The value of an integer or point as `f64`; `None` if it is not certain.
    pub fn certain(self) -> Option<f64> {
        match self {
            Val::Int(i) => Some(i as f64),
            Val::Real(low, high) if low == high || low.is_nan() => Some(low),
            _ => None,
        }
    }

    /// Whether a device may give `got` here. Signs of zeros count only if `signed`.
    pub fn allows(self, got: Val, signed: bool) -> bool {
        match (self, got) {
            (Val::Unknown, _) => true,
            (Val::Int(want), Val::Int(got)) => want == got,
            (Val::Real(low, high), Val::Real(got, _)) => {
                if low.is_nan() || got.is_nan() {
                    return low.is_nan() && got.is_nan();
                }
                let sign = low != 0.0 || low.is_sign_negative() == got.is_sign_negative();
                let sign = !signed || sign || !is_point(low, high);
                low <= got && got <= high && sign
            }
            _ => false,
        }
    }
}

/// Whether an interval is one value, sign of zero included.
fn is_point(low: f64, high: f64) -> bool {
    low.to_bits() == high.to_bits() || low.is_nan()
}

impl fmt::Display for Val {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Val::Int(i) => write!(f, "{i}"),
            Val::Real(low, high) if low == high || low.is_nan() => write!(f, "{low:e}"),
            Val::Real(low, high) => write!(f, "{low:e} ..= {high:e}"),
            Val::Unknown => f.write_str("anything"),
        }
    }
}

/// Expected elements in row-major order.
#[derive(Clone, Debug)]
pub struct Array {
    /// The extents.
    pub dims: Vec<usize>,
    /// The type of the elements.
    pub dtype: DType,
    /// The elements.
    pub data: Vec<Val>,
}

/// Wraps an integer to an integer dtype; a bool is "differs from zero".
pub fn wrap(dtype: DType, x: i128) -> i128 {
    let bits = dtype.bits() as u32;
    match dtype.class() {
        Class::Bool => (x != 0) as i128,
        Class::Unsigned => x & ((1i128 << bits) - 1),
        _ => (x << (128 - bits)) >> (128 - bits),
    }
}

/// The smallest and largest integer of an integer dtype.
pub fn int_range(dtype: DType) -> (i128, i128) {
    let bits = dtype.bits() as u32;
    match dtype.class() {
        Class::Bool => (0, 1),
        Class::Unsigned => (0, (1 << bits) - 1),
        _ => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
    }
}

impl Array {
    /// An array of given elements.
    ///
    /// # Panics
    /// When their number is not that of the extents.
    pub fn new(dtype: DType, dims: &[usize], data: Vec<Val>) -> Array {
        assert_eq!(dims.iter().product::<usize>(), data.len(), "extents {dims:?}");
        Array { dims: dims.to_vec(), dtype, data }
    }

    /// An array of floats, rounded to `dtype`.
    pub fn reals(dtype: DType, dims: &[usize], data: &[f64]) -> Array {
        let point = |&x: &f64| Val::point(tolerance::round(dtype, x));
        Array::new(dtype, dims, data.iter().map(point).collect())
    }

    /// An array of integers, wrapped to `dtype`.
    pub fn ints(dtype: DType, dims: &[usize], data: &[i64]) -> Array {
        let int = |&x: &i64| Val::Int(wrap(dtype, x as i128));
        Array::new(dtype, dims, data.iter().map(int).collect())
    }

    /// An array of small whole numbers in any dtype.
    pub fn whole(dtype: DType, dims: &[usize], data: &[i64]) -> Array {
        if dtype.is_float() {
            let data: Vec<f64> = data.iter().map(|&x| x as f64).collect();
            Array::reals(dtype, dims, &data)
        } else {
            Array::ints(dtype, dims, data)
        }
    }

    /// Every element the same.
    pub fn full(dtype: DType, dims: &[usize], x: Val) -> Array {
        Array::new(dtype, dims, vec![x; dims.iter().product()])
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.data.len()
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// The elements converted one by one.
    pub fn map(&self, dtype: DType, f: impl FnMut(Val) -> Val) -> Array {
        Array { dims: self.dims.clone(), dtype, data: self.data.iter().copied().map(f).collect() }
    }

    /// The element at an index tuple.
    pub fn at(&self, index: &[usize]) -> Val {
        self.data[self.flat(index)]
    }

    /// The position of an index tuple in row-major order.
    pub fn flat(&self, index: &[usize]) -> usize {
        index.iter().zip(&self.dims).fold(0, |flat, (&i, &d)| flat * d + i)
    }

    /// The elements as certain floats.
    ///
    /// # Panics
    /// When one is not certain.
    pub fn floats(&self) -> Vec<f64> {
        let certain = |x: &Val| x.certain().expect("invariant: inputs are certain");
        self.data.iter().map(certain).collect()
    }

    /// A tensor of these elements, which are certain.
    ///
    /// # Errors
    /// When the device has no memory left.
    ///
    /// # Panics
    /// When an element is not certain.
    pub fn tensor(&self, device: &Device) -> Result<Tensor> {
        let mut bytes = Vec::with_capacity(self.numel() * self.dtype.size());
        for &x in &self.data {
            let bits = encode(self.dtype, x);
            bytes.extend_from_slice(&bits.to_le_bytes()[..self.dtype.size()]);
        }
        Tensor::from_bytes(&bytes, self.dtype, self.dims.clone(), device)
    }

    /// The elements a tensor has.
    ///
    /// # Errors
    /// When the device fails.
    pub fn read(tensor: &Tensor) -> Result<Array> {
        let (dtype, dims) = (tensor.dtype(), tensor.shape().dims());
        let bytes = tensor.to_bytes()?;
        let element = |chunk: &[u8]| {
            let mut wide = [0; 8];
            wide[..chunk.len()].copy_from_slice(chunk);
            decode(dtype, u64::from_le_bytes(wide))
        };
        Ok(Array::new(dtype, dims, bytes.chunks_exact(dtype.size()).map(element).collect()))
    }

    /// Whatever this or `other` allows, and what lies between.
    #[must_use]
    pub fn or(&self, other: &Array) -> Array {
        let either = |(&x, &y): (&Val, &Val)| match (x, y) {
            (Val::Real(a, b), Val::Real(c, d)) if a.is_nan() == c.is_nan() => {
                // A zero is the lower one if it is negative.
                let least = if a.total_cmp(&c).is_le() { a } else { c };
                Val::Real(least, if b.total_cmp(&d).is_ge() { b } else { d })
            }
            _ if x == y => x,
            _ => Val::Unknown,
        };
        let data = self.data.iter().zip(&other.data).map(either).collect();
        Array::new(self.dtype, &self.dims, data)
    }

    /// What is wrong with `got` where this is expected.
    pub fn mismatch(&self, got: &Array, signed: bool) -> Option<String> {
        if self.dtype != got.dtype {
            return Some(format!("dtype {} where {} is expected", got.dtype, self.dtype));
        }
        if self.dims != got.dims {
            return Some(format!("shape {:?} where {:?} is expected", got.dims, self.dims));
        }
        let wrong = |i: &usize| !self.data[*i].allows(got.data[*i], signed);
        let first = (0..self.numel()).find(wrong)?;
        let n = (0..self.numel()).filter(wrong).count();
        Some(format!(
            "{n} of {} elements of {} {:?}; first at {first}: got {}, expected {}",
            self.numel(),
            self.dtype,
            self.dims,
            got.data[first],
            self.data[first]
        ))
    }
}

/// The bits of a certain element.
///
/// # Panics
/// When the element is not certain or not of the dtype's class.
pub fn encode(dtype: DType, x: Val) -> u64 {
    match (x, dtype) {
        (Val::Int(i), _) => (i as u64) & (u64::MAX >> (64 - dtype.bits())),
        (Val::Real(x, _), DType::F64) => x.to_bits(),
        (Val::Real(x, _), DType::F32) => (x as f32).to_bits() as u64,
        (Val::Real(x, _), DType::BF16) => ((x as f32).to_bits() >> 16) as u64,
        (Val::Real(x, _), _) => encode_f16(x),
        (Val::Unknown, _) => unreachable!("invariant: inputs are certain"),
    }
}

/// The code of a number that `f16` holds exactly.
fn encode_f16(x: f64) -> u64 {
    let sign = (x.is_sign_negative() as u64) << 15;
    let a = x.abs();
    sign | match a {
        a if a.is_nan() => 0x7e00,
        a if a.is_infinite() => 0x7c00,
        // Subnormals count multiples of 2^-24.
        a if a < tolerance::exp2i(-14) => (a * tolerance::exp2i(24)) as u64,
        a => {
            let exponent = (a.to_bits() >> 52) as i32 - 1023;
            let fraction = (a * tolerance::exp2i(10 - exponent)) as u64 - 1024;
            ((exponent + 15) as u64) << 10 | fraction
        }
    }
}

/// The element with these bits.
pub fn decode(dtype: DType, bits: u64) -> Val {
    match dtype {
        DType::F64 => Val::point(f64::from_bits(bits)),
        DType::F32 => Val::point(f32::from_bits(bits as u32) as f64),
        DType::BF16 => Val::point(f32::from_bits((bits as u32) << 16) as f64),
        DType::F16 => {
            let sign = if bits >> 15 & 1 == 1 { -1.0 } else { 1.0 };
            let (exponent, fraction) = ((bits >> 10 & 31) as i32, (bits & 1023) as f64);
            Val::point(match exponent {
                31 if fraction != 0.0 => f64::NAN,
                31 => sign * f64::INFINITY,
                0 => sign * fraction * tolerance::exp2i(-24),
                e => sign * (1024.0 + fraction) * tolerance::exp2i(e - 25),
            })
        }
        // A stored bool is 0 or 1; any other byte is shown as it is, and so found.
        DType::Bool => Val::Int(bits as i128),
        _ => Val::Int(wrap(dtype, bits as i128)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip() {
        for code in 0..=u16::MAX as u64 {
            for dtype in [DType::F16, DType::BF16] {
                let x = decode(dtype, code);
                if x.certain().is_some_and(f64::is_nan) {
                    continue;
                }
                assert_eq!(encode(dtype, x), code, "{dtype}");
            }
        }
        assert_eq!(decode(DType::F16, 0x3555), Val::point(0.333_251_953_125));
    }

    #[test]
    fn wrapping_is_two_s_complement() {
        assert_eq!(wrap(DType::I8, 200), -56);
        assert_eq!(wrap(DType::U8, -1), 255);
        assert_eq!(wrap(DType::U64, -1), u64::MAX as i128);
        assert_eq!(wrap(DType::I64, 1 << 63), i64::MIN as i128);
    }
}
