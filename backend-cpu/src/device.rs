//! The CPU as a device: memory, streams, and the choice of how a kernel runs.
//!
//! Kernels run as machine code where this processor and operating system allow it, else as block
//! programs, and what neither can express in the interpreter of the core; contractions run in the library of this crate, with their epilogues as
//! machine code. Commands run at once, in order, on the calling thread and the pool, so streams
//! and events hold nothing. Threads take turns: a command has the memory of the whole device to
//! itself, and no other memory.

use crate::blocks;
use crate::config::Config;
use crate::exec_memory::ExecMemory;
use crate::flash;
use crate::horizontal_fusion;
use crate::jit;
use crate::library::{self, Contraction};
use crate::run::{self, Code, Kernel as Runnable};
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use zyx_core::hal::{
    self, Arg, Call, Caps, CompileError, ContractSpec, DeviceError, DeviceInfo, FLASH_VARS,
    FlashSpec, HostOwner, Part, PartWork, Prologue, Traffic, Watch,
};
use zyx_core::ir::{Kernel, Verified};
use zyx_gemm::memory::{Block, OutOfMemory, View};
use zyx_gemm::pool::Pool;

/// The embedded CPU backend: always there, nothing to install.
///
/// ```
/// use zyx_backend_cpu::Cpu;
/// use zyx_core::{Runtime, Tensor};
/// let runtime = Runtime::default();
/// runtime.register(Cpu::default());
/// let device = runtime.device("cpu")?;
/// let x = Tensor::new([1f32, 2.0, 3.0], &device)?;
/// assert_eq!((x * 2.0).to_vec::<f32>()?, [2.0, 4.0, 6.0]);
/// # Ok::<(), zyx_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cpu {
    /// Instruction set and threads; the best there is unless set otherwise.
    pub config: Config,
}

impl hal::Backend for Cpu {
    const NAME: &'static str = "cpu";
    type Device = CpuDevice;

    fn devices(&self) -> Vec<DeviceInfo> {
        vec![self.config.info()]
    }

    fn open(&self, ordinal: usize) -> Result<CpuDevice, DeviceError> {
        if ordinal > 0 {
            return Err(DeviceError::Driver {
                context: "open".into(),
                reason: format!("there is no cpu:{ordinal}, only cpu:0"),
            });
        }
        // Where executable memory is refused everything else still works.
        let exec = self.config.jit_isa().and_then(|isa| Some((isa, ExecMemory::new().ok()?)));
        let caps = self.config.caps(exec.as_ref().map(|e| e.0));
        let pool = Arc::new(Pool::new(Some(caps.threads)));
        let (info, config, turn) = (self.config.info(), self.config.clone(), Mutex::default());
        Ok(CpuDevice { info, caps, pool, exec, config, turn, within: Mutex::default() })
    }
}

/// The device of [`Cpu`].
#[derive(Debug)]
pub struct CpuDevice {
    info: DeviceInfo,
    caps: Caps,
    pool: Arc<Pool>,
    exec: Option<(jit::Isa, ExecMemory)>,
    config: Config,
    /// Held by the command under way.
    turn: Mutex<()>,
    /// The kernels within library calls: a call alone has the same as one that shares its launch.
    within: Mutex<FxHashMap<Kernel, Weak<Runnable>>>,
}

/// A compiled kernel or a contraction.
pub struct Program {
    inner: Box<dyn Body>,
    /// Whether a kernel had to be compiled.
    compiled: bool,
}

/// A dynamic [`Inner`], so that code which drops one is not copied to each crate that holds programs.
trait Body: Send + Sync {
    fn inner(&self) -> &Inner;
}

impl Body for Inner {
    fn inner(&self) -> &Inner {
        self
    }
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "one per compiled program, in a box of its own")]
enum Inner {
    Kernel(Runnable),
    Contraction(Contraction),
    Flash(flash::FlashAttention),
    Fused(Vec<horizontal_fusion::Part>),
}

