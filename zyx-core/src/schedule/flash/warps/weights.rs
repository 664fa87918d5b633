//! Weights of a gradient, whose maximum and sum are known beforehand, and what is known of columns.
//!
//! `exp(s - shift) * scale` is `exp2((s - shift) log2(e) + log2(scale))` with two numbers for each
//! row, or each column where rows are keys. The shift is subtracted before anything is rounded, so
//! that scores of any size differ exactly. What the middle needs of a column is loaded by one thread
//! for all, one block ahead, and left in shared storage.

use super::{At, Blocks, DType, HELD, Known, Own, SIDE, Warps};
use crate::graph::{Graph, Node, NodeId};
use crate::ir::{Space, Type, Value};
use crate::ops::BinaryOp::{self, Add, Lt, Min, Mul, Sub};
use crate::ops::{TernaryOp, UnaryOp};
use crate::scalar::Scalar;
use crate::schedule::contract::through_movement;
use crate::schedule::flash::{FlashAttention, Middle};
use crate::schedule::lower::Lowering;
use rustc_hash::FxHashSet;

/// Most nodes that a walk visits.
const MAX_NODES: usize = 64;

/// A weight as the graph has it.
pub(super) struct Exponent {
    /// The weight.
    pub(super) key: At,
    /// The scores without what follows, and where they are seen if a band is hidden.
    target: At,
    pub(super) seen: Option<At>,
    /// The number that `target` is multiplied by, and whether it is a power of two: the product is exact then.
    factor: Option<(Value, bool)>,
    shift: At,
    scale: Option<At>,
    /// Whether shift and scale belong to columns.
    along_columns: bool,
}

/// Storage for what may be kept of columns, twice; what is not used of it is no storage in the end.
pub(super) fn storage(l: &mut Lowering<'_>, flash: &FlashAttention, blocks: &Blocks) -> Vec<Value> {
    let most = if blocks.wide { flash.leaves.len() + 2 } else { 0 };
    let (ty, n) = (Type::scalar(DType::F32), 2 * blocks.columns as u32);
    (0..most).map(|_| l.b.alloc(Space::Shared, ty, n)).collect()
}

/// What is known of columns: what is loaded, with the register of each, and what is kept.
pub(super) struct Columns {
    loaded: Vec<(At, Value)>,
    /// In shared storage, twice.
    kept: Vec<(Kept, Value)>,
}

/// A value of columns that is kept.
#[derive(Clone, Copy)]
enum Kept {
    Leaf(At),
    /// [`Normaliser::shift`] of the column.
    Shift,
    /// [`Normaliser::offset`] of the column.
    Offset,
}

/// The numbers of a row or column that weights follow from: what is subtracted from scores, and the
/// logarithm, to the base 2, of what exponentials are multiplied with.
#[derive(Clone, Copy)]
pub(super) struct Normaliser {
    shift: Value,
    offset: Value,
}

impl Warps<'_, '_> {
    pub(super) fn moved(&mut self, at: At) -> At {
        through_movement(self.l.nodes.graph, self.l.indices, at)
    }

    /// The middles, of the flash attention and of the sums beside it.
    fn middles(&self) -> Vec<At> {
        let own = match self.flash.middle {
            Middle::Values(at) => Some(at),
            Middle::Softmax(_) => None,
        };
        own.into_iter().chain(self.flash.beside.iter().map(|x| x.value)).collect()
    }

    /// The weights that the middles are made of, if there are any of the kind.
    pub(super) fn exponent(&mut self) -> Option<Exponent> {
        if !self.blocks.wide {
            return None;
        }
        let mut found = None;
        for at in self.middles() {
            let mut none = Vec::new();
            let this = self.walk(at, None, &mut none)?;
            if *found.get_or_insert(this) != this {
                return None;
            }
        }
        let key = found?;
        let (exp, scale) = self.weight(key)?;
        let Node::Unary { x, .. } = self.l.nodes.graph.node(exp.0) else { return None };
        let (node, tuple) = self.moved((x, exp.1));
        let Node::Binary { op: Sub, x, y } = self.l.nodes.graph.node(node) else { return None };
        let (scores, shift) = (self.moved((x, tuple)), self.moved((y, tuple)));
        let known = [Some(shift), scale].into_iter().flatten();
        let [rows, columns] = [self.flash.row, self.flash.column]
            .map(|axis| known.clone().any(|at| self.moves(at, axis)));
        if rows && columns {
            return None;
        }
        let (target, seen) = self.seen(scores);
        let (target, number) = self.scaled(target);
        let factor = number.map(|(node, tuple)| {
            let is_exact = is_power_of_two(self.l.nodes.graph, node);
            (self.l.value(node, tuple, None), is_exact)
        });
        Some(Exponent { key, target, seen, factor, shift, scale, along_columns: columns })
    }

