//! A pure cost model: what a kernel does, counted from its loops, and the time that takes.
//!
//! Operations are weighted by what they cost on hardware of the last decade; a vector op counts
//! once. Bytes are those of loads and stores to buffers that are not repeated by an inner loop at
//! the same index. Trip counts are those in the middle iteration of the loops around; such that follow from data count as
//! few, others that are not known as [`UNKNOWN_TRIPS`]. Loops that run where a condition on data holds, and else not at
//! all, are for exceptions and count as left out.

use crate::caps::Caps;
use crate::dtype::DType;
use crate::ir::{Kernel, LoopKind, Op, Value, mma};
use crate::ops::{BinaryOp, TernaryOp};
use crate::scalar::Scalar;

/// Iterations assumed of a loop whose length is not known.
pub const UNKNOWN_TRIPS: i64 = 128;

/// The same where the length is data, as that of what goes to one place: on average there is little.
const DATA_TRIPS: i64 = 4;

/// Typical values of the integers of a kernel: those in the middle iteration of each loop, where they are known.
pub(super) struct Lengths<'a> {
    kernel: &'a Kernel,
    values: Vec<Length>,
}

#[derive(Clone, Copy, PartialEq)]
enum Length {
    Known(Scalar),
    /// Follows from what is loaded.
    Data,
    /// The same, and 0 but for exceptions.
    Exception,
    Unknown,
}

impl Length {
    fn known(self) -> Option<i64> {
        match self {
            Length::Known(x) => Some(x.to_i64()),
            Length::Data | Length::Exception | Length::Unknown => None,
        }
    }

    fn is_data(self) -> bool {
        matches!(self, Length::Data | Length::Exception)
    }
}

impl<'a> Lengths<'a> {
    pub(super) fn of(kernel: &'a Kernel) -> Lengths<'a> {
        let mut lengths = Lengths { kernel, values: Vec::with_capacity(kernel.ops().len()) };
        for (_, op, ty) in kernel.iter() {
            let known = op.eval(ty, |x| match lengths.values[x.idx()] {
                Length::Known(x) => Some(x),
                Length::Data | Length::Exception | Length::Unknown => None,
            });
            let of = known.map_or_else(|| lengths.estimate(op, ty.dtype), Length::Known);
            lengths.values.push(of);
        }
        lengths
    }

    /// Of an op with an operand that is not known: the known bound of a minimum, as that of a block; half the divisor of a
    /// remainder, which whole vectors and unrolled bodies leave over.
    fn estimate(&self, op: Op, dtype: DType) -> Length {
        let of = |x: Value| self.values[x.idx()];
        let known = |x: i64| Length::Known(Scalar::from_i64(dtype, x));
        let half = |n: Option<i64>| n.map_or(Length::Unknown, |n| known(n.saturating_abs() / 2));
        match op {
            Op::Loop { len, .. } => half(of(len).known().map(|n| n.max(0))),
            Op::Load { .. } => Length::Data,
            // Loops that run where a condition on data holds are for exceptions.
            Op::Ternary { op: TernaryOp::Where, x, z, .. }
                if of(x).is_data() && of(z).known() == Some(0) =>
            {
                Length::Exception
            }
            Op::Cast { x } => of(x),
            _ if op.is_pure() && op.operands().any(|x| of(x).is_data()) => Length::Data,
            Op::Binary { op: BinaryOp::Min, x, y } => match (of(x), of(y)) {
                (Length::Unknown, bound) | (bound, _) => bound,
            },
            Op::Binary { op: BinaryOp::Rem, y, .. } => half(of(y).known()),
            // `x - x / n * n`, and the same as a sum with a negative factor.
            Op::Binary { op: BinaryOp::Add | BinaryOp::Sub, x, y } => match self.kernel.op(y) {
                Op::Binary { op: BinaryOp::Mul, x: quotient, y: factor } if matches!(self.kernel.op(quotient), Op::Binary { op: BinaryOp::Div | BinaryOp::Shr, x: z, .. } if z == x) => {
                    half(of(factor).known())
                }
                _ => Length::Unknown,
            },
            _ => Length::Unknown,
        }
    }

    /// Iterations of a loop of this length, at most [`UNKNOWN_TRIPS`] if a break may end it.
    pub(super) fn trips(&self, len: Value, may_break: bool) -> i64 {
        let n = match self.values[len.idx()] {
            Length::Known(n) => n.to_i64().max(0),
            Length::Data => DATA_TRIPS,
            Length::Exception => 0,
            Length::Unknown => UNKNOWN_TRIPS,
        };
        if may_break { n.min(UNKNOWN_TRIPS) } else { n }
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
    let (breaks, lengths) = (kernel.loops_with_break(), Lengths::of(kernel));
    for (v, op, ty) in kernel.iter().filter(|(v, ..)| is_part(*v)) {
        let times = trips.last().copied().unwrap_or(1.0);
        match op {
            Op::Loop { kind, len, .. } => {
                let n = lengths.trips(len, breaks.contains(&v));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Access, Builder};

    #[test]
    fn lengths_are_those_of_the_middle() {
        let mut b = Builder::new("k");
        let [n, tile, tiles] = [1000, 64, 16].map(|n| b.index(n));
        let size = b.var(DType::I64, 0, 1000);
        let data = b.param(DType::I64, 16, Access::Read);
        let t = b.open_loop(LoopKind::Serial, 0, tiles);
        let first = b.binary(BinaryOp::Mul, t, tile);
        let behind = b.binary(BinaryOp::Add, first, tile);
        let [known, bounded] = [n, size].map(|n| b.binary(BinaryOp::Min, n, behind));
        let rows = b.binary(BinaryOp::Sub, known, first);
        let rest = b.binary(BinaryOp::Rem, size, tile);
        let loaded = b.load(data, t);
        let counted = b.binary(BinaryOp::Add, loaded, tile);
        b.close();
        let kernel = b.finish();
        let lengths = Lengths::of(&kernel);
        let lens = [rows, bounded, rest, counted, size];
        let trips = lens.map(|len| lengths.trips(len, false));
        assert_eq!(trips, [64, 576, 32, DATA_TRIPS, UNKNOWN_TRIPS]);
        assert_eq!(lengths.trips(n, true), UNKNOWN_TRIPS, "the loop may break");
    }
}
