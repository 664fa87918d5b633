//! Traces: when launches, transfers and the work of the host happened, as a file that trace viewers read.
//!
//! The format is the Trace Event Format, which Perfetto (<https://ui.perfetto.dev>) and `chrome://tracing` open. The host
//! is a process with a track for each thread, each device a process with tracks for launches and for transfers. Spans of
//! the host nest; events of one track of a device do not overlap.
//!
//! The file is whole after each call of the library: events are appended over the line that closes the list, which is
//! written again behind them in the same write. So nothing has to be done at the end of a program, however it ends.
//!
//! All of it is behind the feature `trace`; without it a [`Span`] is nothing.

#[cfg(feature = "trace")]
pub(crate) use on::Arguments;
#[cfg(feature = "trace")]
pub use on::Trace;
#[cfg(feature = "trace")]
pub(super) use on::Tracer;

/// The stream that something happens on: that of launches, or the one for values on their way to the host.
#[derive(Clone, Copy, Debug)]
pub(super) enum Queue {
    Main,
    Reads,
}

/// Work of the host that ends when this is dropped.
#[cfg(not(feature = "trace"))]
#[derive(Debug)]
pub(crate) struct Span;

/// What is said of a launch.
#[cfg(not(feature = "trace"))]
#[derive(Debug)]
pub(crate) enum Arguments {}

#[cfg(not(feature = "trace"))]
impl super::Device {
    /// Begins work of the host.
    #[inline]
    pub(crate) fn span(&self, _: &'static str, _: &[(&'static str, usize)]) -> Span {
        Span
    }

    /// Begins a transfer on a stream that no other thread has.
    #[inline]
    pub(super) fn transfer_span(&self, _: &'static str, _: usize, _: Queue) -> Span {
        Span
    }

    /// Whether it records.
    #[inline]
    pub(crate) fn is_traced(&self) -> bool {
        false
    }

    /// Stops recording, and says whether it did.
    pub(crate) fn pause_trace(&self) -> bool {
        false
    }

    /// Goes on as it was.
    pub(crate) fn resume_trace(&self, _: bool) {}

    /// Records a launch that ended now.
    #[inline]
    pub(super) fn record_launch(&self, _: &str, _: std::time::Duration, _: Option<&Arguments>) {}
}

#[cfg(feature = "trace")]
mod on {
    use super::Queue;
    use crate::clock::Instant;
    use crate::error::{Error, Result};
    use crate::hal::lock;
    use crate::runtime::Device;
    use crate::runtime::erased::Home;
    use std::fmt::Write as _;
    use std::fs::File;
    use std::io::{self, Seek, SeekFrom, Write};
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::sync::{Arc, Mutex};
    use std::thread::{self, ThreadId};
    use std::time::Duration;

    /// A file that devices record in what they do, in the Trace Event Format. Clones are the same file.
    ///
    /// See [`Device::set_trace`]. It needs the feature `trace`.
    #[derive(Clone)]
    pub struct Trace(Arc<Inner>);

    struct Inner {
        start: Instant,
        path: PathBuf,
        state: Mutex<State>,
    }

    struct State {
        file: File,
        /// Bytes of the file before [`CLOSE`].
        written: u64,
        /// Events that are not in the file yet.
        pending: String,
        /// Threads in the order of their tracks, with the number of their open spans.
        threads: Vec<(ThreadId, usize)>,
        devices: Vec<Home>,
        failure: Option<io::Error>,
    }

    const OPEN: &str = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n\
        {\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"tid\":0,\"args\":{\"name\":\"host\"}}";
    const CLOSE: &str = "\n]}\n";
    /// Bytes of events that are written even if calls are under way.
    const MOST_PENDING: usize = 1 << 16;
    const LAUNCHES: u32 = 1;
    const TRANSFERS: u32 = 2;
    const READS: u32 = 3;

    /// What is said of an event besides its name and time: members of a JSON object.
    #[derive(Debug, Default)]
    pub(crate) struct Arguments(String);

    impl Arguments {
        fn name(&mut self, name: &str) {
            let comma = if self.0.is_empty() { "" } else { "," };
            let _ = write!(self.0, "{comma}{}:", Quoted(name));
        }

        pub(crate) fn text(&mut self, name: &str, text: &str) {
            self.name(name);
            let _ = write!(self.0, "{}", Quoted(text));
        }

        /// A number to three decimals; JSON has none that is not finite.
        pub(crate) fn number(&mut self, name: &str, x: f64) {
            if x.is_finite() {
                self.name(name);
                let _ = write!(self.0, "{}", (x * 1e3).round() / 1e3);
            }
        }
    }

    /// A string of JSON.
    struct Quoted<'a>(&'a str);

