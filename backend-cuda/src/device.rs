//! The device contract on CUDA.
//!
//! * A buffer argument is the address of its first element.
//! * Programs are machine code, made by the driver's assembler or NVRTC and kept in memory by kernel and on
//!   disk by source, architecture, compiler and driver.
//! * A launch of more groups than the device takes is cut to its limit; loops over groups stride.
//! * Times between events are the device's own.
//! * Contractions that are matrix products go to cuBLASLt, convolutions and attention to cuDNN, without
//!   epilogues.
//! * Lists of launches that repeat become graphs; see `replay`.

use crate::blas::{Blas, Products};
use crate::caps::{self, Facts};
use crate::compiler::{Compiler, cuda_c};
use crate::dialect::waits;
use crate::dnn::{Attention, Convolution, Dnn};
use crate::driver::{
    self, Code, Context, DeviceId, Event, Function, Grid, Module, Stream, assemble,
};
use crate::gemm::{is_small, products};
use crate::memory::{CudaBuffer, Memory, Staging};
use crate::nvrtc::{Nvrtc, RAW_OPTIONS};
use crate::ptx;
use crate::raw;
use crate::replay::{Environment, Recorded, pointers};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use zyx_core::DTypeSet;
use zyx_core::codegen::{Entry, threads};
use zyx_core::hal::{
    Arg, Call, Caps, Command, CompileError, Device, DeviceError, DeviceInfo, DiskCache, Extent,
    Language, RawKernel, Recording, Signature, Traffic,
};
use zyx_core::ir::{Kernel, Verified};

/// An open CUDA device.
#[derive(Debug)]
pub struct CudaDevice {
    context: Arc<Context>,
    memory: Arc<Memory>,
    info: DeviceInfo,
    caps: Caps,
    /// Compute capability, as in (9, 0).
    capability: (u32, u32),
    compiler: Compiler,
    cache: DiskCache,
    /// Whether kernels wait in their own code for those before them in a graph.
    overlaps: bool,
    /// Loaded when the first contraction is met: it is large.
    blas: OnceLock<Option<Arc<Blas>>>,
    /// Loaded when the first convolution or attention is met, likewise.
    dnn: OnceLock<Option<Arc<Dnn>>>,
}

/// A compiled kernel, or what a library computes.
#[derive(Clone, Debug)]
pub struct CudaProgram(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) enum Inner {
    Kernel(Compiled),
    Routine(Routine, Signature),
}

/// What a library computes.
#[derive(Debug)]
pub(crate) enum Routine {
    Products(Products),
    Convolution(Convolution),
    Attention(Attention),
}

impl Routine {
    /// Bytes of device memory needed while it runs.
    pub(crate) fn workspace(&self) -> usize {
        match self {
            Routine::Products(products) => products.workspace(),
            Routine::Convolution(convolution) => convolution.workspace(),
            Routine::Attention(attention) => attention.workspace(),
        }
    }

    /// Queues it on its arguments.
    ///
    /// # Safety
    /// The addresses are as many and of memory as long as its signature says, and of [`workspace`] bytes,
    /// that stays until the stream is done and that nothing else uses meanwhile.
    ///
    /// [`workspace`]: Self::workspace
    pub(crate) unsafe fn queue(
        &self,
        stream: &Stream,
        arguments: &[u64],
        workspace: u64,
    ) -> Result<(), String> {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Routine::Products(it) => it.queue(stream, arguments, workspace),
                Routine::Convolution(it) => it.queue(stream, arguments, workspace),
                Routine::Attention(it) => it.queue(stream, arguments, workspace),
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Compiled {
    /// The kernel, which declares the arguments; of a raw kernel its outline.
    kernel: Kernel,
    signature: Signature,
    /// Launches, and whether they start by waiting for those before them.
    entries: Vec<(Entry, Function, bool)>,
    /// Whether its code was on disk.
    loaded: bool,
    /// Keeps the functions loaded.
    _module: Module,
}

/// An ordered queue of commands.
#[derive(Debug)]
pub struct CudaStream {
    stream: Arc<Stream>,
    /// Where calls of libraries are captured; made when the first list repeats.
    capture: Option<Stream>,
    staging: Staging,
    memory: Arc<Memory>,
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        self.memory.leave(&self.stream);
    }
}

/// A point in a stream.
#[derive(Debug)]
pub struct CudaEvent(Event);

impl CudaDevice {
    pub(crate) fn new(ordinal: usize, id: DeviceId, facts: &Facts) -> Result<CudaDevice, String> {
        let compiler = Compiler::of(facts)?;
        let mut caps = caps::caps(facts);
        if !compiler.has_wide() {
            caps.wide_mma = DTypeSet::NONE;
        }
        if driver::version()? < ptx::MANY_PARAMETERS || facts.capability < (7, 0) {
            // Half of the parameters may be scalars.
            caps.max_buffers /= 2;
        }
        let text = |code: Code| code.to_string();
        let context = Context::of(id).map_err(text)?;
        let identity = format!("driver {}; {}", driver::version()?, compiler.identity());
        let overlaps = facts.capability >= (9, 0) && compiler.has_waits() && driver::has_overlap();
        Ok(CudaDevice {
            memory: Memory::new(&context, facts.pool, id.memory()).map_err(text)?,
            context,
            info: crate::info(ordinal, id),
            caps,
            capability: facts.capability,
            compiler,
            cache: DiskCache::new("cuda", &identity),
            overlaps,
            blas: OnceLock::new(),
            dnn: OnceLock::new(),
        })
    }

