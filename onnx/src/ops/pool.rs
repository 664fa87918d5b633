//! Pools: windows of the spatial axes reduced to one element each.

use super::convolution::{Windows, array, padding, spatial};
use super::one;
use crate::host::numel;
use crate::run::Call;
use crate::value::Value;
use zyx_core::{DType, Pool, Result, Scalar, Shape, Tensor};

type Values = Result<Vec<Value>>;

/// A function of tensors and pools for one, two and three axes.
macro_rules! over_axes {
    ($windows:expr, $x:expr, $one:ident $two:ident $three:ident ($($before:expr),*)) => {
        match $windows.kernel.len() {
            1 => $x.$one($($before,)* pool_of($windows)),
            2 => $x.$two($($before,)* pool_of($windows)),
            _ => $x.$three($($before,)* pool_of($windows)),
        }
    };
}

/// The windows over what is padded already.
fn pool_of<const N: usize>(windows: &Windows) -> Pool<N> {
    Pool {
        stride: array(&windows.strides),
        dilation: array(&windows.dilations),
        ..Pool::new(array(&windows.kernel))
    }
}

/// The windows of a pool. With `ceil_mode` they may reach beyond the padding as long as they begin before what is
/// padded at the end; that many elements more are needed. Without it, windows larger than the image are one where less
/// than a stride is missing, as in onnxruntime; the standard has none.
fn windows_of(call: &Call<'_>, x: &Tensor) -> Result<(Windows, Vec<(usize, usize)>)> {
    let extents = spatial(call, x)?;
    let kernel = call.ints_attribute("kernel_shape")?;
    let kernel = kernel.ok_or_else(|| call.error("it has no attribute `kernel_shape`"))?;
    let windows = Windows::new(call, &extents, call.sizes(&kernel)?)?;
    let mut needed = windows.pads.clone();
    let ceils = call.flag("ceil_mode")?;
    for (i, &extent) in extents.iter().enumerate() {
        let (before, after) = windows.pads[i];
        let (padded, reach, stride) =
            (before + extent + after, windows.reach(i), windows.strides[i]);
        let missing = reach.saturating_sub(padded);
        if ceils {
            let last = padded.saturating_sub(reach).div_ceil(stride) * stride;
            let last = if last >= before + extent { last.saturating_sub(stride) } else { last };
            needed[i].1 += (last + reach).saturating_sub(padded);
        } else if extent > 0 && missing < stride {
            needed[i].1 += missing;
        }
    }
    Ok((windows, needed))
}

/// The largest elements, and where they are in the flat tensor if that is asked for.
pub(super) fn max(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let (windows, pads) = windows_of(call, &x)?;
    let lowest = match x.dtype().is_float() {
        true => f64::NEG_INFINITY,
        false => Scalar::lowest(x.dtype()).to_f64(),
    };
    let padded = x.pad_with(padding(&pads), lowest)?;
    if call.node.outputs.len() < 2 {
        return one(over_axes!(&windows, padded, max_pool1d max_pool2d max_pool3d ())?);
    }
    let (y, at) = over_axes!(&windows, padded,
        max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices ())?;
    let extents = spatial(call, &x)?;
    let mut strides = Shape::from(extents.as_slice()).strides();
    match call.int_or("storage_order", 0)? {
        0 => {}
        1 => {
            // Within an image the first axis runs fastest.
            let mut stride = 1;
            for (own, &n) in strides.iter_mut().zip(&extents) {
                (*own, stride) = (stride, stride * n);
            }
        }
        other => return Err(call.error(format!("attribute `storage_order` is {other}"))),
    }
    let images = numel(&x.shape()[..2]);
    let numel = numel(&extents);
    let mut shape = vec![1; x.rank()];
    shape[..2].copy_from_slice(&x.shape()[..2]);
    let image = Tensor::iota(images, DType::I64, call.device()).mul(numel as i64)?;
    let mut place = image.reshape(shape)?;
    let mut below = 1;
    for (i, &n) in extents.iter().enumerate().rev() {
        let length = padded.shape()[i + 2];
        let along = at.floor_divide(below)?.remainder(length.max(1) as i64)?;
        // A window of nothing but -inf has its first element in the padding.
        let along = along.sub(pads[i].0 as i64)?.clamp(0i64, n.max(1) as i64 - 1)?;
        place = place.add(along.mul(strides[i] as i64)?)?;
        below *= length.max(1) as i64;
    }
    Ok(vec![y.into(), place.into()])
}

