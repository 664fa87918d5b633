//! User kernels: the kernel as it is, behind those that fill what it changes.

use super::Nest;
use crate::graph::{KernelCall, NodeId};
use crate::hal::Call;
use crate::ir::{Access, Builder, LoopKind};
use crate::lang::{Fill, Role};
use crate::scalar::Scalar;
use crate::schedule::item::{ScheduleItem, storage};
use crate::schedule::lower::{Lowered, Var};
use std::sync::Arc;

pub(super) fn lower(nest: &mut Nest<'_>) -> Option<Vec<ScheduleItem>> {
    let graph = nest.graph;
    let root = nest.group.roots[0].node;
    let (call, first) = graph.kernel_call(root)?;
    let inputs = graph.inputs_of_kernel(root);
    let inputs: Vec<NodeId> = inputs.into_iter().map(|input| storage(graph, input)).collect();
    let (mut next_input, mut next_output) = (inputs.iter(), first.0..);
    let mut items = Vec::new();
    let mut params = Vec::new();
    for (slot, argument) in call.recorded.arguments().iter().enumerate() {
        if argument.role == Role::Input {
            params.push(*next_input.next()?);
            continue;
        }
        let node = NodeId(next_output.next()?);
        params.push(node);
        let filled = match argument.role {
            Role::Input | Role::Output => continue,
            Role::Scratch | Role::Cut => filled(call, slot, node, Ok(0)),
            Role::Filled(Fill::Scalar(bits)) => filled(call, slot, node, Ok(bits)),
            Role::Filled(Fill::Input(number)) => filled(call, slot, node, Err(inputs[number])),
        };
        items.push(ScheduleItem::Kernel(filled));
    }
    if let Some(raw) = &call.raw {
        let accesses = raw.kernel.params.iter().map(|param| param.access).collect();
        let vars = raw.scalars.iter().map(|&x| Var::Known(x as i64)).collect();
        let (call, starts) = (Box::new(Call::Raw(raw.kernel.clone())), Vec::new());
        items.push(ScheduleItem::Call { call, buffers: params, accesses, vars, starts });
        return Some(items);
    }
    let known = call.scalars.iter().map(|&x| Var::Known(x));
    let vars = known.chain(call.arguments.iter().copied().map(Var::Argument)).collect();
    let kernel = Arc::new(call.recorded.kernel().clone());
    items.push(ScheduleItem::Kernel(Lowered { kernel, params, vars }));
    Some(items)
}

/// The kernel that fills an argument: with the bits of a scalar, or with the elements of a node.
fn filled(call: &KernelCall, slot: usize, node: NodeId, by: Result<u64, NodeId>) -> Lowered {
    let (n, dtype) = (call.shape(slot).numel(), call.recorded.arguments()[slot].dtype);
    let mut b = Builder::new(&format!("fill_{n}"));
    let from = by.err().map(|from| (from, b.param(dtype, n as u64, Access::Read)));
    let buffer = b.param(dtype, n as u64, Access::Write);
    let len = b.index(n as i64);
    let i = b.open_loop(LoopKind::Parallel, 0, len);
    let value = match (from, by) {
        (Some((_, from)), _) => b.load(from, i),
        (None, by) => b.constant(Scalar::from_bits(dtype, by.unwrap_or(0))),
    };
    b.store(buffer, i, value);
    b.close();
    let params = from.map(|x| x.0).into_iter().chain([node]).collect();
    Lowered { kernel: Arc::new(b.finish()), params, vars: Vec::new() }
}
