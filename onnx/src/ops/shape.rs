//! Shapes, and movement of elements without computing.

use super::{one, one_value};
use crate::host::{Host, indices, numel};
use crate::run::Call;
use crate::value::Value;
use zyx_core::{DType, PadMode, Result, Scalar, Shape, Tensor};

type Values = Result<Vec<Value>>;

pub(super) fn identity(call: &Call<'_>) -> Values {
    one_value(call.copied(call.value(0)?)?)
}

pub(super) fn shape(call: &Call<'_>) -> Values {
    let shape = call.shape(0)?;
    let n = shape.len() as i64;
    let place = |at: i64| (if at < 0 { at + n } else { at }).clamp(0, n) as usize;
    let (start, end) = (place(call.int_or("start", 0)?), place(call.int_or("end", n)?));
    one(Host::vector(shape[start.min(end)..end].iter().copied()))
}

pub(super) fn size(call: &Call<'_>) -> Values {
    let n = numel(&call.shape(0)?);
    one(Host::new([], DType::I64, vec![Scalar::from(n as i64)]))
}

fn check_rank(call: &Call<'_>, rank: usize) -> Result<()> {
    match rank <= Shape::MAX_RANK {
        true => Ok(()),
        false => Err(call.error(format!("{rank} axes are more than {}", Shape::MAX_RANK))),
    }
}

/// The value in another shape of as many elements.
fn reshaped(call: &Call<'_>, value: &Value, shape: Vec<usize>) -> Values {
    check_rank(call, shape.len())?;
    match value {
        Value::Host(host) if host.numbers().len() == numel(&shape) => one(host.reshape(shape)),
        Value::Strings(_, strings) if strings.len() == numel(&shape) => {
            let texts: Vec<&str> = strings.iter().map(String::as_str).collect();
            one_value(Value::Strings(shape, call.texts(&texts)?))
        }
        value => one(call.to_tensor(value)?.reshape(shape)?),
    }
}

pub(super) fn reshape(call: &Call<'_>) -> Values {
    let old = call.shape(0)?;
    let wanted = match call.opset() >= 5 {
        true => call.ints(1)?,
        false => call.ints_attribute("shape")?.unwrap_or_default(),
    };
    check_rank(call, wanted.len())?;
    let zero_is_zero = call.flag("allowzero")?;
    let mut shape = Vec::with_capacity(wanted.len());
    let mut free = None;
    for (axis, &n) in wanted.iter().enumerate() {
        shape.push(match n {
            -1 if free.is_none() => {
                free = Some(axis);
                1
            }
            0 if !zero_is_zero => *old.get(axis).ok_or_else(|| {
                call.error(format!("shape {wanted:?} keeps axis {axis} of {old:?}"))
            })?,
            n => usize::try_from(n).map_err(|_| call.error(format!("shape {wanted:?}")))?,
        });
    }
    if let Some(axis) = free {
        let (numel, others) = (numel(&old), numel(&shape));
        if others == 0 || numel % others != 0 {
            return Err(call.error(format!("a tensor of shape {old:?} has no shape {wanted:?}")));
        }
        shape[axis] = numel / others;
    }
    reshaped(call, call.value(0)?, shape)
}

pub(super) fn flatten(call: &Call<'_>) -> Values {
    let shape = call.shape(0)?;
    let axis = call.int_or("axis", 1)?;
    let axis = if axis == shape.len() as i64 { shape.len() } else { call.axis(axis, shape.len())? };
    let (rows, columns) = shape.split_at(axis);
    reshaped(call, call.value(0)?, vec![numel(rows), numel(columns)])
}

/// Axes are an attribute before opset 13 and an input since.
fn axes_of(call: &Call<'_>) -> Result<Option<Vec<i64>>> {
    if call.opset() >= 13 { call.optional_ints(1) } else { call.ints_attribute("axes") }
}

pub(super) fn squeeze(call: &Call<'_>) -> Values {
    let shape = call.shape(0)?;
    let dropped = match axes_of(call)? {
        Some(axes) => call.axes(&axes, shape.len())?,
        None => (0..shape.len()).filter(|&axis| shape[axis] == 1).collect(),
    };
    if let Some(&axis) = dropped.iter().find(|&&axis| shape[axis] != 1) {
        return Err(call.error(format!("axis {axis} of shape {shape:?} has not one element")));
    }
    let kept = (0..shape.len()).filter(|axis| !dropped.contains(axis)).map(|axis| shape[axis]);
    reshaped(call, call.value(0)?, kept.collect())
}

