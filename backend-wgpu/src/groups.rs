//! Bind groups that are kept until one of their buffers is dropped.

use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{Arc, Mutex};
use zyx_core::hal::{DeviceError, lock};

/// Most groups kept.
const KEPT: usize = 4096;

/// What a group was made of: a program, a buffer of scalars, and buffers with offsets.
pub(crate) type Key = (u64, u64, Vec<(u64, usize)>);

/// The groups made.
#[derive(Debug)]
pub(crate) struct Groups<T> {
    kept: Mutex<Kept<T>>,
}

#[derive(Debug)]
struct Kept<T> {
    groups: FxHashMap<Arc<Key>, T>,
    /// The groups of each buffer.
    uses: FxHashMap<u64, FxHashSet<Arc<Key>>>,
}

impl<T> Default for Groups<T> {
    fn default() -> Groups<T> {
        let (groups, uses) = Default::default();
        Groups { kept: Mutex::new(Kept { groups, uses }) }
    }
}

/// The buffers of a group, some perhaps twice.
fn buffers(key: &Key) -> impl Iterator<Item = u64> {
    key.2.iter().map(|part| part.0).chain([key.1])
}

impl<T: Clone> Groups<T> {
    /// Drops the groups of a buffer, in time proportional to what they are made of.
    pub(crate) fn forget(&self, buffer: u64) {
        let mut kept = lock(&self.kept);
        let keys = kept.uses.remove(&buffer).unwrap_or_default();
        #[allow(clippy::iter_over_hash_type, reason = "the order of release is open")]
        for key in keys {
            kept.groups.remove(&key);
            for other in buffers(&key) {
                if let Some(of) = kept.uses.get_mut(&other) {
                    of.remove(&key);
                    if of.is_empty() {
                        kept.uses.remove(&other);
                    }
                }
            }
        }
    }

    /// The group of a key, made if it is not kept.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn get(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<T, DeviceError>,
    ) -> Result<T, DeviceError> {
        let mut kept = lock(&self.kept);
        if let Some(group) = kept.groups.get(&key) {
            return Ok(group.clone());
        }
        if kept.groups.len() >= KEPT {
            kept.groups.clear();
            kept.uses.clear();
        }
        let (group, key) = (make()?, Arc::new(key));
        for buffer in buffers(&key) {
            kept.uses.entry(buffer).or_default().insert(Arc::clone(&key));
        }
        kept.groups.insert(key, group.clone());
        Ok(group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A few buffers with ids from a counter, in groups of up to three, dropped at random.
    #[test]
    fn groups_last_as_long_as_their_buffers() {
        let groups = Groups::default();
        let mut state = 7u64;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % n
        };
        let mut model: FxHashMap<Key, u64> = FxHashMap::default();
        for serial in 0..20_000 {
            if random(4) == 0 {
                let buffer = 1 + random(12);
                groups.forget(buffer);
                model.retain(|key, _| buffers(key).all(|of| of != buffer));
            } else {
                let parts = (0..1 + random(3)).map(|_| (1 + random(12), 0)).collect();
                let key = (random(3), random(2), parts);
                let want = *model.entry(key.clone()).or_insert(serial);
                assert_eq!(groups.get(key, || Ok(serial)).unwrap(), want);
            }
            let kept = lock(&groups.kept);
            assert_eq!(kept.groups.len(), model.len());
            assert!(kept.uses.values().all(|of| !of.is_empty()));
            let used: usize = kept.uses.values().map(FxHashSet::len).sum();
            let distinct = |key: &Key| buffers(key).collect::<FxHashSet<u64>>().len();
            assert_eq!(used, model.keys().map(distinct).sum::<usize>());
        }
        (0..=12).for_each(|buffer| groups.forget(buffer));
        assert!(lock(&groups.kept).groups.is_empty() && lock(&groups.kept).uses.is_empty());
    }

    #[test]
    fn so_many_are_kept() {
        let groups = Groups::default();
        for buffer in 0..3 * KEPT as u64 {
            groups.get((0, 0, vec![(buffer + 1, 0)]), || Ok(())).unwrap();
        }
        let kept = lock(&groups.kept);
        assert!(kept.groups.len() <= KEPT && kept.uses.len() <= KEPT + 1);
    }
}
