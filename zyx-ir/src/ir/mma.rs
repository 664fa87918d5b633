//! Matrix instructions: which there are, and which thread holds what.
//!
//! [`Op::Mma`](super::Op::Mma) is computed by a *warp*: so many local iterations that follow one
//! another (axis 0 fastest), the first of which has a number that is a multiple of their number.
//! It adds the product of two matrices of halves to a matrix of sums.
//!
//! **Square** instructions have [`SIDE`] rows, columns and steps and warps of [`WARP`]. Each
//! thread holds [`HELD`] elements of each of the three matrices, as a vector: of the left matrix
//! those at the (row, step) that [`left`] tells, of the right one at the (column, step) and of
//! the sums at the (row, column) of [`place`]. The left one differs in the order of elements
//! alone. The layout follows from that of `mma.m16n8k16` in the PTX ISA: rows, columns and steps
//! are numbered so that what a thread holds of a row lies side by side. It loads four factors, or
//! stores four sums, in one go, no element has to be exchanged for that, and the vectors of both
//! factors are in the order of the instruction's registers.
//!
//! **Wide** instructions have [`WIDE`] rows and columns, [`SIDE`] steps and warps of
//! [`WARPGROUP`]. The right factor is read from shared storage, the left one from there or from
//! registers, as [`wide_left`] tells; sums are held as [`wide_place`] tells. A
//! [`Panel`](super::Op::Panel) is a matrix in shared storage whose rows have [`WIDE`] halves, in
//! slots of [`HELD`]: slot `s` of the matrix lies in element [`slot`]`(s)` of the storage, so that
//! neither lines nor columns of slots share a bank. A panel begins at a multiple of eight rows, or
//! at a slot of such a row. The left factor has rows of the storage for rows; the right one for
//! columns, or for steps if the instruction is *turned*. That is the layout of `wgmma.m64n64k16`
//! and of its swizzle of 128 bytes.

use crate::caps::Caps;
use crate::dtype::DType;
use crate::scalar::Scalar;

/// Threads of a square instruction's warp.
pub const WARP: usize = 32;
/// Rows, columns and steps of a square instruction, steps of a wide one.
pub const SIDE: usize = 16;
/// Elements of a factor that a thread holds, and of a square instruction's sums.
pub const HELD: usize = SIDE * SIDE / WARP;
/// Threads of a wide instruction's warp.
pub const WARPGROUP: usize = 128;
/// Rows and columns of a wide instruction, and halves of a row of shared storage.
pub const WIDE: usize = 64;
/// Sums that a thread of a wide instruction holds.
pub const WIDE_HELD: usize = WIDE * WIDE / WARPGROUP;
/// Slots of a row of shared storage, and rows after which the order of slots repeats.
pub const SLOTS: usize = WIDE / HELD;

/// The shape of a matrix instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Factors in registers.
    Square,
    /// The right factor in shared storage, by columns.
    Wide,
    /// The right factor in shared storage, by steps.
    Turned,
}

/// A matrix instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Dtype of the factors, whose products are exact in that of the sums.
    pub factor: DType,
    /// Dtype of the sums.
    pub sum: DType,
    /// How many elements, and where they are.
    pub shape: Shape,
}

impl Row {
    const fn of(factor: DType, shape: Shape) -> Row {
        Row { factor, sum: DType::F32, shape }
    }

    /// Whether factors come from shared storage.
    pub fn is_wide(self) -> bool {
        self.shape != Shape::Square
    }

    /// Threads of a warp.
    pub fn team(self) -> usize {
        if self.is_wide() { WARPGROUP } else { WARP }
    }

    /// Sums that a thread holds.
    pub fn held(self) -> usize {
        if self.is_wide() { WIDE_HELD } else { HELD }
    }

    /// Whether a device has the instruction.
    pub fn is_in(self, caps: &Caps) -> bool {
        let dtypes = if self.is_wide() { caps.wide_mma } else { caps.mma };
        dtypes.contains(self.factor)
    }
}

/// Every matrix instruction, by the number that the op carries.
pub static ROWS: [Row; 6] = [
    Row::of(DType::F16, Shape::Square),
    Row::of(DType::BF16, Shape::Square),
    Row::of(DType::F16, Shape::Wide),
    Row::of(DType::BF16, Shape::Wide),
    Row::of(DType::F16, Shape::Turned),
    Row::of(DType::BF16, Shape::Turned),
];

