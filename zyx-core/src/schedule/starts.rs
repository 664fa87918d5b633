//! Where loads start in a value that is read in many places, step by step.
//!
//! A loop over a sequence slices it in one place after the other. Places are literals of index
//! expressions, so every step would have kernels of its own to compile. Of what is sliced so often
//! the place of a load becomes a scalar argument, whose range is the same for all steps: one kernel
//! serves them all.

use super::loop_body::LoadStart;
use crate::affine::{Algebra, Index};
use crate::graph::{Graph, Node, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};

/// Slices of a value from which on it counts as walked along.
const WALKED: usize = 8;
/// Elements that places are counted in, if they are multiples: loads stay as aligned as they were.
const STEPS: [i64; 4] = [64, 16, 4, 1];

/// Loads of a node that start in the same place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) node: NodeId,
    /// The place, in elements.
    pub(super) place: i64,
    /// The farthest element behind it that is loaded.
    reach: i64,
}

impl Start {
    /// The place as a kernel knows it: the range in which all loads from it stay within the buffer, or, where
    /// loads may leave the buffer, as guarded ones do, the place itself.
    pub(super) fn of_kernel(&self, graph: &Graph) -> LoadStart {
        let len = graph.shape(self.node).numel() as i64;
        let last = (len - 1).checked_sub(self.reach).filter(|&last| self.place <= last);
        let step = STEPS.into_iter().find(|step| self.place % step == 0);
        match (last, step) {
            (Some(last), Some(step)) => LoadStart::Argument { step, last: last / step },
            _ => LoadStart::Element(self.place),
        }
    }
}

/// Notes a load, if it starts elsewhere than at the first element; gives the number of its start.
pub(super) fn note(
    starts: &mut Vec<Start>,
    algebra: &Algebra,
    node: NodeId,
    flat: &Index,
) -> Option<usize> {
    let place = flat.constant;
    if place <= 0 {
        return None;
    }
    let (least, most) = algebra.range(&algebra.offset(flat, -place));
    let reach = if least < 0 { i64::MAX } else { most };
    let known = starts.iter().position(|start| (start.node, start.place) == (node, place));
    let number = known.unwrap_or_else(|| {
        starts.push(Start { node, place, reach });
        starts.len() - 1
    });
    starts[number].reach = starts[number].reach.max(reach);
    Some(number)
}

/// The value that a node is a movement of.
fn moved(graph: &Graph, mut id: NodeId) -> NodeId {
    while let Node::Reshape { x }
    | Node::Permute { x, .. }
    | Node::Expand { x }
    | Node::Shrink { x, .. }
    | Node::Flip { x, .. } = graph.node(id)
    {
        id = x;
    }
    id
}

/// The stored nodes behind values that are sliced in many places.
pub(super) fn walked(graph: &Graph, producer: &[Option<u32>]) -> FxHashSet<NodeId> {
    let mut slices: FxHashMap<NodeId, usize> = FxHashMap::default();
    for id in graph.ids() {
        if let Node::Shrink { x, .. } = graph.node(id) {
            *slices.entry(moved(graph, x)).or_default() += 1;
        }
    }
    let often = graph.ids().filter(|id| slices.get(id).is_some_and(|&n| n >= WALKED));
    let (mut rest, mut seen): (Vec<NodeId>, _) = (often.collect(), FxHashSet::default());
    let mut found = FxHashSet::default();
    while let Some(id) = rest.pop() {
        if !seen.insert(id) {
            continue;
        }
        let node = graph.node(id);
        if matches!(node, Node::Leaf { .. }) || producer[id.idx()].is_some() {
            found.insert(id);
            continue;
        }
        let keeps_places = node.is_elementwise()
            || node.is_movement()
            || matches!(node, Node::Bitcast { .. } | Node::Copy { .. });
        if keeps_places {
            rest.extend(node.sources());
        }
    }
    found
}
