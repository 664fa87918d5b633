//! Scatters: a kernel that copies the base, and one that updates it.
//!
//! In the update all axes but the scattered one run in parallel, because different positions of
//! them touch different elements; along the scattered axis updates are done in order, so results
//! do not depend on the device. Updates whose order makes no difference are atomic and all in parallel
//! on devices of many threads.

use super::Nest;
use crate::dtype::DType;
use crate::graph::{Node, UpdateOrder};
use crate::hal::Caps;
use crate::ir::{Access, LoopKind};
use crate::ops::BinaryOp;
use crate::schedule::item::ScheduleItem;
use crate::schedule::loop_body::collect_roots;
use crate::schedule::lower::{Lowering, name};

/// Whether a device makes the updates of a scatter in any order: they are of integers, so all orders
/// give the same result.
pub(in crate::schedule) fn is_unordered(caps: &Caps, op: BinaryOp, dtype: DType) -> bool {
    dtype.is_int() && op != BinaryOp::Sub && !caps.has_few_threads() && caps.has_atomic(op, dtype)
}

pub(super) fn lower(nest: &mut Nest<'_>) -> Option<Vec<ScheduleItem>> {
    let Nest { graph, partition, number: group, group: this, caps, .. } = nest;
    let (graph, partition, group, caps) = (*graph, &mut **partition, *group, *caps);
    let root = this.roots[0].clone();
    let Node::Scatter { axis, op, order, base, index, x } = graph.node(root.node) else {
        return None;
    };
    if order == UpdateOrder::Sorted {
        return None;
    }
    let label = name(graph, this);

    let found = collect_roots(graph, partition, group, &[(base, root.tuple)], &[], &this.axes);
    let mut init = Lowering::new(graph, partition, format!("{label}_init"));
    init.declare(found, &[(root.node, Access::Write)]);
    this.axes.iter().for_each(|&axis| init.open(axis, LoopKind::Parallel));
    let value = init.value(base, root.tuple, None);
    let flat = init.indices.flat(graph, root.node, root.tuple);
    let place = init.index(&flat);
    let buffer = init.param(root.node);
    init.b.store(buffer, place, value);
    this.axes.iter().rev().for_each(|&axis| init.close(axis));
    let init = init.finish();

    let (axes, tuple) = partition.indices.axes(&graph.shape(x).clone());
    let scattered = partition.indices.get(tuple)[axis as usize].clone();
    let scattered = scattered.terms.first().map(|term| term.0);
    let any = order == UpdateOrder::Any;
    let unordered = op.filter(|&op| any || is_unordered(caps, op, graph.dtype(root.node)));
    let serial = scattered.filter(|_| unordered.is_none());
    let found = collect_roots(graph, partition, group, &[(x, tuple), (index, tuple)], &[], &axes);
    let mut update = Lowering::new(graph, partition, format!("{label}_update"));
    update.declare(found, &[(root.node, Access::ReadWrite)]);
    let parallel: Vec<_> = axes.iter().copied().filter(|&a| Some(a) != serial).collect();
    parallel.iter().for_each(|&axis| update.open(axis, LoopKind::Parallel));
    serial.iter().for_each(|&axis| update.open(axis, LoopKind::Serial));
    let picked = update.value(index, tuple, None);
    let element = update.value(x, tuple, None);
    let extent = graph.shape(root.node)[axis as usize];
    let inside = update.in_range(picked, extent);
    let atom = update.indices.algebra.opaque(extent);
    update.counters.insert(atom, picked);
    let mut place = update.indices.get(tuple).to_vec();
    place[axis as usize] = update.indices.algebra.of(atom);
    let flat = update.indices.algebra.flatten(&place, graph.shape(root.node));
    let place = update.index(&flat);
    let place = update.b.guard(place, inside);
    let buffer = update.param(root.node);
    match (op, unordered) {
        (None, _) => update.b.store(buffer, place, element),
        (_, Some(op)) => update.b.atomic(op, buffer, place, element),
        (Some(op), None) => {
            let old = update.b.load(buffer, place);
            debug_assert!(op.is_associative() || op == BinaryOp::Sub);
            let value = update.b.binary(op, old, element);
            update.b.store(buffer, place, value)
        }
    };
    serial.iter().for_each(|&axis| update.close(axis));
    parallel.iter().rev().for_each(|&axis| update.close(axis));
    Some([init, update.finish()].map(ScheduleItem::Kernel).into())
}

/// The kernel of a scatter by ends: a place combines the elements between the end of the one before
/// and its own.
pub(super) fn by_ends(nest: &mut Nest<'_>) -> Option<Vec<ScheduleItem>> {
    let Nest { graph, partition, number: group, group: this, .. } = nest;
    let (graph, partition, group) = (*graph, &mut **partition, *group);
    let root = this.roots[0].clone();
    let Node::Scatter { axis, op: Some(op), base, index: ends, x, order: UpdateOrder::Sorted } =
        graph.node(root.node)
    else {
        return None;
    };
    let axis = axis as usize;
    let n = graph.shape(x)[axis];
    let mut along = |extent: usize| {
        let atom = partition.indices.algebra.opaque(extent);
        let mut tuple = partition.indices.get(root.tuple).to_vec();
        tuple[axis] = partition.indices.algebra.of(atom);
        (atom, partition.indices.intern(tuple))
    };
    let (before, earlier) = along(graph.shape(ends)[axis]);
    let (element, updates) = along(n);
    let roots = [(base, root.tuple), (ends, root.tuple), (ends, earlier), (x, updates)];
    let axes: Vec<_> = this.axes.iter().copied().chain([before, element]).collect();
    let found = collect_roots(graph, partition, group, &roots, &[], &axes);
    let place = partition.indices.get(root.tuple)[axis].clone();
    let mut l = Lowering::new(graph, partition, format!("{}_by_ends", name(graph, this)));
    l.declare(found, &[(root.node, Access::Write)]);
    this.axes.iter().for_each(|&axis| l.open(axis, LoopKind::Parallel));
    let (none, one, most) = (l.b.index(0), l.b.index(1), l.b.index(n as i64));
    let place = l.index(&place);
    let first = l.b.binary(BinaryOp::Sub, place, one);
    l.counters.insert(before, first);
    let behind = l.b.binary(BinaryOp::Le, none, first);
    let [start, end] = [(earlier, Some(behind)), (root.tuple, None)].map(|(tuple, guard)| {
        let end = l.value(ends, tuple, guard);
        let end = l.b.cast(DType::I64, end);
        let end = l.b.binary(BinaryOp::Max, end, none);
        l.b.binary(BinaryOp::Min, end, most)
    });
    // Ends that are computed, not loaded, have a value for no place, too.
    let start = l.b.select(behind, start, none);
    let len = l.b.binary(BinaryOp::Sub, end, start);
    let len = l.b.binary(BinaryOp::Max, len, none);
    let acc = l.accumulator(op, graph.dtype(root.node));
    let initial = l.value(base, root.tuple, None);
    l.b.store(acc, none, initial);
    l.open_from(element, LoopKind::Serial, len, start);
    let at = l.counters[&element];
    let inside = l.in_range(at, n);
    let value = l.value(x, updates, Some(inside));
    l.accumulate(op, acc, value);
    l.close(element);
    let value = l.b.load(acc, none);
    l.store_value(root.node, root.tuple, value);
    this.axes.iter().rev().for_each(|&axis| l.close(axis));
    Some(vec![ScheduleItem::Kernel(l.finish())])
}
