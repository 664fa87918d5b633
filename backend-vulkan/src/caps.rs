//! What a device reports, and the capabilities that follow.
//!
//! [`Facts`] holds every answer of the driver that matters; [`caps`] and [`Facts::target`] are
//! pure functions of it, so a test can take a device apart and look at a smaller one.

use crate::instance::{self, Vulkan};
use crate::spirv::{self, Target};
use ash::vk;
use std::ffi::CStr;
use zyx_core::hal::{Caps, HURRIED_LAUNCH, Progress, Rounding, WATCHED_LAUNCH};
use zyx_core::{BinaryOp, DType, DTypeSet, TernaryOp, UnaryOp};

/// Threads of a subgroup in generated kernels with shuffles.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lanes {
    /// A power of two; 0 where there are no shuffles, or pipelines cannot ask for full subgroups.
    pub(crate) size: u32,
    /// A driver has several sizes, so that pipelines ask for this one.
    pub(crate) varies: bool,
}

impl Lanes {
    /// The size that drivers call theirs, where pipelines can have full subgroups of it, as groups of
    /// up to `threads` need.
    fn of(
        subgroup: &vk::PhysicalDeviceSubgroupProperties<'_>,
        sizes: &vk::PhysicalDeviceSubgroupSizeControlProperties<'_>,
        threads: u32,
    ) -> Lanes {
        let shuffles = vk::SubgroupFeatureFlags::BASIC | vk::SubgroupFeatureFlags::SHUFFLE;
        let compute = vk::ShaderStageFlags::COMPUTE;
        let (size, varies) =
            (subgroup.subgroup_size, sizes.min_subgroup_size != sizes.max_subgroup_size);
        let can_be_asked_for = sizes.required_subgroup_size_stages.contains(compute)
            && threads.div_ceil(size.max(1)) <= sizes.max_compute_workgroup_subgroups;
        let usable = subgroup.supported_stages.contains(compute)
            && subgroup.supported_operations.contains(shuffles)
            && size.is_power_of_two()
            && (!varies || can_be_asked_for);
        if usable { Lanes { size, varies } } else { Lanes::default() }
    }
}

/// What the driver says of a device.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) name: String,
    /// Device and driver with versions: what a compiled pipeline depends on.
    pub(crate) identity: String,
    pub(crate) memory: u64,
    /// A driver that computes on the CPU.
    pub(crate) cpu: bool,
    /// A driver that silently ends the loops of a thread after [`MESA_ITERATIONS`].
    pub(crate) ends_loops: bool,
    /// A driver that rounds quotients and square roots of `f32` correctly.
    pub(crate) exact_division: bool,
    /// Host and device share memory.
    pub(crate) unified: bool,
    pub(crate) max_local: usize,
    pub(crate) max_local_sizes: [u32; 3],
    pub(crate) max_groups: [u32; 3],
    pub(crate) max_buffers: usize,
    /// Bytes of a descriptor.
    pub(crate) max_binding: u64,
    pub(crate) offset_align: usize,
    pub(crate) max_alloc: u64,
    /// Nanoseconds per unit of time stamps, 0 if there are none.
    pub(crate) timestamp_period: f32,
    pub(crate) timeline: bool,
    /// Bits of `VkSubgroupFeatureFlags`: operations among the threads of a subgroup, for raw kernels.
    pub(crate) subgroup: u32,
    /// Subgroups of generated kernels.
    pub(crate) lanes: Lanes,
    /// The device takes SPIR-V up to version 1 and this, in raw kernels.
    pub(crate) spirv_minor: u8,
    /// The driver tells of a pipeline whether it was in the cache.
    pub(crate) feedback: bool,
    /// Estimated nanoseconds after which the driver may stop a launch, 0 for never.
    pub(crate) max_launch: u64,
    /// Groups that have started go on, whatever others do. Vulkan does not say so; NVIDIA's devices
    /// that have matrix instructions schedule threads independently.
    pub(crate) go_on: bool,
    pub(crate) target: Target,
}

