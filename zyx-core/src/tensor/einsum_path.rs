//! The order in which einsum contracts pairs of operands.
//!
//! A pair costs as many multiplications as there are combinations of its labels, and as many
//! additions again if some are summed. Up to [`EXHAUSTIVE`] operands the cheapest order is found
//! by dynamic programming over subsets: the labels of a subset's result depend on the subset alone,
//! so its cheapest order is that of its two cheapest halves. Beyond, the pair that shrinks the
//! operands most is contracted first, which is good and not always best.

use super::einsum_parse::Label;

/// Most operands whose order is optimal.
pub(crate) const EXHAUSTIVE: usize = 8;

/// A set of labels.
pub(crate) type Labels = u128;

/// The set of a list.
pub(crate) fn set(labels: &[Label]) -> Labels {
    labels.iter().fold(0, |set, &l| set | 1 << l)
}

/// The labels of a set in order.
pub(crate) fn members(mut set: Labels) -> impl Iterator<Item = Label> {
    std::iter::from_fn(move || {
        let label = set.trailing_zeros();
        set &= set.wrapping_sub(1);
        (label < Labels::BITS).then_some(label as Label)
    })
}

/// What is known about a product of several operands.
pub(crate) struct Problem<'a> {
    /// The labels of each operand.
    pub(crate) operands: &'a [Labels],
    /// The labels of the result.
    pub(crate) output: Labels,
    /// Extents by label.
    pub(crate) extents: &'a [usize],
}

/// Pairs of positions in the list of operands; both leave it and their product joins its end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Path {
    pub(crate) pairs: Vec<[usize; 2]>,
    /// Multiplications and additions of all pairs.
    pub(crate) flops: f64,
}

impl Problem<'_> {
    /// The number of combinations of labels.
    fn size(&self, labels: Labels) -> f64 {
        members(labels).map(|l| self.extents[l as usize] as f64).product()
    }

    /// The cost of a pair whose result keeps some labels.
    fn cost(&self, a: Labels, b: Labels, kept: Labels) -> f64 {
        let all = a | b;
        self.size(all) * if all & !kept == 0 { 1.0 } else { 2.0 }
    }

    pub(crate) fn path(&self) -> Path {
        match self.operands.len() {
            0 | 1 => Path { pairs: vec![], flops: 0.0 },
            n if n <= EXHAUSTIVE => self.optimal(),
            _ => self.greedy(),
        }
    }

    fn optimal(&self) -> Path {
        let n = self.operands.len();
        let whole = (1usize << n) - 1;
        let union = |subset: usize| {
            (0..n).filter(|i| subset >> i & 1 == 1).fold(0, |set, i| set | self.operands[i])
        };
        // What a subset's product has to keep: what the others or the result need.
        let kept: Vec<Labels> =
            (0..=whole).map(|s| union(s) & (self.output | union(whole & !s))).collect();
        let mut best = vec![(0.0f64, 0usize); whole + 1];
        for subset in 1..=whole {
            if subset.count_ones() < 2 {
                continue;
            }
            let mut cheapest = (f64::INFINITY, 0);
            let mut part = (subset - 1) & subset;
            while part > 0 {
                let rest = subset & !part;
                // Each split once: the part with the lowest operand.
                if part & subset & subset.wrapping_neg() != 0 {
                    let pair = self.cost(kept[part], kept[rest], kept[subset]);
                    let cost = best[part].0 + best[rest].0 + pair;
                    if cost < cheapest.0 || cheapest.1 == 0 {
                        cheapest = (cost, part);
                    }
                }
                part = (part - 1) & subset;
            }
            best[subset] = cheapest;
        }
        let mut list: Vec<usize> = (0..n).map(|i| 1 << i).collect();
        let mut pairs = Vec::new();
        emit(whole, &best, &mut list, &mut pairs);
        Path { pairs, flops: best[whole].0 }
    }

    fn greedy(&self) -> Path {
        let mut list = self.operands.to_vec();
        let (mut pairs, mut flops) = (Vec::new(), 0.0);
        while list.len() > 1 {
            let mut chosen = ((f64::INFINITY, f64::INFINITY), [0, 1], 0);
            for j in 1..list.len() {
                for i in 0..j {
                    let others = list.iter().enumerate().filter(|&(k, _)| k != i && k != j);
                    let needed = others.fold(self.output, |set, (_, &l)| set | l);
                    let kept = (list[i] | list[j]) & needed;
                    let growth = self.size(kept) - self.size(list[i]) - self.size(list[j]);
                    let rank = (growth, self.cost(list[i], list[j], kept));
                    if rank < chosen.0 || (i, j) == (0, 1) {
                        chosen = (rank, [i, j], kept);
                    }
                }
            }
            let ((_, cost), [i, j], kept) = chosen;
            flops += cost;
            list.remove(j);
            list.remove(i);
            list.push(kept);
            pairs.push([i, j]);
        }
        Path { pairs, flops }
    }
}

