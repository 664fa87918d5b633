//! Operands that a contraction computes as it needs them: weights of few bits.
//!
//! A library packs blocks of its operands anyway; a prologue is the kernel that computes such a
//! block. So a product with quantised weights reads their bytes alone, and no matrix of their
//! numbers exists. It is worth that where a number takes few operations and much less memory than
//! itself; anything else is stored, and the library is free to read it in the order it likes best.
//!
//! The kernel runs over rows, over runs of steps, and along a run, the innermost dimension of the
//! sum: what is the same along a run needs no division and no second load.

use super::contract::Contraction;
use super::loop_body::{Form, LoopBody, collect_roots};
use super::lower::{Lowered, Lowering, cached};
use super::partition::{ContractGroup, Partition, Partitioner, Use};
use crate::affine::AtomId;
use crate::dtype::DType;
use crate::graph::{Graph, NodeId};
use crate::hal::{ContractDim, Prologue};
use crate::ir::{Access, LoopKind};
use crate::ops::BinaryOp;

/// How many times fewer bytes an operand is made of than it has.
const NARROWER: f32 = 2.0;
/// Most operations that an element takes. A library may compute one more than once.
const MOST_OPS: f32 = 48.0;
/// Shortest run that is worth loops of its own.
const SHORTEST_RUN: usize = 8;

impl Partitioner<'_> {
    /// The operand, of two, that the library computes itself.
    pub(super) fn computed_operand(&self, contraction: &Contraction) -> Option<usize> {
        let Contraction { operands, spec, .. } = contraction;
        let convolves = contraction.convolution.is_some();
        let exists = self.caps.prologues && spec.acc.is_float();
        if !exists || convolves || operands[0] == operands[1] {
            return None;
        }
        let run = spec.k.last()?;
        (0..2).find(|&side| {
            // One that is the same in all entries of a batch would be computed for each of them.
            let moves = |dim: &ContractDim| [dim.a, dim.b][side] != 0;
            let (id, dtype, stride) =
                [(operands[0], spec.a, run.a), (operands[1], spec.b, run.b)][side];
            let computes = self.graph.node(id).is_elementwise();
            let [ops, bytes] = self.costs.made_of(id);
            computes
                && (dtype, stride) == (spec.acc, 1)
                && spec.batch.iter().all(moves)
                && run.len >= SHORTEST_RUN
                && ops <= MOST_OPS
                && bytes * NARROWER <= dtype.size() as f32
                && self.is_only_for(contraction.node, id)
        })
    }

    /// Whether nobody but a contraction needs one of its operands, or what it is moved to.
    fn is_only_for(&self, contraction: NodeId, operand: NodeId) -> bool {
        let only = |id: &NodeId| self.uses[id.idx()] == 1 && !self.must_store[id.idx()];
        let single = |id: NodeId| {
            let mut sources = self.graph.node(id).sources();
            sources.next().filter(|_| sources.next().is_none())
        };
        let path = |from: NodeId| std::iter::successors(Some(from), |&id| single(id));
        let Some(product) = path(contraction).skip(1).find(|&id| single(id).is_none()) else {
            return false;
        };
        let above = path(contraction).skip(1).take_while(|&id| id != product).chain([product]);
        let mut factors = self.graph.node(product).sources();
        let below = factors.find(|&x| path(x).any(|id| id == operand));
        below.is_some_and(|x| {
            let below = path(x).take_while(|&id| id != operand).chain([operand]);
            above.chain(below).all(|id| only(&id))
        })
    }

    /// Makes a group compute an operand of its contraction.
    pub(super) fn compute_operand(&mut self, group: u32, contraction: &Contraction, side: usize) {
        let (id, tuple) = (contraction.operands[side], contraction.tuples[side]);
        let [batch, m, n, k] = contraction.counters();
        let rows = if side == 0 { m } else { n };
        self.loops.push([batch, rows, k].concat());
        let loops = self.loops.len() as u32 - 1;
        self.groups[group as usize].nodes += 1;
        self.total += self.costs.computed(id, self.graph.shape(id).numel());
        self.propagate(id, Use { group, tuple, loops, guarded: false });
    }
}

/// The prologue of a contraction group with the operand it computes, if it has one.
pub(crate) fn lower(
    graph: &Graph,
    partition: &mut Partition,
    group: usize,
    contract: &ContractGroup,
) -> Option<(usize, Lowered)> {
    let side = contract.computed?;
    let contraction = &contract.contraction;
    let (node, tuple) = (contraction.operands[side], contraction.tuples[side]);
    let [batch, m, n, k] = contraction.counters();
    let rows = if side == 0 { m } else { n };
    k.last()?;
    let mut found = collect_roots(graph, partition, group, &[(node, tuple)], &[], &[]);
    let dims: Vec<String> = graph.shape(node).iter().map(usize::to_string).collect();
    let (name, acc) = (format!("of_{}", dims.join("x")), contraction.spec.acc);
    found.body.form = Form::Prologue { name, acc, batch, rows, steps: k };
    Some((side, cached(graph, partition, (found, &[]), emit)))
}

fn emit(l: &mut Lowering<'_, ()>, body: &LoopBody) {
    let Form::Prologue { acc, batch, rows, steps, .. } = &body.form else {
        unreachable!("invariant: only prologues are emitted so")
    };
    let (&step, runs) = steps.split_last().expect("invariant: a prologue has steps");
    let block = l.b.param(*acc, u64::MAX >> 8, Access::Write);
    let count = |atoms: &[AtomId]| -> i64 {
        atoms.iter().map(|&atom| l.indices.extent(atom) as i64).product()
    };
    let [n_batch, n_rows, n_runs, n_steps] = [&batch[..], rows, runs, &[step]].map(count);
    // Batch, first row, run and step, then how many, and the stride of rows.
    let limits = [n_batch, n_rows, n_runs, n_steps, n_rows, n_runs, n_steps, 1 << 40];
    let vars = limits.map(|limit| l.b.var(DType::I64, 0, limit));
    l.declare_body();
    l.count_digits(batch, vars[0]);
    let row = l.b.open_loop(LoopKind::Parallel, 0, vars[4]);
    let number = l.b.binary(BinaryOp::Add, vars[1], row);
    l.count_digits(rows, number);
    let line = l.b.binary(BinaryOp::Mul, row, vars[7]);
    let run = l.b.open_loop(LoopKind::Parallel, 1, vars[5]);
    let number = l.b.binary(BinaryOp::Add, vars[2], run);
    l.count_digits(runs, number);
    let whole = n_steps as usize <= Prologue::WHOLE;
    let n = if whole { l.b.index(n_steps) } else { vars[6] };
    let before = l.b.binary(BinaryOp::Mul, run, n);
    let start = l.b.binary(BinaryOp::Add, line, before);
    let i = l.b.open_loop(LoopKind::Parallel, 2, n);
    let counter = if whole { i } else { l.b.binary(BinaryOp::Add, vars[3], i) };
    l.counters.insert(step, counter);
    let place = l.b.binary(BinaryOp::Add, start, i);
    let value = l.value(body.stores[0].value);
    l.b.store(block, place, value);
    l.b.close();
    l.b.close();
    l.b.close();
}
