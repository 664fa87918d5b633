//! `vectorize`: runs consecutive iterations of a loop in the lanes of vectors.
//!
//! Works on parallel loops, those with inner loops included (their register storage becomes
//! vector storage), and on serial reductions (accumulators become vectors that start at the
//! identity and are folded after the loop, which reassociates float sums). Uniform values stay
//! scalar; an index that grows by one per iteration becomes a scalar index of a vector access,
//! any other index a gather or scatter where the device has them. The last, incomplete vector is
//! one masked iteration, or a scalar loop on devices without masks.
//!
//! The lane count is chosen so that every vector fits one register of the device, but for the `i64`
//! numbers of lanes that a mask of halves is made of.

use super::loops::{LoopInfo, find_loop, loops};
use super::rebuild::Rebuild;
use super::variance::{Form, Variance, is_private};
use super::{Pass, Site};
use crate::caps::Caps;
use crate::dtype::DType;
use crate::ir::{Kernel, Op, Space, Type, Value};
use crate::ops::BinaryOp;
use crate::scalar::Scalar;

mod emit;

use emit::Emit;

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "vectorize",
    doc: "run consecutive iterations of a loop in vector lanes",
    reassociates: true,
    sites,
    apply,
};

/// Sites carry two parameters: lanes, and 1 if the device masks lanes; 2 if it does, and as many `i32` do
/// not fit a register.
fn sites(kernel: &Kernel, caps: &Caps) -> Vec<Site> {
    if caps.vector_bytes == 0 {
        return Vec::new();
    }
    loops(kernel).iter().filter_map(|l| site(kernel, l, caps)).collect()
}

/// The site of one loop, with the widest vectors that fit the device.
pub fn site(kernel: &Kernel, l: &LoopInfo, caps: &Caps) -> Option<Site> {
    analyse(kernel, l, caps).map(|(site, _)| site)
}

/// [`site`] with what was learnt of the loop.
pub fn analyse(kernel: &Kernel, l: &LoopInfo, caps: &Caps) -> Option<(Site, Variance)> {
    if caps.vector_bytes == 0 || l.len.is_some_and(|n| n < 2) {
        return None;
    }
    let variance = Variance::of(kernel, l)?;
    let width = width(kernel, l, &variance, caps)?;
    let lanes = (caps.vector_bytes / width).min(64) as i64;
    // Lanes beyond a short loop's iterations would cost as much as those within.
    let lanes = l.len.map_or(lanes, |n| lanes.min((n as u64).next_power_of_two().max(16) as i64));
    let too_short = !caps.masked && l.len.is_some_and(|n| n < lanes);
    if lanes < 2 || too_short {
        return None;
    }
    let fits = 4 * lanes <= caps.vector_bytes as i64;
    let masked = if fits { caps.masked as i64 } else { 2 * caps.masked as i64 };
    Some((Site::new(l.open, &[lanes, masked]), variance))
}

/// Bytes of the widest element in any vector the loop would need; `None` where the device cannot
/// do what the loop does lane by lane. At least four, so that masks are compares of `i32` lanes; or two,
/// where a CPU computes in halves.
fn width(k: &Kernel, l: &LoopInfo, variance: &Variance, caps: &Caps) -> Option<usize> {
    let size = |v: Value| match k.ty(v).dtype {
        DType::Bool => 1,
        dtype => caps.compute_dtype(dtype).size(),
    };
    let halves = !caps.simt && caps.compute.contains(DType::F16);
    let mut width = if halves { 2 } else { 4 };
    for i in l.body() {
        let v = Value(i as u32);
        let op = k.op(v);
        match op {
            Op::Load { buf, index, .. } if variance.form(v) == Form::Varying => {
                if !is_private(k, l, buf) && !contiguous(variance, index) {
                    if !caps.masked {
                        return None;
                    }
                    width = width.max(8);
                }
                width = width.max(size(v));
            }
            Op::Store { buf, index, value, .. } if !is_private(k, l, buf) => {
                match variance.form(index) {
                    Form::Linear(1) => {}
                    _ if caps.masked => width = width.max(8),
                    _ => return None,
                }
                width = width.max(size(value));
            }
            Op::Binary { op: BinaryOp::Div | BinaryOp::Rem | BinaryOp::Pow, .. }
                if variance.form(v) == Form::Varying && !k.ty(v).dtype.is_float() =>
            {
                return None;
            }
            Op::Binary { x, y, .. } if emit::lane_compare(k, variance, op, (x, y)).is_some() => {
                width = width.max(4);
            }
            op if op.is_pure() && variance.form(v) == Form::Varying => {
                width = width.max(size(v));
                width = op.operands().map(size).fold(width, usize::max);
                if k.ty(v).dtype == DType::F16 && !is_native(op, caps) {
                    width = width.max(4);
                }
            }
            _ => {}
        }
    }
    Some(width)
}

/// Whether an op on `f16` is computed as that.
fn is_native(op: Op, caps: &Caps) -> bool {
    let native = match op {
        Op::Unary { op, .. } => caps.unary[op as usize],
        Op::Binary { op, .. } => caps.binary[op as usize],
        Op::Ternary { op, .. } => caps.ternary[op as usize],
        _ => return true,
    };
    native.contains(DType::F16)
}

/// Whether lanes access consecutive elements, or all the same one (a guarded uniform index).
fn contiguous(variance: &Variance, index: Value) -> bool {
    matches!(variance.form(index), Form::Linear(1) | Form::Uniform)
}

