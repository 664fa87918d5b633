//! Passes: optional rewrites of a kernel, in one table.
//!
//! A pass says where it may apply (`sites`) and rebuilds the kernel for one such site (`apply`).
//! It keeps the meaning: the interpreter gives the same result before and after, bit for bit
//! unless the pass is declared to reassociate, then within the bound of the op table. No pass
//! needs another to have run, and none calls another; a pass that wants a form looks for it and
//! offers nothing otherwise. Applied to a site the kernel does not have, a pass changes nothing.
//!
//! A [`Trace`] is a list of steps, printed `split(%3, 8) unroll(%7)`: what a search proposes, a
//! cache stores, a test replays.

use crate::caps::Caps;
use crate::ir::{Kernel, LoopKind, Op, Value, Verified};
use smallvec::SmallVec;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;

pub mod accumulate;
pub mod bind;
pub mod block;
pub mod compensate;
pub mod cooperate;
pub mod cse;
pub mod cut;
pub mod dce;
pub mod divide;
mod elements;
pub mod facts;
pub mod hoist;
pub mod horizontal;
pub mod jam;
pub mod loops;
pub mod memoize;
pub mod mma;
pub mod muladd;
pub mod narrow;
pub mod nest;
pub mod owner_computes;
pub mod peel;
#[cfg(any(test, feature = "testing"))]
pub mod property_tests;
pub mod rebuild;
pub mod redirect;
pub(crate) mod registers;
#[cfg(any(test, feature = "testing"))]
pub mod samples;
pub mod simplify;
pub mod split;
pub mod stage_rows;
pub mod transpose_shared;
pub mod unroll;
pub mod unselect;
pub mod variance;
pub mod vectorize;

/// Where a pass applies: a value (a loop, most often) and small parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Site {
    /// The value, if the pass does not apply to the kernel as a whole.
    pub value: Option<Value>,
    /// What the pass documents: a factor, a number of lanes.
    pub params: SmallVec<[i64; 2]>,
}

impl Site {
    /// A site at a value.
    pub fn new(value: Value, params: &[i64]) -> Site {
        Site { value: Some(value), params: SmallVec::from_slice(params) }
    }

    /// The kernel as a whole.
    pub fn whole() -> Site {
        Site::default()
    }
}

/// One row of the pass table.
#[derive(Clone, Copy)]
pub struct Pass {
    /// Name in traces.
    pub name: &'static str,
    /// What it does, in a line.
    pub doc: &'static str,
    /// Whether float results may change by rounding (reassociated sums, fused multiply-add).
    pub reassociates: bool,
    /// Where it may apply.
    pub sites: fn(&Kernel, &Caps) -> Vec<Site>,
    /// The kernel with the pass applied; the same kernel if the site does not fit.
    pub apply: fn(&Kernel, &Site) -> Kernel,
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pass({})", self.name)
    }
}

/// Every pass.
pub static PASSES: &[Pass] = &[
    simplify::PASS,
    cse::PASS,
    dce::PASS,
    divide::PASS,
    hoist::PASS,
    muladd::PASS,
    narrow::PASS,
    split::PASS,
    nest::MERGE,
    nest::INTERCHANGE,
    nest::FLATTEN,
    bind::PASS,
    unroll::PASS,
    unselect::PASS,
    vectorize::PASS,
    accumulate::PASS,
    cooperate::PASS,
    horizontal::PASS,
    jam::PASS,
    peel::PASS,
    cut::PASS,
    redirect::PASS,
    owner_computes::PASS,
    compensate::PASS,
    memoize::PASS,
    block::PASS,
    mma::PASS,
    transpose_shared::PASS,
    stage_rows::PASS,
];

/// The pass with this name.
pub fn pass(name: &str) -> Option<&'static Pass> {
    PASSES.iter().find(|p| p.name == name)
}

/// Whether a pass is one of [`PASSES`].
fn is_own(pass: &Pass) -> bool {
    PASSES.iter().any(|own| std::ptr::eq(own, pass))
}

/// Why the tuner cannot take a registered pass.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pass `{name}`: {reason}")]
pub struct PassError {
    /// The name of the pass.
    pub name: &'static str,
    /// The violation.
    pub reason: String,
}

