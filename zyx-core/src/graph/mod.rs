//! The graph: what is reached from some tensors, as a dense arena.
//!
//! [`capture`] walks from the outputs to realized leaves without recursion and yields nodes of
//! sixteen bytes in topological order, hash-consed, with shapes and lists interned. Leaves and
//! non-literal constants are numbered in order of first visit, so equal steps of a training loop
//! give equal graphs: the structure is the key of the plan cache and the values are its arguments.

mod capture;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod eval;
pub(crate) mod fourier;
mod fuse_calls;
mod kernel;
mod last_use;
mod match_capture;
mod op;
mod origins;
mod pieces;
mod places;
mod scan;
mod scatter;
mod split;

pub(crate) use capture::{Bindings, capture, capture_function, capture_with_order};
pub(crate) use fuse_calls::fuse_calls;
pub(crate) use kernel::{KernelCall, RawCall, number_calls};
pub(crate) use last_use::Holders;
#[cfg(test)]
pub(crate) use match_capture::match_capture;
pub(crate) use match_capture::{CaptureOrder, HeldNode, Matched, match_held};
pub(crate) use op::{GradientRule, Op, Perm, UpdateOrder, axes_of, is_index};
pub(crate) use origins::Origins;
pub(crate) use places::{Place, Places};
pub(crate) use scan::split_scans;
pub(crate) use scatter::{number_assignments, split_scatters};
pub(crate) use split::{Cut, split_reductions, split_where};

use crate::dtype::DType;
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::shape::Shape;
use fourier::Form;
use rustc_hash::FxHashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The position of a node in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub(crate) u32);

impl NodeId {
    pub(crate) fn idx(self) -> usize {
        self.0 as usize
    }
}

/// A node: an op on earlier nodes. Meanings are those of the tensor graph's op table. The `state` of a
/// scan, if it has one, is no source: groups of threads leave there what others look back at.
///
/// A `Recurrence` is a scaled scan, `y[t] = factor[t] * y[t - 1] + x[t]`, where a product with zero is zero
/// whatever the factor is: an element without one before it is taken as it is.
///
/// A `Fourier` has the fields of a [`Form`], which would not pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Leaf {
        slot: u32,
    },
    Const {
        bits: u64,
    },
    Argument {
        slot: u32,
    },
    Iota,
    Unary {
        op: UnaryOp,
        x: NodeId,
    },
    Binary {
        op: BinaryOp,
        x: NodeId,
        y: NodeId,
    },
    Ternary {
        op: TernaryOp,
        x: NodeId,
        y: NodeId,
        z: NodeId,
    },
    Cast {
        x: NodeId,
    },
    Bitcast {
        x: NodeId,
    },
    Reduce {
        op: BinaryOp,
        axes: u16,
        x: NodeId,
    },
    Scan {
        op: BinaryOp,
        axis: u8,
        reverse: bool,
        x: NodeId,
        state: Option<NodeId>,
    },
    Recurrence {
        axis: u8,
        reverse: bool,
        x: NodeId,
        factor: NodeId,
    },
    Reshape {
        x: NodeId,
    },
    Permute {
        x: NodeId,
        perm: Perm,
    },
    Expand {
        x: NodeId,
    },
    Pad {
        x: NodeId,
        list: u32,
    },
    Shrink {
        x: NodeId,
        list: u32,
    },
    Flip {
        x: NodeId,
        axes: u16,
    },
    Gather {
        axis: u8,
        x: NodeId,
        index: NodeId,
    },
    Scatter {
        axis: u8,
        op: Option<BinaryOp>,
        order: UpdateOrder,
        base: NodeId,
        index: NodeId,
        x: NodeId,
    },
    RadixScatter {
        x: NodeId,
        shift: NodeId,
        starts: NodeId,
    },
    SortRows {
        first: u8,
        bits: u8,
        x: NodeId,
    },
    Fourier {
        x: NodeId,
        roots: NodeId,
        inverse: bool,
        real: bool,
        done: u32,
    },
    Copy {
        x: NodeId,
    },
    Kernel {
        n: u8,
        call: u32,
        x: NodeId,
        y: NodeId,
    },
    Operands {
        n: u8,
        x: NodeId,
        y: NodeId,
        z: NodeId,
    },
}

