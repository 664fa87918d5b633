//! Splitting long scatters into pieces.
//!
//! Updates along the scattered axis are made in order, by one thread for each place of the other
//! axes. Where those are few, pieces of the updates each combine into elements of their own, which
//! start as the neutral element, and the pieces are combined in order. Their number depends on the
//! extents alone, so results do not depend on the number of threads.
//!
//! Of updates that replace elements the last one counts. Where a device finds the largest of integers
//! in any order, the number of the last update of each element is found first, and the element is
//! picked by it.

use super::{Graph, Node, NodeId, UpdateOrder};
use crate::dtype::DType;
use crate::ops::{BinaryOp, TernaryOp};
use crate::scalar::Scalar;
use crate::shape::Shape;

/// Rows below which a scatter is split, and updates of a row from which on.
const FEW_ROWS: usize = 64;
const MANY_UPDATES: usize = 1 << 14;
/// Updates for each element of a piece: what is spent on more elements stays small beside them.
const UPDATES_PER_ELEMENT: usize = 4;
/// Most pieces on a device of few threads, and on one of many.
const PIECES: usize = 16;
const MANY_PIECES: usize = 1 << 12;

/// Assignments of one thread from which on the last one is found first.
const MANY_ASSIGNMENTS: usize = 1 << 8;

/// The graph in which long scatters that assign pick the last update by its number, for a device that
/// has so many threads and finds the largest `i32` in any order; `None` if there is none.
pub(crate) fn number_assignments(graph: &Graph, threads: usize) -> Option<Graph> {
    let numbered = |id: NodeId| {
        let Node::Scatter { axis, op: None, base, x, .. } = graph.node(id) else { return false };
        let (base, updates, axis) = (graph.shape(base), graph.shape(x), axis as usize);
        let n = updates[axis];
        let others_fit =
            (0..base.rank()).all(|other| other == axis || base[other] == updates[other]);
        // A thread makes the updates of a column.
        let columns = updates.numel() / n.max(1);
        let few = n >= MANY_ASSIGNMENTS && columns < threads / 2;
        others_fit && few && n <= i32::MAX as usize
    };
    graph.ids().find(|&id| numbered(id))?;
    let mut new = graph.without_nodes();
    let mut map: Vec<NodeId> = Vec::with_capacity(graph.len());
    for id in graph.ids() {
        new.origins.hand_on(&graph.origins, id);
        let node = graph.node(id).map(|source| map[source.idx()]);
        let (dtype, shape) = (graph.dtype(id), graph.shape(id).clone());
        let mapped = match node {
            Node::Scatter { axis, base, index, x, .. } if numbered(id) => {
                let last = last_updates(&mut new, axis, index, &shape);
                let none = Scalar::from_i64(DType::I32, -1).bits();
                let none = new.push(Node::Const { bits: none }, DType::I32, shape.clone());
                let reached = Node::Binary { op: BinaryOp::Lt, x: none, y: last };
                let reached = new.push(reached, DType::Bool, shape.clone());
                let index = new.push(Node::Cast { x: last }, DType::I64, shape.clone());
                let picked = new.push(Node::Gather { axis, x, index }, dtype, shape.clone());
                let node = Node::Ternary { op: TernaryOp::Where, x: reached, y: picked, z: base };
                new.push(node, dtype, shape)
            }
            node => new.push(node, dtype, shape),
        };
        map.push(mapped);
    }
    new.outputs = graph.outputs.iter().map(|id| map[id.idx()]).collect();
    Some(new)
}

/// The number, along the axis, of the last update of each element; -1 where there is none.
fn last_updates(new: &mut Graph, axis: u8, index: NodeId, shape: &Shape) -> NodeId {
    let updates = new.shape(index).clone();
    let n = updates[axis as usize];
    let number = new.push(Node::Iota, DType::I32, Shape::from([n]));
    let mut dims = vec![1; updates.rank()];
    dims[axis as usize] = n;
    let number = new.push(Node::Reshape { x: number }, DType::I32, dims.into());
    let number = new.push(Node::Expand { x: number }, DType::I32, updates);
    let none = Scalar::from_i64(DType::I32, -1).bits();
    let base = new.push(Node::Const { bits: none }, DType::I32, shape.clone());
    let op = Some(BinaryOp::Max);
    let node = Node::Scatter { axis, op, order: UpdateOrder::Given, base, index, x: number };
    new.push(node, DType::I32, shape.clone())
}

