//! Copies of blocks of A and B in the order the tile kernel reads them, converted on the way.
//!
//! B becomes a *panel*: for every k, the columns of up to NV vectors side by side, zeros behind the
//! last. A becomes *rows* (k contiguous, one padded row per m) where A is contiguous along k, or
//! *strips* (for every k, the rows of one tile side by side) where it is contiguous along m; the
//! kernel reads either by pointers and a step, so there is no transposition on that side.
//!
//! There are three ways to fill a panel, chosen by the plan: from runs along n (a window of a
//! convolution has one or two per vector), by transposing square blocks from runs along k, and
//! element by element when neither is contiguous.

use super::bytes::Form;
use super::offsets::Offsets;
use super::simd::{Element, Load, MAX_LANES, Simd, convert};
use num_traits::ConstZero;
use std::ops::Range;

/// Adjacent columns of one vector of a panel that are adjacent in B.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// The lanes are `lo..hi`.
    pub(super) lo: u32,
    /// End of the lanes.
    pub(super) hi: u32,
    /// Offset in B of what would be lane 0.
    pub(super) offset: isize,
}

/// One panel of B to pack: `k` steps from `k0`, `width` columns from `n0`.
pub(super) struct Panel<'a, T> {
    /// First element of the batch entry of B.
    pub(super) src: *const u8,
    /// Offsets along k in B.
    pub(super) k_offsets: &'a Offsets,
    /// Offsets along n in B.
    pub(super) n_offsets: &'a Offsets,
    /// First step.
    pub(super) k0: usize,
    /// Number of steps.
    pub(super) k: usize,
    /// First column.
    pub(super) n0: usize,
    /// Number of columns.
    pub(super) width: usize,
    /// Whether the columns are adjacent in B.
    pub(super) contiguous: bool,
    /// The pieces of all vectors there are; used by [`panel_runs`] only.
    pub(super) pieces: &'a [Piece],
    /// For each vector of the panel where its pieces begin, and where those of the last end.
    pub(super) piece_starts: &'a [u32],
    /// Number of vectors.
    pub(super) vectors: usize,
    /// What bytes become.
    pub(super) form: Form,
    /// Where the panel goes: `k * vectors * LANES` numbers.
    pub(super) dst: *mut T,
}

/// A block of A to pack: `k` steps from `k0` of `rows` rows from `m0`.
pub(super) struct Rows<'a, T> {
    /// First element of the batch entry of A.
    pub(super) src: *const u8,
    /// Offsets along k in A.
    pub(super) k_offsets: &'a Offsets,
    /// Offsets along m in A.
    pub(super) m_offsets: &'a Offsets,
    /// First step.
    pub(super) k0: usize,
    /// Number of steps.
    pub(super) k: usize,
    /// First row.
    pub(super) m0: usize,
    /// Number of rows.
    pub(super) rows: usize,
    /// What bytes become.
    pub(super) form: Form,
    /// Where the block goes.
    pub(super) dst: *mut T,
    /// Elements between rows at the destination; in strips, room per row.
    pub(super) row_stride: usize,
    /// Number of tiles the rows are divided among; used by [`strips`] only.
    pub(super) tiles: usize,
}

/// How many rows ahead of the copy the next are fetched.
pub(super) const AHEAD: usize = 12;

/// Asks for the cache line at `p`, which need not be a valid address.
#[inline(always)]
pub(super) fn prefetch<E>(p: *const E) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults; SSE is part of x86-64.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(p.cast());
    }
    #[cfg(target_arch = "aarch64")]
    super::simd::neon::prefetch(p);
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = p;
}

/// Packs a panel from the runs along n listed in its pieces.
///
/// # Safety
/// The elements described must be readable, the destination writable and not aliased, and the
/// machine must have the features of `S`. The same holds for every function of this file.
#[inline(always)]
pub(super) unsafe fn panel_runs<S: Load<E>, E: Element>(p: &Panel<'_, S::Elem>) {
    if converts_small::<S, E>() {
        // SAFETY: the caller's contract.
        return unsafe { panel_scattered::<S, E>(p) };
    }
    if p.contiguous {
        // SAFETY: the caller's contract.
        return unsafe {
            match p.vectors {
                1 => contiguous::<S, E, 1>(p),
                _ if S::SMALL => panel_scattered::<S, E>(p),
                2 => contiguous::<S, E, 2>(p),
                _ => contiguous::<S, E, 3>(p),
            }
        };
    }
    for (v, ends) in p.piece_starts.windows(2).enumerate() {
        let pieces = &p.pieces[ends[0] as usize..ends[1] as usize];
        // SAFETY: the pieces list columns of the panel.
        unsafe {
            match *pieces {
                [piece] if piece.lo == 0 && piece.hi as usize == S::LANES => {
                    whole::<S, E>(p, v, piece);
                }
                _ if S::SMALL => many::<S, E>(p, v, pieces),
                [a] => some::<S, E, 1>(p, v, [a]),
                [a, b] => some::<S, E, 2>(p, v, [a, b]),
                [a, b, c] => some::<S, E, 3>(p, v, [a, b, c]),
                _ => many::<S, E>(p, v, pieces),
            }
        }
    }
}

