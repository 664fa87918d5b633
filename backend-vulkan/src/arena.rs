//! Memory that kernels are given: large buffers have blocks of their own, small ones share slabs.
//!
//! A [`Block`] is one allocation with one buffer over all of it, mapped where the host sees it.
//! Up to [`SMALL`] bytes come from slabs cut into pieces of one power of two each, which are kept
//! and given out again: drivers limit the number of allocations. A [`Region`] is what a buffer
//! holds; whoever uses it keeps it, so it is freed when the last command that uses it is done.

use crate::gpu::{Gpu, Result, Use};
use ash::vk;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use zyx_core::hal::lock;

/// Bytes up to which buffers share slabs.
const SMALL: usize = 64 << 10;

/// Bytes of a slab.
const SLAB: usize = 1 << 20;

/// Bytes of the smallest piece, and what every region is aligned to: the largest alignment that
/// Vulkan lets a device ask for bindings.
pub(crate) const ALIGN: usize = 256;

/// Sizes of pieces: powers of two from [`ALIGN`] to [`SMALL`].
const CLASSES: usize = (SMALL / ALIGN).ilog2() as usize + 1;

/// Memory with a buffer over all of it.
#[derive(Debug)]
pub(crate) struct Block {
    gpu: Arc<Gpu>,
    pub(crate) buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    /// Where the host sees it, else null.
    mapped: *mut u8,
    /// Where shaders see it, else 0.
    pub(crate) address: u64,
    bytes: usize,
}

// SAFETY: the pointer belongs to the block as the memory does. Whoever reads or writes through it
// sees to it that nobody else, host or device, does so at the same time.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// Memory of `bytes` bytes, which must not be zero.
    pub(crate) fn new(gpu: &Arc<Gpu>, bytes: usize, usage: Use) -> Result<Block> {
        // What no device can have is not even asked for.
        let most = gpu.facts.max_alloc.max(2 * gpu.facts.memory);
        if bytes as u64 > most {
            return Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        }
        let addresses = gpu.facts.target.addresses;
        let mut flags = vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST;
        if addresses {
            flags |= vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        }
        let info = vk::BufferCreateInfo::default().size(bytes as u64).usage(flags);
        let (index, is_mapped) = gpu.memory_type(usage);
        // SAFETY: a valid device.
        let buffer = unsafe { gpu.device.create_buffer(&info, None) }?;
        let mut block = Block {
            gpu: Arc::clone(gpu),
            buffer,
            memory: vk::DeviceMemory::null(),
            mapped: std::ptr::null_mut(),
            address: 0,
            bytes,
        };
        // SAFETY: a valid buffer.
        let needs = unsafe { gpu.device.get_buffer_memory_requirements(buffer) };
        let mut flags =
            vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
        let mut info =
            vk::MemoryAllocateInfo::default().allocation_size(needs.size).memory_type_index(index);
        if addresses {
            info = info.push_next(&mut flags);
        }
        // SAFETY: a valid device; the type is one that buffers of this kind may have, as all
        // plain types are.
        unsafe {
            block.memory = gpu.device.allocate_memory(&info, None)?;
            gpu.device.bind_buffer_memory(buffer, block.memory, 0)?;
            if is_mapped {
                let flags = vk::MemoryMapFlags::empty();
                let mapped = gpu.device.map_memory(block.memory, 0, vk::WHOLE_SIZE, flags)?;
                block.mapped = mapped.cast();
            }
            if addresses {
                let info = vk::BufferDeviceAddressInfo::default().buffer(buffer);
                block.address = gpu.device.get_buffer_device_address(&info);
            }
        }
        Ok(block)
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Whether the host sees it.
    pub(crate) fn is_mapped(&self) -> bool {
        !self.mapped.is_null()
    }

    /// Copies from the host. Nothing on the device may use these bytes.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(self.is_mapped() && offset.checked_add(bytes.len()) <= Some(self.bytes));
        // SAFETY: the range is inside of the mapping, as was just seen to; coherent memory needs
        // no flushing.
        unsafe {
            let to = self.mapped.add(offset);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    }

    /// What the device has finished writing and does not write again while the slice lives.
    pub(crate) fn slice(&self, offset: usize, bytes: usize) -> Option<&[u8]> {
        if !self.is_mapped() || offset.checked_add(bytes)? > self.bytes {
            return None;
        }
        // SAFETY: the range is inside of the mapping, which lives as long as the block; callers see to
        // it that the bytes are written and stay as they are.
        Some(unsafe { std::slice::from_raw_parts(self.mapped.add(offset), bytes) })
    }

    /// Copies to the host what the device has finished writing.
    pub(crate) fn read(&self, offset: usize, bytes: &mut [u8]) {
        assert!(self.is_mapped() && offset.checked_add(bytes.len()) <= Some(self.bytes));
        // SAFETY: as in `write`.
        unsafe {
            let from = self.mapped.add(offset);
            std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len());
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: users keep the block until the device is done with it. Freeing unmaps; null
        // handles are ignored.
        unsafe {
            self.gpu.device.destroy_buffer(self.buffer, None);
            self.gpu.device.free_memory(self.memory, None);
        }
    }
}

