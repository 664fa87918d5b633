//! Reductions and running sums.

use super::one;
use crate::host::Host;
use crate::run::Call;
use crate::value::Value;
use zyx_core::ops::BinaryOp;
use zyx_core::{DType, Result, Tensor};

type Values = Result<Vec<Value>>;

/// The axes of a reduction: an attribute at first, then an input; none means all, or nothing where the node says so.
fn axes(call: &Call<'_>, input_since: i64, rank: usize) -> Result<Vec<isize>> {
    let axes = match call.opset() >= input_since {
        true => call.optional_ints(1)?,
        false => call.ints_attribute("axes")?,
    };
    let all = || (0..rank as i64).collect();
    let axes = match axes {
        Some(axes) if !axes.is_empty() => axes,
        _ if call.opset() >= input_since && call.flag("noop_with_empty_axes")? => Vec::new(),
        _ => all(),
    };
    Ok(call.axes(&axes, rank)?.into_iter().map(|axis| axis as isize).collect())
}

/// `f` reduces axes and drops them.
fn reduce(
    call: &Call<'_>,
    input_since: i64,
    f: impl Fn(&Tensor, &[isize]) -> Result<Tensor>,
) -> Values {
    let x = call.tensor(0)?;
    let axes = axes(call, input_since, x.rank())?;
    if axes.is_empty() && x.rank() > 0 {
        // What is reduced over no axis is still squared or made absolute.
        return one(f(&x.unsqueeze(0)?, &[0])?.cast(x.dtype()));
    }
    let y =
        if axes.is_empty() { f(&x.unsqueeze(0)?, &[0])? } else { f(&x, &axes)? }.cast(x.dtype());
    if call.int_or("keepdims", 1)? == 0 {
        return one(y);
    }
    let kept: Vec<usize> = (0..x.rank())
        .map(|axis| if axes.contains(&(axis as isize)) { 1 } else { x.shape()[axis] })
        .collect();
    one(y.reshape(kept)?)
}

pub(super) fn sum(call: &Call<'_>) -> Values {
    reduce(call, 13, |x, axes| x.sum(axes))
}

pub(super) fn mean(call: &Call<'_>) -> Values {
    reduce(call, 18, |x, axes| x.mean(axes))
}

/// Of vectors that the host knows, as in sizes, on the host.
pub(super) fn prod(call: &Call<'_>) -> Values {
    if let Some(host) = call.host(0)
        && let [_] = host.shape()
        && !host.numbers().is_empty()
    {
        let one_of = |x, y| BinaryOp::Mul.eval(x, y);
        let product = host.numbers().iter().copied().reduce(one_of).into_iter().collect();
        let shape = if call.int_or("keepdims", 1)? == 0 { vec![] } else { vec![1] };
        return one(Host::new(shape, host.dtype(), product));
    }
    reduce(call, 18, |x, axes| x.prod(axes))
}

pub(super) fn max(call: &Call<'_>) -> Values {
    reduce(call, 18, |x, axes| extreme(x, axes, true))
}

pub(super) fn min(call: &Call<'_>) -> Values {
    reduce(call, 18, |x, axes| extreme(x, axes, false))
}

/// Of nothing it is the least (or greatest) value of the dtype.
fn extreme(x: &Tensor, axes: &[isize], is_max: bool) -> Result<Tensor> {
    if x.dtype() == DType::Bool {
        let y = extreme(&x.cast(DType::U8), axes, is_max)?;
        return Ok(y.cast(DType::Bool));
    }
    if x.numel() > 0 {
        return if is_max { x.amax(axes) } else { x.amin(axes) };
    }
    let scalar = match (x.dtype().is_float(), is_max) {
        (true, true) => zyx_core::Scalar::from(f64::NEG_INFINITY),
        (true, false) => zyx_core::Scalar::from(f64::INFINITY),
        (false, true) => zyx_core::Scalar::lowest(x.dtype()),
        (false, false) => zyx_core::Scalar::highest(x.dtype()),
    };
    let shape: Vec<usize> = (0..x.rank())
        .filter(|&axis| !axes.contains(&(axis as isize)))
        .map(|axis| x.shape()[axis])
        .collect();
    Ok(match x.dtype().is_float() {
        true => Tensor::full(shape, scalar.to_f64(), x.device()).cast(x.dtype()),
        false => Tensor::full(shape, scalar.to_i64(), x.device()).cast(x.dtype()),
    })
}

pub(super) fn l1(call: &Call<'_>) -> Values {
    reduce(call, 18, |x, axes| x.abs().sum(axes))
}

pub(super) fn l2(call: &Call<'_>) -> Values {
    reduce(call, 18, |x, axes| {
        let wide = if x.dtype().is_float() { x.clone() } else { x.cast(DType::F64) };
        Ok(wide.square().sum(axes)?.sqrt())
    })
}

pub(super) fn log_sum(call: &Call<'_>) -> Values {
    reduce(call, 18, |x, axes| Ok(floating(x).sum(axes)?.log()))
}

pub(super) fn log_sum_exp(call: &Call<'_>) -> Values {
    reduce(call, 18, |x, axes| floating(x).logsumexp(axes))
}

fn floating(x: &Tensor) -> Tensor {
    if x.dtype().is_float() { x.clone() } else { x.cast(DType::F64) }
}

pub(super) fn sum_square(call: &Call<'_>) -> Values {
    reduce(call, 18, |x, axes| x.square().sum(axes))
}

fn extreme_position(call: &Call<'_>, f: fn(&Tensor, isize) -> Result<Tensor>) -> Values {
    let x = call.tensor(0)?;
    let axis = call.axis(call.int_or("axis", 0)?, x.rank())? as isize;
    let n = x.shape()[axis as usize];
    let last = call.flag("select_last_index")?;
    let y = match last {
        true => f(&x.flip(axis)?, axis)?.neg().add((n as i64) - 1)?,
        false => f(&x, axis)?,
    };
    one(if call.int_or("keepdims", 1)? == 0 { y } else { y.unsqueeze(axis)? })
}

pub(super) fn argmax(call: &Call<'_>) -> Values {
    extreme_position(call, Tensor::argmax)
}

pub(super) fn argmin(call: &Call<'_>) -> Values {
    extreme_position(call, Tensor::argmin)
}

/// From the front or the back, with or without the element itself (`neutral` in the first place).
fn running(call: &Call<'_>, f: fn(&Tensor, isize) -> Result<Tensor>, neutral: f64) -> Values {
    let x = call.tensor(0)?;
    let axis = call.axis(call.int(1)?, x.rank())?;
    let reverse = call.flag("reverse")?;
    let mut y = if reverse { x.flip(axis as isize)? } else { x.clone() };
    if call.flag("exclusive")? && x.shape()[axis] > 0 {
        let n = y.shape()[axis];
        let mut padding = vec![(0, 0); y.rank()];
        padding[axis] = (1, 0);
        y = y.slice(axis as isize, ..n - 1)?.pad_with(padding, neutral)?;
    }
    let y = f(&y, axis as isize)?.cast(x.dtype());
    one(if reverse { y.flip(axis as isize)? } else { y })
}

pub(super) fn cumsum(call: &Call<'_>) -> Values {
    running(call, Tensor::cumsum, 0.0)
}

pub(super) fn cumprod(call: &Call<'_>) -> Values {
    running(call, Tensor::cumprod, 1.0)
}
