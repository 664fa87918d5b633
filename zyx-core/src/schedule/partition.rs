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
//! * Attention, two contractions with a softmax between them, is one library kernel where the
//!   device has it and nobody else needs the middle.
//! * A contraction goes to a library kernel if the device offers one; an elementwise group over
//!   the same elements becomes its epilogue, an operand made of fewer bytes its prologue.
//!
//! A group that has as many buffers as the device binds computes nothing further that needs more:
//! what it needs beyond is stored. Buffers are counted before they are known, each value that is
//! needed as one, so the limit holds and is not always reached.
//!
//! Roots join only when no path can lead back: all other users must come later in topological
//! order than every root of the host. Every step looks at a bounded neighbourhood, so the whole
//! is linear in the graph.

use super::contract::{Contraction, is_widening};
use super::cost::{self, Costs, NodeList, WORTH_STORING, reduced_count};
use super::epilogue;
use super::flash::FlashAttention;
use super::item::storage;
use super::loop_body::LoopBody;
use super::pull::{Indices, Scope, TupleId};
use super::reason::Reason;
use super::search::{self, Choices, Open};
use super::siblings::Long;
use crate::affine::{AtomId, CounterId};
use crate::dtype::DType;
use crate::graph::{Graph, Node, NodeId, UpdateOrder};
use crate::hal::{Call, Caps};
use crate::ir::Kernel;
use crate::ops::BinaryOp;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// Most nodes between a reduction and what its kernel stores in its place.
const MOST_BETWEEN: usize = 16;

/// A node that a group stores, at an index tuple over the group's axes.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    pub(crate) node: NodeId,
    pub(crate) tuple: TupleId,
}

/// What a group is lowered to.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// Loops over the axes.
    Loops,
    /// A loop nest whose last axis runs serially and carries the scan's state.
    Scan,
    /// An initialising nest and an updating nest.
    Scatter,
    /// A library kernel; further nodes form its epilogue.
    Contract(Box<ContractGroup>),
    /// Two contractions whose middle is not stored.
    Flash(Box<FlashAttention>),
}

/// A contraction with what the library computes besides.
#[derive(Clone, Debug)]
pub(crate) struct ContractGroup {
    pub(crate) contraction: Contraction,
    /// Where its results stand in the group's axes, if further nodes follow it in the group.
    pub(crate) at: Option<TupleId>,
    /// The operand, of two, that is not stored but computed where it is needed.
    pub(crate) computed: Option<usize>,
}

/// Nodes that share a kernel.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) kind: Kind,
    pub(crate) roots: Vec<Root>,
    /// The counters of the iteration space, outermost first.
    pub(crate) axes: Vec<AtomId>,
    /// Number of iterations.
    pub(super) space: usize,
    /// Nodes computed in place so far.
    pub(super) nodes: usize,
    pub(super) reduces: usize,
    /// Its next counter.
    pub(super) next_counter: CounterId,
    pub(super) first_root: NodeId,
    pub(super) last_root: NodeId,
}

/// Which nodes are stored, and by which groups.
#[derive(Debug)]
pub(crate) struct Partition {
    /// In an order in which every group's inputs are computed before it.
    pub(crate) groups: Vec<Group>,
    /// For each node the group that stores it.
    pub(crate) producer: Vec<Option<u32>>,
    pub(crate) indices: Indices,
    /// For each stored node why it is.
    pub(crate) reasons: FxHashMap<NodeId, Reason>,
    /// What all of it costs.
    pub(crate) cost: f64,
    /// Nodes that might have been stored or not, in the order of decisions.
    pub(crate) open: Vec<Open>,
    /// Which sums take a product in, by node.
    pub(crate) products: Vec<Product>,
    /// Whether long reductions over the same elements share their loops.
    pub(crate) joint: bool,
    /// Stored nodes that are read in so many places that kernels are told the place.
    pub(crate) walked: FxHashSet<NodeId>,
    /// Kernels of groups lowered so far, by their bodies.
    pub(super) kernels: FxHashMap<Rc<LoopBody>, Arc<Kernel>>,
    /// What roots of epilogues are at in positions of the contraction.
    pub(super) epilogues: FxHashMap<epilogue::Roots, Vec<epilogue::Target>>,
}

/// Which operand of a sum is a product that is multiplied and added in one step, rounded once.
///
/// How a value rounds must not depend on the kernel that computes it: a value may be computed in
/// several kernels, and its results are compared with one another (the maximum of a tensor with its
/// elements). So this is decided here, once for all kernels of a plan: a product is taken in by a
/// sum that is its only user, if the product is stored nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Product {
    None,
    First,
    Second,
}

