//! The kernel of a blocked nest.

use super::Tile;
use super::find::{Found, blocks, count};
use super::operand::{Layout, Operand};
use crate::dtype::DType;
use crate::ir::{BarrierScope, Kernel, LoopKind, Op, Space, Type, Value};
use crate::ops::BinaryOp;
use crate::passes::elements::Elements;
use crate::passes::variance::Variance;
use crate::scalar::Scalar;

use BinaryOp::{Add, Lt, Min, Mul};

/// Steps that follow one another without a loop.
const UNROLLED: i64 = 4;

/// The nest in blocks.
pub(super) fn emit(kernel: &Kernel, found: &Found, tile: Tile) -> Kernel {
    let mut at = Elements::new(kernel, found.root().open);
    let r = &mut at.r;
    // Lengths of bound loops stand at the top. Neighbouring groups share rows.
    let groups = found.groups(tile).map(|n| r.out.index(n));
    let threads = r.out.index(tile.threads());
    let places = [2, 1, 0].map(|axis: usize| {
        let group = r.out.open_loop(LoopKind::Group, axis as u8, groups[axis]);
        r.out.cast(DType::I32, group)
    });
    let [x, y] = found.operands(kernel, tile);
    let storage = [&x, &y].map(|o| r.out.alloc(Space::Shared, o.ty, 2 * o.size() as u32));
    let thread = r.out.open_loop(LoopKind::Local, 0, threads);
    let thread = r.out.cast(DType::I32, thread);
    let mut e = Emit { at, found, tile, thread, batch: places[0] };
    let first = [e.at.times(places[1], tile.rows), e.at.times(places[2], tile.columns)];
    let sides = [tile.rows / tile.row, tile.columns / tile.column];
    let own = [e.at.shifted(thread, sides[1]), e.at.masked(thread, sides[1])];
    let operands = [(x, storage[0]), (y, storage[1])];
    let staged: Vec<Staged> = operands
        .into_iter()
        .zip(first.into_iter().zip(own))
        .map(|((operand, storage), (first, own))| Staged { operand, storage, first, own })
        .collect();
    let sums = e.sums(&staged);
    e.results(&staged, &sums);
    for _ in 0..4 {
        e.at.r.out.close();
    }
    e.at.r.finish_from(found.root().end + 1)
}

/// A factor and where it is.
struct Staged {
    operand: Operand,
    storage: Value,
    /// The first row (or column) of the block, and the thread's number along it.
    first: Value,
    own: Value,
}

impl Staged {
    /// Threads along the rows (or columns).
    fn threads(&self) -> i64 {
        self.operand.extent / self.operand.own
    }
}

struct Emit<'k, 'f> {
    at: Elements<'k>,
    found: &'f Found,
    tile: Tile,
    thread: Value,
    batch: Value,
}

/// Values of the old nest for other counters.
impl Emit<'_, '_> {
    /// Starts over for another element.
    fn begin(&mut self) {
        self.at.clear();
        self.at.place(&self.found.batch, self.batch);
    }
}

/// Bringing factors.
impl Emit<'_, '_> {
    /// The row (or column) and the step, in the block, of a unit of storage, and its place.
    fn unit(&mut self, o: &Operand, unit: i64) -> (Value, Value, Value) {
        // Neighbouring threads bring neighbours.
        let inner = match (o.layout, o.steps_first) {
            (Layout::Single, true) => o.depth,
            _ => o.line(),
        };
        let (fast, slow) = self.spread(inner, unit);
        let (line, at) = match (o.layout, o.steps_first) {
            (Layout::Single, true) => (fast, slow),
            _ => (slow, fast),
        };
        let start = self.at.times(line, o.stride());
        let place = self.at.r.out.binary(Add, start, at);
        let (free, step) = match o.layout {
            Layout::Along => (line, self.at.times(at, o.lanes)),
            _ => (self.at.times(at, o.lanes), line),
        };
        (free, step, place)
    }

    /// The remainder and quotient by `inner` of a thread's number plus so many times the number of
    /// threads, written so that they are seen to be what they have in common.
    fn spread(&mut self, inner: i64, unit: i64) -> (Value, Value) {
        let threads = self.tile.threads();
        if threads <= inner {
            let turns = inner / threads;
            let fast = self.at.plus(self.thread, unit % turns * threads);
            return (fast, self.at.int(unit / turns));
        }
        let (fast, slow) =
            (self.at.masked(self.thread, inner), self.at.shifted(self.thread, inner));
        (fast, self.at.plus(slow, unit * (threads / inner)))
    }

