//! The device contract on OpenCL.
//!
//! * A buffer argument is passed as the memory object and the number of its first element, not as
//!   a sub-buffer: a sub-buffer would have to be made for every launch and be aligned to as much
//!   as 512 bytes, and two that overlap must not both be written.
//! * A stream is one queue. Where the device offers it, the launches of a list wait for the events
//!   of those they depend on and for nothing else; all other commands stand behind a barrier.
//! * Small writes are staged, so that they do not wait for the queue; when [`STAGED`] bytes are
//!   under way, a write waits. Large ones, and large reads of a discrete device, go through pinned
//!   memory.
//! * Where host and device share memory, buffers are looked at and lent in place: mapped when the
//!   host first looks, and until a command writes to them again.
//! * A kernel object's arguments are no thread's own: setting them and launching is one critical
//!   section per kernel.
//! * A launch of more groups than the device takes is cut to its limit; loops over groups stride.

use crate::caps::Facts;
use crate::dialect::dialect;
use crate::driver::{self, Code, Order, View};
use crate::raw;
use crate::staging::{LARGE, Staging};
use opencl3::device::Device as Id;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use zyx_core::DType;
use zyx_core::codegen::{Entry, clike};
use zyx_core::hal::{
    Arg, Caps, Command, CompileError, Device, DeviceError, DeviceInfo, DiskCache, Extent,
    HostOwner, Language, RawKernel, Recording, Signature, Traffic, TrafficCounter, Watch,
    ask_until, lock,
};
use zyx_core::ir::{Access, Kernel, Verified};

/// Most bytes of writes under way on one stream.
const STAGED: usize = 64 << 20;

/// Most kernels compiled as one source.
const JOINED: usize = 64;

/// What every program is built with. Nothing that changes values: see the dialect's table.
const OPTIONS: &str = "-cl-std=CL1.2";

/// Correctly rounded division and square root of `f32`, on devices that offer it.
const EXACT_DIVISION: &str = " -cl-fp32-correctly-rounded-divide-sqrt";

/// An open OpenCL device.
#[derive(Debug)]
pub struct OpenClDevice {
    id: Id,
    context: Arc<driver::Context>,
    info: DeviceInfo,
    caps: Caps,
    max_local_sizes: Vec<usize>,
    /// Bytes beyond which no allocation can succeed. Some drivers defer the allocation itself.
    max_bytes: u64,
    options: String,
    cache: DiskCache,
    /// See [`Facts::lazy`].
    lazy: bool,
    order: Order,
    in_use: Arc<AtomicUsize>,
    traffic: TrafficCounter,
    /// The queue that buffers are mapped on, from the first look on; none if there is no such.
    looks: OnceLock<Option<driver::Queue>>,
}

/// What a CPU's driver is asked for beyond large buffers. It takes them from the system one behind
/// the other, a page for its own notes between them, so buffers of 2^27 bytes lie that and a page
/// apart. A Zen guesses where in its first-level cache a line is from bits 12 to 27 of the address,
/// folded onto themselves, and there both ends cancel: an element of one buffer and the same of the
/// next are taken for one another, and a kernel that reads one and writes the other misses (running
/// sums of 2^25 elements: 13.6 ms, and 10.6 with two pages more).
const APART: usize = 8 << 10;

/// What memory that is lent has to be aligned to.
const ALIGN: usize = 64;

/// Device memory.
#[derive(Debug)]
pub struct OpenClBuffer {
    /// Given back before the memory.
    view: View,
    memory: driver::Memory,
    bytes: usize,
    /// Whether something else owns it.
    lent: bool,
    in_use: Arc<AtomicUsize>,
}

impl OpenClBuffer {
    fn new(memory: driver::Memory, bytes: usize, in_use: &Arc<AtomicUsize>) -> OpenClBuffer {
        in_use.fetch_add(bytes, Ordering::Relaxed);
        let (view, in_use) = (View::default(), Arc::clone(in_use));
        OpenClBuffer { view, memory, bytes, lent: false, in_use }
    }

    /// Before a command writes: whether it may.
    fn may_be_written(&self) -> bool {
        !self.lent && self.view.end()
    }

    /// For a launch, which ends looks at what it writes itself.
    fn extent(&self) -> Extent {
        Extent { bytes: self.bytes, writable: !self.lent }
    }
}

/// The first bytes of a buffer that the host looks at.
struct Bytes {
    buffer: Arc<OpenClBuffer>,
    bytes: usize,
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self.buffer.view.bytes(self.bytes)
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        self.buffer.view.leave();
    }
}

