//! Values on their way to the host while the program goes on.
//!
//! A device has a thread and a stream of its own for such reads, both made at the first. The program
//! notes the place in its stream behind which the value is there, and hands over the buffer; the
//! thread copies on its own stream, behind that place and beside all that is submitted afterwards. A
//! buffer is pinned until it is copied, so its memory becomes nobody else's.
//!
//! What fails on the way is the handle's error ([`Pending`]); the stream of the program knows nothing
//! of it.

use super::buffer::{Buffer, Pinned};
use super::device::Device;
use super::erased::{RawEvent, RawStream};
use super::stats::Counters;
use crate::dtype::Element;
use crate::error::Result;
use crate::hal::{DeviceError, lock};
use std::cell::OnceCell;
use std::marker::PhantomData;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

/// Elements on their way to the host; see [`Tensor::read_async`](crate::Tensor::read_async).
///
/// Dropping it gives them up.
#[must_use = "the elements come out of `wait`"]
pub struct Pending<T> {
    bytes: Reading,
    element: PhantomData<fn() -> T>,
}

impl<T: Element> Pending<T> {
    pub(crate) fn new(bytes: Reading) -> Pending<T> {
        Pending { bytes, element: PhantomData }
    }

    /// No elements, which are there.
    pub(crate) fn none() -> Pending<T> {
        Pending::new(Reading { arrived: OnceCell::from(Ok(Vec::new())), from: channel().1 })
    }

    /// Whether [`Pending::wait`] returns at once.
    ///
    /// ```
    /// # use zyx_core::{Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let pending = Tensor::new([1f32, 2.0], &device)?.read_async::<f32>()?;
    /// while !pending.is_done() {
    ///     std::thread::yield_now(); // There is something better to do.
    /// }
    /// assert_eq!(pending.wait()?, [1.0, 2.0]);
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    pub fn is_done(&self) -> bool {
        self.bytes.is_done()
    }

    /// Waits for the elements, in row-major order.
    ///
    /// ```
    /// # use zyx_core::{Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let pending = (Tensor::new([1f32, 2.0], &device)? * 2.0).read_async::<f32>()?;
    /// assert_eq!(pending.wait()?, [2.0, 4.0]);
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the device fails on the way, or has failed to compute them.
    pub fn wait(self) -> Result<Vec<T>> {
        let bytes = self.bytes.wait()?;
        Ok(bytes.chunks_exact(T::DTYPE.size()).map(T::read_le).collect())
    }
}

impl<T> std::fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = if self.bytes.is_done() { "done" } else { "under way" };
        write!(f, "Pending({state})")
    }
}

/// Bytes on their way to the host.
pub(crate) struct Reading {
    arrived: OnceCell<Result<Vec<u8>>>,
    from: Receiver<Result<Vec<u8>>>,
}

impl Reading {
    fn is_done(&self) -> bool {
        if self.arrived.get().is_none() {
            match self.from.try_recv() {
                Err(TryRecvError::Empty) => return false,
                result => drop(self.arrived.set(result.unwrap_or_else(|_| Err(ended())))),
            }
        }
        true
    }

    fn wait(self) -> Result<Vec<u8>> {
        let arrived = self.arrived.into_inner();
        arrived.unwrap_or_else(|| self.from.recv().unwrap_or_else(|_| Err(ended())))
    }
}

/// The thread sends what becomes of every read unless it panics.
fn ended() -> crate::Error {
    let context = "reading".to_owned();
    DeviceError::Driver { context, reason: "the thread that reads has panicked".to_owned() }.into()
}

/// One read.
struct Read {
    source: Pinned,
    bytes: usize,
    after: RawEvent,
    to: Sender<Result<Vec<u8>>>,
}

/// What the thread is told to do.
enum Job {
    Read(Read),
    /// Tells that all jobs before are done.
    Tell(Sender<()>),
}

impl Job {
    fn run(self, stream: &mut RawStream) {
        match self {
            Job::Read(read) => read.run(stream),
            // Whoever asked may have gone.
            Job::Tell(to) => drop(to.send(())),
        }
    }
}

impl Read {
    /// Reads on this stream, and lets go of the buffer before anybody is told.
    fn run(self, stream: &mut RawStream) {
        let mut bytes = vec![0; self.bytes];
        let raw = self.source.device().raw();
        let read = raw.read_after(stream, &self.after, self.source.raw(), &mut bytes);
        drop((self.source, self.after));
        // Whoever asked may have given up.
        let _ = self.to.send(read.map(|()| bytes).map_err(Into::into));
    }
}

/// The thread that reads, from the first read on; it ends with the device.
#[derive(Default)]
pub(super) struct Reader(Mutex<Option<Sender<Job>>>);

impl Reader {
    /// Waits until the reads started so far hold no buffer any more.
    pub(super) fn drain(&self) {
        let (to, told) = channel();
        let asked = lock(&self.0).as_ref().is_some_and(|jobs| jobs.send(Job::Tell(to)).is_ok());
        if asked {
            // An error if the thread has panicked: then it holds nothing either.
            let _ = told.recv();
        }
    }

    fn start(&self, device: &Device, job: Job) -> Result<()> {
        let mut jobs = lock(&self.0);
        let job = match &*jobs {
            Some(running) => match running.send(job) {
                Ok(()) => return Ok(()),
                // It has panicked; another takes its place.
                Err(refused) => refused.0,
            },
            None => job,
        };
        let mut stream = device.raw().stream()?;
        let (to, from) = channel::<Job>();
        let thread = std::thread::Builder::new().name("zyx-read".to_owned());
        let spawned = thread.spawn(move || from.into_iter().for_each(|job| job.run(&mut stream)));
        spawned.map_err(|error| DeviceError::Driver {
            context: "starting a thread that reads".to_owned(),
            reason: error.to_string(),
        })?;
        // The thread has just begun to listen.
        let _ = to.send(job);
        *jobs = Some(to);
        Ok(())
    }
}

impl Device {
    /// Starts to copy the first `bytes` bytes of a buffer that nothing writes any more to the host.
    pub(crate) fn start_read(&self, src: &Buffer, bytes: usize) -> Result<Reading> {
        Counters::add(&self.counters().copies, 1);
        Counters::add(&self.counters().bytes_moved, bytes as u64);
        let source = self.with_room(|| src.pin())?;
        let after = self.mark()?;
        let (to, from) = channel();
        self.reader().start(self, Job::Read(Read { source, bytes, after, to }))?;
        Ok(Reading { arrived: OnceCell::new(), from })
    }
}
