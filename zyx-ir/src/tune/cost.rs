//! A pure cost model: what a kernel does, counted from its loops, and the time that takes.
//!
//! Operations are weighted by what they cost on hardware of the last decade; a vector op counts
//! once. Bytes are those of loads and stores to buffers that are not repeated by an inner loop at
//! the same index. Trip counts that are not constant count as [`UNKNOWN_TRIPS`]. Loops that run where a
//! condition on data holds, and else not at all, are for exceptions and count as left out.

use crate::caps::Caps;
use crate::ir::{Kernel, LoopKind, Op, Value, mma};
use crate::ops::{BinaryOp, TernaryOp};

/// Iterations assumed of a loop whose length is not constant.
pub const UNKNOWN_TRIPS: i64 = 128;

/// The same where the length is data, as that of what goes to one place: on average there is little.
const DATA_TRIPS: i64 = 4;
/// Operations looked at to find out.
const LENGTH_OPS: usize = 16;

/// Iterations of a loop of this length, which is the most of those with a break: counted, bounded by a constant in the length, or assumed.
pub(super) fn trips(kernel: &Kernel, len: Value, may_break: bool) -> i64 {
    if let Some(n) = kernel.constant(len) {
        let n = n.to_i64().max(0);
        return if may_break { n.min(UNKNOWN_TRIPS) } else { n };
    }
    let is_none = |v: Value| kernel.constant(v).is_some_and(|n| n.to_i64() == 0);
    let of = match kernel.op(len) {
        Op::Cast { x } => x,
        _ => len,
    };
    match kernel.op(of) {
        Op::Ternary { op: TernaryOp::Where, x, z, .. } if is_none(z) && is_data(kernel, x) => 0,
        _ if is_data(kernel, len) => DATA_TRIPS,
        _ => largest(kernel, len, LENGTH_OPS).map_or(UNKNOWN_TRIPS, |n| n.max(0)),
    }
}

/// Whether a value follows from what is loaded.
fn is_data(kernel: &Kernel, v: Value) -> bool {
    let mut rest = vec![v];
    for _ in 0..LENGTH_OPS {
        match rest.pop().map(|v| kernel.op(v)) {
            Some(Op::Load { .. }) => return true,
            Some(op) if op.is_pure() => rest.extend(op.operands()),
            Some(_) => {}
            None => break,
        }
    }
    false
}

/// The largest value of a length whose minimum with a constant was taken, as that of blocks is; half a
/// divisor for what whole vectors and unrolled bodies leave over.
fn largest(kernel: &Kernel, len: Value, fuel: usize) -> Option<i64> {
    if let Some(n) = kernel.constant(len) {
        return Some(n.to_i64());
    }
    let fuel = fuel.checked_sub(1)?;
    let of = |x: Value| largest(kernel, x, fuel);
    let Op::Binary { op, x, y } = kernel.op(len) else { return None };
    match op {
        BinaryOp::Min => match (of(x), of(y)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        },
        BinaryOp::Max => Some(of(x)?.max(of(y)?)),
        BinaryOp::Rem => Some(kernel.constant(y)?.to_i64() / 2),
        BinaryOp::Div => Some(of(x)? / kernel.constant(y)?.to_i64().max(1)),
        BinaryOp::Shr => Some(of(x)? >> kernel.constant(y)?.to_i64().clamp(0, 63)),
        BinaryOp::Mul => Some(of(x)?.saturating_mul(kernel.constant(y)?.to_i64())),
        // `x - x / n * n`, and the same as a sum with a negative factor.
        BinaryOp::Add | BinaryOp::Sub => match kernel.op(y) {
            Op::Binary { op: BinaryOp::Mul, x: quotient, y: factor } => {
                let is_quotient = |v: Value| matches!(kernel.op(v), Op::Binary { op: BinaryOp::Div | BinaryOp::Shr, x: z, .. } if z == x);
                let n = kernel.constant(factor)?.to_i64();
                is_quotient(quotient).then_some(n.saturating_abs() / 2)
            }
            _ => None,
        },
        _ => None,
    }
}

/// Part of the turns of the loops around in which a condition holds: of a comparison of a counter with a constant, as
/// it tells blocks from the last one; all of them for any other.
pub(super) fn likelihood(kernel: &Kernel, cond: Value) -> f64 {
    let Op::Binary { op: BinaryOp::Lt, x, y } = kernel.op(cond) else { return 1.0 };
    let turns = |counter: Value| match kernel.op(counter) {
        Op::Loop { len, .. } => kernel.constant(len).map(|n| n.to_i64() as f64),
        _ => None,
    };
    let number = |v: Value| kernel.constant(v).map(|n| n.to_i64() as f64);
    let part = match (turns(x), number(y), number(x), turns(y)) {
        (Some(turns), Some(below), ..) => below / turns,
        (_, _, Some(above), Some(turns)) => (turns - 1.0 - above) / turns,
        _ => 1.0,
    };
    if part.is_finite() { part.clamp(0.0, 1.0) } else { 1.0 }
}

