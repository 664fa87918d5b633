//! The stages of a Fourier transform of few elements, and its definition.
//!
//! A stage turns digits of positions into digits of frequencies (Gentleman and Sande 1966) and leaves
//! results in the order of frequencies (Stockham's; Cochran et al. 1967). Before a stage of radix `r` the
//! element at `(j m + p) s + q` is number `q` of `s` found frequencies at position `j m + p` of `r m` left
//! ones; after it, frequency `k` of the positions `p` is at `(p r + k) s + q`.

use std::f64::consts::TAU;

/// Largest radix.
const RADIX: usize = 16;
/// Largest prime that is one.
const PRIME: usize = 13;
/// What a stage costs beside its operations, in those of a radix of two for each element.
const STAGE: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stage {
    pub(crate) radix: usize,
    /// Frequencies that are found before it, `s`.
    pub(crate) found: usize,
    /// Positions that are left after it, `m`.
    pub(crate) left: usize,
    /// Where its roots of unity start: `exp(2 pi i p k s / n)` for `k` from 1 and all `p`.
    pub(crate) roots: usize,
}

/// The stages of a transform of `n` elements, those of large radices first; `None` if a prime factor
/// is too large for one.
fn stages(n: usize) -> Option<Vec<Stage>> {
    let mut radices = radices(n)?;
    radices.sort_unstable_by(|a, b| b.cmp(a));
    let (mut found, mut roots) = (1, 0);
    let stage = |radix: usize| {
        let left = n / found / radix;
        let stage = Stage { radix, found, left, roots };
        found *= radix;
        roots += if left > 1 { (radix - 1) * left } else { 0 };
        stage
    };
    Some(radices.into_iter().map(stage).collect())
}

/// What a transform is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Form {
    /// Whether exponents are positive.
    pub(crate) inverse: bool,
    /// Whether positions (frequencies, if inverse) are pairs of real numbers: of `2 n` of them the
    /// first `n + 1` frequencies are computed, twice, or are given.
    pub(crate) real: bool,
    /// Where this is the second half of a longer transform, frequencies of the first: rows are that
    /// many times others, and their elements are multiplied by roots of unity first.
    pub(crate) done: u32,
}

/// The elements along the axis of a source, of the transform, and of the result.
pub(crate) fn lengths(form: Form, source: usize) -> [usize; 3] {
    match (form.real, form.inverse) {
        (false, _) => [source; 3],
        (true, false) => [source, source, source + 1],
        (true, true) => [source, source - 1, source - 1],
    }
}

/// Stages, and where their roots of unity are in a table, and others.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) stages: Vec<Stage>,
    /// `exp(pi i k / n)` for `k` up to `n`, of real numbers.
    pub(crate) real: usize,
    /// `exp(2 pi i t / (n done))` for multiples `t` of two to the power of `bits` and for `t` below it,
    /// where frequencies are done.
    pub(crate) coarse: usize,
    pub(crate) fine: usize,
    pub(crate) bits: u32,
    /// Roots of the table; at least one.
    pub(crate) total: usize,
}

/// The layout for a transform of `n` elements; `None` if a prime factor is too large for a stage.
pub(crate) fn layout(n: usize, form: Form) -> Option<Layout> {
    let stages = stages(n)?;
    let of_stages = |stage: &Stage| if stage.left > 1 { (stage.radix - 1) * stage.left } else { 0 };
    let real = stages.iter().map(of_stages).sum();
    let coarse = real + if form.real { n + 1 } else { 0 };
    let whole = n * form.done as usize;
    let bits = whole.ilog2().div_ceil(2);
    let split = form.done > 1;
    let fine = coarse + if split { whole.div_ceil(1 << bits) } else { 0 };
    let total = fine + if split { 1 << bits } else { 0 };
    Some(Layout { stages, real, coarse, fine, bits, total: total.max(1) })
}

