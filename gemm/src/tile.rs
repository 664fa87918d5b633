//! The tile kernel: MR rows by NV vectors of the result, kept in registers over a run of k.
//!
//! One step of k loads NV vectors of B, broadcasts MR numbers of A, and does MR * NV fused
//! multiply-adds. With 8 x 3 on AVX-512 that is 24 multiply-adds (12 cycles on two ports) against
//! 11 loads (5.5 cycles), 24 accumulators and 4 other registers of 32, and one pointer per row of A
//! in general registers. Rows are reached through pointers, not through a packed panel, so A needs
//! no copy unless its type or its stride along k asks for one; the loop order is that of the
//! GotoBLAS kernel (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication",
//! 2008), with the roles of A and B such that vectors lie along the rows of C.
//!
//! Where multiply-adds take one lane of a vector as a factor ([`Simd::BY_LANE`], NEON), nothing is
//! broadcast: a vector of A holds some steps of a row where those are adjacent, or some rows of a
//! step where those are. With 7 x 3 on NEON, four steps along rows of f32 are 84 multiply-adds and 13
//! loads, with 21 accumulators, 7 vectors of A and 3 of B in the 32 registers.

use super::ahead::prefetch_l2;
use super::simd::Simd;
use std::sync::atomic::{Ordering, compiler_fence};

/// The most rows of a tile in vectors, for any instruction set.
pub(super) const MAX_ROWS: usize = 8;

/// The most rows of any tile at all.
pub(super) const POINTERS: usize = if cfg!(target_arch = "x86_64") { 32 } else { MAX_ROWS };

/// Below this many steps there is no time to fetch anything.
pub(super) const SPREAD: usize = 48;

