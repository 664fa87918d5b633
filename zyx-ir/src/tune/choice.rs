//! What a search found for a kernel.

use crate::caps::Caps;
use crate::ir::Kernel;
use crate::passes::{PASSES, Trace};
use std::sync::Arc;

/// The passes to apply to one kernel: the heuristic's own choice, or steps that a search found
/// faster. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice(Option<Arc<Steps>>);

#[derive(Debug, PartialEq, Eq)]
struct Steps {
    /// The kernel that they are for.
    kernel: Kernel,
    trace: Trace,
    tuned: Kernel,
}

impl Choice {
    /// These steps for this kernel. `None` if one is not of the table of passes: of others it is not
    /// known that they keep the accesses of a kernel in bounds.
    pub fn of(kernel: &Kernel, trace: Trace) -> Option<Choice> {
        let is_known =
            |step: &crate::passes::Step| PASSES.iter().any(|pass| std::ptr::eq(pass, step.pass));
        if !trace.steps.iter().all(is_known) {
            return None;
        }
        let (kernel, tuned) = (kernel.clone(), trace.apply(kernel));
        Some(Choice(Some(Arc::new(Steps { kernel, trace, tuned }))))
    }

    /// Whether it is the heuristic's own.
    pub fn is_default(&self) -> bool {
        self.0.is_none()
    }

    /// The steps and the kernel that they give, where a search found any.
    pub fn steps(&self) -> Option<(&Trace, &Kernel)> {
        self.0.as_ref().map(|steps| (&steps.trace, &steps.tuned))
    }

    /// The kernel that this choice makes of one; the heuristic's own if it is for another one.
    pub fn kernel(&self, kernel: &Kernel, caps: &Caps) -> Kernel {
        match &self.0 {
            Some(steps) if steps.kernel == *kernel => steps.tuned.clone(),
            _ => super::tune(kernel, caps).kernel,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::{Pass, Site, Step, samples, unroll};
    use crate::tune::{default_trace, optimize};

    #[test]
    fn a_choice_is_for_one_kernel() {
        let caps = Caps { vector_bytes: 64, masked: true, threads: 2, ..Caps::default() };
        let (kernel, other) = (samples::gelu(1000), samples::gelu(999));
        let choice = Choice::of(&kernel, Trace::default()).expect("no step is unknown");
        assert_eq!(choice.kernel(&kernel, &caps), kernel);
        assert_eq!(choice.kernel(&other, &caps), optimize(&other, &caps));
        let trace = default_trace(&kernel, &caps);
        let choice = Choice::of(&kernel, trace).expect("the heuristic's are of the table");
        assert_eq!(choice.kernel(&kernel, &caps), optimize(&kernel, &caps));
    }

    #[test]
    fn steps_of_other_passes_are_refused() {
        static FOREIGN: Pass = Pass { apply: |_, _| samples::gelu(7), ..unroll::PASS };
        let step = Step { pass: &FOREIGN, site: Site::whole() };
        assert_eq!(Choice::of(&samples::gelu(8), Trace { steps: vec![step] }), None);
    }
}
