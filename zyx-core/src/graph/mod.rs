//! The graph: what is reached from some tensors, as a dense arena.
//!
//! [`capture`] walks from the outputs to realized leaves without recursion and yields nodes of
//! sixteen bytes in topological order, hash-consed, with shapes and lists interned. Leaves and
//! non-literal constants are numbered in order of first visit, so equal steps of a training loop
//! give equal graphs: the structure is the key of the plan cache and the values are its arguments.

mod capture;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod eval;
mod op;
mod split;

pub(crate) use capture::{Bindings, capture};
pub(crate) use op::{GradientRule, Op, Perm, axes_of, is_index};
pub(crate) use split::split_reductions;

use crate::dtype::DType;
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::shape::Shape;
use std::hash::{Hash, Hasher};

/// The position of a node in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub(crate) u32);

impl NodeId {
    pub(crate) fn idx(self) -> usize {
        self.0 as usize
    }
}

/// A node: an op on earlier nodes. Meanings are those of the tensor graph's op table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    Leaf { slot: u32 },
    Const { bits: u64 },
    Argument { slot: u32 },
    Iota,
    Unary { op: UnaryOp, x: NodeId },
    Binary { op: BinaryOp, x: NodeId, y: NodeId },
    Ternary { op: TernaryOp, x: NodeId, y: NodeId, z: NodeId },
    Cast { x: NodeId },
    Bitcast { x: NodeId },
    Reduce { op: BinaryOp, axes: u16, x: NodeId },
    Scan { op: BinaryOp, axis: u8, reverse: bool, x: NodeId },
    Reshape { x: NodeId },
    Permute { x: NodeId, perm: Perm },
    Expand { x: NodeId },
    Pad { x: NodeId, list: u32 },
    Shrink { x: NodeId, list: u32 },
    Flip { x: NodeId, axes: u16 },
    Gather { axis: u8, x: NodeId, index: NodeId },
    Scatter { axis: u8, op: Option<BinaryOp>, base: NodeId, index: NodeId, x: NodeId },
    Copy { x: NodeId },
}

const _: () = assert!(size_of::<Node>() == 16, "graph nodes are sixteen bytes");

impl Node {
    /// The same op on sources replaced by `f`.
    pub(crate) fn map(self, f: impl Fn(NodeId) -> NodeId) -> Node {
        let mut node = self;
        match &mut node {
            Node::Leaf { .. } | Node::Const { .. } | Node::Argument { .. } | Node::Iota => {}
            Node::Unary { x, .. } | Node::Cast { x } | Node::Bitcast { x } => *x = f(*x),
            Node::Reduce { x, .. } | Node::Scan { x, .. } | Node::Reshape { x } => *x = f(*x),
            Node::Permute { x, .. } | Node::Expand { x } | Node::Pad { x, .. } => *x = f(*x),
            Node::Shrink { x, .. } | Node::Flip { x, .. } | Node::Copy { x } => *x = f(*x),
            Node::Binary { x, y, .. } => (*x, *y) = (f(*x), f(*y)),
            Node::Gather { x, index, .. } => (*x, *index) = (f(*x), f(*index)),
            Node::Ternary { x, y, z, .. } => (*x, *y, *z) = (f(*x), f(*y), f(*z)),
            Node::Scatter { base, index, x, .. } => {
                (*base, *index, *x) = (f(*base), f(*index), f(*x));
            }
        }
        node
    }

    pub(crate) fn sources(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        let (list, n) = match *self {
            Node::Leaf { .. } | Node::Const { .. } | Node::Argument { .. } | Node::Iota => {
                ([NodeId(0); 3], 0)
            }
            Node::Unary { x, .. } | Node::Cast { x } | Node::Bitcast { x } => ([x; 3], 1),
            Node::Reduce { x, .. } | Node::Scan { x, .. } | Node::Reshape { x } => ([x; 3], 1),
            Node::Permute { x, .. } | Node::Expand { x } | Node::Pad { x, .. } => ([x; 3], 1),
            Node::Shrink { x, .. } | Node::Flip { x, .. } | Node::Copy { x } => ([x; 3], 1),
            Node::Binary { x, y, .. } => ([x, y, y], 2),
            Node::Gather { x, index, .. } => ([x, index, index], 2),
            Node::Ternary { x, y, z, .. } => ([x, y, z], 3),
            Node::Scatter { base, index, x, .. } => ([base, index, x], 3),
        };
        list.into_iter().take(n).collect::<smallvec::SmallVec<[NodeId; 3]>>().into_iter()
    }
}

/// A captured graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) dtypes: Vec<DType>,
    shape_ids: Vec<u32>,
    shapes: Vec<Shape>,
    /// Paddings (before, after) per axis, or starts of a shrink (start, 0) per axis.
    lists: Vec<std::sync::Arc<[(usize, usize)]>>,
    pub(crate) outputs: Vec<NodeId>,
}

impl Graph {
    /// Makes space for so many nodes.
    fn reserve(&mut self, nodes: usize) {
        self.nodes.reserve(nodes);
        self.dtypes.reserve(nodes);
        self.shape_ids.reserve(nodes);
    }

    pub(crate) fn node(&self, id: NodeId) -> Node {
        self.nodes[id.idx()]
    }

    pub(crate) fn shape(&self, id: NodeId) -> &Shape {
        &self.shapes[self.shape_ids[id.idx()] as usize]
    }

    /// The distinct shapes of all nodes.
    pub(crate) fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    pub(crate) fn dtype(&self, id: NodeId) -> DType {
        self.dtypes[id.idx()]
    }

    pub(crate) fn list(&self, list: u32) -> &[(usize, usize)] {
        &self.lists[list as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }
}

impl PartialEq for Graph {
    fn eq(&self, other: &Graph) -> bool {
        self.nodes == other.nodes
            && self.dtypes == other.dtypes
            && self.shape_ids == other.shape_ids
            && self.shapes == other.shapes
            && self.lists == other.lists
            && self.outputs == other.outputs
    }
}

impl Eq for Graph {}

impl Hash for Graph {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nodes.hash(state);
        self.outputs.hash(state);
        self.shapes.hash(state);
        self.shape_ids.hash(state);
    }
}
