//! The kernels of flash attention: what is done to each tile, and to the sums at the end.
//!
//! In the forward pass a row keeps its maximum so far and the sum of its exponentials. The update
//! turns a tile of products into scores, raises the maximum, leaves the exponentials in the other
//! tile, and scales what was summed under the old maximum (Milakov and Gimelshein 2018). A row that
//! has seen nothing but minus infinity subtracts zero, so that its exponentials are zeros, and not
//! NaN, until it sees a number. The finishing kernel multiplies with what the weights are
//! multiplied with, and stores what others need of a row.
//!
//! In the backward pass the update computes each element from those of the tiles and from values of
//! its row and column, and the finishing kernel stores the sums.

use super::{At, FlashAttention, Middle, Softmax};
use crate::dtype::DType;
use crate::graph::Graph;
use crate::hal::FLASH_VARS;
use crate::ir::{Access, LoopKind, Value};
use crate::ops::{BinaryOp, UnaryOp};
use crate::scalar::Scalar;
use crate::schedule::loop_body::collect_roots;
use crate::schedule::lower::{Lowered, Lowering};
use crate::schedule::partition::{Group, Partition};

/// What both kernels start with.
struct Block {
    tiles: Vec<Value>,
    sums: Value,
    states: Vec<Value>,
    vars: [Value; FLASH_VARS],
    /// Elements between rows of a tile, and of the sums.
    columns: Value,
    width: Value,
}

/// The update and the finishing kernel of flash attention.
pub(crate) fn lower(
    graph: &Graph,
    partition: &mut Partition,
    group: usize,
    this: &Group,
    flash: &FlashAttention,
) -> [Lowered; 2] {
    let update = match flash.middle {
        Middle::Softmax(softmax) => update_softmax(graph, partition, group, flash, &softmax),
        Middle::Values(value) => update_values(graph, partition, group, flash, value),
    };
    [update, finish(graph, partition, group, this, flash)]
}

/// Declares the arguments that both kernels share.
fn block(l: &mut Lowering<'_>, flash: &FlashAttention) -> Block {
    let spec = &flash.spec;
    let [rows, columns] = spec.block.map(|n| n as u64);
    let width = spec.sums[0].b.width() as u64;
    let mut buffer = |len: u64| l.b.param(spec.acc, len, Access::ReadWrite);
    let tiles = (0..spec.tiles.len() + spec.spare).map(|_| buffer(rows * columns)).collect();
    let sums = buffer(rows * width);
    let states = spec.state.iter().map(|_| buffer(rows)).collect();
    let limits =
        [spec.batches() as i64, spec.rows as i64, spec.columns as i64, rows as i64, columns as i64];
    let vars = limits.map(|limit| l.b.var(DType::I64, 0, limit));
    let (columns, width) = (l.b.index(columns as i64), l.b.index(width as i64));
    Block { tiles, sums, states, vars, columns, width }
}

/// Counters of the batch, and the loop over rows. Gives the row's position in the block.
fn open_rows(l: &mut Lowering<'_>, flash: &FlashAttention, block: &Block) -> Value {
    l.count_digits(&flash.batch, block.vars[0]);
    l.open_from(flash.row, LoopKind::Parallel, block.vars[3], block.vars[1])
}

/// The loop over columns. Gives the element's place in a tile.
fn open_columns(
    l: &mut Lowering<'_>,
    flash: &FlashAttention,
    block: &Block,
    kind: LoopKind,
    row: Value,
) -> Value {
    let column = l.open_from(flash.column, kind, block.vars[4], block.vars[2]);
    let line = l.b.binary(BinaryOp::Mul, row, block.columns);
    l.b.binary(BinaryOp::Add, line, column)
}

/// Makes the products at a place of the tiles known.
fn give_tiles(l: &mut Lowering<'_>, flash: &FlashAttention, block: &Block, place: Value) {
    for (&(node, tuple), &tile) in flash.tiles.iter().zip(&block.tiles) {
        let product = l.b.load(tile, place);
        l.remember(node, tuple, product);
    }
}

fn tile_nodes(flash: &FlashAttention) -> Vec<crate::graph::NodeId> {
    flash.tiles.iter().map(|at| at.0).collect()
}

fn update_values(
    graph: &Graph,
    partition: &mut Partition,
    group: usize,
    flash: &FlashAttention,
    (node, tuple): At,
) -> Lowered {
    let nodes = tile_nodes(flash);
    let found = collect_roots(graph, partition, group, &[(node, tuple)], &nodes, &[]);
    let mut l = Lowering::new(graph, partition, "values_of_tiles".to_owned());
    let block = block(&mut l, flash);
    l.declare(found, &[]);
    let row = open_rows(&mut l, flash, &block);
    let place = open_columns(&mut l, flash, &block, LoopKind::Parallel, row);
    give_tiles(&mut l, flash, &block, place);
    let value = l.value(node, tuple, None);
    l.b.store(block.tiles[0], place, value);
    l.close(flash.column);
    l.close(flash.row);
    l.finish()
}

