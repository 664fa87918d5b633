//! Contractions and their epilogues: what is computed on a tile of results while it is in cache.
//!
//! The epilogue kernel runs over the rows and columns of a tile. The group's own axes are
//! expressed through the contraction's merged batch, m and n positions, so that addresses of
//! bias, residual and result stay affine in n, the direction of vectors.
//!
//! Each element of a result is stored once in all tiles together. A result that varies along fewer axes
//! than the contraction is stored where the axes that it lacks are at their start, outside of the loops
//! that it does not depend on.

use super::contract::Contraction;
use super::loop_body::{Form, LoopBody, collect_roots};
use super::lower::{Lowered, Lowering, cached, name};
use super::partition::{ContractGroup, Group, Partition};
use super::pull::{Scope, TupleId};
use crate::affine::{Algebra, AtomId, Index};
use crate::dtype::DType;
use crate::graph::{Graph, NodeId};
use crate::hal::{ContractDim, ContractSpec};
use crate::ir::{Access, Builder, Kernel, LoopKind, Op, Value};
use crate::ops::BinaryOp;
use crate::passes::{Site, simplify};
use rustc_hash::FxHashMap;

/// Scalar arguments every epilogue starts with: batch, first m, first n, rows, columns, stride.
pub(crate) const RESERVED_VARS: usize = 6;
/// A root of an epilogue, in positions of the contraction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    tuple: TupleId,
    /// Digits of the position along the axes that the root does not vary with: all are 0 where it is stored.
    first: TupleId,
}

/// A contraction, where its results stand in the axes of a group, and tuples of the group's roots.
pub(super) type Roots = (ContractSpec, TupleId, Vec<TupleId>);

/// The epilogue of a contraction group, or `None` if results are only stored.
pub(crate) fn lower(
    graph: &Graph,
    partition: &mut Partition,
    group: usize,
    this: &Group,
    contract: &ContractGroup,
) -> Option<Lowered> {
    let at = contract.at?;
    let contraction = &contract.contraction;
    let numel = graph.shape(contraction.node).numel();
    let p = &mut *partition;
    let (spec, algebra) = (&contraction.spec, &mut p.indices.algebra);
    algebra.allocate_from(Scope::Epilogue.first());
    let batch = algebra.axis(extent(&spec.batch));
    let (m, n) = (algebra.axis(extent(&spec.m)), algebra.axis(extent(&spec.n)));
    let flat = p.indices.flat_id(graph, contraction.node, at);
    let key: Roots = (spec.clone(), flat, this.roots.iter().map(|root| root.tuple).collect());
    if !p.epilogues.contains_key(&key) {
        let position = position_in_c(&mut p.indices.algebra, contraction, [batch, m, n]);
        // The group's axes are digits of the position in C: invert the mixed radix.
        let mut axes = FxHashMap::default();
        for &(axis, stride) in &p.indices.get(flat)[0].terms {
            let count = p.indices.extent(axis) as i64;
            let digit = p.indices.algebra.div(&position, stride);
            let outermost = stride * count == numel as i64;
            let digit = if outermost { digit } else { p.indices.algebra.rem(&digit, count) };
            axes.insert(axis, digit);
        }
        let target = |&tuple: &TupleId| {
            let mut lacks: Vec<_> =
                p.indices.get(flat)[0].terms.iter().map(|term| term.0).collect();
            p.indices.visit_axes(tuple, |axis| lacks.retain(|&lacked| lacked != axis));
            let first = lacks.iter().map(|axis| axes[axis].clone()).collect();
            let first = p.indices.intern(first);
            Target { tuple: p.indices.substitute(tuple, &axes), first }
        };
        let targets = key.2.iter().map(target).collect();
        p.epilogues.insert(key.clone(), targets);
    }
    let targets = p.epilogues[&key].clone();
    let nodes = this.roots.iter().map(|root| root.node);
    let roots: Vec<_> = nodes.zip(targets.iter().map(|target| target.tuple)).collect();
    let mut found = collect_roots(graph, partition, group, &roots, &[contraction.node], &[]);
    let extents = [spec.batch.as_slice(), &spec.m, &spec.n].map(|dims| extent(dims) as i64);
    let (acc, counters) = (spec.acc, [batch, m, n]);
    let firsts = targets.iter().map(|target| target.first).collect();
    found.body.form = Form::Epilogue { name: name(graph, this), acc, extents, counters, firsts };
    let written: Vec<(NodeId, Access)> = roots.iter().map(|r| (r.0, Access::Write)).collect();
    Some(cached(graph, partition, (found, &written), emit))
}

