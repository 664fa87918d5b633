//! Index algebra: integer expressions over loop counters, kept in a normal form.
//!
//! Movement ops are functions from the indices of a result to the indices of its source. Pulled
//! from an output to a leaf they compose into one expression; there is no view object. The normal
//! form is a sum of terms `coefficient * atom` plus a constant, where an atom is a loop counter,
//! a quotient or remainder by a constant that could not be resolved, or an opaque value (a loaded
//! index). Splitting and merging axes cancels: `c * (x / c) + x % c` is recognised as `x`, and a
//! quotient whose dividend's remaining part lies in `0 .. c` is resolved exactly. What is left is
//! affine wherever the composition of the ops is.
//!
//! Division is floor division. Dividends of the quotients that remain are never negative, so
//! hardware's truncating division computes them.

use super::{Linear, gcd_signed};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The position of an atom in its [`Algebra`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AtomId(u32);

impl AtomId {
    /// The position.
    pub fn idx(self) -> usize {
        self.0 as usize
    }
}

/// The identity of a loop counter or run-time value: a number within a scope.
///
/// Numbers are allocated in order within a scope, so those of different scopes never meet, and computations that are
/// equal and are numbered in equal scopes have equal atoms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CounterId {
    scope: u8,
    number: u32,
}

impl CounterId {
    /// The first one of a scope.
    pub fn first(scope: u8) -> CounterId {
        CounterId { scope, number: 0 }
    }

    /// The one with this number.
    pub fn numbered(scope: u8, number: u32) -> CounterId {
        CounterId { scope, number }
    }
}

/// What a term multiplies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Atom {
    /// A loop counter in `0 .. extent`.
    Axis {
        /// Tells counters of one extent apart.
        number: CounterId,
        /// Values.
        extent: usize,
    },
    /// A value known only at run time, in `0 .. extent` wherever it is used.
    Opaque {
        /// Tells values of one extent apart.
        number: CounterId,
        /// Values.
        extent: usize,
    },
    /// Floor of the expression divided by a positive constant.
    Div(Index, i64),
    /// The remainder to it.
    Mod(Index, i64),
}

/// An index expression.
pub type Index = Linear<AtomId>;

/// Atoms, each with its range.
#[derive(Debug, Default)]
pub struct Algebra {
    atoms: Vec<Atom>,
    ranges: Vec<(i64, i64)>,
    ids: FxHashMap<Atom, AtomId>,
    /// The next counter or run-time value.
    next: CounterId,
}

impl Algebra {
    /// A new loop counter.
    pub fn axis(&mut self, extent: usize) -> AtomId {
        let number = self.allocate();
        self.intern(Atom::Axis { number, extent })
    }

    /// A new run-time value.
    pub fn opaque(&mut self, extent: usize) -> AtomId {
        let number = self.allocate();
        self.intern(Atom::Opaque { number, extent })
    }

    fn allocate(&mut self) -> CounterId {
        let next = CounterId { number: self.next.number + 1, ..self.next };
        std::mem::replace(&mut self.next, next)
    }

    /// Allocates counters and run-time values from here on. Gives the one that was next.
    ///
    /// Expressions of computations that never meet may have the same atoms: then those of equal
    /// computations are equal.
    pub fn allocate_from(&mut self, next: CounterId) -> CounterId {
        std::mem::replace(&mut self.next, next)
    }

    /// The expression that is one atom; a counter of extent 1 is 0.
    pub fn of(&self, atom: AtomId) -> Index {
        match self.atoms[atom.0 as usize] {
            Atom::Axis { extent: 1, .. } => Index::constant(0),
            _ => Index::atom(atom),
        }
    }

    /// What a term multiplies.
    pub fn atom(&self, id: AtomId) -> &Atom {
        &self.atoms[id.0 as usize]
    }

    fn intern(&mut self, atom: Atom) -> AtomId {
        if let Some(&id) = self.ids.get(&atom) {
            return id;
        }
        let range = match &atom {
            Atom::Axis { extent, .. } | Atom::Opaque { extent, .. } => {
                (0, (*extent as i64 - 1).max(0))
            }
            Atom::Div(x, by) => {
                let (min, max) = self.range(x);
                (min.div_euclid(*by), max.div_euclid(*by))
            }
            Atom::Mod(_, by) => (0, by - 1),
        };
        let id = AtomId(self.atoms.len() as u32);
        self.ids.insert(atom.clone(), id);
        self.atoms.push(atom);
        self.ranges.push(range);
        id
    }

