//! Which nodes share a kernel.
//!
//! A *group* is one kernel: an iteration space (the axes of its first root) and the nodes computed
//! in it. *Roots* are stored; every other node of the group is computed where it is needed. The
//! partition visits nodes from the outputs to the leaves; each visit knows for which groups, and
//! at which index tuple of each group's axes, the node's value is needed (its *instances*), and
//! decides:
//!
//! * A node needed as a buffer (an output, an operand of a library kernel) is stored.
//! * Elementwise and movement nodes are computed in place; one needed by several groups is
//!   recomputed in each if that is cheaper than a trip through memory, else stored.
//! * A reduction is computed in place if that does not multiply its work: its index tuple must
//!   run once over a prefix of the group's axes. So softmax and normalisation are one kernel.
//! * A stored node joins a group that computes it anyway, once per element, as a further root, so
//!   values kept for the backward pass cost one store and no kernel.
//! * A contraction goes to a library kernel if the device offers one; an elementwise group over
//!   the same elements becomes its epilogue.
//!
//! A group that has as many buffers as the device binds computes nothing further that needs more:
//! what it needs beyond is stored. Buffers are counted before they are known, each value that is
//! needed as one, so the limit holds and is not always reached.
//!
//! Roots join only when no path can lead back: all other users must come later in topological
//! order than every root of the host. Every step looks at a bounded neighbourhood, so the whole
//! is linear in the graph.

use super::contract::{Contraction, recognize, recognize_rounded};
use super::index::AtomId;
use super::pull::{Indices, TupleId};
use super::reason::Reason;
use crate::graph::{Graph, Node, NodeId, axes_of};
use crate::hal::{Caps, ContractSpec};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// A node that a group stores, at an index tuple over the group's axes.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    pub(crate) node: NodeId,
    pub(crate) tuple: TupleId,
}

/// What a group is lowered to.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// A loop nest over the axes.
    Nest,
    /// A loop nest whose last axis runs serially and carries the scan's state.
    Scan,
    /// An initialising nest and an updating nest.
    Scatter,
    /// A library kernel; further nodes form its epilogue.
    Contract(Box<ContractGroup>),
}

/// A contraction and, if further nodes follow it in the group, where its results stand in the
/// group's axes.
#[derive(Clone, Debug)]
pub(crate) struct ContractGroup {
    pub(crate) contraction: Contraction,
    pub(crate) at: Option<TupleId>,
}

/// Nodes that share a kernel.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) kind: Kind,
    pub(crate) roots: Vec<Root>,
    /// The counters of the iteration space, outermost first.
    pub(crate) axes: Vec<AtomId>,
    /// Number of iterations.
    space: usize,
    /// Nodes computed in place so far.
    nodes: usize,
    reduces: usize,
    first_root: NodeId,
    last_root: NodeId,
}

/// Which nodes are stored, and by which groups.
#[derive(Debug)]
pub(crate) struct Partition {
    /// In an order in which every group's inputs are computed before it.
    pub(crate) groups: Vec<Group>,
    /// For each node the group that stores it.
    pub(crate) home: Vec<Option<u32>>,
    pub(crate) indices: Indices,
    /// For each stored node why it is.
    pub(crate) reasons: FxHashMap<NodeId, Reason>,
}

/// Most nodes computed in one group: bounds compile time and recursion.
const MAX_NODES: usize = 256;

/// A value needed by a group: at an index tuple, inside a list of loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Instance {
    group: u32,
    tuple: TupleId,
    loops: u32,
    /// Below a padding or a gather, where indices may be out of range.
    guarded: bool,
}

/// Splits the graph of `roots` (nodes that must be stored) into groups. `offers` says whether the
/// device has a library kernel for a contraction; what else matters of it is in `caps`.
pub(crate) fn partition(
    graph: &Graph,
    roots: &[NodeId],
    offers: &dyn Fn(&ContractSpec) -> bool,
    caps: &Caps,
) -> Partition {
    let options = |hosting| Options {
        hosting,
        epilogues: caps.epilogues,
        max_buffers: caps.max_buffers,
        max_binding: caps.max_binding,
    };
    let attempt = |hosting| partition_with(graph, roots, offers, options(hosting));
    attempt(true)
        .or_else(|| attempt(false))
        .expect("invariant: groups of one root each depend on earlier roots only")
}

