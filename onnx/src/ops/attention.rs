//! Attention, positions of rotated pairs, and recurrences that stand for attention.

use super::{one, one_value};
use crate::budget::Budget;
use crate::run::Call;
use crate::value::Value;
use zyx_core::{Attention, DType, Result, Tensor};

type Values = Result<Vec<Value>>;

/// Heads apart: `[batch, heads, length, size]` of `[batch, length, heads * size]`.
pub(super) fn heads(call: &Call<'_>, x: Tensor, heads: Option<i64>) -> Result<Tensor> {
    let &[batch, length, hidden] = x.shape().dims() else {
        return match x.rank() {
            4 => Ok(x),
            _ => Err(call.error(format!("shape {} has neither three axes nor four", x.shape()))),
        };
    };
    let heads = heads.and_then(|n| usize::try_from(n).ok()).filter(|&n| n > 0 && hidden % n == 0);
    let heads =
        heads.ok_or_else(|| call.error(format!("{hidden} columns are not of whole heads")))?;
    x.reshape([batch, length, heads, hidden / heads])?.transpose(1, 2)
}

/// The opposite of [`heads`].
pub(super) fn joined(x: &Tensor) -> Result<Tensor> {
    let &[batch, heads, length, size] = x.shape().dims() else { return Ok(x.clone()) };
    x.transpose(1, 2)?.reshape([batch, length, heads.saturating_mul(size)])
}

pub(super) fn attention(call: &Call<'_>) -> Values {
    let (q_heads, kv_heads) =
        (call.int_attribute("q_num_heads")?, call.int_attribute("kv_num_heads")?);
    let q = call.tensor(0)?;
    let is_flat = q.rank() == 3;
    let q = heads(call, q, q_heads)?;
    let mut k = heads(call, call.tensor(1)?, kv_heads)?;
    let mut v = heads(call, call.tensor(2)?, kv_heads)?;
    let mut past = 0;
    if let (Some(past_k), Some(past_v)) = (call.optional_tensor(4)?, call.optional_tensor(5)?) {
        past = past_k.shape().get(2).copied().unwrap_or(0);
        (k, v) = (Tensor::cat(&[&past_k, &k], 2)?, Tensor::cat(&[&past_v, &v], 2)?);
    }
    let (present_k, present_v) = (k.clone(), v.clone());
    let (length, n) = (q.shape()[2], k.shape()[2]);
    let valid = call.optional_tensor(6)?;
    let device = call.device();
    // Where a query stands among the keys, and which keys it may see from there.
    let column = |n: usize| Tensor::iota(n, DType::I64, device);
    let offset = match &valid {
        Some(valid) => {
            valid.cast(DType::I64).reshape([valid.numel(), 1, 1, 1])?.sub(length as i64)?
        }
        None => Tensor::full((), past as i64, device),
    };
    let place = column(length).unsqueeze(1)?.add(&offset)?;
    let key = column(n);
    let (left, right) =
        (call.int_or("left_window_size", -1)?, call.int_or("right_window_size", -1)?);
    let causal = call.flag("is_causal")?;
    let mut allowed: Option<Tensor> = None;
    let mut allow = |condition: Tensor| -> Result<()> {
        allowed = Some(match allowed.take() {
            Some(allowed) => allowed.bitwise_and(&condition)?,
            None => condition,
        });
        Ok(())
    };
    let mask = match call.optional_tensor(3)? {
        Some(mask) => {
            let short = n.saturating_sub(mask.shape().last().copied().unwrap_or(n));
            let mut padding = vec![(0, 0); mask.rank()];
            if let Some(last) = padding.last_mut() {
                last.1 = short;
            }
            Some(match mask.dtype() {
                DType::Bool => mask.pad(padding)?,
                _ => mask.pad_with(padding, f64::NEG_INFINITY)?,
            })
        }
        None => None,
    };
    // The plain case is told to the scheduler as such.
    let is_plain =
        causal && past == 0 && valid.is_none() && mask.is_none() && left < 0 && right < 0;
    if causal && !is_plain {
        allow(key.le(&place)?)?;
    }
    if left >= 0 {
        allow(place.sub(&key)?.le(left)?)?;
    }
    if right >= 0 {
        allow(key.sub(&place)?.le(right)?)?;
    }
    if let Some(valid) = &valid {
        allow(key.lt(valid.cast(DType::I64).reshape([valid.numel(), 1, 1, 1])?)?)?;
    }
    let mask = match (mask, allowed) {
        (Some(mask), Some(allowed)) if mask.dtype() == DType::Bool => {
            Some(mask.bitwise_and(&allowed)?)
        }
        (Some(mask), Some(allowed)) => {
            Some(allowed.where_(&mask, mask.full_like(f64::NEG_INFINITY))?)
        }
        (mask, allowed) => mask.or(allowed),
    };
    let scale = match call.float_attribute("scale")? {
        Some(scale) => scale,
        None => 1.0 / (q.shape()[3] as f64).sqrt(),
    };
    let cap = call.float_or("softcap", 0.0)?;
    let wants_scores = call.node.outputs.get(3).is_some_and(Option::is_some);
    let mut scores_out = None;
    let y = if cap == 0.0 && !wants_scores {
        let options = Attention {
            mask: mask.as_ref(),
            causal: is_plain,
            scale: Some(scale),
            grouped: q.shape()[1] != k.shape()[1],
            dropout: None,
        };
        q.scaled_dot_product_attention(&k, &v, options)?
    } else {
        let repeat = q.shape()[1] / k.shape()[1].max(1);
        let (k, v) = (k.repeat_interleave(repeat, 1)?, v.repeat_interleave(repeat, 1)?);
        let raw = q.mul(scale)?.matmul(&k.transpose(2, 3)?)?;
        let capped = if cap > 0.0 { raw.div(cap)?.tanh().mul(cap)? } else { raw.clone() };
        let mask = match (mask, is_plain) {
            (None, true) => Some(key.le(&place)?),
            (mask, _) => mask,
        };
        let biased = match &mask {
            Some(mask) if mask.dtype() == DType::Bool => {
                mask.where_(&capped, capped.full_like(f64::NEG_INFINITY))?
            }
            Some(mask) => capped.add(mask)?,
            None => capped.clone(),
        };
        let precision =
            super::dtype_attribute(call, "softmax_precision")?.unwrap_or(biased.dtype());
        let weights = biased.cast(precision).softmax(-1)?.cast(q.dtype());
        // What may attend to nothing gives zeros, and not the quotient of zeros.
        let weights = match &mask {
            Some(mask) => {
                let open = match mask.dtype() {
                    DType::Bool => mask.clone(),
                    _ => mask.gt(f64::NEG_INFINITY)?,
                };
                let open = open.any_keepdim(-1)?;
                open.where_(&weights, weights.zeros_like())?
            }
            None => weights,
        };
        scores_out = Some(match call.int_or("qk_matmul_output_mode", 0)? {
            0 => raw,
            1 => capped,
            2 => biased,
            _ => weights.clone(),
        });
        weights.matmul(&v)?
    };
    let y = if is_flat { joined(&y)? } else { y };
    let mut outputs = vec![y.into(), present_k.into(), present_v.into()];
    outputs.extend(scores_out.map(Value::from));
    Ok(outputs)
}

