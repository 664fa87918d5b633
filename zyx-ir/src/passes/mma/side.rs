//! One factor of the products: how its block lies in shared storage and who brings what.
//!
//! For each 16 lines (rows or columns) and 16 steps there are 32 slots of eight halves, one to
//! each thread of a team: the thread with number `4 g + t` multiplies, of two lines, the steps
//! `4 t .. 4 t + 4`. A group brings slots, in units of one, or of four where memory runs along
//! lines: eight lines by four steps, loaded line-wise and turned in registers.
//!
//! 16 bytes are stored and loaded by eight threads at a time, so those should have slots that
//! differ modulo eight (banks). Loading, they are eight in sequence: all `t` and one bit of `g`.
//! Storing, they are the same, or differ in the three bits of `g`, or in the highest bit of `g`
//! and the number of 16 lines, whichever makes them read memory side by side: eight threads that
//! load 16 bytes each should read a line of 128. [`slot`] and [`Side::turned`] serve all.

use super::{Halves, Tile};
use crate::ir::mma::{HELD, SIDE, WARP};
use crate::ir::{Kernel, Value};
use crate::passes::block::{is_wide, runs_along};
use crate::passes::elements::Elements;
use crate::passes::loops::LoopInfo;
use crate::passes::variance::Variance;

use crate::ops::BinaryOp::{Add, And, Or, Shl, Xor};

/// Steps of a slot.
const STEPS: i64 = 4;
/// Times 16 lines whose slots are turned in different ways: they are stored together.
const SQUARES: i64 = 4;

/// How a factor is brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Four steps of two lines, each in one load.
    Along,
    /// Eight lines of four steps, each in one load.
    Across,
    /// Element by element, neighbouring threads at neighbouring steps.
    Steps,
    /// Element by element, neighbouring threads at neighbouring lines.
    Lines,
}

impl Layout {
    /// Loads of a unit, and elements of a load along steps and along lines.
    pub(super) fn loads(self) -> (i64, i64, i64) {
        match self {
            Layout::Along => (2, STEPS, 1),
            Layout::Across => (STEPS, 1, 8),
            Layout::Steps | Layout::Lines => (HELD as i64, 1, 1),
        }
    }

    /// Whether loads bring single elements.
    pub(super) fn is_single(self) -> bool {
        matches!(self, Layout::Steps | Layout::Lines)
    }

    /// Slots of a unit.
    pub(super) fn slots(self) -> i64 {
        if self == Layout::Across { 4 } else { 1 }
    }
}

/// A factor as what is staged.
#[derive(Debug)]
pub(super) struct Side {
    /// Whether it is the right matrix.
    pub(super) right: bool,
    pub(super) factor: Value,
    pub(super) loops: Vec<LoopInfo>,
    pub(super) layout: Layout,
    /// What is known along the loop that loads run along.
    pub(super) variance: Option<Variance>,
    /// Lines and steps of a block, and lines of a team.
    pub(super) extent: i64,
    pub(super) depth: i64,
    pub(super) own: i64,
}

impl Side {
    /// The right or left factor of blocks that walk along the reduction in this order.
    pub(super) fn of(
        kernel: &Kernel,
        halves: &Halves,
        tile: Tile,
        steps: &[LoopInfo],
        right: bool,
    ) -> Side {
        let found = &halves.found;
        let factor = halves.factors[usize::from(right)];
        let (loops, extent, own) = match right {
            false => (&found.rows, tile.rows, tile.row),
            true => (&found.columns, tile.columns, tile.column),
        };
        let (last_sum, last_line) = (steps[steps.len() - 1], loops[loops.len() - 1]);
        let wide = |l: &LoopInfo, lanes: i64| {
            l.len.is_some_and(|n| n % lanes == 0) && is_wide(kernel, found, factor, l)
        };
        let (layout, along) = if wide(&last_sum, STEPS) {
            (Layout::Along, Some(last_sum))
        } else if wide(&last_line, 8) {
            (Layout::Across, Some(last_line))
        } else if runs_along(kernel, found, factor, &last_sum) {
            (Layout::Steps, None)
        } else {
            (Layout::Lines, None)
        };
        let variance = along.and_then(|l| Variance::with_vectors(kernel, &l));
        let (loops, depth) = (loops.clone(), tile.depth);
        Side { right, factor, loops, layout, variance, extent, depth, own }
    }

    /// Slots of a block.
    pub(super) fn size(&self) -> i64 {
        self.extent * self.depth / HELD as i64
    }

    /// Units that the group brings.
    pub(super) fn units(&self) -> i64 {
        self.size() / self.layout.slots()
    }

    /// A slot, where the 16 lines with this number have it.
    pub(super) fn turned(&self, at: &mut Elements<'_>, slot: Value, lines: Value) -> Value {
        if self.layout != Layout::Across {
            return slot;
        }
        let low = at.masked(lines, SQUARES);
        at.r.out.binary(Xor, slot, low)
    }

    /// The first slot of the 16 lines and 16 steps with these numbers.
    pub(super) fn square(&self, lines: i64, steps: i64) -> i64 {
        (steps * (self.extent / SIDE as i64) + lines) * WARP as i64
    }
}

