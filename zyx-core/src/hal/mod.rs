//! The contract between the core and a backend.
//!
//! A backend translates kernels and drives one API; it never sees a tensor or a graph node. The
//! rules:
//!
//! * Methods of [`Device`] enqueue and return; `read` and `synchronize` wait, and `write`, `replay` and
//!   `alloc` where staging, recordings or memory have run out.
//! * Commands on one stream take effect in order. Each method gets its stream exclusively
//!   (`&mut Stream`).
//! * [`Device::compile`] takes [`Verified`] kernels only: well-formed, with accesses in bounds of
//!   arguments that fit the kernel's [`Signature`]. [`Device::launch`] checks the arguments by it, so
//!   calling a backend is safe. A kernel that is not legal for the device's [`Caps`] is an error.
//! * [`Device::compile_raw`] takes a [`RawKernel`], code that its author promises to keep to the declared
//!   arguments; making one is unsafe, compiling and launching it is safe.
//! * Memory that is lent ([`Device::adopt`]) or that the host looks at ([`Device::host_view`]) is
//!   never written: doing so is an error.
//! * A buffer argument is a buffer and a byte offset into it; offsets are multiples of
//!   [`Caps::offset_align`].
//! * A missing driver is an empty device list, never an error, a panic or an abort.
//! * Errors report what a caller could not foresee (memory, a lost device, a driver's refusal).
//!   After an error the device stays usable unless the error is [`DeviceError::Lost`].

mod attention;
mod cache;
mod call;
mod convolution;
mod error;
mod flash;
mod interrupt;
mod plain;
pub mod probe;
mod raw;
mod replay;
mod sha256;
mod signature;
mod threads;
mod traffic;

pub use attention::AttentionSpec;
pub(crate) use cache::size;
pub use cache::{DiskCache, caches, check_private};
pub use call::{Call, ContractDim, ContractSpec, Part, PartWork, Prologue};
pub use convolution::{ConvolutionAxis, ConvolutionSpec, Convolved};
pub use error::DeviceError;
pub use flash::{FLASH_VARS, FlashOperand, FlashSpec, FlashSum, FlashTile};
pub(crate) use interrupt::{Attempt, attempt};
pub use interrupt::{
    Mode, STOPS_AFTER, Watch, ask_until, handle_signals, handles_signals, interrupted,
    is_interrupted, request_stop, set_interrupt,
};
pub use raw::{Language, RawArg, RawKernel, RawParam, RawSource};
pub use replay::{Command, Recording};
pub use signature::{Extent, Signature};
pub use threads::on_threads;
pub use traffic::{Traffic, TrafficCounter};
#[doc(inline)]
pub use zyx_gemm::fork;
#[doc(inline)]
pub use zyx_ir::CompileError;
#[doc(inline)]
pub use zyx_ir::caps::{Caps, Flash, HURRIED_LAUNCH, Progress, Rounding, WATCHED_LAUNCH};

use crate::ir::Verified;
use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Nanoseconds for each operation of a kernel, roughly, that compilers take.
const COMPILATION: usize = 50_000;

/// Owns host memory that a device may read in place. The bytes must stay where and as they are
/// while the owner lives.
pub type HostOwner = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// What a device is called and how to ask for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// `backend:ordinal`, as in `cuda:0`.
    pub spec: String,
    /// The name the driver gives.
    pub name: String,
    /// Bytes of memory, 0 if unknown.
    pub memory: u64,
    /// What runs the kernels.
    pub kind: DeviceKind,
}

/// What runs the kernels of a device, in the order in which a program without a wish wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeviceKind {
    /// A graphics processor or another accelerator.
    Gpu,
    /// The CPU, by code made for it here.
    Cpu,
    /// The CPU, by a driver that stands in for a GPU.
    Software,
    /// The interpreter: slow, and right by definition.
    Interpreter,
}

