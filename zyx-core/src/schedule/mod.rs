//! From a graph to launches.
//!
//! [`partition`] decides what is computed together, in nests; [`contract`] and [`flash`] recognise
//! products and attention. A row of [`strategies`] makes kernels or library calls of each nest, with
//! [`lower`], which pulls index expressions through the graph. [`horizontal_fusion`] gives one launch
//! to what is independent, [`memory`] places temporaries, [`donate`] gives results the memory of
//! inputs that die, [`plan`] compiles it all into plain data that [`plan_cache`] keeps by the structure
//! of the graph and [`play`] runs. [`explain`](mod@explain) tells what was decided and why.
//! All of this is for one device; [`across`] moves values from one to another. [`checked`] looks at each
//! operation's result.

mod across;
mod alternatives;
mod checked;
mod checks;
mod contract;
mod contraction_grouping;
mod convolution;
mod cost;
mod dependencies;
mod donate;
mod epilogue;
pub(crate) mod explain;
mod flash;
mod floor;
mod horizontal_fusion;
mod item;
mod keep;
mod loop_body;
mod lower;
mod memory;
mod merge;
pub(crate) mod names;
mod partition;
mod plan;
mod plan_cache;
mod play;
mod prologue;
mod pull;
mod reason;
mod rows;
mod search;
mod siblings;
mod split_reduction;
mod starts;
pub(crate) mod strategies;
#[cfg(test)]
mod tests;
mod trace;

pub use explain::{CallNote, Explanation, KernelNote, LaunchNote, Speeds, ValueNote};
pub use rows::Operation;

use crate::error::{Error, Result};
use crate::graph::{
    Bindings, CaptureOrder, Graph, Holders, Matched, NodeId, capture, capture_with_order,
    match_held,
};
use crate::hal::attempt;
use crate::origin::Origin;
use crate::runtime::{Buffer, Device};
use crate::tensor::{Param, Tensor};
use keep::Choice;
use plan::Plan;
use plan_cache::{Found, Keeping, PlanCache};
use rustc_hash::{FxHashMap, FxHashSet};
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
pub(crate) use trace::Traced;

/// Most nodes that space is made for on suspicion.
const MAX_EXPECTED: usize = 1 << 13;

/// Computes `tensors`, which are pending, and the flags of indices that they are computed by.
#[track_caller]
pub(crate) fn realize(tensors: &[&Tensor], given: &[Tensor]) -> Result<()> {
    let reached = checks::Reached::by(tensors);
    if reached.checks.is_empty() {
        return realize_all(tensors, given);
    }
    realize_all(&[tensors, &reached.pending()].concat(), given)?;
    reached.pass_to(tensors);
    Ok(())
}

/// Computes `tensors`, which are pending: one plan for each device among them. Memory of `given`
/// may become that of results; nobody but the caller knows whether these handles are the last.
#[track_caller]
fn realize_all(tensors: &[&Tensor], given: &[Tensor]) -> Result<()> {
    let mut rest: Vec<&Tensor> = tensors.to_vec();
    while let Some(first) = rest.first() {
        let device = first.device().clone();
        let (mine, others): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|t| *t.device() == device);
        if !realize_on(&device, &mine, given)? {
            return across::realize(&[mine, others].concat(), given);
        }
        rest = others;
    }
    Ok(())
}

/// Computes tensors of a device, and says whether that was possible without another one.
#[track_caller]
fn realize_on(device: &Device, tensors: &[&Tensor], given: &[Tensor]) -> Result<bool> {
    if device.is_checked() {
        let pending = tensors.iter().filter(|tensor| !tensor.is_realized());
        let pending: Vec<checked::Output<'_>> = pending.map(|&tensor| (tensor, true)).collect();
        return checked::realize(device, &pending, given);
    }
    realize_unchecked(device, tensors, given, true)
}

/// [`realize_on`] without a look at what comes out. If it `keeps`, values that the program holds are
/// stored on the way, unless there is no memory for them.
#[track_caller]
fn realize_unchecked(
    device: &Device,
    tensors: &[&Tensor],
    given: &[Tensor],
    keeps: bool,
) -> Result<bool> {
    attempt!(attempt_to_realize(device, tensors, given, keeps))
}

