//! How the operands of one contraction are reached: offsets, panels, and what is copied.
//!
//! A layout is what depends on the specification and the instruction set alone, not on threads or
//! cache sizes: the offset tables of each group in each operand, the split of n into panels of
//! vectors, and for A and B whether the tile kernel reads them in place or from a packed copy.

use super::offsets::Offsets;
use super::pack::Piece;
use super::spec::{Dim, Spec};

/// How A reaches the tile kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModeA {
    /// In place, by even steps along k.
    Direct,
    /// In place, by a table of steps along k.
    Table,
    /// Copied to rows along k.
    Rows,
    /// Copied to strips: for every k, the rows of one tile.
    Strips,
}

/// How B reaches the tile kernel, panel by panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModeB {
    /// In place where the panel is contiguous, else as `Runs`.
    Direct,
    /// Packed from runs along n.
    Runs,
    /// Packed by transposing runs along k.
    Transposed,
    /// Packed element by element.
    Scattered,
}

/// A panel: neighbouring columns of C that one tile covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct PanelShape {
    /// First column.
    pub(super) n0: usize,
    /// Number of columns.
    pub(super) width: usize,
    /// Number of vectors.
    pub(super) vectors: usize,
    /// Number of the first vector, counted over all panels.
    pub(super) vector0: usize,
    /// Whether the columns are adjacent in B.
    pub(super) contiguous_b: bool,
    /// Whether the columns are adjacent in C.
    pub(super) contiguous_c: bool,
}

/// The widths a tile kernel offers.
#[derive(Clone, Copy, Debug)]
pub(super) struct TileShape {
    /// Accumulators per vector.
    pub(super) lanes: usize,
    /// The most rows.
    pub(super) rows: usize,
    /// The most vectors.
    pub(super) vectors: usize,
    /// Steps of k that a packed number holds.
    pub(super) depth: usize,
    /// Packed numbers along k come in groups of so many, multiplied at once.
    pub(super) group: usize,
    /// Packed numbers behind those.
    pub(super) behind: usize,
    /// Whether A is always packed in strips.
    pub(super) strips: bool,
    /// Whether A is never packed in strips.
    pub(super) along: bool,
    /// Whether bytes are multiplied.
    pub(super) bytes: bool,
    /// Instructions of a multiply-add.
    pub(super) ops: f64,
    /// Whether tails are packed, so that the plain kernel reads them.
    pub(super) by_lane: bool,
}

/// The elements a group of dimensions reaches in an operand, as runs of addresses: `count` of them,
/// `stride` elements apart, from `low` to `high`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    pub(super) count: usize,
    pub(super) stride: isize,
    pub(super) low: isize,
    pub(super) high: isize,
}

/// Offsets, panels and modes of a contraction.
pub(super) struct Layout {
    pub(super) tile: TileShape,
    /// Offsets in A and B of the first element of k as ordered here.
    pub(super) origin_a: isize,
    pub(super) origin_b: isize,
    pub(super) batch_a: Offsets,
    pub(super) batch_b: Offsets,
    pub(super) batch_c: Offsets,
    pub(super) m_a: Offsets,
    pub(super) m_c: Offsets,
    pub(super) n_b: Offsets,
    pub(super) n_c: Offsets,
    pub(super) k_a: Offsets,
    pub(super) k_b: Offsets,
    pub(super) mode_a: ModeA,
    pub(super) mode_b: ModeB,
    pub(super) panels: Vec<PanelShape>,
    /// The pieces of all vectors of all panels.
    pub(super) pieces: Vec<Piece>,
    /// For each vector the number of its first piece, and the number of pieces.
    pub(super) piece_starts: Vec<u32>,
    /// Whether the tile kernel writes C itself.
    pub(super) direct_c: bool,
    /// Whether finished blocks are transposed before they are handed on.
    pub(super) turned: bool,
    /// Rows per batch entry if the batch has become part of m, else 0.
    pub(super) folded: usize,
    /// Steps along the last dimension of k if A is computed block by block, else 0.
    pub(super) computed_run: usize,
    /// Bytes of an accumulator.
    pub(super) bytes: usize,
    /// What all of m, and all of k, reach in A.
    pub(super) reach_m_a: Reach,
    pub(super) reach_k_a: Reach,
    /// What all of k reaches in B.
    pub(super) reach_k_b: Reach,
}

/// With at most this many rows, packing a panel of B costs more than reading it in place.
const DIRECT_B_ROWS: usize = 48;