/// Most nodes computed in one group: bounds compile time and recursion.
const MAX_NODES: usize = 256;
/// Instances of a node that are searched one by one.
const FEW_USES: usize = 8;
/// Kernels that compute a value again at most, because a launch costs more.
const MOST_USERS: usize = 3;
/// Part of a cost that a bound of another is below, if that is the smaller one whatever is rounded.
const SURELY: f32 = 0.999;
/// Iterations that one group of threads may do alone on a device that is idle otherwise: they take a
/// few launches' time.
const MOST_OF_GROUP: usize = 1 << 16;

/// A value needed by a group: at an index tuple, inside a list of loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) group: u32,
    pub(super) tuple: TupleId,
    pub(super) loops: u32,
    /// Below a padding or a gather, where indices may be out of range.
    pub(super) guarded: bool,
}

/// Splits the graph of `roots` (nodes that must be stored) into groups, by the rules but for what was chosen.
/// `offers` says whether the device has a library kernel for a call; what else matters of it is in `caps`.
pub(super) fn partition_by(
    graph: &Graph,
    roots: &[NodeId],
    offers: &dyn Fn(&Call) -> bool,
    caps: &Caps,
    choices: &Choices,
) -> Partition {
    let options = |hosting| Options {
        hosting,
        epilogues: caps.epilogues,
        max_buffers: caps.max_buffers,
        max_binding: caps.max_binding,
    };
    let mut refused = FxHashSet::default();
    loop {
        let attempt = |hosting| {
            let how = (options(hosting), choices, &refused);
            partition_with(graph, roots, offers, caps, how)
        };
        let found = attempt(true).or_else(|| attempt(false));
        let found = found.expect("invariant: groups of one root each depend on earlier roots only");
        if !Partitioner::refuse_flash((graph, caps), &found, &mut refused) {
            return found;
        }
    }
}

/// What groups may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    /// Whether groups may store several nodes.
    pub(super) hosting: bool,
    /// Whether library kernels take an epilogue.
    pub(super) epilogues: bool,
    /// Most buffers a group may bind, and the bytes one of them spans at most: a longer one counts
    /// as several.
    pub(super) max_buffers: usize,
    pub(super) max_binding: u64,
}

/// Splits the graph. `None` if groups came to depend on one another in a circle, which the order
/// of roots should rule out.
fn partition_with(
    graph: &Graph,
    roots: &[NodeId],
    offers: &dyn Fn(&Call) -> bool,
    caps: &Caps,
    how: (Options, &Choices, &FxHashSet<NodeId>),
) -> Option<Partition> {
    let mut p = Partitioner::new(graph, offers, caps, how);
    for &root in roots {
        p.must_store[root.idx()] = true;
    }
    for id in graph.ids().rev() {
        p.visit(id);
    }
    let mut groups: Vec<_> = std::mem::take(&mut p.groups).into_iter().map(Some).collect();
    let mut producer = std::mem::take(&mut p.producer);
    let order = topological(graph, &groups, &producer, &p.reads)?;
    let mut position = vec![0; groups.len()];
    order.iter().enumerate().for_each(|(new, &old)| position[old] = new as u32);
    producer.iter_mut().flatten().for_each(|group| *group = position[*group as usize]);
    let groups = order.iter().filter_map(|&old| groups[old].take()).collect();
    let products = graph.ids().map(|id| product_of(graph, id, &p.uses, &producer, caps)).collect();
    let Partitioner { indices, reasons, total: cost, open, .. } = p;
    let joint = !caps.has_few_threads();
    let walked = FxHashSet::default();
    let (kernels, epilogues) = Default::default();
    Some(Partition {
        groups,
        producer,
        indices,
        reasons,
        cost,
        open,
        products,
        joint,
        walked,
        kernels,
        epilogues,
    })
}

/// The product that a node takes in.
fn product_of(
    graph: &Graph,
    id: NodeId,
    uses: &[u32],
    producer: &[Option<u32>],
    caps: &Caps,
) -> Product {
    let (op, x, y) = match graph.node(id) {
        Node::Binary { op: op @ (BinaryOp::Add | BinaryOp::Sub), x, y } => (op, x, y),
        _ => return Product::None,
    };
    let dtype = graph.dtype(id);
    let factors = |v: NodeId| match graph.node(v) {
        Node::Binary { op: BinaryOp::Mul, x, y }
            if uses[v.idx()] == 1 && producer[v.idx()].is_none() =>
        {
            Some([x, y])
        }
        _ => None,
    };
    let constant = |v: NodeId| matches!(graph.node(v), Node::Const { .. });
    if !caps.fast_fma || !matches!(dtype, DType::F32 | DType::F64) {
        return Product::None;
    }
    match (op, factors(x), factors(y)) {
        (BinaryOp::Add, Some(_), _) => Product::First,
        (BinaryOp::Add, None, Some(_)) => Product::Second,
        // A negation costs what is saved, unless it is one of a constant.
        (BinaryOp::Sub, _, Some(factors)) if factors.into_iter().any(constant) => Product::Second,
        _ => Product::None,
    }
}

