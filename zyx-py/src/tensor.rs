//! `zyx.Tensor` and `zyx.Parameter`: the class itself; its methods come from the stub.
//!
//! A Python tensor is a cell: it holds a tensor of Rust, or shares a storage with its views (`crate::storage`), or is a
//! leaf: a parameter, or a tensor made with `requires_grad`. So a parameter can be used wherever a tensor can.

use crate::arguments::{Argument, Ready, TensorArg, default_device};
use crate::data;
use crate::device::{DeviceArg, PyDevice};
use crate::dlpack;
use crate::dtype::{DTypeArg, PyDType, default_float};
use crate::error::{caught, detached, shape_error};
use crate::functional::in_python;
use crate::grad_mode::is_grad_enabled;
use crate::index::filling;
use crate::leaf::Leaf;
use crate::lists::{List, bytes, each, list};
use crate::memory;
use crate::scope;
use crate::storage::Alias;
use crate::views::{self, Layout, Seen};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyTuple};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use zyx::{DType, Device, Param, Result, Tensor};

/// An n-dimensional array on a device, computed when it is needed.
///
/// `Tensor(data, dtype=None, device=None, requires_grad=False)` copies numbers, nested lists, NumPy
/// arrays and whatever exports memory. Integers become `int64` and floats `float32` unless a dtype
/// is given; arrays keep theirs.
#[pyclass(name = "Tensor", module = "zyx", frozen, subclass, weakref)]
#[derive(Debug)]
pub(crate) struct PyTensor {
    value: RwLock<Value>,
    /// The scope that it was made in: see [`crate::scope`].
    scope: u64,
}

#[derive(Debug)]
enum Value {
    Fixed(Tensor),
    Shared(Arc<Alias>),
    Place(Arc<Leaf>),
}

impl PyTensor {
    // Each method of the stub calls these: once in the library, not once in each.

    /// What a call gives: without its history while [`crate::grad_mode`] says so.
    #[inline(never)]
    pub(crate) fn new(tensor: Tensor) -> PyTensor {
        PyTensor::of(Value::Fixed(if is_grad_enabled() { tensor } else { tensor.detach() }))
    }

    fn of(value: Value) -> PyTensor {
        PyTensor { value: RwLock::new(value), scope: scope::current() }
    }

    /// A tensor that shares a storage.
    pub(crate) fn shared(alias: Arc<Alias>) -> PyTensor {
        PyTensor::of(Value::Shared(alias))
    }

    fn value(&self) -> RwLockReadGuard<'_, Value> {
        self.value.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// A leaf that is asked to keep what is computed from it, whatever the mode is.
    pub(crate) fn leaf(tensor: Tensor, requires_grad: bool) -> PyResult<PyTensor> {
        match requires_grad {
            false => Ok(PyTensor::new(tensor)),
            true if tensor.dtype().is_float() => {
                Ok(PyTensor::of(Value::Place(Leaf::of(Param::new(tensor)))))
            }
            true => {
                let text = format!("only floats have gradients, not {}", tensor.dtype());
                Err(PyTypeError::new_err(text))
            }
        }
    }

    /// A tensor that is a leaf.
    pub(crate) fn of_leaf(leaf: Arc<Leaf>) -> PyTensor {
        PyTensor::of(Value::Place(leaf))
    }

    /// The tensor, of a parameter the one it holds now.
    #[inline(never)]
    pub(crate) fn tensor(&self) -> Tensor {
        match &*self.value() {
            Value::Fixed(tensor) => tensor.clone(),
            Value::Shared(alias) => alias.tensor(),
            Value::Place(leaf) => leaf.param.tensor(),
        }
    }

    fn replace(&self, value: Value) {
        let old = self.value.write().map(|mut cell| std::mem::replace(&mut *cell, value));
        // The old value is freed without the lock.
        drop(old);
    }

    /// The alias of this tensor, made at the first call.
    #[inline(never)]
    pub(crate) fn alias(&self) -> Arc<Alias> {
        let alias = match &*self.value() {
            Value::Fixed(tensor) => Alias::of(tensor, self.scope),
            Value::Shared(alias) => return alias.clone(),
            Value::Place(leaf) => return leaf.alias(self.scope),
        };
        self.replace(Value::Shared(alias.clone()));
        alias
    }

    /// Where the elements are, of a tensor that shares a storage.
    pub(crate) fn layout(&self) -> Option<Layout> {
        match &*self.value() {
            Value::Shared(alias) => Some(alias.layout()),
            Value::Fixed(_) | Value::Place(_) => None,
        }
    }

