//! Data in and out: nested Rust data, vectors, bytes.

use super::Tensor;
use crate::dtype::Element;
use crate::error::{Error, Named, Result};
use crate::hal::host_room;
use crate::runtime::{Buffer, HostView, Pending};
use std::io::Write;

/// Size of the reads of `write_to`, in bytes.
const PIECE_BYTES: usize = 4 << 20;

/// Rust data a tensor can be made from: elements, arrays and vectors of such.
pub trait Nested {
    /// The innermost type.
    type Element: Element;

    /// Appends all elements in row-major order and checks the extents at `depth` and below.
    ///
    /// # Errors
    /// A sentence when parts at the same depth differ in length.
    fn collect(
        &self,
        depth: usize,
        dims: &mut Vec<usize>,
        out: &mut Vec<Self::Element>,
    ) -> Result<(), String>;
}

macro_rules! nested_elements {
    ($($element:ty)*) => {$(
        impl Nested for $element {
            type Element = $element;
            fn collect(&self, _: usize, _: &mut Vec<usize>, out: &mut Vec<$element>) -> Result<(), String> {
                out.push(*self);
                Ok(())
            }
        }
    )*};
}

nested_elements!(bool u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 half::f16 half::bf16);

impl<N: Nested> Nested for &[N] {
    type Element = N::Element;
    fn collect(
        &self,
        depth: usize,
        dims: &mut Vec<usize>,
        out: &mut Vec<N::Element>,
    ) -> Result<(), String> {
        match dims.get(depth) {
            None => dims.push(self.len()),
            Some(&extent) if extent == self.len() => {}
            Some(&extent) => {
                return Err(format!(
                    "ragged data: at depth {depth} one part has {extent} entries, another {}",
                    self.len()
                ));
            }
        }
        self.iter().try_for_each(|part| part.collect(depth + 1, dims, out))
    }
}

impl<N: Nested> Nested for Vec<N> {
    type Element = N::Element;
    fn collect(
        &self,
        depth: usize,
        dims: &mut Vec<usize>,
        out: &mut Vec<N::Element>,
    ) -> Result<(), String> {
        self.as_slice().collect(depth, dims, out)
    }
}

impl<N: Nested, const L: usize> Nested for [N; L] {
    type Element = N::Element;
    fn collect(
        &self,
        depth: usize,
        dims: &mut Vec<usize>,
        out: &mut Vec<N::Element>,
    ) -> Result<(), String> {
        self.as_slice().collect(depth, dims, out)
    }
}

