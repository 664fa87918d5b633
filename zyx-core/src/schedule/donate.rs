//! Results in the memory of inputs that nobody needs any more.
//!
//! An input that dies with a plan gives its memory to a result of the last launch: to one whose
//! kernel, in all of its runs, reads it only where it writes the result, once ([`in_place`]), or, if the last launch does not
//! touch it, to any. No launch comes after the last, so one that is refused leaves every input as
//! it was, and what was to be computed can be asked for again.
//!
//! Passes may refuse a kernel that reads what it writes. Where they would then add up its floats in another order, the
//! input keeps its memory: results do not depend on who holds what.

use super::epilogue::of_whole_result;
use super::item::{ScheduleItem, storage};
use crate::graph::{Graph, Node, NodeId};
use crate::hal::{Call, Caps};
use crate::ir::inplace::in_place;
use crate::ir::{Access, Kernel};
use crate::tune::SumOrder;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// A result that has the memory of the leaf in this slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Donation {
    pub(super) result: NodeId,
    pub(super) slot: u32,
}

/// The leaves whose memory a result of these items, the last of a plan, could have.
pub(super) fn candidates(graph: &Graph, last: &[ScheduleItem], caps: &Caps) -> Vec<u32> {
    let ends = Ends::of(graph, last);
    let (mut slots, mut sizes) = (FxHashSet::default(), FxHashSet::default());
    for &(result, number) in &ends.results {
        let taken = |leaf: &NodeId| replaced(&last[number], *leaf, result, caps).is_some();
        let read = ends.leaves_of(graph, &last[number]);
        slots.extend(read.filter(taken).filter_map(|leaf| slot(graph, leaf)));
        if sizes.insert(bytes(graph, result)) {
            slots.extend(ends.idle.get(&bytes(graph, result)).into_iter().flatten());
        }
    }
    let mut slots: Vec<u32> = slots.into_iter().collect();
    slots.sort_unstable();
    slots
}

/// Gives results of these items the memory of dying leaves, each at most one.
pub(super) fn donate(
    graph: &Graph,
    last: &mut [ScheduleItem],
    dying: &[u32],
    caps: &Caps,
) -> Vec<Donation> {
    let ends = Ends::of(graph, last);
    let dying: FxHashSet<u32> = dying.iter().copied().collect();
    let dies = |leaf: NodeId| slot(graph, leaf).filter(|slot| dying.contains(slot));
    let mut donations = Vec::new();
    let mut rest = Vec::new();
    for &(result, number) in &ends.results {
        let mut leaves = ends.leaves_of(graph, &last[number]);
        let found = leaves.find_map(|leaf| {
            dies(leaf).and_then(|slot| Some((slot, replaced(&last[number], leaf, result, caps)?)))
        });
        let Some((slot, item)) = found else {
            rest.push(result);
            continue;
        };
        last[number] = item;
        donations.push(Donation { result, slot });
    }
    // Those of each size that are left.
    let mut left: FxHashMap<usize, std::slice::Iter<'_, u32>> = FxHashMap::default();
    for result in rest {
        let size = bytes(graph, result);
        let all = || ends.idle.get(&size).map_or(&[][..], Vec::as_slice).iter();
        let slot = left.entry(size).or_insert_with(all).find(|slot| dying.contains(slot));
        donations.extend(slot.map(|&slot| Donation { result, slot }));
    }
    donations
}

/// What a plan begins and ends with.
struct Ends {
    /// The outputs that a last item writes, with its number, in the order of nodes.
    results: Vec<(NodeId, usize)>,
    /// Leaves that one of the last items touches, with its number.
    touched: FxHashMap<NodeId, usize>,
    /// Leaves that none of them touches, by their bytes.
    idle: FxHashMap<usize, Vec<u32>>,
}