    /// Calls `f` with the alias of this tensor, without a handle of it. `f` makes tensors and
    /// calls nothing of Python.
    fn with_alias<T>(&self, f: impl FnOnce(&Arc<Alias>) -> T) -> T {
        if let Value::Shared(alias) = &*self.value() {
            return f(alias);
        }
        f(&self.alias())
    }

    /// The view that a method gives, and whether it shares memory: a step may copy.
    #[inline(never)]
    pub(crate) fn seen(
        &self,
        py: Python<'_>,
        f: &dyn Fn(&Tensor) -> Result<Seen>,
    ) -> PyResult<(PyTensor, bool)> {
        let made = caught(py, || {
            self.with_alias(|alias| {
                let (seen, version) = alias.with_value(f);
                seen.map(|(y, steps)| alias.view(steps, version, y))
            })
        })?;
        Ok(match made {
            Ok(view) => (PyTensor::shared(view), true),
            Err(copy) => (PyTensor::of(Value::Fixed(copy)), false),
        })
    }

    /// A view that was made of the value now.
    pub(crate) fn seen_as(&self, (tensor, steps): Seen) -> PyTensor {
        let alias = self.alias();
        match alias.view(steps, alias.version(), tensor) {
            Ok(view) => PyTensor::shared(view),
            Err(copy) => PyTensor::of(Value::Fixed(copy)),
        }
    }

    // The methods of the stub call these.

    /// A view, or a copy if it cannot be one.
    #[inline(never)]
    pub(crate) fn view(
        &self,
        py: Python<'_>,
        f: &dyn Fn(&Tensor) -> Result<Seen>,
    ) -> PyResult<Py<PyAny>> {
        self.seen(py, f)?.0.into_py_any(py)
    }

    /// A view, or an error if it cannot be one.
    #[inline(never)]
    pub(crate) fn strict_view(
        &self,
        py: Python<'_>,
        f: &dyn Fn(&Tensor) -> Result<Seen>,
    ) -> PyResult<Py<PyAny>> {
        match self.seen(py, f)? {
            (view, true) => view.into_py_any(py),
            (_, false) => Err(PyRuntimeError::new_err(
                "view size is not compatible with input tensor's size and stride (at least one dimension spans across \
                 two contiguous subspaces). Use .reshape(...) instead.",
            )),
        }
    }

    /// Several views.
    #[inline(never)]
    pub(crate) fn views(
        &self,
        py: Python<'_>,
        f: &dyn Fn(&Tensor) -> Result<Vec<Seen>>,
    ) -> PyResult<Py<PyAny>> {
        let alias = self.alias();
        let (all, version) = alias.with_value(f);
        let all = caught(py, || all)?;
        let view = |(y, steps)| match alias.view(steps, version, y) {
            Ok(view) => PyTensor::shared(view),
            Err(copy) => PyTensor::of(Value::Fixed(copy)),
        };
        let views = all.into_iter().map(|seen| Ok(view(seen)));
        Ok(list(py, views)?.into_any().unbind())
    }

