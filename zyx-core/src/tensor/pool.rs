//! Pooling: windows over the last one to three axes, each reduced to one element.
//!
//! Gradients follow from those of the reduction: a mean spreads evenly; that of a maximum goes to the first of the
//! largest elements of a window, as in PyTorch. Where windows tile the input (stride equal to the kernel, no
//! padding, the common case) they are a plain reshape.

use super::Tensor;
use super::axes::holds;
use super::convolution::Window;
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::ops::BinaryOp;
use crate::origin::composed;
use crate::runtime::Device;
use crate::scalar::Scalar;
use crate::shape::Shape;

/// Most pieces of an axis whose means are a product with a matrix, which takes a multiply-add an element for each of them.
/// From operation counts; not measured.
const MAX_WEIGHED: usize = 32;

/// The windows of a pooling over the last `N` axes, an entry for each.
///
/// ```
/// use zyx::Pool;
/// assert_eq!(Pool::new([2, 2]).stride, [2, 2]);
/// let overlapping = Pool { stride: [1, 1], ..Pool::new([3, 3]) };
/// assert_eq!(overlapping.kernel, [3, 3]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pool<const N: usize> {
    /// Extents of a window.
    pub kernel: [usize; N],
    /// Distance between windows.
    pub stride: [usize; N],
    /// Elements added on both sides, at most half a window.
    pub padding: [usize; N],
    /// Distance between elements of a window.
    pub dilation: [usize; N],
    /// Whether windows may reach beyond the end, as long as they begin inside; false.
    pub ceil_mode: bool,
    /// Whether padded zeros count in means; true.
    pub count_include_pad: bool,
}

/// The windows of a pooling over rows and columns.
pub type Pool2d = Pool<2>;

/// Where the windows of a pooling lie.
struct Places<const N: usize> {
    /// Elements before and after each of all axes.
    padding: Vec<(usize, usize)>,
    /// Those of `padding` that are beyond the declared padding, at the end of each pooled axis.
    beyond: [usize; N],
}

impl<const N: usize> Pool<N> {
    /// Windows that tile the input: stride equal to the kernel, no padding, no dilation.
    ///
    /// ```
    /// # use zyx::Pool;
    /// assert_eq!(Pool::new([3, 2]).stride, [3, 2]);
    /// ```
    pub fn new(kernel: [usize; N]) -> Pool<N> {
        Pool {
            kernel,
            stride: kernel,
            padding: [0; N],
            dilation: [1; N],
            ceil_mode: false,
            count_include_pad: true,
        }
    }

    fn window(&self, i: usize) -> Window {
        Window { kernel: self.kernel[i], stride: self.stride[i], dilation: self.dilation[i] }
    }

    /// Elements to add beyond an axis of `extent` and its padding, so that the last window that
    /// begins inside, before the padding at the end, is whole.
    fn beyond(&self, i: usize, extent: usize) -> Result<usize, String> {
        let padded = self.padding[i].checked_mul(2).and_then(|p| p.checked_add(extent));
        let padded = padded.ok_or_else(|| format!("padding {} is too large", self.padding[i]))?;
        let window = self.window(i);
        if !self.ceil_mode {
            return window.positions(padded).map(|_| 0);
        }
        // Refuses what no extent would fit.
        window.positions(usize::MAX)?;
        let reach = (self.kernel[i] - 1) * self.dilation[i] + 1;
        // Where the window begins that has the last element: behind what whole windows leave over.
        let last = match padded.checked_sub(reach) {
            Some(room) => room.div_ceil(self.stride[i]).saturating_mul(self.stride[i]),
            // Only a window that less than a stride is missing of counts.
            None if reach - padded < self.stride[i] => 0,
            None => return window.positions(padded).map(|_| 0),
        };
        let begins_inside = last < extent.saturating_add(self.padding[i]);
        let end = last.checked_add(reach).filter(|_| begins_inside);
        Ok(end.map_or(0, |end| end.saturating_sub(padded)))
    }

    fn places(&self, op: &'static str, x: &Tensor) -> Result<Places<N>> {
        Tensor::check_operands(op, &[x])?;
        let fail = |reason: String| Tensor::shape_error(op, &[x], reason);
        let Some(first) = x.rank().checked_sub(N) else {
            return Err(fail(format!("needs at least {N} axes")));
        };
        let mut padding = vec![(0, 0); x.rank()];
        let mut beyond = [0; N];
        for i in 0..N {
            let reach = (self.kernel[i].max(1) - 1).saturating_mul(self.dilation[i]);
            if self.padding[i] > reach.saturating_add(1) / 2 {
                return Err(fail(format!(
                    "padding {} is more than half a window",
                    self.padding[i]
                )));
            }
            beyond[i] = self.beyond(i, x.shape()[first + i]).map_err(fail)?;
            padding[first + i] = (self.padding[i], self.padding[i].saturating_add(beyond[i]));
        }
        Ok(Places { padding, beyond })
    }
}

