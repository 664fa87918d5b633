//! Memory that the host and a device share.
//!
//! Where a device computes in host memory, values can be looked at without a copy ([`HostView`])
//! and memory that something else owns can become a tensor ([`hal::HostOwner`](crate::hal::HostOwner)). Both are safe because
//! values never change: a view keeps its buffer, so nothing else is put there while it lives, and
//! an owner promises as much for what it lends.

use super::buffer::{Buffer, Pinned};
use crate::error::Result;
use crate::hal::HostOwner;
use std::fmt;

/// The bytes of a computed value, in place.
#[derive(Clone)]
pub struct HostView {
    /// Goes first: while it lives, the buffer cannot be written, so not become another's.
    bytes: HostOwner,
    buffer: Pinned,
}

impl HostView {
    /// The first `bytes` bytes of a buffer that nothing writes any more, if the host can read it.
    pub(crate) fn new(buffer: &Buffer, bytes: usize) -> Result<Option<HostView>> {
        let buffer = buffer.device().with_room(|| buffer.pin())?;
        let view = buffer.device().host_view(buffer.raw(), bytes);
        Ok(view.map(|bytes| HostView { bytes, buffer }))
    }

    /// The bytes, little-endian elements in row-major order.
    pub fn as_slice(&self) -> &[u8] {
        (*self.bytes).as_ref()
    }
}

impl fmt::Debug for HostView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostView({} bytes of {:?})", self.as_slice().len(), self.buffer)
    }
}
