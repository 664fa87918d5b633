//! Contractions and their epilogues: what is computed on a tile of results while it is in cache.
//!
//! The epilogue kernel runs over the rows and columns of a tile. The group's own axes are
//! expressed through the contraction's merged batch, m and n positions, so that addresses of
//! bias, residual and result stay affine in n, the direction of vectors.

use super::contract::Contraction;
use super::loop_body::{Form, LoopBody, collect_roots};
use super::lower::{Lowered, Lowering, cached, name};
use super::partition::{ContractGroup, Group, Partition};
use super::pull::{Scope, TupleId};
use crate::affine::{Algebra, AtomId, Index};
use crate::dtype::DType;
use crate::graph::{Graph, NodeId};
use crate::hal::{ContractDim, ContractSpec};
use crate::ir::{Access, LoopKind};
use crate::ops::BinaryOp;
use rustc_hash::FxHashMap;

/// Scalar arguments every epilogue starts with: batch, first m, first n, rows, columns, stride.
pub(crate) const RESERVED_VARS: usize = 6;
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
        let tuples = key.2.iter().map(|&tuple| p.indices.substitute(tuple, &axes)).collect();
        p.epilogues.insert(key.clone(), tuples);
    }
    let tuples = p.epilogues[&key].iter().copied();
    let roots: Vec<_> = this.roots.iter().map(|root| root.node).zip(tuples).collect();
    let mut found = collect_roots(graph, partition, group, &roots, &[contraction.node], &[]);
    let extents = [spec.batch.as_slice(), &spec.m, &spec.n].map(|dims| extent(dims) as i64);
    let (acc, counters) = (spec.acc, [batch, m, n]);
    found.body.form = Form::Epilogue { name: name(graph, this), acc, extents, counters };
    let written: Vec<(NodeId, Access)> = roots.iter().map(|r| (r.0, Access::Write)).collect();
    Some(cached(graph, partition, (found, &written), emit))
}

fn emit(l: &mut Lowering<'_, ()>, body: &LoopBody) {
    let Form::Epilogue { acc, extents: [batches, rows, columns], counters, .. } = body.form else {
        unreachable!("invariant: only epilogues are emitted so")
    };
    let tile = l.b.param(acc, u64::MAX >> 8, Access::Read);
    // Rows of a tile are padded, by less than this, and may be parts of those of several entries.
    let stride = batches.saturating_mul(columns).saturating_mul(2).saturating_add(256);
    let most: [i64; RESERVED_VARS] = [(batches - 1).max(0), rows, columns, rows, columns, stride];
    let vars = most.map(|most| l.b.var(DType::I64, 0, most));
    l.declare_body();
    let [batch, m, n] = counters;
    l.counters.insert(batch, vars[0]);
    let row = l.b.open_loop(LoopKind::Parallel, 0, vars[3]);
    // No tile goes beyond the result. Said so, it is known where kernels are verified.
    let last = l.b.index(rows - 1);
    let global = l.b.binary(BinaryOp::Add, vars[1], row);
    let global = l.b.binary(BinaryOp::Min, global, last);
    l.counters.insert(m, global);
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
    (0..body.stores.len()).for_each(|number| l.store(number));
    l.b.close();
    l.b.close();
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
