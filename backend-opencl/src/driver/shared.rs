//! Memory that the host and a device both see: mapped buffers, and memory that the host lends.

use super::error::{Code, Result, call};
use super::{Context, Event, Memory, Owned, Queue};
use opencl3::command_queue::{CommandQueue, retain_command_queue};
use opencl3::error_codes::CL_MAP_FAILURE;
use opencl3::memory::{
    Buffer, CL_MAP_READ, CL_MAP_WRITE, CL_MEM_ALLOC_HOST_PTR, CL_MEM_READ_ONLY, CL_MEM_READ_WRITE,
    CL_MEM_USE_HOST_PTR, ClMem, retain_mem_object, set_mem_object_destructor_callback,
};
use opencl3::types::{CL_BLOCKING, CL_NON_BLOCKING, cl_mem};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Mutex;
use zyx_core::hal::{HostOwner, lock};

/// Why a host maps a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// To read what is there.
    Read,
    /// To write and to read what copies bring.
    Both,
}

/// The bytes of a buffer in the host's memory; given back on drop.
#[derive(Debug)]
pub(crate) struct Mapped {
    queue: Queue,
    memory: Memory,
    bytes: *mut u8,
    len: usize,
}

// SAFETY: mapped memory belongs to the process; it is written through exclusive references alone.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// The first bytes.
    pub(crate) fn bytes(&self, len: usize) -> &[u8] {
        assert!(len <= self.len, "inside of what was mapped");
        // SAFETY: the driver mapped as many bytes, which stay until this is dropped. Callers see to it
        // that no command writes them.
        unsafe { std::slice::from_raw_parts(self.bytes, len) }
    }

    /// The first bytes, to be written.
    pub(crate) fn bytes_mut(&mut self, len: usize) -> &mut [u8] {
        assert!(len <= self.len, "inside of what was mapped");
        // SAFETY: as for `bytes`, and the reference is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.bytes, len) }
    }

    fn unmap(&self) -> Result {
        // SAFETY: valid handles, and a pointer that mapping this memory gave.
        let queue = || unsafe {
            self.queue.0.enqueue_unmap_mem_object(self.memory.0.get(), self.bytes.cast(), &[])
        };
        call("clEnqueueUnmapMemObject", queue).map(Owned::new)?.wait()
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // A driver that refuses is asked once more; what stays mapped then goes with the memory.
        let _ = self.unmap().or_else(|_| self.unmap());
    }
}

/// What the host sees of a buffer: nothing before it first looks, or once a command is to write.
#[derive(Debug, Default)]
pub(crate) struct View(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    mapped: Option<Mapped>,
    /// How many look.
    looks: usize,
}

impl View {
    /// Begins to look at a buffer of `all` bytes, which is mapped on this queue if it is not yet.
    /// False if the driver refuses.
    pub(crate) fn look(&self, queue: &Queue, memory: &Memory, all: usize) -> bool {
        let mut seen = lock(&self.0);
        if seen.mapped.is_none() {
            seen.mapped = queue.map(memory, all, Look::Read).ok();
        }
        let mapped = seen.mapped.is_some();
        seen.looks += usize::from(mapped);
        mapped
    }

    /// The first `len` bytes, for whoever has begun to look.
    pub(crate) fn bytes(&self, len: usize) -> &[u8] {
        let seen = lock(&self.0);
        assert!(seen.looks > 0, "only who looks sees something");
        let bytes = seen.mapped.as_ref().map_or(&[][..], |mapped| mapped.bytes(len));
        // SAFETY: the bytes stay mapped and as they are until `end`, which refuses while somebody
        // looks; whoever looks holds the buffer that this is part of.
        unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) }
    }

    /// One of those who look does no more.
    pub(crate) fn leave(&self) {
        lock(&self.0).looks -= 1;
    }

    /// A command is about to write: whether it may, which is while nobody looks.
    #[must_use]
    pub(crate) fn end(&self) -> bool {
        let mut seen = lock(&self.0);
        if seen.looks == 0 {
            seen.mapped = None;
        }
        seen.looks == 0
    }
}

impl Memory {
    /// Another handle of the same memory.
    fn share(&self) -> Result<Memory> {
        let memory = self.0.get();
        // SAFETY: a valid handle, which each of the two gives back.
        call("clRetainMemObject", || unsafe { retain_mem_object(memory) })?;
        Ok(Owned::new(Buffer::new(memory)))
    }
}

