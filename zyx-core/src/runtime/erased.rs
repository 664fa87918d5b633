//! The only place where backend types are erased.
//!
//! Two object-safe traits are implemented for every [`hal::Backend`] and [`hal::Device`]; buffers
//! and programs become `Arc<dyn Any>`. A downcast can fail only if a buffer of one device reaches
//! another, which [`Device`](super::Device) refuses, so it is an invariant and not an error.

use crate::clock::Instant;
use crate::hal::{
    self, Arg, Call, Caps, Command, CompileError, DeviceError, DeviceInfo, HostOwner, Language,
    OnRead, RawKernel, Recording, Signature, Traffic,
};
use crate::ir::{Member, Verified};
use smallvec::SmallVec;
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// Memory of some device.
pub(crate) type RawBuffer = Arc<dyn Any + Send + Sync>;
/// A command queue of some device.
pub(crate) type RawStream = Box<dyn Any + Send>;
/// A point in a command queue of some device.
pub(crate) type RawEvent = Box<dyn Any + Send + Sync>;

/// A compiled kernel or library call of some device; cheap to clone.
#[derive(Clone)]
pub struct Program {
    compiled: Arc<dyn Any + Send + Sync>,
    name: Arc<str>,
    /// Launches it takes; if several, the last argument of each is its number.
    parts: u64,
    /// Whether no compiler had to make it.
    loaded: bool,
    bytes: usize,
    /// What arguments it takes; of library calls their devices know.
    signature: Option<Arc<Signature>>,
    /// What tells the device apart that it was compiled for.
    home: Option<Home>,
    /// Where its arguments are among those given, of a library's program in the place of a kernel.
    order: Option<[u8; 3]>,
    /// Scalars that it takes besides those given.
    more: Option<Arc<More>>,
}

/// Scalars of general kernels, each with its place among all of a launch; and the members whose they are.
#[derive(Clone, Debug, Default)]
pub(super) struct More {
    pub(super) scalars: Vec<(u32, u64)>,
    pub(super) members: Vec<Arc<Member>>,
}

impl More {
    /// Adds those of a member behind so many others.
    pub(super) fn add(&mut self, others: usize, member: Arc<Member>) {
        self.scalars.extend((others as u32..).zip(member.values().iter().copied()));
        self.members.push(member);
    }
}

/// What tells open devices apart: equal for one device only, and as long as anything of it lives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Home(Arc<()>);

impl PartialEq for Home {
    fn eq(&self, other: &Home) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Program {
    fn new<D: hal::Device>(device: &D, compiled: D::Program, name: &str) -> Program {
        let loaded = !device.was_compiled(&compiled);
        let bytes = device.program_bytes(&compiled) + name.len();
        let compiled = Arc::new(compiled);
        let name = name.into();
        let (signature, home, order, more) = (None, None, None, None);
        Program { compiled, name, parts: 1, loaded, bytes, signature, home, order, more }
    }

    /// The same, of a device and for a kernel with this signature that was cut into so many parts.
    pub(crate) fn of(self, home: &Home, signature: Option<Signature>, parts: u64) -> Program {
        Program { parts, signature: signature.map(Arc::new), home: Some(home.clone()), ..self }
    }

    /// The same, which does with scalars at these places what a kernel of this signature does.
    pub(super) fn given(self, name: &str, signature: Option<Signature>, more: More) -> Program {
        let more = Some(Arc::new(more));
        let (name, signature) = (name.into(), signature.map(Arc::new));
        Program { name, signature, more, ..self }
    }

    /// The same with arguments from these places.
    pub(crate) fn ordered(self, order: Option<[u8; 3]>) -> Program {
        Program { order, ..self }
    }

    /// What arguments it takes, unless it is a library call.
    pub(crate) fn signature(&self) -> Option<&Signature> {
        self.signature.as_deref()
    }

    pub(crate) fn is_of(&self, home: &Home) -> bool {
        self.home.as_ref() == Some(home)
    }

    /// What tells programs apart while they live.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.compiled).cast::<()>() as usize
    }

