//! Products by matrix instructions: how the threads of a group bring factors to shared storage.
//!
//! For each 16 lines (rows of the left factor, columns of the right one) and 16 steps there are 32 slots of eight halves, one for
//! each thread of a warp ([`mma::place`]). A thread brings units of a slot, or of four where memory runs along lines: eight
//! lines of four steps, which it transposes. Slots are placed so that neither loads nor stores of eight threads share a bank.
//! While a block of steps is multiplied, the next one is on its way in registers; shared storage has room for two.

use super::Lang;
use super::array::Array;
use super::control::Numbers;
use super::group::{Group, Touched};
use super::handle::MatrixHandle;
use super::pipeline::Stages;
use super::tile::{Layout, Matrix};
use super::value::Val;
use crate::dtype::DType;
use crate::ir::mma::{self, HELD, SIDE, WARP};
use crate::ir::{Op, Space, Type, Value};
use crate::ops::BinaryOp;

/// Most steps of a block.
const DEPTH: usize = 64;
/// Steps of a block where the product has an unknown number of them.
const STEPS: usize = 32;

/// The element of a line and a step.
pub(super) type Element<'f, 'k> = &'f dyn Fn(Val<'k>, Val<'k>) -> Val<'k>;

/// The left factor by row and step, and the right one by column and step.
pub(super) type Factors<'f, 'k> = [Element<'f, 'k>; 2];

/// How memory is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// Four steps of two lines, each in one load if they are aligned.
    Steps,
    /// Eight lines of four steps, each in one load.
    Lines,
    /// Element by element, neighbouring threads at neighbouring lines.
    Single,
}

impl Access {
    /// Loads of a unit, elements of a load, and slots of a unit.
    fn unit(self) -> [usize; 3] {
        match self {
            Access::Steps => [2, 4, 1],
            Access::Lines => [4, 8, 4],
            Access::Single => [HELD, 1, 1],
        }
    }
}

/// A factor that is staged in shared storage.
struct Side<'f, 'k> {
    group: Group<'k>,
    element: Element<'f, 'k>,
    right: bool,
    /// Lines and steps of a block.
    extent: usize,
    depth: usize,
    access: Access,
    /// The slots of two blocks.
    storage: Array<'k>,
    /// The loads of a unit, for each unit of a thread.
    registers: Value,
    units: usize,
}

/// Where a unit is: its first line of 16, its slot's place in a warp, and the squares along lines and steps.
struct Unit<'k> {
    first: Val<'k>,
    place: [Val<'k>; 2],
    lines: Val<'k>,
    steps: Val<'k>,
}

/// The slot of a warp's thread with the number `4 g + t`, among 32.
fn slot<'k>(g: Val<'k>, t: Val<'k>) -> Val<'k> {
    let number = g * 4 + t;
    let high = g / 2;
    let top = high.binary(BinaryOp::And, 2) * 2;
    number.binary(BinaryOp::Xor, high.binary(BinaryOp::Or, top))
}

impl<'f, 'k> Side<'f, 'k> {
    fn new(
        group: Group<'k>,
        element: Element<'f, 'k>,
        right: bool,
        [extent, depth]: [usize; 2],
    ) -> Option<Side<'f, 'k>> {
        let k = group.k;
        let mut found = (DType::F32, Access::Single);
        // Recorded once to see how it reads memory, and never run.
        let look = |line| {
            k.for_each(0usize, |step| {
                let [line, step] = [line, step].map(|x| x * HELD);
                let value = element(line, step);
                let along = |counter, n| k.vector(value, counter, n).is_some();
                let access = match () {
                    () if along(step, 4) => Access::Steps,
                    () if along(line, 8) => Access::Lines,
                    () if along(step, 1) => Access::Steps,
                    () => Access::Single,
                };
                found = (value.dtype(), access);
            });
        };
        group.phase("add_product", || k.for_each(0usize, look));
        let (dtype, access) = found;
        if !k.caps().mma.contains(dtype) {
            k.fail(format_args!("factors are {dtype}, of which there are no matrix instructions"));
            return None;
        }
        let slots = extent * depth / HELD;
        let [loads, lanes, of_unit] = access.unit();
        let units = (slots / of_unit).div_ceil(group.threads());
        let storage = group.scratch_of(&[2 * slots], Type::vector(dtype, HELD as u8));
        let ty = Type { dtype, lanes: lanes as u8 };
        let registers = k.emit(|s| s.b.alloc(Space::Register, ty, (units * loads) as u32));
        Some(Side { group, element, right, extent, depth, access, storage, registers, units })
    }

    fn slots(&self) -> usize {
        self.extent * self.depth / HELD
    }

