//! The process-wide defaults: runtime, device, random stream. Nothing else in the workspace is
//! static.

use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use zyx_core::{DType, Device, Element, Nested, Result, Rng, Runtime, Shape, Tensor};

struct Defaults {
    runtime: Runtime,
    device: OnceLock<Device>,
    rng: Mutex<Rng>,
}

static DEFAULTS: LazyLock<Defaults> = LazyLock::new(|| Defaults {
    runtime: compiled_in(),
    device: OnceLock::new(),
    rng: Mutex::new(Rng::seed(0)),
});

/// A runtime with every backend of this build.
fn compiled_in() -> Runtime {
    let runtime = Runtime::default();
    #[cfg(feature = "cpu")]
    runtime.register(backend_cpu::Cpu { config: backend_cpu::Config::from_env() });
    #[cfg(feature = "opencl")]
    runtime.register(backend_opencl::OpenCl::default());
    #[cfg(feature = "cuda")]
    runtime.register(backend_cuda::Cuda::default());
    #[cfg(feature = "vulkan")]
    runtime.register(backend_vulkan::Vulkan::default());
    runtime
}

/// The runtime of this process, with every compiled-in backend registered.
pub fn runtime() -> &'static Runtime {
    &DEFAULTS.runtime
}

/// The default device: what `ZYX_DEVICE` names, or else the first of `cpu` and `reference`. It is
/// opened at the first call and stays open.
///
/// # Errors
/// When `ZYX_DEVICE` names a device that is not there.
pub fn device() -> Result<Device> {
    if let Some(device) = DEFAULTS.device.get() {
        return Ok(device.clone());
    }
    let opened = match std::env::var("ZYX_DEVICE") {
        Ok(spec) if !spec.is_empty() => runtime().device(&spec)?,
        _ => runtime().device("cpu").or_else(|_| runtime().device("reference"))?,
    };
    Ok(DEFAULTS.device.get_or_init(|| opened).clone())
}

/// Restarts the random stream that [`rand`], [`randn`] and [`randint`] draw from. A program that
/// never calls this draws from stream 0.
pub fn seed(seed: u64) {
    *rng() = Rng::seed(seed);
}

fn rng() -> MutexGuard<'static, Rng> {
    DEFAULTS.rng.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A tensor from a number, an array, or nested arrays or vectors, on the default device.
///
/// # Errors
/// When nested vectors are ragged, or the device fails.
#[track_caller]
pub fn tensor(data: impl Nested) -> Result<Tensor> {
    Tensor::new(data, &device()?)
}

/// Zeros of dtype `f32` on the default device.
///
/// # Errors
/// When there is no default device.
pub fn zeros(shape: impl Into<Shape>) -> Result<Tensor> {
    Ok(Tensor::zeros(shape, DType::F32, &device()?))
}

/// Ones of dtype `f32` on the default device.
///
/// # Errors
/// When there is no default device.
pub fn ones(shape: impl Into<Shape>) -> Result<Tensor> {
    Ok(Tensor::ones(shape, DType::F32, &device()?))
}

/// Every element equal to `x`, on the default device.
///
/// # Errors
/// When there is no default device.
pub fn full<T: Element>(shape: impl Into<Shape>, x: T) -> Result<Tensor> {
    Ok(Tensor::full(shape, x, &device()?))
}

/// `start, start + step, ..` up to but not including `end`, on the default device.
///
/// # Errors
/// When `step` is 0 or leads away from `end`.
#[track_caller]
pub fn arange<T: Element>(start: T, end: T, step: T) -> Result<Tensor> {
    Tensor::arange(start, end, step, &device()?)
}

/// The identity matrix of order `n`, `f32`, on the default device.
///
/// # Errors
/// When there is no default device.
pub fn eye(n: usize) -> Result<Tensor> {
    Ok(Tensor::eye(n, DType::F32, &device()?))
}

/// Uniform on `[0, 1)`, `f32`, on the default device, from the stream of [`seed`].
///
/// # Errors
/// When the shape is too large.
#[track_caller]
pub fn rand(shape: impl Into<Shape>) -> Result<Tensor> {
    Tensor::rand(shape, DType::F32, &mut rng(), &device()?)
}

/// Normal with mean 0 and variance 1, `f32`, on the default device, from the stream of [`seed`].
///
/// # Errors
/// When the shape is too large.
#[track_caller]
pub fn randn(shape: impl Into<Shape>) -> Result<Tensor> {
    Tensor::randn(shape, DType::F32, &mut rng(), &device()?)
}

/// Integers from `low` up to but not including `high`, `i64`, on the default device, from the
/// stream of [`seed`].
///
/// # Errors
/// When there is no integer in the range, or the shape is too large.
#[track_caller]
pub fn randint(low: i64, high: i64, shape: impl Into<Shape>) -> Result<Tensor> {
    Tensor::randint(low, high, shape, DType::I64, &mut rng(), &device()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_on_one_device() {
        let all = [
            tensor([1i32, 2]),
            zeros([2]),
            ones([2]),
            full([2], 1u8),
            arange(0i64, 4, 2),
            eye(2),
            rand([2]),
            randn([2]),
            randint(0, 5, [2]),
        ];
        for x in all {
            assert_eq!(x.unwrap().device(), &device().unwrap());
        }
    }

    #[test]
    fn a_seed_fixes_the_numbers() {
        seed(3);
        let x = randn([4]).unwrap().to_vec::<f32>().unwrap();
        seed(3);
        assert_eq!(randn([4]).unwrap().to_vec::<f32>().unwrap(), x);
    }
}