impl Facts {
    pub(crate) fn of(vulkan: &Vulkan, device: vk::PhysicalDevice) -> Facts {
        let mut controls = vk::PhysicalDeviceFloatControlsProperties::default();
        let mut sizes = vk::PhysicalDeviceSubgroupSizeControlProperties::default();
        let mut limits = vk::PhysicalDeviceMaintenance3Properties::default();
        let mut subgroup = vk::PhysicalDeviceSubgroupProperties::default();
        let mut properties = vk::PhysicalDeviceProperties2::default()
            .push_next(&mut limits)
            .push_next(&mut subgroup);
        // SAFETY: a device of this instance.
        let first = unsafe { vulkan.instance.get_physical_device_properties(device) };
        let modern = first.api_version >= vk::API_VERSION_1_2;
        if modern {
            properties = properties.push_next(&mut controls);
        }
        let has_sizes = has_subgroup_sizes(vulkan, device);
        if has_sizes {
            properties = properties.push_next(&mut sizes);
        }
        // SAFETY: a device of this instance, of a version, or with an extension, that knows the structures.
        unsafe { vulkan.instance.get_physical_device_properties2(device, &mut properties) };
        let properties = properties.properties;
        let enabled = Features::of(vulkan, device, modern);
        let max_alloc = limits.max_memory_allocation_size;
        let l = &properties.limits;
        let cpu = properties.device_type == vk::PhysicalDeviceType::CPU;
        let unified = cpu || properties.device_type == vk::PhysicalDeviceType::INTEGRATED_GPU;
        let widths = |all: [(u32, vk::Bool32); 2]| {
            all.into_iter().filter(|w| w.1 == vk::TRUE).map(|w| w.0).collect::<Vec<_>>()
        };
        let mut preserves = widths([
            (32, controls.shader_signed_zero_inf_nan_preserve_float32),
            (64, controls.shader_signed_zero_inf_nan_preserve_float64),
        ]);
        let mut denormals = widths([
            (32, controls.shader_denorm_preserve_float32),
            (64, controls.shader_denorm_preserve_float64),
        ]);
        // Asking for widths one by one is not everybody's.
        if controls.denorm_behavior_independence != vk::ShaderFloatControlsIndependence::ALL {
            denormals.retain(|&width| width == 32);
        }
        // Without 64-bit integers the bits of an `f64` cannot be looked at.
        let doubles = enabled.core.shader_float64 == vk::TRUE;
        let float64 = doubles && enabled.core.shader_int64 == vk::TRUE;
        if !float64 {
            preserves.retain(|&width| width == 32);
            denormals.retain(|&width| width == 32);
        }
        // NVIDIA's driver says it cannot keep denormals, flushes them unless asked to keep them,
        // and then does (seen with 580.159 on an H200, all of the op table).
        if modern && properties.vendor_id == NVIDIA && denormals.is_empty() {
            denormals.push(32);
        }
        let name = properties.device_name_as_c_str().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        let identity = format!(
            "{name}; {:#x}:{:#x}; driver {:#x}; api {:#x}",
            properties.vendor_id,
            properties.device_id,
            properties.driver_version,
            properties.api_version
        );
        let addresses = enabled.addresses && enabled.core.shader_int64 == vk::TRUE;
        let lavapipe = cpu && properties.vendor_id == vk::VendorId::MESA.as_raw() as u32;
        Facts {
            identity,
            memory: memory(vulkan, device),
            cpu,
            // Seen with Mesa 22.3, not with 25.0; versions between were not tried.
            ends_loops: lavapipe && vk::api_version_major(properties.driver_version) < 25,
            exact_division: cpu,
            unified,
            max_local: l.max_compute_work_group_invocations as usize,
            max_local_sizes: l.max_compute_work_group_size,
            max_groups: l.max_compute_work_group_count,
            max_buffers: l.max_per_stage_descriptor_storage_buffers as usize,
            max_binding: l.max_storage_buffer_range.into(),
            offset_align: l.min_storage_buffer_offset_alignment as usize,
            max_alloc,
            // Whether a driver watches its GPU cannot be asked.
            max_launch: if cpu { 0 } else { WATCHED_LAUNCH },
            go_on: properties.vendor_id == NVIDIA
                && has_extension(vulkan, device, ash::khr::cooperative_matrix::NAME),
            timestamp_period: match instance::family(&vulkan.instance, device) {
                Some((_, bits)) if bits > 0 => l.timestamp_period,
                _ => 0.0,
            },
            timeline: enabled.timeline,
            subgroup: match subgroup.supported_stages.contains(vk::ShaderStageFlags::COMPUTE) {
                true => subgroup.supported_operations.as_raw(),
                false => 0,
            },
            lanes: match has_sizes {
                true => Lanes::of(&subgroup, &sizes, l.max_compute_work_group_invocations),
                false => Lanes::default(),
            },
            spirv_minor: match properties.api_version {
                vk::API_VERSION_1_3.. => 6,
                vk::API_VERSION_1_2.. => 5,
                _ => 3,
            },
            feedback: has_extension(vulkan, device, ash::ext::pipeline_creation_feedback::NAME),
            target: Target {
                addresses,
                int64: enabled.core.shader_int64 == vk::TRUE,
                float64,
                int8: enabled.int8,
                int16: enabled.int16,
                atomics64: enabled.atomics64 && enabled.core.shader_int64 == vk::TRUE,
                preserves,
                denormals,
                drops_zeros: lavapipe,
                push_bytes: (l.max_push_constants_size as usize).min(256),
                shared_bytes: l.max_compute_shared_memory_size as usize,
            },
            name,
        }
    }

