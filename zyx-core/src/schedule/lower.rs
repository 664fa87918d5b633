//! From a group to a naive kernel, by pulling indices.
//!
//! A nest group becomes parallel loops over its axes. At each depth first the reductions whose
//! index tuple is complete there are computed (a loop and an accumulator each), then roots that
//! are complete are stored, then the next loop opens. A node's value at an index tuple follows
//! from its sources' values at the tuples pulled through it; nothing is normalised, and index
//! arithmetic is ordinary IR. Where a padding or a gather makes an index possibly invalid, loads
//! below are guarded and give zero.
//!
//! Neighbouring axes that every access treats as one are merged before anything is emitted.

use super::analysis::Collected;
use super::merge::Merged;
use super::partition::{Group, Kind, Partition, Product};
use super::pull::{Indices, TupleId};
use crate::affine::{Atom, AtomId, Index};
use crate::dtype::DType;
use crate::graph::{Graph, Node, NodeId};
use crate::ir::{Access, Builder, Kernel, LoopKind, Space, Type, Value};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::passes::{Site, dce};
use crate::scalar::Scalar;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// What a scalar argument of a kernel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Var {
    /// The graph's argument in this slot.
    Argument(u32),
    /// A number that the plan knows.
    Known(i64),
}

/// A kernel with what its arguments are.
#[derive(Clone, Debug)]
pub(crate) struct Lowered {
    pub(crate) kernel: Arc<Kernel>,
    /// Nodes whose buffers are the `Param`s, by slot.
    pub(crate) params: Vec<NodeId>,
    /// What the `Var`s are, by slot (after reserved ones).
    pub(crate) vars: Vec<Var>,
}

/// A reduction computed by the group, with where it is placed.
#[derive(Clone, Debug)]
pub(super) struct Reduction {
    pub(super) node: NodeId,
    pub(super) tuple: TupleId,
    /// The loops it stands in, outermost first; it is computed when exactly these are open.
    pub(super) outer: Vec<AtomId>,
    /// Its own loops and the tuple of its source inside them.
    pub(super) own: Vec<AtomId>,
    pub(super) source: TupleId,
}

/// A readable name: what kind of kernel and how large.
pub(super) fn name(graph: &Graph, group: &Group) -> String {
    let root = group.roots[0].node;
    let kind = match group.kind {
        Kind::Loops if group.computes_reduction() => "reduce",
        Kind::Loops => "map",
        Kind::Scan => "scan",
        Kind::Scatter => "scatter",
        Kind::Contract(_) | Kind::Flash(_) => "epilogue",
    };
    let dims: Vec<String> = graph.shape(root).iter().map(usize::to_string).collect();
    format!("{kind}_{}", if dims.is_empty() { "scalar".into() } else { dims.join("x") })
}

/// What the arguments of a kernel are: of loads, then of what is written; scalars, places, starts.
fn arguments(
    graph: &Graph,
    indices: &Indices,
    found: &Collected,
    written: &[(NodeId, Access)],
) -> (Vec<NodeId>, Vec<Var>) {
    let params = found.loads.iter().copied().chain(written.iter().map(|w| w.0)).collect();
    let scalars = found.arguments.iter().map(|argument| argument.0);
    let places = indices.places_in(&found.accesses).into_iter().map(|place| place.0);
    let mut vars: Vec<Var> = scalars.chain(places).map(Var::Argument).collect();
    vars.extend(found.starts.iter().filter_map(|start| {
        let (step, _) = start.counted(graph.shape(start.node).numel() as i64)?;
        Some(Var::Known(start.place / step))
    }));
    (params, vars)
}

