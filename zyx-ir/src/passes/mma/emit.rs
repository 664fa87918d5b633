//! The kernel of a nest in blocks of matrix instructions.

use super::side::{Layout, Side, Unit, first_line, slot};
use super::{Halves, Tile, blocks, count, is_whole};
use crate::dtype::DType;
use crate::ir::mma::{self, HELD, SIDE, WARP};
use crate::ir::{BarrierScope, Kernel, LoopKind, Op, Space, Type, Value};
use crate::ops::BinaryOp;
use crate::passes::block::{is_lanewise, is_side_by_side};
use crate::passes::elements::Elements;
use crate::passes::loops::LoopInfo;
use crate::passes::variance::{Form, Variance};
use crate::scalar::Scalar;

use BinaryOp::{Add, Lt, Min, Mul};

/// Lines of a slot that follow one another in a thread: its sums of a row.
const RUN: i64 = 4;

/// The nest in blocks.
pub(super) fn emit(kernel: &Kernel, halves: &Halves, tile: Tile) -> Kernel {
    let found = &halves.found;
    let mut at = Elements::new(kernel, found.root().open);
    let r = &mut at.r;
    // Lengths of bound loops stand at the top. Neighbouring groups share rows.
    let groups = halves.groups(tile).map(|n| r.out.index(n));
    let threads = r.out.index(tile.threads());
    let places = [2, 1, 0].map(|axis: usize| {
        let group = r.out.open_loop(LoopKind::Group, axis as u8, groups[axis]);
        r.out.cast(DType::I32, group)
    });
    let steps = halves.steps(kernel, tile.depth);
    let sides = [false, true].map(|right| Side::of(kernel, halves, tile, &steps, right));
    let held = Type::vector(halves.half, HELD as u8);
    let storage =
        [0, 1].map(|i: usize| r.out.alloc(Space::Shared, held, 2 * sides[i].size() as u32));
    let thread = r.out.open_loop(LoopKind::Local, 0, threads);
    let thread = r.out.cast(DType::I32, thread);
    let (lane, team) = (at.masked(thread, WARP as i64), at.shifted(thread, WARP as i64));
    let (g, t) = (at.shifted(lane, 4), at.masked(lane, 4));
    let across = tile.columns / tile.column;
    let first = [at.times(places[1], tile.rows), at.times(places[2], tile.columns)];
    let own = [at.shifted(team, across), at.masked(team, across)];
    let slot = slot(&mut at, g, t);
    let mut e = Emit { at, halves, tile, steps, thread, batch: places[0], g, t, slot };
    let [left, right] = sides;
    let staged = [
        Staged { side: left, storage: storage[0], first: first[0], own: own[0] },
        Staged { side: right, storage: storage[1], first: first[1], own: own[1] },
    ];
    let sums = e.sums(&staged);
    e.results(&staged, &sums);
    for _ in 0..4 {
        e.at.r.out.close();
    }
    e.at.r.finish_from(found.root().end + 1)
}

/// A factor and where it is.
struct Staged {
    side: Side,
    storage: Value,
    /// The first line of the block, and the team's number along the lines.
    first: Value,
    own: Value,
}

struct Emit<'k, 'h> {
    at: Elements<'k>,
    halves: &'h Halves,
    tile: Tile,
    /// The loops of the reduction in the order of steps.
    steps: Vec<LoopInfo>,
    thread: Value,
    batch: Value,
    /// The thread's place in its team, and its slot.
    g: Value,
    t: Value,
    slot: Value,
}

impl Emit<'_, '_> {
    /// Starts over for another element.
    fn begin(&mut self) {
        self.at.clear();
        self.at.place(&self.halves.found.batch, self.batch);
    }

    fn register(&mut self, ty: Type) -> Value {
        self.at.r.out.alloc(Space::Register, ty, 1)
    }
}

/// The step that a block begins at.
struct Origin {
    merged: Value,
    /// The counters, if the block's steps move only the last of them.
    counters: Option<Vec<Value>>,
}