/// Lists the pairs that make the product of a subset, its halves first.
fn emit(subset: usize, best: &[(f64, usize)], list: &mut Vec<usize>, pairs: &mut Vec<[usize; 2]>) {
    if subset.count_ones() < 2 {
        return;
    }
    let part = best[subset].1;
    let rest = subset & !part;
    emit(part, best, list, pairs);
    emit(rest, best, list, pairs);
    let place = |s: usize| list.iter().position(|&other| other == s);
    let (Some(a), Some(b)) = (place(part), place(rest)) else {
        unreachable!("invariant: both halves are in the list")
    };
    let pair = [a.min(b), a.max(b)];
    list.remove(pair[1]);
    list.remove(pair[0]);
    list.push(subset);
    pairs.push(pair);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every order of every pair, without reuse of anything.
    fn exhaustive(problem: &Problem<'_>, list: &[Labels]) -> f64 {
        if list.len() < 2 {
            return 0.0;
        }
        let mut best = f64::INFINITY;
        for j in 1..list.len() {
            for i in 0..j {
                let mut rest: Vec<Labels> = list.to_vec();
                rest.remove(j);
                rest.remove(i);
                let needed = rest.iter().fold(problem.output, |set, &l| set | l);
                let kept = (list[i] | list[j]) & needed;
                let cost = problem.cost(list[i], list[j], kept);
                rest.push(kept);
                best = best.min(cost + exhaustive(problem, &rest));
            }
        }
        best
    }

    /// The flops of a path, counted along it.
    fn walked(problem: &Problem<'_>, path: &Path) -> f64 {
        let mut list = problem.operands.to_vec();
        let mut flops = 0.0;
        for &[i, j] in &path.pairs {
            let (b, a) = (list.remove(j), list.remove(i));
            let needed = list.iter().fold(problem.output, |set, &l| set | l);
            let kept = (a | b) & needed;
            flops += problem.cost(a, b, kept);
            list.push(kept);
        }
        assert_eq!(list.len(), 1);
        flops
    }

    #[test]
    fn orders_are_optimal() {
        let mut state = 1u64;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % n
        };
        for round in 0..200 {
            // All orders of eight operands are 1.6 million: one does, and a few of seven.
            let n = match round {
                0 => 8,
                1..4 => 7,
                _ => 2 + round % 5,
            };
            let extents: Vec<usize> = (0..8).map(|_| 1 + below(9) as usize).collect();
            let mut operands: Vec<Labels> = (0..n).map(|_| 1 + below(255) as Labels).collect();
            let output = below(256) as Labels & operands.iter().fold(0, |a, b| a | b);
            // Labels of one operand alone are summed before.
            for i in 0..n {
                let others = (0..n).filter(|&k| k != i).fold(output, |set, k| set | operands[k]);
                operands[i] &= others;
            }
            let problem = Problem { operands: &operands, output, extents: &extents };
            let path = problem.path();
            assert_eq!(path.flops, exhaustive(&problem, &operands), "{operands:?}");
            assert_eq!(path.flops, walked(&problem, &path));
            let greedy = problem.greedy();
            assert_eq!(greedy.flops, walked(&problem, &greedy));
            assert!(greedy.flops >= path.flops);
        }
    }
}
