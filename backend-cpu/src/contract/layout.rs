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
    /// In place.
    Direct,
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
}

/// Offsets, panels and modes of a contraction.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) tile: TileShape,
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
}

/// With at most this many rows, packing a panel of B costs more than reading it in place.
const DIRECT_B_ROWS: usize = 48;

/// With at most this many panels, packing A costs more than reading it in place.
const DIRECT_A_PANELS: usize = 2;

/// Rows of A this many elements apart, more than so many of them, used by more than so many panels,
/// are packed although they are contiguous.
const COLLISION_STRIDE: usize = 1024;
const COLLISION_ROWS: usize = 128;
const COLLISION_PANELS: usize = 8;

/// A run along k shorter than this is not worth a block of its own.
const MIN_K_RUN: usize = 96;

impl Layout {
    /// The layout of `spec`, whose dimensions of k may be reordered: a sum has no order.
    pub(super) fn new(spec: &Spec, tile: TileShape, epilogue: bool) -> Layout {
        let mut k = spec.k.clone();
        k.retain(|d| d.len != 1);
        k.sort_by_key(|d| std::cmp::Reverse(d.a.unsigned_abs().saturating_add(d.b.unsigned_abs())));
        let offsets = |dims: &[Dim], stride: fn(&Dim) -> isize| {
            Offsets::new(&dims.iter().map(|d| (d.len, stride(d))).collect::<Vec<_>>())
        };
        let mut layout = Layout {
            tile,
            batch_a: offsets(&spec.batch, |d| d.a),
            batch_b: offsets(&spec.batch, |d| d.b),
            batch_c: offsets(&spec.batch, |d| d.c),
            m_a: offsets(&spec.m, |d| d.a),
            m_c: offsets(&spec.m, |d| d.c),
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
        };
        layout.split_columns();
        layout.mode_a = layout.choose_a(spec.a == spec.acc.dtype());
        layout.mode_b = layout.choose_b(spec.b == spec.acc.dtype());
        if matches!(layout.mode_b, ModeB::Direct | ModeB::Runs) {
            layout.list_pieces();
        }
        layout.direct_c =
            !epilogue && spec.c == spec.acc.dtype() && layout.panels.iter().all(|p| p.contiguous_c);
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
        let (k, m) = (&self.k_a, &self.m_a);
        let reused = self.panels.len() > DIRECT_A_PANELS;
        // Rows a multiple of a small page apart share a few sets of the caches and evict each other.
        let collide = m.step.unsigned_abs() % COLLISION_STRIDE == 0 && m.len > COLLISION_ROWS;
        let near = k.step == 1 && !(collide && self.panels.len() > COLLISION_PANELS);
        if same_type && Layout::steps_evenly(k) && (near || k.len == 1 || !reused) {
            return ModeA::Direct;
        }
        if k.step != 1 && m.step == 1 && m.run > 1 { ModeA::Strips } else { ModeA::Rows }
    }

    fn choose_b(&self, same_type: bool) -> ModeB {
        let (k, n) = (&self.k_b, &self.n_b);
        let n_run = if n.step == 1 || n.len == 1 { n.run } else { 1 };
        let k_run = if k.step == 1 { k.run } else { 1 };
        let half = self.tile.lanes / 2;
        if n_run >= n.len.min(half) || (n_run >= k_run && n_run >= 4) {
            let direct = same_type
                && Layout::steps_evenly(k)
                && self.m_c.len <= DIRECT_B_ROWS
                && self.panels.iter().any(|p| p.contiguous_b);
            return if direct { ModeB::Direct } else { ModeB::Runs };
        }
        if k_run >= 4 { ModeB::Transposed } else { ModeB::Scattered }
    }

    /// The length of the runs along k that no block may straddle.
    pub(super) fn k_alignment(&self) -> usize {
        let a = if self.mode_a == ModeA::Direct { self.k_a.run } else { self.k_a.len };
        let b = if self.mode_b == ModeB::Direct { self.k_b.run } else { self.k_b.len };
        a.min(b).max(1)
    }

    /// Lists for every vector its maximal runs in B.
    fn list_pieces(&mut self) {
        let lanes = self.tile.lanes;
        self.piece_starts.push(0);
        for n0 in (0..self.n_b.len).step_by(lanes) {
            let width = lanes.min(self.n_b.len - n0);
            let mut lo = 0;
            while lo < width {
                let run = match self.n_b.step {
                    1 => self.n_b.left_in_run(n0 + lo).min(width - lo),
                    _ => 1,
                };
                let offset = self.n_b.at(n0 + lo) - lo as isize;
                self.pieces.push(Piece { lo: lo as u32, hi: (lo + run) as u32, offset });
                lo += run;
            }
            self.piece_starts.push(self.pieces.len() as u32);
        }
    }
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
