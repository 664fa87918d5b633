//! Data in: numbers, nested lists, arrays of NumPy and of every library that exports memory.
//!
//! Data that comes in is copied: an array may change later. Dtypes are kept exactly. Numbers and
//! lists of numbers have no dtype yet; they get the one that is asked for, or else `f32`, `i64` or
//! `bool`.

use crate::arguments::Number;
use crate::dlpack;
use crate::dtype;
use crate::error::{caught, dtype_error, shape_error};
use crate::lists::{List, no_memory, push, room};
use crate::tensor::PyTensor;
use pyo3::exceptions::{PyBufferError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyList, PyString, PyTuple};
use zyx::{Class, DType, Device, Scalar, Shape, Tensor};

/// The most axes a nested list is followed through.
const DEEPEST: usize = Shape::MAX_RANK + 1;

/// Data on the host, in row-major order.
#[derive(Debug)]
pub(crate) enum Host {
    /// Numbers of Python, without a dtype.
    Numbers { shape: Vec<usize>, values: Vec<Number> },
    /// Elements as bytes.
    Bytes { shape: Vec<usize>, dtype: DType, bytes: Vec<u8> },
}

impl Host {
    pub(crate) fn shape(&self) -> &[usize] {
        match self {
            Host::Numbers { shape, .. } | Host::Bytes { shape, .. } => shape,
        }
    }

    /// The dtype it has when none is asked for.
    pub(crate) fn dtype(&self) -> DType {
        match self {
            Host::Bytes { dtype, .. } => *dtype,
            Host::Numbers { values, .. } => {
                let class = |x: &Number| x.dtype();
                let widest =
                    values.iter().map(class).max_by_key(|d| (d.class() != Class::Unsigned, *d));
                // Integers beyond i64 make all of them unsigned.
                match widest {
                    Some(DType::I64) if values.iter().any(|x| matches!(x, Number::Unsigned(_))) => {
                        DType::U64
                    }
                    Some(dtype) => dtype,
                    None => dtype::default_float(),
                }
            }
        }
    }

    /// The elements as bytes of a dtype.
    fn bytes(&self, to: DType) -> PyResult<Vec<u8>> {
        let add = |all: &mut Vec<u8>, x: Scalar| {
            all.extend_from_slice(&x.bits().to_le_bytes()[..to.size()]);
        };
        match self {
            Host::Bytes { dtype, bytes, .. } => {
                let mut all = room(bytes.len() / dtype.size() * to.size())?;
                // Piece by piece, as a scalar takes more memory than an element.
                for piece in bytes.chunks(1024 * dtype.size()) {
                    let cast = Scalar::read_all(*dtype, piece).into_iter().map(|x| x.cast(to));
                    cast.for_each(|x| add(&mut all, x));
                }
                Ok(all)
            }
            Host::Numbers { values, .. } => {
                let mut all = room(values.len() * to.size())?;
                for &x in values {
                    add(&mut all, scalar(x, to)?);
                }
                Ok(all)
            }
        }
    }

    /// A tensor of the data.
    pub(crate) fn tensor(self, dtype: Option<DType>, device: &Device) -> PyResult<Tensor> {
        let to = dtype.unwrap_or_else(|| self.dtype());
        let shape = Shape::from(self.shape());
        let made = match self {
            Host::Bytes { dtype, ref bytes, .. } => Python::attach(|py| {
                let make = || Tensor::from_bytes(bytes, dtype, shape, device);
                if bytes.len() < 1 << 16 {
                    caught(py, make)
                } else {
                    crate::error::detached(py, make)
                }
            })?,
            Host::Numbers { .. } => {
                let bytes = self.bytes(to)?;
                Python::attach(|py| caught(py, || Tensor::from_bytes(&bytes, to, shape, device)))?
            }
        };
        Ok(made.cast(to))
    }

    /// The same elements in another dtype.
    fn cast(self, to: DType) -> PyResult<Host> {
        Ok(Host::Bytes { shape: self.shape().to_vec(), dtype: to, bytes: self.bytes(to)? })
    }
}

