//! Layers of Rust as Python sees them: an object that is called, with parameters by name.
//!
//! The classes of `zyx.nn` hold one each; what makes them a module (names, modes, state dicts) is
//! written in Python, where users derive their own modules from the same base class. The functions
//! that make layers come from the stub `nn/__init__.pyi`.

#![allow(
    clippy::too_many_arguments,
    clippy::needless_update,
    reason = "constructors of Python take many options, those of Rust may get more"
)]

use crate::arguments::*;
use crate::create::refuse;
use crate::device::DeviceArg;
use crate::dtype::{DTypeArg, default_float};
use crate::error::{caught, detached};
use crate::outcome::Give;
use crate::tensor::{PyParameter, PyTensor, parameter};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::ops::RangeInclusive;
use std::sync::Arc;
use zyx::nn::{self, Forward, Init, Module, RecurrentOptions};
use zyx::*;

/// The computation of a layer. Inputs may be left out.
type Call = dyn Fn(&[Option<Tensor>]) -> Result<Vec<Tensor>> + Send + Sync;

/// The computation of a layer of attention that remembers.
type Remember = dyn Fn(&Tensor, &nn::KvCache) -> Result<Tensor> + Send + Sync;

/// A layer of Rust.
#[pyclass(name = "Layer", module = "zyx._core", frozen)]
pub(crate) struct PyLayer {
    module: Arc<dyn Module + Send + Sync>,
    call: Box<Call>,
    inputs: RangeInclusive<usize>,
    remember: Option<Box<Remember>>,
}

/// Keys and values of the words so far, of one layer of attention.
#[pyclass(name = "KvCache", module = "zyx._core", frozen)]
pub(crate) struct PyKvCache(nn::KvCache);

/// A layer with another signature than one tensor to one.
struct Many(PyLayer);

/// What a constructor makes.
trait IntoLayer {
    fn into_layer(self) -> PyLayer;
}

impl<L: Forward + Send + Sync + 'static> IntoLayer for L {
    fn into_layer(self) -> PyLayer {
        many(self, 1..=1, |layer, x| Ok(vec![layer.forward(at(x, 0)?)?])).0
    }
}

impl IntoLayer for Many {
    fn into_layer(self) -> PyLayer {
        self.0
    }
}

fn many<L: Module + Send + Sync + 'static>(
    layer: L,
    inputs: RangeInclusive<usize>,
    call: impl Fn(&L, &[Option<Tensor>]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
) -> Many {
    let module = Arc::new(layer);
    let layer = module.clone();
    Many(PyLayer { module, call: Box::new(move |x| call(&layer, x)), inputs, remember: None })
}

/// Attention of queries, keys and values, or of the next words and a cache.
fn attention(layer: nn::MultiheadAttention) -> Many {
    let layer = Arc::new(layer);
    let (module, cached) = (layer.clone(), layer.clone());
    Many(PyLayer {
        module,
        call: Box::new(move |x| {
            layer.attend(at(x, 0)?, at(x, 1)?, at(x, 2)?, mask(x, 3)?).map(pair)
        }),
        inputs: 3..=6,
        remember: Some(Box::new(move |x, cache| cached.attend_cached(x, cache))),
    })
}

fn two<L: Module + Send + Sync + 'static>(
    layer: L,
    call: fn(&L, &Tensor, &Tensor) -> Result<Tensor>,
) -> Many {
    many(layer, 2..=2, move |layer, x| Ok(vec![call(layer, at(x, 0)?, at(x, 1)?)?]))
}

fn three<L: Module + Send + Sync + 'static>(
    layer: L,
    call: fn(&L, &Tensor, &Tensor, &Tensor) -> Result<Tensor>,
) -> Many {
    many(layer, 3..=3, move |layer, x| Ok(vec![call(layer, at(x, 0)?, at(x, 1)?, at(x, 2)?)?]))
}

fn loss<L: nn::Loss + Send + Sync + 'static>(layer: L) -> Many {
    two(layer, |layer, x, y| layer.loss(x, y))
}

