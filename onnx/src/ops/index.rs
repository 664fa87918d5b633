//! Elements by position: gathering, scattering, selecting, sorting.

use super::{one, one_value};
use crate::host::numel;
use crate::run::Call;
use crate::value::Value;
use zyx_core::{DType, Result, Scalar, ScatterReduce, Shape, Tensor};

type Values = Result<Vec<Value>>;

/// The entries of an axis at the positions of an index of any shape.
pub(super) fn gather(call: &Call<'_>) -> Values {
    let (shape, picked) = (call.shape(0)?, call.shape(1)?);
    let axis = call.axis(call.int_or("axis", 0)?, shape.len())?;
    let out: Vec<usize> =
        shape[..axis].iter().chain(&picked).chain(&shape[axis + 1..]).copied().collect();
    if let Some(index) = call.host(1) {
        let n = shape[axis];
        let places = index.ints();
        let places: Vec<usize> = places.iter().map(|&i| call.axis(i, n)).collect::<Result<_>>()?;
        if let Some(host) = call.host(0) {
            let inner = numel(&shape[axis + 1..]);
            let outer = numel(&shape[..axis]);
            let rows = (0..outer).flat_map(|o| places.iter().map(move |&i| (o * n + i) * inner));
            let at: Vec<usize> = rows.flat_map(|row| row..row + inner).collect();
            return one(host.pick(out, at));
        }
        if let [at] = places.as_slice() {
            return one(call.tensor(0)?.slice(axis as isize, *at..*at + 1)?.reshape(out)?);
        }
    }
    if let Value::Strings(_, strings) = call.value(0)?
        && shape.len() == 1
    {
        let places = call.ints(1)?;
        let pick = |&i: &i64| call.axis(i, shape[0]).map(|i| strings[i].as_str());
        let picked: Vec<&str> = places.iter().map(pick).collect::<Result<_>>()?;
        return one_value(Value::Strings(out, call.texts(&picked)?));
    }
    let index = from_front(&call.tensor(1)?.flatten(), shape[axis])?;
    one(call.tensor(0)?.index_select(axis as isize, &index)?.reshape(out)?)
}

/// Positions on an axis of so many elements, counted from the front. The standard leaves open what positions out of
/// range do: here they give zero, and write nowhere.
pub(super) fn from_front(index: &Tensor, n: usize) -> Result<Tensor> {
    let index = index.cast(DType::I64);
    Ok(index.lt(0)?.where_(index.add(n as i64)?, &index)?.unchecked_indices())
}

pub(super) fn gather_elements(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let axis = call.axis(call.int_or("axis", 0)?, x.rank())?;
    let index = from_front(&call.tensor(1)?, x.shape()[axis])?;
    one(x.gather(axis as isize, &index)?)
}

/// An index whose last axis are coordinates: their columns, counted from the front, as positions in a flat array of
/// the axes they stand for.
fn flat_positions(index: &Tensor, extents: &[usize]) -> Result<Tensor> {
    let strides = Shape::from(extents).strides();
    let mut at: Option<Tensor> = None;
    for (i, (&n, &stride)) in extents.iter().zip(&strides).enumerate() {
        let column = from_front(&index.select_index(-1, i as isize)?, n)?;
        let part = column.mul(stride as i64)?;
        at = Some(match at {
            Some(at) => at.add(part)?,
            None => part,
        });
    }
    match at {
        Some(at) => Ok(at.unchecked_indices()),
        None => {
            let rank = index.rank();
            Ok(Tensor::zeros(&index.shape()[..rank - 1], DType::I64, index.device()))
        }
    }
}