/// The number of the square instruction for factors of a dtype.
pub fn row(factor: DType) -> Option<u16> {
    row_of(factor, Shape::Square)
}

/// The number of the instruction of a shape for factors of a dtype.
pub fn row_of(factor: DType, shape: Shape) -> Option<u16> {
    ROWS.iter().position(|row| row.factor == factor && row.shape == shape).map(|i| i as u16)
}

/// Which row and which column of a wide instruction element `i` of a thread's sums has.
pub const fn wide_place(thread: usize, i: usize) -> (usize, usize) {
    let (group, quarter) = (thread % WARP / 4, thread % 4);
    (thread / WARP * SIDE + group + i / 2 % 2 * 8, i / 4 * 8 + 2 * quarter + i % 2)
}

/// Which row and which step of a wide instruction element `i` of a thread's left factor has: those
/// of its sums of as many columns.
pub const fn wide_left(thread: usize, i: usize) -> (usize, usize) {
    wide_place(thread, i)
}

/// Where slot `s` of a matrix in shared storage lies.
pub const fn slot(s: usize) -> usize {
    s ^ (s / SLOTS % SLOTS)
}

/// The slot of a panel that is read on behalf of a thread of the warp, counted from its first in
/// rows of [`SLOTS`], and the (line, step) of its first element; steps follow unless `turned`, else
/// lines do.
pub(super) const fn panel(thread: usize, turned: bool) -> (usize, (usize, usize)) {
    if turned {
        return (thread, (thread % SLOTS * HELD, thread / SLOTS));
    }
    (thread / 2 * SLOTS + thread % 2, (thread / 2, thread % 2 * HELD))
}

/// Which line (row or column) and which place in the line element `i` of a thread has.
pub const fn place(thread: usize, i: usize) -> (usize, usize) {
    let (line, quarter) = (thread / 4, thread % 4);
    (4 * (line / 2) + line % 2 + 2 * (i / 4), 4 * quarter + i % 4)
}

/// The same of the left matrix.
pub const fn left(thread: usize, i: usize) -> (usize, usize) {
    place(thread, left_order(i))
}

/// Which element of [`place`] is element `i` of the left matrix: pairs of steps of the two lines
/// in turn.
pub const fn left_order(i: usize) -> usize {
    i / 2 % 2 * 4 + i / 4 * 2 + i % 2
}

