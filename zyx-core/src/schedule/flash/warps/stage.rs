//! How blocks of columns come to shared storage, for square instructions.
//!
//! For each 16 columns and 16 steps there are 32 slots of eight halves, one to each thread of a
//! warp, in the order of threads. Operands of tiles are brought as two lines of 16 bytes, which are
//! two slots; that of the last product, whose memory runs across what it is summed over, as four
//! lines, turned into four slots in registers. A block is loaded to registers while the one before
//! is being used, and there are two places for it, so that there is one barrier to a block.

use super::{Blocks, HELD, Known, PAIR, QUAD, RUN, SIDE, WARP, Warps};
use crate::affine::{AtomId, Index};
use crate::graph::NodeId;
use crate::ir::{Space, Type, Value};
use crate::ops::BinaryOp::{Add, Div, Lt, Min, Mul, Rem};
use crate::scalar::Scalar;
use crate::schedule::flash::FlashAttention;
use crate::schedule::lower::Lowering;

/// For each operand along columns the first that is the same.
pub(super) fn homes(flash: &FlashAttention) -> Vec<usize> {
    let tiles = flash.tiles.len();
    let all: Vec<(NodeId, &Index, &[AtomId])> = (0..tiles)
        .map(|i| (2 * i + 1, &flash.inner[i][..]))
        .chain(flash.sums().enumerate().map(|(i, sum)| (2 * tiles + i, sum.3)))
        .map(|(i, axes)| (flash.operands[i], &flash.addresses[i], axes))
        .collect();
    let same = |i: usize, j: usize| {
        let ((a, x, from), (b, y, to)) = (all[i], all[j]);
        let turned = |axis| match from.iter().position(|&a| a == axis) {
            Some(place) => to.get(place).copied(),
            None => Some(axis),
        };
        let term =
            |&(axis, by): &(AtomId, i64)| turned(axis).is_some_and(|a| y.coefficient(a) == by);
        a == b
            && from.len() == to.len()
            && x.constant == y.constant
            && x.terms.len() == y.terms.len()
            && x.terms.iter().all(term)
    };
    (0..all.len()).map(|i| (0..i).find(|&j| same(i, j)).unwrap_or(i)).collect()
}

/// An operand along columns, and where it goes.
pub(super) struct Staged {
    /// Its number among the operands.
    operand: usize,
    /// Whether it is summed over along columns.
    turned: bool,
    /// Whether another operand that is the same is brought to its place.
    again: bool,
    pub(super) width: i64,
    /// The counter of its width.
    pub(super) axis: AtomId,
    pub(super) storage: Value,
    /// For each turn of a thread those that hold what it loaded.
    registers: Vec<Vec<Value>>,
}

/// Two times the slots of a block for each operand along columns.
pub(super) fn storage(l: &mut Lowering<'_>, flash: &FlashAttention, blocks: &Blocks) -> Vec<Value> {
    let held = Type::vector(blocks.half, HELD as u8);
    let widths = blocks.depths.iter().chain(&blocks.widths);
    let homes = homes(flash);
    let mut list: Vec<Value> = Vec::new();
    for (i, width) in widths.enumerate() {
        let place = match list.get(homes[i]).filter(|_| blocks.wide) {
            Some(&place) => place,
            None => l.b.alloc(Space::Shared, held, (2 * blocks.columns * width / RUN) as u32),
        };
        list.push(place);
    }
    list
}

/// What a thread brings in a turn: its place in a warp, the sixteen of columns, and the run.
struct Launch {
    g: Option<Value>,
    t: Value,
    run: Value,
    square: Value,
}

impl Staged {
    /// Slots of a block.
    pub(super) fn slots(&self, blocks: &Blocks) -> i64 {
        blocks.columns * self.width / RUN
    }

    /// Slots that a thread brings at once.
    fn together(&self) -> i64 {
        if self.turned { 4 } else { 2 }
    }
}

impl Warps<'_, '_> {
    /// The operands along columns: of the tiles, then of the sums.
    pub(super) fn staged(&mut self, storage: &[Value]) -> Vec<Staged> {
        let tiles = self.blocks.depths.len();
        let blocks = self.blocks;
        let widths: Vec<i64> = blocks.depths.iter().chain(&blocks.widths).copied().collect();
        let axes: Vec<&[AtomId]> = self.flash.inner.iter().map(|axes| &axes[..]).collect();
        let axes: Vec<&[AtomId]> =
            axes.into_iter().chain(self.flash.sums().map(|sum| sum.3)).collect();
        let homes = homes(self.flash);
        let mut list = Vec::new();
        for (i, (&storage, &width)) in storage.iter().zip(&widths).enumerate() {
            let turned = i >= tiles;
            let operand = if turned { tiles + i } else { 2 * i + 1 };
            let (axis, again) = (self.running(axes[i]), homes[i] != i);
            let registers = Vec::new();
            let mut staged = Staged { operand, turned, again, width, axis, storage, registers };
            let units = match self.blocks.wide {
                true => 0,
                false => staged.slots(self.blocks) / staged.together(),
            };
            let held = Type::vector(self.blocks.half, HELD as u8);
            for _ in 0..(units + self.blocks.threads() - 1) / self.blocks.threads() {
                let loads = 0..staged.together();
                staged.registers.push(loads.map(|_| self.register(held)).collect());
            }
            list.push(staged);
        }
        list
    }

