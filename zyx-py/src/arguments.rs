//! What Python passes, one type per annotation of the stub.
//!
//! An argument is read from Python in two steps. Extraction looks at the object alone; a `TypeError`
//! names the parameter then. [`Argument::ready`] makes of it what the Rust method takes, on the
//! device of the call: numbers stay numbers and adapt to the tensor beside them, arrays and lists
//! become tensors there.

use crate::data::{self, Host};
use crate::device::DeviceArg;
use crate::dtype::default_float;
use crate::error::caught;
use crate::lists::{RawBytes, each};
use crate::tensor::PyTensor;
use pyo3::exceptions::{PyNotImplementedError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyString, PyTuple};
use zyx::internals::BinaryOp;
use zyx::{
    DType, Device, FftNorm, Float8, Indexing, Interpolation, MatrixNorm, PadMode, Param, Reduction,
    ScatterReduce, Shape, Tensor,
};

/// Something a parameter can be given.
pub(crate) trait Argument {
    /// What the Rust method takes.
    type Ready;
    fn ready(self, here: &Device) -> PyResult<Self::Ready>;
}

/// Something whose meaning no device matters for.
pub(crate) trait Plain {
    /// What the Rust method takes.
    type Plain;
    fn plain(self) -> PyResult<Self::Plain>;
}

impl<T: Plain> Argument for T {
    type Ready = T::Plain;
    fn ready(self, _: &Device) -> PyResult<T::Plain> {
        self.plain()
    }
}

/// Of two names of one parameter, the one that was given.
pub(crate) fn either<T>(
    method: &str,
    first: &str,
    second: &str,
    a: Option<T>,
    b: Option<T>,
) -> PyResult<Option<T>> {
    match (a, b) {
        (Some(_), Some(_)) => {
            let text = format!("{method}() got both '{first}' and '{second}', which are one");
            Err(PyTypeError::new_err(text))
        }
        (a, b) => Ok(a.or(b)),
    }
}

/// A parameter without a default.
pub(crate) fn required<T>(method: &str, name: &str, x: Option<T>) -> PyResult<T> {
    x.ok_or_else(|| PyTypeError::new_err(format!("{method}() missing required argument: '{name}'")))
}

impl Plain for bool {
    type Plain = bool;
    fn plain(self) -> PyResult<bool> {
        Ok(self)
    }
}

impl Plain for String {
    type Plain = String;
    fn plain(self) -> PyResult<String> {
        Ok(self)
    }
}

/// The result of an object's `__index__`, if its class has one.
pub(crate) fn index<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    match object.get_type().hasattr("__index__")? {
        true => object.call_method0("__index__").map(Some),
        false => Ok(None),
    }
}

/// The integer an object is: floats are none, NumPy's integers are.
fn integer(object: &Bound<'_, PyAny>) -> PyResult<i128> {
    if object.is_instance_of::<PyFloat>() || object.is_instance_of::<PyString>() {
        let kind = object.get_type().name()?;
        return Err(PyTypeError::new_err(format!("'{kind}' object is not an integer")));
    }
    let Some(index) = index(object)? else {
        let kind = object.get_type().name()?;
        return Err(PyTypeError::new_err(format!("'{kind}' object is not an integer")));
    };
    // Beyond 64 bits the ends stand for everything.
    match index.extract::<i64>() {
        Ok(x) => Ok(i128::from(x)),
        Err(_) if index.lt(0)? => Ok(i128::from(i64::MIN) - 1),
        Err(_) => Ok(i128::from(index.extract::<u64>().unwrap_or(u64::MAX))),
    }
}

