//! What is promised in numbers that a device's counters give, on any backend: launches, submissions,
//! temporaries, copies and waits of canonical computations.
//!
//! Each test has a device of its own, so that nothing else is counted. A promise that a backend does
//! not keep is in `EXCEPTIONS`, with what it takes instead and why; one that is kept after all must
//! leave that list.

use crate::harness::own_device;
use std::sync::Arc;
use zyx_core::hal::{Backend, Flash};
use zyx_core::{Attention, DType, Device, DeviceKind, Result, Rng, Stats, Tensor, testing};
use zyx_nn::{Forward, Init, Linear, Module, Relu, Sequential};
use zyx_optim::{AdamOptions, AdamW, Optimizer};

/// Tests of a backend's counts.
///
/// ```ignore
/// zyx_tests::counts!("cpu", Cpu::default());
/// ```
#[macro_export]
macro_rules! counts {
    ($spec:expr, $backend:expr) => {
        $crate::counts!(@each $spec, $backend,
            a_chain_of_a_hundred_ops_is_one_submission, a_count_is_all_that_is_waited_for,
            a_training_step_is_one_submission, layers_are_one_launch_each,
            an_optimizer_updates_all_parameters_at_once, a_hundred_products_need_two_temporaries,
            arenas_are_hardly_larger_than_what_is_live, data_is_copied_once_there_and_once_back,
            slices_in_other_places_compile_nothing, steps_of_a_loop_share_programs,
            other_sizes_compile_nothing, other_sizes_have_loops_of_few_lengths,
            results_do_not_depend_on_earlier_sizes,
        );
    };
    (@each $spec:expr, $backend:expr, $($case:ident,)*) => {
        /// What is promised in numbers.
        mod counts {
            #[allow(unused_imports, reason = "the backend's expression names items around it")]
            use super::*;
            $(
                #[test]
                fn $case() {
                    $crate::counts::$case($spec, || $backend);
                }
            )*
        }
    };
}

/// What a device takes where it does not keep a promise.
struct Exception {
    /// As in a device's name; with ` on a CPU` of drivers that stand in for a GPU only.
    backend: &'static str,
    promise: &'static str,
    takes: u64,
    reason: &'static str,
}

/// Where a promise does not hold.
const EXCEPTIONS: &[Exception] = &[
    Exception {
        backend: "cpu",
        promise: "a training step",
        takes: 4,
        reason: "each launch is a job of the pool at least",
    },
    Exception {
        backend: "cpu",
        promise: "attention",
        takes: 3,
        reason: "products are the library's, and what it does not store only matters from 2 MiB of scores on",
    },
    Exception {
        backend: "cpu",
        promise: "gradient of attention",
        takes: 5,
        reason: "products are the library's, and what it does not store only matters from 2 MiB of scores on",
    },
    Exception {
        backend: "cpu",
        promise: "gradient of attention of many scores",
        takes: 5,
        reason: "scores are stored for the gradient until they take 256 MiB",
    },
    Exception {
        backend: "opencl",
        promise: "barriers of a chain",
        takes: 1,
        reason: "on a queue in any order, what comes before a list is waited for by a barrier",
    },
    Exception {
        backend: "opencl on a CPU",
        promise: "a training step",
        takes: 8,
        reason: "OpenCL has no call that hands over several kernels; each launch is enqueued",
    },
    Exception {
        backend: "opencl",
        promise: "a training step",
        takes: 11,
        reason: "OpenCL has no call that hands over several kernels; each launch is enqueued",
    },
    Exception {
        backend: "opencl on a CPU",
        promise: "an optimizer's update",
        takes: 2,
        reason: "the arguments of all parameters exceed what one kernel may take",
    },
    Exception {
        backend: "opencl",
        promise: "attention",
        takes: 3,
        reason: "scores are stored until they would take 16 GiB",
    },
    Exception {
        backend: "opencl",
        promise: "gradient of attention",
        takes: 8,
        reason: "scores are stored until they would take 16 GiB, and the results once more where that is predicted to be faster",
    },
    Exception {
        backend: "vulkan",
        promise: "barriers of a chain",
        takes: 1,
        reason: "what was on the stream before is not known to be done",
    },
    Exception {
        backend: "vulkan",
        promise: "a training step",
        takes: 2,
        reason: "the list as it was recorded, and the time stamp of the test's wait",
    },
    Exception {
        backend: "vulkan on a CPU",
        promise: "copies of memory that is lent",
        takes: 1,
        reason: "memory of the host's cannot become a buffer",
    },
    Exception {
        backend: "vulkan",
        promise: "attention",
        takes: 3,
        reason: "scores are stored until they would take 16 GiB",
    },
    Exception {
        backend: "vulkan",
        promise: "gradient of attention",
        takes: 8,
        reason: "scores are stored until they would take 16 GiB, and the results once more where that is predicted to be faster",
    },
    Exception {
        backend: "wgpu on a CPU",
        promise: "an optimizer's update",
        takes: 2,
        reason: "the arguments of all parameters exceed the storage buffers that one kernel may have",
    },
    Exception {
        backend: "wgpu",
        promise: "attention",
        takes: 3,
        reason: "scores are stored until they would take 16 GiB",
    },
    Exception {
        backend: "wgpu",
        promise: "gradient of attention",
        takes: 8,
        reason: "scores are stored until they would take 16 GiB, and the results once more where that is predicted to be faster",
    },
    Exception {
        backend: "cuda",
        promise: "attention",
        takes: 3,
        reason: "scores are stored until they would take 16 GiB",
    },
    Exception {
        backend: "cuda",
        promise: "gradient of attention",
        takes: 8,
        reason: "scores are stored until they would take 16 GiB, and the results once more where that is predicted to be faster",
    },
];

