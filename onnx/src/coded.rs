//! Tensors of element types that no dtype has: one code for each element.
//!
//! Operators that only move elements move the codes. What computes decodes first, by a table of the values of all
//! codes, and encodes its result: the nearest value, of two equally near ones that with the even code.

use crate::proto::tensor_proto::DataType;
use crate::read::damaged;
use zyx_core::{DType, Device, Result, Tensor};

/// Element types of the standard that no dtype has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CodedType {
    /// Four exponent bits, three fraction bits: up to 448, NaN and no infinity.
    Float8E4M3Fn,
    /// As `Float8E4M3Fn` with another bias: up to 240, one NaN and one zero.
    Float8E4M3Fnuz,
    /// Five exponent bits, two fraction bits: up to 57344, with infinities.
    Float8E5M2,
    /// As `Float8E5M2` with another bias: up to 57344, one NaN, no infinity and one zero.
    Float8E5M2Fnuz,
    /// Powers of two from `2^-127` to `2^127`, and NaN.
    Float8E8M0,
    /// Two exponent bits, one fraction bit: up to 6, without NaN.
    Float4E2M1,
    /// -8 to 7.
    Int4,
    /// 0 to 15.
    Uint4,
    /// -2 to 1.
    Int2,
    /// 0 to 3.
    Uint2,
}

/// A tensor of an element type that no dtype has.
#[derive(Clone, Debug)]
pub struct Coded {
    pub(crate) kind: CodedType,
    pub(crate) codes: Tensor,
}

/// How numbers become codes, where there is a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rounding {
    /// Whether what is too large becomes the largest finite number.
    pub(crate) saturate: bool,
    /// Of powers of two.
    pub(crate) powers: Powers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Powers {
    Up,
    Down,
    Nearest,
}

/// Bits of a float with a sign.
struct Layout {
    fraction: i32,
    bias: i32,
    /// The code of the largest finite number.
    largest: i32,
    /// The code of what is larger.
    beyond: i32,
    nan: i32,
    sign: i32,
}

impl CodedType {
    /// The type of this number in a file, if it is one of these.
    pub(crate) fn of(element: i32) -> Option<CodedType> {
        Some(match DataType::try_from(element).ok()? {
            DataType::Float8e4m3fn => CodedType::Float8E4M3Fn,
            DataType::Float8e4m3fnuz => CodedType::Float8E4M3Fnuz,
            DataType::Float8e5m2 => CodedType::Float8E5M2,
            DataType::Float8e5m2fnuz => CodedType::Float8E5M2Fnuz,
            DataType::Float8e8m0 => CodedType::Float8E8M0,
            DataType::Float4e2m1 => CodedType::Float4E2M1,
            DataType::Int4 => CodedType::Int4,
            DataType::Uint4 => CodedType::Uint4,
            DataType::Int2 => CodedType::Int2,
            DataType::Uint2 => CodedType::Uint2,
            _ => return None,
        })
    }