impl Inner {
    /// Whether a launch may write to this buffer.
    fn writes(&self, slot: usize) -> bool {
        match self {
            Inner::Kernel(kernel) => kernel.writes(slot),
            Inner::Contraction(contraction) => contraction.writes(slot),
            Inner::Flash(_) => true,
            Inner::Fused(parts) => parts.iter().any(|part| part.writes(slot)),
        }
    }
}

/// A queue that is always empty: commands run when they are given.
#[derive(Debug)]
pub struct Stream;

/// A point in time that has always passed.
#[derive(Clone, Copy, Debug)]
pub struct Event;

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

impl Program {
    /// Bytes of memory, roughly.
    fn bytes(&self) -> usize {
        let own = match self.inner.inner() {
            // Its kernels are others', too.
            _ if !self.compiled => library::PLAN,
            Inner::Kernel(kernel) => kernel.bytes(),
            Inner::Contraction(contraction) => contraction.bytes(),
            Inner::Flash(flash) => flash.bytes(),
            Inner::Fused(parts) => parts.iter().map(horizontal_fusion::Part::bytes).sum(),
        };
        size_of::<Program>() + size_of::<Inner>() + own
    }
}

impl CpuDevice {
    /// The turn of a command that uses these blocks, all of this device.
    fn turn<'a>(
        &self,
        context: &str,
        blocks: impl IntoIterator<Item = &'a Block>,
    ) -> Result<MutexGuard<'_, ()>, DeviceError> {
        match blocks.into_iter().all(|block| block.home() == self.home()) {
            true => Ok(hal::lock(&self.turn)),
            false => Err(run::driver(context, "the memory is another device's".to_owned())),
        }
    }

    /// What tells the memory of this device from that of others.
    fn home(&self) -> usize {
        Arc::as_ptr(&self.pool).addr()
    }

    fn out_of_memory(&self, error: &OutOfMemory, requested: usize) -> DeviceError {
        log::debug!(target: "zyx::cpu", "{error}");
        DeviceError::OutOfMemory {
            device: self.info.spec.clone(),
            requested,
            in_use: 0,
            live: Vec::new(),
        }
    }

    /// How a kernel runs: as machine code if possible, else block by block.
    fn runnable(&self, kernel: &Verified) -> Result<Runnable, CompileError> {
        if let Some((isa, memory)) = &self.exec {
            match jit::compile(kernel, *isa, memory) {
                Ok(code) => return Ok(Runnable::compiled(kernel, Code::Machine(code))),
                Err(error) => {
                    log::warn!(target: "zyx::cpu", "{} runs in blocks: {error}", kernel.name());
                }
            }
        }
        match blocks::compile(kernel) {
            Ok(program) => return Ok(Runnable::compiled(kernel, Code::Blocks(program))),
            Err(error) => {
                log::warn!(target: "zyx::cpu", "{} is interpreted: {error}", kernel.name());
            }
        }
        if kernel.members().is_some() {
            let log = "the interpreter has to know how long buffers are".to_owned();
            return Err(CompileError { kernel: kernel.name().to_owned(), log });
        }
        Runnable::interpreted(&Verified::new(&blocks::expanded(kernel, &self.caps))?)
    }
}

impl CpuDevice {
    fn contraction(
        &self,
        spec: &ContractSpec,
        prologue: Option<&Prologue>,
        epilogue: Option<&Kernel>,
        compiled: &AtomicBool,
    ) -> Option<Contraction> {
        let prologue = match prologue {
            None => None,
            Some(Prologue { operand, kernel }) => {
                let buffers = kernel.params().len().checked_sub(1)?;
                let scalars = kernel.vars().len().checked_sub(library::PROLOGUE_VARS)?;
                let kernel = self.prepared(kernel, compiled)?;
                Some(library::Prologue { operand: *operand, kernel, buffers, scalars })
            }
        };
        let epilogue = match epilogue {
            None => None,
            Some(kernel) => Some(self.prepared(kernel, compiled)?),
        };
        let computed = prologue.as_ref().map(|prologue| prologue.operand);
        let options = self.options_within(computed, epilogue.is_some());
        Contraction::new(spec, &options, prologue, epilogue)
    }

