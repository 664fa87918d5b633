//! The limits of a device, as data in [`Caps`].

use super::{Check, Rule, VerifyError, each};
use crate::caps::Caps;
use crate::dtype::{DType, DTypeSet};
use crate::ir::kernel::Kernel;
use crate::ir::mma;
use crate::ir::op::{LoopKind, Op, Space, Type, Value};
use crate::ops::TernaryOp;

/// Checks that a well-formed kernel needs nothing the device lacks.
pub(super) fn check(kernel: &Kernel, caps: &Caps) -> Result<(), VerifyError> {
    let mut shared = 0;
    each(kernel, |value, op, ty| {
        vector(ty, caps)?;
        arithmetic(kernel, op, ty, caps)?;
        storage(kernel, op, ty, caps)?;
        if let Op::Alloc { space: Space::Shared, len } = op {
            shared += len as usize * ty.bytes();
            let limit = caps.shared_bytes.max(caps.most_shared_bytes);
            require(shared <= limit, format_args!("{shared} bytes of shared storage of {limit}"))?;
        }
        launch(kernel, value, op, caps)
    })
}

fn require(holds: bool, reason: impl std::fmt::Display) -> Check {
    Rule::Caps.require(holds, reason)
}

/// Vectors must exist, and vectors of floats fit a register. Masks and indices beside them are
/// as wide as their lanes demand; a backend splits those itself. Sums of matrix instructions are in
/// several registers.
fn vector(ty: Type, caps: &Caps) -> Check {
    let lanes = ty.lanes as usize;
    let sums =
        |dtypes, n: usize| dtypes != DTypeSet::NONE && ty == Type::vector(DType::F32, n as u8);
    let sums = sums(caps.mma, mma::HELD) || sums(caps.wide_mma, mma::WIDE_HELD);
    let fits = !ty.is_vector()
        || sums
        || lanes <= caps.vector_bytes && (!ty.dtype.is_float() || ty.bytes() <= caps.vector_bytes);
    require(fits, format_args!("{ty} is wider than {} bytes", caps.vector_bytes))
}

/// Dtypes and ops that need native support.
fn arithmetic(kernel: &Kernel, op: Op, ty: Type, caps: &Caps) -> Check {
    let (native, dtype) = match op {
        Op::Unary { op, .. } => (caps.has_unary(op, ty.dtype), ty.dtype),
        Op::Binary { op, x, .. } | Op::Fold { op, x } => {
            let dtype = kernel.ty(x).dtype;
            (caps.has_binary(op, dtype), dtype)
        }
        Op::Ternary { op, .. } => (caps.has_ternary(op, ty.dtype), ty.dtype),
        Op::Cast { x } if caps.partial_casts => {
            let is_half = |dtype| matches!(dtype, DType::F16 | DType::BF16);
            let dtypes = [kernel.ty(x).dtype, ty.dtype];
            return require(!dtypes.into_iter().any(is_half), "no conversion of halves");
        }
        _ => return Ok(()),
    };
    // Choosing between values is moving them, and conditions are combined on every device.
    let moves = matches!(op, Op::Ternary { op: TernaryOp::Where, .. });
    require(native, format_args!("no such op on {dtype}"))?;
    require(
        moves || dtype == DType::Bool || caps.compute.contains(dtype),
        format_args!("no arithmetic on {dtype}"),
    )
}

/// Dtypes of storage, orders, atomics, masks.
fn storage(kernel: &Kernel, op: Op, ty: Type, caps: &Caps) -> Check {
    match op {
        Op::Param { slot, .. } => {
            let info = kernel.params()[slot as usize];
            let bytes = info.len.saturating_mul(info.dtype.size() as u64);
            let n = kernel.params().len();
            require(caps.storage.contains(info.dtype), format_args!("no storage of {ty}"))?;
            require(n <= caps.max_buffers, format_args!("{n} buffers of {}", caps.max_buffers))?;
            let most = caps.max_binding;
            let known = info.extents.is_none();
            require(!known || bytes <= most, format_args!("{bytes} bytes of {most}"))
        }
        Op::Alloc { .. } => {
            require(caps.storage.contains(ty.dtype), format_args!("no storage of {ty}"))
        }
        Op::Guard { cond, .. } => {
            let masked = kernel.ty(cond).is_vector();
            require(!masked || caps.masked, "no accesses guarded per lane")
        }
        Op::Load { order, index, .. } | Op::Store { order, index, .. } => {
            let gathers = kernel.ty(index).is_vector();
            require(!gathers || caps.masked, "no accesses indexed by vectors")?;
            has(caps.has_order(order, ty.dtype))
        }
        Op::Atomic { op, order, .. } => {
            require(caps.has_atomic(op, ty.dtype), format_args!("no atomic {op} on {ty}"))?;
            has(caps.has_scope(order))
        }
        Op::Shuffle { .. } => require(caps.subgroup.1 > 0, "no subgroups"),
        Op::Mma { row, .. } => {
            let row = mma::ROWS[row as usize];
            require(row.is_in(caps), format_args!("no matrix instruction on {}", row.factor))
        }
        _ => Ok(()),
    }
}

fn has(capability: Result<(), &'static str>) -> Check {
    capability.or_else(|missing| Rule::Caps.broken(format_args!("no {missing}")))
}

/// Launch geometry, as far as it is constant; lengths that depend on arguments are the caller's.
fn launch(kernel: &Kernel, value: Value, op: Op, caps: &Caps) -> Check {
    let Op::Loop { kind, axis, len } = op else { return Ok(()) };
    let Some(len) = kernel.constant(len).map(|len| len.to_i64().max(0) as u64) else {
        return Ok(());
    };
    match kind {
        LoopKind::Group => {
            let limit = caps.max_groups[axis as usize];
            require(len <= limit, format_args!("{len} groups of {limit} on axis {axis}"))
        }
        LoopKind::Local => {
            let regions = crate::ir::Regions::of(kernel);
            let around = regions.enclosing(value).filter_map(|r| match kernel.op(r) {
                Op::Loop { kind: LoopKind::Local, len, .. } => kernel.constant(len),
                _ => None,
            });
            let n = around.fold(len, |n, len| n.saturating_mul(len.to_i64().max(0) as u64));
            require(n <= caps.max_local as u64, format_args!("{n} locals of {}", caps.max_local))
        }
        LoopKind::Serial | LoopKind::Parallel => Ok(()),
    }
}