pub(super) fn gather_nd(call: &Call<'_>) -> Values {
    let (x, index) = (call.tensor(0)?, call.tensor(1)?);
    let batch = usize::try_from(call.int_or("batch_dims", 0)?).unwrap_or(usize::MAX);
    let depth = index.shape().last().copied().unwrap_or(0);
    if batch >= index.rank()
        || batch + depth > x.rank()
        || x.shape()[..batch] != index.shape()[..batch]
    {
        let reason =
            format!("index {} does not fit {} ({batch} batch axes)", index.shape(), x.shape());
        return Err(call.error(reason));
    }
    let outer = numel(&x.shape()[..batch]);
    let middle = numel(&x.shape()[batch..batch + depth]);
    let inner = numel(&x.shape()[batch + depth..]);
    let rows = numel(&index.shape()[batch..index.rank() - 1]);
    let at = flat_positions(&index, &x.shape()[batch..batch + depth])?.reshape([outer, rows])?;
    let base = Tensor::iota(outer, DType::I64, x.device()).mul(middle as i64)?.unsqueeze(1)?;
    let at = at.add(base)?.flatten().unchecked_indices();
    let shape: Vec<usize> = index.shape()[..index.rank() - 1]
        .iter()
        .chain(&x.shape()[batch + depth..])
        .copied()
        .collect();
    one(x.reshape([outer * middle, inner])?.index_select(0, &at)?.reshape(shape)?)
}

fn reduction(call: &Call<'_>) -> Result<Option<ScatterReduce>> {
    Ok(Some(match call.string_or("reduction", "none")? {
        "none" => return Ok(None),
        "add" => ScatterReduce::Sum,
        "mul" => ScatterReduce::Prod,
        "max" => ScatterReduce::Amax,
        "min" => ScatterReduce::Amin,
        other => return Err(call.error(format!("attribute `reduction` is `{other}`"))),
    }))
}

pub(super) fn scatter_elements(call: &Call<'_>) -> Values {
    let (x, index, src) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    let axis = call.axis(call.int_or("axis", 0)?, x.rank())?;
    let index = from_front(&index, x.shape()[axis])?;
    let axis = axis as isize;
    one(match reduction(call)? {
        None => x.scatter(axis, &index, &src)?,
        Some(reduce) => x.scatter_reduce(axis, &index, &src, reduce, true)?,
    })
}

pub(super) fn scatter_nd(call: &Call<'_>) -> Values {
    let (x, index, src) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    let depth = index.shape().last().copied().unwrap_or(0);
    if index.rank() == 0 || depth > x.rank() {
        return Err(call.error(format!("index {} does not fit {}", index.shape(), x.shape())));
    }
    let outer = numel(&x.shape()[..depth]);
    let inner = numel(&x.shape()[depth..]);
    let rows = numel(&index.shape()[..index.rank() - 1]);
    let at = flat_positions(&index, &x.shape()[..depth])?.reshape([rows, 1])?;
    let at = at.broadcast_to([rows, inner])?;
    let (flat, src) = (x.reshape([outer, inner])?, src.reshape([rows, inner])?);
    let y = match reduction(call)? {
        None => flat.scatter(0, &at, &src)?,
        Some(reduce) => flat.scatter_reduce(0, &at, &src, reduce, true)?,
    };
    one(y.reshape(x.shape())?)
}

pub(super) fn non_zero(call: &Call<'_>) -> Values {
    call.run.has_read.set(true);
    let x = call.tensor(0)?;
    call.budget().ask_for(x.numel(), size_of::<i64>())?;
    let found = x.nonzero()?;
    one(found.transpose(0, 1)?)
}

pub(super) fn compress(call: &Call<'_>) -> Values {
    let keep = call.ints(1)?;
    let places: Vec<i64> =
        keep.iter().enumerate().filter(|&(_, &kept)| kept != 0).map(|(i, _)| i as i64).collect();
    let index = Tensor::from_slice(&places, [places.len()], call.device())?;
    let x = call.tensor(0)?;
    one(match call.int_attribute("axis")? {
        Some(axis) => x.index_select(call.axis(axis, x.rank())? as isize, &index)?,
        None => x.flatten().index_select(0, &index)?,
    })
}

