//! Products of quantised tensors, in integers.
//!
//! `sum (x - p) (w - q) = sum x w - p sum w - q sum x + n p q`: the first is a sum of products of integers of 8 bits,
//! for which processors have instructions, and sums of a model's weights are computed once.

use super::convolution::{self, Placed};
use crate::host::numel;
use crate::run::{Call, Kept};
use crate::value::Value;
use zyx_core::{DType, Result, Tensor};

/// Integers that stand for numbers, less their zero point.
#[derive(Clone, Debug)]
pub(crate) struct Codes {
    numbers: Tensor,
    zero: Zero,
    /// Where sums of weights are kept, with the input that these are.
    kept: Option<(Kept, usize)>,
}

#[derive(Clone, Debug)]
enum Zero {
    Known(i64),
    /// `i32`: one, a vector of them, or as many axes as the integers have.
    Some(Tensor),
}

/// Integers with the scale and the axis along which scale and zero point differ, if they do.
#[derive(Debug)]
pub(crate) struct Dequantized {
    pub(crate) codes: Codes,
    /// One number, or a vector of them.
    pub(crate) scale: Tensor,
    pub(crate) axis: Option<usize>,
}

/// Most products of integers of 8 bits, less their zero points, whose sum an `i32` holds.
const MOST_PRODUCTS: usize = i32::MAX as usize / (255 * 255);

impl Codes {
    /// The codes of input `i`, which are `numbers`, with a zero point.
    pub(crate) fn new(
        call: &Call<'_>,
        i: usize,
        numbers: Tensor,
        zero: Option<&Value>,
    ) -> Result<Codes> {
        let zero = match zero {
            None => Zero::Known(0),
            Some(Value::Host(host)) if host.is_one_number() => Zero::Known(host.ints()[0]),
            Some(zero) => {
                let zero = super::quantize::numbers(call, zero)?.cast(DType::I32);
                Zero::Some(if zero.numel() == 1 { zero.reshape(())? } else { zero })
            }
        };
        Ok(Codes { numbers, zero, kept: call.kept(i).map(|kept| (kept, i)) })
    }

    /// With rows and columns exchanged.
    pub(super) fn transposed(&self) -> Result<Codes> {
        let zero = match &self.zero {
            Zero::Some(zero) if zero.rank() == 2 => Zero::Some(zero.transpose(0, 1)?),
            zero => zero.clone(),
        };
        Ok(Codes { numbers: self.numbers.transpose(0, 1)?, zero, kept: None })
    }

    fn is_bytes(&self) -> bool {
        matches!(self.numbers.dtype(), DType::I8 | DType::U8)
    }

    fn wide(&self) -> Tensor {
        self.numbers.cast(DType::I32)
    }

    /// What to take off, where that is not 0: one number, laid along an axis of a tensor of `rank` axes, or as it lies.
    fn zero_along(&self, axis: usize, rank: usize) -> Result<Option<Tensor>> {
        Ok(match &self.zero {
            Zero::Known(0) => None,
            Zero::Known(zero) => Some(Tensor::scalar(*zero as i32, self.numbers.device())),
            Zero::Some(zero) if zero.rank() != 1 || axis >= rank => Some(zero.clone()),
            Zero::Some(zero) => {
                let mut shape = vec![1; rank];
                shape[axis] = zero.numel();
                Some(zero.reshape(shape)?)
            }
        })
    }

    /// The codes less their zero points, which may differ along an axis.
    fn centred(&self, axis: usize) -> Result<Tensor> {
        match self.zero_along(axis, self.numbers.rank())? {
            Some(zero) => self.wide().sub(zero),
            None => Ok(self.wide()),
        }
    }

    /// Sums of the codes along axes.
    fn sums(&self, axes: &[usize]) -> Result<Tensor> {
        let sum = || {
            let axes: Vec<i32> = axes.iter().map(|&axis| axis as i32).collect();
            Ok(self.wide().sum(axes.as_slice())?.cast(DType::I32))
        };
        match &self.kept {
            Some((kept, input)) => kept.get(&[&[*input], axes].concat(), sum),
            None => sum(),
        }
    }
}

/// The matrix product of integers less their zero points, in `i32`. Zero points of `a` are one or one for each row,
/// those of `b` one or one for each column.
pub(super) fn matrix_product(a: &Codes, b: &Codes) -> Result<Tensor> {
    let [rank, columns] = [a, b].map(|side| side.numbers.rank());
    if !(a.is_bytes() && b.is_bytes()) || rank < 2 || columns < 2 {
        return a.centred(rank.saturating_sub(2))?.matmul(&b.centred(columns.saturating_sub(1))?);
    }
    let mut sums = a.wide().matmul(&b.wide())?;
    let rows_zero = a.zero_along(rank - 2, rank)?;
    let columns_zero = b.zero_along(columns - 1, columns)?;
    if let Some(zero) = &rows_zero {
        sums = sums.sub(b.sums(&[columns - 2])?.unsqueeze(-2)?.mul(zero)?)?;
    }
    if let Some(zero) = &columns_zero {
        sums = sums.sub(a.sums(&[rank - 1])?.unsqueeze(-1)?.mul(zero)?)?;
    }
    if let (Some(p), Some(q)) = (rows_zero, columns_zero) {
        sums = sums.add(p.mul(q)?.mul(a.numbers.shape()[rank - 1] as i32)?)?;
    }
    Ok(sums)
}