/// Counts beside what is promised, or beside what is known of this backend.
struct Promises<'a> {
    device: &'a Device,
    broken: Vec<String>,
}

impl Promises<'_> {
    fn keep(&mut self, promise: &str, count: u64, most: u64) {
        let backend = self.device.spec().split(':').next();
        let software = self.device.info().kind == DeviceKind::Software;
        let exception = |e: &&Exception| {
            let here = match e.backend.strip_suffix(" on a CPU") {
                Some(name) => software && Some(name) == backend,
                None => Some(e.backend) == backend,
            };
            here && e.promise == promise
        };
        match EXCEPTIONS.iter().find(exception) {
            None if count <= most => {}
            None => self.broken.push(format!("{promise}: {count}, at most {most} promised")),
            Some(Exception { takes, reason, .. }) if count != *takes || count <= most => {
                let told = format!("{promise}: {count}, not the exception {takes} ({reason})");
                self.broken.push(told);
            }
            Some(_) => {}
        }
    }

    fn finish(self) {
        assert!(self.broken.is_empty(), "on {}:\n{}", self.device, self.broken.join("\n"));
    }
}

/// Random numbers, computed.
fn random(dims: &[usize], device: &Device) -> Result<Tensor> {
    let x = Tensor::randn(dims, DType::F32, &mut Rng::seed(dims.len() as u64), device)?;
    let x = x.contiguous();
    x.realize()?;
    Ok(x)
}

/// What `run` costs, from a device that has nothing to do until it has nothing to do again.
fn cost(device: &Device, run: impl FnOnce() -> Result<()>) -> Result<Stats> {
    device.synchronize()?;
    let before = device.stats();
    run()?;
    // Commands that are gathered are handed over; the wait is not the computation's.
    device.synchronize()?;
    let mut stats = device.stats().since(&before);
    stats.host_syncs -= 1;
    Ok(stats)
}

/// Runs a case on a device of its own, if there is one.
fn on_its_own<B: Backend>(
    spec: &str,
    test: &str,
    backend: impl Fn() -> B,
    case: impl FnOnce(&Device, &mut Promises<'_>) -> Result<()>,
) {
    let Some(device) = own_device(spec, test, backend) else { return };
    let mut promises = Promises { device: &device, broken: Vec::new() };
    let ran = case(&device, &mut promises);
    ran.unwrap_or_else(|error| panic!("{test} on {device}: {error}"));
    promises.finish();
}

/// A chain of elementwise operations is a launch, a submission, and nothing else.
///
/// # Panics
/// When it is more.
pub fn a_chain_of_a_hundred_ops_is_one_submission<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    on_its_own(spec, "a_chain_of_a_hundred_ops_is_one_submission", backend, |device, promises| {
        let x = random(&[1000], device)?;
        let y = (0..50).try_fold(x.clone(), |y, _| y.mul(0.999)?.add(&x))?;
        let stats = cost(device, || y.realize())?;
        assert_eq!((stats.launches, stats.temps, stats.submits), (1, 0, 1), "{stats:?}");
        assert_eq!((stats.host_syncs, stats.copies), (0, 0), "{stats:?}");
        promises.keep("barriers of a chain", stats.barriers, 0);
        Ok(())
    });
}

