//! What orders candidates before any is measured: an estimate of a finished kernel's time.
//!
//! Unlike [`cost`](mod@super::cost), which counts what any kernel does, this sees what passes
//! change: how many registers a vector takes, iterations of loops, chains of additions that wait
//! for one another, loads that touch a line for each element, groups that do not divide evenly
//! among threads. It walks the ops once, from loop to loop: a frame holds the cycles of an
//! iteration, and closing the loop multiplies them. Numbers are cycles of a core of a few
//! gigahertz; only their order matters.

use super::cost::{Lengths, likelihood, op_weight};
use crate::caps::Caps;
use crate::dtype::DTypeSet;
use crate::ir::{Builder, Kernel, LoopKind, Op, ParamInfo, Value};
use crate::ops::BinaryOp;
use crate::scalar::Scalar;

/// Cycles from an addition to the next one that needs it.
const LATENCY: f64 = 4.0;
/// Cycles of a loop beside its body, of a group, and of meeting at a barrier.
const TURN: f64 = 1.0;
const GROUP: f64 = 40.0;
const BARRIER: f64 = 30.0;
/// Bytes of a line, and bytes that memory and caches bring in a cycle of all cores of a CPU.
const LINE: f64 = 64.0;
const BYTES: f64 = 8.0;
const CACHED_BYTES: f64 = 48.0;
/// Bytes between lines that share one of two sets of the nearest cache: 64 sets of 64 bytes.
const SET: f64 = 2048.0;
/// Bytes that caches hold, and lines that the nearest one does.
const CACHE: u64 = 2 << 20;
const LINES: f64 = 256.0;
/// Steps that a quotient stays the same, from which on its growth does not count: elements of 32 bits of a line.
const RARE: f32 = 16.0;
/// Threads of a GPU that share one unit of arithmetic.
const SHARED_BY: f64 = 8.0;
/// Fewest threads of a device that hides waiting by having many.
const MANY: usize = 1 << 10;
/// Cycles that a thread of such a device waits for memory, from one of its operations to the next,
/// and iterations of an innermost loop whose loads are on their way together.
const WAIT: f64 = 600.0;
const STEP: f64 = 2.0;
const AHEAD: f64 = 4.0;
/// Cycles of a nanosecond.
const CPU_CLOCK: f64 = 3.5;
const GPU_CLOCK: f64 = 1.5;

/// How much a device does in a nanosecond, as far as its capabilities tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Bytes to and from memory.
    pub bytes: f64,
    /// Operations on `f32`; a fused multiply-add is one.
    pub operations: f64,
    /// Multiply-adds of matrix instructions; those of others where there are none.
    pub products: f64,
    /// Nanoseconds of a launch.
    pub launch: f64,
}

impl Rates {
    /// Those of a device. A multiprocessor of a GPU is taken for one of an H100, a core for one of a
    /// server.
    pub fn of(caps: &Caps) -> Rates {
        if !caps.has_few_threads() {
            let multiprocessors = caps.multiprocessors().max(1) as f64;
            let operations = multiprocessors * 128.0 * GPU_CLOCK;
            let products = if caps.mma == DTypeSet::NONE { operations } else { 16.0 * operations };
            return Rates { bytes: multiprocessors * 25.0, operations, products, launch: 3000.0 };
        }
        let lanes = if caps.simt { 8.0 } else { (caps.vector_bytes as f64 / 4.0).max(1.0) };
        let operations = caps.threads.max(1) as f64 * lanes * 2.0 * CPU_CLOCK;
        let launch = if caps.simt { 20_000.0 } else { 1000.0 };
        Rates { bytes: BYTES * CPU_CLOCK, operations, products: operations, launch }
    }
}

/// Estimated nanoseconds of a finished kernel on the whole of a device, its launch included.
pub fn predict(kernel: &Kernel, caps: &Caps) -> f64 {
    let walk = walk(kernel, caps);
    let cycles = walk.cycles();
    let run = match caps.threads >= MANY {
        true => cycles.max(walk.frames.first().map_or(0.0, |f| f.wait)) / GPU_CLOCK,
        false => cycles / CPU_CLOCK,
    };
    run + Rates::of(caps).launch
}

