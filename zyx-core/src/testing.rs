//! What the test suite needs of the core's inside; exported under the feature `testing` only.

mod null;

use crate::error::{Error, Result};
use crate::graph::{Bindings, Graph, Node, capture, eval};
use crate::ir::Kernel;
use crate::runtime::Device;
use crate::scalar::Scalar;
use crate::schedule::{self, Explanation};
use crate::tensor::Tensor;
use std::ops::Range;
use std::panic::Location;
use zyx_ir::testing::Rng;

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

/// Checks the law of rows for one that is registered at the device of these tensors: for inputs of their dtypes and shapes, the
/// row gives the values that the `operations` have without it. Call it for several shapes, with a new device.
///
/// Of each input a seed chooses floats that are ordinary, multiples of an eighth, half of them zeros, or large, of both signs;
/// integers and booleans are those of the tensor. Floats may differ by the rounding of `n` terms in any order,
/// `8 + 2 √n` units in the last place of the largest float among inputs and results; `n` is the number of elements of the largest input.
///
/// # Errors
/// [`Error::Argument`] with the seed and the first element that differs, or if the row does not apply; and as for the operations.
#[track_caller]
pub fn check_row(
    row: &str,
    operations: impl Fn(&[Tensor]) -> Result<Tensor>,
    like: &[&Tensor],
    seeds: Range<u64>,
) -> Result<()> {
    let location = Location::caller();
    for seed in seeds {
        let mut rng = Rng(seed);
        let inputs: Vec<Tensor> =
            like.iter().map(|x| random_like(x, &mut rng)).collect::<Result<_>>()?;
        let y = operations(&inputs)?;
        let describe = |x: &Tensor| format!("{} {}", x.dtype(), x.shape());
        let given: Vec<String> = inputs.iter().map(describe).collect();
        let error = |reason: &str| {
            let given = given.join(", ");
            let reason = format!("row `{row}`, seed {seed}, inputs {given}: {reason}");
            Err(Error::Argument { op: "check_row", reason, location })
        };
        let (graph, bindings) = capture(&[&y], 0);
        if !schedule::uses_row(&graph, y.device(), row) {
            return error("it does not apply to the operations");
        }
        let expected = values(&graph, &bindings)?.remove(0);
        y.realize()?;
        let found = evaluate(&[&y])?.remove(0);
        let floats: Vec<&Tensor> = inputs.iter().filter(|x| x.dtype().is_float()).collect();
        let unit = floats.iter().chain([&&y]).map(|x| unit_in_last_place(x)).fold(0.0, f64::max);
        let terms = inputs.iter().map(Tensor::numel).max().unwrap_or(1) as f64;
        let known = evaluate(&floats)?.into_iter().flatten();
        let sizes = known.chain(expected.iter().copied()).map(|x| x.to_f64().abs());
        let largest = sizes.filter(|x| x.is_finite()).fold(0.0, f64::max);
        let margin = unit * (8.0 + 2.0 * terms.sqrt()) * largest;
        for (i, (a, b)) in expected.iter().zip(&found).enumerate() {
            let (x, z) = (a.to_f64(), b.to_f64());
            let is_close = x == z || x.is_nan() && z.is_nan() || (x - z).abs() <= margin;
            if a != b && !(y.dtype().is_float() && is_close) {
                let of = describe(&y);
                return error(&format!("element {i} of {of} is {z}, and {x} without the row"));
            }
        }
    }
    Ok(())
}

/// The distance of 1 from the next number of a tensor's dtype.
fn unit_in_last_place(x: &Tensor) -> f64 {
    let rounded = |y: f64| Scalar::from_f64(x.dtype(), y).to_f64();
    let mut unit = 1.0;
    while rounded(1.0 + unit / 2.0) > 1.0 {
        unit /= 2.0;
    }
    unit
}

/// Random floats with the dtype, shape and device of a tensor, or the tensor itself; see [`check_row`].
fn random_like(x: &Tensor, rng: &mut Rng) -> Result<Tensor> {
    let (dtype, kind) = (x.dtype(), rng.below(4));
    if !dtype.is_float() {
        return Ok(x.clone());
    }
    let mut bytes = Vec::with_capacity(x.numel() * dtype.size());
    for _ in 0..x.numel() {
        let eighth = rng.below(129) as f64 / 8.0 - 8.0;
        let element = match kind {
            0 => Scalar::from_f64(dtype, eighth),
            1 => Scalar::from_f64(dtype, rng.below(1 << 20) as f64 / 262_144.0 - 2.0),
            2 => Scalar::from_f64(dtype, if rng.below(2) == 0 { 0.0 } else { eighth }),
            _ => Scalar::from_f64(dtype, eighth / unit_in_last_place(x).sqrt()),
        };
        bytes.extend_from_slice(&element.bits().to_le_bytes()[..dtype.size()]);
    }
    Tensor::from_bytes(&bytes, dtype, x.shape().clone(), x.device())
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