/// Plain numbers: a wrapper, what it holds, and how an integer becomes one.
macro_rules! integers {
    ($($(#[$doc:meta])* $name:ident $type:ty, $from:expr, $check:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name(pub(crate) $type);

        impl $name {
            pub(crate) fn from_literal(x: $type) -> $name {
                $name(x)
            }
        }

        impl FromPyObject<'_, '_> for $name {
            type Error = PyErr;
            fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<$name> {
                let from: fn(i128) -> PyResult<$type> = $from;
                $check(&object)?;
                if let Ok(x) = object.cast::<PyInt>() && let Ok(x) = x.extract::<i64>() {
                    return from(i128::from(x)).map($name);
                }
                from(integer(&object)?).map($name)
            }
        }

        impl Plain for $name {
            type Plain = $type;
            fn plain(self) -> PyResult<$type> {
                Ok(self.0)
            }
        }
    )*};
}

fn size(x: i128) -> PyResult<usize> {
    match usize::try_from(x) {
        Ok(x) => Ok(x),
        Err(_) if x < 0 => Err(PyValueError::new_err(format!("{x} is negative"))),
        Err(_) => Err(PyOverflowError::new_err("the number is too large")),
    }
}

/// Refuses what Python counts among the integers, and is no axis.
fn is_axis(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let what = match () {
        () if object.is_instance_of::<PyBool>() => "a truth value",
        () if object.is_instance_of::<PyTensor>() => {
            "a tensor; functions of two tensors are `maximum`, `minimum`, .."
        }
        () => return Ok(()),
    };
    Err(PyTypeError::new_err(format!("an axis (or offset) is an integer, not {what}")))
}

fn any(_: &Bound<'_, PyAny>) -> PyResult<()> {
    Ok(())
}

fn axis(x: i128) -> PyResult<isize> {
    // What no tensor has as an axis is refused by the method, which names it.
    Ok(x.clamp(isize::MIN as i128, isize::MAX as i128) as isize)
}

integers! {
    /// A number of elements.
    Size usize, size, any;
    /// An axis; negative ones count from the end.
    Axis isize, axis, is_axis;
    /// Any integer.
    Int i64, |x| i64::try_from(x).map_err(|_| PyOverflowError::new_err("the integer is too large")), any;
}

/// A real number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Float(pub(crate) f64);

impl Float {
    pub(crate) fn from_literal(x: f64) -> Float {
        Float(x)
    }
}

impl FromPyObject<'_, '_> for Float {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Float> {
        object.extract::<f64>().map(Float)
    }
}

impl Plain for Float {
    type Plain = f64;
    fn plain(self) -> PyResult<f64> {
        Ok(self.0)
    }
}

/// A tuple or list of `T`, or a single `T`.
fn several<T>(object: &Bound<'_, PyAny>) -> PyResult<Vec<T>>
where
    T: for<'a, 'py> FromPyObject<'a, 'py, Error = PyErr>,
{
    if object.is_instance_of::<PyInt>() || object.is_instance_of::<PyFloat>() {
        return Ok(vec![object.extract()?]);
    }
    if let Ok(tuple) = object.cast::<PyTuple>() {
        // Mostly shapes, which are short.
        return tuple.iter_borrowed().map(|item| item.extract()).collect();
    }
    if object.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("expected integers, not a string"));
    }
    match object.try_iter() {
        Ok(_) => each(object, |item| item.extract()),
        Err(_) => Ok(vec![object.extract()?]),
    }
}

