//! The meaning of the graph, executable: every node evaluated element by element.
//!
//! Slow and obvious. It is the top rung of the test ladder: lowering, passes and devices are all
//! compared with it, directly or in steps.

use super::fourier::{self, Form};
use super::{Graph, Node, NodeId, Place, UpdateOrder, axes_of};
use crate::dtype::DType;
use crate::ops::BinaryOp;
use crate::scalar::Scalar;
use crate::shape::Shape;
use smallvec::{SmallVec, smallvec};

/// A dense array of scalars in row-major order.
#[derive(Clone, Debug)]
struct Array {
    shape: Shape,
    data: Vec<Scalar>,
}

/// The outputs' elements, given the leaves' elements and the bits of scalar arguments.
pub(crate) fn evaluate(
    graph: &Graph,
    leaves: &[Vec<Scalar>],
    arguments: &[u64],
) -> Vec<Vec<Scalar>> {
    let mut arrays: Vec<Array> = Vec::with_capacity(graph.len());
    for id in graph.ids() {
        let data = node(graph, id, &arrays, leaves, arguments);
        debug_assert_eq!(data.len(), graph.shape(id).numel(), "node {id:?}");
        arrays.push(Array { shape: graph.shape(id).clone(), data });
    }
    graph.outputs.iter().map(|id| arrays[id.idx()].data.clone()).collect()
}

/// A place in an array, axis by axis.
type Index = SmallVec<[usize; 8]>;

type Strides = SmallVec<[isize; 8]>;

/// All places of a shape in row-major order.
fn indices(shape: &Shape) -> impl Iterator<Item = Index> + use<> {
    let dims = Index::from_slice(shape);
    let first = (shape.numel() > 0).then(|| smallvec![0; dims.len()]);
    std::iter::successors(first, move |index: &Index| {
        let mut next = index.clone();
        for axis in (0..dims.len()).rev() {
            next[axis] += 1;
            if next[axis] < dims[axis] {
                return Some(next);
            }
            next[axis] = 0;
        }
        None
    })
}

/// `base` and `strides` times the place, for all places of a shape in row-major order.
fn positions(shape: &Shape, base: isize, strides: Strides) -> impl Iterator<Item = usize> + use<> {
    let dims = Index::from_slice(shape);
    let (mut index, mut next): (Index, _) = (smallvec![0; dims.len()], base);
    (0..shape.numel()).map(move |_| {
        let position = next;
        for axis in (0..dims.len()).rev() {
            index[axis] += 1;
            next += strides[axis];
            if index[axis] < dims[axis] {
                break;
            }
            next -= strides[axis] * dims[axis] as isize;
            index[axis] = 0;
        }
        position as usize
    })
}

/// Elements between neighbours along each axis.
fn row_major(shape: &Shape) -> Strides {
    let mut strides: Strides = smallvec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis] as isize;
    }
    strides
}

impl Array {
    fn flat(&self, index: &[usize]) -> usize {
        index.iter().zip(self.shape.iter()).fold(0, |flat, (&i, &d)| flat * d + i)
    }

    fn at(&self, index: &[usize]) -> Scalar {
        self.data[self.flat(index)]
    }
}

/// Running results of `step` along an axis: where it is, what came before, and the element itself.
fn running(
    x: &Array,
    axis: u8,
    reverse: bool,
    step: impl Fn(usize, Scalar, Scalar) -> Scalar,
) -> Vec<Scalar> {
    let mut out = x.clone();
    let (axis, extent) = (axis as usize, x.shape[axis as usize]);
    for i in indices(&x.shape) {
        if i[axis] == 0 {
            continue;
        }
        let at = |position: usize| {
            let mut i = i.clone();
            i[axis] = if reverse { extent - 1 - position } else { position };
            out.flat(&i)
        };
        let (previous, here) = (at(i[axis] - 1), at(i[axis]));
        out.data[here] = step(here, out.data[previous], out.data[here]);
    }
    out.data
}

