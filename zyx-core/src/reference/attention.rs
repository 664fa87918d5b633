//! Scaled dot-product attention as libraries compute it: one call, and one number of a row.

use super::driver;
use crate::dtype::DType;
use crate::hal::{AttentionSpec, DeviceError};
use crate::ir::interp::Binding;
use crate::scalar::Scalar;

/// The tensors of a call in memory.
struct Tensors<'a, 'b> {
    spec: &'a AttentionSpec,
    memory: &'a mut [&'b mut [u8]],
    places: &'a [Binding],
}

impl Tensors<'_, '_> {
    /// The bytes of an element.
    fn element(&mut self, tensor: usize, index: [usize; 4]) -> Result<&mut [u8], DeviceError> {
        let steps = index.iter().zip(self.spec.strides[tensor]).map(|(i, stride)| i * stride);
        let place = self.spec.offsets[tensor] + steps.sum::<usize>();
        let size = self.spec.dtype_of(tensor).size();
        let Binding { buffer, offset } = self.places[tensor];
        let first = offset + place * size;
        let bytes = self.memory[buffer].get_mut(first..first + size);
        bytes.ok_or_else(|| driver("launch", format!("tensor {tensor} ends before {index:?}")))
    }

    fn get(&mut self, tensor: usize, index: [usize; 4]) -> Result<f64, DeviceError> {
        let dtype = self.spec.dtype_of(tensor);
        let bytes = self.element(tensor, index)?;
        let bits = bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
        Ok(Scalar::from_bits(dtype, bits).to_f64())
    }

    fn set(&mut self, tensor: usize, index: [usize; 4], x: f64) -> Result<(), DeviceError> {
        let bits = Scalar::from_f64(self.spec.dtype_of(tensor), x).bits();
        let bytes = self.element(tensor, index)?;
        bytes.copy_from_slice(&bits.to_le_bytes()[..bytes.len()]);
        Ok(())
    }
}

/// Runs a call. Scores are rounded to `f32`, results and logarithms once.
pub(super) fn attend(
    spec: &AttentionSpec,
    (memory, places): (&mut [&mut [u8]], &[Binding]),
    vars: &[u64],
) -> Result<(), DeviceError> {
    let (&[scale], true) = (vars, places.len() == spec.buffers()) else {
        return Err(driver("launch", "attention has its tensors and one scalar".to_owned()));
    };
    let scale = Scalar::from_bits(DType::F32, scale).to_f64();
    let mut tensors = Tensors { spec, memory, places };
    for n in 0..spec.batch * spec.heads * spec.queries {
        let (i, n) = (n % spec.queries, n / spec.queries);
        let (h, b) = (n % spec.heads, n / spec.heads);
        let g = h / (spec.heads / spec.key_heads);
        let keys = if spec.causal { spec.keys.min(i + 1) } else { spec.keys };
        let mut scores = Vec::new();
        for j in 0..keys {
            let mut product = 0.0;
            for e in 0..spec.width {
                product += tensors.get(0, [b, h, i, e])? * tensors.get(1, [b, g, j, e])?;
            }
            scores.push(f64::from((product * scale) as f32));
        }
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = scores.iter().map(|score| (score - top).exp()).sum();
        for e in 0..spec.value_width {
            let mut result = 0.0;
            for (j, score) in scores.iter().enumerate() {
                result += (score - top).exp() / sum * tensors.get(2, [b, g, j, e])?;
            }
            tensors.set(AttentionSpec::RESULT, [b, h, i, e], result)?;
        }
        if spec.logarithms {
            tensors.set(AttentionSpec::RESULT + 1, [b, h, i, 0], top + sum.ln())?;
        }
    }
    Ok(())
}
