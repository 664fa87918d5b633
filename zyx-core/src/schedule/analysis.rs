//! A dry run of lowering: which reductions a group computes, where they stand, and every index
//! expression it will use.
//!
//! On the way all that the kernel depends on is written down in words ([`Collected::key`]): ops in the
//! order in which they are met, with places of loads instead of nodes and of arguments instead of
//! slots. Groups with equal words have equal kernels, so a step of a loop, or a layer, is lowered once.

use super::lower::Reduction;
use super::partition::{Group, Kind, Partition, Product};
use super::pull::{Indices, TupleId};
use super::siblings::long;
use super::starts::{self, Start};
use crate::affine::{AtomId, Index};
use crate::dtype::DType;
use crate::graph::{Graph, Node, NodeId, axes_of};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

/// What lowering a group needs to know beforehand.
#[derive(Debug, Default)]
pub(super) struct Collected {
    /// Inner ones before those that use them.
    pub(super) reductions: Vec<Reduction>,
    /// Index expressions of loads, stores, guards and iotas.
    pub(super) accesses: Vec<Index>,
    /// Counters after which something stands before the next loop opens.
    pub(super) breaks: FxHashSet<AtomId>,
    /// Nodes that are loaded.
    pub(super) loads: Vec<NodeId>,
    /// Where loads of what is read in many places start.
    pub(super) starts: Vec<Start>,
    /// Scalar arguments that are used.
    pub(super) arguments: Vec<(u32, DType)>,
    /// What the kernel is made of.
    pub(super) key: Vec<u64>,
}

/// First bytes of words that stand for no op: a load, a value met before, a value that is stored.
const LOAD: u64 = 100;
const AGAIN: u64 = 101;
const STORE: u64 = 102;
/// Values that space is made for.
const FEW: usize = 28;
/// The number of a value that is given.
const GIVEN: u32 = u32::MAX;

struct Collector<'a> {
    graph: &'a Graph,
    indices: &'a mut Indices,
    producer: &'a [Option<u32>],
    products: &'a [Product],
    group: u32,
    /// Nodes whose values are given: the tile of an epilogue.
    given: &'a [NodeId],
    /// Nodes that are computed even if another group stores them.
    inside: FxHashSet<NodeId>,
    /// Nodes that are read in many places.
    walked: &'a FxHashSet<NodeId>,
    /// Numbers of the values met so far: what moves a value has its number.
    seen: FxHashMap<(NodeId, TupleId), u32>,
    values: u32,
    /// Positions of nodes that are loaded.
    loads: FxHashMap<NodeId, u64>,
    /// Shortest reduction that shares its loops with others.
    long: usize,
    found: Collected,
}

/// Collects for a nest over `axes`, or for an epilogue.
pub(super) fn collect(
    graph: &Graph,
    partition: &mut Partition,
    group: usize,
    this: &Group,
    axes: &[AtomId],
) -> Collected {
    let roots: Vec<_> = this.roots.iter().map(|root| (root.node, root.tuple)).collect();
    let given = match &this.kind {
        Kind::Contract(contract) => Some(contract.contraction.node),
        Kind::Loops | Kind::Scan | Kind::Scatter | Kind::Flash(_) => None,
    };
    let mut found = collect_roots(graph, partition, group, &roots, given.as_slice(), axes);
    if let (Kind::Scan, [.., outer, _]) = (&this.kind, axes) {
        found.breaks.insert(*outer);
    }
    found
}

/// Collects for stored values at given tuples.
pub(super) fn collect_roots(
    graph: &Graph,
    partition: &mut Partition,
    group: usize,
    roots: &[(NodeId, TupleId)],
    given: &[NodeId],
    axes: &[AtomId],
) -> Collected {
    let mut c = Collector {
        graph,
        indices: &mut partition.indices,
        producer: &partition.producer,
        products: &partition.products,
        group: group as u32,
        given,
        inside: partition.groups[group].inside(),
        walked: &partition.walked,
        seen: FxHashMap::with_capacity_and_hasher(FEW, FxBuildHasher),
        values: 0,
        loads: FxHashMap::with_capacity_and_hasher(FEW, FxBuildHasher),
        long: if partition.joint { long(graph, roots[0].0) } else { usize::MAX },
        found: Collected {
            accesses: Vec::with_capacity(FEW),
            key: Vec::with_capacity(4 * FEW),
            ..Collected::default()
        },
    };
    c.found.key.push(axes.len() as u64);
    c.found.key.extend(axes.iter().map(|axis| axis.idx() as u64));
    for &(node, tuple) in roots {
        c.stored(node, tuple, axes);
    }
    for start in &c.found.starts {
        let len = graph.shape(start.node).numel() as i64;
        let (step, last) = start.counted(len).unwrap_or((0, start.place));
        c.found.key.extend([step as u64, last as u64]);
    }
    c.found
}

