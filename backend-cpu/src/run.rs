//! Running kernels on blocks of memory: the place where addresses are made of arguments.
//!
//! The core launches one command at a time per stream and opens one stream per device, so during
//! a command nobody else touches the blocks it is given.

use crate::blocks;
use crate::jit::{CompiledKernel, Entry};
use crate::shares::{self, Share};
use smallvec::SmallVec;
use std::cell::RefCell;
use zyx_core::hal::{Arg, CompileError, DeviceError, Extent, Signature, Watch};
use zyx_core::ir::interp::{Binding, Options, Program as Interpreted};
use zyx_core::ir::{Access, Verified, interp};
use zyx_gemm::memory::Block;
use zyx_gemm::pool::Pool;

/// The addresses and scalars a compiled kernel takes.
pub(crate) type Words = SmallVec<[u64; 16]>;

/// Work below this many nanoseconds stays on one thread: waking another costs about as much.
const PARALLEL_NS: f64 = 12_000.0;
/// Work handed out at once.
const TASK_NS: f64 = 8_000.0;
/// Maximum pieces of a loop that one thread runs alone, between which it looks for interrupts.
const PIECES: usize = 256;

/// A kernel that can run.
#[derive(Debug)]
pub(crate) enum Kernel {
    Compiled { code: Code, signature: Signature },
    Interpreted { program: Box<Interpreted>, signature: Signature },
}

/// What a kernel was compiled to.
#[derive(Debug)]
pub(crate) enum Code {
    Machine(CompiledKernel),
    Blocks(blocks::Program),
}

impl Code {
    fn bytes(&self) -> usize {
        match self {
            Code::Machine(code) => code.bytes(),
            Code::Blocks(program) => program.bytes(),
        }
    }

    /// What to run, in order.
    fn entries(&self) -> &[Entry] {
        match self {
            Code::Machine(code) => code.entries(),
            Code::Blocks(program) => program.entries(),
        }
    }

    /// Entries in phases: those of one may run at once, each phase must finish before the next.
    fn phases(&self) -> impl ExactSizeIterator<Item = &[Entry]> {
        let phases = match self {
            Code::Machine(code) => code.phases(),
            Code::Blocks(program) => program.phases(),
        };
        phases.iter().map(|range| &self.entries()[range.clone()])
    }

    fn scratch_bytes(&self) -> usize {
        match self {
            Code::Machine(code) => code.scratch_bytes(),
            // Threads have registers and arrays of their own.
            Code::Blocks(_) => 0,
        }
    }

    /// Number of iterations of an entry.
    ///
    /// # Safety
    /// `args` has a word for each `Param` and `Var` of the kernel.
    unsafe fn len(&self, entry: Entry, args: &[u64]) -> u64 {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Code::Machine(code) => code.len(entry, args),
                Code::Blocks(program) => program.len(entry, args),
            }
        }
    }

    /// Runs iterations `lo .. hi` of an entry.
    ///
    /// # Safety
    /// As [`CompiledKernel::run`] and [`blocks::Program::run`].
    unsafe fn run(&self, entry: Entry, args: &[u64], lo: u64, hi: u64, scratch: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Code::Machine(code) => code.run(entry, args, lo, hi, scratch),
                Code::Blocks(program) => program.run(entry, args, lo, hi),
            }
        }
    }
}

impl Kernel {
    pub(crate) fn compiled(kernel: &Verified, code: Code) -> Kernel {
        Kernel::Compiled { code, signature: Signature::of(kernel) }
    }

    /// What the kernel was compiled to, if it was.
    pub(crate) fn compiled_code(&self) -> Option<&Code> {
        match self {
            Kernel::Compiled { code, .. } => Some(code),
            Kernel::Interpreted { .. } => None,
        }
    }

