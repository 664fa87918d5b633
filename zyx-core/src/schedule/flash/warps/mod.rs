//! Flash attention as one generated kernel of warps, whose products are matrix instructions.
//!
//! Where a device multiplies matrices of halves (`Caps::mma`) and the graph rounds the middle of a
//! flash attention to them, a group of threads takes a block of rows. Each warp of 32 threads keeps
//! 16 or 32 of them: their operands, their sums and what it knows of each row. The group walks
//! along blocks of columns, which [`stage`] brings to shared storage one ahead of those being used;
//! blocks that the band of a mask hides are left out.
//!
//! For each block a warp computes the tiles, makes of their elements what the graph says, in `f32`
//! and in registers ([`tile`]), and rounds them to be factors of the last product. No element
//! moves between threads for that: in the numbering of [`mma`] a thread holds of sums what it has
//! to hold of a left factor. The exponentials of a softmax are rounded before they are divided by
//! their sum, and the sum is that of the unrounded ones (Dao 2023); either order rounds a weight
//! once, by half a unit in its last place.
//!
//! Of square instructions, the numbers of steps and of results' columns are free: products are
//! summed over steps in any order, and whoever stores results knows where they belong. They are
//! chosen so that threads load and store 16 bytes at a time.
//!
//! Where the device has wide instructions, factors in shared storage are read by the instructions
//! themselves, and blocks of columns are copied there as they lie in memory ([`panels`]).

mod panels;
mod stage;
#[cfg(test)]
mod tests;
mod tile;
mod weights;

use super::scalar::begin;
use super::{At, FlashAttention, Middle, Softmax};
use crate::affine::{AtomId, Index};
use crate::dtype::{DType, DTypeSet};
use crate::graph::Node;
use crate::hal::{Caps, FlashOperand};
use crate::ir::mma::{self, HELD, SIDE, WARP, WARPGROUP, WIDE, WIDE_HELD};
use crate::ir::{LoopKind, Op, ShuffleKind, Space, Type, Value};
use crate::ops::BinaryOp::{self, Add, Div, Lt, Max, Min, Mul, Or, Rem, Sub};
use crate::scalar::Scalar;
use crate::schedule::contract::through_movement;
use crate::schedule::item::ScheduleItem;
use crate::schedule::lower::Lowering;
use crate::schedule::partition::Kind;
use crate::schedule::strategies::Nest;
use stage::Staged;
use weights::{Columns, Exponent, Normaliser};

/// Elements that are loaded at once, and steps of two instructions.
const RUN: i64 = HELD as i64;
const PAIR: i64 = 2 * SIDE as i64;
/// Widest operand, of square and of wide instructions.
const MAX_WIDTH: i64 = 128;
const MAX_WIDE: i64 = 256;
/// Columns of tiles and sums for which a thread of a wide warp has registers.
const WIDE_SUMS: i64 = 384;
/// Shared storage that is for what is known of columns, in bytes.
const SPARE: i64 = 2 << 10;
/// Groups of a multiprocessor that need nothing computed ahead.
const MANY: i64 = 3;
/// Lanes that share a row.
const QUAD: i64 = 4;

/// Whether matrix instructions multiply factors of a dtype and neighbours can exchange values.
pub(super) fn may_round(dtype: DType, caps: &Caps) -> bool {
    caps.simt
        && caps.mma != DTypeSet::NONE
        && caps.mma.contains(dtype)
        && caps.subgroup.0 >= WARP as u32
        && caps.vector_bytes >= HELD * dtype.size()
}

/// The sizes of blocks.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    half: DType,
    /// Whether instructions are wide. Their four parts of a warp are warps of sixteen rows here.
    wide: bool,
    /// Whether the tiles of a block are computed while the one before is finished. A softmax waits
    /// for its only tile; where many groups share a multiprocessor, others work meanwhile.
    ahead: bool,
    /// Warps of a group.
    warps: i64,
    /// Sixteens of rows of a warp.
    squares: i64,
    /// Columns of a block.
    columns: i64,
    /// Steps of each tile.
    depths: Vec<i64>,
    /// Columns of the sums.
    widths: Vec<i64>,
}

