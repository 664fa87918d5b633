//! What a warp does with a block of columns, and at the end.
//!
//! The middle is evaluated element by element, as the graph says, with the counters of row and
//! column set to those of the element; what depends on a column or a row alone is computed once
//! for it. Only blocks at the edge of a band or of the columns ask whether an element is in it.

use super::{AtomId, DType, HELD, Known, Own, QUAD, SIDE, Scores, Staged, WARP, WIDE, Warps};
use crate::graph::{Node, NodeId};
use crate::ir::mma;
use crate::ir::{Op, Space, Type, Value};
use crate::ops::BinaryOp::{self, Add, And, Eq, Lt, Max, Min, Mul, Ne, Or, Sub};
use crate::ops::{TernaryOp, UnaryOp};
use crate::scalar::Scalar;
use crate::schedule::flash::{At, Middle, Softmax};
use crate::schedule::pull::TupleId;

/// What is known beside the products: of columns, for each of the thread's, and weights.
struct Given<'a> {
    columns: Vec<(At, &'a Vec<Value>)>,
    weights: Option<&'a (At, Vec<[Value; HELD]>)>,
    /// What is true of all elements.
    all_seen: Option<At>,
}

/// A result: what is stored, the sum that it is, and the counters of its width.
#[derive(Clone, Copy)]
pub(super) struct Sum<'a> {
    node: NodeId,
    sum: NodeId,
    tuple: TupleId,
    axes: &'a [AtomId],
}

impl Warps<'_, '_> {
    /// The tiles of a block.
    pub(super) fn tiles(&mut self, own: &Own, staged: &[Staged], parity: Value) -> Vec<Vec<Value>> {
        let tile = |(i, s): (usize, &Staged)| {
            let base = self.place(s, parity);
            self.products(&own.factors[i], i, (s, base))
        };
        staged.iter().take(own.factors.len()).enumerate().map(tile).collect()
    }

    /// Where an operand's block begins, for a thread.
    fn place(&mut self, s: &Staged, parity: Value) -> Value {
        let base = self.op(Mul, parity, s.slots(self.blocks));
        if self.blocks.wide { base } else { self.l.b.binary(Add, base, self.lane) }
    }

    /// A block of columns, from products to sums. Where tiles are `ahead`, those of the next block
    /// are begun first.
    pub(super) fn block(
        &mut self,
        (own, known, ahead): (&Own, &Known, Option<&[Value]>),
        (staged, [parity, other]): (&[Staged], [Value; 2]),
        (block, at_edge): (Value, bool),
    ) {
        let kept = self.kept(&known.columns, parity);
        let zero = self.l.b.index(0);
        let (tiles, next) = match ahead {
            Some(registers) => {
                let next = self.tiles(own, staged, other);
                (registers.iter().map(|&r| vec![self.l.b.load(r, zero)]).collect(), next)
            }
            None => (self.tiles(own, staged, parity), Vec::new()),
        };
        let first = self.first_column(block);
        let weights = known.exponent.as_ref().map(|exponent| {
            let of = (own, exponent, &known.columns);
            (exponent.key, self.weights(of, &tiles, (first, parity, at_edge)))
        });
        let columns = kept.iter().map(|(leaf, values)| (*leaf, values)).collect();
        let all_seen = self.flash.seen.filter(|_| !at_edge && known.exponent.is_some());
        let given = Given { columns, weights: weights.as_ref(), all_seen };
        let tile_count = self.blocks.depths.len();
        // What waits for fewer tiles comes first.
        let mut results = Vec::new();
        for (i, (sums, middle)) in self.products_of(own).into_iter().enumerate().rev() {
            let factors = match (middle, known.scores.as_ref()) {
                (Middle::Softmax(_), Some(scores)) => {
                    let mut values = self.elements(own, &tiles, (first, &given), scores.target);
                    if at_edge {
                        self.edge(&mut values, first, scores.seen, f64::NEG_INFINITY);
                    }
                    self.weigh(own, &mut values, scores);
                    values
                }
                (Middle::Softmax(Softmax { scores: at, .. }) | Middle::Values(at), _) => {
                    let mut values = self.elements(own, &tiles, (first, &given), at);
                    if at_edge {
                        self.edge(&mut values, first, None, 0.0);
                    }
                    values
                }
            };
            let last = tile_count + i;
            let base = self.place(&staged[last], parity);
            results.push((sums, self.add_products(sums, &factors, (&staged[last], base))));
        }
        for (&register, tile) in ahead.into_iter().flatten().zip(&next) {
            self.l.b.store(register, zero, tile[0]);
        }
        for (sums, after) in results {
            for (&sum, c) in sums.iter().zip(after) {
                self.l.b.store(sum, zero, c);
            }
        }
    }

