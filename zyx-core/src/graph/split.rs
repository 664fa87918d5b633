//! Splitting large reductions in two.
//!
//! A reduction of very many elements to very few keeps most of a device idle if it is one loop
//! per result. Here it becomes two: partial results over pieces of one reduced axis, stored, then
//! a reduction of those. How an axis is cut depends on its length alone, so results do not depend
//! on the number of threads, and sums of pieces round less than one long sum.

use super::pieces::piece_length;
use super::{Graph, Node, NodeId, axes_of};
use crate::dtype::DType;
use crate::ops::BinaryOp;
use crate::shape::Shape;

/// Results below which a reduction is split, and elements from which on.
const FEW_RESULTS: usize = 64;
const MANY_ELEMENTS: usize = 1 << 16;
/// Elements of a result from which on a reduction is split whose results are fewer than the groups
/// that a device has room for.
const LONG: usize = 1 << 17;
/// Pieces aimed at, all results together: at least, and of several results at most, as neighbouring ones share groups. A
/// piece of more has so many elements.
const PIECES: [usize; 2] = [256, 1024];
const PIECE: usize = 1 << 12;

/// The graph with large reductions split, for a device that has room for so many groups of threads, but for those
/// that stay `whole`; `None` if there is none.
pub(crate) fn split_reductions(
    graph: &Graph,
    groups: usize,
    mut whole: impl FnMut(NodeId) -> bool,
) -> Option<Graph> {
    let is_whole = stored_whole(graph);
    let cut = |id| cut(graph, id, groups, &is_whole).filter(|_| !whole(id));
    split_where(graph, cut).map(|graph| graph.by_copies())
}

/// For each node whether its elements are computed from those of stored tensors at the same places, so that axes beside one
/// another are one.
fn stored_whole(graph: &Graph) -> Vec<bool> {
    let mut whole: Vec<bool> = Vec::with_capacity(graph.len());
    for id in graph.ids() {
        let node = graph.node(id);
        whole.push(match node {
            Node::Leaf { .. } | Node::Copy { .. } | Node::Const { .. } => true,
            Node::Unary { .. }
            | Node::Binary { .. }
            | Node::Ternary { .. }
            | Node::Cast { .. }
            | Node::Reshape { .. } => node.sources().all(|x| whole[x.idx()]),
            Node::Expand { x } => graph.shape(x).numel() == 1 && whole[x.idx()],
            _ => false,
        });
    }
    whole
}

/// Where a reduction is cut: the axis, as one with those from `first` on before it, and the length of pieces. Elements
/// behind the last whole piece are reduced `apart` where the operands of a product would have neutral ones behind them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) first: usize,
    pub(crate) axis: usize,
    pub(crate) length: usize,
    pub(crate) apart: bool,
}

/// The graph with those reductions split for which a cut is given; `None` if there is none.
pub(crate) fn split_where(
    graph: &Graph,
    mut cut: impl FnMut(NodeId) -> Option<Cut>,
) -> Option<Graph> {
    let cuts: Vec<_> = graph.ids().map(&mut cut).collect();
    cuts.iter().find(|cut| cut.is_some())?;
    let mut new = graph.without_nodes();
    let mut map: Vec<NodeId> = Vec::with_capacity(graph.len());
    for id in graph.ids() {
        new.origins.hand_on(&graph.origins, id);
        let node = graph.node(id).map(|source| map[source.idx()]);
        let mapped = match (node, cuts[id.idx()]) {
            (Node::Reduce { op, axes, x }, Some(cut)) => {
                let reduction = Reduction { op, axes, x, dtype: graph.dtype(id) };
                let last = reduction.build(&mut new, cut);
                new.push(Node::Reshape { x: last }, graph.dtype(id), graph.shape(id).clone())
            }
            (node, _) => new.push(node, graph.dtype(id), graph.shape(id).clone()),
        };
        map.push(mapped);
    }
    new.outputs = graph.outputs.iter().map(|id| map[id.idx()]).collect();
    Some(new)
}

/// A reduction to be split.
#[derive(Clone, Copy)]
struct Reduction {
    op: BinaryOp,
    axes: u16,
    x: NodeId,
    dtype: DType,
}

impl Reduction {
    /// The partial results of pieces of an axis, stored, and the reduction of those.
    fn build(self, new: &mut Graph, Cut { first, axis, length, apart }: Cut) -> NodeId {
        let Reduction { op, mut axes, mut x, dtype } = self;
        if first < axis {
            let mut dims = new.shape(x).to_vec();
            let merged = dims.drain(first..=axis).product();
            dims.insert(first, merged);
            x = new.push(Node::Reshape { x }, new.dtype(x), dims.into());
            let (low, high) = (axes & ((1 << first) - 1), axes >> (axis + 1));
            axes = low | (1 << first) | (high << (first + 1));
        }
        let axis = first;
        let extent = new.shape(x)[axis];
        let whole = extent / length * length;
        let rest = (apart && whole < extent).then(|| {
            let x = new.part(x, axis, whole..extent);
            self.stored(new, Node::Reduce { op, axes, x })
        });
        let x = if rest.is_some() { new.part(x, axis, 0..whole) } else { x };
        let x = new.in_pieces(x, axis, length, op);
        // Axes behind the cut one move up by one; of the two only the inner is reduced now.
        let low = axes & ((1 << axis) - 1);
        let inner = low | (axes & !((1 << axis) - 1)) << 1;
        let stored = self.stored(new, Node::Reduce { op, axes: inner, x });
        let last = new.push_reduce(Node::Reduce { op, axes: 1 << axis, x: stored }, dtype);
        match rest {
            Some(rest) => {
                let shape = new.shape(rest).clone();
                let last = new.push(Node::Reshape { x: last }, dtype, shape.clone());
                new.push(Node::Binary { op, x: last, y: rest }, dtype, shape)
            }
            None => last,
        }
    }