    /// A kernel as PTX for devices of a compute capability, as in (9, 0).
    ///
    /// # Errors
    /// When the kernel needs what the device lacks, or there are no such devices.
    pub fn assembly(
        kernel: &Verified,
        caps: &Caps,
        capability: (u32, u32),
    ) -> Result<String, CompileError> {
        let none = || CompileError::new(kernel, format!("no target for {capability:?}"));
        let target = ptx::Target::of(capability, i32::MAX).ok_or_else(none)?;
        ptx::translate(kernel, caps, target).map(|unit| unit.source)
    }

    /// A kernel as CUDA C++, which NVRTC compiles.
    ///
    /// # Errors
    /// When the kernel needs what the device or the language lacks.
    pub fn cuda_c(kernel: &Verified, caps: &Caps) -> Result<String, CompileError> {
        cuda_c(kernel, caps).map(|unit| unit.source)
    }

    fn blas(&self) -> Option<&Arc<Blas>> {
        self.blas.get_or_init(|| Blas::load(&self.context)).as_ref()
    }

    /// Makes the context current.
    fn dnn(&self) -> Option<&Arc<Dnn>> {
        // It may look for the other library.
        self.blas();
        let dnn = self.dnn.get_or_init(|| Dnn::load(&self.context)).as_ref()?;
        self.context.bind().ok()?;
        Some(dnn)
    }

    fn lost(&self, reason: String) -> DeviceError {
        DeviceError::Lost { device: self.info.spec.clone(), reason }
    }

    fn error(&self, context: &str, code: Code) -> DeviceError {
        if code == Code::STOPPED {
            return DeviceError::Interrupted;
        }
        if code.is_lost() {
            return self.lost(code.to_string());
        }
        if code.is_memory() {
            return self.out_of_memory(0);
        }
        let context = format!("{context} on {}", self.info.spec);
        DeviceError::Driver { context, reason: code.to_string() }
    }

    fn out_of_memory(&self, requested: usize) -> DeviceError {
        let in_use = self.memory.in_use();
        DeviceError::out_of_memory(&self.info.spec, requested, in_use)
    }

    /// A range of a buffer a transfer is about to touch; the driver would only notice what lies
    /// outside of every buffer.
    fn range(
        &self,
        context: &str,
        (buffer, offset): (&CudaBuffer, usize),
        bytes: usize,
    ) -> Result<u64, DeviceError> {
        if !buffer.contains(offset, bytes) {
            let reason = format!("{bytes} bytes at {offset} are not inside of the buffer");
            let context = format!("{context} on {}", self.info.spec);
            return Err(DeviceError::Driver { context, reason });
        }
        Ok(buffer.at(offset))
    }

    /// The code of a source, and whether it was on disk.
    fn module(&self, name: &str, source: &str) -> Result<(Module, bool), CompileError> {
        let compile = || self.compiler.compile(&self.context, name, source);
        self.module_of(name, source, source, compile)
    }

    /// The code of a source that `key` stands for on disk, and whether it was there.
    fn module_of(
        &self,
        name: &str,
        source: &str,
        key: &str,
        compile: impl FnOnce() -> Result<Vec<u8>, CompileError>,
    ) -> Result<(Module, bool), CompileError> {
        let cached = self.cache.load(key);
        if let Some(module) = cached.and_then(|image| Module::new(&self.context, &image).ok()) {
            return Ok((module, true));
        }
        let start = Instant::now();
        let image = compile()?;
        let (ms, bytes) = (start.elapsed().as_millis(), source.len());
        log::debug!(target: "zyx::cuda", "compiling took {ms} ms for {bytes} bytes of {name}");
        let module = Module::new(&self.context, &image).map_err(|code| CompileError {
            kernel: name.to_owned(),
            log: format!("{code}\n{source}"),
        })?;
        self.cache.store(key, &image);
        Ok((module, false))
    }

