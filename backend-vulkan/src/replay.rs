//! Lists of launches recorded once and submitted again.
//!
//! A recorded list is a command buffer that may be submitted any number of times: pipelines, push
//! constants and the barriers between launches. Buffers reach shaders by address, so nothing in
//! it names a buffer; a list is the same when the bytes of all its arguments are. What a caller
//! changes at every call (a step count) therefore makes another list: it is recorded only if it
//! was met before, and until then launched step by step, which costs the host about as much as
//! recording. Buffers come in a short cycle, so a few recordings are kept.
//!
//! Not on devices without addresses, where descriptors would name buffers.

use crate::arena::Region;
use crate::gpu::{Gpu, Result};
use crate::pipeline::Compiled;
use crate::stream::{Hazards, Touched, barrier, seen_by_host};
use ash::vk;
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Recordings kept for one list.
const KEPT: usize = 4;

/// Argument bytes remembered, by their hash, to tell what comes back.
const REMEMBERED: usize = 16;

/// One launch with everything a command buffer needs.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) program: Arc<Compiled>,
    /// The bytes of push constants.
    pub(crate) push: Vec<u8>,
    /// Pipeline and groups of each part that has something to do.
    pub(crate) parts: Vec<(vk::Pipeline, [u32; 3])>,
    pub(crate) touched: Vec<Touched>,
    pub(crate) regions: Vec<Arc<Region>>,
}

/// A list in a command buffer of its own.
#[derive(Debug)]
pub(crate) struct Recorded {
    gpu: Arc<Gpu>,
    pool: vk::CommandPool,
    pub(crate) commands: vk::CommandBuffer,
    /// The bytes of all arguments.
    key: Vec<u8>,
    /// Keeps the pipelines.
    _programs: Vec<Arc<Compiled>>,
}

impl Recorded {
    fn new(gpu: &Arc<Gpu>, key: Vec<u8>, list: &[Launch]) -> Result<Recorded> {
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(gpu.family);
        // SAFETY: a valid device.
        let pool = unsafe { gpu.device.create_command_pool(&info, None) }?;
        let mut recorded = Recorded {
            gpu: Arc::clone(gpu),
            pool,
            commands: vk::CommandBuffer::null(),
            key,
            _programs: list.iter().map(|launch| Arc::clone(&launch.program)).collect(),
        };
        let info =
            vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
        let flags = vk::CommandBufferUsageFlags::SIMULTANEOUS_USE;
        let begin = vk::CommandBufferBeginInfo::default().flags(flags);
        // SAFETY: valid handles of this device.
        unsafe {
            let commands = gpu.device.allocate_command_buffers(&info)?[0];
            recorded.commands = commands;
            gpu.device.begin_command_buffer(commands, &begin)?;
            record(gpu, commands, list);
            gpu.device.end_command_buffer(commands)?;
        }
        Ok(recorded)
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        // SAFETY: submissions keep the recording until they are done.
        unsafe { self.gpu.device.destroy_command_pool(self.pool, None) };
    }
}

/// Records a list after everything submitted before.
///
/// # Safety
/// The command buffer must be one of the device that is being recorded.
unsafe fn record(gpu: &Gpu, commands: vk::CommandBuffer, list: &[Launch]) {
    let mut hazards = Hazards::default();
    barrier(gpu, commands);
    for launch in list {
        if hazards.conflicts(&launch.touched) {
            barrier(gpu, commands);
            hazards = Hazards::default();
        }
        hazards.add(&launch.touched);
        let layout = launch.program.bound.layout;
        for (i, &(pipeline, [x, y, z])) in launch.parts.iter().enumerate() {
            if i > 0 {
                barrier(gpu, commands);
            }
            // SAFETY: valid handles, as the caller guarantees; that a shader stays inside of its
            // arguments is what the verifier of kernels guarantees.
            unsafe {
                let point = vk::PipelineBindPoint::COMPUTE;
                gpu.device.cmd_bind_pipeline(commands, point, pipeline);
                if !launch.push.is_empty() {
                    let stage = vk::ShaderStageFlags::COMPUTE;
                    gpu.device.cmd_push_constants(commands, layout, stage, 0, &launch.push);
                }
                gpu.device.cmd_dispatch(commands, x, y, z);
            }
        }
    }
    seen_by_host(gpu, commands);
}

/// What is kept for one list.
#[derive(Debug, Default)]
pub(crate) struct Replays {
    kept: VecDeque<Arc<Recorded>>,
    met: VecDeque<u64>,
}

impl Replays {
    /// The recording of a list with these arguments, made if the arguments were met before.
    pub(crate) fn find(
        &mut self,
        gpu: &Arc<Gpu>,
        list: &[Launch],
    ) -> Result<Option<Arc<Recorded>>> {
        let key: Vec<u8> = list.iter().flat_map(|launch| launch.push.iter().copied()).collect();
        if let Some(found) = self.kept.iter().find(|kept| kept.key == key) {
            return Ok(Some(Arc::clone(found)));
        }
        let mut hasher = rustc_hash::FxHasher::default();
        key.hash(&mut hasher);
        let hash = hasher.finish();
        if !self.met.contains(&hash) {
            self.met.truncate(REMEMBERED - 1);
            self.met.push_front(hash);
            return Ok(None);
        }
        let recorded = Arc::new(Recorded::new(gpu, key, list)?);
        self.kept.truncate(KEPT - 1);
        self.kept.push_front(Arc::clone(&recorded));
        Ok(Some(recorded))
    }
}
