//! What kernels mean, executable.
//!
//! The interpreter is the definition of the IR: where generated code disagrees with it, the code
//! is wrong. A kernel is decoded once into flat code over a frame of 64-bit slots ([`Program`])
//! and then run on byte buffers; `decode.rs` is the translation, `machine.rs` the execution.
//!
//! Meanings fixed here that the op table leaves open:
//!
//! * Iterations of `Parallel`, `Group` and `Local` loops may happen in any order;
//!   [`Options::shuffle`] picks one. `Local` loops around barriers run in phases: every iteration
//!   goes to its next barrier before any goes on.
//! * `Fold` combines the upper half of the lanes into the lower, `x[i] op x[i + n/2]`, until one
//!   is left (lane counts that are no power of two: from left to right).
//! * A subgroup is [`Options::subgroup`] consecutive local iterations, axis 0 fastest. A shuffle
//!   from a lane that does not exist gives the own value.
//! * A matrix instruction adds products one by one, in order, rounding each time; `mma` tells who
//!   holds what. All threads of the group take part, in whole warps.
//! * A load that waits finds what an iteration before has stored, or waits for ever: groups run one
//!   after the other, so a group may wait for those alone that started before it.
//! * `MulAdd` rounds once. Loads excluded by a guard give 0, atomics too, and touch nothing.
//!
//! With [`Options::check`] the run also finds what no reading of the kernel can find: reads of
//! storage nothing was stored to, two stores to one element of a `Write` buffer, and races. A
//! race is two accesses of one element of a buffer or shared storage by iterations that nothing
//! orders, one of them a store, not both atomic. Barriers, joins of loops, and releases that are
//! acquired order (`shadow.rs`). A kernel's arguments mean different memory: two may be bound to
//! one place (an update in place), but a load through one of what was stored through another
//! counts as a race, and arguments that overlap otherwise are refused. Accesses out of bounds and
//! barriers that only some iterations reach are errors always.

mod decode;
mod locals;
mod machine;
mod memory;
pub mod scalar;
mod shadow;
mod trace;

pub use trace::Step;

use super::family::Member;
use super::kernel::Kernel;
use super::op::{Access, Op, Value};
use super::regions::Regions;
use super::verify::VerifyError;
use crate::caps::{Caps, Progress};
use crate::dtype::DTypeSet;
use crate::scalar::Scalar;
use std::fmt;
use trace::Trace;

/// What the interpreter can do: all that passes make and the IR has.
pub fn caps() -> Caps {
    Caps {
        compute: DTypeSet::ALL,
        vector_bytes: 64,
        masked: true,
        max_local: 1024,
        shared_bytes: 1 << 20,
        subgroup: (32, 32),
        atomic_add: DTypeSet::ALL,
        atomics: DTypeSet::ALL,
        device_scope: true,
        progress: Progress::None,
        unified_memory: true,
        fast_fma: true,
        ..Caps::default()
    }
}

/// How to run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Look for races, uninitialised reads and repeated stores.
    pub check: bool,
    /// The seed of a random order of independent iterations; `None` for the order of counters.
    pub shuffle: Option<u64>,
    /// Whether independent iterations run from the last to the first, where there is no seed.
    pub reversed: bool,
    /// Local iterations per subgroup.
    pub subgroup: usize,
    /// Loop iterations after which the run is given up.
    pub max_iterations: u64,
    /// Iterations after which a loop of 2^30 - 1 or more is given up: it waits for what does not come.
    pub patience: u64,
}

impl Default for Options {
    /// Checked, in order, subgroups of 32, no limit worth the name.
    fn default() -> Options {
        let (max_iterations, patience) = (u64::MAX, u64::MAX);
        let (shuffle, reversed) = (None, false);
        Options { check: true, shuffle, reversed, subgroup: 32, max_iterations, patience }
    }
}

impl Options {
    /// Unchecked and in order: the fastest way to a result.
    pub fn fast() -> Options {
        Options { check: false, ..Options::default() }
    }
}

