//! Rearrangements beyond the graph's movement ops: rolling, rotating, tiling, windows, splitting
//! and joining in the ways NumPy and PyTorch name.
//!
//! All are views in the sense of the graph: index arithmetic in whatever kernel reads them, with
//! gradients that follow from the movement ops they are made of.

use super::Tensor;
use super::axes::normalize;
use super::convolution::Window;
use super::join::MAX_PIECES;
use crate::error::{Named, Result};
use crate::origin::composed;
use crate::shape::Shape;

impl Tensor {
    /// Elements moved by `shifts[i]` along `axes[i]`, those that leave one end entering at the
    /// other. Without axes, one shift moves the flattened elements.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1i32, 2, 3, 4], &device)?;
    /// assert_eq!(x.roll([1], [0])?.to_vec::<i32>()?, [4, 1, 2, 3]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there are not as many shifts as axes or an axis is out of range.
    #[track_caller]
    pub fn roll(&self, shifts: impl AsRef<[isize]>, axes: impl AsRef<[isize]>) -> Result<Tensor> {
        let (shifts, axes) = (shifts.as_ref(), axes.as_ref());
        if axes.is_empty() && shifts.len() == 1 {
            let flat = self.flatten().roll(shifts, [0])?;
            return Ok(flat.reshape_unchecked(self.shape().clone()));
        }
        if shifts.len() != axes.len() {
            let reason = format!("{} shifts for {} axes", shifts.len(), axes.len());
            return Err(Tensor::shape_error("roll", &[self], reason));
        }
        let mut x = self.clone();
        for (&shift, &axis) in shifts.iter().zip(axes) {
            let axis = self.axis("roll", axis)?;
            let extent = self.shape()[axis];
            let shift = (shift as i128).rem_euclid(extent.max(1) as i128) as usize;
            if shift > 0 {
                let a = axis as isize;
                let (head, tail) = (x.slice(a, ..extent - shift)?, x.slice(a, extent - shift..)?);
                x = Tensor::cat(&[&tail, &head], a).named("roll")?;
            }
        }
        Ok(x)
    }

    /// Rotated by 90 degrees `times` times in the plane of two axes, from the first towards the
    /// second; a negative number turns the other way.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1i32, 2], [3, 4]], &device)?;
    /// assert_eq!(x.rot90(1, [0, 1])?.to_vec::<i32>()?, [2, 4, 1, 3]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axes are equal or out of range.
    #[track_caller]
    pub fn rot90(&self, times: isize, axes: [isize; 2]) -> Result<Tensor> {
        let (a, b) = (self.axis("rot90", axes[0])?, self.axis("rot90", axes[1])?);
        if a == b {
            let reason = format!("axes {axes:?} are one, which is no plane");
            return Err(Tensor::shape_error("rot90", &[self], reason));
        }
        let mut swapped: Vec<usize> = (0..self.rank()).collect();
        swapped.swap(a, b);
        match times.rem_euclid(4) {
            0 => Ok(self.clone()),
            1 => Ok(self.flip([b])?.permute_unchecked(&swapped)),
            2 => self.flip([a, b]),
            _ => self.permute_unchecked(&swapped).flip([b]),
        }
    }

    /// The rows of a matrix reversed left to right: axis 1 flipped.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1i32, 2], [3, 4]], &device)?;
    /// assert_eq!(x.fliplr()?.to_vec::<i32>()?, [2, 1, 4, 3]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Below rank 2.
    #[track_caller]
    pub fn fliplr(&self) -> Result<Tensor> {
        self.flip([1]).named("fliplr")
    }

    /// The rows of a matrix in reverse order: axis 0 flipped.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1i32, 2], [3, 4]], &device)?;
    /// assert_eq!(x.flipud()?.to_vec::<i32>()?, [3, 4, 1, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Without axes.
    #[track_caller]
    pub fn flipud(&self) -> Result<Tensor> {
        self.flip([0]).named("flipud")
    }

