//! Random numbers: a stream for each seed, as zyx draws them; other runtimes draw others.

use super::{dtype_attribute, one};
use crate::run::Call;
use crate::value::Value;
use std::hash::{BuildHasher, Hasher, RandomState};
use zyx_core::{DType, Result, Rng, Tensor};

type Values = Result<Vec<Value>>;

/// The stream of a node's seed; without one, another for each node and each run.
fn stream(call: &Call<'_>) -> Result<Rng> {
    Ok(Rng::seed(match call.float_attribute("seed")? {
        Some(seed) => u64::from((seed as f32).to_bits()),
        None => fresh_seed(call),
    }))
}

/// A seed that no other call has, after which the run is not replayed.
pub(super) fn fresh_seed(call: &Call<'_>) -> u64 {
    call.run.has_drawn.set(true);
    RandomState::new().build_hasher().finish()
}

/// The shape of an attribute, or the input's.
fn shape(call: &Call<'_>) -> Result<Vec<usize>> {
    match call.ints_attribute("shape")? {
        Some(shape) => call.sizes(&shape),
        None => call.shape(0),
    }
}

fn dtype(call: &Call<'_>) -> Result<DType> {
    let like = || call.optional(0).and_then(Value::dtype);
    Ok(dtype_attribute(call, "dtype")?.or_else(like).unwrap_or(DType::F32))
}

pub(super) fn uniform(call: &Call<'_>) -> Values {
    let (low, high) = (call.float_or("low", 0.0)?, call.float_or("high", 1.0)?);
    let x = Tensor::rand(shape(call)?, DType::F32, &mut stream(call)?, call.device())?;
    one(x.mul(high - low)?.add(low)?.cast(dtype(call)?))
}

pub(super) fn normal(call: &Call<'_>) -> Values {
    let (mean, scale) = (call.float_or("mean", 0.0)?, call.float_or("scale", 1.0)?);
    let x = Tensor::randn(shape(call)?, DType::F32, &mut stream(call)?, call.device())?;
    one(x.mul(scale)?.add(mean)?.cast(dtype(call)?))
}

pub(super) fn bernoulli(call: &Call<'_>) -> Values {
    let p = call.tensor(0)?;
    let x = Tensor::rand(p.shape(), DType::F32, &mut stream(call)?, call.device())?;
    one(x.lt(p.cast(DType::F32))?.cast(dtype(call)?))
}

pub(super) fn multinomial(call: &Call<'_>) -> Values {
    let n = usize::try_from(call.int_or("sample_size", 1)?).unwrap_or(0);
    let dtype = dtype_attribute(call, "dtype")?.unwrap_or(DType::I32);
    let p = call.tensor(0)?.softmax(-1)?;
    one(p.multinomial(n, true, &mut stream(call)?)?.cast(dtype))
}