impl Tensor {
    /// The windows over the last `N` axes: axes `[.., kernel, positions, kernel, positions ..]`.
    #[track_caller]
    fn pool_windows<const N: usize>(
        &self,
        op: &'static str,
        pool: &Pool<N>,
        outside: f64,
    ) -> Result<Tensor> {
        let places = pool.places(op, self)?;
        let padded = self.pad_with(places.padding, outside)?;
        padded.every_window(op, pool)
    }

    #[track_caller]
    fn every_window<const N: usize>(&self, op: &'static str, pool: &Pool<N>) -> Result<Tensor> {
        let _here = composed();
        let first = self.rank() - N;
        let last_first = (0..N).rev();
        last_first
            .into_iter()
            .try_fold(self.clone(), |x, i| x.windows(op, first + i, pool.window(i)))
    }

    /// Combines over the window axes of [`Tensor::pool_windows`] of `n` axes.
    #[track_caller]
    fn reduce_windows(&self, op: BinaryOp, n: usize) -> Tensor {
        let mask = self.window_axes(n);
        self.reduce(op, mask).without(mask)
    }

    /// The largest element along the axes of a mask, which stay with extent 1. The gradient goes to the first of equal
    /// ones, as in PyTorch: where [`Tensor::max_pool2d_with_indices`] says that it is.
    #[track_caller]
    fn first_largest(&self, mask: u16) -> Result<Tensor> {
        let best = self.reduce(BinaryOp::Max, mask);
        if !self.dtype().is_float() {
            return Ok(best);
        }
        best.with_gradient(&[self], move |inputs, _, dy| {
            let x = &inputs[0];
            let dims: Vec<usize> = (0..x.rank())
                .map(|axis| if holds(mask, axis) { x.shape()[axis] } else { 1 })
                .collect();
            let n = dims.iter().product();
            let place = Tensor::positions(n, x.device()).reshape_unchecked(dims.into());
            let place = place.broadcast_unchecked(x.shape());
            let none = place.constant(Scalar::from_i64(place.dtype(), n as i64));
            let first = x.largest_of(mask).select(&place, &none).reduce(BinaryOp::Min, mask);
            let chosen = place.combine(BinaryOp::Eq, &first.broadcast_unchecked(x.shape()));
            let dy = dy.broadcast_unchecked(x.shape());
            Ok(vec![Some(chosen.select(&dy, &dy.like(0.0)))])
        })
    }

    /// Which elements are the largest along the axes of a mask: a NaN is, if there is one.
    #[track_caller]
    fn largest_of(&self, mask: u16) -> Tensor {
        let best = self.reduce(BinaryOp::Max, mask).broadcast_unchecked(self.shape());
        let hit = self.combine(BinaryOp::Eq, &best);
        if self.dtype().is_float() { hit.combine(BinaryOp::Or, &self.is_nan()) } else { hit }
    }

    fn window_axes(&self, n: usize) -> u16 {
        (1..=n).fold(0, |mask, i| mask | 1 << (self.rank() - 2 * i))
    }

    #[track_caller]
    pub(super) fn max_pool<const N: usize>(
        &self,
        op: &'static str,
        pool: Pool<N>,
    ) -> Result<Tensor> {
        let lowest = Scalar::lowest(self.dtype()).to_f64();
        let windows = self.pool_windows(op, &pool, lowest)?;
        let mask = windows.window_axes(N);
        Ok(windows.first_largest(mask)?.without(mask))
    }

    /// The largest elements of windows, and where they are: positions in the last `N` axes laid
    /// out row-major, of the first largest.
    #[track_caller]
    pub(super) fn max_pool_with_indices<const N: usize>(
        &self,
        op: &'static str,
        pool: Pool<N>,
    ) -> Result<(Tensor, Tensor)> {
        let lowest = Scalar::lowest(self.dtype()).to_f64();
        let windows = self.pool_windows(op, &pool, lowest)?;
        let mask = windows.window_axes(N);
        let best = windows.first_largest(mask)?;
        let hit = windows.largest_of(mask);
        let image = Shape::from(&self.shape()[self.rank() - N..]);
        let n = image.numel();
        let places = Tensor::positions(n, self.device()).reshape_unchecked(image);
        // What is padded has a position behind all others, so it is chosen last.
        let places = places.pool_windows(op, &pool, n as f64)?;
        let none = places.constant(Scalar::from_i64(places.dtype(), n as i64));
        let first = hit.where_(&places, &none)?.reduce(BinaryOp::Min, mask);
        Ok((best.without(mask), first.without(mask).cast(DType::I64).known_below(n)))
    }

