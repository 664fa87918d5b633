//! Values of parameters of user kernels: which are the fastest for sizes like those of a call.
//!
//! A kernel with parameters shows the device each call of a new class of sizes ([`Device::tuned_values`]). [`Device::tune`] records
//! it with other values, runs these variants on made-up inputs of the call's sizes, and keeps the fastest that computes the same.
//! Only `tune` searches: recording runs a closure of the program, which the background thread must not.
//!
//! A choice on disk has the text of the kernel with the author's values, the names of parameters and the class of sizes as its key. It holds
//! a fingerprint of the chosen variant, so a variant whose code changed is searched again.

use super::store::fingerprint;
use super::{Clock, Tuned, Tuning};
use crate::ir::{Kernel, Verified};
use crate::lang::{Fill, Recorded, Role};
use crate::runtime::buffer::Buffer;
use crate::runtime::device::Device;
use crate::runtime::erased::Program;
use crate::runtime::stats::Counters;
use crate::tune::check;
use crate::tune::search::{Bench, Contest, is_sooner};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Most combinations of values that are all tried; of more, those are that differ in one value from the best so far.
const MAX_COMBINATIONS: usize = 64;

/// Sizes of calls that share a choice: exponents of the powers of two that they are rounded up to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SizeClass(SmallVec<[u8; 8]>);

impl SizeClass {
    pub(crate) fn of(sizes: &[i64]) -> SizeClass {
        let exponent = |&size: &i64| size.unsigned_abs().next_power_of_two().ilog2() as u8;
        SizeClass(sizes.iter().map(exponent).collect())
    }
}

/// A recorded kernel with the scalars of a launch.
#[derive(Clone, Debug)]
pub(crate) struct SizedKernel {
    pub(crate) recorded: Arc<Recorded>,
    pub(crate) scalars: Arc<[i64]>,
}

/// A call of a kernel with parameters.
#[derive(Clone)]
pub(crate) struct ParameterCall {
    /// The kernel with the author's values.
    pub(crate) first: SizedKernel,
    pub(crate) class: SizeClass,
    /// For each parameter the numbers of the values that it may have, the author's first.
    pub(crate) options: Vec<Vec<usize>>,
    pub(crate) record: Arc<Record>,
}

/// Records the kernel for the sizes of the call with these numbers of values; `None` where that is refused.
type Record = dyn Fn(&Device, &[usize]) -> Option<SizedKernel> + Send + Sync;

impl ParameterCall {
    fn key(&self) -> String {
        let recorded = &self.first.recorded;
        format!(
            "parameters {:?}\n{:?}\n{:?}\n{recorded}",
            recorded.parameters(),
            self.options,
            self.class
        )
    }

    fn defaults(&self) -> Vec<usize> {
        self.options.iter().map(|numbers| numbers[0]).collect()
    }

    /// Combinations to try next.
    fn combinations(&self, best: &[usize]) -> Vec<Vec<usize>> {
        let count = self.options.iter().try_fold(1usize, |n, numbers| n.checked_mul(numbers.len()));
        let Some(count) = count.filter(|&count| count <= MAX_COMBINATIONS) else {
            let changed = |(place, numbers): (usize, &Vec<usize>)| -> Vec<Vec<usize>> {
                let with = |&number: &usize| {
                    let mut choices = best.to_vec();
                    choices[place] = number;
                    choices
                };
                numbers.iter().map(with).collect()
            };
            return self.options.iter().enumerate().flat_map(changed).collect();
        };
        let choices = |mut rest: usize| {
            let mut next = |numbers: &Vec<usize>| {
                let number = numbers[rest % numbers.len()];
                rest /= numbers.len();
                number
            };
            self.options.iter().map(&mut next).collect()
        };
        (0..count).map(choices).collect()
    }
}

/// A call with the result of its search.
pub(super) struct Entry {
    /// The call, until its values are searched: it holds the program's closure.
    waiting: Option<ParameterCall>,
    /// The kernel with the values that are the fastest; `None` for the author's.
    chosen: Option<Arc<Recorded>>,
}