    /// Becomes what another tensor is.
    pub(crate) fn become_other(&self, other: PyTensor) -> PyResult<()> {
        if self.as_leaf().is_some() {
            return Err(PyRuntimeError::new_err("a leaf stays what it is; take a view of it"));
        }
        self.replace(other.value.into_inner().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }

    /// Whether something was written to its storage.
    pub(crate) fn is_written(&self) -> bool {
        match &*self.value() {
            Value::Shared(alias) => alias.version() > 0,
            Value::Fixed(_) | Value::Place(_) => false,
        }
    }

    /// Whether both are the same elements of one storage.
    pub(crate) fn is_same(&self, other: &PyTensor) -> bool {
        match (&*self.value(), &*other.value()) {
            (Value::Shared(a), Value::Shared(b)) => a.is_same(b),
            _ => false,
        }
    }

    /// Replaces the values by others of the same shape and dtype.
    pub(crate) fn write(&self, py: Python<'_>, value: &Tensor) -> PyResult<()> {
        self.alias().write(py, value, false)
    }

    /// Writes a number or a tensor, broadcast to this shape.
    pub(crate) fn fill(&self, py: Python<'_>, value: Ready) -> PyResult<()> {
        let (t, is_number) = (self.tensor(), matches!(value, Ready::Number(_)));
        self.alias().write(py, &filling(py, value, &t)?, is_number)
    }

    /// The leaf it is.
    #[inline(never)]
    pub(crate) fn as_leaf(&self) -> Option<Arc<Leaf>> {
        match &*self.value() {
            Value::Fixed(_) | Value::Shared(_) => None,
            Value::Place(leaf) => Some(leaf.clone()),
        }
    }

    /// The parameter it is, whether or not it is of that class.
    pub(crate) fn param(&self) -> Option<Param> {
        self.as_leaf().map(|leaf| leaf.param.clone())
    }
}

/// Makes a tensor of anything that holds numbers.
#[pyfunction]
#[pyo3(signature = (data, dtype=None, device=None, requires_grad=false, pin_memory=false))]
pub(crate) fn tensor(
    data: &Bound<'_, PyAny>,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
    requires_grad: bool,
    pin_memory: bool,
) -> PyResult<PyTensor> {
    let (py, _) = (data.py(), pin_memory);
    let dtype = dtype.map(|d| d.or(DType::F32));
    let made = match data.cast::<PyTensor>() {
        Ok(given) => {
            let mut tensor = given.get().tensor();
            if let Some(device) = device {
                let device = device.open()?;
                tensor = caught(py, || tensor.to_device(&device))?;
            }
            dtype.map_or(tensor.clone(), |dtype| tensor.cast(dtype))
        }
        Err(_) => data::read(data)?.tensor(dtype, &device.unwrap_or_default().open()?)?,
    };
    PyTensor::leaf(made, requires_grad)
}

/// The class of shapes.
fn size_type(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static SIZE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let find = || Ok::<_, PyErr>(py.import("zyx._size")?.getattr("Size")?.unbind());
    Ok(SIZE.get_or_try_init(py, find)?.bind(py))
}

#[pymethods]
impl PyTensor {
    /// PyTorch's constructor: integers are extents of zeros, other data becomes floats of the default dtype. With a
    /// dtype it is `tensor(data, dtype)`.
    #[new]
    #[pyo3(signature = (*data, dtype=None, device=None, requires_grad=false))]
    fn make(
        data: &Bound<'_, PyTuple>,
        dtype: Option<DTypeArg>,
        device: Option<DeviceArg>,
        requires_grad: bool,
    ) -> PyResult<PyTensor> {
        let (py, float) = (data.py(), default_float());
        if dtype.is_none() {
            let is_size = |x: &Bound<'_, PyAny>| {
                x.is_instance_of::<PyInt>() && !x.is_instance_of::<PyBool>()
                    || x.get_type().name().is_ok_and(|name| {
                        name.to_str().is_ok_and(|name| name.contains("int"))
                            && x.hasattr("ndim").unwrap_or(false)
                    })
            };
            let first = data.get_item(0).ok();
            let extents: Option<Vec<usize>> = match &first {
                Some(one) if data.len() == 1 && one.is_instance(size_type(py)?)? => {
                    Some(one.extract()?)
                }
                _ if data.iter().all(|x| is_size(&x)) => Some(data.extract::<Vec<usize>>()?),
                _ => None,
            };
            if let Some(extents) = extents {
                let extents = if data.is_empty() { vec![0] } else { extents };
                let device = device.unwrap_or_default().open()?;
                return PyTensor::leaf(Tensor::zeros(extents, float, &device), requires_grad);
            }
        }
        if data.len() > 1 {
            // As pickles have it: data, dtype, device, and whether it requires gradients.
            let (data, dtype, device, requires_grad) = match data.len() {
                2 => (data.get_item(0)?, data.get_item(1)?.extract()?, device, requires_grad),
                3 => {
                    let device = data.get_item(2)?.extract()?;
                    (data.get_item(0)?, data.get_item(1)?.extract()?, device, requires_grad)
                }
                _ => data.extract()?,
            };
            return tensor(&data, dtype, device, requires_grad, false);
        }
        let data = &data.get_item(0)?;
        let is_tensor = data.is_instance_of::<PyTensor>();
        let dtype = dtype.or_else(|| (!is_tensor).then_some(DTypeArg::of(float)));
        tensor(data, dtype, device, requires_grad, false)
    }

    /// An attribute that is not there: the error says how the same is written. Python's own search comes before, which
    /// takes less time than with a method of Python of this name.
    fn __getattr__(slf: &Bound<'_, PyTensor>, name: &str) -> PyResult<Py<PyAny>> {
        let kind = slf.get_type().name()?;
        let way = slf.py().import("zyx._aliases")?.getattr("elsewhere")?.call1((name,))?;
        let text = format!("'{kind}' object has no attribute '{name}'{way}");
        Err(PyAttributeError::new_err(text))
    }

