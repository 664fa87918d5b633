//! The body of a loop nest: what a group computes, as values that name one another and places in buffers.
//!
//! A dry run over the graph ([`collect_roots`]) finds every value, reduction, load and store of a group, and every
//! index expression that they use. The result, a [`LoopBody`], names neither nodes nor buffers, so groups that compute
//! the same have equal bodies. A cached kernel is lowered from its body alone
//! ([`Lowering`](super::lower::Lowering)), so a step of a loop, or a layer, is lowered once, and two groups with equal
//! bodies cannot need different kernels.

use super::lower::Reduction;
use super::partition::{Group, Kind, Partition, Product};
use super::pull::{Indices, TupleId};
use super::siblings::long;
use super::starts::{self, Start};
use crate::affine::{AtomId, Index};
use crate::dtype::DType;
use crate::graph::{Graph, Node, NodeId, axes_of};
use crate::ir::Access;
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::shape::Shape;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

/// The position of a value in its [`LoopBody`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ValueId(pub(super) u32);

impl ValueId {
    pub(super) fn idx(self) -> usize {
        self.0 as usize
    }
}

/// All that the kernel of a group depends on.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct LoopBody {
    pub(super) form: Form,
    /// The counters of the iteration space, outermost first.
    pub(super) axes: Vec<AtomId>,
    /// Values after those that they are computed from.
    pub(super) values: Vec<BodyValue>,
    /// Inner reductions before those that use them.
    pub(super) reductions: Vec<Reduction>,
    pub(super) stores: Vec<Store>,
    /// Buffers that are loaded from, then buffers that are written.
    pub(super) loads: Vec<BufferArg>,
    pub(super) written: Vec<(BufferArg, Access)>,
    /// Scalar arguments.
    pub(super) arguments: Vec<DType>,
    /// Counters of index expressions that are arguments of the plan: their slots there, and the counters.
    pub(super) places: Vec<(u32, AtomId)>,
    pub(super) starts: Vec<LoadStart>,
}

/// The loops and stores around the values of a body.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// A strategy emits its own loops. Such kernels are not cached.
    #[default]
    Custom,
    /// Loops over the axes; with `flat` all stores stand in the innermost one.
    Loops { name: String, flat: bool },
    /// As `Loops`, with a scan along the last axis, unless `trivial`: that axis has one element and no counter.
    Scan { name: String, trivial: bool },
    /// Values of a tile of a contraction's results, at positions of its batch, m and n counters. Each store is made
    /// where all indices of its tuple in `firsts` are 0.
    Epilogue {
        name: String,
        acc: DType,
        extents: [i64; 3],
        counters: [AtomId; 3],
        firsts: Vec<TupleId>,
    },
    /// A block of an operand of a contraction: counters of its batch, its rows and its steps.
    Prologue { name: String, acc: DType, batch: Vec<AtomId>, rows: Vec<AtomId>, steps: Vec<AtomId> },
}

impl Form {
    /// The name of the kernel.
    pub(super) fn name(&self) -> &str {
        match self {
            Form::Custom => "",
            Form::Loops { name, .. }
            | Form::Scan { name, .. }
            | Form::Epilogue { name, .. }
            | Form::Prologue { name, .. } => name,
        }
    }
}

/// A value with its dtype.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct BodyValue {
    pub(super) dtype: DType,
    pub(super) op: ValueOp,
}

/// How a value is computed. Movement ops are no values: they are in the places of loads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ValueOp {
    /// Given by the emitter: an element of a contraction's tile.
    Given,
    /// An element of `loads[buffer]`. `place` is a tuple of one index, counted from `start` if there is one.
    Load {
        buffer: u32,
        place: TupleId,
        start: Option<u32>,
    },
    Const {
        bits: u64,
    },
    /// An element of `arguments`.
    Argument {
        number: u32,
    },
    /// The first index of a tuple.
    Iota {
        at: TupleId,
    },
    Unary {
        op: UnaryOp,
        x: ValueId,
    },
    Binary {
        op: BinaryOp,
        x: ValueId,
        y: ValueId,
        product: Product,
    },
    Ternary {
        op: TernaryOp,
        x: ValueId,
        y: ValueId,
        z: ValueId,
    },
    Cast {
        x: ValueId,
    },
    Bitcast {
        x: ValueId,
    },
    Copy {
        x: ValueId,
    },
    /// `x` where all indices of a tuple lie within the extents, else 0.
    Pad {
        x: ValueId,
        at: TupleId,
        extents: Shape,
        loaded: bool,
    },
    /// `x` at the counter `at`, which has the value of `index`, if that lies in `0..extent`, else 0.
    Gather {
        x: ValueId,
        index: ValueId,
        at: AtomId,
        extent: usize,
        loaded: bool,
    },
    /// An element of `reductions`.
    Reduce,
    /// The running combination of `x`; with `factor` what ran so far is multiplied by it first.
    Scan {
        op: BinaryOp,
        x: ValueId,
        factor: Option<ValueId>,
    },
}

