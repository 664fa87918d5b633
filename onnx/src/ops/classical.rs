//! Operators of classical models (`ai.onnx.ml`): what is done to features and labels. Trees are in `trees`.
//!
//! Labels and whatever is found by its value are looked up on the host.

use super::strings::strings;
use super::{one, one_value};
use crate::attribute::Attribute;
use crate::host::{Host, numel};
use crate::run::Call;
use crate::value::Value;
use std::collections::HashMap;
use zyx_core::{DType, Result, Scalar, Tensor};

type Values = Result<Vec<Value>>;

/// What an element is found by: two keys are equal where the standard says so.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Text(String),
    Int(i64),
    /// The bits of a float, of one NaN and one zero.
    Float(u64),
}

impl Key {
    fn of(x: Scalar) -> Key {
        match x.dtype().is_float() {
            true => Key::float(x.to_f64()),
            false => Key::Int(x.to_i64()),
        }
    }

    fn float(x: f64) -> Key {
        Key::Float(if x.is_nan() { f64::NAN } else { x + 0.0 }.to_bits())
    }

    /// The keys of a value's elements.
    fn all(call: &Call<'_>, value: &Value) -> Result<Vec<Key>> {
        match value {
            Value::Strings(_, texts) => Ok(texts.iter().cloned().map(Key::Text).collect()),
            value => Ok(call.read(value)?.numbers().iter().copied().map(Key::of).collect()),
        }
    }
}

/// Few numbers, or a tensor of many.
fn numbers(call: &Call<'_>, host: Host) -> Values {
    match host.numbers().len() <= Host::MOST {
        true => one(host),
        false => one(host.tensor(call.device())?),
    }
}

/// The list that the one given attribute of this kind holds, `keys_floats` for one.
fn listed(call: &Call<'_>, kind: &str) -> Result<Value> {
    let host =
        |dtype, numbers: Vec<Scalar>| Value::Host(Host::new([numbers.len()], dtype, numbers));
    for suffix in ["tensor", "strings", "int64s", "floats"] {
        match call.attribute(&format!("{kind}_{suffix}")) {
            None => {}
            Some(Attribute::Tensor(value)) => return Ok(value.clone()),
            Some(Attribute::Strings(texts)) => {
                return Ok(Value::Strings(vec![texts.len()], texts.clone()));
            }
            Some(Attribute::Ints(ints)) => {
                return Ok(host(DType::I64, ints.iter().map(|&x| x.into()).collect()));
            }
            Some(Attribute::Floats(floats)) => {
                return Ok(host(DType::F32, floats.iter().map(|&x| x.into()).collect()));
            }
            Some(other) => {
                return Err(
                    call.error(format!("attribute `{kind}_{suffix}` is {}, no list", other.kind()))
                );
            }
        }
    }
    Err(call.error(format!("it has no attribute `{kind}_..`")))
}

pub(super) fn label_encoder(call: &Call<'_>) -> Values {
    let (keys, values) = (listed(call, "keys")?, listed(call, "values")?);
    let places: HashMap<Key, usize> = Key::all(call, &keys)?.into_iter().zip(0..).collect();
    let (x, shape) = (call.value(0)?, call.shape(0)?);
    let is_text = |value: &Value| matches!(value, Value::Strings(..));
    if is_text(x) != is_text(&keys) {
        return Err(call.error(format!("its keys are {}, its input is {}", keys.kind(), x.kind())));
    }
    let found = Key::all(call, x)?.into_iter().map(|key| places.get(&key).copied());
    if let Value::Strings(_, texts) = &values {
        let default = match call.attribute("default_tensor") {
            Some(Attribute::Tensor(Value::Strings(_, texts))) => texts.first().cloned(),
            _ => None,
        };
        let default = default
            .map_or_else(|| call.string_or("default_string", "_Unused").map(str::to_owned), Ok)?;
        let labels = found.map(|at| at.and_then(|at| texts.get(at)).unwrap_or(&default).as_str());
        return one_value(Value::Strings(shape, call.texts(&labels.collect::<Vec<_>>())?));
    }
    let values = call.read(&values)?;
    let default = match call.attribute("default_tensor") {
        Some(Attribute::Tensor(value)) => call.read(value)?.numbers().first().copied(),
        _ => None,
    };
    let default = match default {
        Some(default) => default,
        None if values.dtype().is_float() => {
            Scalar::from_f64(values.dtype(), call.float_or("default_float", -0.0)?)
        }
        None => Scalar::from_i64(values.dtype(), call.int_or("default_int64", -1)?),
    };
    let label =
        |at: Option<usize>| at.and_then(|at| values.numbers().get(at)).copied().unwrap_or(default);
    numbers(call, Host::new(shape, values.dtype(), found.map(label).collect()))
}