    /// The extents of the axes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let size = size_type(py)?;
        size.call1((PyTuple::new(py, self.tensor().shape().dims())?,))
    }

    /// Where the elements are in the storage: the first, the strides of the axes, and how many elements the storage has.
    fn _layout(&self) -> (usize, Vec<usize>, usize) {
        let alias = match &*self.value() {
            Value::Shared(alias) => Some(alias.clone()),
            Value::Fixed(_) | Value::Place(_) => None,
        };
        let t = self.tensor();
        let layout = self.layout().unwrap_or_else(|| Layout::contiguous(t.shape()));
        let size = alias.map_or(t.numel(), |alias| alias.storage_size());
        (layout.offset, layout.axes.iter().map(|axis| axis.1).collect(), size)
    }

    /// A view of positions in the storage.
    fn _strided(
        &self,
        extents: Vec<usize>,
        strides: Vec<usize>,
        offset: usize,
    ) -> PyResult<PyTensor> {
        let layout = Layout { offset, axes: extents.into_iter().zip(strides).collect() };
        self.alias().strided(layout).map(PyTensor::shared)
    }

    /// Whether no other tensor shares the storage.
    fn _is_alone(&self) -> bool {
        match &*self.value() {
            Value::Shared(alias) => alias.is_alone(),
            Value::Fixed(_) | Value::Place(_) => true,
        }
    }

    /// The type of the elements.
    #[getter]
    fn dtype(&self) -> PyDType {
        PyDType(self.tensor().dtype())
    }

    /// The device it is, or will be, stored on.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice(self.tensor().device().clone())
    }

    /// Number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.tensor().rank()
    }

    /// Bytes of one element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.tensor().dtype().size()
    }

    /// Bytes of all elements.
    #[getter]
    fn nbytes(&self) -> usize {
        let tensor = self.tensor();
        tensor.numel().saturating_mul(tensor.dtype().size())
    }

    /// Whether gradients can flow through this tensor after its value was computed.
    #[getter]
    fn requires_grad(&self) -> bool {
        self.tensor().is_tracked()
    }

    /// With the axes in reverse order.
    #[getter(T)]
    fn transposed(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.view(py, &|t| views::reversed(t))
    }

    /// With the last two axes exchanged.
    #[getter(mT)]
    fn matrix_transposed(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.view(py, &|t| views::exchanged(t, -1, -2, t.transpose(-1, -2)))
    }

    /// The only element as a number of Python.
    fn item(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        memory::number(py, memory::item(py, &self.tensor())?)
    }

    /// The elements as lists within lists; a number for a tensor without axes.
    fn tolist(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        memory::nested(py, &self.tensor())
    }

    /// The elements as one list in row-major order.
    fn to_vec(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        memory::flat(py, &self.tensor())
    }

    /// The little-endian bytes of the elements in row-major order.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let t = self.tensor();
        bytes(py, &detached(py, || t.to_bytes())?)
    }

    /// A NumPy array of the elements. On a device that computes in host memory the array shares it
    /// and is read-only, unless `copy=True`.
    #[pyo3(signature = (*, copy=false))]
    fn numpy<'py>(&self, py: Python<'py>, copy: bool) -> PyResult<Bound<'py, PyAny>> {
        memory::array(py, &self.tensor(), copy)
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = memory::array(py, &self.tensor(), copy == Some(true))?;
        match dtype {
            Some(dtype) if !array.getattr("dtype")?.eq(dtype)? => {
                array.call_method1("astype", (dtype,))
            }
            _ => Ok(array),
        }
    }

    /// NumPy's operators leave mixed operands to the tensor.
    #[classattr]
    fn __array_priority__() -> i64 {
        1000
    }

    /// The namespace of the Python array API standard.
    #[pyo3(signature = (*, api_version=None))]
    fn __array_namespace__<'py>(
        &self,
        py: Python<'py>,
        api_version: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let known = ["2021.12", "2022.12", "2023.12"];
        if let Some(version) = api_version.filter(|version| !known.contains(version)) {
            let text = format!("version {version} of the array API; there are {known:?}");
            return Err(pyo3::exceptions::PyValueError::new_err(text));
        }
        Ok(py.import("zyx.array_api")?.into_any())
    }

    /// A capsule that other libraries read in place, as the DLPack standard says.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if stream.is_some() {
            return Err(PyBufferError::new_err("memory of the host has no stream: pass None"));
        }
        dlpack::export(py, &self.tensor(), max_version, dl_device, copy)
    }

    /// Where the elements are for DLPack: host memory.
    fn __dlpack_device__(&self) -> (i32, i32) {
        dlpack::HOST
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        match self.tensor().shape().first() {
            Some(&n) => Ok(n),
            None => Err(PyTypeError::new_err("len() of a tensor without axes")).inspect_err(|_| {
                let _ = py;
            }),
        }
    }

    fn __iter__<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        let (py, t) = (slf.py(), slf.get().tensor());
        let Some(&n) = t.shape().first() else {
            return Err(PyTypeError::new_err("iteration over a tensor without axes"));
        };
        // One by one, as they are asked for.
        let row = slf.getattr("__getitem__")?;
        let builtins = py.import("builtins")?;
        builtins.getattr("map")?.call1((row, builtins.getattr("range")?.call1((n,))?))
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        let t = self.tensor();
        if t.numel() != 1 {
            let text =
                format!("the truth value of a tensor of {} elements is ambiguous", t.numel());
            return Err(shape_error(py, text));
        }
        Ok(memory::item(py, &t)?.to_bool())
    }

    fn __float__(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(memory::item(py, &self.tensor())?.to_f64())
    }

    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let number = memory::number(py, memory::item(py, &self.tensor())?)?;
        py.import("builtins")?.getattr("int")?.call1((number,))
    }

    fn __complex__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let x = memory::item(py, &self.tensor())?.to_f64();
        py.import("builtins")?.getattr("complex")?.call1((x,))
    }

    fn __index__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let t = self.tensor();
        if t.dtype().is_float() || t.rank() > 0 {
            return Err(PyTypeError::new_err("only integer tensors without axes are an index"));
        }
        self.__int__(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let t = self.tensor();
        detached(py, || Ok(format!("{t:?}")))
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        let t = self.tensor();
        detached(py, || Ok(format!("{t}")))
    }

    fn __format__(&self, py: Python<'_>, spec: &Bound<'_, PyAny>) -> PyResult<String> {
        let t = self.tensor();
        if t.numel() != 1 || spec.len()? == 0 {
            return self.__str__(py);
        }
        let number = memory::number(py, memory::item(py, &t)?)?;
        number.bind(py).call_method1("__format__", (spec,))?.extract()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let t = self.tensor();
        if t.is_tracked() {
            let value = PyTensor::new(t.detach());
            let arguments = (value, py.None(), py.None(), true);
            return (py.get_type::<PyTensor>(), arguments).into_pyobject(py);
        }
        let content = detached(py, || t.to_bytes())?;
        let make = py.get_type::<PyTensor>().getattr("from_bytes")?;
        let shape = PyTuple::new(py, t.shape().dims())?;
        let arguments = (bytes(py, &content)?, t.dtype().name(), shape);
        (make, arguments).into_pyobject(py)
    }

    /// The same elements; of a leaf the leaf itself.
    fn __copy__(slf: Py<PyTensor>, py: Python<'_>) -> PyResult<Py<PyTensor>> {
        match slf.get().as_leaf() {
            None => Py::new(py, PyTensor::shared(slf.get().alias())),
            Some(_) => Ok(slf.clone_ref(py)),
        }
    }

    /// The same values; of a leaf a new one.
    fn __deepcopy__(
        slf: Py<PyTensor>,
        py: Python<'_>,
        memo: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        let _ = memo;
        let Some(param) = slf.get().param() else {
            return Ok(Py::new(py, PyTensor::of(Value::Fixed(slf.get().tensor())))?.into_any());
        };
        let value = param.tensor().detach();
        let fresh = if param.is_state() { Param::state(value) } else { Param::new(value) };
        fresh.set_trainable(param.is_trainable());
        match slf.bind(py).is_instance_of::<PyParameter>() {
            true => Ok(parameter(py, fresh)?.into_any()),
            false => Ok(Py::new(py, PyTensor::of(Value::Place(Leaf::of(fresh))))?.into_any()),
        }
    }

    /// On another device, in another dtype, or both: as words, by name, or as those of a tensor; the tensor itself if it
    /// is that already, unless `copy=True`.
    #[pyo3(signature = (*target, dtype=None, device=None, non_blocking=false, copy=false, memory_format=None))]
    #[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
    fn to(
        slf: &Bound<'_, PyTensor>,
        target: &Bound<'_, PyTuple>,
        dtype: Option<DTypeArg>,
        device: Option<DeviceArg>,
        non_blocking: bool,
        copy: bool,
        memory_format: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyTensor>> {
        let (py, _, t) = (slf.py(), non_blocking, slf.get().tensor());
        let mut dtype = dtype.map(|dtype| dtype.or(t.dtype()));
        let mut device = device.map(DeviceArg::open).transpose()?;
        for item in target.iter().filter(|item| !item.is_none()) {
            let (of, at) = goal(&item)?;
            if of.is_some() && dtype.is_some() || at.is_some() && device.is_some() {
                return Err(PyTypeError::new_err("to() got two dtypes or two devices"));
            }
            (dtype, device) = (of.or(dtype), at.or(device));
        }
        if target.is_empty() && dtype.is_none() && device.is_none() && memory_format.is_none() {
            return Err(PyTypeError::new_err("to() missing a device or dtype"));
        }
        let is_here = device.as_ref().is_none_or(|device| device == t.device());
        if !copy && is_here && dtype.is_none_or(|dtype| dtype == t.dtype()) {
            return Ok(slf.clone().unbind());
        }
        let t = dtype.map_or(t.clone(), |dtype| t.cast(dtype));
        let found = caught(py, || device.map_or(Ok(t.clone()), |device| t.to_device(&device)))?;
        Py::new(py, PyTensor::new(found))
    }

    /// On the device `cpu`.
    fn cpu(slf: &Bound<'_, PyTensor>) -> PyResult<Py<PyTensor>> {
        let (py, t, device) =
            (slf.py(), slf.get().tensor(), DeviceArg::Spec("cpu".to_owned()).open()?);
        if device == *t.device() {
            return Ok(slf.clone().unbind());
        }
        Py::new(py, PyTensor::new(caught(py, || t.to_device(&device))?))
    }

    /// Computes the value; gives the tensor itself.
    fn realize(slf: Bound<'_, PyTensor>) -> PyResult<Bound<'_, PyTensor>> {
        let tensor = slf.get().tensor();
        detached(slf.py(), || tensor.realize())?;
        Ok(slf)
    }

    /// Makes a leaf collect gradients, or not; gives the tensor itself. Of what was computed from leaves,
    /// `False` gives the same without history.
    #[pyo3(signature = (requires_grad=true))]
    fn requires_grad_(
        slf: Bound<'_, PyTensor>,
        requires_grad: bool,
    ) -> PyResult<Bound<'_, PyTensor>> {
        let (py, t) = (slf.py(), slf.get().tensor());
        if let Some(param) = slf.get().param() {
            param.set_trainable(requires_grad);
        } else if t.is_tracked() && !requires_grad {
            return Bound::new(py, PyTensor::new(t.detach()));
        } else if requires_grad && !t.is_tracked() {
            let made = PyTensor::leaf(t, true)?;
            if let (Value::Shared(alias), Some(leaf)) = (&*slf.get().value(), made.as_leaf())
                && !leaf.adopt(alias)
            {
                alias.cut();
            }
            let made = made.value.into_inner().unwrap_or_else(PoisonError::into_inner);
            slf.get().replace(made);
        }
        Ok(slf)
    }

    #[setter]
    fn set_requires_grad(slf: Bound<'_, PyTensor>, requires_grad: bool) -> PyResult<()> {
        if slf.get().as_leaf().is_none()
            && slf.get().tensor().is_tracked() != requires_grad
            && !requires_grad
        {
            return Err(PyRuntimeError::new_err(
                "requires_grad of what was computed from leaves cannot be changed; detach() gives it without history",
            ));
        }
        PyTensor::requires_grad_(slf, requires_grad).map(drop)
    }

    /// The values as they are now; gradients flow through it.
    #[pyo3(name = "clone", signature = (*, memory_format=None))]
    fn copied(&self, memory_format: Option<&Bound<'_, PyAny>>) -> PyTensor {
        let _ = memory_format;
        PyTensor::new(self.tensor())
    }

    /// The same values as a tracked leaf: a parameter. Everything computed from it keeps its
    /// history, so gradients can be asked for even after values were read.
    fn tracked(&self) -> PyResult<PyTensor> {
        let t = self.tensor();
        match t.dtype().is_float() {
            true => PyTensor::leaf(t, true),
            false => Ok(PyTensor::new(t.tracked())),
        }
    }

    /// Gradients of this number for each of `leaves`; zeros for one it does not depend on.
    #[pyo3(signature = (*leaves))]
    fn gradient(&self, py: Python<'_>, leaves: &Bound<'_, PyTuple>) -> PyResult<Vec<PyTensor>> {
        let nested = leaves.len() == 1 && !leaves.get_item(0)?.is_instance_of::<PyTensor>();
        let leaves = if nested { leaves.get_item(0)? } else { leaves.clone().into_any() };
        let leaves = each(&leaves, |leaf| Ok(leaf.cast::<PyTensor>()?.get().tensor()))?;
        let t = self.tensor();
        let found = detached(py, || t.grad(&leaves.iter().collect::<Vec<_>>()))?;
        let or_zeros = |(found, leaf): (Option<Tensor>, &Tensor)| {
            PyTensor::new(found.unwrap_or_else(|| leaf.zeros_like()))
        };
        Ok(found.into_iter().zip(&leaves).map(or_zeros).collect())
    }

    /// This value with a gradient of one's own: `rule(inputs, output, cotangent)` gives the
    /// cotangent of each of `inputs`, or `None`.
    fn with_gradient(
        &self,
        py: Python<'_>,
        inputs: List<TensorArg>,
        rule: Py<PyAny>,
    ) -> PyResult<PyTensor> {
        let t = self.tensor();
        let inputs: PyResult<Vec<Tensor>> =
            inputs.0.into_iter().map(|x| x.ready(t.device())).collect();
        let inputs = inputs?;
        let rule = move |inputs: &[Tensor], output: &Tensor, cotangent: &Tensor| {
            in_python(|py| call_rule(py, &rule, inputs, output, cotangent))
        };
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        caught(py, || t.with_gradient(&inputs, rule)).map(PyTensor::new)
    }
}