/// Bringing factors.
impl Emit<'_, '_> {
    fn origin(&mut self, merged: Value) -> Origin {
        let whole = is_whole(&self.steps[self.steps.len() - 1], self.tile.depth);
        let counters = whole.then(|| self.at.counters(&self.steps, merged));
        Origin { merged, counters }
    }

    /// What is loaded at a line of the whole and a step of the block.
    fn fetch(&mut self, s: &Staged, line: Value, (origin, within): (&Origin, Value)) -> Value {
        let side = &s.side;
        let (_, along, across) = side.layout.loads();
        // Lines beyond the last are computed and not stored, so any line will do.
        let total = count(&side.loops);
        let line = match total % side.extent {
            0 => line,
            _ => self.at.op(Min, line, total - across),
        };
        let (counters, inside) = self.counters(origin, within, along);
        self.begin();
        self.at.place(&side.loops, line);
        self.at.place_each(&self.steps, &counters);
        let x = match &side.variance {
            Some(variance) => self.at.eval_lanes(variance, side.factor, (along * across) as u8),
            None => self.at.eval(side.factor),
        };
        let Some(inside) = inside else { return x };
        let zero = self.at.r.out.constant(Scalar::from_i64(self.halves.half, 0));
        self.at.r.out.select(inside, x, zero)
    }

    /// The counters of a step of the block, and whether there is such a step, if it is not certain.
    fn counters(
        &mut self,
        origin: &Origin,
        within: Value,
        along: i64,
    ) -> (Vec<Value>, Option<Value>) {
        if let Some(counters) = &origin.counters {
            let mut counters = counters.clone();
            let last = counters.len() - 1;
            counters[last] = self.at.r.out.binary(Add, counters[last], within);
            return (counters, None);
        }
        let steps = count(&self.steps);
        let step = self.at.r.out.binary(Add, origin.merged, within);
        let inside = (steps % self.tile.depth != 0).then(|| self.at.op(Lt, step, steps));
        let step = if inside.is_some() { self.at.op(Min, step, steps - along) } else { step };
        (self.at.counters(&self.steps, step), inside)
    }

    /// Brings a factor's part of a block into registers. Threads without a unit of their own bring
    /// another's.
    fn bring(&mut self, s: &Staged, origin: &Origin, registers: &[Vec<Value>]) {
        let zero = self.at.r.out.index(0);
        let threads = self.tile.threads();
        for (turn, unit) in registers.iter().enumerate() {
            let place = Unit::of(&mut self.at, &s.side, (self.thread, threads), turn as i64);
            let (line, within) = place.origin(&mut self.at);
            let line = self.at.r.out.binary(Add, s.first, line);
            for (i, &register) in unit.iter().enumerate() {
                let (lines, steps) = match s.side.layout {
                    Layout::Along => (2 * i, 0),
                    Layout::Across => (0, i),
                    Layout::Steps | Layout::Lines => (i / 4 * 2, i % 4),
                };
                let line = self.at.plus(line, lines as i64);
                let step = self.at.plus(within, steps as i64);
                let x = self.fetch(s, line, (origin, step));
                self.at.r.out.store(register, zero, x);
            }
        }
    }

    /// Leaves a step from registers in shared storage, in the half that begins there.
    fn leave(&mut self, staged: &[Staged; 2], halves: [Value; 2], registers: &Registers) {
        for ((s, registers), half) in staged.iter().zip(registers).zip(halves) {
            for (turn, unit) in registers.iter().enumerate() {
                let absent = self.open_turn(s, turn);
                let place = Unit::of(
                    &mut self.at,
                    &s.side,
                    (self.thread, self.tile.threads()),
                    turn as i64,
                );
                let lines = self.at.times(place.lines, s.side.square(1, 0));
                let steps = self.at.times(place.steps, s.side.square(0, 1));
                let square = self.at.r.out.binary(Add, lines, steps);
                let square = self.at.r.out.binary(Add, half, square);
                for i in 0..s.side.layout.slots() {
                    let line = self.at.plus(place.line, i);
                    let slot = slot(&mut self.at, line, place.step);
                    let slot = s.side.turned(&mut self.at, slot, place.lines);
                    let slot = self.at.r.out.binary(Add, square, slot);
                    let held = self.held(&s.side, unit, i as usize);
                    self.at.r.out.store(s.storage, slot, held);
                }
                if absent {
                    self.at.r.out.close();
                }
            }
        }
    }

