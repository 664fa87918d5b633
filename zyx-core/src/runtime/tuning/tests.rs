//! Tuning on a device that runs kernels by the interpreter and whose clock counts ops, so that
//! shorter kernels are faster; one that lies computes whatever it compiles after the first kernels
//! wrongly, and says that it takes no time. Its library takes as long as it is told to.

use super::*;
use crate::hal::{self, Call, Caps, CompileError, DeviceError, DeviceInfo};
use crate::ir::{Op, Verified};
use crate::ops::{BinaryOp, UnaryOp};
use crate::passes::{Pass, Site, rebuild::Rebuild};
use crate::reference::{self, Reference, ReferenceDevice};
use crate::runtime::Runtime;
use crate::tensor::Tensor;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;

#[derive(Clone, Default)]
struct Clocked {
    driver: &'static str,
    /// Compiled kernels after which it lies.
    lies: Option<usize>,
    /// The ways of the library: what tells them apart, and the ops each counts for, 0 if it lies.
    ways: &'static [(&'static str, usize)],
    /// Whether generated code is predicted to be faster.
    generates: bool,
    launched: Arc<Mutex<Vec<usize>>>,
}

struct ClockedDevice {
    inner: ReferenceDevice,
    backend: Clocked,
    compiled: AtomicUsize,
}

struct ClockedProgram {
    program: reference::Runnable,
    ops: usize,
    wrong: bool,
}

struct ClockedStream(reference::Stream, u64);

impl hal::Backend for Clocked {
    const NAME: &'static str = "clocked";
    type Device = ClockedDevice;

    fn devices(&self) -> Vec<DeviceInfo> {
        Reference::default().devices()
    }

    fn open(&self, ordinal: usize) -> Result<ClockedDevice, DeviceError> {
        Ok(ClockedDevice {
            inner: Reference::default().open(ordinal)?,
            backend: self.clone(),
            compiled: AtomicUsize::new(0),
        })
    }
}

impl hal::Device for ClockedDevice {
    type Buffer = reference::Buffer;
    type Program = ClockedProgram;
    type Stream = ClockedStream;
    type Event = u64;

    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn caps(&self) -> &Caps {
        self.inner.caps()
    }

    fn traffic(&self) -> hal::Traffic {
        self.inner.traffic()
    }

    fn driver(&self) -> String {
        self.backend.driver.to_owned()
    }

    fn source(kernel: &Verified, _: &Caps) -> Result<String, CompileError> {
        Ok(kernel.to_string())
    }

    fn compile(&self, kernel: &Verified) -> Result<ClockedProgram, CompileError> {
        let before = self.compiled.fetch_add(1, Relaxed);
        let wrong = self.backend.lies.is_some_and(|honest| before >= honest);
        let program = self.inner.compile(kernel)?;
        Ok(ClockedProgram { program, ops: kernel.ops().len(), wrong })
    }

    fn alloc(&self, bytes: usize) -> Result<reference::Buffer, DeviceError> {
        self.inner.alloc(bytes)
    }

    fn stream(&self) -> Result<ClockedStream, DeviceError> {
        Ok(ClockedStream(self.inner.stream()?, 0))
    }

    fn write(
        &self,
        stream: &mut ClockedStream,
        dst: &reference::Buffer,
        offset: usize,
        src: &[u8],
    ) -> Result<(), DeviceError> {
        self.inner.write(&mut stream.0, dst, offset, src)
    }

    fn read(
        &self,
        stream: &mut ClockedStream,
        src: &reference::Buffer,
        offset: usize,
        dst: &mut [u8],
    ) -> Result<(), DeviceError> {
        self.inner.read(&mut stream.0, src, offset, dst)
    }

    fn copy(
        &self,
        stream: &mut ClockedStream,
        src: (&reference::Buffer, usize),
        dst: (&reference::Buffer, usize),
        bytes: usize,
    ) -> Result<(), DeviceError> {
        self.inner.copy(&mut stream.0, src, dst, bytes)
    }

