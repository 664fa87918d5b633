//! Loops as they stand: the strategy that every nest of loops and every scan has.

use super::Nest;
use crate::ir::Access;
use crate::schedule::analysis;
use crate::schedule::item::ScheduleItem;
use crate::schedule::lower::{Lowering, name};
use crate::schedule::merge::Merged;
use crate::schedule::partition::Kind;

pub(super) fn lower(nest: &mut Nest<'_>) -> Option<Vec<ScheduleItem>> {
    let Nest { graph, partition, number, group: this, caps, .. } = nest;
    if !matches!(this.kind, Kind::Loops | Kind::Scan) {
        return None;
    }
    let mut found = analysis::collect(graph, partition, *number, this, &this.axes);
    let merged = Merged::find(&partition.indices, &this.axes, &mut found);
    let mut l = Lowering::new(graph, partition, *number, name(graph, this));
    let written: Vec<_> = this.roots.iter().map(|root| (root.node, Access::Write)).collect();
    l.merged = merged;
    l.declare(found, &written);
    // Stores between the loops would keep a device of many threads from running them as one.
    let flat = !caps.has_few_threads() && !this.computes_reduction();
    for root in &this.roots {
        let depth = match this.kind {
            Kind::Scan => this.axes.len(),
            _ if flat => this.axes.len(),
            _ => l.depth_of(&this.axes, root.tuple),
        };
        l.stores.push((this.axes[..depth].to_vec(), root.node, root.tuple));
    }
    if let Kind::Scan = this.kind {
        l.scan(&this.axes);
    } else {
        l.level(&this.axes);
    }
    Some(vec![ScheduleItem::Kernel(l.finish())])
}
