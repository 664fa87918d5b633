//! The device contract on wgpu: memory, programs, copies. Launches are batched in `stream`.
//!
//! * A buffer argument is bound at its offset: the core keeps offsets to multiples of what the
//!   adapter asks for. Bind groups are cached until one of their buffers is dropped.
//! * Copies by wgpu move whole words; edges that are not are merged on the host, after waiting.
//! * Kernels are in bounds by construction, so modules are compiled without checks.

use crate::caps::{Facts, caps};
use crate::fault::{self, Faults};
use crate::raw;
use crate::stream::{BindGroups, WgpuEvent, WgpuStream};
use crate::wgsl::{self, Module};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use zyx_core::codegen::Entry;
use zyx_core::hal::{
    Arg, Caps, CompileError, Device, DeviceError, DeviceInfo, Extent, Language, RawKernel,
    Rounding, Signature, Traffic, TrafficCounter, Watch, ask_until, lock, probe,
};
use zyx_core::ir::{Access, Kernel, VarInfo, Verified};
use zyx_core::{DType, DTypeSet, TernaryOp};

/// Sizes of buffers are multiples of this: whole words, and vectors of them.
const ROUNDING: usize = 64;

/// Most bytes of a write that wgpu stages at once.
const CHUNK: usize = 32 << 20;

/// An open device.
#[derive(Debug)]
pub struct WgpuDevice {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) faults: Arc<Faults>,
    pub(crate) bind_groups: Arc<BindGroups>,
    pub(crate) traffic: Arc<TrafficCounter>,
    info: DeviceInfo,
    pub(crate) caps: Caps,
    limits: wgpu::Limits,
    in_use: Arc<AtomicUsize>,
    next: AtomicU64,
}

/// Device memory.
#[derive(Debug)]
pub struct WgpuBuffer {
    pub(crate) raw: wgpu::Buffer,
    /// Never given to another buffer of the device.
    pub(crate) id: u64,
    bytes: usize,
    bind_groups: Arc<BindGroups>,
    in_use: Arc<AtomicUsize>,
}

