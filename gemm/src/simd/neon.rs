//! 128-bit vectors with fused multiply-add by lanes: 4 f32 or 2 f64; tails lane by lane.
//!
//! Needs NEON, which every 64-bit Arm processor that runs an operating system has. Halves are
//! converted by instructions that NEON has had from the beginning; `bfmmla` is an extension of its
//! own (Armv8.6: Neoverse V1 and N2, Apple's M2, Cortex-A510 on). What the intrinsics of stable Rust
//! lack is one instruction of assembly.

use super::{Factors, Load, MAX_LANES, Save, Simd, Zip, convert, save_as_it_is, save_by_element};
use crate::bytes::{BEHIND, Write};
use crate::tile::{TileArgs, prefetch_row, unrolled};
use half::{bf16, f16};
use num_traits::ConstZero;
use std::arch::aarch64::*;
use std::arch::asm;

/// 4 f32.
#[derive(Clone, Copy)]
pub(crate) struct F32;

/// 2 f64.
#[derive(Clone, Copy)]
pub(crate) struct F64;

/// One instruction, of the form `[operation, arrangements of sums, of B, element of A]`.
macro_rules! multiply_add {
    ([$op:literal $d:literal $n:literal $m:literal] $sum:literal $b:literal $a:literal $lane:literal) => {
        concat!($op, " v", $sum, $d, ", v", $b, $n, ", v", $a, $m, "[", $lane, "]\n")
    };
}

/// The products of a vector of B with a lane of all rows of A, whose sums are a column.
macro_rules! column {
    ($form:tt 0 $b:literal $lane:literal) => {
        column!($form $b $lane: 0 21, 1 22, 2 23, 3 24, 4 25, 5 26, 6 27)
    };
    ($form:tt 1 $b:literal $lane:literal) => {
        column!($form $b $lane: 7 21, 8 22, 9 23, 10 24, 11 25, 12 26, 13 27)
    };
    ($form:tt 2 $b:literal $lane:literal) => {
        column!($form $b $lane: 14 21, 15 22, 16 23, 17 24, 18 25, 19 26, 20 27)
    };
    ($form:tt $b:literal $lane:literal: $($sum:literal $a:literal),*) => {
        concat!($(multiply_add!($form $sum $b $a $lane)),*)
    };
}

/// The next vector of each row of A.
macro_rules! next_of_rows {
    () => {
        "ldr q21, [{a0}], #16\nldr q22, [{a1}], #16\nldr q23, [{a2}], #16\n\
         ldr q24, [{a3}], #16\nldr q25, [{a4}], #16\nldr q26, [{a5}], #16\n\
         ldr q27, [{a6}], #16\n"
    };
}

/// The next two vectors of B, in one of two pairs of registers.
macro_rules! next_two {
    (28) => {
        "ldp q28, q29, [{b}], #32\n"
    };
    (30) => {
        "ldp q30, q31, [{b}], #32\n"
    };
}

/// Four steps, with the lanes of each; after two, where a vector has but two lanes, the next of A.
macro_rules! four_steps {
    ($form:tt [$i:literal $j:literal $k:literal $l:literal] $($again:tt)*) => {
        concat!(
            next_of_rows!(), next_two!(28), next_two!(30),
            column!($form 0 28 $i), column!($form 1 29 $i), next_two!(28),
            column!($form 2 30 $i), column!($form 0 31 $j), next_two!(30),
            column!($form 1 28 $j), column!($form 2 29 $j), next_two!(28),
            $($again)*
            column!($form 0 30 $k), column!($form 1 31 $k), next_two!(30),
            column!($form 2 28 $k), column!($form 0 29 $l),
            column!($form 1 30 $l), column!($form 2 31 $l),
        )
    };
}