/// Positions, what lies there, and its sum: the host waits for the number of positions alone.
///
/// # Panics
/// When it waits for more.
pub fn a_count_is_all_that_is_waited_for<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    on_its_own(spec, "a_count_is_all_that_is_waited_for", backend, |device, _| {
        let x = Tensor::new([0f32, 2.0, 0.0, 3.0], device)?;
        x.realize()?;
        let mut sum = None;
        let stats = cost(device, || {
            let found = x.take(&x.nonzero()?.flatten())?.sum(..)?;
            found.realize()?;
            sum = Some(found);
            Ok(())
        })?;
        let waited = (stats.host_syncs, stats.copies, stats.bytes_moved);
        assert_eq!(waited, (1, 1, 8), "{stats:?}");
        assert_eq!(sum.expect("it ran").item::<f32>()?, 5.0);
        Ok(())
    });
}

/// Forward, backward and the update of all parameters are one submission; after the first steps
/// nothing is planned, compiled or allocated.
///
/// # Panics
/// When that is not so.
pub fn a_training_step_is_one_submission<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    on_its_own(spec, "a_training_step_is_one_submission", backend, |device, promises| {
        let init = &mut Init::new(0, device);
        let model = Sequential::new()
            .then(Linear::new(24, 40, init)?)
            .then(Relu)
            .then(Linear::new(40, 10, init)?);
        let x = random(&[32, 24], device)?;
        let y = (Tensor::arange(0i64, 32, 1, device)? % 10i64).contiguous();
        y.realize()?;
        let mut adam = AdamW::new(model.parameters(), AdamOptions::default())?;
        let mut step = || adam.step(&model.forward(&x)?.cross_entropy(&y)?);
        for _ in 0..8 {
            step()?;
        }
        for _ in 0..4 {
            let stats = cost(device, &mut step)?;
            let made = (stats.compiles, stats.loads, stats.plan_misses, stats.driver_allocs);
            assert_eq!(made, (0, 0, 0, 0), "{stats:?}");
            assert_eq!((stats.copies, stats.host_syncs), (0, 0), "{stats:?}");
            promises.keep("a training step", stats.submits, 1);
        }
        Ok(())
    });
}

/// What is computed of data, a matrix and another one, with slices that start in random places.
type Sliced = fn(&[Tensor; 3], &mut crate::rng::Rng) -> Result<Tensor>;

const SLICED: [(&str, Sliced); 12] = [
    ("a window", |[data, ..], rng| {
        let i = rng.below(400);
        data.slice(0, i..i + 40)?.mul(2.0)?.add(1.0)
    }),
    ("a batch of windows and targets", |[data, ..], rng| {
        let windows = |shift: usize, rng: &mut crate::rng::Rng| {
            let window = |k: usize| {
                let i = 100 * k + rng.below(50) + shift;
                data.slice(0, i..i + 40)
            };
            let all = (0..4).map(window).collect::<Result<Vec<Tensor>>>()?;
            Tensor::stack(&all.iter().collect::<Vec<_>>(), 0)
        };
        windows(0, &mut rng.clone())?.mul(3.0)?.sub(windows(1, rng)?)
    }),
    ("aligned windows", |[data, ..], rng| {
        let i = 16 * rng.below(25);
        data.slice(0, i..i + 64)?.sum(..)
    }),
    ("a block of a matrix", |[_, rows, _], rng| {
        let (i, j) = (rng.below(59), rng.below(41));
        rows.slice(0, i..i + 5)?.slice(1, j..j + 7)?.t().flip(0)?.square().sum(0)
    }),
    ("a row", |[_, rows, _], rng| rows.select_index(0, rng.below(64) as isize)?.mul(2.0)),
    ("an element of a row", |[_, rows, _], rng| {
        let row = rows.select_index(0, rng.below(64) as isize)?;
        row.select_index(0, rng.below(48) as isize)?.add(1.0)
    }),
    ("rows times a matrix", |[_, rows, w], rng| {
        let i = rng.below(33);
        Ok(rows.slice(0, i..i + 32)?.matmul(w)?.relu())
    }),
    ("a gradient", |[_, rows, w], rng| {
        let (i, rows) = (rng.below(33), rows.tracked());
        let loss = rows.slice(0, i..i + 32)?.matmul(w)?.square().sum(..)?;
        loss.grad(&[&rows]).map(|mut found| found.remove(0).expect("it depends"))
    }),
    ("digits of a position", |[_, rows, _], rng| {
        let i = rng.below(3000);
        rows.flatten().slice(0, i..i + 60)?.reshape([6, 10])?.t().mul(2.0)
    }),
    ("running sums", |[data, ..], rng| {
        let i = rng.below(300);
        data.slice(0, i..i + 100)?.cumsum(0)
    }),
    ("a part that is written", |[data, rows, _], rng| {
        let (i, j) = (rng.below(64), rng.below(464));
        data.add(rows.select_index(0, i as isize)?.pad([(j, 464 - j)])?)
    }),
    ("what is computed first", |[data, ..], rng| {
        let i = rng.below(400);
        data.flip(0)?.mul(data)?.contiguous().slice(0, i..i + 100)?.add(1.0)
    }),
];