/// The dtype and the device that an argument of `to` names.
fn goal(item: &Bound<'_, PyAny>) -> PyResult<(Option<DType>, Option<Device>)> {
    if let Ok(other) = item.cast::<PyTensor>() {
        let other = other.get().tensor();
        return Ok((Some(other.dtype()), Some(other.device().clone())));
    }
    if let Ok(device) = item.cast::<PyDevice>() {
        return Ok((None, Some(device.get().0.clone())));
    }
    match item.extract::<DTypeArg>() {
        Ok(dtype) => Ok((Some(dtype.or(DType::F32)), None)),
        Err(_) => Ok((None, Some(item.extract::<DeviceArg>()?.open()?))),
    }
}

/// Calls a gradient rule that is written in Python.
fn call_rule(
    py: Python<'_>,
    rule: &Py<PyAny>,
    inputs: &[Tensor],
    output: &Tensor,
    cotangent: &Tensor,
) -> PyResult<Vec<Option<Tensor>>> {
    let inputs: Vec<PyTensor> = inputs.iter().cloned().map(PyTensor::new).collect();
    let given = (inputs, PyTensor::new(output.clone()), PyTensor::new(cotangent.clone()));
    let found = rule.bind(py).call1(given)?;
    let one = |x: Bound<'_, PyAny>| {
        if x.is_none() { Ok(None) } else { Ok(Some(x.cast::<PyTensor>()?.get().tensor())) }
    };
    each(&found, one)
}