    /// Repeated `times[i]` times along axis `i`; of `times` and the shape, the shorter gets ones
    /// in front.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1i32, 2], &device)?;
    /// assert_eq!(x.tile([2, 2])?.to_vec::<i32>()?, [1, 2, 1, 2, 1, 2, 1, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the result would have too many elements.
    #[track_caller]
    pub fn tile(&self, times: impl AsRef<[usize]>) -> Result<Tensor> {
        let _here = composed();
        let times = times.as_ref();
        let rank = times.len().max(self.rank());
        let ones = |n: usize| std::iter::repeat_n(1, n);
        let dims = ones(rank - self.rank()).chain(self.shape().iter().copied()).collect();
        let all: Vec<usize> = ones(rank - times.len()).chain(times.iter().copied()).collect();
        if rank > Shape::MAX_RANK {
            let reason = format!("{rank} axes are more than {}", Shape::MAX_RANK);
            return Err(Tensor::shape_error("tile", &[self], reason));
        }
        self.reshape_unchecked(dims).repeat(all).named("tile")
    }

    /// Each element `times` times in a row along an axis.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1i32, 2], &device)?;
    /// assert_eq!(x.repeat_interleave(2, 0)?.to_vec::<i32>()?, [1, 1, 2, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis is out of range or the result would have too many elements.
    #[track_caller]
    pub fn repeat_interleave(&self, times: usize, axis: isize) -> Result<Tensor> {
        let _here = composed();
        let axis = self.axis("repeat_interleave", axis)?;
        let mut split = self.shape().to_vec();
        split.insert(axis + 1, times);
        let mut merged = self.shape().to_vec();
        merged[axis] = merged[axis].saturating_mul(times);
        let x = self.unsqueeze(axis as isize + 1).and_then(|x| x.expand(split)?.reshape(merged));
        x.named("repeat_interleave")
    }

    /// The axes of `source` moved to the places of `destination`, the others keeping their order.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::zeros([2, 3, 4], DType::F32, &device);
    /// assert_eq!(x.movedim([0], [2])?.shape().dims(), [3, 4, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range or repeated, or the lists differ in length.
    #[track_caller]
    pub fn movedim(
        &self,
        source: impl AsRef<[isize]>,
        destination: impl AsRef<[isize]>,
    ) -> Result<Tensor> {
        let (source, destination) = (source.as_ref(), destination.as_ref());
        self.axes("movedim", source)?;
        self.axes("movedim", destination)?;
        if source.len() != destination.len() {
            let reason = format!("{} axes to {} places", source.len(), destination.len());
            return Err(Tensor::shape_error("movedim", &[self], reason));
        }
        let place = |axis: isize| normalize(axis, self.rank()).expect("invariant: was checked");
        let mut order = vec![usize::MAX; self.rank()];
        for (&from, &to) in source.iter().zip(destination) {
            order[place(to)] = place(from);
        }
        let moved: Vec<usize> = source.iter().map(|&axis| place(axis)).collect();
        let mut rest = (0..self.rank()).filter(|axis| !moved.contains(axis));
        for slot in order.iter_mut().filter(|slot| **slot == usize::MAX) {
            *slot = rest.next().expect("invariant: as many places as axes are left");
        }
        Ok(self.permute_unchecked(&order))
    }

