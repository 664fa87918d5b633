//! Convolutions and what is made of them.

use super::integers::Dequantized;
use super::one;
use super::sample::{Border, Samples, linear_taps};
use crate::host::numel;
use crate::run::Call;
use crate::value::Value;
use zyx_core::{
    Conv1dOptions, Conv2dOptions, Conv3dOptions, ConvTransposeOptions, DType, Result, Tensor,
};

type Values = Result<Vec<Value>>;

/// How windows slide along the spatial axes (those behind batch and channels), by the attributes that convolutions
/// and pools share; an entry for each axis.
#[derive(Debug)]
pub(super) struct Windows {
    pub(super) kernel: Vec<usize>,
    pub(super) strides: Vec<usize>,
    pub(super) dilations: Vec<usize>,
    /// Elements added before and after.
    pub(super) pads: Vec<(usize, usize)>,
}

/// Kernels, strides, dilations, paddings and groups above this are refused, so that no extent overflows.
const MOST: usize = 1 << 20;

impl Windows {
    pub(super) fn new(call: &Call<'_>, extents: &[usize], kernel: Vec<usize>) -> Result<Windows> {
        let strides = counts(call, "strides", 1, kernel.len())?;
        let dilations = counts(call, "dilations", 1, kernel.len())?;
        let pads = vec![(0, 0); kernel.len()];
        let mut windows = Windows { kernel, strides, dilations, pads };
        let n = windows.kernel.len();
        if extents.len() != n {
            let reason = format!("windows have {n} axes, and the input has {}", extents.len());
            return Err(call.error(reason));
        }
        if !(1..=3).contains(&n) {
            return Err(call.error(format!("windows over {n} axes are not supported, 1 to 3 are")));
        }
        let all = [&windows.kernel, &windows.strides, &windows.dilations];
        if all.iter().any(|list| list.contains(&0)) {
            return Err(call.error("a kernel, stride or dilation is 0"));
        }
        if all.iter().any(|list| list.iter().any(|&n| n > MOST))
            || extents.iter().any(|&n| n > 1 << 40)
        {
            let kernel = &windows.kernel;
            return Err(call.error(format!("windows of {kernel:?} in {extents:?} are too large")));
        }
        match call.string_or("auto_pad", "NOTSET")? {
            "NOTSET" | "" => windows.pads = explicit_pads(call, n)?,
            "VALID" => {}
            same @ ("SAME_UPPER" | "SAME_LOWER") => {
                for (i, &extent) in extents.iter().enumerate() {
                    let positions = extent.div_ceil(windows.strides[i]);
                    let needed =
                        positions.saturating_sub(1) * windows.strides[i] + windows.reach(i);
                    windows.pads[i] = halves(needed.saturating_sub(extent), same);
                }
            }
            other => return Err(call.error(format!("attribute `auto_pad` is `{other}`"))),
        }
        Ok(windows)
    }

    /// Elements from the first to the last of a window.
    pub(super) fn reach(&self, i: usize) -> usize {
        (self.kernel[i] - 1) * self.dilations[i] + 1
    }

    /// Whether each axis has as many elements added after as before.
    fn is_symmetric(&self) -> bool {
        self.pads.iter().all(|(before, after)| before == after)
    }
}

/// A number of elements to add, the odd one at the end or (lower) at the beginning.
fn halves(total: usize, same: &str) -> (usize, usize) {
    let (less, more) = (total / 2, total - total / 2);
    if same == "SAME_LOWER" { (more, less) } else { (less, more) }
}

/// An attribute of `n` counts, all `default` where it is not given.
fn counts(call: &Call<'_>, name: &str, default: usize, n: usize) -> Result<Vec<usize>> {
    let Some(list) = call.ints_attribute(name)?.filter(|list| !list.is_empty()) else {
        return Ok(vec![default; n]);
    };
    let count = |&count: &i64| usize::try_from(count).ok().filter(|&count| count <= MOST);
    let counts: Option<Vec<usize>> = list.iter().map(count).collect();
    counts.filter(|counts| counts.len() == n).ok_or_else(|| {
        let reason = format!("{n} numbers from 0 to {MOST} are needed");
        call.error(format!("attribute `{name}` has other numbers: {reason}"))
    })
}

/// The attribute `pads`: all numbers before the axes, then all after.
fn explicit_pads(call: &Call<'_>, n: usize) -> Result<Vec<(usize, usize)>> {
    let pads = counts(call, "pads", 0, 2 * n)?;
    Ok((0..n).map(|i| (pads[i], pads[i + n])).collect())
}