pub(super) fn unsqueeze(call: &Call<'_>) -> Values {
    let shape = call.shape(0)?;
    let axes = axes_of(call)?.ok_or_else(|| call.error("it has no axes"))?;
    let rank = shape.len() + axes.len();
    check_rank(call, rank)?;
    let new = call.axes(&axes, rank)?;
    let mut old = shape.iter().copied();
    let extents = (0..rank).map(|axis| if new.contains(&axis) { Some(1) } else { old.next() });
    let extents: Option<Vec<usize>> = extents.collect();
    let extents = extents.ok_or_else(|| call.error(format!("axes {axes:?} are given twice")))?;
    reshaped(call, call.value(0)?, extents)
}

pub(super) fn transpose(call: &Call<'_>) -> Values {
    let shape = call.shape(0)?;
    let backwards = || (0..shape.len() as i64).rev().collect();
    let order = call.ints_attribute("perm")?.unwrap_or_else(backwards);
    let order = call.axes(&order, shape.len())?;
    if order.len() != shape.len() || (0..shape.len()).any(|axis| !order.contains(&axis)) {
        return Err(call.error(format!("attribute `perm` orders no {} axes", shape.len())));
    }
    if let Some(host) = call.host(0) {
        let strides = Shape::from(shape.as_slice()).strides();
        let turned: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
        let at =
            |index: Vec<usize>| index.iter().zip(&order).map(|(i, &axis)| i * strides[axis]).sum();
        return one(host.pick(turned.clone(), indices(&turned).map(at).collect::<Vec<usize>>()));
    }
    let order: Vec<isize> = order.into_iter().map(|axis| axis as isize).collect();
    one(call.tensor(0)?.permute(order)?)
}

pub(super) fn concat(call: &Call<'_>) -> Values {
    let rank = call.shape(0)?.len();
    let axis = call.axis(call.int_or("axis", 1)?, rank)?;
    if let Some(hosts) = call.hosts()
        && rank == 1
        && hosts.iter().all(|host| host.shape().len() == 1 && host.dtype() == hosts[0].dtype())
    {
        let numbers: Vec<Scalar> = hosts.iter().flat_map(|host| host.numbers()).copied().collect();
        return one(Host::new([numbers.len()], hosts[0].dtype(), numbers));
    }
    let all: Vec<&Value> = (0..call.inputs.len()).map(|i| call.value(i)).collect::<Result<_>>()?;
    if let Some(strings) = all.iter().map(|v| strings(v)).collect::<Option<Vec<_>>>()
        && rank == 1
    {
        let all: Vec<&str> = strings.into_iter().flatten().map(String::as_str).collect();
        return one_value(Value::Strings(vec![all.len()], call.texts(&all)?));
    }
    let tensors = call.tensors()?;
    one(Tensor::cat(&tensors.iter().collect::<Vec<_>>(), axis as isize)?)
}

fn strings(value: &Value) -> Option<&Vec<String>> {
    if let Value::Strings(_, strings) = value { Some(strings) } else { None }
}

/// Parts along an axis: lengths are given, or as equal as can be.
pub(super) fn split(call: &Call<'_>) -> Values {
    let shape = call.shape(0)?;
    let axis = call.axis(call.int_or("axis", 0)?, shape.len())?;
    let lengths = match call.opset() {
        2..13 => call.ints_attribute("split")?,
        _ => call.optional_ints(1)?,
    };
    let n = shape[axis];
    let lengths = match lengths {
        Some(lengths) => call.sizes(&lengths)?,
        None => {
            let parts = call.int_or("num_outputs", call.node.outputs.len() as i64)?;
            let parts = usize::try_from(parts).ok().filter(|&parts| parts > 0);
            let parts = parts.ok_or_else(|| call.error("it has no outputs"))?;
            let length = n.div_ceil(parts);
            let part = |i: usize| length.min(n.saturating_sub(i.saturating_mul(length)));
            call.budget().collect(parts, (0..parts).map(part))?
        }
    };
    if let (Some(host), [_]) = (call.host(0), shape.as_slice())
        && lengths.iter().fold(0, |sum: usize, &length| sum.saturating_add(length)) == n
    {
        let mut start = 0;
        let part = |length: usize| {
            start += length;
            Value::Host(host.pick(vec![length], start - length..start))
        };
        return Ok(lengths.into_iter().map(part).collect());
    }
    call.budget().trace(lengths.len())?;
    let parts = call.tensor(0)?.split_with_sizes(lengths, axis as isize)?;
    Ok(parts.into_iter().map(Value::Tensor).collect())
}

/// Where a slice of an axis starts, how many elements it has, and its step: out-of-range bounds are clamped.
fn bounds(n: usize, start: i64, end: i64, step: i64) -> (i64, usize) {
    let n = n as i64;
    let from_front = |at: i64| if at < 0 { at.saturating_add(n) } else { at };
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let start = from_front(start).clamp(if step > 0 { 0 } else { -1 }, high);
    let end = if step < 0 && end < -n { -1 } else { from_front(end).clamp(low, high.max(low)) };
    let length = if step > 0 {
        (end - start).max(0) as u64 / step as u64
            + u64::from(!((end - start).max(0) as u64).is_multiple_of(step as u64))
    } else {
        let back = step.unsigned_abs();
        let distance = (start - end).max(0) as u64;
        distance.div_ceil(back)
    };
    (start, length as usize)
}

