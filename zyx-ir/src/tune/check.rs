//! Whether a candidate computes what the untuned kernel does: inputs and the comparison.
//!
//! Inputs are small multiples of an eighth, so sums and products of them are exact in any order,
//! and a sum that leaves a term out or takes one twice differs by far more than rounding. Outputs
//! agree bit for bit; floats may differ by rounding where a step of the trace reassociates: by
//! `2 √n` units in the last place of the largest value for sums of `n` terms, which is what
//! rounding errors of random sign add up to, and a few for ops merged into one.

use crate::dtype::DType;
use crate::ir::{Access, Kernel, LoopKind, Op};
use crate::scalar::Scalar;

/// Elements after which the contents of a buffer repeat; odd, so that rows differ.
const PERIOD: u64 = 65_521;

/// The contents of the buffer in a slot: ordinary numbers for floats, small ones for integers.
/// What a kernel only writes is filled too, with what no kernel computes.
pub fn contents(kernel: &Kernel, slot: usize) -> Vec<u8> {
    let info = kernel.params()[slot];
    let bytes = info.len as usize * info.dtype.size();
    if info.access == Access::Write {
        return vec![0xa5; bytes];
    }
    let mut state = 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(slot as u64 + 1);
    let mut period = Vec::new();
    for _ in 0..info.len.min(PERIOD) {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let random = state >> 33;
        let x = match info.dtype {
            DType::Bool => Scalar::from_i64(DType::Bool, (random % 2) as i64),
            dtype if dtype.is_int() => Scalar::from_i64(dtype, (random % 100) as i64),
            dtype => Scalar::from_f64(dtype, (random % 33) as f64 / 8.0 - 2.0),
        };
        period.extend_from_slice(&x.bits().to_le_bytes()[..info.dtype.size()]);
    }
    let mut all = Vec::with_capacity(bytes);
    while all.len() < bytes {
        all.extend_from_slice(&period[..period.len().min(bytes - all.len())]);
    }
    all
}

/// Values for the scalar arguments: the largest an integer takes, if that is a bound.
pub fn scalars(kernel: &Kernel) -> Vec<u64> {
    let value = |v: &crate::ir::VarInfo| match v.dtype {
        dtype if dtype.is_float() => Scalar::from_f64(dtype, 0.5),
        dtype if v.max < i64::from(i32::MAX) => Scalar::from_i64(dtype, v.max),
        dtype => Scalar::from_i64(dtype, v.min.max(1)),
    };
    kernel.vars().iter().map(|v| value(v).bits()).collect()
}

/// Whether two runs of a kernel agree in all that it writes: the buffers by slot, empty where it
/// only reads. `reassociates` if they may differ by rounding.
pub fn agree(kernel: &Kernel, a: &[Vec<u8>], b: &[Vec<u8>], reassociates: bool) -> bool {
    let bound = reassociates.then(|| relative_bound(kernel));
    kernel.params().iter().enumerate().all(|(slot, info)| {
        let (Some(a), Some(b)) = (a.get(slot), b.get(slot)) else { return false };
        a == b || a.len() == b.len() && bound.is_some_and(|bound| is_close(info.dtype, a, b, bound))
    })
}

/// The difference that rounding in another order makes, as a part of the largest value.
fn relative_bound(kernel: &Kernel) -> f64 {
    let (mut unit, mut terms, mut open) = (0.0f64, 1.0f64, vec![1.0f64]);
    let breaks = kernel.loops_with_break();
    for (v, op, ty) in kernel.iter() {
        let inner = open.last().copied().unwrap_or(1.0);
        match op {
            Op::Loop { kind: LoopKind::Serial, len, .. } => {
                let len = kernel.constant(len).filter(|_| !breaks.contains(&v));
                let n = len.map_or(1024.0, |c| c.to_f64().max(1.0));
                open.push(inner * n);
                terms = terms.max(inner * n);
            }
            Op::Loop { .. } | Op::If { .. } => open.push(inner),
            Op::End { .. } => drop(open.pop()),
            Op::Unary { .. } | Op::Binary { .. } | Op::Ternary { .. } | Op::Cast { .. } => {
                unit = unit.max(match ty.dtype {
                    DType::F16 => 2f64.powi(-10),
                    DType::BF16 => 2f64.powi(-7),
                    DType::F32 => 2f64.powi(-23),
                    DType::F64 => 2f64.powi(-52),
                    _ => 0.0,
                });
            }
            _ => {}
        }
    }
    unit * (8.0 + 2.0 * terms.sqrt())
}

fn is_close(dtype: DType, a: &[u8], b: &[u8], bound: f64) -> bool {
    if !dtype.is_float() {
        return false;
    }
    let (a, b) = (Scalar::read_all(dtype, a), Scalar::read_all(dtype, b));
    let sizes = a.iter().map(|x| x.to_f64().abs()).filter(|x| x.is_finite());
    let margin = bound * sizes.fold(0.0, f64::max);
    a.iter().zip(&b).all(|(a, b)| {
        let (a, b) = (a.to_f64(), b.to_f64());
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= margin
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::{property_tests, samples};

    fn outputs(kernel: &Kernel) -> Vec<Vec<u8>> {
        let all: Vec<_> = (0..kernel.params().len()).map(|slot| contents(kernel, slot)).collect();
        property_tests::run(kernel, &all, &scalars(kernel))
    }

    #[test]
    fn a_sum_that_leaves_out_a_term_does_not_agree() {
        let whole = samples::sum_rows(DType::F32, 40, 1000);
        let expected = outputs(&whole);
        assert!(agree(&whole, &expected, &expected, false));
        let text = whole.to_string();
        let short = text.replace("const 1000", "const 999");
        assert_ne!(text, short, "{text}");
        let short: Kernel = short.parse().unwrap();
        assert!(!agree(&whole, &expected, &outputs(&short), true));
    }

    #[test]
    fn rounding_agrees_only_where_it_may() {
        let kernel = samples::softmax(8, 100);
        let expected = outputs(&kernel);
        let mut other = expected.clone();
        let slot = kernel.params().iter().position(|p| p.access == Access::Write).unwrap();
        other[slot][0] ^= 1;
        assert!(agree(&kernel, &expected, &other, true));
        assert!(!agree(&kernel, &expected, &other, false));
        other[slot][2] ^= 0x40;
        assert!(!agree(&kernel, &expected, &other, true));
    }
}