/// A value that is written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Store {
    pub(super) value: ValueId,
    /// Its indices, and the position in its buffer as a tuple of one index.
    pub(super) tuple: TupleId,
    pub(super) place: TupleId,
    /// Loops that have to be open.
    pub(super) depth: usize,
}

/// A buffer argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BufferArg {
    pub(super) dtype: DType,
    /// Elements.
    pub(super) len: u64,
}

impl BufferArg {
    pub(super) fn of(graph: &Graph, node: NodeId) -> BufferArg {
        BufferArg { dtype: graph.dtype(node), len: graph.shape(node).numel() as u64 }
    }
}

/// Where loads of a value that is sliced in many places start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum LoadStart {
    /// At a scalar argument in `0..=last`, counted in `step` elements.
    Argument { step: i64, last: i64 },
    /// At an element.
    Element(i64),
}

impl LoopBody {
    /// Index expressions of loads, stores, guards and iotas.
    pub(super) fn accesses(&self, indices: &Indices) -> Vec<Index> {
        let mut all = Vec::with_capacity(self.values.len() + self.stores.len());
        let mut add = |tuple: TupleId| all.extend_from_slice(&indices.get(tuple));
        for value in &self.values {
            match value.op {
                ValueOp::Load { place: at, .. } | ValueOp::Pad { at, .. } => add(at),
                ValueOp::Iota { at } => add(at),
                _ => {}
            }
        }
        self.stores.iter().for_each(|store| add(store.place));
        all
    }

    /// Counters after which something stands before the next loop opens.
    pub(super) fn breaks(&self) -> FxHashSet<AtomId> {
        let stores = self.stores.iter().filter_map(|s| self.axes[..s.depth].last());
        let reductions = self.reductions.iter().filter_map(|r| r.outer.last());
        let scan = match (&self.form, &self.axes[..]) {
            (Form::Scan { .. }, [.., outer, _]) => Some(outer),
            _ => None,
        };
        stores.chain(reductions).chain(scan).copied().collect()
    }
}

/// The body of a group, with the nodes of the graph that it is made of.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub(super) body: LoopBody,
    /// Nodes that are loaded.
    pub(super) loads: Vec<NodeId>,
    /// The plan's slots of scalar arguments.
    pub(super) slots: Vec<u32>,
    /// Where loads of what is read in many places start.
    pub(super) starts: Vec<Start>,
    /// The values of nodes at index tuples.
    pub(super) numbers: FxHashMap<(NodeId, TupleId), ValueId>,
}

impl Collected {
    /// The number of a node's buffer among those that are loaded.
    pub(super) fn load(&mut self, graph: &Graph, node: NodeId) -> u32 {
        let known = self.loads.iter().position(|&load| load == node);
        known.unwrap_or_else(|| {
            self.loads.push(node);
            self.body.loads.push(BufferArg::of(graph, node));
            self.loads.len() - 1
        }) as u32
    }

    /// The buffer is written by the kernel.
    pub(super) fn write(&mut self, graph: &Graph, node: NodeId, access: Access) {
        self.body.written.push((BufferArg::of(graph, node), access));
    }
}

/// Values that space is made for.
const EXPECTED_VALUES: usize = 28;

struct Collector<'a> {
    graph: &'a Graph,
    indices: &'a mut Indices,
    producer: &'a [Option<u32>],
    products: &'a [Product],
    group: u32,
    /// Nodes whose values are given.
    given: &'a [NodeId],
    /// Nodes that are computed even if another group stores them.
    inside: FxHashSet<NodeId>,
    /// Nodes that are read in many places.
    walked: &'a FxHashSet<NodeId>,
    /// Counters of gathered axes, by the index and the extent.
    gathered: FxHashMap<(ValueId, usize), AtomId>,
    /// The nodes of `found.body.reductions`.
    reduced: Vec<NodeId>,
    /// Shortest reduction that shares its loops with others.
    long: usize,
    found: Collected,
}

