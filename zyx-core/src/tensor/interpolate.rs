//! Images of another size: nearest, linear and cubic interpolation, and sampling at given places.
//!
//! An axis is interpolated by weighted gathers whose positions follow from the output's, so
//! nothing but the result is stored. Positions are exact for axes of any length: their whole parts are integers, and
//! their fractions are rounded quotients of integers. By a factor that
//! gives no whole extent, elements lie as far apart as the factor says (`f32` for the nearest),
//! not as the rounded extent would: what PyTorch calls not to recompute the factor.

use super::Tensor;
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::origin::composed;
use crate::shape::Shape;

/// How [`Tensor::interpolate`] finds values between elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Interpolation {
    /// The element `floor(i n / m)`, as PyTorch's `"nearest"`.
    #[default]
    Nearest,
    /// The element whose middle is nearest, as PyTorch's `"nearest-exact"`.
    NearestExact,
    /// Linear along each axis: linear, bilinear or trilinear.
    Linear,
    /// Cubic along each axis, by the kernel of Keys (1981) with `a = -3/4`.
    Cubic,
    /// Means of pieces: adaptive average pooling.
    Area,
}

/// Positions along an axis in two parts, so that no number holds both a large whole part and a fraction.
struct Positions {
    /// Whole parts, as integers.
    whole: Tensor,
    /// Fractions beyond the whole parts, in `0 ..= 1`.
    rest: Tensor,
}

/// Positions `(step i + offset) / unit`.
struct Ratio {
    step: i64,
    offset: i64,
    unit: i64,
}

impl Positions {
    /// The first `m` positions, with fractions in the dtype of `like`: those of an estimate follow from an integer
    /// remainder, which is exact.
    #[track_caller]
    fn exact(m: usize, ratio: &Ratio, like: &Tensor) -> Result<Positions> {
        let Ratio { step, offset, unit } = *ratio;
        let (dtype, device) = (like.dtype(), like.device());
        let largest = (m as i128) * i128::from(step) + i128::from(offset.abs()) + i128::from(unit);
        let int = if largest < 1 << 30 { DType::I32 } else { DType::I64 };
        let share = |x: i64| x as f64 / unit as f64;
        let estimate = Tensor::iota(m, dtype, device).mul(share(step))?.add(share(offset))?;
        let near = estimate.floor().cast(int);
        let exact = Tensor::iota(m, int, device).mul(step)?.add(offset)?;
        let rest = exact.sub(near.mul(unit)?)?.cast(dtype).mul(share(1))?;
        let beyond = rest.floor();
        Ok(Positions {
            whole: near.add(beyond.cast(int))?.cast(DType::I64),
            rest: rest.sub(&beyond)?,
        })
    }
}

impl Tensor {
    /// The last axes (as many as `size` has, at most three) with the extents `size`.
    ///
    /// Elements are squares whose middles are compared; with `align_corners` they are points and
    /// the outermost ones coincide (linear and cubic only).
    ///
    /// ```
    /// # use zyx::{Interpolation, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([0f32, 4.0], &device)?;
    /// let y = x.interpolate(&[4], Interpolation::Linear, false)?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.0, 1.0, 3.0, 4.0]);
    /// let y = x.interpolate(&[4], Interpolation::Nearest, false)?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.0, 0.0, 4.0, 4.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there are too few axes, an extent is 0, or the result is too large.
    #[track_caller]
    pub fn interpolate(
        &self,
        size: &[usize],
        mode: Interpolation,
        align_corners: bool,
    ) -> Result<Tensor> {
        let _here = composed();
        self.resized("interpolate", size, None, (mode, align_corners)).named("interpolate")
    }

    /// The last axes (as many as `scale` has, at most three) with their extents times these factors,
    /// rounded down. Neighbours of the result are `1 / factor` elements apart, also where rounding
    /// left something out; see [`Tensor::interpolate`].
    ///
    /// ```
    /// # use zyx::{Interpolation, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([0f32, 4.0, 8.0], &device)?;
    /// let y = x.interpolate_by(&[0.8], Interpolation::Linear, false)?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.5, 5.5]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a factor is not positive and finite; as [`Tensor::interpolate`].
    #[track_caller]
    pub fn interpolate_by(
        &self,
        scale: &[f64],
        mode: Interpolation,
        align_corners: bool,
    ) -> Result<Tensor> {
        const OP: &str = "interpolate_by";
        let _here = composed();
        let factors = !scale.is_empty() && scale.iter().all(|&f| f.is_finite() && f > 0.0);
        let Some(lead) = self.rank().checked_sub(scale.len()).filter(|_| factors) else {
            let reason = format!("{scale:?} are not positive factors of the last axes");
            return Err(Tensor::shape_error(OP, &[self], reason));
        };
        // Casts saturate: what is too large is refused by what computes it.
        let extents = self.shape()[lead..].iter().zip(scale);
        let size: Vec<usize> = extents.map(|(&n, factor)| (n as f64 * factor) as usize).collect();
        self.resized(OP, &size, Some(scale), (mode, align_corners)).named(OP)
    }