impl Blocks {
    /// The blocks for flash attention, if a device has such instructions and room for such blocks.
    pub(crate) fn of(flash: &FlashAttention, caps: &Caps) -> Option<Blocks> {
        let half = flash.rounded.filter(|&half| may_round(half, caps))?;
        let spec = &flash.spec;
        let width = |x: &FlashOperand| {
            let mut dims = x.inner.iter().filter(|dim| dim.0 != 1);
            let (Some(&(len, 1)), None) = (dims.next(), dims.next()) else { return None };
            let len = len as i64;
            (len % PAIR == 0).then_some(len)
        };
        // Runs start at whole runs: but for their own dimension, which is contiguous.
        let inner: Vec<AtomId> = flash.inner.iter().flatten().copied().collect();
        let widths = flash.sums().flat_map(|sum| sum.3);
        let inner: Vec<AtomId> = inner.into_iter().chain(widths.copied()).collect();
        let is_whole = |address: &Index| {
            let mut terms = address.terms.iter().filter(|term| !inner.contains(&term.0));
            address.constant % RUN == 0 && terms.all(|term| term.1 % RUN == 0)
        };
        let whole = flash.addresses.iter().all(is_whole);
        let depths: Option<Vec<i64>> = spec.tiles.iter().map(|tile| width(&tile.a)).collect();
        let depths = depths?;
        let right: Option<Vec<i64>> = spec.tiles.iter().map(|tile| width(&tile.b)).collect();
        let widths: Option<Vec<i64>> = spec.sums.iter().map(|sum| width(&sum.b)).collect();
        let widths = widths?;
        let small = [spec.rows, spec.columns, spec.batches()].iter().all(|&n| n < 1 << 30);
        let fits = spec.acc == DType::F32
            && right.as_ref() == Some(&depths)
            && spec.operands().all(|x| x.dtype == half)
            && whole
            && small
            && depths.len() <= 2
            && spec.batches() as u64 <= caps.max_groups[1];
        if !fits {
            return None;
        }
        let shared = caps.shared_bytes as i64;
        let rows = WIDE as i64;
        let wide = Blocks {
            half,
            wide: true,
            ahead: false,
            warps: 4,
            squares: 1,
            columns: rows,
            depths,
            widths,
        };
        let blocks = match wide.wide(flash, caps) {
            Some(blocks) => blocks,
            None => wide.narrow(shared)?,
        };
        let groups = (spec.rows as i64 + blocks.rows() - 1) / blocks.rows();
        let launches = blocks.threads() <= caps.max_local as i64;
        (launches && groups as u64 <= caps.max_groups[0]).then_some(blocks)
    }

    /// The sizes for wide instructions, if there are any, and if there are registers for tiles and
    /// sums and room for two blocks and the left factors.
    fn wide(&self, flash: &FlashAttention, caps: &Caps) -> Option<Blocks> {
        let whole = |&width: &i64| width % WIDE as i64 == 0 && width <= MAX_WIDE;
        let widths = || self.depths.iter().chain(&self.widths);
        let (tiles, steps) = (self.depths.len(), self.depths.iter().sum::<i64>());
        let homes = stage::homes(flash);
        let own = widths().zip(&homes).enumerate().filter(|(i, (_, producer))| i == *producer);
        let brought: i64 = own.map(|(_, (width, _))| width).sum();
        let halves = 2 * self.columns * brought + self.rows() * steps;
        let bytes = halves * self.half.size() as i64 + SPARE;
        let sums = self.columns * tiles as i64 + self.widths.iter().sum::<i64>();
        let shared = caps.most_shared_bytes.max(caps.shared_bytes) as i64;
        let fits = caps.wide_mma.contains(self.half)
            && sums <= WIDE_SUMS
            && widths().all(whole)
            && bytes <= shared;
        let apart = homes.iter().skip(tiles).all(|&producer| producer >= tiles);
        let few = bytes * MANY > shared;
        let ahead = apart && few && matches!(flash.middle, Middle::Softmax(_));
        fits.then(|| Blocks { ahead, ..self.clone() })
    }