    /// A raw kernel whose parameters are the declared ones.
    fn build_raw(&self, kernel: &RawKernel) -> Result<Compiled, CompileError> {
        let source = kernel.text()?;
        // The key on disk has the declaration, so equal keys have passed the same checks.
        let declared = format!("{:?} {:?}", kernel.params, kernel.vars);
        let (module, loaded) = match kernel.language {
            Language::CudaC => {
                let nvrtc = Nvrtc::get().map_err(|reason| kernel.error(reason))?;
                let target = nvrtc.target(self.capability).map_err(|e| kernel.error(e))?;
                let version = nvrtc.version();
                let key = format!(
                    "raw NVRTC {version:?} {target:?} {RAW_OPTIONS:?} {declared} {}\n{source}",
                    kernel.name
                );
                let compile = || nvrtc.compile_raw(kernel, &target);
                self.module_of(&kernel.name, source, &key, compile)?
            }
            _ => {
                raw::check_entry(kernel, source)?;
                let compile = || assemble(&self.context, source).map_err(|log| kernel.error(log));
                self.module_of(&kernel.name, source, &format!("raw\n{source}"), compile)?
            }
        };
        let (outline, entry) = kernel.outline();
        let function = module.function(&entry.name, entry.shared);
        let function = function.map_err(|code| kernel.error(code))?;
        let signature = Signature::of_raw(kernel, &self.caps);
        // The code does not wait for launches before it.
        let entries = vec![(entry, function, false)];
        Ok(Compiled { kernel: outline, signature, entries, loaded, _module: module })
    }

    fn launch_kernel(
        &self,
        stream: &Stream,
        compiled: &Compiled,
        words: &mut [u64],
    ) -> Result<(), DeviceError> {
        let launches: Vec<_> = compiled.launches(words, &self.caps).collect();
        let mut params = pointers(words);
        for (i, (function, grid, _)) in launches.into_iter().enumerate() {
            // SAFETY: one word for each parameter, of which the driver reads as many bytes as
            // the parameter has. The kernel is verified, or its author promised (`RawKernel::new`) that
            // it stays inside of buffers that fit its signature, which was checked. The core keeps
            // them until the stream is done with them.
            unsafe { stream.launch(function, grid, &mut params) }.map_err(|code| match i {
                0 => self.error(compiled.kernel.name(), code),
                // An argument that is both read and written would be changed twice.
                _ => self.lost(format!("half of {} ran, then {code}", compiled.kernel.name())),
            })?;
        }
        Ok(())
    }

    fn launch_routine(
        &self,
        stream: &Stream,
        routine: &Routine,
        words: &[u64],
    ) -> Result<(), DeviceError> {
        let failed = |code: Code| self.error("library call", code);
        let bytes = routine.workspace();
        let workspace = if bytes > 0 { stream.alloc(bytes).map_err(failed)? } else { 0 };
        // SAFETY: the arguments are as long as the signature says, which was checked, and the workspace is this launch's own.
        let queued = unsafe { routine.queue(stream, words, workspace) };
        if workspace != 0 && stream.free(workspace).is_err() {
            // The call is queued whatever becomes of the workspace.
            let _ = stream.free(workspace);
        }
        queued.map_err(|reason| {
            let context = format!("library call on {}", self.info.spec);
            DeviceError::Driver { context, reason }
        })
    }