/// [`predict`] of a kernel that serves several sizes, at one of them: with `values` as its last scalars, and
/// buffers of these lengths.
pub fn predict_at(kernel: &Kernel, values: &[u64], lens: &[u64], caps: &Caps) -> f64 {
    let own = kernel.vars().len().saturating_sub(values.len());
    let params = kernel.params().iter().zip(lens).map(|(info, &len)| ParamInfo { len, ..*info });
    let mut out =
        Builder::new(kernel.name()).with_arguments(params.collect(), kernel.vars().to_vec());
    let mut map: Vec<Value> = Vec::with_capacity(kernel.ops().len());
    for (_, op, ty) in kernel.iter() {
        let value = match op {
            Op::Var { slot } => (slot as usize).checked_sub(own).and_then(|i| values.get(i)),
            _ => None,
        };
        map.push(match value {
            Some(&bits) => out.constant(Scalar::from_bits(ty.dtype, bits)),
            None => out.emit(op.map(|x| map[x.idx()]), ty),
        });
    }
    predict(&out.finish(), caps)
}

/// Nanoseconds that a kernel as it was lowered takes at least on the whole of a device, its launch
/// included: what it accesses is moved once, and what it computes is computed at full speed.
pub fn least(kernel: &Kernel, caps: &Caps) -> f64 {
    let rates = Rates::of(caps);
    let (bytes, operations) = work(kernel);
    (bytes / rates.bytes).max(operations / rates.operations) + rates.launch
}

/// Bytes that a kernel as it was lowered moves if each element is moved once, and the operations that it
/// does: one for each addition or multiplication, several for what takes as long as several.
pub fn work(kernel: &Kernel) -> (f64, f64) {
    let sizes = kernel.params().iter().map(|p| [p.len as f64, p.dtype.size() as f64]);
    let mut buffers: Vec<[f64; 3]> = sizes.map(|[len, size]| [len, size, 0.0]).collect();
    let (mut operations, mut times) = (0.0, vec![1.0f64]);
    let (breaks, lengths) = (kernel.loops_with_break(), Lengths::of(kernel));
    for (v, op, ty) in kernel.iter() {
        let now = times.last().copied().unwrap_or(1.0);
        match op {
            Op::Loop { len, .. } => {
                times.push(now * lengths.trips(len, breaks.contains(&v)) as f64);
            }
            Op::If { cond } => times.push(now * likelihood(kernel, cond)),
            Op::End { .. } => {
                times.pop();
            }
            Op::Load { buf, .. } | Op::Store { buf, .. } | Op::Atomic { buf, .. } => {
                if let Op::Param { slot, .. } = kernel.op(buf) {
                    buffers[slot as usize][2] += now;
                }
            }
            // Indices and counters.
            _ if ty.dtype.is_int() && op.is_pure() => {}
            _ => operations += now * op_weight(kernel, op),
        }
    }
    (buffers.iter().map(|[len, size, used]| len.min(*used) * size).sum(), operations)
}

/// One open region.
struct Frame {
    open: Value,
    /// Cycles of an iteration so far, if nothing waits.
    cycles: f64,
    /// Bytes of an iteration from memory.
    bytes: f64,
    /// Storage that an iteration changes, and how often.
    chains: Vec<((Value, Value), f64)>,
    /// Iterations; of a condition, the part of the turns in which it holds.
    len: f64,
    kind: Option<LoopKind>,
    /// Cycles that one thread takes for an iteration.
    wait: f64,
    /// Whether something is loaded from memory that is not yet there, and whether there are loops.
    loads: bool,
    loops: bool,
    /// Local threads of the groups inside.
    local: f64,
}

impl Frame {
    fn new(open: Value, len: f64, kind: Option<LoopKind>) -> Frame {
        let (chains, loads, loops) = (Vec::new(), false, false);
        let [cycles, bytes, wait, local] = [0.0, 0.0, 0.0, 1.0];
        Frame { open, cycles, bytes, chains, len, kind, wait, loads, loops, local }
    }
}