    /// The sizes for square instructions with so many bytes of shared storage.
    fn narrow(self, shared: i64) -> Option<Blocks> {
        let (depths, &[width]) = (&self.depths, &self.widths[..]) else { return None };
        if depths.iter().chain([&width]).any(|&width| width > MAX_WIDTH) {
            return None;
        }
        // Registers are for two sixteens of rows or for two tiles.
        let wide = depths.iter().sum::<i64>() + width > 2 * 64;
        let (warps, squares) = if wide { (8, 1) } else { (4, 2) };
        let bytes = |columns: i64| 2 * 2 * columns * (depths.iter().sum::<i64>() + width);
        let room = |&columns: &i64| bytes(columns) <= shared;
        let columns = [64, 32, 16].into_iter().find(room)?;
        Some(Blocks { wide: false, warps, squares, columns, ..self })
    }

    /// Whether instructions read factors from shared storage.
    pub(crate) fn is_wide(&self) -> bool {
        self.wide
    }

    fn threads(&self) -> i64 {
        debug_assert!(!self.wide || self.warps * WARP as i64 == WARPGROUP as i64);
        self.warps * WARP as i64
    }

    /// The element of a thread's eight, of 16 rows and columns, that is in its line `line` (of two)
    /// and its column `k` (of four).
    fn element(&self, line: usize, k: usize) -> usize {
        if self.wide { k / 2 * 4 + 2 * line + k % 2 } else { 4 * line + k }
    }

    /// The line of an element.
    fn line(&self, element: usize) -> usize {
        if self.wide { element / 2 % 2 } else { element / 4 }
    }

    /// Column `k` of a thread: how far the next thread's is, and the first one's.
    fn column(&self, k: usize) -> [i64; 2] {
        let k = k as i64;
        if self.wide { [2, k / 2 * 8 + k % 2] } else { [QUAD, k] }
    }

    /// How far the two lines of a thread are apart.
    fn apart(&self) -> i64 {
        if self.wide { 8 } else { 2 }
    }

    /// Lanes of sums, and their columns.
    fn sums(&self) -> [usize; 2] {
        if self.wide { [WIDE_HELD, WIDE] } else { [HELD, SIDE] }
    }

    /// Rows of a warp, and of a group.
    fn own_rows(&self) -> i64 {
        self.squares * SIDE as i64
    }

    fn rows(&self) -> i64 {
        self.warps * self.own_rows()
    }
}

/// What a thread keeps, from block to block.
struct Own {
    /// The left factors of each tile: for each sixteen of rows and each step.
    factors: Vec<Vec<Value>>,
    /// For each sixteen of rows and each instruction's columns.
    sums: Vec<Value>,
    /// For each row the maximum and the sum of a softmax.
    states: Vec<[Value; 2]>,
    /// What is known of each row.
    leaves: Vec<Vec<(At, Value)>>,
    /// Shift and offset of each row, from which weights follow.
    normalisers: Vec<Normaliser>,
}

/// What is known of the middle before any of it is computed.
struct Known {
    scores: Option<Scores>,
    exponent: Option<Exponent>,
    columns: Columns,
}

/// What the scores of a softmax are, as they are kept.
struct Scores {
    /// The scores without what follows.
    target: At,
    /// Where they are seen, if a band is hidden.
    seen: Option<At>,
    /// A number that they are multiplied with behind that, as sign and magnitude: the sign is
    /// given to the left factors.
    scale: Option<[Value; 2]>,
}

/// Emits the kernel.
struct Warps<'l, 'a> {
    l: &'l mut Lowering<'a>,
    flash: &'l FlashAttention,
    blocks: &'l Blocks,
    thread: Value,
    /// The thread's place in its warp.
    lane: Value,
    g: Value,
    t: Value,
    /// The first row of the warp.
    first: Value,
    /// The first column of the period that is walked, if there are several.
    base: Option<Value>,
    /// The rows of the thread, and those that may be read in their place.
    rows: Vec<Value>,
    inside: Vec<Value>,
}

