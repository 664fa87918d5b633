//! Splitting long scans into blocks.
//!
//! A scan of few long rows is one serial loop for each, which keeps one thread busy. Here it
//! becomes three steps: the combination of each block, a scan of those (short), and a scan of each
//! block whose first element takes what came before. The work stays linear and blocks are
//! independent, so no thread waits for another. The number of blocks depends on the extents alone,
//! so results do not depend on the number of threads. Where groups of threads may wait for earlier
//! ones, scans that have a [state](Node::Scan) are left as they are.
//!
//! Of a recurrence each block starts from zero; what came before reaches an element through the product
//! of the block's factors up to it (the composition of affine functions, Blelloch 1990).

use super::{Graph, Node, NodeId};
use crate::dtype::DType;
use crate::ops::{BinaryOp, TernaryOp};
use crate::shape::Shape;

/// Rows below which a scan is split, and elements of a row from which on.
const FEW_ROWS: usize = 64;
const MANY_ELEMENTS: usize = 1 << 13;
/// Of scans across memory on a device of many threads: columns below this part of its threads, and
/// elements from which on. A thread walks along each column, neighbours read neighbours; two walks of a
/// block each have to be shorter than that.
const COLUMNS: (usize, usize) = (8, 4 * SMALL_BLOCK);
/// Elements of a block on a device of few threads: at least, and aimed at for the longest rows.
const BLOCK: (usize, usize) = (1 << 9, 1 << 15);
/// Elements of a block on a device of many threads: few, and their totals are split again.
const SMALL_BLOCK: usize = 64;
/// Rows below which a recurrence is split on a device of many threads, and elements from which on: no
/// other scheme there keeps more than a thread a row busy.
const RECURRENCE: (usize, usize) = (1 << 14, 2 * SMALL_BLOCK);

/// The graph with long scans split for a device of many threads, as many as `threads`, or of few if
/// that is 0; `None` if there is none.
pub(crate) fn split_scans(graph: &Graph, threads: usize) -> Option<Graph> {
    let mut split = split_once(graph, threads)?;
    while let Some(further) = split_once(&split, threads) {
        split = further;
    }
    Some(split)
}

fn split_once(graph: &Graph, threads: usize) -> Option<Graph> {
    let block_length = |graph: &Graph, id: NodeId| block_length(graph, id, threads);
    graph.ids().find(|&id| block_length(graph, id).is_some())?;
    let mut new = graph.without_nodes();
    let mut map: Vec<NodeId> = Vec::with_capacity(graph.len());
    for id in graph.ids() {
        new.origins.hand_on(&graph.origins, id);
        let node = graph.node(id).map(|source| map[source.idx()]);
        let (dtype, shape) = (graph.dtype(id), graph.shape(id).clone());
        let mapped = match (node, block_length(graph, id)) {
            (Node::Scan { op, axis, reverse, x, .. }, Some(length)) => {
                let split = Split { op, axis: axis as usize, reverse, length, dtype, shape };
                split.build(&mut new, x)
            }
            (Node::Recurrence { axis, reverse, x, factor }, Some(length)) => {
                let op = BinaryOp::Add;
                let split = Split { op, axis: axis as usize, reverse, length, dtype, shape };
                split.build_recurrence(&mut new, x, factor)
            }
            (node, _) => new.push(node, dtype, shape),
        };
        map.push(mapped);
    }
    new.outputs = graph.outputs.iter().map(|id| map[id.idx()]).collect();
    Some(new)
}

