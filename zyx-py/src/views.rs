//! View operations: the elements that a view has of its base, and how a write to the view becomes a write to the base.
//!
//! A [`Step`] is one view operation. [`Step::apply`] makes the view of a tensor and [`Step::put`] the tensor with new
//! values where the view is. Both are pure: `crate::storage` decides when they are called. [`Layout`] says where the
//! elements of a view are in memory, by PyTorch's rules, which decide whether a reshaped view shares memory.

use zyx::{DType, Result, Shape, Tensor};

/// One view operation. Axes count from the front.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// The elements in row-major order in another shape.
    Reshape(Shape),
    /// Axes in another order.
    Permute(Order),
    /// `count` positions of an axis, `step` apart.
    Slice { axis: usize, start: usize, step: usize, count: usize },
    /// One position of an axis, which goes.
    Select { axis: usize, position: usize },
    /// Axes of extent 1 repeated, and new axes in front.
    Expand(Shape),
    /// The diagonal of two axes as the last axis.
    Diagonal { offset: isize, a: usize, b: usize },
    /// Windows along an axis, whose elements are the last axis.
    Unfold { axis: usize, size: usize, step: usize },
    /// The bits of the elements as another dtype of the same width.
    Bits(DType),
    /// Positions in memory.
    Strided(Layout),
}

/// An order of axes: axis `i` of a view is axis `order[i]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    axes: [u8; Shape::MAX_RANK],
    rank: u8,
}

impl Order {
    fn of(axes: impl Iterator<Item = usize>) -> Order {
        let mut order = Order { axes: [0; Shape::MAX_RANK], rank: 0 };
        for (place, axis) in order.axes.iter_mut().zip(axes) {
            *place = axis as u8;
            order.rank += 1;
        }
        order
    }

    fn axes(&self) -> impl Iterator<Item = isize> {
        self.axes.iter().take(usize::from(self.rank)).map(|&axis| axis as isize)
    }
}

/// The steps from a tensor to a view: mostly one, which is not allocated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steps {
    first: Option<Step>,
    more: Vec<Step>,
}

impl Steps {
    pub(crate) fn push(&mut self, step: Step) {
        match self.first {
            None => self.first = Some(step),
            Some(_) => self.more.push(step),
        }
    }
}

impl From<Step> for Steps {
    fn from(step: Step) -> Steps {
        Steps { first: Some(step), more: Vec::new() }
    }
}

impl FromIterator<Step> for Steps {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Steps {
        let mut all = Steps::default();
        steps.into_iter().for_each(|step| all.push(step));
        all
    }
}

impl IntoIterator for Steps {
    type Item = Step;
    type IntoIter = std::iter::Chain<std::option::IntoIter<Step>, std::vec::IntoIter<Step>>;
    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.more)
    }
}

/// Where elements are in memory: the first at `offset`, and along each axis an extent and a stride.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) offset: usize,
    pub(crate) axes: Vec<(usize, usize)>,
}

impl Layout {
    /// Row-major order.
    pub(crate) fn contiguous(shape: &Shape) -> Layout {
        let axes = shape.dims().iter().copied().zip(strides(shape.dims())).collect();
        Layout { offset: 0, axes }
    }

    fn numel(&self) -> usize {
        self.axes.iter().map(|axis| axis.0).product()
    }

    /// Whether the elements are all that a storage of this size has.
    pub(crate) fn covers(&self, size: usize) -> bool {
        self.numel() == size && !self.has_overlap()
    }

    /// The position behind the last element.
    pub(crate) fn end(&self) -> usize {
        let last =
            |&(extent, stride): &(usize, usize)| extent.saturating_sub(1).saturating_mul(stride);
        match self.numel() {
            0 => 0,
            _ => self
                .axes
                .iter()
                .map(last)
                .fold(self.offset, usize::saturating_add)
                .saturating_add(1),
        }
    }

