//! Copies of blocks of A and B for the instruction that adds two products of `bf16` to each `f32`.
//!
//! A number of a packed operand is then a *pair*: two neighbouring steps of k of one row or column,
//! the first in the lower half, in the place of one `f32`. The tile kernel is the same as ever, over
//! half as many steps; only its multiply-add and the copies of operands, which are here, differ.
//! Where the number of steps is odd, the partner of the last is zero on both sides. The orders are
//! those of `pack`.
//!
//! Products are exact and added in `f32`, but subnormal numbers, among operands as among sums,
//! count as zero: they are below 2^-126.

use super::offsets::Offsets;
use super::pack::{AHEAD, Panel, Rows, prefetch};
use super::simd::{MAX_LANES, Pairs as S, Simd, Zip};
use super::tile::MAX_ROWS;
#[cfg(target_arch = "x86_64")]
use super::tile::{self, TileArgs, Variant};
use half::bf16;

/// Steps of k in one packed number.
pub(super) const DEPTH: usize = 2;

/// Packed numbers are multiplied one by one.
#[cfg(target_arch = "x86_64")]
pub(super) const GROUP: usize = 1;

/// [`tile::tile`] for packed pairs.
///
/// # Safety
/// As there.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) unsafe fn tile<const MR: usize, const NV: usize>(t: &TileArgs<f32>) {
    // SAFETY: the caller's contract.
    unsafe { tile::tile::<S, MR, NV, { Variant::Plain as u8 }>(t) }
}

/// Offsets of step `i` of `k` steps from `k0` on, and of its partner, if there is one.
#[inline(always)]
fn pair(offsets: &Offsets, k0: usize, k: usize, i: usize) -> (isize, Option<isize>) {
    (offsets.at(k0 + i), (i + 1 < k).then(|| offsets.at(k0 + i + 1)))
}

/// Packs a panel from the runs along n listed in its pieces.
///
/// # Safety
/// The elements described must be readable, the destination writable and not aliased, and the
/// machine must have the features of [`S`]. The same holds for every function of this file.
#[inline(always)]
pub(super) unsafe fn panel_runs(p: &Panel<'_, f32>) {
    if p.contiguous {
        // SAFETY: the caller's contract.
        return unsafe { contiguous(p) };
    }
    let src = p.src.cast::<bf16>();
    for (row, i) in (0..p.k).step_by(DEPTH).enumerate() {
        let (first, second) = pair(p.k_offsets, p.k0, p.k, i);
        let dst = p.dst.wrapping_add(row * p.vectors * S::LANES);
        for (v, ends) in p.piece_starts.windows(2).enumerate() {
            let pieces = &p.pieces[ends[0] as usize..ends[1] as usize];
            // SAFETY: the pieces name readable lanes of both steps; the row of the panel is inside
            // the destination.
            unsafe {
                let mut x = S::zero();
                for piece in pieces {
                    let (lo, hi) = (piece.lo as usize, piece.hi as usize);
                    let at = |step: isize| src.wrapping_offset(step + piece.offset);
                    x = S::insert_zipped(x, at(first), second.map(at), lo, hi);
                }
                S::store(dst.wrapping_add(v * S::LANES), x);
            }
        }
    }
}

/// Packs a panel whose columns are all adjacent in B.
#[inline(always)]
unsafe fn contiguous(p: &Panel<'_, f32>) {
    let src = p.src.cast::<bf16>().wrapping_offset(p.n_offsets.at(p.n0));
    let last = p.width - (p.vectors - 1) * S::LANES;
    for (row, i) in (0..p.k).step_by(DEPTH).enumerate() {
        let (first, second) = pair(p.k_offsets, p.k0, p.k, i);
        let ahead = [0, 1].map(|j| p.k_offsets.at(p.k0 + (i + AHEAD + j).min(p.k - 1)));
        let dst = p.dst.wrapping_add(row * p.vectors * S::LANES);
        for v in 0..p.vectors {
            let at = |step: isize| src.wrapping_offset(step).wrapping_add(v * S::LANES);
            for step in ahead {
                prefetch(at(step));
            }
            // SAFETY: the panel has `width` columns; the row of it is inside the destination.
            unsafe {
                let x = match second {
                    Some(second) if v + 1 < p.vectors || last == S::LANES => {
                        S::zip(at(first), at(second))
                    }
                    _ => {
                        let lanes = if v + 1 < p.vectors { S::LANES } else { last };
                        S::insert_zipped(S::zero(), at(first), second.map(at), 0, lanes)
                    }
                };
                S::store(dst.wrapping_add(v * S::LANES), x);
            }
        }
    }
}

