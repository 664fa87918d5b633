//! Integers as affine functions: sums of multiples of atoms, bounds of them, and index algebra.
//!
//! * [`Linear`] is a sum `constant + coefficient * atom + …`. An atom is what its user chooses: a value
//!   of a kernel, a register, a loop counter.
//! * [`Interval`] is the set of integers between two bounds that are multiples of a number.
//! * [`Algebra`] adds quotients and remainders by constants: index expressions before there is a kernel.
//!
//! ```
//! use zyx_ir::affine::{Algebra, Linear};
//! let sum = Linear::atom('i').plus(&Linear::atom('j'), 4).unwrap();
//! assert_eq!((sum.coefficient('i'), sum.coefficient('j'), sum.constant), (1, 4, 0));
//! let mut algebra = Algebra::default();
//! let counter = algebra.axis(24);
//! let x = algebra.of(counter);
//! let digits = algebra.unflatten(&x, &[2, 3, 4]);
//! assert_eq!(algebra.flatten(&digits, &[2, 3, 4]), x);
//! ```

mod algebra;
mod interval;
mod linear;

pub use algebra::{Algebra, Atom, AtomId, CounterId, Index};
pub use interval::Interval;
pub use linear::Linear;

/// Greatest common divisor; 0 is a multiple of everything.
pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Greatest common divisor of magnitudes.
pub(crate) fn gcd_signed(a: i64, b: i64) -> i64 {
    gcd(a.unsigned_abs(), b.unsigned_abs()) as i64
}
