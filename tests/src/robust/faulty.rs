//! A backend around another, whose calls are counted and fail on demand.
//!
//! It stands where the driver stands for the core: what it refuses, the core sees refused. Of a
//! list of launches that is to fail, the first half runs, as may happen when a driver gives up
//! midway. It also counts the buffers that are alive below the core, so that a leak there is seen
//! whatever the core's own counters say. And it can run lists of launches as several queues that
//! do not wait for one another might.

use crate::Rng;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use zyx_core::DeviceInfo;
use zyx_core::hal::{
    self, Arg, Backend, Caps, Command, CompileError, Device, DeviceError, Recording,
};
use zyx_core::ir::{Kernel, Verified};

/// Kinds of calls that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// An allocation, refused by the driver.
    Alloc,
    /// An allocation, for want of memory.
    AllocFull,
    /// Kernels of a plan.
    Compile,
    /// A transfer to the device.
    Write,
    /// A transfer from the device.
    Read,
    /// A copy on the device.
    Copy,
    /// A list of launches.
    Launch,
    /// A mark in the stream.
    Record,
    /// Waiting for a mark.
    Synchronize,
}

impl Call {
    /// All kinds.
    pub const ALL: [Call; 9] = [
        Call::Alloc,
        Call::AllocFull,
        Call::Compile,
        Call::Write,
        Call::Read,
        Call::Copy,
        Call::Launch,
        Call::Record,
        Call::Synchronize,
    ];
}

/// What was called, and what is to fail. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<State>);

#[derive(Debug, Default)]
struct State {
    calls: [AtomicUsize; Call::ALL.len()],
    armed: Mutex<Option<(Call, usize)>>,
    buffers: AtomicUsize,
    /// How many queues share a list of launches, and who is next.
    queues: Mutex<Option<(usize, Rng)>>,
    /// What the compiler makes of a kernel instead.
    wrong: Mutex<Option<fn(&Kernel) -> Kernel>>,
}

impl Faults {
    fn armed(&self) -> MutexGuard<'_, Option<(Call, usize)>> {
        self.0.armed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts from zero again and lets the call of this kind fail that comes after `n` others.
    pub fn arm(&self, call: Call, n: usize) {
        self.0.calls.iter().for_each(|calls| calls.store(0, Relaxed));
        *self.armed() = Some((call, n));
    }

    /// Lets nothing fail; whether what was to fail has not.
    pub fn disarm(&self) -> bool {
        self.armed().take().is_some()
    }

    /// Calls of a kind since counting started.
    pub fn calls(&self, call: Call) -> usize {
        self.0.calls[call as usize].load(Relaxed)
    }

    /// Counts from zero.
    pub fn restart(&self) {
        self.0.calls.iter().for_each(|calls| calls.store(0, Relaxed));
    }

    /// Buffers that are alive below the core.
    pub fn buffers(&self) -> usize {
        self.0.buffers.load(Relaxed)
    }

    /// From now on commands of a list go to one of so many queues at random, and queues advance at
    /// random, held back by nothing but the dependencies between commands.
    pub fn queues(&self, n: usize, seed: u64) {
        *self.0.queues.lock().unwrap_or_else(PoisonError::into_inner) = Some((n, Rng::new(seed)));
    }

    /// From now on the compiler takes another kernel than the one it is given: code that is wrong.
    pub fn miscompile(&self, wrong: fn(&Kernel) -> Kernel) {
        *self.0.wrong.lock().unwrap_or_else(PoisonError::into_inner) = Some(wrong);
    }

    /// The kernel that is compiled for this one.
    fn compiled(&self, kernel: &Verified) -> Verified {
        let wrong = *self.0.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        let verified = |kernel: Kernel| Verified::new(&kernel).expect("a wrong kernel is a kernel");
        wrong.map_or_else(|| kernel.clone(), |wrong| verified(wrong(kernel)))
    }

    /// The order in which queues get through a list, if there are queues.
    fn order(&self, after: &[&[u32]]) -> Option<Vec<usize>> {
        let mut queues = self.0.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let (n, rng) = queues.as_mut()?;
        let mut waiting: Vec<VecDeque<usize>> = vec![VecDeque::new(); *n];
        (0..after.len()).for_each(|i| waiting[rng.below(*n)].push_back(i));
        let (mut done, mut order) = (vec![false; after.len()], Vec::new());
        while order.len() < after.len() {
            let queue = &mut waiting[rng.below(*n)];
            let ready = |&&i: &&usize| after[i].iter().all(|&before| done[before as usize]);
            if let Some(&i) = queue.front().filter(ready) {
                queue.pop_front();
                done[i] = true;
                order.push(i);
            }
        }
        Some(order)
    }

