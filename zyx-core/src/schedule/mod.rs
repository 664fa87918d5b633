//! From a graph to launches.

use crate::error::Result;
use crate::graph::{capture, eval};
use crate::tensor::Tensor;

/// Computes `tensors`, which are pending.
pub(crate) fn realize(tensors: &[&Tensor]) -> Result<()> {
    let (graph, bindings) = capture(tensors);
    let mut leaves = vec![Vec::new(); bindings.leaves.len()];
    for id in graph.ids() {
        if let crate::graph::Node::Leaf { slot } = graph.node(id) {
            let buffer = &bindings.leaves[slot as usize];
            let mut bytes = vec![0; graph.shape(id).numel() * graph.dtype(id).size()];
            buffer.device().read(buffer, &mut bytes)?;
            leaves[slot as usize] = eval::scalars(graph.dtype(id), &bytes);
        }
    }
    let outputs = eval::evaluate(&graph, &leaves, &bindings.arguments);
    for (tensor, output) in tensors.iter().zip(outputs) {
        let bytes = eval::bytes(&output);
        let buffer = tensor.device().alloc(bytes.len())?;
        tensor.device().write(&buffer, &bytes)?;
        tensor.fulfil(buffer);
    }
    Ok(())
}
