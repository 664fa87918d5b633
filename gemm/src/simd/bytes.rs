//! Moves of bytes in vectors of 16, for the copies in `bytes.rs`: they need no instruction set but the
//! one every machine of its kind has, so that one instance of them serves all kernels.

use super::Interleave;
use crate::bytes::few;

#[cfg(target_arch = "aarch64")]
use std::arch::aarch64::*;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// What every machine has.
#[derive(Clone, Copy)]
pub(crate) struct Baseline;

#[cfg(target_arch = "x86_64")]
type V = __m128i;
#[cfg(target_arch = "aarch64")]
type V = uint8x16_t;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
type V = [u8; 16];

// In this file an intrinsic is part of what the target has everywhere, SSE2 or NEON, and but for loads and
// stores touches registers only.

/// What machines without vectors do.
#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod arrays {
    /// [`super::zip`].
    pub(super) fn zip<const BYTES: usize>(x: [u8; 16], y: [u8; 16]) -> [[u8; 16]; 2] {
        [0, 8].map(|from| {
            std::array::from_fn(|i| {
                let (element, byte) = (i / (2 * BYTES), i % BYTES);
                let of = if (i / BYTES).is_multiple_of(2) { x } else { y };
                of[from + element * BYTES + byte]
            })
        })
    }

    /// Subtracts `mask` from each of eight words, whose lower bytes come first.
    pub(super) fn subtract(v: [u8; 16], mask: u8) -> [u8; 16] {
        let word = |i: usize| u16::from_le_bytes([v[i], v[i + 1]]).wrapping_sub(mask.into());
        std::array::from_fn(|i| word(i / 2 * 2).to_ne_bytes()[i % 2])
    }
}

/// Lets elements of so many bytes of two vectors alternate.
#[inline(always)]
fn zip<const BYTES: usize>(x: V, y: V) -> [V; 2] {
    // SAFETY: see above.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        match BYTES {
            1 => [_mm_unpacklo_epi8(x, y), _mm_unpackhi_epi8(x, y)],
            2 => [_mm_unpacklo_epi16(x, y), _mm_unpackhi_epi16(x, y)],
            4 => [_mm_unpacklo_epi32(x, y), _mm_unpackhi_epi32(x, y)],
            _ => [_mm_unpacklo_epi64(x, y), _mm_unpackhi_epi64(x, y)],
        }
    }
    // SAFETY: see above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        macro_rules! zip {
            ($low:ident $high:ident $to:ident $from:ident) => {
                [$from($low($to(x), $to(y))), $from($high($to(x), $to(y)))]
            };
        }
        match BYTES {
            1 => [vzip1q_u8(x, y), vzip2q_u8(x, y)],
            2 => zip!(vzip1q_u16 vzip2q_u16 vreinterpretq_u16_u8 vreinterpretq_u8_u16),
            4 => zip!(vzip1q_u32 vzip2q_u32 vreinterpretq_u32_u8 vreinterpretq_u8_u32),
            _ => zip!(vzip1q_u64 vzip2q_u64 vreinterpretq_u64_u8 vreinterpretq_u8_u64),
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    arrays::zip::<BYTES>(x, y)
}

/// A vector from its bytes, the first lowest.
#[inline(always)]
fn vector(bytes: u128) -> V {
    let bytes = bytes.to_le_bytes();
    // SAFETY: all vectors of 16 bytes have the same bits.
    unsafe { bytes.as_ptr().cast::<V>().read_unaligned() }
}

/// The other way.
#[inline(always)]
fn bytes(v: V) -> u128 {
    // SAFETY: all vectors of 16 bytes have the same bits.
    u128::from_le_bytes(unsafe { (&raw const v).cast::<[u8; 16]>().read() })
}

/// Inverts bits of each byte.
#[inline(always)]
fn invert(v: V, mask: u8) -> V {
    // SAFETY: see above.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        _mm_xor_si128(v, _mm_set1_epi8(mask.cast_signed()))
    }
    // SAFETY: see above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        veorq_u8(v, vdupq_n_u8(mask))
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    v.map(|byte| byte ^ mask)
}

/// The words of bytes of which `mask` is subtracted after its bits were inverted.
#[inline(always)]
fn words(v: V, mask: u8) -> [V; 2] {
    let wide = zip::<1>(invert(v, mask), vector(0));
    // SAFETY: see above.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        wide.map(|v| _mm_sub_epi16(v, _mm_set1_epi16(mask.into())))
    }
    // SAFETY: see above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        let mask = vdupq_n_u16(mask.into());
        wide.map(|v| vreinterpretq_u8_u16(vsubq_u16(vreinterpretq_u16_u8(v), mask)))
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    wide.map(|v| arrays::subtract(v, mask))
}