fn update_softmax(
    graph: &Graph,
    partition: &mut Partition,
    group: usize,
    flash: &FlashAttention,
    softmax: &Softmax,
) -> Lowered {
    let (scores, nodes) = (softmax.scores, tile_nodes(flash));
    let found = collect_roots(graph, partition, group, &[scores], &nodes, &[]);
    let mut l = Lowering::new(graph, partition, "online_softmax".to_owned());
    let block = block(&mut l, flash);
    l.declare(found, &[]);
    let acc = flash.spec.acc;
    let row = open_rows(&mut l, flash, &block);
    // Scores and their maximum.
    let in_place = scores == flash.tiles[0];
    let top = l.accumulator(BinaryOp::Max, acc);
    let place = open_columns(&mut l, flash, &block, LoopKind::Serial, row);
    give_tiles(&mut l, flash, &block, place);
    let score = l.value(scores.0, scores.1, None);
    if !in_place {
        l.b.store(block.tiles[1], place, score);
    }
    l.accumulate(BinaryOp::Max, top, score);
    l.close(flash.column);
    // The maximum so far, and what it does to what was summed before.
    let zero = l.b.index(0);
    let (old, new) = (l.b.load(block.states[0], row), l.b.load(top, zero));
    let new = l.b.binary(BinaryOp::Max, old, new);
    l.b.store(block.states[0], row, new);
    let (shift, factor) = rescaled(&mut l, acc, [old, new]);
    // Exponentials and their sum.
    let (from, to) = if in_place { (0, 1) } else { (1, 0) };
    let total = l.accumulator(BinaryOp::Add, acc);
    let place = open_columns(&mut l, flash, &block, LoopKind::Serial, row);
    let score = l.b.load(block.tiles[from], place);
    let e = exponential(&mut l, score, shift);
    l.b.store(block.tiles[to], place, e);
    l.accumulate(BinaryOp::Add, total, e);
    l.close(flash.column);
    let before = l.b.load(block.states[1], row);
    let before = l.b.binary(BinaryOp::Mul, before, factor);
    let new = l.b.load(total, zero);
    let sum = l.b.binary(BinaryOp::Add, before, new);
    l.b.store(block.states[1], row, sum);
    // The sums under the new maximum.
    let line = l.b.binary(BinaryOp::Mul, row, block.width);
    let n = l.b.open_loop(LoopKind::Parallel, 1, block.width);
    let place = l.b.binary(BinaryOp::Add, line, n);
    let before = l.b.load(block.sums, place);
    let after = l.b.binary(BinaryOp::Mul, before, factor);
    l.b.store(block.sums, place, after);
    l.b.close();
    l.close(flash.row);
    l.finish()
}

/// `exp(x - shift)`.
pub(in crate::schedule) fn exponential(l: &mut Lowering<'_>, x: Value, shift: Value) -> Value {
    let difference = l.b.binary(BinaryOp::Sub, x, shift);
    l.b.unary(UnaryOp::Exp, difference)
}

/// What is subtracted from scores whose maximum so far is `new`, and what sums up to the maximum `old` are
/// multiplied with. Where nothing was seen yet, nothing is subtracted.
pub(super) fn rescaled(l: &mut Lowering<'_>, acc: DType, [old, new]: [Value; 2]) -> (Value, Value) {
    let bottom = l.b.constant(Scalar::from_f64(acc, f64::NEG_INFINITY));
    let nothing = l.b.constant(Scalar::from_f64(acc, 0.0));
    let unseen = l.b.binary(BinaryOp::Eq, new, bottom);
    let shift = l.b.select(unseen, nothing, new);
    (shift, exponential(l, old, shift))
}

fn finish(
    graph: &Graph,
    partition: &mut Partition,
    group: usize,
    this: &Group,
    flash: &FlashAttention,
) -> Lowered {
    let spec = &flash.spec;
    let softmax = match flash.middle {
        Middle::Softmax(softmax) => Some(softmax),
        Middle::Values(_) => None,
    };
    let given: Vec<At> = softmax.iter().flat_map(|s| [Some(s.top), s.sum]).flatten().collect();
    let nodes: Vec<_> = given.iter().map(|at| at.0).collect();
    // Values of rows that are asked for, and the factor.
    let rows: Vec<At> = this.roots[1..].iter().map(|root| (root.node, root.tuple)).collect();
    let needed: Vec<At> = rows.iter().copied().chain(softmax.map(|s| s.scale)).collect();
    let found = collect_roots(graph, partition, group, &needed, &nodes, &[]);
    let width = spec.sums[0].b.width();
    let kind = if softmax.is_some() { "softmax_product" } else { "product" };
    let mut l = Lowering::new(graph, partition, format!("{kind}_{width}"));
    let block = block(&mut l, flash);
    let written: Vec<_> = this.roots.iter().map(|root| (root.node, Access::Write)).collect();
    l.declare(found, &written);
    let row = open_rows(&mut l, flash, &block);
    for (&(node, tuple), &state) in given.iter().zip(&block.states) {
        let value = l.b.load(state, row);
        l.remember(node, tuple, value);
    }
    for &(node, tuple) in &rows {
        l.store_root(node, tuple);
    }
    let scale = softmax.map(|s| (l.value(s.scale.0, s.scale.1, None), s.divides));
    let mut place = l.b.binary(BinaryOp::Mul, row, block.width);
    for &axis in &flash.width {
        l.open(axis, LoopKind::Parallel);
    }
    let mut stride = width as i64;
    for &axis in &flash.width {
        stride /= l.indices.extent(axis) as i64;
        let (counter, by) = (l.counters[&axis], l.b.index(stride));
        let term = l.b.binary(BinaryOp::Mul, counter, by);
        place = l.b.binary(BinaryOp::Add, place, term);
    }
    let mut value = l.b.load(block.sums, place);
    if let Some((scale, divides)) = scale {
        let op = if divides { BinaryOp::Div } else { BinaryOp::Mul };
        value = l.b.binary(op, value, scale);
    }
    l.store_value(flash.node, flash.tuple, value);
    for &axis in flash.width.iter().rev() {
        l.close(axis);
    }
    l.close(flash.row);
    l.finish()
}
