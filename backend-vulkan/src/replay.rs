//! Lists of launches recorded once and submitted again.
//!
//! A recorded list is a command buffer that may be submitted any number of times: pipelines, grids
//! and barriers, by the dependencies that the core gives. What differs from call to call, scalars and
//! the addresses of buffers, is in a block of arguments of the recording's own, written anew before
//! each submission. The device may still be reading the block of a submission before: then another
//! recording of the list takes its turn, and when [`TURNS`] of them are under way the host waits for
//! the first, as it does where staging has run out.
//!
//! A list is the same while its grids are, which may depend on scalars. It is recorded when it comes
//! for the second time; until then it is launched step by step.
//!
//! Not on devices without addresses, where descriptors would name buffers.

use crate::arena::{Arena, Region};
use crate::gpu::{Gpu, Result};
use crate::pipeline::Compiled;
use crate::spirv::Slot;
use crate::stream::{VulkanStream, barrier, seen_by_host};
use ash::vk::{self, Handle};
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Recordings kept for one list.
const KEPT: usize = 8;

/// Recordings of the same grids, each with arguments of its own.
const TURNS: usize = 3;

/// Lists remembered, by their hash, to tell what comes back.
const REMEMBERED: usize = 16;

/// One launch with everything a command buffer needs.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) program: Arc<Compiled>,
    /// The bytes of its arguments.
    pub(crate) block: Vec<u8>,
    /// Pipeline and groups of each part that has something to do.
    pub(crate) parts: Vec<(vk::Pipeline, [u32; 3])>,
    /// The last launch of the list that must be done before this one.
    pub(crate) after: Option<u32>,
    pub(crate) regions: Vec<Arc<Region>>,
}

impl Launch {
    /// What is recorded of it and may differ.
    fn key(&self) -> impl Iterator<Item = u64> {
        self.parts.iter().flat_map(|&(pipeline, [x, y, z])| {
            [pipeline.as_raw(), u64::from(x) << 32 | u64::from(y), u64::from(z)]
        })
    }
}

/// How often command buffers were recorded for lists that come back, and how often submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayCounts {
    /// Recordings made.
    pub recorded: u64,
    /// Submissions of recordings.
    pub submitted: u64,
}

static RECORDED: AtomicU64 = AtomicU64::new(0);
static SUBMITTED: AtomicU64 = AtomicU64::new(0);

/// The counts of this process, of all its devices.
pub fn replay_counts() -> ReplayCounts {
    let [recorded, submitted] = [&RECORDED, &SUBMITTED].map(|count| count.load(Ordering::Relaxed));
    ReplayCounts { recorded, submitted }
}

/// A list in a command buffer of its own.
#[derive(Debug)]
pub(crate) struct Recorded {
    gpu: Arc<Gpu>,
    pool: vk::CommandPool,
    pub(crate) commands: vk::CommandBuffer,
    pub(crate) barriers: u64,
    /// The arguments of all launches, one behind the other.
    arguments: Region,
    /// Keeps the pipelines.
    _programs: Vec<Arc<Compiled>>,
}

impl Recorded {
    fn new(gpu: &Arc<Gpu>, arguments: Region, list: &[Launch]) -> Result<Recorded> {
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(gpu.family);
        // SAFETY: a valid device.
        let pool = unsafe { gpu.device.create_command_pool(&info, None) }?;
        let mut recorded = Recorded {
            gpu: Arc::clone(gpu),
            pool,
            commands: vk::CommandBuffer::null(),
            barriers: 0,
            arguments,
            _programs: list.iter().map(|launch| Arc::clone(&launch.program)).collect(),
        };
        let address = recorded.arguments.address();
        let info =
            vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
        // Where no scalar has changed, a submission need not wait for the one before.
        let flags = vk::CommandBufferUsageFlags::SIMULTANEOUS_USE;
        let begin = vk::CommandBufferBeginInfo::default().flags(flags);
        // SAFETY: valid handles of this device.
        unsafe {
            let commands = gpu.device.allocate_command_buffers(&info)?[0];
            recorded.commands = commands;
            gpu.device.begin_command_buffer(commands, &begin)?;
            recorded.barriers = record(gpu, commands, list, address);
            gpu.device.end_command_buffer(commands)?;
        }
        RECORDED.fetch_add(1, Ordering::Relaxed);
        Ok(recorded)
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        // SAFETY: submissions keep the recording until they are done.
        unsafe { self.gpu.device.destroy_command_pool(self.pool, None) };
    }
}

