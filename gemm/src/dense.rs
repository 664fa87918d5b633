//! Loops over rows of `f64`, for factorisations of matrices: with vectors as wide as the processor has.
//!
//! Each loop is written once and compiled for each instruction set. Sums are added up in the same
//! order in every call on one machine; products are rounded before they are added where the
//! processor has no fused multiplication.

use crate::spec::Isa;
use std::sync::LazyLock;

/// Rows of a panel of [`tile`].
pub const ROWS: usize = 8;
/// Columns that [`rotate`] turns at a time.
pub const WIDE: usize = 32;
/// Elements from which on a loop is worth a call.
const LONG: usize = 32;

/// Products of panels of eight rows: the sum over `k` of `a[k][i] * b[k][j]`, one element each.
pub type Tile = [[f64; ROWS]; ROWS];

/// A rotation of rows `i` and `i + 1`, which become `c x + s y` and `c y - s x`.
pub type Rotation = (usize, f64, f64);

/// The loops as one instruction set has them.
struct Loops {
    dot: fn(&[f64], &[f64]) -> f64,
    add_scaled: fn(&mut [f64], f64, &[f64]),
    add_two: fn(&mut [f64], [f64; 2], [&[f64]; 2]),
    rotate: fn(&mut [[f64; WIDE]], &[Rotation]),
    tile: fn(&[[f64; ROWS]], &[[f64; ROWS]]) -> Tile,
}

static LOOPS: LazyLock<&'static Loops> = LazyLock::new(|| match Isa::detect() {
    #[cfg(target_arch = "x86_64")]
    Isa::Avx512 => &avx512::LOOPS,
    #[cfg(target_arch = "x86_64")]
    Isa::Avx2 => &avx2::LOOPS,
    #[cfg(target_arch = "aarch64")]
    Isa::Neon => &neon::LOOPS,
    _ => &PORTABLE,
});

/// The sum of products of elements of two rows of one length.
///
/// ```
/// assert_eq!(zyx_gemm::dense::dot(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), 32.0);
/// ```
pub fn dot(x: &[f64], y: &[f64]) -> f64 {
    if x.len() < LONG { loops::dot::<false, 8>(x, y) } else { (LOOPS.dot)(x, y) }
}

/// `y += factor x`, for rows of one length.
pub fn add_scaled(y: &mut [f64], factor: f64, x: &[f64]) {
    if y.len() < LONG {
        loops::add_scaled::<false>(y, factor, x);
    } else {
        (LOOPS.add_scaled)(y, factor, x);
    }
}

/// `y += a x + b z`, for rows of one length.
pub fn add_two(y: &mut [f64], factors: [f64; 2], rows: [&[f64]; 2]) {
    (LOOPS.add_two)(y, factors, rows);
}

/// Applies rotations, in order, to rows of a strip.
///
/// # Panics
/// When a rotation names a row that the strip does not have.
pub fn rotate(strip: &mut [[f64; WIDE]], rotations: &[Rotation]) {
    (LOOPS.rotate)(strip, rotations);
}

/// The product of one panel with another, in order along the depth.
pub fn tile(a: &[[f64; ROWS]], b: &[[f64; ROWS]]) -> Tile {
    (LOOPS.tile)(a, b)
}

/// The loops themselves. They dissolve into functions that have the features of an instruction set.
mod loops {
    use super::{ROWS, Rotation, Tile, WIDE};

    #[inline(always)]
    fn mul_add<const FUSED: bool>(x: f64, y: f64, z: f64) -> f64 {
        if FUSED { x.mul_add(y, z) } else { x * y + z }
    }

