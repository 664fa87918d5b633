//! The vector of every machine: an array the compiler turns into what the target has.
//!
//! Eight f32 or four f64 per vector, two or more registers on a 128-bit machine. `mul_add` is fused
//! on aarch64, where it is one instruction, and a product and a sum on x86-64 below AVX2, where a
//! fused one would be a library call per element.

use super::{Element, Factors, Load, MAX_LANES, Real, Save, Simd, convert};

/// `LANES` numbers as an array.
#[derive(Clone, Copy)]
pub(crate) struct Portable<T, const LANES: usize>(std::marker::PhantomData<T>);

#[inline(always)]
fn mul_add<T: Real>(a: T, b: T, c: T) -> T {
    if cfg!(target_arch = "aarch64") { a.mul_add(b, c) } else { a * b + c }
}

/// Words of two steps, multiplied by what the compiler makes of it.
#[derive(Clone, Copy)]
pub(crate) struct Words;

/// Words of two steps in vectors of eight.
type Eight = [f32; 8];

/// Each lane of `f`, as integers.
#[inline(always)]
fn lanes(f: impl Fn(usize) -> i32) -> Eight {
    std::array::from_fn(|i| f32::from_bits(f(i).cast_unsigned()))
}

/// The sum in a lane.
#[inline(always)]
fn sum(x: f32) -> i32 {
    x.to_bits().cast_signed()
}

impl Factors for Words {
    type F = Portable<f32, 8>;
    const DEPTH: usize = 2;
    const SIGNED: Option<[bool; 2]> = None;
    const OPS: f64 = 8.0;

    #[inline(always)]
    unsafe fn dot(sums: Eight, a: Eight, b: Eight) -> Eight {
        let words = |x: f32| [sum(x) << 16 >> 16, sum(x) >> 16];
        lanes(|i| {
            let ([a0, a1], [b0, b1]) = (words(a[i]), words(b[i]));
            sum(sums[i]).wrapping_add(a0 * b0 + a1 * b1)
        })
    }

    #[inline(always)]
    unsafe fn add_up(_: Eight, _: Eight, _: usize) -> Eight {
        unreachable!("invariant: words need no sums")
    }

    #[inline(always)]
    unsafe fn add(a: Eight, b: Eight) -> Eight {
        lanes(|i| sum(a[i]).wrapping_add(sum(b[i])))
    }

    #[inline(always)]
    unsafe fn scale(_: Eight, _: i32, _: i32) -> Eight {
        unreachable!("invariant: words need no sums")
    }
}

impl<T: Real, const LANES: usize> Simd for Portable<T, LANES> {
    type Elem = T;
    type V = [T; LANES];
    const LANES: usize = LANES;
    const SMALL: bool = true;

    #[inline(always)]
    unsafe fn zero() -> [T; LANES] {
        [T::ZERO; LANES]
    }

    #[inline(always)]
    unsafe fn splat(p: *const T) -> [T; LANES] {
        // SAFETY: the caller passes a readable number.
        [unsafe { *p }; LANES]
    }

    #[inline(always)]
    unsafe fn load(p: *const T) -> [T; LANES] {
        // SAFETY: the caller passes LANES readable numbers.
        unsafe { p.cast::<[T; LANES]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn load_first(p: *const T, n: usize) -> [T; LANES] {
        // SAFETY: the caller passes n readable numbers.
        unsafe { Self::load_first_from(p, n) }
    }

    #[inline(always)]
    unsafe fn store(p: *mut T, v: [T; LANES]) {
        // SAFETY: the caller passes room for LANES numbers.
        unsafe { p.cast::<[T; LANES]>().write_unaligned(v) }
    }

    #[inline(always)]
    unsafe fn store_first(p: *mut T, n: usize, v: [T; LANES]) {
        // SAFETY: the caller passes room for n numbers, at most LANES.
        unsafe { p.copy_from_nonoverlapping(v.as_ptr(), n) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: [T; LANES], b: [T; LANES], mut c: [T; LANES]) -> [T; LANES] {
        for i in 0..LANES {
            c[i] = mul_add(a[i], b[i], c[i]);
        }
        c
    }

    #[inline(always)]
    unsafe fn add(mut a: [T; LANES], b: [T; LANES]) -> [T; LANES] {
        for i in 0..LANES {
            a[i] += b[i];
        }
        a
    }

    #[inline(always)]
    unsafe fn sum(v: [T; LANES]) -> T {
        let mut total = T::ZERO;
        v.iter().for_each(|&x| total += x);
        total
    }

    #[inline(always)]
    unsafe fn transpose(block: &mut [[T; LANES]; MAX_LANES]) {
        let rows = *block;
        for (i, row) in block.iter_mut().enumerate().take(LANES) {
            for (x, from) in row.iter_mut().zip(&rows) {
                *x = from[i];
            }
        }
    }
}

impl<T: Real, E: Element, const LANES: usize> Load<E> for Portable<T, LANES> {
    #[inline(always)]
    unsafe fn load_from(p: *const E) -> [T; LANES] {
        // SAFETY: the caller passes LANES readable numbers.
        unsafe { p.cast::<[E; LANES]>().read_unaligned() }.map(convert)
    }

    #[inline(always)]
    unsafe fn load_first_from(p: *const E, n: usize) -> [T; LANES] {
        // SAFETY: reads lanes 0..n only, which the caller passes.
        unsafe { Self::insert_from([T::ZERO; LANES], p, 0, n) }
    }

    #[inline(always)]
    unsafe fn insert_from(mut v: [T; LANES], p: *const E, lo: usize, hi: usize) -> [T; LANES] {
        for (i, lane) in v.iter_mut().enumerate().take(hi).skip(lo) {
            // SAFETY: i is in lo..hi, which the caller passes as readable.
            *lane = convert(unsafe { p.wrapping_add(i).read_unaligned() });
        }
        v
    }
}

impl<T: Real, E: Element, const LANES: usize> Save<E> for Portable<T, LANES> {
    #[inline(always)]
    unsafe fn save_first(p: *mut E, n: usize, v: [T; LANES]) {
        for (i, lane) in v.iter().enumerate().take(n) {
            // SAFETY: i is less than n, for which the caller passes room.
            unsafe { p.add(i).write(convert(*lane)) };
        }
    }
}
