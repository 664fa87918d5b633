//! Products of four steps of k at once, of two rows by two columns: what `bfmmla` multiplies.
//!
//! Operands are packed as in `pairs`, but for the order of two neighbouring steps of that: their
//! numbers alternate. A vector thus holds four steps of two columns of B, or of two rows of A, and an
//! instruction adds the products of all of these to a vector of two by two sums: twice as many as
//! `bfdot` multiplies. A is always in strips. The last row of an odd number of rows is half a vector,
//! and steps are padded with zeros to whole quads.
//!
//! Products are exact; sums are rounded to odd, which errs by less than a unit in the last place, and
//! subnormal numbers count as zero, as in `pairs`.

use super::pack::{Panel, Rows};
use super::pairs;
pub(super) use super::pairs::DEPTH;
use super::simd::Simd;
use super::simd::neon::F32;
use super::tile::{TileArgs, prefetch_row, store_row, unrolled};
use half::bf16;
use std::arch::aarch64::*;
use std::arch::asm;

/// Packed numbers along k come in groups of so many.
pub(super) const GROUP: usize = 2;

/// Steps of k in one group.
const QUAD: usize = DEPTH * GROUP;

/// Vectors of rows and of columns of the largest tile, two of them each.
const MOST: [usize; 2] = [4, 6];

/// [`pairs::panel_runs`], alternating.
///
/// # Safety
/// The contract of that function. The same holds for every function of this file that packs.
#[inline(always)]
pub(super) unsafe fn panel_runs(p: &Panel<'_, f32>) {
    // SAFETY: the caller's contract.
    unsafe {
        pairs::panel_runs(p);
        alternate(p.dst, p.k, p.vectors * F32::LANES);
    }
}

/// [`pairs::panel_transposed`], alternating.
#[inline(always)]
pub(super) unsafe fn panel_transposed(p: &Panel<'_, f32>) {
    // SAFETY: the caller's contract.
    unsafe {
        pairs::panel_transposed(p);
        alternate(p.dst, p.k, p.vectors * F32::LANES);
    }
}

/// [`pairs::panel_scattered`], alternating.
#[inline(always)]
pub(super) unsafe fn panel_scattered(p: &Panel<'_, f32>) {
    // SAFETY: the caller's contract.
    unsafe {
        pairs::panel_scattered(p);
        alternate(p.dst, p.k, p.vectors * F32::LANES);
    }
}

/// A has but one form.
pub(super) use strips as rows;

/// Packs a block of A into strips.
#[inline(always)]
pub(super) unsafe fn strips(p: &Rows<'_, f32>) {
    // SAFETY: the caller's contract; a strip has room for whole groups.
    unsafe {
        if p.k_offsets.step != 1 {
            pairs::strips(p);
        }
        for tile in 0..p.tiles {
            let (start, end) = (tile * p.rows / p.tiles, (tile + 1) * p.rows / p.tiles);
            let strip = p.dst.wrapping_add(start * p.row_stride);
            if p.k_offsets.step != 1 {
                alternate(strip, p.k, end - start);
                continue;
            }
            for row in start..end {
                let first = strip.cast::<bf16>().wrapping_add(QUAD * (row - start));
                along(p, row, first, QUAD * (end - start));
            }
        }
    }
}

/// Packs a row whose steps are adjacent: its first quad to `dst`, each other one `stride` elements on.
#[inline(always)]
unsafe fn along(p: &Rows<'_, f32>, row: usize, dst: *mut bf16, stride: usize) {
    let src = p.src.cast::<bf16>().wrapping_offset(p.m_offsets.at(p.m0 + row));
    let to = |i: usize| dst.wrapping_add(i / QUAD * stride + i % QUAD);
    let mut i = 0;
    while i < p.k {
        let end = i + p.k_offsets.left_in_run(p.k0 + i).min(p.k - i);
        let mut from = src.wrapping_offset(p.k_offsets.at(p.k0 + i));
        while i < end {
            let n = if i.is_multiple_of(QUAD) && end - i >= QUAD { QUAD } else { 1 };
            // SAFETY: the run is inside the row, and the quad inside the strip.
            unsafe {
                match n {
                    QUAD => to(i)
                        .cast::<[bf16; QUAD]>()
                        .write_unaligned(from.cast::<[bf16; QUAD]>().read_unaligned()),
                    _ => *to(i) = *from,
                }
            }
            (i, from) = (i + n, from.wrapping_add(n));
        }
    }
    for i in p.k..p.k.next_multiple_of(QUAD) {
        // SAFETY: a strip has room for whole quads.
        unsafe { *to(i) = bf16::ZERO };
    }
}