    /// A unit of storage that begins at a row (or column) and step of the whole.
    fn fetch(&mut self, s: &Staged, free: Value, step: Value) -> Value {
        let (o, found) = (&s.operand, self.found);
        let (total, steps) = (o.total(), count(&found.sums));
        let across = if o.layout == Layout::Across { o.lanes } else { 1 };
        let along = if o.layout == Layout::Along { o.lanes } else { 1 };
        // Rows beyond the last are computed and not stored, so any row will do.
        let free = if total % o.extent == 0 { free } else { self.at.op(Min, free, total - across) };
        let beyond = (steps % o.depth != 0).then(|| self.at.op(Lt, step, steps));
        let step = if beyond.is_some() { self.at.op(Min, step, steps - along) } else { step };
        self.begin();
        self.at.place(&o.loops, free);
        self.at.place(&found.sums, step);
        let counted = match o.layout {
            Layout::Single => None,
            Layout::Across => o.loops.last(),
            Layout::Along => found.sums.last(),
        };
        let variance = counted.and_then(|l| Variance::with_vectors(self.at.r.src, l));
        let x = match &variance {
            Some(variance) => self.at.eval_lanes(variance, o.factor, o.lanes as u8),
            None => self.at.eval(o.factor),
        };
        let Some(inside) = beyond else { return x };
        let zero = self.at.r.out.constant(Scalar::from_i64(o.ty.dtype, 0));
        self.at.r.out.select(inside, x, zero)
    }

    /// Brings a block's step into registers.
    fn bring(&mut self, staged: &[Staged], step: Value, registers: &[Vec<Value>]) {
        let zero = self.at.r.out.index(0);
        for (s, registers) in staged.iter().zip(registers) {
            for (unit, &register) in registers.iter().enumerate() {
                let absent = self.open_unit(s, unit);
                let (free, within, _) = self.unit(&s.operand, unit as i64);
                let free = self.at.r.out.binary(Add, s.first, free);
                let within = self.at.r.out.binary(Add, step, within);
                let x = self.fetch(s, free, within);
                self.at.r.out.store(register, zero, x);
                if absent {
                    self.at.r.out.close();
                }
            }
        }
    }

    /// Leaves a step from registers in shared storage, in the half that begins there.
    fn leave(&mut self, staged: &[Staged], halves: [Value; 2], registers: &[Vec<Value>]) {
        let zero = self.at.r.out.index(0);
        for ((s, registers), half) in staged.iter().zip(registers).zip(halves) {
            for (unit, &register) in registers.iter().enumerate() {
                let absent = self.open_unit(s, unit);
                let (_, _, place) = self.unit(&s.operand, unit as i64);
                let place = self.at.r.out.binary(Add, half, place);
                let x = self.at.r.out.load(register, zero);
                self.at.r.out.store(s.storage, place, x);
                if absent {
                    self.at.r.out.close();
                }
            }
        }
    }

    /// Opens a branch if not every thread has this unit.
    fn open_unit(&mut self, s: &Staged, unit: usize) -> bool {
        let (threads, units) = (self.tile.threads(), s.operand.units());
        let all = (unit as i64 + 1) * threads <= units;
        if !all {
            let mine = self.at.op(Lt, self.thread, units - unit as i64 * threads);
            self.at.r.out.open_if(mine);
        }
        !all
    }
}

/// The sums of a thread.
impl Emit<'_, '_> {
    /// All steps; gives the registers of the sums, row by row.
    fn sums(&mut self, staged: &[Staged]) -> Vec<Value> {
        let ty = self.at.r.src.ty(self.found.acc);
        let zero = self.at.r.out.index(0);
        let start = self.at.eval(self.found.start);
        let sums: Vec<Value> = (0..self.tile.row * self.tile.column)
            .map(|_| {
                let sum = self.at.r.out.alloc(Space::Register, ty, 1);
                let start = self.at.r.out.splat(start, ty.lanes);
                self.at.r.out.store(sum, zero, start);
                sum
            })
            .collect();
        let registers: Vec<Vec<Value>> = staged
            .iter()
            .map(|s| {
                let n = blocks(s.operand.units(), self.tile.threads());
                (0..n).map(|_| self.at.r.out.alloc(Space::Register, s.operand.ty, 1)).collect()
            })
            .collect();
        let steps = blocks(count(&self.found.sums), self.tile.depth);
        let origin = self.at.int(0);
        self.bring(staged, origin, &registers);
        if steps == 1 {
            self.leave(staged, [origin, origin], &registers);
            self.at.r.out.barrier(BarrierScope::Shared);
            self.products(staged, [origin, origin], &sums);
            return sums;
        }
        let len = self.at.r.out.index(steps);
        let block = self.at.r.out.open_loop(LoopKind::Serial, 0, len);
        let block = self.at.r.out.cast(DType::I32, block);
        let parity = self.at.masked(block, 2);
        let halves = [0, 1].map(|i: usize| self.at.op(Mul, parity, staged[i].operand.size()));
        self.leave(staged, halves, &registers);
        self.at.r.out.barrier(BarrierScope::Shared);
        let next = self.at.plus(block, 1);
        let more = self.at.op(Lt, next, steps);
        self.at.r.out.open_if(more);
        let step = self.at.times(next, self.tile.depth);
        self.bring(staged, step, &registers);
        self.at.r.out.close();
        self.products(staged, halves, &sums);
        self.at.r.out.close();
        sums
    }

