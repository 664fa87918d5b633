//! The device contract on Vulkan.
//!
//! * A buffer argument is its address in the block of arguments, or on devices without addresses
//!   a descriptor; see `spirv`.
//! * Where host and device share memory, buffers are mapped and nothing is staged.
//! * A launch of more groups than the device takes is cut to its limit; loops over groups stride.
//! * Streams share the one queue; an event is a place in it, with a time stamp where there is a
//!   free one.

use crate::arena::{Arena, Region};
use crate::asm;
use crate::caps::Facts;
use crate::gpu::{Gpu, STOPPED, Use};
use crate::pipeline::{Compiled, Pipelines};
use crate::raw;
use crate::replay::{Launch, Replays};
use crate::spirv::{self, Layout, Slot, Target};
use crate::stream::{self, Touched, VulkanStream};
use ash::vk;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use zyx_core::hal::{
    Arg, Caps, Command, CompileError, Device, DeviceError, DeviceInfo, Extent, HostOwner, Language,
    RawKernel, Recording, Rounding, Traffic, probe,
};
use zyx_core::ir::{Access, ParamInfo, Verified};
use zyx_core::legalize::lower_to_32_bit;
use zyx_core::{DType, DTypeSet, TernaryOp};

/// Launches from which on a list is worth a submission of its own.
const RECORDED: usize = 4;

/// An open Vulkan device.
#[derive(Debug)]
pub struct VulkanDevice {
    gpu: Arc<Gpu>,
    info: DeviceInfo,
    caps: Caps,
    target: Target,
    /// What tensors are in.
    arena: Arc<Arena>,
    /// What blocks of arguments are in.
    arguments: Arc<Arena>,
    pipelines: Arc<Pipelines>,
}

/// Device memory.
#[derive(Debug)]
pub struct VulkanBuffer {
    region: Arc<Region>,
    /// How often the host looks at it.
    looks: AtomicUsize,
}

impl VulkanBuffer {
    /// What a command may do with it.
    fn extent(&self) -> Extent {
        Extent { bytes: self.region.bytes, writable: self.looks.load(Ordering::Acquire) == 0 }
    }

    /// Checks that the buffer has these bytes, and may be written if that is what is to be done.
    fn check(
        &self,
        context: &str,
        (offset, bytes): (usize, usize),
        writes: bool,
    ) -> Result<(), DeviceError> {
        let extent = self.extent();
        if offset.checked_add(bytes).is_none_or(|end| end > extent.bytes) {
            let reason = format!("{bytes} bytes at {offset} of a buffer of {}", extent.bytes);
            return Err(DeviceError::Driver { context: context.to_owned(), reason });
        }
        match !writes || extent.writable {
            true => Ok(()),
            false => Err(DeviceError::not_writable(context)),
        }
    }
}

/// The first bytes of a buffer that the host looks at.
struct Bytes {
    buffer: Arc<VulkanBuffer>,
    bytes: usize,
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        let Region { block, offset, .. } = &*self.buffer.region;
        block.slice(*offset, self.bytes).unwrap_or_default()
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        self.buffer.looks.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A compiled kernel.
#[derive(Clone, Debug)]
pub struct VulkanProgram(Arc<Compiled>);

/// A point in a stream.
#[derive(Debug)]
pub struct VulkanEvent {
    gpu: Arc<Gpu>,
    ticket: u64,
    stamp: Option<u32>,
}

impl Drop for VulkanEvent {
    fn drop(&mut self) {
        if let Some(stamp) = self.stamp {
            self.gpu.free_stamp(stamp);
        }
    }
}

impl VulkanDevice {
    pub(crate) fn new(gpu: Arc<Gpu>, info: DeviceInfo) -> Result<VulkanDevice, vk::Result> {
        let caps = crate::caps::caps(&gpu.facts);
        let [arena, arguments] = [Use::Device, Use::Arguments].map(|usage| Arena::new(&gpu, usage));
        let (pipelines, target) = (Pipelines::new(&gpu)?, gpu.facts.target.clone());
        Ok(VulkanDevice { gpu, info, caps, target, arena, arguments, pipelines })
    }

