//! Methods that rearrange elements without computing on them.

use super::axes::{normalize, place};
use super::{Expr, History, SliceRange, Tensor};
use crate::error::{Named, Result};
use crate::graph::{Op, Perm};
use crate::origin::composed;
use crate::runtime::Device;
use crate::scalar::Scalar;
use crate::shape::Shape;
use smallvec::SmallVec;
use std::sync::Arc;

impl Tensor {
    #[track_caller]
    pub(crate) fn reshape_unchecked(&self, shape: Shape) -> Tensor {
        debug_assert!(shape.numel() == self.numel() || !self.shape().is_possible());
        if shape.same(self.shape()) {
            return self.clone();
        }
        Tensor::pending(Op::Reshape, [self], shape, self.dtype())
    }

    /// Broadcast to `shape`, which is known to be compatible.
    #[track_caller]
    pub(crate) fn broadcast_unchecked(&self, shape: &Shape) -> Tensor {
        if self.shape().same(shape) {
            return self.clone();
        }
        let missing = shape.rank() - self.rank();
        let mut x = self.clone();
        if missing > 0 {
            let dims = std::iter::repeat_n(1, missing).chain(self.shape().iter().copied());
            x = self.reshape_unchecked(dims.collect());
            if x.shape().same(shape) {
                return x;
            }
        }
        Tensor::pending(Op::Expand, [&x], shape.clone(), self.dtype())
    }

    /// The same elements, in row-major order, with another shape.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::iota(6, DType::I32, &device).reshape([2, 3])?;
    /// assert_eq!(x.shape().dims(), [2, 3]);
    /// assert!(x.reshape([7, 1]).is_err());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the number of elements differs.
    #[track_caller]
    pub fn reshape(&self, shape: impl Into<Shape>) -> Result<Tensor> {
        self.reshape_to(shape.into())
    }

    /// Compiled once, not for each kind of argument.
    #[track_caller]
    #[inline(never)]
    fn reshape_to(&self, shape: Shape) -> Result<Tensor> {
        if shape.checked_numel() != Some(self.numel()) || !shape.is_possible() {
            let reason = format!("{} elements cannot take the shape {shape}", self.numel());
            return Err(Tensor::shape_error("reshape", &[self], reason));
        }
        Ok(self.reshape_unchecked(shape))
    }