/// Rotates pairs of each head by the angles of its position.
pub(super) fn rotary(
    call: &Call<'_>,
    x: &Tensor,
    (cos, sin): (&Tensor, &Tensor),
    positions: Option<&Tensor>,
    (width, interleaved): (usize, bool),
) -> Result<Tensor> {
    let size = x.shape()[3];
    let width = if width == 0 { size } else { width };
    if width > size || width % 2 != 0 {
        return Err(call.error(format!("{width} of {size} columns are rotated")));
    }
    let angles = |table: &Tensor| -> Result<Tensor> {
        let rows = match positions {
            Some(positions) => {
                let rows = table.index_select(0, &positions.flatten().unchecked_indices())?;
                let shape: Vec<usize> =
                    positions.shape().iter().chain(table.shape().iter().skip(1)).copied().collect();
                rows.reshape(shape)?
            }
            None => table.clone(),
        };
        rows.unsqueeze(1)
    };
    let (cos, sin) = (angles(cos)?, angles(sin)?);
    let (turned, rest) = (x.slice(3, ..width)?, x.slice(3, width..)?);
    let half = width / 2;
    let (a, b) = match interleaved {
        true => (turned.stride(3, 0, 2)?, turned.stride(3, 1, 2)?),
        false => (turned.slice(3, ..half)?, turned.slice(3, half..)?),
    };
    let real = a.mul(&cos)?.sub(b.mul(&sin)?)?;
    let imaginary = a.mul(&sin)?.add(b.mul(&cos)?)?;
    let y = match interleaved {
        true => Tensor::stack(&[&real, &imaginary], -1)?.reshape(turned.shape())?,
        false => Tensor::cat(&[&real, &imaginary], 3)?,
    };
    if width == size { Ok(y) } else { Tensor::cat(&[&y, &rest], 3) }
}

pub(super) fn rotary_embedding(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let is_flat = x.rank() == 3;
    let x = heads(call, x, call.int_attribute("num_heads")?)?;
    let (cos, sin, positions) = (call.tensor(1)?, call.tensor(2)?, call.optional_tensor(3)?);
    let width = call.int_or("rotary_embedding_dim", 0)?.max(0) as usize;
    let how = (width, call.flag("interleaved")?);
    let y = rotary(call, &x, (&cos, &sin), positions.as_ref(), how)?;
    one(if is_flat { joined(&y)? } else { y })
}