    /// Whether the elements are next to each other in row-major order.
    pub(crate) fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        self.numel() == 0
            || self.axes.iter().rev().all(|&(extent, stride)| {
                let fits = extent == 1 || stride == expected;
                expected *= extent;
                fits
            })
    }

    /// Whether two elements may be in one position. Layouts that interleave axes count as such.
    pub(crate) fn has_overlap(&self) -> bool {
        let mut axes: Vec<_> = self.axes.iter().filter(|axis| axis.0 > 1).collect();
        axes.sort_by_key(|axis| axis.1);
        let mut last = 0;
        self.numel() > 0
            && axes.iter().any(|&&(extent, stride)| {
                let overlaps = stride <= last;
                last += (extent - 1) * stride;
                overlaps
            })
    }

    /// The elements in another shape without a copy, if strides can say where they are.
    fn reshaped(&self, shape: &Shape) -> Option<Layout> {
        let dims = shape.dims();
        if self.numel() == 0 {
            return Some(Layout { offset: self.offset, ..Layout::contiguous(shape) });
        }
        let mut axes: Vec<(usize, usize)> = dims.iter().map(|&n| (n, 1)).collect();
        let mut left = dims.len();
        // From the last axis: axes that continue each other are one chunk, which axes of the new shape divide.
        let (mut chunk, mut base) = (1, self.axes.last().map_or(1, |axis| axis.1));
        for (i, &(extent, _)) in self.axes.iter().enumerate().rev() {
            chunk *= extent;
            let outer = i.checked_sub(1).map(|i| self.axes[i]);
            if outer.is_some_and(|(extent, stride)| extent == 1 || stride == chunk * base) {
                continue;
            }
            let mut taken = 1;
            while left > 0 && (taken < chunk || dims[left - 1] == 1) {
                left -= 1;
                axes[left].1 = taken * base;
                taken *= dims[left];
            }
            if taken != chunk {
                return None;
            }
            (chunk, base) = (1, outer.map_or(1, |axis| axis.1));
        }
        Some(Layout { offset: self.offset, axes })
    }

    /// The numbers of the elements in memory.
    fn positions(&self, like: &Tensor) -> Result<Tensor> {
        let mut all = Tensor::full([1], self.offset as i64, like.device());
        for &(extent, stride) in &self.axes {
            let along = Tensor::iota(extent, DType::I64, like.device()).mul(stride as i64)?;
            all = all.unsqueeze(-1)?.add(&along)?;
        }
        all.flatten().reshape(self.axes.iter().map(|axis| axis.0).collect::<Vec<_>>())
    }
}

/// The strides of row-major order.
fn strides(dims: &[usize]) -> Vec<usize> {
    let mut all = vec![1; dims.len()];
    for i in (1..dims.len()).rev() {
        all[i - 1] = all[i] * dims[i].max(1);
    }
    all
}

/// The start on the axes of a diagonal, and its length.
fn diagonal(rows: usize, columns: usize, offset: isize) -> (usize, usize, usize) {
    let shift = offset.unsigned_abs();
    let (row, column) = if offset < 0 { (shift, 0) } else { (0, shift) };
    (row, column, rows.saturating_sub(row).min(columns.saturating_sub(column)))
}

impl Step {
    /// The view of a tensor.
    pub(crate) fn apply(&self, t: &Tensor) -> Result<Tensor> {
        match self {
            Step::Reshape(shape) => t.reshape(shape.clone()),
            Step::Permute(order) => t.permute(order.axes().collect::<Vec<_>>()),
            &Step::Slice { axis, start, step, count } => {
                let axis = axis as isize;
                if count == 0 {
                    return t.slice(axis, 0..0);
                }
                let part = t.slice(axis, start..=start + (count - 1) * step)?;
                if step == 1 { Ok(part) } else { part.stride(axis, 0, step) }
            }
            &Step::Select { axis, position } => t.select_index(axis as isize, position as isize),
            Step::Expand(shape) => t.expand(shape.clone()),
            &Step::Diagonal { offset, a, b } => t.diagonal(offset, a as isize, b as isize),
            &Step::Unfold { axis, size, step } => t.unfold(axis as isize, size, step),
            Step::Bits(dtype) => t.bitcast(*dtype),
            Step::Strided(layout) => t.flatten().take(&layout.positions(t)?),
        }
    }

    /// `base` with `value` where the view is.
    pub(crate) fn put(&self, base: &Tensor, value: &Tensor) -> Result<Tensor> {
        match self {
            Step::Reshape(_) => value.reshape(base.shape().clone()),
            Step::Permute(order) => {
                let mut back = vec![0; value.rank()];
                for (i, axis) in order.axes().enumerate() {
                    back[axis as usize] = i as isize;
                }
                value.permute(back)
            }
            &Step::Slice { count: 0, .. } => Ok(base.clone()),
            &Step::Slice { axis, start, step: 1, .. } => {
                base.slice_scatter(value, axis as isize, start)
            }
            &Step::Slice { axis, start, step, count } => {
                let (extent, span) = (base.shape()[axis], (count - 1) * step + 1);
                let spread = |x: &Tensor| {
                    let mut gaps = vec![(0, 0); x.rank() + 1];
                    gaps[axis + 1].1 = step - 1;
                    let mut around = vec![(0, 0); x.rank()];
                    around[axis] = (start, extent - start - span);
                    let mut dims = x.shape().dims().to_vec();
                    dims[axis] = count * step;
                    let x = x.unsqueeze(axis as isize + 1)?.pad(gaps)?.reshape(dims)?;
                    x.slice(axis as isize, ..span)?.pad(around)
                };
                let here = spread(&Tensor::full(value.shape().clone(), true, base.device()))?;
                here.where_(&spread(value)?, base)
            }
            &Step::Select { axis, position } => {
                base.select_scatter(value, axis as isize, position as isize)
            }
            Step::Expand(_) => {
                // All copies of an element are equal: the first stands for them.
                let mut first = value.clone();
                for _ in base.rank()..value.rank() {
                    first = first.select_index(0, 0)?;
                }
                let whole = first.shape().dims().iter().zip(base.shape().dims());
                let ranges: Vec<_> = whole.map(|(&n, &m)| (0, n.min(m))).collect();
                first.shrink(ranges)?.reshape(base.shape().clone())
            }
            &Step::Diagonal { offset, a, b } => {
                base.diagonal_scatter(value, offset, a as isize, b as isize)
            }
            Step::Bits(_) => value.bitcast(base.dtype()),
            Step::Unfold { .. } => {
                let numbers = Tensor::iota(base.numel(), DType::I64, base.device());
                let places = self.apply(&numbers.reshape(base.shape().clone())?)?;
                put_at(base, &places, value)
            }
            Step::Strided(layout) => put_at(base, &layout.positions(base)?, value),
        }
    }