#[track_caller]
fn attempt_to_realize(
    device: &Device,
    tensors: &[&Tensor],
    given: &[Tensor],
    mut keeps: bool,
) -> Result<bool> {
    let cache = device.attachment::<PlanCache>();
    let _span = device.span("realize", &[("tensors", tensors.len())]);
    loop {
        let sharing = device.read_lock();
        // Another thread may have computed some meanwhile.
        let pending: Vec<&Tensor> = tensors.iter().copied().filter(|t| !t.is_realized()).collect();
        if pending.is_empty() {
            return Ok(true);
        }
        let expected = {
            let _span = device.span("match", &[]);
            cache.expected(device, &pending, given, keeps)
        };
        let found = match expected {
            Some(found) => found,
            None => match find(&cache, device, &pending, given, keeps)? {
                Some(found) => found,
                None => return Ok(false),
            },
        };
        let Found { planned, bindings, .. } = &found;
        let holders = Holders { outputs: &pending, given, bindings };
        let donates = planned.may_donate(bindings);
        if !donates {
            let plan = planned.plain(device)?;
            match plan.play_beside(device, bindings) {
                // Other threads may have what is missing.
                Err(Error::Device(full)) if full.is_about_memory() => {}
                played => {
                    set_values(device, &plan, &pending, &found, played?);
                    return Ok(true);
                }
            }
            if !found.kept.is_empty() {
                keeps = false;
                continue;
            }
        }
        drop(sharing);
        let _alone = device.write_lock();
        if pending.iter().any(|tensor| tensor.is_realized()) {
            continue;
        }
        let plan =
            if donates { planned.choose(device, &holders)? } else { planned.plain(device)? };
        if !found.kept.is_empty() && !plan.fits_whole(device, bindings) {
            keeps = false;
            continue;
        }
        set_values(device, &plan, &pending, &found, plan.play_alone(device, bindings)?);
        return Ok(true);
    }
}

/// Captures a graph and finds its plans, or makes them; `None` if a value has to be moved to the
/// device before.
#[track_caller]
fn find(
    cache: &PlanCache,
    device: &Device,
    pending: &[&Tensor],
    given: &[Tensor],
    keeps: bool,
) -> Result<Option<Found>> {
    let (graph, mut bindings, mut order) = {
        let _span = device.span("capture", &[]);
        capture_with_order(pending, cache.last.load(Relaxed))
    };
    if bindings.unmoved {
        return Ok(None);
    }
    refuse_no_value(bindings.unknown, "realize")?;
    cache.last.store(graph.len().min(MAX_EXPECTED), Relaxed);
    let mut graph = cache.generalized(device, graph, &mut bindings, &mut order);
    let (mut keeping, mut tensors, mut kept_leaves) = Default::default();
    if keeps {
        (keeping, tensors, kept_leaves) = keep_held(cache, (&mut graph, &order), pending, given);
    }
    keeping.asked = pending.len();
    if Origin::KEPT {
        graph.origins.leaves = names_of_leaves(device, &bindings);
    }
    let holders = Holders { outputs: pending, given, bindings: &bindings };
    let outputs = graph.outputs.clone();
    let planned = cache.planned(device, graph, &holders)?;
    let found = Found::new(planned.clone(), bindings, &outputs, &keeping, tensors, kept_leaves);
    cache.expect(&planned, order, keeping);
    Ok(Some(found))
}

/// Makes outputs of values that the program holds and that are dear. Gives what was decided, the
/// tensors of those nodes and of such as are to be kept another time, and leaves that were kept.
fn keep_held(
    cache: &PlanCache,
    (graph, order): (&mut Graph, &CaptureOrder),
    pending: &[&Tensor],
    given: &[Tensor],
) -> (Keeping, Vec<(NodeId, Tensor)>, Vec<(NodeId, Tensor)>) {
    let Some(device) = pending.first().map(|tensor| tensor.device()) else {
        return Default::default();
    };
    let matched = match_held(pending, given, (graph, order), cache.visit(), Some(&|_| true));
    let Some(Matched { held, mut tensors, kept_leaves, .. }) = matched else {
        return Default::default();
    };
    let Choice { kept, deferred, live_leaves } =
        keep::choose(graph, &graph.outputs, &held, device.caps());
    let nodes: FxHashSet<NodeId> = kept.iter().map(|kept| kept.node).collect();
    tensors.retain(|(node, _)| nodes.contains(node) || deferred.contains(node));
    graph.outputs.extend(kept.iter().map(|kept| kept.node));
    graph.kept = kept;
    (Keeping { asked: 0, held, deferred, live_leaves }, tensors, kept_leaves)
}

/// The names of the parameters among the leaves of a graph.
fn names_of_leaves(device: &Device, bindings: &Bindings) -> Vec<Option<Arc<str>>> {
    let named = device.attachment::<PlanCache>().names.all();
    if named.is_empty() {
        return Vec::new();
    }
    let names = named.iter().filter_map(|parameter| {
        let (value, name) = parameter.named_value()?;
        Some((value.value()?.key(), name))
    });
    let names: FxHashMap<usize, Arc<str>> = names.collect();
    bindings.leaves.iter().map(|leaf| names.get(&leaf.key()).cloned()).collect()
}

