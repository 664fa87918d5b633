//! Images read at places between their elements: `GridSample`, `AffineGrid`, `RoiAlign`, and what `DeformConv` reads.

use super::convolution::spatial;
use super::one;
use crate::host::numel;
use crate::run::Call;
use crate::value::Value;
use zyx_core::{DType, Result, Tensor};

type Values = Result<Vec<Value>>;

/// What lies outside of an image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Border {
    Zeros,
    /// The nearest element.
    Nearest,
    /// The image mirrored, at the middles of the outermost elements or at their ends.
    Mirrored {
        at_middles: bool,
    },
}

impl Border {
    /// Where places (in elements) along an axis of `n` elements lie inside; zeros do not move them.
    fn moved(self, at: &Tensor, n: usize) -> Result<Tensor> {
        let last = n as f64 - 1.0;
        match self {
            Border::Zeros => Ok(at.clone()),
            Border::Nearest => at.clamp(0.0, last),
            Border::Mirrored { at_middles: true } if n == 1 => Ok(at.zeros_like()),
            Border::Mirrored { at_middles } => {
                let (low, length) = if at_middles { (0.0, last) } else { (-0.5, n as f64) };
                let behind = at.sub(low)?.abs().remainder(2.0 * length)?;
                let back = behind.neg().add(2.0 * length)?;
                behind.minimum(&back)?.add(low)
            }
        }
    }
}

/// One of the elements of which a place along an axis is made: a whole position, and its share (none for all).
#[derive(Clone, Debug)]
pub(super) struct Tap {
    position: Tensor,
    weight: Option<Tensor>,
}

pub(super) fn linear_taps(at: &Tensor) -> Result<Vec<Tap>> {
    let low = at.floor();
    let weight = at.sub(&low)?;
    let first = Tap { position: low.clone(), weight: Some(weight.neg().add(1.0)?) };
    Ok(vec![first, Tap { position: low.add(1.0)?, weight: Some(weight) }])
}

/// By the kernel of Keys (1981) with `a = -3/4`.
fn cubic_taps(at: &Tensor) -> Result<Vec<Tap>> {
    const A: f64 = -0.75;
    let low = at.floor();
    let t = at.sub(&low)?;
    let rest = t.neg().add(1.0)?;
    let near = |d: &Tensor| d.mul(A + 2.0)?.sub(A + 3.0)?.mul(d)?.mul(d)?.add(1.0);
    let far = |d: &Tensor| d.mul(A)?.sub(5.0 * A)?.mul(d)?.add(8.0 * A)?.mul(d)?.sub(4.0 * A);
    let weights = [far(&t.add(1.0)?)?, near(&t)?, near(&rest)?, far(&rest.add(1.0)?)?];
    let tap = |(i, weight)| Ok(Tap { position: low.add(i as f64 - 1.0)?, weight: Some(weight) });
    weights.into_iter().enumerate().map(tap).collect()
}

/// Images of which elements are read, and the shape of the places `[batch, ..]`.
#[derive(Debug)]
pub(super) struct Samples<'a> {
    /// All elements of a channel in a row.
    rows: Tensor,
    /// Where each place's image begins.
    base: Tensor,
    extents: &'a [usize],
    shape: &'a [usize],
    border: Border,
}

impl<'a> Samples<'a> {
    /// `image` is `[n, channels, ..]`; `of` says whose places these are, each has its own if there is none.
    pub(super) fn new(
        image: &'a Tensor,
        shape: &'a [usize],
        border: Border,
        of: Option<&Tensor>,
    ) -> Result<Samples<'a>> {
        let (channels, extents) = (image.shape()[1], &image.shape()[2..]);
        let numel = numel(extents);
        let of = match of {
            Some(of) => of.cast(DType::I64),
            None => Tensor::iota(shape[0], DType::I64, image.device()),
        };
        let mut column = vec![1; shape.len()];
        column[0] = shape[0];
        let base = of.mul(numel as i64)?.reshape(column)?;
        let rows = image.transpose(0, 1)?.reshape([channels, image.shape()[0] * numel])?;
        Ok(Samples { rows, base, extents, shape, border })
    }

    /// Each combination of the axes' taps, times its weights: `[batch, channels, ..]`.
    fn parts(&self, taps: &[Vec<Tap>]) -> Result<Vec<Tensor>> {
        /// Taps of the axes so far.
        struct Part {
            at: Tensor,
            inside: Option<Tensor>,
            weight: Option<Tensor>,
        }
        let mut parts = vec![Part { at: self.base.clone(), inside: None, weight: None }];
        for (i, (taps, &n)) in taps.iter().zip(self.extents).enumerate() {
            let stride = numel(&self.extents[i + 1..]);
            let mut next = Vec::new();
            for tap in taps {
                let moved = self.border.moved(&tap.position, n)?;
                let at = moved.cast(DType::I64).clamp(0i64, n as i64 - 1)?.mul(stride as i64)?;
                let last = n as f64 - 1.0;
                let inside = match self.border {
                    Border::Zeros => Some(moved.ge(0.0)?.bitwise_and(moved.le(last)?)?),
                    _ => None,
                };
                for part in &parts {
                    let both =
                        |x: &Option<Tensor>,
                         y: &Option<Tensor>,
                         f: fn(&Tensor, &Tensor) -> Result<Tensor>| {
                            match (x, y) {
                                (Some(x), Some(y)) => f(x, y).map(Some),
                                (one, other) => Ok(one.as_ref().or(other.as_ref()).cloned()),
                            }
                        };
                    next.push(Part {
                        at: part.at.add(&at)?,
                        inside: both(&part.inside, &inside, |x, y| x.bitwise_and(y))?,
                        weight: both(&part.weight, &tap.weight, |x, y| x.mul(y))?,
                    });
                }
            }
            parts = next;
        }
        let channels = self.rows.shape()[0];
        let read = |part: Part| {
            let at = part.at.broadcast_to(self.shape)?.flatten().unchecked_indices();
            let values = self.rows.index_select(1, &at)?;
            let mut values = values.reshape([&[channels], self.shape].concat())?.transpose(0, 1)?;
            if let Some(weight) = part.weight {
                values = values.mul(weight.unsqueeze(1)?)?;
            }
            match part.inside {
                Some(inside) => inside.unsqueeze(1)?.where_(&values, values.zeros_like()),
                None => Ok(values),
            }
        };
        parts.into_iter().map(read).collect()
    }

    pub(super) fn sum(&self, taps: &[Vec<Tap>]) -> Result<Tensor> {
        folded(self.parts(taps)?, |x, y| x.add(y))
    }
}

