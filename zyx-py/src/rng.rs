//! `zyx.Rng`: streams of random numbers, and the one that calls without a generator draw from.

use crate::arguments::Plain;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use zyx::Rng;

/// What `manual_seed` restarts.
static SHARED: LazyLock<Arc<Mutex<Rng>>> = LazyLock::new(|| Arc::new(Mutex::new(Rng::seed(0))));

/// A stream of random numbers that is a function of its seed, the same on every device.
#[pyclass(name = "Rng", module = "zyx", frozen)]
#[derive(Clone, Debug)]
pub(crate) struct PyRng(Arc<Mutex<Rng>>);

#[pymethods]
impl PyRng {
    #[new]
    #[pyo3(signature = (seed=0))]
    fn make(seed: u64) -> PyRng {
        PyRng(Arc::new(Mutex::new(Rng::seed(seed))))
    }

    /// A stream of its own, drawn from this one.
    fn split(&self) -> PyRng {
        PyRng(Arc::new(Mutex::new(lock(&self.0).split())))
    }

    /// The next 64 random bits.
    fn next_u64(&self) -> u64 {
        lock(&self.0).next_u64()
    }

    /// A number from 0 up to but not including `n`.
    fn below(&self, n: u64) -> u64 {
        lock(&self.0).below(n)
    }

    /// The key of the stream.
    fn key(&self) -> [u32; 2] {
        lock(&self.0).key()
    }

    /// How many blocks were drawn.
    fn counter(&self) -> u64 {
        lock(&self.0).counter()
    }

    /// The stream at a place: what `key` and `counter` told before.
    #[staticmethod]
    fn at(key: [u32; 2], counter: u64) -> PyRng {
        PyRng(Arc::new(Mutex::new(Rng::at(key, counter))))
    }

    /// The stream at its present place.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let rng = lock(&self.0);
        let at = py.get_type::<PyRng>().getattr("at")?;
        (at, (rng.key(), rng.counter())).into_pyobject(py)
    }

    fn __repr__(&self) -> String {
        let rng = lock(&self.0);
        format!("zyx.Rng(key={:?}, counter={})", rng.key(), rng.counter())
    }
}

fn lock(rng: &Mutex<Rng>) -> MutexGuard<'_, Rng> {
    rng.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Restarts the random stream that calls without a generator draw from.
#[pyfunction]
pub(crate) fn manual_seed(seed: u64) {
    *lock(&SHARED) = Rng::seed(seed);
    zyx::seed(seed);
}

/// The stream that calls without a generator draw from.
#[pyfunction]
pub(crate) fn _shared_rng() -> PyRng {
    PyRng(SHARED.clone())
}

/// Goes on in the shared stream from the place of another.
#[pyfunction]
pub(crate) fn _set_shared_rng(rng: &Bound<'_, PyRng>) {
    let place = lock(&rng.get().0).clone();
    *lock(&SHARED) = place;
}

/// A seed drawn from the shared stream.
pub(crate) fn draw() -> u64 {
    lock(&SHARED).next_u64()
}

/// The generator of a call: one that was given, or the shared one.
pub(crate) struct GeneratorArg(Arc<Mutex<Rng>>);

impl Default for GeneratorArg {
    fn default() -> GeneratorArg {
        GeneratorArg(SHARED.clone())
    }
}

impl GeneratorArg {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Rng> {
        lock(&self.0)
    }
}

impl FromPyObject<'_, '_> for GeneratorArg {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<GeneratorArg> {
        Ok(GeneratorArg(object.cast::<PyRng>()?.get().0.clone()))
    }
}

impl Plain for GeneratorArg {
    type Plain = GeneratorArg;
    fn plain(self) -> PyResult<GeneratorArg> {
        Ok(self)
    }
}
