//! Creation: from Rust data, constants, ranges.

use super::{Nested, Tensor};
use crate::dtype::{DType, Element};
use crate::error::{Named, Result};
use crate::graph::Op;
use crate::hal::host_room;
use crate::ops::BinaryOp;
use crate::origin::composed;
use crate::runtime::{Device, HostOwner};
use crate::scalar::Scalar;
use crate::shape::Shape;
use std::io::Read;

impl Tensor {
    /// A tensor from a number, an array, or nested arrays or vectors.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(x.shape().dims(), [2, 2]);
    /// assert!(Tensor::new(vec![vec![1i32], vec![]], &device).is_err());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When nested vectors are ragged, or the device has no memory left.
    #[track_caller]
    pub fn new<N: Nested>(data: N, device: &Device) -> Result<Tensor> {
        let mut elements = Vec::new();
        let mut dims = Vec::new();
        if let Err(reason) = data.collect(0, &mut dims, &mut elements) {
            return Err(Tensor::argument_error("new", reason));
        }
        Tensor::from_slice(&elements, dims, device)
    }

    /// A tensor of the elements of `data` in row-major order.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::from_slice(&[1i32, 2, 3, 4], [2, 2], &device)?;
    /// assert_eq!(x.to_string(), "[[1 2]\n [3 4]]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the number of elements is not that of `shape`, or the device has no memory left.
    #[track_caller]
    pub fn from_slice<T: Element>(
        data: &[T],
        shape: impl Into<Shape>,
        device: &Device,
    ) -> Result<Tensor> {
        let shape = shape.into();
        let mut bytes = Tensor::room_of_slice(data.len(), &shape, T::DTYPE)?;
        for &x in data {
            x.write_le(&mut bytes);
        }
        Tensor::of_bytes(&bytes, T::DTYPE, shape, device)
    }

    /// Room for the bytes of so many elements, which a tensor of this shape has.
    #[track_caller]
    #[inline(never)]
    fn room_of_slice(n: usize, shape: &Shape, dtype: DType) -> Result<Vec<u8>> {
        if shape.checked_numel() != Some(n) {
            let reason = format!("{n} elements cannot take the shape {shape}");
            return Err(Tensor::argument_error("from_slice", reason));
        }
        Ok(host_room(n * dtype.size())?)
    }

    /// A tensor from little-endian bytes of its elements in row-major order.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::from_bytes(&[1, 0, 2, 0], DType::U16, [2], &device)?;
    /// assert_eq!(x.to_vec::<u16>()?, [1, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the number of bytes is not that of shape and dtype, or memory is short.
    #[track_caller]
    pub fn from_bytes(
        bytes: &[u8],
        dtype: DType,
        shape: impl Into<Shape>,
        device: &Device,
    ) -> Result<Tensor> {
        Tensor::of_bytes(bytes, dtype, shape.into(), device)
    }

    /// Compiled once, not for each kind of argument.
    #[track_caller]
    #[inline(never)]
    fn of_bytes(bytes: &[u8], dtype: DType, shape: Shape, device: &Device) -> Result<Tensor> {
        let expected = shape.checked_numel().and_then(|n| n.checked_mul(dtype.size()));
        if expected != Some(bytes.len()) || shape.rank() > Shape::MAX_RANK {
            let reason = format!("{} bytes are not a {dtype} tensor of shape {shape}", bytes.len());
            return Err(Tensor::argument_error("from_bytes", reason));
        }
        let buffer = device.alloc_uninit(bytes.len())?;
        device.write(&buffer, bytes)?;
        buffer.note_integers(dtype, bytes);
        Ok(Tensor::leaf(buffer, shape, dtype))
    }

    /// As [`Tensor::from_bytes`], of bytes that a reader gives: they go to the device's memory piece by piece, so the
    /// host never holds all of them.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let mut file = std::io::Cursor::new([1, 0, 2, 0, 3, 0]);
    /// let x = Tensor::from_reader(&mut file, DType::U16, [2], &device)?;
    /// assert_eq!((x.to_vec::<u16>()?, file.position()), (vec![1, 2], 4));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) when the reader fails or ends before; when memory is short.
    #[track_caller]
    pub fn from_reader(
        reader: &mut dyn Read,
        dtype: DType,
        shape: impl Into<Shape>,
        device: &Device,
    ) -> Result<Tensor> {
        let shape = shape.into();
        let bytes = shape.checked_numel().and_then(|n| n.checked_mul(dtype.size()));
        let Some(bytes) = bytes.filter(|_| shape.rank() <= Shape::MAX_RANK) else {
            let reason = format!("there is no {dtype} tensor of shape {shape}");
            return Err(Tensor::argument_error("from_reader", reason));
        };
        Ok(Tensor::leaf(device.alloc_from(reader, bytes)?, shape, dtype))
    }

