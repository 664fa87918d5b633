//! `x[...]`: integers, slices with steps, `None`, `...`, integer and boolean tensors and arrays.
//!
//! The rules are NumPy's. What is basic (integers, slices, new axes) is a view, to which a write is a write to the
//! tensor; what is advanced becomes one selection: the indexed axes are brought to the front
//! and joined, the index tensors are combined into one position, and the axes of their common shape
//! stand where the indexed axes stood, if those were neighbours, or else at the front.
//!
//! Positions given as numbers, lists and arrays are checked; positions in a tensor are not known
//! before it is computed, and one out of range gives zero, as everywhere in zyx.

use crate::arguments::{Argument, OperandArg, Ready, TensorArg, index};
use crate::data::{self, Host};
use crate::error::{caught, detached};
use crate::tensor::PyTensor;
use crate::views::{Seen, Step, Steps, reshaped};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PySlice, PyTuple};
use zyx::{DType, Device, Error, Index, Operand as _, Shape, Tensor};

/// One entry of an index.
enum Key<'py> {
    Position(isize),
    Range(Bound<'py, PySlice>),
    NewAxis,
    Rest,
    /// A truth value, which stands for a new axis of one or no entry.
    Truth(bool),
    /// Positions, and whether they were checked to be integers only.
    Positions {
        index: Tensor,
        known: Option<Vec<i64>>,
    },
    Mask(Tensor),
}

/// An advanced index: the axis it is for, counted after the basic ones.
struct Advanced {
    axis: usize,
    index: Tensor,
    known: Option<Vec<i64>>,
}

/// An index as methods of Rust take it, of any object that `x[..]` takes.
#[derive(Debug)]
pub(crate) struct KeyArg(Vec<Part>);

#[derive(Debug)]
enum Part {
    Plain(Index),
    Tensor(TensorArg),
}

impl FromPyObject<'_, '_> for KeyArg {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<KeyArg> {
        match object.cast::<PyTuple>() {
            Ok(tuple) => tuple.iter().map(|item| part(&item)).collect::<PyResult<_>>().map(KeyArg),
            Err(_) => Ok(KeyArg(vec![part(&object)?])),
        }
    }
}

fn part(key: &Bound<'_, PyAny>) -> PyResult<Part> {
    let plain = match () {
        () if key.is_none() => Index::NewAxis,
        () if key.is_instance_of::<PyEllipsis>() => Index::Ellipsis,
        () if key.is_instance_of::<PyInt>() && !key.is_instance_of::<PyBool>() => {
            Index::At(key.extract().map_err(|_| far(key))?)
        }
        () => match key.cast::<PySlice>() {
            Ok(range) => {
                let end = |name: &str| range.getattr(name)?.extract::<Option<isize>>();
                let step = end("step")?.unwrap_or(1);
                Index::Range { start: end("start")?, end: end("stop")?, step }
            }
            Err(_) => return key.extract().map(Part::Tensor),
        },
    };
    Ok(Part::Plain(plain))
}

impl Argument for KeyArg {
    type Ready = Vec<Index>;
    fn ready(self, here: &Device) -> PyResult<Vec<Index>> {
        let one = |part| match part {
            Part::Plain(index) => Ok(index),
            Part::Tensor(tensor) => tensor.ready(here).map(Index::Tensor),
        };
        self.0.into_iter().map(one).collect()
    }
}

