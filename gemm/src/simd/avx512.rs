//! 512-bit vectors: 16 f32 or 8 f64, tails by mask registers.
//!
//! Needs AVX-512 F, BW, DQ and VL, which every machine with 512-bit vectors worth using has
//! (Skylake-X of 2017 on, Zen 4 on); these imply AVX2, FMA and F16C.

use super::bytes::Baseline;
use super::{
    Factors, Interleave, Load, MAX_LANES, Save, Simd, Zip, save_as_it_is, save_by_element,
};
use half::{bf16, f16};
use std::arch::x86_64::*;

/// 16 f32.
#[derive(Clone, Copy)]
pub(crate) struct F32;

/// 8 f64.
#[derive(Clone, Copy)]
pub(crate) struct F64;

/// 16 pairs of bf16 as factors, 16 f32 as sums; needs AVX-512 BF16, too (Zen 4, Cooper Lake).
#[derive(Clone, Copy)]
pub(crate) struct Pairs;

/// Mask of lanes `lo..hi`.
#[inline(always)]
fn mask16(lo: usize, hi: usize) -> __mmask16 {
    ((1_u32 << hi) - (1_u32 << lo)) as __mmask16
}

/// Mask of lanes `lo..hi`.
#[inline(always)]
fn mask8(lo: usize, hi: usize) -> __mmask8 {
    ((1_u32 << hi) - (1_u32 << lo)) as __mmask8
}

// In this file every intrinsic is called under the invariant of the module above: the machine has
// the features. Masked loads and stores do not touch, nor fault on, lanes that are masked out.

impl Simd for F32 {
    type Elem = f32;
    type V = __m512;
    const LANES: usize = 16;