    impl std::fmt::Display for Quoted<'_> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_char('"')?;
            for c in self.0.chars() {
                match c {
                    '"' | '\\' => write!(f, "\\{c}")?,
                    c if c < ' ' => write!(f, "\\u{:04x}", c as u32)?,
                    c => f.write_char(c)?,
                }
            }
            f.write_char('"')
        }
    }

    /// Microseconds, to the nanosecond.
    struct Micros(Duration);

    impl std::fmt::Display for Micros {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            let ns = self.0.as_nanos();
            write!(f, "{}.{:03}", ns / 1000, ns % 1000)
        }
    }

    impl Trace {
        /// Makes the file, or empties it. Times count from this call on.
        ///
        /// # Errors
        /// When the file cannot be written.
        pub fn create(path: impl AsRef<Path>) -> Result<Trace> {
            Trace::make(path.as_ref())
        }

        fn make(path: &Path) -> Result<Trace> {
            let made = File::create(path).and_then(|mut file| {
                file.write_all(format!("{OPEN}{CLOSE}").as_bytes())?;
                Ok(file)
            });
            let file = made.map_err(|source| failure(path, source))?;
            let state = State {
                file,
                written: OPEN.len() as u64,
                pending: String::new(),
                threads: Vec::new(),
                devices: Vec::new(),
                failure: None,
            };
            let state = Mutex::new(state);
            Ok(Trace(Arc::new(Inner { start: Instant::now(), path: path.to_owned(), state })))
        }

        /// Writes what is under way, and tells whether all could be written so far. Without it, only spans that are open
        /// when the program ends are missing, and a failure is a warning of the `log` crate.
        ///
        /// # Errors
        /// When the file could not be written: it ends with what was written before.
        pub fn flush(&self) -> Result<()> {
            let mut state = lock(&self.0.state);
            self.write(&mut state);
            match state.failure.take() {
                Some(source) => Err(failure(&self.0.path, source)),
                None => Ok(()),
            }
        }

        fn write(&self, state: &mut State) {
            if state.pending.is_empty() || state.failure.is_some() {
                state.pending.clear();
                return;
            }
            let events = state.pending.len() as u64;
            state.pending.push_str(CLOSE);
            let place = SeekFrom::Start(state.written);
            let written = state.file.seek(place).and_then(|_| {
                state.file.write_all(state.pending.as_bytes())?;
                Ok(())
            });
            state.pending.clear();
            match written {
                Ok(()) => state.written += events,
                Err(source) => {
                    let path = self.0.path.display();
                    log::warn!(target: "zyx", "the trace {path} ends here: {source}");
                    state.failure = Some(source);
                }
            }
        }

        /// The process of a device, which is named at the first call.
        fn device(&self, device: &Device) -> u32 {
            let mut state = lock(&self.0.state);
            let known = state.devices.iter().position(|home| home == device.home());
            let pid = known.unwrap_or(state.devices.len()) as u32 + 1;
            if known.is_none() {
                state.devices.push(device.home().clone());
                let name = format!("{} ({})", device.spec(), device.info().name);
                state.name("process_name", (pid, 0), &name);
                state.name("thread_name", (pid, LAUNCHES), "launches");
                state.name("thread_name", (pid, TRANSFERS), "transfers");
                state.name("thread_name", (pid, READS), "reads beside the program");
            }
            pid
        }

        fn event(
            &self,
            state: &mut State,
            (name, kind): (&str, &str),
            (pid, tid): (u32, u32),
            (start, time): (Instant, Duration),
            args: &str,
        ) {
            let (name, start) =
                (Quoted(name), Micros(start.saturating_duration_since(self.0.start)));
            let _ = write!(
                state.pending,
                ",\n{{\"ph\":\"X\",\"name\":{name},\"cat\":\"{kind}\",\"pid\":{pid},\"tid\":{tid},\
                 \"ts\":{start},\"dur\":{},\"args\":{{{args}}}}}",
                Micros(time)
            );
        }
    }

    impl State {
        fn name(&mut self, what: &str, (pid, tid): (u32, u32), name: &str) {
            let name = Quoted(name);
            let _ = write!(
                self.pending,
                ",\n{{\"ph\":\"M\",\"name\":\"{what}\",\"pid\":{pid},\"tid\":{tid},\"args\":{{\"name\":{name}}}}}"
            );
        }

        /// The track of this thread.
        fn thread(&mut self) -> usize {
            let current = thread::current();
            let known = self.threads.iter().position(|(id, _)| *id == current.id());
            known.unwrap_or_else(|| {
                let track = self.threads.len();
                self.threads.push((current.id(), 0));
                let name = current.name().map_or_else(|| format!("thread {track}"), str::to_owned);
                self.name("thread_name", (0, track as u32), &name);
                track
            })
        }
    }

    fn failure(path: &Path, source: io::Error) -> Error {
        Error::Io { what: path.display().to_string(), source }
    }

    impl std::fmt::Debug for Trace {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "Trace({})", self.0.path.display())
        }
    }

    /// Where a device records, if it does.
    #[derive(Default)]
    pub(in crate::runtime) struct Tracer {
        on: AtomicBool,
        trace: Mutex<Option<(Trace, u32)>>,
    }

    impl Tracer {
        fn get(&self) -> Option<(Trace, u32)> {
            if self.on.load(Relaxed) { lock(&self.trace).clone() } else { None }
        }
    }

    /// Work of the host that ends when this is dropped.
    pub(crate) struct Span(Option<Open>);

    struct Open {
        trace: Trace,
        name: &'static str,
        start: Instant,
        args: Arguments,
        /// The track of a transfer.
        transfer: Option<(u32, u32)>,
    }

    impl Span {
        fn new(
            trace: Trace,
            name: &'static str,
            args: Arguments,
            transfer: Option<(u32, u32)>,
        ) -> Span {
            let mut state = lock(&trace.0.state);
            let track = state.thread();
            state.threads[track].1 += 1;
            drop(state);
            Span(Some(Open { trace, name, start: Instant::now(), args, transfer }))
        }
    }

    impl Drop for Span {
        fn drop(&mut self) {
            let Some(Open { trace, name, start, args, transfer }) = self.0.take() else { return };
            let when = (start, start.elapsed());
            let mut state = lock(&trace.0.state);
            let track = state.thread();
            trace.event(&mut state, (name, "host"), (0, track as u32), when, &args.0);
            if let Some(track) = transfer {
                trace.event(&mut state, (name, "transfer"), track, when, &args.0);
            }
            let open = &mut state.threads[track].1;
            *open -= 1;
            if *open == 0 || state.pending.len() > MOST_PENDING {
                trace.write(&mut state);
            }
        }
    }

    impl Device {
        /// Records from now on what this device does in a trace, or stops with `None`: each launch with its kernel's name,
        /// operations and lines of the program, bytes and predicted time, each transfer, and what the host does for
        /// them: comparing graphs with earlier ones, planning, compiling, waiting. Several devices may share a trace.
        ///
        /// While it is on each launch waits for the one before it, as with [`Device::set_profiling`], so gaps between
        /// launches are longer than without. Each plan is explained once, in a span of its own.
        ///
        /// Programs that use the crate `zyx` need no call: `ZYX_TRACE=trace.json` records all devices from the start.
        ///
        /// ```
        /// use zyx::{Tensor, Trace};
        /// let device = zyx::device()?;
        /// let path = std::env::temp_dir().join(format!("zyx-trace-{}.json", std::process::id()));
        /// let trace = Trace::create(&path)?;
        /// device.set_trace(Some(&trace));
        /// (Tensor::new([1f32, 2.0], &device)? * 2.0).realize()?;
        /// device.set_trace(None);
        /// trace.flush()?;
        /// let text = std::fs::read_to_string(&path).expect("it was written");
        /// assert!(text.contains("\"launches\"") && text.ends_with("]}\n"));
        /// # std::fs::remove_file(path).expect("it is there");
        /// # Ok::<(), zyx::Error>(())
        /// ```
        pub fn set_trace(&self, trace: Option<&Trace>) {
            let tracer = self.tracer();
            *lock(&tracer.trace) = trace.map(|trace| (trace.clone(), trace.device(self)));
            tracer.on.store(trace.is_some(), Relaxed);
        }

        /// Begins work of the host.
        pub(crate) fn span(&self, name: &'static str, about: &[(&'static str, usize)]) -> Span {
            self.span_of(name, about, None)
        }

        /// Begins a transfer on a stream that no other thread has.
        pub(in crate::runtime) fn transfer_span(
            &self,
            name: &'static str,
            bytes: usize,
            queue: Queue,
        ) -> Span {
            self.span_of(name, &[("bytes", bytes)], Some(queue))
        }

        fn span_of(
            &self,
            name: &'static str,
            about: &[(&'static str, usize)],
            queue: Option<Queue>,
        ) -> Span {
            let Some((trace, pid)) = self.tracer().get() else { return Span(None) };
            let mut args = Arguments::default();
            args.text("device", self.spec());
            about.iter().for_each(|&(name, n)| args.number(name, n as f64));
            let track = |queue| match queue {
                Queue::Main => TRANSFERS,
                Queue::Reads => READS,
            };
            Span::new(trace, name, args, queue.map(|queue| (pid, track(queue))))
        }

        /// Whether it records.
        pub(crate) fn is_traced(&self) -> bool {
            self.tracer().on.load(Relaxed)
        }

        /// Stops recording, and says whether it did.
        pub(crate) fn pause_trace(&self) -> bool {
            self.tracer().on.swap(false, Relaxed)
        }

        /// Goes on as it was.
        pub(crate) fn resume_trace(&self, traced: bool) {
            self.tracer().on.store(traced, Relaxed);
        }

        /// Records a launch that ended now, for a thread that has the stream.
        pub(in crate::runtime) fn record_launch(
            &self,
            name: &str,
            time: Duration,
            about: Option<&Arguments>,
        ) {
            let Some((trace, pid)) = self.tracer().get() else { return };
            let now = Instant::now();
            let start = now.checked_sub(time).unwrap_or(trace.0.start);
            let mut state = lock(&trace.0.state);
            let about = about.map_or("", |about| &about.0);
            trace.event(&mut state, (name, "launch"), (pid, LAUNCHES), (start, time), about);
        }
    }
}
