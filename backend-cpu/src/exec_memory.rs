//! Executable memory for compiled kernels, never writable and executable through one address.
//!
//! On Linux and Windows a chunk is an anonymous file (a section) mapped twice, once writable and
//! once executable: adding a kernel is a copy and is safe while other kernels of the chunk run. On
//! Macs with Apple's processors a chunk is mapped once with `MAP_JIT`; each thread either writes to
//! such memory or executes it. Where these are refused, and on other Unix systems, every kernel gets
//! its own pages, which are written first and made executable afterwards. Where that is refused too,
//! [`ExecMemory::new`] gives an error, and kernels are interpreted.
//!
//! Code has no unwind tables: no panic may pass through it. The functions that it calls are of an
//! ABI that does not unwind, so Rust ends the process there (`jit/helpers.rs`).
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
    /// The process that fills it. A child of a fork shares the memory and must not write there.
    generation: usize,
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
                Chunk::single(&[0]).map_err(|e| ExecError::Unavailable(e.to_string()))?;
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
        let generation = zyx_gemm::fork::generation();
        let fits = |it: &Open| it.used + space <= it.chunk.len && it.generation == generation;
        let fits = open.as_ref().is_some_and(fits);
        if !fits {
            let chunk = Arc::new(Chunk::dual(space.max(CHUNK))?);
            *open = Some(Open { chunk, used: 0, generation });
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
        let write = self.write.expect("invariant: only chunks that stay writable are shared");
        assert!(offset + code.len() <= self.len, "code exceeds its chunk");
        let dst = write.as_ptr().wrapping_add(offset);
        map::with_writable(|| {
            // SAFETY: the range was just checked to lie in the mapping, and the caller handed it
            // out to nobody else; code and mapping cannot overlap.
            unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), dst, code.len()) };
        });
        map::flush(self.exec.as_ptr().wrapping_add(offset), code.len());
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

    #[cfg(all(target_os = "macos", target_arch = "aarch64"))]
    unsafe extern "C" {
        /// Of the C library (`libkern/OSCacheControl.h`): makes instructions visible that were
        /// written to a range. The crate `libc` does not declare it.
        fn sys_icache_invalidate(start: *mut libc::c_void, len: libc::size_t);
    }

    /// Calls what writes to executable memory.
    pub(super) fn with_writable(write: impl FnOnce()) {
        #[cfg(all(target_os = "macos", target_arch = "aarch64"))]
        // SAFETY: this thread cannot execute memory mapped with `MAP_JIT` until it is protected
        // again, and `write` calls no kernel.
        unsafe {
            libc::pthread_jit_write_protect_np(0);
        }
        write();
        #[cfg(all(target_os = "macos", target_arch = "aarch64"))]
        // SAFETY: this thread may execute such memory again and not write to it.
        unsafe {
            libc::pthread_jit_write_protect_np(1);
        }
    }

    /// Makes code visible to the part of the processor that fetches instructions. x86-64 does so itself.
    pub(super) fn flush(start: *mut u8, len: usize) {
        #[cfg(all(target_arch = "aarch64", not(target_os = "macos")))]
        flush_lines(start as usize, len);
        #[cfg(all(target_os = "macos", target_arch = "aarch64"))]
        // SAFETY: the range is mapped, and the call changes no contents.
        unsafe {
            sys_icache_invalidate(start.cast(), len);
        }
        let _ = (start, len);
    }

    /// Writes the lines of a range back from the data cache to where instructions come from, then drops
    /// them from the instruction cache. One address does for both: the data cache goes by where memory
    /// is, whichever of two mappings it was written through; the instruction cache may go by the address
    /// that is executed, which is this one. Other threads have an `isb` before they run a kernel.
    #[cfg(all(target_arch = "aarch64", not(target_os = "macos")))]
    fn flush_lines(start: usize, len: usize) {
        use std::arch::asm;
        let cache_type: usize;
        // SAFETY: reads a register that programs may read.
        unsafe {
            asm!("mrs {}, ctr_el0", out(reg) cache_type, options(nomem, nostack, preserves_flags));
        }
        // Shortest lines, as logarithms of words of four bytes.
        let line = |shift: usize| 4_usize << (cache_type >> shift & 15);
        let lines = |line: usize| (start & !(line - 1)..start + len).step_by(line);
        for place in lines(line(16)) {
            // SAFETY: the place lies in the mapping, or in its page; contents do not change.
            unsafe { asm!("dc cvau, {}", in(reg) place, options(nostack, preserves_flags)) };
        }
        // SAFETY: waits for what was written back.
        unsafe { asm!("dsb ish", options(nostack, preserves_flags)) };
        for place in lines(line(0)) {
            // SAFETY: as above.
            unsafe { asm!("ic ivau, {}", in(reg) place, options(nostack, preserves_flags)) };
        }
        // SAFETY: waits for what was dropped, and fetches again what was fetched ahead.
        unsafe { asm!("dsb ish", "isb", options(nostack, preserves_flags)) };
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

        /// Memory that each thread either writes to, within [`with_writable`], or executes.
        #[cfg(all(target_os = "macos", target_arch = "aarch64"))]
        pub(super) fn dual(len: usize) -> Result<Self, ExecError> {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_JIT;
            let protection = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
            let exec = map(len, protection, flags, -1)?;
            Ok(Self { exec, write: Some(exec), len })
        }

        #[cfg(not(any(target_os = "linux", all(target_os = "macos", target_arch = "aarch64"))))]
        pub(super) fn dual(_len: usize) -> Result<Self, ExecError> {
            Err(ExecError::Unavailable("no anonymous files".into()))
        }

        /// Pages of its own: written, then made executable.
        pub(super) fn single(code: &[u8]) -> Result<Self, ExecError> {
            let len = code.len().max(1);
            let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
            // What the hardened runtime asks for. On Apple's processors such memory would be refused
            // a change of its protection; other memory is allowed it where the runtime is not hardened.
            #[cfg(all(target_os = "macos", target_arch = "x86_64"))]
            let flags = flags | libc::MAP_JIT;
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

#[cfg(windows)]
mod map {
    //! The system calls.

    use super::{Chunk, ExecError};
    use std::ptr::{NonNull, null};
    use windows_sys::Win32::Foundation::{CloseHandle, HANDLE, INVALID_HANDLE_VALUE};
    use windows_sys::Win32::System::Diagnostics::Debug::FlushInstructionCache;
    use windows_sys::Win32::System::Memory::{
        CreateFileMappingW, FILE_MAP, FILE_MAP_EXECUTE, FILE_MAP_READ, FILE_MAP_WRITE, MEM_COMMIT,
        MEM_RELEASE, MEM_RESERVE, MEMORY_MAPPED_VIEW_ADDRESS, MapViewOfFile, PAGE_EXECUTE_READ,
        PAGE_EXECUTE_READWRITE, PAGE_READWRITE, UnmapViewOfFile, VirtualAlloc, VirtualFree,
        VirtualProtect,
    };
    use windows_sys::Win32::System::Threading::GetCurrentProcess;

    fn out_of_memory(bytes: usize) -> ExecError {
        ExecError::OutOfMemory { bytes, reason: std::io::Error::last_os_error().to_string() }
    }

    fn view(section: HANDLE, access: FILE_MAP, len: usize) -> Result<NonNull<u8>, ExecError> {
        // SAFETY: a view at an address of the system's choice affects no existing memory.
        let view = unsafe { MapViewOfFile(section, access, 0, 0, len) };
        NonNull::new(view.Value.cast()).ok_or_else(|| out_of_memory(len))
    }

    fn unmap(view: NonNull<u8>) {
        // SAFETY: the address is that of a view of ours, whose owner is being dropped.
        unsafe { UnmapViewOfFile(MEMORY_MAPPED_VIEW_ADDRESS { Value: view.as_ptr().cast() }) };
    }

    /// Calls what writes to executable memory: through an address where it is not executable.
    pub(super) fn with_writable(write: impl FnOnce()) {
        write();
    }

    /// Makes code visible to the part of the processor that fetches instructions.
    pub(super) fn flush(start: *mut u8, len: usize) {
        // SAFETY: the range is mapped, and the call changes no contents. It cannot fail for memory
        // of this process.
        unsafe { FlushInstructionCache(GetCurrentProcess(), start.cast(), len) };
    }

    impl Chunk {
        /// A section of memory, viewed twice.
        pub(super) fn dual(len: usize) -> Result<Self, ExecError> {
            let (high, low) = ((len as u64 >> 32) as u32, len as u32);
            let protection = PAGE_EXECUTE_READWRITE;
            // SAFETY: the call makes a handle and nothing else; there is no name and no file. The
            // protection is the most that views may ask for, of which none asks for all.
            let section = unsafe {
                CreateFileMappingW(INVALID_HANDLE_VALUE, null(), protection, high, low, null())
            };
            if section.is_null() {
                return Err(out_of_memory(len));
            }
            let both = Self::view_twice(section, len);
            // SAFETY: the handle is ours; views keep the section alive by themselves.
            unsafe { CloseHandle(section) };
            both
        }

        fn view_twice(section: HANDLE, len: usize) -> Result<Self, ExecError> {
            let write = view(section, FILE_MAP_WRITE, len)?;
            match view(section, FILE_MAP_READ | FILE_MAP_EXECUTE, len) {
                Ok(exec) => Ok(Self { exec, write: Some(write), len }),
                Err(error) => {
                    unmap(write);
                    Err(error)
                }
            }
        }

        /// Pages of its own: written, then made executable.
        pub(super) fn single(code: &[u8]) -> Result<Self, ExecError> {
            let len = code.len().max(1);
            // SAFETY: new pages at an address of the system's choice affect no existing memory.
            let exec =
                unsafe { VirtualAlloc(null(), len, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE) };
            let exec = NonNull::new(exec.cast()).ok_or_else(|| out_of_memory(len))?;
            // Given back if anything below fails.
            let mut chunk = Self { exec, write: Some(exec), len };
            chunk.write(0, code);
            let mut earlier = 0;
            // SAFETY: the range is the pages just made, which nobody else knows.
            let changed = unsafe {
                VirtualProtect(exec.as_ptr().cast(), len, PAGE_EXECUTE_READ, &raw mut earlier)
            };
            if changed == 0 {
                return Err(out_of_memory(len));
            }
            chunk.write = None;
            Ok(chunk)
        }
    }

    impl Drop for Chunk {
        fn drop(&mut self) {
            match self.write.filter(|&write| write != self.exec) {
                Some(write) => {
                    unmap(write);
                    unmap(self.exec);
                }
                None => {
                    // SAFETY: the pages are ours, made by one call, and their owner is being dropped.
                    unsafe { VirtualFree(self.exec.as_ptr().cast(), 0, MEM_RELEASE) };
                }
            }
        }
    }
}

#[cfg(not(any(unix, windows)))]
mod map {
    //! A system without any of this.

    use super::{Chunk, ExecError};

    pub(super) fn with_writable(write: impl FnOnce()) {
        write();
    }

    pub(super) fn flush(_start: *mut u8, _len: usize) {}

    impl Chunk {
        pub(super) fn dual(_len: usize) -> Result<Self, ExecError> {
            Err(ExecError::Unavailable("not implemented on this system".into()))
        }

        pub(super) fn single(_code: &[u8]) -> Result<Self, ExecError> {
            Err(ExecError::Unavailable("not implemented on this system".into()))
        }
    }
}

#[cfg(all(
    test,
    any(target_arch = "x86_64", target_arch = "aarch64"),
    any(target_os = "linux", windows)
))]
mod tests {
    use super::*;

    /// `mov eax, imm; ret`
    #[cfg(target_arch = "x86_64")]
    fn returns(value: u32) -> Vec<u8> {
        let mut code = vec![0xb8];
        code.extend_from_slice(&value.to_le_bytes());
        code.push(0xc3);
        code
    }

    /// `movz w0, #low; movk w0, #high, lsl #16; ret`
    #[cfg(target_arch = "aarch64")]
    fn returns(value: u32) -> Vec<u8> {
        let (low, high) = (value & 0xffff, value >> 16);
        let words = [0x5280_0000 | low << 5, 0x72a0_0000 | high << 5, 0xd65f_03c0_u32];
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn call(code: &Code) -> u32 {
        // SAFETY: the code is a complete function of this type, written by the test.
        let function: extern "C" fn() -> u32 = unsafe { std::mem::transmute(code.start()) };
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
