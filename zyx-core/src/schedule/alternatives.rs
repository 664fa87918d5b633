//! Other partitions where the first one is predicted to be slow.
//!
//! The partition is chosen by counts of operations and bytes, before there are kernels. Here its
//! finished kernels are looked at: while one is predicted to take more than [`FAR`] times its least
//! time, each of the values that it computes in place is stored instead, one after the other, and
//! the schedule that is predicted to be the fastest in all is kept.

use super::floor;
use super::item::{ScheduleItem, Scheduled};
use super::search::Choices;
use crate::graph::{Graph, Node, NodeId};
use crate::hal::{Caps, Watch};
use crate::ir::Kernel;
use crate::tune::{cost, model};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Times the least time of a kernel from which on other partitions are tried, and nanoseconds that
/// it has to be slower at least.
const FAR: f64 = 3.0;
const WORTH: f64 = 20_000.0;
/// Part of the predicted time of a schedule that another one may take at most.
const FASTER: f64 = 0.8;
/// Schedules tried at most, and values of a kernel that are stored instead.
const TRIED: usize = 12;
const VALUES: usize = 4;
/// Times the largest buffer of the first schedule that a value may be to be stored: the products of a
/// contraction are not.
pub(super) const LARGER: usize = 4;
/// Nodes of a graph that is looked at, at most.
const MOST_NODES: usize = 1 << 10;
/// Operations from which on a kernel is worth a look.
const OPERATIONS: f64 = 1e6;

/// The better of the first schedule and those that other choices give.
pub(super) fn improve(
    graph: &Graph,
    first: Scheduled,
    caps: &Caps,
    attempt: &mut dyn FnMut(&Choices) -> Scheduled,
) -> Scheduled {
    if graph.len() > MOST_NODES || !first.partition.open.iter().any(|open| !open.stored) {
        return first;
    }
    let mut times = Times { graph, caps, known: FxHashMap::default() };
    let most = LARGER * largest(graph, &first);
    let mut best = first;
    let (mut tried, mut refused) = (0, FxHashSet::default());
    'better: while tried < TRIED && !Watch::here().is_stopped() {
        let whole = times.of(&best);
        for group in times.far(&best) {
            for node in computed(graph, &best, (group, most)) {
                if tried == TRIED || !refused.insert(node) {
                    continue;
                }
                tried += 1;
                let decided = best.partition.open.iter().map(|open| (open.node, open.stored));
                let mut choices: Choices = decided.collect();
                choices.insert(node, true);
                let other = attempt(&choices);
                let predicted = times.of(&other);
                if predicted < FASTER * whole {
                    log::debug!(
                        target: "zyx::schedule",
                        "{node:?} is stored: {predicted:.0} ns instead of {whole:.0}"
                    );
                    best = other;
                    continue 'better;
                }
            }
        }
        break;
    }
    best
}

/// The bytes of a node, were it stored.
fn bytes(graph: &Graph, id: NodeId) -> usize {
    graph.shape(id).numel().saturating_mul(graph.dtype(id).size())
}

/// The bytes of the largest buffer of a schedule.
fn largest(graph: &Graph, scheduled: &Scheduled) -> usize {
    let stored = |id: &NodeId| {
        scheduled.partition.producer[id.idx()].is_some()
            || matches!(graph.node(*id), Node::Leaf { .. })
    };
    graph.ids().filter(stored).map(|id| bytes(graph, id)).max().unwrap_or(0)
}

/// The values of so many bytes at most that a group computes in place and might store, what costs
/// most first.
fn computed(graph: &Graph, scheduled: &Scheduled, (group, most): (usize, usize)) -> Vec<NodeId> {
    let partition = &scheduled.partition;
    let mut seen: FxHashSet<NodeId> = FxHashSet::default();
    let mut stack: Vec<NodeId> = partition.groups[group].roots.iter().map(|r| r.node).collect();
    while let Some(id) = stack.pop() {
        let elsewhere =
            partition.producer[id.idx()].is_some_and(|producer| producer as usize != group);
        if !elsewhere && seen.insert(id) {
            stack.extend(graph.node(id).sources());
        }
    }
    let may = |id: NodeId| seen.contains(&id) && bytes(graph, id) <= most;
    let inside = partition.open.iter().filter(|open| !open.stored && may(open.node));
    let mut list: Vec<_> = inside.collect();
    list.sort_by(|a, b| a.weight.total_cmp(&b.weight).then(b.node.cmp(&a.node)));
    list.into_iter().map(|open| open.node).take(VALUES).collect()
}

/// Predicted and least times of kernels.
struct Times<'a> {
    graph: &'a Graph,
    caps: &'a Caps,
    known: FxHashMap<Arc<Kernel>, [f64; 2]>,
}

impl Times<'_> {
    /// What an item is predicted to take, and takes at least.
    fn item(&mut self, item: &ScheduleItem) -> [f64; 2] {
        let ScheduleItem::Kernel(lowered) = item else {
            let predicted = floor::predict_items(self.graph, std::slice::from_ref(item), self.caps);
            return [predicted, predicted];
        };
        if Watch::here().is_stopped() {
            return [0.0; 2];
        }
        let caps = self.caps;
        if let Some(&known) = self.known.get(&lowered.kernel) {
            return known;
        }
        let least = model::least(&lowered.kernel, caps);
        let small = cost::estimate(&lowered.kernel, caps).ops < OPERATIONS;
        let predict = || model::predict(&crate::tune::optimize(&lowered.kernel, caps), caps);
        let found = if small { [least, least] } else { [predict(), least] };
        self.known.insert(lowered.kernel.clone(), found);
        found
    }

    /// What a schedule is predicted to take.
    fn of(&mut self, scheduled: &Scheduled) -> f64 {
        scheduled.items.iter().map(|item| self.item(item)[0]).sum()
    }

    /// Groups that are far from their least time, the worst first.
    fn far(&mut self, scheduled: &Scheduled) -> Vec<usize> {
        let mut list = Vec::new();
        for (item, &group) in scheduled.items.iter().zip(&scheduled.groups) {
            let [predicted, least] = self.item(item);
            if predicted > FAR * least && predicted > least + WORTH {
                list.push((predicted - least, group));
            }
        }
        list.sort_by(|a, b| b.0.total_cmp(&a.0));
        list.into_iter().map(|far| far.1).collect()
    }
}
