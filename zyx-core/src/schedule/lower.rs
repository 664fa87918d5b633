//! From a body of loops to a naive kernel.
//!
//! The axes of a body become parallel loops. At each depth first the reductions whose index tuple is complete there are
//! computed (a loop and an accumulator each), then stores that are complete are made, then the next loop opens. Index
//! arithmetic is ordinary IR. Where a padding or a gather makes an index possibly invalid, loads below are guarded and
//! give zero.
//!
//! Neighbouring axes that every access treats as one are merged before anything is emitted.

use super::loop_body::{
    BodyValue, BufferArg, Collected, LoadStart, LoopBody, Store, ValueId, ValueOp,
};
use super::merge::Merged;
use super::partition::{Group, Kind, Partition, Product};
use super::pull::{Indices, TupleId};
use crate::affine::{Atom, AtomId, Index};
use crate::dtype::DType;
use crate::graph::{Graph, NodeId};
use crate::ir::{Access, Builder, Kernel, LoopKind, Space, Type, Value};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::passes::{Site, dce};
use crate::scalar::Scalar;
use rustc_hash::FxHashMap;
use std::rc::Rc;
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

/// A reduction of a body: its value, and where it is computed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reduction {
    pub(super) value: ValueId,
    pub(super) op: BinaryOp,
    /// The element that is reduced.
    pub(super) x: ValueId,
    /// The loops it stands in, outermost first; it is computed when exactly these are open.
    pub(super) outer: Vec<AtomId>,
    /// Its own loops.
    pub(super) own: Vec<AtomId>,
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

/// The arguments of a kernel: buffers that are loaded, then buffers that are written; scalars, places, starts.
fn arguments(found: &Collected, written: &[(NodeId, Access)]) -> (Vec<NodeId>, Vec<Var>) {
    let params = found.loads.iter().copied().chain(written.iter().map(|w| w.0)).collect();
    let places = found.body.places.iter().map(|place| place.0);
    let mut vars: Vec<Var> = found.slots.iter().copied().chain(places).map(Var::Argument).collect();
    vars.extend(found.starts.iter().zip(&found.body.starts).filter_map(|(start, of_kernel)| {
        match of_kernel {
            LoadStart::Argument { step, .. } => Some(Var::Known(start.place / step)),
            LoadStart::Element(_) => None,
        }
    }));
    (params, vars)
}

