//! The interpreter as a device: correct, slow, suspicious, always there.
//!
//! It is what other devices are compared with, and what runs where there is nothing else. It
//! needs no driver and no machine code. A launch that does something wrong fails with the
//! interpreter's message, which names the op and the iteration; see [`crate::ir::interp`] for what
//! is found. Everything happens at once when it is asked for, so streams and events hold nothing.
//!
//! New memory is filled with ones: NaN as a float, -1 as an index. Whoever relies on fresh memory
//! being zero is found out here.

mod attention;

use crate::clock::Instant;
use crate::hal::{
    Arg, AttentionSpec, Backend, Call, Caps, CompileError, Device, DeviceError, DeviceInfo,
    DeviceKind, Traffic, TrafficCounter, sort_by_number,
};
use crate::ir::Verified;
use crate::ir::interp::{self, Binding, Options, Program};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The backend named `reference`, with one device.
///
/// ```
/// use zyx::internals::hal::{Arg, Backend, Device};
/// use zyx::internals::reference::Reference;
///
/// let device = Reference::default().open(0)?;
/// let buffer = device.alloc(4)?;
/// let mut stream = device.stream()?;
/// device.write(&mut stream, &buffer, 0, &[1, 2, 3, 4])?;
/// let mut bytes = [0; 2];
/// device.read(&mut stream, &buffer, 2, &mut bytes)?;
/// assert_eq!(bytes, [3, 4]);
/// # Ok::<(), zyx::internals::hal::DeviceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reference {
    /// How kernels are run; checked unless set otherwise.
    pub options: Options,
    /// What the device says it can do. It can do anything; less makes passes and legalisation
    /// behave as for a lesser device.
    pub caps: Caps,
    /// Whether it has attention as libraries have it, as one call ([`AttentionSpec`]).
    pub attention: bool,
}

impl Default for Reference {
    /// Checked runs, capabilities that allow the output of every pass, no library.
    fn default() -> Reference {
        Reference { options: Options::default(), caps: interp::caps(), attention: false }
    }
}

impl Backend for Reference {
    const NAME: &'static str = "reference";
    type Device = ReferenceDevice;

    fn devices(&self) -> Vec<DeviceInfo> {
        vec![info()]
    }

    fn open(&self, ordinal: usize) -> Result<ReferenceDevice, DeviceError> {
        if ordinal > 0 {
            let reason = format!("there is no reference:{ordinal}, only reference:0");
            return Err(driver("open", reason));
        }
        Ok(ReferenceDevice {
            info: info(),
            caps: self.caps.clone(),
            options: self.options.clone(),
            attention: self.attention,
            traffic: Arc::default(),
        })
    }
}

fn info() -> DeviceInfo {
    let name = "interpreter of the kernel IR".to_owned();
    let spec = "reference:0".to_owned();
    DeviceInfo { spec, name, memory: 0, kind: DeviceKind::Interpreter }
}

fn driver(context: &str, reason: String) -> DeviceError {
    DeviceError::Driver { context: context.to_owned(), reason }
}

/// The device of [`Reference`].
#[derive(Clone, Debug)]
pub struct ReferenceDevice {
    info: DeviceInfo,
    caps: Caps,
    options: Options,
    attention: bool,
    traffic: Arc<TrafficCounter>,
}

/// A kernel or a library call.
#[derive(Clone, Debug)]
pub enum Runnable {
    /// A kernel that is interpreted.
    Kernel(Box<Program>),
    /// Attention.
    Attention(Box<AttentionSpec>),
}

/// Memory of the reference device; clones share it.
#[derive(Clone, Debug)]
pub struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    /// A panic while the lock was held left the bytes as they were, which is as good as any.
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What tells buffers apart, and the order in which several are locked.
    fn id(&self) -> *const Mutex<Vec<u8>> {
        Arc::as_ptr(&self.0)
    }
}

/// A queue that is always empty.
#[derive(Debug)]
pub struct Stream;

/// A point in time.
#[derive(Clone, Copy, Debug)]
pub struct Event(Instant);

/// `bytes` bytes from `offset` on as a range, if `len` bytes hold them.
fn range(
    context: &str,
    offset: usize,
    bytes: usize,
    len: usize,
) -> Result<std::ops::Range<usize>, DeviceError> {
    match offset.checked_add(bytes) {
        Some(end) if end <= len => Ok(offset..end),
        _ => Err(driver(context, format!("{bytes} bytes at {offset} of a buffer of {len}"))),
    }
}

impl Device for ReferenceDevice {
    type Buffer = Buffer;
    type Program = Runnable;
    type Stream = Stream;
    type Event = Event;

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn caps(&self) -> &Caps {
        &self.caps
    }

    /// Every launch is a submission.
    fn traffic(&self) -> Traffic {
        self.traffic.get()
    }

    fn source(kernel: &Verified, _caps: &Caps) -> Result<String, CompileError> {
        Ok(kernel.to_string())
    }

