//! `fuse_muladd`: a product and the sum it goes into become one op.
//!
//! `x * y + z` rounds once instead of twice, so float results change in the last place; offered
//! only on devices where the fused op is at least as fast. A product that is used elsewhere too
//! stays; a subtracted product is fused if one factor is a constant to negate.

use super::loops::use_counts;
use super::rebuild::Rebuild;
use super::{Pass, Site};
use crate::dtype::DType;
use crate::ir::{Kernel, Op, Value};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "fuse_muladd",
    doc: "make a float product and sum one multiply-add",
    reassociates: true,
    sites: |_, caps| if caps.fast_fma { vec![Site::whole()] } else { Vec::new() },
    apply: |kernel, _| fuse_muladd(kernel),
};

/// Applies the pass.
pub fn fuse_muladd(kernel: &Kernel) -> Kernel {
    let uses = use_counts(kernel);
    let mut r = Rebuild::new(kernel);
    for (v, op, _) in kernel.iter() {
        match fused(kernel, &uses, &mut r, op, v) {
            Some(new) => r.set(v, new),
            None => {
                r.copy(v);
            }
        }
    }
    r.out.finish()
}

fn fused(k: &Kernel, uses: &[u32], r: &mut Rebuild<'_>, op: Op, v: Value) -> Option<Value> {
    let Op::Binary { op, x, y } = op else { return None };
    if !matches!(k.ty(v).dtype, DType::F32 | DType::F64) {
        return None;
    }
    let product = |v: Value| match k.op(v) {
        Op::Binary { op: BinaryOp::Mul, x, y } if uses[v.idx()] == 1 => Some((x, y)),
        _ => None,
    };
    match op {
        BinaryOp::Add => {
            let (factors, z) = match (product(x), product(y)) {
                (Some(factors), _) => (factors, y),
                (None, Some(factors)) => (factors, x),
                (None, None) => return None,
            };
            let (a, b, z) = (r.get(factors.0), r.get(factors.1), r.get(z));
            Some(r.out.ternary(TernaryOp::MulAdd, a, b, z))
        }
        // A negation costs what is saved, unless it is one of a constant.
        BinaryOp::Sub => {
            let (a, b) = product(y)?;
            let (a, b) = if k.constant(a).is_some() { (b, a) } else { (a, b) };
            k.constant(b)?;
            let (a, b, z) = (r.get(a), r.get(b), r.get(x));
            let b = r.out.unary(UnaryOp::Neg, b);
            Some(r.out.ternary(TernaryOp::MulAdd, a, b, z))
        }
        _ => None,
    }
}