/// Whether elements are converted, by code that is to be small.
fn converts_small<S: Simd, E>() -> bool {
    S::SMALL && size_of::<E>() != size_of::<S::Elem>()
}

/// A panel of NV vectors whose columns are all adjacent in B.
#[inline(always)]
unsafe fn contiguous<S: Load<E>, E: Element, const NV: usize>(p: &Panel<'_, S::Elem>) {
    let src = p.src.cast::<E>().wrapping_offset(p.n_offsets.at(p.n0));
    let last = p.width - (NV - 1) * S::LANES;
    for k in 0..p.k {
        let row = src.wrapping_offset(p.k_offsets.at(p.k0 + k));
        let ahead = src.wrapping_offset(p.k_offsets.at(p.k0 + (k + AHEAD).min(p.k - 1)));
        let dst = p.dst.wrapping_add(k * NV * S::LANES);
        for v in 0..NV {
            let from = row.wrapping_add(v * S::LANES);
            prefetch(ahead.wrapping_add(v * S::LANES));
            // SAFETY: the panel has `width` columns; row k of it is inside the destination.
            unsafe {
                let full = v < NV - 1 || last == S::LANES;
                let x = if full { S::load_from(from) } else { S::load_first_from(from, last) };
                S::store(dst.wrapping_add(v * S::LANES), x);
            }
        }
    }
}

/// One vector of a panel whose lanes are adjacent in B.
#[inline(always)]
unsafe fn whole<S: Load<E>, E: Element>(p: &Panel<'_, S::Elem>, v: usize, piece: Piece) {
    let src = p.src.cast::<E>().wrapping_offset(piece.offset);
    let dst = p.dst.wrapping_add(v * S::LANES);
    for k in 0..p.k {
        let offset = p.k_offsets.at(p.k0 + k);
        // SAFETY: the piece covers all lanes; row k of the panel is inside the destination.
        unsafe {
            let x = S::load_from(src.wrapping_offset(offset));
            S::store(dst.wrapping_add(k * p.vectors * S::LANES), x);
        }
    }
}

/// One vector of a panel made of `N` pieces, whose masks stay in registers.
#[inline(always)]
unsafe fn some<S: Load<E>, E: Element, const N: usize>(
    p: &Panel<'_, S::Elem>,
    v: usize,
    pieces: [Piece; N],
) {
    let src = p.src.cast::<E>();
    let dst = p.dst.wrapping_add(v * S::LANES);
    for k in 0..p.k {
        let src = src.wrapping_offset(p.k_offsets.at(p.k0 + k));
        // SAFETY: the pieces name readable lanes; row k of the panel is inside the destination.
        unsafe {
            let mut x = S::zero();
            for piece in pieces {
                let (lo, hi) = (piece.lo as usize, piece.hi as usize);
                x = S::insert_from(x, src.wrapping_offset(piece.offset), lo, hi);
            }
            S::store(dst.wrapping_add(k * p.vectors * S::LANES), x);
        }
    }
}

/// One vector of a panel made of any number of pieces.
#[inline(always)]
unsafe fn many<S: Load<E>, E: Element>(p: &Panel<'_, S::Elem>, v: usize, pieces: &[Piece]) {
    let src = p.src.cast::<E>();
    let dst = p.dst.wrapping_add(v * S::LANES);
    for k in 0..p.k {
        let src = src.wrapping_offset(p.k_offsets.at(p.k0 + k));
        let row = dst.wrapping_add(k * p.vectors * S::LANES);
        // SAFETY: the pieces name readable lanes; row k of the panel is inside the destination.
        unsafe {
            S::store(row, S::zero());
            for piece in pieces {
                for lane in piece.lo as usize..piece.hi as usize {
                    let x = *src.wrapping_offset(piece.offset + lane as isize);
                    *row.wrapping_add(lane) = convert(x);
                }
            }
        }
    }
}

