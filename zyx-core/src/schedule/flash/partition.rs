//! Flash attention in the partition: groups of their own, which also store what others need of a
//! row.

use super::warps::Blocks;
use super::{FlashAttention, Middle};
use crate::graph::{Graph, NodeId};
use crate::hal::Caps;
use crate::schedule::partition::{Group, Kind, Partition, Partitioner, Root, Use};
use crate::schedule::pull::Scope;
use crate::schedule::reason::Reason;
use rustc_hash::FxHashSet;

/// How many groups are looked at for one that takes another sum.
const FLASH: usize = 16;

impl Partitioner<'_> {
    /// The flash attention that ends in `id`, if the device runs it and nobody needs its middle.
    pub(in crate::schedule) fn flash(&mut self, id: NodeId) -> Option<FlashAttention> {
        if self.refused.contains(&id) {
            return None;
        }
        let (must, instances) = (&self.must_store, &self.instances);
        let demanded = |x: NodeId| must[x.idx()] || !instances[x.idx()].is_empty();
        let only = |x: NodeId| self.uses[x.idx()] == 1 && !must[x.idx()];
        super::recognize(self.graph, &mut self.indices, id, self.caps, &demanded, &only)
    }

    /// Adds flash attention of warps whose middle is stored all the same, because somebody visited
    /// later asks for it: they compute it again for nothing. Says whether there are any.
    pub(in crate::schedule) fn refuse_flash(
        (graph, caps): (&Graph, &Caps),
        partition: &Partition,
        refused: &mut FxHashSet<NodeId>,
    ) -> bool {
        let before = refused.len();
        for group in &partition.groups {
            let Kind::Flash(flash) = &group.kind else { continue };
            let Middle::Values((middle, _)) = flash.middle else { continue };
            let stored = |x: &NodeId| {
                partition.producer[x.idx()].is_some()
                    && graph.shape(*x).numel() == graph.shape(middle).numel()
            };
            if Blocks::of(flash, caps).is_some() && flash.inside.iter().any(stored) {
                refused.extend(flash.sums().map(|sum| sum.0));
            }
        }
        refused.len() > before
    }

    /// Whether a group is, or needs the results of, any of the groups that want a value.
    fn needs_any(&self, group: u32, instances: &[Use]) -> bool {
        let (mut seen, mut stack) = (FxHashSet::default(), vec![group]);
        while let Some(group) = stack.pop() {
            if !seen.insert(group) {
                continue;
            }
            if instances.iter().any(|i| i.group == group) {
                return true;
            }
            stack.extend(self.reads[group as usize].iter().filter_map(|x| self.producer[x.idx()]));
        }
        false
    }

    /// Makes the sum of flash attention one of a group whose tiles are the same, if there is one.
    fn join_flash(&mut self, flash: &FlashAttention, instances: &[Use]) -> bool {
        let id = flash.node;
        if !self.options.hosting {
            return false;
        }
        for group in (self.groups.len().saturating_sub(FLASH)..self.groups.len()).rev() {
            let Kind::Flash(host) = &self.groups[group].kind else { continue };
            let Some(joined) = host.joined(flash, &mut self.indices) else { continue };
            if !Blocks::of(&joined, self.caps).is_some_and(|blocks| blocks.is_wide())
                || self.needs_any(group as u32, instances)
            {
                continue;
            }
            let group = group as u32;
            self.total += self.costs.contracted(flash.sum) + self.costs.moved(id, usize::MAX);
            self.producer[id.idx()] = Some(group);
            self.count_reads(id, instances, Some(group));
            instances.iter().for_each(|i| self.reads[i.group as usize].push(id));
            self.reasons.insert(id, Reason::Library("nothing follows"));
            for &operand in &joined.operands {
                self.must_store[operand.idx()] = true;
                let groups = self.operand_of.entry(operand).or_default();
                if !groups.contains(&group) {
                    groups.push(group);
                }
            }
            let of = &mut self.groups[group as usize];
            of.roots = joined.sums().map(|sum| Root { node: sum.0, tuple: sum.2 }).collect();
            of.first_root = of.first_root.min(id);
            self.reads[group as usize].extend(&joined.operands);
            let axes = [&joined.batch[..], &[joined.row, joined.column]].concat();
            let leaves = joined.leaves.clone();
            of.axes.clone_from(&axes);
            of.kind = Kind::Flash(Box::new(joined));
            let loops = self.loops.len() as u32;
            self.loops.push(axes);
            for (leaf, tuple) in leaves {
                self.need(leaf, Use { group, tuple, loops, guarded: false });
            }
            return true;
        }
        false
    }

    /// Gives flash attention a group of its own, which stores values of rows that others ask for.
    pub(in crate::schedule) fn place_flash(&mut self, flash: FlashAttention, instances: &[Use]) {
        if self.join_flash(&flash, instances) {
            return;
        }
        let id = flash.node;
        let group = self.groups.len() as u32;
        let axes = [&flash.batch[..], &[flash.row, flash.column]].concat();
        let (operands, leaves) = (flash.operands.clone(), flash.leaves.clone());
        self.total += self.costs.launch + self.costs.contracted(flash.sum);
        for tile in &flash.tiles {
            self.total += self.costs.contracted(tile.0);
        }
        let mut roots = vec![Root { node: id, tuple: flash.tuple }];
        if let Middle::Softmax(softmax) = flash.middle {
            for (node, tuple) in softmax.rows() {
                let asked = self.must_store[node.idx()] || !self.instances[node.idx()].is_empty();
                if asked && roots.iter().all(|root| root.node != node) {
                    roots.push(Root { node, tuple });
                }
            }
        }
        let loops = self.loops.len() as u32;
        self.loops.push(axes.clone());
        let first = roots.iter().map(|root| root.node).min().unwrap_or(id);
        for root in &roots {
            self.producer[root.node.idx()] = Some(group);
            self.total += self.costs.moved(root.node, usize::MAX);
            let asked = std::mem::take(&mut self.instances[root.node.idx()]);
            let asked = if root.node == id { instances } else { &asked };
            self.count_reads(root.node, asked, Some(group));
            for instance in asked {
                self.reads[instance.group as usize].push(root.node);
            }
        }
        self.groups.push(Group {
            kind: Kind::Flash(Box::new(flash)),
            roots,
            axes,
            space: self.graph.shape(id).numel(),
            nodes: 1,
            reduces: 1,
            next_counter: Scope::Group.first(),
            first_root: first,
            last_root: id,
        });
        self.reads.push(operands.clone());
        self.buffers.push(Default::default());
        self.reasons.insert(id, Reason::Library("nothing follows"));
        for operand in operands {
            self.total += self.costs.moved(operand, usize::MAX);
            self.must_store[operand.idx()] = true;
            self.operand_of.entry(operand).or_default().push(group);
        }
        for (leaf, tuple) in leaves {
            self.need(leaf, Use { group, tuple, loops, guarded: false });
        }
    }
}