/// The new sums of a warp, thread by thread. Of a factor in shared storage each thread has the slot
/// that [`panel`] tells. Products are added one by one; hardware may add them in any grouping.
pub(super) fn multiply(row: Row, panels: [bool; 2], [a, b, c]: [&[u64]; 3]) -> Vec<u64> {
    let n = if row.is_wide() { WIDE } else { SIDE };
    let turned = row.shape == Shape::Turned;
    let of_panel = |thread: usize, i: usize, turned: bool| {
        let (_, (line, step)) = panel(thread, turned);
        if turned { (line + i, step) } else { (line, step + i) }
    };
    let lefts = |thread, i| match (row.is_wide(), panels[0]) {
        (false, _) => left(thread, i),
        (true, false) => wide_left(thread, i),
        (true, true) => of_panel(thread, i, false),
    };
    let rights = |thread, i| match row.is_wide() {
        true => of_panel(thread, i, turned),
        false => place(thread, i),
    };
    let own = |thread, i| if row.is_wide() { wide_place(thread, i) } else { place(thread, i) };
    let factor = |held: &[u64], place: &dyn Fn(usize, usize) -> (usize, usize)| {
        let mut matrix = vec![[0.0f32; SIDE]; n];
        for (i, &bits) in held.iter().enumerate() {
            let (line, at) = place(i / HELD, i % HELD);
            matrix[line][at] = Scalar::from_bits(row.factor, bits).to_f64() as f32;
        }
        matrix
    };
    let (left, right) = (factor(a, &lefts), factor(b, &rights));
    let results = c.iter().enumerate().map(|(at, &bits)| {
        let (i, j) = own(at / row.held(), at % row.held());
        let products = left[i].iter().zip(&right[j]).map(|(x, y)| x * y);
        let start = Scalar::from_bits(row.sum, bits).to_f64() as f32;
        Scalar::from(products.fold(start, |sum, product| sum + product)).bits()
    });
    results.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_held_once() {
        for place in [left, place] {
            let mut seen = [[0; SIDE]; SIDE];
            for n in 0..SIDE * SIDE {
                let (line, at) = place(n / HELD, n % HELD);
                seen[line][at] += 1;
            }
            assert!(seen.iter().flatten().all(|&n| n == 1));
        }
    }

    #[test]
    fn a_team_multiplies_matrices() {
        let bits = |dtype: DType, x: i64| Scalar::from_i64(dtype, x).bits();
        type Place = fn(usize, usize) -> (usize, usize);
        let held = |place: Place, dtype: DType, f: &dyn Fn(usize, usize) -> i64| -> Vec<u64> {
            let places = (0..SIDE * SIDE).map(|n| place(n / HELD, n % HELD));
            places.map(|(line, at)| bits(dtype, f(line, at))).collect()
        };
        let hold = |dtype, f: &dyn Fn(usize, usize) -> i64| held(place, dtype, f);
        let (a, b) = (|i, k| (i + 2 * k) as i64 % 5, |j, k| (3 * j + k) as i64 % 7 - 3);
        for row in ROWS.into_iter().filter(|row| !row.is_wide()) {
            let left = held(left, row.factor, &a);
            let right = hold(row.factor, &b);
            let sums = hold(row.sum, &|i, j| (i * j) as i64);
            let expected = hold(row.sum, &|i, j| {
                (i * j) as i64 + (0..SIDE).map(|k| a(i, k) * b(j, k)).sum::<i64>()
            });
            assert_eq!(multiply(row, [false; 2], [&left, &right, &sums]), expected);
        }
    }

    #[test]
    fn a_wide_team_multiplies_matrices() {
        let bits = |dtype: DType, x: i64| Scalar::from_i64(dtype, x).bits();
        let (a, b) = (|i, k| (i + 2 * k) as i64 % 5, |j, k| (3 * j + k) as i64 % 7 - 3);
        let each = |held: usize, f: &dyn Fn(usize, usize) -> u64| -> Vec<u64> {
            (0..WARPGROUP * held).map(|n| f(n / held, n % held)).collect()
        };
        for row in ROWS.into_iter().filter(|row| row.is_wide()) {
            let turned = row.shape == Shape::Turned;
            let of_panel = |f: &dyn Fn(usize, usize) -> i64, turned: bool| {
                each(HELD, &|thread, i| {
                    let (_, (line, step)) = panel(thread, turned);
                    let at = if turned { (line + i, step) } else { (line, step + i) };
                    bits(row.factor, f(at.0, at.1))
                })
            };
            let right = of_panel(&b, turned);
            let own = |f: &dyn Fn(usize, usize) -> i64| {
                each(WIDE_HELD, &|thread, i| {
                    let (i, j) = wide_place(thread, i);
                    bits(row.sum, f(i, j))
                })
            };
            let sums = own(&|i, j| (i * j) as i64);
            let product = |i, j| (0..SIDE).map(|k| a(i, k) * b(j, k)).sum::<i64>();
            let expected = own(&|i, j| (i * j) as i64 + product(i, j));
            let in_registers = each(HELD, &|thread, i| {
                let (i, k) = wide_left(thread, i);
                bits(row.factor, a(i, k))
            });
            for (panels, left) in [([false, true], in_registers), ([true; 2], of_panel(&a, false))]
            {
                assert_eq!(multiply(row, panels, [&left, &right, &sums]), expected);
            }
        }
    }

    #[test]
    fn slots_of_eight_rows_and_of_a_line_are_in_different_banks() {
        let mut all: Vec<usize> = (0..SLOTS * WIDE).map(slot).collect();
        for chunk in 0..SLOTS {
            let column: std::collections::BTreeSet<usize> =
                (0..SLOTS).map(|row| slot(row * SLOTS + chunk) % SLOTS).collect();
            assert_eq!(column.len(), SLOTS);
        }
        all.sort_unstable();
        assert!(all.into_iter().eq(0..SLOTS * WIDE));
    }
}
