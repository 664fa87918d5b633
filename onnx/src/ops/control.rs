//! Graphs within graphs, sequences and optionals.

use super::{one, one_value};
use crate::host::Host;
use crate::run::Call;
use crate::value::Value;
use zyx_core::{DType, Result, Scalar, Tensor};

type Values = Result<Vec<Value>>;

pub(super) fn if_(call: &Call<'_>) -> Values {
    let branch = if call.int(0)? != 0 { "then_branch" } else { "else_branch" };
    call.subgraph(branch, Vec::new())
}

/// Values of one axis more, from one of each step; of no step, none.
fn stacked(call: &Call<'_>, steps: Vec<Value>, axis: i64, reverse: bool) -> Result<Value> {
    let mut steps = steps;
    if reverse {
        steps.reverse();
    }
    let tensors: Vec<Tensor> = steps.iter().map(|x| call.to_tensor(x)).collect::<Result<_>>()?;
    if tensors.is_empty() {
        // Their type is known by no step; one has to be assumed.
        return Ok(Value::Host(Host::new([0], DType::F32, Vec::new())));
    }
    Ok(Tensor::stack(&tensors.iter().collect::<Vec<_>>(), axis as isize)?.into())
}

/// Adds the outputs of a step to those of the steps before.
fn keep(call: &Call<'_>, steps: &mut [Vec<Value>], each: Vec<Value>) -> Result<()> {
    for (steps, value) in steps.iter_mut().zip(each) {
        call.budget().ask(size_of::<Value>() + value.bytes())?;
        steps.push(value);
    }
    Ok(())
}

/// Computes the values of a loop whose pending tensors take a part of the budget: they depend on no earlier step then.
/// Values with gradients stay pending.
fn compute_pending<'v>(
    call: &Call<'_>,
    before: usize,
    values: impl Iterator<Item = &'v Value>,
) -> Result<()> {
    let budget = call.budget();
    if budget.traced() - before < budget.limit() / 64 {
        return Ok(());
    }
    let tensors = values.filter_map(|value| match value {
        Value::Tensor(tensor) => Some(tensor),
        _ => None,
    });
    let tensors: Vec<&Tensor> = tensors.collect();
    if tensors.iter().any(|tensor| tensor.is_tracked()) {
        return Ok(());
    }
    call.run.has_read.set(true);
    Tensor::realize_all(tensors)?;
    budget.computed(before);
    Ok(())
}

pub(super) fn loop_(call: &Call<'_>) -> Values {
    let most = call.optional_ints(0)?.and_then(|m| m.first().copied()).unwrap_or(i64::MAX);
    let mut going = call.optional_ints(1)?.and_then(|c| c.first().copied()).unwrap_or(1) != 0;
    let n = call.inputs.len().saturating_sub(2);
    let mut carried = call.values_from(2)?;
    let mut steps: Vec<Vec<Value>> = vec![Vec::new(); call.node.outputs.len().saturating_sub(n)];
    let mut i = 0;
    let traced = call.budget().traced();
    while going && i < most {
        let step = Host::new([], DType::I64, vec![Scalar::from(i)]);
        let condition = Host::new([], DType::Bool, vec![Scalar::from(true)]);
        let mut inputs = vec![step.into(), condition.into()];
        inputs.append(&mut carried);
        let mut outputs = call.subgraph("body", inputs)?;
        if outputs.len() < 1 + n {
            return Err(call.error(format!(
                "its body has {} outputs, not {}",
                outputs.len(),
                n + 1
            )));
        }
        let each = outputs.split_off(1 + n);
        carried = outputs.split_off(1);
        going = call.read(&outputs[0])?.ints().first() == Some(&1);
        keep(call, &mut steps, each)?;
        compute_pending(call, traced, carried.iter().chain(steps.iter().flatten()))?;
        i += 1;
    }
    for values in steps {
        carried.push(stacked(call, values, 0, false)?);
    }
    Ok(carried)
}

