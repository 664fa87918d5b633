//! Forms of calls that users of PyTorch know and Rust spells as several methods: an axis or none,
//! `keepdim`, a number where lists are taken, `-1` for what follows from the rest.

use crate::arguments::{AxesArg, Number, Quantiles, Ready, Sections};
use crate::create::{along, refuse};
use crate::outcome::Give;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use zyx::{Axes as _, DType, Device, Error, Result, Tensor, Unique};

/// A tensor, or a tuple of several.
pub(crate) enum Found {
    One(Tensor),
    Several(Vec<Tensor>),
}

impl Give for Found {
    fn give(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Found::One(x) => x.give(py),
            Found::Several(all) => {
                let all: PyResult<Vec<_>> = all.into_iter().map(|x| x.give(py)).collect();
                Ok(PyTuple::new(py, all?)?.into_any().unbind())
            }
        }
    }
}

/// Without the named axes that have extent 1, or without all that have.
pub(crate) fn squeeze(t: &Tensor, axes: AxesArg) -> Result<Tensor> {
    let mask = axes.mask(t.rank()).map_err(|reason| refuse("squeeze", reason))?;
    let dims = t.shape().dims().iter().enumerate();
    let kept = dims.filter(|(axis, n)| **n != 1 || mask >> axis & 1 == 0).map(|(_, &n)| n);
    t.reshape(kept.collect::<Vec<_>>())
}

/// The axes from one to another as one; a number becomes a vector.
pub(crate) fn flatten(t: &Tensor, start: isize, end: isize) -> Result<Tensor> {
    let only = |axis: isize| axis == 0 || axis == -1;
    if (start, end) == (0, -1) || t.rank() == 0 && only(start) && only(end) {
        Ok(t.flatten())
    } else {
        t.flatten_axes(start, end)
    }
}

/// What `f` makes of a batch; of one example, which has so many axes, as a batch of one.
pub(crate) fn unbatched(
    t: &Tensor,
    rank: usize,
    f: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    if t.rank() == rank { f(&t.unsqueeze(0)?)?.squeeze(0) } else { f(t) }
}

/// An axis as several, of which one extent may be -1.
pub(crate) fn unflatten(t: &Tensor, axis: isize, dims: &[i64]) -> Result<Tensor> {
    let rank = t.rank() as isize;
    let at = if axis < 0 { axis + rank } else { axis };
    let whole = usize::try_from(at).ok().and_then(|at| t.shape().dims().get(at)).copied();
    let rest: usize = dims.iter().filter_map(|&n| usize::try_from(n).ok()).product();
    let unknown = dims.iter().filter(|&&n| n == -1).count();
    let extent = |&n: &i64| match (usize::try_from(n), whole) {
        (Ok(n), _) => Ok(n),
        (Err(_), Some(whole)) if n == -1 && unknown == 1 && rest > 0 => Ok(whole / rest),
        _ => Err(refuse("unflatten", format!("{dims:?} are no extents"))),
    };
    t.unflatten(axis, dims.iter().map(extent).collect::<Result<Vec<_>>>()?)
}

/// The tensor several times along each axis, new axes in front.
pub(crate) fn repeat(t: &Tensor, times: &[usize]) -> Result<Tensor> {
    let new = times.len().saturating_sub(t.rank());
    let dims = [&vec![1; new][..], t.shape().dims()].concat();
    t.reshape(dims)?.repeat(times)
}

/// Pieces of one extent, or of each of several.
pub(crate) fn split(t: &Tensor, size: &Sections, axis: isize) -> Result<Vec<Tensor>> {
    match size {
        Sections::Number(size) => t.split(*size, axis),
        Sections::Each(sizes) => t.split_with_sizes(sizes, axis),
    }
}

/// So many pieces, or pieces that begin at given places.
pub(crate) fn tensor_split(t: &Tensor, at: &Sections, axis: isize) -> Result<Vec<Tensor>> {
    match at {
        Sections::Number(0) => Err(refuse("tensor_split", "there is no piece to make".to_owned())),
        Sections::Number(n) => {
            let found = t.tensor_split([], axis)?;
            let place = if axis < 0 { axis + t.rank() as isize } else { axis };
            let extent = found.first().map_or(0, |x| x.shape()[place.unsigned_abs()]);
            let start = |i: usize| i * (extent / n) + i.min(extent % n);
            // The method refuses so many pieces and more alike.
            let ends = 1..(*n).min(1 << 21);
            t.tensor_split(ends.map(start).collect::<Vec<_>>(), axis)
        }
        Sections::Each(places) => t.tensor_split(places, axis),
    }
}

