//! Quantisation: numbers as integers (or narrow floats) with scales and zero points, and products of these.
//!
//! Products are computed in `i32` and exact as long as they fit; quotients are rounded to nearest, ties to even,
//! before the zero point is added.

use super::integers::{Codes, Dequantized, convolution, matrix_product};
use super::math::cast_to;
use super::one;
use crate::coded::{Coded, CodedType, Powers, Rounding};
use crate::run::Call;
use crate::value::Value;
use std::borrow::Cow;
use zyx_core::{DType, Result, Tensor};

type Values = Result<Vec<Value>>;

/// Runs an operator that only moves elements on the codes of its inputs, if they are coded.
pub(super) fn moved(call: &Call<'_>, on_tensors: fn(&Call<'_>) -> Values) -> Values {
    let Some(kind) = call.inputs.iter().flatten().find_map(|value| match &**value {
        Value::Coded(coded) => Some(coded.kind),
        _ => None,
    }) else {
        return on_tensors(call);
    };
    let codes = |value: &Option<Cow<'_, Value>>| match value.as_deref() {
        Some(Value::Coded(coded)) if coded.kind != kind => {
            Err(call.error(format!("its inputs are {kind:?} and {:?}", coded.kind)))
        }
        Some(Value::Coded(coded)) => Ok(Some(Value::Tensor(coded.codes.clone()))),
        other => other.map(|value| call.copied(value)).transpose(),
    };
    let inputs = call.inputs.iter().map(codes).collect::<Result<_>>()?;
    let outputs = on_tensors(&call.with_inputs(inputs))?;
    Ok(outputs
        .into_iter()
        .map(|value| match value {
            Value::Tensor(codes) => Value::Coded(Coded { kind, codes }),
            other => other,
        })
        .collect())
}

/// Numbers of an input, whatever its elements are.
pub(super) fn numbers(call: &Call<'_>, value: &Value) -> Result<Tensor> {
    match value {
        Value::Coded(coded) if coded.kind.limits().is_some() => Ok(coded.codes.clone()),
        Value::Coded(coded) => coded.decode(DType::F32),
        value => call.to_tensor(value),
    }
}

fn rounding(call: &Call<'_>) -> Result<Rounding> {
    let powers = match call.string_or("round_mode", "up")? {
        "up" => Powers::Up,
        "down" => Powers::Down,
        "nearest" => Powers::Nearest,
        other => return Err(call.error(format!("attribute `round_mode` is `{other}`"))),
    };
    Ok(Rounding { saturate: call.int_or("saturate", 1)? != 0, powers })
}

/// The first input in an element type that no dtype has.
pub(super) fn encoded(call: &Call<'_>, kind: CodedType) -> Values {
    let x = match call.value(0)? {
        strings @ Value::Strings(..) => {
            let parsed = cast_to(call, strings, DType::F32)?;
            let first = parsed.first().ok_or_else(|| call.error("it has no input"))?;
            call.to_tensor(first)?
        }
        value => numbers(call, value)?,
    };
    one(kind.encode(&x, rounding(call)?)?)
}

/// What numbers are quantised to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Plain(DType),
    Coded(CodedType),
}

impl Target {
    fn of(call: &Call<'_>, element: i64) -> Result<Target> {
        match CodedType::of(element as i32) {
            Some(kind) => Ok(Target::Coded(kind)),
            None => {
                let dtype = crate::read::dtype(element as i32);
                dtype.map(Target::Plain).map_err(|reason| call.error(reason))
            }
        }
    }

    fn like(call: &Call<'_>, value: &Value) -> Result<Target> {
        match (value, value.dtype()) {
            (Value::Coded(coded), _) => Ok(Target::Coded(coded.kind)),
            (_, Some(dtype)) => Ok(Target::Plain(dtype)),
            (other, None) => Err(call.error(format!("a zero point is {}", other.kind()))),
        }
    }

