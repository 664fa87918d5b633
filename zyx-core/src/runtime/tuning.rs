//! Tuning on a device: which kernels, when, for how long, and what becomes of the result.
//!
//! Programs start with the heuristic's choice, so the first step of anything is never late. What
//! was compiled is searched for something faster either when a program asks ([`Device::tune`]) or
//! in the background, by a thread of its own that rests three times as long as it works. A better
//! program takes the place of the one before: plans look at a counter when they are played. What
//! was found is kept on disk, so a later process starts with it and searches nothing. A library's
//! program is measured against other ways of the library and the generated kernel ([`library`]).
//!
//! Locks: the state has one, held for moments, never while anything is compiled or run.

use super::buffer::{Buffer, Pinned};
use super::caches::TUNED;
use super::device::{Device, Inner};
use super::erased::Program;
use super::stats::Counters;
use crate::clock::Instant;
use crate::error::{Error, Result};
use crate::hal::{Arg, CompileError, DiskCache, fork};
use crate::ir::{Access, Kernel, Rewritten, Verified};
use crate::lru::Lru;
use crate::passes::{self, Pass};
use crate::prepare::{computations, optimize, optimize_by};
use crate::tune::choice::Choice;
use crate::tune::search::{Bench, CompilingBench, Found, search};
use crate::tune::{check, cost};
use library::Offer;
use rustc_hash::FxHashMap;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use store::{Store, identity};

mod library;
mod parameters;
mod store;

pub(crate) use parameters::{ParameterCall, SizeClass, SizedKernel};

/// Rest of the background thread for each time it worked.
const REST: u32 = 3;
/// Bytes of arguments from which on a kernel is not searched.
const MAX_BYTES: u64 = 1 << 30;
/// Parts of the time left that one kernel of several gets at most.
const SHARE: u32 = 3;

/// Whether a device looks for faster kernels by itself; see [`Device::set_tuning`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tuning {
    /// It does not: the heuristic's choice, the same from run to run.
    #[default]
    Off,
    /// A thread of its own does, for so long in all, while the program runs. Choices of earlier
    /// processes are taken from disk.
    Background(Duration),
}

/// What a search found for one kernel or library call; see [`Device::tune`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tuned {
    /// The name of the kernel or call.
    pub name: String,
    /// Time of a launch by the heuristic's choice, or of the library's program.
    pub before: Duration,
    /// Time of a launch now; the same if nothing was faster by a twentieth.
    pub after: Duration,
    /// Candidates that computed something else and were refused.
    pub refused: usize,
}

/// What a device knows of tuning.
#[derive(Default)]
pub(super) struct Tuner {
    state: Mutex<State>,
    /// How often a program was replaced.
    generation: AtomicU64,
    /// Changes with what is chosen for parameters of user kernels.
    values_generation: AtomicU64,
}

#[derive(Default)]
struct State {
    tuning: Tuning,
    /// Passes that programs registered.
    passes: Vec<&'static Pass>,
    /// Time left for the background.
    left: Duration,
    /// Whether the thread runs.
    running: bool,
    /// Choices by single computation.
    known: Lru<Kernel, Choice>,
    /// Kernels that need no more search.
    done: Lru<Kernel, ()>,
    /// What a library could do in the place of generated kernels.
    offers: Lru<Kernel, Offer>,
    /// The latest program in place of each replaced one, by address. Both are kept, so that no
    /// other gets the address.
    better: FxHashMap<usize, (Program, Program)>,
    /// Calls of user kernels with parameters.
    calls: Lru<String, parameters::Entry>,
    store: Option<Arc<Store>>,
}

/// A program to find a better one for, with its kernel.
struct Task {
    kernel: Kernel,
    /// What a library can do in its place, or does.
    offer: Option<Offer>,
    program: Program,
}

impl State {
    /// Keeps a choice, and forgets those asked for least recently beyond so many bytes. The result of a search with
    /// fewer `passes` than are registered now is dropped.
    fn know(&mut self, part: &Kernel, choice: &Choice, passes: usize, limit: usize) {
        if passes != self.passes.len() {
            return;
        }
        let found = choice.steps();
        let found = found.map_or(0, |(trace, kernel)| size_of_val(trace) + kernel.bytes());
        // A choice that is not the heuristic's holds the kernel that it is for.
        let times = if choice.is_default() { 1 } else { 2 };
        self.known.insert(part.clone(), choice.clone(), times * part.bytes() + found);
        self.known.fit(limit);
    }

