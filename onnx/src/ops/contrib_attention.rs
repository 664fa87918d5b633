//! Attention of the domain `com.microsoft`.
//!
//! Heads are an axis of their own, `[batch, heads, positions, width]`, in all of these.

use super::attention::{heads, joined, rotary};
use super::one;
use crate::run::Call;
use crate::value::Value;
use zyx_core::{Attention, DType, Result, Tensor};

type Values = Result<Vec<Value>>;

fn count(call: &Call<'_>, name: &str) -> Result<usize> {
    let n = call.int_or(name, 0)?;
    let n = usize::try_from(n).ok().filter(|&n| n > 0 && n < 1 << 31);
    n.ok_or_else(|| call.error(format!("attribute `{name}` is no count")))
}

/// Refuses inputs that are there.
fn refuse(call: &Call<'_>, inputs: &[(usize, &str)]) -> Result<()> {
    match inputs.iter().find(|&&(i, _)| call.optional(i).is_some()) {
        Some((_, name)) => Err(call.error(format!("input `{name}` is not supported"))),
        None => Ok(()),
    }
}

/// Heads in front of what must have three axes.
fn apart(call: &Call<'_>, x: &Tensor, n: usize) -> Result<Tensor> {
    if x.rank() != 3 {
        return Err(call.error(format!("shape {} has not three axes", x.shape())));
    }
    heads(call, x.clone(), Some(n as i64))
}

fn positions(n: usize, call: &Call<'_>) -> Tensor {
    Tensor::iota(n, DType::I64, call.device())
}

/// How scores become weights.
#[derive(Default)]
struct Weights {
    scale: Option<f64>,
    /// Added to the scores.
    bias: Option<Tensor>,
    /// Where attention may go.
    allowed: Option<Tensor>,
    softcap: f64,
    /// For each head, a score of nothing.
    sink: Option<Tensor>,
}

/// Attention of queries to as many or fewer heads of keys and values.
fn attend(q: &Tensor, k: &Tensor, v: &Tensor, weights: &Weights) -> Result<Tensor> {
    let hidden = |like: &Tensor| like.zeros_like().add(f64::NEG_INFINITY);
    if weights.softcap == 0.0 && weights.sink.is_none() {
        let mask = match (&weights.bias, &weights.allowed) {
            (Some(bias), Some(allowed)) => Some(allowed.where_(bias, hidden(bias)?)?),
            (bias, allowed) => bias.as_ref().or(allowed.as_ref()).cloned(),
        };
        let grouped = q.shape()[1] != k.shape()[1];
        let options = Attention {
            mask: mask.as_ref(),
            scale: weights.scale,
            grouped,
            ..Attention::default()
        };
        return q.scaled_dot_product_attention(k, v, options);
    }
    let times = q.shape()[1] / k.shape()[1].max(1);
    let (k, v) = (k.repeat_interleave(times, 1)?, v.repeat_interleave(times, 1)?);
    let wide = |x: &Tensor| x.cast(q.dtype().accumulator());
    let scale = weights.scale.unwrap_or(1.0 / (q.shape()[3] as f64).sqrt());
    let mut scores = wide(q).matmul(&wide(&k).transpose(-2, -1)?)?.mul(scale)?;
    if weights.softcap != 0.0 {
        scores = scores.div(weights.softcap)?.tanh().mul(weights.softcap)?;
    }
    if let Some(bias) = &weights.bias {
        scores = scores.add(wide(bias))?;
    }
    if let Some(allowed) = &weights.allowed {
        scores = allowed.where_(&scores, hidden(&scores)?)?;
    }
    let keys = scores.shape()[3];
    if let Some(sink) = &weights.sink {
        let mut shape = scores.shape().to_vec();
        shape[3] = 1;
        let sink = wide(sink).reshape([1, sink.numel(), 1, 1])?.broadcast_to(shape)?;
        scores = Tensor::cat(&[&scores, &sink], -1)?;
    }
    let weights = scores.softmax(-1)?.slice(-1, ..keys)?;
    Ok(weights.matmul(&wide(&v))?.cast(q.dtype()))
}

/// Where queries behind `past` earlier positions may attend to: not to later positions than their own.
fn causal(call: &Call<'_>, past: usize, queries: usize, keys: usize) -> Result<Tensor> {
    let last = positions(queries, call).add(past as i64)?.unsqueeze(1)?;
    positions(keys, call).le(last)
}

