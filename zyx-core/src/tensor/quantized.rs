//! Narrow storage: eight-bit floats as codes, and weights of four or eight bits with scales.
//!
//! Codes are ordinary `u8` tensors, so every device stores and moves them, and converting is
//! arithmetic on bits that fuses with what follows. Weights are `[rows, columns]`, each group of
//! columns with a scale of its own, symmetric around zero; a product widens them where they are
//! read.

use super::Tensor;
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::origin::composed;

/// The two eight-bit floats of the Open Compute Project (OFP8, 2023).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Float8 {
    /// Four exponent bits, three fraction bits: up to 448, NaN and no infinity.
    E4M3,
    /// Five exponent bits, two fraction bits: up to 57344, with infinities.
    E5M2,
}

impl Float8 {
    /// Fraction bits, exponent bias, the code above the largest finite number, the code of what
    /// is larger.
    fn layout(self) -> (i32, i32, i32, i32) {
        match self {
            Float8::E4M3 => (3, 7, 0x7f, 0x7f),
            Float8::E5M2 => (2, 15, 0x7c, 0x7c),
        }
    }
}

/// `2^e` for integers of normal numbers, exactly.
#[track_caller]
fn power(e: &Tensor) -> Result<Tensor> {
    e.add(127)?.shl(23)?.bitcast(DType::F32)
}

impl Tensor {
    /// The nearest eight-bit floats, ties to even, as `u8` codes. What is too large becomes NaN
    /// (E4M3) or infinite (E5M2), as in PyTorch.
    ///
    /// ```
    /// # use zyx::{Float8, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, -0.3, 448.0], &device)?;
    /// let codes = x.encode_float8(Float8::E4M3);
    /// assert_eq!(codes.to_vec::<u8>()?, [0x38, 0xaa, 0x7e]);
    /// assert_eq!(codes.decode_float8(Float8::E4M3)?.to_vec::<f32>()?, [1.0, -0.3125, 448.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn encode_float8(&self, format: Float8) -> Tensor {
        let x = self.cast(DType::F32);
        x.encoded(format).expect("invariant: one shape and one device")
    }

    #[track_caller]
    fn encoded(&self, format: Float8) -> Result<Tensor> {
        let (fraction, bias, above, large) = format.layout();
        let bits = self.bitcast(DType::I32)?;
        let size = self.abs();
        // The exponent, at least that of the smallest normal number: subnormals share its step.
        let e = bits.shr(23)?.bitwise_and(0xff)?.sub(127)?.maximum(1 - bias)?;
        // A finite stand-in, so that nothing but finite numbers is converted to integers.
        let finite = size.lt(f64::from(f32::MAX))?.where_(&size, size.like(0.0))?;
        let e_of = finite.eq(&size)?.where_(&e, e.like(0.0))?;
        // Scaled in two steps, each a normal power of two.
        let steps = finite.mul(power(&e_of.neg())?)?.mul(2f64.powi(fraction))?;
        let q = steps.round().cast(DType::I32);
        let code = e_of.add(bias - 1)?.shl(fraction)?.add(&q)?;
        let code = code.ge(above)?.where_(code.like(f64::from(large)), &code)?;
        let code = finite.eq(&size)?.where_(&code, code.like(f64::from(large)))?;
        let code = self.is_nan().where_(code.like(127.0), &code)?;
        let sign = bits.shr(24)?.bitwise_and(0x80)?;
        Ok(code.bitwise_or(&sign)?.cast(DType::U8))
    }

    /// The numbers that `u8` codes of eight-bit floats stand for, as `f32`.
    ///
    /// ```
    /// # use zyx::{Float8, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let codes = Tensor::new([0x3cu8, 0x7c, 0x01], &device)?;
    /// let x = codes.decode_float8(Float8::E5M2)?.to_vec::<f32>()?;
    /// assert_eq!(x, [1.0, f32::INFINITY, 2f32.powi(-16)]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the codes are not `u8`.
    #[track_caller]
    pub fn decode_float8(&self, format: Float8) -> Result<Tensor> {
        const OP: &str = "decode_float8";
        if self.dtype() != DType::U8 {
            return Err(Tensor::dtype_error(OP, &[self], "codes are u8".to_owned()));
        }
        self.decoded(format).named(OP)
    }

    #[track_caller]
    fn decoded(&self, format: Float8) -> Result<Tensor> {
        let (fraction, bias, above, _) = format.layout();
        let code = self.cast(DType::I32);
        let size = code.bitwise_and(0x7f)?;
        let e = size.shr(fraction)?;
        let rest = size.bitwise_and((1 << fraction) - 1)?;
        let normal = e.gt(0)?;
        let digits = normal.where_(rest.add(1 << fraction)?, &rest)?.cast(DType::F32);
        let scale = power(&e.maximum(1)?.sub(bias + fraction)?)?;
        let value = digits.mul(&scale)?;
        let value = match format {
            Float8::E4M3 => size.eq(above)?.where_(value.like(f64::NAN), &value)?,
            Float8::E5M2 => {
                let large = size.eq(above)?.where_(value.like(f64::INFINITY), &value)?;
                size.gt(above)?.where_(value.like(f64::NAN), &large)?
            }
        };
        code.ge(0x80)?.where_(value.neg(), &value)
    }
}