/// Where a unit is: its first line in the square, the slots' `g` (of the first) and `t`, and the
/// squares along lines and steps.
pub(super) struct Unit {
    first: Value,
    pub(super) line: Value,
    pub(super) step: Value,
    pub(super) lines: Value,
    pub(super) steps: Value,
}

impl Unit {
    /// The unit that a thread of so many brings in its `turn`th turn.
    pub(super) fn of(
        at: &mut Elements<'_>,
        side: &Side,
        (thread, threads): (Value, i64),
        turn: i64,
    ) -> Unit {
        let (lines, steps) = (side.extent / SIDE as i64, side.depth / SIDE as i64);
        let mut bits = Bits { thread, threads: threads.ilog2(), turn, at: 0 };
        let mut next = |at: &mut Elements<'_>, n: i64| bits.next(at, n);
        match side.layout {
            Layout::Along | Layout::Steps => {
                let (step, low) = (next(at, 4), next(at, 2));
                let steps = next(at, steps);
                let (high, lines) = (next(at, 4), next(at, lines));
                let high = at.op(Shl, high, 1);
                let line = at.r.out.binary(Or, high, low);
                Unit { first: first_line(at, line), line, step, lines, steps }
            }
            Layout::Across => {
                let (half, lines) = (next(at, 2), next(at, lines));
                let (step, steps) = (next(at, 4), next(at, steps));
                let (first, line) = (at.times(half, 8), at.times(half, 4));
                Unit { first, line, step, lines, steps }
            }
            Layout::Lines => {
                let (line, lines) = (next(at, 8), next(at, lines));
                let (step, steps) = (next(at, 4), next(at, steps));
                Unit { first: first_line(at, line), line, step, lines, steps }
            }
        }
    }

    /// The first of the slot's two lines, and the first of its steps, in the block.
    pub(super) fn origin(&self, at: &mut Elements<'_>) -> (Value, Value) {
        let lines = at.times(self.lines, SIDE as i64);
        let (step, steps) = (at.times(self.step, STEPS), at.times(self.steps, SIDE as i64));
        (at.r.out.binary(Add, lines, self.first), at.r.out.binary(Add, steps, step))
    }
}

/// The number of a unit, taken apart from its lowest bits on.
struct Bits {
    thread: Value,
    threads: u32,
    turn: i64,
    at: u32,
}

impl Bits {
    /// The next digit, of so many values (a power of two).
    fn next(&mut self, at: &mut Elements<'_>, n: i64) -> Value {
        let (start, len) = (self.at, n.ilog2());
        self.at += len;
        let constant = (self.turn << self.threads >> start) & (n - 1);
        let own = self.threads.saturating_sub(start).min(len);
        if own == 0 {
            return at.int(constant);
        }
        let digit = at.shifted(self.thread, 1 << start);
        let digit = if start + own == self.threads { digit } else { at.masked(digit, 1 << own) };
        at.plus(digit, constant)
    }
}

/// The first of the two lines, of 16, of the threads `4 g ..`; the other is the one after next.
pub(super) fn first_line(at: &mut Elements<'_>, g: Value) -> Value {
    let pair = at.shifted(g, 2);
    let (pair, odd) = (at.times(pair, 4), at.masked(g, 2));
    at.r.out.binary(Or, pair, odd)
}

/// The slot of a team's thread among 32.
pub(super) fn slot(at: &mut Elements<'_>, g: Value, t: Value) -> Value {
    let number = at.times(g, 4);
    let number = at.r.out.binary(Or, number, t);
    // Bits 1 and 2 of g on bits 0 and 1, and bit 2 once more on bit 2.
    let high = at.shifted(g, 2);
    let top = at.op(And, high, 2);
    let top = at.op(Shl, top, 1);
    let mask = at.r.out.binary(Or, high, top);
    at.r.out.binary(Xor, number, mask)
}

#[cfg(test)]
mod tests {
    /// What [`super::slot`] emits.
    fn slot(g: usize, t: usize) -> usize {
        let high = g >> 1;
        (4 * g + t) ^ (high + ((high & 2) << 1))
    }

    #[test]
    fn threads_that_move_together_have_slots_in_different_banks() {
        let differ = |slots: Vec<usize>| {
            let mut banks: Vec<usize> = slots.iter().map(|s| s % 8).collect();
            banks.sort_unstable();
            assert_eq!(banks, (0..8).collect::<Vec<_>>(), "{slots:?}");
        };
        let all = |n: usize| 0..n;
        for g in (0..8).step_by(2) {
            differ(all(8).map(|i| slot(g + i / 4, i % 4)).collect());
        }
        for t in 0..4 {
            differ(all(8).map(|g| slot(g, t)).collect());
        }
        for (g, t) in all(16).map(|i| (i / 4, i % 4)) {
            differ(all(8).map(|i| slot(g + 4 * (i % 2), t) ^ (i / 2)).collect());
        }
        let mut slots: Vec<usize> = all(32).map(|i| slot(i / 4, i % 4)).collect();
        slots.sort_unstable();
        assert_eq!(slots, all(32).collect::<Vec<_>>());
    }
}