impl Drop for OpenClBuffer {
    fn drop(&mut self) {
        self.in_use.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A compiled kernel.
#[derive(Clone, Debug)]
pub struct OpenClProgram(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    /// The kernel, which declares the arguments; of a raw kernel its outline.
    kernel: Kernel,
    /// The number of scalars that the code receives.
    scalars: usize,
    signature: Signature,
    entries: Vec<(Entry, Mutex<driver::Kernel>)>,
    /// Whether it was on disk.
    loaded: bool,
}

/// A queue of commands.
#[derive(Debug)]
pub struct OpenClStream {
    queue: driver::Queue,
    order: Order,
    /// A queue of its own for launches that are timed, from the first on.
    timed: Option<Box<OpenClStream>>,
    uploads: VecDeque<driver::Upload>,
    staging: Staging,
    /// Bytes of uploads.
    staged: usize,
    /// Why bytes never arrived that a caller counts on.
    lost: Option<Code>,
}

/// A point in a stream.
#[derive(Debug)]
pub struct OpenClEvent(driver::Event);

impl OpenClDevice {
    pub(crate) fn new(
        ordinal: usize,
        id: Id,
        context: Arc<driver::Context>,
        facts: Facts,
    ) -> OpenClDevice {
        let mut options = OPTIONS.to_owned();
        if facts.exact_division {
            options.push_str(EXACT_DIVISION);
        }
        OpenClDevice {
            id,
            context,
            info: crate::info(ordinal, &facts),
            caps: crate::caps::caps(&facts),
            cache: DiskCache::new("opencl", &format!("{}\n{options}", facts.identity)),
            lazy: facts.lazy,
            order: if facts.in_order { Order::Given } else { Order::Any },
            max_local_sizes: facts.max_local_sizes,
            max_bytes: if facts.cpu { u64::MAX } else { facts.memory.max(facts.max_alloc) },
            options,
            in_use: Arc::default(),
            looks: OnceLock::new(),
            traffic: TrafficCounter::default(),
        }
    }

    fn error(&self, context: &str, code: Code) -> DeviceError {
        if code.is_lost() {
            return self.lost(code.to_string());
        }
        if code.is_memory() {
            return self.out_of_memory(0);
        }
        let context = format!("{context} on {}", self.info.spec);
        DeviceError::Driver { context, reason: code.to_string() }
    }

    fn lost(&self, reason: String) -> DeviceError {
        DeviceError::Lost { device: self.info.spec.clone(), reason }
    }

    fn out_of_memory(&self, requested: usize) -> DeviceError {
        let in_use = self.in_use.load(Ordering::Relaxed);
        DeviceError::out_of_memory(&self.info.spec, requested, in_use)
    }

    /// The program of a source, from the cache or the driver's compiler, and whether it was on
    /// disk. Where the driver has a cache of its own, ours notes what that one was given.
    fn build(&self, source: &str) -> Result<(driver::Program, bool), String> {
        self.build_with(source, source, &self.options)
    }

    /// As `build`, with other options, of a source that `key` stands for on disk.
    fn build_with(
        &self,
        source: &str,
        key: &str,
        options: &str,
    ) -> Result<(driver::Program, bool), String> {
        let cached = self.cache.load(key);
        if self.lazy {
            let program = self.context.build(source, options)?;
            if cached.is_none() {
                self.cache.store(key, &[]);
            }
            return Ok((program, cached.is_some()));
        }
        let loaded = cached.and_then(|binary| self.context.load(&binary, options).ok());
        if let Some(program) = loaded {
            return Ok((program, true));
        }
        let program = self.context.build(source, options)?;
        if let Some(binary) = program.binary() {
            self.cache.store(key, &binary);
        }
        Ok((program, false))
    }

    /// A raw kernel whose parameters are the declared ones.
    fn build_raw(&self, kernel: &RawKernel) -> Result<Compiled, CompileError> {
        let source = kernel.text()?;
        let (outline, entry) = kernel.outline();
        self.check_local(&entry).map_err(|log| kernel.error(log))?;
        // A program from disk may not tell of its parameters, so equal keys have equal declarations.
        let declared = format!("{:?} {:?} {}", kernel.params, kernel.vars, kernel.shared_bytes);
        let key = format!("raw {} {} {declared}\n{source}", raw::OPTIONS, kernel.name);
        let (program, loaded) =
            self.build_with(source, &key, raw::OPTIONS).map_err(|log| kernel.error(log))?;
        let object = program.kernel(&kernel.name);
        let object = object
            .map_err(|code| kernel.error(format!("no entry point {}: {code}", kernel.name)))?;
        raw::check(kernel, &object, &self.id)?;
        let (signature, scalars) = (Signature::of_raw(kernel, &self.caps), kernel.vars.len());
        let entries = vec![(entry, Mutex::new(object))];
        Ok(Compiled { kernel: outline, scalars, signature, entries, loaded })
    }

    /// Checks the threads of a group along each axis.
    fn check_local(&self, entry: &Entry) -> Result<(), String> {
        let limit = &self.max_local_sizes;
        let fits = |(&n, &max): (&u64, &usize)| n <= max as u64;
        match entry.local.iter().zip(limit).all(fits) {
            true => Ok(()),
            false => Err(format!("groups of {:?}, limit {limit:?}", entry.local)),
        }
    }

    /// A kernel whose entries are in `program`.
    fn link(
        &self,
        kernel: &Kernel,
        (program, loaded): &(driver::Program, bool),
        entries: Vec<Entry>,
    ) -> Result<OpenClProgram, CompileError> {
        for entry in &entries {
            self.check_local(entry).map_err(|log| CompileError::new(kernel, log))?;
        }
        let entries = entries.into_iter().map(|entry| {
            let object = program.kernel(&entry.name);
            let object = object.map_err(|code| CompileError::new(kernel, code))?;
            Ok((entry, Mutex::new(object)))
        });
        let entries = entries.collect::<Result<_, CompileError>>()?;
        let (signature, scalars) = (Signature::of(kernel), kernel.vars().len());
        let (kernel, loaded) = (kernel.clone(), *loaded);
        Ok(OpenClProgram(Arc::new(Compiled { kernel, scalars, signature, entries, loaded })))
    }

    /// Compiles kernels as one source.
    fn compile_joined(&self, kernels: &[Verified]) -> Result<Vec<OpenClProgram>, CompileError> {
        let (source, entries) = clike::emit_all(kernels, &self.caps, &dialect(&self.caps))?;
        let program = self.build(&source).map_err(|log| CompileError::new(&kernels[0], log))?;
        let linked = kernels.iter().zip(entries);
        linked.map(|(kernel, entries)| self.link(kernel, &program, entries)).collect()
    }

    /// Lets what follows on a stream wait for all before.
    fn order(&self, stream: &OpenClStream) -> Result<(), DeviceError> {
        if let Some(code) = stream.lost {
            return Err(self.lost(format!("an upload failed: {code}")));
        }
        if stream.order != Order::Any {
            return Ok(());
        }
        stream.queue.barrier().map_err(|code| self.error("barrier", code))?;
        self.traffic.ordered(1);
        Ok(())
    }

    /// Waits for an event if the work that waits may be stopped. Otherwise returns `false` without waiting.
    fn wait_unless_stopped(&self, event: &driver::Event) -> Result<bool, DeviceError> {
        if !Watch::here().may_stop() {
            return Ok(false);
        }
        let is_done = ask_until(self.info.kind, || event.is_done());
        match is_done.map_err(|code| self.error("waiting", code))? {
            true => Ok(true),
            false => Err(DeviceError::Interrupted),
        }
    }

    fn stream_of(&self, order: Order) -> Result<OpenClStream, DeviceError> {
        let queue = self.context.queue(&self.id, order);
        let queue = queue.map_err(|code| self.error("stream", code))?;
        let uploads = VecDeque::new();
        let staging = Staging::default();
        Ok(OpenClStream { queue, order, timed: None, uploads, staging, staged: 0, lost: None })
    }

    /// Queues the launches of a program, one after the other, behind these events. Gives the events
    /// that what needs its results has to wait for.
    fn queue_launches(
        &self,
        stream: &OpenClStream,
        program: &OpenClProgram,
        args: &[Arg<'_, OpenClBuffer>],
        mut after: Vec<Arc<driver::Event>>,
    ) -> Result<Vec<Arc<driver::Event>>, DeviceError> {
        let compiled = &*program.0;
        compiled.signature.check(args, OpenClBuffer::extent)?;
        for (arg, param) in args.iter().zip(compiled.kernel.params()) {
            let Arg::Buffer(buffer, _) = arg else { continue };
            if param.access != Access::Read && !buffer.view.end() {
                return Err(DeviceError::not_writable(compiled.kernel.name()));
            }
        }
        let vars: Vec<u64> = args
            .iter()
            .filter_map(|arg| match arg {
                Arg::Scalar(bits) => Some(*bits),
                Arg::Buffer(..) => None,
            })
            .collect();
        let mut started = false;
        for (entry, object) in &compiled.entries {
            let grid = entry.grid(&compiled.kernel, &vars, self.caps.max_groups);
            let Some(groups) = grid else { continue };
            let local = entry.local.map(|n| n as usize);
            let threads = [0, 1, 2].map(|axis| groups[axis] as usize * local[axis]);
            let object = lock(object);
            let name = compiled.kernel.name();
            let event = self
                .set(compiled, entry.shared, &object, args)
                .and_then(|()| stream.queue.launch(&object, threads, local, &after))
                .map_err(|code| match started {
                    // An argument that is both read and written would be changed twice.
                    true => self.lost(format!("half of {name} ran, then {code}")),
                    false => self.error(name, code),
                })?;
            self.traffic.submitted();
            started = true;
            after = if stream.order == Order::Any { vec![Arc::new(event)] } else { vec![] };
        }
        Ok(after)
    }

    /// Sets the arguments that all entries of a program share, and shared storage if a launch asks for it.
    fn set(
        &self,
        compiled: &Compiled,
        shared: usize,
        object: &driver::Kernel,
        args: &[Arg<'_, OpenClBuffer>],
    ) -> Result<(), Code> {
        let (params, vars) = (compiled.kernel.params(), compiled.kernel.vars());
        let mut index = 0;
        for (slot, &arg) in args.iter().enumerate().take(params.len() + compiled.scalars) {
            match arg {
                Arg::Buffer(buffer, offset) => {
                    let element = params[slot].dtype.size();
                    object.set_memory(index, &buffer.memory)?;
                    object.set_scalar(index + 1, 8, (offset / element) as u64)?;
                    index += 2;
                }
                Arg::Scalar(bits) => {
                    let dtype: DType = vars[slot - params.len()].dtype;
                    object.set_scalar(index, dtype.size(), bits)?;
                    index += 1;
                }
            }
        }
        if shared > 0 { object.set_local(index, shared) } else { Ok(()) }
    }
}

impl Device for OpenClDevice {
    type Buffer = OpenClBuffer;
    type Program = OpenClProgram;
    type Stream = OpenClStream;
    type Event = OpenClEvent;

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn traffic(&self) -> Traffic {
        self.traffic.get()
    }

    fn driver(&self) -> String {
        self.cache.identity().to_owned()
    }

    fn source(kernel: &Verified, caps: &Caps) -> Result<String, CompileError> {
        clike::emit(kernel, caps, &dialect(caps)).map(|unit| unit.source)
    }

    fn compile(&self, kernel: &Verified) -> Result<OpenClProgram, CompileError> {
        let unit = clike::emit(kernel, &self.caps, &dialect(&self.caps))?;
        let program = self.build(&unit.source);
        let refused = |log| CompileError::new(kernel, format!("{log}\n{}", unit.source));
        let program = program.map_err(refused)?;
        self.link(kernel, &program, unit.entries)
    }

    fn compile_all(&self, kernels: &[Verified]) -> Result<Vec<OpenClProgram>, CompileError> {
        let watch = Watch::here();
        let wanted = |kernel: &Verified| match watch.is_stopped() {
            true => Err(CompileError::new(kernel, "interrupted")),
            false => Ok(()),
        };
        if self.lazy && kernels.len() > 1 {
            let joined = kernels
                .chunks(JOINED)
                .map(|together| wanted(&together[0]).and_then(|()| self.compile_joined(together)));
            if let Ok(programs) = joined.collect::<Result<Vec<_>, _>>() {
                return Ok(programs.concat());
            }
        }
        // If joining them fails, compiling one by one says which kernel it was.
        kernels.iter().map(|kernel| wanted(kernel).and_then(|()| self.compile(kernel))).collect()
    }

    fn raw_languages(&self) -> &'static [Language] {
        raw::LANGUAGES
    }

    fn compile_raw(&self, kernel: &RawKernel) -> Result<OpenClProgram, CompileError> {
        if !raw::LANGUAGES.contains(&kernel.language) {
            return Err(kernel.unknown_language(&self.info.spec, raw::LANGUAGES));
        }
        kernel.check(&self.caps)?;
        Ok(OpenClProgram(Arc::new(self.build_raw(kernel)?)))
    }

    fn was_compiled(&self, program: &OpenClProgram) -> bool {
        !program.0.loaded
    }

    /// A driver for CPUs maps a library in five parts for each kernel, and a process may have 65,530 mappings.
    fn program_bytes(&self, program: &OpenClProgram) -> usize {
        program.0.entries.len() * (64 << 10)
    }

    fn alloc(&self, bytes: usize) -> Result<OpenClBuffer, DeviceError> {
        // Whole words, so that atomics on narrow elements stay inside; and never nothing, which
        // OpenCL refuses.
        let rounded = bytes.max(1).checked_next_multiple_of(64);
        let rounded = rounded.filter(|&n| n as u64 <= self.max_bytes);
        let rounded = rounded.ok_or_else(|| self.out_of_memory(bytes))?;
        let apart = if self.caps.has_few_threads() && rounded >= LARGE { APART } else { 0 };
        let memory = |bytes| match self.caps.unified_memory && !self.caps.has_few_threads() {
            // A CPU's memory is the host's in any case.
            true => self.context.host_memory(bytes),
            false => self.context.memory(bytes),
        };
        let memory = match memory(rounded.saturating_add(apart)) {
            // What just fits is not refused for the sake of where it lies.
            Err(code) if code.is_memory() && apart > 0 => memory(rounded),
            other => other,
        };
        let memory = memory.map_err(|code| {
            if code.is_memory() { self.out_of_memory(bytes) } else { self.error("alloc", code) }
        })?;
        Ok(OpenClBuffer::new(memory, rounded, &self.in_use))
    }

    fn stream(&self) -> Result<OpenClStream, DeviceError> {
        self.stream_of(self.order)
    }

    fn write(
        &self,
        stream: &mut OpenClStream,
        dst: &OpenClBuffer,
        offset: usize,
        src: &[u8],
    ) -> Result<(), DeviceError> {
        if src.is_empty() {
            return Ok(());
        }
        if !dst.may_be_written() {
            return Err(DeviceError::not_writable("write"));
        }
        stream.settle();
        self.order(stream)?;
        if src.len() >= LARGE {
            let OpenClStream { queue, staging, .. } = stream;
            let queue = (&*self.context, &*queue, &self.traffic);
            let written = staging.write(queue, (&dst.memory, offset), src);
            return written.map_err(|code| self.error("write", code));
        }
        self.traffic.submitted();
        if stream.staged + src.len() > STAGED {
            let written = stream.queue.write(&dst.memory, offset, src);
            return written.map_err(|code| self.error("write", code));
        }
        let upload = stream.queue.upload(&dst.memory, offset, src.to_vec());
        stream.uploads.push_back(upload.map_err(|code| self.error("write", code))?);
        stream.staged += src.len();
        Ok(())
    }

    fn read(
        &self,
        stream: &mut OpenClStream,
        src: &OpenClBuffer,
        offset: usize,
        dst: &mut [u8],
    ) -> Result<(), DeviceError> {
        if dst.is_empty() {
            return Ok(());
        }
        if Watch::here().may_stop() {
            // Before anything else is queued: NVIDIA's driver waits within calls that order later commands.
            let before = stream.queue.mark().map_err(|code| self.error("read", code))?;
            self.wait_unless_stopped(&before)?;
        }
        self.order(stream)?;
        let OpenClStream { queue, staging, .. } = &mut *stream;
        // Where memory is the host's, a read is a copy by the host in any case.
        let read = match dst.len() >= LARGE && !self.caps.unified_memory {
            true => {
                let queue = (&*self.context, &*queue, &self.traffic);
                staging.read(queue, (&src.memory, offset), dst)
            }
            false => {
                self.traffic.submitted();
                queue.read(&src.memory, offset, dst)
            }
        };
        read.map_err(|code| self.error("read", code))?;
        stream.settle();
        // What was just read may not be what was written.
        if stream.lost.is_some() { self.order(stream) } else { Ok(()) }
    }

    fn copy(
        &self,
        stream: &mut OpenClStream,
        src: (&OpenClBuffer, usize),
        dst: (&OpenClBuffer, usize),
        bytes: usize,
    ) -> Result<(), DeviceError> {
        if bytes == 0 {
            return Ok(());
        }
        if !dst.0.may_be_written() {
            return Err(DeviceError::not_writable("copy"));
        }
        self.order(stream)?;
        let (src, dst) = ((&src.0.memory, src.1), (&dst.0.memory, dst.1));
        self.traffic.submitted();
        stream.queue.copy(src, dst, bytes).map_err(|code| self.error("copy", code))
    }

    fn launch(
        &self,
        stream: &mut OpenClStream,
        program: &OpenClProgram,
        args: &[Arg<'_, OpenClBuffer>],
    ) -> Result<(), DeviceError> {
        self.order(stream)?;
        self.queue_launches(stream, program, args, vec![]).map(drop)
    }

    fn replay(
        &self,
        stream: &mut OpenClStream,
        _recording: &mut Recording,
        commands: &[Command<'_, OpenClProgram, OpenClBuffer>],
    ) -> Result<(), DeviceError> {
        if stream.order != Order::Any {
            return commands.iter().try_for_each(|c| self.launch(stream, c.program, c.args));
        }
        self.order(stream)?;
        // For each command what says that it is done: its last launch, or if it has none, what it
        // would have waited for.
        let mut done: Vec<Vec<Arc<driver::Event>>> = Vec::with_capacity(commands.len());
        for command in commands {
            let after = command.after.iter().flat_map(|&i| done[i as usize].iter().cloned());
            let after = after.collect();
            done.push(self.queue_launches(stream, command.program, command.args, after)?);
        }
        Ok(())
    }

    fn record(&self, stream: &mut OpenClStream) -> Result<OpenClEvent, DeviceError> {
        stream.queue.mark().map(OpenClEvent).map_err(|code| self.error("record", code))
    }

    fn wait(&self, stream: &mut OpenClStream, event: &OpenClEvent) -> Result<(), DeviceError> {
        self.traffic.ordered(1);
        stream.queue.wait(&event.0).map_err(|code| self.error("wait", code))
    }

    fn synchronize(&self, event: &OpenClEvent) -> Result<(), DeviceError> {
        if self.wait_unless_stopped(&event.0)? {
            return Ok(());
        }
        event.0.wait().map_err(|code| self.error("synchronize", code))
    }

    fn timed<'a>(&self, stream: &'a mut OpenClStream) -> Result<&'a mut OpenClStream, DeviceError> {
        self.order(stream)?;
        if stream.timed.is_none() {
            stream.timed = Some(Box::new(self.stream_of(Order::Timed)?));
        }
        Ok(stream.timed.as_mut().expect("invariant: it was just made"))
    }

    /// Aligned as buffers of the device's own are.
    fn adopt(&self, owner: &HostOwner) -> Option<OpenClBuffer> {
        let bytes = owner.as_ref().as_ref();
        let fits = !bytes.is_empty() && (bytes.as_ptr() as usize).is_multiple_of(ALIGN);
        if !self.caps.unified_memory || !fits {
            return None;
        }
        let memory = self.context.lent(owner).ok()?;
        let mut buffer = OpenClBuffer::new(memory, bytes.len(), &self.in_use);
        buffer.lent = true;
        Some(buffer)
    }

    fn host_view(&self, buffer: &Arc<OpenClBuffer>, bytes: usize) -> Option<HostOwner> {
        if !self.caps.unified_memory || bytes > buffer.bytes {
            return None;
        }
        let queue =
            self.looks.get_or_init(|| self.context.queue(&self.id, Order::Given).ok()).as_ref()?;
        let look = buffer.view.look(queue, &buffer.memory, buffer.bytes);
        look.then(|| Arc::new(Bytes { buffer: buffer.clone(), bytes }) as HostOwner)
    }

    fn elapsed(&self, from: &OpenClEvent, to: &OpenClEvent) -> Option<Duration> {
        let (from, to) = (from.0.finished_at()?, to.0.finished_at()?);
        to.checked_sub(from).map(Duration::from_nanos)
    }
}

impl OpenClStream {
    /// Lets go of the staged bytes that have arrived, and notes those that never will.
    fn settle(&mut self) {
        self.lost = self.lost.or_else(|| self.staging.failed());
        while let Some(upload) = self.uploads.front() {
            match upload.is_done() {
                Ok(false) => return,
                Ok(true) => {}
                Err(code) => self.lost = Some(code),
            }
            self.staged -= upload.len();
            self.uploads.pop_front();
        }
    }
}

impl Drop for OpenClStream {
    fn drop(&mut self) {
        // Dropping an upload waits for it, so the queue has to be working.
        let _ = self.queue.flush();
    }
}
