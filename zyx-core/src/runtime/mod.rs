//! The runtime: registered backends, open devices, memory, counters.
//!
//! [`Runtime`] is where backends are registered and devices found; nothing in the core is static,
//! so a program may have several. [`Device`] is the handle that tensors hold. Types are erased in
//! one file, `erased.rs`; everything above it is free of backend generics.

mod buffer;
mod device;
mod erased;
mod host;
mod pool;
mod profile;
mod stats;

pub use buffer::Buffer;
pub use device::{Device, Launch, Optimizer, prepare};
pub use erased::Program;
pub use host::HostView;
pub use profile::ProgramTime;
pub use stats::Stats;

use crate::error::{Error, Result};
use crate::hal::{self, DeviceInfo};
use erased::ErasedBackend;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Registered backends and the devices opened through them.
///
/// ```
/// use zyx_core::Runtime;
/// let runtime = Runtime::default();
/// let device = runtime.device("reference")?;
/// assert_eq!(device.spec(), "reference:0");
/// assert!(runtime.device("abacus").is_err());
/// # Ok::<(), zyx_core::Error>(())
/// ```
pub struct Runtime {
    backends: Mutex<Vec<Arc<dyn ErasedBackend>>>,
    open: Mutex<Vec<(String, Weak<device::Inner>)>>,
}

impl Default for Runtime {
    /// A runtime that knows the `reference` backend only.
    fn default() -> Runtime {
        let runtime = Runtime { backends: Mutex::default(), open: Mutex::default() };
        runtime.register(crate::reference::Reference::default());
        runtime
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").field("devices", &self.devices()).finish()
    }
}

impl Runtime {
    /// Adds a backend. The order of registration is the order of [`Runtime::devices`]; a backend
    /// whose name is taken replaces the earlier one for devices opened from then on.
    pub fn register<B: hal::Backend>(&self, backend: B) {
        let mut backends = self.backends.lock().unwrap_or_else(PoisonError::into_inner);
        backends.retain(|b| b.name() != B::NAME);
        backends.push(Arc::new(backend));
    }

    /// The devices that are present, of all registered backends.
    pub fn devices(&self) -> Vec<DeviceInfo> {
        self.backends().iter().flat_map(|b| b.devices()).collect()
    }

    /// Opens a device by `backend` or `backend:ordinal`; one handle per device is shared.
    ///
    /// # Errors
    /// [`Error::NoDevice`] when the backend is unknown or the ordinal out of range, naming what
    /// there is; a driver's refusal otherwise.
    pub fn device(&self, spec: &str) -> Result<Device> {
        let (name, ordinal) = spec.split_once(':').unwrap_or((spec, "0"));
        let missing = |reason: String| Error::NoDevice { spec: spec.to_owned(), reason };
        let ordinal: usize = ordinal
            .parse()
            .map_err(|_| missing(format!("`{ordinal}` is not a device number; use `{name}:0`")))?;
        let backends = self.backends();
        let Some(backend) = backends.iter().find(|b| b.name() == name) else {
            let known: Vec<_> = backends.iter().map(|b| b.name()).collect();
            return Err(missing(format!(
                "no such backend is compiled in; there are: {}",
                known.join(", ")
            )));
        };
        let key = format!("{name}:{ordinal}");
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(_, device)| device.strong_count() > 0);
        if let Some(device) = open.iter().find(|(k, _)| *k == key).and_then(|(_, d)| d.upgrade()) {
            return Ok(Device::from(device));
        }
        let present = backend.devices();
        if ordinal >= present.len() {
            let names: Vec<_> =
                present.iter().map(|d| format!("{} ({})", d.spec, d.name)).collect();
            return Err(missing(match names.is_empty() {
                true => format!("no {name} device is present: driver missing or none found"),
                false => format!("only these are present: {}", names.join(", ")),
            }));
        }
        let device = Device::new(backend.open(ordinal)?, key.clone())?;
        open.push((key, device.downgrade()));
        Ok(device)
    }

    fn backends(&self) -> Vec<Arc<dyn ErasedBackend>> {
        self.backends.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