impl Drop for WgpuBuffer {
    fn drop(&mut self) {
        self.bind_groups.forget(self.id);
        self.in_use.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A compiled kernel.
#[derive(Clone, Debug)]
pub struct WgpuProgram(pub(crate) Arc<Compiled>);

#[derive(Debug)]
pub(crate) struct Compiled {
    /// The scalar arguments of the kernel, of which the module's have the bits.
    pub(crate) vars: Vec<VarInfo>,
    /// The kernel that a user wrote; that of the module is its outline.
    pub(crate) raw: Option<RawKernel>,
    signature: Signature,
    pub(crate) module: Module,
    /// By the bindings that are read only.
    variants: Mutex<Vec<(u64, Arc<Variant>)>>,
}

/// Pipelines of a program whose bindings are read only or not.
#[derive(Debug)]
pub(crate) struct Variant {
    /// Never given to another variant of the device.
    pub(crate) id: u64,
    pub(crate) layout: wgpu::BindGroupLayout,
    /// One for each entry of the module.
    pub(crate) pipelines: Vec<wgpu::ComputePipeline>,
}

impl Compiled {
    /// The bindings, by bit, that a launch with these buffers only reads.
    ///
    /// Browsers refuse memory that is bound twice if one of the bindings may write, and a buffer of which
    /// one is read only and another is not. Elsewhere nothing is read only: a plan's temporaries are parts of one buffer.
    fn read_only(&self, buffers: &[(&WgpuBuffer, usize)]) -> u64 {
        let bindings = &self.module.bindings;
        if cfg!(not(target_arch = "wasm32")) || bindings.len() > 64 || self.raw.is_some() {
            return 0;
        }
        let params = self.module.kernel.params();
        let reads = |slot: usize| params[slot].access == Access::Read;
        let written =
            |id: u64| (0..params.len()).any(|slot| !reads(slot) && buffers[slot].0.id == id);
        let read_only = |slot: usize| reads(slot) && !written(buffers[slot].0.id);
        let bits =
            bindings.iter().enumerate().map(|(i, part)| u64::from(read_only(part.slot)) << i);
        bits.sum()
    }

    /// The pipelines for a launch with these buffers.
    pub(crate) fn variant(
        &self,
        device: &WgpuDevice,
        buffers: &[(&WgpuBuffer, usize)],
    ) -> Result<Arc<Variant>, DeviceError> {
        let read_only = self.read_only(buffers);
        let mut variants = lock(&self.variants);
        if let Some(known) = variants.iter().find(|known| known.0 == read_only) {
            return Ok(known.1.clone());
        }
        let made = device.variant(&self.module, self.raw.is_some(), read_only);
        let made = Arc::new(made.map_err(|reason| device.error("launch", reason))?);
        variants.push((read_only, made.clone()));
        Ok(made)
    }
}

impl WgpuDevice {
    pub(crate) fn new(
        ordinal: usize,
        device: wgpu::Device,
        queue: wgpu::Queue,
        facts: Facts,
    ) -> Result<WgpuDevice, DeviceError> {
        let mut device = WgpuDevice {
            faults: Faults::watch(&device),
            device,
            queue,
            bind_groups: Arc::default(),
            traffic: Arc::default(),
            info: crate::info(ordinal, &facts),
            caps: caps(&facts),
            limits: facts.limits,
            in_use: Arc::default(),
            next: AtomicU64::new(0),
        };
        // WGSL lets drivers flush, round a multiply-add twice and others once, and has no way to ask.
        device.caps.contracts = true;
        device.caps.flushes_subnormals = match cfg!(target_arch = "wasm32") {
            // It can only be asked while nobody waits.
            true => DTypeSet::of(&[DType::F32]),
            false => probe::flushed_subnormals(&device)?,
        };
        // A driver that flushes does so in sums and products as well.
        if facts.probes && probe::muladd(&device)?.rounds_once {
            device.caps.ternary[TernaryOp::MulAdd as usize] = DTypeSet::of(&[DType::F32]);
            device.caps.fast_fma = true;
            // NVIDIA's compiler rounds the products in remainders of roots, unlike those of
            // quotients, so that one root in thirty thousand would be off by a unit.
            device.caps.quotients = Rounding::Usual;
        }
        // Nothing says that the subgroups of a group are full: wgpu does not ask Vulkan for it.
        if facts.lanes > 0 && !matches!(probe::shuffles(&device), Ok(true)) {
            device.caps.subgroup = (0, 0);
        }
        Ok(device)
    }

    /// Reports what went wrong since the last time.
    pub(crate) fn check(&self, context: &str) -> Result<(), DeviceError> {
        self.faults.check(&self.info.spec, context)
    }

    pub(crate) fn error(&self, context: &str, reason: String) -> DeviceError {
        let context = format!("{context} on {}", self.info.spec);
        DeviceError::Driver { context, reason }
    }

    /// Runs a call of wgpu's.
    pub(crate) fn scoped<T>(
        &self,
        call: &'static str,
        f: impl FnOnce() -> T,
    ) -> Result<T, DeviceError> {
        fault::scoped(&self.device, call, f).map_err(|error| match error {
            wgpu::Error::OutOfMemory { .. } => self.out_of_memory(0),
            error => self.error(call, error.to_string()),
        })
    }

    /// Waits until a submission is done, or the work that waits is stopped.
    pub(crate) fn wait_for(&self, index: wgpu::SubmissionIndex) -> Result<(), DeviceError> {
        if fault::is_injected("poll") {
            return Err(self.error("synchronize", "poll failed".to_owned()));
        }
        if cfg!(target_arch = "wasm32") {
            let reason = "a page cannot wait for its device; await a value of it";
            return Err(self.error("synchronize", reason.to_owned()));
        }
        let wait = |timeout| {
            let submission_index = Some(index.clone());
            self.device.poll(wgpu::PollType::Wait { submission_index, timeout })
        };
        let poll = || match Watch::here().may_stop() {
            false => wait(None).map(|_| true),
            true => ask_until(self.info.kind, || match wait(Some(Duration::ZERO)) {
                Err(wgpu::PollError::Timeout) => Ok(false),
                polled => polled.map(|_| true),
            }),
        };
        // wgpu panics where a device is lost meanwhile; there is nothing left to be inconsistent.
        match catch_unwind(AssertUnwindSafe(poll)) {
            Ok(Ok(false)) => Err(DeviceError::Interrupted),
            Ok(done) => {
                self.check("synchronize")?;
                done.map(drop).map_err(|error| self.error("synchronize", error.to_string()))
            }
            Err(_) => {
                self.faults.lose("wgpu gave up while waiting".to_owned());
                self.check("synchronize")
            }
        }
    }

    /// The distance between the blocks of scalars of two launches.
    pub(crate) fn block(&self, words: usize) -> usize {
        (4 * words).next_multiple_of(self.limits.min_uniform_buffer_offset_alignment as usize)
    }

    fn out_of_memory(&self, requested: usize) -> DeviceError {
        let in_use = self.in_use.load(Ordering::Relaxed);
        DeviceError::out_of_memory(&self.info.spec, requested, in_use)
    }

    fn id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Checks what wgpu would find out at the first launch.
    fn check_groups(&self, entries: &[Entry]) -> Result<(), String> {
        let limits = &self.limits;
        let most = [
            limits.max_compute_workgroup_size_x,
            limits.max_compute_workgroup_size_y,
            limits.max_compute_workgroup_size_z,
        ];
        let fits = |(&n, &max): (&u64, &u32)| n <= max.into();
        for entry in entries {
            if !entry.local.iter().zip(&most).all(fits) {
                return Err(format!("groups of {:?}, limit {most:?}", entry.local));
            }
        }
        Ok(())
    }

    fn build(&self, kernel: &Kernel, module: Module) -> Result<Compiled, String> {
        let vars = kernel.vars().to_vec();
        self.build_with(vars, Signature::of(kernel), None, module)
    }

    fn build_with(
        &self,
        vars: Vec<VarInfo>,
        signature: Signature,
        raw: Option<RawKernel>,
        module: Module,
    ) -> Result<Compiled, String> {
        self.check_groups(&module.unit.entries)?;
        let mut variants = Vec::new();
        // In a browser the buffers of a launch tell which bindings are read only.
        if cfg!(not(target_arch = "wasm32")) {
            variants.push((0, Arc::new(self.variant(&module, raw.is_some(), 0)?)));
        }
        let variants = Mutex::new(variants);
        Ok(Compiled { vars, raw, signature, module, variants })
    }

    fn variant(&self, module: &Module, is_raw: bool, read_only: u64) -> Result<Variant, String> {
        let device = &self.device;
        let entry = |binding: usize, ty, bytes: u64| wgpu::BindGroupLayoutEntry {
            binding: binding as u32,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty,
                has_dynamic_offset: ty == wgpu::BufferBindingType::Uniform,
                // wgpu compares the needs of a user's source with this when the pipeline is made.
                min_binding_size: wgpu::BufferSize::new(bytes).filter(|_| is_raw),
            },
            count: None,
        };
        let n = module.bindings.len();
        let storage = |i: usize| {
            let read_only = i < 64 && read_only >> i & 1 != 0;
            entry(i, wgpu::BufferBindingType::Storage { read_only }, raw::MIN_BINDING_BYTES)
        };
        let mut slots: Vec<_> = (0..n).map(storage).collect();
        if module.words > 0 {
            slots.push(entry(n, wgpu::BufferBindingType::Uniform, 4 * module.words as u64));
        }
        let name = module.kernel.name();
        let source = module.source(read_only);
        let made = fault::scoped(device, "create_shader_module", || {
            let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
                label: Some(name),
                entries: &slots,
            });
            let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: Some(name),
                bind_group_layouts: &[Some(&layout)],
                immediate_size: 0,
            });
            let source = wgpu::ShaderSource::Wgsl(source.as_str().into());
            let descriptor = wgpu::ShaderModuleDescriptor { label: Some(name), source };
            if is_raw {
                return (layout, pipeline_layout, device.create_shader_module(descriptor));
            }
            let checks = wgpu::ShaderRuntimeChecks::unchecked();
            // SAFETY: `compile` takes verified kernels only: accesses are in bounds of arguments that
            // fit the signature, by which `launch` checks them. Legalisation bounded the loops.
            let shader = unsafe { device.create_shader_module_trusted(descriptor, checks) };
            (layout, pipeline_layout, shader)
        });
        let (layout, pipeline_layout, shader) = made.map_err(|error| error.to_string())?;
        let pipelines = module.unit.entries.iter().map(|entry| {
            let made = fault::scoped(device, "create_compute_pipeline", || {
                device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                    label: Some(&entry.name),
                    layout: Some(&pipeline_layout),
                    module: &shader,
                    entry_point: Some(&entry.name),
                    compilation_options: wgpu::PipelineCompilationOptions {
                        constants: &[],
                        zero_initialize_workgroup_memory: false,
                    },
                    cache: None,
                })
            });
            made.map_err(|error| error.to_string())
        });
        let pipelines = pipelines.collect::<Result<_, _>>()?;
        Ok(Variant { id: self.id(), layout, pipelines })
    }

    /// Reads bytes from a multiple of four on, so many that they end at one.
    fn read_words(
        &self,
        stream: &mut WgpuStream,
        src: &WgpuBuffer,
        offset: usize,
        bytes: usize,
    ) -> Result<Vec<u8>, DeviceError> {
        let mut words = vec![0; bytes];
        stream.download(self, src, offset, &mut words)?;
        Ok(words)
    }
}

