//! What the device's library computes: contractions with their prologue and epilogue, and attention.

use super::Nest;
use crate::hal::{Call, Prologue};
use crate::ir::Access;
use crate::schedule::contract::Contraction;
use crate::schedule::flash;
use crate::schedule::item::ScheduleItem;
use crate::schedule::lower::Lowered;
use crate::schedule::partition::Kind;
use crate::schedule::{epilogue, prologue};
use std::sync::Arc;

fn kernel(lowered: &Lowered) -> Arc<crate::ir::Kernel> {
    lowered.kernel.clone()
}

/// A contraction with its prologue and epilogue.
pub(super) fn contraction(nest: &mut Nest<'_>) -> Option<Vec<ScheduleItem>> {
    let Nest { graph, partition, number, group, .. } = nest;
    let Kind::Contract(contract) = &group.kind else { return None };
    if contract.contraction.convolution.is_some() {
        let Contraction { operands, node, .. } = &contract.contraction;
        let mut work =
            ScheduleItem::call(contract.contraction.call(), operands.to_vec(), Vec::new());
        if let ScheduleItem::Call { buffers, accesses, .. } = &mut work {
            buffers.push(*node);
            accesses.push(Access::Write);
        }
        return Some(vec![work]);
    }
    let spec = contract.contraction.spec.clone();
    let Contraction { operands, bias, starts, .. } = &contract.contraction;
    let mut operands: Vec<_> = operands.iter().copied().chain(*bias).collect();
    let mut starts: Vec<_> = starts.iter().copied().chain(bias.map(|_| None)).collect();
    // The first argument of either kernel is the block or tile.
    let mut kernels = Vec::new();
    let prologue = prologue::lower(graph, partition, *number, contract).map(|(side, lowered)| {
        operands.remove(side);
        starts.remove(side);
        let prologue = Prologue { operand: side, kernel: kernel(&lowered) };
        kernels.push((lowered, 1));
        prologue
    });
    let epilogue = epilogue::lower(graph, partition, *number, group, contract).map(|lowered| {
        let epilogue = kernel(&lowered);
        kernels.push((lowered, 1));
        epilogue
    });
    let stores = epilogue.is_none();
    let mut work =
        ScheduleItem::call(Call::Contract { spec, prologue, epilogue }, operands, kernels);
    if let ScheduleItem::Call { buffers, accesses, starts: own, .. } = &mut work {
        *own = starts;
        if stores {
            buffers.push(contract.contraction.node);
            accesses.push(Access::Write);
        }
    }
    Some(vec![work])
}

/// Attention, or one of its gradients.
pub(super) fn attention(nest: &mut Nest<'_>) -> Option<Vec<ScheduleItem>> {
    let Nest { graph, partition, number, group, caps, .. } = nest;
    let Kind::Flash(flash) = &group.kind else { return None };
    if !flash::flash_caps(caps).is_some_and(|s| s.library) {
        return None;
    }
    let spec = flash.spec.clone();
    let given = spec.buffers();
    let [update, finish] = flash::library::lower(graph, partition, *number, group, flash);
    let call = Call::Flash { spec, update: kernel(&update), finish: kernel(&finish) };
    Some(vec![ScheduleItem::call(
        call,
        flash.operands.clone(),
        vec![(update, given), (finish, given)],
    )])
}