/// Packs a panel by transposing blocks of LANES columns by LANES steps from runs along k.
#[inline(always)]
pub(super) unsafe fn panel_transposed<S: Load<E>, E: Element>(p: &Panel<'_, S::Elem>) {
    if converts_small::<S, E>() {
        // SAFETY: the caller's contract.
        return unsafe { panel_scattered::<S, E>(p) };
    }
    for v in 0..p.vectors {
        let cols = p.width.saturating_sub(v * S::LANES).min(S::LANES);
        let mut columns = [p.src.cast::<E>(); MAX_LANES];
        for (i, column) in columns.iter_mut().enumerate().take(cols) {
            *column = column.wrapping_offset(p.n_offsets.at(p.n0 + v * S::LANES + i));
        }
        let mut k = 0;
        while k < p.k {
            let left = p.k_offsets.left_in_run(p.k0 + k).min(p.k - k);
            let steps = left.min(S::LANES);
            let offset = p.k_offsets.at(p.k0 + k);
            let dst = p.dst.wrapping_add((k * p.vectors + v) * S::LANES);
            // SAFETY: `cols` columns have `steps` readable elements here, and the destination has
            // room for as many rows.
            unsafe {
                if cols == S::LANES && steps == S::LANES {
                    block_full::<S, E>(&columns, offset, dst, p.vectors);
                } else {
                    block_part::<S, E>(&columns[..cols], offset, steps, dst, p.vectors);
                }
            }
            k += steps;
        }
    }
}

#[inline(always)]
unsafe fn block_full<S: Load<E>, E: Element>(
    columns: &[*const E; MAX_LANES],
    offset: isize,
    dst: *mut S::Elem,
    vectors: usize,
) {
    // SAFETY: the caller passes LANES columns of LANES elements and room for LANES rows.
    unsafe {
        let mut block = [S::zero(); MAX_LANES];
        for (v, column) in block.iter_mut().zip(columns).take(S::LANES) {
            *v = S::load_from(column.wrapping_offset(offset));
        }
        S::transpose(&mut block);
        for (i, v) in block.iter().enumerate().take(S::LANES) {
            S::store(dst.wrapping_add(i * vectors * S::LANES), *v);
        }
    }
}

#[inline(always)]
unsafe fn block_part<S: Load<E>, E: Element>(
    columns: &[*const E],
    offset: isize,
    steps: usize,
    dst: *mut S::Elem,
    vectors: usize,
) {
    // SAFETY: the caller passes columns of `steps` elements and room for `steps` rows.
    unsafe {
        let mut block = [S::zero(); MAX_LANES];
        for (column, v) in columns.iter().zip(&mut block) {
            *v = S::load_first_from(column.wrapping_offset(offset), steps);
        }
        S::transpose(&mut block);
        for (i, v) in block.iter().enumerate().take(steps) {
            S::store(dst.wrapping_add(i * vectors * S::LANES), *v);
        }
    }
}

/// Packs a panel element by element.
#[inline(always)]
pub(super) unsafe fn panel_scattered<S: Load<E>, E: Element>(p: &Panel<'_, S::Elem>) {
    let columns = p.vectors * S::LANES;
    for k in 0..p.k {
        let src = p.src.cast::<E>().wrapping_offset(p.k_offsets.at(p.k0 + k));
        let dst = p.dst.wrapping_add(k * columns);
        for i in 0..columns {
            // SAFETY: column i is read only if it exists; row k of the panel has `columns` numbers.
            unsafe {
                *dst.wrapping_add(i) = if i < p.width {
                    convert(*src.wrapping_offset(p.n_offsets.at(p.n0 + i)))
                } else {
                    S::Elem::ZERO
                };
            }
        }
    }
}

/// Packs a block of A into rows along k.
#[inline(always)]
pub(super) unsafe fn rows<S: Load<E>, E: Element>(p: &Rows<'_, S::Elem>) {
    for m in 0..p.rows {
        let src = p.src.cast::<E>().wrapping_offset(p.m_offsets.at(p.m0 + m));
        let dst = p.dst.wrapping_add(m * p.row_stride);
        let next = p.m_offsets.at(p.m0 + (m + 2).min(p.rows - 1));
        let ahead = p.src.cast::<E>().wrapping_offset(next);
        let mut k = 0;
        while k < p.k {
            let run = p.k_offsets.left_in_run(p.k0 + k).min(p.k - k);
            let offset = p.k_offsets.at(p.k0 + k);
            let (from, ahead) = (src.wrapping_offset(offset), ahead.wrapping_offset(offset));
            // SAFETY: the run is inside row m at both ends.
            unsafe { row_run::<S, E>(from, p.k_offsets.step, dst.wrapping_add(k), run, ahead) };
            k += run;
        }
    }
}

