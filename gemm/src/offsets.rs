//! Where the elements of a merged index group lie: the separable offsets of one operand.
//!
//! A group of dimensions (all of k, say) is walked by one linear index, last dimension fastest. Its
//! [`Offsets`] in an operand is a function from that index to elements: a multiple of one stride if
//! the dimensions fuse, a table otherwise. The table is the block-scatter vector of TBLIS
//! (Matthews, "High-performance tensor contraction without transposition", 2016): it makes any
//! permutation, window, broadcast or flip an ordinary matrix for the price of one lookup.

use std::ops::Range;

/// Offsets of a group of `len` indices.
#[derive(Debug)]
pub(super) struct Offsets {
    /// Number of indices.
    pub(super) len: usize,
    /// Length of the runs in which offsets advance by `step`; divides `len`.
    pub(super) run: usize,
    /// Elements between neighbours in a run.
    pub(super) step: isize,
    /// Offset of every index; empty if the whole group is one run.
    table: Vec<isize>,
}

impl Offsets {
    /// The offsets of dimensions given as (length, stride), outermost first.
    ///
    /// The caller has made sure that lengths and offsets do not overflow.
    pub(super) fn new(dims: &[(usize, isize)]) -> Offsets {
        let len = dims.iter().map(|d| d.0).product();
        let mut inner = dims.iter().rev().filter(|d| d.0 != 1);
        let (mut run, step) = inner.next().copied().unwrap_or((1, 0));
        for &(n, stride) in inner.by_ref() {
            if stride != step.wrapping_mul(run as isize) {
                break;
            }
            run *= n;
        }
        let table = if run == len || len == 0 { Vec::new() } else { tabulate(dims, len) };
        Offsets { len, run: run.max(1), step, table }
    }

    /// The offset of index `i`, which must be less than `len`.
    #[inline(always)]
    pub(super) fn at(&self, i: usize) -> isize {
        if self.table.is_empty() { (i as isize).wrapping_mul(self.step) } else { self.table[i] }
    }

    /// Sets `pointers` to the elements at indices `range`, counted from `base`.
    #[inline(always)]
    pub(super) fn point<T>(&self, base: *const T, range: Range<usize>, pointers: &mut [*const T]) {
        if self.table.is_empty() {
            let mut p = base.wrapping_offset((range.start as isize).wrapping_mul(self.step));
            for (_, pointer) in range.zip(pointers) {
                *pointer = p;
                p = p.wrapping_offset(self.step);
            }
        } else {
            for (offset, pointer) in self.table[range].iter().zip(pointers) {
                *pointer = base.wrapping_offset(*offset);
            }
        }
    }

    /// The offsets from index `i` on, if they are tabulated.
    pub(super) fn table(&self, i: usize) -> &[isize] {
        self.table.get(i..).unwrap_or(&[])
    }

    /// Whether one stride describes the whole group.
    pub(super) fn is_uniform(&self) -> bool {
        self.table.is_empty()
    }

    /// How many indices from `i` on advance by `step`, at least 1.
    #[inline(always)]
    pub(super) fn left_in_run(&self, i: usize) -> usize {
        if self.table.is_empty() { self.len - i } else { self.run - i % self.run }
    }
}

/// All offsets, last dimension fastest.
fn tabulate(dims: &[(usize, isize)], len: usize) -> Vec<isize> {
    let mut table = Vec::with_capacity(len);
    table.push(0);
    for &(n, stride) in dims {
        let outer = std::mem::replace(&mut table, Vec::with_capacity(len));
        for base in outer {
            table.extend((0..n as isize).map(|i| base + i * stride));
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(dims: &[(usize, isize)]) -> Vec<isize> {
        let offsets = Offsets::new(dims);
        (0..offsets.len).map(|i| offsets.at(i)).collect()
    }

    #[test]
    fn dimensions_that_fuse_need_no_table() {
        let offsets = Offsets::new(&[(2, 12), (1, 77), (3, 4), (4, 1)]);
        assert!(offsets.is_uniform() && offsets.step == 1);
        assert_eq!((offsets.len, offsets.run, offsets.left_in_run(5)), (24, 24, 19));
        assert_eq!(offsets.at(23), 23);
        assert!(Offsets::new(&[(5, 0), (2, 0)]).is_uniform());
        assert!(Offsets::new(&[]).is_uniform());
    }

    #[test]
    fn windows_flips_and_permutations_are_tabulated() {
        assert_eq!(all(&[(2, 10), (3, 1)]), [0, 1, 2, 10, 11, 12]);
        assert_eq!(all(&[(2, 1), (3, -2)]), [0, -2, -4, 1, -1, -3]);
        let offsets = Offsets::new(&[(2, 10), (3, 1)]);
        assert_eq!((offsets.run, offsets.left_in_run(4)), (3, 2));
        assert_eq!(all(&[(0, 1), (3, 1)]), [0_isize; 0]);
    }
}
