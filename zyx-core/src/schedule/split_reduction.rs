//! Splitting long contractions of few results for devices of many threads.
//!
//! The gradient of a convolution's weight sums over every pixel of a batch and has few results:
//! blocks of results alone would leave most of a GPU idle. Its sum is cut into pieces, partial
//! results are stored, and a second kernel adds them, together with whatever follows. The pieces
//! are added in order, so results do not depend on chance. How many there are follows from what the
//! tuner's model of blocks says of the device, and from the bytes of partial results; contractions that its library computes are left to it unless they have but a few blocks:
//! cuBLASLt takes one of 64 by 128 results and 9216 steps 80 microseconds.

use super::contract::recognize;
use super::convolution;
use super::pull::Indices;
use super::strategies::{scatter, single_pass_scan};
use crate::dtype::DType;
use crate::graph::{
    Cut, Graph, Node, NodeId, axes_of, fuse_calls, number_assignments, number_calls,
    split_reductions, split_scans, split_scatters, split_where,
};
use crate::hal::{Call, Caps, ContractDim, ContractSpec};
use crate::ops::BinaryOp;
use crate::runtime::Device;
use crate::tune::step_time;

/// Groups of a reduction that a multiprocessor should have.
const GROUPS: usize = 2;
/// Rows and columns of a library's block, and blocks up to which a library's contraction is cut, too, if it has so many steps.
const BLOCK: usize = 64;
const FEW: usize = 4;
const LONG_IN_LIBRARY: usize = 4096;
/// Times that a result's sum may read each element: beyond, a library is sooner done (on an H200 cuBLASLt took 0.9 ms
/// for 13 columns of 10 M rows by 13 others, sums in pieces 27 ms for 8 columns of 17 M rows).
const READ_AGAIN: usize = 2;
/// Shortest sum worth cutting, and shortest piece.
const LONG: usize = 512;
const SHORTEST: usize = 96;
/// Most pieces, multiply-adds that a multiprocessor has time for while it stores and loads a partial
/// result, and the part of the time that is left where cutting pays.
const MOST: usize = 256;
const STORED: f64 = 80.0;
const GAIN: f64 = 0.8;
/// Steps of blocks that are computed together.
const DEPTH: usize = 16;
/// Fewest rows and columns of what is computed in blocks.
const MIN_SIDE: usize = 16;
/// Fewest threads of a device that computes contractions in blocks.
const MIN_THREADS: usize = 1 << 12;

/// The graph with the kernels of registered rows in the place of operations, with long scatters and scans, large reductions, and with such contractions, in
/// pieces; `None` if there is none.
pub(super) fn split(graph: &Graph, device: &Device) -> Option<Graph> {
    let caps = device.caps();
    let many_threads = !caps.has_few_threads();
    let (threads, groups) = match many_threads {
        true => (caps.threads, caps.multiprocessors() * GROUPS),
        false => (0, 0),
    };
    let ordered = |op, dtype| !scatter::is_unordered(caps, op, dtype);
    let replaced = super::rows::replace(graph, device);
    let graph = replaced.as_ref().unwrap_or(graph);
    let fused = fuse_calls(graph, caps);
    let graph = fused.as_ref().unwrap_or(graph);
    let called = number_calls(graph);
    let graph = called.as_ref().unwrap_or(graph);
    let numbers = many_threads && scatter::is_unordered(caps, BinaryOp::Max, DType::I32);
    let numbered = numbers.then(|| number_assignments(graph, threads)).flatten();
    let graph = numbered.as_ref().unwrap_or(graph);
    let scatters = split_scatters(graph, many_threads, ordered);
    let graph = scatters.as_ref().unwrap_or(graph);
    let looking = single_pass_scan::prepare(graph, device);
    let graph = looking.as_ref().unwrap_or(graph);
    let scans = split_scans(graph, threads);
    let graph = scans.as_ref().unwrap_or(graph);
    let mut indices = Indices::default();
    // Products of few rows and columns that the library of a GPU computes: it cuts them by itself. On two cores
    // pieces are faster (8 columns of 1 M rows: 1.6 ms, the library 3.2) and their sums more exact.
    let in_library = |id| {
        if !many_threads {
            return false;
        }
        let spec = recognize(graph, &mut indices, id).map(|found| found.spec);
        spec.filter(is_read_again).is_some_and(|spec| {
            device.offers(&Call::Contract { spec, prologue: None, epilogue: None })
        })
    };
    let reductions = split_reductions(graph, groups, in_library);
    let split = split_contractions(reductions.as_ref().unwrap_or(graph), device).or(reductions);
    split.or(scans).or(looking).or(scatters).or(numbered).or(called).or(fused).or(replaced)
}