fn emit(l: &mut Lowering<'_, ()>, body: &LoopBody) {
    let &Form::Epilogue { acc, extents: [batches, rows, columns], counters, ref firsts, .. } =
        &body.form
    else {
        unreachable!("invariant: only epilogues are emitted so")
    };
    let tile = l.b.param(acc, u64::MAX >> 8, Access::Read);
    // Rows of a tile are padded, by less than this, and may be parts of those of several entries.
    let stride = batches.saturating_mul(columns).saturating_mul(2).saturating_add(256);
    let most: [i64; RESERVED_VARS] = [(batches - 1).max(0), rows, columns, rows, columns, stride];
    let vars = most.map(|most| l.b.var(DType::I64, 0, most));
    l.declare_body();
    let [batch, m, n] = counters;
    // Outside of a loop its counter is that of the first iteration.
    for (counter, first) in [batch, m, n].into_iter().zip(vars) {
        l.counters.insert(counter, first);
    }
    let numel = (batches * rows * columns) as u64;
    let visits = |l: &Lowering<'_, ()>, number: usize, counter: AtomId| {
        let mut visits = false;
        l.indices.visit_axes(body.stores[number].tuple, |axis| visits |= axis == counter);
        visits
    };
    let (in_columns, others): (Vec<_>, Vec<_>) = (0..body.stores.len())
        .partition(|&number| body.written[number].0.len == numel || visits(l, number, n));
    let (in_rows, once): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|&number| visits(l, number, m));
    let store = |l: &mut Lowering<'_, ()>, numbers: Vec<usize>| {
        numbers.into_iter().for_each(|number| l.store_first(number, firsts[number]));
    };
    store(l, once);
    let row = l.b.open_loop(LoopKind::Parallel, 0, vars[3]);
    // No tile goes beyond the result. Said so, it is known where kernels are verified.
    let last = l.b.index(rows - 1);
    let global = l.b.binary(BinaryOp::Add, vars[1], row);
    let global = l.b.binary(BinaryOp::Min, global, last);
    l.counters.insert(m, global);
    store(l, in_rows);
    let line = l.b.binary(BinaryOp::Mul, row, vars[5]);
    let left = l.b.index(columns);
    let left = l.b.binary(BinaryOp::Sub, left, vars[2]);
    let left = l.b.binary(BinaryOp::Min, left, vars[4]);
    let column = l.b.open_loop(LoopKind::Parallel, 1, left);
    let global = l.b.binary(BinaryOp::Add, vars[2], column);
    l.counters.insert(n, global);
    let place = l.b.binary(BinaryOp::Add, line, column);
    let value = l.b.load(tile, place);
    l.give(value);
    store(l, in_columns);
    l.b.close();
    l.b.close();
}

/// The kernel that does what an epilogue does in all tiles together: its one tile for each batch entry is
/// the whole result.
pub(super) fn of_whole_result(kernel: &Kernel, spec: &ContractSpec) -> Kernel {
    let mut b = Builder::new(kernel.name());
    let params: Vec<Value> =
        kernel.params().iter().map(|p| b.param(p.dtype, p.len, p.access)).collect();
    let own = kernel.vars().iter().skip(RESERVED_VARS);
    let own: Vec<Value> = own.map(|var| b.var(var.dtype, var.min, var.max)).collect();
    let counts = [&spec.batch, &spec.m, &spec.n].map(|dims| extent(dims) as i64);
    let [batches, rows, columns] = counts.map(|count| b.index(count));
    let zero = b.index(0);
    let batch = b.open_loop(LoopKind::Parallel, 2, batches);
    let vars = [&[batch, zero, zero, rows, columns, columns], &own[..]].concat();
    let mut map: Vec<Value> = Vec::with_capacity(kernel.ops().len());
    for (_, op, ty) in kernel.iter() {
        map.push(match op {
            Op::Param { slot, .. } => params[usize::from(slot)],
            Op::Var { slot } => vars[usize::from(slot)],
            _ => b.emit(op.map(|x| map[x.idx()]), ty),
        });
    }
    b.close();
    (simplify::PASS.apply)(&b.finish(), &Site::whole())
}

fn extent(dims: &[ContractDim]) -> usize {
    dims.iter().map(|dim| dim.len).product()
}

/// The position in C of merged batch, m and n positions.
fn position_in_c(algebra: &mut Algebra, contraction: &Contraction, atoms: [AtomId; 3]) -> Index {
    let spec = &contraction.spec;
    let mut sum = Index::constant(0);
    for (atom, dims) in atoms.into_iter().zip([&spec.batch, &spec.m, &spec.n]) {
        let lens: Vec<usize> = dims.iter().map(|dim| dim.len).collect();
        let whole = algebra.of(atom);
        for (dim, digit) in dims.iter().zip(algebra.unflatten(&whole, &lens)) {
            let term = algebra.scale(&digit, dim.c as i64);
            sum = algebra.add(&sum, &term);
        }
    }
    sum
}