/// [`Simd::chunks_along`] for the tile of 7 x 3, two chunks a turn: 168 multiply-adds among 196
/// instructions where a vector of A holds four steps, among 210 where it holds two.
///
/// Sums are in `v0` to `v20`, column by column, vectors of A in `v21` to `v27`, and two pairs of
/// registers take turns for B. A compiler finds this order or spills, depending on what stands
/// around it, so it is written down.
macro_rules! chunks_along {
    ($elem:ty, $vector:ty, $form:tt, $($lanes:tt)*) => {
        #[inline(always)]
        unsafe fn chunks_along<const MR: usize, const NV: usize>(
            acc: &mut [[$vector; NV]; MR],
            rows: [*const $elem; MR],
            b: *const $elem,
            chunks: usize,
        ) -> usize {
            if MR != 7 || NV != 3 || chunks < 2 {
                return 0;
            }
            // SAFETY: the array has 7 rows of 3 vectors; the caller passes so many chunks of 7 rows
            // and of B, and nothing else is read.
            unsafe {
                let sums = &mut *std::ptr::from_mut(acc).cast::<[[$vector; 3]; 7]>();
                asm!(
                    "2:",
                    four_steps!($form $($lanes)*),
                    four_steps!($form $($lanes)*),
                    "subs {n}, {n}, #1",
                    "b.ne 2b",
                    inout("v0") sums[0][0], inout("v7") sums[0][1], inout("v14") sums[0][2],
                    inout("v1") sums[1][0], inout("v8") sums[1][1], inout("v15") sums[1][2],
                    inout("v2") sums[2][0], inout("v9") sums[2][1], inout("v16") sums[2][2],
                    inout("v3") sums[3][0], inout("v10") sums[3][1], inout("v17") sums[3][2],
                    inout("v4") sums[4][0], inout("v11") sums[4][1], inout("v18") sums[4][2],
                    inout("v5") sums[5][0], inout("v12") sums[5][1], inout("v19") sums[5][2],
                    inout("v6") sums[6][0], inout("v13") sums[6][1], inout("v20") sums[6][2],
                    a0 = inout(reg) rows[0] => _,
                    a1 = inout(reg) rows[1] => _,
                    a2 = inout(reg) rows[2] => _,
                    a3 = inout(reg) rows[3] => _,
                    a4 = inout(reg) rows[4] => _,
                    a5 = inout(reg) rows[5] => _,
                    a6 = inout(reg) rows[6] => _,
                    b = inout(reg) b => _,
                    n = inout(reg) chunks / 2 => _,
                    out("v21") _, out("v22") _, out("v23") _, out("v24") _, out("v25") _, out("v26") _,
                    out("v27") _, out("v28") _, out("v29") _, out("v30") _, out("v31") _,
                    options(readonly, nostack)
                );
            }
            chunks / 2 * 2
        }
    };
}

// In this file every intrinsic is called under the invariant of the module above: the machine has
// the features.

/// Asks for the cache line at `p`, which need not be a valid address.
#[inline(always)]
pub(in super::super) fn prefetch<E>(p: *const E) {
    // SAFETY: a prefetch never faults and changes nothing.
    unsafe { asm!("prfm pldl1keep, [{}]", in(reg) p, options(readonly, nostack, preserves_flags)) }
}

/// Asks for the cache line at `p`, which need not be a valid address, in L2.
#[inline(always)]
pub(in super::super) fn prefetch_l2(p: *const u8) {
    // SAFETY: a prefetch never faults and changes nothing.
    unsafe { asm!("prfm pldl2keep, [{}]", in(reg) p, options(readonly, nostack, preserves_flags)) }
}

/// The f32 of the four f16 in the lower half.
#[inline(always)]
unsafe fn widen_f16(v: uint16x4_t) -> float32x4_t {
    let wide;
    // SAFETY: NEON has the instruction; only registers are touched.
    unsafe {
        asm!("fcvtl {:v}.4s, {:v}.4h", lateout(vreg) wide, in(vreg) v,
            options(pure, nomem, nostack, preserves_flags));
    }
    wide
}

/// Four f32 as f16, rounded to nearest, ties to even.
#[inline(always)]
unsafe fn narrow_f16(v: float32x4_t) -> uint16x4_t {
    let half;
    // SAFETY: NEON has the instruction; only registers are touched.
    unsafe {
        asm!("fcvtn {:v}.4h, {:v}.4s", lateout(vreg) half, in(vreg) v,
            options(pure, nomem, nostack, preserves_flags));
    }
    half
}