impl Tensor {
    /// The elements in row-major order, computing them if need be.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1i32, 2], &device)?;
    /// assert_eq!(x.to_vec::<i32>()?, [1, 2]);
    /// assert!(x.to_vec::<f32>().is_err());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `T` is not the tensor's dtype (convert with [`Tensor::cast`] first), or the device
    /// fails.
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.check_element::<T>("to_vec")?;
        let bytes = self.to_bytes().named("to_vec")?;
        let mut all = host_room(self.numel())?;
        all.extend(bytes.chunks_exact(T::DTYPE.size()).map(T::read_le));
        Ok(all)
    }

    /// Starts to bring the elements to the host, computing them if need be, and lets the program go
    /// on, which may submit more meanwhile.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 2.0, 3.0], &device)?;
    /// let pending = (&x * 2.0).read_async::<f32>()?;
    /// // The device is given more to do before anybody looks.
    /// let y = x.exp();
    /// y.realize()?;
    /// assert_eq!(pending.wait()?, [2.0, 4.0, 6.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `T` is not the tensor's dtype (convert with [`Tensor::cast`] first), or the work cannot be
    /// submitted; what fails later is an error of [`Pending::wait`].
    #[track_caller]
    pub fn read_async<T: Element>(&self) -> Result<Pending<T>> {
        self.check_element::<T>("read_async")?;
        if self.numel() == 0 {
            return Ok(Pending::none());
        }
        self.realize().named("read_async")?;
        let buffer = self.value().expect("invariant: a realized tensor has a buffer");
        let bytes = self.numel() * T::DTYPE.size();
        let read = self.device().start_read(buffer, bytes)?;
        Ok(Pending::new(read, buffer.start_to_look()?))
    }

    /// Refuses to be read as elements of another dtype.
    #[track_caller]
    fn check_element<T: Element>(&self, op: &'static str) -> Result<()> {
        if T::DTYPE == self.dtype() {
            return Ok(());
        }
        let reason = format!("the tensor holds {}, not {}; cast it", self.dtype(), T::DTYPE);
        Err(Tensor::dtype_error(op, &[self], reason))
    }

    /// The only element.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 2.0], &device)?;
    /// assert_eq!(x.sum(..)?.item::<f32>()?, 3.0);
    /// assert!(x.item::<f32>().is_err());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is not exactly one, or as [`Tensor::to_vec`].
    #[track_caller]
    pub fn item<T: Element>(&self) -> Result<T> {
        if self.numel() != 1 {
            let reason = format!("{} elements are not one", self.numel());
            return Err(Tensor::shape_error("item", &[self], reason));
        }
        Ok(self.to_vec().named("item")?[0])
    }

    /// The elements where they are, without a copy, if the device computes in host memory; `None`
    /// elsewhere, and when there are none. The value is computed if need be.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1u8, 2], &device)?;
    /// // The interpreter keeps its memory to itself, the CPU backend does not.
    /// assert!(x.host_view()?.is_none());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the device fails.
    #[track_caller]
    pub fn host_view(&self) -> Result<Option<HostView>> {
        if self.numel() == 0 {
            return Ok(None);
        }
        self.realize().named("host_view")?;
        if !self.device().caps().unified_memory {
            return Ok(None);
        }
        self.device().synchronize().named("host_view")?;
        let buffer = self.value().expect("invariant: a realized tensor has a buffer");
        buffer.refuse_bad_indices()?;
        HostView::new(buffer, self.numel() * self.dtype().size())
    }

    /// The little-endian bytes of the elements in row-major order.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1u16, 258], &device)?;
    /// assert_eq!(x.to_bytes()?, [1, 0, 2, 1]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the device fails.
    #[track_caller]
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        // Before memory is taken here: what is too large is refused by the device.
        let stored = self.stored().named("to_bytes")?;
        let n = stored.map_or(0, |_| self.numel() * self.dtype().size());
        let mut bytes = host_room(n)?;
        bytes.resize(n, 0);
        if let Some(buffer) = stored {
            self.device().read(buffer, &mut bytes)?;
        }
        Ok(bytes)
    }

    /// Writes what [`Tensor::to_bytes`] gives, piece by piece, so the host never holds all of it.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let mut bytes = Vec::new();
    /// Tensor::new([1u16, 258], &device)?.write_to(&mut bytes)?;
    /// assert_eq!(bytes, [1, 0, 2, 1]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the device fails, or [`Error::Io`] when the writer does.
    #[track_caller]
    pub fn write_to(&self, to: &mut dyn Write) -> Result<()> {
        let Some(buffer) = self.stored().named("write_to")? else { return Ok(()) };
        let n = self.numel() * self.dtype().size();
        let mut piece = host_room(n.min(PIECE_BYTES))?;
        for offset in (0..n).step_by(PIECE_BYTES) {
            piece.resize(PIECE_BYTES.min(n - offset), 0);
            self.device().read_at(buffer, offset, &mut piece)?;
            let io = |source| Error::Io { what: "write_to".to_owned(), source };
            to.write_all(&piece).map_err(io)?;
        }
        Ok(())
    }

    /// The memory of the elements, computed if need be; none if there are no elements.
    #[track_caller]
    pub(super) fn stored(&self) -> Result<Option<&Buffer>> {
        if self.numel() == 0 {
            return Ok(None);
        }
        self.realize()?;
        let buffer = self.value().expect("invariant: a realized tensor has a buffer");
        buffer.refuse_bad_indices()?;
        Ok(Some(buffer))
    }
}