/// Checks that a pass of another crate can be registered beside `others`: traces name passes.
///
/// # Errors
/// When a trace cannot have the name, or another pass has it.
pub fn check_name(pass: &Pass, others: &[&'static Pass]) -> Result<(), PassError> {
    let error = |reason: &str| Err(PassError { name: pass.name, reason: reason.to_owned() });
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if pass.name.is_empty() || !pass.name.chars().all(is_word) {
        return error("a name consists of letters, digits, `_`, `-` and `.`");
    }
    if PASSES.iter().chain(others.iter().copied()).any(|other| other.name == pass.name) {
        return error("another pass has this name");
    }
    Ok(())
}

/// One pass applied at one site.
#[derive(Clone, Debug)]
pub struct Step {
    /// The pass.
    pub pass: &'static Pass,
    /// Where.
    pub site: Site,
}

impl PartialEq for Step {
    fn eq(&self, other: &Step) -> bool {
        self.pass.name == other.pass.name && self.site == other.site
    }
}

impl Eq for Step {}

impl Step {
    /// The kernel after this step.
    ///
    /// The result of a pass that is not one of [`PASSES`] is verified: accesses that are not shown to be in bounds get
    /// guards. `None` if that pass panics, or gives a malformed kernel or one with other arguments.
    pub fn apply(&self, kernel: &Kernel) -> Option<Kernel> {
        if is_own(self.pass) {
            return Some((self.pass.apply)(kernel, &self.site));
        }
        let after =
            catch_unwind(AssertUnwindSafe(|| (self.pass.apply)(kernel, &self.site))).ok()?;
        let same = after.params() == kernel.params()
            && after.vars() == kernel.vars()
            && after.members() == kernel.members();
        Verified::new(&after).ok().filter(|_| same).map(|verified| (*verified).clone())
    }
}

impl Pass {
    /// Whether a step may change how floats round: lanes and accumulators of a parallel loop do not.
    pub fn reassociates_at(&self, kernel: &Kernel, site: &Site) -> bool {
        let is_serial = |v: Value| matches!(kernel.op(v), Op::Loop { kind: LoopKind::Serial, .. });
        self.reassociates && (self.name == cooperate::PASS.name || site.value.is_none_or(is_serial))
    }
}

/// A sequence of steps; sites name values of the kernel each step is applied to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The steps, in order.
    pub steps: Vec<Step>,
}

impl Trace {
    /// Applies all steps in order; `None` if one is refused, see [`Step::apply`].
    pub fn apply(&self, kernel: &Kernel) -> Option<Kernel> {
        self.steps.iter().try_fold(kernel.clone(), |kernel, step| step.apply(&kernel))
    }

    /// Whether any step may change rounding.
    pub fn reassociates(&self) -> bool {
        self.steps.iter().any(|s| s.pass.reassociates)
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, Step { pass, site }) in self.steps.iter().enumerate() {
            let value = site.value.map(|v| v.to_string());
            let params = site.params.iter().map(i64::to_string);
            let arguments: Vec<String> = value.into_iter().chain(params).collect();
            let space = if i == 0 { "" } else { " " };
            write!(f, "{space}{}({})", pass.name, arguments.join(", "))?;
        }
        Ok(())
    }
}

/// A trace that does not parse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("trace: {reason} in step {step:?}")]
pub struct TraceError {
    /// The text of the step.
    pub step: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl Trace {
    /// Reads a trace whose steps are of [`PASSES`] and of these passes.
    ///
    /// # Errors
    /// When the text is no trace, or names another pass.
    pub fn parse_with(text: &str, registered: &[&'static Pass]) -> Result<Trace, TraceError> {
        let mut steps = Vec::new();
        for step in text.split_inclusive(')').map(str::trim).filter(|s| !s.is_empty()) {
            let error = |reason| TraceError { step: step.to_owned(), reason };
            let (name, rest) = step.split_once('(').ok_or_else(|| error("no parenthesis"))?;
            let arguments = rest.strip_suffix(')').ok_or_else(|| error("not closed"))?;
            let name = name.trim();
            let registered = registered.iter().copied().find(|pass| pass.name == name);
            let pass = pass(name).or(registered).ok_or_else(|| error("unknown pass"))?;
            let mut site = Site::default();
            for word in arguments.split(',').map(str::trim).filter(|w| !w.is_empty()) {
                if let Some(id) = word.strip_prefix('%') {
                    let id = id.parse().map_err(|_| error("not a value"))?;
                    site.value = Some(Value(id));
                } else {
                    site.params.push(word.parse().map_err(|_| error("not an integer"))?);
                }
            }
            steps.push(Step { pass, site });
        }
        Ok(Trace { steps })
    }
}

impl FromStr for Trace {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Trace, TraceError> {
        Trace::parse_with(text, &[])
    }
}