fn folded(parts: Vec<Tensor>, f: impl Fn(&Tensor, &Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let mut parts = parts.into_iter();
    let first = parts.next().expect("invariant: an axis has taps");
    parts.try_fold(first, |sum, part| f(&sum, &part))
}

pub(super) fn grid_sample(call: &Call<'_>) -> Values {
    let (x, grid) = (call.tensor(0)?, call.tensor(1)?);
    let extents = spatial(call, &x)?;
    let n = extents.len();
    if grid.rank() != n + 2 || grid.shape()[n + 1] != n || grid.shape()[0] != x.shape()[0] {
        let (x, grid) = (x.shape(), grid.shape());
        return Err(call.error(format!("a grid of shape {grid} has no places in {x}")));
    }
    if extents.contains(&0) {
        return Err(call.error(format!("an image of {extents:?} has no element")));
    }
    let corners = call.flag("align_corners")?;
    let border = match call.string_or("padding_mode", "zeros")? {
        "zeros" => Border::Zeros,
        "border" => Border::Nearest,
        "reflection" => Border::Mirrored { at_middles: corners },
        other => return Err(call.error(format!("attribute `padding_mode` is `{other}`"))),
    };
    let mode = call.string_or("mode", if call.opset() >= 20 { "linear" } else { "bilinear" })?;
    let wide = grid.cast(grid.dtype().accumulator());
    let mut taps = Vec::new();
    for (i, &extent) in extents.iter().enumerate() {
        // Coordinates come in the order of the axes from the last one on.
        let at = wide.select_index(-1, (n - 1 - i) as isize)?;
        let at = match corners {
            true => at.add(1.0)?.mul((extent as f64 - 1.0) / 2.0)?,
            false => at.add(1.0)?.mul(extent as f64)?.sub(1.0)?.mul(0.5)?,
        };
        taps.push(match mode {
            "nearest" => vec![Tap { position: at.round(), weight: None }],
            "linear" | "bilinear" => linear_taps(&at)?,
            "cubic" | "bicubic" => cubic_taps(&at)?,
            other => return Err(call.error(format!("attribute `mode` is `{other}`"))),
        });
    }
    let shape = &grid.shape()[..n + 1];
    one(Samples::new(&x, shape, border, None)?.sum(&taps)?.cast(x.dtype()))
}

/// Places in an image of this size by affine maps `[n, axes, axes + 1]`.
pub(super) fn affine_grid(call: &Call<'_>) -> Values {
    let theta = call.tensor(0)?;
    let size = call.sizes(&call.ints(1)?)?;
    let n = size.len().saturating_sub(2);
    if !(2..=3).contains(&n) || theta.shape().dims() != [size[0], n, n + 1] {
        let theta = theta.shape();
        return Err(call.error(format!("maps of shape {theta} are not for images of {size:?}")));
    }
    let extents = &size[2..];
    let corners = call.flag("align_corners")?;
    let wide = theta.cast(theta.dtype().accumulator());
    let mut base = Vec::new();
    for (i, &extent) in extents.iter().enumerate().rev() {
        let steps = Tensor::iota(extent, wide.dtype(), call.device());
        let at = match corners {
            true => steps.mul(2.0 / (extent as f64 - 1.0).max(1.0))?.sub(1.0)?,
            false => steps.add(0.5)?.mul(2.0 / extent as f64)?.sub(1.0)?,
        };
        let mut shape = vec![1; n];
        shape[i] = extent;
        base.push(at.reshape(shape)?.broadcast_to(extents)?.flatten());
    }
    base.push(base[0].ones_like());
    let base = Tensor::stack(&base.iter().collect::<Vec<_>>(), 1)?;
    let grid = base.matmul(&wide.transpose(1, 2)?)?.cast(theta.dtype());
    one(grid.reshape([&[size[0]], extents, &[n]].concat())?)
}

/// Means (or largest weighted corners) of samples in each of the cells into which regions are divided.
pub(super) fn roi_align(call: &Call<'_>) -> Values {
    let (x, rois, of) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    let (&[_, channels, height, width], &[regions, 4]) = (x.shape().dims(), rois.shape().dims())
    else {
        let (x, rois) = (x.shape(), rois.shape());
        return Err(call.error(format!("regions of shape {rois} are not of images {x}")));
    };
    if height * width == 0 {
        return Err(call.error("an image has no element"));
    }
    let cells = [call.int_or("output_height", 1)?, call.int_or("output_width", 1)?];
    let cells = call.sizes(&cells)?;
    let default = if call.opset() >= 16 { "half_pixel" } else { "output_half_pixel" };
    let half = match call.string_or("coordinate_transformation_mode", default)? {
        "half_pixel" => 0.5,
        "output_half_pixel" => 0.0,
        other => {
            let reason = format!("attribute `coordinate_transformation_mode` is `{other}`");
            return Err(call.error(reason));
        }
    };
    let ratio = call.sizes(&[call.int_or("sampling_ratio", 0)?])?[0];
    let scale = call.float_or("spatial_scale", 1.0)?;
    let wide = rois.dtype().accumulator();
    let rois = rois.cast(wide).mul(scale)?.sub(half)?;
    let shape = [regions, cells[0], 1, cells[1], 1];
    let (mut taps, mut inside) = (Vec::new(), Vec::new());
    let (mut exists, mut counts) = (Vec::new(), Vec::new());
    let mut shape = shape.to_vec();
    for (i, n) in [height, width].into_iter().enumerate() {
        let corner = |j: usize| rois.select_index(1, j as isize)?.reshape([regions, 1, 1, 1, 1]);
        let (start, end) = (corner(1 - i)?, corner(3 - i)?);
        let length = end.sub(&start)?;
        let length = if half == 0.0 { length.maximum(1.0)? } else { length };
        let cell = length.div(cells[i] as f64)?;
        // By how many samples a cell is divided: those of each region, and the most of all.
        let (count, most) = match ratio {
            0 => {
                let count = cell.ceil().maximum(0.0)?;
                let numbers = call.read(&Value::from(&count))?.floats();
                let most = numbers.into_iter().fold(1.0, f64::max);
                if most > 65536.0 {
                    return Err(call.error(format!("a region has {most} samples in a cell")));
                }
                (count, most as usize)
            }
            ratio => (cell.ones_like().mul(ratio as f64)?, ratio),
        };
        let axis = 1 + 2 * i;
        shape[axis + 1] = most;
        let steps = |axis: usize, n: usize| {
            let mut shape = [1; 5];
            shape[axis] = n;
            Tensor::iota(n, wide, call.device()).reshape(shape)
        };
        let sample = steps(axis + 1, most)?;
        let part = sample.add(0.5)?.div(count.maximum(1.0)?)?.add(steps(axis, cells[i])?)?;
        let at = start.add(part.mul(&cell)?)?;
        let near = at.ge(-1.0)?.bitwise_and(at.le(n as f64)?)?;
        inside.push(near);
        exists.push(sample.lt(&count)?);
        counts.push(count);
        taps.push(linear_taps(&at.clamp(0.0, n as f64 - 1.0)?)?);
    }
    let samples = Samples::new(&x, &shape, Border::Nearest, Some(&of))?;
    // Samples far outside are 0; those that a region has less than another do not exist.
    let inside = inside[0].bitwise_and(&inside[1])?.unsqueeze(1)?;
    let exists = exists[0].bitwise_and(&exists[1])?.unsqueeze(1)?;
    let counted = |value: Tensor, otherwise: f64| {
        let value = inside.where_(&value, value.zeros_like())?;
        exists.where_(&value, value.zeros_like().add(otherwise)?)
    };
    let count = counts[0].mul(&counts[1])?.reshape([regions, 1, 1, 1])?;
    let y = match call.string_or("mode", "avg")? {
        "avg" => counted(samples.sum(&taps)?, 0.0)?.sum([3, 5])?.div(count.maximum(1.0)?)?,
        "max" => {
            let best = folded(samples.parts(&taps)?, |x, y| x.maximum(y))?;
            let best = counted(best, f64::NEG_INFINITY)?.amax([3, 5])?;
            count.gt(0.0)?.where_(&best, best.zeros_like())?
        }
        other => return Err(call.error(format!("attribute `mode` is `{other}`"))),
    };
    one(y.reshape([regions, channels, cells[0], cells[1]])?.cast(x.dtype()))
}
