//! One vector register of accumulators, as each instruction set spells it.
//!
//! [`Simd`] is what the tile kernel and the packing loops are written in, once for all instruction
//! sets; a row is a unit type here, and the functions that use it are instantiated inside
//! `#[target_feature]` functions by `kernels.rs`. Every method is `inline(always)`: it has no target
//! features of its own and must dissolve into a caller that has them.
//!
//! Invariant: a method may be called only on a machine with the features of its type (for
//! [`portable`] none). The table in `kernels.rs` is the one place that pairs the two.

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;
pub(super) mod bytes;
#[cfg(target_arch = "aarch64")]
pub(super) mod neon;
pub(super) mod portable;

/// The vectors in which products of several steps of `bf16` are packed.
#[cfg(target_arch = "x86_64")]
pub(super) use avx512::Pairs;
#[cfg(target_arch = "aarch64")]
pub(super) use neon::F32 as Pairs;

use super::bytes::Write;
use super::tile::TileArgs;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use half::bf16;
use num_traits::{ConstZero, Float, NumCast};
use std::ops::AddAssign;

/// A number an operand or result may be stored as.
pub(super) trait Element: NumCast + Copy + 'static {}

impl<T: NumCast + Copy + 'static> Element for T {}

/// A number sums are accumulated in: `f32` or `f64`.
pub(super) trait Real: Element + Float + ConstZero + AddAssign + Send + Sync {}

impl<T: Element + Float + ConstZero + AddAssign + Send + Sync> Real for T {}

/// Rounds a float to another type.
#[inline(always)]
pub(super) fn convert<A: Element, B: Element>(x: A) -> B {
    B::from(x).expect("invariant: floats of all widths have infinity")
}

/// The most lanes of any vector here: f32 in 512 bits.
pub(super) const MAX_LANES: usize = 16;

/// Vectors of `LANES` accumulators of type `Elem`.
pub(super) trait Simd: Copy + 'static {
    type Elem: Real;
    type V: Copy;
    const LANES: usize;
    /// Whether [`Simd::mul_add_lane`] is an instruction; then LANES divides four.
    const BY_LANE: bool = false;
    /// Whether code is to be small rather than fast where elements are converted or are not adjacent.
    const SMALL: bool = false;

    /// All lanes zero.
    unsafe fn zero() -> Self::V;
    /// All lanes equal to `*p`.
    unsafe fn splat(p: *const Self::Elem) -> Self::V;
    /// The `LANES` numbers at `p`, which need not be aligned.
    unsafe fn load(p: *const Self::Elem) -> Self::V;
    /// The `n` numbers at `p` in the first lanes, zero in the others; touches nothing else.
    unsafe fn load_first(p: *const Self::Elem, n: usize) -> Self::V;
    /// Writes all lanes to `p`.
    unsafe fn store(p: *mut Self::Elem, v: Self::V);
    /// Writes the first `n` lanes to `p`; touches nothing else.
    unsafe fn store_first(p: *mut Self::Elem, n: usize, v: Self::V);
    /// `a * b + c`, fused where the instruction exists.
    unsafe fn mul_add(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// `a[lane] * b + c`, for a `lane` that is a constant after inlining.
    #[inline(always)]
    unsafe fn mul_add_lane(a: Self::V, lane: usize, b: Self::V, c: Self::V) -> Self::V {
        let _ = (a, lane, b, c);
        unreachable!("invariant: called where BY_LANE says so")
    }
    /// Adds the products of some of so many chunks of steps (`tile::CHUNK`), and says of how many;
    /// for the tile that matters most, where steps are adjacent in the rows of A and in B.
    #[inline(always)]
    unsafe fn chunks_along<const MR: usize, const NV: usize>(
        acc: &mut [[Self::V; NV]; MR],
        rows: [*const Self::Elem; MR],
        b: *const Self::Elem,
        chunks: usize,
    ) -> usize {
        let _ = (acc, rows, b, chunks);
        0
    }
    /// `a + b`.
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    /// Sum of the lanes.
    #[allow(dead_code, reason = "for the kernel along k")]
    unsafe fn sum(v: Self::V) -> Self::Elem;
    /// Transposes the square block in the first `LANES` vectors.
    unsafe fn transpose(block: &mut [Self::V; MAX_LANES]);
}

/// Loads with conversion from `E`.
pub(super) trait Load<E: Element>: Simd {
    /// The `LANES` numbers at `p`.
    unsafe fn load_from(p: *const E) -> Self::V;
    /// The `n` numbers at `p` in the first lanes, zero in the others; touches nothing else.
    unsafe fn load_first_from(p: *const E, n: usize) -> Self::V;
    /// `v` with lanes `lo..hi` replaced by `p[lo..hi]`; touches nothing else, so that `p` itself
    /// may lie outside any allocation.
    unsafe fn insert_from(v: Self::V, p: *const E, lo: usize, hi: usize) -> Self::V;
}

