//! Candidates: traces for a kernel, with what they make of it and the time that is expected.
//!
//! Three ways give them. A setting of the heuristic's parameters ([`Knobs`]) is one whole trace; one
//! step more at any site that any pass offers ([`extensions`]) changes a finished kernel; passes that other
//! crates register are tried in front of the heuristic and behind it ([`registered_steps`]). Equal
//! kernels are one candidate. Making them needs no device, so it is spread over threads, each of
//! which works on settings of its own.

use super::knobs::Knobs;
use super::{model, tune_with};
use crate::caps::Caps;
use crate::ir::Kernel;
use crate::passes::{PASSES, Pass, Site, Step, Trace, cse, dce, simplify};
use crate::threads;
use rustc_hash::FxHashSet;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Settings for which one more thread is started.
const PER_WORKER: usize = 64;
/// Ops up to which a kernel is worth trying.
const MAX_OPS: usize = 4000;

/// A way to make a kernel fast.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The steps, from the naive kernel on.
    pub trace: Trace,
    /// What they make of it.
    pub kernel: Kernel,
    /// The setting that gave it, where it was one.
    pub knobs: Option<Knobs>,
    /// Expected cycles, see [`model::estimate`].
    pub estimate: f64,
}

impl Candidate {
    /// What the heuristic makes of a kernel with these parameters.
    pub fn of(kernel: &Kernel, caps: &Caps, knobs: Knobs) -> Candidate {
        let draft = tune_with(kernel, caps, knobs);
        let estimate = model::estimate(&draft.kernel, caps);
        Candidate { trace: draft.trace, kernel: draft.kernel, knobs: Some(knobs), estimate }
    }

    /// The candidate after one more step, not cleaned up; `None` if the step is refused.
    fn after(&self, caps: &Caps, step: Step) -> Option<Candidate> {
        let kernel = step.apply(&self.kernel)?;
        let estimate = model::estimate(&kernel, caps);
        let mut trace = self.trace.clone();
        trace.steps.push(step);
        Some(Candidate { trace, kernel, knobs: None, estimate })
    }

    /// The heuristic's kernel after a first step; `None` if the step is refused.
    fn behind(kernel: &Kernel, caps: &Caps, step: Step, knobs: Knobs) -> Option<Candidate> {
        let mut candidate = Candidate::of(&step.apply(kernel)?, caps, knobs);
        candidate.trace.steps.insert(0, step);
        // It is not what the setting alone gives.
        candidate.knobs = None;
        Some(candidate)
    }

    /// The candidate with indices simplified, equal values shared and unused ones dropped.
    pub fn cleaned(mut self, caps: &Caps) -> Candidate {
        for pass in [&simplify::PASS, &cse::PASS, &dce::PASS] {
            self.kernel = (pass.apply)(&self.kernel, &Site::whole());
            let pass = crate::passes::pass(pass.name).expect("invariant: these are in the table");
            self.trace.steps.push(Step { pass, site: Site::whole() });
        }
        self.estimate = model::estimate(&self.kernel, caps);
        self
    }
}

/// What these settings make of a kernel: each kernel once, what should be fastest first. Kernels
/// in `seen` are left out, those given are added.
pub fn candidates(
    kernel: &Kernel,
    caps: &Caps,
    settings: &[Knobs],
    seen: &mut FxHashSet<Kernel>,
) -> Vec<Candidate> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let workers = cores.min(settings.len() / PER_WORKER).max(1);
    let make = |part: &[Knobs]| -> Vec<Candidate> {
        let mut known = FxHashSet::default();
        let each = part.iter().map(|&knobs| Candidate::of(kernel, caps, knobs));
        each.filter(|c| known.insert(c.kernel.clone())).collect()
    };
    let each = settings.len().div_ceil(workers).max(1);
    let parts = settings.chunks(each).collect();
    let lists = match workers {
        1 => vec![make(settings)],
        // A part that panics finds nothing.
        _ => threads::map(workers, parts, |part| {
            catch_unwind(AssertUnwindSafe(|| make(part))).unwrap_or_default()
        }),
    };
    sorted(lists.into_iter().flatten(), seen)
}

/// All that one more step makes of a candidate, as [`candidates`].
pub fn extensions(
    candidate: &Candidate,
    caps: &Caps,
    seen: &mut FxHashSet<Kernel>,
) -> Vec<Candidate> {
    let steps = PASSES.iter().flat_map(|pass| steps(pass, &candidate.kernel, caps));
    sorted(steps.filter_map(|step| candidate.after(caps, step)), seen)
}