/// Where a region lies.
#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) block: Arc<Block>,
    pub(crate) offset: usize,
    /// Bytes, a multiple of [`ALIGN`].
    pub(crate) bytes: usize,
    class: Option<usize>,
    arena: Arc<Arena>,
}

impl Region {
    /// Where shaders see it, else garbage.
    pub(crate) fn address(&self) -> u64 {
        self.block.address + self.offset as u64
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.arena.in_use.fetch_sub(self.bytes, Ordering::Relaxed);
        if let Some(class) = self.class {
            lock(&self.arena.free[class]).push((Arc::clone(&self.block), self.offset));
        }
    }
}

/// A piece of a slab.
type Piece = (Arc<Block>, usize);

/// All memory of one device that tensors are in, or all that arguments are in.
#[derive(Debug)]
pub(crate) struct Arena {
    gpu: Arc<Gpu>,
    usage: Use,
    free: [Mutex<Vec<Piece>>; CLASSES],
    in_use: AtomicUsize,
}

impl Arena {
    pub(crate) fn new(gpu: &Arc<Gpu>, usage: Use) -> Arc<Arena> {
        Arc::new(Arena {
            gpu: Arc::clone(gpu),
            usage,
            free: std::array::from_fn(|_| Mutex::default()),
            in_use: AtomicUsize::new(0),
        })
    }

    /// Bytes in use.
    pub(crate) fn in_use(&self) -> usize {
        self.in_use.load(Ordering::Relaxed)
    }

    /// A region that holds these bytes, of an arena that the host sees.
    pub(crate) fn holding(self: &Arc<Arena>, bytes: &[u8]) -> Result<Region> {
        let region = self.alloc(bytes.len())?;
        region.block.write(region.offset, bytes);
        Ok(region)
    }

    /// A region of at least `bytes` bytes.
    pub(crate) fn alloc(self: &Arc<Arena>, bytes: usize) -> Result<Region> {
        let rounded = bytes.max(1).checked_next_multiple_of(ALIGN);
        let rounded = rounded.ok_or(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY)?;
        let region = if rounded <= SMALL {
            let class = (rounded.next_power_of_two() / ALIGN).ilog2() as usize;
            let (block, offset) = self.piece(class)?;
            Region { block, offset, bytes: ALIGN << class, class: Some(class), arena: self.clone() }
        } else {
            let block = self.block(rounded)?;
            Region { block, offset: 0, bytes: rounded, class: None, arena: self.clone() }
        };
        self.in_use.fetch_add(region.bytes, Ordering::Relaxed);
        Ok(region)
    }

    fn piece(&self, class: usize) -> Result<Piece> {
        if let Some(piece) = lock(&self.free[class]).pop() {
            return Ok(piece);
        }
        let block = self.block(SLAB)?;
        let rest = (ALIGN << class..SLAB).step_by(ALIGN << class).rev();
        lock(&self.free[class]).extend(rest.map(|offset| (Arc::clone(&block), offset)));
        Ok((block, 0))
    }

    /// Memory of the driver's; if it has none, of what slabs that nothing is in give back. Of what
    /// the host writes on a card there may be little, and others use it: the host has more.
    fn block(&self, bytes: usize) -> Result<Arc<Block>> {
        let new = |usage| Block::new(&self.gpu, bytes, usage).map(Arc::new);
        match new(self.usage) {
            Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY) if self.release() => new(self.usage),
            Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY) if self.usage == Use::Arguments => {
                new(Use::Upload)
            }
            made => made,
        }
    }

    /// Frees slabs that nothing is in; whether there were any.
    fn release(&self) -> bool {
        let mut released = false;
        for (class, free) in self.free.iter().enumerate() {
            let mut free = lock(free);
            let mut pieces: FxHashMap<vk::Buffer, usize> = FxHashMap::default();
            for (block, _) in free.iter() {
                *pieces.entry(block.buffer).or_default() += 1;
            }
            let before = free.len();
            free.retain(|(block, _)| pieces[&block.buffer] < SLAB / (ALIGN << class));
            released |= free.len() < before;
        }
        released
    }
}