/// Four f32 as bf16, rounded to nearest, ties to even, by adding half a unit less one and the bit
/// that decides ties; a NaN becomes quiet instead, lest the sum carry it to infinity.
#[inline(always)]
unsafe fn narrow_bf16(v: float32x4_t) -> uint16x4_t {
    // SAFETY: the machine has NEON.
    unsafe {
        let bits = vreinterpretq_u32_f32(v);
        let lowest = vandq_u32(vshrq_n_u32::<16>(bits), vdupq_n_u32(1));
        let rounded = vaddq_u32(bits, vaddq_u32(lowest, vdupq_n_u32(0x7fff)));
        let quiet = vorrq_u32(bits, vdupq_n_u32(0x40 << 16));
        vshrn_n_u32::<16>(vbslq_u32(vceqq_f32(v, v), rounded, quiet))
    }
}

/// The f32 of four bf16, which are their upper halves.
#[inline(always)]
unsafe fn widen_bf16(v: uint16x4_t) -> float32x4_t {
    // SAFETY: the machine has NEON.
    unsafe { vreinterpretq_f32_u32(vshll_n_u16::<16>(v)) }
}

impl Simd for F32 {
    type Elem = f32;
    type V = float32x4_t;
    const LANES: usize = 4;
    const BY_LANE: bool = true;

    chunks_along!(f32, float32x4_t, ["fmla" ".4s" ".4s" ".s"], [0 1 2 3]);

    #[inline(always)]
    unsafe fn zero() -> float32x4_t {
        // SAFETY: the machine has NEON.
        unsafe { vdupq_n_f32(0.0) }
    }

    #[inline(always)]
    unsafe fn splat(p: *const f32) -> float32x4_t {
        // SAFETY: the caller passes a readable number; the machine has NEON.
        unsafe { vld1q_dup_f32(p) }
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> float32x4_t {
        // SAFETY: the caller passes 4 readable numbers; the machine has NEON.
        unsafe { vld1q_f32(p) }
    }

    #[inline(always)]
    unsafe fn load_first(p: *const f32, n: usize) -> float32x4_t {
        // SAFETY: the caller passes n readable numbers, at most 4; the machine has NEON.
        unsafe {
            let none = Self::zero();
            match n {
                0 => none,
                1 => vld1q_lane_f32::<0>(p, none),
                2 => vcombine_f32(vld1_f32(p), vget_low_f32(none)),
                3 => vld1q_lane_f32::<2>(p.add(2), Self::load_first(p, 2)),
                _ => vld1q_f32(p),
            }
        }
    }

    #[inline(always)]
    unsafe fn store(p: *mut f32, v: float32x4_t) {
        // SAFETY: the caller passes room for 4 numbers; the machine has NEON.
        unsafe { vst1q_f32(p, v) }
    }

    #[inline(always)]
    unsafe fn store_first(p: *mut f32, n: usize, v: float32x4_t) {
        // SAFETY: the caller passes room for n numbers, at most 4; the machine has NEON.
        unsafe {
            if n >= 4 {
                return vst1q_f32(p, v);
            }
            if n >= 2 {
                vst1_f32(p, vget_low_f32(v));
            }
            match n {
                1 => vst1q_lane_f32::<0>(p, v),
                3 => vst1q_lane_f32::<2>(p.add(2), v),
                _ => (),
            }
        }
    }

    #[inline(always)]
    unsafe fn mul_add(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
        // SAFETY: the machine has NEON.
        unsafe { vfmaq_f32(c, a, b) }
    }

    #[inline(always)]
    unsafe fn mul_add_lane(
        a: float32x4_t,
        lane: usize,
        b: float32x4_t,
        c: float32x4_t,
    ) -> float32x4_t {
        // SAFETY: the machine has NEON.
        unsafe {
            match lane {
                0 => vfmaq_laneq_f32::<0>(c, b, a),
                1 => vfmaq_laneq_f32::<1>(c, b, a),
                2 => vfmaq_laneq_f32::<2>(c, b, a),
                _ => vfmaq_laneq_f32::<3>(c, b, a),
            }
        }
    }

    #[inline(always)]
    unsafe fn add(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: the machine has NEON.
        unsafe { vaddq_f32(a, b) }
    }

    #[inline(always)]
    unsafe fn sum(v: float32x4_t) -> f32 {
        // SAFETY: the machine has NEON.
        unsafe { vaddvq_f32(v) }
    }

    /// Numbers, then pairs.
    #[inline(always)]
    unsafe fn transpose(r: &mut [float32x4_t; MAX_LANES]) {
        // SAFETY: the machine has NEON; only registers are touched.
        unsafe {
            let [a, b] =
                [vtrn1q_f32(r[0], r[1]), vtrn1q_f32(r[2], r[3])].map(|v| vreinterpretq_f64_f32(v));
            let [c, d] =
                [vtrn2q_f32(r[0], r[1]), vtrn2q_f32(r[2], r[3])].map(|v| vreinterpretq_f64_f32(v));
            let columns = [vtrn1q_f64(a, b), vtrn1q_f64(c, d), vtrn2q_f64(a, b), vtrn2q_f64(c, d)];
            r[..4].copy_from_slice(&columns.map(|v| vreinterpretq_f32_f64(v)));
        }
    }
}

impl Zip for F32 {
    #[inline(always)]
    unsafe fn zip(x: *const bf16, y: *const bf16) -> float32x4_t {
        // SAFETY: the caller passes 4 readable elements at both; the machine has NEON.
        unsafe {
            let (x, y) = (vld1_u16(x.cast()), vld1_u16(y.cast()));
            vreinterpretq_f32_u16(vcombine_u16(vzip1_u16(x, y), vzip2_u16(x, y)))
        }
    }

