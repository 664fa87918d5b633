//! Where the nodes of a graph come from, and the names of parameters among its leaves.
//!
//! Equal graphs have one plan, wherever in a program they were made: a plan knows the origins of the first, and whether
//! there were others.

use super::{Node, NodeId};
use crate::origin::Origin;
use crate::tensor::Tensor;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The origins of the nodes of a graph. Without the feature `lines` none has any.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    nodes: Vec<Origin>,
    /// That of nodes that are about to be appended.
    handed_on: Origin,
    /// The names of parameters by slot of leaf.
    pub(crate) leaves: Vec<Option<Arc<str>>>,
    /// Whether an equal graph came from elsewhere.
    varied: AtomicBool,
}

impl Clone for Origins {
    fn clone(&self) -> Origins {
        let (nodes, handed_on, leaves) = (self.nodes.clone(), self.handed_on, self.leaves.clone());
        Origins { nodes, handed_on, leaves, varied: AtomicBool::new(self.varied()) }
    }
}

/// What was computed before has no origin here.
#[inline]
fn of(node: &Node, tensor: &Tensor) -> Origin {
    if let Node::Leaf { .. } = node { Origin::UNKNOWN } else { tensor.origin() }
}

impl Origins {
    /// For another graph with the same leaves.
    pub(crate) fn of_no_nodes(&self) -> Origins {
        let varied = AtomicBool::new(self.varied());
        Origins { leaves: self.leaves.clone(), varied, ..Origins::default() }
    }

    #[inline]
    pub(super) fn push(&mut self, node: &Node, tensor: &Tensor) {
        self.nodes.push(of(node, tensor));
    }

    /// Nodes appended from now on stand for this one.
    #[inline]
    pub(crate) fn hand_on(&mut self, from: &Origins, id: NodeId) {
        self.handed_on = from.of(id);
    }

    #[inline]
    pub(super) fn push_handed_on(&mut self) {
        self.nodes.push(self.handed_on);
    }

    pub(crate) fn of(&self, id: NodeId) -> Origin {
        self.nodes.get(id.idx()).copied().unwrap_or_default()
    }

    /// Notes that in an equal graph this tensor is the node.
    #[inline]
    pub(super) fn compare(&self, id: NodeId, node: &Node, tensor: &Tensor) {
        if Origin::KEPT && self.of(id) != of(node, tensor) {
            self.varied.store(true, Relaxed);
        }
    }

    /// Notes the origins of an equal graph.
    pub(crate) fn compare_all(&self, other: &Origins) {
        if Origin::KEPT && self.differ(other) {
            self.varied.store(true, Relaxed);
        }
    }

    fn differ(&self, other: &Origins) -> bool {
        self.nodes != other.nodes || self.leaves != other.leaves
    }

    /// Whether equal graphs had other origins.
    pub(crate) fn varied(&self) -> bool {
        self.varied.load(Relaxed)
    }
}
