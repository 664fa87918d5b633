//! What computing and moving values costs, as the partition counts it.
//!
//! One unit is an elementwise operation on one element; a byte to or from memory counts as
//! [`OPS_PER_BYTE`] of them. While groups grow it is asked what a value costs a group beyond what
//! that does anyway ([`Costs::in_group`]). Everything looks at a bounded neighbourhood, so it is
//! linear in the graph.

use crate::graph::{Graph, Node, NodeId, axes_of};
use crate::hal::Caps;
use crate::ops::BinaryOp;
use crate::tune::model::Rates;
use rustc_hash::FxHasher;
use smallvec::SmallVec;
use std::cell::Cell;
use std::hash::{Hash, Hasher};

/// Cost of an element picked from anywhere.
const GATHERED: f32 = 16.0;
/// Elementwise operations done in the time a byte takes to or from memory. Processors and GPUs
/// agree within a factor of two: 2 cores at 5 GHz with 16 lanes do 5 for each byte of 30 GB/s, an
/// H200 7 for each of 4.2 TB/s.
pub(super) const OPS_PER_BYTE: f32 = 5.0;
/// What a launch costs few threads: some microseconds of one core, or less of more.
const OPS_PER_LAUNCH: f64 = 100_000.0;
/// What a library's kernel gains over a loop nest that multiplies and adds.
pub(super) const LIBRARY: f64 = 16.0;
/// Most nodes looked at to decide about one.
pub(super) const MAX_LOOKED_AT: usize = 48;
/// Cost of a value from which on it is stored rather than computed again for every element that
/// it is broadcast to (a normalised row read by every column of a matrix product).
pub(super) const WORTH_STORING: f32 = 3.0;

/// A short list of nodes.
pub(super) type NodeList = SmallVec<[NodeId; MAX_LOOKED_AT]>;

/// The costs of a graph's nodes.
pub(super) struct Costs<'a> {
    graph: &'a Graph,
    /// Elementwise operations that computing an element of each node in place takes, its sources
    /// included.
    in_place: Vec<f32>,
    /// What an element costs a kernel that needs nothing of it yet, transfers included.
    alone: Vec<f32>,
    /// Nodes of several users that cost so much that they are going to be stored.
    stored: Vec<bool>,
    /// By node the number of the last look that met it, and how many there were.
    marks: Vec<Cell<u32>>,
    looks: Cell<u32>,
    /// What a launch costs: the elementwise operations that many threads do in its time.
    pub(super) launch: f64,
}

