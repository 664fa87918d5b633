//! Machine code for kernels, made in process: the fast path of the CPU backend.
//!
//! A kernel goes through six steps, each a module:
//!
//! * [`schedule`]: long chains of ops side by side;
//! * [`split`](crate::split): which parts run one after another, and whose iterations threads may divide;
//! * [`lower`]: IR to machine operations on virtual registers;
//! * [`dead`]: what nobody reads goes;
//! * [`regalloc`]: linear scan, spills, constants as memory operands;
//! * [`x86`], [`arm`]: the instructions of a machine, before and after the allocation, and their bytes.
//!
//! Code is a pure function of kernel and instruction set, but for the addresses of the Rust
//! functions it may call ([`helpers`]). Kernels are `fn(args, lo, hi, scratch)` in the calling convention
//! of Unix systems, everywhere: `args` has one 64-bit word per `Param` (its address) and then per `Var` (its bits).
//!
//! Guarantees: what compiles computes what the IR interpreter computes (bits, but for NaN payloads,
//! and the sign of a zero `min` or `max`); what does not compile is an
//! [`EmitError`], never a panic, and the kernel runs as blocks.

#![allow(clippy::cast_possible_truncation, reason = "instruction fields are narrow by definition")]

#[cfg(any(test, target_arch = "aarch64"))]
mod arm;
mod dead;
mod helpers;
mod lower;
mod machine;
mod regalloc;
mod registers;
mod schedule;
mod target;
mod x86;

#[cfg(test)]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod tests;

use crate::exec_memory::{Code, ExecError, ExecMemory};
use crate::facts::Facts;
use crate::split;
use std::ops::Range;
pub(crate) use target::Isa;
use target::Target;
use zyx_core::hal::Caps;
use zyx_core::ir::{Kernel, Op};
use zyx_core::tune::cost;

/// Why a kernel has no machine code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no machine code for {what}")]
pub(crate) struct EmitError {
    what: String,
}

impl EmitError {
    fn new(what: &str) -> Self {
        Self { what: what.to_owned() }
    }
}

impl From<ExecError> for EmitError {
    fn from(error: ExecError) -> Self {
        Self { what: error.to_string() }
    }
}

/// How many iterations an entry has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Length {
    /// One: not a parallel loop.
    Once,
    Known(u64),
    /// What the function at this offset stores.
    Computed(u32),
}

/// A function of the compiled kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    offset: u32,
    length: Length,
    /// Estimated nanoseconds of all iterations on one thread.
    pub(crate) ns: f64,
}

impl Entry {
    /// The entry with this number of a kernel that has no machine code.
    pub(crate) fn numbered(number: u32, ns: f64) -> Entry {
        Entry { offset: number, length: Length::Once, ns }
    }

    /// Its number.
    pub(crate) fn number(self) -> usize {
        self.offset as usize
    }
}

/// A kernel in executable memory.
#[derive(Debug)]
pub(crate) struct CompiledKernel {
    code: Code,
    entries: Vec<Entry>,
    phases: Vec<Range<usize>>,
    scratch: usize,
}

#[cfg(target_arch = "x86_64")]
type Function = unsafe extern "sysv64" fn(args: *const u64, lo: u64, hi: u64, scratch: *mut u8);
/// Called on 64-bit Arm alone: elsewhere there is no instruction set to compile for.
#[cfg(not(target_arch = "x86_64"))]
type Function = unsafe extern "C" fn(args: *const u64, lo: u64, hi: u64, scratch: *mut u8);

/// Compiles a kernel that passed `verify` and `legalize`.
pub(crate) fn compile(
    kernel: &Kernel,
    isa: Isa,
    memory: &ExecMemory,
) -> Result<CompiledKernel, EmitError> {
    compile_for(kernel, Target::of(isa), memory)
}

fn compile_for(
    kernel: &Kernel,
    target: Target,
    memory: &ExecMemory,
) -> Result<CompiledKernel, EmitError> {
    let scheduled = schedule::schedule(kernel, target.isa);
    let kernel = scheduled.as_ref().unwrap_or(kernel);
    let parts = split::split(kernel);
    let (bytes, entries, scratch) = assemble(kernel, &parts, target)?;
    let phases = split::phases(kernel, &parts);
    Ok(CompiledKernel { code: memory.add(&bytes)?, entries, phases, scratch })
}

