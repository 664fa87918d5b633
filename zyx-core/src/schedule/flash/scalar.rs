//! Flash attention as one generated kernel: each thread has a row.
//!
//! Where no library runs flash attention, a device of many threads gives a row of the middle to
//! each of them. The thread keeps its operands along the row, its sums and what it knows of the
//! row, takes a few columns at a time, and does with them what the kernels in
//! [`library`](super::library) do with a tile. Threads of a group read the same columns at the same
//! time. As any lowered kernel it needs no pass to be right.

use super::library::{exponential, rescaled};
use super::warps;
use super::{At, FlashAttention, Middle, Softmax};
use crate::affine::{AtomId, Index};
use crate::graph::Graph;
use crate::ir::{Access, LoopKind, Space, Type, Value};
use crate::ops::BinaryOp;
use crate::scalar::Scalar;
use crate::schedule::item::ScheduleItem;
use crate::schedule::loop_body::collect_roots;
use crate::schedule::lower::Lowering;
use crate::schedule::partition::{Group, Kind, Partition};
use crate::schedule::strategies::Nest;

/// What a thread keeps.
struct Own {
    /// The operand along the row of each tile.
    operands: Vec<Value>,
    sums: Value,
    /// The maximum and the sum of a softmax.
    states: Vec<Value>,
}

/// A kernel of flash attention whose parameters are declared, its softmax, and what it stores of rows.
pub(super) fn begin<'a>(
    (graph, partition): (&'a Graph, &'a mut Partition),
    (group, this): (usize, &Group),
    flash: &FlashAttention,
    by: &str,
) -> (Lowering<'a>, Option<Softmax>, Vec<At>) {
    let (softmax, middle) = match flash.middle {
        Middle::Softmax(softmax) => (Some(softmax), softmax.scores),
        Middle::Values(at) => (None, at),
    };
    let given = softmax.iter().flat_map(|s| [Some(s.top), s.sum]).flatten();
    let given: Vec<_> = flash.tiles.iter().copied().chain(given).map(|at| at.0).collect();
    let rows = this.roots[1..].iter().map(|root| (root.node, root.tuple));
    let rows: Vec<At> =
        rows.filter(|at| flash.beside.iter().all(|beside| beside.node != at.0)).collect();
    let beside = flash.beside.iter().map(|beside| beside.value);
    let needed = rows.iter().copied().chain(softmax.map(|s| s.scale)).chain([middle]).chain(beside);
    let needed: Vec<At> = needed.collect();
    let mut found = collect_roots(graph, partition, group, &needed, &given, &[]);
    for &operand in &flash.operands {
        found.load(graph, operand);
    }
    let spec = &flash.spec;
    let kind = if softmax.is_some() { "flash_softmax" } else { "flash" };
    let name = format!("{kind}{by}_{}x{}x{}", spec.batches(), spec.rows, spec.columns);
    let mut l = Lowering::new(graph, partition, name);
    let written: Vec<_> = this.roots.iter().map(|root| (root.node, Access::Write)).collect();
    l.declare(found, &written);
    (l, softmax, rows)
}

/// The kernel of flash attention.
pub(in crate::schedule) fn lower(nest: &mut Nest<'_>) -> Option<Vec<ScheduleItem>> {
    let Nest { graph, partition, number: group, group: this, caps, .. } = nest;
    let (graph, partition, group) = (*graph, &mut **partition, *group);
    let Kind::Flash(flash) = &this.kind else { return None };
    let by_threads = super::flash_caps(caps).is_some_and(|flash_caps| !flash_caps.library);
    if !by_threads || warps::Blocks::of(flash, caps).is_some() {
        return None;
    }
    let (mut l, softmax, rows) = begin((graph, partition), (group, this), flash, "");
    for &axis in flash.batch.iter().chain([&flash.row]) {
        l.open(axis, LoopKind::Parallel);
    }
    let (own, spec) = (start(&mut l, flash), &flash.spec);
    let step = spec.block[1];
    let whole = l.b.index((spec.columns / step) as i64);
    if spec.columns >= step {
        let turn = l.b.open_loop(LoopKind::Serial, 20, whole);
        let by = l.b.index(step as i64);
        let first = l.b.binary(BinaryOp::Mul, turn, by);
        columns(&mut l, flash, &own, (first, step));
        l.b.close();
    }
    if !spec.columns.is_multiple_of(step) {
        let first = l.b.index((spec.columns / step * step) as i64);
        columns(&mut l, flash, &own, (first, spec.columns % step));
    }
    finish(&mut l, flash, &own, softmax, &rows);
    for &axis in flash.batch.iter().chain([&flash.row]).collect::<Vec<_>>().into_iter().rev() {
        l.close(axis);
    }
    Some(vec![ScheduleItem::Kernel(l.finish())])
}