/// Lists of numbers: given as a sequence, as one number, or as further positional arguments.
macro_rules! sequences {
    ($($(#[$doc:meta])* $name:ident $item:ident $type:ty => $ready:ty, $make:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub(crate) struct $name(pub(crate) Vec<$type>);

        impl FromPyObject<'_, '_> for $name {
            type Error = PyErr;
            fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<$name> {
                let items: Vec<$item> = several(&object)?;
                Ok($name(items.into_iter().map(|x| x.0).collect()))
            }
        }

        #[allow(dead_code, reason = "which of them a table uses is the table's matter")]
        impl $name {
            /// From positional arguments, which may be one sequence, or from the keyword.
            pub(crate) fn collect(
                method: &str,
                name: &str,
                rest: &Bound<'_, PyTuple>,
                keyword: Option<$name>,
            ) -> PyResult<$ready> {
                let make: fn(Vec<$type>) -> $ready = $make;
                let given = match (rest.len(), keyword) {
                    (_, None) if rest.len() == 1 => rest.get_item(0)?.extract::<$name>()?,
                    (_, None) => rest.extract::<$name>()?,
                    (0, Some(given)) => given,
                    (_, Some(_)) => {
                        let text = format!("{method}() got multiple values for '{name}'");
                        return Err(PyTypeError::new_err(text));
                    }
                };
                Ok(make(given.0))
            }
        }

        impl Plain for $name {
            type Plain = $ready;
            fn plain(self) -> PyResult<$ready> {
                let make: fn(Vec<$type>) -> $ready = $make;
                Ok(make(self.0))
            }
        }
    )*};
}

sequences! {
    /// Extents of axes.
    ShapeArg Size usize => Shape, Shape::from;
    /// Numbers of elements.
    Sizes Size usize => Vec<usize>, |x| x;
    /// Any integers.
    Ints Int i64 => Vec<i64>, |x| x;
    /// Real numbers.
    Floats Float f64 => Vec<f64>, |x| x;
    /// AxesArg in an order.
    AxisList Axis isize => Vec<isize>, |x| x;
}

impl AxisList {
    pub(crate) fn from_literal((first, second): (isize, isize)) -> AxisList {
        AxisList(vec![first, second])
    }
}

/// How many, or a list of numbers: which of both it is changes what it means.
#[derive(Clone, Debug)]
pub(crate) enum Sections {
    /// A number.
    Number(usize),
    /// A list.
    Each(Vec<usize>),
}

impl FromPyObject<'_, '_> for Sections {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Sections> {
        match object.is_instance_of::<PyInt>() {
            true => object.extract::<Size>().map(|x| Sections::Number(x.0)),
            false => object.extract::<Sizes>().map(|x| Sections::Each(x.0)),
        }
    }
}

impl Plain for Sections {
    type Plain = Sections;
    fn plain(self) -> PyResult<Sections> {
        Ok(self)
    }
}

/// Numbers between 0 and 1, and whether there was no list around the only one.
#[derive(Clone, Debug)]
pub(crate) struct Quantiles {
    pub(crate) q: Vec<f64>,
    pub(crate) single: bool,
}

impl FromPyObject<'_, '_> for Quantiles {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Quantiles> {
        if let Ok(tensor) = object.cast::<PyTensor>() {
            let tensor = tensor.get().tensor();
            if tensor.is_tracked() {
                let text = "quantile: the operand `q` has no gradient; use `q.detach()`";
                return Err(PyNotImplementedError::new_err(text));
            }
            let q = caught(object.py(), || tensor.cast(DType::F64).to_vec::<f64>())?;
            return Ok(Quantiles { q, single: tensor.rank() == 0 });
        }
        let q = object.extract::<Floats>()?.0;
        Ok(Quantiles { q, single: object.try_iter().is_err() })
    }
}

impl Plain for Quantiles {
    type Plain = Quantiles;
    fn plain(self) -> PyResult<Quantiles> {
        Ok(self)
    }
}

/// One axis, several, or all.
#[derive(Clone, Debug, Default)]
pub(crate) struct AxesArg(Option<Vec<isize>>);

impl AxesArg {
    pub(crate) fn from_literal(axis: isize) -> AxesArg {
        AxesArg(Some(vec![axis]))
    }

    /// From positional arguments, which may be one sequence, or from the keyword.
    pub(crate) fn collect(
        method: &str,
        name: &str,
        rest: &Bound<'_, PyTuple>,
        keyword: Option<AxesArg>,
    ) -> PyResult<AxesArg> {
        if rest.is_empty() {
            return Ok(keyword.unwrap_or_default());
        }
        let keyword = keyword.and_then(|axes| axes.0).map(AxisList);
        AxisList::collect(method, name, rest, keyword).map(|axes| AxesArg(Some(axes)))
    }
}

impl FromPyObject<'_, '_> for AxesArg {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<AxesArg> {
        object.extract::<AxisList>().map(|axes| AxesArg(Some(axes.0)))
    }
}

impl Plain for AxesArg {
    type Plain = AxesArg;
    fn plain(self) -> PyResult<AxesArg> {
        Ok(self)
    }
}

impl zyx::Axes for AxesArg {
    fn mask(&self, rank: usize) -> Result<u16, String> {
        match &self.0 {
            None => (..).mask(rank),
            Some(axes) => (&axes[..]).mask(rank),
        }
    }
}

/// A number for each of `N` axes; a single one is for all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Each<const N: usize>([usize; N]);

#[allow(dead_code, reason = "which of them a table uses is the table's matter")]
pub(crate) type One = Each<1>;
pub(crate) type Pair = Each<2>;
#[allow(dead_code, reason = "which of them a table uses is the table's matter")]
pub(crate) type Triple = Each<3>;

impl<const N: usize> Each<N> {
    pub(crate) fn from_literal(x: usize) -> Each<N> {
        Each([x; N])
    }
}

impl<const N: usize> FromPyObject<'_, '_> for Each<N> {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Each<N>> {
        let items = object.extract::<Sizes>()?.0;
        match items[..] {
            [x] => Ok(Each([x; N])),
            _ => match <[usize; N]>::try_from(items) {
                Ok(items) => Ok(Each(items)),
                Err(items) => {
                    let text = format!("expected {N} numbers or one, not {}", items.len());
                    Err(PyValueError::new_err(text))
                }
            },
        }
    }
}

impl<const N: usize> Argument for Each<N> {
    type Ready = [usize; N];
    fn ready(self, _: &Device) -> PyResult<[usize; N]> {
        Ok(self.0)
    }
}

/// What a convolution adds on both sides of each axis: numbers, or as many as keep the extents.
#[derive(Clone, Debug)]
pub(crate) enum Padding {
    /// `"same"`.
    Same,
    /// A number for each axis, or one for all; `"valid"` is none.
    Each(Vec<usize>),
}

impl Padding {
    pub(crate) fn from_literal(x: usize) -> Padding {
        Padding::Each(vec![x])
    }

    /// What the options of a convolution over `N` axes say.
    pub(crate) fn each<const N: usize>(&self) -> zyx::Result<[usize; N]> {
        let given = match self {
            Padding::Same => return Ok([0; N]),
            Padding::Each(given) => given,
        };
        match given[..] {
            [x] => Ok([x; N]),
            _ => <[usize; N]>::try_from(&given[..]).map_err(|_| {
                let reason = format!("expected {N} numbers or one, not {}", given.len());
                crate::create::refuse("padding", reason)
            }),
        }
    }
}

impl FromPyObject<'_, '_> for Padding {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Padding> {
        if !object.is_instance_of::<PyString>() {
            return object.extract::<Sizes>().map(|given| Padding::Each(given.0));
        }
        match object.extract::<String>()?.as_str() {
            "same" => Ok(Padding::Same),
            "valid" => Ok(Padding::Each(vec![0])),
            name => {
                let text = format!("'{name}' is no padding; there are 'same', 'valid' and numbers");
                Err(PyValueError::new_err(text))
            }
        }
    }
}

impl Plain for Padding {
    type Plain = Padding;
    fn plain(self) -> PyResult<Padding> {
        Ok(self)
    }
}

/// How much is added before and behind each axis: pairs.
#[derive(Clone, Debug)]
pub(crate) struct Pads(Vec<(usize, usize)>);

impl FromPyObject<'_, '_> for Pads {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Pads> {
        let pair = |pair: Bound<'_, PyAny>| {
            let (before, after) = pair.extract::<(Size, Size)>()?;
            Ok((before.0, after.0))
        };
        each(&object, pair).map(Pads)
    }
}

