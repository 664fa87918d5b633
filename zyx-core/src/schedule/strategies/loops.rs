//! Loops as they stand: the strategy that every nest of loops and every scan has.

use super::Nest;
use crate::graph::Node;
use crate::ir::Access;
use crate::schedule::item::ScheduleItem;
use crate::schedule::loop_body::{self, Form, LoopBody};
use crate::schedule::lower::{Lowering, cached, name};
use crate::schedule::merge::Merged;
use crate::schedule::partition::Kind;

pub(super) fn lower(nest: &mut Nest<'_>) -> Option<Vec<ScheduleItem>> {
    let Nest { graph, partition, number, group: this, caps, .. } = nest;
    let name = || name(graph, this);
    let form = match this.kind {
        // Stores between the loops would keep a device of many threads from running them as one.
        Kind::Loops => Form::Loops {
            name: name(),
            flat: !caps.has_few_threads() && !this.computes_reduction(),
        },
        Kind::Scan => {
            let root = this.roots[0].node;
            let (Node::Scan { axis, .. } | Node::Recurrence { axis, .. }) = graph.node(root) else {
                unreachable!("invariant: a scan group's root is a scan")
            };
            Form::Scan { name: name(), trivial: graph.shape(root)[axis as usize] == 1 }
        }
        Kind::Scatter | Kind::Contract(_) | Kind::Flash(_) => return None,
    };
    let mut found = loop_body::collect(graph, partition, *number, this);
    found.body.form = form;
    let written: Vec<_> = this.roots.iter().map(|root| (root.node, Access::Write)).collect();
    let lowered = cached(graph, partition, (found, &written), emit);
    Some(vec![ScheduleItem::Kernel(lowered)])
}

fn emit(l: &mut Lowering<'_, ()>, body: &LoopBody) {
    l.merged = Merged::find(l.indices, body);
    l.declare_body();
    match body.form {
        Form::Loops { flat, .. } => l.level(&body.axes, flat),
        Form::Scan { trivial, .. } => l.scan(trivial),
        Form::Custom | Form::Epilogue { .. } | Form::Prologue { .. } => {
            unreachable!("invariant: those have other emitters")
        }
    }
}