/// A number in a dtype; an integer must fit an integer dtype.
fn scalar(x: Number, dtype: DType) -> PyResult<Scalar> {
    let exact = |wide: i128| {
        let made = match u64::try_from(wide) {
            Ok(bits) if dtype == DType::U64 => Scalar::from_bits(dtype, bits),
            _ => Scalar::from_i64(dtype, wide as i64),
        };
        if dtype.is_int() && made.to_i128() != wide {
            let text = format!("the integer {wide} does not fit into {dtype}");
            return Err(PyOverflowError::new_err(text));
        }
        Ok(made)
    };
    match x {
        Number::Bool(x) => Ok(Scalar::from_i64(dtype, i64::from(x))),
        Number::Float(x) => Ok(Scalar::from_f64(dtype, x)),
        Number::Int(x) if dtype.is_float() => Ok(Scalar::from_f64(dtype, x as f64)),
        Number::Unsigned(x) if dtype.is_float() => Ok(Scalar::from_f64(dtype, x as f64)),
        Number::Int(x) => exact(i128::from(x)),
        Number::Unsigned(x) => exact(i128::from(x)),
    }
}

/// Reads an object.
pub(crate) fn read(object: &Bound<'_, PyAny>) -> PyResult<Host> {
    // Not `numpy.float64`, which is a float and has a dtype.
    let plain = object.is_exact_instance_of::<PyFloat>() || !object.is_instance_of::<PyFloat>();
    if plain && let Some(number) = Number::of(object)? {
        return Ok(Host::Numbers { shape: vec![], values: vec![number] });
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        // Of named results, as those of `sort`, one is meant.
        let named =
            !object.is_exact_instance_of::<PyList>() && !object.is_exact_instance_of::<PyTuple>();
        if named && object.try_iter()?.any(|x| x.is_ok_and(|x| x.is_instance_of::<PyTensor>())) {
            let text =
                "several results are no tensor: take one of them, as `.values` or by its number";
            return Err(PyTypeError::new_err(text));
        }
        return nested(object);
    }
    if let Ok(tensor) = object.cast::<PyTensor>() {
        let tensor = tensor.get().tensor();
        let (shape, dtype) = (tensor.shape().to_vec(), tensor.dtype());
        let bytes = crate::error::detached(object.py(), || tensor.to_bytes())?;
        return Ok(Host::Bytes { shape, dtype, bytes });
    }
    if let Ok(interface) = object.getattr("__array_interface__") {
        return array(object, &interface);
    }
    if object.hasattr("__dlpack__")? {
        return dlpack::read(object);
    }
    if object.hasattr("__array__")? {
        let array = object.call_method0("__array__")?;
        let interface = array.getattr("__array_interface__")?;
        return self::array(&array, &interface);
    }
    let is_text = object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>();
    if !is_text
        && !object.is_instance_of::<PyDict>()
        && object.hasattr("__len__")?
        && object.hasattr("__getitem__")?
    {
        // As the list of what is in it: a range is one of integers.
        let items = PyList::empty(object.py());
        for item in object.try_iter()? {
            items.append(item?)?;
        }
        return nested(items.as_any());
    }
    let kind = object.get_type().name()?;
    Err(PyTypeError::new_err(format!("cannot make a tensor of '{kind}' object")))
}

/// Numbers in nested lists; a list of arrays is stacked.
fn nested(object: &Bound<'_, PyAny>) -> PyResult<Host> {
    let (mut shape, mut values) = (Vec::new(), Vec::new());
    if collect(object, 0, &mut shape, &mut values)? {
        return Ok(Host::Numbers { shape, values });
    }
    let mut parts = Vec::new();
    for item in object.try_iter()? {
        push(&mut parts, read(&item?)?)?;
    }
    let Some(first) = parts.first() else { return Ok(Host::Numbers { shape, values }) };
    let each = first.shape().to_vec();
    if let Some(other) = parts.iter().find(|part| part.shape() != each) {
        let text = format!("ragged data: parts of shapes {each:?} and {:?}", other.shape());
        return Err(PyValueError::new_err(text));
    }
    if parts.iter().all(|part| matches!(part, Host::Numbers { .. })) {
        let shape = [&[parts.len()], &each[..]].concat();
        let numbers = parts.into_iter().flat_map(|part| match part {
            Host::Numbers { values, .. } => values,
            Host::Bytes { .. } => Vec::new(),
        });
        return Ok(Host::Numbers { shape, values: numbers.collect() });
    }
    let fixed = parts.iter().filter(|part| matches!(part, Host::Bytes { .. })).map(Host::dtype);
    let dtype = fixed.reduce(DType::promote).unwrap_or_else(dtype::default_float);
    let (shape, mut all) = ([&[parts.len()], &each[..]].concat(), Vec::new());
    for part in parts {
        if let Host::Bytes { bytes, .. } = part.cast(dtype)? {
            all.try_reserve(bytes.len()).map_err(no_memory)?;
            all.extend(bytes);
        }
    }
    Ok(Host::Bytes { shape, dtype, bytes: all })
}

