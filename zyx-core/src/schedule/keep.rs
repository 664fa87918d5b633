//! Values that a plan stores because the program holds them and may ask for them later.
//!
//! A plan computes all values that its outputs depend on. Most of these are fused into other values, or dropped
//! with the plan. But the program may hold an intermediate tensor, or a pending tensor that depends on one. A
//! later plan would compute that value again. [`choose`] decides, from the graph and its held nodes, which
//! values become further outputs: those that cost more to compute again than to store and load, in the units
//! of [`cost`](super::cost).
//!
//! A held value that is cheap to compute from others is computed in place, and these others count as held
//! instead. So elementwise chains stay fused, and each kept value ends a contraction, a reduction or a long
//! chain. A value of which a plan needs less than half is kept only if an earlier plan needed a part of it, or
//! if a launch computes all of it anyway. The delay at most doubles the cost of all reads together. For a cheap
//! value that an earlier plan computed in place, the loads of its operands count, too: otherwise a running
//! average in a loop would become an ever longer sum.

use super::alternatives::LARGER;
use super::cost::{self, LIBRARY, MAX_LOOKED_AT, OPS_PER_BYTE, reduced_count};
use super::item::storage;
use crate::dtype::DType;
use crate::graph::{Graph, HeldNode, KeptNode, Node, NodeId};
use crate::hal::Caps;
use crate::ops::BinaryOp;
use std::collections::BTreeMap;

/// Bytes up to which a value may be kept by any plan. Above them, it may have at most [`LARGER`] times the bytes
/// of the plan's largest leaf or output. It is chosen, not measured: pending data of a usual model fit, and no plan
/// is short of memory for a few of them.
const MAX_BYTES_ALWAYS_KEPT: usize = 16 << 20;

/// The treatment of a plan's held nodes.
#[derive(Debug, Default)]
pub(super) struct Choice {
    /// Nodes that become further outputs, ascending.
    pub(super) kept: Vec<KeptNode>,
    /// Nodes that are computed in place. Their tensors note that a part of them was needed.
    pub(super) deferred: Vec<NodeId>,
    /// Leaves from which held values that are not stored will be computed.
    pub(super) live_leaves: Vec<NodeId>,
}

/// Decides which held nodes the plan of the `asked` nodes stores.
pub(super) fn choose(graph: &Graph, asked: &[NodeId], held: &[HeldNode], caps: &Caps) -> Choice {
    if !held.iter().any(|node| node.held) {
        return Choice::default();
    }
    Keep::new(graph, asked, caps).choose(held)
}

struct Keep<'a> {
    graph: &'a Graph,
    asked: Vec<bool>,
    /// Whether the plan stores a node: asked nodes, their storage, and kept nodes.
    stored: Vec<bool>,
    /// Uses of each node as an operand.
    uses: Vec<u32>,
    /// Whether a node is a product that a sum, a difference or a reduction reads.
    inside: Vec<bool>,
    /// Elements of each node that the asked nodes need.
    demand: Vec<f64>,
    /// Bytes of the largest value that may be kept.
    most_bytes: usize,
    /// Cost of a launch.
    launch: f64,
}