/// Fewest vectors whose products are one of matrices; of fewer each is a sum of its own.
const FEW: usize = 4;

/// A matrix `[rows, columns]` of four- or eight-bit integers with a scale for each group of
/// columns of each row.
///
/// ```
/// use zyx::{QuantizedMatrix, Tensor};
/// let device = zyx::device()?;
/// let weight = Tensor::new([[0.7f32, -0.1], [1.0, 4.0]], &device)?;
/// let quantized = QuantizedMatrix::new(&weight, 8, 2)?;
/// let x = Tensor::new([1f32, 1.0], &device)?;
/// assert_eq!(format!("{:.1}", quantized.matmul(&x)?), "[0.6 5. ]");
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct QuantizedMatrix {
    /// `i8 [rows, columns]`, or `u8 [rows, columns / 2]`: of a byte, the low half comes first, and
    /// 8 stands for 0.
    pub packed: Tensor,
    /// `[rows, columns / group]`.
    pub scales: Tensor,
    /// 4 or 8.
    pub bits: u32,
    /// Columns that share a scale.
    pub group: usize,
}

impl QuantizedMatrix {
    /// The nearest multiples of scales that let the largest magnitude of each group be 7 or 127.
    /// An error is at most half a scale.
    ///
    /// ```
    /// # use zyx::{QuantizedMatrix, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let weight = Tensor::new([[0.25f32, -1.0], [3.0, 4.0]], &device)?;
    /// let quantized = QuantizedMatrix::new(&weight, 4, 2)?;
    /// assert_eq!(quantized.packed.to_vec::<u8>()?, [0x1a, 0xfd]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the weight is not a matrix of floats, `bits` is neither 4 nor 8, or `group` does not
    /// divide the columns (and, with four bits, is odd).
    #[track_caller]
    pub fn new(weight: &Tensor, bits: u32, group: usize) -> Result<QuantizedMatrix> {
        const OP: &str = "QuantizedMatrix::new";
        let _here = composed();
        let quantized = || {
            let fail = |reason: &str| Tensor::shape_error(OP, &[weight], reason.to_owned());
            let &[rows, columns] = weight.shape().dims() else {
                return Err(fail("the weight must be a matrix"));
            };
            Tensor::check_operands(OP, &[weight])?;
            if !matches!(bits, 4 | 8) || !weight.dtype().is_float() {
                let reason = "floats become four or eight bits".to_owned();
                return Err(Tensor::dtype_error(OP, &[weight], reason));
            }
            if group == 0 || !columns.is_multiple_of(group) || (bits == 4 && group % 2 == 1) {
                return Err(fail("groups must divide the columns, and be even for four bits"));
            }
            let most = if bits == 4 { 7.0 } else { 127.0 };
            let x = weight.cast(DType::F32).detach().reshape([rows, columns / group, group])?;
            let scales = x.abs().max_keepdim(-1)?.mul(1.0 / most)?;
            let safe = scales.gt(0.0)?.where_(&scales, scales.like(1.0))?;
            let q = x.div(&safe)?.round().clamp(-most, most)?.reshape([rows, columns])?;
            let packed = match bits {
                8 => q.cast(DType::I8),
                _ => {
                    let code = q.add(8.0)?.cast(DType::U8).reshape([rows, columns / 2, 2])?;
                    let part = |i: isize| code.select_index(-1, i);
                    part(0)?.bitwise_or(part(1)?.shl(4)?)?
                }
            };
            let scales = scales.squeeze(-1)?;
            Tensor::realize_all([&packed, &scales])?;
            Ok(QuantizedMatrix { packed, scales, bits, group })
        };
        quantized().named(OP)
    }

