//! Matrix instructions: which there are, and which thread holds what.
//!
//! [`Op::Mma`](super::Op::Mma) is computed by a *team*: [`TEAM`] local iterations that follow one
//! another (axis 0 fastest), the first of which has a number that is a multiple of `TEAM`. It
//! adds the product of two matrices of [`SIDE`] by `SIDE` factors to a matrix of sums. Each
//! thread holds [`HELD`] elements of each of the three, as a vector: of the left matrix those at
//! the (row, step) that [`left`] tells, of the right one at the (column, step) and of the sums at
//! the (row, column) of [`place`]. The left one differs in the order of elements alone.
//!
//! The layout follows from that of `mma.m16n8k16` in the PTX ISA: rows, columns and steps are
//! numbered so that what a thread holds of a row lies side by side. It loads four factors, or
//! stores four sums, in one go, no element has to be exchanged for that, and the vectors of both
//! factors are in the order of the instruction's registers.

use crate::dtype::DType;
use crate::scalar::Scalar;

/// Threads of a team.
pub const TEAM: usize = 32;
/// Rows, columns and steps of a matrix instruction.
pub const SIDE: usize = 16;
/// Elements of a matrix that a thread holds.
pub const HELD: usize = SIDE * SIDE / TEAM;

/// A matrix instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Dtype of the factors, whose products are exact in that of the sums.
    pub factor: DType,
    /// Dtype of the sums.
    pub sum: DType,
}

/// Every matrix instruction, by the number that the op carries.
pub static ROWS: [Row; 2] =
    [Row { factor: DType::F16, sum: DType::F32 }, Row { factor: DType::BF16, sum: DType::F32 }];

/// The number of the instruction for factors of a dtype.
pub fn row(factor: DType) -> Option<u16> {
    ROWS.iter().position(|row| row.factor == factor).map(|i| i as u16)
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

/// The new sums of a team, thread by thread. Products are added one by one; hardware may add them
/// in any grouping.
pub(super) fn multiply(row: Row, [a, b, c]: [&[u64]; 3]) -> Vec<u64> {
    let spread = |held: &[u64], dtype: DType, place: fn(usize, usize) -> (usize, usize)| {
        let mut matrix = [[0.0f32; SIDE]; SIDE];
        for (n, &bits) in held.iter().enumerate() {
            let (line, at) = place(n / HELD, n % HELD);
            matrix[line][at] = Scalar::from_bits(dtype, bits).to_f64() as f32;
        }
        matrix
    };
    let (left, right) = (spread(a, row.factor, left), spread(b, row.factor, place));
    let sums = spread(c, row.sum, place);
    let results = (0..SIDE * SIDE).map(|n| {
        let (i, j) = place(n / HELD, n % HELD);
        let products = left[i].iter().zip(&right[j]).map(|(x, y)| x * y);
        let sum = products.fold(sums[i][j], |sum, product| sum + product);
        Scalar::from(sum).bits()
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
        for row in ROWS {
            let left = held(left, row.factor, &a);
            let right = hold(row.factor, &b);
            let sums = hold(row.sum, &|i, j| (i * j) as i64);
            let expected = hold(row.sum, &|i, j| {
                (i * j) as i64 + (0..SIDE).map(|k| a(i, k) * b(j, k)).sum::<i64>()
            });
            assert_eq!(multiply(row, [&left, &right, &sums]), expected);
        }
    }
}