fn pair((a, b): (Tensor, Tensor)) -> Vec<Tensor> {
    vec![a, b]
}

/// Something without parameters that is no module in Rust.
struct Bare<T>(T);

impl<T> Module for Bare<T> {
    fn visit(&self, _: &mut nn::Path, _: &mut dyn nn::Visitor) {}
}

/// An input that may be left out.
fn given(inputs: &[Option<Tensor>], i: usize) -> Option<&Tensor> {
    inputs.get(i).and_then(Option::as_ref)
}

/// An input that may not.
fn at(inputs: &[Option<Tensor>], i: usize) -> Result<&Tensor> {
    given(inputs, i).ok_or_else(|| refuse("forward", format!("input {i} is missing")))
}

/// An input that is a number.
fn number(inputs: &[Option<Tensor>], i: usize) -> Result<Option<usize>> {
    let found = given(inputs, i).map(|x| x.cast(DType::I64).item::<i64>()).transpose()?;
    Ok(found.map(|x| usize::try_from(x).unwrap_or(0)))
}

/// Three inputs as what is hidden: causal, mask, padding.
fn mask(inputs: &[Option<Tensor>], i: usize) -> Result<nn::AttentionMask<'_>> {
    let causal = number(inputs, i)?.is_some_and(|x| x != 0);
    Ok(nn::AttentionMask { causal, mask: given(inputs, i + 1), padding: given(inputs, i + 2) })
}

/// Convolutions that add elements of their own.
trait Surround: Sized {
    fn surrounded(self, padding: &Padding, mode: PadMode) -> Result<Self>;
}

macro_rules! surround {
    ($($name:ident)*) => {$(
        impl Surround for nn::$name {
            fn surrounded(self, padding: &Padding, mode: PadMode) -> Result<nn::$name> {
                let layer = match mode {
                    PadMode::Zeros => self,
                    mode => self.with_padding_mode(mode),
                };
                match padding {
                    Padding::Same => layer.with_same_padding(),
                    Padding::Each(_) => Ok(layer),
                }
            }
        }
    )*};
}

surround!(Conv1d Conv2d Conv3d);

/// What a transposed convolution can add.
fn only_zeros(mode: PadMode) -> Result<()> {
    match mode {
        PadMode::Zeros => Ok(()),
        _ => Err(refuse("padding_mode", "a transposed convolution adds zeros".to_owned())),
    }
}

/// How far the next number is from 1 in what a normalisation computes with.
fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON,
        _ => f32::EPSILON.into(),
    }
}

fn bag_mode(name: &str) -> Result<nn::BagMode> {
    match name {
        "mean" => Ok(nn::BagMode::Mean),
        "sum" => Ok(nn::BagMode::Sum),
        "max" => Ok(nn::BagMode::Max),
        _ => Err(refuse("EmbeddingBag", format!("'{name}' is not 'mean', 'sum' or 'max'"))),
    }
}

/// The function that makes recurrent layers with this activation.
fn nonlinear(
    name: &str,
) -> Result<fn(usize, usize, RecurrentOptions, &mut Init) -> Result<nn::Rnn>> {
    match name {
        "tanh" => Ok(nn::Rnn::new),
        "relu" => Ok(nn::Rnn::relu),
        _ => Err(refuse("RNN", format!("'{name}' is not 'tanh' or 'relu'"))),
    }
}

fn activation_of(name: &str) -> Result<nn::TransformerActivation> {
    match name {
        "relu" => Ok(nn::TransformerActivation::Relu),
        "gelu" => Ok(nn::TransformerActivation::Gelu),
        "gelu_tanh" => Ok(nn::TransformerActivation::GeluTanh),
        _ => Err(refuse("activation", format!("'{name}' is not 'relu', 'gelu' or 'gelu_tanh'"))),
    }
}

impl PyLayer {
    fn make(layer: impl IntoLayer) -> PyResult<PyLayer> {
        Ok(layer.into_layer())
    }
}