/// What a mask of one of the forms of `Attention` and `MultiHeadAttention` lets through.
fn visible(
    call: &Call<'_>,
    mask: &Tensor,
    batch: usize,
    queries: usize,
    keys: usize,
) -> Result<Tensor> {
    let at = positions(keys, call);
    match *mask.shape().dims() {
        [n] if n == batch => at.lt(mask.reshape([batch, 1, 1, 1])?.cast(DType::I64)),
        // The ends, and then the starts.
        [n] if n == 2 * batch => {
            let bounds = mask.cast(DType::I64).reshape([2, batch, 1, 1, 1])?;
            at.lt(bounds.select_index(0, 0)?)?.bitwise_and(&at.ge(bounds.select_index(0, 1)?)?)
        }
        [b, n] if b == batch && n == keys => mask.ne(0)?.reshape([batch, 1, 1, keys]),
        [b, s, n] if (b, s, n) == (batch, queries, keys) => mask.ne(0)?.unsqueeze(1),
        [b, 1, m, n] if b == batch && m == n && n >= keys && keys >= queries => {
            mask.ne(0)?.slice(2, keys - queries..keys)?.slice(3, ..keys)
        }
        _ => Err(call.error(format!(
            "a mask of shape {} is not supported for {batch} x {queries} queries and {keys} keys",
            mask.shape()
        ))),
    }
}

/// The weights of `Attention` and `MultiHeadAttention`: what is masked gets the filter's value added.
fn weights(
    call: &Call<'_>,
    past: usize,
    (batch, queries, keys): (usize, usize, usize),
    mask: Option<Tensor>,
    bias: Option<Tensor>,
) -> Result<Weights> {
    let scale = call.float_or("scale", 0.0)?;
    let mut result = Weights { scale: (scale != 0.0).then_some(scale), ..Weights::default() };
    if call.flag("unidirectional")? {
        if past + queries != keys {
            let reason =
                format!("{queries} queries behind {past} positions have no order with {keys} keys");
            return Err(call.error(reason));
        }
        result.allowed = Some(causal(call, past, queries, keys)?);
    }
    let filter = call.float_or("mask_filter_value", -10000.0)?;
    let mask = match mask {
        Some(mask) => {
            let hidden = visible(call, &mask, batch, queries, keys)?.logical_not();
            Some(hidden.cast(DType::F32).mul(filter)?)
        }
        None => None,
    };
    result.bias = match (mask, bias) {
        (Some(mask), Some(bias)) => Some(mask.add(bias)?),
        (mask, bias) => mask.or(bias),
    };
    Ok(result)
}

fn with_past(past: Option<Tensor>, new: Tensor) -> Result<Tensor> {
    match past {
        Some(past) => Tensor::cat(&[&past, &new], 2),
        None => Ok(new),
    }
}

pub(super) fn multi_head_attention(call: &Call<'_>) -> Values {
    refuse(call, &[(8, "past_sequence_length"), (9, "cache_indirection")])?;
    let n = count(call, "num_heads")?;
    let query = call.tensor(0)?;
    let (key, value) = (call.optional_tensor(1)?, call.optional_tensor(2)?);
    // Packed as `[batch, positions, heads, parts, width]`.
    let part = |x: &Tensor, i: isize| x.select_index(3, i)?.permute([0, 2, 1, 3]);
    let fits =
        |x: &Tensor, parts: usize| x.rank() == 5 && x.shape()[2] == n && x.shape()[3] == parts;
    let unsupported =
        |x: &Tensor| Err(call.error(format!("an input of shape {} is not supported", x.shape())));
    let (mut q, mut k, mut v, is_past) = match (key, value) {
        (None, None) if fits(&query, 3) => {
            (part(&query, 0)?, part(&query, 1)?, part(&query, 2)?, false)
        }
        (Some(key), None) if fits(&key, 2) => {
            (apart(call, &query, n)?, part(&key, 0)?, part(&key, 1)?, false)
        }
        (Some(key), Some(value)) if key.rank() == 4 && value.rank() == 4 => {
            (apart(call, &query, n)?, key, value, true)
        }
        (Some(key), Some(value)) => {
            let [q, k, v] = [&query, &key, &value].map(|x| apart(call, x, n));
            (q?, k?, v?, false)
        }
        _ => return unsupported(&query),
    };
    if let Some(bias) = call.optional_tensor(3)? {
        let mut start = 0;
        for (x, applies) in [(&mut q, true), (&mut k, !is_past), (&mut v, !is_past)] {
            let width = n * x.shape()[3];
            if applies {
                let part = bias.slice(0, start..start + width)?;
                *x = x.add(part.reshape([1, n, 1, width / n])?)?;
            }
            start += width;
        }
    }
    let new = k.shape()[2];
    let k = with_past(call.optional_tensor(6)?, k)?;
    let before = k.shape()[2] - new;
    let v = with_past(call.optional_tensor(7)?, v)?;
    let extents = (q.shape()[0], q.shape()[2], k.shape()[2]);
    let weights =
        weights(call, before, extents, call.optional_tensor(4)?, call.optional_tensor(5)?)?;
    let y = joined(&attend(&q, &k, &v, &weights)?)?;
    Ok(vec![y.into(), k.into(), v.into()])
}