fn split_contractions(graph: &Graph, device: &Device) -> Option<Graph> {
    let caps = device.caps();
    if !caps.simt || caps.threads < MIN_THREADS {
        return None;
    }
    let mut indices = Indices::default();
    split_where(graph, |id| {
        let (spec, cut) = cut(graph, &mut indices, id, caps)?;
        if convolution::is_offered(graph, &mut indices, id, device) {
            return None;
        }
        let few = blocks(&spec) <= FEW && merged(&spec.k) >= LONG_IN_LIBRARY;
        (few || !device.offers(&Call::Contract { spec, prologue: None, epilogue: None }))
            .then_some(cut)
    })
}

/// Whether sums of single results would read each element more than [`READ_AGAIN`] times.
fn is_read_again(spec: &ContractSpec) -> bool {
    let (rows, columns) = (merged(&spec.m), merged(&spec.n));
    2 * rows * columns > READ_AGAIN * (rows + columns)
}

fn merged(dims: &[ContractDim]) -> usize {
    dims.iter().map(|dim| dim.len).product()
}

/// Blocks of results in a library.
fn blocks(spec: &ContractSpec) -> usize {
    merged(&spec.m).div_ceil(BLOCK) * merged(&spec.n).div_ceil(BLOCK) * merged(&spec.batch)
}

/// The axis to cut and into how many pieces, if the node is a contraction that pieces compute sooner.
fn cut(
    graph: &Graph,
    indices: &mut Indices,
    id: NodeId,
    caps: &Caps,
) -> Option<(ContractSpec, Cut)> {
    let Node::Reduce { axes, x, .. } = graph.node(id) else { return None };
    let shape = graph.shape(x).clone();
    let axes: Vec<usize> = axes_of(axes).collect();
    let steps: usize = axes.iter().map(|&axis| shape[axis]).product();
    if steps < LONG || shape.rank() > 15 {
        return None;
    }
    let spec = recognize(graph, indices, id)?.spec;
    if merged(&spec.m).min(merged(&spec.n)) < MIN_SIDE {
        return None;
    }
    let [batch, rows, columns] = [&spec.batch, &spec.m, &spec.n].map(|dims| merged(dims));
    let stored = STORED * (batch * rows * columns) as f64 / caps.multiprocessors().max(1) as f64;
    let time = |length: usize, extent: usize| {
        let (pieces, apart) = (extent / length, extent % length);
        let parts = pieces + usize::from(apart > 0);
        let step = |pieces: usize| step_time([batch * pieces, rows, columns], caps);
        let partial = if parts > 1 { stored * parts as f64 } else { 0.0 };
        let around = (steps / extent) as f64;
        let rest = if apart > 0 { step(1) * apart as f64 } else { 0.0 };
        around * (step(pieces) * length as f64 + rest) + partial
    };
    let most = MOST.min(steps / SHORTEST);
    // The outermost axis of several, and the fewest pieces. Where they are not equal, they are whole steps of blocks.
    let choices = axes.into_iter().flat_map(|axis| {
        let extent = shape[axis];
        (2..=most.min(extent)).map(move |pieces| {
            let length = extent / pieces;
            let whole = extent.is_multiple_of(pieces) || length < DEPTH;
            (axis, if whole { length } else { length / DEPTH * DEPTH })
        })
    });
    let ((axis, length), least) = choices
        .map(|choice| (choice, time(choice.1, shape[choice.0])))
        .min_by(|a, b| a.1.total_cmp(&b.1).then(b.0.1.cmp(&a.0.1)))?;
    let cut = Cut { first: axis, axis, length, apart: true };
    (least < GAIN * time(shape[axis], shape[axis])).then_some((spec, cut))
}
