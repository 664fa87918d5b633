//! Compiled pipelines on disk, as the driver keeps them: one entry per device and driver in the
//! core's cache of programs.
//!
//! All pipelines of a process are one piece of data, saved each time their number has grown by an
//! eighth: a process may end without notice. A driver whose data is no more than a header keeps
//! nothing, and nothing is written.

use std::sync::Mutex;
use zyx_core::hal::DiskCache;
use zyx_core::hal::lock;

/// Bytes of the header that Vulkan prescribes.
const HEADER: usize = 32;

/// What stands for the source of a program.
const KEY: &str = "all pipelines";

#[derive(Debug, Default)]
struct Counts {
    compiled: usize,
    saved: usize,
}

/// The cache of one device.
#[derive(Debug)]
pub(crate) struct Cache {
    disk: DiskCache,
    counts: Mutex<Counts>,
}

impl Cache {
    /// The cache for pipelines of a device and driver.
    pub(crate) fn new(identity: &str) -> Cache {
        Cache { disk: DiskCache::new("vulkan", identity), counts: Mutex::default() }
    }

    /// What was saved.
    pub(crate) fn load(&self) -> Option<Vec<u8>> {
        self.disk.load(KEY)
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
            self.disk.store(KEY, &data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn saving_gets_rarer_and_a_header_is_nothing() {
        let cache = Cache::new("a device that is not there");
        let asked = AtomicU64::new(0);
        for _ in 0..1000 {
            cache.compiled(|| {
                asked.fetch_add(1, Ordering::Relaxed);
                vec![0; HEADER]
            });
        }
        assert!((10..100).contains(&asked.load(Ordering::Relaxed)));
        assert_eq!(cache.load(), None);
    }
}
