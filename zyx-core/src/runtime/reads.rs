//! Values on their way to the host while the program goes on.
//!
//! A device that can tell when bytes are there, as one in a browser, is asked for them
//! ([`hal::Device::read_later`](crate::hal::Device::read_later)). Any other has a thread and a stream of its own for such
//! reads, both made at the first. The program notes the place in its stream behind which the value is
//! there, and hands over the buffer; the thread copies on its own stream, behind that place and beside
//! all that is submitted afterwards. A buffer is pinned until it is copied, so its memory becomes nobody
//! else's. Where the system has no threads, the bytes are read at once.
//!
//! What fails on the way is the handle's error ([`Pending`]); the stream of the program knows nothing
//! of it.

use super::buffer::{Buffer, Pinned};
use super::device::Device;
use super::erased::{RawEvent, RawStream};
use super::indices::Flag;
use super::stats::Counters;
use super::trace::Queue;
use crate::dtype::Element;
use crate::error::Result;
use crate::hal::{DeviceError, STOPS_AFTER, Watch, attempt, fork, host_room, lock};
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// Elements on their way to the host; see [`Tensor::read_async`](crate::Tensor::read_async).
///
/// It is a future of what [`Pending::wait`] gives. A page of a browser has to await it, since a page that waits
/// stops. Dropping it gives the elements up.
#[must_use = "the elements come out of `wait` or `.await`"]
pub struct Pending<T> {
    bytes: Reading,
    /// The flags of indices that the elements are computed by, with their numbers on the way.
    flags: Vec<(Arc<Flag>, Reading)>,
    /// The bytes, while flags are still on the way.
    arrived: Option<Result<Vec<u8>>>,
    element: PhantomData<fn() -> T>,
}

impl<T: Element> Pending<T> {
    pub(crate) fn new(bytes: Reading, flags: Vec<(Arc<Flag>, Reading)>) -> Pending<T> {
        Pending { bytes, flags, arrived: None, element: PhantomData }
    }

    /// No elements, which are there.
    pub(crate) fn none() -> Pending<T> {
        let (promise, reading) = promise();
        promise.keep(Ok(Vec::new()));
        Pending::new(reading, Vec::new())
    }

    /// Whether [`Pending::wait`] returns at once.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let pending = Tensor::new([1f32, 2.0], &device)?.read_async::<f32>()?;
    /// while !pending.is_done() {
    ///     std::thread::yield_now(); // There is something better to do.
    /// }
    /// assert_eq!(pending.wait()?, [1.0, 2.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn is_done(&self) -> bool {
        self.bytes.is_done() && self.flags.iter().all(|(_, number)| number.is_done())
    }

    /// Waits for the elements, in row-major order.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let pending = (Tensor::new([1f32, 2.0], &device)? * 2.0).read_async::<f32>()?;
    /// assert_eq!(pending.wait()?, [2.0, 4.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the device fails on the way, or has failed to compute them; when an index that they are computed by was
    /// out of range. In a page of a browser also when the
    /// elements are not there yet: await them.
    pub fn wait(self) -> Result<Vec<T>> {
        let bytes = self.bytes.wait()?;
        self.flags.into_iter().try_for_each(|(flag, number)| flag.tell(&number.wait()?))?;
        Ok(elements(bytes))
    }
}

fn elements<T: Element>(bytes: Vec<u8>) -> Vec<T> {
    bytes.chunks_exact(T::DTYPE.size()).map(T::read_le).collect()
}

impl<T: Element> Future for Pending<T> {
    type Output = Result<Vec<T>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.arrived.is_none() {
            match self.bytes.poll(context) {
                Poll::Ready(bytes) => self.arrived = Some(bytes),
                Poll::Pending => return Poll::Pending,
            }
        }
        while let Some((flag, number)) = self.flags.last() {
            let Poll::Ready(number) = number.poll(context) else { return Poll::Pending };
            if let Err(error) = number.and_then(|number| flag.tell(&number)) {
                return Poll::Ready(Err(error));
            }
            self.flags.pop();
        }
        let bytes = self.arrived.take().unwrap_or_else(|| Err(failure("polled after its end")));
        Poll::Ready(bytes.map(elements))
    }
}

impl<T> std::fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = if self.bytes.is_done() { "done" } else { "under way" };
        write!(f, "Pending({state})")
    }
}

/// Bytes on their way to the host.
pub(crate) struct Reading(Arc<Promised>);

/// Who has the bytes, or is about to, tells by this; an error is told if it is dropped before.
struct Promise(Arc<Promised>);

/// What a [`Promise`] and its [`Reading`] share.
#[derive(Default)]
struct Promised {
    state: Mutex<State>,
    there: Condvar,
}

#[derive(Default)]
struct State {
    arrived: Option<Result<Vec<u8>>>,
    /// The task that waits.
    waker: Option<Waker>,
}

fn promise() -> (Promise, Reading) {
    let promised = Arc::<Promised>::default();
    (Promise(promised.clone()), Reading(promised))
}

impl Promise {
    fn keep(self, result: Result<Vec<u8>>) {
        self.tell(|| result);
    }