/// Lets the `n` numbers of each second packed step alternate with those before them.
#[inline(always)]
unsafe fn alternate(packed: *mut f32, k: usize, n: usize) {
    let steps = k.div_ceil(DEPTH);
    for step in (0..steps).step_by(GROUP) {
        let first = packed.wrapping_add(step * n);
        // SAFETY: the machine has NEON.
        let mut both = [[unsafe { F32::zero() }; 2]; MOST[1] / 2];
        let lanes = |v: usize| (n - v * F32::LANES).min(F32::LANES);
        // SAFETY: the caller passes so many numbers, and room for a group; all are read before any
        // is written.
        unsafe {
            for (v, [x, y]) in both.iter_mut().enumerate().take(n.div_ceil(F32::LANES)) {
                let at = first.wrapping_add(v * F32::LANES);
                *x = F32::load_first(at, lanes(v));
                if step + 1 < steps {
                    *y = F32::load_first(at.wrapping_add(n), lanes(v));
                }
            }
            for (v, [x, y]) in both.into_iter().enumerate().take(n.div_ceil(F32::LANES)) {
                let (to, numbers) = (first.wrapping_add(GROUP * v * F32::LANES), GROUP * lanes(v));
                F32::store_first(to, numbers.min(F32::LANES), vzip1q_f32(x, y));
                let rest = numbers.saturating_sub(F32::LANES);
                F32::store_first(to.wrapping_add(F32::LANES), rest, vzip2q_f32(x, y));
            }
        }
    }
}

/// Adds to sums of two rows by two columns, in this order, the products of four steps of both.
#[inline(always)]
unsafe fn multiply(mut sums: float32x4_t, rows: float32x4_t, columns: float32x4_t) -> float32x4_t {
    // SAFETY: the machine has the extension; only registers are touched.
    unsafe {
        asm!("bfmmla {:v}.4s, {:v}.8h, {:v}.8h", inlateout(vreg) sums, in(vreg) rows, in(vreg) columns,
            options(pure, nomem, nostack, preserves_flags));
    }
    sums
}

/// The tile kernel: [`super::tile::tile`] for packed quads, of up to 8 rows by 3 vectors of columns.
///
/// With all of these, 24 multiply-adds of four steps come with ten loads, and take 24 registers of sums,
/// four of A and what remains of the 32 for B.
///
/// # Safety
/// As there; operands are packed by this file, A in strips, and the machine has `bfmmla`.
#[inline(always)]
pub(super) unsafe fn tile<const MR: usize, const NV: usize>(t: &TileArgs<f32>) {
    let (mut a, mut b, mut ahead) = (t.a[0], t.b, t.ahead);
    let quads = t.k / GROUP;
    // SAFETY: the caller's contract: there are so many groups of steps in A and B, and MR rows in C.
    unsafe {
        let mut sums = [[F32::zero(); MOST[1]]; MOST[0]];
        // The fetches are spread over the loop: there are a dozen miss buffers, and B needs them.
        for segment in 0..=MR {
            let mut steps = quads % MR;
            if segment < MR {
                steps = quads / MR;
                prefetch_row::<F32, NV>(t.c[segment]);
                prefetch_row::<F32, NV>(ahead);
                ahead = ahead.wrapping_offset(t.ahead_step);
            }
            for _ in 0..steps {
                let mut rows = [F32::zero(); MOST[0]];
                for (i, rows) in rows.iter_mut().enumerate().take(MR.div_ceil(2)) {
                    let from = a.wrapping_add(2 * GROUP * i);
                    *rows = match MR - 2 * i {
                        1 => vcombine_f32(vld1_f32(from), vdup_n_f32(0.0)),
                        _ => vld1q_f32(from),
                    };
                }
                for j in 0..2 * NV {
                    let columns = F32::load(b.wrapping_add(2 * GROUP * j));
                    for (rows, sums) in rows.iter().zip(&mut sums).take(MR.div_ceil(2)) {
                        sums[j] = multiply(sums[j], *rows, columns);
                    }
                }
                a = a.wrapping_add(GROUP * MR);
                b = b.wrapping_offset(GROUP as isize * t.b_step);
            }
        }
        // Sums are in registers as long as no index of theirs is a variable.
        unrolled!(row in 0, 1, 2, 3, 4, 5, 6, 7 => {
            if row < MR {
                let mut acc = [F32::zero(); NV];
                for (v, acc) in acc.iter_mut().enumerate() {
                    let [left, right] = [2 * v, 2 * v + 1].map(|j| vreinterpretq_f64_f32(sums[row / 2][j]));
                    *acc = vreinterpretq_f32_f64(match row % 2 {
                        0 => vzip1q_f64(left, right),
                        _ => vzip2q_f64(left, right),
                    });
                }
                store_row::<F32, NV>(t.c[row].cast_mut(), acc, t.last, t.accumulate);
            }
        });
    }
}