/// The kernel of flash attention.
pub(in crate::schedule) fn lower(nest: &mut Nest<'_>) -> Option<Vec<ScheduleItem>> {
    let Nest { graph, partition, number: group, group: this, caps, .. } = nest;
    let (graph, partition, group) = (*graph, &mut **partition, *group);
    let Kind::Flash(flash) = &this.kind else { return None };
    let blocks = &Blocks::of(flash, caps)?;
    let (mut l, softmax, rows) = begin((graph, partition), (group, this), flash, "_mma");
    emit(&mut l, (flash, blocks), softmax, &rows);
    Some(vec![ScheduleItem::Kernel(l.finish())])
}

fn emit(
    l: &mut Lowering<'_>,
    (flash, blocks): (&FlashAttention, &Blocks),
    softmax: Option<Softmax>,
    rows: &[At],
) {
    let spec = &flash.spec;
    let groups = (spec.rows as i64 + blocks.rows() - 1) / blocks.rows();
    let (batches, n) = (l.b.index(spec.batches() as i64), l.b.index(groups));
    let threads = l.b.index(blocks.threads());
    let batch = l.b.open_loop(LoopKind::Group, 1, batches);
    let group = l.b.open_loop(LoopKind::Group, 0, n);
    l.count_digits(&flash.batch, batch);
    // Rows that see most first.
    let group = match spec.band[1] {
        Some(_) => {
            let last = l.b.index(groups - 1);
            l.b.binary(Sub, last, group)
        }
        None => group,
    };
    let storage = stage::storage(l, flash, blocks);
    let left = panels::storage(l, blocks);
    let kept = weights::storage(l, flash, blocks);
    let thread = l.b.open_loop(LoopKind::Local, 0, threads);
    let mut warps = Warps::new(l, (flash, blocks), group, thread);
    let scores = softmax.map(|softmax| warps.scores(softmax.scores));
    let exponent = if softmax.is_some() { None } else { warps.exponent() };
    let columns = warps.columns(exponent.as_ref(), &kept);
    let known = Known { scores, exponent, columns };
    let own = warps.start(&left, &known);
    let staged = warps.staged(&storage);
    let [first, len] = warps.range(group);
    let zero = warps.l.b.index(0);
    warps.bring((&staged, &known), first, zero);
    let ahead = blocks.ahead.then(|| warps.begin_ahead((&own, &staged), (first, len)));
    // What blocks at an edge ask for each element is not in the loop of the others.
    let parts = match ahead {
        Some(_) => vec![(zero, len, true)],
        None => warps.parts((first, len), group, &known),
    };
    let period = spec.period[1] as i64;
    let periods = spec.columns as i64 / period;
    let walk = (periods > 1).then(|| {
        let n = warps.l.b.index(periods);
        let walk = warps.l.b.open_loop(LoopKind::Serial, 0, n);
        let base = warps.op(Mul, walk, period);
        warps.base = Some(base);
        (walk, warps.l.b.binary(Mul, walk, len), base)
    });
    for (from, to, at_edge) in parts {
        let n = warps.l.b.binary(Sub, to, from);
        let turn = warps.l.b.open_loop(LoopKind::Serial, 0, n);
        let turn = warps.l.b.binary(Add, from, turn);
        let parity = match walk {
            Some((_, before, _)) => warps.l.b.binary(Add, before, turn),
            None => turn,
        };
        let parity = warps.op(Rem, parity, 2);
        if !blocks.wide {
            warps.leave(&staged, parity);
        }
        warps.leave_values(&known, parity);
        warps.l.b.barrier(crate::ir::BarrierScope::Shared);
        let one = warps.l.b.index(1);
        let other = warps.l.b.binary(Sub, one, parity);
        if ahead.is_some() {
            let (tiles, sums) = staged.split_at(blocks.depths.len());
            for (staged, by, parity) in [(tiles, 2, parity), (sums, 1, other)] {
                let next = warps.later(turn, by, (first, len));
                warps.bring((staged, &known), next, parity);
            }
        } else {
            let next = warps.op(Add, turn, 1);
            let within = warps.l.b.binary(Lt, next, len);
            let more = match walk {
                Some((walk, ..)) => {
                    let another = warps.op(Lt, walk, periods - 1);
                    warps.l.b.binary(Or, within, another)
                }
                None => within,
            };
            warps.l.b.open_if(more);
            let mut next = warps.l.b.binary(Add, first, next);
            if let Some((.., base)) = walk {
                next = warps.l.b.select(within, next, first);
                let after = warps.op(Add, base, period);
                warps.base = Some(warps.l.b.select(within, base, after));
            }
            warps.bring((&staged, &known), next, other);
            warps.l.b.close();
            warps.base = walk.map(|(.., base)| base);
        }
        let block = warps.l.b.binary(Add, first, turn);
        let of = (&own, &known, ahead.as_deref());
        warps.block(of, (&staged, [parity, other]), (block, at_edge));
        warps.l.b.close();
    }
    if walk.is_some() {
        warps.l.b.close();
    }
    warps.finish((&own, known.scores.as_ref()), softmax, rows);
    (0..3).for_each(|_| warps.l.b.close());
}