/// A loop that slices data in other places each time computes what it would with the places written in,
/// and plans and compiles nothing after its second step.
///
/// # Panics
/// When that is not so.
pub fn slices_in_other_places_compile_nothing<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    on_its_own(spec, "slices_in_other_places_compile_nothing", backend, |device, _| {
        let data = |dims: &[usize]| -> Result<Tensor> {
            let n: usize = dims.iter().product();
            let values: Vec<f32> = (0..n).map(|i| (i * 37 % 101) as f32 - 50.0).collect();
            Tensor::from_slice(&values, dims, device)
        };
        let data = [data(&[512])?, data(&[64, 48])?, data(&[48, 24])?];
        for (name, sliced) in SLICED {
            let mut rng = crate::rng::Rng::new(1);
            for step in 0..16 {
                let y = sliced(&data, &mut rng)?;
                let want = testing::evaluate(&[&y])?.remove(0);
                let before = device.stats();
                let got = y.to_vec::<f32>()?;
                let stats = device.stats().since(&before);
                assert_eq!(got.len(), want.len(), "{name}");
                let same = got.iter().zip(&want).all(|(&x, y)| f64::from(x) == y.to_f64());
                assert!(same, "{name}, step {step}: {got:?}, not {want:?}");
                let made = (stats.compiles, stats.loads, stats.plan_misses);
                assert!(step < 2 || made == (0, 0, 0), "{name}, step {step}: {stats:?}");
            }
        }
        Ok(())
    });
}

/// A loop over a sequence of batches whose results stand behind one another, and its gradient, take hardly more programs
/// for many steps than for few.
///
/// # Panics
/// When they take twice as many.
pub fn steps_of_a_loop_share_programs<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    let test = "steps_of_a_loop_share_programs";
    on_its_own(spec, test, &backend, |first, _| {
        let compiled = |device: &Device, steps: usize| -> Result<u64> {
            let values: Vec<f32> = (0..4 * steps * 8).map(|i| (i % 13) as f32 / 13.0).collect();
            let x = Tensor::from_slice(&values, [4, steps, 8], device)?.tracked();
            let w =
                Tensor::from_slice(&values[..64], [8, 8], device)?.mul(0.2)?.contiguous().tracked();
            let mut h = Tensor::zeros([4, 8], DType::F32, device);
            let mut states = Vec::new();
            for step in 0..steps {
                h = h.matmul(&w)?.add(x.select_index(1, step as isize)?)?.tanh();
                states.push(h.clone());
            }
            let states = Tensor::stack(&states.iter().collect::<Vec<_>>(), 1)?;
            let loss = states.square().mul(&x)?.sum(..)?;
            let gradients: Vec<Tensor> = loss.grad(&[&x, &w])?.into_iter().flatten().collect();
            let results = [&states, &loss, &gradients[0], &gradients[1]];
            let want = testing::evaluate(&results)?;
            let before = device.stats();
            Tensor::realize_all(results)?;
            for (result, want) in results.iter().zip(&want) {
                let near = |(x, y): (&f32, &zyx_core::Scalar)| {
                    (f64::from(*x) - y.to_f64()).abs() <= 1e-3 + 1e-4 * y.to_f64().abs()
                };
                let got = result.to_vec::<f32>()?;
                assert!(got.iter().zip(want).all(near), "{steps} steps: {got:?}, not {want:?}");
            }
            let stats = device.stats().since(&before);
            Ok(stats.compiles + stats.loads)
        };
        let few = compiled(first, 16)?;
        // A driver that rounds alike kernels as it likes has one for each step.
        if first.caps().contracts {
            return Ok(());
        }
        let other = own_device(spec, test, &backend).expect("it was there before");
        let many = compiled(&other, 48)?;
        assert!(many < 2 * few, "{few} programs for 16 steps, {many} for 48");
        Ok(())
    });
}

