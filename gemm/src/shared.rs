//! B packed once for all tasks, before them.
//!
//! A task that packs the panels it needs depends on no other, but every part of m packs all of B
//! again, so that few large tasks are left to spread over threads. Where packing means transposing,
//! and the packed copy of all of B is small enough, its panels are packed by all threads first; the tasks then read them in
//! place, and may be as many as balance asks for. The copy lies in front of the partial results in
//! the memory that the tasks of an execution share, or, of an operand that many executions have in
//! common, in memory of the caller, who has it packed once ([`super::Plan::prepacked`]).

use super::blocking::Blocking;
use super::bytes::BEHIND;
use super::kernels::Real32Or64;
use super::layout::{Layout, ModeB};
use super::pack::Panel;
use super::run::{Run, Shared, Step, typed_offset};
use crate::pool::Pool;
use std::ops::Range;

/// The most bytes of such a copy; more would leave the last-level cache between packing and use.
const SHARED_BYTES: usize = 20 << 20;

/// Numbers packed at a time by one thread: some microseconds of work.
const PACKED: usize = 24 << 10;

/// Bytes of the packed copy of all of B, if making it once is worth it and it is small enough.
pub(super) fn packed_bytes(layout: &Layout) -> Option<usize> {
    let [batches, _, _, k] = layout.sizes();
    let bytes = layout.tile.packed(k).checked_mul(columns(layout))?.checked_mul(layout.bytes)?;
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

/// Packed numbers along k of the blocks that begin before a step.
fn packed_rows(layout: &Layout, blocking: &Blocking, k0: usize) -> usize {
    let before = blocking.k_blocks.iter().take_while(|block| block.0 < k0);
    before.map(|block| layout.tile.packed(block.1)).sum()
}

/// Numbers of the packed copy, in whole cache lines.
pub(super) fn packed_numbers(layout: &Layout, blocking: &Blocking) -> usize {
    let rows = packed_rows(layout, blocking, usize::MAX);
    (rows * columns(layout)).next_multiple_of(64 / layout.bytes)
}

impl<T: Real32Or64> Run<'_, T> {
    /// Numbers of the packed copy in the memory of the tasks.
    pub(super) fn packed_len(&self) -> usize {
        let blocking = &self.plan.blocking;
        match blocking.shared && !blocking.prepacked {
            true => packed_numbers(&self.plan.layout, blocking),
            false => 0,
        }
    }

    /// The copy packed for all tasks, if there is one, where theirs is in `memory`.
    pub(super) fn packed(&self, memory: *mut T) -> *mut T {
        if self.plan.blocking.prepacked { self.operands.b.cast_mut().cast() } else { memory }
    }

    /// How many parts there are to pack before the tasks, and how many at a time.
    pub(super) fn packs(&self) -> (usize, usize) {
        if self.packed_len() == 0 { (0, 1) } else { self.panels() }
    }

    /// The parts of a copy, and how many at a time.
    fn panels(&self) -> (usize, usize) {
        let parts = self.plan.layout.panels.len();
        let numbers = packed_numbers(&self.plan.layout, &self.plan.blocking);
        (parts, (PACKED * parts / numbers.max(1)).max(1))
    }

    /// Packs all of B at `dst`.
    ///
    /// # Safety
    /// Every element of B is readable, and there is room for the copy.
    pub(super) unsafe fn pack_all(&self, pool: &Pool, dst: *mut u8) {
        let (parts, grain) = self.panels();
        let dst = Shared(dst);
        // SAFETY: the caller's contract; panels have places of their own.
        pool.run(parts, grain, &|range| unsafe { self.pack_shared(range, dst.get()) });
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
        let rows = packed_rows(layout, &self.plan.blocking, k0);
        packed.wrapping_add(rows * columns(layout) + layout.tile.packed(k) * before)
    }

    /// Where a panel is that is not read in place: in the copy for all, or in this thread's.
    pub(super) fn panel_of(&self, s: &Step<'_, T>, panel: usize, first: usize) -> *mut T {
        if self.plan.blocking.shared {
            return self.shared_panel(s.packed, (s.k0, s.k), panel);
        }
        let tile = &self.plan.layout.tile;
        s.buffers.b.wrapping_add((panel - first) * s.steps * tile.vectors * tile.lanes)
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
            form: self.forms[1],
            dst,
        };
        // SAFETY: the panel is inside B, and the caller has room for it.
        unsafe { pack(&panel) };
        if let Some(add_up) = self.kernels.add_up {
            let (rows, columns) =
                (layout.tile.packed(k) - BEHIND, shape.vectors * layout.tile.lanes);
            // SAFETY: the panel is packed.
            unsafe { add_up(dst, rows, columns, 1, self.forms[1]) };
        }
    }
}
