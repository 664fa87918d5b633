//! The tile kernel: MR rows by NV vectors of the result, kept in registers over a run of k.
//!
//! One step of k loads NV vectors of B, broadcasts MR numbers of A, and does MR * NV fused
//! multiply-adds. With 8 x 3 on AVX-512 that is 24 multiply-adds (12 cycles on two ports) against
//! 11 loads (5.5 cycles), 24 accumulators and 4 other registers of 32, and one pointer per row of A
//! in general registers. Rows are reached through pointers, not through a packed panel, so A needs
//! no copy unless its type or its stride along k asks for one; the loop order is that of the
//! GotoBLAS kernel (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication",
//! 2008), with the roles of A and B such that vectors lie along the rows of C.

use super::simd::Simd;

/// The most rows of a tile, for any instruction set.
pub(super) const MAX_ROWS: usize = 8;

/// Below this many steps there is no time to fetch anything.
const SPREAD: usize = 48;

/// What one call of a tile kernel works on.
///
/// The rows beyond those of the kernel called are not looked at.
#[repr(C)]
pub(super) struct TileArgs<T> {
    /// Number of steps.
    pub(super) k: usize,
    /// First element of each row of A.
    pub(super) a: [*const T; MAX_ROWS],
    /// Elements between steps in every row of A, for kernels without a table.
    pub(super) a_step: isize,
    /// Where each step lies in every row of A, for kernels with a table.
    pub(super) a_table: *const isize,
    /// First row of B: NV vectors side by side.
    pub(super) b: *const T,
    /// Elements between steps in B.
    pub(super) b_step: isize,
    /// First element of each row of C, which is written.
    pub(super) c: [*const T; MAX_ROWS],
    /// Valid lanes of the last vector; the others are neither read nor written in C.
    pub(super) last: usize,
    /// Add to C instead of overwriting it.
    pub(super) accumulate: bool,
    /// What to fetch meanwhile: one row of NV vectors per row of the tile, and elements between
    /// them; need not be valid addresses.
    pub(super) ahead: *const T,
    pub(super) ahead_step: isize,
}

/// What a tile kernel can do beyond the plain one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variant {
    /// Even steps in A; all lanes of B are read.
    Plain,
    /// Even steps in A; the invalid lanes of the last vector are not read in B.
    Tail,
    /// Steps in A from a table; all lanes of B are read.
    Table,
}

/// A tile kernel.
pub(super) type TileFn<T> = unsafe fn(&TileArgs<T>);

/// `C = A B` or `C += A B` for one tile; `VARIANT` is a [`Variant`].
///
/// # Safety
/// All rows and steps of A and B described by `t`, and the valid lanes of C, must be accessible,
/// nothing else may write them during the call, and the machine must have the features of `S`.
#[inline(always)]
pub(super) unsafe fn tile<S: Simd, const MR: usize, const NV: usize, const VARIANT: u8>(
    t: &TileArgs<S::Elem>,
) {
    // SAFETY: the pointers are those of the caller's contract; steps past the last are computed
    // with wrapping arithmetic and not dereferenced.
    unsafe {
        let mut acc = [[S::zero(); NV]; MR];
        let mut rows = [std::ptr::null(); MR];
        rows.copy_from_slice(&t.a[..MR]);
        let (mut a_offset, mut b, mut ahead) = (0_isize, t.b, t.ahead);
        let mut table = t.a_table;
        // The fetches are spread over the loop: there are a dozen miss buffers, and B needs them.
        let segments = if t.k < SPREAD { 0 } else { MR };
        for segment in 0..=segments {
            let mut steps = t.k;
            if segments > 0 {
                steps = if segment < MR { t.k / MR } else { t.k % MR };
                prefetch_row::<S, NV>(t.c[segment % MR]);
                prefetch_row::<S, NV>(ahead);
                ahead = ahead.wrapping_offset(t.ahead_step);
            }
            for _ in 0..steps {
                let mut right = [S::zero(); NV];
                for (j, right) in right.iter_mut().enumerate() {
                    let p = b.wrapping_add(j * S::LANES);
                    let tail = VARIANT == Variant::Tail as u8 && j == NV - 1;
                    *right = if tail { S::load_first(p, t.last) } else { S::load(p) };
                }
                if VARIANT == Variant::Table as u8 {
                    a_offset = *table;
                    table = table.wrapping_add(1);
                }
                for (row, acc) in rows.iter().zip(&mut acc) {
                    let left = S::splat(row.wrapping_offset(a_offset));
                    for (right, acc) in right.iter().zip(acc) {
                        *acc = S::mul_add(left, *right, *acc);
                    }
                }
                if VARIANT != Variant::Table as u8 {
                    a_offset = a_offset.wrapping_add(t.a_step);
                }
                b = b.wrapping_offset(t.b_step);
            }
        }
        for (row, acc) in t.c.iter().zip(acc) {
            store_row::<S, NV>(row.cast_mut(), acc, t.last, t.accumulate);
        }
    }
}

/// Asks for the cache lines of NV vectors at `p`, which need not be a valid address.
#[inline(always)]
fn prefetch_row<S: Simd, const NV: usize>(p: *const S::Elem) {
    #[cfg(target_arch = "x86_64")]
    for j in 0..NV {
        let line = p.wrapping_add(j * S::LANES).cast::<i8>();
        // SAFETY: a prefetch never faults; SSE is part of x86-64.
        unsafe { std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

/// Writes or adds one row of accumulators.
#[inline(always)]
unsafe fn store_row<S: Simd, const NV: usize>(
    row: *mut S::Elem,
    acc: [S::V; NV],
    last: usize,
    accumulate: bool,
) {
    for (j, mut v) in acc.into_iter().enumerate() {
        let p = row.wrapping_add(j * S::LANES);
        // SAFETY: the lanes accessed are the valid ones of the tile.
        unsafe {
            if j < NV - 1 || last == S::LANES {
                if accumulate {
                    v = S::add(v, S::load(p));
                }
                S::store(p, v);
            } else {
                if accumulate {
                    v = S::add(v, S::load_first(p, last));
                }
                S::store_first(p, last, v);
            }
        }
    }
}
