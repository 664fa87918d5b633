//! Loops as they stand: the strategy that every nest of loops and every scan has.

use super::Nest;
use crate::ir::Access;
use crate::schedule::analysis;
use crate::schedule::item::ScheduleItem;
use crate::schedule::lower::{Lowering, name, once};
use crate::schedule::merge::Merged;
use crate::schedule::partition::Kind;

pub(super) fn lower(nest: &mut Nest<'_>) -> Option<Vec<ScheduleItem>> {
    let Nest { graph, partition, number, group: this, caps, .. } = nest;
    if !matches!(this.kind, Kind::Loops | Kind::Scan) {
        return None;
    }
    let mut found = analysis::collect(graph, partition, *number, this, &this.axes);
    let written: Vec<_> = this.roots.iter().map(|root| (root.node, Access::Write)).collect();
    let scans = matches!(this.kind, Kind::Scan);
    let kind = [scans, this.computes_reduction()].map(u64::from);
    found.key.extend(kind);
    let lowered = once(graph, partition, (found, &written), |partition, mut found| {
        let merged = Merged::find(&partition.indices, &this.axes, &mut found);
        let mut l = Lowering::new(graph, partition, *number, name(graph, this));
        l.merged = merged;
        l.declare(found, &written);
        // Stores between the loops would keep a device of many threads from running them as one.
        let flat = !caps.has_few_threads() && !this.computes_reduction();
        for root in &this.roots {
            let all = scans || flat;
            let depth = if all { this.axes.len() } else { l.depth_of(&this.axes, root.tuple) };
            l.stores.push((this.axes[..depth].to_vec(), root.node, root.tuple));
        }
        if scans {
            l.scan(&this.axes);
        } else {
            l.level(&this.axes);
        }
        l.finish()
    });
    Some(vec![ScheduleItem::Kernel(lowered)])
}