    /// Searches a kernel no more, unless more passes are registered than the `passes` that were tried.
    fn finish(&mut self, kernel: &Kernel, passes: usize, limit: usize) {
        if passes != self.passes.len() {
            return;
        }
        self.done.insert(kernel.clone(), (), kernel.bytes());
        self.done.fit(limit);
    }
}

impl Device {
    /// Chooses whether this device looks for faster kernels while programs run, and for how long.
    /// A device opened while the environment variable `ZYX_TUNE` is set starts with that (`off`, or
    /// milliseconds). What was found, also in place of library calls, stays in use when it is turned off,
    /// and is kept on disk.
    ///
    /// Off by default: measuring takes the device from the program now and then, and a sum in
    /// another order rounds differently.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use zyx::Tuning;
    /// # let device = zyx::runtime().device("reference")?;
    /// device.set_tuning(Tuning::Background(Duration::from_millis(500)));
    /// device.set_tuning(Tuning::Off);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn set_tuning(&self, tuning: Tuning) {
        let mut state = self.tuner_state();
        state.tuning = tuning;
        state.left = match tuning {
            Tuning::Off => Duration::ZERO,
            Tuning::Background(budget) => budget,
        };
        drop(state);
        self.tuner().values_generation.fetch_add(1, Relaxed);
        if let Some(plans) = self.plans() {
            plans.drop_plans_of_rows();
        }
        self.tune_in_background();
    }

    /// Looks for faster kernels now, among all generated so far, and for what is faster than the library
    /// calls in use: another way of the library, or generated code. Comes back when there are no
    /// more candidates or the time is up. What was searched before, by this or another process, is
    /// not searched again. Each candidate has to compute what the kernel does before it is timed;
    /// plans use what was found from their next step on.
    ///
    /// User kernels that were called are tried with other values of their parameters
    /// ([`Lang::parameter`](crate::kernel::Lang::parameter)), on made-up inputs of the sizes of the call. Calls with sizes of the same powers of two use the
    /// fastest values from then on; a [`Jit`](crate::Jit) that recorded a call keeps those that it had. Tuning in the background uses
    /// values that were found and looks for none. Kernels with loops that end by a condition keep the first values.
    ///
    /// Gives the kernels and calls that were searched now.
    ///
    /// # Errors
    /// When a program that was found cannot be compiled a second time.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::from_slice(&[1f32, 2.0, 3.0], [3], &device)?;
    /// x.sum(0)?.item::<f32>()?;
    /// let tuned = device.tune(Duration::from_millis(20))?;
    /// assert!(tuned.iter().all(|kernel| kernel.after <= kernel.before));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn tune(&self, budget: Duration) -> Result<Vec<Tuned>> {
        let end = Instant::now() + budget;
        let mut all = Vec::new();
        let left = || end.saturating_duration_since(Instant::now());
        let values = self.generation_of_values();
        for (key, call) in self.calls_to_tune() {
            self.tune_call(key, &call, &mut Clock::of(left() / SHARE), &mut all);
        }
        if let Some(plans) = self.plans().filter(|_| values != self.generation_of_values()) {
            plans.drop_plans_of_rows();
        }
        while let Some((task, waiting)) = self.next_to_tune() {
            let left = left();
            let share = if waiting > 0 { left / SHARE } else { left };
            self.tune_task(&task, Clock::of(share), &mut all)?;
            if left.is_zero() {
                break;
            }
        }
        Ok(all)
    }

    /// From now on searches for faster kernels try this pass, too, at each of its sites, in front of the heuristic's choice
    /// of passes and behind it. Kernels that were searched before are searched again. The pass changes nothing by itself: only
    /// [`Device::tune`] and tuning in the background use it, where it makes a kernel faster.
    ///
    /// The rewritten kernel is verified, and its results are compared with those of the kernel before it is timed. Choices
    /// on disk belong to the set of names of registered passes: a pass that works otherwise than before needs another name.
    ///
    /// ```
    /// use zyx::internals::passes::{Pass, Site};
    /// static NOTHING: Pass = Pass {
    ///     name: "nothing",
    ///     doc: "Changes nothing.",
    ///     reassociates: false,
    ///     sites: |_, _| vec![Site::whole()],
    ///     apply: |kernel, _| kernel.clone(),
    /// };
    /// # let device = zyx::runtime().device("reference")?;
    /// device.register_pass(&NOTHING)?;
    /// assert!(device.register_pass(&NOTHING).is_err());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Argument`] when another pass has the name, or it is no word.
    #[track_caller]
    pub fn register_pass(&self, pass: &'static Pass) -> Result<()> {
        let mut state = self.tuner_state();
        passes::check_name(pass, &state.passes).map_err(|error| Error::Argument {
            op: "register_pass",
            reason: error.to_string(),
            location: Location::caller(),
        })?;
        state.passes.push(pass);
        (state.known, state.done) = Default::default();
        if let Some(store) = &state.store {
            state.store = Some(Arc::new(store.with_passes(&state.passes)));
        }
        drop(state);
        self.tune_in_background();
        Ok(())
    }

    /// The steps that searches found for a kernel, as text: of each computation that it consists of.
    pub(crate) fn tuned_steps(&self, kernel: &Kernel) -> Vec<String> {
        let Ok(verified) = Verified::new(kernel) else { return Vec::new() };
        let mut state = self.tuner_state();
        let parts = computations(&verified).into_iter();
        let known = parts.filter_map(|part| state.known.get(&part).cloned());
        let known: Vec<Choice> = known.collect();
        known.iter().filter_map(|choice| Some(choice.steps()?.0.to_string())).collect()
    }

    fn registered(&self) -> Vec<&'static Pass> {
        self.tuner_state().passes.clone()
    }

    /// Keeps choices in this folder instead of the usual one.
    #[cfg(test)]
    pub(crate) fn tune_in_folder(&self, dir: &std::path::Path) {
        let cache = DiskCache::in_folder(dir, &self.tuning_identity());
        let store = Store::new(cache, &self.registered());
        self.tuner_state().store = Some(Arc::new(store));
    }

    pub(super) fn tuning_identity(&self) -> String {
        identity(self.info(), &self.raw().driver(), self.caps())
    }

    fn tuner_state(&self) -> MutexGuard<'_, State> {
        self.tuner().state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that choices may take, and kernels that were searched.
    fn tuned_limit(&self) -> usize {
        self.cache_limit() / TUNED
    }

    /// Forgets programs that were replaced and that no plan has any more.
    pub(super) fn forget_replaced(&self) {
        let gone: Vec<_> =
            self.tuner_state().better.extract_if(|_, (old, _)| old.is_unique()).collect();
        if !gone.is_empty() {
            // The device may not be done with their last launches.
            let _ = self.raw().synchronize(&mut self.stream());
        }
    }

    /// How often a program was replaced by a better one.
    pub(crate) fn generation(&self) -> u64 {
        self.tuner().generation.load(Relaxed)
    }

    /// The program to use in place of this one, if there is a better one.
    pub(crate) fn better(&self, program: &Program) -> Option<Program> {
        self.tuner_state().better.get(&program.address()).map(|pair| pair.1.clone())
    }

    /// The kernel after the passes chosen for it: by the heuristic, or by an earlier search.
    pub(super) fn optimized(&self, kernel: &Verified) -> Rewritten {
        if self.tuner_state().tuning == Tuning::Off {
            return optimize(kernel, self.caps());
        }
        let (mut all_known, passes) = (true, self.registered().len());
        let ready = optimize_by(kernel, self.caps(), &mut |part| {
            let choice = self.known_choice(part);
            all_known &= choice.is_some();
            choice.unwrap_or_default()
        });
        // Of a library's offer it is known only whether it was taken.
        if all_known && self.tuner_state().offers.get(&**kernel).is_none() {
            self.tuner_state().finish(kernel, passes, self.tuned_limit());
        }
        ready
    }

    /// What was found for a computation, now or earlier.
    fn known_choice(&self, part: &Kernel) -> Option<Choice> {
        if let Some(known) = self.tuner_state().known.get(part) {
            return Some(known.clone());
        }
        let store = self.store();
        let choice = store.get(part)?;
        self.tuner_state().know(part, &choice, store.passes().len(), self.tuned_limit());
        Some(choice)
    }

    fn store(&self) -> Arc<Store> {
        if let Some(store) = &self.tuner_state().store {
            return store.clone();
        }
        let cache = DiskCache::new("tune", &self.tuning_identity());
        let mut state = self.tuner_state();
        let store = Arc::new(Store::new(cache, &state.passes));
        state.store.get_or_insert(store).clone()
    }

    /// The program that takes longest of those not searched yet, and how many more there are.
    fn next_to_tune(&self) -> Option<(Task, usize)> {
        let mut state = self.tuner_state();
        let mut waiting = 0;
        let mut best: Option<(f64, Task)> = None;
        self.each_program(&mut |kernel, call, program| {
            // What groups wait for is there in a plan alone, and only the first time.
            if state.done.get(kernel).is_some() || kernel.waits() {
                return;
            }
            waiting += 1;
            let ns = cost::estimate(kernel, self.caps()).ns;
            if best.as_ref().is_none_or(|b| b.0 < ns) {
                let (kernel, offer, program) =
                    (kernel.clone(), call.map(Offer::of), program.clone());
                best = Some((ns, Task { kernel, offer, program }));
            }
        });
        let (_, mut task) = best?;
        task.offer = task.offer.or_else(|| state.offers.get(&task.kernel).cloned());
        Some((task, waiting - 1))
    }

    /// Searches for a better program and puts it in the place of the one before.
    fn tune_task(&self, task: &Task, mut clock: Clock, all: &mut Vec<Tuned>) -> Result<Duration> {
        let passes = self.registered().len();
        // Programs are known by kernels as they were given, without the guards that some got.
        let verified = Verified::new(&task.kernel).map_err(CompileError::from)?;
        let is_call = task.offer.as_ref().is_some_and(|offer| offer.order.is_none());
        let mut tuned = match is_call {
            true => None,
            false => self.tuned_kernel(&task.program, &verified, &mut clock, all)?,
        };
        if let Some(offer) = &task.offer {
            let program = tuned.as_ref().unwrap_or(&task.program);
            tuned = self.tuned_call(offer, program, &verified, &mut clock, all).or(tuned);
        }
        if let Some(tuned) = tuned {
            self.count_program(&tuned);
            self.replace(task, tuned);
        }
        self.tuner_state().finish(&task.kernel, passes, self.tuned_limit());
        Ok(clock.worked())
    }

    /// The program of faster versions of what a kernel consists of, if there are any.
    fn tuned_kernel(
        &self,
        program: &Program,
        kernel: &Verified,
        clock: &mut Clock,
        all: &mut Vec<Tuned>,
    ) -> Result<Option<Program>> {
        let (mut choices, mut is_new) = (FxHashMap::default(), false);
        for part in computations(kernel) {
            let choice = match self.known_choice(&part) {
                Some(choice) => choice,
                None => {
                    let mut trials = self.trials(&part, clock);
                    let found = trials.as_mut().and_then(|trials| self.search(&part, trials, all));
                    let choice = found.map_or_else(Choice::default, |found| found.choice);
                    is_new |= !choice.is_default();
                    choice
                }
            };
            choices.insert((*part).clone(), choice);
        }
        let all_default = choices.values().all(Choice::is_default);
        if all_default || !is_new && self.uses_choices(program) {
            return Ok(None);
        }
        let choose = &mut |part: &Kernel| choices.get(part).cloned().unwrap_or_default();
        let ready = optimize_by(kernel, self.caps(), choose);
        self.compile_optimized(&ready).map(Some)
    }

    /// Whether a program is one that a search gave.
    fn uses_choices(&self, program: &Program) -> bool {
        self.tuner_state().better.values().any(|pair| pair.1.address() == program.address())
    }

    fn replace(&self, Task { kernel, offer, program: old }: &Task, new: Program) {
        match offer {
            Some(Offer { call, order: None }) => {
                self.caches().add_call(call.clone(), Some(new.clone()));
            }
            _ => self.caches().add_program(kernel.clone(), new.clone()),
        }
        let mut state = self.tuner_state();
        // After a pass was registered, what an earlier search found may be replaced.
        let earlier = state.better.values_mut().filter(|pair| pair.1.address() == old.address());
        earlier.for_each(|pair| pair.1 = new.clone());
        state.better.insert(old.address(), (old.clone(), new));
        drop(state);
        self.tuner().generation.fetch_add(1, Relaxed);
    }

    /// Arguments to try versions of a single computation on, if there is time and room.
    fn trials<'a>(&'a self, part: &'a Kernel, clock: &'a mut Clock) -> Option<Trials<'a>> {
        if clock.is_over() {
            return None;
        }
        if self.has_room_to_try(part) { Trials::new(self, part, clock) } else { None }
    }

    /// Whether arguments of a kernel may take as much memory as they do.
    fn has_room_to_try(&self, kernel: &Kernel) -> bool {
        let bytes = kernel.params().iter().map(|p| p.len.saturating_mul(p.dtype.size() as u64));
        let bytes = bytes.fold(0, u64::saturating_add);
        let room = if self.info().memory == 0 { MAX_BYTES } else { self.info().memory / 8 };
        bytes <= room.min(MAX_BYTES)
    }

    fn filled_to_try(&self, contents: &[u8]) -> Option<Buffer> {
        let buffer = self.alloc_uninit(contents.len().max(1)).ok()?;
        self.write_to_try(&buffer, contents)?;
        Some(buffer)
    }

    fn write_to_try(&self, buffer: &Buffer, contents: &[u8]) -> Option<()> {
        let _sharing = self.read_lock();
        let buffer = buffer.pin().ok()?;
        if contents.is_empty() {
            return Some(());
        }
        self.write_uncounted(buffer.raw(), contents).ok()
    }

    fn read_to_try(&self, buffer: &Buffer, bytes: usize) -> Option<Vec<u8>> {
        let mut out = vec![0; bytes];
        let _sharing = self.read_lock();
        let buffer = buffer.pin().ok()?;
        if bytes > 0 {
            self.read_uncounted(buffer.raw(), &mut out).ok()?;
        }
        Some(out)
    }

    fn run_to_try(
        &self,
        program: &Program,
        buffers: &[Buffer],
        scalars: impl Iterator<Item = u64>,
    ) -> Option<Duration> {
        let _sharing = self.read_lock();
        let pins: Result<Vec<Pinned>> = buffers.iter().map(Buffer::pin).collect();
        let pins = pins.ok()?;
        let mut args: Vec<Arg<'_, Pinned>> = pins.iter().map(|pin| Arg::Buffer(pin, 0)).collect();
        args.extend(scalars.map(Arg::Scalar));
        self.run_timed(program, &args).ok()
    }

    /// Searches for a single computation, and keeps what was found.
    fn search(
        &self,
        part: &Rewritten,
        trials: &mut Trials<'_>,
        all: &mut Vec<Tuned>,
    ) -> Option<Found<Program>> {
        let store = self.store();
        let found = search(part, self.caps(), store.passes(), trials)?;
        all.push(Tuned {
            name: part.name().to_owned(),
            before: found.times.0,
            after: found.times.1,
            refused: found.wrong,
        });
        if found.complete || !found.choice.is_default() {
            store.put(part, &found.choice);
        }
        let passes = store.passes().len();
        self.tuner_state().know(part, &found.choice, passes, self.tuned_limit());
        Some(found)
    }

    /// Starts the thread, if there is time left for it.
    pub(super) fn tune_in_background(&self) {
        let mut state = self.tuner_state();
        if state.tuning == Tuning::Off || state.left.is_zero() || state.running {
            return;
        }
        let weak = self.downgrade();
        let thread = std::thread::Builder::new().name("zyx-tune".to_owned());
        state.running = thread.spawn(move || in_background(&weak)).is_ok();
    }

    /// One kernel of the background; the time it took, or nothing to do.
    fn tune_one(&self) -> Option<Duration> {
        let left = self.tuner_state().left;
        let next = if left.is_zero() { None } else { self.next_to_tune() };
        let Some((task, waiting)) = next else {
            self.tuner_state().running = false;
            return None;
        };
        let share = if waiting > 0 { left / SHARE } else { left };
        let clock = Clock { rests: true, ..Clock::of(share) };
        let passes = self.registered().len();
        let worked = self.tune_task(&task, clock, &mut Vec::new());
        // What failed is not tried again.
        self.tuner_state().finish(&task.kernel, passes, self.tuned_limit());
        let worked = worked.unwrap_or(share);
        let mut state = self.tuner_state();
        state.left = state.left.saturating_sub(worked.max(Duration::from_micros(1)));
        Some(worked)
    }
}