    /// Of integers, the least and the greatest.
    fn limits(self) -> Option<(i64, i64)> {
        match self {
            Target::Coded(kind) => kind.limits(),
            Target::Plain(DType::I8) => Some((-128, 127)),
            Target::Plain(DType::U8) => Some((0, 255)),
            Target::Plain(DType::I16) => Some((-32768, 32767)),
            Target::Plain(DType::U16) => Some((0, 65535)),
            Target::Plain(_) => None,
        }
    }
}

/// A scale or zero point as a tensor that broadcasts to the shape of what is quantised: one number, one for each
/// entry of the axis, or one for each block of the axis.
pub(super) fn spread(
    call: &Call<'_>,
    value: &Tensor,
    shape: &[usize],
    axis: i64,
    block: usize,
) -> Result<Tensor> {
    if value.numel() == 1 && (value.rank() <= 1 || block == 0) {
        return value.reshape(());
    }
    let axis = call.axis(axis, shape.len())?;
    if block == 0 {
        if value.rank() != 1 || value.numel() != shape[axis] {
            let reason = format!(
                "scales or zero points of shape {} do not fit axis {axis} of {shape:?}",
                value.shape()
            );
            return Err(call.error(reason));
        }
        let mut column = vec![1; shape.len()];
        column[axis] = value.numel();
        return value.reshape(column);
    }
    let fits = value.rank() == shape.len()
        && shape.iter().zip(value.shape().dims()).enumerate().all(|(i, (&n, &blocks))| {
            if i == axis { blocks == n.div_ceil(block) } else { blocks == n }
        });
    if !fits {
        let reason = format!(
            "scales or zero points of shape {} are not those of blocks of {block} along axis {axis} of {shape:?}",
            value.shape()
        );
        return Err(call.error(reason));
    }
    // One block may be longer than the axis.
    let block = block.min(shape[axis].max(1));
    value.repeat_interleave(block, axis as isize)?.slice(axis as isize, ..shape[axis])
}

pub(super) fn block_size(call: &Call<'_>, default: i64) -> Result<usize> {
    let block = call.int_or("block_size", default)?;
    usize::try_from(block).map_err(|_| call.error(format!("attribute `block_size` is {block}")))
}

/// Quotients to integers, plus zero points, within the target's limits.
fn to_integers(
    call: &Call<'_>,
    quotient: &Tensor,
    zero_point: Option<&Tensor>,
    target: Target,
) -> Result<Value> {
    let Some((low, high)) = target.limits() else {
        return Err(call.error(format!("numbers are not quantised to {target:?}")));
    };
    // Beyond all limits even when a zero point is added, and within those of `i32`.
    let far = f64::from(1 << 17);
    let wide = if quotient.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    let mut q = quotient.round().cast(wide).clamp(-far, far)?.cast(DType::I32);
    if let Some(zero_point) = zero_point {
        q = q.add(zero_point.cast(DType::I32))?;
    }
    let q = q.clamp(low, high)?;
    match target {
        Target::Plain(dtype) => Ok(q.cast(dtype).into()),
        Target::Coded(kind) => Ok(kind.encode(&q, rounding(call)?)?.into()),
    }
}

pub(super) fn quantize_linear(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let (axis, block) = (call.int_or("axis", 1)?, block_size(call, 0)?);
    let scale = numbers(call, call.value(1)?)?;
    let wide = match call.int_or("precision", 0)? {
        0 if scale.dtype().is_float() => scale.dtype(),
        0 => DType::F32,
        element => crate::read::dtype(element as i32).map_err(|reason| call.error(reason))?,
    };
    let scale = spread(call, &scale, x.shape(), axis, block)?;
    let declared = match call.int_or("output_dtype", 0)? {
        0 => None,
        element => Some(Target::of(call, element)?),
    };
    let (target, zero_point) = match call.optional(2) {
        None => (declared.unwrap_or(Target::Plain(DType::U8)), None),
        Some(value) => {
            let target = Target::like(call, value)?;
            if let Some(declared) = declared.filter(|&declared| declared != target) {
                let reason = format!("its output is {declared:?} and its zero point {target:?}");
                return Err(call.error(reason));
            }
            let zero_point = numbers(call, value)?;
            (target, Some(spread(call, &zero_point, x.shape(), axis, block)?))
        }
    };
    let quotient = x.cast(wide).div(scale.cast(wide))?;
    match target {
        Target::Coded(kind) if kind.limits().is_none() => {
            let shifted = match zero_point {
                Some(zero_point) => quotient.add(zero_point.cast(wide))?,
                None => quotient,
            };
            one(kind.encode(&shifted, rounding(call)?)?)
        }
        target => Ok(vec![to_integers(call, &quotient, zero_point.as_ref(), target)?]),
    }
}

