//! Kernels of programs in Python: `zyx.kernel` and `zyx.lang`; `python/zyx/_kernel.py` is the decorator.
//!
//! A kernel is a function of Python that is run once for each device and each combination of dtypes; what it records with
//! the objects of [`body`], [`value`], [`array`], [`group`] and [`progress`] is a [`Kernel`] of Rust. [`recording`] is how they record.

mod array;
mod body;
mod group;
mod progress;
mod recording;
mod value;

use crate::arguments::{Argument, TensorArg, default_device};
use crate::device::DeviceArg;
use crate::dtype::DTypeArg;
use crate::error::{caught, detached, kernel_error, raise_later};
use crate::functional::in_python;
use crate::lists::each;
use crate::tensor::PyTensor;
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
pub(crate) use recording::line;
use recording::{Arg, Open};
use value::PyVal;
use zyx::internals::hal::fork;
use zyx::kernel::{
    Access, Kernel, KernelGradient, Lang, Language, Operand, RawKernel, RawLaunch, RawParam,
    RawSource, Site, Val,
};
use zyx::{DType, Scalar, Tensor};

/// A kernel: a function of tensors that gives a tensor, or a tuple of them.
#[pyclass(name = "_Kernel", module = "zyx._core", frozen)]
#[derive(Debug)]
pub(crate) struct PyKernel(Kernel);

/// Runs a function of Python that records; an exception is raised at the end of the call that this thread is in.
fn recorded<T>(k: &Lang, record: impl FnOnce(Python<'_>, &Open) -> PyResult<T>) -> Option<T> {
    let open = Open::new(k);
    let _outside = fork::leave();
    match Python::attach(|py| record(py, &open)) {
        Ok(found) => Some(found),
        Err(error) => {
            k.fail(format_args!("it raised an exception: {error}"));
            // Values that the tuner tries may be of no use to the function; Ctrl-C is for the program.
            if !(k.is_trial() && Python::attach(|py| error.is_instance_of::<PyException>(py))) {
                raise_later(error);
            }
            None
        }
    }
}

fn record_kernel(k: &Lang, function: &Py<PyAny>) {
    recorded(k, |py, open| {
        let found = function.bind(py).call1((body::PyLang(open.0),))?;
        if found.is_none() {
            return Ok(());
        }
        let text = "a kernel returns nothing: it stores its results in outputs. The parameter `k` is the kernel; of a function \
                    of elements, none is called `k`, or `zyx.kernel` is given `elementwise=True`";
        Err(PyTypeError::new_err(text))
    });
}

fn record_elements<'k>(values: &[Val<'k>], function: &Py<PyAny>) -> Val<'k> {
    let k = values[0].lang();
    let found = recorded(k, |py, open| {
        let object = |value: &Val<'_>| PyVal { recording: open.0, value: value.id() };
        let arguments: Vec<PyVal> = values.iter().map(object).collect();
        let found = function.bind(py).call1(PyTuple::new(py, arguments)?)?;
        open.0.operand(&found)
    });
    found.map_or(values[0], |found: Arg| found.val(k, values[0].dtype()))
}

/// The cotangents of a kernel's inputs by a rule of Python.
fn cotangents(
    py: Python<'_>,
    name: &str,
    rule: &Py<PyAny>,
    of: &KernelGradient<'_>,
) -> PyResult<Vec<Option<Tensor>>> {
    let tensor = |x: &Tensor| Py::new(py, PyTensor::new(x.clone()));
    let inputs = of.inputs.iter().map(tensor).collect::<PyResult<Vec<_>>>()?;
    let given = PyKernelGradient {
        inputs: PyTuple::new(py, inputs)?.unbind(),
        output: tensor(of.output)?,
        number: of.number,
        cotangent: tensor(of.cotangent)?,
    };
    let found = rule.bind(py).call1((given,))?;
    let wrong = |reason: String| {
        let site = site_of(rule.bind(py)).unwrap_or(Site { file: "unknown".into(), line: 0 });
        let text = format!("kernel `{name}` at {site}: its gradient gives {reason}");
        kernel_error(py, text, &site)
    };
    let no_tensor = |x: &Bound<'_, PyAny>| match x.get_type().name() {
        Ok(kind) => wrong(format!("'{kind}' instead of a tensor, or None, for each input")),
        Err(error) => error,
    };
    let one = |x: Bound<'_, PyAny>| match x.cast::<PyTensor>() {
        Ok(x) => Ok(Some(x.get().tensor())),
        Err(_) if x.is_none() => Ok(None),
        Err(_) => Err(no_tensor(&x)),
    };
    let found = match found.cast::<PyTensor>() {
        Ok(_) => vec![one(found)?],
        Err(_) if found.try_iter().is_err() => return Err(no_tensor(&found)),
        Err(_) => each(&found, one)?,
    };
    let fits = |(dx, x): (&Option<Tensor>, &Tensor)| {
        dx.as_ref().is_none_or(|dx| {
            let [given, needed] = [dx, x].map(|x| (x.dtype(), x.shape(), x.device()));
            given == needed
        })
    };
    if found.len() != of.inputs.len() {
        let (n, m) = (found.len(), of.inputs.len());
        return Err(wrong(format!("{n} cotangents for {m} inputs: one, or None, for each")));
    }
    if let Some(i) = found.iter().zip(of.inputs).position(|pair| !fits(pair)) {
        let (dx, x) = (found[i].as_ref().unwrap_or(&of.inputs[i]), &of.inputs[i]);
        let [is, of] = [dx, x].map(|x| format!("{}{:?} on {}", x.dtype(), x.shape(), x.device()));
        return Err(wrong(format!("{is} for input {i}, which is {of}")));
    }
    Ok(found)
}