impl Plain for Pads {
    type Plain = Vec<(usize, usize)>;
    fn plain(self) -> PyResult<Vec<(usize, usize)>> {
        Ok(self.0)
    }
}

/// A number of Python.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Bool(bool),
    Int(i64),
    Unsigned(u64),
    Float(f64),
}

impl Number {
    /// The number an object is, if it is one of Python's.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Number>> {
        if let Ok(x) = object.cast::<PyFloat>() {
            return Ok(Some(Number::Float(x.extract()?)));
        }
        if let Ok(x) = object.cast::<PyBool>() {
            return Ok(Some(Number::Bool(x.is_true())));
        }
        if object.is_instance_of::<PyInt>() {
            return match object.extract::<i64>() {
                Ok(x) => Ok(Some(Number::Int(x))),
                Err(_) => match object.extract::<u64>() {
                    Ok(x) => Ok(Some(Number::Unsigned(x))),
                    Err(_) => Err(PyOverflowError::new_err("the integer needs more than 64 bits")),
                },
            };
        }
        Ok(None)
    }

    /// The dtype a tensor of this number has by default.
    pub(crate) fn dtype(self) -> DType {
        match self {
            Number::Bool(_) => DType::Bool,
            Number::Int(_) => DType::I64,
            Number::Unsigned(_) => DType::U64,
            Number::Float(_) => default_float(),
        }
    }

    /// The nearest `f64`.
    pub(crate) fn float(self) -> f64 {
        match self {
            Number::Float(x) => x,
            Number::Int(x) => x as f64,
            Number::Unsigned(x) => x as f64,
            Number::Bool(x) => f64::from(u8::from(x)),
        }
    }

    /// Everywhere in a tensor of this shape.
    pub(crate) fn full(self, shape: Shape, dtype: Option<DType>, device: &Device) -> Tensor {
        let wide = match self {
            Number::Bool(x) => Tensor::full(shape, x, device),
            Number::Int(x) => Tensor::full(shape, x, device),
            Number::Unsigned(x) => Tensor::full(shape, x, device),
            Number::Float(x) => Tensor::full(shape, x, device),
        };
        wide.cast(dtype.unwrap_or(self.dtype()))
    }
}