pub(super) fn dequantize_linear(call: &Call<'_>) -> Values {
    let x = numbers(call, call.value(0)?)?;
    let (axis, block) = (call.int_or("axis", 1)?, block_size(call, 0)?);
    let scale = numbers(call, call.value(1)?)?;
    let dtype = match call.int_or("output_dtype", 0)? {
        0 => scale.dtype(),
        element => crate::read::dtype(element as i32).map_err(|reason| call.error(reason))?,
    };
    if block == 0 && matches!(x.dtype(), DType::I8 | DType::U8) {
        let scale = if scale.numel() == 1 { scale.reshape(())? } else { scale.clone() };
        let axis = if scale.rank() == 0 { None } else { Some(call.axis(axis, x.rank())?) };
        let codes = Codes::new(call, 0, x.clone(), call.optional(2))?;
        call.stands_for(Dequantized { codes, scale: scale.cast(dtype), axis });
    }
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let scale = spread(call, &scale, x.shape(), axis, block)?;
    let centred = match call.optional(2) {
        None => x.cast(wide),
        Some(value) => {
            let zero_point = spread(call, &numbers(call, value)?, x.shape(), axis, block)?;
            let exact = if x.dtype().is_float() { wide } else { DType::I32 };
            x.cast(exact).sub(zero_point.cast(exact))?.cast(wide)
        }
    };
    one(centred.mul(scale.cast(wide))?.cast(dtype))
}

/// The scale, the zero point (a float) and the quotients of `u8` for numbers of which one is 0.
pub(super) struct Dynamic {
    pub(super) scale: Tensor,
    pub(super) zero_point: Tensor,
    pub(super) codes: Tensor,
}

pub(super) fn dynamic(call: &Call<'_>, x: &Tensor) -> Result<Dynamic> {
    let (low, high) = match x.numel() {
        0 => {
            let zero = Tensor::scalar(0.0, call.device()).cast(x.dtype());
            (zero.clone(), zero)
        }
        _ => (x.min(..)?.minimum(0.0)?, x.max(..)?.maximum(0.0)?),
    };
    let range = high.sub(&low)?;
    let scale = range.masked_fill(&range.eq(0.0)?, 1.0)?.div(255.0)?;
    let zero_point = low.neg().div(&scale)?.clamp(0.0, 255.0)?.round();
    let target = Target::Plain(DType::U8);
    let codes = to_integers(call, &x.div(&scale)?, Some(&zero_point), target)?;
    Ok(Dynamic { scale, zero_point: zero_point.cast(DType::U8), codes: call.to_tensor(&codes)? })
}

pub(super) fn dynamic_quantize_linear(call: &Call<'_>) -> Values {
    let Dynamic { scale, zero_point, codes } = dynamic(call, &call.tensor(0)?)?;
    Ok(vec![codes.into(), scale.into(), zero_point.into()])
}

/// Integers less their zero point, as `i32`.
fn centred(x: &Tensor, zero_point: Option<Tensor>) -> Result<Tensor> {
    let x = x.cast(DType::I32);
    match zero_point {
        Some(zero_point) => x.sub(zero_point.cast(DType::I32)),
        None => Ok(x),
    }
}

/// Numbers of rows of a left operand: a vector of them is a column.
fn of_rows(x: &Tensor, numbers: Tensor) -> Result<Tensor> {
    match numbers.rank() == 1 && numbers.numel() > 1 && x.rank() > 1 {
        true => numbers.unsqueeze(-1),
        false => Ok(numbers),
    }
}

