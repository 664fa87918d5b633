//! What happens to finished accumulators: transposed if need be, then to the epilogue or to C.
//!
//! A plan may execute a contraction with A and B exchanged, or with the batch folded into the rows;
//! here blocks return to the orientation and the batch entries of the specification. Partial results
//! of a split along k are added up here too, in the order of their parts, so that the result does not
//! depend on which thread was first.

use super::kernels::Real32Or64;
use super::plan::{Epilogue, Tile};
use super::run::{BUFFERS, Run, Shared, typed_offset, with_buffer};
use super::store::{Store, Turn};
use crate::pool::Pool;
use std::ops::Range;

/// Accumulators added up by one task of the reduction.
const REDUCED: usize = 16 << 10;

impl<T: Real32Or64> Run<'_, T> {
    /// Hands on finished accumulators, transposed if the plan says so.
    ///
    /// # Safety
    /// The block must be complete and this thread's own, and the buffer hold its transpose.
    pub(super) unsafe fn deliver(&self, tile: Tile, buffer: *mut T) {
        if !self.plan.layout.turned {
            // SAFETY: the caller's contract.
            return unsafe { self.hand_on(tile) };
        }
        let row_stride = turned_stride(tile.m_len, self.kernels.lanes);
        let turn = Turn {
            src: tile.ptr.cast_const().cast::<T>(),
            src_stride: tile.row_stride,
            rows: tile.m_len,
            columns: tile.n_len,
            dst: buffer,
            dst_stride: row_stride,
        };
        let turned = Tile {
            batch: tile.batch,
            m0: tile.n0,
            m_len: tile.n_len,
            n0: tile.m0,
            n_len: tile.m_len,
            ptr: buffer.cast(),
            row_stride,
        };
        // SAFETY: the block is complete, and the buffer holds the largest of a plan.
        unsafe {
            (self.kernels.turn)(&turn);
            self.hand_on(turned);
        }
    }

    /// Gives finished accumulators to the epilogue, or writes them to C.
    unsafe fn hand_on(&self, tile: Tile) {
        let layout = &self.plan.layout;
        if let Some(epilogue) = self.fused.epilogue {
            return match (layout.folded, layout.turned) {
                (0, _) => epilogue(tile),
                (per_batch, turned) => unfold(tile, per_batch, turned, size_of::<T>(), epilogue),
            };
        }
        let (m_offsets, n_offsets) = match layout.turned {
            false => (&layout.m_c, &layout.n_c),
            true => (&layout.n_c, &layout.m_c),
        };
        let offset = layout.batch_c.at(tile.batch);
        let store = Store {
            src: tile.ptr.cast_const().cast::<T>(),
            row_stride: tile.row_stride,
            dst: typed_offset(self.operands.c.cast_const(), self.plan.dtypes[2], offset).cast_mut(),
            m_offsets,
            n_offsets,
            m0: tile.m0,
            rows: tile.m_len,
            n0: tile.n0,
            columns: tile.n_len,
            accumulate: self.accumulate,
        };
        // SAFETY: the accumulators are complete; the block of C is written by this task only.
        unsafe { (self.store)(&store) };
    }

    /// Adds up the partial results of a split along k, in a fixed order, and hands them on.
    ///
    /// # Safety
    /// See [`super::Plan::run`]; `partials` are the complete results of all parts.
    pub(super) unsafe fn reduce(&self, pool: &Pool, partials: *mut T) {
        let layout = &self.plan.layout;
        let [batches, m, n, _] = layout.sizes();
        let (row_stride, size, _) = self.partial_shape();
        let rows_per_task = (REDUCED / row_stride.max(1)).clamp(1, m);
        let parts = m.div_ceil(rows_per_task);
        let partials = Shared(partials);
        let turned = turned_size(layout.turned, rows_per_task, row_stride, self.kernels.lanes);
        let task = |range: Range<usize>, buffer: *mut u8| {
            for i in range {
                let (batch, m0) = (i / parts, i % parts * rows_per_task);
                let m_len = rows_per_task.min(m - m0);
                let start = (batch * m + m0) * row_stride;
                let sum = partials.get().wrapping_add(start);
                for k_part in 1..self.plan.blocking.k_parts {
                    let other = sum.wrapping_add(k_part * size);
                    // SAFETY: both are inside the partial results, in rows of this task only.
                    unsafe { (self.kernels.add)(sum, other, m_len * row_stride) };
                }
                let ptr = sum.cast();
                let tile = Tile { batch, m0, m_len, n0: 0, n_len: n, ptr, row_stride };
                // SAFETY: the rows are complete and of this task only.
                unsafe { self.deliver(tile, buffer.cast()) };
            }
        };
        pool.run(batches * parts, 1, &|range| {
            let done = with_buffer(&BUFFERS, turned * size_of::<T>(), |b| task(range, b));
            if let Err(error) = done {
                let _ = self.failed.set(error);
            }
        });
    }
}

/// Gives a block whose rows (or columns, if turned) run over several batch entries to the epilogue,
/// entry by entry.
fn unfold(tile: Tile, per_batch: usize, turned: bool, bytes: usize, epilogue: &Epilogue<'_>) {
    let (start, len) = if turned { (tile.n0, tile.n_len) } else { (tile.m0, tile.m_len) };
    let mut at = start;
    while at < start + len {
        let (batch, first) = (at / per_batch, at % per_batch);
        let n = (per_batch - first).min(start + len - at);
        let step = if turned { 1 } else { tile.row_stride };
        let ptr = tile.ptr.wrapping_add((at - start) * step * bytes);
        epilogue(match turned {
            true => Tile { batch, n0: first, n_len: n, ptr, ..tile },
            false => Tile { batch, m0: first, m_len: n, ptr, ..tile },
        });
        at += n;
    }
}

/// Accumulators between the rows of a transposed block of so many rows: whole vectors, and an odd
/// number of them, so that rows do not share a cache set.
fn turned_stride(rows: usize, lanes: usize) -> usize {
    (rows.div_ceil(lanes) | 1) * lanes
}

/// Accumulators of the buffer for transposed blocks.
pub(super) fn turned_size(turned: bool, rows: usize, columns: usize, lanes: usize) -> usize {
    if turned { columns * turned_stride(rows, lanes) } else { 0 }
}
