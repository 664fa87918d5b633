//! The search for a faster kernel: propose, order by the model, check, measure the best few.
//!
//! It climbs: from the heuristic's own parameters all settings that differ in one are made, those
//! that the model puts first are compiled, compared with the untuned kernel's output, and timed;
//! the fastest is where the next round starts. A last round tries one more step of any pass, and those
//! that are registered, whose gain the model need not see, in front of the heuristic, too. A
//! winner has to be faster by a twentieth once more, measured in turns with the untuned kernel, so
//! that noise changes nothing. What a device is comes through [`Bench`].

use super::candidates::{Candidate, candidates, extensions, registered_steps};
use super::check::agree;
use super::choice::Choice;
use super::knobs::Knobs;
use crate::caps::Caps;
use crate::ir::{Kernel, Rewritten};
use crate::passes::Pass;
use rustc_hash::FxHashSet;
use std::fmt::Display;
use std::time::Duration;

/// Candidates measured in a round.
const MEASURED: usize = 12;
/// Rounds at most.
const ROUNDS: usize = 4;
/// Candidates that the model puts this many times behind the first are not measured, and what takes so
/// many times as long as a library is not searched.
pub const HOPELESS: f64 = 4.0;
/// Time of the untuned kernel from which on another one is taken.
const GAIN: f64 = 0.95;
/// Times that the winner and the untuned kernel are measured in turns.
const TURNS: usize = 5;

/// A device that programs are measured on.
pub trait Bench {
    /// A compiled kernel.
    type Program: Clone;

    /// What it writes when run on [`contents`](super::check::contents), by slot; empty where it
    /// only reads.
    fn outputs(&mut self, program: &Self::Program) -> Option<Vec<Vec<u8>>>;

    /// The time of one run.
    fn time(&mut self, program: &Self::Program) -> Option<Duration>;

    /// Whether the time for this search is used up.
    fn is_spent(&self) -> bool;
}

/// A device that candidates are compiled for and measured on.
pub trait CompilingBench: Bench {
    /// Compiles a kernel after legalisation; `None` if the device cannot, or time is up.
    fn compile(&mut self, kernel: &Rewritten) -> Option<Self::Program>;
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Found<P> {
    /// The kernel to use from now on, with its steps.
    pub choice: Choice,
    /// Its program.
    pub program: P,
    /// Time of the untuned kernel, and of this one.
    pub times: (Duration, Duration),
    /// Whether the search ended by itself.
    pub complete: bool,
    /// Candidates that computed something else.
    pub wrong: usize,
}

/// Measures programs against the first one, which says what is computed.
#[derive(Debug)]
pub struct Contest<'a, B: Bench> {
    kernel: &'a Kernel,
    /// The device.
    pub bench: &'a mut B,
    expected: Vec<Vec<u8>>,
    /// Whether the first program sums in an order of its own.
    reassociates: bool,
    /// Programs that computed something else.
    pub wrong: usize,
}