fn apply(kernel: &Kernel, site: &Site) -> Kernel {
    let (Some(l), &[lanes, masked]) = (find_loop(kernel, site.value), &site.params[..]) else {
        return kernel.clone();
    };
    let Some(variance) = Variance::of(kernel, &l) else { return kernel.clone() };
    if !(2..=64).contains(&lanes) || (masked == 0 && l.len.is_some_and(|n| n < lanes)) {
        return kernel.clone();
    }
    let mut rebuild = Rebuild::new(kernel);
    rebuild.copy_range(0..l.open.idx());
    let saved = open_accumulators(&mut rebuild, &variance, lanes as u8);
    let mut emit = Emit::new(rebuild, &l, &variance, lanes as u8);
    let len = emit.rebuild.get(l.len_value);
    let (count, done) = split_length(&mut emit, len, lanes);
    let known = emit.rebuild.out.as_constant(count).map(|c| c.to_i64());
    if known != Some(0) {
        main_loop(&mut emit, count, lanes);
    }
    if masked == 0 {
        close_accumulators(&mut emit.rebuild, &variance, &saved);
        scalar_tail(&mut emit.rebuild, &l, len, done);
    } else {
        masked_tail(&mut emit, len, done, if masked == 1 { DType::I32 } else { DType::I64 });
        close_accumulators(&mut emit.rebuild, &variance, &saved);
    }
    emit.rebuild.finish_from(l.end + 1)
}

/// Number of whole vectors, and of the iterations they cover.
fn split_length(emit: &mut Emit<'_, '_>, len: Value, lanes: i64) -> (Value, Value) {
    let lanes = emit.rebuild.number(emit.open, lanes);
    let out = &mut emit.rebuild.out;
    let count = out.binary(BinaryOp::Div, len, lanes);
    let done = out.binary(BinaryOp::Mul, count, lanes);
    (count, done)
}

fn main_loop(emit: &mut Emit<'_, '_>, count: Value, lanes: i64) {
    let v = emit.rebuild.open_loop(emit.open, count);
    let lanes = emit.rebuild.number(emit.open, lanes);
    let base = emit.rebuild.out.binary(BinaryOp::Mul, v, lanes);
    emit.body(base, None);
    emit.rebuild.out.close();
}

/// The rest as one vector iteration whose surplus lanes are masked, by numbers of a dtype.
fn masked_tail(emit: &mut Emit<'_, '_>, len: Value, done: Value, dtype: DType) {
    let zero = emit.rebuild.number(emit.open, 0);
    let out = &mut emit.rebuild.out;
    let rest = out.binary(BinaryOp::Sub, len, done);
    let some = out.binary(BinaryOp::Lt, zero, rest);
    let known = out.as_constant(some).map(|c| c.to_bool());
    if known == Some(false) {
        return;
    }
    if known.is_none() {
        out.open_if(some);
    }
    let lanes = emit.lane_numbers(dtype);
    let out = &mut emit.rebuild.out;
    let rest = out.cast(dtype, rest);
    let mask = out.binary(BinaryOp::Lt, lanes, rest);
    emit.body(done, Some(mask));
    if known.is_none() {
        emit.rebuild.out.close();
    }
}

/// The rest one by one, on the original accumulators.
fn scalar_tail(rebuild: &mut Rebuild<'_>, l: &LoopInfo, len: Value, done: Value) {
    let rest = rebuild.out.binary(BinaryOp::Sub, len, done);
    if rebuild.out.as_constant(rest).is_some_and(|r| r.to_i64() == 0) {
        return;
    }
    let r = rebuild.open_loop(l.open, rest);
    let i = rebuild.out.binary(BinaryOp::Add, done, r);
    rebuild.set(l.open, i);
    rebuild.copy_range(l.body());
    rebuild.out.close();
}

/// Vector storage holding the identity for each accumulator.
fn open_accumulators(r: &mut Rebuild<'_>, variance: &Variance, lanes: u8) -> Vec<(Value, Value)> {
    let mut saved = Vec::new();
    for a in &variance.accumulators {
        let dtype = r.src.ty(a.alloc).dtype;
        let identity = a.op.identity(dtype).unwrap_or_else(|| Scalar::from_bits(dtype, 0));
        let wide = r.out.alloc(Space::Register, Type::vector(dtype, lanes), 1);
        let identity = r.out.constant(identity);
        let identity = r.out.splat(identity, lanes);
        let zero = r.out.index(0);
        r.out.store(wide, zero, identity);
        let scalar = r.get(a.alloc);
        saved.push((scalar, wide));
        r.set(a.alloc, wide);
    }
    saved
}

/// Folds the vectors into the scalars they stand for, and lets those stand for themselves again.
fn close_accumulators(r: &mut Rebuild<'_>, variance: &Variance, saved: &[(Value, Value)]) {
    for (a, &(scalar, wide)) in variance.accumulators.iter().zip(saved) {
        let zero = r.out.index(0);
        let lanes = r.out.load(wide, zero);
        let dtype = r.src.ty(a.alloc).dtype;
        let folded = r.out.emit(Op::Fold { op: a.op, x: lanes }, Type::scalar(dtype));
        let old = r.out.load(scalar, zero);
        let new = r.out.binary(a.op, old, folded);
        r.out.store(scalar, zero, new);
        r.set(a.alloc, scalar);
    }
}

#[cfg(test)]
mod tests;