    /// In `SUMS` sums that are added at the end.
    #[inline(always)]
    pub(super) fn dot<const FUSED: bool, const SUMS: usize>(x: &[f64], y: &[f64]) -> f64 {
        let (x, x_rest) = x.as_chunks::<SUMS>();
        let (y, y_rest) = y.as_chunks::<SUMS>();
        let mut sums = [0.0; SUMS];
        for (x, y) in x.iter().zip(y) {
            for i in 0..SUMS {
                sums[i] = mul_add::<FUSED>(x[i], y[i], sums[i]);
            }
        }
        let rest: f64 = x_rest.iter().zip(y_rest).map(|(x, y)| x * y).sum();
        let mut n = SUMS;
        while n > 1 {
            n /= 2;
            (0..n).for_each(|i| sums[i] += sums[i + n]);
        }
        sums[0] + rest
    }

    #[inline(always)]
    pub(super) fn add_scaled<const FUSED: bool>(y: &mut [f64], factor: f64, x: &[f64]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y = mul_add::<FUSED>(factor, *x, *y);
        }
    }

    #[inline(always)]
    pub(super) fn add_two<const FUSED: bool>(y: &mut [f64], [a, b]: [f64; 2], [x, z]: [&[f64]; 2]) {
        for ((y, x), z) in y.iter_mut().zip(x).zip(z) {
            *y = mul_add::<FUSED>(b, *z, mul_add::<FUSED>(a, *x, *y));
        }
    }

    #[inline(always)]
    pub(super) fn rotate<const FUSED: bool>(strip: &mut [[f64; WIDE]], rotations: &[Rotation]) {
        for &(i, c, s) in rotations {
            let [x, y] = &mut strip[i..i + 2] else { unreachable!("invariant: two rows") };
            for (x, y) in x.iter_mut().zip(y) {
                (*x, *y) = (mul_add::<FUSED>(c, *x, s * *y), mul_add::<FUSED>(c, *y, -(s * *x)));
            }
        }
    }

    /// So many rows of the result at a time that its sums stay in registers.
    #[inline(always)]
    pub(super) fn tile<const FUSED: bool, const AT_ONCE: usize>(
        a: &[[f64; ROWS]],
        b: &[[f64; ROWS]],
    ) -> Tile {
        let mut tile = [[0.0; ROWS]; ROWS];
        for first in (0..ROWS).step_by(AT_ONCE) {
            let mut sums = [[0.0; ROWS]; AT_ONCE];
            for (a, b) in a.iter().zip(b) {
                for i in 0..AT_ONCE {
                    for j in 0..ROWS {
                        sums[i][j] = mul_add::<FUSED>(a[first + i], b[j], sums[i][j]);
                    }
                }
            }
            tile[first..first + AT_ONCE].copy_from_slice(&sums);
        }
        tile
    }
}

static PORTABLE: Loops = Loops {
    dot: loops::dot::<false, 8>,
    add_scaled: loops::add_scaled::<false>,
    add_two: loops::add_two::<false>,
    rotate: loops::rotate::<false>,
    tile: loops::tile::<false, 2>,
};

/// The loops for one instruction set.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! compiled {
    ($name:ident, $features:literal, $sums:literal, $at_once:literal) => {
        mod $name {
            use super::{Loops, ROWS, Rotation, Tile, WIDE, loops};

            #[target_feature(enable = $features)]
            fn dot(x: &[f64], y: &[f64]) -> f64 {
                loops::dot::<true, $sums>(x, y)
            }

            #[target_feature(enable = $features)]
            fn add_scaled(y: &mut [f64], factor: f64, x: &[f64]) {
                loops::add_scaled::<true>(y, factor, x);
            }

            #[target_feature(enable = $features)]
            fn add_two(y: &mut [f64], factors: [f64; 2], rows: [&[f64]; 2]) {
                loops::add_two::<true>(y, factors, rows);
            }

            #[target_feature(enable = $features)]
            fn rotate(strip: &mut [[f64; WIDE]], rotations: &[Rotation]) {
                loops::rotate::<true>(strip, rotations);
            }

            #[target_feature(enable = $features)]
            fn tile(a: &[[f64; ROWS]], b: &[[f64; ROWS]]) -> Tile {
                loops::tile::<true, $at_once>(a, b)
            }

            /// Reached through [`super::LOOPS`] alone.
            pub(super) static LOOPS: Loops = Loops {
                // SAFETY: `super::LOOPS` takes this table only where the machine has the features.
                dot: |x, y| unsafe { dot(x, y) },
                // SAFETY: as above.
                add_scaled: |y, factor, x| unsafe { add_scaled(y, factor, x) },
                // SAFETY: as above.
                add_two: |y, factors, rows| unsafe { add_two(y, factors, rows) },
                // SAFETY: as above.
                rotate: |strip, rotations| unsafe { rotate(strip, rotations) },
                // SAFETY: as above.
                tile: |a, b| unsafe { tile(a, b) },
            };
        }
    };
}