impl std::fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            DeviceKind::Gpu => "gpu",
            DeviceKind::Cpu => "cpu",
            DeviceKind::Software => "software",
            DeviceKind::Interpreter => "interpreter",
        })
    }
}

/// Sorts by a number; items of equal numbers keep their order. One sort, of pairs, is compiled for items of all types.
pub(crate) fn sort_by_number<T>(items: &mut Vec<T>, number: impl Fn(&T) -> i128) {
    let mut order: Vec<(i128, usize)> =
        items.iter().enumerate().map(|(i, item)| (number(item), i)).collect();
    order.sort_unstable();
    let mut before: Vec<Option<T>> = items.drain(..).map(Some).collect();
    items.extend(order.into_iter().filter_map(|(_, i)| before[i].take()));
}

/// The data in a mutex. Where every critical section leaves it whole, a panic elsewhere while it was
/// held changes nothing.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A vector with room for `n` items.
///
/// # Errors
/// When the host has not so much memory.
pub fn host_room<T>(n: usize) -> Result<Vec<T>, DeviceError> {
    let mut vector = Vec::new();
    let bytes = n.saturating_mul(size_of::<T>());
    let refused = |_| DeviceError::out_of_memory("the host", bytes, 0);
    vector.try_reserve_exact(n).map_err(refused)?;
    Ok(vector)
}

/// One argument of a launch: `Param`s by slot, then `Var`s by slot.
#[derive(Debug)]
pub enum Arg<'a, B> {
    /// A buffer from a byte offset on.
    Buffer(&'a B, usize),
    /// The bits of a scalar.
    Scalar(u64),
}

impl<B> Clone for Arg<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Arg<'_, B> {}

/// Finds devices of one driver API and opens them.
pub trait Backend: Send + Sync + 'static {
    /// The first part of a device spec, as in `cuda`.
    const NAME: &'static str;
    /// The device this backend opens.
    type Device: Device;

    /// The devices that are present.
    fn devices(&self) -> Vec<DeviceInfo>;

    /// Opens one of them.
    ///
    /// # Errors
    /// When the ordinal is out of range or the driver refuses.
    fn open(&self, ordinal: usize) -> Result<Self::Device, DeviceError>;
}

/// What is called with bytes that were read.
pub type OnRead = Box<dyn FnOnce(Result<Vec<u8>, DeviceError>) + Send>;