/// The walk over a kernel.
struct Walk<'a> {
    kernel: &'a Kernel,
    caps: &'a Caps,
    frames: Vec<Frame>,
    slopes: Vec<Slope>,
    /// Loops that a break may end.
    breaks: Vec<Value>,
    lengths: Lengths<'a>,
}

/// By how much an integer grows with the counter of the innermost loop around it, with that of the
/// loop around that, with the local thread, and from lane to lane; NaN where it does not grow evenly.
/// Unlike a sum of `affine` it is an estimate: quotients grow by fractions.
#[derive(Clone, Copy, Default)]
struct Slope {
    inner: f32,
    outer: f32,
    local: f32,
    lane: f32,
}

impl Slope {
    fn zip(self, other: Slope, f: impl Fn(f32, f32) -> f32) -> Slope {
        Slope {
            inner: f(self.inner, other.inner),
            outer: f(self.outer, other.outer),
            local: f(self.local, other.local),
            lane: f(self.lane, other.lane),
        }
    }
}

/// Estimated cycles, smaller for what should be faster.
pub fn estimate(kernel: &Kernel, caps: &Caps) -> f64 {
    walk(kernel, caps).cycles()
}

fn walk<'a>(kernel: &'a Kernel, caps: &'a Caps) -> Walk<'a> {
    let mut walk = Walk {
        kernel,
        caps,
        frames: vec![Frame::new(Value(0), 1.0, None)],
        slopes: Vec::with_capacity(kernel.ops().len()),
        breaks: kernel.loops_with_break(),
        lengths: Lengths::of(kernel),
    };
    for (v, op, _) in kernel.iter() {
        let slope = walk.slope(v, op);
        walk.slopes.push(slope);
        walk.visit(v, op);
    }
    walk
}

