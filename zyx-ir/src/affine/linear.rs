//! Sums of multiples of atoms.

use super::Interval;
use crate::ops::BinaryOp;
use smallvec::SmallVec;

/// A sum `constant + coefficient * atom + …`.
///
/// Two values whose sums are equal are equal, whatever computes them. Sums are built by the
/// functions here, which keep atoms in order and drop those that cancel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Linear<A> {
    /// Distinct atoms, ascending, with coefficients that are not zero.
    pub terms: SmallVec<[(A, i64); 4]>,
    /// The constant part.
    pub constant: i64,
}

impl<A> Default for Linear<A> {
    fn default() -> Self {
        Linear { terms: SmallVec::new(), constant: 0 }
    }
}

impl<A: Copy + Ord> Linear<A> {
    /// A number.
    pub fn constant(constant: i64) -> Self {
        Linear { terms: SmallVec::new(), constant }
    }

    /// An atom as it stands.
    pub fn atom(atom: A) -> Self {
        Self::term(atom, 1)
    }

    /// A multiple of an atom; `coefficient` is not 0.
    pub fn term(atom: A, coefficient: i64) -> Self {
        Linear { terms: SmallVec::from_slice(&[(atom, coefficient)]), constant: 0 }
    }

    /// Whether there are no atoms.
    pub fn is_constant(&self) -> bool {
        self.terms.is_empty()
    }

    /// The coefficient of an atom, 0 if it does not occur.
    pub fn coefficient(&self, atom: A) -> i64 {
        self.terms.iter().find(|term| term.0 == atom).map_or(0, |term| term.1)
    }

    /// The term, if the sum is one without a constant.
    pub fn single(&self) -> Option<(A, i64)> {
        match (self.constant, self.terms.as_slice()) {
            (0, &[term]) => Some(term),
            _ => None,
        }
    }

    /// The constant and every coefficient through a function; terms that become 0 go.
    pub fn map(&self, f: impl Fn(i64) -> i64) -> Self {
        let terms = self.terms.iter().map(|&(atom, c)| (atom, f(c)));
        Linear { constant: f(self.constant), terms: terms.filter(|term| term.1 != 0).collect() }
    }

    /// Both sums, term by term, `add` applied to the coefficients of each atom and the constants.
    fn merge(&self, other: &Self, mut add: impl FnMut(i64, i64) -> i64) -> Self {
        let mut sum = Linear::constant(add(self.constant, other.constant));
        let (mut i, mut j) = (0, 0);
        loop {
            let (atom, total) = match (self.terms.get(i), other.terms.get(j)) {
                (Some(&(x, c)), Some(&(y, d))) if x == y => {
                    (i, j) = (i + 1, j + 1);
                    (x, add(c, d))
                }
                (Some(&(x, c)), next) if next.is_none_or(|&(y, _)| x < y) => {
                    i += 1;
                    (x, add(c, 0))
                }
                (_, Some(&(y, d))) => {
                    j += 1;
                    (y, add(0, d))
                }
                (_, None) => return sum,
            };
            if total != 0 {
                sum.terms.push((atom, total));
            }
        }
    }

    /// `self + factor * other`, `None` if a coefficient overflows.
    pub fn plus(&self, other: &Self, factor: i64) -> Option<Self> {
        let mut fits = true;
        let sum = self.merge(other, |a, b| {
            let sum = b.checked_mul(factor).and_then(|b| a.checked_add(b));
            fits &= sum.is_some();
            sum.unwrap_or(0)
        });
        fits.then_some(sum)
    }

    /// `factor * self`, `None` if a coefficient overflows.
    pub fn scaled(&self, factor: i64) -> Option<Self> {
        Self::default().plus(self, factor)
    }

    /// `self + other` modulo 2^64.
    pub fn wrapping_plus(&self, other: &Self) -> Self {
        self.merge(other, i64::wrapping_add)
    }

    /// `factor * self` modulo 2^64.
    pub fn wrapping_scaled(&self, factor: i64) -> Self {
        self.map(|c| c.wrapping_mul(factor))
    }