/// Copies `n` elements `step` apart to adjacent numbers, and fetches as many adjacent ones `ahead`.
#[inline(always)]
unsafe fn row_run<S: Load<E>, E: Element>(
    src: *const E,
    step: isize,
    dst: *mut S::Elem,
    n: usize,
    ahead: *const E,
) {
    let mut i = 0;
    // SAFETY: the caller passes n readable elements and room for n numbers.
    unsafe {
        if step == 1 {
            while i + S::LANES <= n {
                prefetch(ahead.wrapping_add(i));
                S::store(dst.wrapping_add(i), S::load_from(src.wrapping_add(i)));
                i += S::LANES;
            }
            if i < n {
                let tail = S::load_first_from(src.wrapping_add(i), n - i);
                S::store_first(dst.wrapping_add(i), n - i, tail);
            }
            return;
        }
        while i < n {
            let x = *src.wrapping_offset(step.wrapping_mul(i as isize));
            *dst.wrapping_add(i) = convert(x);
            i += 1;
        }
    }
}

/// Steps of k packed at a time in strips: so many lines of A that collide in L1 still fit there
/// until the next tile needs their other half, and a strip's page is written that often in a row.
const STRIP_STEPS: usize = 8;

/// Packs a block of A into strips: for every tile, and in it for every k, its rows side by side.
///
/// Lanes beyond the rows of a tile are overwritten by the next step; those of the last step may lie in the padding.
#[inline(always)]
pub(super) unsafe fn strips<S: Load<E>, E: Element>(p: &Rows<'_, S::Elem>) {
    for k0 in (0..p.k).step_by(STRIP_STEPS) {
        let steps = k0..p.k.min(k0 + STRIP_STEPS);
        for tile in 0..p.tiles {
            let (start, end) = (tile * p.rows / p.tiles, (tile + 1) * p.rows / p.tiles);
            let run = match p.m_offsets.step {
                1 => p.m_offsets.left_in_run(p.m0 + start),
                _ => 1,
            };
            if run >= end - start && end - start <= S::LANES {
                let whole = run >= S::LANES;
                // SAFETY: the rows are adjacent, so many as a vector has if `whole`, and the strip is inside the destination.
                unsafe { strip_steps::<S, E>(p, steps.clone(), start, end - start, whole) };
                continue;
            }
            for k in steps.clone() {
                let dst = p.dst.wrapping_add(start * p.row_stride + k * (end - start));
                for m in (start..end).step_by(S::LANES) {
                    let rows = (end - m).min(S::LANES);
                    // SAFETY: the rows are inside A, and strip and padding inside the destination.
                    unsafe { strip_row::<S, E>(p, k, m, rows, dst.wrapping_add(m - start)) };
                }
            }
        }
    }
}

/// Packs some steps of the strip of `rows` adjacent rows from `m` on, no more than a vector, and
/// fetches as many steps behind them, which lie in other pages. AVX2 and NEON copy parts of vectors through memory, so
/// vectors are loaded whole where A has so many adjacent rows (`whole`), and stored whole up to the end of the strip.
#[inline(always)]
unsafe fn strip_steps<S: Load<E>, E: Element>(
    p: &Rows<'_, S::Elem>,
    steps: Range<usize>,
    m: usize,
    rows: usize,
    whole: bool,
) {
    let src = p.src.cast::<E>().wrapping_offset(p.m_offsets.at(p.m0 + m));
    let dst = p.dst.wrapping_add(m * p.row_stride);
    for k in steps {
        let next = p.k0 + (k + STRIP_STEPS).min(p.k - 1);
        prefetch(src.wrapping_offset(p.k_offsets.at(next)));
        let from = src.wrapping_offset(p.k_offsets.at(p.k0 + k));
        let to = dst.wrapping_add(k * rows);
        // SAFETY: the caller passes rows of A, as many as a vector has if `whole`, and room for them; what is stored whole ends
        // inside the strip, where later steps are packed later.
        unsafe {
            let x = if whole { S::load_from(from) } else { S::load_first_from(from, rows) };
            if k * rows + S::LANES <= p.k * rows {
                S::store(to, x);
            } else {
                S::store_first(to, rows, x);
            }
        }
    }
}

/// Packs the `rows` rows from `m` on at step `k`.
#[inline(always)]
unsafe fn strip_row<S: Load<E>, E: Element>(
    p: &Rows<'_, S::Elem>,
    k: usize,
    m: usize,
    rows: usize,
    to: *mut S::Elem,
) {
    let run = match p.m_offsets.step {
        1 => p.m_offsets.left_in_run(p.m0 + m),
        _ => 1,
    };
    let src = p.src.cast::<E>().wrapping_offset(p.k_offsets.at(p.k0 + k));
    let from = src.wrapping_offset(p.m_offsets.at(p.m0 + m));
    // SAFETY: the caller passes rows of A and room for a vector.
    unsafe {
        if run >= S::LANES {
            S::store(to, S::load_from(from));
        } else if run >= rows {
            S::store(to, S::load_first_from(from, rows));
        } else {
            for i in 0..rows {
                let x = *src.wrapping_offset(p.m_offsets.at(p.m0 + m + i));
                *to.wrapping_add(i) = convert(x);
            }
        }
    }
}