impl<'a> Costs<'a> {
    pub(super) fn of(graph: &'a Graph, caps: &Caps) -> Costs<'a> {
        let list = || Vec::with_capacity(graph.len());
        let launch = of_launch(caps);
        let (marks, looks) = (vec![Cell::new(0); graph.len()], Cell::new(0));
        let [in_place, alone] = [list(), list()];
        let mut costs = Costs { graph, in_place, alone, stored: Vec::new(), marks, looks, launch };
        let mut uses = vec![0u32; graph.len()];
        for id in graph.ids() {
            graph.node(id).sources().for_each(|x| uses[x.idx()] += 1);
        }
        for id in graph.ids() {
            let cost = costs.with_sources(id);
            costs.in_place.push(cost);
            let alone = costs.on_its_own(id);
            costs.alone.push(alone);
            // One user stores it, another loads it.
            costs.stored.push(uses[id.idx()] > 1 && alone > 2.0 * costs.transfer(id));
        }
        costs
    }

    /// What an element costs by itself, from what is known of the sources.
    fn on_its_own(&self, id: NodeId) -> f32 {
        let node = self.graph.node(id);
        match node {
            Node::Const { .. } | Node::Argument { .. } | Node::Iota => return 0.0,
            _ if is_buffer(&node) => return self.transfer(id),
            _ => {}
        }
        let numel = self.graph.shape(id).numel().max(1) as f32;
        let share = |x: NodeId| (self.graph.shape(x).numel() as f32 / numel).min(1.0);
        let source = |x: NodeId| {
            share(x) * if self.stored[x.idx()] { self.transfer(x) } else { self.alone[x.idx()] }
        };
        (of_op(&node) + node.sources().map(source).sum::<f32>()).min(1e6)
    }

    /// The cost of an element from those of the sources, which are known.
    fn with_sources(&self, id: NodeId) -> f32 {
        let node = self.graph.node(id);
        if is_buffer(&node) {
            return 0.0;
        }
        let numel = self.graph.shape(id).numel().max(1) as f32;
        let share = |x: NodeId| (self.graph.shape(x).numel() as f32 / numel).min(1.0);
        let sources: f32 = node.sources().map(|x| self.in_place[x.idx()] * share(x)).sum();
        (of_op(&node) + sources).min(1e6)
    }

    /// Elementwise operations that computing an element in place takes.
    pub(super) fn in_place(&self, id: NodeId) -> f32 {
        self.in_place[id.idx()]
    }

    /// What moving an element of a node to or from memory costs.
    pub(super) fn transfer(&self, id: NodeId) -> f32 {
        OPS_PER_BYTE * self.graph.dtype(id).size() as f32
    }

    /// What a launch of its own costs each element of a node.
    pub(super) fn launched(&self, id: NodeId) -> f32 {
        (self.launch / self.graph.shape(id).numel().max(1) as f64) as f32
    }

    /// Operations an element of `id` takes in a group with this first root, beyond what that group
    /// computes or loads for other purposes; in a kernel of its own without one. Transfers are
    /// counted in operations, too.
    pub(super) fn in_group(&self, id: NodeId, root: Option<NodeId>) -> f32 {
        self.looks.set(self.looks.get() + 1);
        if let Some(root) = root {
            self.mark_needed_beside(id, root);
        }
        let numel = self.graph.shape(id).numel().max(1) as f32;
        let mut seen = 0;
        let mut stack = NodeList::from_slice(&[id]);
        let mut cost = 0.0;
        while let Some(x) = stack.pop() {
            if !self.is_new(x) {
                continue;
            }
            if seen == MAX_LOOKED_AT {
                return f32::INFINITY;
            }
            seen += 1;
            let share = (self.graph.shape(x).numel() as f32 / numel).min(1.0);
            let node = self.graph.node(x);
            match node {
                Node::Const { .. } | Node::Argument { .. } | Node::Iota => {}
                _ if is_buffer(&node) || x != id && self.stored[x.idx()] => {
                    cost += share * self.transfer(x);
                }
                _ => {
                    cost += share * of_op(&node);
                    stack.extend(node.sources());
                }
            }
        }
        cost
    }

    /// Whether an element of `id` is made of a reduction, other than of products, that a kernel could
    /// compute beside it: if several kernels computed `id`, it would have to be stored.
    pub(super) fn has_reduction(&self, id: NodeId) -> bool {
        let (mut seen, mut next) = (NodeList::from_slice(&[id]), 0);
        while next < seen.len() && seen.len() <= MAX_LOOKED_AT {
            let node = self.graph.node(seen[next]);
            next += 1;
            if let Node::Reduce { x, .. } = node {
                if !matches!(self.graph.node(x), Node::Binary { op: BinaryOp::Mul, .. }) {
                    return true;
                }
                continue;
            }
            for source in node.sources().filter(|_| !is_buffer(&node)) {
                if !seen.contains(&source) {
                    seen.push(source);
                }
            }
        }
        false
    }

    /// Operations that an element of `id` takes, each once, and bytes of buffers.
    pub(super) fn made_of(&self, id: NodeId) -> [f32; 2] {
        let numel = self.graph.shape(id).numel().max(1) as f32;
        let (mut seen, mut next) = (NodeList::from_slice(&[id]), 0);
        let [mut ops, mut bytes] = [0.0; 2];
        while next < seen.len() {
            if seen.len() > 2 * MAX_LOOKED_AT {
                return [f32::INFINITY; 2];
            }
            let x = seen[next];
            next += 1;
            let node = self.graph.node(x);
            let share = self.graph.shape(x).numel() as f32 / numel;
            if is_buffer(&node) {
                bytes += share * self.graph.dtype(x).size() as f32;
                continue;
            }
            ops += share * of_op(&node);
            for source in node.sources() {
                if !seen.contains(&source) {
                    seen.push(source);
                }
            }
        }
        [ops, bytes]
    }

    /// Whether this look meets a node for the first time.
    fn is_new(&self, x: NodeId) -> bool {
        self.marks[x.idx()].replace(self.looks.get()) != self.looks.get()
    }

    /// Meets nodes near the first root of a group that it needs whatever becomes of `id`.
    fn mark_needed_beside(&self, id: NodeId, root: NodeId) {
        let mut found = NodeList::from_slice(&[root]);
        let mut next = 0;
        self.is_new(root);
        while next < found.len() && found.len() < MAX_LOOKED_AT {
            let node = self.graph.node(found[next]);
            next += 1;
            if next > 1 && is_buffer(&node) {
                continue;
            }
            for x in node.sources() {
                if x != id && self.is_new(x) {
                    found.push(x);
                }
            }
        }
    }
}

/// The first three binary digits of a number: partitions are compared in these, so that what is the cheapest is the
/// same for sizes that hardly differ.
pub(super) fn about(n: usize) -> f64 {
    let rest = n.checked_ilog2().unwrap_or(0).saturating_sub(2);
    (n >> rest << rest) as f64
}

/// What a whole partition costs, counted as it is made.
impl Costs<'_> {
    /// A node computed so many times.
    pub(super) fn computed(&self, id: NodeId, times: usize) -> f64 {
        let node = self.graph.node(id);
        let each = match node {
            Node::Reduce { .. } => about(reduced_count(self.graph, id)),
            _ => f64::from(of_op(&node)),
        };
        each * about(times)
    }

