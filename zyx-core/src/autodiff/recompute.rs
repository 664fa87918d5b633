//! For bindings that compute a region of a program again for its gradient.

use super::tape::Tape;
use crate::error::Result;
use crate::tensor::{Tensor, behind};

/// The ids of the trainable parameters that a tensor was computed from, each once.
pub fn parameters(tensor: &Tensor) -> Vec<u32> {
    let tape = Tape::record_params(tensor);
    let mut ids: Vec<u32> =
        tape.entries.reversed().map(|(_, entry)| entry.tensor.param_id()).collect();
    ids.retain(|&id| id != 0 && id != u32::MAX);
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The same values, such that a function of them is computed again, and not before the gradient `dy` is there.
///
/// # Errors
/// When an input holds no floats.
pub fn inputs(inputs: &[Tensor], dy: &Tensor) -> Result<Vec<Tensor>> {
    behind(inputs, dy)
}