/// An open device. See the module documentation for the rules.
pub trait Device: Send + Sync + 'static {
    /// Device memory; freed on drop, at the latest when queued work on it is done.
    type Buffer: Send + Sync + 'static;
    /// A compiled kernel or an accepted library call.
    type Program: Send + Sync + 'static;
    /// An ordered queue of commands.
    type Stream: Send + 'static;
    /// A point in a stream: it is reached when all commands before it are done.
    type Event: Send + Sync + 'static;

    /// Name and memory.
    fn info(&self) -> &DeviceInfo;

    /// What the device can do.
    fn caps(&self) -> &Caps;

    /// What its driver has received so far.
    fn traffic(&self) -> Traffic;

    /// Driver, compiler and their versions, in words: what was measured with one says nothing of
    /// another. Empty where all is part of the program itself.
    fn driver(&self) -> String {
        String::new()
    }

    /// The source the kernel translates to; a pure function, so golden tests need no device.
    ///
    /// # Errors
    /// When the kernel needs what `caps` lacks.
    fn source(kernel: &Verified, caps: &Caps) -> Result<String, CompileError>
    where
        Self: Sized;

    /// Compiles a kernel.
    ///
    /// # Errors
    /// With the compiler's log.
    fn compile(&self, kernel: &Verified) -> Result<Self::Program, CompileError>;

    /// Compiles the kernels of a plan: by default in several threads, those of most operations first.
    ///
    /// # Errors
    /// With the compiler's log of the first that fails.
    fn compile_all(&self, kernels: &[Verified]) -> Result<Vec<Self::Program>, CompileError> {
        let nanoseconds = |i: usize| COMPILATION * kernels[i].ops().len();
        let watch = Watch::here();
        let compile = |i: usize| match watch.is_stopped() {
            true => Err(CompileError::new(&kernels[i], "interrupted")),
            false => self.compile(&kernels[i]),
        };
        on_threads(kernels.len(), nanoseconds, compile).into_iter().collect()
    }

    /// The languages of raw kernels that this device compiles.
    fn raw_languages(&self) -> &'static [Language] {
        &[]
    }

    /// Compiles a kernel that a user wrote. Its launches take the arguments of [`Signature::of_raw`].
    ///
    /// # Errors
    /// When the device has no such language, the code has no such entry point or other arguments than
    /// declared, or the declaration exceeds a limit of the device; with the compiler's log, which has line numbers, when the
    /// compiler refuses.
    fn compile_raw(&self, kernel: &RawKernel) -> Result<Self::Program, CompileError> {
        Err(kernel.unknown_language(&self.info().spec, self.raw_languages()))
    }

    /// Whether a compiler made this program: not if its code was on disk from an earlier process,
    /// or is part of a library.
    fn was_compiled(&self, program: &Self::Program) -> bool {
        let _ = program;
        true
    }

    /// Bytes of host memory that a program takes, roughly: so much of the caches' limit it counts.
    fn program_bytes(&self, program: &Self::Program) -> usize {
        let _ = program;
        64 << 10
    }

    /// Memory of at least `bytes` bytes, aligned to at least 64, contents undefined.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] when there is none left, [`DeviceError::TooLong`] when no buffer
    /// can have so many.
    fn alloc(&self, bytes: usize) -> Result<Self::Buffer, DeviceError>;

    /// A new stream.
    ///
    /// # Errors
    /// When the driver refuses.
    fn stream(&self) -> Result<Self::Stream, DeviceError>;

    /// Copies `src` to `dst` from byte `offset` on; `src` may be reused on return.
    ///
    /// # Errors
    /// When the driver refuses.
    fn write(
        &self,
        stream: &mut Self::Stream,
        dst: &Self::Buffer,
        offset: usize,
        src: &[u8],
    ) -> Result<(), DeviceError>;

    /// Waits for the stream and copies from `src` at byte `offset` to `dst`.
    ///
    /// # Errors
    /// When the driver refuses, or work queued before failed.
    fn read(
        &self,
        stream: &mut Self::Stream,
        src: &Self::Buffer,
        offset: usize,
        dst: &mut [u8],
    ) -> Result<(), DeviceError>;

    /// Whether it reads by [`Device::read_later`], as in a browser, where no thread may wait for it.
    fn tells(&self) -> bool {
        false
    }

    /// Starts to copy the first `bytes` bytes of `src` to the host, behind what is on the stream, and calls `done`
    /// with them when they are there. Asked only of a device that [`tells`](Device::tells).
    fn read_later(
        &self,
        stream: &mut Self::Stream,
        src: &Self::Buffer,
        bytes: usize,
        done: OnRead,
    ) {
        let mut read = vec![0; bytes];
        done(self.read(stream, src, 0, &mut read).map(|()| read));
    }

    /// Copies `bytes` bytes between two buffers of this device, each given with an offset.
    ///
    /// # Errors
    /// When the driver refuses.
    fn copy(
        &self,
        stream: &mut Self::Stream,
        src: (&Self::Buffer, usize),
        dst: (&Self::Buffer, usize),
        bytes: usize,
    ) -> Result<(), DeviceError>;

    /// Runs a program.
    ///
    /// # Errors
    /// When the arguments do not fit its [`Signature`], or the driver refuses.
    fn launch(
        &self,
        stream: &mut Self::Stream,
        program: &Self::Program,
        args: &[Arg<'_, Self::Buffer>],
    ) -> Result<(), DeviceError>;

    /// Runs a list of programs, with the effect of launching them in order.
    ///
    /// The core keeps one `recording` for each list and hands it in whenever it runs that list:
    /// programs, dependencies and kinds of arguments are then those of every earlier call with
    /// it, while buffers, offsets and scalars may be others. A device that can submit a recorded
    /// list faster than its parts keeps it there; see [`Recording`]. By default the list is
    /// launched step by step.
    ///
    /// # Errors
    /// When the driver refuses; commands before may have been queued.
    fn replay(
        &self,
        stream: &mut Self::Stream,
        recording: &mut Recording,
        commands: &[Command<'_, Self::Program, Self::Buffer>],
    ) -> Result<(), DeviceError> {
        let _ = recording;
        commands.iter().try_for_each(|c| self.launch(stream, c.program, c.args))
    }

    /// Marks the current end of the stream.
    ///
    /// # Errors
    /// When the driver refuses.
    fn record(&self, stream: &mut Self::Stream) -> Result<Self::Event, DeviceError>;

    /// Makes later commands of `stream` wait for an event of another stream.
    ///
    /// # Errors
    /// When the driver refuses.
    fn wait(&self, stream: &mut Self::Stream, event: &Self::Event) -> Result<(), DeviceError>;

    /// Waits on the host until the event has happened.
    ///
    /// # Errors
    /// When work queued before it failed.
    fn synchronize(&self, event: &Self::Event) -> Result<(), DeviceError>;

    /// The stream to time a launch on, while nothing is under way on this one: itself, or one that
    /// belongs to it where streams that measure are slower.
    ///
    /// # Errors
    /// When the driver refuses.
    fn timed<'a>(&self, stream: &'a mut Self::Stream) -> Result<&'a mut Self::Stream, DeviceError> {
        Ok(stream)
    }

    /// Device time between two events of a [`timed`](Device::timed) stream, if the device measures it.
    fn elapsed(&self, from: &Self::Event, to: &Self::Event) -> Option<Duration> {
        let _ = (from, to);
        None
    }

    /// Whether [`Device::library`] has something for a call, where that is known sooner than it is made.
    fn offers(&self, call: &Call) -> Option<bool> {
        let _ = call;
        None
    }

    /// A library kernel that performs the call, if this device has a fast one.
    fn library(&self, call: &Call) -> Option<Self::Program> {
        let _ = call;
        None
    }

    /// Another way that the library has for a call, if there is one, and what tells it from others of this
    /// version. Ways are counted as the library lists them: way 0 is that of [`Device::library`], which
    /// may prefer generated code. The tuner measures a few of them.
    fn library_way(&self, call: &Call, way: usize) -> Option<(String, Self::Program)> {
        let _ = (call, way);
        None
    }

    /// A buffer that is the memory of `owner`, kept as long as the buffer lives, if this device
    /// computes in host memory and can use this one. Nothing is ever written to it.
    fn adopt(&self, owner: &HostOwner) -> Option<Self::Buffer> {
        let _ = owner;
        None
    }

    /// Notes that the bytes of an adopted buffer change whenever its owner likes: what a device derives
    /// from the contents of buffers, it derives anew in each command.
    fn share(&self, buffer: &Self::Buffer) {
        let _ = buffer;
    }

    /// Notes that nobody has this buffer any more, which is kept for whoever asks for memory next: what a
    /// device keeps beside its contents is of no use until then.
    fn idle(&self, buffer: &Self::Buffer) {
        let _ = buffer;
    }

    /// The first `bytes` bytes of a buffer, if this device computes in host memory
    /// ([`Caps::unified_memory`]). The core calls this for values that nothing writes any more, when
    /// work on them is done; while what it gives lives, commands that would write the buffer fail.
    fn host_view(&self, buffer: &Arc<Self::Buffer>, bytes: usize) -> Option<HostOwner> {
        let _ = (buffer, bytes);
        None
    }
}