    /// Bytes of host memory it takes, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether this is the only handle.
    pub(crate) fn is_unique(&self) -> bool {
        Arc::strong_count(&self.compiled) == 1
    }

    pub(crate) fn parts(&self) -> u64 {
        self.parts
    }

    /// Whether it was on disk from an earlier process, or is part of a library.
    pub(crate) fn is_loaded(&self) -> bool {
        self.loaded
    }

    /// The name of the kernel, or of what the library computes.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Program({})", self.name)
    }
}

pub(crate) trait ErasedBackend: Send + Sync {
    fn name(&self) -> &'static str;
    fn devices(&self) -> Vec<DeviceInfo>;
    fn open(&self, ordinal: usize) -> Result<Box<dyn ErasedDevice>, DeviceError>;
}

impl<B: hal::Backend> ErasedBackend for B {
    fn name(&self) -> &'static str {
        B::NAME
    }

    fn devices(&self) -> Vec<DeviceInfo> {
        hal::Backend::devices(self)
    }

    fn open(&self, ordinal: usize) -> Result<Box<dyn ErasedDevice>, DeviceError> {
        Ok(Box::new(hal::Backend::open(self, ordinal)?))
    }
}

pub(crate) trait ErasedDevice: Send + Sync {
    fn info(&self) -> &DeviceInfo;
    fn caps(&self) -> &Caps;
    fn traffic(&self) -> Traffic;
    fn driver(&self) -> String;
    fn source(&self, kernel: &Verified) -> Result<String, CompileError>;
    fn compile_all(&self, kernels: &[Verified]) -> Result<Vec<Program>, CompileError>;
    fn raw_languages(&self) -> &'static [Language];
    fn compile_raw(&self, kernel: &RawKernel) -> Result<Program, CompileError>;
    fn alloc(&self, bytes: usize) -> Result<RawBuffer, DeviceError>;
    fn stream(&self) -> Result<RawStream, DeviceError>;
    fn write(
        &self,
        stream: &mut RawStream,
        dst: &RawBuffer,
        offset: usize,
        src: &[u8],
    ) -> Result<(), DeviceError>;
    fn read(
        &self,
        stream: &mut RawStream,
        src: &RawBuffer,
        offset: usize,
        dst: &mut [u8],
    ) -> Result<(), DeviceError>;
    fn replay(
        &self,
        stream: &mut RawStream,
        recording: &mut Recording,
        commands: &[Command<'_, Program, RawBuffer>],
    ) -> Result<(), DeviceError>;
    /// Runs one command as a submission of its own.
    fn replay_alone(
        &self,
        stream: &mut RawStream,
        command: &Command<'_, Program, RawBuffer>,
    ) -> Result<(), DeviceError>;
    /// Runs one command alone, waits, and gives the time the device took.
    fn replay_timed(
        &self,
        stream: &mut RawStream,
        command: &Command<'_, Program, RawBuffer>,
    ) -> Result<Duration, DeviceError>;
    fn synchronize(&self, stream: &mut RawStream) -> Result<(), DeviceError>;
    fn record(&self, stream: &mut RawStream) -> Result<RawEvent, DeviceError>;
    /// Reads on a stream when an event of another has happened, and waits for nothing else.
    fn read_after(
        &self,
        stream: &mut RawStream,
        event: &RawEvent,
        src: &RawBuffer,
        dst: &mut [u8],
    ) -> Result<(), DeviceError>;
    fn tells(&self) -> bool;
    fn read_later(&self, stream: &mut RawStream, src: &RawBuffer, bytes: usize, done: OnRead);
    fn offers(&self, call: &Call) -> Option<bool>;
    fn library(&self, call: &Call) -> Option<Program>;
    fn library_way(&self, call: &Call, way: usize) -> Option<(String, Program)>;
    fn adopt(&self, owner: &HostOwner) -> Option<RawBuffer>;
    fn share(&self, raw: &RawBuffer);
    fn idle(&self, raw: &RawBuffer);
    fn host_view(&self, raw: &RawBuffer, bytes: usize) -> Option<HostOwner>;
}

fn buffer<D: hal::Device>(raw: &RawBuffer) -> &D::Buffer {
    raw.downcast_ref().expect("invariant: a buffer stays on its device")
}

/// Adds the arguments of a command, and gives how many they are.
fn arguments<'a, D: hal::Device>(
    command: &Command<'a, Program, RawBuffer>,
    all: &mut SmallVec<[Arg<'a, D::Buffer>; 16]>,
) -> usize {
    let Command { args, program, .. } = *command;
    let first = all.len();
    let at = |i: usize| program.order.map_or(i, |order| usize::from(order[i]));
    all.extend((0..args.len()).map(|i| match args[at(i)] {
        Arg::Buffer(raw, offset) => Arg::Buffer(buffer::<D>(raw), offset),
        Arg::Scalar(bits) => Arg::Scalar(bits),
    }));
    if let Some(more) = &program.more {
        let is_scalar = |arg: &Arg<'_, _>| matches!(arg, Arg::Scalar(_));
        let scalars = all.iter().skip(first).position(is_scalar).map_or(all.len(), |n| first + n);
        more.scalars.iter().for_each(|&(place, bits)| {
            all.insert(scalars + place as usize, Arg::Scalar(bits));
        });
    }
    all.len() - first
}

fn stream<D: hal::Device>(raw: &mut RawStream) -> &mut D::Stream {
    raw.downcast_mut().expect("invariant: a stream stays on its device")
}

impl<D: hal::Device> ErasedDevice for D {
    fn info(&self) -> &DeviceInfo {
        hal::Device::info(self)
    }