    #[track_caller]
    fn resized(
        &self,
        op: &'static str,
        size: &[usize],
        scale: Option<&[f64]>,
        (mode, corners): (Interpolation, bool),
    ) -> Result<Tensor> {
        Tensor::check_operands(op, &[self])?;
        let n = size.len();
        let fail = |reason: String| Err(Tensor::shape_error(op, &[self], reason));
        if !(1..=3).contains(&n) || self.rank() < n {
            return fail(format!("{n} extents are not those of the last one to three axes"));
        }
        let (lead, old) = self.shape().split_at(self.rank() - n);
        if old.contains(&0) || size.contains(&0) {
            return fail(format!("nothing lies between no elements; {size:?} is asked for"));
        }
        let most = old.iter().zip(size).map(|(&a, &b)| a.max(b)).collect::<Vec<_>>();
        if !Shape::from([lead, &most].concat()).is_possible() {
            return fail(format!("a result of extents {size:?} has too many elements"));
        }
        let discrete = matches!(mode, Interpolation::Nearest | Interpolation::NearestExact);
        let mut y = if discrete { self.clone() } else { self.wide() };
        for (i, &m) in size.iter().enumerate() {
            let axis = self.rank() - n + i;
            // How far apart elements are, where the extents do not say so.
            let rounded = |&f: &f64| old[i] as f64 * f != m as f64;
            let apart = scale.map(|scale| scale[i]).filter(rounded).map(f64::recip);
            let apart = apart.filter(|_| !corners && mode != Interpolation::Area);
            if m == old[i] && apart.is_none() {
                continue;
            }
            y = match (mode, apart) {
                (Interpolation::Nearest, None) => y.nearest(axis, m, false)?,
                (Interpolation::NearestExact, None) => y.nearest(axis, m, true)?,
                (Interpolation::Nearest, Some(apart)) => y.nearest_apart(axis, m, (apart, 0.0))?,
                (Interpolation::NearestExact, Some(apart)) => {
                    y.nearest_apart(axis, m, (apart, 0.5))?
                }
                (Interpolation::Linear, _) => {
                    y.linear(axis, &y.coordinates(old[i], m, apart, corners)?)?
                }
                (Interpolation::Cubic, _) => {
                    y.cubic(axis, &y.coordinates(old[i], m, apart, corners)?)?
                }
                (Interpolation::Area, _) => y.area(axis, m)?,
            };
        }
        Ok(if discrete { y } else { y.cast(self.floating().dtype()) })
    }

    /// `floor((i + 1/2) n / m)`, or without the half.
    #[track_caller]
    fn nearest(&self, axis: usize, m: usize, middle: bool) -> Result<Tensor> {
        let n = self.shape()[axis];
        let place = Tensor::iota(m, DType::I64, self.device());
        let index = match middle {
            false => place.mul(n as i64)?.floor_divide(m as i64)?,
            true => place.mul(2)?.add(1)?.mul(n as i64)?.floor_divide(2 * m as i64)?,
        };
        Ok(self.select_unchecked(axis, &index))
    }

    /// `floor((i + middle) apart)`, the last element at most.
    #[track_caller]
    fn nearest_apart(&self, axis: usize, m: usize, at: (f64, f64)) -> Result<Tensor> {
        let (apart, middle) = at;
        let place = Tensor::iota(m, DType::F32, self.device()).add(middle)?.mul(apart)?;
        let index = place.floor().cast(DType::I64).minimum(self.shape()[axis] as i64 - 1)?;
        Ok(self.select_unchecked(axis, &index))
    }

