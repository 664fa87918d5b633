//! Every kernel of the conformance suite through the assembler.
//!
//! The cases run on a device that interprets kernels after the passes chosen for CUDA and notes each
//! one whose source is new. Each is assembled for one architecture in turn, and for every one with `ZYX_FULL=1`. Where `ZYX_SAMPLE`
//! has a number, as in CI, a third of the cases run, which the number chooses.

use crate::assembler::{assemble, assembler};
use crate::{COLUMNS, archs, record, row};
use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use zyx_backend_cuda::{Cuda, CudaDevice};
use zyx_core::Runtime;
use zyx_core::hal::{Arg, Backend, Caps, CompileError, Device, DeviceError, DeviceInfo, Traffic};
use zyx_core::ir::interp::Options;
use zyx_core::ir::{Kernel, Verified};
use zyx_core::reference::{Buffer, Event, Reference, ReferenceDevice, Runnable, Stream};

/// At least so many kernels has the suite, and each sample of it.
const KERNELS: usize = 1000;
/// Samples of the suite.
const SAMPLES: usize = 3;

/// Kernels by their sources.
pub(crate) type Noted = Arc<Mutex<BTreeMap<String, Kernel>>>;

/// Calls `work` with every number below `n`, on all processors.
fn on_all_processors(n: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= n {
                        return;
                    }
                    work(i);
                }
            });
        }
    });
}

fn is_full() -> bool {
    std::env::var("ZYX_FULL").is_ok_and(|value| value == "1")
}

/// Runs the suite, or a sample; its kernels.
fn kernels() -> Vec<Kernel> {
    let noted = Noted::default();
    let runtime = Runtime::default();
    runtime.register(Gate(noted.clone()));
    let device = runtime.device("cuda").unwrap();
    let mut cases = zyx_tests::harness::cases();
    let sample = std::env::var("ZYX_SAMPLE").ok().and_then(|day| day.parse::<usize>().ok());
    if let Some(sample) = sample.filter(|_| !is_full()) {
        cases = cases.into_iter().skip(sample % SAMPLES).step_by(SAMPLES).collect();
    }
    let failed = Mutex::new(Vec::new());
    on_all_processors(cases.len(), |i| {
        let (name, case) = &cases[i];
        if catch_unwind(AssertUnwindSafe(|| case(&device))).is_err() {
            failed.lock().unwrap().push(*name);
        }
    });
    assert_eq!(failed.into_inner().unwrap(), [""; 0], "cases that fail on the interpreter");
    drop((device, runtime));
    std::mem::take(&mut *noted.lock().unwrap()).into_values().collect()
}

#[test]
fn every_kernel_of_the_suite_assembles() {
    let Some(assembler) = assembler("every_kernel_of_the_suite_assembles") else { return };
    let start = Instant::now();
    let kernels = kernels();
    let interpreted = start.elapsed().as_secs_f32();
    assert!(kernels.len() >= KERNELS, "{} kernels", kernels.len());
    let every = is_full();
    let outcomes = Mutex::new(vec![String::new(); kernels.len()]);
    let refused = Mutex::new(Vec::new());
    on_all_processors(kernels.len(), |i| {
        let archs = archs(&kernels[i]);
        let one = i % archs.len()..i % archs.len() + 1;
        for arch in if every { archs } else { &archs[one] } {
            match assemble(assembler, &kernels[i], &Cuda::default().preset(), arch) {
                Ok(entries) => {
                    let rows = entries.iter().map(|entry| row(arch, entry));
                    outcomes.lock().unwrap()[i].extend(rows);
                }
                Err(error) => refused.lock().unwrap().push(format!("sm_{arch}: {error}")),
            }
        }
    });
    let refused = refused.into_inner().unwrap();
    let table = outcomes.into_inner().unwrap().concat();
    record("suite.txt", &format!("{COLUMNS}{table}"));
    let seconds = start.elapsed().as_secs_f32() - interpreted;
    let n = kernels.len();
    let _ = writeln!(
        std::io::stderr(),
        "{n} kernels of the suite: {interpreted:.0} s to interpret, {seconds:.0} s to assemble",
    );
    assert!(refused.is_empty(), "{}", refused.join("\n\n"));
}

/// The interpreter with the capabilities of a CUDA device, named `cuda`.
pub(crate) struct Gate(pub(crate) Noted);

/// The device of [`Gate`].
pub(crate) struct GateDevice {
    inner: ReferenceDevice,
    caps: Caps,
    noted: Noted,
}

impl Backend for Gate {
    const NAME: &'static str = "cuda";
    type Device = GateDevice;

    fn devices(&self) -> Vec<DeviceInfo> {
        Reference::default().devices()
    }

    fn open(&self, ordinal: usize) -> Result<GateDevice, DeviceError> {
        let caps = Cuda::default().preset();
        let options = Options::fast();
        let reference = Reference { options, caps: caps.clone(), attention: false };
        Ok(GateDevice { inner: reference.open(ordinal)?, caps, noted: self.0.clone() })
    }
}

impl Device for GateDevice {
    type Buffer = Buffer;
    type Program = Runnable;
    type Stream = Stream;
    type Event = Event;

    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn traffic(&self) -> Traffic {
        self.inner.traffic()
    }

    fn source(kernel: &Verified, caps: &Caps) -> Result<String, CompileError> {
        CudaDevice::source(kernel, caps)
    }

    fn compile(&self, kernel: &Verified) -> Result<Runnable, CompileError> {
        let source = CudaDevice::source(kernel, &self.caps)?;
        self.noted.lock().unwrap().entry(source).or_insert_with(|| (**kernel).clone());
        self.inner.compile(kernel)
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        self.inner.alloc(bytes)
    }

    fn stream(&self) -> Result<Stream, DeviceError> {
        self.inner.stream()
    }

    fn write(&self, s: &mut Stream, to: &Buffer, at: usize, src: &[u8]) -> Result<(), DeviceError> {
        self.inner.write(s, to, at, src)
    }

    fn read(
        &self,
        s: &mut Stream,
        from: &Buffer,
        at: usize,
        dst: &mut [u8],
    ) -> Result<(), DeviceError> {
        self.inner.read(s, from, at, dst)
    }

    fn copy(
        &self,
        s: &mut Stream,
        src: (&Buffer, usize),
        dst: (&Buffer, usize),
        bytes: usize,
    ) -> Result<(), DeviceError> {
        self.inner.copy(s, src, dst, bytes)
    }

    fn launch(
        &self,
        s: &mut Stream,
        program: &Runnable,
        args: &[Arg<'_, Buffer>],
    ) -> Result<(), DeviceError> {
        self.inner.launch(s, program, args)
    }

    fn record(&self, s: &mut Stream) -> Result<Event, DeviceError> {
        self.inner.record(s)
    }

    fn wait(&self, s: &mut Stream, event: &Event) -> Result<(), DeviceError> {
        self.inner.wait(s, event)
    }

    fn synchronize(&self, event: &Event) -> Result<(), DeviceError> {
        self.inner.synchronize(event)
    }
}