pub(super) fn one_hot_encoder(call: &Call<'_>) -> Values {
    let classes = listed(call, "cats")?;
    let places: HashMap<Key, usize> = Key::all(call, &classes)?.into_iter().zip(0..).collect();
    let mut shape = call.shape(0)?;
    let keys: Vec<Key> = match (call.value(0)?, &classes) {
        (Value::Strings(_, texts), Value::Strings(..)) => {
            texts.iter().cloned().map(Key::Text).collect()
        }
        (value, Value::Host(_)) => call.read(value)?.ints().into_iter().map(Key::Int).collect(),
        (value, _) => {
            return Err(
                call.error(format!("its classes are strings, its input is {}", value.kind()))
            );
        }
    };
    let found: Vec<i64> =
        keys.iter().map(|key| places.get(key).map_or(-1, |&at| at as i64)).collect();
    if call.int_or("zeros", 1)? == 0
        && let Some(i) = found.iter().position(|&at| at < 0)
    {
        return Err(call.error(format!("element {i} is of no class")));
    }
    shape.push(1);
    let width = classes.shape().map_or(0, |shape| numel(&shape));
    let found = Tensor::from_slice(&found, shape, call.device())?;
    one(found.eq(Tensor::iota(width, DType::I64, call.device()))?.cast(DType::F32))
}

pub(super) fn array_feature_extractor(call: &Call<'_>) -> Values {
    let mut shape = call.shape(0)?;
    if shape.len() == 1 {
        shape.insert(0, 1);
    }
    let Some(width) = shape.pop() else { return Err(call.error("its input has no axis")) };
    let picked = numel(&call.shape(1)?);
    if let Ok((_, texts)) = strings(call, 0) {
        let places = call.ints(1)?;
        let places: Vec<usize> =
            places.iter().map(|&at| call.axis(at, width)).collect::<Result<_>>()?;
        shape.push(picked);
        let mut all = call.budget().room(numel(&shape))?;
        for row in texts.chunks(width.max(1)) {
            all.extend(places.iter().filter_map(|&at| row.get(at)).map(String::as_str));
        }
        return one_value(Value::Strings(shape, call.texts(&all)?));
    }
    if let Some(index) = call.host(1) {
        index.ints().iter().try_for_each(|&at| call.axis(at, width).map(drop))?;
    }
    shape.push(picked);
    let index = call.tensor(1)?.cast(DType::I64).flatten().unchecked_indices();
    one(call.tensor(0)?.index_select(-1, &index)?.reshape(shape)?)
}

pub(super) fn binarizer(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let threshold = call.float_or("threshold", 0.0)?;
    one(x.gt(threshold)?.cast(x.dtype()))
}

/// A list of floats as a tensor that broadcasts along the last axis.
fn along_features(call: &Call<'_>, name: &str, default: f32) -> Result<Tensor> {
    let floats = call.floats_attribute(name)?.unwrap_or_else(|| vec![default]);
    Tensor::from_slice(&floats, [floats.len()], call.device())
}

pub(super) fn scaler(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?.cast(DType::F32);
    let (offset, scale) =
        (along_features(call, "offset", 0.0)?, along_features(call, "scale", 1.0)?);
    one(x.sub(&offset)?.mul(&scale)?)
}

pub(super) fn normalizer(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?.cast(DType::F32);
    let norm = match call.string_or("norm", "MAX")? {
        "MAX" => x.max_keepdim(-1)?,
        "L1" => x.abs().sum_keepdim(-1)?,
        "L2" => x.square().sum_keepdim(-1)?.sqrt(),
        other => return Err(call.error(format!("`norm` is `{other}`; there are MAX, L1 and L2"))),
    };
    one(norm.eq(0.0)?.where_(&x, &x.div(&norm)?)?)
}

/// Products of features and coefficients, one sum for each target.
pub(super) fn linear_regressor(call: &Call<'_>) -> Values {
    let x = rows(call)?;
    let targets = call.sizes(&[call.int_or("targets", 1)?])?[0];
    let y = linear(call, &x, targets)?;
    one(transformed(call, &y, call.string_or("post_transform", "NONE")?)?)
}

/// The names of a classifier's classes: texts or integers.
pub(super) struct Labels {
    texts: Vec<String>,
    ints: Vec<i64>,
}

impl Labels {
    /// Texts, or else those of the attribute with integers.
    pub(super) fn of(call: &Call<'_>, ints: &str) -> Result<Labels> {
        let texts = call.strings_attribute("classlabels_strings")?.unwrap_or_default();
        Ok(Labels { texts, ints: call.ints_attribute(ints)?.unwrap_or_default() })
    }

    pub(super) fn len(&self) -> usize {
        if self.texts.is_empty() { self.ints.len() } else { self.texts.len() }
    }