/// An array of a thread.
fn array(l: &mut Lowering<'_>, flash: &FlashAttention, len: usize) -> Value {
    l.b.alloc(Space::Register, Type::scalar(flash.spec.acc), len as u32)
}

/// An element of an operand as an accumulator.
pub(super) fn element(l: &mut Lowering<'_>, flash: &FlashAttention, operand: usize) -> Value {
    let address: Index = flash.addresses[operand].clone();
    let index = l.index(&address);
    let buffer = l.param(flash.operands[operand]);
    let value = l.b.load(buffer, index);
    l.b.cast(flash.spec.acc, value)
}

/// Opens loops over counters and gives the position in row-major order.
pub(super) fn open_all(l: &mut Lowering<'_>, axes: &[AtomId]) -> Value {
    let mut position = l.b.index(0);
    for &axis in axes {
        l.open(axis, LoopKind::Serial);
        let extent = l.b.index(l.indices.extent(axis) as i64);
        let scaled = l.b.binary(BinaryOp::Mul, position, extent);
        position = l.b.binary(BinaryOp::Add, scaled, l.counters[&axis]);
    }
    position
}

pub(super) fn close_all(l: &mut Lowering<'_>, axes: &[AtomId]) {
    axes.iter().rev().for_each(|&axis| l.close(axis));
}

/// Loads what lies along the row; sums and states start.
fn start(l: &mut Lowering<'_>, flash: &FlashAttention) -> Own {
    let spec = &flash.spec;
    let mut operands = Vec::new();
    for (i, tile) in spec.tiles.iter().enumerate() {
        let own = array(l, flash, tile.a.width());
        let place = open_all(l, &flash.inner[i]);
        let value = element(l, flash, 2 * i);
        l.b.store(own, place, value);
        close_all(l, &flash.inner[i]);
        operands.push(own);
    }
    let sums = array(l, flash, spec.sums[0].b.width());
    let place = open_all(l, &flash.width);
    let zero = l.b.constant(Scalar::from_f64(spec.acc, 0.0));
    l.b.store(sums, place, zero);
    close_all(l, &flash.width);
    let mut states = Vec::new();
    for &first in &spec.state {
        let state = array(l, flash, 1);
        let (zero, first) = (l.b.index(0), l.b.constant(first));
        l.b.store(state, zero, first);
        states.push(state);
    }
    Own { operands, sums, states }
}

/// Some columns, from products to sums.
fn columns(l: &mut Lowering<'_>, flash: &FlashAttention, own: &Own, (first, len): (Value, usize)) {
    let spec = &flash.spec;
    let zero = l.b.index(0);
    let n = l.b.index(len as i64);
    let tiles: Vec<Value> = spec.tiles.iter().map(|_| array(l, flash, len)).collect();
    // Products.
    let column = l.open_from(flash.column, LoopKind::Serial, n, first);
    for (i, &tile) in tiles.iter().enumerate() {
        let sum = l.accumulator(BinaryOp::Add, spec.acc);
        let place = open_all(l, &flash.inner[i]);
        let a = l.b.load(own.operands[i], place);
        let b = element(l, flash, 2 * i + 1);
        let product = l.b.binary(BinaryOp::Mul, a, b);
        l.accumulate(BinaryOp::Add, sum, product);
        close_all(l, &flash.inner[i]);
        let sum = l.b.load(sum, zero);
        l.b.store(tile, column, sum);
    }
    l.close(flash.column);
    // What becomes of them.
    match &flash.middle {
        Middle::Softmax(softmax) => weigh(l, flash, own, softmax, (first, n, tiles[0])),
        Middle::Values(at) => {
            let column = l.open_from(flash.column, LoopKind::Serial, n, first);
            give_tiles(l, flash, &tiles, column);
            let value = l.value(at.0, at.1, None);
            l.b.store(tiles[0], column, value);
            l.close(flash.column);
        }
    }
    // Their products with the last operand.
    let column = l.open_from(flash.column, LoopKind::Serial, n, first);
    let weight = l.b.load(tiles[0], column);
    let place = open_all(l, &flash.width);
    let value = element(l, flash, 2 * spec.tiles.len());
    let product = l.b.binary(BinaryOp::Mul, weight, value);
    let before = l.b.load(own.sums, place);
    let after = l.b.binary(BinaryOp::Add, before, product);
    l.b.store(own.sums, place, after);
    close_all(l, &flash.width);
    l.close(flash.column);
}

