//! Operators of the domain `com.microsoft` but for attention: quantised ones, fused activations and norms.

use super::index::from_front;
use super::integers::{Codes, matrix_product};
use super::normalize::last_axes;
use super::one;
use super::pool::averages;
use super::quantize::{block_size, codes, dequantized, dynamic, numbers, quantized, spread};
use crate::coded::Coded;
use crate::run::Call;
use crate::value::Value;
use zyx_core::{DType, QuantizedMatrix, Result, Tensor};

type Values = Result<Vec<Value>>;

/// A function of two quantised tensors that is computed on their numbers.
fn qlinear(call: &Call<'_>, f: impl Fn(&Tensor, &Tensor) -> Result<Tensor>) -> Values {
    let y = f(&dequantized(call, 0)?, &dequantized(call, 3)?)?;
    quantized(call, &y, 6, call.tensor(0)?.dtype())
}

pub(super) fn qlinear_add(call: &Call<'_>) -> Values {
    qlinear(call, |x, y| x.add(y))
}

pub(super) fn qlinear_mul(call: &Call<'_>) -> Values {
    qlinear(call, |x, y| x.mul(y))
}

pub(super) fn qlinear_sigmoid(call: &Call<'_>) -> Values {
    quantized(call, &dequantized(call, 0)?.sigmoid(), 3, call.tensor(0)?.dtype())
}

pub(super) fn qlinear_leaky_relu(call: &Call<'_>) -> Values {
    let alpha = call.float_or("alpha", 0.01)?;
    quantized(call, &dequantized(call, 0)?.leaky_relu(alpha), 3, call.tensor(0)?.dtype())
}

/// The inputs are the output's scale and zero point, and then a tensor, its scale and its zero point each.
pub(super) fn qlinear_concat(call: &Call<'_>) -> Values {
    if call.inputs.len() < 5 || call.inputs.len() % 3 != 2 {
        return Err(call.error(format!("{} inputs are no tensors with scales", call.inputs.len())));
    }
    let parts = (2..call.inputs.len()).step_by(3).map(|i| dequantized(call, i));
    let parts = parts.collect::<Result<Vec<_>>>()?;
    let axis = call.axis(call.int_or("axis", 0)?, parts[0].rank())? as isize;
    let y = Tensor::cat(&parts.iter().collect::<Vec<_>>(), axis)?;
    quantized(call, &y, 0, call.tensor(2)?.dtype())
}