/// A named place whose tensor changes during training; made by modules, changed by optimizers. It
/// can be used wherever a tensor can.
#[pyclass(name = "Parameter", module = "zyx", frozen, extends = PyTensor)]
#[derive(Debug)]
pub(crate) struct PyParameter;

/// The leaf of a parameter that is made of a tensor, whose memory both share then, or of other data.
fn leaf_sharing(data: &Bound<'_, PyAny>, make: fn(Tensor) -> Param) -> PyResult<Arc<Leaf>> {
    let value = data.extract::<TensorArg>()?.ready(&default_device()?)?;
    let leaf = Leaf::of(make(value));
    if let Ok(given) = data.cast::<PyTensor>()
        && given.get().as_leaf().is_none()
    {
        let _ = leaf.adopt(&given.get().alias());
    }
    Ok(leaf)
}

/// The object of a parameter.
pub(crate) fn parameter(py: Python<'_>, param: Param) -> PyResult<Py<PyParameter>> {
    let base = PyTensor::of(Value::Place(Leaf::of(param)));
    Py::new(py, PyClassInitializer::from(base).add_subclass(PyParameter))
}

/// The parameter behind an object of the class.
fn place(slf: &Bound<'_, PyParameter>) -> PyResult<Param> {
    let none = || PyTypeError::new_err("not a parameter");
    slf.as_super().get().param().ok_or_else(none)
}