const _: () = assert!(size_of::<Node>() == 16, "graph nodes are sixteen bytes");

impl Node {
    /// The same op on sources replaced by `f`.
    pub(crate) fn map(self, f: impl Fn(NodeId) -> NodeId) -> Node {
        let mut node = self;
        match &mut node {
            Node::Leaf { .. } | Node::Const { .. } | Node::Argument { .. } | Node::Iota => {}
            Node::Unary { x, .. } | Node::Cast { x } | Node::Bitcast { x } => *x = f(*x),
            Node::Reduce { x, .. } | Node::Reshape { x } => *x = f(*x),
            Node::Scan { x, state, .. } => (*x, *state) = (f(*x), state.map(&f)),
            Node::Permute { x, .. } | Node::Expand { x } | Node::Pad { x, .. } => *x = f(*x),
            Node::Shrink { x, .. } | Node::Flip { x, .. } | Node::Copy { x } => *x = f(*x),
            Node::SortRows { x, .. } => *x = f(*x),
            Node::Binary { x, y, .. } => (*x, *y) = (f(*x), f(*y)),
            Node::Recurrence { x, factor, .. } => (*x, *factor) = (f(*x), f(*factor)),
            Node::Gather { x, index, .. } => (*x, *index) = (f(*x), f(*index)),
            Node::Ternary { x, y, z, .. } => (*x, *y, *z) = (f(*x), f(*y), f(*z)),
            Node::RadixScatter { x, shift, starts } => {
                (*x, *shift, *starts) = (f(*x), f(*shift), f(*starts));
            }
            Node::Fourier { x, roots, .. } => (*x, *roots) = (f(*x), f(*roots)),
            // Those beyond the number of sources are no nodes.
            Node::Kernel { n, x, y, .. } => {
                let sources = [x, y].into_iter().take(usize::from(*n));
                sources.for_each(|x| *x = f(*x));
            }
            Node::Operands { n, x, y, z } => {
                let sources = [x, y, z].into_iter().take(usize::from(*n));
                sources.for_each(|x| *x = f(*x));
            }
            Node::Scatter { base, index, x, .. } => {
                (*base, *index, *x) = (f(*base), f(*index), f(*x));
            }
        }
        node
    }

    /// The node of an op on these sources; `None` for an op whose node needs more than is said in
    /// both: aliases, arguments, paddings and shrinks.
    #[inline]
    pub(crate) fn plain(op: &Op, [x, y, z]: [NodeId; 3]) -> Option<Node> {
        Some(match op {
            Op::Alias(_)
            | Op::Within(_)
            | Op::Const { literal: false, .. }
            | Op::Pad(_)
            | Op::Kernel(_)
            | Op::Shrink(_) => return None,
            Op::Operands { n } => {
                let own = |i: u8, x: NodeId| if i < *n { x } else { NodeId(0) };
                Node::Operands { n: *n, x: own(0, x), y: own(1, y), z: own(2, z) }
            }
            Op::Const { bits, literal: true } => Node::Const { bits: *bits },
            Op::Iota => Node::Iota,
            Op::Unary(op) => Node::Unary { op: *op, x },
            Op::Binary(op) => Node::Binary { op: *op, x, y },
            Op::Ternary(op) => Node::Ternary { op: *op, x, y, z },
            Op::Cast { bits: false } => Node::Cast { x },
            Op::Cast { bits: true } => Node::Bitcast { x },
            Op::Reduce { op, axes } => Node::Reduce { op: *op, axes: *axes, x },
            Op::Scan { axis, reverse, scaled: true, .. } => {
                Node::Recurrence { axis: *axis, reverse: *reverse, x, factor: y }
            }
            Op::Scan { op, axis, reverse, scaled: false } => {
                Node::Scan { op: *op, axis: *axis, reverse: *reverse, x, state: None }
            }
            Op::Reshape => Node::Reshape { x },
            Op::Permute(perm) => Node::Permute { x, perm: *perm },
            Op::Expand => Node::Expand { x },
            Op::Flip { axes } => Node::Flip { x, axes: *axes },
            Op::Gather { axis } => Node::Gather { axis: *axis, x, index: y },
            Op::Scatter { axis, op, order } => {
                Node::Scatter { axis: *axis, op: *op, order: *order, base: x, index: y, x: z }
            }
            Op::RadixScatter => Node::RadixScatter { x, shift: y, starts: z },
            Op::SortRows { first, bits } => Node::SortRows { first: *first, bits: *bits, x },
            Op::Fourier(Form { inverse, real, done }) => {
                Node::Fourier { x, roots: y, inverse: *inverse, real: *real, done: *done }
            }
            Op::Copy => Node::Copy { x },
        })
    }

