//! Distribution: elements placed, block by block and in order, at the running positions of their
//! bins. One pass of a stable radix sort.
//!
//! Each block copies the first positions of its bins into counters of its own and then goes
//! through its elements once. Blocks run in parallel and write different places, so nothing is
//! atomic and the result does not depend on the device. Devices of many threads give each block to a
//! group of them, see [`ranks`](super::ranks).

use super::collect::collect_roots;
use super::lower::{Lowered, Lowering, name};
use super::partition::{Group, Partition};
use super::ranks::{self, Block, Sources};
use crate::dtype::DType;
use crate::graph::{Graph, Node, NodeId};
use crate::hal::Caps;
use crate::ir::{Access, LoopKind, Space, Type};
use crate::ops::BinaryOp;
use crate::shape::Shape;

pub(super) fn lower(
    graph: &Graph,
    partition: &mut Partition,
    group: usize,
    (this, caps): (&Group, &Caps),
) -> Vec<Lowered> {
    let root = this.roots[0].node;
    let Node::Distribute { x, shift, starts } = graph.node(root) else {
        unreachable!("invariant: the root is a distribution")
    };
    let n_bins = graph.shape(starts)[1];
    let (length, total) = (graph.shape(x)[1] as i64, graph.shape(x).numel());
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
    // One shift for all: what may differ from key to key is not known of sorted ones.
    let many = Block::of(caps).filter(|b| is_uniform(graph, shift) && length <= b.keys());

    let mut l = Lowering::new(graph, partition, group, name(graph, this));
    l.declare(found, &[(root, Access::Write)]);
    if let (Some(ranked), Some(step), &[bin]) = (many, step, &bins[..]) {
        let sources = Sources { x, shift, tuple, step, starts, first, bin, length, total };
        let (one, threads) = (l.b.index(1), ranked.threads(&mut l.b));
        match block {
            Some(axis) => l.open(axis, LoopKind::Group),
            None => {
                l.b.open_loop(LoopKind::Group, 0, one);
            }
        }
        let buffer = l.param(root);
        ranks::emit(&mut l, &sources, (ranked, threads), buffer);
        match block {
            Some(axis) => l.close(axis),
            None => l.b.close(),
        }
        return vec![l.finish()];
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
    vec![l.finish()]
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