    #[inline(always)]
    unsafe fn insert_zipped(
        v: float32x4_t,
        x: *const bf16,
        y: Option<*const bf16>,
        lo: usize,
        hi: usize,
    ) -> float32x4_t {
        let mut pairs = [[bf16::ZERO; 2]; Self::LANES];
        // SAFETY: the array has LANES pairs; lanes lo..hi of x and y are readable.
        unsafe {
            Self::store(pairs.as_mut_ptr().cast(), v);
            for (i, pair) in pairs.iter_mut().enumerate().take(hi).skip(lo) {
                let second = y.map_or(bf16::ZERO, |y| *y.wrapping_add(i));
                *pair = [*x.wrapping_add(i), second];
            }
            Self::load(pairs.as_ptr().cast())
        }
    }
}

/// 4 quads of bytes, all signed; needs the dot products of Armv8.2 (Cortex-A55 and A76, Neoverse,
/// Apple's A13 on).
#[derive(Clone, Copy)]
pub(crate) struct Quads;

/// The same for processors without them: bytes of eight numbers are multiplied at a time, pairs of
/// neighbouring products added to sums, two of which make one in the end.
#[derive(Clone, Copy)]
pub(crate) struct Halves;

/// Vectors of all kinds have the same bits.
#[inline(always)]
unsafe fn ints(v: float32x4_t) -> int32x4_t {
    // SAFETY: the machine has NEON.
    unsafe { vreinterpretq_s32_f32(v) }
}

/// As [`ints`], the other way.
#[inline(always)]
unsafe fn floats(v: int32x4_t) -> float32x4_t {
    // SAFETY: the machine has NEON.
    unsafe { vreinterpretq_f32_s32(v) }
}

/// What does not multiply.
macro_rules! four_quads {
    () => {
        type F = F32;
        const DEPTH: usize = 4;
        const SIGNED: Option<[bool; 2]> = Some([true, true]);
        const STRIPS: bool = true;

        #[inline(always)]
        unsafe fn add_up(sums: float32x4_t, factors: float32x4_t, _: usize) -> float32x4_t {
            // SAFETY: the machine has NEON.
            unsafe {
                let pairs = vpaddlq_s8(vreinterpretq_s8_f32(factors));
                floats(vpadalq_s16(ints(sums), pairs))
            }
        }

        #[inline(always)]
        unsafe fn add(a: float32x4_t, b: float32x4_t) -> float32x4_t {
            // SAFETY: the machine has NEON.
            unsafe { floats(vaddq_s32(ints(a), ints(b))) }
        }

        #[inline(always)]
        unsafe fn scale(sums: float32x4_t, term: i32, factor: i32) -> float32x4_t {
            // SAFETY: the machine has NEON.
            unsafe { floats(vmulq_n_s32(vaddq_s32(ints(sums), vdupq_n_s32(term)), factor)) }
        }
    };
}

/// Adds the products of the quads of B with one of A; the machine has to have the extension, and only
/// registers are touched.
macro_rules! dot_lane {
    ($sums:expr, $b:expr, $a:expr, $lane:literal) => {
        asm!(concat!("sdot {:v}.4s, {:v}.16b, {:v}.4b[", $lane, "]"),
            inlateout(vreg) $sums, in(vreg) $b, in(vreg) $a,
            options(pure, nomem, nostack, preserves_flags))
    };
}

impl Factors for Quads {
    four_quads!();