/// Collects the numbers of a nested list; false when something else than numbers is inside.
fn collect(
    object: &Bound<'_, PyAny>,
    depth: usize,
    shape: &mut Vec<usize>,
    values: &mut Vec<Number>,
) -> PyResult<bool> {
    let is_list = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
    if !is_list {
        let plain = object.is_exact_instance_of::<PyFloat>() || !object.is_instance_of::<PyFloat>();
        let Some(number) = (if plain { Number::of(object)? } else { None }) else {
            return Ok(false);
        };
        if depth < shape.len() {
            return Err(PyValueError::new_err(format!("ragged data: a number at depth {depth}")));
        }
        push(values, number)?;
        return Ok(true);
    }
    if depth == DEEPEST {
        let text = format!("lists nested deeper than {} axes", Shape::MAX_RANK);
        return Err(shape_error(object.py(), text));
    }
    let n = object.len()?;
    match shape.get(depth) {
        Some(&extent) if extent != n => {
            let text =
                format!("ragged data: at depth {depth} one part has {extent} entries, another {n}");
            return Err(PyValueError::new_err(text));
        }
        Some(_) => {}
        None if values.is_empty() => shape.push(n),
        None => return Err(PyValueError::new_err(format!("ragged data: a list at depth {depth}"))),
    }
    for item in object.try_iter()? {
        if !collect(&item?, depth + 1, shape, values)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Memory as `__array_interface__` describes it.
fn array(object: &Bound<'_, PyAny>, interface: &Bound<'_, PyAny>) -> PyResult<Host> {
    let item = |name: &str| interface.get_item(name);
    let shape = item("shape")?.extract::<List<usize>>()?.0;
    let typestr: String = item("typestr")?.extract()?;
    let (dtype, swapped) = element(object, &typestr)?;
    let pair = item("data").and_then(|data| data.cast_into::<PyTuple>()?.get_item(0));
    let address: usize = match pair.and_then(|address| address.extract()) {
        Ok(address) => address,
        Err(_) => return Err(PyTypeError::new_err("the array does not tell where its data is")),
    };
    let strides = match interface.get_item("strides") {
        Ok(strides) => strides.extract::<Option<List<isize>>>()?.map(|list| list.0),
        Err(_) => None,
    };
    let memory = Strided::new(object.py(), address, shape, strides, dtype)?;
    // SAFETY: the exporter states that this memory holds an array of this shape, dtype and strides
    // as long as `object` lives, which is borrowed, and the interpreter's lock is held.
    let mut host = unsafe { memory.read() }?;
    if let Host::Bytes { bytes, .. } = &mut host
        && swapped
    {
        bytes.chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
    }
    Ok(host)
}

/// The dtype of a type string, and whether its bytes are in the other order.
fn element(object: &Bound<'_, PyAny>, typestr: &str) -> PyResult<(DType, bool)> {
    let letters = typestr.get(1..).unwrap_or("");
    let known = |d: &DType| dtype::numpy_names(*d).1.get(1..) == Some(letters);
    let found = match letters.starts_with('V') {
        // Types that NumPy has no letter for are known by the dtype's name.
        true => {
            let name = object.getattr("dtype").and_then(|d| d.getattr("name")?.extract::<String>());
            name.ok().and_then(|name| dtype::by_name(&name))
        }
        false => DType::ALL.iter().copied().find(known),
    };
    let Some(dtype) = found else {
        let name = object.getattr("dtype").map_or_else(|_| typestr.to_owned(), |d| d.to_string());
        let text = format!("cannot make a tensor of an array of dtype {name}");
        return Err(dtype_error(object.py(), text));
    };
    Ok((dtype, typestr.starts_with('>') && dtype.size() > 1))
}

/// An array in memory of others, whose description is possible: every address it reaches is one.
pub(crate) struct Strided {
    pub(crate) start: *const u8,
    pub(crate) shape: Vec<usize>,
    pub(crate) dtype: DType,
    /// In bytes.
    strides: Vec<isize>,
    dense: Vec<isize>,
    /// The length of the elements without gaps.
    pub(crate) bytes: usize,
}

impl Strided {
    /// The array from the address of its first element on; strides count bytes.
    pub(crate) fn new(
        py: Python<'_>,
        start: usize,
        shape: Vec<usize>,
        strides: Option<Vec<isize>>,
        dtype: DType,
    ) -> PyResult<Strided> {
        let possible = Shape::from(&shape[..]);
        let bytes = possible.checked_numel().and_then(|n| n.checked_mul(dtype.size()));
        let Some(bytes) = bytes.filter(|_| possible.is_possible()) else {
            return Err(shape_error(py, format!("an array of shape {possible} is no tensor")));
        };
        let size = dtype.size() as isize;
        let mut dense = vec![size; shape.len()];
        for axis in (1..shape.len()).rev() {
            dense[axis - 1] = dense[axis] * shape[axis].max(1) as isize;
        }
        let strides = strides.unwrap_or_else(|| dense.clone());
        if strides.len() != shape.len() {
            let text = format!("{} strides for an array of {} axes", strides.len(), shape.len());
            return Err(PyBufferError::new_err(text));
        }
        if bytes > 0 {
            // How far the elements reach before and behind the first.
            let (mut before, mut behind) = (0i128, size as i128);
            for (&n, &stride) in shape.iter().zip(&strides) {
                let reach = (n as i128 - 1) * stride as i128;
                before += reach.min(0);
                behind += reach.max(0);
            }
            let inside = |at: i128| (1..=usize::MAX as i128).contains(&at);
            let fits = inside(start as i128 + before) && inside(start as i128 + behind);
            if !fits || behind - before > isize::MAX as i128 {
                let text = format!(
                    "an array of shape {possible} at address {start:#x} with strides of {strides:?} \
                     bytes reaches beyond memory"
                );
                return Err(PyBufferError::new_err(text));
            }
        }
        Ok(Strided { start: start as *const u8, shape, dtype, strides, dense, bytes })
    }

    /// Whether the elements follow one another in row-major order.
    pub(crate) fn is_dense(&self) -> bool {
        let axes = self.shape.iter().zip(&self.strides).zip(&self.dense);
        axes.into_iter().all(|((&n, stride), dense)| n <= 1 || stride == dense)
    }

    /// The elements in row-major order, truth values as 0 and 1.
    ///
    /// # Safety
    /// Every element that shape and strides reach from `start` lies in readable memory.
    pub(crate) unsafe fn read(self) -> PyResult<Host> {
        let mut bytes = room(self.bytes)?;
        if self.bytes > 0 {
            // SAFETY: as the caller promises.
            unsafe { self.gather(&mut bytes) };
        }
        if self.dtype == DType::Bool {
            bytes.iter_mut().for_each(|b| *b = u8::from(*b != 0));
        }
        Ok(Host::Bytes { shape: self.shape, dtype: self.dtype, bytes })
    }

    /// # Safety
    /// As [`Strided::read`]; there is an element.
    unsafe fn gather(&self, out: &mut Vec<u8>) {
        let Strided { start, shape, strides, dense, .. } = self;
        // The last axes that lie densely are copied at once.
        let mut inner = shape.len();
        while inner > 0 && (shape[inner - 1] == 1 || strides[inner - 1] == dense[inner - 1]) {
            inner -= 1;
        }
        let run = shape[inner..].iter().product::<usize>() * self.dtype.size();
        let mut index = vec![0usize; inner];
        let mut offset = 0isize;
        loop {
            // SAFETY: the element at `index` and those densely behind it are part of the array.
            out.extend_from_slice(unsafe { std::slice::from_raw_parts(start.offset(offset), run) });
            let mut axis = inner;
            loop {
                if axis == 0 {
                    return;
                }
                axis -= 1;
                index[axis] += 1;
                if index[axis] < shape[axis] {
                    offset += strides[axis];
                    break;
                }
                offset -= strides[axis] * (shape[axis] - 1) as isize;
                index[axis] = 0;
            }
        }
    }
}
