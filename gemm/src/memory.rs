//! Aligned host memory: the one place where the CPU backend asks the system for storage.
//!
//! Guarantees: a [`Block`] of our own is aligned to 64 bytes, so that a full vector never straddles a cache
//! line; a block of 1 MiB or more is aligned to 2 MiB, sized in whole 2 MiB pages and marked for
//! huge pages where the system has such marks; running out of memory is an error, never an abort; a block of zero bytes is legal
//! and costs nothing.
//!
//! Why huge pages: the first write to fresh small pages costs about ten times the arithmetic of
//! an elementwise kernel, and a matrix product that walks down columns misses the small TLB on
//! every row. Why not keep freed blocks here: the caching pool of the core sits on top and knows
//! when a block is free.

use std::alloc::Layout;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What keeps memory of others alive.
pub type Lender = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Alignment of every block, in bytes: one cache line, one 512-bit vector.
pub const ALIGNMENT: usize = 64;

/// Alignment that memory of others must have: that of every element, and what allocators give.
pub const LENT_ALIGNMENT: usize = 16;

/// Size and alignment of a huge page, in bytes.
pub const HUGE_PAGE: usize = 2 << 20;

/// What is kept of one block at most: few contractions read the same weights.
const DERIVATIONS: usize = 8;

/// Blocks of at least this many bytes are placed on huge pages.
pub const HUGE_THRESHOLD: usize = 1 << 20;

/// The system refused to provide memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The number of bytes asked for.
    pub bytes: usize,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "out of host memory: {} bytes refused", self.bytes)
    }
}

impl std::error::Error for OutOfMemory {}

/// Where the storage of a block comes from, hence how it goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// No storage: the block holds no bytes.
    Empty,
    /// The global allocator, with this layout.
    Heap(Layout),
    /// Somebody else's, kept by the block.
    Lent,
    /// A private anonymous mapping of this many bytes.
    #[cfg(unix)]
    Mapped(usize),
    /// Pages within a range of addresses that starts here.
    #[cfg(windows)]
    Reserved(NonNull<u8>),
}

/// An owned, aligned region of host memory.
///
/// The bytes are reached by raw pointer only: kernels on several threads write disjoint parts of
/// one block, which no Rust reference could express.
#[derive(Debug)]
pub struct Block {
    ptr: NonNull<u8>,
    len: usize,
    origin: Origin,
    /// How many [`View`]s there are.
    views: AtomicUsize,
    /// Whose it is, as that says.
    home: usize,
    /// What was derived from the bytes, and whether there is anything.
    derived: Mutex<Vec<(Derivation, Option<Kept>)>>,
    is_source: AtomicBool,
    /// Whether others write to it whenever they like.
    is_shared: AtomicBool,
    _owner: Option<Owner>,
}

/// What is kept, and counted.
#[derive(Debug)]
struct Kept(Arc<Block>);

impl Drop for Kept {
    fn drop(&mut self) {
        KEPT.fetch_sub(self.0.len(), Ordering::Relaxed);
    }
}

/// Bytes kept of all blocks, and the most there may be: beside the weights of large models there is
/// no room for another copy of them.
static KEPT: AtomicUsize = AtomicUsize::new(0);
const MOST_KEPT: usize = 512 << 20;

/// Bytes that are [kept](Block::keep) of all blocks of this process.
pub fn kept() -> usize {
    KEPT.load(Ordering::Relaxed)
}

/// What was derived from the bytes of a block by the time that somebody asks.
#[derive(Clone, Debug)]
pub enum Derived {
    /// Nobody asked before: what changes from use to use is not worth deriving anything.
    Unknown,
    /// Nothing, but somebody asked before.
    Wanted,
    /// This.
    Kept(Arc<Block>),
}

/// What tells what is derived from the bytes of a block: a number of whoever does that, and the
/// byte it starts at.
pub type Derivation = (u64, usize);

/// Keeps the storage of a block that is lent.
struct Owner(#[allow(dead_code, reason = "held, never read")] Lender);

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Owner")
    }
}

// SAFETY: a block owns its storage exclusively and has no thread affinity.
unsafe impl Send for Block {}
// SAFETY: a shared block hands out only a raw pointer; whoever dereferences it answers for races.
unsafe impl Sync for Block {}

impl Block {
    /// Allocates `bytes` bytes with unspecified contents.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the system refuses, or if no address range is that long.
    pub fn new(bytes: usize) -> Result<Block, OutOfMemory> {
        Block::allocate(bytes, false)
    }

