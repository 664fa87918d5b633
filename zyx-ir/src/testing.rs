//! What test suites need of the inside; exported under the feature `testing` only.

use crate::ir::{Kernel, Rewritten, Verified, VerifyError};

/// What passes and legalisation made of a kernel: all rules are checked but bounds of accesses.
///
/// # Errors
/// With the first value that breaks a rule.
pub fn rewritten(kernel: &Kernel) -> Result<Verified, VerifyError> {
    Rewritten::by_passes(kernel.clone()).verify()
}
