//! What happens when a device is full: buffers that nobody computes with move to the host.
//!
//! A device knows its live buffers. When neither the driver nor the byte limit has room for an
//! allocation, and giving back what the pool keeps for reuse did not help, the buffers used least
//! recently are copied to the host until there is room; each comes back when it is pinned again.
//! Buffers that a running plan pins never move. If nothing is left to move, the error says which
//! buffers take the memory.
//!
//! Several threads may pin so much together that none of them gets what it needs. So every thread
//! that pins or allocates has passed the [`Gate`], at first beside others. One that finds no room
//! lets go of its pins, waits until it has passed the gate alone, and tries again: now nobody else
//! pins anything, except for views of host memory, which last as long as their holder wants.
//!
//! Order of locks: the gate, the place of one buffer, then the stream or the pool; never two places
//! (a place that is locked by another thread is passed over), so no circle of threads can wait.

use super::buffer::Inner;
use super::device::Device;
use super::erased::RawBuffer;
use super::pool::size_class;
use super::stats::Counters;
use crate::error::{Error, Result};
use crate::hal::DeviceError;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
};

/// The live buffers of a device, and its clock.
#[derive(Default)]
pub(crate) struct Buffers {
    slots: Mutex<Slots>,
    /// Counts submissions: the unit in which "recently" is measured.
    tick: AtomicU64,
    /// Bytes of the live buffers, wherever they are.
    bytes: AtomicU64,
    droppable: Mutex<Droppables>,
}

/// A holder of a value that can be computed again.
pub(crate) trait Droppable: Send + Sync {
    /// Drops the value unless its buffer has another holder. Returns the bytes dropped, else 0.
    fn drop_unused(&self) -> usize;
}

/// Holders of values that can be computed again, those noted first first.
#[derive(Default)]
struct Droppables {
    list: Vec<Weak<dyn Droppable>>,
    /// Length of the list from which on those that are gone are taken out.
    crowded: usize,
}

/// Who may pin and allocate: many threads beside one another, or one alone.
#[derive(Default)]
pub(crate) struct Gate(RwLock<()>);

#[derive(Default)]
struct Slots {
    live: Vec<Option<Weak<Inner>>>,
    free: Vec<usize>,
}

/// Holders of values that can be dropped up to which none that is gone is looked for.
const FEW_DROPPABLES: usize = 64;

/// Rows of the memory table in an error.
const ROWS: usize = 12;

impl Buffers {
    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, buffer: Weak<Inner>, bytes: usize) -> usize {
        self.bytes.fetch_add(bytes as u64, Relaxed);
        let mut slots = self.slots();
        if let Some(slot) = slots.free.pop() {
            slots.live[slot] = Some(buffer);
            return slot;
        }
        slots.live.push(Some(buffer));
        slots.live.len() - 1
    }

    pub(crate) fn remove(&self, slot: usize, bytes: usize) {
        self.bytes.fetch_sub(bytes as u64, Relaxed);
        let mut slots = self.slots();
        slots.live[slot] = None;
        slots.free.push(slot);
    }

    pub(crate) fn now(&self) -> u64 {
        self.tick.load(Relaxed)
    }

    pub(crate) fn advance(&self) {
        self.tick.fetch_add(1, Relaxed);
    }

    /// Bytes of the live buffers, wherever they are.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    fn droppables(&self) -> MutexGuard<'_, Droppables> {
        self.droppable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The buffers that are alive now.
    fn all(&self) -> Vec<Arc<Inner>> {
        self.slots().live.iter().flatten().filter_map(Weak::upgrade).collect()
    }

    /// Bytes and number of the buffers of each size on the device, those that take most first.
    fn table(&self) -> Vec<(usize, usize)> {
        let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
        for buffer in self.all() {
            if buffer.is_on_device() {
                *sizes.entry(buffer.bytes()).or_default() += 1;
            }
        }
        let mut rows: Vec<(usize, usize)> = sizes.into_iter().collect();
        crate::hal::sort_by_number(&mut rows, |&(bytes, n)| -((bytes * n) as i128));
        rows.truncate(ROWS);
        rows
    }
}