/// One step after the other: a state of keys by values, that decays and is corrected as the rule says.
pub(super) fn linear_attention(call: &Call<'_>) -> Values {
    let (q_heads, kv_heads) =
        (call.int_attribute("q_num_heads")?, call.int_attribute("kv_num_heads")?);
    let q = heads(call, call.tensor(0)?, q_heads)?;
    let (k, v) = (heads(call, call.tensor(1)?, kv_heads)?, heads(call, call.tensor(2)?, kv_heads)?);
    let (&[batch, n_q, length, size], &[_, n_kv, _, width]) = (q.shape().dims(), v.shape().dims())
    else {
        return Err(call.error("its inputs have not three axes"));
    };
    let dtype = q.dtype();
    let [q, k, v] = [q, k, v].map(|x| x.cast(dtype.accumulator()));
    let rule = call.string_or("update_rule", "gated_delta")?;
    let (gated, delta) = match rule {
        "linear" => (false, false),
        "gated" => (true, false),
        "delta" => (false, true),
        "gated_delta" => (true, true),
        other => return Err(call.error(format!("attribute `update_rule` is `{other}`"))),
    };
    let scale = match call.float_or("scale", 0.0)? {
        0.0 => 1.0 / (size as f64).sqrt(),
        scale => scale,
    };
    let past = call.optional_tensor(3)?.map(|state| state.cast(q.dtype()));
    let mut state = match past {
        Some(state) => state,
        None => Tensor::zeros([batch, n_kv, size, width], q.dtype(), call.device()),
    };
    let each = |i: usize, is_wanted: bool| -> Result<Option<Tensor>> {
        if !is_wanted {
            return Ok(None);
        }
        let x = call.tensor(i)?.cast(q.dtype());
        let columns = x.shape().last().copied().unwrap_or(0) / n_kv.max(1);
        if columns == 0 {
            // One number for all heads.
            return Ok(Some(x.unsqueeze(1)?));
        }
        Ok(Some(heads(call, x, kv_heads)?))
    };
    let (decay, beta) = (each(4, gated)?, each(5, delta)?);
    let repeat = n_q / n_kv.max(1);
    call.budget().trace(length.saturating_mul(12))?;
    let mut rows = Vec::with_capacity(length);
    for t in 0..length as isize {
        Budget::check_interrupt()?;
        let column = |x: &Tensor| x.select_index(2, t)?.unsqueeze(-1);
        let (key, value) = (column(&k)?, v.select_index(2, t)?.unsqueeze(-2)?);
        if let Some(decay) = &decay {
            state = state.mul(column(decay)?.exp())?;
        }
        let mut update = value;
        if let Some(beta) = &beta {
            let known = key.transpose(-1, -2)?.matmul(&state)?;
            update = update.sub(known)?.mul(column(beta)?)?;
        }
        state = state.add(key.mul(&update)?)?;
        let query = q.select_index(2, t)?.unsqueeze(-2)?;
        rows.push(query.matmul(&state.repeat_interleave(repeat, 1)?)?.mul(scale)?);
    }
    let y = match rows.is_empty() {
        true => Tensor::zeros([batch, n_q, 0, width], q.dtype(), call.device()),
        false => Tensor::cat(&rows.iter().collect::<Vec<_>>(), 2)?,
    };
    Ok(vec![joined(&y)?.cast(dtype).into(), state.cast(dtype).into()])
}

pub(super) fn swiglu(call: &Call<'_>) -> Values {
    let (a, b) = (call.tensor(0)?, call.tensor(1)?);
    let alpha = call.float_or("alpha", 1.0)?;
    one(a.mul(a.mul(alpha)?.sigmoid())?.mul(&b)?)
}

/// Attention whose scores and weights graphs of the model change.
pub(super) fn flex(call: &Call<'_>) -> Values {
    let (q, k, v) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    let scale = match call.float_attribute("scale")? {
        Some(scale) => scale,
        None => 1.0 / (q.shape().last().copied().unwrap_or(1) as f64).sqrt(),
    };
    let [&[_, n_q, ..], &[_, n_kv, ..]] = [q.shape().dims(), k.shape().dims()] else {
        return Err(call.error(format!("queries {} and keys {}", q.shape(), k.shape())));
    };
    let repeat = n_q / n_kv.max(1);
    let (k, v) = (k.repeat_interleave(repeat, 1)?, v.repeat_interleave(repeat, 1)?);
    let precision = super::dtype_attribute(call, "softmax_precision")?.unwrap_or(DType::F32);
    let wide = if q.dtype() == DType::F64 { DType::F64 } else { precision };
    let mut scores = q.cast(wide).matmul(&k.cast(wide).transpose(2, 3)?)?.mul(scale)?;
    let change = |name: &str, x: Tensor| -> Result<Tensor> {
        match call.attribute(name) {
            Some(_) => {
                let changed = call.subgraph(name, vec![x.into()])?;
                call.to_tensor(changed.first().ok_or_else(|| call.error("a graph without output"))?)
            }
            None => Ok(x),
        }
    };
    scores = change("score_mod", scores)?;
    let weights = change("prob_mod", scores.softmax(-1)?)?;
    one_value(weights.cast(q.dtype()).matmul(&v)?.into())
}