/// With channels behind the spatial axes, runs a function on what has them in front of these.
fn channels_first(
    call: &Call<'_>,
    x: &Tensor,
    f: impl Fn(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    match call.flag("channels_last")? {
        true => f(&x.movedim([-1], [1])?)?.movedim([1], [-1]),
        false => f(x),
    }
}

pub(super) fn qlinear_average_pool(call: &Call<'_>) -> Values {
    let y = channels_first(call, &dequantized(call, 0)?, |x| averages(call, x, true))?;
    quantized(call, &y, 3, call.tensor(0)?.dtype())
}

pub(super) fn qlinear_global_average_pool(call: &Call<'_>) -> Values {
    let y = channels_first(call, &dequantized(call, 0)?, |x| {
        x.mean_keepdim((2..x.rank()).collect::<Vec<_>>().as_slice())
    })?;
    quantized(call, &y, 3, call.tensor(0)?.dtype())
}

/// Products with a matrix of integers of four or eight bits in blocks, each with a scale and a zero point.
pub(super) fn matmul_nbits(call: &Call<'_>) -> Values {
    let (x, packed) = (call.tensor(0)?, call.tensor(1)?);
    let attribute = |name: &str, default: i64| -> Result<usize> {
        let n = call.int_or(name, default)?;
        let size = usize::try_from(n).ok().filter(|&n| n <= i32::MAX as usize);
        size.ok_or_else(|| call.error(format!("attribute `{name}` is {n}")))
    };
    let (columns, rows) = (attribute("K", 0)?, attribute("N", 0)?);
    let (block, bits) = (attribute("block_size", 0)?, attribute("bits", 4)?);
    if !matches!(bits, 4 | 8) || block == 0 || block % 2 != 0 {
        let reason = format!("blocks of {block} numbers of {bits} bits are not supported");
        return Err(call.error(reason));
    }
    if call.optional(4).is_some() || call.flag("weight_prepacked")? {
        return Err(call.error("groups in another order and prepacked weights are not supported"));
    }
    let (blocks, bytes) = (columns.div_ceil(block), block * bits / 8);
    if *packed.shape().dims() != [rows, blocks, bytes] || x.shape().last() != Some(&columns) {
        let (packed, x) = (packed.shape(), x.shape());
        let reason = format!(
            "{packed} is not [{rows}, {blocks}, {bytes}], or {x} has not {columns} columns"
        );
        return Err(call.error(reason));
    }
    let scales = call.tensor(2)?.cast(DType::F32).reshape([rows, blocks])?;
    // The last block may be partly empty.
    let mut padding = vec![(0, 0); x.rank()];
    padding[x.rank() - 1].1 = blocks * block - columns;
    let wide = x.cast(DType::F32).pad(padding)?;
    let middle = 1 << (bits - 1);
    let codes = packed.reshape([rows, blocks * bytes])?;
    let codes = if bits == 8 { codes.bitwise_xor(128)?.bitcast(DType::I8)? } else { codes };
    let matrix =
        QuantizedMatrix { packed: codes, scales: scales.clone(), bits: bits as u32, group: block };
    let mut y = matrix.matmul(&wide)?;
    if let Some(zero) = call.optional_tensor(3)? {
        let zero = match zero.dtype() {
            DType::U8 if bits == 4 => {
                nibbles(&zero.reshape([rows, blocks.div_ceil(2)])?)?.slice(1, ..blocks)?
            }
            _ => zero.reshape([rows, blocks])?,
        };
        // What the matrix takes for zero is the middle of the codes.
        let mut split = wide.shape().to_vec();
        split.pop();
        split.extend([blocks, block]);
        let sums = wide.reshape(split)?.sum(-1)?;
        let zero = zero.cast(DType::F32);
        y = y.add(sums.matmul(&zero.neg().add(middle)?.mul(&scales)?.transpose(0, 1)?)?)?;
    }
    if let Some(bias) = call.optional_tensor(5)? {
        y = y.add(bias.cast(DType::F32))?;
    }
    one(y.cast(x.dtype()))
}

/// Numbers of four bits, two in each byte along the last axis, the first in the low bits.
fn nibbles(bytes: &Tensor) -> Result<Tensor> {
    let mut shape = bytes.shape().to_vec();
    if let Some(last) = shape.last_mut() {
        *last *= 2;
    }
    Tensor::stack(&[&bytes.bitwise_and(15)?, &bytes.shr(4)?], -1)?.reshape(shape)
}

/// Entries of a table that is quantised in blocks.
pub(super) fn gather_block_quantized(call: &Call<'_>) -> Values {
    let (shape, index) = (call.shape(0)?, call.tensor(1)?);
    let axis = call.axis(call.int_or("gather_axis", 0)?, shape.len())?;
    let blocked = call.axis(call.int_or("quantize_axis", 1)?, shape.len())?;
    let (block, bits) = (block_size(call, 128)?, call.int_or("bits", 4)?);
    if axis == blocked || !matches!(bits, 4 | 8) {
        let reason =
            format!("entries of axis {axis}, quantised along axis {blocked} to {bits} bits");
        return Err(call.error(format!("{reason}, are not supported")));
    }
    let at = from_front(&index.flatten(), shape[axis])?;
    let picked = |value: &Value| -> Result<Value> {
        Ok(match value {
            Value::Coded(coded) => {
                let codes = coded.codes().index_select(axis as isize, &at)?;
                Value::Coded(Coded { kind: coded.kind, codes })
            }
            value => call.to_tensor(value)?.index_select(axis as isize, &at)?.into(),
        })
    };
    // Bytes hold one number or two, of which the middle stands for zero.
    let is_bytes = call.value(0)?.dtype() == Some(DType::U8);
    let widened = |value: &Value| -> Result<Tensor> {
        let x = numbers(call, &picked(value)?)?;
        if is_bytes && bits == 4 { nibbles(&x) } else { Ok(x) }
    };
    let codes = widened(call.value(0)?)?.cast(DType::F32);
    let scales = call.tensor(2)?;
    let dtype = scales.dtype();
    let scales = call.to_tensor(&picked(&scales.into())?)?;
    let extent = scales.shape().last().copied().unwrap_or(1);
    let over = |x: &Tensor| spread(call, x, codes.shape(), blocked as i64, block);
    let zero = match call.optional(3) {
        Some(zero) => over(&widened(zero)?.slice(-1, ..extent)?)?.cast(DType::F32),
        None => {
            let middle = if is_bytes { 1 << (bits - 1) } else { 0 };
            Tensor::scalar(middle, call.device()).cast(DType::F32)
        }
    };
    let y = codes.sub(zero)?.mul(over(&scales)?.cast(DType::F32))?.cast(dtype);
    let mut out = y.shape().to_vec();
    out.splice(axis..=axis, index.shape().iter().copied());
    one(y.reshape(out)?)
}

/// Sums of products of integers as floats, with a bias at input `bias`.
fn scaled(call: &Call<'_>, sums: &Tensor, scale: Tensor, bias: usize) -> Values {
    let y = sums.cast(DType::F32).mul(scale.cast(DType::F32))?.cast(scale.dtype());
    one(match call.optional_tensor(bias)? {
        Some(bias) => y.add(bias)?,
        None => y,
    })
}

pub(super) fn dynamic_quantize_matmul(call: &Call<'_>) -> Values {
    let a = dynamic(call, &call.tensor(0)?)?;
    let zero = Value::Tensor(a.zero_point);
    let left = Codes::new(call, 0, a.codes, Some(&zero))?;
    let sums = matrix_product(&left, &codes(call, 1, 3)?)?;
    scaled(call, &sums, a.scale.mul(call.tensor(2)?)?, 4)
}

pub(super) fn matmul_integer_to_float(call: &Call<'_>) -> Values {
    let sums = matrix_product(&codes(call, 0, 4)?, &codes(call, 1, 5)?)?;
    scaled(call, &sums, call.tensor(2)?.mul(call.tensor(3)?)?, 6)
}

/// `alpha A B + C` of quantised matrices, whose scales and zero points are the two inputs behind each: quantised by the
/// inputs behind `C`, or left as numbers where there are none.
pub(super) fn qgemm(call: &Call<'_>) -> Values {
    let turned = |codes: Codes, name: &str| -> Result<Codes> {
        if call.flag(name)? { codes.transposed() } else { Ok(codes) }
    };
    let (a, b) = (turned(codes(call, 0, 2)?, "transA")?, turned(codes(call, 3, 5)?, "transB")?);
    let mut sums = matrix_product(&a, &b)?;
    if let Some(c) = call.optional_tensor(6)? {
        sums = sums.add(c)?;
    }
    let scale = call.tensor(1)?.mul(call.tensor(4)?)?.mul(call.float_or("alpha", 1.0)?)?;
    let y = sums.cast(DType::F32).mul(scale.cast(DType::F32))?;
    if call.optional(7).is_none() {
        return one(y);
    }
    quantized(call, &y, 7, call.tensor(0)?.dtype())
}

/// `alpha A B`, with axes of each exchanged.
pub(super) fn fused_matmul(call: &Call<'_>) -> Values {
    let turned = |i: usize, name: &str, batch: &str| -> Result<Tensor> {
        let mut x = call.tensor(i)?;
        let rank = x.rank() as isize;
        if call.flag(batch)? && rank > 2 {
            // The first axis becomes the rows.
            x = x.movedim([0], [rank - 2])?;
        }
        if call.flag(name)? && rank > 1 { x.transpose(-2, -1) } else { Ok(x) }
    };
    let (a, b) = (turned(0, "transA", "transBatchA")?, turned(1, "transB", "transBatchB")?);
    let y = a.matmul(&b)?;
    one(match call.float_or("alpha", 1.0)? {
        1.0 => y,
        alpha => y.mul(alpha)?,
    })
}

/// The first input, plus the second if there is one.
fn biased(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    match call.optional_tensor(1)? {
        Some(bias) => x.add(bias),
        None => Ok(x),
    }
}

pub(super) fn bias_gelu(call: &Call<'_>) -> Values {
    one(biased(call)?.gelu_exact())
}

pub(super) fn fast_gelu(call: &Call<'_>) -> Values {
    one(biased(call)?.gelu())
}

pub(super) fn quick_gelu(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    one(x.mul(call.float_or("alpha", 1.702)?)?.sigmoid().mul(&x)?)
}

/// The sum of input, skip and, at `bias`, a bias.
fn skipped(call: &Call<'_>, bias: usize) -> Result<Tensor> {
    let sum = call.tensor(0)?.add(call.tensor(1)?)?;
    match call.optional_tensor(bias)? {
        Some(bias) => sum.add(bias),
        None => Ok(sum),
    }
}

fn epsilon(call: &Call<'_>, default: f64) -> Result<f64> {
    call.float_or("epsilon", default)
}

/// `1 / sqrt(mean(x^2) + eps)` over the axes.
fn inverse_size(x: &Tensor, axes: &[usize], eps: f64) -> Result<Tensor> {
    Ok(x.cast(DType::F32).square().mean_keepdim(axes)?.add(eps)?.rsqrt())
}

pub(super) fn skip_layer_norm(call: &Call<'_>) -> Values {
    let (x, eps) = (skipped(call, 4)?, epsilon(call, 1e-12)?);
    let y = x.layer_norm(-1, Some(&call.tensor(2)?), call.optional_tensor(3)?.as_ref(), eps)?;
    let mean = x.cast(DType::F32).mean_keepdim(-1)?;
    let inverse = inverse_size(&x.cast(DType::F32).sub(&mean)?, &[x.rank() - 1], eps)?;
    Ok(vec![y.into(), mean.into(), inverse.into(), x.into()])
}

pub(super) fn skip_rms_norm(call: &Call<'_>) -> Values {
    let (x, eps) = (skipped(call, 3)?, epsilon(call, 1e-12)?);
    let y = x.rms_norm(-1, Some(&call.tensor(2)?), eps)?;
    let inverse = inverse_size(&x, &[x.rank() - 1], eps)?;
    Ok(vec![y.into(), Value::Optional(None), inverse.into(), x.into()])
}

pub(super) fn rms_norm(call: &Call<'_>) -> Values {
    let (x, eps) = (call.tensor(0)?, epsilon(call, 1e-5)?);
    let axes = last_axes(call, x.rank())?;
    let y = x.rms_norm(axes.as_slice(), Some(&call.tensor(1)?), eps)?;
    Ok(vec![y.cast(x.dtype()).into(), inverse_size(&x, &axes, eps)?.into()])
}

pub(super) fn embed_layer_norm(call: &Call<'_>) -> Values {
    let ids = call.tensor(0)?;
    let &[batch, length] = ids.shape().dims() else {
        return Err(call.error(format!("its ids have shape {}, not two axes", ids.shape())));
    };
    let rows = |table: usize, index: &Tensor| -> Result<Tensor> {
        let table = call.tensor(table)?;
        let shape = [index.shape().dims(), table.shape().get(1..).unwrap_or_default()].concat();
        let index = index.flatten().cast(DType::I64).unchecked_indices();
        table.index_select(0, &index)?.reshape(shape)
    };
    let positions = match call.optional_tensor(8)? {
        Some(positions) => positions,
        None => Tensor::iota(length, DType::I64, call.device()).unsqueeze(0)?,
    };
    let mut sum = rows(2, &ids)?.add(rows(3, &positions)?)?;
    if let (Some(segments), Some(_)) = (call.optional_tensor(1)?, call.optional(4)) {
        sum = sum.add(rows(4, &segments)?)?;
    }
    let eps = epsilon(call, 1e-12)?;
    let y = sum.layer_norm(-1, Some(&call.tensor(5)?), Some(&call.tensor(6)?), eps)?;
    let counts = match call.optional_tensor(7)? {
        Some(mask) => mask.eq(1)?.cast(DType::I32).sum(1)?.cast(DType::I32),
        None => Tensor::zeros([batch], DType::I32, call.device()),
    };
    Ok(vec![y.into(), counts.into(), sum.into()])
}
