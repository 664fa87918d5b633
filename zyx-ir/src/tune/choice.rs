//! What a search found for a kernel.

use crate::caps::Caps;
use crate::ir::Kernel;
use crate::passes::Trace;
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
    /// These steps for this kernel. `None` if a step of a registered pass is refused, see
    /// [`Step::apply`](crate::passes::Step::apply).
    pub fn of(kernel: &Kernel, trace: Trace) -> Option<Choice> {
        let tuned = trace.apply(kernel)?;
        let kernel = kernel.clone();
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
    fn steps_of_registered_passes_are_verified() {
        let of = |pass: &'static Pass| {
            let step = Step { pass, site: Site::whole() };
            Choice::of(&samples::gelu(8), Trace { steps: vec![step] })
        };
        static OTHER_ARGUMENTS: Pass = Pass { apply: |_, _| samples::gelu(7), ..unroll::PASS };
        assert_eq!(of(&OTHER_ARGUMENTS), None);
        static PANICS: Pass = Pass { apply: |_, _| panic!("a pass of others"), ..unroll::PASS };
        assert_eq!(of(&PANICS), None);
        /// Elements that the buffers do not have.
        static OUTSIDE: Pass = Pass {
            apply: |kernel, _| {
                let text = kernel.to_string().replace("const 8 : i64", "const 9 : i64");
                text.parse().expect("numbers alone changed")
            },
            ..unroll::PASS
        };
        let unchecked = (OUTSIDE.apply)(&samples::gelu(8), &Site::whole());
        assert_ne!(unchecked, samples::gelu(8));
        let guarded = of(&OUTSIDE).expect("what may be outside is guarded");
        let (_, kernel) = guarded.steps().expect("it has a step");
        assert!(kernel.to_string().contains("guard"), "{kernel}");
        static SAME: Pass = Pass { apply: |kernel, _| kernel.clone(), ..unroll::PASS };
        assert!(of(&SAME).is_some());
    }
}