pub(super) struct Partitioner<'a> {
    pub(super) graph: &'a Graph,
    pub(super) offers: &'a dyn Fn(&Call) -> bool,
    pub(super) caps: &'a Caps,
    pub(super) options: Options,
    pub(super) indices: Indices,
    pub(super) groups: Vec<Group>,
    pub(super) producer: Vec<Option<u32>>,
    pub(super) must_store: Vec<bool>,
    /// How many operands each node is.
    pub(super) uses: Vec<u32>,
    pub(super) instances: Vec<SmallVec<[Use; 1]>>,
    /// Of nodes with many instances the place of each among them.
    places: FxHashMap<(NodeId, u32, TupleId), usize>,
    /// For each node, the groups that read it as an operand of a library kernel.
    pub(super) operand_of: FxHashMap<NodeId, Vec<u32>>,
    /// Lists of open loops; the first of each group is its axes.
    pub(super) loops: Vec<Vec<AtomId>>,
    /// The tuple and the list of loops that iterations were counted of last, with what was found.
    iterated: Cell<(TupleId, u32, (usize, usize))>,
    /// For each group, the stored nodes it reads.
    pub(super) reads: Vec<Vec<NodeId>>,
    /// For each group, the nodes it stores, reads, or needs and has not decided about, and how many
    /// buffers they take if each is a buffer.
    pub(super) buffers: Vec<(FxHashSet<NodeId>, usize)>,
    pub(super) costs: Costs<'a>,
    pub(super) reasons: FxHashMap<NodeId, Reason>,
    /// Decisions taken by a search.
    choices: &'a Choices,
    /// Flash attentions that are not to be.
    pub(super) refused: &'a FxHashSet<NodeId>,
    open: Vec<Open>,
    /// Groups of long reductions.
    pub(super) long: Vec<u32>,
    /// By the first node of a kernel's launch its group.
    launches: FxHashMap<NodeId, u32>,
    /// What the groups cost so far.
    pub(super) total: f64,
}