    /// The unit of a turn. Neighbours read memory side by side and store to different banks.
    fn unit(&mut self, s: &Staged, turn: usize) -> Launch {
        let n = self.op(Add, self.thread, turn as i64 * self.blocks.threads());
        if s.turned {
            let low = self.op(Rem, n, 2);
            let t = self.op(Div, n, 2);
            let t = self.op(Rem, t, QUAD);
            let rest = self.op(Div, n, 2 * QUAD);
            let runs = s.width / (2 * RUN);
            let (high, square) = (self.op(Rem, rest, runs), self.op(Div, rest, runs));
            let high = self.op(Mul, high, 2);
            let run = self.l.b.binary(Add, high, low);
            return Launch { g: None, t, run, square };
        }
        let t = self.op(Rem, n, QUAD);
        let g = self.op(Div, n, QUAD);
        let g = self.op(Rem, g, WARP as i64 / QUAD);
        let rest = self.op(Div, n, WARP as i64);
        let pairs = s.width / PAIR;
        let (run, square) = (self.op(Rem, rest, pairs), self.op(Div, rest, pairs));
        Launch { g: Some(g), t, run, square }
    }

    /// Opens a branch if not every thread has a unit in this turn.
    fn open_turn(&mut self, s: &Staged, turn: usize) -> bool {
        let (threads, units) = (self.blocks.threads(), s.slots(self.blocks) / s.together());
        let all = (turn as i64 + 1) * threads <= units;
        if !all {
            let mine = self.op(Lt, self.thread, units - turn as i64 * threads);
            self.l.b.open_if(mine);
        }
        !all
    }

    /// Loads a block of columns: to registers, or to the place `parity` of shared storage.
    pub(super) fn bring(
        &mut self,
        (staged, known): (&[Staged], &Known),
        block: Value,
        parity: Value,
    ) {
        let first = self.first_column(block);
        self.bring_values(&known.columns, first);
        for s in staged {
            if self.blocks.wide && !s.again {
                self.bring_columns(s, first, parity);
            }
            for (turn, registers) in s.registers.iter().enumerate() {
                let open = self.open_turn(s, turn);
                let unit = self.unit(s, turn);
                let square = self.op(Mul, unit.square, SIDE as i64);
                let square = self.l.b.binary(Add, first, square);
                let (line, run) = match unit.g {
                    Some(g) => {
                        let run = self.op(Mul, unit.run, PAIR);
                        let steps = self.op(Mul, unit.t, RUN);
                        (self.line(g), self.l.b.binary(Add, run, steps))
                    }
                    None => (self.op(Mul, unit.t, QUAD), self.op(Mul, unit.run, RUN)),
                };
                self.l.counters.insert(s.axis, run);
                let line = self.l.b.binary(Add, square, line);
                for (i, &register) in registers.iter().enumerate() {
                    let further = if s.turned { i } else { 2 * i };
                    let column = self.op(Add, line, further as i64);
                    let x = self.fetch(s, column);
                    let zero = self.l.b.index(0);
                    self.l.b.store(register, zero, x);
                }
                if open {
                    self.l.b.close();
                }
            }
        }
    }

    /// A run of an operand at a column. What is beyond the last is zero if it is summed.
    pub(super) fn fetch(&mut self, s: &Staged, column: Value) -> Value {
        let spec = &self.flash.spec;
        let n = spec.period[1] as i64;
        let whole = n % self.blocks.columns == 0;
        let at = if whole && spec.band == [None, None] {
            column
        } else {
            let last = self.column_at(n - 1);
            self.l.b.binary(Min, column, last)
        };
        self.l.counters.insert(self.flash.column, at);
        let x = self.load(s.operand);
        if whole || !s.turned {
            return x;
        }
        let end = self.column_at(n);
        let inside = self.l.b.binary(Lt, column, end);
        let nothing = self.l.b.constant(Scalar::from_i64(self.blocks.half, 0));
        self.l.b.select(inside, x, nothing)
    }

    /// Leaves what was loaded in one of the two places.
    pub(super) fn leave(&mut self, staged: &[Staged], parity: Value) {
        for s in staged {
            let base = self.op(Mul, parity, s.slots(self.blocks));
            for (turn, registers) in s.registers.iter().enumerate() {
                let open = self.open_turn(s, turn);
                let unit = self.unit(s, turn);
                let zero = self.l.b.index(0);
                let lines: Vec<Value> =
                    registers.iter().map(|&register| self.l.b.load(register, zero)).collect();
                for part in 0..s.together() as usize {
                    let slot = self.slot(s, &unit, part as i64);
                    let slot = self.l.b.binary(Add, base, slot);
                    let place = |i: usize| match s.turned {
                        true => (i % 4, 2 * part + i / 4),
                        false => (i / 4, 4 * part + i % 4),
                    };
                    let elements: Vec<Value> = (0..HELD)
                        .map(place)
                        .map(|(line, lane)| self.extract(lines[line], lane))
                        .collect();
                    let held = self.vector(&elements);
                    self.l.b.store(s.storage, slot, held);
                }
                if open {
                    self.l.b.close();
                }
            }
        }
    }

    /// The slot of a part of a unit.
    fn slot(&mut self, s: &Staged, unit: &Launch, part: i64) -> Value {
        let steps = s.width / SIDE as i64;
        let (g, step) = match unit.g {
            Some(g) => {
                let step = self.op(Mul, unit.run, 2);
                (g, self.op(Add, step, part))
            }
            // Of the results' columns each thread has consecutive ones.
            None => {
                let column = self.op(Mul, unit.run, RUN);
                let column = self.op(Add, column, 2 * part);
                let own = s.width / RUN;
                let step = self.op(Rem, column, own);
                (self.op(Div, column, own), self.op(Div, step, 2))
            }
        };
        let square = self.op(Mul, unit.square, steps);
        let square = self.l.b.binary(Add, square, step);
        let square = self.op(Mul, square, WARP as i64);
        let g = self.op(Mul, g, QUAD);
        let place = self.l.b.binary(Add, g, unit.t);
        self.l.b.binary(Add, square, place)
    }
}