    /// Counts a call; whether it has to fail.
    fn fails(&self, call: Call) -> bool {
        let before = self.0.calls[call as usize].fetch_add(1, Relaxed);
        let mut armed = self.armed();
        let hit = *armed == Some((call, before));
        if hit {
            *armed = None;
        }
        hit
    }

    fn check(&self, call: Call) -> Result<(), DeviceError> {
        if self.fails(call) { Err(injected(call)) } else { Ok(()) }
    }
}

/// What stands in every injected error.
pub const INJECTED: &str = "injected fault";

fn injected(call: Call) -> DeviceError {
    DeviceError::Driver { context: format!("{call:?}"), reason: INJECTED.to_owned() }
}

/// A backend whose devices fail on demand.
#[derive(Clone, Debug)]
pub struct Faulty<B> {
    inner: B,
    faults: Faults,
}

impl<B> Faulty<B> {
    /// Around `inner`, ruled by `faults`.
    pub fn new(inner: B, faults: &Faults) -> Faulty<B> {
        Faulty { inner, faults: faults.clone() }
    }
}

/// A device that fails on demand.
#[derive(Debug)]
pub struct FaultyDevice<D> {
    inner: D,
    faults: Faults,
}

/// Memory that is counted.
#[derive(Debug)]
pub struct FaultyBuffer<B> {
    inner: B,
    faults: Faults,
}

impl<B> Drop for FaultyBuffer<B> {
    fn drop(&mut self) {
        self.faults.0.buffers.fetch_sub(1, Relaxed);
    }
}

impl<B: Backend> Backend for Faulty<B> {
    const NAME: &'static str = B::NAME;
    type Device = FaultyDevice<B::Device>;

    fn devices(&self) -> Vec<DeviceInfo> {
        self.inner.devices()
    }

    fn open(&self, ordinal: usize) -> Result<Self::Device, DeviceError> {
        let inner = self.inner.open(ordinal)?;
        Ok(FaultyDevice { inner, faults: self.faults.clone() })
    }
}

/// The arguments as the device inside knows them.
fn unwrapped<'a, B>(args: &[Arg<'a, FaultyBuffer<B>>]) -> Vec<Arg<'a, B>> {
    let arg = |arg: &Arg<'a, FaultyBuffer<B>>| match *arg {
        Arg::Buffer(buffer, offset) => Arg::Buffer(&buffer.inner, offset),
        Arg::Scalar(bits) => Arg::Scalar(bits),
    };
    args.iter().map(arg).collect()
}

impl<D: Device> Device for FaultyDevice<D> {
    type Buffer = FaultyBuffer<D::Buffer>;
    type Program = D::Program;
    type Stream = D::Stream;
    type Event = D::Event;

    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn caps(&self) -> &Caps {
        self.inner.caps()
    }

    fn traffic(&self) -> hal::Traffic {
        self.inner.traffic()
    }

    fn source(kernel: &Verified, caps: &Caps) -> Result<String, CompileError> {
        D::source(kernel, caps)
    }

    fn compile(&self, kernel: &Verified) -> Result<D::Program, CompileError> {
        if self.faults.fails(Call::Compile) {
            let kernel = kernel.name().to_owned();
            return Err(CompileError { kernel, log: INJECTED.to_owned() });
        }
        self.inner.compile(&self.faults.compiled(kernel))
    }

    fn compile_all(&self, kernels: &[Verified]) -> Result<Vec<D::Program>, CompileError> {
        if self.faults.fails(Call::Compile) {
            let kernel = kernels.first().map(|k| k.name().to_owned()).unwrap_or_default();
            return Err(CompileError { kernel, log: INJECTED.to_owned() });
        }
        let kernels: Vec<Verified> = kernels.iter().map(|k| self.faults.compiled(k)).collect();
        self.inner.compile_all(&kernels)
    }