    fn caps(&self) -> &Caps {
        hal::Device::caps(self)
    }

    fn traffic(&self) -> Traffic {
        hal::Device::traffic(self)
    }

    fn driver(&self) -> String {
        hal::Device::driver(self)
    }

    fn source(&self, kernel: &Verified) -> Result<String, CompileError> {
        <D as hal::Device>::source(kernel, hal::Device::caps(self))
    }

    fn compile_all(&self, kernels: &[Verified]) -> Result<Vec<Program>, CompileError> {
        let programs = hal::Device::compile_all(self, kernels)?;
        let named = programs.into_iter().zip(kernels);
        Ok(named.map(|(program, kernel)| Program::new(self, program, kernel.name())).collect())
    }

    fn raw_languages(&self) -> &'static [Language] {
        hal::Device::raw_languages(self)
    }

    fn compile_raw(&self, kernel: &RawKernel) -> Result<Program, CompileError> {
        Ok(Program::new(self, hal::Device::compile_raw(self, kernel)?, &kernel.name))
    }

    fn alloc(&self, bytes: usize) -> Result<RawBuffer, DeviceError> {
        Ok(Arc::new(hal::Device::alloc(self, bytes)?))
    }

    fn stream(&self) -> Result<RawStream, DeviceError> {
        Ok(Box::new(hal::Device::stream(self)?))
    }

    fn write(
        &self,
        s: &mut RawStream,
        dst: &RawBuffer,
        offset: usize,
        src: &[u8],
    ) -> Result<(), DeviceError> {
        hal::Device::write(self, stream::<D>(s), buffer::<D>(dst), offset, src)
    }

    fn read(
        &self,
        s: &mut RawStream,
        src: &RawBuffer,
        offset: usize,
        dst: &mut [u8],
    ) -> Result<(), DeviceError> {
        hal::Device::read(self, stream::<D>(s), buffer::<D>(src), offset, dst)
    }