/// Up to this many bytes between its rows, and in all, B is read in place whatever the rows: the
/// hardware foresees the steps, and L2 holds it.
const DIRECT_B_STEP: usize = 2048;
const DIRECT_B_BYTES: usize = 1 << 20;

/// Bytes so far apart, at most, are packed as runs unless others are longer.
const NEAR_BYTES: usize = 4;

/// With at most this many panels, packing A costs more than reading it in place.
const DIRECT_A_PANELS: usize = 2;

/// A run along k shorter than this is not worth a block of its own.
const MIN_K_RUN: usize = 96;

/// Rows a multiple of a small page apart share a few sets of the caches and evict each other: so
/// many of them, used by more than so many panels, are packed although contiguous along k.
const PAGE: usize = 4096;
const COLLISION_ROWS: usize = 128;
const COLLISION_PANELS: usize = 8;

/// Steps a multiple of this many bytes apart collide in L1 before the next tile comes by.
const COLLISION_STEP: usize = 1024;

/// Elements added to the rows of a packed block of A, so that rows do not share a cache set, and
/// that packing may write a vector too much.
const ROW_PADDING: usize = 16;

impl TileShape {
    /// Numbers between the rows of a packed block of A of so many along k.
    pub(super) fn row_stride(&self, steps: usize) -> usize {
        match self.along {
            // Whole cache lines, an odd number of them.
            true => ((steps + ROW_PADDING).div_ceil(16) | 1) * 16,
            false => steps + ROW_PADDING,
        }
    }

    /// Packed numbers along `k` steps.
    pub(super) fn packed(&self, k: usize) -> usize {
        k.div_ceil(self.depth).next_multiple_of(self.group) + self.behind
    }
}

impl Layout {
    /// The layout of `spec`, in the orientation to be executed.
    ///
    /// With an epilogue, finished blocks leave in the orientation of the caller, which is the other
    /// one if `exchanged`. If A is `computed`, dimensions stay as its prologue counts them.
    pub(super) fn new(
        spec: &Spec,
        tile: TileShape,
        epilogue: bool,
        (exchanged, computed): (bool, bool),
    ) -> Layout {
        let (k, origin_a, origin_b) =
            if computed { (spec.k.clone(), 0, 0) } else { order_k(&spec.k) };
        let (batch, m, folded) =
            if computed { (spec.batch.clone(), spec.m.clone(), 0) } else { fold_batch(spec) };
        let run = k.last().map_or(1, |d| d.len.max(1));
        let offsets = |dims: &[Dim], stride: fn(&Dim) -> isize| {
            Offsets::new(&dims.iter().map(|d| (d.len, stride(d))).collect::<Vec<_>>())
        };
        let mut layout = Layout {
            tile,
            origin_a,
            origin_b,
            batch_a: offsets(&batch, |d| d.a),
            batch_b: offsets(&batch, |d| d.b),
            batch_c: offsets(&batch, |d| d.c),
            m_a: offsets(&m, |d| d.a),
            m_c: offsets(&m, |d| d.c),
            n_b: offsets(&spec.n, |d| d.b),
            n_c: offsets(&spec.n, |d| d.c),
            k_a: offsets(&k, |d| d.a),
            k_b: offsets(&k, |d| d.b),
            mode_a: ModeA::Direct,
            mode_b: ModeB::Direct,
            panels: Vec::new(),
            pieces: Vec::new(),
            piece_starts: Vec::new(),
            direct_c: false,
            turned: false,
            folded,
            computed_run: if computed { run } else { 0 },
            bytes: spec.acc.dtype().size(),
            reach_m_a: reach(&m, |d| d.a),
            reach_k_a: reach(&k, |d| d.a),
            reach_k_b: reach(&k, |d| d.b),
        };
        layout.split_columns();
        layout.mode_a = layout.choose_a(spec.a == spec.acc.dtype());
        layout.mode_b = layout.choose_b(spec.b == spec.acc.dtype());
        if matches!(layout.mode_b, ModeB::Direct | ModeB::Runs) {
            layout.list_pieces();
        }
        layout.direct_c =
            !epilogue && spec.c == spec.acc.dtype() && layout.panels.iter().all(|p| p.contiguous_c);
        layout.turned = match epilogue {
            true => exchanged,
            false => !layout.direct_c && layout.n_c.step != 1 && layout.m_c.step == 1,
        };
        layout
    }

