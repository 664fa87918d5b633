//! The runtime: registered backends, open devices, memory, counters.
//!
//! [`Runtime`] is where backends are registered and devices found; nothing in the core is static,
//! so a program may have several. [`Device`] is the handle that tensors hold. Types are erased in
//! one file, `erased.rs`; everything above it is free of backend generics.

mod buffer;
mod caches;
mod checked;
mod device;
mod erased;
mod families;
mod host;
mod indices;
mod launch;
mod litmus;
mod pool;
mod profile;
mod raw;
mod reads;
mod spill;
mod stats;
mod trace;
mod tuning;

pub use crate::hal::HostOwner;
pub use crate::prepare::prepare;
pub use buffer::{Buffer, Pinned};
pub(crate) use caches::Plans;
pub use checked::CallSite;
pub(crate) use checked::{Bound, Note, Place};
pub(crate) use device::WeakDevice;
pub use device::{Device, Optimizer};
pub use erased::Program;
pub use host::HostView;
pub(crate) use indices::{Flag, Flags, Judgement, Range};
pub use launch::Launch;
pub use litmus::Litmus;
pub use profile::ProgramTime;
pub use reads::Pending;
pub(crate) use spill::Droppable;
pub use stats::Stats;
pub(crate) use trace::Arguments;
#[cfg(feature = "trace")]
pub use trace::Trace;
pub(crate) use tuning::{ParameterCall, SizeClass, SizedKernel};
pub use tuning::{Tuned, Tuning};

use crate::error::{Error, Result};
use crate::hal::{self, DeviceError, DeviceInfo};
use erased::ErasedBackend;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Registered backends and the devices opened through them.
///
/// ```
/// use zyx::Runtime;
/// let runtime = Runtime::default();
/// let device = runtime.device("reference")?;
/// assert_eq!(device.spec(), "reference:0");
/// assert!(runtime.device("abacus").is_err());
/// # Ok::<(), zyx::Error>(())
/// ```
pub struct Runtime {
    backends: Mutex<Vec<Arc<dyn ErasedBackend>>>,
    open: Mutex<Vec<(String, Weak<device::Inner>)>>,
    #[cfg(feature = "trace")]
    trace: Mutex<Option<Trace>>,
}

impl Default for Runtime {
    /// A runtime that knows the `reference` backend only.
    fn default() -> Runtime {
        let runtime = Runtime {
            backends: Mutex::default(),
            open: Mutex::default(),
            #[cfg(feature = "trace")]
            trace: Mutex::default(),
        };
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
    ///
    /// ```
    /// use zyx::internals::Reference;
    /// use zyx::Runtime;
    /// let runtime = Runtime::default();
    /// // Once more, as a device that says it is a GPU.
    /// let mut backend = Reference::default();
    /// backend.caps.simt = true;
    /// runtime.register(backend);
    /// assert!(runtime.device("reference")?.caps().simt);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn register<B: hal::Backend>(&self, backend: B) {
        let mut backends = self.backends.lock().unwrap_or_else(PoisonError::into_inner);
        backends.retain(|b| b.name() != B::NAME);
        backends.push(Arc::new(backend));
    }