    #[inline(always)]
    unsafe fn dot(mut sums: float32x4_t, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: the machine has the extension; only registers are touched.
        unsafe {
            asm!("sdot {:v}.4s, {:v}.16b, {:v}.16b", inlateout(vreg) sums, in(vreg) b, in(vreg) a,
                options(pure, nomem, nostack, preserves_flags));
        }
        sums
    }

    /// A vector of A holds a step of four rows: with 8 x 3, 24 multiply-adds come with five loads, and
    /// take 24 registers of sums, two of A and three of B.
    #[inline(always)]
    unsafe fn tile<const MR: usize, const NV: usize>(t: &TileArgs<f32>, write: Write) {
        // SAFETY: the machine has NEON.
        let mut acc = [[unsafe { F32::zero() }; NV]; MR];
        // SAFETY: the caller's contract: there are so many steps in A, in strips, and B, and the machine
        // has the extension.
        unsafe {
            each_run::<MR, NV>(t, |mut a, mut b, steps| {
                if (MR, NV) == (8, 3) {
                    let sums = &mut *std::ptr::from_mut(&mut acc).cast::<[[float32x4_t; 3]; 8]>();
                    return steps_of_8x3(sums, (a, t.a_step), (b, t.b_step), steps);
                }
                for _ in 0..steps {
                    let mut left = [F32::zero(); 2];
                    for (i, left) in left.iter_mut().enumerate().take(MR / 4) {
                        *left = F32::load(a.wrapping_add(4 * i));
                    }
                    let right: [_; NV] = std::array::from_fn(|j| F32::load(b.wrapping_add(4 * j)));
                    for (j, right) in right.into_iter().enumerate() {
                        unrolled!(i in 0, 1 => {
                            if i < MR / 4 {
                                dot_lane!(acc[4 * i][j], right, left[i], 0);
                                dot_lane!(acc[4 * i + 1][j], right, left[i], 1);
                                dot_lane!(acc[4 * i + 2][j], right, left[i], 2);
                                dot_lane!(acc[4 * i + 3][j], right, left[i], 3);
                            }
                        });
                    }
                    (a, b) = (a.wrapping_offset(t.a_step), b.wrapping_offset(t.b_step));
                }
            });
            let block = acc;
            write(t, std::ptr::from_ref(&block).cast(), NV);
        }
    }
}

impl Factors for Halves {
    four_quads!();
    const OPS: f64 = 5.0;

    #[inline(always)]
    unsafe fn dot(sums: float32x4_t, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: the machine has NEON.
        unsafe {
            let mut both = [vdupq_n_s32(0); 2];
            halves(&mut both, vreinterpretq_s8_f32(a), vreinterpretq_s8_f32(b));
            floats(vaddq_s32(ints(sums), vpaddq_s32(both[0], both[1])))
        }
    }

