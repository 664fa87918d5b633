//! `block`: a sum of products in tiles, staged in shared storage by the threads of a group.
//!
//! The nest it takes is a chain of parallel loops around a reduction `acc += x * y` in which some
//! of the parallel loops move only `x` (the rows), some only `y` (the columns) and some both (the
//! batch). Matrix products, convolutions and their gradients are such nests; how the factors are
//! addressed, guarded or computed does not matter, since they are evaluated anew for every element
//! of a tile. A group computes a block of rows by columns. It walks along the merged reduction in
//! steps of some depth; in each step its threads bring the block's factors into shared storage,
//! every element once, and each thread adds the products of a register tile. While one step is
//! computed the factors of the next are on their way: shared storage is doubled, so a step takes
//! one barrier. What follows the reduction is computed for each result as it was.
//!
//! Parameters: rows, columns and depth of a block, rows and columns of a thread (all powers of
//! two), and the lanes in which factors may be moved where they lie side by side (1 for none).
//! If the innermost column loop was vectorised before, columns count vectors.
//!
//! Every result is the same sum in the same order; only what a `fuse_muladd` afterwards rounds
//! differs.

mod emit;
mod find;
mod operand;

pub use find::Found;
pub(super) use find::{blocks, count};
pub(super) use operand::{is_lanewise, is_side_by_side, is_wide, runs_along, stride_along};

use super::nest;
use super::{Pass, Site};
use crate::caps::Caps;
use crate::ir::Kernel;

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "block",
    doc: "compute a sum of products in blocks (rows, columns, depth) of tiles (row, column), lanes",
    reassociates: false,
    sites,
    apply,
};

/// The sizes of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Rows and columns of a group, and steps of the reduction staged at once.
    pub rows: i64,
    /// Columns of a group.
    pub columns: i64,
    /// Steps of the reduction staged at once.
    pub depth: i64,
    /// Rows of a thread.
    pub row: i64,
    /// Columns of a thread.
    pub column: i64,
    /// Elements that lie side by side moved at once.
    pub lanes: i64,
}

impl Tile {
    /// Threads of a group.
    pub fn threads(&self) -> i64 {
        (self.rows / self.row) * (self.columns / self.column)
    }

    /// The parameters of a site.
    pub fn params(&self) -> [i64; 6] {
        [self.rows, self.columns, self.depth, self.row, self.column, self.lanes]
    }

    fn of(params: &[i64]) -> Option<Tile> {
        let &[rows, columns, depth, row, column, lanes] = params else { return None };
        let tile = Tile { rows, columns, depth, row, column, lanes };
        let powers = params.iter().all(|&x| (1..=1024).contains(&x) && x & (x - 1) == 0);
        let whole = row <= rows && column <= columns && lanes <= depth;
        (powers && whole && matches!(lanes, 1 | 4)).then_some(tile)
    }
}

/// Blocks offered.
const CHOICES: [[i64; 6]; 3] = [[8, 4, 4, 4, 2, 4], [4, 8, 4, 2, 2, 1], [16, 16, 8, 4, 4, 4]];

fn sites(kernel: &Kernel, caps: &Caps) -> Vec<Site> {
    nest::grouped(kernel, caps, &CHOICES, Found::of, |found, choice| {
        Tile::of(&choice).is_some_and(|tile| found.fits(kernel, tile, caps))
    })
}

fn apply(kernel: &Kernel, site: &Site) -> Kernel {
    let (Some(tile), Some(found)) = (Tile::of(&site.params), Found::of(kernel, site.value)) else {
        return kernel.clone();
    };
    let any = Caps { max_local: 1024, shared_bytes: 96 << 10, vector_bytes: 16, ..Caps::default() };
    if !found.fits(kernel, tile, &any) {
        return kernel.clone();
    }
    emit::emit(kernel, &found, tile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{LoopKind, Op, Space};
    use crate::passes::loops::loops;
    use crate::passes::samples;

    fn blocked(kernel: &Kernel, params: [i64; 6]) -> Kernel {
        let root = loops(kernel)[0].open;
        apply(kernel, &Site { value: Some(root), params: params[..].into() })
    }

    #[test]
    fn rows_and_columns_are_told_by_the_factors_that_move() {
        let kernel = samples::matmul(8, 12, 16);
        let found = Found::of(&kernel, Some(loops(&kernel)[0].open)).unwrap();
        let lengths = |list: &[crate::passes::loops::LoopInfo]| {
            list.iter().map(|l| l.len.unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(lengths(&found.rows), [8]);
        assert_eq!(lengths(&found.columns), [16]);
        assert_eq!(lengths(&found.sums), [12]);
        assert!(found.batch.is_empty());
        let kernel = samples::windows(2, 3, 4, 10, 3);
        let found = Found::of(&kernel, Some(loops(&kernel)[0].open)).unwrap();
        assert_eq!(lengths(&found.rows), [4]);
        assert_eq!(lengths(&found.columns), [2, 10]);
        assert_eq!(lengths(&found.sums), [3, 3]);
    }

    #[test]
    fn factors_are_staged_once_with_one_barrier_a_step() {
        let kernel = blocked(&samples::matmul(16, 16, 16), [8, 8, 4, 4, 2, 4]);
        let count = |f: &dyn Fn(&Op) -> bool| kernel.ops().iter().filter(|op| f(op)).count();
        assert_eq!(count(&|op| matches!(op, Op::Alloc { space: Space::Shared, .. })), 2);
        assert_eq!(count(&|op| matches!(op, Op::Barrier { .. })), 1, "{kernel}");
        let is_local = |op: &Op| matches!(op, Op::Loop { kind: LoopKind::Local, .. });
        assert_eq!(count(&is_local), 1);
    }

    #[test]
    fn what_is_no_sum_of_products_is_left_alone() {
        use crate::dtype::DType;
        for kernel in [samples::sum_rows(DType::F32, 8, 64), samples::softmax(4, 32)] {
            assert!(Found::of(&kernel, Some(loops(&kernel)[0].open)).is_none());
        }
    }
}