    /// The number of the thread's unit of a turn.
    fn number(&self, turn: usize) -> Val<'k> {
        self.group.thread().cast(DType::I32) + turn * self.group.threads()
    }

    fn unit(&self, turn: usize) -> Unit<'k> {
        let mut rest = self.number(turn);
        let mut next = |n: usize| {
            let digit = rest % n;
            rest = rest / n;
            digit
        };
        let [lines, steps] = [self.extent / SIDE, self.depth / SIDE];
        match self.access {
            Access::Steps => {
                let (t, low, steps) = (next(4), next(2), next(steps));
                let (high, lines) = (next(4), next(lines));
                Unit { first: high * 4 + low, place: [high * 2 + low, t], lines, steps }
            }
            Access::Lines => {
                let (half, lines) = (next(2), next(lines));
                let (t, steps) = (next(4), next(steps));
                Unit { first: half * 8, place: [half * 4, t], lines, steps }
            }
            Access::Single => {
                let (g, lines) = (next(8), next(lines));
                let (t, steps) = (next(4), next(steps));
                Unit { first: g / 2 * 4 + g % 2, place: [g, t], lines, steps }
            }
        }
    }

    /// Loads a block of steps from one on, which end at another if that is not certain.
    fn bring(&self, first: Val<'k>, end: Option<Val<'k>>) {
        let k = self.group.k;
        let element = |line: Val<'k>, step: Val<'k>| {
            let value = (self.element)(line, step);
            end.map_or(value, |end| k.masked(step.lt(end), value))
        };
        let [loads, ..] = self.access.unit();
        for turn in 0..self.units {
            let at = self.unit(turn);
            let line = k.as_index(at.lines * SIDE + at.first);
            let step = first + k.as_index(at.steps * SIDE + at.place[1] * 4);
            for i in 0..loads {
                let value = match self.access {
                    Access::Steps => k.lanes(4, step, &|step| element(line + 2 * i, step)),
                    Access::Lines => k.lanes(8, line, &|line| element(line, step + i)),
                    Access::Single => element(line + i / 4 * 2, step + i % 4).value,
                };
                k.emit(|s| {
                    let place = s.b.index((turn * loads + i) as i64);
                    s.b.store(self.registers, place, value)
                });
            }
        }
    }

    /// The index of the first slot of a block.
    fn half(&self, block: Val<'k>) -> Val<'k> {
        block.cast(DType::I32) % 2 * self.slots()
    }

    /// A slot, as the 16 lines with this number have it.
    fn turned(&self, slot: Val<'k>, lines: Val<'k>) -> Val<'k> {
        if self.access == Access::Lines { slot.binary(BinaryOp::Xor, lines % 4) } else { slot }
    }

    /// Stores the block that was brought.
    fn leave(&self, block: Val<'k>) {
        let k = self.group.k;
        let half = self.half(block);
        let [_, _, slots] = self.access.unit();
        let units = self.slots() / slots;
        for turn in 0..self.units {
            let store = || {
                let at = self.unit(turn);
                let square = half + (at.steps * (self.extent / SIDE) + at.lines) * WARP;
                for i in 0..slots {
                    let slot = self.turned(slot(at.place[0] + i, at.place[1]), at.lines);
                    let held = self.held(turn, i);
                    let place = square + slot;
                    k.touch(&self.storage, Touched::WRITTEN);
                    k.emit(|s| s.b.store(self.storage.storage(), place.value, held));
                }
            };
            if (turn + 1) * self.group.threads() <= units {
                store();
            } else {
                k.when(self.number(turn).lt(units), store);
            }
        }
    }

    /// The elements of a slot of a unit.
    fn held(&self, turn: usize, slot: usize) -> Value {
        let (ty, [loads, ..]) = (Type::scalar(self.storage.dtype()), self.access.unit());
        self.group.k.gather(ty, HELD, &|s, i| {
            // The line, 0 or 1 of the slot's two, and the step.
            let element = if self.right { i } else { mma::left_order(i) };
            let (line, step) = (element / 4, element % 4);
            let (load, lane) = match self.access {
                Access::Steps => (line, step),
                Access::Lines => (step, 4 * (slot / 2) + slot % 2 + 2 * line),
                Access::Single => (element, 0),
            };
            let place = s.b.index((turn * loads + load) as i64);
            let x = s.b.load(self.registers, place);
            match s.b.ty(x).is_vector() {
                true => s.b.emit(Op::Extract { x, lane: lane as u8 }, ty),
                false => x,
            }
        })
    }

    /// The elements that the thread multiplies of 16 lines and 16 steps of a block.
    fn square(&self, half: Val<'k>, lines: Val<'k>, steps: usize) -> Value {
        let lane = self.number(0) % WARP;
        let slot = self.turned(slot(lane / 4, lane % 4), lines);
        let place = half + (lines + steps * (self.extent / SIDE)) * WARP + slot;
        let k = self.group.k;
        k.touch(&self.storage, Touched::READ);
        k.emit(|s| s.b.load(self.storage.storage(), place.value))
    }
}