    /// Allocates `bytes` bytes, all zero.
    ///
    /// # Errors
    /// As [`Block::new`].
    pub fn zeroed(bytes: usize) -> Result<Block, OutOfMemory> {
        Block::allocate(bytes, true)
    }

    const fn of(ptr: NonNull<u8>, len: usize, origin: Origin, owner: Option<Owner>) -> Block {
        let views = AtomicUsize::new(0);
        let derived = Mutex::new(Vec::new());
        let [is_source, is_shared] = [const { AtomicBool::new(false) }; 2];
        Block { ptr, len, origin, views, home: 0, derived, is_source, is_shared, _owner: owner }
    }

    fn allocate(bytes: usize, zero: bool) -> Result<Block, OutOfMemory> {
        let refused = OutOfMemory { bytes };
        if bytes == 0 {
            let ptr = NonNull::new(ALIGNMENT as *mut u8).ok_or(refused)?;
            return Ok(Block::of(ptr, 0, Origin::Empty, None));
        }
        let huge = bytes >= HUGE_THRESHOLD;
        let align = if huge { HUGE_PAGE } else { ALIGNMENT };
        let size = bytes.checked_next_multiple_of(align).ok_or(refused)?;
        let layout = Layout::from_size_align(size, align).map_err(|_| refused)?;
        #[cfg(unix)]
        if huge {
            let ptr = map(size).ok_or(refused)?;
            return Ok(Block::of(ptr, bytes, Origin::Mapped(size), None));
        }
        #[cfg(windows)]
        if huge {
            let (base, ptr) = commit(size).ok_or(refused)?;
            return Ok(Block::of(ptr, bytes, Origin::Reserved(base), None));
        }
        // SAFETY: the layout has a size other than zero.
        let raw = unsafe {
            if zero { std::alloc::alloc_zeroed(layout) } else { std::alloc::alloc(layout) }
        };
        let ptr = NonNull::new(raw).ok_or(refused)?;
        Ok(Block::of(ptr, bytes, Origin::Heap(layout), None))
    }

    /// The memory of `owner`, for reading only, if it starts at a multiple of
    /// [`LENT_ALIGNMENT`].
    pub fn lent(owner: &Lender) -> Option<Block> {
        let bytes = owner.as_ref().as_ref();
        let ptr = NonNull::new(bytes.as_ptr().cast_mut())?;
        if bytes.is_empty() || !ptr.addr().get().is_multiple_of(LENT_ALIGNMENT) {
            return None;
        }
        let owner = Some(Owner(owner.clone()));
        Some(Block::of(ptr, bytes.len(), Origin::Lent, owner))
    }

    /// The same block, marked as somebody's; of nobody's the mark is 0.
    #[must_use]
    pub fn of_home(self, home: usize) -> Block {
        // What has a destructor is not taken apart.
        let mut block = self;
        block.home = home;
        block
    }

    /// Whose the block is.
    pub fn home(&self) -> usize {
        self.home
    }

    /// The address of the first byte; aligned and never null, dangling for an empty block.
    pub fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// Whether the bytes may be written: they are the block's own, and there is no [`View`] of them.
    pub fn is_writable(&self) -> bool {
        self.origin != Origin::Lent && self.views.load(Ordering::Acquire) == 0
    }

    /// Notes that others may write to the bytes unseen, so that nothing is derived from them.
    pub fn share(&self) {
        self.is_shared.store(true, Ordering::Release);
        self.changes();
    }

    /// Forgets what was derived from the bytes: whoever writes to a block calls this before, and whoever
    /// puts it aside.
    pub fn changes(&self) {
        if self.is_source.swap(false, Ordering::AcqRel) {
            self.derived().clear();
        }
    }

    /// What was derived from the bytes as they are now, and [kept](Block::keep).
    pub fn derived_before(&self, from: Derivation) -> Derived {
        if self.is_shared.load(Ordering::Acquire) {
            return Derived::Unknown;
        }
        let mut all = self.derived();
        match all.iter().find(|(known, _)| *known == from) {
            Some((_, Some(Kept(block)))) => return Derived::Kept(block.clone()),
            Some((_, None)) => return Derived::Wanted,
            None => {}
        }
        if all.len() < DERIVATIONS {
            all.push((from, None));
            self.is_source.store(true, Ordering::Release);
        }
        Derived::Unknown
    }