    /// Options of a contraction that has an operand computed, or an epilogue.
    fn options_within(&self, computed: Option<usize>, epilogue: bool) -> zyx_gemm::Options {
        zyx_gemm::Options { epilogue, computed, ..self.contract_options() }
    }

    fn contract_options(&self) -> zyx_gemm::Options {
        zyx_gemm::Options {
            isa: self.config.contract_isa(),
            threads: Some(self.caps.threads),
            ..zyx_gemm::Options::default()
        }
    }

    /// A kernel as it came from lowering, made ready to run.
    fn prepared(&self, kernel: &Kernel, compiled: &AtomicBool) -> Option<Arc<Runnable>> {
        if let Some(known) = hal::lock(&self.within).get(kernel).and_then(Weak::upgrade) {
            return Some(known);
        }
        let new = Arc::new(self.runnable(&library::prepare(kernel, &self.caps)?).ok()?);
        compiled.store(true, Relaxed);
        let mut within = hal::lock(&self.within);
        if within.len() == within.capacity() {
            within.retain(|_, known| known.strong_count() > 0);
        }
        within.insert(kernel.clone(), Arc::downgrade(&new));
        Some(new)
    }

    fn flash(
        &self,
        spec: &FlashSpec,
        kernels: [&Kernel; 2],
        compiled: &AtomicBool,
    ) -> Option<flash::FlashAttention> {
        let given = spec.buffers();
        let own = |kernel: &Kernel| {
            let own = [kernel.params().len() - given, kernel.vars().len() - FLASH_VARS];
            Some((self.prepared(kernel, compiled)?, own))
        };
        let [update, finish] = kernels;
        flash::FlashAttention::new(spec, &self.contract_options(), [own(update)?, own(finish)?])
    }

    fn part(&self, part: &Part, compiled: &AtomicBool) -> Option<horizontal_fusion::Part> {
        let work = match &part.work {
            PartWork::Kernel(kernel) => {
                horizontal_fusion::Work::Kernel(self.prepared(kernel, compiled)?)
            }
            PartWork::Call(Call::Contract { spec, prologue, epilogue, .. }) => {
                let (prologue, epilogue) = (prologue.as_ref(), epilogue.as_deref());
                let contraction = self.contraction(spec, prologue, epilogue, compiled)?;
                horizontal_fusion::Work::Contraction(contraction)
            }
            PartWork::Call(_) => return None,
        };
        let (buffers, scalars) = (part.buffers.clone(), part.scalars.clone());
        Some(horizontal_fusion::Part { work, buffers, scalars })
    }
}

impl hal::Device for CpuDevice {
    type Buffer = Block;
    type Program = Program;
    type Stream = Stream;
    type Event = Event;

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn traffic(&self) -> Traffic {
        Traffic { submits: self.pool.jobs(), barriers: 0 }
    }

    fn source(kernel: &Verified, _caps: &Caps) -> Result<String, CompileError> {
        Ok(kernel.to_string())
    }

    fn compile(&self, kernel: &Verified) -> Result<Program, CompileError> {
        Ok(Program { inner: Box::new(Inner::Kernel(self.runnable(kernel)?)), compiled: true })
    }

    fn was_compiled(&self, program: &Program) -> bool {
        program.compiled
    }

    fn program_bytes(&self, program: &Program) -> usize {
        program.bytes()
    }

    fn alloc(&self, bytes: usize) -> Result<Block, DeviceError> {
        // Zeros cost nothing here: whatever is used again and again is kept by the core's pool.
        let block = Block::zeroed(bytes).map_err(|error| self.out_of_memory(&error, bytes))?;
        Ok(block.of_home(self.home()))
    }

    fn stream(&self) -> Result<Stream, DeviceError> {
        Ok(Stream)
    }

    fn write(
        &self,
        _: &mut Stream,
        dst: &Block,
        offset: usize,
        src: &[u8],
    ) -> Result<(), DeviceError> {
        let _turn = self.turn("copy", [dst])?;
        run::write(dst, offset, src)
    }