/// Collects for a nest over the axes of a group.
pub(super) fn collect(
    graph: &Graph,
    partition: &mut Partition,
    group: usize,
    this: &Group,
) -> Collected {
    let roots: Vec<_> = this.roots.iter().map(|root| (root.node, root.tuple)).collect();
    debug_assert!(matches!(this.kind, Kind::Loops | Kind::Scan));
    collect_roots(graph, partition, group, &roots, &[], &this.axes)
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
    let space = || FxHashMap::with_capacity_and_hasher(EXPECTED_VALUES, FxBuildHasher);
    let mut c = Collector {
        graph,
        indices: &mut partition.indices,
        producer: &partition.producer,
        products: &partition.products,
        group: group as u32,
        given,
        inside: partition.groups[group].inside(),
        walked: &partition.walked,
        gathered: FxHashMap::default(),
        reduced: Vec::new(),
        long: if partition.joint { long(graph, roots[0].0) } else { usize::MAX },
        found: Collected { numbers: space(), ..Collected::default() },
    };
    c.found.body.values.reserve(EXPECTED_VALUES);
    c.found.body.axes = axes.to_vec();
    for &(node, tuple) in roots {
        c.store(node, tuple, axes);
    }
    let Collected { body, starts, .. } = &mut c.found;
    body.starts = starts.iter().map(|start| start.of_kernel(graph)).collect();
    if c.indices.has_places() {
        body.places = c.indices.places_in(&body.accesses(c.indices));
    }
    c.found
}

