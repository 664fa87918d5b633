//! From a graph to launches.
//!
//! [`partition`] decides which nodes share a kernel, [`lower`] turns each group into a naive
//! kernel by pulling [`index`] expressions, [`contract`] and [`epilogue`] recognise what a library
//! kernel does better, [`stream`] and [`online`] make one of attention, [`bundle`] gives one launch to what is independent, [`memory`] places
//! temporaries, [`plan`] compiles it all into plain data that [`realize`] caches by the structure
//! of the graph and plays. [`explain`](mod@explain) tells what was decided and why.

mod bundle;
mod collect;
mod contract;
mod cost;
mod dependencies;
mod distribute;
mod epilogue;
mod explain;
mod index;
mod lower;
mod memory;
mod merge;
mod online;
mod partition;
mod pieces;
mod place;
mod plan;
mod pull;
mod reason;
mod scatter;
mod search;
mod stream;
mod streamed;
#[cfg(test)]
mod tests;
mod threads;

pub use explain::{Explanation, KernelNote, LaunchNote, Speeds, ValueNote};

use crate::error::{Error, Result};
use crate::graph::{Bindings, Graph, capture};
use crate::runtime::Device;
use crate::tensor::Tensor;
use plan::{Launches, Plan};
use rustc_hash::FxHashMap;
use std::panic::Location;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Plans of a device by the structure of their graphs.
#[derive(Default)]
struct PlanCache {
    plans: Mutex<FxHashMap<Arc<Graph>, Arc<Plan>>>,
    /// Nodes of the last graph: the next one of a loop will have as many.
    last: AtomicUsize,
    /// What the device can do, if it was measured.
    speeds: OnceLock<Speeds>,
}

/// Most nodes that space is made for on suspicion.
const MAX_EXPECTED: usize = 1 << 13;

/// Graphs beyond this many nodes are planned anew each time instead of being kept as keys.
const MAX_CACHED_NODES: usize = 1 << 16;
/// Most plans kept; a program that exceeds it starts over.
const MAX_PLANS: usize = 4096;

/// Computes `tensors`, which are pending: one plan for each device among them.
#[track_caller]
pub(crate) fn realize(tensors: &[&Tensor]) -> Result<()> {
    let mut rest: Vec<&Tensor> = tensors.to_vec();
    while let Some(first) = rest.first() {
        let device = first.device().clone();
        let (mine, others): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|t| *t.device() == device);
        realize_on(&device, &mine)?;
        rest = others;
    }
    Ok(())
}

#[track_caller]
fn realize_on(device: &Device, tensors: &[&Tensor]) -> Result<()> {
    let cache = device.attachment::<PlanCache>();
    let (graph, bindings) = capture(tensors, cache.last.load(Relaxed));
    refuse_unknown(&bindings, "realize")?;
    cache.last.store(graph.len().min(MAX_EXPECTED), Relaxed);
    let plan = plan_of(device, graph)?;
    let buffers = plan.play(device, &bindings)?;
    for (tensor, buffer) in tensors.iter().zip(buffers) {
        if plan.graph.is_some() {
            buffer.set_origin(plan.clone());
        }
        tensor.fulfil(buffer);
    }
    Ok(())
}

/// Refuses to compute what depends on an example of `vmap`.
#[track_caller]
fn refuse_unknown(bindings: &Bindings, op: &'static str) -> Result<()> {
    if !bindings.unknown {
        return Ok(());
    }
    let reason = "a function under `vmap` asked for a value; an example has none".to_owned();
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

/// The naive kernels of a graph, in order.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn kernels(graph: &Graph, device: &Device) -> Vec<crate::ir::Kernel> {
    let kernel = |work| match work {
        plan::Work::Kernel(lowered) => vec![lowered.kernel],
        plan::Work::Call { call, .. } => call.kernels().map(|kernel| (**kernel).clone()).collect(),
    };
    plan::schedule(graph, device).works.into_iter().flat_map(kernel).collect()
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

#[track_caller]
fn plan_of(device: &Device, graph: Graph) -> Result<Arc<Plan>> {
    let cache = device.attachment::<PlanCache>();
    let lock = || cache.plans.lock().unwrap_or_else(PoisonError::into_inner);
    let known = lock().get(&graph).cloned();
    device.count_plan(known.is_some());
    if let Some(plan) = known {
        return Ok(plan);
    }
    refuse_impossible(&graph, "realize")?;
    let mut plan = Plan::new(&graph, device, Launches::Joint)?;
    if graph.len() > MAX_CACHED_NODES {
        return Ok(Arc::new(plan));
    }
    let graph = Arc::new(graph);
    plan.graph = Some(graph.clone());
    let plan = Arc::new(plan);
    {
        let mut plans = lock();
        if plans.len() >= MAX_PLANS {
            plans.clear();
        }
        plans.insert(graph, plan.clone());
    }
    Ok(plan)
}
