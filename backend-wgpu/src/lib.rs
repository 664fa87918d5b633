//! The wgpu backend: any GPU through Vulkan, Metal, DirectX 12 or a browser's WebGPU.
//!
//! * [`Wgpu`] finds devices; [`WgpuDevice`] is the device contract of `zyx_core::hal`.
//! * `wgsl` translates kernels.
//! * `caps` turns what an adapter reports into capabilities.
//! * `device` compiles, allocates and copies; `stream` batches launches; `fault` turns wgpu's ways
//!   of reporting errors into values.
//!
//! Drivers are loaded at run time; without one there are no devices. wgpu's types appear in no
//! signature, so users need not know its version.
//!
//! ```
//! use backend_wgpu::Wgpu;
//! use zyx_core::hal::Backend;
//! for device in Wgpu::default().devices() {
//!     assert!(device.spec.starts_with("wgpu:"));
//! }
//! ```

mod caps;
mod device;
mod fault;
mod groups;
mod stream;
mod wgsl;

pub use device::{WgpuBuffer, WgpuDevice, WgpuProgram};
pub use stream::{WgpuEvent, WgpuStream};

use caps::Facts;
use std::sync::LazyLock;
use zyx_core::hal::{Backend, Caps, DeviceError, DeviceInfo, DeviceKind};

/// Finds devices.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wgpu {
    minimal: bool,
}

impl Wgpu {
    /// Devices cut down to what WebGPU promises of every device: eight buffers of 128 MiB, groups
    /// of 256, no 64-bit numbers but emulated integers. For tests of that path.
    pub fn minimal() -> Wgpu {
        Wgpu { minimal: true }
    }

    /// What the environment asks for: [`Wgpu::minimal`] if `ZYX_WGPU` is `minimal`.
    pub fn from_env() -> Wgpu {
        Wgpu { minimal: std::env::var("ZYX_WGPU").is_ok_and(|value| value == "minimal") }
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

/// The adapters of this machine, looked for once.
fn adapters() -> &'static [wgpu::Adapter] {
    static ADAPTERS: LazyLock<Vec<wgpu::Adapter>> = LazyLock::new(|| {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.flags = wgpu::InstanceFlags::empty();
        let instance = wgpu::Instance::new(descriptor);
        let found = instance.enumerate_adapters(wgpu::Backends::all());
        let runs = |adapter: &wgpu::Adapter| {
            let needed = wgpu::DownlevelFlags::COMPUTE_SHADERS;
            adapter.get_downlevel_capabilities().flags.contains(needed)
        };
        fault::ready(found).unwrap_or_default().into_iter().filter(runs).collect()
    });
    &ADAPTERS
}

fn info(ordinal: usize, facts: &Facts) -> DeviceInfo {
    DeviceInfo {
        spec: format!("{}:{ordinal}", Wgpu::NAME),
        name: facts.name.clone(),
        kind: if facts.cpu { DeviceKind::Software } else { DeviceKind::Gpu },
        // WebGPU does not say.
        memory: 0,
    }
}

impl Backend for Wgpu {
    const NAME: &'static str = "wgpu";
    type Device = WgpuDevice;

    fn devices(&self) -> Vec<DeviceInfo> {
        let adapters = adapters().iter().enumerate();
        adapters.map(|(ordinal, adapter)| info(ordinal, &Facts::of(adapter))).collect()
    }

    fn open(&self, ordinal: usize) -> Result<WgpuDevice, DeviceError> {
        let refused = |reason: String| DeviceError::Driver {
            context: format!("open {}:{ordinal}", Wgpu::NAME),
            reason,
        };
        let adapters = adapters();
        let adapter =
            adapters.get(ordinal).ok_or_else(|| refused(format!("{} devices", adapters.len())))?;
        let facts = self.cut(Facts::of(adapter));
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("zyx"),
            required_features: facts.features,
            required_limits: facts.limits.clone(),
            memory_hints: wgpu::MemoryHints::Performance,
            ..wgpu::DeviceDescriptor::default()
        };
        let opened = fault::ready(adapter.request_device(&descriptor))
            .ok_or_else(|| refused("the answer is not there yet".to_owned()))?;
        let (device, queue) = opened.map_err(|error| refused(error.to_string()))?;
        WgpuDevice::new(ordinal, device, queue, facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zyx_tests::robust::driver::{Calls, Driver, every_driver_call_may_fail_once};

    pub(crate) static DRIVER: Driver = Driver::new();

    const CALLS: [&str; 8] = [
        "create_bind_group",
        "create_buffer",
        "create_compute_pipeline",
        "create_shader_module",
        "map_async",
        "poll",
        "submit",
        "write_buffer",
    ];

    #[test]
    fn every_call_may_fail_once() {
        for backend in [Wgpu::default(), Wgpu::minimal()] {
            // Commands that wgpu refused are gone, and with them values that were promised.
            let all = Calls {
                driver: &DRIVER,
                expected: &CALLS,
                fatal: &["submit"],
                submit: ("submit", 5),
            };
            every_driver_call_may_fail_once("wgpu", all, || backend);
        }
    }
}
