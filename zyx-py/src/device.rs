//! `zyx.Device`: where tensors live.

use crate::error::{caught, detached};
use crate::kernel::line;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use std::cell::RefCell;
use std::time::Duration;
use zyx::{Device, OpenDevice, ProgramTime, Tuned, Tuning};

/// An open device: `zyx.Device("cpu")`, `zyx.Device("cuda:0")`. Opening one again shares it.
#[pyclass(name = "Device", module = "zyx", frozen)]
#[derive(Clone, Debug)]
pub(crate) struct PyDevice(pub(crate) Device);

#[pymethods]
impl PyDevice {
    #[new]
    #[pyo3(signature = (spec=None))]
    fn make(py: Python<'_>, spec: Option<DeviceArg>) -> PyResult<PyDevice> {
        let _ = py;
        spec.unwrap_or_default().open().map(PyDevice)
    }

    /// `backend:ordinal`, as in `cuda:0`.
    #[getter]
    fn spec(&self) -> &str {
        self.0.spec()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (&str,)) {
        (py.get_type::<PyDevice>(), (self.0.spec(),))
    }

    /// Makes it the default device of this thread for a block.
    fn __enter__(slf: PyRef<'_, PyDevice>) -> PyRef<'_, PyDevice> {
        let before = DEFAULT.replace(Some(slf.0.clone()));
        BEFORE.with_borrow_mut(|all| all.push(before));
        slf
    }

    #[pyo3(signature = (*_problem))]
    fn __exit__(&self, _problem: &Bound<'_, PyTuple>) {
        if let Some(before) = BEFORE.with_borrow_mut(Vec::pop) {
            DEFAULT.set(before);
        }
    }

    /// The backend, as in `cuda`.
    #[getter]
    fn r#type(&self) -> &str {
        self.0.spec().split(':').next().unwrap_or("")
    }

    /// The name the driver gives.
    #[getter]
    fn name(&self) -> &str {
        &self.0.info().name
    }

    /// What runs the kernels: `gpu`, `cpu`, `software` or `interpreter`.
    #[getter]
    fn kind(&self) -> String {
        self.0.info().kind.to_string()
    }

    /// Bytes of memory, 0 if unknown.
    #[getter]
    fn memory(&self) -> u64 {
        self.0.info().memory
    }

    /// Waits until everything submitted so far is done.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.0.synchronize())
    }

    /// Frees what is kept for reuse: memory of the device, plans, and programs that nothing uses.
    fn trim(&self, py: Python<'_>) -> PyResult<()> {
        caught(py, || {
            self.0.trim();
            Ok(())
        })
    }

    /// Gives memory of the device that is cached for reuse back to the driver.
    fn trim_memory(&self, py: Python<'_>) -> PyResult<()> {
        caught(py, || {
            self.0.trim_memory();
            Ok(())
        })
    }

    /// Limits the bytes of host memory that compiled programs and plans take, roughly.
    fn set_cache_limit(&self, py: Python<'_>, bytes: usize) -> PyResult<()> {
        caught(py, || {
            self.0.set_cache_limit(bytes);
            Ok(())
        })
    }

    /// Limits the bytes this device may hold; `None` lifts the limit.
    #[pyo3(signature = (bytes=None))]
    fn set_memory_limit(&self, py: Python<'_>, bytes: Option<usize>) -> PyResult<()> {
        caught(py, || {
            self.0.set_memory_limit(bytes);
            Ok(())
        })
    }

    /// Looks for faster kernels among all generated so far, for `seconds` at most; gives name, time
    /// of a launch before and time of a launch now, in seconds, of each that was searched.
    #[pyo3(signature = (seconds=1.0))]
    fn tune(&self, py: Python<'_>, seconds: f64) -> PyResult<Vec<(String, f64, f64)>> {
        let budget = budget(seconds)?;
        let tuned = detached(py, || self.0.tune(budget))?;
        let row = |t: Tuned| (t.name, t.before.as_secs_f64(), t.after.as_secs_f64());
        Ok(tuned.into_iter().map(row).collect())
    }

    /// Looks for faster kernels while programs run, for `seconds` in all; `None` ends that.
    #[pyo3(signature = (seconds=None))]
    fn set_tuning(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<()> {
        let tuning = match seconds {
            Some(seconds) => Tuning::Background(budget(seconds)?),
            None => Tuning::Off,
        };
        caught(py, || {
            self.0.set_tuning(tuning);
            Ok(())
        })
    }

    /// Starts or stops measuring each launch, which then waits for the one before.
    #[pyo3(signature = (on=true))]
    fn set_profiling(&self, on: bool) {
        self.0.set_profiling(on);
    }

    /// Whether launches are measured.
    fn is_profiling(&self) -> bool {
        self.0.is_profiling()
    }

    /// Allows results that differ in rounding from run to run, or forbids them, as it is at first.
    /// Float sums that are scattered from now on, in gradients too, are then added in any order where
    /// the device can, which is several times faster.
    #[pyo3(signature = (on=true))]
    fn set_deterministic(&self, on: bool) {
        self.0.set_deterministic(on);
    }

    /// Whether every computation gives the same bits each time it is run.
    fn is_deterministic(&self) -> bool {
        self.0.is_deterministic()
    }

    /// Turns checked mode on or off: while it is on, operations whose operands are finite and whose
    /// result is not, and indices and class numbers out of range, are errors that name the
    /// operation, the position, the value and the line that called it. It takes a multiple of the
    /// time; the environment variable `ZYX_CHECKED=1` turns it on for every device.
    #[pyo3(signature = (on=true))]
    fn set_checked(&self, on: bool) {
        self.0.set_checked(on);
    }

    /// Whether checked mode is on.
    fn is_checked(&self) -> bool {
        self.0.is_checked()
    }

    /// Name, launches and seconds of each kernel since profiling started, the dearest first.
    fn profile(&self) -> Vec<(String, u64, f64)> {
        let row = |p: ProgramTime| (p.name.to_string(), p.launches, p.time.as_secs_f64());
        self.0.profile().into_iter().map(row).collect()
    }

    /// Counts the peak of the memory in use (`peak_bytes`) from here on.
    fn reset_peak(&self) {
        self.0.reset_peak();
    }

    /// Counters of what the device did: launches, compiles, bytes moved and so on.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        // `Stats { name: 1, .. }`, whatever its fields are.
        let text = format!("{:?}", self.0.stats());
        let inside = text.trim_start_matches("Stats {").trim_end_matches('}');
        for (name, value) in inside.split(',').filter_map(|field| field.split_once(':')) {
            if let Ok(value) = value.trim().parse::<u64>() {
                dict.set_item(name.trim(), value)?;
            }
        }
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        format!("zyx.Device('{}')", self.0.spec())
    }

    fn __str__(&self) -> &str {
        self.0.spec()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        if let Ok(other) = other.cast::<PyDevice>() {
            return self.0 == other.get().0;
        }
        let spec = other.cast::<PyString>().ok().and_then(|text| text.to_str().ok());
        spec.is_some_and(|spec| spec == self.0.spec() || format!("{spec}:0") == self.0.spec())
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.0.spec().hash(&mut hasher);
        hasher.finish()
    }
}

