//! The process-wide defaults: runtime, device, random stream. Nothing else in the workspace is
//! static.

use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use zyx_core::{
    DType, Device, DeviceInfo, Element, Error, Nested, Result, Rng, Runtime, Shape, Tensor,
};

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
    #[cfg(feature = "cuda")]
    runtime.register(backend_cuda::Cuda::default());
    #[cfg(feature = "vulkan")]
    runtime.register(backend_vulkan::Vulkan::default());
    #[cfg(feature = "wgpu")]
    runtime.register(backend_wgpu::Wgpu::from_env());
    #[cfg(feature = "opencl")]
    runtime.register(backend_opencl::OpenCl::from_env());
    runtime
}

/// The runtime of this process, with every compiled-in backend registered.
pub fn runtime() -> &'static Runtime {
    &DEFAULTS.runtime
}

/// The default device: what `ZYX_DEVICE` names, or else the best that opens. GPUs come first, in
/// the order `cuda`, `vulkan`, `wgpu`, `opencl`; then the embedded CPU backend, drivers that run
/// on the CPU, and the interpreter. It is opened at the first call and stays open. A device that
/// is listed and does not open is passed over with a warning in the log.
///
/// # Errors
/// When `ZYX_DEVICE` names a device that is not there, or that does not open.
pub fn device() -> Result<Device> {
    if let Some(device) = DEFAULTS.device.get() {
        return Ok(device.clone());
    }
    let opened = match std::env::var("ZYX_DEVICE") {
        Ok(spec) if !spec.is_empty() => runtime().device(&spec)?,
        _ => best(runtime())?,
    };
    Ok(DEFAULTS.device.get_or_init(|| opened).clone())
}

/// The best device that opens.
fn best(runtime: &Runtime) -> Result<Device> {
    let mut present = runtime.devices();
    present.sort_by_key(|info| info.kind);
    let mut last = None;
    for info in present {
        match runtime.device(&info.spec) {
            Ok(device) => return Ok(device),
            Err(error) => {
                log::warn!(target: "zyx", "{} ({}) is passed over: {error}", info.spec, info.name);
                last = Some(error);
            }
        }
    }
    let none = || Error::NoDevice { spec: String::new(), reason: "there is none".to_owned() };
    Err(last.unwrap_or_else(none))
}

/// Finds and opens devices of this process's [`runtime()`].
///
/// ```
/// use zyx::prelude::*;
///
/// for info in Device::list() {
///     println!("{}: {}", info.spec, info.name);
/// }
/// let device = Device::open("cpu:0")?;
/// assert!(Device::open("cpu:7").is_err());
/// # Ok::<(), zyx::Error>(())
/// ```
pub trait OpenDevice: Sized {
    /// The device with this spec, `backend` or `backend:ordinal` as in `cuda:0`. One that is open
    /// already is shared.
    ///
    /// # Errors
    /// When the backend is not compiled in, the driver is missing or refuses, or there is no
    /// device with this ordinal; the message says what there is.
    fn open(spec: &str) -> Result<Self>;

    /// The devices that are present, of all compiled-in backends. Those of a backend whose driver
    /// is missing are left out.
    fn list() -> Vec<DeviceInfo>;
}

impl OpenDevice for Device {
    fn open(spec: &str) -> Result<Device> {
        runtime().device(spec)
    }

    fn list() -> Vec<DeviceInfo> {
        runtime().devices()
    }
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
    use zyx_core::hal::{self, DeviceError};
    use zyx_core::{DeviceKind, reference::Reference};

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

    /// Lists a device that does not open.
    struct Broken;

    impl hal::Backend for Broken {
        const NAME: &'static str = "broken";
        type Device = <Reference as hal::Backend>::Device;

        fn devices(&self) -> Vec<DeviceInfo> {
            let (spec, name) = ("broken:0".to_owned(), "none".to_owned());
            vec![DeviceInfo { spec, name, memory: 0, kind: DeviceKind::Gpu }]
        }

        fn open(&self, _: usize) -> std::result::Result<Self::Device, DeviceError> {
            let reason = "driver too old".to_owned();
            Err(DeviceError::Driver { context: "open".to_owned(), reason })
        }
    }

    #[test]
    fn a_device_that_does_not_open_is_passed_over_unless_asked_for() {
        let runtime = compiled_in();
        runtime.register(Broken);
        assert_ne!(best(&runtime).unwrap().info().kind, DeviceKind::Interpreter);
        let error = runtime.device("broken").unwrap_err().to_string();
        assert!(error.contains("driver too old"), "{error}");
        let alone = Runtime::default();
        alone.register(Broken);
        assert_eq!(best(&alone).unwrap().spec(), "reference:0");
    }

    #[test]
    fn a_seed_fixes_the_numbers() {
        seed(3);
        let x = randn([4]).unwrap().to_vec::<f32>().unwrap();
        seed(3);
        assert_eq!(randn([4]).unwrap().to_vec::<f32>().unwrap(), x);
    }
}