    #[inline(always)]
    unsafe fn tile<const MR: usize, const NV: usize>(t: &TileArgs<f32>, write: Write) {
        // SAFETY: the caller's contract: there are so many steps in A, in strips, and B.
        unsafe {
            let mut acc = [[[vdupq_n_s32(0); 2]; NV]; MR];
            each_run::<MR, NV>(t, |mut a, mut b, steps| {
                for _ in 0..steps {
                    let right: [_; NV] = std::array::from_fn(|j| {
                        vreinterpretq_s8_f32(vld1q_f32(b.wrapping_add(4 * j)))
                    });
                    for (i, acc) in acc.iter_mut().enumerate() {
                        let left = vreinterpretq_s8_f32(vld1q_dup_f32(a.wrapping_add(i)));
                        for (acc, right) in acc.iter_mut().zip(right) {
                            halves(acc, left, right);
                        }
                    }
                    (a, b) = (a.wrapping_offset(t.a_step), b.wrapping_offset(t.b_step));
                }
            });
            let block = acc.map(|row| row.map(|[low, high]| vpaddq_s32(low, high)));
            write(t, std::ptr::from_ref(&block).cast(), NV);
        }
    }
}

/// Adds to two sums for each quad the products of the first two and of the last two of its bytes.
#[inline(always)]
unsafe fn halves(sums: &mut [int32x4_t; 2], a: int8x16_t, b: int8x16_t) {
    // SAFETY: the machine has NEON; only registers are touched.
    unsafe {
        sums[0] = vpadalq_s16(sums[0], vmull_s8(vget_low_s8(a), vget_low_s8(b)));
        sums[1] = vpadalq_s16(sums[1], vmull_s8(vget_high_s8(a), vget_high_s8(b)));
    }
}

/// Calls `f` with where some steps of a tile begin in A and B, and how many they are, until all are
/// done, and fetches what is needed next.
#[inline(always)]
unsafe fn each_run<const MR: usize, const NV: usize>(
    t: &TileArgs<f32>,
    mut f: impl FnMut(*const f32, *const f32, usize),
) {
    let (mut a, mut b, mut ahead) = (t.a[0], t.b, t.ahead);
    let k = t.k - BEHIND;
    for segment in 0..=MR {
        let mut steps = k % MR;
        if segment < MR {
            steps = k / MR;
            prefetch_row::<F32, NV>(t.c[segment % t.rows]);
            prefetch_row::<F32, NV>(ahead);
            ahead = ahead.wrapping_offset(t.ahead_step);
        }
        if steps > 0 {
            f(a, b, steps);
        }
        a = a.wrapping_offset(t.a_step.wrapping_mul(steps as isize));
        b = b.wrapping_offset(t.b_step.wrapping_mul(steps as isize));
    }
}

/// The products of a step with the quads of a row, whose sums are in three registers.
macro_rules! row_of_8x3 {
    ($x:literal $y:literal $z:literal $a:literal $lane:literal) => {
        concat!(
            "sdot v",
            $x,
            ".4s, v26.16b, v",
            $a,
            ".4b[",
            $lane,
            "]\n",
            "sdot v",
            $y,
            ".4s, v27.16b, v",
            $a,
            ".4b[",
            $lane,
            "]\n",
            "sdot v",
            $z,
            ".4s, v28.16b, v",
            $a,
            ".4b[",
            $lane,
            "]\n",
        )
    };
}

/// Adds the products of so many steps, at least one, to 8 x 3 vectors of sums: a compiler that finds no
/// registers for them spills, so that theirs are written down.
#[inline(always)]
unsafe fn steps_of_8x3(
    sums: &mut [[float32x4_t; 3]; 8],
    (a, a_step): (*const f32, isize),
    (b, b_step): (*const f32, isize),
    steps: usize,
) {
    // SAFETY: the caller passes so many steps of 8 rows of A, side by side, and of 12 columns of B, and
    // has the extension; nothing else is read.
    unsafe {
        asm!(
            "2:",
            "ldp q24, q25, [{a}]",
            "ldp q26, q27, [{b}]",
            "ldr q28, [{b}, #32]",
            "add {a}, {a}, {a_step}, lsl #2",
            "add {b}, {b}, {b_step}, lsl #2",
            row_of_8x3!(0 1 2 24 0), row_of_8x3!(3 4 5 24 1),
            row_of_8x3!(6 7 8 24 2), row_of_8x3!(9 10 11 24 3),
            row_of_8x3!(12 13 14 25 0), row_of_8x3!(15 16 17 25 1),
            row_of_8x3!(18 19 20 25 2), row_of_8x3!(21 22 23 25 3),
            "subs {n}, {n}, #1",
            "b.ne 2b",
            inout("v0") sums[0][0], inout("v1") sums[0][1], inout("v2") sums[0][2],
            inout("v3") sums[1][0], inout("v4") sums[1][1], inout("v5") sums[1][2],
            inout("v6") sums[2][0], inout("v7") sums[2][1], inout("v8") sums[2][2],
            inout("v9") sums[3][0], inout("v10") sums[3][1], inout("v11") sums[3][2],
            inout("v12") sums[4][0], inout("v13") sums[4][1], inout("v14") sums[4][2],
            inout("v15") sums[5][0], inout("v16") sums[5][1], inout("v17") sums[5][2],
            inout("v18") sums[6][0], inout("v19") sums[6][1], inout("v20") sums[6][2],
            inout("v21") sums[7][0], inout("v22") sums[7][1], inout("v23") sums[7][2],
            a = inout(reg) a => _,
            b = inout(reg) b => _,
            n = inout(reg) steps => _,
            a_step = in(reg) a_step,
            b_step = in(reg) b_step,
            out("v24") _, out("v25") _, out("v26") _, out("v27") _, out("v28") _,
            options(readonly, nostack)
        );
    }
}

impl Simd for F64 {
    type Elem = f64;
    type V = float64x2_t;
    const LANES: usize = 2;
    const BY_LANE: bool = true;