/// The line where a function begins.
fn site_of(function: &Bound<'_, PyAny>) -> PyResult<Site> {
    let code = function.getattr("__code__")?;
    let file: String = code.getattr("co_filename")?.extract()?;
    Ok(Site { file: file.into(), line: code.getattr("co_firstlineno")?.extract()? })
}

/// Tensors of Python's arguments.
fn inputs(tensors: &Bound<'_, PyTuple>) -> PyResult<Vec<Tensor>> {
    let first = tensors.iter().find_map(|x| Some(x.cast::<PyTensor>().ok()?.get().tensor()));
    let device = match first {
        Some(tensor) => tensor.device().clone(),
        None => default_device()?,
    };
    tensors.iter().map(|x| x.extract::<TensorArg>()?.ready(&device)).collect()
}

const LANGUAGES: [Language; 5] =
    [Language::CudaC, Language::Ptx, Language::OpenClC, Language::Wgsl, Language::SpirV];

/// Code of one backend as Python declares it: language, code, entry point, buffers with accesses, scalars, threads of a
/// group, bytes of shared storage.
type Declared = (String, Vec<u8>, String, Vec<(DTypeArg, String)>, Vec<DTypeArg>, [u32; 3], u32);

fn raw_source(declared: Declared) -> PyResult<RawSource> {
    let (language, code, name, buffers, scalars, threads, shared_bytes) = declared;
    let unknown =
        |what: &str, word: &str| PyValueError::new_err(format!("with_raw: {word:?} is no {what}"));
    let known = LANGUAGES.into_iter().find(|known| known.to_string() == language);
    let language = known.ok_or_else(|| unknown("language of kernels", &language))?;
    let buffer = |(dtype, access): (DTypeArg, String)| {
        let access = match &*access {
            "read" => Access::Read,
            "write" => Access::Write,
            "readwrite" => Access::ReadWrite,
            other => return Err(unknown("access", other)),
        };
        Ok(RawParam::new(dtype.or(DType::F32), access))
    };
    let params = buffers.into_iter().map(buffer).collect::<PyResult<_>>()?;
    let vars = scalars.into_iter().map(|dtype| dtype.or(DType::F32)).collect();
    Ok(RawSource { name, language, code: code.into(), params, vars, threads, shared_bytes })
}