    /// The positions of `m` elements among `n`, as those `apart` if that does not follow from the extents.
    #[track_caller]
    fn coordinates(
        &self,
        n: usize,
        m: usize,
        apart: Option<f64>,
        corners: bool,
    ) -> Result<Positions> {
        let (old, new) = (n as i64, m as i64);
        let ratio = match apart {
            Some(apart) if !corners => {
                // A binary fraction: in 62 bits fit its whole part, and as many bits behind as 48.
                let bits = 48.min(60 - apart.log2().ceil().max(0.0) as i32);
                let unit = 2f64.powi(bits);
                let offset = ((apart - 1.0) / 2.0 * unit).round() as i64;
                Ratio { step: (apart * unit).round() as i64, offset, unit: unit as i64 }
            }
            _ if corners => Ratio { step: old - 1, offset: 0, unit: (new - 1).max(1) },
            _ => Ratio { step: 2 * old, offset: old - new, unit: 2 * new },
        };
        Positions::exact(m, &ratio, self)
    }

    /// A vector laid along an axis.
    #[track_caller]
    fn laid(&self, axis: usize, vector: &Tensor) -> Result<Tensor> {
        let mut dims = vec![1; self.rank()];
        dims[axis] = vector.numel();
        vector.reshape(dims)
    }

    /// At these places along an axis.
    #[track_caller]
    fn linear(&self, axis: usize, at: &Positions) -> Result<Tensor> {
        let last = self.shape()[axis] as i64 - 1;
        let before = at.whole.lt(0)?;
        let weight = self.laid(axis, &before.where_(at.rest.like(0.0), &at.rest)?)?;
        let low = at.whole.clamp(0, last)?;
        let high = low.add(1)?.minimum(last)?;
        let (a, b) = (self.select_unchecked(axis, &low), self.select_unchecked(axis, &high));
        a.mul(weight.neg().add(1.0)?)?.add(b.mul(&weight)?)
    }

    /// At these places along an axis.
    #[track_caller]
    fn cubic(&self, axis: usize, at: &Positions) -> Result<Tensor> {
        let n = self.shape()[axis];
        let mut sum: Option<Tensor> = None;
        for (tap, weight) in (-1..3).zip(cubic_weights(&at.rest)?) {
            let index = at.whole.add(tap)?.clamp(0, n as i64 - 1)?;
            let part = self.select_unchecked(axis, &index).mul(self.laid(axis, &weight)?)?;
            sum = Some(match sum {
                Some(sum) => sum.add(&part)?,
                None => part,
            });
        }
        Ok(sum.expect("invariant: there are four taps"))
    }

    #[track_caller]
    fn area(&self, axis: usize, m: usize) -> Result<Tensor> {
        let axis = axis as isize;
        self.transpose(axis, -1)?.adaptive_avg_pool1d([m])?.transpose(axis, -1)
    }

    /// The elements of an image `[n, channels, height, width]` at the places
    /// `[n, rows, columns, 2]`, each `(x, y)` from -1 (one end) to 1 (the other), interpolated
    /// linearly (or the nearest element with `nearest`); beyond the ends are zeros, or with
    /// `border` the elements there. Differentiable in both.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let image = Tensor::new([[[[1f32, 3.0]]]], &device)?;
    /// let places = Tensor::new([[[[-1f32, 0.0], [0.0, 0.0]]]], &device)?;
    /// let y = image.grid_sample(&places, false, false, true)?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not fit or the operands do not hold floats.
    #[track_caller]
    pub fn grid_sample(
        &self,
        grid: &Tensor,
        nearest: bool,
        border: bool,
        align_corners: bool,
    ) -> Result<Tensor> {
        const OP: &str = "grid_sample";
        let _here = composed();
        let sampled = || {
            Tensor::check_operands(OP, &[self, grid])?;
            let fits = match (self.shape().dims(), grid.shape().dims()) {
                (&[n, _, height, width], &[m, _, _, 2]) => n == m && height * width > 0,
                _ => false,
            };
            if !fits {
                let reason = "needs [n, channels, height, width] and [n, rows, columns, 2]";
                return Err(Tensor::shape_error(OP, &[self, grid], reason.to_owned()));
            }
            if !self.dtype().is_float() || !grid.dtype().is_float() {
                let reason = "image and places must hold floats".to_owned();
                return Err(Tensor::dtype_error(OP, &[self, grid], reason));
            }
            let x = self.wide();
            let dtype = x.dtype().promote(grid.wide().dtype());
            let sampled =
                x.cast(dtype).sampled(&grid.cast(dtype), nearest, border, align_corners)?;
            Ok(sampled.cast(self.dtype()))
        };
        sampled().named(OP)
    }