    /// The exponential in a weight, and what else is in it.
    fn weight(&mut self, at: At) -> Option<(At, Option<At>)> {
        let is_exp = |this: &Self, at: At| {
            matches!(this.l.nodes.graph.node(at.0), Node::Unary { op: UnaryOp::Exp, .. })
        };
        if is_exp(self, at) {
            return Some((at, None));
        }
        let Node::Binary { op: Mul, x, y } = self.l.nodes.graph.node(at.0) else { return None };
        let (x, y) = (self.moved((x, at.1)), self.moved((y, at.1)));
        [(x, y), (y, x)].into_iter().find_map(|(exp, scale)| {
            let both = [self.flash.row, self.flash.column];
            let small = !both.iter().all(|&axis| self.moves(scale, axis));
            let fits = is_exp(self, exp) && small && is_positive(self.l.nodes.graph, scale.0, 8);
            fits.then_some((exp, Some(scale)))
        })
    }

    /// Walks through a middle from `at` until weights, or until `stop`; gives the first weight, and
    /// adds the leaves and tiles that were seen.
    fn walk(&mut self, at: At, stop: Option<At>, ends: &mut Vec<At>) -> Option<At> {
        let (mut found, mut seen, mut stack) = (None, FxHashSet::default(), vec![at]);
        while let Some(at) = stack.pop() {
            let at = self.moved(at);
            if Some(at) == stop || !seen.insert(at) || seen.len() > MAX_NODES {
                continue;
            }
            if self.flash.leaves.contains(&at) || self.flash.tiles.contains(&at) {
                ends.push(at);
            } else {
                if stop.is_none() && self.weight(at).is_some() {
                    found = found.or(Some(at));
                    continue;
                }
                let node = self.l.nodes.graph.node(at.0);
                stack.extend(node.sources().map(|x| (x, at.1)));
            }
        }
        found
    }

    /// The numbers of the row or column that the counters say.
    fn normaliser(&mut self, of: &Exponent) -> Normaliser {
        let shift = self.l.value(of.shift.0, of.shift.1, None);
        let offset = match of.scale {
            Some(scale) => {
                let scale = self.l.value(scale.0, scale.1, None);
                self.l.b.unary(UnaryOp::Log2, scale)
            }
            None => self.number(0.0),
        };
        Normaliser { shift, offset }
    }

    /// The numbers of each row, if they belong to rows.
    pub(super) fn row_normalisers(&mut self, of: Option<&Exponent>) -> Vec<Normaliser> {
        let Some(of) = of.filter(|of| !of.along_columns) else { return Vec::new() };
        let mut all = Vec::new();
        for row in 0..self.rows.len() {
            self.open_row(row);
            all.push(self.normaliser(of));
            self.l.close_scope();
        }
        all
    }

    /// What is kept of columns.
    pub(super) fn columns(&mut self, exponent: Option<&Exponent>, storage: &[Value]) -> Columns {
        let mut columns = Columns { loaded: Vec::new(), kept: Vec::new() };
        let leaves = self.leaves_of_columns(exponent);
        let mut loaded = leaves.clone();
        let both =
            exponent.is_some_and(|of| of.along_columns).then_some([Kept::Shift, Kept::Offset]);
        let kept = leaves.into_iter().map(Kept::Leaf).chain(both.into_iter().flatten());
        columns.kept = kept.zip(storage.iter().copied()).collect();
        if let Some(of) = exponent.filter(|of| of.along_columns) {
            for at in [Some(of.shift), of.scale].into_iter().flatten() {
                self.walk(at, Some(of.key), &mut loaded);
            }
        }
        let mut seen = FxHashSet::default();
        for at in loaded.into_iter().filter(|&at| seen.insert(at)) {
            let ty = Type::scalar(self.l.nodes.graph.dtype(at.0));
            let register = self.register(ty);
            // Threads without a column load from it, too, where passes move that in front of a
            // branch.
            let nothing = self.l.b.constant(Scalar::from_i64(self.l.nodes.graph.dtype(at.0), 0));
            let zero = self.l.b.index(0);
            self.l.b.store(register, zero, nothing);
            columns.loaded.push((at, register));
        }
        columns
    }