#[pymethods]
impl PyLayer {
    #[pyo3(signature = (*inputs))]
    fn __call__(&self, py: Python<'_>, inputs: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        if !self.inputs.contains(&inputs.len()) {
            let text = format!("expected {:?} inputs, not {}", self.inputs, inputs.len());
            return Err(PyTypeError::new_err(text));
        }
        let device = match self.module.named_parameters().first() {
            Some((_, param)) => param.device(),
            None => default_device()?,
        };
        let one = |x: Bound<'_, PyAny>| -> PyResult<Option<Tensor>> {
            if x.is_none() { Ok(None) } else { x.extract::<TensorArg>()?.ready(&device).map(Some) }
        };
        let inputs = inputs.iter().map(one).collect::<PyResult<Vec<_>>>()?;
        let mut found = detached(py, || (self.call)(&inputs))?;
        match (found.pop(), found.is_empty()) {
            (Some(only), true) => only.give(py),
            (last, _) => {
                found.extend(last);
                found.give(py)
            }
        }
    }

    /// The next words of a text of which the cache remembers those before, and now these.
    fn attend_cached(
        &self,
        py: Python<'_>,
        x: TensorArg,
        cache: &Bound<'_, PyKvCache>,
    ) -> PyResult<Py<PyAny>> {
        let Some(remember) = &self.remember else {
            return Err(PyTypeError::new_err("the layer is no attention"));
        };
        let (x, cache) = (x.ready(&default_device()?)?, cache.get());
        detached(py, || remember(&x, &cache.0))?.give(py)
    }

    /// Name and parameter, for each.
    fn named_parameters(&self, py: Python<'_>) -> PyResult<Vec<(String, Py<PyParameter>)>> {
        let all = self.module.named_parameters().into_iter();
        all.map(|(name, param)| Ok((name, parameter(py, param)?))).collect()
    }

    /// Makes a parameter one place with another.
    fn tie(&self, py: Python<'_>, name: &str, other: &Bound<'_, PyTensor>) -> PyResult<()> {
        let own = self.module.named_parameters().into_iter().find(|(known, _)| known == name);
        match (own, other.get().param()) {
            (Some((_, own)), Some(other)) => caught(py, || own.tie(&other)),
            _ => Err(PyTypeError::new_err(format!("`{name}` is no parameter, or is tied to none"))),
        }
    }

    /// Switches between training and evaluation.
    fn train(&self, mode: bool) {
        if mode { self.module.train() } else { self.module.eval() }
    }
}

#[pymethods]
impl PyKvCache {
    /// For texts of up to `capacity` words.
    #[new]
    fn make(capacity: Size) -> PyKvCache {
        PyKvCache(nn::KvCache::new(capacity.0))
    }

    /// Keys and values of further words put behind those before, and what the queries find among
    /// all up to their own.
    fn attend(
        &self,
        py: Python<'_>,
        q: TensorArg,
        k: TensorArg,
        v: TensorArg,
    ) -> PyResult<Py<PyAny>> {
        let device = default_device()?;
        let (q, k, v) = (q.ready(&device)?, k.ready(&device)?, v.ready(&device)?);
        detached(py, || self.0.attend(&q, &k, &v))?.give(py)
    }

    /// The keys and values, to be computed along with the model's result by one `realize_all`.
    fn tensors(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        detached(py, || Ok(self.0.tensors()))?.give(py)
    }

    /// Forgets all words.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            self.0.clear();
            Ok(())
        })
    }

    /// Most words it takes.
    #[getter]
    fn capacity(&self) -> usize {
        self.0.capacity()
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        detached(py, || Ok(self.0.len()))
    }
}

/// Where and how the parameters of a new layer are made.
fn init(device: Option<DeviceArg>, dtype: Option<DTypeArg>) -> PyResult<Init> {
    let device = device.unwrap_or_default().open()?;
    let dtype = dtype.unwrap_or_default().or(default_float());
    Ok(Init { dtype, ..Init::new(crate::rng::draw(), &device) })
}

/// Adds the constructors.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyLayer>()?;
    module.add_class::<PyKvCache>()?;
    constructors(module)
}

include!(concat!(env!("OUT_DIR"), "/layers.rs"));
