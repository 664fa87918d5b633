//! Scaled dot-product attention whole, by a library that knows it.
//!
//! A library gives one number of a row, the logarithm of the sum of all exponentials, which is all
//! that is left of maximum and sum: beside a large maximum the sum is rounded off. Where the
//! logarithm is small enough to be exact, it serves a gradient as the maximum, with a sum of 1. A
//! kernel behind the call computes both again for the other rows ([`lower_rows`]).

use super::library::{exponential, rescaled};
use super::scalar::{close_all, element, open_all};
use super::{At, Band, Finder, FlashAttention, Middle, Softmax};
use crate::affine::{Atom, Index};
use crate::dtype::DType;
use crate::graph::{Graph, Node, NodeId};
use crate::hal::{AttentionSpec, Call};
use crate::ir::{Access, LoopKind, Space, Type};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::scalar::Scalar;
use crate::schedule::item::ScheduleItem;
use crate::schedule::loop_body::collect_roots;
use crate::schedule::lower::{Lowered, Lowering, Var};
use crate::schedule::partition::{Kind, Partition, Root};
use crate::schedule::pull::Indices;
use crate::schedule::strategies::Nest;

/// Attention of a library that has it: cuDNN's took between 0.68 and 1.01 times as long as generated code in
/// all that was measured (`bench/src/bin/attention.rs`).
pub(in crate::schedule) fn lower(nest: &mut Nest<'_>) -> Option<Vec<ScheduleItem>> {
    let Nest { graph, partition, number, group, offers, .. } = nest;
    let Kind::Flash(flash) = &group.kind else { return None };
    let Middle::Softmax(softmax) = flash.middle else { return None };
    let scale = flash.dot_product?.scale;
    let (spec, logarithms) = specify(graph, &mut partition.indices, flash, &group.roots)?;
    let call = Call::Attend(Box::new(spec));
    if !offers(&call) {
        return None;
    }
    let mut item = ScheduleItem::call(call, flash.operands.clone(), Vec::new());
    if let ScheduleItem::Call { buffers, accesses, vars, .. } = &mut item {
        vars.push(scale);
        buffers.extend([Some(flash.node), logarithms].into_iter().flatten());
        accesses.resize(buffers.len(), Access::Write);
    }
    let mut items = vec![item];
    if logarithms.is_some() {
        let rows = group.roots[1..].iter().map(|root| (root.node, root.tuple)).collect();
        let lowered = lower_rows((graph, partition, *number), (flash, &softmax), rows);
        items.push(ScheduleItem::Kernel(lowered));
    }
    Some(items)
}

/// Logarithms of sums up to this magnitude serve as maxima: to round them to `f32` changes a weight
/// by 2^-13 of it at most, a quarter of what rounding it to `f16` does.
const MAX_LOGARITHM: f64 = 4096.0;

