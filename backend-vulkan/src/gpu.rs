//! An open device: its queue, its memory, and what has been submitted.
//!
//! There is one queue. Work on it is numbered: [`Gpu::submit`] gives a ticket, and tickets are
//! done in order, which a timeline semaphore tells, or on devices without them a fence for each.
//! A command buffer that begins with a barrier comes after everything with a lower ticket, so
//! streams need no semaphores among themselves.

use crate::caps::Facts;
use crate::instance::{self, Vulkan};
use ash::vk;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use zyx_core::hal::{DeviceKind, TrafficCounter, Watch, ask_until, lock};

/// A number of time stamps that events share.
const QUERIES: u32 = 1024;

/// What memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Tensors.
    Device,
    /// The host writes, the device reads.
    Upload,
    /// The device writes, the host reads.
    Download,
    /// The host writes a little, every thread of a launch reads it.
    Arguments,
}

/// A type of memory.
#[derive(Clone, Copy, Debug)]
struct MemoryType {
    index: u32,
    mapped: bool,
}

/// What has been submitted.
#[derive(Debug)]
struct Submitted {
    queue: vk::Queue,
    ticket: u64,
    /// On devices without timelines, a fence for each ticket that is not known to be done.
    fences: VecDeque<(u64, vk::Fence)>,
}

/// An open device.
pub(crate) struct Gpu {
    vulkan: &'static Vulkan,
    pub(crate) device: ash::Device,
    pub(crate) facts: Facts,
    pub(crate) family: u32,
    pub(crate) traffic: TrafficCounter,
    types: [MemoryType; 4],
    submitted: Mutex<Submitted>,
    /// The highest ticket known to be done.
    done: AtomicU64,
    timeline: Option<vk::Semaphore>,
    stamps: Option<(vk::QueryPool, Mutex<Vec<u32>>)>,
}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Gpu({})", self.facts.name)
    }
}

/// A driver's result.
pub(crate) type Result<T = ()> = std::result::Result<T, vk::Result>;

/// The work that waited was stopped: no call of the driver gives this to us, as waits have no end.
pub(crate) const STOPPED: vk::Result = vk::Result::TIMEOUT;

/// Whether an error means that nothing is going on any more.
fn ends_all(error: vk::Result) -> bool {
    error == vk::Result::ERROR_DEVICE_LOST
}

impl Gpu {
    pub(crate) fn open(
        vulkan: &'static Vulkan,
        physical: vk::PhysicalDevice,
        facts: Facts,
    ) -> Result<Arc<Gpu>> {
        let (family, _) = instance::family(&vulkan.instance, physical)
            .ok_or(vk::Result::ERROR_INITIALIZATION_FAILED)?;
        let device = create(vulkan, physical, family, &facts)?;
        #[cfg(test)]
        let device = crate::faults::faulty(&device);
        // SAFETY: the family was asked for one queue.
        let queue = unsafe { device.get_device_queue(family, 0) };
        // SAFETY: a device of this instance.
        let memory = unsafe { vulkan.instance.get_physical_device_memory_properties(physical) };
        let types = [Use::Device, Use::Upload, Use::Download, Use::Arguments]
            .map(|usage| memory_type(&memory, usage, facts.unified));
        let mut gpu = Gpu {
            vulkan,
            device,
            family,
            traffic: TrafficCounter::default(),
            types,
            submitted: Mutex::new(Submitted { queue, ticket: 0, fences: VecDeque::new() }),
            done: AtomicU64::new(0),
            timeline: None,
            stamps: None,
            facts,
        };
        if gpu.facts.timeline {
            let mut kind =
                vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
            let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
            // SAFETY: a valid device, with the feature enabled.
            gpu.timeline = Some(unsafe { gpu.device.create_semaphore(&info, None) }?);
        }
        if gpu.facts.timestamp_period > 0.0 {
            let info = vk::QueryPoolCreateInfo::default()
                .query_type(vk::QueryType::TIMESTAMP)
                .query_count(QUERIES);
            // SAFETY: a valid device.
            let pool = unsafe { gpu.device.create_query_pool(&info, None) }?;
            gpu.stamps = Some((pool, Mutex::new((0..QUERIES).rev().collect())));
        }
        Ok(Arc::new(gpu))
    }

    /// Whether the validation layer watches.
    pub(crate) fn is_validated(&self) -> bool {
        self.vulkan.validated
    }

    /// Which type of memory is for what, and whether the host sees it.
    pub(crate) fn memory_type(&self, usage: Use) -> (u32, bool) {
        let found = self.types[usage as usize];
        (found.index, found.mapped)
    }

    // Submission.