    fn replay(
        &self,
        s: &mut RawStream,
        recording: &mut Recording,
        commands: &[Command<'_, Program, RawBuffer>],
    ) -> Result<(), DeviceError> {
        let mut args: SmallVec<[Arg<'_, D::Buffer>; 16]> = SmallVec::new();
        let counts: SmallVec<[usize; 4]> =
            commands.iter().map(|command| arguments::<D>(command, &mut args)).collect();
        let mut rest = args.as_slice();
        let commands: SmallVec<[Command<'_, D::Program, D::Buffer>; 4]> = commands
            .iter()
            .zip(counts)
            .map(|(command, count)| {
                let program = command.program.compiled.downcast_ref();
                let program = program.expect("invariant: a program stays on its device");
                let (args, others) = rest.split_at(count);
                rest = others;
                Command { program, args, after: command.after }
            })
            .collect();
        hal::Device::replay(self, stream::<D>(s), recording, &commands)
    }

    fn replay_alone(
        &self,
        s: &mut RawStream,
        command: &Command<'_, Program, RawBuffer>,
    ) -> Result<(), DeviceError> {
        let alone = Command { after: &[], ..*command };
        ErasedDevice::replay(self, s, &mut Recording::default(), &[alone])?;
        // A mark makes devices that gather commands hand over what they have.
        hal::Device::record(self, stream::<D>(s)).map(|_| ())
    }

    fn replay_timed(
        &self,
        s: &mut RawStream,
        command: &Command<'_, Program, RawBuffer>,
    ) -> Result<Duration, DeviceError> {
        ErasedDevice::synchronize(self, s)?;
        let program = command.program.compiled.downcast_ref::<D::Program>();
        let program = program.expect("invariant: a program stays on its device");
        let mut args: SmallVec<[Arg<'_, D::Buffer>; 16]> = SmallVec::new();
        arguments::<D>(command, &mut args);
        let s = hal::Device::timed(self, stream::<D>(s))?;
        let from = hal::Device::record(self, s)?;
        hal::Device::synchronize(self, &from)?;
        let start = Instant::now();
        hal::Device::launch(self, s, program, &args)?;
        let to = hal::Device::record(self, s)?;
        hal::Device::synchronize(self, &to)?;
        Ok(hal::Device::elapsed(self, &from, &to).unwrap_or_else(|| start.elapsed()))
    }

    fn synchronize(&self, s: &mut RawStream) -> Result<(), DeviceError> {
        let event = hal::Device::record(self, stream::<D>(s))?;
        hal::Device::synchronize(self, &event)
    }

    fn record(&self, s: &mut RawStream) -> Result<RawEvent, DeviceError> {
        Ok(Box::new(hal::Device::record(self, stream::<D>(s))?))
    }

    fn tells(&self) -> bool {
        hal::Device::tells(self)
    }

    fn read_later(&self, s: &mut RawStream, src: &RawBuffer, bytes: usize, done: OnRead) {
        hal::Device::read_later(self, stream::<D>(s), buffer::<D>(src), bytes, done);
    }

    fn read_after(
        &self,
        s: &mut RawStream,
        event: &RawEvent,
        src: &RawBuffer,
        dst: &mut [u8],
    ) -> Result<(), DeviceError> {
        let event = event.downcast_ref().expect("invariant: an event stays on its device");
        hal::Device::wait(self, stream::<D>(s), event)?;
        if hal::Device::caps(self).unified_memory {
            // The host may read in place, behind nothing but what is on this stream.
            hal::Device::synchronize(self, event)?;
        }
        hal::Device::read(self, stream::<D>(s), buffer::<D>(src), 0, dst)
    }

    fn offers(&self, call: &Call) -> Option<bool> {
        hal::Device::offers(self, call)
    }

    fn library(&self, call: &Call) -> Option<Program> {
        hal::Device::library(self, call).map(|program| Program::new(self, program, &call.name()))
    }

    fn library_way(&self, call: &Call, way: usize) -> Option<(String, Program)> {
        let (what, program) = hal::Device::library_way(self, call, way)?;
        Some((what, Program::new(self, program, &call.name())))
    }

    fn adopt(&self, owner: &HostOwner) -> Option<RawBuffer> {
        Some(Arc::new(hal::Device::adopt(self, owner)?))
    }

    fn share(&self, raw: &RawBuffer) {
        hal::Device::share(self, buffer::<D>(raw));
    }

    fn idle(&self, raw: &RawBuffer) {
        hal::Device::idle(self, buffer::<D>(raw));
    }

    fn host_view(&self, raw: &RawBuffer, bytes: usize) -> Option<HostOwner> {
        hal::Device::host_view(self, &raw.clone().downcast().ok()?, bytes)
    }
}