/// The kernel that stores what others need of a row, from the logarithms that a library left in the
/// buffer of the first of these values.
fn lower_rows(
    (graph, partition, group): (&Graph, &mut Partition, usize),
    (flash, softmax): (&FlashAttention, &Softmax),
    rows: Vec<At>,
) -> Lowered {
    let needed: Vec<At> = rows.iter().copied().chain([softmax.scores]).collect();
    let states: Vec<At> = [Some(softmax.top), softmax.sum].into_iter().flatten().collect();
    let given: Vec<NodeId> = flash.tiles.iter().chain(&states).map(|at| at.0).collect();
    let mut found = collect_roots(graph, partition, group, &needed, &given, &[]);
    for &operand in &flash.operands[..2] {
        found.load(graph, operand);
    }
    let (spec, acc) = (&flash.spec, flash.spec.acc);
    let name = format!("softmax_rows_{}x{}x{}", spec.batches(), spec.rows, spec.columns);
    let mut l = Lowering::new(graph, partition, name);
    let access = |i: usize| if i == 0 { Access::ReadWrite } else { Access::Write };
    let written: Vec<_> = rows.iter().enumerate().map(|(i, at)| (at.0, access(i))).collect();
    l.declare(found, &written);
    let axes: Vec<_> = flash.batch.iter().copied().chain([flash.row]).collect();
    for &axis in &axes {
        l.open(axis, LoopKind::Parallel);
    }
    let flat = l.indices.flat(graph, rows[0].0, rows[0].1);
    let (place, buffer) = (l.index(&flat), l.param(rows[0].0));
    let logarithm = l.b.load(buffer, place);
    let most = l.b.constant(Scalar::from_f64(acc, MAX_LOGARITHM));
    let size = l.b.unary(UnaryOp::Abs, logarithm);
    let is_far = l.b.binary(BinaryOp::Lt, most, size);
    let [zero, columns] = [0, spec.columns as i64].map(|n| l.b.index(n));
    let columns = l.b.select(is_far, columns, zero);
    let numbers = [f64::NEG_INFINITY, 0.0, 1.0].map(|x| l.b.constant(Scalar::from_f64(acc, x)));
    let [bottom, nothing, one] = numbers;
    let [top, sum] = [(bottom, logarithm), (nothing, one)].map(|(far, near)| {
        let state = l.b.alloc(Space::Register, Type::scalar(acc), 1);
        let first = l.b.select(is_far, far, near);
        l.b.store(state, zero, first);
        state
    });
    let each_score = |l: &mut Lowering<'_>, op: BinaryOp, state, shift| {
        l.open_from(flash.column, LoopKind::Serial, columns, zero);
        let product = l.accumulator(BinaryOp::Add, acc);
        open_all(l, &flash.inner[0]);
        let (a, b) = (element(l, flash, 0), element(l, flash, 1));
        let term = l.b.binary(BinaryOp::Mul, a, b);
        l.accumulate(BinaryOp::Add, product, term);
        close_all(l, &flash.inner[0]);
        let product = l.b.load(product, zero);
        l.remember(flash.tiles[0].0, flash.tiles[0].1, product);
        let score = l.value(softmax.scores.0, softmax.scores.1, None);
        let element = match shift {
            Some(shift) => exponential(l, score, shift),
            None => score,
        };
        l.accumulate(op, state, element);
        l.close(flash.column);
    };
    each_score(&mut l, BinaryOp::Max, top, None);
    let found = l.b.load(top, zero);
    let (shift, _) = rescaled(&mut l, acc, [found; 2]);
    each_score(&mut l, BinaryOp::Add, sum, Some(shift));
    for (&(node, tuple), state) in states.iter().zip([top, sum]) {
        let value = l.b.load(state, zero);
        l.remember(node, tuple, value);
    }
    for &(node, tuple) in &rows {
        l.store_root(node, tuple);
    }
    axes.iter().rev().for_each(|&axis| l.close(axis));
    l.finish()
}

/// Scaled dot-product attention as libraries know it: `softmax(scale * q k^T) v`, of halves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DotProduct {
    /// The factor of the scores, an `f32`.
    pub(crate) scale: Var,
    /// Whether row `i` sees the columns `0 ..= i` only.
    pub(crate) causal: bool,
}