fn in_background(device: &Weak<Inner>) {
    while let Some(device) = device.upgrade() {
        let gate = fork::enter();
        let Some(worked) = Device::from(device).tune_one() else { return };
        drop(gate);
        std::thread::sleep((worked * REST).min(Duration::from_secs(1)));
    }
}

/// Time for a search.
struct Clock {
    budget: Duration,
    started: Instant,
    /// Time spent resting.
    rested: Duration,
    /// When it rested last.
    woken: Instant,
    rests: bool,
    /// How long the last candidate took.
    last: Duration,
}

impl Clock {
    fn of(budget: Duration) -> Clock {
        let now = Instant::now();
        let zero = Duration::ZERO;
        Clock { budget, started: now, rested: zero, woken: now, rests: false, last: zero }
    }

    fn worked(&self) -> Duration {
        self.started.elapsed().saturating_sub(self.rested)
    }

    /// Whether another candidate like the last one would take too long.
    fn is_over(&self) -> bool {
        self.worked() + self.last >= self.budget
    }

    /// Before each candidate: lets others have the machine.
    fn next(&mut self) {
        self.last = self.woken.elapsed();
        if self.rests {
            let rest = Instant::now();
            std::thread::sleep((self.last * REST).min(Duration::from_secs(1)));
            self.rested += rest.elapsed();
        }
        self.woken = Instant::now();
    }
}