    /// Tells a result, if none was told.
    fn tell(&self, result: impl FnOnce() -> Result<Vec<u8>>) {
        let mut state = lock(&self.0.state);
        if state.arrived.is_none() {
            state.arrived = Some(result());
        }
        let waker = state.waker.take();
        drop(state);
        self.0.there.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        let reason = "what reads has panicked, or the device is gone";
        self.tell(|| Err(failure(reason)));
    }
}

fn failure(reason: &str) -> crate::Error {
    DeviceError::Driver { context: "reading".to_owned(), reason: reason.to_owned() }.into()
}

/// Whether a thread may wait for another: a page of a browser may not.
const MAY_WAIT: bool = cfg!(not(all(target_family = "wasm", not(target_feature = "atomics"))));

impl Reading {
    fn is_done(&self) -> bool {
        lock(&self.0.state).arrived.is_some()
    }

    fn wait(self) -> Result<Vec<u8>> {
        attempt!(self.wait_unless_stopped())
    }

    fn wait_unless_stopped(&self) -> Result<Vec<u8>> {
        let watch = Watch::here();
        let mut state = lock(&self.0.state);
        loop {
            match state.arrived.take() {
                Some(arrived) => return arrived,
                None if watch.is_stopped() => return Err(DeviceError::Interrupted.into()),
                None if MAY_WAIT && watch.may_stop() => {
                    let woken = self.0.there.wait_timeout(state, STOPS_AFTER);
                    state = woken.unwrap_or_else(PoisonError::into_inner).0;
                }
                None if MAY_WAIT => {
                    state = self.0.there.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                None => return Err(failure("a page cannot wait for its device; use `.await`")),
            }
        }
    }

    fn poll(&self, context: &Context<'_>) -> Poll<Result<Vec<u8>>> {
        let mut state = lock(&self.0.state);
        match state.arrived.take() {
            Some(arrived) => Poll::Ready(arrived),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// One read.
struct Read {
    source: Pinned,
    bytes: usize,
    after: RawEvent,
    to: Promise,
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
        let device = self.source.device();
        let read = host_room(self.bytes).and_then(|mut bytes| {
            let _span = device.transfer_span("read", self.bytes, Queue::Reads);
            bytes.resize(self.bytes, 0);
            let read = device.raw().read_after(stream, &self.after, self.source.raw(), &mut bytes);
            read.map(|()| bytes)
        });
        drop((self.source, self.after));
        self.to.keep(read.map_err(Into::into));
    }
}

/// The thread that reads, from the first read on; it ends with the device.
#[derive(Default)]
pub(super) struct Reader(Mutex<Option<Running>>);

/// The thread's queue, and the generation of its process.
struct Running {
    generation: usize,
    jobs: Sender<(Job, fork::Inside)>,
}

impl Running {
    /// Hands a job over, or gives it back if there is no thread. A fork waits until it is done.
    fn send(&self, job: Job) -> Result<(), Job> {
        if self.generation != fork::generation() {
            return Err(job);
        }
        self.jobs.send((job, fork::Inside::share())).map_err(|refused| refused.0.0)
    }
}

impl Reader {
    /// Waits until the reads started so far hold no buffer any more.
    pub(super) fn drain(&self) {
        let (to, told) = channel();
        let asked =
            lock(&self.0).as_ref().is_some_and(|running| running.send(Job::Tell(to)).is_ok());
        if asked {
            // An error if the thread has panicked: then it holds nothing either.
            let _ = told.recv();
        }
    }

    fn start(&self, device: &Device, job: Job) -> Result<()> {
        let mut running = lock(&self.0);
        let job = match &*running {
            Some(running) => match running.send(job) {
                Ok(()) => return Ok(()),
                // It has panicked, or is one of the parent; another takes its place.
                Err(job) => job,
            },
            None => job,
        };
        let mut stream = device.raw().stream()?;
        let (jobs, from) = channel::<(Job, fork::Inside)>();
        let thread = std::thread::Builder::new().name("zyx-read".to_owned());
        let spawned =
            thread.spawn(move || from.into_iter().for_each(|(job, _inside)| job.run(&mut stream)));
        if let Err(error) = spawned {
            log::debug!(target: "zyx::runtime", "no thread reads: {error}");
            job.run(&mut device.raw().stream()?);
            return Ok(());
        }
        // The thread has just begun to listen.
        let started = Running { generation: fork::generation(), jobs };
        drop(started.send(job));
        *running = Some(started);
        Ok(())
    }
}

impl Device {
    /// Starts to copy the first `bytes` bytes of a buffer that nothing writes any more to the host.
    pub(crate) fn start_read(&self, src: &Buffer, bytes: usize) -> Result<Reading> {
        Counters::add(&self.counters().copies, 1);
        Counters::add(&self.counters().bytes_moved, bytes as u64);
        let source = self.with_room(|| src.pin())?;
        let (to, reading) = promise();
        if self.raw().tells() {
            let source = Arc::new(source);
            let pinned = source.clone();
            let done = Box::new(move |read: Result<Vec<u8>, DeviceError>| {
                drop(pinned);
                to.keep(read.map_err(Into::into));
            });
            self.raw().read_later(&mut self.stream(), source.raw(), bytes, done);
        } else {
            let after = self.mark()?;
            self.reader().start(self, Job::Read(Read { source, bytes, after, to }))?;
        }
        Ok(reading)
    }
}
