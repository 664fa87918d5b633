//! Tensors joined along an axis, cut into pieces along one, and repeated.

use super::Tensor;
use crate::error::{Named, Result};
use crate::origin::composed;
use crate::scalar::Scalar;
use crate::shape::Shape;

/// Most tensors a method gives: more is a mistake (an empty tensor of a huge extent).
pub(super) const MAX_PIECES: usize = 1 << 20;
/// Most tensors that are joined at once: many threads look for an element in all of them, few have
/// loops for each. More are joined in so many parts.
const AT_ONCE: usize = 16;
const BY_FEW_THREADS: usize = 64;

impl Tensor {
    /// Tensors joined along an existing axis; dtypes are promoted.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let (x, y) = (Tensor::new([1f32, 2.0], &device)?, Tensor::new([3f32], &device)?);
    /// assert_eq!(Tensor::cat(&[&x, &y], 0)?.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there are none, or shapes differ outside the axis.
    #[track_caller]
    pub fn cat(tensors: &[&Tensor], axis: isize) -> Result<Tensor> {
        let Some(first) = tensors.first() else {
            return Err(Tensor::argument_error("cat", "there is no tensor to join".into()));
        };
        let axis = first.axis("cat", axis)?;
        let dtype = tensors.iter().fold(first.dtype(), |d, t| d.promote(t.dtype()));
        let fits = |t: &Tensor| {
            t.rank() == first.rank()
                && (0..t.rank()).all(|a| a == axis || t.shape()[a] == first.shape()[a])
        };
        if !tensors.iter().all(|t| fits(t)) {
            let reason = format!("shapes must be equal except along axis {axis}");
            return Err(Tensor::shape_error("cat", tensors, reason));
        }
        if let Some(other) = tensors.iter().find(|t| t.device() != first.device()) {
            let reason = format!("tensors are on {} and {}", first.device(), other.device());
            return Err(Tensor::argument_error("cat", reason));
        }
        let extents = tensors.iter().map(|t| t.shape()[axis]);
        let total = extents.fold(0, usize::saturating_add);
        let mut dims = first.shape().to_vec();
        dims[axis] = total;
        let shape = Shape::from(dims);
        if total == usize::MAX || !shape.is_possible() {
            let reason = "the result would have too many elements".to_owned();
            return Err(Tensor::shape_error("cat", tensors, reason));
        }
        let few = first.device().caps().has_few_threads();
        if tensors.len() > if few { BY_FEW_THREADS } else { AT_ONCE } {
            let groups = tensors.chunks(tensors.len().div_ceil(AT_ONCE));
            let group = |group| Ok(Tensor::cat(group, axis as isize)?.cast(dtype).contiguous());
            let _here = composed();
            let groups = groups.map(group).collect::<Result<Vec<Tensor>>>()?;
            return Tensor::cat(&groups.iter().collect::<Vec<_>>(), axis as isize);
        }
        let mut joined: Option<Tensor> = None;
        let mut before = 0;
        for tensor in tensors {
            let extent = tensor.shape()[axis];
            let mut padding = vec![(0, 0); first.rank()];
            padding[axis] = (before, total - before - extent);
            let own = tensor.cast(dtype);
            let part = own.pad_unchecked(&padding, shape.clone());
            before += extent;
            joined = Some(match joined {
                None => part,
                Some(rest) if extent == 0 => rest,
                Some(rest) => {
                    let here = tensor.constant(Scalar::from(true));
                    let y = here.pad_unchecked(&padding, shape.clone()).select(&part, &rest);
                    y.with_gradient_of_join(&own, &rest, (axis, before - extent))?
                }
            });
        }
        Ok(joined.expect("invariant: there is at least one tensor"))
    }

    /// What was joined so far, with a gradient that is cut out at once for the last tensor, which
    /// starts at a position along an axis, and handed on whole to the rest: each of those takes its
    /// own part of it. By the rule of a choice it would go through as many choices as there are
    /// tensors.
    #[track_caller]
    fn with_gradient_of_join(
        self,
        last: &Tensor,
        rest: &Tensor,
        (axis, start): (usize, usize),
    ) -> Result<Tensor> {
        if !last.is_tracked() && !rest.is_tracked() {
            return Ok(self);
        }
        self.with_gradient(&[last, rest], move |inputs, _, dy| {
            let mut ranges: Vec<_> = inputs[0].shape().iter().map(|&n| (0, n)).collect();
            ranges[axis] = (start, start + ranges[axis].1);
            Ok(vec![Some(dy.shrink_unchecked(&ranges)), Some(dy.clone())])
        })
    }

