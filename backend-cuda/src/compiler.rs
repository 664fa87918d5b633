//! What makes machine code of kernels: PTX that the driver assembles, or CUDA C++ that NVRTC compiles.
//!
//! The driver it is unless `ZYX_CUDA` says `nvrtc`. Both give the same bits. On an H100's host the driver took
//! 14 ms for a kernel in the median and NVRTC 60; sixteen threads assembled 370 kernels in a second.

use crate::caps::Facts;
use crate::dialect::{CUDA, complete};
use crate::driver::{self, Context, assemble};
use crate::nvrtc::{self, Nvrtc};
use crate::ptx;
use std::env;
use std::sync::Arc;
use zyx_core::codegen::{Unit, clike};
use zyx_core::hal::{Caps, CompileError};
use zyx_core::ir::Kernel;

/// A compiler and what it compiles for.
#[derive(Clone, Debug)]
pub(crate) enum Compiler {
    Driver(ptx::Target),
    Nvrtc(&'static Nvrtc, nvrtc::Target),
}

impl Compiler {
    /// The one to use for a device.
    ///
    /// # Errors
    /// When it is not there, or does not know such a device.
    pub(crate) fn of(facts: &Facts) -> Result<Compiler, String> {
        let (major, minor) = facts.capability;
        match env::var("ZYX_CUDA").unwrap_or_default().as_str() {
            "" => {
                let target = ptx::Target::of(facts.capability, driver::version()?);
                let old = || {
                    format!(
                        "devices of compute capability {major}.{minor} are too old; 6.0 is needed"
                    )
                };
                Ok(Compiler::Driver(target.ok_or_else(old)?))
            }
            "nvrtc" => {
                let nvrtc = Nvrtc::get()?;
                Ok(Compiler::Nvrtc(nvrtc, nvrtc.target(facts.capability)?))
            }
            other => Err(format!(
                "ZYX_CUDA is `{other}`; it may be `nvrtc`, or unset for the driver's assembler"
            )),
        }
    }

    /// Whether it has the matrix instructions of one generation.
    pub(crate) fn has_wide(&self) -> bool {
        match self {
            Compiler::Driver(target) => target.has_wide(),
            Compiler::Nvrtc(_, target) => target.is_of_one_generation(),
        }
    }

    /// Whether its kernels wait in their own code for those before them where the device can.
    pub(crate) fn has_waits(&self) -> bool {
        match self {
            Compiler::Driver(target) => target.has_waits(),
            Compiler::Nvrtc(..) => true,
        }
    }

    /// What machine code depends on besides the source.
    pub(crate) fn identity(&self) -> String {
        match self {
            Compiler::Driver(target) => format!("{target:?}"),
            Compiler::Nvrtc(nvrtc, target) => {
                let (version, options) = (nvrtc.version(), nvrtc.options());
                format!("NVRTC {version:?} {target:?} {options:?}")
            }
        }
    }

    /// The launches of a kernel with these capabilities.
    ///
    /// # Errors
    /// When the kernel needs what the device lacks, as legal kernels do not.
    pub(crate) fn translate(&self, kernel: &Kernel, caps: &Caps) -> Result<Unit, CompileError> {
        match self {
            Compiler::Driver(target) => ptx::translate(kernel, caps, *target),
            Compiler::Nvrtc(..) => cuda_c(kernel, caps),
        }
    }

    /// The machine code of a source; assembly for NVRTC's older targets.
    ///
    /// # Errors
    /// With the compiler's words and the source.
    pub(crate) fn compile(
        &self,
        context: &Arc<Context>,
        name: &str,
        source: &str,
    ) -> Result<Vec<u8>, CompileError> {
        match self {
            Compiler::Driver(_) => assemble(context, source).map_err(|reason| CompileError {
                kernel: name.to_owned(),
                log: format!("{reason}\n{source}"),
            }),
            Compiler::Nvrtc(nvrtc, target) => nvrtc.compile(name, source, target),
        }
    }
}

/// A kernel as CUDA C++.
///
/// # Errors
/// When the kernel needs what the device or the language lacks, as legal kernels do not.
pub(crate) fn cuda_c(kernel: &Kernel, caps: &Caps) -> Result<Unit, CompileError> {
    let unit = clike::emit(kernel, caps, &CUDA)?;
    Ok(Unit { source: complete(&unit.source), ..unit })
}