/// What is computed of rows and a matrix.
type Sized = fn(&Tensor, &Tensor) -> Result<Tensor>;

/// Where threads of a driver share sums in ways that are chosen by their length, with how often a CPU chooses another.
const SIZED: [(&str, Option<u64>, Sized); 20] = [
    ("a chain", None, |x, _| x.mul(2.0)?.add(1.0)?.relu().sub(x)),
    ("sums of rows", None, |x, _| x.square().sum(1)),
    ("sums of columns", None, |x, _| x.square().sum(0)),
    ("sums of whole numbers", None, |x, _| Ok(x.cast(DType::I32).sum(0)?.cast(DType::F32))),
    ("all of it", None, |x, _| x.max(..)),
    ("a mean", None, |x, _| x.mean(0)?.sub(x)),
    ("softmax", Some(0), |x, _| x.softmax(-1)),
    ("softmax along columns", None, |x, _| x.t().softmax(-1)),
    ("normalised rows", None, |x, _| {
        x.sub(x.mean_keepdim(1)?)?.div(x.square().sum_keepdim(1)?.add(1.0)?)
    }),
    ("long sums", Some(0), |x, w| x.matmul(&Tensor::cat(&[w; 12], 1)?)?.square().mean(..)),
    ("long sums of columns", Some(0), |x, w| {
        x.matmul(&Tensor::cat(&[w; 12], 1)?)?.square().mul(0.5)?.sum(0)
    }),
    ("sums of several axes", Some(0), |x, w| {
        let y = x.matmul(&Tensor::cat(&[w; 12], 1)?)?;
        y.reshape([x.shape()[0], 12, 16])?.square().sum([0, 2])
    }),
    ("a dense layer", Some(0), |x, w| Ok(x.matmul(w)?.add(1.0)?.relu())),
    ("its gradient", Some(0), |x, w| {
        let w = w.tracked();
        let loss = x.matmul(&w)?.relu().mul(2.0)?.sum(..)?;
        loss.grad(&[&w]).map(|mut found| found.remove(0).expect("it depends"))
    }),
    ("rows times rows", Some(0), |x, _| x.matmul(&x.t())?.mul(0.5)),
    ("attention", Some(2), |x, w| {
        let n = x.shape()[0];
        let scores = x.matmul(&x.t())?.mul(0.001)?;
        let mask = Tensor::ones([n, n], DType::F32, x.device()).tril(0)?.eq(0.0)?;
        scores.masked_fill(&mask, f32::NEG_INFINITY)?.softmax(-1)?.matmul(&x.matmul(w)?)
    }),
    ("one more row", None, |x, _| Tensor::cat(&[x, &x.slice(0, 0..1)?.neg()], 0)?.add(1.0)),
    ("running sums", Some(0), |x, _| x.cumsum(0)),
    ("waves of positions", None, |x, _| {
        let n = x.shape()[0];
        let positions = Tensor::arange(0, n as i64, 1, x.device())?.cast(DType::F32);
        x.add(positions.mul(0.37)?.sin().add(positions.mul(-0.01)?.exp())?.unsqueeze(1)?)
    }),
    ("rows chosen", None, |x, _| {
        let index = Tensor::from_slice(&[3i64, 0, 3, 20], [4], x.device())?;
        Ok(x.index_select(0, &index)?.exp())
    }),
];

/// Rows of numbers that are the same for one size: whole ones divided by a number.
fn sized(n: usize, by: f32, device: &Device) -> Result<Tensor> {
    let values: Vec<f32> = (0..n * 24).map(|i| ((i * 37 % 101) as f32 - 50.0) / by).collect();
    Tensor::from_slice(&values, [n, 24], device)
}

/// Whether kernels of several sizes share programs: not where a driver fuses operations as it likes.
fn shares(device: &Device) -> bool {
    !device.caps().contracts
}

/// From the third size on nothing is compiled; on a GPU, where loops of few lengths remain, little.
///
/// # Panics
/// When something is.
pub fn other_sizes_compile_nothing<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    on_its_own(spec, "other_sizes_compile_nothing", backend, |device, _| {
        let gpu = device.info().kind == DeviceKind::Gpu;
        let steps = if shares(device) { 20 } else { 3 };
        let software = device.info().kind == DeviceKind::Software;
        let most = |changes: Option<u64>| match changes {
            Some(_) if software => u64::MAX,
            _ if gpu => 8,
            _ => changes.unwrap_or(0),
        };
        compute_sizes(device, steps, if gpu { [49, 64] } else { [33, 122] }, most)
    });
}