impl<'l, 'a> Warps<'l, 'a> {
    /// Numbers a thread and its rows.
    fn new(
        l: &'l mut Lowering<'a>,
        (flash, blocks): (&'l FlashAttention, &'l Blocks),
        group: Value,
        thread: Value,
    ) -> Warps<'l, 'a> {
        let zero = l.b.index(0);
        let (lane, g, t, first) = (zero, zero, zero, zero);
        let (rows, inside) = (Vec::new(), Vec::new());
        let base = None;
        let mut warps = Warps { l, flash, blocks, thread, lane, g, t, first, base, rows, inside };
        warps.lane = warps.op(Rem, thread, WARP as i64);
        warps.g = warps.op(Div, warps.lane, QUAD);
        warps.t = warps.op(Rem, warps.lane, QUAD);
        let team = warps.op(Div, thread, WARP as i64);
        let (group, team) = (warps.op(Mul, group, blocks.rows()), team);
        let team = warps.op(Mul, team, blocks.own_rows());
        warps.first = warps.l.b.binary(Add, group, team);
        let line = if blocks.wide { warps.g } else { warps.line(warps.g) };
        let line = warps.l.b.binary(Add, warps.first, line);
        let n = flash.spec.rows as i64;
        for i in 0..2 * blocks.squares {
            let row = warps.op(Add, line, i / 2 * SIDE as i64 + i % 2 * blocks.apart());
            warps.rows.push(row);
            let inside = if n % blocks.rows() == 0 { row } else { warps.op(Min, row, n - 1) };
            warps.inside.push(inside);
        }
        let others = flash.inner.iter().flatten().chain(flash.sums().flat_map(|sum| sum.3));
        for &axis in others {
            warps.l.counters.insert(axis, zero);
        }
        warps
    }

    fn op(&mut self, op: BinaryOp, x: Value, by: i64) -> Value {
        if matches!((op, by), (Add, 0) | (Mul | Div, 1)) {
            return x;
        }
        let by = self.l.b.index(by);
        self.l.b.binary(op, x, by)
    }

    /// The first of the two lines, of 16, of the threads `4 g ..`; the other is the one after next.
    fn line(&mut self, g: Value) -> Value {
        let (pair, odd) = (self.op(Div, g, 2), self.op(Rem, g, 2));
        let pair = self.op(Mul, pair, 4);
        self.l.b.binary(Add, pair, odd)
    }

    /// The counter of those that runs.
    fn running(&self, axes: &[AtomId]) -> AtomId {
        let runs = axes.iter().find(|&&axis| self.l.indices.extent(axis) != 1);
        *runs.expect("invariant: one dimension is longer than one")
    }

    fn register(&mut self, ty: Type) -> Value {
        self.l.b.alloc(Space::Register, ty, 1)
    }

    fn number(&mut self, x: f64) -> Value {
        self.l.b.constant(Scalar::from_f64(DType::F32, x))
    }

    /// A vector of these scalars.
    fn vector(&mut self, elements: &[Value]) -> Value {
        let ty = self.l.b.ty(elements[0]);
        let scratch = self.l.b.alloc(Space::Register, ty, elements.len() as u32);
        for (i, &x) in elements.iter().enumerate() {
            let at = self.l.b.index(i as i64);
            self.l.b.store(scratch, at, x);
        }
        let zero = self.l.b.index(0);
        self.l.b.load_vector(scratch, zero, elements.len() as u8)
    }