    fn read(
        &self,
        _: &mut Stream,
        src: &Block,
        offset: usize,
        dst: &mut [u8],
    ) -> Result<(), DeviceError> {
        let _turn = self.turn("copy", [src])?;
        run::read(src, offset, dst)
    }

    fn copy(
        &self,
        _: &mut Stream,
        src: (&Block, usize),
        dst: (&Block, usize),
        bytes: usize,
    ) -> Result<(), DeviceError> {
        let _turn = self.turn("copy", [src.0, dst.0])?;
        run::copy(src, dst, bytes)
    }

    fn launch(
        &self,
        _: &mut Stream,
        program: &Program,
        args: &[Arg<'_, Block>],
    ) -> Result<(), DeviceError> {
        let blocks = args.iter().filter_map(|arg| match arg {
            Arg::Buffer(block, _) => Some(*block),
            Arg::Scalar(_) => None,
        });
        let _turn = self.turn("launch", blocks)?;
        for (slot, arg) in args.iter().enumerate() {
            if let Arg::Buffer(block, _) = arg
                && program.inner.inner().writes(slot)
            {
                block.changes();
            }
        }
        let launched = match program.inner.inner() {
            Inner::Kernel(kernel) => kernel.launch(&self.pool, args),
            Inner::Contraction(contraction) => contraction.launch(&self.pool, args),
            Inner::Flash(flash) => flash.launch(&self.pool, args),
            Inner::Fused(parts) => horizontal_fusion::launch(parts, &self.pool, args),
        };
        // Then the results are partly written.
        if Watch::here().is_stopped() { Err(DeviceError::Interrupted) } else { launched }
    }

    fn record(&self, _: &mut Stream) -> Result<Event, DeviceError> {
        Ok(Event)
    }

    fn wait(&self, _: &mut Stream, _: &Event) -> Result<(), DeviceError> {
        Ok(())
    }

    fn synchronize(&self, _: &Event) -> Result<(), DeviceError> {
        Ok(())
    }

    fn adopt(&self, owner: &HostOwner) -> Option<Block> {
        Some(Block::lent(owner)?.of_home(self.home()))
    }

    fn share(&self, buffer: &Block) {
        buffer.share();
    }

    fn idle(&self, buffer: &Block) {
        buffer.changes();
    }

    fn host_view(&self, buffer: &Arc<Block>, bytes: usize) -> Option<HostOwner> {
        let _turn = self.turn("view", [&**buffer]).ok()?;
        // SAFETY: blocks are zero at first; no command is under way, since it is this thread's turn,
        // and later ones ask the block before they write to it.
        let view = unsafe { View::new(buffer, bytes) }?;
        Some(Arc::new(view))
    }

    /// Contractions have kernels within that take their time to compile, and may share a launch instead.
    fn offers(&self, call: &Call) -> Option<bool> {
        let Call::Contract { spec, prologue, epilogue, .. } = call else { return None };
        let computed = prologue.as_ref().map(|prologue| prologue.operand);
        let options = self.options_within(computed, epilogue.is_some());
        Some(Contraction::new(spec, &options, None, None).is_some())
    }

    fn library(&self, call: &Call) -> Option<Program> {
        let compiled = &AtomicBool::new(false);
        let inner = match call {
            Call::Contract { spec, prologue, epilogue, .. } => {
                let (prologue, epilogue) = (prologue.as_ref(), epilogue.as_deref());
                Inner::Contraction(self.contraction(spec, prologue, epilogue, compiled)?)
            }
            Call::Flash { spec, update, finish, .. } => {
                Inner::Flash(self.flash(spec, [update, finish], compiled)?)
            }
            Call::Fused { parts, .. } => {
                let made =
                    hal::on_threads(parts.len(), |_| 50_000, |i| self.part(&parts[i], compiled));
                Inner::Fused(made.into_iter().collect::<Option<_>>()?)
            }
            _ => return None,
        };
        Some(Program { inner: Box::new(inner), compiled: compiled.load(Relaxed) })
    }
}
