//! Sets of integers as bounds and a divisor, and how operations act on them.

use super::gcd;
use crate::dtype::{Class, DType};
use crate::ops::BinaryOp;
use std::cmp::Ordering;

/// The integers between two bounds (inclusive) that are multiples of a number.
///
/// Bounds are wider than any integer dtype, so that results can be compared with its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Smallest value.
    pub min: i128,
    /// Largest value; less than `min` when there is no value at all (dead code).
    pub max: i128,
    /// Every value is a multiple of this; 0 when the only value is 0.
    pub multiple_of: u64,
}

impl Interval {
    /// All integers between two bounds.
    pub const fn new(min: i128, max: i128) -> Interval {
        Interval { min, max, multiple_of: 1 }
    }

    /// One integer.
    pub const fn exactly(x: i128) -> Interval {
        let magnitude = x.unsigned_abs();
        // Divisors beyond 64 bits are of no use; their lower half is one as well.
        let multiple_of = if magnitude > u64::MAX as u128 { 1 } else { magnitude as u64 };
        Interval { min: x, max: x, multiple_of }
    }

    /// Every value a dtype can hold; for floats nothing is known and nothing is said.
    pub fn of(dtype: DType) -> Interval {
        let bits = dtype.bits() as u32;
        match dtype.class() {
            Class::Bool => Interval::new(0, 1),
            Class::Unsigned => Interval::new(0, (1 << bits) - 1),
            Class::Signed => Interval::new(-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            Class::Float => Interval::new(i128::MIN, i128::MAX),
        }
    }

    /// Whether there is no value.
    pub const fn is_empty(self) -> bool {
        self.min > self.max
    }

    /// Whether every value lies between the bounds.
    pub const fn within(self, min: i128, max: i128) -> bool {
        self.is_empty() || (min <= self.min && self.max <= max)
    }

    /// The value, if there is only one.
    pub const fn constant(self) -> Option<i128> {
        if self.min == self.max { Some(self.min) } else { None }
    }

    /// Whether every value is a multiple of `n`.
    pub const fn divisible_by(self, n: u64) -> bool {
        n != 0 && self.multiple_of.is_multiple_of(n)
    }

    /// The values in both.
    pub(crate) fn and(self, other: Interval) -> Interval {
        let (a, b) = (self.multiple_of, other.multiple_of);
        // The least common multiple where it fits, else the larger.
        let multiple_of = match (a, b) {
            (0, _) | (_, 0) => 0,
            _ => (a / gcd(a, b)).checked_mul(b).unwrap_or(a.max(b)),
        };
        let (min, max) = (self.min.max(other.min), self.max.min(other.max));
        Interval { min, max, multiple_of }.tight()
    }

    /// The values in either, and those between.
    pub(crate) fn or(self, other: Interval) -> Interval {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other,
            (_, true) => self,
            _ => Interval {
                min: self.min.min(other.min),
                max: self.max.max(other.max),
                multiple_of: gcd(self.multiple_of, other.multiple_of),
            },
        }
    }

    /// Bounds moved to the nearest multiples.
    fn tight(self) -> Interval {
        let m = self.multiple_of as i128;
        match m {
            0 if self.min <= 0 && self.max >= 0 => Interval::exactly(0),
            0 | 1 => self,
            _ => {
                let up = self.min.checked_add(m - 1).map_or(self.min, |x| x.div_euclid(m) * m);
                Interval { min: up, max: self.max.div_euclid(m).saturating_mul(m), ..self }
            }
        }
    }

    /// Both bounds and the divisor through functions that keep or turn the order.
    fn corners(self, other: Interval, f: impl Fn(i128, i128) -> i128) -> Interval {
        let corners = [
            f(self.min, other.min),
            f(self.min, other.max),
            f(self.max, other.min),
            f(self.max, other.max),
        ];
        let min = corners.into_iter().fold(i128::MAX, Ord::min);
        Interval::new(min, corners.into_iter().fold(i128::MIN, Ord::max))
    }

    pub(crate) fn add(self, other: Interval) -> Interval {
        Interval {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
            multiple_of: gcd(self.multiple_of, other.multiple_of),
        }
    }