/// What groups may be.
#[derive(Clone, Copy, Debug)]
struct Options {
    /// Whether groups may store several nodes.
    hosting: bool,
    /// Whether library kernels take an epilogue.
    epilogues: bool,
    /// Most buffers a group may bind, and the bytes one of them spans at most: a longer one counts
    /// as several.
    max_buffers: usize,
    max_binding: u64,
}

/// Splits the graph. `None` if groups came to depend on one another in a circle, which the order
/// of roots should rule out.
fn partition_with(
    graph: &Graph,
    roots: &[NodeId],
    offers: &dyn Fn(&ContractSpec) -> bool,
    options: Options,
) -> Option<Partition> {
    let mut p = Partitioner::new(graph, offers, options);
    for &root in roots {
        p.must[root.idx()] = true;
    }
    for id in graph.ids().rev() {
        p.visit(id);
    }
    let mut groups: Vec<_> = p.groups.into_iter().map(Some).collect();
    let mut home = p.home;
    let order = topological(graph, &groups, &home, &p.reads)?;
    let mut position = vec![0; groups.len()];
    order.iter().enumerate().for_each(|(new, &old)| position[old] = new as u32);
    home.iter_mut().flatten().for_each(|group| *group = position[*group as usize]);
    let groups = order.iter().filter_map(|&old| groups[old].take()).collect();
    Some(Partition { groups, home, indices: p.indices, reasons: p.reasons })
}

struct Partitioner<'a> {
    graph: &'a Graph,
    offers: &'a dyn Fn(&ContractSpec) -> bool,
    options: Options,
    indices: Indices,
    groups: Vec<Group>,
    home: Vec<Option<u32>>,
    must: Vec<bool>,
    /// How many operands each node is.
    uses: Vec<u32>,
    instances: Vec<SmallVec<[Instance; 1]>>,
    /// For each node, the groups that read it as an operand of a library kernel.
    operand_of: FxHashMap<NodeId, Vec<u32>>,
    /// Lists of open loops; the first of each group is its axes.
    loops: Vec<Vec<AtomId>>,
    /// For each group, the stored nodes it reads.
    reads: Vec<Vec<NodeId>>,
    /// For each group, the nodes it stores, reads, or needs and has not decided about, and how many
    /// buffers they take if each is a buffer.
    buffers: Vec<(FxHashSet<NodeId>, usize)>,
    /// Elementwise operations that computing each node in place takes.
    cost: Vec<f32>,
    reasons: FxHashMap<NodeId, Reason>,
}

