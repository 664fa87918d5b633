//! Each call of a small training job fails once.
//!
//! The job uploads, computes gradients, updates, waits and reads, in the order in which any
//! training loop does. For every kind of call and every call of that kind: the error says what was
//! injected, nothing it left behind is still allocated, the same tensors can be asked for again,
//! and the whole job run once more on the same device gives the bits it gave before.

use super::faulty::{Call, Faults, Faulty, INJECTED};
use crate::harness;
use zyx_core::hal::Backend;
use zyx_core::{DType, Device, Param, Result, Runtime, Tensor};

/// A device of its own for this test, `None` if there is none.
fn open<B: Backend>(
    spec: &str,
    test: &str,
    backend: impl Fn() -> B,
) -> Option<(Device, Faults, Runtime)> {
    harness::device(spec, test, |runtime| runtime.register(backend()))?;
    let faults = Faults::default();
    let runtime = Runtime::default();
    runtime.register(Faulty::new(backend(), &faults));
    let device = runtime.device(spec).expect("it opened before");
    Some((device, faults, runtime))
}

const STEPS: usize = 2;

/// Numbers between -1 and 1.
fn numbers(n: usize, seed: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7 + seed * 5 + 3) % 19) as f32 / 9.5 - 1.0).collect()
}

/// Two layers and the data of one step.
struct Job {
    weights: [Param; 2],
}

impl Job {
    fn new(device: &Device) -> Result<Job> {
        let weight = |dims: [usize; 2], seed| -> Result<Param> {
            Ok(Param::new(Tensor::from_slice(&numbers(dims[0] * dims[1], seed), dims, device)?))
        };
        Ok(Job { weights: [weight([6, 8], 1)?, weight([8, 3], 2)?] })
    }

    /// The loss of a step, with the updated weights pending.
    fn step(&self, k: usize, device: &Device) -> Result<Tensor> {
        let x = Tensor::from_slice(&numbers(4 * 6, 10 + k), [4, 6], device)?;
        let y = Tensor::from_slice(&[0i64, 1, 2, (k % 3) as i64], [4], device)?;
        let [a, b] = &self.weights;
        let loss = x.matmul(&a.tensor())?.tanh().matmul(&b.tensor())?.cross_entropy(&y)?;
        let leaves = [a.tensor(), b.tensor()];
        let gradients = loss.grad(&[&leaves[0], &leaves[1]])?;
        for ((param, old), gradient) in self.weights.iter().zip(&leaves).zip(gradients) {
            let gradient = gradient.expect("the loss depends on every weight");
            param.set(&(old - gradient * 0.5))?;
        }
        Ok(loss)
    }

    /// Computes what is pending and reads the loss.
    fn finish(&self, loss: &Tensor, device: &Device) -> Result<u32> {
        let [a, b] = [self.weights[0].tensor(), self.weights[1].tensor()];
        Tensor::realize_all([loss, &a, &b])?;
        device.synchronize()?;
        Ok(loss.item::<f32>()?.to_bits())
    }
}

/// The bits of the losses. A step whose tensors are there is asked for a second time if asking
/// fails, and `errors` gets why.
fn train(device: &Device, steps: usize, errors: &mut Vec<String>) -> Result<Vec<u32>> {
    let job = Job::new(device)?;
    let mut losses = Vec::new();
    for k in 0..steps {
        let loss = job.step(k, device)?;
        losses.push(match job.finish(&loss, device) {
            Ok(bits) => bits,
            Err(error) => {
                errors.push(error.to_string());
                job.finish(&loss, device)?
            }
        });
    }
    Ok(losses)
}

/// The job from the start, with errors of all kinds told.
fn attempt(device: &Device) -> (Option<Vec<u32>>, Vec<String>) {
    attempt_steps(device, STEPS)
}

/// The same with so many steps.
pub(super) fn attempt_steps(device: &Device, steps: usize) -> (Option<Vec<u32>>, Vec<String>) {
    let mut errors = Vec::new();
    let losses = match train(device, steps, &mut errors) {
        Ok(losses) => Some(losses),
        Err(error) => {
            errors.push(error.to_string());
            None
        }
    };
    (losses, errors)
}

