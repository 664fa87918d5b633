//! Operators of the domain `com.microsoft` that are others with something before or behind: activations, a sum, channels
//! behind the spatial axes, quantisation.

use super::convolution::conv;
use super::linear::gemm;
use super::math::along;
use super::one;
use super::quantize::{dequantized, quantized};
use super::recurrent::Activation;
use crate::run::Call;
use crate::value::Value;
use zyx_core::{DType, Result, Tensor};

type Values = Result<Vec<Value>>;

fn first(call: &Call<'_>, values: &[Value]) -> Result<Tensor> {
    call.to_tensor(values.first().ok_or_else(|| call.error("it has no output"))?)
}

/// The function that the attribute `activation` names, with its parameters.
fn activated(call: &Call<'_>, y: &Tensor, parameters: &[Option<f64>]) -> Values {
    let parameter = |i: usize| parameters.get(i).copied().flatten();
    one(match (call.string_or("activation", "")?, parameter(0), parameter(1)) {
        ("", _, _) => y.clone(),
        ("Clip", Some(low), Some(high)) => y.clamp(low, high)?,
        (name, alpha, beta) => Activation::named(call, name, || alpha, || beta)?.of(y)?,
    })
}

/// A convolution, plus the fourth input, activated.
pub(super) fn fused_conv(call: &Call<'_>) -> Values {
    let mut y = first(call, &conv(call)?)?;
    if let Some(sum) = call.optional_tensor(3)? {
        y = y.add(sum)?;
    }
    let parameters = call.floats_attribute("activation_params")?.unwrap_or_default();
    let parameters: Vec<_> = parameters.iter().map(|&x| Some(f64::from(x))).collect();
    activated(call, &y, &parameters)
}

pub(super) fn fused_gemm(call: &Call<'_>) -> Values {
    let parameter = |name: &str| call.float_attribute(name);
    let parameters = [parameter("activation_alpha")?, parameter("activation_beta")?];
    activated(call, &first(call, &gemm(call)?)?, &parameters)
}

/// A convolution of images whose channels are behind the spatial axes. So may those of the weight be, where only that
/// fits the image.
pub(super) fn nhwc_conv(call: &Call<'_>) -> Values {
    let (x, weight) = (call.tensor(0)?, call.tensor(1)?);
    let groups = usize::try_from(call.int_or("group", 1)?).unwrap_or(0);
    let fits = |axis: usize| {
        let channels = weight.shape().get(axis).map(|n| n.saturating_mul(groups));
        channels.is_some() && channels.as_ref() == x.shape().last()
    };
    let is_last = !fits(1) && weight.rank() > 2 && fits(weight.rank() - 1);
    let weight = if is_last { weight.movedim([-1], [1])? } else { weight };
    if x.rank() < 3 {
        return Err(call.error(format!("shape {} has no spatial axes", x.shape())));
    }
    let bias = call.optional(2).cloned();
    let inputs = vec![Some(x.movedim([-1], [1])?.into()), Some(weight.into()), bias];
    one(first(call, &conv(&call.with_inputs(inputs))?)?.movedim([1], [-1])?)
}

/// Groups of channels, behind the spatial axes if nothing else is said, and `silu` behind if asked for.
pub(super) fn group_norm(call: &Call<'_>) -> Values {
    let (x, scale, bias) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    let groups = call.sizes(&[call.int_or("groups", 0)?])?[0];
    let is_last = call.int_or("channels_last", 1)? != 0;
    if x.rank() < 3 {
        return Err(call.error(format!("shape {} has no spatial axes", x.shape())));
    }
    let wide = x.cast(DType::F32);
    let wide = if is_last { wide.movedim([-1], [1])? } else { wide };
    let eps = call.float_or("epsilon", 1e-5)?;
    let y = wide.group_norm(groups, Some(&scale), Some(&bias), eps)?;
    let y = match call.int_or("activation", 0)? {
        0 => y,
        1 => y.silu(),
        other => return Err(call.error(format!("attribute `activation` is {other}"))),
    };
    one(if is_last { y.movedim([1], [-1])? } else { y }.cast(x.dtype()))
}

pub(super) fn qlinear_softmax(call: &Call<'_>) -> Values {
    let opset = call.int_attribute("opset")?.unwrap_or(13);
    let y = along(call, &dequantized(call, 0)?, opset, |x, axis| x.softmax(axis))?;
    quantized(call, &y, 3, call.tensor(0)?.dtype())
}