    /// Number of indices of batch, m, n, k.
    pub(super) fn sizes(&self) -> [usize; 4] {
        [self.batch_c.len, self.m_c.len, self.n_c.len, self.k_a.len]
    }

    /// Splits n into panels of at most `tile.vectors` vectors whose widths differ by one vector at
    /// most: 64 columns of 16 lanes are two panels of two, not one of three and a narrow one.
    fn split_columns(&mut self) {
        let (n, TileShape { lanes, vectors: most, .. }) = (self.n_c.len, self.tile);
        let total = n.div_ceil(lanes);
        let count = total.div_ceil(most);
        let mut vector0 = 0;
        for i in 0..count {
            let vectors = total / count + usize::from(i < total % count);
            let n0 = vector0 * lanes;
            let width = (vectors * lanes).min(n - n0);
            let adjacent = |o: &Offsets| width == 1 || o.step == 1 && o.left_in_run(n0) >= width;
            let (contiguous_b, contiguous_c) = (adjacent(&self.n_b), adjacent(&self.n_c));
            let panel = PanelShape { n0, width, vectors, vector0, contiguous_b, contiguous_c };
            self.panels.push(panel);
            vector0 += vectors;
        }
    }

    /// Whether all of k, in blocks cut at the ends of its runs, advances by one step in this
    /// operand.
    fn steps_evenly(k: &Offsets) -> bool {
        k.is_uniform() || k.run >= MIN_K_RUN
    }

    fn choose_a(&self, same_type: bool) -> ModeA {
        if self.computed_run > 0 {
            return ModeA::Rows;
        }
        let (k, m) = (&self.k_a, &self.m_a);
        let apart = |o: &Offsets| o.step.unsigned_abs().saturating_mul(self.bytes);
        let panels = self.panels.len();
        if same_type && Layout::steps_evenly(k) {
            let collide = apart(m).is_multiple_of(PAGE) && m.len > COLLISION_ROWS;
            let near = apart(k) < PAGE && !apart(k).is_multiple_of(COLLISION_STEP);
            let direct = match (k.step, m.step) {
                _ if panels <= DIRECT_A_PANELS || k.len == 1 => true,
                (1, _) => !(collide && panels > COLLISION_PANELS),
                (_, 1) => near,
                _ => false,
            };
            if direct {
                return ModeA::Direct;
            }
        } else if same_type && (k.step == 1 || m.step == 1) {
            return ModeA::Table;
        }
        let strips = self.tile.strips || k.step != 1 && m.step == 1 && m.run > 1;
        if strips && !self.tile.along { ModeA::Strips } else { ModeA::Rows }
    }

    fn choose_b(&self, same_type: bool) -> ModeB {
        let (k, n) = (&self.k_b, &self.n_b);
        let n_run = if n.step == 1 || n.len == 1 { n.run } else { 1 };
        let k_run = if k.step == 1 { k.run } else { 1 };
        let half = self.tile.lanes / 2;
        if n_run >= n.len.min(half) || (n_run >= k_run && n_run >= 4) {
            let apart = k.step.unsigned_abs().saturating_mul(self.bytes);
            let near = apart <= DIRECT_B_STEP && apart.saturating_mul(k.len) <= DIRECT_B_BYTES;
            // Blocks end with runs of both.
            let along = self.computed_run == 0 || k.run.is_multiple_of(self.computed_run);
            let direct = same_type
                && along
                && Layout::steps_evenly(k)
                && (near || self.m_c.len <= DIRECT_B_ROWS)
                && self.panels.iter().any(|p| p.contiguous_b);
            return if direct { ModeB::Direct } else { ModeB::Runs };
        }
        let near = n.step.unsigned_abs() <= NEAR_BYTES && n.run >= 4.min(n.len);
        if self.tile.bytes && near && k_run < 4 * self.tile.depth {
            return ModeB::Runs;
        }
        if k_run >= 4 { ModeB::Transposed } else { ModeB::Scattered }
    }

    /// Whether the tile kernel reads this panel of B in place. A kernel with a table for A, or by
    /// lanes, reads all lanes, so it needs a packed panel where some are invalid.
    pub(super) fn reads_in_place(&self, panel: &PanelShape) -> bool {
        let all_lanes = self.mode_a == ModeA::Table || self.tile.by_lane;
        self.mode_b == ModeB::Direct
            && panel.contiguous_b
            && (!all_lanes || panel.width.is_multiple_of(self.tile.lanes))
    }

