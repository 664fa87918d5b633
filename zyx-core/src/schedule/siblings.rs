//! Long reductions of the same elements, whose loops read them once for all.
//!
//! On devices of many threads a reduction joins the group of one over the same axes that reads some of
//! the same elements, if no path leads from one to the other. [`loop_body`](super::loop_body) gives both
//! the same counters, so that they are lowered to one nest of loops.

use super::cost::reduced_count;
use super::partition::{Partitioner, Root, Use};
use crate::graph::{Graph, Node, NodeId};
use crate::shape::Shape;
use smallvec::SmallVec;

/// Shortest reduction, and piece of one, that shares its loops with others. How many share them, how many
/// groups are looked at for one that takes another, and how many operands of each.
const LONG: usize = 1 << 14;
const LONG_PIECE: usize = 1 << 10;
const MOST_JOINT: usize = 8;
const SIBLINGS: usize = 8;
const MOST_OPERANDS: usize = 64;

impl Partitioner<'_> {
    /// Makes a long reduction a root of a group that reduces the same elements, if there is one.
    pub(super) fn join_sibling(&mut self, id: NodeId, instances: &[Use]) -> Option<u32> {
        if self.caps.has_few_threads() {
            return None;
        }
        let long = Long::of(self.graph, id)?;
        let found = self.long.iter().rev().take(SIBLINGS).copied().find(|&group| {
            let host = &self.groups[group as usize];
            let Some(other) = Long::of(self.graph, host.roots[0].node) else { return false };
            let whole = Use { group, tuple: host.roots[0].tuple, loops: 0, guarded: false };
            self.graph.shape(id).same(self.graph.shape(host.roots[0].node))
                && host.roots.len() < MOST_JOINT
                && instances.iter().all(|i| i.group != group)
                && other.axes == long.axes
                && other.extents == long.extents
                && other.operands.iter().any(|x| long.operands.contains(x))
                && self.has_room(id, group, false)
                && self.others_are_later(id, &whole, instances, host.last_root)
        })?;
        let group = &mut self.groups[found as usize];
        let tuple = group.roots[0].tuple;
        group.roots.push(Root { node: id, tuple });
        group.first_root = group.first_root.min(id);
        group.nodes += 1;
        group.reduces += matches!(self.graph.node(id), Node::Reduce { .. }) as usize;
        let axes = group.axes.clone();
        self.loops.push(axes);
        let loops = self.loops.len() as u32 - 1;
        self.total += self.costs.computed(id, self.graph.shape(id).numel());
        self.propagate(id, Use { group: found, tuple, loops, guarded: false });
        Some(found)
    }
}

/// Shortest reduction that shares its loops with others of the same elements: what is made of a
/// reduction beside it may want the elements again, which a group of threads keeps if they are few.
pub(super) fn long(graph: &Graph, root: NodeId) -> usize {
    if matches!(graph.node(root), Node::Copy { .. }) { LONG_PIECE } else { LONG }
}

/// A reduction, or a piece of one, that is worth sharing the reads of its elements.
pub(super) struct Long {
    axes: u16,
    extents: Shape,
    /// What is computed for each element, and what of that is loaded.
    operands: SmallVec<[NodeId; 16]>,
}

impl Long {
    pub(super) fn of(graph: &Graph, id: NodeId) -> Option<Long> {
        let reduction = match graph.node(id) {
            Node::Copy { x } => x,
            _ => id,
        };
        let Node::Reduce { axes, x, .. } = graph.node(reduction) else { return None };
        if reduced_count(graph, reduction) < long(graph, id) {
            return None;
        }
        let extents = graph.shape(x).clone();
        let mut operands = SmallVec::new();
        let mut rest = SmallVec::<[NodeId; 16]>::from_slice(&[x]);
        while let Some(x) = rest.pop() {
            // What is expanded is little beside the elements.
            let node = graph.node(x);
            let little = matches!(node, Node::Expand { .. } | Node::Reduce { .. })
                || graph.shape(x).numel() < extents.numel();
            if little || operands.contains(&x) || operands.len() >= MOST_OPERANDS {
                continue;
            }
            operands.push(x);
            rest.extend(node.sources());
        }
        Some(Long { axes, extents, operands })
    }
}