    /// The smallest and largest value.
    pub fn range(&self, x: &Index) -> (i64, i64) {
        let held = |x: i128| x.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        let bounds = x.bounds(|atom| Some(self.ranges[atom.0 as usize]));
        bounds.map_or((i64::MIN, i64::MAX), |(low, high)| (held(low), held(high)))
    }

    /// `by * x`
    pub fn scale(&self, x: &Index, by: i64) -> Index {
        x.wrapping_scaled(by)
    }

    /// `x + by`
    pub fn offset(&self, x: &Index, by: i64) -> Index {
        Index { constant: x.constant + by, terms: x.terms.clone() }
    }

    /// `x + y`
    pub fn add(&mut self, x: &Index, y: &Index) -> Index {
        x.wrapping_plus(y).rejoined(|sum, rest, k| {
            let Atom::Mod(x, by) = self.atom(rest).clone() else { return None };
            let (quotient, times) = self.div(&x, by).single()?;
            (times == 1 && sum.coefficient(quotient) == k * by).then_some((quotient, x))
        })
    }

    /// Quotient and remainder parts of `x = c * quotient + rest`, with `rest` as small as terms
    /// allow.
    fn divide(&self, x: &Index, by: i64) -> (Index, Index) {
        let mut quotient = x.map(|c| c / by);
        let mut rest = x.map(|c| c % by);
        quotient.constant = x.constant.div_euclid(by);
        rest.constant = x.constant.rem_euclid(by);
        // Keep the rest nonnegative, so that truncating division is floor division.
        let min = self.range(&rest).0;
        if min < 0 {
            let shift = (-min + by - 1) / by;
            rest.constant += shift * by;
            quotient.constant -= shift;
        }
        (quotient, rest)
    }

    /// `x` as `unit * high + low` with `0 <= low < unit` and `unit` a divisor of `by`, so that
    /// `low` has no part in the quotient by `by`: `(1024 m + n) / 4096` is `m / 4` for `n` below
    /// 1024. `None` if no term can be split off.
    fn without_low(&self, x: &Index, by: i64) -> Option<(Index, Index, i64)> {
        let mut terms = x.terms.clone();
        terms.sort_by_key(|term| term.1.abs());
        (1..terms.len()).rev().find_map(|n| {
            let unit = terms[n..].iter().fold(by, |g, term| gcd_signed(g, term.1));
            let part = |terms: &[(AtomId, i64)], constant| {
                let mut terms: SmallVec<[(AtomId, i64); 4]> = terms.iter().copied().collect();
                terms.sort_unstable();
                Index { constant, terms }
            };
            let low = part(&terms[..n], x.constant.rem_euclid(unit));
            let (min, max) = self.range(&low);
            (unit > 1 && 0 <= min && max < unit).then(|| {
                let high = part(&terms[n..], x.constant - x.constant.rem_euclid(unit));
                (high.map(|c| c / unit), low, unit)
            })
        })
    }

    /// `floor(x / by)` for positive `by`.
    pub fn div(&mut self, x: &Index, by: i64) -> Index {
        if by == 1 {
            return x.clone();
        }
        let (quotient, rest) = self.divide(x, by);
        let (min, max) = self.range(&rest);
        if 0 <= min && max < by {
            return quotient;
        }
        if let Some((high, _, unit)) = self.without_low(&rest, by) {
            let high = self.div(&high, by / unit);
            return self.add(&quotient, &high);
        }
        let common = gcd_of(&rest, by);
        let (rest, by) = (rest.map(|c| c / common), by / common);
        let inner = match rest.single() {
            // (x / a) / b = x / (a * b)
            Some((atom, 1)) => match self.atoms[atom.0 as usize].clone() {
                Atom::Div(x, a) => {
                    let inner = self.div(&x, a * by);
                    return self.add(&inner, &quotient);
                }
                _ => rest,
            },
            _ => rest,
        };
        let atom = self.intern(Atom::Div(inner, by));
        let floor = self.of(atom);
        self.add(&quotient, &floor)
    }