/// What a kernel costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Weighted operations, vector or scalar, over all iterations.
    pub ops: f64,
    /// Bytes moved between buffers and registers.
    pub bytes: f64,
    /// Estimated nanoseconds in one thread of a CPU, or on the whole of a GPU.
    pub ns: f64,
}

/// Weight of an op: 1 for an addition.
pub fn op_weight(kernel: &Kernel, op: Op) -> f64 {
    match op {
        Op::Unary { op, .. } => op.weight().into(),
        Op::Binary { op: BinaryOp::Div | BinaryOp::Rem, x, .. } if kernel.ty(x).dtype.is_int() => {
            12.0
        }
        Op::Binary { op, .. } => op.weight().into(),
        Op::Ternary { op: TernaryOp::Where | TernaryOp::MulAdd, .. } => 1.0,
        Op::Cast { .. } | Op::Fold { .. } => 2.0,
        Op::Load { .. } | Op::Store { .. } => 1.0,
        Op::Atomic { .. } | Op::Barrier { .. } => 20.0,
        // A thread's part of the products, at the rate of matrix instructions.
        Op::Mma { row, .. } if mma::ROWS[row as usize].is_wide() => 32.0,
        Op::Mma { .. } => 16.0,
        Op::Panel { .. } => 0.0,
        Op::Loop { .. } | Op::If { .. } | Op::Break { .. } | Op::Shuffle { .. } => 2.0,
        Op::Extract { .. } | Op::Splat { .. } | Op::Guard { .. } => 0.5,
        Op::Bitcast { .. }
        | Op::Concat { .. }
        | Op::Lanes
        | Op::Const { .. }
        | Op::Alloc { .. } => 0.0,
        Op::Param { .. } | Op::Var { .. } | Op::End { .. } => 0.0,
    }
}

/// Counts a kernel.
pub fn estimate(kernel: &Kernel, caps: &Caps) -> Cost {
    estimate_part(kernel, caps, |_| true)
}

/// Counts those ops of a kernel that are part of it: whole regions and what they need.
pub fn estimate_part(kernel: &Kernel, caps: &Caps, is_part: impl Fn(Value) -> bool) -> Cost {
    let mut cost = Cost::default();
    let mut trips = vec![1.0f64];
    let mut open: Vec<Value> = Vec::new();
    let breaks = kernel.loops_with_break();
    for (v, op, ty) in kernel.iter().filter(|(v, ..)| is_part(*v)) {
        let times = trips.last().copied().unwrap_or(1.0);
        match op {
            Op::Loop { kind, len, .. } => {
                let n = self::trips(kernel, len, breaks.contains(&v));
                cost.ops += if kind == LoopKind::Serial { times * n as f64 } else { 0.0 };
                trips.push(times * n as f64);
                open.push(v);
            }
            Op::If { cond } => {
                trips.push(times * likelihood(kernel, cond));
                open.push(v);
            }
            Op::End { .. } => {
                trips.pop();
                open.pop();
            }
            Op::Load { buf, .. } | Op::Store { buf, .. } | Op::Atomic { buf, .. } => {
                if matches!(kernel.op(buf), Op::Param { .. }) {
                    cost.ops += times * op_weight(kernel, op);
                    cost.bytes += times * ty.bytes() as f64;
                }
            }
            // Index arithmetic is mostly folded into addresses.
            _ if ty.dtype.is_int() && !ty.is_vector() && op.is_pure() => cost.ops += 0.25 * times,
            _ => cost.ops += times * op_weight(kernel, op),
        }
    }
    cost.ns = nanoseconds(cost, caps);
    cost
}

/// Two simple ops a nanosecond times four per clock, 12 bytes a nanosecond: one CPU core. A GPU
/// has that for each thousand of its threads.
fn nanoseconds(cost: Cost, caps: &Caps) -> f64 {
    let cores = if caps.simt { (caps.threads as f64 / 1000.0).max(1.0) } else { 1.0 };
    let compute = cost.ops / 4.0;
    let memory = cost.bytes / 16.0;
    compute.max(memory) / cores
}