    chunks_along!(f64, float64x2_t, ["fmla" ".2d" ".2d" ".d"], [0 1 0 1] next_of_rows!(),);

    #[inline(always)]
    unsafe fn zero() -> float64x2_t {
        // SAFETY: the machine has NEON.
        unsafe { vdupq_n_f64(0.0) }
    }

    #[inline(always)]
    unsafe fn splat(p: *const f64) -> float64x2_t {
        // SAFETY: the caller passes a readable number; the machine has NEON.
        unsafe { vld1q_dup_f64(p) }
    }

    #[inline(always)]
    unsafe fn load(p: *const f64) -> float64x2_t {
        // SAFETY: the caller passes 2 readable numbers; the machine has NEON.
        unsafe { vld1q_f64(p) }
    }

    #[inline(always)]
    unsafe fn load_first(p: *const f64, n: usize) -> float64x2_t {
        // SAFETY: the caller passes n readable numbers, at most 2; the machine has NEON.
        unsafe {
            match n {
                0 => Self::zero(),
                1 => vld1q_lane_f64::<0>(p, Self::zero()),
                _ => vld1q_f64(p),
            }
        }
    }

    #[inline(always)]
    unsafe fn store(p: *mut f64, v: float64x2_t) {
        // SAFETY: the caller passes room for 2 numbers; the machine has NEON.
        unsafe { vst1q_f64(p, v) }
    }

    #[inline(always)]
    unsafe fn store_first(p: *mut f64, n: usize, v: float64x2_t) {
        // SAFETY: the caller passes room for n numbers, at most 2; the machine has NEON.
        unsafe {
            match n {
                0 => (),
                1 => vst1q_lane_f64::<0>(p, v),
                _ => vst1q_f64(p, v),
            }
        }
    }

    #[inline(always)]
    unsafe fn mul_add(a: float64x2_t, b: float64x2_t, c: float64x2_t) -> float64x2_t {
        // SAFETY: the machine has NEON.
        unsafe { vfmaq_f64(c, a, b) }
    }

    #[inline(always)]
    unsafe fn mul_add_lane(
        a: float64x2_t,
        lane: usize,
        b: float64x2_t,
        c: float64x2_t,
    ) -> float64x2_t {
        // SAFETY: the machine has NEON.
        unsafe {
            match lane {
                0 => vfmaq_laneq_f64::<0>(c, b, a),
                _ => vfmaq_laneq_f64::<1>(c, b, a),
            }
        }
    }

    #[inline(always)]
    unsafe fn add(a: float64x2_t, b: float64x2_t) -> float64x2_t {
        // SAFETY: the machine has NEON.
        unsafe { vaddq_f64(a, b) }
    }

    #[inline(always)]
    unsafe fn sum(v: float64x2_t) -> f64 {
        // SAFETY: the machine has NEON.
        unsafe { vaddvq_f64(v) }
    }