#[pymethods]
impl PyTensor {
    fn __getitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
        let py = key.py();
        // The common case first.
        if let Some(position) = position(key)? {
            return Ok(self.seen(py, &|t| pick(t, 0, position))?.0);
        }
        let t = self.tensor();
        let keys = parsed(&t, key)?;
        if keys.iter().any(is_advanced) {
            return select(py, t, keys).map(PyTensor::new);
        }
        match basic(py, &t, keys)? {
            (tensor, Some(steps)) => Ok(self.seen_as((tensor, steps))),
            (tensor, None) => Ok(PyTensor::new(tensor)),
        }
    }

    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, t) = (key.py(), self.tensor());
        let given = value.cast::<PyTensor>().ok().map(|value| value.get());
        let value = value.extract::<OperandArg>()?.ready(t.device())?;
        let keys = match position(key)? {
            Some(position) => vec![Key::Position(position)],
            None => parsed(&t, key)?,
        };
        if !keys.iter().any(is_advanced) {
            let (tensor, steps) = basic(py, &t, keys)?;
            let Some(steps) = steps else {
                return Err(PyValueError::new_err("step must be greater than zero"));
            };
            let place = self.seen_as((tensor, steps));
            // `x[key] += y` has written to the view that it is about to write.
            if given.is_some_and(|given| given.is_same(&place)) {
                self.alias().touch();
                return Ok(());
            }
            return place.fill(py, value);
        }
        let value = match &keys[..] {
            // One value wherever a mask holds: this needs no positions, so it can be traced.
            [Key::Mask(mask)] if let Some(value) = for_all(&value, &t, mask) => {
                let rest = vec![1; t.rank() - mask.rank()];
                caught(py, || {
                    let mask = mask.to_device(t.device())?;
                    let dims = [mask.shape().dims(), &rest].concat();
                    mask.reshape(dims)?.where_(value.cast(t.dtype()), &t)
                })?
            }
            _ => {
                let parts = keys.into_iter().map(|key| index_part(py, &t, key));
                let parts = parts.collect::<PyResult<Vec<_>>>()?;
                detached(py, || {
                    let value = alone(&value, &t).to_device(t.device())?.cast(t.dtype());
                    t.index_put(&parts, &without_front_ones(&value, &t)?, false)
                })?
            }
        };
        self.write(py, &value)
    }

    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = key;
        Err(PyTypeError::new_err("elements of a tensor cannot be deleted"))
    }

    fn __contains__(&self, py: Python<'_>, value: OperandArg) -> PyResult<bool> {
        let t = self.tensor();
        let value = value.ready(t.device())?;
        detached(py, || t.eq(value)?.any(..)?.item::<bool>())
    }
}

/// The position that a key is, if it is one integer of Python.
fn position(key: &Bound<'_, PyAny>) -> PyResult<Option<isize>> {
    match key.cast::<PyInt>() {
        Ok(position) if !key.is_instance_of::<PyBool>() => {
            position.extract::<isize>().map(Some).map_err(|_| far(key))
        }
        _ => Ok(None),
    }
}

/// The entries of an index.
fn parsed<'py>(t: &Tensor, key: &Bound<'py, PyAny>) -> PyResult<Vec<Key<'py>>> {
    match key.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().map(|item| parse(t, &item)).collect(),
        Err(_) => Ok(vec![parse(t, key)?]),
    }
}

fn is_advanced(key: &Key<'_>) -> bool {
    matches!(key, Key::Truth(_) | Key::Positions { .. } | Key::Mask(_))
}

/// A value in the shape and dtype of the place that it is written to.
pub(crate) fn filling(py: Python<'_>, value: Ready, place: &Tensor) -> PyResult<Tensor> {
    if let Ready::Number(x) = value {
        return Ok(x.full(place.shape().clone(), Some(place.dtype()), place.device()));
    }
    let value = value.resolve(place);
    detached(py, || {
        let value = value.to_device(place.device())?.cast(place.dtype());
        without_front_ones(&value, place)?.expand(place.shape().clone())
    })
}

/// Without axes of extent 1 in front that the place does not have.
fn without_front_ones(value: &Tensor, place: &Tensor) -> zyx::Result<Tensor> {
    let dims = value.shape().dims();
    let more = dims.len().saturating_sub(place.rank());
    match dims[..more].iter().all(|&n| n == 1) {
        true if more > 0 => value.reshape(&dims[more..]),
        _ => Ok(value.clone()),
    }
}

/// A value that is the same for all places where a mask holds.
fn for_all(value: &Ready, t: &Tensor, mask: &Tensor) -> Option<Tensor> {
    let fits = t.shape().dims().get(..mask.rank()) == Some(mask.shape().dims());
    let value = alone(value, t);
    (fits && value.numel() == 1 && value.rank() <= t.rank() && value.device() == t.device())
        .then_some(value)
}

/// A value that is written: of a number one without axes.
fn alone(value: &Ready, t: &Tensor) -> Tensor {
    match value {
        Ready::Number(x) => x.full(Shape::scalar(), Some(t.dtype()), t.device()),
        Ready::Tensor(value) => value.clone(),
    }
}