    #[track_caller]
    pub(super) fn avg_pool<const N: usize>(
        &self,
        op: &'static str,
        pool: Pool<N>,
    ) -> Result<Tensor> {
        let x = self.floating();
        let wide = x.wide();
        let places = pool.places(op, &wide)?;
        let padded = wide.pad(&places.padding)?;
        let sum = padded.every_window(op, &pool)?.reduce_windows(BinaryOp::Add, N);
        if pool.count_include_pad && places.beyond == [0; N] {
            let size: f64 = pool.kernel.iter().map(|&k| k as f64).product();
            return Ok(sum.combine(BinaryOp::Mul, &sum.like(1.0 / size)).cast(x.dtype()));
        }
        // How many elements a window has that count: a sum over ones.
        let first = self.rank() - N;
        let mut margins = places.padding[first..].to_vec();
        let mut counted = self.shape()[first..].to_vec();
        if pool.count_include_pad {
            for i in 0..N {
                counted[i] += 2 * pool.padding[i];
                margins[i] = (0, places.beyond[i]);
            }
        }
        let ones = Tensor::ones(counted, wide.dtype(), self.device()).pad(margins)?;
        let count = ones.every_window(op, &pool)?.reduce_windows(BinaryOp::Add, N);
        Ok(sum.div(&count)?.cast(x.dtype()))
    }

    #[track_caller]
    pub(super) fn lp_pool<const N: usize>(
        &self,
        op: &'static str,
        p: f64,
        pool: Pool<N>,
    ) -> Result<Tensor> {
        if p.is_nan() || p <= 0.0 {
            return Err(Tensor::argument_error(op, format!("p is {p}, it must be positive")));
        }
        let x = self.floating();
        let powers = x.wide().pool_windows(op, &pool, 0.0)?.pow(p)?;
        let sum = powers.reduce_windows(BinaryOp::Add, N);
        if p == 2.0 {
            return Ok(sum.root().cast(x.dtype()));
        }
        // A root has no slope at 0; the gradient there is 0.
        let flat = sum.eq(0.0)?;
        let root = flat.where_(sum.like(1.0), &sum)?.pow(1.0 / p)?;
        Ok(flat.where_(sum.like(0.0), &root)?.cast(x.dtype()))
    }

    /// The largest element of each window over the last two axes; NaN if it has one. What is
    /// padded never wins.
    ///
    /// ```
    /// # use zyx::{Pool2d, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0, 5.0, 6.0], [3.0, 4.0, 7.0, 8.0]], &device)?;
    /// assert_eq!(x.max_pool2d(Pool2d::new([2, 2]))?.to_vec::<f32>()?, [4.0, 8.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Below rank 2, when a window does not fit, when kernel, stride or dilation has a 0, or when
    /// the padding is more than half a window.
    #[track_caller]
    pub fn max_pool2d(&self, pool: Pool<2>) -> Result<Tensor> {
        self.max_pool("max_pool2d", pool).named("max_pool2d")
    }

    /// The mean of each window over the last two axes; padded zeros count, unless
    /// [`Pool::count_include_pad`] says otherwise. Integers give `f32`.
    ///
    /// ```
    /// # use zyx::{Pool2d, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(x.avg_pool2d(Pool2d::new([2, 2]))?.to_vec::<f32>()?, [2.5]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::max_pool2d`].
    #[track_caller]
    pub fn avg_pool2d(&self, pool: Pool<2>) -> Result<Tensor> {
        self.avg_pool("avg_pool2d", pool).named("avg_pool2d")
    }

    /// The mean of each window over the last two axes, without counting what is padded.
    ///
    /// ```
    /// # use zyx::{Pool2d, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[4f32]], &device)?;
    /// let pool = Pool2d { padding: [1, 1], ..Pool2d::new([2, 2]) };
    /// assert_eq!(x.avg_pool2d_inside(pool)?.to_vec::<f32>()?, [4.0]);
    /// assert_eq!(x.avg_pool2d(pool)?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::max_pool2d`].
    #[track_caller]
    pub fn avg_pool2d_inside(&self, pool: Pool<2>) -> Result<Tensor> {
        const OP: &str = "avg_pool2d_inside";
        self.avg_pool(OP, Pool { count_include_pad: false, ..pool }).named(OP)
    }

