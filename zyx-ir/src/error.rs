//! What the compiler reports when it refuses a kernel.

use crate::ir::Kernel;

/// A kernel that did not compile.
#[derive(Debug, thiserror::Error)]
#[error("kernel {kernel} does not compile: {log}")]
pub struct CompileError {
    /// The kernel's name.
    pub kernel: String,
    /// The compiler's log, or what the device lacks.
    pub log: String,
}

impl CompileError {
    /// A kernel that was refused, with the reason.
    pub fn new(kernel: &Kernel, log: impl ToString) -> CompileError {
        CompileError { kernel: kernel.name().to_owned(), log: log.to_string() }
    }
}