impl<'a> Partitioner<'a> {
    fn new(
        graph: &'a Graph,
        offers: &'a dyn Fn(&ContractSpec) -> bool,
        options: Options,
    ) -> Partitioner<'a> {
        let n = graph.len();
        let mut cost: Vec<f32> = Vec::with_capacity(n);
        let mut uses = vec![0; n];
        for id in graph.ids() {
            graph.node(id).sources().for_each(|x| uses[x.idx()] += 1);
            let c = cost_of(graph, id, &cost);
            cost.push(c);
        }
        Partitioner {
            graph,
            offers,
            options,
            indices: Indices::default(),
            groups: Vec::new(),
            home: vec![None; n],
            must: vec![false; n],
            uses,
            instances: vec![SmallVec::new(); n],
            operand_of: FxHashMap::default(),
            loops: Vec::new(),
            reads: Vec::new(),
            buffers: Vec::new(),
            cost,
            reasons: FxHashMap::default(),
        }
    }

    /// Decides about a node all of whose users have been visited.
    fn visit(&mut self, id: NodeId) {
        let instances = std::mem::take(&mut self.instances[id.idx()]);
        if instances.is_empty() && !self.must[id.idx()] {
            return;
        }
        if let Node::Leaf { .. } = self.graph.node(id) {
            instances.iter().for_each(|i| self.reads[i.group as usize].push(id));
        } else if let Some(contraction) = self.library(id) {
            self.place_contraction(contraction, &instances);
        } else if let Some(reason) = self.refusal(id, &instances) {
            self.reasons.insert(id, reason);
            self.store(id, &instances);
        } else {
            instances.iter().for_each(|i| self.release(id, i.group));
            for instance in instances {
                let group = &mut self.groups[instance.group as usize];
                group.nodes += cost_of_op(&self.graph.node(id)).min(1.0) as usize;
                group.reduces += matches!(self.graph.node(id), Node::Reduce { .. }) as usize;
                self.propagate(id, instance);
            }
        }
    }

    /// Why not every user computes the node for itself; `None` if each does.
    fn refusal(&mut self, id: NodeId, instances: &[Instance]) -> Option<Reason> {
        if self.must[id.idx()] {
            let read = self.operand_of.contains_key(&id);
            return Some(if read { Reason::Operand } else { Reason::Output });
        }
        let full = |p: &Self, i: &Instance| p.groups[i.group as usize].nodes >= MAX_NODES;
        match self.graph.node(id) {
            Node::Const { .. } | Node::Argument { .. } | Node::Iota => None,
            Node::Scan { .. } => Some(Reason::Stored("a scan")),
            Node::Scatter { .. } | Node::Distribute { .. } => Some(Reason::Stored("a scatter")),
            Node::Copy { .. } => Some(Reason::Stored("a copy")),
            Node::Reduce { .. } => match instances {
                [only] if full(self, only) => Some(Reason::Ops(MAX_NODES)),
                [only] => self.reduce_refusal(id, only),
                _ => Some(Reason::Users(instances.len())),
            },
            node if is_movement(&node) => None,
            _ if instances.iter().any(|i| full(self, i)) => Some(Reason::Ops(MAX_NODES)),
            _ if !instances.iter().all(|i| self.has_room(id, i.group, true)) => {
                Some(Reason::Buffers(self.options.max_buffers))
            }
            _ => {
                let repeated = instances.iter().map(|i| self.multiplicity(id, i)).max();
                match repeated.filter(|_| self.cost[id.idx()] >= WORTH_STORING) {
                    Some(times) if times > 2 => Some(Reason::Broadcast(times)),
                    _ if instances.len() == 1 => None,
                    _ => self.recomputing(id, instances),
                }
            }
        }
    }

    /// What is against several users each computing the node, if that costs more than storing it
    /// once and loading it.
    fn recomputing(&mut self, id: NodeId, instances: &[Instance]) -> Option<Reason> {
        let host =
            instances.iter().copied().find(|i| self.hosts(id, i, instances)).map(|i| i.group);
        let users = instances.iter().filter(|i| Some(i.group) != host);
        let (recomputing, loads) = users
            .fold((0.0, 0.0), |(cost, n), i| (cost + self.cost_in(id, Some(i.group)), n + 1.0));
        let transfers = (loads + 1.0) * OPS_PER_BYTE * self.graph.dtype(id).size() as f32;
        // Without a host a kernel of its own has to compute it.
        let storing = if host.is_some() { transfers } else { transfers + self.cost_in(id, None) };
        (recomputing > storing).then_some(Reason::Recomputing { computing: recomputing, storing })
    }

    /// Operations an element of `id` takes in a group beyond what that group computes or loads
    /// for other purposes; transfers are counted in operations, too.
    fn cost_in(&self, id: NodeId, group: Option<u32>) -> f32 {
        let others = group.map_or(SmallVec::new(), |group| self.needed_beside(id, group));
        let numel = self.graph.shape(id).numel().max(1) as f32;
        let mut seen = NodeList::new();
        let mut stack = NodeList::from_slice(&[id]);
        let mut cost = 0.0;
        while let Some(x) = stack.pop() {
            if others.contains(&x) || seen.contains(&x) {
                continue;
            }
            if seen.len() == MAX_LOOKED_AT {
                return f32::INFINITY;
            }
            seen.push(x);
            let share = (self.graph.shape(x).numel() as f32 / numel).min(1.0);
            let node = self.graph.node(x);
            match node {
                Node::Const { .. } | Node::Argument { .. } | Node::Iota => {}
                _ if is_buffer(&node) => {
                    cost += share * OPS_PER_BYTE * self.graph.dtype(x).size() as f32;
                }
                _ => {
                    cost += share * cost_of_op(&node);
                    stack.extend(node.sources());
                }
            }
        }
        cost
    }

    /// Nodes near the first root of a group that it needs whatever becomes of `id`.
    fn needed_beside(&self, id: NodeId, group: u32) -> NodeList {
        let root = self.groups[group as usize].roots[0].node;
        let mut found = NodeList::from_slice(&[root]);
        let mut next = 0;
        while next < found.len() && found.len() < MAX_LOOKED_AT {
            let node = self.graph.node(found[next]);
            next += 1;
            if next > 1 && is_buffer(&node) {
                continue;
            }
            for x in node.sources() {
                if x != id && !found.contains(&x) {
                    found.push(x);
                }
            }
        }
        found
    }

    /// How many loops around an instance have to run for its index tuple to change, counted in
    /// iterations: the product of the loops up to the last one the tuple depends on.
    fn iterations(&mut self, instance: &Instance) -> (usize, usize) {
        let tuple = self.indices.get(instance.tuple);
        let loops = &self.loops[instance.loops as usize];
        let mut depth = 0;
        for index in tuple.iter() {
            self.indices.algebra.visit_axes(index, &mut |axis| {
                let position = loops.iter().position(|&l| l == axis);
                depth = depth.max(position.map_or(loops.len(), |p| p + 1));
            });
        }
        let count = loops[..depth].iter().map(|&axis| self.indices.extent(axis)).product();
        (depth, count)
    }

    /// How often each element is computed by an instance.
    fn multiplicity(&mut self, id: NodeId, instance: &Instance) -> usize {
        let (_, iterations) = self.iterations(instance);
        iterations / self.graph.shape(id).numel().max(1)
    }

    /// Why a reduction cannot run inside its user, where it must not run more than once.
    fn reduce_refusal(&mut self, id: NodeId, instance: &Instance) -> Option<Reason> {
        let group = &self.groups[instance.group as usize];
        if !matches!(group.kind, Kind::Nest | Kind::Scan) {
            return Some(Reason::NoNest);
        }
        if instance.guarded {
            return Some(Reason::Guarded);
        }
        let (_, iterations) = self.iterations(instance);
        let numel = self.graph.shape(id).numel();
        if iterations != numel {
            return Some(Reason::Repeated(iterations as f32 / numel.max(1) as f32));
        }
        // A large reduction to few elements would keep most of the device idle.
        let group = &self.groups[instance.group as usize];
        let work = numel * reduced_count(self.graph, id);
        let nested = self.loops[instance.loops as usize] != group.axes;
        let fits = work <= 1 << 15
            || if nested { group.space >= 16 } else { numel >= 16 || group.space <= numel };
        (!fits).then_some(Reason::Idle { elements: work, iterations: numel })
    }

    /// Stores the node: as a root of a group that computes it anyway, or of its own.
    fn store(&mut self, id: NodeId, instances: &[Instance]) {
        let host = instances.iter().copied().find(|i| self.hosts(id, i, instances));
        let home = match host {
            Some(instance) => {
                let group = &mut self.groups[instance.group as usize];
                group.roots.push(Root { node: id, tuple: instance.tuple });
                group.first_root = group.first_root.min(id);
                group.nodes += 1;
                group.reduces += matches!(self.graph.node(id), Node::Reduce { .. }) as usize;
                self.propagate(id, instance);
                instance.group
            }
            None => self.open_group(id),
        };
        self.home[id.idx()] = Some(home);
        for instance in instances.iter().filter(|i| i.group != home) {
            self.reads[instance.group as usize].push(id);
        }
    }

    /// Whether the group of `instance` may store the node for all the others.
    fn hosts(&mut self, id: NodeId, instance: &Instance, all: &[Instance]) -> bool {
        let group = &self.groups[instance.group as usize];
        let (space, last) = (group.space, group.last_root);
        let node = self.graph.node(id);
        let simple = !matches!(
            node,
            Node::Scan { .. } | Node::Scatter { .. } | Node::Distribute { .. } | Node::Copy { .. }
        );
        let kind_allows = match group.kind {
            Kind::Nest => true,
            Kind::Contract(_) => !matches!(self.graph.node(id), Node::Reduce { .. }),
            Kind::Scan | Kind::Scatter => false,
        };
        if !simple || !kind_allows || instance.guarded || group.nodes >= MAX_NODES {
            return false;
        }
        if !self.has_room(id, instance.group, false) {
            return false;
        }
        // Root level only: inside a reduction the loops are not the group's axes.
        if self.loops[instance.loops as usize] != group.axes {
            return false;
        }
        let others_later = self.others_are_later(id, instance, all, last);
        let numel = self.graph.shape(id).numel();
        let is_contract = matches!(self.groups[instance.group as usize].kind, Kind::Contract(_));
        if !others_later || (is_contract && numel != space) {
            return false;
        }
        let (_, iterations) = self.iterations(instance);
        let flat = self.indices.flat(self.graph, id, instance.tuple);
        iterations == numel
            && self.indices.algebra.is_bijection(&flat, numel)
            && (!matches!(self.graph.node(id), Node::Reduce { .. })
                || self.reduce_refusal(id, instance).is_none())
    }

    /// Whether all users of a node but `instance` come after `last` in every way, so that none of
    /// them can be needed by the group that would store the node.
    fn others_are_later(
        &self,
        id: NodeId,
        instance: &Instance,
        all: &[Instance],
        last: NodeId,
    ) -> bool {
        let later =
            |group: u32| group != instance.group && self.groups[group as usize].first_root > last;
        self.options.hosting
            && all.iter().all(|other| other == instance || later(other.group))
            && self.operand_of.get(&id).is_none_or(|groups| groups.iter().all(|&g| later(g)))
    }

    /// Makes a group with `id` as its root.
    fn open_group(&mut self, id: NodeId) -> u32 {
        let group = self.groups.len() as u32;
        let shape = self.graph.shape(id).clone();
        let (mut axes, mut tuple) = self.indices.axes(&shape);
        let kind = match self.graph.node(id) {
            Node::Scan { axis, reverse, .. } => {
                // The scanned axis runs innermost.
                let own = self.indices.get(tuple)[axis as usize].clone();
                if let Some(&(atom, _)) = own.terms.first() {
                    axes.retain(|&a| a != atom);
                    axes.push(atom);
                }
                if reverse {
                    tuple = self.indices.reversed(tuple, axis as usize, shape[axis as usize]);
                }
                Kind::Scan
            }
            Node::Scatter { .. } | Node::Distribute { .. } => Kind::Scatter,
            _ => Kind::Nest,
        };
        let loops = self.loops.len() as u32;
        self.loops.push(axes.clone());
        self.groups.push(Group {
            kind,
            roots: vec![Root { node: id, tuple }],
            axes,
            space: shape.numel(),
            nodes: 1,
            reduces: matches!(self.graph.node(id), Node::Reduce { .. }) as usize,
            first_root: id,
            last_root: id,
        });
        self.reads.push(Vec::new());
        self.buffers.push(Default::default());
        self.take(id, group);
        self.propagate(id, Instance { group, tuple, loops, guarded: false });
        group
    }

    /// Tells the sources of a node computed in place at which tuples they are needed.
    fn propagate(&mut self, id: NodeId, instance: Instance) {
        let node = self.graph.node(id);
        match node {
            Node::Leaf { .. } | Node::Const { .. } | Node::Argument { .. } | Node::Iota => {}
            Node::Unary { .. } | Node::Binary { .. } | Node::Ternary { .. } => {
                node.sources().for_each(|x| self.need(x, instance));
            }
            Node::Cast { x } | Node::Bitcast { x } | Node::Copy { x } => self.need(x, instance),
            Node::Scan { x, .. } => self.need(x, instance),
            Node::Reshape { x } | Node::Permute { x, .. } | Node::Expand { x } => {
                self.need_moved(id, x, instance);
            }
            Node::Shrink { x, .. } | Node::Flip { x, .. } => self.need_moved(id, x, instance),
            Node::Pad { x, .. } => self.need_moved(id, x, Instance { guarded: true, ..instance }),
            Node::Reduce { axes, x, .. } => {
                let (depth, _) = self.iterations(&instance);
                let (tuple, atoms) = self.indices.open_reduce(self.graph, x, axes, instance.tuple);
                let outer = &self.loops[instance.loops as usize][..depth];
                let loops = outer.iter().copied().chain(atoms).collect();
                self.loops.push(loops);
                let loops = self.loops.len() as u32 - 1;
                self.need(x, Instance { tuple, loops, ..instance });
            }
            Node::Gather { axis, x, index } => {
                self.need(index, instance);
                let mut tuple = self.indices.get(instance.tuple).to_vec();
                let extent = self.graph.shape(x)[axis as usize];
                let atom = self.indices.algebra.opaque(extent);
                tuple[axis as usize] = self.indices.algebra.of(atom);
                let tuple = self.indices.intern(tuple);
                self.need(x, Instance { tuple, guarded: true, ..instance });
            }
            Node::Distribute { x, bin, starts } => {
                // As updates of a scatter: the loops are not the group's axes.
                for sources in [&[x, bin][..], &[starts]] {
                    let shape = self.graph.shape(sources[0]).clone();
                    let (axes, tuple) = self.indices.axes(&shape);
                    self.loops.push(axes);
                    let loops = self.loops.len() as u32 - 1;
                    let update = Instance { tuple, loops, guarded: true, ..instance };
                    sources.iter().for_each(|&source| self.need(source, update));
                }
            }
            Node::Scatter { base, index, x, .. } => {
                self.need(base, instance);
                let (axes, tuple) = self.indices.axes(&self.graph.shape(x).clone());
                self.loops.push(axes);
                let loops = self.loops.len() as u32 - 1;
                // Loops of the update are not the group's axes, so nothing is hosted there.
                let update = Instance { tuple, loops, guarded: true, ..instance };
                self.need(index, update);
                self.need(x, update);
            }
        }
    }

    fn need_moved(&mut self, id: NodeId, x: NodeId, instance: Instance) {
        let pulled = self.indices.pull(self.graph, id, instance.tuple);
        let tuple = pulled.expect("invariant: movement ops pull");
        self.need(x, Instance { tuple, ..instance });
    }

    /// Buffers a value takes if it is stored or loaded.
    fn buffers_of(&self, id: NodeId) -> usize {
        match self.graph.node(id) {
            Node::Const { .. } | Node::Argument { .. } | Node::Iota => 0,
            _ => {
                let elements = self.graph.shape(id).numel() as u64;
                let bytes = elements.saturating_mul(self.graph.dtype(id).size() as u64);
                usize::try_from(bytes.div_ceil(self.options.max_binding)).unwrap_or(1).max(1)
            }
        }
    }

    /// Counts a value among what a group may have to bind.
    fn take(&mut self, id: NodeId, group: u32) {
        if self.options.max_buffers != usize::MAX && self.buffers[group as usize].0.insert(id) {
            self.buffers[group as usize].1 += self.buffers_of(id);
        }
    }

    /// No longer counts a value that the group computes.
    fn release(&mut self, id: NodeId, group: u32) {
        if self.options.max_buffers != usize::MAX && self.buffers[group as usize].0.remove(&id) {
            self.buffers[group as usize].1 -= self.buffers_of(id);
        }
    }

    /// Whether a group can bind what computing a value needs; `in_place` if it need not bind the
    /// value itself.
    fn has_room(&self, id: NodeId, group: u32, in_place: bool) -> bool {
        if self.options.max_buffers == usize::MAX {
            return true;
        }
        let (known, count) = &self.buffers[group as usize];
        let mut new = NodeList::new();
        for x in self.graph.node(id).sources() {
            if !known.contains(&x) && !new.contains(&x) {
                new.push(x);
            }
        }
        let more: usize = new.iter().map(|&x| self.buffers_of(x)).sum();
        let freed = if in_place && known.contains(&id) { self.buffers_of(id) } else { 0 };
        // What takes no more than it frees is no reason to stop.
        more <= freed || count - freed + more <= self.options.max_buffers
    }

    fn need(&mut self, id: NodeId, instance: Instance) {
        self.take(id, instance.group);
        let list = &mut self.instances[id.idx()];
        if let Some(known) =
            list.iter_mut().find(|i| i.group == instance.group && i.tuple == instance.tuple)
        {
            known.guarded |= instance.guarded;
        } else {
            list.push(instance);
        }
    }

    /// The contraction that `id` is, if the device has a kernel for it.
    fn library(&mut self, id: NodeId) -> Option<Contraction> {
        let contraction = match self.graph.node(id) {
            Node::Reduce { .. } => recognize(self.graph, &mut self.indices, id)?,
            // Where conversions are not epilogues.
            Node::Cast { .. } if !self.options.epilogues => {
                let only = |x: NodeId| self.uses[x.idx()] == 1 && !self.must[x.idx()];
                recognize_rounded(self.graph, &mut self.indices, id, only)?
            }
            _ => return None,
        };
        (self.offers)(&contraction.spec).then_some(contraction)
    }

    /// Gives a contraction to the library: with its only elementwise user as epilogue, or alone.
    fn place_contraction(&mut self, contraction: Contraction, instances: &[Instance]) {
        let id = contraction.node;
        let operands = contraction.operands;
        operands.iter().for_each(|x| self.must[x.idx()] = true);
        let must = self.must[id.idx()];
        let mut why = if must { "it is a result" } else { "nothing follows" };
        let epilogue = instances.iter().copied().find(|i| {
            let refusal = match self.options.epilogues {
                true => self.epilogue_refusal(id, i, instances, must),
                false => Some("library kernels of the device take nothing along"),
            };
            why = refusal.unwrap_or(why);
            refusal.is_none()
        });
        self.reasons.insert(id, Reason::Library(why));
        let group = match epilogue {
            Some(instance) => {
                let at = Some(instance.tuple);
                let kind = Kind::Contract(Box::new(ContractGroup { contraction, at }));
                self.groups[instance.group as usize].kind = kind;
                instance.group
            }
            None => {
                let group = self.groups.len() as u32;
                let (axes, tuple) = self.indices.axes(&self.graph.shape(id).clone());
                self.loops.push(axes.clone());
                self.groups.push(Group {
                    kind: Kind::Contract(Box::new(ContractGroup { contraction, at: None })),
                    roots: vec![Root { node: id, tuple }],
                    axes,
                    space: self.graph.shape(id).numel(),
                    nodes: 1,
                    reduces: 1,
                    first_root: id,
                    last_root: id,
                });
                self.reads.push(Vec::new());
                self.buffers.push(Default::default());
                self.home[id.idx()] = Some(group);
                group
            }
        };
        self.reads[group as usize].extend(operands);
        for operand in operands {
            self.operand_of.entry(operand).or_default().push(group);
        }
        // With an epilogue and other users the value itself is stored as well.
        if let (Some(instance), true) = (epilogue, must || instances.len() > 1) {
            let host = &mut self.groups[group as usize];
            host.roots.push(Root { node: id, tuple: instance.tuple });
            host.first_root = host.first_root.min(id);
            self.home[id.idx()] = Some(group);
        }
        if self.home[id.idx()].is_some() {
            for instance in instances.iter().filter(|i| i.group != group) {
                self.reads[instance.group as usize].push(id);
            }
        }
    }

    /// Why the group of `instance` is no epilogue: it has to be elementwise over exactly the
    /// contraction's elements.
    fn epilogue_refusal(
        &mut self,
        id: NodeId,
        instance: &Instance,
        all: &[Instance],
        must: bool,
    ) -> Option<&'static str> {
        let group = &self.groups[instance.group as usize];
        let numel = self.graph.shape(id).numel();
        match group.kind {
            Kind::Nest => {}
            Kind::Contract(_) => return Some("what follows is another contraction's epilogue"),
            Kind::Scan | Kind::Scatter => return Some("what follows is no loop nest"),
        }
        // Only reductions make roots with fewer elements than the iteration space.
        if group.reduces > 0 {
            return Some("what follows reduces");
        }
        if group.space != numel {
            return Some("what follows has another number of elements");
        }
        if instance.guarded {
            return Some("what follows pads or gathers it");
        }
        let last = group.last_root;
        let shared = must || all.len() > 1;
        if shared && !self.others_are_later(id, instance, all, last) {
            return Some("other users may have to run before what follows");
        }
        let flat = self.indices.flat(self.graph, id, instance.tuple);
        let same = self.indices.algebra.is_bijection(&flat, numel);
        (!same).then_some("what follows does not use every element once")
    }
}