/// The launch that a function of Python gives for values of sizes.
fn raw_launch(
    py: Python<'_>,
    rule: &Py<PyAny>,
    sizes: &[usize],
    vars: &[DType],
) -> PyResult<RawLaunch> {
    let found = rule.bind(py).call1(PyTuple::new(py, sizes)?)?;
    let (groups, given): (Vec<u32>, Vec<Bound<'_, PyAny>>) = found.extract()?;
    let groups = [0, 1, 2].map(|axis| groups.get(axis).copied().unwrap_or(1));
    let scalar = |(x, &dtype): (&Bound<'_, PyAny>, &DType)| match dtype.is_float() {
        true => x.extract().map(|x| Scalar::from_f64(dtype, x)),
        false => x.extract().map(|x| Scalar::from_i64(dtype, x)),
    };
    // A launch with another number of scalars is refused.
    let scalars = given.iter().zip(vars).map(scalar).collect::<PyResult<Vec<_>>>()?;
    let more = given.iter().skip(vars.len()).map(|_| Scalar::from(false));
    Ok(RawLaunch { groups, scalars: scalars.into_iter().chain(more).collect() })
}

#[pymethods]
impl PyKernel {
    fn with_raw(
        &self,
        declared: Declared,
        launch: Py<PyAny>,
        sizes: Vec<String>,
    ) -> PyResult<PyKernel> {
        let source = raw_source(declared)?;
        let vars = source.vars.clone();
        // SAFETY: the documentation of `with_raw` says what its caller promises, in the words of `RawKernel::new`.
        let raw = unsafe { RawKernel::new(source) };
        Ok(PyKernel(self.0.with_raw(raw, move |size| {
            let sizes: Vec<usize> = sizes.iter().map(|name| size(name)).collect();
            let _outside = fork::leave();
            Python::attach(|py| raw_launch(py, &launch, &sizes, &vars)).unwrap_or_else(|error| {
                raise_later(error);
                RawLaunch { groups: [0; 3], scalars: Vec::new() }
            })
        })))
    }

    #[new]
    fn make(name: &str, function: Py<PyAny>, elementwise: bool) -> PyKernel {
        PyKernel(match elementwise {
            true => Kernel::elementwise(name, move |values: &[Val<'_>]| {
                record_elements(values, &function)
            }),
            false => Kernel::new(name, move |k: &Lang| record_kernel(k, &function)),
        })
    }

    #[pyo3(signature = (*tensors))]
    fn __call__(&self, tensors: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        let (py, inputs) = (tensors.py(), inputs(tensors)?);
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        let outputs = caught(py, || self.0.call_all(&inputs))?;
        let mut outputs: Vec<PyTensor> = outputs.into_iter().map(PyTensor::new).collect();
        match (outputs.len(), outputs.pop()) {
            (1, Some(only)) => Ok(Py::new(py, only)?.into_any()),
            (_, last) => {
                outputs.extend(last);
                Ok(PyTuple::new(py, outputs)?.into_any().unbind())
            }
        }
    }

    fn with_size(&self, name: &str, size: usize) -> PyKernel {
        PyKernel(self.0.with_size(name, size))
    }

    fn with_parameter(&self, name: &str, value: usize) -> PyKernel {
        PyKernel(self.0.with_parameter(name, value))
    }

    fn with_gradient(&self, rule: Py<PyAny>) -> PyKernel {
        let name = self.0.name().to_owned();
        PyKernel(self.0.with_gradient(move |of| in_python(|py| cotangents(py, &name, &rule, of))))
    }

    #[pyo3(signature = (*tensors))]
    fn check(&self, tensors: &Bound<'_, PyTuple>) -> PyResult<()> {
        let inputs = inputs(tensors)?;
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        detached(tensors.py(), || self.0.check(&inputs))
    }

    #[pyo3(signature = (*tensors, at))]
    fn trace(&self, tensors: &Bound<'_, PyTuple>, at: Vec<usize>) -> PyResult<Vec<String>> {
        let inputs = inputs(tensors)?;
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        let steps = detached(tensors.py(), || self.0.trace(&inputs, &at))?;
        Ok(steps.iter().map(ToString::to_string).collect())
    }

    #[staticmethod]
    fn from_text(py: Python<'_>, text: &str) -> PyResult<PyKernel> {
        caught(py, || Kernel::from_text(text)).map(PyKernel)
    }

    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    fn to_text(
        &self,
        py: Python<'_>,
        dtypes: Vec<DTypeArg>,
        device: Option<DeviceArg>,
    ) -> PyResult<String> {
        let device = device.unwrap_or_default().open()?;
        let dtypes: Vec<DType> = dtypes.into_iter().map(|dtype| dtype.or(DType::F32)).collect();
        caught(py, || self.0.to_text(&dtypes, &device))
    }
}

/// The argument of a kernel's gradient rule.
#[pyclass(name = "KernelGradient", module = "zyx.lang", frozen, get_all)]
#[derive(Debug)]
pub(crate) struct PyKernelGradient {
    /// The inputs of the call.
    inputs: Py<PyTuple>,
    /// The output whose cotangent is given.
    output: Py<PyTensor>,
    /// Its number among the outputs.
    number: usize,
    /// The cotangent of the output.
    cotangent: Py<PyTensor>,
}

/// Adds the classes: `zyx.lang` has their names.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyKernel>()?;
    let lang = PyModule::new(module.py(), "_lang")?;
    lang.add_class::<body::PyLang>()?;
    lang.add_class::<body::PyBody>()?;
    lang.add_class::<PyVal>()?;
    lang.add_class::<array::PyArray>()?;
    lang.add_class::<array::PyVar>()?;
    lang.add_class::<group::PyGroup>()?;
    lang.add_class::<group::PyMatrix>()?;
    lang.add_class::<group::PyRows>()?;
    lang.add_class::<progress::PyLookBack>()?;
    lang.add_class::<progress::PyQueue>()?;
    lang.add_class::<PyKernelGradient>()?;
    module.add("_lang", lang)
}