fn give_tiles(l: &mut Lowering<'_>, flash: &FlashAttention, tiles: &[Value], column: Value) {
    for (&(node, tuple), &tile) in flash.tiles.iter().zip(tiles) {
        let product = l.b.load(tile, column);
        l.remember(node, tuple, product);
    }
}

/// Makes weights of products, under the maximum so far.
fn weigh(
    l: &mut Lowering<'_>,
    flash: &FlashAttention,
    own: &Own,
    softmax: &Softmax,
    (first, n, tile): (Value, Value, Value),
) {
    let (acc, zero) = (flash.spec.acc, l.b.index(0));
    let top = l.accumulator(BinaryOp::Max, acc);
    let column = l.open_from(flash.column, LoopKind::Serial, n, first);
    give_tiles(l, flash, &[tile], column);
    let score = l.value(softmax.scores.0, softmax.scores.1, None);
    l.b.store(tile, column, score);
    l.accumulate(BinaryOp::Max, top, score);
    l.close(flash.column);
    let (old, new) = (l.b.load(own.states[0], zero), l.b.load(top, zero));
    let new = l.b.binary(BinaryOp::Max, old, new);
    l.b.store(own.states[0], zero, new);
    let (shift, factor) = rescaled(l, acc, [old, new]);
    let total = l.accumulator(BinaryOp::Add, acc);
    let column = l.open_from(flash.column, LoopKind::Serial, n, first);
    let score = l.b.load(tile, column);
    let e = exponential(l, score, shift);
    l.b.store(tile, column, e);
    l.accumulate(BinaryOp::Add, total, e);
    l.close(flash.column);
    let before = l.b.load(own.states[1], zero);
    let before = l.b.binary(BinaryOp::Mul, before, factor);
    let new = l.b.load(total, zero);
    let sum = l.b.binary(BinaryOp::Add, before, new);
    l.b.store(own.states[1], zero, sum);
    let place = open_all(l, &flash.width);
    let before = l.b.load(own.sums, place);
    let after = l.b.binary(BinaryOp::Mul, before, factor);
    l.b.store(own.sums, place, after);
    close_all(l, &flash.width);
}

/// Stores the results of a row.
fn finish(
    l: &mut Lowering<'_>,
    flash: &FlashAttention,
    own: &Own,
    softmax: Option<Softmax>,
    rows: &[At],
) {
    let zero = l.b.index(0);
    let given = softmax.iter().flat_map(|s| [Some(s.top), s.sum]).flatten();
    for ((node, tuple), &state) in given.zip(&own.states) {
        let value = l.b.load(state, zero);
        l.remember(node, tuple, value);
    }
    for &(node, tuple) in rows {
        l.store_root(node, tuple);
    }
    let scale = softmax.map(|s| (l.value(s.scale.0, s.scale.1, None), s.divides));
    let place = open_all(l, &flash.width);
    let mut value = l.b.load(own.sums, place);
    if let Some((scale, divides)) = scale {
        let op = if divides { BinaryOp::Div } else { BinaryOp::Mul };
        value = l.b.binary(op, value, scale);
    }
    l.store_value(flash.node, flash.tuple, value);
    close_all(l, &flash.width);
}