pub(super) fn average(call: &Call<'_>) -> Values {
    one(averages(call, &call.tensor(0)?, false)?)
}

/// Averages of windows. If padding counts, elements that windows need beyond it count, too, where `all_count`.
pub(super) fn averages(call: &Call<'_>, x: &Tensor, all_count: bool) -> Result<Tensor> {
    let (windows, pads) = windows_of(call, x)?;
    let mean = |x: &Tensor| over_axes!(&windows, x, avg_pool1d avg_pool2d avg_pool3d ());
    let padded = x.cast(x.dtype().accumulator()).pad(padding(&pads))?;
    let counts_all = call.flag("count_include_pad")?;
    let uncounted = match counts_all {
        true if all_count => vec![(0, 0); pads.len()],
        // What windows need beyond the declared padding does not count in the standard.
        true => pads.iter().zip(&windows.pads).map(|(all, own)| (0, all.1 - own.1)).collect(),
        false => pads,
    };
    let y = mean(&padded)?;
    if uncounted.iter().all(|&pads| pads == (0, 0)) {
        return Ok(y.cast(x.dtype()));
    }
    let mut counted = padded.shape().to_vec();
    counted[..2].fill(1);
    for (n, &(before, after)) in counted[2..].iter_mut().zip(&uncounted) {
        *n -= before + after;
    }
    let share = Tensor::ones(counted, padded.dtype(), call.device()).pad(padding(&uncounted))?;
    Ok(y.div(mean(&share)?)?.cast(x.dtype()))
}

fn order(call: &Call<'_>) -> Result<f64> {
    // Before opset 2 it is a float.
    let p = match call.opset() >= 2 {
        true => call.int_or("p", 2)? as f64,
        false => call.float_or("p", 2.0)?,
    };
    if p > 0.0 { Ok(p) } else { Err(call.error(format!("attribute `p` is {p}"))) }
}

pub(super) fn lp(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let (windows, pads) = windows_of(call, &x)?;
    let padded = x.abs().pad(padding(&pads))?;
    one(over_axes!(&windows, padded, lp_pool1d lp_pool2d lp_pool3d (order(call)?))?.cast(x.dtype()))
}

/// One element for each channel.
fn global(call: &Call<'_>, f: impl Fn(&Tensor, &[usize]) -> Result<Tensor>) -> Values {
    let x = call.tensor(0)?;
    let n = spatial(call, &x)?.len();
    let axes: Vec<usize> = (2..x.rank()).collect();
    let y = if n == 0 { x.clone() } else { f(&x, &axes)?.cast(x.dtype()) };
    one(y.reshape([&x.shape()[..2], &vec![1; n]].concat())?)
}

pub(super) fn global_average(call: &Call<'_>) -> Values {
    global(call, |x, axes| x.mean(axes))
}

pub(super) fn global_max(call: &Call<'_>) -> Values {
    global(call, |x, axes| x.amax(axes))
}

pub(super) fn global_lp(call: &Call<'_>) -> Values {
    let p = order(call)?;
    global(call, |x, axes| x.vector_norm(p, axes))
}