    /// `x` modulo `by` for positive `by`.
    pub fn rem(&mut self, x: &Index, by: i64) -> Index {
        if by == 1 {
            return Index::constant(0);
        }
        let (_, rest) = self.divide(x, by);
        let (min, max) = self.range(&rest);
        if 0 <= min && max < by {
            return rest;
        }
        if let Some((high, low, unit)) = self.without_low(&rest, by) {
            let high = self.rem(&high, by / unit);
            let high = self.scale(&high, unit);
            return self.add(&high, &low);
        }
        let common = gcd_of(&rest, by);
        let (rest, by) = (rest.map(|c| c / common), by / common);
        if by == 1 {
            return Index::constant(0);
        }
        let atom = self.intern(Atom::Mod(rest, by));
        let whole = self.of(atom);
        self.scale(&whole, common)
    }

    /// The position in row-major order of an index tuple.
    pub fn flatten(&mut self, tuple: &[Index], dims: &[usize]) -> Index {
        let mut flat = Index::constant(0);
        let mut stride = 1i64;
        for (index, &dim) in tuple.iter().zip(dims).rev() {
            let term = self.scale(index, stride);
            flat = self.add(&flat, &term);
            stride *= dim.max(1) as i64;
        }
        flat
    }

    /// The index tuple of a position in row-major order.
    pub fn unflatten(&mut self, flat: &Index, dims: &[usize]) -> Vec<Index> {
        let mut tuple = vec![Index::constant(0); dims.len()];
        let mut rest = flat.clone();
        for (axis, &dim) in dims.iter().enumerate().rev() {
            if dim == 1 {
                continue;
            }
            let dim = dim.max(1) as i64;
            // The outermost quotient needs no remainder: positions are in range.
            let outermost = dims[..axis].iter().all(|&d| d == 1);
            tuple[axis] = if outermost { rest.clone() } else { self.rem(&rest, dim) };
            rest = self.div(&rest, dim);
        }
        tuple
    }

    /// `x` with atoms replaced by expressions, also inside quotients.
    pub fn substitute(&mut self, x: &Index, by: &FxHashMap<AtomId, Index>) -> Index {
        let mut sum = Index::constant(x.constant);
        for &(id, coefficient) in &x.terms {
            let atom = match (by.get(&id), self.atom(id).clone()) {
                (Some(replacement), _) => replacement.clone(),
                (None, Atom::Div(inner, by_constant)) => {
                    let inner = self.substitute(&inner, by);
                    self.div(&inner, by_constant)
                }
                (None, Atom::Mod(inner, by_constant)) => {
                    let inner = self.substitute(&inner, by);
                    self.rem(&inner, by_constant)
                }
                (None, Atom::Axis { .. } | Atom::Opaque { .. }) => self.of(id),
            };
            let term = self.scale(&atom, coefficient);
            sum = self.add(&sum, &term);
        }
        sum
    }

    /// The value of `x` for values of counters and of what is known at run time only.
    pub fn evaluate(&self, x: &Index, of: &impl Fn(AtomId) -> i64) -> i64 {
        let term = |&(id, c): &(AtomId, i64)| {
            c * match self.atom(id) {
                Atom::Axis { .. } | Atom::Opaque { .. } => of(id),
                Atom::Div(x, by) => self.evaluate(x, of).div_euclid(*by),
                Atom::Mod(x, by) => self.evaluate(x, of).rem_euclid(*by),
            }
        };
        x.constant + x.terms.iter().map(term).sum::<i64>()
    }

    /// Calls `f` with every loop counter that occurs in `x`, also inside quotients.
    pub fn visit_axes(&self, x: &Index, f: &mut impl FnMut(AtomId)) {
        self.visit(x, &mut |id, atom| {
            if let Atom::Axis { .. } = atom {
                f(id)
            }
        });
    }

    /// Calls `f` with every value that is known only at run time, also inside quotients.
    pub fn visit_opaque(&self, x: &Index, f: &mut impl FnMut(AtomId)) {
        self.visit(x, &mut |id, atom| {
            if let Atom::Opaque { .. } = atom {
                f(id)
            }
        });
    }

    /// Calls `f` with every counter and run-time value.
    fn visit(&self, x: &Index, f: &mut impl FnMut(AtomId, &Atom)) {
        for &(id, _) in &x.terms {
            match &self.atoms[id.0 as usize] {
                Atom::Div(x, _) | Atom::Mod(x, _) => self.visit(x, f),
                atom => f(id, atom),
            }
        }
    }