    /// Those of classes by number.
    pub(super) fn pick(&self, call: &Call<'_>, classes: &Tensor) -> Result<Value> {
        if self.texts.is_empty() {
            let table = Tensor::from_slice(&self.ints, [self.ints.len()], call.device())?;
            return Ok(table.take(&classes.unchecked_indices())?.into());
        }
        let places = call.read_tensor(classes)?.ints();
        let text = |&at: &i64| self.texts.get(at as usize).map_or("", String::as_str);
        let texts: Vec<&str> = places.iter().map(text).collect();
        Ok(Value::Strings(vec![texts.len()], call.texts(&texts)?))
    }
}

/// A map from classes to scores for each row of scores.
pub(super) fn zip_map(call: &Call<'_>) -> Values {
    let labels = Labels::of(call, "classlabels_int64s")?;
    let scores = call.read(call.value(0)?)?;
    let classes = labels.len();
    if classes == 0 || scores.shape().last() != Some(&classes) || scores.shape().len() > 2 {
        let shape = scores.shape();
        return Err(call.error(format!("scores of shape {shape:?} for {classes} classes")));
    }
    let keys = match labels.texts.is_empty() {
        true => {
            let keys = labels.ints.iter().map(|&label| label.into()).collect();
            Value::Host(Host::new([classes], DType::I64, keys))
        }
        false => Value::Strings(vec![classes], labels.texts),
    };
    let mut maps = Vec::new();
    for row in scores.numbers().chunks(classes) {
        let values = Host::new([classes], scores.dtype(), row.to_vec());
        let keys = Box::new(call.copied(&keys)?);
        call.budget().ask(size_of::<Value>() + size_of_val(row))?;
        maps.push(Value::Map(keys, values));
    }
    one_value(Value::Sequence(maps))
}

/// The scores of two classes, of one number that says by its sign which it is.
pub(super) fn both(call: &Call<'_>, score: &Tensor, transform: &str) -> Result<Tensor> {
    match transform {
        "LOGISTIC" => Ok(Tensor::cat(&[&score.neg(), score], 1)?.sigmoid()),
        "NONE" | "SOFTMAX" | "SOFTMAX_ZERO" => Tensor::cat(&[&score.neg().add(1.0)?, score], 1),
        other => Err(call.error(format!("`post_transform` {other} of one score is not supported"))),
    }
}

/// Classes with the largest products of features and coefficients, and these.
pub(super) fn linear_classifier(call: &Call<'_>) -> Values {
    let x = rows(call)?;
    let labels = Labels::of(call, "classlabels_ints")?;
    let intercepts = call.floats_attribute("intercepts")?.unwrap_or_default().len();
    let targets = if intercepts == 0 { labels.len() } else { intercepts };
    let transform = call.string_or("post_transform", "NONE")?;
    let y = linear(call, &x, targets)?;
    let (classes, scores) = match (targets, labels.len()) {
        (1, 2) => (y.gt(0.0)?.cast(DType::I64).flatten(), both(call, &y, transform)?),
        (n, m) if n == m && n > 1 => (y.argmax(1)?, transformed(call, &y, transform)?),
        (n, m) => return Err(call.error(format!("{n} scores of {m} classes"))),
    };
    Ok(vec![labels.pick(call, &classes)?, scores.into()])
}

fn linear(call: &Call<'_>, x: &Tensor, targets: usize) -> Result<Tensor> {
    let coefficients = along_features(call, "coefficients", 0.0)?;
    let weights = coefficients.reshape([targets, x.shape()[1]])?;
    let y = x.cast(DType::F32).matmul(&weights.t())?;
    match call.floats_attribute("intercepts")? {
        Some(intercepts) if !intercepts.is_empty() => {
            y.add(&along_features(call, "intercepts", 0.0)?)
        }
        _ => Ok(y),
    }
}

/// The input as a matrix, a row for each example.
pub(super) fn rows(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    match x.rank() {
        1 => x.unsqueeze(0),
        2 => Ok(x),
        _ => {
            Err(call.error(format!("its input has shape {}, not [examples, features]", x.shape())))
        }
    }
}

/// Scores `[examples, classes]` as an attribute says.
pub(super) fn transformed(call: &Call<'_>, y: &Tensor, how: &str) -> Result<Tensor> {
    match how {
        "NONE" => Ok(y.clone()),
        "LOGISTIC" => Ok(y.sigmoid()),
        "SOFTMAX" => y.softmax(-1),
        // What is zero stays so.
        "SOFTMAX_ZERO" => {
            let is_zero = y.abs().le(1e-7)?;
            let powers = y.sub(&y.max_keepdim(-1)?)?.exp();
            let powers = is_zero.where_(0.0, &powers)?;
            powers.div(&powers.sum_keepdim(-1)?)
        }
        "PROBIT" => y.mul(2.0)?.sub(1.0)?.erfinv().mul(std::f64::consts::SQRT_2),
        other => Err(call.error(format!("`post_transform` is `{other}`, which is not supported"))),
    }
}