    /// Starts recorded commands, with so many barriers between them, after all that were submitted
    /// before; gives their ticket.
    pub(crate) fn submit(&self, commands: vk::CommandBuffer, barriers: u64) -> Result<u64> {
        let mut submitted = lock(&self.submitted);
        let ticket = submitted.ticket + 1;
        let (commands, values) = ([commands], [ticket]);
        let info = vk::SubmitInfo::default().command_buffers(&commands);
        match self.timeline {
            Some(timeline) => {
                let signals = [timeline];
                let mut numbers =
                    vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&values);
                let info = info.signal_semaphores(&signals).push_next(&mut numbers);
                // SAFETY: valid handles; the lock makes this the only use of the queue, and the
                // value the largest so far.
                unsafe { self.device.queue_submit(submitted.queue, &[info], vk::Fence::null()) }?;
            }
            None => {
                let plain = vk::FenceCreateInfo::default();
                // SAFETY: a valid device.
                let fence = unsafe { self.device.create_fence(&plain, None) }?;
                // SAFETY: valid handles; the lock makes this the only use of the queue.
                let result = unsafe { self.device.queue_submit(submitted.queue, &[info], fence) };
                if let Err(error) = result {
                    // SAFETY: the fence is not in use, as nothing was submitted.
                    unsafe { self.device.destroy_fence(fence, None) };
                    return Err(error);
                }
                submitted.fences.push_back((ticket, fence));
            }
        }
        submitted.ticket = ticket;
        self.traffic.submitted();
        self.traffic.ordered(barriers);
        Ok(ticket)
    }

    /// Waits until the work with this ticket is done, or with [`STOPPED`] until the work that waits is stopped.
    pub(crate) fn wait(&self, ticket: u64) -> Result {
        if self.done.load(Ordering::Acquire) >= ticket {
            return Ok(());
        }
        // A thread that a driver wakes is late by up to 200 us, so a GPU is asked.
        if !self.facts.cpu || Watch::here().may_stop() {
            let kind = if self.facts.cpu { DeviceKind::Software } else { DeviceKind::Gpu };
            return match ask_until(kind, || self.reached(ticket))? {
                true => Ok(()),
                false => Err(STOPPED),
            };
        }
        match self.timeline {
            Some(timeline) => {
                let (semaphores, values) = ([timeline], [ticket]);
                let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
                // SAFETY: valid handles.
                unsafe { self.device.wait_semaphores(&info, u64::MAX) }?;
                self.done.fetch_max(ticket, Ordering::AcqRel);
                Ok(())
            }
            None => self.retire(ticket, true).map(|_| ()),
        }
    }

    /// Whether the work with this ticket is done, or will never be.
    pub(crate) fn is_done(&self, ticket: u64) -> bool {
        self.done.load(Ordering::Acquire) >= ticket || self.reached(ticket).unwrap_or_else(ends_all)
    }

    /// Asks the driver whether the work with this ticket is done.
    fn reached(&self, ticket: u64) -> Result<bool> {
        let Some(timeline) = self.timeline else { return self.retire(ticket, false) };
        // SAFETY: valid handles.
        let value = unsafe { self.device.get_semaphore_counter_value(timeline) }?;
        self.done.fetch_max(value, Ordering::AcqRel);
        Ok(value >= ticket)
    }

    /// Whether anything submitted is not done.
    pub(crate) fn is_busy(&self) -> bool {
        let ticket = lock(&self.submitted).ticket;
        !self.is_done(ticket)
    }

    /// Lets go of fences up to a ticket, those that are done or after waiting; whether all were.
    fn retire(&self, ticket: u64, waits: bool) -> Result<bool> {
        let mut submitted = lock(&self.submitted);
        while let Some(&(number, fence)) = submitted.fences.front() {
            if number > ticket {
                break;
            }
            // SAFETY: a valid fence, which only this critical section destroys.
            let state = unsafe {
                match waits {
                    true => self.device.wait_for_fences(&[fence], true, u64::MAX).map(|()| true),
                    false => self.device.get_fence_status(fence),
                }
            };
            if !state? {
                return Ok(false);
            }
            submitted.fences.pop_front();
            // SAFETY: signalled, so not in use.
            unsafe { self.device.destroy_fence(fence, None) };
            self.done.fetch_max(number, Ordering::AcqRel);
        }
        Ok(true)
    }

    // Time stamps.

    /// Writes the time into a free stamp when everything recorded before is done.
    pub(crate) fn stamp(&self, commands: vk::CommandBuffer) -> Option<u32> {
        let (pool, free) = self.stamps.as_ref()?;
        let query = lock(free).pop()?;
        let stage = vk::PipelineStageFlags::BOTTOM_OF_PIPE;
        // SAFETY: valid handles; nobody else has this query.
        unsafe {
            self.device.cmd_reset_query_pool(commands, *pool, query, 1);
            self.device.cmd_write_timestamp(commands, stage, *pool, query);
        }
        Some(query)
    }

    pub(crate) fn free_stamp(&self, query: u32) {
        if let Some((_, free)) = &self.stamps {
            lock(free).push(query);
        }
    }

    /// The time of a stamp that has been written, in nanoseconds.
    pub(crate) fn time(&self, query: u32) -> Option<f64> {
        let (pool, _) = self.stamps.as_ref()?;
        let mut value = [0u64];
        let flags = vk::QueryResultFlags::TYPE_64;
        // SAFETY: valid handles; one number fits.
        unsafe { self.device.get_query_pool_results(*pool, query, &mut value, flags) }.ok()?;
        Some(value[0] as f64 * f64::from(self.facts.timestamp_period))
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // SAFETY: everything made on the device keeps the device, so only this is left. Nothing
        // is in use once it is idle; an error means that nothing is going on any more.
        unsafe {
            let _ = self.device.device_wait_idle();
            for (_, fence) in &lock(&self.submitted).fences {
                self.device.destroy_fence(*fence, None);
            }
            if let Some(timeline) = self.timeline {
                self.device.destroy_semaphore(timeline, None);
            }
            if let Some((pool, _)) = &self.stamps {
                self.device.destroy_query_pool(*pool, None);
            }
            self.device.destroy_device(None);
        }
    }
}

