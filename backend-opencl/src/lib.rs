//! The OpenCL backend: GPUs and CPUs of any vendor through their OpenCL 1.2 driver.
//!
//! * [`OpenCl`] finds devices; [`OpenClDevice`] is the device contract of `zyx_core::hal`.
//! * `dialect` is OpenCL C as a table for the emitter in `zyx_core::codegen`, and says how each
//!   definition of the op table is kept.
//! * `caps` turns what a driver reports into capabilities.
//! * `driver` holds the objects of `opencl3`, given back without its panics, errors in words, and all
//!   `unsafe` but two calls of it in `staging`.
//! * `raw` compares kernels that users write with their declarations.
//! * `staging` is pinned memory for large transfers.
//!
//! The OpenCL library is loaded at run time; without it, without a driver, or with one that is broken or
//! too old, there are no devices, and [`OpenCl::open`](zyx_core::hal::Backend::open) says why. A context
//! per device is made once and shared by the whole process.
//!
//! ```
//! use zyx_backend_opencl::OpenCl;
//! use zyx_core::hal::Backend;
//! for device in OpenCl::default().devices() {
//!     assert!(device.spec.starts_with("opencl:"));
//! }
//! ```

mod caps;
mod device;
mod dialect;
mod driver;
#[cfg(test)]
mod faults;
mod raw;
mod staging;

pub use device::{OpenClBuffer, OpenClDevice, OpenClEvent, OpenClProgram, OpenClStream};

use caps::Facts;
use driver::{Context, found};
use opencl3::device::Device;
use std::sync::{Arc, Mutex, PoisonError};
use zyx_core::hal::{Backend, Caps, DeviceError, DeviceInfo, DeviceKind};

/// Finds OpenCL devices.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenCl {
    minimal: bool,
    in_order: bool,
}

impl OpenCl {
    /// Devices cut down to what every OpenCL 1.2 device has: no `f64`, no half arithmetic, no
    /// vectors, no 64-bit atomics, groups of at most 64, queues in order. For tests of that path.
    pub fn minimal() -> OpenCl {
        OpenCl { minimal: true, in_order: true }
    }

    /// Devices whose queues are worked off in order, also where they need not be.
    pub fn in_order() -> OpenCl {
        OpenCl { minimal: false, in_order: true }
    }

    /// What the environment asks for: [`OpenCl::minimal`] if `ZYX_OPENCL` is `minimal`,
    /// [`OpenCl::in_order`] if it is `in-order`.
    pub fn from_env() -> OpenCl {
        match std::env::var("ZYX_OPENCL").as_deref() {
            Ok("minimal") => OpenCl::minimal(),
            Ok("in-order") => OpenCl::in_order(),
            _ => OpenCl::default(),
        }
    }

    /// Capabilities of no device in particular, the same on every machine: what golden tests
    /// translate for.
    pub fn preset(self) -> Caps {
        caps::caps(&self.cut(Facts::typical()))
    }

    fn facts(self, device: &Device) -> Facts {
        self.cut(Facts::of(device))
    }

    fn cut(self, facts: Facts) -> Facts {
        let facts = Facts { in_order: facts.in_order || self.in_order, ..facts };
        if self.minimal { facts.minimal() } else { facts }
    }
}

fn info(ordinal: usize, facts: &Facts) -> DeviceInfo {
    DeviceInfo {
        spec: format!("{}:{ordinal}", OpenCl::NAME),
        name: facts.name.clone(),
        memory: facts.memory,
        kind: if facts.cpu { DeviceKind::Software } else { DeviceKind::Gpu },
    }
}

/// The context of a device, made on first use. Drivers are least reliable where an application
/// makes and drops several, and memory can be shared only within one.
fn context(device: &Device) -> Result<Arc<Context>, driver::Code> {
    static CONTEXTS: Mutex<Vec<(Device, Arc<Context>)>> = Mutex::new(Vec::new());
    let mut contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, context)) = contexts.iter().find(|c| c.0.id() == device.id()) {
        return Ok(Arc::clone(context));
    }
    let context = Arc::new(Context::of(device)?);
    contexts.push((*device, Arc::clone(&context)));
    Ok(context)
}

impl Backend for OpenCl {
    const NAME: &'static str = "opencl";
    type Device = OpenClDevice;

    fn devices(&self) -> Vec<DeviceInfo> {
        let devices = found().devices.iter().enumerate();
        devices.map(|(ordinal, device)| info(ordinal, &self.facts(device))).collect()
    }

    fn open(&self, ordinal: usize) -> Result<OpenClDevice, DeviceError> {
        let refused = |reason: String| DeviceError::Driver {
            context: format!("open {}:{ordinal}", OpenCl::NAME),
            reason,
        };
        let found = found();
        let absent = || {
            let there = format!("{} devices", found.devices.len());
            let told = std::iter::once(there).chain(found.problems.iter().cloned());
            let reason = told.collect::<Vec<_>>().join("; ");
            match found.has_driver && !found.problems.is_empty() {
                true => refused(reason),
                false => {
                    let context = format!("open {}:{ordinal}", OpenCl::NAME);
                    DeviceError::Absent { context, reason }
                }
            }
        };
        let device = *found.devices.get(ordinal).ok_or_else(absent)?;
        let context = context(&device).map_err(|code| refused(code.to_string()))?;
        Ok(OpenClDevice::new(ordinal, device, context, self.facts(&device)))
    }
}
