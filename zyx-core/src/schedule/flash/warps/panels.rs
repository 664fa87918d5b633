//! Wide instructions: factors in shared storage, as they lie in memory.
//!
//! Rows of [`WIDE`] halves of an operand become rows of a panel ([`mma`]), wider operands several
//! panels. A thread copies slots of eight halves; neighbours read memory side by side. There are
//! two places for each operand along columns, and the copies to one are under way while the other
//! is being used. Left factors of tiles are brought once. What is between the products stays in
//! registers, where a thread holds of sums what it has to hold of a left factor.

use super::stage::Staged;
use super::tile::Sum;
use super::{Blocks, HELD, SIDE, Scores, WIDE, WIDE_HELD, Warps};
use crate::ir::mma::{self, SLOTS, Shape};
use crate::ir::{Op, Order, Space, Type, Value};
use crate::ops::BinaryOp::{Add, Div, Min, Mul, Rem, Xor};
use crate::schedule::lower::Lowering;

/// Storage for the left factors of each tile, if it is read by the instructions.
pub(super) fn storage(l: &mut Lowering<'_>, blocks: &Blocks) -> Vec<Value> {
    let held = Type::vector(blocks.half, HELD as u8);
    let depths = blocks.depths.iter().filter(|_| blocks.wide);
    let slots = depths.map(|depth| blocks.rows() * depth / HELD as i64);
    slots.map(|n| l.b.alloc(Space::Shared, held, n as u32)).collect()
}

/// A slot that a thread brings: where it belongs, and which row and halves it holds.
struct Slot {
    place: Value,
    row: Value,
    run: Value,
}

impl Warps<'_, '_> {
    /// The slots of this many rows of a width that a thread brings.
    fn slots(&mut self, rows: i64, width: i64) -> Vec<Slot> {
        let (slots, threads) = (SLOTS as i64, self.blocks.threads());
        debug_assert!(
            threads % (slots * slots) == 0 && rows * width % (threads * HELD as i64) == 0
        );
        let line = self.op(Div, self.thread, slots);
        let chunk = self.op(Rem, self.thread, slots);
        let turn = self.op(Rem, line, slots);
        let turned = self.l.b.binary(Xor, chunk, turn);
        let producer = self.op(Mul, line, slots);
        let producer = self.l.b.binary(Add, producer, turned);
        let run = self.op(Mul, chunk, HELD as i64);
        let turns = rows * width / HELD as i64 / threads;
        let each = |i: i64| {
            let first = i * threads / slots;
            let row = self.op(Add, line, first % rows);
            let run = self.op(Add, run, first / rows * WIDE as i64);
            Slot { place: self.op(Add, producer, i * threads), row, run }
        };
        (0..turns).map(each).collect()
    }

    /// Copies a block of columns, the first of which is `first`, to the place `parity`.
    pub(super) fn bring_columns(&mut self, s: &Staged, first: Value, parity: Value) {
        let base = self.op(Mul, parity, s.slots(self.blocks));
        for slot in self.slots(self.blocks.columns, s.width) {
            self.l.counters.insert(s.axis, slot.run);
            let column = self.l.b.binary(Add, first, slot.row);
            let x = self.fetch(s, column);
            let place = self.l.b.binary(Add, base, slot.place);
            self.keep(s.storage, place, x);
        }
    }

    /// Brings the left factors of a tile; gives where they are.
    pub(super) fn bring_rows(
        &mut self,
        tile: usize,
        storage: Value,
        scores: Option<&Scores>,
    ) -> Vec<Value> {
        let axis = self.running(&self.flash.inner[tile]);
        let n = self.flash.spec.rows as i64;
        let rows = self.blocks.rows();
        // The first row of the group.
        let sixteen = self.op(Div, self.thread, super::WARP as i64);
        let sixteen = self.op(Mul, sixteen, SIDE as i64);
        let first = self.l.b.binary(super::Sub, self.first, sixteen);
        for slot in self.slots(rows, self.blocks.depths[tile]) {
            self.l.counters.insert(axis, slot.run);
            let row = self.l.b.binary(Add, first, slot.row);
            let row = if n % rows == 0 { row } else { self.op(Min, row, n - 1) };
            self.l.counters.insert(self.flash.row, row);
            let x = self.load(2 * tile);
            let x = self.signed(x, scores);
            self.keep(storage, slot.place, x);
        }
        vec![storage]
    }