    /// Finds out what the driver does not say: what happens to subnormals where it cannot be told
    /// to keep them, how GPUs round a product that goes into a sum, and whether their subgroups meet.
    pub(crate) fn probe(&mut self) -> Result<(), DeviceError> {
        if !self.target.denormals.contains(&32) {
            self.caps.flushes_subnormals = probe::flushed_subnormals(self)?;
        }
        if self.gpu.facts.cpu {
            return Ok(());
        }
        // Nothing says that threads of a subgroup go on together behind a loop that they left apart.
        if self.caps.lanes().is_some() && !probe::shuffles(self)? {
            self.caps.subgroup = (0, 0);
        }
        // Where the compiler fuses the two of its own accord, the instruction is fused as well.
        let found = probe::muladd(self)?;
        if found.rounds_once {
            (self.caps.quotients, self.caps.roots) = (Rounding::Usual, Rounding::Usual);
        }
        if found.rounds_once && found.keeps_subnormals {
            self.caps.ternary[TernaryOp::MulAdd as usize] = DTypeSet::of(&[DType::F32]);
            self.caps.fast_fma = true;
        }
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// Whether the validation layer watches this device.
    pub fn is_validated(&self) -> bool {
        self.gpu.is_validated()
    }

    /// The binary form of what a kernel translates to on this device, a module for each launch.
    ///
    /// # Errors
    /// When the kernel needs what the device lacks.
    pub fn modules(&self, kernel: &Verified) -> Result<Vec<Vec<u32>>, CompileError> {
        let spirv::Translation { shaders, .. } = spirv::emit(kernel, &self.caps, &self.target)?;
        Ok(shaders.iter().map(|shader| asm::words(&shader.module)).collect())
    }

    fn error(&self, context: &str, code: vk::Result) -> DeviceError {
        if code == STOPPED {
            return DeviceError::Interrupted;
        }
        if code == vk::Result::ERROR_DEVICE_LOST {
            return DeviceError::Lost { device: self.info.spec.clone(), reason: code.to_string() };
        }
        if is_memory(code) {
            return self.out_of_memory(0);
        }
        let context = format!("{context} on {}", self.info.spec);
        DeviceError::Driver { context, reason: code.to_string() }
    }

    fn out_of_memory(&self, requested: usize) -> DeviceError {
        DeviceError::out_of_memory(&self.info.spec, requested, self.arena.in_use())
    }

    /// The bytes of each buffer that a launch touches.
    fn touched(program: &Compiled, args: &[Arg<'_, VulkanBuffer>]) -> Vec<Touched> {
        let params = program.kernel.params().iter().zip(buffer_bytes(program, args));
        let each = args.iter().zip(params).filter_map(|(arg, (param, bytes))| match *arg {
            Arg::Buffer(VulkanBuffer { region, .. }, offset) => {
                let start = region.offset + offset;
                let end = start.saturating_add(bytes).min(region.offset + region.bytes);
                let writes = param.access != Access::Read;
                Some(Touched { buffer: region.block.buffer, start, end, writes })
            }
            Arg::Scalar(_) => None,
        });
        each.collect()
    }

    fn run(
        &self,
        stream: &mut VulkanStream,
        program: &VulkanProgram,
        args: &[Arg<'_, VulkanBuffer>],
    ) -> Result<(), vk::Result> {
        let compiled = &program.0;
        let scalars = self.scalars(compiled, args);
        let kept = Arc::clone(compiled) as Arc<dyn Any + Send + Sync>;
        let regions = args.iter().filter_map(|arg| match arg {
            Arg::Buffer(VulkanBuffer { region, .. }, _) => Some(region),
            Arg::Scalar(_) => None,
        });
        let mut started = false;
        let mut push = Vec::new();
        for part in &compiled.parts {
            let grid = part.entry.grid(&compiled.kernel, &scalars, self.caps.max_groups);
            let Some(groups) = grid else { continue };
            if started {
                stream.between()?;
            } else {
                let touched = Self::touched(compiled, args);
                stream.begin_launch(&kept, regions.clone(), &touched)?;
                push = self.bind(stream, compiled, args)?;
                started = true;
            }
            stream.dispatch(
                part.pipeline,
                compiled.bound.layout,
                &push,
                groups.map(|n| n as u32),
            )?;
        }
        if started {
            stream.end_launch();
        }
        Ok(())
    }

    /// A launch as a recording needs it.
    fn prepare(&self, command: &Command<'_, VulkanProgram, VulkanBuffer>) -> Launch {
        let (compiled, args) = (&command.program.0, command.args);
        let scalars = self.scalars(compiled, args);
        let mut parts = Vec::with_capacity(compiled.parts.len());
        for part in &compiled.parts {
            let grid = part.entry.grid(&compiled.kernel, &scalars, self.caps.max_groups);
            let Some(groups) = grid else { continue };
            parts.push((part.pipeline, groups.map(|n| n as u32)));
        }
        let regions = args.iter().filter_map(|arg| match arg {
            Arg::Buffer(VulkanBuffer { region, .. }, _) => Some(Arc::clone(region)),
            Arg::Scalar(_) => None,
        });
        Launch {
            program: Arc::clone(compiled),
            block: self.block(compiled, args),
            parts,
            after: command.after.iter().max().copied(),
            regions: regions.collect(),
        }
    }

    /// Submits a list from a recording, if there is one or is one to be.
    fn play(
        &self,
        stream: &mut VulkanStream,
        recording: &mut Recording,
        commands: &[Command<'_, VulkanProgram, VulkanBuffer>],
    ) -> Result<bool, vk::Result> {
        // Descriptors name the buffers of raw kernels.
        let is_raw =
            |command: &Command<'_, VulkanProgram, VulkanBuffer>| command.program.0.raw.is_some();
        let is_short = commands.len() < RECORDED;
        if !self.target.addresses || is_short || commands.iter().any(is_raw) {
            return Ok(false);
        }
        let list: Vec<Launch> = commands.iter().map(|command| self.prepare(command)).collect();
        let found = recording.get::<Replays>().find(&self.gpu, &self.arguments, &list)?;
        let Some(replay) = found else { return Ok(false) };
        let regions = list.into_iter().flat_map(|launch| launch.regions).collect();
        replay.submit(stream, regions)?;
        Ok(true)
    }

    /// The scalars that grids follow from: those of the translated kernel, or of the launch of a raw one.
    fn scalars(&self, compiled: &Compiled, args: &[Arg<'_, VulkanBuffer>]) -> Vec<u64> {
        let bits: Vec<u64> = args.iter().filter_map(scalar).collect();
        match compiled.raw {
            Some(_) => bits,
            None => lower_to_32_bit::arguments(&compiled.vars, &self.caps, &bits),
        }
    }

    /// The bytes of the block of arguments.
    fn block(&self, compiled: &Compiled, args: &[Arg<'_, VulkanBuffer>]) -> Vec<u8> {
        let addresses = args.iter().filter_map(|arg| match arg {
            Arg::Buffer(VulkanBuffer { region, .. }, offset) if compiled.layout.addresses > 0 => {
                Some(region.address() + *offset as u64)
            }
            _ => None,
        });
        let scalars = self.scalars(compiled, args);
        let scalars = compiled.raw.as_ref().map_or(scalars.clone(), |raw| raw.scalars(&scalars));
        addresses.chain(scalars).flat_map(u64::to_le_bytes).collect()
    }

    /// Puts the arguments where shaders find them; gives the push constants.
    fn bind(
        &self,
        stream: &mut VulkanStream,
        compiled: &Compiled,
        args: &[Arg<'_, VulkanBuffer>],
    ) -> Result<Vec<u8>, vk::Result> {
        let Layout { slot, bindings, .. } = compiled.layout;
        let block = self.block(compiled, args);
        let mut ranges: Vec<vk::DescriptorBufferInfo> = Vec::with_capacity(bindings);
        if bindings > 0 {
            for (arg, len) in args.iter().zip(buffer_bytes(compiled, args)) {
                let Arg::Buffer(VulkanBuffer { region, .. }, offset) = arg else { continue };
                // Narrow elements are parts of words.
                let bytes = (len.min(region.bytes)).next_multiple_of(4).max(4);
                // Nothing of an empty one is used, and it may begin where its memory ends.
                let offset = if len == 0 { 0 } else { *offset };
                ranges.push(vk::DescriptorBufferInfo {
                    buffer: region.block.buffer,
                    offset: (region.offset + offset) as u64,
                    range: bytes.min(region.bytes - offset) as u64,
                });
            }
        }
        let in_memory = |stream: &mut VulkanStream| -> Result<Arc<Region>, vk::Result> {
            let region = Arc::new(self.arguments.holding(&block)?);
            stream.keep(&region)?;
            Ok(region)
        };
        let push = match slot {
            Slot::Push => block,
            Slot::Either => [&[0; 8], &block[..]].concat(),
            Slot::Address => in_memory(stream)?.address().to_le_bytes().to_vec(),
            Slot::Binding => {
                let region = in_memory(stream)?;
                ranges.push(vk::DescriptorBufferInfo {
                    buffer: region.block.buffer,
                    offset: region.offset as u64,
                    range: block.len() as u64,
                });
                Vec::new()
            }
        };
        if !ranges.is_empty() {
            stream.bind(compiled.bound.set, compiled.bound.layout, &ranges)?;
        }
        Ok(push)
    }
}

/// The bytes of each buffer that a launch may access.
fn buffer_bytes(compiled: &Compiled, args: &[Arg<'_, VulkanBuffer>]) -> Vec<usize> {
    match &compiled.raw {
        None => compiled.kernel.params().iter().map(bytes_of).collect(),
        Some(raw) => {
            let bits: Vec<u64> = args.iter().filter_map(scalar).collect();
            raw.bytes_of_buffers(&bits).collect()
        }
    }
}

/// The bytes of a buffer that a kernel may access.
fn bytes_of(param: &ParamInfo) -> usize {
    let len = usize::try_from(param.len).unwrap_or(usize::MAX);
    if param.is_open() { usize::MAX } else { len.saturating_mul(param.dtype.size()) }
}

fn scalar(arg: &Arg<'_, VulkanBuffer>) -> Option<u64> {
    match arg {
        Arg::Scalar(bits) => Some(*bits),
        Arg::Buffer(..) => None,
    }
}

fn is_memory(code: vk::Result) -> bool {
    matches!(
        code,
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY
            | vk::Result::ERROR_OUT_OF_HOST_MEMORY
            | vk::Result::ERROR_TOO_MANY_OBJECTS
    )
}

impl Device for VulkanDevice {
    type Buffer = VulkanBuffer;
    type Program = VulkanProgram;
    type Stream = VulkanStream;
    type Event = VulkanEvent;

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn traffic(&self) -> Traffic {
        self.gpu.traffic.get()
    }

    fn driver(&self) -> String {
        self.gpu.facts.identity.clone()
    }

    /// The modules as text, for a device like any with these capabilities.
    fn source(kernel: &Verified, caps: &Caps) -> Result<String, CompileError> {
        let typical = Facts::typical();
        // Of what the translation depends on, `f64` tells a full device from a minimal one.
        let has_doubles = caps.storage.contains(DType::F64);
        let facts = if has_doubles { typical } else { typical.minimal() };
        spirv::text(kernel, caps, &facts.target)
    }

    fn compile(&self, kernel: &Verified) -> Result<VulkanProgram, CompileError> {
        let error = |log: String| CompileError::new(kernel, log);
        let translation = spirv::emit(kernel, &self.caps, &self.target)?;
        for shader in &translation.shaders {
            let limits = self.gpu.facts.max_local_sizes;
            let fits = |(&n, limit): (&u64, u32)| n <= limit.into();
            let local = shader.entry.local;
            if !local.iter().zip(limits).all(fits) {
                return Err(error(format!("groups of {local:?}, limit {limits:?}")));
            }
        }
        let compiled = Compiled::new(&self.pipelines, kernel, translation);
        compiled.map(|c| VulkanProgram(Arc::new(c))).map_err(|code| error(code.to_string()))
    }

    fn raw_languages(&self) -> &'static [Language] {
        raw::LANGUAGES
    }

    fn compile_raw(&self, kernel: &RawKernel) -> Result<VulkanProgram, CompileError> {
        if !raw::LANGUAGES.contains(&kernel.language) {
            return Err(kernel.unknown_language(&self.info.spec, raw::LANGUAGES));
        }
        let facts = &self.gpu.facts;
        let mut caps = self.caps.clone();
        caps.max_binding = facts.max_binding;
        kernel.check(&caps)?;
        let words = raw::words(kernel, facts)?;
        let compiled = Compiled::new_raw(&self.pipelines, kernel, &words, &caps);
        compiled.map(|c| VulkanProgram(Arc::new(c))).map_err(|code| kernel.error(code))
    }

    fn was_compiled(&self, program: &VulkanProgram) -> bool {
        program.0.was_compiled()
    }

    fn alloc(&self, bytes: usize) -> Result<VulkanBuffer, DeviceError> {
        let region = stream::region(&self.arena, bytes).map_err(|code| match is_memory(code) {
            true => self.out_of_memory(bytes),
            false => self.error("alloc", code),
        })?;
        Ok(VulkanBuffer { region, looks: AtomicUsize::new(0) })
    }

    fn stream(&self) -> Result<VulkanStream, DeviceError> {
        VulkanStream::new(&self.gpu).map_err(|code| self.error("stream", code))
    }

    fn write(
        &self,
        stream: &mut VulkanStream,
        dst: &VulkanBuffer,
        offset: usize,
        src: &[u8],
    ) -> Result<(), DeviceError> {
        if src.is_empty() {
            return Ok(());
        }
        dst.check("write", (offset, src.len()), true)?;
        stream.write(&dst.region, offset, src).map_err(|code| self.error("write", code))
    }

    fn read(
        &self,
        stream: &mut VulkanStream,
        src: &VulkanBuffer,
        offset: usize,
        dst: &mut [u8],
    ) -> Result<(), DeviceError> {
        if dst.is_empty() {
            return Ok(());
        }
        src.check("read", (offset, dst.len()), false)?;
        stream.read(&src.region, offset, dst).map_err(|code| self.error("read", code))
    }

    fn copy(
        &self,
        stream: &mut VulkanStream,
        src: (&VulkanBuffer, usize),
        dst: (&VulkanBuffer, usize),
        bytes: usize,
    ) -> Result<(), DeviceError> {
        if bytes == 0 {
            return Ok(());
        }
        src.0.check("copy", (src.1, bytes), false)?;
        dst.0.check("copy", (dst.1, bytes), true)?;
        let copied = stream.copy((&src.0.region, src.1), (&dst.0.region, dst.1), bytes);
        copied.map_err(|code| self.error("copy", code))
    }

    fn launch(
        &self,
        stream: &mut VulkanStream,
        program: &VulkanProgram,
        args: &[Arg<'_, VulkanBuffer>],
    ) -> Result<(), DeviceError> {
        program.0.signature.check(args, VulkanBuffer::extent)?;
        let run = self.run(stream, program, args);
        run.map_err(|code| self.error(program.0.kernel.name(), code))
    }

    fn replay(
        &self,
        stream: &mut VulkanStream,
        recording: &mut Recording,
        commands: &[Command<'_, VulkanProgram, VulkanBuffer>],
    ) -> Result<(), DeviceError> {
        for command in commands {
            command.program.0.signature.check(command.args, VulkanBuffer::extent)?;
        }
        let played = self.play(stream, recording, commands);
        if played.map_err(|code| self.error("replay", code))? {
            return Ok(());
        }
        commands.iter().try_for_each(|c| self.launch(stream, c.program, c.args))
    }

    fn record(&self, stream: &mut VulkanStream) -> Result<VulkanEvent, DeviceError> {
        let stamp = stream.stamp().map_err(|code| self.error("record", code))?;
        // Made first, so that the stamp is given back in any case.
        let mut event = VulkanEvent { gpu: Arc::clone(&self.gpu), ticket: 0, stamp };
        event.ticket = stream.ticket().map_err(|code| self.error("record", code))?;
        Ok(event)
    }

    fn wait(&self, stream: &mut VulkanStream, _: &VulkanEvent) -> Result<(), DeviceError> {
        // The event's commands have been submitted to the same queue.
        stream.after_all();
        Ok(())
    }

    fn synchronize(&self, event: &VulkanEvent) -> Result<(), DeviceError> {
        self.gpu.wait(event.ticket).map_err(|code| self.error("synchronize", code))
    }

    fn host_view(&self, buffer: &Arc<VulkanBuffer>, bytes: usize) -> Option<HostOwner> {
        let Region { block, offset, bytes: all, .. } = &*buffer.region;
        if bytes > *all || block.slice(*offset, bytes).is_none() {
            return None;
        }
        buffer.looks.fetch_add(1, Ordering::AcqRel);
        Some(Arc::new(Bytes { buffer: buffer.clone(), bytes }))
    }

    fn elapsed(&self, from: &VulkanEvent, to: &VulkanEvent) -> Option<Duration> {
        if !self.gpu.is_done(from.ticket) || !self.gpu.is_done(to.ticket) {
            return None;
        }
        let (from, to) = (self.gpu.time(from.stamp?)?, self.gpu.time(to.stamp?)?);
        Some(Duration::from_nanos((to - from).max(0.0) as u64))
    }
}
