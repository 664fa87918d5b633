//! Work that is larger than the device's memory, by a byte limit.

use crate::harness::own_device;
use crate::rng::Rng;
use zyx_core::hal::{Backend, DeviceError};
use zyx_core::{DType, Device, Error, Param, Result, Tensor};

/// Elements of a block: 16 MiB, or what an interpreter can do in a moment.
fn elements(device: &Device) -> usize {
    if device.spec().starts_with("reference") { 1 << 10 } else { 4 << 20 }
}

/// The sums of a few tensors, four times as large together as the device may be, computed in two
/// rounds so that everything is used twice.
fn sums(device: &Device) -> Result<Vec<f32>> {
    let n = elements(device);
    let block = |k: usize| -> Result<Tensor> {
        let x = Tensor::arange(0f32, n as f32, 1.0, device)? * ((k + 1) as f32 / n as f32);
        x.realize()?;
        Ok(x)
    };
    let blocks = (0..16).map(block).collect::<Result<Vec<_>>>()?;
    let mut results = Vec::new();
    for round in 0..2 {
        for (k, x) in blocks.iter().enumerate() {
            let y = &blocks[(k + 5 + round) % blocks.len()];
            results.push((x * 0.5 - y).abs().mean(..)?.item::<f32>()?);
        }
    }
    // What is on the host can be read without coming back.
    results.push(blocks[0].to_vec::<f32>()?.iter().sum());
    Ok(results)
}

/// A working set of 256 MiB on a device of 64 MiB.
///
/// # Panics
/// When it does not finish with the result it has without a limit.
pub fn what_exceeds_the_device_moves_to_the_host<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    let test = "what_exceeds_the_device_moves_to_the_host";
    let Some(device) = own_device(spec, test, backend) else { return };
    let expected = sums(&device).expect("without a limit");
    device.trim_memory();
    assert_eq!((device.stats().spills, device.stats().live_bytes), (0, 0));
    let limit = 4 * elements(&device) * DType::F32.size();
    device.set_memory_limit(Some(limit));
    device.reset_peak();
    let got = sums(&device).unwrap_or_else(|error| panic!("with a limit: {error}"));
    assert_eq!(got, expected);
    let stats = device.stats();
    assert!(stats.spills > 0, "nothing was moved: {stats:?}");
    assert!(stats.peak_bytes <= limit as u64, "{stats:?}, limit {limit}");
    assert_eq!((stats.live_bytes, stats.spilled_bytes), (0, 0), "memory is left");
}

/// Weights, and a step of gradient descent with momentum on all of them in one plan.
fn losses(device: &Device) -> Result<Vec<f32>> {
    let n = if device.spec().starts_with("reference") { 8 } else { 256 };
    let numbers = |k: usize| -> Vec<f32> {
        (0..n * n).map(|i| ((i * 31 + k * 17) % 101) as f32 / 500.0 - 0.1).collect()
    };
    let weight = |k| Ok(Param::new(Tensor::from_slice(&numbers(k), [n, n], device)?));
    let weights = (0..16).map(weight).collect::<Result<Vec<Param>>>()?;
    let zeros = |_| Param::state(Tensor::zeros([n, n], DType::F32, device));
    let momenta: Vec<Param> = (0..16).map(zeros).collect();
    let x = Tensor::from_slice(&numbers(9)[..4 * n], [4, n], device)?;
    let mut losses = Vec::new();
    for _ in 0..3 {
        let leaves: Vec<Tensor> = weights.iter().map(Param::tensor).collect();
        let mut y = x.clone();
        for leaf in &leaves {
            y = y.matmul(leaf)?.tanh();
        }
        let loss = (y - 0.25).square().mean(..)?;
        let gradients = loss.grad(&leaves.iter().collect::<Vec<_>>())?;
        for (k, gradient) in gradients.into_iter().enumerate() {
            let gradient = gradient.expect("the loss depends on every weight");
            momenta[k].set(&(momenta[k].tensor() * 0.9 + gradient))?;
            weights[k].set(&(&leaves[k] - momenta[k].tensor() * 0.5))?;
        }
        let state: Vec<Tensor> = weights.iter().chain(&momenta).map(Param::tensor).collect();
        Tensor::realize_all(state.iter().chain([&loss]))?;
        losses.push(loss.item::<f32>()?);
    }
    Ok(losses)
}