/// A device with arguments for one kernel.
struct Trials<'a> {
    device: &'a Device,
    kernel: &'a Kernel,
    buffers: Vec<Buffer>,
    clock: &'a mut Clock,
}

impl<'a> Trials<'a> {
    fn new(device: &'a Device, kernel: &'a Kernel, clock: &'a mut Clock) -> Option<Trials<'a>> {
        let alloc = |p: &crate::ir::ParamInfo| {
            device.alloc_uninit((p.len.max(1) as usize) * p.dtype.size()).ok()
        };
        let buffers: Option<Vec<Buffer>> = kernel.params().iter().map(alloc).collect();
        let trials = Trials { device, kernel, buffers: buffers?, clock };
        for slot in 0..trials.buffers.len() {
            trials.fill(slot)?;
        }
        Some(trials)
    }

    /// Before each candidate: whether there is time for it.
    fn next(&mut self) -> bool {
        self.clock.next();
        let spent = self.is_spent();
        Counters::add(&self.device.counters().searches, u64::from(!spent));
        !spent
    }

    fn fill(&self, slot: usize) -> Option<()> {
        self.device.write_to_try(&self.buffers[slot], &check::contents(self.kernel, slot))
    }

    fn written(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let infos = self.kernel.params().iter().enumerate();
        let written = infos.filter(|(_, info)| info.access != Access::Read);
        written.map(|(slot, info)| (slot, info.len as usize * info.dtype.size()))
    }

    fn run(&self, program: &Program) -> Option<Duration> {
        let scalars = check::scalars(self.kernel).into_iter();
        self.device.run_to_try(program, &self.buffers, scalars)
    }
}

impl CompilingBench for Trials<'_> {
    fn compile(&mut self, kernel: &Rewritten) -> Option<Program> {
        self.next().then(|| self.device.compile_optimized(kernel).ok()).flatten()
    }
}

impl Bench for Trials<'_> {
    type Program = Program;

    fn outputs(&mut self, program: &Program) -> Option<Vec<Vec<u8>>> {
        let written: Vec<(usize, usize)> = self.written().collect();
        for &(slot, _) in &written {
            self.fill(slot)?;
        }
        self.run(program)?;
        let mut found = vec![Vec::new(); self.buffers.len()];
        for (slot, bytes) in written {
            found[slot] = self.device.read_to_try(&self.buffers[slot], bytes)?;
        }
        Some(found)
    }

    fn time(&mut self, program: &Program) -> Option<Duration> {
        self.run(program)
    }

    fn is_spent(&self) -> bool {
        // Nobody but this search holds the device any more.
        let abandoned = self.device.holders() <= 1 + self.buffers.len();
        self.clock.is_over() || (self.clock.rests && abandoned)
    }
}

#[cfg(test)]
mod tests;
