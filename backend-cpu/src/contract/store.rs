//! From finished accumulators to C: conversion, addition to what is there, scatter.
//!
//! Used where the tile kernel cannot write C itself: C has another type than the accumulators, or
//! its rows are not contiguous. A contraction with an epilogue never comes here.

use super::offsets::Offsets;
use super::simd::{Element, MAX_LANES, Real, Simd};

/// A block of accumulators to write to C.
pub(super) struct Store<'a, T> {
    /// First accumulator of the block.
    pub(super) src: *const T,
    /// Accumulators between rows.
    pub(super) row_stride: usize,
    /// First element of the batch entry of C.
    pub(super) dst: *mut u8,
    /// Offsets along m in C.
    pub(super) m_offsets: &'a Offsets,
    /// Offsets along n in C.
    pub(super) n_offsets: &'a Offsets,
    /// First row.
    pub(super) m0: usize,
    /// Number of rows.
    pub(super) rows: usize,
    /// First column.
    pub(super) n0: usize,
    /// Number of columns.
    pub(super) columns: usize,
    /// Add to C instead of overwriting it.
    pub(super) accumulate: bool,
}

/// Writes a block.
///
/// # Safety
/// The accumulators must be readable, the elements of C described writable and not aliased, and
/// the machine must have the features of `S`.
#[inline(always)]
pub(super) unsafe fn store<S: Simd, E: Element>(s: &Store<'_, S::Elem>) {
    for m in 0..s.rows {
        let dst = s.dst.cast::<E>().wrapping_offset(s.m_offsets.at(s.m0 + m));
        let src = s.src.wrapping_add(m * s.row_stride);
        let mut n = 0;
        while n < s.columns {
            let run = s.n_offsets.left_in_run(s.n0 + n).min(s.columns - n);
            let to = dst.wrapping_offset(s.n_offsets.at(s.n0 + n));
            let from = src.wrapping_add(n);
            // SAFETY: the run lies inside row m of the block and of C.
            unsafe {
                if s.n_offsets.step == 1 {
                    adjacent::<S, E>(from, to, run, s.accumulate);
                } else {
                    scattered::<S, E>(from, to, s.n_offsets.step, run, s.accumulate);
                }
            }
            n += run;
        }
    }
}

/// Writes `n` adjacent elements, a vector at a time.
#[inline(always)]
unsafe fn adjacent<S: Simd, E: Element>(
    src: *const S::Elem,
    dst: *mut E,
    n: usize,
    accumulate: bool,
) {
    let mut i = 0;
    while i < n {
        let lanes = (n - i).min(S::LANES);
        let (from, to) = (src.wrapping_add(i), dst.wrapping_add(i));
        // SAFETY: `lanes` elements are left on both sides.
        unsafe {
            // Twice the same loop: of a known length the compiler converts whole vectors.
            if lanes == S::LANES {
                convert::<S, E>(from, to, S::LANES, accumulate);
            } else {
                convert::<S, E>(from, to, lanes, accumulate);
            }
        }
        i += lanes;
    }
}

/// Writes up to a vector of adjacent elements, through an array that aliases neither side.
#[inline(always)]
unsafe fn convert<S: Simd, E: Element>(
    src: *const S::Elem,
    dst: *mut E,
    lanes: usize,
    accumulate: bool,
) {
    let mut values = [S::Elem::ZERO; MAX_LANES];
    // SAFETY: the caller passes `lanes` elements on both sides, at most MAX_LANES.
    unsafe {
        values.as_mut_ptr().copy_from_nonoverlapping(src, lanes);
        if accumulate {
            for (j, value) in values.iter_mut().enumerate().take(lanes) {
                *value += S::Elem::from_element(*dst.wrapping_add(j));
            }
        }
        for (j, value) in values.iter().enumerate().take(lanes) {
            *dst.wrapping_add(j) = value.to_element();
        }
    }
}

/// Writes `n` elements `step` apart.
#[inline(always)]
unsafe fn scattered<S: Simd, E: Element>(
    src: *const S::Elem,
    dst: *mut E,
    step: isize,
    n: usize,
    accumulate: bool,
) {
    for i in 0..n {
        let to = dst.wrapping_offset(step.wrapping_mul(i as isize));
        // SAFETY: element i exists on both sides.
        unsafe {
            let mut x = *src.wrapping_add(i);
            if accumulate {
                x += S::Elem::from_element(*to);
            }
            *to = x.to_element();
        }
    }
}