    fn build(&self, kernel: &Verified) -> Result<Compiled, CompileError> {
        let error = |log: String| CompileError::new(kernel, log);
        let unit = self.compiler.translate(kernel, &self.caps)?;
        let (module, loaded) = self.module(kernel.name(), &unit.source)?;
        let entries = unit.entries.into_iter().map(|entry| {
            let function = module.function(&entry.name, entry.shared);
            let waits = waits(threads(entry.groups, entry.local));
            function.map(|f| (entry, f, waits)).map_err(|code| error(code.to_string()))
        });
        let entries = entries.collect::<Result<_, _>>()?;
        let (signature, kernel) = (Signature::of(kernel), (**kernel).clone());
        Ok(Compiled { kernel, signature, entries, loaded, _module: module })
    }
}

impl CudaProgram {
    /// Checks the arguments of a launch.
    fn check(&self, args: &[Arg<'_, CudaBuffer>]) -> Result<(), DeviceError> {
        let (Inner::Kernel(Compiled { signature, .. }) | Inner::Routine(_, signature)) = &*self.0;
        signature.check(args, |buffer| Extent { bytes: buffer.bytes(), writable: true })
    }
}

/// What kernels take: addresses, then the bits of scalars.
pub(crate) fn words(args: &[Arg<'_, CudaBuffer>]) -> Vec<u64> {
    let word = |arg: &Arg<'_, CudaBuffer>| match *arg {
        Arg::Buffer(buffer, offset) => buffer.at(offset),
        Arg::Scalar(bits) => bits,
    };
    args.iter().map(word).collect()
}

impl Compiled {
    /// The launches for these arguments: functions, grids, whether they start by waiting.
    pub(crate) fn launches(
        &self,
        words: &[u64],
        caps: &Caps,
    ) -> impl Iterator<Item = (Function, Grid, bool)> {
        let vars = &words[self.kernel.params().len()..];
        self.entries.iter().filter_map(move |(entry, function, waits)| {
            let groups = entry.grid(&self.kernel, vars, caps.max_groups)?;
            let narrow = |axes: [u64; 3]| axes.map(|n| n as u32);
            Some((*function, Grid { groups: narrow(groups), local: narrow(entry.local) }, *waits))
        })
    }
}

impl Device for CudaDevice {
    type Buffer = CudaBuffer;
    type Program = CudaProgram;
    type Stream = CudaStream;
    type Event = CudaEvent;

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn traffic(&self) -> Traffic {
        self.memory.traffic.get()
    }

    fn driver(&self) -> String {
        self.cache.identity().to_owned()
    }

    fn source(kernel: &Verified, caps: &Caps) -> Result<String, CompileError> {
        // A generation is told by its instructions.
        let capability = if caps.wide_mma == DTypeSet::NONE { (8, 0) } else { (9, 0) };
        CudaDevice::assembly(kernel, caps, capability)
    }

    fn compile(&self, kernel: &Verified) -> Result<CudaProgram, CompileError> {
        Ok(CudaProgram(Arc::new(Inner::Kernel(self.build(kernel)?))))
    }

    fn raw_languages(&self) -> &'static [Language] {
        raw::LANGUAGES
    }

    fn compile_raw(&self, kernel: &RawKernel) -> Result<CudaProgram, CompileError> {
        if !raw::LANGUAGES.contains(&kernel.language) {
            return Err(kernel.unknown_language(&self.info.spec, raw::LANGUAGES));
        }
        kernel.check(&self.caps)?;
        raw::check_threads(kernel)?;
        Ok(CudaProgram(Arc::new(Inner::Kernel(self.build_raw(kernel)?))))
    }

    fn was_compiled(&self, program: &CudaProgram) -> bool {
        matches!(&*program.0, Inner::Kernel(Compiled { loaded: false, .. }))
    }

    fn alloc(&self, bytes: usize) -> Result<CudaBuffer, DeviceError> {
        let buffer = self.memory.alloc(bytes).map_err(|code| self.error("alloc", code))?;
        buffer.ok_or_else(|| self.out_of_memory(bytes))
    }

    fn stream(&self) -> Result<CudaStream, DeviceError> {
        let stream = self.memory.new_stream().map_err(|code| self.error("stream", code))?;
        let (staging, memory) = (Staging::default(), Arc::clone(&self.memory));
        Ok(CudaStream { stream, capture: None, staging, memory })
    }

    fn write(
        &self,
        stream: &mut CudaStream,
        dst: &CudaBuffer,
        offset: usize,
        src: &[u8],
    ) -> Result<(), DeviceError> {
        let to = self.range("write", (dst, offset), src.len())?;
        let bound = self.context.bind();
        let written = bound.and_then(|()| stream.staging.write(&stream.stream, to, src));
        written.map_err(|code| self.error("write", code))
    }

    fn read(
        &self,
        stream: &mut CudaStream,
        src: &CudaBuffer,
        offset: usize,
        dst: &mut [u8],
    ) -> Result<(), DeviceError> {
        let from = self.range("read", (src, offset), dst.len())?;
        let bound = self.context.bind();
        let read = bound.and_then(|()| stream.staging.read(&stream.stream, from, dst));
        read.map_err(|code| self.error("read", code))
    }

    fn copy(
        &self,
        stream: &mut CudaStream,
        src: (&CudaBuffer, usize),
        dst: (&CudaBuffer, usize),
        bytes: usize,
    ) -> Result<(), DeviceError> {
        if bytes == 0 {
            return Ok(());
        }
        let (from, to) = (self.range("copy", src, bytes)?, self.range("copy", dst, bytes)?);
        let bound = self.context.bind();
        let copied = bound.and_then(|()| stream.stream.copy(to, from, bytes));
        copied.map_err(|code| self.error("copy", code))
    }

