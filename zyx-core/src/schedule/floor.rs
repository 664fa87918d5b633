//! The least time that a graph, or a launch, takes on a device: what memory or arithmetic needs.
//!
//! Every input is read once and every output written once, by the bytes that the device moves in a
//! nanosecond; every operation is done once for each element that differs from the others, by the
//! operations that it does. A plan cannot be faster. How much slower it is predicted to be tells
//! which kernels to look at ([`predict`]).

use super::cost::of_op;
use super::item::{Launch, ScheduleItem};
use super::lower::{Lowered, Var};
use crate::dtype::DType;
use crate::graph::{Graph, Node, NodeId};
use crate::hal::{Call, Caps, ContractDim, ContractSpec};
use crate::ir::Access;
use crate::ops::BinaryOp;
use crate::tune::model::{self, Rates};
use rustc_hash::FxHashSet;

/// Part of a device's speed that its library reaches.
const LIBRARY: f64 = 0.7;

/// Nanoseconds that the outputs of a graph take at least.
pub(crate) fn least(graph: &Graph, caps: &Caps) -> f64 {
    let rates = Rates::of(caps);
    let numel = |id: NodeId| graph.shape(id).numel() as f64;
    let bytes = |id: NodeId| graph.dtype(id).size() as f64;
    // Elements that differ from one another, elements of it that are used, and products that are
    // added up by the one user.
    let mut distinct: Vec<f64> = Vec::with_capacity(graph.len());
    let mut used = vec![0.0f64; graph.len()];
    let mut added = vec![false; graph.len()];
    for id in graph.ids().rev() {
        let node = graph.node(id);
        if graph.outputs.contains(&id) {
            used[id.idx()] = numel(id);
        }
        let needed = used[id.idx()];
        for x in node.sources() {
            let of_x = match node {
                Node::Reshape { .. } | Node::Permute { .. } | Node::Flip { .. } => needed,
                Node::Shrink { .. } => needed,
                Node::Gather { x: from, .. } if from == x => needed,
                _ => numel(x),
            };
            used[x.idx()] = (used[x.idx()] + of_x).min(numel(x));
        }
        if let Node::Reduce { op: BinaryOp::Add, x, .. } = node {
            added[x.idx()] = true;
        }
    }
    let (mut moved, mut operations, mut products) = (0.0, 0.0, 0.0);
    for id in graph.ids() {
        let node = graph.node(id);
        let known = |x: NodeId| distinct[x.idx()];
        let n = match node {
            Node::Leaf { .. } => numel(id),
            Node::Const { .. } | Node::Argument { .. } => 1.0,
            Node::Expand { x } => known(x),
            _ => node.sources().map(known).product::<f64>().max(1.0),
        };
        let n = n.min(numel(id));
        distinct.push(n);
        match node {
            Node::Leaf { .. } => moved += used[id.idx()] * bytes(id),
            Node::Binary { op: BinaryOp::Mul, x, y } if added[id.idx()] => {
                let halves = [x, y].map(|x| comes_from_halves(graph, x));
                *if halves == [true; 2] { &mut products } else { &mut operations } += n;
            }
            Node::Reduce { x, .. } if !is_product(graph, x) => operations += distinct[x.idx()],
            Node::Scan { .. } | Node::Recurrence { .. } => operations += n,
            Node::Gather { .. } => operations += n,
            // Two and a half for each part and bit of the length.
            Node::Fourier { .. } => operations += 2.5 * n * (graph.shape(id)[1] as f64).log2(),
            _ if node.is_elementwise() => operations += n * f64::from(of_op(&node)),
            _ => {}
        }
    }
    moved += graph.outputs.iter().map(|&id| numel(id) * bytes(id)).sum::<f64>();
    let arithmetic = operations / rates.operations + products / rates.products;
    (moved / rates.bytes).max(arithmetic) + rates.launch
}

fn is_half(dtype: DType) -> bool {
    dtype.is_float() && dtype.size() == 2
}

/// Whether a value is one of halves, which may be widened.
fn comes_from_halves(graph: &Graph, mut x: NodeId) -> bool {
    while let Node::Cast { x: source }
    | Node::Reshape { x: source }
    | Node::Permute { x: source, .. }
    | Node::Expand { x: source } = graph.node(x)
    {
        x = source;
    }
    is_half(graph.dtype(x))
}

fn is_product(graph: &Graph, x: NodeId) -> bool {
    matches!(graph.node(x), Node::Binary { op: BinaryOp::Mul, .. })
}

/// Nanoseconds that items are predicted to take one after the other.
pub(super) fn predict_items(graph: &Graph, items: &[ScheduleItem], caps: &Caps) -> f64 {
    items.iter().map(|item| of_work(graph, item, caps)).sum()
}