    /// What belongs into a slot of a unit.
    fn held(&mut self, side: &Side, unit: &[Value], slot: usize) -> Value {
        let zero = self.at.r.out.index(0);
        let half = Type::scalar(self.halves.half);
        let scratch = self.at.r.out.alloc(Space::Register, half, HELD as u32);
        for i in 0..HELD {
            // The line (0 or 1 of the slot's two) and the step.
            let element = if side.right { i } else { mma::left_order(i) };
            let (line, step) = (element / 4, element % 4);
            let (from, lane) = match side.layout {
                Layout::Along => (line, step),
                Layout::Across => (step, 4 * (slot / 2) + slot % 2 + 2 * line),
                Layout::Steps | Layout::Lines => (element, 0),
            };
            let x = self.at.r.out.load(unit[from], zero);
            let x = if self.at.r.out.ty(x).is_vector() {
                self.at.r.out.emit(Op::Extract { x, lane: lane as u8 }, half)
            } else {
                x
            };
            let place = self.at.r.out.index(i as i64);
            self.at.r.out.store(scratch, place, x);
        }
        self.at.r.out.load_vector(scratch, zero, HELD as u8)
    }

    /// Opens a branch if not every thread has a unit in this turn.
    fn open_turn(&mut self, s: &Staged, turn: usize) -> bool {
        let (threads, units) = (self.tile.threads(), s.side.units());
        let all = (turn as i64 + 1) * threads <= units;
        if !all {
            let mine = self.at.op(Lt, self.thread, units - turn as i64 * threads);
            self.at.r.out.open_if(mine);
        }
        !all
    }
}

/// For each side and turn the registers of a unit's loads.
type Registers = [Vec<Vec<Value>>; 2];

/// The sums of a team.
impl Emit<'_, '_> {
    /// All steps; gives the registers of the sums, square by square, row by row.
    fn sums(&mut self, staged: &[Staged; 2]) -> Vec<Value> {
        let row = mma::row(self.halves.half).expect("invariant: there is an instruction");
        let ty = Type::vector(mma::ROWS[usize::from(row)].sum, HELD as u8);
        let zero = self.at.r.out.index(0);
        let start = self.at.eval(self.halves.found.start);
        let start = self.at.r.out.splat(start, ty.lanes);
        let squares = (self.tile.row / SIDE as i64) * (self.tile.column / SIDE as i64);
        let sums: Vec<Value> = (0..squares).map(|_| self.register(ty)).collect();
        for &sum in &sums {
            self.at.r.out.store(sum, zero, start);
        }
        let registers: Registers = [0, 1].map(|i: usize| self.registers(&staged[i]));
        let steps = blocks(count(&self.steps), self.tile.depth);
        let first = self.at.int(0);
        let origin = self.origin(first);
        for (s, registers) in staged.iter().zip(&registers) {
            self.bring(s, &origin, registers);
        }
        self.leave(staged, [first; 2], &registers);
        self.at.r.out.barrier(BarrierScope::Shared);
        // Behind the last block nothing is brought: it stands behind the loop, or branches in it.
        let branches = staged.iter().any(|s| s.side.layout.is_single());
        let turns = if branches { steps } else { steps - 1 };
        if turns > 0 {
            let len = self.at.r.out.index(turns);
            let block = self.at.r.out.open_loop(LoopKind::Serial, 0, len);
            let block = self.at.r.out.cast(DType::I32, block);
            let next = self.at.plus(block, 1);
            let [halves, others] = [block, next].map(|n| self.halves(staged, n));
            self.bring_next(staged, (next, branches.then_some(steps)), &registers);
            self.products(staged, halves, (row, &sums));
            self.leave(staged, others, &registers);
            self.at.r.out.barrier(BarrierScope::Shared);
            self.at.r.out.close();
        }
        if !branches {
            let last = self.at.int((steps - 1) % 2);
            let halves = self.halves(staged, last);
            self.products(staged, halves, (row, &sums));
        }
        sums
    }

