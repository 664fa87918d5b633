//! `zyx.onnx`: models in the ONNX format. `onnx.py` makes names of positions and results of lists.

use crate::arguments::{Argument, TensorArg};
use crate::data::Host;
use crate::device::{DeviceArg, PyDevice};
use crate::dtype::{PyDType, numpy_names};
use crate::error::{caught, detached};
use crate::grad_mode::is_grad_enabled;
use crate::lists::{RawBytes, each, list, push};
use crate::tensor::PyTensor;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyMemoryView, PyString, PyTuple};
use std::path::PathBuf;
use zyx::onnx::{Coded, CodedType, Kind, Model, Port, Value};
use zyx::{DType, Device, Shape};

/// A model of which inputs are given by name and outputs come in order.
#[pyclass(name = "_OnnxModel", module = "zyx", frozen)]
#[derive(Debug)]
pub(crate) struct PyModel(Model);

/// Reads a model's file, or what is in one.
#[pyfunction]
#[pyo3(signature = (file, device=None))]
fn _load_onnx(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    device: Option<DeviceArg>,
) -> PyResult<PyModel> {
    let device = device.unwrap_or_default().open()?;
    let is_content = file.is_instance_of::<PyBytes>()
        || file.is_instance_of::<PyByteArray>()
        || file.is_instance_of::<PyMemoryView>();
    if is_content {
        let bytes = file.extract::<RawBytes>()?.0;
        return detached(py, || Model::from_bytes(bytes, &device)).map(PyModel);
    }
    let path = file.extract::<PathBuf>()?;
    detached(py, || Model::load(&path, &device)).map(PyModel)
}

/// Inputs or outputs as `(name, dtype, shape)`.
fn ports<'py>(py: Python<'py>, ports: &[Port]) -> PyResult<Bound<'py, PyList>> {
    let extent = |name: &String| match name.parse::<usize>() {
        Ok(n) => n.into_py_any(py),
        Err(_) => name.into_py_any(py),
    };
    let port = |port: &Port| {
        let shape = port.shape.as_ref().map(|shape| -> PyResult<_> {
            PyTuple::new(py, shape.iter().map(extent).collect::<PyResult<Vec<_>>>()?)
        });
        (port.name.as_str(), port.dtype.map(PyDType), shape.transpose()?).into_py_any(py)
    };
    list(py, ports.iter().map(port))
}

#[pymethods]
impl PyModel {
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        ports(py, self.0.inputs())
    }

    #[getter]
    fn outputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        ports(py, self.0.outputs())
    }

    /// The device it computes on.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice(self.0.device().clone())
    }

    /// Its tensors by name.
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, tensor) in self.0.parameters() {
            dict.set_item(name, PyTensor::new(tensor.clone()))?;
        }
        Ok(dict)
    }

    /// The outputs, in order, for inputs by name; with history if an input has one.
    fn run<'py>(
        &self,
        py: Python<'py>,
        feeds: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyList>> {
        let device = self.0.device();
        let mut given = Vec::new();
        for (name, object) in feeds {
            let name: String = name.extract()?;
            let port = self.0.inputs().iter().find(|port| port.name == name);
            let kind = port.map_or(&Kind::Unknown, Port::kind);
            let value = value(&object, kind, device).inspect_err(|error| {
                let wanted = format!("input '{name}' of the model is declared as {kind}");
                let _ = error.value(py).call_method1("add_note", (wanted,));
            })?;
            push(&mut given, (name, value))?;
        }
        let keeps_history = is_grad_enabled()
            && given.iter().any(|(_, value)| matches!(value, Value::Tensor(t) if t.is_tracked()));
        let are_tensors = given.iter().all(|(_, value)| matches!(value, Value::Tensor(_)))
            && self.0.outputs().iter().all(|port| port.dtype.is_some());
        let inputs = given.iter().map(|(name, value)| (name.as_str(), value.clone()));
        let outputs = detached(py, || {
            if keeps_history || !are_tensors {
                return self.0.graph(inputs);
            }
            let tensors = inputs.filter_map(|(name, value)| match value {
                Value::Tensor(tensor) => Some((name, tensor)),
                _ => None,
            });
            Ok(self.0.run(tensors)?.into_iter().map(Value::Tensor).collect())
        })?;
        list(py, outputs.into_iter().map(|value| object(py, value, device)))
    }
}