/// A training step whose weights and momenta are four times as large as the device.
///
/// # Panics
/// When its losses differ from those without a limit.
pub fn plans_that_exceed_the_device_run_step_by_step<B: Backend>(
    spec: &str,
    backend: impl Fn() -> B,
) {
    let test = "plans_that_exceed_the_device_run_step_by_step";
    let Some(device) = own_device(spec, test, backend) else { return };
    let expected = losses(&device).expect("without a limit");
    device.trim_memory();
    // Thirty-two matrices, of which eight fit.
    let n: usize = if device.spec().starts_with("reference") { 8 } else { 256 };
    let limit = 8 * n * n * DType::F32.size();
    device.set_memory_limit(Some(limit));
    device.reset_peak();
    let got = losses(&device).unwrap_or_else(|error| panic!("with a limit: {error}"));
    assert_eq!(got, expected);
    let stats = device.stats();
    assert!(stats.peak_bytes <= limit as u64, "{stats:?}, limit {limit}");
    assert_eq!((stats.live_bytes, stats.spilled_bytes), (0, 0), "memory is left");
}

/// One tensor that is larger than the device, and a kernel that is.
///
/// # Panics
/// When there is no error, when it says too little, or when the device does not go on.
pub fn what_cannot_fit_is_an_error_with_a_table<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    let test = "what_cannot_fit_is_an_error_with_a_table";
    let Some(device) = own_device(spec, test, backend) else { return };
    let ones = |n: usize| Tensor::ones([n], DType::F32, &device);
    let (a, b) = (ones(3 << 10), ones(1 << 10));
    Tensor::realize_all([&a, &b]).expect("without a limit");
    device.set_memory_limit(Some(64 << 10));
    let error = ones(1 << 20).realize().expect_err("4 MiB do not fit 64 KiB");
    let Error::Device(DeviceError::OutOfMemory { requested, live, .. }) = &error else {
        panic!("another error: {error}");
    };
    assert_eq!((*requested, live.as_slice()), (4 << 20, &[(12 << 10, 1), (4 << 10, 1)][..]));
    assert!(error.to_string().contains("1 x 12288 bytes"), "{error}");
    assert_eq!(device.stats().spills, 0, "nothing moves for what cannot fit");
    // All operands of one kernel have to fit together.
    let parts: Vec<Tensor> = (0..8).map(|k| ones(3 << 10) * k).collect();
    for part in &parts {
        part.realize().expect("one by one they fit");
    }
    let sum = parts.iter().skip(1).fold(parts[0].clone(), |sum, part| sum + part);
    let before = device.stats().live_bytes;
    match sum.to_vec::<f32>() {
        // Devices that bind few buffers take several kernels, which fit.
        Ok(sum) => assert_eq!(sum, vec![28.0; 3 << 10]),
        Err(error) => assert!(error.to_string().contains("out of device memory"), "{error}"),
    }
    assert!(device.stats().live_bytes <= before.max(64 << 10), "memory is left");
    assert_eq!((&a * 2.0).to_vec::<f32>().expect("this fits"), vec![2.0; 3 << 10]);
}

/// Elements of a tensor of the threads.
const N: usize = 1 << 10;

/// What the threads compute with: the elements are `a * i + b`, wrapping.
struct Line {
    x: Tensor,
    a: i32,
    b: i32,
}

impl Line {
    fn new(a: i32, b: i32, device: &Device) -> Result<Line> {
        Ok(Line { x: Tensor::from_slice(&Line::elements(a, b), [N], device)?, a, b })
    }

    fn elements(a: i32, b: i32) -> Vec<i32> {
        (0..N as i32).map(|i| a.wrapping_mul(i).wrapping_add(b)).collect()
    }

    fn add(&self, other: &Line, scale: i32) -> Result<Line> {
        let of = |x: i32, y: i32| x.wrapping_add(y.wrapping_mul(scale));
        let x = self.x.add(other.x.mul(scale)?)?;
        Ok(Line { x, a: of(self.a, other.a), b: of(self.b, other.b) })
    }

    fn check(&self, got: &[i32]) {
        assert_eq!(got, Line::elements(self.a, self.b), "{} i + {}", self.a, self.b);
    }
}