/// See the module.
///
/// # Panics
/// When a fault is not survived.
pub fn every_call_may_fail_once<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    let test = "every_call_may_fail_once";
    let Some((device, faults, _runtime)) = open(spec, test, &backend) else { return };
    let (expected, errors) = attempt(&device);
    let expected = expected.unwrap_or_else(|| panic!("without faults: {errors:?}"));
    for call in Call::ALL {
        // Compiled kernels are kept by the device, so failing compilations need new ones.
        let fresh = call == Call::Compile;
        device.trim_memory();
        faults.restart();
        let calls = if fresh {
            let Some((device, faults, _runtime)) = open(spec, test, &backend) else { return };
            assert_eq!(attempt(&device).0.as_ref(), Some(&expected), "on a new device");
            faults.calls(call)
        } else {
            attempt(&device);
            faults.calls(call)
        };
        // The core copies nothing on a device.
        assert!(calls > 0 || call == Call::Copy, "the job calls no {call:?}");
        for n in 0..calls {
            let what = format!("on {spec}, with {call:?} {n} of {calls} failing");
            if fresh {
                let Some((device, faults, _runtime)) = open(spec, test, &backend) else { return };
                survive(&device, &faults, (call, n), &expected, &what);
            } else {
                survive(&device, &faults, (call, n), &expected, &what);
            }
        }
    }
    device.trim_memory();
    assert_eq!((device.stats().live_bytes, faults.buffers()), (0, 0), "memory is left");
}

/// One fault.
fn survive(
    device: &Device,
    faults: &Faults,
    (call, n): (Call, usize),
    expected: &[u32],
    what: &str,
) {
    // Memory kept for reuse would spare the calls that are to fail.
    device.trim_memory();
    let (live, buffers) = (device.stats().live_bytes, faults.buffers());
    faults.arm(call, n);
    let (losses, errors) = attempt(device);
    assert!(!faults.disarm(), "{what}: it did not fail");
    let survived = call == Call::AllocFull;
    assert_eq!(errors.len(), usize::from(!survived), "{what}: {errors:?}");
    assert!(errors.iter().all(|error| error.contains(INJECTED)), "{what}: {errors:?}");
    if let Some(losses) = losses {
        assert_eq!(losses, expected, "{what}: losses after asking again");
    }
    device.trim_memory();
    assert_eq!(device.stats().live_bytes, live, "{what}: memory of the core leaks");
    assert_eq!(faults.buffers(), buffers, "{what}: memory of the device leaks");
    let (losses, errors) = attempt(device);
    assert_eq!(losses.as_deref(), Some(expected), "{what}: the next computation: {errors:?}");
}

/// A device that has no memory left for a moment, while the pool keeps some that it could give
/// back: nobody hears of it.
///
/// # Panics
/// When somebody does.
pub fn memory_that_is_freed_is_found<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    let test = "memory_that_is_freed_is_found";
    let Some((device, faults, _runtime)) = open(spec, test, backend) else { return };
    let ones = |n: usize| Tensor::ones([n], DType::F32, &device);
    let kept = ones(1 << 12);
    kept.realize().expect("there is room");
    ones(1 << 14).realize().expect("there is room");
    assert!(device.stats().cached_bytes > 0, "what was freed is kept for reuse");
    faults.arm(Call::AllocFull, 0);
    let (spills, x) = (device.stats().spills, ones(1 << 13));
    x.realize().expect("the pool gives back what it keeps");
    assert!(!faults.disarm(), "no allocation failed");
    assert_eq!(device.stats().spills, spills, "nothing had to move to the host");
    assert_eq!(x.to_vec::<f32>().expect("it can be read"), vec![1.0; 1 << 13]);
}

/// A read that goes on while the program does, and fails: its handle says so, and nothing else.
///
/// # Panics
/// When anything else does, or the read's value or memory is gone.
pub fn a_read_under_way_fails_for_itself<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    let test = "a_read_under_way_fails_for_itself";
    let Some((device, faults, _runtime)) = open(spec, test, backend) else { return };
    let x = Tensor::ones([1 << 12], DType::F32, &device);
    x.realize().expect("there is room");
    faults.arm(Call::Read, 0);
    let read = x.read_async::<f32>().expect("it is handed over");
    let error = read.wait().expect_err("it fails").to_string();
    assert!(error.contains(INJECTED) && !faults.disarm(), "{error}");
    faults.arm(Call::Record, 0);
    let error = x.read_async::<f32>().expect_err("it is not handed over").to_string();
    assert!(error.contains(INJECTED) && !faults.disarm(), "{error}");
    let again = x.read_async::<f32>().and_then(|read| read.wait()).expect("it can be read");
    assert_eq!(again, vec![1.0; 1 << 12]);
    let y = (&x + 1.0).read_async::<f32>().expect("it is handed over").wait().expect("it is read");
    assert_eq!(y, vec![2.0; 1 << 12]);
    drop(x);
    device.trim_memory();
    assert_eq!((device.stats().live_bytes, faults.buffers()), (0, 0), "memory is left");
}