    /// Has all of B packed.
    pub(super) fn pack_b(&mut self) {
        if self.mode_b == ModeB::Direct {
            self.mode_b = ModeB::Runs;
        }
    }

    /// The length of the runs along k that no block may straddle.
    pub(super) fn k_alignment(&self) -> usize {
        let a = if self.mode_a == ModeA::Direct { self.k_a.run } else { self.k_a.len };
        let b = if self.mode_b == ModeB::Direct { self.k_b.run } else { self.k_b.len };
        a.min(b).max(1)
    }

    /// Lists for every vector its maximal runs in B, of bytes at any step.
    fn list_pieces(&mut self) {
        let lanes = self.tile.lanes;
        self.piece_starts.push(0);
        for n0 in (0..self.n_b.len).step_by(lanes) {
            let width = lanes.min(self.n_b.len - n0);
            let mut lo = 0;
            while lo < width {
                // Of other types, runs are of adjacent elements.
                let step = if self.tile.bytes { self.n_b.step } else { 1 };
                let run = match self.n_b.step == step {
                    true => self.n_b.left_in_run(n0 + lo).min(width - lo),
                    false => 1,
                };
                let offset = self.n_b.at(n0 + lo) - step * lo as isize;
                self.pieces.push(Piece { lo: lo as u32, hi: (lo + run) as u32, offset });
                lo += run;
            }
            self.piece_starts.push(self.pieces.len() as u32);
        }
    }
}

/// The dimensions of k in an order good for memory, and the offsets in A and B of where they start:
/// large strides outermost, and none backwards in A, for the hardware fetches ahead of what it sees
/// advance. A sum has no order.
fn order_k(dims: &[Dim]) -> (Vec<Dim>, isize, isize) {
    let (mut origin_a, mut origin_b) = (0, 0);
    let mut k: Vec<_> = dims.iter().filter(|d| d.len != 1).copied().collect();
    for d in k.iter_mut().filter(|d| d.len > 0 && (d.a < 0 || d.a == 0 && d.b < 0)) {
        let steps = d.len as isize - 1;
        (origin_a, origin_b) = (origin_a + steps * d.a, origin_b + steps * d.b);
        (d.a, d.b) = (-d.a, -d.b);
    }
    k.sort_by_key(|d| std::cmp::Reverse(d.a.unsigned_abs().saturating_add(d.b.unsigned_abs())));
    (k, origin_a, origin_b)
}

/// Batch and m, and the rows per batch entry if the batch was made part of m: where B is the same
/// for all entries, they are so many more rows of one product.
fn fold_batch(spec: &Spec) -> (Vec<Dim>, Vec<Dim>, usize) {
    let n_entries: usize = spec.batch.iter().map(|d| d.len).product();
    if n_entries <= 1 || spec.batch.iter().any(|d| d.len > 1 && d.b != 0) {
        return (spec.batch.clone(), spec.m.clone(), 0);
    }
    let m = spec.batch.iter().chain(&spec.m).map(|d| Dim { b: 0, ..*d }).collect();
    (Vec::new(), m, spec.m.iter().map(|d| d.len).product())
}

/// What a group reaches: the dimension of the largest stride is counted, the others are one run.
fn reach(dims: &[Dim], stride: fn(&Dim) -> isize) -> Reach {
    let outer = (0..dims.len()).max_by_key(|&i| stride(&dims[i]).unsigned_abs());
    let mut reach = Reach { count: 1, stride: 0, low: 0, high: 0 };
    for (i, d) in dims.iter().enumerate() {
        let far = stride(d) * (d.len as isize - 1).max(0);
        if Some(i) == outer {
            (reach.count, reach.stride) = (d.len, stride(d));
        } else {
            reach.low += far.min(0);
            reach.high += far.max(0);
        }
    }
    reach
}

/// The specification with A and B, and m and n, exchanged.
pub(super) fn exchanged(spec: &Spec) -> Spec {
    let exchange = |dims: &[Dim]| -> Vec<Dim> {
        dims.iter().map(|d| Dim { len: d.len, a: d.b, b: d.a, c: d.c }).collect()
    };
    Spec {
        a: spec.b,
        b: spec.a,
        acc: spec.acc,
        c: spec.c,
        batch: exchange(&spec.batch),
        m: exchange(&spec.n),
        n: exchange(&spec.m),
        k: exchange(&spec.k),
    }
}