    #[inline(always)]
    unsafe fn zero() -> __m512 {
        // SAFETY: the machine has AVX-512.
        unsafe { _mm512_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn splat(p: *const f32) -> __m512 {
        // SAFETY: the caller passes a readable number; the machine has AVX-512.
        unsafe { _mm512_set1_ps(*p) }
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> __m512 {
        // SAFETY: the caller passes 16 readable numbers; the machine has AVX-512.
        unsafe { _mm512_loadu_ps(p) }
    }

    #[inline(always)]
    unsafe fn load_first(p: *const f32, n: usize) -> __m512 {
        // SAFETY: the mask admits the n numbers the caller passes; the machine has AVX-512.
        unsafe { _mm512_maskz_loadu_ps(mask16(0, n), p) }
    }

    #[inline(always)]
    unsafe fn store(p: *mut f32, v: __m512) {
        // SAFETY: the caller passes room for 16 numbers; the machine has AVX-512.
        unsafe { _mm512_storeu_ps(p, v) }
    }

    #[inline(always)]
    unsafe fn store_first(p: *mut f32, n: usize, v: __m512) {
        // SAFETY: the mask admits the n numbers the caller passes; the machine has AVX-512.
        unsafe { _mm512_mask_storeu_ps(p, mask16(0, n), v) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: the machine has AVX-512.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn add(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the machine has AVX-512.
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn sum(v: __m512) -> f32 {
        // SAFETY: the machine has AVX-512.
        unsafe { _mm512_reduce_add_ps(v) }
    }

    /// Four rounds of pairwise interleaving: numbers, pairs, then the 128-bit quarters twice.
    #[inline(always)]
    unsafe fn transpose(r: &mut [__m512; MAX_LANES]) {
        // SAFETY: the machine has AVX-512; only registers are touched.
        unsafe {
            for i in 0..8 {
                let (x, y) = (r[2 * i], r[2 * i + 1]);
                r[2 * i] = _mm512_unpacklo_ps(x, y);
                r[2 * i + 1] = _mm512_unpackhi_ps(x, y);
            }
            for i in 0..4 {
                let (a, b) = (_mm512_castps_pd(r[4 * i]), _mm512_castps_pd(r[4 * i + 2]));
                let (c, d) = (_mm512_castps_pd(r[4 * i + 1]), _mm512_castps_pd(r[4 * i + 3]));
                r[4 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
                r[4 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
                r[4 * i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(c, d));
                r[4 * i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(c, d));
            }
            // r[4 i + j] now holds, in quarter q, column 4 q + j of rows 4 i .. 4 i + 4.
            for j in 0..4 {
                let [a, b, c, d] = [r[j], r[4 + j], r[8 + j], r[12 + j]];
                let even_ab = _mm512_shuffle_f32x4::<0x88>(a, b);
                let even_cd = _mm512_shuffle_f32x4::<0x88>(c, d);
                let odd_ab = _mm512_shuffle_f32x4::<0xdd>(a, b);
                let odd_cd = _mm512_shuffle_f32x4::<0xdd>(c, d);
                r[j] = _mm512_shuffle_f32x4::<0x88>(even_ab, even_cd);
                r[8 + j] = _mm512_shuffle_f32x4::<0xdd>(even_ab, even_cd);
                r[4 + j] = _mm512_shuffle_f32x4::<0x88>(odd_ab, odd_cd);
                r[12 + j] = _mm512_shuffle_f32x4::<0xdd>(odd_ab, odd_cd);
            }
        }
    }
}

/// What does not multiply is done as with [`F32`]: there it makes no difference what the bits mean.
impl Simd for Pairs {
    type Elem = f32;
    type V = __m512;
    const LANES: usize = F32::LANES;

    #[inline(always)]
    unsafe fn zero() -> __m512 {
        // SAFETY: the caller's contract.
        unsafe { F32::zero() }
    }

    #[inline(always)]
    unsafe fn splat(p: *const f32) -> __m512 {
        // SAFETY: the caller's contract.
        unsafe { F32::splat(p) }
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> __m512 {
        // SAFETY: the caller's contract.
        unsafe { F32::load(p) }
    }

    #[inline(always)]
    unsafe fn load_first(p: *const f32, n: usize) -> __m512 {
        // SAFETY: the caller's contract.
        unsafe { F32::load_first(p, n) }
    }

    #[inline(always)]
    unsafe fn store(p: *mut f32, v: __m512) {
        // SAFETY: the caller's contract.
        unsafe { F32::store(p, v) }
    }

    #[inline(always)]
    unsafe fn store_first(p: *mut f32, n: usize, v: __m512) {
        // SAFETY: the caller's contract.
        unsafe { F32::store_first(p, n, v) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: the machine has AVX-512 BF16; all vectors of 512 bits have the same bits.
        unsafe {
            let [a, b] = [a, b].map(|v| std::mem::transmute::<__m512, __m512bh>(v));
            _mm512_dpbf16_ps(c, a, b)
        }
    }

    #[inline(always)]
    unsafe fn add(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller's contract.
        unsafe { F32::add(a, b) }
    }

    #[inline(always)]
    unsafe fn sum(v: __m512) -> f32 {
        // SAFETY: the caller's contract.
        unsafe { F32::sum(v) }
    }

    #[inline(always)]
    unsafe fn transpose(r: &mut [__m512; MAX_LANES]) {
        // SAFETY: the caller's contract.
        unsafe { F32::transpose(r) }
    }
}

impl Zip for Pairs {
    #[inline(always)]
    unsafe fn zip(x: *const bf16, y: *const bf16) -> __m512 {
        // SAFETY: the caller passes 16 readable elements at both; the machine has AVX-512.
        unsafe {
            let [x, y] =
                [x, y].map(|p| _mm512_cvtepu16_epi32(_mm256_loadu_si256(p.cast::<__m256i>())));
            _mm512_castsi512_ps(_mm512_or_si512(x, _mm512_slli_epi32::<16>(y)))
        }
    }

    #[inline(always)]
    unsafe fn insert_zipped(
        v: __m512,
        x: *const bf16,
        y: Option<*const bf16>,
        lo: usize,
        hi: usize,
    ) -> __m512 {
        let mask = mask16(lo, hi);
        // SAFETY: the mask admits lanes lo..hi, which the caller passes as readable.
        unsafe {
            let wide =
                |p: *const bf16| _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, p.cast()));
            let mut pairs = wide(x);
            if let Some(y) = y {
                pairs = _mm512_or_si512(pairs, _mm512_slli_epi32::<16>(wide(y)));
            }
            _mm512_mask_blend_ps(mask, v, _mm512_castsi512_ps(pairs))
        }
    }
}

/// 16 quads of bytes, those of A signed; needs AVX-512 VNNI, too (Cascade Lake, Ice Lake, Zen 4).
#[derive(Clone, Copy)]
pub(crate) struct Quads;

/// Vectors of all kinds have the same bits.
#[inline(always)]
unsafe fn ints(v: __m512) -> __m512i {
    // SAFETY: the machine has AVX-512.
    unsafe { _mm512_castps_si512(v) }
}

/// As [`ints`], the other way.
#[inline(always)]
unsafe fn floats(v: __m512i) -> __m512 {
    // SAFETY: the machine has AVX-512.
    unsafe { _mm512_castsi512_ps(v) }
}

impl Factors for Quads {
    type F = F32;
    const DEPTH: usize = 4;
    const SIGNED: Option<[bool; 2]> = Some([true, false]);

    #[inline(always)]
    unsafe fn dot(sums: __m512, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the machine has AVX-512 VNNI.
        unsafe { floats(_mm512_dpbusd_epi32(ints(sums), ints(b), ints(a))) }
    }

    #[inline(always)]
    unsafe fn add_up(sums: __m512, factors: __m512, side: usize) -> __m512 {
        // SAFETY: the machine has AVX-512 VNNI.
        unsafe {
            let ones = floats(_mm512_set1_epi8(1));
            if side == 0 { Self::dot(sums, factors, ones) } else { Self::dot(sums, ones, factors) }
        }
    }

    #[inline(always)]
    unsafe fn add(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the machine has AVX-512.
        unsafe { floats(_mm512_add_epi32(ints(a), ints(b))) }
    }

    #[inline(always)]
    unsafe fn scale(sums: __m512, term: i32, factor: i32) -> __m512 {
        // SAFETY: the machine has AVX-512.
        unsafe {
            let sums = _mm512_add_epi32(ints(sums), _mm512_set1_epi32(term));
            floats(_mm512_mullo_epi32(sums, _mm512_set1_epi32(factor)))
        }
    }
}

/// [`Baseline`] with masks.
#[derive(Clone, Copy)]
pub(crate) struct Masked;

impl Interleave for Masked {
    type Row = __m128i;
    const FORM: Option<(usize, usize)> = Some((Quads::DEPTH, F32::LANES));

    #[inline(always)]
    unsafe fn no_row() -> __m128i {
        // SAFETY: the caller's contract.
        unsafe { Baseline::no_row() }
    }

    #[inline(always)]
    unsafe fn row(p: *const u8) -> __m128i {
        // SAFETY: the caller's contract.
        unsafe { Baseline::row(p) }
    }

    #[inline(always)]
    unsafe fn insert(row: __m128i, p: *const u8, step: isize, (lo, hi): (usize, usize)) -> __m128i {
        // SAFETY: the masks admit lanes lo..hi, which the caller passes as readable, and what lies between
        // two of them.
        unsafe {
            match step {
                1 => _mm_mask_loadu_epi8(row, mask16(lo, hi), p.cast()),
                2 => {
                    let admitted = ((1_u64 << (2 * hi - 1)) - (1 << (2 * lo))) as __mmask32;
                    let both = _mm256_maskz_loadu_epi8(admitted, p.cast());
                    _mm_or_si128(row, _mm256_cvtepi16_epi8(both))
                }
                _ => Baseline::insert(row, p, step, (lo, hi)),
            }
        }
    }

    /// The rows are quarters of a vector, whose doublewords are transposed, then the bytes of each
    /// quarter.
    #[inline(always)]
    unsafe fn interleave(rows: [__m128i; 4], mask: u8, depth: usize, dst: *mut f32, n: usize) {
        let [a, b, c, d] = rows;
        // SAFETY: the caller passes room for so many numbers; the machine has AVX-512.
        unsafe {
            if (n, depth) != (F32::LANES, Quads::DEPTH) {
                return Baseline::interleave(rows, mask, depth, dst, n);
            }
            let rows = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(a), b);
            let rows = _mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(rows, c), d);
            let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            let rows = _mm512_permutexvar_epi32(order, rows);
            let bytes = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            let quads = _mm512_shuffle_epi8(rows, _mm512_broadcast_i32x4(bytes));
            let quads = _mm512_xor_si512(quads, _mm512_set1_epi8(mask.cast_signed()));
            F32::store(dst, floats(quads));
        }
    }

    #[inline(always)]
    unsafe fn transpose(
        columns: [*const u8; 4],
        mask: u8,
        depth: usize,
        dst: *mut f32,
        stride: usize,
    ) {
        // SAFETY: the caller's contract.
        unsafe { Baseline::transpose(columns, mask, depth, dst, stride) }
    }
}

impl Simd for F64 {
    type Elem = f64;
    type V = __m512d;
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn zero() -> __m512d {
        // SAFETY: the machine has AVX-512.
        unsafe { _mm512_setzero_pd() }
    }

    #[inline(always)]
    unsafe fn splat(p: *const f64) -> __m512d {
        // SAFETY: the caller passes a readable number; the machine has AVX-512.
        unsafe { _mm512_set1_pd(*p) }
    }

    #[inline(always)]
    unsafe fn load(p: *const f64) -> __m512d {
        // SAFETY: the caller passes 8 readable numbers; the machine has AVX-512.
        unsafe { _mm512_loadu_pd(p) }
    }

    #[inline(always)]
    unsafe fn load_first(p: *const f64, n: usize) -> __m512d {
        // SAFETY: the mask admits the n numbers the caller passes; the machine has AVX-512.
        unsafe { _mm512_maskz_loadu_pd(mask8(0, n), p) }
    }

    #[inline(always)]
    unsafe fn store(p: *mut f64, v: __m512d) {
        // SAFETY: the caller passes room for 8 numbers; the machine has AVX-512.
        unsafe { _mm512_storeu_pd(p, v) }
    }

    #[inline(always)]
    unsafe fn store_first(p: *mut f64, n: usize, v: __m512d) {
        // SAFETY: the mask admits the n numbers the caller passes; the machine has AVX-512.
        unsafe { _mm512_mask_storeu_pd(p, mask8(0, n), v) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: __m512d, b: __m512d, c: __m512d) -> __m512d {
        // SAFETY: the machine has AVX-512.
        unsafe { _mm512_fmadd_pd(a, b, c) }
    }

    #[inline(always)]
    unsafe fn add(a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: the machine has AVX-512.
        unsafe { _mm512_add_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn sum(v: __m512d) -> f64 {
        // SAFETY: the machine has AVX-512.
        unsafe { _mm512_reduce_add_pd(v) }
    }

    /// Pairs by interleaving, then the 128-bit quarters twice.
    #[inline(always)]
    unsafe fn transpose(r: &mut [__m512d; MAX_LANES]) {
        // SAFETY: the machine has AVX-512; only registers are touched.
        unsafe {
            for i in 0..4 {
                let (x, y) = (r[2 * i], r[2 * i + 1]);
                r[2 * i] = _mm512_unpacklo_pd(x, y);
                r[2 * i + 1] = _mm512_unpackhi_pd(x, y);
            }
            // r[2 i + j] now holds, in quarter q, column 2 q + j of rows 2 i and 2 i + 1.
            for j in 0..2 {
                let [a, b, c, d] = [r[j], r[2 + j], r[4 + j], r[6 + j]];
                let even_ab = _mm512_shuffle_f64x2::<0x88>(a, b);
                let even_cd = _mm512_shuffle_f64x2::<0x88>(c, d);
                let odd_ab = _mm512_shuffle_f64x2::<0xdd>(a, b);
                let odd_cd = _mm512_shuffle_f64x2::<0xdd>(c, d);
                r[j] = _mm512_shuffle_f64x2::<0x88>(even_ab, even_cd);
                r[4 + j] = _mm512_shuffle_f64x2::<0xdd>(even_ab, even_cd);
                r[2 + j] = _mm512_shuffle_f64x2::<0x88>(odd_ab, odd_cd);
                r[6 + j] = _mm512_shuffle_f64x2::<0xdd>(odd_ab, odd_cd);
            }
        }
    }
}

/// Implements [`Load`] from a masked load into a register of the source type and a widening.
macro_rules! load {
    ($simd:ty, $elem:ty, $mask:ident, $blend:ident, $raw:ident, |$v:ident| $widen:expr) => {
        impl Load<$elem> for $simd {
            #[inline(always)]
            unsafe fn load_from(p: *const $elem) -> Self::V {
                // SAFETY: the caller passes LANES readable numbers; the machine has AVX-512.
                unsafe {
                    let $v = $raw(!0, p.cast());
                    $widen
                }
            }

            #[inline(always)]
            unsafe fn load_first_from(p: *const $elem, n: usize) -> Self::V {
                // SAFETY: the mask admits the n numbers the caller passes.
                unsafe {
                    let $v = $raw($mask(0, n), p.cast());
                    $widen
                }
            }

            #[inline(always)]
            unsafe fn insert_from(v: Self::V, p: *const $elem, lo: usize, hi: usize) -> Self::V {
                let mask = $mask(lo, hi);
                // SAFETY: the mask admits lanes lo..hi, which the caller passes as readable.
                unsafe {
                    let $v = $raw(mask, p.cast());
                    $blend(mask, v, $widen)
                }
            }
        }
    };
}

load!(F32, f32, mask16, _mm512_mask_blend_ps, _mm512_maskz_loadu_ps, |v| v);
load!(F64, f64, mask8, _mm512_mask_blend_pd, _mm512_maskz_loadu_pd, |v| v);
load!(F64, f32, mask8, _mm512_mask_blend_pd, _mm256_maskz_loadu_ps, |v| _mm512_cvtps_pd(v));
load!(F32, f16, mask16, _mm512_mask_blend_ps, _mm256_maskz_loadu_epi16, |v| _mm512_cvtph_ps(v));
load!(F64, f16, mask8, _mm512_mask_blend_pd, _mm_maskz_loadu_epi16, |v| {
    _mm512_cvtps_pd(_mm256_cvtph_ps(v))
});
// A bf16 is the upper half of the f32 of the same value.
load!(F32, bf16, mask16, _mm512_mask_blend_ps, _mm256_maskz_loadu_epi16, |v| {
    _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(v)))
});
load!(F64, bf16, mask8, _mm512_mask_blend_pd, _mm_maskz_loadu_epi16, |v| {
    _mm512_cvtps_pd(_mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(v))))
});

save_as_it_is!(F32, f32);
save_as_it_is!(F64, f64);
save_by_element!(F32, f64);
save_by_element!(F64, f16, bf16, f32);

impl Save<f16> for F32 {
    #[inline(always)]
    unsafe fn save_first(p: *mut f16, n: usize, v: __m512) {
        // SAFETY: the mask admits the n elements the caller passes; the machine has AVX-512.
        unsafe {
            let half = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v);
            _mm256_mask_storeu_epi16(p.cast(), mask16(0, n), half);
        }
    }
}

impl Save<bf16> for F32 {
    /// Round to nearest, ties to even, by adding half a unit less one and the bit that decides
    /// ties; a NaN becomes quiet instead, lest the sum carry it to infinity.
    #[inline(always)]
    unsafe fn save_first(p: *mut bf16, n: usize, v: __m512) {
        // SAFETY: the mask admits the n elements the caller passes; the machine has AVX-512.
        unsafe {
            let bits = _mm512_castps_si512(v);
            let lowest = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
            let up = _mm512_add_epi32(lowest, _mm512_set1_epi32(0x7fff));
            let rounded = _mm512_srli_epi32::<16>(_mm512_add_epi32(bits, up));
            let quiet = _mm512_or_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(0x40));
            let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(v, v);
            let half = _mm512_cvtepi32_epi16(_mm512_mask_blend_epi32(nan, rounded, quiet));
            _mm256_mask_storeu_epi16(p.cast(), mask16(0, n), half);
        }
    }
}