/// Where pieces after the first begin, if that was given.
pub(crate) fn starts(at: &Sections) -> Option<&[usize]> {
    match at {
        Sections::Number(_) => None,
        Sections::Each(places) => Some(places),
    }
}

/// Equal pieces along an axis, or pieces that begin at given places, of a tensor with so many axes.
pub(crate) fn equal_split(
    op: &'static str,
    t: &Tensor,
    at: &Sections,
    axis: isize,
    least: usize,
) -> Result<Vec<Tensor>> {
    let extent = t.shape().dims().get(axis as usize).copied().unwrap_or(0);
    let unequal = matches!(at, Sections::Number(n) if *n == 0 || !extent.is_multiple_of(*n));
    if t.rank() < least || unequal {
        let reason = format!("axis {axis} of shape {} has no such equal pieces", t.shape());
        let (operands, location) = ([t].into_iter().collect(), std::panic::Location::caller());
        return Err(Error::Shape { op, reason, operands, location });
    }
    tensor_split(t, at, axis)
}

/// Two results along an axis, or of all elements; the axis kept with extent 1 if asked for.
pub(crate) fn pair(
    t: &Tensor,
    axis: Option<isize>,
    keepdim: bool,
    of: impl FnOnce(&Tensor, isize) -> Result<(Tensor, Tensor)>,
) -> Result<(Tensor, Tensor)> {
    let Some(axis) = axis else {
        let (x, y) = of(&t.flatten(), 0)?;
        let ones = vec![1; if keepdim { t.rank() } else { 0 }];
        return Ok((x.reshape(ones.clone())?, y.reshape(ones)?));
    };
    let (x, y) = of(t, axis)?;
    if keepdim { Ok((x.unsqueeze(axis)?, y.unsqueeze(axis)?)) } else { Ok((x, y)) }
}

/// The middle of all elements, or along an axis with its positions.
pub(crate) fn median(t: &Tensor, axis: Option<isize>, keepdim: bool) -> Result<Found> {
    let (x, y) = pair(t, axis, keepdim, Tensor::median)?;
    Ok(if axis.is_none() { Found::One(x) } else { Found::Several(vec![x, y]) })
}

/// Quantiles along an axis or of all elements; those of a list have an axis of their own, the first.
pub(crate) fn quantile(
    t: &Tensor,
    Quantiles { q, single }: &Quantiles,
    axis: Option<isize>,
    keepdim: bool,
    interpolation: &str,
) -> Result<Tensor> {
    let of = |t: &Tensor, axis: isize| match interpolation {
        "linear" => t.quantile(q, axis),
        _ => between(t, q, axis, interpolation),
    };
    let found = match axis {
        Some(axis) => of(t, axis)?,
        None => of(&t.flatten(), 0)?,
    };
    let found = match (keepdim, axis) {
        (true, Some(axis)) => found.unsqueeze(if axis < 0 { axis } else { axis + 1 })?,
        (true, None) => found.reshape([&[q.len()][..], &vec![1; t.rank()]].concat())?,
        (false, _) => found,
    };
    if *single { found.squeeze(0) } else { Ok(found) }
}

/// Quantiles that are elements, or the middle of two, and not interpolated linearly. NaN if there is one.
fn between(t: &Tensor, q: &[f64], axis: isize, how: &str) -> Result<Tensor> {
    // Refuses what is no axis, no float or no quantile, with the words of the linear one.
    t.quantile(q, axis)?;
    let rank = t.rank() as isize;
    let axis = if axis < 0 { axis + rank } else { axis };
    let last = t.shape()[axis as usize].saturating_sub(1) as f64;
    let pick = |round: fn(f64) -> f64| {
        let places: Vec<i64> = q.iter().map(|q| round(q * last) as i64).collect();
        let places = Tensor::from_slice(&places, [places.len()], t.device())?;
        t.sort(axis, false)?.0.index_select(axis, &places)?.movedim([axis], [0])
    };
    let found = match how {
        "lower" => pick(f64::floor)?,
        "higher" => pick(f64::ceil)?,
        "nearest" => pick(f64::round_ties_even)?,
        "midpoint" => pick(f64::floor)?.lerp(pick(f64::ceil)?, 0.5)?,
        _ => {
            let all = "'linear', 'lower', 'higher', 'nearest' and 'midpoint'";
            return Err(refuse("quantile", format!("interpolation is one of {all}, not '{how}'")));
        }
    };
    t.is_nan().any(axis)?.where_(f64::NAN, found)
}

