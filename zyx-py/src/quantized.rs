//! `zyx.QuantizedMatrix`: weights of four or eight bits, multiplied without being widened in memory.

use crate::error::detached;
use crate::outcome::run;
use crate::tensor::PyTensor;
use pyo3::prelude::*;
use zyx::QuantizedMatrix;

/// A matrix `[rows, columns]` of four- or eight-bit integers with a scale for each group of columns
/// of each row, made of a matrix of floats.
#[pyclass(name = "QuantizedMatrix", module = "zyx", frozen)]
#[derive(Clone, Debug)]
pub(crate) struct PyQuantized(QuantizedMatrix);

#[pymethods]
impl PyQuantized {
    #[new]
    #[pyo3(signature = (weight, bits=4, group=32))]
    fn make(
        py: Python<'_>,
        weight: &Bound<'_, PyTensor>,
        bits: u32,
        group: usize,
    ) -> PyResult<PyQuantized> {
        let weight = weight.get().tensor();
        detached(py, || QuantizedMatrix::new(&weight, bits, group)).map(PyQuantized)
    }

    /// The integers: `int8 [rows, columns]`, or `uint8 [rows, columns / 2]` with two in a byte.
    #[getter]
    fn packed(&self) -> PyTensor {
        PyTensor::new(self.0.packed.clone())
    }

    /// The scales, `[rows, columns / group]`.
    #[getter]
    fn scales(&self) -> PyTensor {
        PyTensor::new(self.0.scales.clone())
    }

    /// 4 or 8.
    #[getter]
    fn bits(&self) -> u32 {
        self.0.bits
    }

    /// Columns that share a scale.
    #[getter]
    fn group(&self) -> usize {
        self.0.group
    }

    /// The numbers, `float32 [rows, columns]`.
    fn dequantize(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        run(py, || self.0.dequantize())
    }

    /// `x @ w.T` of `[.., columns]`, as a linear layer's weight is applied; gradients flow to `x`.
    fn matmul(&self, py: Python<'_>, x: &Bound<'_, PyTensor>) -> PyResult<Py<PyAny>> {
        let x = x.get().tensor();
        run(py, || self.0.matmul(&x))
    }

    fn __repr__(&self) -> String {
        let QuantizedMatrix { scales, bits, group, .. } = &self.0;
        let (rows, columns) = (scales.shape()[0], scales.shape()[1] * group);
        format!("zyx.QuantizedMatrix({rows} x {columns}, bits={bits}, group={group})")
    }
}