    /// The name of the type in `ml_dtypes`, NumPy's package of such types.
    ///
    /// ```
    /// assert_eq!(zyx::onnx::CodedType::Float8E4M3Fn.name(), "float8_e4m3fn");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            CodedType::Float8E4M3Fn => "float8_e4m3fn",
            CodedType::Float8E4M3Fnuz => "float8_e4m3fnuz",
            CodedType::Float8E5M2 => "float8_e5m2",
            CodedType::Float8E5M2Fnuz => "float8_e5m2fnuz",
            CodedType::Float8E8M0 => "float8_e8m0fnu",
            CodedType::Float4E2M1 => "float4_e2m1fn",
            CodedType::Int4 => "int4",
            CodedType::Uint4 => "uint4",
            CodedType::Int2 => "int2",
            CodedType::Uint2 => "uint2",
        }
    }

    /// Bits of an element in a file.
    pub(crate) fn bits(self) -> usize {
        match self {
            CodedType::Int2 | CodedType::Uint2 => 2,
            CodedType::Int4 | CodedType::Uint4 | CodedType::Float4E2M1 => 4,
            _ => 8,
        }
    }

    /// Of integers, the least and the greatest.
    ///
    /// ```
    /// assert_eq!(zyx::onnx::CodedType::Int4.limits(), Some((-8, 7)));
    /// ```
    pub fn limits(self) -> Option<(i64, i64)> {
        Some(match self {
            CodedType::Int4 => (-8, 7),
            CodedType::Uint4 => (0, 15),
            CodedType::Int2 => (-2, 1),
            CodedType::Uint2 => (0, 3),
            _ => return None,
        })
    }

    /// The dtype of codes: those of integers are the integers themselves, those of floats their bits.
    ///
    /// ```
    /// assert_eq!(zyx::onnx::CodedType::Int4.code_dtype(), zyx::DType::I8);
    /// ```
    pub fn code_dtype(self) -> DType {
        if matches!(self, CodedType::Int4 | CodedType::Int2) { DType::I8 } else { DType::U8 }
    }

    /// `None` for integers and powers of two.
    fn layout(self) -> Option<Layout> {
        let (fraction, bias, largest, beyond, nan, sign) = match self {
            CodedType::Float8E4M3Fn => (3, 7, 0x7e, 0x7f, 0x7f, 0x80),
            CodedType::Float8E4M3Fnuz => (3, 8, 0x7f, 0x80, 0x80, 0x80),
            CodedType::Float8E5M2 => (2, 15, 0x7b, 0x7c, 0x7e, 0x80),
            CodedType::Float8E5M2Fnuz => (2, 16, 0x7f, 0x80, 0x80, 0x80),
            CodedType::Float4E2M1 => (1, 1, 7, 7, 8, 8),
            _ => return None,
        };
        Some(Layout { fraction, bias, largest, beyond, nan, sign })
    }

    /// The values of all codes of a float.
    fn table(self) -> Vec<f32> {
        let Some(layout) = self.layout() else {
            let power = |code: u32| f32::from_bits(if code == 0 { 1 << 22 } else { code << 23 });
            return (0..255).map(power).chain([f32::NAN]).collect();
        };
        let Layout { fraction, bias, largest, beyond, nan, sign } = layout;
        let value = |code: i32| {
            let size = code & (sign - 1);
            let (e, rest) = (size >> fraction, size & ((1 << fraction) - 1));
            let digits = if e == 0 { rest } else { rest + (1 << fraction) };
            let number = digits as f32 * 2f32.powi(e.max(1) - bias - fraction);
            let one_nan = nan == sign && sign == 0x80;
            match size {
                _ if one_nan && code == nan => f32::NAN,
                _ if size > largest && size == beyond && beyond != nan => {
                    if code < sign {
                        f32::INFINITY
                    } else {
                        f32::NEG_INFINITY
                    }
                }
                _ if size > largest => f32::NAN,
                _ if code < sign => number,
                _ => -number,
            }
        };
        (0..2 * sign).map(value).collect()
    }

    /// The nearest codes of a tensor's numbers.
    pub(crate) fn encode(self, x: &Tensor, rounding: Rounding) -> Result<Coded> {
        let codes = match self.layout() {
            _ if self.limits().is_some() => self.low_bits(x)?,
            Some(layout) => floats(&narrowed(x)?, &layout, rounding.saturate)?,
            None => powers(&narrowed(x)?, rounding)?,
        };
        Ok(Coded { kind: self, codes: codes.cast(self.code_dtype()) })
    }

    /// Integers, floats truncated, without the bits that do not fit.
    fn low_bits(self, x: &Tensor) -> Result<Tensor> {
        let whole = if x.dtype().is_float() { x.cast(DType::I32) } else { x.cast(DType::U8) };
        let mask = (1 << self.bits()) - 1;
        let low = whole.cast(DType::I32).bitwise_and(mask)?;
        // The highest of the bits is the sign.
        let half = if self.code_dtype() == DType::I8 { (mask + 1) / 2 } else { 0 };
        low.bitwise_xor(half)?.sub(half)
    }
}

/// The integer `if_true` where a condition holds, and else the number of a tensor.
fn replace(condition: &Tensor, if_true: i32, codes: &Tensor) -> Result<Tensor> {
    codes.masked_fill(condition, if_true)
}

/// Numbers as `f32`; what is not exact of an `f64` gets the neighbour with an odd last bit, so that it is rounded
/// once in the end.
fn narrowed(x: &Tensor) -> Result<Tensor> {
    let y = x.cast(DType::F32);
    if x.dtype() != DType::F64 {
        return Ok(y);
    }
    let back = y.cast(DType::F64);
    let too_far = back.abs().gt(x.abs())?.cast(DType::I32);
    let odd = back.ne(x)?.cast(DType::I32);
    y.bitcast(DType::I32)?.sub(too_far)?.bitwise_or(&odd)?.bitcast(DType::F32)
}