    /// The devices that are present, of all registered backends.
    ///
    /// ```
    /// use zyx::Runtime;
    /// let devices = Runtime::default().devices();
    /// assert_eq!(devices[0].spec, "reference:0");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn devices(&self) -> Vec<DeviceInfo> {
        self.backends().iter().flat_map(|b| b.devices()).collect()
    }

    /// What the registered backends are called, in the order of registration.
    ///
    /// ```
    /// assert_eq!(zyx::Runtime::default().backend_names(), ["reference"]);
    /// ```
    pub fn backend_names(&self) -> Vec<&'static str> {
        self.backends().iter().map(|b| b.name()).collect()
    }

    /// Whether a registered backend has a driver that cannot be used. Where there is none, or no device,
    /// nothing is broken.
    ///
    /// ```
    /// assert!(!zyx::Runtime::default().is_broken("reference"));
    /// ```
    pub fn is_broken(&self, name: &str) -> bool {
        let backend = self.backends().into_iter().find(|b| b.name() == name);
        let refusal = backend.and_then(|b| b.open(0).err());
        refusal.is_some_and(|error| !matches!(error, DeviceError::Absent { .. }))
    }

    /// Opens a device by `backend` or `backend:ordinal`; one handle per device is shared.
    ///
    /// The environment variable `ZYX_MEMORY_LIMIT` limits the memory of devices opened while it is
    /// set: bytes for each, as in `512M` (`K`, `M` and `G` are powers of 1024), or a list of
    /// backends and devices, as in `cuda:1=8G,opencl=64M`. See [`Device::set_memory_limit`].
    ///
    /// `ZYX_CACHE_LIMIT`, written alike, limits their caches; see [`Device::set_cache_limit`].
    ///
    /// The environment variable `ZYX_CHECKED`, if it is `1`, turns checked mode on. See
    /// [`Device::set_checked`].
    ///
    /// The environment variable `ZYX_TUNE` chooses whether devices look for faster kernels: `off`,
    /// or for how many milliseconds. See [`Device::set_tuning`].
    ///
    /// ```
    /// use zyx::Runtime;
    /// let runtime = Runtime::default();
    /// assert_eq!(runtime.device("reference:0")?, runtime.device("reference")?);
    /// let error = runtime.device("reference:9").unwrap_err().to_string();
    /// assert!(error.contains("reference:9"), "{error}");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoDevice`] when the backend is unknown or the ordinal out of range, naming what
    /// there is, or when one of these variables cannot be read; a driver's refusal otherwise.
    #[track_caller]
    pub fn device(&self, spec: &str) -> Result<Device> {
        let (name, ordinal) = spec.split_once(':').unwrap_or((spec, "0"));
        let location = Location::caller();
        let missing = |reason: String| Error::NoDevice { spec: spec.to_owned(), reason, location };
        let ordinal: usize = ordinal
            .parse()
            .map_err(|_| missing(format!("`{ordinal}` is not a device number; use `{name}:0`")))?;
        let backends = self.backends();
        let Some(backend) = backends.iter().find(|b| b.name() == name) else {
            let known = self.backend_names().join(", ");
            return Err(missing(format!("no such backend is compiled in; there are: {known}")));
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
                true => match backend.open(ordinal) {
                    Err(error) => format!("no {name} device is present: {error}"),
                    Ok(_) => format!("no {name} device is present"),
                },
                false => format!("only these are present: {}", names.join(", ")),
            }));
        }
        let limited = |name| {
            let setting = std::env::var(name).unwrap_or_default();
            limit((name, &setting), &key).map_err(missing)
        };
        let (memory, caches) = (limited("ZYX_MEMORY_LIMIT")?, limited("ZYX_CACHE_LIMIT")?);
        let tuning = tuning(&std::env::var("ZYX_TUNE").unwrap_or_default()).map_err(missing)?;
        let checked =
            checked(&std::env::var("ZYX_CHECKED").unwrap_or_default()).map_err(missing)?;
        let device = Device::new(backend.open(ordinal)?, key.clone())?;
        device.set_memory_limit(memory);
        device.set_checked(checked);
        if let Some(bytes) = caches {
            device.set_cache_limit(bytes);
        }
        device.set_tuning(tuning);
        #[cfg(feature = "trace")]
        device.set_trace(hal::lock(&self.trace).as_ref());
        open.push((key, device.downgrade()));
        Ok(device)
    }

    /// Makes devices that are opened from now on record what they do; see [`Device::set_trace`].
    ///
    /// ```
    /// use zyx::{Runtime, Tensor, Trace};
    /// let path = std::env::temp_dir().join(format!("zyx-trace-all-{}.json", std::process::id()));
    /// let runtime = Runtime::default();
    /// runtime.set_trace(Some(&Trace::create(&path)?));
    /// (Tensor::new([1f32, 2.0], &runtime.device("reference")?)? * 2.0).realize()?;
    /// let text = std::fs::read_to_string(&path).expect("it was written");
    /// assert!(text.contains("reference:0"));
    /// # std::fs::remove_file(path).expect("it is there");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[cfg(feature = "trace")]
    pub fn set_trace(&self, trace: Option<&Trace>) {
        *hal::lock(&self.trace) = trace.cloned();
    }

    fn backends(&self) -> Vec<Arc<dyn ErasedBackend>> {
        self.backends.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What `ZYX_TUNE` asks for.
fn tuning(setting: &str) -> Result<Tuning, String> {
    match setting.trim() {
        "" | "off" => Ok(Tuning::Off),
        ms => match ms.parse() {
            Ok(ms) => Ok(Tuning::Background(std::time::Duration::from_millis(ms))),
            Err(_) => Err(format!("ZYX_TUNE is `{setting}`; write `off` or milliseconds")),
        },
    }
}

/// What `ZYX_CHECKED` asks for.
fn checked(setting: &str) -> Result<bool, String> {
    match setting.trim() {
        "" | "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(format!("ZYX_CHECKED is `{setting}`; write 0 or 1")),
    }
}

/// The limit that the setting `name` has for the device `key`.
fn limit((name, setting): (&str, &str), key: &str) -> Result<Option<usize>, String> {
    let mut limit = None;
    for item in setting.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let (whose, bytes) = item.split_once('=').map_or((None, item), |(w, b)| (Some(w), b));
        let bytes = hal::size(bytes).ok_or_else(|| {
            format!("{name} holds `{item}`, which is no size; write 512M or cuda:1=8G")
        })?;
        let backend = key.split(':').next();
        if whose.is_none_or(|whose| whose == key || Some(whose) == backend) {
            limit = Some(bytes);
        }
    }
    Ok(limit)
}

#[cfg(test)]
mod tests {
    use super::{Tuning, checked, limit, tuning};

    #[test]
    fn checked_mode_is_off_or_on() {
        assert_eq!((checked(""), checked("0"), checked(" 1")), (Ok(false), Ok(false), Ok(true)));
        assert!(checked("yes").unwrap_err().contains("ZYX_CHECKED"));
    }

    #[test]
    fn tuning_is_off_or_milliseconds() {
        assert_eq!((tuning(""), tuning("off")), (Ok(Tuning::Off), Ok(Tuning::Off)));
        let ms = std::time::Duration::from_millis(250);
        assert_eq!(tuning(" 250 "), Ok(Tuning::Background(ms)));
        assert!(tuning("on").unwrap_err().contains("ZYX_TUNE"));
    }

    #[test]
    fn limits_are_read_for_the_device_they_name() {
        let given = |setting: &str| limit(("ZYX_MEMORY_LIMIT", setting), "cuda:1");
        let limit = |setting: &str| given(setting).unwrap();
        assert_eq!(limit(""), None);
        assert_eq!(limit("1000"), Some(1000));
        assert_eq!(limit("64M"), Some(64 << 20));
        assert_eq!(limit("2gib, opencl=1K"), Some(2 << 30));
        assert_eq!(limit("opencl=1K,cuda:0=3M"), None);
        assert_eq!(limit("1G,cuda=5K,cuda:1=6K"), Some(6 << 10));
        for bad in ["x", "5T", "-1", "cuda:1=", "99999999999G"] {
            assert!(given(bad).unwrap_err().contains("ZYX_MEMORY_LIMIT"), "{bad}");
        }
    }
}
