//! What a device reports, and the capabilities that follow.
//!
//! [`Facts`] holds every answer of the driver that matters; [`caps`] is a pure function of it, so
//! a test can take a device apart and look at a smaller one.

use crate::driver::is_cpu;
use opencl3::command_queue::CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
use opencl3::device::{
    CL_DEVICE_MAX_WORK_ITEM_SIZES, CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT, CL_FP_DENORM, CL_FP_FMA,
    Device,
};
use opencl3::platform::Platform;
use zyx_core::hal::{Caps, HURRIED_LAUNCH, Progress, WATCHED_LAUNCH};
use zyx_core::{BinaryOp, DType, DTypeSet, UnaryOp};

/// What the driver says of a device.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) name: String,
    /// Device, driver and platform with versions: what a compiled program depends on.
    pub(crate) identity: String,
    /// Whether the driver keeps compiled programs on disk itself and compiles a source's kernels
    /// at their first launch. PoCL does; to ask it for a binary is to have every kernel compiled
    /// once more, for groups of any size, and each source costs it a tenth of a second. With
    /// `POCL_KERNEL_CACHE=0` it keeps nothing.
    pub(crate) lazy: bool,
    pub(crate) memory: u64,
    /// Whether queues can only be worked off in order.
    pub(crate) in_order: bool,
    pub(crate) cpu: bool,
    pub(crate) units: usize,
    pub(crate) max_local: usize,
    pub(crate) max_local_sizes: Vec<usize>,
    pub(crate) shared_bytes: usize,
    pub(crate) parameter_bytes: usize,
    pub(crate) max_alloc: u64,
    /// Estimated nanoseconds after which the driver may stop a launch, 0 for never.
    pub(crate) max_launch: u64,
    pub(crate) unified: bool,
    /// Whether to use vectors at all.
    pub(crate) vectors: bool,
    pub(crate) fp64: bool,
    pub(crate) fp16: bool,
    pub(crate) int64_atomics: bool,
    pub(crate) fma: bool,
    /// Whether subnormals of `f32` are kept.
    pub(crate) subnormals: bool,
    /// Whether `f32` division and square root can be correctly rounded.
    pub(crate) exact_division: bool,
    /// Whether groups that have started go on, whatever others do. OpenCL does not say so; NVIDIA's
    /// devices from compute capability 7.0 on schedule threads independently.
    pub(crate) go_on: bool,
}

impl Facts {
    /// What a driver does not tell is taken for nothing.
    pub(crate) fn of(device: &Device) -> Facts {
        let extensions = device.extensions().unwrap_or_default();
        let has = |name: &str| extensions.split_whitespace().any(|e| e == name);
        let single = device.single_fp_config().unwrap_or_default();
        let text = |told: opencl3::Result<String>| told.unwrap_or_default().trim().to_owned();
        let name = text(device.name());
        let identity = [
            name.clone(),
            text(device.vendor()),
            text(device.version()),
            text(device.driver_version()),
            text(device.platform().and_then(|id| Platform::new(id).version())),
        ]
        .join("; ");
        let cpu = is_cpu(device);
        Facts {
            name,
            lazy: identity.to_lowercase().contains("pocl")
                && std::env::var("POCL_KERNEL_CACHE").map_or(true, |value| value != "0"),
            identity,
            memory: device.global_mem_size().unwrap_or_default(),
            in_order: device.queue_on_host_properties().unwrap_or_default()
                & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE
                == 0,
            cpu,
            units: device.max_compute_units().unwrap_or_default().max(1) as usize,
            max_local: device.max_work_group_size().unwrap_or_default().max(1),
            max_local_sizes: sizes(device.get_data(CL_DEVICE_MAX_WORK_ITEM_SIZES)),
            shared_bytes: device.local_mem_size().unwrap_or_default() as usize,
            parameter_bytes: device.max_parameter_size().unwrap_or_default(),
            max_alloc: device.max_mem_alloc_size().unwrap_or_default(),
            // Whether a driver watches its GPU cannot be asked.
            max_launch: if cpu { 0 } else { WATCHED_LAUNCH },
            unified: device.host_unified_memory().unwrap_or_default(),
            vectors: true,
            fp64: has("cl_khr_fp64") || device.double_fp_config().unwrap_or_default() != 0,
            fp16: has("cl_khr_fp16"),
            int64_atomics: has("cl_khr_int64_base_atomics"),
            fma: single & CL_FP_FMA != 0,
            subnormals: single & CL_FP_DENORM != 0,
            exact_division: single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT != 0,
            go_on: has("cl_nv_device_attribute_query")
                && device.compute_capability_major_nv().unwrap_or_default() >= 7,
        }
    }

    /// A device as most are: a GPU with `f64` and without half arithmetic.
    pub(crate) fn typical() -> Facts {
        Facts {
            name: "typical".to_owned(),
            identity: String::new(),
            lazy: false,
            memory: 8 << 30,
            in_order: false,
            cpu: false,
            units: 32,
            max_local: 1024,
            max_local_sizes: vec![1024, 1024, 64],
            shared_bytes: 48 << 10,
            parameter_bytes: 4096,
            max_alloc: 2 << 30,
            max_launch: WATCHED_LAUNCH,
            unified: false,
            vectors: true,
            fp64: true,
            fp16: false,
            int64_atomics: true,
            fma: true,
            subnormals: true,
            exact_division: true,
            go_on: true,
        }
    }

