//! Library calls measured against their rivals: other ways of the library, and the generated kernel; and
//! generated kernels against the library, where it could do what they do.
//!
//! The program in use says what is computed. A rival that computes something else is refused; one
//! that is faster by a twentieth takes its place.

use super::{Clock, Trials, Tuned, Tuning};
use crate::hal::{Call, Signature, lock};
use crate::ir::{Kernel, Rewritten, Verified};
use crate::prepare::optimize_by;
use crate::runtime::Program;
use crate::runtime::device::Device;
use crate::tune::search::{Bench, CompilingBench, Contest, HOPELESS, is_sooner};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Other ways of the library that are measured.
const WAYS: usize = 4;

/// What a library can compute in the place of a kernel.
#[derive(Clone, Debug)]
pub(super) struct Offer {
    pub(super) call: Call,
    /// Where the call's arguments are among the kernel's that prediction preferred; `None` if it preferred
    /// the call, and the kernel is the call's own.
    pub(super) order: Option<[u8; 3]>,
}

impl Offer {
    /// Of a call that the library computes.
    pub(super) fn of(call: &Call) -> Offer {
        Offer { call: call.clone(), order: None }
    }
}

/// What computes a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rival {
    /// What was predicted to be the fastest.
    Predicted,
    /// This way of the library, with what tells it from others.
    Way(usize, String),
    /// The call's own kernel.
    Generated,
}

impl fmt::Display for Rival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rival::Predicted => f.write_str("predicted"),
            Rival::Way(way, what) => write!(f, "way {way} {what}"),
            Rival::Generated => f.write_str("generated"),
        }
    }
}

impl FromStr for Rival {
    type Err = ();

    fn from_str(text: &str) -> Result<Rival, ()> {
        match text {
            "predicted" => Ok(Rival::Predicted),
            "generated" => Ok(Rival::Generated),
            _ => {
                let way =
                    text.strip_prefix("way ").and_then(|rest| rest.split_once(' ')).ok_or(())?;
                Ok(Rival::Way(way.0.parse().map_err(drop)?, way.1.to_owned()))
            }
        }
    }
}

/// The fastest so far.
type Best = (Rival, Program, Duration);

fn consider(
    contest: &mut Contest<'_, Trials<'_>>,
    best: &mut Best,
    rival: Rival,
    program: Program,
) -> Option<Duration> {
    let time = contest.time(&program, true, &rival)?;
    if is_sooner(time, best.2) {
        *best = (rival, program, time);
    }
    Some(time)
}

impl Device {
    /// What an earlier process found faster than the library's program.
    pub(in crate::runtime) fn tuned_earlier(&self, call: &Call) -> Option<Program> {
        if self.tuner_state().tuning == Tuning::Off {
            return None;
        }
        let kernel = call.kernel()?;
        let known = self.known_rival(&Offer::of(call), &kernel)?;
        let mut state = self.tuner_state();
        let passes = state.passes.len();
        state.finish(&kernel, passes, self.tuned_limit());
        known
    }

    /// Remembers, of a kernel about to be compiled, what call of a library does the same, and where the call's
    /// arguments are among the kernel's. If an earlier process found the library faster, its program
    /// becomes that of the kernel.
    pub(crate) fn offer(&self, kernel: &Kernel, find: impl FnOnce() -> Option<(Call, [u8; 3])>) {
        let is_known = lock(&self.caches().programs).get(kernel).is_some();
        let Some((call, order)) = (if is_known { None } else { find() }) else { return };
        let offer = Offer { call, order: Some(order) };
        let is_off = self.tuner_state().tuning == Tuning::Off;
        let faster = if is_off { None } else { self.known_rival(&offer, kernel).flatten() };
        let limit = self.tuned_limit();
        if let Some(program) = faster {
            self.count_program(&program);
            self.caches().add_program(kernel.clone(), program);
            let mut state = self.tuner_state();
            let passes = state.passes.len();
            return state.finish(kernel, passes, limit);
        }
        let bytes = kernel.bytes() + offer.call.bytes();
        let mut state = self.tuner_state();
        state.offers.insert(kernel.clone(), offer, bytes);
        state.offers.fit(limit);
    }