pub(super) fn slice(call: &Call<'_>) -> Values {
    let shape = call.shape(0)?;
    let (starts, ends, axes, steps) = if call.opset() >= 10 {
        (call.ints(1)?, call.ints(2)?, call.optional_ints(3)?, call.optional_ints(4)?)
    } else {
        let list = |name: &str| call.ints_attribute(name);
        (
            list("starts")?.unwrap_or_default(),
            list("ends")?.unwrap_or_default(),
            list("axes")?,
            None,
        )
    };
    let axes = axes.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = steps.unwrap_or_else(|| vec![1; starts.len()]);
    if ends.len() != starts.len() || axes.len() != starts.len() || steps.len() != starts.len() {
        return Err(call.error("starts, ends, axes and steps are not equally many"));
    }
    let axes = call.axes(&axes, shape.len())?;
    let mut ranges: Vec<(i64, usize, i64)> = shape.iter().map(|&n| (0, n, 1)).collect();
    for (i, &axis) in axes.iter().enumerate() {
        if steps[i] == 0 {
            return Err(call.error("a step is zero"));
        }
        let (start, length) = bounds(shape[axis], starts[i], ends[i], steps[i]);
        ranges[axis] = (start, length, steps[i]);
    }
    let lengths: Vec<usize> = ranges.iter().map(|&(_, length, _)| length).collect();
    if let Some(host) = call.host(0) {
        let strides = Shape::from(shape.as_slice()).strides();
        let at = |index: Vec<usize>| {
            let axes = index.iter().zip(&ranges).zip(&strides);
            axes.map(|((&i, &(start, _, step)), &stride)| {
                (start + i as i64 * step) as usize * stride
            })
            .sum()
        };
        return one(host.pick(lengths.clone(), indices(&lengths).map(at).collect::<Vec<usize>>()));
    }
    let mut y = call.tensor(0)?;
    for (axis, &(start, length, step)) in ranges.iter().enumerate() {
        let n = shape[axis];
        if (start, length, step) == (0, n, 1) {
            continue;
        }
        let at = axis as isize;
        if length == 0 {
            y = y.slice(at, 0..0)?;
        } else if step > 0 {
            y = y.stride(at, start as usize, step as usize)?;
        } else {
            y = y.flip(at)?.stride(at, n - 1 - start as usize, step.unsigned_abs() as usize)?;
        }
        y = y.slice(at, ..length)?;
    }
    one(y)
}

pub(super) fn expand(call: &Call<'_>) -> Values {
    let shape = call.sizes(&call.ints(1)?)?;
    let old = Shape::from(call.shape(0)?);
    let out = old.broadcast(&Shape::from(shape.as_slice()));
    let out =
        out.ok_or_else(|| call.error(format!("shape {old} does not broadcast to {shape:?}")))?;
    if let Some(host) = call.host(0)
        && out.numel() <= Host::MOST
    {
        return one(host.broadcast(&out));
    }
    one(call.tensor(0)?.broadcast_to(out)?)
}

pub(super) fn tile(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    if call.opset() >= 6 {
        return one(x.tile(call.sizes(&call.ints(1)?)?)?);
    }
    // A number of times, and the axis.
    let mut repeats = vec![1; x.rank()];
    repeats[call.axis(call.int(2)?, x.rank())?] = call.sizes(&[call.int(1)?])?[0];
    one(x.tile(repeats)?)
}

pub(super) fn pad(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let pads = match call.opset() >= 11 {
        true => call.ints(1)?,
        false => {
            let name = if call.opset() >= 2 { "pads" } else { "paddings" };
            call.ints_attribute(name)?.unwrap_or_default()
        }
    };
    let axes = match call.optional_ints(3)? {
        Some(axes) => call.axes(&axes, x.rank())?,
        None => (0..x.rank()).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return Err(call.error(format!("{} numbers pad {} axes", pads.len(), axes.len())));
    }
    let (mut padding, mut y) = (vec![(0, 0); x.rank()], x.clone());
    for (i, &axis) in axes.iter().enumerate() {
        let (before, after) = (pads[i], pads[i + axes.len()]);
        // Less than nothing cuts off.
        let n = y.shape()[axis] as i64;
        let cut = |pad: i64| pad.saturating_neg().max(0);
        let (low, high) = (cut(before), n.saturating_sub(cut(after)));
        if low > high {
            return Err(call.error("attribute `pads` cuts off more than there is"));
        }
        y = y.slice(axis as isize, low as usize..high as usize)?;
        padding[axis] = (before.max(0) as usize, after.max(0) as usize);
    }
    let mode = match call.string_or("mode", "constant")? {
        "constant" => {
            let value = match (call.opset() >= 11, call.optional(2)) {
                (true, Some(value)) => call.to_tensor(value)?.reshape(())?,
                (true, None) => {
                    y.zeros_like().flatten().pad([(0, 1)])?.slice(0, ..1)?.reshape(())?
                }
                (false, _) => {
                    Tensor::scalar(call.float_or("value", 0.0)?, call.device()).cast(x.dtype())
                }
            };
            let inside = Tensor::ones(y.shape(), DType::Bool, call.device()).pad(&padding)?;
            return one(inside.where_(y.pad(&padding)?, &value)?);
        }
        "reflect" => PadMode::Reflect,
        "edge" => PadMode::Replicate,
        "wrap" => PadMode::Circular,
        other => return Err(call.error(format!("attribute `mode` is `{other}`"))),
    };
    one(y.pad_mode(padding, mode)?)
}