    /// The mean over the last two axes, which go.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(x.global_avg_pool2d()?.item::<f32>()?, 2.5);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Below rank 2.
    #[track_caller]
    pub fn global_avg_pool2d(&self) -> Result<Tensor> {
        if self.rank() < 2 {
            let reason = "needs at least two axes".to_owned();
            return Err(Tensor::shape_error("global_avg_pool2d", &[self], reason));
        }
        self.mean([-2, -1]).named("global_avg_pool2d")
    }

    /// Means over the last two axes, which become `output`: along an axis of extent `n` made `m`,
    /// element `i` is the mean of `floor(i n / m) .. ceil((i + 1) n / m)`, as in PyTorch.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0, 3.0]], &device)?;
    /// assert_eq!(x.adaptive_avg_pool2d([1, 2])?.to_vec::<f32>()?, [1.5, 2.5]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Below rank 2, or when an extent or `output` is 0.
    #[track_caller]
    pub fn adaptive_avg_pool2d(&self, output: [usize; 2]) -> Result<Tensor> {
        self.adaptive_avg("adaptive_avg_pool2d", output).named("adaptive_avg_pool2d")
    }

    /// The last `N` extents, if pieces of them can be reduced to `output`.
    fn adaptive_extents<const N: usize>(
        &self,
        op: &'static str,
        output: [usize; N],
    ) -> Result<[usize; N]> {
        let fail = |reason: String| Tensor::shape_error(op, &[self], reason);
        Tensor::check_operands(op, &[self])?;
        let Some(&extents) = self.shape().last_chunk::<N>() else {
            return Err(fail(format!("needs at least {N} axes")));
        };
        if output.contains(&0) || extents.contains(&0) {
            let reason = format!("there is nothing to take from nothing for {output:?}");
            return Err(fail(reason));
        }
        let lead = &self.shape()[..self.rank() - N];
        // Pieces are at most two elements longer than their number says.
        let most = extents.iter().zip(output).map(|(&n, m)| n.max(m).saturating_mul(3));
        if !lead.iter().copied().chain(most).collect::<Shape>().is_possible() {
            return Err(fail(format!("an output of {output:?} has too many elements")));
        }
        Ok(extents)
    }

    #[track_caller]
    pub(super) fn adaptive_avg<const N: usize>(
        &self,
        op: &'static str,
        output: [usize; N],
    ) -> Result<Tensor> {
        let extents = self.adaptive_extents(op, output)?;
        if extents.iter().zip(output).all(|(&n, m)| n.is_multiple_of(m)) {
            let mut tile = extents;
            tile.iter_mut().zip(output).for_each(|(n, m)| *n /= m);
            return self.avg_pool(op, Pool::new(tile));
        }
        let x = self.floating();
        let mut y = x.wide();
        // One axis after the other: means of means over a grid are means.
        for (i, m) in output.into_iter().enumerate() {
            let (axis, n) = (self.rank() - N + i, extents[i]);
            if m <= MAX_WEIGHED {
                let axis = axis as isize;
                let weights = y.averaging(n, m)?;
                y = y.transpose(axis, -1)?.matmul(&weights)?.transpose(axis, -1)?;
            } else {
                let [start, end, _] = pieces(n, m, self.device())?;
                y = y.sum_pieces(axis, m)?;
                y = y.div(y.along(axis, &end.sub(&start)?.cast(y.dtype())))?;
            }
        }
        Ok(y.cast(x.dtype()))
    }

    #[track_caller]
    pub(super) fn adaptive_max<const N: usize>(
        &self,
        op: &'static str,
        output: [usize; N],
    ) -> Result<Tensor> {
        let extents = self.adaptive_extents(op, output)?;
        if extents.iter().zip(output).all(|(&n, m)| n.is_multiple_of(m)) {
            let mut tile = extents;
            tile.iter_mut().zip(output).for_each(|(n, m)| *n /= m);
            return self.max_pool(op, Pool::new(tile));
        }
        let mut y = self.clone();
        // From the last axis, so that the first of equal elements is that in row-major order.
        for i in (0..N).rev() {
            y = y.max_pieces(self.rank() - N + i, output[i])?;
        }
        Ok(y)
    }