/// As on a GPU, whatever the device is: values alone, since strategies of others go by sizes.
///
/// # Panics
/// When a value is wrong.
pub fn other_sizes_have_loops_of_few_lengths<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    on_its_own(spec, "other_sizes_have_loops_of_few_lengths", backend, |device, _| {
        testing::keep_lengths(device);
        let steps = if device.info().kind == DeviceKind::Cpu { 20 } else { 3 };
        compute_sizes(device, steps, [41, 64], |_| u64::MAX)
    });
}

/// Computes everything of `SIZED` for so many numbers of rows in a range. At most so many kernels are to be compiled
/// from the third one on.
fn compute_sizes(
    device: &Device,
    steps: usize,
    [least, greatest]: [usize; 2],
    most: impl Fn(Option<u64>) -> u64,
) -> Result<()> {
    let w = sized(16, 1.0, device)?.reshape([24, 16])?;
    let mut failures = Vec::new();
    for (name, changes, compute) in SIZED {
        let mut compiled = 0;
        let mut rng = crate::rng::Rng::new(1);
        for step in 0..steps {
            let any = || least + rng.below(greatest + 1 - least);
            let n = [37, 53].get(step).copied().unwrap_or_else(any);
            let y = compute(&sized(n, 1.0, device)?, &w)?;
            let want = testing::evaluate(&[&y])?.remove(0);
            let before = device.stats();
            let got = y.to_vec::<f32>()?;
            let stats = device.stats().since(&before);
            assert_eq!(got.len(), want.len(), "{name}");
            let near = |x: f32, y: f64| (f64::from(x) - y).abs() <= 1e-5 * y.abs().max(1e-3);
            let wrong = got.iter().zip(&want).find(|(x, y)| !near(**x, y.to_f64()));
            assert!(wrong.is_none(), "{name}, {n} rows: {wrong:?}");
            // Programs on disk count: a driver's cache is full or empty, whatever ran before.
            let is_driver = device.info().kind != DeviceKind::Cpu;
            let new = stats.compiles + if is_driver { stats.loads } else { 0 };
            compiled += if step >= 2 { new } else { 0 };
            if shares(device) && compiled > most(changes) {
                failures.push(format!("{name}, {n} rows: {new} compiled"));
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
    Ok(())
}

/// Results are bit for bit those of a device that has seen no other size; on a GPU some sums but for the last bits.
///
/// # Panics
/// When they are not.
pub fn results_do_not_depend_on_earlier_sizes<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    let test = "results_do_not_depend_on_earlier_sizes";
    on_its_own(spec, test, &backend, |device, _| {
        let run = |compute: Sized, n, device: &Device| -> Result<Vec<u32>> {
            let w = sized(16, 7.0, device)?.reshape([24, 16])?;
            let y = compute(&sized(n, 7.0, device)?, &w)?.to_vec::<f32>()?;
            Ok(y.into_iter().map(f32::to_bits).collect())
        };
        // Where compiling takes its time, a few.
        let sizes: Vec<usize> = match device.info().kind {
            DeviceKind::Cpu => (30..400).step_by(7).collect(),
            _ if shares(device) => vec![64, 97],
            _ => vec![64],
        };
        for (name, _, compute) in SIZED {
            run(compute, 1000, device)?;
            run(compute, 31, device)?;
            for &n in &sizes {
                let got = run(compute, n, device)?;
                let alone = own_device(spec, test, &backend).expect("it was there before");
                let alone = run(compute, n, &alone)?;
                let near = |(x, y): (&u32, &u32)| {
                    let (x, y) = (f32::from_bits(*x), f32::from_bits(*y));
                    device.info().kind == DeviceKind::Gpu && (x - y).abs() <= 1e-6 * y.abs()
                };
                let same = |(x, y): (&u32, &u32)| x == y || near((x, y));
                let wrong = got.iter().zip(&alone).find(|pair| !same(*pair));
                assert!(wrong.is_none(), "{name}, {n} rows, on {device}: {wrong:?}");
            }
        }
        Ok(())
    });
}

/// A result, and what gradients are asked for.
type Layer = (&'static str, Tensor, Vec<Tensor>);

fn layers(device: &Device) -> Result<Vec<Layer>> {
    let tracked = |dims: &[usize]| random(dims, device).map(|x| x.tracked());
    let x = tracked(&[64, 96])?;
    let (w, b) = (tracked(&[96])?, tracked(&[96])?);
    let (matrix, bias) = (tracked(&[96, 32])?, tracked(&[32])?);
    let product = || x.matmul(&matrix)?.add(&bias);
    let dense = vec![x.clone(), matrix.clone(), bias.clone()];
    let scores = [tracked(&[2, 256, 16])?, tracked(&[2, 256, 16])?, tracked(&[2, 256, 16])?];
    let [q, k, v] = &scores;
    let norm = || x.layer_norm(-1, Some(&w), Some(&b), 1e-5);
    let mut layers = vec![
        ("softmax", x.softmax(-1)?, vec![x.clone()]),
        ("log_softmax", x.log_softmax(-1)?, vec![x.clone()]),
        ("layer_norm", norm()?, vec![x.clone(), w.clone(), b.clone()]),
        ("layer_norm, input alone", norm()?, vec![x.clone()]),
        ("rms_norm", x.rms_norm(-1, Some(&w), 1e-5)?, vec![x.clone(), w.clone()]),
        ("matmul, bias, relu", product()?.relu(), dense.clone()),
        ("matmul, bias, gelu", product()?.gelu(), dense.clone()),
        ("matmul, bias, selu", product()?.selu(), dense),
        ("gelu", x.gelu(), vec![x.clone()]),
        ("sum", x.sum(1)?, vec![x.clone()]),
        ("cumsum", x.cumsum(1)?, vec![x.clone()]),
        ("attention", q.scaled_dot_product_attention(k, v, Attention::default())?, scores.to_vec()),
    ];
    // Enough scores that a device which can does not store them.
    let many = |flash: &Flash| flash.least <= 8 << 20;
    if let Some(flash) = device.caps().flash.filter(many) {
        let rows = (flash.least / 4).isqrt() as usize + 1;
        let qkv = [tracked(&[1, rows, 8])?, tracked(&[1, rows, 8])?, tracked(&[1, rows, 8])?];
        let y = qkv[0].scaled_dot_product_attention(&qkv[1], &qkv[2], Attention::default())?;
        layers.push(("attention of many scores", y, qkv.to_vec()));
    }
    Ok(layers)
}

/// Canonical layers are one launch forwards, without temporaries, and one more at most backwards.
///
/// # Panics
/// When one is more.
pub fn layers_are_one_launch_each<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    on_its_own(spec, "layers_are_one_launch_each", backend, |device, promises| {
        for (name, y, _) in layers(device)? {
            promises.keep(name, cost(device, || y.realize())?.launches, 1);
        }
        for (name, y, wrt) in layers(device)? {
            let cotangent = random(y.shape(), device)?;
            let gradients = y.grad_with(&cotangent, &wrt.iter().collect::<Vec<_>>())?;
            let gradients: Vec<Tensor> = gradients.into_iter().flatten().collect();
            assert_eq!(gradients.len(), wrt.len(), "{name}");
            // A result that is held would be stored on the way.
            drop(y);
            let backward = cost(device, || Tensor::realize_all(&gradients))?;
            promises.keep(&format!("gradient of {name}"), backward.launches, 2);
        }
        Ok(())
    });
}

/// Adam over parameters of many shapes, gradients being there, is one launch.
///
/// # Panics
/// When it is more.
pub fn an_optimizer_updates_all_parameters_at_once<B: Backend>(
    spec: &str,
    backend: impl Fn() -> B,
) {
    on_its_own(spec, "an_optimizer_updates_all_parameters_at_once", backend, |device, promises| {
        let mut updates = Vec::new();
        for i in 0..10 {
            let dims = [3 + i % 7, 5 * (1 + i % 3), 1 + i];
            let state = [random(&dims, device)?, random(&dims, device)?, random(&dims, device)?];
            let [p, g, m] = state;
            let v = g.square();
            let m = m.mul(0.9)?.add(g.mul(0.1)?)?;
            let v = v.mul(0.999)?.add(g.square().mul(0.001)?)?;
            updates.extend([p.sub(m.div(v.sqrt().add(1e-8)?)?)?, m, v]);
        }
        let stats = cost(device, || Tensor::realize_all(&updates))?;
        assert_eq!(stats.temps, 0, "{stats:?}");
        promises.keep("an optimizer's update", stats.launches, 1);
        Ok(())
    });
}

/// Products one after the other take turns in two places.
///
/// # Panics
/// When they need more.
pub fn a_hundred_products_need_two_temporaries<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    on_its_own(spec, "a_hundred_products_need_two_temporaries", backend, |device, _| {
        let (x, w) = (random(&[32, 48], device)?, random(&[48, 48], device)?);
        let y = (0..100).try_fold(x, |y, _| y.matmul(&w)?.mul(0.1))?;
        let stats = cost(device, || y.realize())?;
        assert!(stats.temps <= 2 && stats.launches <= 100, "{stats:?}");
        Ok(())
    });
}

/// Temporaries of random graphs, planned as the device runs them, take hardly more memory than are
/// live at once.
///
/// # Panics
/// When they take more than a twentieth more.
pub fn arenas_are_hardly_larger_than_what_is_live<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    on_its_own(spec, "arenas_are_hardly_larger_than_what_is_live", backend, |device, _| {
        let mut stored = 0;
        for seed in 0..50 {
            let y = values_of_many_sizes(seed, device)?;
            let (arena, live) = testing::arena(&[&y]);
            assert!(live <= arena, "seed {seed}: {arena} bytes cannot hold {live}");
            assert!(20 * arena <= 21 * live, "seed {seed}: {arena} bytes, {live} are live");
            stored += usize::from(live > 0);
        }
        assert!(stored >= 45, "only {stored} of 50 graphs have temporaries");
        Ok(())
    });
}