/// An input of the kind that is declared. Numbers without a dtype get the declared one; a list for a sequence is one of
/// its values.
fn value(given: &Bound<'_, PyAny>, kind: &Kind, device: &Device) -> PyResult<Value> {
    match kind {
        Kind::Sequence(kind) => {
            if !given.is_instance_of::<PyList>() && !given.is_instance_of::<PyTuple>() {
                let text = format!("a sequence is a list, not {}", given.get_type().name()?);
                return Err(PyTypeError::new_err(text));
            }
            Ok(Value::Sequence(each(given, |item| value(&item, kind, device))?))
        }
        Kind::Optional(_) if given.is_none() => Ok(Value::Optional(None)),
        Kind::Optional(kind) => Ok(Value::Optional(Some(Box::new(value(given, kind, device)?)))),
        Kind::Coded(kind) => coded(given, *kind, device),
        Kind::Strings => match texts(given)? {
            Some(value) => Ok(value),
            None => Err(PyTypeError::new_err("the elements are not all strings")),
        },
        Kind::Tensor(dtype) => numbers(given, Some(*dtype), device),
        _ if given.is_none() => Ok(Value::Optional(None)),
        // Undeclared, or known as one that is not supported.
        _ => numbers(given, None, device).or_else(|refused| texts(given)?.ok_or(refused)),
    }
}

fn numbers(given: &Bound<'_, PyAny>, dtype: Option<DType>, device: &Device) -> PyResult<Value> {
    match given.extract::<TensorArg>()? {
        TensorArg::Tensor(tensor) => Ok(Value::Tensor(tensor)),
        TensorArg::Host(host) => {
            let dtype = dtype.filter(|_| matches!(host, Host::Numbers { .. }));
            host.tensor(dtype, device).map(Value::Tensor)
        }
    }
}

/// Elements that no dtype has: an array of `ml_dtypes`, or numbers of Python, which are rounded.
fn coded(given: &Bound<'_, PyAny>, kind: CodedType, device: &Device) -> PyResult<Value> {
    let py = given.py();
    let name = given.getattr("dtype").and_then(|dtype| dtype.getattr("name")?.extract::<String>());
    if let Ok(name) = &name
        && !given.is_instance_of::<PyTensor>()
    {
        if name.replace("_", "") != kind.name().replace("_", "") {
            return Err(PyTypeError::new_err(format!(
                "an array of {name}, not of {}",
                kind.name()
            )));
        }
        // Codes of integers are their values, those of floats their bits.
        let method = if kind.limits().is_some() { "astype" } else { "view" };
        let codes = given.call_method1(method, (numpy_names(kind.code_dtype()).0,))?;
        let codes = codes.extract::<TensorArg>()?.ready(device)?;
        return Ok(caught(py, || Coded::new(kind, &codes))?.into());
    }
    match given.extract::<TensorArg>()? {
        TensorArg::Host(host @ Host::Numbers { .. }) if kind.limits().is_some() => {
            let codes = host.tensor(Some(kind.code_dtype()), device)?;
            let coded = caught(py, || Coded::new(kind, &codes))?;
            let changed = || coded.codes().ne(&codes)?.cast(DType::I64).sum(..)?.item::<i64>();
            if detached(py, changed)? > 0 {
                let text = format!("an integer does not fit into {}", kind.name());
                return Err(PyOverflowError::new_err(text));
            }
            Ok(coded.into())
        }
        TensorArg::Host(host @ Host::Numbers { .. }) => {
            let numbers = host.tensor(Some(DType::F32), device)?;
            Ok(caught(py, || Coded::encode(kind, &numbers))?.into())
        }
        TensorArg::Host(Host::Bytes { dtype, .. }) => {
            Err(PyTypeError::new_err(format!("elements of {dtype}, not of {}", kind.name())))
        }
        TensorArg::Tensor(tensor) => {
            let text = format!("a tensor of {}, not of {}", tensor.dtype(), kind.name());
            Err(PyTypeError::new_err(text))
        }
    }
}