impl Context {
    /// Memory of `bytes` bytes, not zero, that the host and the device see alike or copy fast.
    pub(crate) fn host_memory(&self, bytes: usize) -> Result<Memory> {
        let flags = CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR;
        // SAFETY: a valid handle; the memory is the driver's own, so there is no host pointer.
        let new = || unsafe { Buffer::create(&self.0, flags, bytes, ptr::null_mut()) };
        call("clCreateBuffer", new).map(Owned::new)
    }

    /// The memory of `owner`, not empty, to be read by kernels; the owner is kept until the last
    /// command that uses it is done.
    pub(crate) fn lent(&self, owner: &HostOwner) -> Result<Memory> {
        let bytes = owner.as_ref().as_ref();
        let flags = CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR;
        let (start, len) = (bytes.as_ptr().cast_mut().cast(), bytes.len());
        // SAFETY: a valid handle; the owner keeps the bytes where and as they are, and is kept by
        // the callback below. No kernel writes to memory that is only read.
        let new = || unsafe { Buffer::create(&self.0, flags, len, start) };
        let lent: Memory = call("clCreateBuffer", new).map(Owned::new)?;
        let kept: *mut HostOwner = Box::into_raw(Box::new(owner.clone()));
        // SAFETY: a valid handle; the driver passes the pointer to `let_go` once.
        let set =
            || unsafe { set_mem_object_destructor_callback(lent.0.get(), let_go, kept.cast()) };
        if let Err(code) = call("clSetMemObjectDestructorCallback", set) {
            // SAFETY: made above, and nobody else has it.
            drop(unsafe { Box::from_raw(kept) });
            return Err(code);
        }
        Ok(lent)
    }
}

/// Called by the driver when memory that was lent is used no more.
extern "C" fn let_go(_: cl_mem, owner: *mut c_void) {
    // SAFETY: made by `Context::lent` for this one call.
    let owner = unsafe { Box::from_raw(owner.cast::<HostOwner>()) };
    // A panic of the owner's `Drop` ends here: it must not unwind through the driver.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(owner)));
}

impl Queue {
    /// Another handle of the same queue.
    fn share(&self) -> Result<Queue> {
        let (queue, dimensions) = (self.0.get(), self.0.max_work_item_dimensions());
        // SAFETY: a valid handle, which each of the two gives back.
        call("clRetainCommandQueue", || unsafe { retain_command_queue(queue) })?;
        Ok(Owned::new(CommandQueue::new(queue, dimensions)))
    }

    /// The first `len` bytes of a buffer, when what was queued here before is done.
    pub(crate) fn map(&self, memory: &Memory, len: usize, look: Look) -> Result<Mapped> {
        let (queue, memory) = (self.share()?, memory.share()?);
        let flags = match look {
            Look::Read => CL_MAP_READ,
            Look::Both => CL_MAP_READ | CL_MAP_WRITE,
        };
        let mut bytes: *mut c_void = ptr::null_mut();
        // SAFETY: valid handles; the call returns when the bytes are there.
        let map = || unsafe {
            queue.0.enqueue_map_buffer(&memory.0, CL_BLOCKING, flags, 0, len, &mut bytes, &[])
        };
        call("clEnqueueMapBuffer", map).map(Owned::new)?;
        if bytes.is_null() {
            return Err(Code::of_call("clEnqueueMapBuffer", CL_MAP_FAILURE));
        }
        Ok(Mapped { queue, memory, bytes: bytes.cast(), len })
    }

    /// Copies the first `len` bytes of what is mapped to a device without waiting.
    ///
    /// # Safety
    /// They must stay as they are until the event has happened.
    pub(crate) unsafe fn send(
        &self,
        from: &Mapped,
        len: usize,
        to: (&Memory, usize),
    ) -> Result<Event> {
        let bytes = from.bytes(len);
        // SAFETY: valid handles; the bytes are there, and the caller leaves them alone.
        let queue = || unsafe {
            self.0.enqueue_write_buffer(&mut to.0.to_write(), CL_NON_BLOCKING, to.1, bytes, &[])
        };
        call("clEnqueueWriteBuffer", queue).map(Owned::new)
    }

    /// Copies from a device to the first `len` bytes of what is mapped without waiting.
    ///
    /// # Safety
    /// Nobody may look at them until the event has happened.
    pub(crate) unsafe fn fetch(
        &self,
        from: (&Memory, usize),
        to: &mut Mapped,
        len: usize,
    ) -> Result<Event> {
        let bytes = to.bytes_mut(len);
        // SAFETY: valid handles; the bytes are there, and the caller leaves them alone.
        let queue = || unsafe {
            self.0.enqueue_read_buffer(&from.0.0, CL_NON_BLOCKING, from.1, bytes, &[])
        };
        call("clEnqueueReadBuffer", queue).map(Owned::new)
    }
}