/// The graph with long scatters split for a device of many threads or of few, where `ordered` says
/// that updates are made in order; `None` if there is none.
pub(crate) fn split_scatters(
    graph: &Graph,
    many_threads: bool,
    ordered: impl Fn(BinaryOp, DType) -> bool,
) -> Option<Graph> {
    let cut = |id| cut(graph, id, many_threads).filter(|cut| ordered(cut.op, graph.dtype(id)));
    let cuts: Vec<_> = graph.ids().map(cut).collect();
    cuts.iter().find(|cut| cut.is_some())?;
    let mut new = graph.without_nodes();
    let mut map: Vec<NodeId> = Vec::with_capacity(graph.len());
    for id in graph.ids() {
        new.origins.hand_on(&graph.origins, id);
        let node = graph.node(id).map(|source| map[source.idx()]);
        let (dtype, shape) = (graph.dtype(id), graph.shape(id).clone());
        let mapped = match (node, &cuts[id.idx()]) {
            (Node::Scatter { base, index, x, .. }, Some(cut)) => {
                cut.build(&mut new, [base, index, x], dtype, shape)
            }
            (node, _) => new.push(node, dtype, shape),
        };
        map.push(mapped);
    }
    new.outputs = graph.outputs.iter().map(|id| map[id.idx()]).collect();
    Some(new)
}

/// A scatter to be split.
struct Cut {
    op: BinaryOp,
    axis: usize,
    pieces: usize,
    updates: Shape,
}

/// How a node is split, if it is a scatter worth it.
fn cut(graph: &Graph, id: NodeId, many_threads: bool) -> Option<Cut> {
    let Node::Scatter { axis, op: Some(op), order: UpdateOrder::Given, x, .. } = graph.node(id)
    else {
        return None;
    };
    op.identity(graph.dtype(id))?;
    let (axis, updates) = (axis as usize, graph.shape(x).clone());
    let (n, elements) = (updates[axis], graph.shape(id)[axis]);
    let rows = updates.numel() / n.max(1);
    if n < MANY_UPDATES || rows >= FEW_ROWS || rows == 0 || updates.rank() > 15 {
        return None;
    }
    let most = if many_threads { MANY_PIECES } else { PIECES };
    let most = most.min(n / (UPDATES_PER_ELEMENT * elements.max(1)));
    let pieces = (2..=most).rev().find(|&pieces| n.is_multiple_of(pieces));
    // An extent without such a divisor gets updates that go nowhere.
    let pieces = pieces.filter(|&pieces| 2 * pieces > most).unwrap_or(most);
    (pieces > 1).then_some(Cut { op, axis, pieces, updates })
}

impl Cut {
    fn build(
        &self,
        new: &mut Graph,
        [base, index, x]: [NodeId; 3],
        dtype: DType,
        shape: Shape,
    ) -> NodeId {
        let Cut { op, axis, pieces, .. } = *self;
        let index = self.cut_index(new, index);
        let x = self.cut_updates(new, x, dtype);
        let mut dims = shape.to_vec();
        dims.insert(axis, pieces);
        let parts = Shape::from(dims.clone());
        let identity = op.identity(dtype).expect("invariant: only monoids are split");
        let neutral = new.push(Node::Const { bits: identity.bits() }, dtype, parts.clone());
        let node = Node::Scatter {
            axis: axis as u8 + 1,
            op: Some(op),
            order: UpdateOrder::Given,
            base: neutral,
            index,
            x,
        };
        let scattered = new.push(node, dtype, parts);
        dims[axis] = 1;
        let all = Node::Reduce { op, axes: 1 << axis, x: scattered };
        let all = new.push(all, dtype, dims.into());
        let all = new.push(Node::Reshape { x: all }, dtype, shape.clone());
        let combined = new.push(Node::Binary { op, x: base, y: all }, dtype, shape.clone());
        if op != BinaryOp::Add || !dtype.is_float() {
            return combined;
        }
        // To add zero to what no update reached would turn its -0 into 0.
        let zero = new.push(Node::Const { bits: 0 }, dtype, shape.clone());
        let none = Node::Binary { op: BinaryOp::Eq, x: all, y: zero };
        let none = new.push(none, DType::Bool, shape.clone());
        let node = Node::Ternary { op: TernaryOp::Where, x: none, y: base, z: combined };
        new.push(node, dtype, shape)
    }

    fn cut_updates(&self, new: &mut Graph, x: NodeId, dtype: DType) -> NodeId {
        self.in_parts(new, x, Scalar::from_i64(dtype, 0))
    }

    /// The positions; those of padding are in no range.
    fn cut_index(&self, new: &mut Graph, index: NodeId) -> NodeId {
        let nowhere = Scalar::from_i64(new.dtype(index), -1);
        self.in_parts(new, index, nowhere)
    }

    /// Equal pieces, in the last of which an element stands behind what there is.
    fn in_parts(&self, new: &mut Graph, x: NodeId, element: Scalar) -> NodeId {
        let extent = self.updates[self.axis].next_multiple_of(self.pieces);
        let dtype = new.dtype(x);
        let x = new.extended(x, self.axis, extent, element);
        new.push(Node::Reshape { x }, dtype, self.parts())
    }

    /// The shape of updates in pieces.
    fn parts(&self) -> Shape {
        let mut dims = self.updates.to_vec();
        dims[self.axis] = dims[self.axis].div_ceil(self.pieces);
        dims.insert(self.axis, self.pieces);
        dims.into()
    }
}
