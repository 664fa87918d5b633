//! Device memory as tensors hold it: shared, returned to its pool when the last holder goes.

use super::device::Device;
use super::erased::RawBuffer;
use std::sync::Arc;

/// Shared device memory. Dropping the last clone returns it to the device's pool.
#[derive(Clone)]
pub struct Buffer(Arc<Inner>);

struct Inner {
    /// `Some` until dropped.
    raw: Option<RawBuffer>,
    bytes: usize,
    device: Device,
    /// Whether it came from the pool and goes back there.
    pooled: bool,
}

impl Buffer {
    pub(crate) fn new(raw: RawBuffer, bytes: usize, device: Device) -> Buffer {
        Buffer(Arc::new(Inner { raw: Some(raw), bytes, device, pooled: true }))
    }

    /// Memory that somebody else owns: it goes with the last holder.
    pub(crate) fn lent(raw: RawBuffer, bytes: usize, device: Device) -> Buffer {
        Buffer(Arc::new(Inner { raw: Some(raw), bytes, device, pooled: false }))
    }

    /// The first bytes themselves, if the host can read them. Nothing may write to them meanwhile.
    pub(crate) fn host_slice(&self, bytes: usize) -> Option<&[u8]> {
        self.0.device.host_slice(self.raw(), bytes)
    }

    /// Bytes asked for when it was allocated.
    pub fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// The device it is on.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Whether nobody else holds it.
    pub fn is_unique(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    pub(crate) fn raw(&self) -> &RawBuffer {
        self.0.raw.as_ref().expect("invariant: a buffer has memory until dropped")
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} bytes on {})", self.0.bytes, self.0.device.spec())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(raw) = self.raw.take().filter(|_| self.pooled) {
            self.device.release(raw, self.bytes);
        }
    }
}
