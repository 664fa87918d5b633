//! What an adapter reports, and the capabilities that follow.
//!
//! [`Facts`] holds every answer of the adapter that matters; [`caps`] is a pure function of it, so
//! a test can take a device apart and look at a smaller one. A device is opened with exactly the
//! limits and features its facts were taken from.

use wgpu::{Features, Limits};
use zyx_core::hal::{Caps, HURRIED_LAUNCH, Rounding, WATCHED_LAUNCH};
use zyx_core::{BinaryOp, DType, DTypeSet, TernaryOp, UnaryOp};

/// What the adapter says.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) name: String,
    pub(crate) cpu: bool,
    /// A GPU without memory of its own.
    pub(crate) integrated: bool,
    /// A driver that silently ends the loops of a thread after [`MESA_ITERATIONS`].
    pub(crate) ends_loops: bool,
    /// A driver that rounds quotients and square roots of `f32` correctly.
    pub(crate) exact_division: bool,
    /// Whether a device finds out when it is opened what else may be relied on.
    pub(crate) probes: bool,
    /// Estimated nanoseconds after which the driver may stop a launch, 0 for never.
    pub(crate) max_launch: u64,
    /// Threads of a subgroup in kernels with shuffles; 0 without them. `WgpuDevice::new` tries them.
    pub(crate) lanes: u32,
    /// Optional features that are used.
    pub(crate) features: Features,
    pub(crate) limits: Limits,
}

/// The optional features the backend makes use of.
const WANTED: Features =
    Features::SHADER_INT64.union(Features::SHADER_INT64_ATOMIC_ALL_OPS).union(Features::SHADER_F64);

impl Facts {
    pub(crate) fn of(adapter: &wgpu::Adapter) -> Facts {
        let info = adapter.get_info();
        let lanes = lanes(adapter, &info);
        let subgroup = if lanes > 0 { Features::SUBGROUP } else { Features::empty() };
        Facts {
            name: format!("{} ({:?}; {})", info.name, info.backend, info.driver_info),
            cpu: info.device_type == wgpu::DeviceType::Cpu,
            integrated: info.device_type == wgpu::DeviceType::IntegratedGpu,
            ends_loops: info.device_type == wgpu::DeviceType::Cpu && is_old_mesa(&info.driver_info),
            // WGSL allows 2.5 units, which drivers of GPUs make use of. Those for CPUs divide by the
            // instruction.
            exact_division: info.device_type == wgpu::DeviceType::Cpu,
            // In a browser what a device computed is not there before it is open.
            probes: info.device_type != wgpu::DeviceType::Cpu && !cfg!(target_arch = "wasm32"),
            // Whether a driver watches its GPU cannot be asked.
            max_launch: match info.device_type {
                wgpu::DeviceType::Cpu => 0,
                _ => WATCHED_LAUNCH,
            },
            lanes,
            features: adapter.features() & WANTED.union(subgroup),
            limits: adapter.limits(),
        }
    }

    /// A device as most are: a GPU with 64-bit integers and without `f64`.
    pub(crate) fn typical() -> Facts {
        let limits = Limits {
            max_storage_buffers_per_shader_stage: 16,
            max_storage_buffer_binding_size: 1 << 30,
            max_buffer_size: 1 << 30,
            max_compute_workgroup_storage_size: 32 << 10,
            max_compute_invocations_per_workgroup: 1024,
            max_compute_workgroup_size_x: 1024,
            max_compute_workgroup_size_y: 1024,
            ..Limits::default()
        };
        let features = Features::SHADER_INT64 | Features::SHADER_INT64_ATOMIC_ALL_OPS;
        let features = features | Features::SUBGROUP;
        Facts {
            name: "typical".to_owned(),
            cpu: false,
            integrated: false,
            ends_loops: false,
            exact_division: false,
            probes: false,
            max_launch: WATCHED_LAUNCH,
            lanes: 32,
            features,
            limits,
        }
    }

    /// The same device with nothing but what WebGPU promises of every device.
    pub(crate) fn minimal(self) -> Facts {
        Facts {
            exact_division: false,
            probes: false,
            max_launch: HURRIED_LAUNCH,
            lanes: 0,
            features: Features::empty(),
            limits: Limits::default(),
            ..self
        }
    }
}

/// Threads of a subgroup where they are known, a power of two: pipelines of wgpu may have any size in
/// the range that an adapter states. A browser cannot wait for the probe of shuffles.
fn lanes(adapter: &wgpu::Adapter, info: &wgpu::AdapterInfo) -> u32 {
    let (least, most) = (info.subgroup_min_size, info.subgroup_max_size);
    let usable = adapter.features().contains(Features::SUBGROUP)
        && !cfg!(target_arch = "wasm32")
        && least == most
        && most.is_power_of_two();
    if usable { most } else { 0 }
}

/// Loop iterations of a thread, all its loops together, after which older versions of Mesa's driver
/// for CPUs end every loop: 65,535, less what the counting differs by.
const MESA_ITERATIONS: u64 = 65_000;

/// Whether a driver's description, as `Mesa 22.3.6 (LLVM 15.0.6)`, is of a Mesa that ends loops:
/// seen with 22.3, not with 25.0; versions between were not tried.
fn is_old_mesa(driver: &str) -> bool {
    let version = driver.split_once("Mesa ").and_then(|(_, rest)| rest.split('.').next());
    version.and_then(|major| major.parse::<u32>().ok()).is_some_and(|major| major < 25)
}