/// Records a list after everything submitted before, with arguments in memory from `address` on;
/// gives the number of barriers.
///
/// # Safety
/// The command buffer must be one of the device that is being recorded.
unsafe fn record(gpu: &Gpu, commands: vk::CommandBuffer, list: &[Launch], mut address: u64) -> u64 {
    // The first launch since the last barrier.
    let mut first = 0;
    let mut barriers = 0;
    let mut barrier = || {
        barriers += 1;
        barrier(gpu, commands);
    };
    barrier();
    for (i, launch) in (0..).zip(list) {
        if launch.after.is_some_and(|after| after >= first) {
            barrier();
            first = i;
        }
        let mut push = address.to_le_bytes().to_vec();
        if launch.program.layout.slot == Slot::Either {
            // Loaded, and not used.
            push.resize(8 + launch.block.len(), 0);
        }
        address += launch.block.len() as u64;
        let layout = launch.program.bound.layout;
        for (i, &(pipeline, [x, y, z])) in launch.parts.iter().enumerate() {
            if i > 0 {
                barrier();
            }
            // SAFETY: valid handles, as the caller guarantees; that a shader stays inside of its
            // arguments is what the verifier of kernels guarantees.
            unsafe {
                let point = vk::PipelineBindPoint::COMPUTE;
                gpu.device.cmd_bind_pipeline(commands, point, pipeline);
                let stage = vk::ShaderStageFlags::COMPUTE;
                gpu.device.cmd_push_constants(commands, layout, stage, 0, &push);
                gpu.device.cmd_dispatch(commands, x, y, z);
            }
        }
    }
    seen_by_host(gpu, commands);
    barriers
}

/// A recording with the arguments it was given last.
#[derive(Debug)]
pub(crate) struct Replay {
    recorded: Arc<Recorded>,
    key: Vec<u64>,
    arguments: Vec<u8>,
    /// That of its last submission, 0 before the first.
    ticket: u64,
}

impl Replay {
    /// Submits the list, which uses these regions.
    pub(crate) fn submit(
        &mut self,
        stream: &mut VulkanStream,
        regions: Vec<Arc<Region>>,
    ) -> Result {
        self.ticket = stream.resubmit(Arc::clone(&self.recorded), regions)?;
        SUBMITTED.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Gives it other arguments. The device must be done with its last submission.
    fn rewrite(&mut self, arguments: Vec<u8>) {
        let region = &self.recorded.arguments;
        region.block.write(region.offset, &arguments);
        self.arguments = arguments;
    }
}

/// What is kept for one list.
#[derive(Debug, Default)]
pub(crate) struct Replays {
    kept: VecDeque<Replay>,
    met: VecDeque<u64>,
}

impl Replays {
    /// A recording of this list with these arguments, to be submitted; none if the list was not met
    /// before.
    pub(crate) fn find(
        &mut self,
        gpu: &Arc<Gpu>,
        arena: &Arc<Arena>,
        list: &[Launch],
    ) -> Result<Option<&mut Replay>> {
        let key: Vec<u64> = list.iter().flat_map(Launch::key).collect();
        let arguments: Vec<u8> =
            list.iter().flat_map(|launch| launch.block.iter().copied()).collect();
        let same = |replay: &Replay| replay.key == key;
        let as_it_is = |replay: &Replay| same(replay) && replay.arguments == arguments;
        if let Some(i) = self.kept.iter().position(as_it_is) {
            return Ok(self.kept.get_mut(i));
        }
        // Tickets are done in order, so if any is done, the lowest is.
        let turns = self.kept.iter().filter(|replay| same(replay)).count();
        let all = self.kept.iter().enumerate().filter(|(_, replay)| same(replay));
        if let Some((i, first)) = all.min_by_key(|(_, replay)| replay.ticket)
            && (turns == TURNS || gpu.is_done(first.ticket))
        {
            gpu.wait(first.ticket)?;
            self.kept[i].rewrite(arguments);
            return Ok(self.kept.get_mut(i));
        }
        if turns == 0 && !self.is_met(&key) {
            return Ok(None);
        }
        let recorded = Arc::new(Recorded::new(gpu, arena.holding(&arguments)?, list)?);
        self.kept.truncate(KEPT - 1);
        self.kept.push_front(Replay { recorded, key, arguments, ticket: 0 });
        Ok(self.kept.front_mut())
    }

    /// Whether a list was met of late; it is from now on.
    fn is_met(&mut self, key: &[u64]) -> bool {
        let mut hasher = rustc_hash::FxHasher::default();
        key.hash(&mut hasher);
        let hash = hasher.finish();
        if self.met.contains(&hash) {
            return true;
        }
        self.met.truncate(REMEMBERED - 1);
        self.met.push_front(hash);
        false
    }
}
