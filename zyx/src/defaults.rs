//! The process-wide defaults: runtime, device, random stream. Nothing else in the workspace is
//! static.

use std::fmt::Display;
use std::io::Write;
use std::panic::Location;
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use zyx_core::{
    DType, Device, DeviceInfo, DeviceKind, Element, Error, Nested, Result, Rng, Runtime, Shape,
    Tensor,
};

struct Defaults {
    runtime: Runtime,
    device: OnceLock<Device>,
    rng: Mutex<Rng>,
}

static DEFAULTS: LazyLock<Defaults> = LazyLock::new(|| {
    let runtime = compiled_in();
    if let Some(path) = std::env::var_os("ZYX_TRACE").filter(|path| !path.is_empty()) {
        trace(&runtime, path.as_ref());
    }
    Defaults { runtime, device: OnceLock::new(), rng: Mutex::new(Rng::seed(0)) }
});

/// Records what the devices of a runtime do. A program whose trace cannot be written runs all the same.
#[cfg(feature = "trace")]
fn trace(runtime: &Runtime, path: &std::path::Path) {
    match zyx_core::Trace::create(path) {
        Ok(trace) => runtime.set_trace(Some(&trace)),
        Err(error) => warn(&format!("nothing is traced, as ZYX_TRACE asks for: {error}")),
    }
}

/// Says why nothing is recorded.
#[cfg(not(feature = "trace"))]
fn trace(_: &Runtime, _: &std::path::Path) {
    warn(
        "ZYX_TRACE is set, but this program is built without the feature `trace` of the crate zyx",
    );
}

/// A runtime with every backend of this build.
fn compiled_in() -> Runtime {
    let runtime = Runtime::default();
    #[cfg(feature = "cpu")]
    {
        // `limits_of_cpu` tells what cannot be read.
        let config = zyx_backend_cpu::Config::from_env().unwrap_or_default();
        runtime.register(zyx_backend_cpu::Cpu { config });
    }
    #[cfg(feature = "cuda")]
    runtime.register(zyx_backend_cuda::Cuda::default());
    #[cfg(feature = "vulkan")]
    runtime.register(zyx_backend_vulkan::Vulkan::default());
    #[cfg(feature = "wgpu")]
    runtime.register(zyx_backend_wgpu::Wgpu::from_env());
    #[cfg(feature = "opencl")]
    runtime.register(zyx_backend_opencl::OpenCl::from_env());
    runtime
}

/// Refuses limits of the CPU in the environment that cannot be read.
#[track_caller]
fn limits_of_cpu() -> Result<()> {
    #[cfg(feature = "cpu")]
    if let Err(reason) = zyx_backend_cpu::Config::from_env() {
        let (spec, location) = ("cpu:0".to_owned(), Location::caller());
        return Err(Error::NoDevice { spec, reason, location });
    }
    Ok(())
}

/// The runtime of this process, with every compiled-in backend registered.
///
/// ```
/// assert!(zyx::runtime().backend_names().contains(&"reference"));
/// ```
pub fn runtime() -> &'static Runtime {
    &DEFAULTS.runtime
}

/// The default device: what `ZYX_DEVICE` names, or else the best that opens. GPUs come first, in
/// the order `cuda`, `vulkan`, `wgpu`, `opencl`; then the embedded CPU backend, drivers that run
/// on the CPU, and the interpreter. It is opened at the first call and stays open.
///
/// A device is passed over that does not open, or that `ZYX_BLOCKLIST` names: backends, devices and
/// parts of names of devices, as in `opencl,vulkan:1,wgpu=llvmpipe`. That is said once, as it is of each
/// backend of this build whose driver is broken if no GPU is left: as warnings of the `log` crate, or on
/// standard error where the program has no logger. Of a machine without a GPU nothing is said.
///
/// ```
/// let device = zyx::device()?;
/// println!("{device}: {}", device.info().name);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When `ZYX_DEVICE` names a device that is not there, or that does not open, or `ZYX_CPU` or `ZYX_THREADS` cannot
/// be read.
#[track_caller]
pub fn device() -> Result<Device> {
    if let Some(device) = DEFAULTS.device.get() {
        return Ok(device.clone());
    }
    let opened = match std::env::var("ZYX_DEVICE") {
        Ok(spec) if !spec.is_empty() => open(&spec)?,
        _ => {
            limits_of_cpu()?;
            best(runtime(), &std::env::var("ZYX_BLOCKLIST").unwrap_or_default(), &mut warn)?
        }
    };
    Ok(DEFAULTS.device.get_or_init(|| opened).clone())
}