impl Collector<'_> {
    fn stored(&mut self, node: NodeId, tuple: TupleId, axes: &[AtomId]) {
        let flat = self.indices.flat(self.graph, node, tuple);
        self.found.accesses.push(flat);
        let depth = self.indices.depth(axes, tuple);
        let place = self.indices.flat_id(self.graph, node, tuple);
        self.found.key.extend([STORE | (depth as u64) << 8, place.word(), self.form(node)]);
        if let Some(&last) = axes[..depth].last() {
            self.found.breaks.insert(last);
        }
        self.value(node, tuple, axes);
    }

    /// Shape and dtype of a node.
    fn form(&self, id: NodeId) -> u64 {
        u64::from(self.graph.shape_id(id)) << 8 | self.graph.dtype(id) as u64
    }

    /// Whether the node's value comes from a buffer.
    fn is_loaded(&self, id: NodeId) -> bool {
        matches!(self.graph.node(id), Node::Leaf { .. })
            || self.producer[id.idx()].is_some_and(|producer| producer != self.group)
                && !self.inside.contains(&id)
    }

    /// Collects a value; gives its number.
    fn value(&mut self, id: NodeId, tuple: TupleId, loops: &[AtomId]) -> u32 {
        let given = self.given.contains(&id).then_some(GIVEN);
        if let Some(known) = given.or_else(|| self.seen.get(&(id, tuple)).copied()) {
            self.found.key.push(AGAIN | u64::from(known) << 8);
            return known;
        }
        let node = self.graph.node(id);
        let moves = node.is_movement() && !matches!(node, Node::Pad { .. });
        let number = if self.is_loaded(id) {
            self.load(id, tuple);
            self.next_number()
        } else if let (true, Some(x)) = (moves, node.sources().next()) {
            let source = self.pull(id, tuple);
            self.value(x, source, loops)
        } else {
            let number = self.next_number();
            self.sources(id, tuple, loops);
            number
        };
        self.seen.insert((id, tuple), number);
        number
    }

    fn next_number(&mut self) -> u32 {
        self.values += 1;
        self.values - 1
    }

    fn load(&mut self, id: NodeId, tuple: TupleId) {
        let flat = self.indices.flat(self.graph, id, tuple);
        let mut place = self.indices.flat_id(self.graph, id, tuple);
        let mut start = 0;
        if self.walked.contains(&id)
            && let Some(noted) =
                starts::note(&mut self.found.starts, &self.indices.algebra, id, &flat)
        {
            start = 1 + noted as u64;
            place = self.indices.intern(vec![Index { constant: 0, ..flat.clone() }]);
        }
        self.found.accesses.push(flat);
        let next = self.found.loads.len() as u64;
        let position = *self.loads.entry(id).or_insert(next);
        if position == next {
            self.found.loads.push(id);
        }
        self.found.key.extend([LOAD | start << 8, position << 32 | place.word(), self.form(id)]);
    }

    fn sources(&mut self, id: NodeId, tuple: TupleId, loops: &[AtomId]) {
        let node = self.graph.node(id);
        let [op, mut rest] = node.op_words();
        match node {
            Node::Argument { slot } => {
                let argument = (slot, self.graph.dtype(id));
                let known = self.found.arguments.iter().position(|&known| known == argument);
                rest = known.unwrap_or(self.found.arguments.len()) as u64;
                if known.is_none() {
                    self.found.arguments.push(argument);
                }
            }
            Node::Binary { x, .. } => {
                let constant = matches!(self.graph.node(x), Node::Const { .. });
                rest = u64::from(constant) << 8 | self.products[id.idx()] as u64;
            }
            Node::Iota => rest = tuple.word(),
            Node::Pad { .. } => rest = self.pull(id, tuple).word(),
            _ => {}
        }
        self.found.key.extend([op, rest, self.form(id)]);
        if let Node::Pad { x, .. } | Node::Gather { x, .. } = node {
            let loaded = u64::from(self.is_loaded(x)) << 63;
            self.found.key.push(loaded | self.form(x));
        }
        match node {
            Node::Leaf { .. } | Node::Const { .. } | Node::Argument { .. } => {}
            Node::Iota => {
                let index = self.indices.get(tuple)[0].clone();
                self.found.accesses.push(index);
            }
            Node::Unary { .. }
            | Node::Binary { .. }
            | Node::Ternary { .. }
            | Node::Recurrence { .. } => {
                for x in node.sources() {
                    self.value(x, tuple, loops);
                }
            }
            Node::Cast { x } | Node::Bitcast { x } | Node::Copy { x } | Node::Scan { x, .. } => {
                self.value(x, tuple, loops);
            }
            Node::Pad { x, .. } => {
                let source = self.pull(id, tuple);
                let guards = self.indices.get(source).to_vec();
                self.found.accesses.extend(guards);
                self.value(x, source, loops);
            }
            Node::Gather { axis, x, index } => {
                self.value(index, tuple, loops);
                let mut source = self.indices.get(tuple).to_vec();
                let extent = self.graph.shape(x)[axis as usize];
                let atom = self.indices.algebra.opaque(extent);
                source[axis as usize] = self.indices.algebra.of(atom);
                let source = self.indices.intern(source);
                self.value(x, source, loops);
            }
            Node::Reduce { axes, x, .. } => self.reduction(id, axes, x, tuple, loops),
            Node::Reshape { .. }
            | Node::Permute { .. }
            | Node::Expand { .. }
            | Node::Shrink { .. }
            | Node::Flip { .. } => unreachable!("invariant: what moves a value is passed"),
            Node::Scatter { .. }
            | Node::RadixScatter { .. }
            | Node::SortRows { .. }
            | Node::Fourier { .. } => {
                unreachable!("invariant: scatters are lowered on their own")
            }
        }
    }

    fn pull(&mut self, id: NodeId, tuple: TupleId) -> TupleId {
        self.indices.pull(self.graph, id, tuple).expect("invariant: movement ops pull")
    }

    fn reduction(&mut self, id: NodeId, axes: u16, x: NodeId, tuple: TupleId, loops: &[AtomId]) {
        let outer = loops[..self.indices.depth(loops, tuple)].to_vec();
        let (source, own) = match self.sibling(axes, x, &outer) {
            Some(own) => (self.indices.reduce_along(axes, &own, self.graph.shape(x), tuple), own),
            None => self.indices.open_reduce(self.graph, x, axes, tuple),
        };
        let inner: Vec<AtomId> = outer.iter().chain(&own).copied().collect();
        self.found.key.push((outer.len() << 8 | own.len()) as u64);
        self.found.key.extend(own.iter().map(|axis| axis.idx() as u64));
        self.value(x, source, &inner);
        if let Some(&last) = outer.last() {
            self.found.breaks.insert(last);
        }
        self.found.reductions.push(Reduction { node: id, tuple, outer, own, source });
    }

    /// The loops of a long reduction over as many elements that this one can share: all that it depends
    /// on is computed before them.
    fn sibling(&self, axes: u16, x: NodeId, outer: &[AtomId]) -> Option<Vec<AtomId>> {
        let shape = self.graph.shape(x);
        let extents = axes_of(axes).map(|axis| shape[axis]).filter(|&n| n != 1);
        if extents.clone().product::<usize>() < self.long {
            return None;
        }
        // Reductions that this one waits for, or that stand in front of those.
        let beside = |r: &&Reduction| r.outer == outer;
        let waits = self.waits_for(x, outer);
        let after = self.found.reductions.iter().rposition(|r| waits.contains(&r.node));
        let rest = &self.found.reductions[after.map_or(0, |last| last + 1)..];
        let fits = |r: &&Reduction| {
            let own = r.own.iter().map(|&axis| self.indices.extent(axis));
            own.eq(extents.clone())
        };
        // What shares the loops of one that this waits for is computed with that.
        let early = |r: &&Reduction| {
            let before = &self.found.reductions[..after.map_or(0, |last| last + 1)];
            !before.iter().any(|b| b.outer == r.outer && b.own == r.own)
        };
        rest.iter().filter(beside).filter(fits).find(early).map(|r| r.own.clone())
    }

    /// The reductions in these loops that a value depends on.
    fn waits_for(&self, x: NodeId, outer: &[AtomId]) -> FxHashSet<NodeId> {
        let beside = self.found.reductions.iter().filter(|r| r.outer == outer);
        let nodes: FxHashSet<NodeId> = beside.map(|r| r.node).collect();
        let (mut seen, mut rest) = (FxHashSet::default(), vec![x]);
        while let Some(x) = rest.pop() {
            let elsewhere = self.producer[x.idx()].is_some_and(|producer| producer != self.group);
            if elsewhere && !self.inside.contains(&x) || !seen.insert(x) {
                continue;
            }
            rest.extend(self.graph.node(x).sources());
        }
        nodes.intersection(&seen).copied().collect()
    }
}