    /// The numbers, `f32 [rows, columns]`.
    ///
    /// ```
    /// # use zyx::{QuantizedMatrix, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let weight = Tensor::new([[0.25f32, -1.0], [3.0, 4.0]], &device)?;
    /// let quantized = QuantizedMatrix::new(&weight, 4, 2)?;
    /// assert_eq!(format!("{:.2}", quantized.dequantize()?), "[[ 0.29 -1.  ]\n [ 2.86  4.  ]]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the parts do not fit each other.
    #[track_caller]
    pub fn dequantize(&self) -> Result<Tensor> {
        const OP: &str = "QuantizedMatrix::dequantize";
        let _here = composed();
        let widened = || {
            let in_order = self.widened()?.permute([0, 2, 3, 1])?;
            in_order.reshape([self.packed.shape()[0], self.columns()])
        };
        widened().named(OP)
    }

    /// The numbers, `f32 [rows, parts, groups, columns of a group / parts]`: a byte has as many parts
    /// as numbers, and those of one part come before those of the next. In the order of the columns
    /// neighbours would come from one byte, which no vector of the processor holds twice.
    #[track_caller]
    fn widened(&self) -> Result<Tensor> {
        let rows = self.packed.shape()[0];
        let groups = self.columns() / self.group;
        let q = match self.bits {
            8 => self.packed.cast(DType::F32),
            _ => {
                let bits =
                    Tensor::iota(2, DType::I32, self.packed.device()).mul(4)?.unsqueeze(1)?;
                let code =
                    self.packed.cast(DType::I32).unsqueeze(1)?.shr(&bits)?.bitwise_and(15)?;
                code.cast(DType::F32).sub(8.0)?
            }
        };
        let q = q.reshape([rows, self.parts(), groups, self.group / self.parts()])?;
        q.mul(self.scales.reshape([rows, 1, groups, 1])?)
    }

    /// Products with few vectors `[n, groups, columns of a group / parts, parts]`: `[n, rows]`. Each byte
    /// is loaded once and all its numbers multiplied, by elements of `x` that lie side by side.
    #[track_caller]
    fn few(&self, x: &Tensor) -> Result<Tensor> {
        let x = x.permute([3, 0, 1, 2])?;
        // Elsewhere threads load single elements, wherever they are.
        let vectors = self.parts() > 1 && !x.device().caps().simt;
        let x = if vectors { x.contiguous() } else { x };
        let dims = [&[self.packed.shape()[0]], &x.shape().dims()[2..]].concat();
        let product = |q: Tensor, part: isize| {
            x.select_index(0, part)?.unsqueeze(1)?.mul(q.cast(DType::F32).reshape(&dims[..])?)
        };
        let products = match self.bits {
            8 => product(self.packed.clone(), 0)?,
            _ => {
                let code = self.packed.cast(DType::I32);
                let [low, high] = [code.bitwise_and(15)?, code.shr(4)?];
                product(low.sub(8)?, 0)?.add(product(high.sub(8)?, 1)?)?
            }
        };
        products.mul(self.scales.unsqueeze(-1)?)?.sum([2, 3])
    }

    /// Numbers in a byte.
    fn parts(&self) -> usize {
        if self.bits == 4 { 2 } else { 1 }
    }

    fn columns(&self) -> usize {
        self.packed.shape()[1] * self.parts()
    }