impl Device for WgpuDevice {
    type Buffer = WgpuBuffer;
    type Program = WgpuProgram;
    type Stream = WgpuStream;
    type Event = WgpuEvent;

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn traffic(&self) -> Traffic {
        self.traffic.get()
    }

    fn source(kernel: &Verified, caps: &Caps) -> Result<String, CompileError> {
        wgsl::emit(kernel, caps).map(|module| module.unit.source)
    }

    fn compile(&self, kernel: &Verified) -> Result<WgpuProgram, CompileError> {
        let module = wgsl::emit(kernel, &self.caps)?;
        let source = module.unit.source.clone();
        let compiled = self.build(kernel, module);
        let compiled =
            compiled.map_err(|log| CompileError::new(kernel, format!("{log}\n{source}")));
        compiled.map(|compiled| WgpuProgram(Arc::new(compiled)))
    }

    fn raw_languages(&self) -> &'static [Language] {
        raw::LANGUAGES
    }

    fn compile_raw(&self, kernel: &RawKernel) -> Result<WgpuProgram, CompileError> {
        if !raw::LANGUAGES.contains(&kernel.language) {
            return Err(kernel.unknown_language(&self.info.spec, raw::LANGUAGES));
        }
        kernel.check(&self.caps)?;
        let module = raw::module(kernel)?;
        let (vars, signature) = (Vec::new(), Signature::of_raw(kernel, &self.caps));
        let compiled = self.build_with(vars, signature, Some(kernel.clone()), module);
        compiled.map(|it| WgpuProgram(Arc::new(it))).map_err(|log| kernel.error(log))
    }

    fn alloc(&self, bytes: usize) -> Result<WgpuBuffer, DeviceError> {
        let rounded = bytes.max(1).checked_next_multiple_of(ROUNDING);
        let rounded = rounded.filter(|&n| n as u64 <= self.limits.max_buffer_size);
        let rounded = rounded.ok_or_else(|| DeviceError::TooLong {
            device: self.info.spec.clone(),
            requested: bytes,
            longest: self.limits.max_buffer_size.try_into().unwrap_or(usize::MAX),
        })?;
        let made = fault::scoped(&self.device, "create_buffer", || {
            self.device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: rounded as u64,
                usage: wgpu::BufferUsages::STORAGE
                    | wgpu::BufferUsages::COPY_SRC
                    | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        });
        let raw = made.map_err(|error| match error {
            wgpu::Error::OutOfMemory { .. } => self.out_of_memory(bytes),
            error => self.error("alloc", error.to_string()),
        })?;
        self.in_use.fetch_add(rounded, Ordering::Relaxed);
        Ok(WgpuBuffer {
            raw,
            id: self.id(),
            bytes: rounded,
            bind_groups: Arc::clone(&self.bind_groups),
            in_use: Arc::clone(&self.in_use),
        })
    }

    fn stream(&self) -> Result<WgpuStream, DeviceError> {
        WgpuStream::new(self, self.id())
    }

    fn write(
        &self,
        stream: &mut WgpuStream,
        dst: &WgpuBuffer,
        offset: usize,
        src: &[u8],
    ) -> Result<(), DeviceError> {
        if src.is_empty() {
            return Ok(());
        }
        let (start, end) = (offset / 4 * 4, (offset + src.len()).next_multiple_of(4));
        if (start, end) != (offset, offset + src.len()) {
            // Whole words, with what lies around kept.
            let mut words = self.read_words(stream, dst, start, end - start)?;
            words[offset - start..][..src.len()].copy_from_slice(src);
            return self.write(stream, dst, start, &words);
        }
        // wgpu writes before everything that is submitted next, so what came before goes first.
        stream.flush(self)?;
        stream.wrote();
        for (n, chunk) in src.chunks(CHUNK).enumerate() {
            self.scoped("write_buffer", || {
                if n > 0 {
                    self.queue.submit([]);
                    self.traffic.submitted();
                }
                self.queue.write_buffer(&dst.raw, (offset + n * CHUNK) as u64, chunk);
            })?;
        }
        self.check("write")
    }

    fn read(
        &self,
        stream: &mut WgpuStream,
        src: &WgpuBuffer,
        offset: usize,
        dst: &mut [u8],
    ) -> Result<(), DeviceError> {
        if dst.is_empty() {
            return Ok(());
        }
        // A driver may wait for all before within the submission of the copy, where nothing stops it.
        if Watch::here().may_stop() {
            stream.flush(self)?;
            stream.event().wait(self)?;
        }
        let (start, end) = (offset / 4 * 4, (offset + dst.len()).next_multiple_of(4));
        if (start, end) == (offset, offset + dst.len()) {
            return stream.download(self, src, offset, dst);
        }
        let words = self.read_words(stream, src, start, end - start)?;
        dst.copy_from_slice(&words[offset - start..][..dst.len()]);
        Ok(())
    }

    #[cfg(target_arch = "wasm32")]
    fn tells(&self) -> bool {
        true
    }

    #[cfg(target_arch = "wasm32")]
    fn read_later(
        &self,
        stream: &mut WgpuStream,
        src: &WgpuBuffer,
        bytes: usize,
        done: zyx_core::hal::OnRead,
    ) {
        stream.read_later(self, src, bytes, done);
    }

    fn copy(
        &self,
        stream: &mut WgpuStream,
        src: (&WgpuBuffer, usize),
        dst: (&WgpuBuffer, usize),
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // wgpu copies whole words between different buffers only.
        let words = [src.1, dst.1, bytes].iter().all(|n| n % 4 == 0);
        if words && src.0.id != dst.0.id {
            stream.copy(self, src, dst, bytes);
            return Ok(());
        }
        let mut through = vec![0; bytes];
        self.read(stream, src.0, src.1, &mut through)?;
        self.write(stream, dst.0, dst.1, &through)
    }

    fn launch(
        &self,
        stream: &mut WgpuStream,
        program: &WgpuProgram,
        args: &[Arg<'_, WgpuBuffer>],
    ) -> Result<(), DeviceError> {
        let extent = |buffer: &WgpuBuffer| Extent { bytes: buffer.bytes, writable: true };
        program.0.signature.check(args, extent)?;
        stream.launch(self, &program.0, args)
    }

    fn record(&self, stream: &mut WgpuStream) -> Result<WgpuEvent, DeviceError> {
        stream.flush(self)?;
        Ok(stream.event())
    }

    /// There is one queue, and an event's commands have been submitted to it.
    fn wait(&self, _: &mut WgpuStream, _: &WgpuEvent) -> Result<(), DeviceError> {
        Ok(())
    }

    fn synchronize(&self, event: &WgpuEvent) -> Result<(), DeviceError> {
        event.wait(self)
    }
}