/// Codes of floats with a sign, of `f32`.
fn floats(x: &Tensor, layout: &Layout, saturate: bool) -> Result<Tensor> {
    let &Layout { fraction, bias, largest, beyond, nan, sign } = layout;
    let power = |e: &Tensor| e.add(127)?.shl(23)?.bitcast(DType::F32);
    let is_nan = x.is_nan();
    // More than the largest of any type, and a number of which integers are made.
    let size = x.abs().masked_fill(&is_nan, 0.0)?.minimum(1e6)?;
    // The exponent, at least that of the smallest normal number: smaller ones share its step.
    let e = size.bitcast(DType::I32)?.shr(23)?.sub(127)?.maximum(1 - bias)?;
    let steps = size.mul(power(&e.neg())?)?.mul(f64::from(1 << fraction))?.round();
    let code = e.add(bias - 1)?.shl(fraction)?.add(steps.cast(DType::I32))?;
    let beyond = if saturate { largest } else { beyond };
    let code = replace(&code.gt(largest)?, beyond, &code)?;
    let negative = x.bitcast(DType::I32)?.lt(0)?.cast(DType::I32).mul(sign)?;
    if nan == sign && sign == 0x80 {
        // The code of a negative zero is NaN's.
        let signed = code.bitwise_or(&replace(&code.eq(0)?, 0, &negative)?)?;
        return replace(&is_nan, nan, &signed);
    }
    if nan == sign {
        return replace(&is_nan, nan, &code.bitwise_or(&negative)?);
    }
    replace(&is_nan, nan, &code)?.bitwise_or(&negative)
}

/// Codes of powers of two for the magnitudes of `f32`.
fn powers(x: &Tensor, rounding: Rounding) -> Result<Tensor> {
    let bits = x.bitcast(DType::I32)?.bitwise_and(0x7fff_ffff)?;
    let e = bits.shr(23)?;
    let fraction = bits.bitwise_and(0x7f_ffff)?;
    let least = e.eq(0)?;
    // Below the smallest normal number, 2^-127 is at half of the fraction's range.
    let up = match rounding.powers {
        Powers::Up => fraction.gt(least.cast(DType::I32).mul(0x40_0000)?)?,
        Powers::Nearest => fraction.ge(least.cast(DType::I32).mul(0x20_0000)?.add(0x40_0000)?)?,
        Powers::Down => fraction.lt(0)?,
    };
    let code = e.add(up.cast(DType::I32))?;
    let code = match rounding.saturate {
        true => code.minimum(254)?,
        false => {
            let code = code.minimum(255)?;
            replace(&bits.lt(0x40_0000)?, 255, &code)?
        }
    };
    replace(&x.is_nan(), 255, &code)
}

impl Coded {
    /// The tensor of these codes, one for each element: of integers the integers themselves (`i8` if they have a sign,
    /// else `u8`), of floats their bits (`u8`). Bits that the type does not have are cleared.
    ///
    /// ```
    /// use zyx::onnx::{Coded, CodedType};
    /// use zyx::{DType, Tensor};
    /// let device = zyx::device()?;
    /// let codes = Tensor::new([0x38u8, 0xaa], &device)?;
    /// let coded = Coded::new(CodedType::Float8E4M3Fn, &codes)?;
    /// assert_eq!(coded.decode(DType::F32)?.to_vec::<f32>()?, [1.0, -0.3125]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the codes are of another dtype.
    pub fn new(kind: CodedType, codes: &Tensor) -> Result<Coded> {
        if codes.dtype() != kind.code_dtype() {
            let reason =
                format!("codes of {kind:?} are {}, not {}", kind.code_dtype(), codes.dtype());
            return Err(damaged("codes", reason));
        }
        let codes = if kind.bits() < 8 { kind.low_bits(codes)? } else { codes.clone() };
        Ok(Coded { kind, codes: codes.cast(kind.code_dtype()) })
    }

    /// The nearest elements of a type for numbers of any dtype, ties to even; what is too large becomes the largest,
    /// and of integers the low bits.
    ///
    /// ```
    /// use zyx::onnx::{Coded, CodedType};
    /// use zyx::{DType, Tensor};
    /// let device = zyx::device()?;
    /// let x = Tensor::new([0.3f32, -1.2, 100.0], &device)?;
    /// let coded = Coded::encode(CodedType::Float4E2M1, &x)?;
    /// assert_eq!(coded.decode(DType::F32)?.to_vec::<f32>()?, [0.5, -1.0, 6.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the tensor's device lacks an op for its dtype.
    pub fn encode(kind: CodedType, x: &Tensor) -> Result<Coded> {
        kind.encode(x, Rounding { saturate: true, powers: Powers::Up })
    }

    /// What the elements are.
    pub fn kind(&self) -> CodedType {
        self.kind
    }

    /// One code for each element: the integers themselves (`u8` or `i8`), or the bits of floats (`u8`).
    pub fn codes(&self) -> &Tensor {
        &self.codes
    }