impl Collector<'_> {
    fn store(&mut self, node: NodeId, tuple: TupleId, axes: &[AtomId]) {
        let place = self.indices.flat_id(self.graph, node, tuple);
        let depth = self.indices.depth(axes, tuple);
        let value = self.value(node, tuple, axes);
        self.found.body.stores.push(Store { value, tuple, place, depth });
    }

    /// Whether the node's value comes from a buffer.
    fn is_loaded(&self, id: NodeId) -> bool {
        matches!(self.graph.node(id), Node::Leaf { .. })
            || self.producer[id.idx()].is_some_and(|producer| producer != self.group)
                && !self.inside.contains(&id)
    }

    /// Collects a value.
    fn value(&mut self, id: NodeId, tuple: TupleId, loops: &[AtomId]) -> ValueId {
        if let Some(&known) = self.found.numbers.get(&(id, tuple)) {
            return known;
        }
        let node = self.graph.node(id);
        let moves = node.is_movement() && !matches!(node, Node::Pad { .. });
        let number = if self.given.contains(&id) {
            self.push(id, ValueOp::Given)
        } else if self.is_loaded(id) {
            let load = self.load(id, tuple);
            self.push(id, load)
        } else if let (true, Some(x)) = (moves, node.sources().next()) {
            let source = self.pull(id, tuple);
            self.value(x, source, loops)
        } else {
            let op = self.op(id, tuple, loops);
            self.push(id, op)
        };
        self.found.numbers.insert((id, tuple), number);
        number
    }

    fn push(&mut self, id: NodeId, op: ValueOp) -> ValueId {
        let values = &mut self.found.body.values;
        values.push(BodyValue { dtype: self.graph.dtype(id), op });
        ValueId(values.len() as u32 - 1)
    }

    fn load(&mut self, id: NodeId, tuple: TupleId) -> ValueOp {
        let buffer = self.found.load(self.graph, id);
        let place = self.indices.flat_id(self.graph, id, tuple);
        if self.walked.contains(&id) {
            let flat = self.indices.get(place)[0].clone();
            let starts = &mut self.found.starts;
            if let Some(start) = starts::note(starts, &self.indices.algebra, id, &flat) {
                let place = self.indices.intern(vec![Index { constant: 0, ..flat }]);
                return ValueOp::Load { buffer, place, start: Some(start as u32) };
            }
        }
        ValueOp::Load { buffer, place, start: None }
    }

    fn op(&mut self, id: NodeId, tuple: TupleId, loops: &[AtomId]) -> ValueOp {
        match self.graph.node(id) {
            Node::Leaf { .. } => unreachable!("invariant: leaves are loaded"),
            Node::Const { bits } => ValueOp::Const { bits },
            Node::Argument { slot } => {
                let Collected { body, slots, .. } = &mut self.found;
                let argument = (slot, self.graph.dtype(id));
                let mut known = slots.iter().copied().zip(body.arguments.iter().copied());
                let number = known.position(|known| known == argument).unwrap_or_else(|| {
                    slots.push(argument.0);
                    body.arguments.push(argument.1);
                    slots.len() - 1
                });
                ValueOp::Argument { number: number as u32 }
            }
            Node::Iota => ValueOp::Iota { at: tuple },
            Node::Unary { op, x } => ValueOp::Unary { op, x: self.value(x, tuple, loops) },
            Node::Binary { op, x, y } => {
                let [x, y] = [x, y].map(|x| self.value(x, tuple, loops));
                ValueOp::Binary { op, x, y, product: self.products[id.idx()] }
            }
            Node::Ternary { op, x, y, z } => {
                let [x, y, z] = [x, y, z].map(|x| self.value(x, tuple, loops));
                ValueOp::Ternary { op, x, y, z }
            }
            Node::Cast { x } => ValueOp::Cast { x: self.value(x, tuple, loops) },
            Node::Bitcast { x } => ValueOp::Bitcast { x: self.value(x, tuple, loops) },
            Node::Copy { x } => ValueOp::Copy { x: self.value(x, tuple, loops) },
            Node::Scan { op, x, .. } => {
                ValueOp::Scan { op, x: self.value(x, tuple, loops), factor: None }
            }
            Node::Recurrence { x, factor, .. } => {
                let [x, factor] = [x, factor].map(|x| self.value(x, tuple, loops));
                ValueOp::Scan { op: BinaryOp::Add, x, factor: Some(factor) }
            }
            Node::Pad { x, .. } => {
                let at = self.pull(id, tuple);
                let (extents, loaded) = (self.graph.shape(x).clone(), self.is_loaded(x));
                ValueOp::Pad { x: self.value(x, at, loops), at, extents, loaded }
            }
            Node::Gather { axis, x, index } => {
                let index = self.value(index, tuple, loops);
                let extent = self.graph.shape(x)[axis as usize];
                let algebra = &mut self.indices.algebra;
                let new = || algebra.opaque(extent);
                let at = *self.gathered.entry((index, extent)).or_insert_with(new);
                let mut source = self.indices.get(tuple).to_vec();
                source[axis as usize] = self.indices.algebra.of(at);
                let source = self.indices.intern(source);
                let loaded = self.is_loaded(x);
                ValueOp::Gather { x: self.value(x, source, loops), index, at, extent, loaded }
            }
            Node::Reduce { op, axes, x } => {
                self.reduction(id, (op, axes, x), tuple, loops);
                ValueOp::Reduce
            }
            Node::Reshape { .. }
            | Node::Permute { .. }
            | Node::Expand { .. }
            | Node::Shrink { .. }
            | Node::Flip { .. } => unreachable!("invariant: what moves a value is passed"),
            Node::Scatter { .. }
            | Node::RadixScatter { .. }
            | Node::SortRows { .. }
            | Node::Kernel { .. }
            | Node::Operands { .. }
            | Node::Fourier { .. } => {
                unreachable!("invariant: scatters are lowered on their own")
            }
        }
    }

    fn pull(&mut self, id: NodeId, tuple: TupleId) -> TupleId {
        self.indices.pull(self.graph, id, tuple).expect("invariant: movement ops pull")
    }

    /// Notes a reduction; its value is the next one.
    fn reduction(
        &mut self,
        id: NodeId,
        (op, axes, x): (BinaryOp, u16, NodeId),
        tuple: TupleId,
        loops: &[AtomId],
    ) {
        let outer = loops[..self.indices.depth(loops, tuple)].to_vec();
        let (source, own) = match self.sibling(axes, x, &outer) {
            Some(own) => (self.indices.reduce_along(axes, &own, self.graph.shape(x), tuple), own),
            None => self.indices.open_reduce(self.graph, x, axes, tuple),
        };
        let inner: Vec<AtomId> = outer.iter().chain(&own).copied().collect();
        let x = self.value(x, source, &inner);
        let value = ValueId(self.found.body.values.len() as u32);
        self.found.body.reductions.push(Reduction { value, op, x, outer, own });
        self.reduced.push(id);
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
        let after = self.reduced.iter().rposition(|node| waits.contains(node));
        let (before, rest) = self.found.body.reductions.split_at(after.map_or(0, |last| last + 1));
        let fits = |r: &&Reduction| {
            let own = r.own.iter().map(|&axis| self.indices.extent(axis));
            own.eq(extents.clone())
        };
        // A reduction that shares the loops of one that this waits for is computed with that one.
        let early = |r: &&Reduction| !before.iter().any(|b| b.outer == r.outer && b.own == r.own);
        rest.iter().filter(beside).filter(fits).find(early).map(|r| r.own.clone())
    }

    /// The reductions in these loops that a value depends on.
    fn waits_for(&self, x: NodeId, outer: &[AtomId]) -> FxHashSet<NodeId> {
        let all = self.found.body.reductions.iter().zip(&self.reduced);
        let beside = all.filter(|(r, _)| r.outer == outer);
        let nodes: FxHashSet<NodeId> = beside.map(|(_, &node)| node).collect();
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