    /// Bytes of memory, roughly.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Kernel::Compiled { code, .. } => code.bytes(),
            Kernel::Interpreted { program, .. } => 4 * program.kernel().bytes(),
        }
    }

    /// Estimated nanoseconds of a launch on one thread.
    pub(crate) fn ns(&self) -> f64 {
        let code = self.compiled_code().map_or(&[][..], Code::entries);
        code.iter().map(|entry| entry.ns).sum()
    }

    pub(crate) fn interpreted(kernel: &Verified) -> Result<Kernel, CompileError> {
        let program = Interpreted::new(kernel).map_err(|error| CompileError {
            kernel: kernel.name().to_owned(),
            log: error.to_string(),
        })?;
        let (program, signature) = (Box::new(program), Signature::of(kernel));
        Ok(Kernel::Interpreted { program, signature })
    }

    pub(crate) fn launch(&self, pool: &Pool, args: &[Arg<'_, Block>]) -> Result<(), DeviceError> {
        match self {
            Kernel::Compiled { .. } => run_with(&[(self, args)], pool, &[], self.ns()),
            Kernel::Interpreted { program, signature } => {
                signature.check(args, extent)?;
                pool.count_job();
                // SAFETY: the arguments were checked, and nobody else uses the blocks during a command.
                unsafe { interpret_words(program, &words(args)) }
                    .map_err(|error| driver("launch", error.to_string()))
            }
        }
    }

    /// Whether a launch may write to this buffer.
    pub(crate) fn writes(&self, slot: usize) -> bool {
        let (Kernel::Compiled { signature, .. } | Kernel::Interpreted { signature, .. }) = self;
        signature.writes(slot)
    }

    /// Checks buffers and scalars without so many of each at the front, which are this crate's.
    pub(crate) fn check_own(
        &self,
        given: [usize; 2],
        buffers: &[Arg<'_, Block>],
        scalars: &[Arg<'_, Block>],
    ) -> Result<(), DeviceError> {
        let (Kernel::Compiled { signature, .. } | Kernel::Interpreted { signature, .. }) = self;
        signature.check_own(given, buffers, scalars, extent)
    }

    /// Whether the words behind those of buffers are in the ranges that the kernel was verified for.
    fn takes_scalars(&self, words: &[u64]) -> bool {
        let (Kernel::Compiled { signature, .. } | Kernel::Interpreted { signature, .. }) = self;
        let buffers = signature.spans().count();
        let scalars: Vec<_> = words[buffers..].iter().map(|&bits| Arg::Scalar(bits)).collect();
        signature.check_own([buffers, 0], &[], &scalars, extent).is_ok()
    }

    /// Runs on the calling thread.
    ///
    /// # Safety
    /// As [`Code::run`] for `words`; for an interpreted kernel the words of buffers are
    /// addresses of memory as long as the kernel declares.
    pub(crate) unsafe fn run_here(&self, words: &[u64]) {
        debug_assert!(self.takes_scalars(words), "{:?} of {self:?}", &words);
        match self {
            Kernel::Compiled { code, .. } => {
                for &entry in code.entries() {
                    // SAFETY: the caller's promise.
                    let n = unsafe { code.len(entry, words) };
                    with_scratch(code.scratch_bytes(), |scratch| {
                        // SAFETY: the caller's promise; all iterations, entries in order, scratch
                        // of this thread.
                        unsafe { code.run(entry, words, 0, n, scratch) }
                    });
                }
            }
            Kernel::Interpreted { program, .. } => {
                // SAFETY: the caller's promise.
                let result = unsafe { interpret_words(program, words) };
                // What runs within a library's call cannot fail but by a bug of ours.
                result.expect("invariant: lowered kernels run");
            }
        }
    }
}

/// What a command may do with a block.
pub(crate) fn extent(block: &Block) -> Extent {
    Extent { bytes: block.len(), writable: block.is_writable() }
}

/// Every buffer argument must be as long as the kernel declares.
pub(crate) fn check_spans(args: &[Arg<'_, Block>], spans: &[usize]) -> Result<(), DeviceError> {
    let mut buffers = 0;
    for arg in args {
        if let Arg::Buffer(block, offset) = *arg {
            let fits = spans.get(buffers).is_some_and(|span| {
                offset.checked_add(*span).is_some_and(|end| end <= block.len())
            });
            if !fits {
                let reason = format!("argument {buffers} does not span what the kernel accesses");
                return Err(driver("launch", reason));
            }
            buffers += 1;
        }
    }
    match buffers == spans.len() {
        true => Ok(()),
        false => Err(driver("launch", format!("{buffers} buffers, not {}", spans.len()))),
    }
}

pub(crate) fn words(args: &[Arg<'_, Block>]) -> Words {
    args.iter()
        .map(|arg| match *arg {
            Arg::Buffer(block, offset) => block.as_ptr() as u64 + offset as u64,
            Arg::Scalar(bits) => bits,
        })
        .collect()
}

/// Runs compiled kernels that do not wait for one another, spread over the pool where it is worth
/// it: phase by phase, with `others` beside the first one. `ns` is what all of it takes on one
/// thread.
pub(crate) fn run_with(
    kernels: &[(&Kernel, &[Arg<'_, Block>])],
    pool: &Pool,
    others: &[Share<'_>],
    ns: f64,
) -> Result<(), DeviceError> {
    let mut ready: SmallVec<[(&Code, Words); 2]> = SmallVec::new();
    for &(kernel, args) in kernels {
        if let Kernel::Compiled { code, signature } = kernel {
            signature.check(args, extent)?;
            ready.push((code, words(args)));
        }
    }
    let phases = ready.iter().map(|(code, _)| code.phases().len()).max().unwrap_or(0);
    let here = ns < PARALLEL_NS || pool.n_threads() == 1;
    for phase in 0..phases.max(1) {
        let entries = ready.iter().flat_map(|(code, words)| {
            let entries = code.phases().nth(phase).unwrap_or_default();
            entries.iter().map(move |&entry| (*code, entry, words.as_slice()))
        });
        // SAFETY: words are addresses of memory as long as declared and scalars in their ranges,
        // both checked above; nobody else uses the blocks during a command (module documentation). Earlier
        // phases have finished and entries of one phase may run at once, each iteration once.
        let tasks: SmallVec<[_; 8]> =
            entries.map(|(code, entry, words)| unsafe { task(code, entry, words) }).collect();
        let own = tasks.iter().map(|(n, grain, task)| Share { n: *n, grain: *grain, task });
        let others = if phase == 0 { others } else { &[] };
        let shares: SmallVec<[Share<'_>; 16]> = others.iter().copied().chain(own).collect();
        if here { shares::run_here(pool, &shares) } else { shares::run(pool, &shares) }
    }
    Ok(())
}

/// Iterations of an entry, how many are worth handing out at once, and what does them.
///
/// # Safety
/// As [`Code::run`] whenever the result is called.
unsafe fn task<'a>(
    code: &'a Code,
    entry: Entry,
    words: &'a [u64],
) -> (usize, usize, impl Fn(std::ops::Range<usize>) + Sync + 'a) {
    // SAFETY: the caller's promise.
    let n = unsafe { code.len(entry, words) } as usize;
    let grain = (n as f64 * TASK_NS / entry.ns.max(1.0)).ceil() as usize;
    let grain = grain.clamp(1, n.div_ceil(2).max(1));
    let watch = Watch::here();
    // A thread that does all of it alone is given one range.
    let piece = if watch.may_stop() { grain.max(n / PIECES) } else { n };
    let task = move |range: std::ops::Range<usize>| {
        with_scratch(code.scratch_bytes(), |scratch| {
            let mut start = range.start;
            while start < range.end && !watch.is_stopped() {
                let end = range.end.min(start + piece);
                // SAFETY: the caller's promise; ranges of the pool are disjoint, earlier entries have
                // finished, scratch belongs to this thread.
                unsafe { code.run(entry, words, start as u64, end as u64, scratch) }
                start = end;
            }
        });
    };
    (n, grain, task)
}

thread_local! {
    static SCRATCH: RefCell<Option<Block>> = const { RefCell::new(None) };
}

/// Calls `f` with at least `bytes` bytes of this thread's scratch memory.
fn with_scratch(bytes: usize, f: impl FnOnce(*mut u8)) {
    if bytes == 0 {
        return f(std::ptr::null_mut());
    }
    SCRATCH.with_borrow_mut(|scratch| {
        if scratch.as_ref().is_none_or(|block| block.len() < bytes) {
            let zeros = Block::zeroed(bytes);
            *scratch = Some(zeros.expect("invariant: storage of verified kernels is small"));
        }
        f(scratch.as_ref().map_or(std::ptr::null_mut(), Block::as_ptr));
    });
}

/// Interprets a kernel on addresses.
///
/// # Safety
/// Words of buffers are addresses of memory as long as the kernel declares (a read-only argument
/// only as far as it is read). Nobody writes to it meanwhile, and nobody else uses what is written.
unsafe fn interpret_words(program: &Interpreted, words: &[u64]) -> Result<(), interp::InterpError> {
    let params = program.kernel().params();
    // Arguments that touch the same memory become ranges of one slice.
    let mut order: Vec<usize> = (0..params.len()).collect();
    order.sort_by_key(|&i| words[i]);
    struct Range {
        start: u64,
        end: u64,
        written: bool,
    }
    let mut ranges: Vec<Range> = Vec::new();
    let mut places = vec![(0, 0); params.len()];
    for i in order {
        let (start, written) = (words[i], params[i].access != Access::Read);
        let end = start + params[i].len * params[i].dtype.size() as u64;
        match ranges.last_mut() {
            Some(last) if start < last.end => {
                last.end = last.end.max(end);
                last.written |= written;
            }
            _ => ranges.push(Range { start, end, written }),
        }
        places[i] = (ranges.len() - 1, (start - ranges[ranges.len() - 1].start) as usize);
    }
    // What is only read may be lent: nothing may hold it exclusively.
    let mut numbers = Vec::with_capacity(ranges.len());
    let (mut outputs, mut inputs): (Vec<&mut [u8]>, Vec<&[u8]>) = Default::default();
    for range in &ranges {
        let len = (range.end - range.start) as usize;
        numbers.push(if range.written { outputs.len() } else { inputs.len() });
        // SAFETY: ranges are disjoint and lie within the arguments' memory.
        unsafe {
            match range.written {
                true => outputs.push(std::slice::from_raw_parts_mut(range.start as *mut u8, len)),
                false => inputs.push(std::slice::from_raw_parts(range.start as *const u8, len)),
            }
        }
    }
    let bindings: Vec<Binding> = places
        .iter()
        .map(|&(range, offset)| {
            let behind = if ranges[range].written { 0 } else { outputs.len() };
            Binding { buffer: behind + numbers[range], offset }
        })
        .collect();
    program.run_with(&inputs, &mut outputs, &bindings, &words[params.len()..], &Options::fast())
}

pub(crate) fn driver(context: &str, reason: String) -> DeviceError {
    DeviceError::Driver { context: context.to_owned(), reason }
}

fn check(block: &Block, offset: usize, bytes: usize) -> Result<(), DeviceError> {
    match offset.checked_add(bytes) {
        Some(end) if end <= block.len() => Ok(()),
        _ => {
            Err(driver("copy", format!("{bytes} bytes at {offset} of a block of {}", block.len())))
        }
    }
}

fn check_writable(block: &Block) -> Result<(), DeviceError> {
    match block.is_writable() {
        true => Ok(()),
        false => Err(DeviceError::not_writable("copy")),
    }
}

/// Copies host memory to a block.
pub(crate) fn write(dst: &Block, offset: usize, src: &[u8]) -> Result<(), DeviceError> {
    check(dst, offset, src.len())?;
    check_writable(dst)?;
    dst.changes();
    // SAFETY: in bounds as just checked; host slices and blocks do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(src.as_ptr(), dst.as_ptr().add(offset), src.len()) };
    Ok(())
}

/// Copies a block to host memory.
pub(crate) fn read(src: &Block, offset: usize, dst: &mut [u8]) -> Result<(), DeviceError> {
    check(src, offset, dst.len())?;
    // SAFETY: in bounds as just checked; host slices and blocks do not overlap.
    unsafe {
        std::ptr::copy_nonoverlapping(src.as_ptr().add(offset), dst.as_mut_ptr(), dst.len());
    }
    Ok(())
}

/// Copies between blocks, which may be one.
pub(crate) fn copy(
    src: (&Block, usize),
    dst: (&Block, usize),
    bytes: usize,
) -> Result<(), DeviceError> {
    check(src.0, src.1, bytes)?;
    check(dst.0, dst.1, bytes)?;
    check_writable(dst.0)?;
    dst.0.changes();
    // SAFETY: in bounds as just checked; `copy` allows overlap.
    unsafe { std::ptr::copy(src.0.as_ptr().add(src.1), dst.0.as_ptr().add(dst.1), bytes) };
    Ok(())
}