    fn launch(
        &self,
        stream: &mut ClockedStream,
        program: &ClockedProgram,
        args: &[Arg<'_, reference::Buffer>],
    ) -> Result<(), DeviceError> {
        self.inner.launch(&mut stream.0, &program.program, args)?;
        self.backend.launched.lock().unwrap().push(program.ops);
        stream.1 += if program.wrong { 1 } else { 1000 * program.ops as u64 };
        let Some(Arg::Buffer(last, at)) =
            args.iter().rev().find(|arg| matches!(arg, Arg::Buffer(..)))
        else {
            return Ok(());
        };
        if program.wrong {
            let mut byte = [0];
            self.inner.read(&mut stream.0, last, at + 2, &mut byte)?;
            self.inner.write(&mut stream.0, last, at + 2, &[byte[0] ^ 0x55])?;
        }
        Ok(())
    }

    fn record(&self, stream: &mut ClockedStream) -> Result<u64, DeviceError> {
        Ok(stream.1)
    }

    fn wait(&self, _: &mut ClockedStream, _: &u64) -> Result<(), DeviceError> {
        Ok(())
    }

    fn synchronize(&self, _: &u64) -> Result<(), DeviceError> {
        Ok(())
    }

    fn library(&self, call: &Call) -> Option<ClockedProgram> {
        let way = if self.backend.generates { None } else { self.library_way(call, 0) };
        way.map(|way| way.1)
    }

    fn library_way(&self, call: &Call, way: usize) -> Option<(String, ClockedProgram)> {
        let &(what, ops) = self.backend.ways.get(way)?;
        let program = self.inner.compile(&Verified::new(&call.kernel()?).unwrap()).unwrap();
        Some((what.to_owned(), ClockedProgram { program, ops, wrong: ops == 0 }))
    }

    fn elapsed(&self, from: &u64, to: &u64) -> Option<Duration> {
        Some(Duration::from_nanos(to - from))
    }
}

const LONG: Duration = Duration::from_secs(60);

fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("zyx-tuning-{name}-{}", std::process::id()))
}

fn open(backend: Clocked, dir: &Path) -> Device {
    let runtime = Runtime::default();
    runtime.register(backend);
    let device = runtime.device("clocked").unwrap();
    device.tune_in_folder(dir);
    device
}

/// A step of a program: one kernel.
fn step(device: &Device, x: f32) -> Vec<f32> {
    let data: Vec<f32> = (0..600).map(|i| i as f32 / 8.0 - x).collect();
    let x = Tensor::from_slice(&data, [600], device).unwrap();
    (&x * &x + 1.0).sqrt().to_vec().unwrap()
}