/// Threads that a GPU keeps in flight, one of its own memory and one that shares the CPU's. There
/// is no query for it; schedules need its magnitude.
const THREADS: usize = 128 << 10;
const INTEGRATED_THREADS: usize = 16 << 10;

/// What a device with these facts can do.
pub(crate) fn caps(facts: &Facts) -> Caps {
    use DType::{Bool, F32, F64, I32, I64, U32, U64};
    let limits = &facts.limits;
    let has = |feature: Features| facts.features.contains(feature);
    let long = DTypeSet::of(&[I64, U64]);
    let mut caps = Caps::default();
    let wide = has(Features::SHADER_INT64);
    // Without 64-bit integers the bits of an `f64` cannot be looked at.
    let doubles = wide && has(Features::SHADER_F64);
    let every = DTypeSet::of(&[Bool, I32, U32, I64, U64, F32, F64]);
    let lacking = if doubles { DTypeSet::NONE } else { DTypeSet::of(&[F64]) };
    caps.compute = every.without(lacking);
    (caps.partial_integers, caps.partial_casts) = (true, true);
    if !facts.exact_division {
        (caps.quotients, caps.roots) = (Rounding::Loose, Rounding::Loose);
    }
    caps.emulated = if wide { DTypeSet::NONE } else { long };
    caps.storage = DTypeSet::ALL.without(lacking);
    // WGSL bounds the error of functions loosely or not at all, and not that of `%` on floats;
    // what is left out here is computed by the core's own expansions.
    let floats = DTypeSet::of(&[DType::F16, DType::BF16, F32, F64]);
    for &op in UnaryOp::ALL {
        use UnaryOp::{Abs, Ceil, Floor, Neg, Not, Round, Sqrt, Trunc};
        if !matches!(op, Abs | Ceil | Floor | Neg | Not | Round | Sqrt | Trunc) {
            caps.unary[op as usize] = DTypeSet::NONE;
        }
    }
    if facts.cpu {
        // Mesa's driver goes wrong on some processors (seen with 25.0): it rounds halves of odd
        // numbers down and takes all from 2^24 on for integers.
        for op in [UnaryOp::Floor, UnaryOp::Ceil, UnaryOp::Round, UnaryOp::Trunc] {
            caps.unary[op as usize] = DTypeSet::ALL.without(DTypeSet::of(&[F64]));
        }
    }
    caps.binary[BinaryOp::Pow as usize] = DTypeSet::NONE;
    caps.binary[BinaryOp::Atan2 as usize] = DTypeSet::NONE;
    caps.binary[BinaryOp::Div as usize] = DTypeSet::ALL.without(caps.emulated);
    caps.binary[BinaryOp::Rem as usize] = DTypeSet::ALL.without(floats).without(caps.emulated);
    caps.ternary[TernaryOp::MulAdd as usize] = DTypeSet::NONE;
    // Storage is typed: a vector would be loaded element by element, which needs no vectors.
    caps.vector_bytes = 0;
    caps.simt = true;
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    caps.threads = match facts.cpu {
        true => cores(),
        false if facts.integrated => INTEGRATED_THREADS,
        false => THREADS,
    };
    caps.max_local = limits.max_compute_invocations_per_workgroup as usize;
    caps.max_groups = [u64::from(limits.max_compute_workgroups_per_dimension); 3];
    caps.shared_bytes = limits.max_compute_workgroup_storage_size as usize;
    let whole = DTypeSet::of(&[I32, U32, I64, U64]);
    let atomic64 = has(Features::SHADER_INT64_ATOMIC_ALL_OPS);
    caps.atomics = if atomic64 { whole } else { whole.without(long) };
    caps.atomic_add = caps.atomics;
    caps.max_buffers = limits.max_storage_buffers_per_shader_stage as usize;
    caps.offset_align = (limits.min_storage_buffer_offset_alignment as usize).max(64);
    caps.max_binding = limits.max_storage_buffer_binding_size;
    caps.subgroup = (facts.lanes, facts.lanes);
    caps.max_iterations = if facts.ends_loops { MESA_ITERATIONS } else { 0 };
    caps.max_launch = facts.max_launch;
    caps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_mesa_are_read() {
        assert!(is_old_mesa("Mesa 22.3.6 (LLVM 15.0.6)"));
        assert!(!is_old_mesa("Mesa 25.0.7-2~bpo12+1 (LLVM 15.0.6)"));
        assert!(!is_old_mesa("580.159") && !is_old_mesa(""));
    }

    #[test]
    fn a_minimal_device_has_what_webgpu_promises() {
        let (full, minimal) = (caps(&Facts::typical()), caps(&Facts::typical().minimal()));
        assert!(full.atomics.contains(DType::I64) && !full.emulated.contains(DType::I64));
        assert!(minimal.compute.contains(DType::I64) && minimal.emulated.contains(DType::I64));
        assert!(!minimal.atomics.contains(DType::I64) && minimal.atomics.contains(DType::U32));
        assert!(!minimal.storage.contains(DType::F64));
        assert_eq!(minimal.max_buffers, 8);
        assert_eq!(minimal.max_groups, [65_535; 3]);
        assert_eq!(minimal.max_binding, 128 << 20);
        assert_eq!(minimal.compute_dtype(DType::F16), DType::F32);
    }
}