/// Nanoseconds that reading and writing the buffers of items, each once, takes at least.
pub(super) fn least_of_items(graph: &Graph, items: &[ScheduleItem], caps: &Caps) -> f64 {
    let mut seen = FxHashSet::default();
    let buffers = items.iter().flat_map(ScheduleItem::accesses).filter(|&(id, _)| seen.insert(id));
    let bytes: usize =
        buffers.map(|(id, _)| graph.shape(id).numel() * graph.dtype(id).size()).sum();
    let rates = Rates::of(caps);
    bytes as f64 / rates.bytes + rates.launch
}

/// Nanoseconds that a launch is predicted to take.
pub(super) fn predict(graph: &Graph, launch: &Launch, caps: &Caps) -> f64 {
    match launch {
        Launch::Item(item) => of_work(graph, item, caps),
        Launch::Fused { items, .. } => items.iter().map(|item| of_work(graph, item, caps)).sum(),
    }
}

fn of_work(graph: &Graph, item: &ScheduleItem, caps: &Caps) -> f64 {
    match item {
        // No kernel is faster than memory and arithmetic allow, whatever is known of its passes.
        ScheduleItem::Kernel(lowered) if lowered.kernel.has_extents() => at_sizes(lowered, caps),
        ScheduleItem::Kernel(lowered) => {
            let predicted = model::predict(&crate::tune::optimize(&lowered.kernel, caps), caps);
            predicted.max(model::least(&lowered.kernel, caps))
        }
        ScheduleItem::Call { .. } => {
            let launch = Rates::of(caps).launch;
            (least_of_item(graph, item, caps) - launch) / LIBRARY + launch
        }
    }
}

/// Nanoseconds that a kernel for all sizes is predicted to take at those of a launch.
fn at_sizes(lowered: &Lowered, caps: &Caps) -> f64 {
    let known = |var: &Var| match *var {
        Var::Known(x) => x as u64,
        Var::Argument(_) => 0,
    };
    let values: Vec<u64> = lowered.vars.iter().map(known).collect();
    let Ok(sized) = lowered.kernel.sized(&values) else { return 0.0 };
    let lens: Vec<u64> = sized.params().iter().map(|info| info.len).collect();
    model::predict_at(&sized, &values, &lens, caps)
}

/// Nanoseconds that a launch takes at least.
pub(super) fn least_of_unit(graph: &Graph, launch: &Launch, caps: &Caps) -> f64 {
    match launch {
        Launch::Item(item) => least_of_item(graph, item, caps),
        Launch::Fused { items, .. } => {
            items.iter().map(|item| least_of_item(graph, item, caps)).sum()
        }
    }
}

fn least_of_item(graph: &Graph, item: &ScheduleItem, caps: &Caps) -> f64 {
    let call = match item {
        ScheduleItem::Kernel(lowered) if lowered.kernel.has_extents() => None,
        ScheduleItem::Kernel(lowered) => return model::least(&lowered.kernel, caps),
        ScheduleItem::Call { call, .. } => Some(&**call),
    };
    let rates = Rates::of(caps);
    let buffer = |(id, access): (NodeId, Access)| {
        let times = if access == Access::ReadWrite { 2.0 } else { 1.0 };
        times * graph.shape(id).numel() as f64 * graph.dtype(id).size() as f64
    };
    let bytes: f64 = item.accesses().into_iter().map(buffer).sum();
    // Of halves by matrix instructions; those of `f32` round as products alone do.
    let (products, halves) = match call {
        Some(Call::Contract { spec, .. }) => {
            (multiplications(spec), is_half(spec.a) && is_half(spec.b))
        }
        Some(Call::Convolve(spec)) => (spec.multiplications(), is_half(spec.operands)),
        Some(Call::Attend(spec)) => (spec.multiplications(), is_half(spec.dtype)),
        Some(Call::Flash { spec, .. }) => {
            (spec.multiplications(), spec.operands().all(|operand| is_half(operand.dtype)))
        }
        Some(Call::Raw(_) | Call::Fused { .. }) | None => (0.0, false),
    };
    let rate = if halves { rates.products } else { rates.operations };
    (bytes / rates.bytes).max(products / rate) + rates.launch
}

/// Multiply-adds of a contraction.
pub(super) fn multiplications(spec: &ContractSpec) -> f64 {
    let product = |dims: &[ContractDim]| dims.iter().map(|d| d.len as f64).product::<f64>();
    [&spec.batch, &spec.m, &spec.n, &spec.k].map(|dims| product(dims)).iter().product()
}