    /// The elements as numbers of a dtype, in the same shape.
    ///
    /// ```
    /// use zyx::onnx::{Coded, CodedType};
    /// use zyx::{DType, Tensor};
    /// let device = zyx::device()?;
    /// let coded = Coded::new(CodedType::Int4, &Tensor::new([-8i8, 7], &device)?)?;
    /// assert_eq!(coded.decode(DType::F16)?.cast(DType::I32).to_vec::<i32>()?, [-8, 7]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the codes' device lacks the dtype.
    pub fn decode(&self, dtype: DType) -> Result<Tensor> {
        if self.kind.limits().is_some() {
            return Ok(self.codes.cast(dtype));
        }
        let table = self.kind.table();
        let table = Tensor::from_slice(&table, [table.len()], self.codes.device())?;
        let flat = self.codes.flatten().cast(DType::I64).unchecked_indices();
        Ok(table.index_select(0, &flat)?.reshape(self.codes.shape())?.cast(dtype))
    }

    /// Elements of a file, several in a byte if they are narrow; the first is in the low bits.
    pub(crate) fn unpack(
        kind: CodedType,
        bytes: &[u8],
        shape: &[usize],
        device: &Device,
    ) -> Result<Coded> {
        let (bits, numel) = (kind.bits(), shape.iter().product::<usize>());
        let signed = kind.code_dtype() == DType::I8;
        let code = |i: usize| {
            let code = bytes[i * bits / 8] >> (i * bits % 8) << (8 - bits);
            if signed { (code as i8 >> (8 - bits)) as u8 } else { code >> (8 - bits) }
        };
        let codes: Vec<u8> = (0..numel).map(code).collect();
        Ok(Coded { kind, codes: Tensor::from_bytes(&codes, kind.code_dtype(), shape, device)? })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::proto::TensorProto;
    use zyx_core::Runtime;

    const FLOATS: [CodedType; 5] = [
        CodedType::Float8E4M3Fn,
        CodedType::Float8E4M3Fnuz,
        CodedType::Float8E5M2,
        CodedType::Float8E5M2Fnuz,
        CodedType::Float4E2M1,
    ];

    fn encode(kind: CodedType, x: &[f32], rounding: Rounding) -> Vec<u8> {
        let device = Runtime::default().device("reference").unwrap();
        let x = Tensor::from_slice(x, [x.len()], &device).unwrap();
        kind.encode(&x, rounding).unwrap().codes.to_vec().unwrap()
    }

    /// Every number is its own code, halfway points go to even ones, and what is next to them to the nearer one.
    #[test]
    fn floats_round_to_nearest_even() {
        let rounding = Rounding { saturate: true, powers: Powers::Up };
        for kind in FLOATS {
            let layout = kind.layout().unwrap();
            let table = kind.table();
            let finite = &table[..=layout.largest as usize];
            assert!(finite.is_sorted() && finite.iter().all(|x| x.is_finite()), "{kind:?}");
            let middles: Vec<f32> = finite.windows(2).map(|w| (w[0] + w[1]) / 2.0).collect();
            let below: Vec<f32> = middles.iter().map(|x| x.next_down()).collect();
            let above: Vec<f32> = middles.iter().map(|x| x.next_up()).collect();
            let codes = |x: &[f32]| encode(kind, x, rounding);
            let n = middles.len() as u8;
            assert_eq!(codes(finite), (0..=n).collect::<Vec<u8>>(), "{kind:?}");
            assert_eq!(codes(&middles), (0..n).map(|i| i + i % 2).collect::<Vec<u8>>(), "{kind:?}");
            assert_eq!(codes(&below), (0..n).collect::<Vec<u8>>(), "{kind:?}");
            assert_eq!(codes(&above), (1..=n).collect::<Vec<u8>>(), "{kind:?}");
            let negative: Vec<f32> = finite[1..].iter().map(|x| -x).collect();
            let wanted: Vec<u8> = (1..=n).map(|i| i | layout.sign as u8).collect();
            assert_eq!(codes(&negative), wanted, "{kind:?}");
        }
    }

    /// An `f64` next to a halfway point is rounded once.
    #[test]
    fn doubles_are_rounded_once() {
        let device = Runtime::default().device("reference").unwrap();
        let near =
            [1.0625, 1.0625 + 1e-12, 1.1875 - 1e-12, 1.1875, -1.0625 - 1e-12, 1e300, f64::NAN];
        let x = Tensor::from_slice(&near, [near.len()], &device).unwrap();
        let codes = Coded::encode(CodedType::Float8E4M3Fn, &x).unwrap().codes.to_vec::<u8>();
        assert_eq!(codes.unwrap(), [0x38, 0x39, 0x39, 0x3a, 0xb9, 0x7e, 0x7f]);
    }

    #[test]
    fn special_values() {
        let x = [f32::INFINITY, f32::NEG_INFINITY, 1e30, f32::NAN, -0.0, 1e-30];
        let kinds: [(CodedType, [u8; 6], [u8; 6]); 5] = [
            (FLOATS[0], [0x7e, 0xfe, 0x7e, 0x7f, 0x80, 0], [0x7f, 0xff, 0x7f, 0x7f, 0x80, 0]),
            (FLOATS[1], [0x7f, 0xff, 0x7f, 0x80, 0, 0], [0x80, 0x80, 0x80, 0x80, 0, 0]),
            (FLOATS[2], [0x7b, 0xfb, 0x7b, 0x7e, 0x80, 0], [0x7c, 0xfc, 0x7c, 0x7e, 0x80, 0]),
            (FLOATS[3], [0x7f, 0xff, 0x7f, 0x80, 0, 0], [0x80, 0x80, 0x80, 0x80, 0, 0]),
            (FLOATS[4], [7, 15, 7, 8, 8, 0], [7, 15, 7, 8, 8, 0]),
        ];
        for (kind, saturated, other) in kinds {
            for (saturate, wanted) in [(true, saturated), (false, other)] {
                let rounding = Rounding { saturate, powers: Powers::Up };
                assert_eq!(encode(kind, &x, rounding), wanted, "{kind:?} {saturate}");
            }
        }
    }

    #[test]
    fn powers_of_two() {
        let least = f32::MIN_POSITIVE;
        let x = [1.0, 1.4, 1.5, 2.0, least, least / 2.0, least * 0.7, least * 0.8, f32::MAX];
        let codes =
            |saturate, powers| encode(CodedType::Float8E8M0, &x, Rounding { saturate, powers });
        assert_eq!(codes(true, Powers::Up), [127, 128, 128, 128, 1, 0, 1, 1, 254]);
        assert_eq!(codes(true, Powers::Down), [127, 127, 127, 128, 1, 0, 0, 0, 254]);
        assert_eq!(codes(false, Powers::Nearest), [127, 127, 128, 128, 1, 0, 0, 1, 255]);
        let x = [0.0, f32::INFINITY, f32::NAN, least / 4.0];
        let codes = |saturate| {
            encode(CodedType::Float8E8M0, &x, Rounding { saturate, powers: Powers::Nearest })
        };
        assert_eq!(codes(true), [0, 254, 255, 0]);
        assert_eq!(codes(false), [255; 4]);
    }

    /// A file with more or fewer bytes than its elements need is refused.
    #[test]
    fn lengths_are_checked() {
        let device = Runtime::default().device("reference").unwrap();
        for (bytes, fits) in [(0, false), (1, false), (2, true), (3, false)] {
            let proto = TensorProto {
                dims: vec![3],
                data_type: Some(DataType::Int4 as i32),
                raw_data: Some(vec![0u8; bytes].into()),
                ..Default::default()
            };
            assert_eq!(
                crate::read::Source::default().value(&proto, &device).is_ok(),
                fits,
                "{bytes}"
            );
        }
        let codes = Tensor::new([1i32], &device).unwrap();
        assert!(Coded::new(CodedType::Uint4, &codes).is_err());
        // Bits that four-bit floats do not have.
        let codes = Tensor::new([0xf7u8], &device).unwrap();
        let coded = Coded::new(CodedType::Float4E2M1, &codes).unwrap();
        assert_eq!(coded.decode(DType::F32).unwrap().to_vec::<f32>().unwrap(), [6.0]);
    }

    #[test]
    fn narrow_integers_are_packed_from_the_low_bits() {
        let device = Runtime::default().device("reference").unwrap();
        let unpack = |kind, bytes: &[u8], n: usize| {
            let coded = Coded::unpack(kind, bytes, &[n], &device).unwrap();
            coded.decode(DType::I32).unwrap().to_vec::<i32>().unwrap()
        };
        assert_eq!(unpack(CodedType::Int4, &[0x8f, 0x07], 3), [-1, -8, 7]);
        assert_eq!(unpack(CodedType::Uint4, &[0x8f, 0x07], 3), [15, 8, 7]);
        assert_eq!(unpack(CodedType::Int2, &[0b1110_0100], 4), [0, 1, -2, -1]);
        assert_eq!(unpack(CodedType::Uint2, &[0b1110_0100], 4), [0, 1, 2, 3]);
        assert_eq!(unpack(CodedType::Int4, &[], 0), []);
    }
}