/// The integers of input `i` less the zero point of input `zero`.
pub(super) fn codes(call: &Call<'_>, i: usize, zero: usize) -> Result<Codes> {
    Codes::new(call, i, call.tensor(i)?, call.optional(zero))
}

pub(super) fn matmul_integer(call: &Call<'_>) -> Values {
    one(matrix_product(&codes(call, 0, 2)?, &codes(call, 1, 3)?)?)
}

pub(super) fn qlinear_matmul(call: &Call<'_>) -> Values {
    let a = call.tensor(0)?;
    let product = matrix_product(&codes(call, 0, 2)?, &codes(call, 3, 5)?)?;
    let scale = |i: usize| call.tensor(i).map(|scale| scale.cast(DType::F32));
    let scales = of_rows(&a, scale(1)?)?.mul(scale(4)?)?.div(of_rows(&a, scale(6)?)?)?;
    let zero_point = call.optional_tensor(7)?;
    let target = Target::Plain(zero_point.as_ref().map_or(a.dtype(), Tensor::dtype));
    let quotient = product.cast(DType::F32).mul(scales)?;
    let zero_point = zero_point.map(|zero| of_rows(&a, zero)).transpose()?;
    Ok(vec![to_integers(call, &quotient, zero_point.as_ref(), target)?])
}

/// One number, or one for each entry of an axis of a tensor of this rank.
fn along(numbers: Tensor, axis: usize, rank: usize) -> Result<Tensor> {
    if numbers.numel() == 1 {
        return numbers.reshape(());
    }
    let mut shape = vec![1; rank];
    shape[axis] = numbers.numel();
    numbers.reshape(shape)
}

pub(super) fn conv_integer(call: &Call<'_>) -> Values {
    one(convolution(call, &codes(call, 0, 2)?, &codes(call, 1, 3)?)?)
}

pub(super) fn qlinear_conv(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let mut sums = convolution(call, &codes(call, 0, 2)?, &codes(call, 3, 5)?)?;
    if let Some(bias) = call.optional_tensor(8)? {
        sums = sums.add(along(bias, 1, x.rank())?)?;
    }
    let number = |i: usize| call.tensor(i)?.cast(DType::F32).reshape(());
    let w_scale = along(call.tensor(4)?.cast(DType::F32), 1, x.rank())?;
    let scales = number(1)?.mul(w_scale)?.div(number(6)?)?;
    let quotient = sums.cast(DType::F32).mul(scales)?;
    let zero_point = call.optional_tensor(7)?;
    let target = Target::Plain(zero_point.as_ref().map_or(x.dtype(), Tensor::dtype));
    let zero_point = zero_point.map(|zero| zero.reshape(())).transpose()?;
    Ok(vec![to_integers(call, &quotient, zero_point.as_ref(), target)?])
}

/// Numbers for the quantised input at `i`, whose scale and zero point are the next two.
pub(super) fn dequantized(call: &Call<'_>, i: usize) -> Result<Tensor> {
    let zero_point = call.optional_tensor(i + 2)?.map(|zero| zero.reshape(())).transpose()?;
    let scale = call.tensor(i + 1)?.cast(DType::F32).reshape(())?;
    centred(&call.tensor(i)?, zero_point)?.cast(DType::F32).mul(scale)
}

/// Numbers quantised by the scale at `i` and the zero point at `i + 1`, which has the type `dtype` where it is left
/// out.
pub(super) fn quantized(call: &Call<'_>, x: &Tensor, i: usize, dtype: DType) -> Values {
    let scale = call.tensor(i)?.cast(DType::F32).reshape(())?;
    let zero_point = call.optional_tensor(i + 1)?.map(|zero| zero.reshape(())).transpose()?;
    let target = Target::Plain(zero_point.as_ref().map_or(dtype, Tensor::dtype));
    Ok(vec![to_integers(call, &x.div(scale)?, zero_point.as_ref(), target)?])
}