    fn extract(&mut self, x: Value, lane: usize) -> Value {
        let ty = Type::scalar(self.l.b.ty(x).dtype);
        self.l.b.emit(Op::Extract { x, lane: lane as u8 }, ty)
    }

    /// Combines the values that the four threads of a row have.
    fn across(&mut self, op: BinaryOp, mut x: Value) -> Value {
        for distance in [1, 2] {
            let (lane, ty) = (self.l.b.index(distance), self.l.b.ty(x));
            let other = self.l.b.emit(Op::Shuffle { kind: ShuffleKind::Xor, x, lane }, ty);
            x = self.l.b.binary(op, x, other);
        }
        x
    }

    /// What is known of the scores before any is computed.
    fn scores(&mut self, scores: At) -> Scores {
        let (target, seen) = self.seen(scores);
        let (target, scale) = self.scaled(target);
        let scale = scale.map(|at| {
            let x = self.l.value(at.0, at.1, None);
            let [nothing, one, minus] = [0.0, 1.0, -1.0].map(|n| self.number(n));
            let (above, below) = (self.l.b.binary(Lt, nothing, x), self.l.b.binary(Lt, x, nothing));
            // Zero and NaN stay what they are.
            let sign = self.l.b.select(below, minus, x);
            let sign = self.l.b.select(above, one, sign);
            let magnitude = self.l.b.binary(Mul, sign, x);
            let is_any = self.l.b.binary(Lt, nothing, magnitude);
            [sign, self.l.b.select(is_any, magnitude, one)]
        });
        Scores { target, seen, scale }
    }

    /// Scores without a number that all are multiplied with, and that number.
    fn scaled(&mut self, (node, tuple): At) -> (At, Option<At>) {
        let Node::Binary { op: Mul, x, y } = self.l.nodes.graph.node(node) else {
            return ((node, tuple), None);
        };
        for (x, y) in [(x, y), (y, x)] {
            let number = through_movement(self.l.nodes.graph, self.l.indices, (y, tuple));
            if [self.flash.row, self.flash.column].iter().all(|&axis| !self.moves(number, axis)) {
                return ((x, tuple), Some(number));
            }
        }
        ((node, tuple), None)
    }

    /// Halves with the sign of what scores are multiplied with.
    fn signed(&mut self, x: Value, scores: Option<&Scores>) -> Value {
        let Some([sign, _]) = scores.and_then(|scores| scores.scale) else { return x };
        let sign = self.l.b.splat(sign, HELD as u8);
        let x = self.l.b.cast(DType::F32, x);
        let x = self.l.b.binary(Mul, x, sign);
        self.l.b.cast(self.blocks.half, x)
    }

    /// Brings the left factors, to registers or to `storage`; sums and states start.
    fn start(&mut self, storage: &[Value], known: &Known) -> Own {
        let scores = known.scores.as_ref();
        let tiles = 0..self.blocks.depths.len();
        let factors = tiles.map(|tile| match storage.get(tile) {
            Some(&storage) => self.bring_rows(tile, storage, scores),
            None => self.left_factors(tile, scores),
        });
        let factors = factors.collect();
        let [lanes, columns] = self.blocks.sums();
        let sums = Type::vector(DType::F32, lanes as u8);
        let n = self.blocks.squares * self.blocks.widths.iter().sum::<i64>() / columns as i64;
        let (zero, nothing) = (self.l.b.index(0), self.number(0.0));
        let nothing = self.l.b.splat(nothing, lanes as u8);
        let sums: Vec<Value> = (0..n).map(|_| self.register(sums)).collect();
        for &sum in &sums {
            self.l.b.store(sum, zero, nothing);
        }
        let normalisers = self.row_normalisers(known.exponent.as_ref());
        let mut own = Own { factors, sums, states: Vec::new(), leaves: Vec::new(), normalisers };
        for row in 0..self.rows.len() {
            if let [top, sum] = self.flash.spec.state[..] {
                let state = [top, sum].map(|first| {
                    let state = self.register(Type::scalar(DType::F32));
                    let first = self.l.b.constant(first);
                    self.l.b.store(state, zero, first);
                    state
                });
                own.states.push(state);
            }
            own.leaves.push(self.row_leaves(row));
        }
        own
    }