    /// Where the elements of the view are, or `None` if the step copies.
    pub(crate) fn layout(&self, from: &Layout) -> Option<Layout> {
        let mut to = from.clone();
        match self {
            Step::Reshape(shape) => return from.reshaped(shape),
            Step::Permute(order) => {
                to.axes = order.axes().map(|axis| from.axes[axis as usize]).collect();
            }
            &Step::Slice { axis, start, step, count } => {
                let stride = from.axes[axis].1;
                to.offset += start * stride;
                to.axes[axis] = (count, stride * step);
            }
            &Step::Select { axis, position } => {
                to.offset += position * to.axes.remove(axis).1;
            }
            Step::Expand(shape) => {
                let new = shape.rank() - from.axes.len();
                to.axes = shape.dims().iter().map(|&n| (n, 0)).collect();
                for (axis, &(extent, stride)) in to.axes[new..].iter_mut().zip(&from.axes) {
                    axis.1 = if axis.0 == extent { stride } else { 0 };
                }
            }
            &Step::Diagonal { offset, a, b } => {
                let ((rows, down), (columns, right)) = (from.axes[a], from.axes[b]);
                let (row, column, n) = diagonal(rows, columns, offset);
                to.offset += row * down + column * right;
                to.axes.remove(a.max(b));
                to.axes.remove(a.min(b));
                to.axes.push((n, down + right));
            }
            &Step::Unfold { axis, size, step } => {
                let (extent, stride) = from.axes[axis];
                to.axes[axis] = ((extent - size) / step + 1, stride * step);
                to.axes.push((size, stride));
            }
            Step::Bits(_) => {}
            Step::Strided(layout) => return Some(layout.clone()),
        }
        Some(to)
    }
}

/// `base` with `value` at numbered elements.
fn put_at(base: &Tensor, places: &Tensor, value: &Tensor) -> Result<Tensor> {
    let places = places.flatten();
    base.flatten().scatter(0, &places, &value.flatten())?.reshape(base.shape().clone())
}

/// A view and the steps from the tensor to it.
pub(crate) type Seen = (Tensor, Steps);

/// The view of a tensor without axes by a method that needs one: the tensor itself.
pub(crate) fn lifted(t: &Tensor, f: impl FnOnce(&Tensor) -> Result<Seen>) -> Result<Seen> {
    if t.rank() > 0 {
        return f(t);
    }
    f(&t.reshape([1])?)?;
    Ok((t.clone(), Steps::default()))
}

/// The result of a method that changes the shape alone, and its step.
pub(crate) fn reshaped(found: Result<Tensor>) -> Result<Seen> {
    let y = found?;
    let step = Step::Reshape(y.shape().clone());
    Ok((y, step.into()))
}

/// The result of a method that repeats elements, and its step.
pub(crate) fn expanded(found: Result<Tensor>) -> Result<Seen> {
    let y = found?;
    let step = Step::Expand(y.shape().clone());
    Ok((y, step.into()))
}

/// An axis that a method has taken, counted from the front.
fn front(t: &Tensor, axis: isize) -> usize {
    t.shape().axis(axis).unwrap_or(0)
}

/// The result of a method that permutes axes, and its step.
pub(crate) fn permuted(t: &Tensor, axes: &[isize], found: Result<Tensor>) -> Result<Seen> {
    let y = found?;
    let order = Order::of(axes.iter().map(|&axis| front(t, axis)));
    Ok((y, Step::Permute(order).into()))
}