/// Nested lists or an array of strings. `None` if there is something else in them, or a dtype of numbers.
fn texts(given: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    if let Ok(dtype) = given.getattr("dtype")
        && !dtype
            .getattr("kind")
            .is_ok_and(|kind| matches!(&*kind.to_string(), "U" | "S" | "O" | "T"))
    {
        return Ok(None);
    }
    let listed = match given.hasattr("tolist")? {
        true => given.call_method0("tolist")?,
        false => given.clone(),
    };
    let mut all = Vec::new();
    Ok(strings(&listed, &mut all)?.map(|shape| Value::Strings(shape, all)))
}

/// Appends the strings of nested lists. `None` if there is something else in them.
fn strings(given: &Bound<'_, PyAny>, all: &mut Vec<String>) -> PyResult<Option<Vec<usize>>> {
    if given.is_instance_of::<PyString>() {
        push(all, given.extract()?)?;
        return Ok(Some(Vec::new()));
    }
    if !given.is_instance_of::<PyList>() && !given.is_instance_of::<PyTuple>() {
        return Ok(None);
    }
    let Some(parts) =
        each(given, |part| strings(&part, all))?.into_iter().collect::<Option<Vec<_>>>()
    else {
        return Ok(None);
    };
    let first = parts.first().cloned().unwrap_or_default();
    if parts.iter().any(|part| *part != first) || first.len() >= Shape::MAX_RANK {
        return Err(PyValueError::new_err("ragged lists of strings"));
    }
    Ok(Some([&[parts.len()], &first[..]].concat()))
}

/// An output: a tensor, lists of strings, a list of a sequence's values, a `dict` of a map, or none.
fn object(py: Python<'_>, value: Value, device: &Device) -> PyResult<Py<PyAny>> {
    match value {
        Value::Tensor(tensor) => PyTensor::new(tensor).into_py_any(py),
        Value::Host(host) => PyTensor::new(caught(py, || host.tensor(device))?).into_py_any(py),
        Value::Strings(shape, all) => nested(py, &shape, &all),
        Value::Sequence(values) => {
            let values = values.into_iter().map(|value| object(py, value, device));
            Ok(list(py, values)?.into_any().unbind())
        }
        Value::Map(keys, values) => {
            let keys = match *keys {
                Value::Strings(shape, all) => nested(py, &shape, &all)?,
                keys => {
                    let keys = caught(py, || Ok(keys.host()?.numbers().to_vec()))?;
                    list(py, keys.iter().map(|key| key.to_i64().into_py_any(py)))?
                        .into_any()
                        .unbind()
                }
            };
            let values = values.numbers().iter().map(|x| x.to_f64().into_py_any(py));
            let pairs = py.import("builtins")?.call_method1("zip", (keys, list(py, values)?))?;
            py.get_type::<PyDict>().call1((pairs,))?.into_py_any(py)
        }
        Value::Optional(None) => Ok(py.None()),
        Value::Optional(Some(value)) => object(py, *value, device),
        other => {
            let text =
                format!("an output is {}, which no dtype has; Cast it in the model", other.kind());
            Err(PyTypeError::new_err(text))
        }
    }
}

fn nested(py: Python<'_>, shape: &[usize], all: &[String]) -> PyResult<Py<PyAny>> {
    let Some((&n, rest)) = shape.split_first() else { return all.first().into_py_any(py) };
    let each: usize = rest.iter().product();
    let part = |i: usize| nested(py, rest, all.get(i * each..(i + 1) * each).unwrap_or_default());
    Ok(list(py, (0..n).map(part))?.into_any().unbind())
}

/// Adds the class and the function.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyModel>()?;
    module.add_function(wrap_pyfunction!(_load_onnx, module)?)
}