    /// Stores what is read behind the next barrier.
    fn keep(&mut self, buf: Value, index: Value, value: Value) {
        let ty = self.l.b.ty(value);
        self.l.b.push(Op::Store { order: Order::AsyncCopy, buf, index, value }, ty);
    }

    fn panel(&mut self, buf: Value, index: Value) -> Value {
        let ty = self.l.b.ty(buf);
        self.l.b.push(Op::Panel { buf, index }, ty)
    }

    fn wide(&self, shape: Shape) -> u16 {
        mma::row_of(self.blocks.half, shape).expect("invariant: there is an instruction")
    }

    /// The products of a tile.
    pub(super) fn panel_products(
        &mut self,
        left: Value,
        tile: usize,
        (right, base): (Value, Value),
    ) -> Vec<Value> {
        let row = self.wide(Shape::Wide);
        let nothing = self.number(0.0);
        let mut c = self.l.b.splat(nothing, WIDE_HELD as u8);
        let ty = self.l.b.ty(c);
        let each = (WIDE / SIDE) as i64;
        for step in 0..self.blocks.depths[tile] / SIDE as i64 {
            let within = step % each * (SIDE / HELD) as i64;
            let rows = |n: i64| step / each * n * SLOTS as i64 + within;
            let at = self.l.b.index(rows(self.blocks.rows()));
            let a = self.panel(left, at);
            let at = self.op(Add, base, rows(self.blocks.columns));
            let b = self.panel(right, at);
            c = self.l.b.emit(Op::Mma { row, a, b, c }, ty);
        }
        vec![c]
    }

    /// Sums with the products of rounded elements and of the last operand.
    pub(super) fn add_panel_products(
        &mut self,
        sums: &[Value],
        factors: &[[Value; HELD]],
        (right, base): (Value, Value),
    ) -> Vec<Value> {
        let (row, zero) = (self.wide(Shape::Turned), self.l.b.index(0));
        let left: Vec<Value> = factors
            .iter()
            .map(|held| {
                let held = self.vector(held);
                self.l.b.cast(self.blocks.half, held)
            })
            .collect();
        let before: Vec<Value> = sums.iter().map(|&sums| self.l.b.load(sums, zero)).collect();
        let mut after = Vec::new();
        for (panel, mut c) in before.into_iter().enumerate() {
            let ty = self.l.b.ty(c);
            let first = panel as i64 * self.blocks.columns;
            for (sixteen, &a) in left.iter().enumerate() {
                let line = first + (sixteen * SIDE) as i64;
                let at = self.op(Add, base, line * SLOTS as i64);
                let b = self.panel(right, at);
                c = self.l.b.emit(Op::Mma { row, a, b, c }, ty);
            }
            after.push(c);
        }
        after
    }

    /// Stores the sums of a row: pairs of columns.
    pub(super) fn store_pairs(
        &mut self,
        (sums, of): (&[Value], Sum<'_>),
        row: usize,
        scale: Option<(Value, bool)>,
    ) {
        let column = self.op(Mul, self.t, 2);
        for (panel, &sum) in sums.iter().enumerate() {
            for eight in 0..WIDE / 8 {
                let lanes = [0, 1].map(|i| eight * 4 + 2 * row + i);
                let values = lanes.map(|lane| {
                    let x = self.extract(sum, lane);
                    self.result(x, of, scale)
                });
                let column = self.op(Add, column, (panel * WIDE + eight * 8) as i64);
                self.store_run(column, of, &values);
            }
        }
    }
}