    /// Keeps what is derived, until the bytes change: so many bytes that `derive` writes. `None` if
    /// that is too much.
    pub fn keep(
        &self,
        from: Derivation,
        bytes: usize,
        derive: impl FnOnce(&Block),
    ) -> Option<Arc<Block>> {
        let before = KEPT.fetch_add(bytes, Ordering::Relaxed);
        let block = match before.saturating_add(bytes) <= MOST_KEPT {
            true => Block::new(bytes).ok(),
            false => None,
        };
        let Some(block) = block else {
            KEPT.fetch_sub(bytes, Ordering::Relaxed);
            return None;
        };
        let kept = Kept(Arc::new(block));
        derive(&kept.0);
        let block = kept.0.clone();
        if let Some(place) = self.derived().iter_mut().find(|(known, _)| *known == from) {
            place.1 = Some(kept);
        }
        Some(block)
    }

    fn derived(&self) -> MutexGuard<'_, Vec<(Derivation, Option<Kept>)>> {
        self.derived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of bytes asked for.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the block holds no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The first bytes of a block, for reading. While it lives the block is not
/// [writable](Block::is_writable).
#[derive(Debug)]
pub struct View {
    block: Arc<Block>,
    bytes: usize,
}

impl View {
    /// Looks at the first `bytes` bytes of a block; `None` if it has fewer.
    ///
    /// # Safety
    /// The bytes are initialised, no write to them is under way, and whoever writes to the block
    /// later asks [`Block::is_writable`] before.
    pub unsafe fn new(block: &Arc<Block>, bytes: usize) -> Option<View> {
        if bytes > block.len {
            return None;
        }
        block.views.fetch_add(1, Ordering::AcqRel);
        Some(View { block: block.clone(), bytes })
    }
}

impl AsRef<[u8]> for View {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the block has these bytes, which are initialised and which nobody writes while
        // this lives, as was promised to `new`.
        unsafe { std::slice::from_raw_parts(self.block.as_ptr(), self.bytes) }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.block.views.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        match self.origin {
            Origin::Empty | Origin::Lent => {}
            // SAFETY: the pointer came from the global allocator with this very layout.
            Origin::Heap(layout) => unsafe { std::alloc::dealloc(self.ptr.as_ptr(), layout) },
            #[cfg(unix)]
            Origin::Mapped(size) => unmap(self.ptr.as_ptr(), size),
            #[cfg(windows)]
            Origin::Reserved(base) => release(base),
        }
    }
}

/// Maps `size` bytes (a multiple of [`HUGE_PAGE`]) of zeroed memory at a multiple of it.
///
/// The kernel aligns mappings to small pages only, so one huge page too many is reserved and the
/// unaligned ends are given back.
#[cfg(unix)]
fn map(size: usize) -> Option<NonNull<u8>> {
    let reserved = size.checked_add(HUGE_PAGE)?;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: an anonymous mapping at an address of the kernel's choice touches no other memory.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), reserved, protection, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return None;
    }
    let base = base.cast::<u8>();
    let head = base.align_offset(HUGE_PAGE);
    let start = base.wrapping_add(head);
    unmap(base, head);
    unmap(start.wrapping_add(size), HUGE_PAGE - head);
    #[cfg(any(target_os = "linux", target_os = "android"))]
    // SAFETY: the range is mapped and ours; the advice may be refused and changes no contents.
    unsafe {
        libc::madvise(start.cast(), size, libc::MADV_HUGEPAGE);
    }
    NonNull::new(start)
}

#[cfg(unix)]
fn unmap(start: *mut u8, size: usize) {
    if size > 0 {
        // SAFETY: called with a page-aligned part of a mapping of ours that nobody uses any more.
        // Failure could only leak address space, so the result is not looked at.
        unsafe { libc::munmap(start.cast(), size) };
    }
}

/// `size` bytes (a multiple of [`HUGE_PAGE`]) of zeroed memory at a multiple of it, within a range of
/// addresses, whose start comes first.
///
/// The system aligns ranges to 64 KiB only, so one huge page of addresses too many is reserved. Only
/// what is committed counts as memory. Pages are small: large ones take a privilege that few users have.
#[cfg(windows)]
fn commit(size: usize) -> Option<(NonNull<u8>, NonNull<u8>)> {
    use windows_sys::Win32::System::Memory::{
        MEM_COMMIT, MEM_RESERVE, PAGE_NOACCESS, PAGE_READWRITE, VirtualAlloc,
    };
    let reserved = size.checked_add(HUGE_PAGE)?;
    // SAFETY: a range of addresses of the system's choice touches no other memory.
    let base = unsafe { VirtualAlloc(std::ptr::null(), reserved, MEM_RESERVE, PAGE_NOACCESS) };
    let base = NonNull::new(base.cast::<u8>())?;
    let start = base.as_ptr().wrapping_add(base.as_ptr().align_offset(HUGE_PAGE));
    // SAFETY: the pages lie in the range just reserved, which nobody else knows.
    let start = unsafe { VirtualAlloc(start.cast(), size, MEM_COMMIT, PAGE_READWRITE) };
    let start = NonNull::new(start.cast());
    if start.is_none() {
        release(base);
    }
    Some((base, start?))
}