    /// Whether this is [`Node::plain`] of an op on these sources, without making that node first.
    #[inline]
    pub(crate) fn is_plain(&self, op: &Op, own: [NodeId; 3]) -> bool {
        let [a, b, c] = own;
        match (op, *self) {
            (Op::Const { bits, literal: true }, Node::Const { bits: other }) => *bits == other,
            (Op::Unary(op), Node::Unary { op: other, x }) => *op == other && x == a,
            (Op::Binary(op), Node::Binary { op: other, x, y }) => *op == other && x == a && y == b,
            (Op::Ternary(op), Node::Ternary { op: other, x, y, z }) => {
                *op == other && x == a && y == b && z == c
            }
            (Op::Cast { bits: false }, Node::Cast { x })
            | (Op::Cast { bits: true }, Node::Bitcast { x })
            | (Op::Reshape, Node::Reshape { x })
            | (Op::Expand, Node::Expand { x })
            | (Op::Copy, Node::Copy { x }) => x == a,
            (Op::Permute(perm), Node::Permute { x, perm: other }) => *perm == other && x == a,
            (Op::Reduce { op, axes }, Node::Reduce { op: other, axes: others, x }) => {
                *op == other && *axes == others && x == a
            }
            _ => Node::plain(op, own) == Some(*self),
        }
    }

    /// The op with what belongs to it, whatever its sources are.
    pub(crate) fn op_words(&self) -> [u64; 2] {
        self.map(|_| NodeId(0)).words()
    }

    /// Whether each element is computed from those at its place.
    pub(crate) fn is_elementwise(&self) -> bool {
        matches!(
            self,
            Node::Unary { .. } | Node::Binary { .. } | Node::Ternary { .. } | Node::Cast { .. }
        )
    }

    /// Whether elements are those of the source at other places, or zeros.
    pub(crate) fn is_movement(&self) -> bool {
        matches!(
            self,
            Node::Reshape { .. }
                | Node::Permute { .. }
                | Node::Expand { .. }
                | Node::Pad { .. }
                | Node::Shrink { .. }
                | Node::Flip { .. }
        )
    }

    /// Number of sources.
    pub(crate) fn arity(&self) -> usize {
        match self {
            Node::Leaf { .. } | Node::Const { .. } | Node::Argument { .. } | Node::Iota => 0,
            Node::Unary { .. } | Node::Cast { .. } | Node::Bitcast { .. } => 1,
            Node::Reduce { .. } | Node::Scan { .. } | Node::Reshape { .. } => 1,
            Node::Permute { .. } | Node::Expand { .. } | Node::Pad { .. } => 1,
            Node::Shrink { .. } | Node::Flip { .. } | Node::Copy { .. } => 1,
            Node::SortRows { .. } => 1,
            Node::Binary { .. } | Node::Gather { .. } | Node::Recurrence { .. } => 2,
            Node::Fourier { .. } => 2,
            Node::Ternary { .. } | Node::Scatter { .. } | Node::RadixScatter { .. } => 3,
            Node::Kernel { n, .. } | Node::Operands { n, .. } => usize::from(*n),
        }
    }