    /// What the middle needs of a row, whatever the column.
    fn row_leaves(&mut self, row: usize) -> Vec<(At, Value)> {
        let Middle::Values(_) = self.flash.middle else { return Vec::new() };
        self.l.counters.insert(self.flash.row, self.inside[row]);
        self.l.open_scope();
        let mut list = Vec::new();
        for &leaf in &self.flash.leaves {
            if self.moves(leaf, self.flash.row) && !self.moves(leaf, self.flash.column) {
                list.push((leaf, self.l.value(leaf.0, leaf.1, None)));
            }
        }
        self.l.close_scope();
        list
    }

    /// Whether a counter moves a value that is no literal.
    fn moves(&self, (node, tuple): At, axis: AtomId) -> bool {
        let mut found = false;
        self.l.indices.visit_axes(tuple, |a| found |= a == axis);
        found
            && !matches!(self.l.nodes.graph.node(node), Node::Const { .. } | Node::Argument { .. })
    }

    /// The left factors of a tile: a thread's eight consecutive steps are those of two
    /// instructions.
    fn left_factors(&mut self, tile: usize, scores: Option<&Scores>) -> Vec<Value> {
        let axis = self.running(&self.flash.inner[tile]);
        let mut factors = Vec::new();
        for square in 0..self.blocks.squares as usize {
            for pair in 0..self.blocks.depths[tile] / PAIR {
                let steps = self.op(Mul, self.t, RUN);
                let steps = self.op(Add, steps, pair * PAIR);
                self.l.counters.insert(axis, steps);
                let lines = [0, 1].map(|i: usize| {
                    self.l.counters.insert(self.flash.row, self.inside[2 * square + i]);
                    let x = self.load(2 * tile);
                    self.signed(x, scores)
                });
                for half in 0..2 {
                    let elements: Vec<Value> = (0..HELD)
                        .map(mma::left_order)
                        .map(|i| self.extract(lines[i / 4], 4 * half + i % 4))
                        .collect();
                    factors.push(self.vector(&elements));
                }
            }
        }
        factors
    }

    /// The block so many behind a turn, or the last.
    fn later(&mut self, turn: Value, by: i64, (first, len): (Value, Value)) -> Value {
        let last = self.op(Sub, len, 1);
        let last = self.op(Max, last, 0);
        let next = self.op(Add, turn, by);
        let next = self.l.b.binary(Min, next, last);
        self.l.b.binary(Add, first, next)
    }

    /// Computes the first tiles, behind which the next ones are brought. Gives where they are kept.
    fn begin_ahead(
        &mut self,
        (own, staged): (&Own, &[Staged]),
        (first, len): (Value, Value),
    ) -> Vec<Value> {
        let tiles = &staged[..self.blocks.depths.len()];
        self.l.b.barrier(crate::ir::BarrierScope::Shared);
        let [zero, one] = [0, 1].map(|i| self.l.b.index(i));
        let next = self.later(zero, 1, (first, len));
        for s in tiles {
            let first = self.op(Mul, next, self.blocks.columns);
            self.bring_columns(s, first, one);
        }
        let sums = self.tiles(own, tiles, zero);
        let keep = |tile: Vec<Value>| {
            let ty = self.l.b.ty(tile[0]);
            let register = self.register(ty);
            self.l.b.store(register, zero, tile[0]);
            register
        };
        sums.into_iter().map(keep).collect()
    }

    /// The elements of an operand from the counters on.
    fn load(&mut self, operand: usize) -> Value {
        let index = self.l.index(&self.flash.addresses[operand].clone());
        let buffer = self.l.param(self.flash.operands[operand]);
        self.l.b.load_vector(buffer, index, HELD as u8)
    }

