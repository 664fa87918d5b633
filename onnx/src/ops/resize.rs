//! `Resize` and `Upsample`: along one axis after the other, each element of the result is a weighted sum of few of the
//! input. Which, and with what weights, is computed on the host.

use super::one;
use crate::budget::Budget;
use crate::host::Host;
use crate::run::Call;
use crate::value::Value;
use zyx_core::{DType, Interpolation, Result, Scalar, Tensor};

type Values = Result<Vec<Value>>;

/// Extents of results above this are refused.
const MOST: usize = 1 << 24;

/// How values between elements are found.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Nearest(Rounding),
    Linear,
    /// By the kernel of Keys (1981) with this coefficient.
    Cubic(f64),
}

/// Which neighbour is the nearest.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rounding {
    PreferFloor,
    PreferCeil,
    Floor,
    Ceil,
}

impl Rounding {
    fn round(self, at: f64) -> f64 {
        match self {
            Rounding::PreferFloor => (at - 0.5).ceil(),
            Rounding::PreferCeil => (at + 0.5).floor(),
            Rounding::Floor => at.floor(),
            Rounding::Ceil => at.ceil(),
        }
    }
}

/// Where elements of the result lie among those of the input.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Coordinates {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    HalfPixelForNearest,
    AlignCorners,
    Asymmetric,
    CropAndResize,
}

/// What happens along an axis of `n` elements that becomes one of `m`.
#[derive(Clone, Copy, Debug)]
struct Axis {
    n: usize,
    m: usize,
    scale: f64,
    /// Start and end of what is resized, as parts of the axis.
    roi: (f64, f64),
}

impl Axis {
    /// The place of element `i` of the result.
    fn place(&self, i: usize, coordinates: Coordinates) -> f64 {
        let Axis { n, m, scale, roi: (start, end) } = *self;
        let (i, n, m) = (i as f64, n as f64, m as f64);
        let length = scale * n;
        match coordinates {
            Coordinates::PytorchHalfPixel if length == 1.0 => -0.5,
            Coordinates::HalfPixel | Coordinates::PytorchHalfPixel => (i + 0.5) / scale - 0.5,
            Coordinates::HalfPixelSymmetric => {
                n / 2.0 * (1.0 - m / length) + (i + 0.5) / scale - 0.5
            }
            Coordinates::HalfPixelForNearest => (i + 0.5) / scale,
            Coordinates::AlignCorners if length == 1.0 => 0.0,
            Coordinates::AlignCorners => i * (n - 1.0) / (length - 1.0),
            Coordinates::Asymmetric => i / scale,
            Coordinates::CropAndResize if length == 1.0 => (start + end) * (n - 1.0) / 2.0,
            Coordinates::CropAndResize => {
                start * (n - 1.0) + i * (end - start) * (n - 1.0) / (length - 1.0)
            }
        }
    }
}

/// What holds for all axes.
#[derive(Clone, Copy, Debug)]
struct Resize {
    mode: Mode,
    coordinates: Coordinates,
    antialias: bool,
    exclude_outside: bool,
    /// What lies outside of what `CropAndResize` resizes.
    outside: f64,
}

impl Resize {
    fn of(call: &Call<'_>) -> Result<Resize> {
        let wrong =
            |name: &str, found: &str| call.error(format!("attribute `{name}` is `{found}`"));
        let is_old = call.opset() < 11;
        let coordinates = match call.string_or("coordinate_transformation_mode", "half_pixel")? {
            _ if is_old => Coordinates::Asymmetric,
            "half_pixel" => Coordinates::HalfPixel,
            "half_pixel_symmetric" => Coordinates::HalfPixelSymmetric,
            "pytorch_half_pixel" => Coordinates::PytorchHalfPixel,
            "tf_half_pixel_for_nn" => Coordinates::HalfPixelForNearest,
            "align_corners" => Coordinates::AlignCorners,
            "asymmetric" => Coordinates::Asymmetric,
            "tf_crop_and_resize" => Coordinates::CropAndResize,
            other => return Err(wrong("coordinate_transformation_mode", other)),
        };
        let rounding = match call.string_or("nearest_mode", "round_prefer_floor")? {
            _ if is_old => Rounding::Floor,
            "round_prefer_floor" => Rounding::PreferFloor,
            "round_prefer_ceil" => Rounding::PreferCeil,
            "floor" => Rounding::Floor,
            "ceil" => Rounding::Ceil,
            other => return Err(wrong("nearest_mode", other)),
        };
        let mode = match call.string_or("mode", "nearest")? {
            "nearest" => Mode::Nearest(rounding),
            "linear" | "bilinear" => Mode::Linear,
            "cubic" => Mode::Cubic(call.float_or("cubic_coeff_a", -0.75)?),
            other => return Err(wrong("mode", other)),
        };
        Ok(Resize {
            mode,
            coordinates,
            antialias: call.flag("antialias")?,
            exclude_outside: call.flag("exclude_outside")?,
            outside: call.float_or("extrapolation_value", 0.0)?,
        })
    }