#[cfg(target_arch = "x86_64")]
compiled!(avx2, "avx2,fma", 16, 4);
#[cfg(target_arch = "x86_64")]
compiled!(avx512, "avx2,fma,avx512f,avx512vl,avx512dq", 32, 8);
#[cfg(target_arch = "aarch64")]
compiled!(neon, "neon", 16, 4);

#[cfg(test)]
mod tests {
    use super::*;

    fn row(n: usize, seed: f64) -> Vec<f64> {
        (0..n).map(|i| ((i as f64 + seed) * 0.7).sin()).collect()
    }

    /// Every instruction set that this machine has, against the plain loops.
    fn tables() -> Vec<&'static Loops> {
        #[cfg(target_arch = "x86_64")]
        let more = [(Isa::Avx2, &avx2::LOOPS), (Isa::Avx512, &avx512::LOOPS)];
        #[cfg(target_arch = "aarch64")]
        let more = [(Isa::Neon, &neon::LOOPS)];
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let more: [(Isa, &Loops); 0] = [];
        let has = more.into_iter().filter(|(isa, _)| isa.is_available()).map(|(_, table)| table);
        std::iter::once(&PORTABLE).chain(has).collect()
    }

    fn near(x: f64, y: f64) {
        assert!((x - y).abs() <= 1e-13 * (1.0 + y.abs()), "{x} and {y}");
    }

    #[test]
    fn all_instruction_sets_agree_with_the_definition() {
        for loops in tables() {
            for n in [0, 1, 7, 8, 31, 32, 33, 64, 101, 200] {
                let (x, y, z) = (row(n, 0.0), row(n, 3.0), row(n, 5.0));
                near((loops.dot)(&x, &y), x.iter().zip(&y).map(|(x, y)| x * y).sum());
                let mut sum = z.clone();
                (loops.add_scaled)(&mut sum, 0.5, &x);
                (0..n).for_each(|i| near(sum[i], z[i] + 0.5 * x[i]));
                let mut sum = z.clone();
                (loops.add_two)(&mut sum, [0.5, -2.0], [&x, &y]);
                (0..n).for_each(|i| near(sum[i], z[i] + 0.5 * x[i] - 2.0 * y[i]));
            }
            let panel = |seed: f64| -> Vec<[f64; ROWS]> {
                (0..37).map(|k| std::array::from_fn(|i| row(9, seed + k as f64)[i])).collect()
            };
            let (a, b) = (panel(0.0), panel(50.0));
            let tile = (loops.tile)(&a, &b);
            for (i, row) in tile.iter().enumerate() {
                for (j, &x) in row.iter().enumerate() {
                    near(x, a.iter().zip(&b).map(|(a, b)| a[i] * b[j]).sum());
                }
            }
            let mut strip: Vec<[f64; WIDE]> =
                (0..3).map(|k| std::array::from_fn(|i| row(WIDE, k as f64)[i])).collect();
            let before = strip.clone();
            (loops.rotate)(&mut strip, &[(0, 0.6, 0.8), (1, 0.8, -0.6)]);
            for i in 0..WIDE {
                let (x, y, z) = (before[0][i], before[1][i], before[2][i]);
                let turned = 0.6 * y - 0.8 * x;
                near(strip[0][i], 0.6 * x + 0.8 * y);
                near(strip[1][i], 0.8 * turned - 0.6 * z);
                near(strip[2][i], 0.8 * z + 0.6 * turned);
            }
        }
    }
}
