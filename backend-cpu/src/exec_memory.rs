//! Executable memory for compiled kernels, never writable and executable through one address.
//!
//! On Linux a chunk is an anonymous file mapped twice, once writable and once executable: adding a
//! kernel is a copy, without a system call, and is safe while other kernels of the chunk run. Where
//! such files are refused, and on other Unix systems, every kernel gets its own pages, which are
//! written first and made executable afterwards. Where that is refused too, or the system is not
//! Unix, [`ExecMemory::new`] gives an error, and kernels are interpreted.
//!
//! Memory is given back when the last kernel of a chunk is dropped; inside a chunk nothing is
//! reused, because a processor may still have old code from there. Kernels are small (a few KiB) and
//! chunks cost only the pages that were touched; they are short, as one kernel that stays keeps a whole one.

use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

/// Why there is no executable memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ExecError {
    /// The system forbids it or lacks it; nothing will help in this process.
    #[error("executable memory is not available: {0}")]
    Unavailable(String),
    /// This much could not be had.
    #[error("no executable memory of {bytes} bytes: {reason}")]
    OutOfMemory {
        /// Bytes asked for.
        bytes: usize,
        /// The system's reason.
        reason: String,
    },
}

/// Kernels start at multiples of this, which is also the strictest alignment of their constants.
pub(crate) const ALIGN: usize = 64;
/// Chunks are this long, or as long as one kernel that is longer.
const CHUNK: usize = 1 << 16;

/// An allocator of executable memory. Cheap to share; any thread may add code at any time.
#[derive(Debug)]
pub(crate) struct ExecMemory {
    dual: bool,
    open: Mutex<Option<Open>>,
}

/// The chunk that is being filled.
#[derive(Debug)]
struct Open {
    chunk: Arc<Chunk>,
    used: usize,
}

/// Finished code. The memory lives as long as this does.
#[derive(Debug)]
pub(crate) struct Code {
    chunk: Arc<Chunk>,
    offset: usize,
    len: usize,
}

impl ExecMemory {
    /// Finds out once how executable memory can be had here, if at all.
    pub(crate) fn new() -> Result<Self, ExecError> {
        let dual = match Chunk::dual(CHUNK) {
            Ok(_) => true,
            Err(_) => {
                // The way that remains must work, or there is none.
                Chunk::single(&[0xc3]).map_err(|e| ExecError::Unavailable(e.to_string()))?;
                false
            }
        };
        Ok(Self { dual, open: Mutex::new(None) })
    }

    /// Copies finished machine code to where it can be executed.
    pub(crate) fn add(&self, code: &[u8]) -> Result<Code, ExecError> {
        if !self.dual {
            let chunk = Arc::new(Chunk::single(code)?);
            return Ok(Code { chunk, offset: 0, len: code.len() });
        }
        // A panic cannot leave the chunk half-updated: `used` moves before the copy.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let space = code.len().next_multiple_of(ALIGN);
        let fits = open.as_ref().is_some_and(|it| it.used + space <= it.chunk.len);
        if !fits {
            let chunk = Arc::new(Chunk::dual(space.max(CHUNK))?);
            *open = Some(Open { chunk, used: 0 });
        }
        let it = open.as_mut().expect("invariant: a chunk with room was just made sure of");
        let offset = it.used;
        it.used += space;
        it.chunk.write(offset, code);
        Ok(Code { chunk: it.chunk.clone(), offset, len: space })
    }
}

impl Code {
    /// Bytes of memory.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Where the code starts, a multiple of 64.
    pub(crate) fn start(&self) -> *const u8 {
        self.chunk.exec.as_ptr().wrapping_add(self.offset)
    }
}

/// One mapping. `write` is where it can be written, if it still can.
#[derive(Debug)]
struct Chunk {
    exec: NonNull<u8>,
    write: Option<NonNull<u8>>,
    len: usize,
}

// SAFETY: a chunk is memory of the process; ranges are written once, by the thread that was handed
// them under the lock, before any other thread learns of them.
unsafe impl Send for Chunk {}
// SAFETY: as above; reading and executing finished code needs no exclusion.
unsafe impl Sync for Chunk {}

impl Chunk {
    /// Copies code to its place in a chunk with a writable mapping.
    fn write(&self, offset: usize, code: &[u8]) {
        let write = self.write.expect("invariant: only chunks mapped twice are shared");
        assert!(offset + code.len() <= self.len, "code exceeds its chunk");
        let dst = write.as_ptr().wrapping_add(offset);
        // SAFETY: the range was just checked to lie in the mapping, and the caller handed it out
        // to nobody else; code and mapping cannot overlap.
        unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), dst, code.len()) };
    }
}

#[cfg(unix)]
mod map {
    //! The system calls.

    use super::{Chunk, ExecError};
    use std::ptr::{NonNull, null_mut};

    fn out_of_memory(bytes: usize) -> ExecError {
        ExecError::OutOfMemory { bytes, reason: std::io::Error::last_os_error().to_string() }
    }

    fn map(len: usize, protection: i32, flags: i32, file: i32) -> Result<NonNull<u8>, ExecError> {
        // SAFETY: a new mapping at an address of the system's choice affects no existing memory.
        let start = unsafe { libc::mmap(null_mut(), len, protection, flags, file, 0) };
        if start == libc::MAP_FAILED {
            return Err(out_of_memory(len));
        }
        NonNull::new(start.cast()).ok_or_else(|| out_of_memory(len))
    }