impl<'a> Partitioner<'a> {
    fn new(
        graph: &'a Graph,
        offers: &'a dyn Fn(&Call) -> bool,
        caps: &'a Caps,
        (options, choices, refused): (Options, &'a Choices, &'a FxHashSet<NodeId>),
    ) -> Partitioner<'a> {
        let n = graph.len();
        let mut uses = vec![0; n];
        for id in graph.ids() {
            graph.node(id).sources().for_each(|x| uses[x.idx()] += 1);
        }
        let mut indices = Indices::default();
        indices.algebra.allocate_from(Scope::Other.first());
        Partitioner {
            graph,
            offers,
            caps,
            options,
            indices,
            groups: Vec::new(),
            producer: vec![None; n],
            must_store: vec![false; n],
            uses,
            instances: vec![SmallVec::new(); n],
            places: FxHashMap::default(),
            operand_of: FxHashMap::default(),
            loops: Vec::new(),
            iterated: Cell::new((TupleId::default(), u32::MAX, (0, 0))),
            reads: Vec::new(),
            buffers: Vec::new(),
            costs: Costs::of(graph, caps),
            reasons: FxHashMap::default(),
            choices,
            refused,
            open: Vec::new(),
            long: Vec::new(),
            launches: FxHashMap::default(),
            total: 0.0,
        }
    }

    /// Decides about a node all of whose users have been visited.
    fn visit(&mut self, id: NodeId) {
        let instances = std::mem::take(&mut self.instances[id.idx()]);
        if instances.is_empty() && !self.must_store[id.idx()] {
            return;
        }
        // Stored by a flash already.
        if let Some(producer) = self.producer[id.idx()] {
            let others = instances.iter().filter(|i| i.group != producer);
            others.for_each(|i| self.reads[i.group as usize].push(id));
            return;
        }
        if let Node::Leaf { .. } = self.graph.node(id) {
            instances.iter().for_each(|i| self.reads[i.group as usize].push(id));
            self.count_reads(id, &instances, None);
        } else if let Some(flash) = self.flash(id) {
            self.place_flash(flash, &instances);
        } else if let Some(contraction) = self.library(id) {
            self.place_contraction(contraction, &instances);
        } else if let Some(reason) = self.refusal(id, &instances) {
            self.reasons.insert(id, reason);
            self.store(id, &instances);
        } else {
            instances.iter().for_each(|i| self.release(id, i.group));
            for instance in instances {
                let group = &mut self.groups[instance.group as usize];
                group.nodes += cost::of_op(&self.graph.node(id)).min(1.0) as usize;
                group.reduces += matches!(self.graph.node(id), Node::Reduce { .. }) as usize;
                let (_, times) = self.iterations(&instance);
                self.total += self.costs.computed(id, times);
                self.propagate(id, instance);
            }
        }
    }

    /// Adds what it costs groups other than `producer` to read a buffer, each once.
    pub(super) fn count_reads(&mut self, id: NodeId, instances: &[Use], producer: Option<u32>) {
        let mut seen = FxHashSet::default();
        for (i, instance) in instances.iter().enumerate() {
            let again = match instances.len() <= FEW_USES {
                true => instances[..i].iter().any(|other| other.group == instance.group),
                false => !seen.insert(instance.group),
            };
            if !again && Some(instance.group) != producer {
                let (_, uses) = self.iterations(instance);
                self.total += self.costs.moved(id, uses);
            }
        }
    }

    /// What is decided about a node that may be stored or not, given what the rules say.
    fn choose(&mut self, node: NodeId, rule: Option<Reason>, matters: bool) -> Option<Reason> {
        let decided = match self.choices.get(&node) {
            None => rule,
            Some(true) => rule.or(Some(Reason::Searched)),
            Some(false) => None,
        };
        // Of more nodes nobody tries other decisions.
        if self.graph.len() <= search::VISITS {
            let weight = self.costs.moved(node, usize::MAX);
            let class = self.costs.class(node, self.uses[node.idx()]);
            self.open.push(Open { node, stored: decided.is_some(), matters, weight, class });
        }
        decided
    }

    /// Why not every user computes the node for itself; `None` if each does.
    fn refusal(&mut self, id: NodeId, instances: &[Use]) -> Option<Reason> {
        if self.must_store[id.idx()] {
            let read = self.operand_of.contains_key(&id);
            return Some(if read { Reason::Operand } else { Reason::Output });
        }
        let full = |p: &Self, i: &Use| p.groups[i.group as usize].nodes >= MAX_NODES;
        match self.graph.node(id) {
            Node::Const { .. } | Node::Argument { .. } | Node::Iota => None,
            Node::Scan { .. } | Node::Recurrence { .. } => Some(Reason::Stored("a scan")),
            Node::Scatter { .. } | Node::RadixScatter { .. } => Some(Reason::Stored("a scatter")),
            Node::SortRows { .. } => Some(Reason::Stored("a sort")),
            Node::Kernel { .. } | Node::Operands { .. } => Some(Reason::Stored("a kernel")),
            Node::Fourier { .. } => Some(Reason::Stored("a transform")),
            Node::Copy { .. } => Some(Reason::Stored("a copy")),
            Node::Reduce { .. } => match instances {
                [only] if full(self, only) => Some(Reason::Ops(MAX_NODES)),
                [only] => match self.reduce_refusal(id, only) {
                    None => self.choose(id, None, true),
                    refusal => refusal,
                },
                _ => Some(Reason::Users(instances.len())),
            },
            node if node.is_movement() => None,
            // A conversion that widens gains nothing by being stored: its source takes less room.
            Node::Cast { x } if is_widening(self.graph.dtype(x), self.graph.dtype(id)) => None,
            _ if instances.iter().any(|i| full(self, i)) => Some(Reason::Ops(MAX_NODES)),
            _ if !instances.iter().all(|i| self.has_room(id, i.group, true)) => {
                Some(Reason::Buffers(self.options.max_buffers))
            }
            _ => {
                let repeated = instances.iter().map(|i| self.multiplicity(id, i)).max();
                if let ([_], Some(times @ 2..)) = (instances, repeated)
                    && self.ends_reduction(id)
                {
                    return self.choose(id, Some(Reason::Ends(times)), false);
                }
                let repeated = repeated.filter(|_| self.costs.in_place(id) >= WORTH_STORING);
                let rule = match repeated.filter(|&times| self.is_repeated_work(id, times)) {
                    Some(times) if times > 2 => Some(Reason::Broadcast(times)),
                    _ if instances.len() == 1 => None,
                    _ => self.recomputing(id, instances),
                };
                let matters = instances.len() > 1 || repeated.is_some_and(|times| times > 1);
                self.choose(id, rule, matters)
            }
        }
    }

    /// Whether the node is made, element by element, of a reduction for it alone, whose kernel can
    /// store it in place of the sums.
    fn ends_reduction(&mut self, id: NodeId) -> bool {
        let (numel, size) = (self.graph.shape(id).numel(), self.graph.dtype(id).size());
        let (mut chain, mut next) = (NodeList::from_slice(&[id]), 0);
        while let Some(&x) = chain.get(next).filter(|_| chain.len() <= MOST_BETWEEN) {
            next += 1;
            let node = self.graph.node(x);
            match node {
                Node::Reduce { .. } if self.graph.dtype(x).size() >= size => {
                    return match self.library(x) {
                        Some(call) => self.options.epilogues && call.convolution.is_none(),
                        None => true,
                    };
                }
                Node::Reshape { .. } | Node::Permute { .. } => {}
                _ if node.is_elementwise() => {}
                _ => continue,
            }
            chain.extend(node.sources().filter(|x| {
                let own = self.uses[x.idx()] == 1 && !self.must_store[x.idx()];
                own && self.graph.shape(*x).numel() == numel
            }));
        }
        false
    }

    /// Whether computing each element so many times takes longer than a launch.
    fn is_repeated_work(&self, id: NodeId, times: usize) -> bool {
        !cost::saves_launches(self.caps)
            || self.costs.has_reduction(id)
            || self.costs.in_group(id, None) * times as f32 > self.costs.launched(id)
    }

    /// Whether users that compute a value for themselves save the launch that would store it. Many
    /// kernels that compute it again would be many different ones.
    fn saves_launch(&self, id: NodeId, instances: &[Use]) -> bool {
        let mut groups: SmallVec<[u32; 8]> = instances.iter().map(|user| user.group).collect();
        groups.sort_unstable();
        groups.dedup();
        let few = groups.len() <= MOST_USERS;
        few && cost::saves_launches(self.caps) && !self.costs.has_reduction(id)
    }

    /// What is against several users each computing the node, if that costs more than storing it
    /// once and loading it.
    fn recomputing(&mut self, id: NodeId, instances: &[Use]) -> Option<Reason> {
        let host =
            instances.iter().copied().find(|i| self.hosts(id, i, instances)).map(|i| i.group);
        // Who needs a slice of the node computes and loads that much of it, who repeats it more.
        let numel = self.graph.shape(id).numel().max(1) as f32;
        let users = instances.iter().filter(|i| Some(i.group) != host);
        let share = |user: &Use| (*user, self.iterations(user).1 as f32 / numel);
        let users: SmallVec<[(Use, f32); FEW_USES]> = users.map(share).collect();
        let loads: f32 = users.iter().map(|user| user.1).sum();
        let transfers = (loads + 1.0) * self.costs.transfer(id);
        // Without a host a kernel of its own has to compute it.
        let launch = if self.saves_launch(id, instances) { self.costs.launched(id) } else { 0.0 };
        let alone = self.costs.in_group(id, None);
        let storing = transfers + if host.is_some() { 0.0 } else { alone + launch };
        // No user computes more of it than one that needs nothing else.
        if loads * alone < SURELY * storing {
            return None;
        }
        let (mut recomputing, mut last) = (0.0, (u32::MAX, 0.0));
        for (user, share) in users {
            if user.group != last.0 {
                let first = self.groups[user.group as usize].roots[0].node;
                last = (user.group, self.costs.in_group(id, Some(first)));
            }
            recomputing += share * last.1;
        }
        // What is too large to be counted would make the kernels of many users as large.
        let large = recomputing.is_infinite() && instances.len() > MOST_USERS;
        (recomputing > storing || large)
            .then_some(Reason::Recomputing { computing: recomputing, storing })
    }

    /// How many loops around an instance have to run for its index tuple to change, counted in
    /// iterations: the product of the loops up to the last one the tuple depends on.
    fn iterations(&self, instance: &Use) -> (usize, usize) {
        // Values beside each other are mostly needed at the same tuple.
        let (tuple, list, known) = self.iterated.get();
        if (tuple, list) == (instance.tuple, instance.loops) {
            return known;
        }
        let loops = &self.loops[instance.loops as usize];
        let mut depth = 0;
        self.indices.visit_axes(instance.tuple, |axis| {
            let position = loops.iter().position(|&l| l == axis);
            depth = depth.max(position.map_or(loops.len(), |p| p + 1));
        });
        let count = loops[..depth].iter().map(|&axis| self.indices.extent(axis)).product();
        self.iterated.set((instance.tuple, instance.loops, (depth, count)));
        (depth, count)
    }

    /// How often each element is computed by an instance.
    fn multiplicity(&mut self, id: NodeId, instance: &Use) -> usize {
        let (_, iterations) = self.iterations(instance);
        iterations / self.graph.shape(id).numel().max(1)
    }

    /// Why a reduction cannot run inside its user, where it must not run more than once.
    fn reduce_refusal(&mut self, id: NodeId, instance: &Use) -> Option<Reason> {
        let group = &self.groups[instance.group as usize];
        if !matches!(group.kind, Kind::Loops | Kind::Scan) {
            return Some(Reason::NoNest);
        }
        // Each group of threads would compute it again.
        let root = self.graph.node(group.roots[0].node);
        if matches!(root, Node::Scan { state: Some(_), .. }) {
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
        let loops = &self.loops[instance.loops as usize];
        let nested = *loops != group.axes;
        let fits = if self.caps.has_few_threads() {
            work <= 1 << 15
                || if nested { group.space >= 16 } else { numel >= 16 || group.space <= numel }
        } else {
            // All that the loops around the element do is left to one group of threads, and so are
            // all elements that one iteration of a group's loops needs.
            let uses: usize = loops.iter().map(|&axis| self.indices.extent(axis)).product();
            let alone = if nested { numel.min(group.space) } else { numel };
            (work + uses) / alone.max(1) <= MOST_OF_GROUP || alone >= self.caps.multiprocessors()
        };
        (!fits).then_some(Reason::Idle { elements: work, iterations: numel })
    }

    /// Stores the node: as a root of a group that computes it anyway, or of its own.
    fn store(&mut self, id: NodeId, instances: &[Use]) {
        let host = instances.iter().copied().find(|i| self.hosts(id, i, instances));
        let producer = match host {
            Some(instance) => {
                let group = &mut self.groups[instance.group as usize];
                group.roots.push(Root { node: id, tuple: instance.tuple });
                group.first_root = group.first_root.min(id);
                group.nodes += 1;
                group.reduces += matches!(self.graph.node(id), Node::Reduce { .. }) as usize;
                let (_, times) = self.iterations(&instance);
                self.total += self.costs.computed(id, times);
                self.propagate(id, instance);
                instance.group
            }
            None => self
                .join_launch(id)
                .or_else(|| self.join_sibling(id, instances))
                .unwrap_or_else(|| self.open_group(id)),
        };
        self.producer[id.idx()] = Some(producer);
        self.total += self.costs.moved(id, usize::MAX);
        self.count_reads(id, instances, Some(producer));
        for instance in instances.iter().filter(|i| i.group != producer) {
            self.reads[instance.group as usize].push(id);
        }
    }

    /// Whether the group of `instance` may store the node for all the others.
    fn hosts(&mut self, id: NodeId, instance: &Use, all: &[Use]) -> bool {
        let group = &self.groups[instance.group as usize];
        let (space, last) = (group.space, group.last_root);
        let node = self.graph.node(id);
        let simple = !matches!(
            node,
            Node::Scan { .. }
                | Node::Recurrence { .. }
                | Node::Scatter { .. }
                | Node::RadixScatter { .. }
                | Node::SortRows { .. }
                | Node::Fourier { .. }
                | Node::Kernel { .. }
                | Node::Operands { .. }
                | Node::Copy { .. }
        );
        let kind_allows = match group.kind {
            Kind::Loops => true,
            Kind::Contract(_) => !matches!(self.graph.node(id), Node::Reduce { .. }),
            Kind::Scan | Kind::Scatter | Kind::Flash(_) => false,
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
    pub(super) fn others_are_later(
        &self,
        id: NodeId,
        instance: &Use,
        all: &[Use],
        last: NodeId,
    ) -> bool {
        let later =
            |group: u32| group != instance.group && self.groups[group as usize].first_root > last;
        self.options.hosting
            && all.iter().all(|other| other == instance || later(other.group))
            && self.operand_of.get(&id).is_none_or(|groups| groups.iter().all(|&g| later(g)))
    }

    /// Makes an output of a user kernel a root of the group that has another one of the same launch.
    fn join_launch(&mut self, id: NodeId) -> Option<u32> {
        let (_, first) = self.graph.kernel_call(id)?;
        let number = *self.launches.get(&first)?;
        let group = &mut self.groups[number as usize];
        let tuple = group.roots[0].tuple;
        group.roots.push(Root { node: id, tuple });
        group.first_root = group.first_root.min(id);
        Some(number)
    }

    /// Has the inputs of a user kernel stored, and read by its group.
    fn read_stored(&mut self, id: NodeId, group: u32) {
        let Some((_, first)) = self.graph.kernel_call(id) else { return };
        self.launches.insert(first, group);
        for input in self.graph.inputs_of_kernel(id) {
            let input = storage(self.graph, input);
            self.must_store[input.idx()] = true;
            self.total += self.costs.moved(input, usize::MAX);
            if !self.reads[group as usize].contains(&input) {
                self.reads[group as usize].push(input);
            }
            self.operand_of.entry(input).or_default().push(group);
        }
    }

    /// Makes a group with `id` as its root.
    fn open_group(&mut self, id: NodeId) -> u32 {
        let group = self.groups.len() as u32;
        let shape = self.graph.shape(id).clone();
        let outer = self.indices.algebra.allocate_from(Scope::Group.first());
        let (mut axes, mut tuple) = self.indices.axes(&shape);
        let next_counter = self.indices.algebra.allocate_from(outer);
        let kind = match self.graph.node(id) {
            Node::Scan { axis, reverse, .. } | Node::Recurrence { axis, reverse, .. } => {
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
            Node::Scatter { .. }
            | Node::RadixScatter { .. }
            | Node::SortRows { .. }
            | Node::Fourier { .. }
            | Node::Kernel { .. } => Kind::Scatter,
            _ => Kind::Loops,
        };
        if Long::of(self.graph, id).is_some() {
            self.long.push(group);
        }
        let loops = self.loops.len() as u32;
        self.loops.push(axes.clone());
        self.groups.push(Group {
            kind,
            roots: vec![Root { node: id, tuple }],
            axes,
            space: shape.numel(),
            nodes: 1,
            reduces: matches!(self.graph.node(id), Node::Reduce { .. }) as usize,
            next_counter,
            first_root: id,
            last_root: id,
        });
        self.reads.push(Vec::new());
        self.buffers.push(Default::default());
        self.take(id, group);
        self.total += self.costs.launch + self.costs.computed(id, shape.numel());
        self.propagate(id, Use { group, tuple, loops, guarded: false });
        group
    }

    /// Tells the sources of a node computed in place at which tuples they are needed.
    pub(super) fn propagate(&mut self, id: NodeId, instance: Use) {
        let node = self.graph.node(id);
        let group = instance.group as usize;
        let outer = self.indices.algebra.allocate_from(self.groups[group].next_counter);
        match node {
            Node::Leaf { .. } | Node::Const { .. } | Node::Argument { .. } | Node::Iota => {}
            Node::Unary { .. }
            | Node::Binary { .. }
            | Node::Ternary { .. }
            | Node::Recurrence { .. } => {
                node.sources().for_each(|x| self.need(x, instance));
            }
            Node::Cast { x } | Node::Bitcast { x } | Node::Copy { x } => self.need(x, instance),
            Node::Scan { x, .. } => self.need(x, instance),
            Node::Reshape { x } | Node::Permute { x, .. } | Node::Expand { x } => {
                self.need_moved(id, x, instance);
            }
            Node::Shrink { x, .. } | Node::Flip { x, .. } => self.need_moved(id, x, instance),
            Node::Pad { x, .. } => self.need_moved(id, x, Use { guarded: true, ..instance }),
            Node::Reduce { axes, x, .. } => {
                let (depth, _) = self.iterations(&instance);
                let (tuple, atoms) = self.indices.open_reduce(self.graph, x, axes, instance.tuple);
                let outer = &self.loops[instance.loops as usize][..depth];
                let loops = outer.iter().copied().chain(atoms).collect();
                self.loops.push(loops);
                let loops = self.loops.len() as u32 - 1;
                self.need(x, Use { tuple, loops, ..instance });
            }
            Node::Gather { axis, x, index } => {
                self.need(index, instance);
                let mut tuple = self.indices.get(instance.tuple).to_vec();
                let extent = self.graph.shape(x)[axis as usize];
                let atom = self.indices.algebra.opaque(extent);
                tuple[axis as usize] = self.indices.algebra.of(atom);
                let tuple = self.indices.intern(tuple);
                self.need(x, Use { tuple, guarded: true, ..instance });
            }
            Node::RadixScatter { x, shift, starts } => {
                // As updates of a scatter: the loops are not the group's axes.
                for sources in [&[x, shift][..], &[starts]] {
                    let shape = self.graph.shape(sources[0]).clone();
                    let (axes, tuple) = self.indices.axes(&shape);
                    self.loops.push(axes);
                    let loops = self.loops.len() as u32 - 1;
                    let update = Use { tuple, loops, guarded: true, ..instance };
                    sources.iter().for_each(|&source| self.need(source, update));
                }
            }
            // No operand of a kernel is computed where it is needed.
            Node::Kernel { .. } => self.read_stored(id, instance.group),
            Node::Operands { .. } => {}
            Node::SortRows { x, .. } => {
                let (axes, tuple) = self.indices.axes(&self.graph.shape(x).clone());
                self.loops.push(axes);
                let loops = self.loops.len() as u32 - 1;
                self.need(x, Use { tuple, loops, guarded: true, ..instance });
            }
            Node::Fourier { x, roots, .. } => {
                for source in [x, roots] {
                    let (axes, tuple) = self.indices.axes(&self.graph.shape(source).clone());
                    self.loops.push(axes);
                    let loops = self.loops.len() as u32 - 1;
                    self.need(source, Use { tuple, loops, guarded: true, ..instance });
                }
            }
            Node::Scatter { axis, order: UpdateOrder::Sorted, base, index: ends, x, .. } => {
                self.need(base, instance);
                self.need(ends, instance);
                // The place before, and the elements between the two ends.
                for source in [ends, x] {
                    let mut tuple = self.indices.get(instance.tuple).to_vec();
                    let extent = self.graph.shape(source)[axis as usize];
                    let atom = self.indices.algebra.opaque(extent);
                    tuple[axis as usize] = self.indices.algebra.of(atom);
                    let tuple = self.indices.intern(tuple);
                    let mut loops = self.loops[instance.loops as usize].clone();
                    loops.push(atom);
                    self.loops.push(loops);
                    let loops = self.loops.len() as u32 - 1;
                    self.need(source, Use { tuple, loops, guarded: true, ..instance });
                }
            }
            Node::Scatter { base, index, x, .. } => {
                self.need(base, instance);
                let (axes, tuple) = self.indices.axes(&self.graph.shape(x).clone());
                self.loops.push(axes);
                let loops = self.loops.len() as u32 - 1;
                // Loops of the update are not the group's axes, so nothing is hosted there.
                let update = Use { tuple, loops, guarded: true, ..instance };
                self.need(index, update);
                self.need(x, update);
            }
        }
        self.groups[group].next_counter = self.indices.algebra.allocate_from(outer);
    }

    fn need_moved(&mut self, id: NodeId, x: NodeId, instance: Use) {
        let pulled = self.indices.pull(self.graph, id, instance.tuple);
        let tuple = pulled.expect("invariant: movement ops pull");
        self.need(x, Use { tuple, ..instance });
    }

    /// Buffers a value takes if it is stored or loaded.
    fn buffers_of(&self, id: NodeId) -> usize {
        match self.graph.node(id) {
            Node::Const { .. } | Node::Argument { .. } | Node::Iota => 0,
            _ => {
                let elements = self.graph.shape(id).numel() as u64;
                let bytes = elements.saturating_mul(self.graph.dtype(id).size() as u64);
                let parts = usize::try_from(bytes.div_ceil(self.options.max_binding));
                // What is larger than a kernel can bind is not stored but computed from other things.
                parts.ok().filter(|&parts| parts <= self.options.max_buffers).unwrap_or(1).max(1)
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
    pub(super) fn has_room(&self, id: NodeId, group: u32, in_place: bool) -> bool {
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

    pub(super) fn need(&mut self, id: NodeId, instance: Use) {
        self.take(id, instance.group);
        let list = &mut self.instances[id.idx()];
        let key = |i: &Use| (id, i.group, i.tuple);
        let known = if list.len() <= FEW_USES {
            list.iter().position(|i| key(i) == key(&instance))
        } else {
            self.places.get(&key(&instance)).copied()
        };
        if let Some(known) = known {
            list[known].guarded |= instance.guarded;
            return;
        }
        list.push(instance);
        if list.len() > FEW_USES {
            let first = if list.len() == FEW_USES + 1 { 0 } else { list.len() - 1 };
            self.places.extend((first..list.len()).map(|place| (key(&list[place]), place)));
        }
    }
}

impl Group {
    /// Nodes that it computes even if another group stores them.
    pub(crate) fn inside(&self) -> FxHashSet<NodeId> {
        match &self.kind {
            Kind::Flash(flash) => flash.inside.clone(),
            Kind::Loops | Kind::Scan | Kind::Scatter | Kind::Contract(_) => FxHashSet::default(),
        }
    }

    /// Whether reductions are computed in its nest.
    pub(crate) fn computes_reduction(&self) -> bool {
        self.reduces > 0
    }
}

/// The groups in an order in which what one reads is stored by an earlier one; `None` if there is
/// no such order.
fn topological(
    graph: &Graph,
    groups: &[Option<Group>],
    producer: &[Option<u32>],
    reads: &[Vec<NodeId>],
) -> Option<Vec<usize>> {
    let mut users = vec![Vec::new(); groups.len()];
    let mut missing = vec![0usize; groups.len()];
    for (user, reads) in reads.iter().enumerate() {
        for read in reads {
            let Some(source) = producer[read.idx()] else {
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