/// Packs a panel by transposing blocks of LANES columns by LANES pairs from runs along k.
#[inline(always)]
pub(super) unsafe fn panel_transposed(p: &Panel<'_, f32>) {
    for v in 0..p.vectors {
        let first = p.n0 + v * S::LANES;
        let columns = p.width.saturating_sub(v * S::LANES).min(S::LANES);
        let mut i = 0;
        while i < p.k {
            let dst = p.dst.wrapping_add((i / DEPTH * p.vectors + v) * S::LANES);
            let left = p.k_offsets.left_in_run(p.k0 + i).min(p.k - i);
            let pairs = (left / DEPTH).min(S::LANES);
            // SAFETY: these columns have these steps, and the destination as many rows.
            unsafe {
                if pairs > 0 {
                    transpose(p, i, pairs, first, columns, dst);
                } else {
                    gather(p, i, first, columns, S::LANES, dst);
                }
            }
            i += pairs.max(1) * DEPTH;
        }
    }
}

/// Transposes the pairs from step `i` on, which are in one run, of the columns from `first` on.
#[inline(always)]
unsafe fn transpose(
    p: &Panel<'_, f32>,
    i: usize,
    pairs: usize,
    first: usize,
    columns: usize,
    dst: *mut f32,
) {
    let src = p.src.cast::<bf16>().wrapping_offset(p.k_offsets.at(p.k0 + i));
    // SAFETY: the caller passes columns with so many pairs, and room for as many rows.
    unsafe {
        let mut block = [S::zero(); MAX_LANES];
        for (column, v) in block.iter_mut().enumerate().take(columns) {
            let from = src.wrapping_offset(p.n_offsets.at(first + column)).cast::<f32>();
            *v = if pairs == S::LANES { S::load(from) } else { S::load_first(from, pairs) };
        }
        S::transpose(&mut block);
        for (row, v) in block.iter().enumerate().take(pairs) {
            S::store(dst.wrapping_add(row * p.vectors * S::LANES), *v);
        }
    }
}

/// Packs the pair of step `i` of `columns` columns from `first` on, and zeros up to `lanes`.
#[inline(always)]
unsafe fn gather(
    p: &Panel<'_, f32>,
    i: usize,
    first: usize,
    columns: usize,
    lanes: usize,
    dst: *mut f32,
) {
    let (step, partner) = pair(p.k_offsets, p.k0, p.k, i);
    let (src, dst) = (p.src.cast::<bf16>(), dst.cast::<[bf16; DEPTH]>());
    for lane in 0..lanes {
        let mut numbers = [bf16::ZERO; DEPTH];
        if lane < columns {
            let column = src.wrapping_offset(p.n_offsets.at(first + lane));
            // SAFETY: the column has both steps.
            numbers = unsafe { zip(column, step, partner) };
        }
        // SAFETY: the caller passes room for `lanes` pairs.
        unsafe { *dst.wrapping_add(lane) = numbers };
    }
}

/// The elements at two offsets; zero for one that is missing.
#[inline(always)]
unsafe fn zip(src: *const bf16, first: isize, second: Option<isize>) -> [bf16; DEPTH] {
    // SAFETY: the caller passes offsets of readable elements.
    unsafe {
        let second = second.map_or(bf16::ZERO, |second| *src.wrapping_offset(second));
        [*src.wrapping_offset(first), second]
    }
}

