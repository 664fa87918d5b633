//! Memory that the host and a device share.
//!
//! Where a device computes in host memory, values can be looked at without a copy ([`HostView`])
//! and memory that something else owns can become a tensor ([`hal::HostOwner`](crate::hal::HostOwner)). Both are safe because
//! values never change: a view keeps its buffer, so nothing else is put there while it lives, and
//! an owner promises as much for what it lends.

use super::buffer::{Buffer, Pinned};
use crate::error::Result;
use std::fmt;

/// The bytes of a computed value, in place.
#[derive(Clone)]
pub struct HostView {
    buffer: Pinned,
    bytes: usize,
}

impl HostView {
    /// The first `bytes` bytes of a buffer that nothing writes any more, if the host can read it.
    pub(crate) fn new(buffer: &Buffer, bytes: usize) -> Result<Option<HostView>> {
        let buffer = buffer.device().with_room(|| buffer.pin())?;
        Ok(buffer.host_slice(bytes).is_some().then_some(HostView { buffer, bytes }))
    }

    /// The bytes, little-endian elements in row-major order.
    pub fn as_slice(&self) -> &[u8] {
        self.buffer.host_slice(self.bytes).unwrap_or_default()
    }
}

impl fmt::Debug for HostView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostView({} bytes of {:?})", self.bytes, self.buffer)
    }
}
