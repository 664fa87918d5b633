//! A dry run of lowering: which reductions a group computes, where they stand, and every index
//! expression it will use.

use super::lower::Reduction;
use super::partition::{Group, Kind, Partition};
use super::pull::{Indices, TupleId};
use super::siblings::long;
use super::starts::{self, Start};
use crate::affine::{AtomId, Index};
use crate::dtype::DType;
use crate::graph::{Graph, Node, NodeId, axes_of};
use rustc_hash::FxHashSet;

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
}

struct Collector<'a> {
    graph: &'a Graph,
    indices: &'a mut Indices,
    producer: &'a [Option<u32>],
    group: u32,
    /// Nodes whose values are given: the tile of an epilogue.
    given: &'a [NodeId],
    /// Nodes that are computed even if another group stores them.
    inside: FxHashSet<NodeId>,
    /// Nodes that are read in many places.
    walked: &'a FxHashSet<NodeId>,
    seen: FxHashSet<(NodeId, TupleId)>,
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
        group: group as u32,
        given,
        inside: partition.groups[group].inside(),
        walked: &partition.walked,
        seen: FxHashSet::default(),
        long: if partition.joint { long(graph, roots[0].0) } else { usize::MAX },
        found: Collected::default(),
    };
    for &(node, tuple) in roots {
        c.stored(node, tuple, axes);
    }
    c.found
}

impl Collector<'_> {
    fn stored(&mut self, node: NodeId, tuple: TupleId, axes: &[AtomId]) {
        let flat = self.indices.flat(self.graph, node, tuple);
        self.found.accesses.push(flat);
        let depth = self.indices.depth(axes, tuple);
        if let Some(&last) = axes[..depth].last() {
            self.found.breaks.insert(last);
        }
        self.value(node, tuple, axes);
    }

    fn value(&mut self, id: NodeId, tuple: TupleId, loops: &[AtomId]) {
        if self.given.contains(&id) || !self.seen.insert((id, tuple)) {
            return;
        }
        let leaf = matches!(self.graph.node(id), Node::Leaf { .. });
        let elsewhere = self.producer[id.idx()].is_some_and(|producer| producer != self.group);
        if leaf || elsewhere && !self.inside.contains(&id) {
            let flat = self.indices.flat(self.graph, id, tuple);
            if self.walked.contains(&id) {
                starts::note(&mut self.found.starts, &self.indices.algebra, id, &flat);
            }
            self.found.accesses.push(flat);
            if !self.found.loads.contains(&id) {
                self.found.loads.push(id);
            }
        } else {
            self.sources(id, tuple, loops);
        }
    }

    fn sources(&mut self, id: NodeId, tuple: TupleId, loops: &[AtomId]) {
        let node = self.graph.node(id);
        match node {
            Node::Leaf { .. } | Node::Const { .. } => {}
            Node::Argument { slot } => {
                let argument = (slot, self.graph.dtype(id));
                if !self.found.arguments.contains(&argument) {
                    self.found.arguments.push(argument);
                }
            }
            Node::Iota => {
                let index = self.indices.get(tuple)[0].clone();
                self.found.accesses.push(index);
            }
            Node::Unary { .. }
            | Node::Binary { .. }
            | Node::Ternary { .. }
            | Node::Recurrence { .. } => {
                node.sources().for_each(|x| self.value(x, tuple, loops));
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
            Node::Reshape { x }
            | Node::Permute { x, .. }
            | Node::Expand { x }
            | Node::Shrink { x, .. }
            | Node::Flip { x, .. } => {
                let source = self.pull(id, tuple);
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