pub(super) fn scan(call: &Call<'_>) -> Values {
    let inputs = call.values_from(0)?;
    let n = usize::try_from(call.int_or("num_scan_inputs", 0)?).unwrap_or(0);
    if n == 0 || n > inputs.len() {
        return Err(call.error(format!("{n} of {} inputs are scanned", inputs.len())));
    }
    let mut state = inputs;
    let sequences = state.split_off(state.len() - n);
    let list = |name: &str, n: usize| -> Result<Vec<i64>> {
        let mut list = call.ints_attribute(name)?.unwrap_or_default();
        list.resize(n, 0);
        Ok(list)
    };
    let (axes, directions) = (list("scan_input_axes", n)?, list("scan_input_directions", n)?);
    let mut parts = Vec::with_capacity(n);
    for ((sequence, &axis), &direction) in sequences.iter().zip(&axes).zip(&directions) {
        let x = call.to_tensor(sequence)?;
        let axis = call.axis(axis, x.rank())?;
        call.budget().trace(x.shape()[axis])?;
        let mut steps = x.unbind(axis as isize)?;
        if direction != 0 {
            steps.reverse();
        }
        parts.push(steps);
    }
    let length = parts[0].len();
    if parts.iter().any(|steps| steps.len() != length) {
        return Err(call.error("what is scanned is not equally long"));
    }
    let n_state = state.len();
    let n_out = call.node.outputs.len().saturating_sub(n_state);
    let mut steps: Vec<Vec<Value>> = vec![Vec::new(); n_out];
    for i in 0..length {
        let mut inputs = std::mem::take(&mut state);
        inputs.extend(parts.iter().map(|steps| Value::Tensor(steps[i].clone())));
        let mut outputs = call.subgraph("body", inputs)?;
        if outputs.len() < n_state {
            return Err(call.error("its body has fewer outputs than states"));
        }
        let each = outputs.split_off(n_state);
        state = outputs;
        keep(call, &mut steps, each)?;
    }
    let (axes, directions) =
        (list("scan_output_axes", n_out)?, list("scan_output_directions", n_out)?);
    for ((values, &axis), &direction) in steps.into_iter().zip(&axes).zip(&directions) {
        state.push(stacked(call, values, axis, direction != 0)?);
    }
    Ok(state)
}

/// Scans of opset 8 have a batch in front of all, and lengths as first input.
pub(super) fn batched_scan(call: &Call<'_>) -> Values {
    if call.optional(0).is_some() {
        return Err(call.error("sequence lengths of opset 8 are not supported"));
    }
    let n = usize::try_from(call.int_or("num_scan_inputs", 0)?).unwrap_or(0);
    let inputs: Vec<Tensor> =
        (1..call.inputs.len()).map(|i| call.tensor(i)).collect::<Result<_>>()?;
    let n_state = inputs.len().saturating_sub(n);
    let batch = inputs.first().and_then(|x| x.shape().first().copied()).unwrap_or(0);
    let directions = call.ints_attribute("directions")?.unwrap_or_default();
    let mut gathered: Vec<Vec<Tensor>> = vec![Vec::new(); call.node.outputs.len()];
    for b in 0..batch {
        call.budget().trace(inputs.len())?;
        let of = |x: &Tensor| x.select_index(0, b as isize);
        let mut state: Vec<Value> =
            inputs[..n_state].iter().map(|x| of(x).map(Value::from)).collect::<Result<_>>()?;
        let mut parts = Vec::new();
        for (i, x) in inputs[n_state..].iter().enumerate() {
            let x = of(x)?;
            call.budget().trace(x.shape().first().copied().unwrap_or(0))?;
            let mut steps = x.unbind(0)?;
            if directions.get(i) == Some(&1) {
                steps.reverse();
            }
            parts.push(steps);
        }
        let length = parts.iter().map(Vec::len).min().unwrap_or(0);
        let mut steps: Vec<Vec<Value>> = vec![Vec::new(); gathered.len().saturating_sub(n_state)];
        for i in 0..length {
            let mut inputs = std::mem::take(&mut state);
            inputs.extend(parts.iter().map(|steps| Value::Tensor(steps[i].clone())));
            let mut outputs = call.subgraph("body", inputs)?;
            let each = outputs.split_off(n_state.min(outputs.len()));
            state = outputs;
            keep(call, &mut steps, each)?;
        }
        for values in steps {
            state.push(stacked(call, values, 0, false)?);
        }
        for (gathered, value) in gathered.iter_mut().zip(&state) {
            gathered.push(call.to_tensor(value)?);
        }
    }
    let stack =
        |parts: Vec<Tensor>| Tensor::stack(&parts.iter().collect::<Vec<_>>(), 0).map(Value::from);
    gathered.into_iter().map(stack).collect()
}

fn sequence<'a>(call: &'a Call<'_>, i: usize) -> Result<&'a [Value]> {
    match call.value(i)? {
        Value::Sequence(values) => Ok(values),
        Value::Optional(Some(value)) => match &**value {
            Value::Sequence(values) => Ok(values),
            other => Err(call.error(format!("input {i} is {}, not a sequence", other.kind()))),
        },
        other => Err(call.error(format!("input {i} is {}, not a sequence", other.kind()))),
    }
}

/// A copy of the first input's values.
fn copied(call: &Call<'_>) -> Result<Vec<Value>> {
    let values = sequence(call, 0)?;
    call.budget().ask_for(values.len(), size_of::<Value>())?;
    values.iter().map(|value| call.copied(value)).collect()
}

pub(super) fn sequence_empty(_: &Call<'_>) -> Values {
    one_value(Value::Sequence(Vec::new()))
}

