//! Normalisations, and `Dropout`.

use super::one;
use super::random::fresh_seed;
use crate::host::numel;
use crate::run::Call;
use crate::value::Value;
use zyx_core::{DType, Pool, Result, Rng, Tensor};

type Values = Result<Vec<Value>>;

const EPSILON: f64 = 1e-5;

/// The statistics are given, or those of the batch in training, which then come along mixed with the given ones and
/// (before opset 14) as they are.
pub(super) fn batch(call: &Call<'_>) -> Values {
    let (x, scale, bias) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    let (mean, var) = (call.tensor(3)?, call.tensor(4)?);
    let eps = call.float_or("epsilon", EPSILON)?;
    if call.opset() < 9 && call.int_or("spatial", 1)? == 0 {
        return Err(call.error("statistics for each element (`spatial` 0) are not supported"));
    }
    let trains = match call.opset() >= 14 {
        true => call.flag("training_mode")?,
        false => call.node.outputs.len() > 1,
    };
    if !trains {
        let y = x.batch_norm_with(&mean, &var, Some(&scale), Some(&bias), eps)?;
        return one(y.cast(x.dtype()));
    }
    let momentum = call.float_or("momentum", 0.9)?;
    let norm = x.batch_norm(Some(&scale), Some(&bias), eps)?;
    let axes: Vec<usize> = (0..x.rank()).filter(|&axis| axis != 1).collect();
    let biased = x.cast(norm.mean.dtype()).var(axes.as_slice(), 0)?;
    let mixed = |old: &Tensor, new: &Tensor| {
        let new = new.cast(old.dtype().accumulator()).mul(1.0 - momentum)?;
        Ok::<_, zyx_core::Error>(old.mul(momentum)?.add(new)?.cast(old.dtype()))
    };
    let outputs = [
        norm.output.cast(x.dtype()),
        mixed(&mean, &norm.mean)?,
        mixed(&var, &biased)?,
        norm.mean.cast(mean.dtype()),
        biased.cast(var.dtype()),
    ];
    Ok(outputs.into_iter().map(Value::Tensor).collect())
}

/// Groups of channels; a scale and bias for each channel.
fn grouped(call: &Call<'_>, x: &Tensor, groups: usize, of: [&Tensor; 2]) -> Values {
    let eps = call.float_or("epsilon", EPSILON)?;
    if x.numel() == 0 {
        return one(x.clone());
    }
    one(x.group_norm(groups, Some(of[0]), Some(of[1]), eps)?.cast(x.dtype()))
}

pub(super) fn instance(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let channels = x.shape().get(1).copied().unwrap_or(0);
    grouped(call, &x, channels, [&call.tensor(1)?, &call.tensor(2)?])
}

/// Before opset 21 scale and bias are one for each group.
pub(super) fn group(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let groups = call.sizes(&[call.int_or("num_groups", 0)?])?[0];
    let channels = x.shape().get(1).copied().unwrap_or(0);
    let per_channel = |i: usize| {
        let vector = call.tensor(i)?;
        if call.opset() >= 21 || groups == 0 {
            return Ok(vector);
        }
        vector.repeat_interleave(channels / groups, 0)
    };
    grouped(call, &x, groups, [&per_channel(1)?, &per_channel(2)?])
}

/// The axes from `axis` on.
pub(super) fn last_axes(call: &Call<'_>, rank: usize) -> Result<Vec<usize>> {
    Ok((call.axis(call.int_or("axis", -1)?, rank)?..rank).collect())
}

/// Mean and one over the standard deviation come along, in the type of `stash_type`.
pub(super) fn layer(call: &Call<'_>) -> Values {
    let (x, scale, bias) = (call.tensor(0)?, call.tensor(1)?, call.optional_tensor(2)?);
    let axes = last_axes(call, x.rank())?;
    let eps = call.float_or("epsilon", EPSILON)?;
    let stash = crate::read::dtype(call.int_or("stash_type", 1)? as i32);
    let stash = stash.map_err(|reason| call.error(reason))?;
    let y = x.layer_norm(axes.as_slice(), Some(&scale), bias.as_ref(), eps)?.cast(x.dtype());
    if call.node.outputs.len() < 2 {
        return one(y);
    }
    let wide = x.cast(x.dtype().accumulator());
    let mean = wide.mean_keepdim(axes.as_slice())?.cast(stash);
    let inverse = wide.var_keepdim(axes.as_slice(), 0)?.add(eps)?.rsqrt().cast(stash);
    Ok(vec![y.into(), mean.into(), inverse.into()])
}

