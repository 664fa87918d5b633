//! What a device keeps to do things faster a second time: programs here, plans in the layer above.
//!
//! Together they have one limit of bytes ([`Device::set_cache_limit`]). When it is exceeded, programs
//! that no plan uses go first, those used least recently before others; then plans, with which more
//! programs become unused. Both go in batches, so that what is new pays for a few of them. A program
//! in use stays, and so do the [`KEEP`] plans used last, whatever they take: a loop must not lose its own.
//!
//! Locks: one for each table, held for moments; never while anything is dropped, compiled or run.

use super::device::{Device, timed};
use super::erased::Program;
use super::families::Known;
use super::stats::{Counters, Stats};
use crate::hal::{Call, DeviceKind, RawKernel, Watch, lock, on_threads};
use crate::ir::Kernel;
use crate::lru::Lru;
use rustc_hash::FxHashSet;
use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// Bytes of the caches of a device whose compiler works in microseconds, and of any other.
/// Nanoseconds that a library takes to prepare a call, roughly, and for each byte of the kernels in it.
const CALL: usize = 50_000;
const CALL_BYTE: usize = 100;
const LIMIT_CPU: usize = 32 << 20;
const LIMIT: usize = 256 << 20;

/// Plans that are never dropped for want of room.
pub(crate) const KEEP: usize = 16;

/// The part of the limit that results of searches have for themselves.
pub(super) const TUNED: usize = 16;

/// The programs of a device.
pub(super) struct Caches {
    pub(super) programs: Mutex<Lru<Kernel, Program>>,
    pub(super) calls: Mutex<Lru<Call, Option<Program>>>,
    /// Programs of kernels that users wrote, by content.
    pub(super) raw: Mutex<Lru<RawKernel, Program>>,
    /// Kernels that differ in numbers alone, by what is equal.
    pub(super) families: Mutex<Lru<Kernel, Known>>,
    /// Whether kernels that share programs have loops of the same lengths.
    pub(super) keep_lengths: AtomicBool,
    limit: AtomicUsize,
}

/// The plans of a device, which the layer above keeps.
pub(crate) trait Plans: Any + Send + Sync {
    /// Bytes of all.
    fn bytes(&self) -> usize;

    /// Drops those used least recently, until so many bytes are gone or so many plans are left, and says
    /// how many went.
    fn drop_oldest(&self, bytes: usize, keep: usize) -> usize;

    /// Drops all plans if rows are registered, for their kernels may have other values of parameters now.
    fn drop_plans_of_rows(&self);
}

impl Caches {
    pub(super) fn new(kind: DeviceKind) -> Caches {
        let limit = match kind {
            DeviceKind::Cpu | DeviceKind::Interpreter => LIMIT_CPU,
            DeviceKind::Gpu | DeviceKind::Software => LIMIT,
        };
        Caches {
            programs: Mutex::default(),
            calls: Mutex::default(),
            raw: Mutex::default(),
            families: Mutex::default(),
            keep_lengths: (kind == DeviceKind::Gpu).into(),
            limit: limit.into(),
        }
    }

    /// Bytes of programs.
    fn bytes(&self) -> usize {
        let kernels = lock(&self.programs).bytes() + lock(&self.raw).bytes();
        kernels + lock(&self.calls).bytes() + lock(&self.families).bytes()
    }

    pub(super) fn add_program(&self, kernel: Kernel, program: Program) {
        let bytes = kernel.bytes() + program.bytes();
        lock(&self.programs).insert(kernel, program, bytes);
    }

    pub(super) fn add_call(&self, call: Call, program: Option<Program>) {
        let bytes = call.bytes() + program.as_ref().map_or(0, Program::bytes);
        lock(&self.calls).insert(call, program, bytes);
    }

    /// Takes programs out that nobody uses, up to so many bytes; families only if all are to go, for what
    /// is planned next may be of one.
    fn take_unused(&self, bytes: usize, all: bool) -> Vec<Program> {
        let unused = |program: &Program, used| program.is_unique().then_some(used);
        let mut programs = lock(&self.programs);
        let before = programs.bytes();
        let mut taken = programs.drop_oldest(bytes, 0, unused);
        let left = bytes.saturating_sub(before - programs.bytes());
        drop(programs);
        let mut raw = lock(&self.raw);
        let before = raw.bytes();
        taken.extend(raw.drop_oldest(left, 0, unused));
        let left = left.saturating_sub(before - raw.bytes());
        drop(raw);
        let unused = |program: &Option<Program>, used| {
            program.as_ref().is_none_or(Program::is_unique).then_some(used)
        };
        taken.extend(lock(&self.calls).drop_oldest(left, 0, unused).into_iter().flatten());
        if all && taken.is_empty() {
            let unused = |known: &Known, used| known.is_unused().then_some(used);
            let families = lock(&self.families).drop_oldest(left, 0, unused);
            taken.extend(families.into_iter().filter_map(Known::into_program));
        }
        taken
    }
}