    fn launch(
        &self,
        stream: &mut CudaStream,
        program: &CudaProgram,
        args: &[Arg<'_, CudaBuffer>],
    ) -> Result<(), DeviceError> {
        program.check(args)?;
        self.context.bind().map_err(|code| self.error("launch", code))?;
        let mut words = words(args);
        match &*program.0 {
            Inner::Kernel(compiled) => self.launch_kernel(&stream.stream, compiled, &mut words),
            Inner::Routine(routine, _) => self.launch_routine(&stream.stream, routine, &words),
        }
    }

    fn replay(
        &self,
        stream: &mut CudaStream,
        recording: &mut Recording,
        commands: &[Command<'_, CudaProgram, CudaBuffer>],
    ) -> Result<(), DeviceError> {
        for command in commands {
            command.program.check(command.args)?;
        }
        // Of a library call a graph takes less of the host than the library does, but each graph keeps its
        // workspace.
        let plain = |only: &Command<'_, CudaProgram, CudaBuffer>| match &*only.program.0 {
            Inner::Kernel(_) => true,
            Inner::Routine(routine, _) => routine.workspace() > 0,
        };
        let plain = matches!(commands, [only] if plain(only));
        if !plain && driver::has_graphs() {
            let ran = self.context.bind().and_then(|()| {
                if stream.capture.is_none() {
                    stream.capture = Some(Stream::new(&self.context, &Arc::default())?);
                }
                let capture = stream.capture.as_ref().unwrap_or(&stream.stream);
                let (memory, caps) = (&self.memory, &self.caps);
                let (stream, overlaps) = (&stream.stream, self.overlaps);
                let env = Environment { stream, capture, memory, caps, overlaps };
                recording.get::<Recorded>().run(env, commands)
            });
            if ran.map_err(|code| self.error("replay", code))? {
                return Ok(());
            }
        }
        commands.iter().try_for_each(|c| self.launch(stream, c.program, c.args))
    }

    fn record(&self, stream: &mut CudaStream) -> Result<CudaEvent, DeviceError> {
        let event = Event::new(&self.context, true);
        let recorded = event.and_then(|event| stream.stream.record(&event).map(|()| event));
        recorded.map(CudaEvent).map_err(|code| self.error("record", code))
    }

    fn wait(&self, stream: &mut CudaStream, event: &CudaEvent) -> Result<(), DeviceError> {
        let bound = self.context.bind();
        bound.and_then(|()| stream.stream.wait(&event.0)).map_err(|code| self.error("wait", code))
    }

    fn synchronize(&self, event: &CudaEvent) -> Result<(), DeviceError> {
        event.0.wait().map_err(|code| self.error("synchronize", code))
    }

    fn library(&self, call: &Call) -> Option<CudaProgram> {
        match call {
            Call::Contract { spec, .. } if is_small(spec) => None,
            _ => self.library_way(call, 0).map(|way| way.1),
        }
    }

    fn library_way(&self, call: &Call, way: usize) -> Option<(String, CudaProgram)> {
        let (routine, what, signature) = match call {
            Call::Contract { spec, prologue: None, epilogue: None, .. } => {
                let (gemm, signature) = (products(spec)?, Signature::of_contraction(spec)?);
                self.context.bind().ok()?;
                let products = Products::new(self.blas()?, &gemm, way)?;
                let what = products.way.clone();
                (Routine::Products(products), what, signature)
            }
            Call::Convolve(spec) => {
                let signature = Signature::of_convolution(spec)?;
                let convolution = Convolution::new(self.dnn()?, spec, way)?;
                let what = convolution.way().to_owned();
                (Routine::Convolution(convolution), what, signature)
            }
            Call::Attend(spec) if way == 0 => {
                let signature = Signature::of_attention(spec)?;
                let attention = Attention::new(self.dnn()?, spec)?;
                (Routine::Attention(attention), String::new(), signature)
            }
            _ => return None,
        };
        // Without the pool there is nothing to take a workspace from in the order of a stream.
        let possible = routine.workspace() == 0 || self.memory.has_pool();
        let program = CudaProgram(Arc::new(Inner::Routine(routine, signature)));
        possible.then_some((what, program))
    }

    fn elapsed(&self, from: &CudaEvent, to: &CudaEvent) -> Option<Duration> {
        let milliseconds = to.0.since(&from.0)?;
        Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).ok()
    }
}