/// The kernel of a body: that of an earlier group with an equal one, or emitted by `emit`, which sees nothing but the
/// body and the meaning of its index tuples.
pub(super) fn cached(
    graph: &Graph,
    partition: &mut Partition,
    (mut found, written): (Collected, &[(NodeId, Access)]),
    emit: fn(&mut Lowering<'_, ()>, &LoopBody),
) -> Lowered {
    written.iter().for_each(|&(node, access)| found.write(graph, node, access));
    let (params, vars) = arguments(&found, written);
    let kernel = match partition.kernels.get(&found.body) {
        Some(kernel) => kernel.clone(),
        None => {
            let body = Rc::new(found.body);
            let mut l = Lowering::of_body(&mut partition.indices, body.clone());
            emit(&mut l, &body);
            let kernel = finished(l.b);
            partition.kernels.insert(body, kernel.clone());
            kernel
        }
    };
    Lowered { kernel, params, vars }
}

/// The kernel that was emitted. What guards that always hold leave behind would tell kernels apart that compute the
/// same.
fn finished(b: Builder) -> Arc<Kernel> {
    Arc::new((dce::PASS.apply)(&b.finish(), &Site::whole()))
}

/// Emits one kernel: of a body alone, or, for strategies that emit their own loops, with the graph's nodes.
pub(super) struct Lowering<'a, N = Nodes<'a>> {
    pub(super) nodes: N,
    pub(super) indices: &'a mut Indices,
    pub(super) b: Builder,
    body: Rc<LoopBody>,
    /// The arguments of the kernel, in the order of the body's.
    loads: Vec<Value>,
    written: Vec<Value>,
    arguments: Vec<Value>,
    starts: Vec<Option<Value>>,
    pub(super) merged: Merged,
    /// Loops open now with their counters.
    path: Vec<AtomId>,
    pub(super) counters: FxHashMap<AtomId, Value>,
    /// Values under a guard, forgotten when the region they stand in closes.
    memo: FxHashMap<(ValueId, Option<Value>), Value>,
    scopes: Vec<Vec<(ValueId, Option<Value>)>>,
    given: Option<Value>,
}

/// The nodes of a graph that a body is made of.
pub(super) struct Nodes<'a> {
    pub(super) graph: &'a Graph,
    numbers: FxHashMap<(NodeId, TupleId), ValueId>,
    buffers: FxHashMap<NodeId, Value>,
    params: Vec<NodeId>,
    vars: Vec<Var>,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        partition: &'a mut Partition,
        name: String,
    ) -> Lowering<'a> {
        let nodes = Nodes {
            graph,
            numbers: FxHashMap::default(),
            buffers: FxHashMap::default(),
            params: Vec::new(),
            vars: Vec::new(),
        };
        Lowering::empty(nodes, &mut partition.indices, &name)
    }

    pub(super) fn finish(self) -> Lowered {
        Lowered { kernel: finished(self.b), params: self.nodes.params, vars: self.nodes.vars }
    }

    /// Declares all arguments, loaded and written, and notes what is computed.
    pub(super) fn declare(&mut self, mut found: Collected, written: &[(NodeId, Access)]) {
        written.iter().for_each(|&(node, access)| found.write(self.nodes.graph, node, access));
        (self.nodes.params, self.nodes.vars) = arguments(&found, written);
        self.nodes.numbers = found.numbers;
        self.body = Rc::new(found.body);
        self.declare_body();
        let values = self.loads.iter().chain(&self.written).copied();
        self.nodes.buffers = self.nodes.params.iter().copied().zip(values).collect();
    }

    /// The value of a node at a tuple: loaded if it is stored elsewhere, else computed.
    pub(super) fn value(&mut self, id: NodeId, tuple: TupleId, guard: Option<Value>) -> Value {
        let value = self.nodes.numbers[&(id, tuple)];
        self.compute(value, guard)
    }

    /// Makes the value of a node known until the loop that is open closes.
    pub(super) fn remember(&mut self, id: NodeId, tuple: TupleId, value: Value) {
        // A node that no value is computed from has no number yet.
        let next = self.body.values.len() + self.nodes.numbers.len();
        let number = *self.nodes.numbers.entry((id, tuple)).or_insert(ValueId(next as u32));
        self.remember_value((number, None), value);
    }

    /// Stores the value of a node at a tuple.
    pub(super) fn store_root(&mut self, node: NodeId, tuple: TupleId) {
        let value = self.value(node, tuple, None);
        self.store_value(node, tuple, value);
    }

    /// Stores `value` as the element of a node at a tuple, in the first iteration of those loops that
    /// are open and that the tuple does not depend on.
    pub(super) fn store_value(&mut self, node: NodeId, tuple: TupleId, value: Value) {
        let place = self.indices.flat_id(self.nodes.graph, node, tuple);
        let buffer = self.param(node);
        self.store_at(buffer, (tuple, place), value);
    }

    /// The buffer argument of a node.
    pub(super) fn param(&self, id: NodeId) -> Value {
        self.nodes.buffers[&id]
    }
}

