//! Compiled pipelines on disk, as the driver keeps them.
//!
//! One file per device and driver in `$ZYX_CACHE_DIR/vulkan`, by default below
//! `$XDG_CACHE_HOME/zyx` or `~/.cache/zyx`; `ZYX_CACHE_DIR` set to nothing turns the cache off.
//! The environment is read once, when a device is opened.
//!
//! A file starts with a key (format, device, driver) and a checksum, both compared on loading, so
//! neither a collision of file names nor a damaged file reaches a driver. It is written aside and
//! renamed, each time the number of pipelines compiled has grown by an eighth: a process may end
//! without notice. Every failure means "not cached". A driver whose data is no more than a header
//! keeps nothing, and nothing is written.

use crate::gpu::lock;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Changes when the format of the files does.
const FORMAT: &str = "zyx vulkan pipelines 1";

/// Bytes of the header that Vulkan prescribes.
const HEADER: usize = 32;

#[derive(Debug, Default)]
struct Counts {
    compiled: usize,
    saved: usize,
}

/// The cache of one device.
#[derive(Debug)]
pub(crate) struct Cache {
    path: Option<PathBuf>,
    key: Vec<u8>,
    counts: Mutex<Counts>,
}

impl Cache {
    /// The cache for pipelines of a device and driver.
    pub(crate) fn new(identity: &str) -> Cache {
        let dir = directory(|name| env::var_os(name));
        Cache::at(dir.map(|dir| dir.join("vulkan")), identity)
    }

    fn at(dir: Option<PathBuf>, identity: &str) -> Cache {
        let key = format!("{FORMAT}\n{identity}\n").into_bytes();
        let path = dir.map(|dir| dir.join(format!("{:016x}.bin", fnv(&key))));
        Cache { path, key, counts: Mutex::default() }
    }

    /// What was saved.
    pub(crate) fn load(&self) -> Option<Vec<u8>> {
        let file = fs::read(self.path.as_ref()?).ok()?;
        let (sum, data) = file.strip_prefix(&self.key[..])?.split_first_chunk::<8>()?;
        (u64::from_le_bytes(*sum) == fnv(data)).then(|| data.to_vec())
    }

    /// Counts a pipeline, and saves all if there are enough new ones.
    pub(crate) fn compiled(&self, data: impl FnOnce() -> Vec<u8>) {
        let mut counts = lock(&self.counts);
        counts.compiled += 1;
        if counts.compiled - counts.saved <= counts.saved / 8 {
            return;
        }
        counts.saved = counts.compiled;
        let data = data();
        if data.len() > HEADER {
            self.store(&data);
        }
    }

    fn store(&self, data: &[u8]) {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let Some(path) = &self.path else { return };
        let mut file = self.key.clone();
        file.extend_from_slice(&fnv(data).to_le_bytes());
        file.extend_from_slice(data);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let aside = path.with_extension(format!("{}-{serial}.tmp", std::process::id()));
        let Some(dir) = path.parent() else { return };
        let written = fs::create_dir_all(dir)
            .and_then(|()| fs::write(&aside, file))
            .and_then(|()| fs::rename(&aside, path));
        if written.is_err() {
            let _ = fs::remove_file(aside);
        }
    }
}

/// Where caches go, given the environment.
fn directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if let Some(dir) = variable("ZYX_CACHE_DIR") {
        return (!dir.is_empty()).then(|| dir.into());
    }
    let set = |name: &str| variable(name).filter(|dir| !dir.is_empty()).map(PathBuf::from);
    set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache"))).map(|dir| dir.join("zyx"))
}

/// The 64-bit Fowler-Noll-Vo hash, variant 1a (RFC 9923).
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_comes_back_only_whole_and_for_its_device() {
        let dir = env::temp_dir().join(format!("zyx-vulkan-cache-{}", std::process::id()));
        let cache = Cache::at(Some(dir.clone()), "device 1");
        assert_eq!(cache.load(), None);
        cache.compiled(|| vec![7; 100]);
        assert_eq!(cache.load(), Some(vec![7; 100]));
        assert_eq!(Cache::at(Some(dir.clone()), "device 2").load(), None);

        let path = fs::read_dir(&dir).unwrap().next().unwrap().unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&path, bytes).unwrap();
        assert_eq!(cache.load(), None);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn saving_gets_rarer_and_a_header_is_nothing() {
        let cache = Cache::at(None, "device");
        let asked = AtomicU64::new(0);
        for _ in 0..1000 {
            cache.compiled(|| {
                asked.fetch_add(1, Ordering::Relaxed);
                vec![0; HEADER]
            });
        }
        assert!((10..100).contains(&asked.load(Ordering::Relaxed)));
    }
}