/// Attention with the projections before it.
pub(super) fn attention(call: &Call<'_>) -> Values {
    refuse(call, &[(6, "past_sequence_length")])?;
    for name in ["do_rotary", "past_present_share_buffer"] {
        if call.flag(name)? {
            return Err(call.error(format!("attribute `{name}` is not supported")));
        }
    }
    let n = count(call, "num_heads")?;
    let mut projected = call.tensor(0)?.matmul(&call.tensor(1)?)?;
    if let Some(bias) = call.optional_tensor(2)? {
        projected = projected.add(bias)?;
    }
    let all = projected.shape().last().copied().unwrap_or(0);
    let sizes = match call.ints_attribute("qkv_hidden_sizes")? {
        Some(sizes) => call.sizes(&sizes)?,
        None => vec![all / 3; 3],
    };
    if sizes.len() != 3 || sizes.iter().sum::<usize>() != all {
        return Err(call.error(format!("{all} columns of weights are not those of {sizes:?}")));
    }
    let parts = projected.split_with_sizes(sizes, -1)?;
    let parts = parts.iter().map(|part| apart(call, part, n));
    let [q, mut k, mut v]: [Tensor; 3] = parts
        .collect::<Result<Vec<_>>>()?
        .try_into()
        .map_err(|_| call.error("queries, keys and values are three"))?;
    if let Some(past) = call.optional_tensor(4)? {
        k = with_past(Some(past.select_index(0, 0)?), k)?;
        v = with_past(Some(past.select_index(0, 1)?), v)?;
    }
    let extents = (q.shape()[0], q.shape()[2], k.shape()[2]);
    let weights = weights(
        call,
        extents.2 - extents.1,
        extents,
        call.optional_tensor(3)?,
        call.optional_tensor(5)?,
    )?;
    let mut outputs: Vec<Value> = vec![joined(&attend(&q, &k, &v, &weights)?)?.into()];
    // Keys and values of different widths have no common tensor.
    if k.shape().same(v.shape()) {
        outputs.push(Tensor::stack(&[&k, &v], 0)?.into());
    }
    Ok(outputs)
}

/// Pairs of elements of `[batch, heads, positions, width]` turned by the angles of the rows `at` (`[batch or 1,
/// positions]`) of tables of cosines and sines; elements behind the pairs stay.
fn rotate(
    call: &Call<'_>,
    x: &Tensor,
    at: &Tensor,
    [cos, sin]: [&Tensor; 2],
    interleaved: bool,
) -> Result<Tensor> {
    let half = cos.shape().last().copied().unwrap_or(0);
    let width = x.shape()[3];
    if cos.rank() != 2 || !cos.shape().same(sin.shape()) || 2 * half > width {
        let reason =
            format!("tables of {} and {} do not turn {width} elements", cos.shape(), sin.shape());
        return Err(call.error(reason));
    }
    Ok(rotary(call, x, (cos, sin), Some(at), (2 * half, interleaved))?.cast(x.dtype()))
}

pub(super) fn rotary_embedding(call: &Call<'_>) -> Values {
    if call.float_or("scale", 1.0)? != 1.0 {
        return Err(call.error("a scale is not supported"));
    }
    let (x, at) = (call.tensor(0)?, call.tensor(1)?.cast(DType::I64));
    let (cos, sin) = (call.tensor(2)?, call.tensor(3)?);
    let split = match (x.rank(), call.int_or("num_heads", 0)?) {
        (4, _) => x.clone(),
        (3, 0) => {
            let width = 2 * cos.shape().last().copied().unwrap_or(0);
            apart(call, &x, x.shape()[2] / width.max(1))?
        }
        _ => apart(call, &x, count(call, "num_heads")?)?,
    };
    let length = split.shape()[2];
    let at = match at.rank() {
        2 => at,
        _ => at.reshape([1, 1])?.add(positions(length, call))?,
    };
    let y = rotate(call, &split, &at, [&cos, &sin], call.flag("interleaved")?)?;
    one(if x.rank() == 4 { y } else { joined(&y)? })
}