/// What went wrong while running, at one value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// An access outside its storage.
    #[error("element {index} of {len}")]
    OutOfBounds {
        /// The element asked for.
        index: i64,
        /// How many there are.
        len: u64,
    },
    /// A load of an element nothing was stored to.
    #[error("element {index} is read before anything was stored there")]
    Uninitialised {
        /// The element.
        index: i64,
    },
    /// Two accesses of one element in no order, at least one a store.
    #[error("element {index} races with {earlier}")]
    Race {
        /// The element.
        index: i64,
        /// The access it races with.
        earlier: Value,
    },
    /// A second store to an element of a buffer declared `Write`.
    #[error("element {index} was already stored by {earlier}")]
    StoredTwice {
        /// The element.
        index: i64,
        /// The first store.
        earlier: Value,
    },
    /// A barrier, shuffle or matrix instruction that not all local iterations of the group reach, or
    /// a matrix instruction for which they are no whole warps.
    #[error("other local iterations {}", Elsewhere(*other))]
    Divergent {
        /// Where another iteration is, `None` when one has ended.
        other: Option<Value>,
    },
    /// A load that waits for what nobody stored before.
    #[error("element {index} is waited for and still zero")]
    Starved {
        /// The element.
        index: i64,
    },
    /// More loop iterations than [`Options::max_iterations`] or [`Options::patience`].
    #[error("more than {limit} loop iterations")]
    Endless {
        /// The limit.
        limit: u64,
    },
}

struct Elsewhere(Option<Value>);

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => write!(f, "wait at {value}"),
            None => f.write_str("have ended"),
        }
    }
}

/// A run that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InterpError {
    /// The kernel has no meaning.
    #[error(transparent)]
    Invalid(#[from] VerifyError),
    /// The arguments do not fit the kernel.
    #[error("kernel {kernel}: {reason}")]
    Arguments {
        /// The kernel's name.
        kernel: String,
        /// What does not fit.
        reason: String,
    },
    /// The kernel did something wrong.
    #[error("kernel {kernel}: {value} `{op}`{}: {fault}", At(at))]
    Fault {
        /// The kernel's name.
        kernel: String,
        /// The value whose op failed.
        value: Value,
        /// That op as text.
        op: String,
        /// The counters of the loops around it, outermost first.
        at: Vec<(Value, i64)>,
        /// What went wrong.
        fault: Fault,
    },
}

impl InterpError {
    /// The fault, if the kernel failed while running.
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            InterpError::Fault { fault, .. } => Some(fault),
            _ => None,
        }
    }
}

struct At<'a>(&'a [(Value, i64)]);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (value, counter)) in self.0.iter().enumerate() {
            write!(f, "{} {value} = {counter}", if n == 0 { " at" } else { "," })?;
        }
        Ok(())
    }
}

/// A buffer argument: which of the buffers given to [`Program::run`], from which byte on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Index of the buffer. Two arguments may name one buffer.
    pub buffer: usize,
    /// Byte offset of the argument's first element.
    pub offset: usize,
}

/// A decoded kernel, ready to run any number of times.
#[derive(Clone, Debug)]
pub struct Program {
    kernel: Kernel,
    code: decode::Code,
}

impl Program {
    /// Decodes a kernel.
    ///
    /// # Errors
    /// When the kernel breaks a rule of `verify` without which it has no meaning. Flow and bounds
    /// are left to the run.
    pub fn new(kernel: &Kernel) -> Result<Program, VerifyError> {
        super::verify::structure(kernel)?;
        Ok(Program { kernel: kernel.clone(), code: decode::decode(kernel) })
    }

    /// The kernel this was made from.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Runs the kernel: `params` by slot into `buffers`, `vars` by slot as bits.
    ///
    /// # Errors
    /// When the arguments do not fit, or the kernel does something wrong; what was stored until
    /// then stays.
    pub fn run(
        &self,
        buffers: &mut [&mut [u8]],
        params: &[Binding],
        vars: &[u64],
        options: &Options,
    ) -> Result<(), InterpError> {
        self.run_with(&[], buffers, params, vars, options)
    }