impl Walk<'_> {
    /// Cycles of the whole, once walked.
    fn cycles(&self) -> f64 {
        let Some(f) = self.frames.first() else { return 0.0 };
        let sizes =
            self.kernel.params().iter().map(|p| p.len.saturating_mul(p.dtype.size() as u64));
        let cached = sizes.fold(0, u64::saturating_add) <= CACHE;
        let memory = f.bytes / if cached { CACHED_BYTES } else { BYTES };
        f.cycles.max(memory) + 0.1 * f.cycles.min(memory)
    }

    fn visit(&mut self, v: Value, op: Op) {
        match op {
            Op::Loop { kind, len, .. } => {
                let n = self.lengths.trips(len, self.breaks.contains(&v));
                self.frames.push(Frame::new(v, n as f64, Some(kind)));
            }
            Op::If { cond } => {
                self.frames.push(Frame::new(v, likelihood(self.kernel, cond), None));
            }
            Op::End { .. } => self.close(),
            _ => {
                let (cycles, bytes) = self.op(v, op);
                if let Some(frame) = self.frames.last_mut() {
                    frame.cycles += cycles;
                    frame.bytes += bytes;
                    frame.loads |= matches!(op, Op::Load { .. }) && bytes > 0.0;
                    frame.wait += STEP * cycles;
                    if let Op::Store { buf, index, .. } = op
                        && matches!(self.kernel.op(buf), Op::Alloc { .. })
                    {
                        let place = (buf, index);
                        match frame.chains.iter_mut().find(|c| c.0 == place) {
                            Some(chain) => chain.1 += LATENCY,
                            None => frame.chains.push((place, LATENCY)),
                        }
                    }
                }
            }
        }
    }

    /// Adds a finished region to the one around it.
    fn close(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        let waiting = frame.chains.iter().map(|c| c.1).fold(0.0, f64::max);
        let threads = self.caps.threads.max(1) as f64;
        let many = self.caps.threads >= MANY;
        let (cycles, bytes) = match frame.kind {
            None => (frame.cycles * frame.len, frame.bytes * frame.len),
            Some(LoopKind::Serial | LoopKind::Parallel) => {
                let each = frame.cycles.max(if many { 0.0 } else { waiting }) + TURN;
                (each * frame.len, frame.bytes * frame.len)
            }
            // Threads of a group run one after the other on a CPU and side by side on a GPU, where
            // what counts in the end is how many there are in all.
            Some(LoopKind::Local) => ((frame.cycles + TURN) * frame.len, frame.bytes * frame.len),
            Some(LoopKind::Group) if many => {
                let units = threads / SHARED_BY;
                let each = frame.cycles + GROUP;
                // A group alone keeps at most so many units busy.
                let busy = (each * frame.len / units).max(each / 64.0);
                (busy, frame.bytes * frame.len / (threads / 1000.0).max(1.0))
            }
            Some(LoopKind::Group) => {
                let turns = (frame.len / threads).ceil();
                ((frame.cycles + GROUP) * turns, frame.bytes * frame.len)
            }
        };
        let repeats = matches!(frame.kind, Some(LoopKind::Serial | LoopKind::Parallel));
        let each = frame.wait + waiting + if frame.loads { WAIT } else { 0.0 };
        let wait = match frame.kind {
            None | Some(LoopKind::Local) => each,
            // Loads of several iterations are on their way together.
            Some(LoopKind::Serial | LoopKind::Parallel) if frame.loads && !frame.loops => {
                (each - WAIT) * frame.len + WAIT * (frame.len / AHEAD).ceil()
            }
            Some(LoopKind::Serial | LoopKind::Parallel) => each * frame.len,
            Some(LoopKind::Group) => {
                // Groups of so many threads take turns.
                let turns = (frame.len * frame.local / threads).ceil().min(frame.len);
                (each + GROUP) * turns
            }
        };
        let local = if frame.kind == Some(LoopKind::Local) { frame.len } else { 1.0 };
        if let Some(outer) = self.frames.last_mut() {
            outer.wait += wait;
            outer.loops |= repeats || frame.loops;
            outer.local = outer.local.max(local * frame.local);
            outer.cycles += cycles;
            outer.bytes += bytes;
            if !repeats {
                outer.chains.extend(frame.chains);
            }
        }
    }

    /// Cycles of an op and the bytes it moves, for one iteration.
    fn op(&self, v: Value, op: Op) -> (f64, f64) {
        let ty = self.kernel.ty(v);
        let registers = match self.caps.vector_bytes {
            0 => f64::from(ty.lanes),
            n => (ty.bytes() as f64 / n as f64).ceil().max(1.0),
        };
        match op {
            Op::Load { buf, index, .. } | Op::Store { buf, index, .. }
                if matches!(self.kernel.op(buf), Op::Param { .. }) =>
            {
                let lanes = f64::from(ty.lanes);
                let slope = self.slopes[index.idx()];
                let size = ty.dtype.size() as f64;
                if self.kernel.ty(index).is_vector() {
                    let lane = f64::from(slope.lane).abs();
                    // Reversed rows, and parts of complex numbers, whose neighbours share lines.
                    if lane == 1.0 || lane == 2.0 && size == 4.0 {
                        return (2.0 * registers, ty.bytes() as f64);
                    }
                    let near = |step: f32| step != 0.0 && f64::from(step).abs() <= LINE / 8.0;
                    let turns = self.frames.last().map_or(f64::MAX, |f| f.len);
                    let kept = near(slope.inner) || turns * lanes <= LINES && near(slope.outer);
                    let each = match lane {
                        _ if kept => size,
                        // Wherever data says: mostly not far away.
                        lane if lane.is_nan() && self.caps.threads >= MANY => LINE / 2.0,
                        lane if lane.is_nan() => LINE / 8.0,
                        lane => (lane * size).clamp(size, LINE),
                    };
                    // Lanes in lines of their own wait for each other, longer if the lines share a set of
                    // the cache; lines are read before they are written.
                    let apart = match lane * size {
                        bytes if bytes < LINE => 1.0,
                        _ if kept => 2.0,
                        bytes if self.caps.threads < MANY && bytes % SET == 0.0 => 12.0,
                        _ => 4.0,
                    };
                    let written = if matches!(op, Op::Store { .. }) { 2.0 } else { 1.0 };
                    return (lanes * apart * written, lanes * each * written);
                }
                let threads = self.caps.simt && self.is_in_group();
                let step = if threads { slope.local } else { slope.inner };
                // A line that the next turn of the loop around goes on with is still there.
                let kept = self.frames.last().is_some_and(|f| f.len <= LINES)
                    && f64::from(slope.outer).abs() <= lanes;
                let moved = match f64::from(step).abs() {
                    // The same place in each iteration: brought once.
                    0.0 => 0.125 * ty.bytes() as f64,
                    s if s <= lanes => ty.bytes() as f64,
                    _ if kept && !threads => ty.bytes() as f64,
                    s => (s * size).min(LINE).max(ty.bytes() as f64),
                };
                let lines = if moved > 2.0 * ty.bytes() as f64 { 2.0 } else { 0.0 };
                (0.5 * registers + lines, moved)
            }
            // Registers and shared storage.
            Op::Load { .. } | Op::Store { .. } => (0.1 * registers, 0.0),
            Op::Barrier { .. } => (BARRIER, 0.0),
            Op::Fold { .. } => (12.0, 0.0),
            _ if ty.dtype.is_int() && !ty.is_vector() && op.is_pure() => match op {
                Op::Binary { op: BinaryOp::Div | BinaryOp::Rem, .. } => (8.0, 0.0),
                _ => (0.15, 0.0),
            },
            _ => (0.5 * registers * op_weight(self.kernel, op), 0.0),
        }
    }

    fn is_in_group(&self) -> bool {
        self.frames.iter().any(|f| f.kind == Some(LoopKind::Local))
    }

    /// By how much a value grows.
    fn slope(&self, v: Value, op: Op) -> Slope {
        let mut loops = self.frames.iter().rev().filter(|f| f.kind.is_some()).map(|f| f.open);
        let inside = loops.next().unwrap_or(Value(0));
        let around = loops.next().unwrap_or(Value(0));
        let of = |x: Value| {
            let slope = self.slopes[x.idx()];
            match x {
                x if x >= inside => slope,
                x if x >= around => Slope { inner: 0.0, outer: slope.inner, ..slope },
                _ => Slope { inner: 0.0, outer: 0.0, ..slope },
            }
        };
        let number = |x: Value| self.kernel.constant(x).map(|c| c.to_i64() as f32);
        if !self.kernel.ty(v).dtype.is_int() {
            return Slope::default();
        }
        match op {
            Op::Loop { kind: LoopKind::Local, axis: 0, .. } => {
                Slope { inner: 1.0, local: 1.0, ..Slope::default() }
            }
            Op::Lanes => Slope { lane: 1.0, ..Slope::default() },
            Op::Loop { .. } => Slope { inner: 1.0, ..Slope::default() },
            Op::Binary { op: BinaryOp::Add, x, y } => of(x).zip(of(y), |a, b| a + b),
            Op::Binary { op: BinaryOp::Sub, x, y } => of(x).zip(of(y), |a, b| a - b),
            Op::Binary { op: BinaryOp::Mul, x, y } => match (number(x), number(y)) {
                (Some(n), _) => of(y).zip(of(y), |b, _| n * b),
                (_, Some(n)) => of(x).zip(of(x), |a, _| a * n),
                _ => of(x).zip(of(y), |a, b| if a == 0.0 && b == 0.0 { 0.0 } else { f32::NAN }),
            },
            Op::Binary { op: BinaryOp::Div, x, y } => {
                let n = number(y).unwrap_or(1.0).max(1.0);
                // One that stays the same for a line of elements or more: steps are rare.
                let part = |a: f32, _| if RARE * a.abs() <= n { 0.0 } else { a / n };
                of(x).zip(of(x), part)
            }
            Op::Binary { op: BinaryOp::Rem | BinaryOp::Min | BinaryOp::Max, x, .. }
            | Op::Splat { x }
            | Op::Guard { index: x, .. }
            | Op::Cast { x } => of(x),
            Op::Load { .. } => {
                let n = f32::NAN;
                Slope { inner: n, outer: n, local: n, lane: n }
            }
            _ => Slope::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Knobs, tune_with};
    use super::*;
    use crate::dtype::DType;
    use crate::passes::samples;

    fn cpu() -> Caps {
        Caps { vector_bytes: 64, masked: true, threads: 2, fast_fma: true, ..Caps::default() }
    }

    #[test]
    fn what_the_heuristic_does_is_better_than_nothing_on_a_cpu() {
        let kernels = [
            samples::chain(1 << 20),
            samples::gelu(1 << 20),
            samples::softmax(1024, 1024),
            samples::sum_rows(DType::F32, 1024, 1024),
            samples::sum_cols(DType::F32, 1024, 1024),
        ];
        for kernel in kernels {
            let tuned = crate::tune::optimize(&kernel, &cpu());
            let (naive, tuned) = (estimate(&kernel, &cpu()), estimate(&tuned, &cpu()));
            assert!(2.0 * tuned < naive, "{tuned} of {naive}\n{kernel}");
        }
    }

    #[test]
    fn sums_of_several_accumulators_wait_less() {
        let kernel = samples::sum_rows(DType::F32, 64, 4096);
        let with = |accumulators| {
            // One row after the other.
            let knobs = Knobs { accumulators, reduced: 1, ..Knobs::default() };
            estimate(&tune_with(&kernel, &cpu(), knobs).kernel, &cpu())
        };
        assert!(with(4) < 0.8 * with(1), "{} {}", with(4), with(1));
    }

    /// Lengths near 1024 that threads, lanes, unrolled rows and strips do not divide are predicted to take at
    /// most 1.3 times as long per element as 1024.
    #[test]
    fn awkward_sizes_take_no_longer_on_a_cpu() {
        type Sized = fn(i64) -> Kernel;
        let kernels: [Sized; 9] = [
            |n| samples::gelu(1024 * n + 7),
            |n| samples::sum_rows(DType::F32, n, 1024),
            |n| samples::sum_rows(DType::F32, 256, n),
            |n| samples::sum_cols(DType::F32, n, 1024),
            |n| samples::sum_cols(DType::F32, 1024, n),
            |n| samples::softmax(n, 1024),
            |n| samples::softmax(512, n),
            |n| samples::transpose(n, 1024),
            |n| samples::resume(n, 1024),
        ];
        let mut faults = Vec::new();
        for vector_bytes in [32, 64, 256] {
            let caps = Caps { vector_bytes, ..cpu() };
            for (number, kernel) in kernels.iter().enumerate() {
                let time = |n| predict(&crate::tune::optimize(&kernel(n), &caps), &caps) / n as f64;
                let round = time(1024);
                for n in [1021, 1023, 1025, 1031, 1042, 1147] {
                    let ratio = time(n) / round;
                    if ratio > 1.3 {
                        faults.push((number, n, vector_bytes, ratio));
                    }
                }
            }
        }
        assert!(faults.is_empty(), "{faults:?}");
    }

    #[test]
    fn a_general_kernel_is_predicted_at_a_size() {
        use crate::ir::{Family, Outline, Verified};
        let kernel = |n| samples::chain(n);
        let outline = |n| Outline::of(&Verified::new(&kernel(n)).unwrap()).unwrap();
        let family = Family::new(&outline(1 << 20), false).with(&outline(1000));
        let general = crate::tune::optimize(&family.kernel("general").unwrap(), &cpu());
        let time = |n| {
            let member = family.member(&outline(n)).unwrap();
            predict_at(&general, member.values(), member.lens(), &cpu())
        };
        let own = predict(&crate::tune::optimize(&kernel(1 << 20), &cpu()), &cpu());
        assert!(time(1 << 20) < 1.2 * own && 100.0 * time(1000) < own);
    }

    #[test]
    fn more_work_is_never_cheaper() {
        for n in [1 << 10, 1 << 14, 1 << 18] {
            let time = |n| estimate(&crate::tune::optimize(&samples::gelu(n), &cpu()), &cpu());
            assert!(time(n) < time(4 * n));
        }
    }
}