impl Ends {
    fn of(graph: &Graph, last: &[ScheduleItem]) -> Ends {
        let outputs: FxHashSet<NodeId> = graph.outputs.iter().map(|&x| storage(graph, x)).collect();
        let (mut results, mut touched) = (Vec::new(), FxHashMap::default());
        // Nodes that several items touch, and outputs: they stay what they are.
        let mut shared: FxHashSet<NodeId> = outputs.clone();
        for (number, item) in last.iter().enumerate() {
            for (node, access) in item.accesses() {
                if slot(graph, node).is_some() {
                    if touched.insert(node, number).is_some() {
                        shared.insert(node);
                    }
                } else if access == Access::Write && outputs.contains(&node) {
                    results.push((node, number));
                }
            }
        }
        let mut idle: FxHashMap<usize, Vec<u32>> = FxHashMap::default();
        for leaf in graph.ids() {
            let Some(slot) = slot(graph, leaf) else { continue };
            if !touched.contains_key(&leaf) && !outputs.contains(&leaf) {
                idle.entry(bytes(graph, leaf)).or_default().push(slot);
            }
        }
        idle.remove(&0);
        touched.retain(|leaf, _| !shared.contains(leaf));
        results.sort_unstable();
        Ends { results, touched, idle }
    }

    /// The leaves that an item touches and no other of the last items.
    fn leaves_of(&self, graph: &Graph, item: &ScheduleItem) -> std::vec::IntoIter<NodeId> {
        let nodes = item.accesses().into_iter().map(|access| access.0);
        let own = |node: &NodeId| slot(graph, *node).is_some() && self.touched.contains_key(node);
        nodes.filter(own).collect::<Vec<_>>().into_iter()
    }
}

fn slot(graph: &Graph, id: NodeId) -> Option<u32> {
    match graph.node(id) {
        Node::Leaf { slot } => Some(slot),
        _ => None,
    }
}

fn bytes(graph: &Graph, id: NodeId) -> usize {
    graph.shape(id).numel() * graph.dtype(id).size()
}

/// The item with `result` in the place of `leaf`, if it computes the same.
fn replaced(
    item: &ScheduleItem,
    leaf: NodeId,
    result: NodeId,
    caps: &Caps,
) -> Option<ScheduleItem> {
    match item {
        ScheduleItem::Kernel(lowered) if lowered.kernel.has_extents() => None,
        ScheduleItem::Kernel(lowered) => {
            let [given, written] = positions(&lowered.params, [leaf, result])?;
            let kernel = merged(&lowered.kernel, &lowered.kernel, [given, written], caps)?;
            let mut lowered = lowered.clone();
            lowered.kernel = Arc::new(kernel);
            lowered.params.remove(given);
            Some(ScheduleItem::Kernel(lowered))
        }
        ScheduleItem::Call { call, buffers, accesses, vars, starts } => {
            let Call::Contract { spec, prologue, epilogue: Some(kernel) } = &**call else {
                return None;
            };
            let [given, written] = positions(buffers, [leaf, result])?;
            // The operands of the contraction, and what its prologue reads, are none of the kernel's
            // arguments, whose first is the tile.
            let slot = |at: usize| (at + kernel.params().len()).checked_sub(buffers.len());
            let (from, to) = (slot(given)?, slot(written)?);
            if from == 0 || to == 0 {
                return None;
            }
            let runs = of_whole_result(kernel, spec);
            let epilogue = Some(Arc::new(merged(kernel, &runs, [from, to], caps)?));
            let (mut buffers, mut accesses) = (buffers.clone(), accesses.clone());
            accesses[written] = Access::ReadWrite;
            accesses.remove(given);
            buffers.remove(given);
            let (spec, prologue) = (spec.clone(), prologue.clone());
            let call = Box::new(Call::Contract { spec, prologue, epilogue });
            let (vars, starts) = (vars.clone(), starts.clone());
            Some(ScheduleItem::Call { call, buffers, accesses, vars, starts })
        }
    }
}

fn merged(
    kernel: &Kernel,
    runs: &Kernel,
    [given, written]: [usize; 2],
    caps: &Caps,
) -> Option<Kernel> {
    let merged = in_place(kernel, runs, u16::try_from(given).ok()?, u16::try_from(written).ok()?)?;
    let adds_alike = SumOrder::of(&merged, caps) == SumOrder::of(kernel, caps);
    adds_alike.then_some(merged)
}

/// Where each of two nodes stands, if each stands there once.
fn positions(nodes: &[NodeId], wanted: [NodeId; 2]) -> Option<[usize; 2]> {
    let once = |x: NodeId| {
        let mut places = nodes.iter().enumerate().filter(|place| *place.1 == x).map(|p| p.0);
        places.next().filter(|_| places.next().is_none())
    };
    Some([once(wanted[0])?, once(wanted[1])?])
}