/// What one call of a tile kernel works on.
///
/// The entries of rows that there are not are not looked at.
#[repr(C)]
pub(super) struct TileArgs<T> {
    /// Number of steps.
    pub(super) k: usize,
    /// Number of rows.
    pub(super) rows: usize,
    /// First element of each row of A.
    pub(super) a: [*const T; POINTERS],
    /// Elements between steps in every row of A, for kernels without a table.
    pub(super) a_step: isize,
    /// Where each step lies in every row of A, for kernels with a table.
    pub(super) a_table: *const isize,
    /// First row of B: NV vectors side by side.
    pub(super) b: *const T,
    /// Elements between steps in B.
    pub(super) b_step: isize,
    /// First element of each row of C, which is written.
    pub(super) c: [*const T; POINTERS],
    /// Valid lanes of the last vector; the others are neither read nor written in C.
    pub(super) last: usize,
    /// Add to C instead of overwriting it.
    pub(super) accumulate: bool,
    /// Whether what is packed behind the steps of bytes matters.
    pub(super) corrected: bool,
    /// What to fetch meanwhile: so many rows of NV vectors, and elements between them; need not be
    /// valid addresses.
    pub(super) ahead: *const T,
    pub(super) ahead_step: isize,
    pub(super) fetches: usize,
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

/// The same statements for each number of a list.
macro_rules! unrolled {
    ($name:ident in $($number:literal),* => $body:block) => {
        $({
            let $name: usize = $number;
            $body
        })*
    };
}

#[cfg(target_arch = "aarch64")]
pub(super) use unrolled;

/// A tile kernel.
pub(super) type TileFn<T> = unsafe fn(&TileArgs<T>);

const TAIL: u8 = Variant::Tail as u8;
const TABLE: u8 = Variant::Table as u8;

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
        let segments = if t.k < SPREAD { 0 } else { t.fetches };
        let left = Left::of::<S, MR, VARIANT>(t);
        for segment in 0..=segments {
            let mut steps = t.k;
            if let Some(mut each) = t.k.checked_div(segments) {
                if S::BY_LANE {
                    // Whole chunks, and what remains at the end.
                    each = each / CHUNK * CHUNK;
                }
                steps = if segment < segments { each } else { t.k - each * segments };
                if segment < MR {
                    prefetch_row::<S, NV>(t.c[segment]);
                }
                prefetch_row_l2::<S, NV>(ahead);
                ahead = ahead.wrapping_offset(t.ahead_step);
            }
            if S::BY_LANE && left != Left::Each {
                let from = (a_offset, b);
                by_lane::<S, MR, NV>((t, rows), left, &mut acc, from, steps / CHUNK);
                let done = (steps / CHUNK * CHUNK) as isize;
                a_offset = a_offset.wrapping_add(t.a_step.wrapping_mul(done));
                b = b.wrapping_offset(t.b_step.wrapping_mul(done));
                steps %= CHUNK;
            }
            for _ in 0..steps {
                let right = load_right::<S, NV, VARIANT>(b, t.last);
                if VARIANT == TABLE {
                    a_offset = *table;
                    table = table.wrapping_add(1);
                }
                for (row, acc) in rows.iter().zip(&mut acc) {
                    let left = S::splat(row.wrapping_offset(a_offset));
                    for (right, acc) in right.iter().zip(acc) {
                        *acc = S::mul_add(left, *right, *acc);
                    }
                }
                if VARIANT != TABLE {
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

/// The NV vectors of B at `b`.
#[inline(always)]
unsafe fn load_right<S: Simd, const NV: usize, const VARIANT: u8>(
    b: *const S::Elem,
    last: usize,
) -> [S::V; NV] {
    // SAFETY: the caller passes a step of B, of whose last vector a tail reads the valid lanes.
    unsafe {
        let mut right = [S::zero(); NV];
        for (j, right) in right.iter_mut().enumerate() {
            let p = b.wrapping_add(j * S::LANES);
            let tail = VARIANT == TAIL && j == NV - 1;
            *right = if tail { S::load_first(p, last) } else { S::load(p) };
        }
        right
    }
}

/// How numbers of A are loaded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    /// One by one.
    Each,
    /// Vectors of neighbouring steps of a row.
    Steps,
    /// Vectors of neighbouring rows of a step, the last of which may overlap the one before.
    Rows,
    /// Vectors of whatever comes next where steps of all rows follow each other.
    Strip,
}

impl Left {
    #[inline(always)]
    fn of<S: Simd, const MR: usize, const VARIANT: u8>(t: &TileArgs<S::Elem>) -> Left {
        if !S::BY_LANE || VARIANT != Variant::Plain as u8 {
            return Left::Each;
        }
        let adjacent = (1..MR).all(|i| t.a[i] == t.a[0].wrapping_add(i));
        match adjacent {
            _ if t.a_step == 1 => Left::Steps,
            true if t.a_step == MR as isize => Left::Strip,
            true if MR >= S::LANES => Left::Rows,
            _ => Left::Each,
        }
    }
}

/// Steps multiplied together by lanes: a multiple of the lanes of whoever offers that.
pub(super) const CHUNK: usize = 4;

/// So many times CHUNK steps by lanes of vectors of A, from an offset in its rows and an address in
/// B on. Steps of packed operands are constants.
///
/// # Safety
/// As [`tile`] for [`Variant::Plain`]; `left` is what [`Left::of`] says of `t`.
#[inline(always)]
unsafe fn by_lane<S: Simd, const MR: usize, const NV: usize>(
    (t, rows): (&TileArgs<S::Elem>, [*const S::Elem; MR]),
    left: Left,
    acc: &mut [[S::V; NV]; MR],
    mut at: (isize, *const S::Elem),
    mut chunks: usize,
) {
    macro_rules! chunks {
        ($left:path, $a_step:expr, $b_step:expr) => {
            for _ in 0..chunks {
                // SAFETY: the chunks are part of the rows and steps of the caller's contract.
                unsafe {
                    let steps: (isize, isize) = ($a_step, $b_step);
                    at = chunk::<S, MR, NV, { $left as u8 }>(&rows, acc, at, steps);
                }
            }
        };
    }
    let packed = (NV * S::LANES) as isize;
    match (left, t.b_step == packed) {
        (Left::Each, _) => unreachable!("invariant: multiplied by lanes"),
        (Left::Rows, _) => chunks!(Left::Rows, t.a_step, t.b_step),
        (Left::Steps, true) => {
            // SAFETY: the chunks are part of the rows and steps of the caller's contract.
            let done = unsafe {
                S::chunks_along(acc, rows.map(|r| r.wrapping_offset(at.0)), at.1, chunks)
            };
            let steps = (done * CHUNK) as isize;
            at = (at.0.wrapping_add(steps), at.1.wrapping_offset(packed * steps));
            chunks -= done;
            chunks!(Left::Steps, 1, packed);
        }
        (Left::Steps, false) => chunks!(Left::Steps, 1, t.b_step),
        (Left::Strip, true) => chunks!(Left::Strip, MR as isize, packed),
        (Left::Strip, false) => chunks!(Left::Strip, MR as isize, t.b_step),
    }
}

/// CHUNK steps by lanes, and where the next are; `LEFT` is a [`Left`].
#[inline(always)]
unsafe fn chunk<S: Simd, const MR: usize, const NV: usize, const LEFT: u8>(
    rows: &[*const S::Elem; MR],
    acc: &mut [[S::V; NV]; MR],
    (a, b): (isize, *const S::Elem),
    (a_step, b_step): (isize, isize),
) -> (isize, *const S::Elem) {
    const STEPS: u8 = Left::Steps as u8;
    const ROWS: u8 = Left::Rows as u8;
    // SAFETY: the caller passes steps that exist, of adjacent rows if it does not say STEPS; there
    // are at least LANES of them if it says ROWS, and else MR * LANES numbers in LANES steps.
    unsafe {
        let mut left = [S::zero(); MR];
        let row = |vector: usize| (vector * S::LANES).min(MR.saturating_sub(S::LANES));
        unrolled!(step in 0, 1, 2, 3 => {
            if LEFT == STEPS && S::LANES < CHUNK && step.is_multiple_of(S::LANES) {
                // Or all vectors of A of a chunk are loaded at once, and registers do not suffice.
                compiler_fence(Ordering::SeqCst);
            }
            let at = a.wrapping_add(a_step * step as isize);
            let vectors = match LEFT {
                ROWS => MR.div_ceil(S::LANES),
                _ if step.is_multiple_of(S::LANES) => MR,
                _ => 0,
            };
            for (i, left) in left.iter_mut().enumerate().take(vectors) {
                *left = S::load(match LEFT {
                    STEPS => rows[i].wrapping_offset(at),
                    ROWS => rows[0].wrapping_offset(at).wrapping_add(row(i)),
                    _ => rows[0].wrapping_offset(at).wrapping_add(i * S::LANES),
                });
            }
            let left = |i: usize| match LEFT {
                STEPS => (left[i], step % S::LANES),
                ROWS => (left[i / S::LANES], i - row(i / S::LANES)),
                _ => {
                    let i = step % S::LANES * MR + i;
                    (left[i / S::LANES], i % S::LANES)
                }
            };
            let right = b.wrapping_offset(b_step * step as isize);
            let right = load_right::<S, NV, { Variant::Plain as u8 }>(right, S::LANES);
            multiply::<S, MR, NV>(acc, left, right);
        });
    }
    let (a_step, b_step) =
        (a_step.wrapping_mul(CHUNK as isize), b_step.wrapping_mul(CHUNK as isize));
    (a.wrapping_add(a_step), b.wrapping_offset(b_step))
}

/// Adds the products of one step; `left` says for each row which lane of which vector is its factor.
#[inline(always)]
unsafe fn multiply<S: Simd, const MR: usize, const NV: usize>(
    acc: &mut [[S::V; NV]; MR],
    left: impl Fn(usize) -> (S::V, usize),
    right: [S::V; NV],
) {
    // Lanes are parts of instructions, so this may not be left to chance.
    unrolled!(i in 0, 1, 2, 3, 4, 5, 6, 7 => {
        if i < MR {
            let (left, lane) = left(i);
            for (right, acc) in right.iter().zip(&mut acc[i]) {
                // SAFETY: only registers are touched; the machine has the features of `S`.
                *acc = unsafe { S::mul_add_lane(left, lane, *right, *acc) };
            }
        }
    });
}

/// Asks for the cache lines of NV vectors at `p`, which need not be a valid address.
#[inline(always)]
pub(super) fn prefetch_row<S: Simd, const NV: usize>(p: *const S::Elem) {
    #[cfg(target_arch = "x86_64")]
    for j in 0..NV {
        let line = p.wrapping_add(j * S::LANES).cast::<i8>();
        // SAFETY: a prefetch never faults; SSE is part of x86-64.
        unsafe { std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line) };
    }
    #[cfg(target_arch = "aarch64")]
    for j in 0..NV {
        super::simd::neon::prefetch(p.wrapping_add(j * S::LANES));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = p;
}

/// As [`prefetch_row`], in L2.
#[inline(always)]
fn prefetch_row_l2<S: Simd, const NV: usize>(p: *const S::Elem) {
    for j in 0..NV {
        prefetch_l2(p.wrapping_add(j * S::LANES).cast());
    }
}

/// Writes or adds one row of accumulators.
#[inline(always)]
pub(super) unsafe fn store_row<S: Simd, const NV: usize>(
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
