//! What was found for a kernel on a device, kept on disk.
//!
//! One small file per kernel (see [`DiskCache`]). Its key is exact: the kernel's text, which holds
//! shapes and strides as numbers, and all of the device that a choice depends on: backend, name,
//! driver, capabilities, and the version of this crate. Its contents are a trace and a fingerprint
//! of the kernel that the trace gave; a trace that gives another one now, or any damage, means
//! that nothing is known. Of a library call its kernel is the key, and what computes it is kept. With registered passes
//! there are files of their own, since a search without them says nothing of them.

use super::library::Rival;
use super::parameters::Values;
use crate::hal::{Caps, DeviceInfo, DiskCache};
use crate::ir::Kernel;
use crate::passes::{Pass, Trace};
use crate::tune::choice::Choice;
use std::sync::Arc;

/// What is stored when nothing was better than the default.
const DEFAULT: &str = "default";

/// The choices made for the kernels of a device.
#[derive(Debug)]
pub(super) struct Store {
    cache: Arc<DiskCache>,
    passes: Vec<&'static Pass>,
    /// The sorted names of the passes, in front of each key.
    names: String,
}

/// All of a device that a choice depends on.
pub(super) fn identity(info: &DeviceInfo, driver: &str, caps: &Caps) -> String {
    let backend = info.spec.split(':').next().unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    format!("tuner 1 of {version}\n{backend}\n{}\n{driver}\n{caps:?}", info.name)
}

impl Store {
    /// The choices in a cache, with these registered passes.
    pub(super) fn new(cache: impl Into<Arc<DiskCache>>, passes: &[&'static Pass]) -> Store {
        let mut names: Vec<&str> = passes.iter().map(|pass| pass.name).collect();
        names.sort_unstable();
        let names = names.iter().map(|name| format!("pass {name}\n")).collect();
        Store { cache: cache.into(), passes: passes.to_vec(), names }
    }

    /// The same cache with other registered passes.
    pub(super) fn with_passes(&self, passes: &[&'static Pass]) -> Store {
        Store::new(self.cache.clone(), passes)
    }

    /// The registered passes.
    pub(super) fn passes(&self) -> &[&'static Pass] {
        &self.passes
    }

    fn key(&self, kernel: &Kernel) -> String {
        format!("{}{kernel}", self.names)
    }

    fn call(&self, kernel: &Kernel) -> String {
        format!("library call\n{}", self.key(kernel))
    }

    /// What is known of a kernel.
    pub(super) fn get(&self, kernel: &Kernel) -> Option<Choice> {
        let text = String::from_utf8(self.cache.load(&self.key(kernel))?).ok()?;
        if text == DEFAULT {
            return Some(Choice::default());
        }
        let (print, trace) = text.split_once('\n')?;
        let trace = Trace::parse_with(trace, &self.passes).ok()?;
        let choice = Choice::of(kernel, trace)?;
        let (_, tuned) = choice.steps()?;
        (print == fingerprint(tuned)).then_some(choice)
    }

    /// Keeps a choice.
    pub(super) fn put(&self, kernel: &Kernel, choice: &Choice) {
        let text = match choice.steps() {
            None => DEFAULT.to_owned(),
            Some((trace, tuned)) => format!("{}\n{trace}", fingerprint(tuned)),
        };
        self.cache.store(&self.key(kernel), text.as_bytes());
    }

    /// The choice of values of parameters for the call with this key; `None` if there is none.
    pub(super) fn values(&self, key: &str) -> Option<Values> {
        String::from_utf8(self.cache.load(key)?).ok()?.parse().ok()
    }

    /// Keeps values of parameters.
    pub(super) fn put_values(&self, key: &str, values: &Values) {
        self.cache.store(key, values.to_string().as_bytes());
    }

    /// What is known to compute a call, whose kernel this is, fastest.
    pub(super) fn rival(&self, kernel: &Kernel) -> Option<Rival> {
        String::from_utf8(self.cache.load(&self.call(kernel))?).ok()?.parse().ok()
    }

    /// Keeps what computes a call fastest.
    pub(super) fn put_rival(&self, kernel: &Kernel, rival: &Rival) {
        self.cache.store(&self.call(kernel), rival.to_string().as_bytes());
    }
}

/// Tells kernels apart for this purpose: 64 bits of their text.
pub(super) fn fingerprint(kernel: &Kernel) -> String {
    let hash = kernel.to_string().bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hal::DeviceKind;
    use crate::passes::samples;
    use crate::tune::default_trace;
    use std::fs;
    use std::path::{Path, PathBuf};

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("zyx-store-{name}-{}", std::process::id()))
    }

    fn store(dir: &Path, driver: &str) -> Store {
        let (spec, name) = ("x:0".to_owned(), "device".to_owned());
        let info = DeviceInfo { spec, name, memory: 0, kind: DeviceKind::Gpu };
        let identity = identity(&info, driver, &Caps::default());
        Store::new(DiskCache::in_folder(dir, &identity), &[])
    }

    #[test]
    fn choices_come_back_for_the_same_kernel_device_and_driver_only() {
        let dir = folder("keys");
        let kernel = samples::softmax(8, 40);
        let trace = default_trace(&kernel, &Caps::default());
        let choice = Choice::of(&kernel, trace).unwrap();
        store(&dir, "driver 1").put(&kernel, &choice);
        assert_eq!(store(&dir, "driver 1").get(&kernel), Some(choice));
        assert_eq!(store(&dir, "driver 2").get(&kernel), None);
        assert_eq!(store(&dir, "driver 1").get(&samples::softmax(8, 41)), None);
        store(&dir, "driver 1").put(&kernel, &Choice::default());
        assert_eq!(store(&dir, "driver 1").get(&kernel), Some(Choice::default()));
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn damage_and_traces_of_other_versions_mean_nothing_known() {
        let dir = folder("damage");
        let kernel = samples::gelu(1000);
        let cache = || DiskCache::in_folder(&dir, "i");
        for text in ["", "default ", "0123\nunroll(", "0000000000000000\nunroll(%3, 4)", "\n"] {
            cache().store(&kernel.to_string(), text.as_bytes());
            assert_eq!(Store::new(cache(), &[]).get(&kernel), None, "{text:?}");
        }
        cache().store(&kernel.to_string(), &[0xff, 0xfe]);
        assert_eq!(Store::new(cache(), &[]).get(&kernel), None);
        Store::new(cache(), &[]).put(&kernel, &Choice::default());
        for file in fs::read_dir(&dir).unwrap() {
            fs::write(file.unwrap().path(), b"garbage").unwrap();
        }
        assert_eq!(Store::new(cache(), &[]).get(&kernel), None);
        fs::remove_dir_all(dir).unwrap();
    }
}