    /// The positions and weights of which the element at a place between them consists, positions from the first
    /// element on; `scale` is that of antialiasing.
    fn taps(&self, at: f64, scale: f64) -> Vec<(i64, f64)> {
        // A place on an element is at the end of the piece before it.
        let low = if at == at.floor() { at - 1.0 } else { at.floor() };
        let behind = at - low;
        let (radius, kernel): (f64, &dyn Fn(f64) -> f64) = match self.mode {
            Mode::Nearest(rounding) => return vec![(rounding.round(at) as i64, 1.0)],
            Mode::Linear => (1.0, &|d: f64| (1.0 - d).max(0.0)),
            Mode::Cubic(a) => (2.0, &move |d: f64| match d {
                d if d <= 1.0 => ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0,
                d if d < 2.0 => ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a,
                _ => 0.0,
            }),
        };
        let scale = if self.antialias { scale.min(1.0) } else { 1.0 };
        let first = (-radius / scale).floor() as i64 + 1;
        let tap =
            |i: i64| ((low as i64).saturating_add(i), kernel((scale * (i as f64 - behind)).abs()));
        let mut taps: Vec<(i64, f64)> = (first..2 - first).map(tap).collect();
        if self.antialias {
            normalise(&mut taps);
        }
        taps
    }

    /// The same by [`Tensor::interpolate`], which reads no list of positions: for floats along the last axes, by the
    /// ratio of the extents.
    fn interpolated(&self, x: &Tensor, axes: &[(usize, Axis)]) -> Result<Option<Tensor>> {
        let mode = match self.mode {
            Mode::Linear => Interpolation::Linear,
            Mode::Cubic(-0.75) if !self.exclude_outside => Interpolation::Cubic,
            _ => return Ok(None),
        };
        let corners = match self.coordinates {
            Coordinates::HalfPixel | Coordinates::HalfPixelSymmetric => false,
            Coordinates::PytorchHalfPixel if axes.iter().all(|(_, of)| of.m > 1) => false,
            Coordinates::AlignCorners => true,
            _ => return Ok(None),
        };
        let first = x.rank().saturating_sub(3);
        let fits = |&(axis, of): &(usize, Axis)| {
            let (length, m) = (of.scale * of.n as f64, of.m as f64);
            axis >= first && of.n > 0 && of.m > 0 && (length - m).abs() <= 1e-9 * m
        };
        if self.antialias || !x.dtype().is_float() || !axes.iter().all(fits) || x.numel() == 0 {
            return Ok(None);
        }
        let mut size = x.shape()[first..].to_vec();
        axes.iter().for_each(|&(axis, of)| size[axis - first] = of.m);
        Ok(Some(x.interpolate(&size, mode, corners)?))
    }