    /// Leaves of columns that the middles need beside the weights.
    fn leaves_of_columns(&mut self, exponent: Option<&Exponent>) -> Vec<At> {
        let mut leaves = Vec::new();
        if !self.blocks.wide {
            return leaves;
        }
        for at in self.middles() {
            self.walk(at, exponent.map(|of| of.key), &mut leaves);
        }
        let mut seen = FxHashSet::default();
        leaves.retain(|&leaf| {
            !self.flash.tiles.contains(&leaf)
                && self.l.nodes.graph.dtype(leaf.0) == DType::F32
                && self.moves(leaf, self.flash.column)
                && !self.moves(leaf, self.flash.row)
                && seen.insert(leaf)
        });
        leaves
    }

    /// Opens a branch for one thread of each column.
    fn open_columns(&mut self) {
        if self.blocks.columns < self.blocks.threads() {
            let mine = self.op(Lt, self.thread, self.blocks.columns);
            self.l.b.open_if(mine);
        }
        self.l.open_scope();
    }

    fn close_columns(&mut self) {
        self.l.close_scope();
        if self.blocks.columns < self.blocks.threads() {
            self.l.b.close();
        }
    }

    /// Loads what is needed of a block of columns.
    pub(super) fn bring_values(&mut self, columns: &Columns, first: Value) {
        if columns.loaded.is_empty() {
            return;
        }
        self.open_columns();
        let column = self.l.b.binary(Add, first, self.thread);
        let last = self.column_at(self.flash.spec.period[1] as i64 - 1);
        let column = self.l.b.binary(Min, column, last);
        self.l.counters.insert(self.flash.column, column);
        let zero = self.l.b.index(0);
        for &(at, register) in &columns.loaded {
            let value = self.l.value(at.0, at.1, None);
            self.l.b.store(register, zero, value);
        }
        self.close_columns();
    }

    /// Leaves it in one of the two places.
    pub(super) fn leave_values(&mut self, Known { columns, exponent, .. }: &Known, parity: Value) {
        if columns.kept.is_empty() {
            return;
        }
        self.open_columns();
        let (zero, place) = (self.l.b.index(0), self.op(Mul, parity, self.blocks.columns));
        let place = self.l.b.binary(Add, place, self.thread);
        for &(at, register) in &columns.loaded {
            let value = self.l.b.load(register, zero);
            self.l.remember(at.0, at.1, value);
        }
        let normaliser =
            exponent.as_ref().filter(|of| of.along_columns).map(|of| self.normaliser(of));
        for &(kept, storage) in &columns.kept {
            let value = match (kept, normaliser) {
                (Kept::Leaf(at), _) => self.l.value(at.0, at.1, None),
                (Kept::Shift, Some(of)) => of.shift,
                (Kept::Offset, Some(of)) => of.offset,
                (_, None) => unreachable!("invariant: what is kept for weights has weights"),
            };
            self.l.b.store(storage, place, value);
        }
        self.close_columns();
    }

    /// The leaves that are kept of a thread's columns: by the values, by sixteens and by the column
    /// of four.
    pub(super) fn kept(&mut self, columns: &Columns, parity: Value) -> Vec<(At, Vec<Value>)> {
        let pairs = 2 * self.blocks.columns as usize / SIDE;
        let mut all = Vec::new();
        for &(kept, storage) in &columns.kept {
            let Kept::Leaf(leaf) = kept else { continue };
            let pairs = (0..pairs).flat_map(|pair| self.kept_pair(storage, parity, pair));
            all.push((leaf, pairs.collect()));
        }
        all
    }

    /// Loads one kept value for a pair of this thread's columns, from the half of `storage` that `parity` selects.
    fn kept_pair(&mut self, storage: Value, parity: Value, pair: usize) -> [Value; 2] {
        let base = self.op(Mul, parity, self.blocks.columns);
        let k = 2 * pair;
        let [distance, at] = self.blocks.column(k % 4);
        let place = self.op(Mul, self.t, distance);
        let place = self.l.b.binary(Add, base, place);
        let place = self.op(Add, place, (SIDE * (k / 4)) as i64 + at);
        let pair = self.l.b.load_vector(storage, place, 2);
        [0, 1].map(|lane| self.extract(pair, lane))
    }

    /// The numbers of a pair of a thread's columns, if weights need those of columns.
    fn column_normalisers(
        &mut self,
        columns: &Columns,
        parity: Value,
        pair: usize,
    ) -> Option<[Normaliser; 2]> {
        let storage = |which: fn(&Kept) -> bool| {
            columns.kept.iter().find(|(kept, _)| which(kept)).map(|&(_, storage)| storage)
        };
        let shift = storage(|kept| matches!(kept, Kept::Shift))?;
        let offset = storage(|kept| matches!(kept, Kept::Offset))?;
        let (shift, offset) =
            (self.kept_pair(shift, parity, pair), self.kept_pair(offset, parity, pair));
        Some([0, 1].map(|i| Normaliser { shift: shift[i], offset: offset[i] }))
    }