/// What one thread does to the lines it holds.
fn work(seed: u64, device: &Device) -> Result<()> {
    let mut rng = Rng::new(seed);
    let mut lines = vec![Line::new(1, 0, device)?, Line::new(0, 1, device)?];
    for _ in 0..60 {
        let (i, j) = (rng.below(lines.len()), rng.below(lines.len()));
        match rng.below(8) {
            0 => lines.push(Line::new(rng.range(-9, 9) as i32, seed as i32, device)?),
            1 | 2 => lines.push(lines[i].add(&lines[j], rng.range(-3, 3) as i32)?),
            3 => {
                // Needs six of the eight tensors for which there is room.
                let new = [1, 2, 3].map(|scale| lines[i].add(&lines[j], scale));
                let new = new.into_iter().collect::<Result<Vec<Line>>>()?;
                Tensor::realize_all(new.iter().map(|line| &line.x))?;
                lines.extend(new);
            }
            4 => {
                let sum = Line::elements(lines[i].a, lines[i].b);
                let sum = sum.into_iter().fold(0, i32::wrapping_add);
                assert_eq!(lines[i].x.sum(..)?.cast(DType::I32).item::<i32>()?, sum);
            }
            5 => lines[i].check(&lines[i].x.read_async::<i32>()?.wait()?),
            _ => lines[i].check(&lines[i].x.to_vec::<i32>()?),
        }
        while lines.len() > 6 {
            lines.swap_remove(rng.below(lines.len()));
        }
    }
    lines.iter().try_for_each(|line| {
        line.check(&line.x.to_vec::<i32>()?);
        Ok(())
    })
}

/// Eight threads that allocate, compute and read, each of which fits the device alone.
///
/// # Panics
/// When a value is wrong, a thread is refused memory, or memory is left.
pub fn threads_share_a_full_device<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    let Some(device) = own_device(spec, "threads_share_a_full_device", backend) else { return };
    let limit = 8 * N * DType::I32.size();
    device.set_memory_limit(Some(limit));
    std::thread::scope(|scope| {
        let start = |seed| {
            let device = &device;
            scope.spawn(move || work(seed, device).unwrap_or_else(|e| panic!("seed {seed}: {e}")))
        };
        let threads: Vec<_> = (0..8).map(start).collect();
        let failed = threads.into_iter().filter_map(|thread| thread.join().err()).count();
        assert_eq!(failed, 0, "threads failed");
    });
    let stats = device.stats();
    assert!(stats.spills > 0, "nothing was moved: {stats:?}");
    assert!(stats.peak_bytes <= limit as u64, "{stats:?}, limit {limit}");
    assert_eq!((stats.live_bytes, stats.spilled_bytes), (0, 0), "memory is left");
}

/// A plan that once had no room at once, with and without others that have it.
///
/// # Panics
/// When it does not run at once again as soon as there is room.
pub fn plans_that_had_no_room_recover<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    let Some(device) = own_device(spec, "plans_that_had_no_room_recover", backend) else { return };
    let x = Tensor::iota(N, DType::I32, &device).contiguous();
    x.realize().expect("without a limit");
    // A sum is needed whole before anything can be computed from it: values are stored between.
    let stepwise = || {
        let before = device.stats();
        let next = |y: Tensor, _| Ok((&x + y.sum(..)?.cast(DType::I32).expand([N])?).contiguous());
        let y = (0..3).try_fold(x.clone(), next).and_then(|y: Tensor| y.to_vec::<i32>());
        let sum = (N * (N - 1) / 2) as i32;
        let n = N as i32;
        let first = sum.wrapping_mul(n).wrapping_add(sum).wrapping_mul(n).wrapping_add(sum);
        assert_eq!(y.expect("it fits in steps")[0], first);
        device.stats().since(&before).stepwise
    };
    let bytes = N * DType::I32.size();
    assert_eq!(stepwise(), 0);
    // Room for one step: three tensors, and sums.
    let room = bytes * 13 / 4;
    device.set_memory_limit(Some(room));
    assert_eq!(stepwise(), 1, "it runs step by step");
    device.set_memory_limit(None);
    assert_eq!(stepwise(), 0, "there is no limit any more");
    // Memory that cannot leave: the plan would fit the limit by itself.
    device.trim_memory();
    let other = Tensor::iota(8 * N, DType::I32, &device);
    if let Some(view) = other.host_view().expect("without a limit") {
        device.set_memory_limit(Some(8 * bytes + room));
        assert_eq!((stepwise(), stepwise()), (1, 1), "a view has the memory");
        drop((view, other));
        assert_eq!(stepwise(), 0, "the view and its tensor are gone");
    }
}