    /// Tensors of one shape joined along a new axis.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let (x, y) = (Tensor::new([1f32, 2.0], &device)?, Tensor::new([3f32, 4.0], &device)?);
    /// assert_eq!(Tensor::stack(&[&x, &y], 1)?.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there are none, or shapes differ.
    #[track_caller]
    pub fn stack(tensors: &[&Tensor], axis: isize) -> Result<Tensor> {
        let _here = composed();
        let raised: Result<Vec<Tensor>> = tensors.iter().map(|t| t.unsqueeze(axis)).collect();
        let joined = raised.and_then(|all| Tensor::cat(&all.iter().collect::<Vec<_>>(), axis));
        joined.named("stack")
    }

    /// Pieces of extent `size` along an axis, the last one smaller if need be.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let parts = Tensor::iota(5, DType::I32, &device).split(2, 0)?;
    /// assert_eq!(parts.len(), 3);
    /// assert_eq!(parts[2].to_vec::<i32>()?, [4]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis is out of range or `size` is 0.
    #[track_caller]
    pub fn split(&self, size: usize, axis: isize) -> Result<Vec<Tensor>> {
        let _here = composed();
        let axis = self.axis("split", axis)?;
        if size == 0 {
            return Err(Tensor::shape_error("split", &[self], "pieces of extent 0".into()));
        }
        let extent = self.shape()[axis];
        if extent.div_ceil(size) > MAX_PIECES {
            let reason = format!("more than {MAX_PIECES} pieces of extent {size}");
            return Err(Tensor::shape_error("split", &[self], reason));
        }
        // Of an axis without elements there is one piece, as empty.
        (0..extent.max(1))
            .step_by(size)
            .map(|start| self.slice(axis as isize, start..start.saturating_add(size).min(extent)))
            .collect()
    }

    /// `n` pieces along an axis, the first ones larger by one if it does not divide.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let parts = Tensor::iota(5, DType::I32, &device).chunk(2, 0)?;
    /// assert_eq!(parts[0].to_vec::<i32>()?, [0, 1, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axis is out of range or `n` is 0.
    #[track_caller]
    pub fn chunk(&self, n: usize, axis: isize) -> Result<Vec<Tensor>> {
        let position = self.axis("chunk", axis)?;
        if n == 0 {
            return Err(Tensor::shape_error("chunk", &[self], "into 0 pieces".into()));
        }
        if self.shape()[position] == 0 && n <= MAX_PIECES {
            return Ok(vec![self.clone(); n]);
        }
        let size = self.shape()[position].div_ceil(n).max(1);
        self.split(size, axis).named("chunk")
    }

    /// The tensor repeated `times[i]` times along each axis.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 2.0], &device)?;
    /// assert_eq!(x.repeat([2])?.to_vec::<f32>()?, [1.0, 2.0, 1.0, 2.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is not one number per axis.
    #[track_caller]
    pub fn repeat(&self, times: impl AsRef<[usize]>) -> Result<Tensor> {
        let _here = composed();
        let times = times.as_ref();
        if times.len() != self.rank() {
            let reason = format!("{times:?} does not name each of {} axes", self.rank());
            return Err(Tensor::shape_error("repeat", &[self], reason));
        }
        let dims = self.shape();
        let inter = |time: fn(usize) -> usize| -> Vec<usize> {
            times.iter().zip(dims.iter()).flat_map(|(&t, &d)| [time(t), d]).collect()
        };
        let merged: Shape =
            times.iter().zip(dims.iter()).map(|(&t, &d)| t.saturating_mul(d)).collect();
        if merged.contains(&usize::MAX) || !merged.is_possible() {
            let reason = format!("repeated {times:?} times it has too many elements");
            return Err(Tensor::shape_error("repeat", &[self], reason));
        }
        if times.iter().all(|&t| t == 1) {
            return Ok(self.clone());
        }
        let repeated =
            self.reshape(inter(|_| 1)).and_then(|x| x.expand(inter(|t| t))?.reshape(merged));
        repeated.named("repeat")
    }
}