/// The kernel of a weight `[out, channels, kernel ..]`, which the attribute repeats.
fn kernel_of(call: &Call<'_>, weight: &Tensor) -> Result<Vec<usize>> {
    let kernel = weight.shape().get(2..).unwrap_or_default().to_vec();
    if let Some(told) = call.ints_attribute("kernel_shape")?
        && call.sizes(&told)? != kernel
    {
        let shape = weight.shape();
        return Err(call.error(format!("kernel {told:?} is not that of a weight {shape}")));
    }
    Ok(kernel)
}

/// The extents behind batch and channels.
pub(super) fn spatial(call: &Call<'_>, x: &Tensor) -> Result<Vec<usize>> {
    let extents = x.shape().get(2..).map(<[usize]>::to_vec);
    extents.ok_or_else(|| call.error(format!("shape {} has no batch and channels", x.shape())))
}

/// Numbers of the spatial axes as an array.
pub(super) fn array<const N: usize>(list: &[usize]) -> [usize; N] {
    std::array::from_fn(|i| list[i])
}

fn groups(call: &Call<'_>, name: &str) -> Result<usize> {
    let groups = usize::try_from(call.int_or(name, 1)?).ok();
    let groups = groups.filter(|groups| (1..=MOST).contains(groups));
    groups.ok_or_else(|| call.error(format!("attribute `{name}` is not in 1 to {MOST}")))
}

/// Padding for all axes of what has these windows.
pub(super) fn padding(pads: &[(usize, usize)]) -> Vec<(usize, usize)> {
    [&[(0, 0); 2], pads].concat()
}

pub(super) fn conv(call: &Call<'_>) -> Values {
    let bias = call.optional_tensor(2)?;
    if let (Some(x), Some(weight)) = (call.dequantized(0), call.dequantized(1))
        && let Some(y) = Dequantized::convolution(call, &x, &weight)?
    {
        return one(match bias {
            Some(bias) => y.add(along_channels(&bias, y.rank())?)?,
            None => y,
        });
    }
    one(convolve(call, &call.tensor(0)?, &call.tensor(1)?, bias.as_ref())?)
}

/// The convolution that the node's attributes describe.
pub(super) fn convolve(
    call: &Call<'_>,
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
) -> Result<Tensor> {
    let placed = Placed::new(call, x, weight)?;
    if !placed.windows.is_symmetric() {
        return placed.slide(&placed.padded(x, 0.0)?, weight, bias);
    }
    let pads: Vec<usize> = placed.windows.pads.iter().map(|&(before, _)| before).collect();
    placed.slide_padding(x, weight, bias, &pads)
}

/// How the weight of a convolution slides over its input.
pub(super) struct Placed {
    windows: Windows,
    pub(super) groups: usize,
}

impl Placed {
    pub(super) fn new(call: &Call<'_>, x: &Tensor, weight: &Tensor) -> Result<Placed> {
        let windows = Windows::new(call, &spatial(call, x)?, kernel_of(call, weight)?)?;
        Ok(Placed { windows, groups: groups(call, "group")? })
    }

    /// The input with `value` around it.
    pub(super) fn padded(&self, x: &Tensor, value: f64) -> Result<Tensor> {
        x.pad_with(padding(&self.windows.pads), value)
    }

    /// The convolution of an input that is padded already.
    pub(super) fn slide(
        &self,
        x: &Tensor,
        weight: &Tensor,
        bias: Option<&Tensor>,
    ) -> Result<Tensor> {
        self.slide_padding(x, weight, bias, &vec![0; self.windows.kernel.len()])
    }

    fn slide_padding(
        &self,
        x: &Tensor,
        weight: &Tensor,
        bias: Option<&Tensor>,
        pads: &[usize],
    ) -> Result<Tensor> {
        let (windows, groups) = (&self.windows, self.groups);
        match windows.kernel.len() {
            1 => {
                let [stride] = array(&windows.strides);
                let ([padding], [dilation]) = (array(pads), array(&windows.dilations));
                x.conv1d(weight, bias, Conv1dOptions { stride, padding, dilation, groups })
            }
            2 => {
                let (stride, padding) = (array(&windows.strides), array(pads));
                let dilation = array(&windows.dilations);
                x.conv2d(weight, bias, Conv2dOptions { stride, padding, dilation, groups })
            }
            _ => {
                let (stride, padding) = (array(&windows.strides), array(pads));
                let dilation = array(&windows.dilations);
                x.conv3d(weight, bias, Conv3dOptions { stride, padding, dilation, groups })
            }
        }
    }
}

/// The transposed convolution with nothing cut off.
fn spread(x: &Tensor, weight: &Tensor, windows: &Windows, groups: usize) -> Result<Tensor> {
    fn options<const N: usize>(windows: &Windows, groups: usize) -> ConvTransposeOptions<N> {
        let (stride, dilation) = (array(&windows.strides), array(&windows.dilations));
        ConvTransposeOptions { stride, dilation, groups, ..Default::default() }
    }
    match windows.kernel.len() {
        1 => x.conv_transpose1d(weight, None, options(windows, groups)),
        2 => x.conv_transpose2d(weight, None, options(windows, groups)),
        _ => x.conv_transpose3d(weight, None, options(windows, groups)),
    }
}

