//! What test suites need of the inside; exported under the feature `testing` only.

use crate::ir::{Kernel, Rewritten, Verified, VerifyError};

/// What passes and legalisation made of a kernel: all rules are checked but bounds of accesses.
///
/// # Errors
/// With the first value that breaks a rule.
pub fn rewritten(kernel: &Kernel) -> Result<Verified, VerifyError> {
    Rewritten::by_passes(kernel.clone()).verify()
}

/// Small pseudo-random numbers (splitmix64), seeded.
#[derive(Clone, Debug)]
pub struct Rng(pub u64);

impl Rng {
    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "there is no end")]
    pub fn next(&mut self) -> u64 {
        crate::ir::interp::splitmix(&mut self.0)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}