    /// The tiles that a value needs beside weights.
    pub(super) fn tiles_of(&mut self, at: At, key: At) -> Vec<bool> {
        let mut ends = Vec::new();
        self.walk(at, Some(key), &mut ends);
        self.flash.tiles.iter().map(|tile| ends.contains(tile)).collect()
    }

    /// The weights of a block, by sixteens of columns.
    pub(super) fn weights(
        &mut self,
        (own, of, columns): (&Own, &Exponent, &Columns),
        tiles: &[Vec<Value>],
        (first, parity, at_edge): (Value, Value, bool),
    ) -> Vec<[Value; HELD]> {
        let least = self.number(f64::from(f32::MIN_EXP) - 1.0);
        let [bottom, nothing] = [f64::NEG_INFINITY, 0.0].map(|x| self.number(x));
        let log2e = self.number(std::f64::consts::LOG2_E);
        let needed = self.tiles_of(of.target, of.key);
        let mut values = vec![[first; HELD]; self.blocks.columns as usize / SIDE];
        let mut pair = None;
        for column in 0..4 * values.len() {
            let (sixteen, k) = (column / 4, column % 4);
            if column % 2 == 0 {
                // Loaded where they are used, for want of registers.
                pair = self.column_normalisers(columns, parity, column / 2);
            }
            self.open_column(first, sixteen, k);
            for row in 0..2 {
                let i = self.blocks.element(row, k);
                self.open_row(row);
                self.remember_element(own, (tiles, &needed), (row, sixteen, i));
                let x = self.l.value(of.target.0, of.target.1, None);
                let by = pair.map_or_else(|| own.normalisers[row], |pair| pair[column % 2]);
                let x = self.above_shift(x, of.factor, by.shift);
                let mut x = match of.scale {
                    Some(_) => self.l.b.ternary(TernaryOp::MulAdd, x, log2e, by.offset),
                    None => self.l.b.binary(Mul, x, log2e),
                };
                if let Some(seen) = of.seen.filter(|_| at_edge) {
                    let seen = self.l.value(seen.0, seen.1, None);
                    x = self.l.b.select(seen, x, bottom);
                }
                let tiny = self.l.b.binary(Lt, x, least);
                let weight = self.l.b.unary(UnaryOp::Exp2, x);
                values[sixteen][i] = self.l.b.select(tiny, nothing, weight);
                self.l.close_scope();
            }
            self.l.close_scope();
        }
        values
    }

    /// `x * factor - shift`, both rounded as the forward pass rounded scores.
    fn above_shift(&mut self, x: Value, factor: Option<(Value, bool)>, shift: Value) -> Value {
        match factor {
            // The product is exact.
            Some((factor, true)) => {
                let shift = self.l.b.unary(UnaryOp::Neg, shift);
                self.l.b.ternary(TernaryOp::MulAdd, x, factor, shift)
            }
            Some((factor, false)) => {
                let x = self.l.b.binary(Mul, x, factor);
                self.l.b.binary(Sub, x, shift)
            }
            None => self.l.b.binary(Sub, x, shift),
        }
    }
}

/// Whether a value is a literal power of two, up to its sign.
fn is_power_of_two(graph: &Graph, id: NodeId) -> bool {
    match graph.node(id) {
        Node::Const { bits } => {
            let x = Scalar::from_bits(graph.dtype(id), bits).to_f64();
            x.is_normal() && x.to_bits().trailing_zeros() >= f64::MANTISSA_DIGITS - 1
        }
        Node::Reshape { x } | Node::Expand { x } | Node::Permute { x, .. } => {
            is_power_of_two(graph, x)
        }
        _ => false,
    }
}

/// Whether a value cannot be below zero.
fn is_positive(graph: &Graph, id: NodeId, depth: usize) -> bool {
    let all = |ids: &[NodeId]| depth > 0 && ids.iter().all(|&x| is_positive(graph, x, depth - 1));
    match graph.node(id) {
        Node::Const { bits } => Scalar::from_bits(graph.dtype(id), bits).to_f64() >= 0.0,
        Node::Unary { op: UnaryOp::Exp, .. } => true,
        Node::Unary { op: UnaryOp::Recip | UnaryOp::Sqrt, x } => all(&[x]),
        Node::Reduce { op: Add | BinaryOp::Max, x, .. } => all(&[x]),
        Node::Binary { op: Add | Mul | BinaryOp::Div, x, y } => all(&[x, y]),
        Node::Ternary { op: TernaryOp::Where, y, z, .. } => all(&[y, z]),
        Node::Reshape { x } | Node::Expand { x } | Node::Permute { x, .. } => all(&[x]),
        _ => false,
    }
}
