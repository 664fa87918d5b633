//! From a graph to launches.
//!
//! [`partition`] decides which nodes share a kernel, [`lower`] turns each group into a naive
//! kernel by pulling [`index`] expressions, [`contract`] and [`epilogue`] recognise what a library
//! kernel does better, [`stream`], [`online`] and [`teams`] make one of attention, [`bundle`] gives one launch
//! to what is independent, [`memory`] places temporaries, [`donate`] gives results the memory of
//! inputs that die, [`plan`] compiles it all into plain data that [`planned`] keeps by the structure
//! of the graph and [`play`] runs. [`explain`](mod@explain) tells what was decided and why.

mod bundle;
mod collect;
mod contract;
mod cost;
mod dependencies;
mod distribute;
mod donate;
mod epilogue;
mod explain;
mod histogram;
mod index;
mod look_back;
mod lower;
mod memory;
mod merge;
mod online;
mod partition;
mod pieces;
mod place;
mod plan;
mod planned;
mod play;
mod prologue;
mod pull;
pub(crate) mod ranks;
mod reason;
mod scatter;
mod search;
mod stream;
mod streamed;
mod teams;
#[cfg(test)]
mod tests;
mod threads;
mod traced;
mod work;

pub use explain::{Explanation, KernelNote, LaunchNote, Speeds, ValueNote};

use crate::error::{Error, Result};
use crate::graph::{Bindings, Graph, Holders, capture, capture_trail};
use crate::runtime::Device;
use crate::tensor::Tensor;
use plan::Plan;
use planned::{PlanCache, Planned};
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
pub(crate) use traced::Traced;

/// Most nodes that space is made for on suspicion.
const MAX_EXPECTED: usize = 1 << 13;

/// Computes `tensors`, which are pending: one plan for each device among them. Memory of `given`
/// may become that of results; nobody but the caller knows whether these handles are the last.
#[track_caller]
pub(crate) fn realize(tensors: &[&Tensor], given: &[Tensor]) -> Result<()> {
    let mut rest: Vec<&Tensor> = tensors.to_vec();
    while let Some(first) = rest.first() {
        let device = first.device().clone();
        let (mine, others): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|t| *t.device() == device);
        realize_on(&device, &mine, given)?;
        rest = others;
    }
    Ok(())
}

#[track_caller]
fn realize_on(device: &Device, tensors: &[&Tensor], given: &[Tensor]) -> Result<()> {
    let cache = device.attachment::<PlanCache>();
    loop {
        let sharing = cache.share();
        // Another thread may have computed some meanwhile.
        let pending: Vec<&Tensor> = tensors.iter().copied().filter(|t| !t.is_realized()).collect();
        if pending.is_empty() {
            return Ok(());
        }
        let (planned, bindings) = match cache.expected(device, &pending) {
            Some(found) => found,
            None => find(&cache, device, &pending, given)?,
        };
        let holders = Holders { outputs: &pending, given, bindings: &bindings };
        if !planned.may_donate(&bindings) {
            let plan = planned.plain(device)?;
            return play(&plan, device, &holders);
        }
        drop(sharing);
        let _alone = cache.alone();
        if pending.iter().any(|tensor| tensor.is_realized()) {
            continue;
        }
        let plan = planned.choose(device, &holders)?;
        return play(&plan, device, &holders);
    }
}

/// Captures a graph and finds its plans, or makes them.
#[track_caller]
fn find(
    cache: &PlanCache,
    device: &Device,
    pending: &[&Tensor],
    given: &[Tensor],
) -> Result<(Arc<Planned>, Bindings)> {
    let (graph, bindings, trail) = capture_trail(pending, cache.last.load(Relaxed));
    refuse_unknown(&bindings, "realize")?;
    cache.last.store(graph.len().min(MAX_EXPECTED), Relaxed);
    let holders = Holders { outputs: pending, given, bindings: &bindings };
    let planned = cache.planned(device, graph, &holders)?;
    cache.expect(&planned, trail);
    Ok((planned, bindings))
}

/// Plays a plan and gives the tensors their values.
fn play(plan: &Arc<Plan>, device: &Device, holders: &Holders<'_>) -> Result<()> {
    let buffers = plan.play(device, holders.bindings)?;
    for (tensor, buffer) in holders.outputs.iter().zip(buffers) {
        if plan.graph.is_some() {
            buffer.set_origin(plan.clone());
        }
        tensor.fulfil(buffer);
    }
    Ok(())
}

/// Whether any of these depends on what has no value, as the examples of [`Tensor::vmap`].
pub(crate) fn any_unknown(tensors: &[&Tensor]) -> bool {
    let pending: Vec<&Tensor> = tensors.iter().copied().filter(|t| !t.is_realized()).collect();
    !pending.is_empty() && capture(&pending, 0).1.unknown
}

/// Refuses to compute what depends on an example of `vmap` or an input of `Jit`.
#[track_caller]
fn refuse_unknown(bindings: &Bindings, op: &'static str) -> Result<()> {
    if !bindings.unknown {
        return Ok(());
    }
    let reason = "a value was asked for that depends on the arguments of a function under `vmap` \
                  or `jit`; while it is traced they have none";
    let reason = reason.to_owned();
    Err(Error::Argument { op, reason, location: Location::caller() })
}

/// Explains how a tensor is computed, if that is `pending`, or was.
#[track_caller]
pub(crate) fn explain_tensor(tensor: &Tensor, pending: bool) -> Result<Explanation> {
    let device = tensor.device();
    if pending {
        let (graph, bindings) = capture(&[tensor], 0);
        refuse_unknown(&bindings, "explain")?;
        refuse_impossible(&graph, "explain")?;
        return explain::explain(&graph, device);
    }
    let plan = tensor.value().and_then(|buffer| buffer.origin::<Plan>());
    match plan.as_deref().and_then(|plan| plan.graph.as_deref()) {
        Some(graph) => explain::explain(graph, device),
        None => explain::explain(&Graph::default(), device),
    }
}

/// The bytes of the arena of a graph's temporaries, and the most of them that are live at once.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn arena(graph: &Graph, device: &Device) -> (usize, usize) {
    Plan::arena(graph, device)
}

/// The naive kernels of a graph, in order.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn kernels(graph: &Graph, device: &Device) -> Vec<crate::ir::Kernel> {
    let kernel = |work| match work {
        work::Work::Kernel(lowered) => vec![lowered.kernel],
        work::Work::Call { call, .. } => call.kernels().map(|kernel| (**kernel).clone()).collect(),
    };
    work::schedule(graph, device).works.into_iter().flat_map(kernel).collect()
}

/// Creation cannot fail, so a shape that no memory holds is found here at the latest.
#[track_caller]
fn refuse_impossible(graph: &Graph, op: &'static str) -> Result<()> {
    match graph.shapes().iter().find(|shape| !shape.is_possible()) {
        Some(shape) => {
            let reason = format!("a tensor of shape {shape} has too many axes or elements");
            Err(Tensor::argument_error(op, reason))
        }
        None => Ok(()),
    }
}
