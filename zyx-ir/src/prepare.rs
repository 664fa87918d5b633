//! From a verified kernel to one that a device compiles, without a second proof of its accesses.
//!
//! ```
//! use zyx_ir::ir::{Kernel, Verified};
//! use zyx_ir::{Caps, prepare};
//! let kernel: Kernel = "kernel double
//!     buffer 0 : f32[64] read
//!     buffer 1 : f32[64] write
//!     %x param 0 read : f32
//!     %y param 1 write : f32
//!     %n const 64 : i64
//!     %i loop parallel %n
//!     %a load %x[%i] : f32
//!     %b add %a, %a : f32
//!     %s store %y[%i], %b : f32
//!     %e end %i".parse()?;
//! let mut caps = Caps::default();
//! caps.vector_bytes = 32;
//! let fast = prepare::optimize(&Verified::new(&kernel)?, &caps);
//! let legal: Verified = prepare::legalize(&fast, &caps)?.verify()?;
//! assert_eq!(legal, prepare::prepare(&kernel, &caps)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::caps::Caps;
use crate::error::CompileError;
use crate::ir::{Kernel, Rewritten, Verified, joint};
use crate::tune::choice::Choice;
use crate::{legalize as legalization, tune};

/// A kernel as a device with these capabilities gets it: verified, after the default passes and
/// legalisation.
///
/// # Errors
/// When it is malformed or the device cannot express it.
pub fn prepare(kernel: &Kernel, caps: &Caps) -> Result<Verified, CompileError> {
    let verified = Verified::new(kernel)?;
    Ok(legalize(&optimize(&verified, caps), caps)?.verify()?)
}

/// A kernel after the passes that the heuristic chooses; see [`tune::optimize`].
pub fn optimize(kernel: &Verified, caps: &Caps) -> Rewritten {
    Rewritten::by_passes(tune::optimize(kernel, caps))
}

/// As [`optimize`], with another choice for each single computation. A choice that was made for
/// another one is the heuristic's own.
pub fn optimize_by(
    kernel: &Verified,
    caps: &Caps,
    choose: &mut dyn FnMut(&Kernel) -> Choice,
) -> Rewritten {
    let choose = &mut |part: &Kernel| choose(part).kernel(part, caps);
    Rewritten::by_passes(tune::optimize_by(kernel, caps, choose))
}

/// The single computations of a kernel, each once: what a search works on.
pub fn computations(kernel: &Verified) -> Vec<Rewritten> {
    let Some(parts) = joint::separate(kernel) else { return vec![kernel.clone().into()] };
    let mut found: Vec<Rewritten> = Vec::new();
    for part in parts {
        if !found.iter().any(|known| **known == part.kernel) {
            found.push(Rewritten::by_passes(part.kernel));
        }
    }
    found
}

/// A kernel in terms of what a device has; see [`legalize`](mod@legalization).
///
/// # Errors
/// When the device cannot express it.
pub fn legalize(kernel: &Rewritten, caps: &Caps) -> Result<Rewritten, CompileError> {
    let legal = legalization::legalize(kernel, caps)?;
    log::trace!(target: "zyx::ir", "{legal}");
    Ok(Rewritten::by_passes(legal))
}

/// Whether a launch of a kernel would take too long.
pub fn is_too_long(kernel: &Verified, caps: &Caps) -> bool {
    tune::launches::parts(kernel, caps).is_some()
}

/// A kernel whose launch would take too long in parts, and how many there are; see
/// [`tune::launches::parts`].
pub fn parts(kernel: &Verified, caps: &Caps) -> Option<(Rewritten, u64)> {
    // Scalars of a general kernel's members are its last ones.
    let (part, n) = tune::launches::parts(kernel, caps).filter(|_| kernel.members().is_none())?;
    Some((Rewritten::by_passes(part), n))
}