impl zyx::Operand for Number {
    fn resolve(&self, like: &Tensor) -> Tensor {
        match self {
            Number::Bool(x) => x.resolve(like),
            Number::Int(x) => x.resolve(like),
            Number::Unsigned(x) => x.resolve(like),
            Number::Float(x) => x.resolve(like),
        }
    }

    fn is_number(&self) -> bool {
        true
    }
}

impl FromPyObject<'_, '_> for Number {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Number> {
        if let Some(number) = Number::of(&object)? {
            return Ok(number);
        }
        // NumPy's scalars and tensors of one element.
        object.extract::<f64>().map(Number::Float)
    }
}

impl Plain for Number {
    type Plain = Number;
    fn plain(self) -> PyResult<Number> {
        Ok(self)
    }
}

/// A tensor, or an array or list that becomes one.
#[derive(Debug)]
pub(crate) enum TensorArg {
    Tensor(Tensor),
    Host(Host),
}

impl FromPyObject<'_, '_> for TensorArg {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<TensorArg> {
        match object.cast::<PyTensor>() {
            Ok(tensor) => Ok(TensorArg::Tensor(tensor.get().tensor())),
            Err(_) => data::read(&object).map(TensorArg::Host),
        }
    }
}

impl Argument for TensorArg {
    type Ready = Tensor;
    fn ready(self, here: &Device) -> PyResult<Tensor> {
        match self {
            TensorArg::Tensor(tensor) => Ok(tensor),
            TensorArg::Host(host) => host.tensor(None, here),
        }
    }
}

/// Several tensors.
#[derive(Debug)]
pub(crate) struct TensorList(Vec<TensorArg>);

/// Several tensors, ready to be lent.
pub(crate) struct Tensors(pub(crate) Vec<Tensor>);

impl Tensors {
    pub(crate) fn list(&self) -> Vec<&Tensor> {
        self.0.iter().collect()
    }
}

impl TensorList {
    /// From positional arguments, which may be one list, or from the keyword.
    pub(crate) fn collect(
        method: &str,
        name: &str,
        rest: &Bound<'_, PyTuple>,
        keyword: Option<TensorList>,
    ) -> PyResult<Tensors> {
        let is_list =
            |x: &Bound<'_, PyAny>| x.is_instance_of::<PyList>() || x.is_instance_of::<PyTuple>();
        let given = match (rest.len(), keyword) {
            (1, None) if is_list(&rest.get_item(0)?) => {
                rest.get_item(0)?.extract::<TensorList>()?
            }
            (_, None) => rest.extract::<TensorList>()?,
            (0, Some(given)) => given,
            (_, Some(_)) => {
                let text = format!("{method}() got multiple values for '{name}'");
                return Err(PyTypeError::new_err(text));
            }
        };
        given.ready(&default_device()?)
    }
}

impl FromPyObject<'_, '_> for TensorList {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<TensorList> {
        each(&object, |item| item.extract()).map(TensorList)
    }
}

impl Argument for TensorList {
    type Ready = Tensors;
    fn ready(self, here: &Device) -> PyResult<Tensors> {
        let items = self.0.into_iter().map(|item| item.ready(here));
        items.collect::<PyResult<_>>().map(Tensors)
    }
}

/// The other side of a binary method.
#[derive(Debug)]
pub(crate) enum OperandArg {
    Number(Number),
    Tensor(TensorArg),
}

/// An operand on the device of the call.
pub(crate) enum Ready {
    Number(Number),
    Tensor(Tensor),
}

impl zyx::Operand for Ready {
    fn resolve(&self, like: &Tensor) -> Tensor {
        match self {
            Ready::Number(x) => x.resolve(like),
            Ready::Tensor(x) => x.clone(),
        }
    }

    fn is_number(&self) -> bool {
        matches!(self, Ready::Number(_))
    }
}

impl FromPyObject<'_, '_> for OperandArg {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<OperandArg> {
        if let Ok(tensor) = object.cast::<PyTensor>() {
            return Ok(OperandArg::Tensor(TensorArg::Tensor(tensor.get().tensor())));
        }
        match Number::of(&object)? {
            Some(number) => Ok(OperandArg::Number(number)),
            None => object.extract().map(OperandArg::Tensor),
        }
    }
}

