//! Blocks of pinned memory that large transfers go through.
//!
//! What a driver copies from or to memory of its own it copies at the bus's speed, and in the
//! background: the host fills one block while the device reads another. A block is used again when
//! the copy that it was in is done. A CPU gains as well, because a few blocks stay in its caches and
//! page tables, which a copy of all bytes has yet to enter (64 MiB through PoCL: 15 ms, not 65).

use crate::driver::{Code, Context, Event, Look, Mapped, Memory, Queue};
use zyx_core::hal::TrafficCounter;

/// Bytes from which on transfers are staged here.
pub(crate) const LARGE: usize = 1 << 20;

/// Bytes of a block, and how many a stream has at most.
const BLOCK: usize = 4 << 20;
const BLOCKS: usize = 4;

/// Blocks in turn, each with the last copy from or to it.
#[derive(Debug, Default)]
pub(crate) struct Staging {
    blocks: Vec<(Mapped, Option<Event>)>,
    next: usize,
}

impl Staging {
    /// The next block, of which no copy is under way.
    fn take(&mut self, context: &Context, queue: &Queue) -> Result<usize, Code> {
        if self.blocks.len() < BLOCKS {
            let memory = context.host_memory(BLOCK)?;
            self.blocks.push((queue.map(&memory, BLOCK, Look::Both)?, None));
            return Ok(self.blocks.len() - 1);
        }
        let index = self.next;
        let (_, copy) = &mut self.blocks[index];
        if let Some(event) = copy {
            event.wait()?;
            *copy = None;
        }
        self.next = (index + 1) % BLOCKS;
        Ok(index)
    }

    /// Why a copy will never be done, if there is such a one.
    pub(crate) fn failed(&self) -> Option<Code> {
        self.blocks.iter().filter_map(|(_, copy)| copy.as_ref()?.is_done().err()).next()
    }

    /// Copies to a device; `src` may be reused on return.
    pub(crate) fn write(
        &mut self,
        (context, queue, traffic): (&Context, &Queue, &TrafficCounter),
        (to, offset): (&Memory, usize),
        src: &[u8],
    ) -> Result<(), Code> {
        for (i, chunk) in src.chunks(BLOCK).enumerate() {
            let index = self.take(context, queue)?;
            let (block, copy) = &mut self.blocks[index];
            block.bytes_mut(chunk.len()).copy_from_slice(chunk);
            // SAFETY: `take` gives a block only when the copy noted for it is done.
            *copy = Some(unsafe { queue.send(block, chunk.len(), (to, offset + i * BLOCK)) }?);
            traffic.submitted();
            queue.flush()?;
        }
        Ok(())
    }

    /// Waits, and copies from a device.
    pub(crate) fn read(
        &mut self,
        (context, queue, traffic): (&Context, &Queue, &TrafficCounter),
        (from, offset): (&Memory, usize),
        dst: &mut [u8],
    ) -> Result<(), Code> {
        let chunks = dst.len().div_ceil(BLOCK);
        // One block fewer than there are is under way, so that none is taken before it is read.
        let depth = BLOCKS - 1;
        let mut taken = Vec::with_capacity(chunks);
        for i in 0..chunks + depth {
            if i < chunks {
                let len = BLOCK.min(dst.len() - i * BLOCK);
                let index = self.take(context, queue)?;
                let (block, copy) = &mut self.blocks[index];
                // SAFETY: as in `write`; the bytes are looked at after the event.
                *copy = Some(unsafe { queue.fetch((from, offset + i * BLOCK), block, len) }?);
                traffic.submitted();
                queue.flush()?;
                taken.push(index);
            }
            let Some(done) = i.checked_sub(depth) else { continue };
            let Some(part) = dst.chunks_mut(BLOCK).nth(done) else { continue };
            let (block, copy) = &mut self.blocks[taken[done]];
            if let Some(event) = copy {
                event.wait()?;
                *copy = None;
            }
            part.copy_from_slice(block.bytes(part.len()));
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        for (block, copy) in self.blocks.drain(..) {
            let is_over = |copy: &Event| copy.wait().is_ok() || copy.is_done() != Ok(false);
            if !copy.as_ref().is_none_or(is_over) {
                // The driver may use the bytes yet.
                std::mem::forget(block);
            }
        }
    }
}