#[cfg(windows)]
fn release(base: NonNull<u8>) {
    use windows_sys::Win32::System::Memory::{MEM_RELEASE, VirtualFree};
    // SAFETY: the start of a range that was reserved by one call and that nobody uses any more.
    // Failure could only leak address space, so the result is not looked at.
    unsafe { VirtualFree(base.as_ptr().cast(), 0, MEM_RELEASE) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_derived_is_kept_until_the_bytes_change() {
        let block = Block::new(64).unwrap();
        let from = (7, 0);
        let copy = |n: usize| block.keep(from, n, |copy| assert_eq!(copy.len(), n));
        assert!(matches!(block.derived_before(from), Derived::Unknown));
        assert!(matches!(block.derived_before(from), Derived::Wanted));
        assert!(matches!(block.derived_before((7, 4)), Derived::Unknown));
        assert!(copy(MOST_KEPT + 1).is_none() && copy(100).is_some());
        assert!(matches!(block.derived_before(from), Derived::Kept(copy) if copy.len() == 100));
        block.changes();
        assert!(matches!(block.derived_before(from), Derived::Unknown));
        block.share();
        assert!(matches!(block.derived_before(from), Derived::Unknown));
        assert!(matches!(block.derived_before(from), Derived::Unknown));
    }

    /// Writes and reads back the first and the last byte.
    fn touch(block: &Block) {
        let (first, last) = (block.as_ptr(), block.as_ptr().wrapping_add(block.len() - 1));
        // SAFETY: both bytes are inside the block, which nobody else sees.
        unsafe {
            first.write(1);
            last.write(7);
            assert_eq!(last.read(), 7);
        }
    }

    #[test]
    fn blocks_are_aligned_writable_and_sized() {
        for bytes in [1, 63, 64, 65, 4096, HUGE_THRESHOLD - 1, HUGE_THRESHOLD, (5 << 20) + 3] {
            let block = Block::new(bytes).unwrap();
            assert_eq!(block.len(), bytes);
            let align = if bytes >= HUGE_THRESHOLD { HUGE_PAGE } else { ALIGNMENT };
            assert_eq!(block.as_ptr() as usize % align, 0, "{bytes} bytes");
            touch(&block);
        }
    }

    #[test]
    fn zeroed_blocks_are_zero() {
        for bytes in [1, 1000, HUGE_THRESHOLD + 5] {
            // Dirty the allocator's free lists first, so that luck does not pass the test.
            let dirty = Block::new(bytes).unwrap();
            // SAFETY: the block is ours and that long.
            unsafe { dirty.as_ptr().write_bytes(0xff, bytes) };
            drop(dirty);
            let block = Block::zeroed(bytes).unwrap();
            // SAFETY: as above, and zeroed memory is initialised.
            let bytes = unsafe { std::slice::from_raw_parts(block.as_ptr(), bytes) };
            assert!(bytes.iter().all(|&b| b == 0));
        }
    }

    #[test]
    fn empty_blocks_are_legal() {
        let block = Block::new(0).unwrap();
        assert!(block.is_empty());
        assert_eq!(block.as_ptr() as usize % ALIGNMENT, 0);
    }

    #[test]
    fn absurd_sizes_are_errors() {
        for bytes in [1 << 60, isize::MAX as usize, usize::MAX, usize::MAX - HUGE_PAGE] {
            assert_eq!(Block::new(bytes).unwrap_err(), OutOfMemory { bytes });
        }
    }

    #[test]
    fn large_blocks_come_and_go_without_leaking_address_space() {
        // 20 TiB in all: more than the 47-bit address space leaves if blocks leaked 64 times over.
        for _ in 0..1000 {
            let block = Block::new(20 << 30);
            // A machine may refuse this much at once; it must then refuse by an error.
            if let Ok(block) = block {
                assert_eq!(block.as_ptr() as usize % HUGE_PAGE, 0);
            }
        }
    }
}