/// A device of this process's runtime. Where its backend is not compiled in the error names the feature.
#[track_caller]
fn open(spec: &str) -> Result<Device> {
    let features = ["cpu", "cuda", "opencl", "vulkan", "wgpu"];
    let backend = spec.split(':').next().unwrap_or(spec);
    let is_known = features.contains(&backend);
    if backend == "cpu" {
        limits_of_cpu()?;
    }
    runtime().device(spec).map_err(|mut error| {
        if let Error::NoDevice { reason, .. } = &mut error
            && is_known
            && !runtime().backend_names().contains(&backend)
        {
            *reason = format!("it needs the feature `{backend}` of the crate zyx; {reason}");
        }
        error
    })
}

/// Tells the user.
fn warn(text: &str) {
    if log::log_enabled!(target: "zyx", log::Level::Warn) {
        log::warn!(target: "zyx", "{text}");
    } else if log::max_level() == log::LevelFilter::Off {
        // There is no logger that would hide it on purpose.
        let _ = writeln!(std::io::stderr(), "zyx: {text}");
    }
}

/// The best device that opens and is not blocked.
#[track_caller]
fn best(runtime: &Runtime, blocked: &str, warn: &mut dyn FnMut(&str)) -> Result<Device> {
    let mut present = runtime.devices();
    present.sort_by_key(|info| info.kind);
    let mut last = None;
    for info in &present {
        let mut pass = |why: &dyn Display| {
            warn(&format!("{} ({}) is passed over: {why}", info.spec, info.name));
        };
        if is_blocked(info, blocked) {
            pass(&"ZYX_BLOCKLIST names it");
            continue;
        }
        match runtime.device(&info.spec) {
            Ok(device) if info.kind == DeviceKind::Gpu => return Ok(device),
            Ok(device) => {
                broken(runtime, &present).iter().for_each(|why| warn(why));
                return Ok(device);
            }
            // The interpreter opens anywhere but where a variable of the environment cannot be read.
            Err(error) if runtime.device("reference").is_err() => return Err(error),
            Err(error) => {
                pass(&error);
                last = Some(error);
            }
        }
    }
    let location = Location::caller();
    let none =
        || Error::NoDevice { spec: String::new(), reason: "there is none".to_owned(), location };
    Err(last.unwrap_or_else(none))
}

/// Whether a list of backends, devices and parts of names holds a device.
fn is_blocked(info: &DeviceInfo, list: &str) -> bool {
    let backend = info.spec.split(':').next();
    let items = list.split(',').map(str::trim).filter(|item| !item.is_empty());
    items.map(|item| item.split_once('=').unwrap_or((item, ""))).any(|(whose, name)| {
        (info.spec == whose || backend == Some(whose)) && info.name.contains(name)
    })
}

/// Why backends have no device whose drivers are broken.
fn broken(runtime: &Runtime, present: &[DeviceInfo]) -> Vec<String> {
    let has_device = |name: &str| present.iter().any(|d| d.spec.split(':').next() == Some(name));
    let names = runtime.backend_names().into_iter().filter(|name| !has_device(name));
    let names = names.filter(|name| runtime.is_broken(name));
    // Nobody asked for these, so where they were asked for says nothing.
    let why = |error| match error {
        Error::NoDevice { spec, reason, .. } => format!("device {spec}: {reason}"),
        error => error.to_string(),
    };
    names.filter_map(|name| runtime.device(name).err()).map(why).collect()
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
    #[track_caller]
    fn open(spec: &str) -> Result<Self>;

    /// As [`OpenDevice::open`], in a browser too, where a device of `wgpu` has to be asked for and answers while
    /// nobody waits.
    ///
    /// # Errors
    /// As [`OpenDevice::open`], and when the browser has no WebGPU.
    fn request(spec: &str) -> impl Future<Output = Result<Self>>;

    /// The devices that are present, of all compiled-in backends. Those of a backend whose driver
    /// is missing are left out.
    fn list() -> Vec<DeviceInfo>;
}

