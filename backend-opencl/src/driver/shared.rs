//! Memory that the host and a device both see: mapped buffers, and memory that the host lends.

use super::{Code, Context, Event, Memory, Queue, Result, call};
use cl3::types::{CL_FALSE, CL_TRUE, cl_map_flags, cl_mem};
use cl3::{command_queue, memory};
use std::ffi::c_void;
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
            let bytes = self.bytes.cast();
            command_queue::enqueue_unmap_mem_object(
                self.queue.0,
                self.memory.0,
                bytes,
                0,
                ptr::null(),
            )
        };
        call("clEnqueueUnmapMemObject", queue).map(Event)?.wait()
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
        // SAFETY: a valid handle.
        call("clRetainMemObject", || unsafe { memory::retain_mem_object(self.0) })?;
        Ok(Memory(self.0))
    }
}

impl Context {
    /// Memory of `bytes` bytes, not zero, that the host and the device see alike or copy fast.
    pub(crate) fn host_memory(&self, bytes: usize) -> Result<Memory> {
        let flags = memory::CL_MEM_READ_WRITE | memory::CL_MEM_ALLOC_HOST_PTR;
        // SAFETY: a valid handle; the memory is the driver's own, so there is no host pointer.
        let new = || unsafe { memory::create_buffer(self.0, flags, bytes, ptr::null_mut()) };
        call("clCreateBuffer", new).map(Memory)
    }

    /// The memory of `owner`, not empty, to be read by kernels; the owner is kept until the last
    /// command that uses it is done.
    pub(crate) fn lent(&self, owner: &HostOwner) -> Result<Memory> {
        let bytes = owner.as_ref().as_ref();
        let flags = memory::CL_MEM_READ_ONLY | memory::CL_MEM_USE_HOST_PTR;
        let (start, len) = (bytes.as_ptr().cast_mut().cast(), bytes.len());
        // SAFETY: a valid handle; the owner keeps the bytes where and as they are, and is kept by
        // the callback below. No kernel writes to memory that is only read.
        let new = || unsafe { memory::create_buffer(self.0, flags, len, start) };
        let lent = call("clCreateBuffer", new).map(Memory)?;
        let kept: *mut HostOwner = Box::into_raw(Box::new(owner.clone()));
        // SAFETY: a valid handle; the driver passes the pointer to `let_go` once.
        let set =
            || unsafe { memory::set_mem_object_destructor_callback(lent.0, let_go, kept.cast()) };
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
    drop(unsafe { Box::from_raw(owner.cast::<HostOwner>()) });
}

impl Queue {
    /// Another handle of the same queue.
    fn share(&self) -> Result<Queue> {
        // SAFETY: a valid handle.
        call("clRetainCommandQueue", || unsafe { command_queue::retain_command_queue(self.0) })?;
        Ok(Queue(self.0))
    }

    /// The first `len` bytes of a buffer, when what was queued here before is done.
    pub(crate) fn map(&self, memory: &Memory, len: usize, look: Look) -> Result<Mapped> {
        let (queue, memory) = (self.share()?, memory.share()?);
        let flags: cl_map_flags = match look {
            Look::Read => memory::CL_MAP_READ,
            Look::Both => memory::CL_MAP_READ | memory::CL_MAP_WRITE,
        };
        let mut bytes: *mut c_void = ptr::null_mut();
        // SAFETY: valid handles; the call returns when the bytes are there.
        let map = || unsafe {
            let to = &mut bytes;
            command_queue::enqueue_map_buffer(
                queue.0,
                memory.0,
                CL_TRUE,
                flags,
                0,
                len,
                to,
                0,
                ptr::null(),
            )
        };
        call("clEnqueueMapBuffer", map).map(Event)?;
        if bytes.is_null() {
            return Err(Code(cl3::error_codes::CL_MAP_FAILURE));
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
        assert!(len <= from.len, "inside of what was mapped");
        // SAFETY: valid handles; the bytes are there, and the caller leaves them alone.
        let queue = || unsafe {
            let from = from.bytes.cast();
            command_queue::enqueue_write_buffer(
                self.0,
                to.0.0,
                CL_FALSE,
                to.1,
                len,
                from,
                0,
                ptr::null(),
            )
        };
        call("clEnqueueWriteBuffer", queue).map(Event)
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
        assert!(len <= to.len, "inside of what was mapped");
        // SAFETY: valid handles; the bytes are there, and the caller leaves them alone.
        let queue = || unsafe {
            let to = to.bytes.cast();
            command_queue::enqueue_read_buffer(
                self.0,
                from.0.0,
                CL_FALSE,
                from.1,
                len,
                to,
                0,
                ptr::null(),
            )
        };
        call("clEnqueueReadBuffer", queue).map(Event)
    }
}