    /// All fields in two words: nodes are equal if and only if their words are.
    #[inline]
    fn words(&self) -> [u64; 2] {
        let pair = |x: NodeId, y: NodeId| u64::from(x.0) | u64::from(y.0) << 32;
        // The first byte tells variants apart.
        let head = |variant: u64, a: u64, b: u64| variant | a << 8 | b << 32;
        match *self {
            Node::Leaf { slot } => [0, slot.into()],
            Node::Const { bits } => [1, bits],
            Node::Argument { slot } => [2, slot.into()],
            Node::Iota => [3, 0],
            Node::Unary { op, x } => [head(4, op as u64, 0), x.0.into()],
            Node::Binary { op, x, y } => [head(5, op as u64, 0), pair(x, y)],
            Node::Ternary { op, x, y, z } => [head(6, op as u64, z.0.into()), pair(x, y)],
            Node::Cast { x } => [7, x.0.into()],
            Node::Bitcast { x } => [8, x.0.into()],
            Node::Reduce { op, axes, x } => [head(9, op as u64, axes.into()), x.0.into()],
            Node::Scan { op, axis, reverse, x, state } => {
                let along = u64::from(axis) | u64::from(reverse) << 8;
                [head(10, op as u64, along), pair(x, state.unwrap_or(NodeId(u32::MAX)))]
            }
            Node::Reshape { x } => [11, x.0.into()],
            Node::Permute { x, perm } => [head(12, 0, x.0.into()), perm.bits()],
            Node::Expand { x } => [13, x.0.into()],
            Node::Pad { x, list } => [head(14, 0, list.into()), x.0.into()],
            Node::Shrink { x, list } => [head(15, 0, list.into()), x.0.into()],
            Node::Flip { x, axes } => [head(16, 0, axes.into()), x.0.into()],
            Node::Gather { axis, x, index } => [head(17, axis.into(), 0), pair(x, index)],
            Node::Scatter { axis, op, order, base, index, x } => {
                let how = u64::from(axis) | (order as u64) << 6;
                let how = how | op.map_or(0, |op| 1 + op as u64) << 8;
                [head(18, how, x.0.into()), pair(base, index)]
            }
            Node::Recurrence { axis, reverse, x, factor } => {
                [head(21, axis.into(), reverse.into()), pair(x, factor)]
            }
            Node::Copy { x } => [19, x.0.into()],
            Node::Fourier { x, roots, inverse, real, done } => {
                let how = u64::from(inverse) | u64::from(real) << 1;
                [head(22, how, done.into()), pair(x, roots)]
            }
            Node::Kernel { n, call, x, y } => [head(24, n.into(), call.into()), pair(x, y)],
            Node::Operands { n, x, y, z } => [head(25, n.into(), z.0.into()), pair(x, y)],
            Node::SortRows { first, bits, x } => [head(23, first.into(), bits.into()), x.0.into()],
            Node::RadixScatter { x, shift, starts } => {
                [head(20, 0, x.0.into()), pair(shift, starts)]
            }
        }
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
            Node::SortRows { x, .. } => ([x; 3], 1),
            Node::Binary { x, y, .. } => ([x, y, y], 2),
            Node::Gather { x, index, .. } => ([x, index, index], 2),
            Node::Recurrence { x, factor, .. } => ([x, factor, factor], 2),
            Node::Ternary { x, y, z, .. } => ([x, y, z], 3),
            Node::Scatter { base, index, x, .. } => ([base, index, x], 3),
            Node::RadixScatter { x, shift, starts } => ([x, shift, starts], 3),
            Node::Fourier { x, roots, .. } => ([x, roots, roots], 2),
            Node::Kernel { n, x, y, .. } => ([x, y, y], usize::from(n)),
            Node::Operands { n, x, y, z } => ([x, y, z], usize::from(n)),
        };
        list.into_iter().take(n)
    }
}

impl std::fmt::Display for KeptNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let KeptNode { computing, storing, .. } = self;
        write!(f, "the program holds it, and computing it again costs ")?;
        match computing.is_finite() {
            true => write!(f, "{computing:.0} operations, storing and loading it {storing:.0}"),
            false => f.write_str("a long chain of operations"),
        }
    }
}