/// A graph in which values are stored, used soon or late, and differ in size by hundreds.
fn values_of_many_sizes(seed: u64, device: &Device) -> Result<Tensor> {
    let mut rng = crate::Rng::new(seed);
    let mut values: Vec<Tensor> =
        (0..2).map(|i| Tensor::iota(64 * (i + 1), DType::F32, device).contiguous()).collect();
    for _ in 0..8 + rng.below(24) {
        let reach = (*rng.pick(&[1, 2, 2, 3, 12])).min(values.len());
        let x = &values[values.len() - 1 - rng.below(reach)];
        let y = &values[values.len() - 1 - rng.below(values.len())];
        // A sum is needed before anything of its size can be computed from it: nothing fuses.
        let total = x.sum(..)?.add(y.sum(..)?)?;
        let n = 64 * *rng.pick(&[1, 3, 16, 40, 100, 300]);
        let next = Tensor::iota(n, DType::F32, device).mul(total.expand([n])?)?;
        values.push(next.sin().contiguous());
    }
    let last = &values[values.len() - 1];
    values.iter().try_fold(last.sum(..)?, |sum, x| sum.add(x.max(..)?))
}

/// Bytes that begin where every device can read them.
struct Aligned {
    bytes: Vec<u8>,
    first: usize,
    len: usize,
}