/// A device with the features that the facts count on, and no other.
fn create(
    vulkan: &Vulkan,
    physical: vk::PhysicalDevice,
    family: u32,
    facts: &Facts,
) -> Result<ash::Device> {
    let target = &facts.target;
    let core = vk::PhysicalDeviceFeatures::default()
        .shader_int64(target.int64)
        .shader_float64(target.float64)
        .shader_int16(target.int16);
    let mut v11 =
        vk::PhysicalDeviceVulkan11Features::default().storage_buffer16_bit_access(target.int16);
    let mut v12 = vk::PhysicalDeviceVulkan12Features::default()
        .buffer_device_address(target.addresses)
        .timeline_semaphore(facts.timeline)
        .storage_buffer8_bit_access(target.int8)
        .shader_int8(target.int8)
        .shader_buffer_int64_atomics(target.atomics64)
        .shader_shared_int64_atomics(target.atomics64);
    let mut sizes = vk::PhysicalDeviceSubgroupSizeControlFeatures::default()
        .subgroup_size_control(true)
        .compute_full_subgroups(true);
    let optional = [
        (ash::ext::pipeline_creation_feedback::NAME, facts.feedback),
        (ash::ext::subgroup_size_control::NAME, facts.lanes.size > 0),
    ];
    let extensions: Vec<_> = optional
        .iter()
        .filter(|extension| extension.1)
        .map(|extension| extension.0.as_ptr())
        .collect();
    let priorities = [1.0];
    let queues = [vk::DeviceQueueCreateInfo::default()
        .queue_family_index(family)
        .queue_priorities(&priorities)];
    let mut info = vk::DeviceCreateInfo::default()
        .queue_create_infos(&queues)
        .enabled_extension_names(&extensions)
        .enabled_features(&core);
    let optional = [target.addresses, facts.timeline, target.int8, target.int16];
    if optional.contains(&true) {
        info = info.push_next(&mut v11).push_next(&mut v12);
    }
    if facts.lanes.size > 0 {
        info = info.push_next(&mut sizes);
    }
    // SAFETY: a device of this instance; the structures are alive and ask for what the device
    // said it has.
    unsafe { vulkan.instance.create_device(physical, &info, None) }
}

/// The best type of memory for a use.
fn memory_type(
    memory: &vk::PhysicalDeviceMemoryProperties,
    usage: Use,
    unified: bool,
) -> MemoryType {
    use vk::MemoryPropertyFlags as Flags;
    let visible = Flags::HOST_VISIBLE | Flags::HOST_COHERENT;
    let score = |flags: Flags| -> u32 {
        let has = |wanted: Flags, points: u32| if flags.contains(wanted) { points } else { 0 };
        match usage {
            Use::Device if unified => {
                has(visible, 8) + has(Flags::DEVICE_LOCAL, 4) + has(Flags::HOST_CACHED, 2)
            }
            // Memory that both see is scarce or slow on a card.
            Use::Device => has(Flags::DEVICE_LOCAL, 8) + 2 - has(Flags::HOST_VISIBLE, 2),
            Use::Upload => has(visible, 8) + 4 - has(Flags::DEVICE_LOCAL, 4),
            Use::Download => has(visible, 8) + has(Flags::HOST_CACHED, 4),
            Use::Arguments => has(visible, 8) + has(Flags::DEVICE_LOCAL, 4),
        }
    };
    let types = memory.memory_types_as_slice().iter().enumerate();
    // Memory with other properties than these needs features that are not enabled.
    let plain = Flags::DEVICE_LOCAL | visible | Flags::HOST_CACHED;
    let usable = types.filter(|(_, t)| plain.contains(t.property_flags));
    // Of equals the first: drivers list the better ones first.
    let best = usable.rev().max_by_key(|(_, t)| score(t.property_flags));
    let (index, flags) = best.map_or((0, Flags::empty()), |(i, t)| (i, t.property_flags));
    let mapped = flags.contains(visible) && (usage != Use::Device || unified);
    MemoryType { index: index as u32, mapped }
}