/// Elements put where a pool found them; all others are 0.
pub(super) fn max_unpool(call: &Call<'_>) -> Values {
    let (x, at) = (call.tensor(0)?, call.tensor(1)?);
    let extents = spatial(call, &x)?;
    let kernel = call.ints_attribute("kernel_shape")?.unwrap_or_default();
    let windows = Windows::new(call, &extents, call.sizes(&kernel)?)?;
    // The extents that the pool had, as far as they follow from its windows.
    let mut own = x.shape()[..2].to_vec();
    for (i, &n) in extents.iter().enumerate() {
        let (before, after) = windows.pads[i];
        let steps = n.saturating_sub(1).saturating_mul(windows.strides[i]);
        let whole = steps.saturating_add(windows.kernel[i]);
        own.push(whole.saturating_sub(before + after));
    }
    let numel = Shape::from(own.as_slice()).checked_numel();
    let numel = numel.ok_or_else(|| call.error(format!("an output of {own:?} is too large")))?;
    let flat = Tensor::zeros([numel], x.dtype(), call.device());
    let at = at.cast(DType::I64).flatten().unchecked_indices();
    let y = flat.scatter(0, &at, &x.flatten())?.reshape(own.clone())?;
    let Some(told) = call.optional_ints(2)? else { return one(y) };
    let told = call.sizes(&told)?;
    if told.len() != own.len() || told.iter().zip(&own).any(|(told, own)| told < own) {
        return Err(call.error(format!("an output of {told:?} is smaller than {own:?}")));
    }
    let missing: Vec<_> = told.iter().zip(&own).map(|(told, own)| (0, told - own)).collect();
    one(y.pad(missing)?)
}

/// The largest element in each of the cells into which regions (batch, then corners) are divided; 0 in empty cells.
pub(super) fn max_roi(call: &Call<'_>) -> Values {
    let (x, rois) = (call.tensor(0)?, call.tensor(1)?);
    let cells = call.sizes(&call.ints_attribute("pooled_shape")?.unwrap_or_default())?;
    let (&[_, _, height, width], &[regions, 5], &[rows, columns]) =
        (x.shape().dims(), rois.shape().dims(), cells.as_slice())
    else {
        let (x, rois) = (x.shape(), rois.shape());
        return Err(call.error(format!("regions {rois} of images {x} in cells {cells:?}")));
    };
    let wide = rois.dtype().accumulator();
    let scale = call.float_or("spatial_scale", 1.0)?;
    let of = rois.select_index(1, 0)?.cast(DType::I64);
    let rois = rois.cast(wide).mul(scale)?;
    // Halves are rounded away from zero.
    let rounded = |x: &Tensor| x.abs().add(0.5)?.floor().mul(x.sign());
    let steps = |n: usize| Tensor::iota(n, wide, call.device());
    // Whether an element is in a cell: [regions, cells, elements].
    let inside = |i: usize, cells: usize, n: usize| -> Result<Tensor> {
        let corner =
            |j: usize| rounded(&rois.select_index(1, j as isize)?)?.reshape([regions, 1, 1]);
        let (start, end) = (corner(2 - i)?, corner(4 - i)?);
        let cell = end.sub(&start)?.add(1.0)?.maximum(1.0)?.div(cells as f64)?;
        let first = steps(cells).reshape([cells, 1])?;
        let low = first.mul(&cell)?.floor().add(&start)?;
        let high = first.add(1.0)?.mul(&cell)?.ceil().add(&start)?;
        let at = steps(n);
        at.ge(&low)?.bitwise_and(at.lt(&high)?)
    };
    let across = inside(1, columns, width)?.reshape([regions, 1, 1, columns, width])?;
    let down = inside(0, rows, height)?.reshape([regions, 1, rows, 1, height])?;
    let lowest = Tensor::scalar(f64::NEG_INFINITY, call.device()).cast(x.dtype());
    let images = x.index_select(0, &of.unchecked_indices())?;
    // [regions, channels, height, columns], then [regions, channels, rows, columns].
    let y = across.where_(images.unsqueeze(3)?, &lowest)?.amax(-1)?;
    let y = down.where_(y.transpose(2, 3)?.unsqueeze(2)?, &lowest)?.amax(-1)?;
    let filled = across.any(-1)?.bitwise_and(down.any(-1)?)?;
    one(filled.where_(&y, y.zeros_like())?)
}