    fn program_bytes(&self, program: &Runnable) -> usize {
        match program {
            Runnable::Kernel(program) => 4 * program.kernel().bytes(),
            Runnable::Attention(spec) => size_of_val(&**spec),
        }
    }

    fn library(&self, call: &Call) -> Option<Runnable> {
        match call {
            Call::Attend(spec) if self.attention => Some(Runnable::Attention(spec.clone())),
            _ => None,
        }
    }

    fn compile(&self, kernel: &Verified) -> Result<Runnable, CompileError> {
        Program::new(kernel).map(|program| Runnable::Kernel(Box::new(program))).map_err(|error| {
            CompileError { kernel: kernel.name().to_owned(), log: error.to_string() }
        })
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        let mut memory = Vec::new();
        memory.try_reserve_exact(bytes).map_err(|_| DeviceError::OutOfMemory {
            device: self.info.spec.clone(),
            requested: bytes,
            in_use: 0,
            live: Vec::new(),
        })?;
        memory.resize(bytes, 0xff);
        Ok(Buffer(Arc::new(Mutex::new(memory))))
    }

    fn stream(&self) -> Result<Stream, DeviceError> {
        Ok(Stream)
    }

    fn write(
        &self,
        _stream: &mut Stream,
        dst: &Buffer,
        offset: usize,
        src: &[u8],
    ) -> Result<(), DeviceError> {
        let mut dst = dst.lock();
        let range = range("write", offset, src.len(), dst.len())?;
        dst[range].copy_from_slice(src);
        Ok(())
    }

    fn read(
        &self,
        _stream: &mut Stream,
        src: &Buffer,
        offset: usize,
        dst: &mut [u8],
    ) -> Result<(), DeviceError> {
        let src = src.lock();
        let range = range("read", offset, dst.len(), src.len())?;
        dst.copy_from_slice(&src[range]);
        Ok(())
    }

    fn copy(
        &self,
        _stream: &mut Stream,
        (src, from): (&Buffer, usize),
        (dst, to): (&Buffer, usize),
        bytes: usize,
    ) -> Result<(), DeviceError> {
        if src.id() == dst.id() {
            let mut memory = src.lock();
            let from = range("copy", from, bytes, memory.len())?;
            let to = range("copy", to, bytes, memory.len())?;
            memory.copy_within(from, to.start);
            return Ok(());
        }
        let mut locked = lock_all(&[src, dst]);
        let (first, second) = locked.split_at_mut(1);
        let (src, dst) = if src.id() < dst.id() {
            (&first[0], &mut second[0])
        } else {
            (&second[0], &mut first[0])
        };
        let from = range("copy", from, bytes, src.len())?;
        let to = range("copy", to, bytes, dst.len())?;
        dst[to].copy_from_slice(&src[from]);
        Ok(())
    }

    fn launch(
        &self,
        _stream: &mut Stream,
        program: &Runnable,
        args: &[Arg<'_, Buffer>],
    ) -> Result<(), DeviceError> {
        let mut distinct: Vec<&Buffer> = args.iter().filter_map(buffer).collect();
        sort_by_number(&mut distinct, |buffer| buffer.id().addr() as i128);
        distinct.dedup_by_key(|buffer| buffer.id());
        let (mut params, mut vars) = (Vec::new(), Vec::new());
        for arg in args {
            match *arg {
                Arg::Buffer(buffer, offset) => {
                    let place = distinct.binary_search_by_key(&buffer.id(), |b| b.id());
                    let buffer = place.expect("invariant: all buffers are listed");
                    params.push(Binding { buffer, offset });
                }
                Arg::Scalar(bits) => vars.push(bits),
            }
        }
        let mut locked = lock_all(&distinct);
        let mut slices: Vec<&mut [u8]> = locked.iter_mut().map(|b| b.as_mut_slice()).collect();
        self.traffic.submitted();
        match program {
            Runnable::Kernel(program) => program
                .run(&mut slices, &params, &vars, &self.options)
                .map_err(|error| driver("launch", error.to_string())),
            Runnable::Attention(spec) => attention::attend(spec, (&mut slices, &params), &vars),
        }
    }

    fn record(&self, _stream: &mut Stream) -> Result<Event, DeviceError> {
        Ok(Event(Instant::now()))
    }

    fn wait(&self, _stream: &mut Stream, _event: &Event) -> Result<(), DeviceError> {
        Ok(())
    }

    fn synchronize(&self, _event: &Event) -> Result<(), DeviceError> {
        Ok(())
    }

    fn elapsed(&self, from: &Event, to: &Event) -> Option<Duration> {
        Some(to.0.saturating_duration_since(from.0))
    }
}

fn buffer<'a>(arg: &Arg<'a, Buffer>) -> Option<&'a Buffer> {
    match *arg {
        Arg::Buffer(buffer, _) => Some(buffer),
        Arg::Scalar(_) => None,
    }
}