/// All that one step of a registered pass makes of a kernel in front of the heuristic, with the parameters that gave
/// `best`, and of `best` itself; as [`candidates`].
pub fn registered_steps(
    kernel: &Kernel,
    best: &Candidate,
    caps: &Caps,
    registered: &[&'static Pass],
    seen: &mut FxHashSet<Kernel>,
) -> Vec<Candidate> {
    let knobs = best.knobs.unwrap_or_default();
    let all = registered.iter().flat_map(|&pass| {
        let first = steps(pass, kernel, caps).into_iter();
        let first = first.filter_map(|step| Candidate::behind(kernel, caps, step, knobs));
        let last = steps(pass, &best.kernel, caps).into_iter();
        let last = last.filter_map(|step| Some(best.after(caps, step)?.cleaned(caps)));
        first.chain(last).collect::<Vec<_>>()
    });
    sorted(all, seen)
}

/// A step at each site that a pass offers; none if it panics.
fn steps(pass: &'static Pass, kernel: &Kernel, caps: &Caps) -> Vec<Step> {
    let sites = catch_unwind(AssertUnwindSafe(|| (pass.sites)(kernel, caps)));
    sites.unwrap_or_default().into_iter().map(|site| Step { pass, site }).collect()
}

fn sorted(all: impl Iterator<Item = Candidate>, seen: &mut FxHashSet<Kernel>) -> Vec<Candidate> {
    let small = |c: &Candidate| c.kernel.ops().len() <= MAX_OPS;
    let mut new: Vec<Candidate> =
        all.filter(|c| small(c) && seen.insert(c.kernel.clone())).collect();
    new.sort_by(|a, b| a.estimate.total_cmp(&b.estimate));
    new
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::property_tests::{Rng, compare, devices, inputs, run};
    use crate::passes::samples;

    #[test]
    fn every_setting_and_extension_keeps_the_meaning() {
        let mut count = 0;
        let kernels = [
            samples::softmax(12, 40),
            samples::sum_cols(crate::DType::F32, 48, 36),
            samples::transpose(64, 40),
            samples::gelu(3000),
            samples::matmul(32, 24, 40),
        ];
        for (seed, kernel) in kernels.iter().enumerate() {
            let input = inputs(kernel, &mut Rng(seed as u64));
            let expected = run(kernel, &input, &[]);
            for caps in devices().into_iter().skip(1).step_by(2) {
                let mut seen = FxHashSet::default();
                let settings = Knobs::default().changes(&caps);
                let mut all = candidates(kernel, &caps, &settings, &mut seen);
                let start = Candidate::of(kernel, &caps, Knobs::default());
                all.extend(extensions(&start, &caps, &mut seen));
                count += all.len();
                for c in all.into_iter().step_by(5) {
                    let c = c.cleaned(&caps);
                    assert_eq!(c.trace.apply(kernel).as_ref(), Some(&c.kernel), "{}", c.trace);
                    let found = run(&c.kernel, &input, &[]);
                    if let Err(e) = compare(kernel, (&expected, &found), Some(2e-5)) {
                        panic!("{}: {e}\n{kernel}\n{}", c.trace, c.kernel);
                    }
                }
            }
        }
        assert!(count > 100, "{count}");
    }

    /// `cargo test --release -p zyx-core rate -- --ignored --nocapture`
    #[test]
    #[ignore = "a measurement"]
    fn rate_of_candidates() {
        let caps = Caps { vector_bytes: 64, masked: true, threads: 2, ..Caps::default() };
        let gpu = devices().remove(3);
        for (name, caps) in [("cpu", &caps), ("gpu", &gpu)] {
            for kernel in
                [samples::chain(1 << 16), samples::gelu(1 << 16), samples::softmax(64, 512)]
            {
                let settings: Vec<Knobs> =
                    Knobs::default().changes(caps).iter().flat_map(|k| k.changes(caps)).collect();
                let start = std::time::Instant::now();
                for &knobs in &settings {
                    std::hint::black_box(Candidate::of(&kernel, caps, knobs));
                }
                let whole = settings.len() as f64 / start.elapsed().as_secs_f64();
                let first = Candidate::of(&kernel, caps, Knobs::default());
                let (mut n, start) = (0, std::time::Instant::now());
                while start.elapsed().as_secs_f64() < 0.3 {
                    let mut seen = FxHashSet::default();
                    let list = extensions(&first, caps, &mut seen);
                    for c in list.iter().take(4) {
                        n += extensions(c, caps, &mut seen).len();
                    }
                    n += list.len();
                }
                let steps = f64::from(n as u32) / start.elapsed().as_secs_f64();
                println!(
                    "{name}: {} ops: {whole:.0} settings/s, {steps:.0} distinct extensions/s",
                    kernel.ops().len()
                );
            }
        }
    }
}