fn node(
    graph: &Graph,
    id: NodeId,
    arrays: &[Array],
    leaves: &[Vec<Scalar>],
    arguments: &[u64],
) -> Vec<Scalar> {
    let (shape, dtype) = (graph.shape(id), graph.dtype(id));
    let of = |x: NodeId| &arrays[x.idx()];
    let moved = |x: NodeId, map: &dyn Fn(Index) -> Option<Index>| {
        let zero = Scalar::from_i64(dtype, 0);
        indices(shape).map(|i| map(i).map_or(zero, |i| of(x).at(&i))).collect()
    };
    let viewed = |x: NodeId, base: isize, strides: Strides| {
        positions(shape, base, strides).map(|at| of(x).data[at]).collect()
    };
    match graph.node(id) {
        Node::Leaf { slot } => leaves[slot as usize].clone(),
        Node::Const { bits } => vec![Scalar::from_bits(dtype, bits); shape.numel()],
        Node::Argument { slot } => {
            vec![Scalar::from_bits(dtype, arguments[slot as usize]); shape.numel()]
        }
        Node::Iota => (0..shape.numel()).map(|i| Scalar::from_i64(dtype, i as i64)).collect(),
        Node::Unary { op, x } => of(x).data.iter().map(|&x| op.eval(x)).collect(),
        Node::Binary { op, x, y } => {
            of(x).data.iter().zip(&of(y).data).map(|(&x, &y)| op.eval(x, y)).collect()
        }
        Node::Ternary { op, x, y, z } => (0..shape.numel())
            .map(|i| op.eval(of(x).data[i], of(y).data[i], of(z).data[i]))
            .collect(),
        Node::Cast { x } => of(x).data.iter().map(|x| x.cast(dtype)).collect(),
        Node::Bitcast { x } => of(x).data.iter().map(|x| x.bitcast(dtype)).collect(),
        Node::Reshape { x } | Node::Copy { x } => of(x).data.clone(),
        Node::Permute { x, perm } => {
            let from = row_major(&of(x).shape);
            viewed(x, 0, (0..shape.len()).map(|axis| from[perm.get(axis)]).collect())
        }
        Node::Expand { x } => {
            let axes = row_major(&of(x).shape).into_iter().zip(of(x).shape.iter());
            viewed(x, 0, axes.map(|(stride, &d)| if d == 1 { 0 } else { stride }).collect())
        }
        Node::Pad { x, list } => moved(x, &|i| {
            let inside = i.iter().zip(graph.list(list)).zip(of(x).shape.iter());
            let before = |&p| Place::of(p).value(arguments);
            inside.map(|((&i, p), &d)| i.checked_sub(before(p)).filter(|&i| i < d)).collect()
        }),
        Node::Shrink { x, list } => {
            let strides = row_major(&of(x).shape);
            let starts = graph.list(list).iter().zip(&strides);
            let start = |&start| Place::of(start).value(arguments) as isize;
            viewed(x, starts.map(|(at, stride)| start(at) * stride).sum(), strides)
        }
        Node::Flip { x, axes } => {
            let (mut base, mut strides) = (0, row_major(shape));
            for axis in axes_of(axes) {
                base += (shape[axis] as isize - 1) * strides[axis];
                strides[axis] = -strides[axis];
            }
            viewed(x, base, strides)
        }
        Node::Gather { axis, x, index } => moved(x, &|mut i| {
            let picked = of(index).at(&i).to_i64();
            let axis = axis as usize;
            i[axis] = usize::try_from(picked).ok().filter(|&p| p < of(x).shape[axis])?;
            Some(i)
        }),
        Node::Reduce { op, axes, x } => {
            let identity = op.identity(dtype).expect("invariant: reductions are associative");
            let (mut out, mut strides) = (vec![identity; shape.numel()], row_major(shape));
            axes_of(axes).for_each(|axis| strides[axis] = 0);
            for (&element, at) in of(x).data.iter().zip(positions(&of(x).shape, 0, strides)) {
                out[at] = op.eval(out[at], element);
            }
            out
        }
        Node::Scan { op, axis, reverse, x, .. } => {
            running(of(x), axis, reverse, |_, before, element| op.eval(before, element))
        }
        Node::Recurrence { axis, reverse, x, factor } => {
            running(of(x), axis, reverse, |at, before, element| {
                let zero = before.to_f64() == 0.0;
                let factor = of(factor).data[at];
                let carried = if zero { before } else { BinaryOp::Mul.eval(factor, before) };
                BinaryOp::Add.eval(carried, element)
            })
        }
        Node::RadixScatter { x, shift, starts } => {
            let mut out = of(x).clone();
            let length = shape[1].max(1);
            for (block, elements) in of(x).data.chunks(length).enumerate() {
                let first = |bin: usize| of(starts).at(&[block, bin]).to_i64();
                let mut next: Vec<i64> = (0..of(starts).shape[1]).map(first).collect();
                for (i, &element) in elements.iter().enumerate() {
                    let shifted = BinaryOp::Shr.eval(element, of(shift).at(&[block, i]));
                    let place = &mut next[shifted.cast(DType::U8).to_i64() as usize];
                    if let Some(slot) =
                        out.data.get_mut(usize::try_from(*place).unwrap_or(usize::MAX))
                    {
                        *slot = element;
                    }
                    *place += 1;
                }
            }
            out.data
        }
        // Lists of inputs have no value.
        Node::Operands { .. } => vec![Scalar::from_i64(dtype, 0); shape.numel()],
        Node::Kernel { call, .. } => {
            let call = &graph.calls[call as usize];
            let bytes = |x: &NodeId| -> Vec<u8> {
                let size = graph.dtype(*x).size();
                of(*x).data.iter().flat_map(|x| x.bits().to_le_bytes()[..size].to_vec()).collect()
            };
            let inputs: Vec<Vec<u8>> = graph.inputs_of_kernel(id).iter().map(bytes).collect();
            let results = call.interpret(&inputs, None).expect("a right kernel");
            let slot = call.arguments(false).nth(call.output).map(|x| x.0);
            Scalar::read_all(dtype, &results[slot.expect("invariant: it is an output")])
        }
        Node::SortRows { first, bits, x } => {
            let mut out = of(x).clone();
            let mask = u64::MAX >> (64 - bits.clamp(1, 64));
            let key = |x: &Scalar| x.bits() >> first & mask;
            let length = shape.last().map_or(1, |&n| n.max(1));
            out.data.chunks_mut(length).for_each(|row| row.sort_by_key(key));
            out.data
        }
        Node::Fourier { x, inverse, real, done, .. } => {
            let form = Form { inverse, real, done };
            transform(&of(x).data, &of(x).shape, dtype, form)
        }
        Node::Scatter { axis, op: Some(op), order: UpdateOrder::Sorted, base, index: ends, x } => {
            let mut out = of(base).clone();
            let axis = axis as usize;
            let n = of(x).shape[axis];
            for i in indices(&of(base).shape) {
                let mut j = i.clone();
                let end = of(ends).at(&i).to_i64();
                j[axis] = i[axis].wrapping_sub(1);
                let start = if i[axis] == 0 { 0 } else { of(ends).at(&j).to_i64() };
                let flat = out.flat(&i);
                for at in start.max(0)..end.min(n as i64) {
                    j[axis] = at as usize;
                    out.data[flat] = op.eval(out.data[flat], of(x).at(&j));
                }
            }
            out.data
        }
        Node::Scatter { axis, op, base, index, x, .. } => {
            let mut out = of(base).clone();
            let axis = axis as usize;
            for mut i in indices(&of(x).shape) {
                let element = of(x).at(&i);
                let picked = of(index).at(&i).to_i64();
                let Some(place) = usize::try_from(picked).ok().filter(|&p| p < shape[axis]) else {
                    continue;
                };
                i[axis] = place;
                let flat = out.flat(&i);
                out.data[flat] = op.map_or(element, |op| op.eval(out.data[flat], element));
            }
            out.data
        }
    }
}

