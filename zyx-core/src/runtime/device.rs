//! The handle that tensors hold: a device, its memory pool, its stream and its program cache.
//!
//! Locks: the stream, the pool, and the program cache each have one, held for one call, never
//! two at once and never across a caller's code; the profile's is taken under the stream's, and
//! those of the stream and the pool under that of a buffer's place (see `spill.rs`). The gate of
//! `spill.rs` is taken before all others, by a thread that holds none of them.

use super::buffer::Buffer;
use super::caches::{Caches, Plans};
use super::checked::Checked;
use super::erased::{ErasedDevice, Home, Program, RawBuffer, RawEvent, RawStream};
use super::litmus::Litmus;
use super::pool::Pool;
use super::profile::{Profile, ProgramTime};
use super::reads::Reader;
use super::spill::{Buffers, Gate};
use super::stats::{Counters, Stats};
use super::trace::Queue;
use super::tuning::Tuner;
use crate::clock::Instant;
use crate::error::{Error, Result};
use crate::hal::{
    Call, Caps, CompileError, DeviceError, DeviceInfo, DeviceKind, HostOwner, Signature, Watch,
    attempt, fork, lock, on_threads,
};
use crate::ir::{Kernel, Rewritten, Verified, verify_for};
use crate::{legalize, prepare};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;
use std::io::Read;
use std::panic::Location;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

/// Nanoseconds for each operation of a kernel, roughly, that rules are checked in, and that passes take.
pub(super) const CHECKS: usize = 200;
pub(super) const PASSES: usize = 2_000;

/// An open device. Cheap to clone; equal when it is the same open device.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

/// A handle that keeps no device open.
pub(crate) type WeakDevice = Weak<Inner>;

pub(crate) struct Inner {
    raw: Box<dyn ErasedDevice>,
    home: Home,
    spec: String,
    /// The generation of the process that opened it.
    generation: usize,
    pool: Pool,
    buffers: Buffers,
    gate: Gate,
    counters: Counters,
    stream: Mutex<RawStream>,
    optimizer: Mutex<Optimizer>,
    caches: Caches,
    /// Times by program name, while profiling.
    profile: Mutex<Option<Profile>>,
    tuner: Tuner,
    reader: Reader,
    checked: Checked,
    #[cfg(feature = "trace")]
    tracer: super::trace::Tracer,
    /// Whether sums may be made in any order.
    any_order: AtomicBool,
    /// The result of the litmus test, if it ran.
    litmus: OnceLock<Litmus>,
    /// What a layer above keeps per device.
    plans: OnceLock<Arc<dyn Plans>>,
}

/// What a function returns; the time it took is added to the counter.
pub(super) fn timed<T>(nanoseconds: &AtomicU64, f: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = f();
    Counters::add(nanoseconds, start.elapsed().as_nanos() as u64);
    result
}

/// What a device does to kernels before compiling them.
#[derive(Clone, Copy, Debug, Default)]
pub enum Optimizer {
    /// The tuner's choice of passes.
    #[default]
    Default,
    /// Nothing: naive kernels run as they are.
    Off,
    /// This function.
    With(fn(&Kernel, &Caps) -> Kernel),
}

impl Device {
    pub(crate) fn new(raw: Box<dyn ErasedDevice>, spec: String) -> Result<Device> {
        let stream = Mutex::new(raw.stream()?);
        let caches = Caches::new(raw.info().kind);
        Ok(Device(Arc::new(Inner {
            raw,
            home: Home::default(),
            spec,
            generation: fork::generation(),
            pool: Pool::default(),
            buffers: Buffers::default(),
            gate: Gate::default(),
            counters: Counters::default(),
            stream,
            optimizer: Mutex::default(),
            caches,
            profile: Mutex::default(),
            tuner: Tuner::default(),
            reader: Reader::default(),
            checked: Checked::default(),
            #[cfg(feature = "trace")]
            tracer: super::trace::Tracer::default(),
            any_order: AtomicBool::new(false),
            litmus: OnceLock::new(),
            plans: OnceLock::new(),
        })))
    }