    /// The blocks of a period from `from` to `to`, and whether they may have elements beyond the
    /// last column or out of the band, for some row of the group.
    fn parts(
        &mut self,
        (first, len): (Value, Value),
        group: Value,
        known: &Known,
    ) -> Vec<(Value, Value, bool)> {
        let (columns, rows, spec) = (self.blocks.columns, self.blocks.rows(), &self.flash.spec);
        let n = spec.period[1] as i64;
        let masked = known.scores.as_ref().is_some_and(|scores| scores.seen.is_some())
            || known.exponent.is_some() && self.flash.seen.is_some();
        let [low, high] = spec.band.map(|limit| limit.filter(|_| masked));
        let (mut parts, mut from) = (Vec::new(), self.l.b.index(0));
        let row = self.op(Mul, group, rows);
        let [least, greatest] = self.positions(row, rows);
        if let Some(low) = low {
            // Blocks before those that the last row sees all of.
            let seen = self.op(Add, greatest, low + columns - 1);
            let seen = self.op(Max, seen, 0);
            let blocks = self.op(Div, seen, columns);
            let end = self.within(blocks, (first, from, len));
            parts.push((from, end, true));
            from = end;
        }
        if n % columns == 0 && high.is_none() {
            parts.push((from, len, false));
            return parts;
        }
        let mut blocks = self.l.b.index(n / columns);
        if let Some(high) = high {
            let seen = self.op(Add, least, high + 1);
            let seen = self.op(Max, seen, 0);
            let seen = self.op(Div, seen, columns);
            blocks = self.l.b.binary(Min, blocks, seen);
        }
        let end = self.within(blocks, (first, from, len));
        parts.extend([(from, end, false), (end, len, true)]);
        parts
    }

    /// A number of blocks from the first column on as one from `first` on, in a range.
    fn within(&mut self, blocks: Value, (first, least, most): (Value, Value, Value)) -> Value {
        let n = self.l.b.binary(Sub, blocks, first);
        let n = self.l.b.binary(Max, n, least);
        self.l.b.binary(Min, n, most)
    }

    /// The least and the greatest position of so many rows from one on: of all, if they are not of
    /// one period.
    fn positions(&mut self, first: Value, rows: i64) -> [Value; 2] {
        let (n, period) = (self.flash.spec.rows as i64, self.flash.spec.period[0] as i64);
        if period == n {
            return [first, self.op(Add, first, rows - 1)];
        }
        let least = self.op(Rem, first, period);
        let greatest = self.op(Add, least, rows - 1);
        if period % rows == 0 {
            return [least, greatest];
        }
        let [zero, last] = [0, period - 1].map(|at| self.l.b.index(at));
        let wraps = self.l.b.binary(Lt, last, greatest);
        [self.l.b.select(wraps, zero, least), self.l.b.binary(Min, greatest, last)]
    }

    /// The column at a position of the period that is walked.
    fn column_at(&mut self, position: i64) -> Value {
        match self.base {
            Some(base) => self.op(Add, base, position),
            None => self.l.b.index(position),
        }
    }

    /// The first column of a block.
    fn first_column(&mut self, block: Value) -> Value {
        let first = self.op(Mul, block, self.blocks.columns);
        self.base.map_or(first, |base| self.l.b.binary(Add, base, first))
    }

    /// The first block of columns that the group sees, and how many there are from it on.
    fn range(&mut self, group: Value) -> [Value; 2] {
        let (columns, spec) = (self.blocks.columns, &self.flash.spec);
        let total = (spec.period[1] as i64 + columns - 1) / columns;
        let (rows, first) = (self.blocks.rows(), self.op(Mul, group, self.blocks.rows()));
        let [least, greatest] = self.positions(first, rows);
        let [low, high] = spec.band;
        let start = match low {
            Some(low) => {
                let column = self.op(Add, least, low);
                let column = self.op(Max, column, 0);
                let block = self.op(Div, column, columns);
                self.op(Min, block, total)
            }
            None => self.l.b.index(0),
        };
        let end = match high {
            Some(high) => {
                let last = self.op(Min, greatest, spec.period[0] as i64 - 1);
                let end = self.op(Add, last, high + columns);
                let end = self.op(Max, end, 0);
                let end = self.op(Div, end, columns);
                self.op(Min, end, total)
            }
            None => self.l.b.index(total),
        };
        let len = self.l.b.binary(Sub, end, start);
        [start, self.op(Max, len, 0)]
    }
}