/// The table: cosines, then sines.
pub(crate) fn table(n: usize, form: Form) -> Option<Vec<f64>> {
    let layout = layout(n, form)?;
    let mut turns = Vec::with_capacity(layout.total);
    for stage in layout.stages.iter().filter(|stage| stage.left > 1) {
        let of = |k: usize| (0..stage.left).map(move |p| root(p * k * stage.found, n));
        turns.extend((1..stage.radix).flat_map(of));
    }
    if form.real {
        turns.extend((0..=n).map(|k| root(k, 2 * n)));
    }
    if form.done > 1 {
        let whole = n * form.done as usize;
        turns.extend((0..layout.fine - layout.coarse).map(|t| root(t << layout.bits, whole)));
        turns.extend((0..1 << layout.bits).map(|t| root(t, whole)));
    }
    turns.resize(layout.total, (1.0, 0.0));
    Some(turns.iter().map(|x| x.0).chain(turns.iter().map(|x| x.1)).collect())
}

/// The radices of least cost.
fn radices(n: usize) -> Option<Vec<usize>> {
    // The best radices of every divisor that is reached.
    fn best(n: usize, known: &mut Vec<(usize, Option<(usize, usize)>)>) -> Option<(usize, usize)> {
        if n == 1 {
            return Some((0, 1));
        }
        if let Some(&(_, found)) = known.iter().find(|entry| entry.0 == n) {
            return found;
        }
        let divisors = (2..=RADIX.min(n)).filter(|&r| n.is_multiple_of(r));
        let costs = divisors.filter_map(|r| Some((best(n / r, known)?.0 + STAGE + cost(r)?, r)));
        let found = costs.collect::<Vec<_>>().into_iter().min();
        known.push((n, found));
        found
    }
    let mut known = Vec::new();
    let (mut left, mut list) = (n, Vec::new());
    while left > 1 {
        let radix = best(left, &mut known)?.1;
        list.push(radix);
        left /= radix;
    }
    Some(list)
}

/// Operations of a radix for each element.
fn cost(mut r: usize) -> Option<usize> {
    let mut sum = 0;
    for prime in [2, 3, 5, 7, 11, 13] {
        while r.is_multiple_of(prime) {
            (r, sum) = (r / prime, sum + prime);
        }
    }
    (r == 1).then_some(sum)
}

/// The part of `n` that consists of primes that no stage is made for.
pub(crate) fn large_part(n: usize) -> usize {
    let mut large = n;
    for prime in 2..=PRIME {
        while large.is_multiple_of(prime) {
            large /= prime;
        }
    }
    large
}

/// `exp(2 pi i t / n)`, exact where a part is 0, 1 or of equal magnitude as the other one.
pub(crate) fn root(t: usize, n: usize) -> (f64, f64) {
    let t = t % n;
    // The nearest quarter, and eighths of a turn away from it.
    let quarter = (8 * t + n) / (2 * n);
    let rest = (4 * t) as f64 - (quarter * n) as f64;
    let (sin, cos) = match rest as i64 * 2 {
        0 => (0.0, 1.0),
        twice if twice.unsigned_abs() as usize == n => {
            let half = std::f64::consts::FRAC_1_SQRT_2;
            (half.copysign(rest), half)
        }
        _ => (rest / (4 * n) as f64 * TAU).sin_cos(),
    };
    match quarter % 4 {
        0 => (cos, sin),
        1 => (-sin, cos),
        2 => (-cos, -sin),
        _ => (sin, -cos),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_cover_a_length() {
        for n in 1..5000 {
            let Some(list) = stages(n) else {
                assert!(large_part(n) > 1, "{n}");
                continue;
            };
            assert_eq!(large_part(n), 1, "{n}");
            assert_eq!(list.iter().map(|stage| stage.radix).product::<usize>(), n);
            for stage in list {
                assert_eq!(stage.found * stage.radix * stage.left, n);
            }
        }
        let radices = |n| stages(n).into_iter().flatten().map(|s| s.radix).collect::<Vec<_>>();
        assert_eq!(radices(4096), [16, 16, 16]);
        assert_eq!(radices(16), [16]);
    }

    #[test]
    fn roots_are_exact_where_they_can_be() {
        assert_eq!([root(0, 8), root(2, 8), root(4, 8)], [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)]);
        for n in 1..50 {
            for t in 0..n {
                let (c, s) = root(t, n);
                let (sin, cos) = (t as f64 / n as f64 * TAU).sin_cos();
                assert!((c - cos).abs() < 1e-15 && (s - sin).abs() < 1e-15, "{t} of {n}");
            }
        }
    }
}
