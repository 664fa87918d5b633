//! Vulkan's functions, each of which fails once.

use ash::vk::*;
use std::ffi::c_void;
use std::sync::OnceLock;
use zyx_tests::robust::driver::{Calls, Driver, every_driver_call_may_fail_once};

static DRIVER: Driver = Driver::new();

/// The driver's own functions. All tests use the same driver.
static REAL: OnceLock<(ash::DeviceFnV1_0, ash::DeviceFnV1_2)> = OnceLock::new();

/// Functions that may fail in place of the driver's, and a device that calls them.
macro_rules! functions {
    ($($table:tt { $($name:ident($($arg:ident: $ty:ty),*);)* })*) => {
        $($(
            unsafe extern "system" fn $name($($arg: $ty),*) -> Result {
                let real = REAL.get().expect("invariant: devices are made by `faulty`");
                if DRIVER.fails(stringify!($name)) {
                    return Result::ERROR_OUT_OF_HOST_MEMORY;
                }
                // SAFETY: the arguments are the caller's.
                unsafe { (real.$table.$name)($($arg),*) }
            }
        )*)*

        /// The same device, whose functions fail on demand.
        pub(crate) fn faulty(device: &ash::Device) -> ash::Device {
            let real = (device.fp_v1_0().clone(), device.fp_v1_2().clone());
            let mut stubs = REAL.get_or_init(|| real).clone();
            $($(stubs.$table.$name = $name;)*)*
            let (one, three) = (device.fp_v1_1().clone(), device.fp_v1_3().clone());
            ash::Device::from_parts_1_3(device.handle(), stubs.0, one, stubs.1, three)
        }

        /// All of them.
        const NAMES: &[&str] = &[$($(stringify!($name),)*)*];
    };
}

type Callbacks<'a> = *const AllocationCallbacks<'a>;

functions! {
    0 {
    queue_submit(queue: Queue, n: u32, infos: *const SubmitInfo<'_>, fence: Fence);
    allocate_memory(d: Device, info: *const MemoryAllocateInfo<'_>, c: Callbacks<'_>, to: *mut DeviceMemory);
    map_memory(d: Device, memory: DeviceMemory, offset: u64, size: u64, flags: MemoryMapFlags, to: *mut *mut c_void);
    bind_buffer_memory(d: Device, buffer: Buffer, memory: DeviceMemory, offset: u64);
    create_buffer(d: Device, info: *const BufferCreateInfo<'_>, c: Callbacks<'_>, to: *mut Buffer);
    create_fence(d: Device, info: *const FenceCreateInfo<'_>, c: Callbacks<'_>, to: *mut Fence);
    get_fence_status(d: Device, fence: Fence);
    wait_for_fences(d: Device, n: u32, fences: *const Fence, all: Bool32, timeout: u64);
    create_semaphore(d: Device, info: *const SemaphoreCreateInfo<'_>, c: Callbacks<'_>, to: *mut Semaphore);
    create_query_pool(d: Device, info: *const QueryPoolCreateInfo<'_>, c: Callbacks<'_>, to: *mut QueryPool);
    create_shader_module(d: Device, info: *const ShaderModuleCreateInfo<'_>, c: Callbacks<'_>, to: *mut ShaderModule);
    create_pipeline_cache(d: Device, info: *const PipelineCacheCreateInfo<'_>, c: Callbacks<'_>, to: *mut PipelineCache);
    get_pipeline_cache_data(d: Device, cache: PipelineCache, n: *mut usize, to: *mut c_void);
    create_compute_pipelines(d: Device, cache: PipelineCache, n: u32, infos: *const ComputePipelineCreateInfo<'_>, c: Callbacks<'_>, to: *mut Pipeline);
    create_pipeline_layout(d: Device, info: *const PipelineLayoutCreateInfo<'_>, c: Callbacks<'_>, to: *mut PipelineLayout);
    create_descriptor_set_layout(d: Device, info: *const DescriptorSetLayoutCreateInfo<'_>, c: Callbacks<'_>, to: *mut DescriptorSetLayout);
    create_descriptor_pool(d: Device, info: *const DescriptorPoolCreateInfo<'_>, c: Callbacks<'_>, to: *mut DescriptorPool);
    reset_descriptor_pool(d: Device, pool: DescriptorPool, flags: DescriptorPoolResetFlags);
    allocate_descriptor_sets(d: Device, info: *const DescriptorSetAllocateInfo<'_>, to: *mut DescriptorSet);
    create_command_pool(d: Device, info: *const CommandPoolCreateInfo<'_>, c: Callbacks<'_>, to: *mut CommandPool);
    allocate_command_buffers(d: Device, info: *const CommandBufferAllocateInfo<'_>, to: *mut CommandBuffer);
    begin_command_buffer(commands: CommandBuffer, info: *const CommandBufferBeginInfo<'_>);
    end_command_buffer(commands: CommandBuffer);
    }
    1 {
    wait_semaphores(d: Device, info: *const SemaphoreWaitInfo<'_>, timeout: u64);
    get_semaphore_counter_value(d: Device, semaphore: Semaphore, to: *mut u64);
    }
}

/// What only one kind of device calls: without timelines, and without addresses.
const MINIMAL: [&str; 7] = [
    "create_fence",
    "get_fence_status",
    "wait_for_fences",
    "create_descriptor_pool",
    "reset_descriptor_pool",
    "allocate_descriptor_sets",
    "create_descriptor_set_layout",
];
/// What only another calls, and what depends on time or on what was compiled before.
const FULL: [&str; 4] =
    ["create_semaphore", "wait_semaphores", "get_semaphore_counter_value", "create_query_pool"];
const SOMETIMES: [&str; 4] = [
    "get_pipeline_cache_data",
    "get_semaphore_counter_value",
    "get_fence_status",
    "reset_descriptor_pool",
];

/// Commands that could not be ended are gone, and with them values that were promised.
const FATAL: [&str; 1] = ["end_command_buffer"];

#[test]
fn every_call_may_fail_once() {
    let check = |others: &[&str], backend: fn() -> crate::Vulkan| {
        let kept = |name: &&&str| !others.contains(name) && !SOMETIMES.contains(name);
        let expected: Vec<&str> = NAMES.iter().filter(kept).copied().collect();
        let all = Calls {
            driver: &DRIVER,
            expected: &expected,
            fatal: &FATAL,
            // What is uploaded, what comes before a recorded list, that list, and where memory is
            // the device's own what is read.
            submit: ("queue_submit", 4),
        };
        every_driver_call_may_fail_once("vulkan", all, backend);
    };
    check(&MINIMAL, crate::Vulkan::default);
    check(&FULL, crate::Vulkan::minimal);
}