/// A time to spend.
fn budget(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|e| PyValueError::new_err(format!("seconds: {e}")))
}

thread_local! {
    /// The device that was set as this thread's default.
    static DEFAULT: RefCell<Option<Device>> = const { RefCell::new(None) };
    /// The defaults before the blocks `with device:` that this thread is in.
    static BEFORE: RefCell<Vec<Option<Device>>> = const { RefCell::new(Vec::new()) };
}

/// Sets the default device of this thread; `None` stands for the one that is chosen without it.
#[pyfunction]
#[pyo3(signature = (device=None))]
pub(crate) fn _set_default_device(device: Option<DeviceArg>) -> PyResult<()> {
    DEFAULT.set(device.map(DeviceArg::open).transpose()?);
    Ok(())
}

/// A device or its spec; the default device if there is none.
#[derive(Clone, Debug, Default)]
pub(crate) enum DeviceArg {
    #[default]
    Default,
    Open(Device),
    Spec(String),
}

impl DeviceArg {
    /// The device, opened if need be.
    pub(crate) fn open(self) -> PyResult<Device> {
        let device = Python::attach(|py| match self {
            DeviceArg::Open(device) => Ok(device),
            DeviceArg::Spec(spec) => detached(py, || Device::open(&spec)),
            DeviceArg::Default => match DEFAULT.with_borrow(Clone::clone) {
                Some(device) => Ok(device),
                None => detached(py, zyx::device),
            },
        })?;
        device.set_call_site(call_site);
        Ok(device)
    }
}

/// The line of Python that is running: of the nearest function that is not this package's.
fn call_site() -> Option<String> {
    Python::attach(|py| Some(line(py).ok()?.to_string()))
}

impl FromPyObject<'_, '_> for DeviceArg {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<DeviceArg> {
        match object.cast::<PyDevice>() {
            Ok(device) => Ok(DeviceArg::Open(device.get().0.clone())),
            Err(_) => object.extract::<String>().map(DeviceArg::Spec),
        }
    }
}

/// The devices that are present, as `(spec, name, kind)`.
#[pyfunction]
pub(crate) fn devices(py: Python<'_>) -> PyResult<Vec<(String, String, String)>> {
    let found = detached(py, || Ok(Device::list()))?;
    Ok(found.into_iter().map(|info| (info.spec, info.name, info.kind.to_string())).collect())
}

/// The device that tensors are made on when none is named: the best that opens, or what the
/// environment variable `ZYX_DEVICE` names.
#[pyfunction]
pub(crate) fn device() -> PyResult<PyDevice> {
    DeviceArg::Default.open().map(PyDevice)
}
