//! Compiled pipelines on disk, as the driver keeps them: one entry per device and driver in the
//! core's cache of programs.
//!
//! All pipelines of a process are one piece of data, saved each time their number has grown by an
//! eighth: a process may end without notice. A driver whose data is no more than a header keeps
//! nothing, and nothing is written. Drivers never drop anything of it, so once there is more than
//! a budget, a process starts from nothing: with what it compiles from then on.

use std::sync::Mutex;
use zyx_core::hal::DiskCache;
use zyx_core::hal::lock;

/// Bytes of the header that Vulkan prescribes.
const HEADER: usize = 32;

/// What stands for the source of a program.
const KEY: &str = "all pipelines";

/// Most bytes of compiled pipelines.
const MOST: usize = 32 << 20;

#[derive(Debug, Default)]
struct Counts {
    compiled: usize,
    saved: usize,
}

/// The cache of one device.
#[derive(Debug)]
pub(crate) struct Cache {
    disk: DiskCache,
    most: usize,
    counts: Mutex<Counts>,
}

impl Cache {
    /// The cache for pipelines of a device and driver.
    pub(crate) fn new(identity: &str) -> Cache {
        Cache { disk: DiskCache::new("vulkan", identity), most: MOST, counts: Mutex::default() }
    }

    /// What was saved.
    pub(crate) fn load(&self) -> Option<Vec<u8>> {
        self.disk.load(KEY).filter(|data| data.len() <= self.most)
    }

    /// Counts a pipeline, and saves all if there are enough new ones. Says whether there is more
    /// than the budget: then nothing was saved, and counting starts again.
    pub(crate) fn compiled(&self, data: impl FnOnce() -> Vec<u8>) -> bool {
        let mut counts = lock(&self.counts);
        counts.compiled += 1;
        if counts.compiled - counts.saved <= counts.saved / 8 {
            return false;
        }
        counts.saved = counts.compiled;
        let data = data();
        if data.len() > self.most {
            *counts = Counts::default();
            return true;
        }
        if data.len() > HEADER {
            self.disk.store(KEY, &data);
        }
        false
    }

    /// A cache with another budget, in a folder of its own.
    #[cfg(test)]
    pub(crate) fn of_at_most(most: usize, folder: &std::path::Path) -> Cache {
        Cache { disk: DiskCache::in_folder(folder, "test"), most, counts: Mutex::default() }
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
            let full = cache.compiled(|| {
                asked.fetch_add(1, Ordering::Relaxed);
                vec![0; HEADER]
            });
            assert!(!full);
        }
        assert!((10..100).contains(&asked.load(Ordering::Relaxed)));
        assert_eq!(cache.load(), None);
    }

    #[test]
    fn what_exceeds_the_budget_is_not_saved() {
        let folder = std::env::temp_dir().join(format!("zyx-vulkan-{}", std::process::id()));
        let cache = Cache::of_at_most(1000, &folder);
        let size = |n: usize| move || vec![0; n];
        assert!(cache.compiled(size(1001)));
        // Counted from 0 again: the next one is looked at.
        assert!(cache.compiled(size(1001)));
        assert_eq!(cache.load(), None);
        assert!(!cache.compiled(size(1000)));
        assert_eq!(cache.load().map(|data| data.len()), Some(1000));
        // Nor is it loaded.
        assert_eq!(Cache::of_at_most(999, &folder).load(), None);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