    /// `x w^T` of `[.., columns]`: `[.., rows]` in the dtype of `x`, as a linear layer's weight is
    /// applied. Gradients flow to `x`.
    ///
    /// ```
    /// # use zyx::{QuantizedMatrix, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let weight = Tensor::new([[0.25f32, -1.0], [3.0, 4.0]], &device)?;
    /// let quantized = QuantizedMatrix::new(&weight, 4, 2)?;
    /// let y = quantized.matmul(&Tensor::new([0f32, 1.0], &device)?)?;
    /// assert_eq!(format!("{y:.1}"), "[-1.  4.]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the extents differ.
    #[track_caller]
    pub fn matmul(&self, x: &Tensor) -> Result<Tensor> {
        const OP: &str = "QuantizedMatrix::matmul";
        let _here = composed();
        let product = || {
            let (columns, parts) = (self.columns(), self.parts());
            let Some((&last, leading)) = x.shape().dims().split_last() else {
                return Err(Tensor::shape_error(OP, &[x], "a number is no vector".to_owned()));
            };
            if last != columns {
                let reason = format!("the last axis must have the matrix's {columns} columns");
                return Err(Tensor::shape_error(OP, &[x], reason));
            }
            let (n, size) = (leading.iter().product::<usize>(), self.group / parts);
            let x = x.cast(DType::F32).reshape([n, columns / self.group, size, parts])?;
            let sums = if n < FEW {
                self.few(&x)?
            } else {
                let x = x.permute([0, 3, 1, 2])?.unsqueeze(1)?;
                x.mul(&self.widened()?)?.sum([2, 3, 4])?
            };
            sums.reshape([leading, &[self.packed.shape()[0]]].concat())
        };
        Ok(product().named(OP)?.cast(x.floating().dtype()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Runtime;

    /// Every code decoded and encoded again is itself, and halfway points go to even.
    #[test]
    fn codes_round_trip() {
        let device = Runtime::default().device("reference").unwrap();
        let codes: Vec<u8> = (0..=255).collect();
        let all = Tensor::from_slice(&codes, [256], &device).unwrap();
        for (format, largest, smallest) in
            [(Float8::E4M3, 448.0, 2f32.powi(-9)), (Float8::E5M2, 57344.0, 2f32.powi(-16))]
        {
            let x = all.decode_float8(format).unwrap();
            let values = x.to_vec::<f32>().unwrap();
            let back = x.encode_float8(format).to_vec::<u8>().unwrap();
            for (code, (x, back)) in values.iter().zip(&back).enumerate() {
                assert!(
                    x.is_nan() || code == usize::from(*back),
                    "{format:?} {code:#x}: {back:#x}"
                );
                assert!(!x.is_nan() || back & 0x7f == 0x7f);
            }
            let finite: Vec<f32> =
                values[..128].iter().copied().filter(|x| x.is_finite()).collect();
            assert!(finite.is_sorted() && finite[1] == smallest);
            assert_eq!(finite.last(), Some(&largest));
            let middles: Vec<f32> = finite.windows(2).map(|w| (w[0] + w[1]) / 2.0).collect();
            let n = middles.len();
            let got = Tensor::from_slice(&middles, [n], &device).unwrap().encode_float8(format);
            for (i, code) in got.to_vec::<u8>().unwrap().into_iter().enumerate() {
                assert_eq!(usize::from(code), i + i % 2, "{format:?} between {i} and {}", i + 1);
            }
        }
        let large = Tensor::new([1e30f32, f32::INFINITY, f32::NEG_INFINITY, f32::NAN], &device);
        let large = large.unwrap();
        let codes = |f| large.encode_float8(f).to_vec::<u8>().unwrap();
        assert_eq!(codes(Float8::E5M2), [0x7c, 0x7c, 0xfc, 0x7f]);
        assert_eq!(codes(Float8::E4M3)[..2], [0x7f, 0x7f]);
    }

    #[test]
    fn weights_are_near() {
        let device = Runtime::default().device("reference").unwrap();
        let data: Vec<f32> = (0..64).map(|i| ((i * 37 % 64) as f32 - 31.0) / 16.0).collect();
        let weight = Tensor::from_slice(&data, [4, 16], &device).unwrap();
        for (bits, group, most) in [(8, 16, 127.0), (4, 8, 7.0), (4, 4, 7.0)] {
            let q = QuantizedMatrix::new(&weight, bits, group).unwrap();
            let w = q.dequantize().unwrap();
            let gap = w.sub(&weight).unwrap().abs().max(..).unwrap().item::<f32>().unwrap();
            assert!(gap <= 2.0 / most / 2.0 + 1e-6, "{bits} bits: {gap}");
            let x = Tensor::from_slice(&data[..32], [2, 16], &device).unwrap().tracked();
            let y = q.matmul(&x).unwrap();
            // Sums of 16 products of at most 4, added in another order.
            let want = x.matmul(&w.t()).unwrap();
            let gap = y.sub(&want).unwrap().abs().max(..).unwrap().item::<f32>().unwrap();
            assert!(gap <= 16.0 * 16.0 * 4.0 * f32::EPSILON, "{bits} bits: {gap}");
            assert!(y.grad(&[&x]).unwrap()[0].is_some());
        }
        // Without columns every sum is empty.
        let none = QuantizedMatrix::new(&weight.shrink([(0, 3), (0, 0)]).unwrap(), 4, 4);
        let x = Tensor::zeros([2, 0], DType::F32, &device);
        assert_eq!(none.unwrap().matmul(&x).unwrap().to_vec::<f32>().unwrap(), [0.0; 6]);
        assert!(QuantizedMatrix::new(&weight, 4, 3).is_err());
        assert!(QuantizedMatrix::new(&weight, 5, 4).is_err());
    }
}
