//! Device memory as tensors hold it: shared, returned to its pool when the last holder goes.
//!
//! While a device is full, buffers that nobody computes with may lie on the host (see
//! [`spill`](super::spill)). [`Buffer::pin`] brings one back and keeps it on the device for as long
//! as the [`Pinned`] lives: whoever launches holds pins of all arguments. A pin is a clone of the
//! pointer to the memory itself, so a buffer is free to move when that pointer has one holder, and
//! memory that another thread still launches with cannot go away under it.

use super::device::Device;
use super::erased::RawBuffer;
use super::indices::Integers;
use crate::error::Result;
use crate::hal::{DeviceError, Extent};
use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Shared device memory. Dropping the last clone returns it to the device's pool.
#[derive(Clone)]
pub struct Buffer(Arc<Inner>);

pub(crate) struct Inner {
    place: Mutex<Place>,
    /// When it was last pinned, in the device's ticks.
    used: AtomicU64,
    bytes: usize,
    /// Its number among the buffers of its device.
    slot: usize,
    device: Device,
    /// Whether it came from the pool and goes back there; else it stays where it is.
    pooled: bool,
    /// What the layers above want to know of how it was computed, unknown here, and as which result.
    origin: OnceLock<(Arc<dyn Any + Send + Sync>, u32)>,
    /// The range of its integers, and the flags of index checks that its contents depend on.
    integers: OnceLock<Box<Integers>>,
}

/// Where the contents are.
enum Place {
    Device(RawBuffer),
    Host(Vec<u8>),
    /// Dropped, or become another buffer's.
    Nowhere,
}

/// A buffer that stays where it is, and stays its holder's, while this is held.
#[derive(Clone)]
pub struct Pinned {
    buffer: Buffer,
    raw: RawBuffer,
}

impl Pinned {
    pub(crate) fn raw(&self) -> &RawBuffer {
        &self.raw
    }

    pub(crate) fn device(&self) -> &Device {
        self.buffer.device()
    }

    /// What a launch may do with it.
    pub(crate) fn extent(&self) -> Extent {
        Extent { bytes: self.buffer.bytes(), writable: self.buffer.may_be_given() }
    }
}

impl std::fmt::Debug for Pinned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pinned({:?})", self.buffer)
    }
}

impl Buffer {
    pub(crate) fn new(raw: RawBuffer, bytes: usize, device: Device) -> Buffer {
        Buffer::of(raw, bytes, device, true)
    }

    /// Memory that somebody else owns: it goes with the last holder.
    pub(crate) fn lent(raw: RawBuffer, bytes: usize, device: Device) -> Buffer {
        Buffer::of(raw, bytes, device, false)
    }

    fn of(raw: RawBuffer, bytes: usize, device: Device, pooled: bool) -> Buffer {
        Buffer(Arc::new_cyclic(|this| Inner {
            slot: device.buffers().add(this.clone(), bytes),
            place: Mutex::new(Place::Device(raw)),
            used: AtomicU64::new(device.buffers().now()),
            bytes,
            device,
            pooled,
            origin: OnceLock::new(),
            integers: OnceLock::new(),
        }))
    }

    /// Bytes asked for when it was allocated.
    pub fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// The device it is on.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Notes how it was computed, and as which result of that, once.
    pub(crate) fn set_origin(&self, origin: Arc<dyn Any + Send + Sync>, result: usize) {
        // The same buffer may be two outputs.
        let _ = self.0.origin.set((origin, result as u32));
    }

    /// How it was computed, if that was noted as a `T`.
    pub(crate) fn origin<T: Any + Send + Sync>(&self) -> Option<(Arc<T>, usize)> {
        let (origin, result) = self.0.origin.get().cloned()?;
        Some((origin.downcast().ok()?, result as usize))
    }

    pub(super) fn integers(&self) -> Option<&Integers> {
        self.0.integers.get().map(|integers| &**integers)
    }

    pub(super) fn integers_or_new(&self) -> &Integers {
        self.0.integers.get_or_init(Box::default)
    }

    /// Whether nobody else holds it.
    pub fn is_unique(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Brings the contents to the device, if they are not there, and keeps them there.
    ///
    /// # Errors
    /// When the device has no room for them, even without everything that may leave it.
    pub fn pin(&self) -> Result<Pinned> {
        let inner = &*self.0;
        inner.used.store(inner.device.buffers().now(), Relaxed);
        let mut place = inner.place();
        if let Place::Host(bytes) = &*place {
            let raw = inner.device.bring_back(bytes)?;
            *place = Place::Device(raw);
        }
        match &*place {
            Place::Device(raw) => Ok(Pinned { buffer: self.clone(), raw: raw.clone() }),
            _ => Err(given_away().into()),
        }
    }

    /// Whether its memory may become another buffer's: it came from the pool.
    pub(crate) fn may_be_given(&self) -> bool {
        self.0.pooled
    }

    /// The address of what its clones share.
    pub(crate) fn key(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// How many clones there are.
    pub(crate) fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// A new buffer with the memory of this one, which has none afterwards and must be used no
    /// more.
    ///
    /// # Errors
    /// When its contents are not on the device.
    pub(crate) fn succeed(&self) -> Result<Buffer> {
        let mut place = self.0.place();
        match std::mem::replace(&mut *place, Place::Nowhere) {
            Place::Device(raw) => {
                drop(place);
                Ok(Buffer::new(raw, self.0.bytes, self.0.device.clone()))
            }
            other => {
                *place = other;
                Err(given_away().into())
            }
        }
    }

    /// Copies the contents from an offset on to `dst` if they are on the host.
    pub(crate) fn read_from_host(&self, offset: usize, dst: &mut [u8]) -> bool {
        let place = self.0.place();
        let Place::Host(bytes) = &*place else { return false };
        dst.copy_from_slice(&bytes[offset..offset + dst.len()]);
        true
    }
}

fn given_away() -> DeviceError {
    DeviceError::Driver {
        context: "using a buffer".to_owned(),
        reason: "its memory was given to a result".to_owned(),
    }
}

impl Inner {
    /// A panic while the lock was held left the contents where they were.
    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn last_use(&self) -> u64 {
        self.used.load(Relaxed)
    }

    /// Whether the contents are in memory of the device's own, as far as can be said without waiting: the caller
    /// may hold the lock itself, as a buffer that is on its way back.
    pub(crate) fn is_on_device(&self) -> bool {
        self.pooled && matches!(self.place.try_lock().as_deref(), Ok(Place::Device(_)))
    }

    /// Moves the contents to the host unless they are pinned or there already; says whether it did.
    pub(crate) fn leave(&self) -> Result<bool> {
        // Whoever holds the lock is about to use the buffer.
        let Ok(mut place) = self.place.try_lock() else { return Ok(false) };
        let Place::Device(raw) = &*place else { return Ok(false) };
        if !self.pooled || Arc::strong_count(raw) > 1 {
            return Ok(false);
        }
        let Some(bytes) = self.device.fetch(raw, self.bytes)? else { return Ok(false) };
        let Place::Device(raw) = std::mem::replace(&mut *place, Place::Host(bytes)) else {
            unreachable!("invariant: the lock was held throughout");
        };
        self.device.release(raw, self.bytes);
        Ok(true)
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} bytes on {})", self.0.bytes, self.0.device.spec())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.device.buffers().remove(self.slot, self.bytes);
        let place = self.place.get_mut().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(place, Place::Nowhere) {
            Place::Device(raw) if self.pooled => self.device.release(raw, self.bytes),
            Place::Device(_) => {}
            Place::Host(_) => self.device.forget(self.bytes),
            Place::Nowhere => {}
        }
    }
}