impl OpenDevice for Device {
    #[track_caller]
    fn open(spec: &str) -> Result<Device> {
        open(spec)
    }

    async fn request(spec: &str) -> Result<Device> {
        #[cfg(feature = "wgpu")]
        if spec.split(':').next() == Some("wgpu") {
            zyx_backend_wgpu::Wgpu::from_env().request().await?;
        }
        open(spec)
    }

    fn list() -> Vec<DeviceInfo> {
        runtime().devices()
    }
}

/// Restarts the random stream that [`rand`], [`randn`] and [`randint`] draw from. A program that
/// never calls this draws from stream 0.
///
/// ```
/// zyx::seed(7);
/// let first = zyx::rand([3])?.to_vec::<f32>()?;
/// zyx::seed(7);
/// assert_eq!(zyx::rand([3])?.to_vec::<f32>()?, first);
/// # Ok::<(), zyx::Error>(())
/// ```
pub fn seed(seed: u64) {
    *rng() = Rng::seed(seed);
}

fn rng() -> MutexGuard<'static, Rng> {
    DEFAULTS.rng.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A tensor from a number, an array, or nested arrays or vectors, on the default device. Its dtype is that of the
/// numbers: a plain `1.0` is an `f64`, and what is computed of it and of `f32` is `f64`, too. Write `1f32`.
///
/// ```
/// let x = zyx::tensor([[1f32, 2.0], [3.0, 4.0]])?;
/// assert_eq!(x.shape().dims(), [2, 2]);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When nested vectors are ragged, or the device fails.
#[track_caller]
pub fn tensor(data: impl Nested) -> Result<Tensor> {
    Tensor::new(data, &device()?)
}

/// Zeros of dtype `f32` on the default device.
///
/// ```
/// assert_eq!(zyx::zeros([2])?.to_vec::<f32>()?, [0.0, 0.0]);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When there is no default device.
#[track_caller]
pub fn zeros(shape: impl Into<Shape>) -> Result<Tensor> {
    Ok(Tensor::zeros(shape, DType::F32, &device()?))
}

/// Ones of dtype `f32` on the default device.
///
/// ```
/// assert_eq!(zyx::ones([2])?.to_vec::<f32>()?, [1.0, 1.0]);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When there is no default device.
#[track_caller]
pub fn ones(shape: impl Into<Shape>) -> Result<Tensor> {
    Ok(Tensor::ones(shape, DType::F32, &device()?))
}

/// Every element equal to `x`, on the default device.
///
/// ```
/// assert_eq!(zyx::full([2], 7u8)?.to_vec::<u8>()?, [7, 7]);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When there is no default device.
#[track_caller]
pub fn full<T: Element>(shape: impl Into<Shape>, x: T) -> Result<Tensor> {
    Ok(Tensor::full(shape, x, &device()?))
}

/// `start, start + step, ..` up to but not including `end`, on the default device.
///
/// ```
/// assert_eq!(zyx::arange(0i64, 7, 3)?.to_vec::<i64>()?, [0, 3, 6]);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When `step` is 0 or leads away from `end`.
#[track_caller]
pub fn arange<T: Element>(start: T, end: T, step: T) -> Result<Tensor> {
    Tensor::arange(start, end, step, &device()?)
}

/// The identity matrix of order `n`, `f32`, on the default device.
///
/// ```
/// assert_eq!(zyx::eye(2)?.to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0]);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When there is no default device.
#[track_caller]
pub fn eye(n: usize) -> Result<Tensor> {
    Ok(Tensor::eye(n, DType::F32, &device()?))
}