/// A captured graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) dtypes: Vec<DType>,
    shape_ids: Vec<u32>,
    shapes: Vec<Shape>,
    /// Their numbers, once a node was appended to a graph that is rewritten.
    known_shapes: FxHashMap<Shape, u32>,
    /// Paddings (before, after) per axis, or starts of a shrink (start, 0) per axis; see [`Place`].
    lists: Vec<places::List>,
    /// The calls of user kernels.
    pub(crate) calls: Vec<Arc<KernelCall>>,
    pub(crate) outputs: Vec<NodeId>,
    /// Of all nodes with their dtypes and shapes, in order.
    hash: u64,
    /// The slots of arguments that are places.
    places: std::ops::Range<u32>,
    /// Where nodes come from; no part of what graphs are compared by.
    pub(crate) origins: Origins,
    /// Whether slices or paddings may be equal.
    twins: bool,
    /// The last outputs, in their order: those that are stored only because the program holds them. Comparisons
    /// of graphs ignore this list.
    pub(crate) kept: Vec<KeptNode>,
}

/// A value that is stored because the program holds it, with what computing it again costs, and what
/// storing and loading it does, in elementwise operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct KeptNode {
    pub(crate) node: NodeId,
    pub(crate) computing: f64,
    pub(crate) storing: f64,
}

impl Graph {
    /// A graph without nodes that shares shapes and lists with this one.
    pub(crate) fn without_nodes(&self) -> Graph {
        let places = self.places.clone();
        let (shapes, lists) = (self.shapes.clone(), self.lists.clone());
        let (calls, origins) = (self.calls.clone(), self.origins.of_no_nodes());
        Graph { shapes, lists, calls, places, origins, ..Graph::default() }
    }

    /// Appends a node with the hash of all that is said of it here.
    fn add(&mut self, node: Node, dtype: DType, shape: u32, hash: u64) {
        self.nodes.push(node);
        self.dtypes.push(dtype);
        self.shape_ids.push(shape);
        self.hash = (self.hash.rotate_left(7) ^ hash).wrapping_mul(0xff51_afd7_ed55_8ccd);
    }

    /// Makes space for so many nodes.
    fn reserve(&mut self, nodes: usize) {
        self.nodes.reserve(nodes);
        self.dtypes.reserve(nodes);
        self.shape_ids.reserve(nodes);
    }

    /// For each output whether it depends on a leaf of a slot that is marked.
    pub(crate) fn reached_from(&self, is_marked: impl Fn(u32) -> bool) -> Vec<bool> {
        let mut reached: Vec<bool> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            reached.push(match node {
                Node::Leaf { slot } => is_marked(*slot),
                node => node.sources().any(|source| reached[source.idx()]),
            });
        }
        self.outputs.iter().map(|output| reached[output.idx()]).collect()
    }

    /// Without space for more nodes: for a graph that is kept.
    pub(crate) fn shrunk(mut self) -> Graph {
        self.nodes.shrink_to_fit();
        self.dtypes.shrink_to_fit();
        self.shape_ids.shrink_to_fit();
        self.shapes.shrink_to_fit();
        self
    }

    /// Bytes of memory, roughly.
    pub(crate) fn bytes(&self) -> usize {
        let node = size_of::<Node>() + size_of::<DType>() + size_of::<u32>();
        let lists = self.lists.iter().map(|list| 32 + size_of_val(&**list)).sum::<usize>();
        size_of::<Graph>() + self.len() * node + 64 * self.shapes.len() + lists
    }

    pub(crate) fn node(&self, id: NodeId) -> Node {
        self.nodes[id.idx()]
    }

    /// Equal for nodes of equal shapes.
    pub(crate) fn shape_id(&self, id: NodeId) -> u32 {
        self.shape_ids[id.idx()]
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

    /// The inputs of a user kernel.
    pub(crate) fn inputs_of_kernel(&self, id: NodeId) -> Vec<NodeId> {
        let mut inputs = Vec::new();
        let mut sources: Vec<NodeId> = self.node(id).sources().rev().collect();
        while let Some(x) = sources.pop() {
            match self.node(x) {
                list @ Node::Operands { .. } => sources.extend(list.sources().rev()),
                _ => inputs.push(x),
            }
        }
        inputs
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
        self.hash == other.hash
            && self.nodes == other.nodes
            && self.dtypes == other.dtypes
            && self.shape_ids == other.shape_ids
            && self.shapes == other.shapes
            && self.lists == other.lists
            && self.calls == other.calls
            && self.outputs == other.outputs
    }
}

impl Eq for Graph {}

impl Hash for Graph {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
        self.outputs.hash(state);
        self.shapes.hash(state);
    }
}