/// `extents` elements of each spatial axis from `before` on, zeros where there are none.
fn fitted(x: &Tensor, before: &[usize], extents: &[usize]) -> Result<Tensor> {
    let mut y = x.clone();
    let mut missing = vec![(0, 0); x.rank()];
    for (i, (&before, &extent)) in before.iter().zip(extents).enumerate() {
        let n = x.shape()[i + 2];
        let end = n.min(before + extent);
        let start = before.min(end);
        y = y.slice(i as isize + 2, start..end)?;
        missing[i + 2].1 = extent - (end - start);
    }
    y.pad(missing)
}

/// A vector of a number for each channel, laid along axis 1 of `rank`.
fn along_channels(vector: &Tensor, rank: usize) -> Result<Tensor> {
    let mut shape = vec![1; rank];
    shape[1] = vector.numel();
    vector.reshape(shape)
}

pub(super) fn conv_transpose(call: &Call<'_>) -> Values {
    let (x, weight, bias) = (call.tensor(0)?, call.tensor(1)?, call.optional_tensor(2)?);
    let extents = spatial(call, &x)?;
    let windows = Windows::new(call, &extents, kernel_of(call, &weight)?)?;
    let n = extents.len();
    let more = counts(call, "output_padding", 0, n)?;
    let whole: Vec<usize> = (0..n)
        .map(|i| {
            let steps = extents[i].saturating_sub(1).saturating_mul(windows.strides[i]);
            steps.saturating_add(windows.reach(i) + more[i])
        })
        .collect();
    let same = call.string_or("auto_pad", "NOTSET")?;
    let told = match call.ints_attribute("output_shape")?.filter(|shape| !shape.is_empty()) {
        // Batch and channels may come with it.
        Some(shape) if shape.len() == n || shape.len() == n + 2 => {
            let shape = call.sizes(&shape[shape.len() - n..])?;
            if shape.iter().zip(&whole).any(|(&n, whole)| n > whole + MOST) {
                return Err(call.error(format!("output_shape {shape:?} is made of {whole:?}")));
            }
            Some(shape)
        }
        Some(shape) => {
            return Err(call.error(format!("output_shape {shape:?} is not for {n} axes")));
        }
        None if same.starts_with("SAME") => {
            Some((0..n).map(|i| extents[i].saturating_mul(windows.strides[i])).collect())
        }
        None => None,
    };
    let (before, out): (Vec<usize>, Vec<usize>) = match told {
        Some(out) => {
            // With an output of its own the odd element is cut off at the beginning, unless upper is asked for.
            let side = if same == "SAME_UPPER" { same } else { "SAME_LOWER" };
            let before = (0..n).map(|i| halves(whole[i].saturating_sub(out[i]), side).0);
            (before.collect(), out)
        }
        None => {
            let left = |i: usize| {
                let (before, after) = windows.pads[i];
                let left = whole[i].checked_sub(before + after);
                left.ok_or_else(|| call.error("more is cut off than there is"))
            };
            let out = (0..n).map(left).collect::<Result<_>>()?;
            (windows.pads.iter().map(|&(before, _)| before).collect(), out)
        }
    };
    let y = fitted(&spread(&x, &weight, &windows, groups(call, "group")?)?, &before, &out)?;
    one(match bias {
        Some(bias) => y.add(along_channels(&bias, y.rank())?)?,
        None => y,
    })
}

/// Columns added where their windows lie: a transposed convolution whose weight takes each row of the columns to
/// its place in the window.
pub(super) fn col2im(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let (image, kernel) = (call.sizes(&call.ints(1)?)?, call.sizes(&call.ints(2)?)?);
    let windows = Windows::new(call, &image, kernel)?;
    let size = numel(&windows.kernel);
    let mut positions = Vec::new();
    for (i, &(before, after)) in windows.pads.iter().enumerate() {
        let room = (image[i] + before + after).checked_sub(windows.reach(i));
        let room = room.ok_or_else(|| call.error(format!("a window does not fit {image:?}")))?;
        positions.push(room / windows.strides[i] + 1);
    }
    let fits = match *x.shape().dims() {
        [batch, rows, columns] if rows % size == 0 && columns == numel(&positions) => {
            Some((batch, rows / size))
        }
        _ => None,
    };
    let Some((batch, channels)) = fits else {
        let shape = x.shape();
        let reason = format!("columns {shape} are not those of windows {positions:?} of {size}");
        return Err(call.error(reason));
    };
    let weight = Tensor::iota(size, DType::I64, call.device()).one_hot(size)?.cast(x.dtype());
    let weight = weight.reshape([&[size, 1], &windows.kernel[..]].concat())?;
    let columns = x.reshape([&[batch * channels, size], &positions[..]].concat())?;
    let before: Vec<usize> = windows.pads.iter().map(|&(before, _)| before).collect();
    let y = fitted(&spread(&columns, &weight, &windows, 1)?, &before, &image)?;
    one(y.reshape([&[batch, channels], &image[..]].concat())?)
}

