//! Losses of class numbers.

use super::one;
use crate::run::Call;
use crate::value::Value;
use zyx_core::{CrossEntropy, Reduction, Result};

type Values = Result<Vec<Value>>;

fn options(call: &Call<'_>) -> Result<CrossEntropy> {
    let reduction = match call.string_or("reduction", "mean")? {
        "mean" => Reduction::Mean,
        "sum" => Reduction::Sum,
        "none" => Reduction::None,
        other => return Err(call.error(format!("attribute `reduction` is `{other}`"))),
    };
    let ignore_index = call.int_attribute("ignore_index")?;
    Ok(CrossEntropy { ignore_index, reduction, label_smoothing: 0.0 })
}

pub(super) fn negative_log_likelihood(call: &Call<'_>) -> Values {
    let (x, target) = (call.tensor(0)?, call.tensor(1)?.unchecked_indices());
    let loss = match call.optional_tensor(2)? {
        Some(weight) => x.nll_loss_weighted(&target, &weight, options(call)?)?,
        None => x.nll_loss(&target, options(call)?)?,
    };
    one(loss.cast(x.dtype()))
}

/// The logarithms of the probabilities come along.
pub(super) fn softmax_cross_entropy(call: &Call<'_>) -> Values {
    let (x, target) = (call.tensor(0)?, call.tensor(1)?.unchecked_indices());
    let weight = call.optional_tensor(2)?;
    let loss = x.cross_entropy_weighted(&target, weight.as_ref(), options(call)?)?.cast(x.dtype());
    if call.node.outputs.len() < 2 {
        return one(loss);
    }
    Ok(vec![loss.into(), x.log_softmax(1)?.cast(x.dtype()).into()])
}