/// Searches for a kernel faster than what the heuristic makes of this one, by [`PASSES`](crate::passes::PASSES) and
/// these `registered` passes. `None` if not even that could be run.
pub fn search<B: CompilingBench>(
    kernel: &Rewritten,
    caps: &Caps,
    registered: &[&'static Pass],
    bench: &mut B,
) -> Option<Found<B::Program>> {
    let untuned = Candidate::of(kernel, caps, Knobs::default());
    let first = bench.compile(&Rewritten::by_passes(untuned.kernel.clone()))?;
    let (mut search, time) = Contest::new(kernel, bench, &first, untuned.trace.reassociates())?;
    let mut seen = FxHashSet::default();
    seen.insert(untuned.kernel.clone());
    let mut best = (untuned, first.clone(), time);
    let mut settings = vec![Knobs::default()];
    for _ in 0..ROUNDS {
        let base = best.0.knobs.unwrap_or_default();
        settings.extend(base.changes(caps));
        let round = varied(candidates(kernel, caps, &settings, &mut seen), &base);
        settings.clear();
        if !search.round(round, &mut best) {
            break;
        }
    }
    let more = registered_steps(kernel, &best.0, caps, registered, &mut seen);
    search.round(more, &mut best);
    let more = extensions(&best.0, caps, &mut seen);
    let promising = more.into_iter().take_while(|c| c.estimate < best.0.estimate);
    let last: Vec<Candidate> = promising.take(MEASURED / 2).map(|c| c.cleaned(caps)).collect();
    search.round(last, &mut best);
    let complete = !search.bench.is_spent();
    let wrong = search.wrong;
    let is_first = best.0.knobs == Some(Knobs::default());
    let rounds = best.0.trace.reassociates();
    let times = if is_first { None } else { search.confirm(&first, &best.1, rounds) };
    let (choice, program, times) = match times {
        Some(times) => (Choice::of(kernel, best.0.trace)?, best.1, times),
        None => (Choice::default(), first, (time, time)),
    };
    Some(Found { choice, program, times, complete, wrong })
}

impl<'a, B: Bench> Contest<'a, B> {
    /// A contest with a program that computes what the kernel does, and the time of it.
    pub fn new(
        kernel: &'a Kernel,
        bench: &'a mut B,
        first: &B::Program,
        reassociates: bool,
    ) -> Option<(Contest<'a, B>, Duration)> {
        let expected = bench.outputs(first)?;
        let time = shortest(bench, first)?;
        Some((Contest { kernel, bench, expected, reassociates, wrong: 0 }, time))
    }

    /// The time of a program, if it computes what it should, with rounding of its own if it `rounds`.
    pub fn time(
        &mut self,
        program: &B::Program,
        rounds: bool,
        what: &dyn Display,
    ) -> Option<Duration> {
        let found = self.bench.outputs(program)?;
        if !self.is_right(&found, rounds) {
            self.wrong += 1;
            let name = self.kernel.name();
            log::warn!(target: "zyx::tune", "a candidate for {name} computes something else: {what}");
            return None;
        }
        shortest(self.bench, program)
    }

    fn is_right(&self, found: &[Vec<u8>], rounds: bool) -> bool {
        agree(self.kernel, &self.expected, found, self.reassociates || rounds)
    }

    /// Times of the first program and the best, if the best is faster by a twentieth still and again
    /// right.
    pub fn confirm(
        &mut self,
        first: &B::Program,
        best: &B::Program,
        rounds: bool,
    ) -> Option<(Duration, Duration)> {
        let (mut untuned, mut tuned) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            untuned.push(self.bench.time(first)?);
            tuned.push(self.bench.time(best)?);
        }
        untuned.sort();
        tuned.sort();
        let (a, b) = (untuned[TURNS / 2], tuned[TURNS / 2]);
        let found = self.bench.outputs(best)?;
        let faster = |i: usize| tuned[i].as_secs_f64() < GAIN * untuned[i].as_secs_f64();
        (self.is_right(&found, rounds) && faster(0) && faster(TURNS / 2)).then_some((a, b))
    }
}

impl<B: CompilingBench> Contest<'_, B> {
    /// Measures the first few; whether one of them is the best so far.
    fn round(
        &mut self,
        list: Vec<Candidate>,
        best: &mut (Candidate, B::Program, Duration),
    ) -> bool {
        let limit = best.0.estimate * HOPELESS;
        let mut better = false;
        for candidate in list.into_iter().take(MEASURED) {
            if self.bench.is_spent() {
                break;
            }
            if candidate.estimate > limit {
                continue;
            }
            let Some((program, time)) = self.measure(&candidate) else { continue };
            if is_sooner(time, best.2) {
                *best = (candidate, program, time);
                better = true;
            }
        }
        better
    }

    /// The program and time of a candidate that computes what it should.
    fn measure(&mut self, candidate: &Candidate) -> Option<(B::Program, Duration)> {
        let kernel = Rewritten::by_passes(candidate.kernel.clone());
        let program = self.bench.compile(&kernel)?;
        let time = self.time(&program, candidate.trace.reassociates(), &candidate.trace)?;
        Some((program, time))
    }
}