impl Argument for OperandArg {
    type Ready = Ready;
    fn ready(self, here: &Device) -> PyResult<Ready> {
        match self {
            OperandArg::Number(number) => Ok(Ready::Number(number)),
            OperandArg::Tensor(tensor) => tensor.ready(here).map(Ready::Tensor),
        }
    }
}

/// Arguments that are one of a few words.
macro_rules! choices {
    ($($(#[$doc:meta])* $name:ident $type:ident { $($word:literal $variant:ident)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name(pub(crate) $type);

        impl $name {
            pub(crate) fn parse(word: &str) -> PyResult<$name> {
                match word {
                    $($word => Ok($name($type::$variant)),)*
                    _ => {
                        let all = [$($word),*].join("', '");
                        let kind = stringify!($type).to_lowercase();
                        let text = format!("'{word}' is not a {kind}; there are '{all}'");
                        Err(PyValueError::new_err(text))
                    }
                }
            }
        }

        impl FromPyObject<'_, '_> for $name {
            type Error = PyErr;
            fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<$name> {
                $name::parse(&object.extract::<String>()?)
            }
        }

        impl Plain for $name {
            type Plain = $type;
            fn plain(self) -> PyResult<$type> {
                Ok(self.0)
            }
        }
    )*};
}

choices! {
    /// How the terms of a loss become one number.
    ReductionArg Reduction { "mean" Mean "sum" Sum "none" None }
    /// The order of the axes of a grid.
    IndexingArg Indexing { "ij" Ij "xy" Xy }
    /// How values between pixels are found.
    InterpolationArg Interpolation {
        "nearest" Nearest "nearest-exact" NearestExact "linear" Linear "bilinear" Linear
        "trilinear" Linear "cubic" Cubic "bicubic" Cubic "area" Area
    }
    /// Where a Fourier transform is scaled.
    FftNormArg FftNorm { "backward" Backward "ortho" Ortho "forward" Forward }
    /// Norms of matrices.
    MatrixNormArg MatrixNorm {
        "frobenius" Frobenius "fro" Frobenius "nuclear" Nuclear "nuc" Nuclear
        "spectral" Spectral "columns" Columns "rows" Rows
    }
    /// The monoids that running combinations have.
    ScanOpArg BinaryOp {
        "add" Add "mul" Mul "max" Max "min" Min "and" And "or" Or "xor" Xor
        "logaddexp" LogAddExp
    }
    /// Floats of eight bits.
    Float8Arg Float8 { "e4m3" E4M3 "e5m2" E5M2 }
    /// What stands around the edges.
    PadModeArg PadMode {
        "zeros" Zeros "constant" Zeros "reflect" Reflect "replicate" Replicate "edge" Replicate
        "circular" Circular "wrap" Circular
    }
    /// How what is placed in one position is joined.
    ScatterReduceArg ScatterReduce { "sum" Sum "prod" Prod "mean" Mean "amax" Amax "amin" Amin }
}

/// Where a call makes its tensors when it names no device.
pub(crate) fn default_device() -> PyResult<Device> {
    DeviceArg::default().open()
}

impl Plain for RawBytes {
    type Plain = Vec<u8>;
    fn plain(self) -> PyResult<Vec<u8>> {
        Ok(self.0)
    }
}

/// Two decay rates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Betas([f64; 2]);

impl Betas {
    pub(crate) fn from_literal((first, second): (f64, f64)) -> Betas {
        Betas([first, second])
    }
}

impl FromPyObject<'_, '_> for Betas {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Betas> {
        object.extract::<(f64, f64)>().map(Betas::from_literal)
    }
}

impl Argument for Betas {
    type Ready = [f64; 2];
    fn ready(self, _: &Device) -> PyResult<[f64; 2]> {
        Ok(self.0)
    }
}

/// Parameters, as `model.parameters()` gives them.
#[derive(Clone, Debug)]
pub(crate) struct ParametersArg(Vec<Param>);

impl FromPyObject<'_, '_> for ParametersArg {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<ParametersArg> {
        crate::tensor::parameters(&object).map(ParametersArg)
    }
}

impl Plain for ParametersArg {
    type Plain = Vec<Param>;
    fn plain(self) -> PyResult<Vec<Param>> {
        Ok(self.0)
    }
}