    /// Whether every atom is a loop counter.
    pub fn is_affine(&self, x: &Index) -> bool {
        x.terms.iter().all(|t| matches!(self.atoms[t.0.0 as usize], Atom::Axis { .. }))
    }

    /// Whether `x` takes each value `0 .. count` exactly once as its counters run: an affine
    /// mixed-radix number.
    pub fn is_bijection(&self, x: &Index, count: usize) -> bool {
        if x.constant != 0 || !self.is_affine(x) {
            return false;
        }
        let mut digits: SmallVec<[(i64, i64); 4]> =
            x.terms.iter().map(|&(a, c)| (c, self.ranges[a.0 as usize].1 + 1)).collect();
        digits.sort_unstable();
        let mut next = 1;
        for (coefficient, extent) in digits {
            if coefficient != next {
                return false;
            }
            next *= extent;
        }
        next == count as i64
    }
}

/// The greatest number that divides `start` and all coefficients.
fn gcd_of(x: &Index, start: i64) -> i64 {
    x.terms.iter().fold(gcd_signed(start, x.constant), |g, t| gcd_signed(g, t.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitting_and_merging_cancel() {
        let mut a = Algebra::default();
        let axis = a.axis(24);
        let x = a.of(axis);
        for dims in [&[2usize, 3, 4][..], &[24], &[4, 1, 6], &[3, 8], &[1, 24, 1]] {
            let tuple = a.unflatten(&x, dims);
            assert_eq!(a.flatten(&tuple, dims), x, "{dims:?}");
        }
    }

    #[test]
    fn merged_axes_split_back_exactly() {
        let mut a = Algebra::default();
        let (i, j) = (a.axis(5), a.axis(7));
        let tuple = [a.of(i), a.of(j)];
        let flat = a.flatten(&tuple, &[5, 7]);
        assert_eq!(a.unflatten(&flat, &[5, 7]), tuple);
        assert!(a.is_bijection(&flat, 35));
    }

    #[test]
    fn windows_are_affine() {
        // One axis of 10, kernel 3: repeat 4 times, cut to 3 * 11, split to [3, 11], cut to
        // [3, 8]; element (k, o) is x[k + o].
        let mut a = Algebra::default();
        let (k, o) = (a.axis(3), a.axis(8));
        let tuple = [a.of(k), a.of(o)];
        let flat = a.flatten(&tuple, &[3, 11]);
        let index = a.unflatten(&flat, &[4, 10])[1].clone();
        let expected = a.add(&tuple[0], &tuple[1]);
        assert_eq!(index, expected);
    }

    #[test]
    fn low_terms_have_no_part_in_quotients() {
        let mut a = Algebra::default();
        let (m, n) = (a.axis(64), a.axis(10));
        let (x, y) = (a.of(m), a.of(n));
        let high = a.scale(&x, 10);
        let sum = a.add(&high, &y);
        // Digits of 10 m + n in a shape [8, 8, 10] and back.
        let digits = a.unflatten(&sum, &[8, 8, 10]);
        assert_eq!(digits[2], y);
        assert_eq!(digits[0], a.div(&x, 8));
        assert_eq!(a.flatten(&digits, &[8, 8, 10]), sum);
    }

    #[test]
    fn quotients_match_arithmetic() {
        let mut a = Algebra::default();
        let (i, j) = (a.axis(6), a.axis(10));
        let (x, y) = (a.of(i), a.of(j));
        let sum = a.scale(&x, 7);
        let sum = a.add(&sum, &y);
        let sum = a.offset(&sum, 3);
        let value = |x: &Index, a: &Algebra, i0: i64, j0: i64| {
            a.evaluate(x, &|atom| if atom == i { i0 } else { j0 })
        };
        for by in 1..12 {
            let (q, r) = (a.div(&sum, by), a.rem(&sum, by));
            let nested = a.div(&q, 3);
            for i0 in 0..6 {
                for j0 in 0..10 {
                    let v = 7 * i0 + j0 + 3;
                    assert_eq!(value(&q, &a, i0, j0), v / by);
                    assert_eq!(value(&r, &a, i0, j0), v % by);
                    assert_eq!(value(&nested, &a, i0, j0), v / by / 3);
                }
            }
        }
    }
}