/// The axes in reverse order.
pub(crate) fn reversed(t: &Tensor) -> Result<Seen> {
    let order = Order::of((0..t.rank()).rev());
    let step = Step::Permute(order);
    Ok((step.apply(t)?, step.into()))
}

/// The result of a method that exchanges two axes, and its step.
pub(crate) fn exchanged(t: &Tensor, a: isize, b: isize, found: Result<Tensor>) -> Result<Seen> {
    let y = found?;
    let (a, b) = (front(t, a), front(t, b));
    let axes = (0..t.rank()).map(|axis| match axis {
        _ if axis == a => b,
        _ if axis == b => a,
        _ => axis,
    });
    Ok((y, Step::Permute(Order::of(axes)).into()))
}

/// The result of a method that moves axes, and its step.
pub(crate) fn moved(
    t: &Tensor,
    from: &[isize],
    to: &[isize],
    found: Result<Tensor>,
) -> Result<Seen> {
    let y = found?;
    let mut order = vec![None; t.rank()];
    for (&from, &to) in from.iter().zip(to) {
        order[front(t, to)] = Some(front(t, from));
    }
    let mut rest =
        (0..t.rank()).filter(|axis| !order.contains(&Some(*axis))).collect::<Vec<_>>().into_iter();
    let axes = order.iter().filter_map(|axis| axis.or_else(|| rest.next()));
    Ok((y, Step::Permute(Order::of(axes)).into()))
}

/// The result of a method that slices an axis, and its step.
pub(crate) fn sliced(
    t: &Tensor,
    axis: isize,
    start: usize,
    step: usize,
    found: Result<Tensor>,
) -> Result<Seen> {
    let (y, axis) = (found?, front(t, axis));
    let count = y.shape()[axis];
    Ok((y, Step::Slice { axis, start, step, count }.into()))
}

/// The result of a method that slices all axes, and its steps.
pub(crate) fn shrunk(starts: &[usize], found: Result<Tensor>) -> Result<Seen> {
    let y = found?;
    let slice = |(axis, &start): (usize, &usize)| Step::Slice {
        axis,
        start,
        step: 1,
        count: y.shape()[axis],
    };
    let steps = starts.iter().enumerate().map(slice).collect();
    Ok((y, steps))
}

/// The result of a method that selects a position, and its step.
pub(crate) fn selected(
    t: &Tensor,
    axis: isize,
    position: isize,
    found: Result<Tensor>,
) -> Result<Seen> {
    let (y, axis) = (found?, front(t, axis));
    let position =
        if position < 0 { position + t.shape()[axis] as isize } else { position } as usize;
    Ok((y, Step::Select { axis, position }.into()))
}

/// The result of a method that takes a diagonal, and its step.
pub(crate) fn diagonal_of(
    t: &Tensor,
    offset: isize,
    a: isize,
    b: isize,
    found: Result<Tensor>,
) -> Result<Seen> {
    let (y, a, b) = (found?, front(t, a), front(t, b));
    Ok((y, Step::Diagonal { offset, a, b }.into()))
}

/// The result of a method that takes windows, and its step.
pub(crate) fn unfolded(
    t: &Tensor,
    axis: isize,
    size: usize,
    step: usize,
    found: Result<Tensor>,
) -> Result<Seen> {
    let (y, axis) = (found?, front(t, axis));
    Ok((y, Step::Unfold { axis, size, step }.into()))
}

/// The result of a method that reads bits as another dtype, and its step.
pub(crate) fn bits(found: Result<Tensor>) -> Result<Seen> {
    let y = found?;
    let step = Step::Bits(y.dtype());
    Ok((y, step.into()))
}

/// Parts of an axis that follow each other, or that begin at these positions.
pub(crate) fn parts(
    t: &Tensor,
    axis: isize,
    starts: Option<&[usize]>,
    found: Result<Vec<Tensor>>,
) -> Result<Vec<Seen>> {
    let (all, axis, mut next) = (found?, front(t, axis), 0);
    let part = |(i, y): (usize, Tensor)| {
        let start = match (starts, i) {
            (Some(starts), 1..) => starts[i - 1].min(t.shape()[axis]),
            _ => next,
        };
        let count = y.shape()[axis];
        next = start + count;
        (y, Step::Slice { axis, start, step: 1, count }.into())
    };
    Ok(all.into_iter().enumerate().map(part).collect())
}

/// The entries of an axis.
pub(crate) fn entries(t: &Tensor, axis: isize, found: Result<Vec<Tensor>>) -> Result<Vec<Seen>> {
    let (all, axis) = (found?, front(t, axis));
    let entry = |(position, y)| (y, Step::Select { axis, position }.into());
    Ok(all.into_iter().enumerate().map(entry).collect())
}