impl Device {
    /// Limits the bytes of host memory that compiled programs and plans take, roughly; those used least
    /// recently are dropped, and made again when they are needed. A device opened while the environment
    /// variable `ZYX_CACHE_LIMIT` is set starts with that limit (see [`Runtime::device`](super::Runtime::device)),
    /// else with 32 MiB, or 256 MiB where a driver compiles.
    ///
    /// The sixteen plans used last stay, however large they are.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// device.set_cache_limit(64 << 10);
    /// for n in 1..100 {
    ///     // Each size has a plan and a program of its own.
    ///     assert_eq!(Tensor::ones([n], DType::F32, &device).sum(0)?.item::<f32>()?, n as f32);
    /// }
    /// assert!(device.stats().evictions > 0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn set_cache_limit(&self, bytes: usize) {
        self.caches().limit.store(bytes, Relaxed);
        self.fit_caches();
    }

    pub(crate) fn cache_limit(&self) -> usize {
        self.caches().limit.load(Relaxed)
    }

    /// The counters, with what the caches hold now.
    pub(super) fn with_caches(&self, stats: Stats) -> Stats {
        let program_bytes = self.caches().bytes() as u64;
        let plan_bytes = self.plans().map_or(0, |plans| plans.bytes()) as u64;
        Stats { program_bytes, plan_bytes, ..stats }
    }

    /// Drops what was used least recently if programs and plans exceed the limit.
    pub(crate) fn fit_caches(&self) {
        let limit = self.cache_limit();
        let bytes = self.caches().bytes() + self.plans().map_or(0, |plans| plans.bytes());
        if bytes > limit {
            self.shrink_caches(limit - limit / 8, KEEP);
        }
    }

    /// Drops what was used least recently until so many bytes, or so many plans and their programs, are
    /// left.
    pub(super) fn shrink_caches(&self, target: usize, keep: usize) {
        let (caches, plans) = (self.caches(), self.plans());
        loop {
            self.forget_replaced();
            let (programs, kept) =
                (caches.bytes(), plans.as_ref().map_or(0, |plans| plans.bytes()));
            let excess = (programs + kept).saturating_sub(target);
            let taken =
                if excess > 0 { caches.take_unused(excess, target == 0) } else { Vec::new() };
            if !taken.is_empty() {
                // The device may not be done with their last launches. If it is lost, it is.
                let _ = self.raw().synchronize(&mut self.stream());
                Counters::add(&self.counters().evictions, taken.len() as u64);
                continue;
            }
            // With plans their programs go, in the next round: each has its share.
            let share = excess as u128 * kept as u128 / (programs + kept).max(1) as u128;
            let dropped = match &plans {
                Some(plans) if excess > 0 => plans.drop_oldest(share as usize + 1, keep),
                _ => 0,
            };
            Counters::add(&self.counters().evictions, dropped as u64);
            if dropped == 0 {
                return;
            }
        }
    }

    /// Whether the device has a library kernel for a call.
    pub(crate) fn offers(&self, call: &Call) -> bool {
        self.raw().offers(call).unwrap_or_else(|| self.library(call).is_some())
    }

    /// Library kernels for calls; those not known yet are made together. None for what the device
    /// refuses, or if the user interrupts.
    pub(crate) fn libraries(&self, calls: &[&Call]) -> Vec<Option<Program>> {
        let mut seen = FxHashSet::default();
        let is_new = |call: &&Call| lock(&self.caches().calls).get(*call).is_none();
        let missing = calls.iter().copied().filter(|call| is_new(call) && seen.insert(*call));
        let missing: Vec<&Call> = missing.collect();
        // Held until all are looked up, so that none is dropped for want of room.
        let nanoseconds = |i: usize| CALL + CALL_BYTE * missing[i].bytes();
        let watch = Watch::here();
        let make = |call: &Call| (!watch.is_stopped()).then(|| self.library(call)).flatten();
        let made = on_threads(missing.len(), nanoseconds, |i| make(missing[i]));
        let found = calls.iter().map(|&call| make(call)).collect();
        drop(made);
        found
    }

    /// A library kernel for `call`, if the device offers one, or what was found faster.
    pub(crate) fn library(&self, call: &Call) -> Option<Program> {
        let calls = &self.caches().calls;
        if let Some(known) = lock(calls).get(call) {
            return known.clone();
        }
        let made = timed(&self.counters().compile_ns, || {
            self.note_call(call);
            self.raw().library(call)
        });
        let program = made.map(|program| {
            let own = || program.of(self.home(), None, 1);
            self.tuned_earlier(call).unwrap_or_else(own)
        });
        self.caches().add_call(call.clone(), program.clone());
        self.fit_caches();
        if let Some(program) = &program {
            self.count_program(program);
            self.tune_in_background();
        }
        program
    }

    /// The plans that a layer above keeps with this device; made at the first call.
    pub(crate) fn attachment<T: Plans + Default>(&self) -> Arc<T> {
        let plans = self.plans_or(|| Arc::new(T::default()));
        let any: Arc<dyn Any + Send + Sync> = plans;
        any.downcast().expect("invariant: one type is attached to devices")
    }
}