    pub(crate) fn known_litmus(&self) -> &OnceLock<Litmus> {
        &self.0.litmus
    }

    /// Refuses work in the child of a fork: drivers of GPUs do not follow there.
    pub(super) fn check_process(&self) -> Result<(), DeviceError> {
        let of_host = matches!(self.info().kind, DeviceKind::Cpu | DeviceKind::Interpreter);
        if of_host || self.0.generation == fork::generation() {
            return Ok(());
        }
        let reason = "this process was forked after the device was opened; start processes by spawn \
            (multiprocessing.set_start_method(\"spawn\")), or open the device in the child only";
        Err(DeviceError::Lost { device: self.spec().to_owned(), reason: reason.to_owned() })
    }

    /// Whether a weak handle is one of this device.
    pub(crate) fn is_of(&self, weak: &Weak<Inner>) -> bool {
        std::ptr::eq(weak.as_ptr(), Arc::as_ptr(&self.0))
    }

    pub(crate) fn downgrade(&self) -> Weak<Inner> {
        Arc::downgrade(&self.0)
    }

    /// `backend:ordinal`.
    ///
    /// ```
    /// # let device = zyx::runtime().device("reference")?;
    /// assert_eq!(device.spec(), "reference:0");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn spec(&self) -> &str {
        &self.0.spec
    }

    /// Name and memory as the driver reports them.
    ///
    /// ```
    /// # let device = zyx::runtime().device("reference")?;
    /// assert_eq!(device.info().name, "interpreter of the kernel IR");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn info(&self) -> &DeviceInfo {
        self.0.raw.info()
    }

    /// What the device can do.
    ///
    /// ```
    /// # use zyx::DType;
    /// # let device = zyx::runtime().device("reference")?;
    /// assert!(device.caps().storage.contains(DType::F16));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn caps(&self) -> &Caps {
        self.0.raw.caps()
    }

    /// The counters now.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let before = device.stats();
    /// (Tensor::new([1f32, 2.0], &device)? * 2.0).realize()?;
    /// assert_eq!(device.stats().since(&before).launches, 1);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn stats(&self) -> Stats {
        self.with_caches(self.0.counters.snapshot(self.0.raw.traffic()))
    }

    /// Sets `peak_bytes` to the current `live_bytes`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// Tensor::new([1f32; 1000], &device)?.realize()?;
    /// assert!(device.stats().peak_bytes >= 4000);
    /// device.reset_peak();
    /// assert_eq!(device.stats().peak_bytes, 0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn reset_peak(&self) {
        let live = self.0.counters.live_bytes.load(Relaxed);
        self.0.counters.peak_bytes.store(live, Relaxed);
    }

    /// Frees what is kept to do things faster a second time: memory of the device that is cached for
    /// reuse ([`Device::trim_memory`]), plans, and programs that nothing uses any more. What was
    /// found by tuning stays.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// (Tensor::new([1f32; 1000], &device)? * 2.0).realize()?;
    /// let before = device.stats();
    /// assert!(before.cached_bytes > 0 && before.plan_bytes > 0 && before.program_bytes > 0);
    /// device.trim();
    /// let after = device.stats();
    /// assert_eq!((after.cached_bytes, after.plan_bytes, after.program_bytes), (0, 0, 0));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn trim(&self) {
        self.shrink_caches(0, 0);
        self.trim_memory();
    }

    /// Gives memory of the device that is cached for reuse back to the driver.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// drop(Tensor::new([1f32; 1000], &device)?);
    /// assert!(device.stats().cached_bytes > 0);
    /// device.trim_memory();
    /// assert_eq!(device.stats().cached_bytes, 0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn trim_memory(&self) {
        self.0.pool.trim(&self.0.counters);
    }

    /// Limits the bytes this device may hold, in use and cached together; `None` lifts the limit.
    /// A device opened while the environment variable `ZYX_MEMORY_LIMIT` is set starts with that
    /// limit (see [`Runtime::device`](super::Runtime::device)).
    ///
    /// What does not fit moves to the host until it is used: tensors used least recently go first,
    /// and a computation that needs more than the device holds is run kernel by kernel. Only what
    /// one kernel needs has to fit; otherwise realizing fails with
    /// [`DeviceError::OutOfMemory`](crate::hal::DeviceError), which lists the live buffers.
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// device.set_memory_limit(Some(64 << 10));
    /// // Four tensors of 32 KiB: two of them at most are on the device at a time.
    /// let x: Vec<Tensor> =
    ///     (0..4).map(|i| Tensor::arange(0i32, 8192, 1, &device).map(|x| x + i)).collect::<Result<_, _>>()?;
    /// x.iter().try_for_each(Tensor::realize)?;
    /// assert_eq!(x[0].to_vec::<i32>()?[..3], [0, 1, 2]);
    /// assert!(device.stats().spills > 0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn set_memory_limit(&self, bytes: Option<usize>) {
        self.0.pool.set_limit(bytes);
    }

    /// Whether there is a limit and it is so.
    pub(crate) fn memory_limit_is(&self, test: impl FnOnce(usize) -> bool) -> bool {
        self.0.pool.limit().is_some_and(test)
    }

    /// Allows results that differ in rounding from run to run, or forbids them, as it is at first.
    /// Sums of floats scattered from now on ([`Tensor::scatter_add`](crate::Tensor::scatter_add),
    /// gradients of gathers) are added atomically in any order where the device can, which is several
    /// times faster than in a fixed one.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// device.set_deterministic(false);
    /// let x = Tensor::new([0f32, 0.0], &device)?;
    /// let index = Tensor::new([1i64, 1, 0], &device)?;
    /// let sums = x.scatter_add(0, &index, &Tensor::new([0.5f32, 2.0, 1.0], &device)?)?;
    /// assert_eq!(sums.to_vec::<f32>()?, [1.0, 2.5]);
    /// device.set_deterministic(true);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn set_deterministic(&self, on: bool) {
        self.0.any_order.store(!on, Relaxed);
    }

    /// Whether every computation gives the same bits each time it is run.
    ///
    /// ```
    /// assert!(zyx::device()?.is_deterministic());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn is_deterministic(&self) -> bool {
        !self.0.any_order.load(Relaxed)
    }

    /// Starts or stops measuring every launch. While it is on, each launch waits for the one
    /// before it, so whole programs run slower than their parts.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// device.set_profiling(true);
    /// (Tensor::new([1f32, 2.0], &device)? * 2.0).realize()?;
    /// assert_eq!(device.profile().len(), 1);
    /// device.set_profiling(false);
    /// assert!(!device.is_profiling() && device.profile().is_empty());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn set_profiling(&self, on: bool) {
        *self.profiling() = on.then(Profile::default);
    }

    /// Whether launches are measured.
    ///
    /// ```
    /// # let device = zyx::runtime().device("reference")?;
    /// assert!(!device.is_profiling());
    /// device.set_profiling(true);
    /// assert!(device.is_profiling());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn is_profiling(&self) -> bool {
        self.profiling().is_some()
    }

    /// What is measured, while it is.
    pub(super) fn profiling(&self) -> MutexGuard<'_, Option<Profile>> {
        lock(&self.0.profile)
    }

    /// Stops measuring and gives what was measured.
    pub(crate) fn pause_profile(&self) -> Option<Profile> {
        self.profiling().take()
    }

    /// Goes on measuring where it was stopped.
    pub(crate) fn resume_profile(&self, profile: Option<Profile>) {
        *self.profiling() = profile;
    }

    /// What was measured since profiling was turned on, the most expensive program first.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::from_slice(&[1f32, 2.0], [2], &device)?;
    /// device.set_profiling(true);
    /// (x * 2.0).realize()?;
    /// let profile = device.profile();
    /// assert_eq!((profile.len(), profile[0].launches), (1, 1));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn profile(&self) -> Vec<ProgramTime> {
        self.profiling().as_ref().map(Profile::sorted).unwrap_or_default()
    }

    /// Waits until everything submitted so far is done.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 2.0], &device)? * 2.0;
    /// x.realize()?;
    /// device.synchronize()?; // What was launched is done.
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When work submitted before failed.
    pub fn synchronize(&self) -> Result<()> {
        let _span = self.span("wait", &[]);
        self.check_process()?;
        Counters::add(&self.0.counters.host_syncs, 1);
        Ok(attempt!(self.0.raw.synchronize(&mut self.stream()))?)
    }

    /// Memory of `bytes` bytes, all zero.
    ///
    /// ```
    /// # let device = zyx::runtime().device("reference")?;
    /// let buffer = device.alloc(4)?;
    /// device.write(&buffer, &[1, 2])?;
    /// let mut bytes = [9; 4];
    /// device.read(&buffer, &mut bytes)?;
    /// assert_eq!((bytes, buffer.bytes()), ([1, 2, 0, 0], 4));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is no memory left, even without what can move to the host.
    pub fn alloc(&self, bytes: usize) -> Result<Buffer> {
        const ZEROS: &[u8] = &[0; 1 << 16];
        let buffer = self.alloc_uninit(bytes)?;
        for offset in (0..bytes).step_by(ZEROS.len()) {
            let zeros = &ZEROS[..ZEROS.len().min(bytes - offset)];
            self.write_at(&buffer, offset, zeros)?;
        }
        Ok(buffer)
    }

    fn write_at(&self, dst: &Buffer, offset: usize, src: &[u8]) -> Result<()> {
        self.with_room(|| {
            let raw = dst.pin()?;
            Ok(self.0.raw.write(&mut self.stream(), raw.raw(), offset, src)?)
        })
    }

    /// Memory of `bytes` bytes that a reader gives.
    pub(crate) fn alloc_from(&self, reader: &mut dyn Read, bytes: usize) -> Result<Buffer> {
        const PIECE: usize = 1 << 20;
        let mut read = |piece: &mut [u8]| {
            let io = |source| Error::Io { what: "from_reader".to_owned(), source };
            reader.read_exact(piece).map_err(io)
        };
        let mut piece = vec![0; PIECE.min(bytes)];
        // Before memory is taken: what claims to be large may hold nothing.
        read(&mut piece)?;
        let buffer = self.alloc_uninit(bytes)?;
        Counters::add(&self.0.counters.copies, 1);
        Counters::add(&self.0.counters.bytes_moved, bytes as u64);
        let _span = self.transfer_span("write", bytes, Queue::Main);
        for offset in (0..bytes).step_by(PIECE) {
            let piece = &mut piece[..PIECE.min(bytes - offset)];
            if offset > 0 {
                read(piece)?;
            }
            self.write_at(&buffer, offset, piece)?;
        }
        Ok(buffer)
    }

    /// Memory of at least `bytes` bytes with the contents that it happens to have.
    pub(crate) fn alloc_uninit(&self, bytes: usize) -> Result<Buffer> {
        self.with_room(|| self.alloc_here(bytes))
    }

    /// [`Device::alloc_uninit`] for a thread that holds the gate.
    pub(crate) fn alloc_here(&self, bytes: usize) -> Result<Buffer> {
        Ok(Buffer::new(self.take(bytes)?, bytes, self.clone()))
    }

    /// A block from the pool or the driver.
    pub(crate) fn take_free(&self, bytes: usize) -> Result<RawBuffer, DeviceError> {
        self.0.pool.take(&*self.0.raw, &self.0.counters, bytes)
    }

    pub(crate) fn buffers(&self) -> &Buffers {
        &self.0.buffers
    }

    pub(super) fn caches(&self) -> &Caches {
        &self.0.caches
    }

    /// The plans of this device, if there were any.
    pub(super) fn plans(&self) -> Option<Arc<dyn Plans>> {
        self.0.plans.get().cloned()
    }

    pub(super) fn plans_or(&self, make: impl FnOnce() -> Arc<dyn Plans>) -> Arc<dyn Plans> {
        self.0.plans.get_or_init(make).clone()
    }

    pub(super) fn pool(&self) -> &Pool {
        &self.0.pool
    }

    pub(super) fn gate(&self) -> &Gate {
        &self.0.gate
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.0.counters
    }

    /// A buffer that is the memory of `owner`, who may write to it if it is `shared`, if the device can
    /// compute there.
    pub(crate) fn adopt(&self, owner: &HostOwner, shared: bool) -> Option<Buffer> {
        let raw = self.0.raw.adopt(owner)?;
        if shared {
            self.0.raw.share(&raw);
        }
        Some(Buffer::lent(raw, owner.as_ref().as_ref().len(), self.clone()))
    }

    pub(crate) fn host_view(&self, raw: &RawBuffer, bytes: usize) -> Option<HostOwner> {
        self.0.raw.host_view(raw, bytes)
    }

    pub(crate) fn release(&self, raw: RawBuffer, bytes: usize) {
        self.0.raw.idle(&raw);
        self.0.pool.give(&self.0.counters, raw, bytes);
    }

    /// Copies `src` to the start of `dst`.
    ///
    /// # Errors
    /// When `src` is longer than `dst`, `dst` is on another device or lent, or the driver refuses.
    #[track_caller]
    pub fn write(&self, dst: &Buffer, src: &[u8]) -> Result<()> {
        self.check_copy("write", src.len(), dst)?;
        if !dst.may_be_given() {
            let reason = "the memory of the buffer is lent, so it is never written".to_owned();
            return Err(Error::Argument { op: "write", reason, location: Location::caller() });
        }
        if src.is_empty() {
            return Ok(());
        }
        self.with_room(|| self.write_raw(dst.pin()?.raw(), src))
    }

    #[track_caller]
    fn check_copy(&self, op: &'static str, bytes: usize, buffer: &Buffer) -> Result<()> {
        let reason = if buffer.device() != self {
            self.foreign("a buffer", buffer.device().spec())
        } else if bytes > buffer.bytes() {
            format!("{bytes} bytes do not fit a buffer of {}", buffer.bytes())
        } else {
            return Ok(());
        };
        Err(Error::Argument { op, reason, location: Location::caller() })
    }

    /// What is wrong with a thing of another device.
    #[cold]
    pub(super) fn foreign(&self, thing: &str, home: &str) -> String {
        let own = self.spec();
        match home == own {
            true => format!("{thing} of {home} as another runtime opened it, on {own} of this one"),
            false => format!("{thing} of {home} on {own}"),
        }
    }

    pub(crate) fn write_raw(&self, dst: &RawBuffer, src: &[u8]) -> Result<()> {
        Counters::add(&self.0.counters.copies, 1);
        Counters::add(&self.0.counters.bytes_moved, src.len() as u64);
        let mut stream = self.stream();
        let _span = self.transfer_span("write", src.len(), Queue::Main);
        Ok(self.0.raw.write(&mut stream, dst, 0, src)?)
    }

    pub(super) fn write_uncounted(&self, dst: &RawBuffer, src: &[u8]) -> Result<()> {
        Ok(self.0.raw.write(&mut self.stream(), dst, 0, src)?)
    }

    /// Waits and copies the start of `src` to `dst`.
    ///
    /// # Errors
    /// When `dst` is longer than `src`, `src` is on another device, the driver refuses or earlier
    /// work failed.
    #[track_caller]
    pub fn read(&self, src: &Buffer, dst: &mut [u8]) -> Result<()> {
        self.read_at(src, 0, dst)
    }

    /// As [`Device::read`], from an offset on.
    #[track_caller]
    pub(crate) fn read_at(&self, src: &Buffer, offset: usize, dst: &mut [u8]) -> Result<()> {
        self.check_copy("read", offset.saturating_add(dst.len()), src)?;
        if dst.is_empty() || src.read_from_host(offset, dst) {
            return Ok(());
        }
        self.with_room(|| attempt!(self.read_raw(src.pin()?.raw(), offset, dst)))
    }

    pub(crate) fn read_raw(&self, src: &RawBuffer, offset: usize, dst: &mut [u8]) -> Result<()> {
        Counters::add(&self.0.counters.copies, 1);
        Counters::add(&self.0.counters.host_syncs, 1);
        Counters::add(&self.0.counters.bytes_moved, dst.len() as u64);
        let mut stream = self.stream();
        let _span = self.transfer_span("read", dst.len(), Queue::Main);
        Ok(self.0.raw.read(&mut stream, src, offset, dst)?)
    }

    pub(super) fn read_uncounted(&self, src: &RawBuffer, dst: &mut [u8]) -> Result<()> {
        Ok(self.0.raw.read(&mut self.stream(), src, 0, dst)?)
    }

    /// The program of a kernel: verified, optimised and legalised for this device, compiled once.
    /// An access that cannot be proven to be in bounds loads 0 where it is not, and stores nothing.
    ///
    /// # Errors
    /// When the kernel is malformed, the device cannot express it or its compiler refuses.
    pub fn program(&self, kernel: &Kernel) -> Result<Program> {
        let mut programs = self.guarded_programs(&[kernel])?;
        Ok(programs.pop().expect("invariant: one program per kernel"))
    }

    /// As [`Device::program`], of several kernels; those not known yet are handed to the device's compiler
    /// together.
    pub(crate) fn guarded_programs(&self, kernels: &[&Kernel]) -> Result<Vec<Program>> {
        if let Some(open) = kernels.iter().find(|kernel| kernel.members().is_some()) {
            let log = "how long its buffers are is not known".to_owned();
            return Err(CompileError { kernel: open.name().to_owned(), log }.into());
        }
        self.programs_by(kernels, |kernel| {
            // What is known of passes was shown for kernels of the scheduler.
            self.legal_and_guarded(&self.passed(&self.verified(kernel)?))
        })
    }

    /// The programs of several kernels of the scheduler; those not known yet are handed to the
    /// device's compiler together.
    ///
    /// # Errors
    /// As for one.
    pub(crate) fn programs(&self, kernels: &[&Kernel]) -> Result<Vec<Program>> {
        self.programs_by(kernels, |kernel| {
            let verified = self.verified(kernel)?;
            self.note_kernel(&verified);
            self.ready(verified)
        })
    }

    pub(super) fn programs_by(
        &self,
        kernels: &[&Kernel],
        prepare: impl Fn(&Kernel) -> Result<Verified, CompileError> + Sync,
    ) -> Result<Vec<Program>> {
        let known = |kernel: &&Kernel| lock(&self.caches().programs).get(*kernel).cloned();
        let mut found: Vec<Option<Program>> = kernels.iter().map(known).collect();
        let mut seen = FxHashSet::default();
        let missing = kernels.iter().zip(&found).filter(|(_, found)| found.is_none());
        let missing = missing.map(|(&kernel, _)| kernel).filter(|&kernel| seen.insert(kernel));
        let missing: Vec<&Kernel> = missing.collect();
        if !missing.is_empty() {
            let _span = self.span("compile", &[("kernels", missing.len())]);
            let spent = &self.0.counters.compile_ns;
            let nanoseconds = |i: usize| PASSES * missing[i].ops().len();
            let watch = Watch::here();
            let prepare = |i: usize| match watch.is_stopped() {
                true => Err(CompileError::new(missing[i], "interrupted")),
                false => timed(spent, || prepare(missing[i])),
            };
            let ready = on_threads(missing.len(), nanoseconds, prepare);
            let ready = ready.into_iter().collect::<Result<_, _>>()?;
            let compiled = timed(spent, || self.compile_all(ready))?;
            compiled.iter().for_each(|program| self.count_program(program));
            let new: FxHashMap<&Kernel, &Program> =
                missing.iter().copied().zip(&compiled).collect();
            for (found, kernel) in found.iter_mut().zip(kernels) {
                found.get_or_insert_with(|| new[*kernel].clone());
            }
            for (kernel, program) in missing.into_iter().zip(compiled) {
                self.caches().add_program(kernel.clone(), program);
            }
            self.fit_caches();
            self.tune_in_background();
        }
        Ok(found.into_iter().map(|found| found.expect("invariant: all were found")).collect())
    }

    /// Compiles prepared kernels, each cut into parts if one launch of it would take too long.
    pub(super) fn compile_all(&self, prepared: Vec<Verified>) -> Result<Vec<Program>> {
        let mut cut = Vec::with_capacity(prepared.len());
        let mut arguments = Vec::with_capacity(prepared.len());
        for kernel in prepared {
            arguments.push((Signature::of(&kernel), 1));
            cut.push(match prepare::parts(&kernel, self.caps()) {
                None => kernel,
                Some((part, parts)) => {
                    arguments.last_mut().expect("invariant: it was just pushed").1 = parts;
                    self.rewritten(part)?
                }
            });
        }
        self.check_process()?;
        let compiled = self.0.raw.compile_all(&cut)?.into_iter().zip(arguments);
        let program = |(program, (signature, parts)): (Program, (Signature, u64))| {
            program.of(&self.0.home, Some(signature), parts)
        };
        Ok(compiled.map(program).collect())
    }

    /// As [`Device::compile_all`], in time that is counted.
    pub(super) fn compile_now(&self, prepared: Vec<Verified>) -> Result<Vec<Program>> {
        timed(&self.0.counters.compile_ns, || self.compile_all(prepared))
    }

    pub(super) fn count_program(&self, program: &Program) {
        let counters = &self.0.counters;
        Counters::add(if program.is_loaded() { &counters.loads } else { &counters.compiles }, 1);
    }

    /// The kernel as the device's compiler gets it: verified, after passes and legalisation.
    ///
    /// # Errors
    /// When it is malformed or the device cannot express it.
    pub fn prepare(&self, kernel: &Kernel) -> Result<Verified> {
        Ok(timed(&self.0.counters.compile_ns, || self.prepared(kernel))?)
    }

    fn prepared(&self, kernel: &Kernel) -> Result<Verified, CompileError> {
        self.ready(self.verified(kernel)?)
    }

    fn ready(&self, verified: Verified) -> Result<Verified, CompileError> {
        let optimizer = *lock(&self.0.optimizer);
        match optimizer {
            Optimizer::Default => self.legal(&self.optimized(&verified)),
            Optimizer::Off => self.legal(&verified.into()),
            Optimizer::With(pass) => self.legal_and_guarded(&pass(&verified, self.caps())),
        }
    }

    pub(super) fn verified(&self, kernel: &Kernel) -> Result<Verified, CompileError> {
        Ok(timed(&self.0.counters.verify_ns, || Verified::new(kernel))?)
    }

    pub(super) fn rewritten(&self, kernel: Rewritten) -> Result<Verified, CompileError> {
        Ok(timed(&self.0.counters.verify_ns, || kernel.verify())?)
    }

    /// A verified kernel after passes in terms of what the device has.
    pub(super) fn legal(&self, kernel: &Rewritten) -> Result<Verified, CompileError> {
        self.rewritten(prepare::legalize(kernel, self.caps())?)
    }

    /// A kernel that nothing is known of in terms of what the device has.
    fn legal_and_guarded(&self, kernel: &Kernel) -> Result<Verified, CompileError> {
        let legal = legalize::legalize(kernel, self.caps())?;
        let verified = self.verified(&legal)?;
        if *verified == legal { Ok(verified) } else { self.legal(&verified.into()) }
    }

    /// A kernel after passes.
    fn passed(&self, kernel: &Verified) -> Kernel {
        let optimizer = *lock(&self.0.optimizer);
        match optimizer {
            Optimizer::Default => (*self.optimized(kernel)).clone(),
            Optimizer::Off => (**kernel).clone(),
            Optimizer::With(pass) => pass(kernel, self.caps()),
        }
    }

    /// Chooses what is done to kernels compiled from now on. Programs compiled before stay.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// use zyx::internals::runtime::Optimizer;
    /// device.set_optimizer(Optimizer::Off);
    /// let x = Tensor::new([1f32, 2.0], &device)? * 2.0;
    /// assert_eq!(x.to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn set_optimizer(&self, optimizer: Optimizer) {
        *lock(&self.0.optimizer) = optimizer;
    }

    /// The program of a kernel that has its passes behind it, uncounted and not kept.
    pub(super) fn compile_optimized(&self, kernel: &Rewritten) -> Result<Program> {
        let compiled = self.compile_now(vec![self.legal(kernel)?])?;
        Ok(compiled.into_iter().next().expect("invariant: one program per kernel"))
    }

    /// Whether kernels get the passes that the tuner chooses, and run as machine code.
    pub(super) fn compiles_by_default(&self) -> bool {
        self.has_default_optimizer() && self.info().kind != DeviceKind::Interpreter
    }

    pub(super) fn has_default_optimizer(&self) -> bool {
        matches!(*lock(&self.0.optimizer), Optimizer::Default)
    }

    /// Shows every program of a kernel, and those of library calls in plans with the calls' own kernels.
    pub(super) fn each_program(&self, show: &mut dyn FnMut(&Kernel, Option<&Call>, &Program)) {
        if self.has_default_optimizer() {
            lock(&self.caches().programs).iter().for_each(|(k, program)| show(k, None, program));
            for (call, program) in lock(&self.caches().calls).iter() {
                if let Some(program) = program.as_ref().filter(|program| !program.is_unique())
                    && let Some(kernel) = call.kernel()
                {
                    show(&kernel, Some(call), program);
                }
            }
        }
    }

    /// What tells this device apart from others.
    pub(super) fn home(&self) -> &Home {
        &self.0.home
    }

    pub(super) fn raw(&self) -> &dyn ErasedDevice {
        &*self.0.raw
    }

    pub(super) fn tuner(&self) -> &Tuner {
        &self.0.tuner
    }

    #[inline]
    pub(super) fn checked(&self) -> &Checked {
        &self.0.checked
    }

    #[cfg(feature = "trace")]
    pub(super) fn tracer(&self) -> &super::trace::Tracer {
        &self.0.tracer
    }

    pub(super) fn reader(&self) -> &Reader {
        &self.0.reader
    }

    /// The end of everything submitted so far.
    pub(super) fn mark(&self) -> Result<RawEvent> {
        Ok(self.0.raw.record(&mut self.stream())?)
    }

    /// How many handles there are.
    pub(super) fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// The source the device's compiler gets for a kernel that was prepared for it
    /// ([`Device::prepare`]).
    ///
    /// # Errors
    /// When it was not: the device cannot express it.
    pub fn source(&self, prepared: &Verified) -> Result<String> {
        verify_for(prepared, self.caps()).map_err(CompileError::from)?;
        Ok(self.0.raw.source(prepared)?)
    }

    pub(crate) fn count_plan(&self, hit: bool, nodes: usize) {
        let counters = &self.0.counters;
        Counters::add(&counters.nodes, nodes as u64);
        Counters::add(if hit { &counters.plan_hits } else { &counters.plan_misses }, 1);
    }

    pub(crate) fn count_temporaries(&self, n: usize) {
        Counters::add(&self.0.counters.temps, n as u64);
    }

    pub(crate) fn count_stepwise(&self) {
        Counters::add(&self.0.counters.stepwise, 1);
    }

    pub(crate) fn count_kept(&self, n: usize) {
        Counters::add(&self.0.counters.values_kept, n as u64);
    }

    pub(crate) fn count_donations(&self, n: usize) {
        Counters::add(&self.0.counters.donations, n as u64);
    }

    pub(super) fn stream(&self) -> MutexGuard<'_, RawStream> {
        lock(&self.0.stream)
    }
}

impl From<Arc<Inner>> for Device {
    fn from(inner: Arc<Inner>) -> Device {
        Device(inner)
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Device) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spec())
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spec())
    }
}