/// An entry as methods of Rust take it.
fn index_part(py: Python<'_>, t: &Tensor, key: Key<'_>) -> PyResult<Index> {
    Ok(match key {
        Key::Position(at) => Index::At(at),
        Key::Range(range) => {
            let part = part(range.as_any())?;
            let Part::Plain(index @ Index::Range { step: 1.., .. }) = part else {
                return Err(PyValueError::new_err("step must be greater than zero"));
            };
            index
        }
        Key::NewAxis => Index::NewAxis,
        Key::Rest => Index::Ellipsis,
        Key::Truth(truth) => Index::Tensor(Tensor::full(Shape::scalar(), truth, t.device())),
        Key::Positions { index, known: _ } | Key::Mask(index) => {
            Index::Tensor(caught(py, || index.to_device(t.device()))?)
        }
    })
}

fn far(key: &Bound<'_, PyAny>) -> PyErr {
    PyIndexError::new_err(format!("index {key} is out of bounds"))
}

/// What an entry is.
fn parse<'py>(t: &Tensor, key: &Bound<'py, PyAny>) -> PyResult<Key<'py>> {
    if key.is_none() {
        return Ok(Key::NewAxis);
    }
    if key.is_instance_of::<PyEllipsis>() {
        return Ok(Key::Rest);
    }
    if let Ok(truth) = key.cast::<PyBool>() {
        return Ok(Key::Truth(truth.is_true()));
    }
    if key.is_instance_of::<PyInt>() {
        return Ok(Key::Position(key.extract().map_err(|_| far(key))?));
    }
    if let Ok(range) = key.cast::<PySlice>() {
        return Ok(Key::Range(range.clone()));
    }
    if let Ok(index) = key.cast::<PyTensor>() {
        let index = index.get().tensor();
        if index.rank() == 0 && index.dtype() == DType::Bool {
            return Ok(Key::Truth(detached(key.py(), || index.item::<bool>())?));
        }
        return tensor_key(index, None);
    }
    // Integers of NumPy.
    if !key.hasattr("__len__")?
        && let Some(position) = index(key)?
    {
        return Ok(Key::Position(position.extract().map_err(|_| far(key))?));
    }
    let host = data::read(key)?;
    if host.shape().is_empty() && host.dtype() == DType::Bool {
        return Ok(Key::Truth(key.is_truthy()?));
    }
    // An empty list has no dtype of its own.
    let empty = matches!(&host, Host::Numbers { values, .. } if values.is_empty());
    let index = host.tensor(empty.then_some(DType::I64), t.device())?;
    let known = match index.dtype().is_int() {
        true => Some(detached(key.py(), || index.cast(DType::I64).to_vec::<i64>())?),
        false => None,
    };
    tensor_key(index, known)
}

fn tensor_key<'py>(index: Tensor, known: Option<Vec<i64>>) -> PyResult<Key<'py>> {
    match index.dtype() {
        DType::Bool => Ok(Key::Mask(index)),
        dtype if dtype.is_int() => Ok(Key::Positions { index, known }),
        dtype => {
            let text = format!("an index holds integers or truth values, not {dtype}");
            Err(PyIndexError::new_err(text))
        }
    }
}

/// How many axes of the tensor an entry takes.
fn taken(key: &Key<'_>) -> usize {
    match key {
        Key::NewAxis | Key::Rest | Key::Truth(_) => 0,
        Key::Position(_) | Key::Range(_) | Key::Positions { .. } => 1,
        Key::Mask(mask) => mask.rank(),
    }
}