    /// A buffer read or written of which a kernel uses so many elements at most.
    pub(super) fn moved(&self, id: NodeId, uses: usize) -> f64 {
        f64::from(self.transfer(id)) * about(self.graph.shape(id).numel().min(uses))
    }

    /// Equal for nodes that do the same to values of the same shape and have as many uses.
    pub(super) fn class(&self, id: NodeId, uses: u32) -> u64 {
        let mut hash = FxHasher::default();
        let node = self.graph.node(id);
        std::mem::discriminant(&node).hash(&mut hash);
        match node {
            Node::Unary { op, .. } => op.hash(&mut hash),
            Node::Binary { op, .. } => op.hash(&mut hash),
            Node::Reduce { axes, .. } => axes.hash(&mut hash),
            _ => {}
        }
        (self.graph.shape(id), self.graph.dtype(id), uses).hash(&mut hash);
        hash.finish()
    }

    /// A contraction by a library.
    pub(super) fn contracted(&self, id: NodeId) -> f64 {
        self.computed(id, self.graph.shape(id).numel()) * 2.0 / LIBRARY
    }
}

/// Cost of a launch: the elementwise operations that the device does in the same time.
pub(super) fn of_launch(caps: &Caps) -> f64 {
    let rates = Rates::of(caps);
    match saves_launches(caps) {
        true => rates.launch * rates.bytes * f64::from(OPS_PER_BYTE),
        false => OPS_PER_LAUNCH,
    }
}

/// Whether values are computed again to save launches: a launch of few threads is cheap, and where loops
/// may not be long, kernels that do more are cut in parts.
pub(super) fn saves_launches(caps: &Caps) -> bool {
    !caps.has_few_threads() && caps.max_iterations == 0
}

/// Whether the node is a buffer, or as good as.
fn is_buffer(node: &Node) -> bool {
    matches!(
        node,
        Node::Leaf { .. }
            | Node::Reduce { .. }
            | Node::Scan { .. }
            | Node::Recurrence { .. }
            | Node::Scatter { .. }
            | Node::RadixScatter { .. }
            | Node::SortRows { .. }
            | Node::Kernel { .. }
            | Node::Operands { .. }
            | Node::Fourier { .. }
            | Node::Copy { .. }
    )
}

/// Operations an element of the node takes beside its sources.
pub(super) fn of_op(node: &Node) -> f32 {
    match node {
        Node::Unary { op, .. } => op.weight(),
        Node::Binary { op, .. } => op.weight(),
        Node::Ternary { .. } | Node::Cast { .. } | Node::Bitcast { .. } => 1.0,
        Node::Gather { .. } => GATHERED,
        _ => 0.0,
    }
}

/// Number of elements that meet in one result of a reduction.
pub(crate) fn reduced_count(graph: &Graph, id: NodeId) -> usize {
    match graph.node(id) {
        Node::Reduce { axes, x, .. } => axes_of(axes).map(|axis| graph.shape(x)[axis]).product(),
        _ => 1,
    }
}
