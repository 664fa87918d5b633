//! The one kind of cache in memory: a table that knows its bytes and drops what was used least recently.
//!
//! A hit is a look into a hash table and a number written. Entries are dropped in batches: when more
//! bytes are kept than allowed, all entries are looked at once and the oldest go until an eighth is
//! free, so that each new entry pays for a few. The owner decides when that is, and which entries
//! have to stay because they are in use.

use rustc_hash::FxHashMap;
use std::borrow::Borrow;
use std::hash::Hash;

/// See the module.
#[derive(Debug)]
pub(crate) struct Lru<K, V> {
    entries: FxHashMap<K, Entry<V>>,
    bytes: usize,
    /// Counts uses.
    now: u64,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    bytes: usize,
    used: u64,
}

impl<K, V> Default for Lru<K, V> {
    fn default() -> Lru<K, V> {
        Lru { entries: FxHashMap::default(), bytes: 0, now: 0 }
    }
}

/// Bytes of an entry besides those its owner tells.
const OVERHEAD: usize = 64;

impl<K: Eq + Hash, V> Lru<K, V> {
    /// A value, which is now the one used last.
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.now += 1;
        let entry = self.entries.get_mut(key)?;
        entry.used = self.now;
        Some(&mut entry.value)
    }

    /// Keeps a value of so many bytes, instead of the one before if there was one.
    pub(crate) fn insert(&mut self, key: K, value: V, bytes: usize) {
        self.now += 1;
        let bytes = bytes + OVERHEAD + size_of::<(K, V)>();
        let entry = Entry { value, bytes, used: self.now };
        let before = self.entries.insert(key, entry);
        self.bytes = self.bytes + bytes - before.map_or(0, |entry| entry.bytes);
    }

    /// A value has so many bytes more.
    pub(crate) fn grow<Q: Eq + Hash + ?Sized>(&mut self, key: &Q, bytes: usize)
    where
        K: Borrow<Q>,
    {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.bytes += bytes;
            self.bytes += bytes;
        }
    }

    /// All entries, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, entry)| (key, &entry.value))
    }

    /// Bytes of all entries.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.entries.len()
    }

    /// If there are more bytes than `limit`, drops the entries used least recently until an eighth
    /// less is left.
    pub(crate) fn fit(&mut self, limit: usize) {
        if self.bytes > limit {
            drop(self.drop_oldest(self.bytes - limit + limit / 8, 0, |_, used| Some(used)));
        }
    }

    /// Drops entries until so many bytes are gone, and gives their values: dropping those may take
    /// time, and locks. `rank` tells when an entry was used, given when it was as far as is known
    /// here, or that it has to stay; the lowest go first, and of those that may go the highest `keep` stay.
    #[must_use = "values are dropped where no lock is held"]
    pub(crate) fn drop_oldest(
        &mut self,
        bytes: usize,
        keep: usize,
        rank: impl Fn(&V, u64) -> Option<u64>,
    ) -> Vec<V> {
        let rank = |entry: &Entry<V>| rank(&entry.value, entry.used);
        let going = self.entries.values().filter_map(|entry| Some((rank(entry)?, entry.bytes)));
        let mut going: Vec<(u64, usize)> = going.collect();
        going.sort_unstable();
        going.truncate(going.len().saturating_sub(keep));
        let mut gone = 0;
        let last = going.iter().take_while(|(_, size)| {
            let more = gone < bytes;
            gone += size;
            more
        });
        let Some(last) = last.last().map(|entry| entry.0) else { return Vec::new() };
        let goes = |entry: &Entry<V>| rank(entry).is_some_and(|used| used <= last);
        let dropped = self.entries.extract_if(|_, entry| goes(entry));
        let dropped: Vec<Entry<V>> = dropped.map(|(_, entry)| entry).collect();
        self.bytes -= dropped.iter().map(|entry| entry.bytes).sum::<usize>();
        if self.entries.len() < self.entries.capacity() / 4 {
            self.entries.shrink_to_fit();
        }
        dropped.into_iter().map(|entry| entry.value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of an entry of a table of numbers.
    const EACH: usize = 100 + OVERHEAD + size_of::<(u32, u32)>();

    fn of(n: u32) -> Lru<u32, u32> {
        let mut cache = Lru::default();
        (0..n).for_each(|i| cache.insert(i, 10 * i, 100));
        cache
    }

    #[test]
    fn what_was_used_least_recently_goes_first() {
        let mut cache = of(16);
        assert_eq!([0, 2, 99].map(|i| cache.get(&i).copied()), [Some(0), Some(20), None]);
        cache.fit(16 * EACH);
        assert_eq!(cache.len(), 16);
        cache.fit(15 * EACH);
        // One too many, an eighth of fifteen, and no halves.
        assert_eq!((cache.len(), cache.bytes()), (13, 13 * EACH));
        let left = [0, 1, 2, 3, 4, 5].map(|i| cache.get(&i).is_some());
        assert_eq!(left, [true, false, true, false, false, true]);
    }

    #[test]
    fn what_is_in_use_stays_and_so_do_the_latest() {
        let mut cache = of(6);
        let used = |&value: &u32, used| (value != 0).then_some(used);
        assert_eq!(cache.drop_oldest(1, 0, used), [10]);
        // By times that others know.
        assert_eq!(cache.drop_oldest(1, 0, |&value, _| Some(100 - u64::from(value))), [50]);
        let mut gone = cache.drop_oldest(usize::MAX, 2, |_, used| Some(used));
        gone.sort_unstable();
        assert_eq!(gone, [0, 20]);
        assert_eq!((cache.len(), cache.bytes()), (2, 2 * EACH));
    }

    #[test]
    fn bytes_are_those_of_what_is_kept() {
        let mut cache = of(4);
        cache.insert(1, 5, 300);
        cache.grow(&2, 50);
        cache.grow(&99, 50);
        assert_eq!(cache.bytes(), 4 * EACH + 200 + 50);
        assert_eq!(cache.drop_oldest(usize::MAX, 0, |&value, _| (value == 5).then_some(0)), [5]);
        assert_eq!(cache.bytes(), 3 * EACH + 50);
        assert_eq!(cache.drop_oldest(usize::MAX, 0, |_, used| Some(used)).len(), 3);
        assert_eq!((cache.len(), cache.bytes()), (0, 0));
        assert_eq!(cache.drop_oldest(1, 0, |_, used| Some(used)), []);
    }

    #[test]
    fn a_million_entries_stay_within_their_bytes() {
        let mut cache = Lru::default();
        for i in 0..1_000_000u32 {
            cache.insert(i, i, i as usize % 50);
            assert!(cache.get(&0).is_some(), "what is used stays");
            cache.fit(100_000);
            assert!(cache.bytes() <= 100_000);
        }
        assert!(cache.len() > 500);
    }
}
