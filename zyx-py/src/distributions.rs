//! The table of distributions of Rust as Python sees it: `zyx.distributions` has a class for each row.

use crate::arguments::{Argument, TensorArg};
use crate::lists::List;
use crate::outcome::run;
use crate::rng::GeneratorArg;
use crate::tensor::PyTensor;
use pyo3::prelude::*;
use zyx::distributions::{self, Distribution};
use zyx::{Result, Tensor};

/// A distribution of Rust. Parameters and values are checked in Python, where tensors are traced.
#[pyclass(name = "Law", module = "zyx._core", frozen)]
pub(crate) struct PyLaw(distributions::Law);

#[pymethods]
impl PyLaw {
    /// A row of the table, with its parameters in order.
    #[new]
    fn make(py: Python<'_>, name: &str, parameters: List<Py<PyTensor>>) -> PyResult<PyLaw> {
        let tensors: Vec<Tensor> = parameters.0.iter().map(|x| x.get().tensor()).collect();
        let law = crate::error::detached(py, || {
            distributions::Law::by_name(name, &tensors.iter().collect::<Vec<_>>(), false)
        });
        law.map(PyLaw)
    }

    /// Samples of a shape, with gradients if `pathwise`.
    #[pyo3(signature = (shape, pathwise, generator=None))]
    fn sample(
        &self,
        py: Python<'_>,
        shape: List<usize>,
        pathwise: bool,
        generator: Option<GeneratorArg>,
    ) -> PyResult<Py<PyAny>> {
        let generator = generator.unwrap_or_default();
        run(py, || {
            let rng = &mut generator.lock();
            match pathwise {
                true => self.0.rsample(&shape.0, rng),
                false => self.0.sample(&shape.0, rng),
            }
        })
    }

    /// A function of a value: `"log_prob"`, `"cdf"` or `"icdf"`.
    fn of_value(&self, py: Python<'_>, name: &str, value: TensorArg) -> PyResult<Py<PyAny>> {
        let value = value.ready(self.0.parameters()[0].device())?;
        run(py, || match name {
            "cdf" => self.0.cdf(&value),
            "icdf" => self.0.icdf(&value),
            _ => self.0.log_prob(&value),
        })
    }

    /// A number of the distribution: `"entropy"`, `"mean"` or `"variance"`.
    fn number(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        run(py, || match name {
            "mean" => self.0.mean(),
            "variance" => self.0.variance(),
            _ => self.0.entropy(),
        })
    }

    /// The divergence of this distribution from another.
    fn kl_divergence(&self, py: Python<'_>, other: &Bound<'_, PyLaw>) -> PyResult<Py<PyAny>> {
        let other = other.get();
        run(py, || distributions::kl_divergence(&self.0, &other.0))
    }

    /// Whether samples have gradients.
    #[getter]
    fn has_rsample(&self) -> bool {
        self.0.has_rsample()
    }

    #[getter]
    fn batch_shape(&self) -> Vec<usize> {
        self.0.batch_shape().dims().to_vec()
    }

    #[getter]
    fn event_shape(&self) -> Vec<usize> {
        self.0.event_shape().dims().to_vec()
    }
}

/// The regularised incomplete gamma functions, the lower one or the upper one.
#[pyfunction]
fn _igamma(
    py: Python<'_>,
    a: &Bound<'_, PyTensor>,
    x: &Bound<'_, PyTensor>,
    upper: bool,
) -> PyResult<Py<PyAny>> {
    let (a, x) = (a.get().tensor(), x.get().tensor());
    let compute = if upper { distributions::igammac } else { distributions::igamma };
    run(py, || -> Result<Tensor> { compute(&a, &x) })
}

/// Adds the class and the function.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyLaw>()?;
    module.add_function(wrap_pyfunction!(_igamma, module)?)
}