/// The convolution, as a node's attributes describe it, of integers less their zero points, in `i32`. The input has one
/// zero point, the weight one or one for each output channel.
pub(super) fn convolution(call: &Call<'_>, x: &Codes, weight: &Codes) -> Result<Tensor> {
    let (rank, w) = (x.numbers.rank(), &weight.numbers);
    let is_known = matches!(x.zero, Zero::Known(_));
    if !(x.is_bytes() && weight.is_bytes() && is_known) || rank != w.rank() || rank < 3 {
        return convolution::convolve(call, &x.centred(0)?, &weight.centred(0)?, None);
    }
    let Zero::Known(zero) = x.zero else { unreachable!("invariant: it is known") };
    let placed = Placed::new(call, &x.numbers, w)?;
    let padded = placed.padded(&x.numbers, zero as f64)?.cast(DType::I32);
    let mut sums = placed.slide(&padded, &weight.wide(), None)?;
    let along_channels = |t: &Tensor| -> Result<Tensor> {
        let mut shape = vec![1; rank];
        shape[1] = t.numel();
        t.reshape(shape)
    };
    let of_weights = || along_channels(&weight.sums(&(1..rank).collect::<Vec<_>>())?);
    if zero != 0 {
        sums = sums.sub(of_weights()?.mul(zero as i32)?)?;
    }
    if let Some(q) = weight.zero_along(0, rank)? {
        let q = if q.rank() == 0 { q } else { along_channels(&q)? };
        // Sums of windows: each group's, for each of its output channels.
        let mut one = w.shape().to_vec();
        one[0] = placed.groups;
        let ones = Tensor::ones(one, DType::I32, call.device());
        let of_windows = placed.slide(&padded, &ones, None)?;
        let outputs = w.shape()[0] / placed.groups;
        let of_windows = of_windows.repeat_interleave(outputs, 1)?;
        let n = numel(&w.shape()[1..]);
        sums = sums.sub(of_windows.sub((zero as i32).wrapping_mul(n as i32))?.mul(q)?)?;
    }
    Ok(sums)
}

impl Dequantized {
    /// The convolution of two such tensors with a bias, if it can be one of integers.
    pub(super) fn convolution(
        call: &Call<'_>,
        x: &Dequantized,
        weight: &Dequantized,
    ) -> Result<Option<Tensor>> {
        let shape = weight.codes.numbers.shape();
        let n = numel(shape.get(1..).unwrap_or_default());
        if !x.is_one() || !weight.differs_along(0) || !x.may_multiply(weight, n) {
            return Ok(None);
        }
        let sums = convolution(call, &x.codes, &weight.codes)?;
        scaled(&sums, [&weight.scale_along(1, sums.rank())?, &x.scale]).map(Some)
    }

    /// The matrix product of two such tensors, if it can be one of integers.
    pub(super) fn matrix_product(&self, other: &Dequantized) -> Result<Option<Tensor>> {
        let (a, b) = (&self.codes.numbers, &other.codes.numbers);
        let (&[.., k], &[.., _, _]) = (a.shape().dims(), b.shape().dims()) else { return Ok(None) };
        let (rows, columns) = (a.rank().wrapping_sub(2), b.rank() - 1);
        let fits = a.rank() >= 2 && self.differs_along(rows) && other.differs_along(columns);
        if !fits || !self.may_multiply(other, k) {
            return Ok(None);
        }
        let sums = matrix_product(&self.codes, &other.codes)?;
        scaled(&sums, [&self.scale_along(0, 2)?, &other.scale]).map(Some)
    }

    /// With rows and columns exchanged.
    pub(super) fn transposed(&self) -> Result<Dequantized> {
        let axis = self.axis.map(|axis| 1 - axis);
        Ok(Dequantized { codes: self.codes.transposed()?, scale: self.scale.clone(), axis })
    }

    fn is_one(&self) -> bool {
        self.axis.is_none()
    }

    fn differs_along(&self, axis: usize) -> bool {
        self.axis.is_none_or(|own| own == axis)
    }

    /// Whether sums of `n` products are exact in `i32`.
    fn may_multiply(&self, other: &Dequantized, n: usize) -> bool {
        self.codes.is_bytes() && other.codes.is_bytes() && n <= MOST_PRODUCTS
    }

    fn scale_along(&self, axis: usize, rank: usize) -> Result<Tensor> {
        if self.is_one() {
            return Ok(self.scale.clone());
        }
        let mut shape = vec![1; rank];
        shape[axis] = self.scale.numel();
        self.scale.reshape(shape)
    }
}

/// Sums as numbers. Halves hold no product of two scales: most are below the least of them.
fn scaled(sums: &Tensor, scales: [&Tensor; 2]) -> Result<Tensor> {
    let dtype = scales[0].dtype().promote(scales[1].dtype());
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let scale = scales[0].cast(wide).mul(scales[1].cast(wide))?;
    Ok(sums.cast(wide).mul(scale)?.cast(dtype))
}