    /// As [`Tensor::from_bytes`], of memory that `owner` keeps: without a copy where the device
    /// computes in host memory.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let bytes: Vec<u8> = vec![1, 2, 3];
    /// let x = Tensor::from_owner(std::sync::Arc::new(bytes), DType::U8, [3], &device)?;
    /// assert_eq!(x.to_vec::<u8>()?, [1, 2, 3]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the number of bytes does not fit the shape, or the device is out of memory.
    #[track_caller]
    pub fn from_owner(
        owner: HostOwner,
        dtype: DType,
        shape: impl Into<Shape>,
        device: &Device,
    ) -> Result<Tensor> {
        Tensor::of_owner(&owner, dtype, shape.into(), device, false).named("from_owner")
    }

    /// As [`Tensor::from_owner`], of memory that others may write to, as a tensor of another library:
    /// each computation reads what is there then.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let bytes: Vec<u8> = vec![1, 2, 3];
    /// let x = Tensor::from_shared(std::sync::Arc::new(bytes), DType::U8, [3], &device)?;
    /// assert_eq!(x.to_vec::<u8>()?, [1, 2, 3]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::from_owner`].
    #[track_caller]
    pub fn from_shared(
        owner: HostOwner,
        dtype: DType,
        shape: impl Into<Shape>,
        device: &Device,
    ) -> Result<Tensor> {
        Tensor::of_owner(&owner, dtype, shape.into(), device, true).named("from_shared")
    }

    #[track_caller]
    fn of_owner(
        owner: &HostOwner,
        dtype: DType,
        shape: Shape,
        device: &Device,
        shared: bool,
    ) -> Result<Tensor> {
        let bytes = owner.as_ref().as_ref();
        let expected = shape.checked_numel().and_then(|n| n.checked_mul(dtype.size()));
        if expected == Some(bytes.len())
            && shape.rank() <= Shape::MAX_RANK
            && let Some(buffer) = device.adopt(owner, shared)
        {
            if shared {
                buffer.note_writers();
            }
            return Ok(Tensor::leaf(buffer, shape, dtype));
        }
        Tensor::from_bytes(bytes, dtype, shape, device)
    }