#[pymethods]
impl PyParameter {
    /// `Parameter(data, requires_grad=True)`; without gradients it is frozen.
    #[new]
    #[pyo3(signature = (data, requires_grad=true))]
    fn make(
        data: &Bound<'_, PyAny>,
        requires_grad: bool,
    ) -> PyResult<PyClassInitializer<PyParameter>> {
        let leaf = leaf_sharing(data, Param::new)?;
        leaf.param.set_trainable(requires_grad);
        let base = PyTensor::of(Value::Place(leaf));
        Ok(PyClassInitializer::from(base).add_subclass(PyParameter))
    }

    /// State, as running statistics are.
    #[staticmethod]
    fn _state(py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Py<PyParameter>> {
        let leaf = leaf_sharing(data, Param::state)?;
        parameter(py, leaf.param.clone())
    }

    /// The tensor it holds now.
    fn tensor(slf: &Bound<'_, PyParameter>) -> PyResult<PyTensor> {
        Ok(PyTensor::new(place(slf)?.tensor()))
    }

    /// Replaces the value; shape, dtype and device stay.
    fn set(slf: &Bound<'_, PyParameter>, value: TensorArg) -> PyResult<()> {
        let param = place(slf)?;
        let value = value.ready(&param.device())?;
        caught(slf.py(), || param.set(&value))
    }

    /// Gives it another dtype and device, by what `Tensor.to` gives for them.
    fn _convert(slf: &Bound<'_, PyParameter>, dtype: DTypeArg, device: DeviceArg) -> PyResult<()> {
        let param = place(slf)?;
        let (dtype, device) = (dtype.or(param.dtype()), device.open()?);
        caught(slf.py(), || param.convert(dtype, &device))
    }

    /// Whether it was made as state, as running statistics are, and not as something to train.
    fn is_state(slf: &Bound<'_, PyParameter>) -> PyResult<bool> {
        Ok(place(slf)?.is_state())
    }

    /// Whether optimizers change it.
    fn is_trainable(slf: &Bound<'_, PyParameter>) -> PyResult<bool> {
        Ok(place(slf)?.is_trainable())
    }

    /// Freezes it (`False`) or lets optimizers change it.
    fn set_trainable(slf: &Bound<'_, PyParameter>, trainable: bool) -> PyResult<()> {
        place(slf)?.set_trainable(trainable);
        Ok(())
    }

    /// Whether both are one place, as the two names of a tied weight are.
    fn is_same(slf: &Bound<'_, PyParameter>, other: &Bound<'_, PyParameter>) -> PyResult<bool> {
        Ok(place(slf)?.is_same(&place(other)?))
    }

    fn __repr__(slf: &Bound<'_, PyParameter>) -> PyResult<String> {
        let t = place(slf)?.tensor();
        detached(slf.py(), || Ok(format!("Parameter({t:?})")))
    }

    /// A number that all names of one place share.
    fn _id(slf: &Bound<'_, PyParameter>) -> PyResult<u32> {
        Ok(place(slf)?.id())
    }

    fn __reduce__<'py>(slf: &Bound<'py, PyParameter>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, param) = (slf.py(), place(slf)?);
        let class = py.get_type::<PyParameter>();
        let make = if param.is_state() { class.getattr("_state")? } else { class.into_any() };
        let arguments = (PyTensor::new(param.tensor().detach()),);
        (make, arguments, param.is_trainable()).into_pyobject(py)
    }

    fn __setstate__(slf: &Bound<'_, PyParameter>, trainable: bool) -> PyResult<()> {
        place(slf)?.set_trainable(trainable);
        Ok(())
    }
}

/// The parameters in an iterable of objects.
pub(crate) fn parameters(given: &Bound<'_, PyAny>) -> PyResult<Vec<Param>> {
    let one = |object: Bound<'_, PyAny>| {
        let param = object.cast::<PyTensor>().ok().and_then(|t| t.get().param());
        param.ok_or_else(|| {
            let kind = object.get_type().name().map_or_else(|_| String::new(), |n| n.to_string());
            PyTypeError::new_err(format!(
                "expected parameters, not '{kind}'; use model.parameters()"
            ))
        })
    };
    each(given, one)
}

/// Tensors by name, of a dict.
pub(crate) fn named(
    given: &Bound<'_, PyDict>,
) -> PyResult<std::collections::BTreeMap<String, Tensor>> {
    let device = default_device()?;
    let one = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        Ok((name.extract::<String>()?, value.extract::<TensorArg>()?.ready(&device)?))
    };
    given.iter().map(one).collect()
}
