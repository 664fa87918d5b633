//! Kernels without machine code: run block by block, by loops over the lanes of wide vectors that
//! the compiler of this crate vectorised.
//!
//! This is the fast path where there is no generator of machine code, or no executable memory: on
//! any processor, with the vectors its baseline has. Kernels are prepared as if the device had
//! vectors of [`LANES`] elements, so passes and legalisation do all that concerns lanes: masks,
//! tails, reductions in vector accumulators. What is left is an interpreter whose instructions
//! take so long that reading them costs little.
//!
//! * [`translate`]: ops to instructions on registers;
//! * [`machine`]: running them;
//! * [`ops`]: operations on whole registers, [`functions`]: those of many steps;
//! * [`frame`]: the registers.
//!
//! Guarantees: as those of the machine code (see [`jit`](crate::jit)); what has no block program is
//! a [`BlockError`], and the interpreter runs it.

#![allow(clippy::cast_possible_truncation, reason = "registers are numbered in 32 bits")]

mod frame;
mod functions;
mod machine;
mod ops;
mod translate;

use crate::facts::Facts;
use crate::jit::Entry;
use crate::split;
use frame::Frame;
pub(crate) use functions::{computes, expanded};
use std::cell::RefCell;
use std::ops::Range;
use translate::{Code, translate};
use zyx_core::hal::Caps;
use zyx_core::ir::{Kernel, Op, Value};
use zyx_core::tune::cost;

/// Lanes of all vectors, whatever they hold.
pub(crate) const LANES: usize = 64;

/// Scalars that every program has: zero, the range to run, then the words of the arguments.
const ZERO: u32 = 0;
const LO: u32 = 1;
const HI: u32 = 2;
const PARAMS: u32 = 3;

/// How much longer blocks take than the machine code that costs are estimated for.
const SLOWER: f64 = 4.0;

/// Why a kernel has no block program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no block program for {what}")]
pub(crate) struct BlockError {
    what: String,
}

impl BlockError {
    fn new(what: &str) -> Self {
        Self { what: what.to_owned() }
    }
}

/// How many iterations a part has.
#[derive(Debug)]
enum Length {
    Known(u64),
    Computed(Box<Code>),
}

#[derive(Debug)]
struct Part {
    code: Code,
    length: Length,
}

/// A kernel as block programs.
#[derive(Debug)]
pub(crate) struct Program {
    parts: Vec<Part>,
    /// Entry `n` runs part `n`.
    entries: Vec<Entry>,
    phases: Vec<Range<usize>>,
    arguments: usize,
}

/// Translates a kernel that passed `verify` and `legalize`.
pub(crate) fn compile(kernel: &Kernel) -> Result<Program, BlockError> {
    let parts = split::split(kernel);
    let facts = Facts::new(kernel, |_| true);
    let caps = Caps::default();
    let mut compiled = Vec::with_capacity(parts.len());
    let mut entries = Vec::with_capacity(parts.len());
    for (number, part) in parts.iter().enumerate() {
        let own = &part.ops;
        let mut length = Length::Known(1);
        if let Some(range) = part.parallel
            && let Op::Loop { len, .. } = kernel.op(range)
        {
            length = match kernel.constant(len) {
                Some(n) => Length::Known(n.to_i64().max(0) as u64),
                None => {
                    Length::Computed(Box::new(translate(kernel, &facts, own, None, Some(len))?))
                }
            };
        }
        let code = translate(kernel, &facts, own, part.parallel, None)?;
        let ns = cost::estimate_part(kernel, &caps, |v: Value| own[v.idx()]).ns;
        entries.push(Entry::numbered(number as u32, SLOWER * ns));
        compiled.push(Part { code, length });
    }
    let phases = split::phases(kernel, &parts);
    let arguments = kernel.params().len() + kernel.vars().len();
    Ok(Program { parts: compiled, entries, phases, arguments })
}

thread_local! {
    static FRAME: RefCell<Frame> = RefCell::default();
}

impl Code {
    fn bytes(&self) -> usize {
        size_of_val(&*self.insts) + size_of_val(&*self.literals) + size_of_val(&*self.arrays)
    }

    /// Runs iterations `lo .. hi` and gives the result asked for.
    ///
    /// # Safety
    /// As [`Program::run`].
    unsafe fn run(&self, args: &[u64], lo: u64, hi: u64) -> u64 {
        FRAME.with_borrow_mut(|frame| {
            frame.reserve(&self.sizes);
            let storage = frame.storage.as_mut_ptr().expose_provenance();
            let s = &mut frame.scalars[..];
            s[PARAMS as usize..][..args.len()].copy_from_slice(args);
            for &(at, bits) in &self.literals {
                s[at as usize] = bits;
            }
            (s[LO as usize], s[HI as usize]) = (lo, hi);
            for &(at, offset) in &self.arrays {
                s[at as usize] = (storage + offset) as u64;
            }
            // SAFETY: addresses are those of the arguments, which the caller guarantees, and of
            // private arrays, which the frame has room for and which are this thread's.
            unsafe { machine::run(&self.insts, frame) };
            frame.scalars[self.result as usize]
        })
    }
}

impl Program {
    /// Bytes of memory, roughly.
    pub(crate) fn bytes(&self) -> usize {
        let parts = self.parts.iter().map(|part| {
            let length = match &part.length {
                Length::Known(_) => 0,
                Length::Computed(code) => code.bytes(),
            };
            size_of::<Part>() + part.code.bytes() + length
        });
        size_of::<Program>() + size_of_val(&*self.entries) + parts.sum::<usize>()
    }

    /// The parts to run, in order.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The parts in phases: those of one may run at once, each phase must finish before the next.
    pub(crate) fn phases(&self) -> &[Range<usize>] {
        &self.phases
    }

    /// Number of iterations of an entry.
    ///
    /// # Safety
    /// `args` has a word for each `Param` and `Var` of the kernel, in its declared range.
    pub(crate) unsafe fn len(&self, entry: Entry, args: &[u64]) -> u64 {
        assert_eq!(args.len(), self.arguments, "a word for each argument");
        match &self.parts[entry.number()].length {
            Length::Known(n) => *n,
            // SAFETY: the caller's promise; what lengths are made of accesses nothing else.
            Length::Computed(code) => (unsafe { code.run(args, 0, 0) } as i64).max(0) as u64,
        }
    }

    /// Runs iterations `lo .. hi` of an entry; threads may do so at once for disjoint ranges.
    ///
    /// # Safety
    /// `args` has a word for each `Param`, the address of memory as long as the kernel declares,
    /// and for each `Var`, within its declared range. `hi` is at most the entry's length, and
    /// earlier entries have finished.
    pub(crate) unsafe fn run(&self, entry: Entry, args: &[u64], lo: u64, hi: u64) {
        assert_eq!(args.len(), self.arguments, "a word for each argument");
        if lo < hi {
            // SAFETY: the caller's promise.
            unsafe { self.parts[entry.number()].code.run(args, lo, hi) };
        }
    }
}
