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
//! use zyx_backend_wgpu::Wgpu;
//! use zyx_core::hal::Backend;
//! for device in Wgpu::default().devices() {
//!     assert!(device.spec.starts_with("wgpu:"));
//! }
//! ```

mod caps;
mod device;
mod fault;
mod groups;
mod raw;
mod stream;
mod wgsl;

pub use device::{WgpuBuffer, WgpuDevice, WgpuProgram};
pub use stream::{WgpuEvent, WgpuStream};

use caps::Facts;
use std::sync::{Mutex, OnceLock};
use zyx_core::hal::{self, Backend, Caps, DeviceError, DeviceInfo, DeviceKind};

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

    /// Asks a browser for its first device, which answers while nobody waits. [`Backend::open`] finds
    /// the answer. Elsewhere devices are opened when they are needed, and this does nothing.
    ///
    /// # Errors
    /// When the browser has no WebGPU, or refuses.
    pub async fn request(&self) -> Result<(), DeviceError> {
        if !cfg!(target_arch = "wasm32") {
            return Ok(());
        }
        if ADAPTERS.get().is_none_or(Vec::is_empty) {
            let found = find().await;
            if found.is_empty() {
                return Err(absent(0, "this browser offers no adapter of WebGPU".to_owned()));
            }
            // Another request may have found the same.
            let _ = ADAPTERS.set(found);
        }
        let Some(adapter) = adapters().first() else { return Ok(()) };
        let facts = self.cut(Facts::of(adapter));
        let opened = adapter.request_device(&descriptor(&facts)).await;
        let (device, queue) = opened.map_err(|error| refused(0, error))?;
        hal::lock(&REQUESTED).push((0, device, queue));
        Ok(())
    }

    fn cut(self, facts: Facts) -> Facts {
        if self.minimal { facts.minimal() } else { facts }
    }
}

/// The adapters of this machine, looked for once.
static ADAPTERS: OnceLock<Vec<wgpu::Adapter>> = OnceLock::new();

/// Devices that were asked for and wait to be opened, with their ordinals.
static REQUESTED: Mutex<Vec<(usize, wgpu::Device, wgpu::Queue)>> = Mutex::new(Vec::new());

/// Looks for adapters.
async fn find() -> Vec<wgpu::Adapter> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.flags = wgpu::InstanceFlags::empty();
    let found = wgpu::Instance::new(descriptor).enumerate_adapters(wgpu::Backends::all()).await;
    let runs = |adapter: &wgpu::Adapter| {
        let needed = wgpu::DownlevelFlags::COMPUTE_SHADERS;
        adapter.get_downlevel_capabilities().flags.contains(needed)
    };
    found.into_iter().filter(runs).collect()
}

/// The adapters, in a browser those that [`Wgpu::request`] found.
fn adapters() -> &'static [wgpu::Adapter] {
    match cfg!(target_arch = "wasm32") {
        true => ADAPTERS.get().map_or(&[], Vec::as_slice),
        false => ADAPTERS.get_or_init(|| fault::ready(find()).unwrap_or_default()),
    }
}

/// What a device is asked to have.
fn descriptor(facts: &Facts) -> wgpu::DeviceDescriptor<'static> {
    wgpu::DeviceDescriptor {
        label: Some("zyx"),
        required_features: facts.features,
        required_limits: facts.limits.clone(),
        memory_hints: wgpu::MemoryHints::Performance,
        ..wgpu::DeviceDescriptor::default()
    }
}

fn refused(ordinal: usize, reason: impl ToString) -> DeviceError {
    let context = format!("open {}:{ordinal}", Wgpu::NAME);
    DeviceError::Driver { context, reason: reason.to_string() }
}

fn absent(ordinal: usize, reason: String) -> DeviceError {
    DeviceError::Absent { context: format!("open {}:{ordinal}", Wgpu::NAME), reason }
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
        let adapters = adapters();
        let adapter = adapters.get(ordinal).ok_or_else(|| match cfg!(target_arch = "wasm32") {
            true => refused(ordinal, "in a browser devices are requested first"),
            false => absent(ordinal, format!("{} devices", adapters.len())),
        })?;
        let facts = self.cut(Facts::of(adapter));
        let mut waiting = hal::lock(&REQUESTED);
        let (device, queue) = match waiting.iter().position(|device| device.0 == ordinal) {
            Some(at) => {
                let (_, device, queue) = waiting.swap_remove(at);
                (device, queue)
            }
            None => fault::ready(adapter.request_device(&descriptor(&facts)))
                .ok_or_else(|| refused(ordinal, "in a browser devices are requested first"))?
                .map_err(|error| refused(ordinal, error))?,
        };
        drop(waiting);
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
