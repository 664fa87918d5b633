//! What the test suite needs of the core's inside; exported under the feature `testing` only.

mod null;

use crate::error::Result;
use crate::graph::{Bindings, Graph, Node, capture, eval};
use crate::ir::Kernel;
use crate::runtime::Device;
use crate::scalar::Scalar;
use crate::schedule::{self, Explanation};
use crate::tensor::Tensor;

pub use crate::ir::generate;
pub use crate::passes::samples;
pub use crate::runtime::Optimizer;
pub use null::{Null, NullDevice};
pub use zyx_ir::testing::rewritten;

/// The elements of `tensors` by the graph evaluator: what they mean, independent of scheduling,
/// lowering, passes and devices (leaves are read from their device).
///
/// # Errors
/// When a leaf cannot be read.
pub fn evaluate(tensors: &[&Tensor]) -> Result<Vec<Vec<Scalar>>> {
    let (graph, bindings) = capture(tensors, 0);
    values(&graph, &bindings)
}

/// The elements of the outputs of a graph.
pub(crate) fn values(graph: &Graph, bindings: &Bindings) -> Result<Vec<Vec<Scalar>>> {
    let mut leaves = vec![Vec::new(); bindings.leaves.len()];
    for id in graph.ids() {
        if let Node::Leaf { slot } = graph.node(id) {
            let buffer = &bindings.leaves[slot as usize];
            let mut bytes = vec![0; graph.shape(id).numel() * graph.dtype(id).size()];
            buffer.device().read(buffer, &mut bytes)?;
            leaves[slot as usize] = Scalar::read_all(graph.dtype(id), &bytes);
        }
    }
    Ok(eval::evaluate(graph, &leaves, &bindings.arguments))
}

/// From now on kernels of other sizes share programs on this device as they do on a GPU.
pub fn keep_lengths(device: &Device) {
    device.keep_lengths();
}

/// The bytes of the arena in which the temporaries of computing `tensors` lie, and the most of them
/// that are live at once.
pub fn arena(tensors: &[&Tensor]) -> (usize, usize) {
    let Some(first) = tensors.first() else { return (0, 0) };
    let (graph, _) = capture(tensors, 0);
    schedule::arena(&graph, first.device())
}

/// The naive kernels that computing `tensors` takes, in order, epilogues of library calls
/// included.
pub fn kernels(tensors: &[&Tensor]) -> Vec<Kernel> {
    let Some(first) = tensors.first() else { return Vec::new() };
    let (graph, _) = capture(tensors, 0);
    schedule::kernels(&graph, first.device())
}

/// As [`kernels`], after long reductions, scans and scatters were cut in pieces as a plan cuts them.
pub fn kernels_in_pieces(tensors: &[&Tensor]) -> Vec<Kernel> {
    let Some(first) = tensors.first() else { return Vec::new() };
    let (graph, _) = capture(tensors, 0);
    schedule::kernels_in_pieces(&graph, first.device())
}

/// The launches that computing `tensors` of a device takes, with the time predicted of each.
///
/// # Errors
/// When the device fails.
pub fn explain(tensors: &[&Tensor], device: &Device) -> Result<Explanation> {
    schedule::explain::explain(&capture(tensors, 0).0, device, &[])
}

/// What a method of that name (`qr`, `eigh`, `svd`, `svdvals`, `cholesky`, `solve`) gives where a group of threads
/// has a matrix, also on devices where the host is faster: each factor as matrices, `v` as
/// columns; `None` where groups of the device's threads cannot. `solve` is of the matrices themselves.
///
/// # Errors
/// When the device fails.
pub fn grouped(x: &Tensor, op: &str) -> Result<Option<Vec<Tensor>>> {
    x.grouped(op)
}

/// The interpreter as a device.
#[cfg(test)]
pub(crate) fn device() -> Device {
    crate::runtime::Runtime::default().device("reference").expect("it is always there")
}
