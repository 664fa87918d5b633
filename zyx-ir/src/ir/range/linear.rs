//! Integer values as sums: `constant + coefficient * atom + …`.
//!
//! Two values whose forms are equal are equal, whatever ops compute them, and a bound on one form
//! bounds every other that differs by a known amount. An atom is a value that is not a sum, or the
//! lane number of vectors of some width.

use crate::ir::op::Value;
use smallvec::SmallVec;

/// Something a form is linear in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Atom {
    /// A value of the kernel; of a vector, each lane's.
    Value(Value),
    /// 0, 1, 2, … in the lanes of a vector this wide.
    Lane(u8),
}

/// Most terms of a form; a longer sum is an atom.
const MAX_TERMS: usize = 8;

/// A sum of multiples of distinct atoms, in order of the atoms, and a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Linear {
    pub(super) terms: SmallVec<[(Atom, i64); 4]>,
    pub(super) constant: i64,
}

impl Linear {
    pub(super) fn constant(constant: i64) -> Linear {
        Linear { terms: SmallVec::new(), constant }
    }

    pub(super) fn atom(atom: Atom) -> Linear {
        Linear { terms: SmallVec::from_slice(&[(atom, 1)]), constant: 0 }
    }

    /// `self + factor * other`, `None` if a coefficient overflows or there are too many terms.
    pub(super) fn plus(&self, other: &Linear, factor: i64) -> Option<Linear> {
        let constant = self.constant.checked_add(other.constant.checked_mul(factor)?)?;
        let mut terms = SmallVec::new();
        let (mut a, mut b) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let (atom, coefficient) = match (a.peek(), b.peek()) {
                (None, None) => break,
                (Some(&&(x, k)), Some(&&(y, l))) if x == y => {
                    a.next();
                    b.next();
                    (x, k.checked_add(l.checked_mul(factor)?)?)
                }
                (Some(&&(x, k)), next) if next.is_none_or(|&&(y, _)| x < y) => {
                    a.next();
                    (x, k)
                }
                (_, Some(&&(y, l))) => {
                    b.next();
                    (y, l.checked_mul(factor)?)
                }
                (Some(_), None) => unreachable!("invariant: the arm above takes it"),
            };
            if coefficient != 0 {
                terms.push((atom, coefficient));
            }
        }
        (terms.len() <= MAX_TERMS).then_some(Linear { terms, constant })
    }

    pub(super) fn scaled(&self, factor: i64) -> Option<Linear> {
        Linear::constant(0).plus(self, factor)
    }

    /// The coefficient of an atom.
    pub(super) fn of(&self, atom: Atom) -> i64 {
        let term = self.terms.iter().find(|(a, _)| *a == atom);
        term.map_or(0, |(_, coefficient)| *coefficient)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_merge_terms_and_drop_zeros() {
        let (x, y) = (Atom::Value(Value(3)), Atom::Value(Value(5)));
        let sum = Linear::atom(x).plus(&Linear::atom(y), 4).unwrap();
        let sum = sum.plus(&Linear::constant(7), 2).unwrap();
        assert_eq!((sum.of(x), sum.of(y), sum.constant), (1, 4, 14));
        let rest = sum.plus(&Linear::atom(x), -1).unwrap();
        assert_eq!((rest.terms.len(), rest.of(x)), (1, 0));
        assert_eq!(sum.plus(&sum, -1), Some(Linear::constant(0)));
        assert_eq!(sum.scaled(i64::MAX), None);
    }
}