/// Vectors of pairs of `bf16`, each in the place of one `f32`, whose `mul_add` adds both products of
/// a pair to one sum.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) trait Zip: Simd<Elem = f32> {
    /// The pairs `(x[lane], y[lane])` of all lanes.
    unsafe fn zip(x: *const bf16, y: *const bf16) -> Self::V;
    /// `v` with lanes `lo..hi` replaced by the pairs `(x[lane], y[lane])`, where no `y` is zeros;
    /// touches nothing else.
    unsafe fn insert_zipped(
        v: Self::V,
        x: *const bf16,
        y: Option<*const bf16>,
        lo: usize,
        hi: usize,
    ) -> Self::V;
}

/// Factors in the place of `f32`, each the bytes of four steps of k or the words of two, whose
/// products are added to `i32`.
pub(super) trait Factors: Copy + 'static {
    /// What vectors are moved by.
    type F: Simd<Elem = f32>;
    /// Steps in a factor.
    const DEPTH: usize;
    /// Whether bytes of A and B are multiplied as signed; `None` if words are multiplied.
    const SIGNED: Option<[bool; 2]>;
    /// Instructions of [`Factors::dot`].
    const OPS: f64 = 1.0;

    /// Whether tiles read A from strips.
    const STRIPS: bool = false;

    /// A tile of MR rows by NV vectors, as [`tile`](super::bytes::tile) makes it.
    #[inline(always)]
    unsafe fn tile<const MR: usize, const NV: usize>(t: &TileArgs<f32>, write: Write) {
        // SAFETY: the caller's contract.
        unsafe { super::bytes::tile::<Self, MR, NV>(t, write) }
    }
    /// `sums` and the products of the factors of each lane.
    unsafe fn dot(sums: V<Self>, a: V<Self>, b: V<Self>) -> V<Self>;
    /// `sums` and the bytes of the factors of each lane, which are of A (0) or B (1).
    unsafe fn add_up(sums: V<Self>, factors: V<Self>, side: usize) -> V<Self>;
    /// `a + b`.
    unsafe fn add(a: V<Self>, b: V<Self>) -> V<Self>;
    /// `(sums + term) * factor`.
    unsafe fn scale(sums: V<Self>, term: i32, factor: i32) -> V<Self>;
}

/// Copies of bytes from rows of 16 columns to factors side by side.
pub(super) trait Interleave: Copy + 'static {
    /// 16 bytes of one step.
    type Row: Copy;
    /// Steps in a factor and factors in a vector, if there is but one answer.
    const FORM: Option<(usize, usize)> = None;

    /// Zeros.
    unsafe fn no_row() -> Self::Row;
    /// The 16 bytes at `p`.
    unsafe fn row(p: *const u8) -> Self::Row;
    /// `row` with lanes `lo..hi`, which are zero there, replaced by the bytes so many steps from `p`;
    /// touches nothing else.
    unsafe fn insert(row: Self::Row, p: *const u8, step: isize, lanes: (usize, usize))
    -> Self::Row;
    /// Writes the first `n` factors of `depth` rows, rounded up to fours, each byte of which is
    /// changed as [`Form::mask`](super::bytes::Form::mask) says.
    unsafe fn interleave(rows: [Self::Row; 4], mask: u8, depth: usize, dst: *mut f32, n: usize);
    /// Writes four rows, so far apart, of the factors of four columns, whose steps are adjacent.
    unsafe fn transpose(
        columns: [*const u8; 4],
        mask: u8,
        depth: usize,
        dst: *mut f32,
        stride: usize,
    );
}

/// A vector of factors, or of sums.
pub(super) type V<S> = <<S as Factors>::F as Simd>::V;

/// Stores with conversion to `E`.
pub(super) trait Save<E: Element>: Simd {
    /// Writes the first `n` lanes to `p`; touches nothing else.
    unsafe fn save_first(p: *mut E, n: usize, v: Self::V);
}

/// Implements [`Save`] element by element, for pairs that no one has asked to be fast.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! save_by_element {
    ($simd:ty, $($elem:ty),*) => {
        $(impl Save<$elem> for $simd {
            #[inline(always)]
            unsafe fn save_first(p: *mut $elem, n: usize, v: Self::V) {
                let mut lanes = [0.0; MAX_LANES];
                // SAFETY: the array holds all lanes; the caller passes room for n elements.
                unsafe {
                    Self::store(lanes.as_mut_ptr(), v);
                    for (i, lane) in lanes.iter().enumerate().take(n) {
                        *p.add(i) = $crate::simd::convert(*lane);
                    }
                }
            }
        })*
    };
}

/// Implements [`Save`] of the accumulator type itself.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! save_as_it_is {
    ($simd:ty, $elem:ty) => {
        impl Save<$elem> for $simd {
            #[inline(always)]
            unsafe fn save_first(p: *mut $elem, n: usize, v: Self::V) {
                // SAFETY: the caller's contract.
                unsafe {
                    if n == <$simd as Simd>::LANES {
                        Self::store(p, v);
                    } else {
                        Self::store_first(p, n, v);
                    }
                }
            }
        }
    };
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use {save_as_it_is, save_by_element};
