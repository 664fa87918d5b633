//! The CUDA backend: NVIDIA GPUs through the driver API.
//!
//! * [`Cuda`] finds devices; [`CudaDevice`] is the device contract of `zyx_core::hal`.
//! * `ptx` writes the driver's assembly language. `dialect` is CUDA C++ as a table for the emitter in
//!   `zyx_core::codegen`, and says how each definition of the op table is kept. `compiler` chooses.
//! * `caps` turns what a driver reports into capabilities.
//! * `raw` compares kernels that users write with their declarations.
//! * `nvrtc` is the compiler of CUDA C++, `memory` the pool and the staging of transfers.
//! * `gemm` recognises contractions that are matrix products, `blas` is cuBLASLt.
//! * `replay` makes CUDA graphs of lists of launches that repeat.
//! * `sys` calls what the crate `cudarc` declares, `driver` and `graph` put the driver behind owning
//!   handles, `library` finds the other libraries.
//!
//! Nothing of CUDA is needed to build, and nothing but the driver to run; without one there are no devices. With
//! `ZYX_CUDA=nvrtc` kernels are compiled by NVRTC, whose absence is an error then that says what to install.
//!
//! ```
//! use zyx_backend_cuda::Cuda;
//! use zyx_core::hal::Backend;
//! for device in Cuda::default().devices() {
//!     assert!(device.spec.starts_with("cuda:"));
//! }
//! ```

mod blas;
mod caps;
mod compiler;
mod device;
mod dialect;
mod dnn;
mod driver;
#[cfg(test)]
mod faults;
mod gemm;
mod graph;
mod library;
mod memory;
mod nvrtc;
mod ptx;
mod raw;
mod replay;
mod sys;

pub use device::{CudaDevice, CudaEvent, CudaProgram, CudaStream};
pub use memory::CudaBuffer;
pub use nvrtc::{Nvrtc, Resources};
pub use raw::check_entry;

use caps::Facts;
use driver::DeviceId;
use zyx_core::hal::{Backend, Caps, DeviceError, DeviceInfo, DeviceKind};

/// Finds CUDA devices.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Cuda {}

impl Cuda {
    /// Capabilities of no device in particular, the same on every machine: what golden tests
    /// translate for.
    pub fn preset(self) -> Caps {
        caps::caps(&Facts::typical())
    }
}

fn info(ordinal: usize, id: DeviceId) -> DeviceInfo {
    DeviceInfo {
        spec: format!("{}:{ordinal}", Cuda::NAME),
        name: id.name(),
        memory: id.memory(),
        kind: DeviceKind::Gpu,
    }
}

impl Backend for Cuda {
    const NAME: &'static str = "cuda";
    type Device = CudaDevice;

    fn devices(&self) -> Vec<DeviceInfo> {
        let ids = driver::devices().unwrap_or_default().into_iter().enumerate();
        ids.map(|(ordinal, id)| info(ordinal, id)).collect()
    }

    fn open(&self, ordinal: usize) -> Result<CudaDevice, DeviceError> {
        let refused = |reason: String| DeviceError::Driver {
            context: format!("open {}:{ordinal}", Cuda::NAME),
            reason,
        };
        let absent = |reason: String| DeviceError::Absent {
            context: format!("open {}:{ordinal}", Cuda::NAME),
            reason,
        };
        let told = |reason| if driver::is_absent() { absent(reason) } else { refused(reason) };
        let ids = driver::devices().map_err(told)?;
        let none = || absent(format!("the CUDA driver has {} devices", ids.len()));
        let id: DeviceId = *ids.get(ordinal).ok_or_else(none)?;
        let facts = Facts::of(id).map_err(|code| refused(format!("asking what it is: {code}")))?;
        CudaDevice::new(ordinal, id, &facts).map_err(refused)
    }
}