    /// The same device with nothing but what every OpenCL 1.2 device has.
    pub(crate) fn minimal(self) -> Facts {
        Facts {
            max_local: self.max_local.min(64),
            max_launch: HURRIED_LAUNCH,
            shared_bytes: self.shared_bytes.min(32 << 10),
            vectors: false,
            fp64: false,
            fp16: false,
            int64_atomics: false,
            fma: false,
            go_on: false,
            unified: false,
            in_order: true,
            ..self
        }
    }
}

/// A list of sizes that a driver reports, as bytes: `Device::max_work_item_sizes` lets a driver write past
/// the list where their number is no multiple of a size's.
fn sizes(bytes: opencl3::Result<Vec<u8>>) -> Vec<usize> {
    let bytes = bytes.unwrap_or_default();
    let (words, _) = bytes.as_chunks();
    words.iter().map(|word| usize::from_ne_bytes(*word)).collect()
}

/// Threads that one unit of a GPU keeps in flight. OpenCL has no query for it; schedules only
/// need its magnitude.
const THREADS_PER_UNIT: usize = 1024;

/// Bytes of kernel arguments left to scalars.
const SCALAR_BYTES: usize = 256;

/// What a device with these facts can do.
pub(crate) fn caps(facts: &Facts) -> Caps {
    use DType::{BF16, Bool, F16, F32, F64, I32, I64, U32, U64};
    let wide = |dtype: DType, set: DTypeSet, present: bool| {
        if present { set } else { set.without(DTypeSet::of(&[dtype])) }
    };
    let mut caps = Caps::default();
    let compute = DTypeSet::of(&[Bool, I32, U32, I64, U64, F16, F32, F64]);
    caps.compute = wide(F64, wide(F16, compute, facts.fp16), facts.fp64);
    caps.partial_integers = true;
    caps.storage = wide(F64, DTypeSet::ALL, facts.fp64);
    // What OpenCL has types for: 16 lanes at most. A driver for CPUs vectorises over threads, and
    // a GPU gains from wide loads only.
    caps.vector_bytes = if facts.vectors { 16 } else { 0 };
    caps.masked = caps.vector_bytes != 0;
    caps.simt = true;
    caps.threads = facts.units * if facts.cpu { 1 } else { THREADS_PER_UNIT };
    caps.max_local = facts.max_local;
    // OpenCL states no limit; NVIDIA passes these on from CUDA, the smallest in use.
    caps.max_groups = [i32::MAX as u64, u16::MAX as u64, u16::MAX as u64];
    caps.shared_bytes = facts.shared_bytes;
    // Whatever OpenCL lacks is done by compare and exchange of 32 or 64 bits.
    let long = DTypeSet::of(&[I64, U64, F64]);
    caps.atomics = if facts.int64_atomics { caps.storage } else { caps.storage.without(long) };
    caps.atomic_add = caps.atomics;
    // A buffer takes a pointer and the offset of its first element.
    caps.max_buffers = facts.parameter_bytes.max(1024).saturating_sub(SCALAR_BYTES) / 16;
    // What every device has at least, should the driver not say.
    caps.max_binding = facts.max_alloc.max(32 << 20);
    caps.unified_memory = facts.unified;
    // PoCL 3.1 runs such a kernel out of its buffers.
    caps.branched_barriers = !facts.cpu;
    if facts.cpu {
        // To PoCL 3.1 a function that rounds a constant which is no finite number is unreachable, and with it all that
        // uses the result. Its circular functions of vectors are wrong for small numbers beside a large one.
        caps.partial_casts = true;
        let ours = DTypeSet::ALL.without(DTypeSet::of(&[F16, F32, F64]));
        caps.binary[BinaryOp::Rem as usize] = ours;
        use UnaryOp::{Cos, Exp, Exp2, Expm1, Round, Sin, Sinh, Tan, Tanh};
        for op in [Exp, Exp2, Expm1, Sinh, Tanh, Round, Sin, Cos, Tan] {
            caps.unary[op as usize] = ours;
        }
    }
    // `caps.subgroup` stays empty. NVIDIA's driver and PoCL 3.1 have no `cl_khr_subgroup_shuffle`, so generated
    // shuffles could be tried on no driver; and the size of subgroups is known of a compiled kernel only, but for
    // drivers with Intel's `intel_reqd_sub_group_size`.
    caps.progress = if facts.go_on { Progress::Occupancy } else { Progress::None };
    caps.fast_fma = facts.fma;
    caps.flushes_subnormals = if facts.subnormals { DTypeSet::NONE } else { DTypeSet::of(&[F32]) };
    caps.max_launch = facts.max_launch;
    debug_assert!(!caps.compute.contains(BF16), "OpenCL has no bf16 arithmetic");
    caps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minimal_device_has_no_optional_dtype() {
        let (full, minimal) = (caps(&Facts::typical()), caps(&Facts::typical().minimal()));
        assert!(full.compute.contains(DType::F64) && full.atomics.contains(DType::F64));
        assert!(!minimal.compute.contains(DType::F64) && !minimal.storage.contains(DType::F64));
        assert!(minimal.storage.contains(DType::F16) && minimal.atomics.contains(DType::F16));
        assert!(!minimal.atomics.contains(DType::I64));
        assert_eq!(minimal.compute_dtype(DType::F16), DType::F32);
        assert_eq!(minimal.vector_bytes, 0);
    }
}