/// The choice of values that a search found; the author's if there are none.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Values(pub(super) Option<(String, Vec<usize>)>);

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((print, choices)) = &self.0 else { return write!(f, "default") };
        write!(f, "{print}")?;
        choices.iter().try_for_each(|choice| write!(f, " {choice}"))
    }
}

impl std::str::FromStr for Values {
    type Err = ();

    fn from_str(text: &str) -> Result<Values, ()> {
        if text == "default" {
            return Ok(Values(None));
        }
        let (print, choices) = text.split_once(' ').ok_or(())?;
        let choices = choices.split(' ').map(|choice| choice.parse().map_err(drop));
        Ok(Values(Some((print.to_owned(), choices.collect::<Result<_, ()>>()?))))
    }
}

impl Device {
    /// The kernel of a call with the values that an earlier search found to be the fastest for such sizes. Notes the call for a
    /// later search. Choices of earlier processes are used while tuning is on.
    pub(crate) fn tuned_values(&self, call: &ParameterCall) -> Option<Arc<Recorded>> {
        let key = call.key();
        let is_off = {
            let mut state = self.tuner_state();
            let is_off = state.tuning == Tuning::Off;
            match state.calls.get(&key) {
                Some(entry) if entry.waiting.is_none() || is_off => return entry.chosen.clone(),
                _ => is_off,
            }
        };
        let known = if is_off { None } else { self.known_values(call, &key) };
        let (is_searched, chosen) = (known.is_some(), known.flatten());
        self.note_call_of_parameters(key, call, is_searched, chosen.clone());
        chosen
    }

    /// Changes whenever [`Device::tuned_values`] may give something else.
    pub(crate) fn generation_of_values(&self) -> u64 {
        self.tuner().values_generation.load(Relaxed)
    }

    /// The result of an earlier search, maybe by another process; `None` if there was none.
    fn known_values(&self, call: &ParameterCall, key: &str) -> Option<Option<Arc<Recorded>>> {
        let Values(Some((print, choices))) = self.store().values(key)? else { return Some(None) };
        let allowed = call.options.len() == choices.len()
            && call.options.iter().zip(&choices).all(|(numbers, choice)| numbers.contains(choice));
        let other = if allowed { (call.record)(self, &choices)? } else { return None };
        (print == fingerprint(other.recorded.kernel())).then_some(Some(other.recorded))
    }

    fn note_call_of_parameters(
        &self,
        key: String,
        call: &ParameterCall,
        is_searched: bool,
        chosen: Option<Arc<Recorded>>,
    ) {
        let kernel = call.first.recorded.kernel();
        let bytes = (2 + 2 * usize::from(chosen.is_some())) * kernel.bytes() + key.len();
        let entry = Entry { waiting: (!is_searched).then(|| call.clone()), chosen };
        let limit = self.tuned_limit();
        let mut state = self.tuner_state();
        state.calls.insert(key, entry, bytes);
        state.calls.fit(limit);
    }

    /// The calls whose values were not searched yet.
    pub(super) fn calls_to_tune(&self) -> Vec<(String, ParameterCall)> {
        if !self.has_default_optimizer() {
            return Vec::new();
        }
        let state = self.tuner_state();
        let waiting = |(key, entry): (&String, &Entry)| Some((key.clone(), entry.waiting.clone()?));
        state.calls.iter().filter_map(waiting).collect()
    }

    /// Searches the values of a call's parameters until a time is over, and keeps the best.
    pub(super) fn tune_call(
        &self,
        key: String,
        call: &ParameterCall,
        clock: &mut Clock,
        all: &mut Vec<Tuned>,
    ) {
        let (is_searched, chosen) = match self.known_values(call, &key) {
            Some(known) => (true, known),
            None if clock.is_over() => return,
            None => match self.search_values(call, clock) {
                Some(found) => {
                    let is_done = found.is_complete || found.chosen.is_some();
                    if is_done {
                        self.store().put_values(&key, &found.values());
                    }
                    all.push(found.tuned);
                    (is_done, found.chosen.map(|chosen| chosen.0))
                }
                // It cannot be tried, or there was no time for the first run.
                None => (!clock.is_over(), None),
            },
        };
        self.note_call_of_parameters(key, call, is_searched, chosen);
        self.tuner().values_generation.fetch_add(1, Relaxed);
    }

