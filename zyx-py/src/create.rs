//! Methods whose parameters Python users write differently than Rust's: ranges with defaults, `-1`
//! in shapes, an axis or none.

use crate::arguments::{Number, Ready};
use crate::dtype::default_float;
use zyx::{DType, Device, Error, Operand as _, Result, Shape, Tensor};

/// An error of an argument.
#[track_caller]
pub(crate) fn refuse(op: &'static str, reason: String) -> Error {
    Error::Argument { op, reason, location: std::panic::Location::caller() }
}

/// `start, start + step, ..` below `end`; with one number, from 0.
pub(crate) fn arange(
    start: Number,
    end: Option<Number>,
    step: Option<Number>,
    dtype: Option<DType>,
    device: &Device,
) -> Result<Tensor> {
    let (start, end) = match end {
        Some(end) => (start, end),
        None => (Number::Int(0), start),
    };
    let step = step.unwrap_or(Number::Int(1));
    let whole = |x: Number| match x {
        Number::Int(x) => Some(x),
        Number::Bool(x) => Some(i64::from(x)),
        _ => None,
    };
    if let (Some(start), Some(end), Some(step)) = (whole(start), whole(end), whole(step)) {
        let to = dtype.unwrap_or(DType::I64);
        if step == 0 {
            return Err(refuse("arange", "the step is 0".to_owned()));
        }
        // Nothing, rather than an error, where the step leads away: as NumPy does it.
        if (end > start) != (step > 0) || start == end {
            return Ok(Tensor::zeros([0], to, device));
        }
        return Ok(Tensor::arange(start, end, step, device)?.cast(to));
    }
    let (start, end, step) = (start.float(), end.float(), step.float());
    let to = dtype.unwrap_or_else(default_float);
    if (end - start) / step <= 0.0 {
        return Ok(Tensor::zeros([0], to, device));
    }
    Ok(Tensor::arange(start, end, step, device)?.cast(to))
}

/// `n` numbers from `start` to `end`, both included: from both ends, so both are exact.
pub(crate) fn linspace(
    start: f64,
    end: f64,
    n: usize,
    dtype: DType,
    device: &Device,
) -> Result<Tensor> {
    if dtype == DType::F32 {
        return Ok(Tensor::linspace(start, end, n, device));
    }
    let step = (end - start) / n.saturating_sub(1).max(1) as f64;
    let at = Tensor::iota(n, DType::F64, device);
    let back = (&at - (n as f64 - 1.0)) * step + end;
    Ok(at.lt((n / 2).max(1) as f64)?.where_(&at * step + start, back)?.cast(dtype))
}

/// Another shape; one extent may be -1 and follows from the others.
pub(crate) fn reshape(t: &Tensor, shape: &[i64]) -> Result<Tensor> {
    let known: Vec<usize> = shape.iter().filter_map(|&n| usize::try_from(n).ok()).collect();
    if known.len() == shape.len() {
        return t.reshape(known);
    }
    let listed = || format!("{shape:?}");
    if known.len() + 1 < shape.len() || shape.iter().any(|&n| n < -1) {
        let reason =
            format!("a shape has one -1 at most and no other negative extent: {}", listed());
        return Err(refuse("reshape", reason));
    }
    let rest = Shape::from(&known[..]).checked_numel().unwrap_or(0);
    if rest == 0 || !t.numel().is_multiple_of(rest) {
        let reason = format!("{} elements do not fit {}", t.numel(), listed());
        return Err(Error::Shape {
            op: "reshape",
            reason,
            operands: [t].into_iter().collect(),
            location: std::panic::Location::caller(),
        });
    }
    let whole = shape.iter().map(|&n| usize::try_from(n).unwrap_or(t.numel() / rest));
    t.reshape(whole.collect::<Vec<_>>())
}

/// Axes of extent 1 repeated; -1 leaves an extent as it is.
pub(crate) fn expand(t: &Tensor, shape: &[i64]) -> Result<Tensor> {
    let extent = |(i, &n): (usize, &i64)| match usize::try_from(n) {
        Ok(n) => Ok(n),
        Err(_) => (i + t.rank()).checked_sub(shape.len()).filter(|_| n == -1).map_or_else(
            || Err(refuse("expand", format!("{n} is no extent of an axis"))),
            |axis| Ok(t.shape()[axis]),
        ),
    };
    t.expand(shape.iter().enumerate().map(extent).collect::<Result<Vec<_>>>()?)
}

/// The elements of one axis from `start` up to `end`, or to its end.
pub(crate) fn slice(t: &Tensor, axis: isize, start: usize, end: Option<usize>) -> Result<Tensor> {
    match end {
        Some(end) => t.slice(axis, start..end),
        None => t.slice(axis, start..),
    }
}

/// A position along an axis, or among all elements.
pub(crate) fn arg(
    t: &Tensor,
    axis: Option<isize>,
    keepdim: bool,
    of: fn(&Tensor, isize) -> Result<Tensor>,
) -> Result<Tensor> {
    let Some(axis) = axis else {
        let found = of(&t.flatten(), 0)?;
        return if keepdim { found.reshape(vec![1; t.rank()]) } else { Ok(found) };
    };
    let found = of(t, axis)?;
    if keepdim { found.unsqueeze(axis) } else { Ok(found) }
}

/// Each element limited from below, from above, or both.
pub(crate) fn clamp(t: &Tensor, min: Option<Ready>, max: Option<Ready>) -> Result<Tensor> {
    match (min, max) {
        (Some(min), Some(max)) => t.clamp(min, max),
        // An infinite limit is none.
        (Some(min), None) if t.dtype().is_float() => t.clamp(min, f64::INFINITY),
        (None, Some(max)) if t.dtype().is_float() => t.clamp(f64::NEG_INFINITY, max),
        (Some(min), None) => t.maximum(min.resolve(t)),
        (None, Some(max)) => t.minimum(max.resolve(t)),
        (None, None) => Err(refuse("clamp", "neither min nor max is given".to_owned())),
    }
}

/// Every element equal to `value`, as this tensor otherwise, or in a given dtype.
pub(crate) fn full_like(t: &Tensor, value: Number, dtype: Option<DType>) -> Tensor {
    value.full(t.shape().clone(), Some(dtype.unwrap_or(t.dtype())), t.device())
}

/// Turned by right angles in the plane of two axes.
pub(crate) fn rot90(t: &Tensor, times: isize, axes: &[isize]) -> Result<Tensor> {
    match *axes {
        [a, b] => t.rot90(times, [a, b]),
        _ => Err(refuse("rot90", format!("{axes:?} are not two axes"))),
    }
}

/// What `f` makes along an axis, or of all elements in a row.
pub(crate) fn along(
    t: &Tensor,
    axis: Option<isize>,
    f: impl FnOnce(&Tensor, isize) -> Result<Tensor>,
) -> Result<Tensor> {
    match axis {
        Some(axis) => f(t, axis),
        None => f(&t.flatten(), 0),
    }
}