    /// A device as most are: a GPU with 64-bit numbers and narrow storage.
    pub(crate) fn typical() -> Facts {
        Facts {
            name: "typical".to_owned(),
            identity: String::new(),
            memory: 8 << 30,
            cpu: false,
            ends_loops: false,
            exact_division: false,
            unified: false,
            max_local: 1024,
            max_local_sizes: [1024, 1024, 64],
            max_groups: [u32::MAX, u16::MAX.into(), u16::MAX.into()],
            max_buffers: 1 << 20,
            max_binding: 4 << 30,
            offset_align: 64,
            max_alloc: 4 << 30,
            max_launch: WATCHED_LAUNCH,
            go_on: true,
            timestamp_period: 1.0,
            timeline: true,
            subgroup: vk::SubgroupFeatureFlags::BASIC.as_raw(),
            lanes: Lanes { size: 32, varies: false },
            spirv_minor: 6,
            feedback: true,
            target: Target {
                addresses: true,
                int64: true,
                float64: true,
                int8: true,
                int16: true,
                atomics64: true,
                preserves: vec![32, 64],
                denormals: vec![32],
                drops_zeros: false,
                push_bytes: 256,
                shared_bytes: 48 << 10,
            },
        }
    }

    /// The same device with nothing but what every Vulkan 1.1 device has, except for buffers of a
    /// kernel: the least that Vulkan allows is 4, the least that WebGPU does, and what is left to one
    /// kernel here beside its arguments, 8.
    pub(crate) fn minimal(self) -> Facts {
        Facts {
            exact_division: false,
            unified: false,
            max_local: self.max_local.min(128),
            max_local_sizes: [128, 128, 64],
            max_groups: self.max_groups.map(|n| n.min(u16::MAX.into())),
            max_buffers: self.max_buffers.min(9),
            offset_align: 256,
            max_alloc: self.max_alloc.min(1 << 30),
            max_launch: HURRIED_LAUNCH,
            go_on: false,
            max_binding: self.max_binding.min(128 << 20),
            timestamp_period: 0.0,
            timeline: false,
            subgroup: vk::SubgroupFeatureFlags::BASIC.as_raw(),
            lanes: Lanes::default(),
            spirv_minor: 3,
            feedback: false,
            target: Target {
                addresses: false,
                int64: false,
                float64: false,
                int8: false,
                int16: false,
                atomics64: false,
                // Not features: how the device treats special numbers is how it does.
                preserves: self.target.preserves.into_iter().filter(|&n| n == 32).collect(),
                denormals: self.target.denormals.into_iter().filter(|&n| n == 32).collect(),
                drops_zeros: self.target.drops_zeros,
                push_bytes: 128,
                shared_bytes: self.target.shared_bytes.min(16 << 10),
            },
            ..self
        }
    }
}

/// Loop iterations of a thread, all its loops together, after which older versions of Mesa's driver
/// for CPUs end every loop: 65,535, less what the counting differs by.
const MESA_ITERATIONS: u64 = 65_000;

/// NVIDIA's number among vendors.
const NVIDIA: u32 = 0x10de;