impl Group {
    /// Whether reductions are computed in its nest.
    pub(crate) fn computes_reduction(&self) -> bool {
        self.reduces > 0
    }
}

fn is_movement(node: &Node) -> bool {
    matches!(
        node,
        Node::Reshape { .. }
            | Node::Permute { .. }
            | Node::Expand { .. }
            | Node::Pad { .. }
            | Node::Shrink { .. }
            | Node::Flip { .. }
    )
}

/// Number of elements that meet in one result of a reduction.
pub(crate) fn reduced_count(graph: &Graph, id: NodeId) -> usize {
    match graph.node(id) {
        Node::Reduce { axes, x, .. } => axes_of(axes).map(|axis| graph.shape(x)[axis]).product(),
        _ => 1,
    }
}

/// Cost of an element picked from anywhere.
const GATHERED: f32 = 16.0;
/// Elementwise operations done in the time a byte takes to or from memory. Processors and GPUs
/// agree within a factor of two: 2 cores at 5 GHz with 16 lanes do 5 for each byte of 30 GB/s, an
/// H200 7 for each of 4.2 TB/s.
const OPS_PER_BYTE: f32 = 5.0;
/// Most nodes looked at to decide about one.
const MAX_LOOKED_AT: usize = 48;

type NodeList = SmallVec<[NodeId; MAX_LOOKED_AT]>;