    fn search_values(&self, call: &ParameterCall, clock: &mut Clock) -> Option<FoundValues> {
        let mut trials = CallTrials::new(self, call, clock)?;
        let (first, defaults) = (trials.variant(call.first.clone())?, call.defaults());
        let (mut contest, time) = Contest::new(&first.sized, &mut trials, &first, true)?;
        let mut best = (defaults.clone(), first.clone(), time);
        let mut tried = FxHashSet::from_iter([defaults.clone()]);
        let mut is_better = true;
        while std::mem::take(&mut is_better) {
            for choices in call.combinations(&best.0) {
                if contest.bench.is_spent() {
                    break;
                }
                if tried.insert(choices.clone())
                    && let Some(kernel) = (call.record)(self, &choices)
                    && let Some(variant) = contest.bench.variant(kernel)
                    && let Some(time) = contest.time(&variant, true, &Choices(&variant))
                    && is_sooner(time, best.2)
                {
                    best = (choices, variant, time);
                    is_better = true;
                }
            }
        }
        let is_complete = !contest.bench.is_spent();
        let confirmed =
            if best.0 == defaults { None } else { contest.confirm(&first, &best.1, true) };
        let chosen = confirmed.map(|_| (best.1.kernel.recorded.clone(), best.0));
        let (before, after) = confirmed.unwrap_or((time, time));
        let name = first.sized.name().to_owned();
        let tuned = Tuned { name, before, after, refused: contest.wrong };
        Some(FoundValues { tuned, chosen, is_complete })
    }
}

/// The result of a search of values.
struct FoundValues {
    tuned: Tuned,
    /// The fastest, where those are not the author's values.
    chosen: Option<(Arc<Recorded>, Vec<usize>)>,
    is_complete: bool,
}

impl FoundValues {
    fn values(&self) -> Values {
        let chosen = self.chosen.as_ref();
        Values(chosen.map(|(kernel, choices)| (fingerprint(kernel.kernel()), choices.clone())))
    }
}

/// A kernel with one combination of values, compiled.
struct Variant {
    kernel: SizedKernel,
    /// With the lengths of buffers.
    sized: Kernel,
    program: Program,
}

/// The values of a variant as text.
struct Choices<'a>(&'a Variant);

impl fmt::Display for Choices<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters = self.0.kernel.recorded.parameters();
        parameters.iter().try_for_each(|parameter| write!(f, "{parameter} "))
    }
}

/// A device with inputs and outputs for one call.
struct CallTrials<'a> {
    device: &'a Device,
    /// The kernel with the author's values.
    first: Arc<Recorded>,
    /// Those of arguments that a caller sees.
    buffers: Vec<Buffer>,
    clock: &'a mut Clock,
}

