//! The caching allocator: freed blocks are kept by size class and handed out again.
//!
//! Classes are powers of two with four steps between, so a block is at most a quarter larger
//! than asked for. A block freed on the host may be reused at once, because a device's commands
//! run in order on one stream. Of several always the same one comes first, whatever order they were freed in: a
//! loop gets the same blocks each step, so that what devices keep of its launches fits as it is. When the driver has no memory left, or the byte limit is reached,
//! all cached blocks are given back and the allocation is tried once more.

use super::erased::{ErasedDevice, RawBuffer};
use super::stats::Counters;
use crate::hal::DeviceError;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Default)]
pub(crate) struct Pool {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By class and by the place of the handle.
    free: FxHashMap<usize, BTreeMap<usize, RawBuffer>>,
    /// Bytes obtained from the driver and not given back.
    held: usize,
    cached: usize,
    limit: Option<usize>,
    /// How often the limit was changed or blocks were given back at a caller's wish.
    changes: u64,
}

/// The size of the block used for `bytes`.
pub(crate) fn size_class(bytes: usize) -> usize {
    // No allocation is longer, and the class of none overflows.
    let bytes = bytes.clamp(256, isize::MAX as usize);
    let step = (bytes.next_power_of_two() / 8).max(64);
    bytes.next_multiple_of(step)
}

impl Pool {
    /// A block of the class of `bytes`.
    pub(crate) fn take(
        &self,
        device: &dyn ErasedDevice,
        counters: &Counters,
        bytes: usize,
    ) -> Result<RawBuffer, DeviceError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let out_of_memory = |state: &State| DeviceError::OutOfMemory {
            device: device.info().spec.clone(),
            requested: bytes,
            in_use: state.held - state.cached,
            live: Vec::new(),
        };
        if bytes > isize::MAX as usize / 2 {
            return Err(out_of_memory(&state));
        }
        let class = size_class(bytes);
        if let Some((_, block)) = state.free.get_mut(&class).and_then(BTreeMap::pop_first) {
            state.cached -= class;
            counters.cached_bytes.store(state.cached as u64, Relaxed);
            counters.grow_live(class as u64);
            return Ok(block);
        }
        let fits = |state: &State| state.limit.is_none_or(|limit| state.held + class <= limit);
        if !fits(&state) {
            state.trim();
        }
        if !fits(&state) {
            return Err(out_of_memory(&state));
        }
        let block = match device.alloc(class) {
            Err(DeviceError::OutOfMemory { .. }) => {
                state.trim();
                device.alloc(class).map_err(|error| match error {
                    DeviceError::OutOfMemory { .. } => out_of_memory(&state),
                    other => other,
                })?
            }
            // What was asked for, not the class of it.
            Err(DeviceError::TooLong { device, longest, .. }) => {
                return Err(DeviceError::TooLong { device, requested: bytes, longest });
            }
            other => other?,
        };
        Counters::add(&counters.driver_allocs, 1);
        state.held += class;
        counters.cached_bytes.store(state.cached as u64, Relaxed);
        counters.grow_live(class as u64);
        Ok(block)
    }

    /// Takes back a block handed out for `bytes`.
    pub(crate) fn give(&self, counters: &Counters, block: RawBuffer, bytes: usize) {
        let class = size_class(bytes);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let place = Arc::as_ptr(&block).addr();
        state.free.entry(class).or_default().insert(place, block);
        state.cached += class;
        counters.cached_bytes.store(state.cached as u64, Relaxed);
        counters.shrink_live(class as u64);
    }

    /// Gives cached blocks back to the driver.
    pub(crate) fn trim(&self, counters: &Counters) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.trim();
        state.changes += 1;
        counters.cached_bytes.store(0, Relaxed);
    }

    /// Limits the bytes held from the driver.
    pub(crate) fn set_limit(&self, limit: Option<usize>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.limit = limit;
        state.changes += 1;
    }

    pub(crate) fn changes(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).changes
    }

    pub(crate) fn limit(&self) -> Option<usize> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).limit
    }
}

impl State {
    fn trim(&mut self) {
        self.held -= self.cached;
        self.cached = 0;
        self.free.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::size_class;

    #[test]
    fn classes_waste_at_most_a_quarter() {
        for bytes in [0, 1, 255, 256, 257, 1000, 4097, 1 << 20, (1 << 20) + 1, 123_456_789] {
            let class = size_class(bytes);
            assert!(class >= bytes && class >= 256);
            assert!(bytes < 256 || class as f64 <= bytes as f64 * 1.25, "{bytes} -> {class}");
            assert_eq!(size_class(class), class);
        }
    }
}