/// Packs a panel element by element.
#[inline(always)]
pub(super) unsafe fn panel_scattered(p: &Panel<'_, f32>) {
    let lanes = p.vectors * S::LANES;
    for (row, i) in (0..p.k).step_by(DEPTH).enumerate() {
        // SAFETY: the panel has `width` columns, and the row of it `lanes` pairs.
        unsafe { gather(p, i, p.n0, p.width, lanes, p.dst.wrapping_add(row * lanes)) };
    }
}

/// Packs a block of A into rows along k: the elements of a row as they are, one after the other.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) unsafe fn rows(p: &Rows<'_, f32>) {
    for m in 0..p.rows {
        let src = p.src.cast::<bf16>().wrapping_offset(p.m_offsets.at(p.m0 + m));
        let dst = p.dst.wrapping_add(m * p.row_stride).cast::<bf16>();
        let mut i = 0;
        while i < p.k {
            let run = p.k_offsets.left_in_run(p.k0 + i).min(p.k - i);
            let from = src.wrapping_offset(p.k_offsets.at(p.k0 + i));
            // SAFETY: the run is inside row m at both ends.
            unsafe {
                if p.k_offsets.step == 1 {
                    std::ptr::copy_nonoverlapping(from, dst.wrapping_add(i), run);
                } else {
                    for j in 0..run {
                        let step = p.k_offsets.step.wrapping_mul(j as isize);
                        *dst.wrapping_add(i + j) = *from.wrapping_offset(step);
                    }
                }
            }
            i += run;
        }
        if !p.k.is_multiple_of(DEPTH) {
            // SAFETY: a row has room for whole pairs.
            unsafe { *dst.wrapping_add(p.k) = bf16::ZERO };
        }
    }
}

/// Packs a block of A into strips: for every tile, and in it for every pair, its rows side by side.
#[inline(always)]
pub(super) unsafe fn strips(p: &Rows<'_, f32>) {
    let src = p.src.cast::<bf16>();
    for (column, i) in (0..p.k).step_by(DEPTH).enumerate() {
        let (first, second) = pair(p.k_offsets, p.k0, p.k, i);
        for tile in 0..p.tiles {
            let (start, end) = (tile * p.rows / p.tiles, (tile + 1) * p.rows / p.tiles);
            let rows = end - start;
            let dst = p.dst.wrapping_add(start * p.row_stride + column * rows);
            let run = match p.m_offsets.step {
                1 => p.m_offsets.left_in_run(p.m0 + start),
                _ => 1,
            };
            // SAFETY: the rows are inside A, and the strip inside the destination.
            unsafe {
                if run >= rows && rows <= S::LANES {
                    let from = src.wrapping_offset(p.m_offsets.at(p.m0 + start));
                    let at = |step: isize| from.wrapping_offset(step);
                    let x = S::insert_zipped(S::zero(), at(first), second.map(at), 0, rows);
                    S::store_first(dst, rows, x);
                    continue;
                }
                if run >= rows && MAX_ROWS > S::LANES {
                    let from = src.wrapping_offset(p.m_offsets.at(p.m0 + start));
                    for m in (0..rows).step_by(S::LANES) {
                        let lanes = (rows - m).min(S::LANES);
                        let at = |step: isize| from.wrapping_offset(step).wrapping_add(m);
                        let x = match second {
                            Some(second) if lanes == S::LANES => S::zip(at(first), at(second)),
                            _ => S::insert_zipped(S::zero(), at(first), second.map(at), 0, lanes),
                        };
                        S::store_first(dst.wrapping_add(m), lanes, x);
                    }
                    continue;
                }
                for m in 0..rows {
                    let from = src.wrapping_offset(p.m_offsets.at(p.m0 + start + m));
                    let numbers = zip(from, first, second);
                    *dst.cast::<[bf16; DEPTH]>().wrapping_add(m) = numbers;
                }
            }
        }
    }
}