/// The machine code of a kernel's parts with an entry for each and the scratch bytes it needs.
fn assemble(
    kernel: &Kernel,
    parts: &[split::Part],
    target: Target,
) -> Result<(Vec<u8>, Vec<Entry>, usize), EmitError> {
    let isa = target.isa;
    let mut writer = Writer::new(isa);
    let facts = Facts::new(kernel, |ty| lower::fits_registers(ty, isa));
    let (mut entries, mut scratch) = (Vec::new(), 0);
    let caps = Caps::default();
    for part in parts {
        let mut length = Length::Once;
        if let Some(range) = part.parallel
            && let Op::Loop { len, .. } = kernel.op(range)
        {
            length = match kernel.constant(len) {
                Some(n) => Length::Known(n.to_i64().max(0) as u64),
                None => {
                    let function = lower::lower_length(kernel, &facts, part, len, target)?;
                    Length::Computed(writer.function(function)?)
                }
            };
        }
        let function = lower::lower(kernel, &facts, part, target)?;
        scratch = scratch.max(function.scratch);
        let offset = writer.function(function)?;
        let ns = cost::estimate_part(kernel, &caps, |v| part.ops[v.idx()]).ns;
        entries.push(Entry { offset, length, ns });
    }
    Ok((writer.finish()?, entries, scratch))
}

/// The functions of a kernel under construction, for one of the machines that this build knows.
enum Writer {
    #[cfg(any(test, not(target_arch = "aarch64")))]
    X86(x86::Writer),
    #[cfg(any(test, target_arch = "aarch64"))]
    Arm(arm::Writer),
}

impl Writer {
    fn new(isa: Isa) -> Self {
        match isa {
            #[cfg(any(test, not(target_arch = "aarch64")))]
            Isa::Avx2 | Isa::Avx512 => Self::X86(x86::Writer::new(isa)),
            #[cfg(any(test, target_arch = "aarch64"))]
            Isa::Neon { .. } => Self::Arm(arm::Writer::new(isa)),
        }
    }

    /// Writes a function; gives its offset.
    fn function(&mut self, function: lower::Function) -> Result<u32, EmitError> {
        match self {
            #[cfg(any(test, not(target_arch = "aarch64")))]
            Self::X86(it) => it.function(function),
            #[cfg(any(test, target_arch = "aarch64"))]
            Self::Arm(it) => it.function(function),
        }
    }

    fn finish(self) -> Result<Vec<u8>, EmitError> {
        match self {
            #[cfg(any(test, not(target_arch = "aarch64")))]
            Self::X86(it) => it.finish(),
            #[cfg(any(test, target_arch = "aarch64"))]
            Self::Arm(it) => it.finish(),
        }
    }
}

impl CompiledKernel {
    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        let lists = size_of_val(&*self.entries) + size_of_val(&*self.phases);
        size_of::<CompiledKernel>() + self.code.len() + lists
    }

    /// The functions to run, in order.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The functions in phases: those of one may run at once, each phase must finish before the
    /// next.
    pub(crate) fn phases(&self) -> &[Range<usize>] {
        &self.phases
    }

    /// Bytes of scratch memory, aligned to 64, that each thread has to provide.
    pub(crate) fn scratch_bytes(&self) -> usize {
        self.scratch
    }

    fn function(&self, offset: u32) -> Function {
        let start = self.code.start().wrapping_add(offset as usize);
        // Another thread may have written the code since this one fetched instructions ahead.
        #[cfg(target_arch = "aarch64")]
        // SAFETY: fetches instructions again, and changes nothing.
        unsafe {
            std::arch::asm!("isb", options(nostack, preserves_flags));
        }
        // SAFETY: offsets are those of complete functions of this type, written by `assemble`.
        unsafe { std::mem::transmute::<*const u8, Function>(start) }
    }

    /// Number of iterations of an entry.
    ///
    /// # Safety
    /// `args` has a word for each `Param` and `Var` of the kernel.
    pub(crate) unsafe fn len(&self, entry: Entry, args: &[u64]) -> u64 {
        match entry.length {
            Length::Once => 1,
            Length::Known(n) => n,
            Length::Computed(offset) => {
                let mut n = 0i64;
                let function = self.function(offset);
                // SAFETY: the function stores one word where its second argument points, and the
                // caller guarantees the arguments.
                unsafe {
                    function(args.as_ptr(), &raw mut n as u64, 0, std::ptr::null_mut());
                }
                n.max(0) as u64
            }
        }
    }

    /// Runs iterations `lo .. hi` of an entry; threads may do so at once for disjoint ranges.
    ///
    /// # Safety
    /// `args` has a word for each `Param`, the address of memory as long as the kernel declares,
    /// aligned to 64, and for each `Var`, within its declared range. `hi` is at most the entry's
    /// length, earlier entries have finished, `scratch` is as long as `scratch_bytes`, aligned to
    /// 64 and used by nobody else.
    pub(crate) unsafe fn run(
        &self,
        entry: Entry,
        args: &[u64],
        lo: u64,
        hi: u64,
        scratch: *mut u8,
    ) {
        if lo < hi {
            // SAFETY: the caller guarantees what the kernel accesses.
            unsafe { self.function(entry.offset)(args.as_ptr(), lo, hi, scratch) }
        }
    }
}