pub(super) fn rms(call: &Call<'_>) -> Values {
    let (x, scale) = (call.tensor(0)?, call.tensor(1)?);
    let axes = last_axes(call, x.rank())?;
    let eps = call.float_or("epsilon", EPSILON)?;
    one(x.rms_norm(axes.as_slice(), Some(&scale), eps)?.cast(x.dtype()))
}

pub(super) fn mean_variance(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let axes = call.ints_attribute("axes")?.unwrap_or_else(|| vec![0, 2, 3]);
    let axes = call.axes(&axes, x.rank())?;
    // Of what has no variance the result is 0: the standard adds 1e-9 to the standard deviation.
    one(x.layer_norm(axes.as_slice(), None, None, 1e-18)?.cast(x.dtype()))
}

/// Each element divided by a power of the sum of squares of `size` channels around it.
pub(super) fn local_response(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let size = call.sizes(&[call.int_or("size", 0)?])?[0];
    if x.rank() < 2 || size == 0 {
        return Err(call.error(format!("{size} channels of a tensor of shape {}", x.shape())));
    }
    if x.numel() == 0 {
        return one(x);
    }
    let (alpha, beta) = (call.float_or("alpha", 1e-4)?, call.float_or("beta", 0.75)?);
    let bias = call.float_or("bias", 1.0)?;
    let wide = x.cast(x.dtype().accumulator());
    let (batch, channels) = (x.shape()[0], x.shape()[1]);
    let inner = numel(&x.shape()[2..]);
    let before = (size - 1) / 2;
    let squares = wide.square().reshape([batch, channels, inner])?;
    let squares = squares.pad([(0, 0), (before, size - 1 - before), (0, 0)])?;
    // The mean over the window is the sum divided by `size`.
    let means = squares.avg_pool2d(Pool { stride: [1, 1], ..Pool::new([size, 1]) })?;
    let divisor = means.mul(alpha)?.add(bias)?.pow(beta)?.reshape(x.shape())?;
    one(wide.div(&divisor)?.cast(x.dtype()))
}

/// Divided by the norm along an axis; what has norm 0 stays 0.
pub(super) fn lp(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let axis = call.axis(call.int_or("axis", -1)?, x.rank())? as isize;
    let wide = x.cast(x.dtype().accumulator());
    let norm = match call.int_or("p", 2)? {
        1 => wide.abs().sum_keepdim(axis)?,
        2 => wide.square().sum_keepdim(axis)?.sqrt(),
        p => return Err(call.error(format!("attribute `p` is {p}, not 1 or 2"))),
    };
    let is_zero = norm.eq(0.0)?;
    let y = wide.div(&norm)?;
    one(is_zero.where_(y.zeros_like(), &y)?.cast(x.dtype()))
}

/// Nothing happens outside of training (which there is since opset 12). The second output tells what was kept.
pub(super) fn dropout(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let given = |i: usize| -> Result<Option<f64>> {
        let Some(value) = call.optional(i) else { return Ok(None) };
        Ok(call.read(value)?.floats().first().copied())
    };
    let trains = call.opset() >= 12 && given(2)?.is_some_and(|trains| trains != 0.0);
    let ratio = if trains { given(1)?.unwrap_or(0.5) } else { 0.0 };
    let kept_as = if call.opset() >= 10 { DType::Bool } else { x.dtype() };
    if ratio == 0.0 {
        let kept = Tensor::ones(x.shape(), kept_as, call.device());
        return Ok(vec![call.copied(call.value(0)?)?, kept.into()]);
    }
    let seed = match call.int_attribute("seed")? {
        Some(seed) => seed as u64,
        None => fresh_seed(call),
    };
    let ones = Tensor::ones(x.shape(), DType::F32, call.device());
    let kept = ones.dropout(ratio, &mut Rng::seed(seed))?.ne(0.0)?;
    let y = kept.where_(x.div(1.0 - ratio)?, x.zeros_like())?;
    Ok(vec![y.into(), kept.cast(kept_as).into()])
}