impl Finder<'_> {
    /// Whether the exponentials of a softmax are divided by their sum and nothing else: the factor is
    /// one over it, or 0 where there is nothing to sum.
    fn is_plain(&mut self, softmax: &Softmax) -> bool {
        let (node, tuple) = self.moved(softmax.scale);
        let Node::Ternary { op: TernaryOp::Where, x, y, z } = self.graph.node(node) else {
            return false;
        };
        let [none, zero, factor] = [x, y, z].map(|x| self.moved((x, tuple)));
        let Node::Unary { op: UnaryOp::Recip, x } = self.graph.node(factor.0) else {
            return false;
        };
        let divisor = self.moved((x, factor.1));
        self.is_bottom(none, softmax.top)
            && self.number(zero) == Some(0.0)
            && softmax.sum == Some(divisor)
            && !softmax.divides
    }

    /// Whether a condition is that the maximum is minus infinity.
    pub(super) fn is_bottom(&mut self, condition: At, top: At) -> bool {
        let Node::Binary { op: BinaryOp::Eq, x, y } = self.graph.node(condition.0) else {
            return false;
        };
        let (x, y) = (self.moved((x, condition.1)), self.moved((y, condition.1)));
        x == top && self.number(y) == Some(f64::NEG_INFINITY)
    }

    /// What libraries call a softmax whose weights are rounded, if they know it: of products that are
    /// multiplied by a number and, but for a causal mask, seen.
    pub(super) fn dot_product(
        &mut self,
        softmax: &Softmax,
        tile: At,
        band: &Option<Band>,
    ) -> Option<DotProduct> {
        if !self.is_plain(softmax) {
            return None;
        }
        let (mut at, mut causal) = (softmax.scores, false);
        if let Node::Ternary { op: TernaryOp::Where, x, y, z } = self.graph.node(at.0) {
            let [seen, shown, hidden] = [x, y, z].map(|x| self.moved((x, at.1)));
            let band = band.as_ref()?;
            if band.seen != seen
                || band.limits != [None, Some(0)]
                || self.number(hidden) != Some(f64::NEG_INFINITY)
            {
                return None;
            }
            (at, causal) = (shown, true);
        }
        let known = |x: f64| Var::Known(i64::from((x as f32).to_bits()));
        let mut scale = known(1.0);
        if let Node::Binary { op: BinaryOp::Mul, x, y } = self.graph.node(at.0)
            && at != tile
        {
            let (x, y) = (self.moved((x, at.1)), self.moved((y, at.1)));
            let (product, factor) = if y == tile { (y, x) } else { (x, y) };
            scale = match self.graph.node(factor.0) {
                Node::Argument { slot } => Var::Argument(slot),
                _ => known(self.number(factor)?),
            };
            at = product;
        }
        (at == tile && self.graph.dtype(at.0) == DType::F32).then_some(DotProduct { scale, causal })
    }
}

/// A dimension of a batch with the strides of queries, keys, values, result and logarithms.
#[derive(Clone, Copy)]
struct Dim {
    len: usize,
    strides: [isize; 5],
}

impl Dim {
    const ONE: Dim = Dim { len: 1, strides: [0; 5] };

    /// This and the next inner one as one, if they are.
    fn merged(&self, inner: &Dim) -> Option<Dim> {
        let follows = (0..5).all(|i| self.strides[i] == inner.strides[i] * inner.len as isize);
        match (self.len, inner.len) {
            (1, _) => Some(*inner),
            (_, 1) => Some(*self),
            _ => follows.then_some(Dim { len: self.len * inner.len, ..*inner }),
        }
    }

    /// All of a list, outermost first, as few as they can be.
    fn few(list: impl IntoIterator<Item = Dim>) -> Vec<Dim> {
        let mut few: Vec<Dim> = Vec::new();
        for dim in list.into_iter().filter(|dim| dim.len != 1) {
            match few.last().and_then(|last| last.merged(&dim)) {
                Some(merged) => *few.last_mut().expect("invariant: there is a last one") = merged,
                None => few.push(dim),
            }
        }
        few
    }
}

