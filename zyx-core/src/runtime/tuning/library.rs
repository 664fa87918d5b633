//! Library calls measured against their rivals: other ways of the library, and the generated kernel.
//!
//! The program in use says what the call computes. A rival that computes something else is refused; one
//! that is faster by a twentieth takes its place.

use super::{Clock, Trials, Tuned, Tuning};
use crate::hal::Call;
use crate::ir::{Kernel, Rewritten, Verified};
use crate::prepare::optimize_by;
use crate::runtime::Program;
use crate::runtime::device::Device;
use crate::tune::search::{Bench, Contest, HOPELESS, is_sooner};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Other ways of the library that are measured.
const WAYS: usize = 4;

/// What computes a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rival {
    /// The program that the library gives.
    Library,
    /// Another way of the library, with what tells it from others.
    Way(usize, String),
    /// The call's own kernel.
    Generated,
}

impl fmt::Display for Rival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rival::Library => f.write_str("library"),
            Rival::Way(way, what) => write!(f, "way {way} {what}"),
            Rival::Generated => f.write_str("generated"),
        }
    }
}

impl FromStr for Rival {
    type Err = ();

    fn from_str(text: &str) -> Result<Rival, ()> {
        match text {
            "library" => Ok(Rival::Library),
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
        let known = self.known_rival(call, &kernel)?;
        self.tuner_state().finish(&kernel, self.tuned_limit());
        known
    }

    /// What was found earlier: a better program or that there is none. `None` if nothing is known.
    fn known_rival(&self, call: &Call, kernel: &Kernel) -> Option<Option<Program>> {
        let program = match self.store().rival(kernel)? {
            Rival::Library => return Some(None),
            Rival::Way(way, what) => self.library_way(call, way).filter(|way| way.0 == what)?.1,
            Rival::Generated => {
                self.compile_optimized(&self.generated(&Verified::new(kernel).ok()?)).ok()?
            }
        };
        Some(Some(program))
    }

    fn library_way(&self, call: &Call, way: usize) -> Option<(String, Program)> {
        let (what, program) = self.raw().library_way(call, way)?;
        Some((what, program.of(self.home(), None, 1)))
    }

    /// A call's kernel after the passes that are the best known.
    fn generated(&self, kernel: &Verified) -> Rewritten {
        let choose = &mut |part: &Kernel| self.known_choice(part).unwrap_or_default();
        optimize_by(kernel, self.caps(), choose)
    }

    /// A program that is faster than the one in use for a call whose kernel this is, if there is one.
    pub(super) fn tuned_call(
        &self,
        call: &Call,
        program: &Program,
        kernel: &Verified,
        clock: &mut Clock,
        all: &mut Vec<Tuned>,
    ) -> Option<Program> {
        if self.uses_choices(program) {
            return None;
        }
        if let Some(known) = self.known_rival(call, kernel) {
            return known;
        }
        let part = Rewritten::from(kernel.clone());
        let mut trials = self.trials(&part, clock)?;
        let (mut contest, time) = Contest::new(&part, &mut trials, program, true)?;
        let mut best = (Rival::Library, program.clone(), time);
        for way in 1..=WAYS {
            let Some((what, program)) = self.library_way(call, way) else { break };
            if !contest.bench.next() {
                break;
            }
            consider(&mut contest, &mut best, Rival::Way(way, what), program);
        }
        let mut searched = Vec::new();
        if let Some(own) = contest.bench.compile(&self.generated(kernel))
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
            Rival::Library => None,
            _ => contest.confirm(program, &found, true),
        };
        let rival = if faster.is_some() { rival } else { Rival::Library };
        let (before, after) = faster.unwrap_or((time, time));
        let refused = contest.wrong + searched.iter().map(|search| search.refused).sum::<usize>();
        all.push(Tuned { name: call.name(), before, after, refused });
        if complete || faster.is_some() {
            self.store().put_rival(kernel, &rival);
        }
        faster.map(|_| found)
    }
}