    /// The elements of each of `m` pieces of an axis, as two axes; `fill` behind the last one of a piece.
    #[track_caller]
    fn of_pieces(&self, axis: usize, m: usize, fill: Scalar) -> Result<Tensor> {
        let [_, end, place] = pieces(self.shape()[axis], m, self.device())?;
        let longest = place.shape()[1];
        let mut dims = self.shape().to_vec();
        dims.splice(axis..=axis, [m, longest]);
        let found =
            self.select_unchecked(axis, &place.reshape([m * longest])?).reshape(&dims[..])?;
        let mut inside = place.lt(&end.unsqueeze(-1)?)?;
        for _ in axis + 2..dims.len() {
            inside = inside.unsqueeze(-1)?;
        }
        let inside = inside.broadcast_to(found.shape())?;
        Ok(inside.select(&found, &found.constant(fill)))
    }

    /// The sums of `m` pieces of an axis. An element is in those pieces that an axis of `m` made as long as this one has
    /// there, so the gradient is a sum of pieces, too.
    #[track_caller]
    fn sum_pieces(&self, axis: usize, m: usize) -> Result<Tensor> {
        let mask = 1 << (axis + 1);
        let parts = self.of_pieces(axis, m, Scalar::from_f64(self.dtype(), 0.0))?;
        let sum = parts.reduce(BinaryOp::Add, mask).without(mask);
        sum.with_gradient(&[self], move |inputs, _, dy| {
            Ok(vec![Some(dy.sum_pieces(axis, inputs[0].shape()[axis])?)])
        })
    }

    /// The largest elements of `m` pieces of an axis; the gradient goes to the first of equal ones.
    #[track_caller]
    fn max_pieces(&self, axis: usize, m: usize) -> Result<Tensor> {
        let mask = 1 << (axis + 1);
        let lowest = Scalar::lowest(self.dtype());
        let best = self.of_pieces(axis, m, lowest)?.reduce(BinaryOp::Max, mask).without(mask);
        if !self.dtype().is_float() {
            return Ok(best);
        }
        best.with_gradient(&[self], move |inputs, _, dy| {
            let x = &inputs[0];
            let n = x.shape()[axis];
            let hit = x.of_pieces(axis, m, lowest)?.largest_of(mask);
            let own = x.along(axis, &Tensor::positions(n, x.device()));
            let none = Scalar::from_i64(own.dtype(), n as i64);
            let places = own.of_pieces(axis, m, none)?;
            let first = hit.select(&places, &places.constant(none)).reduce(BinaryOp::Min, mask);
            // Each element looks into the pieces that have it.
            let first = first.without(mask).of_pieces(axis, n, none)?;
            let own = own.unsqueeze(axis as isize + 1)?.broadcast_unchecked(first.shape());
            let dy = dy.of_pieces(axis, n, Scalar::from_f64(dy.dtype(), 0.0))?;
            let dx = first.combine(BinaryOp::Eq, &own).select(&dy, &dy.like(0.0));
            Ok(vec![Some(dx.reduce(BinaryOp::Add, mask).without(mask))])
        })
    }

    /// The `[n, m]` matrix whose column `i` takes the mean of the `i`-th of `m` pieces of `n`.
    #[track_caller]
    fn averaging(&self, n: usize, m: usize) -> Result<Tensor> {
        let [start, end, _] = pieces(n, m, self.device())?;
        let place = Tensor::iota(n, DType::I64, self.device()).unsqueeze(-1)?;
        let inside = place.ge(&start)?.bitwise_and(place.lt(&end)?)?;
        inside.cast(self.dtype()).div(end.sub(&start)?.cast(self.dtype()))
    }
}

/// Start and end of each of `m` pieces of `n` elements, `floor(i n / m) .. ceil((i + 1) n / m)`, and the places from each
/// start on, as many as the longest piece has.
#[track_caller]
fn pieces(n: usize, m: usize, device: &Device) -> Result<[Tensor; 3]> {
    // A piece begins a multiple of gcd(n, m) / m after an element.
    let longest = match n % m {
        0 => n / m,
        rest if m.is_multiple_of(rest) => n / m + 1,
        _ => n / m + 2,
    };
    let (extent, count) = (n as i64, m as i64);
    let start = Tensor::iota(m, DType::I64, device).mul(extent)?;
    let end = start.add(extent + count - 1)?.trunc_divide(count)?;
    let start = start.trunc_divide(count)?;
    let place = start.unsqueeze(-1)?.add(Tensor::iota(longest, DType::I64, device))?;
    Ok([start, end, place])
}