    pub(crate) fn neg(self) -> Interval {
        Interval { min: self.max.saturating_neg(), max: self.min.saturating_neg(), ..self }
    }

    pub(crate) fn mul(self, other: Interval) -> Interval {
        let multiple_of = match self.multiple_of.checked_mul(other.multiple_of) {
            Some(product) => product,
            None => self.multiple_of.max(other.multiple_of),
        };
        Interval { multiple_of, ..self.corners(other, i128::saturating_mul) }
    }

    pub(crate) fn scale(self, factor: i64) -> Interval {
        self.mul(Interval::exactly(factor as i128))
    }

    /// Division truncated towards zero; 0 by 0.
    pub(crate) fn div(self, other: Interval) -> Interval {
        match other.constant() {
            Some(0) => Interval::exactly(0),
            Some(c) => {
                let quotient = |x: i128, _| x.checked_div(c).unwrap_or(i128::MAX);
                let exact = u64::try_from(c.unsigned_abs())
                    .ok()
                    .filter(|&c| self.multiple_of.is_multiple_of(c));
                let multiple_of = exact.map_or(1, |c| self.multiple_of / c);
                Interval { multiple_of, ..self.corners(other, quotient) }
            }
            None if other.min >= 1 => self.corners(other, |x, y| x / y),
            // A quotient is no larger than its dividend; `MIN / -1` is the one exception.
            None => {
                let largest = self.min.unsigned_abs().max(self.max.unsigned_abs()) as i128;
                Interval::new(-largest, largest)
            }
        }
    }

    /// Remainder with the sign of the dividend; the dividend by 0.
    pub(crate) fn rem(self, other: Interval) -> Interval {
        let largest = match other.constant() {
            Some(c) if c != 0 => {
                let c = c.unsigned_abs();
                if self.within(1 - c as i128, c as i128 - 1) {
                    return self;
                }
                let divisor = u64::try_from(c).unwrap_or(1);
                if self.divisible_by(divisor) {
                    return Interval::exactly(0);
                }
                let multiple_of = gcd(self.multiple_of, divisor);
                let (min, max) = (self.min.max(1 - c as i128).min(0), c as i128 - 1);
                return Interval { min, max: self.max.clamp(0, max), multiple_of }.tight();
            }
            _ if other.min >= 1 => other.max - 1,
            _ => i128::MAX,
        };
        Interval::new(self.min.max(-largest).min(0), self.max.min(largest).max(0))
    }

    pub(crate) fn max(self, other: Interval) -> Interval {
        Interval {
            min: self.min.max(other.min),
            max: self.max.max(other.max),
            multiple_of: gcd(self.multiple_of, other.multiple_of),
        }
    }

    pub(crate) fn min(self, other: Interval) -> Interval {
        self.neg().max(other.neg()).neg()
    }

    /// Bitwise and of two's complement numbers.
    pub(crate) fn bit_and(self, other: Interval) -> Interval {
        let low_zeros = |x: Interval| match x.multiple_of {
            0 => 1,
            m => 1u64 << m.trailing_zeros(),
        };
        let multiple_of = low_zeros(self).max(low_zeros(other));
        let bounds = match (self.min >= 0, other.min >= 0) {
            (true, true) => Interval::new(0, self.max.min(other.max)),
            (true, false) => Interval::new(0, self.max),
            (false, true) => Interval::new(0, other.max),
            (false, false) => Interval::new(i128::MIN, self.max.max(other.max)),
        };
        Interval { multiple_of, ..bounds }
    }

    /// Bitwise or, exclusive or: of numbers that are not negative, below the next power of two.
    pub(crate) fn bit_or(self, other: Interval) -> Interval {
        if self.min < 0 || other.min < 0 {
            return Interval::new(i128::MIN, i128::MAX);
        }
        let bits = 128 - (self.max | other.max).leading_zeros();
        Interval::new(0, if bits >= 127 { i128::MAX } else { (1 << bits) - 1 })
    }

    /// Shift left by a constant.
    pub(crate) fn shl(self, other: Interval) -> Interval {
        match other.constant() {
            Some(s @ 0..=62) => self.scale(1 << s),
            _ => Interval::new(i128::MIN, i128::MAX),
        }
    }