    fn unmap(start: NonNull<u8>, len: usize) {
        // SAFETY: the range is one of our mappings, and its owner is being dropped.
        unsafe { libc::munmap(start.as_ptr().cast(), len) };
    }

    impl Chunk {
        /// An anonymous file mapped twice.
        #[cfg(target_os = "linux")]
        pub(super) fn dual(len: usize) -> Result<Self, ExecError> {
            // SAFETY: the name is a C string; the call makes a file descriptor and nothing else.
            let file = unsafe { libc::memfd_create(c"zyx-kernels".as_ptr(), libc::MFD_CLOEXEC) };
            if file < 0 {
                return Err(out_of_memory(len));
            }
            let both = Self::map_twice(file, len);
            // SAFETY: the descriptor is ours; mappings keep the file alive by themselves.
            unsafe { libc::close(file) };
            both
        }

        #[cfg(target_os = "linux")]
        fn map_twice(file: i32, len: usize) -> Result<Self, ExecError> {
            // SAFETY: the descriptor was just made and is a file that can be resized.
            if unsafe { libc::ftruncate(file, len as libc::off_t) } != 0 {
                return Err(out_of_memory(len));
            }
            let shared = libc::MAP_SHARED;
            let write = map(len, libc::PROT_READ | libc::PROT_WRITE, shared, file)?;
            match map(len, libc::PROT_READ | libc::PROT_EXEC, shared, file) {
                Ok(exec) => Ok(Self { exec, write: Some(write), len }),
                Err(error) => {
                    unmap(write, len);
                    Err(error)
                }
            }
        }

        #[cfg(not(target_os = "linux"))]
        pub(super) fn dual(_len: usize) -> Result<Self, ExecError> {
            Err(ExecError::Unavailable("no anonymous files".into()))
        }

        /// Pages of its own: written, then made executable.
        pub(super) fn single(code: &[u8]) -> Result<Self, ExecError> {
            let len = code.len().max(1);
            let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
            let exec = map(len, libc::PROT_READ | libc::PROT_WRITE, flags, -1)?;
            // Unmapped again if anything below fails.
            let mut chunk = Self { exec, write: Some(exec), len };
            chunk.write(0, code);
            let protection = libc::PROT_READ | libc::PROT_EXEC;
            // SAFETY: the range is the mapping just made, which nobody else knows.
            if unsafe { libc::mprotect(exec.as_ptr().cast(), len, protection) } != 0 {
                return Err(out_of_memory(len));
            }
            chunk.write = None;
            Ok(chunk)
        }
    }

    impl Drop for Chunk {
        fn drop(&mut self) {
            if let Some(write) = self.write.filter(|&write| write != self.exec) {
                unmap(write, self.len);
            }
            unmap(self.exec, self.len);
        }
    }
}

#[cfg(not(unix))]
impl Chunk {
    fn dual(_len: usize) -> Result<Self, ExecError> {
        Err(ExecError::Unavailable("not implemented on this system".into()))
    }

    fn single(_code: &[u8]) -> Result<Self, ExecError> {
        Err(ExecError::Unavailable("not implemented on this system".into()))
    }
}

#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
mod tests {
    use super::*;

    /// `mov eax, imm; ret`
    fn returns(value: u32) -> Vec<u8> {
        let mut code = vec![0xb8];
        code.extend_from_slice(&value.to_le_bytes());
        code.push(0xc3);
        code
    }

    fn call(code: &Code) -> u32 {
        // SAFETY: the code is a complete function of this type, written by the test.
        let function: extern "sysv64" fn() -> u32 = unsafe { std::mem::transmute(code.start()) };
        function()
    }

    #[test]
    fn code_runs_and_kernels_share_a_chunk() {
        let memory = ExecMemory::new().unwrap();
        assert!(memory.dual);
        let codes: Vec<Code> = (0..100).map(|i| memory.add(&returns(i)).unwrap()).collect();
        for (i, code) in codes.iter().enumerate() {
            assert_eq!(code.start() as usize % ALIGN, 0);
            assert_eq!(call(code), i as u32);
        }
        assert!(Arc::ptr_eq(&codes[0].chunk, &codes[99].chunk));
    }

    #[test]
    fn a_full_chunk_is_followed_by_another_and_large_code_gets_its_own() {
        let memory = ExecMemory::new().unwrap();
        let mut large = returns(7);
        large.resize(CHUNK - 10, 0x90);
        let first = memory.add(&large).unwrap();
        let second = memory.add(&large).unwrap();
        large.resize(3 * CHUNK, 0x90);
        let third = memory.add(&large).unwrap();
        assert!(!Arc::ptr_eq(&first.chunk, &second.chunk));
        assert_eq!((call(&first), call(&second), call(&third)), (7, 7, 7));
        // The allocator holds only the chunk it fills.
        assert_eq!(Arc::strong_count(&first.chunk), 1);
    }

    #[test]
    fn pages_of_their_own_work_too() {
        let memory = ExecMemory { dual: false, open: Mutex::new(None) };
        let code = memory.add(&returns(42)).unwrap();
        assert_eq!(call(&code), 42);
    }

    #[test]
    fn many_threads_add_at_once() {
        let memory = ExecMemory::new().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4u32 {
                let memory = &memory;
                scope.spawn(move || {
                    for i in 0..500 {
                        let value = thread << 16 | i;
                        assert_eq!(call(&memory.add(&returns(value)).unwrap()), value);
                    }
                });
            }
        });
    }
}