/// Locks different buffers in the order of their addresses, so that streams that share some do
/// not wait for each other in a circle.
fn lock_all<'a>(buffers: &[&'a Buffer]) -> Vec<MutexGuard<'a, Vec<u8>>> {
    let mut sorted = buffers.to_vec();
    sort_by_number(&mut sorted, |buffer| buffer.id().addr() as i128);
    sorted.into_iter().map(Buffer::lock).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> ReferenceDevice {
        Reference::default().open(0).unwrap()
    }

    fn verified(text: &str) -> Verified {
        Verified::new(&text.parse().unwrap()).unwrap()
    }

    const ADD: &str = "kernel add
        buffer 0 : i32[4] readwrite
        buffer 1 : i32[4] read
        scalar 0 : i64 0..=9
        %a param 0 readwrite : i32
        %b param 1 read : i32
        %n var 0 : i64
        %i loop parallel %n
        %x load %a[%i] : i32
        %y load %b[%i] : i32
        %z add %x, %y : i32
        %s store %a[%i], %z : i32
        %e end %i";

    #[test]
    fn launches_run_kernels_on_parts_of_buffers() {
        let (device, mut stream) = (device(), Stream);
        let program = device.compile(&verified(ADD)).unwrap();
        let memory = device.alloc(32).unwrap();
        let bytes: Vec<u8> = (1..=8i32).flat_map(i32::to_le_bytes).collect();
        device.write(&mut stream, &memory, 0, &bytes).unwrap();
        // Both arguments lie in one buffer.
        let args = [Arg::Buffer(&memory, 16), Arg::Buffer(&memory, 0), Arg::Scalar(4)];
        device.launch(&mut stream, &program, &args).unwrap();
        let mut out = [0; 16];
        device.read(&mut stream, &memory, 16, &mut out).unwrap();
        let sums: Vec<u8> = [6i32, 8, 10, 12].into_iter().flat_map(i32::to_le_bytes).collect();
        assert_eq!(out, *sums);
    }

    #[test]
    fn faults_and_misuse_are_errors() {
        let (device, mut stream) = (device(), Stream);
        let program = device.compile(&verified(ADD)).unwrap();
        let (a, b) = (device.alloc(16).unwrap(), device.alloc(12).unwrap());
        let mut launch = |args: &[Arg<'_, Buffer>]| {
            device.launch(&mut stream, &program, args).unwrap_err().to_string()
        };
        let error = launch(&[Arg::Buffer(&a, 0), Arg::Buffer(&b, 0), Arg::Scalar(4)]);
        assert!(error.contains("buffer 1 ends at byte 16 of 12"), "{error}");
        let error = launch(&[Arg::Buffer(&a, 0), Arg::Buffer(&a, 0), Arg::Scalar(10)]);
        assert!(error.contains("scalar 0 is 10, not in 0..=9"), "{error}");
        let error = launch(&[Arg::Buffer(&a, 0)]);
        assert!(error.contains("1 buffers and 0 scalars for 2 and 1"), "{error}");
        assert!(device.write(&mut stream, &a, usize::MAX, &[0]).is_err());
        assert!(device.read(&mut stream, &a, 16, &mut [0]).is_err());
        assert!(device.copy(&mut stream, (&a, 0), (&b, 0), 13).is_err());
        assert!(device.alloc(usize::MAX / 2).is_err());
        assert!(Reference::default().open(1).is_err());
    }

    #[test]
    fn copies_work_between_and_within_buffers() {
        let (device, mut stream) = (device(), Stream);
        let (a, b) = (device.alloc(4).unwrap(), device.alloc(4).unwrap());
        device.write(&mut stream, &a, 0, &[1, 2, 3, 4]).unwrap();
        device.copy(&mut stream, (&a, 0), (&a, 1), 3).unwrap();
        device.copy(&mut stream, (&a, 1), (&b, 0), 3).unwrap();
        device.copy(&mut stream, (&b, 0), (&a, 2), 2).unwrap();
        let (mut x, mut y) = ([0; 4], [0; 4]);
        device.read(&mut stream, &a, 0, &mut x).unwrap();
        device.read(&mut stream, &b, 0, &mut y).unwrap();
        assert_eq!((x, y), ([1, 1, 1, 2], [1, 2, 3, 0xff]));
    }

    #[test]
    fn the_source_is_the_kernel() {
        let kernel = verified(ADD);
        let text = ReferenceDevice::source(&kernel, &Caps::default()).unwrap();
        assert_eq!(verified(&text), kernel);
    }

    #[test]
    fn events_measure_time() {
        let (device, mut stream) = (device(), Stream);
        let from = device.record(&mut stream).unwrap();
        std::thread::sleep(Duration::from_millis(2));
        let to = device.record(&mut stream).unwrap();
        device.wait(&mut stream, &from).unwrap();
        device.synchronize(&to).unwrap();
        assert!(device.elapsed(&from, &to).unwrap() >= Duration::from_millis(2));
    }
}
