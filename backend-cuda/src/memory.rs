//! Device memory and the staging of transfers.
//!
//! * Memory comes from the driver's stream-ordered pool through a stream of its own, and goes
//!   back there once the work queued on all other streams at that moment is done: nobody waits,
//!   and the pool keeps it for the next allocation instead of giving it to the system.
//! * Transfers go through a few blocks of pinned host memory: the host fills one while the device
//!   reads another, the caller's slice may be reused on return, and a small write never waits for
//!   the queue.

use crate::driver::{self, Code, Context, Event, Pinned, Result, Stream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use zyx_core::hal::TrafficCounter;

/// Bytes of one block of staging memory, and how many a stream has at most.
const BLOCK: usize = 2 << 20;
const BLOCKS: usize = 4;

/// The memory of a device.
#[derive(Debug)]
pub(crate) struct Memory {
    context: Arc<Context>,
    pub(crate) traffic: Arc<TrafficCounter>,
    /// Whether there is a pool.
    pool: bool,
    /// Orders allocations and releases.
    stream: Stream,
    /// Streams that may be using memory, and an event to wait for them with.
    streams: Mutex<(Vec<Weak<Stream>>, Event)>,
    in_use: AtomicUsize,
    /// Bytes there are, 0 if the driver does not say.
    total: u64,
}

impl Memory {
    pub(crate) fn new(context: &Arc<Context>, pool: bool, total: u64) -> Result<Arc<Memory>> {
        let traffic = Arc::default();
        let stream = Stream::new(context, &traffic)?;
        if pool {
            context.keep_pool()?;
        }
        let event = Event::new(context, false)?;
        Ok(Arc::new(Memory {
            context: Arc::clone(context),
            traffic,
            pool,
            stream,
            streams: Mutex::new((Vec::new(), event)),
            in_use: AtomicUsize::new(0),
            total,
        }))
    }

    fn streams(&self) -> MutexGuard<'_, (Vec<Weak<Stream>>, Event)> {
        // Every critical section leaves the list whole.
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has_pool(&self) -> bool {
        self.pool
    }

    /// Bytes in use.
    pub(crate) fn in_use(&self) -> usize {
        self.in_use.load(Ordering::Relaxed)
    }

    /// A stream whose use of memory is waited for before that memory is used again.
    pub(crate) fn new_stream(&self) -> Result<Arc<Stream>> {
        let stream = Arc::new(Stream::new(&self.context, &self.traffic)?);
        let mut streams = self.streams();
        streams.0.retain(|s| s.strong_count() > 0);
        streams.0.push(Arc::downgrade(&stream));
        Ok(stream)
    }

    /// Lets releases from now on wait for what is queued on a stream.
    fn join(&self, stream: &Stream, event: &Event) -> Result {
        stream.record(event)?;
        self.stream.wait(event)
    }

    /// The same before a stream is given up.
    pub(crate) fn leave(&self, stream: &Stream) {
        let streams = self.streams();
        if self.context.bind().is_ok() {
            // An error means that the context is lost, and with it everything queued.
            let _ = self.join(stream, &streams.1);
        }
    }

    /// Memory that every stream can use from now on. `None` when there is none left.
    pub(crate) fn alloc(self: &Arc<Memory>, bytes: usize) -> Result<Option<CudaBuffer>> {
        // Whole words, so that atomics on narrow elements stay inside; and never nothing.
        let Some(bytes) = bytes.max(1).checked_next_multiple_of(256) else { return Ok(None) };
        if self.total > 0 && bytes as u64 > self.total {
            return Ok(None);
        }
        let address = match self.obtain(bytes) {
            Err(code) if code.is_memory() => {
                // What was freed may still wait for work under way, or lie in pieces in the pool.
                self.stream.synchronize()?;
                if self.pool {
                    self.context.trim_pool()?;
                }
                match self.obtain(bytes) {
                    Err(code) if code.is_memory() => return Ok(None),
                    other => other?,
                }
            }
            other => other?,
        };
        self.in_use.fetch_add(bytes, Ordering::Relaxed);
        Ok(Some(CudaBuffer { address, bytes, memory: Arc::clone(self) }))
    }

    fn obtain(&self, bytes: usize) -> Result<u64> {
        if !self.pool {
            return driver::alloc(&self.context, bytes);
        }
        self.context.bind()?;
        let address = self.stream.alloc(bytes)?;
        if let Err(code) = self.stream.synchronize() {
            self.free(address)?;
            return Err(code);
        }
        Ok(address)
    }

    fn release(&self, address: u64) -> Result {
        if !self.pool {
            return driver::free(&self.context, address);
        }
        self.context.bind()?;
        let streams = self.streams();
        for stream in streams.0.iter().filter_map(Weak::upgrade) {
            if self.join(&stream, &streams.1).is_err() {
                // The host waits instead.
                stream.synchronize()?;
            }
        }
        self.free(address)
    }

    /// Frees memory of the pool; a driver that refuses is asked once more.
    fn free(&self, address: u64) -> Result {
        self.stream.free(address).or_else(|_| self.stream.free(address))
    }
}

/// Device memory.
#[derive(Debug)]
pub struct CudaBuffer {
    address: u64,
    bytes: usize,
    memory: Arc<Memory>,
}

impl CudaBuffer {
    /// The address of the byte at `offset`.
    pub(crate) fn at(&self, offset: usize) -> u64 {
        debug_assert!(offset <= self.bytes, "offsets are within buffers");
        self.address + offset as u64
    }

    /// How many bytes it has.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a range of bytes lies inside.
    pub(crate) fn contains(&self, offset: usize, bytes: usize) -> bool {
        offset.checked_add(bytes).is_some_and(|end| end <= self.bytes)
    }
}

impl Drop for CudaBuffer {
    fn drop(&mut self) {
        self.memory.in_use.fetch_sub(self.bytes, Ordering::Relaxed);
        // An error means that the context is lost, and with it the memory.
        let _ = self.memory.release(self.address);
    }
}

/// Blocks of pinned memory in turn, each with the end of the last copy from or to it.
#[derive(Debug, Default)]
pub(crate) struct Staging {
    blocks: Vec<(Pinned, Event)>,
    next: usize,
}

impl Staging {
    /// The next block, of which no copy is under way.
    fn take(&mut self, context: &Arc<Context>) -> Result<usize> {
        if self.blocks.len() < BLOCKS {
            self.blocks.push((Pinned::new(context, BLOCK)?, Event::new(context, false)?));
            return Ok(self.blocks.len() - 1);
        }
        let index = self.next;
        self.next = (index + 1) % BLOCKS;
        self.blocks[index].1.wait()?;
        Ok(index)
    }

    /// Notes the end of a copy from or to a block.
    fn mark(&mut self, stream: &Stream, index: usize) -> Result {
        let marked = stream.record(&self.blocks[index].1).or_else(|_| stream.synchronize());
        if marked.is_err() {
            // Nobody knows when the copy is done; freeing the block waits for it.
            self.blocks.remove(index);
            self.next = 0;
        }
        marked
    }

    /// Copies to a device; `src` may be reused on return.
    pub(crate) fn write(&mut self, stream: &Stream, to: u64, src: &[u8]) -> Result<(), Code> {
        for (i, chunk) in src.chunks(BLOCK).enumerate() {
            let index = self.take(stream.context())?;
            let (block, _) = &mut self.blocks[index];
            block.bytes()[..chunk.len()].copy_from_slice(chunk);
            stream.upload(to + (i * BLOCK) as u64, block, chunk.len())?;
            self.mark(stream, index)?;
        }
        Ok(())
    }

    /// Waits for the stream and copies from a device.
    pub(crate) fn read(&mut self, stream: &Stream, from: u64, dst: &mut [u8]) -> Result<(), Code> {
        let chunks = dst.len().div_ceil(BLOCK);
        let mut taken = Vec::with_capacity(chunks);
        let depth = BLOCKS - 1;
        for i in 0..chunks + depth {
            if i < chunks {
                let bytes = BLOCK.min(dst.len() - i * BLOCK);
                let index = self.take(stream.context())?;
                stream.download(&self.blocks[index].0, from + (i * BLOCK) as u64, bytes)?;
                self.mark(stream, index)?;
                taken.push(index);
            }
            if let Some(done) = i.checked_sub(depth) {
                let (block, event) = &mut self.blocks[taken[done]];
                event.wait()?;
                let chunk = &mut dst[done * BLOCK..];
                let bytes = BLOCK.min(chunk.len());
                chunk[..bytes].copy_from_slice(&block.bytes()[..bytes]);
            }
        }
        Ok(())
    }
}