/// Whether a time is less than the best before by more than noise.
pub fn is_sooner(time: Duration, best: Duration) -> bool {
    time.as_secs_f64() < GAIN.sqrt() * best.as_secs_f64()
}

/// The best of each parameter's settings first, so that what the model does not see is measured.
fn varied(list: Vec<Candidate>, base: &Knobs) -> Vec<Candidate> {
    let mut seen = FxHashSet::default();
    let mut is_new = |c: &Candidate| seen.insert(c.knobs.and_then(|k| k.change(base)));
    let (mut first, others): (Vec<_>, Vec<_>) = list.into_iter().partition(&mut is_new);
    first.extend(others);
    first
}

/// The shortest of a few runs: one to warm up, then four, or more of what takes microseconds; fewer once
/// time is up.
fn shortest<B: Bench>(bench: &mut B, program: &B::Program) -> Option<Duration> {
    bench.time(program)?;
    let mut best = bench.time(program)?;
    let runs = if best < Duration::from_micros(200) { 8 } else { 3 };
    for _ in 0..runs {
        if bench.is_spent() {
            break;
        }
        best = best.min(bench.time(program)?);
    }
    Some(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Op, Value, Verified};
    use crate::ops::{BinaryOp, UnaryOp};
    use crate::passes::rebuild::Rebuild;
    use crate::passes::{Site, property_tests, samples};
    use crate::tune::check::{contents, scalars};

    /// A device that runs kernels by the interpreter and says that time is what a function of the
    /// kernel says; a kernel for which `lies` holds it computes wrongly.
    struct Fake {
        input: Vec<Vec<u8>>,
        time: fn(&Kernel) -> u64,
        lies: fn(&Kernel) -> bool,
        left: usize,
        compiled: usize,
    }

    impl CompilingBench for Fake {
        fn compile(&mut self, kernel: &Rewritten) -> Option<Kernel> {
            self.compiled += 1;
            Some((**kernel).clone())
        }
    }

    impl Bench for Fake {
        type Program = Kernel;

        fn outputs(&mut self, program: &Kernel) -> Option<Vec<Vec<u8>>> {
            let mut out = property_tests::run(program, &self.input, &scalars(program));
            if (self.lies)(program) {
                out.iter_mut().for_each(|buffer| buffer[1] ^= 0x10);
            }
            Some(out)
        }

        fn time(&mut self, program: &Kernel) -> Option<Duration> {
            Some(Duration::from_micros((self.time)(program)))
        }

        fn is_spent(&self) -> bool {
            self.compiled >= self.left
        }
    }

    fn ops(kernel: &Kernel) -> u64 {
        kernel.ops().len() as u64
    }

    fn run(
        time: fn(&Kernel) -> u64,
        lies: fn(&Kernel) -> bool,
        left: usize,
    ) -> (Found<Kernel>, usize) {
        let kernel = samples::gelu(1 << 12);
        let caps = Caps { vector_bytes: 64, masked: true, threads: 2, ..Caps::default() };
        let input = (0..kernel.params().len()).map(|slot| contents(&kernel, slot)).collect();
        let mut fake = Fake { input, time, lies, left, compiled: 0 };
        let kernel = Verified::new(&kernel).expect("samples are verified").into();
        (search(&kernel, &caps, &[], &mut fake).expect("the device runs anything"), fake.compiled)
    }

    #[test]
    fn the_fastest_right_one_is_chosen() {
        let (found, _) = run(ops, |_| false, usize::MAX);
        assert!(found.complete && found.wrong == 0);
        let (trace, kernel) = found.choice.steps().expect("shorter ones exist");
        assert_eq!(trace.apply(&samples::gelu(1 << 12)).as_ref(), Some(kernel));
        assert!(found.times.1 < found.times.0);
    }

    /// The time of a kernel in which nothing but exponentials takes long.
    fn exponentials(kernel: &Kernel) -> u64 {
        let is_exp = |op: &&Op| matches!(op, Op::Unary { op: UnaryOp::Exp, .. });
        100 + 50 * kernel.ops().iter().filter(is_exp).count() as u64
    }

    /// The heuristic's parameters change nothing here, so a choice with the pass has the default ones.
    #[test]
    fn a_registered_pass_in_front_of_the_default_parameters_is_chosen() {
        static ONCE: Pass = Pass {
            name: "once",
            doc: "the exponential of a maximum instead of two exponentials",
            reassociates: false,
            sites: |_, _| vec![Site::whole()],
            apply: |kernel, _| {
                let mut new = Rebuild::new(kernel);
                for (value, op, _) in kernel.iter() {
                    if let Op::Binary { op: BinaryOp::Max, x, y } = op
                        && let [Some(x), Some(y)] = [x, y].map(|x| operand(kernel, x))
                    {
                        let [x, y] = [x, y].map(|x| new.get(x));
                        let most = new.out.binary(BinaryOp::Max, x, y);
                        let result = new.out.unary(UnaryOp::Exp, most);
                        new.set(value, result);
                    } else {
                        new.copy(value);
                    }
                }
                new.out.finish()
            },
        };
        fn operand(kernel: &Kernel, exponential: Value) -> Option<Value> {
            match kernel.op(exponential) {
                Op::Unary { op: UnaryOp::Exp, x } => Some(x),
                _ => None,
            }
        }
        let kernel: Kernel = "kernel exponentials
            buffer 0 : f32[64] readwrite
            %x param 0 readwrite : f32
            %n const 64 : i64
            %i loop parallel %n
            %a load %x[%i] : f32
            %b abs %a : f32
            %c exp %a : f32
            %d exp %b : f32
            %m max %c, %d : f32
            %s store %x[%i], %m : f32
            %e end %i"
            .parse()
            .unwrap();
        let caps = Caps::default();
        let input = vec![contents(&kernel, 0)];
        let found = |registered: &[&'static Pass]| {
            let (input, lies) = (input.clone(), |_: &Kernel| false);
            let mut fake = Fake { input, time: exponentials, lies, left: usize::MAX, compiled: 0 };
            let kernel = Verified::new(&kernel).unwrap().into();
            search(&kernel, &caps, registered, &mut fake).unwrap().choice
        };
        assert_eq!(found(&[]), Choice::default());
        let choice = found(&[&ONCE]);
        let (trace, tuned) = choice.steps().expect("the pass makes it faster");
        assert!(
            trace.to_string().contains("once()") && exponentials(tuned) == 150,
            "{trace}\n{tuned}"
        );
    }

    #[test]
    fn one_that_computes_wrongly_never_is() {
        // All but the untuned kernel compute wrongly and in no time.
        let lies = |k: &Kernel| !is_untuned(k);
        let (found, _) = run(|k| if is_untuned(k) { 1000 } else { 1 }, lies, usize::MAX);
        assert_eq!(found.choice, Choice::default());
        assert!(found.wrong > 5 && is_untuned(&found.program));
    }

    fn is_untuned(k: &Kernel) -> bool {
        let caps = Caps { vector_bytes: 64, masked: true, threads: 2, ..Caps::default() };
        *k == crate::tune::optimize(&samples::gelu(1 << 12), &caps)
    }

    #[test]
    fn nothing_is_compiled_once_time_is_up() {
        let (found, compiled) = run(ops, |_| false, 3);
        assert_eq!(compiled, 3);
        assert!(!found.complete);
        let loops = |k: &Kernel| k.ops().iter().filter(|op| matches!(op, Op::Loop { .. })).count();
        assert!(loops(&found.program) > 0);
    }

    #[test]
    fn noise_is_no_gain() {
        let (found, _) = run(|k| 1000 - ops(k) % 7, |_| false, usize::MAX);
        assert_eq!(found.choice, Choice::default());
    }
}