    /// Two axes exchanged; the same as [`Tensor::transpose`].
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1i32, 2], [3, 4]], &device)?;
    /// assert_eq!(x.swapaxes(0, 1)?.to_vec::<i32>()?, [1, 3, 2, 4]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an axis is out of range.
    #[track_caller]
    pub fn swapaxes(&self, a: isize, b: isize) -> Result<Tensor> {
        self.transpose(a, b).named("swapaxes")
    }

    /// An axis split into several of the given extents.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::zeros([2, 6], DType::F32, &device);
    /// assert_eq!(x.unflatten(1, [3, 2])?.shape().dims(), [2, 3, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the extents do not multiply to that of the axis.
    #[track_caller]
    pub fn unflatten(&self, axis: isize, dims: impl AsRef<[usize]>) -> Result<Tensor> {
        let (axis, dims) = (self.axis("unflatten", axis)?, dims.as_ref());
        let n = dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
        let shape = Shape::from([&self.shape()[..axis], dims, &self.shape()[axis + 1..]].concat());
        if n != Some(self.shape()[axis]) || !shape.is_possible() {
            let reason = format!("axis {axis} cannot be split into {dims:?}");
            return Err(Tensor::shape_error("unflatten", &[self], reason));
        }
        Ok(self.reshape_unchecked(shape))
    }

    /// Windows of `size` elements, `step` apart, along an axis; their elements form a new last
    /// axis.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1i32, 2, 3, 4, 5], &device)?;
    /// assert_eq!(x.unfold(0, 3, 2)?.to_string(), "[[1 2 3]\n [3 4 5]]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a window does not fit or the step is 0.
    #[track_caller]
    pub fn unfold(&self, axis: isize, size: usize, step: usize) -> Result<Tensor> {
        let _here = composed();
        let axis = self.axis("unfold", axis)?;
        let window = Window { kernel: size, stride: step, dilation: 1 };
        let windows = self.windows("unfold", axis, window)?;
        windows.movedim([axis as isize], [-1]).named("unfold")
    }

    /// `length` elements along an axis from `start` on.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1i32, 2, 3, 4], &device)?;
    /// assert_eq!(x.narrow(0, 1, 2)?.to_vec::<i32>()?, [2, 3]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When they do not lie inside.
    #[track_caller]
    pub fn narrow(&self, axis: isize, start: usize, length: usize) -> Result<Tensor> {
        self.slice(axis, start..start.saturating_add(length)).named("narrow")
    }

    /// The slices along an axis, without it.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1i32, 2], [3, 4]], &device)?;
    /// assert_eq!(x.unbind(1)?[0].to_vec::<i32>()?, [1, 3]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis is out of range or too long.
    #[track_caller]
    pub fn unbind(&self, axis: isize) -> Result<Vec<Tensor>> {
        let _here = composed();
        let position = self.axis("unbind", axis)?;
        let pieces = self.split(1, axis).named("unbind")?;
        // Of an axis without elements there is one piece, which is no entry.
        let entries = pieces.iter().filter(|piece| piece.shape()[position] == 1);
        entries.map(|piece| piece.squeeze(axis)).collect::<Result<_>>().named("unbind")
    }

    /// Pieces along an axis that begin at 0 and at each of `positions`, in order; a piece that
    /// would end before it begins is empty.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1i32, 2, 3, 4], &device)?;
    /// assert_eq!(x.tensor_split([1, 3], 0)?[1].to_vec::<i32>()?, [2, 3]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis is out of range or there are too many positions.
    #[track_caller]
    pub fn tensor_split(&self, positions: impl AsRef<[usize]>, axis: isize) -> Result<Vec<Tensor>> {
        let _here = composed();
        let axis = self.axis("tensor_split", axis)?;
        let extent = self.shape()[axis];
        if positions.as_ref().len() >= MAX_PIECES {
            let reason = format!("more than {MAX_PIECES} pieces");
            return Err(Tensor::shape_error("tensor_split", &[self], reason));
        }
        let mut start = 0;
        let ends = positions.as_ref().iter().copied().chain([extent]);
        ends.map(|end| {
            let (from, to) = (start.min(extent), end.min(extent));
            start = end;
            self.slice(axis as isize, from..to.max(from))
        })
        .collect()
    }

    /// Pieces of the given extents along an axis.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1i32, 2, 3, 4], &device)?;
    /// assert_eq!(x.split_with_sizes([1, 3], 0)?[1].to_vec::<i32>()?, [2, 3, 4]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the extents do not add up to that of the axis.
    #[track_caller]
    pub fn split_with_sizes(&self, sizes: impl AsRef<[usize]>, axis: isize) -> Result<Vec<Tensor>> {
        let _here = composed();
        let axis = self.axis("split_with_sizes", axis)?;
        let (sizes, extent) = (sizes.as_ref(), self.shape()[axis]);
        let total = sizes.iter().try_fold(0usize, |n, &size| n.checked_add(size));
        if sizes.len() > MAX_PIECES {
            let reason = format!("more than {MAX_PIECES} pieces");
            return Err(Tensor::shape_error("split_with_sizes", &[self], reason));
        }
        if total != Some(extent) {
            let reason = format!("sizes {sizes:?} do not add up to extent {extent}");
            return Err(Tensor::shape_error("split_with_sizes", &[self], reason));
        }
        let mut start = 0;
        let piece = |&size: &usize| {
            start += size;
            self.slice(axis as isize, start - size..start)
        };
        sizes.iter().map(piece).collect()
    }

    /// Joined along axis 1, or along axis 0 if they have one axis.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1i32], [2]], &device)?;
    /// assert_eq!(Tensor::hstack(&[&x, &x])?.to_vec::<i32>()?, [1, 1, 2, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes differ except along the joined axis, or there is no tensor.
    #[track_caller]
    pub fn hstack(tensors: &[&Tensor]) -> Result<Tensor> {
        let _here = composed();
        let raised = tensors.iter().map(|x| x.atleast_1d()).collect::<Vec<_>>();
        let axis = if raised.first().is_some_and(|x| x.rank() == 1) { 0 } else { 1 };
        Tensor::cat(&raised.iter().collect::<Vec<_>>(), axis).named("hstack")
    }

    /// Joined along axis 0, vectors as rows.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1i32, 2], &device)?;
    /// assert_eq!(Tensor::vstack(&[&x, &x])?.shape().dims(), [2, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes differ except along the joined axis, or there is no tensor.
    #[track_caller]
    pub fn vstack(tensors: &[&Tensor]) -> Result<Tensor> {
        let _here = composed();
        let raised = tensors.iter().map(|x| x.atleast_2d()).collect::<Vec<_>>();
        Tensor::cat(&raised.iter().collect::<Vec<_>>(), 0).named("vstack")
    }

    /// Joined along axis 2, see [`Tensor::atleast_3d`].
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1i32, 2], &device)?;
    /// assert_eq!(Tensor::dstack(&[&x, &x])?.to_vec::<i32>()?, [1, 1, 2, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shapes differ except along the joined axis, or there is no tensor.
    #[track_caller]
    pub fn dstack(tensors: &[&Tensor]) -> Result<Tensor> {
        let _here = composed();
        let raised = tensors.iter().map(|x| x.atleast_3d()).collect::<Vec<_>>();
        Tensor::cat(&raised.iter().collect::<Vec<_>>(), 2).named("dstack")
    }

    /// Vectors as the columns of a matrix; matrices keep theirs.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1i32, 2], &device)?;
    /// assert_eq!(Tensor::column_stack(&[&x, &x])?.to_vec::<i32>()?, [1, 1, 2, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the numbers of rows differ, or there is no tensor.
    #[track_caller]
    pub fn column_stack(tensors: &[&Tensor]) -> Result<Tensor> {
        let _here = composed();
        let column = |x: &&Tensor| {
            if x.rank() > 1 { (*x).clone() } else { x.reshape_unchecked([x.numel(), 1].into()) }
        };
        let raised = tensors.iter().map(column).collect::<Vec<_>>();
        Tensor::cat(&raised.iter().collect::<Vec<_>>(), 1).named("column_stack")
    }

    /// With an axis of extent 1 if it has none.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// assert_eq!(Tensor::scalar(1f32, &device).atleast_1d().shape().dims(), [1]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn atleast_1d(&self) -> Tensor {
        if self.rank() == 0 { self.reshape_unchecked([1].into()) } else { self.clone() }
    }

    /// With axes of extent 1 in front up to two axes.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// assert_eq!(Tensor::new([1f32, 2.0], &device)?.atleast_2d().shape().dims(), [1, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn atleast_2d(&self) -> Tensor {
        match self.shape().dims() {
            [] => self.reshape_unchecked([1, 1].into()),
            &[n] => self.reshape_unchecked([1, n].into()),
            _ => self.clone(),
        }
    }

    /// With axes of extent 1 around up to three axes: a vector is `[1, n, 1]`, a matrix
    /// `[m, n, 1]`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// assert_eq!(Tensor::new([1f32, 2.0], &device)?.atleast_3d().shape().dims(), [1, 2, 1]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn atleast_3d(&self) -> Tensor {
        match self.shape().dims() {
            [] => self.reshape_unchecked([1, 1, 1].into()),
            &[n] => self.reshape_unchecked([1, n, 1].into()),
            &[m, n] => self.reshape_unchecked([m, n, 1].into()),
            _ => self.clone(),
        }
    }

    /// Tensors broadcast against each other to their common shape.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1i32, 2], &device)?;
    /// let all = Tensor::broadcast_tensors(&[&x, &x.unsqueeze(1)?])?;
    /// assert_eq!(all[0].shape().dims(), [2, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not broadcast.
    #[track_caller]
    pub fn broadcast_tensors(tensors: &[&Tensor]) -> Result<Vec<Tensor>> {
        let _here = composed();
        let mut shape = Shape::scalar();
        for x in tensors {
            match shape.broadcast(x.shape()).filter(Shape::is_possible) {
                Some(common) => shape = common,
                None => {
                    let reason = "shapes do not broadcast".to_owned();
                    return Err(Tensor::shape_error("broadcast_tensors", tensors, reason));
                }
            }
        }
        Ok(tensors.iter().map(|x| x.broadcast_unchecked(&shape)).collect())
    }

    /// Broadcast to a shape; the same as [`Tensor::expand`].
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1i32, 2], &device)?;
    /// assert_eq!(x.broadcast_to([2, 2])?.to_vec::<i32>()?, [1, 2, 1, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shape does not fit.
    #[track_caller]
    pub fn broadcast_to(&self, shape: impl Into<Shape>) -> Result<Tensor> {
        self.expand(shape).named("broadcast_to")
    }

    /// Matrices along the diagonal of a matrix of zeros; vectors count as rows.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let (x, y) = (Tensor::new([[1i32], [2]], &device)?, Tensor::new([3i32, 4], &device)?);
    /// assert_eq!(Tensor::block_diag(&[&x, &y])?.to_string(), "[[1 0 0]\n [2 0 0]\n [0 3 4]]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a tensor has more than two axes or there is none.
    #[track_caller]
    pub fn block_diag(tensors: &[&Tensor]) -> Result<Tensor> {
        let _here = composed();
        if let Some(x) = tensors.iter().find(|x| x.rank() > 2) {
            let reason = "blocks have at most two axes".to_owned();
            return Err(Tensor::shape_error("block_diag", &[x], reason));
        }
        let blocks: Vec<Tensor> = tensors.iter().map(|x| x.atleast_2d()).collect();
        let width = blocks.iter().fold(0usize, |n, x| n.saturating_add(x.shape()[1]));
        let mut before = 0;
        let mut rows = Vec::new();
        for block in &blocks {
            let n = block.shape()[1];
            let row = block.pad([(0, 0), (before, width.saturating_sub(before).saturating_sub(n))]);
            before = before.saturating_add(n);
            rows.push(row.named("block_diag")?);
        }
        Tensor::cat(&rows.iter().collect::<Vec<_>>(), 0).named("block_diag")
    }
}