    /// A tensor without axes.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::scalar(2.5f32, &device);
    /// assert_eq!((x.rank(), x.item::<f32>()?), (0, 2.5));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn scalar<T: Element>(x: T, device: &Device) -> Tensor {
        Tensor::constant_of(Scalar::from(x), Shape::scalar(), false, device)
    }

    #[track_caller]
    fn constant_of(x: Scalar, shape: Shape, literal: bool, device: &Device) -> Tensor {
        Tensor::source(Op::Const { bits: x.bits(), literal }, shape, x.dtype(), device)
    }

    /// Zeros.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::zeros([2, 3], DType::F32, &device);
    /// assert_eq!(x.to_vec::<f32>()?, [0.0; 6]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn zeros(shape: impl Into<Shape>, dtype: DType, device: &Device) -> Tensor {
        Tensor::constant_of(Scalar::from_i64(dtype, 0), shape.into(), true, device)
    }

    /// Ones.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::ones([2], DType::I8, &device);
    /// assert_eq!(x.to_vec::<i8>()?, [1, 1]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn ones(shape: impl Into<Shape>, dtype: DType, device: &Device) -> Tensor {
        Tensor::constant_of(Scalar::from_i64(dtype, 1), shape.into(), true, device)
    }

    /// Every element equal to `x`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::full([2, 2], 7u8, &device);
    /// assert_eq!(x.to_vec::<u8>()?, [7; 4]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn full<T: Element>(shape: impl Into<Shape>, x: T, device: &Device) -> Tensor {
        Tensor::constant_of(Scalar::from(x), shape.into(), false, device)
    }

    /// Zeros with shape, dtype and device of `self`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(x.zeros_like().to_vec::<f32>()?, [0.0; 4]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn zeros_like(&self) -> Tensor {
        self.like(0.0)
    }

    /// Ones with shape, dtype and device of `self`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(x.ones_like().to_vec::<f32>()?, [1.0; 4]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn ones_like(&self) -> Tensor {
        self.like(1.0)
    }

    /// `0, 1, …, n - 1` in any dtype.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::iota(4, DType::I32, &device);
    /// assert_eq!(x.to_vec::<i32>()?, [0, 1, 2, 3]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn iota(n: usize, dtype: DType, device: &Device) -> Tensor {
        let wide = Tensor::source(Op::Iota, Shape::from([n]), DType::I64, device);
        wide.cast(dtype)
    }

    /// `0, 1, …, n - 1` in the narrowest of `i32` and `i64` that holds differences of positions:
    /// twice as many `i32` fit a vector.
    #[track_caller]
    pub(crate) fn positions(n: usize, device: &Device) -> Tensor {
        let dtype = if n < 1 << 30 { DType::I32 } else { DType::I64 };
        Tensor::iota(n, dtype, device)
    }

    /// `start, start + step, …` up to but not including `end`, in the dtype of the numbers.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::arange(10i64, 0, -3, &device)?;
    /// assert_eq!(x.to_vec::<i64>()?, [10, 7, 4, 1]);
    /// assert!(Tensor::arange(0, 5, 0, &device).is_err());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `step` is 0 or leads away from `end`.
    #[track_caller]
    pub fn arange<T: Element>(start: T, end: T, step: T, device: &Device) -> Result<Tensor> {
        let n = if T::DTYPE.is_float() {
            let value = |x: T| Scalar::from(x).to_f64();
            ((value(end) - value(start)) / value(step)).ceil()
        } else {
            // Exact, of numbers that no float holds too.
            let value = |x: T| Scalar::from(x).to_i128();
            let (span, step) = (value(end) - value(start), value(step));
            let whole = span.checked_div(step).map(|n| n + i128::from(n * step != span));
            whole.filter(|_| span == 0 || (span > 0) == (step > 0)).map_or(f64::NAN, |n| n as f64)
        };
        if !n.is_finite() || n < 0.0 {
            let reason = format!("no steps of {step:?} lead from {start:?} to {end:?}");
            return Err(Tensor::argument_error("arange", reason));
        }
        if T::DTYPE == DType::Bool {
            return Err(Tensor::argument_error("arange", "a range of bools".into()));
        }
        let (start, step) = (Scalar::from(start), Scalar::from(step));
        // Rounded once. Whole numbers that `f32` holds need no more for it.
        let whole = |x: f64| x.fract() == 0.0;
        let (from, by) = (start.to_f64(), step.to_f64());
        let exact = whole(from) && whole(by) && from.abs() + n * by.abs() <= f64::from(1u32 << 24);
        let dtype = match T::DTYPE {
            dtype if !dtype.is_float() => dtype,
            dtype if exact => dtype.accumulator(),
            _ => DType::F64,
        };
        let iota = Tensor::iota(n as usize, dtype, device);
        let scaled = iota.mul(iota.argument(step.cast(dtype)))?;
        Ok(scaled.add(iota.argument(start.cast(dtype)))?.cast(T::DTYPE))
    }

    /// `n` numbers from `start` to `end`, both included, evenly spaced, as `f32`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::linspace(0.0, 1.0, 5, &device);
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, 0.25, 0.5, 0.75, 1.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn linspace(start: f64, end: f64, n: usize, device: &Device) -> Tensor {
        let _here = composed();
        let step = if n > 1 { (end - start) / (n - 1) as f64 } else { 0.0 };
        // From both ends, so both are exact.
        let along = |at: Tensor, step: f64, from: f64| {
            let scaled = at.combine(BinaryOp::Mul, &at.argument(Scalar::from(step)));
            scaled.combine(BinaryOp::Add, &scaled.argument(Scalar::from(from)))
        };
        let at = Tensor::iota(n, DType::F64, device);
        let first = at.combine(BinaryOp::Lt, &at.like((n / 2).max(1) as f64));
        let left = at.like(n as f64 - 1.0).combine(BinaryOp::Sub, &at);
        first.select(&along(at, step, start), &along(left, -step, end)).cast(DType::F32)
    }

    /// The identity matrix of order `n`.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::eye(2, DType::F32, &device);
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn eye(n: usize, dtype: DType, device: &Device) -> Tensor {
        let iota = Tensor::iota(n, DType::I64, device);
        let shape = Shape::from([n, n]);
        let rows = iota.reshape_unchecked(Shape::from([n, 1])).broadcast_unchecked(&shape);
        let columns = iota.broadcast_unchecked(&shape);
        rows.combine(BinaryOp::Eq, &columns).cast(dtype)
    }

    /// The elements on and below the `diagonal`-th diagonal of the last two axes, zeros above.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(x.tril(0)?.to_vec::<f32>()?, [1.0, 0.0, 3.0, 4.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Below rank 2.
    #[track_caller]
    pub fn tril(&self, diagonal: i64) -> Result<Tensor> {
        let mask = self.triangle("tril", diagonal)?;
        mask.where_(self, self.zeros_like()).named("tril")
    }

    /// The elements on and above the `diagonal`-th diagonal of the last two axes, zeros below.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(x.triu(0)?.to_vec::<f32>()?, [1.0, 2.0, 0.0, 4.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Below rank 2.
    #[track_caller]
    pub fn triu(&self, diagonal: i64) -> Result<Tensor> {
        let mask = self.triangle("triu", diagonal.saturating_sub(1))?;
        mask.where_(self.zeros_like(), self).named("triu")
    }

    /// Where `column - row <= diagonal` in the last two axes.
    #[track_caller]
    fn triangle(&self, op: &'static str, diagonal: i64) -> Result<Tensor> {
        let &[.., rows, columns] = self.shape().dims() else {
            let reason = "needs at least two axes".to_owned();
            return Err(Tensor::shape_error(op, &[self], reason));
        };
        let shape = Shape::from([rows, columns]);
        let row = Tensor::positions(rows.max(columns), self.device());
        let column = row.slice(0, ..columns)?.broadcast_unchecked(&shape);
        let row = row.slice(0, ..rows)?;
        let row = row.reshape_unchecked(Shape::from([rows, 1])).broadcast_unchecked(&shape);
        column.sub(&row)?.le(diagonal.clamp(-(1 << 30), 1 << 30))
    }
}