    #[inline(always)]
    unsafe fn transpose(r: &mut [float64x2_t; MAX_LANES]) {
        // SAFETY: the machine has NEON; only registers are touched.
        unsafe { (r[0], r[1]) = (vtrn1q_f64(r[0], r[1]), vtrn2q_f64(r[0], r[1])) }
    }
}

/// Implements [`Load`] from a full load and its widening; partial loads copy to an array first.
macro_rules! load {
    ($simd:ty, $elem:ty, |$p:ident| $load:expr) => {
        impl Load<$elem> for $simd {
            #[inline(always)]
            unsafe fn load_from(p: *const $elem) -> Self::V {
                let $p = p.cast();
                // SAFETY: the caller passes LANES readable numbers; the machine has NEON.
                unsafe { $load }
            }

            #[inline(always)]
            unsafe fn load_first_from(p: *const $elem, n: usize) -> Self::V {
                let mut lanes = [<$elem>::ZERO; <$simd>::LANES];
                // SAFETY: the caller passes n readable numbers, at most LANES.
                unsafe {
                    lanes.as_mut_ptr().copy_from_nonoverlapping(p, n);
                    Self::load_from(lanes.as_ptr())
                }
            }

            #[inline(always)]
            unsafe fn insert_from(v: Self::V, p: *const $elem, lo: usize, hi: usize) -> Self::V {
                let mut lanes = [0.0; <$simd>::LANES];
                // SAFETY: the array has LANES numbers; lanes lo..hi of p are readable.
                unsafe {
                    Self::store(lanes.as_mut_ptr(), v);
                    for i in lo..hi {
                        lanes[i] = convert(*p.wrapping_add(i));
                    }
                    Self::load(lanes.as_ptr())
                }
            }
        }
    };
}

/// Two numbers of 16 bits in the first lanes, zero in the others.
#[inline(always)]
unsafe fn load_two(p: *const u32) -> uint16x4_t {
    // SAFETY: the caller passes 4 readable bytes; the machine has NEON.
    unsafe { vreinterpret_u16_u32(vset_lane_u32::<0>(p.read_unaligned(), vdup_n_u32(0))) }
}

load!(F32, f32, |p| vld1q_f32(p));
load!(F64, f64, |p| vld1q_f64(p));
load!(F64, f32, |p| vcvt_f64_f32(vld1_f32(p)));
load!(F32, f16, |p| widen_f16(vld1_u16(p)));
load!(F64, f16, |p| vcvt_f64_f32(vget_low_f32(widen_f16(load_two(p)))));
load!(F32, bf16, |p| widen_bf16(vld1_u16(p)));
load!(F64, bf16, |p| vcvt_f64_f32(vget_low_f32(widen_bf16(load_two(p)))));

save_as_it_is!(F32, f32);
save_as_it_is!(F64, f64);
save_by_element!(F32, f64);
save_by_element!(F64, f16, bf16, f32);

/// Writes `n` of four halves.
#[inline(always)]
unsafe fn store_halves<E: Copy>(p: *mut E, n: usize, v: uint16x4_t) {
    let mut lanes = [0_u16; 4];
    // SAFETY: E is a 16-bit type; the array holds 4, the caller's room n of them.
    unsafe {
        if n == 4 {
            return vst1_u16(p.cast(), v);
        }
        vst1_u16(lanes.as_mut_ptr(), v);
        p.cast::<u16>().copy_from_nonoverlapping(lanes.as_ptr(), n);
    }
}

impl Save<f16> for F32 {
    #[inline(always)]
    unsafe fn save_first(p: *mut f16, n: usize, v: float32x4_t) {
        // SAFETY: the caller passes room for n elements; the machine has NEON.
        unsafe { store_halves(p, n, narrow_f16(v)) }
    }
}

impl Save<bf16> for F32 {
    #[inline(always)]
    unsafe fn save_first(p: *mut bf16, n: usize, v: float32x4_t) {
        // SAFETY: the caller passes room for n elements; the machine has NEON.
        unsafe { store_halves(p, n, narrow_bf16(v)) }
    }
}