#[test]
fn tuning_finds_what_is_faster_and_the_next_step_uses_it() {
    let dir = folder("finds");
    let backend = Clocked::default();
    let device = open(backend.clone(), &dir);
    let expected = step(&device, 3.0);
    let before = device.stats();
    let tuned = device.tune(LONG).unwrap();
    let spent = device.stats().since(&before);
    assert!(spent.verify_ns > 0 && spent.compile_ns > 0, "{spent:?}");
    assert_eq!(tuned.len(), 1);
    assert!(tuned[0].after < tuned[0].before && tuned[0].refused == 0, "{tuned:?}");
    assert!(device.stats().searches > 5);
    let count = device.stats().compiles;
    assert_eq!(step(&device, 3.0), expected);
    let ops = backend.launched.lock().unwrap();
    assert!(ops[ops.len() - 1] < ops[0], "{ops:?}");
    assert_eq!(device.stats().compiles, count);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_warm_process_searches_nothing() {
    let dir = folder("warm");
    let cold = open(Clocked::default(), &dir);
    let expected = step(&cold, 1.0);
    assert_eq!(cold.tune(LONG).unwrap().len(), 1);

    let backend = Clocked::default();
    let warm = open(backend.clone(), &dir);
    warm.set_tuning(Tuning::Background(LONG));
    assert_eq!(step(&warm, 1.0), expected);
    assert!(warm.tune(LONG).unwrap().is_empty());
    let stats = warm.stats();
    // The one compilation of the one kernel is that of the better version.
    assert_eq!((stats.searches, stats.compiles), (0, 1));
    assert_eq!(backend.launched.lock().unwrap().len(), 1);

    // Another driver knows nothing, and neither does anybody after damage.
    let other = open(Clocked { driver: "2.0", ..Clocked::default() }, &dir);
    step(&other, 1.0);
    assert_eq!(other.tune(LONG).unwrap().len(), 1);
    for file in std::fs::read_dir(&dir).unwrap() {
        std::fs::write(file.unwrap().path(), b"no such thing").unwrap();
    }
    let damaged = open(Clocked::default(), &dir);
    assert_eq!(step(&damaged, 1.0), expected);
    assert_eq!(damaged.tune(LONG).unwrap().len(), 1);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn what_computes_wrongly_is_never_used() {
    let dir = folder("liar");
    let honest = step(&open(Clocked::default(), &dir), 2.0);
    // The program itself and the untuned candidate of the search are right.
    let device = open(Clocked { lies: Some(2), ..Clocked::default() }, &dir);
    assert_eq!(step(&device, 2.0), honest);
    let tuned = device.tune(LONG).unwrap();
    assert!(tuned[0].refused > 3 && tuned[0].after == tuned[0].before, "{tuned:?}");
    assert_eq!((step(&device, 2.0), device.generation()), (honest, 0));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn the_background_replaces_programs_while_the_program_runs() {
    let dir = folder("background");
    let device = open(Clocked::default(), &dir);
    device.set_tuning(Tuning::Background(LONG));
    let expected = step(&device, 5.0);
    let start = Instant::now();
    while device.generation() == 0 && start.elapsed() < LONG {
        assert_eq!(step(&device, 5.0), expected);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!((device.generation(), step(&device, 5.0)), (1, expected));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn budgets_are_kept() {
    let dir = folder("budget");
    let device = open(Clocked::default(), &dir);
    step(&device, 1.0);
    assert!(device.tune(Duration::ZERO).unwrap().is_empty());
    assert_eq!(device.stats().searches, 0);
    let device = open(Clocked::default(), &dir);
    for n in 1..40 {
        let x = Tensor::from_slice(&vec![0.25f32; 2000 + n], [2000 + n], &device).unwrap();
        (x * 0.5).exp().realize().unwrap();
    }
    let start = Instant::now();
    device.tune(Duration::from_millis(100)).unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    let _ = std::fs::remove_dir_all(dir);
}

#[test]
fn joint_kernels_are_tuned_part_by_part() {
    let dir = folder("joint");
    let device = open(Clocked::default(), &dir);
    let run = || {
        let x = Tensor::from_slice(&[0.25f32; 600], [600], &device).unwrap();
        let (a, b) = (&x * 2.0, x.sum(0).unwrap());
        Tensor::realize_all([&a, &b]).unwrap();
        (a.to_vec::<f32>().unwrap(), b.item::<f32>().unwrap())
    };
    let expected = run();
    let before = device.stats().launches;
    assert!(!device.tune(LONG).unwrap().is_empty());
    assert_eq!((run(), device.stats().launches - before), (expected, 1));
    std::fs::remove_dir_all(dir).unwrap();
}

mod parameters;

/// Ops that a slow program of a library counts for.
const SLOW: usize = 1 << 20;

/// Matrices whose sums of products are exact in any order.
fn matrices(device: &Device) -> [Tensor; 2] {
    let data = |n: usize| (0..n).map(|i| (i % 13) as f32 - 5.0).collect::<Vec<_>>();
    [[16, 24], [24, 20]]
        .map(|dims| Tensor::from_slice(&data(dims[0] * dims[1]), dims, device).unwrap())
}

/// Their product: one call of a library.
fn product(device: &Device) -> Vec<f32> {
    let [x, y] = matrices(device);
    x.matmul(&y).unwrap().to_vec().unwrap()
}

/// The same by a kernel whose arguments are in another order than the call's.
fn swapped(device: &Device) -> Vec<f32> {
    let [x, y] = matrices(device);
    let y = y.permute([1, 0]).unwrap().reshape([1, 20, 24]).unwrap();
    (y * x.reshape([16, 1, 24]).unwrap()).sum(2).unwrap().to_vec().unwrap()
}

/// The ops that the launches since the last question counted for.
fn launched(backend: &Clocked) -> Vec<usize> {
    std::mem::take(&mut *backend.launched.lock().unwrap())
}

#[test]
fn generated_code_takes_the_place_of_a_slow_library() {
    let dir = folder("slow");
    let backend = Clocked { ways: &[("only", SLOW)], ..Clocked::default() };
    let device = open(backend.clone(), &dir);
    let expected = product(&device);
    assert_eq!(launched(&backend), [SLOW]);
    let tuned = device.tune(LONG).unwrap();
    assert_eq!(tuned.len(), 1);
    assert!(tuned[0].name.starts_with("contract_") && tuned[0].refused == 0, "{tuned:?}");
    assert!(20 * tuned[0].after < 19 * tuned[0].before, "{tuned:?}");
    launched(&backend);

    // Plans that are there use it, plans that are made later too, and turning it off changes nothing.
    device.set_tuning(Tuning::Off);
    assert_eq!((product(&device), device.generation()), (expected.clone(), 1));
    device.plans().unwrap().drop_oldest(usize::MAX, 0);
    assert_eq!(product(&device), expected);
    let ops = launched(&backend);
    assert!(ops.len() == 2 && ops[0] < SLOW && ops[0] == ops[1], "{ops:?}");
    assert!(device.tune(LONG).unwrap().is_empty());

    // A later process starts with it if it may, and else with the library.
    let later = open(backend.clone(), &dir);
    later.set_tuning(Tuning::Background(LONG));
    assert_eq!((product(&later), launched(&backend)), (expected.clone(), vec![ops[0]]));
    assert!(later.tune(LONG).unwrap().is_empty());
    assert_eq!((later.stats().searches, later.generation()), (0, 0));
    let off = open(backend.clone(), &dir);
    assert_eq!((product(&off), launched(&backend)), (expected.clone(), vec![SLOW]));
    // What was measured once is not measured again.
    assert!(off.tune(LONG).unwrap().is_empty());
    assert_eq!((product(&off), off.stats().searches), (expected, 0));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_faster_way_of_the_library_is_found_and_a_wrong_one_refused() {
    let dir = folder("ways");
    let ways = &[("first", SLOW), ("wrong", 0), ("second", SLOW / 4), ("third", SLOW / 2)];
    // Generated code is wrong as well.
    let backend = Clocked { ways, lies: Some(0), ..Clocked::default() };
    let device = open(backend.clone(), &dir);
    let expected = product(&device);
    let tuned = device.tune(LONG).unwrap();
    assert_eq!((tuned.len(), tuned[0].refused), (1, 2), "{tuned:?}");
    launched(&backend);
    assert_eq!((product(&device), launched(&backend)), (expected.clone(), vec![SLOW / 4]));

    let later = open(backend.clone(), &dir);
    later.set_tuning(Tuning::Background(LONG));
    assert_eq!((product(&later), launched(&backend)), (expected.clone(), vec![SLOW / 4]));
    // Of another version of the library nothing is known.
    let ways = &[("first", SLOW), ("other", SLOW / 8), ("another", SLOW / 2)];
    let other = open(Clocked { ways, ..backend.clone() }, &dir);
    product(&other);
    assert_eq!(other.tune(LONG).unwrap().len(), 1);
    launched(&backend);
    assert_eq!((product(&other), launched(&backend)), (expected, vec![SLOW / 8]));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_fast_library_stays_and_is_measured_once() {
    let dir = folder("fast");
    let backend = Clocked { ways: &[("first", 2), ("second", 2)], ..Clocked::default() };
    let device = open(backend.clone(), &dir);
    let expected = product(&device);
    let tuned = device.tune(LONG).unwrap();
    assert!(tuned.len() == 1 && tuned[0].before == tuned[0].after, "{tuned:?}");
    // The other way, and the heuristic's kernel, which is too slow to be searched.
    assert_eq!((device.stats().searches, device.generation()), (2, 0));
    let later = open(backend, &dir);
    assert_eq!((product(&later), later.tune(LONG).unwrap()), (expected, Vec::new()));
    assert_eq!(later.stats().searches, 0);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn calls_that_no_plan_makes_are_not_measured_and_the_background_measures_the_others() {
    let dir = folder("used");
    let device = open(Clocked { ways: &[("only", SLOW)], ..Clocked::default() }, &dir);
    let axis = |image, kernel, result| hal::ConvolutionAxis {
        image,
        kernel,
        result,
        stride: 2,
        dilation: 1,
        before: 1,
    };
    let call = Call::Convolve(hal::ConvolutionSpec {
        computes: hal::Convolved::Image,
        operands: crate::DType::F32,
        computed: crate::DType::F32,
        images: 2,
        groups: 1,
        channels: 3,
        outputs: 4,
        axes: vec![axis(8, 3, 4), axis(6, 3, 3)],
        strides: [vec![144, 0, 48, 6, 1], vec![0, 27, 9, 3, 1], vec![48, 0, 12, 3, 1]],
        offsets: [0; 3],
    });
    assert!(device.library(&call).is_some());
    assert!(device.tune(LONG).unwrap().is_empty());
    let held = device.library(&call).unwrap();
    device.set_tuning(Tuning::Background(LONG));
    let start = Instant::now();
    while device.generation() == 0 && start.elapsed() < LONG {
        std::thread::sleep(Duration::from_millis(1));
    }
    let better = device.better(&held).unwrap();
    assert_eq!(better.address(), device.library(&call).unwrap().address());
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_library_takes_the_place_of_a_slow_kernel() {
    let dir = folder("offers");
    let backend = Clocked { ways: &[("only", 2)], generates: true, ..Clocked::default() };
    let device = open(backend.clone(), &dir);
    let expected = product(&device);
    assert_eq!(swapped(&device), expected);
    assert!(launched(&backend).iter().all(|&ops| ops > 2));
    let orders: Vec<_> =
        device.tuner_state().offers.iter().map(|(_, offer)| offer.order.unwrap()).collect();
    assert!(orders.contains(&[0, 1, 2]) && orders.contains(&[1, 0, 2]), "{orders:?}");
    let tuned = device.tune(LONG).unwrap();
    assert!(tuned.iter().all(|kernel| kernel.refused == 0), "{tuned:?}");
    launched(&backend);
    for _ in 0..2 {
        assert_eq!((product(&device), swapped(&device)), (expected.clone(), expected.clone()));
        device.plans().unwrap().drop_oldest(usize::MAX, 0);
    }
    assert_eq!((launched(&backend), device.generation()), (vec![2; 4], 2));

    let later = open(backend.clone(), &dir);
    later.set_tuning(Tuning::Background(LONG));
    assert_eq!((product(&later), swapped(&later)), (expected.clone(), expected.clone()));
    assert!(later.tune(LONG).unwrap().is_empty());
    assert_eq!((launched(&backend), later.stats().searches), (vec![2; 2], 0));
    // One whose library computes wrongly keeps its kernels.
    let dir_of_wrong = folder("offers-wrong");
    let wrong = Clocked { ways: &[("wrong", 0)], ..backend.clone() };
    let device = open(wrong, &dir_of_wrong);
    product(&device);
    assert_eq!(device.tune(LONG).unwrap().iter().map(|kernel| kernel.refused).sum::<usize>(), 1);
    launched(&backend);
    assert_eq!(product(&device), expected);
    assert!(launched(&backend)[0] > 2);
    std::fs::remove_dir_all(dir_of_wrong).unwrap();
    std::fs::remove_dir_all(dir).unwrap();
}

/// The maximum of two exponentials as the exponential of a maximum: one operation less for a device whose clock counts
/// them.
static SWAPPED: Pass = Pass {
    name: "swapped",
    doc: "take the maximum of operands instead of exponentials",
    reassociates: false,
    sites: |kernel, _| match swap_exponentials(kernel) == *kernel {
        true => Vec::new(),
        false => vec![Site::whole()],
    },
    apply: |kernel, _| swap_exponentials(kernel),
};

/// Computes something else, in even fewer operations.
static WRONG: Pass = Pass { apply: |kernel, _| without_exponentials(kernel), ..SWAPPED };

fn swap_exponentials(kernel: &Kernel) -> Kernel {
    let mut new = Rebuild::new(kernel);
    for (value, op, ty) in kernel.iter() {
        if let Op::Binary { op: BinaryOp::Max, x, y } = op
            && let (Op::Unary { op: UnaryOp::Exp, x }, Op::Unary { op: UnaryOp::Exp, x: y }) =
                (kernel.op(x), kernel.op(y))
        {
            let [x, y] = [x, y].map(|x| new.get(x));
            let x = new.out.emit(Op::Binary { op: BinaryOp::Max, x, y }, ty);
            let result = new.out.emit(Op::Unary { op: UnaryOp::Exp, x }, ty);
            new.set(value, result);
        } else {
            new.copy(value);
        }
    }
    new.out.finish()
}

fn without_exponentials(kernel: &Kernel) -> Kernel {
    let mut new = Rebuild::new(kernel);
    for (value, op, _) in kernel.iter() {
        match op {
            Op::Unary { op: UnaryOp::Exp, x } => new.set(value, new.get(x)),
            _ => {
                new.copy(value);
            }
        }
    }
    new.out.finish()
}

fn largest(device: &Device, x: f32) -> Tensor {
    let data: Vec<f32> = (0..1200).map(|i| (i * 37 % 64) as f32 / 8.0 - x).collect();
    let x = Tensor::from_slice(&data, [2, 600], device).unwrap();
    x.realize().unwrap();
    let [x, y] = [0, 1].map(|row| x.select_index(0, row).unwrap().exp());
    x.maximum(&y).unwrap()
}

fn largest_of(device: &Device, x: f32) -> Vec<f32> {
    largest(device, x).to_vec().unwrap()
}

/// The steps that an explanation prints for the only kernel of a step.
fn steps_told(device: &Device) -> String {
    let told = largest(device, 0.5).explain().unwrap();
    let tuned = told.launches[0].kernels[0].tuned.clone();
    assert_eq!(told.to_string().contains(&format!("tuned: {tuned}\n")), !tuned.is_empty());
    tuned
}

#[test]
fn a_registered_pass_is_tried_and_explained() {
    let dir = folder("registered");
    let backend = Clocked::default();
    let device = open(backend.clone(), &dir);
    let launched = || *backend.launched.lock().unwrap().last().expect("a step was made");
    let expected = largest_of(&device, 3.0);
    let untuned = launched();
    assert_eq!((steps_told(&device), device.tune(LONG).unwrap().len()), (String::new(), 1));
    assert_eq!(largest_of(&device, 3.0), expected);
    let without = launched();
    let told = steps_told(&device);
    assert!(!told.is_empty() && !told.contains("swapped("), "{told}");

    // The kernel was searched without the pass, so it is searched again.
    device.register_pass(&SWAPPED).unwrap();
    let tuned = device.tune(LONG).unwrap();
    assert!(tuned.len() == 1 && tuned[0].after < tuned[0].before, "{tuned:?}");
    assert!(steps_told(&device).contains("swapped("), "{}", steps_told(&device));
    let plans = device.stats().plan_misses;
    assert_eq!((largest_of(&device, 3.0), device.stats().plan_misses), (expected.clone(), plans));
    assert!(launched() < without && without < untuned, "{untuned}, {without}, {}", launched());
    assert!(device.tune(LONG).unwrap().is_empty());

    // On disk it belongs to the name of the pass, and a pass that does something else has to search again.
    let later = |pass: Option<&'static Pass>| {
        let device = open(Clocked::default(), &dir);
        pass.iter().for_each(|pass| device.register_pass(pass).unwrap());
        device.set_tuning(Tuning::Background(LONG));
        assert_eq!(largest_of(&device, 3.0), expected);
        let tuned = device.tune(LONG).unwrap();
        assert_eq!(largest_of(&device, 3.0), expected);
        let refused = tuned.iter().map(|tuned| tuned.refused).sum::<usize>();
        (device.stats().searches, refused, steps_told(&device))
    };
    assert_eq!(later(None), (0, 0, told));
    let (searches, _, told) = later(Some(&SWAPPED));
    assert!(searches == 0 && told.contains("swapped("), "{searches}: {told}");
    let (searches, refused, told) = later(Some(&WRONG));
    assert!(searches > 0 && refused > 0 && !told.contains("swapped("), "{refused}: {told}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_registered_pass_that_computes_something_else_is_refused() {
    let dir = folder("wrong");
    let device = open(Clocked::default(), &dir);
    device.register_pass(&WRONG).unwrap();
    let expected = largest_of(&device, 2.0);
    let tuned = device.tune(LONG).unwrap();
    assert!(tuned[0].refused > 0, "{tuned:?}");
    assert!(!steps_told(&device).contains("swapped("));
    assert_eq!(largest_of(&device, 2.0), expected);
    let own = device.register_pass(&passes::unroll::PASS).unwrap_err().to_string();
    assert!(own.contains("another pass has this name"), "{own}");
    static UNNAMED: Pass = Pass { name: "two words", ..SWAPPED };
    assert!(device.register_pass(&UNNAMED).is_err());
    std::fs::remove_dir_all(dir).unwrap();
}

/// After a search that began before a pass was registered, the kernel is searched again.
#[test]
fn passes_may_be_registered_while_searches_run() {
    let dir = folder("threads");
    let device = open(Clocked::default(), &dir);
    let expected = largest_of(&device, 2.0);
    std::thread::scope(|scope| {
        let search = scope.spawn(|| (0..20).for_each(|_| drop(device.tune(LONG).unwrap())));
        for number in 0..10 {
            let name = Box::leak(format!("nothing{number}").into_boxed_str());
            let pass = Pass { name, apply: |kernel, _| kernel.clone(), ..SWAPPED };
            device.register_pass(Box::leak(Box::new(pass))).unwrap();
            assert_eq!(largest_of(&device, 2.0), expected);
        }
        device.register_pass(&SWAPPED).unwrap();
        search.join().unwrap();
    });
    device.tune(LONG).unwrap();
    assert!(steps_told(&device).contains("swapped("), "{}", steps_told(&device));
    assert_eq!(largest_of(&device, 2.0), expected);
    std::fs::remove_dir_all(dir).unwrap();
}