    fn raw_languages(&self) -> &'static [hal::Language] {
        self.inner.raw_languages()
    }

    fn compile_raw(&self, kernel: &hal::RawKernel) -> Result<D::Program, CompileError> {
        if self.faults.fails(Call::Compile) {
            return Err(kernel.error(INJECTED));
        }
        self.inner.compile_raw(kernel)
    }

    fn was_compiled(&self, program: &D::Program) -> bool {
        self.inner.was_compiled(program)
    }

    fn alloc(&self, bytes: usize) -> Result<Self::Buffer, DeviceError> {
        self.faults.check(Call::Alloc)?;
        if self.faults.fails(Call::AllocFull) {
            let device = self.info().spec.clone();
            let (requested, in_use, live) = (bytes, 0, Vec::new());
            return Err(DeviceError::OutOfMemory { device, requested, in_use, live });
        }
        let inner = self.inner.alloc(bytes)?;
        self.faults.0.buffers.fetch_add(1, Relaxed);
        Ok(FaultyBuffer { inner, faults: self.faults.clone() })
    }

    fn stream(&self) -> Result<D::Stream, DeviceError> {
        self.inner.stream()
    }

    fn write(
        &self,
        stream: &mut D::Stream,
        dst: &Self::Buffer,
        offset: usize,
        src: &[u8],
    ) -> Result<(), DeviceError> {
        self.faults.check(Call::Write)?;
        self.inner.write(stream, &dst.inner, offset, src)
    }

    fn read(
        &self,
        stream: &mut D::Stream,
        src: &Self::Buffer,
        offset: usize,
        dst: &mut [u8],
    ) -> Result<(), DeviceError> {
        self.faults.check(Call::Read)?;
        self.inner.read(stream, &src.inner, offset, dst)
    }

    fn copy(
        &self,
        stream: &mut D::Stream,
        src: (&Self::Buffer, usize),
        dst: (&Self::Buffer, usize),
        bytes: usize,
    ) -> Result<(), DeviceError> {
        self.faults.check(Call::Copy)?;
        self.inner.copy(stream, (&src.0.inner, src.1), (&dst.0.inner, dst.1), bytes)
    }

    fn launch(
        &self,
        stream: &mut D::Stream,
        program: &D::Program,
        args: &[Arg<'_, Self::Buffer>],
    ) -> Result<(), DeviceError> {
        self.faults.check(Call::Launch)?;
        self.inner.launch(stream, program, &unwrapped(args))
    }

    fn replay(
        &self,
        stream: &mut D::Stream,
        recording: &mut Recording,
        commands: &[Command<'_, D::Program, Self::Buffer>],
    ) -> Result<(), DeviceError> {
        let args: Vec<Vec<Arg<'_, D::Buffer>>> =
            commands.iter().map(|command| unwrapped(command.args)).collect();
        let commands: Vec<Command<'_, D::Program, D::Buffer>> = commands
            .iter()
            .zip(&args)
            .map(|(command, args)| Command { program: command.program, args, after: command.after })
            .collect();
        if self.faults.fails(Call::Launch) {
            for command in &commands[..commands.len() / 2] {
                self.inner.launch(stream, command.program, command.args)?;
            }
            return Err(injected(Call::Launch));
        }
        let after: Vec<&[u32]> = commands.iter().map(|command| command.after).collect();
        match self.faults.order(&after) {
            Some(order) => order
                .into_iter()
                .try_for_each(|i| self.inner.launch(stream, commands[i].program, commands[i].args)),
            None => self.inner.replay(stream, recording, &commands),
        }
    }

    fn record(&self, stream: &mut D::Stream) -> Result<D::Event, DeviceError> {
        self.faults.check(Call::Record)?;
        self.inner.record(stream)
    }

    fn wait(&self, stream: &mut D::Stream, event: &D::Event) -> Result<(), DeviceError> {
        self.inner.wait(stream, event)
    }

    fn synchronize(&self, event: &D::Event) -> Result<(), DeviceError> {
        self.faults.check(Call::Synchronize)?;
        self.inner.synchronize(event)
    }

    fn timed<'a>(&self, stream: &'a mut D::Stream) -> Result<&'a mut D::Stream, DeviceError> {
        self.inner.timed(stream)
    }

    fn elapsed(&self, from: &D::Event, to: &D::Event) -> Option<Duration> {
        self.inner.elapsed(from, to)
    }

    fn offers(&self, call: &hal::Call) -> Option<bool> {
        self.inner.offers(call)
    }

    fn library(&self, call: &hal::Call) -> Option<D::Program> {
        self.inner.library(call)
    }

    fn library_way(&self, call: &hal::Call, way: usize) -> Option<(String, D::Program)> {
        self.inner.library_way(call, way)
    }
}