/// How many axes an ellipsis stands for.
fn rest_of(t: &Tensor, keys: &[Key<'_>]) -> PyResult<usize> {
    let used: usize = keys.iter().map(taken).sum();
    let rests = keys.iter().filter(|key| matches!(key, Key::Rest)).count();
    if rests > 1 {
        return Err(PyIndexError::new_err("an index can have only one ellipsis (`...`)"));
    }
    t.rank().checked_sub(used).ok_or_else(|| {
        let text = format!("{used} indices for a tensor of {} axes", t.rank());
        PyIndexError::new_err(text)
    })
}

/// Applies entries that are all basic. Without steps where a range runs backwards, which is a copy.
fn basic(py: Python<'_>, t: &Tensor, keys: Vec<Key<'_>>) -> PyResult<(Tensor, Option<Steps>)> {
    let (rest, mut t, mut axis, mut steps) =
        (rest_of(t, &keys)?, t.clone(), 0, Some(Steps::default()));
    for key in keys {
        let (next, step) = match key {
            Key::NewAxis => {
                let (next, step) = caught(py, || reshaped(t.unsqueeze(axis as isize)))?;
                axis += 1;
                (next, Some(step))
            }
            Key::Range(range) => {
                let found = cut(&t, axis, &range)?;
                axis += 1;
                found
            }
            Key::Position(position) => {
                let (next, step) = caught(py, || pick(&t, axis, position))?;
                (next, Some(step))
            }
            Key::Rest | Key::Truth(_) | Key::Positions { .. } | Key::Mask(_) => {
                axis += rest;
                continue;
            }
        };
        t = next;
        match (&mut steps, step) {
            (Some(steps), Some(step)) => step.into_iter().for_each(|step| steps.push(step)),
            (steps, _) => *steps = None,
        }
    }
    Ok((t, steps))
}

/// Applies the entries.
fn select(py: Python<'_>, mut t: Tensor, keys: Vec<Key<'_>>) -> PyResult<Tensor> {
    if let [Key::Mask(mask)] = &keys[..]
        && mask.shape().same(t.shape())
    {
        return detached(py, || t.masked_select(&mask.to_device(t.device())?));
    }
    let rest = rest_of(&t, &keys)?;
    // Beside an advanced index a plain position is one too: NumPy's rule.
    let any_advanced = keys.iter().any(is_advanced);
    let (mut axis, mut advanced, mut groups, mut in_group) = (0, Vec::new(), 0, false);
    for key in keys {
        let joins = is_advanced(&key) || (any_advanced && matches!(key, Key::Position(_)));
        groups += usize::from(joins && !in_group);
        in_group = joins;
        match key {
            Key::NewAxis => {
                t = caught(py, || t.unsqueeze(axis as isize))?;
                axis += 1;
            }
            Key::Rest => axis += rest,
            Key::Range(range) => {
                t = cut(&t, axis, &range)?.0;
                axis += 1;
            }
            Key::Position(position) if !any_advanced => {
                t = caught(py, || pick(&t, axis, position))?.0
            }
            Key::Position(position) => {
                let n = t.shape()[axis];
                let position = wrap(position as i64, axis, n)?;
                let index = caught(py, || Tensor::from_slice(&[position], [], t.device()))?;
                advanced.push(Advanced { axis, index, known: None });
                axis += 1;
            }
            Key::Truth(truth) => {
                t = caught(py, || t.unsqueeze(axis as isize))?;
                let positions = vec![0i64; usize::from(truth)];
                let index =
                    caught(py, || Tensor::from_slice(&positions, [positions.len()], t.device()))?;
                advanced.push(Advanced { axis, index, known: None });
                axis += 1;
            }
            Key::Positions { index, known } => {
                advanced.push(Advanced { axis, index, known });
                axis += 1;
            }
            Key::Mask(mask) => {
                let found = positions(py, &t, axis, &mask)?;
                axis += mask.rank();
                advanced.extend(found);
            }
        }
    }
    if advanced.is_empty() { Ok(t) } else { gather(py, &t, &advanced, groups == 1) }
}

/// A position from the front; checked.
fn wrap(position: i64, axis: usize, n: usize) -> PyResult<i64> {
    let extent = n as i64;
    if (-extent..extent).contains(&position) {
        return Ok(if position < 0 { position + extent } else { position });
    }
    let text = format!("index {position} is out of bounds for axis {axis} with size {n}");
    Err(PyIndexError::new_err(text))
}

/// One entry of an axis, which goes.
fn pick(t: &Tensor, axis: usize, position: isize) -> zyx::Result<Seen> {
    let refuse = |exception| Error::Function(Box::new(exception));
    let Some(&n) = t.shape().get(axis) else {
        let text = "a tensor without axes cannot be indexed by position";
        return Err(refuse(PyIndexError::new_err(text)));
    };
    let position = wrap(position as i64, axis, n).map_err(refuse)? as usize;
    let y = t.select_index(axis as isize, position as isize)?;
    Ok((y, Step::Select { axis, position }.into()))
}

/// A range of an axis, with any step but 0, and the step of the view that it is unless it runs backwards.
fn cut(t: &Tensor, axis: usize, range: &Bound<'_, PySlice>) -> PyResult<(Tensor, Option<Steps>)> {
    let n = t.shape()[axis];
    let range_of = range.indices(n as isize)?;
    let (start, step, count) = (range_of.start, range_of.step, range_of.slicelength);
    let seen = usize::try_from(step).ok().map(|step| match (start, step, count == n) {
        (0, 1, true) => Steps::default(),
        // An empty range may start behind the end.
        _ => Step::Slice { axis, start: (start.max(0) as usize).min(n), step, count }.into(),
    });
    let axis = axis as isize;
    let found = caught(range.py(), || {
        if count == 0 {
            return t.slice(axis, 0..0);
        }
        let last = start + (count as isize - 1) * step;
        let (low, high) = (start.min(last) as usize, start.max(last) as usize);
        let mut t = if (low, high + 1) == (0, n) { t.clone() } else { t.slice(axis, low..=high)? };
        if step < 0 {
            t = t.flip([axis])?;
        }
        if step.unsigned_abs() > 1 && count > 1 {
            t = t.stride(axis, 0, step.unsigned_abs())?;
        }
        Ok(t)
    })?;
    Ok((found, seen))
}

/// Where a mask holds, as positions along each of its axes.
fn positions(py: Python<'_>, t: &Tensor, axis: usize, mask: &Tensor) -> PyResult<Vec<Advanced>> {
    let over = &t.shape()[axis..axis + mask.rank()];
    if mask.shape().dims() != over {
        let text = format!("a mask of shape {} for axes of shape {over:?}", mask.shape());
        return Err(PyIndexError::new_err(text));
    }
    let at = detached(py, || mask.to_device(t.device())?.nonzero())?;
    let along = |i: usize| caught(py, || at.select_index(1, i as isize));
    (0..mask.rank())
        .map(|i| Ok(Advanced { axis: axis + i, index: along(i)?, known: None }))
        .collect()
}

/// Selects by index tensors.
fn gather(py: Python<'_>, t: &Tensor, indices: &[Advanced], together: bool) -> PyResult<Tensor> {
    for Advanced { axis, known, .. } in indices {
        for &position in known.iter().flatten() {
            wrap(position, *axis, t.shape()[*axis])?;
        }
    }
    let mut common = Shape::scalar();
    for Advanced { index, .. } in indices {
        common = common.broadcast(index.shape()).ok_or_else(|| {
            let shapes: Vec<String> = indices.iter().map(|x| x.index.shape().to_string()).collect();
            let text = format!("indices of shapes {} do not broadcast", shapes.join(", "));
            PyIndexError::new_err(text)
        })?;
    }
    let front: Vec<isize> = indices.iter().map(|x| x.axis as isize).collect();
    let others: Vec<isize> = (0..t.rank() as isize).filter(|axis| !front.contains(axis)).collect();
    let extents: Vec<usize> = indices.iter().map(|x| t.shape()[x.axis]).collect();
    let kept: Vec<usize> = others.iter().map(|&axis| t.shape()[axis as usize]).collect();
    caught(py, || {
        let joined: usize = extents.iter().product();
        let rows = t.permute([&front[..], &others].concat())?;
        let rows = rows.reshape([&[joined], &kept[..]].concat())?;
        let mut place: Option<Tensor> = None;
        for (Advanced { index, .. }, &extent) in indices.iter().zip(&extents) {
            let index = index.to_device(t.device())?.cast(DType::I64);
            let index = index.positions_within("index", extent)?.expand(common.clone())?;
            place = Some(match place {
                None => index,
                Some(place) => place.mul(extent as i64)?.add(index)?,
            });
        }
        let Some(place) = place else { return Ok(t.clone()) };
        let found = rows.index_select(0, &place.flatten().unchecked_indices())?;
        let found = found.reshape([common.dims(), &kept].concat())?;
        if !together {
            return Ok(found);
        }
        // The new axes stand where the first indexed one stood.
        let before = others.iter().filter(|&&axis| axis < front[0]).count();
        let (new, all) = (common.rank(), common.rank() + kept.len());
        let order = (new..new + before).chain(0..new).chain(new + before..all);
        found.permute(order.map(|axis| axis as isize).collect::<Vec<_>>())
    })
}
