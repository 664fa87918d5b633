//! `fuse_muladd`: a product and the accumulator it is added to become one op.
//!
//! `x * y + acc` rounds once instead of twice, so float results change in the last place; offered
//! only on devices where the fused op is at least as fast. A product that is used elsewhere too
//! stays.
//!
//! Only accumulators are fused: the value of a reduction is computed by one kernel. What several
//! kernels may compute has to round alike in each; where its products and sums are fused was
//! decided when the kernels were made.

use super::loops::use_counts;
use super::rebuild::Rebuild;
use super::{Pass, Site};
use crate::dtype::DType;
use crate::ir::{Kernel, Op, Space, Value};
use crate::ops::{BinaryOp, TernaryOp};
use rustc_hash::FxHashSet;

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "fuse_muladd",
    doc: "make a product and the addition to an accumulator one multiply-add",
    reassociates: true,
    sites: |_, caps| if caps.fast_fma { vec![Site::whole()] } else { Vec::new() },
    apply: |kernel, _| fuse_muladd(kernel),
};

/// Applies the pass.
pub fn fuse_muladd(kernel: &Kernel) -> Kernel {
    let uses = use_counts(kernel);
    let updates = updates(kernel);
    let mut r = Rebuild::new(kernel);
    for (v, op, _) in kernel.iter() {
        match fused(kernel, &uses, &updates, &mut r, op, v) {
            Some(new) => r.set(v, new),
            None => {
                r.copy(v);
            }
        }
    }
    r.out.finish()
}

/// The storage in registers that each value is stored to.
fn updates(k: &Kernel) -> FxHashSet<(Value, Value)> {
    let stored = |op| match op {
        Op::Store { buf, value, .. } if in_registers(k, buf) => Some((buf, value)),
        _ => None,
    };
    k.iter().filter_map(|(_, op, _)| stored(op)).collect()
}

fn in_registers(k: &Kernel, buf: Value) -> bool {
    matches!(k.op(buf), Op::Alloc { space: Space::Register, .. })
}

fn fused(
    k: &Kernel,
    uses: &[u32],
    updates: &FxHashSet<(Value, Value)>,
    r: &mut Rebuild<'_>,
    op: Op,
    v: Value,
) -> Option<Value> {
    let Op::Binary { op: BinaryOp::Add, x, y } = op else { return None };
    if !matches!(k.ty(v).dtype, DType::F32 | DType::F64) {
        return None;
    }
    let product = |v: Value| match k.op(v) {
        Op::Binary { op: BinaryOp::Mul, x, y } if uses[v.idx()] == 1 => Some((x, y)),
        _ => None,
    };
    let accumulates = |old: Value| match k.op(old) {
        Op::Load { buf, .. } => updates.contains(&(buf, v)),
        _ => false,
    };
    let ((a, b), z) = match (product(x), product(y)) {
        (Some(factors), _) if accumulates(y) => (factors, y),
        (_, Some(factors)) if accumulates(x) => (factors, x),
        _ => return None,
    };
    let (a, b, z) = (r.get(a), r.get(b), r.get(z));
    Some(r.out.ternary(TernaryOp::MulAdd, a, b, z))
}