/// Writes a vector.
#[inline(always)]
unsafe fn store(to: *mut f32, v: V) {
    // SAFETY: the caller passes room for 16 bytes.
    unsafe { to.cast::<V>().write_unaligned(v) }
}

impl Interleave for Baseline {
    type Row = V;

    #[inline(always)]
    unsafe fn no_row() -> V {
        vector(0)
    }

    #[inline(always)]
    unsafe fn row(p: *const u8) -> V {
        // SAFETY: the caller passes 16 bytes.
        unsafe { p.cast::<V>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn insert(row: V, p: *const u8, step: isize, (lo, hi): (usize, usize)) -> V {
        // SAFETY: the caller passes these lanes.
        let new = unsafe { few(p.wrapping_offset(step * lo as isize), step, hi - lo) };
        vector(bytes(row) | new << (8 * lo))
    }

    #[inline(always)]
    unsafe fn interleave(rows: [V; 4], mask: u8, depth: usize, dst: *mut f32, n: usize) {
        let [a, b, c, d] = rows;
        let ab = zip::<1>(a, b);
        let numbers = if depth == 2 {
            let [low, high] = ab.map(|v| words(v, mask));
            [low[0], low[1], high[0], high[1]]
        } else {
            let cd = zip::<1>(c, d);
            let [low, high] = [zip::<2>(ab[0], cd[0]), zip::<2>(ab[1], cd[1])];
            [low[0], low[1], high[0], high[1]].map(|v| invert(v, mask))
        };
        for (i, v) in numbers.into_iter().enumerate() {
            if 4 * i < n {
                // SAFETY: the caller passes room for so many numbers, in fours.
                unsafe { store(dst.wrapping_add(4 * i), v) };
            }
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
        // SAFETY: the caller passes columns of four numbers, and room for four rows of four.
        unsafe {
            let [a, b, c, d] = if depth == 2 {
                columns.map(|p| words(vector(few(p, 1, 8)), mask)[0])
            } else {
                columns.map(|p| invert(Self::row(p), mask))
            };
            let (ac, bd) = (zip::<4>(a, c), zip::<4>(b, d));
            for half in [0, 1] {
                let rows = zip::<4>(ac[half], bd[half]);
                for (i, v) in rows.into_iter().enumerate() {
                    store(dst.wrapping_add((2 * half + i) * stride), v);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_do_what_vectors_do() {
        let x: [u8; 16] = std::array::from_fn(|i| (i * 37 + 5) as u8);
        let y: [u8; 16] = std::array::from_fn(|i| (i * 91 + 130) as u8);
        let vectors = [x, y].map(|v| vector(u128::from_le_bytes(v)));
        let array = |v: V| bytes(v).to_le_bytes();
        let [a, b] = vectors;
        assert_eq!(zip::<1>(a, b).map(array), arrays::zip::<1>(x, y));
        assert_eq!(zip::<2>(a, b).map(array), arrays::zip::<2>(x, y));
        assert_eq!(zip::<4>(a, b).map(array), arrays::zip::<4>(x, y));
        assert_eq!(zip::<8>(a, b).map(array), arrays::zip::<8>(x, y));
        for mask in [0, 0x80] {
            let inverted = x.map(|byte| byte ^ mask);
            assert_eq!(array(invert(a, mask)), inverted);
            let wide = arrays::zip::<1>(inverted, [0; 16]);
            assert_eq!(words(a, mask).map(array), wide.map(|v| arrays::subtract(v, mask)));
        }
        // Signed bytes keep their values.
        let signed: Vec<i16> = x.iter().map(|&byte| byte.cast_signed().into()).collect();
        let all = words(a, 0x80).map(array).concat();
        let words: Vec<i16> = all.chunks(2).map(|w| i16::from_ne_bytes([w[0], w[1]])).collect();
        assert_eq!(words, signed);
    }

    #[test]
    fn few_bytes_are_read_at_any_step() {
        let from: [u8; 64] = std::array::from_fn(|i| (i * 7 + 3) as u8);
        for step in [-3_isize, -1, 1, 2, 4] {
            for n in 0..=if step.abs() > 3 { 15 } else { 16 } {
                let first: usize = if step < 0 { 60 } else { 0 };
                let mut want = [0; 16];
                for (i, byte) in want.iter_mut().enumerate().take(n) {
                    *byte = from[first.wrapping_add_signed(step * i as isize)];
                }
                // SAFETY: these bytes are in the array.
                let got = unsafe { few(from.as_ptr().wrapping_add(first), step, n) };
                assert_eq!(got.to_le_bytes(), want, "{n} bytes at steps of {step}");
            }
        }
    }
}