/// The specification of what a group computes, and the node in whose buffer the logarithms are left if
/// values of rows are asked for; `None` if it is no attention of batches of heads.
fn specify(
    graph: &Graph,
    indices: &mut Indices,
    flash: &FlashAttention,
    roots: &[Root],
) -> Option<(AttentionSpec, Option<NodeId>)> {
    let dot_product = flash.dot_product?;
    let (spec, half) = (&flash.spec, flash.rounded?);
    let logarithms = roots.get(1);
    let ([tile], [sum]) = (&spec.tiles[..], &spec.sums[..]) else { return None };
    let inputs = [&tile.a, &tile.b, &sum.b];
    let is_half = inputs.iter().all(|x| x.dtype == half) && graph.dtype(flash.node) == half;
    if !is_half || !flash.beside.is_empty() || spec.columns != spec.period[1] {
        return None;
    }
    let result = indices.flat(graph, flash.sum, flash.tuple);
    let rows = logarithms.map(|root| indices.flat(graph, root.node, root.tuple));
    // Whose positions begin again are other heads of queries for the same keys.
    let (queries, repeats) = (spec.period[0], spec.rows / spec.period[0].max(1));
    if queries * repeats != spec.rows {
        return None;
    }
    let out = |axis| {
        let logarithms = rows.as_ref().map_or(0, |flat| flat.coefficient(axis) as isize);
        [result.coefficient(axis) as isize, logarithms]
    };
    // Strides within the positions of a head and from one to the next that has the same keys.
    let step = |flat: &Index| -> Option<[isize; 2]> {
        let (row, period) = (indices.algebra.of(flash.row), queries as i64);
        let parts = [Atom::Mod(row.clone(), period), Atom::Div(row, period)];
        let mut strides = [1, queries as isize].map(|n| n * flat.coefficient(flash.row) as isize);
        for &(atom, by) in &flat.terms {
            let atom = indices.algebra.atom(atom);
            if !matches!(atom, Atom::Axis { .. }) {
                strides[parts.iter().position(|part| part == atom)?] += by as isize;
            }
        }
        Some(strides)
    };
    if !flash.addresses[1..].iter().all(|address| indices.algebra.is_affine(address)) {
        return None;
    }
    let along = |len: usize, inputs: [isize; 3], [result, logarithms]: [isize; 2]| Dim {
        len,
        strides: [inputs[0], inputs[1], inputs[2], result, logarithms],
    };
    let batch = flash.batch.iter().zip(&spec.batch).enumerate();
    let batch: Vec<Dim> =
        batch.map(|(i, (&axis, &len))| along(len, inputs.map(|x| x.batch[i]), out(axis))).collect();
    let (query_steps, result_steps) = (step(&flash.addresses[0])?, step(&result)?);
    let logarithm_steps = rows.as_ref().map_or(Some([0; 2]), step)?;
    let of = |i: usize| [result_steps[i], logarithm_steps[i]];
    let again = along(repeats, [query_steps[1], 0, 0], of(1));
    // Where keys and values are the same for several heads.
    let shared = |dim: &Dim| dim.strides[1] == 0 && dim.strides[2] == 0;
    let first = batch.iter().rposition(|dim| dim.len != 1 && !shared(dim)).map_or(0, |i| i + 1);
    let (outer, inner) = batch.split_at(first);
    let sharing = match Dim::few(inner.iter().copied().chain([again]))[..] {
        [] => Dim::ONE,
        [one] => one,
        _ => return None,
    };
    let beside = |heads: &Dim| {
        let follows = |i: usize| heads.strides[i] == sharing.strides[i] * sharing.len as isize;
        sharing.len == 1 || heads.len == 1 || [0, 3, 4].into_iter().all(follows)
    };
    let (batch, heads) = match Dim::few(outer.iter().copied())[..] {
        [] => (Dim::ONE, Dim::ONE),
        [heads] if beside(&heads) => (Dim::ONE, heads),
        [batch] => (batch, Dim::ONE),
        [batch, heads] if beside(&heads) => (batch, heads),
        _ => return None,
    };
    let row = along(queries, [query_steps[0], tile.b.along, sum.b.along], of(0));
    let line = |inner: &[(usize, isize)]| {
        let mut dims = inner.iter().filter(|dim| dim.0 != 1);
        let (Some(&(len, 1)), None) = (dims.next(), dims.next()) else { return None };
        Some(len)
    };
    let (width, value_width) = (line(&tile.a.inner)?, line(&sum.b.inner)?);
    let long = flash.width.iter().filter(|&&axis| indices.extent(axis) != 1);
    let in_line: Vec<i64> = long.map(|&axis| result.coefficient(axis)).collect();
    if line(&tile.b.inner)? != width || in_line != [1] || result.constant != 0 {
        return None;
    }
    let stride = |i: usize| -> Option<[usize; 4]> {
        // Queries, results and logarithms have the heads that share keys, too.
        let head = match i {
            1 | 2 => heads.strides[i],
            _ if sharing.len > 1 => sharing.strides[i],
            _ => heads.strides[i],
        };
        let of = [batch.strides[i], head, row.strides[i], if i == 4 { 0 } else { 1 }];
        let of = of.map(|stride| usize::try_from(stride).ok());
        Some([of[0]?, of[1]?, of[2]?, of[3]?])
    };
    let offset = |at: isize| usize::try_from(at).ok();
    let logarithm_at = rows.as_ref().map_or(0, |flat| flat.constant as isize);
    let attention = AttentionSpec {
        dtype: half,
        batch: batch.len,
        heads: heads.len * sharing.len,
        key_heads: heads.len,
        queries,
        keys: spec.columns,
        width,
        value_width,
        causal: dot_product.causal,
        strides: [stride(0)?, stride(1)?, stride(2)?, stride(3)?, stride(4)?],
        offsets: [
            offset(tile.a.offset)?,
            offset(tile.b.offset)?,
            offset(sum.b.offset)?,
            0,
            offset(logarithm_at)?,
        ],
        logarithms: logarithms.is_some(),
    };
    Some((attention, logarithms.map(|root| root.node)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::{DType, DTypeSet};
    use crate::graph::capture;
    use crate::runtime::{Device, Runtime};
    use crate::schedule::item::schedule;
    use crate::schedule::lower::Var;
    use crate::tensor::{Attention, Rng, Tensor};
    use crate::testing::{Null, device, values};

    /// A GPU with matrix instructions whose library has attention.
    fn gpu() -> Device {
        let mut null = Null { attention: true, ..Null::default() };
        null.caps.mma = DTypeSet::of(&[DType::F16, DType::BF16]);
        let runtime = Runtime::default();
        runtime.register(null);
        runtime.device("null").unwrap()
    }

    fn numbers(dims: &[usize], seed: usize, dtype: DType, device: &Device) -> Tensor {
        let n: usize = dims.iter().product();
        let value = |i: usize| ((i * 7919 + seed * 104_729) % 2003) as f32 / 512.0 - 1002.0 / 512.0;
        let values: Vec<f32> = (0..n).map(value).collect();
        let x = Tensor::from_slice(&values, dims, device).unwrap().cast(dtype);
        x.realize().unwrap();
        x.tracked()
    }

    /// What a specification says of the elements of its operands: those of result and logarithms.
    fn computed(
        (spec, scale): (&AttentionSpec, f64),
        inputs: [&[f64]; 3],
        elements: [usize; 2],
    ) -> [Vec<Option<f64>>; 2] {
        let at = |i: usize, index: [usize; 4]| {
            let place = index.iter().zip(spec.strides[i]).map(|(i, stride)| i * stride);
            spec.offsets[i] + place.sum::<usize>()
        };
        let read = |i: usize, index: [usize; 4]| inputs[i][at(i, index)];
        let mut out = elements.map(|n| vec![None; n]);
        for n in 0..spec.batch * spec.heads * spec.queries {
            let (i, n) = (n % spec.queries, n / spec.queries);
            let (h, b) = (n % spec.heads, n / spec.heads);
            let g = h / (spec.heads / spec.key_heads);
            let keys = if spec.causal { spec.keys.min(i + 1) } else { spec.keys };
            let score = |j: usize| {
                let term = |e: usize| read(0, [b, h, i, e]) * read(1, [b, g, j, e]);
                scale * (0..spec.width).map(term).sum::<f64>()
            };
            let scores: Vec<f64> = (0..keys).map(score).collect();
            let sum: f64 = scores.iter().map(|score| score.exp()).sum();
            for e in 0..spec.value_width {
                let term = |j: usize| scores[j].exp() / sum * read(2, [b, g, j, e]);
                out[0][at(3, [b, h, i, e])] = Some((0..keys).map(term).sum());
            }
            if spec.logarithms {
                out[1][at(4, [b, h, i, 0])] = Some(sum.ln());
            }
        }
        out
    }

    /// The attention that a GPU computes tensors by. Each computes what its nodes mean.
    #[track_caller]
    fn found(tensors: &[&Tensor]) -> Vec<AttentionSpec> {
        let (graph, bindings) = capture(tensors, 0);
        let mut all = graph.clone();
        all.outputs = all.ids().collect();
        let values = values(&all, &bindings).unwrap();
        let values =
            |x: NodeId| -> Vec<f64> { values[x.idx()].iter().map(|x| x.to_f64()).collect() };
        let mut specs = Vec::new();
        let items = schedule(&graph, &gpu()).items;
        for (i, item) in items.iter().enumerate() {
            let ScheduleItem::Call { call, buffers, vars, .. } = item else { continue };
            let Call::Attend(spec) = &**call else {
                continue;
            };
            assert_eq!(buffers.len(), spec.buffers());
            for (tensor, &node) in buffers.iter().enumerate() {
                assert_eq!(graph.dtype(node), spec.dtype_of(tensor));
                assert!(spec.span(tensor).unwrap() <= graph.shape(node).numel());
            }
            let [q, k, v] = [0, 1, 2].map(|i| values(buffers[i]));
            // Maximum and factor follow from the logarithms, in the next item.
            let logarithms = buffers.get(4).map(|&shift| {
                let written = |access: &(NodeId, Access)| access.1 == Access::Write;
                let rows: Vec<_> = items[i + 1].accesses().into_iter().filter(written).collect();
                let [(scale, _)] = rows[..] else { panic!("one factor: {rows:?}") };
                let both = values(shift).into_iter().zip(values(scale));
                both.map(|(shift, scale)| shift - scale.ln()).collect()
            });
            let expected = [Some(values(buffers[3])), logarithms];
            let lengths = [0, 1].map(|i| expected[i].as_ref().map_or(0, Vec::len));
            let scale = match vars[..] {
                [Var::Known(bits)] => f32::from_bits(bits as u32),
                [Var::Argument(slot)] => f32::from_bits(bindings.arguments[slot as usize] as u32),
                _ => panic!("one scale: {vars:?}"),
            };
            let got = computed((spec, f64::from(scale)), [&q, &k, &v], lengths);
            for (got, expected) in got.iter().zip(expected.iter().flatten()) {
                let largest = expected.iter().fold(0.0f64, |most, x| most.max(x.abs()));
                for (got, expected) in got.iter().zip(expected) {
                    let got = got.expect("all elements of a result are computed");
                    assert!(
                        (got - expected).abs() <= largest / 64.0,
                        "{got} is not {expected}: {spec:?}"
                    );
                }
            }
            specs.push((**spec).clone());
        }
        specs
    }

    const CAUSAL: fn() -> Attention<'static> =
        || Attention { causal: true, ..Attention::default() };

    /// Attention alone, and with all gradients.
    #[track_caller]
    fn both([q, k, v]: [&Tensor; 3], options: fn() -> Attention<'static>) -> [AttentionSpec; 2] {
        let y = q.scaled_dot_product_attention(k, v, options()).unwrap();
        let gradients = y.cast(DType::F32).sum(..).unwrap().grad(&[q, k, v]).unwrap();
        let all: Vec<&Tensor> = [&y].into_iter().chain(gradients.iter().flatten()).collect();
        let (alone, trained) = (found(&[&y]), found(&all));
        assert_eq!((all.len(), alone.len(), trained.len()), (4, 1, 1));
        assert!(!alone[0].logarithms && trained[0].logarithms);
        [alone[0].clone(), trained[0].clone()]
    }

    #[test]
    fn heads_and_masks() {
        let d = device();
        for (dtype, queries, keys, causal) in
            [(DType::F16, 70, 70, false), (DType::BF16, 70, 100, true), (DType::F16, 100, 70, true)]
        {
            let q = numbers(&[2, 3, queries, 32], 1, dtype, &d);
            let k = numbers(&[2, 3, keys, 32], 2, dtype, &d);
            let v = numbers(&[2, 3, keys, 64], 3, dtype, &d);
            let options = if causal { CAUSAL } else { Attention::default };
            for spec in both([&q, &k, &v], options) {
                assert_eq!((spec.queries, spec.keys, spec.causal), (queries, keys, causal));
                assert_eq!((spec.batch * spec.heads, spec.width, spec.value_width), (6, 32, 64));
            }
        }
    }

    #[test]
    fn heads_share_keys() {
        let d = device();
        let half = DType::BF16;
        for (heads, groups) in [(6, 2), (4, 1)] {
            let q = numbers(&[2, heads, 70, 32], 1, half, &d);
            let [k, v] = [2, 3].map(|seed| numbers(&[2, groups, 80, 32], seed, half, &d));
            let grouped = || Attention { grouped: true, causal: true, ..Attention::default() };
            for spec in both([&q, &k, &v], grouped) {
                let ratio = (spec.batch * spec.heads) / (spec.batch * spec.key_heads);
                assert_eq!((ratio, spec.queries), (heads / groups, 70), "{spec:?}");
            }
            // Heads behind positions stay there.
            let turned = [(heads, 1), (groups, 2), (groups, 3)].map(|(heads, seed)| {
                let x = numbers(&[2, 70, heads, 32], seed, half, &d);
                x.permute([0, 2, 1, 3]).unwrap()
            });
            let [q, k, v] = &turned;
            for spec in both([q, k, v], grouped) {
                assert_eq!(spec.strides[0], [70 * heads * 32, 32, heads * 32, 1]);
            }
        }
    }

    #[test]
    fn tensors_lie_in_any_order() {
        let d = device();
        // Queries, keys and values of a position side by side, heads behind positions.
        let half = DType::F16;
        let all = numbers(&[2, 70, 3, 4, 32], 1, half, &d);
        let part = |i: usize| {
            let part = all.narrow(2, i, 1).unwrap().squeeze(2).unwrap();
            part.permute([0, 2, 1, 3]).unwrap()
        };
        let y = part(0).scaled_dot_product_attention(&part(1), &part(2), CAUSAL()).unwrap();
        let specs = found(&[&y.permute([0, 2, 1, 3]).unwrap().contiguous()]);
        assert_eq!(specs.len(), 1);
        assert_eq!(specs[0].offsets[..3], [0, 128, 256]);
        assert_eq!(specs[0].strides[0], [70 * 384, 32, 384, 1]);
        // One matrix, and a batch of them.
        for dims in [&[140, 32][..], &[4, 70, 32]] {
            let [q, k, v] = [1, 2, 3].map(|seed| numbers(dims, seed, half, &d));
            both([&q, &k, &v], Attention::default);
        }
    }

    #[test]
    fn gradients_that_are_stored_in_another_order_are_those_of_attention() {
        let d = device();
        let leaves = [1, 2, 3].map(|seed| numbers(&[2, 70, 4, 32], seed, DType::BF16, &d));
        let [q, k, v] = leaves.each_ref().map(|x| x.permute([0, 2, 1, 3]).unwrap());
        let y = q.scaled_dot_product_attention(&k, &v, CAUSAL()).unwrap();
        let loss = y.permute([0, 2, 1, 3]).unwrap().cast(DType::F32).square().sum(..).unwrap();
        let gradients = loss.grad(&leaves.each_ref()).unwrap();
        let all: Vec<&Tensor> = gradients.iter().flatten().collect();
        assert_eq!(found(&all).len(), 1);
        let items = schedule(&capture(&all, 0).0, &gpu()).items;
        let is_product = |item: &ScheduleItem| match item {
            ScheduleItem::Call { call, .. } => matches!(**call, Call::Contract { .. }),
            ScheduleItem::Kernel(_) => false,
        };
        assert!(!items.iter().any(is_product));
    }

    #[test]
    fn what_libraries_do_not_know_is_generated() {
        let d = device();
        let half = DType::BF16;
        let [q, k, v] = [1, 2, 3].map(|seed| numbers(&[2, 2, 70, 32], seed, half, &d));
        let mask = numbers(&[70, 70], 4, DType::F32, &d);
        let attend =
            |options: Attention<'_>| q.scaled_dot_product_attention(&k, &v, options).unwrap();
        assert!(
            found(&[&attend(Attention { mask: Some(&mask), ..Default::default() })]).is_empty()
        );
        let mut rng = Rng::seed(1);
        let dropout = Some((0.5, &mut rng));
        assert!(found(&[&attend(Attention { dropout, ..Default::default() })]).is_empty());
        let [q, k, v] = [q, k, v].map(|x| x.cast(DType::F32));
        let y = q.scaled_dot_product_attention(&k, &v, Attention::default()).unwrap();
        assert!(found(&[&y]).is_empty());
    }
}