    /// A part of the reduction, stored.
    fn stored(self, new: &mut Graph, node: Node) -> NodeId {
        let x = new.push_reduce(node, self.dtype);
        let shape = new.shape(x).clone();
        new.push(Node::Copy { x }, self.dtype, shape)
    }
}

/// Where to cut a node, if it is a reduction worth it.
fn cut(graph: &Graph, id: NodeId, groups: usize, is_whole: &[bool]) -> Option<Cut> {
    let Node::Reduce { axes, x, .. } = graph.node(id) else { return None };
    let (results, elements) = (graph.shape(id).numel(), graph.shape(x).numel());
    let few = results < FEW_RESULTS && elements >= MANY_ELEMENTS;
    let idle = 2 * results < groups && elements / results.max(1) >= LONG;
    let shape = graph.shape(x);
    if !(few || idle) || shape.rank() > 15 {
        return None;
    }
    let most = match results {
        0 | 1 => PIECES[0],
        _ => ((elements / PIECE).clamp(PIECES[0], PIECES[1]) / results).max(2),
    };
    // The outermost axis that gives enough pieces, so that each is as contiguous as can be.
    let axis = axes_of(axes).find(|&axis| 4 * shape[axis] >= most);
    let axis = axis.or_else(|| axes_of(axes).max_by_key(|&axis| shape[axis]))?;
    // Short ones before it are part of it.
    let first = (0..axis).rev().take_while(|&before| axes & 1 << before != 0).last();
    let first = first.unwrap_or(axis);
    // So are those behind it that lie in memory as one with it.
    let behind = (axis + 1..shape.rank()).take_while(|&next| axes & 1 << next != 0);
    let axis = behind.filter(|_| is_whole[x.idx()]).last().unwrap_or(axis);
    let extent = shape[first..=axis].iter().product();
    let length = piece_length(extent, most);
    (extent > 1).then(|| Cut { first, axis, length, apart: is_product(graph, x) })
}

/// Whether a value is a product of stored ones, as strategies of contractions look for.
fn is_product(graph: &Graph, x: NodeId) -> bool {
    let is_stored = |mut x: NodeId| {
        while let Node::Cast { x: source }
        | Node::Reshape { x: source }
        | Node::Permute { x: source, .. }
        | Node::Expand { x: source } = graph.node(x)
        {
            x = source;
        }
        matches!(graph.node(x), Node::Leaf { .. } | Node::Copy { .. })
    };
    match graph.node(x) {
        Node::Binary { op: BinaryOp::Mul, x, y } => x != y && is_stored(x) && is_stored(y),
        _ => false,
    }
}

impl Graph {
    /// The graph with its nodes in the order of how many copies lie on the way to them: what pieces
    /// give comes before what is made of it, so that pieces of several reductions may share a kernel.
    fn by_copies(&self) -> Graph {
        let mut copies = vec![0u32; self.len()];
        for id in self.ids() {
            let after =
                |x: NodeId| copies[x.idx()] + matches!(self.node(x), Node::Copy { .. }) as u32;
            copies[id.idx()] = self.node(id).sources().map(after).max().unwrap_or(0);
        }
        let mut order: Vec<NodeId> = self.ids().collect();
        crate::hal::sort_by_number(&mut order, |id| i128::from(copies[id.idx()]));
        let mut new = self.without_nodes();
        let mut map = vec![NodeId(0); self.len()];
        for id in order {
            new.origins.hand_on(&self.origins, id);
            let node = self.node(id).map(|source| map[source.idx()]);
            map[id.idx()] = new.push(node, self.dtype(id), self.shape(id).clone());
        }
        new.outputs = self.outputs.iter().map(|id| map[id.idx()]).collect();
        new
    }

    /// Appends a reduction.
    fn push_reduce(&mut self, node: Node, dtype: DType) -> NodeId {
        let Node::Reduce { axes, x, .. } = node else {
            unreachable!("invariant: it is a reduction")
        };
        let mut dims = self.shape(x).to_vec();
        axes_of(axes).for_each(|axis| dims[axis] = 1);
        self.push(node, dtype, dims.into())
    }

    /// Appends a node.
    pub(crate) fn push(&mut self, node: Node, dtype: DType, shape: Shape) -> NodeId {
        if self.known_shapes.is_empty() {
            self.known_shapes = self.shapes.iter().cloned().zip(0..).collect();
        }
        let next = self.shapes.len() as u32;
        let own = *self.known_shapes.entry(shape.clone()).or_insert(next);
        if own == next {
            self.shapes.push(shape);
        }
        self.nodes.push(node);
        self.origins.push_handed_on();
        self.dtypes.push(dtype);
        self.shape_ids.push(own);
        NodeId(self.nodes.len() as u32 - 1)
    }
}