impl Aligned {
    fn new(data: &[f32]) -> Aligned {
        let len = size_of_val(data);
        let mut bytes = vec![0; len + 64];
        let first = bytes.as_ptr().align_offset(64);
        let elements = data.iter().flat_map(|x| x.to_le_bytes());
        bytes[first..first + len].iter_mut().zip(elements).for_each(|(to, x)| *to = x);
        Aligned { bytes, first, len }
    }
}

impl AsRef<[u8]> for Aligned {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.first..self.first + self.len]
    }
}

/// From memory of the caller's through an operation to the result: nothing is copied where the
/// device computes in the host's memory, else once there and once back. Elements of a slice, and
/// those that go to a vector, are copied once each anywhere.
///
/// # Panics
/// When more is copied.
pub fn data_is_copied_once_there_and_once_back<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    on_its_own(spec, "data_is_copied_once_there_and_once_back", backend, |device, promises| {
        let n = 1 << 16;
        let data: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let owner = Arc::new(Aligned::new(&data));
        let mut last = 0.0;
        let stats = cost(device, || {
            let y = Tensor::from_owner(owner, DType::F32, [n], device)?.mul(0.5)?;
            last = match y.host_view()? {
                Some(view) => {
                    f32::from_le_bytes(*view.as_slice().last_chunk().expect("there are elements"))
                }
                None => y.to_vec::<f32>()?[n - 1],
            };
            Ok(())
        })?;
        assert_eq!(last, (n - 1) as f32 * 0.5);
        let copies = if device.caps().unified_memory { 0 } else { 2 };
        promises.keep("copies of memory that is lent", stats.copies, copies);
        let mut result = Vec::new();
        let stats = cost(device, || {
            result = Tensor::from_slice(&data, [n], device)?.mul(0.5)?.to_vec::<f32>()?;
            Ok(())
        })?;
        assert!(result.iter().zip(&data).all(|(y, x)| *y == x * 0.5));
        let bytes = 4 * n as u64;
        assert_eq!((stats.copies, stats.bytes_moved), (2, 2 * bytes), "{stats:?}");
        Ok(())
    });
}
