//! From legal kernels to SPIR-V modules: one module with one entry point per launch.
//!
//! * `math` gives every op of the table its exact meaning on one lane; `body` emits statements and
//!   regions, `memory` loads and stores, `atomic` the rest of accesses, `arguments` where buffers and
//!   scalars come from.
//! * The core has lowered the kernel to scalars and words before: `zyx_core::legalize::lower_to_32_bit`. Vectors
//!   are what is loaded or stored at once.
//!
//! What a device offers beyond the core of Vulkan 1.1 is in [`Target`]; everything in it may be
//! absent.

mod arguments;
mod atomic;
mod body;
mod math;
mod memory;
mod refined;

pub(crate) use arguments::{Layout, Slot};

use crate::asm;
use body::Body;
use zyx_core::UnaryOp;
use zyx_core::codegen::{Entry, stages};
use zyx_core::hal::{Caps, CompileError};
use zyx_core::ir::Kernel;
use zyx_core::legalize::lower_to_32_bit;

/// What generated code may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Buffers by address; else by descriptors.
    pub(crate) addresses: bool,
    /// 64-bit integers.
    pub(crate) int64: bool,
    /// 64-bit floats.
    pub(crate) float64: bool,
    /// Integers of 8 bits, in buffers and shared storage.
    pub(crate) int8: bool,
    /// Integers of 16 bits, in buffers and shared storage.
    pub(crate) int16: bool,
    /// Atomics on 64-bit integers, in buffers and shared storage.
    pub(crate) atomics64: bool,
    /// Widths of floats for which signs of zeros, infinities and NaN can be asked for.
    pub(crate) preserves: Vec<u32>,
    /// Widths of floats for which denormals can be asked for.
    pub(crate) denormals: Vec<u32>,
    /// A driver that takes the sum of a number and a constant `0.0` for the number, `-0.0` too.
    pub(crate) drops_zeros: bool,
    /// Bytes of arguments that travel with a launch.
    pub(crate) push_bytes: usize,
    /// Bytes of shared storage.
    pub(crate) shared_bytes: usize,
}

/// A launch of a translated kernel.
#[derive(Debug)]
pub(crate) struct Shader {
    /// Its grid; the name is that of the kernel with the number of the launch.
    pub(crate) entry: Entry,
    /// Whether its threads exchange values within subgroups, which must be full then.
    pub(crate) shuffles: bool,
    /// The module.
    pub(crate) module: rspirv::dr::Module,
}

/// Whether a unary op on floats has an instruction with an exact result.
pub(crate) fn has_unary(op: UnaryOp) -> bool {
    use UnaryOp::{Abs, Ceil, Floor, Neg, Not, Round, Sqrt, Trunc};
    matches!(op, Neg | Abs | Not | Sqrt | Floor | Ceil | Round | Trunc)
}

/// A translated kernel.
#[derive(Debug)]
pub(crate) struct Translation {
    /// The kernel as it was lowered, whose arguments the launches take.
    pub(crate) kernel: Kernel,
    /// Its launches.
    pub(crate) shaders: Vec<Shader>,
}

/// Translates a legal kernel.
///
/// # Errors
/// When the kernel needs what the device or Vulkan lacks, as legal kernels do not.
pub(crate) fn emit(
    kernel: &Kernel,
    caps: &Caps,
    target: &Target,
) -> Result<Translation, CompileError> {
    let error = |log: String| CompileError::new(kernel, log);
    let kernel = lower_to_32_bit::lowered(kernel, caps).map_err(error)?;
    let stages = stages::split(&kernel, caps).map_err(error)?;
    let shaders = stages.iter().enumerate().map(|(n, stage)| {
        let lanes = stage.lanes(&kernel, caps).map_err(error)?;
        let module = Body::new(&kernel, stage, caps, target, lanes).emit().map_err(error)?;
        let name = format!("{}_{n}", kernel.name());
        Ok(Shader {
            entry: Entry { name, groups: stage.groups, local: stage.local, shared: 0 },
            shuffles: lanes.is_some(),
            module,
        })
    });
    let shaders = shaders.collect::<Result<_, CompileError>>()?;
    Ok(Translation { kernel, shaders })
}

/// The translation as text.
///
/// # Errors
/// As [`emit`].
pub(crate) fn text(kernel: &Kernel, caps: &Caps, target: &Target) -> Result<String, CompileError> {
    let Translation { shaders, .. } = emit(kernel, caps, target)?;
    let part = |s: &Shader| format!("; {}\n{}\n", s.entry.name, asm::text(&s.module));
    Ok(shaders.iter().map(part).collect::<Vec<_>>().join("\n"))
}
