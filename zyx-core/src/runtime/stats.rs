//! Counters of what a device was made to do.

use crate::hal::Traffic;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What a device was made to do since it was opened; see [`Device::stats`](super::Device::stats).
        ///
        /// Subtract two snapshots to measure a piece of a program:
        ///
        /// ```
        /// # use zyx::Tensor;
        /// # let device = zyx::runtime().device("reference")?;
        /// let before = device.stats();
        /// let x = Tensor::from_slice(&[1f32, 2.0], [2], &device)?;
        /// (x * 2.0).realize()?;
        /// assert_eq!(device.stats().since(&before).launches, 1);
        /// # Ok::<(), zyx::Error>(())
        /// ```
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats { $($(#[$doc])* pub $name: u64,)* }

        impl Stats {
            /// The growth of each counter since `earlier`; levels (`live_bytes`, `peak_bytes`,
            /// `cached_bytes`, `spilled_bytes`, `program_bytes`, `plan_bytes`) are given as they are now.
            ///
            /// ```
            /// # use zyx::Tensor;
            /// # let device = zyx::runtime().device("reference")?;
            /// let before = device.stats();
            /// let x = Tensor::new([1f32, 2.0], &device)? * 2.0;
            /// assert_eq!(x.to_vec::<f32>()?, [2.0, 4.0]);
            /// let spent = device.stats().since(&before);
            /// assert_eq!((spent.launches, spent.bytes_moved), (1, 16));
            /// # Ok::<(), zyx::Error>(())
            /// ```
            pub fn since(&self, earlier: &Stats) -> Stats {
                Stats {
                    live_bytes: self.live_bytes,
                    peak_bytes: self.peak_bytes,
                    cached_bytes: self.cached_bytes,
                    spilled_bytes: self.spilled_bytes,
                    program_bytes: self.program_bytes,
                    plan_bytes: self.plan_bytes,
                    ..Stats { $($name: self.$name.saturating_sub(earlier.$name),)* }
                }
            }
        }

        #[derive(Debug, Default)]
        pub(crate) struct Counters { $(pub(crate) $name: AtomicU64,)* }

        impl Counters {
            pub(crate) fn snapshot(&self, traffic: Traffic) -> Stats {
                self.submits.store(traffic.submits, Relaxed);
                self.barriers.store(traffic.barriers, Relaxed);
                Stats { $($name: self.$name.load(Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Programs launched, generated and library kernels alike.
    launches,
    /// Submissions that the driver received, as its backend reports them; see
    /// [`Traffic`](crate::hal::Traffic), also for what is one. Synchronize first, so that
    /// what was gathered is handed over.
    submits,
    /// Programs made by a compiler, code that is generated in place among them.
    compiles,
    /// Programs that were there already: on disk from an earlier process, or part of a library.
    loads,
    /// Nanoseconds in which kernels were prepared, of all threads that did, and compiled: verifier, passes
    /// (but for those that the tuner tries) and the device's compiler.
    compile_ns,
    /// Nanoseconds that the verifier took, of all threads: within `compile_ns`, but for kernels that the tuner
    /// tries and for those whose families are looked up.
    verify_ns,
    /// Plans found in the cache.
    plan_hits,
    /// Plans made anew.
    plan_misses,
    /// Nodes of the graphs whose plans were asked for.
    nodes,
    /// Memory allocations asked of the driver.
    driver_allocs,
    /// Bytes copied between host and device.
    bytes_moved,
    /// Copies between host and device.
    copies,
    /// Times the host waited for the device.
    host_syncs,
    /// Barriers between commands that the driver received; see [`Traffic`](crate::hal::Traffic).
    barriers,
    /// Temporary buffers of the plans played.
    temps,
    /// Plans that ran step by step, because the device had no room for all of it at once.
    stepwise,
    /// Results that got the memory of an input which died.
    donations,
    /// Values that were stored on the way to others, since the program still held them.
    values_kept,
    /// Values of that kind that were dropped, because the device was full.
    values_dropped,
    /// Kernel candidates timed by the tuner.
    searches,
    /// Bytes in buffers that tensors or running plans hold.
    live_bytes,
    /// Largest `live_bytes` so far; see [`Device::reset_peak`](super::Device::reset_peak).
    peak_bytes,
    /// Bytes kept by the pool for reuse.
    cached_bytes,
    /// Times a buffer was moved to the host because the device was full.
    spills,
    /// Bytes that are on the host for that reason.
    spilled_bytes,
    /// Bytes of host memory that compiled programs take, roughly.
    program_bytes,
    /// Bytes of host memory that plans take, roughly.
    plan_bytes,
    /// Programs and plans dropped, to keep to the limit of
    /// [`Device::set_cache_limit`](super::Device::set_cache_limit) or by [`Device::trim`](super::Device::trim).
    evictions,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Relaxed);
    }

    pub(crate) fn grow_live(&self, bytes: u64) {
        let live = self.live_bytes.fetch_add(bytes, Relaxed) + bytes;
        self.peak_bytes.fetch_max(live, Relaxed);
    }

    pub(crate) fn shrink_live(&self, bytes: u64) {
        self.live_bytes.fetch_sub(bytes, Relaxed);
    }
}