    fn along(&self, call: &Call<'_>, x: &Tensor, axis: usize, of: Axis) -> Result<Tensor> {
        let last = of.n as i64 - 1;
        // Positions and weights, and numbers and bytes that are made of them.
        let width = if self.antialias { (4.0 / of.scale).max(4.0) as usize } else { 4 };
        call.budget().ask_for(of.m.saturating_mul(width), 6 * size_of::<f64>())?;
        let places: Vec<f64> = (0..of.m).map(|i| of.place(i, self.coordinates)).collect();
        let mut count = 0;
        let (mut positions, mut weights) = (Vec::new(), Vec::new());
        for &at in &places {
            Budget::check_interrupt()?;
            let mut taps = self.taps(at, of.scale);
            if self.exclude_outside {
                taps.iter_mut()
                    .filter(|(i, _)| !(0..=last).contains(i))
                    .for_each(|tap| tap.1 = 0.0);
                normalise(&mut taps);
            }
            count = taps.len();
            positions.extend(taps.iter().map(|&(i, _)| i.clamp(0, last)));
            weights.extend(taps.iter().map(|&(_, weight)| weight));
        }
        let mut laid = vec![1; x.rank()];
        let y = if let Mode::Nearest(_) = self.mode {
            nearest(x, axis, &positions)?
        } else {
            let index = Tensor::from_slice(&positions, [positions.len()], x.device())?;
            let mut split = x.shape().to_vec();
            split.splice(axis..=axis, [of.m, count]);
            laid.splice(axis..=axis, [of.m, count]);
            let weights = weights.into_iter().map(|w| Scalar::from(w).cast(x.dtype()));
            let weights = Host::new(laid.as_slice(), x.dtype(), weights.collect());
            let weights = weights.tensor(x.device())?;
            let picked = x.index_select(axis as isize, &index)?.reshape(split)?;
            laid.remove(axis + 1);
            picked.mul(weights)?.sum(axis + 1)?
        };
        let is_outside = |&at: &f64| at < 0.0 || at > last as f64;
        if self.coordinates != Coordinates::CropAndResize || !places.iter().any(is_outside) {
            return Ok(y);
        }
        laid[axis] = of.m;
        let outside: Vec<bool> = places.iter().map(is_outside).collect();
        let outside = Tensor::from_slice(&outside, [of.m], x.device())?.reshape(laid)?;
        outside.where_(y.zeros_like().add(self.outside)?.cast(y.dtype()), &y)
    }
}

/// The elements at these positions; where each comes equally often in a row, by repeating all.
fn nearest(x: &Tensor, axis: usize, positions: &[i64]) -> Result<Tensor> {
    let n = x.shape()[axis];
    let times = positions.len() / n;
    if times * n == positions.len()
        && (0..positions.len()).all(|i| positions[i] == (i / times) as i64)
    {
        return x.repeat_interleave(times, axis as isize);
    }
    let index = Tensor::from_slice(positions, [positions.len()], x.device())?;
    x.index_select(axis as isize, &index)
}

fn normalise(taps: &mut [(i64, f64)]) {
    let sum: f64 = taps.iter().map(|(_, weight)| weight).sum();
    if sum != 0.0 {
        taps.iter_mut().for_each(|(_, weight)| *weight /= sum);
    }
}

/// A list of numbers that is there and has any.
fn list(call: &Call<'_>, i: usize) -> Result<Option<Vec<f64>>> {
    let Some(value) = call.optional(i) else { return Ok(None) };
    Ok(Some(call.read(value)?.floats()).filter(|numbers| !numbers.is_empty()))
}

/// Inputs are scales in opset 10, then region, scales and sizes, of which one is there.
pub(super) fn resize(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let axes = match call.ints_attribute("axes")? {
        Some(axes) => call.axes(&axes, x.rank())?,
        None => (0..x.rank()).collect(),
    };
    if call.opset() < 11 {
        return resized(call, &x, &axes, list(call, 1)?, None);
    }
    resized(call, &x, &axes, list(call, 2)?, list(call, 3)?)
}

/// Scales are an attribute before opset 9.
pub(super) fn upsample(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let scales = match call.opset() >= 9 {
        true => list(call, 1)?,
        false => call.floats_attribute("scales")?.map(|s| s.into_iter().map(f64::from).collect()),
    };
    resized(call, &x, &(0..x.rank()).collect::<Vec<_>>(), scales, None)
}