/// The length of the blocks, if the node is a scan worth splitting.
fn block_length(graph: &Graph, id: NodeId, threads: usize) -> Option<usize> {
    let many_threads = threads > 0;
    let across = |axis: u8| graph.shape(id)[axis as usize + 1..].iter().any(|&n| n > 1);
    let (axis, (few_rows, many_elements)) = match graph.node(id) {
        Node::Scan { axis, state: None, .. } if many_threads && across(axis) => {
            (axis, (threads / COLUMNS.0, COLUMNS.1))
        }
        Node::Scan { axis, state: None, .. } => (axis, (FEW_ROWS, MANY_ELEMENTS)),
        Node::Recurrence { axis, .. } if many_threads => (axis, RECURRENCE),
        Node::Recurrence { axis, .. } => (axis, (FEW_ROWS, MANY_ELEMENTS)),
        _ => return None,
    };
    let shape = graph.shape(id);
    let n = shape[axis as usize];
    let rows = shape.numel() / n.max(1);
    if n < many_elements || rows >= few_rows || shape.rank() > 14 {
        return None;
    }
    if many_threads {
        // Blocks that keep all threads busy; their totals are few then.
        let of_thread = (shape.numel() / (2 * threads)).next_power_of_two();
        let is_scan = matches!(graph.node(id), Node::Scan { .. });
        let most = if is_scan && across(axis) { n / 8 } else { SMALL_BLOCK };
        return Some(of_thread.min(most).max(SMALL_BLOCK));
    }
    // About as many blocks as elements in a block, within limits; a divisor if there is one near.
    let aim = ((n as f64).sqrt() as usize).next_power_of_two().clamp(BLOCK.0, BLOCK.1);
    let near = (aim / 2..=aim * 2).rev().find(|&length| n.is_multiple_of(length));
    Some(if n.is_multiple_of(aim) { aim } else { near.unwrap_or(aim) })
}

/// A scan to be split.
struct Split {
    op: BinaryOp,
    axis: usize,
    reverse: bool,
    length: usize,
    dtype: DType,
    shape: Shape,
}

impl Split {
    fn build(&self, new: &mut Graph, x: NodeId) -> NodeId {
        let Split { op, axis, reverse, length, dtype, .. } = *self;
        let n = self.shape[axis];
        let blocks = n.div_ceil(length);
        let split = new.in_pieces(x, axis, length, op);
        let dims = new.shape(split).to_vec();

        let mut totals = dims.clone();
        totals[axis + 1] = 1;
        let node = Node::Reduce { op, axes: 1 << (axis + 1), x: split };
        let total = new.push(node, dtype, totals.clone().into());
        // Stored, or the short scan would compute it in one loop of its own.
        let total = new.push(Node::Copy { x: total }, dtype, totals.clone().into());
        let node = Node::Scan { op, axis: axis as u8, reverse, x: total, state: None };
        let ends = new.push(node, dtype, totals.clone().into());
        let before = self.moved(new, ends, &totals);
        let before = new.push(Node::Expand { x: before }, dtype, dims.clone().into());

        let takes = self.takes(new, &dims);
        let carried =
            new.push(Node::Binary { op, x: before, y: split }, dtype, dims.clone().into());
        let node = Node::Ternary { op: TernaryOp::Where, x: takes, y: carried, z: split };
        let first = new.push(node, dtype, dims.clone().into());
        let node = Node::Scan { op, axis: axis as u8 + 1, reverse, x: first, state: None };
        let scanned = new.push(node, dtype, dims.into());
        self.joined(new, scanned, blocks * length)
    }