    /// As [`Program::run`], with buffers that are only read behind those that may be written: their
    /// numbers go on.
    ///
    /// # Errors
    /// Likewise, and when an argument that is written is bound to an input.
    pub fn run_with(
        &self,
        inputs: &[&[u8]],
        buffers: &mut [&mut [u8]],
        params: &[Binding],
        vars: &[u64],
        options: &Options,
    ) -> Result<(), InterpError> {
        self.run_traced((inputs, buffers), params, vars, options, None).0
    }

    /// Runs the kernel with checks, and gives the steps, at most so many, of the iterations whose counters of independent loops, outermost
    /// first, are these: of a thread, if groups and threads are numbered. A run that fails gives the steps until then.
    ///
    /// # Errors
    /// As [`Program::run`].
    pub fn trace(
        &self,
        buffers: &mut [&mut [u8]],
        params: &[Binding],
        vars: &[u64],
        options: &Options,
        (at, most): (&[i64], usize),
    ) -> (Vec<Step>, Result<(), InterpError>) {
        let options = Options { check: true, ..options.clone() };
        let (result, steps) =
            self.run_traced((&[], buffers), params, vars, &options, Some((at, most)));
        (steps, result)
    }

    fn run_traced(
        &self,
        (inputs, buffers): (&[&[u8]], &mut [&mut [u8]]),
        params: &[Binding],
        vars: &[u64],
        options: &Options,
        traced: Option<(&[i64], usize)>,
    ) -> (Result<(), InterpError>, Vec<Step>) {
        let mut trace = None;
        let result = (|| {
            let sized = self.kernel.has_extents().then(|| self.kernel.sized(vars));
            let sized = sized.transpose().map_err(|reason| self.bad_arguments(reason))?;
            let sized = sized.map(|kernel| Program::new(&kernel)).transpose()?;
            let program = sized.as_ref().unwrap_or(self);
            trace = traced.map(|(at, most)| Trace::new(&program.kernel, &program.code, at, most));
            program.run_sized((inputs, buffers), params, vars, options, trace.as_mut())
        })();
        (result, trace.map_or(Vec::new(), |trace| trace.steps))
    }

    fn run_sized(
        &self,
        (inputs, buffers): (&[&[u8]], &mut [&mut [u8]]),
        params: &[Binding],
        vars: &[u64],
        options: &Options,
        trace: Option<&mut Trace>,
    ) -> Result<(), InterpError> {
        self.check_arguments((inputs, buffers), params, vars)
            .map_err(|reason| self.bad_arguments(reason))?;
        let result = if options.check {
            let homes = memory::homes(&self.kernel, params);
            let homes = homes.map_err(|reason| self.bad_arguments(reason))?;
            let memory = memory::Memory::new(inputs, buffers, params);
            machine::Machine::<true>::new(self, memory, homes, options, trace).run(vars)
        } else {
            let memory = memory::Memory::new(inputs, buffers, params);
            machine::Machine::<false>::new(self, memory, Vec::new(), options, None).run(vars)
        };
        result.map_err(|failure| self.failed(failure))
    }

    fn bad_arguments(&self, reason: String) -> InterpError {
        InterpError::Arguments { kernel: self.kernel.name().to_owned(), reason }
    }

