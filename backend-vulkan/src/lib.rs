//! The Vulkan backend: GPUs of any vendor, and CPUs, through their Vulkan 1.1 driver.
//!
//! * [`Vulkan`] finds devices; [`VulkanDevice`] is the device contract of `zyx_core::hal`.
//! * `spirv` translates kernels straight to SPIR-V and keeps every definition of the op table; `asm`
//!   puts its modules together and knows nothing of kernels.
//! * `caps` turns what a driver reports into capabilities and a target for the translation.
//! * `pipeline` and `cache` hold compiled kernels, in memory and on disk.
//! * `raw` reads modules that users write, to compare them with their declarations.
//! * `replay` keeps lists of launches that come back as command buffers.
//! * `stream` records commands in batches, with barriers for true dependencies only.
//! * `gpu`, `arena` and `instance` hold queue, memory and library behind owning handles.
//!
//! The Vulkan loader is found at run time; without it, or without a driver, there are no devices.
//!
//! ```
//! use zyx_backend_vulkan::Vulkan;
//! use zyx_core::hal::Backend;
//! for device in Vulkan::default().devices() {
//!     assert!(device.spec.starts_with("vulkan:"));
//! }
//! ```

mod arena;
mod asm;
mod cache;
mod caps;
mod device;
#[cfg(test)]
mod faults;
mod gpu;
mod instance;
mod pipeline;
mod raw;
mod replay;
mod spirv;
mod stream;

pub use device::{VulkanBuffer, VulkanDevice, VulkanEvent, VulkanProgram};
pub use replay::{ReplayCounts, replay_counts};
pub use stream::VulkanStream;

use caps::Facts;
use gpu::Gpu;
use instance::Unusable;
use zyx_core::hal::{Backend, Caps, DeviceError, DeviceInfo, DeviceKind};

/// Finds Vulkan devices.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vulkan {
    minimal: bool,
}

impl Vulkan {
    /// Devices cut down to what every Vulkan 1.1 device has: no 64-bit numbers, no storage of
    /// narrow elements, no buffer addresses, no timelines. For tests of that path.
    pub fn minimal() -> Vulkan {
        Vulkan { minimal: true }
    }

    /// What the environment asks for: [`Vulkan::minimal`] if `ZYX_VULKAN` is `minimal`.
    pub fn from_env() -> Vulkan {
        Vulkan { minimal: std::env::var("ZYX_VULKAN").is_ok_and(|value| value == "minimal") }
    }

    /// Capabilities of no device in particular, the same on every machine: what golden tests
    /// translate for.
    pub fn preset(self) -> Caps {
        caps::caps(&self.cut(Facts::typical()))
    }

    fn cut(self, facts: Facts) -> Facts {
        if self.minimal { facts.minimal() } else { facts }
    }
}

/// How many errors and warnings the validation layer has told in this process. It watches where
/// it is installed and `ZYX_VULKAN_VALIDATION=1` asks for it.
pub fn validation_messages() -> usize {
    instance::messages()
}

fn info(ordinal: usize, facts: &Facts) -> DeviceInfo {
    DeviceInfo {
        spec: format!("{}:{ordinal}", Vulkan::NAME),
        name: facts.name.clone(),
        memory: facts.memory,
        kind: if facts.cpu { DeviceKind::Software } else { DeviceKind::Gpu },
    }
}

impl Backend for Vulkan {
    const NAME: &'static str = "vulkan";
    type Device = VulkanDevice;

    fn devices(&self) -> Vec<DeviceInfo> {
        let Ok(vulkan) = instance::vulkan() else { return Vec::new() };
        let devices = vulkan.devices.iter().enumerate();
        devices.map(|(i, &d)| info(i, &self.cut(Facts::of(vulkan, d)))).collect()
    }

    fn open(&self, ordinal: usize) -> Result<VulkanDevice, DeviceError> {
        let refused = |reason: String| DeviceError::Driver {
            context: format!("open {}:{ordinal}", Vulkan::NAME),
            reason,
        };
        let absent = |reason: String| DeviceError::Absent {
            context: format!("open {}:{ordinal}", Vulkan::NAME),
            reason,
        };
        let vulkan = instance::vulkan().map_err(|unusable| match unusable {
            Unusable::Absent(reason) => absent(reason),
            Unusable::Broken(reason) => refused(reason),
        })?;
        let n = vulkan.devices.len();
        let physical =
            *vulkan.devices.get(ordinal).ok_or_else(|| absent(format!("{n} devices")))?;
        let facts = self.cut(Facts::of(vulkan, physical));
        let info = info(ordinal, &facts);
        let mut device = Gpu::open(vulkan, physical, facts)
            .and_then(|gpu| VulkanDevice::new(gpu, info))
            .map_err(|code| refused(code.to_string()))?;
        device.probe()?;
        Ok(device)
    }
}