impl<'a> CallTrials<'a> {
    fn new(
        device: &'a Device,
        call: &ParameterCall,
        clock: &'a mut Clock,
    ) -> Option<CallTrials<'a>> {
        let sized = sized(&call.first)?;
        if !device.has_room_to_try(&sized) {
            return None;
        }
        let mut buffers = Vec::new();
        for (slot, argument) in call.first.recorded.arguments().iter().enumerate() {
            if argument.role.is_seen() {
                let contents = check::contents(&sized, slot);
                buffers.push(device.filled_to_try(&contents)?);
            }
        }
        Some(CallTrials { device, first: call.first.recorded.clone(), buffers, clock })
    }

    /// Compiles a kernel; `None` if the device refuses it, its loops may not end on made-up inputs, or time is up.
    fn variant(&mut self, kernel: SizedKernel) -> Option<Rc<Variant>> {
        self.clock.next();
        if self.is_spent() {
            return None;
        }
        Counters::add(&self.device.counters().searches, 1);
        let ir = kernel.recorded.kernel();
        if ir.waits() || !ir.loops_with_break().is_empty() {
            return None;
        }
        let verified = Verified::new(ir).ok()?;
        let program = self.device.compile_optimized(&self.device.optimized(&verified)).ok()?;
        let sized = sized(&kernel).filter(|sized| self.device.has_room_to_try(sized))?;
        Some(Rc::new(Variant { kernel, sized, program }))
    }

    /// Buffers for a launch. Those that a kernel changes hold what they have to; those that it only writes do so `afresh`
    /// alone.
    fn buffers(&self, variant: &Variant, afresh: bool) -> Option<Vec<Buffer>> {
        let (device, sized) = (self.device, &variant.sized);
        let mut seen = self.buffers.iter();
        let arguments = variant.kernel.recorded.arguments();
        let inputs = (0..arguments.len()).filter(|&slot| arguments[slot].role == Role::Input);
        let inputs: Vec<usize> = inputs.collect();
        let buffer = |(slot, info): (usize, &crate::ir::ParamInfo)| {
            let (bytes, n) = (info.dtype.size(), info.len as usize);
            let contents = match arguments[slot].role {
                Role::Scratch | Role::Cut => return device.filled_to_try(&vec![0; n * bytes]),
                Role::Output if afresh => check::contents(sized, slot),
                Role::Input | Role::Output => return seen.next().cloned(),
                Role::Filled(Fill::Scalar(bits)) => bits.to_le_bytes()[..bytes].repeat(n),
                Role::Filled(Fill::Input(number)) => check::contents(sized, inputs[number]),
            };
            let buffer = seen.next()?.clone();
            device.write_to_try(&buffer, &contents)?;
            Some(buffer)
        };
        sized.params().iter().enumerate().map(buffer).collect()
    }

    fn run(&self, variant: &Variant, buffers: &[Buffer]) -> Option<Duration> {
        let scalars = variant.kernel.scalars.iter().map(|&x| x as u64);
        self.device.run_to_try(&variant.program, buffers, scalars)
    }
}

/// The kernel with the lengths of its buffers.
fn sized(kernel: &SizedKernel) -> Option<Kernel> {
    let scalars: Vec<u64> = kernel.scalars.iter().map(|&x| x as u64).collect();
    kernel.recorded.kernel().sized(&scalars).ok()
}

impl Bench for CallTrials<'_> {
    type Program = Rc<Variant>;

    /// By the slots of the kernel with the author's values.
    fn outputs(&mut self, variant: &Rc<Variant>) -> Option<Vec<Vec<u8>>> {
        let buffers = self.buffers(variant, true)?;
        self.run(variant, &buffers)?;
        let mut seen = Vec::new();
        let infos = variant.sized.params().iter().zip(&buffers);
        for (argument, (info, buffer)) in variant.kernel.recorded.arguments().iter().zip(infos) {
            let bytes = info.len as usize * info.dtype.size();
            match argument.role {
                Role::Input => seen.push(Vec::new()),
                Role::Scratch => {}
                Role::Output | Role::Filled(_) => {
                    seen.push(self.device.read_to_try(buffer, bytes)?)
                }
                // The driver ended a loop early.
                Role::Cut if self.device.read_to_try(buffer, bytes)?.iter().any(|&x| x != 0) => {
                    return None;
                }
                Role::Cut => {}
            }
        }
        let mut seen = seen.into_iter();
        let by_slot = |argument: &crate::lang::Argument| match argument.role.is_seen() {
            true => seen.next(),
            false => Some(Vec::new()),
        };
        self.first.arguments().iter().map(by_slot).collect()
    }

    fn time(&mut self, variant: &Rc<Variant>) -> Option<Duration> {
        let buffers = self.buffers(variant, false)?;
        self.run(variant, &buffers)
    }

    fn is_spent(&self) -> bool {
        self.clock.is_over()
    }
}