    /// Blocks from zero and the products of their factors, a recurrence of where they end, and what
    /// came before a block times those products.
    fn build_recurrence(&self, new: &mut Graph, x: NodeId, factor: NodeId) -> NodeId {
        let Split { op, axis, reverse, length, dtype, .. } = *self;
        let n = self.shape[axis];
        let blocks = n.div_ceil(length);
        let [x, factor] = [x, factor].map(|x| new.in_pieces(x, axis, length, op));
        let dims = new.shape(x).clone();
        let inner = axis as u8 + 1;
        let node = Node::Recurrence { axis: inner, reverse, x, factor };
        let own = new.push(node, dtype, dims.clone());
        let node = Node::Scan { op: BinaryOp::Mul, axis: inner, reverse, x: factor, state: None };
        let products = new.push(node, dtype, dims.clone());

        let mut totals = dims.to_vec();
        totals[axis + 1] = 1;
        let mut starts = vec![(0, 0); totals.len()];
        starts[axis + 1].0 = if reverse { 0 } else { length - 1 };
        let list = new.list_of(starts);
        let [ends, factor] = [own, products]
            .map(|x| new.push(Node::Shrink { x, list }, dtype, totals.clone().into()));
        let node = Node::Recurrence { axis: axis as u8, reverse, x: ends, factor };
        let ends = new.push(node, dtype, totals.clone().into());
        let before = self.moved(new, ends, &totals);
        let before = new.push(Node::Expand { x: before }, dtype, dims.clone());

        let zero = new.push(Node::Const { bits: 0 }, dtype, dims.clone());
        let mut both = |op, x, y| new.push(Node::Binary { op, x, y }, dtype, dims.clone());
        let carried = both(BinaryOp::Mul, products, before);
        let sum = both(BinaryOp::Add, carried, own);
        let node = Node::Binary { op: BinaryOp::Ne, x: before, y: zero };
        let counts = new.push(node, DType::Bool, dims.clone());
        let node = Node::Ternary { op: TernaryOp::Where, x: counts, y: sum, z: own };
        let states = new.push(node, dtype, dims);
        self.joined(new, states, blocks * length)
    }

    /// Blocks as one axis again, without what was padded.
    fn joined(&self, new: &mut Graph, blocks: NodeId, extent: usize) -> NodeId {
        let mut whole = self.shape.to_vec();
        whole[self.axis] = extent;
        let joined = new.push(Node::Reshape { x: blocks }, self.dtype, whole.into());
        if extent == self.shape[self.axis] {
            return joined;
        }
        let list = new.list_of(vec![(0, 0); self.shape.rank()]);
        new.push(Node::Shrink { x: joined, list }, self.dtype, self.shape.clone())
    }

    /// What ends before each block: the combined blocks one place further.
    fn moved(&self, new: &mut Graph, ends: NodeId, totals: &[usize]) -> NodeId {
        let mut padding = vec![(0, 0); totals.len()];
        let mut starts = padding.clone();
        if self.reverse {
            padding[self.axis].1 = 1;
            starts[self.axis].0 = 1;
        } else {
            padding[self.axis].0 = 1;
        }
        let mut longer = totals.to_vec();
        longer[self.axis] += 1;
        let list = new.list_of(padding);
        let longer = new.push(Node::Pad { x: ends, list }, self.dtype, longer.into());
        let list = new.list_of(starts);
        new.push(Node::Shrink { x: longer, list }, self.dtype, totals.into())
    }

    /// Whether an element takes what came before: the first of each block but the first.
    fn takes(&self, new: &mut Graph, dims: &[usize]) -> NodeId {
        let mut is = |axis: usize, at: usize, op: BinaryOp| {
            let iota = new.push(Node::Iota, DType::I64, Shape::from([dims[axis]]));
            let mut raised = vec![1; dims.len()];
            raised[axis] = dims[axis];
            let raised = new.push(Node::Reshape { x: iota }, DType::I64, raised.into());
            let full = new.push(Node::Expand { x: raised }, DType::I64, dims.into());
            let number = new.push(Node::Const { bits: at as u64 }, DType::I64, dims.into());
            new.push(Node::Binary { op, x: full, y: number }, DType::Bool, dims.into())
        };
        let (block, place) =
            if self.reverse { (dims[self.axis] - 1, self.length - 1) } else { (0, 0) };
        let first = is(self.axis + 1, place, BinaryOp::Eq);
        let later = is(self.axis, block, BinaryOp::Ne);
        new.push(Node::Binary { op: BinaryOp::And, x: first, y: later }, DType::Bool, dims.into())
    }
}

impl Graph {
    /// A list of pairs, interned by search.
    pub(super) fn list_of(&mut self, list: Vec<(usize, usize)>) -> u32 {
        let known = self.lists.iter().position(|known| known[..] == list[..]);
        known.unwrap_or_else(|| {
            self.lists.push(list.into());
            self.lists.len() - 1
        }) as u32
    }
}