impl<'a> Lowering<'a, ()> {
    fn of_body(indices: &'a mut Indices, body: Rc<LoopBody>) -> Lowering<'a, ()> {
        let name = body.form.name();
        Lowering { body: body.clone(), ..Lowering::empty((), indices, name) }
    }

    /// The value of a body.
    pub(super) fn value(&mut self, value: ValueId) -> Value {
        self.compute(value, None)
    }

    /// Everything inside the loops that are open, and then the loops of `rest`; with `flat` all stores stand in the
    /// innermost loop.
    pub(super) fn level(&mut self, rest: &[AtomId], flat: bool) {
        self.fill();
        let (body, depth) = (self.body.clone(), self.path.len());
        for (number, store) in body.stores.iter().enumerate() {
            if depth == if flat { body.axes.len() } else { store.depth } {
                self.store(number);
            }
        }
        if let Some((&axis, inner)) = rest.split_first() {
            self.open(axis, LoopKind::Parallel);
            self.level(inner, flat);
            self.close(axis);
        }
    }

    /// Stores a value of the body.
    pub(super) fn store(&mut self, number: usize) {
        let Store { value, tuple, place, .. } = self.body.stores[number];
        let value = self.compute(value, None);
        let buffer = self.written[number];
        self.store_at(buffer, (tuple, place), value);
    }

    /// Stores a value of the body where all of `digits` are 0.
    pub(super) fn store_first(&mut self, number: usize, digits: TupleId) {
        let Store { value, place, .. } = self.body.stores[number];
        let value = self.compute(value, None);
        let digits = self.indices.get(digits).iter().map(|digit| self.index(digit)).collect();
        self.store_where_zero((self.written[number], place), value, digits);
    }
}

impl<'a, N> Lowering<'a, N> {
    fn empty(nodes: N, indices: &'a mut Indices, name: &str) -> Lowering<'a, N> {
        Lowering {
            nodes,
            indices,
            b: Builder::new(name),
            body: Rc::default(),
            loads: Vec::new(),
            written: Vec::new(),
            arguments: Vec::new(),
            starts: Vec::new(),
            merged: Merged::default(),
            path: Vec::new(),
            counters: FxHashMap::default(),
            memo: FxHashMap::default(),
            scopes: vec![Vec::new()],
            given: None,
        }
    }

    /// Declares all arguments of the body.
    pub(super) fn declare_body(&mut self) {
        let body = self.body.clone();
        let buffer = |l: &mut Self, arg: BufferArg, access| l.b.param(arg.dtype, arg.len, access);
        self.loads = body.loads.iter().map(|&arg| buffer(self, arg, Access::Read)).collect();
        self.written =
            body.written.iter().map(|&(arg, access)| buffer(self, arg, access)).collect();
        let scalar = |&dtype: &DType| self.b.var(dtype, i64::MIN, i64::MAX);
        self.arguments = body.arguments.iter().map(scalar).collect();
        for &(_, atom) in &body.places {
            let value = self.b.var(DType::I64, 0, self.indices.extent(atom) as i64 - 1);
            self.counters.insert(atom, value);
        }
        let start = |start: &LoadStart| match *start {
            LoadStart::Argument { last, .. } => Some(self.b.var(DType::I64, 0, last)),
            LoadStart::Element(_) => None,
        };
        self.starts = body.starts.iter().map(start).collect();
    }

    /// Makes what the body calls given known everywhere: the tile of an epilogue.
    pub(super) fn give(&mut self, value: Value) {
        self.given = Some(value);
    }

    /// Stores `value` at a place of a buffer, in the first iteration of those loops that are open and that the tuple,
    /// of which the place is made, does not depend on.
    fn store_at(&mut self, buffer: Value, (tuple, place): (TupleId, TupleId), value: Value) {
        let depth = self.indices.depth(&self.path, tuple);
        let lacks = self.path[depth..].iter();
        let counters = lacks.filter_map(|axis| self.counters.get(axis).copied()).collect();
        self.store_where_zero((buffer, place), value, counters);
    }

    /// Stores `value` at a place of a buffer where all of `counters` are 0.
    fn store_where_zero(
        &mut self,
        (buffer, place): (Value, TupleId),
        value: Value,
        counters: Vec<Value>,
    ) {
        let flat = self.indices.get(place)[0].clone();
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
        self.b.store(buffer, index, value);
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
    pub(super) fn fill(&mut self) {
        let body = self.body.clone();
        let mut due: Vec<&Reduction> =
            body.reductions.iter().filter(|r| r.outer == self.path).collect();
        while let Some(&first) = due.first() {
            let joins =
                |r: &&Reduction| std::ptr::eq(*r, first) || !r.own.is_empty() && r.own == first.own;
            let (joint, rest) = due.into_iter().partition(joins);
            self.reduce(joint);
            due = rest;
        }
    }

    /// Reduces in one nest of loops.
    fn reduce(&mut self, joint: Vec<&Reduction>) {
        let body = self.body.clone();
        let accumulator = |r: &&Reduction| self.accumulator(r.op, body.values[r.value.idx()].dtype);
        let accumulators: Vec<Value> = joint.iter().map(accumulator).collect();
        let own = &joint[0].own;
        for &axis in own {
            self.open(axis, LoopKind::Serial);
            self.fill();
        }
        for (reduction, &acc) in joint.iter().zip(&accumulators) {
            let element = self.compute(reduction.x, None);
            self.accumulate(reduction.op, acc, element);
        }
        for &axis in own.iter().rev() {
            self.close(axis);
        }
        let zero = self.b.index(0);
        for (reduction, acc) in joint.into_iter().zip(accumulators) {
            let value = self.b.load(acc, zero);
            self.remember_value((reduction.value, None), value);
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

    /// A scan along the last axis: the accumulator lives around it, and its every step stores. A trivial scan is the
    /// identity, and its last axis has no counter.
    pub(super) fn scan(&mut self, trivial: bool) {
        let body = self.body.clone();
        let &Store { value, tuple, place, .. } = &body.stores[0];
        let BodyValue { dtype, op: ValueOp::Scan { op, x, factor } } = body.values[value.idx()]
        else {
            unreachable!("invariant: a scan group's root is a scan")
        };
        let outer = body.axes.len() - usize::from(!trivial);
        for &axis in &body.axes[..outer] {
            self.fill();
            self.open(axis, LoopKind::Parallel);
        }
        self.fill();
        let acc = self.accumulator(op, dtype);
        for &axis in &body.axes[outer..] {
            self.open(axis, LoopKind::Serial);
            self.fill();
        }
        if let Some(factor) = factor {
            let factor = self.compute(factor, None);
            self.scale(acc, factor);
        }
        let element = self.compute(x, None);
        let value = self.accumulate(op, acc, element);
        let buffer = self.written[0];
        self.store_at(buffer, (tuple, place), value);
        for &axis in body.axes.iter().rev() {
            self.close(axis);
        }
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
    fn remember_value(&mut self, key: (ValueId, Option<Value>), value: Value) {
        self.memo.insert(key, value);
        self.scopes.last_mut().expect("invariant: one scope is open").push(key);
    }

    /// Whether a value was computed, under the guard or under none.
    fn known(&self, value: ValueId, guard: Option<Value>) -> Option<Value> {
        self.memo.get(&(value, guard)).or_else(|| self.memo.get(&(value, None))).copied()
    }

    /// Computes a value; where the guard does not hold, loads give 0.
    pub(super) fn compute(&mut self, value: ValueId, guard: Option<Value>) -> Value {
        if let Some(known) = self.known(value, guard) {
            return known;
        }
        let computed = self.emit(value, guard);
        self.remember_value((value, guard), computed);
        computed
    }

    fn emit(&mut self, value: ValueId, guard: Option<Value>) -> Value {
        let body = self.body.clone();
        let BodyValue { dtype, op } = &body.values[value.idx()];
        match *op {
            ValueOp::Given => self.given.expect("invariant: it was given"),
            ValueOp::Load { buffer, place, start } => self.load((buffer, place, start), guard),
            ValueOp::Const { bits } => self.b.constant(Scalar::from_bits(*dtype, bits)),
            ValueOp::Argument { number } => self.arguments[number as usize],
            ValueOp::Iota { at } => {
                let position = self.indices.get(at)[0].clone();
                let index = self.index(&position);
                self.b.cast(*dtype, index)
            }
            ValueOp::Unary { op, x } => {
                let x = self.compute(x, guard);
                self.b.unary(op, x)
            }
            ValueOp::Binary { op, x, y, product } => {
                let fused = match product {
                    Product::None => None,
                    Product::First => self.multiply_add(op, x, y, guard),
                    Product::Second => self.multiply_add(op, y, x, guard),
                };
                fused.unwrap_or_else(|| {
                    let (x, y) = (self.compute(x, guard), self.compute(y, guard));
                    self.b.binary(op, x, y)
                })
            }
            ValueOp::Ternary { op, x, y, z } => {
                let (x, y) = (self.compute(x, guard), self.compute(y, guard));
                let z = self.compute(z, guard);
                self.b.ternary(op, x, y, z)
            }
            ValueOp::Cast { x } => {
                let x = self.compute(x, guard);
                self.b.cast(*dtype, x)
            }
            ValueOp::Bitcast { x } => {
                let x = self.compute(x, guard);
                self.b.bitcast(*dtype, x)
            }
            ValueOp::Copy { x } => self.compute(x, guard),
            ValueOp::Pad { x, at, ref extents, loaded } => {
                let inside = self.inside(at, extents, guard);
                self.guarded((x, loaded), guard, inside)
            }
            ValueOp::Gather { x, index, at, extent, loaded } => {
                let picked = self.compute(index, guard);
                let inside = self.in_range(picked, extent);
                let inside = self.both(guard, inside);
                self.counters.insert(at, picked);
                self.guarded((x, loaded), guard, Some(inside))
            }
            ValueOp::Reduce => {
                unreachable!("invariant: reductions are computed before they are used")
            }
            ValueOp::Scan { .. } => unreachable!("invariant: scans are stored"),
        }
    }

    fn load(
        &mut self,
        (buffer, place, start): (u32, TupleId, Option<u32>),
        guard: Option<Value>,
    ) -> Value {
        let mut flat = self.indices.get(place)[0].clone();
        let start =
            start.map(|start| (self.body.starts[start as usize], self.starts[start as usize]));
        if let Some((LoadStart::Element(first), _)) = start {
            flat.constant += first;
        }
        let mut index = self.index(&flat);
        if let Some((LoadStart::Argument { step, .. }, Some(place))) = start {
            let by = self.b.index(step);
            let place = self.b.binary(BinaryOp::Mul, place, by);
            index = self.b.binary(BinaryOp::Add, index, place);
        }
        if let Some(inside) = guard {
            index = self.b.guard(index, inside);
        }
        self.b.load(self.loads[buffer as usize], index)
    }

    /// The sum of a product and an addend, or the addend less the product, rounded once; `None` if
    /// the kernel was given the product's value.
    fn multiply_add(
        &mut self,
        op: BinaryOp,
        product: ValueId,
        addend: ValueId,
        guard: Option<Value>,
    ) -> Option<Value> {
        let body = self.body.clone();
        let (x, y) = match body.values[product.idx()].op {
            ValueOp::Binary { x, y, .. } if self.known(product, guard).is_none() => (x, y),
            _ => return None,
        };
        let constant = matches!(body.values[x.idx()].op, ValueOp::Const { .. });
        let (x, y) = if constant { (y, x) } else { (x, y) };
        let (x, y) = (self.compute(x, guard), self.compute(y, guard));
        let y = if op == BinaryOp::Sub { self.b.unary(UnaryOp::Neg, y) } else { y };
        let addend = self.compute(addend, guard);
        Some(self.b.ternary(TernaryOp::MulAdd, x, y, addend))
    }

    /// The guard, and that all indices of a tuple lie within their extents.
    fn inside(&mut self, at: TupleId, extents: &[usize], guard: Option<Value>) -> Option<Value> {
        let mut inside = guard;
        for (index, &extent) in self.indices.get(at).iter().zip(extents) {
            let (min, max) = self.indices.algebra.range(index);
            if min < 0 {
                let lower = self.b.index(0);
                let position = self.index(index);
                let above = self.b.binary(BinaryOp::Le, lower, position);
                inside = Some(self.both(inside, above));
            }
            if max >= extent as i64 {
                let upper = self.b.index(extent as i64);
                let position = self.index(index);
                let below = self.b.binary(BinaryOp::Lt, position, upper);
                inside = Some(self.both(inside, below));
            }
        }
        inside
    }

    fn both(&mut self, guard: Option<Value>, inside: Value) -> Value {
        match guard {
            Some(guard) => self.b.binary(BinaryOp::And, guard, inside),
            None => inside,
        }
    }

    /// The value of `x` where `inside` holds, else 0; `outer` is what is known to hold outside. A guarded load gives 0
    /// by itself.
    fn guarded(
        &mut self,
        (x, loaded): (ValueId, bool),
        outer: Option<Value>,
        inside: Option<Value>,
    ) -> Value {
        let value = self.compute(x, inside);
        match inside {
            Some(condition) if inside != outer && !loaded => {
                let dtype = self.body.values[x.idx()].dtype;
                let zero = self.b.constant(Scalar::from_i64(dtype, 0));
                self.b.select(condition, value, zero)
            }
            _ => value,
        }
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
}
