//! What a device reports, and the capabilities that follow.
//!
//! [`Facts`] holds every answer of the driver that matters; [`caps`] is a pure function of it, so
//! golden tests translate for a device that is not there.

use crate::driver::{self, DeviceId};
use cudarc::driver::sys::CUdevice_attribute as Attribute;
use zyx_core::DType;
use zyx_core::DTypeSet;
use zyx_core::hal::{Caps, Progress, WATCHED_LAUNCH};

/// What the driver says of a device.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// Compute capability, as in 9.0.
    pub(crate) capability: (u32, u32),
    pub(crate) units: usize,
    pub(crate) threads_per_unit: usize,
    pub(crate) max_local: usize,
    pub(crate) max_groups: [u64; 3],
    /// Static shared storage of a group.
    pub(crate) shared_bytes: usize,
    /// Shared storage that a group may ask for.
    pub(crate) most_shared_bytes: usize,
    pub(crate) unified: bool,
    /// Whether memory comes from the driver's stream-ordered pool.
    pub(crate) pool: bool,
    /// Whether the driver stops kernels that take long.
    pub(crate) watched: bool,
}

impl Facts {
    /// # Errors
    /// When the driver does not tell.
    pub(crate) fn of(id: DeviceId) -> driver::Result<Facts> {
        use Attribute as A;
        let number = |attribute| id.attribute(attribute).map(|n| n.max(0) as usize);
        let at_least_one = |attribute| number(attribute).map(|n| n.max(1));
        Ok(Facts {
            capability: (
                number(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)? as u32,
                number(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)? as u32,
            ),
            units: at_least_one(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            threads_per_unit: at_least_one(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
            max_local: at_least_one(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            max_groups: [
                at_least_one(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)? as u64,
                at_least_one(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)? as u64,
                at_least_one(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)? as u64,
            ],
            shared_bytes: number(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
            most_shared_bytes: number(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            unified: number(A::CU_DEVICE_ATTRIBUTE_INTEGRATED)? == 1,
            pool: number(A::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? == 1,
            watched: number(A::CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT)? == 1,
        })
    }

    /// A device as most data centres have.
    pub(crate) fn typical() -> Facts {
        Facts {
            capability: (9, 0),
            units: 132,
            threads_per_unit: 2048,
            max_local: 1024,
            max_groups: [i32::MAX as u64, 65_535, 65_535],
            shared_bytes: 48 << 10,
            most_shared_bytes: 227 << 10,
            unified: false,
            pool: true,
            watched: false,
        }
    }
}

/// Bytes of kernel parameters that every device takes, and what is left to scalars of it at least.
const PARAMETER_BYTES: usize = 4096;
const SCALAR_BYTES: usize = 256;

/// What a device with these facts can do.
pub(crate) fn caps(facts: &Facts) -> Caps {
    // Halves are moved as they are and computed with as `f32`.
    let mut caps = Caps::default();
    debug_assert!(!caps.compute.contains(DType::F16) && !caps.compute.contains(DType::BF16));
    caps.storage = DTypeSet::ALL;
    caps.partial_integers = true;
    // The widest load and store of a thread.
    caps.vector_bytes = 16;
    caps.masked = true;
    caps.simt = true;
    caps.threads = facts.units * facts.threads_per_unit;
    caps.max_local = facts.max_local;
    caps.max_groups = facts.max_groups;
    caps.shared_bytes = facts.shared_bytes;
    caps.most_shared_bytes = facts.most_shared_bytes;
    // What the hardware lacks goes by compare and exchange.
    caps.atomics = DTypeSet::ALL;
    caps.atomic_add = DTypeSet::ALL;
    caps.subgroup = (32, 32);
    caps.mma = DTypeSet::of(match facts.capability {
        (8.., _) => &[DType::F16, DType::BF16],
        (7, 5..) => &[DType::F16],
        _ => &[],
    });
    // Later generations have other ones instead.
    caps.wide_mma = match facts.capability {
        (9, 0) => caps.mma,
        _ => DTypeSet::NONE,
    };
    // Since compute capability 7.0, threads of a warp go on independently of one another.
    caps.progress = if facts.capability >= (7, 0) { Progress::Occupancy } else { Progress::None };
    caps.max_buffers = (PARAMETER_BYTES - SCALAR_BYTES) / size_of::<u64>();
    caps.unified_memory = facts.unified;
    crate::ptx::functions(&mut caps);
    caps.epilogues = false;
    caps.biases = true;
    caps.convolutions = true;
    caps.fast_fma = true;
    caps.max_launch = if facts.watched { WATCHED_LAUNCH } else { 0 };
    caps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrix_instructions_are_those_of_the_generation() {
        let of = |capability| caps(&Facts { capability, ..Facts::typical() }).mma;
        assert_eq!(of((7, 0)), DTypeSet::NONE);
        assert_eq!(of((7, 5)), DTypeSet::of(&[DType::F16]));
        assert_eq!(of((8, 0)), DTypeSet::of(&[DType::F16, DType::BF16]));
        assert_eq!(of((9, 0)), of((8, 0)));
        let wide = |capability| caps(&Facts { capability, ..Facts::typical() }).wide_mma;
        assert_eq!(wide((9, 0)), of((9, 0)));
        assert_eq!([(8, 0), (10, 0), (12, 0)].map(wide), [DTypeSet::NONE; 3]);
    }

    #[test]
    fn halves_are_stored_and_computed_in_single_precision() {
        let caps = caps(&Facts::typical());
        assert!(caps.storage.contains(DType::BF16) && caps.atomics.contains(DType::F16));
        assert_eq!(caps.compute_dtype(DType::BF16), DType::F32);
        assert!(caps.compute.contains(DType::F64));
    }
}