    #[track_caller]
    fn sampled(&self, grid: &Tensor, nearest: bool, border: bool, corners: bool) -> Result<Tensor> {
        let extents = [self.shape()[3], self.shape()[2]];
        // The whole part of a position and the rest apart, since their sum would not hold the bits of the rest.
        let place = |i: usize| -> Result<(Tensor, Tensor)> {
            let n = extents[i] as f64;
            let (half, middle) = ((if corners { n - 1.0 } else { n }) / 2.0, (n - 1.0) / 2.0);
            let from_middle = grid.select_index(-1, i as isize)?.mul(half)?;
            let low = from_middle.floor();
            let rest = from_middle.sub(&low)?.add(middle.fract())?;
            let more = rest.floor();
            let (low, rest) = (low.add(middle.floor())?.add(&more)?, rest.sub(&more)?);
            if !border {
                return Ok((low, rest));
            }
            // Flat at the ends: a gradient is of what is between them.
            let between = low.ge(0.0)?.bitwise_and(low.lt(n - 1.0)?)?;
            let between = between.bitwise_and(low.gt(0.0)?.bitwise_or(rest.gt(0.0)?)?)?;
            Ok((low.clamp(0.0, n - 1.0)?, between.where_(&rest, rest.like(0.0))?))
        };
        let at = [place(0)?, place(1)?];
        if nearest {
            // Halves go to the even neighbour.
            let near = |(low, rest): &(Tensor, Tensor)| {
                let odd = low.remainder(2.0)?.ne(0.0)?;
                let up = rest.gt(0.5)?.bitwise_or(rest.eq(0.5)?.bitwise_and(&odd)?)?;
                low.add(up.cast(low.dtype()))
            };
            return self.picked(&near(&at[0])?, &near(&at[1])?);
        }
        let mut sum: Option<Tensor> = None;
        for (dx, dy) in [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)] {
            // The weight of a corner is how near it is along both axes.
            let near = |i: usize, d: f64| {
                let rest = &at[i].1;
                if d == 0.0 { rest.neg().add(1.0) } else { Ok(rest.clone()) }
            };
            let weight = near(0, dx)?.mul(near(1, dy)?)?.unsqueeze(1)?;
            let part = self.picked(&at[0].0.add(dx)?, &at[1].0.add(dy)?)?.mul(&weight)?;
            sum = Some(match sum {
                Some(sum) => sum.add(&part)?,
                None => part,
            });
        }
        Ok(sum.expect("invariant: there are four corners"))
    }

    /// The elements at whole places `[n, rows, columns]`; zeros outside.
    #[track_caller]
    fn picked(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        let &[n, channels, height, width] = self.shape().dims() else {
            unreachable!("invariant: the caller has checked the shape")
        };
        let (rows, columns) = (x.shape()[1], x.shape()[2]);
        let inside = |at: &Tensor, n: usize| at.ge(0.0)?.logical_and(at.lt(n as f64)?);
        let inside = inside(x, width)?.logical_and(inside(y, height)?)?;
        let at = y.cast(DType::I64).mul(width as i64)?.add(x.cast(DType::I64))?;
        let at = inside.where_(&at, at.ones_like().neg())?;
        let at = at.reshape([n, 1, rows * columns])?.expand([n, channels, rows * columns])?;
        let flat = self.reshape([n, channels, height * width])?;
        flat.gather_unchecked(2, &at).reshape([n, channels, rows, columns])
    }
}

/// The weights of the four elements around a place `t` behind the second.
#[track_caller]
fn cubic_weights(t: &Tensor) -> Result<[Tensor; 4]> {
    const A: f64 = -0.75;
    // Up to distance 1: ((a + 2) d - (a + 3)) d^2 + 1.
    let near = |d: &Tensor| d.mul(A + 2.0)?.sub(A + 3.0)?.mul(d)?.mul(d)?.add(1.0);
    // From 1 to 2: ((a d - 5 a) d + 8 a) d - 4 a.
    let far = |d: &Tensor| d.mul(A)?.sub(5.0 * A)?.mul(d)?.add(8.0 * A)?.mul(d)?.sub(4.0 * A);
    let rest = t.neg().add(1.0)?;
    Ok([far(&t.add(1.0)?)?, near(t)?, near(&rest)?, far(&rest.add(1.0)?)?])
}