pub(super) fn topk(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let k = match call.opset() >= 10 {
        true => call.int(1)?,
        false => call.int_or("k", 1)?,
    };
    let k = usize::try_from(k).map_err(|_| call.error("k is negative"))?;
    let axis = call.axis(call.int_or("axis", -1)?, x.rank())?;
    let (values, positions) = x.topk(k, axis as isize, call.int_or("largest", 1)? != 0)?;
    Ok(vec![values.into(), positions.into()])
}

/// Values in order of size or of appearance, the first place of each, where each element's is, and how many.
pub(super) fn unique(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let sorted = call.int_or("sorted", 1)? != 0;
    let axis = call.int_attribute("axis")?.map(|axis| call.axis(axis, x.rank())).transpose()?;
    // Rows of what is compared, on the host.
    let rows = match axis {
        None => x.reshape([x.numel(), 1])?,
        Some(axis) => {
            let n = x.shape()[axis];
            let front = x.movedim([axis as isize], [0])?;
            front.reshape([n, x.numel().checked_div(n).unwrap_or(0)])?
        }
    };
    let host = call.read_tensor(&rows)?;
    let (n, width) = (rows.shape()[0], rows.shape()[1]);
    // A position, a group and the lists that are made of them.
    call.budget().ask_for(n, 2 * size_of::<Vec<usize>>() + 6 * size_of::<usize>())?;
    let row = |i: usize| &host.numbers()[i * width..(i + 1) * width];
    let compare = |a: &usize, b: &usize| {
        let pairs = row(*a).iter().zip(row(*b));
        let order = |(x, y): (&Scalar, &Scalar)| match host.dtype().is_float() {
            true => x.to_f64().total_cmp(&y.to_f64()),
            false => x.to_i128().cmp(&y.to_i128()),
        };
        pairs.map(order).find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    };
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(compare);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for i in order {
        match groups.last_mut() {
            Some(group) if compare(&group[0], &i).is_eq() => group.push(i),
            _ => groups.push(vec![i]),
        }
    }
    if !sorted {
        groups.sort_by_key(|group| group[0]);
    }
    let mut inverse = vec![0i64; n];
    for (at, group) in groups.iter().enumerate() {
        group.iter().for_each(|&i| inverse[i] = at as i64);
    }
    let firsts: Vec<i64> = groups.iter().map(|group| group[0] as i64).collect();
    let counts: Vec<i64> = groups.iter().map(|group| group.len() as i64).collect();
    let vector = |numbers: &[i64]| Tensor::from_slice(numbers, [numbers.len()], call.device());
    let firsts = vector(&firsts)?;
    let values = match axis {
        None => x.flatten().index_select(0, &firsts)?,
        Some(axis) => x.index_select(axis as isize, &firsts)?,
    };
    Ok(vec![values.into(), firsts.into(), vector(&inverse)?.into(), vector(&counts)?.into()])
}

/// Rows written into a cache at each batch's position.
pub(super) fn tensor_scatter(call: &Call<'_>) -> Values {
    let (cache, update) = (call.tensor(0)?, call.tensor(1)?);
    let axis = call.axis(call.int_or("axis", -2)?, cache.rank())?;
    if update.rank() != cache.rank() {
        let (cache, update) = (cache.shape(), update.shape());
        return Err(call.error(format!("an update {update} of a cache {cache}")));
    }
    let (n, written) = (cache.shape()[axis], update.shape()[axis]);
    let batch = cache.shape()[0];
    let mut column = vec![1; cache.rank()];
    column[0] = batch;
    let start = match call.optional_tensor(2)? {
        Some(start) => start.cast(DType::I64).reshape(column)?,
        None => Tensor::zeros(column, DType::I64, call.device()),
    };
    let mut row = vec![1; cache.rank()];
    row[axis] = written;
    let at = Tensor::iota(written, DType::I64, call.device()).reshape(row)?.add(&start)?;
    let at = match call.string_or("mode", "linear")? {
        "circular" => at.remainder(n as i64)?,
        _ => at.unchecked_indices(),
    };
    one(cache.scatter(axis as isize, &at.broadcast_to(update.shape())?, &update)?)
}