/// The names of the parameters that a plan of this graph gave their values, by output.
fn names_of_results(device: &Device, graph: &Arc<Graph>) -> Vec<(usize, Arc<str>)> {
    let named = device.attachment::<PlanCache>().names.all();
    let results = named.iter().filter_map(|parameter| {
        let (value, name) = parameter.named_value()?;
        let (origin, output) = value.value()?.origin::<Graph>()?;
        Arc::ptr_eq(&origin, graph).then_some((output, name))
    });
    results.collect()
}

/// Notes that a parameter on a device has a name.
pub(crate) fn note_name(device: &Device, parameter: &Param) {
    if Origin::KEPT {
        device.attachment::<PlanCache>().names.add(parameter);
    }
}

/// Gives the tensors their values, and those that are kept theirs.
fn set_values(
    device: &Device,
    plan: &Arc<Plan>,
    asked: &[&Tensor],
    found: &Found,
    buffers: Vec<Buffer>,
) {
    checks::inherit(plan.graph.as_deref(), &found.bindings, &buffers);
    for (output, buffer) in buffers.iter().enumerate() {
        if let Some(graph) = &plan.graph {
            buffer.set_origin(graph.clone(), output);
        }
    }
    checks::pass_to_kept(&found.kept, &buffers);
    for (output, tensor) in &found.kept {
        tensor.keep(buffers[*output].clone());
    }
    for (tensor, buffer) in asked.iter().zip(buffers) {
        tensor.set_value(buffer);
    }
    found.deferred.iter().for_each(Tensor::note_needed);
    if !found.kept.is_empty() {
        device.count_kept(found.kept.len());
        // State that is carried from step to step holds the history of a few steps.
        let length = found.outlived.iter().filter_map(Tensor::outlive).max().unwrap_or(0);
        found.kept.iter().for_each(|(_, tensor)| tensor.set_chain(length));
    }
}

/// Whether any of these depends on what has no value, as the examples of [`Tensor::vmap`].
pub(crate) fn any_unknown(tensors: &[&Tensor]) -> bool {
    let pending: Vec<&Tensor> = tensors.iter().copied().filter(|t| !t.is_realized()).collect();
    if pending.is_empty() {
        return false;
    }
    let bindings = capture(&pending, 0).1;
    bindings.unknown || bindings.unmoved && across::any_unknown(&pending)
}

/// Refuses to compute what depends on an example of `vmap` or an input of `Jit`.
#[track_caller]
fn refuse_no_value(unknown: bool, op: &'static str) -> Result<()> {
    if !unknown {
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
        let (mut graph, bindings, mut order) = capture_with_order(&[tensor], 0);
        graph.merge_twins(&mut order);
        refuse_no_value(bindings.unknown, "explain")?;
        if !bindings.unmoved {
            let cache = device.attachment::<PlanCache>();
            keep_held(&cache, (&mut graph, &order), &[tensor], &[]);
        }
        graph.origins.leaves = names_of_leaves(device, &bindings);
        refuse_impossible(&graph, "explain")?;
        return explain::explain(&graph, device, &[]);
    }
    let graph = tensor.known_value().and_then(|buffer| buffer.origin::<Graph>());
    let graph = graph.map(|(graph, _)| graph).unwrap_or_default();
    explain::explain(&graph, device, &names_of_results(device, &graph))
}

/// Whether a row of this name stands for operations of a graph.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn uses_row(graph: &Graph, device: &Device, name: &str) -> bool {
    let replaced = rows::replace(graph, device);
    replaced.is_some_and(|new| new.calls.iter().any(|call| call.name() == name))
}

/// The bytes of the arena of a graph's temporaries, and the most of them that are live at once.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn arena(graph: &Graph, device: &Device) -> (usize, usize) {
    Plan::arena(graph, device)
}

/// The naive kernels of a graph, in order, after long reductions were cut in pieces.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn kernels_in_pieces(graph: &Graph, device: &Device) -> Vec<crate::ir::Kernel> {
    kernels(split_reduction::split(graph, device).as_ref().unwrap_or(graph), device)
}

/// The naive kernels of a graph, in order.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn kernels(graph: &Graph, device: &Device) -> Vec<crate::ir::Kernel> {
    let kernel = |work| match work {
        item::ScheduleItem::Kernel(lowered) => vec![(*lowered.kernel).clone()],
        item::ScheduleItem::Call { call, .. } => {
            call.kernels().map(|kernel| (**kernel).clone()).collect()
        }
    };
    item::schedule(graph, device).items.into_iter().flat_map(kernel).collect()
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