    /// All elements along one axis.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(x.flatten().shape().dims(), [4]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn flatten(&self) -> Tensor {
        self.reshape_unchecked(Shape::from([self.numel()]))
    }

    /// The axes from `start` to `end` (inclusive) merged into one.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::zeros([2, 3, 4], DType::F32, &device);
    /// assert_eq!(x.flatten_axes(1, -1)?.shape().dims(), [2, 12]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range or `start` lies behind `end`.
    #[track_caller]
    pub fn flatten_axes(&self, start: isize, end: isize) -> Result<Tensor> {
        let (start, end) = (self.axis("flatten_axes", start)?, self.axis("flatten_axes", end)?);
        if start > end {
            let reason = format!("axis {start} lies behind axis {end}");
            return Err(Tensor::shape_error("flatten_axes", &[self], reason));
        }
        let dims = self.shape();
        let merged = dims[start..=end].iter().fold(1, |n: usize, &d| n.saturating_mul(d));
        let shape =
            dims[..start].iter().copied().chain([merged]).chain(dims[end + 1..].iter().copied());
        Ok(self.reshape_unchecked(shape.collect()))
    }

    /// The axes in another order: axis `i` of the result is axis `axes[i]` of this.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::zeros([2, 3, 4], DType::F32, &device);
    /// assert_eq!(x.permute([2, 0, 1])?.shape().dims(), [4, 2, 3]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `axes` is not a permutation of all axes.
    #[track_caller]
    pub fn permute(&self, axes: impl AsRef<[isize]>) -> Result<Tensor> {
        self.permute_by(axes.as_ref())
    }

    /// Compiled once, not for each kind of argument.
    #[track_caller]
    #[inline(never)]
    fn permute_by(&self, axes: &[isize]) -> Result<Tensor> {
        let order: Result<Vec<usize>, String> =
            axes.iter().map(|&axis| normalize(axis, self.rank())).collect();
        let complete = |order: &Vec<usize>| {
            order.len() == self.rank() && (0..self.rank()).all(|axis| order.contains(&axis))
        };
        match order {
            Ok(order) if complete(&order) => Ok(self.permute_unchecked(&order)),
            Ok(_) => {
                let reason = format!("{axes:?} is not a permutation of {} axes", self.rank());
                Err(Tensor::shape_error("permute", &[self], reason))
            }
            Err(reason) => Err(Tensor::shape_error("permute", &[self], reason)),
        }
    }

    #[track_caller]
    pub(crate) fn permute_unchecked(&self, order: &[usize]) -> Tensor {
        if order.iter().enumerate().all(|(i, &axis)| i == axis) {
            return self.clone();
        }
        let shape: Shape = order.iter().map(|&axis| self.shape()[axis]).collect();
        if shape.rank() > Shape::MAX_RANK {
            // Never computed, and an order of so many axes has no representation.
            return self.reshape_unchecked(shape);
        }
        Tensor::pending(Op::Permute(Perm::new(order)), [self], shape, self.dtype())
    }

    /// Two axes exchanged.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(x.transpose(0, 1)?.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range.
    #[track_caller]
    pub fn transpose(&self, a: isize, b: isize) -> Result<Tensor> {
        let (a, b) = (self.axis("transpose", a)?, self.axis("transpose", b)?);
        let mut order: Vec<usize> = (0..self.rank()).collect();
        order.swap(a, b);
        Ok(self.permute_unchecked(&order))
    }

    /// The last two axes exchanged; all axes reversed below rank 2 (so: unchanged).
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::zeros([5, 2, 3], DType::F32, &device);
    /// assert_eq!(x.t().shape().dims(), [5, 3, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn t(&self) -> Tensor {
        let rank = self.rank();
        let mut order: SmallVec<[usize; 8]> = (0..rank).collect();
        if rank >= 2 {
            order.swap(rank - 1, rank - 2);
        }
        self.permute_unchecked(&order)
    }

    /// Axes of extent 1 repeated to `shape`; missing leading axes are added.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32], [2.0]], &device)?;
    /// assert_eq!(x.expand([2, 2])?.to_vec::<f32>()?, [1.0, 1.0, 2.0, 2.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shape cannot be reached.
    #[track_caller]
    pub fn expand(&self, shape: impl Into<Shape>) -> Result<Tensor> {
        self.expand_to(shape.into())
    }

    /// Compiled once, not for each kind of argument.
    #[track_caller]
    #[inline(never)]
    fn expand_to(&self, shape: Shape) -> Result<Tensor> {
        let fits = self.shape().broadcast(&shape).is_some_and(|common| common.same(&shape));
        if !fits || !shape.is_possible() {
            let reason = format!("cannot be expanded to {shape}");
            return Err(Tensor::shape_error("expand", &[self], reason));
        }
        Ok(self.broadcast_unchecked(&shape))
    }

    /// A new axis of extent 1 before `axis`; -1 adds it at the end.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(x.unsqueeze(0)?.shape().dims(), [1, 3]);
    /// assert_eq!(x.unsqueeze(-1)?.shape().dims(), [3, 1]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis is out of range.
    #[track_caller]
    pub fn unsqueeze(&self, axis: isize) -> Result<Tensor> {
        let axis = match normalize(axis, self.rank() + 1) {
            Ok(axis) => axis,
            Err(reason) => return Err(Tensor::shape_error("unsqueeze", &[self], reason)),
        };
        let (before, after) = self.shape().split_at(axis);
        let dims: Shape = before.iter().chain(&[1]).chain(after).copied().collect();
        self.reshape(dims).named("unsqueeze")
    }

    /// An axis of extent 1 removed.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::zeros([3, 1], DType::F32, &device);
    /// assert_eq!(x.squeeze(1)?.shape().dims(), [3]);
    /// assert!(x.squeeze(0).is_err());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When its extent is not 1.
    #[track_caller]
    pub fn squeeze(&self, axis: isize) -> Result<Tensor> {
        let axis = self.axis("squeeze", axis)?;
        if self.shape()[axis] != 1 {
            let reason = format!("axis {axis} has extent {}, not 1", self.shape()[axis]);
            return Err(Tensor::shape_error("squeeze", &[self], reason));
        }
        let mut dims = self.shape().to_vec();
        dims.remove(axis);
        Ok(self.reshape_unchecked(dims.into()))
    }

    /// Zeros added before and after each axis.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 2.0], &device)?;
    /// assert_eq!(x.pad([(1, 2)])?.to_vec::<f32>()?, [0.0, 1.0, 2.0, 0.0, 0.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is not one pair per axis.
    #[track_caller]
    pub fn pad(&self, padding: impl AsRef<[(usize, usize)]>) -> Result<Tensor> {
        self.pad_by(padding.as_ref())
    }

    /// Compiled once, not for each kind of argument.
    #[track_caller]
    #[inline(never)]
    fn pad_by(&self, padding: &[(usize, usize)]) -> Result<Tensor> {
        let shape: Option<Vec<usize>> = self
            .shape()
            .iter()
            .zip(padding)
            .map(|(&d, &(before, after))| d.checked_add(before)?.checked_add(after))
            .collect();
        let shape = shape.map(Shape::from).filter(Shape::is_possible);
        let (true, Some(shape)) = (padding.len() == self.rank(), shape) else {
            let reason = format!("padding {padding:?} does not fit {} axes", self.rank());
            return Err(Tensor::shape_error("pad", &[self], reason));
        };
        Ok(self.pad_unchecked(padding, shape))
    }

    #[track_caller]
    pub(super) fn pad_unchecked(&self, padding: &[(usize, usize)], shape: Shape) -> Tensor {
        if padding.iter().all(|&p| p == (0, 0)) {
            return self.clone();
        }
        Tensor::pending(Op::Pad(Arc::new(padding.to_vec())), [self], shape, self.dtype())
    }

    /// Elements of value `value` added before and after each axis.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 2.0], &device)?;
    /// assert_eq!(x.pad_with([(1, 0)], -1.0)?.to_vec::<f32>()?, [-1.0, 1.0, 2.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is not one pair per axis.
    #[track_caller]
    pub fn pad_with(&self, padding: impl AsRef<[(usize, usize)]>, value: f64) -> Result<Tensor> {
        self.pad_by_with(padding.as_ref(), value)
    }

    /// Compiled once, not for each kind of argument.
    #[track_caller]
    #[inline(never)]
    fn pad_by_with(&self, padding: &[(usize, usize)], value: f64) -> Result<Tensor> {
        let padded = self.pad_by(padding).named("pad_with")?;
        if value == 0.0 && value.is_sign_positive() {
            return Ok(padded);
        }
        let inside = self.constant(Scalar::from(true)).pad_by(padding)?;
        Ok(inside.select(&padded, &padded.like(value)))
    }

    /// The block from `ranges[i].0` up to `ranges[i].1` along each axis.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(x.shrink([(1, 2), (0, 2)])?.to_vec::<f32>()?, [3.0, 4.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is not one range per axis, or a range is reversed or out of bounds.
    #[track_caller]
    pub fn shrink(&self, ranges: impl AsRef<[(usize, usize)]>) -> Result<Tensor> {
        let ranges = ranges.as_ref();
        let fits = ranges.len() == self.rank()
            && ranges.iter().zip(self.shape().iter()).all(|(&(a, b), &d)| a <= b && b <= d);
        if !fits {
            let reason = format!("ranges {ranges:?} do not lie inside");
            return Err(Tensor::shape_error("shrink", &[self], reason));
        }
        Ok(self.shrink_unchecked(ranges))
    }

    #[track_caller]
    pub(crate) fn shrink_unchecked(&self, ranges: &[(usize, usize)]) -> Tensor {
        let shape: Shape = ranges.iter().map(|&(a, b)| b - a).collect();
        if shape.same(self.shape()) {
            return self.clone();
        }
        let starts = Arc::new(ranges.iter().map(|r| r.0).collect());
        Tensor::pending(Op::Shrink(starts), [self], shape, self.dtype())
    }

    /// The elements of one axis within a range, as `x.slice(1, 2..5)` or `x.slice(1, -3..)`: negative positions count
    /// from the end of the axis.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(x.slice(0, 1..)?.to_vec::<f32>()?, [-2.0, 3.0]);
    /// assert_eq!(x.slice(0, -2..)?.to_vec::<f32>()?, [-2.0, 3.0]);
    /// assert_eq!(x.slice(0, ..-1)?.to_vec::<f32>()?, [1.0, -2.0]);
    /// assert!(x.slice(0, 2..5).is_err());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis or the range is out of bounds.
    #[track_caller]
    pub fn slice(&self, axis: isize, range: impl SliceRange) -> Result<Tensor> {
        let axis = self.axis("slice", axis)?;
        self.slice_of(axis, range.within(self.shape()[axis]))
    }

    /// Compiled once, not for each kind of argument.
    #[track_caller]
    #[inline(never)]
    fn slice_of(&self, axis: usize, range: Result<(usize, usize), String>) -> Result<Tensor> {
        let (start, end) = match range {
            Ok(range) => range,
            Err(reason) => {
                let reason = format!("axis {axis}: {reason}");
                return Err(Tensor::shape_error("slice", &[self], reason));
            }
        };
        let mut ranges: Vec<_> = self.shape().iter().map(|&d| (0, d)).collect();
        ranges[axis] = (start, end);
        Ok(self.shrink_unchecked(&ranges))
    }

    /// Every `step`-th element of one axis, from `start` on.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::iota(7, DType::I32, &device);
    /// assert_eq!(x.stride(0, 1, 3)?.to_vec::<i32>()?, [1, 4]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis is out of range, `step` is 0 or `start` lies outside.
    #[track_caller]
    pub fn stride(&self, axis: isize, start: usize, step: usize) -> Result<Tensor> {
        let _here = composed();
        let axis = self.axis("stride", axis)?;
        let extent = self.shape()[axis];
        if step == 0 || start > extent {
            let reason = format!("start {start}, step {step} do not fit extent {extent}");
            return Err(Tensor::shape_error("stride", &[self], reason));
        }
        let x = self.slice(axis as isize, start..)?;
        if step == 1 {
            return Ok(x);
        }
        // Pad to a multiple of the step, split the axis in two and keep the first of each.
        let n = (extent - start).div_ceil(step);
        let mut padding = vec![(0, 0); self.rank()];
        let Some(whole) = n.checked_mul(step) else {
            let reason = format!("{n} steps of {step} are too many");
            return Err(Tensor::shape_error("stride", &[self], reason));
        };
        padding[axis].1 = whole - (extent - start);
        let mut dims = x.shape().to_vec();
        dims[axis] = n;
        let result = Shape::from(dims.clone());
        dims.insert(axis + 1, step);
        let split = x.pad(padding).and_then(|x| x.reshape(dims));
        let split = split.named("stride")?;
        split.slice(axis as isize + 1, 0..1)?.reshape(result)
    }

    /// One position of an axis; the axis disappears.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(x.select_index(1, -1)?.to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis or position is out of range; a negative position counts from the end.
    #[track_caller]
    pub fn select_index(&self, axis: isize, position: isize) -> Result<Tensor> {
        let axis = self.axis("select_index", axis)?;
        let position = match place(position, self.shape()[axis]) {
            Ok(position) => position,
            Err(reason) => return Err(Tensor::shape_error("select_index", &[self], reason)),
        };
        self.slice(axis as isize, position..position + 1)?.squeeze(axis as isize)
    }

    /// The order of elements along the axes reversed.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(x.flip(1)?.to_vec::<f32>()?, [2.0, 1.0, 4.0, 3.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range or repeated.
    #[track_caller]
    pub fn flip(&self, axes: impl super::Axes) -> Result<Tensor> {
        Ok(self.flip_of(self.axes("flip", axes)?))
    }

    /// Compiled once, not for each kind of argument.
    #[track_caller]
    #[inline(never)]
    fn flip_of(&self, axes: u16) -> Tensor {
        if axes == 0 {
            return self.clone();
        }
        Tensor::pending(Op::Flip { axes }, [self], self.shape().clone(), self.dtype())
    }

    /// The same values on another device. Like every operation it is lazy: the values move when the
    /// result, or what is computed from it, is asked for, and once however often that is. Gradients
    /// flow back to the device they belong to.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?.tracked();
    /// let other = zyx::Runtime::default().device("reference")?;
    /// let y = x.to_device(&other)?;
    /// assert!(!y.is_realized() && x.add(&y).is_err());
    /// let loss = y.square().sum(..)?;
    /// let dx = loss.grad(&[&x])?.remove(0).expect("the loss depends on x");
    /// assert_eq!((dx.device(), dx.to_vec::<f32>()?), (&device, vec![2.0, -4.0, 6.0]));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the other device does not store this dtype.
    #[track_caller]
    pub fn to_device(&self, device: &Device) -> Result<Tensor> {
        if device == self.device() {
            return Ok(self.clone());
        }
        if !device.caps().storage.contains(self.dtype()) {
            let reason = format!("{device} does not store {}; cast it first", self.dtype());
            return Err(Tensor::dtype_error("to_device", &[self], reason));
        }
        if let Some(there) = self.constant_on(device, 4) {
            // Nothing is moved, yet it counts as computed from this tensor.
            return there.with_gradient(&[self], |inputs, _, dy| {
                Ok(vec![Some(dy.to_device(inputs[0].device())?)])
            });
        }
        let expr = Expr { op: Op::Copy, srcs: [Some(self.clone()), None, None] };
        let (shape, dtype) = (self.shape().clone(), self.dtype());
        Ok(Tensor::node(expr, shape, dtype, device.clone(), self.is_tracked()))
    }

    /// This tensor made anew on a device, if it consists of constants alone and that shows within
    /// so many nodes.
    #[track_caller]
    fn constant_on(&self, device: &Device, nodes: usize) -> Option<Tensor> {
        let (op, source) = match &*self.history() {
            History::Expr(Expr { op, srcs }) => (op.clone(), srcs[0].clone()),
            _ => return None,
        };
        let shape = self.shape().clone();
        match (op, source) {
            (op @ (Op::Const { .. } | Op::Iota), _) => {
                Some(Tensor::source(op, shape, self.dtype(), device))
            }
            (Op::Alias(_) | Op::Within(_), Some(value)) if nodes > 0 => {
                value.constant_on(device, nodes - 1)
            }
            (op @ Op::Cast { bits: false }, Some(source)) if nodes > 0 => {
                let source = source.constant_on(device, nodes - 1)?;
                Some(Tensor::pending(op, [&source], shape, self.dtype()))
            }
            _ => None,
        }
    }

    /// The tensor stored as it is: a point at which fusion stops.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// let y = x.t().contiguous();
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn contiguous(&self) -> Tensor {
        // A scan or a sort is stored in any case.
        let stored = self.history().expr().is_some_and(|expr| {
            matches!(
                expr.op,
                Op::Copy
                    | Op::Scan { scaled: false, .. }
                    | Op::RadixScatter
                    | Op::SortRows { .. }
                    | Op::Kernel(_)
            )
        });
        if stored || self.is_realized() {
            return self.clone();
        }
        Tensor::pending(Op::Copy, [self], self.shape().clone(), self.dtype())
    }
}
