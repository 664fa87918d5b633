//! 256-bit vectors with fused multiply-add: 8 f32 or 4 f64; tails through a small array.
//!
//! Needs AVX2, FMA and F16C (Haswell of 2013 on, all Zen). There are masked loads, used for f32 and
//! f64; masked stores exist too but take dozens of cycles on AMD, and tails of half precision have
//! none, so those copy.

use super::{Factors, Load, MAX_LANES, Save, Simd, convert, save_as_it_is, save_by_element};
use half::{bf16, f16};
use num_traits::ConstZero;
use std::arch::x86_64::*;

/// 8 f32.
#[derive(Clone, Copy)]
pub(crate) struct F32;

/// 4 f64.
#[derive(Clone, Copy)]
pub(crate) struct F64;

/// The eight or four numbers from `MASK.len() / 2 - n` on have the first n of them set.
const MASK32: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
const MASK64: [i64; 8] = [-1, -1, -1, -1, 0, 0, 0, 0];

/// Mask of the first `n` of eight lanes.
#[inline(always)]
unsafe fn mask8(n: usize) -> __m256i {
    debug_assert!(n <= 8);
    // SAFETY: n is at most 8, so 8 numbers follow; the machine has AVX2.
    unsafe { _mm256_loadu_si256(MASK32.as_ptr().add(8 - n).cast()) }
}

/// Mask of the first `n` of four lanes.
#[inline(always)]
unsafe fn mask4(n: usize) -> __m256i {
    debug_assert!(n <= 4);
    // SAFETY: n is at most 4, so 4 numbers follow; the machine has AVX2.
    unsafe { _mm256_loadu_si256(MASK64.as_ptr().add(4 - n).cast()) }
}