/// A convolution of each channel with what came before, which is kept for the next call.
pub(super) fn causal_conv_with_state(call: &Call<'_>) -> Values {
    let (x, weight, bias) = (call.tensor(0)?, call.tensor(1)?, call.optional_tensor(2)?);
    let (&[batch, channels, length], &[_, _, kernel]) = (x.shape().dims(), weight.shape().dims())
    else {
        let reason = format!("input {} or weight {} has not 3 axes", x.shape(), weight.shape());
        return Err(call.error(reason));
    };
    let past = kernel.saturating_sub(1);
    let state = match call.optional_tensor(3)? {
        Some(state) => state,
        None => Tensor::zeros([batch, channels, past], x.dtype(), call.device()),
    };
    let all = Tensor::cat(&[&state, &x], 2)?;
    let options = Conv1dOptions { groups: channels, ..Default::default() };
    let y = match length {
        0 => x,
        _ => all.conv1d(&weight, bias.as_ref(), options)?,
    };
    let y = match call.string_or("activation", "none")? {
        "none" => y,
        "silu" | "swish" => y.silu(),
        other => return Err(call.error(format!("attribute `activation` is `{other}`"))),
    };
    Ok(vec![y.into(), all.slice(2, length..length + past)?.into()])
}

/// A convolution over two axes whose windows' elements lie where offsets say.
pub(super) fn deform_conv(call: &Call<'_>) -> Values {
    let (x, weight, offset) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    let (bias, mask) = (call.optional_tensor(3)?, call.optional_tensor(4)?);
    let extents = spatial(call, &x)?;
    let windows = Windows::new(call, &extents, kernel_of(call, &weight)?)?;
    let (groups, parts) = (groups(call, "group")?, groups(call, "offset_group")?);
    let (&[batch, channels, height, width], &[_, _, rows, columns]) =
        (x.shape().dims(), offset.shape().dims())
    else {
        return Err(call.error(format!("input {} is no batch of images", x.shape())));
    };
    let (out, inner) = (weight.shape()[0], weight.shape()[1]);
    let (size, points) = (numel(&windows.kernel), numel(&[rows, columns]));
    if channels % parts != 0 || inner * groups != channels || out % groups != 0 {
        let shapes = format!("input {}, weight {}", x.shape(), weight.shape());
        return Err(call.error(format!("{groups} groups and {parts} of offsets: {shapes}")));
    }
    let offset = offset.reshape([batch * parts, size, 2, rows, columns])?.cast(x.dtype());
    let wide = x.dtype().accumulator();
    let mut at = Vec::new();
    for (i, n) in [rows, columns].into_iter().enumerate() {
        let steps = |n: usize, by: usize| Tensor::iota(n, wide, call.device()).mul(by as f64);
        let mut shape = [1, 1, 1];
        shape[i + 1] = n;
        let windows_at = steps(n, windows.strides[i])?.sub(windows.pads[i].0 as f64)?;
        let mut inside = [1, 1];
        inside[i] = windows.kernel[i];
        let inside = steps(windows.kernel[i], windows.dilations[i])?.reshape(inside)?;
        let inside = inside.broadcast_to(windows.kernel.as_slice())?.reshape([size, 1, 1])?;
        let here = inside.add(windows_at.reshape(shape)?)?;
        at.push(offset.select_index(2, i as isize)?.cast(wide).add(here)?);
    }
    let taps = at.iter().map(linear_taps).collect::<Result<Vec<_>>>()?;
    let image = x.reshape([batch * parts, channels / parts, height, width])?;
    let shape = [batch * parts, size, rows, columns];
    let sampled = Samples::new(&image, &shape, Border::Zeros, None)?.sum(&taps)?;
    let sampled = match mask {
        Some(mask) => {
            sampled.mul(mask.cast(wide).reshape([batch * parts, 1, size, rows, columns])?)?
        }
        None => sampled,
    };
    // A product of each group's weight with its samples.
    let sampled = sampled.cast(x.dtype()).reshape([batch, groups, inner * size, points])?;
    let weight = weight.reshape([groups, out / groups, inner * size])?;
    let y = weight.matmul(&sampled)?.reshape([batch, out, rows, columns])?;
    one(match bias {
        Some(bias) => y.add(along_channels(&bias, 4)?)?,
        None => y,
    })
}
