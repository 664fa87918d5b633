//! B packed once for all tasks, before them.
//!
//! A task that packs the panels it needs depends on no other, but every part of m packs all of B
//! again, so that few large tasks are left to spread over threads. Where packing means transposing,
//! and the packed copy of all of B is small enough, its panels are packed by all threads first; the tasks then read them in
//! place, and may be as many as balance asks for. The copy lies in front of the partial results in
//! the memory that the tasks of an execution share.

use super::kernels::Real32Or64;
use super::layout::{Layout, ModeB};
use super::pack::Panel;
use super::run::{Run, Step, typed_offset};
use std::ops::Range;

/// The most bytes of such a copy; more would leave the last-level cache between packing and use.
const SHARED_BYTES: usize = 20 << 20;

/// Numbers packed at a time by one thread: some microseconds of work.
const PACKED: usize = 24 << 10;

/// Bytes of the packed copy of all of B, if making it once is worth it and it is small enough.
pub(super) fn packed_bytes(layout: &Layout) -> Option<usize> {
    let [batches, _, _, k] = layout.sizes();
    let bytes = k.checked_mul(columns(layout))?.checked_mul(layout.bytes)?;
    // Entries of a batch have a B each, which few tasks need (where all have the same, the layout
    // has made the batch part of m). Rows copied as they are cost less than fetching the copy that
    // another thread made: square products of 1024 took 13 % longer.
    let packs = matches!(layout.mode_b, ModeB::Transposed | ModeB::Scattered) && batches == 1;
    (packs && bytes > 0 && bytes <= SHARED_BYTES).then_some(bytes)
}

/// Columns of all panels in whole vectors.
fn columns(layout: &Layout) -> usize {
    layout.panels.last().map_or(0, |p| p.vector0 + p.vectors) * layout.tile.lanes
}

impl<T: Real32Or64> Run<'_, T> {
    /// Numbers of the packed copy, in whole cache lines.
    pub(super) fn packed_len(&self) -> usize {
        if !self.plan.blocking.shared {
            return 0;
        }
        let [_, _, _, k] = self.plan.layout.sizes();
        (k * columns(&self.plan.layout)).next_multiple_of(64 / size_of::<T>())
    }

    /// How many parts there are to pack before the tasks, and how many at a time.
    pub(super) fn packs(&self) -> (usize, usize) {
        if !self.plan.blocking.shared {
            return (0, 1);
        }
        let parts = self.plan.layout.panels.len();
        (parts, (PACKED * parts / self.packed_len().max(1)).max(1))
    }

    /// Packs some of the parts.
    ///
    /// # Safety
    /// See [`super::Plan::run`]; there are `shared_bytes` bytes at `memory`, and each part is
    /// packed once.
    pub(super) unsafe fn pack_shared(&self, range: Range<usize>, memory: *mut u8) {
        for panel in range {
            for &block in &self.plan.blocking.k_blocks {
                let dst = self.shared_panel(memory.cast(), block, panel);
                // SAFETY: the caller's contract; the panel has room of its own.
                unsafe { self.pack_panel(0, block, panel, dst) };
            }
        }
    }

    /// Where a panel of a block of k lies in the packed copy.
    pub(super) fn shared_panel(
        &self,
        packed: *mut T,
        (k0, k): (usize, usize),
        panel: usize,
    ) -> *mut T {
        let layout = &self.plan.layout;
        let before = layout.panels[panel].vector0 * layout.tile.lanes;
        // Numbers hold whole pairs of each block, so that blocks begin no earlier than this.
        packed.wrapping_add(k0 * columns(layout) + k.div_ceil(layout.tile.depth) * before)
    }

    /// Where a panel is that is not read in place: in the copy for all, or in this thread's.
    pub(super) fn panel_of(&self, s: &Step<'_, T>, panel: usize, first: usize) -> *mut T {
        if self.plan.blocking.shared {
            return self.shared_panel(s.packed, (s.k0, s.k), panel);
        }
        let tile = &self.plan.layout.tile;
        s.buffers.b.wrapping_add((panel - first) * s.steps() * tile.vectors * tile.lanes)
    }

    /// Packs one panel.
    ///
    /// # Safety
    /// See [`super::Plan::run`]; there is room for the panel at `dst`.
    pub(super) unsafe fn pack_panel(
        &self,
        batch: usize,
        (k0, k): (usize, usize),
        panel: usize,
        dst: *mut T,
    ) {
        let layout = &self.plan.layout;
        let pack = match layout.mode_b {
            ModeB::Direct | ModeB::Runs => self.moves_b.panel_runs,
            ModeB::Transposed => self.moves_b.panel_transposed,
            ModeB::Scattered => self.moves_b.panel_scattered,
        };
        let shape = &layout.panels[panel];
        let starts = layout.piece_starts.get(shape.vector0..=shape.vector0 + shape.vectors);
        let panel = Panel {
            src: typed_offset(self.operands.b, self.plan.dtypes[1], layout.batch_b.at(batch)),
            k_offsets: &layout.k_b,
            n_offsets: &layout.n_b,
            k0,
            k,
            n0: shape.n0,
            width: shape.width,
            contiguous: shape.contiguous_b,
            pieces: &layout.pieces,
            piece_starts: starts.unwrap_or(&[]),
            vectors: shape.vectors,
            dst,
        };
        // SAFETY: the panel is inside B, and the caller has room for it.
        unsafe { pack(&panel) };
    }
}