/// What `f` makes of a tensor in a dtype, if one is given: the result is of that dtype too.
pub(crate) fn in_dtype(
    t: &Tensor,
    dtype: Option<DType>,
    f: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    Ok(cast(&f(&cast(t, dtype))?, dtype))
}

/// The mean along axes, which is no integer.
pub(crate) fn mean(
    t: &Tensor,
    axes: AxesArg,
    keepdim: bool,
    dtype: Option<DType>,
) -> Result<Tensor> {
    if let Some(dtype) = dtype.filter(|dtype| !dtype.is_float()) {
        let (reason, location) = (format!("a mean is no {dtype}"), std::panic::Location::caller());
        return Err(Error::DType {
            op: "mean",
            reason,
            operands: [t].into_iter().collect(),
            location,
        });
    }
    in_dtype(t, dtype, |t| if keepdim { t.mean_keepdim(axes) } else { t.mean(axes) })
}

/// Where values belong in a tensor that is sorted, or that `sorter` puts in order.
pub(crate) fn searchsorted(
    t: &Tensor,
    values: &Tensor,
    right: bool,
    side: Option<&str>,
    sorter: Option<&Tensor>,
    out_int32: bool,
) -> Result<Tensor> {
    let right = match (side, right) {
        (None, right) => right,
        (Some("right"), _) => true,
        (Some("left"), false) => false,
        (Some(side), _) => {
            let reason = format!("side '{side}' with right={right}; it is 'left' or 'right'");
            return Err(refuse("searchsorted", reason));
        }
    };
    let sorted = sorter.map_or_else(|| Ok(t.clone()), |at| t.take_along_dim(at, Some(-1)))?;
    places(sorted.searchsorted(values, right)?, out_int32)
}

/// Positions, in 32 bits if that is asked for.
pub(crate) fn places(found: Tensor, out_int32: bool) -> Result<Tensor> {
    Ok(cast(&found, out_int32.then_some(DType::I32)))
}

/// The p-norm of the elements along axes.
pub(crate) fn norm(t: &Tensor, p: Option<Number>, axes: AxesArg, keepdim: bool) -> Result<Tensor> {
    let p = p.map(|p| p.float()).filter(|&p| p != 2.0);
    let Some(p) = p else {
        return if keepdim { t.norm_keepdim(axes) } else { t.norm(axes) };
    };
    kept(t, axes, keepdim, |axes| t.vector_norm(p, axes))
}

/// What `f` makes along axes, which stay with extent 1 if asked for.
pub(crate) fn kept(
    t: &Tensor,
    axes: AxesArg,
    keepdim: bool,
    f: impl FnOnce(AxesArg) -> Result<Tensor>,
) -> Result<Tensor> {
    let mask = axes.mask(t.rank());
    let found = f(axes)?;
    let Some(mask) = mask.ok().filter(|_| keepdim) else { return Ok(found) };
    let dims = t.shape().dims().iter().enumerate();
    found.reshape(dims.map(|(i, &n)| if mask >> i & 1 == 1 { 1 } else { n }).collect::<Vec<_>>())
}

/// The variance along axes.
pub(crate) fn var(t: &Tensor, axes: AxesArg, correction: usize, keepdim: bool) -> Result<Tensor> {
    if keepdim { t.var_keepdim(axes, correction) } else { t.var(axes, correction) }
}

/// The standard deviation along axes.
pub(crate) fn std(t: &Tensor, axes: AxesArg, correction: usize, keepdim: bool) -> Result<Tensor> {
    kept(t, axes, keepdim, |axes| t.std(axes, correction))
}

/// Converted, if a dtype is given.
pub(crate) fn cast(t: &Tensor, dtype: Option<DType>) -> Tensor {
    dtype.map_or_else(|| t.clone(), |dtype| t.cast(dtype))
}

/// The quotient, rounded as the mode says.
pub(crate) fn div(t: &Tensor, other: Ready, mode: Option<String>) -> Result<Tensor> {
    match mode.as_deref() {
        None => t.div(other),
        Some("floor") => t.floor_divide(other),
        Some("trunc") => t.trunc_divide(other),
        Some(mode) => {
            Err(refuse("div", format!("rounding_mode is 'floor', 'trunc' or None, not {mode:?}")))
        }
    }
}

/// The nearest number with so many digits behind the point.
pub(crate) fn round(t: &Tensor, decimals: i64) -> Result<Tensor> {
    if decimals == 0 || !t.dtype().is_float() {
        return Ok(t.round());
    }
    let scale = 10f64.powi(decimals.unsigned_abs().min(400) as i32);
    // Of several steps, so halves are computed in `f32`.
    let wide = t.cast(t.dtype().accumulator());
    let y = match decimals > 0 {
        true => wide.mul(scale)?.round().div(scale),
        false => wide.div(scale)?.round().mul(scale),
    };
    Ok(y?.cast(t.dtype()))
}

