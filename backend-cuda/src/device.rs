//! The device contract on CUDA.
//!
//! * A buffer argument is the address of its first element.
//! * Programs are machine code, compiled by NVRTC for the device's exact architecture and kept in
//!   memory by kernel and on disk by source, architecture and compiler.
//! * A launch of more groups than the device takes is cut to its limit; loops over groups stride.
//! * Times between events are the device's own.

use crate::caps::{self, Facts};
use crate::dialect::{CUDA, complete};
use crate::driver::{Code, Context, DeviceId, Event, Function, Grid, Module, Stream};
use crate::memory::{CudaBuffer, Memory, Staging};
use crate::nvrtc::{self, Nvrtc, Target};
use rustc_hash::FxHashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use zyx_core::codegen::{Entry, Unit, clike};
use zyx_core::hal::{Arg, Caps, CompileError, Device, DeviceError, DeviceInfo, DiskCache};
use zyx_core::ir::Kernel;

/// An open CUDA device.
#[derive(Debug)]
pub struct CudaDevice {
    context: Arc<Context>,
    memory: Arc<Memory>,
    info: DeviceInfo,
    caps: Caps,
    nvrtc: &'static Nvrtc,
    target: Target,
    cache: DiskCache,
    programs: Mutex<FxHashMap<Kernel, CudaProgram>>,
}

/// A compiled kernel.
#[derive(Clone, Debug)]
pub struct CudaProgram(Arc<Compiled>);

#[derive(Debug)]
pub(crate) struct Compiled {
    kernel: Kernel,
    entries: Vec<(Entry, Function)>,
    /// Keeps the functions loaded.
    _module: Module,
}

/// An ordered queue of commands.
#[derive(Debug)]
pub struct CudaStream {
    stream: Arc<Stream>,
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

/// The data in a mutex: every critical section here leaves it whole, so a panic elsewhere while
/// it was held changes nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The launches of a kernel with these capabilities.
pub(crate) fn translate(kernel: &Kernel, caps: &Caps) -> Result<Unit, CompileError> {
    let unit = clike::emit(kernel, caps, &CUDA)?;
    Ok(Unit { source: complete(&unit.source), ..unit })
}

impl CudaDevice {
    pub(crate) fn new(ordinal: usize, id: DeviceId, facts: &Facts) -> Result<CudaDevice, String> {
        let nvrtc = Nvrtc::get()?;
        let target = nvrtc.target(facts.capability)?;
        let text = |code: Code| code.to_string();
        let context = Context::of(id).map_err(text)?;
        let identity = format!("NVRTC {:?} {target:?} {:?}", nvrtc.version(), nvrtc::OPTIONS);
        Ok(CudaDevice {
            memory: Memory::new(&context, facts.pool, facts.memory).map_err(text)?,
            context,
            info: crate::info(ordinal, facts),
            caps: caps::caps(facts),
            nvrtc,
            target,
            cache: DiskCache::new("cuda", &identity),
            programs: Mutex::default(),
        })
    }

    fn error(&self, context: &str, code: Code) -> DeviceError {
        if code.is_lost() {
            return DeviceError::Lost { device: self.info.spec.clone(), reason: code.to_string() };
        }
        if code.is_memory() {
            return self.out_of_memory(0);
        }
        let context = format!("{context} on {}", self.info.spec);
        DeviceError::Driver { context, reason: code.to_string() }
    }

    fn out_of_memory(&self, requested: usize) -> DeviceError {
        let in_use = self.memory.in_use();
        DeviceError::OutOfMemory { device: self.info.spec.clone(), requested, in_use }
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

    fn module(&self, name: &str, source: &str) -> Result<Module, CompileError> {
        let cached = self.cache.load(source);
        if let Some(module) = cached.and_then(|image| Module::new(&self.context, &image).ok()) {
            return Ok(module);
        }
        let image = self.nvrtc.compile(name, source, &self.target)?;
        let module = Module::new(&self.context, &image).map_err(|code| CompileError {
            kernel: name.to_owned(),
            log: format!("{code}\n{source}"),
        })?;
        self.cache.store(source, &image);
        Ok(module)
    }

    fn build(&self, kernel: &Kernel) -> Result<Compiled, CompileError> {
        let error = |log: String| CompileError { kernel: kernel.name().to_owned(), log };
        let unit = translate(kernel, &self.caps)?;
        let module = self.module(kernel.name(), &unit.source)?;
        let entries = unit.entries.into_iter().map(|entry| {
            let function = module.function(&entry.name);
            function.map(|f| (entry, f)).map_err(|code| error(code.to_string()))
        });
        let entries = entries.collect::<Result<_, _>>()?;
        Ok(Compiled { kernel: kernel.clone(), entries, _module: module })
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
    /// The launches for these arguments: functions, grids.
    pub(crate) fn launches(
        &self,
        words: &[u64],
        caps: &Caps,
    ) -> impl Iterator<Item = (Function, Grid)> {
        let vars = &words[self.kernel.params().len()..];
        self.entries.iter().filter_map(move |(entry, function)| {
            let (groups, local) = entry.grid(&self.kernel, vars, caps.max_groups)?;
            let narrow = |axes: [u64; 3]| axes.map(|n| n as u32);
            Some((*function, Grid { groups: narrow(groups), local: narrow(local) }))
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

    fn source(kernel: &Kernel, caps: &Caps) -> Result<String, CompileError> {
        translate(kernel, caps).map(|unit| unit.source)
    }

    fn compile(&self, kernel: &Kernel) -> Result<CudaProgram, CompileError> {
        if let Some(program) = lock(&self.programs).get(kernel) {
            return Ok(program.clone());
        }
        let program = CudaProgram(Arc::new(self.build(kernel)?));
        lock(&self.programs).insert(kernel.clone(), program.clone());
        Ok(program)
    }

    fn alloc(&self, bytes: usize) -> Result<CudaBuffer, DeviceError> {
        let buffer = self.memory.alloc(bytes).map_err(|code| self.error("alloc", code))?;
        buffer.ok_or_else(|| self.out_of_memory(bytes))
    }

    fn stream(&self) -> Result<CudaStream, DeviceError> {
        let stream = self.memory.new_stream().map_err(|code| self.error("stream", code))?;
        Ok(CudaStream { stream, staging: Staging::default(), memory: Arc::clone(&self.memory) })
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
        let compiled = &*program.0;
        let mut words = words(args);
        self.context.bind().map_err(|code| self.error("launch", code))?;
        for (function, grid) in compiled.launches(&words.clone(), &self.caps) {
            let mut params: Vec<*mut c_void> =
                words.iter_mut().map(|word| std::ptr::from_mut(word).cast()).collect();
            // SAFETY: one word for each parameter, of which the driver reads as many bytes as
            // the parameter has. The kernel stays inside of its buffers, which the verifier of
            // kernels guarantees, and the core keeps them until the stream is done with them.
            unsafe { stream.stream.launch(function, grid, &mut params) }
                .map_err(|code| self.error(compiled.kernel.name(), code))?;
        }
        Ok(())
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

    fn elapsed(&self, from: &CudaEvent, to: &CudaEvent) -> Option<Duration> {
        let milliseconds = to.0.since(&from.0)?;
        Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).ok()
    }
}