pub(super) fn sequence_construct(call: &Call<'_>) -> Values {
    one_value(Value::Sequence(call.values_from(0)?))
}

pub(super) fn sequence_length(call: &Call<'_>) -> Values {
    let n = sequence(call, 0)?.len();
    one(Host::new([], DType::I64, vec![Scalar::from(n as i64)]))
}

pub(super) fn sequence_at(call: &Call<'_>) -> Values {
    let values = sequence(call, 0)?;
    one_value(call.copied(&values[call.axis(call.int(1)?, values.len())?])?)
}

pub(super) fn sequence_insert(call: &Call<'_>) -> Values {
    let mut values = copied(call)?;
    let at = match call.optional(2) {
        Some(_) => {
            let (at, n) = (call.int(2)?, values.len() as i64);
            let from_front = if at < 0 { at + n } else { at };
            let place = usize::try_from(from_front).ok().filter(|&at| at <= values.len());
            place.ok_or_else(|| call.error(format!("position {at} in a sequence of {n}")))?
        }
        None => values.len(),
    };
    values.insert(at, call.copied(call.value(1)?)?);
    one_value(Value::Sequence(values))
}

pub(super) fn sequence_erase(call: &Call<'_>) -> Values {
    let mut values = copied(call)?;
    let at = call.optional_ints(1)?.and_then(|at| at.first().copied()).unwrap_or(-1);
    values.remove(call.axis(at, values.len())?);
    one_value(Value::Sequence(values))
}

pub(super) fn split_to_sequence(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let axis = call.axis(call.int_or("axis", 0)?, x.rank())?;
    let n = x.shape()[axis];
    let (lengths, keeps) = match call.optional(1) {
        None => (call.budget().collect(n, std::iter::repeat(1))?, call.int_or("keepdims", 1)? != 0),
        Some(value) => {
            let lengths = call.sizes(&call.ints(1)?)?;
            match (value.shape().is_some_and(|shape| shape.is_empty()), lengths.as_slice()) {
                (true, &[length]) if length > 0 => {
                    let lengths = (0..n).step_by(length).map(|at| length.min(n - at));
                    (call.budget().collect(n.div_ceil(length), lengths)?, true)
                }
                (true, _) => return Err(call.error("parts have no length")),
                _ => (lengths, true),
            }
        }
    };
    call.budget().trace(lengths.len())?;
    let parts = x.split_with_sizes(lengths, axis as isize)?;
    let part =
        |x: Tensor| if keeps { Ok(x.into()) } else { x.squeeze(axis as isize).map(Value::from) };
    one_value(Value::Sequence(parts.into_iter().map(part).collect::<Result<_>>()?))
}

pub(super) fn concat_from_sequence(call: &Call<'_>) -> Values {
    let tensors: Vec<Tensor> =
        sequence(call, 0)?.iter().map(|x| call.to_tensor(x)).collect::<Result<_>>()?;
    let tensors: Vec<&Tensor> = tensors.iter().collect();
    let axis = call.int_or("axis", 0)? as isize;
    one(if call.flag("new_axis")? {
        Tensor::stack(&tensors, axis)?
    } else {
        Tensor::cat(&tensors, axis)?
    })
}

pub(super) fn sequence_map(call: &Call<'_>) -> Values {
    let length = sequence(call, 0)?.len();
    let mut gathered: Vec<Vec<Value>> = vec![Vec::new(); call.node.outputs.len()];
    for i in 0..length {
        let mut inputs = Vec::with_capacity(call.inputs.len());
        for k in 0..call.inputs.len() {
            inputs.push(match call.value(k)? {
                Value::Sequence(values) => match values.get(i) {
                    Some(value) => call.copied(value)?,
                    None => return Err(call.error("its sequences are not equally long")),
                },
                other => call.copied(other)?,
            });
        }
        let outputs = call.subgraph("body", inputs)?;
        keep(call, &mut gathered, outputs)?;
    }
    Ok(gathered.into_iter().map(Value::Sequence).collect())
}

pub(super) fn optional(call: &Call<'_>) -> Values {
    let value = call.optional(0).map(|value| call.copied(value)).transpose()?;
    one_value(Value::Optional(value.map(Box::new)))
}

pub(super) fn optional_has_element(call: &Call<'_>) -> Values {
    let has = match call.optional(0) {
        None | Some(Value::Optional(None)) => false,
        Some(_) => true,
    };
    one(Host::new([], DType::Bool, vec![Scalar::from(has)]))
}

pub(super) fn optional_get_element(call: &Call<'_>) -> Values {
    match call.value(0)? {
        Value::Optional(Some(value)) => one_value(call.copied(value)?),
        Value::Optional(None) => Err(call.error("the optional has no value")),
        value => one_value(call.copied(value)?),
    }
}