fn resized(
    call: &Call<'_>,
    x: &Tensor,
    axes: &[usize],
    scales: Option<Vec<f64>>,
    sizes: Option<Vec<f64>>,
) -> Values {
    let options = Resize::of(call)?;
    let count = axes.len();
    let extent = |i: usize| x.shape()[axes[i]];
    let pairs: Vec<(f64, usize)> = match (scales, sizes) {
        (Some(scales), None) if scales.len() == count => {
            let pair = |(i, &scale): (usize, &f64)| (scale, (scale * extent(i) as f64) as usize);
            scales.iter().enumerate().map(pair).collect()
        }
        (None, Some(sizes)) if sizes.len() == count => {
            let scales = sizes.iter().enumerate().map(|(i, size)| size / extent(i) as f64);
            let common = match call.string_or("keep_aspect_ratio_policy", "stretch")? {
                "stretch" => None,
                "not_larger" => scales.clone().reduce(f64::min),
                "not_smaller" => scales.clone().reduce(f64::max),
                other => {
                    let reason = format!("attribute `keep_aspect_ratio_policy` is `{other}`");
                    return Err(call.error(reason));
                }
            };
            let pair = |(i, scale): (usize, f64)| match common {
                Some(common) => (common, (common * extent(i) as f64 + 0.5) as usize),
                None => (scale, sizes[i] as usize),
            };
            scales.enumerate().map(pair).collect()
        }
        (scales, sizes) => {
            let [scales, sizes] = [scales, sizes].map(|list| list.map_or(0, |list| list.len()));
            let reason = format!("{scales} scales and {sizes} sizes for {count} axes");
            return Err(call.error(reason));
        }
    };
    if let Some(&(scale, _)) = pairs.iter().find(|(scale, _)| !scale.is_finite() || *scale < 0.0) {
        return Err(call.error(format!("an extent of {} times {scale}", x.shape())));
    }
    if let Some(&(_, m)) = pairs.iter().find(|&&(_, m)| m > MOST) {
        return Err(call.error(format!("an axis of {m} elements, {MOST} are supported")));
    }
    let whole = || [vec![0.0; count], vec![1.0; count]].concat();
    let roi = match options.coordinates {
        Coordinates::CropAndResize => list(call, 1)?.unwrap_or_else(whole),
        _ => whole(),
    };
    if roi.len() != 2 * count {
        return Err(call.error(format!("a region of {} numbers for {count} axes", roi.len())));
    }
    let discrete = matches!(options.mode, Mode::Nearest(_));
    let wide = match x.dtype() {
        dtype if discrete => dtype,
        dtype if dtype.is_float() => dtype.accumulator(),
        dtype if dtype.size() < 4 => DType::F32,
        _ => DType::F64,
    };
    let all = axes.iter().zip(&pairs).enumerate().map(|(i, (&axis, &(scale, m)))| {
        (axis, Axis { n: extent(i), m, scale, roi: (roi[i], roi[i + count]) })
    });
    let stays = |of: &Axis| of.scale == 1.0 && of.n == of.m && of.roi == (0.0, 1.0);
    let changed: Vec<(usize, Axis)> = all.filter(|(_, of)| !stays(of)).collect();
    if let Some(y) = options.interpolated(x, &changed)? {
        return one(y.cast(x.dtype()));
    }
    let mut y = x.cast(wide);
    for (axis, of) in changed {
        let Axis { m, scale, .. } = of;
        if of.n == 0 && m > 0 {
            return Err(call.error(format!("{m} elements are made of none along axis {axis}")));
        }
        if m == 0 {
            y = y.slice(axis as isize, 0..0)?;
            continue;
        }
        let mut options = options;
        // The first version takes the next element where it leaves some out.
        if call.node.kind == "Resize" && call.opset() < 11 && scale < 1.0 && discrete {
            options.mode = Mode::Nearest(Rounding::Ceil);
        }
        y = options.along(call, &y, axis, of)?;
    }
    if x.dtype().is_float() || discrete {
        return one(y.cast(x.dtype()));
    }
    let (low, high) = (Scalar::lowest(x.dtype()), Scalar::highest(x.dtype()));
    one(y.round().clamp(low.to_f64(), high.to_f64())?.cast(x.dtype()))
}