impl<'a> Keep<'a> {
    fn new(graph: &'a Graph, asked: &[NodeId], caps: &Caps) -> Keep<'a> {
        let [mut is_asked, mut stored] = [(); 2].map(|()| vec![false; graph.len()]);
        for &output in asked {
            is_asked[output.idx()] = true;
            stored[output.idx()] = true;
            stored[storage(graph, output).idx()] = true;
        }
        let mut uses = vec![0; graph.len()];
        let mut inside = vec![false; graph.len()];
        for id in graph.ids() {
            let node = graph.node(id);
            let sums = matches!(
                node,
                Node::Binary { op: BinaryOp::Add | BinaryOp::Sub, .. } | Node::Reduce { .. }
            );
            for x in node.sources() {
                uses[x.idx()] += 1;
                let product = matches!(graph.node(x), Node::Binary { op: BinaryOp::Mul, .. });
                inside[x.idx()] |= product && sums;
            }
        }
        let mut demand = vec![0.0; graph.len()];
        asked.iter().for_each(|id| demand[id.idx()] = elements(graph, *id));
        for id in graph.ids().rev() {
            let own = demand[id.idx()];
            if own > 0.0 {
                each_demand(graph, id, own, &mut |x, elements_of_x| {
                    demand[x.idx()] = (demand[x.idx()] + elements_of_x).min(elements(graph, x));
                });
            }
        }
        let largest = graph.ids().filter(|&id| {
            let node = graph.node(id);
            stored[id.idx()] || matches!(node, Node::Leaf { .. })
        });
        let largest = largest.map(|id| bytes(graph, id)).max().unwrap_or(0);
        let most_bytes = largest.saturating_mul(LARGER).max(MAX_BYTES_ALWAYS_KEPT);
        let launch = cost::of_launch(caps);
        Keep { graph, asked: is_asked, stored, uses, inside, demand, most_bytes, launch }
    }

    fn choose(mut self, held: &[HeldNode]) -> Choice {
        let mut live = vec![false; self.graph.len()];
        let mut needed = vec![false; self.graph.len()];
        for node in held {
            live[node.node.idx()] = node.held;
            needed[node.node.idx()] = node.needed;
        }
        let (mut chosen, mut deferred) = (Vec::new(), Vec::new());
        for id in self.graph.ids().rev() {
            if !live[id.idx()] || self.asked[id.idx()] {
                continue;
            }
            if self.may_be_kept(id) {
                let again = needed[id.idx()];
                let [computing, storing] = self.costs(id, again);
                let part = 2.0 * self.demand[id.idx()] < elements(self.graph, id)
                    && !self.is_computed_whole(id);
                if computing > storing && (again || !part) {
                    chosen.push((id, again));
                    continue;
                }
                if computing > storing || held.iter().any(|held| held.node == id) {
                    deferred.push(id);
                }
            }
            self.graph.node(id).sources().for_each(|x| live[x.idx()] = true);
        }
        // Operands come first here: a chosen node is not kept if its kept operands make it cheap to compute.
        let mut kept = Vec::new();
        let mut cheap = Vec::new();
        for (node, again) in chosen.into_iter().rev() {
            let [computing, storing] = self.costs(node, again);
            if computing > storing {
                self.stored[node.idx()] = true;
                kept.push(KeptNode { node, computing, storing });
            } else {
                cheap.push(node);
            }
        }
        while let Some(id) = cheap.pop() {
            for x in self.graph.node(id).sources() {
                if !self.stored[x.idx()] && !std::mem::replace(&mut live[x.idx()], true) {
                    cheap.push(x);
                }
            }
        }
        let leaf = |id: &NodeId| matches!(self.graph.node(*id), Node::Leaf { .. });
        let live_leaves = self.graph.ids().filter(|id| live[id.idx()] && leaf(id)).collect();
        Choice { kept, deferred, live_leaves }
    }

    /// Whether a node may be kept: storing it changes no other value, and it is not too large. Movement is not
    /// kept, except slices that leave elements out. Nor is a product that a sum reads, since the two may be
    /// rounded as one operation.
    fn may_be_kept(&self, id: NodeId) -> bool {
        let node = self.graph.node(id);
        let part = match node {
            Node::Shrink { x, .. } => self.graph.shape(id).numel() < self.graph.shape(x).numel(),
            _ => false,
        };
        let is_list = matches!(node, Node::Operands { .. });
        let computes = node.arity() > 0 && !is_list && (part || !node.is_movement());
        let float_product = self.inside[id.idx()];
        let bytes = bytes(self.graph, id);
        computes && !float_product && bytes > 0 && bytes <= self.most_bytes
    }

    /// Whether all of a node is computed even if only a part of it is needed: float contractions, which a
    /// library may compute, and operations that need a launch, except other reductions.
    fn is_computed_whole(&self, id: NodeId) -> bool {
        let node = self.graph.node(id);
        match node {
            Node::Reduce { .. } => {
                contraction(self.graph, id).is_some() && self.graph.dtype(id).is_float()
            }
            _ => is_heavy(&node),
        }
    }

    /// Whether a node needs a launch, or is computed element by element from a node that needs a launch and
    /// has no other user.
    fn ends_kernel(&self, id: NodeId) -> bool {
        let (mut rest, mut seen) = (vec![id], 0);
        while let Some(x) = rest.pop() {
            let node = self.graph.node(x);
            if is_heavy(&node) {
                return true;
            }
            seen += 1;
            if seen == MAX_LOOKED_AT {
                return false;
            }
            let follows = |x: &NodeId| {
                self.uses[x.idx()] == 1 && elements(self.graph, *x) == elements(self.graph, id)
            };
            rest.extend(node.sources().filter(follows));
        }
        false
    }

    /// `[computing, storing]`: the cost of computing a node another time, and of storing it and loading it once.
    /// `again` says that an earlier plan needed a part of the node. Then each step of a loop may compute
    /// it, or a chain grows from it: loads of stored operands and at least one launch count as well.
    fn costs(&self, id: NodeId, again: bool) -> [f64; 2] {
        let graph = self.graph;
        // A launch stores its result anyway, so one transfer is saved.
        let moves = if self.ends_kernel(id) { 1.0 } else { 2.0 };
        let storing = moves * transfer(graph.dtype(id)) * elements(graph, id);
        let mut rest = BTreeMap::from([(id, elements(graph, id))]);
        let (mut computing, mut seen) = (0.0, 0);
        let mut launches = if again { self.launch } else { 0.0 };
        while let Some((x, demand)) = rest.pop_last() {
            let leaf = matches!(graph.node(x), Node::Leaf { .. });
            if leaf || x != id && self.stored[x.idx()] {
                if again {
                    computing += demand * transfer(graph.dtype(x));
                }
                continue;
            }
            if seen == MAX_LOOKED_AT {
                return [f64::INFINITY, storing];
            }
            let node = graph.node(x);
            seen += usize::from(node.arity() > 0 && !node.is_movement());
            let each = match node {
                Node::Reduce { .. } if contraction(graph, x).is_some() => {
                    2.0 * reduced_count(graph, x) as f64 / LIBRARY
                }
                Node::Reduce { .. } => reduced_count(graph, x) as f64,
                _ if is_heavy(&node) => 2.0 * transfer(graph.dtype(x)),
                _ => f64::from(cost::of_op(&node)),
            };
            if is_heavy(&node) {
                launches = self.launch;
            }
            computing += demand * each;
            // The cost of a contraction includes its product, so the operands of the product come next.
            let (through, demand) = match contraction(graph, x) {
                Some(product) => (product, demand * reduced_count(graph, x) as f64),
                None => (x, demand),
            };
            each_demand(graph, through, demand, &mut |x, more| {
                let own = rest.entry(x).or_insert(0.0);
                *own = (*own + more).min(elements(graph, x));
            });
        }
        [computing + launches, storing]
    }
}

fn transfer(dtype: DType) -> f64 {
    f64::from(OPS_PER_BYTE) * dtype.size() as f64
}

fn elements(graph: &Graph, id: NodeId) -> f64 {
    graph.shape(id).numel() as f64
}

fn bytes(graph: &Graph, id: NodeId) -> usize {
    graph.shape(id).numel().saturating_mul(graph.dtype(id).size())
}

/// The product that a node sums, if the node is a contraction.
fn contraction(graph: &Graph, id: NodeId) -> Option<NodeId> {
    match graph.node(id) {
        Node::Reduce { op: BinaryOp::Add, x, .. } => {
            matches!(graph.node(x), Node::Binary { op: BinaryOp::Mul, .. }).then_some(x)
        }
        _ => None,
    }
}

/// Whether a node usually needs a launch, such as a reduction, a scan or a scatter: it is neither elementwise nor
/// movement, a bitcast or a gather.
fn is_heavy(node: &Node) -> bool {
    node.arity() > 0
        && !node.is_elementwise()
        && !node.is_movement()
        && !matches!(node, Node::Bitcast { .. } | Node::Gather { .. })
}

/// Calls `show` for each source of a node, with the number of elements of it that `demand` elements of the node
/// need.
fn each_demand(graph: &Graph, id: NodeId, demand: f64, show: &mut dyn FnMut(NodeId, f64)) {
    let node = graph.node(id);
    for x in node.sources() {
        let all = elements(graph, x);
        let needed = match node {
            Node::Reduce { .. } => demand * reduced_count(graph, id) as f64,
            Node::Copy { .. } => demand,
            _ if is_heavy(&node) => all,
            _ => demand,
        };
        show(x, needed.min(all));
    }
}