/// Bytes of memory on the device.
fn memory(vulkan: &Vulkan, device: vk::PhysicalDevice) -> u64 {
    // SAFETY: a device of this instance.
    let memory = unsafe { vulkan.instance.get_physical_device_memory_properties(device) };
    let heaps = memory.memory_heaps_as_slice().iter();
    let local = heaps.filter(|heap| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL));
    local.map(|heap| heap.size).max().unwrap_or(0)
}

/// Features of a device that are used where present.
#[derive(Clone, Copy, Default)]
pub(crate) struct Features {
    pub(crate) core: vk::PhysicalDeviceFeatures,
    pub(crate) addresses: bool,
    pub(crate) timeline: bool,
    /// Integers of 8 bits, also in buffers.
    pub(crate) int8: bool,
    /// Integers of 16 bits, also in buffers.
    pub(crate) int16: bool,
    pub(crate) atomics64: bool,
}

impl Features {
    /// What the device has. Devices older than Vulkan 1.2 are taken to have the features of Vulkan
    /// 1.0 only.
    fn of(vulkan: &Vulkan, device: vk::PhysicalDevice, modern: bool) -> Features {
        let mut v11 = vk::PhysicalDeviceVulkan11Features::default();
        let mut v12 = vk::PhysicalDeviceVulkan12Features::default();
        let mut all = vk::PhysicalDeviceFeatures2::default();
        if modern {
            all = all.push_next(&mut v11).push_next(&mut v12);
        }
        // SAFETY: a device of this instance, of a version, or with an extension, that knows the structures.
        unsafe { vulkan.instance.get_physical_device_features2(device, &mut all) };
        let core = all.features;
        Features {
            core,
            addresses: v12.buffer_device_address == vk::TRUE,
            timeline: v12.timeline_semaphore == vk::TRUE,
            int8: v12.storage_buffer8_bit_access == vk::TRUE && v12.shader_int8 == vk::TRUE,
            int16: v11.storage_buffer16_bit_access == vk::TRUE && core.shader_int16 == vk::TRUE,
            atomics64: v12.shader_buffer_int64_atomics == vk::TRUE
                && v12.shader_shared_int64_atomics == vk::TRUE,
        }
    }
}

fn has_extension(vulkan: &Vulkan, device: vk::PhysicalDevice, name: &CStr) -> bool {
    // SAFETY: a device of this instance.
    let all = unsafe { vulkan.instance.enumerate_device_extension_properties(device) };
    let is_it = |e: &vk::ExtensionProperties| e.extension_name_as_c_str() == Ok(name);
    all.unwrap_or_default().iter().any(is_it)
}

/// Whether pipelines can ask for full subgroups of one size.
fn has_subgroup_sizes(vulkan: &Vulkan, device: vk::PhysicalDevice) -> bool {
    if !has_extension(vulkan, device, ash::ext::subgroup_size_control::NAME) {
        return false;
    }
    let mut sizes = vk::PhysicalDeviceSubgroupSizeControlFeatures::default();
    let mut all = vk::PhysicalDeviceFeatures2::default().push_next(&mut sizes);
    // SAFETY: a device of this instance, which has the extension of the structure.
    unsafe { vulkan.instance.get_physical_device_features2(device, &mut all) };
    sizes.subgroup_size_control == vk::TRUE && sizes.compute_full_subgroups == vk::TRUE
}

/// Threads that a GPU keeps in flight, one of its own memory and one that shares the CPU's. Vulkan
/// has no query for it; schedules only need its magnitude.
const THREADS: usize = 1 << 17;
const INTEGRATED_THREADS: usize = 1 << 14;

