//! From finished accumulators to C: conversion, addition to what is there, scatter.
//!
//! Used where the tile kernel cannot write C itself: C has another type than the accumulators, or
//! its rows are not contiguous. A contraction with an epilogue never comes here.

use super::offsets::Offsets;
use super::simd::{Element, MAX_LANES, Real, Save, Simd, convert};
use num_traits::ConstZero;

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

/// A block of accumulators to transpose.
pub(super) struct Turn<T> {
    /// First accumulator.
    pub(super) src: *const T,
    /// Accumulators between rows.
    pub(super) src_stride: usize,
    /// Number of rows.
    pub(super) rows: usize,
    /// Number of columns.
    pub(super) columns: usize,
    /// Where the block goes: `columns` rows of `rows` numbers.
    pub(super) dst: *mut T,
    /// Numbers between rows there.
    pub(super) dst_stride: usize,
}

/// Transposes a block, LANES by LANES at a time.
///
/// # Safety
/// Source and destination must be accessible and not overlap, and the machine must have the
/// features of `S`.
#[inline(always)]
pub(super) unsafe fn turn<S: Simd>(t: &Turn<S::Elem>) {
    for row in (0..t.rows).step_by(S::LANES) {
        for column in (0..t.columns).step_by(S::LANES) {
            let (height, width) = (S::LANES.min(t.rows - row), S::LANES.min(t.columns - column));
            let src = t.src.wrapping_add(row * t.src_stride + column);
            let dst = t.dst.wrapping_add(column * t.dst_stride + row);
            // SAFETY: `height` rows of `width` numbers are left at the source, and room for as
            // many turned at the destination.
            unsafe {
                let mut block = [S::zero(); MAX_LANES];
                if height == S::LANES && width == S::LANES {
                    for (i, v) in block.iter_mut().enumerate().take(S::LANES) {
                        *v = S::load(src.wrapping_add(i * t.src_stride));
                    }
                    S::transpose(&mut block);
                    for (i, v) in block.iter().enumerate().take(S::LANES) {
                        S::store(dst.wrapping_add(i * t.dst_stride), *v);
                    }
                } else {
                    for (i, v) in block.iter_mut().enumerate().take(height) {
                        *v = S::load_first(src.wrapping_add(i * t.src_stride), width);
                    }
                    S::transpose(&mut block);
                    for (i, v) in block.iter().enumerate().take(width) {
                        S::store_first(dst.wrapping_add(i * t.dst_stride), height, *v);
                    }
                }
            }
        }
    }
}

/// Adds `n` numbers to as many others.
///
/// # Safety
/// Both must be accessible and not overlap.
#[inline(always)]
pub(super) unsafe fn add<T: Real>(to: *mut T, from: *const T, n: usize) {
    for i in 0..n {
        // SAFETY: number i exists on both sides.
        unsafe { *to.wrapping_add(i) += *from.wrapping_add(i) };
    }
}

/// Writes a block.
///
/// # Safety
/// The accumulators must be readable, the elements of C described writable and not aliased, and
/// the machine must have the features of `S`.
#[inline(always)]
pub(super) unsafe fn store<S: Save<E>, E: Element>(s: &Store<'_, S::Elem>) {
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
unsafe fn adjacent<S: Save<E>, E: Element>(
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
            let full = lanes == S::LANES;
            let mut v = if full { S::load(from) } else { S::load_first(from, lanes) };
            if accumulate {
                let mut before = [S::Elem::ZERO; MAX_LANES];
                for (j, before) in before.iter_mut().enumerate().take(lanes) {
                    *before = convert(*to.wrapping_add(j));
                }
                v = S::add(v, S::load(before.as_ptr()));
            }
            S::save_first(to, lanes, v);
        }
        i += lanes;
    }
}

/// Writes `n` elements `step` apart.
#[inline(always)]
unsafe fn scattered<S: Save<E>, E: Element>(
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
                x += convert(*to);
            }
            *to = convert(x);
        }
    }
}