impl Simd for F32 {
    type Elem = f32;
    type V = __m256;
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn zero() -> __m256 {
        // SAFETY: the machine has AVX2.
        unsafe { _mm256_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn splat(p: *const f32) -> __m256 {
        // SAFETY: the caller passes a readable number; the machine has AVX2.
        unsafe { _mm256_broadcast_ss(&*p) }
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> __m256 {
        // SAFETY: the caller passes 8 readable numbers; the machine has AVX2.
        unsafe { _mm256_loadu_ps(p) }
    }

    #[inline(always)]
    unsafe fn load_first(p: *const f32, n: usize) -> __m256 {
        // SAFETY: the mask admits the n numbers the caller passes; the machine has AVX2.
        unsafe { _mm256_maskload_ps(p, mask8(n)) }
    }

    #[inline(always)]
    unsafe fn store(p: *mut f32, v: __m256) {
        // SAFETY: the caller passes room for 8 numbers; the machine has AVX2.
        unsafe { _mm256_storeu_ps(p, v) }
    }

    #[inline(always)]
    unsafe fn store_first(p: *mut f32, n: usize, v: __m256) {
        let mut lanes = [0.0_f32; 8];
        // SAFETY: the array holds 8 numbers, the caller's room n of them; the machine has AVX2.
        unsafe {
            _mm256_storeu_ps(lanes.as_mut_ptr(), v);
            p.copy_from_nonoverlapping(lanes.as_ptr(), n);
        }
    }

    #[inline(always)]
    unsafe fn mul_add(a: __m256, b: __m256, c: __m256) -> __m256 {
        // SAFETY: the machine has FMA.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn add(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the machine has AVX2.
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn sum(v: __m256) -> f32 {
        // SAFETY: the machine has AVX2.
        unsafe {
            let v = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
            let v = _mm_add_ps(v, _mm_movehl_ps(v, v));
            _mm_cvtss_f32(_mm_add_ss(v, _mm_movehdup_ps(v)))
        }
    }

    /// Numbers, pairs, then the 128-bit halves.
    #[inline(always)]
    unsafe fn transpose(r: &mut [__m256; MAX_LANES]) {
        // SAFETY: the machine has AVX2; only registers are touched.
        unsafe {
            for i in 0..4 {
                let (x, y) = (r[2 * i], r[2 * i + 1]);
                r[2 * i] = _mm256_unpacklo_ps(x, y);
                r[2 * i + 1] = _mm256_unpackhi_ps(x, y);
            }
            for i in 0..2 {
                let (a, b, c, d) = (r[4 * i], r[4 * i + 1], r[4 * i + 2], r[4 * i + 3]);
                r[4 * i] = _mm256_shuffle_ps::<0x44>(a, c);
                r[4 * i + 1] = _mm256_shuffle_ps::<0xee>(a, c);
                r[4 * i + 2] = _mm256_shuffle_ps::<0x44>(b, d);
                r[4 * i + 3] = _mm256_shuffle_ps::<0xee>(b, d);
            }
            // r[4 i + j] now holds, in half h, column 4 h + j of rows 4 i .. 4 i + 4.
            for j in 0..4 {
                let (x, y) = (r[j], r[4 + j]);
                r[j] = _mm256_permute2f128_ps::<0x20>(x, y);
                r[4 + j] = _mm256_permute2f128_ps::<0x31>(x, y);
            }
        }
    }
}

/// 8 quads of bytes, those of A signed; needs AVX-VNNI, too (Alder Lake, Zen 5).
#[derive(Clone, Copy)]
pub(crate) struct Quads;

/// 8 pairs of words.
#[derive(Clone, Copy)]
pub(crate) struct Words;

/// Vectors of all kinds have the same bits.
#[inline(always)]
unsafe fn ints(v: __m256) -> __m256i {
    // SAFETY: the machine has AVX2.
    unsafe { _mm256_castps_si256(v) }
}

/// As [`ints`], the other way.
#[inline(always)]
unsafe fn floats(v: __m256i) -> __m256 {
    // SAFETY: the machine has AVX2.
    unsafe { _mm256_castsi256_ps(v) }
}

/// What does not depend on the size of factors.
macro_rules! eight_factors {
    () => {
        type F = F32;

        #[inline(always)]
        unsafe fn add(a: __m256, b: __m256) -> __m256 {
            // SAFETY: the machine has AVX2.
            unsafe { floats(_mm256_add_epi32(ints(a), ints(b))) }
        }
    };
}

impl Factors for Quads {
    eight_factors!();
    const DEPTH: usize = 4;
    const SIGNED: Option<[bool; 2]> = Some([true, false]);

    #[inline(always)]
    unsafe fn dot(sums: __m256, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the machine has AVX-VNNI.
        unsafe { floats(_mm256_dpbusd_avx_epi32(ints(sums), ints(b), ints(a))) }
    }

    #[inline(always)]
    unsafe fn add_up(sums: __m256, factors: __m256, side: usize) -> __m256 {
        // SAFETY: the machine has AVX-VNNI.
        unsafe {
            let ones = floats(_mm256_set1_epi8(1));
            if side == 0 { Self::dot(sums, factors, ones) } else { Self::dot(sums, ones, factors) }
        }
    }

    #[inline(always)]
    unsafe fn scale(sums: __m256, term: i32, factor: i32) -> __m256 {
        // SAFETY: the machine has AVX2.
        unsafe {
            let sums = _mm256_add_epi32(ints(sums), _mm256_set1_epi32(term));
            floats(_mm256_mullo_epi32(sums, _mm256_set1_epi32(factor)))
        }
    }
}

impl Factors for Words {
    eight_factors!();
    const DEPTH: usize = 2;
    const SIGNED: Option<[bool; 2]> = None;
    const OPS: f64 = 2.0;

    #[inline(always)]
    unsafe fn dot(sums: __m256, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the machine has AVX2.
        unsafe { floats(_mm256_add_epi32(ints(sums), _mm256_madd_epi16(ints(a), ints(b)))) }
    }

    #[inline(always)]
    unsafe fn add_up(_: __m256, _: __m256, _: usize) -> __m256 {
        unreachable!("invariant: words need no sums")
    }

    #[inline(always)]
    unsafe fn scale(_: __m256, _: i32, _: i32) -> __m256 {
        unreachable!("invariant: words need no sums")
    }
}

impl Simd for F64 {
    type Elem = f64;
    type V = __m256d;
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn zero() -> __m256d {
        // SAFETY: the machine has AVX2.
        unsafe { _mm256_setzero_pd() }
    }

    #[inline(always)]
    unsafe fn splat(p: *const f64) -> __m256d {
        // SAFETY: the caller passes a readable number; the machine has AVX2.
        unsafe { _mm256_broadcast_sd(&*p) }
    }

    #[inline(always)]
    unsafe fn load(p: *const f64) -> __m256d {
        // SAFETY: the caller passes 4 readable numbers; the machine has AVX2.
        unsafe { _mm256_loadu_pd(p) }
    }

    #[inline(always)]
    unsafe fn load_first(p: *const f64, n: usize) -> __m256d {
        // SAFETY: the mask admits the n numbers the caller passes; the machine has AVX2.
        unsafe { _mm256_maskload_pd(p, mask4(n)) }
    }

    #[inline(always)]
    unsafe fn store(p: *mut f64, v: __m256d) {
        // SAFETY: the caller passes room for 4 numbers; the machine has AVX2.
        unsafe { _mm256_storeu_pd(p, v) }
    }

    #[inline(always)]
    unsafe fn store_first(p: *mut f64, n: usize, v: __m256d) {
        let mut lanes = [0.0_f64; 4];
        // SAFETY: the array holds 4 numbers, the caller's room n of them; the machine has AVX2.
        unsafe {
            _mm256_storeu_pd(lanes.as_mut_ptr(), v);
            p.copy_from_nonoverlapping(lanes.as_ptr(), n);
        }
    }

    #[inline(always)]
    unsafe fn mul_add(a: __m256d, b: __m256d, c: __m256d) -> __m256d {
        // SAFETY: the machine has FMA.
        unsafe { _mm256_fmadd_pd(a, b, c) }
    }

    #[inline(always)]
    unsafe fn add(a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: the machine has AVX2.
        unsafe { _mm256_add_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn sum(v: __m256d) -> f64 {
        // SAFETY: the machine has AVX2.
        unsafe {
            let v = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd::<1>(v));
            _mm_cvtsd_f64(_mm_add_sd(v, _mm_unpackhi_pd(v, v)))
        }
    }

    /// Pairs by interleaving, then the 128-bit halves.
    #[inline(always)]
    unsafe fn transpose(r: &mut [__m256d; MAX_LANES]) {
        // SAFETY: the machine has AVX2; only registers are touched.
        unsafe {
            for i in 0..2 {
                let (x, y) = (r[2 * i], r[2 * i + 1]);
                r[2 * i] = _mm256_unpacklo_pd(x, y);
                r[2 * i + 1] = _mm256_unpackhi_pd(x, y);
            }
            for j in 0..2 {
                let (x, y) = (r[j], r[2 + j]);
                r[j] = _mm256_permute2f128_pd::<0x20>(x, y);
                r[2 + j] = _mm256_permute2f128_pd::<0x31>(x, y);
            }
        }
    }
}

/// Implements [`Load`] from a full load and its widening; partial loads copy to an array first.
macro_rules! load {
    ($simd:ty, $elem:ty, $raw:ident, |$v:ident| $widen:expr) => {
        impl Load<$elem> for $simd {
            #[inline(always)]
            unsafe fn load_from(p: *const $elem) -> Self::V {
                // SAFETY: the caller passes LANES readable numbers; the machine has AVX2.
                unsafe {
                    let $v = $raw(p.cast());
                    $widen
                }
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

load!(F32, f32, _mm256_loadu_ps, |v| v);
load!(F64, f64, _mm256_loadu_pd, |v| v);
load!(F64, f32, _mm_loadu_ps, |v| _mm256_cvtps_pd(v));
load!(F32, f16, _mm_loadu_si128, |v| _mm256_cvtph_ps(v));
load!(F64, f16, _mm_loadl_epi64, |v| _mm256_cvtps_pd(_mm_cvtph_ps(v)));
// A bf16 is the upper half of the f32 of the same value.
load!(F32, bf16, _mm_loadu_si128, |v| {
    _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(v)))
});
load!(F64, bf16, _mm_loadl_epi64, |v| {
    _mm256_cvtps_pd(_mm_castsi128_ps(_mm_slli_epi32::<16>(_mm_cvtepu16_epi32(v))))
});

save_as_it_is!(F32, f32);
save_as_it_is!(F64, f64);
save_by_element!(F32, f64);
save_by_element!(F64, f16, bf16, f32);

/// Writes `n` of eight halves.
#[inline(always)]
unsafe fn store_halves<E: Copy>(p: *mut E, n: usize, v: __m128i) {
    let mut lanes = [0_u16; 8];
    // SAFETY: E is a 16-bit type; the array holds 8, the caller's room n of them.
    unsafe {
        if n == 8 {
            return _mm_storeu_si128(p.cast(), v);
        }
        _mm_storeu_si128(lanes.as_mut_ptr().cast(), v);
        p.cast::<u16>().copy_from_nonoverlapping(lanes.as_ptr(), n);
    }
}

impl Save<f16> for F32 {
    #[inline(always)]
    unsafe fn save_first(p: *mut f16, n: usize, v: __m256) {
        // SAFETY: the caller passes room for n elements; the machine has F16C.
        unsafe { store_halves(p, n, _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v)) }
    }
}

impl Save<bf16> for F32 {
    /// As with 512 bits: add half a unit less one and the bit that decides ties; quiet NaNs.
    #[inline(always)]
    unsafe fn save_first(p: *mut bf16, n: usize, v: __m256) {
        // SAFETY: the caller passes room for n elements; the machine has AVX2.
        unsafe {
            let bits = _mm256_castps_si256(v);
            let lowest = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
            let up = _mm256_add_epi32(lowest, _mm256_set1_epi32(0x7fff));
            let rounded = _mm256_srli_epi32::<16>(_mm256_add_epi32(bits, up));
            let quiet = _mm256_or_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(0x40));
            let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(v, v));
            let wide = _mm256_blendv_epi8(rounded, quiet, nan);
            let (low, high) = (_mm256_castsi256_si128(wide), _mm256_extracti128_si256::<1>(wide));
            store_halves(p, n, _mm_packus_epi32(low, high));
        }
    }
}
