//! Distribution: elements placed, block by block and in order, at the running positions of their
//! bins. One pass of a stable radix sort.
//!
//! Each block copies the first positions of its bins into counters of its own and then goes
//! through its elements once. Blocks run in parallel and write different places, so nothing is
//! atomic and the result does not depend on the device. Devices of many threads give each block to a
//! group of them, see [`block_radix_sort`](super::block_radix_sort).

use super::Nest;
use super::block_radix_sort::{self, Block, Sources};
use crate::dtype::DType;
use crate::graph::{Graph, Node, NodeId};
use crate::ir::{Access, LoopKind, Space, Type};
use crate::ops::BinaryOp;
use crate::schedule::item::ScheduleItem;
use crate::schedule::loop_body::collect_roots;
use crate::schedule::lower::{Lowering, name};
use crate::shape::Shape;

/// Each block by a group of threads.
pub(super) fn by_blocks(nest: &mut Nest<'_>) -> Option<Vec<ScheduleItem>> {
    let Node::RadixScatter { x, .. } = nest.graph.node(nest.group.roots[0].node) else {
        return None;
    };
    let block = Block::holding(nest.caps, nest.graph.shape(x)[1])?;
    lower(nest, Some(block))
}

/// Whole rows, each by a group of threads.
pub(super) fn rows(nest: &mut Nest<'_>) -> Option<Vec<ScheduleItem>> {
    let Nest { graph, partition, number: group, group: this, caps, .. } = nest;
    let (graph, partition, group) = (*graph, &mut **partition, *group);
    let root = this.roots[0].node;
    let Node::SortRows { first, bits, x } = graph.node(root) else { return None };
    let shape = graph.shape(x).clone();
    let (&n, outer) = shape.split_last()?;
    let block = Block::holding(caps, n).expect("invariant: longer rows are distributed");
    let count: usize = outer.iter().product();
    let (axes, tuple) = partition.indices.axes(&shape);
    let step = partition.indices.get(tuple)[outer.len()].terms.first()?.0;
    let rows: Vec<_> = axes.iter().copied().filter(|&axis| axis != step).collect();
    let found = collect_roots(graph, partition, group, &[(x, tuple)], &[], &axes);
    let mut l = Lowering::new(graph, partition, format!("sort_{count}x{n}"));
    l.declare(found, &[(root, Access::Write)]);
    let (groups, threads) = (l.b.index(count as i64), block.threads(&mut l.b));
    let row = l.b.open_loop(LoopKind::Group, 0, groups);
    if !rows.is_empty() {
        l.count_digits(&rows, row);
    }
    let out = l.param(root);
    let keys = block_radix_sort::Rows { x, tuple, step, length: n as i64, row, first, bits };
    block_radix_sort::emit_rows(&mut l, &keys, (block, threads), out);
    l.b.close();
    Some(vec![ScheduleItem::Kernel(l.finish())])
}

/// Each block by one thread.
pub(super) fn in_order(nest: &mut Nest<'_>) -> Option<Vec<ScheduleItem>> {
    lower(nest, None)
}

fn lower(nest: &mut Nest<'_>, ranked: Option<Block>) -> Option<Vec<ScheduleItem>> {
    let Nest { graph, partition, number: group, group: this, .. } = nest;
    let (graph, partition, group) = (*graph, &mut **partition, *group);
    let root = this.roots[0].node;
    let Node::RadixScatter { x, shift, starts } = graph.node(root) else { return None };
    let n_bins = graph.shape(starts)[1];
    let (length, total) = (graph.shape(x)[1] as i64, graph.shape(x).numel());
    // One shift for all: what may differ from key to key is not known of sorted ones.
    if ranked.is_some() && !is_uniform(graph, shift) {
        return None;
    }
    let (axes, tuple) = partition.indices.axes(&graph.shape(x).clone());
    let (bins, bin_tuple) = partition.indices.axes(&Shape::from([n_bins]));
    let place = partition.indices.get(tuple).to_vec();
    let counted = partition.indices.get(bin_tuple).to_vec();
    let first = partition.indices.intern(vec![place[0].clone(), counted[0].clone()]);
    let block = place[0].terms.first().map(|term| term.0);
    let step = axes.iter().copied().find(|&axis| Some(axis) != block);
    let all: Vec<_> = axes.iter().chain(&bins).copied().collect();
    let roots = [(x, tuple), (shift, tuple), (starts, first)];
    let found = collect_roots(graph, partition, group, &roots, &[], &all);
    let mut l = Lowering::new(graph, partition, name(graph, this));
    l.declare(found, &[(root, Access::Write)]);
    if let Some(ranked) = ranked {
        let (step, &[bin]) = (step?, &bins[..]) else { return None };
        let sources = Sources { x, shift, tuple, step, starts, first, bin, length, total };
        let (one, threads) = (l.b.index(1), ranked.threads(&mut l.b));
        match block {
            Some(axis) => l.open(axis, LoopKind::Group),
            None => {
                l.b.open_loop(LoopKind::Group, 0, one);
            }
        }
        let buffer = l.param(root);
        block_radix_sort::emit(&mut l, &sources, (ranked, threads), buffer);
        match block {
            Some(axis) => l.close(axis),
            None => l.b.close(),
        }
        return Some(vec![ScheduleItem::Kernel(l.finish())]);
    }
    block.iter().for_each(|&axis| l.open(axis, LoopKind::Parallel));
    let index = Type::scalar(DType::I64);
    let counters = l.b.alloc(Space::Register, index, n_bins as u32);
    bins.iter().for_each(|&axis| l.open(axis, LoopKind::Serial));
    let position = l.value(starts, first, None);
    let slot = l.index(&counted[0]);
    l.b.store(counters, slot, position);
    bins.iter().rev().for_each(|&axis| l.close(axis));

    step.iter().for_each(|&axis| l.open(axis, LoopKind::Serial));
    let element = l.value(x, tuple, None);
    let shift = l.value(shift, tuple, None);
    let shifted = l.b.binary(BinaryOp::Shr, element, shift);
    let byte = l.b.cast(DType::U8, shifted);
    let slot = l.b.cast(DType::I64, byte);
    let position = l.b.load(counters, slot);
    let one = l.b.index(1);
    let next = l.b.binary(BinaryOp::Add, position, one);
    l.b.store(counters, slot, next);
    let inside = l.in_range(position, total);
    let position = l.b.guard(position, inside);
    let buffer = l.param(root);
    l.b.store(buffer, position, element);
    step.iter().for_each(|&axis| l.close(axis));
    block.iter().for_each(|&axis| l.close(axis));
    Some(vec![ScheduleItem::Kernel(l.finish())])
}

/// Whether all elements are one number: a constant or an argument, however often it is repeated.
fn is_uniform(graph: &Graph, mut id: NodeId) -> bool {
    loop {
        id = match graph.node(id) {
            Node::Const { .. } | Node::Argument { .. } => return true,
            Node::Reshape { x } | Node::Expand { x } | Node::Shrink { x, .. } => x,
            Node::Permute { x, .. } | Node::Flip { x, .. } => x,
            _ => return false,
        };
    }
}
