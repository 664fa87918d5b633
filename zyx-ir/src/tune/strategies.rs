//! Strategies: the ways to spread a nest over threads and lanes, one row each.
//!
//! The default heuristic gives each nest to the first row of its table that applies
//! ([`apply`]). Where the finished kernel is predicted to take more than [`FAR`] times what memory and
//! arithmetic need, the heuristic is asked again without the rows that it used, and the kernel
//! that is predicted to be faster stays ([`improve`]).

use super::knobs::Knobs;
use super::{Draft, model, tune_with};
use crate::caps::Caps;
use crate::ir::{Kernel, Value};

/// Times the least time of a kernel from which on other strategies are tried.
const FAR: f64 = 3.0;
/// Part of the predicted time that another choice has to save.
const GAIN: f64 = 0.25;
/// Other choices that are tried for a kernel at most.
const MOST_TRIED: usize = 6;
/// Nanoseconds beside a launch from which on other choices are looked for.
const WORTH: f64 = 10_000.0;

/// Which nest: the loop that it starts with, and its number among those that are not spread yet.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub(super) root: Value,
    pub(super) nest: usize,
}

/// A way to spread a nest.
pub(super) struct Strategy {
    /// For people.
    pub(super) name: &'static str,
    /// Spreads the nest, if the strategy applies to it. A draft that is refused is thrown away.
    pub(super) apply: fn(&mut Draft, &Caps, At) -> bool,
}

/// Spreads a nest by the first row that applies and is not left out. `false` if there is none.
pub(super) fn apply(draft: &mut Draft, rows: &[Strategy], caps: &Caps, at: At) -> bool {
    for (number, row) in rows.iter().enumerate() {
        if draft.knobs.without & 1 << number != 0 {
            continue;
        }
        let mut attempt = draft.fork();
        if (row.apply)(&mut attempt, caps, at) {
            attempt.used |= 1 << number;
            *draft = attempt;
            log::trace!(target: "zyx::tune", "{}: {}", draft.kernel.name(), row.name);
            return true;
        }
    }
    false
}

/// What the heuristic makes of a kernel; where that is far from the least time, the best of what it
/// makes without the strategies that it used.
pub(super) fn improve(kernel: &Kernel, caps: &Caps) -> Draft {
    let mut best = tune_with(kernel, caps, Knobs::default());
    let least = model::least(kernel, caps);
    let mut time = model::predict(&best.kernel, caps);
    let mut tried = 0;
    while time > FAR * least && time > least + WORTH && tried < MOST_TRIED {
        let mut better = None;
        for knobs in best.knobs.others(best.used, caps) {
            tried += 1;
            let other = tune_with(kernel, caps, knobs);
            let predicted = model::predict(&other.kernel, caps);
            if predicted < (1.0 - GAIN) * time {
                (time, better) = (predicted, Some(other));
            }
        }
        match better {
            Some(other) => best = other,
            None => break,
        }
    }
    best
}