pub(super) fn trilu(call: &Call<'_>) -> Values {
    let k = call.optional_ints(1)?.and_then(|k| k.first().copied()).unwrap_or(0);
    let x = call.tensor(0)?;
    one(if call.int_or("upper", 1)? != 0 { x.triu(k)? } else { x.tril(k)? })
}

/// The extents of images, and the edge of a block.
fn blocks(call: &Call<'_>, x: &Tensor) -> Result<([usize; 4], usize)> {
    let (n, shape) = (call.int_or("blocksize", 0)?, x.shape());
    let edge = usize::try_from(n).ok().filter(|&n| n > 0);
    match (<[usize; 4]>::try_from(shape.dims()), edge) {
        (Ok(extents), Some(edge)) => Ok((extents, edge)),
        _ => Err(call.error(format!("blocks of {n} in a tensor of shape {shape}"))),
    }
}

pub(super) fn depth_to_space(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let ([n, c, h, w], b) = blocks(call, &x)?;
    if b.checked_mul(b).is_none_or(|area| c % area != 0) {
        return Err(call.error(format!("{c} channels do not fill blocks of {b}")));
    }
    let c = c / (b * b);
    let y = match call.string_or("mode", "DCR")? {
        "DCR" => x.reshape([n, b, b, c, h, w])?.permute([0, 3, 4, 1, 5, 2])?,
        _ => x.reshape([n, c, b, b, h, w])?.permute([0, 1, 4, 2, 5, 3])?,
    };
    one(y.reshape([n, c, h.saturating_mul(b), w.saturating_mul(b)])?)
}

pub(super) fn space_to_depth(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let ([n, c, h, w], b) = blocks(call, &x)?;
    if h % b != 0 || w % b != 0 {
        return Err(call.error(format!("{h} x {w} are not blocks of {b}")));
    }
    let blocks = x.reshape([n, c, h / b, b, w / b, b])?;
    let y = match call.string_or("mode", "DCR")? {
        "DCR" => blocks.permute([0, 3, 5, 1, 2, 4])?,
        _ => blocks.permute([0, 1, 3, 5, 2, 4])?,
    };
    one(y.reshape([n, c.saturating_mul(b).saturating_mul(b), h / b, w / b])?)
}

pub(super) fn reverse_sequence(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let (time, batch) = (call.int_or("time_axis", 0)?, call.int_or("batch_axis", 1)?);
    let (time, batch) = (call.axis(time, x.rank())?, call.axis(batch, x.rank())?);
    let mut shape = vec![1; x.rank()];
    shape[batch] = x.shape()[batch];
    let lengths = call.tensor(1)?.cast(DType::I64).reshape(shape)?;
    let mut shape = vec![1; x.rank()];
    shape[time] = x.shape()[time];
    let steps = Tensor::iota(x.shape()[time], DType::I64, call.device()).reshape(shape)?;
    let from = steps.lt(&lengths)?.where_(lengths.sub(&steps)?.sub(1)?, &steps)?;
    one(x.gather(time as isize, &from.broadcast_to(x.shape())?.unchecked_indices())?)
}

pub(super) fn center_crop_pad(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let wanted = call.sizes(&call.ints(1)?)?;
    let axes = match call.ints_attribute("axes")? {
        Some(axes) => call.axes(&axes, x.rank())?,
        None => (0..x.rank()).collect(),
    };
    let mut y = x.clone();
    for (&axis, &n) in axes.iter().zip(&wanted) {
        let old = y.shape()[axis];
        if n <= old {
            let start = (old - n) / 2;
            y = y.slice(axis as isize, start..start + n)?;
        } else {
            let mut padding = vec![(0, 0); y.rank()];
            padding[axis] = ((n - old) / 2, (n - old).div_ceil(2));
            y = y.pad(padding)?;
        }
    }
    one(y)
}