/// The transform of `[before, n, after, 2]`, as a sum.
fn transform(x: &[Scalar], dims: &[usize], dtype: DType, form: Form) -> Vec<Scalar> {
    let &[before, source, after, _] = dims else { unreachable!("invariant: four axes") };
    let [_, n, results] = fourier::lengths(form, source);
    let whole = if form.real { 2 * n } else { n };
    let turns: Vec<_> = (0..whole).map(|t| fourier::root(t, whole)).collect();
    let mut out = vec![Scalar::from_f64(dtype, 0.0); before * results * after * 2];
    for (b, a) in (0..before).flat_map(|b| (0..after).map(move |a| (b, a))) {
        let element = |j: usize| {
            let at = ((b * source + j) * after + a) * 2;
            (x[at].to_f64(), x[at + 1].to_f64())
        };
        let row: Vec<(f64, f64)> = match (form.real, form.inverse) {
            (false, _) => {
                let done = form.done as usize;
                let number = a / (after / done);
                let turned = |j: usize| {
                    let (c, s) = fourier::root(j * number, n * done);
                    times(element(j), (c, if form.inverse { s } else { -s }))
                };
                (0..n).map(turned).collect()
            }
            (true, false) => {
                (0..n).flat_map(|j| [(element(j).0, 0.0), (element(j).1, 0.0)]).collect()
            }
            (true, true) => (0..whole)
                .map(|k| match k {
                    k if k == 0 || k == n => (element(k).0, 0.0),
                    k if k < n => element(k),
                    k => (element(whole - k).0, -element(whole - k).1),
                })
                .collect(),
        };
        let frequency = |k: usize| {
            let term = |(j, x): (usize, &(f64, f64))| {
                let (c, s) = turns[(j * k) % whole];
                times(*x, (c, if form.inverse { s } else { -s }))
            };
            let sum = |sum: (f64, f64), x: (f64, f64)| (sum.0 + x.0, sum.1 + x.1);
            row.iter().enumerate().map(term).fold((0.0, 0.0), sum)
        };
        for k in 0..results {
            let (re, im) = match (form.real, form.inverse) {
                (false, _) => frequency(k),
                (true, false) => (2.0 * frequency(k).0, 2.0 * frequency(k).1),
                (true, true) => (frequency(2 * k).0, frequency(2 * k + 1).0),
            };
            let at = ((b * results + k) * after + a) * 2;
            out[at] = Scalar::from_f64(dtype, re);
            out[at + 1] = Scalar::from_f64(dtype, im);
        }
    }
    out
}

fn times((a, b): (f64, f64), (c, d): (f64, f64)) -> (f64, f64) {
    (a * c - b * d, a * d + b * c)
}