    /// The sum that an op makes of two sums: it adds, subtracts, or multiplies with a number. `None`
    /// for others, and if a coefficient overflows.
    pub fn binary(op: BinaryOp, x: &Self, y: &Self) -> Option<Self> {
        match op {
            BinaryOp::Add => x.plus(y, 1),
            BinaryOp::Sub => x.plus(y, -1),
            BinaryOp::Mul if y.is_constant() => x.scaled(y.constant),
            BinaryOp::Mul if x.is_constant() => y.scaled(x.constant),
            _ => None,
        }
    }

    /// `k * c * (x / c) + k * (x % c)` replaced by `k * x`, as often as it occurs. Given this sum, an
    /// atom and its coefficient `k`, `whole` tells, if the atom is a remainder and this sum has `k * c`
    /// times the quotient, the quotient's atom and `x`.
    pub fn rejoined(mut self, mut whole: impl FnMut(&Self, A, i64) -> Option<(A, Self)>) -> Self {
        while let Some(next) = self.terms.iter().find_map(|&(rest, k)| {
            let (quotient, x) = whole(&self, rest, k)?;
            let mut others = self.clone();
            others.terms.retain(|term| term.0 != rest && term.0 != quotient);
            others.plus(&x, k)
        }) {
            self = next;
        }
        self
    }

    /// The smallest and the largest value, given those of each atom; `None` if an atom has none.
    pub fn bounds(&self, of: impl Fn(A) -> Option<(i64, i64)>) -> Option<(i128, i128)> {
        let constant = i128::from(self.constant);
        self.terms.iter().try_fold((constant, constant), |(low, high), &(atom, c)| {
            let (min, max) = of(atom)?;
            let [a, b] = [min, max].map(|x| i128::from(x) * i128::from(c));
            Some((low + a.min(b), high + a.max(b)))
        })
    }

    /// What the sum can be, given what each atom can be.
    pub(crate) fn interval(&self, mut of: impl FnMut(A) -> Interval) -> Interval {
        let constant = Interval::exactly(self.constant.into());
        self.terms.iter().fold(constant, |sum, &(atom, c)| sum.add(of(atom).scale(c)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_merge_terms_and_drop_zeros() {
        let sum = Linear::atom('x').plus(&Linear::atom('y'), 4).unwrap();
        let sum = sum.plus(&Linear::constant(7), 2).unwrap();
        assert_eq!((sum.coefficient('x'), sum.coefficient('y'), sum.constant), (1, 4, 14));
        let rest = sum.plus(&Linear::atom('x'), -1).unwrap();
        assert_eq!((rest.terms.len(), rest.coefficient('x')), (1, 0));
        assert_eq!(sum.plus(&sum, -1), Some(Linear::constant(0)));
        assert_eq!(sum.wrapping_plus(&sum.wrapping_scaled(-1)), Linear::constant(0));
        assert_eq!(Linear::binary(BinaryOp::Mul, &Linear::constant(3), &sum), sum.scaled(3));
        assert_eq!(Linear::binary(BinaryOp::Mul, &sum, &sum), None);
    }

    #[test]
    fn overflow_is_no_sum_or_wraps() {
        let sum = Linear::term('x', i64::MAX);
        assert_eq!(sum.plus(&sum, 1), None);
        assert_eq!(sum.scaled(2), None);
        assert_eq!(sum.wrapping_plus(&sum), Linear::term('x', -2));
        assert_eq!(Linear::constant(i64::MAX).plus(&Linear::<char>::constant(1), 1), None);
        let wide = sum.bounds(|_| Some((i64::MIN, i64::MAX))).unwrap();
        assert_eq!(wide.1, i128::from(i64::MAX) * i128::from(i64::MAX));
    }

    #[test]
    fn quotients_and_remainders_are_rejoined() {
        // q = x / 4, r = x % 4
        let whole = |sum: &Linear<char>, rest: char, k: i64| {
            (rest == 'r' && sum.coefficient('q') == 4 * k).then(|| ('q', Linear::atom('x')))
        };
        let sum = Linear::term('r', 3).plus(&Linear::term('q', 12), 1).unwrap();
        assert_eq!(sum.clone().rejoined(whole), Linear::term('x', 3));
        let other = sum.plus(&Linear::atom('q'), 1).unwrap();
        assert_eq!(other.clone().rejoined(whole), other);
    }
}