/// The kernel of what was collected: emitted, or if a group that was lowered before is made of the
/// same, that one's with these arguments.
pub(super) fn once(
    graph: &Graph,
    partition: &mut Partition,
    (mut found, written): (Collected, &[(NodeId, Access)]),
    emit: impl FnOnce(&mut Partition, Collected) -> Lowered,
) -> Lowered {
    let access = |write: &(NodeId, Access)| write.1 as u64;
    found.key.extend(written.iter().map(access));
    if let Some(kernel) = partition.kernels.get(&*found.key).cloned() {
        let (params, vars) = arguments(graph, &partition.indices, &found, written);
        if cfg!(debug_assertions) && cfg!(any(test, feature = "testing")) {
            let own = emit(partition, found);
            assert_eq!((&own.kernel, &own.params, &own.vars), (&kernel, &params, &vars));
        }
        return Lowered { kernel, params, vars };
    }
    let key = std::mem::take(&mut found.key);
    let lowered = emit(partition, found);
    partition.kernels.insert(key.into(), lowered.kernel.clone());
    lowered
}

/// Emits one kernel of a group.
pub(super) struct Lowering<'a> {
    pub(super) graph: &'a Graph,
    pub(super) indices: &'a mut Indices,
    producer: &'a [Option<u32>],
    products: &'a [Product],
    group: u32,
    pub(super) b: Builder,
    params: Vec<NodeId>,
    param_values: FxHashMap<NodeId, Value>,
    vars: Vec<Var>,
    /// By node and place where loads start, the argument that says where, and what it counts in.
    starts: FxHashMap<(NodeId, i64), (Value, i64)>,
    var_values: FxHashMap<u32, Value>,
    pub(super) merged: Merged,
    reductions: Vec<Reduction>,
    /// Roots still to be stored: the loops that must be open, the node, its tuple.
    pub(super) stores: Vec<(Vec<AtomId>, NodeId, TupleId)>,
    /// Loops open now with their counters.
    path: Vec<AtomId>,
    pub(super) counters: FxHashMap<AtomId, Value>,
    /// Values by node, tuple and guard, forgotten when the region they stand in closes.
    memo: FxHashMap<(NodeId, TupleId, Option<Value>), Value>,
    scopes: Vec<Vec<(NodeId, TupleId, Option<Value>)>>,
    opaque: FxHashMap<(NodeId, TupleId), AtomId>,
    given: Option<(NodeId, Value)>,
    /// Nodes that are computed even if another group stores them.
    inside: FxHashSet<NodeId>,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        partition: &'a mut Partition,
        group: usize,
        name: String,
    ) -> Lowering<'a> {
        Lowering {
            graph,
            inside: partition.groups[group].inside(),
            indices: &mut partition.indices,
            producer: &partition.producer,
            products: &partition.products,
            group: group as u32,
            b: Builder::new(&name),
            params: Vec::new(),
            param_values: FxHashMap::default(),
            vars: Vec::new(),
            starts: FxHashMap::default(),
            var_values: FxHashMap::default(),
            merged: Merged::default(),
            reductions: Vec::new(),
            stores: Vec::new(),
            path: Vec::new(),
            counters: FxHashMap::default(),
            memo: FxHashMap::default(),
            scopes: vec![Vec::new()],
            opaque: FxHashMap::default(),
            given: None,
        }
    }

    pub(super) fn finish(self) -> Lowered {
        // What guards that always hold leave behind would tell kernels apart that compute the same.
        let kernel = Arc::new((dce::PASS.apply)(&self.b.finish(), &Site::whole()));
        Lowered { kernel, params: self.params, vars: self.vars }
    }

    /// Declares all arguments, loaded and written, and notes the reductions.
    pub(super) fn declare(&mut self, found: Collected, written: &[(NodeId, Access)]) {
        (self.params, self.vars) = arguments(self.graph, self.indices, &found, written);
        let loads = found.loads.iter().map(|&id| (id, Access::Read));
        for (id, access) in loads.chain(written.iter().copied()) {
            let len = self.graph.shape(id).numel() as u64;
            let value = self.b.param(self.graph.dtype(id), len, access);
            self.param_values.insert(id, value);
        }
        for &(slot, dtype) in &found.arguments {
            let value = self.b.var(dtype, i64::MIN, i64::MAX);
            self.var_values.insert(slot, value);
        }
        for (_, atom) in self.indices.places_in(&found.accesses) {
            let value = self.b.var(DType::I64, 0, self.indices.extent(atom) as i64 - 1);
            self.counters.insert(atom, value);
        }
        for start in &found.starts {
            let len = self.graph.shape(start.node).numel() as i64;
            let Some((step, last)) = start.counted(len) else { continue };
            let value = self.b.var(DType::I64, 0, last);
            self.starts.insert((start.node, start.place), (value, step));
        }
        self.reductions = found.reductions;
    }

    /// Makes the value of a node known everywhere: the tile of an epilogue.
    pub(super) fn give(&mut self, id: NodeId, value: Value) {
        self.given = Some((id, value));
    }

    /// How many of `axes` have to be open for a tuple to be complete.
    pub(super) fn depth_of(&self, axes: &[AtomId], tuple: TupleId) -> usize {
        self.indices.depth(axes, tuple)
    }

    /// Everything inside the loops that are open, and then the loops of `rest`.
    pub(super) fn level(&mut self, rest: &[AtomId]) {
        self.fill();
        let path = self.path.clone();
        let due: Vec<_> = self.stores.iter().filter(|s| s.0 == path).cloned().collect();
        for (_, node, tuple) in due {
            self.store_root(node, tuple);
        }
        if let Some((&axis, inner)) = rest.split_first() {
            self.open(axis, LoopKind::Parallel);
            self.level(inner);
            self.close(axis);
        }
    }

    pub(super) fn store_root(&mut self, node: NodeId, tuple: TupleId) {
        let value = self.value(node, tuple, None);
        self.store_value(node, tuple, value);
    }

    /// Stores `value` as the element of a node at a tuple, in the first iteration of those loops that
    /// are open and that the tuple does not depend on.
    pub(super) fn store_value(&mut self, node: NodeId, tuple: TupleId, value: Value) {
        let depth = self.depth_of(&self.path.clone(), tuple);
        let lacks = self.path[depth..].iter();
        let counters = lacks.filter_map(|axis| self.counters.get(axis).copied()).collect();
        self.store_where_zero(node, tuple, value, counters);
    }

    /// Stores `value` as the element of a node at a tuple where all of `counters` are 0.
    fn store_where_zero(
        &mut self,
        node: NodeId,
        tuple: TupleId,
        value: Value,
        counters: Vec<Value>,
    ) {
        let flat = self.indices.flat(self.graph, node, tuple);
        let mut index = self.index(&flat);
        let mut first = None;
        for counter in counters {
            let zero = self.b.index(0);
            let at_start = self.b.binary(BinaryOp::Eq, counter, zero);
            first = Some(self.both(first, at_start));
        }
        if let Some(first) = first {
            index = self.b.guard(index, first);
        }
        let buffer = self.param(node);
        self.b.store(buffer, index, value);
    }

    /// Stores the element of a node at a tuple where all of `digits` are 0.
    pub(super) fn store_first(&mut self, node: NodeId, tuple: TupleId, digits: TupleId) {
        let value = self.value(node, tuple, None);
        let digits = self.indices.get(digits).iter().map(|digit| self.index(digit)).collect();
        self.store_where_zero(node, tuple, value, digits);
    }

    /// Opens the loop of a counter; a merged-away one opens nothing.
    pub(super) fn open(&mut self, axis: AtomId, kind: LoopKind) {
        self.path.push(axis);
        let Some(extent) = self.merged.extent(axis, self.indices.extent(axis)) else { return };
        let len = self.b.index(extent as i64);
        let number = self.path.len() as u8 - 1;
        let counter = self.b.open_loop(kind, number, len);
        self.counters.insert(axis, counter);
        self.scopes.push(Vec::new());
    }

    /// Opens a loop of `len` iterations in which a counter runs on from `first`. Gives the number of
    /// the iteration; [`Lowering::close`] closes it.
    pub(super) fn open_from(
        &mut self,
        axis: AtomId,
        kind: LoopKind,
        len: Value,
        first: Value,
    ) -> Value {
        self.path.push(axis);
        let number = self.path.len() as u8 - 1;
        let iteration = self.b.open_loop(kind, number, len);
        let counter = self.b.binary(BinaryOp::Add, first, iteration);
        self.counters.insert(axis, counter);
        self.scopes.push(Vec::new());
        iteration
    }

    /// Makes counters the digits of a number, outermost first.
    pub(super) fn count_digits(&mut self, axes: &[AtomId], number: Value) {
        let extents: Vec<usize> = axes.iter().map(|&axis| self.indices.extent(axis)).collect();
        let whole = self.indices.algebra.axis(extents.iter().product());
        self.counters.insert(whole, number);
        let position = self.indices.algebra.of(whole);
        let digits = self.indices.algebra.unflatten(&position, &extents);
        for (&axis, digit) in axes.iter().zip(&digits) {
            let counter = self.index(digit);
            self.counters.insert(axis, counter);
        }
    }

    pub(super) fn close(&mut self, axis: AtomId) {
        self.path.pop();
        if self.counters.remove(&axis).is_some() {
            self.b.close();
            self.close_scope();
        }
    }

    /// Computes the reductions that stand exactly here, in order, those over the same loops together.
    fn fill(&mut self) {
        let here = |r: &&Reduction| r.outer == self.path;
        let mut due: Vec<Reduction> = self.reductions.iter().filter(here).cloned().collect();
        while !due.is_empty() {
            let own = due[0].own.clone();
            let (joint, rest) =
                due.into_iter().partition::<Vec<_>, _>(|r| !own.is_empty() && r.own == own);
            let (joint, rest) = match joint.is_empty() {
                true => (vec![rest[0].clone()], rest[1..].to_vec()),
                false => (joint, rest),
            };
            self.reduce(&joint);
            due = rest;
        }
    }

    /// Reduces in one nest of loops.
    fn reduce(&mut self, joint: &[Reduction]) {
        let all: Vec<_> = joint
            .iter()
            .map(|reduction| {
                let Node::Reduce { op, x, .. } = self.graph.node(reduction.node) else {
                    unreachable!("invariant: reductions are reduce nodes")
                };
                (op, x, self.accumulator(op, self.graph.dtype(reduction.node)))
            })
            .collect();
        let own = &joint[0].own;
        for &axis in own {
            self.open(axis, LoopKind::Serial);
            self.fill();
        }
        for (&(op, x, acc), reduction) in all.iter().zip(joint) {
            let element = self.value(x, reduction.source, None);
            self.accumulate(op, acc, element);
        }
        for &axis in own.iter().rev() {
            self.close(axis);
        }
        let zero = self.b.index(0);
        for (&(_, _, acc), reduction) in all.iter().zip(joint) {
            let value = self.b.load(acc, zero);
            self.remember((reduction.node, reduction.tuple, None), value);
        }
    }

    pub(super) fn accumulator(&mut self, op: BinaryOp, dtype: DType) -> Value {
        let identity = op.identity(dtype).expect("invariant: reductions are associative");
        let acc = self.b.alloc(Space::Register, Type::scalar(dtype), 1);
        let (zero, identity) = (self.b.index(0), self.b.constant(identity));
        self.b.store(acc, zero, identity);
        acc
    }

    pub(super) fn accumulate(&mut self, op: BinaryOp, acc: Value, element: Value) -> Value {
        let zero = self.b.index(0);
        let old = self.b.load(acc, zero);
        let new = self.b.binary(op, old, element);
        self.b.store(acc, zero, new);
        new
    }

    /// Multiplies an accumulator, unless it is zero.
    fn scale(&mut self, acc: Value, factor: Value) {
        let zero = self.b.index(0);
        let old = self.b.load(acc, zero);
        let dtype = self.b.ty(old).dtype;
        let none = self.b.constant(Scalar::from_i64(dtype, 0));
        let counts = self.b.binary(BinaryOp::Ne, old, none);
        let scaled = self.b.binary(BinaryOp::Mul, factor, old);
        let scaled = self.b.select(counts, scaled, old);
        self.b.store(acc, zero, scaled);
    }

    /// A scan: the accumulator lives around the last axis, whose every step stores.
    pub(super) fn scan(&mut self, axes: &[AtomId]) {
        let (_, node, tuple) = self.stores[0].clone();
        let op = match self.graph.node(node) {
            Node::Scan { op, .. } => op,
            Node::Recurrence { .. } => BinaryOp::Add,
            _ => unreachable!("invariant: a scan group's root is a scan"),
        };
        // An axis of extent 1 has no counter: the scan is the identity then.
        let outer = axes.len() - (self.graph.shape(node).numel() != 1 && self.scans(node)) as usize;
        for &axis in &axes[..outer] {
            self.fill();
            self.open(axis, LoopKind::Parallel);
        }
        self.fill();
        let acc = self.accumulator(op, self.graph.dtype(node));
        for &axis in &axes[outer..] {
            self.open(axis, LoopKind::Serial);
            self.fill();
        }
        if let Node::Recurrence { factor, .. } = self.graph.node(node) {
            let factor = self.value(factor, tuple, None);
            self.scale(acc, factor);
        }
        let element =
            self.graph.node(node).sources().next().expect("invariant: a scan is of something");
        let element = self.value(element, tuple, None);
        let value = self.accumulate(op, acc, element);
        let flat = self.indices.flat(self.graph, node, tuple);
        let index = self.index(&flat);
        let buffer = self.param(node);
        self.b.store(buffer, index, value);
        for &axis in axes.iter().rev() {
            self.close(axis);
        }
    }

    fn scans(&self, node: NodeId) -> bool {
        matches!(self.graph.node(node), Node::Scan { axis, .. } | Node::Recurrence { axis, .. }
            if self.graph.shape(node)[axis as usize] != 1)
    }

    /// What is computed from here on is known until [`Lowering::close_scope`].
    pub(super) fn open_scope(&mut self) {
        self.scopes.push(Vec::new());
    }

    pub(super) fn close_scope(&mut self) {
        for key in self.scopes.pop().into_iter().flatten() {
            self.memo.remove(&key);
        }
    }

    /// Makes a value known until the loop that is open closes.
    pub(super) fn remember(&mut self, key: (NodeId, TupleId, Option<Value>), value: Value) {
        self.memo.insert(key, value);
        self.scopes.last_mut().expect("invariant: one scope is open").push(key);
    }

    /// The value of a node at a tuple: loaded if it is stored elsewhere, else computed.
    pub(super) fn value(&mut self, id: NodeId, tuple: TupleId, guard: Option<Value>) -> Value {
        if let Some((given, value)) = self.given
            && given == id
        {
            return value;
        }
        let key = (id, tuple, guard);
        if let Some(&value) = self.memo.get(&key).or_else(|| self.memo.get(&(id, tuple, None))) {
            return value;
        }
        let value = if self.is_loaded(id) {
            self.load(id, tuple, guard)
        } else {
            self.compute(id, tuple, guard)
        };
        self.remember(key, value);
        value
    }

    /// Whether the node's value comes from a buffer.
    fn is_loaded(&self, id: NodeId) -> bool {
        matches!(self.graph.node(id), Node::Leaf { .. })
            || self.producer[id.idx()].is_some_and(|producer| producer != self.group)
                && !self.inside.contains(&id)
    }

    fn load(&mut self, id: NodeId, tuple: TupleId, guard: Option<Value>) -> Value {
        let flat = self.indices.flat(self.graph, id, tuple);
        let mut index = match self.starts.get(&(id, flat.constant)).copied() {
            Some((place, step)) => {
                let rest = self.indices.algebra.offset(&flat, -flat.constant);
                let (rest, by) = (self.index(&rest), self.b.index(step));
                let place = self.b.binary(BinaryOp::Mul, place, by);
                self.b.binary(BinaryOp::Add, rest, place)
            }
            None => self.index(&flat),
        };
        if let Some(cond) = guard {
            index = self.b.guard(index, cond);
        }
        let buffer = self.param(id);
        self.b.load(buffer, index)
    }

    fn compute(&mut self, id: NodeId, tuple: TupleId, guard: Option<Value>) -> Value {
        let dtype = self.graph.dtype(id);
        match self.graph.node(id) {
            Node::Leaf { .. } => unreachable!("invariant: leaves are loaded"),
            Node::Const { bits } => self.b.constant(Scalar::from_bits(dtype, bits)),
            Node::Argument { slot } => self.var_values[&slot],
            Node::Iota => {
                let position = self.indices.get(tuple)[0].clone();
                let index = self.index(&position);
                self.b.cast(dtype, index)
            }
            Node::Unary { op, x } => {
                let x = self.value(x, tuple, guard);
                self.b.unary(op, x)
            }
            Node::Binary { op, x, y } => {
                let fused = match self.products[id.idx()] {
                    Product::None => None,
                    Product::First => self.multiply_add(op, x, y, (tuple, guard)),
                    Product::Second => self.multiply_add(op, y, x, (tuple, guard)),
                };
                fused.unwrap_or_else(|| {
                    let (x, y) = (self.value(x, tuple, guard), self.value(y, tuple, guard));
                    self.b.binary(op, x, y)
                })
            }
            Node::Ternary { op, x, y, z } => {
                let (x, y) = (self.value(x, tuple, guard), self.value(y, tuple, guard));
                let z = self.value(z, tuple, guard);
                self.b.ternary(op, x, y, z)
            }
            Node::Cast { x } => {
                let x = self.value(x, tuple, guard);
                self.b.cast(dtype, x)
            }
            Node::Bitcast { x } => {
                let x = self.value(x, tuple, guard);
                self.b.bitcast(dtype, x)
            }
            Node::Copy { x } => self.value(x, tuple, guard),
            Node::Pad { x, .. } => self.padded(id, x, tuple, guard),
            Node::Reshape { x } | Node::Permute { x, .. } | Node::Expand { x } => {
                self.moved(id, x, tuple, guard)
            }
            Node::Shrink { x, .. } | Node::Flip { x, .. } => self.moved(id, x, tuple, guard),
            Node::Gather { axis, x, index } => self.gathered(axis, x, index, tuple, guard),
            Node::Reduce { .. } => self
                .memo
                .get(&(id, tuple, None))
                .copied()
                .expect("invariant: reductions are computed before they are used"),
            Node::Scan { .. }
            | Node::Recurrence { .. }
            | Node::Scatter { .. }
            | Node::RadixScatter { .. }
            | Node::SortRows { .. }
            | Node::Fourier { .. } => {
                unreachable!("invariant: scans and scatters are stored")
            }
        }
    }

    /// The sum of a product and an addend, or the addend less the product, rounded once; `None` if
    /// the kernel was given the product's value.
    fn multiply_add(
        &mut self,
        op: BinaryOp,
        product: NodeId,
        addend: NodeId,
        (tuple, guard): (TupleId, Option<Value>),
    ) -> Option<Value> {
        let known = [guard, None].map(|guard| self.memo.contains_key(&(product, tuple, guard)));
        if known.contains(&true) || self.given.is_some_and(|(given, _)| given == product) {
            return None;
        }
        let Node::Binary { x, y, .. } = self.graph.node(product) else {
            unreachable!("invariant: products are multiplications")
        };
        let (x, y) = if let Node::Const { .. } = self.graph.node(x) { (y, x) } else { (x, y) };
        let (x, y) = (self.value(x, tuple, guard), self.value(y, tuple, guard));
        let y = if op == BinaryOp::Sub { self.b.unary(UnaryOp::Neg, y) } else { y };
        let addend = self.value(addend, tuple, guard);
        Some(self.b.ternary(TernaryOp::MulAdd, x, y, addend))
    }

    fn moved(&mut self, id: NodeId, x: NodeId, tuple: TupleId, guard: Option<Value>) -> Value {
        let tuple = self.indices.pull(self.graph, id, tuple).expect("invariant: movement pulls");
        self.value(x, tuple, guard)
    }

    fn padded(&mut self, id: NodeId, x: NodeId, tuple: TupleId, guard: Option<Value>) -> Value {
        let source = self.indices.pull(self.graph, id, tuple).expect("invariant: padding pulls");
        let mut cond = guard;
        let shape = self.graph.shape(x).clone();
        for (index, &extent) in self.indices.get(source).iter().zip(shape.iter()) {
            let (min, max) = self.indices.algebra.range(index);
            if min < 0 {
                let lower = self.b.index(0);
                let position = self.index(index);
                let inside = self.b.binary(BinaryOp::Le, lower, position);
                cond = Some(self.both(cond, inside));
            }
            if max >= extent as i64 {
                let upper = self.b.index(extent as i64);
                let position = self.index(index);
                let inside = self.b.binary(BinaryOp::Lt, position, upper);
                cond = Some(self.both(cond, inside));
            }
        }
        self.guarded(x, source, guard, cond)
    }

    fn both(&mut self, guard: Option<Value>, cond: Value) -> Value {
        match guard {
            Some(guard) => self.b.binary(BinaryOp::And, guard, cond),
            None => cond,
        }
    }

    /// The value of `x` where `cond` holds, else zero; `outer` is what is known to hold outside.
    fn guarded(
        &mut self,
        x: NodeId,
        tuple: TupleId,
        outer: Option<Value>,
        cond: Option<Value>,
    ) -> Value {
        let value = self.value(x, tuple, cond);
        match cond {
            Some(cond) if Some(cond) != outer && !self.is_loaded(x) => {
                let zero = self.b.constant(Scalar::from_i64(self.graph.dtype(x), 0));
                self.b.select(cond, value, zero)
            }
            _ => value,
        }
    }

    fn gathered(
        &mut self,
        axis: u8,
        x: NodeId,
        index: NodeId,
        tuple: TupleId,
        guard: Option<Value>,
    ) -> Value {
        let axis = axis as usize;
        let extent = self.graph.shape(x)[axis];
        let picked = self.value(index, tuple, guard);
        let inside = self.in_range(picked, extent);
        let cond = self.both(guard, inside);
        let atom = match self.opaque.get(&(index, tuple)) {
            Some(&atom) => atom,
            None => {
                let atom = self.indices.algebra.opaque(extent);
                self.opaque.insert((index, tuple), atom);
                atom
            }
        };
        self.counters.insert(atom, picked);
        let mut source = self.indices.get(tuple).to_vec();
        source[axis] = self.indices.algebra.of(atom);
        let source = self.indices.intern(source);
        self.guarded(x, source, guard, Some(cond))
    }

    /// Whether an index lies in `0 .. extent`.
    pub(super) fn in_range(&mut self, index: Value, extent: usize) -> Value {
        let (lower, upper) = (self.b.index(0), self.b.index(extent as i64));
        let above = self.b.binary(BinaryOp::Le, lower, index);
        let below = self.b.binary(BinaryOp::Lt, index, upper);
        self.b.binary(BinaryOp::And, above, below)
    }

    /// The IR value of an index expression: outer counters first, so that what does not change in
    /// inner loops stands together, and the constant last.
    pub(super) fn index(&mut self, x: &Index) -> Value {
        let order = |atom: AtomId| self.path.iter().position(|&a| a == atom);
        let mut terms: Vec<(Option<usize>, AtomId, i64)> = x
            .terms
            .iter()
            .filter(|term| !self.merged.is_absorbed(term.0))
            .map(|&(atom, c)| (order(atom), atom, c))
            .collect();
        terms.sort_by_key(|term| (term.0.is_none(), term.0, term.1));
        let mut sum: Option<Value> = None;
        for (_, atom, coefficient) in terms {
            let factor = self.atom(atom);
            let by = self.b.index(coefficient);
            let term = self.b.binary(BinaryOp::Mul, factor, by);
            sum = Some(match sum {
                Some(sum) => self.b.binary(BinaryOp::Add, sum, term),
                None => term,
            });
        }
        let constant = self.b.index(x.constant);
        sum.map_or(constant, |sum| self.b.binary(BinaryOp::Add, sum, constant))
    }

    fn atom(&mut self, id: AtomId) -> Value {
        match self.indices.algebra.atom(id).clone() {
            Atom::Axis { .. } | Atom::Opaque { .. } => self.counters[&id],
            Atom::Div(x, by) => {
                let (x, by) = (self.index(&x), self.b.index(by));
                self.b.binary(BinaryOp::Div, x, by)
            }
            Atom::Mod(x, by) => {
                let (x, by) = (self.index(&x), self.b.index(by));
                self.b.binary(BinaryOp::Rem, x, by)
            }
        }
    }

    /// The buffer argument of a node.
    pub(super) fn param(&self, id: NodeId) -> Value {
        self.param_values[&id]
    }
}