    /// Adds the products of one staged step.
    fn products(&mut self, staged: &[Staged], halves: [Value; 2], sums: &[Value]) {
        let unrolled = UNROLLED.min(self.tile.depth);
        let len = self.at.r.out.index(self.tile.depth / unrolled);
        let turn = self.at.r.out.open_loop(LoopKind::Serial, 0, len);
        let turn = self.at.r.out.cast(DType::I32, turn);
        let first = self.at.times(turn, unrolled);
        let bases = [0, 1].map(|i: usize| self.base(&staged[i], halves[i], first));
        let mut lines: [Vec<Value>; 2] = [Vec::new(), Vec::new()];
        for step in 0..unrolled {
            let factors =
                [0, 1].map(|i: usize| self.own(&staged[i], bases[i], step, &mut lines[i]));
            self.accumulate(&factors, sums);
        }
        self.at.r.out.close();
    }

    /// Where a thread's first element of a step is.
    fn base(&mut self, s: &Staged, half: Value, step: Value) -> Value {
        let o = &s.operand;
        let (line, at) = match o.layout {
            Layout::Along => (s.own, self.at.shifted(step, o.lanes)),
            _ => (step, s.own),
        };
        let start = self.at.times(line, o.stride());
        let at = self.at.r.out.binary(Add, start, at);
        self.at.r.out.binary(Add, half, at)
    }

    /// The elements of a thread's rows (or columns) in a step after the base. `lines` are the
    /// vectors of several steps.
    fn own(&mut self, s: &Staged, base: Value, step: i64, lines: &mut Vec<Value>) -> Vec<Value> {
        let (o, threads) = (&s.operand, s.threads());
        let load = |e: &mut Self, offset: i64| {
            let at = e.at.plus(base, offset);
            e.at.r.out.load(s.storage, at)
        };
        let extract = |e: &mut Self, x: Value, lane: i64| {
            e.at.r.out.emit(Op::Extract { x, lane: lane as u8 }, Type::scalar(o.ty.dtype))
        };
        match o.layout {
            Layout::Single => {
                (0..o.own).map(|i| load(self, step * o.stride() + i * threads)).collect()
            }
            Layout::Across => {
                let units: Vec<Value> = (0..o.own / o.lanes)
                    .map(|i| load(self, step * o.stride() + i * threads))
                    .collect();
                let lanes = units.into_iter().flat_map(|x| (0..o.lanes).map(move |l| (x, l)));
                lanes.collect::<Vec<_>>().into_iter().map(|(x, l)| extract(self, x, l)).collect()
            }
            Layout::Along => {
                if step % o.lanes == 0 {
                    let line = |i: i64| i * threads * o.stride() + step / o.lanes;
                    *lines = (0..o.own).map(|i| load(self, line(i))).collect();
                }
                lines.iter().map(|&x| extract(self, x, step % o.lanes)).collect()
            }
        }
    }

    fn accumulate(&mut self, [rows, columns]: &[Vec<Value>; 2], sums: &[Value]) {
        let zero = self.at.r.out.index(0);
        for (i, &x) in rows.iter().enumerate() {
            for (j, &y) in columns.iter().enumerate() {
                let sum = sums[i * columns.len() + j];
                let product = self.at.r.out.binary(Mul, x, y);
                let old = self.at.r.out.load(sum, zero);
                let new = self.at.r.out.binary(Add, old, product);
                self.at.r.out.store(sum, zero, new);
            }
        }
    }
}

/// What follows the sums.
impl Emit<'_, '_> {
    fn results(&mut self, staged: &[Staged], sums: &[Value]) {
        let zero = self.at.r.out.index(0);
        let (rows, columns) = (self.positions(&staged[0]), self.positions(&staged[1]));
        for (i, &row) in rows.iter().enumerate() {
            for (j, &column) in columns.iter().enumerate() {
                let edges = staged.iter().zip([row, column]);
                let edges = edges.map(|(s, at)| (at, s.operand.total(), s.operand.extent));
                let open = self.at.open_below(edges);
                self.begin();
                self.at.place(&self.found.rows, row);
                self.at.place(&self.found.columns, column);
                let sum = self.at.r.out.load(sums[i * columns.len() + j], zero);
                self.found.result(&mut self.at, sum);
                if open {
                    self.at.r.out.close();
                }
            }
        }
    }

    /// The rows (or columns) of a thread.
    fn positions(&mut self, s: &Staged) -> Vec<Value> {
        let (o, threads) = (&s.operand, s.threads());
        let lanes = if o.layout == Layout::Across { o.lanes } else { 1 };
        let own = self.at.times(s.own, lanes);
        let first = self.at.r.out.binary(Add, s.first, own);
        let offsets = (0..o.own).map(|i| i / lanes * threads * lanes + i % lanes);
        offsets.collect::<Vec<_>>().into_iter().map(|offset| self.at.plus(first, offset)).collect()
    }
}
