//! Weights of a gradient, whose maximum and sum are known beforehand, and what is known of columns.
//!
//! `exp(s - shift) * scale` is `exp2(s log2(e) + offset)` with one number for each row, or each
//! column where rows are keys. What the middle needs of a column is loaded by one thread for all,
//! one block ahead, and left in shared storage.

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
    /// What they are multiplied with, for a power of two.
    factor: Value,
    shift: At,
    scale: Option<At>,
    /// Whether shift and scale belong to columns.
    along_columns: bool,
}

/// Storage for what may be kept of columns, twice; what is not used of it is no storage in the end.
pub(super) fn storage(l: &mut Lowering<'_>, flash: &FlashAttention, blocks: &Blocks) -> Vec<Value> {
    let most = if blocks.wide { flash.leaves.len() + 1 } else { 0 };
    let (ty, n) = (Type::scalar(DType::F32), 2 * blocks.columns as u32);
    (0..most).map(|_| l.b.alloc(Space::Shared, ty, n)).collect()
}

/// What is known of columns: what is loaded, with the register of each, and what is kept.
pub(super) struct Columns {
    loaded: Vec<(At, Value)>,
    /// In shared storage, twice; without a leaf it is the offset of the exponents.
    kept: Vec<(Option<At>, Value)>,
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
        let log2e = self.number(std::f64::consts::LOG2_E);
        let factor = match number {
            Some((node, tuple)) => {
                let number = self.l.value(node, tuple, None);
                self.l.b.binary(Mul, number, log2e)
            }
            None => log2e,
        };
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

    /// What is added to scores, at the row or column that the counters say.
    pub(super) fn offset(&mut self, of: &Exponent) -> Value {
        let log2e = self.number(std::f64::consts::LOG2_E);
        let shift = self.l.value(of.shift.0, of.shift.1, None);
        let shift = self.l.b.binary(Mul, shift, log2e);
        match of.scale {
            Some(scale) => {
                let scale = self.l.value(scale.0, scale.1, None);
                let scale = self.l.b.unary(UnaryOp::Log2, scale);
                self.l.b.binary(Sub, scale, shift)
            }
            None => self.l.b.unary(UnaryOp::Neg, shift),
        }
    }

    /// The offset of each row, if it belongs to rows.
    pub(super) fn row_offsets(&mut self, of: Option<&Exponent>) -> Vec<Value> {
        let Some(of) = of.filter(|of| !of.along_columns) else { return Vec::new() };
        let mut offsets = Vec::new();
        for row in 0..self.rows.len() {
            self.open_row(row);
            offsets.push(self.offset(of));
            self.l.close_scope();
        }
        offsets
    }

    /// What is kept of columns.
    pub(super) fn columns(&mut self, exponent: Option<&Exponent>, storage: &[Value]) -> Columns {
        let mut columns = Columns { loaded: Vec::new(), kept: Vec::new() };
        let leaves = self.leaves_of_columns(exponent);
        let offset = exponent.is_some_and(|of| of.along_columns).then_some(None);
        let kept = leaves.into_iter().map(Some).chain(offset);
        columns.kept = kept.zip(storage.iter().copied()).collect();
        let mut loaded: Vec<At> = columns.kept.iter().filter_map(|kept| kept.0).collect();
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
        for &(leaf, storage) in &columns.kept {
            let value = match (leaf, exponent.as_ref()) {
                (Some(at), _) => self.l.value(at.0, at.1, None),
                (None, Some(of)) => self.offset(of),
                (None, None) => unreachable!("invariant: only exponents have an offset"),
            };
            self.l.b.store(storage, place, value);
        }
        self.close_columns();
    }

    /// What is kept of a thread's columns: by the values, by sixteens and by the column of four.
    pub(super) fn kept(&mut self, columns: &Columns, parity: Value) -> Vec<Vec<Value>> {
        let base = self.op(Mul, parity, self.blocks.columns);
        let sixteens = self.blocks.columns as usize / SIDE;
        let mut all = Vec::new();
        for &(_, storage) in &columns.kept {
            let mut values = Vec::new();
            for k in (0..4 * sixteens).step_by(2) {
                let [distance, at] = self.blocks.column(k % 4);
                let place = self.op(Mul, self.t, distance);
                let place = self.l.b.binary(Add, base, place);
                let place = self.op(Add, place, (SIDE * (k / 4)) as i64 + at);
                let pair = self.l.b.load_vector(storage, place, 2);
                values.extend([0, 1].map(|lane| self.extract(pair, lane)));
            }
            all.push(values);
        }
        all
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
        (own, of): (&Own, &Exponent),
        tiles: &[Vec<Value>],
        (first, at_edge): (Value, bool),
        offsets: Option<&Vec<Value>>,
    ) -> Vec<[Value; HELD]> {
        let least = self.number(f64::from(f32::MIN_EXP) - 1.0);
        let [bottom, nothing] = [f64::NEG_INFINITY, 0.0].map(|x| self.number(x));
        let needed = self.tiles_of(of.target, of.key);
        let mut values = vec![[first; HELD]; self.blocks.columns as usize / SIDE];
        for column in 0..4 * values.len() {
            let (sixteen, k) = (column / 4, column % 4);
            self.open_column(first, sixteen, k);
            for row in 0..2 {
                let i = self.blocks.element(row, k);
                self.open_row(row);
                self.remember_element(own, (tiles, &needed), (row, sixteen, i));
                let x = self.l.value(of.target.0, of.target.1, None);
                let offset = offsets.map_or_else(|| own.offsets[row], |values| values[column]);
                let mut x = self.l.b.ternary(TernaryOp::MulAdd, x, of.factor, offset);
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
}

impl Columns {
    /// What is kept, with its place among them.
    pub(super) fn leaves(&self) -> impl Iterator<Item = (usize, At)> {
        self.kept.iter().enumerate().filter_map(|(i, kept)| Some((i, kept.0?)))
    }

    /// Which is the offset of exponents.
    pub(super) fn offset(&self) -> Option<usize> {
        self.kept.iter().position(|kept| kept.0.is_none())
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