    /// Arithmetic shift right: the quotient rounded down.
    pub(crate) fn shr(self, other: Interval) -> Interval {
        match other.constant() {
            Some(s @ 0..=62) => {
                let exact = self.multiple_of.is_multiple_of(1 << s);
                let multiple_of = if exact { self.multiple_of >> s } else { 1 };
                Interval { min: self.min >> s, max: self.max >> s, multiple_of }
            }
            _ => Interval::new(self.min.min(0), self.max.max(0)),
        }
    }

    /// The exact result of an op on integers of a dtype, or what the dtype holds.
    pub(crate) fn binary(op: BinaryOp, dtype: DType, a: Interval, b: Interval) -> Interval {
        match op {
            BinaryOp::Add => a.add(b),
            BinaryOp::Sub => a.add(b.neg()),
            BinaryOp::Mul => a.mul(b),
            BinaryOp::Div => a.div(b),
            BinaryOp::Rem => a.rem(b),
            BinaryOp::Max => a.max(b),
            BinaryOp::Min => a.min(b),
            BinaryOp::And => a.bit_and(b),
            BinaryOp::Or | BinaryOp::Xor => a.bit_or(b),
            BinaryOp::Shl if (b.max as usize) < dtype.bits() => a.shl(b),
            BinaryOp::Shr if (b.max as usize) < dtype.bits() => a.shr(b),
            _ => Interval::of(dtype),
        }
    }

    /// Whether the values of one are below, among or above those of the other: `Some` if the
    /// comparison of any two gives the same.
    pub fn compare(self, other: Interval) -> Option<Ordering> {
        match (self.constant(), other.constant()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ if self.max < other.min => Some(Ordering::Less),
            _ if self.min > other.max => Some(Ordering::Greater),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::Scalar;

    fn holds(interval: Interval, x: i128) -> bool {
        let m = interval.multiple_of as i128;
        (interval.min..=interval.max).contains(&x) && if m == 0 { x == 0 } else { x % m == 0 }
    }

    /// Every operation on every small interval against every value in it.
    #[test]
    fn operations_hold_every_result() {
        let ops = [
            BinaryOp::Add,
            BinaryOp::Sub,
            BinaryOp::Mul,
            BinaryOp::Div,
            BinaryOp::Rem,
            BinaryOp::Max,
            BinaryOp::Min,
            BinaryOp::And,
            BinaryOp::Or,
            BinaryOp::Xor,
            BinaryOp::Shl,
            BinaryOp::Shr,
        ];
        let mut sets = Vec::new();
        for (min, max) in [(-7, 9), (0, 5), (3, 3), (0, 0), (-4, -1), (-8, 8), (6, 12), (-3, -3)] {
            for multiple_of in [1, 2, 3, 4] {
                sets.push(Interval { min, max, multiple_of });
            }
            if min == max {
                sets.push(Interval::exactly(min));
            }
        }
        let values = |set: Interval| (set.min..=set.max).filter(move |&x| holds(set, x));
        for op in ops {
            for &a in &sets {
                for &b in &sets {
                    let result = Interval::binary(op, DType::I64, a, b);
                    for x in values(a) {
                        for y in values(b) {
                            let scalar = |x: i128| Scalar::from(x as i64);
                            let z = op.eval(scalar(x), scalar(y)).to_i128();
                            assert!(holds(result, z), "{op} {a:?} {b:?}: {x} {y} {z} {result:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn intersections_and_unions_hold_their_values() {
        let (a, b) = (Interval { min: -6, max: 11, multiple_of: 4 }, Interval::new(-5, 30));
        let b = Interval { multiple_of: 6, ..b };
        for x in -40..40 {
            assert!(!(holds(a, x) && holds(b, x)) || holds(a.and(b), x), "{x}");
            assert!(!(holds(a, x) || holds(b, x)) || holds(a.or(b), x), "{x}");
        }
        assert_eq!(a.and(b), Interval { min: 0, max: 0, multiple_of: 12 });
        assert!(Interval::new(3, 4).and(Interval::new(5, 6)).is_empty());
    }
}