impl<'k> Matrix<'k> {
    /// Adds the product of factors that are brought by blocks.
    pub(super) fn multiply_squares(
        &self,
        of_warp: usize,
        (start, len): Numbers<'k>,
        [left, right]: Factors<'_, 'k>,
    ) {
        let known = len.literal().and_then(|n| usize::try_from(n.to_i64()).ok());
        let depth = known.map_or(STEPS, |n| n.next_multiple_of(SIDE).clamp(SIDE, DEPTH));
        let depth = if depth.is_power_of_two() { depth } else { SIDE };
        let end = known.is_none_or(|n| n % depth != 0).then_some(start + len);
        let side = |element, right: bool| {
            let extent = self.shape()[usize::from(right)];
            Side::new(self.group(), element, right, [extent, depth])
        };
        let (Some(left), Some(right)) = (side(left, false), side(right, true)) else { return };
        let sides = [left, right];
        let load = &|block: Val<'k>| sides.iter().for_each(|x| x.bring(start + block * depth, end));
        let store = &|block: Val<'k>| sides.iter().for_each(|side| side.leave(block));
        let stages = Stages { count: 2, is_held: false, load, store };
        self.group().run_stages(&stages, len.div_ceil(depth), &|block| {
            let [left, right] = &sides;
            let warp = left.number(0) / WARP * of_warp;
            let half = left.half(block);
            self.multiply_block(right, block, &|i, step| left.square(half, warp + i, step));
        });
        sides.iter().for_each(|side| self.group().give_back(&side.storage));
    }

    /// Adds the product of a matrix that threads hold, converted to a dtype, and a factor that is brought by blocks, the first one
    /// before the matrix is computed.
    pub(super) fn multiply_held(
        &self,
        steps: usize,
        dtype: DType,
        right: Element<'_, 'k>,
        matrix: &dyn Fn() -> Matrix<'k>,
    ) {
        let k = self.k;
        let depth = steps.min(DEPTH);
        let side = Side::new(self.group(), right, true, [self.shape()[1], depth]);
        let Some(side) = side else { return };
        self.group().phase("add_product", || side.bring(k.index(0), None));
        let matrix = matrix();
        let load = &|block: Val<'k>| side.bring(block * depth, None);
        let store = &|block: Val<'k>| side.leave(block);
        let stages = Stages { count: 2, is_held: true, load, store };
        self.group().run_stages(&stages, k.index((steps / depth) as i64), &|block| {
            let Some(n) = block.literal().map(|n| n.to_i64() as usize) else {
                return k.fail("invariant: blocks of steps are unrolled");
            };
            let squares = |i: usize| i * (steps / SIDE) + n * (depth / SIDE);
            let left = |i: usize, step| matrix.as_left(squares(i) + step, dtype);
            self.multiply_block(&side, block, &left);
        });
        self.group().give_back(&side.storage);
    }

    /// Adds the products of a block: of the left factor there are the squares of the warp by row of squares and step.
    fn multiply_block(
        &self,
        right: &Side<'_, 'k>,
        block: Val<'k>,
        left: &dyn Fn(usize, usize) -> Value,
    ) {
        let Layout::Squares { of_warp } = self.handle.layout else { return };
        let (k, columns) = (self.k, self.shape()[1] / SIDE);
        let Some(row) = mma::row(right.storage.dtype()) else { return };
        self.group().phase("add_product", || {
            let half = right.half(block);
            for step in 0..right.depth / SIDE {
                let a: Vec<Value> = (0..of_warp).map(|i| left(i, step)).collect();
                for j in 0..columns {
                    let lines = k.index(j as i64).cast(DType::I32);
                    let b = right.square(half, lines, step);
                    for (i, &a) in a.iter().enumerate() {
                        let storage = self.handle.storage;
                        k.emit(|s| {
                            let place = s.b.index(((i * columns + j) * HELD) as i64);
                            let c = s.b.load_vector(storage, place, HELD as u8);
                            let ty = s.b.ty(c);
                            let sum = s.b.emit(Op::Mma { row, a, b, c }, ty);
                            s.b.store(storage, place, sum)
                        });
                    }
                }
            }
        });
    }

    /// A square that the thread holds, in the order of a left factor.
    fn as_left(&self, square: usize, dtype: DType) -> Value {
        let MatrixHandle { storage, dtype: ty, .. } = self.handle;
        let all = self.k.gather(Type::scalar(ty), HELD, &|s, i| {
            let from = s.b.index((square * HELD + mma::left_order(i)) as i64);
            s.b.load(storage, from)
        });
        self.k.emit(|s| s.b.cast(dtype, all))
    }
}

impl Lang {
    /// A value, or zero where a condition does not hold; of an element of an argument by a guard.
    pub(super) fn masked<'k>(&'k self, inside: Val<'k>, value: Val<'k>) -> Val<'k> {
        let Op::Load { order, buf, index } = value.op() else { return inside.select(value, 0) };
        let digits = self.state.borrow().digits(value.value).cloned();
        let Some(digits) = digits else { return inside.select(value, 0) };
        self.val(|s| {
            let index = s.b.guard(index, inside.value);
            s.access(Op::Load { order, buf, index }, s.b.ty(value.value), digits)
        })
    }
}