    fn check_arguments(
        &self,
        (inputs, buffers): (&[&[u8]], &[&mut [u8]]),
        params: &[Binding],
        vars: &[u64],
    ) -> Result<(), String> {
        let (n, m) = (self.kernel.params().len(), self.kernel.vars().len());
        if params.len() != n || vars.len() != m {
            let (given, scalars) = (params.len(), vars.len());
            return Err(format!("{given} buffers and {scalars} scalars for {n} and {m} declared"));
        }
        let Some(members) = self.kernel.members() else {
            return self.check_for(None, (inputs, buffers), params, vars);
        };
        let mut result = Err("the last scalars are those of no kernel it stands for".to_owned());
        for member in members.with(&vars[members.own_scalars()..]) {
            result = self.check_for(Some(&member), (inputs, buffers), params, vars);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    fn check_for(
        &self,
        member: Option<&Member>,
        (inputs, buffers): (&[&[u8]], &[&mut [u8]]),
        params: &[Binding],
        vars: &[u64],
    ) -> Result<(), String> {
        for (slot, (binding, info)) in params.iter().zip(self.kernel.params()).enumerate() {
            let input = binding.buffer.checked_sub(buffers.len());
            let bytes = match input {
                None => buffers[binding.buffer].len(),
                Some(input) => inputs.get(input).map_or(0, |input| input.len()),
            };
            if input.is_some() && info.access != Access::Read {
                return Err(format!("buffer {slot} is written, but bound to an input"));
            }
            let len = member.map_or(info.len, |member| member.lens()[slot]);
            let needed = len as u128 * info.dtype.size() as u128 + binding.offset as u128;
            if needed > bytes as u128 {
                return Err(format!("buffer {slot} ends at byte {needed} of {bytes}"));
            }
        }
        for (slot, (&bits, info)) in vars.iter().zip(self.kernel.vars()).enumerate() {
            let x = Scalar::from_bits(info.dtype, bits);
            let own = member.and_then(|member| member.ranges().get(slot));
            let (min, max) = own.copied().unwrap_or((info.min, info.max));
            let range = min as i128..=max as i128;
            let anything = (min, max) == (i64::MIN, i64::MAX);
            if info.dtype.is_int() && !anything && !range.contains(&x.to_i128()) {
                return Err(format!("scalar {slot} is {x}, not in {min}..={max}"));
            }
            if info.dtype.is_int() && x.to_i128() % i128::from(info.multiple_of) != 0 {
                return Err(format!("scalar {slot} is {x}, no multiple of {}", info.multiple_of));
            }
        }
        Ok(())
    }

    /// The error that reports a failure, with the loops around it.
    fn failed(&self, failure: machine::Failure) -> InterpError {
        let regions = Regions::of(&self.kernel);
        let is_loop = |v: &Value| matches!(self.kernel.op(*v), Op::Loop { .. });
        let mut at: Vec<(Value, i64)> = regions
            .enclosing(failure.value)
            .filter(is_loop)
            .map(|v| (v, failure.frame[self.code.slots[v.idx()] as usize] as i64))
            .collect();
        at.reverse();
        InterpError::Fault {
            kernel: self.kernel.name().to_owned(),
            value: failure.value,
            op: super::print::line(&self.kernel, failure.value),
            at,
            fault: failure.fault,
        }
    }
}

/// Decodes and runs a kernel once, argument `n` being `buffers[n]`.
///
/// ```
/// use zyx_ir::ir::{Kernel, interp};
/// let kernel: Kernel = "kernel k
///     buffer 0 : i32[3] readwrite
///     %p param 0 readwrite : i32
///     %n const 3 : i64
///     %i loop parallel %n
///     %x load %p[%i] : i32
///     %y mul %x, %x : i32
///     %s store %p[%i], %y : i32
///     %e end %i".parse().unwrap();
/// let mut buffers = vec![vec![1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]];
/// interp::interpret(&kernel, &mut buffers, &[], &interp::Options::default())?;
/// assert_eq!(buffers[0], [1, 0, 0, 0, 4, 0, 0, 0, 9, 0, 0, 0]);
/// # Ok::<(), interp::InterpError>(())
/// ```
///
/// # Errors
/// As [`Program::new`] and [`Program::run`].
pub fn interpret(
    kernel: &Kernel,
    buffers: &mut [Vec<u8>],
    vars: &[u64],
    options: &Options,
) -> Result<(), InterpError> {
    let params: Vec<Binding> =
        (0..buffers.len()).map(|buffer| Binding { buffer, offset: 0 }).collect();
    let mut slices: Vec<&mut [u8]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
    Program::new(kernel)?.run(&mut slices, &params, vars, options)
}

/// The next number of SplitMix64 (Steele, Lea and Flood 2014).
pub(crate) fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod bugs;
#[cfg(test)]
mod tests;
