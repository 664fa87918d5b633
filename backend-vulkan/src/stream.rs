//! Commands on their way to a device.
//!
//! A stream records into a command buffer, a [`Batch`], and submits it when somebody waits, when
//! it is long, or when the device has nothing to do. A barrier is recorded only where a command
//! touches what an unfinished one before it has written, or writes what that has touched
//! ([`Hazards`]); commands on different data overlap. Barriers are effective across submissions,
//! so the record of accesses is, too.
//!
//! A batch keeps alive what its commands use: regions, programs, staged bytes. It is settled, and
//! lets go of them, when its ticket is done.

use crate::arena::{ALIGN, Arena, Block, Region};
use crate::gpu::{Gpu, Result, Use};
use crate::replay::Recorded;
use ash::vk;
use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

/// Commands after which a batch is submitted.
const LONG: usize = 256;

/// Commands after which it is submitted if the device is idle.
const SHORT: usize = 16;

/// Bytes of a block for staged data, and the most that one copy stages.
const CHUNK: usize = 1 << 20;

/// Bytes of large copies that are staged at once.
const LARGE: usize = 16 << 20;

/// Most bytes staged on one stream.
const STAGED: usize = 64 << 20;

/// Accesses remembered before a barrier is recorded in any case.
const REMEMBERED: usize = 96;

/// A range of bytes that a command touches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touched {
    pub(crate) buffer: vk::Buffer,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) writes: bool,
}

/// What commands since the last barrier touch.
#[derive(Debug, Default)]
struct Hazards {
    touched: Vec<Touched>,
    /// Whether the next command has to come after everything.
    all: bool,
}

impl Hazards {
    /// Whether these accesses have to come after earlier ones.
    fn conflicts(&self, with: &[Touched]) -> bool {
        let clash = |a: &Touched, b: &Touched| {
            (a.writes || b.writes) && a.buffer == b.buffer && a.start < b.end && b.start < a.end
        };
        self.all
            || self.touched.len() + with.len() > REMEMBERED
            || self.touched.iter().any(|a| with.iter().any(|b| clash(a, b)))
    }
}

/// Commands of one submission and what they use.
#[derive(Debug, Default)]
struct Batch {
    /// Null if the command buffer is a recording's.
    commands: vk::CommandBuffer,
    ticket: u64,
    count: usize,
    barriers: u64,
    regions: Vec<Arc<Region>>,
    programs: Vec<Arc<dyn Any + Send + Sync>>,
    /// Blocks for staging, the last with this many bytes taken.
    staging: Vec<Arc<Block>>,
    taken: usize,
    pipeline: vk::Pipeline,
    descriptors: Vec<vk::DescriptorPool>,
}

/// An ordered queue of commands.
#[derive(Debug)]
pub struct VulkanStream {
    gpu: Arc<Gpu>,
    pool: vk::CommandPool,
    idle: Vec<vk::CommandBuffer>,
    open: Option<Batch>,
    /// Batches that the driver has not taken yet, in order.
    ended: VecDeque<Batch>,
    flying: VecDeque<Batch>,
    hazards: Hazards,
    /// Staging blocks of the usual size to use again.
    blocks: Vec<Arc<Block>>,
    /// Pools of descriptors to use again.
    descriptors: Vec<vk::DescriptorPool>,
    staged: usize,
    last: u64,
    /// Whether commands that callers count on will never run.
    lost: bool,
}

/// Sets and bindings of a pool of descriptors.
const SETS: u32 = 64;
const BINDINGS: u32 = 1024;