/// Uniform on `[0, 1)`, `f32`, on the default device, from the stream of [`seed`].
///
/// ```
/// let x = zyx::rand([1000])?;
/// assert!(x.ge(0)?.all(..)?.item::<bool>()? && x.lt(1)?.all(..)?.item::<bool>()?);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When the shape is too large.
#[track_caller]
pub fn rand(shape: impl Into<Shape>) -> Result<Tensor> {
    Tensor::rand(shape, DType::F32, &mut rng(), &device()?)
}

/// Normal with mean 0 and variance 1, `f32`, on the default device, from the stream of [`seed`].
///
/// ```
/// assert!(zyx::randn([1000])?.mean(..)?.item::<f32>()?.abs() < 0.2);
/// # Ok::<(), zyx::Error>(())
/// ```
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
/// ```
/// let dice = zyx::randint(1, 7, [100])?.to_vec::<i64>()?;
/// assert!(dice.iter().all(|n| (1..7).contains(n)));
/// # Ok::<(), zyx::Error>(())
/// ```
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
    use zyx_core::reference::Reference;

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
        let mut told = Vec::new();
        let found = best(&runtime, "", &mut |text| told.push(text.to_owned())).unwrap();
        assert_ne!(found.info().kind, DeviceKind::Interpreter);
        let once = told.iter().filter(|text| text.contains("driver too old")).count();
        assert_eq!(once, 1, "{told:?}");
        let error = runtime.device("broken").unwrap_err().to_string();
        assert!(error.contains("driver too old"), "{error}");
        let alone = Runtime::default();
        alone.register(Broken);
        assert_eq!(best(&alone, "", &mut |_| ()).unwrap().spec(), "reference:0");
    }

    /// Has no device, and perhaps a driver that does not work.
    struct Nothing<const BROKEN: bool>;

    impl<const BROKEN: bool> hal::Backend for Nothing<BROKEN> {
        const NAME: &'static str = if BROKEN { "broken" } else { "absent" };
        type Device = <Reference as hal::Backend>::Device;

        fn devices(&self) -> Vec<DeviceInfo> {
            Vec::new()
        }

        fn open(&self, _: usize) -> std::result::Result<Self::Device, DeviceError> {
            let context = "open".to_owned();
            Err(match BROKEN {
                true => DeviceError::Driver { context, reason: "wrong version".to_owned() },
                false => DeviceError::Absent { context, reason: "no library".to_owned() },
            })
        }
    }

    #[test]
    fn what_is_blocked_or_broken_is_said() {
        let runtime = compiled_in();
        runtime.register(Nothing::<false>);
        runtime.register(Nothing::<true>);
        let first = best(&runtime, "", &mut |_| ()).unwrap();
        let mut told = Vec::new();
        let found = best(&runtime, first.spec(), &mut |text| told.push(text.to_owned())).unwrap();
        assert_ne!(found.spec(), first.spec());
        assert!(told[0].contains("ZYX_BLOCKLIST"), "{told:?}");
        let is_there = found.info().kind == DeviceKind::Gpu;
        assert!(is_there || told.iter().any(|text| text.contains("wrong version")), "{told:?}");
        assert!(!told.iter().any(|text| text.contains("no library")), "{told:?}");
        let error = runtime.device("absent").unwrap_err().to_string();
        assert!(error.contains("no library"), "{error}");
    }

    #[test]
    fn blocklists_name_backends_devices_and_parts_of_names() {
        let (spec, name) = ("wgpu:1".to_owned(), "llvmpipe (LLVM 15)".to_owned());
        let info = DeviceInfo { spec, name, memory: 0, kind: DeviceKind::Software };
        for list in ["wgpu", "cuda, wgpu:1", "wgpu=llvmpipe", "wgpu:1=LLVM 15"] {
            assert!(is_blocked(&info, list), "{list}");
        }
        for list in ["", "cuda", "wgpu:0", "wgpu=NVIDIA", "wgp"] {
            assert!(!is_blocked(&info, list), "{list}");
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