/// Ones on the diagonal of `n` rows and `m` columns.
pub(crate) fn eye(n: usize, m: Option<usize>, dtype: DType, device: &Device) -> Result<Tensor> {
    let m = m.unwrap_or(n);
    let square = Tensor::eye(n.max(m), dtype, device);
    if n == m { Ok(square) } else { square.shrink([(0, n), (0, m)]) }
}

/// How often each number occurs, or the sum of the weights of the places where it does.
pub(crate) fn bincount(t: &Tensor, weights: Option<&Tensor>, minlength: usize) -> Result<Tensor> {
    let counts = t.bincount(minlength)?;
    let Some(weights) = weights else { return Ok(counts) };
    if weights.shape() != t.shape() {
        let reason =
            format!("weights of shape {} for numbers of shape {}", weights.shape(), t.shape());
        return Err(refuse("bincount", reason));
    }
    let dtype = if weights.dtype() == DType::F32 { DType::F32 } else { DType::F64 };
    Tensor::zeros(counts.shape().clone(), dtype, t.device()).scatter_add(0, t, &weights.cast(dtype))
}

/// The ends of a histogram: of the elements, if both are equal; if these are, too, so far around.
pub(crate) fn ends(t: &Tensor, min: f64, max: f64, around: f64) -> Result<(f64, f64)> {
    if min != max {
        return Ok((min, max));
    }
    if t.numel() == 0 {
        return Ok((0.0, 1.0));
    }
    let of = |x: Tensor| x.cast(DType::F64).item::<f64>();
    let (low, high) = (of(t.min(..)?)?, of(t.max(..)?)?);
    Ok(if low == high { (low - around, high + around) } else { (low, high) })
}

/// Elements, or a number, written to the places of an index.
pub(crate) fn scatter(t: &Tensor, axis: isize, index: &Tensor, src: Ready) -> Result<Tensor> {
    let src = match src {
        Ready::Tensor(src) => src,
        Ready::Number(x) => x.full(index.shape().clone(), Some(t.dtype()), t.device()),
    };
    t.scatter(axis, index, &src)
}

/// Elements repeated along an axis or in a row, all as often or each by a number of its own.
pub(crate) fn repeat_interleave(t: &Tensor, times: Ready, axis: Option<isize>) -> Result<Tensor> {
    along(t, axis, |t, axis| match times {
        Ready::Tensor(times) => t.repeat_interleave_by(&times, axis),
        Ready::Number(Number::Int(n)) if n >= 0 => t.repeat_interleave(n as usize, axis),
        Ready::Number(n) => Err(refuse("repeat_interleave", format!("{n:?} times"))),
    })
}

/// The positions of what is not zero, one per row or one tensor for each axis.
pub(crate) fn nonzero(t: &Tensor, as_tuple: bool) -> Result<Found> {
    let rows = t.nonzero()?;
    Ok(if as_tuple { Found::Several(rows.unbind(1)?) } else { Found::One(rows) })
}

/// The distinct elements, and what else was asked for.
pub(crate) fn unique(found: Unique, inverse: bool, counts: bool) -> Found {
    let Unique { values, inverse: places, counts: numbers } = found;
    if !inverse && !counts {
        return Found::One(values);
    }
    let places = inverse.then_some(places);
    Found::Several(
        [Some(values), places, counts.then_some(numbers)].into_iter().flatten().collect(),
    )
}

/// This tensor's elements where a condition holds. What is not true or false is no condition: so
/// nobody mistakes the one for the other.
pub(crate) fn choose(t: &Tensor, condition: &Tensor, other: Ready) -> Result<Tensor> {
    if condition.dtype() == DType::Bool {
        return condition.where_(t, other);
    }
    let reason = format!("the condition is {}, not bool; x.where(condition, y)", condition.dtype());
    let (operands, location) = ([condition, t], std::panic::Location::caller());
    Err(Error::DType { op: "where", reason, operands: operands.into_iter().collect(), location })
}

/// The solution of a triangular system and its matrix, the right side being the tensor.
pub(crate) fn triangular_solve(
    right: &Tensor,
    a: &Tensor,
    upper: bool,
    transpose: bool,
    unit: bool,
) -> Result<(Tensor, Tensor)> {
    let x = match transpose {
        true if a.rank() >= 2 => a.t().triangular_solve(right, !upper, unit),
        _ => a.triangular_solve(right, upper, unit),
    };
    Ok((x?, a.clone()))
}