    /// Brings what the block after this one multiplies. Vectors come in straight code: compilers
    /// take vectors of halves apart where a branch ends, and wait for them. Single elements come
    /// in a branch, not taken from block `end` on: of straight code compilers move as many loads
    /// behind the products. The vectors beside them come twice then.
    fn bring_next(
        &mut self,
        staged: &[Staged; 2],
        (next, end): (Value, Option<i64>),
        registers: &Registers,
    ) {
        let more = end.map(|end| self.at.op(Lt, next, end));
        let next = end.map_or(next, |end| self.at.op(Min, next, end - 1));
        let step = self.at.times(next, self.tile.depth);
        let origin = self.origin(step);
        for (s, registers) in staged.iter().zip(registers) {
            let branch = more.filter(|_| s.side.layout.is_single());
            if let Some(more) = branch {
                self.at.r.out.open_if(more);
            }
            self.bring(s, &origin, registers);
            if branch.is_some() {
                self.at.r.out.close();
            }
        }
    }

    /// Where the halves of shared storage begin that a block with this number is staged in.
    fn halves(&mut self, staged: &[Staged; 2], block: Value) -> [Value; 2] {
        let parity = self.at.masked(block, 2);
        [0, 1].map(|i: usize| self.at.op(Mul, parity, staged[i].side.size()))
    }

    fn registers(&mut self, s: &Staged) -> Vec<Vec<Value>> {
        let (loads, along, across) = s.side.layout.loads();
        let ty = Type { dtype: self.halves.half, lanes: (along * across) as u8 };
        let turns = blocks(s.side.units(), self.tile.threads());
        (0..turns).map(|_| (0..loads).map(|_| self.register(ty)).collect()).collect()
    }

    /// The thread's slots of the first steps in a half of shared storage: of each 16 lines of its
    /// team, less what [`Side::square`] counts.
    fn bases(&mut self, s: &Staged, half: Value) -> Vec<Value> {
        let squares = s.side.own / SIDE as i64;
        let first = self.at.times(s.own, s.side.square(squares, 0));
        let number = self.at.times(s.own, squares);
        let base = |lines: i64| {
            let number = self.at.plus(number, lines);
            let slot = s.side.turned(&mut self.at, self.slot, number);
            let own = self.at.r.out.binary(Add, first, slot);
            self.at.r.out.binary(Add, half, own)
        };
        (0..squares).map(base).collect()
    }

    /// Adds the products of one staged step.
    fn products(&mut self, staged: &[Staged; 2], halves: [Value; 2], (row, sums): (u16, &[Value])) {
        let zero = self.at.r.out.index(0);
        let bases = [0, 1].map(|i: usize| self.bases(&staged[i], halves[i]));
        for steps in 0..self.tile.depth / SIDE as i64 {
            let [left, right] = [0, 1].map(|i: usize| {
                let load = |(lines, &base): (usize, &Value)| {
                    let place = self.at.plus(base, staged[i].side.square(lines as i64, steps));
                    self.at.r.out.load(staged[i].storage, place)
                };
                bases[i].iter().enumerate().map(load).collect::<Vec<_>>()
            });
            for (i, &a) in left.iter().enumerate() {
                for (j, &b) in right.iter().enumerate() {
                    let sum = sums[i * right.len() + j];
                    let c = self.at.r.out.load(sum, zero);
                    let ty = self.at.r.out.ty(c);
                    let new = self.at.r.out.emit(Op::Mma { row, a, b, c }, ty);
                    self.at.r.out.store(sum, zero, new);
                }
            }
        }
    }
}