/// Attention of groups of heads to a cache of keys and values that the step's own are written to.
pub(super) fn group_query_attention(call: &Call<'_>) -> Values {
    refuse(
        call,
        &[
            (12, "k_scale"),
            (13, "v_scale"),
            (14, "q_norm_weight"),
            (15, "k_norm_weight"),
            (16, "query_seqlens"),
        ],
    )?;
    for name in ["sliding_window_cache", "qk_output"] {
        if call.flag(name)? {
            return Err(call.error(format!("attribute `{name}` is not supported")));
        }
    }
    let (n, groups) = (count(call, "num_heads")?, count(call, "kv_num_heads")?);
    let query = call.tensor(0)?;
    let (mut q, mut k, v) = match (call.optional_tensor(1)?, call.optional_tensor(2)?) {
        (Some(key), Some(value)) => {
            (apart(call, &query, n)?, apart(call, &key, groups)?, apart(call, &value, groups)?)
        }
        _ => {
            let packed = apart(call, &query, n + 2 * groups)?;
            let part = |start: usize, end: usize| packed.slice(1, start..end);
            (part(0, n)?, part(n, n + groups)?, part(n + groups, n + 2 * groups)?)
        }
    };
    let (batch, length) = (q.shape()[0], q.shape()[2]);
    let total = call.int(6)?;
    let total = usize::try_from(total).ok().filter(|&total| total >= length);
    let total = total.ok_or_else(|| call.error(format!("{length} positions are more than all")))?;
    // How many positions of the cache each batch has already: none where all are the step's own.
    let seen = call.tensor(5)?.cast(DType::I64).reshape([batch, 1])?.add(1)?;
    let first = match total == length {
        true => seen.zeros_like(),
        false => seen.sub(length as i64)?,
    };
    let at = first.add(positions(length, call))?;
    if call.flag("do_rotary")? {
        let tables = [&call.tensor(7)?, &call.tensor(8)?];
        let turned_at = match call.optional_tensor(9)? {
            Some(positions) if *positions.shape().dims() == [batch, length] => {
                positions.cast(DType::I64)
            }
            Some(positions) => {
                let reason = format!("{} is not [{batch}, {length}]", positions.shape());
                return Err(call.error(reason));
            }
            None => at.clone(),
        };
        let interleaved = call.flag("rotary_interleaved")?;
        q = rotate(call, &q, &turned_at, tables, interleaved)?;
        k = rotate(call, &k, &turned_at, tables, interleaved)?;
    }
    let write = |past: Option<Tensor>, new: &Tensor| -> Result<Tensor> {
        if let Some(past) = past.as_ref().filter(|past| past.rank() != 4) {
            return Err(call.error(format!("a cache of shape {} has not four axes", past.shape())));
        }
        let room = past.as_ref().map_or(0, |past| past.shape()[2]).max(total);
        let cache = match (past, total == length) {
            (Some(past), false) => {
                past.pad([(0, 0), (0, 0), (0, room - past.shape()[2]), (0, 0)])?
            }
            _ => return new.pad([(0, 0), (0, 0), (0, room - length), (0, 0)]),
        };
        let at = at.reshape([batch, 1, length, 1])?.broadcast_to(new.shape())?;
        cache.scatter(2, &at.unchecked_indices(), new)
    };
    let (k, v) = (write(call.optional_tensor(3)?, &k)?, write(call.optional_tensor(4)?, &v)?);
    let keys = positions(k.shape()[2], call);
    let mut weights = Weights { softcap: call.float_or("softcap", 0.0)?, ..Weights::default() };
    let scale = call.float_or("scale", 0.0)?;
    weights.scale = (scale != 0.0).then_some(scale);
    let own = at.reshape([batch, 1, length, 1])?;
    let mut allowed = match call.int_or("causal", 1)? {
        0 => keys.lt(seen.reshape([batch, 1, 1, 1])?)?,
        _ => keys.le(&own)?,
    };
    let window = call.int_or("local_window_size", -1)?;
    if window == 0 {
        return Err(call.error("a window of 0 positions sees nothing"));
    }
    if window > 0 {
        allowed = allowed.bitwise_and(&keys.gt(own.sub(window)?)?)?;
    }
    weights.allowed = Some(allowed);
    weights.bias = match call.optional_tensor(10)? {
        // Cached positions that are not in use have no bias.
        Some(bias) => Some(bias.pad([(0, 0), (0, 0), (0, 0), (0, k.shape()[2] - total)])?),
        None => None,
    };
    weights.sink = match call.optional_tensor(11)? {
        Some(sink) => Some(sink),
        None if call.flag("smooth_softmax")? => Some(Tensor::zeros([n], DType::F32, call.device())),
        None => None,
    };
    let y = joined(&attend(&q, &k, &v, &weights)?)?;
    Ok(vec![y.into(), k.into(), v.into()])
}