impl Device {
    /// While it is held, no thread has the device alone. A thread holds it once at most.
    pub(crate) fn read_lock(&self) -> RwLockReadGuard<'_, ()> {
        self.gate().0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// While it is held, no other thread pins, allocates or computes anything on the device.
    pub(crate) fn write_lock(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate().0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what may need memory: beside other threads, and if there is no room, alone.
    pub(crate) fn with_room<T>(&self, mut action: impl FnMut() -> Result<T>) -> Result<T> {
        self.check_process()?;
        let sharing = self.read_lock();
        match action() {
            Err(Error::Device(full)) if full.is_about_memory() => {}
            done => return done,
        }
        drop(sharing);
        let _alone = self.write_lock();
        action()
    }

    /// What is asked of the memory: bytes of all live buffers, and how often the limit was changed or
    /// cached memory given back.
    pub(crate) fn demand(&self) -> (u64, u64) {
        (self.buffers().bytes(), self.pool().changes())
    }

    /// The error of an allocation that was not tried.
    pub(crate) fn has_no_room_for(&self, bytes: usize) -> DeviceError {
        DeviceError::out_of_memory(&self.info().spec, bytes, self.buffers().bytes() as usize)
    }

    /// The time by submissions.
    pub(crate) fn tick(&self) -> u64 {
        self.buffers().now()
    }

    /// A block for `bytes`: from the pool, from the driver, or from what can leave the device.
    pub(crate) fn take(&self, bytes: usize) -> Result<RawBuffer> {
        let mut waited = false;
        loop {
            let full = match self.take_free(bytes) {
                Ok(raw) => return Ok(raw),
                Err(full @ DeviceError::OutOfMemory { .. }) => full,
                Err(other) => return Err(other.into()),
            };
            // What was given back may be in use by work that is still queued, or be read.
            if !waited && !self.memory_limit_is(|limit| limit < size_class(bytes)) {
                waited = true;
                self.synchronize()?;
                self.reader().drain();
                continue;
            }
            if !self.could_hold(bytes) || !self.make_room(bytes)? {
                return Err(self.with_table(full).into());
            }
        }
    }

    /// Whether so many bytes fit an otherwise empty device, as far as that is known.
    pub(crate) fn could_hold(&self, bytes: usize) -> bool {
        let memory = self.info().memory;
        let there = memory == 0 || bytes as u64 <= memory;
        there && !self.memory_limit_is(|limit| limit < size_class(bytes))
    }

    /// Notes the holder of a value that can be dropped when memory is short.
    pub(crate) fn note_droppable(&self, holder: Weak<dyn Droppable>) {
        let mut droppables = self.buffers().droppables();
        if droppables.list.len() >= droppables.crowded {
            droppables.list.retain(|holder| holder.strong_count() > 0);
            droppables.crowded = (2 * droppables.list.len()).max(FEW_DROPPABLES);
        }
        droppables.list.push(holder);
    }

    /// Drops values that can be computed again until so many bytes are free; how many are.
    fn drop_values(&self, wanted: usize) -> usize {
        let mut droppables = std::mem::take(&mut self.buffers().droppables().list).into_iter();
        let mut freed = 0;
        while freed < wanted
            && let Some(holder) = droppables.next()
        {
            let bytes = holder.upgrade().map_or(0, |holder| holder.drop_unused());
            if bytes > 0 {
                freed += size_class(bytes);
                Counters::add(&self.counters().values_dropped, 1);
            } else if holder.strong_count() > 0 {
                self.note_droppable(holder);
            }
        }
        droppables.for_each(|holder| self.note_droppable(holder));
        freed
    }

    /// Drops values that can be computed again, and moves buffers to the host, until `bytes` are
    /// free; whether anything was done.
    fn make_room(&self, bytes: usize) -> Result<bool> {
        let wanted = size_class(bytes);
        let mut freed = self.drop_values(wanted);
        let mut buffers = self.buffers().all();
        // Once each: other threads use buffers meanwhile.
        buffers.sort_by_cached_key(|buffer| buffer.last_use());
        for buffer in buffers {
            if freed >= wanted {
                break;
            }
            if buffer.bytes() > 0 && buffer.leave()? {
                freed += size_class(buffer.bytes());
            }
        }
        Ok(freed > 0)
    }

    fn with_table(&self, error: DeviceError) -> DeviceError {
        match error {
            DeviceError::OutOfMemory { device, requested, in_use, .. } => {
                let live = self.buffers().table();
                DeviceError::OutOfMemory { device, requested, in_use, live }
            }
            other => other,
        }
    }

    /// The contents of a block, `None` if the host has no room for them.
    pub(crate) fn fetch(&self, raw: &RawBuffer, bytes: usize) -> Result<Option<Vec<u8>>> {
        let mut contents = Vec::new();
        if contents.try_reserve_exact(bytes).is_err() {
            return Ok(None);
        }
        contents.resize(bytes, 0);
        self.read_raw(raw, 0, &mut contents)?;
        Counters::add(&self.counters().spills, 1);
        Counters::add(&self.counters().spilled_bytes, bytes as u64);
        Ok(Some(contents))
    }

    /// A block with these contents.
    pub(crate) fn bring_back(&self, contents: &[u8]) -> Result<RawBuffer> {
        let raw = self.take(contents.len())?;
        if let Err(error) = self.write_raw(&raw, contents) {
            self.release(raw, contents.len());
            return Err(error);
        }
        self.forget(contents.len());
        Ok(raw)
    }

    /// So many bytes are no longer on the host.
    pub(crate) fn forget(&self, bytes: usize) {
        self.counters().spilled_bytes.fetch_sub(bytes as u64, Relaxed);
    }
}