    /// What was found earlier: a better program or that there is none. `None` if nothing is known.
    fn known_rival(&self, offer: &Offer, kernel: &Kernel) -> Option<Option<Program>> {
        let program = match self.store().rival(kernel)? {
            Rival::Predicted => return Some(None),
            Rival::Way(way, what) => {
                self.library_way(offer, kernel, way).filter(|way| way.0 == what)?.1
            }
            Rival::Generated => {
                self.compile_optimized(&self.generated(&Verified::new(kernel).ok()?)).ok()?
            }
        };
        Some(Some(program))
    }

    /// A way of the library to compute what a kernel does, from the kernel's arguments.
    fn library_way(&self, offer: &Offer, kernel: &Kernel, way: usize) -> Option<(String, Program)> {
        let (what, program) = self.raw().library_way(&offer.call, way)?;
        let signature = offer.order.map(|_| Signature::of(kernel));
        Some((what, program.of(self.home(), signature, 1).ordered(offer.order)))
    }

    /// A call's kernel after the passes that are the best known.
    fn generated(&self, kernel: &Verified) -> Rewritten {
        let choose = &mut |part: &Kernel| self.known_choice(part).unwrap_or_default();
        optimize_by(kernel, self.caps(), choose)
    }

    /// A program that is faster than the one in use for what this kernel does, if there is one.
    pub(super) fn tuned_call(
        &self,
        offer: &Offer,
        program: &Program,
        kernel: &Verified,
        clock: &mut Clock,
        all: &mut Vec<Tuned>,
    ) -> Option<Program> {
        if self.uses_choices(program) {
            return None;
        }
        if let Some(known) = self.known_rival(offer, kernel) {
            return known;
        }
        // Way 0 is what is in use, or what prediction refused.
        let first = usize::from(offer.order.is_none());
        let ways =
            (first..=WAYS).map_while(|way| Some((way, self.library_way(offer, kernel, way)?)));
        let mut ways = ways.peekable();
        if first == 0 && ways.peek().is_none() {
            return None;
        }
        let part = Rewritten::from(kernel.clone());
        let mut trials = self.trials(&part, clock)?;
        let (mut contest, time) = Contest::new(&part, &mut trials, program, true)?;
        let mut best = (Rival::Predicted, program.clone(), time);
        for (way, (what, program)) in ways {
            if !contest.bench.next() {
                break;
            }
            consider(&mut contest, &mut best, Rival::Way(way, what), program);
        }
        let mut searched = Vec::new();
        if offer.order.is_none()
            && let Some(own) = contest.bench.compile(&self.generated(kernel))
            && own.parts() == 1
            && let Some(time) = consider(&mut contest, &mut best, Rival::Generated, own)
            && time.as_secs_f64() < HOPELESS * best.2.as_secs_f64()
            && self.known_choice(&part).is_none()
            && let Some(found) = self.search(&part, contest.bench, &mut searched)
            && !found.choice.is_default()
        {
            consider(&mut contest, &mut best, Rival::Generated, found.program);
        }
        let (rival, found, _) = best;
        let complete = !contest.bench.is_spent();
        let faster = match rival {
            Rival::Predicted => None,
            _ => contest.confirm(program, &found, true),
        };
        let rival = if faster.is_some() { rival } else { Rival::Predicted };
        let (before, after) = faster.unwrap_or((time, time));
        let refused = contest.wrong + searched.iter().map(|search| search.refused).sum::<usize>();
        all.push(Tuned { name: part.name().to_owned(), before, after, refused });
        if complete || faster.is_some() {
            self.store().put_rival(kernel, &rival);
        }
        faster.map(|_| found)
    }
}