/// What follows the sums.
impl Emit<'_, '_> {
    fn results(&mut self, staged: &[Staged; 2], sums: &[Value]) {
        let zero = self.at.r.out.index(0);
        let wide = self.wide_results();
        let side = SIDE as i64;
        let columns = self.tile.column / side;
        let line = first_line(&mut self.at, self.g);
        let run = self.at.times(self.t, RUN);
        let [top, left] = [(0, line), (1, run)].map(|(i, within): (usize, Value)| {
            let own = self.at.times(staged[i].own, staged[i].side.own);
            let own = self.at.r.out.binary(Add, staged[i].first, own);
            self.at.r.out.binary(Add, own, within)
        });
        for (n, &sum) in sums.iter().enumerate() {
            let (i, j) = (n as i64 / columns, n as i64 % columns);
            let held = self.at.r.out.load(sum, zero);
            let ty = Type::scalar(self.at.r.out.ty(held).dtype);
            let scratch = self.at.r.out.alloc(Space::Register, ty, HELD as u32);
            self.at.r.out.store(scratch, zero, held);
            for half in 0..2 {
                let row = self.at.plus(top, i * side + 2 * half);
                let lanes = if wide.is_some() { RUN } else { 1 };
                for at in (0..RUN).step_by(lanes as usize) {
                    let column = self.at.plus(left, j * side + at);
                    let place = self.at.r.out.index(half * RUN + at);
                    let edges = staged.iter().zip([row, column]);
                    let edges = edges.map(|(s, at)| (at, count(&s.side.loops), s.side.extent));
                    let open = self.at.open_below(edges);
                    self.begin();
                    self.at.place(&self.halves.found.rows, row);
                    self.at.place(&self.halves.found.columns, column);
                    if let Some(variance) = &wide {
                        let sums = self.at.r.out.load_vector(scratch, place, RUN as u8);
                        self.store_run(variance, sums);
                    } else {
                        let sum = self.at.r.out.load(scratch, place);
                        self.halves.found.result(&mut self.at, sum);
                    }
                    if open {
                        self.at.r.out.close();
                    }
                }
            }
        }
    }

    /// What is known along the last loop of columns, if a thread's sums of a row can be finished
    /// and stored at once.
    fn wide_results(&self) -> Option<Variance> {
        let (kernel, found) = (self.at.r.src, &self.halves.found);
        let last: &LoopInfo = found.columns.last()?;
        let variance = Variance::with_vectors(kernel, last)?;
        let whole = last.len.is_some_and(|n| n % RUN == 0);
        let fits = found.behind().all(|i| match kernel.op(Value(i as u32)) {
            Op::Load { buf, .. } if buf == found.acc => true,
            Op::Load { .. } if i > found.sums[0].end => {
                is_lanewise(kernel, found, &variance, Value(i as u32))
            }
            Op::Store { buf, .. } if buf == found.acc => true,
            Op::Store { index, value, .. } => {
                is_side_by_side(kernel, &variance, index)
                    && kernel.ty(value).dtype.is_float()
                    && is_lanewise(kernel, found, &variance, value)
            }
            _ => true,
        });
        (whole && fits).then_some(variance)
    }

    /// Finishes and stores sums that lie side by side.
    fn store_run(&mut self, variance: &Variance, sums: Value) {
        let (kernel, found) = (self.at.r.src, &self.halves.found);
        let stores: Vec<usize> = found.behind().collect();
        for i in stores {
            let v = Value(i as u32);
            match kernel.op(v) {
                Op::Load { buf, .. } if buf == found.acc => self.at.set(v, sums),
                // In order, and once: a store may change what was loaded.
                Op::Load { .. } if i > found.sums[0].end => {
                    if variance.form(v) == Form::Uniform {
                        self.at.eval(v);
                    } else {
                        let wide = self.at.eval_lanes(variance, v, RUN as u8);
                        self.at.set(v, wide);
                    }
                }
                Op::Store { order, buf, index, value } if buf != found.acc => {
                    let value = self.at.eval_lanes(variance, value, RUN as u8);
                    let (buf, index) = (self.at.eval(buf), self.at.eval(index));
                    let ty = self.at.r.out.ty(value);
                    self.at.r.out.emit(Op::Store { order, buf, index, value }, ty);
                }
                _ => {}
            }
        }
    }
}