/// Whether the node is a buffer, or as good as.
fn is_buffer(node: &Node) -> bool {
    matches!(
        node,
        Node::Leaf { .. }
            | Node::Reduce { .. }
            | Node::Scan { .. }
            | Node::Scatter { .. }
            | Node::Distribute { .. }
            | Node::Copy { .. }
    )
}
/// Cost of a value from which on it is stored rather than computed again for every element that
/// it is broadcast to (a normalised row read by every column of a matrix product).
const WORTH_STORING: f32 = 3.0;

fn cost_of_op(node: &Node) -> f32 {
    match node {
        Node::Unary { op, .. } => op.weight(),
        Node::Binary { op, .. } => op.weight(),
        Node::Ternary { .. } | Node::Cast { .. } | Node::Bitcast { .. } => 1.0,
        Node::Gather { .. } => GATHERED,
        _ => 0.0,
    }
}

fn cost_of(graph: &Graph, id: NodeId, below: &[f32]) -> f32 {
    let node = graph.node(id);
    match node {
        _ if is_buffer(&node) => 0.0,
        _ => {
            let numel = graph.shape(id).numel().max(1) as f32;
            let share = |x: NodeId| (graph.shape(x).numel() as f32 / numel).min(1.0);
            let sources: f32 = node.sources().map(|x| below[x.idx()] * share(x)).sum();
            (cost_of_op(&node) + sources).min(1e6)
        }
    }
}

/// The groups in an order in which what one reads is stored by an earlier one; `None` if there is
/// no such order.
fn topological(
    graph: &Graph,
    groups: &[Option<Group>],
    home: &[Option<u32>],
    reads: &[Vec<NodeId>],
) -> Option<Vec<usize>> {
    let mut users = vec![Vec::new(); groups.len()];
    let mut missing = vec![0usize; groups.len()];
    for (user, reads) in reads.iter().enumerate() {
        for read in reads {
            let Some(source) = home[read.idx()] else {
                debug_assert!(matches!(graph.node(*read), Node::Leaf { .. }), "{read:?} is stored");
                continue;
            };
            users[source as usize].push(user);
            missing[user] += 1;
        }
    }
    // Groups were made from the outputs backwards, so walking them in reverse keeps an order
    // close to that of the program.
    let mut ready: std::collections::BinaryHeap<usize> =
        (0..groups.len()).filter(|&g| missing[g] == 0).collect();
    let mut order = Vec::with_capacity(groups.len());
    while let Some(group) = ready.pop() {
        order.push(group);
        for &user in &users[group] {
            missing[user] -= 1;
            if missing[user] == 0 {
                ready.push(user);
            }
        }
    }
    (order.len() == groups.len()).then_some(order)
}