impl VulkanStream {
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<VulkanStream> {
        let info = vk::CommandPoolCreateInfo::default()
            .queue_family_index(gpu.family)
            .flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER);
        // SAFETY: a valid device.
        let pool = unsafe { gpu.device.create_command_pool(&info, None) }?;
        Ok(VulkanStream {
            gpu: Arc::clone(gpu),
            pool,
            idle: Vec::new(),
            open: None,
            ended: VecDeque::new(),
            flying: VecDeque::new(),
            hazards: Hazards::default(),
            blocks: Vec::new(),
            descriptors: Vec::new(),
            staged: 0,
            last: 0,
            lost: false,
        })
    }

    // Batches.

    /// The batch that is being recorded.
    fn batch(&mut self) -> Result<&mut Batch> {
        if self.lost {
            return Err(vk::Result::ERROR_DEVICE_LOST);
        }
        if self.open.is_none() {
            let commands = match self.idle.pop() {
                Some(commands) => commands,
                None => {
                    let info = vk::CommandBufferAllocateInfo::default()
                        .command_pool(self.pool)
                        .command_buffer_count(1);
                    // SAFETY: valid handles.
                    unsafe { self.gpu.device.allocate_command_buffers(&info) }?[0]
                }
            };
            let info = vk::CommandBufferBeginInfo::default()
                .flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
            // SAFETY: a valid command buffer that is not in use.
            if let Err(error) = unsafe { self.gpu.device.begin_command_buffer(commands, &info) } {
                self.idle.push(commands);
                return Err(error);
            }
            self.open = Some(Batch { commands, ..Batch::default() });
        }
        Ok(self.open.as_mut().expect("invariant: a batch was just opened"))
    }

    /// Submits what is recorded. What the driver refuses is kept, and comes first the next time.
    pub(crate) fn flush(&mut self) -> Result {
        if let Some(batch) = self.open.take() {
            seen_by_host(&self.gpu, batch.commands);
            // SAFETY: a valid command buffer that is being recorded.
            if unsafe { self.gpu.device.end_command_buffer(batch.commands) }.is_err() {
                // Nothing can be done with such a command buffer.
                self.lost = true;
            }
            self.ended.push_back(batch);
        }
        if self.lost {
            return Err(vk::Result::ERROR_DEVICE_LOST);
        }
        while let Some(batch) = self.ended.front() {
            let ticket = self.gpu.submit(batch.commands, batch.barriers)?;
            self.last = ticket;
            let batch = self.ended.pop_front().map(|batch| Batch { ticket, ..batch });
            self.flying.extend(batch);
        }
        Ok(())
    }

    fn recycle(&mut self, batch: Batch) {
        if batch.commands != vk::CommandBuffer::null() {
            self.idle.push(batch.commands);
        }
        for block in batch.staging {
            self.staged -= block.len();
            if block.len() == CHUNK && self.blocks.len() < 4 {
                self.blocks.push(block);
            }
        }
        self.descriptors.extend(batch.descriptors);
    }

    /// Lets go of what batches that are done have used.
    pub(crate) fn settle(&mut self) {
        while self.flying.front().is_some_and(|batch| self.gpu.is_done(batch.ticket)) {
            if let Some(batch) = self.flying.pop_front() {
                self.recycle(batch);
            }
        }
    }

    /// Submits what is recorded and waits until everything is done.
    pub(crate) fn finish(&mut self) -> Result {
        self.flush()?;
        self.gpu.wait(self.last)?;
        self.settle();
        Ok(())
    }

    /// Submits what is recorded and gives the ticket that everything so far is done with.
    pub(crate) fn ticket(&mut self) -> Result<u64> {
        self.flush()?;
        Ok(self.last)
    }

    /// A time stamp after everything so far; none if the device is out of them.
    pub(crate) fn stamp(&mut self) -> Result<Option<u32>> {
        let commands = self.batch()?.commands;
        Ok(self.gpu.stamp(commands))
    }

    /// Lets later commands come after all that was submitted to the device before.
    pub(crate) fn after_all(&mut self) {
        self.hazards.all = true;
    }

    /// Makes room in the record for a command that touches this, with a barrier if need be.
    fn order(&mut self, touched: &[Touched]) -> Result {
        let needs = self.hazards.conflicts(touched);
        let gpu = Arc::clone(&self.gpu);
        let batch = self.batch()?;
        if needs {
            batch.barriers += 1;
            barrier(&gpu, batch.commands);
            self.hazards.touched.clear();
            self.hazards.all = false;
        }
        self.hazards.touched.extend_from_slice(touched);
        Ok(())
    }

    /// Counts a command; submits if there are enough.
    fn counted(&mut self) {
        let Some(batch) = &mut self.open else { return };
        batch.count += 1;
        let count = batch.count;
        if count >= LONG || count.is_multiple_of(SHORT) && !self.gpu.is_busy() {
            // The command is recorded; whoever waits for it is told if the driver still refuses.
            let _ = self.flush();
            self.settle();
        }
    }

    // Commands.

    /// Keeps a region until the batch is done.
    pub(crate) fn keep(&mut self, region: &Arc<Region>) -> Result {
        let batch = self.batch()?;
        if !batch.regions.last().is_some_and(|last| Arc::ptr_eq(last, region)) {
            batch.regions.push(Arc::clone(region));
        }
        Ok(())
    }

    fn touched(region: &Region, offset: usize, bytes: usize, writes: bool) -> Touched {
        let start = region.offset + offset;
        Touched { buffer: region.block.buffer, start, end: start + bytes, writes }
    }

    /// Bytes that host and device see, kept until the batch is done.
    fn stage(&mut self, bytes: usize) -> Result<(Arc<Block>, usize)> {
        let gpu = Arc::clone(&self.gpu);
        let spare = if bytes <= CHUNK { self.blocks.pop() } else { None };
        let batch = self.batch()?;
        let start = batch.taken.next_multiple_of(ALIGN);
        if let Some(block) = batch.staging.last().filter(|block| start + bytes <= block.len()) {
            let block = Arc::clone(block);
            batch.taken = start + bytes;
            self.blocks.extend(spare);
            return Ok((block, start));
        }
        let block = match spare {
            Some(block) => block,
            None => Arc::new(Block::new(&gpu, bytes.max(CHUNK), Use::Upload)?),
        };
        batch.staging.push(Arc::clone(&block));
        batch.taken = bytes;
        self.staged += block.len();
        Ok((block, 0))
    }

    /// Copies from the host; the bytes may be reused on return.
    pub(crate) fn write(&mut self, to: &Arc<Region>, offset: usize, bytes: &[u8]) -> Result {
        self.settle();
        // Nobody else holds the region, so no command uses it.
        if to.block.is_mapped() && Arc::strong_count(to) == 1 {
            to.block.write(to.offset + offset, bytes);
            return Ok(());
        }
        for (n, part) in bytes.chunks(LARGE).enumerate() {
            while self.staged + part.len() > STAGED && !self.flying.is_empty() {
                let ticket = self.flying.front().map_or(0, |batch| batch.ticket);
                self.gpu.wait(ticket)?;
                self.settle();
            }
            let (block, from) = self.stage(part.len())?;
            block.write(from, part);
            self.keep(to)?;
            let offset = offset + n * LARGE;
            self.order(&[Self::touched(to, offset, part.len(), true)])?;
            let start = (to.offset + offset) as u64;
            self.transfer((block.buffer, from as u64), (to.block.buffer, start), part.len())?;
            if part.len() == LARGE {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Waits, and copies to the host.
    pub(crate) fn read(&mut self, from: &Arc<Region>, offset: usize, bytes: &mut [u8]) -> Result {
        if from.block.is_mapped() {
            self.finish()?;
            from.block.read(from.offset + offset, bytes);
            return Ok(());
        }
        // One part is copied to the host while the next is on its way.
        let size = LARGE.min(bytes.len());
        let blocks = [0, 1].map(|_| Block::new(&self.gpu, size, Use::Download));
        let [first, second] = blocks;
        let blocks = [Arc::new(first?), Arc::new(second?)];
        let mut waiting: Option<(u64, usize, &mut [u8])> = None;
        for (n, part) in bytes.chunks_mut(LARGE).enumerate() {
            let block = &blocks[n % 2];
            let at = offset + n * LARGE;
            self.keep(from)?;
            self.batch()?.programs.push(Arc::clone(block) as Arc<dyn Any + Send + Sync>);
            self.order(&[
                Self::touched(from, at, part.len(), false),
                Touched { buffer: block.buffer, start: 0, end: size, writes: true },
            ])?;
            let start = (from.offset + at) as u64;
            self.transfer((from.block.buffer, start), (block.buffer, 0), part.len())?;
            let ticket = self.ticket()?;
            if let Some((ticket, n, part)) = waiting.replace((ticket, n, part)) {
                self.gpu.wait(ticket)?;
                blocks[n % 2].read(0, part);
            }
        }
        if let Some((ticket, n, part)) = waiting {
            self.gpu.wait(ticket)?;
            blocks[n % 2].read(0, part);
        }
        self.finish()
    }

    /// Copies on the device.
    pub(crate) fn copy(
        &mut self,
        (from, start): (&Arc<Region>, usize),
        (to, offset): (&Arc<Region>, usize),
        bytes: usize,
    ) -> Result {
        self.keep(from)?;
        self.keep(to)?;
        self.order(&[
            Self::touched(from, start, bytes, false),
            Self::touched(to, offset, bytes, true),
        ])?;
        let source = (from.block.buffer, (from.offset + start) as u64);
        self.transfer(source, (to.block.buffer, (to.offset + offset) as u64), bytes)
    }

    fn transfer(&mut self, from: (vk::Buffer, u64), to: (vk::Buffer, u64), bytes: usize) -> Result {
        let gpu = Arc::clone(&self.gpu);
        let commands = self.batch()?.commands;
        let range = vk::BufferCopy { src_offset: from.1, dst_offset: to.1, size: bytes as u64 };
        // SAFETY: valid handles; callers keep the ranges inside of the buffers.
        unsafe { gpu.device.cmd_copy_buffer(commands, from.0, to.0, &[range]) };
        self.counted();
        Ok(())
    }

    /// Starts a program: what it touches is ordered, what it uses is kept.
    pub(crate) fn begin_launch<'r>(
        &mut self,
        program: &Arc<dyn Any + Send + Sync>,
        regions: impl Iterator<Item = &'r Arc<Region>>,
        touched: &[Touched],
    ) -> Result {
        self.order(touched)?;
        for region in regions {
            self.keep(region)?;
        }
        let batch = self.batch()?;
        if !batch.programs.last().is_some_and(|last| Arc::ptr_eq(last, program)) {
            batch.programs.push(Arc::clone(program));
        }
        Ok(())
    }

    /// A barrier between launches of one program.
    pub(crate) fn between(&mut self) -> Result {
        let gpu = Arc::clone(&self.gpu);
        let batch = self.batch()?;
        batch.barriers += 1;
        barrier(&gpu, batch.commands);
        Ok(())
    }

    /// A set of descriptors for these ranges.
    pub(crate) fn bind(
        &mut self,
        set_layout: vk::DescriptorSetLayout,
        layout: vk::PipelineLayout,
        ranges: &[vk::DescriptorBufferInfo],
    ) -> Result {
        let gpu = Arc::clone(&self.gpu);
        let set = self.descriptor_set(set_layout, ranges.len())?;
        let each = ranges.iter().enumerate();
        let writes: Vec<_> = each
            .map(|(i, range)| {
                vk::WriteDescriptorSet::default()
                    .dst_set(set)
                    .dst_binding(i as u32)
                    .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                    .buffer_info(std::slice::from_ref(range))
            })
            .collect();
        let commands = self.batch()?.commands;
        // SAFETY: valid handles; the set is new, so no command uses it.
        unsafe {
            gpu.device.update_descriptor_sets(&writes, &[]);
            let point = vk::PipelineBindPoint::COMPUTE;
            gpu.device.cmd_bind_descriptor_sets(commands, point, layout, 0, &[set], &[]);
        }
        Ok(())
    }

    fn descriptor_set(
        &mut self,
        layout: vk::DescriptorSetLayout,
        bindings: usize,
    ) -> Result<vk::DescriptorSet> {
        let gpu = Arc::clone(&self.gpu);
        let layouts = [layout];
        let get = |pool: vk::DescriptorPool| {
            let info = vk::DescriptorSetAllocateInfo::default()
                .descriptor_pool(pool)
                .set_layouts(&layouts);
            // SAFETY: valid handles.
            unsafe { gpu.device.allocate_descriptor_sets(&info) }.map(|sets| sets[0])
        };
        let current = self.batch()?.descriptors.last().copied();
        if let Some(set) = current.and_then(|pool| get(pool).ok()) {
            return Ok(set);
        }
        let pool = match self.descriptors.pop() {
            Some(pool) => {
                let flags = vk::DescriptorPoolResetFlags::empty();
                // SAFETY: a valid pool whose sets no command uses any more.
                if let Err(error) = unsafe { gpu.device.reset_descriptor_pool(pool, flags) } {
                    self.descriptors.push(pool);
                    return Err(error);
                }
                pool
            }
            None => {
                let sizes = [vk::DescriptorPoolSize {
                    ty: vk::DescriptorType::STORAGE_BUFFER,
                    descriptor_count: BINDINGS.max(bindings as u32),
                }];
                let info =
                    vk::DescriptorPoolCreateInfo::default().max_sets(SETS).pool_sizes(&sizes);
                // SAFETY: a valid device.
                unsafe { gpu.device.create_descriptor_pool(&info, None) }?
            }
        };
        self.batch()?.descriptors.push(pool);
        get(pool)
    }

    /// Runs a pipeline over a grid of groups with these push constants.
    pub(crate) fn dispatch(
        &mut self,
        pipeline: vk::Pipeline,
        layout: vk::PipelineLayout,
        push: &[u8],
        groups: [u32; 3],
    ) -> Result {
        let gpu = Arc::clone(&self.gpu);
        let batch = self.batch()?;
        let commands = batch.commands;
        let rebind = std::mem::replace(&mut batch.pipeline, pipeline) != pipeline;
        // SAFETY: valid handles. That the shader stays inside of its arguments is what the
        // verifier of kernels guarantees, or the author of a raw kernel (`RawKernel::new`); the
        // batch keeps what they are in.
        unsafe {
            if rebind {
                let point = vk::PipelineBindPoint::COMPUTE;
                gpu.device.cmd_bind_pipeline(commands, point, pipeline);
            }
            if !push.is_empty() {
                let stage = vk::ShaderStageFlags::COMPUTE;
                gpu.device.cmd_push_constants(commands, layout, stage, 0, push);
            }
            gpu.device.cmd_dispatch(commands, groups[0], groups[1], groups[2]);
        }
        Ok(())
    }

    /// Submits a recorded list, which uses these regions; gives its ticket.
    pub(crate) fn resubmit(
        &mut self,
        recorded: Arc<Recorded>,
        regions: Vec<Arc<Region>>,
    ) -> Result<u64> {
        self.flush()?;
        let ticket = self.gpu.submit(recorded.commands, recorded.barriers)?;
        self.last = ticket;
        self.flying.push_back(Batch {
            ticket,
            regions,
            programs: vec![recorded],
            ..Batch::default()
        });
        // What the list touches is not remembered here.
        self.hazards.all = true;
        self.settle();
        Ok(ticket)
    }

    /// Ends a program.
    pub(crate) fn end_launch(&mut self) {
        self.counted();
    }
}

/// Everything after comes after everything before.
pub(crate) fn barrier(gpu: &Gpu, commands: vk::CommandBuffer) {
    let writes = vk::AccessFlags::SHADER_WRITE | vk::AccessFlags::TRANSFER_WRITE;
    let reads = vk::AccessFlags::SHADER_READ | vk::AccessFlags::TRANSFER_READ;
    let memory =
        vk::MemoryBarrier::default().src_access_mask(writes).dst_access_mask(writes | reads);
    let stages = vk::PipelineStageFlags::COMPUTE_SHADER | vk::PipelineStageFlags::TRANSFER;
    let flags = vk::DependencyFlags::empty();
    // SAFETY: a valid command buffer that is being recorded.
    unsafe {
        gpu.device.cmd_pipeline_barrier(commands, stages, stages, flags, &[memory], &[], &[])
    };
}

/// What is written before is seen by the host, once it has waited.
pub(crate) fn seen_by_host(gpu: &Gpu, commands: vk::CommandBuffer) {
    let memory = vk::MemoryBarrier::default()
        .src_access_mask(vk::AccessFlags::SHADER_WRITE | vk::AccessFlags::TRANSFER_WRITE)
        .dst_access_mask(vk::AccessFlags::HOST_READ);
    let stages = vk::PipelineStageFlags::COMPUTE_SHADER | vk::PipelineStageFlags::TRANSFER;
    let (host, flags) = (vk::PipelineStageFlags::HOST, vk::DependencyFlags::empty());
    // SAFETY: a valid command buffer that is being recorded.
    unsafe { gpu.device.cmd_pipeline_barrier(commands, stages, host, flags, &[memory], &[], &[]) };
}

impl Drop for VulkanStream {
    fn drop(&mut self) {
        // What is recorded takes effect, if the driver takes it.
        if self.finish().is_err() {
            // SAFETY: a valid device. An error means that nothing is going on any more.
            let _ = unsafe { self.gpu.device.device_wait_idle() };
        }
        let batches: Vec<Batch> = self.flying.drain(..).chain(self.ended.drain(..)).collect();
        batches.into_iter().for_each(|batch| self.recycle(batch));
        // SAFETY: the stream's own objects, no longer in use.
        unsafe {
            for pool in &self.descriptors {
                self.gpu.device.destroy_descriptor_pool(*pool, None);
            }
            self.gpu.device.destroy_command_pool(self.pool, None);
        }
    }
}

/// A region that tensors are in, as the arena gives it.
pub(crate) fn region(arena: &Arc<Arena>, bytes: usize) -> Result<Arc<Region>> {
    arena.alloc(bytes).map(Arc::new)
}