    /// The sums of each product at the end of a block, and what is multiplied.
    fn products_of<'o>(&self, own: &'o Own) -> Vec<(&'o [Value], Middle)> {
        let each = self.blocks.sums()[1];
        let mut rest = &own.sums[..];
        let beside = self.flash.beside.iter().map(|beside| Middle::Values(beside.value));
        let middles = std::iter::once(self.flash.middle).chain(beside);
        let widths = self.blocks.widths.iter();
        let take = |(middle, &width): (Middle, &i64)| {
            let n = self.blocks.squares as usize * width as usize / each;
            let (sums, others) = rest.split_at(n);
            rest = others;
            (sums, middle)
        };
        middles.zip(widths).map(take).collect()
    }

    /// A tile: for each sixteen of columns and of rows what a thread holds.
    fn products(
        &mut self,
        left: &[Value],
        tile: usize,
        (staged, base): (&Staged, Value),
    ) -> Vec<Value> {
        if self.blocks.wide {
            return self.panel_products(left[0], tile, (staged.storage, base));
        }
        let row = self.instruction();
        let steps = self.blocks.depths[tile] / SIDE as i64;
        let nothing = self.number(0.0);
        let nothing = self.l.b.splat(nothing, HELD as u8);
        let ty = self.l.b.ty(nothing);
        let mut list = Vec::new();
        for column in 0..self.blocks.columns / SIDE as i64 {
            let mut sums = vec![nothing; self.blocks.squares as usize];
            for step in 0..steps {
                let place = self.op(Add, base, (column * steps + step) * WARP as i64);
                let b = self.l.b.load(staged.storage, place);
                for (square, c) in sums.iter_mut().enumerate() {
                    let a = left[square * steps as usize + step as usize];
                    *c = self.l.b.emit(Op::Mma { row, a, b, c: *c }, ty);
                }
            }
            list.extend(sums);
        }
        list
    }

    /// The number of the instruction.
    fn instruction(&self) -> u16 {
        mma::row(self.blocks.half).expect("invariant: there is an instruction")
    }

    /// Scores without the condition of a band, and the condition.
    pub(super) fn seen(&mut self, scores: At) -> (At, Option<At>) {
        match self.l.nodes.graph.node(scores.0) {
            Node::Ternary { op: TernaryOp::Where, x, y, .. }
                if self.flash.seen == Some(self.moved((x, scores.1))) =>
            {
                ((y, scores.1), self.flash.seen)
            }
            _ => (scores, None),
        }
    }

    /// The value of a node for each element: by sixteens of columns and rows, as sums are held.
    fn elements(
        &mut self,
        own: &Own,
        tiles: &[Vec<Value>],
        (first, given): (Value, &Given<'_>),
        target: At,
    ) -> Vec<[Value; HELD]> {
        let squares = self.blocks.squares as usize;
        let needed = match given.weights {
            Some((key, _)) => self.tiles_of(target, *key),
            None => vec![true; tiles.len()],
        };
        let mut values = vec![[first; HELD]; self.blocks.columns as usize / SIDE * squares];
        for column in 0..self.blocks.columns as usize / QUAD as usize {
            let (sixteen, k) = (column / 4, column % 4);
            self.open_column(first, sixteen, k);
            for (leaf, values) in &given.columns {
                self.l.remember(leaf.0, leaf.1, values[column]);
            }
            if given.weights.is_none() {
                self.column_leaves();
            }
            if let Some(seen) = given.all_seen {
                let all = self.l.b.constant(Scalar::from_i64(DType::Bool, 1));
                self.l.remember(seen.0, seen.1, all);
            }
            for row in 0..2 * squares {
                let (square, i) = (row / 2, self.blocks.element(row % 2, k));
                self.open_row(row);
                self.remember_element(own, (tiles, &needed), (row, sixteen, i));
                if let Some((key, weights)) = given.weights {
                    self.l.remember(key.0, key.1, weights[sixteen][i]);
                }
                values[sixteen * squares + square][i] = self.l.value(target.0, target.1, None);
                self.l.close_scope();
            }
            self.l.close_scope();
        }
        values
    }

    /// Makes known what is known of a row and the products at an element.
    pub(super) fn remember_element(
        &mut self,
        own: &Own,
        (tiles, needed): (&[Vec<Value>], &[bool]),
        (row, sixteen, i): (usize, usize, usize),
    ) {
        for &(leaf, value) in &own.leaves[row] {
            self.l.remember(leaf.0, leaf.1, value);
        }
        let all = tiles.iter().zip(&self.flash.tiles).zip(needed);
        for ((tile, at), _) in all.filter(|(_, needed)| **needed) {
            let product = self.of_sums(tile, (sixteen, row / 2), i);
            self.l.remember(at.0, at.1, product);
        }
    }

    /// An element of sums: of a sixteen of columns and of rows.
    fn of_sums(&mut self, sums: &[Value], (column, row): (usize, usize), i: usize) -> Value {
        if !self.blocks.wide {
            return self.extract(sums[column * self.blocks.squares as usize + row], i);
        }
        let each = WIDE / SIDE;
        self.extract(sums[column / each], column % each * HELD + i)
    }

    /// Sets the column, within the last, and gives it without that limit.
    pub(super) fn open_column(&mut self, first: Value, sixteen: usize, k: usize) -> Value {
        let [distance, k] = self.blocks.column(k);
        let column = self.op(Mul, self.t, distance);
        let column = self.l.b.binary(Add, first, column);
        let column = self.op(Add, column, (SIDE * sixteen) as i64 + k);
        let n = self.flash.spec.period[1] as i64;
        let whole = n % self.blocks.columns == 0;
        let inside = if whole {
            column
        } else {
            let last = self.column_at(n - 1);
            self.l.b.binary(Min, column, last)
        };
        self.l.counters.insert(self.flash.column, inside);
        self.l.open_scope();
        column
    }

    pub(super) fn open_row(&mut self, row: usize) {
        self.l.counters.insert(self.flash.row, self.inside[row]);
        self.l.open_scope();
    }

    /// Makes known what the middle needs of a column, whatever the row.
    fn column_leaves(&mut self) {
        for &leaf in &self.flash.leaves {
            if self.moves(leaf, self.flash.column) && !self.moves(leaf, self.flash.row) {
                self.l.value(leaf.0, leaf.1, None);
            }
        }
    }

    /// Puts `fill` in the place of elements beyond the last column or out of the band.
    fn edge(&mut self, values: &mut [[Value; HELD]], first: Value, seen: Option<At>, fill: f64) {
        let n = self.flash.spec.period[1] as i64;
        let whole = n % self.blocks.columns == 0;
        let Some(at_edge) = self.at_edge(first, seen.is_some()) else { return };
        let ty = Type::scalar(DType::F32);
        let storage: Vec<Value> =
            values.iter().map(|_| self.l.b.alloc(Space::Register, ty, HELD as u32)).collect();
        for (&storage, values) in storage.iter().zip(values.iter()) {
            for (i, &value) in values.iter().enumerate() {
                let at = self.l.b.index(i as i64);
                self.l.b.store(storage, at, value);
            }
        }
        self.l.b.open_if(at_edge);
        let fill = self.number(fill);
        let squares = self.blocks.squares as usize;
        for column in 0..self.blocks.columns as usize / QUAD as usize {
            let (sixteen, k) = (column / 4, column % 4);
            let position = self.open_column(first, sixteen, k);
            let exists = (!whole).then(|| {
                let end = self.column_at(n);
                self.l.b.binary(Lt, position, end)
            });
            for row in 0..2 * squares {
                let (square, i) = (row / 2, self.blocks.element(row % 2, k));
                self.open_row(row);
                let seen = seen.map(|at| self.l.value(at.0, at.1, None));
                self.l.close_scope();
                let both = [exists, seen].into_iter().flatten();
                let cond = both.reduce(|x, y| self.l.b.binary(And, x, y));
                let cond = cond.expect("invariant: an edge is one of columns or of a band");
                let (storage, at) = (storage[sixteen * squares + square], i as i64);
                let at = self.l.b.index(at);
                let value = self.l.b.load(storage, at);
                let value = self.l.b.select(cond, value, fill);
                self.l.b.store(storage, at, value);
            }
            self.l.close_scope();
        }
        self.l.b.close();
        for (&storage, values) in storage.iter().zip(values.iter_mut()) {
            for (i, value) in values.iter_mut().enumerate() {
                let at = self.l.b.index(i as i64);
                *value = self.l.b.load(storage, at);
            }
        }
    }

    /// Whether the block from this column on is at an edge for the warp; `None` if none ever is.
    fn at_edge(&mut self, first: Value, masked: bool) -> Option<Value> {
        let (columns, own) = (self.blocks.columns, self.blocks.own_rows());
        let n = self.flash.spec.period[1] as i64;
        let [low, high] = self.flash.spec.band.map(|limit| limit.filter(|_| masked));
        let first = self.base.map_or(first, |base| self.l.b.binary(Sub, first, base));
        let [least, greatest] = self.positions(self.first, own);
        let last = self.op(Add, first, columns - 1);
        let mut edges = Vec::new();
        if n % columns != 0 {
            let end = self.l.b.index(n - 1);
            edges.push(self.l.b.binary(Lt, end, last));
        }
        if let Some(high) = high {
            let limit = self.op(Add, least, high);
            edges.push(self.l.b.binary(Lt, limit, last));
        }
        if let Some(low) = low {
            let limit = self.op(Add, greatest, low);
            edges.push(self.l.b.binary(Lt, first, limit));
        }
        edges.into_iter().reduce(|x, y| self.l.b.binary(Or, x, y))
    }

    /// Makes weights of scores, under the maximum so far.
    fn weigh(&mut self, own: &Own, scores: &mut [[Value; HELD]], of: &Scores) {
        let zero = self.l.b.index(0);
        let squares = self.blocks.squares as usize;
        let log2e = self.number(std::f64::consts::LOG2_E);
        let log2e = match of.scale {
            Some([_, magnitude]) => self.l.b.binary(Mul, magnitude, log2e),
            None => log2e,
        };
        let least = self.number(f64::from(f32::MIN_EXP) - 1.0);
        let bottom = self.number(f64::NEG_INFINITY);
        let nothing = self.number(0.0);
        let mut factors = Vec::new();
        for (row, &[top, sum]) in own.states.iter().enumerate() {
            let (square, line) = (row / 2, row % 2);
            let places: Vec<(usize, usize)> = (square..scores.len())
                .step_by(squares)
                .flat_map(|at| (0..4).map(move |k| (at, k)))
                .map(|(at, k)| (at, self.blocks.element(line, k)))
                .collect();
            let own_scores: Vec<Value> = places.iter().map(|&(at, i)| scores[at][i]).collect();
            let new = self.tree(Max, own_scores);
            let new = self.across(Max, new);
            let old = self.l.b.load(top, zero);
            let new = self.l.b.binary(Max, old, new);
            self.l.b.store(top, zero, new);
            let unseen = self.l.b.binary(Eq, new, bottom);
            let shift = self.l.b.select(unseen, nothing, new);
            let exponential = |this: &mut Self, x: Value| {
                // Subtracted before anything rounds them, scores of any size differ exactly.
                let x = this.l.b.binary(Sub, x, shift);
                let x = this.l.b.binary(Mul, x, log2e);
                // Beside a weight of one, those below the normal numbers are nothing.
                let tiny = this.l.b.binary(Lt, x, least);
                let weight = this.l.b.unary(UnaryOp::Exp2, x);
                this.l.b.select(tiny, nothing, weight)
            };
            let factor = exponential(self, old);
            let mut weights = Vec::new();
            for (at, i) in places {
                scores[at][i] = exponential(self, scores[at][i]);
                weights.push(scores[at][i]);
            }
            let total = self.tree(Add, weights);
            let before = self.l.b.load(sum, zero);
            let after = self.l.b.ternary(TernaryOp::MulAdd, before, factor, total);
            self.l.b.store(sum, zero, after);
            factors.push(factor);
        }
        self.rescale(own, &factors);
    }

    /// Puts sums under a new maximum. Few blocks have one.
    fn rescale(&mut self, own: &Own, factors: &[Value]) {
        let zero = self.l.b.index(0);
        let squares = self.blocks.squares as usize;
        let one = self.number(1.0);
        let changes: Vec<Value> =
            factors.iter().map(|&factor| self.l.b.binary(Ne, factor, one)).collect();
        let changes = self.tree(Or, changes);
        self.l.b.open_if(changes);
        for (square, pair) in factors.chunks_exact(2).enumerate() {
            let lanes = self.blocks.sums()[0];
            let factor: Vec<Value> = (0..lanes).map(|i| pair[self.blocks.line(i % HELD)]).collect();
            let factor = self.vector(&factor);
            let n = own.sums.len() / squares;
            for &sums in &own.sums[square * n..][..n] {
                let before = self.l.b.load(sums, zero);
                let after = self.l.b.binary(Mul, before, factor);
                self.l.b.store(sums, zero, after);
            }
        }
        self.l.b.close();
    }

    /// All of these values, in pairs.
    fn tree(&mut self, op: BinaryOp, mut values: Vec<Value>) -> Value {
        while values.len() > 1 {
            let pairs = values.chunks(2).map(|pair| match *pair {
                [x, y] => self.l.b.binary(op, x, y),
                _ => pair[0],
            });
            values = pairs.collect();
        }
        values[0]
    }

    /// Sums with the products of rounded elements and of the last operand.
    fn add_products(
        &mut self,
        own_sums: &[Value],
        factors: &[[Value; HELD]],
        (staged, base): (&Staged, Value),
    ) -> Vec<Value> {
        if self.blocks.wide {
            return self.add_panel_products(own_sums, factors, (staged.storage, base));
        }
        let (row, zero) = (self.instruction(), self.l.b.index(0));
        let squares = self.blocks.squares as usize;
        let n = own_sums.len() / squares;
        let mut after: Vec<Value> =
            own_sums.iter().map(|&sums| self.l.b.load(sums, zero)).collect();
        for (sixteen, factors) in factors.chunks_exact(squares).enumerate() {
            let left: Vec<Value> = factors
                .iter()
                .map(|held| {
                    let ordered: Vec<Value> = (0..HELD).map(|i| held[mma::left_order(i)]).collect();
                    let ordered = self.vector(&ordered);
                    self.l.b.cast(self.blocks.half, ordered)
                })
                .collect();
            for column in 0..n {
                let place = self.op(Add, base, ((sixteen * n + column) * WARP) as i64);
                let b = self.l.b.load(staged.storage, place);
                for (square, &a) in left.iter().enumerate() {
                    let c = after[square * n + column];
                    let ty = self.l.b.ty(c);
                    after[square * n + column] = self.l.b.emit(Op::Mma { row, a, b, c }, ty);
                }
            }
        }
        after
    }

    /// Stores the results.
    pub(super) fn finish(
        &mut self,
        (own, scores): (&Own, Option<&Scores>),
        softmax: Option<Softmax>,
        rows: &[At],
    ) {
        let zero = self.l.b.index(0);
        let states: Vec<[Value; 2]> = own
            .states
            .iter()
            .map(|&[top, sum]| {
                let (top, sum) = (self.l.b.load(top, zero), self.l.b.load(sum, zero));
                let top = match scores.and_then(|scores| scores.scale) {
                    Some([_, magnitude]) => self.l.b.binary(Mul, top, magnitude),
                    None => top,
                };
                [top, self.across(Add, sum)]
            })
            .collect();
        let load = |this: &mut Self, sums: &[Value]| -> Vec<Value> {
            sums.iter().map(|&sum| this.l.b.load(sum, zero)).collect()
        };
        let flash = self.flash;
        let mut results = Vec::new();
        for ((sums, _), (node, sum, tuple, axes)) in
            self.products_of(own).into_iter().zip(flash.sums())
        {
            results.push((load(self, sums), Sum { node, sum, tuple, axes }));
        }
        for row in 0..self.rows.len() {
            let n = self.flash.spec.rows as i64;
            let all = n % self.blocks.rows() == 0;
            if !all {
                let exists = self.op(Lt, self.rows[row], n);
                self.l.b.open_if(exists);
            }
            self.l.counters.insert(self.flash.row, self.rows[row]);
            self.l.open_scope();
            let given = softmax.iter().flat_map(|s| [Some(s.top), s.sum]).flatten();
            if let Some(states) = states.get(row) {
                for ((node, tuple), &state) in given.zip(states) {
                    self.l.remember(node, tuple, state);
                }
            }
            self.store_row_values(rows);
            let scale = softmax.map(|s| (self.l.value(s.scale.0, s.scale.1, None), s.divides));
            for (sums, of) in &results {
                self.store_row((sums, *of), row, scale);
            }
            self.l.close_scope();
            if !all {
                self.l.b.close();
            }
        }
    }

    /// Stores what others need of a row, once.
    fn store_row_values(&mut self, rows: &[At]) {
        if rows.is_empty() {
            return;
        }
        let first = self.op(Eq, self.t, 0);
        self.l.b.open_if(first);
        self.l.open_scope();
        for &(node, tuple) in rows {
            self.l.store_root(node, tuple);
        }
        self.l.close_scope();
        self.l.b.close();
    }

    /// Stores the sums of a row: two runs of consecutive columns.
    fn store_row(
        &mut self,
        (sums, of): (&[Value], Sum<'_>),
        row: usize,
        scale: Option<(Value, bool)>,
    ) {
        if self.blocks.wide {
            return self.store_pairs((sums, of), row, scale);
        }
        let n = sums.len() / self.blocks.squares as usize;
        let (square, half) = (row / 2, row % 2 * 4);
        let run = (n * SIDE / HELD) as i64;
        for odd in 0..2 {
            let values: Vec<Value> = (0..run as usize)
                .map(|i| {
                    let sum = self.extract(sums[square * n + i / 2], half + odd + i % 2 * 2);
                    self.result(sum, of, scale)
                })
                .collect();
            let column = self.op(Mul, self.t, 2);
            let column = self.op(Add, column, odd as i64);
            let column = self.op(Mul, column, run);
            self.store_run(column, of, &values);
        }
    }

    pub(super) fn result(
        &mut self,
        sum: Value,
        of: Sum<'_>,
        scale: Option<(Value, bool)>,
    ) -> Value {
        let value = match scale {
            Some((scale, divides)) => {
                let op = if divides { BinaryOp::Div } else { Mul };
                self.l.b.binary(op, sum, scale)
            }
            None => sum,
        };
        self.l.b.cast(self.l.nodes.graph.dtype(of.node), value)
    }

    /// Stores consecutive columns of a row, as many at once as lie together.
    pub(super) fn store_run(&mut self, first: Value, of: Sum<'_>, values: &[Value]) {
        let Sum { node, sum, tuple, axes } = of;
        let axis = self.running(axes);
        let flat = self.l.indices.flat(self.l.nodes.graph, sum, tuple);
        let buffer = self.l.param(node);
        let most = 16 / self.l.nodes.graph.dtype(node).size();
        let lanes = most.min(1 << values.len().trailing_zeros());
        let together = flat.coefficient(axis) == 1
            && flat.terms.iter().all(|term| term.0 == axis || term.1 % lanes as i64 == 0)
            && flat.constant % lanes as i64 == 0;
        let lanes = if together { lanes } else { 1 };
        for (i, values) in values.chunks(lanes).enumerate() {
            let column = self.op(Add, first, (i * lanes) as i64);
            self.l.counters.insert(axis, column);
            let value = if lanes > 1 { self.vector(values) } else { values[0] };
            let index = self.l.index(&flat);
            self.l.b.store(buffer, index, value);
        }
    }
}