/// What a device with these facts can do.
pub(crate) fn caps(facts: &Facts) -> Caps {
    use DType::{BF16, Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    let target = &facts.target;
    let double = DTypeSet::of(&[F64]);
    let mut caps = Caps::default();
    let compute = DTypeSet::of(&[Bool, I32, U32, I64, U64, F32, F64]);
    caps.compute = if target.float64 { compute } else { compute.without(double) };
    caps.storage = if target.float64 { DTypeSet::ALL } else { DTypeSet::ALL.without(double) };
    let floats = DTypeSet::of(&[F16, BF16, F32, F64]);
    for &op in UnaryOp::ALL.iter().filter(|&&op| !spirv::has_unary(op)) {
        caps.unary[op as usize] = DTypeSet::ALL.without(floats);
    }
    if facts.cpu {
        // Mesa's driver goes wrong on some processors (seen with 25.0): it rounds halves of odd
        // numbers down and takes all from 2^24 on for integers.
        for op in [UnaryOp::Floor, UnaryOp::Ceil, UnaryOp::Round, UnaryOp::Trunc] {
            caps.unary[op as usize] = DTypeSet::ALL.without(double);
        }
    }
    for op in [BinaryOp::Pow, BinaryOp::Atan2] {
        caps.binary[op as usize] = DTypeSet::NONE;
    }
    caps.binary[BinaryOp::Rem as usize] = DTypeSet::ALL.without(floats);
    if !target.int64 {
        caps.emulated = DTypeSet::of(&[I64, U64]);
        for op in [BinaryOp::Div, BinaryOp::Rem] {
            let others = caps.binary[op as usize].without(caps.emulated);
            caps.binary[op as usize] = others;
        }
    }
    // Rounds twice unless a probe says otherwise; see `VulkanDevice::probe`.
    caps.ternary[TernaryOp::MulAdd as usize] = DTypeSet::NONE;
    // What a thread loads at once. Vectors are taken apart, so any width would do.
    caps.vector_bytes = if target.addresses { 16 } else { 0 };
    caps.masked = caps.vector_bytes != 0;
    caps.simt = true;
    caps.threads = match facts.cpu {
        true => 8,
        false if facts.unified => INTEGRATED_THREADS,
        false => THREADS,
    };
    caps.max_local = facts.max_local;
    caps.max_groups = facts.max_groups.map(|n| u64::from(n.min(i32::MAX as u32)));
    let narrow = [(I8, target.int8), (U8, target.int8), (I16, target.int16), (U16, target.int16)];
    let narrow = narrow.into_iter().filter(|&(_, has)| has).map(|(dtype, _)| dtype);
    caps.narrow = DTypeSet::of(&narrow.collect::<Vec<_>>());
    // Elements take a word each in shared storage that has none so narrow.
    let words = if target.int8 && target.int16 { 1 } else { 4 };
    caps.shared_bytes = target.shared_bytes / words;
    (caps.partial_integers, caps.partial_casts) = (true, true);
    // Vulkan allows 2.5 units; drivers for CPUs divide by the instruction.
    (caps.quotients, caps.roots) = match (facts.exact_division, target.float64) {
        (true, _) => (Rounding::NonZero, Rounding::Exact),
        (_, true) => (Rounding::Double, Rounding::Double),
        _ => (Rounding::Loose, Rounding::Loose),
    };
    let (whole, long) = (DTypeSet::of(&[I32, U32, I64, U64]), DTypeSet::of(&[I64, U64]));
    caps.atomics = if target.atomics64 { whole } else { whole.without(long) };
    caps.atomic_add = caps.atomics;
    if !target.addresses {
        // One binding may hold the arguments.
        caps.max_buffers = facts.max_buffers.saturating_sub(1).max(1);
        caps.max_binding = facts.max_binding;
    }
    caps.offset_align = facts.offset_align.max(64);
    caps.unified_memory = facts.unified;
    caps.subgroup = (facts.lanes.size, facts.lanes.size);
    caps.max_iterations = if facts.ends_loops { MESA_ITERATIONS } else { 0 };
    caps.max_launch = facts.max_launch;
    caps.progress = if facts.go_on { Progress::Occupancy } else { Progress::None };
    caps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minimal_device_has_no_optional_dtype() {
        let (full, minimal) = (caps(&Facts::typical()), caps(&Facts::typical().minimal()));
        assert!(full.compute.contains(DType::F64) && full.atomics.contains(DType::I64));
        assert!(!minimal.compute.contains(DType::F64) && !minimal.storage.contains(DType::F64));
        assert!(minimal.storage.contains(DType::F16) && minimal.compute.contains(DType::I64));
        assert!(!minimal.atomics.contains(DType::I64));
        assert_eq!(minimal.max_binding, 128 << 20);
    }

    #[test]
    fn loose_functions_are_left_to_decompositions() {
        let caps = caps(&Facts::typical());
        assert!(!caps.has_unary(UnaryOp::Exp, DType::F32));
        assert!(caps.has_unary(UnaryOp::Floor, DType::F32));
        assert!(!caps.has_ternary(TernaryOp::MulAdd, DType::F32));
    }
}
