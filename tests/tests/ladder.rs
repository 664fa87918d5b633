//! Random programs, rung by rung: evaluator, naive kernels, kernels after passes.

use zyx_tests::generate::Limits;
use zyx_tests::ladder::{Rung, climb, count};

/// Two random sequences of passes for each program, and the tuner's.
#[test]
fn random_programs() {
    let rungs =
        [Rung::evaluator(), Rung::naive(), Rung::passes::<1>(), Rung::passes::<2>(), Rung::tuned()];
    climb(&rungs, 0..count(10_000), Limits::default());
}
